//! Classes and interfaces: bases and members.
//!
//! Must not know who uses them. Invariant: members of an instance and of the class itself are kept apart.

use super::functions::FunctionContext;
use super::names::NewBinding;
use super::*;

impl<'s, 't> Walk<'s, 't> {
    pub(super) fn class_declaration(&mut self, node: Node<'t>) {
        let fields = &self.grammar.fields;
        let children = self.children(node);
        let Some(name_node) = children.field(fields.name) else { return };
        let text = self.text(name_node.node);
        let name = self.name(text);
        let scope = self.scope;
        let class = self.shape_of_name(scope, name);
        let head_end = children.field(fields.body).map_or(node.end_byte(), |body| body.node.start_byte());
        let at = Declared { whole: node, name: name_node.node, head_end };
        let declaration = self.declare("", text, SymbolKind::Class, &at, RawShape::Class(class));
        self.bind(scope, name, NewBinding { declaration, ..NewBinding::new(RawRole::Class, VALUE | TYPE) });
        let owner = self.owner_of(declaration);
        self.unexported(|walk| walk.class_inside(node, class, owner, false));
    }

    /// Walks heritage and body of a class; an expression's own name is bound inside.
    pub(super) fn class_inside(&mut self, node: Node<'t>, class: u32, owner: u32, is_expression: bool) {
        let fields = &self.grammar.fields;
        let children = self.children(node);
        for decorator in children.named().filter(|child| child.kind == Kind::Decorator) {
            self.decorator(decorator.node);
        }
        let head = self.push_scope(ScopeKind::Block, true);
        self.in_scope(head, |walk| {
            if is_expression && let Some(name) = children.field(fields.name) {
                let id = walk.name(walk.text(name.node));
                let declaration = walk.declaration_of_owner(owner);
                walk.bind(head, id, NewBinding { declaration, ..NewBinding::new(RawRole::Class, VALUE | TYPE) });
            }
            if let Some(list) = children.field(fields.type_parameters) {
                let parameters = walk.type_parameters(list.node);
                walk.raw.classes[class as usize].parameters = parameters;
            }
            if let Some(heritage) = children.kind(Kind::ClassHeritage) {
                walk.heritage(heritage.node, class, owner);
            }
            let before = std::mem::replace(&mut walk.this, This::of(class, false));
            walk.in_owner(owner, |walk| {
                if let Some(body) = children.field(fields.body) {
                    walk.deeper(|walk| walk.members(body.node, class));
                }
            });
            walk.this = before;
        });
    }

    fn declaration_of_owner(&self, owner: u32) -> u32 {
        let definition = owner.wrapping_sub(1);
        self.raw.declarations.iter().rposition(|declaration| declaration.definition == definition).map_or(NONE, |at| at as u32)
    }

    fn heritage(&mut self, node: Node<'t>, class: u32, owner: u32) {
        let fields = &self.grammar.fields;
        self.in_owner(owner, |walk| {
            let children = walk.children(node);
            let mut typed = false;
            for child in children.named() {
                match child.kind {
                    Kind::ExtendsClause => {
                        typed = true;
                        let inner = walk.children(child.node);
                        let arguments = inner.field(fields.type_arguments);
                        let mut base = NONE;
                        for value in inner.all_of_field(fields.value) {
                            base = walk.value(value.node, EdgeKind::Inherits, false);
                        }
                        if let Some(arguments) = arguments {
                            let list = walk.type_list(arguments.node);
                            if base != NONE {
                                base = walk.push_expression(RawExpression::Subscript(base, list));
                            }
                        }
                        walk.raw.classes[class as usize].bases.push(base);
                    }
                    Kind::ImplementsClause => {
                        typed = true;
                        for base in walk.children(child.node).named() {
                            // An interface says what the class has, and gives it nothing.
                            walk.type_reference(base, EdgeKind::Inherits);
                        }
                    }
                    _ if !typed => {
                        let base = walk.value(child.node, EdgeKind::Inherits, false);
                        walk.raw.classes[class as usize].bases.push(base);
                    }
                    _ => {}
                }
            }
        });
    }

