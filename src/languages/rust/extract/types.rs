//! Types, type parameters with their bounds, and the types of functions.
//!
//! Must not know what a name means. Invariant: lifetimes and constants are no types, and leave no trace.

use tree_sitter::{Node, TreeCursor};

use super::paths::PathUse;
use super::scopes::Local;
use super::{Kind, Walk};
use crate::languages::grammar::each_child;
use crate::languages::outline::Side;
use crate::model::EdgeKind;
use crate::model::facts::{Binding, Expression, Handle, Primitive, Role, Signature, Space, Use};

impl<'s> Walk<'s> {
    /// Walks a type; returns what it denotes.
    pub(super) fn type_(&mut self, cursor: &mut TreeCursor<'_>, side: Side) -> Option<Handle> {
        self.type_as(cursor, side, EdgeKind::References)
    }

    /// Walks a type whose own name makes references of a kind.
    pub(super) fn type_as(&mut self, cursor: &mut TreeCursor<'_>, side: Side, kind: EdgeKind) -> Option<Handle> {
        self.deeper(|this| this.type_inner(cursor, side, kind))
    }

    fn type_inner(&mut self, cursor: &mut TreeCursor<'_>, side: Side, kind: EdgeKind) -> Option<Handle> {
        let node = cursor.node();
        match self.kind(node) {
            Kind::TypeIdentifier
            | Kind::Identifier
            | Kind::ScopedTypeIdentifier
            | Kind::ScopedIdentifier
            | Kind::GenericType
            | Kind::PrimitiveType
            | Kind::BracketedType => self.path(node, PathUse { side, space: Space::Type, kind, qualifier: false }),
            Kind::ReferenceType => {
                let inner = self.inner_type(cursor, side)?;
                Some(self.push(side, Expression::Address(inner)))
            }
            Kind::PointerType => {
                let inner = self.inner_type(cursor, side)?;
                Some(self.push(side, Expression::Pointer(inner)))
            }
            Kind::ArrayType => {
                let mut element = None;
                each_child!(cursor, {
                    if cursor.field_id() == self.fields.length {
                        self.expression(cursor);
                    } else if !matches!(self.kind(cursor.node()), Kind::Other) {
                        element = self.type_(cursor, side);
                    }
                });
                Some(self.push(side, Expression::Sequence(element?)))
            }
            Kind::TupleType => {
                let mut parts = Vec::new();
                each_child!(cursor, {
                    if !matches!(self.kind(cursor.node()), Kind::Other | Kind::LineComment | Kind::BlockComment) {
                        parts.push(self.type_(cursor, side));
                    }
                });
                self.list(side, &parts)
            }
            Kind::UnitType => Some(self.push(side, Expression::Primitive(Primitive::Unit))),
            Kind::NeverType => Some(self.push(side, Expression::Literal)),
            Kind::FunctionType => {
                let mut made = Signature::default();
                each_child!(cursor, {
                    let field = cursor.field_id();
                    if field == self.fields.trait_ {
                        self.type_as(cursor, side, kind);
                    } else if field == self.fields.parameters {
                        each_child!(cursor, {
                            match self.kind(cursor.node()) {
                                Kind::Other | Kind::LineComment | Kind::BlockComment | Kind::Attribute => {}
                                Kind::Parameter => each_child!(cursor, {
                                    if cursor.field_id() == self.fields.type_ {
                                        made.parameters.push(self.type_(cursor, side));
                                    }
                                }),
                                _ => made.parameters.push(self.type_(cursor, side)),
                            }
                        });
                    } else if field == self.fields.return_type {
                        made.results.push(self.type_(cursor, side));
                    }
                });
                let signature = self.outline(side).signature(made);
                Some(self.push(side, Expression::Signature(signature)))
            }
            Kind::DynamicType | Kind::AbstractType | Kind::BoundedType => {
                let mut bounds = Vec::new();
                self.bounds_in(cursor, side, kind, &mut bounds);
                let list = self.list(side, &bounds)?;
                Some(self.push(side, Expression::Bounded(list)))
            }
            Kind::HigherRanked => {
                let mut inner = None;
                each_child!(cursor, {
                    if cursor.field_id() == self.fields.type_ {
                        inner = self.type_as(cursor, side, kind);
                    }
                });
                inner
            }
            Kind::MacroInvocation => {
                self.macro_invocation(cursor);
                None
            }
            _ => None,
        }
    }

    fn inner_type(&mut self, cursor: &mut TreeCursor<'_>, side: Side) -> Option<Handle> {
        let mut inner = None;
        each_child!(cursor, {
            if cursor.field_id() == self.fields.type_ {
                inner = self.type_(cursor, side);
            }
        });
        inner
    }

