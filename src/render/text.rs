//! Text for people: one line a fact, places as `path:line`, colours only where the caller asked for them.
//!
//! Must not know terminals. Invariant: with the colours taken away the text is the same, byte for byte.

mod comparison;
mod impact;
mod references;

use std::fmt::{self, Display, Write as _};
use std::time::Duration;

use anstyle::{AnsiColor, Style};

use crate::model::{EdgeKind, ParseStatus, Resolution, SymbolKind};
use crate::query::request::MAX_LIMIT;
use crate::query::response::{Item, Near, OUTPUT_BUDGET, Response, Role};
use crate::query::select;
use crate::store::NodeRow;

pub use comparison::{Compared, compared};
pub use impact::test_remarks;
pub use references::unread;

/// How wide a line becomes where it can be cut without losing a fact.
const WIDTH: usize = 100;
/// Most lines of a seed's source that `explore` shows unasked.
const PREVIEW: u32 = 14;

const PATH: Style = AnsiColor::Cyan.on_default();
const NAME: Style = Style::new().bold();
const KIND: Style = AnsiColor::Magenta.on_default();
const SURE: Style = AnsiColor::Green.on_default();
const UNSURE: Style = AnsiColor::Yellow.on_default();
const FAINT: Style = Style::new().dimmed();

/// How to draw.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Whether to colour.
    pub color: bool,
    /// Whether relations show the bodies of their definitions, and seeds all of theirs.
    pub source: bool,
    /// How whoever reads it asks again.
    pub asker: Asker,
}

/// Who reads an answer, and so how the knobs of a question are named in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Asker {
    /// Types commands: `--max-bytes`.
    #[default]
    Person,
    /// Calls tools: `max_bytes`.
    Agent,
}

impl Options {
    /// Returns how a flag is named to whoever reads the answer.
    fn flag(self, flag: &str) -> String {
        match self.asker {
            Asker::Person => flag.to_owned(),
            Asker::Agent => format!("`{}`", flag.trim_start_matches('-').replace('-', "_")),
        }
    }
}

/// What was checked before the answer, for its last line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checked<'c> {
    pub files: u64,
    pub elapsed: Duration,
    /// Name of the generation, or its fingerprint.
    pub generation: &'c str,
}

/// Draws the items of an answer whose source was placed without a budget; ends with a line end unless empty.
pub fn answer(response: &Response, options: Options) -> String {
    let span = tracing::debug_span!("render", items = response.items.len(), bytes = tracing::field::Empty);
    let _entered = span.enter();
    let mut page = Page { text: String::new(), options };
    match response.operation {
        "explore" => page.explore(response),
        "callers" | "callees" => page.relations(response),
        "impact" => page.impact(response),
        "read" => response.items.iter().for_each(|item| page.excerpt(item)),
        "map" => page.map(response),
        "changes" => page.changes(response),
        "impact_changes" => page.impact_changes(response),
        "diagnostics" => page.references(response),
        _ => response.items.iter().for_each(|item| page.symbol(item)),
    }
    page.remarks(response);
    span.record("bytes", page.text.len());
    page.text
}

/// Draws the last line: `fresh · 6,993 files checked in 71 ms · generation 3f2a9c01d4e5…`.
pub fn checked(checked: &Checked<'_>, options: Options) -> String {
    let page = Page { text: String::new(), options };
    let short: String = checked.generation.chars().take(12).collect();
    let files = counted(checked.files, "file");
    let line = format!(" · {files} checked in {} · generation {short}…", duration(checked.elapsed));
    format!("{}{}\n", page.paint(SURE, "fresh"), page.paint(FAINT, &line))
}

