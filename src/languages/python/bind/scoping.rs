//! Python's scoping: the bindings that a use of a name may see.
//!
//! Must not know the outlines. Invariant: a use sees one binding only when no other can reach it.

use std::rc::Rc;

use super::binder::{Binder, Bound, Group, Reached};
use crate::languages::python::raw::{NONE, RawBinding, RawRole, RawUse, ScopeKind, fork, group_key};
use crate::languages::python::vocabulary::is_builtin;

/// How many bindings a set keeps as evidence; definitions beyond it are kept all the same.
pub(super) const MAX_SET: usize = 24;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Relation {
    Always,
    Sometimes,
    Never,
}

impl<'r, 's> Binder<'r, 's> {
    pub(super) fn look_up(&mut self, used: &RawUse) -> Bound {
        let raw = self.raw;
        let mut scope = used.scope;
        // Whether the statements between the use and `scope` run in place, so that order counts.
        let mut direct = true;
        // What an annotation sees of its own scope only because it may be evaluated later: names around, and the language's, come first.
        let mut later = None;
        loop {
            let entry = &raw.scopes[scope as usize];
            // A class body is seen by what stands directly in it, not by the scopes inside.
            if entry.kind != ScopeKind::Class || scope == used.scope {
                if let Some((_, global)) = entry.redirected.iter().find(|redirected| redirected.0 == used.name) {
                    if *global {
                        return self.reach(used, 0, false).unwrap_or(Bound::Free);
                    }
                } else if let Some(bound) = self.reach(used, scope, direct) {
                    if !(used.annotation && direct && self.is_later(bound, used)) {
                        return bound;
                    }
                    later = later.or(Some(bound));
                }
            }
            if scope == 0 {
                return match later {
                    Some(later) if !is_builtin(raw.names[used.name as usize]) => later,
                    _ => Bound::Free,
                };
            }
            direct &= entry.kind != ScopeKind::Function;
            scope = entry.parent;
        }
    }

    /// Returns whether a use stands before all that it is bound to.
    fn is_later(&self, bound: Bound, used: &RawUse) -> bool {
        let later = |binding: u32| {
            let binding = &self.raw.bindings[binding as usize];
            binding.tick > used.tick
                && binding.role != RawRole::TypeParameter
                && !self.raw.arms[binding.arm as usize].type_checking
        };
        match bound {
            Bound::Free => false,
            Bound::One(binding) => later(binding),
            Bound::Many(set) => self.sets[set as usize].iter().all(|(binding, _)| later(*binding)),
        }
    }

    /// Returns what a name of a scope means to code that runs later.
    pub(super) fn finally(&mut self, scope: u32, latest: u32) -> Option<Bound> {
        let used = RawUse {
            name: self.raw.bindings[latest as usize].name,
            scope,
            tick: u32::MAX,
            arm: self.raw.scopes[scope as usize].arm,
            annotation: false,
        };
        self.reach(&used, scope, false)
    }

    fn reach(&mut self, used: &RawUse, scope: u32, direct: bool) -> Option<Bound> {
        let raw = self.raw;
        let latest = *raw.groups.get(&group_key(scope, used.name))?;
        let kind = raw.scopes[scope as usize].kind;
        let local = matches!(kind, ScopeKind::Function | ScopeKind::Comprehension);
        let binding = &raw.bindings[latest as usize];
        let stars = scope == 0 && !self.stars.is_empty();
        if binding.previous == NONE && !stars {
            return match binding.role {
                RawRole::Narrowed => None,
                RawRole::Deleted if !local => None,
                _ if local || !direct || used.annotation || binding.foreign || binding.tick < used.tick => {
                    Some(Bound::One(latest))
                }
                _ if self.repeats(used, binding) => Some(Bound::One(latest)),
                _ => None,
            };
        }
        let group = self.group(scope, used.name, latest);
        if group.only_knowledge {
            return None;
        }
        let mut reached = self.reaching(&group, used, scope, direct);
        if reached.iter().all(|(binding, _)| matches!(raw.bindings[*binding as usize].role, RawRole::Star(_) | RawRole::Deleted))
            && used.annotation
            && direct
        {
            reached = self.reaching(&group, used, scope, false);
        }
        if reached.is_empty() && local {
            reached = group.bindings.iter().rev().take(MAX_SET).map(|binding| (*binding, true)).collect();
        }
        while reached.last().is_some_and(|(binding, _)| raw.bindings[*binding as usize].role == RawRole::Deleted) {
            reached.pop();
        }
        self.number(reached)
    }

