//! The database as the engine sees it: apply a change, ask for edges.
//!
//! Must not know where facts come from. Invariant: between two calls no clone of the storage is alive, because in salsa a write waits
//! for all of them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use dashmap::DashMap;
use rustc_hash::FxHashMap;
use salsa::{Cancelled, Durability, Setter};

use crate::languages::{self, Dialect, LanguageSupport, text};
use crate::model::{ContentHash, FileEdges, FileFacts, Headway, RepoPath};

use super::blindness::FirstSeen;
use super::edges::{file_edges, rebindings, rebound};
use super::facts::file_facts;
use super::image;
use super::inputs::{ConfigurationFile, Content, Db, Inventory, LanguageIndex, Settings, SourceFile};
use super::modules::{Component, Module, export_graph, export_sources, file_module, file_module_name, solve_exports};
use super::question::{Execution, Question};
use super::remembered::Remembered;
use super::revisit::revisit;
use super::traces::{Advance, Changes, Traces};
use super::tree::Tree;

/// Why edges could not be computed.
#[derive(Debug, thiserror::Error)]
pub enum AnalysisError {
    /// A defect in a language's rules; the database stays usable.
    #[error("resolution stopped short: {message}")]
    Panicked { message: String },
    /// A write came in between.
    #[error("resolution was interrupted by a newer change")]
    Interrupted,
    /// Facts that the inputs name could not be had, so that nothing this database says can be used.
    #[error("the facts of a file could not be had")]
    Facts,
    /// The machine gave no thread to resolve on.
    #[error("no thread could be started to resolve on")]
    Thread {
        #[source]
        source: std::io::Error,
    },
}

/// What became of the bytes of one included file.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// Facts of a source file of a registered language, or of configuration that one reads.
    Facts(Arc<FileFacts>),
    /// As [`Self::Facts`], to be had from the [`FactsLoader`].
    Kept,
    /// Text of no registered language: it exists, and nothing more.
    Text,
    /// A source file whose facts could not be made.
    Failed,
}

/// One included file as it is now.
#[derive(Clone, Debug)]
pub struct FileInput {
    pub path: RepoPath,
    pub hash: ContentHash,
    pub outcome: Outcome,
}

/// What changed since the last update.
#[derive(Clone, Debug, Default)]
pub struct Update {
    pub files: Vec<FileInput>,
    pub removed: Vec<RepoPath>,
}

/// How much an update really changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    pub added: u64,
    pub changed: u64,
    pub removed: u64,
}

/// What stands at a path: its bytes, and whether their facts could not be made. That is no property of the bytes alone: others may have
/// made them meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    pub hash: ContentHash,
    pub failed: bool,
}

/// How the database differs from a manifest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stale {
    /// Files that are new, have other bytes, or have facts now and had none, sorted; or the other way round.
    pub changed: Vec<RepoPath>,
    /// Files that are gone, sorted.
    pub removed: Vec<RepoPath>,
}

/// What the references of each file came to, by path.
pub type AllEdges = Arc<Vec<(RepoPath, Arc<FileEdges>)>>;

/// The edges of every source file.
#[derive(Clone, Debug, Default)]
pub struct Resolved {
    pub edges: AllEdges,
    /// Whether only those files are among `edges` whose references may have come to something else.
    pub partial: bool,
    /// How many files were resolved anew.
    pub resolved_files: u64,
    /// Whether nothing changed since the last time but what no other file may see: names of modules stay, too.
    pub only_bodies: bool,
}

/// Gets facts that are kept elsewhere, by content.
pub type FactsLoader = Arc<dyn Fn(ContentHash, Dialect) -> Option<Arc<FileFacts>> + Send + Sync>;

