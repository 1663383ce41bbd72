//! Statements: blocks, variables, functions, namespaces, enums; expressions inside are left to [`super::expressions`].
//!
//! Must not know how names are found. Invariant: a block's names end with it, `var` and what a file exports do not.

use super::functions::FunctionContext;
use super::names::NewBinding;
use super::*;
use crate::languages::ecmascript::exports::EVERYWHERE;

impl<'s, 't> Walk<'s, 't> {
    /// Walks the statements of a block in the scope that is open.
    pub(super) fn block_statements(&mut self, block: Node<'t>) {
        for child in self.children(block).named() {
            self.statement(child);
        }
    }

    pub(super) fn statement(&mut self, child: Child<'t>) {
        self.deeper(|walk| walk.statement_inside(child));
    }

    fn statement_inside(&mut self, child: Child<'t>) {
        let node = child.node;
        match child.kind {
            Kind::ImportStatement => self.import_statement(node),
            Kind::ImportAlias => self.import_alias(node),
            Kind::ExportStatement => self.export_statement(node),
            Kind::LexicalDeclaration | Kind::VariableDeclaration | Kind::UsingDeclaration => self.variables(node, child.kind),
            Kind::FunctionDeclaration | Kind::GeneratorDeclaration | Kind::FunctionSignature => {
                self.function_declaration(node, child.kind == Kind::FunctionSignature);
            }
            Kind::ClassDeclaration | Kind::AbstractClass => self.class_declaration(node),
            Kind::InterfaceDeclaration => self.interface_declaration(node),
            Kind::TypeAlias => self.type_alias(node),
            Kind::EnumDeclaration => self.enum_declaration(node),
            Kind::Namespace | Kind::AmbientModule => self.namespace(node),
            Kind::AmbientDeclaration => self.ambient(node),
            Kind::Block => {
                let scope = self.push_scope(ScopeKind::Block, true);
                self.in_scope(scope, |walk| walk.block_statements(node));
            }
            Kind::For => {
                let scope = self.push_scope(ScopeKind::Block, true);
                self.in_scope(scope, |walk| {
                    for child in walk.children(node).named() {
                        walk.statement(child);
                    }
                });
            }
            Kind::ForIn => self.for_in(node),
            Kind::Catch => {
                let scope = self.push_scope(ScopeKind::Block, true);
                self.in_scope(scope, |walk| {
                    let fields = &walk.grammar.fields;
                    let children = walk.children(node);
                    if let Some(annotation) = children.field(fields.kind_of) {
                        walk.type_of(annotation.node);
                    }
                    if let Some(parameter) = children.field(fields.parameter) {
                        walk.pattern(parameter, scope, RawRole::Parameter, NONE, NONE);
                    }
                    if let Some(body) = children.field(fields.body) {
                        walk.block_statements(body.node);
                    }
                });
            }
            Kind::Return => {
                for child in self.children(node).named() {
                    let value = self.result(child);
                    if let Some(frame) = self.frames.last_mut() {
                        frame.returned.push(value);
                    }
                }
            }
            Kind::SwitchBody => {
                let scope = self.push_scope(ScopeKind::Block, true);
                self.in_scope(scope, |walk| walk.block_statements(node));
            }
            Kind::ExpressionStatement => {
                for child in self.children(node).named() {
                    if child.kind == Kind::Namespace {
                        // `namespace A {}` reads as an expression at the start of a statement.
                        self.wrapper = Some(self.wrapper.unwrap_or(node));
                        self.namespace(child.node);
                    } else {
                        self.expression(child.node);
                    }
                }
            }
            Kind::StatementIdentifier | Kind::HashBang | Kind::Comment | Kind::Other => {}
            Kind::If => self.conditional(node),
            Kind::Unlisted => {
                // The statements that hold others: `if`, `while`, `try`, cases, labels …
                for child in self.children(node).named() {
                    self.statement(child);
                }
            }
            Kind::Labeled => {
                for child in self.children(node).named().filter(|child| child.kind != Kind::StatementIdentifier) {
                    self.statement(child);
                }
            }
            Kind::Break | Kind::Continue => {}
            _ => {
                self.expression(node);
            }
        }
    }

