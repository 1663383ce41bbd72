//! `diagnostics`: what references came to, and why not to an edge. Must not resolve. Invariant: by path, line and column; without a name
//! exactly the references that have no certain edge.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::sync::Arc;

use crate::model::{EdgeKind, PathPrefix, SymbolId, SymbolKind};
use crate::query::explain::{self, Around, Import, Reference, Scope};
use crate::query::request::References;
use crate::query::response::{ITEM_LIMIT, Item, Near, ReferenceReport, ReferenceTarget, reference_key_at};
use crate::query::source::SourceFile;
use crate::query::{QueryError, Result, select, words};
use crate::store::{Generation, NodeId, NodeRow};

use super::Context;

/// Most targets of one reference that are listed.
const MAX_TARGETS: usize = 8;
/// Most lines that are listed on which a name is written.
const MAX_LINES: usize = 20;
/// Most names that are listed as near.
const MAX_NEAR: usize = 5;
const USES: [EdgeKind; 4] = [EdgeKind::Imports, EdgeKind::Calls, EdgeKind::Inherits, EdgeKind::References];

/// Lists the references that have no certain edge, or all of one name.
pub fn run(context: &mut Context<'_>, asked: &References) -> Result<()> {
    let generation = context.generation;
    if !generation.holds(&asked.path)? {
        return Err(QueryError::TargetMissing { what: "such file or folder" });
    }
    let caller = match &asked.symbol_id {
        None => None,
        Some(id) => {
            let missing = || QueryError::TargetMissing { what: "such symbol" };
            let node = SymbolId::parse(id).map(|symbol| generation.node_by_symbol(&symbol)).transpose()?.flatten();
            Some(node.filter(|node| asked.path.matches(&node.path)).ok_or_else(missing)?)
        }
    };
    let name = asked.name.as_deref().map(last_part);
    let mut files = Files { nodes: BTreeMap::new(), imports: BTreeMap::new() };
    let (found, total) = match (&caller, name) {
        (None, None) => open_below(generation, asked)?,
        (caller, name) => {
            let prefix = match caller {
                Some(caller) => PathPrefix::parse(&caller.path).map_err(|_| QueryError::TargetMissing { what: "such symbol" })?,
                None => asked.path.clone(),
            };
            let found = named(context, &mut files, &prefix, caller.as_ref(), name)?;
            let total = found.len() as u64;
            (found, total)
        }
    };
    let mut items = Vec::new();
    for reference in found.iter().take(asked.limit) {
        items.push(report(context, &mut files, reference)?);
    }
    if found.is_empty()
        && let (Some(caller), Some(name)) = (&caller, name)
    {
        absent(context, caller, name)?;
    }
    context.response.subject = caller.map(|caller| Box::new(context.item(&caller)));
    context.response.asked = name.map(Arc::from);
    context.response.total = total;
    if total > items.len() as u64 {
        context.response.cut(ITEM_LIMIT);
    }
    context.response.items = items;
    Ok(())
}

/// Returns the last part of a name as people write it: `b` of `a.b`, `a::b` and `b()`.
fn last_part(name: &str) -> &str {
    let name = name.trim().trim_end_matches("()");
    name.rsplit(['.', ':', '#', '/']).next().filter(|last| !last.is_empty()).unwrap_or(name)
}

/// What is read of files for several references.
struct Files {
    nodes: BTreeMap<NodeId, NodeRow>,
    imports: BTreeMap<Arc<str>, Arc<[Import]>>,
}

impl Files {
    fn node(&mut self, generation: &Generation, id: NodeId) -> Result<&NodeRow> {
        Ok(match self.nodes.entry(id) {
            std::collections::btree_map::Entry::Occupied(known) => known.into_mut(),
            std::collections::btree_map::Entry::Vacant(new) => new.insert(generation.node(id)?),
        })
    }

