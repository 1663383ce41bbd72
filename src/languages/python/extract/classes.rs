//! Classes: their bases, and the scope of their bodies.
//!
//! Must not know what is inherited. Invariant: the name is bound after the body, whose own statements cannot see it.

use tree_sitter::TreeCursor;

use super::decorators::Decorators;
use super::kinds::Kind;
use super::text::fold;
use super::walk::{MAX_DEPTH, NOTHING, Walk};
use crate::languages::grammar::each_child;
use crate::languages::python::raw::{NONE, RawClass, RawRole, RawShape, ScopeKind};
use crate::model::{EdgeKind, Span, SymbolKind};

impl Walk<'_> {
    pub(super) fn class(&mut self, cursor: &mut TreeCursor<'_>, decorators: &Decorators) {
        let node = cursor.node();
        let Some(name_node) = node.child_by_field_name("name") else { return };
        if name_node.start_byte() == name_node.end_byte() || self.depth >= MAX_DEPTH {
            return;
        }
        self.depth += 1;
        let name = self.name_of(&name_node);
        let own = (self.scope, self.arm, self.source_definition, self.container, self.function);
        self.raw.classes.push(RawClass { declaration: NONE, scope: NONE, ..RawClass::default() });
        let class = self.raw.classes.len() as u32 - 1;
        let mut header_end = name_node.end_byte();
        if let Some(bases) = node.child_by_field_name("superclasses") {
            header_end = bases.end_byte();
        }
        let start = decorators.start.unwrap_or(node.start_byte());
        let span = Span { start: start as u32, end: node.end_byte() as u32 };
        let signature = fold(self.text.get(node.start_byte()..header_end).unwrap_or(""), 400);
        let declaration =
            self.define(name, SymbolKind::Class, RawShape::Class(class), span, name_node.start_byte() as u32, Some(signature));
        self.raw.classes[class as usize].declaration = declaration;
        let definition = self.raw.declarations[declaration as usize].definition;
        if cursor.goto_first_child() {
            loop {
                match self.kind(cursor) {
                    Kind::TypeParameter => {
                        let type_scope = self.new_scope(ScopeKind::Function, self.arm);
                        self.raw.scopes[type_scope as usize].outer = self.raw.scopes[own.0 as usize].outer;
                        self.scope = type_scope;
                        self.raw.classes[class as usize].parameters = self.type_parameters(cursor);
                    }
                    Kind::ArgumentList => {
                        each_child!(cursor, {
                            match self.kind(cursor) {
                                Kind::Other | Kind::Comment => {}
                                Kind::KeywordArgument => {
                                    self.expression(cursor, false, EdgeKind::References);
                                }
                                _ => {
                                    let base = self.expression(cursor, true, EdgeKind::Inherits);
                                    self.raw.classes[class as usize].bases.push(base);
                                }
                            }
                        });
                    }
                    Kind::Block => {
                        let scope = self.new_scope(ScopeKind::Class, self.arm);
                        self.raw.scopes[scope as usize].class = class;
                        self.raw.classes[class as usize].scope = scope;
                        let outer = self.scope;
                        self.scope = scope;
                        self.source_definition = definition + 1;
                        self.container = Some(definition);
                        self.function = NONE;
                        let around = std::mem::replace(&mut self.parametrized, decorators.parametrized.clone());
                        self.block(cursor, Some(definition));
                        self.parametrized = around;
                        self.scope = outer;
                    }
                    _ => {}
                }
                if !cursor.goto_next_sibling() {
                    break;
                }
            }
            cursor.goto_parent();
        }
        (self.scope, self.arm, self.source_definition, self.container, self.function) = own;
        self.bind(name, RawRole::Class, declaration, NOTHING);
        self.depth -= 1;
    }
}
