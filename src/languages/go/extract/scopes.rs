//! The block scopes of a function: which local binding a name has at a place.
//!
//! Must not know what names mean outside. Invariant: a scope that is left leaves nothing behind.

use rustc_hash::FxHashMap;

use crate::model::facts::Handle;

/// A binding of a local name.
#[derive(Clone, Copy, Debug)]
pub(super) struct Local {
    pub binding: Handle,
    /// Depth of the scope that binds it.
    scope: u32,
}

#[derive(Default)]
pub(super) struct Scopes<'s> {
    bound: FxHashMap<&'s str, Vec<Local>>,
    /// Names in the order they were bound, all scopes.
    order: Vec<&'s str>,
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
            if let Some(locals) = self.bound.get_mut(name) {
                locals.pop();
            }
        }
    }

    pub(super) fn bind(&mut self, name: &'s str, binding: Handle) {
        self.bound.entry(name).or_default().push(Local { binding, scope: self.begun.len() as u32 });
        self.order.push(name);
    }

    pub(super) fn find(&self, name: &str) -> Option<Handle> {
        self.bound.get(name)?.last().map(|local| local.binding)
    }

    /// Returns whether the innermost scope itself binds the name.
    pub(super) fn binds_here(&self, name: &str) -> bool {
        self.bound.get(name).and_then(|locals| locals.last()).is_some_and(|local| local.scope == self.begun.len() as u32)
    }
}
