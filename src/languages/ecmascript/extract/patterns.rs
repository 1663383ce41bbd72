//! Patterns: names bound or assigned by destructuring.
//!
//! Must not know where the values come from. Invariant: every identifier that a pattern binds is bound once.

use super::names::NewBinding;
use super::*;

impl<'s, 't> Walk<'s, 't> {
    /// Binds the names of a pattern; `annotation` and `value` tell about the whole.
    pub(super) fn pattern(&mut self, pattern: Child<'t>, scope: u32, role: RawRole, annotation: u32, value: u32) {
        let fields = &self.grammar.fields;
        match pattern.kind {
            Kind::Identifier | Kind::ShorthandPattern | Kind::Undefined => {
                let name = self.name(self.text(pattern.node));
                self.bind_pattern_name(pattern.node, name, scope, role, annotation, value);
            }
            Kind::AssignmentPattern | Kind::ObjectAssignmentPattern => {
                let children = self.children(pattern.node);
                let default =
                    children.field(fields.right).map_or(NONE, |right| self.unexported(|walk| walk.expression(right.node)));
                let Some(left) = children.field(fields.left) else { return };
                let value = self.either(value, default);
                self.pattern(left, scope, role, annotation, value);
            }
            Kind::ObjectPattern => {
                let whole = self.whole(annotation, value);
                for child in self.children(pattern.node).named() {
                    match child.kind {
                        Kind::ShorthandPattern => {
                            let name = self.name(self.text(child.node));
                            let part = self.attribute(whole, name);
                            self.bind_pattern_name(child.node, name, scope, role, NONE, part);
                            self.refer_property(child.node, whole, name);
                        }
                        Kind::ObjectAssignmentPattern => {
                            let inner = self.children(child.node);
                            let default = inner
                                .field(fields.right)
                                .map_or(NONE, |right| self.unexported(|walk| walk.expression(right.node)));
                            let Some(left) = inner.field(fields.left) else { continue };
                            let mut part = NONE;
                            if left.kind == Kind::ShorthandPattern {
                                let name = self.name(self.text(left.node));
                                part = self.attribute(whole, name);
                                self.refer_property(left.node, whole, name);
                            }
                            let part = self.either(part, default);
                            self.deeper(|walk| walk.pattern(left, scope, role, NONE, part));
                        }
                        Kind::PairPattern => {
                            let inner = self.children(child.node);
                            let (Some(key), Some(target)) = (inner.field(fields.key), inner.field(fields.value)) else {
                                continue;
                            };
                            let part = match key.kind {
                                Kind::PropertyIdentifier | Kind::String => {
                                    let name = self.name(self.string(key.node));
                                    self.refer_property(key.node, whole, name);
                                    self.attribute(whole, name)
                                }
                                Kind::ComputedName => {
                                    self.unexported(|walk| walk.computed_name(key.node));
                                    NONE
                                }
                                _ => NONE,
                            };
                            self.deeper(|walk| walk.pattern(target, scope, role, NONE, part));
                        }
                        Kind::RestPattern => self.deeper(|walk| walk.pattern(child, scope, role, NONE, NONE)),
                        _ => {}
                    }
                }
            }
            Kind::ArrayPattern => {
                let whole = self.whole(annotation, value);
                let mut number = 0;
                for child in self.children(pattern.node).0 {
                    if !child.node.is_named() {
                        number += u32::from(child.node.kind() == ",");
                        continue;
                    }
                    let part = if whole == NONE { NONE } else { self.push_expression(RawExpression::Part(whole, number)) };
                    self.deeper(|walk| walk.pattern(child, scope, role, NONE, part));
                }
            }
            Kind::RestPattern => {
                // Of a parameter's type the rest keeps the whole: an array.
                for child in self.children(pattern.node).named() {
                    self.deeper(|walk| walk.pattern(child, scope, role, annotation, NONE));
                }
            }
            _ => {}
        }
    }

    fn bind_pattern_name(&mut self, node: Node<'t>, name: u32, scope: u32, role: RawRole, annotation: u32, value: u32) {
        let new = NewBinding { annotation, value, ..NewBinding::new(role, VALUE) };
        if role == RawRole::Variable {
            let kind = if self.constant { SymbolKind::Constant } else { SymbolKind::Variable };
            self.bind_variable(node, name, scope, kind, new);
        } else {
            self.bind(scope, name, new);
        }
    }

    /// Returns the evidence for the whole of what is taken apart.
    fn whole(&mut self, annotation: u32, value: u32) -> u32 {
        if annotation == NONE { value } else { self.push_expression(RawExpression::Instance(annotation)) }
    }

    pub(super) fn attribute(&mut self, object: u32, name: u32) -> u32 {
        if object == NONE { NONE } else { self.push_expression(RawExpression::Attribute(object, name)) }
    }

    /// A property that a pattern reads is a use of it.
    fn refer_property(&mut self, node: Node<'t>, whole: u32, name: u32) {
        if whole != NONE && whole != self.literal {
            self.refer(node, EdgeKind::References, false, RawSubject::Member(whole, name));
        }
    }

    /// Notes what a pattern assigns to, where it binds nothing.
    pub(super) fn assign_pattern(&mut self, target: Child<'t>, value: u32) {
        let fields = &self.grammar.fields;
        match target.kind {
            Kind::Identifier | Kind::ShorthandPattern => {
                let name = self.name(self.text(target.node));
                let used = self.add_use(name, VALUE);
                self.raw.assignments.push((used, value));
                self.refer(target.node, EdgeKind::References, false, RawSubject::Name(used));
            }
            Kind::ObjectPattern | Kind::ArrayPattern | Kind::RestPattern => {
                for child in self.children(target.node).named() {
                    self.deeper(|walk| walk.assign_pattern(child, NONE));
                }
            }
            Kind::PairPattern => {
                let children = self.children(target.node);
                if let Some(value) = children.field(fields.value) {
                    self.deeper(|walk| walk.assign_pattern(value, NONE));
                }
            }
            Kind::AssignmentPattern | Kind::ObjectAssignmentPattern => {
                let children = self.children(target.node);
                if let Some(right) = children.field(fields.right) {
                    self.expression(right.node);
                }
                if let Some(left) = children.field(fields.left) {
                    self.deeper(|walk| walk.assign_pattern(left, NONE));
                }
            }
            Kind::Member => self.assign_member(target.node, value),
            _ => {
                self.expression(target.node);
            }
        }
    }

    /// Runs something that a pending `export` does not mean.
    pub(super) fn unexported<R>(&mut self, then: impl FnOnce(&mut Self) -> R) -> R {
        let (exported, wrapper) = (self.exported.take(), self.wrapper.take());
        let result = then(self);
        (self.exported, self.wrapper) = (exported, wrapper);
        result
    }
}
