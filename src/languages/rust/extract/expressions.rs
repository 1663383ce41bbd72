//! Blocks, statements and expressions: what they refer to, and what of them is evidence for a type.
//!
//! Must not resolve. Invariant: chains (`a.b(c)?.d[e] + f`) are walked in a loop from their innermost part outwards, however long.

use smallvec::SmallVec;
use tree_sitter::{Node, TreeCursor};

use super::paths::PathUse;
use super::scopes::Local;
use super::{Kind, Walk};
use crate::languages::grammar::each_child;
use crate::languages::outline::Side;
use crate::model::EdgeKind;
use crate::model::facts::{Expression, Handle, ItemScope, Primitive, Signature, Space, Subject};

/// Most arms whose evidence is kept.
const MAX_ARMS: usize = 4;

/// One expression around another in a chain.
#[derive(Clone, Copy)]
struct Link {
    kind: Kind,
    /// It is called by what is around it.
    called: bool,
}

/// The place of a closure among the arguments of a call.
#[derive(Clone, Copy)]
struct Place {
    callee: Handle,
    argument: u8,
}

impl<'s> Walk<'s> {
    fn is_blank(kind: Kind) -> bool {
        matches!(
            kind,
            Kind::Other | Kind::LineComment | Kind::BlockComment | Kind::Attribute | Kind::InnerAttribute | Kind::Label
        )
    }

    /// Walks a block; returns the evidence for its value.
    pub(super) fn block(&mut self, cursor: &mut TreeCursor<'_>) -> Option<Handle> {
        self.deeper(|this| {
            this.scopes.enter();
            let position = this.open_items(cursor);
            let mut last = None;
            each_child!(cursor, {
                let kind = this.kind(cursor.node());
                if !matches!(kind, Kind::Other | Kind::Label) && !this.is_prelude(cursor.node()) {
                    last = this.statement(cursor, kind);
                    this.take_pending();
                }
            });
            if let Some(position) = position {
                this.position = position;
            }
            this.scopes.leave();
            last
        })
    }

    /// Makes a scope for the items of a block, which all of it sees; returns the position to go back to.
    fn open_items(&mut self, cursor: &mut TreeCursor<'_>) -> Option<super::Position> {
        let mut names: Vec<(&'s str, bool, bool)> = Vec::new();
        let mut any = false;
        each_child!(cursor, {
            let node = cursor.node();
            let kind = self.kind(node);
            if Self::is_item(kind) {
                any = true;
                if kind == Kind::Use {
                    self.names_used(node, &mut names);
                } else if let Some(name) = self.field(cursor, self.fields.name) {
                    let is_type =
                        matches!(kind, Kind::Module | Kind::Struct | Kind::Union | Kind::Enum | Kind::Trait | Kind::TypeItem);
                    let is_value = matches!(kind, Kind::Function | Kind::Const | Kind::Static | Kind::Struct);
                    names.push((self.name_of(name), is_type, is_value));
                }
            }
        });
        if !any {
            return None;
        }
        for (name, is_type, is_value) in names {
            if is_type {
                self.scopes.bind(name, true, Local::Item);
            }
            if is_value {
                self.scopes.bind(name, false, Local::Item);
            }
        }
        let outer = self.position.clone();
        let scope = ItemScope { parent: Some(outer.scope), ..ItemScope::default() };
        self.position.scope = self.body.scope(Side::Body, scope);
        Some(outer)
    }

    /// Collects the names that an import binds.
    fn names_used(&self, node: Node<'_>, names: &mut Vec<(&'s str, bool, bool)>) {
        let mut open = vec![node];
        while let Some(node) = open.pop() {
            match self.kind(node) {
                Kind::UseAs => {
                    if let Some(alias) = node.child_by_field_name("alias") {
                        names.push((self.name_of(alias), true, true));
                    }
                }
                Kind::Identifier => names.push((self.name_of(node), true, true)),
                Kind::ScopedIdentifier => open.extend(node.child_by_field_name("name")),
                Kind::ScopedUseList => open.extend(node.child_by_field_name("list")),
                Kind::Use | Kind::UseList => {
                    let mut walk = node.walk();
                    open.extend(node.named_children(&mut walk));
                }
                _ => {}
            }
        }
    }

