//! The gate is the only door to a generation: it pins one, scans, compares, lets the operation run, and scans again.
//!
//! Invariant: a [`Snapshot`] exists only while a generation is pinned that equalled the worktree at a scan which began after the request
//! arrived. Its fields are private and nothing outside this module makes one.

use std::time::{Duration, Instant};

use tracing::debug_span;

use crate::config::OnStale;
use crate::model::Fingerprint;
use crate::store::{Generation, StoreError};

use super::EngineError;
use super::baseline::{self, Baseline, Taken};
use super::owner::Engine;
use super::report::{BuildOutcome, now, time};
use super::scope::Scope;

/// A generation that equalled the worktree when the check of this request ran.
#[derive(Debug)]
pub struct Snapshot {
    generation: Generation,
    baseline: Option<Box<Generation>>,
    checked_at: String,
    checked: Checked,
}

impl Snapshot {
    pub fn generation(&self) -> &Generation {
        &self.generation
    }

    /// Returns the generation to compare with, where the request asked for one.
    pub fn baseline(&self) -> Option<&Generation> {
        self.baseline.as_deref()
    }

    /// Returns when the baseline was built, as [`Self::checked_at`] is written; `None` where that is not known.
    pub fn baseline_built_at(&self) -> Option<String> {
        self.baseline.as_ref().and_then(|baseline| time(baseline.built()))
    }

    /// Returns when the check began, RFC 3339 with microseconds and offset `+00:00`.
    pub fn checked_at(&self) -> &str {
        &self.checked_at
    }

    /// Returns what the check before the operation went through.
    pub fn checked(&self) -> Checked {
        self.checked
    }

    pub fn scope_id(&self) -> &str {
        &self.generation.identity().scope_id
    }
}

/// How much a check looked at, and how long it took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// Included files, all of them read and hashed.
    pub files: u64,
    pub bytes: u64,
    pub elapsed: Duration,
}

/// What a request asks of the gate.
#[derive(Clone, Copy, Debug)]
pub struct Admission {
    /// What happens when the worktree differs from the generation.
    pub on_stale: OnStale,
    /// The only generation that may answer.
    pub expected_fingerprint: Option<Fingerprint>,
    /// What the answer compares with.
    pub baseline: Baseline,
    /// How long the checks and the operation may take together; a sync in between has `build_seconds` of its own.
    pub limit: Duration,
}

/// What came through the gate.
#[derive(Debug)]
pub struct Answer<R> {
    pub value: R,
    /// Both checks together.
    pub checked: Checked,
    /// The build that went before, when the scope was stale.
    pub synced: Option<BuildOutcome>,
    pub checked_at: String,
}

/// Most times that a generation is looked for while others publish.
const MAX_ROUNDS: u32 = 8;

/// What stands beside the generation that answers.
enum Beside {
    Nothing,
    Baseline(Box<Generation>),
    /// Another generation serves by now.
    Moved,
}

