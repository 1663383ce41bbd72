//! The scopes of a function: which local binding, or that an item, has a name at a place.
//!
//! Must not know what items are. Invariant: a scope that is left leaves nothing behind, and types and values do not hide each other.

use rustc_hash::FxHashMap;

use crate::model::facts::Handle;

/// What a local name is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Local {
    Bound(Handle),
    /// An item of a block, which hides what is around it.
    Item,
}

#[derive(Default)]
pub(super) struct Scopes<'s> {
    /// By name, and whether it is one of types.
    bound: FxHashMap<(&'s str, bool), Vec<Local>>,
    /// Names in the order they were bound, all scopes.
    order: Vec<(&'s str, bool)>,
    /// Length of `order` when each open scope began.
    begun: Vec<usize>,
}

impl<'s> Scopes<'s> {
    pub(super) fn enter(&mut self) {
        self.begun.push(self.order.len());
    }

    pub(super) fn leave(&mut self) {
        let begun = self.begun.pop().unwrap_or(0);
        for name in self.order.drain(begun..) {
            if let Some(locals) = self.bound.get_mut(&name) {
                locals.pop();
            }
        }
    }

    pub(super) fn bind(&mut self, name: &'s str, is_type: bool, local: Local) {
        self.bound.entry((name, is_type)).or_default().push(local);
        self.order.push((name, is_type));
    }

    /// Returns the innermost binding; `None` where an item has the name, or nothing.
    pub(super) fn find(&self, name: &'s str, is_type: bool) -> Option<Handle> {
        match self.bound.get(&(name, is_type))?.last()? {
            Local::Bound(binding) => Some(*binding),
            Local::Item => None,
        }
    }
}
