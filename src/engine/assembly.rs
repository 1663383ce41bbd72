//! Putting together what a generation is made from: all of it, or what differs from its parent.
//!
//! Must not write anything. Invariant: a file that is left out of a change equals, in everything that a generation says of it, what the
//! parent says.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use crate::analysis::{Database, Resolved, Standing};
use crate::languages::LanguageSupport;
use crate::model::{ContentHash, FileEdges, RepoPath};
use crate::store::{Change, Content, ContentFile, Identity, Staged, StoredEntry};
use crate::workspace::{Capture, Entry, EntryState, dirty};

use super::EngineError;
use super::intake::{Extraction, FactsKey, Fresh, Reading, Stored};
use super::report::{BuildCounts, BuildOutcome, BuildStatus, FailedFile};
use super::scope::{Scope, fingerprint};
use super::sync::included;

/// Where the contents of a capture are, and what they say.
pub(super) struct Contents {
    pub stored: HashMap<ContentHash, Stored>,
    pub extracted: HashMap<FactsKey, Extraction>,
    /// Those whose facts this build made from bytes, with the facts' own bytes until these are kept.
    pub fresh: BTreeMap<FactsKey, (Reading, Option<Vec<u8>>)>,
}

impl Contents {
    pub fn take(&mut self, key: FactsKey, fresh: Fresh) {
        let Fresh { reading, extraction, encoded } = fresh;
        self.fresh.insert(key, (reading, encoded));
        self.extracted.insert(key, extraction);
    }

    /// Returns what stands at each included path of a capture, as far as contents were looked at.
    pub fn standing<'c>(
        &'c self,
        languages: &'static [&'static dyn LanguageSupport],
        capture: &'c Capture,
    ) -> impl Iterator<Item = (&'c RepoPath, Standing)> {
        let any_failed = self.extracted.values().any(Result::is_err);
        included(capture).map(move |(path, hash)| {
            let is_failed = || matches!(self.extracted.get(&(hash, Reading::of(languages, path).dialect)), Some(Err(_)));
            (path, Standing { hash, failed: any_failed && is_failed() })
        })
    }
}

/// What the references of each file came to, by path.
pub(super) type Edges = [(RepoPath, Arc<FileEdges>)];

/// All that is known of a capture.
pub(super) struct Assembly<'a> {
    scope: &'a Scope,
    database: &'a Database,
    capture: &'a Capture,
    contents: &'a Contents,
    resolved: &'a Resolved,
    /// Under which key the facts of each entry are known; `None` of those left out.
    keys: Vec<Option<(FactsKey, Reading)>>,
    any_failed: bool,
}

impl<'a> Assembly<'a> {
    pub fn new(
        scope: &'a Scope,
        database: &'a Database,
        capture: &'a Capture,
        contents: &'a Contents,
        resolved: &'a Resolved,
    ) -> Self {
        let key = |entry: &Entry| {
            let EntryState::Included { hash, .. } = entry.state else { return None };
            let reading = Reading::of(scope.languages(), &entry.path);
            Some(((hash, reading.dialect), reading))
        };
        let keys = capture.entries.iter().map(key).collect();
        let any_failed = contents.extracted.values().any(Result::is_err);
        Self { scope, database, capture, contents, resolved, keys, any_failed }
    }

    /// Returns who the generation is. What HEAD's tree holds is known if the parent was built at the same one.
    pub fn identity(&self, state: ContentHash, parent: Option<&Identity>) -> Result<Identity, EngineError> {
        let Self { scope, capture, contents, .. } = *self;
        let git = &capture.git;
        let known = parent.filter(|parent| parent.head_tree == git.head_tree && parent.object_format == git.object_format);
        let head_digest = match known.and_then(|parent| parent.head_digest) {
            Some(digest) => Some(digest),
            None => scope.worktree().head_digest(capture)?,
        };
        let blob = |_: &RepoPath, hash: &ContentHash| contents.stored.get(hash).and_then(|stored| stored.blob.clone());
        let dirty = dirty(capture, head_digest.as_ref(), blob);
        Ok(Identity {
            fingerprint: fingerprint(&state, dirty),
            state,
            rules: scope.rules(),
            scope_id: scope.id().to_owned(),
            binding_id: scope.binding_id().to_owned(),
            commit: git.head.clone(),
            head_tree: git.head_tree.clone(),
            head_digest,
            branch: git.branch.clone(),
            object_format: git.object_format.to_owned(),
            git: git.present,
            dirty,
        })
    }

