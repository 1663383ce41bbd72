//! Packs what the walk found and scoping bound into surface and body.
//!
//! Must not know other files. Invariant: nothing of the surface depends on where something stands, only on what is bound to what.

use std::collections::HashMap;

use super::raw::*;
use super::scoping::{Bindings, Bound};
use crate::languages::outline::Side;
use crate::model::facts::{
    Binding, Body, ClassShape, Declaration, Expression, FunctionShape, Handle, Import, NameId, Names, Outline, PublicStep,
    Reaching, Reference, Role, Shape, Subject, Surface, TypeForm, TypeShape, Use,
};
use crate::model::{Definition, SymbolKind};

/// How many steps of inlining lead from what other files can see to what they cannot.
const MAX_INLINE: u32 = 6;

/// How many results are kept as evidence for one function.
const MAX_EVIDENCE: usize = 4;

/// One outline in the making.
#[derive(Default)]
struct OutlineBuilder {
    names: Vec<u32>,
    name_ids: Vec<u32>,
    outline: Outline,
    bindings: HashMap<u32, Handle>,
    declarations: HashMap<u32, Handle>,
    classes: HashMap<u32, u32>,
    functions: HashMap<u32, u32>,
    imports: HashMap<u32, u32>,
    expressions: HashMap<u32, Option<Handle>>,
    sets: HashMap<u32, Handle>,
    /// What is named already but not yet packed.
    pending: Vec<Pending>,
}

enum Pending {
    Binding(u32),
    Class(u32),
    Function(u32),
}

impl OutlineBuilder {
    fn new(raw: &Raw<'_>) -> Self {
        Self { name_ids: vec![NONE; raw.names.len()], ..Self::default() }
    }

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
        self.outline
    }
}

pub(super) struct Binder<'r, 's> {
    raw: &'r Raw<'s>,
    definitions: &'r [Definition],
    bound: Bindings,
    surface: OutlineBuilder,
    body: OutlineBuilder,
    inlined: u32,
}

impl<'r, 's> Binder<'r, 's> {
    pub(super) fn new(raw: &'r Raw<'s>, definitions: &'r [Definition], bound: Bindings) -> Self {
        Self { raw, definitions, bound, surface: OutlineBuilder::new(raw), body: OutlineBuilder::new(raw), inlined: 0 }
    }

    pub(super) fn run(mut self, line_starts: Vec<u32>) -> (Surface, Body) {
        let raw = self.raw;
        let mut surface = Surface::default();
        for (index, binding) in raw.bindings.iter().enumerate() {
            if binding.outer && !matches!(binding.role, RawRole::Star(_)) && self.is_named(index as u32) {
                self.binding(index as u32, Side::Surface);
            }
        }
        surface.stars = raw
            .stars
            .iter()
            .filter(|star| raw.bindings[**star as usize].outer)
            .map(|star| Reaching { binding: self.binding(*star, Side::Surface), conditional: false })
            .collect();
        surface.scope = self.exports();
        self.settle(Side::Surface);
        for (object, name) in &raw.writes {
            if self.leads_outside(*object)
                && let Some(object) = self.expression(*object, Side::Surface)
            {
                let write = (object, self.surface.name(*name));
                if !surface.writes.contains(&write) {
                    surface.writes.push(write);
                }
            }
        }
        self.settle(Side::Surface);
        surface.open = raw.is_commonjs;
        // A script's names are everybody's.
        surface.public = (!raw.is_module && !raw.is_commonjs && raw.imports.is_empty()).then(Vec::<PublicStep>::new);
        let mut body = Body { line_starts, ..Body::default() };
        self.references(&mut body);
        self.settle(Side::Body);
        let Self { surface: surface_builder, body: body_builder, .. } = self;
        surface.outline = surface_builder.finish(raw);
        body.outline = body_builder.finish(raw);
        (surface, body)
    }

