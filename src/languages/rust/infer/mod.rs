//! Inference of types from declarations: what a path or an expression denotes, and which member a receiver has.
//!
//! Must not know references or edges. Invariant: it is bounded in depth and never goes round: what is asked for while it is being
//! answered is unknown.

mod calls;
mod evaluate;
mod known;
mod members;
mod names;
mod search;
mod standard;
mod traits;
mod types;
mod unify;
mod view;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::modules::Module;
use super::packages::Package;
use crate::languages::Lookup;
use crate::model::facts::{Body, Handle, Space, Surface};
use crate::model::{RepoPath, Target};

pub(super) use members::declared_members;
pub(super) use types::{Answer, Meaning, What};
pub(super) use view::View;

/// How deep evaluations may call each other.
const MAX_DEPTH: u32 = 100;

/// What a name of a module was found to mean: the module, the name, its space, and from inside of which module it was asked.
type Asked = (Module, Arc<str>, Space, Module);

/// The inference for one file, which is view 0.
pub(super) struct Inference<'a> {
    pub lookup: &'a dyn Lookup,
    views: Vec<Rc<View<'a>>>,
    by_path: FxHashMap<RepoPath, Option<u32>>,
    answers: FxHashMap<(u32, Handle), Rc<Answer>>,
    methods: FxHashMap<(u32, Handle, Arc<str>), Rc<Answer>>,
    questions: search::Questions,
    packages: RefCell<FxHashMap<String, Option<Rc<Package>>>>,
    parents: RefCell<FxHashMap<RepoPath, Rc<[Module]>>>,
    above: FxHashMap<Module, Rc<[Module]>>,
    implementations: FxHashMap<(u32, Handle, Arc<str>), Rc<[Target]>>,
    implemented: traits::Implemented,
    depth: u32,
}

impl<'a> Inference<'a> {
    pub(super) fn new(path: &RepoPath, surface: Arc<Surface>, body: &'a Body, lookup: &'a dyn Lookup) -> Self {
        let mut inference = Self {
            lookup,
            views: Vec::new(),
            by_path: FxHashMap::default(),
            answers: FxHashMap::default(),
            methods: FxHashMap::default(),
            questions: search::Questions::default(),
            packages: RefCell::default(),
            parents: RefCell::default(),
            above: FxHashMap::default(),
            implementations: FxHashMap::default(),
            implemented: traits::Implemented::default(),
            depth: 0,
        };
        inference.add_view(path, surface, Some(body));
        inference
    }

    /// Runs `inner` one level deeper; too deep it gives `otherwise`.
    fn deeper<R>(&mut self, otherwise: R, inner: impl FnOnce(&mut Self) -> R) -> R {
        if self.depth >= MAX_DEPTH {
            return otherwise;
        }
        self.depth += 1;
        let result = inner(self);
        self.depth -= 1;
        result
    }
}
