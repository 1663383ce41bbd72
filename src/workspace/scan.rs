//! Reading what a scope lists: every included byte, once, hashed as it is read.
//!
//! Must not know generations. Invariant: the bytes given to the visitor are those that were hashed, of one version of the file, opened
//! after the scan began.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use crate::config::Limits;
use crate::model::{ContentHash, Demand, Ended, Headway, RepoPath};

use super::batch::Batch;
use super::directory::{self, Errno, Handle, Kind, Parent, Root, Stat};
use super::git::{self, Snapshot};
use super::inventory::{self, Candidate, Inventory, MODE_EXECUTABLE, MODE_FILE, Plan};
use super::kept::Kept;
#[cfg(test)]
use super::moments::{self, Moment};
use super::policy::Policy;
use super::seal::{Identity, Lease, Round, Seal, Seals};
use super::{Capture, Entry, EntryState, Omission, WorkspaceError, Worktree, content};

/// What is called with each included file, on the threads of the scan: its path, the hash of its bytes, and the bytes. When a tree
/// changes under the scan a path may come twice; the manifest tells which hash counts.
pub type Visitor<'a> = dyn Fn(&RepoPath, &ContentHash, &[u8]) + Sync + 'a;

/// What is asked of a file that need not be read: whether nobody wants its bytes, given its path and their hash.
pub type Spare<'a> = dyn Fn(&RepoPath, &ContentHash) -> bool + Sync + 'a;

/// Bounds of a scan.
#[derive(Clone, Debug)]
pub struct ScanLimits {
    pub max_files: u64,
    pub max_file_bytes: u64,
    pub max_source_bytes: u64,
    /// For how long the scan goes on; `None` for as long as it takes.
    pub demand: Option<Demand>,
}

impl From<&Limits> for ScanLimits {
    fn from(limits: &Limits) -> Self {
        Self {
            max_files: limits.max_files,
            max_file_bytes: limits.max_file_bytes,
            max_source_bytes: limits.max_source_bytes,
            demand: None,
        }
    }
}

impl ScanLimits {
    /// Returns the same limits of a scan that goes on for as long as it is wanted.
    #[must_use]
    pub fn wanted(self, demand: &Demand) -> Self {
        Self { demand: Some(demand.clone()), ..self }
    }
}

/// For how long a scan goes on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leave<'d>(Option<&'d Demand>);

impl<'d> Leave<'d> {
    /// That of a scan which goes on for as long as it takes.
    pub(super) const ALL: Leave<'static> = Leave(None);

    pub(super) fn of(limits: &'d ScanLimits) -> Self {
        Self(limits.demand.as_ref())
    }

    pub(super) fn check(self) -> Result<(), WorkspaceError> {
        match self.0.and_then(Demand::ended) {
            None => Ok(()),
            Some(Ended::Late) => Err(WorkspaceError::Timeout),
            Some(Ended::Unwanted) => Err(WorkspaceError::Unwanted),
        }
    }
}

/// Lists the scope, reads and hashes every included file, and gives each to `visit`. The state of Git is read afresh.
///
/// # Errors
/// When the tree cannot be read, kept changing, has conflicts in the index, or exceeds a limit in total.
pub fn scan(worktree: &Worktree, policy: &Policy, limits: ScanLimits, visit: &Visitor<'_>) -> Result<Capture, WorkspaceError> {
    scan_sparing(worktree, policy, limits, &Headway::default(), &|_, _| false, visit)
}

/// Scans as [`scan`] does, and does not read files whose seals stand, where the worktree has seals, and whose bytes nobody wants:
/// `spare` is asked for each, with the hash that its bytes have. They are not given to `visit`. `headway` counts the files.
///
/// # Errors
/// As [`scan`].
pub fn scan_sparing(
    worktree: &Worktree,
    policy: &Policy,
    limits: ScanLimits,
    headway: &Headway,
    spare: &Spare<'_>,
    visit: &Visitor<'_>,
) -> Result<Capture, WorkspaceError> {
    match scan_once(worktree, policy, &limits, headway, spare, visit) {
        // One retry: a checkout or an editor may have been at it.
        Err(WorkspaceError::Unstable { .. }) => scan_once(worktree, policy, &limits, headway, spare, visit),
        result => result,
    }
}