    fn statement(&mut self, cursor: &mut TreeCursor<'_>, kind: Kind) -> Option<Handle> {
        match kind {
            Kind::EmptyStatement => None,
            Kind::Let => {
                self.let_(cursor);
                None
            }
            Kind::ExpressionStatement => {
                let mut value = None;
                let mut ended = false;
                each_child!(cursor, {
                    match self.kind(cursor.node()) {
                        Kind::Other => ended |= cursor.node().kind() == ";",
                        Kind::LineComment | Kind::BlockComment => {}
                        _ => value = self.expression(cursor),
                    }
                });
                value.filter(|_| !ended)
            }
            kind if Self::is_item(kind) => {
                self.item(cursor);
                None
            }
            _ => self.expression(cursor),
        }
    }

    fn let_(&mut self, cursor: &mut TreeCursor<'_>) {
        let (mut value, mut type_) = (None, None);
        each_child!(cursor, {
            let field = cursor.field_id();
            if field == self.fields.type_ {
                type_ = self.type_(cursor, Side::Body);
            } else if field == self.fields.value {
                value = self.expression(cursor);
            } else if field == self.fields.alternative {
                self.block(cursor);
            }
        });
        if let Some(type_) = type_ {
            let declared = self.push(Side::Body, Expression::Instance(type_));
            // `let x: Vec<_> = …`: what is left out is known by the value.
            value = Some(match value {
                Some(value) => self.push(Side::Body, Expression::Either(declared, value)),
                None => declared,
            });
        }
        each_child!(cursor, {
            if cursor.field_id() == self.fields.pattern {
                self.pattern(cursor, value);
            }
        });
    }

    /// Walks a condition; what it binds is bound in the open scope.
    pub(super) fn condition(&mut self, cursor: &mut TreeCursor<'_>) {
        if self.kind(cursor.node()) == Kind::LetChain {
            each_child!(cursor, {
                if !Self::is_blank(self.kind(cursor.node())) {
                    self.condition(cursor);
                }
            });
        } else {
            self.expression(cursor);
        }
    }

    /// Walks an expression; returns its evidence.
    pub(super) fn expression(&mut self, cursor: &mut TreeCursor<'_>) -> Option<Handle> {
        self.used(cursor, false)
    }

    fn used(&mut self, cursor: &mut TreeCursor<'_>, called: bool) -> Option<Handle> {
        self.deeper(|this| this.chain(cursor, called))
    }

    fn chain(&mut self, cursor: &mut TreeCursor<'_>, mut called: bool) -> Option<Handle> {
        let mut links: SmallVec<[Link; 8]> = SmallVec::new();
        loop {
            let node = cursor.node();
            let kind = self.kind(node);
            let inner_called = match kind {
                Kind::Call => !self.is_written_as_macro(node) && self.kind_of_function(node) != Kind::Other,
                Kind::GenericFunction => called,
                Kind::FieldExpression | Kind::Index | Kind::Try | Kind::Await | Kind::Binary | Kind::Cast => false,
                _ => break,
            };
            if kind == Kind::Call && !inner_called {
                break;
            }
            if !cursor.goto_first_child() {
                break;
            }
            links.push(Link { kind, called });
            called = inner_called;
            while Self::is_blank(self.kind(cursor.node())) && cursor.goto_next_sibling() {}
        }
        let mut evidence = self.innermost(cursor, called);
        while let Some(link) = links.pop() {
            evidence = self.link(cursor, link, evidence);
            cursor.goto_parent();
        }
        evidence
    }

    fn kind_of_function(&self, call: Node<'_>) -> Kind {
        self.fields.function.and_then(|field| call.child_by_field_id(field.get())).map_or(Kind::Other, |node| self.kind(node))
    }

    fn is_written_as_macro(&self, call: Node<'_>) -> bool {
        let function = self.fields.function.and_then(|field| call.child_by_field_id(field.get()));
        function.is_some_and(|function| self.kind(function) == Kind::Identifier && self.is_macro_call(function.end_byte()))
    }

    fn value(&mut self, expression: Expression) -> Option<Handle> {
        Some(self.push(Side::Body, expression))
    }

