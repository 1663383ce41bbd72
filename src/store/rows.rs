//! The rows of one file: what a bulk load inserts and a delta compares.
//!
//! Must not know SQL. Invariant: rows are a function of the file, its ids and those of its targets, sorted by their keys, each key once.

use crate::model::graph::symbol_id;
use crate::model::{EdgeKind, ParseStatus, RepoPath, Resolution, SymbolKind, Target};
use crate::workspace::EntryState;

use super::content::ContentFile;
use super::error::{Result, StoreError};
use super::layout::{FileNodes, by_place};
use super::words::append_words;

pub(super) const FLAG_TEST: i64 = 1;
pub(super) const FLAG_GENERATED: i64 = 2;
pub(super) const FLAG_MINIFIED: i64 = 4;
pub(super) const FLAG_DEPRIORITIZED: i64 = 8;

/// In place of a name's id: the reference is written as its target is named. True of nearly all edges, and takes no space.
pub(super) const TARGETS_NAME: i64 = 0;

/// Source, line (from that of the source), column, kind, target, resolution, rule, name. The first five are the key.
pub(super) type EdgeValues = [i64; 8];
/// Source, line (from that of the source), column, kind, reason, name, candidates. The first five are the key.
pub(super) type DiagnosticValues = [i64; 7];

/// The values of one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NodeValues<T> {
    pub id: i64,
    pub symbol: i64,
    pub kind: i64,
    pub name: T,
    /// `None` where it is the name.
    pub qualified: Option<T>,
    pub ordinal: i64,
    pub parent: Option<i64>,
    pub start_line: i64,
    pub end_line: i64,
    pub name_line: i64,
    pub start_byte: i64,
    pub end_byte: i64,
    pub signature: Option<T>,
    pub docstring: Option<T>,
}

impl<T: AsRef<str>> NodeValues<T> {
    /// Returns the same values, borrowed.
    pub fn borrow(&self) -> NodeValues<&str> {
        NodeValues {
            id: self.id,
            symbol: self.symbol,
            kind: self.kind,
            name: self.name.as_ref(),
            qualified: self.qualified.as_ref().map(T::as_ref),
            ordinal: self.ordinal,
            parent: self.parent,
            start_line: self.start_line,
            end_line: self.end_line,
            name_line: self.name_line,
            start_byte: self.start_byte,
            end_byte: self.end_byte,
            signature: self.signature.as_ref().map(T::as_ref),
            docstring: self.docstring.as_ref().map(T::as_ref),
        }
    }
}

impl NodeValues<&str> {
    /// Returns whether both differ at most in where they stand.
    pub fn says_the_same(&self, other: &Self) -> bool {
        let what =
            |node: &Self| (node.kind, node.name, node.qualified, node.ordinal, node.parent, node.signature, node.docstring);
        what(self) == what(other)
    }

    /// Returns whether the search index holds the same of both, in one file.
    pub fn is_found_alike(&self, other: &Self) -> bool {
        let words = |node: &Self| (node.name, node.qualified, node.signature, node.docstring);
        words(self) == words(other)
    }
}

/// Gives names and rules their numbers.
pub(super) trait Names {
    fn id(&mut self, text: &str) -> Result<i64>;
}

/// Finds the node that an edge leads to; `None` when there is none.
pub(super) trait Targets {
    fn node(&mut self, target: &Target) -> Result<Option<i64>>;
}

/// How many references came to what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub resolved: u64,
    pub candidate: u64,
    pub unresolved: u64,
}

pub(super) fn inconsistent(what: String) -> StoreError {
    StoreError::Inconsistent { what }
}

/// Returns the leading bytes of a symbol id as an integer that sorts as they do.
pub(super) fn symbol_key(leading: [u8; 8]) -> i64 {
    (u64::from_be_bytes(leading) ^ (1 << 63)).cast_signed()
}

fn symbol(path: &RepoPath, kind: SymbolKind, qualified: &str, start: u32) -> i64 {
    let symbol = symbol_id(path, kind, qualified, start);
    let mut leading = [0; 8];
    leading.copy_from_slice(&symbol.0[..8]);
    symbol_key(leading)
}