fn scan_once(
    worktree: &Worktree,
    policy: &Policy,
    limits: &ScanLimits,
    headway: &Headway,
    spare: &Spare<'_>,
    visit: &Visitor<'_>,
) -> Result<Capture, WorkspaceError> {
    let span = tracing::debug_span!("scan", files = tracing::field::Empty, bytes = tracing::field::Empty);
    let _entered = span.enter();
    let root = Root::open(&worktree.root)?;
    // Before anything is looked at: what is written from here on may be missed by this scan, and by no later one.
    let round = worktree.seals.as_deref().map(Seals::begin);
    let git = look_at_git(worktree, &root, Some(&worktree.kept))?;
    #[cfg(test)]
    moments::pass(Moment::GitRead, "");
    let (threads, leave) = (threads(), Leave::of(limits));
    let inventory = inventory::list(&root, &git, policy, &worktree.kept, round.as_ref(), leave, threads)?;
    #[cfg(test)]
    moments::pass(Moment::Listed, "");
    let mut reading = Reading::new(&root, &git, limits, visit);
    if let (Some(round), Some(seals)) = (&round, &worktree.seals) {
        let walked = inventory::needs_walk(&git, policy);
        reading.sealing = Some(Sealing { round, spare, walked, seals: seals.of(&inventory) });
    }
    headway.expect(inventory.candidates.len() as u64, 1);
    let found = for_each(&inventory.candidates, threads, leave, |from, some, hands| {
        reading.examine(from, some, hands).inspect(|_| headway.add(some.len() as u64))
    })?;
    span.record("files", reading.files.load(Ordering::Relaxed));
    span.record("bytes", reading.bytes.load(Ordering::Relaxed));
    let sealed = reading.sealed.load(Ordering::Relaxed);
    let mut entries = Vec::with_capacity(found.len());
    let mut seals = Vec::new();
    for (entry, seal) in found {
        entries.extend(entry);
        seals.push(seal);
    }
    if let Some(known) = &worktree.seals {
        known.keep(inventory.clone(), seals);
    }
    Ok(Capture {
        git: git.state,
        entries: entries.into(),
        unrepresentable: inventory.unrepresentable.clone(),
        tracked: git.tracked,
        sealed,
    })
}

/// Returns the listing alone: each path that a scan would examine, with the reason when its path already leaves it out. Sorted.
///
/// # Errors
/// As [`scan`].
pub fn list(worktree: &Worktree, policy: &Policy) -> Result<BTreeMap<RepoPath, Option<Omission>>, WorkspaceError> {
    let root = Root::open(&worktree.root)?;
    let git = look_at_git(worktree, &root, None)?;
    let inventory = inventory::list_within(&root, &git, policy, None, Leave::ALL, threads())?;
    let reason = |plan| match plan {
        Plan::Read => None,
        Plan::Probe(reason) | Plan::Omit(reason, _) => Some(reason),
    };
    Ok(inventory.candidates.into_iter().map(|candidate| (candidate.path, reason(candidate.plan))).collect())
}

/// Reads the state of Git; what is `kept` spares parsing an index that is the same.
pub(super) fn look_at_git(worktree: &Worktree, root: &Root, kept: Option<&Kept>) -> Result<Snapshot, WorkspaceError> {
    if worktree.has_git() { git::read(&worktree.root, root, kept) } else { Ok(Snapshot::none()) }
}

/// What [`pass`] went through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PassOutcome {
    pub files: u64,
    pub bytes: u64,
}

