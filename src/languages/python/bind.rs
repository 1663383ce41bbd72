//! Binds the names of one file by Python's scoping rules and packs what the walk found into surface and body.
//!
//! Must not know other files. Invariant: nothing of the surface depends on where something stands, only on what is bound to what.

use std::rc::Rc;

use smallvec::SmallVec;

use super::raw::*;
use crate::model::facts::{
    AttributeEvidence, Binding, Body, ClassShape, Declaration, Expression, FunctionShape, Handle, Import, NameId, Names, Outline,
    PublicStep, Reaching, Reference, Role, Shape, Subject, Surface, Use,
};

/// How many steps of inlining lead from an attribute's evidence to what other files can see.
const MAX_INLINE: u32 = 6;

/// How many kinds of evidence one attribute keeps.
const MAX_EVIDENCE: usize = 4;

/// How many bindings a set keeps as evidence; definitions beyond it are kept all the same.
const MAX_SET: usize = 24;

/// All bindings of one name in one scope.
struct Group {
    /// The earliest first.
    bindings: Vec<u32>,
    foreign: bool,
    /// A function or class is among them.
    defines: bool,
    /// None of them binds: they only tell the type.
    only_knowledge: bool,
    /// The latest that is there for type checkers.
    checked: Option<u32>,
}

impl Group {
    /// Returns whether a binding may stand for a definition that came before it: `f = wrap(f)`.
    fn wraps(&self, binding: &RawBinding) -> bool {
        self.defines && binding.role == RawRole::Variable && binding.annotation == NONE
    }
}

type Reached = SmallVec<[(u32, bool); 4]>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bound {
    Free,
    One(u32),
    Many(u32),
}

/// One outline in the making.
#[derive(Default)]
struct OutlineBuilder {
    names: Vec<u32>,
    name_ids: Vec<u32>,
    outline: Outline,
}

impl OutlineBuilder {
    fn name(&mut self, name: u32) -> NameId {
        let slot = &mut self.name_ids[name as usize];
        if *slot == NONE {
            *slot = self.names.len() as u32;
            self.names.push(name);
        }
        NameId(*slot)
    }

    fn finish(mut self, raw: &Raw<'_>) -> Outline {
        self.outline.names = Names::from_texts(self.names.iter().map(|name| raw.names[*name as usize]));
        self.outline.declarations.shrink_to_fit();
        self.outline.bindings.shrink_to_fit();
        self.outline.expressions.shrink_to_fit();
        self.outline
    }
}

/// Which of the two outlines an expression goes into.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Surface,
    Body,
}

pub(super) struct Binder<'r, 's> {
    raw: &'r Raw<'s>,
    surface: OutlineBuilder,
    body: OutlineBuilder,
    /// What each use means.
    bound: Vec<Bound>,
    sets: Vec<Reached>,
    set_numbers: QuickMap<Vec<(u32, bool)>, u32>,
    stars: Vec<u32>,
    groups: QuickMap<u64, Rc<Group>>,
    declarations: Vec<Handle>,
    /// Handles of bindings: those of the surface, those of the body, and locals that the surface needs all the same.
    surface_bindings: Vec<Option<Handle>>,
    body_bindings: Vec<Option<Handle>>,
    surface_imports: Vec<Option<u32>>,
    body_imports: Vec<Option<u32>>,
    surface_expressions: Vec<Option<Option<Handle>>>,
    body_expressions: Vec<Option<Option<Handle>>>,
    surface_sets: QuickMap<u32, Handle>,
    body_sets: QuickMap<u32, Handle>,
    /// Bindings of the body whose evidence is still to be packed.
    pending: Vec<u32>,
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

    pub(super) fn run(mut self, line_starts: Vec<u32>) -> (Surface, Body) {
        self.stars = (0..self.raw.bindings.len() as u32)
            .filter(|index| {
                let binding = &self.raw.bindings[*index as usize];
                matches!(binding.role, RawRole::Star(_)) && binding.scope == 0
            })
            .collect();
        for index in 0..self.raw.uses.len() {
            let bound = self.look_up(&self.raw.uses[index]);
            self.bound.push(bound);
        }
        self.declare();
        let mut surface = Surface::default();
        self.bind_surface();
        self.shape_all();
        self.finish_surface(&mut surface);
        let mut body = Body { line_starts, ..Body::default() };
        self.pack_references(&mut body);
        while let Some(binding) = self.pending.pop() {
            self.pack_evidence(binding);
        }
        surface.outline = self.surface.finish(self.raw);
        body.outline = self.body.finish(self.raw);
        (surface, body)
    }

