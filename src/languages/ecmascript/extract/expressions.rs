//! Expressions: what they refer to, and the evidence for what they hold.
//!
//! Must not know how names are found. Invariant: long chains of members, calls and operators are walked without going deeper.

use super::functions::FunctionContext;
use super::names::NewBinding;
use super::*;

impl<'s, 't> Walk<'s, 't> {
    /// Walks an expression; returns its evidence.
    pub(super) fn expression(&mut self, node: Node<'t>) -> u32 {
        self.value(node, EdgeKind::References, false)
    }

    /// Walks an expression whose name, when it is one, is used as `edge` says.
    pub(super) fn value(&mut self, node: Node<'t>, edge: EdgeKind, qualifier: bool) -> u32 {
        if self.depth >= MAX_DEPTH {
            return NONE;
        }
        self.depth += 1;
        let found = self.value_inside(node, edge, qualifier);
        self.depth -= 1;
        found
    }

    fn value_inside(&mut self, node: Node<'t>, edge: EdgeKind, qualifier: bool) -> u32 {
        let fields = &self.grammar.fields;
        let kind = self.kind(node);
        match kind {
            Kind::Identifier | Kind::TypeIdentifier => self.identifier(node, edge, qualifier),
            Kind::Undefined | Kind::Null | Kind::True | Kind::False | Kind::Number | Kind::Regex | Kind::String => self.literal,
            Kind::MetaProperty => NONE,
            Kind::This => {
                let This { class, statics, declared } = self.this;
                if declared != NONE {
                    return self.push_expression(RawExpression::Instance(declared));
                }
                if class == NONE { NONE } else { self.push_expression(RawExpression::This(class, statics)) }
            }
            Kind::Super => {
                let This { class, statics, .. } = self.this;
                if class == NONE { NONE } else { self.push_expression(RawExpression::Above(class, statics)) }
            }
            Kind::Member | Kind::Call | Kind::Subscript | Kind::NonNull => self.chain(node, edge, qualifier),
            Kind::New => self.new_expression(node),
            Kind::Parenthesized => {
                let mut found = NONE;
                for child in self.children(node).named() {
                    // What is awaited in parentheses is not what is called.
                    found = match child.kind {
                        Kind::Await => self.expression(child.node),
                        _ => self.value(child.node, edge, qualifier),
                    };
                }
                found
            }
            Kind::Sequence => {
                let mut found = NONE;
                for child in self.children(node).named() {
                    found = self.expression(child.node);
                }
                found
            }
            Kind::Binary => self.binary(node),
            Kind::Unary | Kind::Update => {
                let children = self.children(node);
                for child in children.named() {
                    if kind == Kind::Update && child.kind == Kind::Identifier {
                        self.assign_pattern(child, NONE);
                    } else {
                        self.expression(child.node);
                    }
                }
                if children.has_token("void") { NONE } else { self.literal }
            }
            Kind::Ternary => {
                let children = self.children(node);
                let known = self.narrowed.len();
                if let Some(condition) = children.field(fields.condition) {
                    self.expression(condition.node);
                    self.narrow(condition.node);
                }
                let consequence = children.field(fields.consequence).map_or(NONE, |child| self.expression(child.node));
                self.narrowed.truncate(known);
                let alternative = children.field(fields.alternative).map_or(NONE, |child| self.expression(child.node));
                self.either(consequence, alternative)
            }
            Kind::Await => {
                let mut inner = NONE;
                for child in self.children(node).named() {
                    // The grammar reads `await f<T>()` as a call of `await f`.
                    inner = self.value(child.node, edge, qualifier);
                }
                if inner == NONE { NONE } else { self.push_expression(RawExpression::Await(inner)) }
            }
            Kind::As | Kind::Satisfies => {
                let children: Vec<_> = self.children(node).named().collect();
                let Some((first, rest)) = children.split_first() else { return NONE };
                let value = self.value(first.node, edge, qualifier);
                let mut declared = NONE;
                for child in rest {
                    declared = self.type_of(child.node);
                }
                // `as const` and `satisfies` leave the type as it is.
                if kind == Kind::Satisfies || rest.is_empty() {
                    value
                } else if declared == NONE {
                    NONE
                } else {
                    self.push_expression(RawExpression::Instance(declared))
                }
            }
            Kind::TypeAssertion => {
                let mut declared = NONE;
                for child in self.children(node).named() {
                    if child.kind == Kind::TypeArguments {
                        for inner in self.children(child.node).named() {
                            declared = self.type_of(inner.node);
                        }
                    } else {
                        self.expression(child.node);
                    }
                }
                if declared == NONE { NONE } else { self.push_expression(RawExpression::Instance(declared)) }
            }
            Kind::Instantiation => {
                let children = self.children(node);
                if let Some(arguments) = children.field(fields.type_arguments) {
                    self.type_list(arguments.node);
                }
                let function = children.field(fields.function).or_else(|| children.named().next());
                function.map_or(NONE, |function| self.value(function.node, edge, qualifier))
            }
            Kind::Spread => {
                for child in self.children(node).named() {
                    self.expression(child.node);
                }
                NONE
            }
            Kind::Array => {
                let mut element = NONE;
                let mut parts = Vec::new();
                for child in self.children(node).named() {
                    let mut one = self.expression(child.node);
                    if child.kind == Kind::Spread {
                        one = NONE;
                    }
                    if one != self.literal && parts.len() < MAX_ARGUMENTS {
                        element = self.either(element, one);
                    }
                    parts.push(one);
                }
                self.push_expression(RawExpression::Sequence(element))
            }
            Kind::Object => self.object(node, NONE),
            Kind::Arrow | Kind::FunctionExpression | Kind::GeneratorFunction => {
                let child = Child { node, kind, field: 0 };
                self.function_value(child, NONE)
            }
            Kind::Class => self.class_value(node),
            Kind::Assignment => self.assignment(node),
            Kind::AugmentedAssignment => {
                let children = self.children(node);
                let value = children.field(fields.right).map_or(NONE, |right| self.expression(right.node));
                if let Some(left) = children.field(fields.left) {
                    if left.kind == Kind::Identifier {
                        self.assign_pattern(left, value);
                    } else {
                        self.expression(left.node);
                    }
                }
                NONE
            }
            Kind::TemplateString => {
                for child in self.children(node).named().filter(|child| child.kind == Kind::TemplateSubstitution) {
                    for inner in self.children(child.node).named() {
                        self.expression(inner.node);
                    }
                }
                self.literal
            }
            Kind::JsxElement | Kind::JsxSelfClosing | Kind::JsxOpening => {
                self.jsx(node, kind);
                self.literal
            }
            Kind::Namespace => {
                self.namespace(node);
                NONE
            }
            Kind::PropertyIdentifier
            | Kind::PrivateIdentifier
            | Kind::StringFragment
            | Kind::JsxClosing
            | Kind::JsxNamespaceName
            | Kind::StatementIdentifier
            | Kind::Comment
            | Kind::Other => NONE,
            Kind::FunctionDeclaration | Kind::ClassDeclaration | Kind::LexicalDeclaration | Kind::VariableDeclaration => {
                self.statement(Child { node, kind, field: 0 });
                NONE
            }
            _ => {
                for child in self.children(node).named() {
                    self.expression(child.node);
                }
                NONE
            }
        }
    }