/// Does the least that any check of every byte must do: lists the scope by its rules, reads and hashes every file that the listing
/// includes. The reference that benchmarks compare with; it guards against nothing.
///
/// # Errors
/// When the tree cannot be read.
pub fn pass(worktree: &Worktree, policy: &Policy, limits: ScanLimits) -> Result<PassOutcome, WorkspaceError> {
    let root = Root::open(&worktree.root)?;
    let git = look_at_git(worktree, &root, None)?;
    let threads = threads();
    let Inventory { candidates, .. } = inventory::list_within(&root, &git, policy, None, Leave::of(&limits), threads)?;
    let outcomes = for_each(&candidates, threads, Leave::of(&limits), |_, some, Hands { batch, .. }| {
        let mut outcome = PassOutcome { files: 0, bytes: 0 };
        for candidate in some.iter().filter(|candidate| candidate.plan == Plan::Read) {
            let Ok(file) = root.open_file(candidate.path.as_str().as_bytes()) else { continue };
            let length = read_to_end(&file, batch, limits.max_file_bytes).map_err(|errno| failed(candidate, errno))?;
            let Some(length) = length else { continue };
            batch.take(Unsettled::default(), length);
            outcome.files += 1;
            outcome.bytes += length as u64;
            if batch.is_full() {
                hash_only(batch);
            }
        }
        hash_only(batch);
        Ok(vec![outcome])
    })?;
    Ok(PassOutcome {
        files: outcomes.iter().map(|outcome| outcome.files).sum(),
        bytes: outcomes.iter().map(|outcome| outcome.bytes).sum(),
    })
}

/// Reads a file into the room of a batch and returns its length; `None` when it is longer than `limit`.
fn read_to_end(file: &Handle, batch: &mut Batch<Unsettled>, limit: u64) -> Result<Option<usize>, Errno> {
    let (mut length, mut size) = (0, 16 << 10);
    loop {
        let room = batch.room(size);
        let count = directory::read(file, &mut room[length..])?;
        length += count;
        if length as u64 > limit {
            return Ok(None);
        }
        // The system fills what it is given, up to the end of a regular file.
        if length < room.len() {
            return Ok(Some(length));
        }
        size = length * 2;
    }
}

fn hash_only(batch: &mut Batch<Unsettled>) {
    let hashed: Result<(), std::convert::Infallible> = batch.hash(|_, hash, _| {
        std::hint::black_box(hash);
        Ok(())
    });
    match hashed {
        Ok(()) => {}
    }
}

pub(super) fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// How many candidates a thread takes at once.
const CHUNK: usize = 32;

/// What one thread works with, kept from file to file.
pub(super) struct Hands {
    batch: Batch<Unsettled>,
    parent: Parent,
}

/// A file that was read, and waits for its hash.
#[derive(Clone, Copy, Debug, Default)]
struct Unsettled {
    /// Its position among the files that a thread took at once.
    position: usize,
    mode: u32,
    /// What it can be sealed with.
    identity: Option<Identity>,
}

/// Runs `examine` on some candidates after the other, told the position of the first, with several threads, each with hands of its own,
/// and returns the results in the same order.
pub(super) fn for_each<T: Send>(
    candidates: &[Candidate],
    threads: usize,
    leave: Leave<'_>,
    examine: impl Fn(usize, &[Candidate], &mut Hands) -> Result<Vec<T>, WorkspaceError> + Sync,
) -> Result<Vec<T>, WorkspaceError> {
    let next = AtomicUsize::new(0);
    let stop = AtomicBool::new(false);
    let run = || {
        let mut hands = Hands { batch: Batch::new(), parent: Parent::default() };
        let mut results: Vec<(usize, Vec<T>)> = Vec::new();
        while !stop.load(Ordering::Relaxed) {
            let start = next.fetch_add(CHUNK, Ordering::Relaxed);
            if start >= candidates.len() {
                break;
            }
            leave.check().inspect_err(|_| stop.store(true, Ordering::Relaxed))?;
            let some = &candidates[start..(start + CHUNK).min(candidates.len())];
            let chunk = examine(start, some, &mut hands).inspect_err(|_| stop.store(true, Ordering::Relaxed))?;
            results.push((start, chunk));
        }
        Ok(results)
    };
    let threads = threads.min(candidates.len().div_ceil(CHUNK)).max(1);
    let mut chunks = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(run)).collect();
        let mut results = vec![run()];
        for thread in others {
            results.push(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        let mut chunks = Vec::new();
        for result in results {
            chunks.extend(result?);
        }
        Ok(chunks)
    })?;
    chunks.sort_unstable_by_key(|(start, _)| *start);
    Ok(chunks.into_iter().flat_map(|(_, chunk)| chunk).collect())
}

