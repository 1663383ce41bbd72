//! Syntax that the grammar does not know yet, made into what it knows, byte for byte in place.
//!
//! Must not change what a file means to resolution. Invariant: a repaired text has the length and the line ends of the original, and is
//! read for nothing but its tree.

use tree_sitter::{Node, Tree};

/// How many regions of a file are repaired.
const MAX_REGIONS: usize = 2_000;

/// Returns the text with the known gaps of the grammar blanked; `None` when none of the errors is one.
pub(super) fn repaired(source: &str, tree: &Tree) -> Option<String> {
    let mut regions = Vec::new();
    let mut open = vec![tree.root_node()];
    let mut cursor = tree.walk();
    while let Some(node) = open.pop() {
        if node.is_error() {
            regions.extend(region(source, node));
        }
        if node.is_error() || node.is_missing() {
            imported_arguments(source, node, &mut regions);
        }
        if node.has_error() && regions.len() < MAX_REGIONS {
            open.extend(node.children(&mut cursor).filter(|child| child.has_error() || child.is_missing()));
        }
    }
    if regions.is_empty() {
        return None;
    }
    let mut bytes = source.as_bytes().to_vec();
    for (start, end) in regions {
        for byte in &mut bytes[start..end] {
            if *byte != b'\n' && *byte != b'\r' {
                *byte = b' ';
            }
        }
    }
    String::from_utf8(bytes).ok()
}

/// Returns the bytes to blank for an error: those of a keyword in it or right before it.
fn region(source: &str, error: Node<'_>) -> Option<(usize, usize)> {
    let range = (error.start_byte(), error.end_byte());
    let text = source.get(range.0..range.1)?;
    let before = source.get(..range.0)?;
    let preceding = |text: &str| -> (usize, usize) {
        let end = text.trim_end().len();
        let word = text[..end].trim_end_matches(char::is_alphanumeric);
        let start = word.len();
        (start, end)
    };
    // `<in out T>`: the grammar takes the modifier for the name, or for what does not belong.
    let mut modifiers = text.split_whitespace().filter(|word| matches!(*word, "in" | "out"));
    if let Some(first) = modifiers.next() {
        let start = range.0 + text.find(first)?;
        return in_list(&source[..start]).then_some((start, start + first.len()));
    }
    let (start, end) = preceding(before);
    match &before[start..end] {
        "in" | "out" if in_list(&before[..start]) => return Some((start, end)),
        "accessor" => return Some((start, end)),
        _ => {}
    }
    match text {
        "accessor" | "defer" => Some(range),
        // `export type * from`
        "type" if before.trim_end().ends_with("export") => Some(range),
        _ => None,
    }
}

/// Finds the arguments of imported types, `import("m").Name<Argument>`, and of lists of them, in an error or where one begins.
fn imported_arguments(source: &str, error: Node<'_>, regions: &mut Vec<(usize, usize)>) {
    // An error may be no more than the arguments themselves.
    let begin = source[..error.start_byte()].rfind(['\n', ';']).map_or(0, |at| at + 1);
    let end = source[error.end_byte()..].find(['\n', ';']).map_or(source.len(), |at| error.end_byte() + at);
    let Some(text) = source.get(begin..end) else { return };
    for (at, _) in text.match_indices("import(") {
        let Some(close) = text[at..].find(')').map(|close| at + close + 1) else { continue };
        let named = text[close..].find(|character: char| !(character.is_alphanumeric() || matches!(character, '_' | '$' | '.')));
        let Some(mut at) = named.map(|named| close + named).filter(|at| *at > close) else { continue };
        if text[at..].starts_with('<') {
            let Some(length) = balanced(&text[at..]) else { continue };
            regions.push((begin + at, begin + at + length));
            at += length;
        }
        while text[at..].starts_with("[]") {
            regions.push((begin + at, begin + at + 2));
            at += 2;
        }
    }
}

/// Returns the length of a list of type arguments at the beginning of a text.
fn balanced(text: &str) -> Option<usize> {
    let mut depth = 0_u32;
    let mut before = ' ';
    for (offset, character) in text.char_indices() {
        match character {
            '<' => depth += 1,
            // Not that of `=>`.
            '>' if before != '=' => depth -= 1,
            _ => {}
        }
        before = character;
        if depth == 0 {
            return Some(offset + 1);
        }
    }
    None
}

/// Returns whether a text ends where an entry of a list of type parameters begins, or goes on after another modifier.
fn in_list(before: &str) -> bool {
    let mut text = before.trim_end();
    while let Some(open) = text.strip_suffix("*/").and_then(|inside| inside.rfind("/*")) {
        text = text[..open].trim_end();
    }
    text.ends_with(['<', ',']) || text.ends_with(" in") || text.ends_with("<in")
}
