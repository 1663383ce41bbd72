//! Types: references to names that stand for types, and the evidence that a declared type is.
//!
//! Must not know what declares them. Invariant: a name in a type means a type, its qualifier a namespace.

use super::*;
use crate::languages::ecmascript::repair;

impl<'s, 't> Walk<'s, 't> {
    /// Walks a type, or an annotation around one; returns its evidence.
    pub(super) fn type_of(&mut self, node: Node<'t>) -> u32 {
        if self.depth >= MAX_DEPTH {
            return NONE;
        }
        self.depth += 1;
        let found = self.type_inside(node);
        self.depth -= 1;
        found
    }

    fn type_inside(&mut self, node: Node<'t>) -> u32 {
        let fields = &self.grammar.fields;
        let kind = self.kind(node);
        match kind {
            Kind::TypeIdentifier | Kind::Identifier => self.type_name(node, EdgeKind::References),
            Kind::NestedType | Kind::GenericType => self.type_reference(Child { node, kind, field: 0 }, EdgeKind::References),
            Kind::TypeAnnotation | Kind::ParenthesizedType | Kind::ReadonlyType | Kind::OptionalType | Kind::Constraint => {
                let mut found = NONE;
                for child in self.children(node).named() {
                    found = self.type_of(child.node);
                }
                found
            }
            Kind::RestType => {
                let mut found = NONE;
                for child in self.children(node).named() {
                    found = self.type_of(child.node);
                }
                if found == NONE { NONE } else { self.push_expression(RawExpression::Element(found)) }
            }
            Kind::UnionType | Kind::IntersectionType => self.alternatives(node, kind),
            Kind::ArrayType => {
                let mut element = NONE;
                for child in self.children(node).named() {
                    element = self.type_of(child.node);
                }
                self.push_expression(RawExpression::Sequence(element))
            }
            Kind::TupleType => {
                let mut parts = Vec::new();
                for child in self.children(node).named() {
                    let part = match child.kind {
                        Kind::RequiredParameter | Kind::OptionalParameter => {
                            let inner = self.children(child.node);
                            inner.field(fields.kind_of).map_or(NONE, |inner| self.type_of(inner.node))
                        }
                        _ => self.type_of(child.node),
                    };
                    parts.push(part);
                }
                self.list(&parts)
            }
            Kind::ObjectType => {
                let class = self.push_class();
                let before = self.this;
                // Methods of a type that has a name are definitions, like those of an interface.
                let owner = self.owner.checked_sub(1).and_then(|owner| self.raw.definitions.get(owner as usize));
                let named = owner.is_some_and(|owner| matches!(owner.kind, SymbolKind::Type | SymbolKind::Interface));
                self.signatures(node, class, named);
                self.this = before;
                self.push_expression(RawExpression::Structure(class))
            }
            Kind::FunctionType | Kind::ConstructorType => {
                let children = self.children(node);
                let function = self.push_function();
                let context = self.plain_context();
                self.function(&children, function, &context);
                if kind == Kind::FunctionType {
                    return self.push_expression(RawExpression::Function(function));
                }
                let class = self.push_class();
                self.raw.classes[class as usize].constructs.push(function);
                self.push_expression(RawExpression::Structure(class))
            }
            Kind::ConditionalType => {
                let children = self.children(node);
                // Types that the condition infers are names of the branch that it leads to.
                let scope = self.push_scope(ScopeKind::Block, true);
                self.in_scope(scope, |walk| {
                    for field in [fields.left, fields.right] {
                        if let Some(child) = children.field(field) {
                            walk.type_of(child.node);
                        }
                    }
                    let consequence = children.field(fields.consequence).map_or(NONE, |child| walk.type_of(child.node));
                    let alternative = children.field(fields.alternative).map_or(NONE, |child| walk.type_of(child.node));
                    walk.either(consequence, alternative)
                })
            }
            Kind::InferType => {
                let scope = self.scope;
                for (index, child) in self.children(node).named().enumerate() {
                    if index == 0 {
                        let name = self.name(self.text(child.node));
                        self.bind(scope, name, super::names::NewBinding::new(RawRole::TypeParameter, TYPE));
                    } else {
                        self.type_of(child.node);
                    }
                }
                NONE
            }
            Kind::PredefinedType => match self.text(node) {
                "any" | "unknown" | "object" => NONE,
                _ => self.literal,
            },
            Kind::LiteralType => self.literal_type(node),
            Kind::Null | Kind::Undefined => self.literal,
            Kind::TemplateLiteralType => {
                self.each_type(node);
                self.literal
            }
            Kind::TypeQuery => self.type_query(node),
            Kind::IndexTypeQuery => {
                self.each_type(node);
                self.literal
            }
            Kind::LookupType => {
                let children: Vec<_> = self.children(node).named().collect();
                let [object, index] = children.as_slice() else { return NONE };
                let whole = self.type_of(object.node);
                self.type_of(index.node);
                let literal = (index.kind == Kind::LiteralType).then(|| self.string(index.node));
                match literal {
                    Some(name) if whole != NONE && self.text(index.node).starts_with(['"', '\'']) => {
                        let name = self.name(name);
                        self.push_expression(RawExpression::Property(whole, name))
                    }
                    _ if whole != NONE => self.push_expression(RawExpression::Element(whole)),
                    _ => NONE,
                }
            }
            Kind::ThisType | Kind::This => {
                let This { class, statics, .. } = self.this;
                if class == NONE { NONE } else { self.push_expression(RawExpression::This(class, statics)) }
            }
            Kind::TypePredicate | Kind::TypePredicateAnnotation | Kind::AssertsAnnotation | Kind::Asserts => {
                for child in self.children(node).named() {
                    if !matches!(child.kind, Kind::Identifier | Kind::This) {
                        self.type_of(child.node);
                    }
                }
                self.literal
            }
            // `import("./m")` and what is taken from it.
            Kind::Call | Kind::Member => self.imported_type(node),
            Kind::String | Kind::Number | Kind::True | Kind::False | Kind::Other => NONE,
            _ => {
                self.each_type(node);
                NONE
            }
        }
    }

