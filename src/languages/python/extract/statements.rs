//! Blocks and the statements in them, each handed to what knows its kind.
//!
//! Must not know what a statement means beyond whether control goes on after it. Invariant: the statements of a block are walked in
//! the order they are written.

use tree_sitter::{Node, TreeCursor};

use super::decorators::Decorators;
use super::kinds::Kind;
use super::text::clean_docstring;
use super::walk::{MAX_DEPTH, NOTHING, Walk};
use crate::languages::grammar::each_child;
use crate::languages::python::raw::{NONE, RawExpression, RawRole};
use crate::model::EdgeKind;

impl Walk<'_> {
    /// Walks the statements of a block; returns whether control never leaves it at its end.
    pub(super) fn block(&mut self, cursor: &mut TreeCursor<'_>, documents: Option<u32>) -> bool {
        let mut ends = false;
        let mut first = true;
        if self.depth >= MAX_DEPTH {
            return false;
        }
        self.depth += 1;
        each_child!(cursor, {
            let kind = self.kind(cursor);
            match kind {
                Kind::Other | Kind::Comment => {}
                _ => {
                    if first {
                        first = false;
                        if let Some(definition) = documents
                            && kind == Kind::ExpressionStatement
                        {
                            self.docstring(&cursor.node(), definition);
                        }
                    }
                    ends |= self.statement(cursor, kind);
                }
            }
        });
        self.depth -= 1;
        ends
    }

    /// Walks one statement; returns whether control never goes on after it.
    fn statement(&mut self, cursor: &mut TreeCursor<'_>, kind: Kind) -> bool {
        match kind {
            Kind::ExpressionStatement => {
                each_child!(cursor, {
                    match self.kind(cursor) {
                        Kind::Assignment => {
                            self.assignment(cursor);
                        }
                        Kind::AugmentedAssignment => self.augmented_assignment(cursor),
                        Kind::Other | Kind::Comment => {}
                        Kind::Call => self.statement_call(cursor),
                        _ => {
                            self.expression(cursor, false, EdgeKind::References);
                        }
                    }
                });
                false
            }
            Kind::DecoratedDefinition => {
                self.decorated(cursor);
                false
            }
            Kind::FunctionDefinition => {
                self.function(cursor, &Decorators::none());
                false
            }
            Kind::ClassDefinition => {
                self.class(cursor, &Decorators::none());
                false
            }
            Kind::If => self.if_statement(cursor),
            Kind::For => self.loop_statement(cursor, true),
            Kind::While => self.loop_statement(cursor, false),
            Kind::Try => self.try_statement(cursor),
            Kind::With => self.with_statement(cursor),
            Kind::Match => {
                self.match_statement(cursor);
                false
            }
            Kind::Import => {
                self.import_statement(cursor);
                false
            }
            Kind::ImportFrom => {
                self.import_from(cursor);
                false
            }
            Kind::Global | Kind::Nonlocal => {
                each_child!(cursor, {
                    if self.kind(cursor) == Kind::Identifier {
                        let name = self.name_of(&cursor.node());
                        self.raw.scopes[self.scope as usize].redirected.push((name, kind == Kind::Global));
                    }
                });
                false
            }
            Kind::Delete => {
                each_child!(cursor, {
                    self.delete(cursor);
                });
                false
            }
            Kind::Return => {
                each_child!(cursor, {
                    if self.kind(cursor) != Kind::Other && self.kind(cursor) != Kind::Comment {
                        let value = self.expression(cursor, self.function != NONE, EdgeKind::References);
                        if value != NONE && self.function != NONE {
                            self.raw.functions[self.function as usize].returned.push(value);
                        }
                    }
                });
                true
            }
            Kind::Raise => {
                self.expressions(cursor);
                true
            }
            Kind::Break | Kind::Continue => true,
            Kind::Assert => {
                self.instance_test = None;
                self.expressions(cursor);
                self.narrow();
                false
            }
            Kind::TypeAlias => {
                self.type_alias(cursor);
                false
            }
            Kind::FutureImport | Kind::Pass => false,
            // A clause or block outside its statement: what remains around an error.
            Kind::Block => self.block(cursor, None),
            _ => {
                self.expressions(cursor);
                false
            }
        }
    }

    /// Walks every child as an expression.
    pub(super) fn expressions(&mut self, cursor: &mut TreeCursor<'_>) {
        each_child!(cursor, {
            self.expression(cursor, false, EdgeKind::References);
        });
    }

    fn delete(&mut self, cursor: &mut TreeCursor<'_>) {
        match self.kind(cursor) {
            Kind::Other | Kind::Comment => {}
            Kind::Identifier => {
                let name = self.name_of(&cursor.node());
                let start = cursor.node().start_byte() as u32;
                self.use_name(name, start, EdgeKind::References, false);
                self.bind(name, RawRole::Deleted, NONE, NOTHING);
            }
            Kind::Attribute => {
                let deleted = self.expression(cursor, true, EdgeKind::References);
                if deleted != NONE
                    && let RawExpression::Attribute(object, name) = self.raw.expressions[deleted as usize]
                {
                    // Nothing is known of a module or class afterwards that has lost the attribute.
                    self.raw.writes.push((object, name));
                }
            }
            // `del (a, b), [c, d]`
            Kind::ExpressionList | Kind::Tuple | Kind::List | Kind::Parenthesized if self.depth < MAX_DEPTH => {
                self.depth += 1;
                each_child!(cursor, {
                    self.delete(cursor);
                });
                self.depth -= 1;
            }
            _ => {
                self.expression(cursor, false, EdgeKind::References);
            }
        }
    }

    fn docstring(&mut self, statement: &Node<'_>, definition: u32) {
        let Some(string) = statement.named_child(0) else { return };
        if self.node_kind(&string) != Kind::String {
            return;
        }
        let (Some(first), Some(last)) = (string.child(0), string.child(string.child_count().saturating_sub(1))) else {
            return;
        };
        let Some(text) = self.text.get(first.end_byte()..last.start_byte()) else { return };
        let text = clean_docstring(text);
        if !text.is_empty() {
            self.raw.definitions[definition as usize].docstring = Some(text.into());
        }
    }
}
