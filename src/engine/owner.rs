//! The engine of one scope: it owns the database and everything else a process keeps between requests.
//!
//! Must not run on two threads at once, which `&mut self` sees to. Invariant: the database is written by builds alone.

use std::sync::Arc;

use crate::config::{self, Config};
use crate::parse::Parser;
use crate::store::{Cache, Generation, KeptGeneration};

use super::EngineError;
use super::report::{BuildOutcome, Cleared};
use super::scope::Scope;
use super::sync::{Basis, Memory, build};

/// Everything that answers for one scope.
#[derive(Debug)]
pub struct Engine {
    scope: Scope,
    cache: Cache,
    /// Lives longer than the engine: its processes stay warm from scope to scope.
    parser: Arc<dyn Parser>,
    /// Made by the first build of this process.
    memory: Option<Memory>,
    /// The generation that was checked against its seal last, held open.
    open: Option<Generation>,
    listening: bool,
}

impl Engine {
    /// Opens the scope that the configuration gave, to be parsed by `parser`; nothing is read of its cache yet.
    ///
    /// # Errors
    /// When its root cannot be read.
    pub fn open(config: &Config, scope: config::Scope, parser: Arc<dyn Parser>) -> Result<Self, EngineError> {
        let scope = Scope::open(config, scope)?;
        let cache = Cache::new(scope.cache_dir(), scope.binding_id(), scope.limits().max_cache_bytes);
        Ok(Self { scope, cache, parser, memory: None, open: None, listening: false })
    }

    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    /// Builds a generation from the worktree alone: reads neither the facts cache nor the generation before.
    ///
    /// # Errors
    /// As [`Self::sync`].
    pub fn index(&mut self) -> Result<BuildOutcome, EngineError> {
        self.memory = None;
        self.build(Basis::Nothing)
    }

    /// Brings the published generation up to date; builds the first one when there is none.
    ///
    /// # Errors
    /// When the worktree cannot be read or keeps changing, the store fails, or `build_seconds` pass; what was published stays.
    pub fn sync(&mut self) -> Result<BuildOutcome, EngineError> {
        self.build(Basis::Everything)
    }

    /// Checks everything that is stored, lets go of what is damaged, and brings the index up to date as [`Self::sync`] does.
    ///
    /// # Errors
    /// As [`Self::sync`].
    pub fn verify_and_sync(&mut self) -> Result<BuildOutcome, EngineError> {
        self.build(Basis::Verified)
    }

    fn build(&mut self, basis: Basis) -> Result<BuildOutcome, EngineError> {
        if !self.scope.enabled() {
            return Err(EngineError::Disabled);
        }
        let open = self.open.take();
        let memory = self.memory.get_or_insert_with(|| {
            let mut memory = Memory::new(&self.scope);
            memory.database.listen(self.listening);
            memory
        });
        // A build upon it needs no other check of it; else it is let go, since its file may go with the generation.
        memory.open = open.filter(|_| basis != Basis::Nothing);
        build(&self.scope, &self.cache, self.parser.as_ref(), memory, basis)
    }

    /// Removes the generations of this scope; those that others read stay until they are done.
    ///
    /// # Errors
    /// When the cache cannot be written.
    pub fn clear(&mut self) -> Result<Cleared, EngineError> {
        self.open = None;
        self.memory = None;
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
