//! `explore`: what answers a question, and its surroundings one hop each way. Must not know how seeds are ranked. Invariant: at most
//! [`MAX_SEEDS`] seeds and [`MAX_ITEMS`] items; seeds come first, then each seed's relations.

use std::collections::BTreeSet;

use crate::model::{EdgeKind, ParseStatus, PathPrefix, SymbolKind};
use crate::query::reach::{self, Reached, USES};
use crate::query::response::{Detail, EDGES_OUTSIDE, ITEM_LIMIT, Item, OUTPUT_BUDGET, ReachReport, Role, TRAVERSAL_LIMIT};
use crate::query::source::SourceFile;
use crate::query::walk::{self, Direction, Neighbour};
use crate::query::{Result, rank, select, words};
use crate::store::{Generation, NodeId, NodeRow};

use super::Context;

const MAX_SEEDS: usize = 4;
const MAX_ITEMS: usize = 16;
/// About what an answer takes in bytes: its envelope, a seed with its source, a relation without.
const ENVELOPE: usize = 1_300;
const SEED: usize = 2_200;
const RELATION: usize = 950;
/// The best seeds, of which it is said what uses them beyond the listed relations: each costs a walk.
const MAX_REACHES: usize = 2;
/// How many steps the users of a seed are followed.
const REACH: u32 = 2;
/// Most test files that are named with a seed.
const MAX_TESTS: usize = 5;

/// A neighbour of one of the seeds.
struct Related {
    seed: usize,
    direction: Direction,
    neighbour: Neighbour,
}

/// Finds the definitions that answer the question, and who calls or extends them and what they call or extend.
pub fn run(context: &mut Context<'_>, question: &str, prefix: &PathPrefix, limit: usize) -> Result<()> {
    let limit = limit.min(MAX_ITEMS);
    let seeds = rank::seeds(context.generation, question, prefix, MAX_SEEDS.min(limit))?;
    if seeds.is_empty() {
        let near = select::near(context.generation, question, prefix)?;
        context.name_near(&near);
        context.response.coverage.unresolved_mentions = Some(0);
        return Ok(());
    }
    let mut seen: BTreeSet<NodeId> = seeds.iter().map(|seed| seed.id).collect();
    let mut relations: Vec<Vec<Related>> = Vec::new();
    let mut reaches = Vec::new();
    let (mut boundary, mut cut, mut mentions) = (0, false, 0);
    for (index, seed) in seeds.iter().enumerate() {
        for direction in [Direction::Callers, Direction::Callees] {
            let hop = walk::hop(context.generation, seed.id, direction, &[EdgeKind::Calls, EdgeKind::Inherits], prefix)?;
            boundary += hop.boundary_edges;
            cut |= hop.cut;
            let mut neighbours = hop.neighbours;
            // A stable sort: within each half the order of relations stays.
            neighbours.sort_by_key(|neighbour| (select::is_demoted(&neighbour.node), neighbour.resolution()));
            relations.push(neighbours.into_iter().map(|neighbour| Related { seed: index, direction, neighbour }).collect());
        }
        let unbound = if seed.kind == SymbolKind::File { 0 } else { context.generation.unresolved_mentions(&seed.name)? };
        mentions += unbound;
        reaches.push(if index < MAX_REACHES { Some(reach_of(context.generation, seed, unbound, prefix)?) } else { None });
    }
    // The bodies of the seeds are worth more than the last few relations, which would otherwise leave them no room.
    let affordable = context.max_bytes.saturating_sub(ENVELOPE + SEED * seeds.len()) / RELATION;
    let room = limit - seeds.len();
    let (chosen, left_out) = share(relations, room.min(affordable.max(seeds.len())), &mut seen);

    let mut items = Vec::with_capacity(limit);
    for (seed, reach) in seeds.iter().zip(reaches) {
        let mut item = seed_item(context, seed, question)?;
        item.wanted = Some(Detail { reach, ..context.head(seed) });
        items.push(item);
    }
    for Related { seed, direction, neighbour } in &chosen {
        let mut item = context.relation(&seeds[*seed], neighbour, *direction)?;
        item.seed = Some(*seed);
        item.role = Some(match direction {
            Direction::Callers => Role::Caller,
            Direction::Callees => Role::Callee,
        });
        items.push(item);
    }
    let response = &mut context.response;
    response.total = (items.len() + left_out) as u64;
    response.items = items;
    response.coverage.path_boundary_edges = boundary;
    response.coverage.unresolved_mentions = Some(mentions);
    if left_out > 0 {
        response.cut(if chosen.len() < room { OUTPUT_BUDGET } else { ITEM_LIMIT });
    }
    if cut {
        response.cut(TRAVERSAL_LIMIT);
    }
    if boundary > 0 {
        response.limit(EDGES_OUTSIDE);
    }
    Ok(())
}

