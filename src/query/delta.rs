//! What changed inside a file between two generations: definitions that are gone, new, or other than they were.
//!
//! Must not know who uses them. Invariant: a definition that is not listed says the same in both generations, in its own text and in what
//! its names are bound to; where that cannot be compared it counts as changed.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use crate::model::SymbolKind;
use crate::store::{Generation, NodeId, NodeRow, StoreError};

use super::reach::USES;

/// The nodes of one or more files that differ. A file's own node stands for what is outside all of its definitions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Delta {
    /// Nodes of the older generation that have no counterpart.
    pub gone: Vec<NodeRow>,
    /// Nodes of the newer one that have none.
    pub new: Vec<NodeRow>,
    /// Counterparts that differ, the older first.
    pub changed: Vec<(NodeRow, NodeRow)>,
}

/// One file in one generation.
struct Version<'g> {
    generation: &'g Generation,
    nodes: Vec<NodeRow>,
    /// The bytes of the definitions directly inside each node.
    inner: BTreeMap<NodeId, Vec<Range<usize>>>,
    source: Option<Arc<[u8]>>,
}

impl Delta {
    /// Adds what differs in the file at `path`, which has other bytes in the two generations, or is in one of them only.
    ///
    /// # Errors
    /// [`StoreError`] when a generation cannot be read.
    pub fn compare(&mut self, before: &Generation, after: &Generation, path: &str) -> Result<(), StoreError> {
        let (before, after) = (Version::read(before, path)?, Version::read(after, path)?);
        // Definitions of one name are told apart by their order.
        let mut counterparts: BTreeMap<(Arc<str>, SymbolKind), VecDeque<usize>> = BTreeMap::new();
        for (index, node) in before.nodes.iter().enumerate() {
            counterparts.entry((node.qualified_name.clone(), node.kind)).or_default().push_back(index);
        }
        let mut kept = BTreeSet::new();
        for (index, node) in after.nodes.iter().enumerate() {
            let found = counterparts.get_mut(&(node.qualified_name.clone(), node.kind)).and_then(VecDeque::pop_front);
            let Some(old) = found else {
                self.new.push(node.clone());
                continue;
            };
            kept.insert(old);
            let texts = (before.own_text(old), after.own_text(index));
            let same_text = matches!(&texts, (Some(old), Some(new)) if old == new);
            let old = &before.nodes[old];
            if !same_text || before.bindings(old)? != after.bindings(node)? {
                self.changed.push((old.clone(), node.clone()));
            }
        }
        let gone = before.nodes.into_iter().enumerate().filter(|(index, _)| !kept.contains(index));
        self.gone.extend(gone.map(|(_, node)| node));
        Ok(())
    }
}

/// A use: its kind and name, and the path, name and kind of what it is bound to.
type Binding = (u8, Arc<str>, Arc<str>, Arc<str>, SymbolKind);

impl<'g> Version<'g> {
    fn read(generation: &'g Generation, path: &str) -> Result<Self, StoreError> {
        let nodes = generation.nodes_in_file(path)?;
        let mut inner: BTreeMap<NodeId, Vec<Range<usize>>> = BTreeMap::new();
        for node in &nodes {
            if let Some(parent) = node.parent {
                inner.entry(parent).or_default().push(bytes(node));
            }
        }
        Ok(Self { generation, nodes, inner, source: generation.source(path)? })
    }

    /// Returns the text of a node without that of the definitions inside it, without blank lines and white space at the ends of lines.
    fn own_text(&self, index: usize) -> Option<Vec<&[u8]>> {
        let (source, node) = (self.source.as_deref()?, &self.nodes[index]);
        let whole = if node.kind == SymbolKind::File { 0..source.len() } else { bytes(node) };
        let mut at = whole.start;
        let mut lines = Vec::new();
        let inner = self.inner.get(&node.id).into_iter().flatten().cloned();
        for hole in inner.chain(std::iter::once(whole.end..whole.end)) {
            // Definitions that overlap, as those of a broken file may, are cut out once.
            if hole.start >= at {
                lines.extend(source.get(at..hole.start)?.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_end));
            }
            at = at.max(hole.end);
        }
        lines.retain(|line| !line.is_empty());
        Some(lines)
    }

    /// Returns what the names that a node uses itself are bound to.
    fn bindings(&self, node: &NodeRow) -> Result<BTreeSet<Binding>, StoreError> {
        let mut targets: BTreeMap<NodeId, NodeRow> = BTreeMap::new();
        let mut found = BTreeSet::new();
        for edge in self.generation.edges_from(node.id, &USES)? {
            let target = match targets.entry(edge.target) {
                std::collections::btree_map::Entry::Occupied(known) => known.into_mut(),
                std::collections::btree_map::Entry::Vacant(unknown) => unknown.insert(self.generation.node(edge.target)?),
            };
            let (path, name) = (target.path.clone(), target.qualified_name.clone());
            found.insert((edge.kind as u8, edge.name, path, name, target.kind));
        }
        Ok(found)
    }
}

fn bytes(node: &NodeRow) -> Range<usize> {
    node.start_byte as usize..node.end_byte as usize
}
