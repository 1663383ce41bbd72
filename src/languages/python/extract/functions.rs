//! Functions and lambdas: their parameters, and the scope their bodies run in.
//!
//! Must not know what a call of them gives. Invariant: defaults and annotations are used in the scope around the function, the body in
//! a scope and an arm of its own.

use tree_sitter::{Node, TreeCursor};

use super::decorators::Decorators;
use super::kinds::Kind;
use super::text::fold;
use super::walk::{Given, MAX_DEPTH, Walk};
use crate::languages::grammar::each_child;
use crate::languages::python::raw::{
    NONE, RawExpression, RawFunction, RawReference, RawRole, RawShape, RawSubject, ScopeKind, group_key,
};
use crate::model::{EdgeKind, Span, SymbolKind};

/// A parameter, seen before the scope it belongs to is entered.
struct Parameter {
    name: u32,
    annotation: u32,
    /// Its default.
    value: u32,
    has_default: bool,
    /// Whether it gathers arguments; `annotation` is then the type of one of them.
    starred: bool,
    /// What it holds by being starred: a sequence or a mapping of what is annotated.
    gathered: u32,
    /// Where its name stands.
    start: u32,
}

impl Walk<'_> {
    pub(super) fn function(&mut self, cursor: &mut TreeCursor<'_>, decorators: &Decorators) {
        let node = cursor.node();
        let Some(name_node) = node.child_by_field_name("name") else { return };
        if name_node.start_byte() == name_node.end_byte() || self.depth >= MAX_DEPTH {
            return;
        }
        self.depth += 1;
        let name = self.name_of(&name_node);
        let in_class = self.scope_kind() == ScopeKind::Class;
        let own = (self.scope, self.arm, self.source_definition, self.container, self.function);
        let scope_of_name = self.scope;
        let arm = self.new_arm(NONE, NONE);
        let mut parameters = Vec::new();
        let mut returns = NONE;
        let mut header_end = name_node.end_byte();
        let mut body_seen = false;
        if cursor.goto_first_child() {
            loop {
                match self.kind(cursor) {
                    Kind::TypeParameter => {
                        // The parameters of a generic are a scope of their own around the rest of the head and the body.
                        let type_scope = self.new_scope(ScopeKind::Function, self.arm);
                        self.scope = type_scope;
                        self.type_parameters(cursor);
                    }
                    Kind::Parameters => {
                        header_end = cursor.node().end_byte();
                        self.parameters(cursor, &mut parameters);
                    }
                    Kind::Type => {
                        header_end = cursor.node().end_byte();
                        returns = self.annotation(cursor);
                    }
                    Kind::Block => {
                        body_seen = true;
                        let inner_parent = self.scope;
                        let (declaration, function) = self.declare_function(
                            scope_of_name,
                            name,
                            &node,
                            &name_node,
                            header_end,
                            decorators,
                            &parameters,
                            returns,
                            in_class,
                        );
                        self.scope = inner_parent;
                        let scope = self.new_scope(ScopeKind::Function, arm);
                        let definition = self.raw.declarations[declaration as usize].definition;
                        let injects = decorators.fixture || self.is_test(name, own.0);
                        let injected = if injects { definition + 1 } else { NONE };
                        self.enter_function(scope, in_class, name, decorators, &parameters, own.0, injected);
                        self.source_definition = definition + 1;
                        self.container = Some(definition);
                        self.function = function;
                        self.scope = scope;
                        self.arm = arm;
                        self.block(cursor, Some(definition));
                    }
                    _ => {}
                }
                if !cursor.goto_next_sibling() {
                    break;
                }
            }
            cursor.goto_parent();
        }
        (self.scope, self.arm, self.source_definition, self.container, self.function) = own;
        if !body_seen {
            self.declare_function(scope_of_name, name, &node, &name_node, header_end, decorators, &parameters, returns, in_class);
        }
        self.depth -= 1;
    }

    /// Makes or continues the definition of a function, and binds its name in the scope around it.
    #[allow(clippy::too_many_arguments, reason = "all of them describe the one function that is declared")]
    fn declare_function(
        &mut self,
        scope: u32,
        name: u32,
        node: &Node<'_>,
        name_node: &Node<'_>,
        header_end: usize,
        decorators: &Decorators,
        parameters: &[Parameter],
        returns: u32,
        in_class: bool,
    ) -> (u32, u32) {
        self.scope = scope;
        let start = decorators.start.unwrap_or(node.start_byte());
        let span = Span { start: start as u32, end: node.end_byte() as u32 };
        let signature = fold(self.text.get(node.start_byte()..header_end).unwrap_or(""), 400);
        let previous = self.declared.get(&group_key(scope, name)).copied();
        let continued = previous.filter(|previous| {
            let entry = &self.raw.declarations[*previous as usize];
            matches!(entry.shape, RawShape::Function(_)) && (entry.overloads || decorators.accessor_of == name)
        });
        let accessor = decorators.accessor_of == name;
        let (declaration, function) = match continued {
            Some(declaration) => {
                let entry = &mut self.raw.declarations[declaration as usize];
                let was_overload = std::mem::replace(&mut entry.overloads, decorators.overload);
                let index = entry.definition as usize;
                let contiguous = index + 1 == self.raw.definitions.len()
                    || self.raw.definitions[index + 1..].iter().all(|later| later.parent != self.container);
                let end_line = self.line_of(span.end.saturating_sub(1));
                let place = self.place_of(name_node.start_byte() as u32);
                let definition = &mut self.raw.definitions[index];
                if was_overload {
                    definition.name_place = place;
                    definition.signature = Some(signature);
                }
                if contiguous {
                    definition.span.end = span.end;
                    definition.end_line = end_line;
                }
                let RawShape::Function(shared) = self.raw.declarations[declaration as usize].shape else {
                    unreachable!("filtered to functions above")
                };
                if accessor && !was_overload {
                    self.raw.functions.push(RawFunction::default());
                    (declaration, self.raw.functions.len() as u32 - 1)
                } else {
                    (declaration, shared)
                }
            }
            None => {
                self.raw.functions.push(RawFunction::default());
                let function = self.raw.functions.len() as u32 - 1;
                let kind = if in_class { SymbolKind::Method } else { SymbolKind::Function };
                let start = name_node.start_byte() as u32;
                let declaration = self.define(name, kind, RawShape::Function(function), span, start, Some(signature));
                self.raw.declarations[declaration as usize].overloads = decorators.overload;
                (declaration, function)
            }
        };
        let entry = &mut self.raw.functions[function as usize];
        if returns != NONE {
            entry.returns.push(returns);
        }
        entry.property |= decorators.property || accessor;
        entry.unbound |= decorators.static_method;
        entry.class_method |= decorators.class_method;
        entry.context_manager |= decorators.context_manager;
        entry.fixture |= decorators.fixture;
        if returns != NONE {
            for (index, parameter) in parameters.iter().enumerate() {
                let annotation = if parameter.starred { NONE } else { parameter.annotation };
                if index == entry.parameters.len() {
                    entry.parameters.push(annotation);
                } else if entry.parameters[index] == NONE {
                    entry.parameters[index] = annotation;
                }
            }
        }
        let value = if decorators.values.is_empty() { NONE } else { self.expression_list(&decorators.values) };
        self.bind(name, RawRole::Function, declaration, Given { annotation: NONE, value });
        (declaration, function)
    }

    /// Returns whether the name is one by which a test is found, in the scope where it stands.
    fn is_test(&self, name: u32, scope: u32) -> bool {
        let scope = &self.raw.scopes[scope as usize];
        let collected = match scope.kind {
            ScopeKind::Module => true,
            ScopeKind::Class => {
                let declaration = self.raw.classes.get(scope.class as usize).map(|class| class.declaration);
                let definition = declaration.and_then(|index| self.raw.declarations.get(index as usize));
                definition.is_some_and(|entry| self.raw.definitions[entry.definition as usize].name.starts_with("Test"))
            }
            _ => false,
        };
        collected && self.name_text(name).starts_with("test")
    }

    /// Binds the parameters in the function's scope. `injected` is the source of the references that the parameters of a test make.
    #[allow(clippy::too_many_arguments, reason = "all of them describe the one function that is entered")]
    fn enter_function(
        &mut self,
        scope: u32,
        in_class: bool,
        name: u32,
        decorators: &Decorators,
        parameters: &[Parameter],
        class_scope: u32,
        injected: u32,
    ) {
        let arm = self.raw.scopes[scope as usize].arm;
        let own_arm = std::mem::replace(&mut self.arm, arm);
        for (index, parameter) in parameters.iter().enumerate() {
            let mut role = RawRole::Parameter;
            if index == 0 && in_class && !parameter.starred && !decorators.static_method {
                let class = self.raw.scopes[class_scope as usize].class;
                let takes_class = decorators.class_method
                    || [self.known.new, self.known.init_subclass, self.known.class_getitem].contains(&name);
                let entry = &mut self.raw.scopes[scope as usize];
                entry.class = class;
                entry.instance = parameter.name;
                role = if takes_class { RawRole::Type(class) } else { RawRole::Instance(class) };
            }
            let annotation = if parameter.starred { NONE } else { parameter.annotation };
            let mut value = match role {
                RawRole::Parameter if parameter.starred => parameter.gathered,
                RawRole::Parameter => parameter.value,
                _ => NONE,
            };
            let asks = role == RawRole::Parameter && !parameter.starred && !parameter.has_default;
            if injected != NONE && asks && !self.is_parametrized(parameter.name, decorators) {
                let class = if in_class { self.raw.scopes[class_scope as usize].class } else { NONE };
                let given = RawExpression::Injected { name: parameter.name, class, outer: parameter.name == name };
                value = self.push_expression(given);
                self.raw.references.push(RawReference {
                    start: parameter.start,
                    kind: EdgeKind::References,
                    qualifier: false,
                    source: injected,
                    subject: RawSubject::Injected(value),
                });
            }
            self.bind_in(scope, parameter.name, role, NONE, Given { annotation, value });
        }
        self.arm = own_arm;
    }

    /// Returns whether something else than a fixture gives the parameter of a test its value.
    fn is_parametrized(&self, name: u32, decorators: &Decorators) -> bool {
        decorators.parametrized.contains(&name) || self.parametrized.contains(&name)
    }

    /// Returns a parameter without annotation and default, which stands at the cursor.
    fn bare_parameter(&mut self, cursor: &TreeCursor<'_>, name: &Node<'_>, starred: bool) -> Parameter {
        let (name, start) = (self.name_of(name), cursor.node().start_byte() as u32);
        Parameter { name, annotation: NONE, value: NONE, has_default: false, starred, gathered: NONE, start }
    }

    /// Walks parameters: defaults and annotations are used in the scope around the function.
    fn parameters(&mut self, cursor: &mut TreeCursor<'_>, found: &mut Vec<Parameter>) {
        each_child!(cursor, {
            match self.kind(cursor) {
                Kind::Identifier => {
                    found.push(self.bare_parameter(cursor, &cursor.node(), false));
                }
                Kind::ListSplatPattern | Kind::DictionarySplatPattern => {
                    if let Some(token) = cursor.node().named_child(0) {
                        found.push(self.bare_parameter(cursor, &token, true));
                    }
                }
                Kind::TuplePattern => {
                    each_child!(cursor, {
                        if self.kind(cursor) == Kind::Identifier {
                            found.push(self.bare_parameter(cursor, &cursor.node(), true));
                        }
                    });
                }
                Kind::DefaultParameter | Kind::TypedParameter | Kind::TypedDefaultParameter => {
                    let start = cursor.node().start_byte() as u32;
                    let has_default = self.kind(cursor) != Kind::TypedParameter;
                    let mut parameter = Parameter {
                        name: NONE,
                        annotation: NONE,
                        value: NONE,
                        has_default,
                        starred: false,
                        gathered: NONE,
                        start,
                    };
                    let mut keywords = false;
                    each_child!(cursor, {
                        match self.kind(cursor) {
                            Kind::Other | Kind::Comment => {}
                            Kind::Identifier if parameter.name == NONE => parameter.name = self.name_of(&cursor.node()),
                            Kind::ListSplatPattern | Kind::DictionarySplatPattern if parameter.name == NONE => {
                                if let Some(token) = cursor.node().named_child(0) {
                                    parameter.name = self.name_of(&token);
                                    parameter.starred = true;
                                    keywords = self.kind(cursor) == Kind::DictionarySplatPattern;
                                }
                            }
                            Kind::Type => {
                                parameter.annotation = self.annotation(cursor);
                                if parameter.starred {
                                    parameter.gathered = self.gathered(parameter.annotation, keywords);
                                }
                            }
                            _ => parameter.value = self.expression(cursor, true, EdgeKind::References),
                        }
                    });
                    if parameter.name != NONE {
                        found.push(parameter);
                    }
                }
                _ => {}
            }
        });
    }

    /// What `*name: annotation` holds, or `**name: annotation` when they are keywords.
    fn gathered(&mut self, annotation: u32, keywords: bool) -> u32 {
        // `Unpack[Types]` describes the whole and not one of the arguments.
        if annotation == NONE || self.last_name == self.known.unpack {
            return NONE;
        }
        let one = self.push_expression(RawExpression::Instance(annotation));
        if one == NONE {
            return NONE;
        }
        if !keywords {
            return self.push_expression(RawExpression::Sequence(one));
        }
        let name = self.push_expression(RawExpression::Literal);
        self.push_expression(RawExpression::Mapping(name, one))
    }

    pub(super) fn lambda(&mut self, cursor: &mut TreeCursor<'_>) {
        let own = (self.scope, self.arm, self.function);
        let mut parameters = Vec::new();
        let arm = self.new_arm(NONE, NONE);
        each_child!(cursor, {
            match self.kind(cursor) {
                Kind::LambdaParameters => self.parameters(cursor, &mut parameters),
                Kind::Other | Kind::Comment => {}
                _ => {
                    let scope = self.new_scope(ScopeKind::Function, arm);
                    self.scope = scope;
                    self.arm = arm;
                    for parameter in &parameters {
                        let value = if parameter.starred { NONE } else { parameter.value };
                        self.bind(parameter.name, RawRole::Parameter, NONE, Given { annotation: NONE, value });
                    }
                    self.function = NONE;
                    self.expression(cursor, false, EdgeKind::References);
                    (self.scope, self.arm, self.function) = own;
                }
            }
        });
    }
}