fn seed_item(context: &mut Context<'_>, seed: &NodeRow, question: &str) -> Result<Item> {
    let mut item = context.item(seed);
    item.role = Some(Role::Seed);
    context.show(&mut item, seed)?;
    // Of a file that is known by its text alone, its head says nothing of why it is shown.
    if seed.kind == SymbolKind::File
        && seed.parse_status == ParseStatus::Failed
        && let Some(source) = &mut item.source
    {
        source.lines = telling_line(&source.file, question)..=*source.lines.end();
    }
    Ok(item)
}

/// Returns who uses a seed, directly or through others. What is only reached through a container, such as whoever imports the file, says
/// too little to be counted.
fn reach_of(generation: &Generation, seed: &NodeRow, unbound: u64, prefix: &PathPrefix) -> Result<ReachReport> {
    let opened = reach::open(generation, seed)?;
    let found = reach::reach(generation, &opened, &USES, prefix, REACH)?;
    let users = found.reached.iter().filter(|reached| !reached.strength.is_through() && !reached.is_container());
    let (tests, users): (Vec<&Reached>, Vec<&Reached>) = users.partition(|reached| reached.node.test);
    let paths = |of: &[&Reached]| of.iter().map(|reached| reached.node.path.clone()).collect::<BTreeSet<_>>();
    let mut test_files: Vec<_> = paths(&tests).into_iter().collect();
    let more = test_files.len().saturating_sub(MAX_TESTS);
    test_files.truncate(MAX_TESTS);
    Ok(ReachReport {
        depth: REACH,
        users: users.len() as u64,
        files: paths(&users).len() as u64,
        test_files,
        more_test_files: (more > 0).then_some(more),
        unresolved_mentions: unbound,
        is_partial: found.cuts.nodes || found.cuts.edges,
    })
}

/// Returns the first of the lines that hold most of a question's words.
fn telling_line(file: &SourceFile, question: &str) -> u32 {
    let asked = words::of_question(question);
    let held = |number: u32| {
        let line = file.line(number).unwrap_or_default().to_lowercase();
        asked.iter().filter(|word| line.contains(word.as_str())).count()
    };
    let telling = (1..=file.line_count()).map(|number| (std::cmp::Reverse(held(number)), number)).min();
    telling.map_or(1, |(_, number)| number)
}

/// Gives every list a turn until the room is spent; a node is shown once. Returns the chosen ones, list by list, and how many are left out.
fn share(lists: Vec<Vec<Related>>, room: usize, seen: &mut BTreeSet<NodeId>) -> (Vec<Related>, usize) {
    let mut chosen: Vec<Vec<Related>> = lists.iter().map(|_| Vec::new()).collect();
    let mut queues: Vec<_> = lists.into_iter().map(|list| list.into_iter()).collect();
    let (mut taken, mut left_out, mut moved) = (0, 0, true);
    while moved {
        moved = false;
        for (queue, chosen) in queues.iter_mut().zip(&mut chosen) {
            let Some(next) = queue.find(|related| seen.insert(related.neighbour.node.id)) else { continue };
            moved = true;
            if taken < room {
                taken += 1;
                chosen.push(next);
            } else {
                left_out += 1;
            }
        }
    }
    (chosen.into_iter().flatten().collect(), left_out)
}
