//! A neighbourhood as a graph: DOT, Mermaid, SVG, or JSON. Resolved edges are solid, candidates dashed.
//!
//! Must not know generations. Invariant: whatever a name or path holds, it is text in the graph and nothing of its language.

mod svg;

use std::fmt::Write as _;

use serde::Serialize;

use crate::model::{EdgeKind, Resolution, SymbolKind};
use crate::query::neighbourhood::{Link, Neighbourhood};
use crate::query::select;
use crate::store::NodeRow;

use super::text::clean;

pub use svg::svg;

/// Longest name or path that is shown; of what is longer, the end is, which tells more.
const MOST_LETTERS: usize = 60;

/// Draws a graph in the language of Graphviz.
pub fn dot(found: &Neighbourhood) -> String {
    let mut text = String::from(
        "digraph sextant {\n  rankdir=LR;\n  node [shape=box, fontname=\"sans-serif\", fontsize=11];\n  \
         edge [fontname=\"sans-serif\", fontsize=9];\n",
    );
    for (number, node) in found.nodes.iter().enumerate() {
        let [name, place] = label(node);
        let style = if number == 0 { ", style=bold" } else { "" };
        push(&mut text, format_args!("  n{number} [label=\"{}\\n{}\"{style}];\n", quoted(&name), quoted(&place)));
    }
    for link in &found.links {
        let style = if is_sure(link) { "solid" } else { "dashed" };
        let caption = quoted(&caption(link));
        let named = if caption.is_empty() { String::new() } else { format!(", label=\"{caption}\"") };
        push(&mut text, format_args!("  n{} -> n{} [style={style}{named}];\n", link.source, link.target));
    }
    text.push_str("}\n");
    text
}

/// Draws a graph in the language of Mermaid.
pub fn mermaid(found: &Neighbourhood) -> String {
    let mut text = String::from("flowchart LR\n");
    for (number, node) in found.nodes.iter().enumerate() {
        let [name, place] = label(node);
        push(&mut text, format_args!("  n{number}[\"{}<br/>{}\"]\n", encoded(&name), encoded(&place)));
    }
    for link in &found.links {
        let arrow = if is_sure(link) { "-->" } else { "-.->" };
        let caption = encoded(&caption(link));
        let named = if caption.is_empty() { String::new() } else { format!("|\"{caption}\"|") };
        push(&mut text, format_args!("  n{} {arrow}{named} n{}\n", link.source, link.target));
    }
    text.push_str("  style n0 stroke-width:3px\n");
    text
}

/// What `--json` prints.
#[derive(Serialize)]
pub struct Graph<'g> {
    pub schema: &'static str,
    pub scope_id: &'g str,
    pub fingerprint: &'g str,
    pub checked_at: &'g str,
    /// The first one is what was asked about.
    nodes: Vec<GraphNode<'g>>,
    edges: Vec<GraphEdge<'g>>,
    /// Whether there is more within the depth.
    truncated: bool,
    /// Edges to nodes outside the path prefix.
    path_boundary_edges: u64,
}

#[derive(Serialize)]
struct GraphNode<'g> {
    id: String,
    kind: SymbolKind,
    qualified_name: &'g str,
    path: &'g str,
    line: u32,
}

#[derive(Serialize)]
struct GraphEdge<'g> {
    source_id: String,
    target_id: String,
    kind: EdgeKind,
    resolution: Resolution,
    rule_id: &'g str,
    /// Of the first of them.
    path: &'g str,
    line: u32,
    /// How many there are of this kind and resolution.
    count: u64,
}

impl<'g> Graph<'g> {
    /// Returns a neighbourhood in the generation that has this fingerprint, checked at that time.
    pub fn new(found: &'g Neighbourhood, scope_id: &'g str, fingerprint: &'g str, checked_at: &'g str) -> Self {
        let nodes = found.nodes.iter().map(|node| GraphNode {
            id: node.symbol.hex(),
            kind: node.kind,
            qualified_name: &node.qualified_name,
            path: &node.path,
            line: line(node),
        });
        let edges = found.links.iter().map(|link| GraphEdge {
            source_id: found.nodes[link.source].symbol.hex(),
            target_id: found.nodes[link.target].symbol.hex(),
            kind: link.kind,
            resolution: link.resolution,
            rule_id: &link.rule,
            path: &link.path,
            line: link.line,
            count: link.count,
        });
        Self {
            schema: "sextant.graph.v1",
            scope_id,
            fingerprint,
            checked_at,
            nodes: nodes.collect(),
            edges: edges.collect(),
            truncated: found.is_cut,
            path_boundary_edges: found.boundary_edges,
        }
    }
}

fn push(text: &mut String, piece: std::fmt::Arguments<'_>) {
    text.write_fmt(piece).expect("writing to a string");
}

fn is_sure(link: &Link) -> bool {
    link.resolution == Resolution::ResolvedStatic
}

fn line(node: &NodeRow) -> u32 {
    if node.name_line > 0 { node.name_line } else { node.start_line.max(1) }
}

/// Returns name and place of a node.
fn label(node: &NodeRow) -> [String; 2] {
    if node.kind == SymbolKind::File {
        let name = node.path.rsplit('/').next().unwrap_or_default();
        return [shown(name), shown(&node.path)];
    }
    [shown(&select::qualified(node)), shown(&format!("{}:{}", node.path, line(node)))]
}

/// Returns what is written at an edge: its kind, where that is no call, and how many there are.
fn caption(link: &Link) -> String {
    let kind = if link.kind == EdgeKind::Calls { "" } else { link.kind.as_str() };
    match (link.count, kind) {
        (1, kind) => kind.to_owned(),
        (count, "") => format!("×{count}"),
        (count, kind) => format!("{kind} ×{count}"),
    }
}

fn shown(text: &str) -> String {
    let text = clean(text);
    let letters = text.chars().count();
    if letters <= MOST_LETTERS {
        return text;
    }
    std::iter::once('…').chain(text.chars().skip(letters - MOST_LETTERS + 1)).collect()
}

/// Returns a text for within the quotes of DOT.
fn quoted(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"")
}

/// Returns a text for within the quotes of Mermaid: what could mean anything stands as its number.
fn encoded(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_alphanumeric() || matches!(character, ' ' | '_' | '.' | '/' | ':' | '-' | '…' | '×' | '(' | ')' | ',')
        {
            safe.push(character);
        } else {
            push(&mut safe, format_args!("#{};", u32::from(character)));
        }
    }
    safe
}

#[cfg(test)]
mod tests;
