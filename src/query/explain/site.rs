//! What stands around a reference in its source: the receiver as written, and the lines that bind a name.
//!
//! Must not know the graph; it reads text and understands no language. Invariant: it only finds lines and pieces of them to be shown;
//! nothing it finds decides what a reference means.

use std::ops::RangeInclusive;

use crate::query::source::SourceFile;

/// Most lines that a receiver may go back.
const MAX_BACK: u32 = 12;
/// Most bytes of a line that is looked through: what is longer was written by a program and tells nobody anything.
const MAX_LINE: usize = 2000;
/// Most characters of a receiver or a line that are shown.
const MAX_SHOWN: usize = 80;
/// Most characters between brackets that are shown.
const MAX_INSIDE: usize = 16;

/// What a name is taken from, as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Receiver {
    /// Nothing: the name stands alone.
    None,
    /// An expression, and the mark between it and the name: `.`, `?.`, `::`.
    Written(String, &'static str),
    /// Something that is not told in a few words.
    Unclear,
}

/// A line that says something about a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mention {
    pub line: u32,
    pub text: String,
    /// Whether the line gives the name its value.
    pub binds: bool,
}

pub fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_' || character == '$'
}

/// Returns a line as far as it is worth looking through.
pub fn line_of(file: &SourceFile, number: u32) -> Option<&str> {
    file.line(number).filter(|text| text.len() <= MAX_LINE)
}

/// Returns what the name at a place is taken from.
pub fn receiver(file: &SourceFile, line: u32, column: u32) -> Receiver {
    let Some(text) = line_of(file, line) else { return Receiver::Unclear };
    let Some(own) = text.get(..column as usize) else { return Receiver::None };
    let own = own.strip_suffix('#').unwrap_or(own);
    let mut before = own.to_owned();
    let mut first = line;
    // A chain may go on over several lines: `\n  .then(…)`, or `(\n`.
    loop {
        match backwards(&before) {
            Some(found) => return found,
            None if first <= 1 || line - first >= MAX_BACK => return Receiver::Unclear,
            None => {
                first -= 1;
                let Some(above) = line_of(file, first) else { return Receiver::Unclear };
                if above.contains("//") || above.contains('#') {
                    // What a comment says is no code.
                    return Receiver::Unclear;
                }
                before.insert_str(0, above);
            }
        }
    }
}

const ACCESSORS: [&str; 4] = ["?.", "!.", "::", "."];

/// Reads the receiver from the end of a text; `None` when it may begin before the text does.
fn backwards(text: &str) -> Option<Receiver> {
    let accessor =
        |text: &str| ACCESSORS.into_iter().find_map(|mark| text.strip_suffix(mark).map(|rest| (rest.trim_end().len(), mark)));
    let trimmed = text.trim_end();
    if trimmed.is_empty() {
        // Whether a line before ends with an accessor matters little: chains are broken before it.
        return Some(Receiver::None);
    }
    let Some((mut end, mark)) = accessor(trimmed) else { return Some(Receiver::None) };
    if trimmed.ends_with("..") {
        // `...name` spreads and takes nothing.
        return Some(Receiver::None);
    }
    let mut pieces: Vec<String> = Vec::new();
    let mut needs_word = true;
    loop {
        let rest = &text[..end];
        let Some(last) = rest.chars().next_back() else { return if needs_word { None } else { Some(written(pieces, mark)) } };
        match last {
            ')' | ']' | '}' => {
                let open = opening(rest)?;
                let inside = rest[open + 1..end - 1].split_whitespace().collect::<Vec<_>>().join(" ");
                let inside = if inside.chars().count() > MAX_INSIDE { "…".to_owned() } else { inside };
                pieces.push(format!("{}{inside}{last}", &rest[open..open + 1]));
                end = open;
                needs_word = false;
            }
            '"' | '\'' | '`' => {
                let body = &rest[..end - 1];
                let open = body.rfind(last)?;
                let inside: String = body[open + 1..].chars().take(MAX_INSIDE).collect();
                pieces.push(format!("{last}{inside}{last}"));
                return Some(written(pieces, mark));
            }
            '!' | '?' if !needs_word || pieces.is_empty() => {
                pieces.push(last.to_string());
                end -= 1;
            }
            last if is_word(last) => {
                let start =
                    rest.char_indices().rev().take_while(|(_, character)| is_word(*character)).last().map_or(0, |(at, _)| at);
                if start == 0 && pieces.is_empty() && rest.len() == end && text.len() == end {
                    return None;
                }
                pieces.push(rest[start..].to_owned());
                end = start;
                let head = text[..end].trim_end();
                match ACCESSORS.iter().find(|mark| head.ends_with(**mark)) {
                    Some(inner) if !head.ends_with("..") => {
                        pieces.push((*inner).to_owned());
                        end = head.len() - inner.len();
                        end = text[..end].trim_end().len();
                        needs_word = true;
                    }
                    _ => return Some(written(pieces, mark)),
                }
            }
            _ => return Some(if pieces.is_empty() { Receiver::Unclear } else { written(pieces, mark) }),
        }
        if !needs_word && text[..end].ends_with(char::is_whitespace) {
            return Some(written(pieces, mark));
        }
    }
}

