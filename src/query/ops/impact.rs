//! `impact`: what a change of a symbol reaches. Must not rank. Invariant: a class or file stands for all its members, a member for itself
//! alone; zero items are never proof.

use crate::model::SymbolId;
use crate::query::reach::{self, USES};
use crate::query::request::{MAX_DEPTH, Relation};
use crate::query::{QueryError, Result};

use super::Context;

/// Lists who uses the symbol, and who uses these, as far as asked.
pub fn run(context: &mut Context<'_>, asked: &Relation) -> Result<()> {
    let missing = || QueryError::TargetMissing { what: "such symbol" };
    let symbol = SymbolId::parse(&asked.symbol_id).ok_or_else(missing)?;
    let start = context.generation.node_by_symbol(&symbol)?.ok_or_else(missing)?;
    if !asked.prefix.matches(&start.path) {
        return Err(missing());
    }
    let seeds = reach::open(context.generation, &start)?;
    let reach = reach::reach(context.generation, &seeds, &USES, &asked.prefix, asked.depth)?;
    context.response.coverage.unresolved_mentions = Some(context.mentions_of(&seeds)?);
    let items = context.strongest(&reach, asked.limit, |_| true)?;
    context.response.deepest = asked.depth >= MAX_DEPTH;
    let subject = context.item(&start);
    context.response.subject = Some(Box::new(subject));
    context.response.items = items;
    Ok(())
}
