//! Building a generation: `index` from the worktree alone, `sync` from what changed since the last one.
//!
//! Must not answer questions. Invariant: a generation is published only when the worktree, looked at again after everything was
//! written, is what the generation says; until then the one before serves.

mod resume;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use dashmap::DashMap;
use tracing::debug_span;

use crate::analysis::{AllEdges, AnalysisError, Database, FactsStore, FileInput, Outcome, Resolved, Update};
use crate::model::{Canonical, ContentHash, Demand, Ended, FileFacts, GenerationId, RepoPath, codec};
use crate::parse::{ParseLimits, Parser};
use crate::store::{BuildLock, Cache, FactsCache, Generation, PackWriter, Staged, StoreError, StoredEntry, Verified};
use crate::workspace::{Capture, Entry, EntryState, ObjectFormat, WorkspaceError};

use super::EngineError;
use super::assembly::{Assembly, Contents, entries_after};
use super::desk::Built;
use super::failed::{FailedContent, FailedParse};
use super::intake::{FactsKey, Intake, Known, Reading, Stored};
use super::journal::Journal;
use super::look::{Departure, Look, Looks};
use super::owner::Order;
use super::progress::Step;
use super::report::{BuildCounts, BuildOutcome, BuildStatus, FailedFile, LastBuild, Stage, now, peak_memory};
use super::scope::Scope;

/// What a build may build on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// `index`: nothing but the worktree.
    Nothing,
    /// `sync`: the published generation, the facts cache, and what this process remembers.
    Everything,
    /// `sync --verify`: as before, after a check of everything that is stored.
    Verified,
}

/// What a process remembers between builds.
#[derive(Debug)]
pub(super) struct Memory {
    pub database: Database,
    /// Facts of files that are no source of a registered language.
    pub texts: HashMap<FactsKey, Arc<FileFacts>>,
    /// Contents of which the last build, or a preparation since, could make no facts.
    pub failed: HashSet<FactsKey>,
    pub journal: Journal,
    /// Whether somebody wants to know which queries run.
    pub listening: bool,
    /// The generation whose state the traces of the database speak of.
    traced: Option<GenerationId>,
    published: Option<LastPublished>,
    /// The generation that serves, when this process has it open.
    pub open: Option<Generation>,
}

/// The generation that this process published last.
#[derive(Debug)]
struct LastPublished {
    id: GenerationId,
    /// What the references of each file came to.
    edges: AllEdges,
    /// Whether the database has seen nothing since by which a module could have another name.
    same_modules: bool,
    /// Its manifest, where that is known without reading it.
    entries: Option<Vec<StoredEntry>>,
}

impl Memory {
    pub fn new(scope: &Scope) -> Self {
        Self {
            database: Database::with_languages(scope.languages(), scope.source_roots()),
            texts: HashMap::new(),
            failed: HashSet::new(),
            journal: Journal::default(),
            listening: false,
            traced: None,
            published: None,
            open: None,
        }
    }

    /// Starts or ends the log of the queries that run.
    pub fn listen(&mut self, on: bool) {
        self.listening = on;
        self.database.listen(on);
    }

    /// Takes note of what references came to, by a build or a preparation.
    pub fn note_edges(&mut self, resolved: &Resolved) {
        if let Some(published) = &mut self.published {
            published.same_modules &= resolved.only_bodies;
        }
        self.journal.note_edges(resolved);
    }

    pub fn facts(&self, key: &FactsKey) -> Option<Arc<FileFacts>> {
        self.database.facts_store().get(key.0, key.1).or_else(|| self.texts.get(key).cloned())
    }
}

