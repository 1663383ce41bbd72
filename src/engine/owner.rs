//! The engine of one scope: it owns the database and everything else a process keeps between builds.
//!
//! Must not run on two threads at once, which `&mut self` sees to. Invariant: the database is written by builds and preparations alone.

use std::sync::Arc;
use std::time::Duration;

use crate::model::{Cancel, Demand};
use crate::parse::Parser;
use crate::store::{Cache, Generation};
use crate::watch::Hint;

use super::EngineError;
use super::ahead::{self, Prepared};
use super::desk::Built;
use super::journal::Difference;
use super::look::{Departure, Looks};
use super::scope::Scope;
use super::sync::{Basis, Memory, build};

/// Builds the generations of one scope.
#[derive(Debug)]
pub(super) struct Engine {
    scope: Arc<Scope>,
    cache: Cache,
    looks: Arc<Looks>,
    /// Lives longer than the engine: its processes stay warm from scope to scope.
    parser: Arc<dyn Parser>,
    /// Made by the first build of this process.
    memory: Option<Memory>,
    listening: bool,
    journaling: bool,
}

/// What a build is given beside what the engine keeps.
#[derive(Debug)]
pub(super) struct Order {
    pub basis: Basis,
    /// Who waits for it.
    pub demand: Demand,
    /// The time that was given for it.
    pub limit: Duration,
    /// The generation that serves, if somebody has it open; its lease goes with the build.
    pub open: Option<Generation>,
    /// How the worktree was found to differ from the generation that served a moment ago: a place to begin.
    pub departure: Option<Departure>,
}

impl Engine {
    pub fn new(scope: Arc<Scope>, cache: Cache, looks: Arc<Looks>, parser: Arc<dyn Parser>) -> Self {
        Self { scope, cache, looks, parser, memory: None, listening: false, journaling: false }
    }

    /// Builds a generation, unless the published one is what the worktree holds.
    ///
    /// # Errors
    /// When the worktree cannot be read or keeps changing, the store fails, or nobody waits for it any more; what was published stays.
    pub fn build(&mut self, order: Order) -> Result<Built, EngineError> {
        if !self.scope.enabled() {
            return Err(EngineError::Disabled);
        }
        if order.basis == Basis::Nothing {
            self.memory = None;
        }
        self.forget_what_is_gone();
        let memory = Self::remember(&mut self.memory, &self.scope, self.listening, self.journaling);
        build(&self.scope, &self.cache, &self.looks, self.parser.as_ref(), memory, order)
    }

    /// Begins with a new database when most of what the old one knows is of files that are gone: it cannot let go of them. Whoever follows
    /// what changes keeps the old one, since to a new one everything is new.
    fn forget_what_is_gone(&mut self) {
        if !self.journaling && self.memory.as_ref().is_some_and(|memory| memory.database.is_overgrown()) {
            tracing::debug!("most files that the database knows are gone; it is made anew");
            self.memory = None;
        }
    }

    /// Returns whether nothing is remembered of the worktree: no build had anything to do yet, and nothing was prepared.
    pub fn is_cold(&self) -> bool {
        self.memory.as_ref().is_none_or(|memory| memory.database.is_empty())
    }

    /// Gives back the generation that the last build found to serve, and to be what the worktree holds.
    pub fn take_open(&mut self) -> Option<Generation> {
        self.memory.as_mut().and_then(|memory| memory.open.take())
    }

    fn remember<'m>(memory: &'m mut Option<Memory>, scope: &Scope, listening: bool, journaling: bool) -> &'m mut Memory {
        memory.get_or_insert_with(|| {
            let mut memory = Memory::new(scope);
            memory.listen(listening);
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
        self.forget_what_is_gone();
        if self.is_cold() && *hint != Hint::Rescan {
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

    /// Lets go of what is remembered between requests; the next sync makes it again from what is stored.
    pub fn unload(&mut self) {
        self.memory = None;
    }

    /// Starts or ends the log of the queries that builds execute.
    pub fn listen(&mut self, on: bool) {
        self.listening = on;
        if let Some(memory) = &mut self.memory {
            memory.listen(on);
        }
    }

    /// Returns the queries executed since the last call, each as `query subject`.
    pub fn take_log(&mut self) -> Vec<String> {
        self.memory.as_mut().map(|memory| memory.database.take_log()).unwrap_or_default()
    }
}
