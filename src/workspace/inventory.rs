//! Which paths exist for a scope: what Git tracks, and what it neither tracks nor ignores, as `git ls-files -co --exclude-standard` has it.
//!
//! Must not read the content of an indexed file. Invariant: a path is listed once, links are never followed, and a directory that holds
//! tracked files is never passed over.

use std::sync::Arc;

use gix::index::entry::Mode;

use crate::model::RepoPath;

use super::directory::{Errno, Kind, Parent, Root};
use super::git::Snapshot;
use super::kept::{Grounds, Kept, Listing, Records};
use super::policy::Policy;
use super::scan::Leave;
use super::seal::Round;
use super::walk::{self, Walk};
use super::{Omission, WorkspaceError, escape};

/// Modes of what is listed without being read.
pub(super) const MODE_FILE: u32 = 0o100_644;
pub(super) const MODE_EXECUTABLE: u32 = 0o100_755;
pub(super) const MODE_SYMLINK: u32 = 0o120_000;
pub(super) const MODE_SUBMODULE: u32 = 0o160_000;
pub(super) const MODE_DIRECTORY: u32 = 0o040_000;

/// One listed path and what a scan has to do with it.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub(super) path: RepoPath,
    /// Its position in the index, when Git tracks it.
    pub(super) position: Option<usize>,
    /// Git's mode of it, when Git tracks it as a regular file.
    pub(super) tracked_mode: Option<u32>,
    pub(super) plan: Plan,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Plan {
    /// Open it and let its content decide.
    Read,
    /// Left out, once it is known to exist.
    Probe(Omission),
    /// Left out, and seen in its directory.
    Omit(Omission, u32),
}

/// The listing of a scope.
#[derive(Debug, Default)]
pub(super) struct Inventory {
    /// Sorted by path.
    pub(super) candidates: Vec<Candidate>,
    /// Sorted.
    pub(super) unrepresentable: Vec<String>,
    /// The directories that were read, `""` for the root, in no order; none where the index alone was.
    pub(super) directories: Vec<Arc<str>>,
    /// Of the paths that a listing was confined to, those where nothing stands and no rule would leave out what could, in no order.
    pub(super) absent: Vec<RepoPath>,
}

/// Some paths and all that may stand below them, for listings of a part of a scope.
#[derive(Debug)]
pub(super) struct Confines {
    /// Sorted by bytes, without doubles.
    paths: Vec<RepoPath>,
}

impl Confines {
    pub(super) fn new(mut paths: Vec<RepoPath>) -> Self {
        paths.sort_unstable();
        paths.dedup();
        Self { paths }
    }

    /// Returns whether `path` is one of the paths or stands below one.
    pub(super) fn hold(&self, path: &[u8]) -> bool {
        let is_one = |path: &[u8]| self.paths.binary_search_by(|known| known.as_str().as_bytes().cmp(path)).is_ok();
        is_one(path) || (0..path.len()).any(|at| path[at] == b'/' && is_one(&path[..at]))
    }

