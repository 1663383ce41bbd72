//! From names to modules to what modules export.
//!
//! Must not know a language's rules: it asks [`crate::languages::LanguageSupport`]. Invariant: no query here reaches itself; modules that
//! feed each other are one component, solved by one query.

use std::collections::BTreeSet;
use std::sync::Arc;

use rustc_hash::{FxBuildHasher, FxHashMap};

use crate::languages::{ExportTable, ModuleKey, ModuleResolution};

use super::blindness::{Blindness, see};
use super::components::components;
use super::inputs::{Db, Inventory, LanguageIndex, SourceFile};
use super::lookup::{DatabaseLookup, Stage};
use super::question::{Kind, Question};

/// A directory as one language sees it.
#[salsa::interned(revisions = usize::MAX)]
pub(super) struct Directory<'db> {
    #[returns(copy)]
    pub language: LanguageIndex,
    #[returns(ref)]
    pub path: Arc<str>,
}

/// A module name, used in a context.
#[salsa::interned(revisions = usize::MAX)]
pub(super) struct Specifier<'db> {
    #[returns(copy)]
    pub language: LanguageIndex,
    #[returns(ref)]
    pub context: Arc<str>,
    #[returns(ref)]
    pub text: Arc<str>,
}

/// A module of one language.
#[salsa::interned(revisions = usize::MAX)]
pub(super) struct Module<'db> {
    #[returns(copy)]
    pub language: LanguageIndex,
    #[returns(ref)]
    pub key: ModuleKey,
}

/// Modules that feed each other's export tables, sorted; most often one.
#[salsa::interned(revisions = usize::MAX)]
pub(super) struct Component<'db> {
    #[returns(copy)]
    pub language: LanguageIndex,
    #[returns(ref)]
    pub members: Arc<[ModuleKey]>,
}

/// Returns what decides how the files of a directory name modules. Not run again when contents change.
#[salsa::tracked(returns(clone))]
pub(super) fn context<'db>(db: &'db dyn Db, directory: Directory<'db>) -> Arc<str> {
    db.note("context", directory.path(db));
    let language = directory.language(db);
    let lookup = DatabaseLookup::new(db, language, Stage::Context);
    let context = db.language(language).context(directory.path(db), &lookup);
    db.executed(Question::new(Kind::Context, directory), lookup.trace());
    see(db, Blindness::Contexts, directory.path(db), context)
}

/// Returns the module a name means. Not run again when contents change, nor when paths come or go that it did not ask for.
#[salsa::tracked(returns(clone))]
pub(super) fn module<'db>(db: &'db dyn Db, specifier: Specifier<'db>) -> Arc<ModuleResolution> {
    db.note("module", specifier.text(db));
    let language = specifier.language(db);
    let lookup = DatabaseLookup::new(db, language, Stage::Module);
    let resolution = Arc::new(db.language(language).module(specifier.context(db), specifier.text(db), &lookup));
    db.executed(Question::new(Kind::Module, specifier), lookup.trace());
    see(db, Blindness::Modules, &format_args!("{} {}", specifier.context(db), specifier.text(db)), resolution)
}

/// Returns the module of a file. Not run again when contents change.
#[salsa::tracked(returns(clone))]
pub(super) fn file_module(db: &dyn Db, file: SourceFile) -> ModuleKey {
    db.note("file_module", file.path(db));
    let language = file.language(db);
    db.language(language).module_of(file.path(db), &DatabaseLookup::new(db, language, Stage::Module))
}

/// Returns the name people use for a file's module. Not run again when contents change.
#[salsa::tracked(returns(clone))]
pub(super) fn file_module_name(db: &dyn Db, file: SourceFile) -> Option<Arc<str>> {
    db.note("file_module_name", file.path(db));
    let language = file.language(db);
    let lookup = DatabaseLookup::new(db, language, Stage::Module);
    let name = db.language(language).module_name(file.path(db), &lookup);
    db.executed(Question::new(Kind::ModuleName, file), lookup.trace());
    name
}