/// Draws several symbols to choose from.
pub fn choices(text: &str, nodes: &[NodeRow], total: usize, options: Options) -> String {
    let mut page = Page { text: String::new(), options };
    page.line(format_args!(
        "`{}` names {}; choose one by its full name, path:line or id:",
        clean(text),
        counted(total as u64, "symbol")
    ));
    for node in nodes {
        let id: String = node.symbol.hex().chars().take(12).collect();
        let place = page.place(&node.path, name_line(node));
        let kind = page.paint(KIND, node.kind.as_str()).to_string();
        let name = page.paint(NAME, &select::qualified(node)).to_string();
        let id = page.paint(FAINT, &id).to_string();
        page.line(format_args!("  {place} {kind} {name}  {id}"));
    }
    if total > nodes.len() {
        page.line(format_args!("{} of {}", grouped(nodes.len() as u64), grouped(total as u64)));
    }
    page.text
}

/// Says that nothing bears a name, and which names are nearest.
pub fn nothing_named(text: &str, near: &[NodeRow], options: Options) -> String {
    let near: Vec<Near> = near
        .iter()
        .map(|node| Near { qualified_name: select::qualified(node), path: node.path.to_string(), line: name_line(node) })
        .collect();
    let mut page = Page { text: String::new(), options };
    page.line(format_args!("nothing is named `{}`", clean(text)));
    page.near(&near);
    page.text
}

/// Returns a number with its thousands apart: `6,993`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Returns a number and the word for what it counts: `1 file`, `2 files`.
pub fn counted(number: u64, what: &str) -> String {
    format!("{} {what}{}", grouped(number), if number == 1 { "" } else { "s" })
}

/// Returns a duration as people read it: `71 ms`, `2.4 s`.
pub fn duration(elapsed: Duration) -> String {
    match elapsed.as_millis() {
        millis @ 0..1000 => format!("{millis} ms"),
        _ => format!("{:.1} s", elapsed.as_secs_f64()),
    }
}

fn name_line(node: &NodeRow) -> u32 {
    if node.name_line > 0 { node.name_line } else { node.start_line.max(1) }
}

/// Returns a text without what could steer a terminal.
pub fn clean(text: &str) -> String {
    text.chars().map(|character| if character.is_control() { '\u{fffd}' } else { character }).collect()
}

/// A piece of text in a style, or plain.
struct Painted<'t> {
    style: Option<Style>,
    text: &'t str,
}

impl Display for Painted<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.style {
            Some(style) => write!(out, "{style}{}{style:#}", self.text),
            None => out.write_str(self.text),
        }
    }
}

struct Page {
    text: String,
    options: Options,
}

impl Page {
    fn line(&mut self, line: fmt::Arguments<'_>) {
        writeln!(self.text, "{line}").expect("writing to a string");
    }

