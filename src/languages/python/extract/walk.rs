//! What the walk remembers while it goes: where it stands, what it has collected, and the names it knows the meaning of.
//!
//! Must not know any statement or expression. Invariant: the cursor given to a method stands, when that returns, where it stood; only
//! what goes along a chain, and says so, leaves it at a later sibling.

use std::sync::Arc as Shared;

use tree_sitter::{Node, TreeCursor};

use super::kinds::{Kind, grammar};
use crate::languages::python::raw::{Arm, NONE, QuickMap, Raw, Scope, ScopeKind};
use crate::model::{Place, Span};

/// How deep blocks and expressions may nest; chains of calls, attributes and operators do not count.
pub(super) const MAX_DEPTH: u32 = 120;

/// The state of the walk, whose methods stand with the syntax that they read.
pub(super) struct Walk<'s> {
    pub(super) text: &'s str,
    pub(super) kinds: &'static [Kind],
    pub(super) line_starts: &'s [u32],
    pub(super) raw: Raw<'s>,
    /// How deep each of `raw.expressions` nests.
    pub(super) expression_depths: Vec<u8>,
    pub(super) interned: QuickMap<&'s [u8], u32>,
    pub(super) ordinals: QuickMap<Shared<str>, u32>,
    /// (scope, name) → its latest declaration.
    pub(super) declared: QuickMap<u64, u32>,
    pub(super) scope: u32,
    pub(super) arm: u32,
    pub(super) tick: u32,
    pub(super) depth: u32,
    pub(super) statements: u32,
    /// Index plus one of the definition that references belong to.
    pub(super) source_definition: u32,
    /// The innermost class or function, which is the parent of what is defined.
    pub(super) container: Option<u32>,
    pub(super) function: u32,
    pub(super) in_annotation: bool,
    /// Whether the target being walked is that of an `except`.
    pub(super) in_handler: bool,
    /// The last name token of the expression just walked.
    pub(super) last_name: u32,
    /// The test `isinstance(name, type)` just walked: the name and the type.
    pub(super) instance_test: Option<(u32, u32)>,
    /// Names of parameters whose values the decorators of the class around give.
    pub(super) parametrized: Vec<u32>,
    pub(super) known: Known,
}

/// Numbers of names that the language or its typing rules give a meaning.
#[derive(Default)]
pub(super) struct Known {
    pub(super) all: u32,
    pub(super) super_: u32,
    pub(super) cast: u32,
    pub(super) literal: u32,
    pub(super) annotated: u32,
    pub(super) isinstance: u32,
    pub(super) type_alias: u32,
    pub(super) final_: u32,
    pub(super) class_variable: u32,
    pub(super) type_var: u32,
    pub(super) bound: u32,
    pub(super) underscore: u32,
    pub(super) type_checking: u32,
    pub(super) new: u32,
    pub(super) init_subclass: u32,
    pub(super) class_getitem: u32,
    pub(super) use_fixtures: u32,
    pub(super) get_fixture: u32,
    pub(super) plugins: u32,
    pub(super) set_attribute: u32,
    pub(super) delete_attribute: u32,
    pub(super) unpack: u32,
}

/// How a target gets its value.
#[derive(Clone, Copy)]
pub(super) struct Given {
    pub(super) annotation: u32,
    pub(super) value: u32,
}

/// A target that gets a value nothing is known of.
pub(super) const NOTHING: Given = Given { annotation: NONE, value: NONE };

impl<'s> Walk<'s> {
    /// Returns a walk that stands in the module, before its first statement.
    pub(super) fn new(text: &'s str, line_starts: &'s [u32]) -> Self {
        let raw = Raw {
            names: Vec::new(),
            scopes: vec![Scope {
                kind: ScopeKind::Module,
                parent: NONE,
                arm: 0,
                class: NONE,
                instance: NONE,
                outer: true,
                redirected: Vec::new(),
            }],
            arms: vec![Arm {
                parent: NONE,
                depth: 0,
                statement: NONE,
                choice: NONE,
                repeats: false,
                terminates: false,
                certain: false,
                type_checking: false,
            }],
            bindings: Vec::new(),
            groups: QuickMap::default(),
            uses: Vec::with_capacity(text.len() / 24),
            expressions: Vec::with_capacity(text.len() / 48),
            definitions: Vec::new(),
            declarations: Vec::new(),
            imports: Vec::new(),
            references: Vec::with_capacity(text.len() / 24),
            classes: Vec::new(),
            functions: Vec::new(),
            public: None,
            writes: Vec::new(),
        };
        let mut walk = Self {
            text,
            kinds: &grammar().1,
            line_starts,
            raw,
            expression_depths: Vec::new(),
            interned: QuickMap::default(),
            ordinals: QuickMap::default(),
            declared: QuickMap::default(),
            scope: 0,
            arm: 0,
            tick: 0,
            depth: 0,
            statements: 0,
            source_definition: 0,
            container: None,
            function: NONE,
            in_annotation: false,
            in_handler: false,
            last_name: NONE,
            instance_test: None,
            parametrized: Vec::new(),
            known: Known::default(),
        };
        walk.known = Known {
            all: walk.intern("__all__"),
            super_: walk.intern("super"),
            cast: walk.intern("cast"),
            literal: walk.intern("Literal"),
            annotated: walk.intern("Annotated"),
            isinstance: walk.intern("isinstance"),
            type_alias: walk.intern("TypeAlias"),
            final_: walk.intern("Final"),
            class_variable: walk.intern("ClassVar"),
            type_var: walk.intern("TypeVar"),
            bound: walk.intern("bound"),
            underscore: walk.intern("_"),
            type_checking: walk.intern("TYPE_CHECKING"),
            new: walk.intern("__new__"),
            init_subclass: walk.intern("__init_subclass__"),
            class_getitem: walk.intern("__class_getitem__"),
            use_fixtures: walk.intern("usefixtures"),
            get_fixture: walk.intern("getfixturevalue"),
            plugins: walk.intern("pytest_plugins"),
            set_attribute: walk.intern("setattr"),
            delete_attribute: walk.intern("delattr"),
            unpack: walk.intern("Unpack"),
        };
        walk
    }

    pub(super) fn kind(&self, cursor: &TreeCursor<'_>) -> Kind {
        self.kinds.get(usize::from(cursor.node().kind_id())).copied().unwrap_or(Kind::Other)
    }

    pub(super) fn node_kind(&self, node: &Node<'_>) -> Kind {
        self.kinds.get(usize::from(node.kind_id())).copied().unwrap_or(Kind::Other)
    }

    pub(super) fn intern(&mut self, name: &'s str) -> u32 {
        let next = self.raw.names.len() as u32;
        let id = *self.interned.entry(name.as_bytes()).or_insert(next);
        if id == next {
            self.raw.names.push(name);
        }
        id
    }

    pub(super) fn slice(&self, node: &Node<'_>) -> &'s str {
        self.text.get(node.byte_range()).unwrap_or("")
    }

    pub(super) fn name_of(&mut self, node: &Node<'_>) -> u32 {
        let name = self.slice(node);
        self.intern(name)
    }

    pub(super) fn name_text(&self, name: u32) -> &'s str {
        self.raw.names.get(name as usize).copied().unwrap_or("")
    }

    pub(super) fn line_of(&self, offset: u32) -> u32 {
        self.place_of(offset).line
    }

    pub(super) fn place_of(&self, offset: u32) -> Place {
        Place::at(self.line_starts, offset)
    }
}

pub(super) fn span_of(node: &Node<'_>) -> Span {
    Span { start: node.start_byte() as u32, end: node.end_byte() as u32 }
}
