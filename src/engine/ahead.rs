//! Work that the next sync would have to do, done before it is asked for.
//!
//! Must not publish, nor touch what is published. Invariant: a sync diffs the worktree against the database whatever was done here, so that
//! a hint which was late, wrong or missing costs time and nothing else. What could not be parsed is left to the sync, which knows how to
//! say so.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use dashmap::DashMap;
use tracing::debug_span;

use crate::analysis::{AnalysisError, FileInput, Standing, Update};
use crate::model::{Cancel, ContentHash, Demand, FileFacts, Headway, RepoPath, codec};
use crate::parse::{ParseLimits, Parser};
use crate::store::Cache;
use crate::watch::Hint;

use super::EngineError;
use super::intake::{FactsKey, Fresh, Reading, claim};
use super::progress::Step;
use super::scope::Scope;
use super::sync::{Memory, cache_key, included_entries};

/// What a preparation did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Prepared {
    /// Files that differed from what this process knew.
    pub files: u64,
    /// Contents whose facts were made.
    pub extracted: u64,
    /// Files whose references were resolved.
    pub resolved: u64,
    pub cancelled: bool,
}

pub(super) fn prepare(
    scope: &Scope,
    cache: &Cache,
    parser: &dyn Parser,
    memory: &mut Memory,
    hint: &Hint,
    cancel: &Cancel,
) -> Result<Prepared, EngineError> {
    let span = debug_span!("prepare", files = tracing::field::Empty, resolved = tracing::field::Empty);
    let _entered = span.enter();
    let mut prepared = Prepared::default();
    // What was read when it is cancelled is made use of.
    let demand = Demand::until(Instant::now() + scope.limits().build());
    parser.begin();
    let facts_cache = cache.facts();
    let (sources, texts, failed) = (memory.database.facts_store(), &memory.texts, &memory.failed);
    let is_known = |key: &FactsKey, reading: Reading| {
        sources.get(key.0, key.1).is_some()
            || texts.contains_key(key)
            // It would take as long again.
            || failed.contains(key)
            || facts_cache.contains(&cache_key(key, reading))
    };
    let intake = Intake {
        scope,
        parser,
        limits: ParseLimits::from(scope.limits()),
        is_known: &is_known,
        cancel,
        made: DashMap::new(),
        failure: OnceLock::new(),
    };
    let visit = |path: &RepoPath, hash: &ContentHash, bytes: &[u8]| intake.take(path, hash, bytes);
    let (entries, part) = match hint {
        Hint::Rescan => {
            let spare = |path: &RepoPath, hash: &ContentHash| {
                let reading = Reading::of(scope.languages(), path);
                is_known(&(*hash, reading.dialect), reading)
            };
            (scope.capture(Step::Check, &demand, &spare, &visit)?.entries, None)
        }
        Hint::Paths(paths) => (scope.capture_part(&demand, paths, &visit)?.into(), Some(paths)),
    };
    let Intake { made, failure, .. } = intake;
    if let Some(error) = failure.into_inner() {
        return Err(error);
    }
    let mut found: BTreeMap<FactsKey, Arc<FileFacts>> = BTreeMap::new();
    let mut encoded = Vec::new();
    for (key, fresh) in made {
        let Some(Fresh { reading, extraction, encoded: bytes }) = fresh else { continue };
        match extraction {
            Ok(facts) => {
                prepared.extracted += u64::from(reading.language.is_some());
                encoded.extend(bytes.or_else(|| codec::encode(&facts)).map(|bytes| (cache_key(&key, reading), bytes)));
                found.insert(key, facts);
            }
            Err(_) => drop(memory.failed.insert(key)),
        }
    }
    let kept: Vec<_> = encoded.iter().map(|(key, bytes)| (*key, bytes.as_slice())).collect();
    // A sync that misses them makes them again.
    if let Err(error) = facts_cache.insert(&kept) {
        tracing::debug!(%error, "new facts were not cached");
    }

    let standing = included_entries(&entries).map(|(path, hash)| {
        let is_failed = |reading: Reading| {
            let key = (hash, reading.dialect);
            // Others may have made its facts since.
            memory.failed.contains(&key) && !found.contains_key(&key) && !facts_cache.contains(&cache_key(&key, reading))
        };
        (path, Standing { hash, failed: !memory.failed.is_empty() && is_failed(Reading::of(scope.languages(), path)) })
    });
    let stale = match part {
        None => memory.database.stale(standing),
        Some(paths) => memory.database.stale_where(|path| is_below(path, paths), standing),
    };
    let mut wanted: BTreeMap<FactsKey, Reading> = BTreeMap::new();
    let mut changed: Vec<(&RepoPath, FactsKey, Reading)> = Vec::new();
    for (path, hash) in included_entries(&entries).filter(|(path, _)| stale.changed.binary_search(path).is_ok()) {
        let reading = Reading::of(scope.languages(), path);
        let key = (hash, reading.dialect);
        if let Entry::Vacant(place) = found.entry(key) {
            match memory.facts(&key) {
                Some(facts) => drop(place.insert(facts)),
                None => drop(wanted.insert(key, reading)),
            }
        }
        changed.push((path, key, reading));
    }
    let keys: Vec<_> = wanted.iter().map(|(key, reading)| cache_key(key, *reading)).collect();
    for (key, facts) in wanted.into_keys().zip(facts_cache.lookup(&keys)) {
        found.extend(facts.map(|facts| (key, facts)));
    }
    if cancel.is_cancelled() {
        return Ok(Prepared { cancelled: true, ..prepared });
    }
    let mut files = Vec::with_capacity(changed.len());
    for (path, key, reading) in changed {
        // Without facts it stays as it was known, and a sync finds it changed.
        let Some(facts) = found.get(&key) else { continue };
        if reading.language.is_none() {
            memory.texts.insert(key, Arc::clone(facts));
        }
        files.push(FileInput { path: path.clone(), hash: key.0, outcome: reading.outcome(Some(facts)) });
    }
    prepared.files = (files.len() + stale.removed.len()) as u64;
    span.record("files", prepared.files);
    memory.journal.note_files(&stale);
    memory.database.apply(Update { files, removed: stale.removed });
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    match memory.database.resolve_unless(threads, &|| cancel.is_cancelled(), &Headway::default()) {
        Ok(resolved) => {
            prepared.resolved = resolved.resolved_files;
            memory.note_edges(&resolved);
        }
        Err(AnalysisError::Interrupted) => prepared.cancelled = true,
        Err(error) => return Err(error.into()),
    }
    span.record("resolved", prepared.resolved);
    Ok(prepared)
}