    pub(super) fn identifier(&mut self, node: Node<'t>, edge: EdgeKind, qualifier: bool) -> u32 {
        let name = self.name(self.text(node));
        let used = self.add_use(name, VALUE);
        self.refer(node, edge, qualifier, RawSubject::Name(used));
        if let Some((_, evidence)) = self.narrowed.iter().rev().find(|(known, _)| *known == name) {
            return *evidence;
        }
        self.push_expression(RawExpression::Name(used))
    }

    /// Notes what a condition that held says about names: `x instanceof C`, alone or with others.
    pub(super) fn narrow(&mut self, condition: Node<'t>) {
        let fields = &self.grammar.fields;
        let mut open = vec![condition];
        while let Some(node) = open.pop() {
            let children = self.children(node);
            match self.kind(node) {
                Kind::Parenthesized => open.extend(children.named().map(|child| child.node)),
                Kind::Binary if children.has_token("&&") => open.extend(children.named().map(|child| child.node)),
                Kind::Binary if children.has_token("instanceof") => {
                    let (Some(left), Some(right)) = (children.field(fields.left), children.field(fields.right)) else { continue };
                    if left.kind != Kind::Identifier {
                        continue;
                    }
                    let Some(class) = self.name_evidence(right.node) else { continue };
                    let evidence = self.push_expression(RawExpression::New(class, NONE));
                    let name = self.name(self.text(left.node));
                    self.narrowed.push((name, evidence));
                }
                _ => {}
            }
        }
    }

