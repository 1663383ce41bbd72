//! Which paths exist for a scope: what Git tracks, and what it neither tracks nor ignores, as `git ls-files -co --exclude-standard` has it.
//!
//! Must not read the content of an indexed file. Invariant: a path is listed once, links are never followed, and a directory that holds
//! tracked files is never passed over.

use std::ops::Range;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex};

use gix::index::entry::Mode;
use rustix::io::Errno;

use crate::model::RepoPath;

use super::directory::{self, Kind, Names, Parent, Root};
use super::git::{IGNORE_FILE_LIMIT, Snapshot};
use super::ignored::{Patterns, Rules};
use super::policy::Policy;
use super::scan::Deadline;
use super::{Omission, WorkspaceError, escape};

/// Modes of what is listed without being read.
pub(super) const MODE_FILE: u32 = 0o100_644;
pub(super) const MODE_EXECUTABLE: u32 = 0o100_755;
const MODE_SYMLINK: u32 = 0o120_000;
const MODE_SUBMODULE: u32 = 0o160_000;
const MODE_DIRECTORY: u32 = 0o040_000;

/// One listed path and what a scan has to do with it.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub(super) path: RepoPath,
    /// Its position in the index, when Git tracks it.
    position: Option<usize>,
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
    pub(super) directories: Vec<String>,
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
    fn below(&self, directory: &[u8]) -> &[RepoPath] {
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
    fn lead_into(&self, path: &[u8]) -> bool {
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

    fn absorb(&mut self, other: Self) {
        self.candidates.extend(other.candidates);
        self.unrepresentable.extend(other.unrepresentable);
        self.directories.extend(other.directories);
        self.absent.extend(other.absent);
    }
}

/// Lists a scope with `threads` threads, or the part of it within `confines`.
pub(super) fn list(
    root: &Root,
    git: &Snapshot,
    policy: &Policy,
    confines: Option<&Confines>,
    deadline: Deadline,
    threads: usize,
) -> Result<Inventory, WorkspaceError> {
    let mut inventory = if git.state.present && !policy.include_untracked() {
        list_tracked(root, git, policy, confines)?
    } else {
        walk(root, git, policy, confines, deadline, threads)?
    };
    inventory.sort();
    Ok(inventory)
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

fn representable(path: &[u8]) -> Option<RepoPath> {
    std::str::from_utf8(path).ok().and_then(|text| RepoPath::parse(text).ok())
}

fn regular_mode(mode: Mode) -> Option<u32> {
    match mode {
        Mode::FILE => Some(MODE_FILE),
        Mode::FILE_EXECUTABLE => Some(MODE_EXECUTABLE),
        _ => None,
    }
}

/// A directory still to be read.
struct Task {
    path: String,
    /// The entries of the index below it.
    tracked: Range<usize>,
    rules: InForce,
    standing: Standing,
}

/// The rules in force in a directory.
#[derive(Clone)]
struct InForce {
    /// As Git has them.
    all: Rules,
    /// Without those that stand inside a cache or build folder, which may ignore more there but have no say in what is kept of it.
    keeping: Rules,
}

/// What counts below a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// All that is not ignored.
    Open,
    /// What a rule keeps by name: it is a cache or build folder, where the rest is left out.
    Cache,
    /// What Git tracks: the directory is ignored.
    Ignored,
}

/// The directories still to be read, shared by the threads of a walk.
struct Queue {
    tasks: Mutex<Vec<Task>>,
    changed: Condvar,
    /// Threads without work. Read without the lock to decide whether giving work away pays.
    idle: AtomicUsize,
    threads: usize,
}

impl Queue {
    /// Returns the next task, waiting while another thread may still find some; `None` when all are done.
    fn take(&self) -> Option<Task> {
        let mut tasks = self.tasks.lock().expect("no thread panics while it holds the queue");
        if let Some(task) = tasks.pop() {
            return Some(task);
        }
        if self.idle.fetch_add(1, Ordering::Relaxed) + 1 >= self.threads {
            self.changed.notify_all();
            return None;
        }
        loop {
            tasks = self.changed.wait(tasks).expect("no thread panics while it holds the queue");
            if let Some(task) = tasks.pop() {
                self.idle.fetch_sub(1, Ordering::Relaxed);
                return Some(task);
            }
            if self.idle.load(Ordering::Relaxed) >= self.threads {
                return None;
            }
        }
    }

    fn give(&self, given: impl Iterator<Item = Task>) {
        self.tasks.lock().expect("no thread panics while it holds the queue").extend(given);
        self.changed.notify_one();
    }

    /// Lets waiting threads end although work is left.
    fn abandon(&self) {
        let mut tasks = self.tasks.lock().expect("no thread panics while it holds the queue");
        tasks.clear();
        self.idle.fetch_add(self.threads, Ordering::Relaxed);
        self.changed.notify_all();
    }
}

struct Walk<'a> {
    root: &'a Root,
    git: &'a Snapshot,
    policy: &'a Policy,
    confines: Option<&'a Confines>,
    deadline: Deadline,
    queue: Queue,
}

