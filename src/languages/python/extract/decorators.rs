//! Decorators: what they say about the definition below them.
//!
//! Must not know what a decorator returns. Invariant: they are walked before what they decorate, in the scope around it.

use tree_sitter::{Node, TreeCursor};

use super::kinds::Kind;
use super::walk::Walk;
use crate::languages::grammar::each_child;
use crate::languages::python::raw::{NONE, RawExpression, RawSubject};
use crate::model::EdgeKind;

/// What the decorators of one definition say of it.
#[derive(Default)]
pub(super) struct Decorators {
    /// Where the decorated definition starts.
    pub(super) start: Option<usize>,
    pub(super) overload: bool,
    pub(super) property: bool,
    /// `@name.setter` and its like: the name.
    pub(super) accessor_of: u32,
    pub(super) static_method: bool,
    pub(super) class_method: bool,
    pub(super) context_manager: bool,
    /// Whether a test runner gives what it returns to whoever asks by name.
    pub(super) fixture: bool,
    /// Names of parameters whose values the decorators give.
    pub(super) parametrized: Vec<u32>,
    /// The decorators that may make something else of the function, outermost first.
    pub(super) values: Vec<u32>,
}

impl Decorators {
    pub(super) fn none() -> Self {
        Self { accessor_of: NONE, ..Self::default() }
    }
}

impl Walk<'_> {
    pub(super) fn decorated(&mut self, cursor: &mut TreeCursor<'_>) {
        let mut decorators = Decorators::none();
        decorators.start = Some(cursor.node().start_byte());
        let (references, definitions) = (self.raw.references.len(), self.raw.definitions.len());
        let mut decorating = references;
        each_child!(cursor, {
            match self.kind(cursor) {
                Kind::Decorator => {
                    self.decorator(cursor, &mut decorators);
                    decorating = self.raw.references.len();
                }
                Kind::FunctionDefinition => self.function(cursor, &decorators),
                Kind::ClassDefinition => self.class(cursor, &decorators),
                _ => {}
            }
        });
        if self.raw.definitions.len() > definitions {
            // A fixture asked for by a decorator is asked for by what it decorates.
            for reference in &mut self.raw.references[references..decorating] {
                if matches!(reference.subject, RawSubject::Injected(_)) {
                    reference.source = definitions as u32 + 1;
                }
            }
        }
    }

    fn decorator(&mut self, cursor: &mut TreeCursor<'_>, decorators: &mut Decorators) {
        each_child!(cursor, {
            if !matches!(self.kind(cursor), Kind::Other | Kind::Comment) {
                let mut node = cursor.node();
                if self.node_kind(&node) == Kind::Call
                    && let Some(function) = node.child_by_field_name("function")
                {
                    node = function;
                }
                let (object, last) = match self.node_kind(&node) {
                    Kind::Attribute => (
                        node.child_by_field_name("object").map(|object| self.slice(&object)),
                        node.child_by_field_name("attribute").map(|attribute| self.slice(&attribute)),
                    ),
                    _ => (None, Some(self.slice(&node))),
                };
                let mut keeps = true;
                match last.unwrap_or("") {
                    "overload" => decorators.overload = true,
                    "property" | "cached_property" | "abstractproperty" => decorators.property = true,
                    "staticmethod" | "abstractstaticmethod" => decorators.static_method = true,
                    "classmethod" | "abstractclassmethod" => decorators.class_method = true,
                    "contextmanager" | "asynccontextmanager" => decorators.context_manager = true,
                    "abstractmethod" | "override" => {}
                    "setter" | "getter" | "deleter" => {
                        if let Some(object) = object {
                            decorators.accessor_of = self.intern(object);
                        }
                    }
                    "parametrize" => self.parametrized_names(&cursor.node(), &mut decorators.parametrized),
                    "fixture" => {
                        decorators.fixture = true;
                        keeps = false;
                    }
                    _ => keeps = false,
                }
                // The decorator's application is a call of it.
                let given_name = if decorators.fixture { self.fixture_name(&cursor.node()) } else { NONE };
                let mut value = self.expression(cursor, !keeps, EdgeKind::Calls);
                if given_name != NONE && value != NONE {
                    value = self.push_expression(RawExpression::Named(value, given_name));
                }
                if value != NONE {
                    decorators.values.push(value);
                }
            }
        });
    }

    /// Returns the name that `name=` gives a fixture.
    fn fixture_name(&mut self, call: &Node<'_>) -> u32 {
        let Some(arguments) = call.child_by_field_name("arguments") else { return NONE };
        let mut cursor = arguments.walk();
        for argument in arguments.named_children(&mut cursor) {
            if let Some(keyword) = argument.child_by_field_name("name")
                && self.slice(&keyword) == "name"
                && let Some(value) = argument.child_by_field_name("value")
                && let Some(name) = self.string_name(&value)
            {
                return name;
            }
        }
        NONE
    }

    /// Adds the names that `parametrize` gives values itself: those of its first argument, unless they go to fixtures.
    fn parametrized_names(&mut self, call: &Node<'_>, names: &mut Vec<u32>) {
        let Some(arguments) = call.child_by_field_name("arguments") else { return };
        let mut cursor = arguments.walk();
        let mut found: Vec<&str> = Vec::new();
        for (index, argument) in arguments.named_children(&mut cursor).enumerate() {
            let keyword = argument.child_by_field_name("name").map(|name| self.slice(&name));
            if keyword == Some("indirect") {
                return;
            }
            if index == 0 || keyword == Some("argnames") {
                let value = argument.child_by_field_name("value").unwrap_or(argument);
                let mut inner = value.walk();
                let strings: Vec<Node<'_>> = match self.node_kind(&value) {
                    Kind::String => vec![value],
                    _ => value.named_children(&mut inner).filter(|child| self.node_kind(child) == Kind::String).collect(),
                };
                for string in strings {
                    found.extend(self.slice(&string).split(|character: char| !(character == '_' || character.is_alphanumeric())));
                }
            }
        }
        for name in found.into_iter().filter(|name| !name.is_empty()) {
            names.push(self.intern(name));
        }
    }
}
