//! `match` and the patterns of its cases.
//!
//! Must not know which case is taken. Invariant: a bare name in a pattern is bound, a dotted one or a class is used.

use tree_sitter::TreeCursor;

use super::kinds::Kind;
use super::walk::{MAX_DEPTH, NOTHING, Walk, span_of};
use crate::languages::grammar::each_child;
use crate::languages::python::raw::{NONE, RawExpression, RawRole};
use crate::model::EdgeKind;

impl Walk<'_> {
    pub(super) fn match_statement(&mut self, cursor: &mut TreeCursor<'_>) {
        let statement = self.next_statement();
        let own_arm = self.arm;
        each_child!(cursor, {
            match self.kind(cursor) {
                Kind::Other | Kind::Comment => {}
                Kind::Block => {
                    each_child!(cursor, {
                        if self.kind(cursor) == Kind::CaseClause {
                            let arm = self.new_arm(own_arm, statement);
                            self.arm = arm;
                            let mut ends = false;
                            each_child!(cursor, {
                                match self.kind(cursor) {
                                    Kind::Other | Kind::Comment => {}
                                    Kind::CasePattern => self.pattern(cursor),
                                    Kind::IfClause => self.expressions(cursor),
                                    Kind::Block => ends = self.block(cursor, None),
                                    _ => {}
                                }
                            });
                            self.raw.arms[arm as usize].terminates = ends;
                            self.arm = own_arm;
                        }
                    });
                }
                _ => {
                    self.expression(cursor, false, EdgeKind::References);
                }
            }
        });
    }

    /// Walks a `case` pattern: bare names are captured, dotted ones and class names are used.
    fn pattern(&mut self, cursor: &mut TreeCursor<'_>) {
        if self.depth >= MAX_DEPTH {
            return;
        }
        self.depth += 1;
        match self.kind(cursor) {
            Kind::DottedName => self.dotted_pattern(cursor, true),
            Kind::Identifier => {
                let node = cursor.node();
                let name = self.name_of(&node);
                if name != self.known.underscore {
                    let declaration = self.declare_variable(name, span_of(&node), node.start_byte() as u32);
                    self.bind(name, RawRole::Variable, declaration, NOTHING);
                }
            }
            Kind::ClassPattern => {
                let mut class = true;
                each_child!(cursor, {
                    match self.kind(cursor) {
                        Kind::DottedName if class => {
                            class = false;
                            self.dotted_pattern(cursor, false);
                        }
                        _ => self.pattern(cursor),
                    }
                });
            }
            Kind::KeywordPattern => {
                let mut keyword = true;
                each_child!(cursor, {
                    match self.kind(cursor) {
                        Kind::Identifier if keyword => keyword = false,
                        _ => self.pattern(cursor),
                    }
                });
            }
            Kind::CasePattern
            | Kind::AsPattern
            | Kind::SplatPattern
            | Kind::UnionPattern
            | Kind::DictPattern
            | Kind::ListPattern
            | Kind::TuplePattern => {
                each_child!(cursor, {
                    self.pattern(cursor);
                });
            }
            _ => {}
        }
        self.depth -= 1;
    }

    fn dotted_pattern(&mut self, cursor: &mut TreeCursor<'_>, captures: bool) {
        let node = cursor.node();
        let count = node.named_child_count();
        if count == 1 && captures {
            if cursor.goto_first_child() {
                self.pattern(cursor);
                cursor.goto_parent();
            }
            return;
        }
        let mut value = NONE;
        let mut index = 0;
        each_child!(cursor, {
            if self.kind(cursor) == Kind::Identifier {
                index += 1;
                let token = cursor.node();
                let name = self.name_of(&token);
                let start = token.start_byte() as u32;
                if index == 1 {
                    let used = self.use_name(name, start, EdgeKind::References, count > 1);
                    value = self.push_expression(RawExpression::Name(used));
                } else {
                    value = self.member(value, name, start, EdgeKind::References, index < count, true);
                }
            }
        });
    }
}