    /// `if … else if … else`, however long.
    fn conditional(&mut self, node: Node<'t>) {
        let fields = &self.grammar.fields;
        let mut next = Some(node);
        while let Some(node) = next.take() {
            let children = self.children(node);
            let known = self.narrowed.len();
            if let Some(condition) = children.field(fields.condition) {
                self.expression(condition.node);
                self.narrow(condition.node);
            }
            if let Some(consequence) = children.field(fields.consequence) {
                self.statement(consequence);
            }
            self.narrowed.truncate(known);
            let Some(alternative) = children.field(fields.alternative) else { break };
            for child in self.children(alternative.node).named() {
                if child.kind == Kind::If {
                    next = Some(child.node);
                } else {
                    self.statement(child);
                }
            }
        }
    }

    fn for_in(&mut self, node: Node<'t>) {
        let fields = &self.grammar.fields;
        let children = self.children(node);
        let over = children.field(fields.right).map_or(NONE, |right| self.expression(right.node));
        let of = children.has_token("of");
        let element = if of && over != NONE { self.push_expression(RawExpression::Element(over)) } else { NONE };
        let scope = self.push_scope(ScopeKind::Block, true);
        let declared = children.0.iter().find(|child| matches!(child.node.kind(), "const" | "let" | "var" | "using")).copied();
        self.in_scope(scope, |walk| {
            if let Some(left) = children.field(fields.left) {
                match declared {
                    Some(kind) => {
                        let target = if kind.node.kind() == "var" { walk.body_scope() } else { scope };
                        walk.declarator = Some((left.node, left.node.end_byte()));
                        walk.constant = false;
                        walk.pattern(left, target, RawRole::Variable, NONE, element);
                    }
                    None => walk.assign_pattern(left, element),
                }
            }
            if let Some(body) = children.field(fields.body) {
                walk.statement(body);
            }
        });
    }

    fn variables(&mut self, node: Node<'t>, kind: Kind) {
        let children = self.children(node);
        let is_var = kind == Kind::VariableDeclaration;
        let constant = children.0.first().is_some_and(|first| first.node.kind() == "const") || kind == Kind::UsingDeclaration;
        let declarators: Vec<_> = children.named().filter(|child| child.kind == Kind::VariableDeclarator).collect();
        let exported = self.exported;
        let wrapper = self.wrapper.take();
        let whole = wrapper.unwrap_or(node);
        for declarator in &declarators {
            self.exported = exported;
            let alone = declarators.len() == 1;
            let scope = if is_var { self.body_scope() } else { self.scope };
            self.constant = constant;
            self.variable(declarator.node, if alone { whole } else { declarator.node }, scope, constant);
        }
        self.exported = None;
    }

    fn variable(&mut self, node: Node<'t>, whole: Node<'t>, scope: u32, constant: bool) {
        let fields = &self.grammar.fields;
        let children = self.children(node);
        let Some(target) = children.field(fields.name) else { return };
        let annotation =
            children.field(fields.kind_of).map_or(NONE, |annotation| self.unexported(|walk| walk.type_of(annotation.node)));
        let value = children.field(fields.value);
        let head_end = value.map_or(node.end_byte(), |value| match value.kind {
            Kind::FunctionExpression | Kind::GeneratorFunction | Kind::Arrow | Kind::Class => value.node.start_byte(),
            _ => node.end_byte(),
        });
        if let Some(value) = value {
            if self.required(target, value, scope) {
                return;
            }
            let (value, cast) = if target.kind == Kind::Identifier { self.bare_function(value) } else { (value, NONE) };
            if target.kind == Kind::Identifier {
                let annotation = if annotation == NONE { cast } else { annotation };
                let name = self.text(target.node);
                let at = Declared { whole, name: target.node, head_end: self.head_end(value, head_end) };
                match value.kind {
                    Kind::FunctionExpression | Kind::GeneratorFunction | Kind::Arrow => {
                        self.function_variable(name, scope, &at, annotation, value);
                        return;
                    }
                    Kind::Class => {
                        self.class_variable(name, scope, &at, value);
                        return;
                    }
                    Kind::Object => {
                        self.object_variable(name, scope, &at, annotation, value, constant);
                        return;
                    }
                    _ => {}
                }
            }
        }
        let exports = self.raw.exports.len();
        let value = value.map_or(NONE, |value| self.unexported(|walk| walk.expression(value.node)));
        self.constant = constant;
        self.declarator = Some((whole, head_end));
        self.pattern(target, scope, RawRole::Variable, annotation, value);
        if target.kind == Kind::Identifier && scope == 0 {
            self.export_declared(exports, target.node);
        }
    }