    /// Returns the evidence for a plain or qualified name, without a reference of its own.
    fn name_evidence(&mut self, node: Node<'t>) -> Option<u32> {
        match self.kind(node) {
            Kind::Identifier => {
                let name = self.name(self.text(node));
                let used = self.add_use(name, VALUE);
                Some(self.push_expression(RawExpression::Name(used)))
            }
            Kind::Member => {
                let children = self.children(node);
                let (object, property) =
                    (children.field(self.grammar.fields.object)?, children.field(self.grammar.fields.property)?);
                if object.kind != Kind::Identifier {
                    return None;
                }
                let object = self.name_evidence(object.node)?;
                let name = self.name(self.text(property.node));
                Some(self.push_expression(RawExpression::Attribute(object, name)))
            }
            _ => None,
        }
    }

    /// Walks `a.b().c[d]!` from its beginning.
    fn chain(&mut self, node: Node<'t>, edge: EdgeKind, qualifier: bool) -> u32 {
        let fields = &self.grammar.fields;
        let mut spine: Vec<(Kind, Children<'t>)> = Vec::new();
        let mut current = node;
        let base = loop {
            let kind = self.kind(current);
            let children = self.children(current);
            let next = match kind {
                Kind::Member | Kind::Subscript => children.field(fields.object),
                Kind::Call => children.field(fields.function),
                Kind::NonNull => children.named().next(),
                _ => None,
            };
            match next {
                Some(next) => {
                    spine.push((kind, children));
                    current = next.node;
                }
                None => break current,
            }
        };
        // What stands right outside of an entry says how its name is used.
        let used_as = |outside: Option<&(Kind, Children<'t>)>| match outside {
            None => (edge, qualifier),
            Some((Kind::Call, _)) => (EdgeKind::Calls, false),
            Some((Kind::Member, _)) => (EdgeKind::References, true),
            Some((Kind::NonNull, _)) => (edge, qualifier),
            Some(_) => (EdgeKind::References, false),
        };
        let mut object;
        if matches!(self.kind(base), Kind::As | Kind::Satisfies) && matches!(spine.last(), Some((Kind::Member, _))) {
            // The grammar reads `value as a.b.C` as a member of `value as a.b`.
            object = self.cast_to_member(base, &mut spine);
        } else if let Some((Kind::Call, children)) = spine.last()
            && let Some(module) = self.module_call(base, &children.clone())
        {
            spine.pop();
            object = module;
        } else if self.is_exports(base) {
            // `module.exports` is the one object.
            if self.text(base) == "module" {
                spine.pop();
            }
            object = self.exports_object();
        } else {
            let (edge, qualifier) = used_as(spine.last());
            object = self.value(base, edge, qualifier);
        }
        while let Some((kind, children)) = spine.pop() {
            let (edge, qualifier) = used_as(spine.last());
            match kind {
                Kind::Member => {
                    let Some(property) = children.field(fields.property) else { continue };
                    let name = self.name(self.text(property.node));
                    self.refer(property.node, edge, qualifier, RawSubject::Member(object, name));
                    object = self.attribute(object, name);
                }
                Kind::Call => object = self.call(object, &children),
                Kind::Subscript => {
                    let index = children.field(fields.index);
                    if let Some(index) = index {
                        self.expression(index.node);
                    }
                    object = match index {
                        _ if object == NONE => NONE,
                        Some(index) if index.kind == Kind::String => {
                            let name = self.name(self.string(index.node));
                            self.push_expression(RawExpression::Attribute(object, name))
                        }
                        _ => self.push_expression(RawExpression::Element(object)),
                    };
                }
                _ => {}
            }
        }
        object
    }

    fn cast_to_member(&mut self, cast: Node<'t>, spine: &mut Vec<(Kind, Children<'t>)>) -> u32 {
        let children: Vec<_> = self.children(cast).named().collect();
        let (Some(value), Some(space)) = (children.first(), children.last()) else { return NONE };
        let value = self.expression(value.node);
        let mut object = match space.kind {
            Kind::NestedType => {
                let inner = self.children(space.node);
                let fields = &self.grammar.fields;
                let (Some(module), Some(name)) = (inner.field(fields.module), inner.field(fields.name)) else { return NONE };
                let object = self.namespace_name(module);
                let id = self.name(self.text(name.node));
                self.refer(name.node, EdgeKind::References, true, RawSubject::TypeMember(object, id));
                self.attribute(object, id)
            }
            Kind::TypeIdentifier | Kind::Identifier => self.namespace_name(*space),
            _ => self.type_of(space.node),
        };
        while let Some((Kind::Member, children)) = spine.last() {
            let Some(property) = children.field(self.grammar.fields.property) else { break };
            spine.pop();
            let name = self.name(self.text(property.node));
            let more = matches!(spine.last(), Some((Kind::Member, _)));
            self.refer(property.node, EdgeKind::References, more, RawSubject::TypeMember(object, name));
            object = self.attribute(object, name);
        }
        match self.kind(cast) {
            Kind::Satisfies => value,
            _ if object == NONE => NONE,
            _ => self.push_expression(RawExpression::Instance(object)),
        }
    }

