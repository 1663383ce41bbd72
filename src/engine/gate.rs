//! The gate is the only door to a generation: it pins one, scans, compares, lets the operation run, and scans again.
//!
//! Must not know who asks. Invariant: a [`Snapshot`] exists only while a generation is pinned that equalled the worktree at a scan which
//! began after the request arrived. Its fields are private and nothing outside this module makes one.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tracing::debug_span;

use crate::config::OnStale;
use crate::model::{Cancel, Demand, Ended, Fingerprint};
use crate::store::{Generation, StoreError};

use super::EngineError;
use super::answers::Answers;
use super::baseline::{self, Baseline, Taken};
use super::desk::{Built, Desk, Serving};
use super::look::{Checked, Departure, Look};
use super::report::{BuildOutcome, time};

/// A generation that equalled the worktree when the check of this request ran.
#[derive(Debug)]
pub struct Snapshot {
    generation: Generation,
    baseline: Option<Box<Generation>>,
    answers: Arc<Answers>,
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

    /// Returns what was answered to the same question from this generation, where no other one takes part in the answer. A question is
    /// whatever decides about the answer beside the generation.
    pub fn remembered(&self, question: &str) -> Option<Arc<str>> {
        self.answers.find(self.generation.id(), question).filter(|_| self.baseline.is_none())
    }

    /// Remembers an answer for who asks the same again while this generation serves. It must not say when it was checked.
    pub fn remember(&self, question: &str, answer: &Arc<str>) {
        if self.baseline.is_none() {
            self.answers.keep(self.generation.id(), question, answer);
        }
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
        let serving = self.serving()?;
        go_on()?;
        let seen = seen.filter(|look| look.state == serving.state);
        let (before, back) = match seen {
            Some(look) => (look, None),
            None => {
                let look = || self.looks().look_and_return(self.scope(), demand, limit);
                let (look, back) = debug_span!("verify").in_scope(look)?;
                (look, Some(back))
            }
        };
        if let Err(refused) = self.check(serving, &before) {
            return self.unless_moved(serving, refused);
        }
        // Nobody who waits for a look keeps others from their work, or a reader open.
        let place =
            self.places().enter(demand).ok_or_else(|| EngineError::of_ended(demand.ended().unwrap_or(Ended::Late), limit))?;
        let generation = self.pin()?;
        if generation.id() != serving.id {
            self.keep_open(generation);
            return Ok(None);
        }
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
        let answers = Arc::clone(self.answers());
        let snapshot = Snapshot { generation, baseline, answers, checked_at: before.began.clone(), checked: before.checked };
        let outcome = self.operate(&snapshot, operation, demand.last());
        let Snapshot { generation, baseline, .. } = snapshot;
        if let Some(baseline) = baseline.filter(|_| admission.baseline.is_named()) {
            *taken = Taken::Held(baseline);
        }
        self.keep_open(generation);
        drop(place);
        let value = outcome?;
        let look = || match back {
            Some(back) => self.looks().look_again(back, self.scope(), demand, limit),
            None => self.look(demand, limit),
        };
        let after = debug_span!("verify").in_scope(look)?;
        self.check(serving, &after)?;
        go_on()?;
        let mut checked = before.checked;
        checked.elapsed += after.checked.elapsed;
        Ok(Some(Answer { value, checked, synced: None, checked_at: before.began.clone() }))
    }

    /// A generation that is not what the worktree holds is no reason to refuse when another one serves by now.
    fn unless_moved<R>(&self, checked: Serving, refused: Refused) -> Result<Option<R>, Refused> {
        let moved = refused.is_stale() && !self.cache().serves(checked.id).map_err(EngineError::Read)?;
        if moved { Ok(None) } else { Err(refused) }
    }

    /// Opens the generation that serves and compares it with the worktree, for those who only want to know whether it is fresh.
    pub(super) fn pin_checked(&self, deadline: Instant) -> Result<(Generation, Result<Checked, EngineError>), EngineError> {
        let (limit, demand) = (self.scope().limits().query(), Demand::until(deadline));
        for round in 1.. {
            let serving = self.serving()?;
            let look = self.look(&demand, limit);
            let checked = look.map_err(Refused::Error).and_then(|look| self.check(serving, &look).map(|()| look.checked));
            let generation = self.pin()?;
            if generation.id() == serving.id || round == MAX_ROUNDS {
                let checked = match checked {
                    // What was checked is not what is shown.
                    _ if generation.id() != serving.id => Err(EngineError::Busy),
                    Ok(checked) => Ok(checked),
                    Err(Refused::Stale(_)) => Err(EngineError::Changed),
                    Err(Refused::Error(error)) => Err(error),
                };
                return Ok((generation, checked));
            }
            self.keep_open(generation);
        }
        Err(EngineError::Busy)
    }

    /// Compares a generation with the whole worktree, as a look found it.
    fn check(&self, generation: Serving, look: &Arc<Look>) -> Result<(), Refused> {
        let fresh = look.state == generation.state;
        tracing::debug!(files = look.checked.files, fresh, "verified");
        if fresh { Ok(()) } else { Err(Refused::Stale(Departure { look: Arc::clone(look), from: generation.id })) }
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
