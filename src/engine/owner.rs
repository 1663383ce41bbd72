//! The engine of one scope: it owns the database and everything else a process keeps between requests.
//!
//! Must not run on two threads at once, which `&mut self` sees to. Invariant: the database is written by builds alone.

use std::sync::Arc;
use std::time::Duration;

use crate::config::{self, Config};
use crate::parse::Parser;
use crate::store::{Cache, Generation, KeptGeneration};
use crate::watch::{Health, Hint};

use super::EngineError;
use super::ahead::{self, Cancel, Prepared};
use super::journal::Difference;
use super::report::{BuildOutcome, Cleared};
use super::scope::Scope;
use super::sync::{Basis, Memory, build};

/// Everything that answers for one scope.
#[derive(Debug)]
pub struct Engine {
    scope: Arc<Scope>,
    cache: Cache,
    /// Lives longer than the engine: its processes stay warm from scope to scope.
    parser: Arc<dyn Parser>,
    /// Made by the first build of this process.
    memory: Option<Memory>,
    /// The generation that was checked against its seal last, held open.
    open: Option<Generation>,
    listening: bool,
    journaling: bool,
    /// What a watcher of the worktree said of itself last.
    watch: Option<String>,
}

impl Engine {
    /// Opens the scope that the configuration gave, to be parsed by `parser`; nothing is read of its cache yet.
    ///
    /// # Errors
    /// When its root cannot be read.
    pub fn open(config: &Config, scope: config::Scope, parser: Arc<dyn Parser>) -> Result<Self, EngineError> {
        let scope = Arc::new(Scope::open(config, scope)?);
        let cache = Cache::new(scope.cache_dir(), scope.binding_id(), scope.limits().max_cache_bytes);
        Ok(Self { scope, cache, parser, memory: None, open: None, listening: false, journaling: false, watch: None })
    }

    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    pub(super) fn shared_scope(&self) -> Arc<Scope> {
        Arc::clone(&self.scope)
    }

    /// Builds a generation from the worktree alone: reads neither the facts cache nor the generation before.
    ///
    /// # Errors
    /// As [`Self::sync`].
    pub fn index(&mut self) -> Result<BuildOutcome, EngineError> {
        self.memory = None;
        self.build(Basis::Nothing, self.scope.limits().build())
    }

    /// Brings the published generation up to date; builds the first one when there is none.
    ///
    /// # Errors
    /// When the worktree cannot be read or keeps changing, the store fails, or `build_seconds` pass; what was published stays.
    pub fn sync(&mut self) -> Result<BuildOutcome, EngineError> {
        self.sync_within(self.scope.limits().build())
    }

    /// Syncs as [`Self::sync`] does, within `limit` and `build_seconds`; waiting for another builder counts.
    ///
    /// # Errors
    /// As [`Self::sync`].
    pub fn sync_within(&mut self, limit: Duration) -> Result<BuildOutcome, EngineError> {
        self.build(Basis::Everything, limit.min(self.scope.limits().build()))
    }

    /// Checks everything that is stored, lets go of what is damaged, and brings the index up to date as [`Self::sync`] does.
    ///
    /// # Errors
    /// As [`Self::sync`].
    pub fn verify_and_sync(&mut self) -> Result<BuildOutcome, EngineError> {
        self.build(Basis::Verified, self.scope.limits().build())
    }

    fn build(&mut self, basis: Basis, limit: Duration) -> Result<BuildOutcome, EngineError> {
        if !self.scope.enabled() {
            return Err(EngineError::Disabled);
        }
        let open = self.open.take();
        let memory = Self::remember(&mut self.memory, &self.scope, self.listening, self.journaling);
        // A build upon it needs no other check of it; else it is let go, since its file may go with the generation.
        memory.open = open.filter(|_| basis != Basis::Nothing);
        build(&self.scope, &self.cache, self.parser.as_ref(), memory, basis, limit)
    }