    /// Walks the arguments of a call; returns the evidence for what it gives.
    fn call(&mut self, callee: u32, children: &Children<'t>) -> u32 {
        let fields = &self.grammar.fields;
        if let Some(arguments) = children.field(fields.type_arguments) {
            self.type_list(arguments.node);
        }
        let mut list = NONE;
        if let Some(arguments) = children.field(fields.arguments) {
            if arguments.kind == Kind::Arguments {
                list = self.arguments(callee, arguments.node);
            } else {
                self.expression(arguments.node);
            }
        }
        if callee == NONE { NONE } else { self.push_expression(RawExpression::Call(callee, list)) }
    }

    fn arguments(&mut self, callee: u32, node: Node<'t>) -> u32 {
        let mut parts = Vec::new();
        for (number, argument) in self.children(node).named().enumerate() {
            let expected = |walk: &mut Self| match callee {
                NONE => NONE,
                _ => walk.push_expression(RawExpression::Expected(callee, u8::try_from(number).unwrap_or(u8::MAX))),
            };
            let part = match argument.kind {
                Kind::Arrow | Kind::FunctionExpression | Kind::GeneratorFunction if self.depth < MAX_DEPTH => {
                    let expected = expected(self);
                    self.function_value(argument, expected)
                }
                Kind::Object if self.depth < MAX_DEPTH => {
                    let expected = expected(self);
                    self.object(argument.node, expected)
                }
                _ => self.expression(argument.node),
            };
            if parts.len() < MAX_ARGUMENTS {
                parts.push(part);
            }
        }
        if parts.iter().all(|part| *part == NONE || *part == self.literal) { NONE } else { self.list(&parts) }
    }

    fn new_expression(&mut self, node: Node<'t>) -> u32 {
        let fields = &self.grammar.fields;
        let children = self.children(node);
        let mut callee = NONE;
        if let Some(constructor) = children.field(fields.constructor) {
            callee = self.value(constructor.node, EdgeKind::Calls, false);
        }
        let mut list = NONE;
        if let Some(arguments) = children.field(fields.type_arguments) {
            list = self.type_list(arguments.node);
        }
        if let Some(arguments) = children.field(fields.arguments) {
            self.arguments(callee, arguments.node);
        }
        if callee == NONE { NONE } else { self.push_expression(RawExpression::New(callee, list)) }
    }

