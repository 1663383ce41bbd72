//! From what a person types to a symbol: a qualified name, a suffix of one, `path:line`, `path::name`, or an id.
//!
//! Must not know how choices are shown. Invariant: several matches are never merged into one; they come back for choosing.

use std::collections::BTreeSet;

use crate::model::{PathPrefix, RepoPath, SymbolId, SymbolKind};
use crate::store::{Generation, NodeRow, StoreError};

use super::words;

/// Most nodes of one name that are looked at.
const MAX_NAMED: usize = 10_000;
/// Most nodes that are listed for choosing.
pub const MAX_CHOICES: usize = 20;
/// Most near names that are listed.
pub const MAX_NEAR: usize = 5;

/// What a text stands for in a generation.
#[derive(Clone, Debug, PartialEq)]
pub enum Selection {
    One(Box<NodeRow>),
    /// Several symbols of equal right, at most [`MAX_CHOICES`], and how many there are.
    Several {
        choices: Vec<NodeRow>,
        total: usize,
    },
    /// None; these names are nearest.
    None {
        near: Vec<NodeRow>,
    },
}

/// How well a qualified name fits what was typed; the smaller the better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fit {
    /// The path, or the name with its module.
    Whole,
    /// The name within its file.
    Lexical,
    /// The last parts of it.
    Suffix,
}

/// Finds the symbol that `text` names below `prefix`.
///
/// # Errors
/// [`StoreError`] when the generation cannot be read.
pub fn select(generation: &Generation, text: &str, prefix: &PathPrefix) -> Result<Selection, StoreError> {
    let text = text.trim();
    let mut nodes = by_id(generation, text)?;
    if nodes.is_empty() {
        nodes = by_place(generation, text)?;
    }
    if nodes.is_empty() {
        nodes = in_file(generation, text)?;
    }
    nodes.retain(|node| prefix.matches(&node.path));
    if nodes.is_empty() {
        let named = by_name(generation, text, prefix)?;
        if let Some(best) = named.iter().map(|(fit, _)| *fit).min() {
            nodes = named.into_iter().filter(|(fit, _)| *fit == best).map(|(_, node)| node).collect();
        }
    }
    if nodes.is_empty() {
        nodes = by_id_start(generation, text)?;
        nodes.retain(|node| prefix.matches(&node.path));
    }
    nodes.sort_by(|left, right| place(left).cmp(&place(right)));
    Ok(match nodes.len() {
        0 => Selection::None { near: near(generation, text, prefix)? },
        1 => Selection::One(Box::new(nodes.remove(0))),
        total => {
            nodes.sort_by_key(is_demoted);
            nodes.truncate(MAX_CHOICES);
            Selection::Several { choices: nodes, total }
        }
    })
}

fn place(node: &NodeRow) -> (&str, u32, u32) {
    (&node.path, node.start_byte, node.name_line)
}

fn by_id(generation: &Generation, text: &str) -> Result<Vec<NodeRow>, StoreError> {
    match SymbolId::parse(text) {
        Some(symbol) => Ok(generation.node_by_symbol(&symbol)?.into_iter().collect()),
        None => Ok(Vec::new()),
    }
}

fn by_id_start(generation: &Generation, text: &str) -> Result<Vec<NodeRow>, StoreError> {
    let is_start = (8..64).contains(&text.len()) && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if is_start { generation.nodes_with_symbol_prefix(text, MAX_CHOICES + 1) } else { Ok(Vec::new()) }
}

/// Finds the innermost definition at `path:line`.
fn by_place(generation: &Generation, text: &str) -> Result<Vec<NodeRow>, StoreError> {
    let Some((path, line)) = text.rsplit_once(':') else { return Ok(Vec::new()) };
    let (Ok(path), Ok(line)) = (RepoPath::parse(path.trim_end_matches(':')), line.parse::<u32>()) else { return Ok(Vec::new()) };
    let nodes = generation.nodes_in_file(path.as_str())?;
    let holds = |node: &NodeRow| node.kind != SymbolKind::File && (node.start_line..=node.end_line).contains(&line);
    let inner = nodes.iter().rev().filter(|node| holds(node)).min_by_key(|node| node.end_byte - node.start_byte);
    let file = || nodes.iter().find(|node| node.kind == SymbolKind::File && (1..=node.end_line).contains(&line));
    Ok(inner.or_else(file).cloned().into_iter().collect())
}

/// Finds `path::name` and `path`.
fn in_file(generation: &Generation, text: &str) -> Result<Vec<NodeRow>, StoreError> {
    let (path, name) = text.split_once("::").map_or((text, None), |(path, name)| (path, Some(name)));
    let Ok(path) = RepoPath::parse(path) else { return Ok(Vec::new()) };
    let mut nodes = generation.nodes_in_file(path.as_str())?;
    match name {
        None => nodes.retain(|node| node.kind == SymbolKind::File),
        Some(name) => {
            let name = dotted(name);
            nodes.retain(|node| node.kind != SymbolKind::File);
            let fits = |node: &NodeRow| fit(node, &name).filter(|fit| *fit != Fit::Whole);
            let best = nodes.iter().filter_map(fits).min();
            nodes.retain(|node| fits(node).is_some() && fits(node) == best);
        }
    }
    Ok(nodes)
}

fn dotted(name: &str) -> String {
    name.replace("::", ".")
}

