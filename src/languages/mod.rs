//! Languages: pure functions from bytes to facts, and from surfaces to edges.
//!
//! `extract` sees one file's text and resolves nothing; resolution sees other files only through [`Lookup`]. Neither sees a path outside the
//! repository, a clock or the disk. A language is one folder here and one line in [`REGISTRY`]; adding one touches nothing else.

mod ecmascript;
#[cfg(test)]
mod fixture;
mod folders;
pub mod go;
mod grammar;
pub mod javascript;
mod meaning;
mod outline;
pub mod python;
pub mod rust;
mod settle;
pub mod text;
pub mod typescript;

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::model::{DefinitionKey, FileEdges, FileFacts, ParseStatus, Reason, RepoPath, Resolution, Surface, Target};

/// Every language this build reads.
pub static REGISTRY: &[&dyn LanguageSupport] =
    &[&python::Python, &go::Go, &javascript::JavaScript, &typescript::TypeScript, &rust::Rust];

/// Names one way of reading a file of a language (`python`, `python-stub`, later `tsx` …); with the content hash and the
/// extractor's build it is the key of the facts cache.
pub type Dialect = &'static str;

/// A module as other files name it: the path of the file that makes it, or of a directory (a Python namespace package, a Go package).
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ModuleKey(pub Arc<str>);

/// Why a file's facts could not be made. Broken source is not among these: it is facts with [`ParseStatus::Partial`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExtractError {
    #[error("the parser was told to stop before it was done")]
    Stopped,
}

/// What a language owes to the rest of the house.
pub trait LanguageSupport: Send + Sync + 'static {
    /// Returns the language's name on the wire.
    fn name(&self) -> &'static str;

    /// Returns the name of the lookup space of this language: languages of one family import each other's modules, and their rules are the
    /// same.
    fn family(&self) -> &'static str {
        self.name()
    }

    /// Returns the dialect in which this language reads the file, judged by its path; `None` when it is not one of its files.
    fn dialect(&self, path: &RepoPath) -> Option<Dialect>;

    /// Returns every dialect that [`Self::dialect`] may give.
    fn dialects(&self) -> &'static [Dialect];

    /// Returns whether the language's rules read the text of this file, which is no source of a language (`go.mod`, `package.json`):
    /// [`Lookup::text`] gives it then. As files such files stay what they are: text for navigation.
    fn reads_text(&self, path: &RepoPath) -> bool {
        let _ = path;
        false
    }

    /// Returns a text that changes whenever equal bytes may give other facts.
    fn extractor_build(&self) -> &'static str;

    /// Returns a text that changes whenever equal facts may give other edges.
    fn resolver_build(&self) -> &'static str;

    /// Returns whether the file holds tests, by the language's convention.
    fn is_test(&self, path: &RepoPath) -> bool;

    /// Returns whether the language's conventions tie the test file `test` to the file `source` of the same family without any
    /// reference: by its name (`test_queue.py` to `queue.py`), or because `source` takes part in running it (`conftest.py`).
    fn is_test_of(&self, _test: &RepoPath, _source: &RepoPath) -> bool {
        false
    }

    /// Returns whether the file is a copy of another project's, kept where the language's tools look for such copies: it is left out.
    fn is_vendored(&self, path: &RepoPath) -> bool {
        let _ = path;
        false
    }

    /// Returns the words for `limitations` that name what ties tests to source in this language and is not followed.
    fn test_limitations(&self) -> &'static [&'static str] {
        &[]
    }

    /// Returns the words for `limitations` that name the known gaps of this language.
    fn limitations(&self) -> &'static [&'static str];

    /// Returns the word for `limitations` that a file stands for which no language reads though it may hold code of this one
    /// (a component of another format); `None` for every other file.
    fn unread(&self, path: &RepoPath) -> Option<&'static str> {
        let _ = path;
        None
    }

    /// Makes the facts of one file. `stop` is asked during the parse; once it says true the parse ends.
    ///
    /// # Errors
    /// [`ExtractError::Stopped`] when `stop` said so.
    fn extract(&self, source: &str, dialect: Dialect, stop: &mut dyn FnMut() -> bool) -> Result<FileFacts, ExtractError>;

    /// Returns what decides how the files of one directory name modules (for Python the source roots, nearest first), in an encoding of
    /// the language's own. Memoised per directory by [`Lookup::context`]; reads files' existence and the texts of configuration only
    /// through `lookup`.
    fn context(&self, directory: &str, lookup: &dyn Lookup) -> Arc<str>;

    /// Returns the module that `specifier` names in a context. Memoised by [`Lookup::module`].
    fn module(&self, context: &str, specifier: &str, lookup: &dyn Lookup) -> ModuleResolution;

    /// Returns the module a file belongs to.
    fn module_of(&self, path: &RepoPath, lookup: &dyn Lookup) -> ModuleKey;

    /// Returns the name people use for the file's module (`django.db.models.query`), which goes before the names of its definitions;
    /// `None` when it has no such name.
    fn module_name(&self, path: &RepoPath, lookup: &dyn Lookup) -> Option<Arc<str>>;

    /// Returns the modules whose export tables feed this module's own (star imports, re-exports), sorted. May ask `lookup` for
    /// surfaces, modules and contexts, not for exports.
    fn export_sources(&self, module: &ModuleKey, lookup: &dyn Lookup) -> Vec<ModuleKey>;

    /// Solves the export tables of a strongly connected component of [`Self::export_sources`], in the order given (sorted). May ask
    /// `lookup` for the exports of modules outside the component only. The result must not depend on which member was asked for first.
    fn solve_exports(&self, component: &[ModuleKey], lookup: &dyn Lookup) -> Vec<ExportTable>;

    /// Returns what this file rebinds outside itself (`module.f = g`, `Class.m = g`), sorted. Must not ask for [`Lookup::rebound`].
    fn rebindings(&self, path: &RepoPath, surface: &Surface, lookup: &dyn Lookup) -> Vec<Target>;

    /// Returns the members that a file's definitions have, by name, with the definition each belongs to or is: what
    /// [`Lookup::members_named`] finds. A language that never asks declares none.
    fn declared_members(&self, surface: &Surface) -> Vec<(Arc<str>, DefinitionKey)> {
        let _ = surface;
        Vec::new()
    }

    /// Resolves every reference of one file. Sorted as [`FileEdges`] says.
    fn resolve(&self, path: &RepoPath, facts: &FileFacts, lookup: &dyn Lookup) -> FileEdges;
}

