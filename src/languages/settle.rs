//! Export tables of modules that draw on each other in a cycle.
//!
//! Must not know what a table holds. Invariant: the tables do not depend on the order of the modules.

use std::sync::Arc;

use super::{ExportTable, Lookup, ModuleKey};

/// How often the tables of a star cycle are computed anew before what has not settled is left as it is.
const MAX_ROUNDS: usize = 50;

/// Solves the tables of a component: `table` makes that of the member at an index from those it asks for.
pub(super) fn settle(
    component: &[ModuleKey],
    lookup: &dyn Lookup,
    table: impl Fn(usize, &dyn Fn(&ModuleKey) -> Arc<ExportTable>) -> ExportTable,
) -> Vec<ExportTable> {
    let mut tables: Vec<Arc<ExportTable>> = vec![Arc::default(); component.len()];
    for _ in 0..MAX_ROUNDS {
        let known = |module: &ModuleKey| match component.iter().position(|member| member == module) {
            Some(index) => Arc::clone(&tables[index]),
            None => lookup.exports(module),
        };
        // All of a round read the round before, so that no member's place in the order counts.
        let next: Vec<Arc<ExportTable>> = (0..component.len()).map(|index| Arc::new(table(index, &known))).collect();
        let settled = next == tables;
        tables = next;
        if settled {
            break;
        }
    }
    tables.into_iter().map(Arc::unwrap_or_clone).collect()
}