/// Makes facts of what is read, unless they are known.
struct Intake<'a> {
    scope: &'a Scope,
    parser: &'a dyn Parser,
    limits: ParseLimits,
    is_known: &'a (dyn Fn(&FactsKey, Reading) -> bool + Sync),
    cancel: &'a Cancel,
    made: DashMap<FactsKey, Option<Fresh>>,
    /// The first failure of all parsers; after it nothing more is done.
    failure: OnceLock<EngineError>,
}

impl Intake<'_> {
    fn take(&self, path: &RepoPath, hash: &ContentHash, bytes: &[u8]) {
        if self.cancel.is_cancelled() || self.failure.get().is_some() {
            return;
        }
        let reading = Reading::of(self.scope.languages(), path);
        let key = (*hash, reading.dialect);
        if (self.is_known)(&key, reading) || !claim(&self.made, key) {
            return;
        }
        match reading.facts(self.parser, bytes, &self.limits) {
            Ok(fresh) => drop(self.made.insert(key, Some(fresh))),
            Err(error) => drop(self.failure.set(error)),
        }
    }
}

/// Returns whether a path is one of `paths`, which are sorted, or stands below one.
fn is_below(path: &RepoPath, paths: &[RepoPath]) -> bool {
    let text = path.as_str();
    let is_one = |text: &str| paths.binary_search_by(|known| known.as_str().cmp(text)).is_ok();
    is_one(text) || text.match_indices('/').any(|(at, _)| is_one(&text[..at]))
}
