//! The desk of a scope: everyone who wants something of it comes here, from as many threads as there are.
//!
//! Must not know who asks. Invariant: the engine behind it is used by one thread at a time, and one that panicked leaves no half-made
//! memory to the next; a build is shared only by requests that came before it began.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::config::{self, Config, Watch};
use crate::model::{Cancel, ContentHash, Demand, Ended, GenerationId};
use crate::parse::Parser;
use crate::store::{Cache, Generation, KeptGeneration, StoreError};
use crate::watch::{Health, Hint, WatchedTree};

use super::EngineError;
use super::ahead::Prepared;
use super::answers::Answers;
use super::attendant::{Attendant, Begin};
use super::journal::Difference;
use super::look::{Departure, Look, Looks};
use super::owner::{Engine, Order};
use super::places::Places;
use super::progress::Progress;
use super::report::{BuildOutcome, BuildStatus, Cleared};
use super::scope::Scope;
use super::sync::Basis;
use super::turnstile::{Turn, Turnstile};

/// Why a request was refused; several that were answered together share it.
type Refusal = Arc<EngineError>;

/// Bytes of answers that are remembered for who asks the same again.
const MOST_REMEMBERED: usize = 4 << 20;

/// Time between the beginnings of two syncs while requests for them come close on each other, as of hooks that fire all at once.
const PACE: Duration = Duration::from_millis(500);

/// How long after a build that met a worktree which does not rest it is tried again, at first; the wait doubles.
const UNREST: Duration = Duration::from_millis(50);

/// Owns the engine of one scope, and lets many threads use it.
#[derive(Debug)]
pub struct Desk {
    scope: Arc<Scope>,
    cache: Cache,
    engine: Mutex<Engine>,
    builds: Turnstile<Basis, Result<Arc<Built>, Refusal>>,
    looks: Arc<Looks>,
    /// What serves, as it was found last. Held while it is opened anew, so that it is opened once for all who find another one.
    serving: Mutex<Option<Serving>>,
    /// Readers of the generation that served when they were put here, each checked against its seal; as many as can be used at once.
    open: Mutex<Vec<Generation>>,
    places: Places,
    answers: Arc<Answers>,
    hall: Mutex<Hall>,
    /// Whether somebody was here since what is remembered was let go.
    is_wanted: AtomicBool,
    /// How often the index was cleared; changed by who has the engine.
    clears: AtomicU64,
    /// Whether this is the desk of its scope that was asked last, of those with other configurations.
    leads: AtomicBool,
    /// What a watcher of the worktree said of itself last.
    watch: Mutex<Option<String>>,
    attendant: Mutex<Option<Attendant>>,
}

/// Who is at the desk.
#[derive(Debug)]
struct Hall {
    visitors: usize,
    /// When somebody came or went last.
    used: Instant,
    /// Ends what is done ahead while nobody is there.
    ahead: Option<Cancel>,
}

/// The generation that serves, as far as it has to be known to check it; it need not be open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Serving {
    pub id: GenerationId,
    /// What the worktree has to be: see [`Scope::state`].
    pub state: ContentHash,
}

/// What a build came to, and how the worktree was found to be what it says.
#[derive(Debug)]
pub(super) struct Built {
    pub outcome: BuildOutcome,
    /// Began after the build did, and saw what the generation holds.
    pub look: Arc<Look>,
}

