//! Looking at a part of a scope: for those who were told where something may have changed, and want to know before the next scan.
//!
//! Must not say that anything is unchanged: only a whole scan does. Invariant: what is read here is read by the rules of a scan, and a path
//! is passed over only where a scan would leave it out without a word.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::SystemTime;

use crate::model::RepoPath;

use super::directory::{self, Kind, Parent, Root, Stat};
use super::inventory::{self, Confines, Inventory, Plan};
use super::policy::Policy;
use super::scan::{Leave, Reading, ScanLimits, Visitor, for_each, look_at_git, threads};
use super::{Entry, GitState, WorkspaceError, Worktree, git};

/// Reads what stands at `paths` and below them, as a scan would, and gives each included file to `visit`. Returns the entries by path.
///
/// # Errors
/// As [`super::scan`].
pub fn scan_part(
    worktree: &Worktree,
    policy: &Policy,
    limits: ScanLimits,
    paths: Vec<RepoPath>,
    visit: &Visitor<'_>,
) -> Result<Vec<Entry>, WorkspaceError> {
    let root = Root::open(worktree.root())?;
    let git = look_at_git(worktree, &root, Some(&worktree.kept))?;
    let leave = Leave::of(&limits);
    let confines = Confines::new(paths);
    let mut inventory = inventory::list_within(&root, &git, policy, Some(&confines), leave, 1)?;
    // What lies on the way is none of it.
    inventory.candidates.retain(|candidate| confines.hold(candidate.path.as_str().as_bytes()));
    let reading = Reading::new(&root, &git, &limits, visit);
    let entries = for_each(&inventory.candidates, threads(), leave, |from, some, hands| reading.examine(from, some, hands))?;
    Ok(entries.into_iter().filter_map(|(entry, _)| entry).collect())
}

/// Returns those of `paths` at which, or below which, a scan may find or miss something: not those that the rules leave out without a
/// word, such as ignored files. Sorted.
///
/// # Errors
/// As [`super::list`].
pub fn relevant(worktree: &Worktree, policy: &Policy, paths: Vec<RepoPath>) -> Result<Vec<RepoPath>, WorkspaceError> {
    let root = Root::open(worktree.root())?;
    let git = look_at_git(worktree, &root, Some(&worktree.kept))?;
    let confines = Confines::new(paths);
    let Inventory { candidates, mut absent, unrepresentable, .. } =
        inventory::list_within(&root, &git, policy, Some(&confines), Leave::ALL, 1)?;
    let present = Confines::new(candidates.into_iter().map(|candidate| candidate.path).collect());
    // Such a path is below one of those asked for, which is not told apart.
    let found = confines.iter().filter(|path| present.have_within(path.as_str().as_bytes()) || !unrepresentable.is_empty());
    absent.extend(found.cloned());
    absent.sort_unstable();
    absent.dedup();
    Ok(absent)
}

/// Returns the directories in which a scan may find something, `""` for the root, sorted; with `below` those at these paths and below
/// them alone.
///
/// # Errors
/// As [`super::list`].
pub fn directories(
    worktree: &Worktree,
    policy: &Policy,
    below: Option<Vec<RepoPath>>,
) -> Result<BTreeSet<String>, WorkspaceError> {
    let root = Root::open(worktree.root())?;
    let git = look_at_git(worktree, &root, Some(&worktree.kept))?;
    let confines = below.map(Confines::new);
    let inventory = inventory::list_within(&root, &git, policy, confines.as_ref(), Leave::ALL, threads())?;
    let mut directories: BTreeSet<String> = inventory.directories.iter().map(|path| (**path).to_owned()).collect();
    if directories.is_empty() {
        // The index alone was read.
        for candidate in &inventory.candidates {
            let mut above = candidate.path.directory();
            while !above.is_empty() && directories.insert(above.to_owned()) {
                above = above.rsplit_once('/').map_or("", |(outer, _)| outer);
            }
        }
        directories.insert(String::new());
    }
    if let Some(confines) = confines {
        directories.retain(|directory| confines.hold(directory.as_bytes()));
    }
    Ok(directories)
}

/// What a whole scope looks like without reading a file. Two that are equal prove nothing: bytes may change and leave it as it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Glance {
    git: GitState,
    /// A digest of what the system says of each file that would be read.
    files: BTreeMap<RepoPath, Option<u64>>,
    unrepresentable: Vec<String>,
}

