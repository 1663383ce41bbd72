//! The walk through the directories of a tree, by several threads, under the rules of what is ignored.
//!
//! Must not read the content of an indexed file. Invariant: links are never followed, and a directory that holds tracked files is never
//! passed over.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};

use gix::index::entry::Mode;

use crate::model::RepoPath;

use super::directory::{self, Errno, Handle, Kind, Names, Parent, Root};
use super::git::{IGNORE_FILE_LIMIT, Snapshot};
use super::ignored::{Patterns, Rules};
use super::inventory::{
    Candidate, Confines, Inventory, MODE_DIRECTORY, MODE_FILE, MODE_SUBMODULE, MODE_SYMLINK, Plan, regular_mode, representable,
};
use super::kept::{Listing, Record, Records, Sources};
use super::policy::Policy;
use super::scan::Leave;
use super::seal::{Identity, Round};
use super::{Omission, WorkspaceError, escape};

/// A directory still to be read.
struct Task {
    path: Arc<str>,
    /// The entries of the index below it.
    tracked: Range<usize>,
    rules: InForce,
    standing: Standing,
}

/// A directory below one that was read, and to be read itself.
#[derive(Clone, Debug)]
pub(super) struct Child {
    path: Arc<str>,
    tracked: Range<usize>,
    standing: Standing,
}

impl Child {
    fn task(&self, rules: &InForce) -> Task {
        let Self { path, tracked, standing } = self.clone();
        Task { path, tracked, rules: rules.clone(), standing }
    }
}

/// The rules in force in a directory.
#[derive(Clone, Debug)]
pub(super) struct InForce {
    /// As Git has them.
    all: Rules,
    /// Without those that stand inside a cache or build folder, which may ignore more there but have no say in what is kept of it.
    keeping: Rules,
}

impl InForce {
    /// Returns whether these are the very same rules, not only equal ones.
    pub(super) fn is(&self, other: &Self) -> bool {
        self.all.is(&other.all) && self.keeping.is(&other.keeping)
    }
}

/// Returns the rules at the root that come from no directory.
pub(super) fn outermost(git: &Snapshot) -> InForce {
    let rules = Rules::new(git.excludes.clone(), git.ignore_case);
    InForce { keeping: rules.clone(), all: rules }
}

/// What counts below a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
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

/// One walk through the directories of a tree.
pub(super) struct Walk<'a> {
    root: &'a Root,
    git: &'a Snapshot,
    policy: &'a Policy,
    /// Where the walk goes; everywhere when there are none.
    confines: Option<&'a Confines>,
    /// The listing before, made on the same grounds.
    last: Option<&'a Listing>,
    /// The seals of directories, where they may be used.
    round: Option<&'a Round<'a>>,
    leave: Leave<'a>,
    queue: Queue,
}

/// What a walk, or one thread of it, found.
#[derive(Default)]
pub(super) struct Found {
    /// What no record holds.
    inventory: Inventory,
    records: Vec<(Arc<str>, Arc<Record>)>,
    /// How many of them are those of the listing before.
    again: usize,
    /// Whether each directory has a record.
    recorded: bool,
}

impl Found {
    /// Returns whether this is what was found before.
    pub(super) fn repeats(&self, last: &Listing) -> bool {
        self.recorded && self.again == self.records.len() && self.again == last.records.len()
    }

    /// Returns the listing, unsorted, and the records if they say it all.
    pub(super) fn into_parts(self) -> (Inventory, Option<Records>) {
        let mut inventory = self.inventory;
        for (path, record) in &self.records {
            inventory.candidates.extend_from_slice(&record.candidates);
            inventory.unrepresentable.extend_from_slice(&record.unrepresentable);
            inventory.directories.push(path.clone());
        }
        (inventory, self.recorded.then(|| self.records.into_iter().collect()))
    }

    fn absorb(&mut self, other: Self) {
        self.inventory.candidates.extend(other.inventory.candidates);
        self.inventory.unrepresentable.extend(other.inventory.unrepresentable);
        self.inventory.directories.extend(other.inventory.directories);
        self.inventory.absent.extend(other.inventory.absent);
        self.records.extend(other.records);
        self.again += other.again;
        self.recorded &= other.recorded;
    }
}

