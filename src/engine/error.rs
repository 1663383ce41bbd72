//! Why the engine refuses: one kind for each code of the wire contract (§3). Must not know how an error is shown.
//!
//! Invariant: [`EngineError::code`] is total; a lower cause is kept as the source and never rendered here.

use std::sync::Arc;
use std::time::Duration;

use crate::analysis::AnalysisError;
use crate::model::Ended;
use crate::parse::ParserError;
use crate::store::StoreError;
use crate::workspace::{PolicyError, WorkspaceError};

/// Why a generation cannot be compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unavailable {
    #[error("no earlier generation is kept; there is one after the next sync that finds a change")]
    NoPrevious,
    #[error("no generation of this fingerprint is kept; `sextant status` lists those that are")]
    NotKept,
    #[error("it belongs to another branch")]
    OtherBranch,
    #[error("it was built before this folder had, lost or changed its Git repository")]
    OtherRepository,
    #[error("HEAD does not descend from the commit it was built at, as far as the history here shows")]
    NoDescent,
}

/// Why a question or a build was refused.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    #[error("this scope is disabled by its configuration")]
    Disabled,
    #[error("the worktree cannot be read")]
    Workspace(#[source] WorkspaceError),
    #[error("a pattern of the scope cannot be used")]
    Policy(#[source] PolicyError),
    /// The store failed while a generation was read.
    #[error("the index cannot be read")]
    Read(#[source] StoreError),
    /// There is nothing to compare with, or what there is must not be compared with this worktree.
    #[error("{0}")]
    BaselineUnavailable(Unavailable),
    /// The store failed while the generation to compare with was opened. History cannot be built anew, so no build repairs this; the next
    /// one only forgets what is damaged.
    #[error("the generation to compare with cannot be read")]
    Baseline(#[source] StoreError),
    /// The store failed while a generation was built.
    #[error("the index cannot be written")]
    Write(#[source] StoreError),
    #[error("the graph cannot be computed")]
    Analysis(#[source] AnalysisError),
    /// No file can be parsed, whatever it holds.
    #[error("the files cannot be parsed")]
    Parser(#[source] ParserError),
    #[error("the worktree differs from the index")]
    Changed,
    #[error("this is not the expected fingerprint")]
    Fingerprint,
    #[error("the worktree kept changing meanwhile")]
    Busy,
    #[error("the machine gives no thread")]
    Thread(#[source] std::io::Error),
    /// Of a sync that nobody waits for, before it began.
    #[error("the index was cleared before the sync began")]
    Withdrawn,
    #[error("not done within {limit:?}")]
    Timeout { limit: Duration },
    /// Nobody hears of it.
    #[error("nobody waits any more for what was asked")]
    Unwanted,
    /// Of work that several requests shared.
    #[error(transparent)]
    Shared(Arc<EngineError>),
}

impl EngineError {
    /// Returns the error of shared work as the one of a request that took part.
    pub(super) fn of_shared(error: Arc<Self>) -> Self {
        Arc::try_unwrap(error).unwrap_or_else(Self::Shared)
    }

    /// Returns why nothing was written.
    pub(super) fn of_writing(error: StoreError) -> Self {
        match error {
            StoreError::Unwanted => Self::Unwanted,
            error => Self::Write(error),
        }
    }

    /// Returns why work ended that had so long and is not wanted any more.
    pub(super) fn of_ended(ended: Ended, limit: Duration) -> Self {
        match ended {
            Ended::Late => Self::Timeout { limit },
            Ended::Unwanted => Self::Unwanted,
        }
    }

    /// Returns whether those who wanted the work were gone, which is no fault of it.
    pub(super) fn is_of_leaving(&self) -> bool {
        match self {
            Self::Unwanted => true,
            Self::Shared(error) => error.is_of_leaving(),
            _ => false,
        }
    }

    /// Returns whether the worktree changed meanwhile, so that it is worth to try again.
    pub(super) fn is_of_unrest(&self) -> bool {
        match self {
            Self::Busy | Self::Workspace(WorkspaceError::Unstable { .. }) => true,
            Self::Shared(error) => error.is_of_unrest(),
            _ => false,
        }
    }

    /// Returns the error code of the contract.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Disabled => "code_disabled",
            Self::Workspace(error) => match error {
                WorkspaceError::Root { .. } | WorkspaceError::Repository { .. } => "repository_unavailable",
                WorkspaceError::ObjectFormat => "unsupported_git_object_format",
                WorkspaceError::Git { .. } | WorkspaceError::Read { .. } => "repository_read_failed",
                WorkspaceError::Limit { .. } => "repository_limit_exceeded",
                WorkspaceError::Conflict { .. } | WorkspaceError::Unstable { .. } => "workspace_busy",
                WorkspaceError::Timeout | WorkspaceError::Unwanted => "code_timeout",
            },
            Self::Policy(_) => "code_repository_unconfigured",
            Self::BaselineUnavailable(_) => "baseline_unavailable",
            Self::Read(error) | Self::Baseline(error) | Self::Write(error) => match error {
                StoreError::Damaged { .. } => "index_integrity_failed",
                StoreError::Missing => "code_index_missing",
                StoreError::Sqlite { .. } => "code_storage_unavailable",
                StoreError::CacheLimit => "code_cache_limit_exceeded",
                StoreError::LockTimeout | StoreError::Timeout | StoreError::Unwanted => "code_timeout",
                _ if matches!(self, Self::Read(_) | Self::Baseline(_)) => "code_storage_unavailable",
                _ => "code_build_failed",
            },
            Self::Analysis(_) | Self::Thread(_) => "code_build_failed",
            Self::Parser(_) => "code_parser_failed",
            Self::Changed | Self::Fingerprint => "code_changed",
            Self::Busy => "workspace_busy",
            Self::Withdrawn => "code_index_missing",
            Self::Timeout { .. } | Self::Unwanted => "code_timeout",
            Self::Shared(error) => error.code(),
        }
    }
}

impl From<WorkspaceError> for EngineError {
    fn from(error: WorkspaceError) -> Self {
        match error {
            WorkspaceError::Unwanted => Self::Unwanted,
            error => Self::Workspace(error),
        }
    }
}

impl From<AnalysisError> for EngineError {
    fn from(error: AnalysisError) -> Self {
        Self::Analysis(error)
    }
}
