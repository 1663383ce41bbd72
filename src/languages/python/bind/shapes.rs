//! The shapes of classes and functions: bases, members, results, and the evidence for them.
//!
//! Must not know other files' classes. Invariant: an attribute and a function keep at most [`MAX_EVIDENCE`] kinds of evidence.

use super::binder::{Binder, Bound};
use crate::languages::outline::Side;
use crate::languages::python::library;
use crate::languages::python::raw::{NONE, RawClass, RawExpression, RawFunction, RawRole, RawShape, ScopeKind};
use crate::model::facts::{AttributeEvidence, ClassShape, Expression, FunctionShape, Handle, Shape};

/// How many kinds of evidence one attribute keeps.
pub(super) const MAX_EVIDENCE: usize = 4;

impl Binder<'_, '_> {
    pub(super) fn shape_all(&mut self) {
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

    fn class_shape(&mut self, class: &RawClass, side: Side, groups: &[(u32, u32, u32)]) -> ClassShape {
        let raw = self.raw;
        let mut shape = ClassShape::default();
        for base in &class.bases {
            let base = self.convert(*base, side, 0);
            shape.bases.push(base);
        }
        for parameter in &class.parameters {
            let handle = self.pack_binding(*parameter, side);
            shape.parameters.push(handle);
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
        if function.returns.is_empty() {
            let given = if function.generator { &function.yielded } else { &function.returned };
            for value in given {
                if shape.returned.len() < MAX_EVIDENCE
                    && (side == Side::Body || function.fixture || self.tells_type(*value))
                    && let Some(mut handle) = self.convert(*value, side, 0)
                {
                    if function.generator {
                        let outline = self.outline_mut(side);
                        outline.expressions.push(Expression::Sequence(handle));
                        handle = side.handle(outline.expressions.len() - 1);
                    }
                    if !shape.returned.contains(&handle) {
                        shape.returned.push(handle);
                    }
                }
            }
        } else {
            shape.parameters = self.parameters_that_tell(function, side);
        }
        shape
    }

    /// Returns the declared types of the parameters that the declared result has a name in common with: what they are given may tell
    /// what it is.
    fn parameters_that_tell(&mut self, function: &RawFunction, side: Side) -> Vec<Option<Handle>> {
        let mut names = Vec::new();
        for declared in &function.returns {
            self.names_in(*declared, &mut names);
        }
        let mut parameters = Vec::new();
        let mut length = 0;
        for annotation in &function.parameters {
            let mut own = Vec::new();
            self.names_in(*annotation, &mut own);
            let tells = own.iter().any(|name| names.contains(name));
            let handle = if tells { self.convert(*annotation, side, 0) } else { None };
            parameters.push(handle);
            if handle.is_some() {
                length = parameters.len();
            }
        }
        parameters.truncate(length);
        parameters
    }

    /// Adds the bare names of a type, but for those that the language itself gives.
    fn names_in(&self, expression: u32, names: &mut Vec<u32>) {
        if expression == NONE {
            return;
        }
        match self.raw.expressions[expression as usize] {
            RawExpression::Name(used) => {
                let name = self.raw.uses[used as usize].name;
                if !library::is_type(self.raw.names[name as usize]) {
                    names.push(name);
                }
            }
            RawExpression::Subscript(left, right) | RawExpression::Either(left, right) | RawExpression::List(left, right) => {
                self.names_in(left, names);
                self.names_in(right, names);
            }
            _ => {}
        }
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
                        && matches!(raw.expressions[value as usize], RawExpression::Call(_) | RawExpression::Invocation(..))
                        && !self.is_outer(&raw.bindings[binding as usize])
                        && self.tells_type(value)
                }
                _ => is_own(used),
            },
            RawExpression::Attribute(object, _) => {
                matches!(raw.expressions[object as usize], RawExpression::Name(used) if is_own(used))
            }
            RawExpression::Call(callee) | RawExpression::Invocation(callee, _) => match raw.expressions[callee as usize] {
                RawExpression::Name(used) => is_own(used) || capital(raw.uses[used as usize].name),
                RawExpression::Attribute(object, name) => {
                    capital(name) || raw.names[name as usize] == "__class__" && self.tells_type(object)
                }
                // `type(self)(…)`
                RawExpression::Invocation(callee, arguments) => match raw.expressions[arguments as usize] {
                    RawExpression::List(first, _) => self.passes_on(callee) && self.tells_type(first),
                    _ => false,
                },
                _ => false,
            },
            _ => false,
        }
    }
}
