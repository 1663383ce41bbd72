//! One outline in the making: names by number, and entries that are pushed as they are met.
//!
//! Must not know the tree. Invariant: declarations come out sorted by their keys, so that readers find them by bisection, and every
//! handle of one follows it.

use std::borrow::Cow;
use std::collections::HashMap;

use crate::model::facts::{
    Binding, Declaration, Expression, Handle, Import, ItemMeaning, ItemScope, MemberBlock, NameId, Names, Outline, Search,
    Signature, Space, TypeShape,
};

/// Which outline an entry belongs to: what other files see, or what only the own references need.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Side {
    Surface,
    Body,
}

impl Side {
    pub(super) fn handle(self, index: usize) -> Handle {
        match self {
            Self::Surface => Handle::of_surface(index),
            Self::Body => Handle::of_body(index),
        }
    }

    pub(super) fn of(handle: Handle) -> Self {
        if handle.in_body() { Self::Body } else { Self::Surface }
    }
}

#[derive(Default)]
pub(super) struct OutlineBuilder<'s> {
    ids: HashMap<&'s str, NameId>,
    texts: Vec<Cow<'s, str>>,
    searches: HashMap<Search, Handle>,
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

    /// Ends the making. Handles of surface declarations that others hold are brought to their new places by `moved`.
    pub(super) fn finish(self) -> (Outline, Vec<usize>) {
        let mut outline = self.outline;
        outline.names = Names::from_texts(self.texts.iter().map(AsRef::as_ref));
        let mut order: Vec<usize> = (0..outline.declarations.len()).collect();
        order.sort_by(|&left, &right| outline.declarations[left].key.cmp(&outline.declarations[right].key));
        let mut places = vec![0; order.len()];
        for (place, &index) in order.iter().enumerate() {
            places[index] = place;
        }
        let mut declarations: Vec<Option<Declaration>> =
            std::mem::take(&mut outline.declarations).into_iter().map(Some).collect();
        outline.declarations = order.into_iter().filter_map(|index| declarations[index].take()).collect();
        for scope in &mut outline.scopes {
            scope.mentioned.sort_unstable();
            scope.mentioned.dedup();
        }
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

/// Brings the handles of declarations in an outline to the places these have in the end.
pub(super) fn follow(outline: &mut Outline, surface: &[usize], body: &[usize]) {
    let moved = |handle: &mut Handle| {
        let places = if handle.in_body() { body } else { surface };
        if let Some(place) = places.get(handle.index()) {
            *handle = Side::of(*handle).handle(*place);
        }
    };
    for scope in &mut outline.scopes {
        for item in &mut scope.items {
            match &mut item.meaning {
                ItemMeaning::Declaration(declaration) | ItemMeaning::Module { declaration, .. } => moved(declaration),
                ItemMeaning::Import(_) | ItemMeaning::Star(_) | ItemMeaning::File { .. } => {}
            }
        }
    }
    for block in &mut outline.blocks {
        block.members.iter_mut().for_each(moved);
        if let Some((declared, _)) = &mut block.declares {
            moved(declared);
        }
    }
}