fn failed(candidate: &Candidate, errno: Errno) -> WorkspaceError {
    WorkspaceError::Read { path: candidate.path.as_str().to_owned(), source: errno.into() }
}

pub(super) struct Reading<'a> {
    root: &'a Root,
    git: &'a Snapshot,
    limits: &'a ScanLimits,
    visit: &'a Visitor<'a>,
    sealing: Option<Sealing<'a>>,
    files: AtomicU64,
    bytes: AtomicU64,
    sealed: AtomicU64,
}

/// How a scan seals files and spares those that are sealed.
struct Sealing<'a> {
    round: &'a Round<'a>,
    spare: &'a Spare<'a>,
    /// Whether the directories above each candidate were found to be directories in this scan.
    walked: bool,
    /// The seal of each candidate.
    seals: Vec<Option<Seal>>,
}

/// What a scan makes of one candidate: its entry, and its seal where it has one.
pub(super) type Examined = (Option<Entry>, Option<Seal>);

/// What a look at a file gave.
enum Look {
    /// All that there is to say of it.
    Settled(Option<(u32, EntryState)>),
    /// Its bytes, so many, lie in the room of the batch.
    Read { mode: u32, length: usize, identity: Option<Identity> },
}

/// One attempt at a file.
enum Attempt {
    Whole(Look),
    /// It changed between the first look and the last.
    Changed,
}

impl<'a> Reading<'a> {
    pub(super) fn new(root: &'a Root, git: &'a Snapshot, limits: &'a ScanLimits, visit: &'a Visitor<'a>) -> Self {
        Self {
            root,
            git,
            limits,
            visit,
            sealing: None,
            files: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            sealed: AtomicU64::new(0),
        }
    }

    /// Returns what stands at each of some candidates, the first of them at position `from`, in their order.
    pub(super) fn examine(&self, from: usize, some: &[Candidate], hands: &mut Hands) -> Result<Vec<Examined>, WorkspaceError> {
        let mut found = Vec::with_capacity(some.len());
        for (position, candidate) in some.iter().enumerate() {
            if let Some((mode, seal)) = self.sealed(from + position, candidate, &mut hands.parent) {
                if let EntryState::Included { size, .. } = seal.state {
                    self.count(size)?;
                    self.sealed.fetch_add(1, Ordering::Relaxed);
                }
                found.push((Some(entry(candidate, mode, seal.state.clone())), Some(seal.clone())));
                continue;
            }
            let look = match candidate.plan {
                Plan::Omit(reason, mode) => Look::Settled(Some((mode, omitted(reason)))),
                Plan::Probe(reason) => Look::Settled(self.probe(candidate, reason, &mut hands.parent)?),
                Plan::Read => self.read(candidate, &mut hands.batch)?,
            };
            match look {
                Look::Settled(state) => found.push((state.map(|(mode, state)| entry(candidate, mode, state)), None)),
                Look::Read { mode, length, identity } => {
                    hands.batch.take(Unsettled { position, mode, identity }, length);
                    found.push((None, None));
                    if hands.batch.is_full() {
                        self.settle(some, &mut hands.batch, &mut found)?;
                    }
                }
            }
        }
        self.settle(some, &mut hands.batch, &mut found)?;
        Ok(found)
    }