    fn members(&mut self, body: Node<'t>, class: u32) {
        for member in self.children(body).named() {
            match member.kind {
                Kind::MethodDefinition | Kind::MethodSignature | Kind::AbstractMethod => self.method(member, class, false),
                Kind::FieldDefinition | Kind::PublicField => self.field(member.node, class),
                Kind::StaticBlock => {
                    let before = std::mem::replace(&mut self.this, This::of(class, true));
                    let scope = self.push_scope(ScopeKind::Body, false);
                    for block in self.children(member.node).named() {
                        self.in_scope(scope, |walk| walk.block_statements(block.node));
                    }
                    self.this = before;
                }
                Kind::IndexSignature => self.index_signature(member.node, class),
                Kind::Decorator => self.decorator(member.node),
                _ => {}
            }
        }
    }

    /// A method of a class, interface or object; `object` ones are members of the value itself.
    pub(super) fn method(&mut self, member: Child<'t>, class: u32, object: bool) {
        let fields = &self.grammar.fields;
        let node = member.node;
        let children = self.children(node);
        for decorator in children.named().filter(|child| child.kind == Kind::Decorator) {
            self.decorator(decorator.node);
        }
        let Some(name_node) = children.field(fields.name) else { return };
        let statics = object || children.has_token("static");
        let accessor = children.has_token("get") || children.has_token("set");
        let body = children.field(fields.body);
        let this = Some(This::of(class, statics));
        let is_constructor = !object && self.text(name_node.node) == "constructor";
        let constructs = if is_constructor { class } else { NONE };
        if name_node.kind == Kind::ComputedName {
            // Without a name that could be looked for, but a definition: `[Symbol.iterator]`.
            self.computed_name(name_node.node);
            let function = self.push_function();
            let head_end = body.map_or(node.end_byte(), |body| body.node.start_byte());
            let at = Declared { whole: node, name: name_node.node, head_end };
            let declaration = self.declare("", self.text(name_node.node), SymbolKind::Method, &at, RawShape::Function(function));
            let context = FunctionContext { owner: self.owner_of(declaration), this, constructs, expected: NONE };
            self.function(&children, function, &context);
            return;
        }
        let text = self.string(name_node.node);
        let name = self.name(text);
        let head_end = body.map_or(node.end_byte(), |body| body.node.start_byte());
        let at = Declared { whole: node, name: name_node.node, head_end };
        let list = self.member_list(class, statics);
        let same = list.iter().rev().find(|(known, _)| *known == name).map(|(_, binding)| *binding).filter(|binding| {
            let known = &self.raw.bindings[*binding as usize];
            known.role == RawRole::Function && (self.overloads.contains(binding) || accessor)
        });
        let (binding, declaration, function) = match same {
            Some(binding) => {
                let declaration = self.raw.bindings[binding as usize].declaration;
                self.continue_declaration(declaration, &at, body.is_some() && !accessor);
                let RawShape::Function(function) = self.raw.declarations[declaration as usize].shape else { return };
                (binding, declaration, function)
            }
            None => {
                let function = self.push_function();
                let declaration = self.declare("", text, SymbolKind::Method, &at, RawShape::Function(function));
                let outer = self.raw.classes[class as usize].outer;
                let new = NewBinding { declaration, ..NewBinding::new(RawRole::Function, VALUE) };
                let binding = self.push_binding(name, outer, new);
                self.add_member(class, statics, name, binding);
                (binding, declaration, function)
            }
        };
        if body.is_none() {
            self.overloads.insert(binding);
        } else {
            self.overloads.remove(&binding);
        }
        let context = FunctionContext { owner: self.owner_of(declaration), this, constructs, expected: NONE };
        self.raw.functions[function as usize].property |= accessor;
        let setter = children.has_token("set");
        let hidden = body.is_some() && !accessor && !self.raw.functions[function as usize].returns.is_empty() || setter;
        let function = if hidden { self.push_function() } else { function };
        self.function(&children, function, &context);
    }

    fn member_list(&self, class: u32, statics: bool) -> &[(u32, u32)] {
        let class = &self.raw.classes[class as usize];
        if statics { &class.statics } else { &class.members }
    }

