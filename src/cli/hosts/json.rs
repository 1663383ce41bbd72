//! Entries added to a JSON file as its writer left it, and taken out again: comments, order, indentation and commas stay.
//!
//! Must not know hosts or files. Invariant: an addition inserts text and changes none, and what it inserts says whether the objects around
//! it were there before, so that taking it out again gives the very bytes: what goes into an object or list that was there and empty is
//! written on one line of its own, while what comes with new objects around it has each of them on many lines, or is on the line of what
//! stands before it.

use std::ops::Range;

use jsonc_parser::ast::{Array, Object, Value};
use jsonc_parser::common::Ranged;
use jsonc_parser::tokens::{Token, TokenAndRange};
use jsonc_parser::{CollectOptions, CommentCollectionStrategy, ParseOptions, parse_to_ast};

use super::command::{is_program, is_same_program};
use super::written::{Layout, Written, member, quoted};
use super::{Left, Problem};

const BYTE_ORDER_MARK: char = '\u{feff}';

/// An entry in a JSON file.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Keys that lead to the object or list that holds it.
    pub within: &'static [&'static str],
    pub slot: Slot,
    pub value: Written,
    /// What a file that holds nothing else needs beside it.
    pub beside: &'static [(&'static str, u32)],
    /// The command that the entry runs, as it is written in it.
    pub command: String,
}

/// What kind of place an entry has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    /// A member of this name, which runs a server.
    Member(&'static str),
    /// An element of a list, which runs a hook of this host or holds a list `hooks` of such.
    Hook(&'static str),
}

/// Where an entry was found.
#[derive(Debug)]
struct Found {
    /// Which child it is of the root, which of that child, and so on.
    steps: Vec<usize>,
    /// Where its command stands, and what it says.
    command: Range<usize>,
    says: String,
}

/// A file that was parsed.
struct Parsed<'t> {
    text: &'t str,
    root: Option<Object<'t>>,
    tokens: Vec<TokenAndRange<'t>>,
}

/// An object or a list.
#[derive(Clone, Copy)]
enum Container<'a, 't> {
    Object(&'a Object<'t>),
    List(&'a Array<'t>),
}

impl<'a, 't> Container<'a, 't> {
    fn of(value: &'a Value<'t>) -> Option<Self> {
        match value {
            Value::Object(object) => Some(Self::Object(object)),
            Value::Array(list) => Some(Self::List(list)),
            _ => None,
        }
    }

    fn range(self) -> Range<usize> {
        match self {
            Self::Object(object) => object.range.start..object.range.end,
            Self::List(list) => list.range.start..list.range.end,
        }
    }

    fn children(self) -> Vec<Range<usize>> {
        match self {
            Self::Object(object) => object.properties.iter().map(|child| child.range.start..child.range.end).collect(),
            Self::List(list) => list.elements.iter().map(|child| child.start()..child.end()).collect(),
        }
    }

    fn value(self, child: usize) -> Option<&'a Value<'t>> {
        match self {
            Self::Object(object) => object.properties.get(child).map(|child| &child.value),
            Self::List(list) => list.elements.get(child),
        }
    }
}

impl Entry {
    /// Returns the text with the entry in it; `None` when it is there already. Without a text there is no file yet.
    ///
    /// # Errors
    /// When the text is no JSON, has another form than the host reads, or has an entry of the same name that is none of ours.
    pub fn add(&self, text: Option<&str>) -> Result<Option<String>, Problem> {
        let Some(text) = text else {
            return Ok(Some(format!("{}\n", self.alone(Layout { newline: "\n", step: "  " }))));
        };
        if let Some(rest) = text.strip_prefix(BYTE_ORDER_MARK) {
            return Ok(self.add(Some(rest))?.map(|rest| format!("{BYTE_ORDER_MARK}{rest}")));
        }
        let parsed = Parsed::new(text)?;
        let layout = parsed.layout();
        let Some(root) = &parsed.root else {
            let gap = if text.is_empty() || text.ends_with('\n') { "" } else { layout.newline };
            return Ok(Some(format!("{text}{gap}{}", self.alone(layout))));
        };
        if let Some(found) = self.find(root)? {
            // Flags that somebody gave the hook are theirs to keep.
            let is_same = match self.slot {
                Slot::Member(_) => found.says == self.command,
                Slot::Hook(_) => is_same_program(&found.says, &self.command),
            };
            if is_same {
                return Ok(None);
            }
            let mut text = text.to_owned();
            text.replace_range(found.command, &quoted(&self.command));
            return Ok(Some(text));
        }
        let (holder, missing) = self.holder(root)?;
        let (key, value) = match (missing, self.slot) {
            ([], Slot::Member(name)) => (Some(name), self.value.clone()),
            ([], Slot::Hook(_)) => (None, self.value.clone()),
            ([first, rest @ ..], _) => (Some(*first), self.in_slot().within(rest)),
        };
        Ok(Some(parsed.insert(holder, key, &value, layout)))
    }

