//! `__all__`: the steps by which a module says what it makes public.
//!
//! Must not know which names the module has. Invariant: what cannot be read is a step of its own, unknown, and never passed over.

use tree_sitter::{Node, TreeCursor};

use super::kinds::Kind;
use super::walk::Walk;
use crate::languages::python::raw::{NONE, RawPublic};
use crate::model::EdgeKind;

impl Walk<'_> {
    /// A call as a statement, which is where `__all__` is changed by its methods.
    pub(super) fn statement_call(&mut self, cursor: &mut TreeCursor<'_>) {
        if self.scope == 0 {
            let node = cursor.node();
            if let Some(function) = node.child_by_field_name("function")
                && self.node_kind(&function) == Kind::Attribute
                && let Some(object) = function.child_by_field_name("object")
                && self.node_kind(&object) == Kind::Identifier
                && self.slice(&object) == "__all__"
                && let Some(method) = function.child_by_field_name("attribute")
                && let Some(arguments) = node.child_by_field_name("arguments")
            {
                let mut steps = Vec::new();
                match (self.slice(&method), arguments.named_child(0)) {
                    ("extend", Some(argument)) => self.public_steps(argument, &mut steps),
                    ("append", Some(argument)) => match self.string_name(&argument) {
                        Some(name) => steps.push(RawPublic::Add(name)),
                        None => steps.push(RawPublic::Unknown),
                    },
                    ("remove", Some(argument)) => match self.string_name(&argument) {
                        Some(name) => steps.push(RawPublic::Remove(name)),
                        None => steps.push(RawPublic::Unknown),
                    },
                    _ => steps.push(RawPublic::Unknown),
                }
                self.raw.public.get_or_insert_default().extend(steps);
            }
        }
        self.expression(cursor, false, EdgeKind::References);
    }

    /// Reads an expression that gives names for `__all__`.
    pub(super) fn public_steps(&mut self, node: Node<'_>, steps: &mut Vec<RawPublic>) {
        match self.node_kind(&node) {
            Kind::List | Kind::Tuple | Kind::Set => {
                let mut cursor = node.walk();
                for child in node.named_children(&mut cursor) {
                    match self.node_kind(&child) {
                        Kind::Comment => {}
                        Kind::ListSplat => match child.named_child(0) {
                            Some(inner) => self.public_steps(inner, steps),
                            None => steps.push(RawPublic::Unknown),
                        },
                        _ => match self.string_name(&child) {
                            Some(name) => steps.push(RawPublic::Add(name)),
                            None => steps.push(RawPublic::Unknown),
                        },
                    }
                }
            }
            Kind::Parenthesized => match node.named_child(0) {
                Some(inner) => self.public_steps(inner, steps),
                None => steps.push(RawPublic::Unknown),
            },
            Kind::BinaryOperator => {
                // A left-deep chain of `+`, walked without recursion.
                let mut rights = Vec::new();
                let mut left = node;
                while self.node_kind(&left) == Kind::BinaryOperator {
                    let (Some(next), Some(right)) = (left.child_by_field_name("left"), left.child_by_field_name("right")) else {
                        steps.push(RawPublic::Unknown);
                        return;
                    };
                    if self.node_kind(&right) == Kind::BinaryOperator {
                        steps.push(RawPublic::Unknown);
                        return;
                    }
                    rights.push(right);
                    left = next;
                }
                self.public_steps(left, steps);
                for right in rights.into_iter().rev() {
                    self.public_steps(right, steps);
                }
            }
            Kind::Call => {
                // `list(x)`, `tuple(x)`, `sorted(x)`.
                let function = node.child_by_field_name("function").map(|function| self.slice(&function));
                let argument = node.child_by_field_name("arguments").and_then(|arguments| arguments.named_child(0));
                match (function, argument) {
                    (Some("list" | "tuple" | "sorted" | "set"), Some(argument)) if self.node_kind(&argument) != Kind::Call => {
                        self.public_steps(argument, steps);
                    }
                    _ => steps.push(RawPublic::Unknown),
                }
            }
            Kind::Attribute => {
                let attribute = node.child_by_field_name("attribute").map(|attribute| self.slice(&attribute));
                match (attribute, node.child_by_field_name("object")) {
                    (Some("__all__"), Some(object)) => {
                        let mut cursor = object.walk();
                        let references = self.raw.references.len();
                        let module = self.expression(&mut cursor, true, EdgeKind::References);
                        // The statement itself is walked too, and records them.
                        self.raw.references.truncate(references);
                        steps.push(if module == NONE { RawPublic::Unknown } else { RawPublic::Extend(module) });
                    }
                    _ => steps.push(RawPublic::Unknown),
                }
            }
            _ => steps.push(RawPublic::Unknown),
        }
    }

    /// Returns the name that a plain string literal spells.
    pub(super) fn string_name(&mut self, node: &Node<'_>) -> Option<u32> {
        if self.node_kind(node) != Kind::String {
            return None;
        }
        let content = node.named_child(1)?;
        if self.node_kind(&content) != Kind::StringContent || content.named_child_count() != 0 {
            return None;
        }
        Some(self.name_of(&content))
    }
}