    /// Operators nest to the left; long rows of them are walked without going deeper.
    fn binary(&mut self, node: Node<'t>) -> u32 {
        let fields = &self.grammar.fields;
        let mut rights = Vec::new();
        let mut first = None;
        let mut current = node;
        let mut found = loop {
            let children = self.children(current);
            let chooses = ["||", "??", "&&"].iter().find(|operator| children.has_token(operator)).copied();
            rights.push((children.field(fields.right), chooses));
            match children.field(fields.left) {
                Some(left) if left.kind == Kind::Binary && !self.children(left.node).has_token("instanceof") => {
                    current = left.node
                }
                Some(left) => {
                    first = Some(left.node);
                    break self.expression(left.node);
                }
                None => break NONE,
            }
        };
        let known = self.narrowed.len();
        if let Some(first) = first.filter(|_| rights.last().is_some_and(|(_, chooses)| *chooses == Some("&&"))) {
            self.narrow(first);
        }
        while let Some((right, chooses)) = rights.pop() {
            let operand = right;
            let right = right.map_or(NONE, |right| self.expression(right.node));
            if let Some(operand) = operand.filter(|_| rights.last().is_some_and(|(_, chooses)| *chooses == Some("&&"))) {
                self.narrow(operand.node);
            }
            found = match chooses {
                Some("&&") => right,
                Some(_) => self.either(found, right),
                None => self.literal,
            };
        }
        self.narrowed.truncate(known);
        found
    }

    /// A function without a name of its own: it belongs to what is around it; one that has a name is a definition.
    pub(super) fn function_value(&mut self, child: Child<'t>, expected: u32) -> u32 {
        let fields = &self.grammar.fields;
        let children = self.children(child.node);
        let function = self.push_function();
        let mut context = FunctionContext { expected, ..self.plain_context() };
        if child.kind != Kind::Arrow {
            context.this = Some(NO_THIS);
        }
        let head = self.push_scope(ScopeKind::Block, true);
        self.in_scope(head, |walk| {
            if let Some(name) = children.field(fields.name) {
                let text = walk.text(name.node);
                let id = walk.name(text);
                let head_end = children.field(fields.body).map_or(child.node.end_byte(), |body| body.node.start_byte());
                let at = Declared { whole: child.node, name: name.node, head_end };
                let wrapper = walk.wrapper.take();
                let declaration = walk.declare("", text, SymbolKind::Function, &at, RawShape::Function(function));
                walk.wrapper = wrapper;
                walk.unexported(|walk| {
                    walk.bind(head, id, NewBinding { declaration, ..NewBinding::new(RawRole::Function, VALUE) });
                });
                context.owner = walk.owner_of(declaration);
            }
            walk.function(&children, function, &context);
        });
        self.push_expression(RawExpression::Function(function))
    }

    /// Walks a function expression that a name stands for; its own name, if it has one, means the same inside.
    pub(super) fn function_expression_in(&mut self, child: Child<'t>, function: u32, context: &FunctionContext) {
        let fields = &self.grammar.fields;
        let children = self.children(child.node);
        let head = self.push_scope(ScopeKind::Block, true);
        self.unexported(|walk| {
            walk.in_scope(head, |walk| {
                if let Some(name) = children.field(fields.name) {
                    let id = walk.name(walk.text(name.node));
                    let declaration = walk
                        .raw
                        .declarations
                        .iter()
                        .rposition(|known| known.definition + 1 == context.owner)
                        .map_or(NONE, |at| at as u32);
                    walk.bind(head, id, NewBinding { declaration, ..NewBinding::new(RawRole::Function, VALUE) });
                }
                walk.function(&children, function, context);
            });
        });
    }

    fn class_value(&mut self, node: Node<'t>) -> u32 {
        let fields = &self.grammar.fields;
        let class = self.push_class();
        let children = self.children(node);
        let mut owner = self.owner;
        if let Some(name) = children.field(fields.name) {
            let head_end = children.field(fields.body).map_or(node.end_byte(), |body| body.node.start_byte());
            let at = Declared { whole: node, name: name.node, head_end };
            let wrapper = self.wrapper.take();
            let declaration = self.declare("", self.text(name.node), SymbolKind::Class, &at, RawShape::Class(class));
            self.wrapper = wrapper;
            owner = self.owner_of(declaration);
        }
        self.unexported(|walk| walk.class_inside(node, class, owner, true));
        self.class_evidence(class)
    }

    pub(super) fn class_evidence(&mut self, class: u32) -> u32 {
        self.push_expression(RawExpression::Object(class))
    }