/// Returns where the bracket opens that a text ends with; `None` when it is not in the text.
fn opening(text: &str) -> Option<usize> {
    let mut depth = 0_u32;
    for (at, character) in text.char_indices().rev() {
        match character {
            ')' | ']' | '}' => depth += 1,
            '(' | '[' | '{' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
    }
    None
}

fn written(pieces: Vec<String>, mark: &'static str) -> Receiver {
    let text: String = pieces.into_iter().rev().collect();
    let text = text.trim_start_matches(['.', ':', '!', '?']);
    // A bracket alone is told by nothing before it.
    let is_named = text.starts_with(|character| is_word(character) || matches!(character, '"' | '\'' | '`' | '('));
    if !is_named || text.chars().count() > MAX_SHOWN { Receiver::Unclear } else { Receiver::Written(text.to_owned(), mark) }
}

/// Returns a line as it is shown: without white space around, and not too long.
pub fn shown(line: &str) -> String {
    let line = line.trim();
    if line.chars().count() <= MAX_SHOWN {
        return line.to_owned();
    }
    let mut short: String = line.chars().take(MAX_SHOWN - 1).collect();
    short.push('…');
    short
}

/// Returns where a word stands in a line, on its own and not as a member of something.
pub fn words_at<'l>(line: &'l str, word: &'l str) -> impl Iterator<Item = usize> + 'l {
    line.match_indices(word).map(|(at, _)| at).filter(move |at| {
        let before = line[..*at].chars().next_back();
        let after = line[at + word.len()..].chars().next();
        !before.is_some_and(|character| is_word(character) || character == '.') && !after.is_some_and(is_word)
    })
}

/// Returns whether a word stands in a line, as a member too.
pub fn stands_in(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + word.len()..].chars().next();
        !before.is_some_and(is_word) && !after.is_some_and(is_word)
    })
}

/// Returns whether a line of an import brings a name to its file. `in_quotes` says whether the path in quotes brings its last part, as in Go.
pub fn is_brought(line: &str, name: &str, in_quotes: bool) -> bool {
    let from = line.trim_start().starts_with("from ").then(|| line.find(" import ")).flatten().unwrap_or(0);
    if line.trim_start().starts_with("export ") {
        return false;
    }
    words_at(line, name).filter(|at| *at >= from).any(|at| {
        let (before, after) = (&line[..at], line[at + name.len()..].trim_start());
        let quote = before.find(['"', '\'', '`']);
        if before.matches(['"', '\'', '`']).count() % 2 == 1 {
            // A name before the path is what the path goes by.
            let head = quote.map_or("", |quote| before[..quote].trim());
            return in_quotes && (head.is_empty() || head == "import" || head == "(");
        }
        let is_renamed = after.strip_prefix("as").is_some_and(|rest| rest.starts_with(char::is_whitespace));
        !is_renamed && !after.starts_with(':')
    })
}

fn is_comment(line: &str) -> bool {
    let line = line.trim_start();
    ["#", "//", "/*", "* ", "--"].iter().any(|mark| line.starts_with(mark))
}

/// Returns whether the word at a place of a line is given a value there.
fn is_bound_at(line: &str, at: usize, word: &str) -> bool {
    let before = line[..at].trim_end();
    let follows = |keyword: &&str| before.strip_suffix(*keyword).is_some_and(|rest| !rest.ends_with(is_word));
    if ["as", "var", "let", "const", "mut"].iter().any(follows) {
        return true;
    }
    let open = |from: char, to: char| before.matches(from).count() > before.matches(to).count();
    if open('(', ')') || open('[', ']') || open('{', '}') {
        // An argument, a default, a property, or a name of a comprehension alone.
        return false;
    }
    if follows(&"for") {
        return true;
    }
    let mut after = line[at + word.len()..].trim_start();
    if after.starts_with(',') {
        // `a, b := …`
        after = after.trim_start_matches(|character: char| is_word(character) || matches!(character, ',' | ' '));
    }
    if let Some(rest) = after.strip_prefix(':').filter(|rest| before.is_empty() && !rest.starts_with([':', '='])) {
        // `a: T = …`
        after = rest.find('=').map_or("", |at| &rest[at..]);
    }
    let value = after.strip_prefix(":=").or_else(|| after.strip_prefix('='));
    value.is_some_and(|value| !value.is_empty() && !value.starts_with(['=', '>']))
}