    /// Takes the entry out of a text.
    ///
    /// # Errors
    /// As [`Self::add`]; an entry of the same name that is none of ours is left alone.
    pub fn take(&self, text: &str) -> Result<Left, Problem> {
        if let Some(rest) = text.strip_prefix(BYTE_ORDER_MARK) {
            return Ok(match self.take(rest)? {
                Left::Text(rest) => Left::Text(format!("{BYTE_ORDER_MARK}{rest}")),
                left => left,
            });
        }
        let parsed = Parsed::new(text)?;
        let Some(root) = &parsed.root else { return Ok(Left::Same) };
        let found = match self.find(root) {
            Ok(Some(found)) => found,
            // Of another form than the host reads, it cannot hold what was added to it.
            Ok(None) | Err(Problem::Taken { .. } | Problem::Form { .. }) => return Ok(Left::Same),
            Err(problem) => return Err(problem),
        };
        let containers = containers(root, &found.steps);
        for (container, child) in containers.iter().zip(&found.steps).rev() {
            let children = container.children();
            let beside_is_ours = parsed.is_beside(*container, *child, self.beside);
            if (children.len() > 1 && !beside_is_ours) || parsed.was_empty(*container) {
                return Ok(Left::Text(parsed.cut(*container, *child)));
            }
        }
        let whole = containers[0].range();
        let (before, after) = (&text[..whole.start], &text[whole.end..]);
        Ok(if before.is_empty() && after == "\n" { Left::Nothing } else { Left::Text(format!("{before}{after}")) })
    }

    /// Returns the value in the object or list that is its last container.
    fn in_slot(&self) -> Written {
        match self.slot {
            Slot::Member(name) => Written::Object(vec![(name, self.value.clone())]),
            Slot::Hook(_) => Written::List(vec![self.value.clone()]),
        }
    }

    /// Writes a file that holds the entry alone. What it needs beside comes last, where additions never put it.
    fn alone(&self, layout: Layout<'_>) -> String {
        let mut members = match self.in_slot().within(self.within) {
            Written::Object(members) => members,
            // No host keeps hooks at the top of a file.
            value => vec![("hooks", value)],
        };
        members.extend(self.beside.iter().map(|(key, number)| (*key, Written::Number(*number))));
        Written::Object(members).on_lines("", layout)
    }

