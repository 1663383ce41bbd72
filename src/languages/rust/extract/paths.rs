//! Paths: what each of their parts refers to.
//!
//! Must not follow them. Invariant: the words of the language (`crate`, `self`, `super`, `Self`) are no references of their own.

use tree_sitter::{Node, TreeCursor};

use super::{Kind, Walk};
use crate::languages::grammar::each_child;
use crate::languages::outline::Side;
use crate::model::EdgeKind;
use crate::model::facts::{Expression, Handle, Space, Subject};

/// How a path is used.
#[derive(Clone, Copy)]
pub(super) struct PathUse {
    pub side: Side,
    pub space: Space,
    pub kind: EdgeKind,
    /// It only leads to what follows.
    pub qualifier: bool,
}

impl PathUse {
    pub(super) fn value(kind: EdgeKind) -> Self {
        Self { side: Side::Body, space: Space::Value, kind, qualifier: false }
    }

    fn leading(self) -> Self {
        Self { space: Space::Type, kind: EdgeKind::References, qualifier: true, ..self }
    }
}

impl<'s> Walk<'s> {
    /// Walks a path; returns what it denotes.
    pub(super) fn path(&mut self, node: Node<'_>, usage: PathUse) -> Option<Handle> {
        let side = usage.side;
        match self.kind(node) {
            Kind::Identifier | Kind::TypeIdentifier | Kind::ShorthandField => self.name_use(node, usage),
            Kind::SelfValue if usage.space == Space::Value => self.self_value(side),
            Kind::Crate | Kind::SelfValue | Kind::Super => {
                let (scope, text) = (self.position.scope, self.text_of(node));
                Some(self.outline(side).search(side, scope, text, Space::Type))
            }
            // `$crate` and its like: in macros only.
            Kind::Metavariable => None,
            Kind::PrimitiveType => {
                let (scope, text) = (self.position.scope, self.text_of(node));
                Some(self.outline(side).search(side, scope, text, Space::Type))
            }
            Kind::ScopedIdentifier | Kind::ScopedTypeIdentifier => {
                let name = node.child_by_field_id(self.fields.name?.get())?;
                let object = match node.child_by_field_id(self.fields.path?.get()) {
                    Some(path) => self.deeper(|this| this.path(path, usage.leading())),
                    None => {
                        let scope = self.position.scope;
                        Some(self.outline(side).search(side, scope, "::", Space::Type))
                    }
                };
                let text = self.name_of(name);
                if self.kind(name) == Kind::Super {
                    let name = self.name(side, text);
                    return Some(self.push(side, Expression::Path { object: object?, name, space: Space::Type }));
                }
                let id = self.name(side, text);
                let object = match object {
                    Some(object) => object,
                    None => self.push(side, Expression::Unknown),
                };
                let path = self.push(side, Expression::Path { object, name: id, space: usage.space });
                self.refer(name.start_byte(), usage.kind, usage.qualifier, Subject::Path(path));
                Some(path)
            }
            Kind::GenericType | Kind::GenericTurbofish => {
                let object = node.child_by_field_id(self.fields.type_?.get())?;
                let object = self.deeper(|this| this.path(object, usage));
                let arguments = node.child_by_field_id(self.fields.type_arguments?.get())?;
                let argument = self.type_arguments(&mut arguments.walk(), side);
                // Lifetimes alone change nothing.
                match argument {
                    Some(_) => Some(self.push(side, Expression::Subscript { object: object?, argument })),
                    None => object,
                }
            }
            Kind::BracketedType => {
                let inner = node.named_child(0)?;
                if self.kind(inner) != Kind::QualifiedType {
                    return self.type_(&mut inner.walk(), side);
                }
                let type_ = inner.child_by_field_id(self.fields.type_?.get())?;
                let alias = inner.child_by_field_id(self.fields.alias?.get())?;
                let type_ = self.type_(&mut type_.walk(), side);
                let alias = self.type_(&mut alias.walk(), side);
                Some(self.push(side, Expression::As(type_?, alias?)))
            }
            _ => self.type_(&mut node.walk(), side),
        }
    }

    fn self_value(&mut self, side: Side) -> Option<Handle> {
        let binding = self.scopes.find("self", false)?;
        self.local_uses += 1;
        Some(self.push(side, Expression::Name(crate::model::facts::Use::One(binding))))
    }

    /// Walks a name that stands alone, or leads a path.
    pub(super) fn name_use(&mut self, node: Node<'_>, usage: PathUse) -> Option<Handle> {
        let text = self.name_of(node);
        let PathUse { side, space, kind, qualifier } = usage;
        if text == "_" {
            return None;
        }
        if matches!(space, Space::Type | Space::Value)
            && let Some(binding) = self.scopes.find(text, space == Space::Type || text == "Self")
        {
            self.local_uses += 1;
            // What others see cannot name what only a body has.
            if side == Side::Surface && binding.in_body() {
                return None;
            }
            return Some(self.push(side, Expression::Name(crate::model::facts::Use::One(binding))));
        }
        if text == "Self" {
            return None;
        }
        let scope = self.position.scope;
        let search = self.outline(side).search(side, scope, text, space);
        self.refer(node.start_byte(), kind, qualifier, Subject::Path(search));
        Some(search)
    }

    /// Walks type arguments; returns them as a list.
    pub(super) fn type_arguments(&mut self, cursor: &mut TreeCursor<'_>, side: Side) -> Option<Handle> {
        let mut arguments = Vec::new();
        each_child!(cursor, {
            let node = cursor.node();
            match self.kind(node) {
                Kind::Lifetime | Kind::Other | Kind::LineComment | Kind::BlockComment => {}
                Kind::TypeBinding => {
                    // `Item = T` says what is iterated over, `Output = T` what is waited for, and nothing of the parameters else.
                    let item =
                        self.field(cursor, self.fields.name).is_some_and(|name| matches!(self.text_of(name), "Item" | "Output"));
                    each_child!(cursor, {
                        if cursor.field_id() == self.fields.type_ {
                            let type_ = self.type_(cursor, side);
                            arguments.extend(item.then_some(type_));
                        } else if cursor.field_id() == self.fields.type_arguments {
                            let _ = self.type_arguments(cursor, side);
                        }
                    });
                }
                Kind::TraitBounds => drop(self.bounds(cursor, side, EdgeKind::References)),
                Kind::Block => drop(self.block(cursor)),
                _ => arguments.push(self.type_(cursor, side)),
            }
        });
        self.list(side, &arguments)
    }
}
