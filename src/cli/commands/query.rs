//! `query`: one request of the wire contract in, its answer or its error out.
//!
//! Must not know any operation. Invariant: nothing beside the answer's JSON is ever written to standard output.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::cli::arguments::{Global, OnStale};
use crate::cli::failure::{Exit, Failure};
use crate::cli::{Session, Stop, World};
use crate::query::request::{self, MAX_BODY};
use crate::server::answer;

use super::policy;

pub fn run(
    session: &mut Session,
    global: &Global,
    file: &Path,
    on_stale: Option<OnStale>,
    world: &mut World<'_>,
) -> Result<Exit, Stop> {
    let sent = read_body(file, world)?;
    let request = request::parse(&sent).map_err(|error| Failure::of_request(&error))?;
    session.desk(global, &world.environment)?;
    // An implicit scope syncs for people; a strict caller has said nothing of the kind.
    let implicit = session.is_implicit();
    let desk = session.desk(global, &world.environment)?;
    let on_stale = policy(on_stale, answer::strict_policy(&desk, implicit));
    let body = answer::answer(&desk, &request, on_stale, desk.scope().limits().query());
    let body = body.map_err(|refusal| Failure::new(refusal.code, refusal.message))?;
    writeln!(world.out, "{body}")?;
    Ok(Exit::Answered)
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