    /// Hashes what was read, and says what it is.
    fn settle(&self, some: &[Candidate], batch: &mut Batch<Unsettled>, found: &mut [Examined]) -> Result<(), WorkspaceError> {
        batch.hash(|Unsettled { position, mode, identity }, hash, bytes| {
            let (candidate, size) = (&some[position], bytes.len() as u64);
            let state = match content::classify(bytes) {
                Some(reason) => EntryState::Omitted { reason, hash: Some(hash), size: Some(size) },
                None => {
                    self.count(size)?;
                    (self.visit)(&candidate.path, &hash, bytes);
                    EntryState::Included { hash, size }
                }
            };
            let seal = identity.map(|identity| Seal { identity, state: state.clone() });
            found[position] = (Some(entry(candidate, mode, state)), seal);
            Ok(())
        })
    }

    /// Returns mode and seal of a file that need not be read: its seal stands, and nobody wants its bytes.
    fn sealed(&self, position: usize, candidate: &Candidate, parent: &mut Parent) -> Option<(u32, &Seal)> {
        let sealing = self.sealing.as_ref()?;
        let seal = sealing.seals.get(position)?.as_ref().filter(|_| candidate.plan == Plan::Read)?;
        let wanted = match &seal.state {
            EntryState::Included { hash, .. } => !(sealing.spare)(&candidate.path, hash),
            EntryState::Omitted { .. } => false,
        };
        if wanted {
            return None;
        }
        let path = candidate.path.as_str().as_bytes();
        let stat = if sealing.walked { self.root.glimpse(path).ok()? } else { self.root.stat(path, parent).ok()?? };
        (sealing.round.identity(&stat).as_ref() == Some(&seal.identity)).then(|| (self.mode(candidate, Some(&stat)), seal))
    }

    fn probe(
        &self,
        candidate: &Candidate,
        reason: Omission,
        parent: &mut Parent,
    ) -> Result<Option<(u32, EntryState)>, WorkspaceError> {
        match self.root.stat(candidate.path.as_str().as_bytes(), parent) {
            Ok(stat) => {
                let kind = stat.as_ref().map(directory::kind);
                Ok(inventory::probed(candidate, reason, kind).map(|(reason, mode)| (mode, omitted(reason))))
            }
            Err(errno) if is_denied(errno) => Ok(Some(self.unreadable(candidate))),
            Err(errno) => Err(failed(candidate, errno)),
        }
    }

    fn read(&self, candidate: &Candidate, batch: &mut Batch<Unsettled>) -> Result<Look, WorkspaceError> {
        for _ in 0..3 {
            match self.root.open_file(candidate.path.as_str().as_bytes()) {
                Ok(file) => match self.attempt(candidate, &file, batch)? {
                    Attempt::Whole(look) => return Ok(look),
                    Attempt::Changed => {}
                },
                Err(Errno::NOENT | Errno::NOTDIR) => return Ok(Look::Settled(None)),
                // A link in the last place is a link; one further up means that nothing stands here.
                Err(Errno::LOOP) => {
                    return self.probe(candidate, Omission::NotARegularFile, &mut Parent::default()).map(Look::Settled);
                }
                // A socket, or a device without a driver.
                Err(Errno::NXIO | Errno::NODEV) => {
                    return Ok(Look::Settled(Some((self.mode(candidate, None), omitted(Omission::NotARegularFile)))));
                }
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(errno) if is_denied(errno) => return Ok(Look::Settled(Some(self.unreadable(candidate)))),
                Err(errno) => return Err(failed(candidate, errno)),
            }
        }
        Err(WorkspaceError::Unstable { path: candidate.path.as_str().to_owned() })
    }