/// Returns what the parse of an included file came to.
pub(super) fn status_of(file: &ContentFile) -> ParseStatus {
    file.facts.as_deref().map_or(ParseStatus::Failed, |facts| facts.parse)
}

/// Returns the flags of a file.
pub(super) fn flags_of(file: &ContentFile) -> i64 {
    let flag = |set: bool, flag: i64| if set { flag } else { 0 };
    let facts = file.facts.as_deref();
    flag(file.test, FLAG_TEST)
        | flag(facts.is_some_and(|facts| facts.generated), FLAG_GENERATED)
        | flag(facts.is_some_and(|facts| facts.minified), FLAG_MINIFIED)
        | flag(file.deprioritized, FLAG_DEPRIORITIZED)
}

/// Returns the nodes of an included file, by id: the file's own, then its definitions.
pub(super) fn nodes<'a>(file: &'a ContentFile, ids: &FileNodes<'_>) -> Result<Vec<NodeValues<&'a str>>> {
    let EntryState::Included { size, .. } = file.entry.state else { return Ok(Vec::new()) };
    let path = &file.entry.path;
    let facts = file.facts.as_deref();
    let lines = facts.map_or(0, |facts| facts.lines);
    let definitions = facts.map_or(&[][..], |facts| &facts.definitions);
    let mut nodes = Vec::with_capacity(1 + definitions.len());
    nodes.push(NodeValues {
        id: ids.node,
        symbol: symbol(path, SymbolKind::File, path.as_str(), 0),
        kind: SymbolKind::File as i64,
        name: path.file_name(),
        qualified: Some(path.as_str()),
        ordinal: 0,
        parent: None,
        start_line: 1.min(lines).into(),
        end_line: lines.into(),
        name_line: 0,
        start_byte: 0,
        end_byte: size.cast_signed(),
        signature: None,
        docstring: None,
    });
    for index in by_place(definitions) {
        let definition = &definitions[index];
        let parent = match definition.parent {
            Some(parent) => *ids
                .definitions
                .get(parent as usize)
                .ok_or_else(|| inconsistent(format!("a definition of {path} lies in none")))?,
            None => ids.node,
        };
        let qualified = &definition.key.qualified;
        nodes.push(NodeValues {
            id: ids.definitions[index],
            symbol: symbol(path, definition.kind, qualified, definition.span.start),
            kind: definition.kind as i64,
            name: &definition.name,
            qualified: (*qualified != definition.name).then_some(qualified.as_ref()),
            ordinal: definition.key.ordinal.into(),
            parent: Some(parent),
            start_line: definition.start_line.into(),
            end_line: definition.end_line.into(),
            name_line: definition.name_place.line.into(),
            start_byte: definition.span.start.into(),
            end_byte: definition.span.end.into(),
            signature: definition.signature.as_deref(),
            docstring: definition.docstring.as_deref(),
        });
    }
    Ok(nodes)
}

/// The node of a source and its first line.
fn source_node(file: &ContentFile, ids: &FileNodes<'_>, source: Option<u32>) -> Result<(i64, i64)> {
    let facts = file.facts.as_deref();
    let Some(index) = source else { return Ok((ids.node, 1.min(facts.map_or(0, |facts| facts.lines)).into())) };
    let definition = facts.and_then(|facts| facts.definitions.get(index as usize));
    match (ids.definitions.get(index as usize), definition) {
        (Some(id), Some(definition)) => Ok((*id, definition.start_line.into())),
        _ => Err(inconsistent(format!("a reference in {} has no source", file.entry.path))),
    }
}