/// All that resolution may know of the repository. Each method is a query of its own in the database, so that what a file
/// consulted, and nothing else, decides when it is resolved again.
pub trait Lookup {
    /// Returns the configured source roots, `None` when the scope names none.
    fn source_roots(&self) -> Option<Arc<[Arc<str>]>>;
    /// Returns whether the manifest includes a file at this path.
    fn is_file(&self, path: &str) -> bool;
    /// Returns whether the manifest includes a file below this path.
    fn is_directory(&self, path: &str) -> bool;
    /// Returns the included files directly in a directory, sorted (`""` is the root).
    fn files_in(&self, directory: &str) -> Arc<[RepoPath]>;
    /// Returns the names of the directories directly in a directory, sorted.
    fn directories_in(&self, directory: &str) -> Arc<[Arc<str>]>;
    /// Returns how well the file was read; `None` when it is not a source file of the manifest.
    fn parse_status(&self, path: &RepoPath) -> Option<ParseStatus>;
    /// Returns the surface of a source file; `None` when it is not one or could not be read.
    fn surface(&self, path: &RepoPath) -> Option<Arc<Surface>>;
    /// Returns the text of a configuration file ([`LanguageSupport::reads_text`]); `None` when the manifest does not include it.
    fn text(&self, path: &str) -> Option<Arc<str>>;
    /// Returns [`LanguageSupport::context`] of a directory, for the language of this lookup.
    fn context(&self, directory: &str) -> Arc<str>;
    /// Returns [`LanguageSupport::module`], for the language of this lookup.
    fn module(&self, context: &str, specifier: &str) -> Arc<ModuleResolution>;
    /// Returns the export table of a module.
    fn exports(&self, module: &ModuleKey) -> Arc<ExportTable>;
    /// Returns the qualified names in a file that some other file rebinds ([`LanguageSupport::rebindings`] of all files).
    fn rebound(&self, file: &RepoPath) -> Arc<BTreeSet<Arc<str>>>;
    /// Returns where in the repository a member of this name is declared ([`LanguageSupport::declared_members`] of all files of the
    /// language), sorted.
    fn members_named(&self, name: &str) -> Arc<[Target]>;
}

/// What a module name means from some place.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ModuleResolution {
    /// One module of the repository.
    Found(ModuleKey),
    /// Several, and nothing in the language's rules to choose by. Sorted.
    Ambiguous(Vec<ModuleKey>),
    /// None below a name that the repository owns (`import own.missing`).
    Missing,
    /// Outside the repository.
    External,
}

/// The names a module gives to the outside.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ExportTable {
    pub names: BTreeMap<Arc<str>, Export>,
    /// What `import *` brings, when it is not simply every name (`__all__`, leading underscores). Sorted.
    pub star: Option<Vec<Arc<str>>>,
    /// Whether names may exist that the table does not show (a star import from outside, a computed `__all__`, a module `__getattr__`).
    pub open: bool,
}

/// A module, or a name of one, that an exported name stands for.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Alias {
    pub module: ModuleKey,
    pub name: Option<Arc<str>>,
}

/// What one exported name means.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Export {
    /// The definitions it may be, sorted; without these and aliases it is known to be bound, but to nothing in the repository.
    pub targets: SmallVec<[Target; 1]>,
    /// The modules, or names of other modules, it may stand for, sorted; whoever asks follows them, so that a table depends on its own
    /// file and on star imports only.
    pub aliases: Vec<Alias>,
    pub resolution: Resolution,
    /// The rule that bound it, for edges that follow it.
    pub rule: &'static str,
    /// Why it is not `resolved_static`.
    pub reason: Option<Reason>,
}

/// Returns the language that reads the file, and in which dialect.
pub fn language_of(path: &RepoPath) -> Option<(&'static dyn LanguageSupport, Dialect)> {
    REGISTRY.iter().find_map(|language| language.dialect(path).map(|dialect| (*language, dialect)))
}

/// Returns whether the file is another project's ([`LanguageSupport::is_vendored`]).
pub fn is_vendored(path: &RepoPath) -> bool {
    language_of(path).is_some_and(|(language, _)| language.is_vendored(path))
}

/// Returns the position in `table` of the language that reads the file, and its dialect.
pub fn find_language(table: &[&'static dyn LanguageSupport], path: &RepoPath) -> Option<(usize, Dialect)> {
    table.iter().enumerate().find_map(|(index, language)| language.dialect(path).map(|dialect| (index, dialect)))
}