/// What one thread keeps from directory to directory.
struct Hands {
    names: Names,
    path: Vec<u8>,
    /// Directories that it found and will read itself, unless another has nothing to do.
    own: Vec<Task>,
}

/// What one directory holds.
#[derive(Default)]
struct Findings {
    candidates: Vec<Candidate>,
    unrepresentable: Vec<String>,
    children: Vec<Child>,
    repositories: Vec<(Box<[u8]>, bool)>,
}

impl<'a> Walk<'a> {
    pub(super) fn new(root: &'a Root, git: &'a Snapshot, policy: &'a Policy, leave: Leave<'a>, threads: usize) -> Self {
        let queue = Queue { tasks: Mutex::new(Vec::new()), changed: Condvar::new(), idle: AtomicUsize::new(0), threads };
        Self { root, git, policy, confines: None, last: None, round: None, leave, queue }
    }

    /// Confines the walk.
    pub(super) fn within(self, confines: Option<&'a Confines>) -> Self {
        Self { confines, ..self }
    }

    /// Spares what a listing on the same grounds has, and with seals the directories themselves.
    pub(super) fn after(self, last: Option<&'a Listing>, round: Option<&'a Round<'a>>) -> Self {
        Self { last, round, ..self }
    }

    /// Walks under the rules at the root, and records what is found when asked to.
    pub(super) fn run(&self, rules: InForce, recorded: bool) -> Result<Found, WorkspaceError> {
        let first = Task { path: Arc::from(""), tracked: 0..self.git.tracked.len(), rules, standing: Standing::Open };
        self.queue.give(std::iter::once(first));
        std::thread::scope(|scope| {
            let others: Vec<_> = (1..self.queue.threads).map(|_| scope.spawn(|| self.run_thread(recorded))).collect();
            let own = self.run_thread(recorded);
            let others = others.into_iter().map(|thread| thread.join().expect("a walk never panics"));
            // All threads are through before one's failure is told.
            let others: Vec<_> = others.collect();
            let mut all = own?;
            for other in others {
                all.absorb(other?);
            }
            Ok(all)
        })
    }

    fn run_thread(&self, recorded: bool) -> Result<Found, WorkspaceError> {
        let mut found = Found { recorded, ..Found::default() };
        let mut hands = Hands { names: Names::new(), path: Vec::new(), own: Vec::new() };
        loop {
            let Some(task) = hands.own.pop().or_else(|| self.queue.take()) else { return Ok(found) };
            let read = self.leave.check().and_then(|()| self.read(&task, &mut hands, &mut found));
            if let Err(error) = read {
                self.queue.abandon();
                return Err(error);
            }
            if hands.own.len() > 1 && self.queue.idle.load(Ordering::Relaxed) > 0 {
                // The oldest are nearest to the root, and likely the largest.
                let given = hands.own.len() / 2;
                self.queue.give(hands.own.drain(..given));
            }
        }
    }