    /// Returns what a file imports; `references` are all that the file has, where they were read anyway.
    fn imports(&mut self, generation: &Generation, path: &Arc<str>, references: Option<&[Reference]>) -> Result<Arc<[Import]>> {
        if let Some(known) = self.imports.get(path) {
            return Ok(Arc::clone(known));
        }
        let mut read = Vec::new();
        let references = match references {
            Some(references) => references,
            None => {
                if let Ok(prefix) = PathPrefix::parse(path) {
                    generation.references_below(&prefix, &mut |rows| {
                        read.extend(explain::references(&rows));
                        Ok(true)
                    })?;
                }
                &read
            }
        };
        let file_of = |target| {
            let node = self.node(generation, target)?;
            Ok::<_, QueryError>((node.kind == SymbolKind::File).then(|| Arc::clone(&node.path)))
        };
        let imports: Arc<[Import]> = explain::imports(references, file_of)?.into();
        self.imports.insert(Arc::clone(path), Arc::clone(&imports));
        Ok(imports)
    }
}

/// Returns the first references below a path that have no certain edge, and how many there are.
fn open_below(generation: &Generation, asked: &References) -> Result<(Vec<Reference>, u64)> {
    let (diagnostics, total) = generation.diagnostics_below(&asked.path, asked.limit)?;
    let mut found: Vec<Reference> = Vec::with_capacity(diagnostics.len());
    for diagnostic in &diagnostics {
        let mut reference = Reference::of(diagnostic);
        if diagnostic.candidates > 0 {
            for edge in generation.edges_from(diagnostic.source, &USES)? {
                if reference.is_of(&edge) {
                    reference.edges.push((edge, Arc::from("")));
                }
            }
        }
        found.push(reference);
    }
    Ok((found, total))
}

/// Returns the references in a caller, or below a path, that are of a name or, without one, have no certain edge.
fn named(
    context: &mut Context<'_>,
    files: &mut Files,
    prefix: &PathPrefix,
    caller: Option<&NodeRow>,
    name: Option<&str>,
) -> Result<Vec<Reference>> {
    let generation = context.generation;
    let mut all: Vec<Vec<Reference>> = Vec::new();
    let is_named = |reference: &Reference, name: &str| {
        *reference.name == *name || reference.edges.iter().any(|(_, target)| **target == *name)
    };
    generation.references_below(prefix, &mut |rows| {
        let references = explain::references(&rows);
        // An alias stands only where an import writes the name out: a file without the name is not read at all.
        if name.is_none_or(|name| references.iter().any(|reference| is_named(reference, name))) {
            all.push(references);
        }
        Ok(true)
    })?;
    let mut found = Vec::new();
    for references in all {
        let Some(path) = references.first().map(|reference| Arc::clone(&reference.path)) else { continue };
        let source = context.sources.get(&path)?;
        let mut names: BTreeSet<Arc<str>> = name.into_iter().map(Arc::from).collect();
        if let (Some(name), Some(source)) = (name, &source) {
            let imports = files.imports(generation, &path, Some(&references))?;
            names.extend(explain::aliases(&imports, name, source));
        }
        let inside = match caller.filter(|caller| caller.kind != SymbolKind::File) {
            None => None,
            Some(caller) => {
                let nodes = generation.nodes_in_file(&path)?;
                let of = |node: &&NodeRow| caller.start_byte <= node.start_byte && node.end_byte <= caller.end_byte;
                let below = nodes.iter().filter(|node| node.kind != SymbolKind::File).filter(of).map(|node| node.id);
                Some((caller, below.collect::<BTreeSet<NodeId>>()))
            }
        };
        let is_inside = |reference: &Reference| match &inside {
            None => true,
            // What stands in the head of a definition belongs to the scope around it, but to the definition for who asks.
            Some((caller, below)) => {
                let at = || source.as_ref().and_then(|source| source.offset(reference.line, reference.column));
                below.contains(&reference.source) || at().is_some_and(|at| (caller.start_byte..caller.end_byte).contains(&at))
            }
        };
        let is_meant = |reference: &Reference| match name {
            None => reference.is_open(),
            Some(name) => names.contains(&reference.name) || is_named(reference, name),
        };
        found.extend(references.into_iter().filter(|reference| is_meant(reference) && is_inside(reference)));
    }
    Ok(found)
}

/// Returns the functions around a reference, the innermost first, and the lines of the class around it.
fn scopes(generation: &Generation, files: &mut Files, source: NodeId) -> Result<(Vec<Scope>, RangeInclusive<u32>)> {
    let mut found = Vec::new();
    let mut class = None;
    let mut next = Some(source);
    while let Some(id) = next {
        let node = files.node(generation, id)?;
        next = node.parent;
        match node.kind {
            SymbolKind::Function | SymbolKind::Method => {
                found.push(Scope { line: node.name_line.max(node.start_line), signature: node.signature.clone() });
            }
            SymbolKind::Class | SymbolKind::Struct | SymbolKind::Enum | SymbolKind::Interface | SymbolKind::Trait => {
                class = class.or(Some(node.start_line..=node.end_line));
            }
            _ => {}
        }
    }
    Ok((found, class.unwrap_or(1..=u32::MAX)))
}

