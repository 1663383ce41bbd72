//! The operations, one file each. Must not know budgets. Invariant: each fills the response of one [`Context`] and nothing else.

pub mod affected;
pub mod calls;
pub mod changes;
pub mod diagnostics;
pub mod explore;
pub mod impact;
pub mod impact_changes;
pub mod map;
pub mod read;
pub mod symbols;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::model::SymbolKind;
use crate::store::{Generation, NodeRow, StoreError};

use super::reach::{Reach, Reached};
use super::request::Request;
use super::response::{
    DEPTH_LIMIT, Detail, EDGES_OUTSIDE, Granularity, ITEM_LIMIT, Item, NODE_LIMIT, Near, OUTPUT_BUDGET, Response, Site,
    TRAVERSAL_LIMIT, Why, WitnessEdge,
};
use super::select;
use super::source::{MAX_SNIPPET, SourceRange, Sources};
use super::walk::{Direction, Neighbour};

/// Most lines of one relation that are listed with their text.
const MAX_SITES: usize = 12;
/// Most bytes of such a line that are shown.
const MAX_SITE: usize = 240;

/// About what rendering may still add to the envelope and to a bare item: words for what it cuts.
const ENVELOPE_WORDS: usize = 60;
const ITEM_WORDS: usize = 36;

/// What an operation reads from and writes into.
pub struct Context<'g> {
    pub generation: &'g Generation,
    /// The generation compared with, where the operation compares.
    pub baseline: Option<&'g Generation>,
    pub response: Response,
    pub fingerprint: Arc<str>,
    pub max_bytes: usize,
    pub sources: Sources<'g>,
    /// Bytes of source that the answer can still show; once they are spent, no more files are read.
    source_left: usize,
}

impl<'g> Context<'g> {
    pub fn new(generation: &'g Generation, baseline: Option<&'g Generation>, checked_at: &str, request: &Request) -> Self {
        let response = Response::new(generation, checked_at, request.operation.kind());
        Self {
            generation,
            baseline,
            fingerprint: Arc::from(response.fingerprint.as_str()),
            response,
            max_bytes: request.max_bytes,
            sources: Sources::new(generation),
            source_left: request.max_bytes,
        }
    }

    pub fn item(&self, node: &NodeRow) -> Item {
        Item::of(node, &self.fingerprint)
    }

    /// Returns the item of a neighbour of `start`, with its witness, its lines and what source it may show.
    pub fn relation(&mut self, start: &NodeRow, neighbour: &Neighbour, direction: Direction) -> Result<Item, StoreError> {
        let node = &neighbour.node;
        let mut item = self.item(node);
        let witness = neighbour.witness();
        let (source, target) = match direction {
            Direction::Callers => (&node.symbol, &start.symbol),
            Direction::Callees => (&start.symbol, &node.symbol),
        };
        item.resolution = Some(neighbour.resolution());
        item.reason = Some(Why::of(neighbour.resolution()));
        item.granularity = Some(Granularity::Symbol);
        item.witness_path = Some(vec![WitnessEdge::of(witness, source, target)]);
        let mut lines: Vec<u32> = neighbour.edges.iter().map(|edge| edge.line).collect();
        lines.sort_unstable();
        lines.dedup();
        let detail = self.detail(node, &witness.path, &lines)?;
        item.wanted = Some(detail);
        item.site_lines = lines;
        self.show(&mut item, node)?;
        Ok(item)
    }

    /// Returns the item of a node that a walk came to, with its path, the lines of its last step and what source it may show.
    pub fn reached(&mut self, reached: &Reached) -> Result<Item, StoreError> {
        let node = &reached.node;
        let mut item = self.item(node);
        item.resolution = Some(reached.strength.resolution());
        item.reason = Some(Why::of(reached.strength.resolution()));
        item.granularity = Some(if reached.climbed() { Granularity::Module } else { Granularity::Symbol });
        item.through = reached.strength.is_through();
        item.witness_path =
            Some(reached.path.iter().map(|step| WitnessEdge::of(&step.edge, &step.source, &step.target)).collect());
        item.via = reached.path.iter().map(|step| step.target_name.clone()).collect();
        let Some(last) = reached.path.last() else { return Ok(item) };
        item.wanted = Some(self.detail(node, &last.edge.path, &last.lines)?);
        item.site_lines.clone_from(&last.lines);
        // Of a file or container that is reached as a whole, the first lines say nothing of why.
        if node.kind != SymbolKind::File && !last.lines.is_empty() {
            self.show(&mut item, node)?;
        }
        Ok(item)
    }

    /// Makes the items of what a walk reached, among those that `wanted` says: the strongest ones that the limit and the budget leave
    /// room for, in the order of relations. Says what the walk and the choice left out.
    pub fn strongest(&mut self, reach: &Reach, limit: usize, wanted: impl Fn(&Reached) -> bool) -> Result<Vec<Item>, StoreError> {
        let mut order = reach.by_strength();
        order.retain(|index| wanted(&reach.reached[*index]));
        self.note_limits(reach);
        self.response.total += order.iter().filter(|index| !reach.reached[**index].is_container()).count() as u64;
        if order.len() > limit {
            order.truncate(limit);
            self.response.cut(ITEM_LIMIT);
        }
        let mut room = Room::of(self);
        let mut chosen: BTreeMap<usize, Item> = BTreeMap::new();
        for index in order {
            let item = self.reached(&reach.reached[index])?;
            if !room.admits(&item) {
                self.response.cut(OUTPUT_BUDGET);
                break;
            }
            chosen.insert(index, item);
        }
        Ok(chosen.into_values().collect())
    }