    /// Returns the innermost container that is there, and the keys of those that are not.
    fn holder<'a, 't>(&self, root: &'a Object<'t>) -> Result<(Container<'a, 't>, &'static [&'static str]), Problem> {
        let mut holder = Container::Object(root);
        for (depth, key) in self.within.iter().enumerate() {
            let Container::Object(object) = holder else { break };
            let Some(child) = the_one(object, key)? else { return Ok((holder, &self.within[depth..])) };
            let value = &object.properties[child].value;
            let wants_list = depth + 1 == self.within.len() && matches!(self.slot, Slot::Hook(_));
            holder = match Container::of(value) {
                Some(found @ Container::List(_)) if wants_list => found,
                Some(found @ Container::Object(_)) if !wants_list => found,
                _ => {
                    let want = if wants_list { "a list" } else { "an object" };
                    return Err(Problem::Form { key: (*key).to_owned(), want });
                }
            };
        }
        Ok((holder, &[]))
    }

    /// Finds the entry.
    fn find(&self, root: &Object<'_>) -> Result<Option<Found>, Problem> {
        let (holder, missing) = self.holder(root)?;
        if !missing.is_empty() {
            return Ok(None);
        }
        let mut steps = Vec::new();
        let mut object = root;
        for key in self.within {
            let Some(child) = the_one(object, key)? else { return Ok(None) };
            steps.push(child);
            match &object.properties[child].value {
                Value::Object(inner) => object = inner,
                _ => break,
            }
        }
        match (self.slot, holder) {
            (Slot::Member(name), Container::Object(object)) => {
                let Some(child) = the_one(object, name)? else { return Ok(None) };
                let Some((command, says)) = server(&object.properties[child].value) else {
                    return Err(Problem::Taken { name: name.to_owned() });
                };
                steps.push(child);
                Ok(Some(Found { steps, command, says }))
            }
            (Slot::Hook(host), Container::List(list)) => Ok(find_hook(list, host).map(|(inner, command, says)| {
                steps.extend(inner);
                Found { steps, command, says }
            })),
            _ => Ok(None),
        }
    }
}

/// Finds the hook of a host in a list: which element it is, and which one of that element's list `hooks`.
fn find_hook(list: &Array<'_>, host: &str) -> Option<(Vec<usize>, Range<usize>, String)> {
    list.elements.iter().enumerate().find_map(|(element, value)| {
        if let Some((command, says)) = hook(value, host) {
            return Some((vec![element], command, says));
        }
        let object = value.as_object()?;
        let child = object.properties.iter().position(|property| property.name.as_str() == "hooks")?;
        let hooks = object.properties[child].value.as_array()?;
        hooks.elements.iter().enumerate().find_map(|(index, value)| {
            let (command, says) = hook(value, host)?;
            // A group of no other hooks goes with it.
            let steps = if hooks.elements.len() == 1 { vec![element] } else { vec![element, child, index] };
            Some((steps, command, says))
        })
    })
}

/// Returns the command of a hook, should it be this program's for the host.
fn hook(value: &Value<'_>, host: &str) -> Option<(Range<usize>, String)> {
    let literal = value.as_object()?.get_string("command")?;
    let words = shlex::split(&literal.value)?;
    let (program, rest) = words.split_first()?;
    let calls = rest.windows(2).any(|pair| pair[0] == "hook" && pair[1] == host);
    (is_program(program) && calls).then(|| (literal.range.start..literal.range.end, literal.value.to_string()))
}

/// Returns the command of a server, should it be this program: a string beside `args`, or the first of a list.
fn server(value: &Value<'_>) -> Option<(Range<usize>, String)> {
    let object = value.as_object()?;
    let strings = |list: &Array<'_>| -> Vec<String> {
        list.elements.iter().filter_map(|value| value.as_string_lit()).map(|literal| literal.value.to_string()).collect()
    };
    let (literal, rest) = match &object.get("command")?.value {
        Value::StringLit(literal) => (literal, object.get_array("args").map(strings).unwrap_or_default()),
        Value::Array(list) => (list.elements.first()?.as_string_lit()?, strings(list).split_off(1)),
        _ => return None,
    };
    let serves = is_program(&literal.value) && rest.iter().any(|word| word == "mcp");
    serves.then(|| (literal.range.start..literal.range.end, literal.value.to_string()))
}

/// Returns the position of the only member of a name.
fn the_one(object: &Object<'_>, key: &str) -> Result<Option<usize>, Problem> {
    let mut named = object.properties.iter().enumerate().filter(|(_, property)| property.name.as_str() == key);
    match (named.next(), named.next()) {
        (_, Some(_)) => Err(Problem::Twice { key: key.to_owned() }),
        (first, None) => Ok(first.map(|(position, _)| position)),
    }
}

