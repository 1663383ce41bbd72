//! The questions that compare with an earlier generation: `changes`.
//!
//! Must not know which baseline may be used. Invariant: an answer for people says what it was compared with and when that was built.

use crate::cli::arguments::{Comparison, Global};
use crate::cli::failure::{Exit, Failure};
use crate::cli::{Session, Stop, World};
use crate::engine::{Admission, Answer, Baseline, Snapshot};
use crate::query::request::{DEFAULT_BYTES, MAX_BYTES, MIN_BYTES};
use crate::query::{self, Operation, Request, Response};
use crate::render::{budget, json, text};

use super::{policy, say_synced};

/// An answer and what it was compared with.
struct Compared {
    response: Response,
    built_at: Option<String>,
    commit: Option<String>,
}

/// Lists the files that changed since the generation before.
pub fn run(session: &mut Session, global: &Global, typed: &Comparison, world: &mut World<'_>) -> Result<Exit, Stop> {
    let max_bytes = max_bytes(typed)?;
    let engine = session.engine(global, &world.environment)?;
    let admission = Admission {
        on_stale: policy(typed.on_stale, engine.scope().on_stale()),
        expected_fingerprint: None,
        baseline: Baseline::Previous,
        limit: engine.scope().limits().query(),
    };
    let answer =
        engine.ask(admission, |snapshot| answer(snapshot, Operation::Changes)).map_err(|error| Failure::of_engine(&error))?;
    deliver(answer, max_bytes, global, world)
}

fn max_bytes(typed: &Comparison) -> Result<Option<usize>, Failure> {
    match typed.max_bytes.map(|bytes| bytes as usize) {
        Some(bytes) if !(MIN_BYTES..=MAX_BYTES).contains(&bytes) => {
            Err(Failure::usage(format!("--max-bytes takes a number from {MIN_BYTES} to {MAX_BYTES}")))
        }
        bytes => Ok(bytes),
    }
}

fn answer(snapshot: &Snapshot, operation: Operation) -> Result<Compared, Failure> {
    let response = query::run(snapshot, &Request::for_people(operation)).map_err(|error| Failure::of_query(&error))?;
    let commit = snapshot.baseline().and_then(|baseline| baseline.identity().commit.clone());
    Ok(Compared { response, built_at: snapshot.baseline_built_at(), commit })
}

/// Writes an answer and, for people, what it was compared with.
fn deliver(
    answer: Answer<Result<Compared, Failure>>,
    max_bytes: Option<usize>,
    global: &Global,
    world: &mut World<'_>,
) -> Result<Exit, Stop> {
    let Answer { value, checked, synced, .. } = answer;
    let Compared { response, built_at, commit } = value?;
    let exit = if response.items.is_empty() { Exit::NothingFound } else { Exit::Answered };
    let fitted = |response: Response, bytes: usize| budget::fit(response, bytes).map_err(|error| Failure::of_budget(&error));
    let options = text::Options { color: global.colored(world), source: false };
    let body = if global.json {
        format!("{}\n", json::encode(&fitted(response, max_bytes.unwrap_or(DEFAULT_BYTES))?))
    } else {
        let response = match max_bytes {
            Some(bytes) => fitted(response, bytes)?,
            None => budget::unbounded(response),
        };
        let mut body = text::answer(&response, options);
        if !global.quiet {
            let generation = response.before_fingerprint.as_deref().unwrap_or_default();
            let compared = text::Compared { generation, built_at: built_at.as_deref(), commit: commit.as_deref() };
            body.push_str(&text::compared(&compared, options));
            let (files, elapsed) = (checked.files, checked.elapsed);
            body.push_str(&text::checked(&text::Checked { files, elapsed, generation: &response.fingerprint }, options));
        }
        body
    };
    say_synced(synced.as_ref(), global, world)?;
    world.out.write_all(body.as_bytes())?;
    Ok(exit)
}