/// State that all handles of one database share.
struct Shared {
    loader: RwLock<Option<FactsLoader>>,
    /// Whether the loader failed once.
    missing: AtomicBool,
    /// What queries asked that ran since it was last taken note of.
    executions: Mutex<Vec<Execution>>,
    /// Whether only a part of the files was looked at.
    partial: AtomicBool,
    remembered: RwLock<Option<Arc<Remembered>>>,
    /// The content-addressed facts: those that some input names.
    facts: DashMap<(ContentHash, Dialect), Arc<FileFacts>>,
    listening: AtomicBool,
    log: Mutex<Vec<String>>,
    resolutions: AtomicU64,
    first_seen: FirstSeen,
}

/// The facts in memory, by content.
#[derive(Clone)]
pub struct FactsStore(Arc<Shared>);

impl FactsStore {
    pub fn get(&self, hash: ContentHash, dialect: Dialect) -> Option<Arc<FileFacts>> {
        self.0.facts.get(&(hash, dialect)).map(|facts| Arc::clone(&facts))
    }
}

impl std::fmt::Debug for FactsStore {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("FactsStore").field("contents", &self.0.facts.len()).finish()
    }
}

/// The input that holds what is known of a file's bytes.
#[derive(Clone, Copy)]
enum FileContent {
    Source(SourceFile),
    Configuration(ConfigurationFile),
}

/// The handle on which queries run; cloned for the threads of one pass.
#[salsa::db]
#[derive(Clone)]
struct Handle {
    storage: salsa::Storage<Self>,
    languages: &'static [&'static dyn LanguageSupport],
    inputs: Option<(Inventory, Settings)>,
    files: Arc<FxHashMap<RepoPath, SourceFile>>,
    configuration: Arc<FxHashMap<RepoPath, ConfigurationFile>>,
    /// The values of `files`, by path.
    sorted: Arc<[SourceFile]>,
    shared: Arc<Shared>,
}

#[salsa::db]
impl salsa::Database for Handle {}

#[salsa::db]
impl Db for Handle {
    fn inventory(&self) -> Inventory {
        self.inputs.expect("a handle leaves its constructor with its inputs").0
    }

    fn settings(&self) -> Settings {
        self.inputs.expect("a handle leaves its constructor with its inputs").1
    }

    fn language(&self, index: LanguageIndex) -> &'static dyn LanguageSupport {
        self.languages[usize::from(index.0)]
    }

    fn source_file(&self, path: &str) -> Option<SourceFile> {
        self.files.get(path).copied()
    }

    fn configuration_file(&self, path: &str) -> Option<ConfigurationFile> {
        self.configuration.get(path).copied()
    }

    fn source_files(&self) -> &[SourceFile] {
        &self.sorted
    }

    fn stored_facts(&self, hash: ContentHash, dialect: Dialect) -> Option<Arc<FileFacts>> {
        if let Some(facts) = self.shared.facts.get(&(hash, dialect)) {
            return Some(Arc::clone(&facts));
        }
        let loader = self.shared.loader.read().unwrap_or_else(PoisonError::into_inner).clone();
        let loaded = loader.and_then(|load| load(hash, dialect));
        match &loaded {
            Some(facts) => drop(self.shared.facts.insert((hash, dialect), Arc::clone(facts))),
            None => self.shared.missing.store(true, Ordering::Relaxed),
        }
        loaded
    }

    fn executed(&self, question: Question, asked: Vec<Question>) {
        self.shared.executions.lock().unwrap_or_else(PoisonError::into_inner).push(Execution { question, asked });
    }

    fn take_executions(&self) -> Vec<Execution> {
        std::mem::take(&mut *self.shared.executions.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn is_partial(&self) -> bool {
        self.shared.partial.load(Ordering::Relaxed)
    }

    fn remembered(&self) -> Option<Arc<Remembered>> {
        self.shared.remembered.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn remember(&self, remembered: Remembered) {
        *self.shared.remembered.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(remembered));
    }

    fn note(&self, query: &'static str, subject: &dyn Display) {
        if self.shared.listening.load(Ordering::Relaxed) {
            let line = format!("{query} {subject}");
            self.shared.log.lock().unwrap_or_else(PoisonError::into_inner).push(line);
        }
    }

    fn first_seen(&self) -> &FirstSeen {
        &self.shared.first_seen
    }

    fn count_resolution(&self) {
        self.shared.resolutions.fetch_add(1, Ordering::Relaxed);
    }
}

/// The incremental database. One thread owns it.
pub struct Database {
    handle: Handle,
    /// What the database was last told of every included path, text too.
    known: BTreeMap<RepoPath, Standing>,
    /// How many inputs name the facts of a content.
    uses: FxHashMap<(ContentHash, Dialect), u32>,
    settled: Option<Settled>,
    /// What was asked to resolve the state that `pending` counts from.
    traces: Mutex<Traces>,
    /// What changed since that state.
    pending: Changes,
}

/// The edges of all files, as long as nothing has changed since but what no other file may see: then only those files are resolved again, and
/// nothing is asked of the rest.
struct Settled {
    edges: AllEdges,
    /// The files that changed since.
    touched: BTreeSet<RepoPath>,
}

impl std::fmt::Debug for Database {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Database").field("files", &self.known.len()).finish_non_exhaustive()
    }
}

