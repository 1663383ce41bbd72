//! `graph`: what lies around a definition, for programs that draw.
//!
//! Must not know how a graph is written. Invariant: it passes the gate like every question, and standard output holds the graph alone.

use crate::cli::arguments::{Global, Graph, GraphFormat};
use crate::cli::failure::{Exit, Failure};
use crate::cli::{Session, Stop, World};
use crate::engine::{Answer, Snapshot};
use crate::model::PathPrefix;
use crate::query::neighbourhood::{Neighbourhood, neighbourhood};
use crate::query::{QueryError, Selection, select};
use crate::render::{graph, text};
use crate::store::{NodeRow, StoreError};

use super::place::{Place, Prefixes};
use super::status::json;
use super::{admission, policy, say_synced, within};

const DEFAULT_DEPTH: u32 = 1;
const MOST_DEPTH: u32 = 5;
const DEFAULT_LIMIT: usize = 40;
const MOST_LIMIT: u32 = 200;
/// What takes places in an image takes a time that grows faster than the graph: a second or two for so many.
const MOST_IN_IMAGE: u32 = 80;

/// What came of a question.
enum Found {
    Graph { found: Neighbourhood, fingerprint: String, checked_at: String },
    Several { choices: Vec<NodeRow>, total: usize },
    None { near: Vec<NodeRow> },
}

pub fn run(session: &mut Session, global: &Global, typed: &Graph, world: &mut World<'_>) -> Result<Exit, Stop> {
    if typed.symbol.trim().is_empty() {
        return Err(Failure::usage("the symbol is empty").into());
    }
    let depth = within("--depth", typed.depth, 1, MOST_DEPTH)?.unwrap_or(DEFAULT_DEPTH);
    let most = if typed.format == GraphFormat::Svg && !global.json { MOST_IN_IMAGE } else { MOST_LIMIT };
    let limit = within("--limit", typed.limit, 1, most)?.map_or(DEFAULT_LIMIT, |limit| limit as usize);
    let here = world.environment.current_dir.clone();
    let desk = session.desk(global, &world.environment)?;
    let place = Place::new(desk.scope().root(), &here);
    let prefixes = place.prefixes(typed.path.as_deref())?;
    let admission = admission(&desk, policy(typed.on_stale, desk.scope().on_stale()));
    let answer = desk
        .ask(admission, |snapshot| find(snapshot, &typed.symbol, &place, &prefixes, depth, limit))
        .map_err(|error| Failure::of_engine(&error))?;
    let Answer { value, synced, .. } = answer;
    let found = value?;
    say_synced(synced.as_ref(), global, world)?;
    let options = text::Options { color: global.colored(world), ..text::Options::default() };
    match found {
        Found::Graph { found, fingerprint, checked_at } => {
            let body = match typed.format {
                _ if global.json => {
                    format!("{}\n", json(&graph::Graph::new(&found, desk.scope().id(), &fingerprint, &checked_at)))
                }
                GraphFormat::Dot => graph::dot(&found),
                GraphFormat::Mermaid => graph::mermaid(&found),
                GraphFormat::Svg => graph::svg(&found),
            };
            world.out.write_all(body.as_bytes())?;
            if found.is_cut && !global.json && !global.quiet {
                writeln!(world.err, "more lies within this depth than {limit} nodes; --limit and --path choose")?;
            }
            Ok(Exit::Answered)
        }
        Found::Several { total, .. } if global.json => Err(Failure::new(
            "code_target_missing",
            format!("`{}` names {total} symbols; choose one by its full name, path:line or id", text::clean(&typed.symbol)),
        )
        .into()),
        Found::None { .. } if global.json => {
            Err(Failure::new("code_target_missing", format!("nothing is named `{}`", text::clean(&typed.symbol))).into())
        }
        Found::Several { choices, total } => {
            world.err.write_all(text::choices(&typed.symbol, &choices, total, options).as_bytes())?;
            Ok(Exit::NothingFound)
        }
        Found::None { near } => {
            world.err.write_all(text::nothing_named(&typed.symbol, &near, options).as_bytes())?;
            Ok(Exit::NothingFound)
        }
    }
}

fn find(
    snapshot: &Snapshot,
    typed: &str,
    place: &Place,
    prefixes: &Prefixes,
    depth: u32,
    limit: usize,
) -> Result<Found, Failure> {
    let of_store = |error: StoreError| Failure::of_query(&QueryError::Store(error));
    let generation = snapshot.generation();
    let prefix = prefixes.in_generation(generation)?;
    let symbol = place.symbol(generation, typed)?;
    match select(generation, &symbol, &PathPrefix::default()).map_err(of_store)? {
        Selection::One(seed) => {
            let found = neighbourhood(generation, *seed, depth, limit, &prefix).map_err(of_store)?;
            let fingerprint = generation.identity().fingerprint.hex();
            Ok(Found::Graph { found, fingerprint, checked_at: snapshot.checked_at().to_owned() })
        }
        Selection::Several { choices, total } => Ok(Found::Several { choices, total }),
        Selection::None { near } => Ok(Found::None { near }),
    }
}