    fn each_type(&mut self, node: Node<'t>) {
        for child in self.children(node).named() {
            self.type_of(child.node);
        }
    }

    /// Unions nest to the left; long ones are walked without going deeper.
    fn alternatives(&mut self, node: Node<'t>, kind: Kind) -> u32 {
        let mut found = NONE;
        let mut open = vec![node];
        while let Some(next) = open.pop() {
            for child in self.children(next).named() {
                if child.kind == kind {
                    open.push(child.node);
                } else {
                    let one = self.type_of(child.node);
                    let start = child.node.start_byte();
                    let first = kind == Kind::UnionType || start == node.start_byte();
                    let stands = first || !repair::is_argument(self.source, start);
                    if one != self.literal && stands {
                        found = self.either(one, found);
                    }
                }
            }
        }
        if found == NONE { self.literal } else { found }
    }

    /// Packs a list, whose entries keep their places.
    pub(super) fn list(&mut self, parts: &[u32]) -> u32 {
        let mut rest = NONE;
        for part in parts.iter().take(MAX_LIST).rev() {
            rest = self.push_expression(RawExpression::List(*part, rest));
        }
        rest
    }

    pub(super) fn type_list(&mut self, arguments: Node<'t>) -> u32 {
        let mut parts = Vec::new();
        for child in self.children(arguments).named() {
            parts.push(self.type_of(child.node));
        }
        self.list(&parts)
    }

    fn type_name(&mut self, node: Node<'t>, edge: EdgeKind) -> u32 {
        let text = self.text(node);
        let name = self.name(text);
        let used = self.add_use(name, TYPE);
        if text != "const" {
            self.refer(node, edge, false, RawSubject::Type(used));
        }
        self.push_expression(RawExpression::Name(used))
    }

