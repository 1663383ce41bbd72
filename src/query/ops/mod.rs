//! The operations, one file each. Must not know budgets. Invariant: each fills the response of one [`Context`] and nothing else.

pub mod calls;
pub mod explore;
pub mod map;
pub mod read;
pub mod symbols;

use std::sync::Arc;

use crate::model::SymbolKind;
use crate::store::{Generation, NodeRow, StoreError};

use super::request::Request;
use super::response::{Detail, Granularity, Item, Near, Response, Site, Why, WitnessEdge};
use super::select;
use super::source::{MAX_SNIPPET, SourceRange, Sources};
use super::walk::{Direction, Neighbour};
use crate::model::Resolution;

/// Most lines of one relation that are listed with their text.
const MAX_SITES: usize = 12;
/// Most bytes of such a line that are shown.
const MAX_SITE: usize = 240;

/// What an operation reads from and writes into.
pub struct Context<'g> {
    pub generation: &'g Generation,
    pub response: Response,
    pub fingerprint: Arc<str>,
    pub max_bytes: usize,
    sources: Sources<'g>,
    /// Bytes of source that the answer can still show; once they are spent, no more files are read.
    source_left: usize,
}

impl<'g> Context<'g> {
    pub fn new(generation: &'g Generation, checked_at: &str, request: &Request) -> Self {
        let response = Response::new(generation, checked_at, request.operation.kind());
        Self {
            generation,
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
        item.reason = Some(match neighbour.resolution() {
            Resolution::ResolvedStatic => Why::StaticPath,
            Resolution::Candidate => Why::CandidatePath,
        });
        item.granularity = Some(Granularity::Symbol);
        item.witness_path = vec![WitnessEdge::of(witness, source, target)];
        let mut lines: Vec<u32> = neighbour.edges.iter().map(|edge| edge.line).collect();
        lines.sort_unstable();
        lines.dedup();
        let detail = self.detail(node, &witness.path, &lines)?;
        item.wanted = Some(detail);
        item.site_lines = lines;
        self.show(&mut item, node)?;
        Ok(item)
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
