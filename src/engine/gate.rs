//! The gate is the only door to a generation: it pins one, scans, compares, lets the operation run, and scans again.
//!
//! Must not know who asks. Invariant: a [`Snapshot`] exists only while a generation is pinned that equalled the worktree at a scan which
//! began after the request arrived. Its fields are private and nothing outside this module makes one.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tracing::debug_span;

use crate::config::OnStale;
use crate::model::{Cancel, Demand, Fingerprint};
use crate::store::{Generation, StoreError};

use super::EngineError;
use super::baseline::{self, Baseline, Taken};
use super::desk::{Built, Desk};
use super::look::{Checked, Departure, Look};
use super::report::{BuildOutcome, time};

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

/// So often a question is asked that syncs first, however long that takes.
const MOST_ATTEMPTS: u32 = 3;

/// What stands beside the generation that answers.
enum Beside {
    Nothing,
    Baseline(Box<Generation>),
    /// Another generation serves by now.
    Moved,
}

/// Why a request did not come through.
enum Refused {
    /// The worktree was otherwise than the generation says.
    Stale(Departure),
    Error(EngineError),
}

impl Refused {
    fn is_stale(&self) -> bool {
        matches!(self, Self::Stale(_))
    }
}

impl From<EngineError> for Refused {
    fn from(error: EngineError) -> Self {
        Self::Error(error)
    }
}

impl Desk {
    /// Lets `operation` run on a generation that is what the worktree holds, and delivers what it gave if it still is. Requests that come
    /// together share the looks at the worktree, each of which began after they needed it.
    ///
    /// Under [`OnStale::Sync`] a stale or damaged generation is synced first, and the operation run once more when the worktree changes
    /// under it, again and again for as long as the request may take. Nothing is indexed that never was.
    ///
    /// # Errors
    /// With the code that the contract has for it: see [`EngineError::code`].
    pub fn ask<R>(&self, admission: Admission, operation: impl FnMut(&Snapshot) -> R) -> Result<Answer<R>, Arc<EngineError>> {
        self.ask_unless(admission, &Cancel::default(), operation)
    }

    /// As [`Self::ask`]; ends at the next step once who asks goes away.
    pub(super) fn ask_unless<R>(
        &self,
        admission: Admission,
        cancel: &Cancel,
        mut operation: impl FnMut(&Snapshot) -> R,
    ) -> Result<Answer<R>, Arc<EngineError>> {
        if !self.scope().enabled() {
            return Err(EngineError::Disabled.into());
        }
        let _visit = self.visit();
        let mut taken = baseline::take(self.cache(), admission.baseline);
        // Nobody asks a worktree that does not rest for longer.
        let tired = Instant::now() + admission.limit;
        let mut synced: Option<Arc<Built>> = None;
        if admission.on_stale == OnStale::Sync && self.cache().has_damage_mark() {
            synced = Some(self.sync_from(None, tired, cancel)?);
        }
        // What the worktree was after the request arrived, as far as a sync has seen it.
        let mut seen = synced.as_ref().map(|built| Arc::clone(&built.look));
        let mut attempts = 0;
        let mut demand = Demand::new(Instant::now() + admission.limit, cancel);
        loop {
            attempts += 1;
            let syncs = admission.on_stale == OnStale::Sync;
            let may_sync = syncs && (attempts < MOST_ATTEMPTS || Instant::now() < tired);
            let departure = match self.admit(admission, &demand, seen.take(), &mut taken, &mut operation) {
                Ok(Some(answer)) => {
                    return Ok(Answer { synced: synced.map(|built| built.outcome.clone()), ..answer });
                }
                // Someone published meanwhile; what they did need not be done again.
                Ok(None) if attempts < MAX_ROUNDS || syncs && Instant::now() < tired => continue,
                Ok(None) => return Err(EngineError::Busy.into()),
                Err(Refused::Stale(departure)) if may_sync => Some(departure),
                Err(Refused::Error(EngineError::Read(StoreError::Damaged { .. }))) if syncs && attempts < MOST_ATTEMPTS => None,
                Err(Refused::Error(error)) if may_sync && error.is_of_unrest() => None,
                Err(Refused::Stale(_)) if syncs => return Err(EngineError::Busy.into()),
                Err(Refused::Stale(_)) => return Err(EngineError::Changed.into()),
                Err(Refused::Error(error)) => return Err(error.into()),
            };
            let built = self.sync_from(departure, tired, cancel)?;
            seen = Some(Arc::clone(&built.look));
            synced = Some(built);
            demand = Demand::new(Instant::now() + admission.limit, cancel);
        }
    }

