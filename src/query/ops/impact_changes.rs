//! `impact_changes`: what the changes of files reach. What is gone is followed in the older generation to its old users, what is new or
//! changed in the one that serves.
//!
//! Must not rank. Invariant: a path of witnesses lies in one generation, and so does every id in it; the item says in which.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::{Resolution, SymbolKind};
use crate::query::delta::Delta;
use crate::query::reach::{self, Reach, Reached, Strength, USES};
use crate::query::request::{MAX_DEPTH, Paths};
use crate::query::response::{ChangedDefinitions, ITEM_LIMIT, OUTPUT_BUDGET, Side};
use crate::query::{QueryError, Result};
use crate::store::{NodeRow, StoreError};

use super::{Context, Room, changes};

/// Something that a walk came to.
struct Candidate<'r> {
    side: Side,
    /// Whether it used what is only changed, and still uses it: the same is told of the generation that serves.
    repeated: bool,
    reached: &'r Reached,
}

/// Lists who uses what changed in the paths, and who uses these: those of deleted definitions as they were, the others as they are.
pub fn run(context: &mut Context<'_>, asked: &Paths) -> Result<()> {
    let after = context.generation;
    let before = context.baseline.ok_or(QueryError::NoBaseline)?;
    context.response.before_fingerprint = Some(before.identity().fingerprint.hex());
    let differing = changes::differing(before, after)?;
    let mut delta = Delta::default();
    for path in &asked.paths {
        let differs = differing.binary_search_by(|file| (*file.path).cmp(path.as_str())).is_ok();
        if !differs || !asked.prefix.matches(path.as_str()) {
            return Err(QueryError::TargetMissing { what: "such changed file" });
        }
        delta.compare(before, after, path.as_str())?;
    }
    let Delta { gone, new, changed } = delta;
    let (old, current): (Vec<NodeRow>, Vec<NodeRow>) = changed.into_iter().unzip();
    let definitions = |nodes: &[NodeRow]| nodes.iter().filter(|node| node.kind != SymbolKind::File).count() as u64;
    let modified = definitions(&current);
    context.response.coverage.changed_definitions = Some(ChangedDefinitions {
        added: definitions(&new),
        modified,
        deleted: definitions(&gone),
        module_level: current.len() as u64 - modified,
    });
    let present: Vec<NodeRow> = new.into_iter().chain(current).collect();
    let walk = |generation, seeds: &[NodeRow]| reach::reach(generation, seeds, &USES, &asked.prefix, MAX_DEPTH);
    let reach_after = walk(after, &present)?;
    let reach_gone = walk(before, &gone)?;
    let reach_old = walk(before, &old)?;
    let named: Vec<NodeRow> = present.into_iter().chain(gone).collect();
    context.response.coverage.unresolved_mentions = Some(context.mentions_of(&named)?);
    for reach in [&reach_after, &reach_gone, &reach_old] {
        context.note_limits(reach);
    }
    let candidates = candidates(&reach_after, &reach_gone, &reach_old);
    context.response.deepest = true;
    choose(context, &candidates, asked.limit)?;
    Ok(())
}

/// Returns everything that was come to, what says most first: what repeats the generation that serves comes last.
fn candidates<'r>(after: &'r Reach, gone: &'r Reach, old: &'r Reach) -> Vec<Candidate<'r>> {
    let name = |reached: &'r Reached| (&*reached.node.path, &*reached.node.qualified_name, reached.node.kind);
    let now: BTreeSet<_> = after.reached.iter().map(name).collect();
    let told: BTreeSet<_> = gone.reached.iter().map(|reached| reached.node.id).collect();
    let mut found: Vec<Candidate<'r>> = Vec::new();
    found.extend(after.reached.iter().map(|reached| Candidate { side: Side::After, repeated: false, reached }));
    found.extend(gone.reached.iter().map(|reached| Candidate { side: Side::Before, repeated: false, reached }));
    let old = old.reached.iter().filter(|reached| !told.contains(&reached.node.id));
    found.extend(old.map(|reached| Candidate { side: Side::Before, repeated: now.contains(&name(reached)), reached }));
    found.sort_by(|left, right| strength(left).cmp(&strength(right)).then_with(|| order(left).cmp(&order(right))));
    found
}

fn strength(candidate: &Candidate<'_>) -> (bool, Strength, bool) {
    (candidate.repeated, candidate.reached.strength, candidate.reached.is_container())
}

/// The order of relations; of the same definition in both generations, the older first.
fn order<'r>(candidate: &Candidate<'r>) -> (bool, Resolution, usize, &'r str, u32, u32, Side) {
    let Reached { node, strength, path } = candidate.reached;
    (candidate.repeated, strength.resolution(), path.len(), &node.path, node.start_line, node.start_byte, candidate.side)
}

/// Makes the items that the limit and the budget leave room for.
fn choose(context: &mut Context<'_>, candidates: &[Candidate<'_>], limit: usize) -> std::result::Result<(), StoreError> {
    context.response.total =
        candidates.iter().filter(|candidate| !candidate.repeated && !candidate.reached.is_container()).count() as u64;
    if candidates.len() > limit {
        context.response.cut(ITEM_LIMIT);
    }
    let mut older = context.of_baseline();
    let mut room = Room::of(context);
    let mut chosen = BTreeMap::new();
    for candidate in candidates.iter().take(limit) {
        let source = match (candidate.side, older.as_mut()) {
            (Side::Before, Some(older)) => older,
            _ => &mut *context,
        };
        let mut item = source.reached(candidate.reached)?;
        item.generation = Some(candidate.side);
        item.repeated = candidate.repeated;
        if !room.admits(&item) {
            context.response.cut(OUTPUT_BUDGET);
            break;
        }
        chosen.insert((order(candidate), candidate.reached.node.id), item);
    }
    if let Some(older) = older {
        // What the older sources had no room for is left out of the answer, too.
        if older.response.limitations.iter().any(|word| word == OUTPUT_BUDGET) {
            context.response.cut(OUTPUT_BUDGET);
        }
    }
    context.response.items = chosen.into_values().collect();
    Ok(())
}
