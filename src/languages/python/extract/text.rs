//! Text as it is shown: signatures on one line, docstrings without their indentation.
//!
//! Must not know the tree. Invariant: what is returned depends on the text given and nothing else.

use std::sync::Arc as Shared;

/// Returns the text on one line: runs of white space become one space, comments go, and what is longer than `limit` bytes is cut.
pub(super) fn fold(text: &str, limit: usize) -> Shared<str> {
    if text.len() <= limit
        && !text.bytes().any(|byte| matches!(byte, b'\n' | b'\r' | b'\t' | b'#' | b'\\'))
        && !text.contains("  ")
    {
        return text.into();
    }
    let mut out = String::with_capacity(text.len().min(limit));
    let mut quote = None;
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        if out.len() >= limit {
            break;
        }
        match (character, quote) {
            ('\'' | '"', None) => {
                quote = Some(character);
                out.push(character);
            }
            (_, Some(open)) => {
                if character == open {
                    quote = None;
                }
                out.push(if character == '\n' { ' ' } else { character });
            }
            ('#', None) => {
                while characters.peek().is_some_and(|next| *next != '\n') {
                    characters.next();
                }
            }
            ('\\', None) if matches!(characters.peek(), Some('\n' | '\r')) => {}
            (space, None) if space.is_whitespace() => {
                if !out.ends_with([' ', '(', '[']) {
                    out.push(' ');
                }
            }
            (')' | ']' | ',', None) => {
                if out.ends_with(' ') {
                    out.pop();
                }
                out.push(character);
            }
            (character, None) => out.push(character),
        }
    }
    out.trim_end().into()
}

/// Returns the documentation text: lines without their common indentation, and no blank lines at the ends.
pub(super) fn clean_docstring(text: &str) -> String {
    let mut lines = text.lines();
    let first = lines.next().unwrap_or("").trim();
    let rest: Vec<&str> = lines.map(str::trim_end).collect();
    let margin = rest
        .iter()
        .filter(|line| !line.is_empty())
        .map(|line| line.len() - line.trim_start_matches([' ', '\t']).len())
        .min()
        .unwrap_or(0);
    let mut out = String::with_capacity(text.len());
    out.push_str(first);
    for line in rest {
        out.push('\n');
        out.push_str(line.get(margin..).unwrap_or(""));
    }
    out.trim().to_owned()
}

/// Returns whether the name is spelt as constants are: capitals, with at least one letter.
pub(super) fn is_constant_name(name: &str) -> bool {
    name.chars().any(char::is_alphabetic) && !name.chars().any(char::is_lowercase)
}