impl Desk {
    /// Opens the scope that the configuration gave, to be parsed by `parser`; nothing is read of its cache yet.
    ///
    /// # Errors
    /// When its root cannot be read.
    pub fn open(config: &Config, scope: config::Scope, parser: Arc<dyn Parser>) -> Result<Self, EngineError> {
        let scope = Arc::new(Scope::open(config, scope)?);
        let cache = Cache::new(scope.cache_dir(), scope.binding_id(), scope.limits().max_cache_bytes);
        let looks = Arc::new(Looks::default());
        let engine = Engine::new(Arc::clone(&scope), cache.clone(), Arc::clone(&looks), parser);
        Ok(Self {
            scope,
            cache,
            engine: Mutex::new(engine),
            builds: Turnstile::paced(PACE, is_vain),
            looks,
            serving: Mutex::default(),
            open: Mutex::default(),
            places: Places::of_machine(),
            answers: Arc::new(Answers::new(MOST_REMEMBERED)),
            hall: Mutex::new(Hall { visitors: 0, used: Instant::now(), ahead: None }),
            is_wanted: AtomicBool::new(false),
            clears: AtomicU64::new(0),
            leads: AtomicBool::new(true),
            watch: Mutex::default(),
            attendant: Mutex::default(),
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
        self.index_unless(&Cancel::default())
    }

    /// As [`Self::index`], unless who wants it goes away.
    pub(super) fn index_unless(&self, cancel: &Cancel) -> Result<BuildOutcome, Refusal> {
        self.outcome_of(Basis::Nothing, self.scope.limits().build(), cancel)
    }

    /// Brings the published generation up to date; builds the first one when there is none. Those who come while a sync runs share the
    /// next one. While the worktree changes under it, it is tried again, for as long as a question may take.
    ///
    /// # Errors
    /// When the worktree cannot be read or does not come to rest, the store fails, or `build_seconds` pass; what was published stays.
    pub fn sync(&self) -> Result<BuildOutcome, Refusal> {
        self.sync_within(self.scope.limits().build())
    }

    /// Syncs as [`Self::sync`] does, within `limit` and `build_seconds`; waiting for others counts.
    ///
    /// # Errors
    /// As [`Self::sync`].
    pub fn sync_within(&self, limit: Duration) -> Result<BuildOutcome, Refusal> {
        self.sync_unless(limit, &Cancel::default())
    }

    /// As [`Self::sync_within`], unless who wants it goes away.
    pub(super) fn sync_unless(&self, limit: Duration, cancel: &Cancel) -> Result<BuildOutcome, Refusal> {
        self.outcome_of(Basis::Everything, limit.min(self.scope.limits().build()), cancel)
    }

    /// Checks everything that is stored, lets go of what is damaged, and brings the index up to date as [`Self::sync`] does.
    ///
    /// # Errors
    /// As [`Self::sync`].
    pub fn verify_and_sync(&self) -> Result<BuildOutcome, Refusal> {
        self.verify_unless(&Cancel::default())
    }

    /// As [`Self::verify_and_sync`], unless who wants it goes away.
    pub(super) fn verify_unless(&self, cancel: &Cancel) -> Result<BuildOutcome, Refusal> {
        self.outcome_of(Basis::Verified, self.scope.limits().build(), cancel)
    }

    /// Has a sync done that begins after this call, and does not wait for it, unless the index is cleared before. What comes of it is known
    /// as that of the last build.
    ///
    /// # Errors
    /// When the scope is disabled, the cache cannot be written, or the machine gives no thread.
    pub fn sync_soon(self: &Arc<Self>) -> Result<(), EngineError> {
        if !self.scope.enabled() {
            return Err(EngineError::Disabled);
        }
        match self.cache.lock(Instant::now()).map(drop) {
            // Others build, so that it can be written.
            Ok(()) | Err(StoreError::LockTimeout) => {}
            Err(error) => return Err(EngineError::Write(error)),
        }
        if !self.builds.is_called_for(Basis::Everything) {
            let desk = Arc::clone(self);
            let withdrawn = Withdrawn::once_cleared(self);
            let sync = move || {
                let _visit = desk.visit();
                if let Err(error) = desk.build_unasked(withdrawn) {
                    tracing::warn!(%error, "a sync that nobody waited for failed");
                }
            };
            std::thread::Builder::new().name("sync".to_owned()).spawn(sync).map_err(EngineError::Thread)?;
        }
        Ok(())
    }

    /// Syncs although nobody asked for it, where an index made by the rules of this desk serves: an index that is not there is not made,
    /// and one that another configuration of the scope made is its own business.
    pub(super) fn sync_unasked(&self) -> Result<(), Refusal> {
        let withdrawn = Withdrawn::once_cleared(self);
        let serving = match self.pin() {
            Err(EngineError::Read(StoreError::Missing)) => return Ok(()),
            serving => serving?,
        };
        let is_own = serving.identity().rules == self.scope.rules();
        self.keep_open(serving);
        if !is_own {
            return Ok(());
        }
        self.build_unasked(withdrawn).map(drop)
    }

    /// Syncs for nobody who waits.
    fn build_unasked(&self, withdrawn: Withdrawn) -> Result<Arc<Built>, Refusal> {
        let tired = Instant::now() + self.scope.limits().query();
        self.build_at_rest(Turn::Paced, self.scope.limits().build(), None, tired, &Leaving::of_nobody(withdrawn))
    }

    fn outcome_of(&self, basis: Basis, limit: Duration, cancel: &Cancel) -> Result<BuildOutcome, Refusal> {
        let _visit = self.visit();
        let (now, leaving) = (Instant::now(), Leaving::of(cancel));
        let built = match basis {
            Basis::Everything => self.build_at_rest(Turn::Paced, limit, None, now + self.scope.limits().query(), &leaving),
            Basis::Nothing | Basis::Verified => self.build(basis, Turn::AtOnce, now + limit, limit, None, &leaving),
        };
        built.map(|built| built.outcome.clone())
    }

    /// Syncs for a question, which may have found out how the worktree differs. While that does not rest it is tried again, until `tired`.
    pub(super) fn sync_from(&self, departure: Option<Departure>, tired: Instant, cancel: &Cancel) -> Result<Arc<Built>, Refusal> {
        self.build_at_rest(Turn::AtOnce, self.scope.limits().build(), departure, tired, &Leaving::of(cancel))
    }

    /// Syncs, and tries it again while the worktree does not rest, with pauses in between.
    fn build_at_rest(
        &self,
        mut turn: Turn,
        limit: Duration,
        mut departure: Option<Departure>,
        tired: Instant,
        leaving: &Leaving,
    ) -> Result<Arc<Built>, Refusal> {
        let (end, mut pause) = (Instant::now() + limit, UNREST);
        loop {
            match self.build(Basis::Everything, turn, end, limit, departure.take(), leaving) {
                Err(error) if error.is_of_unrest() && Instant::now() + pause < end.min(tired) => {
                    turn = Turn::After(Instant::now() + pause);
                    pause = (pause * 2).min(PACE);
                }
                outcome => return outcome,
            }
        }
    }

    fn build(
        &self,
        basis: Basis,
        turn: Turn,
        end: Instant,
        limit: Duration,
        mut departure: Option<Departure>,
        leaving: &Leaving,
    ) -> Result<Arc<Built>, Refusal> {
        let Leaving { cancel, withdrawn } = leaving;
        let demand = Demand::new(end, cancel);
        loop {
            let departure = departure.take();
            let run = |demand: Demand| {
                let mut engine = self.engine();
                if withdrawn.is_so(self) {
                    return Err(Arc::new(EngineError::Withdrawn));
                }
                let open = self.take_open().filter(|_| basis != Basis::Nothing);
                let order = Order { basis, demand, limit, open, departure };
                let built = engine.build(order).map(Arc::new).map_err(Arc::new);
                if let Some(open) = engine.take_open() {
                    self.keep_open(open);
                }
                built
            };
            match self.builds.share(basis, turn, &demand, run) {
                // Somebody else's was, who was to run it.
                Some(Err(error)) if matches!(*error, EngineError::Withdrawn) && matches!(withdrawn, Withdrawn::Never) => {}
                Some(built) => return built,
                None => return Err(Arc::new(EngineError::of_ended(demand.ended().unwrap_or(Ended::Late), limit))),
            }
        }
    }

    /// Looks at the worktree, or shares a look that begins from now on.
    pub(super) fn look(&self, demand: &Demand, limit: Duration) -> Result<Arc<Look>, EngineError> {
        self.looks.look(&self.scope, demand, limit)
    }

    pub(super) fn looks(&self) -> &Looks {
        &self.looks
    }

    /// Does ahead what a sync would have to do about what a hint names, and publishes nothing: see [`Engine::prepare`].
    ///
    /// # Errors
    /// When the worktree cannot be read, or nothing can be parsed or resolved; a sync will say so, too.
    pub fn prepare(&self, hint: &Hint, cancel: &Cancel) -> Result<Prepared, Refusal> {
        Ok(self.engine().prepare(hint, cancel)?)
    }

    /// Removes the generations of this scope; those that others read stay until they are done.
    ///
    /// # Errors
    /// When the cache cannot be written.
    pub fn clear(&self) -> Result<Cleared, Refusal> {
        let _visit = self.visit();
        let mut engine = self.engine();
        self.clears.fetch_add(1, Ordering::Relaxed);
        engine.unload();
        drop(self.take_open());
        self.answers.forget();
        let retained = self.cache.clear().map_err(EngineError::Write)?;
        Ok(Cleared { status: "cleared", retained_reader_generations: retained })
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
        if let Some(ahead) = &self.hall().ahead {
            ahead.cancel();
        }
        self.engine().unload();
        drop(self.take_open());
        self.answers.forget();
        self.is_wanted.store(false, Ordering::Relaxed);
    }

    /// Returns how far the step is that is worked on; `None` when nothing is.
    pub fn progress(&self) -> Option<Progress> {
        self.scope.gauge().read()
    }

    /// Returns since when nobody was here; now, while somebody is.
    pub fn last_used(&self) -> Instant {
        let hall = self.hall();
        if hall.visitors > 0 { Instant::now() } else { hall.used }
    }

    /// Has the worktree watched from when it has an index on, so that what changes is worked on before somebody asks. After `auto_sync` of
    /// quiet it is synced, too. Nothing happens where it is watched already.
    ///
    /// # Errors
    /// When the machine gives no thread.
    pub fn watch_with(self: &Arc<Self>, settings: &Watch, auto_sync: Option<Duration>) -> io::Result<()> {
        let mut attendant = self.attendant.lock().unwrap_or_else(PoisonError::into_inner);
        if attendant.is_none() {
            let settings = settings.clone();
            let begin: Begin = Box::new(move |desk: &Desk| {
                let tree = WatchedTree::start(desk.scope.worktree(), desk.scope.policy(), &settings)?;
                Ok(Box::new(tree))
            });
            *attendant = Some(Attendant::start(self, begin, auto_sync)?);
        }
        Ok(())
    }

    /// Says whether this desk was asked last, of those that the scope has with other configurations. Only that one syncs unasked.
    pub(super) fn lead(&self, leads: bool) {
        self.leads.store(leads, Ordering::Relaxed);
    }

    /// Returns whether this desk of its scope was asked last.
    pub fn leads(&self) -> bool {
        self.leads.load(Ordering::Relaxed)
    }

    /// Says that something is done ahead, until the first visitor comes, who cancels it; `None` when somebody is there.
    pub(super) fn alone<'d>(&'d self, cancel: &Cancel) -> Option<Alone<'d>> {
        let mut hall = self.hall();
        if hall.visitors > 0 {
            return None;
        }
        hall.ahead = Some(cancel.clone());
        Some(Alone { desk: self })
    }