    /// Walks a name that stands for a type, qualified and with arguments or not.
    pub(super) fn type_reference(&mut self, child: Child<'t>, edge: EdgeKind) -> u32 {
        let fields = &self.grammar.fields;
        match child.kind {
            Kind::TypeIdentifier | Kind::Identifier => self.type_name(child.node, edge),
            Kind::GenericType => {
                let children = self.children(child.node);
                let Some(name) = children.field(fields.name) else { return NONE };
                let generic = self.type_reference(name, edge);
                let list = children.field(fields.type_arguments).map_or(NONE, |arguments| self.type_list(arguments.node));
                if generic == NONE { NONE } else { self.push_expression(RawExpression::Subscript(generic, list)) }
            }
            Kind::NestedType => {
                let children = self.children(child.node);
                let (Some(module), Some(name)) = (children.field(fields.module), children.field(fields.name)) else {
                    return NONE;
                };
                let object = self.namespace_name(module);
                let id = self.name(self.text(name.node));
                self.refer(name.node, edge, false, RawSubject::TypeMember(object, id));
                if object == NONE { NONE } else { self.push_expression(RawExpression::Attribute(object, id)) }
            }
            _ => self.type_of(child.node),
        }
    }

    /// Walks the qualifier of a type: a namespace, or one inside another.
    pub(super) fn namespace_name(&mut self, child: Child<'t>) -> u32 {
        let mut spine = Vec::new();
        let mut current = child;
        while matches!(current.kind, Kind::NestedIdentifier | Kind::Member) {
            let children: Vec<_> = self.children(current.node).named().collect();
            let (Some(object), Some(property)) = (children.first().copied(), children.last().copied()) else { return NONE };
            spine.push(property);
            current = object;
        }
        let name = self.name(self.text(current.node));
        let used = self.add_use(name, SPACE);
        self.refer(current.node, EdgeKind::References, true, RawSubject::Type(used));
        let mut object = self.push_expression(RawExpression::Name(used));
        while let Some(property) = spine.pop() {
            let name = self.name(self.text(property.node));
            self.refer(property.node, EdgeKind::References, true, RawSubject::TypeMember(object, name));
            object = self.push_expression(RawExpression::Attribute(object, name));
        }
        object
    }

    /// `typeof x.y`: the type of a value.
    fn type_query(&mut self, node: Node<'t>) -> u32 {
        let mut value = NONE;
        for child in self.children(node).named() {
            match child.kind {
                Kind::TypeArguments => self.each_type(child.node),
                _ => value = self.value(child.node, EdgeKind::References, false),
            }
        }
        if value == NONE { NONE } else { self.push_expression(RawExpression::TypeOf(value)) }
    }

    /// A literal as a type; of `typeof import("m")` as the argument of a call the repaired text leaves the literal.
    fn literal_type(&mut self, node: Node<'t>) -> u32 {
        let Some(source) = self.children(node).kind(Kind::String) else { return self.literal };
        if !self.source[..node.start_byte()].trim_end().ends_with("import(") {
            return self.literal;
        }
        let module = self.name(self.string(source.node));
        let import = self.push_import(module, NONE);
        self.refer_module(source.node, import);
        let binding = self.hidden_import(import);
        self.push_expression(RawExpression::Binding(binding))
    }

    fn imported_type(&mut self, node: Node<'t>) -> u32 {
        let fields = &self.grammar.fields;
        let children = self.children(node);
        if self.kind(node) == Kind::Call {
            return self.import_call(&children).unwrap_or(NONE);
        }
        let (Some(object), Some(property)) = (children.field(fields.object), children.field(fields.property)) else {
            return NONE;
        };
        let whole = self.type_of(object.node);
        let name = self.name(self.text(property.node));
        self.refer(property.node, EdgeKind::References, false, RawSubject::TypeMember(whole, name));
        if whole == NONE { NONE } else { self.push_expression(RawExpression::Attribute(whole, name)) }
    }
}
