//! Captured source by lines: what snippets, call sites and `read` are cut from.
//!
//! Must not know the worktree: the bytes come from a generation, checked there against their digest. Invariant: a line ends at LF and
//! belongs to exactly one line number; concatenating all lines gives the file back.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;

use crate::store::{Generation, StoreError};

/// One file's text with its lines found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceFile {
    text: Arc<[u8]>,
    /// Byte offset where each line begins.
    starts: Vec<u32>,
}

impl SourceFile {
    pub fn new(text: Arc<[u8]>) -> Self {
        let mut starts = Vec::new();
        if !text.is_empty() {
            starts.push(0);
            let ends = text.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
            starts.extend(ends.map(|(index, _)| index as u32 + 1).filter(|start| (*start as usize) < text.len()));
        }
        Self { text, starts }
    }

    /// Returns how many lines the file has; an empty file has none.
    pub fn line_count(&self) -> u32 {
        self.starts.len() as u32
    }

    /// Returns the byte at which a place stands; `None` past the end.
    pub fn offset(&self, line: u32, column: u32) -> Option<u32> {
        let start = self.starts.get((line as usize).checked_sub(1)?)?;
        start.checked_add(column)
    }

    /// Returns line `number` (from 1) with its line end; `None` past the end, or where the bytes are not UTF-8.
    pub fn line(&self, number: u32) -> Option<&str> {
        let index = (number as usize).checked_sub(1)?;
        let start = *self.starts.get(index)? as usize;
        let end = self.starts.get(index + 1).map_or(self.text.len(), |end| *end as usize);
        std::str::from_utf8(&self.text[start..end]).ok()
    }
}

/// Which lines of which file an item may show, and how much of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceRange {
    pub file: Arc<SourceFile>,
    pub lines: RangeInclusive<u32>,
    /// Most bytes of source; a snippet never has more than [`MAX_LINES`] lines.
    pub max_bytes: usize,
}

/// Most lines of a snippet and of a `read`.
pub const MAX_LINES: u32 = 200;
/// Most bytes of a snippet.
pub const MAX_SNIPPET: usize = 2_000;
/// Most bytes of a `read`.
pub const MAX_READ: usize = 24_000;

/// The sources one request reads, each file once.
pub struct Sources<'g> {
    generation: &'g Generation,
    files: BTreeMap<Arc<str>, Option<Arc<SourceFile>>>,
}

impl<'g> Sources<'g> {
    pub fn new(generation: &'g Generation) -> Self {
        Self { generation, files: BTreeMap::new() }
    }

    /// Returns a file's source; `None` when the generation holds none.
    ///
    /// # Errors
    /// [`StoreError`] when the stored bytes cannot be read or do not match their digest.
    pub fn get(&mut self, path: &Arc<str>) -> Result<Option<Arc<SourceFile>>, StoreError> {
        if let Some(file) = self.files.get(path) {
            return Ok(file.clone());
        }
        let file = self.generation.source(path)?.map(|text| Arc::new(SourceFile::new(text)));
        self.files.insert(path.clone(), file.clone());
        Ok(file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[&str]) {
        let file = SourceFile::new(Arc::from(text.as_bytes()));
        let lines: Vec<_> = (1..=file.line_count()).map(|number| file.line(number).expect("counted")).collect();
        assert_eq!(lines, expected);
        assert_eq!(file.line(0), None);
        assert_eq!(file.line(file.line_count() + 1), None);
    }

    #[test]
    fn lines_end_at_line_feeds_only() {
        check("", &[]);
        check("a", &["a"]);
        check("a\n", &["a\n"]);
        check("\n\n", &["\n", "\n"]);
        check("a\r\nb\rc\u{2028}d\n", &["a\r\n", "b\rc\u{2028}d\n"]);
    }
}
