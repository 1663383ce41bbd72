//! `map --tree`: the repository as a tree of folders.
//!
//! Must not know how much is shown of what. Invariant: it passes the gate like every question.

use serde::Serialize;

use crate::cli::arguments::{Global, Question};
use crate::cli::failure::{Exit, Failure};
use crate::cli::{Session, Stop, World};
use crate::engine::Answer;
use crate::query::QueryError;
use crate::query::tree::{Tree, tree};
use crate::render;
use crate::render::text;

use super::place::Place;
use super::status::json;
use super::{admission, policy, say_synced, within};

const DEFAULT_DEPTH: u32 = 3;
const MOST_DEPTH: u32 = 50;
const DEFAULT_LIMIT: usize = 60;
const MOST_LIMIT: u32 = 2000;

/// What `--json` prints.
#[derive(Serialize)]
struct Said<'t> {
    schema: &'static str,
    scope_id: &'t str,
    fingerprint: &'t str,
    checked_at: &'t str,
    #[serde(flatten)]
    tree: &'t Tree,
}

pub fn run(
    session: &mut Session,
    global: &Global,
    prefix: Option<&str>,
    question: &Question,
    world: &mut World<'_>,
) -> Result<Exit, Stop> {
    if question.max_bytes.is_some() {
        return Err(Failure::usage("--max-bytes does not bound a tree; --limit and --depth do").into());
    }
    let depth = within("--depth", question.depth, 1, MOST_DEPTH)?.unwrap_or(DEFAULT_DEPTH);
    let limit = within("--limit", question.limit, 1, MOST_LIMIT)?.map_or(DEFAULT_LIMIT, |limit| limit as usize);
    let here = world.environment.current_dir.clone();
    let desk = session.desk(global, &world.environment)?;
    let prefixes = Place::new(desk.scope().root(), &here).prefixes(prefix)?;
    let admission = admission(&desk, policy(question.on_stale, desk.scope().on_stale()));
    let answer = desk
        .ask(admission, |snapshot| {
            let generation = snapshot.generation();
            let prefix = prefixes.in_generation(generation)?;
            let found = tree(generation, &prefix, depth, limit).map_err(|error| Failure::of_query(&QueryError::Store(error)))?;
            Ok::<_, Failure>((found, generation.identity().fingerprint.hex(), snapshot.checked_at().to_owned()))
        })
        .map_err(|error| Failure::of_engine(&error))?;
    let Answer { value, checked, synced, .. } = answer;
    let (tree, fingerprint, checked_at) = value?;
    let exit = if tree.files == Some(0) { Exit::NothingFound } else { Exit::Answered };
    let body = if global.json {
        let said = Said {
            schema: "sextant.tree.v1",
            scope_id: desk.scope().id(),
            fingerprint: &fingerprint,
            checked_at: &checked_at,
            tree: &tree,
        };
        format!("{}\n", json(&said))
    } else {
        let options = text::Options { color: global.colored(world), ..text::Options::default() };
        let mut body = render::tree::draw(&tree, options.color);
        if !global.quiet {
            let (files, elapsed) = (checked.files, checked.elapsed);
            body.push_str(&text::checked(&text::Checked { files, elapsed, generation: &fingerprint }, options));
        }
        body
    };
    say_synced(synced.as_ref(), global, world)?;
    world.out.write_all(body.as_bytes())?;
    Ok(exit)
}
