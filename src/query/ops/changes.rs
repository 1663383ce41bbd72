//! `changes`: which files differ between the generation before and the one that serves. Must not know definitions or Git.
//!
//! Invariant: what is compared are the bytes of included files. A file that is left out by now counts as deleted and one that no longer is
//! as added; a rename is a delete and an add; a mode, a commit or a time is no change.

use std::cmp::Ordering;
use std::sync::Arc;

use crate::model::ContentHash;
use crate::query::response::{Change, FileChange, Item};
use crate::query::{QueryError, Result};
use crate::store::{Generation, StoreError};

use super::Context;

/// One file that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Differing {
    pub path: Arc<str>,
    pub before: Option<ContentHash>,
    pub after: Option<ContentHash>,
}

/// Lists the files that differ, by path.
pub fn run(context: &mut Context<'_>) -> Result<()> {
    let before = context.baseline.ok_or(QueryError::NoBaseline)?;
    let items: Vec<Item> = differing(before, context.generation)?.iter().map(item).collect();
    context.response.before_fingerprint = Some(before.identity().fingerprint.hex());
    context.response.total = items.len() as u64;
    context.response.items = items;
    Ok(())
}

/// Returns the files that differ between two generations, by path.
pub fn differing(before: &Generation, after: &Generation) -> std::result::Result<Vec<Differing>, StoreError> {
    let files =
        |generation: &Generation| Ok::<_, StoreError>(generation.manifest()?.into_iter().map(|file| (file.path, file.hash)));
    Ok(compare(files(before)?, files(after)?))
}

/// Compares two lists of files, each sorted by path.
fn compare(
    before: impl Iterator<Item = (Arc<str>, ContentHash)>,
    after: impl Iterator<Item = (Arc<str>, ContentHash)>,
) -> Vec<Differing> {
    let (mut before, mut after) = (before.peekable(), after.peekable());
    let mut found = Vec::new();
    loop {
        let order = match (before.peek(), after.peek()) {
            (None, None) => return found,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some((left, _)), Some((right, _))) => left.cmp(right),
        };
        let old = before.next_if(|_| order.is_le());
        let new = after.next_if(|_| order.is_ge());
        let (old, path) = old.map_or((None, None), |(path, hash)| (Some(hash), Some(path)));
        let (new, path) = new.map_or((None, path), |(path, hash)| (Some(hash), Some(path)));
        if let Some(path) = path
            && old != new
        {
            found.push(Differing { path, before: old, after: new });
        }
    }
}

fn item(differing: &Differing) -> Item {
    let change = match (differing.before, differing.after) {
        (None, _) => Change::Added,
        (_, None) => Change::Deleted,
        _ => Change::Modified,
    };
    let (before_sha256, after_sha256) = (differing.before, differing.after);
    Item { path: differing.path.clone(), change: Some(FileChange { change, before_sha256, after_sha256 }), ..Item::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each file is `path=content`, sorted.
    fn check(before: &str, after: &str, expected: &str) {
        let list = |text: &str| -> Vec<(Arc<str>, ContentHash)> {
            let file = |word: &str| {
                let (path, content) = word.split_once('=').expect("path=content");
                (Arc::from(path), ContentHash::of(content.as_bytes()))
            };
            text.split_whitespace().map(file).collect()
        };
        let found = compare(list(before).into_iter(), list(after).into_iter());
        let line = |differing: &Differing| {
            let change = item(differing).change.expect("it has one");
            format!("{:?} {}", change.change, differing.path)
        };
        assert_eq!(found.iter().map(line).collect::<Vec<_>>().join(", "), expected, "{before} to {after}");
    }

    #[test]
    fn files_are_compared_by_their_bytes() {
        check("", "", "");
        check("a=1 b=2", "a=1 b=2", "");
        check("a=1 b=2", "a=1 b=3", "Modified b");
        check("", "a=1 b=2", "Added a, Added b");
        check("a=1 b=2", "", "Deleted a, Deleted b");
        check("a=1 c=3", "b=1 c=3", "Deleted a, Added b");
        check("a=1 c=3 e=5", "b=2 c=4 d=5", "Deleted a, Added b, Modified c, Added d, Deleted e");
    }
}
