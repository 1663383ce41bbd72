//! Syntax that the grammar does not know: semicolons that Go lets one leave out before a closing mark, and statements that are empty.
//!
//! Must not change what a file means to resolution. Invariant: the tree of a repaired text has the places of the original, byte for byte
//! and line for line.

use std::borrow::Cow;

use tree_sitter::{InputEdit, Point, Tree};

use super::extract;
use crate::languages::{ExtractError, grammar};

/// How many semicolons are put in and taken out of a file.
const MAX_REPAIRS: usize = 2_000;

/// Returns the tree of a text, read again where it has errors and something in it is known to be a gap of the grammar.
pub(super) fn parse(source: &str, line_starts: &[u32], stop: &mut dyn FnMut() -> bool) -> Result<Tree, ExtractError> {
    let tree = grammar::parse(extract::language(), source.as_bytes(), stop)?;
    if !tree.root_node().has_error() {
        return Ok(tree);
    }
    let Repairs { missing, empty } = Scan::new(source.as_bytes()).run();
    if missing.is_empty() && empty.is_empty() {
        return Ok(tree);
    }
    let mut text = Cow::Borrowed(source.as_bytes());
    for at in empty {
        text.to_mut()[at] = b' ';
    }
    let mut repaired = Vec::with_capacity(text.len() + missing.len());
    let mut done = 0;
    for &at in &missing {
        repaired.extend_from_slice(&text[done..at]);
        repaired.push(b';');
        done = at;
    }
    repaired.extend_from_slice(&text[done..]);
    let mut tree = grammar::parse(extract::language(), &repaired, stop)?;
    // What was put in goes out of the tree again, the last first, so that the places before it stay what they are.
    for (before, &at) in missing.iter().enumerate().rev() {
        let row = line_starts.partition_point(|start| *start as usize <= at) - 1;
        let start_of_line = line_starts[row] as usize;
        let on_line = before - missing.partition_point(|other| *other < start_of_line);
        let (byte, column) = (at + before, at - start_of_line + on_line);
        tree.edit(&InputEdit {
            start_byte: byte,
            old_end_byte: byte + 1,
            new_end_byte: byte,
            start_position: Point { row, column },
            old_end_position: Point { row, column: column + 1 },
            new_end_position: Point { row, column },
        });
    }
    Ok(tree)
}

/// What is to be done to a text.
#[derive(Default)]
struct Repairs {
    /// Where a semicolon is put in, ascending.
    missing: Vec<usize>,
    /// Semicolons that end nothing.
    empty: Vec<usize>,
}

/// What the last token was, as far as it matters.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Token {
    Word,
    Colon,
    Semicolon,
    Open,
    Close,
    Other,
}

/// What a mark opened.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// `var (` or `const (`.
    Group,
    /// Braces that may hold statements.
    Block,
    Other,
}

struct Frame {
    form: Form,
    /// Whether the header of a statement may go on, in which a semicolon stands by itself: `for ;; {`.
    header: bool,
}

struct Scan<'s> {
    text: &'s [u8],
    repairs: Repairs,
    frames: Vec<Frame>,
    /// The last three tokens.
    tokens: [Token; 3],
    /// The last token when it is a word, else nothing.
    word: &'s [u8],
    /// Whether a line ended after the last token.
    newline: bool,
    /// A semicolon right after a colon, of which the next token says whether a statement follows.
    after_colon: Option<usize>,
}

impl<'s> Scan<'s> {
    fn new(text: &'s [u8]) -> Self {
        Self {
            text,
            repairs: Repairs::default(),
            frames: Vec::new(),
            tokens: [Token::Other; 3],
            word: b"",
            newline: false,
            after_colon: None,
        }
    }