    /// Returns whether somebody was here who found nothing remembered: the next one is to find something. Says so once.
    pub(super) fn wants_warmth(&self) -> bool {
        if !self.is_wanted.load(Ordering::Relaxed) {
            return false;
        }
        // While somebody is at work it is not known, and asked again.
        let Ok(engine) = self.engine.try_lock() else { return false };
        self.is_wanted.store(false, Ordering::Relaxed);
        engine.is_cold() && self.is_indexed()
    }

    /// Returns whether Git is in the middle of changing the worktree.
    pub(super) fn is_git_at_work(&self) -> bool {
        let places = self.scope.worktree().git_places().ok().flatten();
        places.is_some_and(|places| places.directory.join("index.lock").symlink_metadata().is_ok())
    }

    /// Returns whether the database of the last build is in memory; `None` while somebody is at work with it.
    pub fn is_loaded(&self) -> Option<bool> {
        self.engine.try_lock().ok().map(|engine| !engine.is_cold())
    }

    /// Takes note of what a watcher says of itself, for the status.
    pub fn note_watch(&self, health: Option<&Health>) {
        *self.watch.lock().unwrap_or_else(PoisonError::into_inner) = health.map(Health::to_string);
    }

    /// Returns what a watcher says of itself; `none` when there is none.
    pub fn watch(&self) -> String {
        self.watch.lock().unwrap_or_else(PoisonError::into_inner).clone().unwrap_or_else(|| "none".to_owned())
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

    /// Returns what serves, opening it where that is not known yet.
    pub(super) fn serving(&self) -> Result<Serving, EngineError> {
        let known = *self.known();
        if let Some(known) = self.unless_outdated(known)? {
            return Ok(known);
        }
        let mut known = self.known();
        // Somebody may have opened it since.
        if let Some(known) = self.unless_outdated(*known)? {
            return Ok(known);
        }
        let generation = self.pin()?;
        let serving = Serving { id: generation.id(), state: generation.identity().state };
        *known = Some(serving);
        self.answers.follow(serving.id);
        self.keep_open(generation);
        Ok(serving)
    }

    fn unless_outdated(&self, known: Option<Serving>) -> Result<Option<Serving>, EngineError> {
        match known {
            Some(known) if self.cache.serves(known.id).map_err(EngineError::Read)? => Ok(Some(known)),
            _ => Ok(None),
        }
    }

    /// Opens the published generation, or takes one that is open if it is still that; [`Self::keep_open`] puts it back.
    pub(super) fn pin(&self) -> Result<Generation, EngineError> {
        loop {
            let Some(open) = self.open_ones().pop() else { return self.cache.pin().map_err(EngineError::Read) };
            if self.cache.is_current(&open).map_err(EngineError::Read)? {
                return Ok(open);
            }
        }
    }

    /// Keeps a generation open for the next request, while it serves.
    pub(super) fn keep_open(&self, generation: Generation) {
        if self.cache.is_current(&generation).unwrap_or(false) {
            let mut open = self.open_ones();
            if open.len() < self.places.most() {
                open.push(generation);
            }
        }
    }

    /// Lets go of generations that serve no more: their leases keep them from being collected.
    pub(super) fn let_go_of_outdated(&self) {
        let open = std::mem::take(&mut *self.open_ones());
        open.into_iter().for_each(|generation| self.keep_open(generation));
    }

    /// Takes one of the open generations and lets go of the others, whose leases would keep what they read from being collected.
    fn take_open(&self) -> Option<Generation> {
        let mut open = std::mem::take(&mut *self.open_ones());
        open.pop()
    }

    pub(super) fn cache(&self) -> &Cache {
        &self.cache
    }

    pub(super) fn places(&self) -> &Places {
        &self.places
    }

    pub(super) fn answers(&self) -> &Arc<Answers> {
        &self.answers
    }

    /// Takes note of a request.
    pub(super) fn visit(&self) -> Visit<'_> {
        Visit::begin(self)
    }