/// Returns whether one of the lines may bind a name that stands in no head: as a parameter of an arrow, a closure or a lambda, as the target
/// of a comprehension, or by a statement on the last line itself.
pub fn is_bound_in_passing(file: &SourceFile, word: &str, from: u32, to: u32) -> bool {
    (from.max(1)..=to).filter_map(|number| line_of(file, number)).any(|text| {
        ["=>", "lambda", " for ", "|"].iter().any(|mark| text.contains(mark)) && words_at(text, word).nth(1).is_some()
    }) || line_of(file, to).is_some_and(|text| ["const", "let", "var"].iter().any(|keyword| binds(text, keyword, word)))
}

/// Returns whether a keyword that declares stands right before a name.
fn binds(text: &str, keyword: &str, word: &str) -> bool {
    words_at(text, word).any(|at| text[..at].trim_end().strip_suffix(keyword).is_some_and(|rest| !rest.ends_with(is_word)))
}

/// Finds the line that says most about a name at a place: the last one before it, within the lines from `from` on, that gives it a value,
/// else the first one there that mentions it.
pub fn mention(file: &SourceFile, word: &str, from: u32, line: u32) -> Option<Mention> {
    let mut first: Option<Mention> = None;
    let mut last: Option<Mention> = None;
    for number in from.max(1)..line {
        let Some(text) = line_of(file, number) else { continue };
        if is_comment(text) {
            continue;
        }
        for at in words_at(text, word) {
            let mention = |binds| Mention { line: number, text: shown(text), binds };
            if is_bound_at(text, at, word) {
                last = Some(mention(true));
            } else if first.is_none() {
                first = Some(mention(false));
            }
        }
    }
    last.or(first)
}

