//! Building upon what another process resolved: only what the change reaches is loaded and resolved.
//!
//! Must not write anything but what it was kept by. Invariant: whatever is missing, damaged or of another build leads to the long way, in
//! which every file is loaded and resolved, and never to another result.

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};

use tracing::debug_span;

use crate::analysis::{self, AnalysisError, Database, FactsLoader, Resolved};
use crate::model::{Canonical, ContentHash, GenerationId, RepoPath, codec};
use crate::store::{BuildLock, FactsCache, Generation, StoredEntry};
use crate::workspace::{Capture, Entry, EntryState};

use super::super::EngineError;
use super::super::assembly::Contents;
use super::super::intake::Reading;
use super::{Basics, Basis, Build, Failures, cache_key, included, threads};

/// How a capture differs from the manifest of a generation.
#[derive(Debug, Default)]
struct Differences {
    /// Included files with another content, new and gone ones too.
    contents: BTreeSet<RepoPath>,
    /// Whether an included path came or went.
    paths: bool,
    /// Files of which the generation will say something else, whatever their references come to.
    rewritten: BTreeSet<RepoPath>,
    count: usize,
}

impl Differences {
    fn of(capture: &Capture, before: &[StoredEntry]) -> Self {
        let mut differences = Self::default();
        let mut before = before.iter().peekable();
        for entry in capture.entries.iter() {
            while let Some(gone) = before.next_if(|stored| stored.entry.path < entry.path) {
                differences.add(Some(gone), None);
            }
            differences.add(before.next_if(|stored| stored.entry.path == entry.path), Some(entry));
        }
        for gone in before {
            differences.add(Some(gone), None);
        }
        differences
    }

    fn add(&mut self, before: Option<&StoredEntry>, now: Option<&Entry>) {
        // What failed is tried again, so that it may come to something else.
        if before.is_some_and(|before| !before.failed && Some(&before.entry) == now) {
            return;
        }
        self.count += 1;
        let content = |entry: &Entry| match entry.state {
            EntryState::Included { hash, .. } => Some(hash),
            EntryState::Omitted { .. } => None,
        };
        let (old, new) = (before.and_then(|before| content(&before.entry)), now.and_then(content));
        self.paths |= old.is_some() != new.is_some();
        let Some(path) = now.or(before.map(|before| &before.entry)).map(|entry| &entry.path) else { return };
        if old != new || before.is_some_and(|before| before.failed) {
            self.contents.insert(path.clone());
        }
        if new.is_some() {
            self.rewritten.insert(path.clone());
        }
    }
}

