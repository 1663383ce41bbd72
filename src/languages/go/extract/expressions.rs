//! Expressions: what they refer to, and what of them is evidence for a type.
//!
//! Must not resolve. Invariant: chains (`a.b(c).d[e] + f`) are walked in a loop from their innermost part outwards, however long.

use smallvec::SmallVec;
use tree_sitter::TreeCursor;

use super::{Kind, Walk};
use crate::languages::grammar::each_child;
use crate::languages::outline::Side;
use crate::model::EdgeKind;
use crate::model::facts::{Expression, Handle, Subject, Use};

/// How an expression is used by what is around it.
#[derive(Clone, Copy)]
struct Usage {
    kind: EdgeKind,
    /// It only leads to a member, or to what is called.
    qualifier: bool,
    /// Where its evidence is wanted.
    wanted: Option<Side>,
}

/// One expression around another in a chain.
#[derive(Clone, Copy)]
struct Link {
    kind: Kind,
    /// How it is used.
    usage: Usage,
}

impl<'s> Walk<'s> {
    pub(super) fn is_expression(kind: Kind) -> bool {
        matches!(
            kind,
            Kind::Identifier
                | Kind::Selector
                | Kind::Call
                | Kind::Index
                | Kind::Slice
                | Kind::TypeAssertion
                | Kind::TypeConversion
                | Kind::TypeInstantiation
                | Kind::CompositeLiteral
                | Kind::FunctionLiteral
                | Kind::Unary
                | Kind::Binary
                | Kind::Parenthesized
                | Kind::InterpretedString
                | Kind::RawString
                | Kind::Int
                | Kind::Float
                | Kind::Imaginary
                | Kind::Rune
                | Kind::Nil
                | Kind::True
                | Kind::False
                | Kind::Iota
        )
    }

    /// Walks an expression, or a list of several; returns the evidence of each where that is wanted.
    pub(super) fn expressions(&mut self, cursor: &mut TreeCursor<'_>, wanted: Option<Side>) -> Vec<Option<Handle>> {
        if self.kind(cursor.node()) != Kind::ExpressionList {
            return vec![self.expression(cursor, wanted)];
        }
        let mut found = Vec::new();
        each_child!(cursor, {
            if !matches!(self.kind(cursor.node()), Kind::Other | Kind::Comment) {
                found.push(self.expression(cursor, wanted));
            }
        });
        found
    }

    /// Walks an expression or a type; returns its evidence where that is wanted.
    pub(super) fn expression(&mut self, cursor: &mut TreeCursor<'_>, wanted: Option<Side>) -> Option<Handle> {
        self.used(cursor, Usage { kind: EdgeKind::References, qualifier: false, wanted })
    }

    fn used(&mut self, cursor: &mut TreeCursor<'_>, usage: Usage) -> Option<Handle> {
        self.deeper(|this| this.chain(cursor, usage))
    }

    fn chain(&mut self, cursor: &mut TreeCursor<'_>, mut usage: Usage) -> Option<Handle> {
        let mut links: SmallVec<[Link; 8]> = SmallVec::new();
        loop {
            let kind = self.kind(cursor.node());
            let inner = match kind {
                Kind::Selector => {
                    Usage { kind: EdgeKind::References, qualifier: true, wanted: usage.wanted.or(Some(Side::Body)) }
                }
                Kind::Call => Usage { kind: EdgeKind::Calls, qualifier: false, wanted: usage.wanted },
                // `F[T](x)` calls F, `m[k](x)` does not call m: which it is shows when the name is known.
                Kind::Index => Usage { kind: usage.kind, qualifier: true, wanted: usage.wanted },
                Kind::Slice => Usage { kind: EdgeKind::References, qualifier: false, wanted: usage.wanted },
                Kind::TypeAssertion => Usage { kind: EdgeKind::References, qualifier: false, wanted: None },
                Kind::Binary => Usage { kind: EdgeKind::References, qualifier: false, wanted: usage.wanted },
                _ => break,
            };
            if !cursor.goto_first_child() {
                break;
            }
            links.push(Link { kind, usage });
            usage = inner;
            while matches!(self.kind(cursor.node()), Kind::Comment) && cursor.goto_next_sibling() {}
        }
        let mut evidence = self.innermost(cursor, usage);
        while let Some(link) = links.pop() {
            evidence = self.link(cursor, link, evidence);
            cursor.goto_parent();
        }
        evidence
    }

    fn entry(&mut self, side: Side, expression: Expression) -> Handle {
        self.outline(side).expression(side, expression)
    }