    /// Collects the bounds among the children of the cursor's node; those of a bound in brackets too.
    fn bounds_in(&mut self, cursor: &mut TreeCursor<'_>, side: Side, kind: EdgeKind, bounds: &mut Vec<Option<Handle>>) {
        each_child!(cursor, {
            match self.kind(cursor.node()) {
                Kind::Lifetime
                | Kind::Other
                | Kind::Unlisted
                | Kind::RemovedBound
                | Kind::TypeParameters
                | Kind::LineComment
                | Kind::BlockComment => {}
                Kind::BoundedType => self.bounds_in(cursor, side, kind, bounds),
                _ => bounds.push(self.type_as(cursor, side, kind)),
            }
        });
    }

    pub(super) fn bounds_of(&mut self, cursor: &mut TreeCursor<'_>, side: Side, kind: EdgeKind) -> Vec<Handle> {
        let mut bounds = Vec::new();
        self.bounds_in(cursor, side, kind, &mut bounds);
        bounds.into_iter().flatten().collect()
    }

    /// Walks bounds (`: A + B`); returns them as a list.
    pub(super) fn bounds(&mut self, cursor: &mut TreeCursor<'_>, side: Side, kind: EdgeKind) -> Option<Handle> {
        let mut bounds = Vec::new();
        self.bounds_in(cursor, side, kind, &mut bounds);
        self.list(side, &bounds)
    }

    /// Walks the parameters of a type, function or block, and binds their names.
    pub(super) fn type_parameters(&mut self, cursor: &mut TreeCursor<'_>) -> Vec<Handle> {
        let side = self.side();
        let mut bindings = Vec::new();
        // All of them are in scope in each bound, so they are bound first.
        each_child!(cursor, {
            match self.kind(cursor.node()) {
                Kind::TypeParameter => {
                    let name = self.field(cursor, self.fields.name);
                    bindings.push(name.map(|name| self.bind_type_parameter(name, side)));
                }
                Kind::ConstParameter => {
                    if let Some(name) = self.field(cursor, self.fields.name) {
                        let text = self.name_of(name);
                        let id = self.name(side, text);
                        let binding =
                            Binding { name: id, role: Role::Parameter, declaration: None, annotation: None, value: None };
                        let binding = self.outline(side).binding(side, binding);
                        self.scopes.bind(text, false, Local::Bound(binding));
                        // It may stand among type arguments, where it looks like a type.
                        self.scopes.bind(text, true, Local::Bound(binding));
                    }
                }
                _ => {}
            }
        });
        let mut open = bindings.iter().copied();
        each_child!(cursor, {
            match self.kind(cursor.node()) {
                Kind::TypeParameter => {
                    let binding = open.next().flatten();
                    each_child!(cursor, {
                        if cursor.field_id() == self.fields.bounds {
                            let bounds = self.bounds(cursor, side, EdgeKind::References);
                            if let Some(binding) = binding {
                                self.outline(side).outline.bindings[binding.index()].annotation = bounds;
                            }
                        } else if cursor.field_id() == self.fields.default_type {
                            let _ = self.type_(cursor, side);
                        }
                    });
                }
                Kind::ConstParameter => each_child!(cursor, {
                    if cursor.field_id() == self.fields.type_ {
                        let _ = self.type_(cursor, side);
                    }
                }),
                _ => {}
            }
        });
        bindings.into_iter().flatten().collect()
    }

    fn bind_type_parameter(&mut self, name: Node<'_>, side: Side) -> Handle {
        let text = self.name_of(name);
        let name = self.name(side, text);
        let binding = Binding { name, role: Role::TypeParameter, declaration: None, annotation: None, value: None };
        let handle = self.outline(side).binding(side, binding);
        self.scopes.bind(text, true, Local::Bound(handle));
        handle
    }