/// Finds the nodes that a qualified name, a suffix of one or the name of a module may mean, in no particular order.
///
/// # Errors
/// [`StoreError`] when the generation cannot be read.
pub fn by_name(generation: &Generation, text: &str, prefix: &PathPrefix) -> Result<Vec<(Fit, NodeRow)>, StoreError> {
    let text = dotted(text);
    let last = text.rsplit('.').next().unwrap_or(&text);
    let mut found = Vec::new();
    if last.is_empty() || text.chars().any(char::is_whitespace) {
        return Ok(found);
    }
    for node in generation.nodes_named(last, prefix, MAX_NAMED)? {
        if let Some(fit) = fit(&node, &text) {
            found.push((fit, node));
        }
    }
    for file in generation.files_of_module(&text)? {
        if let Some(id) = file.node.filter(|_| prefix.matches(&file.path)) {
            found.push((Fit::Whole, generation.node(id)?));
        }
    }
    let mut seen = BTreeSet::new();
    found.retain(|(_, node)| seen.insert(node.id));
    Ok(found)
}

/// Returns how a node's names fit a dotted name.
pub fn fit(node: &NodeRow, text: &str) -> Option<Fit> {
    let lexical: &str = &node.qualified_name;
    if node.kind == SymbolKind::File {
        return (lexical == text).then_some(Fit::Whole);
    }
    let whole = qualified(node);
    let at_boundary = |name: &str| name.strip_suffix(text).is_some_and(|rest| rest.ends_with('.'));
    if whole == text && whole != lexical {
        Some(Fit::Whole)
    } else if lexical == text {
        Some(Fit::Lexical)
    } else {
        at_boundary(&whole).then_some(Fit::Suffix)
    }
}

/// Returns a node's name with its module's: `app.util.greet`; a file's module or path.
pub fn qualified(node: &NodeRow) -> String {
    match (&node.module, node.kind) {
        (Some(module), SymbolKind::File) => module.to_string(),
        (Some(module), _) if !module.is_empty() => format!("{module}.{}", node.qualified_name),
        _ => node.qualified_name.to_string(),
    }
}

/// Returns the nodes whose names are nearest to a text, nearest first, at most [`MAX_NEAR`].
///
/// # Errors
/// [`StoreError`] when the generation cannot be read.
pub fn near(generation: &Generation, text: &str, prefix: &PathPrefix) -> Result<Vec<NodeRow>, StoreError> {
    /// Most nodes looked at for one beginning.
    const LOOK: usize = 200;
    /// Distance from which on a name only shares words with the text.
    const SHARED: usize = 100;
    let text = dotted(text);
    let mut candidates: Vec<(usize, NodeRow)> = Vec::new();
    let tokens: Vec<&str> = words::identifiers(&text);
    let tokens: Vec<&str> = if tokens.is_empty() { text.split_whitespace().take(8).collect() } else { tokens };
    for token in tokens {
        let last = token.rsplit(['.', '/', ':']).next().unwrap_or(token);
        let length = last.chars().count();
        // One slip in a short name, three in a long one.
        let most = (length / 3).clamp(1, 3);
        let mut pool = generation.nodes_named_folded(last, prefix, LOOK)?;
        // From the longest common beginning to shorter ones, as long as each is looked at whole.
        for size in (1..length).rev() {
            let start: String = last.chars().take(size).collect();
            let found = generation.nodes_with_name_prefix(&start, prefix, LOOK)?;
            let is_whole = found.len() < LOOK;
            pool.extend(found);
            if !is_whole {
                break;
            }
        }
        for node in pool {
            if let Some(distance) = words::distance(&node.name, last, most) {
                // Of names as near as each other, the one with the same capitals is meant.
                let capitals =
                    node.name.chars().zip(last.chars()).filter(|(name, asked)| name.is_uppercase() != asked.is_uppercase());
                candidates.push((distance * 4 + capitals.count().min(3), node));
            }
        }
        let parts = words::parts(last);
        let forms: Vec<String> = parts.iter().flat_map(|part| words::forms(part)).collect();
        for hit in if forms.is_empty() { Vec::new() } else { generation.search(&forms, true, prefix, 50)? } {
            let name = words::parts(&hit.node.name);
            let missing = parts.iter().filter(|part| !name.iter().any(|name| words::is_same_word(name, part))).count();
            if missing < parts.len() {
                candidates.push((SHARED + missing * 2 + name.len().abs_diff(parts.len()), hit.node));
            }
        }
    }
    let key = |(distance, node): &(usize, NodeRow)| (is_demoted(node), *distance, node.path.clone(), node.start_byte);
    candidates.sort_by_cached_key(key);
    // Where slips of the finger lead to a name, names that only share a word with it are noise.
    if candidates.iter().any(|(distance, _)| *distance < SHARED) {
        candidates.retain(|(distance, _)| *distance < SHARED);
    }
    // One of each name: the same name five times would hide the others.
    let mut seen = BTreeSet::new();
    candidates.retain(|(_, node)| node.kind != SymbolKind::File && seen.insert(node.name.clone()));
    Ok(candidates.into_iter().take(MAX_NEAR).map(|(_, node)| node).collect())
}

/// Returns whether a node belongs to tests: by its language's names of files, or by a folder or module of that name.
pub fn is_of_tests(node: &NodeRow) -> bool {
    node.test || node.path.split('/').any(|part| part == "tests" || part.starts_with("tests."))
}

/// Returns whether a node is ranked last.
pub fn is_demoted(node: &NodeRow) -> bool {
    is_of_tests(node) || node.generated || node.minified || node.deprioritized
}
