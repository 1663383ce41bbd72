//! Expressions, uses and bindings as they stand in an outline.
//!
//! Must not know what they hold. Invariant: the surface refers to nothing of the body; what it needs from there is inlined, at most
//! [`MAX_INLINE`] steps deep.

use super::binder::{Binder, Bound};
use crate::languages::outline::Side;
use crate::languages::python::library;
use crate::languages::python::raw::{NONE, RawExpression, RawRole};
use crate::model::facts::{Binding, Expression, Handle, Reaching, Use};

/// How many steps of inlining lead from an attribute's evidence to what other files can see.
pub(super) const MAX_INLINE: u32 = 6;

pub(super) enum Inlined {
    Itself,
    Evidence(Handle),
    Nothing,
}

impl Binder<'_, '_> {
    pub(super) fn convert(&mut self, expression: u32, side: Side, inlined: u32) -> Option<Handle> {
        if side == Side::Surface { self.pack_in_surface(expression, inlined) } else { self.pack_in_body(expression) }
    }

    pub(super) fn pack_in_body(&mut self, expression: u32) -> Option<Handle> {
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
    pub(super) fn pack_in_surface(&mut self, expression: u32, inlined: u32) -> Option<Handle> {
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
            RawRole::Import(_) | RawRole::TypeParameter => Inlined::Itself,
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
            RawExpression::Invocation(callee, arguments) => {
                let known = self.convert(callee, side, inlined)?;
                // What is given to a function of the repository is none of other files' business.
                let arguments =
                    if side == Side::Body || self.passes_on(callee) { self.convert(arguments, side, inlined) } else { None };
                match arguments {
                    Some(arguments) => Expression::Invocation { callee: known, arguments: Some(arguments) },
                    None => Expression::Call { callee: known },
                }
            }
            RawExpression::Sequence(inner) => Expression::Sequence(self.convert(inner, side, inlined)?),
            RawExpression::Mapping(key, value) => {
                let (key, value) = (self.convert(key, side, inlined), self.convert(value, side, inlined));
                if key.is_none() && value.is_none() {
                    return None;
                }
                let (key, value) = (self.or_literal(key, side), self.or_literal(value, side));
                Expression::Mapping(key, value)
            }
            RawExpression::Part(inner, index) => Expression::Part(self.convert(inner, side, inlined)?, index),
            RawExpression::Named(inner, name) => {
                let object = self.convert(inner, side, inlined)?;
                Expression::Property { object, name: self.builder(side).name(name) }
            }
            RawExpression::Injected { name, class, outer } => {
                let class = self.class_handle(class).filter(|class| side == Side::Body || !class.in_body());
                Expression::Injected { name: self.builder(side).name(name), class, outer }
            }
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
                // Its place counts even when nothing is known of it.
                let first = self.convert(first, side, inlined);
                let first = self.or_literal(first, side);
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

    fn or_literal(&mut self, known: Option<Handle>, side: Side) -> Handle {
        known.unwrap_or_else(|| {
            let outline = self.outline_mut(side);
            outline.expressions.push(Expression::Literal);
            side.handle(outline.expressions.len() - 1)
        })
    }

    /// Returns whether a callee is spelt as one of the language's that gives what it is given.
    pub(super) fn passes_on(&self, callee: u32) -> bool {
        let name = match self.raw.expressions[callee as usize] {
            RawExpression::Name(used) => self.raw.uses[used as usize].name,
            RawExpression::Attribute(_, name) => name,
            _ => return false,
        };
        library::passes_on(self.raw.names[name as usize])
    }

    pub(super) fn pack_use(&mut self, bound: Bound, name: u32, side: Side) -> Use {
        match bound {
            Bound::Free => Use::Free(side.handle(self.builder(side).name(name).0 as usize)),
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
                let handle = side.handle(outline.sets.len());
                outline.sets.push(packed);
                let known = if side == Side::Surface { &mut self.surface_sets } else { &mut self.body_sets };
                known.insert(set, handle);
                Use::Many(handle)
            }
        }
    }

    pub(super) fn pack_binding(&mut self, binding: u32, side: Side) -> Handle {
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
        let handle = side.handle(builder.outline.bindings.len());
        builder.outline.bindings.push(Binding { name, role, declaration, annotation: None, value: None });
        if side == Side::Surface {
            self.surface_bindings[binding as usize] = Some(handle);
            if raw.role == RawRole::TypeParameter {
                let annotation = self.pack_in_surface(raw.annotation, 0);
                self.surface.outline.bindings[handle.index()].annotation = annotation;
            }
        } else {
            self.body_bindings[binding as usize] = Some(handle);
            self.pending.push(binding);
        }
        handle
    }

    pub(super) fn pack_evidence(&mut self, binding: u32) {
        let raw = &self.raw.bindings[binding as usize];
        let Some(handle) = self.body_bindings[binding as usize] else { return };
        let annotation = self.pack_in_body(raw.annotation);
        let value = if annotation.is_none() { self.pack_in_body(raw.value) } else { None };
        let packed = &mut self.body.outline.bindings[handle.index()];
        packed.annotation = annotation;
        packed.value = value;
    }
}