/// Builds a generation of the scope and publishes it, unless the published one is what the worktree holds.
///
/// # Errors
/// When the worktree cannot be read or keeps changing, the store fails, or nobody waits for it any more; what was published stays.
pub(super) fn build(
    scope: &Scope,
    cache: &Cache,
    looks: &Looks,
    parser: &dyn Parser,
    memory: &mut Memory,
    order: Order,
) -> Result<Built, EngineError> {
    let Order { basis, demand, limit, open, departure } = order;
    let wait = scope.gauge().begin(Step::Wait);
    let lock = cache.lock_while(&demand).map_err(EngineError::of_writing)?;
    drop(wait);
    let record_before = cache.last_build().ok().flatten();
    parser.begin();
    // A build upon it needs no other check of it.
    memory.open = open;
    let clock = Clock::start();
    // A little less than a build may take is what waiting for a thread leaves of that.
    let hurried = limit * 10 < scope.limits().build() * 9;
    let distrusting = false;
    let mut build =
        Build { scope, cache, looks, parser, lock: &lock, memory, basis, departure, distrusting, demand, limit, hurried, clock };
    let built = build.verify().and_then(|verified| {
        let built = build.run()?;
        Ok(Built { outcome: BuildOutcome { verified: verified.map(Box::new), ..built.outcome }, ..built })
    });
    let outcome = built.as_ref().map(|built| &built.outcome);
    let record = match outcome {
        // A build that published nothing leaves the record of the one that did; one of a failure is not true any more.
        Ok(BuildOutcome { status: BuildStatus::Unchanged, .. }) if matches!(last_build(cache), Some(LastBuild::Ready { .. })) => {
            None
        }
        Ok(outcome) => Some(LastBuild::Ready {
            fingerprint: outcome.fingerprint.hex(),
            extracted_files: outcome.extracted_files,
            reused_files: outcome.reused_files,
            elapsed_seconds: outcome.elapsed_seconds,
            finished_at: now(),
        }),
        // Whoever had less time than a build may take gave it up, and the record of the one that serves is true still.
        Err(error) if hurried && error.code() == "code_timeout" => None,
        Err(error) if error.is_of_leaving() => {
            // It left everything as it was, and nobody waits for more.
            if let Err(error) = restore_record(&lock, record_before.as_deref()) {
                tracing::debug!(%error, "the record of the build before was not put back");
            }
            None
        }
        Err(error) => Some(LastBuild::Failed { reason: error.code().to_owned(), finished_at: now() }),
    };
    if let Some(record) = record {
        // The record is for people; the generation stands without it.
        if let Err(error) = write_record(&lock, &record) {
            tracing::debug!(%error, "the record of the build was not written");
        }
    }
    built
}

fn restore_record(lock: &BuildLock, before: Option<&[u8]>) -> Result<(), StoreError> {
    match before {
        Some(record) => lock.write_last_build(record),
        None => lock.remove_last_build(),
    }
}

fn write_record(lock: &BuildLock, record: &LastBuild) -> Result<(), StoreError> {
    lock.write_last_build(&serde_json::to_vec(record).expect("a record holds plain values"))
}

/// Returns how the last build of a scope ended; `None` when nothing readable says so.
pub(super) fn last_build(cache: &Cache) -> Option<LastBuild> {
    serde_json::from_slice(&cache.last_build().ok()??).ok()
}

/// What stands before the scan: the generation built upon, and its contents.
struct Basics {
    parent: Option<Generation>,
    /// The manifest of the parent.
    entries: Vec<StoredEntry>,
    stored: HashMap<ContentHash, Stored>,
    facts: Option<Arc<FactsCache>>,
}

/// [`Known`] of one scan.
struct KnownBefore<'a> {
    stored: &'a HashMap<ContentHash, Stored>,
    cache: Option<&'a FactsCache>,
    sources: FactsStore,
    texts: &'a HashMap<FactsKey, Arc<FileFacts>>,
}

impl Known for KnownBefore<'_> {
    fn is_stored(&self, hash: &ContentHash) -> bool {
        self.stored.contains_key(hash)
    }

    fn has_facts(&self, key: &FactsKey, reading: Reading) -> bool {
        let Some(cache) = self.cache else { return false };
        // What is stored was read before; should its facts be gone meanwhile, they are made from the stored source.
        self.stored.contains_key(&key.0)
            || self.sources.get(key.0, key.1).is_some()
            || self.texts.contains_key(key)
            || cache.contains(&cache_key(key, reading))
    }
}

