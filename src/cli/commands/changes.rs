//! The questions that compare with an earlier generation: `changes` and `impact-changes`.
//!
//! Must not know which baseline may be used. Invariant: an answer for people says what it was compared with and when that was built.

use std::collections::BTreeSet;

use crate::cli::arguments::{Comparison, Global, ImpactChanges, Question};
use crate::cli::failure::{Exit, Failure};
use crate::cli::{Session, Stop, World};
use crate::config;
use crate::engine::{Admission, Answer, Baseline, EngineError, Guest, Snapshot, Unavailable};
use crate::model::{Fingerprint, PathPrefix, RepoPath};
use crate::query::request::{DEFAULT_BYTES, Paths};
use crate::query::{self, Differing, Operation, QueryError, Request, Response};
use crate::render::{budget, json, text};

use super::affected::read_paths;
use super::ask::{Bounds, bounds};
use super::place::{Place, Prefixes};
use super::{policy, say_synced};

/// Fewest digits by which a fingerprint is known.
const MIN_DIGITS: usize = 8;

/// An answer and what it was compared with.
pub(super) struct Compared {
    pub response: Response,
    pub built_at: Option<String>,
    pub commit: Option<String>,
}

/// What came through the gate, or why the question has no answer.
pub(super) type Comparing = Answer<Result<Compared, Failure>>;

/// Which changes are followed, as typed.
pub(super) struct Followed<'t> {
    pub paths: &'t [String],
    pub before: &'t str,
    /// The path that was typed to look below.
    pub below: Option<&'t str>,
    pub limit: usize,
}

/// Lists the files that changed since the generation before.
pub fn run(session: &mut Session, global: &Global, typed: &Comparison, world: &mut World<'_>) -> Result<Exit, Stop> {
    let bounds = bounds(&question(typed, None, None), false)?;
    let desk = session.desk(global, &world.environment)?;
    let answer = compare(&desk, policy(typed.on_stale, desk.scope().on_stale()), room(&bounds, global))?;
    deliver(answer, &bounds, false, global, world)
}

/// Lists what the changes of files reach.
pub fn run_impact(session: &mut Session, global: &Global, typed: &ImpactChanges, world: &mut World<'_>) -> Result<Exit, Stop> {
    let mut paths = typed.paths.clone();
    if typed.stdin {
        paths.extend(read_paths(world)?);
        if paths.is_empty() {
            // Not to be taken for the question without any path, which means everything.
            return if global.json { Err(Failure::usage("no path was given").into()) } else { Ok(Exit::NothingFound) };
        }
    }
    let bounds = bounds(&question(&typed.comparison, typed.path.clone(), typed.limit), false)?;
    let desk = session.desk(global, &world.environment)?;
    let place = Place::new(desk.scope().root(), &world.environment.current_dir);
    let on_stale = policy(typed.comparison.on_stale, desk.scope().on_stale());
    let followed = Followed { paths: &paths, before: &typed.before, below: typed.path.as_deref(), limit: bounds.limit };
    let answer = follow(&desk, &followed, &place, on_stale, room(&bounds, global))?;
    deliver(answer, &bounds, typed.source, global, world)
}

/// Asks a desk which files changed since the generation before.
pub(super) fn compare(desk: &Guest, on_stale: config::OnStale, room: usize) -> Result<Comparing, Failure> {
    let limit = desk.scope().limits().query();
    let admission = Admission { on_stale, expected_fingerprint: None, baseline: Baseline::Previous, limit };
    desk.ask(admission, |snapshot| answer(snapshot, Operation::Changes, room)).map_err(|error| Failure::of_engine(&error))
}

/// Asks a desk what changes reach, their paths as seen from a place.
pub(super) fn follow(
    desk: &Guest,
    followed: &Followed<'_>,
    place: &Place,
    on_stale: config::OnStale,
    room: usize,
) -> Result<Comparing, Failure> {
    let prefixes = place.prefixes(followed.below)?;
    let kept: BTreeSet<Fingerprint> = desk.kept().iter().map(|kept| kept.fingerprint).collect();
    let admission = Admission {
        on_stale,
        expected_fingerprint: None,
        baseline: baseline(followed.before, &kept)?,
        limit: desk.scope().limits().query(),
    };
    desk.ask(admission, |snapshot| {
        let prefix = prefix_of(snapshot, &prefixes)?;
        let changed = changed(snapshot, followed.paths, place, &prefix)?;
        let paths = Paths { paths: changed, prefix, limit: followed.limit };
        answer(snapshot, Operation::ImpactChanges(paths), room)
    })
    .map_err(|error| Failure::of_engine(&error))
}

fn question(typed: &Comparison, path: Option<String>, limit: Option<u32>) -> Question {
    Question { path, limit, depth: None, max_bytes: typed.max_bytes, on_stale: typed.on_stale }
}

/// People read as much as there is; only who asked for a limit in bytes has one.
fn room(bounds: &Bounds, global: &Global) -> usize {
    bounds.max_bytes.unwrap_or(if global.json { DEFAULT_BYTES } else { usize::MAX })
}

