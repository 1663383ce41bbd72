//! Functions of every form: parameters, results and bodies.
//!
//! Must not know what a function is called. Invariant: what stands in the head belongs to the definition around, the body to its own.

use super::names::NewBinding;
use super::*;

/// What a function is walked with.
pub(super) struct FunctionContext {
    /// The definition that the body belongs to.
    pub owner: u32,
    /// What `this` means in the body; `None` keeps that of the place around.
    pub this: Option<This>,
    /// The class whose constructor it is.
    pub constructs: u32,
    /// The evidence for a function that this one stands for, where something is expected.
    pub expected: u32,
}

impl<'s, 't> Walk<'s, 't> {
    pub(super) fn plain_context(&self) -> FunctionContext {
        FunctionContext { owner: self.owner, this: None, constructs: NONE, expected: NONE }
    }

    /// Adds an empty function, so that a declaration can name it before its body is walked.
    pub(super) fn push_function(&mut self) -> u32 {
        self.raw.functions.push(RawFunction {
            type_parameters: Vec::new(),
            parameters: Vec::new(),
            returns: Vec::new(),
            returned: Vec::new(),
            property: false,
            is_async: false,
            generator: false,
            shape: NONE,
        });
        self.raw.functions.len() as u32 - 1
    }

    /// Walks a function, signature or function type, and adds what it tells to `function`.
    pub(super) fn function(&mut self, children: &Children<'t>, function: u32, context: &FunctionContext) {
        let fields = &self.grammar.fields;
        let (exported, wrapper) = (self.exported.take(), self.wrapper.take());
        let head = self.push_scope(ScopeKind::Block, true);
        let scope = self.in_scope(head, |walk| walk.push_scope(ScopeKind::Body, false));
        let is_async = children.has_token("async");
        let generator = children.has_token("*");
        let mut parameters = Vec::new();
        let mut type_parameters = Vec::new();
        let mut returns = NONE;
        let this = context.this;
        let before_this = self.this;
        self.in_scope(head, |walk| {
            if let Some(list) = children.field(fields.type_parameters) {
                type_parameters = walk.type_parameters(list.node);
            }
        });
        self.in_scope(scope, |walk| {
            if let Some(this) = this {
                walk.this = this;
            }
            if let Some(parameter) = children.field(fields.parameter) {
                let value = walk.given(context, 0);
                let name = walk.name(walk.text(parameter.node));
                walk.bind(scope, name, NewBinding { value, ..NewBinding::new(RawRole::Parameter, VALUE) });
                parameters.push(NONE);
            }
            if let Some(list) = children.field(fields.parameters) {
                let mut number = 0;
                for parameter in walk.children(list.node).named() {
                    let value = walk.given(context, number);
                    if let Some(annotation) = walk.parameter(parameter, value, context) {
                        parameters.push(annotation);
                        number = number.saturating_add(1);
                    }
                }
            }
            let result = children.field(fields.return_type).or_else(|| children.field(fields.kind_of));
            if let Some(result) = result {
                returns = walk.type_of(result.node);
            }
        });
        let is_declared = children.field(fields.return_type).is_some() || children.field(fields.kind_of).is_some();
        // Functions that are returned stand for what the declared result says.
        let plain = returns != NONE && !is_async && !generator && children.field(fields.body).is_some();
        let expected = if plain { self.push_expression(RawExpression::Instance(returns)) } else { NONE };
        self.frames.push(Frame { returned: Vec::new(), expected });
        if let Some(body) = children.field(fields.body) {
            self.in_scope(scope, |walk| {
                walk.in_owner(context.owner, |walk| {
                    walk.deeper(|walk| {
                        if body.kind == Kind::Block {
                            walk.block_statements(body.node);
                        } else {
                            let value = walk.result(body);
                            if let Some(frame) = walk.frames.last_mut() {
                                frame.returned.push(value);
                            }
                        }
                    });
                });
            });
        }
        let returned = self.frames.pop().map_or_else(Vec::new, |frame| frame.returned);
        self.this = before_this;
        let known = &mut self.raw.functions[function as usize];
        if known.type_parameters.is_empty() {
            known.type_parameters = type_parameters;
        }
        if known.parameters.is_empty() {
            known.parameters = parameters;
        }
        known.is_async |= is_async;
        known.generator |= generator;
        if is_declared {
            known.returns.push(returns);
        } else {
            known.returned.extend(returned.into_iter().filter(|value| *value != NONE && *value != self.literal));
        }
        (self.exported, self.wrapper) = (exported, wrapper);
    }

