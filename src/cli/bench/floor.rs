//! The floors that the program is measured against: the least work that a check, and a parse of everything, can be.
//!
//! Must not use what it is compared with beyond the listing of the scope. Invariant: each loop touches exactly the files that the
//! measured command does.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tree_sitter::{Language, Parser};

use crate::model::{ContentHash, RepoPath};
use crate::workspace::{self, Policy, ScanLimits, WorkspaceError, Worktree};

use super::usage::own_cpu;

/// What a loop took and went through.
#[derive(Clone, Copy, Debug, Default)]
pub struct Floor {
    pub cpu: Duration,
    pub wall: Duration,
    pub files: u64,
    pub bytes: u64,
}

/// Lists the scope, reads and hashes every included file.
///
/// # Errors
/// When the tree cannot be read.
pub fn pass(worktree: &Worktree, policy: &Policy, limits: ScanLimits) -> Result<Floor, WorkspaceError> {
    let (start, cpu) = (Instant::now(), own_cpu());
    let outcome = workspace::pass(worktree, policy, limits)?;
    Ok(Floor { cpu: own_cpu() - cpu, wall: start.elapsed(), files: outcome.files, bytes: outcome.bytes })
}

/// Lists the scope, and does nothing else.
///
/// # Errors
/// When the tree cannot be read.
pub fn list(worktree: &Worktree, policy: &Policy) -> Result<Floor, WorkspaceError> {
    let (start, cpu) = (Instant::now(), own_cpu());
    let listed = workspace::list(worktree, policy)?;
    let files = listed.values().filter(|omitted| omitted.is_none()).count() as u64;
    Ok(Floor { cpu: own_cpu() - cpu, wall: start.elapsed(), files, bytes: 0 })
}

/// Hashes the included files on one thread, all of them in memory already: one after the other, or as a pass does it.
///
/// # Errors
/// When a file cannot be read.
pub fn hash(worktree: &Worktree, policy: &Policy, in_lanes: bool) -> Result<Floor, io::Error> {
    let listed = workspace::list(worktree, policy).map_err(io::Error::other)?;
    let included = listed.into_iter().filter(|(_, omitted)| omitted.is_none());
    let contents = included.map(|(path, _)| std::fs::read(worktree.root().join(path.as_str()))).collect::<Result<Vec<_>, _>>()?;
    let (start, cpu) = (Instant::now(), own_cpu());
    if in_lanes {
        for some in contents.chunks(32) {
            let texts: Vec<&[u8]> = some.iter().map(Vec::as_slice).collect();
            ContentHash::of_each(&texts, |_, hash| {
                std::hint::black_box(hash);
            });
        }
    } else {
        for content in &contents {
            std::hint::black_box(ContentHash::of(content));
        }
    }
    let bytes = contents.iter().map(|content| content.len() as u64).sum();
    Ok(Floor { cpu: own_cpu() - cpu, wall: start.elapsed(), files: contents.len() as u64, bytes })
}

/// Reads and parses the source files of the scope, each tree dropped at once. The listing is not counted.
///
/// # Errors
/// When a file cannot be read.
pub fn parse(worktree: &Worktree, policy: &Policy) -> Result<Floor, io::Error> {
    let listed = workspace::list(worktree, policy).map_err(io::Error::other)?;
    let paths: Vec<_> = listed
        .into_iter()
        .filter(|(_, omitted)| omitted.is_none())
        .filter_map(|(path, _)| Some((worktree.root().join(path.as_str()), grammar(&path)?)))
        .collect();
    let (start, cpu) = (Instant::now(), own_cpu());
    let next = AtomicUsize::new(0);
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let bytes = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(|| parse_some(&paths, &next))).collect();
        workers
            .into_iter()
            .map(|worker| worker.join().unwrap_or_else(|_| Err(io::Error::other("a parsing thread died"))))
            .sum::<Result<u64, io::Error>>()
    })?;
    Ok(Floor { cpu: own_cpu() - cpu, wall: start.elapsed(), files: paths.len() as u64, bytes })
}

/// Returns the grammar that reads a file.
fn grammar(path: &RepoPath) -> Option<Language> {
    match path.stem_and_suffix().1 {
        Some("py" | "pyi") => Some(tree_sitter_python::LANGUAGE.into()),
        Some("go") => Some(tree_sitter_go::LANGUAGE.into()),
        Some("rs") => Some(tree_sitter_rust::LANGUAGE.into()),
        Some("js" | "jsx" | "mjs" | "cjs") => Some(tree_sitter_javascript::LANGUAGE.into()),
        Some("ts" | "mts" | "cts") => Some(tree_sitter_typescript::LANGUAGE_TYPESCRIPT.into()),
        Some("tsx") => Some(tree_sitter_typescript::LANGUAGE_TSX.into()),
        _ => None,
    }
}

fn parse_some(files: &[(impl AsRef<Path>, Language)], next: &AtomicUsize) -> io::Result<u64> {
    let mut parser = Parser::new();
    let mut bytes = 0;
    while let Some((path, language)) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
        parser.set_language(language).map_err(io::Error::other)?;
        let source = std::fs::read(path)?;
        bytes += source.len() as u64;
        std::hint::black_box(parser.parse(&source, None));
    }
    Ok(bytes)
}