    /// Returns where the head of a function or class expression ends.
    fn head_end(&mut self, value: Child<'t>, otherwise: usize) -> usize {
        match value.kind {
            Kind::FunctionExpression | Kind::GeneratorFunction | Kind::Arrow | Kind::Class => {
                let body = self.children(value.node).field(self.grammar.fields.body);
                body.map_or(otherwise, |body| body.node.start_byte())
            }
            _ => otherwise,
        }
    }

    /// `const f = () => …`: a function of that name.
    fn function_variable(&mut self, name: &'s str, scope: u32, at: &Declared<'t>, annotation: u32, value: Child<'t>) {
        let function = self.push_function();
        let declaration = self.declare("", name, SymbolKind::Function, at, RawShape::Function(function));
        let id = self.name(name);
        let evidence = self.push_expression(RawExpression::Function(function));
        let role = if annotation == NONE { RawRole::Function } else { RawRole::Variable };
        let new = NewBinding { role, meanings: VALUE, declaration, annotation, value: evidence };
        self.bind(scope, id, new);
        let mut context = self.function_context(self.owner_of(declaration), value.kind, name, scope);
        if annotation != NONE {
            context.expected = self.push_expression(RawExpression::Instance(annotation));
        }
        self.function_expression_in(value, function, &context);
    }

    /// Returns how the body of a named function is walked: as a constructor when it is used as one, it makes instances of its own shape.
    pub(super) fn function_context(&mut self, owner: u32, kind: Kind, name: &'s str, scope: u32) -> FunctionContext {
        let mut this = None;
        if self.javascript && kind != Kind::Arrow && name.starts_with(|first: char| first.is_uppercase()) {
            let id = self.name(name);
            let class = self.shape_of_name(scope, id);
            this = Some(This::of(class, false));
        } else if kind != Kind::Arrow {
            this = Some(NO_THIS);
        }
        FunctionContext { owner, this, constructs: NONE, expected: NONE }
    }

    fn class_variable(&mut self, name: &'s str, scope: u32, at: &Declared<'t>, value: Child<'t>) {
        let class = self.push_class();
        let declaration = self.declare("", name, SymbolKind::Class, at, RawShape::Class(class));
        let id = self.name(name);
        self.bind(scope, id, NewBinding { declaration, ..NewBinding::new(RawRole::Class, VALUE) });
        let owner = self.owner_of(declaration);
        self.unexported(|walk| walk.class_inside(value.node, class, owner, true));
    }

    fn object_variable(
        &mut self,
        name: &'s str,
        scope: u32,
        at: &Declared<'t>,
        annotation: u32,
        value: Child<'t>,
        constant: bool,
    ) {
        let class = self.push_class();
        self.raw.classes[class as usize].outer = self.raw.scopes[scope as usize].outer;
        let id = self.name(name);
        let evidence = self.push_expression(RawExpression::Object(class));
        let kind = if constant { SymbolKind::Constant } else { SymbolKind::Variable };
        self.constant = constant;
        self.declarator = Some((at.whole, value.node.start_byte()));
        let new = NewBinding { annotation, value: evidence, ..NewBinding::new(RawRole::Variable, VALUE) };
        let binding = self.bind_variable(at.name, id, scope, kind, new);
        let declaration = self.raw.bindings[binding as usize].declaration;
        if declaration != NONE {
            self.raw.declarations[declaration as usize].shape = RawShape::Class(class);
        }
        let parent = if declaration == NONE { self.owner } else { self.owner_of(declaration) };
        let expected = if annotation == NONE { NONE } else { self.push_expression(RawExpression::Instance(annotation)) };
        self.unexported(|walk| walk.object_inside(value.node, class, parent, expected));
    }

    /// Binds a variable, and makes a definition of it where it belongs to the file or a namespace.
    pub(super) fn bind_variable(&mut self, node: Node<'t>, name: u32, scope: u32, kind: SymbolKind, mut new: NewBinding) -> u32 {
        // Declared anew, `var` stays the same variable.
        let same = self.bound_here(scope, name).find(|binding| {
            let binding = &self.raw.bindings[*binding as usize];
            matches!(binding.role, RawRole::Variable | RawRole::Parameter) && binding.meanings & VALUE != 0
        });
        if let Some(same) = same {
            let value = self.raw.bindings[same as usize].value;
            let value = self.either(value, new.value);
            self.raw.bindings[same as usize].value = value;
            self.export_again(scope, name, same);
            return same;
        }
        if self.raw.scopes[scope as usize].outer {
            let (whole, head_end) = self.declarator.unwrap_or((node, node.end_byte()));
            let text = self.raw.names[name as usize];
            let at = Declared { whole, name: node, head_end };
            new.declaration = self.declare("", text, kind, &at, RawShape::Value);
        }
        self.bind(scope, name, new)
    }

