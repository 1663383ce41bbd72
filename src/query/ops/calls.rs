//! `callers` and `callees`: one hop along calls, either way. Must not rank. Invariant: zero items are never proof; the answer counts the
//! mentions that could not be bound.

use crate::model::{EdgeKind, SymbolId, SymbolKind};
use crate::query::request::Relation;
use crate::query::response::{EDGES_OUTSIDE, ITEM_LIMIT, TRAVERSAL_LIMIT};
use crate::query::walk::{self, Direction};
use crate::query::{QueryError, Result};

use super::Context;

/// Lists who calls the symbol, or what it calls.
pub fn run(context: &mut Context<'_>, asked: &Relation, direction: Direction) -> Result<()> {
    let missing = || QueryError::TargetMissing { what: "such symbol" };
    let symbol = SymbolId::parse(&asked.symbol_id).ok_or_else(missing)?;
    let start = context.generation.node_by_symbol(&symbol)?.ok_or_else(missing)?;
    if !asked.prefix.matches(&start.path) {
        return Err(missing());
    }
    let hop = walk::hop(context.generation, start.id, direction, &[EdgeKind::Calls], &asked.prefix)?;
    let mut items = Vec::new();
    for neighbour in hop.neighbours.iter().take(asked.limit) {
        items.push(context.relation(&start, neighbour, direction)?);
    }
    let mentions = match direction {
        Direction::Callers if start.kind == SymbolKind::File => 0,
        Direction::Callers => context.generation.unresolved_mentions(&start.name)?,
        Direction::Callees => context.generation.unresolved_calls_in(start.id)?,
    };
    let subject = context.item(&start);
    let response = &mut context.response;
    response.total = hop.neighbours.len() as u64;
    response.coverage.unresolved_mentions = Some(mentions);
    response.coverage.path_boundary_edges = hop.boundary_edges;
    response.subject = Some(Box::new(subject));
    if hop.neighbours.len() > items.len() {
        response.cut(ITEM_LIMIT);
    }
    if hop.cut {
        response.cut(TRAVERSAL_LIMIT);
    }
    if hop.boundary_edges > 0 {
        response.limit(EDGES_OUTSIDE);
    }
    response.items = items;
    Ok(())
}
