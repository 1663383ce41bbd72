//! Locks between processes: one builder at a time, and leases that keep a generation while it is read.
//!
//! Must not know what is locked. Invariant: a lock is held by an open file alone, so it ends with its process, however that ends.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use crate::model::{Demand, Ended};

use super::durable::{self, Part};
use super::error::{Result, StoreError, io, unwritable};
use super::files::{self, Found};

/// Locks the file at `path` for one builder, waiting for another one while the lock is wanted.
pub(super) fn lock_exclusive(path: &Path, demand: &Demand) -> Result<File> {
    let mut pause = Duration::from_millis(5);
    loop {
        if let Some(file) = try_lock(path)? {
            return Ok(file);
        }
        match demand.ended() {
            Some(Ended::Late) => return Err(StoreError::LockTimeout),
            Some(Ended::Unwanted) => return Err(StoreError::Unwanted),
            None => std::thread::sleep(pause.min(demand.left())),
        }
        pause = (pause * 2).min(Duration::from_millis(100));
    }
}

/// Takes the lock when it is free.
fn try_lock(path: &Path) -> Result<Option<File>> {
    let file = match durable::open_lock(path) {
        Ok(file) if file.metadata().map_err(io("open the lock"))?.is_file() => file,
        Err(source) if !is_foreign(path) => {
            let unreadable = source.kind() == io::ErrorKind::PermissionDenied
                && fs::symlink_metadata(path).is_ok_and(|found| found.mode() & 0o400 == 0);
            if unreadable && durable::make_private(path, 0o600).is_ok() && files::open(path).is_ok_and(is_file) {
                return Ok(None);
            }
            return Err(unwritable("open the lock")(source));
        }
        // Something else stands there: it goes, and the next round makes the file.
        Ok(_) | Err(_) => {
            durable::remove(Part::Leftover, path).map_err(io("remove what stands in place of the lock"))?;
            return Ok(None);
        }
    };
    match file.try_lock() {
        Ok(()) => {}
        Err(fs::TryLockError::WouldBlock) => return Ok(None),
        Err(fs::TryLockError::Error(error)) => return Err(io("lock")(error)),
    }
    // Another builder may have put a new file there since the opening; then this lock is of no use.
    let held = file.metadata().map_err(io("lock"))?;
    let named = fs::symlink_metadata(path).ok();
    Ok(named.is_some_and(|named| (named.dev(), named.ino()) == (held.dev(), held.ino())).then_some(file))
}

fn is_file(found: Found) -> bool {
    matches!(found, Found::File(..))
}

fn is_foreign(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| !metadata.is_file())
}

/// Returns whether a builder holds the lock at this moment.
pub(super) fn is_locked(path: &Path) -> bool {
    let Ok(Found::File(file, _)) = files::open(path) else { return false };
    matches!(file.try_lock_shared(), Err(fs::TryLockError::WouldBlock))
}

/// What became of the wish to read under a lease.
#[derive(Debug)]
pub(super) enum Lease {
    Held(File),
    /// The generation is being removed, or was.
    Gone,
    /// What stands in the place of the lease is no file.
    Foreign,
}

/// Takes a lease on a file that the builder made; nothing is written, so that it works in a read-only cache.
pub(super) fn lease(path: &Path) -> io::Result<Lease> {
    let file = match files::open(path) {
        Ok(Found::File(file, _)) => file,
        Ok(Found::Nothing) => return Ok(Lease::Gone),
        Ok(Found::Foreign) => return Ok(Lease::Foreign),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => return Ok(Lease::Foreign),
        Err(error) => return Err(error),
    };
    match file.try_lock_shared() {
        Ok(()) => Ok(Lease::Held(file)),
        Err(fs::TryLockError::WouldBlock) => Ok(Lease::Gone),
        Err(fs::TryLockError::Error(error)) => Err(error),
    }
}

/// Takes the lease from all readers to come. `None` when one holds it; without a lease file there is none to wait for.
pub(super) fn revoke(path: &Path) -> io::Result<Option<Option<File>>> {
    let Found::File(file, _) = files::open(path)? else { return Ok(Some(None)) };
    match file.try_lock() {
        Ok(()) => Ok(Some(Some(file))),
        Err(fs::TryLockError::WouldBlock) => Ok(None),
        Err(fs::TryLockError::Error(error)) => Err(error),
    }
}
