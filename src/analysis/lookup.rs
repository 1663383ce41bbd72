//! [`Lookup`] over the database: each question of a language becomes a query, asked once.
//!
//! Must not know what the answers are for. Invariant: a stage asks only what the stages before it make, so that no query reaches itself.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::languages::{ExportTable, Lookup, ModuleKey, ModuleResolution};
use crate::model::{ParseStatus, RepoPath, Surface, Target};

use super::edges::{MemberName, members_named, rebound_in};
use super::facts::{file_parse_status, file_surface, file_text};
use super::inputs::{Db, LanguageIndex};
use super::modules::{self, Directory, Module, Specifier, reaches};
use super::question::{Kind, Question};
use super::tree::{self, AskedPath};

/// Which query the lookup serves; later ones may ask more.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stage<'db> {
    Context,
    Module,
    Sources,
    /// Solving this component: the tables of its own members are not there yet.
    Exports(&'db [ModuleKey]),
    Rebindings,
    Edges,
}

/// The view of one query on the repository. The first time something is asked the database notes the dependency; after that the
/// answer is kept here, since a look-up in an own table costs a fraction of a query.
pub(super) struct DatabaseLookup<'db> {
    db: &'db dyn Db,
    language: LanguageIndex,
    stage: Stage<'db>,
    surfaces: RefCell<FxHashMap<RepoPath, Option<Arc<Surface>>>>,
    parse_statuses: RefCell<FxHashMap<RepoPath, Option<ParseStatus>>>,
    contexts: RefCell<Vec<(Arc<str>, Arc<str>)>>,
    modules: RefCell<Vec<ModulesOfContext>>,
    exports: RefCell<FxHashMap<ModuleKey, Arc<ExportTable>>>,
    rebound: RefCell<FxHashMap<RepoPath, Arc<BTreeSet<Arc<str>>>>>,
    asked: RefCell<Vec<Question>>,
}

/// What names mean in one context. A query meets one or two contexts, so that a list of these is searched quicker than a table.
struct ModulesOfContext {
    context: Arc<str>,
    names: FxHashMap<Arc<str>, Arc<ModuleResolution>>,
}

impl<'db> DatabaseLookup<'db> {
    pub(super) fn new(db: &'db dyn Db, language: LanguageIndex, stage: Stage<'db>) -> Self {
        Self {
            db,
            language,
            stage,
            surfaces: RefCell::default(),
            parse_statuses: RefCell::default(),
            contexts: RefCell::default(),
            modules: RefCell::default(),
            exports: RefCell::default(),
            rebound: RefCell::default(),
            asked: RefCell::default(),
        }
    }

    /// Returns what was asked, sorted.
    pub(super) fn trace(self) -> Vec<Question> {
        let mut asked = self.asked.into_inner();
        asked.sort_unstable();
        asked.dedup();
        asked
    }

    fn note(&self, kind: Kind, subject: impl salsa::plumbing::AsId) {
        self.asked.borrow_mut().push(Question::new(kind, subject));
    }

    fn ask_path(&self, kind: Kind, path: &str) -> AskedPath<'_> {
        let path = AskedPath::new(self.db, path);
        self.note(kind, path);
        path
    }

    /// Returns whether the table of a module may be asked for now.
    fn may_ask_exports(&self, module: &ModuleKey) -> bool {
        match self.stage {
            Stage::Context | Stage::Module | Stage::Sources => false,
            Stage::Rebindings | Stage::Edges => true,
            Stage::Exports(members) => {
                let declared = members.iter().any(|member| {
                    let sources = modules::export_sources(self.db, Module::new(self.db, self.language, member));
                    sources.binary_search(module).is_ok()
                });
                members.binary_search(module).is_err() && (declared || !self.reaches(module, members))
            }
        }
    }
}

impl DatabaseLookup<'_> {
    /// Returns whether a module feeds on one of `members`; what that depends on belongs to the trace.
    fn reaches(&self, module: &ModuleKey, members: &[ModuleKey]) -> bool {
        let (found, seen) = reaches(self.db, self.language, module, members);
        for key in &seen {
            self.note(Kind::Sources, Module::new(self.db, self.language, key));
        }
        found
    }
}