    pub(super) fn add_member(&mut self, class: u32, statics: bool, name: u32, binding: u32) {
        let class = &mut self.raw.classes[class as usize];
        if statics { class.statics.push((name, binding)) } else { class.members.push((name, binding)) }
    }

    fn field(&mut self, node: Node<'t>, class: u32) {
        let fields = &self.grammar.fields;
        let children = self.children(node);
        for decorator in children.named().filter(|child| child.kind == Kind::Decorator) {
            self.decorator(decorator.node);
        }
        let Some(name_node) = children.field(fields.name).or_else(|| children.field(fields.property)) else { return };
        let statics = children.has_token("static");
        let annotation = children.field(fields.kind_of).map_or(NONE, |annotation| self.type_of(annotation.node));
        let before = std::mem::replace(&mut self.this, This::of(class, statics));
        let scope = self.push_scope(ScopeKind::Body, true);
        self.in_scope(scope, |walk| walk.field_value(node, class, statics, name_node, annotation, children.field(fields.value)));
        self.this = before;
    }

    fn field_value(
        &mut self,
        node: Node<'t>,
        class: u32,
        statics: bool,
        name_node: Child<'t>,
        annotation: u32,
        value: Option<Child<'t>>,
    ) {
        if name_node.kind == Kind::ComputedName {
            self.computed_name(name_node.node);
            if let Some(value) = value {
                self.expression(value.node);
            }
            return;
        }
        let text = self.string(name_node.node);
        let name = self.name(text);
        let outer = self.raw.classes[class as usize].outer;
        let bare = value.map(|value| self.bare_function(value));
        let value = bare.map(|(value, _)| value);
        let annotation = if annotation == NONE { bare.map_or(NONE, |(_, cast)| cast) } else { annotation };
        if let Some(value) = value
            && matches!(value.kind, Kind::Arrow | Kind::FunctionExpression | Kind::GeneratorFunction)
        {
            let this = This::of(class, statics);
            let expected = if annotation == NONE { NONE } else { self.push_expression(RawExpression::Instance(annotation)) };
            self.function_member(node, class, statics, (name_node.node, text), annotation, expected, value, this);
            return;
        }
        let value = value.map_or(NONE, |value| self.expression(value.node));
        let new = NewBinding { annotation, ..NewBinding::of_value(value) };
        let binding = self.push_binding(name, outer, new);
        self.add_member(class, statics, name, binding);
    }

    /// A member whose value is a function: a method.
    #[allow(clippy::too_many_arguments, reason = "each says another thing about the one member")]
    pub(super) fn function_member(
        &mut self,
        whole: Node<'t>,
        class: u32,
        statics: bool,
        (name_node, text): (Node<'t>, &'s str),
        annotation: u32,
        expected: u32,
        value: Child<'t>,
        this: This,
    ) -> u32 {
        let name = self.name(text);
        let outer = self.raw.classes[class as usize].outer;
        let function = self.push_function();
        let body = self.children(value.node).field(self.grammar.fields.body);
        let head_end = body.map_or(value.node.start_byte(), |body| body.node.start_byte());
        let at = Declared { whole, name: name_node, head_end };
        let declaration = self.declare("", text, SymbolKind::Method, &at, RawShape::Function(function));
        let evidence = self.push_expression(RawExpression::Function(function));
        let role = if annotation == NONE { RawRole::Function } else { RawRole::Variable };
        let new = NewBinding { role, meanings: VALUE, declaration, annotation, value: evidence };
        let binding = self.push_binding(name, outer, new);
        self.add_member(class, statics, name, binding);
        let this = if value.kind == Kind::Arrow { self.this } else { this };
        let context = FunctionContext { owner: self.owner_of(declaration), this: Some(this), constructs: NONE, expected };
        self.function_expression_in(value, function, &context);
        binding
    }