    /// Walks what follows the operand in one link of a chain, the cursor being on the operand.
    fn link(&mut self, cursor: &mut TreeCursor<'_>, link: Link, operand: Option<Handle>) -> Option<Handle> {
        match link.kind {
            Kind::FieldExpression => {
                let mut result = None;
                while cursor.goto_next_sibling() {
                    if cursor.field_id() == self.fields.field {
                        let node = cursor.node();
                        let text = self.name_of(node);
                        let name = self.body.name(text);
                        if link.called {
                            self.refer(node.start_byte(), EdgeKind::Calls, false, Subject::Member { object: operand, name });
                        } else {
                            // Fields are no definitions.
                            self.local_uses += 1;
                        }
                        result = operand.map(|object| self.push(Side::Body, Expression::Attribute { object, name }));
                    }
                }
                result
            }
            Kind::GenericFunction => {
                let mut argument = None;
                while cursor.goto_next_sibling() {
                    if cursor.field_id() == self.fields.type_arguments {
                        argument = self.type_arguments(cursor, Side::Body);
                    }
                }
                match (operand, argument) {
                    (Some(object), Some(_)) => self.value(Expression::Subscript { object, argument }),
                    _ => operand,
                }
            }
            Kind::Call => {
                let mut arguments = None;
                while cursor.goto_next_sibling() {
                    if cursor.field_id() == self.fields.arguments {
                        arguments = self.arguments(cursor, operand);
                    }
                }
                let callee = operand?;
                self.value(Expression::Invocation { callee, arguments })
            }
            Kind::Index => {
                let mut index = None;
                while cursor.goto_next_sibling() {
                    let kind = self.kind(cursor.node());
                    if !Self::is_blank(kind) {
                        index = self.expression(cursor);
                        if index.is_none() && kind == Kind::Binary {
                            index = Some(self.primitive(Primitive::Number));
                        }
                    }
                }
                let object = operand?;
                self.value(Expression::Index { object, index })
            }
            Kind::Try => self.value(Expression::Try(operand?)),
            Kind::Await => self.value(Expression::Await(operand?)),
            Kind::Cast => {
                let mut type_ = None;
                while cursor.goto_next_sibling() {
                    if cursor.field_id() == self.fields.type_ {
                        type_ = self.type_(cursor, Side::Body);
                    }
                }
                let type_ = type_?;
                self.value(Expression::Instance(type_))
            }
            Kind::Binary => {
                let mut compares = false;
                while cursor.goto_next_sibling() {
                    if cursor.field_id() == self.fields.operator {
                        compares = matches!(cursor.node().kind(), "==" | "!=" | "<" | "<=" | ">" | ">=" | "&&" | "||");
                    } else if cursor.field_id() == self.fields.right {
                        self.expression(cursor);
                    }
                }
                compares.then(|| self.primitive(Primitive::Boolean))
            }
            _ => None,
        }
    }

    fn arguments(&mut self, cursor: &mut TreeCursor<'_>, callee: Option<Handle>) -> Option<Handle> {
        let mut parts: SmallVec<[Option<Handle>; 6]> = SmallVec::new();
        each_child!(cursor, {
            let kind = self.kind(cursor.node());
            if !Self::is_blank(kind) {
                let argument = parts.len() as u8;
                parts.push(match (kind, callee) {
                    (Kind::Closure, Some(callee)) => self.closure(cursor, Some(Place { callee, argument })),
                    _ => self.expression(cursor),
                });
            }
        });
        self.list(Side::Body, &parts)
    }

    /// Walks the arguments of a macro that was read as a call.
    fn macro_call(&mut self, cursor: &mut TreeCursor<'_>) -> Option<Handle> {
        let name = self.field(cursor, self.fields.function).map_or("", |name| self.name_of(name));
        let mut last = None;
        each_child!(cursor, {
            if cursor.field_id() == self.fields.arguments {
                each_child!(cursor, {
                    match self.kind(cursor.node()) {
                        // `name = value` names an argument of a format.
                        Kind::Assignment => each_child!(cursor, {
                            if cursor.field_id() == self.fields.right {
                                self.expression(cursor);
                            }
                        }),
                        kind if Self::is_blank(kind) => {}
                        _ => last = self.expression(cursor),
                    }
                });
            }
        });
        match name {
            "dbg" => last,
            "format" => Some(self.primitive(Primitive::Owned)),
            _ => None,
        }
    }