    fn assignment(&mut self, node: Node<'t>) -> u32 {
        let fields = &self.grammar.fields;
        let children = self.children(node);
        let (Some(left), Some(right)) = (children.field(fields.left), children.field(fields.right)) else { return NONE };
        if matches!(left.kind, Kind::Member | Kind::Subscript) {
            return self.assign_to_member(node, left, right);
        }
        if left.kind == Kind::Identifier && self.javascript && self.text(left.node) == "exports" && right.kind == Kind::Assignment
        {
            // `exports = module.exports = …`
            return self.expression(right.node);
        }
        let value = self.expression(right.node);
        self.assign_pattern(left, value);
        value
    }

    /// `a.b = value`, where no definition comes of it.
    pub(super) fn assign_member(&mut self, target: Node<'t>, value: u32) {
        let fields = &self.grammar.fields;
        let children = self.children(target);
        let (Some(object), Some(property)) = (children.field(fields.object), children.field(fields.property)) else {
            self.expression(target);
            return;
        };
        let holder = self.value(object.node, EdgeKind::References, object.kind != Kind::Call);
        let name = self.name(self.text(property.node));
        if holder == NONE {
            // A cast to anything hides the object, and writes to it all the same.
            if let Some(inner) = self.cast_object(object) {
                self.raw.writes.push((inner, name));
            }
            return;
        }
        self.refer(property.node, EdgeKind::References, false, RawSubject::Member(holder, name));
        match self.raw.expressions[holder as usize] {
            RawExpression::This(class, statics) => self.assign_own(class, statics, name, value),
            _ => self.raw.writes.push((holder, name)),
        }
    }

    fn cast_object(&mut self, object: Child<'t>) -> Option<u32> {
        let mut inner = object;
        while matches!(inner.kind, Kind::Parenthesized | Kind::As | Kind::NonNull) {
            inner = self.children(inner.node).named().next()?;
        }
        self.name_evidence(inner.node)
    }

    /// `this.name = value`: evidence for a member, which it may replace.
    fn assign_own(&mut self, class: u32, statics: bool, name: u32, value: u32) {
        let shape = &self.raw.classes[class as usize];
        let list = if statics { &shape.statics } else { &shape.members };
        let known = list.iter().find(|(known, _)| *known == name).map(|(_, binding)| *binding);
        match known {
            Some(binding) => {
                let before = self.raw.bindings[binding as usize];
                if before.role == RawRole::Function {
                    self.raw.bindings[binding as usize].written |= !self.is_bound_self(value);
                } else if before.annotation == NONE {
                    let value = if before.value == self.literal { value } else { self.either(before.value, value) };
                    self.raw.bindings[binding as usize].value = value;
                }
            }
            None => {
                let outer = shape.outer;
                let binding = self.push_binding(name, outer, NewBinding::of_value(value));
                self.add_member(class, statics, name, binding);
            }
        }
    }

    /// Returns whether a value is `this.f.bind(…)`: the same function.
    fn is_bound_self(&self, value: u32) -> bool {
        let Some(RawExpression::Call(callee, _)) = self.raw.expressions.get(value as usize) else { return false };
        let Some(RawExpression::Attribute(_, name)) = self.raw.expressions.get(*callee as usize) else { return false };
        self.raw.names[*name as usize] == "bind"
    }

    fn jsx(&mut self, node: Node<'t>, kind: Kind) {
        let fields = &self.grammar.fields;
        let children = self.children(node);
        if kind != Kind::JsxElement
            && let Some(name) = children.field(fields.name)
        {
            let intrinsic = name.kind == Kind::Identifier && self.text(name.node).starts_with(|first: char| first.is_lowercase());
            if !intrinsic && name.kind != Kind::JsxNamespaceName {
                self.value(name.node, EdgeKind::Calls, false);
            }
        }
        for child in children.named() {
            match child.kind {
                Kind::Identifier | Kind::Member | Kind::JsxNamespaceName if child.field == fields.name => {}
                Kind::JsxClosing => {}
                Kind::TypeArguments => {
                    self.type_list(child.node);
                }
                Kind::JsxAttribute => {
                    for value in self.children(child.node).named() {
                        if !matches!(value.kind, Kind::PropertyIdentifier | Kind::String | Kind::JsxNamespaceName) {
                            self.expression(value.node);
                        }
                    }
                }
                _ => {
                    self.expression(child.node);
                }
            }
        }
    }
}
