//! Tables added to a TOML file as its writer left it, and taken out again.
//!
//! Must not know files. Invariant: an addition is a block of lines at the end, with a blank line before it, and nothing else changes.

use std::ops::Range;

use toml_edit::{Document, DocumentMut, Item, Table, TableLike};

use super::command::{is_program, is_same_program};
use super::written::quoted;
use super::{Left, Problem};

/// A table in a TOML file.
#[derive(Clone, Debug)]
pub enum Entry {
    /// `[mcp_servers.<name>]`
    Server { name: &'static str, command: String },
    /// `[[hooks.<event>]]`, with one hook of a host in it.
    Hook { event: &'static str, matcher: &'static str, host: &'static str, command: String },
}

/// Where an entry was found.
struct Found {
    /// The lines that are the entry, in order; empty when it is no table of its own.
    blocks: Vec<Range<usize>>,
    command: Range<usize>,
    says: String,
    /// Of a hook: which group it is in, and which hook of that it is, should others be in the same.
    group: usize,
    hook: Option<usize>,
}

const HOOKS: &str = "hooks";
const SERVERS: &str = "mcp_servers";

impl Entry {
    fn command(&self) -> &str {
        let (Self::Server { command, .. } | Self::Hook { command, .. }) = self;
        command
    }

    /// Returns the lines of the entry, the last one without its end.
    fn lines(&self) -> Vec<String> {
        match self {
            Self::Server { name, command } => {
                vec![format!("[{SERVERS}.{name}]"), format!("command = {}", quoted(command)), "args = [\"mcp\"]".to_owned()]
            }
            Self::Hook { event, matcher, command, .. } => vec![
                format!("[[{HOOKS}.{event}]]"),
                format!("matcher = {}", quoted(matcher)),
                String::new(),
                format!("[[{HOOKS}.{event}.{HOOKS}]]"),
                "type = \"command\"".to_owned(),
                format!("command = {}", quoted(command)),
                "timeout = 10".to_owned(),
            ],
        }
    }

    /// Returns the text with the entry in it; `None` when it is there already. Without a text there is no file yet.
    ///
    /// # Errors
    /// When the text is no TOML, has another form than the host reads, or has an entry of the same name that is none of ours.
    pub fn add(&self, text: Option<&str>) -> Result<Option<String>, Problem> {
        let Some(text) = text else { return Ok(Some(format!("{}\n", self.lines().join("\n")))) };
        let document = parse(text)?;
        if let Some(found) = self.find(&document)? {
            // Flags that somebody gave the hook are theirs to keep.
            let is_same = match self {
                Self::Server { command, .. } => found.says == *command,
                Self::Hook { command, .. } => is_same_program(&found.says, command),
            };
            if is_same {
                return Ok(None);
            }
            let mut text = text.to_owned();
            text.replace_range(found.command, &quoted(self.command()));
            return Ok(Some(text));
        }
        let newline = newline_of(text);
        let block = self.lines().join(newline);
        let added = match text {
            "" => block,
            text if text.ends_with('\n') => format!("{text}{newline}{block}{newline}"),
            text => format!("{text}{newline}{newline}{block}"),
        };
        // A table that is written in one line, or by dots, cannot be added to from outside.
        match Document::parse(added.as_str()) {
            Ok(_) => Ok(Some(added)),
            Err(_) => {
                let key = if matches!(self, Self::Server { .. }) { SERVERS } else { HOOKS };
                Err(Problem::Form { key: key.to_owned(), want: "a table that others can be added to by a `[…]` line" })
            }
        }
    }

    /// Takes the entry out of a text.
    ///
    /// # Errors
    /// When the text is no TOML.
    pub fn take(&self, text: &str) -> Result<Left, Problem> {
        let document = parse(text)?;
        let found = match self.find(&document) {
            Ok(Some(found)) => found,
            Ok(None) | Err(Problem::Taken { .. } | Problem::Form { .. }) => return Ok(Left::Same),
            Err(problem) => return Err(problem),
        };
        if found.blocks.is_empty() {
            return self.take_inner(text, &found);
        }
        let mut left = text.to_owned();
        for block in merge(text, found.blocks).into_iter().rev() {
            if block.start == 0 && &text[block.end..] == "\n" {
                return Ok(Left::Nothing);
            }
            cut(&mut left, block);
        }
        Ok(Left::Text(left))
    }

    /// Takes out an entry that somebody wrote in another way than this program does.
    fn take_inner(&self, text: &str, found: &Found) -> Result<Left, Problem> {
        let mut document: DocumentMut = text.parse().map_err(|error| syntax(text, &error))?;
        match self {
            Self::Server { name, .. } => {
                let servers = document.get_mut(SERVERS).and_then(Item::as_table_like_mut);
                servers.and_then(|servers| servers.remove(name));
            }
            Self::Hook { event, .. } => {
                let groups = document.get_mut(HOOKS).and_then(|hooks| hooks.get_mut(event)).and_then(Item::as_array_mut);
                let Some(groups) = groups else { return Ok(Left::Same) };
                match found.hook {
                    None => drop(groups.remove(found.group)),
                    Some(hook) => {
                        let group = groups.get_mut(found.group).and_then(|group| group.as_inline_table_mut());
                        let hooks = group.and_then(|group| group.get_mut(HOOKS)).and_then(|hooks| hooks.as_array_mut());
                        if let Some(hooks) = hooks {
                            hooks.remove(hook);
                        }
                    }
                }
            }
        }
        Ok(Left::Text(document.to_string()))
    }

    /// Finds the entry.
    fn find(&self, document: &Document<&str>) -> Result<Option<Found>, Problem> {
        match self {
            Self::Server { name, .. } => find_server(document, name),
            Self::Hook { event, host, .. } => Ok(find_hook(document, event, host)),
        }
    }
}

/// Returns whether a text keeps hooks.
///
/// # Errors
/// When it is no TOML.
pub fn has_hooks(text: &str) -> Result<bool, Problem> {
    let document = parse(text)?;
    let hooks = document.get(HOOKS).and_then(Item::as_table_like);
    // What Codex notes of hooks that were looked at is no hook.
    Ok(hooks.is_some_and(|hooks| hooks.iter().any(|(_, value)| value.is_array_of_tables() || value.is_array())))
}

fn find_server(document: &Document<&str>, name: &str) -> Result<Option<Found>, Problem> {
    let Some(servers) = document.get(SERVERS) else { return Ok(None) };
    let Some(servers) = servers.as_table_like() else {
        return Err(Problem::Form { key: SERVERS.to_owned(), want: "a table" });
    };
    let Some(server) = servers.get(name) else { return Ok(None) };
    let own = server.as_table_like().and_then(|table| command_of(table, is_program));
    let serves =
        server.get("args").and_then(Item::as_array).is_some_and(|args| args.iter().any(|word| word.as_str() == Some("mcp")));
    let Some((command, says)) = own.filter(|_| serves) else {
        return Err(Problem::Taken { name: name.to_owned() });
    };
    let blocks = server.as_table().filter(|table| !table.is_dotted()).map(blocks_of).unwrap_or_default();
    Ok(Some(Found { blocks, command, says, group: 0, hook: None }))
}

fn find_hook(document: &Document<&str>, event: &str, host: &str) -> Option<Found> {
    let is_own = |says: &str| {
        let words = shlex::split(says).unwrap_or_default();
        words.first().is_some_and(|program| is_program(program))
            && words.windows(2).any(|pair| pair[0] == "hook" && pair[1] == host)
    };
    let groups = document.get(HOOKS)?.get(event)?;
    if let Some(groups) = groups.as_array_of_tables() {
        return groups.iter().enumerate().find_map(|(group, table)| {
            let hooks = table.get(HOOKS)?;
            if let Some(hooks) = hooks.as_array_of_tables() {
                let found = hooks.iter().enumerate().find_map(|(hook, own)| Some((hook, own, command_of(own, is_own)?)));
                let (hook, own, (command, says)) = found?;
                let is_alone = hooks.len() == 1;
                let blocks = blocks_of(if is_alone { table } else { own });
                return Some(Found { blocks, command, says, group, hook: (!is_alone).then_some(hook) });
            }
            let hooks = hooks.as_array()?;
            let own = hooks.iter().filter_map(|hook| hook.as_inline_table()).find_map(|hook| command_of(hook, is_own));
            let (command, says) = own.filter(|_| hooks.len() == 1)?;
            Some(Found { blocks: blocks_of(table), command, says, group, hook: None })
        });
    }
    groups.as_array()?.iter().enumerate().find_map(|(group, value)| {
        let hooks = value.as_inline_table()?.get(HOOKS)?.as_array()?;
        let own = hooks.iter().enumerate().find_map(|(hook, value)| Some((hook, command_of(value.as_inline_table()?, is_own)?)));
        let (hook, (command, says)) = own?;
        Some(Found { blocks: Vec::new(), command, says, group, hook: (hooks.len() > 1).then_some(hook) })
    })
}

/// Returns where the command of a table stands and what it says, should it be the one that is looked for.
fn command_of(table: &dyn TableLike, is_own: impl Fn(&str) -> bool) -> Option<(Range<usize>, String)> {
    let command = table.get("command")?;
    let says = command.as_str().filter(|says| is_own(says))?;
    Some((command.span()?, says.to_owned()))
}

/// Returns the lines of a table and of the tables in it, each from its head to the end of its last value.
fn blocks_of(table: &Table) -> Vec<Range<usize>> {
    let mut blocks = Vec::new();
    collect_blocks(table, &mut blocks);
    blocks.sort_by_key(|block| block.start);
    blocks
}

fn collect_blocks(table: &Table, blocks: &mut Vec<Range<usize>>) {
    if let Some(head) = table.span() {
        let ends = table.iter().filter(|(_, item)| item.is_value()).filter_map(|(_, item)| item.span()).map(|span| span.end);
        blocks.push(head.start..ends.fold(head.end, usize::max));
    }
    for (_, item) in table {
        match item {
            Item::Table(inner) => collect_blocks(inner, blocks),
            Item::ArrayOfTables(inner) => inner.iter().for_each(|inner| collect_blocks(inner, blocks)),
            _ => {}
        }
    }
}

/// Joins blocks that nothing but white space is between.
fn merge(text: &str, blocks: Vec<Range<usize>>) -> Vec<Range<usize>> {
    let mut merged: Vec<Range<usize>> = Vec::new();
    for block in blocks {
        match merged.last_mut() {
            Some(last) if text[last.end..block.start.max(last.end)].trim().is_empty() => last.end = last.end.max(block.end),
            _ => merged.push(block),
        }
    }
    merged
}

/// Cuts a block with the ends of lines that were added with it.
fn cut(text: &mut String, block: Range<usize>) {
    let newline = newline_of(text);
    let Range { mut start, mut end } = block;
    let mut before = 2;
    if text[end..].starts_with(newline) {
        end += newline.len();
        before = 1;
    }
    while before > 0 && text[..start].ends_with(newline) {
        start -= newline.len();
        before -= 1;
    }
    text.replace_range(start..end, "");
}

fn newline_of(text: &str) -> &'static str {
    match text.find('\n') {
        Some(at) if text[..at].ends_with('\r') => "\r\n",
        _ => "\n",
    }
}

fn parse(text: &str) -> Result<Document<&str>, Problem> {
    Document::parse(text).map_err(|error| syntax(text, &error))
}

fn syntax(text: &str, error: &toml_edit::TomlError) -> Problem {
    // The whole message quotes the line, and a line of a configuration may hold a credential.
    let said = error.message().lines().next().unwrap_or_default();
    let before = error.span().and_then(|span| text.get(..span.start));
    let place = before.map(|before| format!(" on line {}", before.matches('\n').count() + 1)).unwrap_or_default();
    Problem::Syntax { kind: "TOML", said: format!("{said}{place}") }
}
