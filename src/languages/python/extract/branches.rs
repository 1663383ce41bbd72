//! Statements whose blocks may or may not run: `if`, loops, `try` and `with`.
//!
//! Must not know what is bound in the blocks. Invariant: when a statement is done, the walk is back in the arm in which it began.

use smallvec::SmallVec;
use tree_sitter::{Node, TreeCursor};

use super::kinds::Kind;
use super::walk::{Given, Walk};
use crate::languages::grammar::each_child;
use crate::languages::python::raw::{NONE, RawExpression, RawRole, ScopeKind};
use crate::model::EdgeKind;

impl Walk<'_> {
    pub(super) fn if_statement(&mut self, cursor: &mut TreeCursor<'_>) -> bool {
        let statement = self.next_statement();
        let own_arm = self.arm;
        let mut arms: SmallVec<[u32; 4]> = SmallVec::new();
        let mut has_else = false;
        let mut checking = false;
        // What holds where the first condition is false.
        let mut otherwise = None;
        self.instance_test = None;
        each_child!(cursor, {
            match self.kind(cursor) {
                Kind::Other | Kind::Comment => {}
                Kind::Block => {
                    let arm = self.new_arm(own_arm, statement);
                    self.raw.arms[arm as usize].type_checking |= checking;
                    self.arm = arm;
                    self.narrow();
                    let ends = self.block(cursor, None);
                    self.raw.arms[arm as usize].terminates = ends;
                    self.arm = own_arm;
                    arms.push(arm);
                }
                Kind::ElifClause => {
                    self.instance_test = None;
                    let arm = self.new_arm(own_arm, statement);
                    each_child!(cursor, {
                        match self.kind(cursor) {
                            Kind::Other | Kind::Comment => {}
                            Kind::Block => {
                                self.arm = arm;
                                self.narrow();
                                let ends = self.block(cursor, None);
                                self.raw.arms[arm as usize].terminates = ends;
                                self.arm = own_arm;
                            }
                            _ => {
                                self.condition(cursor);
                            }
                        }
                    });
                    arms.push(arm);
                }
                Kind::ElseClause => {
                    has_else = true;
                    let arm = self.new_arm(own_arm, statement);
                    self.arm = arm;
                    if arms.len() == 1 {
                        self.instance_test = otherwise.take();
                        self.narrow();
                    }
                    each_child!(cursor, {
                        if self.kind(cursor) == Kind::Block {
                            let ends = self.block(cursor, None);
                            self.raw.arms[arm as usize].terminates = ends;
                        }
                    });
                    self.arm = own_arm;
                    arms.push(arm);
                }
                _ => {
                    self.last_name = NONE;
                    let kind = self.kind(cursor);
                    otherwise = self.condition(cursor);
                    checking = self.last_name == self.known.type_checking && matches!(kind, Kind::Identifier | Kind::Attribute);
                }
            }
        });
        self.instance_test = None;
        let open: SmallVec<[u32; 4]> = arms.iter().copied().filter(|arm| !self.raw.arms[*arm as usize].terminates).collect();
        if has_else && open.len() == 1 {
            self.raw.arms[open[0] as usize].certain = true;
        }
        if arms.len() == 1 && !has_else && open.is_empty() {
            self.instance_test = otherwise;
            self.narrow();
        }
        has_else && open.is_empty()
    }

    /// Walks a condition, keeping the test for a type that it makes when it is true; returns the one that it makes when it is false.
    fn condition(&mut self, cursor: &mut TreeCursor<'_>) -> Option<(u32, u32)> {
        let mut kind = self.kind(cursor);
        let node = cursor.node();
        let negated = kind == Kind::Not;
        if negated && let Some(inner) = node.child_by_field_name("argument") {
            kind = self.node_kind(&inner);
        }
        self.expression(cursor, false, EdgeKind::References);
        let holds = kind == Kind::Call || !negated && kind == Kind::BooleanOperator && is_conjunction(&node);
        let test = self.instance_test.take().filter(|_| holds);
        if negated {
            return test;
        }
        self.instance_test = test;
        None
    }

    /// Binds what a test for a type says about a local name, for the statements that follow in the arm.
    pub(super) fn narrow(&mut self) {
        if let Some((name, annotation)) = self.instance_test.take()
            && self.scope_kind() == ScopeKind::Function
            && annotation != NONE
        {
            self.bind(name, RawRole::Narrowed, NONE, Given { annotation, value: NONE });
        }
    }

    pub(super) fn loop_statement(&mut self, cursor: &mut TreeCursor<'_>, has_target: bool) -> bool {
        let own_arm = self.arm;
        let body_arm = self.new_arm(own_arm, NONE);
        self.raw.arms[body_arm as usize].repeats = true;
        if has_target {
            // The iterated expression comes before the target that it feeds.
            let mut value = NONE;
            if let Some(right) = cursor.node().child_by_field_name("right") {
                let id = right.id();
                each_child!(cursor, {
                    if cursor.node().id() == id {
                        value = self.expression(cursor, true, EdgeKind::References);
                    }
                });
            }
            if value != NONE {
                value = self.push_expression(RawExpression::Element(value));
            }
            if let Some(left) = cursor.node().child_by_field_name("left") {
                let id = left.id();
                self.arm = body_arm;
                each_child!(cursor, {
                    if cursor.node().id() == id {
                        self.target(cursor, Given { annotation: NONE, value });
                    }
                });
                self.arm = own_arm;
            }
        }
        let mut condition_done = has_target;
        each_child!(cursor, {
            match self.kind(cursor) {
                Kind::Block => {
                    self.arm = body_arm;
                    self.block(cursor, None);
                    self.arm = own_arm;
                }
                Kind::ElseClause => {
                    self.arm = self.new_arm(own_arm, NONE);
                    each_child!(cursor, {
                        if self.kind(cursor) == Kind::Block {
                            self.block(cursor, None);
                        }
                    });
                    self.arm = own_arm;
                }
                Kind::Other | Kind::Comment => {}
                _ if !condition_done => {
                    condition_done = true;
                    self.expression(cursor, false, EdgeKind::References);
                }
                _ => {}
            }
        });
        false
    }

    pub(super) fn try_statement(&mut self, cursor: &mut TreeCursor<'_>) -> bool {
        let statement = self.next_statement();
        let own_arm = self.arm;
        let tried = self.new_arm(own_arm, NONE);
        self.raw.arms[tried as usize].choice = statement;
        let mut tried_ends = false;
        let mut handlers = 0;
        let mut handlers_end = true;
        let mut finally_ends = false;
        each_child!(cursor, {
            match self.kind(cursor) {
                Kind::Block => {
                    self.arm = tried;
                    tried_ends = self.block(cursor, None);
                    self.arm = own_arm;
                }
                Kind::ExceptClause | Kind::ExceptGroupClause => {
                    handlers += 1;
                    let arm = self.new_arm(own_arm, statement);
                    self.arm = arm;
                    let mut ends = false;
                    each_child!(cursor, {
                        match self.kind(cursor) {
                            Kind::Block => ends = self.block(cursor, None),
                            Kind::Other | Kind::Comment => {}
                            Kind::AsPattern => {
                                self.in_handler = true;
                                self.as_pattern(cursor, RawExpression::Instance);
                                self.in_handler = false;
                            }
                            _ => {
                                self.expression(cursor, false, EdgeKind::References);
                            }
                        }
                    });
                    self.raw.arms[arm as usize].terminates = ends;
                    handlers_end &= ends;
                    self.arm = own_arm;
                }
                Kind::ElseClause => {
                    // It runs only when the whole tried block has.
                    self.arm = self.new_arm(tried, NONE);
                    let arm = self.arm;
                    self.raw.arms[arm as usize].certain = true;
                    each_child!(cursor, {
                        if self.kind(cursor) == Kind::Block {
                            tried_ends |= self.block(cursor, None);
                        }
                    });
                    self.arm = own_arm;
                }
                Kind::FinallyClause => {
                    each_child!(cursor, {
                        if self.kind(cursor) == Kind::Block {
                            finally_ends = self.block(cursor, None);
                        }
                    });
                }
                _ => {}
            }
        });
        // What was bound before an exception is seen by the handlers, so the tried block does not count as one that never goes on.
        self.raw.arms[tried as usize].certain = handlers_end;
        finally_ends || tried_ends && handlers_end && handlers > 0
    }

    pub(super) fn with_statement(&mut self, cursor: &mut TreeCursor<'_>) -> bool {
        let mut ends = false;
        each_child!(cursor, {
            match self.kind(cursor) {
                Kind::WithClause => {
                    each_child!(cursor, {
                        if self.kind(cursor) == Kind::WithItem {
                            each_child!(cursor, {
                                match self.kind(cursor) {
                                    Kind::Other | Kind::Comment => {}
                                    Kind::AsPattern => self.as_pattern(cursor, RawExpression::Entered),
                                    _ => {
                                        self.expression(cursor, false, EdgeKind::References);
                                    }
                                }
                            });
                        }
                    });
                }
                // A context manager may swallow what a `raise` raises, but not a `return`; both are taken as ends.
                Kind::Block => ends = self.block(cursor, None),
                _ => {}
            }
        });
        ends
    }

    /// `value as target`; the target is given `wrap` of the value.
    fn as_pattern(&mut self, cursor: &mut TreeCursor<'_>, wrap: fn(u32) -> RawExpression) {
        let mut value = NONE;
        each_child!(cursor, {
            match self.kind(cursor) {
                Kind::Other | Kind::Comment => {}
                Kind::AsPatternTarget => {
                    if value != NONE {
                        value = self.push_expression(wrap(value));
                    }
                    self.target(cursor, Given { annotation: NONE, value });
                }
                kind => value = self.type_test(cursor, kind),
            }
        });
    }

    pub(super) fn next_statement(&mut self) -> u32 {
        self.statements += 1;
        self.statements
    }
}

/// Returns whether an operator of truth values is `and`.
pub(super) fn is_conjunction(node: &Node<'_>) -> bool {
    node.child_by_field_name("operator").is_some_and(|operator| operator.kind() == "and")
}