impl Build<'_> {
    /// Resolves what the difference to the parent reaches; `None` when all files must be.
    pub(super) fn resume(
        &mut self,
        capture: &Capture,
        basics: &Basics,
        failures: &Failures,
        contents: &mut Contents,
    ) -> Result<Option<Resolved>, EngineError> {
        let (Some(parent), Some(facts)) = (&basics.parent, &basics.facts) else { return Ok(None) };
        let follows = self.memory.journal.is_on() || self.memory.listening;
        if self.basis != Basis::Everything || follows || !self.continues(parent, capture) {
            return Ok(None);
        }
        let database = &self.memory.database;
        let goes_on = database.is_partial() && self.memory.traced == Some(parent.id());
        if !goes_on && !database.is_empty() && !database.is_partial() {
            // It knows every file, and is quicker.
            return Ok(None);
        }
        let differences = Differences::of(capture, &basics.entries);
        if !BuildLock::may_be_delta(parent, differences.count) {
            return Ok(None);
        }
        let image = if goes_on { None } else { self.cache.traces(parent.id(), &self.traces_key()) };
        if !goes_on && image.is_none() {
            return Ok(None);
        }
        if !goes_on {
            self.forget();
        }
        let span = debug_span!("resume", files = tracing::field::Empty);
        let _entered = span.enter();
        let rewritten = included(capture).filter(|(path, _)| differences.rewritten.contains(*path));
        self.complete(rewritten, failures, Some(facts), contents)?;
        self.clock.lap("load");
        self.memory.database.load_with(loader(self.scope.languages(), Arc::clone(facts)));
        facts.note_use(included(capture).map(|(path, hash)| {
            let reading = Reading::of(self.scope.languages(), path);
            cache_key(&(hash, reading.dialect), reading)
        }));
        self.tell(capture, contents, true)?;
        let Differences { contents: changed, paths, rewritten, .. } = differences;
        if image.is_some_and(|image| !self.memory.database.resume(&image, changed, paths)) {
            self.forget();
            return Ok(None);
        }
        let demand = self.demand.clone();
        let resolved = match self.memory.database.resolve_reached(threads(), &rewritten, &|| demand.ended().is_some()) {
            Ok(resolved) => resolved,
            Err(AnalysisError::Interrupted) => {
                self.forget();
                return Err(self.ended());
            }
            Err(AnalysisError::Facts) => {
                self.forget();
                return Ok(None);
            }
            Err(error) => return Err(error.into()),
        };
        span.record("files", resolved.resolved_files);
        let hashes = included(capture).filter(|(path, _)| resolved.edges.binary_search_by(|(of, _)| of.cmp(path)).is_ok());
        for (path, hash) in hashes {
            let key = (hash, Reading::of(self.scope.languages(), path).dialect);
            if let Some(facts) = self.memory.facts(&key) {
                contents.extracted.entry(key).or_insert(Ok(facts));
            }
        }
        self.memory.note_edges(&resolved);
        Ok(Some(resolved))
    }

    /// Returns whether a generation of this capture may be written as what differs from the parent.
    pub(super) fn continues(&self, parent: &Generation, capture: &Capture) -> bool {
        let before = parent.identity();
        before.rules == self.scope.rules()
            && before.git == capture.git.present
            && before.object_format == capture.git.object_format
    }

    /// Lets go of what the database knows of few files.
    pub(super) fn forget(&mut self) {
        self.memory.database = Database::with_languages(self.scope.languages(), self.scope.source_roots());
        self.memory.traced = None;
    }

    /// Returns what was asked to resolve the generation that is about to be published, for the next process. That stands without.
    pub(super) fn traces(&mut self) -> Option<Vec<u8>> {
        let image = debug_span!("traces").in_scope(|| self.memory.database.image());
        // Until it is published they speak of no generation that serves.
        self.memory.traced = None;
        image.inspect_err(|error| tracing::debug!(%error, "what was asked to resolve the repository is not known")).ok()
    }

    /// Keeps them for the generation that was published. Not before: were that refused, those of the one which serves on would be lost.
    pub(super) fn keep_traces(&mut self, of: GenerationId, traces: Option<&[u8]>) {
        if let Some(traces) = traces
            && let Err(error) = self.lock.write_traces(of, &self.traces_key(), traces)
        {
            tracing::debug!(%error, "what was asked to resolve the repository was not kept");
        }
        self.memory.traced = Some(of);
    }

    fn traces_key(&self) -> ContentHash {
        static FORM: LazyLock<ContentHash> = LazyLock::new(|| {
            let mut record = Canonical::new("traces-form");
            for text in analysis::DECLARATIONS.iter().chain(&codec::DECLARATIONS) {
                record.field(text.as_bytes());
            }
            ContentHash(record.finish())
        });
        let mut record = Canonical::new("traces-key");
        record.field(&FORM.0).field(&self.scope.rules().0);
        ContentHash(record.finish())
    }
}

fn loader(languages: &'static [&'static dyn crate::languages::LanguageSupport], facts: Arc<FactsCache>) -> FactsLoader {
    Arc::new(move |hash, dialect| facts.get(&cache_key(&(hash, dialect), Reading::of_dialect(languages, dialect))))
}
