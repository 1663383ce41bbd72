//! One walk over a tree, collecting what names are bound and used where; binding them is the next step's work.
//!
//! Must not know other files. Invariant: no recursion deeper than [`MAX_DEPTH`]; what is nested deeper is passed over.

mod classes;
mod commonjs;
mod expressions;
mod functions;
mod modules;
mod names;
mod objects;
mod patterns;
mod statements;
mod types;

use std::collections::HashMap;
use std::sync::Arc;

use tree_sitter::{Node, TreeCursor};

use super::raw::*;
use super::syntax::{Child, Children, DECLARATIONS, Grammar, JAVASCRIPT, Kind};
use crate::languages::Dialect;
use crate::model::{Definition, DefinitionKey, EdgeKind, Place, Span, SymbolKind};

/// How deep blocks and expressions may nest; chains of calls, members and operators do not count.
const MAX_DEPTH: u32 = 100;

/// How deep an expression may nest and still be kept as evidence.
const MAX_EVIDENCE: u16 = 60;

/// How many entries a list of types keeps.
const MAX_LIST: usize = 24;

/// How long a head of a declaration is shown.
const MAX_SIGNATURE: usize = 300;

/// How many lists of arguments evidence keeps, and how many of each.
const MAX_ARGUMENTS: usize = 8;

/// The function whose body is being walked.
struct Frame {
    returned: Vec<u32>,
    /// The evidence for what it is declared to give back.
    expected: u32,
}

/// What `this` means: a class and whether it is the class itself.
#[derive(Clone, Copy)]
struct This {
    class: u32,
    statics: bool,
    /// The declared type of it, where there is one.
    declared: u32,
}

impl This {
    fn of(class: u32, statics: bool) -> Self {
        Self { class, statics, declared: NONE }
    }
}

const NO_THIS: This = This { class: NONE, statics: false, declared: NONE };

/// Where a definition stands in the text.
struct Declared<'t> {
    /// The whole declaration.
    whole: Node<'t>,
    /// The name token; for what has none the token that stands for it.
    name: Node<'t>,
    /// Where the head of the declaration ends.
    head_end: usize,
}

pub(super) struct Walk<'s, 't> {
    source: &'s str,
    line_starts: &'s [u32],
    grammar: &'static Grammar,
    cursor: TreeCursor<'t>,
    javascript: bool,
    ambient: bool,
    raw: Raw<'s>,
    name_ids: HashMap<&'s str, u32>,
    scope: u32,
    /// Index of the innermost definition plus one; 0 for the file.
    owner: u32,
    depth: u32,
    frames: Vec<Frame>,
    this: This,
    ordinals: HashMap<Arc<str>, u32>,
    /// The statement around the declaration that comes next: `export`, `declare`.
    wrapper: Option<Node<'t>>,
    /// Where a declaration that comes next is exported to.
    exported: Option<Exported>,
    /// Whether the variables being declared are constants.
    constant: bool,
    /// The declaration of variables being walked, and where its head ends.
    declarator: Option<(Node<'t>, usize)>,
    /// Bindings of functions of which only signatures came so far.
    overloads: std::collections::HashSet<u32>,
    /// The shape of `exports`.
    module_shape: u32,
    /// What names are known to be where a condition said so: the name and the evidence.
    narrowed: Vec<(u32, u32)>,
    /// How deep each expression nests.
    depths: Vec<u16>,
    /// Literal expressions are all alike.
    literal: u32,
}

/// How a declaration is exported.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Exported {
    ByName,
    Default,
}

impl<'s, 't> Walk<'s, 't> {
    pub(super) fn new(
        source: &'s str,
        line_starts: &'s [u32],
        grammar: &'static Grammar,
        dialect: Dialect,
        root: Node<'t>,
    ) -> Self {
        let module = Scope { kind: ScopeKind::Body, parent: NONE, outer: true, space: NONE };
        let raw = Raw {
            names: Vec::new(),
            scopes: vec![module],
            bindings: Vec::new(),
            groups: QuickMap::default(),
            uses: Vec::new(),
            expressions: vec![RawExpression::Literal],
            definitions: Vec::new(),
            declarations: Vec::new(),
            imports: Vec::new(),
            references: Vec::new(),
            classes: Vec::new(),
            functions: Vec::new(),
            exports: Vec::new(),
            stars: Vec::new(),
            assignments: Vec::new(),
            writes: Vec::new(),
            is_module: false,
            is_commonjs: false,
        };
        Self {
            source,
            line_starts,
            grammar,
            cursor: root.walk(),
            javascript: dialect == JAVASCRIPT,
            ambient: dialect == DECLARATIONS,
            raw,
            name_ids: HashMap::new(),
            scope: 0,
            owner: 0,
            depth: 0,
            frames: Vec::new(),
            this: NO_THIS,
            ordinals: HashMap::new(),
            wrapper: None,
            exported: None,
            constant: false,
            declarator: None,
            overloads: std::collections::HashSet::new(),
            module_shape: NONE,
            narrowed: Vec::new(),
            depths: vec![1],
            literal: 0,
        }
    }

