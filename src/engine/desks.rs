//! The desks of all scopes that a process serves, and the parsers that they share.
//!
//! Must not know what happens at a desk. Invariant: there is one desk for a scope and its configuration, however many ask for it, until
//! it is let go; who holds it by then goes on with it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::config::{self, Config, ParserHost};
use crate::parse::{self, Parser};

use super::EngineError;
use super::desk::Desk;

/// Finds the desk of a scope, or sets it up.
#[derive(Debug)]
pub struct Desks {
    /// No more than so many are kept.
    most: usize,
    recording: bool,
    watching: bool,
    open: Mutex<Vec<Open>>,
    parsers: Mutex<Vec<(ParserHost, Arc<dyn Parser>)>>,
}

#[derive(Debug)]
struct Open {
    config: Config,
    scope: config::Scope,
    desk: Arc<Desk>,
}

impl Desks {
    /// Returns a place for up to `most` desks, of which the one that was used longest ago makes room for another.
    pub fn new(most: usize) -> Self {
        Self { most, recording: false, watching: false, open: Mutex::default(), parsers: Mutex::default() }
    }

    /// Returns the same with desks that keep a log of the queries their builds execute.
    #[must_use]
    pub fn recording(self) -> Self {
        Self { recording: true, ..self }
    }

    /// Returns the same with desks whose worktrees are watched, as their configuration says.
    #[must_use]
    pub fn watching(self) -> Self {
        Self { watching: true, ..self }
    }

    /// Returns the desk of a scope.
    ///
    /// # Errors
    /// When its root cannot be read.
    pub fn desk(&self, config: &Config, scope: &config::Scope, host: &ParserHost) -> Result<Arc<Desk>, EngineError> {
        let config = &config.without_visitors();
        let mut open = self.open();
        if let Some(found) = open.iter().find(|known| known.scope == *scope && known.config == *config) {
            let found = Arc::clone(&found.desk);
            follow(&open, scope, &found);
            return Ok(found);
        }
        let desk = Arc::new(Desk::open(config, scope.clone(), self.parser(host))?);
        desk.listen(self.recording);
        if self.watching
            && let Err(error) = desk.watch_with(&config.watch, config.daemon.auto_sync())
        {
            tracing::warn!(%error, "a worktree is not watched");
        }
        while open.len() >= self.most.max(1) {
            let oldest = open.iter().enumerate().min_by_key(|(_, known)| known.desk.last_used()).map(|(index, _)| index);
            open.remove(oldest.unwrap_or_default());
        }
        open.push(Open { config: config.clone(), scope: scope.clone(), desk: Arc::clone(&desk) });
        follow(&open, scope, &desk);
        Ok(desk)
    }

    /// Returns the parser of a host, whose processes stay warm from build to build.
    pub fn parser(&self, host: &ParserHost) -> Arc<dyn Parser> {
        let mut parsers = self.parsers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, parser)) = parsers.iter().find(|(known, _)| known == host) {
            return Arc::clone(parser);
        }
        let parser = parse::parser(host);
        parsers.push((host.clone(), Arc::clone(&parser)));
        parser
    }

    /// Returns the desks that are kept.
    pub fn all(&self) -> Vec<Arc<Desk>> {
        self.open().iter().map(|known| Arc::clone(&known.desk)).collect()
    }

    /// Lets go of the desks whose root is not there any more. Returns how many there were.
    pub fn drop_gone(&self) -> usize {
        self.retain(|desk| desk.scope().root().try_exists().unwrap_or(true))
    }

    /// Lets go of the desks at which nobody was for so long. Returns how many there were.
    pub fn drop_unused(&self, limit: Duration) -> usize {
        let now = Instant::now();
        self.retain(|desk| now.saturating_duration_since(desk.last_used()) < limit)
    }

    fn retain(&self, mut is_kept: impl FnMut(&Desk) -> bool) -> usize {
        let mut gone = Vec::new();
        let mut open = self.open();
        for known in std::mem::take(&mut *open) {
            if is_kept(&known.desk) { open.push(known) } else { gone.push(known) }
        }
        let is_deserted = open.is_empty() && !gone.is_empty();
        // What ends with a desk may take a while.
        drop(open);
        if is_deserted {
            // Nobody needs their processes before somebody comes again.
            drop(std::mem::take(&mut *self.parsers.lock().unwrap_or_else(PoisonError::into_inner)));
        }
        gone.len()
    }

    fn open(&self) -> MutexGuard<'_, Vec<Open>> {
        // Each change of it is whole.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Lets the desk that was asked last lead, of all that a scope has: what an older configuration says is not done unasked any more.
fn follow(open: &[Open], scope: &config::Scope, last: &Arc<Desk>) {
    let others = open.iter().filter(|known| known.scope.id == scope.id && known.scope.root == scope.root);
    others.for_each(|known| known.desk.lead(Arc::ptr_eq(&known.desk, last)));
}
