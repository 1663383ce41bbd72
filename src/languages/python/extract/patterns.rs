//! `match` and the patterns of its cases.
//!
//! Must not know which case is taken. Invariant: a bare name in a pattern is bound, a dotted one or a class is used.

use tree_sitter::TreeCursor;

use super::kinds::Kind;
use super::walk::{Given, MAX_DEPTH, NOTHING, Walk, span_of};
use crate::languages::grammar::each_child;
use crate::languages::python::raw::{NONE, RawExpression, RawRole};
use crate::model::EdgeKind;

impl Walk<'_> {
    pub(super) fn match_statement(&mut self, cursor: &mut TreeCursor<'_>) {
        let statement = self.next_statement();
        let own_arm = self.arm;
        let mut subject = NONE;
        each_child!(cursor, {
            match self.kind(cursor) {
                Kind::Other | Kind::Comment => {}
                Kind::Identifier => {
                    subject = self.name_of(&cursor.node());
                    self.expression(cursor, false, EdgeKind::References);
                }
                Kind::Block => {
                    each_child!(cursor, {
                        if self.kind(cursor) == Kind::CaseClause {
                            let arm = self.new_arm(own_arm, statement);
                            self.arm = arm;
                            let mut ends = false;
                            each_child!(cursor, {
                                match self.kind(cursor) {
                                    Kind::Other | Kind::Comment => {}
                                    Kind::CasePattern => {
                                        let class = self.pattern(cursor);
                                        if subject != NONE && class != NONE {
                                            self.instance_test = Some((subject, class));
                                            self.narrow();
                                        }
                                    }
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

    /// Walks a `case` pattern: bare names are captured, dotted ones and class names are used. Returns the class that what it matches
    /// surely is of.
    fn pattern(&mut self, cursor: &mut TreeCursor<'_>) -> u32 {
        if self.depth >= MAX_DEPTH {
            return NONE;
        }
        self.depth += 1;
        let mut matched = NONE;
        match self.kind(cursor) {
            Kind::DottedName => self.dotted_pattern(cursor, true),
            Kind::Identifier => self.capture(cursor, NOTHING),
            Kind::ClassPattern => {
                let mut class = true;
                each_child!(cursor, {
                    match self.kind(cursor) {
                        Kind::DottedName if class => {
                            class = false;
                            matched = self.dotted_pattern_value(cursor);
                        }
                        _ => {
                            self.pattern(cursor);
                        }
                    }
                });
            }
            Kind::AsPattern => {
                each_child!(cursor, {
                    match self.kind(cursor) {
                        Kind::Identifier => self.capture(cursor, Given { annotation: matched, value: NONE }),
                        Kind::Other | Kind::Comment => {}
                        _ => matched = self.pattern(cursor),
                    }
                });
            }
            Kind::UnionPattern => {
                each_child!(cursor, {
                    if !matches!(self.kind(cursor), Kind::Other | Kind::Comment) {
                        let one = self.pattern(cursor);
                        matched = self.either(matched, one);
                    }
                });
            }
            Kind::CasePattern => {
                each_child!(cursor, {
                    let one = self.pattern(cursor);
                    if one != NONE {
                        matched = one;
                    }
                });
            }
            Kind::KeywordPattern => {
                let mut keyword = true;
                each_child!(cursor, {
                    match self.kind(cursor) {
                        Kind::Identifier if keyword => keyword = false,
                        _ => {
                            self.pattern(cursor);
                        }
                    }
                });
            }
            Kind::SplatPattern | Kind::DictPattern | Kind::ListPattern | Kind::TuplePattern => {
                each_child!(cursor, {
                    self.pattern(cursor);
                });
            }
            _ => {}
        }
        self.depth -= 1;
        matched
    }

    fn capture(&mut self, cursor: &mut TreeCursor<'_>, given: Given) {
        let node = cursor.node();
        let name = self.name_of(&node);
        if name != self.known.underscore {
            let declaration = self.declare_variable(name, span_of(&node), node.start_byte() as u32);
            self.bind(name, RawRole::Variable, declaration, given);
        }
    }

    fn dotted_pattern(&mut self, cursor: &mut TreeCursor<'_>, captures: bool) {
        if cursor.node().named_child_count() == 1 && captures {
            if cursor.goto_first_child() {
                self.pattern(cursor);
                cursor.goto_parent();
            }
            return;
        }
        self.dotted_pattern_value(cursor);
    }

    fn dotted_pattern_value(&mut self, cursor: &mut TreeCursor<'_>) -> u32 {
        let count = cursor.node().named_child_count();
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
        value
    }
}