    /// Says what a walk left out.
    fn note_limits(&mut self, reach: &Reach) {
        let response = &mut self.response;
        response.coverage.path_boundary_edges += reach.boundary_edges;
        let cuts = [(reach.cuts.depth, DEPTH_LIMIT), (reach.cuts.edges, TRAVERSAL_LIMIT), (reach.cuts.nodes, NODE_LIMIT)];
        for (_, word) in cuts.into_iter().filter(|(cut, _)| *cut) {
            response.cut(word);
        }
        if reach.boundary_edges > 0 {
            response.limit(EDGES_OUTSIDE);
        }
    }

    /// Returns a context that makes items of the baseline, with as much room for source; `None` without one.
    fn of_baseline(&self) -> Option<Self> {
        let generation = self.baseline?;
        let response = Response::new(generation, &self.response.checked_at, self.response.operation);
        Some(Self {
            generation,
            baseline: None,
            fingerprint: Arc::from(response.fingerprint.as_str()),
            response,
            max_bytes: self.max_bytes,
            sources: Sources::new(generation),
            source_left: self.max_bytes,
        })
    }

    /// Returns how many references may mean one of the nodes but could not be bound.
    pub fn mentions_of(&self, nodes: &[NodeRow]) -> Result<u64, StoreError> {
        let names: BTreeSet<&Arc<str>> =
            nodes.iter().filter(|node| node.kind != SymbolKind::File).map(|node| &node.name).collect();
        names.into_iter().map(|name| self.generation.unresolved_mentions(name)).sum()
    }

    /// Returns the head of a definition.
    pub fn head(&self, node: &NodeRow) -> Detail {
        Detail { signature: node.signature.clone(), ..Detail::default() }
    }

    /// Returns the head of a definition and the text of the lines of a relation, which stand in the file `path`.
    fn detail(&mut self, node: &NodeRow, path: &Arc<str>, lines: &[u32]) -> Result<Detail, StoreError> {
        let file = if self.source_left > 0 { self.sources.get(path)? } else { None };
        let site = |line: &u32| {
            let text = file.as_ref().and_then(|file| file.line(*line)).map(str::trim).filter(|text| text.len() <= MAX_SITE);
            Site { line: *line, text: text.map(str::to_owned) }
        };
        let sites: Vec<Site> = lines.iter().take(MAX_SITES).map(site).collect();
        let spent: usize = sites.iter().map(|site| 24 + site.text.as_deref().map_or(4, str::len)).sum();
        self.source_left = self.source_left.saturating_sub(spent);
        Ok(Detail {
            signature: node.signature.clone(),
            sites: (!sites.is_empty()).then_some(sites),
            more_sites: lines.len().checked_sub(MAX_SITES).filter(|more| *more > 0),
            reach: None,
        })
    }

    /// Lets an item show the source of its node, as long as the answer has room for any.
    pub fn show(&mut self, item: &mut Item, node: &NodeRow) -> Result<(), StoreError> {
        if self.source_left == 0 {
            item.source_omitted = Some(super::response::SourceOmitted::OutputBudget);
            self.response.cut(super::response::OUTPUT_BUDGET);
            return Ok(());
        }
        if let Some(file) = self.sources.get(&node.path)? {
            if file.line_count() == 0 {
                return Ok(());
            }
            let first = node.start_line.max(1);
            let last = if node.kind == SymbolKind::File { file.line_count() } else { node.end_line };
            let bytes: usize = (first..=last).map_while(|line| file.line(line)).map(str::len).take(200).sum();
            self.source_left = self.source_left.saturating_sub(bytes.min(MAX_SNIPPET) + 100);
            item.source = Some(SourceRange { file, lines: first..=last.max(first), max_bytes: MAX_SNIPPET });
        }
        Ok(())
    }

    /// Returns the lines of a file from `first` to `last`, both from 1; `None` when the generation has no source for it.
    pub fn lines(&mut self, path: &Arc<str>, first: u32, last: u32, max_bytes: usize) -> Result<Option<SourceRange>, StoreError> {
        Ok(self.sources.get(path)?.map(|file| SourceRange { file, lines: first..=last, max_bytes }))
    }

    /// Names the symbols whose names are nearest to what was asked.
    pub fn name_near(&mut self, near: &[NodeRow]) {
        let near_of = |node: &NodeRow| Near {
            qualified_name: select::qualified(node),
            path: node.path.to_string(),
            line: if node.name_line > 0 { node.name_line } else { node.start_line },
        };
        self.response.coverage.near = Some(near.iter().map(near_of).collect());
    }
}

/// What the budget leaves for items. The rendered answer is cut from its end, where the order of relations does not put the weakest, so
/// that an operation that has more than fits must choose itself.
struct Room {
    /// Bytes; `None` when no budget holds.
    left: Option<usize>,
    is_empty: bool,
}

impl Room {
    /// Returns the room beside the envelope as it is now.
    fn of(context: &Context<'_>) -> Self {
        let left = |max_bytes: usize| max_bytes.saturating_sub(length(&context.response) + ENVELOPE_WORDS);
        Self { left: Some(context.max_bytes).filter(|max_bytes| *max_bytes != usize::MAX).map(left), is_empty: true }
    }

    /// Returns whether there is room for the bare item, and takes it; the first item is always let in.
    fn admits(&mut self, item: &Item) -> bool {
        if let Some(left) = &mut self.left {
            let bare = length(item) + ITEM_WORDS;
            if bare > *left && !self.is_empty {
                return false;
            }
            *left = left.saturating_sub(bare);
        }
        self.is_empty = false;
        true
    }
}

/// Returns how many bytes a value of the contract takes as JSON.
fn length<T: serde::Serialize>(value: &T) -> usize {
    serde_json::to_string(value).map_or(0, |text| text.len())
}