/// Makes the item of a reference.
fn report(context: &mut Context<'_>, files: &mut Files, reference: &Reference) -> Result<Item> {
    let generation = context.generation;
    let mut targets = Vec::new();
    for (edge, _) in &reference.edges {
        let node = files.node(generation, edge.target)?;
        let is_file = node.kind == SymbolKind::File;
        targets.push(ReferenceTarget {
            id: node.symbol.hex(),
            kind: node.kind,
            qualified_name: select::qualified(node),
            path: Arc::clone(&node.path),
            line: if is_file { 0 } else { node.name_line.max(1) },
            resolution: edge.resolution,
            rule_id: Arc::clone(&edge.rule),
        });
    }
    let imports = files.imports(generation, &reference.path, None)?;
    let file: Option<Arc<SourceFile>> = context.sources.get(&reference.path)?;
    let source = files.node(generation, reference.source)?;
    let is_file = source.kind == SymbolKind::File;
    let (symbol, name) = (source.symbol.hex(), if is_file { source.path.to_string() } else { select::qualified(source) });
    let (scopes, class) = scopes(generation, files, reference.source)?;
    let around = Around { imports: &imports, file: file.as_deref(), scopes: &scopes, class: &class };
    let explanation = explain::sentence(reference, &targets, around);
    let more = targets.len().checked_sub(MAX_TARGETS).filter(|more| *more > 0);
    targets.truncate(MAX_TARGETS);
    let report = ReferenceReport {
        path: Arc::clone(&reference.path),
        line: reference.line,
        col_byte: reference.column,
        name: Arc::clone(&reference.name),
        kind: reference.kind,
        reason: if reference.is_open() { reference.reason } else { None },
        candidates: reference.candidates,
        resolution: reference.resolution(),
        reference_key: reference_key_at(&reference.path, reference.line, reference.column, &reference.name),
        source_id: symbol,
        source: name,
        targets,
        more_targets: more,
        explanation,
    };
    let mut item =
        Item { path: Arc::clone(&reference.path), start_line: reference.line, end_line: reference.line, ..Item::default() };
    item.reference = Some(Box::new(report));
    Ok(item)
}

/// Says what there is of a name that the caller has no reference of: the lines on which it is written, and names near to it.
fn absent(context: &mut Context<'_>, caller: &NodeRow, name: &str) -> Result<()> {
    let Some(file) = context.sources.get(&caller.path)? else { return Ok(()) };
    let last = if caller.kind == SymbolKind::File { file.line_count() } else { caller.end_line };
    let is_written = |line: &u32| file.line(*line).is_some_and(|text| explain::site::stands_in(text, name));
    let lines: Vec<u32> = (caller.start_line.max(1)..=last).filter(is_written).take(MAX_LINES).collect();
    let mut near: Vec<(usize, Near)> = Vec::new();
    if lines.is_empty() {
        let most = (name.chars().count() / 3).clamp(1, 3);
        let prefix = PathPrefix::parse(&caller.path).map_err(|_| QueryError::TargetMissing { what: "such symbol" })?;
        context.generation.references_below(&prefix, &mut |rows| {
            for reference in explain::references(&rows) {
                let known = near.iter().any(|(_, near)| near.qualified_name == *reference.name);
                if !known
                    && (caller.start_line.max(1)..=last).contains(&reference.line)
                    && let Some(distance) = words::distance(&reference.name, name, most)
                {
                    let (path, line) = (reference.path.to_string(), reference.line);
                    near.push((distance, Near { qualified_name: reference.name.to_string(), path, line }));
                }
            }
            Ok(true)
        })?;
        near.sort_by_key(|(distance, near)| (*distance, near.line));
    }
    let coverage = &mut context.response.coverage;
    coverage.written_on_lines = Some(lines);
    coverage.near = (!near.is_empty()).then(|| near.into_iter().take(MAX_NEAR).map(|(_, near)| near).collect());
    Ok(())
}