impl Database {
    /// Makes an empty database for the languages of this build.
    pub fn new(source_roots: Option<&[String]>) -> Self {
        Self::with_languages(languages::REGISTRY, source_roots)
    }

    /// As [`Self::new`], for a table of languages of the caller's choice.
    pub fn with_languages(languages: &'static [&'static dyn LanguageSupport], source_roots: Option<&[String]>) -> Self {
        let mut handle = Handle {
            storage: salsa::Storage::default(),
            languages,
            inputs: None,
            files: Arc::default(),
            configuration: Arc::default(),
            sorted: Arc::from([]),
            shared: Arc::new(Shared {
                loader: RwLock::new(None),
                missing: AtomicBool::new(false),
                executions: Mutex::default(),
                partial: AtomicBool::new(false),
                remembered: RwLock::new(None),
                facts: DashMap::new(),
                listening: AtomicBool::new(false),
                log: Mutex::default(),
                resolutions: AtomicU64::new(0),
                first_seen: FirstSeen::default(),
            }),
        };
        let tree = Arc::new(Tree::new(std::iter::empty()));
        let inventory = Inventory::builder(tree).durability(Durability::HIGH).new(&handle);
        let settings = Settings::builder(shared_roots(source_roots)).durability(Durability::HIGH).new(&handle);
        handle.inputs = Some((inventory, settings));
        Self {
            handle,
            known: BTreeMap::new(),
            uses: FxHashMap::default(),
            settled: None,
            traces: Mutex::default(),
            pending: Changes::default(),
        }
    }

    /// Lets facts that are not in memory be had from `loader`.
    pub fn load_with(&mut self, loader: FactsLoader) {
        *self.handle.shared.loader.write().unwrap_or_else(PoisonError::into_inner) = Some(loader);
    }

    /// Returns whether the database knows no file yet.
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// Returns whether it gets facts by itself that it was not told.
    pub fn has_loader(&self) -> bool {
        self.handle.shared.loader.read().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Returns whether [`Self::resume`] left most files to be looked at when they are needed.
    pub fn is_partial(&self) -> bool {
        self.handle.is_partial()
    }

    /// Replaces the configured source roots.
    pub fn set_source_roots(&mut self, source_roots: Option<&[String]>) {
        let roots = shared_roots(source_roots);
        let settings = self.handle.settings();
        if settings.source_roots(&self.handle) != roots {
            self.settled = None;
            settings.set_source_roots(&mut self.handle).to(roots);
        }
    }

    /// Returns how the database differs from the included files of a manifest, given by path.
    pub fn stale<'a>(&self, manifest: impl Iterator<Item = (&'a RepoPath, Standing)>) -> Stale {
        self.stale_where(|_| true, manifest)
    }

    /// As [`Self::stale`], for the files of a part of the worktree, of which `manifest` is.
    pub fn stale_where<'a>(
        &self,
        part: impl Fn(&RepoPath) -> bool,
        manifest: impl Iterator<Item = (&'a RepoPath, Standing)>,
    ) -> Stale {
        let mut stale = Stale::default();
        let mut known = self.known.iter().filter(|(path, _)| part(path)).peekable();
        for (path, standing) in manifest {
            while let Some((gone, _)) = known.next_if(|(known, _)| *known < path) {
                stale.removed.push(gone.clone());
            }
            match known.next_if(|(known, _)| *known == path) {
                Some((_, known)) if *known == standing => {}
                _ => stale.changed.push(path.clone()),
            }
        }
        stale.removed.extend(known.map(|(gone, _)| gone.clone()));
        stale
    }

    /// Returns whether more than half of the files it knows are gone. It cannot let go of a file, only take note that it is not there.
    pub fn is_overgrown(&self) -> bool {
        // Few are no burden, however many of them are gone.
        self.handle.files.len() + self.handle.configuration.len() > 2 * self.known.len().max(1000)
    }

    /// Returns the facts that the inputs name, for threads that must not see the rest of the database.
    pub fn facts_store(&self) -> FactsStore {
        FactsStore(Arc::clone(&self.handle.shared))
    }

    /// Brings the inputs up to date. What is equal already is not set again.
    pub fn apply(&mut self, update: Update) -> Applied {
        let mut applied = Applied::default();
        let mut paths_changed = false;
        let mut released = Vec::new();
        for path in update.removed {
            if self.known.remove(&path).is_some() {
                applied.removed += 1;
                paths_changed = true;
                self.pending.contents.insert(path.clone());
                if let Some(input) = self.input(&path) {
                    self.set_content(input, Content::Absent, &mut released);
                }
            }
        }
        let mut added = Vec::new();
        let mut added_configuration = Vec::new();
        for FileInput { path, hash, outcome } in update.files {
            let now = Standing { hash, failed: matches!(outcome, Outcome::Failed) };
            match self.known.insert(path.clone(), now) {
                Some(before) if before == now => continue,
                Some(_) => applied.changed += 1,
                None => {
                    applied.added += 1;
                    paths_changed = true;
                }
            }
            let language = self.language_of(&path);
            let dialect = match language {
                Some((_, dialect)) => dialect,
                None if text::dialect(self.handle.languages, &path) == text::CONFIGURATION => text::CONFIGURATION,
                None => continue,
            };
            let content = match outcome {
                Outcome::Facts(facts) => {
                    // Before the setter, so that no query can miss them.
                    self.handle.shared.facts.entry((hash, dialect)).or_insert(facts);
                    Content::Facts(hash)
                }
                Outcome::Kept => Content::Facts(hash),
                Outcome::Text | Outcome::Failed => Content::Failed,
            };
            self.pending.contents.insert(path.clone());
            if let Some(input) = self.input(&path) {
                self.note_change(input, &path, content);
                self.set_content(input, content, &mut released);
                continue;
            }
            self.count_use(content, dialect);
            if let Some((language, dialect)) = language {
                let builder = SourceFile::builder(path.clone(), language, dialect, content);
                let file = builder.durability(Durability::MEDIUM).path_durability(Durability::NEVER_CHANGE).new(&self.handle);
                added.push((path, file));
            } else {
                let builder = ConfigurationFile::builder(path.clone(), content);
                let file = builder.durability(Durability::HIGH).path_durability(Durability::NEVER_CHANGE).new(&self.handle);
                added_configuration.push((path, file));
            }
        }
        if !added_configuration.is_empty() {
            Arc::make_mut(&mut self.handle.configuration).extend(added_configuration);
        }
        if !added.is_empty() {
            let files = Arc::make_mut(&mut self.handle.files);
            files.extend(added);
            let mut sorted: Vec<_> = files.iter().collect();
            sorted.sort_unstable_by_key(|(path, _)| *path);
            self.handle.sorted = sorted.into_iter().map(|(_, file)| *file).collect();
        }
        if paths_changed {
            self.settled = None;
            self.pending.paths = true;
            let tree = Arc::new(Tree::new(self.known.keys()));
            self.handle.inventory().set_tree(&mut self.handle).to(tree);
        }
        // What it says follows from inputs that are others now.
        *self.handle.shared.remembered.write().unwrap_or_else(PoisonError::into_inner) = None;
        for (hash, dialect) in released {
            if self.uses.get(&(hash, dialect)).is_none_or(|uses| *uses == 0) {
                self.uses.remove(&(hash, dialect));
                self.handle.shared.facts.remove(&(hash, dialect));
            }
        }
        applied
    }

    /// Returns the language whose lookup space a language shares: the first of its family.
    fn lookup_space(&self, language: usize) -> usize {
        let family = self.handle.languages[language].family();
        self.handle.languages.iter().position(|other| other.family() == family).unwrap_or(language)
    }

    fn language_of(&self, path: &RepoPath) -> Option<(LanguageIndex, Dialect)> {
        let (language, dialect) = languages::find_language(self.handle.languages, path)?;
        let language = self.lookup_space(language);
        u16::try_from(language).ok().map(|index| (LanguageIndex(index), dialect))
    }

    fn input(&self, path: &RepoPath) -> Option<FileContent> {
        let source = self.handle.source_file(path.as_str()).map(FileContent::Source);
        source.or_else(|| self.handle.configuration_file(path.as_str()).map(FileContent::Configuration))
    }

    fn count_use(&mut self, content: Content, dialect: Dialect) {
        if let Content::Facts(hash) = content {
            *self.uses.entry((hash, dialect)).or_default() += 1;
        }
    }

    /// Notes that a file is about to have another content. What other files may see of it is its surface and how well it was read.
    fn note_change(&mut self, input: FileContent, path: &RepoPath, after: Content) {
        let Some(settled) = &mut self.settled else { return };
        let facts = |content, dialect| match content {
            Content::Facts(hash) => self.handle.stored_facts(hash, dialect),
            Content::Absent | Content::Failed => None,
        };
        let stays_the_same = match input {
            FileContent::Configuration(file) => file.content(&self.handle) == after,
            FileContent::Source(file) => {
                let dialect = file.dialect(&self.handle);
                let both = facts(file.content(&self.handle), dialect).zip(facts(after, dialect));
                both.is_some_and(|(before, after)| before.surface == after.surface && before.parse == after.parse)
            }
        };
        if stays_the_same {
            settled.touched.insert(path.clone());
        } else {
            self.settled = None;
        }
    }

    fn set_content(&mut self, input: FileContent, content: Content, released: &mut Vec<(ContentHash, Dialect)>) {
        let (before, dialect) = match input {
            FileContent::Source(file) => (file.content(&self.handle), file.dialect(&self.handle)),
            FileContent::Configuration(file) => (file.content(&self.handle), text::CONFIGURATION),
        };
        self.count_use(content, dialect);
        if let Content::Facts(hash) = before {
            if let Some(uses) = self.uses.get_mut(&(hash, dialect)) {
                *uses -= 1;
            }
            released.push((hash, dialect));
        }
        if before != content {
            match input {
                FileContent::Source(file) => drop(file.set_content(&mut self.handle).to(content)),
                FileContent::Configuration(file) => drop(file.set_content(&mut self.handle).to(content)),
            }
        }
    }

    /// Returns the facts of a source file.
    pub fn facts(&self, path: &RepoPath) -> Option<Arc<FileFacts>> {
        self.handle.source_file(path.as_str()).and_then(|file| file_facts(&self.handle, file))
    }

    /// Returns the name people use for the module of a source file.
    pub fn module_name(&self, path: &RepoPath) -> Option<Arc<str>> {
        self.handle.source_file(path.as_str()).and_then(|file| file_module_name(&self.handle, file))
    }

    /// Returns the edges of one source file.
    ///
    /// # Errors
    /// As [`Self::resolve_all`].
    pub fn edges(&self, path: &RepoPath) -> Result<Option<Arc<FileEdges>>, AnalysisError> {
        let Some(file) = self.handle.source_file(path.as_str()) else { return Ok(None) };
        self.prepare(1, &self.present(), &never, &Headway::default())?;
        Ok(run(1, &self.handle, &[file], &never, file_edges)?.pop())
    }

    /// Returns the edges of all source files, resolved on `threads` threads.
    ///
    /// # Errors
    /// [`AnalysisError::Panicked`] when a language's rules broke down; inputs and memos stay as they are.
    pub fn resolve_all(&mut self, threads: usize, headway: &Headway) -> Result<Resolved, AnalysisError> {
        self.resolve_unless(threads, &never, headway)
    }

    /// As [`Self::resolve_all`], until `stop` says so; what was resolved by then is remembered.
    ///
    /// # Errors
    /// As [`Self::resolve_all`]; [`AnalysisError::Interrupted`] when it was stopped.
    pub fn resolve_unless(&mut self, threads: usize, stop: &Stop<'_>, headway: &Headway) -> Result<Resolved, AnalysisError> {
        let was_partial = self.handle.shared.partial.swap(false, Ordering::Relaxed);
        *self.handle.shared.remembered.write().unwrap_or_else(PoisonError::into_inner) = None;
        let resolved = self.resolve_whole(threads, stop, headway);
        if resolved.is_err() {
            // It goes on to know what it knew; what ran meanwhile is noted as ever.
            self.handle.shared.partial.store(was_partial, Ordering::Relaxed);
        }
        resolved
    }

    fn resolve_whole(&mut self, threads: usize, stop: &Stop<'_>, headway: &Headway) -> Result<Resolved, AnalysisError> {
        let before = self.handle.shared.resolutions.load(Ordering::Relaxed);
        let only_bodies = self.settled.is_some();
        let edges = match self.settled.take() {
            Some(Settled { edges, touched }) => self.resolve_touched(edges, &touched, threads, stop)?,
            None => {
                let files = self.present();
                headway.expect(files.len() as u64, PASSES);
                self.prepare(threads, &files, stop, headway)?;
                let edges = run(threads, &self.handle, &files, stop, |db, file| {
                    headway.add(1);
                    file_edges(db, file)
                })?;
                Arc::new(files.iter().map(|file| file.path(&self.handle).clone()).zip(edges).collect())
            }
        };
        self.check_facts()?;
        self.settled = Some(Settled { edges: Arc::clone(&edges), touched: BTreeSet::new() });
        let resolved_files = self.handle.shared.resolutions.load(Ordering::Relaxed) - before;
        Ok(Resolved { edges, partial: false, resolved_files, only_bodies })
    }

    fn check_facts(&self) -> Result<(), AnalysisError> {
        if self.handle.shared.missing.load(Ordering::Relaxed) { Err(AnalysisError::Facts) } else { Ok(()) }
    }

    /// Takes up the work where another process left it: `image` is what [`Self::image`] gave there, and `changed` are the files that have
    /// had another content since, came or went. To be called once the database has been told of all files. Returns false when the image
    /// says nothing.
    pub fn resume(&mut self, image: &[u8], changed: BTreeSet<RepoPath>, paths_changed: bool) -> bool {
        let Some(traces) = image::decode(image) else { return false };
        self.traces = Mutex::new(traces);
        self.pending = Changes { contents: changed, paths: paths_changed };
        self.settled = None;
        self.handle.shared.partial.store(true, Ordering::Relaxed);
        true
    }

    /// Returns the edges of those files that the changes since the last state reach, and of the `wanted` ones; for a database that was
    /// resumed. Ends once `stop` says so.
    ///
    /// # Errors
    /// As [`Self::resolve_unless`]; [`AnalysisError::Facts`] when the loader failed.
    pub fn resolve_reached(
        &mut self,
        threads: usize,
        wanted: &BTreeSet<RepoPath>,
        stop: &Stop<'_>,
    ) -> Result<Resolved, AnalysisError> {
        let before = self.handle.shared.resolutions.load(Ordering::Relaxed);
        let files = self.present();
        let traces = self.traces.get_mut().unwrap_or_else(PoisonError::into_inner);
        let (traces, pending) = (&*traces, &self.pending);
        let reached = run(1, &self.handle, &[()], stop, |db, ()| revisit(db, traces, pending, &files))?.pop().unwrap_or_default();
        self.check_facts()?;
        let reached: BTreeSet<&RepoPath> = reached.iter().map(|file| file.path(&self.handle)).chain(wanted).collect();
        let files: Vec<_> = reached.iter().filter_map(|path| self.handle.source_file(path.as_str())).collect();
        let files: Vec<_> = files.into_iter().filter(|file| file.content(&self.handle) != Content::Absent).collect();
        let edges = run(threads, &self.handle, &files, stop, |db, file| {
            drop(file_module_name(db, file));
            file_edges(db, file)
        })?;
        self.check_facts()?;
        let edges = files.iter().map(|file| file.path(&self.handle).clone()).zip(edges).collect();
        let resolved_files = self.handle.shared.resolutions.load(Ordering::Relaxed) - before;
        Ok(Resolved { edges: Arc::new(edges), partial: true, resolved_files, only_bodies: false })
    }

    /// Returns, as bytes, what was asked to resolve the present state, for [`Self::resume`] in a later process. All files must be resolved.
    ///
    /// # Errors
    /// As [`Self::resolve_all`].
    pub fn image(&mut self) -> Result<Vec<u8>, AnalysisError> {
        let files = self.present();
        let (traces, pending) = (&self.traces, &self.pending);
        let mut images = run(1, &self.handle, &[()], &never, |db, ()| {
            let mut traces = traces.lock().unwrap_or_else(PoisonError::into_inner);
            if !db.is_partial() {
                // Nobody may have asked since something changed by which they are others.
                files.iter().for_each(|file| drop(file_module_name(db, *file)));
            }
            Advance::new(db, &mut traces).run(pending);
            image::encode(&traces, files.iter().map(|file| file.path(db).as_str()))
        })?;
        self.check_facts()?;
        self.pending = Changes::default();
        Ok(images.pop().unwrap_or_default())
    }

    /// Returns the edges of all files, of which only the touched ones may have changed.
    fn resolve_touched(
        &self,
        edges: AllEdges,
        touched: &BTreeSet<RepoPath>,
        threads: usize,
        stop: &Stop<'_>,
    ) -> Result<AllEdges, AnalysisError> {
        let files: Vec<_> = touched.iter().filter_map(|path| self.handle.source_file(path.as_str())).collect();
        if files.is_empty() {
            return Ok(edges);
        }
        self.prepare(threads, &self.present(), stop, &Headway::default())?;
        let fresh = run(threads, &self.handle, &files, stop, file_edges)?;
        let mut edges = Arc::unwrap_or_clone(edges);
        for (file, fresh) in files.iter().zip(fresh) {
            let path = file.path(&self.handle);
            if let Ok(position) = edges.binary_search_by(|(of, _)| of.cmp(path)) {
                edges[position].1 = fresh;
            }
        }
        Ok(Arc::new(edges))
    }

    /// Returns the source files of the manifest, by path.
    fn present(&self) -> Vec<SourceFile> {
        let db = &self.handle;
        db.sorted.iter().copied().filter(|file| file.content(db) != Content::Absent).collect()
    }

    /// Brings up to date what edges stand on, in the order of dependence: solved bottom up, no query waits for a long chain of others,
    /// neither when it runs nor when it is verified.
    fn prepare(&self, threads: usize, files: &[SourceFile], stop: &Stop<'_>, headway: &Headway) -> Result<(), AnalysisError> {
        run(threads, &self.handle, files, stop, |db, file| {
            headway.add(1);
            let module = file_module(db, file);
            export_sources(db, Module::new(db, file.language(db), &module));
        })?;
        for language in (0..self.handle.languages.len()).filter(|language| self.lookup_space(*language) == *language) {
            let Ok(language) = u16::try_from(language).map(LanguageIndex) else { break };
            run(1, &self.handle, &[()], stop, |db, ()| {
                for members in &export_graph(db, db.inventory(), language).components {
                    solve_exports(db, Component::new(db, language, members));
                }
            })?;
        }
        run(threads, &self.handle, files, stop, |db, file| {
            headway.add(1);
            drop(rebindings(db, file));
        })?;
        run(1, &self.handle, &[()], stop, |db, ()| drop(rebound(db, db.inventory())))?;
        Ok(())
    }

    /// Starts or ends the log of executed queries.
    pub fn listen(&mut self, on: bool) {
        self.handle.shared.listening.store(on, Ordering::Relaxed);
    }

    /// Returns the queries executed since the last call, each as `query subject`, in the order they started.
    pub fn take_log(&mut self) -> Vec<String> {
        std::mem::take(&mut *self.handle.shared.log.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn shared_roots(roots: Option<&[String]>) -> Option<Arc<[Arc<str>]>> {
    roots.map(|roots| roots.iter().map(|root| Arc::from(root.as_str())).collect())
}

/// Room for the stack of a resolver on hostile input; only pages that are used count.
const STACK_BYTES: usize = 64 << 20;

/// How often a first resolution goes through all files: for what they export, what they rebind, and their edges.
const PASSES: u64 = 3;

/// Files a thread takes at a time.
const CHUNK: usize = 16;

/// Says whether work is to end before it is done; asked before each file.
pub type Stop<'s> = dyn Fn() -> bool + Sync + 's;

/// For what is not to be stopped.
fn never() -> bool {
    false
}

/// Runs a query for every item on several threads, each with a handle of its own; the results come in the order of the items.
fn run<I: Copy + Sync, R: Send>(
    threads: usize,
    handle: &Handle,
    items: &[I],
    stop: &Stop<'_>,
    query: impl Fn(&dyn Db, I) -> R + Sync,
) -> Result<Vec<R>, AnalysisError> {
    let next = AtomicUsize::new(0);
    let threads = threads.clamp(1, items.len().div_ceil(CHUNK).max(1));
    let work = |handle: Handle| {
        let mut found: Vec<(usize, R)> = Vec::new();
        loop {
            let start = next.fetch_add(CHUNK, Ordering::Relaxed);
            let Some(chunk) = items.get(start..items.len().min(start + CHUNK)).filter(|chunk| !chunk.is_empty()) else { break };
            for (offset, &item) in chunk.iter().enumerate() {
                if stop() {
                    return None;
                }
                found.push((start + offset, query(&handle, item)));
            }
        }
        Some(found)
    };
    let mut found = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|_| {
                let handle = handle.clone();
                let work = &work;
                std::thread::Builder::new()
                    .name("resolve".to_owned())
                    .stack_size(STACK_BYTES)
                    .spawn_scoped(scope, move || {
                        std::panic::catch_unwind(AssertUnwindSafe(|| Cancelled::catch(AssertUnwindSafe(|| work(handle)))))
                    })
                    .map_err(|source| AnalysisError::Thread { source })
            })
            .collect();
        let mut found = Vec::with_capacity(items.len());
        let mut failure = None;
        for worker in workers {
            match worker.map(|worker| worker.join()) {
                Ok(Ok(Ok(Ok(Some(part))))) => found.extend(part),
                Ok(Ok(Ok(Ok(None) | Err(_)))) => failure = failure.or(Some(AnalysisError::Interrupted)),
                Ok(Ok(Err(panic)) | Err(panic)) => failure = Some(AnalysisError::Panicked { message: message(panic.as_ref()) }),
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        failure.map_or(Ok(found), Err)
    })?;
    found.sort_unstable_by_key(|(index, _)| *index);
    Ok(found.into_iter().map(|(_, result)| result).collect())
}

fn message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned())
}