    /// Walks `where …`; what it says of type parameters is added to their bounds.
    pub(super) fn where_clause(&mut self, cursor: &mut TreeCursor<'_>) {
        let side = self.side();
        each_child!(cursor, {
            if self.kind(cursor.node()) == Kind::WherePredicate {
                let mut binding = None;
                each_child!(cursor, {
                    if cursor.field_id() == self.fields.left {
                        let left = self.type_(cursor, side);
                        binding = left.and_then(|left| match self.outline(side).outline.expressions.get(left.index()) {
                            Some(Expression::Name(Use::One(binding))) if left.in_body() == (side == Side::Body) => Some(*binding),
                            _ => None,
                        });
                    } else if cursor.field_id() == self.fields.bounds {
                        let bounds = self.bounds_of(cursor, side, EdgeKind::References);
                        if let Some(binding) = binding.filter(|binding| binding.in_body() == (side == Side::Body)) {
                            let own = |this: &Self| match side {
                                Side::Surface => this.surface.outline.bindings[binding.index()].role,
                                Side::Body => this.body.outline.bindings[binding.index()].role,
                            };
                            if own(self) == Role::TypeParameter {
                                for bound in bounds {
                                    let before = self.outline(side).outline.bindings[binding.index()].annotation;
                                    let list = self.push(side, Expression::List(bound, before));
                                    self.outline(side).outline.bindings[binding.index()].annotation = Some(list);
                                }
                            }
                        }
                    }
                });
            }
        });
    }

    /// Walks the head of a function: its parameters are bound in the open scope.
    pub(super) fn signature(&mut self, cursor: &mut TreeCursor<'_>, side: Side) -> u32 {
        let mut made = Signature::default();
        let mut is_async = false;
        each_child!(cursor, {
            let field = cursor.field_id();
            if cursor.node().kind() == "function_modifiers" {
                is_async = self.text_of(cursor.node()).split_whitespace().any(|word| word == "async");
            }
            if field == self.fields.type_parameters {
                made.type_parameters = self.type_parameters(cursor);
            } else if field == self.fields.parameters {
                self.parameters(cursor, side, &mut made);
            } else if field == self.fields.return_type {
                let result = self.type_(cursor, side);
                made.results.push(result);
            } else if self.kind(cursor.node()) == Kind::WhereClause {
                self.where_clause(cursor);
            }
        });
        if is_async {
            // What it declares is got by waiting for what it gives.
            let result = match made.results.pop() {
                Some(result) => result,
                None => Some(self.push(side, Expression::Primitive(Primitive::Unit))),
            };
            made.results.push(result.map(|result| self.push(side, Expression::Promise(result))));
        }
        self.outline(side).signature(made)
    }

    fn parameters(&mut self, cursor: &mut TreeCursor<'_>, side: Side, made: &mut Signature) {
        each_child!(cursor, {
            let node = cursor.node();
            match self.kind(node) {
                Kind::SelfParameter => {
                    let by_reference = self.text_of(node).starts_with('&');
                    let own = self.scopes.find("Self", true).filter(|own| side == Side::Body || !own.in_body());
                    let mut type_ = own.map(|own| self.push(side, Expression::Name(Use::One(own))));
                    if by_reference {
                        type_ = type_.map(|type_| self.push(side, Expression::Address(type_)));
                    }
                    self.bind_self(type_);
                    // By value it is variadic alone, by `&` both, by `&mut` of pointers alone.
                    let mutable = by_reference && is_mutable(node);
                    made.variadic = !mutable;
                    made.by_pointer = by_reference;
                }
                Kind::Parameter => {
                    let is_self = self.field(cursor, self.fields.pattern).is_some_and(|node| self.text_of(node) == "self");
                    let mut type_ = None;
                    each_child!(cursor, {
                        if cursor.field_id() == self.fields.type_ {
                            type_ = self.type_(cursor, side);
                        }
                    });
                    if is_self {
                        self.bind_self(type_);
                        made.variadic = true;
                    } else {
                        made.parameters.push(type_);
                        let value = type_.map(|type_| self.push(Side::Body, Expression::Instance(type_)));
                        each_child!(cursor, {
                            if cursor.field_id() == self.fields.pattern {
                                self.pattern(cursor, value);
                            }
                        });
                    }
                }
                _ => {}
            }
        });
    }

    fn bind_self(&mut self, type_: Option<Handle>) {
        let value = type_.map(|type_| self.push(Side::Body, Expression::Instance(type_)));
        self.bind_local("self", value);
    }

    /// Binds a name of a value in the open scope.
    pub(super) fn bind_local(&mut self, text: &'s str, value: Option<Handle>) {
        if text == "_" {
            return;
        }
        let name = self.body.name(text);
        let binding = Binding { name, role: Role::Variable, declaration: None, annotation: None, value };
        let binding = self.body.binding(Side::Body, binding);
        self.scopes.bind(text, false, Local::Bound(binding));
    }
}

/// Returns whether `self` is taken by a reference through which it may be changed.
fn is_mutable(node: Node<'_>) -> bool {
    let mut walk = node.walk();
    node.children(&mut walk).any(|child| child.kind() == "mutable_specifier")
}
