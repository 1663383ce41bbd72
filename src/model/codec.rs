//! How facts are written as bytes, in the cache and between processes.
//!
//! Must not know where the bytes go. Invariant: what [`decode`] gives was written by [`encode`] of this build, byte for byte, or by
//! someone who writes the same form; whether its parts fit together is asked elsewhere.

use super::{ContentHash, FileFacts, Surface};

/// The text that declares what facts are made of. Fields and variants are written by their order and read without names, so that whoever
/// keeps the bytes keeps them under these declarations: after any change of them they are another form.
pub const DECLARATIONS: [&str; 4] =
    [include_str!("codec.rs"), include_str!("facts.rs"), include_str!("graph.rs"), include_str!("span.rs")];

/// Returns the bytes of facts; `None` for facts that have none, which is a fault of their maker.
pub fn encode(facts: &FileFacts) -> Option<Vec<u8>> {
    postcard::to_stdvec(facts).ok()
}

/// Returns the facts that the bytes are, all of them and no more.
pub fn decode(bytes: &[u8]) -> Option<FileFacts> {
    match postcard::take_from_bytes(bytes) {
        Ok((facts, [])) => Some(facts),
        _ => None,
    }
}

/// Returns a digest of a surface, by which equal ones are known without the other at hand.
pub fn surface_digest(surface: &Surface) -> ContentHash {
    // A surface that has no bytes would equal no other; none has been made that has none.
    ContentHash::of(&postcard::to_stdvec(surface).expect("a surface holds plain values"))
}