    fn attempt(&self, candidate: &Candidate, file: &Handle, batch: &mut Batch<Unsettled>) -> Result<Attempt, WorkspaceError> {
        let fail = |errno| failed(candidate, errno);
        let before = directory::stat(file).map_err(fail)?;
        let mode = self.mode(candidate, Some(&before));
        match directory::kind(&before) {
            Kind::File => {}
            Kind::Directory => return Ok(Attempt::Whole(Look::Settled(None))),
            _ => return Ok(Attempt::Whole(Look::Settled(Some((mode, omitted(Omission::NotARegularFile)))))),
        }
        let size = before.st_size as u64;
        if size > self.limits.max_file_bytes {
            let state = EntryState::Omitted { reason: Omission::Oversize, hash: None, size: Some(size) };
            return Ok(Attempt::Whole(Look::Settled(Some((mode, state)))));
        }
        #[cfg(test)]
        moments::pass(Moment::Opened, candidate.path.as_str());
        // One byte more than the size, so that a single read shows the end of the file as well.
        let wanted = size as usize + 1;
        let buffer = batch.room(wanted);
        // Only while nobody can write does the seal show what was read.
        let sealable = self.sealing.as_ref().and_then(|sealing| sealing.round.sealable(&before));
        let lease = sealable.and_then(|_| Lease::take(file));
        let mut length = 0;
        while length < wanted {
            match directory::read(file, &mut buffer[length..wanted]) {
                Ok(0) => break,
                Ok(count) => length += count,
                Err(Errno::INTR) => continue,
                Err(errno) => return Err(fail(errno)),
            }
            if length + 1 == wanted {
                break;
            }
        }
        #[cfg(test)]
        moments::pass(Moment::Read, candidate.path.as_str());
        let after = directory::stat(file).map_err(fail)?;
        if length as u64 != size || !same_version(&before, &after) {
            return Ok(Attempt::Changed);
        }
        let identity = lease.filter(Lease::is_whole).and(sealable);
        Ok(Attempt::Whole(Look::Read { mode, length, identity }))
    }

    /// Counts an included file against the limits of the whole scope, which fail the scan: never the first so many files are taken.
    fn count(&self, size: u64) -> Result<(), WorkspaceError> {
        let files = self.files.fetch_add(1, Ordering::Relaxed) + 1;
        let bytes = self.bytes.fetch_add(size, Ordering::Relaxed) + size;
        if files > self.limits.max_files {
            return Err(WorkspaceError::Limit { what: "files", key: "max_files", limit: self.limits.max_files });
        }
        if bytes > self.limits.max_source_bytes {
            return Err(WorkspaceError::Limit {
                what: "bytes of source",
                key: "max_source_bytes",
                limit: self.limits.max_source_bytes,
            });
        }
        Ok(())
    }

    /// Returns Git's mode of a regular file as the worktree has it, or the index where the worktree cannot say.
    fn mode(&self, candidate: &Candidate, stat: Option<&Stat>) -> u32 {
        match (stat, candidate.tracked_mode) {
            (_, Some(mode)) if !self.git.file_mode => mode,
            (Some(stat), _) if directory::is_executable(stat) => MODE_EXECUTABLE,
            (Some(_), _) => MODE_FILE,
            (None, mode) => mode.unwrap_or(MODE_FILE),
        }
    }

    fn unreadable(&self, candidate: &Candidate) -> (u32, EntryState) {
        (self.mode(candidate, None), omitted(Omission::Unreadable))
    }
}

fn entry(candidate: &Candidate, mode: u32, state: EntryState) -> Entry {
    Entry { path: candidate.path.clone(), mode, state }
}

fn omitted(reason: Omission) -> EntryState {
    EntryState::Omitted { reason, hash: None, size: None }
}

fn is_denied(errno: Errno) -> bool {
    matches!(errno, Errno::ACCESS | Errno::PERM | Errno::NAMETOOLONG)
}

/// Returns whether two looks at an open file saw the same version of it.
pub(super) fn same_version(before: &Stat, after: &Stat) -> bool {
    let version = |stat: &Stat| {
        (stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime, stat.st_mtime_nsec, stat.st_ctime, stat.st_ctime_nsec)
    };
    version(before) == version(after)
}