    fn hall(&self) -> MutexGuard<'_, Hall> {
        self.hall.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn known(&self) -> MutexGuard<'_, Option<Serving>> {
        self.serving.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open_ones(&self) -> MutexGuard<'_, Vec<Generation>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns how many take or wait for a look at the worktree, and how many for a build.
    #[cfg(test)]
    pub(super) fn present(&self) -> (usize, usize) {
        (self.looks.present(), self.builds.present())
    }

    /// Returns how many readers wait to be used.
    #[cfg(test)]
    pub(super) fn readers(&self) -> usize {
        self.open_ones().len()
    }

    /// Waits until nobody else is at work.
    fn engine(&self) -> MutexGuard<'_, Engine> {
        self.engine.lock().unwrap_or_else(|poisoned| {
            // Whoever panicked may have left anything half done in memory. What is stored is whole.
            let mut engine = poisoned.into_inner();
            engine.unload();
            self.engine.clear_poison();
            engine
        })
    }
}

/// When a build is not wanted any more.
#[derive(Debug)]
struct Leaving {
    cancel: Cancel,
    withdrawn: Withdrawn,
}

impl Leaving {
    /// When one who asked for it goes away.
    fn of(cancel: &Cancel) -> Self {
        Self { cancel: cancel.clone(), withdrawn: Withdrawn::Never }
    }