/// Returns the containers along the way to an entry, the root first: one for each step.
fn containers<'a, 't>(root: &'a Object<'t>, steps: &[usize]) -> Vec<Container<'a, 't>> {
    let mut containers = vec![Container::Object(root)];
    for step in &steps[..steps.len() - 1] {
        let inner = containers.last().and_then(|container| container.value(*step)).and_then(Container::of);
        containers.push(inner.expect("an entry was found in it"));
    }
    containers
}

impl<'t> Parsed<'t> {
    fn new(text: &'t str) -> Result<Self, Problem> {
        let collect = CollectOptions { comments: CommentCollectionStrategy::AsTokens, tokens: true };
        let options = ParseOptions {
            allow_comments: true,
            allow_trailing_commas: true,
            allow_loose_object_property_names: false,
            allow_missing_commas: false,
            allow_single_quoted_strings: false,
            allow_hexadecimal_numbers: false,
            allow_unary_plus_numbers: false,
            allow_bare_decimal_point_numbers: false,
            allow_non_finite_numbers: false,
            allow_extended_string_escapes: false,
        };
        let result =
            parse_to_ast(text, &collect, &options).map_err(|error| Problem::Syntax { kind: "JSON", said: error.to_string() })?;
        let root = match result.value {
            None => None,
            Some(Value::Object(root)) => Some(root),
            Some(_) => return Err(Problem::NoObject),
        };
        Ok(Self { text, root, tokens: result.tokens.unwrap_or_default() })
    }