/// Returns the modules whose exports feed this module's. Not run again when no surface of the module changes.
#[salsa::tracked(returns(clone))]
pub(super) fn export_sources<'db>(db: &'db dyn Db, module: Module<'db>) -> Arc<[ModuleKey]> {
    db.note("export_sources", &module.key(db).0);
    let language = module.language(db);
    let lookup = DatabaseLookup::new(db, language, Stage::Sources);
    let sources = Arc::from(db.language(language).export_sources(module.key(db), &lookup));
    db.executed(Question::new(Kind::Sources, module), lookup.trace());
    sources
}

/// Which modules feed which, cut into components.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ExportGraph {
    /// Every edge leads to the same or an earlier component.
    pub(super) components: Vec<Arc<[ModuleKey]>>,
    component_of: FxHashMap<ModuleKey, usize>,
}

/// Returns the export graph of a language, of the whole repository. Not run again while no module changes what it feeds on.
#[salsa::tracked(returns(clone))]
pub(super) fn export_graph(db: &dyn Db, inventory: Inventory, language: LanguageIndex) -> Arc<ExportGraph> {
    db.note("export_graph", &db.language(language).name());
    let tree = inventory.tree(db);
    let mut keys = BTreeSet::new();
    for &file in db.source_files() {
        if file.language(db) == language && tree.is_file(file.path(db).as_str()) {
            keys.insert(file_module(db, file));
        }
    }
    let mut modules: Vec<ModuleKey> = keys.into_iter().collect();
    let mut positions: FxHashMap<ModuleKey, usize> = modules.iter().cloned().zip(0..).collect();
    let mut edges: Vec<Vec<usize>> = Vec::with_capacity(modules.len());
    // A module that only others name (a directory without files of its own) joins at the end, hence no iterator.
    while let Some(key) = modules.get(edges.len()) {
        let sources = export_sources(db, Module::new(db, language, key));
        let targets = sources
            .iter()
            .map(|source| {
                *positions.entry(source.clone()).or_insert_with(|| {
                    modules.push(source.clone());
                    modules.len() - 1
                })
            })
            .collect();
        edges.push(targets);
    }
    let mut component_of = FxHashMap::with_capacity_and_hasher(modules.len(), FxBuildHasher);
    let components = components(&edges)
        .into_iter()
        .enumerate()
        .map(|(index, members)| {
            let mut keys: Vec<_> = members.into_iter().map(|member| modules[member].clone()).collect();
            keys.sort_unstable();
            component_of.extend(keys.iter().map(|key| (key.clone(), index)));
            Arc::from(keys)
        })
        .collect();
    Arc::new(ExportGraph { components, component_of })
}

/// Returns the component of a module. Equal while the modules it is in a cycle with stay the same.
#[salsa::tracked(returns(copy))]
pub(super) fn component<'db>(db: &'db dyn Db, module: Module<'db>) -> Component<'db> {
    db.note("component", &module.key(db).0);
    db.executed(Question::new(Kind::Component, module), Vec::new());
    if db.is_partial() {
        let order = export_order(db, module);
        let members = order.last().cloned().unwrap_or_else(|| Arc::from([module.key(db).clone()]));
        return Component::new(db, module.language(db), members);
    }
    let graph = export_graph(db, db.inventory(), module.language(db));
    match graph.component_of.get(module.key(db)) {
        Some(&index) => Component::new(db, module.language(db), &graph.components[index]),
        None => Component::new(db, module.language(db), Arc::from([module.key(db).clone()])),
    }
}

