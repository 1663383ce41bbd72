//! Macros: those of the standard library that take expressions are read as calls, of all others only the words are seen.
//!
//! Must not expand anything. Invariant: rewriting changes no length, so that every place in the tree is one in the source.

use std::borrow::Cow;

use tree_sitter::TreeCursor;

use super::{Kind, Walk};
use crate::languages::grammar::each_child;
use crate::languages::outline::Side;
use crate::model::EdgeKind;
use crate::model::facts::{Expression, Handle, Space, Subject};

/// Macros of the standard library whose arguments are expressions.
const CALLS: [&str; 19] = [
    "assert",
    "assert_eq",
    "assert_ne",
    "dbg",
    "debug_assert",
    "debug_assert_eq",
    "debug_assert_ne",
    "eprint",
    "eprintln",
    "format",
    "format_args",
    "panic",
    "print",
    "println",
    "todo",
    "unimplemented",
    "unreachable",
    "write",
    "writeln",
];

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

/// Returns whether a name followed by `!` was read as a function's.
pub(in crate::languages::rust) fn is_rewritten(name: &str) -> bool {
    CALLS.contains(&name)
}

/// Returns the source with `name!(…)` of the macros that take expressions made `name (…)`, and `vec![…]` made `    […]`.
pub(in crate::languages::rust) fn rewrite(source: &str) -> Cow<'_, str> {
    let bytes = source.as_bytes();
    let mut changed: Option<Vec<u8>> = None;
    for (at, _) in bytes.iter().enumerate().filter(|(_, byte)| **byte == b'!') {
        let opening = bytes.get(at + 1).copied();
        if !matches!(opening, Some(b'(' | b'[')) {
            continue;
        }
        let start = bytes[..at].iter().rposition(|byte| !is_word(*byte)).map_or(0, |before| before + 1);
        let before = start.checked_sub(1).map(|before| bytes[before]);
        if matches!(before, Some(b':' | b'.' | b'$' | b'#')) {
            continue;
        }
        let name = &source[start..at];
        let blank = match opening {
            Some(b'(') if is_rewritten(name) => at..at + 1,
            Some(b'[') if name == "vec" => start..at + 1,
            _ => continue,
        };
        changed.get_or_insert_with(|| bytes.to_vec())[blank].fill(b' ');
    }
    match changed.map(String::from_utf8) {
        Some(Ok(text)) => Cow::Owned(text),
        _ => Cow::Borrowed(source),
    }
}

impl<'s> Walk<'s> {
    /// Returns whether a call was written as a macro.
    pub(super) fn is_macro_call(&self, name_end: usize) -> bool {
        self.text.as_bytes().get(name_end) == Some(&b'!')
    }

    /// Walks a macro among items: what it is given may become items.
    pub(super) fn item_macro(&mut self, cursor: &mut TreeCursor<'_>) {
        self.macro_invocation(cursor);
        let scope = self.position.scope;
        let mut names = Vec::new();
        self.words(cursor, &mut names);
        let outline = self.outline(Side::of(scope));
        for name in names {
            let name = outline.name(name);
            outline.outline.scopes[scope.index()].mentioned.push(name);
        }
    }

    fn words(&mut self, cursor: &mut TreeCursor<'_>, names: &mut Vec<&'s str>) {
        self.deeper(|this| {
            each_child!(cursor, {
                let node = cursor.node();
                match this.kind(node) {
                    // What leads a path or follows in one is used there, and not declared.
                    Kind::Identifier if !this.is_in_path(node) => names.push(this.name_of(node)),
                    Kind::TokenTree => this.words(cursor, names),
                    _ => {}
                }
            });
            Some(())
        });
    }

    fn is_in_path(&self, node: tree_sitter::Node<'_>) -> bool {
        let before = self.text.get(..node.start_byte()).unwrap_or("").trim_end();
        let after = self.text.get(node.end_byte()..).unwrap_or("").trim_start();
        after.starts_with("::") || before.ends_with("::") || before.ends_with('.')
    }

    /// Walks the arguments of an attribute that is not the language's own: words like those given to a macro.
    pub(super) fn attribute(&mut self, node: tree_sitter::Node<'_>) {
        const OWN: [&str; 22] = [
            "allow",
            "cfg",
            "cfg_attr",
            "cold",
            "deny",
            "deprecated",
            "derive",
            "doc",
            "expect",
            "feature",
            "forbid",
            "ignore",
            "inline",
            "macro_export",
            "macro_use",
            "must_use",
            "non_exhaustive",
            "path",
            "repr",
            "should_panic",
            "test",
            "warn",
        ];
        let Some(attribute) = node.named_child(0) else { return };
        let Some(name) = attribute.named_child(0) else { return };
        if OWN.contains(&self.text_of(name)) {
            return;
        }
        if let Some(arguments) = self.fields.arguments.and_then(|field| attribute.child_by_field_id(field.get())) {
            self.tokens(&mut arguments.walk());
        }
    }

    /// Walks the use of a macro.
    pub(super) fn macro_invocation(&mut self, cursor: &mut TreeCursor<'_>) -> Option<Handle> {
        each_child!(cursor, {
            let node = cursor.node();
            if cursor.field_id() == self.fields.macro_ {
                let usage =
                    super::paths::PathUse { side: Side::Body, space: Space::Macro, kind: EdgeKind::Calls, qualifier: false };
                self.path(node, usage);
            } else if self.kind(node) == Kind::TokenTree {
                self.tokens(cursor);
            }
        });
        None
    }