    fn innermost(&mut self, cursor: &mut TreeCursor<'_>, called: bool) -> Option<Handle> {
        let node = cursor.node();
        match self.kind(node) {
            Kind::Identifier
            | Kind::SelfValue
            | Kind::ScopedIdentifier
            | Kind::GenericTurbofish
            | Kind::TypeIdentifier
            | Kind::ScopedTypeIdentifier => {
                let kind = if called { EdgeKind::Calls } else { EdgeKind::References };
                self.path(node, PathUse::value(kind))
            }
            Kind::Call => self.macro_call(cursor),
            Kind::MacroInvocation => self.macro_invocation(cursor),
            Kind::Parenthesized => {
                let mut inner = None;
                each_child!(cursor, {
                    let kind = self.kind(cursor.node());
                    if !Self::is_blank(kind) {
                        // `(self.f)(x)` calls what the field holds, and no method.
                        inner = self.used(cursor, called && kind != Kind::FieldExpression);
                    }
                });
                let inner = inner?;
                if called { self.value(Expression::Instance(inner)) } else { Some(inner) }
            }
            Kind::StructExpression => self.struct_expression(cursor),
            Kind::Closure => self.closure(cursor, None),
            Kind::If => self.if_(cursor),
            Kind::LetCondition => {
                let mut value = None;
                each_child!(cursor, {
                    if cursor.field_id() == self.fields.value {
                        value = self.expression(cursor);
                    }
                });
                each_child!(cursor, {
                    if cursor.field_id() == self.fields.pattern {
                        self.pattern(cursor, value);
                    }
                });
                None
            }
            Kind::LetChain => {
                self.condition(cursor);
                None
            }
            Kind::Match => self.match_(cursor),
            Kind::While => {
                self.scopes.enter();
                each_child!(cursor, {
                    if cursor.field_id() == self.fields.condition {
                        self.condition(cursor);
                    } else if cursor.field_id() == self.fields.body {
                        self.block(cursor);
                    }
                });
                self.scopes.leave();
                None
            }
            Kind::For => {
                let mut value = None;
                each_child!(cursor, {
                    if cursor.field_id() == self.fields.value {
                        value = self.expression(cursor);
                    }
                });
                let element = value.and_then(|value| self.value(Expression::Element(value)));
                self.scopes.enter();
                each_child!(cursor, {
                    if cursor.field_id() == self.fields.pattern {
                        self.pattern(cursor, element);
                    } else if cursor.field_id() == self.fields.body {
                        self.block(cursor);
                    }
                });
                self.scopes.leave();
                None
            }
            Kind::Block => self.block(cursor),
            Kind::UnsafeBlock | Kind::AsyncBlock | Kind::ConstBlock | Kind::TryBlock | Kind::GenBlock | Kind::Loop => {
                let kind = self.kind(node);
                let mut value = None;
                each_child!(cursor, {
                    if self.kind(cursor.node()) == Kind::Block {
                        value = self.block(cursor);
                    }
                });
                match kind {
                    Kind::Loop | Kind::GenBlock | Kind::TryBlock => None,
                    Kind::AsyncBlock => value.and_then(|value| self.value(Expression::Promise(value))),
                    _ => value,
                }
            }
            Kind::Reference => {
                let mut inner = None;
                each_child!(cursor, {
                    if cursor.field_id() == self.fields.value {
                        inner = self.expression(cursor);
                    }
                });
                let inner = inner?;
                self.value(Expression::Address(inner))
            }
            Kind::Unary => {
                let mut operator = "";
                let mut inner = None;
                each_child!(cursor, {
                    match self.kind(cursor.node()) {
                        Kind::Other => operator = cursor.node().kind(),
                        Kind::LineComment | Kind::BlockComment => {}
                        _ => inner = self.expression(cursor),
                    }
                });
                let inner = inner?;
                if operator == "*" { self.value(Expression::Pointer(inner)) } else { None }
            }
            Kind::Tuple => {
                let parts = self.parts(cursor);
                self.list(Side::Body, &parts)
            }
            Kind::Array => {
                let parts = self.parts(cursor);
                let element = parts.first().copied().flatten()?;
                self.value(Expression::Sequence(element))
            }
            Kind::Range => {
                let mut first = None;
                let mut begun = false;
                each_child!(cursor, {
                    let kind = self.kind(cursor.node());
                    if Self::is_blank(kind) {
                        begun |= cursor.node().kind().starts_with("..");
                    } else {
                        let bound = self.expression(cursor);
                        first = first.or(bound.filter(|_| !begun));
                    }
                });
                self.value(Expression::Range(first))
            }
            Kind::Assignment if self.field(cursor, self.fields.left).is_some_and(|left| self.kind(left) == Kind::Closure) => {
                // `|x| _ = f(x)`, which the grammar takes for an assignment to a closure.
                self.scopes.enter();
                each_child!(cursor, {
                    if cursor.field_id() == self.fields.left {
                        each_child!(cursor, {
                            if cursor.field_id() == self.fields.parameters {
                                self.closure_parameters(cursor, None, &mut Signature::default());
                            }
                        });
                    } else if cursor.field_id() == self.fields.right {
                        self.expression(cursor);
                    }
                });
                self.scopes.leave();
                None
            }
            Kind::Assignment | Kind::CompoundAssignment | Kind::Return | Kind::Unlisted => {
                self.parts(cursor);
                None
            }
            Kind::IntegerLiteral => {
                // A floating-point number may be written without a point.
                let text = self.text_of(node);
                let float = text.ends_with("f32") || text.ends_with("f64");
                let float = float && !text.starts_with("0x");
                Some(self.primitive(if float { Primitive::Float } else { Primitive::Integer }))
            }
            Kind::FloatLiteral => Some(self.primitive(Primitive::Float)),
            Kind::BooleanLiteral => Some(self.primitive(Primitive::Boolean)),
            Kind::CharLiteral => {
                let byte = self.text_of(node).starts_with('b');
                Some(self.primitive(if byte { Primitive::Integer } else { Primitive::Character }))
            }
            Kind::StringLiteral | Kind::RawStringLiteral => match self.text_of(node).as_bytes().first() {
                Some(b'b') => Some(self.primitive(Primitive::Bytes)),
                Some(b'c') => Some(self.literal()),
                _ => Some(self.primitive(Primitive::Text)),
            },
            Kind::NegativeLiteral => Some(self.primitive(Primitive::Number)),
            Kind::Unit => Some(self.primitive(Primitive::Unit)),
            Kind::Let => {
                self.let_(cursor);
                None
            }
            _ => None,
        }
    }