    pub(super) fn function_declaration(&mut self, node: Node<'t>, signature: bool) {
        let fields = &self.grammar.fields;
        let children = self.children(node);
        let Some(name_node) = children.field(fields.name) else { return };
        let text = self.text(name_node.node);
        let name = self.name(text);
        let scope = self.scope;
        let head_end = children.field(fields.body).map_or(node.end_byte(), |body| body.node.start_byte());
        let at = Declared { whole: node, name: name_node.node, head_end };
        let same = self
            .bound_here(scope, name)
            .find(|binding| self.raw.bindings[*binding as usize].role == RawRole::Function && self.overloads.contains(binding));
        let (binding, declaration, function) = match same {
            Some(binding) => {
                let declaration = self.raw.bindings[binding as usize].declaration;
                self.continue_declaration(declaration, &at, !signature);
                self.export_again(scope, name, binding);
                let RawShape::Function(function) = self.raw.declarations[declaration as usize].shape else { return };
                (binding, declaration, function)
            }
            None => {
                let known = self.bound_here(scope, name).find_map(|binding| self.shape_of_binding(binding));
                let function = self.push_function();
                self.raw.functions[function as usize].shape = known.unwrap_or(NONE);
                let declaration = self.declare("", text, SymbolKind::Function, &at, RawShape::Function(function));
                let new = NewBinding { declaration, ..NewBinding::new(RawRole::Function, VALUE) };
                let binding = self.bind(scope, name, new);
                (binding, declaration, function)
            }
        };
        if signature {
            self.overloads.insert(binding);
        } else {
            self.overloads.remove(&binding);
        }
        let context = self.function_context(self.owner_of(declaration), Kind::FunctionDeclaration, text, scope);
        if !signature && !self.raw.functions[function as usize].returns.is_empty() {
            // The implementation's own results are not seen by callers of its overloads.
            let hidden = self.push_function();
            self.function(&children, hidden, &context);
        } else {
            self.function(&children, function, &context);
        }
    }

    fn type_alias(&mut self, node: Node<'t>) {
        let fields = &self.grammar.fields;
        let children = self.children(node);
        let Some(name_node) = children.field(fields.name) else { return };
        let text = self.text(name_node.node);
        let name = self.name(text);
        let class = self.push_class();
        let at = Declared { whole: node, name: name_node.node, head_end: node.end_byte() };
        let declaration = self.declare("", text, SymbolKind::Type, &at, RawShape::Alias(class));
        let binding = self.bind(self.scope, name, NewBinding { declaration, ..NewBinding::new(RawRole::Alias, TYPE) });
        let exported = self.exported.take();
        let head = self.push_scope(ScopeKind::Block, true);
        let owner = self.owner_of(declaration);
        self.in_scope(head, |walk| {
            walk.in_owner(owner, |walk| {
                if let Some(list) = children.field(fields.type_parameters) {
                    let parameters = walk.type_parameters(list.node);
                    walk.raw.classes[class as usize].parameters = parameters;
                }
                if let Some(value) = children.field(fields.value) {
                    let aliased = walk.type_of(value.node);
                    walk.raw.bindings[binding as usize].annotation = aliased;
                }
            });
        });
        self.exported = exported;
    }

    fn enum_declaration(&mut self, node: Node<'t>) {
        let fields = &self.grammar.fields;
        let children = self.children(node);
        let Some(name_node) = children.field(fields.name) else { return };
        let text = self.text(name_node.node);
        let name = self.name(text);
        let scope = self.scope;
        let class = self.shape_of_name(scope, name);
        let head_end = children.field(fields.body).map_or(node.end_byte(), |body| body.node.start_byte());
        let at = Declared { whole: node, name: name_node.node, head_end };
        let owner = self.merged(name, text, SymbolKind::Enum, VALUE | TYPE | SPACE, &at, class);
        self.unexported(|walk| {
            let inner = walk.push_scope(ScopeKind::Block, true);
            walk.raw.scopes[inner as usize].space = class;
            walk.in_scope(inner, |walk| {
                walk.in_owner(owner, |walk| {
                    let Some(body) = children.field(fields.body) else { return };
                    for child in walk.children(body.node).named() {
                        let (name, value) = match child.kind {
                            Kind::EnumAssignment => {
                                let inner = walk.children(child.node);
                                (inner.field(fields.name), inner.field(fields.value))
                            }
                            _ => (Some(child), None),
                        };
                        if let Some(value) = value {
                            walk.expression(value.node);
                        }
                        if let Some(name) = name.filter(|name| name.kind != Kind::ComputedName) {
                            let id = walk.name(walk.string(name.node));
                            let outer = walk.outer();
                            let value = walk.literal;
                            let binding = walk.push_binding(id, outer, NewBinding::of_value(value));
                            walk.raw.classes[class as usize].statics.push((id, binding));
                        }
                    }
                });
            });
        });
    }

