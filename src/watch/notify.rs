//! The watcher: the system's events of the directories that a scope is made of, gathered until it is quiet, and told as hints.
//!
//! Must not read a file of the worktree but ignore rules. Invariant: before a hint is told, every directory that the scope has at that
//! moment is watched; so whoever looks after the hint sees what happened before, and what happens later gives another one.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use ::notify::event::{Event, EventKindMask};
use ::notify::{Config, ErrorKind, PathOp, RecommendedWatcher, RecursiveMode, WatchPathConfig, Watcher as _};

use crate::config::Watch;
use crate::model::RepoPath;
use crate::workspace::{self, GitPlaces, GitState, Glance, Policy, RootIdentity, WorkspaceError, Worktree};

use super::pending::{Pending, Surroundings, git_directories};
use super::{Health, Hint, Sink, WatchError, filesystem, until};

/// How often it is looked whether the root is still the directory that is watched.
const BEAT: Duration = Duration::from_secs(1);
/// How long a hint waits for Git to end what holds the lock of the index. A lock that a killed Git left is no reason to wait longer.
const LOCK_PATIENCE: Duration = Duration::from_secs(if cfg!(test) { 3 } else { 10 });
/// How soon the lock is looked at again.
const LOCK_PAUSE: Duration = Duration::from_millis(20);
/// How often the system is asked whether it can tell by now.
const RETRY: Duration = Duration::from_secs(600);
/// Looking at everything from time to time may take one part in so many of a processor's time.
const POLL_SHARE: u32 = 50;
/// Directories may be made faster than they are watched, but not for long; those that are made in watched ones give events.
const MAX_ROUNDS: usize = 32;

/// What one watch of the system reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// The names in one directory.
    Directory,
    /// All below a directory. Where it is so by nature, few watches are to be had (macOS), or each keeps its directory open, which then
    /// cannot be removed (Windows).
    Tree,
}

impl Reach {
    pub(super) const OF_SYSTEM: Self = if cfg!(any(target_os = "macos", windows)) { Self::Tree } else { Self::Directory };
}

/// What the thread of a watcher is told.
enum Message {
    Event(::notify::Result<Event>),
    /// The thread that listens to the system for the subscription of this number has ended.
    Ended(u64),
    Stop,
}

/// Watches one worktree for as long as it lives.
#[derive(Debug)]
pub struct Watcher {
    sender: Sender<Message>,
    thread: Option<JoinHandle<()>>,
    health: Arc<Mutex<Health>>,
}

impl Watcher {
    /// Begins to watch. What changes after this returned is told to `sink`, sooner or later.
    ///
    /// # Errors
    /// When no thread can be started. A worktree that cannot be watched is no error but shows in [`Self::health`].
    pub fn start(worktree: &Worktree, policy: &Policy, settings: &Watch, sink: Sink) -> Result<Self, WatchError> {
        Self::start_with(Reach::OF_SYSTEM, worktree, policy, settings, sink)
    }