    /// Returns all bindings of a name in a scope; at the top, star imports may bind it too.
    fn group(&mut self, scope: u32, name: u32, latest: u32) -> Rc<Group> {
        let key = group_key(scope, name);
        if let Some(group) = self.groups.get(&key) {
            return Rc::clone(group);
        }
        let raw = self.raw;
        let mut bindings: Vec<u32> = std::iter::successors(Some(latest), |binding| {
            Some(raw.bindings[*binding as usize].previous).filter(|next| *next != NONE)
        })
        .collect();
        let only_knowledge = bindings.iter().all(|binding| raw.bindings[*binding as usize].role == RawRole::Narrowed);
        let foreign = bindings.iter().any(|binding| raw.bindings[*binding as usize].foreign);
        let checked =
            bindings.iter().copied().find(|binding| raw.arms[raw.bindings[*binding as usize].arm as usize].type_checking);
        let defines =
            bindings.iter().any(|binding| matches!(raw.bindings[*binding as usize].role, RawRole::Function | RawRole::Class));
        if scope == 0 {
            bindings.extend(self.stars.iter().copied());
        }
        // Numbers rise with ticks.
        bindings.sort_unstable();
        let group = Rc::new(Group { bindings, foreign, defines, only_knowledge, checked });
        self.groups.insert(key, Rc::clone(&group));
        group
    }

    /// Gives a set of bindings its number; none for an empty one.
    fn number(&mut self, reached: Reached) -> Option<Bound> {
        match reached.as_slice() {
            [] => None,
            [(one, _)] if !matches!(self.raw.bindings[*one as usize].role, RawRole::Star(_)) => Some(Bound::One(*one)),
            several => {
                if let Some(number) = self.set_numbers.get(several) {
                    return Some(Bound::Many(*number));
                }
                let number = self.sets.len() as u32;
                self.set_numbers.insert(several.to_vec(), number);
                self.sets.push(reached);
                Some(Bound::Many(number))
            }
        }
    }

    /// Selects the bindings that may be the one a use sees, the latest first, and whether it may also see an earlier one.
    fn reaching(&self, group: &Group, used: &RawUse, scope: u32, direct: bool) -> Reached {
        let raw = self.raw;
        let root = raw.scopes[scope as usize].arm;
        let mut reached = Reached::new();
        if used.annotation
            && let Some(checked) = group.checked
        {
            reached.push((checked, false));
            return reached;
        }
        if !direct {
            for candidate in group.bindings.iter().rev() {
                let binding = &raw.bindings[*candidate as usize];
                let wraps = group.wraps(binding);
                let conditional = binding.foreign || wraps || self.lifted(binding.arm) != self.lifted(root);
                if conditional && !binding.foreign && self.leaves(binding.arm, root) {
                    continue;
                }
                self.add_reached(&mut reached, *candidate, conditional);
                if !conditional && !matches!(binding.role, RawRole::Star(_)) {
                    break;
                }
            }
            return reached;
        }
        let later = group.bindings.partition_point(|candidate| raw.bindings[*candidate as usize].tick < used.tick);
        if group.foreign || self.is_repeated(used.arm) {
            for candidate in group.bindings[later..].iter().rev() {
                let binding = &raw.bindings[*candidate as usize];
                if binding.foreign || self.repeats(used, binding) {
                    self.add_reached(&mut reached, *candidate, true);
                }
            }
        }
        let mut closed = false;
        for candidate in group.bindings[..later].iter().rev() {
            let binding = &raw.bindings[*candidate as usize];
            if binding.foreign {
                self.add_reached(&mut reached, *candidate, true);
            } else if !closed {
                match self.relation(binding.arm, used.arm) {
                    Relation::Always => {
                        let wraps = group.wraps(binding);
                        self.add_reached(&mut reached, *candidate, wraps);
                        closed = !wraps && !matches!(binding.role, RawRole::Star(_));
                    }
                    Relation::Sometimes => self.add_reached(&mut reached, *candidate, true),
                    Relation::Never => {}
                }
            }
            if closed && !group.foreign {
                break;
            }
        }
        reached
    }

