//! What lies around a definition: all within some steps along uses, either way, and every edge among it.
//!
//! Must not know how a graph is drawn. Invariant: every link joins two nodes that are there, and equal generations and bounds give the same
//! neighbourhood in the same order.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::model::{EdgeKind, PathPrefix, Resolution};
use crate::store::{Generation, NodeId, NodeRow, StoreError};

use super::walk::{self, Direction};

/// Uses; what contains what is no use.
const USES: &[EdgeKind] = &[EdgeKind::Calls, EdgeKind::Imports, EdgeKind::Inherits, EdgeKind::References];

/// A definition or file with what lies around it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Neighbourhood {
    /// What was asked about first, then by distance.
    pub nodes: Vec<NodeRow>,
    pub links: Vec<Link>,
    /// Whether there is more within the distance.
    pub is_cut: bool,
    /// Edges to nodes outside the path prefix.
    pub boundary_edges: u64,
}

/// All edges of a kind and resolution from one node to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Positions among the nodes.
    pub source: usize,
    pub target: usize,
    pub kind: EdgeKind,
    pub resolution: Resolution,
    /// The rule of the first edge; `syntax_contains` for what contains the target.
    pub rule: Arc<str>,
    /// Where the first edge stands.
    pub path: Arc<str>,
    pub line: u32,
    pub count: u64,
}

/// Gathers what lies within `depth` steps of `seed`, at most `limit` nodes, the nearer and surer ones first. What a class or file holds
/// directly lies around it, too.
///
/// # Errors
/// [`StoreError`] when the generation cannot be read.
pub fn neighbourhood(
    generation: &Generation,
    seed: NodeRow,
    depth: u32,
    limit: usize,
    prefix: &PathPrefix,
) -> Result<Neighbourhood, StoreError> {
    let mut found = Neighbourhood::default();
    let mut places: BTreeMap<NodeId, usize> = BTreeMap::from([(seed.id, 0)]);
    let start = seed.id;
    found.nodes.push(seed);
    let mut add = |found: &mut Neighbourhood, node: NodeRow| match places.get(&node.id) {
        Some(_) => {}
        None if found.nodes.len() >= limit => found.is_cut = true,
        None => {
            places.insert(node.id, found.nodes.len());
            found.nodes.push(node);
        }
    };
    let members = generation.definitions_in(start)?;
    for member in &members {
        add(&mut found, generation.node(member.node)?);
    }
    // Members are of the seed's own distance.
    let (mut from, mut end) = (0, found.nodes.len());
    for _ in 0..depth {
        for at in from..end {
            let id = found.nodes[at].id;
            for direction in [Direction::Callers, Direction::Callees] {
                let hop = walk::hop(generation, id, direction, USES, prefix)?;
                found.boundary_edges += hop.boundary_edges;
                found.is_cut |= hop.cut;
                for neighbour in hop.neighbours {
                    add(&mut found, neighbour.node);
                }
            }
        }
        (from, end) = (end, found.nodes.len());
    }
    let mut links: BTreeMap<(usize, usize, EdgeKind, Resolution), Link> = BTreeMap::new();
    for member in &members {
        if let Some(&target) = places.get(&member.node) {
            let node = &found.nodes[target];
            let link = Link {
                source: 0,
                target,
                kind: EdgeKind::Contains,
                resolution: Resolution::ResolvedStatic,
                rule: Arc::from("syntax_contains"),
                path: Arc::clone(&node.path),
                line: node.start_line,
                count: 1,
            };
            links.insert((0, target, EdgeKind::Contains, Resolution::ResolvedStatic), link);
        }
    }
    for (source, node) in found.nodes.iter().enumerate() {
        for edge in generation.edges_from(node.id, USES)? {
            let Some(&target) = places.get(&edge.target) else { continue };
            let key = (source, target, edge.kind, edge.resolution);
            links.entry(key).and_modify(|link| link.count += 1).or_insert_with(|| Link {
                source,
                target,
                kind: edge.kind,
                resolution: edge.resolution,
                rule: edge.rule,
                path: edge.path,
                line: edge.line,
                count: 1,
            });
        }
    }
    found.links = links.into_values().collect();
    Ok(found)
}
