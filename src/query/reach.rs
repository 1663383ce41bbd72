//! What a change reaches: a bounded walk backwards along edges, breadth first, with the shortest path to each node.
//!
//! Must not know the wire. Invariant: a node is reported once, by its strongest path and by the shortest of those; equal generations give
//! equal paths; something is said to be cut only where going on would have found more.

#[cfg(test)]
mod tests;

use std::cell::RefCell;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use crate::model::{EdgeKind, PathPrefix, Resolution, SymbolId, SymbolKind};
use crate::store::{EdgeRow, Extent, Generation, NodeId, NodeRow, StoreError};

use super::walk::{MAX_EDGES, MAX_NODES};

/// The kinds of edges that carry a change to whoever uses what changed.
pub const USES: [EdgeKind; 4] = [EdgeKind::Imports, EdgeKind::Calls, EdgeKind::Inherits, EdgeKind::References];

/// How strongly a path ties its end to its beginning. Ordered: the stronger first.
///
/// Two weaknesses, either of which stays with a path once it has it. A candidate edge may not be real. And a path *through a container*
/// is real, but says less at each step: it climbed from a member to the class or file around it, or it went on from a file that was
/// itself only reached, to whoever imports that file for whatever reason. The second weighs more: a call that may mean the changed method
/// is nearer to it than everybody who uses its class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Strength(u8);

impl Strength {
    const CANDIDATE: u8 = 1;
    const THROUGH: u8 = 2;
    const ALL: [Self; 4] = [Self(0), Self(1), Self(2), Self(3)];

    /// Returns how sure the path is: as its weakest edge.
    pub fn resolution(self) -> Resolution {
        if self.0 & Self::CANDIDATE == 0 { Resolution::ResolvedStatic } else { Resolution::Candidate }
    }

    /// Returns whether the path goes through a container.
    pub fn is_through(self) -> bool {
        self.0 & Self::THROUGH != 0
    }

    /// Returns whether a path of this strength makes one of the other, no shorter one, worthless.
    fn covers(self, other: Self) -> bool {
        self.0 & other.0 == self.0
    }
}

/// One edge of a path. It points back, towards the seed.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    pub edge: EdgeRow,
    pub source: SymbolId,
    pub target: SymbolId,
    /// Qualified name of the target, for people.
    pub target_name: String,
    /// All lines on which the source refers to the target; none for a climb.
    pub lines: Vec<u32>,
}

/// A node that the walk came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Reached {
    pub node: NodeRow,
    pub strength: Strength,
    /// The edges walked, nearest to the seed first.
    pub path: Vec<Step>,
}

impl Reached {
    /// Returns whether this is no user but a container that the walk climbed to last.
    pub fn is_container(&self) -> bool {
        self.path.last().is_some_and(|step| step.edge.kind == EdgeKind::Contains)
    }

    /// Returns whether the path climbed to a container.
    pub fn climbed(&self) -> bool {
        self.path.iter().any(|step| step.edge.kind == EdgeKind::Contains)
    }
}

/// What ended a walk before it was done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cuts {
    /// Going deeper would have found more.
    pub depth: bool,
    /// There were more than [`MAX_NODES`] nodes.
    pub nodes: bool,
    /// There were more than [`MAX_EDGES`] edges.
    pub edges: bool,
}

impl Cuts {
    pub fn any(self) -> bool {
        self.depth || self.nodes || self.edges
    }
}

/// What a walk found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reach {
    /// Resolved before candidate, shorter before longer, then by place; without the seeds.
    pub reached: Vec<Reached>,
    /// Edges to nodes outside the prefix.
    pub boundary_edges: u64,
    pub cuts: Cuts,
}

impl Reach {
    /// Returns the indices of the nodes, the strongest first, so that what is cut is the weakest.
    pub fn by_strength(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.reached.len()).collect();
        // The sort is stable, and within a strength the order is that of the answer already. Whoever uses a container tells more than
        // that there is one.
        order.sort_by_key(|index| (self.reached[*index].strength, self.reached[*index].is_container()));
        order
    }
}