    /// Adds a binding to a set. A long set takes only what could be another definition, not more evidence of the same.
    fn add_reached(&self, reached: &mut Reached, candidate: u32, conditional: bool) {
        let declaration = self.raw.bindings[candidate as usize].declaration;
        let known = |(other, _): &(u32, bool)| self.raw.bindings[*other as usize].declaration == declaration;
        if reached.len() < MAX_SET || declaration != NONE && !reached.iter().any(known) {
            reached.push((candidate, conditional));
        }
    }

    /// Says how a binding in an arm relates to a later use in another.
    fn relation(&self, binding: u32, used: u32) -> Relation {
        if self.is_around(self.lifted(binding), used) && !self.excludes(binding, used) {
            return Relation::Always;
        }
        if self.excludes(binding, used) {
            return Relation::Never;
        }
        // Between the binding and what is around both, no arm may end without going on.
        let mut arm = binding;
        while !self.is_around(arm, used) {
            if self.raw.arms[arm as usize].terminates {
                return Relation::Never;
            }
            arm = self.raw.arms[arm as usize].parent;
            if arm == NONE {
                return Relation::Sometimes;
            }
        }
        Relation::Sometimes
    }

    /// Returns whether the two stand in alternatives of one statement of which only one runs.
    fn excludes(&self, left: u32, right: u32) -> bool {
        let arms = &self.raw.arms;
        let Some((below_left, below_right)) = fork(arms, left, right) else { return false };
        // Both chains may have climbed past the fork by different numbers of steps, but end directly below it.
        below_left != NONE
            && below_right != NONE
            && arms[below_left as usize].statement != NONE
            && arms[below_left as usize].statement == arms[below_right as usize].statement
    }

    /// Returns whether control leaves the scope's statements (those of `root`) at the end of the arm.
    fn leaves(&self, mut arm: u32, root: u32) -> bool {
        while arm != root && arm != NONE {
            if self.raw.arms[arm as usize].terminates {
                return true;
            }
            arm = self.raw.arms[arm as usize].parent;
        }
        false
    }

    /// Returns the arm that surely runs when `arm`'s statement does: itself, or what is around it when its alternatives all end.
    pub(super) fn lifted(&self, mut arm: u32) -> u32 {
        while self.raw.arms[arm as usize].certain && self.raw.arms[arm as usize].parent != NONE {
            arm = self.raw.arms[arm as usize].parent;
        }
        arm
    }

    /// Returns whether a binding after the use, in a loop around both, may be seen in the next round.
    fn repeats(&self, used: &RawUse, binding: &RawBinding) -> bool {
        let mut arm = used.arm;
        while arm != NONE {
            let entry = &self.raw.arms[arm as usize];
            if entry.repeats && self.is_within(binding.arm, arm) {
                return true;
            }
            arm = entry.parent;
        }
        false
    }

    fn is_repeated(&self, mut arm: u32) -> bool {
        while arm != NONE {
            if self.raw.arms[arm as usize].repeats {
                return true;
            }
            arm = self.raw.arms[arm as usize].parent;
        }
        false
    }

    fn is_within(&self, mut arm: u32, outer: u32) -> bool {
        let depth = self.raw.arms[outer as usize].depth;
        while self.raw.arms[arm as usize].depth > depth {
            arm = self.raw.arms[arm as usize].parent;
        }
        arm == outer
    }

    fn is_around(&self, outer: u32, arm: u32) -> bool {
        self.raw.arms[outer as usize].depth <= self.raw.arms[arm as usize].depth && self.is_within(arm, outer)
    }
}
