//! Syntax that the grammar does not know yet, made into what it knows, byte for byte in place.
//!
//! Must not change what a file means to resolution. Invariant: a repaired text has the length and the line ends of the original, and is
//! read for nothing but its tree.

use tree_sitter::{Node, Tree};

/// How many regions of a file are repaired.
const MAX_REGIONS: usize = 2_000;

/// How many errors of a file are looked at.
const MAX_ERRORS: usize = 500;

/// Bytes around an error that are looked through; where so much stands on a few lines, a program wrote them.
const MAX_AROUND: usize = 64 << 10;

/// Bytes from an opening mark to what closes it, at most.
const MAX_LIST: usize = 2_000;

/// How many lines around an error are looked at.
const LINES_BEFORE: usize = 4;
const LINES_AFTER: usize = 40;

/// Bytes from one place to another, and what stands there instead.
type Region = (usize, usize, u8);

/// Returns the text with the known gaps of the grammar blanked; `None` when none of the errors is one.
pub(super) fn repaired(source: &str, tree: &Tree) -> Option<String> {
    let mut regions: Vec<Region> = Vec::new();
    let mut broken = Vec::new();
    let mut open = vec![tree.root_node()];
    let mut cursor = tree.walk();
    while let Some(node) = open.pop() {
        if node.is_error() {
            regions.extend(region(source, node).map(|(start, end)| (start, end, b' ')));
        }
        if (node.is_error() || node.is_missing()) && broken.len() < MAX_ERRORS {
            imported_arguments(source, node, &mut regions);
            broken.push(lines_around(source, node));
        }
        if node.has_error() && regions.len() < MAX_REGIONS {
            open.extend(node.children(&mut cursor).filter(|child| child.has_error() || child.is_missing()));
        }
    }
    broken.sort_unstable();
    let mut done = 0;
    for (start, end) in broken {
        let start = start.max(done);
        if let Some(text) = source.get(start..end).filter(|text| text.len() <= MAX_AROUND) {
            signatures(source, start, text, &mut regions);
            arguments_of_calls(start, text, &mut regions);
            entities(start, text, &mut regions);
            done = end;
        }
    }
    if regions.is_empty() {
        return None;
    }
    let mut bytes = source.as_bytes().to_vec();
    for (start, end, instead) in regions {
        for byte in &mut bytes[start..end] {
            if *byte != b'\n' && *byte != b'\r' {
                *byte = instead;
            }
        }
    }
    String::from_utf8(bytes).ok()
}

/// Returns the lines that an error is in, and what goes on around it until something ends.
fn statement_around(source: &str, error: Node<'_>) -> (usize, usize) {
    let begin = source[..error.start_byte()].rfind(['\n', ';']).map_or(0, |at| at + 1);
    let end = source[error.end_byte()..].find(['\n', ';']).map_or(source.len(), |at| error.end_byte() + at);
    (begin, end)
}

/// Returns the lines around an error, which is found some lines after what it comes from or ends before it.
fn lines_around(source: &str, error: Node<'_>) -> (usize, usize) {
    let before = source[..error.start_byte()].rmatch_indices('\n').nth(LINES_BEFORE);
    let after = source[error.end_byte()..].match_indices('\n').nth(LINES_AFTER);
    (before.map_or(0, |(at, _)| at + 1), after.map_or(source.len(), |(at, _)| error.end_byte() + at))
}

/// Finds members of a type that begin with `<` or a word that is an operator too, and stand on a new line after a member without a
/// semicolon: the grammar goes on with the member before. A semicolon takes the place of the white space before them.
fn signatures(source: &str, offset: usize, text: &str, regions: &mut Vec<Region>) {
    let mut at = offset;
    for line in text.split_inclusive('\n') {
        let inside = line.trim_start_matches([' ', '\t']);
        let start = at + line.len() - inside.len();
        at += line.len();
        let begins = if inside.starts_with('<') {
            source
                .get(start..)
                .and_then(|rest| rest.get(balanced(rest)?..))
                .is_some_and(|rest| rest.trim_start().starts_with('('))
        } else {
            let word = inside.strip_prefix("instanceof").or_else(|| inside.strip_prefix("in"));
            // Of `in2` and `in_` too only the first two letters are looked at.
            word.is_some_and(|rest| {
                rest.starts_with(|next: char| matches!(next, ':' | '?' | '(' | '_' | '$') || next.is_ascii_digit())
            })
        };
        if begins && start > 0 && matches!(source.as_bytes()[start - 1], b' ' | b'\t') && ends_member(&source[..start]) {
            regions.push((start - 1, start, b';'));
        }
    }
}

