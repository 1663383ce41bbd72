//! `symbols`: definitions and files by name, then by text. Must not read source. Invariant: ranked as [`crate::query::rank`] says.

use crate::model::PathPrefix;
use crate::query::response::ITEM_LIMIT;
use crate::query::{Result, rank, select};

use super::Context;

/// Lists the nodes that match the query best.
pub fn run(context: &mut Context<'_>, query: &str, prefix: &PathPrefix, limit: usize) -> Result<()> {
    let (nodes, total) = rank::symbols(context.generation, query, prefix, limit)?;
    if nodes.is_empty() {
        let near = select::near(context.generation, query, prefix)?;
        context.name_near(&near);
    }
    context.response.items = nodes.iter().map(|node| context.item(node)).collect();
    context.response.total = total as u64;
    if total > nodes.len() {
        context.response.cut(ITEM_LIMIT);
    }
    Ok(())
}
