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

impl Place {
    /// Returns the place of the byte offset `start` in a file whose lines begin at `line_starts`, of which the first is 0.
    pub fn at(line_starts: &[u32], start: u32) -> Self {
        let after = line_starts.partition_point(|line_start| *line_start <= start);
        let line_start = after.checked_sub(1).and_then(|index| line_starts.get(index)).copied().unwrap_or(0);
        Self { line: u32::try_from(after.max(1)).unwrap_or(u32::MAX), column: start - line_start, start }
    }
}