    /// Walks the expressions directly in the cursor's node.
    fn parts(&mut self, cursor: &mut TreeCursor<'_>) -> SmallVec<[Option<Handle>; 6]> {
        let mut parts = SmallVec::new();
        each_child!(cursor, {
            if !Self::is_blank(self.kind(cursor.node())) {
                parts.push(self.expression(cursor));
            }
        });
        parts
    }

    fn struct_expression(&mut self, cursor: &mut TreeCursor<'_>) -> Option<Handle> {
        let mut type_ = None;
        each_child!(cursor, {
            if cursor.field_id() == self.fields.name {
                let usage = PathUse { side: Side::Body, space: Space::Type, kind: EdgeKind::References, qualifier: false };
                type_ = self.path(cursor.node(), usage);
            } else if cursor.field_id() == self.fields.body {
                each_child!(cursor, {
                    match self.kind(cursor.node()) {
                        Kind::FieldInitializer => each_child!(cursor, {
                            if cursor.field_id() == self.fields.value {
                                self.expression(cursor);
                            }
                        }),
                        Kind::ShorthandInitializer => each_child!(cursor, {
                            if self.kind(cursor.node()) == Kind::Identifier {
                                self.name_use(cursor.node(), PathUse::value(EdgeKind::References));
                            }
                        }),
                        Kind::BaseInitializer => drop(self.parts(cursor)),
                        _ => {}
                    }
                });
            }
        });
        let type_ = type_?;
        self.value(Expression::Instance(type_))
    }

