//! Text for people: one line a fact, places as `path:line`, colours only where the caller asked for them.
//!
//! Must not know terminals. Invariant: without colour the text is the same, byte for byte.
