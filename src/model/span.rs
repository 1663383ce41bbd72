//! Where something stands in a file.
//!
//! Invariant: byte ranges are 0-based and half-open, lines 1-based, columns 0-based and counted in bytes.
//! A line ends at LF (CRLF included); a lone CR or U+2028 ends none.

use serde::{Deserialize, Serialize};

/// A half-open byte range of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Span {
    pub start: u32,
    pub end: u32,
}

/// The place of a name token: where it is, and how people and the export name that place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Place {
    /// Line of the token, from 1.
    pub line: u32,
    /// Byte column of the token in its line, from 0.
    pub column: u32,
    /// Byte offset of the token in the file.
    pub start: u32,
}
