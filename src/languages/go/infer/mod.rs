//! Inference of types from declarations: what an expression denotes, and which member a selector selects.
//!
//! Must not know references or edges. Invariant: it is bounded in depth and never goes round: what is asked for while it is being
//! answered is unknown.

mod evaluate;
mod generics;
mod implementations;
mod select;
mod types;
mod view;

use std::rc::Rc;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::languages::Lookup;
use crate::model::facts::{Body, Handle, Surface};
use crate::model::{RepoPath, Target};

pub(super) use implementations::declared_members;
pub(super) use select::{Member, Selection};
pub(super) use types::{Arguments, Meaning, Type};
pub(super) use view::{Imported, Named, View};

/// How deep evaluations may call each other.
const MAX_DEPTH: u32 = 120;

/// The methods that implement those of one interface, by name.
type Implementations = Rc<FxHashMap<Arc<str>, Vec<Target>>>;

/// The inference for one file, which is view 0.
pub(super) struct Inference<'a> {
    pub lookup: &'a dyn Lookup,
    views: Vec<Rc<View<'a>>>,
    by_path: FxHashMap<RepoPath, Option<u32>>,
    names: FxHashMap<u32, FxHashMap<Arc<str>, Rc<Named>>>,
    /// What expressions denote where no type parameters are replaced.
    meanings: FxHashMap<(u32, Handle), Meaning>,
    /// The types of variables and parameters, on the same terms.
    bindings: FxHashMap<(u32, Handle), Meaning>,
    implementations: FxHashMap<(u32, u32), Implementations>,
    depth: u32,
    nothing: Arguments,
}

impl<'a> Inference<'a> {
    pub(super) fn new(path: &RepoPath, surface: Arc<Surface>, body: &'a Body, partial: bool, lookup: &'a dyn Lookup) -> Self {
        let mut inference = Self {
            lookup,
            views: Vec::new(),
            by_path: FxHashMap::default(),
            names: FxHashMap::default(),
            meanings: FxHashMap::default(),
            bindings: FxHashMap::default(),
            implementations: FxHashMap::default(),
            depth: 0,
            nothing: Rc::from([]),
        };
        inference.add_view(path, surface, Some(body), partial);
        inference
    }

    pub(super) fn no_arguments(&self) -> Arguments {
        Rc::clone(&self.nothing)
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