    pub(super) fn run(mut self, root: Node<'t>) -> Raw<'s> {
        for child in self.children(root).named() {
            self.statement(child);
        }
        self.raw
    }

    // ---- syntax

    fn children(&mut self, node: Node<'t>) -> Children<'t> {
        self.grammar.children(&mut self.cursor, node)
    }

    fn kind(&self, node: Node<'t>) -> Kind {
        self.grammar.kind(node)
    }

    fn text(&self, node: Node<'t>) -> &'s str {
        self.source.get(node.start_byte()..node.end_byte()).unwrap_or("")
    }

    /// Returns the inside of a string literal.
    fn string(&self, node: Node<'t>) -> &'s str {
        let text = self.text(node);
        let quoted = text.len() >= 2 && text.starts_with(['"', '\'', '`']);
        if quoted { text.get(1..text.len() - 1).unwrap_or("") } else { text }
    }

    /// Goes one level deeper, unless that is too deep.
    fn deeper(&mut self, then: impl FnOnce(&mut Self)) {
        if self.depth < MAX_DEPTH {
            self.depth += 1;
            then(self);
            self.depth -= 1;
        }
    }

    // ---- tables

    fn name(&mut self, text: &'s str) -> u32 {
        let next = self.raw.names.len() as u32;
        let id = *self.name_ids.entry(text).or_insert(next);
        if id == next {
            self.raw.names.push(text);
        }
        id
    }

    fn push_scope(&mut self, kind: ScopeKind, outer: bool) -> u32 {
        let outer = outer && self.raw.scopes[self.scope as usize].outer;
        self.raw.scopes.push(Scope { kind, parent: self.scope, outer, space: NONE });
        self.raw.scopes.len() as u32 - 1
    }

    /// Walks something in a scope of its own.
    fn in_scope<R>(&mut self, scope: u32, then: impl FnOnce(&mut Self) -> R) -> R {
        let before = std::mem::replace(&mut self.scope, scope);
        let result = then(self);
        self.scope = before;
        result
    }

    fn in_owner<R>(&mut self, owner: u32, then: impl FnOnce(&mut Self) -> R) -> R {
        let before = std::mem::replace(&mut self.owner, owner);
        let result = then(self);
        self.owner = before;
        result
    }

    fn outer(&self) -> bool {
        self.raw.scopes[self.scope as usize].outer
    }

    /// Returns the scope in which `var` and functions of this place are bound.
    fn body_scope(&self) -> u32 {
        let mut scope = self.scope;
        while self.raw.scopes[scope as usize].kind != ScopeKind::Body {
            scope = self.raw.scopes[scope as usize].parent;
        }
        scope
    }

    /// Adds evidence; [`NONE`] when it nests too deep to be followed.
    fn push_expression(&mut self, expression: RawExpression) -> u32 {
        use RawExpression as Raw;
        let inner = match expression {
            Raw::Attribute(inner, _)
            | Raw::Element(inner)
            | Raw::Part(inner, _)
            | Raw::Await(inner)
            | Raw::Promise(inner)
            | Raw::Expected(inner, _)
            | Raw::Parameter(inner, _)
            | Raw::Instance(inner)
            | Raw::TypeOf(inner)
            | Raw::Property(inner, _)
            | Raw::Sequence(inner) => [inner, NONE],
            Raw::Call(left, right)
            | Raw::New(left, right)
            | Raw::Subscript(left, right)
            | Raw::Either(left, right)
            | Raw::List(left, right) => [left, right],
            _ => [NONE, NONE],
        };
        let depth = inner.iter().filter_map(|inner| self.depths.get(*inner as usize)).max().map_or(1, |depth| depth + 1);
        if depth > MAX_EVIDENCE {
            return NONE;
        }
        self.depths.push(depth);
        self.raw.expressions.push(expression);
        self.raw.expressions.len() as u32 - 1
    }

    fn either(&mut self, left: u32, right: u32) -> u32 {
        match (left, right) {
            (NONE, one) | (one, NONE) => one,
            (left, right) if left == right => left,
            (left, right) => self.push_expression(RawExpression::Either(left, right)),
        }
    }

    fn push_class(&mut self) -> u32 {
        let outer = self.outer();
        self.raw.classes.push(RawClass { outer, ..RawClass::default() });
        self.raw.classes.len() as u32 - 1
    }

    fn add_use(&mut self, name: u32, meanings: Meanings) -> u32 {
        self.raw.uses.push(RawUse { name, scope: self.scope, meanings });
        self.raw.uses.len() as u32 - 1
    }

    fn refer(&mut self, node: Node<'t>, kind: EdgeKind, qualifier: bool, subject: RawSubject) {
        let start = node.start_byte() as u32;
        self.raw.references.push(RawReference { start, kind, qualifier, source: self.owner, subject });
    }
}
