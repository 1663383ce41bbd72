//! Macros: those of the standard library that take expressions are read as calls, of all others only the words are seen.
//!
//! Must not expand anything. Invariant: rewriting changes no length, so that every place in the tree is one in the source.

use std::borrow::Cow;

use tree_sitter::TreeCursor;

use super::outline::Side;
use super::{Kind, Walk};
use crate::languages::grammar::each_child;
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

    /// Walks the tokens that a macro is given: paths among them may be what they look like.
    fn tokens(&mut self, cursor: &mut TreeCursor<'_>) {
        self.deeper(|this| {
            let mut path: Vec<tree_sitter::Node<'_>> = Vec::new();
            let mut joined = false;
            let mut member = false;
            if cursor.goto_first_child() {
                loop {
                    let node = cursor.node();
                    match this.kind(node) {
                        Kind::Identifier | Kind::SelfValue | Kind::Crate | Kind::Super => {
                            if !joined {
                                this.token_path(&path, member, EdgeKind::References);
                                path.clear();
                            }
                            if path.is_empty() {
                                member = node.start_byte().checked_sub(1).and_then(|at| this.text.as_bytes().get(at))
                                    == Some(&b'.')
                                    && !this.text.get(..node.start_byte()).unwrap_or("").ends_with("..");
                            }
                            path.push(node);
                            joined = false;
                        }
                        Kind::TokenTree => {
                            let called = this.text.as_bytes().get(node.start_byte()) == Some(&b'(');
                            this.token_path(&path, member, if called { EdgeKind::Calls } else { EdgeKind::References });
                            path.clear();
                            joined = false;
                            this.tokens(cursor);
                        }
                        Kind::LineComment | Kind::BlockComment => {}
                        _ => match node.kind() {
                            "::" if !path.is_empty() => joined = true,
                            "!" | ":" => path.clear(),
                            _ => {
                                this.token_path(&path, member, EdgeKind::References);
                                path.clear();
                                joined = false;
                            }
                        },
                    }
                    if !cursor.goto_next_sibling() {
                        break;
                    }
                }
                this.token_path(&path, member, EdgeKind::References);
                cursor.goto_parent();
            }
            Some(())
        });
    }

    fn token_path(&mut self, path: &[tree_sitter::Node<'_>], member: bool, kind: EdgeKind) {
        let Some((last, _)) = path.split_last() else { return };
        let text = self.name_of(*last);
        if member {
            // A method of something that nothing is known of; what is no call is a field.
            if kind == EdgeKind::Calls && path.len() == 1 {
                let name = self.body.name(text);
                self.refer(last.start_byte(), kind, false, Subject::Member { object: None, name });
            }
            return;
        }
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