    /// Puts together what the generation holds.
    pub fn content(&self, identity: Identity) -> Result<Content, EngineError> {
        let mut edges = self.resolved.edges.iter().peekable();
        let mut files = Vec::with_capacity(self.capture.entries.len());
        for (entry, key) in self.entries() {
            let of_file = edges.next_if(|(of, _)| *of == entry.path).map(|(_, edges)| edges);
            files.push(self.file(entry, key, self.module(entry, key), of_file)?);
        }
        Ok(Content { identity, files, limitations: self.limitations(), unrepresentable: self.capture.unrepresentable.clone() })
    }

    /// Puts together what differs from the parent, whose manifest is `parent`. The rules must be equal. `known` is what the references of
    /// the files came to in the parent, as far as this process remembers it; `same_modules` says that no module has another name since.
    pub fn change(
        &self,
        identity: Identity,
        parent: &[StoredEntry],
        known: &Edges,
        same_modules: bool,
    ) -> Result<Change, EngineError> {
        let mut edges = self.resolved.edges.iter().peekable();
        let mut known = known.iter().peekable();
        let mut parent = parent.iter().peekable();
        let mut change = Change {
            identity,
            files: Vec::new(),
            removed: Vec::new(),
            limitations: self.limitations(),
            unrepresentable: self.capture.unrepresentable.clone(),
        };
        for (entry, key) in self.entries() {
            let path = &entry.path;
            let of_file = edges.next_if(|(of, _)| of == path).map(|(_, edges)| edges);
            while known.next_if(|(of, _)| of < path).is_some() {}
            let remembered = known.next_if(|(of, _)| of == path).map(|(_, edges)| edges);
            while let Some(gone) = parent.next_if(|stored| stored.entry.path < *path) {
                change.removed.push(gone.entry.path.clone());
            }
            let stored = parent.next_if(|stored| stored.entry.path == *path);
            let stored = stored.filter(|stored| stored.entry == *entry && !stored.failed && !self.is_failed(key));
            let left_out = self.resolved.partial && of_file.is_none();
            let module = match stored {
                Some(stored) if same_modules || left_out => stored.module.clone(),
                _ => self.module(entry, key),
            };
            let is_same = |stored: &StoredEntry| left_out || is_same(stored, of_file, remembered);
            if !stored.is_some_and(|stored| stored.module == module && is_same(stored)) {
                change.files.push(self.file(entry, key, module, of_file)?);
            }
        }
        change.removed.extend(parent.map(|stored| stored.entry.path.clone()));
        Ok(change)
    }

    /// Returns what is reported of a build that wrote `staged`; `parent` is the manifest of the generation before.
    pub fn outcome(&self, staged: &Staged<'_>, parent: &[StoredEntry]) -> BuildOutcome {
        let (coverage, totals) = (staged.coverage(), staged.totals());
        let (mut extracted_files, mut failures) = (0, Vec::new());
        if !self.contents.fresh.is_empty() || self.any_failed {
            for (entry, key) in self.entries() {
                let Some((key, reading)) = key else { continue };
                extracted_files += u64::from(reading.language.is_some() && self.contents.fresh.contains_key(key));
                if let Some(Err(failed)) = self.contents.extracted.get(key)
                    && failures.len() < FailedFile::MOST
                {
                    failures.push(FailedFile::new(entry.path.as_str(), failed.parse.failure.as_str()));
                }
            }
        }
        let sources = coverage.parsed_files + coverage.partial_files + coverage.failed_files;
        BuildOutcome {
            status: BuildStatus::Published,
            fingerprint: staged.fingerprint(),
            extracted_files,
            reused_files: sources.saturating_sub(extracted_files),
            removed_files: self.removed(parent),
            resolved_files: self.resolved.resolved_files,
            elapsed_seconds: 0.0,
            counts: BuildCounts {
                files: coverage.eligible_files,
                definitions: totals.definitions,
                edges: totals.edges,
                diagnostics: totals.diagnostics,
                partial_files: coverage.partial_files,
                failed_files: coverage.failed_files,
            },
            failures,
            stages: Vec::new(),
            peak_memory_bytes: None,
            verified: None,
        }
    }

    fn entries(&self) -> impl Iterator<Item = (&'a Entry, &Option<(FactsKey, Reading)>)> {
        self.capture.entries.iter().zip(&self.keys)
    }