    /// Walks the tokens that a macro is given: paths among them may be what they look like, and calls of methods too.
    fn tokens(&mut self, cursor: &mut TreeCursor<'_>) {
        self.deeper(|this| {
            let mut path: Vec<tree_sitter::Node<'_>> = Vec::new();
            let mut joined = false;
            // What the value before a dot is, and whether brackets that come next belong to it.
            let mut chain: Option<Handle> = None;
            let mut called = false;
            if cursor.goto_first_child() {
                loop {
                    let node = cursor.node();
                    match this.kind(node) {
                        Kind::Identifier if path.is_empty() && this.is_behind_dot(node) => {
                            (chain, called) = this.token_member(node, chain);
                        }
                        Kind::Identifier | Kind::SelfValue | Kind::Crate | Kind::Super => {
                            if !joined {
                                this.token_path(&path, EdgeKind::References);
                                path.clear();
                            }
                            chain = if path.is_empty() { this.token_value(node) } else { None };
                            path.push(node);
                            joined = false;
                        }
                        Kind::TokenTree => {
                            let round = this.text.as_bytes().get(node.start_byte()) == Some(&b'(');
                            this.token_path(&path, if round { EdgeKind::Calls } else { EdgeKind::References });
                            path.clear();
                            joined = false;
                            this.tokens(cursor);
                            chain = chain.filter(|_| called);
                            called = false;
                        }
                        Kind::LineComment | Kind::BlockComment => {}
                        _ => match node.kind() {
                            "::" if !path.is_empty() => joined = true,
                            "!" | ":" => {
                                path.clear();
                                chain = None;
                            }
                            word => {
                                this.token_path(&path, EdgeKind::References);
                                path.clear();
                                joined = false;
                                chain = match (word, chain) {
                                    (".", chain) => chain,
                                    ("?", Some(value)) => Some(this.push(Side::Body, Expression::Try(value))),
                                    _ => None,
                                };
                            }
                        },
                    }
                    if !cursor.goto_next_sibling() {
                        break;
                    }
                }
                this.token_path(&path, EdgeKind::References);
                cursor.goto_parent();
            }
            Some(())
        });
    }

    fn is_behind_dot(&self, node: tree_sitter::Node<'_>) -> bool {
        let before = self.text.get(..node.start_byte()).unwrap_or("").trim_end();
        before.ends_with('.') && !before.ends_with("..")
    }

    /// Returns what a word that stands alone is, when it is a local value.
    fn token_value(&mut self, node: tree_sitter::Node<'_>) -> Option<Handle> {
        let text = self.name_of(node);
        let binding = self.scopes.find(text, false)?;
        Some(self.push(Side::Body, Expression::Name(crate::model::facts::Use::One(binding))))
    }

    /// Refers to a method among tokens; returns what it or a field comes to, and whether it is called.
    fn token_member(&mut self, node: tree_sitter::Node<'_>, chain: Option<Handle>) -> (Option<Handle>, bool) {
        let name = self.name_of(node);
        let name = self.body.name(name);
        let called = self.text.get(node.end_byte()..).is_some_and(|after| after.starts_with('('));
        let Some(object) = chain else {
            if called {
                self.refer(node.start_byte(), EdgeKind::Calls, false, Subject::Member { object: None, name });
            }
            return (None, false);
        };
        let member = self.push(Side::Body, Expression::Attribute { object, name });
        if !called {
            return (Some(member), false);
        }
        self.refer(node.start_byte(), EdgeKind::Calls, false, Subject::Path(member));
        (Some(self.push(Side::Body, Expression::Invocation { callee: member, arguments: None })), true)
    }

    fn token_path(&mut self, path: &[tree_sitter::Node<'_>], kind: EdgeKind) {
        let Some((last, _)) = path.split_last() else { return };
        let text = self.name_of(*last);
        if path.len() == 1 {
            if self.kind(*last) != Kind::Identifier {
                return;
            }
            if self.scopes.find(text, false).is_some() {
                self.local_uses += 1;
                return;
            }
        }
        let mut object: Option<Handle> = None;
        for (position, part) in path.iter().enumerate() {
            let is_last = position + 1 == path.len();
            let text = self.name_of(*part);
            let keyword = self.kind(*part) != Kind::Identifier;
            let space = if keyword { Space::Type } else { Space::Tokens };
            let next = match object {
                None => match self.scopes.find(text, true) {
                    Some(binding) => self.push(Side::Body, Expression::Name(crate::model::facts::Use::One(binding))),
                    None => {
                        let scope = self.position.scope;
                        let search = self.body.search(Side::Body, scope, text, space);
                        if !keyword {
                            let kind = if is_last { kind } else { EdgeKind::References };
                            self.refer(part.start_byte(), kind, !is_last, Subject::Path(search));
                        }
                        search
                    }
                },
                Some(object) => {
                    let name = self.body.name(text);
                    let path = self.push(Side::Body, Expression::Path { object, name, space });
                    if !keyword {
                        let kind = if is_last { kind } else { EdgeKind::References };
                        self.refer(part.start_byte(), kind, !is_last, Subject::Path(path));
                    }
                    path
                }
            };
            object = Some(next);
        }
    }
}
