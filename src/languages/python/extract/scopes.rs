//! Scopes, the arms in them that may or may not run, and the names bound there.
//!
//! Must not know the tree. Invariant: every binding has a tick of its own, later than that of all bindings and uses recorded before it.

use super::walk::{Given, Walk};
use crate::languages::python::raw::{Arm, NONE, RawBinding, RawRole, Scope, ScopeKind, fork, group_key};

impl Walk<'_> {
    pub(super) fn bind(&mut self, name: u32, role: RawRole, declaration: u32, given: Given) -> u32 {
        self.bind_in(self.scope, name, role, declaration, given)
    }

    pub(super) fn bind_in(&mut self, scope: u32, name: u32, role: RawRole, declaration: u32, given: Given) -> u32 {
        let mut target = scope;
        let mut foreign = false;
        if let Some((_, global)) = self.raw.scopes[scope as usize].redirected.iter().find(|entry| entry.0 == name).copied() {
            foreign = true;
            target = if global {
                0
            } else {
                let mut outer = self.raw.scopes[scope as usize].parent;
                while outer != 0
                    && (self.raw.scopes[outer as usize].kind != ScopeKind::Function
                        || !self.raw.groups.contains_key(&group_key(outer, name)))
                {
                    outer = self.raw.scopes[outer as usize].parent;
                }
                outer
            };
        }
        let tick = self.next_tick();
        let index = self.raw.bindings.len() as u32;
        let previous = self.raw.groups.insert(group_key(target, name), index).unwrap_or(NONE);
        self.raw.bindings.push(RawBinding {
            name,
            scope: target,
            role,
            tick,
            arm: self.arm,
            foreign: foreign && target != scope,
            declaration,
            annotation: given.annotation,
            value: given.value,
            previous,
        });
        index
    }

    pub(super) fn new_scope(&mut self, kind: ScopeKind, arm: u32) -> u32 {
        let parent = &self.raw.scopes[self.scope as usize];
        let outer = kind == ScopeKind::Class && parent.outer;
        let (class, instance) = if kind == ScopeKind::Class { (NONE, NONE) } else { (parent.class, NONE) };
        self.raw.scopes.push(Scope { kind, parent: self.scope, arm, class, instance, outer, redirected: Vec::new() });
        self.raw.scopes.len() as u32 - 1
    }

    pub(super) fn new_arm(&mut self, parent: u32, statement: u32) -> u32 {
        let depth = if parent == NONE { 0 } else { self.raw.arms[parent as usize].depth + 1 };
        let type_checking = parent != NONE && self.raw.arms[parent as usize].type_checking;
        self.raw.arms.push(Arm {
            parent,
            depth,
            statement,
            choice: statement,
            repeats: false,
            terminates: false,
            certain: false,
            type_checking,
        });
        self.raw.arms.len() as u32 - 1
    }

    pub(super) fn scope_kind(&self) -> ScopeKind {
        self.raw.scopes[self.scope as usize].kind
    }

    pub(super) fn declaring_scope(&self, name: u32) -> u32 {
        match self.raw.scopes[self.scope as usize].redirected.iter().find(|entry| entry.0 == name) {
            Some((_, true)) => 0,
            _ => self.scope,
        }
    }

    /// Returns whether the two arms are different ways through one statement: what they bind are then different definitions.
    pub(super) fn are_alternatives(&self, left: u32, right: u32) -> bool {
        let arms = &self.raw.arms;
        let Some((below_left, below_right)) = fork(arms, left, right) else { return false };
        let choice = |arm: u32| if arm == NONE { NONE } else { arms[arm as usize].choice };
        choice(below_left) != NONE && choice(below_left) == choice(below_right)
    }

    /// Returns the class whose instance (or self) `name` is here; [`NONE`] when it is no such parameter.
    pub(super) fn instance_class(&self, name: u32) -> u32 {
        let mut scope = self.scope;
        while scope != NONE {
            let entry = &self.raw.scopes[scope as usize];
            if !matches!(entry.kind, ScopeKind::Function | ScopeKind::Comprehension) {
                return NONE;
            }
            if entry.instance == name {
                return entry.class;
            }
            if self.raw.groups.contains_key(&group_key(scope, name)) {
                return NONE;
            }
            scope = entry.parent;
        }
        NONE
    }

    /// Returns the class in whose method (or a function inside one) the walk is.
    pub(super) fn enclosing_class(&self) -> u32 {
        let mut scope = self.scope;
        while scope != NONE {
            let entry = &self.raw.scopes[scope as usize];
            match entry.kind {
                ScopeKind::Module => return NONE,
                ScopeKind::Class => return entry.class,
                _ if entry.class != NONE => return entry.class,
                _ => scope = entry.parent,
            }
        }
        NONE
    }

    pub(super) fn next_tick(&mut self) -> u32 {
        self.tick += 1;
        self.tick
    }
}
