//! What events said since the last hint, in terms of the worktree.
//!
//! Must not touch the disk but to ask whether a path is a directory. Invariant: an event that is not understood counts as one of anything.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ::notify::event::{Event, EventKind, ModifyKind};

use crate::model::RepoPath;
use crate::workspace::GitPlaces;

use super::MANY_PATHS;

/// What there is to look at.
#[derive(Debug, Default)]
pub(super) struct Pending {
    pub paths: BTreeSet<RepoPath>,
    /// Where a directory came, went, or may be another one.
    pub directories: BTreeSet<RepoPath>,
    /// Git's own files changed.
    pub git: bool,
    /// What decides which directories belong to the scope changed.
    pub rules: bool,
    /// Anything may have changed.
    pub rescan: bool,
    /// Events were lost, and with them perhaps where directories are.
    pub overflow: bool,
    /// The root went or moved. What stands there may be told of no more, though it look the same: file systems use numbers again.
    pub root: bool,
    since: Option<(Instant, Instant)>,
}

/// Where a worktree and its Git directories are.
pub(super) struct Surroundings<'a> {
    pub root: &'a Path,
    pub git: Option<&'a GitPlaces>,
    pub watched: &'a BTreeSet<String>,
    /// Whether a directory stands at a path now.
    pub is_directory: &'a dyn Fn(&RepoPath) -> bool,
}

/// What an event in a Git directory is about.
enum OfGit {
    State,
    Rules,
    Nothing,
}

impl Pending {
    pub(super) fn is_empty(&self) -> bool {
        !(self.git || self.rules || self.rescan || self.overflow || self.root)
            && self.paths.is_empty()
            && self.directories.is_empty()
    }

    /// Returns when nothing has happened for `quiet`, or too long has passed to wait for that; `None` when there is nothing to look at.
    pub(super) fn due(&self, quiet: Duration) -> Option<Instant> {
        let (first, last) = self.since.filter(|_| !self.is_empty())?;
        Some((last + quiet).min(first + quiet * 10))
    }

    /// Returns when the first of it happened.
    pub(super) fn first(&self) -> Option<Instant> {
        self.since.map(|(first, _)| first)
    }

    /// Takes in one event.
    pub(super) fn take(&mut self, event: &Event, around: &Surroundings<'_>) {
        if event.need_rescan() {
            self.overflow = true;
        }
        if !matches!(event.kind, EventKind::Access(_)) {
            for path in &event.paths {
                self.take_path(path, &event.kind, around);
            }
        }
        if !self.is_empty() {
            let now = Instant::now();
            self.since = Some((self.since.map_or(now, |(first, _)| first), now));
        }
    }

    fn take_path(&mut self, path: &Path, kind: &EventKind, around: &Surroundings<'_>) {
        match around.git.and_then(|git| of_git(path, git)) {
            Some(OfGit::State) => return self.git = true,
            Some(OfGit::Rules) => return self.rules = true,
            Some(OfGit::Nothing) => return,
            None => {}
        }
        let Ok(below) = path.strip_prefix(around.root) else { return };
        let mut parts = below.components().map(|part| part.as_os_str());
        match (parts.next(), parts.next()) {
            (None, _) => return self.root |= matches!(kind, EventKind::Remove(_) | EventKind::Modify(ModifyKind::Name(_))),
            (Some(first), None) if first == ".git" => return self.git = true,
            (Some(first), Some(_)) if first == ".git" => return,
            _ => {}
        }
        if around.git.and_then(|git| git.excludes.as_deref()).is_some_and(|excludes| excludes.starts_with(path)) {
            // What stands above it moved, perhaps.
            self.rules = true;
        }
        // A system that tells of all below the root tells of what the scope leaves out, too.
        if !below.parent().and_then(Path::to_str).is_some_and(|directory| around.watched.contains(directory)) {
            return;
        }
        let Some(path) = below.to_str().and_then(|text| RepoPath::parse(text).ok()) else {
            // Listed among those that cannot be represented.
            return self.rescan = true;
        };
        match path.file_name() {
            // A directory became a repository of its own, or ceased to be one.
            ".git" | ".gitignore" => self.rules = true,
            _ => {}
        }
        let structural = match kind {
            EventKind::Modify(ModifyKind::Data(_)) => false,
            _ => around.watched.contains(path.as_str()) || (around.is_directory)(&path),
        };
        if structural {
            self.directories.insert(path.clone());
        }
        if self.paths.len() < MANY_PATHS {
            self.paths.insert(path);
        } else {
            self.rescan = true;
        }
    }
}

