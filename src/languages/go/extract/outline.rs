//! One outline in the making: names by number, and entries that are pushed as they are met.
//!
//! Must not know the tree. Invariant: declarations come out sorted by their qualified names, so that readers find them by bisection.

use rustc_hash::FxHashMap;

use crate::model::facts::{Binding, Declaration, Expression, Handle, NameId, Names, Outline, Signature, TypeShape};

/// Which outline an entry belongs to: what other files see, or what only the own references need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
}

#[derive(Default)]
pub(super) struct OutlineBuilder<'s> {
    ids: FxHashMap<&'s str, NameId>,
    texts: Vec<std::borrow::Cow<'s, str>>,
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

    pub(super) fn finish(self) -> Outline {
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
        for binding in &mut outline.bindings {
            if let Some(declaration) = &mut binding.declaration {
                *declaration = Handle::of_surface(places[declaration.index()]);
            }
        }
        outline.bindings.shrink_to_fit();
        outline.expressions.shrink_to_fit();
        outline.types.shrink_to_fit();
        outline.signatures.shrink_to_fit();
        outline
    }

    pub(super) fn binding(&mut self, side: Side, binding: Binding) -> Handle {
        self.outline.bindings.push(binding);
        side.handle(self.outline.bindings.len() - 1)
    }

    pub(super) fn expression(&mut self, side: Side, expression: Expression) -> Handle {
        self.outline.expressions.push(expression);
        side.handle(self.outline.expressions.len() - 1)
    }

    pub(super) fn shape(&mut self, shape: TypeShape) -> u32 {
        self.outline.types.push(shape);
        self.outline.types.len() as u32 - 1
    }

    pub(super) fn signature(&mut self, signature: Signature) -> u32 {
        self.outline.signatures.push(signature);
        self.outline.signatures.len() as u32 - 1
    }
}
