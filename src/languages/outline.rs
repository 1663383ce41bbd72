//! One outline in the making: names by number, and entries that are pushed as they are met.
//!
//! Must not know any one language or its tree. Invariant: declarations come out sorted by their keys, so that readers find them by
//! bisection; whoever holds handles of them brings these to the places that [`OutlineBuilder::finish`] tells.

use std::borrow::Cow;

use rustc_hash::FxHashMap;

use crate::model::Definition;
use crate::model::facts::{
    Binding, Expression, Handle, Import, ItemScope, MemberBlock, NameId, Names, Outline, Search, Signature, Space, TypeShape,
};

/// Which outline an entry belongs to: what other files see, or what only the own references need.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Side {
    Surface,
    Body,
}

impl Side {
    pub(super) fn of(handle: Handle) -> Self {
        if handle.in_body() { Self::Body } else { Self::Surface }
    }

    pub(super) fn handle(self, index: usize) -> Handle {
        match self {
            Self::Surface => Handle::of_surface(index),
            Self::Body => Handle::of_body(index),
        }
    }
}

#[derive(Default)]
pub(super) struct OutlineBuilder<'s> {
    ids: FxHashMap<&'s str, NameId>,
    texts: Vec<Cow<'s, str>>,
    searches: FxHashMap<Search, Handle>,
    pub(super) outline: Outline,
}

impl<'s> OutlineBuilder<'s> {
    pub(super) fn name(&mut self, text: &'s str) -> NameId {
        let texts = &mut self.texts;
        *self.ids.entry(text).or_insert_with(|| {
            texts.push(text.into());
            NameId(texts.len() as u32 - 1)
        })
    }

    /// Adds a name that does not stand so in the source.
    pub(super) fn own_name(&mut self, text: String) -> NameId {
        self.texts.push(text.into());
        NameId(self.texts.len() as u32 - 1)
    }

    /// Returns the expression of a search; equal ones are one.
    pub(super) fn search(&mut self, side: Side, scope: Handle, name: &'s str, space: Space) -> Handle {
        let search = Search { scope, name: self.name(name), space };
        let outline = &mut self.outline;
        *self.searches.entry(search).or_insert_with(|| {
            outline.searches.push(search);
            outline.expressions.push(Expression::Search(outline.searches.len() as u32 - 1));
            side.handle(outline.expressions.len() - 1)
        })
    }

    /// Ends the making. Returns the place of each declaration as well, by the index that it was pushed at.
    pub(super) fn finish(self) -> (Outline, Vec<usize>) {
        let mut outline = self.outline;
        outline.names = Names::from_texts(self.texts.iter().map(AsRef::as_ref));
        let mut order: Vec<usize> = (0..outline.declarations.len()).collect();
        order.sort_by(|&left, &right| outline.declarations[left].key.cmp(&outline.declarations[right].key));
        let places = arrange(&mut outline.declarations, &order);
        outline.bindings.shrink_to_fit();
        outline.expressions.shrink_to_fit();
        outline.types.shrink_to_fit();
        outline.signatures.shrink_to_fit();
        (outline, places)
    }

    pub(super) fn binding(&mut self, side: Side, binding: Binding) -> Handle {
        self.outline.bindings.push(binding);
        side.handle(self.outline.bindings.len() - 1)
    }

    pub(super) fn expression(&mut self, side: Side, expression: Expression) -> Handle {
        self.outline.expressions.push(expression);
        side.handle(self.outline.expressions.len() - 1)
    }

    pub(super) fn import(&mut self, import: Import) -> u32 {
        self.outline.imports.push(import);
        self.outline.imports.len() as u32 - 1
    }

    pub(super) fn shape(&mut self, shape: TypeShape) -> u32 {
        self.outline.types.push(shape);
        self.outline.types.len() as u32 - 1
    }

    pub(super) fn signature(&mut self, signature: Signature) -> u32 {
        self.outline.signatures.push(signature);
        self.outline.signatures.len() as u32 - 1
    }

    pub(super) fn scope(&mut self, side: Side, scope: ItemScope) -> Handle {
        self.outline.scopes.push(scope);
        side.handle(self.outline.scopes.len() - 1)
    }

    pub(super) fn block(&mut self, block: MemberBlock) {
        self.outline.blocks.push(block);
    }
}

/// Brings definitions into an order, their parents following them. Returns the new index of each.
pub(super) fn arrange_definitions(definitions: &mut Vec<Definition>, order: &[usize]) -> Vec<usize> {
    let places = arrange(definitions, order);
    for definition in definitions {
        definition.parent = definition.parent.map(|parent| places[parent as usize] as u32);
    }
    places
}

/// Brings entries into an order, which names each index once. Returns the new index of each.
fn arrange<T>(entries: &mut Vec<T>, order: &[usize]) -> Vec<usize> {
    let mut places = vec![0; order.len()];
    for (place, &index) in order.iter().enumerate() {
        places[index] = place;
    }
    let mut taken: Vec<Option<T>> = std::mem::take(entries).into_iter().map(Some).collect();
    *entries = order.iter().filter_map(|&index| taken[index].take()).collect();
    places
}
