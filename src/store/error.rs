//! Why the store cannot answer. Must not know how an error is shown; messages name parts of the cache, never absolute paths.
//!
//! Invariant: content of the cache that is not what it should be is [`StoreError::Damaged`], whatever kind of wrong it is; a failure of the
//! machine is never called damage.

use std::io;

/// Why the store cannot answer.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A stored object does not match its digest, or is not what the pointer says.
    #[error("a stored object is damaged ({part})")]
    Damaged { part: String },
    #[error("nothing was indexed yet")]
    Missing,
    #[error("the cache cannot be used ({action})")]
    Io {
        action: String,
        #[source]
        source: io::Error,
    },
    /// Reading goes on; building cannot.
    #[error(
        "the cache is read-only here; make it writable, set `cache_dir` to a place of your own, or ask with `--on-stale refuse`"
    )]
    ReadOnly {
        #[source]
        source: io::Error,
    },
    #[error("the cache was made by another user, who is not the owner of `cache_dir`; set it to a place of your own")]
    Owner,
    #[error("SQLite cannot be used ({action})")]
    Sqlite {
        action: String,
        #[source]
        source: rusqlite::Error,
    },
    /// A visitor of rows could not take one; not a fault of the store.
    #[error("the receiver of the rows failed")]
    Receiver {
        #[source]
        source: io::Error,
    },
    /// What was to be published contradicts itself; nothing was published.
    #[error("the new graph does not close ({what})")]
    Inconsistent { what: String },
    #[error("the cache is over its size limit")]
    CacheLimit,
    #[error("waiting for another builder took too long")]
    LockTimeout,
    /// Nobody hears of it.
    #[error("nobody waits any more for what was to be built")]
    Unwanted,
    #[error("reading the index took too long")]
    Timeout,
}

pub type Result<T> = std::result::Result<T, StoreError>;

/// Makes a [`StoreError::Damaged`].
pub(super) fn damaged(part: impl Into<String>) -> StoreError {
    StoreError::Damaged { part: part.into() }
}

/// Turns an I/O error into a [`StoreError::Io`] that names the action.
pub(super) fn io(action: &'static str) -> impl FnOnce(io::Error) -> StoreError {
    move |source| StoreError::Io { action: action.to_owned(), source }
}

/// Turns an I/O error into a [`StoreError`] as [`io`] does, or into [`StoreError::ReadOnly`] when it says that nothing may be written.
pub(super) fn unwritable(action: &'static str) -> impl FnOnce(io::Error) -> StoreError {
    move |source| match source.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => StoreError::ReadOnly { source },
        _ => io(action)(source),
    }
}

/// Turns an error of SQLite into damage, a failure of the machine, or a [`StoreError::Sqlite`].
pub(super) fn sqlite(action: &'static str) -> impl FnOnce(rusqlite::Error) -> StoreError {
    use rusqlite::{Error, ErrorCode};
    move |source| {
        let kind = match source.sqlite_error_code() {
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => return damaged(format!("database, {action}")),
            Some(ErrorCode::DiskFull) => io::ErrorKind::StorageFull,
            Some(ErrorCode::SystemIoFailure) => io::ErrorKind::Other,
            _ => {
                return match source {
                    // The digest matched, so a row of the wrong form was written by something that is not this build.
                    Error::FromSqlConversionFailure(..) | Error::IntegralValueOutOfRange(..) | Error::InvalidColumnType(..) => {
                        damaged(format!("database, {action}"))
                    }
                    source => StoreError::Sqlite { action: action.to_owned(), source },
                };
            }
        };
        StoreError::Io { action: action.to_owned(), source: io::Error::new(kind, source) }
    }
}