/// Returns the export tables of a component, in the order of its members. Not run again when a body is edited.
#[salsa::tracked(returns(clone))]
pub(super) fn solve_exports<'db>(db: &'db dyn Db, component: Component<'db>) -> Arc<[Arc<ExportTable>]> {
    let members = component.members(db);
    db.note("solve_exports", &members.iter().map(|key| key.0.as_ref()).collect::<Vec<_>>().join(" "));
    let language = component.language(db);
    let lookup = DatabaseLookup::new(db, language, Stage::Exports(members));
    let tables: Arc<[Arc<ExportTable>]> =
        db.language(language).solve_exports(members, &lookup).into_iter().map(Arc::new).collect();
    if let Some(first) = members.first() {
        let mut trace = lookup.trace();
        trace.push(Question::new(Kind::Component, Module::new(db, language, first)));
        db.executed(Question::new(Kind::Solved, Module::new(db, language, first)), trace);
    }
    see(db, Blindness::Exports, &format_args!("{members:?}"), tables)
}

/// Returns the export table of one module. Equal when its component is solved again and this table came out the same.
#[salsa::tracked(returns(clone))]
pub(super) fn export_table<'db>(db: &'db dyn Db, module: Module<'db>) -> Arc<ExportTable> {
    db.note("export_table", &module.key(db).0);
    let component = component(db, module);
    let members = component.members(db);
    let mut trace = vec![Question::new(Kind::Component, module)];
    trace.extend(members.first().map(|first| Question::new(Kind::Solved, Module::new(db, module.language(db), first))));
    db.executed(Question::new(Kind::Exports, module), trace);
    let position = members.binary_search(module.key(db));
    let tables = solve_exports(db, component);
    position.ok().and_then(|position| tables.get(position).cloned()).unwrap_or_default()
}

/// Returns the components that feed a module, by any number of steps, with its own as the last: each after those it feeds on. For a database
/// that does not know the whole graph.
#[salsa::tracked(returns(clone))]
pub(super) fn export_order<'db>(db: &'db dyn Db, module: Module<'db>) -> Arc<[Arc<[ModuleKey]>]> {
    db.note("export_order", &module.key(db).0);
    let language = module.language(db);
    let mut keys = vec![module.key(db).clone()];
    let mut positions: FxHashMap<ModuleKey, usize> = FxHashMap::from_iter([(keys[0].clone(), 0)]);
    let mut edges: Vec<Vec<usize>> = Vec::new();
    while let Some(key) = keys.get(edges.len()) {
        let sources = export_sources(db, Module::new(db, language, key));
        let position = |source: &ModuleKey| {
            *positions.entry(source.clone()).or_insert_with(|| {
                keys.push(source.clone());
                keys.len() - 1
            })
        };
        edges.push(sources.iter().map(position).collect());
    }
    let members = |component: Vec<usize>| {
        let mut members: Vec<_> = component.into_iter().map(|member| keys[member].clone()).collect();
        members.sort_unstable();
        Arc::from(members)
    };
    components(&edges).into_iter().map(members).collect()
}

/// Solves what feeds a module before the module itself is asked for, so that no query waits for a long chain of others. A database that knows
/// the whole graph has done so.
pub(super) fn solve_below<'db>(db: &'db dyn Db, module: Module<'db>) {
    if db.is_partial() {
        for members in export_order(db, module).iter() {
            solve_exports(db, Component::new(db, module.language(db), members));
        }
    }
}

/// Returns the key that this text is.
pub(super) fn key_of(text: &str) -> ModuleKey {
    ModuleKey(Arc::from(text))
}

/// Returns whether `from` feeds, by any number of steps, on a member of `component`, and the modules that had to be looked at.
pub(super) fn reaches(
    db: &dyn Db,
    language: LanguageIndex,
    from: &ModuleKey,
    component: &[ModuleKey],
) -> (bool, BTreeSet<ModuleKey>) {
    let mut seen: BTreeSet<ModuleKey> = BTreeSet::new();
    let mut open = vec![from.clone()];
    while let Some(key) = open.pop() {
        if component.binary_search(&key).is_ok() {
            return (true, seen);
        }
        if seen.insert(key.clone()) {
            open.extend(export_sources(db, Module::new(db, language, &key)).iter().cloned());
        }
    }
    (false, seen)
}
