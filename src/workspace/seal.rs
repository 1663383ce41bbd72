//! When a file or directory need not be read again: its seal stands, which shows that nobody can have written to it since.
//!
//! A file is sealed while it is read under a read lease, which the kernel grants only where nothing can write without opening the file
//! first: no descriptor and no mapping for writing exists. Whoever writes later has to come through a system call or a page fault that
//! moves the time of change before a byte moves. A directory is sealed while its names are read: the kernel moves its time of change under
//! the lock that reading the names takes, too. What a seal has to hold for that is tested at run time; without it everything is read.
//!
//! Must not know what the content is for. Invariant: a seal is made only of an object of the file system of the root, which is held
//! mounted, and whose time of change lay so far back that no later change can leave it as it was.

use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::model::RepoPath;

use super::clock::Clock;
use super::directory::{self, Dev, Handle, Stat};
use super::inventory::Inventory;
use super::{EntryState, clock};

/// File systems whose times of change were seen to move with every change: ext4, XFS and Btrfs. Not those that lie over others.
const KNOWN: [i64; 3] = [0xef53, 0x5846_5342, 0x9123_683e];

/// A time of change has to be so far back, in seconds: more than what file systems round down, what a clock may be off unnoticed, and
/// a tick.
const SETTLED: i64 = 3;

/// The seals of one tree, in one process.
#[derive(Debug)]
pub(super) struct Seals {
    /// Keeps the file system mounted, so that its device number means it and nothing else.
    _root: Handle,
    device: Dev,
    clock: Clock,
    /// Moves on when all seals before are void.
    epoch: AtomicU64,
    /// How far back a time of change has to be, in seconds.
    settled: i64,
    table: Mutex<Option<Arc<Table>>>,
}

/// The seals of a listing's files, in its order.
#[derive(Debug)]
pub(super) struct Table {
    inventory: Arc<Inventory>,
    seals: Vec<Option<Seal>>,
}

/// A file that was read, and what it came to.
#[derive(Clone, Debug)]
pub(super) struct Seal {
    pub(super) identity: Identity,
    pub(super) state: EntryState,
}

/// What tells whether an object was written to since it was sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    inode: u64,
    size: i64,
    modified: (i64, i64),
    changed: (i64, i64),
    epoch: u64,
}

impl Seals {
    /// Makes ready to seal files below a root; `None` where no seal could be trusted.
    pub(super) fn open(root: &Path) -> Option<Self> {
        let root = directory::open_anywhere(root, true).ok()?;
        let kind = rustix::fs::fstatfs(&root).ok()?.f_type;
        #[allow(clippy::unnecessary_cast, reason = "the type differs from system to system")]
        let known = KNOWN.contains(&(kind as i64));
        if !known || !lease::prepare() {
            return None;
        }
        let device = directory::stat(&root).ok()?.st_dev;
        Some(Self {
            _root: root,
            device,
            clock: Clock::new()?,
            epoch: AtomicU64::new(0),
            settled: SETTLED,
            table: Mutex::default(),
        })
    }

    /// Seals what changed just now, too: for tests, where the file system tells any two changes apart.
    #[cfg(test)]
    #[cfg(target_os = "linux")]
    pub(super) fn at_once(self) -> Self {
        Self { settled: 0, ..self }
    }

    /// Makes all seals void, as when the clock was set.
    pub(super) fn void(&self) {
        self.epoch.fetch_add(1, Ordering::AcqRel);
    }

    /// Begins a scan.
    pub(super) fn begin(&self) -> Round<'_> {
        if self.clock.was_set() {
            self.void();
        }
        Round { seals: self, epoch: self.epoch.load(Ordering::Acquire), began: clock::coarse_seconds() }
    }

    /// Returns the seals of a listing's files, in its order.
    pub(super) fn of(&self, inventory: &Arc<Inventory>) -> Vec<Option<Seal>> {
        let table = self.table.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(table) = table else { return vec![None; inventory.candidates.len()] };
        if Arc::ptr_eq(&table.inventory, inventory) {
            return table.seals.clone();
        }
        let mut known = table.inventory.candidates.iter().zip(&table.seals).peekable();
        let seal_of = |path: &RepoPath| {
            while known.next_if(|(candidate, _)| candidate.path < *path).is_some() {}
            known.next_if(|(candidate, _)| candidate.path == *path).and_then(|(_, seal)| seal.clone())
        };
        inventory.candidates.iter().map(|candidate| &candidate.path).map(seal_of).collect()
    }

    /// Keeps the seals of a listing's files, in its order.
    pub(super) fn keep(&self, inventory: Arc<Inventory>, seals: Vec<Option<Seal>>) {
        *self.table.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(Table { inventory, seals }));
    }
}

