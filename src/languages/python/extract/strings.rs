//! Strings: the expressions in f-strings, and annotations written as strings.
//!
//! Must not know where annotations stand. Invariant: every name read from a string has the place of its own token in the file.

use smallvec::SmallVec;
use tree_sitter::{Node, TreeCursor};

use super::kinds::Kind;
use super::walk::Walk;
use crate::languages::grammar::each_child;
use crate::languages::python::raw::{NONE, RawExpression};
use crate::model::EdgeKind;

impl<'s> Walk<'s> {
    pub(super) fn string(&mut self, cursor: &mut TreeCursor<'_>, want: bool, value: &mut u32) {
        let mut plain = self.in_annotation;
        let start = cursor.node().start_byte();
        let prefix = self.text.as_bytes()[start..].iter().take_while(|byte| !matches!(byte, b'"' | b'\''));
        if !plain && !prefix.take(3).any(|byte| matches!(byte, b'f' | b'F' | b't' | b'T')) {
            // Most strings: nothing in them is code.
            return;
        }
        let mut content: Option<Node<'_>> = None;
        each_child!(cursor, {
            match self.kind(cursor) {
                Kind::Interpolation => {
                    plain = false;
                    self.expression(cursor, false, EdgeKind::References);
                }
                Kind::StringContent if plain => {
                    let node = cursor.node();
                    plain = content.is_none() && node.named_child_count() == 0;
                    content = Some(node);
                }
                _ => {}
            }
        });
        if let Some(content) = content
            && plain
        {
            let text = self.slice(&content);
            *value = self.annotation_text(text, content.start_byte() as u32, want);
        }
    }

    /// Reads an annotation written as a string.
    fn annotation_text(&mut self, text: &'s str, offset: u32, want: bool) -> u32 {
        let mut reader = AnnotationReader { text, position: 0, offset };
        let value = self.annotation_union(&mut reader, want, 0);
        reader.skip_space();
        if reader.position < text.len() { NONE } else { value }
    }

    fn annotation_union(&mut self, reader: &mut AnnotationReader<'s>, want: bool, depth: u32) -> u32 {
        let mut value = self.annotation_term(reader, want, depth);
        while reader.eat(b'|') {
            let right = self.annotation_term(reader, want, depth);
            value = self.either(value, right);
        }
        value
    }

    fn annotation_term(&mut self, reader: &mut AnnotationReader<'s>, want: bool, depth: u32) -> u32 {
        if depth > 20 {
            reader.position = reader.text.len();
            return NONE;
        }
        reader.skip_space();
        let mut value = NONE;
        if let Some((word, start)) = reader.word() {
            if matches!(word, "None" | "True" | "False") || word.as_bytes()[0].is_ascii_digit() {
                return NONE;
            }
            let dotted = reader.peek() == Some(b'.');
            let name = self.intern(word);
            let used = self.use_name(name, start, EdgeKind::References, dotted);
            value = self.push_expression(RawExpression::Name(used));
            while reader.eat(b'.') {
                let Some((word, start)) = reader.word() else { break };
                let dotted = reader.peek() == Some(b'.');
                let name = self.intern(word);
                value = self.member(value, name, start, EdgeKind::References, dotted, true);
            }
        } else if let Some(quote @ (b'"' | b'\'')) = reader.peek() {
            reader.eat(quote);
            value = self.annotation_union(reader, want, depth + 1);
            if !reader.eat(quote) {
                reader.position = reader.text.len();
            }
            return value;
        } else if reader.eat(b'[') || reader.eat(b'(') {
            self.annotation_arguments(reader, depth);
            return NONE;
        } else if reader.eat(b'*') {
            return self.annotation_term(reader, want, depth + 1);
        } else if reader.eat(b'.') {
            while reader.eat(b'.') {}
            return NONE;
        }
        if reader.eat(b'[') {
            let literal = self.last_name == self.known.literal;
            if literal {
                // What stands in it is no type.
                let rest = &reader.text[reader.position..];
                reader.position += rest.find(']').map_or(rest.len(), |end| end + 1);
                return NONE;
            }
            let arguments = self.annotation_arguments(reader, depth);
            if value != NONE {
                let argument = self.argument_chain(&arguments);
                value = self.push_expression(RawExpression::Subscript(value, argument));
            }
        }
        value
    }

    fn annotation_arguments(&mut self, reader: &mut AnnotationReader<'s>, depth: u32) -> SmallVec<[u32; 4]> {
        let mut arguments = SmallVec::new();
        loop {
            if reader.eat(b']') || reader.eat(b')') {
                break;
            }
            let before = reader.position;
            arguments.push(self.annotation_union(reader, true, depth + 1));
            reader.eat(b',');
            if reader.position == before {
                // Not an annotation after all: give up on the rest.
                reader.position = reader.text.len();
                break;
            }
        }
        arguments
    }
}

/// Reads the text of an annotation, token by token.
struct AnnotationReader<'s> {
    text: &'s str,
    position: usize,
    /// Of the text in its file.
    offset: u32,
}

impl<'s> AnnotationReader<'s> {
    fn skip_space(&mut self) {
        let bytes = self.text.as_bytes();
        while bytes.get(self.position).is_some_and(u8::is_ascii_whitespace) {
            self.position += 1;
        }
    }

    fn peek(&mut self) -> Option<u8> {
        self.skip_space();
        self.text.as_bytes().get(self.position).copied()
    }

    fn eat(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.position += usize::from(found);
        found
    }

    /// Returns the next identifier or number and its offset in the file.
    fn word(&mut self) -> Option<(&'s str, u32)> {
        self.skip_space();
        let rest = &self.text[self.position..];
        let length = rest.find(|character: char| !(character == '_' || character.is_alphanumeric())).unwrap_or(rest.len());
        if length == 0 {
            return None;
        }
        let start = self.offset + self.position as u32;
        self.position += length;
        Some((&rest[..length], start))
    }
}