impl Glance {
    /// Returns the paths that look otherwise than before, sorted; `None` when what belongs to the scope may have changed altogether.
    pub fn differing(&self, before: &Self) -> Option<Vec<RepoPath>> {
        if self.git != before.git || self.unrepresentable != before.unrepresentable {
            return None;
        }
        let mut paths: BTreeSet<&RepoPath> = BTreeSet::new();
        paths.extend(self.files.iter().filter(|(path, stamp)| before.files.get(*path) != Some(*stamp)).map(|(path, _)| path));
        paths.extend(before.files.keys().filter(|path| !self.files.contains_key(*path)));
        Some(paths.into_iter().cloned().collect())
    }
}

/// Looks at all files of a scope from outside.
///
/// # Errors
/// As [`super::list`].
pub fn glance(worktree: &Worktree, policy: &Policy) -> Result<Glance, WorkspaceError> {
    let root = Root::open(worktree.root())?;
    let git = look_at_git(worktree, &root, Some(&worktree.kept))?;
    let inventory = inventory::list_within(&root, &git, policy, None, Leave::ALL, 1)?;
    let mut parent = Parent::default();
    let stamp = |stat: Stat| {
        let version =
            (stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime, stat.st_mtime_nsec, stat.st_ctime, stat.st_ctime_nsec);
        let mut hasher = DefaultHasher::new();
        (version, stat.st_mode).hash(&mut hasher);
        hasher.finish()
    };
    let mut look = |candidate: inventory::Candidate| {
        let stat = match candidate.plan {
            Plan::Omit(..) => None,
            Plan::Read | Plan::Probe(_) => root.stat(candidate.path.as_str().as_bytes(), &mut parent).ok().flatten(),
        };
        (candidate.path, stat.map(stamp))
    };
    let files = inventory.candidates.into_iter().map(&mut look).collect();
    Ok(Glance { git: git.state, files, unrepresentable: inventory.unrepresentable })
}

/// Where Git keeps what decides about a worktree beside its files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GitPlaces {
    /// HEAD and the index are here.
    pub directory: PathBuf,
    /// Branches, packed references and the repository's own ignore rules are here; another directory in a linked worktree.
    pub common: PathBuf,
    /// The file of the branch that HEAD names, should it have one of its own.
    pub branch: Option<PathBuf>,
    /// More ignore rules are in this file of the worktree.
    pub excludes: Option<PathBuf>,
}

/// Which directory stands at the root. Another one may have the same number; few were also made in the same moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RootIdentity {
    device: u64,
    inode: u64,
    /// Where the file system knows it.
    made: Option<SystemTime>,
}

/// Where Git runs hooks from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GitHooks {
    /// Need not exist.
    pub directory: PathBuf,
    /// Whether a configuration names it.
    pub is_configured: bool,
}

impl Worktree {
    /// Returns where Git keeps what decides about this worktree; `None` without Git.
    ///
    /// # Errors
    /// When the repository cannot be opened.
    pub fn git_places(&self) -> Result<Option<GitPlaces>, WorkspaceError> {
        if self.has_git() { git::places(self.root()).map(Some) } else { Ok(None) }
    }

    /// Returns where Git runs hooks of this worktree from; `None` without Git.
    ///
    /// # Errors
    /// When the repository or the configuration cannot be read.
    pub fn hooks(&self) -> Result<Option<GitHooks>, WorkspaceError> {
        if self.has_git() { git::hooks(self.root()).map(Some) } else { Ok(None) }
    }

    /// Returns what Git says of this worktree now.
    ///
    /// # Errors
    /// When it cannot be read, or its index holds conflicts.
    pub fn git_state(&self) -> Result<GitState, WorkspaceError> {
        Ok(look_at_git(self, &Root::open(self.root())?, Some(&self.kept))?.state)
    }

    /// Returns which directory stands at the root now; `None` when none does.
    pub fn identity(&self) -> Option<RootIdentity> {
        let found = self.root().symlink_metadata().ok()?;
        let identity = RootIdentity { device: found.dev(), inode: found.ino(), made: found.created().ok() };
        found.is_dir().then_some(identity)
    }

    /// Returns whether a directory, not a link to one, stands at `path` now.
    pub fn is_directory(&self, path: &RepoPath) -> bool {
        let found =
            Root::open(self.root()).ok().and_then(|root| root.stat(path.as_str().as_bytes(), &mut Parent::default()).ok());
        found.flatten().is_some_and(|stat| directory::kind(&stat) == Kind::Directory)
    }
}