    /// Returns `None` when another generation serves than the one that was opened, so that it is to be opened again. A look that was
    /// `seen` since the request arrived is the check before the operation.
    fn admit<R>(
        &self,
        admission: Admission,
        demand: &Demand,
        seen: Option<Arc<Look>>,
        taken: &mut Taken,
        operation: &mut impl FnMut(&Snapshot) -> R,
    ) -> Result<Option<Answer<R>>, Refused> {
        let limit = admission.limit;
        let go_on = || demand.ended().map_or(Ok(()), |ended| Err(EngineError::of_ended(ended, limit)));
        let generation = self.pin()?;
        go_on()?;
        let before = match self.check(&generation, seen, demand, limit) {
            Ok(before) => before,
            Err(refused) => return self.unless_moved(generation, refused),
        };
        let baseline = match self.beside(admission, taken, &generation, demand.last()) {
            Ok(Beside::Nothing) => None,
            Ok(Beside::Baseline(baseline)) => Some(baseline),
            Ok(Beside::Moved) => return Ok(None),
            Err(error) => {
                self.keep_open(generation);
                return Err(error.into());
            }
        };
        if let Err(error) = go_on() {
            self.keep_open(generation);
            return Err(error.into());
        }
        let snapshot = Snapshot { generation, baseline, checked_at: before.began.clone(), checked: before.checked };
        let outcome = self.operate(&snapshot, operation, demand.last());
        let Snapshot { generation, baseline, .. } = snapshot;
        if let Some(baseline) = baseline.filter(|_| admission.baseline.is_named()) {
            *taken = Taken::Held(baseline);
        }
        let after = match outcome {
            Ok(_) => self.check(&generation, None, demand, limit),
            Err(_) => Ok(Arc::clone(&before)),
        };
        self.keep_open(generation);
        let (value, after) = (outcome?, after?);
        go_on()?;
        let mut checked = before.checked;
        checked.elapsed += after.checked.elapsed;
        Ok(Some(Answer { value, checked, synced: None, checked_at: before.began.clone() }))
    }

    /// A generation that is not what the worktree holds is no reason to refuse when another one serves by now.
    fn unless_moved<R>(&self, generation: Generation, refused: Refused) -> Result<Option<R>, Refused> {
        let moved = refused.is_stale() && !self.cache().is_current(&generation).map_err(EngineError::Read)?;
        self.keep_open(generation);
        if moved { Ok(None) } else { Err(refused) }
    }

    /// Opens the generation that serves and compares it with the worktree, for those who only want to know whether it is fresh.
    pub(super) fn pin_checked(&self, deadline: Instant) -> Result<(Generation, Result<Checked, EngineError>), EngineError> {
        let (limit, demand) = (self.scope().limits().query(), Demand::until(deadline));
        for round in 1.. {
            let generation = self.pin()?;
            let refused = match self.check(&generation, None, &demand, limit) {
                Ok(look) => return Ok((generation, Ok(look.checked))),
                Err(refused) => refused,
            };
            let is_last = round == MAX_ROUNDS || !refused.is_stale();
            if is_last || self.cache().is_current(&generation).map_err(EngineError::Read)? {
                let error = match refused {
                    Refused::Stale(_) => EngineError::Changed,
                    Refused::Error(error) => error,
                };
                return Ok((generation, Err(error)));
            }
        }
        Err(EngineError::Busy)
    }

    /// Compares a generation with the whole worktree: as it was `seen`, or as a look from now on finds it.
    fn check(
        &self,
        generation: &Generation,
        seen: Option<Arc<Look>>,
        demand: &Demand,
        limit: Duration,
    ) -> Result<Arc<Look>, Refused> {
        let span = debug_span!("verify", files = tracing::field::Empty, fresh = tracing::field::Empty);
        let _entered = span.enter();
        let look = match seen {
            Some(look) if look.state == generation.identity().state => look,
            _ => self.look(demand, limit)?,
        };
        let fresh = look.state == generation.identity().state;
        span.record("files", look.checked.files);
        span.record("fresh", fresh);
        if fresh { Ok(look) } else { Err(Refused::Stale(Departure { look, from: generation.id() })) }
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
    ) -> Result<R, EngineError> {
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
        Ok(value)
    }
}