/// Finds a line that gives a member of the instance its value, within the lines of its class: the nearest before a place, else the first after
/// it.
pub fn assignment(file: &SourceFile, member: &str, line: u32, class: &RangeInclusive<u32>) -> Option<Mention> {
    let mut nearest: Option<Mention> = None;
    for number in *class.start()..=(*class.end()).min(file.line_count()) {
        let Some(text) = line_of(file, number) else { continue };
        if is_comment(text) || number == line || (number > line && nearest.is_some()) {
            continue;
        }
        if words_at(text, member).any(|at| is_bound_at(text, at, member)) {
            nearest = Some(Mention { line: number, text: shown(text), binds: true });
        }
    }
    nearest
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn file(text: &str) -> SourceFile {
        SourceFile::new(Arc::from(text.as_bytes()))
    }

    /// Reads the receiver of the name after `^`.
    fn check_receiver(text: &str, expected: &str) {
        let at = text.find('^').expect("marked");
        let line = text[..at].matches('\n').count() as u32 + 1;
        let column = at - text[..at].rfind('\n').map_or(0, |end| end + 1);
        let found = match receiver(&file(&text.replace('^', "")), line, column as u32) {
            Receiver::None => "none".to_owned(),
            Receiver::Unclear => "unclear".to_owned(),
            Receiver::Written(text, _) => text,
        };
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn receivers_as_written() {
        for (text, expected) in [
            ("^save()", "none"),
            ("x = ^save()", "none"),
            ("conn.^save()", "conn"),
            ("f(a.b.^c)", "a.b"),
            ("self.client.^get(1)", "self.client"),
            ("return pool.get(1, 2).^save()", "pool.get(1, 2)"),
            ("pool.get(one, two, three, four).^save()", "pool.get(…)"),
            ("rows[0].^save()", "rows[0]"),
            ("\"a, b\".^split()", "\"a, b\""),
            ("a?.b!.^c()", "a?.b"),
            ("def f(x) -> ^List", "none"),
            ("Self::^new()", "Self"),
            ("std::mem::^take()", "std::mem"),
            ("query\n    .filter(x)\n    .^all()", "query.filter(x)"),
            ("query // here\n    .^all()", "unclear"),
            ("super().^save()", "super()"),
            ("{...^rest}", "none"),
            ("(a or b).^c", "(a or b)"),
            ("[1].^map()", "unclear"),
            ("new Map().^get(1)", "Map()"),
            ("await db.^find()", "db"),
            ("this.#^secret()", "this"),
            ("  .^first()", "unclear"),
        ] {
            check_receiver(text, expected);
        }
    }

    #[test]
    fn lines_that_bind() {
        let check = |text: &str, word: &str, expected: Option<(u32, bool)>| {
            let lines = text.lines().count() as u32;
            let found = mention(&file(text), word, 1, lines).map(|mention| (mention.line, mention.binds));
            assert_eq!(found, expected, "{text}");
        };
        check("def f(conn):\n    conn.save()", "conn", Some((1, false)));
        check("def f():\n    conn = get()\n    conn.save()", "conn", Some((2, true)));
        check("conn, err := get()\nif err != nil {}\nconn.Save()", "conn", Some((1, true)));
        check("conn: Pool = get()\nconn.save()", "conn", Some((1, true)));
        check("with get() as conn:\n    conn.save()", "conn", Some((1, true)));
        check("for conn in pool:\n    conn.save()", "conn", Some((1, true)));
        check("for (const conn of pool) {\n  conn.save()", "conn", Some((1, true)));
        check("[c(conn) for conn in pool]\nconn.save()", "conn", Some((1, false)));
        check("const conn = get();\nconn.save()", "conn", Some((1, true)));
        check("# conn = 1\nconn.save()", "conn", None);
        check("if conn == 1:\n    conn.save()", "conn", Some((1, false)));
        check("if conn: x = 1\nconn.save()", "conn", Some((1, false)));
        check("f(1, conn=1)\nconn.save()", "conn", Some((1, false)));
        check("x.conn = 1\nconnect()\nconn.save()", "conn", None);
        check("conn.save()", "conn", None);
    }

    #[test]
    fn names_that_are_bound_in_passing() {
        for (text, expected) in [
            ("f(() => b.two());", false),
            ("list.forEach(b => b.two());", true),
            ("sorted(x, key=lambda b: b.two())", true),
            ("[b.two() for b in x]", true),
            ("list.iter().map(|b| b.two())", true),
            ("function g() { const b: any = {}; b.two() }", true),
            ("b.two(b)", false),
        ] {
            assert_eq!(is_bound_in_passing(&file(text), "b", 1, 1), expected, "{text}");
        }
    }

    #[test]
    fn names_that_an_import_brings() {
        for (line, name, expected) in [
            ("import os.path", "os", true),
            ("import numpy as np", "np", true),
            ("import numpy as np", "numpy", false),
            ("from cart import Cart", "Cart", true),
            ("from cart import Cart", "cart", false),
            ("from shop.cart import Cart as C", "Cart", false),
            ("    greet as hello,", "hello", true),
            ("import { Cart } from \"./cart\";", "cart", false),
            ("import { Cart } from \"./cart\";", "Cart", true),
            ("export { Cart } from \"./cart\";", "Cart", false),
            ("const { Cart: Basket } = require('./cart')", "Basket", true),
            ("const { Cart: Basket } = require('./cart')", "Cart", false),
            ("use shop::cart::Cart;", "Cart", true),
            ("use shop::cart::Cart;", "cart", false),
        ] {
            assert_eq!(is_brought(line, name, false), expected, "{line} {name}");
        }
        for (line, name, expected) in [
            ("\t\"net/http\"", "http", true),
            ("import \"net/http\"", "http", true),
            ("\tst \"shop/store\"", "store", false),
            ("\tst \"shop/store\"", "st", true),
            ("\t\"gopkg.in/yaml.v3\"", "yaml", true),
        ] {
            assert_eq!(is_brought(line, name, true), expected, "{line} {name}");
        }
    }

    #[test]
    fn assignments_of_members() {
        let text = "class A:\n    def __init__(self):\n        self.c = make()\n    def f(self):\n        self.c.go()\n        self.c = 2\n";
        let found = |line| assignment(&file(text), "self.c", line, &(1..=9)).map(|mention| mention.line);
        assert_eq!((found(5), found(1), found(7)), (Some(3), Some(3), Some(6)));
        assert_eq!(assignment(&file(text), "self.d", 5, &(1..=9)), None);
        assert_eq!(assignment(&file(text), "self.c", 5, &(4..=5)), None);
    }
}