    /// Returns how the file sets lines: as the first one in an object or list does.
    fn layout(&self) -> Layout<'t> {
        let newline = match self.text.find('\n') {
            Some(at) if self.text[..at].ends_with('\r') => "\r\n",
            _ => "\n",
        };
        let root = self.root.as_ref().map(Container::Object);
        let first = root.and_then(|root| root.children().first().cloned());
        let step = first.and_then(|first| self.indent_before(first.start)).filter(|step| !step.is_empty());
        Layout { newline, step: step.unwrap_or("  ") }
    }

    /// Returns the white space between the beginning of a line and a place in it; `None` when there is more than that.
    fn indent_before(&self, at: usize) -> Option<&'t str> {
        let start = self.text[..at].rfind('\n')? + 1;
        let indent = &self.text[start..at];
        indent.bytes().all(|byte| matches!(byte, b' ' | b'\t')).then_some(indent)
    }

    /// Returns the white space that the line of a place begins with.
    fn indent_of_line(&self, at: usize) -> &'t str {
        let start = self.text[..at].rfind('\n').map_or(0, |newline| newline + 1);
        let line = &self.text[start..at];
        &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
    }

    fn has_line_break(&self, range: Range<usize>) -> bool {
        self.text[range].contains('\n')
    }

    /// Returns the end of the last token before a place, comments included.
    fn end_before(&self, at: usize) -> usize {
        let before = self.tokens.iter().rev().find(|token| token.range.end <= at);
        before.map_or(0, |token| token.range.end)
    }

    /// Returns the comma right after a child, comments aside.
    fn comma_after(&self, at: usize) -> Option<Range<usize>> {
        let next = self.tokens.iter().filter(|token| token.range.start >= at).find(|token| !is_comment(&token.token))?;
        (next.token == Token::Comma).then_some(next.range.start..next.range.end)
    }

    /// Returns the comma before a child, comments aside.
    fn comma_before(&self, at: usize) -> Option<Range<usize>> {
        let last = self.tokens.iter().rev().filter(|token| token.range.end <= at).find(|token| !is_comment(&token.token))?;
        (last.token == Token::Comma).then_some(last.range.start..last.range.end)
    }

    /// Returns whether a container was there, with nothing in it, before its only child was added.
    fn was_empty(&self, container: Container<'_, '_>) -> bool {
        let children = container.children();
        let [child] = children.as_slice() else { return false };
        self.has_line_break(container.range()) && !self.has_line_break(child.clone())
    }

    /// Returns whether all but the first child of an object is what a file of nothing else needs beside it.
    fn is_beside(&self, container: Container<'_, '_>, child: usize, beside: &[(&str, u32)]) -> bool {
        let Container::Object(object) = container else { return false };
        child == 0
            && object.properties.len() == beside.len() + 1
            && object.properties[1..].iter().zip(beside).all(|(property, (key, number))| {
                property.name.as_str() == *key
                    && matches!(&property.value, Value::NumberLit(literal) if literal.value == number.to_string())
            })
    }

    /// Returns the text with one more child at the end of a container.
    fn insert(&self, container: Container<'_, '_>, key: Option<&str>, value: &Written, layout: Layout<'_>) -> String {
        let write = |value: String| key.map_or_else(|| value.clone(), |key| member(key, &value));
        let Layout { newline, step } = layout;
        let range = container.range();
        let mut text = self.text.to_owned();
        let children = container.children();
        let Some(last) = children.last() else {
            let outer = self.indent_of_line(range.start);
            let line = format!("{newline}{outer}{step}{}", write(value.on_one_line()));
            let inner_end = self.end_before(range.end - 1);
            match inner_end == range.start + 1 {
                true => text.insert_str(inner_end, &format!("{line}{newline}{outer}")),
                // After the comments that stand there.
                false => text.insert_str(inner_end, &line),
            }
            return text;
        };
        let comma = self.comma_after(last.end);
        let is_on_lines = self.has_line_break(range.start..children[0].start);
        let end = comma.as_ref().map_or(last.end, |comma| comma.end);
        let mut anchor = end;
        // What is said behind the last child on its line stays with it.
        let behind = self.tokens.iter().filter(|token| is_on_lines && token.range.start >= end);
        for token in behind.take_while(|token| is_comment(&token.token)) {
            if self.has_line_break(anchor..token.range.start) {
                break;
            }
            anchor = token.range.end;
        }
        let mut piece = match is_on_lines {
            true => {
                let indent = self.indent_before(last.start).unwrap_or_else(|| self.indent_of_line(last.start));
                format!("{newline}{indent}{}", write(value.on_lines(indent, layout)))
            }
            false => format!(" {}", write(value.on_one_line())),
        };
        if comma.is_some() {
            piece.push(',');
        }
        text.insert_str(anchor, &piece);
        if comma.is_none() {
            text.insert(last.end, ',');
        }
        text
    }

    /// Returns the text without one child of a container.
    fn cut(&self, container: Container<'_, '_>, child: usize) -> String {
        let children = container.children();
        let own = children[child].clone();
        let start = self.end_before(own.start);
        let comma = self.comma_after(own.end);
        let mut end = comma.as_ref().map_or(own.end, |comma| comma.end);
        let mut text = self.text.to_owned();
        if children.len() == 1 && start == container.range().start + 1 {
            // The end of its line was added with it.
            let rest = &self.text[end..];
            let outer = self.indent_of_line(container.range().start);
            let closing = [format!("\r\n{outer}"), format!("\n{outer}")].into_iter().find(|line| rest.starts_with(line.as_str()));
            end += closing.map_or(0, |line| line.len());
        }
        text.replace_range(start..end, "");
        let is_last = child + 1 == children.len();
        if let Some(comma) = self.comma_before(own.start).filter(|_| is_last && comma.is_none()) {
            text.replace_range(comma, "");
        }
        text
    }
}

fn is_comment(token: &Token<'_>) -> bool {
    matches!(token, Token::CommentLine(_) | Token::CommentBlock(_))
}

/// Returns whether an object or a list stands at the end of some keys, and is no object that has a member of that name with text in it.
///
/// # Errors
/// When the text is no JSON.
pub fn has_object(text: &str, keys: &[&str], without: &str) -> Result<bool, Problem> {
    let parsed = Parsed::new(text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text))?;
    let Some(root) = &parsed.root else { return Ok(false) };
    let mut container = Container::Object(root);
    for key in keys {
        let Container::Object(object) = container else { return Ok(false) };
        let Some(inner) = object.get(key).and_then(|property| Container::of(&property.value)) else { return Ok(false) };
        container = inner;
    }
    Ok(!matches!(container, Container::Object(object) if object.get_string(without).is_some()))
}
