//! `run(&Snapshot, Request) → Response`: the operations of the wire contract, read from a generation and nothing else.
//!
//! Must not know the disk, the cache's files or how an answer is drawn. Invariant: equal generations and equal requests give equal items.

pub mod delta;
pub mod explain;
pub mod export;
pub mod form;
pub mod neighbourhood;
mod ops;
pub mod rank;
pub mod reach;
pub mod request;
pub mod response;
pub mod select;
pub mod source;
pub mod tree;
pub mod walk;
pub mod words;

#[cfg(test)]
pub(crate) mod tests;

pub use ops::affected::{Standing, standing};
pub use ops::changes::{Differing, differing};
pub use request::{Operation, Request, RequestError};
pub use response::{Item, Response, Status};
pub use select::{Selection, select};

use crate::engine::gate::Snapshot;
use crate::store::{Generation, StoreError};

/// Why a request that fits the contract has no answer.
#[derive(Debug, thiserror::Error)]
pub enum QueryError {
    #[error("there is no {what} in this generation, or it is outside the path prefix")]
    TargetMissing { what: &'static str },
    #[error("line {start_line} is past the end of the file, which has {lines}")]
    RangeMissing { start_line: u64, lines: u32 },
    #[error("{what} is not what the request expects")]
    Changed { what: &'static str },
    /// The gate was asked for none, or had none.
    #[error("there is no generation to compare with")]
    NoBaseline,
    #[error("`{operation}` is not supported by this build")]
    Unsupported { operation: &'static str },
    #[error("the index cannot be read")]
    Store(#[from] StoreError),
}

impl QueryError {
    /// Returns the code of the contract (§3).
    pub fn code(&self) -> &'static str {
        match self {
            Self::TargetMissing { .. } => "code_target_missing",
            Self::RangeMissing { .. } => "code_range_missing",
            Self::Changed { .. } => "code_changed",
            Self::NoBaseline => "baseline_unavailable",
            Self::Unsupported { .. } => "unsupported_capability",
            Self::Store(StoreError::Damaged { .. }) => "index_integrity_failed",
            Self::Store(StoreError::Missing) => "code_index_missing",
            Self::Store(StoreError::CacheLimit) => "code_cache_limit_exceeded",
            Self::Store(StoreError::LockTimeout | StoreError::Timeout | StoreError::Unwanted) => "code_timeout",
            Self::Store(_) => "code_storage_unavailable",
        }
    }
}

type Result<T> = std::result::Result<T, QueryError>;

/// Answers a request from a checked generation. The items still hold all source they may show; rendering cuts them to the budget.
///
/// `status` is not answered here: it speaks of generations that do not pass the check, too.
///
/// # Errors
/// [`QueryError`] when the request's target or expectations do not fit the generation, or it cannot be read.
pub fn run(snapshot: &Snapshot, request: &Request) -> Result<Response> {
    answer(snapshot.generation(), snapshot.baseline(), snapshot.checked_at(), request)
}

fn answer(generation: &Generation, baseline: Option<&Generation>, checked_at: &str, request: &Request) -> Result<Response> {
    let operation = &request.operation;
    let _span = tracing::debug_span!("query", operation = operation.kind()).entered();
    if request.expected_fingerprint.is_some_and(|expected| expected != generation.identity().fingerprint) {
        return Err(QueryError::Changed { what: "the fingerprint" });
    }
    let mut context = ops::Context::new(generation, baseline, checked_at, request);
    match operation {
        Operation::Map { prefix, depth, limit } => ops::map::run(&mut context, prefix, *depth, *limit)?,
        Operation::Symbols { query, prefix, limit } => ops::symbols::run(&mut context, query, prefix, *limit)?,
        Operation::Explore { query, prefix, limit } => ops::explore::run(&mut context, query, prefix, *limit)?,
        Operation::Callers(relation) => ops::calls::run(&mut context, relation, walk::Direction::Callers)?,
        Operation::Callees(relation) => ops::calls::run(&mut context, relation, walk::Direction::Callees)?,
        Operation::Read { path, file_sha256, start_line, end_line } => {
            ops::read::run(&mut context, path, file_sha256, *start_line, *end_line)?;
        }
        Operation::Impact(relation) => ops::impact::run(&mut context, relation)?,
        Operation::AffectedTests(paths) => ops::affected::run(&mut context, paths)?,
        Operation::Changes => ops::changes::run(&mut context)?,
        Operation::ImpactChanges(paths) => ops::impact_changes::run(&mut context, paths)?,
        Operation::Diagnostics(references) => ops::diagnostics::run(&mut context, references)?,
        // It speaks of generations that do not pass the check, too, and is answered before any is let through.
        Operation::Status => {
            return Err(QueryError::Unsupported { operation: operation.kind() });
        }
    }
    tracing::debug!(items = context.response.items.len(), total = context.response.total, "answered");
    Ok(context.response)
}