/// Returns the name under which the facts cache keeps the facts of a content.
pub(super) fn cache_key(key: &FactsKey, reading: Reading) -> ContentHash {
    let mut record = Canonical::new("facts");
    record.field(&key.0.0).field(key.1.as_bytes()).field(reading.build().as_bytes());
    ContentHash(record.finish())
}

struct Build<'a> {
    scope: &'a Scope,
    cache: &'a Cache,
    looks: &'a Looks,
    parser: &'a dyn Parser,
    lock: &'a BuildLock,
    memory: &'a mut Memory,
    basis: Basis,
    /// How the worktree was found to differ, for the first attempt.
    departure: Option<Departure>,
    /// Whether this build met damage, so that nothing stored is used any more.
    distrusting: bool,
    /// Who waits for it.
    demand: Demand,
    limit: Duration,
    /// Whether it has less time than a build may take. It may end in the middle, by its process, and that is no failure of a build.
    hurried: bool,
    clock: Clock,
}

/// A generation that is written.
struct Written<'a> {
    staged: Staged<'a>,
    outcome: BuildOutcome,
    /// Its manifest, where that is known without reading it.
    entries: Option<Vec<StoredEntry>>,
}

/// What one attempt came to.
enum Attempt {
    Done(Box<Built>),
    /// The worktree changed meanwhile.
    Moved,
}

impl<'a> Build<'a> {
    /// Checks everything stored when that is asked for, or when someone met damage and the build is to rely on what is stored.
    fn verify(&mut self) -> Result<Option<Verified>, EngineError> {
        let due = match self.basis {
            Basis::Nothing => false,
            Basis::Everything => self.cache.has_damage_mark(),
            Basis::Verified => true,
        };
        if !due {
            return Ok(None);
        }
        let work = self.scope.gauge().begin(Step::VerifyStore);
        let verified = debug_span!("verify_store").in_scope(|| self.lock.verify(&work)).map_err(EngineError::Write)?;
        self.clock.lap("verify_store");
        Ok(Some(verified))
    }

