//! What files do to each other: rebindings, and the edges of one file.
//!
//! Must not know a language's rules. Invariant: [`rebound`] reads every surface of the repository, so that nothing but
//! [`rebound_in`] may depend on it; so does [`member_index`], for [`members_named`].

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::languages::Lookup;
use crate::model::{DefinitionKey, FileEdges, RepoPath, Target};

use super::blindness::{Blindness, see};
use super::facts::{file_facts, file_surface};
use super::inputs::{Db, Inventory, LanguageIndex, SourceFile};
use super::lookup::{DatabaseLookup, Stage};
use super::question::{Kind, Question};
use super::remembered::state;

/// Returns what a file rebinds outside itself. Not run again when a body is edited.
#[salsa::tracked(returns(clone))]
pub(super) fn rebindings(db: &dyn Db, file: SourceFile) -> Arc<[Target]> {
    db.note("rebindings", file.path(db));
    let language = file.language(db);
    let lookup = DatabaseLookup::new(db, language, Stage::Rebindings);
    let rebound = match lookup.surface(file.path(db)) {
        Some(surface) => Arc::from(db.language(language).rebindings(file.path(db), &surface, &lookup)),
        None => Arc::default(),
    };
    db.executed(Question::new(Kind::Rebindings, file), lookup.trace());
    rebound
}

/// The names that are rebound from outside, by the file that defines them.
pub(super) type Rebound = FxHashMap<RepoPath, Arc<BTreeSet<Arc<str>>>>;

/// Returns the rebound names of the whole repository. Not run again while no file changes what it rebinds.
#[salsa::tracked(returns(clone))]
pub(super) fn rebound(db: &dyn Db, inventory: Inventory) -> Arc<Rebound> {
    db.note("rebound", &"");
    let tree = inventory.tree(db);
    let mut names: BTreeMap<RepoPath, BTreeSet<Arc<str>>> = BTreeMap::new();
    for &file in db.source_files() {
        if tree.is_file(file.path(db).as_str()) {
            for target in rebindings(db, file).iter() {
                let rebound = names.entry(target.file.clone()).or_default();
                rebound.extend(target.definition.as_ref().map(|definition| Arc::clone(&definition.qualified)));
            }
        }
    }
    Arc::new(names.into_iter().map(|(file, names)| (file, Arc::new(names))).collect())
}

/// Returns the names of one file that others rebind. Equal when the rebindings of other files' names change.
#[salsa::tracked(returns(clone))]
pub(super) fn rebound_in(db: &dyn Db, file: SourceFile) -> Arc<BTreeSet<Arc<str>>> {
    db.note("rebound_in", file.path(db));
    let names = match db.remembered() {
        Some(remembered) => {
            state(db, db.inventory());
            remembered.rebound_in(file.path(db))
        }
        None => rebound(db, db.inventory()).get(file.path(db)).cloned().unwrap_or_default(),
    };
    see(db, Blindness::Rebindings, file.path(db), names)
}

/// Returns the members that a file declares. Not run again when a body is edited.
#[salsa::tracked(returns(clone))]
pub(super) fn declared_members(db: &dyn Db, file: SourceFile) -> Arc<[(Arc<str>, DefinitionKey)]> {
    db.note("declared_members", file.path(db));
    let Some(surface) = file_surface(db, file) else { return Arc::default() };
    Arc::from(db.language(file.language(db)).declared_members(&surface))
}

type MemberIndex = FxHashMap<Arc<str>, Arc<[Target]>>;

/// Returns the members that all files of a language declare, by name. Not run again while no file changes what it declares.
#[salsa::tracked(returns(clone))]
pub(super) fn member_index(db: &dyn Db, inventory: Inventory, language: LanguageIndex) -> Arc<MemberIndex> {
    db.note("member_index", &db.language(language).name());
    let tree = inventory.tree(db);
    let mut members: FxHashMap<Arc<str>, Vec<Target>> = FxHashMap::default();
    for &file in db.source_files() {
        if file.language(db) == language && tree.is_file(file.path(db).as_str()) {
            for (name, definition) in declared_members(db, file).iter() {
                let target = Target { file: file.path(db).clone(), definition: Some(definition.clone()) };
                members.entry(Arc::clone(name)).or_default().push(target);
            }
        }
    }
    let sorted = |mut targets: Vec<Target>| {
        targets.sort_unstable();
        targets.dedup();
        Arc::from(targets)
    };
    Arc::new(members.into_iter().map(|(name, targets)| (name, sorted(targets))).collect())
}

/// The name of a member, of one language.
#[salsa::interned(revisions = usize::MAX)]
pub(super) struct MemberName<'db> {
    #[returns(copy)]
    pub language: LanguageIndex,
    #[returns(ref)]
    pub text: Arc<str>,
}

/// Returns where a member of one name is declared. Equal when members of other names come and go.
#[salsa::tracked(returns(clone))]
pub(super) fn members_named<'db>(db: &'db dyn Db, name: MemberName<'db>) -> Arc<[Target]> {
    db.note("members_named", name.text(db));
    let targets = match db.remembered() {
        Some(remembered) => {
            state(db, db.inventory());
            remembered.members_named(db, name.language(db), name.text(db))
        }
        None => member_index(db, db.inventory(), name.language(db)).get(name.text(db)).cloned().unwrap_or_default(),
    };
    see(db, Blindness::Members, name.text(db), targets)
}

/// Resolves the references of one file. Not run again when the body of another file is edited, nor when a name changes there that it
/// does not consult.
#[salsa::tracked(returns(clone))]
pub(super) fn file_edges(db: &dyn Db, file: SourceFile) -> Arc<FileEdges> {
    db.note("file_edges", file.path(db));
    db.count_resolution();
    let language = file.language(db);
    let lookup = DatabaseLookup::new(db, language, Stage::Edges);
    let edges = file_facts(db, file)
        .map(|facts| Arc::new(db.language(language).resolve(file.path(db), &facts, &lookup)))
        .unwrap_or_default();
    db.executed(Question::new(Kind::Edges, file), lookup.trace());
    edges
}
