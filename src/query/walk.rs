//! One hop along edges: who points here, what this points to, one neighbour each with all its places.
//!
//! Must not know the wire. Invariant: a neighbour outside the path prefix is counted and never returned; neighbours come resolved before
//! candidate, then by path and line.

use std::collections::BTreeMap;

use crate::model::{EdgeKind, PathPrefix, Resolution};
use crate::store::{EdgeRow, Generation, NodeId, NodeRow, StoreError};

/// Most edges of one symbol that are followed (contract §4).
pub const MAX_EDGES: usize = 1000;
/// Most neighbours of one symbol that are looked at (contract §4).
pub const MAX_NODES: usize = 500;

/// Which way edges are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// To those that point here.
    Callers,
    /// To what this points to.
    Callees,
}

/// A node one hop away, and every edge to it, the surest and first one first.
#[derive(Clone, Debug, PartialEq)]
pub struct Neighbour {
    pub node: NodeRow,
    pub edges: Vec<EdgeRow>,
}

impl Neighbour {
    /// Returns how sure the relation is: as its surest edge.
    pub fn resolution(&self) -> Resolution {
        self.edges[0].resolution
    }

    /// Returns the first edge, which is its witness.
    pub fn witness(&self) -> &EdgeRow {
        &self.edges[0]
    }
}

/// What a hop found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Hop {
    pub neighbours: Vec<Neighbour>,
    /// Edges to nodes outside the prefix.
    pub boundary_edges: u64,
    /// Whether [`MAX_EDGES`] or [`MAX_NODES`] ended it early.
    pub cut: bool,
}

/// Follows the edges of the given kinds one hop from `start`.
///
/// # Errors
/// [`StoreError`] when the generation cannot be read.
pub fn hop(
    generation: &Generation,
    start: NodeId,
    direction: Direction,
    kinds: &[EdgeKind],
    prefix: &PathPrefix,
) -> Result<Hop, StoreError> {
    let span = tracing::debug_span!("walk", edges = tracing::field::Empty, nodes = tracing::field::Empty);
    let _entered = span.enter();
    let mut edges = match direction {
        Direction::Callers => generation.edges_to(start, kinds)?,
        Direction::Callees => generation.edges_from(start, kinds)?,
    };
    span.record("edges", edges.len());
    let mut found = Hop { cut: edges.len() > MAX_EDGES, ..Hop::default() };
    edges.truncate(MAX_EDGES);
    let mut by_node: BTreeMap<NodeId, Vec<EdgeRow>> = BTreeMap::new();
    for edge in edges {
        let other = match direction {
            Direction::Callers => edge.source,
            Direction::Callees => edge.target,
        };
        // The file of an edge is that of its source, so that a caller outside the prefix need not be read to be counted.
        if direction == Direction::Callers && !prefix.matches(&edge.path) {
            found.boundary_edges += 1;
        } else {
            by_node.entry(other).or_default().push(edge);
        }
    }
    span.record("nodes", by_node.len());
    found.cut |= by_node.len() > MAX_NODES;
    for (id, mut edges) in by_node.into_iter().take(MAX_NODES) {
        let node = generation.node(id)?;
        if !prefix.matches(&node.path) {
            found.boundary_edges += edges.len() as u64;
            continue;
        }
        edges.sort_by_key(|edge| (edge.resolution, edge.line, edge.column));
        found.neighbours.push(Neighbour { node, edges });
    }
    found.neighbours.sort_by_cached_key(|neighbour| {
        let node = &neighbour.node;
        (neighbour.resolution(), node.path.clone(), node.start_line, node.start_byte, node.id)
    });
    Ok(found)
}