    fn paint<'t>(&self, style: Style, text: &'t str) -> Painted<'t> {
        Painted { style: self.options.color.then_some(style), text }
    }

    fn place(&self, path: &str, line: u32) -> String {
        self.paint(PATH, &clean(&format!("{path}:{line}"))).to_string()
    }

    /// `path:line kind qualified  signature`, the signature cut to what is left of the line.
    fn symbol(&mut self, item: &Item) {
        let kind = item.kind.map_or("", SymbolKind::as_str);
        if item.kind == Some(SymbolKind::File) {
            let path = self.paint(PATH, &clean(&item.path)).to_string();
            let kind = self.paint(KIND, kind).to_string();
            let language = item.language.as_deref().unwrap_or_default();
            let unparsed = if item.parse_status == Some(ParseStatus::Failed) { ", could not be parsed" } else { "" };
            let language = self.paint(FAINT, &format!("{language}{unparsed}")).to_string();
            self.line(format_args!("{path} {kind}  {language}"));
            return;
        }
        let name = clean(&full_name(item));
        let line = item.definition_line.max(1);
        let used = item.path.chars().count() + line.to_string().len() + kind.len() + name.chars().count() + 5;
        let signature =
            item.signature.as_deref().map(|signature| shorten(signature, WIDTH.saturating_sub(used))).unwrap_or_default();
        let place = self.place(&item.path, line);
        let kind = self.paint(KIND, kind).to_string();
        let name = self.paint(NAME, &name).to_string();
        let gap = if signature.is_empty() { "" } else { "  " };
        let signature = self.paint(FAINT, &signature).to_string();
        self.line(format_args!("{place} {kind} {name}{gap}{signature}"));
    }

    fn map(&mut self, response: &Response) {
        for item in &response.items {
            if item.kind == Some(SymbolKind::File) {
                let path = self.paint(PATH, &clean(&item.path)).to_string();
                let language = self.paint(FAINT, item.language.as_deref().unwrap_or_default()).to_string();
                self.line(format_args!("{path}  {language}"));
                continue;
            }
            let name: &str = item.qualified_name.as_deref().unwrap_or_default();
            let depth = name.matches('.').count();
            let line = item.definition_line.max(1).to_string();
            let head = item.signature.as_deref().unwrap_or(name);
            let head = shorten(head, WIDTH.saturating_sub(8 + depth * 2));
            let kind =
                if item.signature.is_some() { String::new() } else { format!("{} ", item.kind.map_or("", SymbolKind::as_str)) };
            let line = self.paint(FAINT, &format!("{line:>5}")).to_string();
            let kind = self.paint(KIND, &kind).to_string();
            self.line(format_args!("{line}  {}{kind}{head}", "  ".repeat(depth)));
        }
    }

    fn relations(&mut self, response: &Response) {
        let Some(subject) = &response.subject else { return };
        let name = clean(&full_name(subject));
        if is_none(response) {
            // With mentions that could not be bound, "no callers" would be more than is known.
            let open = response.coverage.unresolved_mentions.unwrap_or(0) > 0;
            let none = match (response.operation == "callers", open) {
                (true, false) => "no callers found of",
                (true, true) => "no call could be bound to",
                (false, false) => "no callees found of",
                (false, true) => "no call could be bound in",
            };
            let place = self.place(&subject.path, subject.definition_line.max(1));
            let name = self.paint(NAME, &name).to_string();
            self.line(format_args!("{none} {name} ({place})"));
        }
        for item in &response.items {
            let callers = response.operation == "callers";
            let line = if callers { self.relation(Some(item), Some(subject)) } else { self.relation(Some(subject), Some(item)) };
            self.line(format_args!("{line}"));
            if self.options.source {
                self.body(item, u32::MAX);
            }
        }
        let mentions = response.coverage.unresolved_mentions.unwrap_or(0);
        if mentions > 0 {
            let line = if response.operation == "callers" {
                let name = clean(subject.name.as_deref().unwrap_or_default());
                format!("{} named `{name}` could not be bound: they may mean it or another", counted(mentions, "use"))
            } else {
                format!("{} inside it could not be bound", counted(mentions, "call"))
            };
            self.faint(&line);
        }
    }

    /// `path:line source verb target  resolution`. One of the two is the item of the relation and holds its witness; what stands above
    /// the line anyway may be left out.
    fn relation(&self, source: Option<&Item>, target: Option<&Item>) -> String {
        let holds = |item: &&Item| item.witness_path.as_ref().is_some_and(|path| !path.is_empty());
        let Some(held) = source.filter(holds).or(target.filter(holds)) else { return String::new() };
        let Some(witness) = held.witness_path.as_ref().and_then(|path| path.last()) else { return String::new() };
        let from = match source.map(|source| (source.kind, source.qualified_name.as_deref())) {
            None => String::new(),
            Some((Some(SymbolKind::File), _) | (_, None)) => "module level ".to_owned(),
            Some((_, Some(name))) => format!("{} ", clean(name)),
        };
        let to = target.map_or_else(|| "it".to_owned(), |target| clean(&full_name(target)));
        let verb = match witness.kind {
            EdgeKind::Contains => "contains",
            EdgeKind::Imports => "imports",
            EdgeKind::Calls => "calls",
            EdgeKind::Inherits => "inherits",
            EdgeKind::References => "references",
        };
        let sure = witness.resolution == Resolution::ResolvedStatic;
        let (from, to) = if sure {
            (self.paint(NAME, &from).to_string(), self.paint(NAME, &to).to_string())
        } else {
            (self.paint(FAINT, &from).to_string(), self.paint(FAINT, &to).to_string())
        };
        let resolution = match sure {
            true => self.paint(SURE, witness.resolution.as_str()).to_string(),
            false => self.paint(UNSURE, &format!("{} {}", witness.resolution.as_str(), witness.rule_id)).to_string(),
        };
        let place = self.place(&witness.path, witness.line);
        let mut line = format!("{place} {from}{verb} {to}  {resolution}");
        line.push_str(&self.also(held, witness.line));
        line
    }

    /// The other lines of a relation, whose first is shown.
    fn also(&self, held: &Item, first: u32) -> String {
        let others: Vec<String> = held.site_lines.iter().filter(|line| **line != first).map(|line| format!(":{line}")).collect();
        if others.is_empty() {
            return String::new();
        }
        let shown = others[..others.len().min(6)].join(" ");
        let more = if others.len() > 6 { format!(" and {} more", others.len() - 6) } else { String::new() };
        format!("  {}", self.paint(FAINT, &format!("also {shown}{more}")))
    }

    fn explore(&mut self, response: &Response) {
        if is_none(response) {
            self.line(format_args!("nothing found"));
            return;
        }
        let seeds: Vec<&Item> = response.items.iter().filter(|item| item.role == Some(Role::Seed)).collect();
        for (index, seed) in seeds.iter().enumerate() {
            if index > 0 {
                self.text.push('\n');
            }
            self.symbol(seed);
            self.body(seed, if self.options.source { u32::MAX } else { PREVIEW });
            for item in response.items.iter().filter(|item| item.seed == Some(index)) {
                let line = match item.role {
                    Some(Role::Caller) => format!("  ← {}", self.relation(Some(item), None)),
                    _ => format!("  → {}", self.relation(None, Some(item))),
                };
                self.line(format_args!("{line}"));
                if self.options.source {
                    self.body(item, u32::MAX);
                }
            }
            self.reach(seed);
        }
    }

    /// Who uses a seed beyond what is listed, and what is uncertain about it.
    fn reach(&mut self, seed: &Item) {
        let Some(reach) = seed.detail.as_ref().and_then(|detail| detail.reach.as_ref()) else { return };
        let mut said = Vec::new();
        if reach.users > 0 {
            let least = if reach.is_partial { "at least " } else { "" };
            let (users, files) = (counted(reach.users, "place"), counted(reach.files, "file"));
            said.push(format!("used from {least}{users} in {files} within {}", counted(u64::from(reach.depth), "step")));
        }
        if !reach.test_files.is_empty() {
            let named: Vec<String> = reach.test_files.iter().map(|path| clean(path)).collect();
            let more = reach.more_test_files.map_or(String::new(), |more| format!(" and {more} more"));
            said.push(format!("tests: {}{more}", named.join(", ")));
        }
        if reach.unresolved_mentions > 0 {
            let name = clean(seed.name.as_deref().unwrap_or_default());
            said.push(format!("{} named `{name}` could not be bound", counted(reach.unresolved_mentions, "use")));
        }
        if !said.is_empty() {
            self.faint(&format!("  {}", said.join("; ")));
        }
    }

    /// `path:first-last` and the lines, numbered.
    fn excerpt(&mut self, item: &Item) {
        let place = self.paint(PATH, &clean(&format!("{}:{}-{}", item.path, item.start_line, item.end_line))).to_string();
        self.line(format_args!("{place}"));
        self.body(item, u32::MAX);
    }

    /// The source of an item, numbered, at most `most` lines of it.
    fn body(&mut self, item: &Item, most: u32) {
        let Some(content) = &item.content else {
            if let Some(omitted) = item.source_omitted {
                let why = match omitted {
                    crate::query::response::SourceOmitted::ShownAbove => return,
                    crate::query::response::SourceOmitted::OutputBudget => "the source found no room",
                    crate::query::response::SourceOmitted::SourceLineTooLarge => "the line is too long to show",
                };
                self.faint(&format!("    {why}"));
            }
            return;
        };
        let width = item.end_line.to_string().len().max(4);
        let mut rest = 0;
        for (number, line) in (item.start_line..).zip(content.split_inclusive('\n')) {
            if number - item.start_line >= most {
                rest += 1;
                continue;
            }
            let line = line.trim_end_matches(['\n', '\r']).replace('\t', "    ");
            let number = self.paint(FAINT, &format!("{number:>width$}")).to_string();
            let line = clean(&line);
            let gap = if line.is_empty() { "" } else { "  " };
            self.line(format_args!("{number}{gap}{line}"));
        }
        if rest > 0 {
            let source = self.options.flag("--source");
            self.faint(&format!("{:>width$}  {} with {source}", "…", counted(rest, "more line")));
        }
    }

    fn near(&mut self, near: &[Near]) {
        if near.is_empty() {
            return;
        }
        self.line(format_args!("near names:"));
        for near in near {
            let place = self.place(&near.path, near.line.max(1));
            let name = self.paint(NAME, &clean(&near.qualified_name)).to_string();
            self.line(format_args!("  {place} {name}"));
        }
    }

    fn faint(&mut self, line: &str) {
        let line = self.paint(FAINT, line).to_string();
        self.line(format_args!("{line}"));
    }

    /// What the answer leaves out.
    fn remarks(&mut self, response: &Response) {
        if response.operation == "symbols" && is_none(response) {
            self.line(format_args!("nothing found"));
        }
        if let Some(near) = &response.coverage.near {
            self.near(near);
        }
        let shown = response.items.iter().filter(|item| !item.repeated && !item.is_container()).count() as u64;
        if response.total > shown {
            let more = match response.operation {
                "explore" => format!("a narrower question or {} shows more", self.options.flag("--path")),
                "changes" => format!("a larger {} shows more", self.options.flag("--max-bytes")),
                _ => more(response, self.options),
            };
            self.faint(&format!("{} of {}; {more}", grouped(shown), grouped(response.total)));
        }
        let boundary = response.coverage.path_boundary_edges;
        if boundary > 0 {
            self.faint(&format!("{} outside the path", counted(boundary, "relation")));
        }
        let failed = response.coverage.failed_files;
        if failed > 0 && matches!(response.operation, "callers" | "impact" | "impact_changes") {
            self.faint(&format!("{} could not be parsed: uses in there are not known", counted(failed, "file")));
        }
        if matches!(response.operation, "callers" | "explore" | "impact" | "impact_changes") {
            self.unread(response);
        }
        if matches!(response.operation, "impact" | "impact_changes") {
            self.walk_remarks(response);
        } else if response.limitations.iter().any(|word| word == "traversal_limit") {
            self.faint("the symbol has more relations than one answer follows");
        }
        if response.operation == "read" && response.limitations.iter().any(|word| word == "source_truncated") {
            self.faint("cut: ask for fewer lines");
        }
    }
}

