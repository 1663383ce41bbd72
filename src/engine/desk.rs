//! The desk of a scope: everyone who wants something of it comes here, from as many threads as there are.
//!
//! Must not know who asks. Invariant: the engine behind it is used by one thread at a time, and one that panicked leaves no half-made
//! memory to the next.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::config::{self, Config};
use crate::parse::Parser;
use crate::store::{Cache, KeptGeneration};
use crate::watch::{Health, Hint};

use super::EngineError;
use super::ahead::{Cancel, Prepared};
use super::gate::{Admission, Answer, Snapshot};
use super::journal::Difference;
use super::owner::Engine;
use super::report::{BuildOutcome, Cleared, Status};
use super::scope::Scope;

/// Why a request was refused; several that were answered together share it.
type Refusal = Arc<EngineError>;

/// Owns the engine of one scope, and lets many threads use it.
#[derive(Debug)]
pub struct Desk {
    scope: Arc<Scope>,
    cache: Cache,
    engine: Mutex<Engine>,
    /// When somebody was here last.
    used: Mutex<Instant>,
}

impl Desk {
    /// Opens the scope that the configuration gave, to be parsed by `parser`; nothing is read of its cache yet.
    ///
    /// # Errors
    /// When its root cannot be read.
    pub fn open(config: &Config, scope: config::Scope, parser: Arc<dyn Parser>) -> Result<Self, EngineError> {
        let engine = Engine::open(config, scope, parser)?;
        Ok(Self {
            scope: engine.shared_scope(),
            cache: engine.cache().clone(),
            engine: Mutex::new(engine),
            used: Mutex::new(Instant::now()),
        })
    }

    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    /// Builds a generation from the worktree alone: reads neither the facts cache nor the generation before.
    ///
    /// # Errors
    /// As [`Self::sync`].
    pub fn index(&self) -> Result<BuildOutcome, Refusal> {
        Ok(self.engine().index()?)
    }

    /// Brings the published generation up to date; builds the first one when there is none.
    ///
    /// # Errors
    /// When the worktree cannot be read or keeps changing, the store fails, or `build_seconds` pass; what was published stays.
    pub fn sync(&self) -> Result<BuildOutcome, Refusal> {
        self.sync_within(self.scope.limits().build())
    }

    /// Syncs as [`Self::sync`] does, within `limit` and `build_seconds`.
    ///
    /// # Errors
    /// As [`Self::sync`].
    pub fn sync_within(&self, limit: Duration) -> Result<BuildOutcome, Refusal> {
        Ok(self.engine().sync_within(limit)?)
    }

    /// Checks everything that is stored, lets go of what is damaged, and brings the index up to date as [`Self::sync`] does.
    ///
    /// # Errors
    /// As [`Self::sync`].
    pub fn verify_and_sync(&self) -> Result<BuildOutcome, Refusal> {
        Ok(self.engine().verify_and_sync()?)
    }

    /// Does ahead what a sync would have to do about what a hint names, and publishes nothing: see [`Engine::prepare`].
    ///
    /// # Errors
    /// When the worktree cannot be read, or nothing can be parsed or resolved; a sync will say so, too.
    pub fn prepare(&self, hint: &Hint, cancel: &Cancel) -> Result<Prepared, Refusal> {
        Ok(self.engine().prepare(hint, cancel)?)
    }

    /// Lets `operation` run on a generation that is what the worktree holds, and delivers what it gave if it still is: see [`Engine::ask`].
    ///
    /// # Errors
    /// With the code that the contract has for it: see [`EngineError::code`].
    pub fn ask<R>(&self, admission: Admission, operation: impl FnMut(&Snapshot) -> R) -> Result<Answer<R>, Refusal> {
        Ok(self.engine().ask(admission, operation)?)
    }

    /// Returns the status of the scope.
    pub fn status(&self) -> Status {
        self.engine().status()
    }

    /// Removes the generations of this scope; those that others read stay until they are done.
    ///
    /// # Errors
    /// When the cache cannot be written.
    pub fn clear(&self) -> Result<Cleared, Refusal> {
        Ok(self.engine().clear()?)
    }

    /// Returns the generations that answers can be compared with, the one that serves first; none where that cannot be known.
    pub fn kept(&self) -> Vec<KeptGeneration> {
        self.cache.kept().unwrap_or_default()
    }

    /// Returns whether an index of this scope was ever published.
    pub fn is_indexed(&self) -> bool {
        !self.kept().is_empty()
    }

    /// Lets go of what is remembered between requests; the next sync makes it again from what is stored.
    pub fn unload(&self) {
        self.engine().unload();
    }

    /// Returns since when nobody was here.
    pub fn last_used(&self) -> Instant {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes note of what a watcher says of itself, for the status.
    pub fn note_watch(&self, health: Option<&Health>) {
        self.engine().note_watch(health);
    }

    /// Starts or ends noting which files and references change from build to build, for [`Self::take_difference`].
    pub fn keep_journal(&self, on: bool) {
        self.engine().keep_journal(on);
    }

    /// Returns what changed in the graph since the last call, as far as this process built or prepared it; `None` at the first.
    pub fn take_difference(&self) -> Option<Difference> {
        self.engine().take_difference()
    }

    /// Starts or ends the log of the queries that builds execute.
    pub fn listen(&self, on: bool) {
        self.engine().listen(on);
    }

    /// Returns the queries executed since the last call, each as `query subject`.
    pub fn take_log(&self) -> Vec<String> {
        self.engine().take_log()
    }

    /// Waits until nobody else is at work.
    fn engine(&self) -> MutexGuard<'_, Engine> {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        self.engine.lock().unwrap_or_else(|poisoned| {
            // Whoever panicked may have left anything half done in memory. What is stored is whole.
            let mut engine = poisoned.into_inner();
            engine.unload();
            self.engine.clear_poison();
            engine
        })
    }
}