    fn run(&mut self) -> Result<Built, EngineError> {
        let mut moved = false;
        loop {
            let is_guess = self.departure.is_some();
            match self.attempt() {
                Ok(Attempt::Done(built)) => return Ok(*built),
                // It began before this build did.
                Ok(Attempt::Moved) if is_guess => {}
                Ok(Attempt::Moved) if moved => return Err(EngineError::Busy),
                Ok(Attempt::Moved) => moved = true,
                // What was to be built upon is damaged: the worktree has it all.
                Err(EngineError::Read(StoreError::Damaged { .. }) | EngineError::Write(StoreError::Damaged { .. }))
                    if !self.distrusting =>
                {
                    self.distrusting = true;
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn attempt(&mut self) -> Result<Attempt, EngineError> {
        let begun = Instant::now();
        let format = self.scope.worktree().object_format()?;
        let mut basics = self.basics(format)?;
        let pack = self.lock.source_writer().map_err(EngineError::Write)?;
        let departure = self.departure.take();
        let intake = Intake {
            languages: self.scope.languages(),
            parser: self.parser,
            limits: ParseLimits::from(self.scope.limits()),
            format,
            known: &KnownBefore {
                stored: &basics.stored,
                cache: basics.facts.as_deref(),
                sources: self.memory.database.facts_store(),
                texts: &self.memory.texts,
            },
            pack: &pack,
            demand: &self.demand,
            stored: DashMap::new(),
            extracted: DashMap::new(),
            slow: Mutex::default(),
            failure: OnceLock::new(),
        };
        let look = self.take_in(&basics, &intake, departure)?;
        let Intake { stored: new_stored, extracted, failure, .. } = intake;
        if let Some(error) = failure.into_inner() {
            return Err(error);
        }
        self.go_on()?;
        self.clock.lap("extract");

        let capture = &look.capture;
        if format.map(ObjectFormat::as_str) != capture.git.present.then_some(capture.git.object_format) {
            // The repository was made anew, or removed, under the scan.
            return Ok(Attempt::Moved);
        }
        let state = look.state;
        let failures = Failures::of(basics.parent.as_ref(), self.scope)?;
        if let Some(parent) = &basics.parent
            && parent.identity().state == state
            && !failures.due
        {
            let outcome = self.unchanged(parent, begun)?;
            if let Some(published) = self.memory.published.as_mut().filter(|published| published.id == parent.id()) {
                published.entries = Some(std::mem::take(&mut basics.entries));
            }
            self.memory.open = basics.parent;
            return Ok(Attempt::Done(Box::new(Built { outcome, look })));
        }
        if !self.hurried {
            self.record_start();
        }

        let stored = std::mem::take(&mut basics.stored);
        let mut contents = Contents { stored, extracted: HashMap::new(), fresh: BTreeMap::new() };
        contents.stored.extend(new_stored.into_iter().filter_map(|(hash, stored)| Some((hash, stored?))));
        for (key, fresh) in extracted {
            if let Some(fresh) = fresh {
                contents.take(key, fresh);
            }
        }
        if included(capture).any(|(_, hash)| !contents.stored.contains_key(&hash)) {
            // What was new to the look was read after it, and was otherwise by then.
            return Ok(Attempt::Moved);
        }
        let mut written = None;
        if let Some(resolved) = self.resume(capture, &basics, &failures, &mut contents)? {
            self.clock.lap("resume");
            self.go_on()?;
            self.keep_facts(&mut contents);
            self.clock.lap("cache");
            written = self.stage(capture, &contents, &mut basics, state, &resolved, &pack)?.map(|written| (written, resolved));
            self.go_on()?;
        }
        let (Written { mut staged, outcome, entries }, resolved) = match written {
            Some(written) => written,
            None => {
                self.complete(included(capture), &failures, basics.facts.as_deref(), &mut contents)?;
                self.clock.lap("load");
                self.go_on()?;
                self.keep_facts(&mut contents);
                self.clock.lap("cache");
                let resolved = self.resolve(capture, &contents)?;
                self.clock.lap("resolve");
                self.go_on()?;
                let written = self.stage(capture, &contents, &mut basics, state, &resolved, &pack)?;
                (written.ok_or(EngineError::Busy)?, resolved)
            }
        };
        // Its lease would keep it from being collected, should this build give it up for want of room.
        drop(basics.parent);
        self.go_on()?;

        let after = debug_span!("verify").in_scope(|| self.looks.look(self.scope, &self.demand, self.limit))?;
        self.clock.lap("verify");
        if after.state != state {
            return Ok(Attempt::Moved);
        }
        let traces = self.traces();
        staged.leave_room_for_traces(traces.as_ref().map_or(0, |traces| traces.len() as u64));
        self.clock.lap("traces");
        let published = debug_span!("publish", peak_memory_bytes = peak_memory())
            .in_scope(|| staged.publish())
            .map_err(EngineError::Write)?;
        self.memory.published = Some(LastPublished { id: published.id, edges: resolved.edges, same_modules: true, entries });
        self.keep_traces(published.id, traces.as_deref());
        self.clock.lap("publish");
        let outcome = BuildOutcome {
            elapsed_seconds: begun.elapsed().as_secs_f64(),
            stages: self.clock.take(),
            peak_memory_bytes: peak_memory().map(|own| own + self.parser.peak_memory_bytes()),
            ..outcome
        };
        Ok(Attempt::Done(Box::new(Built { outcome, look: after })))
    }

    /// Looks at the worktree and takes in what is not stored. Where most of it is, the look may be one that others share, or the one that
    /// found the difference, and what is new to it is read after it; else all is taken in as it is looked at.
    fn take_in(&self, basics: &Basics, intake: &Intake<'_>, departure: Option<Departure>) -> Result<Arc<Look>, EngineError> {
        let span = debug_span!("extract", files = tracing::field::Empty, contents = tracing::field::Empty);
        let _entered = span.enter();
        let visit = |path: &RepoPath, hash: &ContentHash, bytes: &[u8]| intake.take(path, hash, bytes);
        let mut look = None;
        if !basics.stored.is_empty() {
            // Where another generation serves by now it says nothing, and least of all that nothing changed.
            let known = departure.filter(|known| basics.parent.as_ref().is_some_and(|parent| parent.id() == known.from));
            let seen = match known {
                Some(known) => known.look,
                None => self.looks.look(self.scope, &self.demand, self.limit)?,
            };
            let new = |(_, hash): &(&RepoPath, ContentHash)| !basics.stored.contains_key(hash);
            let paths: Vec<RepoPath> = included(&seen.capture).filter(new).map(|(path, _)| path.clone()).collect();
            if paths.len() as u64 <= seen.checked.files / 2 {
                let read = || self.scope.capture_part(&self.demand, &paths, &visit);
                match if paths.is_empty() { Ok(Vec::new()) } else { read() } {
                    // What is not taken in now is found missing.
                    Ok(_) | Err(EngineError::Workspace(WorkspaceError::Unstable { .. })) => {}
                    Err(error) => return Err(error),
                }
                look = Some(seen);
            }
        }
        let spare = |path: &RepoPath, hash: &ContentHash| intake.is_known(path, hash);
        let look = match look {
            Some(look) => look,
            None => Arc::new(Look::take(self.scope, Step::Extract, &self.demand, &spare, &visit)?),
        };
        intake.retry_slow();
        span.record("files", look.checked.files);
        span.record("contents", intake.extracted.len() as u64);
        Ok(look)
    }

    fn go_on(&self) -> Result<(), EngineError> {
        match self.demand.ended() {
            None => Ok(()),
            Some(ended) => Err(EngineError::of_ended(ended, self.limit)),
        }
    }

    /// Returns why a step ended that ends once nobody waits any more.
    fn ended(&self) -> EngineError {
        EngineError::of_ended(self.demand.ended().unwrap_or(Ended::Unwanted), self.limit)
    }

    /// Returns what the build may start from. A damaged generation is no basis, and no obstacle.
    fn basics(&mut self, format: Option<ObjectFormat>) -> Result<Basics, EngineError> {
        // Taken in any case: its lease must not outlive its use.
        let open = self.memory.open.take();
        let none = Basics { parent: None, entries: Vec::new(), stored: HashMap::new(), facts: None };
        if self.basis == Basis::Nothing {
            return Ok(none);
        }
        let facts = Some(Arc::new(self.cache.facts()));
        if self.distrusting || self.cache.has_damage_mark() {
            // Someone met damage: nothing stored is trusted, so that everything is written anew.
            return Ok(Basics { facts, ..none });
        }
        let open = match open {
            // The lock is held, so that it stays the current one.
            Some(open) if self.cache.is_current(&open).map_err(EngineError::Read)? => Some(open),
            _ => None,
        };
        let parent = match open.map_or_else(|| self.cache.pin(), Ok) {
            Ok(parent) => parent,
            Err(StoreError::Missing | StoreError::Damaged { .. }) => return Ok(Basics { facts, ..none }),
            Err(error) => return Err(EngineError::Read(error)),
        };
        let remembered = self.memory.published.as_mut().filter(|published| published.id == parent.id());
        match remembered.and_then(|published| published.entries.take()).map_or_else(|| parent.entries(), Ok) {
            Ok(entries) => {
                let git = &parent.identity();
                // Blob ids of another format say nothing; without them the contents are taken in anew.
                let same_format = format.map_or(!git.git, |format| git.git && format.as_str() == git.object_format);
                let mut basics = Basics { parent: Some(parent), facts, ..none };
                if same_format {
                    let contents = entries.iter().filter_map(|stored| match stored.entry.state {
                        EntryState::Included { hash, .. } => {
                            Some((hash, Stored { object: stored.object?, blob: stored.blob.clone() }))
                        }
                        EntryState::Omitted { .. } => None,
                    });
                    basics.stored = contents.collect();
                }
                basics.entries = entries;
                Ok(basics)
            }
            Err(StoreError::Damaged { .. }) => Ok(Basics { facts, ..none }),
            Err(error) => Err(EngineError::Read(error)),
        }
    }

    /// Says in the record that a build runs, for those who ask meanwhile.
    fn record_start(&self) {
        if let Err(error) = write_record(self.lock, &LastBuild::Building { started_at: now() }) {
            tracing::debug!(%error, "the start of the build was not recorded");
        }
    }

    fn unchanged(&mut self, parent: &Generation, begun: Instant) -> Result<BuildOutcome, EngineError> {
        let coverage = parent.coverage();
        let totals = parent.totals();
        Ok(BuildOutcome {
            status: BuildStatus::Unchanged,
            fingerprint: parent.identity().fingerprint,
            extracted_files: 0,
            reused_files: coverage.parsed_files + coverage.partial_files + coverage.failed_files,
            removed_files: 0,
            resolved_files: 0,
            elapsed_seconds: begun.elapsed().as_secs_f64(),
            counts: BuildCounts {
                files: parent.file_count(),
                definitions: totals.definitions,
                edges: totals.edges,
                diagnostics: totals.diagnostics,
                partial_files: coverage.partial_files,
                failed_files: coverage.failed_files,
            },
            failures: FailedFile::of_generation(parent).map_err(EngineError::Read)?,
            stages: self.clock.take(),
            peak_memory_bytes: peak_memory().map(|own| own + self.parser.peak_memory_bytes()),
            verified: None,
        })
    }

    /// Adds to the facts cache what this build made. Failures stay out: they may be the machine's.
    fn keep_facts(&self, contents: &mut Contents) {
        let mut made = Vec::with_capacity(contents.fresh.len());
        for (key, (reading, encoded)) in &mut contents.fresh {
            if let Some(Ok(facts)) = contents.extracted.get(key)
                && let Some(encoded) = encoded.take().or_else(|| codec::encode(facts))
            {
                made.push((cache_key(key, *reading), encoded));
            }
        }
        let made: Vec<_> = made.iter().map(|(key, encoded)| (*key, encoded.as_slice())).collect();
        // The generation stands without the cache.
        if let Err(error) = self.cache.facts().insert(&made) {
            tracing::debug!(%error, "new facts were not cached");
        }
    }

    /// Finds the facts of files that the scan did not make: remembered, cached, or made now from the stored source; and the failures that are
    /// not to be tried again.
    fn complete<'f>(
        &self,
        files: impl Iterator<Item = (&'f RepoPath, ContentHash)>,
        failures: &Failures,
        cache: Option<&FactsCache>,
        contents: &mut Contents,
    ) -> Result<(), EngineError> {
        let work = self.scope.gauge().begin(Step::Load);
        let mut wanted: BTreeMap<FactsKey, &RepoPath> = BTreeMap::new();
        for (path, hash) in files {
            let key = (hash, Reading::of(self.scope.languages(), path).dialect);
            if contents.extracted.contains_key(&key) {
                continue;
            }
            match self.memory.facts(&key) {
                Some(facts) => drop(contents.extracted.insert(key, Ok(facts))),
                None => drop(wanted.insert(key, path)),
            }
        }
        if let Some(cache) = cache {
            let languages = self.scope.languages();
            let keys: Vec<_> = wanted.iter().map(|(key, path)| cache_key(key, Reading::of(languages, path))).collect();
            let found = cache.lookup(&keys);
            for (key, facts) in wanted.keys().copied().zip(found) {
                contents.extracted.extend(facts.map(|facts| (key, Ok(facts))));
            }
            wanted.retain(|key, _| !contents.extracted.contains_key(key));
        }
        let limits = ParseLimits::from(self.scope.limits());
        work.expect(wanted.len() as u64, 1);
        for (key, path) in wanted {
            work.add(1);
            self.go_on()?;
            let reading = Reading::of(self.scope.languages(), path);
            let before = failures.known.get(&key);
            let Some(stored) = contents.stored.get(&key.0) else { return Err(EngineError::Busy) };
            let bytes = self.cache.source(&key.0, stored.object).map_err(EngineError::Write)?;
            if let Some(failed) = before
                && !failed.is_due(&limits, reading.build())
            {
                contents.extracted.insert(key, Err(FailedContent::new(failed.clone(), &bytes)));
                continue;
            }
            // One after the other, so that what took too long is tried alone.
            let mut fresh = reading.facts(self.parser, &bytes, &limits)?;
            fresh.extraction = fresh.extraction.map_err(|failed| FailedContent { parse: failed.parse.after(before), ..failed });
            contents.take(key, fresh);
        }
        Ok(())
    }

    /// Tells the database what differs from what it knows. Where it `may_load`, it gets the facts that are not at hand when it needs them.
    fn tell(&mut self, capture: &Capture, contents: &Contents, may_load: bool) -> Result<(), EngineError> {
        let languages = self.scope.languages();
        let stale = self.memory.database.stale(contents.standing(languages, capture));
        let mut texts = HashMap::new();
        let mut files = Vec::new();
        for (path, hash) in included(capture) {
            let reading = Reading::of(languages, path);
            let key = (hash, reading.dialect);
            let extraction = contents.extracted.get(&key);
            if let (None, Some(Ok(facts))) = (reading.language, extraction) {
                texts.insert(key, Arc::clone(facts));
            }
            if !contents.fresh.contains_key(&key) && stale.changed.binary_search(path).is_err() {
                continue;
            }
            let outcome = match extraction {
                Some(extraction) => reading.outcome(extraction.as_ref().ok()),
                None if may_load && reading.is_resolved() => Outcome::Kept,
                None if may_load => Outcome::Text,
                None => return Err(EngineError::Busy),
            };
            files.push(FileInput { path: path.clone(), hash, outcome });
        }
        self.memory.texts = texts;
        self.memory.failed = contents.extracted.iter().filter(|(_, made)| made.is_err()).map(|(key, _)| *key).collect();
        self.memory.journal.note_files(&stale);
        self.memory.database.apply(Update { files, removed: stale.removed });
        Ok(())
    }

    /// Brings the database up to date and resolves what that touches.
    fn resolve(&mut self, capture: &Capture, contents: &Contents) -> Result<Resolved, EngineError> {
        let span = debug_span!("resolve", files = tracing::field::Empty);
        let _entered = span.enter();
        if self.memory.database.is_partial() {
            self.forget();
        }
        self.tell(capture, contents, false)?;
        let scope = self.scope;
        let work = scope.gauge().begin(Step::Resolve);
        let demand = self.demand.clone();
        let resolved = match self.memory.database.resolve_unless(threads(), &|| demand.ended().is_some(), &work) {
            Err(AnalysisError::Interrupted) => return Err(self.ended()),
            // It was to get some of them by itself; now it is told all.
            Err(AnalysisError::Facts) if self.memory.database.has_loader() => {
                self.forget();
                return self.resolve(capture, contents);
            }
            resolved => resolved?,
        };
        span.record("files", resolved.resolved_files);
        self.memory.note_edges(&resolved);
        Ok(resolved)
    }

    /// Writes what was captured, beside the generation that serves: as what differs from the parent where that is a basis and the change is
    /// small, else whole; `None` where it cannot be written whole because only a part was resolved.
    fn stage(
        &mut self,
        capture: &Capture,
        contents: &Contents,
        basics: &mut Basics,
        state: ContentHash,
        resolved: &Resolved,
        pack: &PackWriter,
    ) -> Result<Option<Written<'a>>, EngineError> {
        let assembly = Assembly::new(self.scope, &self.memory.database, capture, contents, resolved);
        let identity = assembly.identity(state, basics.parent.as_ref().map(Generation::identity))?;
        let parent = basics.parent.as_ref().filter(|parent| self.continues(parent, capture));
        if let Some(parent) = parent {
            let published = self.memory.published.as_ref().filter(|published| published.id == parent.id());
            let known = published.map_or(&[][..], |published| &published.edges[..]);
            let same_modules = published.is_some_and(|published| published.same_modules);
            let change = assembly.change(identity.clone(), &basics.entries, known, same_modules)?;
            self.clock.lap("compare");
            let staged = match debug_span!("delta", files = change.files.len())
                .in_scope(|| self.lock.stage_delta(parent, &change, pack))
            {
                Err(error) if is_of_delta(&error) => {
                    tracing::warn!(%error, "what changed could not be written as a delta; everything is written");
                    None
                }
                staged => staged.map_err(EngineError::Write)?,
            };
            if let Some(staged) = staged {
                let outcome = assembly.outcome(&staged, &basics.entries);
                let entries = std::mem::take(&mut basics.entries);
                let entries = (!staged.has_moved_sources()).then(|| entries_after(entries, &change));
                self.clock.lap("delta");
                return Ok(Some(Written { staged, outcome, entries }));
            }
        }
        if resolved.partial {
            return Ok(None);
        }
        let work = self.scope.gauge().begin(Step::Store);
        let content = assembly.content(identity)?;
        self.clock.lap("assemble");
        let staged = debug_span!("store")
            .in_scope(|| self.lock.stage(&content, pack, &work, &self.demand))
            .map_err(EngineError::of_writing)?;
        self.clock.lap("store");
        let outcome = assembly.outcome(&staged, &basics.entries);
        Ok(Some(Written { staged, outcome, entries: None }))
    }
}

/// Returns whether a bulk load, which does without the database of the parent, may succeed where a delta failed for this reason. A defect
/// must not keep a worktree from being indexed; tests want to hear of it.
fn is_of_delta(error: &StoreError) -> bool {
    match error {
        StoreError::Sqlite { .. } => true,
        StoreError::Inconsistent { .. } => !cfg!(feature = "faults"),
        _ => false,
    }
}

/// The failures of the generation that is built upon.
#[derive(Default)]
struct Failures {
    known: HashMap<FactsKey, FailedParse>,
    /// Whether one of them deserves another try.
    due: bool,
}

impl Failures {
    fn of(parent: Option<&Generation>, scope: &Scope) -> Result<Self, EngineError> {
        let mut failures = Self::default();
        let Some(parent) = parent.filter(|parent| parent.coverage().failed_files > 0) else { return Ok(failures) };
        let limits = ParseLimits::from(scope.limits());
        for row in parent.failed_files().map_err(EngineError::Read)? {
            let (Ok(path), Some(hash)) = (RepoPath::parse(&row.path), row.hash) else { continue };
            let reading = Reading::of(scope.languages(), &path);
            match row.failure.as_deref().and_then(FailedParse::parse) {
                Some(failed) => {
                    failures.due |= failed.is_due(&limits, reading.build());
                    failures.known.insert((hash, reading.dialect), failed);
                }
                // Not of a form that is known here.
                None => failures.due = true,
            }
        }
        Ok(failures)
    }
}

/// Returns how many threads resolve at once.
fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// Returns the included files of a capture, by path.
pub(super) fn included(capture: &Capture) -> impl Iterator<Item = (&RepoPath, ContentHash)> {
    included_entries(&capture.entries)
}

/// Returns the included files among entries, by path.
pub(super) fn included_entries(entries: &[Entry]) -> impl Iterator<Item = (&RepoPath, ContentHash)> {
    entries.iter().filter_map(|entry| match entry.state {
        EntryState::Included { hash, .. } => Some((&entry.path, hash)),
        EntryState::Omitted { .. } => None,
    })
}

/// Measures stages.
struct Clock {
    last: Instant,
    stages: Vec<Stage>,
}

impl Clock {
    fn start() -> Self {
        Self { last: Instant::now(), stages: Vec::new() }
    }

    fn lap(&mut self, name: &'static str) {
        let now = Instant::now();
        self.stages.push(Stage { name, elapsed: now - self.last });
        self.last = now;
    }

    fn take(&mut self) -> Vec<Stage> {
        std::mem::take(&mut self.stages)
    }
}