impl Lookup for DatabaseLookup<'_> {
    fn source_roots(&self) -> Option<Arc<[Arc<str>]>> {
        self.db.settings().source_roots(self.db)
    }

    fn is_file(&self, path: &str) -> bool {
        tree::is_file(self.db, self.ask_path(Kind::IsFile, path))
    }

    fn is_directory(&self, path: &str) -> bool {
        tree::is_directory(self.db, self.ask_path(Kind::IsDirectory, path))
    }

    fn files_in(&self, directory: &str) -> Arc<[RepoPath]> {
        tree::files_in(self.db, self.ask_path(Kind::FilesIn, directory))
    }

    fn directories_in(&self, directory: &str) -> Arc<[Arc<str>]> {
        tree::directories_in(self.db, self.ask_path(Kind::DirectoriesIn, directory))
    }

    fn parse_status(&self, path: &RepoPath) -> Option<ParseStatus> {
        if let Some(known) = self.parse_statuses.borrow().get(path) {
            return *known;
        }
        let status = match self.db.source_file(path.as_str()) {
            Some(file) => {
                self.note(Kind::ParseStatus, file);
                file_parse_status(self.db, file)
            }
            // Asked only so that this query runs again when the path appears.
            None => {
                self.is_file(path.as_str());
                None
            }
        };
        self.parse_statuses.borrow_mut().insert(path.clone(), status);
        status
    }

    fn surface(&self, path: &RepoPath) -> Option<Arc<Surface>> {
        if let Some(known) = self.surfaces.borrow().get(path) {
            return known.clone();
        }
        let surface = match self.db.source_file(path.as_str()) {
            Some(file) => {
                self.note(Kind::Surface, file);
                file_surface(self.db, file)
            }
            None => {
                self.is_file(path.as_str());
                None
            }
        };
        self.surfaces.borrow_mut().insert(path.clone(), surface.clone());
        surface
    }

    fn text(&self, path: &str) -> Option<Arc<str>> {
        match self.db.configuration_file(path) {
            Some(file) => {
                self.note(Kind::Text, file);
                file_text(self.db, file)
            }
            None => {
                self.is_file(path);
                None
            }
        }
    }

    fn context(&self, directory: &str) -> Arc<str> {
        if let Some((_, known)) = self.contexts.borrow().iter().find(|(asked, _)| asked.as_ref() == directory) {
            return Arc::clone(known);
        }
        let asked = Directory::new(self.db, self.language, directory);
        self.note(Kind::Context, asked);
        let context = modules::context(self.db, asked);
        self.contexts.borrow_mut().push((Arc::from(directory), Arc::clone(&context)));
        context
    }

    fn module(&self, context: &str, specifier: &str) -> Arc<ModuleResolution> {
        let position = self.modules.borrow().iter().position(|known| known.context.as_ref() == context);
        if let Some(known) = position.and_then(|position| self.modules.borrow()[position].names.get(specifier).cloned()) {
            return known;
        }
        let asked = Specifier::new(self.db, self.language, context, specifier);
        self.note(Kind::Module, asked);
        let module = modules::module(self.db, asked);
        let mut contexts = self.modules.borrow_mut();
        let position = position.unwrap_or_else(|| {
            contexts.push(ModulesOfContext { context: Arc::from(context), names: FxHashMap::default() });
            contexts.len() - 1
        });
        contexts[position].names.insert(Arc::from(specifier), Arc::clone(&module));
        module
    }

    fn exports(&self, module: &ModuleKey) -> Arc<ExportTable> {
        if let Some(known) = self.exports.borrow().get(module) {
            return Arc::clone(known);
        }
        let table = if self.may_ask_exports(module) {
            let asked = Module::new(self.db, self.language, module);
            self.note(Kind::Exports, asked);
            if !matches!(self.stage, Stage::Exports(_)) {
                modules::solve_below(self.db, asked);
            }
            modules::export_table(self.db, asked)
        } else {
            // A language that asks too early gets a table that claims nothing, instead of a cycle.
            debug_assert!(false, "exports of `{}` asked for before they are made", module.0);
            Arc::new(ExportTable { open: true, ..ExportTable::default() })
        };
        self.exports.borrow_mut().insert(module.clone(), Arc::clone(&table));
        table
    }

    fn rebound(&self, file: &RepoPath) -> Arc<BTreeSet<Arc<str>>> {
        debug_assert!(self.stage == Stage::Edges, "rebindings asked for before they are made");
        if self.stage != Stage::Edges {
            return Arc::default();
        }
        if let Some(known) = self.rebound.borrow().get(file) {
            return Arc::clone(known);
        }
        let names = match self.db.source_file(file.as_str()) {
            Some(input) => {
                self.note(Kind::Rebound, input);
                rebound_in(self.db, input)
            }
            None => {
                self.is_file(file.as_str());
                Arc::default()
            }
        };
        self.rebound.borrow_mut().insert(file.clone(), Arc::clone(&names));
        names
    }

    fn members_named(&self, name: &str) -> Arc<[Target]> {
        debug_assert!(self.stage == Stage::Edges, "members asked for before they are gathered");
        if self.stage != Stage::Edges {
            return Arc::default();
        }
        let asked = MemberName::new(self.db, self.language, name);
        self.note(Kind::Members, asked);
        members_named(self.db, asked)
    }
}
