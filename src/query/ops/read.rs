//! `read`: lines of one file, exactly as they were captured. Must not know symbols. Invariant: the bytes are those of the digest asked for.

use std::sync::Arc;

use crate::model::{ContentHash, RepoPath};
use crate::query::response::Item;
use crate::query::source::MAX_READ;
use crate::query::{QueryError, Result};

use super::Context;

/// Gives the lines from `start_line` to `end_line`, or to the end of the file.
pub fn run(context: &mut Context<'_>, path: &RepoPath, file_sha256: &ContentHash, start_line: u64, end_line: u64) -> Result<()> {
    let missing = || QueryError::TargetMissing { what: "such file" };
    let file = context.generation.file(path.as_str())?.filter(|file| file.omitted.is_none()).ok_or_else(missing)?;
    if file.hash != Some(*file_sha256) {
        return Err(QueryError::Changed { what: "the file's `file_sha256`" });
    }
    let path: Arc<str> = file.path;
    let source = context.lines(&path, 1, 1, MAX_READ)?.ok_or_else(missing)?;
    let lines = source.file.line_count();
    let start = u32::try_from(start_line).ok().filter(|start| *start <= lines);
    let start = start.ok_or(QueryError::RangeMissing { start_line, lines })?;
    let end = u32::try_from(end_line).unwrap_or(lines).min(lines);
    let source = context.lines(&path, start, end, MAX_READ)?;
    context.response.items =
        vec![Item { path, start_line: start, end_line: end, file_sha256: Some(*file_sha256), source, ..Item::default() }];
    context.response.total = 1;
    Ok(())
}
