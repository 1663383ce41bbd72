//! Expressions: the names they use and, where wanted, what they say about the type of their value.
//!
//! Must not know types. Invariant: a chain of calls, attributes and operators is walked without recursion, however long.

use smallvec::SmallVec;
use tree_sitter::{Node, TreeCursor};

use super::branches::is_conjunction;
use super::kinds::Kind;
use super::walk::{Given, MAX_DEPTH, Walk};
use crate::languages::grammar::each_child;
use crate::languages::python::raw::{NONE, RawExpression, RawReference, RawSubject, ScopeKind};
use crate::model::EdgeKind;

/// How many arguments of a call are kept as evidence.
const MAX_ARGUMENTS: usize = 3;

/// How many elements of a display are kept as evidence.
const MAX_ELEMENTS: usize = 8;

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
        let mut first_name = NONE;
        let mut arguments: SmallVec<[u32; 4]> = SmallVec::new();
        let mut open = want && callee != NONE;
        let mut count = 0;
        let casts = callee_name == self.known.cast;
        let tests = callee_name == self.known.isinstance;
        let asks = callee_name == self.known.use_fixtures || callee_name == self.known.get_fixture;
        // `setattr(object, "name", value)` writes what `object.name = value` does.
        // What a method of that name does (`monkeypatch.setattr`) is taken back by its object.
        let writes = self.kind(cursor) == Kind::Identifier
            && (callee_name == self.known.set_attribute || callee_name == self.known.delete_attribute);
        let mut written = NONE;
        let mut given = NONE;
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
                                open &= !matches!(kind, Kind::ListSplat | Kind::DictionarySplat | Kind::KeywordArgument);
                                open &= arguments.len() < MAX_ARGUMENTS;
                                match count {
                                    _ if asks && kind == Kind::String => given = self.injected(&cursor.node()),
                                    1 if casts => {
                                        let first = self.annotation(cursor);
                                        arguments.push(first);
                                    }
                                    1 if writes => {
                                        if kind == Kind::Identifier {
                                            first_name = self.name_of(&cursor.node());
                                        }
                                        written = self.expression(cursor, true, EdgeKind::References);
                                        if open {
                                            arguments.push(written);
                                        }
                                    }
                                    2 if writes && kind == Kind::String => {
                                        self.written_attribute(&cursor.node(), written, first_name, callee_name);
                                        let argument = self.expression(cursor, open, EdgeKind::References);
                                        if open {
                                            arguments.push(argument);
                                        }
                                    }
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
                                        let bound = self.type_variable_argument(cursor);
                                        if want && bound != NONE {
                                            arguments.push(bound);
                                        }
                                    }
                                    _ => {
                                        let argument = self.expression(cursor, open, EdgeKind::References);
                                        if open {
                                            arguments.push(argument);
                                        }
                                    }
                                }
                            }
                        }
                    });
                    self.depth -= 1;
                }
                Kind::GeneratorExpression => {
                    let argument = self.expression(cursor, open, EdgeKind::References);
                    arguments.push(argument);
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
        if callee_name == self.known.get_fixture {
            return given;
        }
        if callee_name == self.known.super_
            && callee != NONE
            && matches!(self.raw.expressions[callee as usize], RawExpression::Name(_))
        {
            let class = self.enclosing_class();
            return if class == NONE { NONE } else { self.push_expression(RawExpression::Super(class)) };
        }
        if callee == NONE {
            return NONE;
        }
        if arguments.iter().all(|argument| *argument == NONE) {
            return self.push_expression(RawExpression::Call(callee));
        }
        let arguments = self.expression_list(&arguments);
        self.push_expression(RawExpression::Invocation(callee, arguments))
    }

    /// The attribute that `setattr` or `delattr` names in a string.
    fn written_attribute(&mut self, string: &Node<'_>, object: u32, object_name: u32, writer: u32) {
        let Some(name) = self.string_name(string) else { return };
        let own_instance = if object_name == NONE { NONE } else { self.instance_class(object_name) };
        if own_instance == NONE {
            if object != NONE {
                self.raw.writes.push((object, name));
            }
        } else if writer == self.known.set_attribute {
            self.raw.classes[own_instance as usize].attributes.push((name, NONE, NONE));
        }
    }

    /// A fixture asked for by its name in a string.
    fn injected(&mut self, string: &Node<'_>) -> u32 {
        let (Some(name), Some(content)) = (self.string_name(string), string.named_child(1)) else { return NONE };
        let given = RawExpression::Injected { name, class: self.enclosing_class(), outer: false };
        let value = self.push_expression(given);
        self.raw.references.push(RawReference {
            start: content.start_byte() as u32,
            kind: EdgeKind::References,
            qualifier: false,
            source: self.source_definition,
            subject: RawSubject::Injected(value),
        });
        value
    }

    fn subscript(&mut self, cursor: &mut TreeCursor<'_>, object: u32, want: bool) -> u32 {
        let object_name = self.last_name;
        let own_annotation = self.in_annotation;
        if object_name == self.known.literal {
            self.in_annotation = false;
        }
        let mut arguments: SmallVec<[u32; 4]> = SmallVec::new();
        let mut count = 0;
        let mut slices = false;
        while cursor.goto_next_sibling() {
            match self.kind(cursor) {
                Kind::Other | Kind::Comment => {}
                // What is cut out of something is of its kind.
                Kind::Slice => {
                    slices = true;
                    self.expressions(cursor);
                }
                Kind::Integer if want && object != NONE => {
                    count += 1;
                    let index = self.slice(&cursor.node()).parse().ok();
                    let nothing = self.push_expression(RawExpression::Literal);
                    arguments.push(match index {
                        Some(index) => self.push_expression(RawExpression::Part(nothing, index)),
                        None => nothing,
                    });
                }
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
        if slices {
            return object;
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
            Kind::Conditional => value = self.conditional(cursor, want),
            Kind::BooleanOperator => value = self.connected(cursor, want),
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
            Kind::Yield => self.yielded(cursor),
            Kind::ListComprehension | Kind::SetComprehension | Kind::DictionaryComprehension | Kind::GeneratorExpression => {
                value = self.comprehension(cursor, node, want);
            }
            Kind::List | Kind::Set | Kind::Tuple | Kind::ExpressionList if want && !self.in_annotation => {
                value = self.display(cursor, node);
            }
            Kind::Dictionary if want && !self.in_annotation => value = self.dictionary(cursor),
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

    /// `value if condition else other`, whose condition comes first.
    fn conditional(&mut self, cursor: &mut TreeCursor<'_>, want: bool) -> u32 {
        let own_arm = self.arm;
        let own_test = self.instance_test.take();
        let mut value = NONE;
        for wanted in [1, 0, 2] {
            let mut index = 0;
            each_child!(cursor, {
                if !matches!(self.kind(cursor), Kind::Other | Kind::Comment) {
                    if index == wanted {
                        let part = self.expression(cursor, want && index != 1, EdgeKind::References);
                        if index != 1 {
                            value = self.either(value, part);
                        }
                    }
                    index += 1;
                }
            });
            self.arm = own_arm;
            if wanted == 1 {
                self.narrow_in_arm();
            }
        }
        self.instance_test = own_test;
        value
    }

    /// `left and right` and `left or right`: what the left side of `and` tests holds on the right.
    fn connected(&mut self, cursor: &mut TreeCursor<'_>, want: bool) -> u32 {
        let and = is_conjunction(&cursor.node());
        let own_arm = self.arm;
        let mut value = NONE;
        let mut index = 0;
        let mut test = None;
        each_child!(cursor, {
            if !matches!(self.kind(cursor), Kind::Other | Kind::Comment) {
                let part = self.expression(cursor, want && !(and && index == 0), EdgeKind::References);
                value = self.either(value, part);
                if and && index == 0 && self.instance_test.is_some() {
                    test = self.instance_test;
                    self.narrow_in_arm();
                }
                index += 1;
            }
        });
        self.arm = own_arm;
        if and {
            self.instance_test = self.instance_test.or(test);
        } else {
            self.instance_test = None;
        }
        value
    }

    /// Goes on in an arm where the test for a type just made holds.
    fn narrow_in_arm(&mut self) {
        if self.instance_test.is_some() && self.scope_kind() == ScopeKind::Function {
            self.arm = self.new_arm(self.arm, NONE);
            self.narrow();
        } else {
            self.instance_test = None;
        }
    }

    /// `yield value` and `yield from values`.
    fn yielded(&mut self, cursor: &mut TreeCursor<'_>) {
        let mut value = NONE;
        let mut delegates = false;
        each_child!(cursor, {
            match self.kind(cursor) {
                Kind::Comment => {}
                Kind::Other => delegates |= cursor.node().kind() == "from",
                _ => value = self.expression(cursor, self.function != NONE, EdgeKind::References),
            }
        });
        if self.function != NONE {
            if value != NONE && delegates {
                value = self.push_expression(RawExpression::Element(value));
            }
            let function = &mut self.raw.functions[self.function as usize];
            function.generator = true;
            if value != NONE {
                function.yielded.push(value);
            }
        }
    }

    /// A list, set or tuple as it is written.
    fn display(&mut self, cursor: &mut TreeCursor<'_>, node: Kind) -> u32 {
        let mut parts: SmallVec<[u32; 4]> = SmallVec::new();
        let mut whole = true;
        each_child!(cursor, {
            let kind = self.kind(cursor);
            if !matches!(kind, Kind::Other | Kind::Comment) {
                let want = parts.len() < MAX_ELEMENTS;
                let mut part = self.nested(cursor, want);
                if kind == Kind::ListSplat {
                    whole = false;
                    part = NONE;
                }
                if want {
                    parts.push(part);
                } else {
                    whole = false;
                }
            }
        });
        if parts.iter().all(|part| *part == NONE) {
            return self.push_expression(RawExpression::Literal);
        }
        if whole && matches!(node, Kind::Tuple | Kind::ExpressionList) {
            return self.expression_list(&parts);
        }
        let mut element = NONE;
        for part in parts {
            element = self.either(element, part);
        }
        if element == NONE { NONE } else { self.push_expression(RawExpression::Sequence(element)) }
    }

    /// A dictionary as it is written.
    fn dictionary(&mut self, cursor: &mut TreeCursor<'_>) -> u32 {
        let (mut keys, mut values) = (NONE, NONE);
        let mut count = 0;
        each_child!(cursor, {
            if self.kind(cursor) == Kind::Pair {
                let want = count < MAX_ELEMENTS;
                count += 1;
                let (key, value) = self.pair(cursor, want);
                keys = self.either(keys, key);
                values = self.either(values, value);
            } else {
                self.expression(cursor, false, EdgeKind::References);
            }
        });
        self.mapping(keys, values)
    }

    fn pair(&mut self, cursor: &mut TreeCursor<'_>, want: bool) -> (u32, u32) {
        let mut sides: SmallVec<[u32; 2]> = SmallVec::new();
        each_child!(cursor, {
            if !matches!(self.kind(cursor), Kind::Other | Kind::Comment) {
                let side = self.nested(cursor, want);
                sides.push(side);
            }
        });
        (sides.first().copied().unwrap_or(NONE), sides.get(1).copied().unwrap_or(NONE))
    }

    fn mapping(&mut self, key: u32, value: u32) -> u32 {
        if key == NONE && value == NONE {
            return self.push_expression(RawExpression::Literal);
        }
        let mut known = |side: u32| if side == NONE { self.push_expression(RawExpression::Literal) } else { side };
        let (key, value) = (known(key), known(value));
        self.push_expression(RawExpression::Mapping(key, value))
    }

    fn comprehension(&mut self, cursor: &mut TreeCursor<'_>, node: Kind, want: bool) -> u32 {
        let mut element = NONE;
        let mut sides = (NONE, NONE);
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
                Kind::Pair => sides = self.pair(cursor, want),
                _ => element = self.expression(cursor, want, EdgeKind::References),
            }
        });
        self.scope = outer;
        if !want {
            NONE
        } else if node == Kind::DictionaryComprehension {
            self.mapping(sides.0, sides.1)
        } else if element == NONE {
            self.push_expression(RawExpression::Literal)
        } else {
            self.push_expression(RawExpression::Sequence(element))
        }
    }
}
