//! Patterns: the names they bind, and what they refer to.
//!
//! Must not resolve. Invariant: a name that begins with a capital is never bound, for the language lets no binding hide a constant, and
//! nobody writes variables so.

use tree_sitter::TreeCursor;

use super::paths::PathUse;
use super::{Kind, Walk};
use crate::languages::grammar::each_child;
use crate::languages::outline::Side;
use crate::model::EdgeKind;
use crate::model::facts::{Expression, Handle, Space};

fn is_constant_like(text: &str) -> bool {
    text.chars().next().is_some_and(char::is_uppercase)
}

impl<'s> Walk<'s> {
    /// Walks a pattern that takes `value` apart.
    pub(super) fn pattern(&mut self, cursor: &mut TreeCursor<'_>, value: Option<Handle>) {
        self.deeper(|this| {
            this.pattern_inner(cursor, value);
            Some(())
        });
    }

    fn pattern_inner(&mut self, cursor: &mut TreeCursor<'_>, value: Option<Handle>) {
        let node = cursor.node();
        match self.kind(node) {
            Kind::Identifier => {
                let text = self.name_of(node);
                if is_constant_like(text) {
                    self.name_use(node, PathUse::value(EdgeKind::References));
                } else {
                    self.bind_local(text, value);
                }
            }
            Kind::ScopedIdentifier => drop(self.path(node, PathUse::value(EdgeKind::References))),
            Kind::MutPattern | Kind::RefPattern | Kind::OrPattern | Kind::MatchPattern => each_child!(cursor, {
                if cursor.field_id() == self.fields.condition {
                    self.condition(cursor);
                } else {
                    self.pattern(cursor, value);
                }
            }),
            Kind::ReferencePattern => {
                let inner = value.map(|value| self.push(Side::Body, Expression::Pointer(value)));
                each_child!(cursor, {
                    self.pattern(cursor, inner);
                });
            }
            Kind::CapturedPattern => {
                let mut first = true;
                each_child!(cursor, {
                    if first && self.kind(cursor.node()) == Kind::Identifier {
                        let text = self.name_of(cursor.node());
                        self.bind_local(text, value);
                        first = false;
                    } else {
                        self.pattern(cursor, value);
                    }
                });
            }
            Kind::TuplePattern => self.places(cursor, value),
            Kind::TupleStructPattern => {
                let mut taken = None;
                if let Some(path) = self.field(cursor, self.fields.type_) {
                    let pattern = self.path(path, PathUse::value(EdgeKind::References));
                    if let (Some(value), Some(pattern)) = (value, pattern) {
                        taken = Some(self.push(Side::Body, Expression::Taken { value, pattern }));
                    }
                }
                self.places(cursor, taken);
            }
            Kind::StructPattern => {
                let mut taken = None;
                if let Some(path) = self.field(cursor, self.fields.type_) {
                    let usage = PathUse { side: Side::Body, space: Space::Type, kind: EdgeKind::References, qualifier: false };
                    let pattern = self.path(path, usage);
                    if let (Some(value), Some(pattern)) = (value, pattern) {
                        taken = Some(self.push(Side::Body, Expression::Taken { value, pattern }));
                    }
                }
                each_child!(cursor, {
                    if self.kind(cursor.node()) == Kind::FieldPattern {
                        self.field_pattern(cursor, taken);
                    }
                });
            }
            Kind::SlicePattern => {
                let element = value.map(|value| self.push(Side::Body, Expression::Element(value)));
                each_child!(cursor, {
                    let inner = if self.kind(cursor.node()) == Kind::CapturedPattern { None } else { element };
                    self.pattern(cursor, inner);
                });
            }
            Kind::RangePattern => each_child!(cursor, {
                let node = cursor.node();
                if matches!(self.kind(node), Kind::Identifier | Kind::ScopedIdentifier) {
                    self.path(node, PathUse::value(EdgeKind::References));
                }
            }),
            Kind::GenericPattern => each_child!(cursor, {
                match self.kind(cursor.node()) {
                    Kind::TypeArguments => drop(self.type_arguments(cursor, Side::Body)),
                    _ => self.pattern(cursor, None),
                }
            }),
            Kind::MacroInvocation => drop(self.macro_invocation(cursor)),
            Kind::ConstBlock => drop(self.expression(cursor)),
            _ => {}
        }
    }

    /// Walks the patterns of the places of a tuple.
    fn places(&mut self, cursor: &mut TreeCursor<'_>, value: Option<Handle>) {
        let mut place = 0;
        // Behind `..` the places are counted from the end.
        let mut known = true;
        each_child!(cursor, {
            let node = cursor.node();
            if cursor.field_id() != self.fields.type_ || self.fields.type_.is_none() {
                match self.kind(node) {
                    Kind::LineComment | Kind::BlockComment => {}
                    Kind::RemainingFields => known = false,
                    Kind::Other if node.kind() != "_" => {}
                    _ => {
                        let part = value.filter(|_| known).map(|value| self.push(Side::Body, Expression::Part(value, place)));
                        self.pattern(cursor, part);
                        place += 1;
                    }
                }
            }
        });
    }

    fn field_pattern(&mut self, cursor: &mut TreeCursor<'_>, taken: Option<Handle>) {
        let Some(name) = self.field(cursor, self.fields.name) else { return };
        let text = self.name_of(name);
        let id = self.body.name(text);
        let value = taken.map(|object| self.push(Side::Body, Expression::Attribute { object, name: id }));
        if self.kind(name) == Kind::ShorthandField {
            self.bind_local(text, value);
            return;
        }
        each_child!(cursor, {
            if cursor.field_id() == self.fields.pattern {
                self.pattern(cursor, value);
            }
        });
    }
}