    /// Returns the paths that stand below a directory, which ends with a slash unless it is the root, `""`.
    pub(super) fn below(&self, directory: &[u8]) -> &[RepoPath] {
        let start = self.paths.partition_point(|known| known.as_str().as_bytes() < directory);
        let length = self.paths[start..].partition_point(|known| known.as_str().as_bytes().starts_with(directory));
        &self.paths[start..start + length]
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &RepoPath> {
        self.paths.iter()
    }

    /// Returns whether one of the paths is `path` or stands below it.
    pub(super) fn have_within(&self, path: &[u8]) -> bool {
        self.paths.binary_search_by(|known| known.as_str().as_bytes().cmp(path)).is_ok()
            || !self.below(&[path, b"/"].concat()).is_empty()
    }

    /// Returns whether a listing has to go into the directory `path`.
    pub(super) fn lead_into(&self, path: &[u8]) -> bool {
        self.hold(path) || self.have_within(path)
    }
}

impl Inventory {
    fn sort(&mut self) {
        // Two positions of the index compare faster than two paths, and alike.
        self.candidates.sort_unstable_by(|left, right| match (left.position, right.position) {
            (Some(left), Some(right)) => left.cmp(&right),
            _ => left.path.cmp(&right.path),
        });
        self.unrepresentable.sort_unstable();
        self.unrepresentable.dedup();
    }
}

/// Lists a scope with `threads` threads. What `kept` has of the last listing spares what would come out the same.
///
/// # Errors
/// When a directory cannot be read.
pub(super) fn list(
    root: &Root,
    git: &Snapshot,
    policy: &Policy,
    kept: &Kept,
    round: Option<&Round<'_>>,
    leave: Leave<'_>,
    threads: usize,
) -> Result<Arc<Inventory>, WorkspaceError> {
    let grounds = Grounds::of(git, policy);
    let last = kept.listing(&grounds);
    if !needs_walk(git, policy) {
        if let Some(last) = last {
            return Ok(last.inventory.clone());
        }
        let mut inventory = list_tracked(root, git, policy, None)?;
        inventory.sort();
        let inventory = Arc::new(inventory);
        // Whether something stands where no path can be written is asked of the disk.
        if inventory.unrepresentable.is_empty() {
            let rules = walk::outermost(git);
            kept.keep(Listing { grounds, rules, records: Records::default(), inventory: inventory.clone() });
        }
        return Ok(inventory);
    }
    let rules = last.as_ref().map_or_else(|| walk::outermost(git), |last| last.rules.clone());
    let walk = Walk::new(root, git, policy, leave, threads).after(last.as_deref(), round);
    let found = walk.run(rules.clone(), true)?;
    if let Some(last) = last.filter(|last| found.repeats(last)) {
        return Ok(last.inventory.clone());
    }
    let (mut inventory, records) = found.into_parts();
    inventory.sort();
    let inventory = Arc::new(inventory);
    if let Some(records) = records {
        kept.keep(Listing { grounds, rules, records, inventory: inventory.clone() });
    }
    Ok(inventory)
}

/// Lists the part of a scope within `confines`, or the whole without, anew.
pub(super) fn list_within(
    root: &Root,
    git: &Snapshot,
    policy: &Policy,
    confines: Option<&Confines>,
    leave: Leave<'_>,
    threads: usize,
) -> Result<Inventory, WorkspaceError> {
    let mut inventory = if needs_walk(git, policy) {
        let walk = Walk::new(root, git, policy, leave, threads).within(confines);
        walk.run(walk::outermost(git), false)?.into_parts().0
    } else {
        list_tracked(root, git, policy, confines)?
    };
    inventory.sort();
    Ok(inventory)
}

/// Returns whether the index alone does not say what belongs to a scope.
pub(super) fn needs_walk(git: &Snapshot, policy: &Policy) -> bool {
    !git.state.present || policy.include_untracked()
}

/// Lists what the index names, without looking for anything else. Whether it exists the scan finds out.
fn list_tracked(root: &Root, git: &Snapshot, policy: &Policy, confines: Option<&Confines>) -> Result<Inventory, WorkspaceError> {
    let mut inventory = Inventory::default();
    inventory.candidates.reserve(confines.map_or(git.tracked.len(), |_| 0));
    for position in 0..git.tracked.len() {
        let bytes = git.tracked.path(position);
        if confines.is_some_and(|confines| !confines.hold(bytes)) {
            continue;
        }
        // No index that Git wrote names anything of its own directory.
        if bytes.split(|&byte| byte == b'/').any(|part| part.eq_ignore_ascii_case(b".git")) {
            continue;
        }
        let Some(path) = representable(bytes) else {
            if exists(root, bytes)? {
                inventory.unrepresentable.push(escape(bytes));
            }
            continue;
        };
        let entry = git.tracked.entry(position);
        let plan = match entry.mode {
            Mode::COMMIT => Plan::Probe(Omission::Submodule),
            Mode::SYMLINK => Plan::Read,
            _ => policy.omits(&path).map_or(Plan::Read, Plan::Probe),
        };
        inventory.candidates.push(Candidate { path, position: Some(position), tracked_mode: regular_mode(entry.mode), plan });
    }
    Ok(inventory)
}

fn exists(root: &Root, path: &[u8]) -> Result<bool, WorkspaceError> {
    match root.stat(path, &mut Parent::default()) {
        Ok(found) => Ok(found.is_some()),
        Err(Errno::ACCESS | Errno::PERM | Errno::NAMETOOLONG) => Ok(true),
        Err(errno) => Err(WorkspaceError::Read { path: escape(path), source: errno.into() }),
    }
}

pub(super) fn representable(path: &[u8]) -> Option<RepoPath> {
    std::str::from_utf8(path).ok().and_then(|text| RepoPath::parse(text).ok())
}

pub(super) fn regular_mode(mode: Mode) -> Option<u32> {
    match mode {
        Mode::FILE => Some(MODE_FILE),
        Mode::FILE_EXECUTABLE => Some(MODE_EXECUTABLE),
        _ => None,
    }
}

/// Returns the plan for what a probe found at a path, `None` when nothing of the index's kind stands there.
pub(super) fn probed(candidate: &Candidate, reason: Omission, kind: Option<Kind>) -> Option<(Omission, u32)> {
    match (kind?, reason) {
        (Kind::Directory, Omission::Submodule) => Some((Omission::Submodule, MODE_SUBMODULE)),
        (Kind::Directory, _) => None,
        (Kind::Symlink, _) => Some((Omission::Symlink, MODE_SYMLINK)),
        (Kind::File, Omission::Submodule) => Some((Omission::UnsupportedContent, MODE_FILE)),
        (Kind::File, reason) => Some((reason, candidate.tracked_mode.unwrap_or(MODE_FILE))),
        (Kind::Other, _) => Some((Omission::NotARegularFile, candidate.tracked_mode.unwrap_or(MODE_FILE))),
    }
}