    /// `namespace A.B { … }`, `module A { … }`, and `declare module "name" { … }`.
    pub(super) fn namespace(&mut self, node: Node<'t>) {
        let fields = &self.grammar.fields;
        let children = self.children(node);
        let Some(name_node) = children.field(fields.name) else { return };
        let body = children.field(fields.body);
        if name_node.kind == Kind::String {
            let (exported, wrapper) = (self.exported.take(), self.wrapper.take());
            if let Some(body) = body {
                let inner = self.push_scope(ScopeKind::Body, true);
                let space = self.push_class();
                self.raw.scopes[inner as usize].space = space;
                let before = std::mem::replace(&mut self.ambient, true);
                self.in_scope(inner, |walk| walk.block_statements(body.node));
                self.ambient = before;
            }
            (self.exported, self.wrapper) = (exported, wrapper);
            return;
        }
        let mut parts = Vec::new();
        self.dotted(name_node, &mut parts);
        self.namespace_part(node, &parts, body);
    }

    fn dotted(&mut self, node: Child<'t>, parts: &mut Vec<Node<'t>>) {
        let mut open = vec![node];
        while let Some(next) = open.pop() {
            if next.kind == Kind::NestedIdentifier || next.kind == Kind::Member {
                let mut children: Vec<_> = self.children(next.node).named().collect();
                children.reverse();
                open.extend(children);
            } else {
                parts.push(next.node);
            }
        }
    }

    fn namespace_part(&mut self, node: Node<'t>, parts: &[Node<'t>], body: Option<Child<'t>>) {
        let Some((first, rest)) = parts.split_first() else { return };
        let text = self.text(*first);
        let name = self.name(text);
        let scope = self.scope;
        let class = self.shape_of_name(scope, name);
        let head_end = body.map_or(node.end_byte(), |body| body.node.start_byte());
        let at = Declared { whole: node, name: *first, head_end };
        let owner = self.merged(name, text, SymbolKind::Namespace, VALUE | SPACE, &at, class);
        let (exported, wrapper) = (self.exported.take(), self.wrapper.take());
        let inner = self.push_scope(ScopeKind::Body, true);
        self.raw.scopes[inner as usize].space = class;
        self.in_scope(inner, |walk| {
            walk.in_owner(owner, |walk| {
                if rest.is_empty() {
                    if let Some(body) = body {
                        walk.block_statements(body.node);
                    }
                } else {
                    walk.exported = Some(Exported::ByName);
                    walk.namespace_part(node, rest, body);
                    walk.exported = None;
                }
            });
        });
        (self.exported, self.wrapper) = (exported, wrapper);
    }

    /// Gives what a scope binds, of the bindings made since `known`, to every file.
    fn export_to_all(&mut self, scope: u32, known: usize) {
        let everywhere = self.name(EVERYWHERE);
        for binding in known as u32..self.raw.bindings.len() as u32 {
            let name = self.raw.bindings[binding as usize].name;
            if self.bound_here(scope, name).any(|here| here == binding) {
                self.raw.exports.push((everywhere, RawExport::Binding(binding)));
            }
        }
    }

    fn ambient(&mut self, node: Node<'t>) {
        let before = std::mem::replace(&mut self.ambient, true);
        self.wrapper = Some(self.wrapper.unwrap_or(node));
        let children = self.children(node);
        let is_global = children.has_token("global");
        for child in children.named() {
            match child.kind {
                // `declare global { … }`
                Kind::Block if is_global => {
                    self.wrapper = None;
                    let inner = self.push_scope(ScopeKind::Body, true);
                    let known = self.raw.bindings.len();
                    self.in_scope(inner, |walk| walk.block_statements(child.node));
                    self.export_to_all(inner, known);
                }
                Kind::PropertyIdentifier => {}
                _ => self.statement(child),
            }
        }
        self.wrapper = None;
        self.ambient = before;
    }
}