    pub(super) fn start_with(
        reach: Reach,
        worktree: &Worktree,
        policy: &Policy,
        settings: &Watch,
        sink: Sink,
    ) -> Result<Self, WatchError> {
        let (sender, messages) = channel();
        let health = Arc::new(Mutex::new(Health::Ok));
        let mut follower = Follower {
            reach,
            worktree: worktree.clone(),
            policy: policy.clone(),
            settings: settings.clone(),
            sink,
            health: Arc::clone(&health),
            sender: sender.clone(),
            mode: Mode::Lost,
            subscriptions: 0,
            pending: Pending::default(),
            beat: Instant::now() + BEAT,
            seen: Health::Ok,
            left_lock: None,
        };
        let (ready, begun) = channel();
        let run = move || {
            let mut outcome = catch_unwind(AssertUnwindSafe(|| follower.subscribe()));
            // Whoever waits for it may have been killed.
            let _ = ready.send(());
            loop {
                if outcome.is_err() {
                    follower.begin_again();
                }
                outcome = catch_unwind(AssertUnwindSafe(|| follower.run(&messages)));
                if outcome.is_ok() {
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new().name("watch".to_owned()).spawn(run);
        let thread = thread.map_err(|source| WatchError::Thread { source })?;
        // An error means that the thread ended, which the first look at its health shows.
        let _ = begun.recv();
        Ok(Self { sender, thread: Some(thread), health })
    }

    /// Returns whether the watcher sees what happens.
    pub fn health(&self) -> Health {
        if self.thread.as_ref().is_none_or(JoinHandle::is_finished) {
            return filesystem::of_ended();
        }
        self.health.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Lets an event happen.
    #[cfg(test)]
    pub(super) fn inject(&self, event: ::notify::Result<Event>) {
        self.sender.send(Message::Event(event)).expect("the thread lives as long as this");
    }

    /// Lets the thread end that listens to the system for a subscription.
    #[cfg(test)]
    pub(super) fn end(&self, subscription: u64) {
        self.sender.send(Message::Ended(subscription)).expect("the thread lives as long as this");
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        let _ = self.sender.send(Message::Stop);
        if let Some(thread) = self.thread.take() {
            // One that panicked has nothing more to tell.
            let _ = thread.join();
        }
    }
}

/// How changes are noticed.
enum Mode {
    /// The system tells.
    Events(Box<Subscription>),
    /// Everything is looked at from time to time, from outside.
    Polled {
        last: Option<Glance>,
        due: Instant,
        /// When the system is asked again whether it can tell by now; `None` where it never can.
        retry: Option<Instant>,
    },
    /// There is nothing to look at, or it cannot be listed; tried again at each beat.
    Lost,
}

/// What the system was asked to tell of.
struct Subscription {
    number: u64,
    notifier: RecommendedWatcher,
    /// What is watched with all below it, where the system watches so: the root.
    tree: Option<PathBuf>,
    /// The directory that stood at the root.
    root: RootIdentity,
    /// Directories of the worktree, also those that could not be watched.
    watched: BTreeSet<String>,
    git: Option<GitPlaces>,
    git_watched: BTreeSet<PathBuf>,
    /// What Git said of the worktree last; `None` when it could not be read.
    git_state: Option<GitState>,
}

/// Why the system does not tell of changes.
enum Obstacle {
    MissingRoot,
    Silent(String),
    TooMany(usize),
    NoWatcher(::notify::Error),
    Unlisted(WorkspaceError),
}

impl From<WorkspaceError> for Obstacle {
    fn from(error: WorkspaceError) -> Self {
        Self::Unlisted(error)
    }
}

/// Why directories are not watched.
enum Refusal {
    TooMany,
    /// Nobody listens to the system any more.
    Ended(::notify::Error),
}

impl Refusal {
    /// Says so of the wish to watch so many directories.
    fn of(self, directories: usize) -> Obstacle {
        match self {
            Self::TooMany => Obstacle::TooMany(directories),
            Self::Ended(error) => Obstacle::NoWatcher(error),
        }
    }
}

/// Tells that the thread which listens to the system let go of its listener.
struct Listener {
    subscription: u64,
    sender: Sender<Message>,
}

impl Drop for Listener {
    fn drop(&mut self) {
        let _ = self.sender.send(Message::Ended(self.subscription));
    }
}

/// Which file is the lock of an index, and since when.
type LockIdentity = (u64, i64, i64);

/// The thread of a watcher.
struct Follower {
    reach: Reach,
    worktree: Worktree,
    policy: Policy,
    settings: Watch,
    sink: Sink,
    health: Arc<Mutex<Health>>,
    sender: Sender<Message>,
    mode: Mode,
    /// How many there were.
    subscriptions: u64,
    pending: Pending,
    beat: Instant,
    /// How well changes are seen, but for a lock that Git left.
    seen: Health,
    /// A lock of the index that nobody takes away: not waited for any more.
    left_lock: Option<LockIdentity>,
}

impl Follower {
    fn run(&mut self, messages: &Receiver<Message>) {
        loop {
            match messages.recv_timeout(self.patience()) {
                Ok(Message::Stop) | Err(RecvTimeoutError::Disconnected) => return,
                Ok(message) => self.hear(message),
                Err(RecvTimeoutError::Timeout) => {}
            }
            // All that is there is taken before anything is done about it.
            loop {
                match messages.try_recv() {
                    Ok(Message::Stop) => return,
                    Ok(message) => self.hear(message),
                    Err(_) => break,
                }
            }
            let now = Instant::now();
            if self.pending.due(self.settings.quiet()).is_some_and(|due| due <= now) && !self.waits_for_git() {
                self.settle();
            }
            if self.beat <= now {
                self.beat = now + BEAT;
                self.look_at_root();
                self.look_at_lock();
            }
            if matches!(&self.mode, Mode::Polled { due, .. } if *due <= now) {
                self.poll();
            }
        }
    }

    /// Returns how long there is nothing to do unless something happens.
    fn patience(&self) -> Duration {
        let settle = self.pending.due(self.settings.quiet());
        let settle = settle.map(|due| if self.held_lock().is_some() { Instant::now() + LOCK_PAUSE } else { due });
        let poll = match &self.mode {
            Mode::Polled { due, .. } => Some(*due),
            Mode::Events(_) | Mode::Lost => None,
        };
        let next = [settle, poll, Some(self.beat)].into_iter().flatten().min();
        until(next).unwrap_or(BEAT)
    }

    /// Returns the lock under which Git is at work on the index, so that what there is to see now is half of it.
    fn held_lock(&self) -> Option<LockIdentity> {
        self.lock().filter(|lock| self.left_lock != Some(*lock))
    }

    fn lock(&self) -> Option<LockIdentity> {
        let Mode::Events(subscription) = &self.mode else { return None };
        let found = subscription.git.as_ref()?.directory.join("index.lock").symlink_metadata().ok()?;
        Some((found.ino(), found.ctime(), found.ctime_nsec()))
    }

    /// Returns whether to wait for Git. A lock that stays for too long is one that a killed Git left.
    fn waits_for_git(&mut self) -> bool {
        let Some(lock) = self.held_lock() else { return false };
        let waits = self.pending.first().is_some_and(|first| first.elapsed() < LOCK_PATIENCE);
        if !waits {
            self.left_lock = Some(lock);
            self.show_health();
        }
        waits
    }

    /// Forgets a lock that Git left once somebody took it away.
    fn look_at_lock(&mut self) {
        if self.left_lock.is_some() && self.lock() != self.left_lock {
            self.left_lock = None;
            self.show_health();
        }
    }

    fn show_health(&self) {
        let health = match (&self.seen, self.left_lock) {
            (Health::Ok, Some(_)) => filesystem::of_left_lock(),
            (seen, _) => seen.clone(),
        };
        tracing::debug!(%health, "watching");
        *self.health.lock().unwrap_or_else(PoisonError::into_inner) = health;
    }

    fn hear(&mut self, message: Message) {
        match message {
            Message::Event(event) => self.take(event),
            Message::Ended(number) => {
                if matches!(&self.mode, Mode::Events(subscription) if subscription.number == number) {
                    tracing::debug!("nobody listens to the system any more");
                    self.mode = Mode::Lost;
                    self.settle_on(Err(Obstacle::NoWatcher(::notify::Error::generic("its thread ended"))));
                    (self.sink)(Hint::Rescan);
                }
            }
            // Whoever receives messages looks for it.
            Message::Stop => {}
        }
    }

    fn take(&mut self, event: ::notify::Result<Event>) {
        let event = match event {
            Ok(event) => event,
            Err(error) => {
                tracing::debug!(%error, "the system could not tell of a change");
                let mut lost = Event::new(::notify::EventKind::Other);
                lost = lost.set_flag(::notify::event::Flag::Rescan);
                lost
            }
        };
        // Of a subscription that ended: what follows it looks at everything.
        let Mode::Events(subscription) = &self.mode else { return };
        let Subscription { git, watched, .. } = subscription.as_ref();
        let is_directory = |path: &RepoPath| self.worktree.is_directory(path);
        let around = Surroundings { root: self.worktree.root(), git: git.as_ref(), watched, is_directory: &is_directory };
        self.pending.take(&event, &around);
    }

    /// Goes on after a defect, which costs the hints of a moment: at the next beat everything is looked at.
    fn begin_again(&mut self) {
        (self.mode, self.pending) = (Mode::Lost, Pending::default());
        self.beat = Instant::now() + BEAT;
        self.seen = filesystem::of_defect();
        self.show_health();
    }

    /// Begins anew to be told, or finds another way to notice changes.
    fn subscribe(&mut self) {
        // The watches of the one before are free before others are asked for.
        self.mode = Mode::Lost;
        self.subscriptions += 1;
        let outcome = self.subscription();
        self.settle_on(outcome.map(|subscription| Mode::Events(Box::new(subscription))));
    }

    /// Goes on as it was found out that one can.
    fn settle_on(&mut self, outcome: Result<Mode, Obstacle>) {
        let (mode, health) = match outcome {
            Ok(mode) => (mode, Health::Ok),
            Err(Obstacle::MissingRoot) => (Mode::Lost, filesystem::of_missing_root()),
            Err(Obstacle::Unlisted(error)) => (Mode::Lost, filesystem::of_unlisted(&error)),
            Err(Obstacle::Silent(name)) => (self.polled(None), filesystem::of_silent(&name)),
            Err(Obstacle::TooMany(directories)) => (self.polled(Some(RETRY)), filesystem::of_too_many(directories)),
            Err(Obstacle::NoWatcher(error)) => (self.polled(Some(RETRY)), filesystem::of_no_watcher(&error)),
        };
        (self.mode, self.seen) = (mode, health);
        // What came before is no news for whoever looks at everything now.
        self.pending = Pending::default();
        self.left_lock = self.left_lock.filter(|left| self.lock() == Some(*left));
        self.show_health();
    }

    fn polled(&self, retry: Option<Duration>) -> Mode {
        let begun = Instant::now();
        let last = workspace::glance(&self.worktree, &self.policy).ok();
        Mode::Polled { last, due: self.next_poll(begun), retry: retry.map(|pause| begun + pause) }
    }

    fn next_poll(&self, begun: Instant) -> Instant {
        Instant::now() + self.settings.poll().max(begun.elapsed() * POLL_SHARE)
    }

    fn subscription(&self) -> Result<Subscription, Obstacle> {
        let root = self.worktree.identity().ok_or(Obstacle::MissingRoot)?;
        if let Some(name) = filesystem::silent(self.worktree.root()) {
            return Err(Obstacle::Silent(name));
        }
        let number = self.subscriptions;
        let listener = Listener { subscription: number, sender: self.sender.clone() };
        let handler = move |event| {
            // The thread that listens ends last.
            let _ = listener.sender.send(Message::Event(event));
        };
        // Opening and reading files is no event: this process reads each of them often.
        let config = Config::default().with_event_kinds(EventKindMask::CORE).with_follow_symlinks(false);
        let notifier = RecommendedWatcher::new(handler, config).map_err(Obstacle::NoWatcher)?;
        let mut subscription = Subscription {
            number,
            notifier,
            tree: (self.reach == Reach::Tree).then(|| self.worktree.root().to_owned()),
            root,
            watched: BTreeSet::new(),
            git: None,
            git_watched: BTreeSet::new(),
            git_state: None,
        };
        if let Some(tree) = subscription.tree.clone() {
            subscription.ask(vec![tree], RecursiveMode::Recursive).map_err(|refusal| refusal.of(1))?;
        }
        subscription.follow_git(&self.worktree)?;
        // Before the directories are listed by it, so that one which is newer is found to differ.
        subscription.git_state = self.worktree.git_state().ok();
        self.extend(&mut subscription, None)?;
        Ok(subscription)
    }

    /// Watches the directories that the scope has now, at and below these paths or altogether, and no others.
    fn extend(&self, subscription: &mut Subscription, below: Option<&[RepoPath]>) -> Result<(), Obstacle> {
        let root = self.worktree.root();
        for round in 0..MAX_ROUNDS {
            let found = workspace::directories(&self.worktree, &self.policy, below.map(<[RepoPath]>::to_vec))?;
            if round == 0 && below.is_none() {
                subscription.forget(root, |directory| !found.contains(directory)).map_err(|refusal| refusal.of(found.len()))?;
            }
            let new: Vec<String> = found.difference(&subscription.watched).cloned().collect();
            if new.is_empty() {
                return Ok(());
            }
            let directories = subscription.watched.len() + new.len();
            if directories as u64 > self.settings.max_directories {
                return Err(Obstacle::TooMany(directories));
            }
            let places = new.iter().map(|directory| root.join(directory)).collect();
            subscription.watch(places).map_err(|refusal| refusal.of(directories))?;
            subscription.watched.extend(new);
            // What was made in one of them before it was watched gave no event, so it is listed again.
        }
        Ok(())
    }

    /// Tells what the events since the last hint come to.
    fn settle(&mut self) {
        let pending = std::mem::take(&mut self.pending);
        if pending.overflow || pending.root {
            tracing::debug!("events are lost, or the root moved: everything is looked at again");
            self.subscribe();
            return (self.sink)(Hint::Rescan);
        }
        let mut subscription = match std::mem::replace(&mut self.mode, Mode::Lost) {
            Mode::Events(subscription) => subscription,
            other => return self.mode = other,
        };
        let hint = self.digest(&mut subscription, pending);
        match hint {
            Ok(hint) => {
                self.mode = Mode::Events(subscription);
                if let Some(hint) = hint {
                    (self.sink)(hint);
                }
            }
            Err(obstacle) => {
                drop(subscription);
                self.settle_on(Err(obstacle));
                (self.sink)(Hint::Rescan);
            }
        }
    }

    fn digest(&self, subscription: &mut Subscription, pending: Pending) -> Result<Option<Hint>, Obstacle> {
        let Pending { paths, directories, git, mut rules, mut rescan, .. } = pending;
        rescan |= rules;
        if git || rules {
            subscription.follow_git(&self.worktree)?;
            let state = self.worktree.git_state().ok();
            // Git writes its index anew when nothing is new but times.
            if state.is_none() || state != subscription.git_state {
                (rules, rescan) = (true, true);
            }
            subscription.git_state = state;
        }
        let root = self.worktree.root();
        let directories: Vec<RepoPath> = directories.into_iter().collect();
        if !directories.is_empty() {
            let watched = subscription.watched.len();
            let is_gone = |directory: &String| directories.iter().any(|gone| is_within(directory, gone.as_str()));
            subscription.forget(root, is_gone).map_err(|refusal| refusal.of(watched))?;
        }
        if rules {
            self.extend(subscription, None)?;
        } else if !directories.is_empty() {
            self.extend(subscription, Some(&directories))?;
        }
        if rescan {
            return Ok(Some(Hint::Rescan));
        }
        let paths = workspace::relevant(&self.worktree, &self.policy, paths.into_iter().collect())?;
        Ok((!paths.is_empty()).then_some(Hint::Paths(paths)))
    }

    /// Finds out whether the root is still the directory that is watched.
    fn look_at_root(&mut self) {
        let before = match &self.mode {
            Mode::Polled { .. } => return,
            Mode::Events(subscription) if self.worktree.identity() == Some(subscription.root) => return,
            Mode::Events(_) => true,
            Mode::Lost => false,
        };
        self.subscribe();
        if before || !matches!(self.mode, Mode::Lost) {
            (self.sink)(Hint::Rescan);
        }
    }

    /// Looks at everything from outside, and tells what looks otherwise.
    fn poll(&mut self) {
        let Mode::Polled { last: before, retry, .. } = std::mem::replace(&mut self.mode, Mode::Lost) else { return };
        let begun = Instant::now();
        if retry.is_some_and(|retry| retry <= begun) {
            self.subscribe();
            // What changed since the last look is not known.
            return (self.sink)(Hint::Rescan);
        }
        let last = workspace::glance(&self.worktree, &self.policy).ok();
        let hint = match (&last, &before) {
            (None, None) => None,
            (Some(last), Some(before)) => {
                last.differing(before).map_or(Some(Hint::Rescan), |paths| (!paths.is_empty()).then_some(Hint::Paths(paths)))
            }
            _ => Some(Hint::Rescan),
        };
        self.mode = Mode::Polled { last, due: self.next_poll(begun), retry };
        if let Some(hint) = hint {
            (self.sink)(hint);
        }
    }
}

impl Subscription {
    /// Watches where Git keeps HEAD, the index and the branch now.
    fn follow_git(&mut self, worktree: &Worktree) -> Result<(), Obstacle> {
        // One that cannot be opened is seen again when something changes in the worktree, or in what was watched of it.
        let git = worktree.git_places().ok().flatten();
        // Its directories may be others of the same name, so they are watched anew in any case.
        let gone = std::mem::take(&mut self.git_watched);
        self.unwatch(gone.iter().map(|path| path.as_path()));
        let mut places: BTreeSet<_> = gone.into_iter().filter(|place| self.is_watched(place, worktree.root())).collect();
        if let Some(git) = &git {
            self.git_watched = git_directories(git);
            places.extend(self.git_watched.iter().cloned());
        }
        let directories = self.watched.len() + self.git_watched.len();
        self.watch(places.into_iter().collect()).map_err(|refusal| refusal.of(directories))?;
        self.git = git;
        Ok(())
    }

    /// Returns whether a place is a directory of the worktree that is watched as such.
    fn is_watched(&self, place: &Path, root: &Path) -> bool {
        let directory = place.strip_prefix(root).ok().and_then(Path::to_str);
        directory.is_some_and(|directory| self.watched.contains(directory))
    }

    /// Stops watching directories, which may be gone, or be others now.
    fn forget(&mut self, root: &Path, is_gone: impl Fn(&String) -> bool) -> Result<(), Refusal> {
        let (gone, kept) = std::mem::take(&mut self.watched).into_iter().partition(is_gone);
        self.watched = kept;
        let gone: BTreeSet<String> = gone;
        let places: Vec<_> = gone.iter().map(|directory| root.join(directory)).collect();
        self.unwatch(places.iter().map(|path| path.as_path()));
        // Rules for Git may stand in one that is ignored.
        self.watch(places.into_iter().filter(|place| self.git_watched.contains(place)).collect())
    }

    fn unwatch<'p>(&mut self, places: impl Iterator<Item = &'p Path>) {
        for place in places {
            if self.is_below_tree(place) {
                continue;
            }
            // The watch of a directory that was removed ended with it.
            let _ = self.notifier.unwatch(place);
        }
    }

    /// Returns whether the watch of the whole tree tells of a directory.
    fn is_below_tree(&self, place: &Path) -> bool {
        self.tree.as_ref().is_some_and(|tree| place.starts_with(tree))
    }

    /// Watches directories; those that are gone or may not be read are passed over.
    fn watch(&mut self, mut places: Vec<PathBuf>) -> Result<(), Refusal> {
        places.retain(|place| !self.is_below_tree(place));
        self.ask(places, RecursiveMode::NonRecursive)
    }

    fn ask(&mut self, places: Vec<PathBuf>, mode: RecursiveMode) -> Result<(), Refusal> {
        let config = WatchPathConfig::new(mode).with_dereference_symlinks(false);
        let mut left: Vec<PathOp> = places.into_iter().map(|place| PathOp::Watch(place, config.clone())).collect();
        while !left.is_empty() {
            match self.notifier.update_paths(std::mem::take(&mut left)) {
                Ok(()) => {}
                Err(failed) if matches!(failed.source.kind, ErrorKind::MaxFilesWatch) => return Err(Refusal::TooMany),
                // It is the fault of none of them.
                Err(failed) if failed.origin.is_none() => return Err(Refusal::Ended(failed.source)),
                Err(failed) => {
                    tracing::trace!(error = %failed.source, "a directory is not watched");
                    left = failed.remaining;
                }
            }
        }
        Ok(())
    }
}

/// Returns whether a directory is `outer` or stands below it.
fn is_within(directory: &str, outer: &str) -> bool {
    directory.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
