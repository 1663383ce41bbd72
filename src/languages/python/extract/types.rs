//! What is read as a type: annotations, aliases, type parameters and tests for a type.
//!
//! Must not know what a type has for members. Invariant: what makes strings annotations, or makes them none, is
//! taken back at the end of the place that it was said for.

use smallvec::SmallVec;
use tree_sitter::TreeCursor;

use super::kinds::Kind;
use super::walk::{Given, NOTHING, Walk, span_of};
use crate::languages::grammar::each_child;
use crate::languages::python::raw::{NONE, RawExpression, RawRole, ScopeKind};
use crate::model::EdgeKind;

impl Walk<'_> {
    /// Walks an annotation: strings in it are expressions too.
    pub(super) fn annotation(&mut self, cursor: &mut TreeCursor<'_>) -> u32 {
        let own = std::mem::replace(&mut self.in_annotation, true);
        let value = self.expression(cursor, true, EdgeKind::References);
        self.in_annotation = own;
        value
    }

    pub(super) fn type_alias(&mut self, cursor: &mut TreeCursor<'_>) {
        let node = cursor.node();
        let own_scope = self.scope;
        let Some(left) = node.child_by_field_name("left") else { return };
        let Some(mut token) = left.named_child(0) else { return };
        let generic = self.node_kind(&token) == Kind::GenericType;
        if generic && let Some(inner) = token.named_child(0) {
            token = inner;
        }
        let name = self.name_of(&token);
        let declaration = self.declare_variable(name, span_of(&node), token.start_byte() as u32);
        let mut value = NONE;
        let mut is_left = true;
        each_child!(cursor, {
            if self.kind(cursor) == Kind::Type {
                if is_left {
                    is_left = false;
                    if generic {
                        self.scope = self.new_scope(ScopeKind::Function, self.arm);
                        each_child!(cursor, {
                            each_child!(cursor, {
                                if self.kind(cursor) == Kind::TypeParameter {
                                    self.type_parameters(cursor);
                                }
                            });
                        });
                    }
                } else {
                    value = self.annotation(cursor);
                }
            }
        });
        self.scope = own_scope;
        self.bind(name, RawRole::Variable, declaration, Given { annotation: NONE, value });
    }

    /// The right side of `Alias = Union["A", B]`: type checkers read its strings as annotations.
    pub(super) fn alias_value(&mut self, cursor: &mut TreeCursor<'_>) -> u32 {
        let head = cursor.node().child_by_field_name("value");
        let constructor = head.is_some_and(|head| {
            let name = match self.node_kind(&head) {
                Kind::Attribute => head.child_by_field_name("attribute").map(|name| self.slice(&name)),
                _ => Some(self.slice(&head)),
            };
            matches!(
                name,
                Some(
                    "Union"
                        | "Optional"
                        | "List"
                        | "Dict"
                        | "Tuple"
                        | "Set"
                        | "FrozenSet"
                        | "Type"
                        | "Callable"
                        | "Iterable"
                        | "Iterator"
                        | "Sequence"
                        | "Mapping"
                        | "MutableMapping"
                        | "Awaitable"
                        | "Generator"
                        | "Collection"
                        | "Annotated"
                        | "list"
                        | "dict"
                        | "tuple"
                        | "set"
                        | "type"
                )
            )
        });
        let own = std::mem::replace(&mut self.in_annotation, constructor);
        let value = self.expression(cursor, true, EdgeKind::References);
        self.in_annotation = own;
        value
    }

    /// Binds the type parameters in brackets behind a name; returns the bindings.
    pub(super) fn type_parameters(&mut self, cursor: &mut TreeCursor<'_>) -> Vec<u32> {
        let mut bindings = Vec::new();
        each_child!(cursor, {
            if self.kind(cursor) == Kind::Type {
                let node = cursor.node();
                let inner = node.named_child(0);
                match inner.map(|inner| (self.node_kind(&inner), inner)) {
                    Some((Kind::Identifier, token)) => {
                        let name = self.name_of(&token);
                        bindings.push(self.bind(name, RawRole::TypeParameter, NONE, NOTHING));
                    }
                    Some((Kind::ConstrainedType | Kind::SplatType, _)) => {
                        // `T: bound`, `*Ts`: the first name is bound, the rest is used.
                        let mut first = true;
                        let mut bound = NONE;
                        each_child!(cursor, {
                            each_child!(cursor, {
                                match self.kind(cursor) {
                                    Kind::Other | Kind::Comment => {}
                                    kind if first => {
                                        first = false;
                                        let token =
                                            if kind == Kind::Type { cursor.node().named_child(0) } else { Some(cursor.node()) };
                                        if let Some(token) = token {
                                            let name = self.name_of(&token);
                                            bindings.push(self.bind(name, RawRole::TypeParameter, NONE, NOTHING));
                                        }
                                    }
                                    _ => bound = self.annotation(cursor),
                                }
                            });
                        });
                        if let (Some(binding), false) = (bindings.last(), first) {
                            self.raw.bindings[*binding as usize].annotation = bound;
                        }
                    }
                    _ => {}
                }
            }
        });
        bindings
    }

    /// `bound="Name"` of a type variable, whose string is an annotation.
    pub(super) fn type_variable_argument(&mut self, cursor: &mut TreeCursor<'_>) -> u32 {
        let node = cursor.node();
        let bound = match node.child_by_field_name("name") {
            Some(name) => self.name_of(&name) == self.known.bound,
            None => false,
        };
        self.in_annotation = bound;
        let mut value = NONE;
        let mut keyword = true;
        each_child!(cursor, {
            match self.kind(cursor) {
                Kind::Identifier if keyword => keyword = false,
                _ => value = self.expression(cursor, bound, EdgeKind::References),
            }
        });
        self.in_annotation = false;
        value
    }

    /// The type in `isinstance(x, type)`: one, or several in a tuple.
    pub(super) fn type_test(&mut self, cursor: &mut TreeCursor<'_>, kind: Kind) -> u32 {
        if kind != Kind::Tuple {
            return self.expression(cursor, true, EdgeKind::References);
        }
        let mut all = NONE;
        each_child!(cursor, {
            if !matches!(self.kind(cursor), Kind::Other | Kind::Comment) {
                let one = self.expression(cursor, true, EdgeKind::References);
                all = self.either(all, one);
            }
        });
        all
    }

    /// Walks `head[arguments]` of an annotation.
    pub(super) fn generic_type(&mut self, cursor: &mut TreeCursor<'_>) -> u32 {
        let mut value = NONE;
        let mut arguments: SmallVec<[u32; 4]> = SmallVec::new();
        let mut head = NONE;
        let mut head_name = NONE;
        let own_annotation = self.in_annotation;
        each_child!(cursor, {
            match self.kind(cursor) {
                Kind::Other | Kind::Comment => {}
                Kind::TypeParameter => {
                    if head_name == self.known.literal {
                        self.in_annotation = false;
                    }
                    each_child!(cursor, {
                        if !matches!(self.kind(cursor), Kind::Other | Kind::Comment) {
                            if head_name == self.known.annotated && arguments.len() == 1 {
                                self.in_annotation = false;
                            }
                            arguments.push(self.expression(cursor, true, EdgeKind::References));
                        }
                    });
                    self.in_annotation = own_annotation;
                }
                _ => {
                    head = self.expression(cursor, true, EdgeKind::References);
                    head_name = self.last_name;
                }
            }
        });
        if head != NONE {
            let argument = self.argument_chain(&arguments);
            value = self.push_expression(RawExpression::Subscript(head, argument));
        }
        value
    }

    /// Walks `left | right` of an annotation.
    pub(super) fn union_type(&mut self, cursor: &mut TreeCursor<'_>) -> u32 {
        let mut value = NONE;
        each_child!(cursor, {
            if !matches!(self.kind(cursor), Kind::Other | Kind::Comment) {
                let part = self.expression(cursor, true, EdgeKind::References);
                value = self.either(value, part);
            }
        });
        value
    }

    /// Walks `module.Name` of an annotation.
    pub(super) fn member_type(&mut self, cursor: &mut TreeCursor<'_>) -> u32 {
        let mut value = NONE;
        each_child!(cursor, {
            match self.kind(cursor) {
                Kind::Other | Kind::Comment => {}
                Kind::Identifier => {
                    let token = cursor.node();
                    let name = self.name_of(&token);
                    value = self.member(value, name, token.start_byte() as u32, EdgeKind::References, false, true);
                }
                _ => value = self.expression_as(cursor, true, EdgeKind::References, true),
            }
        });
        value
    }
}