impl Engine {
    /// Lets `operation` run on a generation that is what the worktree holds, and delivers what it gave if it still is.
    ///
    /// Under [`OnStale::Sync`] a stale or damaged generation is synced first, and the operation run once more when the worktree changes
    /// under it. Nothing is indexed that never was.
    ///
    /// # Errors
    /// With the code that the contract has for it: see [`EngineError::code`].
    pub fn ask<R>(&mut self, admission: Admission, mut operation: impl FnMut(&Snapshot) -> R) -> Result<Answer<R>, EngineError> {
        if !self.scope().enabled() {
            return Err(EngineError::Disabled);
        }
        let mut taken = baseline::take(self.cache(), admission.baseline);
        let mut synced: Option<BuildOutcome> = None;
        if admission.on_stale == OnStale::Sync && self.cache().has_damage_mark() {
            synced = Some(self.sync()?);
        }
        let mut attempts = 0;
        let mut deadline = Instant::now() + admission.limit;
        loop {
            attempts += 1;
            let may_sync = admission.on_stale == OnStale::Sync && attempts < 3;
            match self.admit(admission, deadline, &mut taken, &mut operation) {
                Ok(Some(answer)) => return Ok(Answer { synced, ..answer }),
                // Someone published meanwhile; what they did need not be done again.
                Ok(None) if attempts < MAX_ROUNDS => {}
                Ok(None) => return Err(EngineError::Busy),
                Err(EngineError::Changed | EngineError::Read(StoreError::Damaged { .. })) if may_sync => {
                    let outcome = self.sync()?;
                    synced = Some(outcome);
                    deadline = Instant::now() + admission.limit;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Returns `None` when another generation serves than the one that was opened, so that it is to be opened again.
    fn admit<R>(
        &mut self,
        admission: Admission,
        deadline: Instant,
        taken: &mut Taken,
        operation: &mut impl FnMut(&Snapshot) -> R,
    ) -> Result<Option<Answer<R>>, EngineError> {
        let checked_at = now();
        let limit = admission.limit;
        let in_time = || if Instant::now() > deadline { Err(EngineError::Timeout { limit }) } else { Ok(()) };
        let generation = self.pin()?;
        in_time()?;
        let mut checked = match check(self.scope(), &generation, deadline) {
            Ok(checked) => checked,
            Err(error) => {
                self.keep_open(generation);
                return Err(error);
            }
        };
        let baseline = match self.beside(admission, taken, &generation, deadline) {
            Ok(Beside::Nothing) => None,
            Ok(Beside::Baseline(baseline)) => Some(baseline),
            Ok(Beside::Moved) => return Ok(None),
            Err(error) => {
                self.keep_open(generation);
                return Err(error);
            }
        };
        let snapshot = Snapshot { generation, baseline, checked_at: checked_at.clone(), checked };
        let outcome = self.operate(&snapshot, operation, deadline);
        let Snapshot { generation, baseline, .. } = snapshot;
        self.keep_open(generation);
        if let Some(baseline) = baseline.filter(|_| admission.baseline.is_named()) {
            *taken = Taken::Held(baseline);
        }
        let (value, after) = outcome?;
        in_time()?;
        checked.elapsed += after.elapsed;
        Ok(Some(Answer { value, checked, synced: None, checked_at }))
    }

    /// Finds what a checked generation is compared with, once it is known to be the one that the request expects.
    fn beside(
        &self,
        admission: Admission,
        taken: &mut Taken,
        generation: &Generation,
        deadline: Instant,
    ) -> Result<Beside, EngineError> {
        let current = generation.identity();
        if admission.expected_fingerprint.is_some_and(|expected| expected != current.fingerprint) {
            return Err(EngineError::Fingerprint);
        }
        let found = match admission.baseline {
            Baseline::None => return Ok(Beside::Nothing),
            Baseline::Previous => match baseline::open_previous(self.cache(), generation)? {
                Some(found) => found,
                None => return Ok(Beside::Moved),
            },
            Baseline::Kept(_) | Baseline::First => match std::mem::replace(taken, Taken::Nothing) {
                Taken::Held(found) => found,
                Taken::Failed(error) => return Err(error),
                Taken::Nothing => return Err(EngineError::Busy),
            },
        };
        baseline::check(self.scope(), found.identity(), current, deadline)?;
        Ok(Beside::Baseline(found))
    }

    fn operate<R>(
        &self,
        snapshot: &Snapshot,
        operation: &mut impl FnMut(&Snapshot) -> R,
        deadline: Instant,
    ) -> Result<(R, Checked), EngineError> {
        let marked = self.cache().has_damage_mark();
        let read_until = |deadline| {
            let both = std::iter::once(&snapshot.generation).chain(snapshot.baseline.as_deref());
            both.for_each(|generation| generation.read_until(deadline));
        };
        // Whatever the operation makes of a read that came too late, the check below does not deliver it.
        read_until(Some(deadline));
        let value = operation(snapshot);
        read_until(None);
        if !marked && self.cache().has_damage_mark() {
            // The operation met stored source that is not what it was; whatever it made of that is not delivered.
            return Err(EngineError::Read(StoreError::Damaged { part: "source".to_owned() }));
        }
        let after = check(self.scope(), &snapshot.generation, deadline)?;
        Ok((value, after))
    }
}

/// Reads the whole worktree and compares it with a generation.
pub(super) fn check(scope: &Scope, generation: &Generation, deadline: Instant) -> Result<Checked, EngineError> {
    let span = debug_span!("verify", files = tracing::field::Empty, fresh = tracing::field::Empty);
    let _entered = span.enter();
    let started = Instant::now();
    let capture = scope.capture(deadline, &|_, _, _| {})?;
    let fresh = scope.state(&capture) == generation.identity().state;
    let (files, bytes) = capture.included();
    span.record("files", files);
    span.record("fresh", fresh);
    if fresh { Ok(Checked { files, bytes, elapsed: started.elapsed() }) } else { Err(EngineError::Changed) }
}