/// Returns what a path says of Git, when it is one of a Git directory.
fn of_git(path: &Path, git: &GitPlaces) -> Option<OfGit> {
    if path == git.directory || path == git.common {
        return Some(OfGit::State);
    }
    if git.branch.as_deref() == Some(path) {
        return Some(OfGit::State);
    }
    if git.excludes.as_deref() == Some(path) {
        return Some(OfGit::Rules);
    }
    let names = [
        ("HEAD", OfGit::State),
        ("index", OfGit::State),
        ("packed-refs", OfGit::State),
        ("logs/HEAD", OfGit::State),
        ("config", OfGit::Rules),
        ("config.worktree", OfGit::Rules),
        ("info/exclude", OfGit::Rules),
    ];
    let inside = [&git.directory, &git.common].into_iter().find_map(|directory| path.strip_prefix(directory).ok())?;
    let found = names.into_iter().find(|(name, _)| inside == Path::new(name));
    Some(found.map_or(OfGit::Nothing, |(_, of)| of))
}

/// Returns the directories to watch for changes of Git's own files.
pub(super) fn git_directories(git: &GitPlaces) -> BTreeSet<PathBuf> {
    let mut directories = BTreeSet::from([git.directory.clone(), git.common.clone()]);
    directories.insert(git.directory.join("logs"));
    directories.insert(git.common.join("info"));
    let files = [git.branch.as_deref(), git.excludes.as_deref()];
    directories.extend(files.into_iter().flatten().filter_map(Path::parent).map(Path::to_owned));
    directories
}

#[cfg(test)]
mod tests {
    use ::notify::event::{CreateKind, MetadataKind, RemoveKind, RenameMode};

    use super::*;

    /// Takes in one event of a path in a worktree at `/w` whose ignore rules are at `conf/ignore`, too, and returns what it comes to.
    fn taken(kind: EventKind, path: &str) -> String {
        let git = GitPlaces {
            directory: PathBuf::from("/w/.git"),
            common: PathBuf::from("/w/.git"),
            branch: None,
            excludes: Some(PathBuf::from("/w/conf/ignore")),
        };
        let watched = BTreeSet::from([String::new(), "conf".to_owned()]);
        let around = Surroundings { root: Path::new("/w"), git: Some(&git), watched: &watched, is_directory: &|_| false };
        let mut pending = Pending::default();
        pending.take(&Event::new(kind).add_path(PathBuf::from(path)), &around);
        let said = [
            (pending.git, "git"),
            (pending.rules, "rules"),
            (pending.rescan, "rescan"),
            (pending.overflow, "overflow"),
            (pending.root, "root"),
        ];
        let mut said: Vec<&str> = said.into_iter().filter(|(is_so, _)| *is_so).map(|(_, name)| name).collect();
        said.extend(pending.directories.iter().map(|_| "directory"));
        said.extend(pending.paths.iter().map(RepoPath::as_str));
        assert_eq!(pending.due(Duration::ZERO).is_some(), !said.is_empty());
        said.join(" ")
    }

    #[test]
    fn what_an_event_comes_to() {
        let check = |kind, path, want| assert_eq!(taken(kind, path), want, "{kind:?} {path}");
        let created = EventKind::Create(CreateKind::File);
        let moved = EventKind::Modify(ModifyKind::Name(RenameMode::From));
        let removed = EventKind::Remove(RemoveKind::Folder);
        check(created, "/w/a.py", "a.py");
        check(created, "/elsewhere/a.py", "");
        // Another root may have the number of the one that went, and look the same.
        check(removed, "/w", "root");
        check(moved, "/w", "root");
        check(EventKind::Modify(ModifyKind::Metadata(MetadataKind::Any)), "/w", "");
        check(removed, "/w/conf", "rules directory conf");
        check(created, "/w/conf/ignore", "rules");
        check(created, "/w/conf/ignored", "conf/ignored");
        check(created, "/w/target", "target");
        check(created, "/w/target/x.rs", "");
        check(removed, "/w/target/debug/deps", "");
        check(created, "/w/.gitignore", "rules .gitignore");
        check(created, "/w/.git/index", "git");
        check(created, "/w/.git/index.lock", "");
        check(created, "/w/.git/info/exclude", "rules");
    }
}
