//! `query`: one request of the wire contract in, its answer or its error out.
//!
//! Must not know any operation. Invariant: nothing beside the answer's JSON is ever written to standard output.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::cli::arguments::{Global, OnStale};
use crate::cli::failure::{Exit, Failure};
use crate::cli::{Session, Stop, World};
use crate::config;
use crate::engine::{Admission, Baseline};
use crate::query::request::{self, MAX_BODY};
use crate::query::{self, Operation, Request};
use crate::render::{budget, json};

use super::policy;
use super::status::json as to_json;

pub fn run(
    session: &mut Session,
    global: &Global,
    file: &Path,
    on_stale: Option<OnStale>,
    world: &mut World<'_>,
) -> Result<Exit, Stop> {
    let body = read_body(file, world)?;
    let request = request::parse(&body).map_err(|error| Failure::of_request(&error))?;
    session.desk(global, &world.environment)?;
    // An implicit scope syncs for people; a strict caller has said nothing of the kind.
    let implicit = session.is_implicit();
    let desk = session.desk(global, &world.environment)?;
    if request.operation == Operation::Status {
        let status = desk.status();
        if let (Some(expected), Some(found)) = (request.expected_fingerprint, &status.fingerprint)
            && expected.hex() != *found
        {
            return Err(Failure::new("code_changed", "the fingerprint is not what the request expects").into());
        }
        writeln!(world.out, "{}", to_json(&status))?;
        return Ok(Exit::Answered);
    }
    let scope_policy = if implicit { config::OnStale::Refuse } else { desk.scope().on_stale() };
    let admission = Admission {
        on_stale: policy(on_stale, scope_policy),
        expected_fingerprint: request.expected_fingerprint,
        baseline: baseline(&request),
        limit: desk.scope().limits().query(),
    };
    let answer = desk
        .ask(admission, |snapshot| {
            let response = query::run(snapshot, &request).map_err(|error| Failure::of_query(&error))?;
            budget::fit(response, request.max_bytes).map_err(|error| Failure::of_budget(&error))
        })
        .map_err(|error| Failure::of_engine(&error))?;
    writeln!(world.out, "{}", json::encode(&answer.value?))?;
    Ok(Exit::Answered)
}

/// Returns what the answer compares with.
fn baseline(request: &Request) -> Baseline {
    match (&request.operation, request.before_fingerprint) {
        (Operation::Changes, _) => Baseline::Previous,
        (_, Some(fingerprint)) => Baseline::Kept(fingerprint),
        _ => Baseline::None,
    }
}

/// Reads no more than decides whether the body is too large.
fn read_body(file: &Path, world: &mut World<'_>) -> Result<Vec<u8>, Failure> {
    let mut body = Vec::new();
    let most = MAX_BODY as u64 + 1;
    let read = if file.as_os_str() == "-" {
        world.input.take(most).read_to_end(&mut body)
    } else {
        File::open(world.environment.current_dir.join(file)).and_then(|file| file.take(most).read_to_end(&mut body))
    };
    read.map_err(|error| Failure::usage(format!("the request file cannot be read: {error}")))?;
    Ok(body)
}