    fn read(&self, task: &Task, hands: &mut Hands, found: &mut Found) -> Result<(), WorkspaceError> {
        let Hands { names, path, own } = hands;
        let failed = |errno: Errno| WorkspaceError::Read { path: (*task.path).to_owned(), source: errno.into() };
        let last = self.last.and_then(|last| last.records.get(&task.path));
        let last = last.filter(|record| record.from.stand_as(task.standing, &task.tracked, &task.rules));
        if let Some(record) = last.filter(|record| self.is_sealed(task, record)) {
            let ignore = self.ignore_text(task, record.from.has_ignore, || {
                self.root
                    .open_file(&[task.path.as_bytes(), if task.path.is_empty() { b"" } else { b"/" }, b".gitignore"].concat())
            })?;
            if self.repeats(record, ignore.as_deref())? {
                found.take_again(task, record, own);
                return Ok(());
            }
        }
        let handle = match self.root.open_directory(task.path.as_bytes()) {
            Ok(handle) => handle,
            // Gone, or something else by now: then nothing stands below it.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) if !task.path.is_empty() => return found.leave_out(task),
            Err(Errno::ACCESS | Errno::PERM | Errno::NAMETOOLONG) if !task.path.is_empty() => {
                let unreadable = Plan::Omit(Omission::Unreadable, MODE_DIRECTORY);
                found.inventory.candidates.push(untracked(valid(&task.path), unreadable));
                return found.leave_out(task);
            }
            Err(errno) => return Err(failed(errno)),
        };
        let before = self.round.map(|_| directory::stat(&handle)).transpose().map_err(failed)?;
        match names.read(&handle) {
            Ok(()) => {}
            // Removed since it was opened.
            Err(Errno::NOENT) => return found.leave_out(task),
            Err(errno) => return Err(failed(errno)),
        }
        let seal = match (self.round, before) {
            (Some(round), Some(before)) => {
                let after = directory::stat(&handle).map_err(failed)?;
                round.sealable(&after).filter(|seal| round.identity(&before).as_ref() == Some(seal))
            }
            _ => None,
        };
        let has_ignore = names.iter().any(|(name, kind)| name == b".gitignore" && kind == Kind::File);
        let ignore = self.ignore_text(task, has_ignore, || directory::open_in(&handle, ".gitignore"))?;
        if let Some(record) = last.filter(|record| *record.from.names == *names.encoded())
            && self.repeats(record, ignore.as_deref())?
        {
            if let Some(seal) = seal {
                record.seal(seal);
            }
            found.take_again(task, record, own);
            return Ok(());
        }
        let rules = match task.standing {
            Standing::Open => {
                let all = self.rules_in(task, ignore.as_deref());
                InForce { keeping: all.clone(), all }
            }
            Standing::Cache => InForce { all: self.rules_in(task, ignore.as_deref()), keeping: task.rules.keeping.clone() },
            Standing::Ignored => task.rules.clone(),
        };
        path.clear();
        path.extend_from_slice(task.path.as_bytes());
        if !path.is_empty() {
            path.push(b'/');
        }
        let base = path.len();
        if let Some(confines) = self.confines {
            self.note_absent(confines, task, &path[..base], names, &rules, &mut found.inventory.absent);
        }
        let mut findings = Findings::default();
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
                self.meet_directory(task, path, name, &rules, &mut findings)?;
            } else {
                self.meet_other(task, path, name, kind, &rules, &mut findings);
            }
        }
        own.extend(findings.children.iter().map(|child| child.task(&rules)));
        if found.recorded {
            let from = Sources {
                standing: task.standing,
                tracked: task.tracked.clone(),
                around: task.rules.clone(),
                names: names.encoded().into(),
                ignore: ignore.map(Vec::into_boxed_slice),
                has_ignore,
            };
            found.records.push((task.path.clone(), Arc::new(findings.into_record(from, rules, seal))));
        } else {
            found.inventory.candidates.append(&mut findings.candidates);
            found.inventory.unrepresentable.append(&mut findings.unrepresentable);
            found.inventory.directories.push(task.path.clone());
        }
        Ok(())
    }

    /// Returns whether the seal of a directory stands: then its names are those that were read when it was sealed.
    fn is_sealed(&self, task: &Task, record: &Record) -> bool {
        let Some(round) = self.round else { return false };
        // What is above it was found to be a directory in this walk, so that no link led elsewhere then.
        let found = self.root.glimpse(task.path.as_bytes()).ok().and_then(|stat| round.identity(&stat));
        found.is_some_and(|identity| record.has_seal(&identity))
    }

    /// Returns whether the rest of what a directory's record was made from, beside its names and its place, is the same now.
    fn repeats(&self, record: &Record, ignore: Option<&[u8]>) -> Result<bool, WorkspaceError> {
        if record.from.ignore.as_deref() != ignore {
            return Ok(false);
        }
        for (path, was_repository) in &record.repositories {
            if self.is_repository(path)? != *was_repository {
                return Ok(false);
            }
        }
        Ok(true)
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
        absent: &mut Vec<RepoPath>,
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
                absent.push(wanted.clone());
            }
        }
    }

    /// Returns the text of the ignore rules that a directory has of its own.
    fn ignore_text(
        &self,
        task: &Task,
        has_file: bool,
        open: impl FnOnce() -> Result<Handle, Errno>,
    ) -> Result<Option<Vec<u8>>, WorkspaceError> {
        if task.standing == Standing::Ignored {
            return Ok(None);
        }
        // Git follows no link to ignore rules either.
        if has_file {
            return match open().and_then(|file| directory::read_small(&file, IGNORE_FILE_LIMIT)) {
                Ok(text) => Ok(text),
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::ACCESS | Errno::PERM) => Ok(None),
                Err(errno) => Err(WorkspaceError::Read { path: format!("{}/.gitignore", task.path), source: errno.into() }),
            };
        }
        let sparse = self.git.sparse_ignores.iter().find(|(directory, _)| directory == task.path.as_bytes());
        Ok(sparse.map(|(_, text)| text.clone()))
    }

    fn rules_in(&self, task: &Task, ignore: Option<&[u8]>) -> Rules {
        ignore.map_or_else(|| task.rules.all.clone(), |text| task.rules.all.within(&task.path, Patterns::parse(text)))
    }

    fn meet_directory(
        &self,
        task: &Task,
        path: &[u8],
        name: &[u8],
        rules: &InForce,
        found: &mut Findings,
    ) -> Result<(), WorkspaceError> {
        let base = path.len() - name.len();
        let tracked = self.git.tracked.range_below(task.tracked.clone(), base, name);
        let ignored = task.standing == Standing::Ignored || rules.all.ignores(path, true);
        if !tracked.is_empty() {
            let standing = if ignored { Standing::Ignored } else { Standing::Open };
            match representable(path) {
                Some(path) => found.children.push(Child { path: Arc::from(path.as_str()), tracked, standing }),
                None => found.unrepresentable.push(format!("{}/", escape(path))),
            }
            return Ok(());
        }
        if let Some(position) = self.git.tracked.position_in(task.tracked.clone(), base, name)
            && self.git.tracked.entry(position).mode == Mode::COMMIT
        {
            match representable(path) {
                Some(path) => found.candidates.push(untracked(path, Plan::Omit(Omission::Submodule, MODE_SUBMODULE))),
                None => found.unrepresentable.push(escape(path)),
            }
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
        let is_repository = self.is_repository(path)?;
        found.repositories.push((Box::from(path), is_repository));
        if is_repository {
            if task.standing == Standing::Open || !cache {
                found.candidates.push(untracked(valid, Plan::Omit(Omission::NestedRepository, MODE_DIRECTORY)));
            }
            return Ok(());
        }
        if cache && task.standing == Standing::Open {
            found.candidates.push(untracked(valid.clone(), Plan::Omit(Omission::CacheDirectory, MODE_DIRECTORY)));
        }
        // Only a rule that keeps something can bring back a part of a cache folder.
        if !cache || rules.keeping.keep_some() {
            let standing = if cache { Standing::Cache } else { Standing::Open };
            found.children.push(Child { path: Arc::from(valid.as_str()), tracked, standing });
        }
        Ok(())
    }

    fn meet_other(&self, task: &Task, path: &[u8], name: &[u8], kind: Kind, rules: &InForce, found: &mut Findings) {
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
                .map(|found| found.as_ref().map(directory::kind))
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

impl Found {
    /// Notes that a directory came to what it came to before.
    fn take_again(&mut self, task: &Task, record: &Arc<Record>, own: &mut Vec<Task>) {
        own.extend(record.children.iter().map(|child| child.task(&record.rules)));
        self.records.push((task.path.clone(), record.clone()));
        self.again += 1;
    }

    /// Notes that a directory could not be read, and has no record.
    fn leave_out(&mut self, task: &Task) -> Result<(), WorkspaceError> {
        self.inventory.directories.push(task.path.clone());
        self.recorded = false;
        Ok(())
    }
}

impl Findings {
    fn into_record(self, from: Sources, rules: InForce, seal: Option<Identity>) -> Record {
        let Self { candidates, unrepresentable, children, repositories } = self;
        Record { from, rules, candidates, unrepresentable, children, repositories, seal: Mutex::new(seal) }
    }
}

fn untracked(path: RepoPath, plan: Plan) -> Candidate {
    Candidate { path, position: None, tracked_mode: None, plan }
}

fn valid(path: &str) -> RepoPath {
    RepoPath::parse(path).expect("only representable directories are walked")
}