/// One scan's use of the seals.
#[derive(Debug)]
pub(super) struct Round<'a> {
    seals: &'a Seals,
    epoch: u64,
    /// Seconds of the clock when the scan began.
    began: i64,
}

impl Round<'_> {
    /// Returns what the seal of this object has to be; `None` when it stands on another file system.
    pub(super) fn identity(&self, stat: &Stat) -> Option<Identity> {
        (stat.st_dev == self.seals.device).then_some(Identity {
            inode: stat.st_ino,
            size: stat.st_size,
            modified: (stat.st_mtime, nanoseconds(stat.st_mtime_nsec)),
            changed: (stat.st_ctime, nanoseconds(stat.st_ctime_nsec)),
            epoch: self.epoch,
        })
    }

    /// Returns the identity to seal an object with, if its last change lies back so far that a later one moves its time of change.
    pub(super) fn sealable(&self, stat: &Stat) -> Option<Identity> {
        if stat.st_ctime > self.began - self.seals.settled { None } else { self.identity(stat) }
    }
}

#[allow(clippy::cast_possible_wrap, clippy::unnecessary_cast, reason = "the type differs from system to system")]
fn nanoseconds(value: impl TryInto<i64>) -> i64 {
    value.try_into().unwrap_or(0)
}

/// A lease on an open file, given back when it is dropped.
pub(super) struct Lease<'f>(&'f Handle);

impl<'f> Lease<'f> {
    /// Takes a read lease; `None` where somebody may write without opening the file, or the system grants none on it.
    pub(super) fn take(file: &'f Handle) -> Option<Self> {
        lease::set(file.as_raw_fd(), lease::READ).then_some(Self(file))
    }

    /// Returns whether nobody has asked to write since it was taken.
    pub(super) fn is_whole(&self) -> bool {
        lease::is_read(self.0.as_raw_fd())
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        lease::set(self.0.as_raw_fd(), lease::NONE);
    }
}

#[cfg(target_os = "linux")]
mod lease {
    use std::os::fd::RawFd;
    use std::sync::OnceLock;

    pub(super) const READ: libc::c_int = libc::F_RDLCK as libc::c_int;
    pub(super) const NONE: libc::c_int = libc::F_UNLCK as libc::c_int;

    /// Sees to it that the signal that tells of a writer, who waits until the lease is given back, does not end this process. Done once,
    /// and before the first lease.
    pub(super) fn prepare() -> bool {
        static PREPARED: OnceLock<bool> = OnceLock::new();
        *PREPARED.get_or_init(|| {
            // SAFETY: an all-zero `sigaction` is a valid value of this plain structure, and the pointers are to live locals or null.
            unsafe {
                let mut found: libc::sigaction = std::mem::zeroed();
                if libc::sigaction(libc::SIGIO, std::ptr::null(), &raw mut found) != 0 {
                    return false;
                }
                // Whoever handles it already is not disturbed.
                if found.sa_sigaction != libc::SIG_DFL {
                    return true;
                }
                let mut ignored: libc::sigaction = std::mem::zeroed();
                ignored.sa_sigaction = libc::SIG_IGN;
                libc::sigaction(libc::SIGIO, &raw const ignored, std::ptr::null_mut()) == 0
            }
        })
    }

    pub(super) fn set(file: RawFd, kind: libc::c_int) -> bool {
        // SAFETY: the call takes plain numbers, and says so when the descriptor is none.
        unsafe { libc::fcntl(file, libc::F_SETLEASE, kind) == 0 }
    }

    pub(super) fn is_read(file: RawFd) -> bool {
        // SAFETY: as above.
        unsafe { libc::fcntl(file, libc::F_GETLEASE) == READ }
    }
}

#[cfg(not(target_os = "linux"))]
mod lease {
    use std::os::fd::RawFd;

    pub(super) const READ: i32 = 0;
    pub(super) const NONE: i32 = 0;

    pub(super) fn prepare() -> bool {
        false
    }

    pub(super) fn set(_: RawFd, _: i32) -> bool {
        false
    }

    pub(super) fn is_read(_: RawFd) -> bool {
        false
    }
}
