//! Digests and identities: SHA-256 over bytes, and over records of length-prefixed fields.
//!
//! Invariant: two different records never encode to the same bytes, because every field carries its length.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::lanes;

macro_rules! digest_type {
    ($(#[$doc:meta])* $name:ident, $length:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        pub struct $name(pub [u8; $length]);

        impl $name {
            /// Returns the lower-case hexadecimal form, as on the wire.
            pub fn hex(&self) -> String {
                let mut text = String::with_capacity($length * 2);
                for byte in self.0 {
                    text.push(char::from(b"0123456789abcdef"[usize::from(byte >> 4)]));
                    text.push(char::from(b"0123456789abcdef"[usize::from(byte & 15)]));
                }
                text
            }

            /// Parses exactly the form that [`Self::hex`] gives; anything else is `None`.
            pub fn parse(text: &str) -> Option<Self> {
                let bytes = text.as_bytes();
                if bytes.len() != $length * 2 {
                    return None;
                }
                let digit = |byte: u8| match byte {
                    b'0'..=b'9' => Some(byte - b'0'),
                    b'a'..=b'f' => Some(byte - b'a' + 10),
                    _ => None,
                };
                let mut out = [0; $length];
                for (slot, pair) in out.iter_mut().zip(bytes.chunks_exact(2)) {
                    *slot = digit(pair[0])? << 4 | digit(pair[1])?;
                }
                Some(Self(out))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str(&self.hex())
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str(&self.hex())
            }
        }
    };
}

digest_type!(
    /// SHA-256 of the bytes of a file or of a snippet (FIPS 180-4).
    ContentHash, 32
);
digest_type!(
    /// The identity of what a generation answers from (contract §4).
    Fingerprint, 32
);
digest_type!(
    /// The random name of a generation's directory.
    GenerationId, 16
);

impl ContentHash {
    /// Hashes `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// Hashes each of `texts`, faster than one after the other; `found` gets the position and the hash of each, in no order.
    pub fn of_each(texts: &[&[u8]], mut found: impl FnMut(usize, Self)) {
        lanes::digest_each(texts, |position, digest| found(position, Self(digest)));
    }
}

/// Canonical encoding of a record, hashed as it is written: every field is its length (u64, big-endian) and its bytes.
#[derive(Clone, Default)]
pub struct Canonical(Sha256);

impl Canonical {
    /// Starts a record of the named kind.
    pub fn new(kind: &str) -> Self {
        let mut record = Self(Sha256::new());
        record.field(kind.as_bytes());
        record
    }

    /// Appends one field.
    pub fn field(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.update((bytes.len() as u64).to_be_bytes());
        self.0.update(bytes);
        self
    }

    /// Appends an integer as an eight-byte field.
    pub fn number(&mut self, value: u64) -> &mut Self {
        self.field(&value.to_be_bytes())
    }

    /// Returns the SHA-256 of what was written.
    pub fn finish(self) -> [u8; 32] {
        self.0.finalize().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hex_round_trip() {
        let hash = ContentHash::of(b"");
        assert_eq!(hash.hex(), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
        assert_eq!(ContentHash::parse(&hash.hex()), Some(hash));
        assert_eq!(ContentHash::parse(&hash.hex().to_uppercase()), None);
        assert_eq!(ContentHash::parse("00"), None);
    }

    #[test]
    fn fields_do_not_run_together() {
        let digest = |fields: &[&str]| {
            let mut record = Canonical::new("test");
            for field in fields {
                record.field(field.as_bytes());
            }
            record.finish()
        };
        assert_ne!(digest(&["ab", "c"]), digest(&["a", "bc"]));
        assert_ne!(digest(&["a", ""]), digest(&["a"]));
    }
}