    /// Returns whether a binding belongs to a scope or namespace, and not only to a shape.
    fn is_named(&self, binding: u32) -> bool {
        let bound = &self.raw.bindings[binding as usize];
        bound.declaration != NONE || matches!(bound.role, RawRole::Import(_) | RawRole::Alias) || {
            let mut next = self.raw.groups.get(&group_key(0, bound.name)).copied().unwrap_or(NONE);
            while next != NONE && next != binding {
                next = self.raw.bindings[next as usize].previous;
            }
            next == binding
        }
    }

    /// Packs what was named and not yet packed, until nothing is left.
    fn settle(&mut self, side: Side) {
        while let Some(pending) = self.builder(side).pending.pop() {
            match pending {
                Pending::Binding(binding) => self.evidence(binding, side),
                Pending::Class(class) => self.class_shape(class, side),
                Pending::Function(function) => self.function_shape(function, side),
            }
        }
    }

    fn builder(&mut self, side: Side) -> &mut OutlineBuilder {
        if side == Side::Surface { &mut self.surface } else { &mut self.body }
    }

    // ---- exports and references

    fn exports(&mut self) -> Vec<(NameId, Use)> {
        let raw = self.raw;
        let mut by_name: Vec<(u32, Vec<u32>)> = Vec::new();
        let mut positions: HashMap<u32, usize> = HashMap::new();
        for (name, export) in &raw.exports {
            let found: Vec<u32> = match export {
                RawExport::Binding(binding) => vec![*binding],
                RawExport::Use(used) => match self.bound.uses[*used as usize] {
                    Bound::One(binding) => vec![binding],
                    Bound::Many(set) => self.bound.sets[set as usize].clone(),
                    Bound::Free => continue,
                },
            };
            let position = *positions.entry(*name).or_insert_with(|| {
                by_name.push((*name, Vec::new()));
                by_name.len() - 1
            });
            for binding in found {
                if !by_name[position].1.contains(&binding) {
                    by_name[position].1.push(binding);
                }
            }
        }
        by_name.sort_by_key(|(name, _)| raw.names[*name as usize]);
        let mut exports = Vec::with_capacity(by_name.len());
        for (name, found) in by_name {
            let used = self.pack_all(&found, Side::Surface);
            exports.push((self.surface.name(name), used));
        }
        exports
    }

    /// Packs the bindings that one name has; those that exclude each other are conditional.
    fn pack_all(&mut self, found: &[u32], side: Side) -> Use {
        let raw = self.raw;
        let values = found.iter().filter(|binding| {
            let bound = &raw.bindings[**binding as usize];
            bound.meanings & VALUE != 0 && self.kind_of(**binding) != Some(SymbolKind::Namespace)
        });
        let rivals = values.count() > 1;
        if let [only] = found
            && !raw.bindings[*only as usize].written
        {
            return Use::One(self.binding(*only, side));
        }
        let packed = found
            .iter()
            .map(|binding| {
                let bound = &raw.bindings[*binding as usize];
                let conditional = bound.written || rivals && bound.meanings & VALUE != 0;
                Reaching { binding: self.binding(*binding, side), conditional }
            })
            .collect();
        let outline = &mut self.builder(side).outline;
        outline.sets.push(packed);
        Use::Many(side.handle(outline.sets.len() - 1))
    }

    fn kind_of(&self, binding: u32) -> Option<SymbolKind> {
        let declaration = self.raw.bindings[binding as usize].declaration;
        let declaration = self.raw.declarations.get(declaration as usize)?;
        self.definitions.get(declaration.definition as usize).map(|definition| definition.kind)
    }

    /// Returns whether an expression is a chain of members that begins at a name other files can see too.
    fn leads_outside(&self, mut expression: u32) -> bool {
        loop {
            match self.raw.expressions[expression as usize] {
                RawExpression::Attribute(object, _) => expression = object,
                RawExpression::Binding(_) => return true,
                RawExpression::Name(used) => {
                    let Bound::One(binding) = self.bound.uses[used as usize] else { return false };
                    let binding = &self.raw.bindings[binding as usize];
                    return matches!(binding.role, RawRole::Import(_)) || binding.outer;
                }
                _ => return false,
            }
        }
    }