    // ---- scoping

    fn look_up(&mut self, used: &RawUse) -> Bound {
        let raw = self.raw;
        let mut scope = used.scope;
        // Whether the statements between the use and `scope` run in place, so that order counts.
        let mut direct = true;
        loop {
            let entry = &raw.scopes[scope as usize];
            // A class body is seen by what stands directly in it, not by the scopes inside.
            if entry.kind != ScopeKind::Class || scope == used.scope {
                if let Some((_, global)) = entry.redirected.iter().find(|redirected| redirected.0 == used.name) {
                    if *global {
                        return self.reach(used, 0, false).unwrap_or(Bound::Free);
                    }
                } else if let Some(bound) = self.reach(used, scope, direct) {
                    return bound;
                }
            }
            if scope == 0 {
                return Bound::Free;
            }
            direct &= entry.kind != ScopeKind::Function;
            scope = entry.parent;
        }
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

    fn is_repeated(&self, mut arm: u32) -> bool {
        while arm != NONE {
            if self.raw.arms[arm as usize].repeats {
                return true;
            }
            arm = self.raw.arms[arm as usize].parent;
        }
        false
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

    fn is_within(&self, mut arm: u32, outer: u32) -> bool {
        let depth = self.raw.arms[outer as usize].depth;
        while self.raw.arms[arm as usize].depth > depth {
            arm = self.raw.arms[arm as usize].parent;
        }
        arm == outer
    }

    /// Returns the arm that surely runs when `arm`'s statement does: itself, or what is around it when its alternatives all end.
    fn lifted(&self, mut arm: u32) -> u32 {
        while self.raw.arms[arm as usize].certain && self.raw.arms[arm as usize].parent != NONE {
            arm = self.raw.arms[arm as usize].parent;
        }
        arm
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

    fn is_around(&self, outer: u32, arm: u32) -> bool {
        self.raw.arms[outer as usize].depth <= self.raw.arms[arm as usize].depth && self.is_within(arm, outer)
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

    /// Returns what a name of a scope means to code that runs later.
    fn finally(&mut self, scope: u32, latest: u32) -> Option<Bound> {
        let used = RawUse {
            name: self.raw.bindings[latest as usize].name,
            scope,
            tick: u32::MAX,
            arm: self.raw.scopes[scope as usize].arm,
            annotation: false,
        };
        self.reach(&used, scope, false)
    }

    // ---- packing

    fn declare(&mut self) {
        for declaration in &self.raw.declarations {
            let definition = &self.raw.definitions[declaration.definition as usize];
            let (builder, side) =
                if declaration.outer { (&mut self.surface, Side::Surface) } else { (&mut self.body, Side::Body) };
            let outline = &mut builder.outline;
            let handle = handle_of(side, outline.declarations.len());
            let shape = match declaration.shape {
                RawShape::Class(_) => {
                    outline.classes.push(ClassShape::default());
                    Shape::Class(outline.classes.len() as u32 - 1)
                }
                RawShape::Function(_) => {
                    outline.functions.push(FunctionShape::default());
                    Shape::Function(outline.functions.len() as u32 - 1)
                }
                RawShape::Value => Shape::Value,
            };
            outline.declarations.push(Declaration { key: definition.key.clone(), kind: definition.kind, shape });
            self.declarations.push(handle);
        }
    }

    fn is_outer(&self, binding: &RawBinding) -> bool {
        let scope = &self.raw.scopes[binding.scope as usize];
        scope.outer && matches!(scope.kind, ScopeKind::Module | ScopeKind::Class)
    }

    fn bind_surface(&mut self) {
        let raw = self.raw;
        let outer: Vec<u32> =
            (0..raw.bindings.len() as u32).filter(|index| self.is_outer(&raw.bindings[*index as usize])).collect();
        for index in &outer {
            let handle = Handle::of_surface(self.surface.outline.bindings.len());
            self.surface_bindings[*index as usize] = Some(handle);
            let binding = &raw.bindings[*index as usize];
            let name = self.surface.name(binding.name);
            let role = self.role(binding.role, Side::Surface);
            let declaration = self.declaration_of(binding);
            self.surface.outline.bindings.push(Binding { name, role, declaration, annotation: None, value: None });
        }
        for index in outer {
            let binding = &raw.bindings[index as usize];
            let handle = self.surface_bindings[index as usize].expect("made in the loop above");
            let annotation = self.pack_in_surface(binding.annotation, 0);
            let value = if annotation.is_none() { self.pack_in_surface(binding.value, 0) } else { None };
            let packed = &mut self.surface.outline.bindings[handle.index()];
            packed.annotation = annotation;
            packed.value = value;
        }
    }

    fn declaration_of(&self, binding: &RawBinding) -> Option<Handle> {
        if binding.declaration == NONE { None } else { Some(self.declarations[binding.declaration as usize]) }
    }

    fn class_handle(&self, class: u32) -> Option<Handle> {
        let declaration = self.raw.classes.get(class as usize)?.declaration;
        self.declarations.get(declaration as usize).copied()
    }

    fn role(&mut self, role: RawRole, side: Side) -> Role {
        match role {
            RawRole::Function => Role::Function,
            RawRole::Class => Role::Class,
            RawRole::Variable | RawRole::Narrowed => Role::Variable,
            RawRole::Parameter => Role::Parameter,
            RawRole::Instance(class) => self.class_handle(class).map_or(Role::Parameter, Role::Instance),
            RawRole::Type(class) => self.class_handle(class).map_or(Role::Parameter, Role::Type),
            RawRole::Import(import) => Role::Import(self.import(import, side)),
            RawRole::Star(import) => Role::Star(self.import(import, side)),
            RawRole::Deleted => Role::Deleted,
        }
    }

    fn import(&mut self, import: u32, side: Side) -> u32 {
        let known = if side == Side::Surface { &self.surface_imports } else { &self.body_imports };
        if let Some(index) = known[import as usize] {
            return index;
        }
        let raw = self.raw.imports[import as usize];
        let builder = self.builder(side);
        let module = builder.name(raw.module);
        let name = if raw.name == NONE { None } else { Some(builder.name(raw.name)) };
        let index = builder.outline.imports.len() as u32;
        builder.outline.imports.push(Import { module, name, root_only: raw.root_only });
        let known = if side == Side::Surface { &mut self.surface_imports } else { &mut self.body_imports };
        known[import as usize] = Some(index);
        index
    }

    fn shape_all(&mut self) {
        let raw = self.raw;
        // (scope, name, latest), by scope, so that each class finds its own.
        let mut groups: Vec<(u32, u32, u32)> = raw
            .groups
            .iter()
            .map(|(key, latest)| ((key >> 32) as u32, *key as u32, *latest))
            .filter(|(scope, _, _)| raw.scopes[*scope as usize].kind == ScopeKind::Class)
            .collect();
        groups.sort_unstable_by_key(|(scope, name, _)| (*scope, raw.names[*name as usize]));
        for (number, declaration) in raw.declarations.iter().enumerate() {
            let handle = self.declarations[number];
            let side = if declaration.outer { Side::Surface } else { Side::Body };
            let outline = self.outline(side);
            match (declaration.shape, outline.declarations[handle.index()].shape) {
                (RawShape::Class(class), Shape::Class(index)) => {
                    let shape = self.class_shape(&raw.classes[class as usize], side, &groups);
                    self.outline_mut(side).classes[index as usize] = shape;
                }
                (RawShape::Function(function), Shape::Function(index)) => {
                    let shape = self.function_shape(&raw.functions[function as usize], side);
                    self.outline_mut(side).functions[index as usize] = shape;
                }
                _ => {}
            }
        }
    }

    fn outline(&self, side: Side) -> &Outline {
        if side == Side::Surface { &self.surface.outline } else { &self.body.outline }
    }

    fn outline_mut(&mut self, side: Side) -> &mut Outline {
        if side == Side::Surface { &mut self.surface.outline } else { &mut self.body.outline }
    }

    fn class_shape(&mut self, class: &RawClass, side: Side, groups: &[(u32, u32, u32)]) -> ClassShape {
        let raw = self.raw;
        let mut shape = ClassShape::default();
        for base in &class.bases {
            let base = self.convert(*base, side, 0);
            shape.bases.push(base);
        }
        let start = groups.partition_point(|group| group.0 < class.scope);
        for (_, name, latest) in groups[start..].iter().take_while(|group| group.0 == class.scope) {
            let text = raw.names[*name as usize];
            if text == "*" {
                continue;
            }
            shape.open |= matches!(text, "__getattr__" | "__getattribute__");
            if let Some(bound) = self.finally(class.scope, *latest) {
                let used = self.pack_use(bound, *name, side);
                let id = self.builder(side).name(*name);
                shape.members.push((id, used));
            }
        }
        let mut attributes = class.attributes.clone();
        attributes.sort_by_key(|(name, _, _)| raw.names[*name as usize]);
        for (name, annotation, value) in attributes {
            let annotation = self.convert(annotation, side, 0);
            let value = if annotation.is_none() { self.convert(value, side, 0) } else { None };
            let entry = AttributeEvidence { name: self.builder(side).name(name), annotation, value };
            let earlier = shape.attributes.iter().rev().take_while(|other| other.name == entry.name);
            let (mut count, mut known) = (0, false);
            for other in earlier {
                count += 1;
                known |= *other == entry;
            }
            let says_something = annotation.is_some() || value.is_some();
            if !known && (count == 0 || says_something && count < MAX_EVIDENCE) {
                shape.attributes.push(entry);
            }
        }
        shape
    }

    fn function_shape(&mut self, function: &RawFunction, side: Side) -> FunctionShape {
        let mut shape = FunctionShape {
            property: function.property,
            unbound: function.unbound,
            class_method: function.class_method,
            context_manager: function.context_manager,
            ..FunctionShape::default()
        };
        for declared in &function.returns {
            if let Some(handle) = self.convert(*declared, side, 0) {
                shape.returns.push(handle);
            }
        }
        if function.returns.is_empty() && !function.generator {
            for value in &function.returned {
                if shape.returned.len() < MAX_EVIDENCE
                    && (side == Side::Body || self.tells_type(*value))
                    && let Some(handle) = self.convert(*value, side, 0)
                    && !shape.returned.contains(&handle)
                {
                    shape.returned.push(handle);
                }
            }
        }
        shape
    }

    /// Returns whether a returned value tells the type by itself: the instance, its attribute, or a call of what is spelt as a class.
    /// Other returns stay in the body, so that editing them leaves the surface alone.
    fn tells_type(&self, value: u32) -> bool {
        let raw = self.raw;
        let is_own = |used: u32| match self.bound[used as usize] {
            Bound::One(binding) => {
                matches!(raw.bindings[binding as usize].role, RawRole::Instance(_) | RawRole::Type(_))
            }
            _ => false,
        };
        let capital = |name: u32| raw.names[name as usize].trim_start_matches('_').starts_with(char::is_uppercase);
        match raw.expressions[value as usize] {
            RawExpression::Name(used) => match self.bound[used as usize] {
                Bound::One(binding) if raw.bindings[binding as usize].role == RawRole::Variable => {
                    let value = raw.bindings[binding as usize].value;
                    value != NONE
                        && matches!(raw.expressions[value as usize], RawExpression::Call(_))
                        && !self.is_outer(&raw.bindings[binding as usize])
                        && self.tells_type(value)
                }
                _ => is_own(used),
            },
            RawExpression::Attribute(object, _) => {
                matches!(raw.expressions[object as usize], RawExpression::Name(used) if is_own(used))
            }
            RawExpression::Call(callee) => match raw.expressions[callee as usize] {
                RawExpression::Name(used) => is_own(used) || capital(raw.uses[used as usize].name),
                RawExpression::Attribute(_, name) => capital(name),
                _ => false,
            },
            _ => false,
        }
    }

    fn builder(&mut self, side: Side) -> &mut OutlineBuilder {
        if side == Side::Surface { &mut self.surface } else { &mut self.body }
    }

    fn finish_surface(&mut self, surface: &mut Surface) {
        let raw = self.raw;
        let mut names: Vec<(u32, u32)> = raw
            .groups
            .iter()
            .filter(|(key, _)| **key >> 32 == 0)
            .map(|(key, latest)| (*key as u32, *latest))
            .filter(|(name, _)| raw.names[*name as usize] != "*")
            .collect();
        names.sort_unstable_by_key(|(name, _)| raw.names[*name as usize]);
        for (name, latest) in names {
            if let Some(bound) = self.finally(0, latest) {
                let used = self.pack_use(bound, name, Side::Surface);
                let id = self.surface.name(name);
                surface.scope.push((id, used));
                surface.open |= raw.names[name as usize] == "__getattr__";
            }
        }
        for star in self.stars.iter().rev() {
            if let Some(binding) = self.surface_bindings[*star as usize] {
                let conditional = self.lifted(raw.bindings[*star as usize].arm) != 0;
                surface.stars.push(Reaching { binding, conditional });
            }
        }
        if let Some(steps) = &raw.public {
            let mut public = Vec::with_capacity(steps.len());
            for step in steps {
                public.push(match step {
                    RawPublic::Add(name) => PublicStep::Add(self.surface.name(*name)),
                    RawPublic::Remove(name) => PublicStep::Remove(self.surface.name(*name)),
                    RawPublic::Extend(module) => self.pack_in_surface(*module, 0).map_or(PublicStep::Unknown, PublicStep::Extend),
                    RawPublic::Unknown => PublicStep::Unknown,
                });
            }
            surface.public = Some(public);
        }
        for (object, name) in &raw.writes {
            if self.leads_outside(*object)
                && let Some(object) = self.pack_in_surface(*object, 0)
            {
                let write = (object, self.surface.name(*name));
                if !surface.writes.contains(&write) {
                    surface.writes.push(write);
                }
            }
        }
    }

    /// Returns whether an expression is a chain of attributes that begins at a name other files can see too.
    fn leads_outside(&self, mut expression: u32) -> bool {
        let outside = |binding: u32| {
            let binding = &self.raw.bindings[binding as usize];
            matches!(binding.role, RawRole::Import(_)) || self.is_outer(binding) && binding.role == RawRole::Class
        };
        loop {
            match self.raw.expressions[expression as usize] {
                RawExpression::Attribute(object, _) => expression = object,
                RawExpression::Name(used) => {
                    return match self.bound[used as usize] {
                        Bound::Free => false,
                        Bound::One(binding) => outside(binding),
                        Bound::Many(set) => self.sets[set as usize].iter().any(|(binding, _)| outside(*binding)),
                    };
                }
                _ => return false,
            }
        }
    }

    fn pack_references(&mut self, body: &mut Body) {
        let raw = self.raw;
        body.references.reserve_exact(raw.references.len());
        for reference in &raw.references {
            let subject = match reference.subject {
                RawSubject::Name(used) => {
                    let bound = self.bound[used as usize];
                    if self.is_local(bound) {
                        body.local_uses += 1;
                        continue;
                    }
                    Subject::Name(self.pack_use(bound, raw.uses[used as usize].name, Side::Body))
                }
                RawSubject::Member(object, name) => {
                    let object = self.pack_in_body(object);
                    Subject::Member { object, name: self.body.name(name) }
                }
                RawSubject::Module(import, name) => {
                    Subject::Module { import: self.import_handle(import), name: self.body.name(name) }
                }
                RawSubject::Imported(import) => Subject::Imported(self.import_handle(import)),
            };
            body.references.push(Reference {
                start: reference.start,
                kind: reference.kind,
                qualifier: reference.qualifier,
                source: reference.source,
                subject,
            });
        }
        body.references.sort_by_key(|reference| reference.start);
        body.references.shrink_to_fit();
    }

    fn import_handle(&mut self, import: u32) -> Handle {
        match self.surface_imports[import as usize] {
            Some(index) => Handle::of_surface(index as usize),
            None => Handle::of_body(self.import(import, Side::Body) as usize),
        }
    }

    /// Returns whether the use can only mean something without a definition of its own inside the file.
    fn is_local(&self, bound: Bound) -> bool {
        let local = |binding: u32| {
            let binding = &self.raw.bindings[binding as usize];
            binding.declaration == NONE && !matches!(binding.role, RawRole::Import(_) | RawRole::Star(_))
        };
        match bound {
            Bound::Free => false,
            Bound::One(binding) => local(binding),
            Bound::Many(set) => self.sets[set as usize].iter().all(|(binding, _)| local(*binding)),
        }
    }

    fn pack_use(&mut self, bound: Bound, name: u32, side: Side) -> Use {
        match bound {
            Bound::Free => Use::Free(handle_of(side, self.builder(side).name(name).0 as usize)),
            Bound::One(binding) => Use::One(self.pack_binding(binding, side)),
            Bound::Many(set) => {
                let known = if side == Side::Surface { &self.surface_sets } else { &self.body_sets };
                if let Some(handle) = known.get(&set) {
                    return Use::Many(*handle);
                }
                let reached = self.sets[set as usize].clone();
                let packed = reached
                    .iter()
                    .map(|(binding, conditional)| Reaching {
                        binding: self.pack_binding(*binding, side),
                        conditional: *conditional,
                    })
                    .collect();
                let outline = self.outline_mut(side);
                let handle = handle_of(side, outline.sets.len());
                outline.sets.push(packed);
                let known = if side == Side::Surface { &mut self.surface_sets } else { &mut self.body_sets };
                known.insert(set, handle);
                Use::Many(handle)
            }
        }
    }

    fn pack_binding(&mut self, binding: u32, side: Side) -> Handle {
        if let Some(handle) = self.surface_bindings[binding as usize]
            && (side == Side::Surface || self.is_outer(&self.raw.bindings[binding as usize]))
        {
            return handle;
        }
        if side == Side::Body
            && let Some(handle) = self.body_bindings[binding as usize]
        {
            return handle;
        }
        let raw = &self.raw.bindings[binding as usize];
        let role = self.role(raw.role, side);
        let declaration = self.declaration_of(raw);
        let builder = self.builder(side);
        let name = builder.name(raw.name);
        let handle = handle_of(side, builder.outline.bindings.len());
        builder.outline.bindings.push(Binding { name, role, declaration, annotation: None, value: None });
        if side == Side::Surface {
            self.surface_bindings[binding as usize] = Some(handle);
        } else {
            self.body_bindings[binding as usize] = Some(handle);
            self.pending.push(binding);
        }
        handle
    }

    fn pack_evidence(&mut self, binding: u32) {
        let raw = &self.raw.bindings[binding as usize];
        let Some(handle) = self.body_bindings[binding as usize] else { return };
        let annotation = self.pack_in_body(raw.annotation);
        let value = if annotation.is_none() { self.pack_in_body(raw.value) } else { None };
        let packed = &mut self.body.outline.bindings[handle.index()];
        packed.annotation = annotation;
        packed.value = value;
    }

    fn convert(&mut self, expression: u32, side: Side, inlined: u32) -> Option<Handle> {
        if side == Side::Surface { self.pack_in_surface(expression, inlined) } else { self.pack_in_body(expression) }
    }

    fn pack_in_body(&mut self, expression: u32) -> Option<Handle> {
        if expression == NONE {
            return None;
        }
        if let Some(known) = self.body_expressions[expression as usize] {
            return known;
        }
        let packed = match self.raw.expressions[expression as usize] {
            RawExpression::Name(used) => {
                Some(Expression::Name(self.pack_use(self.bound[used as usize], self.raw.uses[used as usize].name, Side::Body)))
            }
            other => self.pack_compound(other, Side::Body, 0),
        };
        let handle = packed.map(|packed| {
            self.body.outline.expressions.push(packed);
            Handle::of_body(self.body.outline.expressions.len() - 1)
        });
        self.body_expressions[expression as usize] = Some(handle);
        handle
    }

    /// Packs an expression so that other files can read it: locals are replaced by what is known of them.
    fn pack_in_surface(&mut self, expression: u32, inlined: u32) -> Option<Handle> {
        if expression == NONE || inlined > MAX_INLINE {
            return None;
        }
        if let Some(known) = self.surface_expressions[expression as usize] {
            return known;
        }
        // A local that is assigned from itself ends here instead of going round.
        self.surface_expressions[expression as usize] = Some(None);
        let packed = match self.raw.expressions[expression as usize] {
            RawExpression::Name(used) => {
                let bound = self.bound[used as usize];
                let name = self.raw.uses[used as usize].name;
                match bound {
                    Bound::Free => Some(Expression::Name(self.pack_use(bound, name, Side::Surface))),
                    Bound::One(binding) => match self.inline(binding, inlined) {
                        Inlined::Itself => Some(Expression::Name(self.pack_use(bound, name, Side::Surface))),
                        Inlined::Evidence(handle) => {
                            self.surface_expressions[expression as usize] = Some(Some(handle));
                            return Some(handle);
                        }
                        Inlined::Nothing => None,
                    },
                    Bound::Many(set) => {
                        let outer = self.sets[set as usize]
                            .iter()
                            .all(|(binding, _)| self.is_outer(&self.raw.bindings[*binding as usize]));
                        if outer {
                            Some(Expression::Name(self.pack_use(bound, name, Side::Surface)))
                        } else {
                            let reached = self.sets[set as usize].clone();
                            let mut all: Option<Handle> = None;
                            for (binding, _) in reached {
                                let one = match self.inline(binding, inlined) {
                                    Inlined::Itself => {
                                        let used = Use::One(self.pack_binding(binding, Side::Surface));
                                        Some(self.push_surface(Expression::Name(used)))
                                    }
                                    Inlined::Evidence(handle) => Some(handle),
                                    Inlined::Nothing => None,
                                };
                                all = match (all, one) {
                                    (Some(left), Some(right)) => Some(self.push_surface(Expression::Either(left, right))),
                                    (left, right) => left.or(right),
                                };
                            }
                            self.surface_expressions[expression as usize] = Some(all);
                            return all;
                        }
                    }
                }
            }
            other => self.pack_compound(other, Side::Surface, inlined),
        };
        let handle = packed.map(|packed| self.push_surface(packed));
        self.surface_expressions[expression as usize] = Some(handle);
        handle
    }

    fn push_surface(&mut self, expression: Expression) -> Handle {
        self.surface.outline.expressions.push(expression);
        Handle::of_surface(self.surface.outline.expressions.len() - 1)
    }

    fn inline(&mut self, binding: u32, inlined: u32) -> Inlined {
        let raw = &self.raw.bindings[binding as usize];
        if self.is_outer(raw) {
            return Inlined::Itself;
        }
        match raw.role {
            RawRole::Import(_) => Inlined::Itself,
            RawRole::Instance(class) | RawRole::Type(class)
                if self.class_handle(class).is_some_and(|handle| !handle.in_body()) =>
            {
                Inlined::Itself
            }
            RawRole::Class | RawRole::Function => Inlined::Nothing,
            _ if raw.annotation != NONE => match self.pack_in_surface(raw.annotation, inlined + 1) {
                Some(annotation) => Inlined::Evidence(self.push_surface(Expression::Instance(annotation))),
                None => Inlined::Nothing,
            },
            _ => self.pack_in_surface(raw.value, inlined + 1).map_or(Inlined::Nothing, Inlined::Evidence),
        }
    }

    fn pack_compound(&mut self, expression: RawExpression, side: Side, inlined: u32) -> Option<Expression> {
        Some(match expression {
            RawExpression::Name(_) => return None,
            RawExpression::Attribute(object, name) => {
                let object = self.convert(object, side, inlined)?;
                Expression::Attribute { object, name: self.builder(side).name(name) }
            }
            RawExpression::Call(callee) => Expression::Call { callee: self.convert(callee, side, inlined)? },
            RawExpression::Subscript(object, argument) => {
                let object = self.convert(object, side, inlined)?;
                Expression::Subscript { object, argument: self.convert(argument, side, inlined) }
            }
            RawExpression::Either(left, right) => match (self.convert(left, side, inlined), self.convert(right, side, inlined)) {
                (Some(left), Some(right)) => Expression::Either(left, right),
                (None, None) => return None,
                (Some(one), None) | (None, Some(one)) => Expression::Either(one, one),
            },
            RawExpression::List(first, rest) => {
                let first = match self.convert(first, side, inlined) {
                    Some(first) => first,
                    // Its place counts even when nothing is known of it.
                    None => {
                        let outline = self.outline_mut(side);
                        outline.expressions.push(Expression::Literal);
                        handle_of(side, outline.expressions.len() - 1)
                    }
                };
                Expression::List(first, self.convert(rest, side, inlined))
            }
            RawExpression::Element(inner) => Expression::Element(self.convert(inner, side, inlined)?),
            RawExpression::Entered(inner) => Expression::Entered(self.convert(inner, side, inlined)?),
            RawExpression::Await(inner) => Expression::Await(self.convert(inner, side, inlined)?),
            RawExpression::Instance(inner) => Expression::Instance(self.convert(inner, side, inlined)?),
            RawExpression::Super(class) => {
                let class = self.class_handle(class)?;
                if side == Side::Surface && class.in_body() {
                    return None;
                }
                Expression::Super(class)
            }
            RawExpression::Literal => Expression::Literal,
        })
    }
}

enum Inlined {
    Itself,
    Evidence(Handle),
    Nothing,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Relation {
    Always,
    Sometimes,
    Never,
}

fn handle_of(side: Side, index: usize) -> Handle {
    if side == Side::Surface { Handle::of_surface(index) } else { Handle::of_body(index) }
}