fn walk(
    root: &Root,
    git: &Snapshot,
    policy: &Policy,
    confines: Option<&Confines>,
    deadline: Deadline,
    threads: usize,
) -> Result<Inventory, WorkspaceError> {
    let rules = Rules::new(git.excludes.clone(), git.ignore_case);
    let rules = InForce { all: rules.clone(), keeping: rules };
    let first = Task { path: String::new(), tracked: 0..git.tracked.len(), rules, standing: Standing::Open };
    let walk = Walk {
        root,
        git,
        policy,
        confines,
        deadline,
        queue: Queue { tasks: Mutex::new(vec![first]), changed: Condvar::new(), idle: AtomicUsize::new(0), threads },
    };
    let mut inventory = Inventory::default();
    std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(|| walk.run())).collect();
        let mut results = vec![walk.run()];
        results.extend(others.into_iter().map(|thread| thread.join().expect("a walk never panics")));
        for result in results {
            inventory.absorb(result?);
        }
        Ok(())
    })?;
    Ok(inventory)
}

impl Walk<'_> {
    fn run(&self) -> Result<Inventory, WorkspaceError> {
        let mut found = Inventory::default();
        let mut names = Names::new();
        let mut path = Vec::new();
        let mut own: Vec<Task> = Vec::new();
        loop {
            let Some(task) = own.pop().or_else(|| self.queue.take()) else { return Ok(found) };
            let read = self.deadline.check().and_then(|()| self.read(&task, &mut names, &mut path, &mut own, &mut found));
            if let Err(error) = read {
                self.queue.abandon();
                return Err(error);
            }
            found.directories.push(task.path);
            if own.len() > 1 && self.queue.idle.load(Ordering::Relaxed) > 0 {
                // The oldest are nearest to the root, and likely the largest.
                let given = own.len() / 2;
                self.queue.give(own.drain(..given));
            }
        }
    }

    fn read(
        &self,
        task: &Task,
        names: &mut Names,
        path: &mut Vec<u8>,
        own: &mut Vec<Task>,
        found: &mut Inventory,
    ) -> Result<(), WorkspaceError> {
        let handle = match self.root.open_directory(task.path.as_bytes()) {
            Ok(handle) => handle,
            // Gone, or something else by now: then nothing stands below it.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) if !task.path.is_empty() => return Ok(()),
            Err(Errno::ACCESS | Errno::PERM | Errno::NAMETOOLONG) if !task.path.is_empty() => {
                found.omit(&task.path, Omission::Unreadable, MODE_DIRECTORY);
                return Ok(());
            }
            Err(errno) => return Err(WorkspaceError::Read { path: task.path.clone(), source: errno.into() }),
        };
        match names.read(handle.as_fd()) {
            Ok(()) => {}
            // Removed since it was opened.
            Err(Errno::NOENT) => return Ok(()),
            Err(errno) => return Err(WorkspaceError::Read { path: task.path.clone(), source: errno.into() }),
        }
        let rules = match task.standing {
            Standing::Open => {
                let all = self.rules_in(task, &handle, names)?;
                InForce { keeping: all.clone(), all }
            }
            Standing::Cache => InForce { all: self.rules_in(task, &handle, names)?, keeping: task.rules.keeping.clone() },
            Standing::Ignored => task.rules.clone(),
        };
        path.clear();
        path.extend_from_slice(task.path.as_bytes());
        if !path.is_empty() {
            path.push(b'/');
        }
        let base = path.len();
        if let Some(confines) = self.confines {
            self.note_absent(confines, task, &path[..base], names, &rules, found);
        }
        for (name, kind) in names.iter() {
            path.truncate(base);
            path.extend_from_slice(name);
            let outside = |confines: &Confines| match kind {
                Kind::Directory => !confines.lead_into(path),
                _ => !confines.hold(path),
            };
            if self.confines.is_some_and(outside) {
                continue;
            }
            if kind == Kind::Directory {
                self.meet_directory(task, path, name, &rules, own, found)?;
            } else {
                self.meet_other(task, path, name, kind, &rules, found);
            }
        }
        Ok(())
    }

    /// Notes which of the paths in question have nothing at the next part of their way, unless the rules would leave out what could be
    /// there. `directory` ends with a slash.
    fn note_absent(
        &self,
        confines: &Confines,
        task: &Task,
        directory: &[u8],
        names: &Names,
        rules: &InForce,
        found: &mut Inventory,
    ) {
        let base = directory.len();
        for wanted in confines.below(directory) {
            let rest = &wanted.as_str().as_bytes()[base..];
            let (name, inner) = match rest.iter().position(|&byte| byte == b'/') {
                Some(slash) => (&rest[..slash], true),
                None => (rest, false),
            };
            if names.iter().any(|(present, kind)| present == name && (kind == Kind::Directory || !inner)) {
                continue;
            }
            let path = &wanted.as_str().as_bytes()[..base + name.len()];
            let tracked = self.git.tracked.position_in(task.tracked.clone(), base, rest).is_some()
                || !self.git.tracked.range_below(task.tracked.clone(), base, rest).is_empty();
            let left_out = || match task.standing {
                // What is gone may have been a directory, which rules for directories alone left out.
                Standing::Open => rules.all.ignores(path, inner),
                Standing::Cache => !rules.keeping.keeps(path, inner),
                Standing::Ignored => true,
            };
            if tracked || !left_out() {
                found.absent.push(wanted.clone());
            }
        }
    }

    fn rules_in(&self, task: &Task, handle: &impl AsFd, names: &Names) -> Result<Rules, WorkspaceError> {
        use rustix::fs::{Mode, OFlags};
        // Git follows no link to ignore rules either.
        if names.iter().any(|(name, kind)| name == b".gitignore" && kind == Kind::File) {
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
            let text = rustix::fs::openat(handle, ".gitignore", flags, Mode::empty())
                .and_then(|file| directory::read_small(&file, IGNORE_FILE_LIMIT));
            return match text {
                Ok(text) => Ok(task.rules.all.within(&task.path, Patterns::parse(&text.unwrap_or_default()))),
                Err(Errno::NOENT | Errno::LOOP | Errno::ACCESS | Errno::PERM) => Ok(task.rules.all.clone()),
                Err(errno) => Err(WorkspaceError::Read { path: format!("{}/.gitignore", task.path), source: errno.into() }),
            };
        }
        let sparse = self.git.sparse_ignores.iter().find(|(directory, _)| directory == task.path.as_bytes());
        Ok(sparse.map_or_else(|| task.rules.all.clone(), |(_, text)| task.rules.all.within(&task.path, Patterns::parse(text))))
    }

    fn meet_directory(
        &self,
        task: &Task,
        path: &[u8],
        name: &[u8],
        rules: &InForce,
        own: &mut Vec<Task>,
        found: &mut Inventory,
    ) -> Result<(), WorkspaceError> {
        let base = path.len() - name.len();
        let tracked = self.git.tracked.range_below(task.tracked.clone(), base, name);
        let ignored = task.standing == Standing::Ignored || rules.all.ignores(path, true);
        if !tracked.is_empty() {
            let standing = if ignored { Standing::Ignored } else { Standing::Open };
            match representable(path) {
                Some(path) => own.push(Task { path: path.as_str().to_owned(), tracked, rules: rules.clone(), standing }),
                None => found.unrepresentable.push(format!("{}/", escape(path))),
            }
            return Ok(());
        }
        if let Some(position) = self.git.tracked.position_in(task.tracked.clone(), base, name)
            && self.git.tracked.entry(position).mode == Mode::COMMIT
        {
            found.omit_bytes(path, Omission::Submodule, MODE_SUBMODULE);
            return Ok(());
        }
        if ignored {
            return Ok(());
        }
        let named_cache = std::str::from_utf8(name).is_ok_and(Policy::is_cache_directory);
        let cache = (named_cache || task.standing == Standing::Cache) && !rules.keeping.keeps(path, true);
        let Some(valid) = representable(path) else {
            if task.standing == Standing::Open || !cache {
                found.unrepresentable.push(format!("{}/", escape(path)));
            }
            return Ok(());
        };
        if self.is_repository(path)? {
            if task.standing == Standing::Open || !cache {
                found.omit(valid.as_str(), Omission::NestedRepository, MODE_DIRECTORY);
            }
            return Ok(());
        }
        if cache && task.standing == Standing::Open {
            found.omit(valid.as_str(), Omission::CacheDirectory, MODE_DIRECTORY);
        }
        // Only a rule that keeps something can bring back a part of a cache folder.
        if !cache || rules.keeping.keep_some() {
            let standing = if cache { Standing::Cache } else { Standing::Open };
            own.push(Task { path: valid.as_str().to_owned(), tracked, rules: rules.clone(), standing });
        }
        Ok(())
    }

    fn meet_other(&self, task: &Task, path: &[u8], name: &[u8], kind: Kind, rules: &InForce, found: &mut Inventory) {
        let position = self.git.tracked.position_in(task.tracked.clone(), path.len() - name.len(), name);
        let tracked = position.map(|position| self.git.tracked.entry(position).mode);
        let counts = || match task.standing {
            Standing::Open => !rules.all.ignores(path, false),
            Standing::Cache => rules.keeping.keeps(path, false) && !rules.all.ignores(path, false),
            Standing::Ignored => false,
        };
        if tracked.is_none() && (kind == Kind::Other || !counts()) {
            return;
        }
        let Some(path) = representable(path) else {
            found.unrepresentable.push(escape(path));
            return;
        };
        let tracked_mode = tracked.and_then(regular_mode);
        let plan = match kind {
            Kind::Symlink => Plan::Omit(Omission::Symlink, MODE_SYMLINK),
            Kind::Other => Plan::Omit(Omission::NotARegularFile, tracked_mode.unwrap_or(MODE_FILE)),
            Kind::File | Kind::Directory => match self.policy.omits(&path) {
                Some(reason) => Plan::Omit(reason, tracked_mode.unwrap_or(MODE_FILE)),
                None => Plan::Read,
            },
        };
        found.candidates.push(Candidate { path, position, tracked_mode, plan });
    }

    /// Returns whether an untracked directory is a repository or worktree of its own. What its `.git` points to is not looked at.
    fn is_repository(&self, path: &[u8]) -> Result<bool, WorkspaceError> {
        let stat = |inner: &str| {
            self.root
                .stat(&[path, inner.as_bytes()].concat(), &mut Parent::default())
                .map(|found| found.map(|stat| Kind::of(rustix::fs::FileType::from_raw_mode(stat.st_mode))))
                .or_else(|errno| match errno {
                    Errno::ACCESS | Errno::PERM | Errno::NAMETOOLONG => Ok(None),
                    errno => Err(WorkspaceError::Read { path: escape(path), source: errno.into() }),
                })
        };
        Ok(match stat("/.git")? {
            Some(Kind::File) => true,
            // Git passes over a directory of that name that is no repository.
            Some(Kind::Directory) => {
                stat("/.git/HEAD")?.is_some()
                    && stat("/.git/objects")? == Some(Kind::Directory)
                    && stat("/.git/refs")? == Some(Kind::Directory)
            }
            _ => false,
        })
    }
}

impl Inventory {
    fn omit(&mut self, path: &str, reason: Omission, mode: u32) {
        let path = RepoPath::parse(path).expect("only representable directories are walked");
        self.candidates.push(Candidate { path, position: None, tracked_mode: None, plan: Plan::Omit(reason, mode) });
    }

    fn omit_bytes(&mut self, path: &[u8], reason: Omission, mode: u32) {
        match representable(path) {
            Some(path) => {
                self.candidates.push(Candidate { path, position: None, tracked_mode: None, plan: Plan::Omit(reason, mode) })
            }
            None => self.unrepresentable.push(escape(path)),
        }
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