/// Returns which baseline was typed, one of the kept ones.
fn baseline(typed: &str, kept: &BTreeSet<Fingerprint>) -> Result<Baseline, Failure> {
    match typed {
        "previous" => return Ok(Baseline::Previous),
        "first" => return Ok(Baseline::First),
        _ => {}
    }
    let is_start =
        (MIN_DIGITS..=64).contains(&typed.len()) && typed.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if !is_start {
        return Err(Failure::usage(format!(
            "--before takes `previous`, `first`, or a fingerprint of which at least {MIN_DIGITS} lower-case digits are given"
        )));
    }
    let mut meant = kept.iter().filter(|fingerprint| fingerprint.hex().starts_with(typed));
    match (meant.next(), meant.next()) {
        (Some(fingerprint), None) => Ok(Baseline::Kept(*fingerprint)),
        (Some(_), Some(_)) => Err(Failure::usage(format!("several kept generations begin with `{typed}`; give more digits"))),
        // With nothing kept at all the gate says why.
        (None, _) if kept.is_empty() => Ok(Baseline::First),
        (None, _) => Err(Failure::of_engine(&EngineError::BaselineUnavailable(Unavailable::NotKept))),
    }
}

/// Returns the prefix that is meant: the one with files, now or before.
fn prefix_of(snapshot: &Snapshot, prefixes: &Prefixes) -> Result<PathPrefix, Failure> {
    let now = prefixes.in_generation(snapshot.generation())?;
    let holds = snapshot.generation().holds(&now).map_err(|error| Failure::of_query(&QueryError::Store(error)))?;
    match snapshot.baseline() {
        Some(before) if !holds => prefixes.in_generation(before),
        _ => Ok(now),
    }
}

/// Returns the changed files that are meant: each one typed, those below a typed directory, or all below the prefix.
fn changed(snapshot: &Snapshot, typed: &[String], place: &Place, prefix: &PathPrefix) -> Result<Vec<RepoPath>, Failure> {
    let before = snapshot.baseline().ok_or_else(|| Failure::of_query(&QueryError::NoBaseline))?;
    let differing =
        query::differing(before, snapshot.generation()).map_err(|error| Failure::of_query(&QueryError::Store(error)))?;
    let below = |directory: &str, path: &str| {
        directory.is_empty() || path.strip_prefix(directory).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let mut chosen: BTreeSet<&str> = BTreeSet::new();
    if typed.is_empty() {
        chosen.extend(differing.iter().map(|Differing { path, .. }| &**path).filter(|path| prefix.matches(path)));
    }
    for typed in typed {
        let found = place.candidates(typed).into_iter().find_map(|candidate| {
            let inside = differing.iter().map(|Differing { path, .. }| &**path).filter(|path| below(candidate.as_str(), path));
            let inside: Vec<&str> = inside.filter(|path| prefix.matches(path)).collect();
            (!inside.is_empty()).then_some(inside)
        });
        match found {
            Some(inside) => chosen.extend(inside),
            None => {
                let typed = text::clean(typed);
                let message = format!("{typed} did not change since the generation compared with, or is outside --path");
                return Err(Failure::new("code_target_missing", message));
            }
        }
    }
    let parsed = |path: &str| RepoPath::parse(path).map_err(|error| Failure::usage(error.to_string()));
    chosen.into_iter().map(parsed).collect()
}

fn answer(snapshot: &Snapshot, operation: Operation, room: usize) -> Result<Compared, Failure> {
    let request = Request { max_bytes: room, ..Request::new(operation) };
    let response = query::run(snapshot, &request).map_err(|error| Failure::of_query(&error))?;
    let commit = snapshot.baseline().and_then(|baseline| baseline.identity().commit.clone());
    Ok(Compared { response, built_at: snapshot.baseline_built_at(), commit })
}

/// Writes an answer and, for people, what it was compared with.
fn deliver(
    answer: Answer<Result<Compared, Failure>>,
    bounds: &Bounds,
    source: bool,
    global: &Global,
    world: &mut World<'_>,
) -> Result<Exit, Stop> {
    let Answer { value, checked, synced, .. } = answer;
    let Compared { response, built_at, commit } = value?;
    let exit = if response.is_nothing() { Exit::NothingFound } else { Exit::Answered };
    let fitted = |response: Response, bytes: usize| budget::fit(response, bytes).map_err(|error| Failure::of_budget(&error));
    let options = text::Options { color: global.colored(world), source, ..text::Options::default() };
    let body = if global.json {
        format!("{}\n", json::encode(&fitted(response, room(bounds, global))?))
    } else {
        let response = match bounds.max_bytes {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn baselines_as_they_are_typed() {
        let (one, two) =
            (Fingerprint([0xab; 32]), Fingerprint([[0xab; 31].as_slice(), &[0xcd]].concat().try_into().expect("32")));
        let three = Fingerprint([0x12; 32]);
        let kept = BTreeSet::from([one, two, three]);
        let check = |typed: &str, kept: &BTreeSet<Fingerprint>, want: Result<Baseline, &str>| {
            assert_eq!(baseline(typed, kept).map_err(|failure| failure.code), want, "{typed}");
        };
        check("previous", &kept, Ok(Baseline::Previous));
        check("first", &kept, Ok(Baseline::First));
        check("12121212", &kept, Ok(Baseline::Kept(three)));
        check(&one.hex(), &kept, Ok(Baseline::Kept(one)));
        check("abababab", &kept, Err("invalid_code_request"));
        check("1212121", &kept, Err("invalid_code_request"));
        check("1212121G", &kept, Err("invalid_code_request"));
        check("", &kept, Err("invalid_code_request"));
        check("00000000", &kept, Err("baseline_unavailable"));
        check("00000000", &BTreeSet::new(), Ok(Baseline::First));
    }
}