    pub(super) fn interface_declaration(&mut self, node: Node<'t>) {
        let fields = &self.grammar.fields;
        let children = self.children(node);
        let Some(name_node) = children.field(fields.name) else { return };
        let text = self.text(name_node.node);
        let name = self.name(text);
        let scope = self.scope;
        let class = self.shape_of_name(scope, name);
        let head_end = children.field(fields.body).map_or(node.end_byte(), |body| body.node.start_byte());
        let at = Declared { whole: node, name: name_node.node, head_end };
        let owner = self.merged(name, text, SymbolKind::Interface, TYPE, &at, class);
        self.unexported(|walk| {
            let head = walk.push_scope(ScopeKind::Block, true);
            let before = std::mem::replace(&mut walk.this, This::of(class, false));
            walk.in_scope(head, |walk| {
                if let Some(list) = children.field(fields.type_parameters) {
                    let parameters = walk.type_parameters(list.node);
                    if walk.raw.classes[class as usize].parameters.is_empty() {
                        walk.raw.classes[class as usize].parameters = parameters;
                    }
                }
                walk.in_owner(owner, |walk| {
                    if let Some(bases) = children.kind(Kind::ExtendsTypeClause) {
                        for base in walk.children(bases.node).named() {
                            let base = walk.type_reference(base, EdgeKind::Inherits);
                            walk.raw.classes[class as usize].bases.push(base);
                        }
                    }
                    if let Some(body) = children.field(fields.body) {
                        walk.deeper(|walk| walk.signatures(body.node, class, true));
                    }
                });
            });
            walk.this = before;
        });
    }

    /// Walks the members of an interface or of a type literal, which makes no definitions of its own.
    pub(super) fn signatures(&mut self, body: Node<'t>, class: u32, named: bool) {
        let fields = &self.grammar.fields;
        for member in self.children(body).named() {
            match member.kind {
                Kind::MethodSignature if named => self.method(member, class, false),
                Kind::MethodSignature | Kind::CallSignature | Kind::ConstructSignature => {
                    let children = self.children(member.node);
                    let function = self.push_function();
                    let context = self.plain_context();
                    self.function(&children, function, &context);
                    match member.kind {
                        Kind::CallSignature => self.raw.classes[class as usize].calls.push(function),
                        Kind::ConstructSignature => self.raw.classes[class as usize].constructs.push(function),
                        _ => {
                            let Some(name) = children.field(fields.name).filter(|name| name.kind != Kind::ComputedName) else {
                                continue;
                            };
                            let name = self.name(self.string(name.node));
                            let evidence = self.push_expression(RawExpression::Function(function));
                            let outer = self.outer();
                            let binding = self.push_binding(name, outer, NewBinding::of_value(evidence));
                            self.add_member(class, false, name, binding);
                        }
                    }
                }
                Kind::PropertySignature => {
                    let children = self.children(member.node);
                    let annotation = children.field(fields.kind_of).map_or(NONE, |annotation| self.type_of(annotation.node));
                    let Some(name) = children.field(fields.name) else { continue };
                    if name.kind == Kind::ComputedName {
                        self.computed_name(name.node);
                        continue;
                    }
                    let name = self.name(self.string(name.node));
                    let outer = self.outer();
                    let new = NewBinding { annotation, ..NewBinding::new(RawRole::Variable, VALUE) };
                    let binding = self.push_binding(name, outer, new);
                    self.add_member(class, false, name, binding);
                }
                Kind::IndexSignature => self.index_signature(member.node, class),
                _ => {}
            }
        }
    }

    fn index_signature(&mut self, node: Node<'t>, class: u32) {
        let fields = &self.grammar.fields;
        let scope = self.push_scope(ScopeKind::Block, true);
        self.in_scope(scope, |walk| {
            let children = walk.children(node);
            if let Some(clause) = children.kind(Kind::MappedTypeClause) {
                let inner = walk.children(clause.node);
                if let Some(over) = inner.field(fields.kind_of) {
                    walk.type_of(over.node);
                }
                if let Some(name) = inner.field(fields.name) {
                    let name = walk.name(walk.text(name.node));
                    walk.bind(scope, name, NewBinding::new(RawRole::TypeParameter, TYPE));
                }
                if let Some(alias) = inner.field(fields.alias) {
                    walk.type_of(alias.node);
                }
            }
            if let Some(index) = children.field(fields.index_type) {
                walk.type_of(index.node);
            }
            if let Some(value) = children.field(fields.kind_of) {
                let value = walk.type_of(value.node);
                walk.raw.classes[class as usize].elements = (value != NONE).then_some(value);
            }
        });
    }
}
