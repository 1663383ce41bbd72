//! Assignments of every form and the targets they bind.
//!
//! Must not know what the value means. Invariant: the value is walked before the target is bound, as it is evaluated.

use tree_sitter::{Node, TreeCursor};

use super::kinds::Kind;
use super::walk::{Given, MAX_DEPTH, NOTHING, Walk, span_of};
use crate::languages::grammar::each_child;
use crate::languages::python::raw::{NONE, RawExpression, RawPublic, RawRole, RawShape, ScopeKind};
use crate::model::EdgeKind;

impl Walk<'_> {
    /// Walks an assignment, right side first; returns the value.
    pub(super) fn assignment(&mut self, cursor: &mut TreeCursor<'_>) -> u32 {
        let statement = cursor.node();
        if self.depth >= MAX_DEPTH || !cursor.goto_first_child() {
            return NONE;
        }
        self.depth += 1;
        let left = cursor.node();
        let left_kind = self.node_kind(&left);
        let own_source = self.source_definition;
        let mut declaration = NONE;
        let mut name = NONE;
        let declares = matches!(self.scope_kind(), ScopeKind::Module | ScopeKind::Class);
        let mut right_kind = Kind::Other;
        let mut right_node = None;
        let mut annotated = false;
        let mut alias = false;
        let mut given = NOTHING;
        // Whether the value is evidence: any name may be a receiver later.
        while cursor.goto_next_sibling() {
            match self.kind(cursor) {
                Kind::Other | Kind::Comment => {}
                Kind::Type => {
                    annotated = true;
                    given.annotation = self.annotation(cursor);
                    alias = self.last_name == self.known.type_alias;
                    if self.last_name == self.known.final_ || self.last_name == self.known.class_variable {
                        // By itself it says nothing of the type.
                        given.annotation = NONE;
                    }
                }
                kind => {
                    right_kind = kind;
                    right_node = Some(cursor.node());
                    break;
                }
            }
        }
        if left_kind == Kind::Identifier {
            name = self.name_of(&left);
            if declares || !self.raw.scopes[self.scope as usize].redirected.is_empty() {
                let span = span_of(&statement);
                if right_kind == Kind::Lambda && declares {
                    declaration = self.declare_lambda(name, span, left.start_byte() as u32);
                } else {
                    declaration = self.declare_variable(name, span, left.start_byte() as u32);
                }
                if declaration != NONE && declares {
                    self.source_definition = self.raw.declarations[declaration as usize].definition + 1;
                }
            }
            if self.scope == 0 && name == self.known.all {
                let mut steps = Vec::new();
                match right_node {
                    Some(right) => self.public_steps(right, &mut steps),
                    None => steps.push(RawPublic::Unknown),
                }
                self.raw.public = Some(steps);
            }
        }
        let plugins = match right_node {
            Some(right) if self.scope == 0 && name == self.known.plugins => self.plugin_modules(right),
            _ => NONE,
        };
        if alias {
            // What is assigned is the type.
            given.annotation = NONE;
        }
        if right_node.is_some() {
            given.value = match right_kind {
                Kind::Assignment => self.assignment(cursor),
                Kind::AugmentedAssignment => NONE,
                _ if alias => self.annotation(cursor),
                Kind::Subscript if declares && !annotated => self.alias_value(cursor),
                _ => self.expression(cursor, true, EdgeKind::References),
            };
        }
        if plugins != NONE {
            given.value = plugins;
        }
        self.source_definition = own_source;
        cursor.goto_parent();
        let value = given.value;
        match left_kind {
            Kind::Identifier => {
                // A bare annotation binds nothing at run time, but declares: `x: int`.
                let role = match declaration {
                    NONE => RawRole::Variable,
                    declaration => match self.raw.declarations[declaration as usize].shape {
                        RawShape::Function(_) => RawRole::Function,
                        _ => RawRole::Variable,
                    },
                };
                self.bind(name, role, declaration, given);
            }
            _ => {
                if cursor.goto_first_child() {
                    self.target(cursor, given);
                    cursor.goto_parent();
                }
            }
        }
        self.depth -= 1;
        value
    }

    /// The modules that `pytest_plugins` names, as a list.
    fn plugin_modules(&mut self, node: Node<'_>) -> u32 {
        let mut cursor = node.walk();
        let strings = if self.node_kind(&node) == Kind::String { vec![node] } else { node.named_children(&mut cursor).collect() };
        let mut modules = Vec::new();
        for string in strings {
            if let Some(name) = self.string_name(&string) {
                let nothing = self.push_expression(RawExpression::Literal);
                modules.push(self.push_expression(RawExpression::Named(nothing, name)));
            }
        }
        if modules.is_empty() { NONE } else { self.expression_list(&modules) }
    }

    pub(super) fn augmented_assignment(&mut self, cursor: &mut TreeCursor<'_>) {
        let node = cursor.node();
        if !cursor.goto_first_child() {
            return;
        }
        let left = cursor.node();
        let kind = self.node_kind(&left);
        self.expression(cursor, false, EdgeKind::References);
        while cursor.goto_next_sibling() {
            self.expression(cursor, false, EdgeKind::References);
        }
        cursor.goto_parent();
        if kind == Kind::Identifier {
            let name = self.name_of(&left);
            if self.scope == 0 && name == self.known.all {
                let mut steps = Vec::new();
                match node.child_by_field_name("right") {
                    Some(right) => self.public_steps(right, &mut steps),
                    None => steps.push(RawPublic::Unknown),
                }
                self.raw.public.get_or_insert_default().extend(steps);
            }
            let declaration = self.declare_variable(name, span_of(&left), left.start_byte() as u32);
            self.bind(name, RawRole::Variable, declaration, NOTHING);
        } else if kind == Kind::Attribute && cursor.goto_first_child() {
            let references = self.raw.references.len();
            self.target(cursor, NOTHING);
            self.raw.references.truncate(references);
            cursor.goto_parent();
        }
    }

    /// Walks `name := value`, which binds outside of the comprehensions around it; returns the value.
    pub(super) fn named_expression(&mut self, cursor: &mut TreeCursor<'_>) -> u32 {
        let mut value = NONE;
        let mut target = None;
        each_child!(cursor, {
            match self.kind(cursor) {
                Kind::Other | Kind::Comment => {}
                Kind::Identifier if target.is_none() => target = Some(cursor.node()),
                _ => value = self.expression(cursor, true, EdgeKind::References),
            }
        });
        if let Some(token) = target {
            let name = self.name_of(&token);
            let own = self.scope;
            while self.scope_kind() == ScopeKind::Comprehension {
                self.scope = self.raw.scopes[self.scope as usize].parent;
            }
            let declaration = self.declare_variable(name, span_of(&token), token.start_byte() as u32);
            self.bind(name, RawRole::Variable, declaration, Given { annotation: NONE, value });
            self.scope = own;
        }
        value
    }

    /// Walks an assignment's target and binds what it names.
    pub(super) fn target(&mut self, cursor: &mut TreeCursor<'_>, given: Given) {
        if self.depth >= MAX_DEPTH {
            return;
        }
        self.depth += 1;
        match self.kind(cursor) {
            Kind::Identifier => {
                let node = cursor.node();
                let name = self.name_of(&node);
                let declaration = self.declare_variable(name, span_of(&node), node.start_byte() as u32);
                self.bind(name, RawRole::Variable, declaration, given);
            }
            Kind::Attribute => self.attribute_target(cursor, given),
            Kind::Subscript => {
                self.expression(cursor, false, EdgeKind::References);
            }
            Kind::AsPatternTarget | Kind::Parenthesized => {
                each_child!(cursor, {
                    self.target(cursor, given);
                });
            }
            Kind::PatternList
            | Kind::TuplePattern
            | Kind::ListPattern
            | Kind::ListSplatPattern
            | Kind::Tuple
            | Kind::List
            | Kind::ListSplat
            | Kind::ExpressionList
            | Kind::DictionarySplatPattern => {
                let mut index = 0;
                let mut starred = self.kind(cursor) == Kind::ListSplatPattern;
                each_child!(cursor, {
                    let kind = self.kind(cursor);
                    if !matches!(kind, Kind::Other | Kind::Comment) {
                        starred |= matches!(kind, Kind::ListSplatPattern | Kind::ListSplat);
                        // Behind a starred target the places are counted from the end.
                        let part = if starred || given.value == NONE {
                            NOTHING
                        } else {
                            let value = self.push_expression(RawExpression::Part(given.value, index));
                            Given { annotation: NONE, value }
                        };
                        index += 1;
                        self.target(cursor, part);
                    }
                });
            }
            _ => {}
        }
        self.depth -= 1;
    }

    fn attribute_target(&mut self, cursor: &mut TreeCursor<'_>, given: Given) {
        if !cursor.goto_first_child() {
            return;
        }
        let object = cursor.node();
        let own_instance = if self.node_kind(&object) == Kind::Identifier {
            let name = self.name_of(&object);
            self.instance_class(name)
        } else {
            NONE
        };
        let value = self.expression_as(cursor, own_instance == NONE, EdgeKind::References, true);
        let mut attribute = None;
        while cursor.goto_next_sibling() {
            if self.kind(cursor) == Kind::Identifier {
                attribute = Some(cursor.node());
            }
        }
        cursor.goto_parent();
        let Some(attribute) = attribute else { return };
        let name = self.name_of(&attribute);
        if own_instance != NONE {
            self.raw.classes[own_instance as usize].attributes.push((name, given.annotation, given.value));
        } else if value != NONE {
            self.raw.writes.push((value, name));
        }
    }
}