    /// Returns how many included paths of the parent this capture does not include.
    fn removed(&self, parent: &[StoredEntry]) -> u64 {
        let is_included = |entry: &Entry| matches!(entry.state, EntryState::Included { .. });
        let mut left = self.capture.entries.iter().filter(|entry| is_included(entry)).map(|entry| &entry.path).peekable();
        let before = parent.iter().filter(|stored| is_included(&stored.entry)).map(|stored| &stored.entry.path);
        let gone = before.filter(|path| {
            while left.next_if(|kept| kept < path).is_some() {}
            left.next_if(|kept| kept == path).is_none()
        });
        gone.count() as u64
    }

    fn is_failed(&self, key: &Option<(FactsKey, Reading)>) -> bool {
        let extraction = |key| self.contents.extracted.get(key);
        self.any_failed && key.as_ref().is_some_and(|(key, _)| matches!(extraction(key), Some(Err(_))))
    }

    /// Returns the name people use for the module of a source file.
    fn module(&self, entry: &Entry, key: &Option<(FactsKey, Reading)>) -> Option<Arc<str>> {
        let (_, reading) = key.as_ref()?;
        reading.language.and_then(|_| self.database.module_name(&entry.path))
    }

    /// Returns the known gaps of the languages present, and of files that stand for some.
    fn limitations(&self) -> Vec<&'static str> {
        let languages = self.scope.languages();
        let mut present: Vec<&'static dyn LanguageSupport> = Vec::new();
        let mut limitations = BTreeSet::new();
        for (entry, key) in self.entries() {
            limitations.extend(languages.iter().filter_map(|language| language.unread(&entry.path)));
            if let Some((_, Reading { language: Some(language), .. })) = key
                && present.iter().all(|known| known.name() != language.name())
            {
                present.push(*language);
            }
        }
        limitations.extend(present.into_iter().flat_map(LanguageSupport::limitations));
        limitations.into_iter().collect()
    }

    /// Puts together what is known of one path.
    fn file(
        &self,
        entry: &Entry,
        key: &Option<(FactsKey, Reading)>,
        module: Option<Arc<str>>,
        edges: Option<&Arc<FileEdges>>,
    ) -> Result<ContentFile, EngineError> {
        let path = &entry.path;
        let mut file = ContentFile {
            entry: entry.clone(),
            object: None,
            blob: None,
            language: None,
            module: None,
            test: false,
            deprioritized: self.scope.policy().deprioritized(path),
            facts: None,
            failure: None,
            words: None,
            edges: edges.cloned(),
        };
        let Some((key, reading)) = key else { return Ok(file) };
        let stored = self.contents.stored.get(&key.0).ok_or(EngineError::Busy)?;
        file.object = Some(stored.object);
        file.blob.clone_from(&stored.blob);
        if let Some(language) = reading.language {
            file.language = Some(language.name());
            file.module = module;
            file.test = language.is_test(path);
        }
        match self.contents.extracted.get(key).ok_or(EngineError::Busy)? {
            Ok(facts) => file.facts = Some(Arc::clone(facts)),
            Err(failed) => {
                file.failure = Some(failed.parse.to_string());
                file.facts = Some(Arc::clone(&failed.facts));
                file.words = Some(Arc::clone(&failed.words));
            }
        }
        Ok(file)
    }
}

/// Returns the manifest of a generation that was written as a change of its parent, whose manifest is `parent`.
pub(super) fn entries_after(parent: Vec<StoredEntry>, change: &Change) -> Vec<StoredEntry> {
    let mut entries = Vec::with_capacity(parent.len() + change.files.len());
    let mut removed = change.removed.iter().peekable();
    let mut files = change.files.iter().peekable();
    for stored in parent {
        while let Some(added) = files.next_if(|file| file.entry.path < stored.entry.path) {
            entries.push(StoredEntry::of(added));
        }
        if removed.next_if(|path| **path == stored.entry.path).is_some() {
            continue;
        }
        entries.push(match files.next_if(|file| file.entry.path == stored.entry.path) {
            Some(file) => StoredEntry::of(file),
            None => stored,
        });
    }
    entries.extend(files.map(StoredEntry::of));
    entries
}

/// Returns whether the references of a file came to what they did in the parent; what is remembered of the parent is quicker to compare.
fn is_same(stored: &StoredEntry, now: Option<&Arc<FileEdges>>, remembered: Option<&Arc<FileEdges>>) -> bool {
    match (stored.references, now) {
        (None, None) => true,
        (Some(digest), Some(now)) => {
            remembered.is_some_and(|remembered| Arc::ptr_eq(remembered, now)) || now.digest().0[..16] == digest
        }
        _ => false,
    }
}
