//! Blocks of members: implementations and traits.
//!
//! Must not know which type a name means. Invariant: the members of a block are declarations of their own, named after the type as it is
//! written.

use std::sync::Arc;

use tree_sitter::{Node, TreeCursor};

use super::definitions::Made;
use super::scopes::Local;
use super::{Kind, Walk};
use crate::languages::grammar::each_child;
use crate::model::facts::{Binding, Expression, Handle, ItemMeaning, MemberBlock, Role, Shape, Space, TypeForm, TypeShape};
use crate::model::{EdgeKind, SymbolKind};

impl<'s> Walk<'s> {
    pub(super) fn implementation(&mut self, cursor: &mut TreeCursor<'_>) {
        self.take_pending();
        let side = self.side();
        let before = self.references.len();
        self.scopes.enter();
        let mut parameters = Vec::new();
        each_child!(cursor, {
            if cursor.field_id() == self.fields.type_parameters {
                parameters = self.type_parameters(cursor);
            }
        });
        let mut subject = None;
        let mut label = "";
        each_child!(cursor, {
            if cursor.field_id() == self.fields.type_ {
                label = self.label(cursor.node());
                subject = self.type_(cursor, side);
            }
        });
        let subject = subject.unwrap_or_else(|| self.push(side, Expression::Unknown));
        self.bind_self_type(subject);
        let mut of = None;
        each_child!(cursor, {
            if cursor.field_id() == self.fields.trait_ {
                let name = self.label(cursor.node());
                let trait_ = self.type_as(cursor, side, EdgeKind::Inherits);
                of = trait_.map(|trait_| (trait_, name));
            } else if self.kind(cursor.node()) == Kind::WhereClause {
                self.where_clause(cursor);
            }
        });
        // Where the type has no name of its own, the members are named after what it is made for.
        let is_parameter = self.scopes.find(label, true).is_some_and(|found| parameters.contains(&found));
        let owner = match (label, of) {
            ("" | "[]", Some((_, name))) => name,
            ("" | "[]", None) => "impl",
            (label, _) => label,
        };
        let qualified: Arc<str> =
            if self.position.prefix.is_empty() { owner.into() } else { format!("{}.{owner}", self.position.prefix).into() };
        self.heads.push((before..self.references.len(), Arc::clone(&qualified)));
        let mut open = false;
        let members = self.members(cursor, owner, Some(&qualified), &mut open);
        self.scopes.leave();
        let label = self.name(side, if is_parameter { "*" } else { label });
        let of = of.map(|(of, name)| (of, self.name(side, name)));
        let scope = self.position.scope;
        self.outline(side).block(MemberBlock { scope, parameters, subject, label, of, declares: None, members, open });
    }

    /// Returns the last word of a type as it is written.
    fn label(&self, node: Node<'_>) -> &'s str {
        let mut next = Some(node);
        while let Some(node) = next {
            let field = match self.kind(node) {
                Kind::TypeIdentifier | Kind::Identifier | Kind::PrimitiveType => return self.name_of(node),
                Kind::ScopedTypeIdentifier | Kind::ScopedIdentifier => "name",
                Kind::GenericType | Kind::ReferenceType => "type",
                Kind::DynamicType => "trait",
                Kind::ArrayType => return "[]",
                _ => return "",
            };
            next = node.child_by_field_name(field);
        }
        ""
    }

    /// Walks the members of a block of `owner`, whose type may be a definition of the file.
    fn members(
        &mut self,
        cursor: &mut TreeCursor<'_>,
        owner: &str,
        qualified: Option<&Arc<str>>,
        open: &mut bool,
    ) -> Vec<Handle> {
        let mut members = Vec::new();
        each_child!(cursor, {
            if cursor.field_id() == self.fields.body {
                each_child!(cursor, {
                    let node = cursor.node();
                    if !self.is_prelude(node) {
                        let made = match self.kind(node) {
                            Kind::Function | Kind::FunctionSignature => self.function(cursor, Some(owner)),
                            Kind::Const => self.constant(cursor, Some(owner)),
                            Kind::TypeItem | Kind::AssociatedType => self.type_item(cursor, Some(owner)),
                            Kind::MacroInvocation => {
                                *open = true;
                                self.item_macro(cursor);
                                None
                            }
                            _ => None,
                        };
                        if let Some((index, declaration)) = made {
                            members.push(declaration);
                            self.owners.extend(qualified.map(|qualified| (index, Arc::clone(qualified))));
                        }
                        self.take_pending();
                    }
                });
            }
        });
        members
    }

    pub(super) fn trait_(&mut self, cursor: &mut TreeCursor<'_>) {
        let node = cursor.node();
        let Some(name) = self.field(cursor, self.fields.name) else { return };
        let pending = self.take_pending();
        let before = self.references.len();
        let side = self.side();
        let text = self.name_of(name);
        self.scopes.enter();
        let scope = self.position.scope;
        let itself = self.outline(side).search(side, scope, text, Space::Type);
        let bounds = self.list(side, &[Some(itself)]);
        let own_name = self.name(side, "Self");
        let binding = Binding { name: own_name, role: Role::TypeParameter, declaration: None, annotation: bounds, value: None };
        let own = self.outline(side).binding(side, binding);
        self.scopes.bind("Self", true, Local::Bound(own));
        let mut shape = TypeShape { form: TypeForm::Trait, ..TypeShape::default() };
        each_child!(cursor, {
            let field = cursor.field_id();
            if field == self.fields.type_parameters {
                shape.parameters = self.type_parameters(cursor);
            } else if field == self.fields.bounds {
                shape.embedded = self.bounds_of(cursor, side, EdgeKind::Inherits);
            } else if self.kind(cursor.node()) == Kind::WhereClause {
                self.where_clause(cursor);
            }
        });
        let parameters = shape.parameters.clone();
        let head_end = self.head_end(cursor);
        let shape = Shape::Type(self.outline(side).shape(shape));
        let (index, declaration) = self.define(Made { name, node, kind: SymbolKind::Trait, shape, head_end }, None, pending);
        self.belong(before, index);
        let source = std::mem::replace(&mut self.source, index + 1);
        let parent = std::mem::replace(&mut self.position.parent, index + 1);
        let mut open = false;
        let members = self.members(cursor, text, None, &mut open);
        self.position.parent = parent;
        self.source = source;
        self.scopes.leave();
        let visibility = self.visibility(node);
        let label = self.name(side, text);
        let declares = Some((declaration, own));
        self.outline(side).block(MemberBlock { scope, parameters, subject: itself, label, of: None, declares, members, open });
        self.declare(text, Space::Type, visibility, ItemMeaning::Declaration(declaration));
    }
}
