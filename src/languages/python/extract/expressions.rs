//! Expressions: the names they use and, where wanted, what they say about the type of their value.
//!
//! Must not know types. Invariant: a chain of calls, attributes and operators is walked without recursion, however long.

use smallvec::SmallVec;
use tree_sitter::TreeCursor;

use super::kinds::Kind;
use super::walk::{Given, MAX_DEPTH, Walk};
use crate::languages::grammar::each_child;
use crate::languages::python::raw::{NONE, RawExpression, ScopeKind};
use crate::model::EdgeKind;

impl Walk<'_> {
    /// Walks an expression. Returns its number when `want`ed as evidence (or [`NONE`] when it is none); `kind` is how the whole
    /// expression is used.
    pub(super) fn expression(&mut self, cursor: &mut TreeCursor<'_>, want: bool, kind: EdgeKind) -> u32 {
        self.expression_as(cursor, want, kind, false)
    }

    /// As [`Self::expression`]; `qualifies` says whether the expression only leads to an attribute.
    pub(super) fn expression_as(&mut self, cursor: &mut TreeCursor<'_>, want: bool, kind: EdgeKind, qualifies: bool) -> u32 {
        // A chain `a.b(c)[d] + e` nests to the left: its spine is walked down and up without recursion.
        struct Link {
            node: Kind,
            want: bool,
            kind: EdgeKind,
            qualifies: bool,
        }
        let mut spine: SmallVec<[Link; 8]> = SmallVec::new();
        let mut link = Link { node: self.kind(cursor), want, kind, qualifies };
        while matches!(link.node, Kind::Attribute | Kind::Call | Kind::Subscript | Kind::BinaryOperator) {
            if !cursor.goto_first_child() {
                break;
            }
            let (want, kind, qualifies) = match link.node {
                Kind::Attribute => (true, EdgeKind::References, true),
                Kind::Call => (link.want, EdgeKind::Calls, false),
                Kind::Subscript if link.kind == EdgeKind::Inherits => (link.want, EdgeKind::Inherits, false),
                _ => (link.want, EdgeKind::References, false),
            };
            spine.push(link);
            link = Link { node: self.kind(cursor), want, kind, qualifies };
        }
        self.last_name = NONE;
        let mut value = self.primary(cursor, link.node, link.want, link.kind, link.qualifies);
        while let Some(link) = spine.pop() {
            match link.node {
                Kind::Attribute => {
                    let object = value;
                    value = NONE;
                    while cursor.goto_next_sibling() {
                        if self.kind(cursor) == Kind::Identifier {
                            let token = cursor.node();
                            let name = self.name_of(&token);
                            value = self.member(object, name, token.start_byte() as u32, link.kind, link.qualifies, link.want);
                        }
                    }
                }
                Kind::Call => value = self.call(cursor, value, link.want),
                Kind::Subscript => value = self.subscript(cursor, value, link.want),
                _ => {
                    let mut union = false;
                    let mut right = NONE;
                    while cursor.goto_next_sibling() {
                        match self.kind(cursor) {
                            Kind::Comment => {}
                            Kind::Other => union |= cursor.node().kind() == "|",
                            _ => right = self.nested(cursor, link.want && union),
                        }
                    }
                    value = if !link.want || !union { NONE } else { self.either(value, right) };
                }
            }
            cursor.goto_parent();
        }
        value
    }

    /// The arguments of a call, the cursor being at its callee.
    fn call(&mut self, cursor: &mut TreeCursor<'_>, callee: u32, want: bool) -> u32 {
        let callee_name = self.last_name;
        let mut first = NONE;
        let mut first_name = NONE;
        let mut count = 0;
        let casts = callee_name == self.known.cast;
        let tests = callee_name == self.known.isinstance;
        let own_annotation = std::mem::replace(&mut self.in_annotation, false);
        let mut test = None;
        while cursor.goto_next_sibling() {
            match self.kind(cursor) {
                Kind::ArgumentList if self.depth < MAX_DEPTH => {
                    self.depth += 1;
                    each_child!(cursor, {
                        match self.kind(cursor) {
                            Kind::Other | Kind::Comment => {}
                            kind => {
                                count += 1;
                                match count {
                                    1 if casts => first = self.annotation(cursor),
                                    1 if tests => {
                                        if kind == Kind::Identifier {
                                            first_name = self.name_of(&cursor.node());
                                        }
                                        self.expression(cursor, false, EdgeKind::References);
                                    }
                                    2 if tests && first_name != NONE => {
                                        test = Some((first_name, self.type_test(cursor, kind)));
                                    }
                                    _ if callee_name == self.known.type_var && kind == Kind::KeywordArgument => {
                                        self.type_variable_argument(cursor);
                                    }
                                    _ => {
                                        self.expression(cursor, false, EdgeKind::References);
                                    }
                                }
                            }
                        }
                    });
                    self.depth -= 1;
                }
                Kind::GeneratorExpression => {
                    self.expression(cursor, false, EdgeKind::References);
                }
                _ => {}
            }
        }
        self.in_annotation = own_annotation;
        if test.is_some() {
            self.instance_test = test;
        }
        self.last_name = NONE;
        if !want {
            return NONE;
        }
        if casts && first != NONE {
            return self.push_expression(RawExpression::Instance(first));
        }
        if callee_name == self.known.super_
            && callee != NONE
            && matches!(self.raw.expressions[callee as usize], RawExpression::Name(_))
        {
            let class = self.enclosing_class();
            return if class == NONE { NONE } else { self.push_expression(RawExpression::Super(class)) };
        }
        if callee == NONE { NONE } else { self.push_expression(RawExpression::Call(callee)) }
    }

    fn subscript(&mut self, cursor: &mut TreeCursor<'_>, object: u32, want: bool) -> u32 {
        let object_name = self.last_name;
        let own_annotation = self.in_annotation;
        if object_name == self.known.literal {
            self.in_annotation = false;
        }
        let mut arguments: SmallVec<[u32; 4]> = SmallVec::new();
        let mut count = 0;
        while cursor.goto_next_sibling() {
            match self.kind(cursor) {
                Kind::Other | Kind::Comment => {}
                kind => {
                    count += 1;
                    if count == 2 && object_name == self.known.annotated {
                        self.in_annotation = false;
                    }
                    // `Callable[[A], R]` and `Tuple[A, B]` written with a bare tuple or a list.
                    if matches!(kind, Kind::List | Kind::Tuple) && want {
                        each_child!(cursor, {
                            if !matches!(self.kind(cursor), Kind::Other | Kind::Comment) {
                                let argument = self.nested(cursor, kind == Kind::Tuple);
                                if kind == Kind::Tuple {
                                    arguments.push(argument);
                                }
                            }
                        });
                    } else {
                        arguments.push(self.nested(cursor, want));
                    }
                }
            }
        }
        self.in_annotation = own_annotation;
        self.last_name = object_name;
        if !want || object == NONE {
            return NONE;
        }
        let argument = self.argument_chain(&arguments);
        self.push_expression(RawExpression::Subscript(object, argument))
    }

    /// Walks an expression that nests to the right (`a[b[c]]`, `a ** b ** c`), unless it does so too deeply.
    fn nested(&mut self, cursor: &mut TreeCursor<'_>, want: bool) -> u32 {
        if self.depth >= MAX_DEPTH {
            return NONE;
        }
        self.depth += 1;
        let value = self.expression(cursor, want, EdgeKind::References);
        self.depth -= 1;
        value
    }

    /// Walks an expression that does not nest to the left.
    fn primary(&mut self, cursor: &mut TreeCursor<'_>, node: Kind, want: bool, kind: EdgeKind, qualifies: bool) -> u32 {
        match node {
            Kind::Identifier => {
                let token = cursor.node();
                let name = self.name_of(&token);
                let used = self.use_name(name, token.start_byte() as u32, kind, qualifies);
                return if want { self.push_expression(RawExpression::Name(used)) } else { NONE };
            }
            Kind::Other
            | Kind::Comment
            | Kind::Integer
            | Kind::Float
            | Kind::True
            | Kind::False
            | Kind::Ellipsis
            | Kind::StringStart
            | Kind::StringContent => return NONE,
            Kind::None => return NONE,
            _ => {}
        }
        if self.depth >= MAX_DEPTH {
            return NONE;
        }
        self.depth += 1;
        let value = self.compound(cursor, node, want, kind, qualifies);
        self.depth -= 1;
        value
    }

    fn compound(&mut self, cursor: &mut TreeCursor<'_>, node: Kind, want: bool, kind: EdgeKind, qualifies: bool) -> u32 {
        let mut value = NONE;
        match node {
            Kind::Parenthesized | Kind::Type => {
                each_child!(cursor, {
                    let inner = self.expression_as(cursor, want, kind, qualifies);
                    if inner != NONE {
                        value = inner;
                    }
                });
            }
            Kind::String => self.string(cursor, want, &mut value),
            Kind::ConcatenatedString | Kind::Interpolation | Kind::FormatSpecifier | Kind::FormatExpression => {
                self.expressions(cursor)
            }
            Kind::Conditional => {
                let mut index = 0;
                each_child!(cursor, {
                    if !matches!(self.kind(cursor), Kind::Other | Kind::Comment) {
                        let part = self.expression(cursor, want && index != 1, EdgeKind::References);
                        if index != 1 {
                            value = self.either(value, part);
                        }
                        index += 1;
                    }
                });
            }
            Kind::BooleanOperator => {
                let and = cursor.node().child_by_field_name("operator").is_some_and(|operator| operator.kind() == "and");
                let mut index = 0;
                each_child!(cursor, {
                    if !matches!(self.kind(cursor), Kind::Other | Kind::Comment) {
                        let part = self.expression(cursor, want && !(and && index == 0), EdgeKind::References);
                        value = self.either(value, part);
                        index += 1;
                    }
                });
            }
            Kind::Named => value = self.named_expression(cursor),
            Kind::Lambda => self.lambda(cursor),
            Kind::Await => {
                each_child!(cursor, {
                    let inner = self.expression(cursor, want, EdgeKind::References);
                    if inner != NONE {
                        value = self.push_expression(RawExpression::Await(inner));
                    }
                });
            }
            Kind::Yield => {
                if self.function != NONE {
                    self.raw.functions[self.function as usize].generator = true;
                }
                self.expressions(cursor);
            }
            Kind::ListComprehension | Kind::SetComprehension | Kind::DictionaryComprehension | Kind::GeneratorExpression => {
                self.comprehension(cursor);
            }
            Kind::KeywordArgument => {
                let mut keyword = true;
                each_child!(cursor, {
                    match self.kind(cursor) {
                        Kind::Identifier if keyword => keyword = false,
                        _ => {
                            self.expression(cursor, false, EdgeKind::References);
                        }
                    }
                });
            }
            Kind::GenericType => value = self.generic_type(cursor),
            Kind::UnionType => value = self.union_type(cursor),
            Kind::MemberType => value = self.member_type(cursor),
            // A list, tuple or pair of types inside an annotation (`Callable[[A], B]`) keeps its strings annotations.
            _ => {
                self.expressions(cursor);
                if want {
                    value = match node {
                        Kind::Tuple | Kind::List | Kind::Set | Kind::Dictionary => self.push_expression(RawExpression::Literal),
                        _ => NONE,
                    };
                }
            }
        }
        self.last_name = if matches!(node, Kind::Parenthesized | Kind::Type | Kind::GenericType) { self.last_name } else { NONE };
        value
    }

    fn comprehension(&mut self, cursor: &mut TreeCursor<'_>) {
        let outer = self.scope;
        let scope = self.new_scope(ScopeKind::Comprehension, self.arm);
        let mut first = true;
        self.scope = scope;
        each_child!(cursor, {
            match self.kind(cursor) {
                Kind::Other | Kind::Comment => {}
                Kind::ForInClause => {
                    let mut left = None;
                    let mut value = NONE;
                    let mut seen_in = false;
                    each_child!(cursor, {
                        match self.kind(cursor) {
                            Kind::Comment => {}
                            Kind::Other => seen_in |= cursor.node().kind() == "in",
                            _ if !seen_in => left = Some(cursor.node()),
                            _ => {
                                // The first iterable is evaluated outside.
                                if first {
                                    self.scope = outer;
                                }
                                let iterated = self.expression(cursor, true, EdgeKind::References);
                                self.scope = scope;
                                first = false;
                                if iterated != NONE {
                                    value = self.push_expression(RawExpression::Element(iterated));
                                }
                            }
                        }
                    });
                    if let Some(left) = left {
                        let mut inner = left.walk();
                        self.target(&mut inner, Given { annotation: NONE, value });
                    }
                }
                Kind::IfClause => self.expressions(cursor),
                _ => {
                    self.expression(cursor, false, EdgeKind::References);
                }
            }
        });
        self.scope = outer;
    }
}