/// Returns a node and every definition inside it: what changes with it. The members of a class or file are so opened; its siblings and
/// what lies around it are not.
///
/// # Errors
/// [`StoreError`] when the generation cannot be read.
pub fn open(generation: &Generation, node: &NodeRow) -> Result<Vec<NodeRow>, StoreError> {
    let mut nodes = generation.nodes_in_file(&node.path)?;
    let mut inside = BTreeSet::from([node.id]);
    // In source order a parent stands before what it holds.
    nodes.retain(|inner| {
        let is_inside = inner.id == node.id || inner.parent.is_some_and(|parent| inside.contains(&parent));
        if is_inside {
            inside.insert(inner.id);
        }
        is_inside
    });
    Ok(nodes)
}

/// Walks backwards along edges of the given kinds from all seeds at once, at most `depth` edges far, and climbs from what it reaches to
/// the containers around it.
///
/// Stronger paths are walked before weaker ones, so that the limits are spent on them. Edges from outside the prefix are counted and not
/// followed.
///
/// # Errors
/// [`StoreError`] when the generation cannot be read.
pub fn reach(
    generation: &Generation,
    seeds: &[NodeRow],
    kinds: &[EdgeKind],
    prefix: &PathPrefix,
    depth: u32,
) -> Result<Reach, StoreError> {
    let span = tracing::debug_span!("reach", seeds = seeds.len(), nodes = tracing::field::Empty, edges = tracing::field::Empty);
    let _entered = span.enter();
    let mut walk = Walk {
        generation,
        kinds,
        prefix,
        seeds: seeds.iter().map(|seed| seed.id).collect(),
        nodes: seeds.iter().map(|seed| (seed.id, seed.clone())).collect(),
        links: BTreeMap::new(),
        inside: RefCell::default(),
        trail: BTreeMap::new(),
        edges_left: MAX_EDGES,
        boundary_edges: 0,
        cuts: Cuts::default(),
    };
    walk.run(depth as usize)?;
    walk.cuts.depth = walk.is_more_below(depth as usize)?;
    let reached = walk.reached();
    span.record("nodes", reached.len());
    span.record("edges", MAX_EDGES - walk.edges_left);
    Ok(Reach { reached, boundary_edges: walk.boundary_edges, cuts: walk.cuts })
}

/// All edges from one user to one target, by their surest; or the climb from the target to its container.
#[derive(Debug)]
struct Link {
    source: NodeId,
    edge: EdgeRow,
    lines: Vec<u32>,
}

/// How a node was come to in one strength.
#[derive(Clone, Debug)]
struct Trail {
    distance: usize,
    /// The node before, in which strength it was come to, and the link from it; `None` for a seed.
    before: Option<(NodeId, Strength, usize)>,
}

struct Walk<'w> {
    generation: &'w Generation,
    kinds: &'w [EdgeKind],
    prefix: &'w PathPrefix,
    seeds: BTreeSet<NodeId>,
    nodes: BTreeMap<NodeId, NodeRow>,
    /// The links of each node that was gone on from.
    links: BTreeMap<NodeId, Rc<Vec<Link>>>,
    /// The definitions directly inside those that use something, the shortest first.
    inside: RefCell<BTreeMap<NodeId, Vec<Extent>>>,
    trail: BTreeMap<(NodeId, Strength), Trail>,
    edges_left: usize,
    boundary_edges: u64,
    cuts: Cuts,
}