    fn if_(&mut self, cursor: &mut TreeCursor<'_>) -> Option<Handle> {
        let (mut first, mut other) = (None, None);
        self.scopes.enter();
        each_child!(cursor, {
            if cursor.field_id() == self.fields.condition {
                self.condition(cursor);
            } else if cursor.field_id() == self.fields.consequence {
                first = self.block(cursor);
            }
        });
        self.scopes.leave();
        each_child!(cursor, {
            if cursor.field_id() == self.fields.alternative {
                each_child!(cursor, {
                    if !Self::is_blank(self.kind(cursor.node())) {
                        other = self.expression(cursor);
                    }
                });
            }
        });
        match (first, other) {
            (Some(first), Some(other)) => self.value(Expression::Either(first, other)),
            (first, other) => first.or(other),
        }
    }

    fn match_(&mut self, cursor: &mut TreeCursor<'_>) -> Option<Handle> {
        let mut value = None;
        let mut results: SmallVec<[Handle; MAX_ARMS]> = SmallVec::new();
        each_child!(cursor, {
            if cursor.field_id() == self.fields.value {
                value = self.expression(cursor);
            } else if cursor.field_id() == self.fields.body {
                each_child!(cursor, {
                    if self.kind(cursor.node()) == Kind::MatchArm {
                        self.scopes.enter();
                        each_child!(cursor, {
                            if cursor.field_id() == self.fields.pattern {
                                self.pattern(cursor, value);
                            } else if cursor.field_id() == self.fields.value {
                                let result = self.expression(cursor);
                                if results.len() < MAX_ARMS {
                                    results.extend(result);
                                }
                            }
                        });
                        self.scopes.leave();
                    }
                });
            }
        });
        let mut result = results.pop()?;
        while let Some(other) = results.pop() {
            result = self.push(Side::Body, Expression::Either(other, result));
        }
        Some(result)
    }

    fn closure(&mut self, cursor: &mut TreeCursor<'_>, place: Option<Place>) -> Option<Handle> {
        self.deeper(|this| {
            this.scopes.enter();
            let mut made = Signature::default();
            let mut declared = None;
            let mut result = None;
            let mut is_async = false;
            each_child!(cursor, {
                let field = cursor.field_id();
                is_async |= cursor.node().kind() == "async";
                if field == this.fields.parameters {
                    this.closure_parameters(cursor, place, &mut made);
                } else if field == this.fields.return_type {
                    declared = this.type_(cursor, Side::Body);
                } else if field == this.fields.body {
                    result = this.expression(cursor);
                }
            });
            this.scopes.leave();
            let mut result = declared.or(result);
            if is_async {
                result = result.map(|result| this.push(Side::Body, Expression::Promise(result)));
            }
            made.results.push(result);
            let signature = this.body.signature(made);
            this.value(Expression::Signature(signature))
        })
    }

    fn closure_parameters(&mut self, cursor: &mut TreeCursor<'_>, place: Option<Place>, made: &mut Signature) {
        each_child!(cursor, {
            let node = cursor.node();
            let kind = self.kind(node);
            let is_parameter = !Self::is_blank(kind) || node.kind() == "_";
            if is_parameter {
                let number = made.parameters.len() as u8;
                let mut type_ = None;
                if kind == Kind::Parameter {
                    each_child!(cursor, {
                        if cursor.field_id() == self.fields.type_ {
                            type_ = self.type_(cursor, Side::Body);
                        }
                    });
                }
                made.parameters.push(type_);
                let value = match (type_, place) {
                    (Some(type_), _) => self.value(Expression::Instance(type_)),
                    (None, Some(Place { callee, argument })) => {
                        let expected = self.push(Side::Body, Expression::Expected { callee, argument });
                        self.value(Expression::Parameter(expected, number))
                    }
                    (None, None) => None,
                };
                if kind == Kind::Parameter {
                    each_child!(cursor, {
                        if cursor.field_id() == self.fields.pattern {
                            self.pattern(cursor, value);
                        }
                    });
                } else {
                    self.pattern(cursor, value);
                }
            }
        });
    }
}