    fn references(&mut self, body: &mut Body) {
        let raw = self.raw;
        body.references.reserve_exact(raw.references.len());
        for reference in &raw.references {
            let subject = match reference.subject {
                RawSubject::Name(used) | RawSubject::Type(used) => {
                    let bound = self.bound.uses[used as usize];
                    if self.is_local(bound) {
                        body.local_uses += 1;
                        continue;
                    }
                    let packed = self.pack_use(bound, raw.uses[used as usize].name, Side::Body);
                    if matches!(reference.subject, RawSubject::Type(_)) { Subject::Type(packed) } else { Subject::Name(packed) }
                }
                RawSubject::Member(object, name) => {
                    Subject::Member { object: self.expression(object, Side::Body), name: self.body.name(name) }
                }
                RawSubject::TypeMember(object, name) => {
                    Subject::TypeMember { object: self.expression(object, Side::Body), name: self.body.name(name) }
                }
                RawSubject::Module(import, name) => {
                    Subject::Module { import: self.import(import, Side::Body), name: self.body.name(name) }
                }
                RawSubject::Imported(import) => Subject::Imported(self.import(import, Side::Body)),
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

    /// Returns whether a use can only mean something without a definition of its own inside the file.
    fn is_local(&self, bound: Bound) -> bool {
        let local = |binding: u32| {
            let binding = &self.raw.bindings[binding as usize];
            binding.declaration == NONE && !matches!(binding.role, RawRole::Import(_) | RawRole::Star(_) | RawRole::Alias)
        };
        match bound {
            Bound::Free => false,
            Bound::One(binding) => local(binding),
            Bound::Many(set) => self.bound.sets[set as usize].iter().all(|binding| local(*binding)),
        }
    }

    // ---- tables

    fn import(&mut self, import: u32, side: Side) -> Handle {
        if let Some(index) = self.surface.imports.get(&import) {
            return Handle::of_surface(*index as usize);
        }
        if side == Side::Body
            && let Some(index) = self.body.imports.get(&import)
        {
            return Handle::of_body(*index as usize);
        }
        let raw = self.raw.imports[import as usize];
        let builder = self.builder(side);
        let module = builder.name(raw.module);
        let name = (raw.name != NONE).then(|| builder.name(raw.name));
        builder.outline.imports.push(Import { module, name, root_only: false });
        let index = builder.outline.imports.len() - 1;
        builder.imports.insert(import, index as u32);
        side.handle(index)
    }

    fn pack_use(&mut self, bound: Bound, name: u32, side: Side) -> Use {
        match bound {
            Bound::Free => Use::Free(side.handle(self.builder(side).name(name).0 as usize)),
            Bound::One(binding) if !self.raw.bindings[binding as usize].written => Use::One(self.binding(binding, side)),
            Bound::One(binding) => self.pack_all(&[binding], side),
            Bound::Many(set) => {
                if let Some(handle) = self.builder(side).sets.get(&set) {
                    return Use::Many(*handle);
                }
                let found = self.bound.sets[set as usize].clone();
                let used = self.pack_all(&found, side);
                if let Use::Many(handle) = used {
                    self.builder(side).sets.insert(set, handle);
                }
                used
            }
        }
    }

    fn binding(&mut self, binding: u32, side: Side) -> Handle {
        if let Some(handle) = self.surface.bindings.get(&binding) {
            return *handle;
        }
        if side == Side::Body
            && let Some(handle) = self.body.bindings.get(&binding)
        {
            return *handle;
        }
        let raw = self.raw.bindings[binding as usize];
        let declaration = (raw.declaration != NONE).then(|| self.declaration(raw.declaration, side));
        let role = match raw.role {
            RawRole::Function => Role::Function,
            RawRole::Class => Role::Class,
            RawRole::Variable | RawRole::Alias => Role::Variable,
            RawRole::Parameter => Role::Parameter,
            RawRole::TypeParameter => Role::TypeParameter,
            RawRole::Import(import) => Role::Import(self.own_import(import, side)),
            RawRole::Star(import) => Role::Star(self.own_import(import, side)),
        };
        let builder = self.builder(side);
        let name = builder.name(raw.name);
        let handle = side.handle(builder.outline.bindings.len());
        builder.outline.bindings.push(Binding { name, role, declaration, annotation: None, value: None });
        builder.bindings.insert(binding, handle);
        builder.pending.push(Pending::Binding(binding));
        handle
    }

    /// Returns the index of an import in the outline of `side` itself.
    fn own_import(&mut self, import: u32, side: Side) -> u32 {
        if let Some(index) = self.builder(side).imports.get(&import) {
            return *index;
        }
        let raw = self.raw.imports[import as usize];
        let builder = self.builder(side);
        let module = builder.name(raw.module);
        let name = (raw.name != NONE).then(|| builder.name(raw.name));
        builder.outline.imports.push(Import { module, name, root_only: false });
        let index = builder.outline.imports.len() as u32 - 1;
        builder.imports.insert(import, index);
        index
    }

    fn evidence(&mut self, binding: u32, side: Side) {
        let raw = self.raw.bindings[binding as usize];
        let Some(handle) = self.builder(side).bindings.get(&binding).copied() else { return };
        let annotation = self.expression(raw.annotation, side);
        let keeps_value = annotation.is_none() || matches!(raw.role, RawRole::TypeParameter | RawRole::Alias);
        let value = if keeps_value { self.expression(raw.value, side) } else { None };
        let packed = &mut self.builder(side).outline.bindings[handle.index()];
        packed.annotation = annotation;
        packed.value = value;
    }

    fn declaration(&mut self, declaration: u32, side: Side) -> Handle {
        if let Some(handle) = self.surface.declarations.get(&declaration) {
            return *handle;
        }
        if side == Side::Body
            && let Some(handle) = self.body.declarations.get(&declaration)
        {
            return *handle;
        }
        let raw = &self.raw.declarations[declaration as usize];
        let shape = match raw.shape {
            RawShape::Class(class) => Shape::Class(self.own_class(class, side)),
            RawShape::Function(function) => Shape::Function(self.own_function(function, side)),
            RawShape::Alias(class) => {
                let parameters: Vec<u32> = self.raw.classes[class as usize].parameters.clone();
                let parameters = parameters.iter().map(|parameter| self.binding(*parameter, side)).collect();
                let types = &mut self.builder(side).outline.types;
                types.push(TypeShape { form: TypeForm::Struct, parameters, ..TypeShape::default() });
                Shape::Type(types.len() as u32 - 1)
            }
            RawShape::Value => Shape::Value,
        };
        let definition = &self.definitions[raw.definition as usize];
        let builder = self.builder(side);
        let handle = side.handle(builder.outline.declarations.len());
        builder.outline.declarations.push(Declaration { key: definition.key.clone(), kind: definition.kind, shape });
        builder.declarations.insert(declaration, handle);
        handle
    }

    fn class(&mut self, class: u32, side: Side) -> Handle {
        match self.surface.classes.get(&class) {
            Some(index) => Handle::of_surface(*index as usize),
            None => side.handle(self.own_class(class, side) as usize),
        }
    }

    fn own_class(&mut self, class: u32, side: Side) -> u32 {
        let builder = self.builder(side);
        if let Some(index) = builder.classes.get(&class) {
            return *index;
        }
        builder.outline.classes.push(ClassShape::default());
        let index = builder.outline.classes.len() as u32 - 1;
        builder.classes.insert(class, index);
        builder.pending.push(Pending::Class(class));
        index
    }

    fn function(&mut self, function: u32, side: Side) -> Handle {
        match self.surface.functions.get(&function) {
            Some(index) => Handle::of_surface(*index as usize),
            None => side.handle(self.own_function(function, side) as usize),
        }
    }

    fn own_function(&mut self, function: u32, side: Side) -> u32 {
        let builder = self.builder(side);
        if let Some(index) = builder.functions.get(&function) {
            return *index;
        }
        builder.outline.functions.push(FunctionShape::default());
        let index = builder.outline.functions.len() as u32 - 1;
        builder.functions.insert(function, index);
        builder.pending.push(Pending::Function(function));
        index
    }

    fn class_shape(&mut self, class: u32, side: Side) {
        let raw = self.raw;
        let Some(index) = self.builder(side).classes.get(&class).copied() else { return };
        let class = &raw.classes[class as usize];
        let mut shape = ClassShape { open: class.open, ..ClassShape::default() };
        for base in &class.bases {
            let base = self.expression(*base, side);
            shape.bases.push(base);
        }
        shape.members = self.members(&class.members, side);
        shape.statics = self.members(&class.statics, side);
        shape.parameters = class.parameters.iter().map(|parameter| self.binding(*parameter, side)).collect();
        shape.calls = class.calls.iter().map(|function| self.own_function(*function, side)).collect();
        shape.constructs = class.constructs.iter().map(|function| self.own_function(*function, side)).collect();
        shape.elements = class.elements.and_then(|elements| self.expression(elements, side));
        for spread in &class.spreads {
            match self.expression(*spread, side) {
                Some(spread) => shape.spreads.push(spread),
                None => shape.open = true,
            }
        }
        self.builder(side).outline.classes[index as usize] = shape;
    }

    fn members(&mut self, members: &[(u32, u32)], side: Side) -> Vec<(NameId, Use)> {
        let raw = self.raw;
        let mut sorted = members.to_vec();
        // Stable: the last of a name is the one that stays.
        sorted.sort_by_key(|(name, _)| raw.names[*name as usize]);
        let mut packed = Vec::with_capacity(sorted.len());
        for group in sorted.chunk_by(|left, right| left.0 == right.0) {
            let mut bindings: Vec<u32> = Vec::new();
            for (_, binding) in group {
                if !bindings.contains(binding) {
                    bindings.push(*binding);
                }
            }
            let used = self.pack_all(&bindings, side);
            packed.push((self.builder(side).name(group[0].0), used));
        }
        packed
    }

    fn function_shape(&mut self, function: u32, side: Side) {
        let raw = self.raw;
        let Some(index) = self.builder(side).functions.get(&function).copied() else { return };
        let function = &raw.functions[function as usize];
        let mut shape = FunctionShape { property: function.property, ..FunctionShape::default() };
        shape.type_parameters = function.type_parameters.iter().map(|parameter| self.binding(*parameter, side)).collect();
        shape.parameters = function.parameters.iter().map(|parameter| self.expression(*parameter, side)).collect();
        for declared in &function.returns {
            if let Some(handle) = self.expression(*declared, side) {
                shape.returns.push(handle);
            }
        }
        if function.returns.is_empty() && !function.generator {
            for value in &function.returned {
                if shape.returned.len() < MAX_EVIDENCE
                    && let Some(handle) = self.expression(*value, side)
                    && !shape.returned.contains(&handle)
                {
                    shape.returned.push(handle);
                }
            }
            if function.is_async {
                for value in &mut shape.returned {
                    let builder = self.builder(side);
                    builder.outline.expressions.push(Expression::Promise(*value));
                    *value = side.handle(builder.outline.expressions.len() - 1);
                }
            }
        }
        shape.shape = (function.shape != NONE).then(|| self.own_class(function.shape, side));
        self.builder(side).outline.functions[index as usize] = shape;
    }

    // ---- evidence

    fn expression(&mut self, expression: u32, side: Side) -> Option<Handle> {
        if expression == NONE {
            return None;
        }
        if let Some(known) = self.builder(side).expressions.get(&expression) {
            return *known;
        }
        // A local that is assigned from itself ends here instead of going round.
        self.builder(side).expressions.insert(expression, None);
        let handle = self.pack_expression(expression, side);
        self.builder(side).expressions.insert(expression, handle);
        handle
    }

    fn pack_expression(&mut self, expression: u32, side: Side) -> Option<Handle> {
        let raw = self.raw;
        let packed = match raw.expressions[expression as usize] {
            RawExpression::Name(used) => {
                let bound = self.bound.uses[used as usize];
                if side == Side::Surface
                    && let Bound::One(binding) = bound
                    && self.is_hidden(binding)
                {
                    return self.inline(binding);
                }
                Expression::Name(self.pack_use(bound, raw.uses[used as usize].name, side))
            }
            RawExpression::Binding(binding) => Expression::Name(Use::One(self.binding(binding, side))),
            RawExpression::Attribute(object, name) => {
                let object = self.expression(object, side)?;
                Expression::Attribute { object, name: self.builder(side).name(name) }
            }
            RawExpression::Call(callee, arguments) => {
                let callee = self.expression(callee, side)?;
                match self.expression(arguments, side) {
                    Some(arguments) => Expression::Invocation { callee, arguments: Some(arguments) },
                    None => Expression::Call { callee },
                }
            }
            RawExpression::New(callee, arguments) => {
                let callee = self.expression(callee, side)?;
                Expression::New { callee, arguments: self.expression(arguments, side) }
            }
            RawExpression::Subscript(object, argument) => {
                let object = self.expression(object, side)?;
                Expression::Subscript { object, argument: self.expression(argument, side) }
            }
            RawExpression::Either(left, right) => match (self.expression(left, side), self.expression(right, side)) {
                (Some(left), Some(right)) => Expression::Either(left, right),
                (None, None) => return None,
                (Some(one), None) | (None, Some(one)) => return Some(one),
            },
            RawExpression::List(first, rest) => {
                let first = match self.expression(first, side) {
                    Some(first) => first,
                    // Its place counts even when nothing is known of it.
                    None => self.push(Expression::Unknown, side),
                };
                Expression::List(first, self.expression(rest, side))
            }
            RawExpression::Element(inner) => Expression::Element(self.expression(inner, side)?),
            RawExpression::Part(inner, part) => Expression::Part(self.expression(inner, side)?, part),
            RawExpression::Await(inner) => Expression::Await(self.expression(inner, side)?),
            RawExpression::Promise(inner) => Expression::Promise(self.expression(inner, side)?),
            RawExpression::Expected(callee, argument) => {
                Expression::Expected { callee: self.expression(callee, side)?, argument }
            }
            RawExpression::Parameter(function, number) => Expression::Parameter(self.expression(function, side)?, number),
            RawExpression::Instance(inner) => Expression::Instance(self.expression(inner, side)?),
            RawExpression::TypeOf(inner) => Expression::TypeOf(self.expression(inner, side)?),
            RawExpression::Property(object, name) => {
                let object = self.expression(object, side)?;
                Expression::Property { object, name: self.builder(side).name(name) }
            }
            RawExpression::Sequence(inner) => {
                let inner = self.expression(inner, side);
                let inner = inner.unwrap_or_else(|| self.push(Expression::Unknown, side));
                Expression::Sequence(inner)
            }
            RawExpression::Object(class) => Expression::Object(self.class(class, side)),
            RawExpression::Structure(class) => Expression::Structure(self.class(class, side)),
            RawExpression::Function(function) => Expression::Function(self.function(function, side)),
            RawExpression::This(class, statics) => Expression::This { class: self.class(class, side), statics },
            RawExpression::Above(class, statics) => Expression::Above { class: self.class(class, side), statics },
            RawExpression::Literal => Expression::Literal,
        };
        Some(self.push(packed, side))
    }

    fn push(&mut self, expression: Expression, side: Side) -> Handle {
        let expressions = &mut self.builder(side).outline.expressions;
        expressions.push(expression);
        side.handle(expressions.len() - 1)
    }

    /// Returns whether other files cannot see a binding: what it holds must stand in its place.
    fn is_hidden(&self, binding: u32) -> bool {
        let binding = &self.raw.bindings[binding as usize];
        !binding.outer && matches!(binding.role, RawRole::Variable | RawRole::Parameter)
    }

    fn inline(&mut self, binding: u32) -> Option<Handle> {
        if self.inlined >= MAX_INLINE {
            return None;
        }
        self.inlined += 1;
        let raw = self.raw.bindings[binding as usize];
        let handle = match self.expression(raw.annotation, Side::Surface) {
            Some(annotation) => Some(self.push(Expression::Instance(annotation), Side::Surface)),
            None => self.expression(raw.value, Side::Surface),
        };
        self.inlined -= 1;
        handle
    }
}