    fn run(mut self) -> Repairs {
        let mut at = 0;
        while let Some(&byte) = self.text.get(at) {
            if self.repairs.missing.len() + self.repairs.empty.len() >= MAX_REPAIRS {
                break;
            }
            let rest = &self.text[at..];
            let length = match byte {
                b'\n' => {
                    self.end_line();
                    1
                }
                b' ' | b'\t' | b'\r' => 1,
                b'/' if rest.starts_with(b"//") => rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len()),
                b'/' if rest.starts_with(b"/*") => {
                    rest[2..].windows(2).position(|pair| pair == b"*/").map_or(rest.len(), |inside| inside + 4)
                }
                b'"' | b'\'' | b'`' => {
                    self.push(Token::Word);
                    literal_length(rest)
                }
                b';' => {
                    self.semicolon(at);
                    1
                }
                b':' if rest.get(1) == Some(&b'=') => {
                    self.push(Token::Other);
                    2
                }
                b':' => {
                    self.push(Token::Colon);
                    1
                }
                b'(' | b'[' | b'{' => {
                    self.open(byte);
                    1
                }
                b')' | b']' | b'}' => {
                    self.close(byte, at);
                    1
                }
                _ if is_of_word(byte) => {
                    let length = rest.iter().position(|byte| !is_of_word(*byte)).unwrap_or(rest.len());
                    self.named(&rest[..length], at);
                    length
                }
                _ => {
                    self.push(Token::Other);
                    1
                }
            };
            at += length;
        }
        self.repairs
    }

    fn last(&self) -> Token {
        self.tokens[2]
    }

    fn push(&mut self, token: Token) {
        if let Some(at) = self.after_colon.take() {
            self.repairs.empty.push(at);
        }
        self.append(token);
    }

    fn append(&mut self, token: Token) {
        self.tokens = [self.tokens[1], self.tokens[2], token];
        self.word = b"";
        self.newline = false;
    }

    fn end_line(&mut self) {
        self.newline = true;
        // The header of a statement ends with the block that it heads.
        if self.last() == Token::Close
            && let Some(frame) = self.frames.last_mut()
        {
            frame.header = false;
        }
    }

    fn semicolon(&mut self, at: usize) {
        let in_block = self.frames.last().is_some_and(|frame| frame.form == Form::Block && !frame.header);
        if in_block && self.after_colon.is_none() && self.last() == Token::Colon {
            self.after_colon = Some(at);
            return;
        }
        let ended = match self.last() {
            Token::Semicolon | Token::Open => true,
            Token::Colon => self.after_colon.is_some(),
            Token::Word | Token::Close | Token::Other => self.newline,
        };
        if in_block && ended {
            self.repairs.empty.push(at);
        } else {
            self.push(Token::Semicolon);
        }
    }

    fn open(&mut self, mark: u8) {
        let form = match mark {
            b'(' if matches!(self.word, b"var" | b"const") => Form::Group,
            b'{' if !matches!(self.word, b"struct" | b"interface") => Form::Block,
            _ => Form::Other,
        };
        self.push(Token::Open);
        self.frames.push(Frame { form, header: false });
    }

    fn close(&mut self, mark: u8, at: usize) {
        let form = self.frames.pop().map_or(Form::Other, |frame| frame.form);
        let entry_ends = self.newline || matches!(self.last(), Token::Semicolon | Token::Open);
        if form == Form::Group && mark == b')' && !entry_ends {
            self.repairs.missing.push(at);
        } else if form == Form::Block && mark == b'}' {
            self.end_labels(at);
        }
        self.push(Token::Close);
    }

    fn named(&mut self, word: &'s [u8], at: usize) {
        if matches!(word, b"case" | b"default") {
            self.end_labels(at);
        }
        self.push(Token::Word);
        self.word = word;
        if matches!(word, b"for" | b"if" | b"switch")
            && let Some(frame) = self.frames.last_mut()
        {
            frame.header = true;
        }
    }

    /// Ends a list of statements, which may end in labels of nothing; the grammar knows one of these, and any with a semicolon.
    fn end_labels(&mut self, at: usize) {
        if self.after_colon.take().is_some() {
            self.append(Token::Semicolon);
        } else if self.tokens == [Token::Colon, Token::Word, Token::Colon] {
            self.repairs.missing.push(at);
        }
    }
}

fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

/// Returns the length of a string or rune at the beginning of a text.
fn literal_length(text: &[u8]) -> usize {
    let quote = text[0];
    let mut at = 1;
    while let Some(&byte) = text.get(at) {
        match byte {
            b'\\' if quote != b'`' => at += 1,
            // What is not closed ends with its line.
            b'\n' if quote != b'`' => return at,
            _ if byte == quote => return at + 1,
            _ => {}
        }
        at += 1;
    }
    text.len()
}