    /// Walks what a function gives back.
    pub(super) fn result(&mut self, value: Child<'t>) -> u32 {
        let expected = self.frames.last().map_or(NONE, |frame| frame.expected);
        match value.kind {
            Kind::Arrow | Kind::FunctionExpression | Kind::GeneratorFunction if expected != NONE => {
                self.function_value(value, expected)
            }
            Kind::Object if expected != NONE => self.object(value.node, expected),
            _ => self.expression(value.node),
        }
    }

    /// Returns the evidence for a parameter of a function that is handed to a callee.
    fn given(&mut self, context: &FunctionContext, parameter: u8) -> u32 {
        match context.expected {
            NONE => NONE,
            function => self.push_expression(RawExpression::Parameter(function, parameter)),
        }
    }

    /// Binds one parameter; returns its declared type, or `None` for what is no parameter.
    fn parameter(&mut self, parameter: Child<'t>, given: u32, context: &FunctionContext) -> Option<u32> {
        let fields = &self.grammar.fields;
        let scope = self.scope;
        match parameter.kind {
            Kind::RequiredParameter | Kind::OptionalParameter => {
                let children = self.children(parameter.node);
                for decorator in children.named().filter(|child| child.kind == Kind::Decorator) {
                    self.decorator(decorator.node);
                }
                let annotation = children.field(fields.kind_of).map_or(NONE, |annotation| self.type_of(annotation.node));
                let value = children.field(fields.value).map_or(NONE, |value| self.expression(value.node));
                let pattern = children.field(fields.pattern).or_else(|| children.field(fields.name))?;
                if pattern.kind == Kind::This {
                    self.this = This { class: NONE, statics: false, declared: annotation };
                    return None;
                }
                let is_property = children.kind(Kind::AccessibilityModifier).is_some()
                    || children.has_token("readonly")
                    || children.kind(Kind::OverrideModifier).is_some();
                if is_property && context.constructs != NONE && pattern.kind == Kind::Identifier {
                    let name = self.name(self.text(pattern.node));
                    let outer = self.raw.classes[context.constructs as usize].outer;
                    let new = NewBinding { annotation, value, ..NewBinding::new(RawRole::Variable, VALUE) };
                    let binding = self.push_binding(name, outer, new);
                    self.raw.classes[context.constructs as usize].members.push((name, binding));
                }
                let value = if value == NONE || value == self.literal { given } else { value };
                self.pattern(pattern, scope, RawRole::Parameter, annotation, value);
                // What the rest of the arguments are each.
                let rest = pattern.kind == Kind::RestPattern && annotation != NONE;
                Some(if rest { self.push_expression(RawExpression::Element(annotation)) } else { annotation })
            }
            Kind::Identifier | Kind::Undefined => {
                let name = self.name(self.text(parameter.node));
                self.bind(scope, name, NewBinding { value: given, ..NewBinding::new(RawRole::Parameter, VALUE) });
                Some(NONE)
            }
            Kind::AssignmentPattern | Kind::ObjectPattern | Kind::ArrayPattern | Kind::RestPattern => {
                self.pattern(parameter, scope, RawRole::Parameter, NONE, given);
                Some(NONE)
            }
            Kind::Decorator => {
                self.decorator(parameter.node);
                None
            }
            _ => None,
        }
    }

    pub(super) fn type_parameters(&mut self, list: Node<'t>) -> Vec<u32> {
        let fields = &self.grammar.fields;
        let scope = self.scope;
        let mut bound = Vec::new();
        for parameter in self.children(list).named().filter(|child| child.kind == Kind::TypeParameter) {
            let children = self.children(parameter.node);
            let Some(name) = children.field(fields.name) else { continue };
            let name = self.name(self.text(name.node));
            let binding = self.bind(scope, name, NewBinding::new(RawRole::TypeParameter, TYPE));
            bound.push(binding);
            let mut constraint = NONE;
            let mut default = NONE;
            for child in children.named() {
                match child.kind {
                    Kind::Constraint => {
                        for inner in self.children(child.node).named() {
                            constraint = self.type_of(inner.node);
                        }
                    }
                    Kind::DefaultType => {
                        for inner in self.children(child.node).named() {
                            default = self.type_of(inner.node);
                        }
                    }
                    _ => {}
                }
            }
            let binding = &mut self.raw.bindings[binding as usize];
            binding.annotation = constraint;
            binding.value = default;
        }
        bound
    }

    /// A decorator is a call, whether or not it is written as one.
    pub(super) fn decorator(&mut self, node: Node<'t>) {
        for child in self.children(node).named() {
            if child.kind == Kind::Call {
                self.expression(child.node);
            } else {
                self.value(child.node, EdgeKind::Calls, false);
            }
        }
    }
}