    /// Walks what follows the operand in one link of a chain, the cursor being on the operand.
    fn link(&mut self, cursor: &mut TreeCursor<'_>, link: Link, operand: Option<Handle>) -> Option<Handle> {
        let Usage { kind, qualifier, wanted } = link.usage;
        let mut result = None;
        match link.kind {
            Kind::Selector => {
                while cursor.goto_next_sibling() {
                    if cursor.field_id() == self.fields.field {
                        result = self.member(cursor.node(), kind, qualifier, operand, wanted);
                    }
                }
                return result;
            }
            Kind::Call => {
                let mut callee = operand;
                let mut arguments = None;
                while cursor.goto_next_sibling() {
                    if cursor.field_id() == self.fields.type_arguments {
                        let types = self.type_list(cursor, wanted);
                        if let (Some(side), Some(object)) = (wanted, callee) {
                            callee = Some(self.entry(side, Expression::Subscript { object, argument: types }));
                        }
                    } else if cursor.field_id() == self.fields.arguments {
                        arguments = self.arguments(cursor, wanted);
                    }
                }
                let (side, callee) = (wanted?, callee?);
                return Some(self.entry(side, Expression::Invocation { callee, arguments }));
            }
            Kind::Index => {
                let mut argument = None;
                while cursor.goto_next_sibling() {
                    if !matches!(self.kind(cursor.node()), Kind::Other | Kind::Comment) {
                        argument = self.expression(cursor, wanted);
                    }
                }
                let (side, object) = (wanted?, operand?);
                return Some(self.entry(side, Expression::Subscript { object, argument }));
            }
            Kind::Slice => {
                while cursor.goto_next_sibling() {
                    if !matches!(self.kind(cursor.node()), Kind::Other | Kind::Comment) {
                        self.expression(cursor, None);
                    }
                }
                return operand;
            }
            Kind::TypeAssertion => {
                let mut type_ = None;
                while cursor.goto_next_sibling() {
                    if cursor.field_id() == self.fields.type_ {
                        type_ = self.type_(cursor, wanted);
                    }
                }
                let (side, type_) = (wanted?, type_?);
                return Some(self.entry(side, Expression::Instance(type_)));
            }
            Kind::Binary => {
                let mut compares = false;
                while cursor.goto_next_sibling() {
                    if cursor.field_id() == self.fields.operator {
                        compares = matches!(cursor.node().kind(), "==" | "!=" | "<" | "<=" | ">" | ">=" | "&&" | "||");
                    } else if cursor.field_id() == self.fields.right {
                        result = self.expression(cursor, wanted);
                    }
                }
                let side = wanted?;
                if compares {
                    return Some(self.entry(side, Expression::Literal));
                }
                return match (operand, result) {
                    (Some(left), Some(right)) => Some(self.entry(side, Expression::Either(left, right))),
                    (left, right) => left.or(right),
                };
            }
            _ => {}
        }
        result
    }

    /// Walks the arguments of a call; the first of `new` and `make` is a type.
    fn arguments(&mut self, cursor: &mut TreeCursor<'_>, wanted: Option<Side>) -> Option<Handle> {
        let mut parts: SmallVec<[Option<Handle>; 6]> = SmallVec::new();
        each_child!(cursor, {
            match self.kind(cursor.node()) {
                Kind::Other | Kind::Comment => {}
                Kind::VariadicArgument => {
                    // A list given whole: its place counts as one element.
                    let mut list = None;
                    each_child!(cursor, {
                        if !matches!(self.kind(cursor.node()), Kind::Other | Kind::Comment) {
                            list = self.expression(cursor, wanted);
                        }
                    });
                    let element = match (wanted, list) {
                        (Some(side), Some(list)) => Some(self.entry(side, Expression::Element(list))),
                        _ => None,
                    };
                    parts.push(element);
                }
                _ => parts.push(self.expression(cursor, wanted)),
            }
        });
        self.list(wanted?, &parts)
    }