    fn remember<'m>(memory: &'m mut Option<Memory>, scope: &Scope, listening: bool, journaling: bool) -> &'m mut Memory {
        memory.get_or_insert_with(|| {
            let mut memory = Memory::new(scope);
            memory.database.listen(listening);
            memory.journal.keep(journaling);
            memory
        })
    }

    /// Does ahead what a sync would have to do about what a hint names: reads it, makes its facts, and resolves what they touch. Nothing is
    /// published, and no answer is other than without it. A hint of some paths is worth nothing before this process has built or prepared
    /// the whole, and is passed over then.
    ///
    /// # Errors
    /// When the worktree cannot be read, or nothing can be parsed or resolved; a sync will say so, too.
    pub fn prepare(&mut self, hint: &Hint, cancel: &Cancel) -> Result<Prepared, EngineError> {
        if !self.scope.enabled() {
            return Err(EngineError::Disabled);
        }
        if self.memory.is_none() && *hint != Hint::Rescan {
            return Ok(Prepared::default());
        }
        let memory = Self::remember(&mut self.memory, &self.scope, self.listening, self.journaling);
        ahead::prepare(&self.scope, &self.cache, self.parser.as_ref(), memory, hint, cancel)
    }

    /// Starts or ends noting which files and references change from build to build, for [`Self::take_difference`].
    pub fn keep_journal(&mut self, on: bool) {
        self.journaling = on;
        if let Some(memory) = &mut self.memory {
            memory.journal.keep(on);
        }
    }

    /// Returns what changed in the graph since the last call, as far as this process built or prepared it; `None` at the first.
    pub fn take_difference(&mut self) -> Option<Difference> {
        self.memory.as_mut().and_then(|memory| memory.journal.take())
    }

    /// Returns whether an index of this scope was ever published.
    pub fn is_indexed(&self) -> bool {
        !self.kept().is_empty()
    }

    /// Takes note of what a watcher says of itself, for the status.
    pub fn note_watch(&mut self, health: Option<&Health>) {
        self.watch = health.map(Health::to_string);
    }

    pub(super) fn watch(&self) -> String {
        self.watch.clone().unwrap_or_else(|| "none".to_owned())
    }

    /// Lets go of what is remembered between requests; the next sync makes it again from what is stored.
    pub fn unload(&mut self) {
        self.open = None;
        self.memory = None;
    }

    /// Removes the generations of this scope; those that others read stay until they are done.
    ///
    /// # Errors
    /// When the cache cannot be written.
    pub fn clear(&mut self) -> Result<Cleared, EngineError> {
        self.unload();
        let retained = self.cache.clear().map_err(EngineError::Write)?;
        Ok(Cleared { status: "cleared", retained_reader_generations: retained })
    }

    /// Returns the generations that answers can be compared with, the one that serves first; none where that cannot be known.
    pub fn kept(&self) -> Vec<KeptGeneration> {
        self.cache.kept().unwrap_or_default()
    }

    /// Starts or ends the log of the queries that builds execute.
    pub fn listen(&mut self, on: bool) {
        self.listening = on;
        if let Some(memory) = &mut self.memory {
            memory.database.listen(on);
        }
    }

    /// Returns the queries executed since the last call, each as `query subject`.
    pub fn take_log(&mut self) -> Vec<String> {
        self.memory.as_mut().map(|memory| memory.database.take_log()).unwrap_or_default()
    }

    /// Opens the published generation, or takes the one that is open if it is still that; [`Self::keep_open`] puts it back.
    pub(super) fn pin(&mut self) -> Result<Generation, EngineError> {
        if let Some(open) = self.open.take()
            && self.cache.is_current(&open).map_err(EngineError::Read)?
        {
            return Ok(open);
        }
        self.cache.pin().map_err(EngineError::Read)
    }

    /// Keeps a generation open for the next request.
    pub(super) fn keep_open(&mut self, generation: Generation) {
        self.open = Some(generation);
    }

    pub(super) fn cache(&self) -> &Cache {
        &self.cache
    }
}
