//! The two outlines of a file in the making, and what is known of its uses meanwhile.
//!
//! Must not know the rules of scoping. Invariant: a name, a binding or an import has one number in each outline it is in.

use std::rc::Rc;

use smallvec::SmallVec;

use crate::languages::outline::Side;
use crate::languages::python::raw::{NONE, QuickMap, Raw, RawBinding, RawRole};
use crate::model::facts::{Handle, NameId, Names, Outline};

pub(super) struct Binder<'r, 's> {
    pub(super) raw: &'r Raw<'s>,
    pub(super) surface: OutlineBuilder,
    pub(super) body: OutlineBuilder,
    /// What each use means.
    pub(super) bound: Vec<Bound>,
    pub(super) sets: Vec<Reached>,
    pub(super) set_numbers: QuickMap<Vec<(u32, bool)>, u32>,
    pub(super) stars: Vec<u32>,
    pub(super) groups: QuickMap<u64, Rc<Group>>,
    pub(super) declarations: Vec<Handle>,
    /// Handles of bindings: those of the surface, those of the body, and locals that the surface needs all the same.
    pub(super) surface_bindings: Vec<Option<Handle>>,
    pub(super) body_bindings: Vec<Option<Handle>>,
    pub(super) surface_imports: Vec<Option<u32>>,
    pub(super) body_imports: Vec<Option<u32>>,
    pub(super) surface_expressions: Vec<Option<Option<Handle>>>,
    pub(super) body_expressions: Vec<Option<Option<Handle>>>,
    pub(super) surface_sets: QuickMap<u32, Handle>,
    pub(super) body_sets: QuickMap<u32, Handle>,
    /// Bindings of the body whose evidence is still to be packed.
    pub(super) pending: Vec<u32>,
}

/// All bindings of one name in one scope.
pub(super) struct Group {
    /// The earliest first.
    pub(super) bindings: Vec<u32>,
    pub(super) foreign: bool,
    /// A function or class is among them.
    pub(super) defines: bool,
    /// None of them binds: they only tell the type.
    pub(super) only_knowledge: bool,
    /// The latest that is there for type checkers.
    pub(super) checked: Option<u32>,
}

impl Group {
    /// Returns whether a binding may stand for a definition that came before it: `f = wrap(f)`.
    pub(super) fn wraps(&self, binding: &RawBinding) -> bool {
        self.defines && binding.role == RawRole::Variable && binding.annotation == NONE
    }
}

pub(super) type Reached = SmallVec<[(u32, bool); 4]>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bound {
    Free,
    One(u32),
    Many(u32),
}

/// One outline in the making.
#[derive(Default)]
pub(super) struct OutlineBuilder {
    pub(super) names: Vec<u32>,
    pub(super) name_ids: Vec<u32>,
    pub(super) outline: Outline,
}

impl OutlineBuilder {
    pub(super) fn name(&mut self, name: u32) -> NameId {
        let slot = &mut self.name_ids[name as usize];
        if *slot == NONE {
            *slot = self.names.len() as u32;
            self.names.push(name);
        }
        NameId(*slot)
    }

    pub(super) fn finish(mut self, raw: &Raw<'_>) -> Outline {
        self.outline.names = Names::from_texts(self.names.iter().map(|name| raw.names[*name as usize]));
        self.outline.declarations.shrink_to_fit();
        self.outline.bindings.shrink_to_fit();
        self.outline.expressions.shrink_to_fit();
        self.outline
    }
}

impl<'r, 's> Binder<'r, 's> {
    pub(super) fn new(raw: &'r Raw<'s>) -> Self {
        let builder = || OutlineBuilder { name_ids: vec![NONE; raw.names.len()], ..OutlineBuilder::default() };
        Self {
            raw,
            surface: builder(),
            body: builder(),
            bound: Vec::with_capacity(raw.uses.len()),
            sets: Vec::new(),
            set_numbers: QuickMap::default(),
            stars: Vec::new(),
            groups: QuickMap::default(),
            declarations: Vec::with_capacity(raw.declarations.len()),
            surface_bindings: vec![None; raw.bindings.len()],
            body_bindings: vec![None; raw.bindings.len()],
            surface_imports: vec![None; raw.imports.len()],
            body_imports: vec![None; raw.imports.len()],
            surface_expressions: vec![None; raw.expressions.len()],
            body_expressions: vec![None; raw.expressions.len()],
            surface_sets: QuickMap::default(),
            body_sets: QuickMap::default(),
            pending: Vec::new(),
        }
    }

    pub(super) fn outline(&self, side: Side) -> &Outline {
        if side == Side::Surface { &self.surface.outline } else { &self.body.outline }
    }

    pub(super) fn outline_mut(&mut self, side: Side) -> &mut Outline {
        if side == Side::Surface { &mut self.surface.outline } else { &mut self.body.outline }
    }

    pub(super) fn builder(&mut self, side: Side) -> &mut OutlineBuilder {
        if side == Side::Surface { &mut self.surface } else { &mut self.body }
    }
}
