//! Decorators: what they say about the definition below them.
//!
//! Must not know what a decorator returns. Invariant: they are walked before what they decorate, in the scope around it.

use tree_sitter::TreeCursor;

use super::kinds::Kind;
use super::walk::Walk;
use crate::languages::grammar::each_child;
use crate::languages::python::raw::NONE;
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
        each_child!(cursor, {
            match self.kind(cursor) {
                Kind::Decorator => self.decorator(cursor, &mut decorators),
                Kind::FunctionDefinition => self.function(cursor, &decorators),
                Kind::ClassDefinition => self.class(cursor, &decorators),
                _ => {}
            }
        });
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
                match last.unwrap_or("") {
                    "overload" => decorators.overload = true,
                    "property" | "cached_property" | "abstractproperty" => decorators.property = true,
                    "staticmethod" | "abstractstaticmethod" => decorators.static_method = true,
                    "classmethod" | "abstractclassmethod" => decorators.class_method = true,
                    "contextmanager" | "asynccontextmanager" => decorators.context_manager = true,
                    "setter" | "getter" | "deleter" => {
                        if let Some(object) = object {
                            decorators.accessor_of = self.intern(object);
                        }
                    }
                    _ => {}
                }
                // The decorator's application is a call of it.
                self.expression(cursor, false, EdgeKind::Calls);
            }
        });
    }
}