/// Returns the edges that leave the nodes of an included file.
pub(super) fn edges(
    file: &ContentFile,
    ids: &FileNodes<'_>,
    names: &mut impl Names,
    targets: &mut impl Targets,
) -> Result<Vec<EdgeValues>> {
    let definitions = file.facts.as_deref().map_or(&[][..], |facts| &facts.definitions);
    let references = file.edges.as_deref().map_or(&[][..], |edges| &edges.edges);
    let mut rows: Vec<EdgeValues> = Vec::with_capacity(definitions.len() + references.len());
    if !definitions.is_empty() {
        let contains = names.id("syntax_contains")?;
        for (definition, &target) in definitions.iter().zip(&ids.definitions) {
            let (source, line) = source_node(file, ids, definition.parent)?;
            rows.push([
                source,
                i64::from(definition.name_place.line) - line,
                definition.name_place.column.into(),
                EdgeKind::Contains as i64,
                target,
                Resolution::ResolvedStatic as i64,
                contains,
                TARGETS_NAME,
            ]);
        }
    }
    for edge in references {
        let of_target = edge.target.definition.as_ref().and_then(|key| key.qualified.rsplit('.').next());
        let name = if of_target == Some(edge.name.as_ref()) { TARGETS_NAME } else { names.id(&edge.name)? };
        let (source, line) = source_node(file, ids, edge.source)?;
        let target = targets.node(&edge.target)?.ok_or_else(|| {
            let name = edge.target.definition.as_ref().map_or("", |definition| &definition.qualified);
            inconsistent(format!("an edge of {} leads to {name} in {}, which is not there", file.entry.path, edge.target.file))
        })?;
        rows.push([
            source,
            i64::from(edge.place.line) - line,
            edge.place.column.into(),
            edge.kind as i64,
            target,
            edge.resolution as i64,
            names.id(edge.rule)?,
            name,
        ]);
    }
    rows.sort_unstable();
    rows.dedup_by(|later, first| later[..5] == first[..5]);
    Ok(rows)
}

/// Returns the diagnostics of an included file.
pub(super) fn diagnostics(file: &ContentFile, ids: &FileNodes<'_>, names: &mut impl Names) -> Result<Vec<DiagnosticValues>> {
    let diagnostics = file.edges.as_deref().map_or(&[][..], |edges| &edges.diagnostics);
    let mut rows: Vec<DiagnosticValues> = Vec::with_capacity(diagnostics.len());
    for diagnostic in diagnostics {
        let (source, line) = source_node(file, ids, diagnostic.source)?;
        rows.push([
            source,
            i64::from(diagnostic.place.line) - line,
            diagnostic.place.column.into(),
            diagnostic.kind as i64,
            diagnostic.reason as i64,
            names.id(&diagnostic.name)?,
            diagnostic.candidates.into(),
        ]);
    }
    rows.sort_unstable();
    rows.dedup_by(|later, first| later[..5] == first[..5]);
    Ok(rows)
}

impl Tally {
    /// Counts the references of one file by its rows; `mention` gets the name of each that has no resolved edge.
    pub fn of(edges: &[EdgeValues], diagnostics: &[DiagnosticValues], mut mention: impl FnMut(i64)) -> Self {
        let mut tally = Self::default();
        // A reference is a kind at a place.
        for of_place in edges.chunk_by(|one, other| one[..4] == other[..4]) {
            let resolved = of_place.iter().any(|edge| edge[5] == Resolution::ResolvedStatic as i64);
            tally.resolved += u64::from(resolved && of_place[0][3] != EdgeKind::Contains as i64);
        }
        // One that has several reasons is one reference.
        for of_place in diagnostics.chunk_by(|one, other| one[..4] == other[..4]) {
            mention(of_place[0][5]);
            let has_candidates = of_place[0][6] > 0;
            *(if has_candidates { &mut tally.candidate } else { &mut tally.unresolved }) += 1;
        }
        tally
    }
}

/// What the search index holds of a node: name, place, signature, docstring, headings.
pub(super) type Document = [String; 5];

/// Puts the words of a file's own node into an empty document.
pub(super) fn file_document<'t>(
    path: &RepoPath,
    headings: impl Iterator<Item = &'t str>,
    words: Option<&str>,
    [name, place, _, docstring, of_headings]: &mut Document,
) {
    append_words(path.file_name(), name);
    append_words(path.as_str(), place);
    headings.for_each(|heading| append_words(heading, of_headings));
    append_words(words.unwrap_or_default(), docstring);
}

/// Puts the words of a definition's node into an empty document.
pub(super) fn definition_document(path: &RepoPath, node: &NodeValues<&str>, document: &mut Document) {
    let [name, place, signature, docstring, _] = document;
    append_words(node.name, name);
    append_words(node.qualified.unwrap_or(node.name).strip_suffix(node.name).unwrap_or_default(), place);
    append_words(path.stem_and_suffix().0, place);
    append_words(node.signature.unwrap_or_default(), signature);
    append_words(node.docstring.unwrap_or_default(), docstring);
}