impl Walk<'_> {
    fn run(&mut self, depth: usize) -> Result<(), StoreError> {
        // One wave for each strength and distance. A step never makes a path stronger, so the strongest waves can be walked first.
        let mut waves: Vec<Vec<Vec<NodeId>>> = vec![vec![Vec::new(); depth + 1]; Strength::ALL.len()];
        for seed in &self.seeds {
            self.trail.insert((*seed, Strength::default()), Trail { distance: 0, before: None });
            waves[0][0].push(*seed);
        }
        for strength in Strength::ALL {
            for distance in 0..depth {
                let mut wave = std::mem::take(&mut waves[usize::from(strength.0)][distance]);
                // Whoever uses a definition itself goes before whoever imports the file.
                wave.sort_by_key(|id| (self.nodes.get(id).is_some_and(|node| node.kind == SymbolKind::File), *id));
                wave.dedup();
                for id in wave {
                    if self.trail[&(id, strength)].distance < distance || self.is_covered(id, strength, distance) {
                        continue;
                    }
                    let links = self.links_of(id)?;
                    let is_reached_file = self.nodes[&id].kind == SymbolKind::File && !self.seeds.contains(&id);
                    for (index, link) in links.iter().enumerate() {
                        let mut bits = strength.0;
                        if link.edge.resolution == Resolution::Candidate {
                            bits |= Strength::CANDIDATE;
                        }
                        if is_reached_file || link.edge.kind == EdgeKind::Contains {
                            bits |= Strength::THROUGH;
                        }
                        let next = Strength(bits);
                        let before = Some((id, strength, index));
                        if self.come_to(link.source, next, Trail { distance: distance + 1, before })? {
                            waves[usize::from(bits)][distance + 1].push(link.source);
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Returns whether a path that is at least as strong and as short leads to a node.
    fn is_covered(&self, id: NodeId, strength: Strength, distance: usize) -> bool {
        Strength::ALL.into_iter().filter(|other| *other != strength && other.covers(strength)).any(|other| {
            let trail = self.trail.get(&(id, other));
            trail.is_some_and(|trail| trail.distance <= distance)
        })
    }

    /// Takes note of a path to a node; returns whether it is worth going on from there.
    fn come_to(&mut self, id: NodeId, strength: Strength, trail: Trail) -> Result<bool, StoreError> {
        let known = self.trail.get(&(id, strength)).is_some_and(|known| known.distance <= trail.distance);
        if known || self.seeds.contains(&id) || self.is_covered(id, strength, trail.distance) {
            return Ok(false);
        }
        if !self.nodes.contains_key(&id) {
            if self.nodes.len() - self.seeds.len() >= MAX_NODES {
                self.cuts.nodes = true;
                return Ok(false);
            }
            self.nodes.insert(id, self.generation.node(id)?);
        }
        self.trail.insert((id, strength), trail);
        Ok(true)
    }

    /// Returns the links of a node, read once; once the edges are used up and more were met, there are none.
    fn links_of(&mut self, id: NodeId) -> Result<Rc<Vec<Link>>, StoreError> {
        if let Some(links) = self.links.get(&id) {
            return Ok(links.clone());
        }
        if self.cuts.edges {
            return Ok(Rc::default());
        }
        let mut climb = None;
        let mut uses: BTreeMap<NodeId, Link> = BTreeMap::new();
        for edge in self.edges_to(id)? {
            if edge.kind == EdgeKind::Contains {
                climb = Some(Link { source: edge.source, edge, lines: Vec::new() });
            } else if !self.prefix.matches(&edge.path) {
                self.boundary_edges += 1;
            } else if !self.cuts.edges {
                let (user, line) = (self.user(&edge)?, edge.line);
                if self.edges_left == 0 {
                    // More places of a user that is known for certain are no work left.
                    let is_known = uses.contains_key(&user) || self.trail.contains_key(&(user, Strength::default()));
                    self.cuts.edges |= !is_known;
                    continue;
                }
                self.edges_left -= 1;
                // The first edge of a user is its surest.
                let link = uses.entry(user).or_insert_with(|| Link { source: user, edge, lines: Vec::new() });
                link.lines.push(line);
            }
        }
        let mut links: Vec<Link> = uses.into_values().chain(climb).collect();
        for link in &mut links {
            link.lines.sort_unstable();
            link.lines.dedup();
        }
        let links = Rc::new(links);
        self.links.insert(id, links.clone());
        Ok(links)
    }

    fn edges_to(&self, id: NodeId) -> Result<Vec<EdgeRow>, StoreError> {
        let kinds: Vec<EdgeKind> = self.kinds.iter().copied().chain([EdgeKind::Contains]).collect();
        self.generation.edges_to(id, &kinds)
    }

    /// Returns who uses the target of an edge. What stands in the head of a definition (a decorator, a base, an annotation, a default) is
    /// read in the scope around it, which is the source of the edge, but it is the definition that changes with it.
    fn user(&self, edge: &EdgeRow) -> Result<NodeId, StoreError> {
        if edge.kind == EdgeKind::Imports {
            return Ok(edge.source);
        }
        let mut known = self.inside.borrow_mut();
        let inside = match known.entry(edge.source) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => entry.insert(self.generation.definitions_in(edge.source)?),
        };
        let head = inside.iter().find(|extent| (extent.start_line..=extent.end_line).contains(&edge.line));
        Ok(head.map_or(edge.source, |head| head.node))
    }

    /// Returns whether a node that was not gone on from, because it lies at the full depth, is used by one that was not reached; or
    /// whether one of the containers around it is. A container alone is nothing new.
    fn is_more_below(&self, depth: usize) -> Result<bool, StoreError> {
        let mut seen: BTreeSet<NodeId> = self.links.keys().copied().collect();
        let ends: BTreeSet<NodeId> =
            self.trail.iter().filter(|(_, trail)| trail.distance == depth).map(|((id, _), _)| *id).collect();
        for end in ends {
            let mut at = Some(end);
            while let Some(id) = at.filter(|id| seen.insert(*id)) {
                at = None;
                for edge in self.edges_to(id)? {
                    self.generation.in_time()?;
                    if edge.kind == EdgeKind::Contains {
                        at = Some(edge.source);
                    } else if self.prefix.matches(&edge.path) && !self.nodes.contains_key(&self.user(&edge)?) {
                        return Ok(true);
                    }
                }
            }
        }
        Ok(false)
    }

    fn reached(&self) -> Vec<Reached> {
        let mut strongest: BTreeMap<NodeId, Strength> = BTreeMap::new();
        for (id, strength) in self.trail.keys() {
            // Keys come by node and then by strength, the strongest first.
            strongest.entry(*id).or_insert(*strength);
        }
        let mut reached: Vec<Reached> = strongest
            .into_iter()
            .filter(|(id, _)| !self.seeds.contains(id))
            .map(|(id, strength)| Reached { node: self.nodes[&id].clone(), strength, path: self.path(id, strength) })
            .collect();
        reached.sort_by(|left, right| {
            let key = |reached: &Reached| (reached.strength.resolution(), reached.path.len());
            let place = |reached: &Reached| (reached.node.start_line, reached.node.start_byte, reached.node.id);
            key(left)
                .cmp(&key(right))
                .then_with(|| left.node.path.cmp(&right.node.path))
                .then_with(|| place(left).cmp(&place(right)))
        });
        reached
    }

    fn path(&self, id: NodeId, strength: Strength) -> Vec<Step> {
        let mut path = Vec::new();
        let mut at = (id, strength);
        while let Some((before, strength, index)) = self.trail[&at].before {
            let link = &self.links[&before][index];
            let (source, target) = (&self.nodes[&at.0], &self.nodes[&before]);
            path.push(Step {
                edge: link.edge.clone(),
                source: source.symbol,
                target: target.symbol,
                target_name: super::select::qualified(target),
                lines: link.lines.clone(),
            });
            at = (before, strength);
        }
        path.reverse();
        path
    }
}