    /// When nobody waits for it.
    fn of_nobody(withdrawn: Withdrawn) -> Self {
        Self { cancel: Cancel::default(), withdrawn }
    }
}

/// When a sync is not wanted any more that has not begun.
#[derive(Clone, Copy, Debug)]
enum Withdrawn {
    Never,
    /// When the index was cleared more often than so.
    Cleared(u64),
}

impl Withdrawn {
    fn once_cleared(desk: &Desk) -> Self {
        Self::Cleared(desk.clears.load(Ordering::Relaxed))
    }

    fn is_so(self, desk: &Desk) -> bool {
        matches!(self, Self::Cleared(times) if desk.clears.load(Ordering::Relaxed) != times)
    }
}

/// Returns whether a sync found nothing to do.
fn is_vain(built: &Result<Arc<Built>, Refusal>) -> bool {
    built.as_ref().is_ok_and(|built| built.outcome.status == BuildStatus::Unchanged)
}

/// The time that a request is at the desk.
#[derive(Debug)]
pub(super) struct Visit<'d> {
    desk: &'d Desk,
}

impl<'d> Visit<'d> {
    fn begin(desk: &'d Desk) -> Self {
        let mut hall = desk.hall();
        hall.visitors += 1;
        if let Some(ahead) = &hall.ahead {
            ahead.cancel();
        }
        Self { desk }
    }
}

impl Drop for Visit<'_> {
    fn drop(&mut self) {
        let mut hall = self.desk.hall();
        hall.visitors -= 1;
        hall.used = Instant::now();
        self.desk.is_wanted.store(true, Ordering::Relaxed);
    }
}

/// The time that something is done ahead.
#[derive(Debug)]
pub(super) struct Alone<'d> {
    desk: &'d Desk,
}

impl Drop for Alone<'_> {
    fn drop(&mut self) {
        self.desk.hall().ahead = None;
    }
}
