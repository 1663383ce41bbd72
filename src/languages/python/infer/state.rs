//! The memory of one file's inference: the files viewed so far and what was found in them.
//!
//! Must not know expressions. Invariant: a file's surface and a module's table are asked for once, and evidence leads at most
//! [`MAX_STEPS`] steps away.

use std::rc::Rc;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::fixtures::Renamed;
use super::value::{Followed, Linearization, Place, Values, Variable};
use super::view::View;
use crate::languages::{ExportTable, Lookup, ModuleKey};
use crate::model::RepoPath;
use crate::model::facts::{Body, Handle, Surface};

/// How many steps evidence may lead away from a reference.
pub(super) const MAX_STEPS: u32 = 48;

pub struct Inference<'a> {
    pub lookup: &'a dyn Lookup,
    pub views: Vec<Rc<View<'a>>>,
    pub(super) by_path: FxHashMap<RepoPath, Option<u32>>,
    pub(super) tables: FxHashMap<ModuleKey, Arc<ExportTable>>,
    pub(super) rebound: FxHashMap<RepoPath, Arc<std::collections::BTreeSet<Arc<str>>>>,
    pub(super) followed: FxHashMap<(ModuleKey, Arc<str>), Rc<Followed>>,
    pub(super) values: FxHashMap<(u32, Handle), Values>,
    pub(super) types: FxHashMap<(u32, Handle), Values>,
    pub(super) bindings: FxHashMap<(u32, Handle), Values>,
    pub(super) linearizations: FxHashMap<Place, Linearization>,
    pub(super) imports: FxHashMap<(u32, bool, u32), Rc<Followed>>,
    pub(super) parameters: FxHashMap<Place, Rc<[Variable]>>,
    pub(super) named_fixtures: FxHashMap<u32, Renamed>,
    pub(super) steps: u32,
    /// Whether writes from outside count; they do not while they are being collected.
    pub(super) with_rebound: bool,
}

impl<'a> Inference<'a> {
    /// Begins with the file whose references are asked for, which becomes view 0.
    pub fn new(
        path: &RepoPath,
        surface: Arc<Surface>,
        body: Option<&'a Body>,
        lookup: &'a dyn Lookup,
        with_rebound: bool,
    ) -> Self {
        let view = View { path: path.clone(), surface, body, context: lookup.context(path.directory()) };
        Self {
            lookup,
            views: vec![Rc::new(view)],
            by_path: FxHashMap::from_iter([(path.clone(), Some(0))]),
            tables: FxHashMap::default(),
            rebound: FxHashMap::default(),
            followed: FxHashMap::default(),
            values: FxHashMap::default(),
            types: FxHashMap::default(),
            bindings: FxHashMap::default(),
            linearizations: FxHashMap::default(),
            imports: FxHashMap::default(),
            parameters: FxHashMap::default(),
            named_fixtures: FxHashMap::default(),
            steps: 0,
            with_rebound,
        }
    }

    pub fn view(&self, index: u32) -> Rc<View<'a>> {
        Rc::clone(&self.views[index as usize])
    }

    pub fn view_of(&mut self, path: &RepoPath) -> Option<u32> {
        if let Some(known) = self.by_path.get(path) {
            return *known;
        }
        let index = self.lookup.surface(path).map(|surface| {
            let context = self.lookup.context(path.directory());
            self.views.push(Rc::new(View { path: path.clone(), surface, body: None, context }));
            self.views.len() as u32 - 1
        });
        self.by_path.insert(path.clone(), index);
        index
    }

    pub fn table(&mut self, module: &ModuleKey) -> Arc<ExportTable> {
        if let Some(known) = self.tables.get(module) {
            return Arc::clone(known);
        }
        let table = self.lookup.exports(module);
        self.tables.insert(module.clone(), Arc::clone(&table));
        table
    }

    /// Returns whether some file rebinds the qualified name in this one.
    pub fn is_rebound(&mut self, file: &RepoPath, qualified: &str) -> bool {
        if !self.with_rebound {
            return false;
        }
        if let Some(known) = self.rebound.get(file) {
            return known.contains(qualified);
        }
        let names = self.lookup.rebound(file);
        let found = names.contains(qualified);
        self.rebound.insert(file.clone(), names);
        found
    }

    pub(super) fn deeper<R>(&mut self, nothing: R, then: impl FnOnce(&mut Self) -> R) -> R {
        if self.steps >= MAX_STEPS {
            return nothing;
        }
        self.steps += 1;
        let result = then(self);
        self.steps -= 1;
        result
    }
}
