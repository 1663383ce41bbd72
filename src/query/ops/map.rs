//! `map`: the files and definitions near the top of a path. Must not read source. Invariant: by path and line.

use crate::model::PathPrefix;
use crate::query::Result;
use crate::query::response::ITEM_LIMIT;

use super::Context;

/// Lists the nodes of files that lie fewer than `depth` slashes below the prefix.
pub fn run(context: &mut Context<'_>, prefix: &PathPrefix, depth: u32, limit: usize) -> Result<()> {
    let (nodes, total) = context.generation.map(prefix, depth, limit)?;
    context.response.items = nodes.iter().map(|node| context.item(node)).collect();
    context.response.total = total;
    if total > nodes.len() as u64 {
        context.response.cut(ITEM_LIMIT);
    }
    Ok(())
}