    fn innermost(&mut self, cursor: &mut TreeCursor<'_>, usage: Usage) -> Option<Handle> {
        let Usage { kind, qualifier, wanted } = usage;
        let node = cursor.node();
        match self.kind(node) {
            Kind::Identifier => self.name_use(node, kind, qualifier, wanted),
            Kind::Parenthesized => {
                let mut inner = None;
                each_child!(cursor, {
                    if !matches!(self.kind(cursor.node()), Kind::Other | Kind::Comment) {
                        inner = self.used(cursor, usage);
                    }
                });
                inner
            }
            Kind::Unary => {
                let mut operator = "";
                let mut inner = None;
                each_child!(cursor, {
                    if cursor.field_id() == self.fields.operator {
                        operator = cursor.node().kind();
                    } else if cursor.field_id() == self.fields.operand {
                        inner = self.expression(cursor, wanted);
                    }
                });
                let (side, inner) = (wanted?, inner?);
                Some(match operator {
                    "&" => self.entry(side, Expression::Address(inner)),
                    "*" => self.entry(side, Expression::Pointer(inner)),
                    "<-" => self.entry(side, Expression::Element(inner)),
                    "!" => self.entry(side, Expression::Literal),
                    _ => inner,
                })
            }
            Kind::CompositeLiteral => {
                // The side on which the type is known for its keys, even when nobody asks for the literal.
                let side = wanted.unwrap_or(Side::Body);
                let mut type_ = None;
                each_child!(cursor, {
                    if cursor.field_id() == self.fields.type_ {
                        type_ = self.type_(cursor, Some(side));
                    } else if cursor.field_id() == self.fields.body {
                        self.literal(cursor, type_);
                    }
                });
                let (side, type_) = (wanted?, type_?);
                Some(self.entry(side, Expression::Instance(type_)))
            }
            Kind::FunctionLiteral => {
                let side = wanted.unwrap_or(Side::Body);
                self.scopes.enter();
                let signature = self.signature(cursor, side);
                each_child!(cursor, {
                    if cursor.field_id() == self.fields.body {
                        self.statements(cursor);
                    }
                });
                self.scopes.leave();
                wanted.map(|side| self.entry(side, Expression::Signature(signature)))
            }
            Kind::TypeConversion => {
                let mut type_ = None;
                each_child!(cursor, {
                    if cursor.field_id() == self.fields.type_ {
                        type_ = self.type_(cursor, wanted);
                    } else if cursor.field_id() == self.fields.operand {
                        self.expression(cursor, None);
                    }
                });
                let (side, type_) = (wanted?, type_?);
                Some(self.entry(side, Expression::Instance(type_)))
            }
            Kind::TypeInstantiation => {
                let mut object = None;
                let mut arguments: SmallVec<[Option<Handle>; 4]> = SmallVec::new();
                each_child!(cursor, {
                    if cursor.field_id() == self.fields.type_ {
                        object = self.type_used(cursor, usage);
                    } else if Self::is_type_kind(self.kind(cursor.node())) {
                        arguments.push(self.type_(cursor, wanted));
                    }
                });
                let (side, object) = (wanted?, object?);
                let argument = self.list(side, &arguments);
                Some(self.entry(side, Expression::Subscript { object, argument }))
            }
            Kind::InterpretedString
            | Kind::RawString
            | Kind::Int
            | Kind::Float
            | Kind::Imaginary
            | Kind::Rune
            | Kind::True
            | Kind::False
            | Kind::Iota => wanted.map(|side| self.entry(side, Expression::Literal)),
            Kind::Nil => None,
            Kind::LiteralValue => None,
            kind if Self::is_type_kind(kind) => self.type_(cursor, wanted),
            _ => None,
        }
    }

    /// Walks a type that stands as a callee.
    fn type_used(&mut self, cursor: &mut TreeCursor<'_>, usage: Usage) -> Option<Handle> {
        match self.kind(cursor.node()) {
            Kind::TypeIdentifier => self.name_use(cursor.node(), usage.kind, true, usage.wanted),
            _ => self.type_(cursor, usage.wanted),
        }
    }

    /// Walks the braces of a literal of a type.
    fn literal(&mut self, cursor: &mut TreeCursor<'_>, type_: Option<Handle>) {
        self.deeper(|this| {
            each_child!(cursor, {
                match this.kind(cursor.node()) {
                    Kind::LiteralElement => this.literal_element(cursor, type_, false),
                    Kind::KeyedElement => {
                        each_child!(cursor, {
                            if this.kind(cursor.node()) == Kind::LiteralElement {
                                let key = cursor.field_id() == this.fields.key;
                                this.literal_element(cursor, type_, key);
                            }
                        });
                    }
                    _ => {}
                }
            });
            Some(())
        });
    }

    fn literal_element(&mut self, cursor: &mut TreeCursor<'_>, type_: Option<Handle>, key: bool) {
        each_child!(cursor, {
            let node = cursor.node();
            match self.kind(node) {
                Kind::Other | Kind::Comment => {}
                Kind::LiteralValue => {
                    // Its type is left out: that of the elements, or of the keys.
                    let inner = type_.map(|type_| {
                        let side = if type_.in_body() { Side::Body } else { Side::Surface };
                        self.entry(side, if key { Expression::Key(type_) } else { Expression::Element(type_) })
                    });
                    self.literal(cursor, inner);
                }
                Kind::Identifier if key => self.literal_key(node, type_),
                _ => drop(self.expression(cursor, None)),
            }
        });
    }

    /// Refers to a name that is a field, unless the literal's type has keys.
    fn literal_key(&mut self, node: tree_sitter::Node<'_>, type_: Option<Handle>) {
        let text = self.text_of(node);
        if self.scopes.find(text).is_some() || text == "_" {
            self.local_uses += 1;
            return;
        }
        let name = self.body.name(text);
        let used = Use::Free(Handle::of_body(name.0 as usize));
        if let Some(literal) = type_ {
            self.refer(node.start_byte(), EdgeKind::References, false, Subject::Key { literal, used });
        }
    }
}