/// Returns whether there was nothing to tell: where a limit left no room for what there was, "none" would be untrue.
fn is_none(response: &Response) -> bool {
    response.items.is_empty() && response.total == 0
}

/// Returns what shows more of an answer that a limit cut. The largest limit can only be helped by asking for less.
fn more(response: &Response, options: Options) -> String {
    if response.limitations.iter().any(|word| word == OUTPUT_BUDGET) {
        format!("a larger {} shows more", options.flag("--max-bytes"))
    } else if response.items.len() < MAX_LIMIT {
        format!("{} shows more", options.flag("--limit"))
    } else {
        format!("{} narrows the question", options.flag("--path"))
    }
}

/// Returns the name with its module's; a file's path.
fn full_name(item: &Item) -> String {
    let lexical = item.qualified_name.as_deref().unwrap_or_default();
    match (&item.module, item.kind) {
        (_, Some(SymbolKind::File)) => item.path.to_string(),
        (Some(module), _) if !module.is_empty() => format!("{module}.{lexical}"),
        _ => lexical.to_owned(),
    }
}

/// Returns a text of at most `most` characters, its end marked when cut; nothing where only scraps would remain.
fn shorten(text: &str, most: usize) -> String {
    let text = clean(text);
    if text.chars().count() <= most {
        return text;
    }
    if most < 12 {
        return String::new();
    }
    let mut short: String = text.chars().take(most - 1).collect();
    short.push('…');
    short
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::query::response::{CoverageReport, SCHEMA, Status, WitnessEdge};

    pub(super) fn item(path: &str, line: u32, kind: SymbolKind, name: &str, module: &str) -> Item {
        Item {
            path: Arc::from(path),
            kind: Some(kind),
            start_line: line,
            end_line: line + 1,
            definition_line: line,
            name: Some(Arc::from(name.rsplit('.').next().unwrap_or(name))),
            qualified_name: Some(Arc::from(name)),
            module: Some(Arc::from(module)),
            ..Item::default()
        }
    }

    fn related(mut item: Item, path: &str, lines: &[u32], resolution: Resolution, rule: &str) -> Item {
        item.witness_path = Some(vec![WitnessEdge {
            source_id: String::new(),
            target_id: String::new(),
            kind: EdgeKind::Calls,
            resolution,
            rule_id: Arc::from(rule),
            reference_key: None,
            path: Arc::from(path),
            line: lines[0],
        }]);
        item.site_lines = lines.to_vec();
        item
    }

    pub(super) fn response(operation: &'static str, subject: Option<Item>, items: Vec<Item>) -> Response {
        Response {
            schema: SCHEMA,
            scope_id: String::new(),
            fingerprint: String::new(),
            before_fingerprint: None,
            commit: None,
            git_object_format: String::new(),
            dirty: false,
            checked_at: String::new(),
            operation,
            status: Status::Ok,
            total: items.len() as u64,
            asked: None,
            deepest: false,
            items,
            coverage: CoverageReport::default(),
            limitations: Vec::new(),
            subject: subject.map(Box::new),
        }
    }

    pub(super) fn check(response: &Response, expected: &str) {
        let plain = answer(response, Options::default());
        assert_eq!(plain, expected);
        let colored = answer(response, Options { color: true, ..Options::default() });
        let mut bare = String::new();
        let mut escape = false;
        for character in colored.chars() {
            match (escape, character) {
                (false, '\u{1b}') => escape = true,
                (true, 'm') => escape = false,
                (true, _) => {}
                (false, _) => bare.push(character),
            }
        }
        assert_eq!(bare, expected, "colours change nothing else");
    }

    #[test]
    fn callers() {
        let greet = || item("app/util.py", 1, SymbolKind::Function, "greet", "app.util");
        let main = item("app/main.py", 2, SymbolKind::Function, "main", "app.main");
        let file = item("app/main.py", 0, SymbolKind::File, "app/main.py", "app.main");
        let items = vec![
            related(main, "app/main.py", &[2, 5, 7], Resolution::ResolvedStatic, "explicit_import"),
            related(file, "app/main.py", &[9], Resolution::Candidate, "receiver_hint"),
        ];
        let mut answer = response("callers", Some(greet()), items);
        answer.total = 1_234;
        answer.coverage.unresolved_mentions = Some(1);
        check(
            &answer,
            "app/main.py:2 main calls app.util.greet  resolved_static  also :5 :7\n\
             app/main.py:9 module level calls app.util.greet  candidate receiver_hint\n\
             1 use named `greet` could not be bound: they may mean it or another\n\
             2 of 1,234; --limit shows more\n",
        );
        let mut none = response("callers", Some(greet()), Vec::new());
        check(&none, "no callers found of app.util.greet (app/util.py:1)\n");
        none.coverage.failed_files = 2;
        check(
            &none,
            "no callers found of app.util.greet (app/util.py:1)\n\
             2 files could not be parsed: uses in there are not known\n",
        );
        // What found no room is not denied.
        let mut crowded = response("callers", Some(greet()), Vec::new());
        crowded.total = 3;
        crowded.cut(OUTPUT_BUDGET);
        check(&crowded, "0 of 3; a larger --max-bytes shows more\n");
    }

    #[test]
    fn callees() {
        let main = item("app/main.py", 2, SymbolKind::Function, "main", "app.main");
        let greet = item("app/util.py", 1, SymbolKind::Function, "greet", "app.util");
        let items = vec![related(greet, "app/main.py", &[2], Resolution::ResolvedStatic, "explicit_import")];
        check(&response("callees", Some(main), items), "app/main.py:2 main calls app.util.greet  resolved_static\n");
    }

    #[test]
    fn symbols_and_near_names() {
        let mut greet = item("app/util.py", 1, SymbolKind::Function, "greet", "app.util");
        greet.signature = Some(Arc::from("def greet(name: str, *, loud: bool = False, suffix: str = '!') -> str"));
        let mut file = item("a\u{1b}.md", 0, SymbolKind::File, "a.md", "");
        file.language = Some(Arc::from("text"));
        check(
            &response("symbols", None, vec![greet, file]),
            "app/util.py:1 function app.util.greet  def greet(name: str, *, loud: bool = False, suffix: str = '!…\n\
             a\u{fffd}.md file  text\n",
        );
        let mut nothing = response("symbols", None, Vec::new());
        nothing.coverage.near = Some(vec![Near { qualified_name: "a.b".to_owned(), path: "a.py".to_owned(), line: 3 }]);
        check(&nothing, "nothing found\nnear names:\n  a.py:3 a.b\n");
    }

    #[test]
    fn map_and_read() {
        let mut method = item("m.py", 2, SymbolKind::Method, "C.f", "m");
        method.signature = Some(Arc::from("def f(self)"));
        let file = Item { language: Some(Arc::from("python")), ..item("m.py", 1, SymbolKind::File, "m.py", "m") };
        let items = vec![file, item("m.py", 1, SymbolKind::Class, "C", "m"), method];
        check(&response("map", None, items), "m.py  python\n    1  class C\n    2    def f(self)\n");
        let read = Item {
            path: Arc::from("m.py"),
            start_line: 9,
            end_line: 11,
            content: Some("\tx\r\n\ny".to_owned()),
            ..Item::default()
        };
        check(&response("read", None, vec![read]), "m.py:9-11\n   9      x\n  10\n  11  y\n");
    }

    #[test]
    fn explore() {
        let mut seed = item("app/util.py", 1, SymbolKind::Function, "greet", "app.util");
        seed.role = Some(Role::Seed);
        seed.content = Some("def greet(name):\n    return name\n".to_owned());
        let main = item("app/main.py", 2, SymbolKind::Function, "main", "app.main");
        let mut main = related(main, "app/main.py", &[2], Resolution::ResolvedStatic, "explicit_import");
        main.role = Some(Role::Caller);
        main.seed = Some(0);
        check(
            &response("explore", None, vec![seed, main]),
            "app/util.py:1 function app.util.greet\n   \
                1  def greet(name):\n   \
                2      return name\n  \
               ← app/main.py:2 main calls it  resolved_static\n",
        );
    }

    #[test]
    fn last_line() {
        let line = |files, millis| {
            let generation = "3f2a9c01d4e5f6";
            checked(&Checked { files, elapsed: Duration::from_millis(millis), generation }, Options::default())
        };
        assert_eq!(line(6_993, 71), "fresh · 6,993 files checked in 71 ms · generation 3f2a9c01d4e5…\n");
        assert_eq!(line(1, 2_345), "fresh · 1 file checked in 2.3 s · generation 3f2a9c01d4e5…\n");
        assert_eq!([0, 999, 1_000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
    }
}