/// Returns whether a text ends, comments aside, where a member of a type may end.
fn ends_member(before: &str) -> bool {
    let mut text = before.trim_end();
    loop {
        if let Some(open) = text.strip_suffix("*/").and_then(|inside| inside.rfind("/*")) {
            text = text[..open].trim_end();
            continue;
        }
        let line = &text[text.rfind('\n').map_or(0, |at| at + 1)..];
        let comment = if line.trim_start().starts_with("//") { line.find("//") } else { line.find(" //") };
        match comment {
            Some(comment) => text = text[..text.len() - line.len() + comment].trim_end(),
            None => break,
        }
    }
    let type_ends = |character: char| {
        character.is_alphanumeric() || matches!(character, '_' | '$' | '>' | ']' | '}' | ')' | '"' | '\'' | '`')
    };
    text.ends_with(type_ends) && !text.ends_with("=>")
}

/// Finds arguments of a call that the grammar takes for comparisons: `f<typeof import("m")>()`, of which the text in quotes stays, and
/// `f<<T>(value: T) => T>()`.
fn arguments_of_calls(offset: usize, text: &str, regions: &mut Vec<Region>) {
    for (at, _) in text.match_indices('<') {
        let inside = text[at + 1..].trim_start();
        if let Some(imported) = inside.strip_prefix("typeof ").map(str::trim_start).filter(|rest| rest.starts_with("import(")) {
            let start = text.len() - inside.len();
            let open = text.len() - imported.len() + "import(".len();
            let Some(close) = text[open..].find(')').map(|close| open + close) else { continue };
            let Some(end) = text[close..].find(['>', ',']).map(|end| close + end) else { continue };
            regions.push((offset + start, offset + open, b' '));
            regions.push((offset + close, offset + end, b' '));
        } else if inside.starts_with('<') && text[..at].ends_with(|before: char| before.is_alphanumeric()) {
            let Some(length) = balanced(&text[at..]).filter(|length| text[at + length..].starts_with('(')) else { continue };
            regions.push((offset + at, offset + at + length, b' '));
        }
    }
}

/// Finds an `&` in an attribute that begins no entity: `<a href="?a=1&b=2">`.
fn entities(offset: usize, text: &str, regions: &mut Vec<Region>) {
    for (at, _) in text.match_indices('&') {
        let named = text[at + 1..].find(|character: char| !character.is_ascii_alphanumeric()).unwrap_or(0);
        let before = &text[text.floor_char_boundary(at.saturating_sub(MAX_LIST))..at];
        let quoted = before.rfind(['"', '\'']).is_some_and(|quote| before[..quote].ends_with('='));
        if named > 0 && quoted && !text[at + 1 + named..].starts_with(';') {
            regions.push((offset + at, offset + at + 1, b'_'));
        }
    }
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
fn imported_arguments(source: &str, error: Node<'_>, regions: &mut Vec<Region>) {
    // An error may be no more than the arguments themselves.
    let (begin, end) = statement_around(source, error);
    let Some(text) = source.get(begin..end).filter(|text| text.len() <= MAX_AROUND) else { return };
    for (at, _) in text.match_indices("import(") {
        let Some(close) = text[at..].find(')').map(|close| at + close + 1) else { continue };
        let named = text[close..].find(|character: char| !(character.is_alphanumeric() || matches!(character, '_' | '$' | '.')));
        let Some(mut at) = named.map(|named| close + named).filter(|at| *at > close) else { continue };
        if text[at..].starts_with('<') {
            let Some(length) = balanced(&text[at..]) else { continue };
            arguments_of_type(begin + at, &text[at..at + length], regions);
            at += length;
        }
        while text[at..].starts_with("[]") {
            regions.push((begin + at, begin + at + 2, b' '));
            at += 2;
        }
    }
}

/// Makes the arguments of an imported type into an intersection with it, which the grammar reads and [`is_argument`] tells from one that
/// is written; arguments that cannot stand there are blanked.
fn arguments_of_type(offset: usize, text: &str, regions: &mut Vec<Region>) {
    let end = offset + text.len();
    if text.contains("=>") || text.contains('?') || text.contains("import(") || text.contains(['"', '\'', '`']) {
        regions.push((offset, end, b' '));
        return;
    }
    let mut depth = 0_u32;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'<' | b'(' | b'[' | b'{' => depth += 1,
            b'>' | b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            b',' if depth == 1 => regions.push((offset + at, offset + at + 1, b'&')),
            _ => {}
        }
    }
    regions.push((offset, offset + 1, b'&'));
    regions.push((end - 1, end, b' '));
}

/// Returns whether a type that reads as part of an intersection is an argument in the source.
pub(super) fn is_argument(source: &str, start: usize) -> bool {
    source.get(..start).is_some_and(|before| before.trim_end().ends_with(['<', ',']))
}

/// Returns the length of a list of type arguments at the beginning of a text.
fn balanced(text: &str) -> Option<usize> {
    let mut depth = 0_u32;
    let mut before = ' ';
    for (offset, character) in text.char_indices().take(MAX_LIST) {
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
