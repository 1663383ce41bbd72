//! Looks at the whole worktree, which the checks of many requests and builds share.
//!
//! Must not know what a look is compared with. Invariant: whoever asks for a look is given one that began after it asked.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::model::{ContentHash, Demand, Ended, GenerationId};
use crate::workspace::{Capture, Spare, Visitor};

use super::EngineError;
use super::progress::Step;
use super::report::now;
use super::scope::Scope;
use super::turnstile::{self, Turn, Turnstile};

/// How much a check looked at, and how long it took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// Included files, all of them read and hashed but for those whose seals stood.
    pub files: u64,
    pub bytes: u64,
    /// How many were not read, because their seals stood.
    pub sealed: u64,
    pub elapsed: Duration,
}

/// What the worktree was at one time, by the check that the scope asks for.
#[derive(Debug)]
pub(super) struct Look {
    pub capture: Capture,
    /// See [`Scope::state`].
    pub state: ContentHash,
    pub checked: Checked,
    /// When it began, RFC 3339 with microseconds and offset `+00:00`.
    pub began: String,
}

impl Look {
    /// Reads the whole worktree, while that is wanted, as a step of something, and gives included files to `visit` unless `spare` says
    /// otherwise: see [`Scope::capture`].
    pub fn take(scope: &Scope, step: Step, demand: &Demand, spare: &Spare<'_>, visit: &Visitor<'_>) -> Result<Self, EngineError> {
        let (began, started) = (now(), Instant::now());
        let capture = scope.capture(step, demand, spare, visit)?;
        let state = scope.state(&capture);
        let (files, bytes) = capture.included();
        let checked = Checked { files, bytes, sealed: capture.sealed, elapsed: started.elapsed() };
        Ok(Self { capture, state, checked, began })
    }
}

/// A look that saw something else than a generation holds.
#[derive(Debug)]
pub(super) struct Departure {
    pub look: Arc<Look>,
    pub from: GenerationId,
}

/// What a look came to, for all who share it.
type Shared = Result<Arc<Look>, Arc<EngineError>>;

/// The looks at one worktree: one at a time.
#[derive(Debug, Default)]
pub(super) struct Looks {
    turnstile: Turnstile<(), Shared>,
}

/// Says that whoever was given a look comes back for another one as soon as its own work is done.
#[derive(Debug)]
pub(super) struct Return<'l>(turnstile::Return<'l, (), Shared>);

impl Looks {
    /// Takes a look, or shares one that begins from now on; `limit` is the time that was given for it.
    pub fn look(&self, scope: &Scope, demand: &Demand, limit: Duration) -> Result<Arc<Look>, EngineError> {
        let shared = self.turnstile.share((), Turn::AtOnce, demand, take(scope));
        shared.ok_or_else(|| given_up(demand, limit))?.map_err(EngineError::of_shared)
    }

    /// Takes the first one of two looks.
    pub fn look_and_return(
        &self,
        scope: &Scope,
        demand: &Demand,
        limit: Duration,
    ) -> Result<(Arc<Look>, Return<'_>), EngineError> {
        let shared = self.turnstile.share_and_return((), Turn::AtOnce, demand, take(scope));
        let (shared, back) = shared.ok_or_else(|| given_up(demand, limit))?;
        Ok((shared.map_err(EngineError::of_shared)?, Return(back)))
    }

    /// Takes the second one.
    pub fn look_again(
        &self,
        Return(back): Return<'_>,
        scope: &Scope,
        demand: &Demand,
        limit: Duration,
    ) -> Result<Arc<Look>, EngineError> {
        let shared = self.turnstile.share_again(back, (), Turn::AtOnce, demand, take(scope));
        shared.ok_or_else(|| given_up(demand, limit))?.map_err(EngineError::of_shared)
    }

    /// Returns how many wait for a look or take one.
    #[cfg(test)]
    pub fn present(&self) -> usize {
        self.turnstile.present()
    }
}

/// Returns how a look is taken that many may share.
fn take(scope: &Scope) -> impl FnOnce(Demand) -> Shared {
    |wanted| Look::take(scope, Step::Check, &wanted, &|_, _| true, &|_, _, _| {}).map(Arc::new).map_err(Arc::new)
}

fn given_up(demand: &Demand, limit: Duration) -> EngineError {
    EngineError::of_ended(demand.ended().unwrap_or(Ended::Late), limit)
}
