//! `tests`: the paths of the test files that a change of source files may break, and nothing else on standard output, so that a test runner
//! can take them as they are.
//!
//! Must not know how tests are found. Invariant: a path that cannot be followed is named and never counted as one without tests, and
//! "none" is not said where a limit was met.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::io::Read;

use crate::cli::arguments::{Global, Question};
use crate::cli::failure::{Exit, Failure};
use crate::cli::{Session, Stop, World};
use crate::config;
use crate::engine::{Answer, Guest, Snapshot};
use crate::model::{Fingerprint, PathPrefix, RepoPath};
use crate::query::request::{DEFAULT_BYTES, Paths};
use crate::query::response::NotFollowed;
use crate::query::{self, Operation, QueryError, Request, Response, Status, standing};
use crate::render::{budget, json, text};

use super::ask::bounds;
use super::place::Place;
use super::{admission, policy, say_synced};

/// Most bytes of paths that are read from standard input.
const MAX_INPUT: u64 = 16 << 20;

/// What came of the question: the answer about the paths that could be followed, if any, and the others.
pub(super) struct Found {
    pub response: Option<Box<Response>>,
    pub not_followed: Vec<NotFollowed>,
}

pub fn run(
    session: &mut Session,
    global: &Global,
    typed: &[String],
    stdin: bool,
    question: &Question,
    world: &mut World<'_>,
) -> Result<Exit, Stop> {
    let mut typed = typed.to_vec();
    if stdin {
        typed.extend(read_paths(world)?);
    }
    if typed.is_empty() {
        // A change of nothing has no tests; in JSON there is no answer of the contract that says so.
        return if global.json { Err(Failure::usage("no path was given").into()) } else { Ok(Exit::NothingFound) };
    }
    let mut bounds = bounds(question, false)?;
    if question.limit.is_none() && !global.json {
        // A runner must get all of them.
        bounds.limit = usize::MAX;
    }
    let desk = session.desk(global, &world.environment)?;
    let place = Place::new(desk.scope().root(), &world.environment.current_dir);
    let room = bounds.max_bytes.unwrap_or(if global.json { DEFAULT_BYTES } else { usize::MAX });
    let on_stale = policy(question.on_stale, desk.scope().on_stale());
    let answer = inquire(&desk, &typed, &place, question.path.as_deref(), on_stale, bounds.limit, room)?;
    let Answer { value, checked, synced, .. } = answer;
    let (Found { response, not_followed }, fingerprint) = value?;
    say_synced(synced.as_ref(), global, world)?;
    for NotFollowed { path, reason } in &not_followed {
        writeln!(world.err, "not followed: {} ({})", text::clean(path), why(reason))?;
    }
    let unfollowed = || Failure::of_missing_paths("no test was found, but not every path could be followed");
    let Some(response) = response else { return Err(unfollowed().into()) };
    // What finds no room in JSON was found all the same; who reads paths alone must not take its absence for an answer.
    let (is_none, is_cut);
    if global.json {
        (is_none, is_cut) = (response.items.is_empty(), response.status == Status::Partial);
        let response = budget::fit(*response, room).map_err(|error| Failure::of_budget(&error))?;
        writeln!(world.out, "{}", json::encode(&response))?;
    } else {
        let response = match bounds.max_bytes {
            Some(bytes) => budget::fit(*response, bytes).map_err(|error| Failure::of_budget(&error))?,
            None => *response,
        };
        (is_none, is_cut) = (response.items.is_empty(), response.status == Status::Partial);
        let paths: BTreeSet<String> = response.items.iter().map(|item| place.seen_from_here(&item.path)).collect();
        for path in paths {
            writeln!(world.out, "{}", as_argument(&path))?;
        }
        if !global.quiet {
            for remark in text::test_remarks(&response, text::Options::default()) {
                writeln!(world.err, "{remark}")?;
            }
            let (files, elapsed) = (checked.files, checked.elapsed);
            let checked = text::Checked { files, elapsed, generation: &fingerprint.hex() };
            write!(world.err, "{}", text::checked(&checked, text::Options::default()))?;
        }
    }
    match (is_none, is_cut) {
        (false, _) => Ok(Exit::Answered),
        (true, true) => {
            writeln!(world.err, "no test could be named before a limit was met; there may be some")?;
            Ok(Exit::Failed)
        }
        (true, false) if !not_followed.is_empty() => Err(unfollowed().into()),
        (true, false) => Ok(Exit::NothingFound),
    }
}

/// What came through the gate, in which generation, or why it has no answer.
pub(super) type Inquired = Answer<Result<(Found, Fingerprint), Failure>>;

/// Asks a desk about paths as they are seen from a place, below a path if one was typed.
pub(super) fn inquire(
    desk: &Guest,
    typed: &[String],
    place: &Place,
    below: Option<&str>,
    on_stale: config::OnStale,
    limit: usize,
    room: usize,
) -> Result<Inquired, Failure> {
    let prefixes = place.prefixes(below)?;
    desk.ask(admission(desk, on_stale), |snapshot| {
        let fingerprint = snapshot.generation().identity().fingerprint;
        let prefix = prefixes.in_generation(snapshot.generation())?;
        find(snapshot, typed, place, &prefix, limit, room).map(|found| (found, fingerprint))
    })
    .map_err(|error| Failure::of_engine(&error))
}

/// Asks about the paths that are source files of the generation.
fn find(
    snapshot: &Snapshot,
    typed: &[String],
    place: &Place,
    prefix: &PathPrefix,
    limit: usize,
    room: usize,
) -> Result<Found, Failure> {
    let mut paths: BTreeSet<RepoPath> = BTreeSet::new();
    let mut not_followed: Vec<NotFollowed> = Vec::new();
    let mut failed = |path: &str, reason: &str| {
        let entry = NotFollowed { path: path.to_owned(), reason: reason.into() };
        if !not_followed.contains(&entry) {
            not_followed.push(entry);
        }
    };
    for typed in typed {
        let candidates = place.candidates(typed);
        let mut reason = None;
        for path in &candidates {
            let found = standing(snapshot.generation(), path).map_err(|error| Failure::of_query(&QueryError::Store(error)))?;
            reason = match found.reason() {
                None if !prefix.matches(path.as_str()) => Some("outside_path".into()),
                None => {
                    paths.insert(path.clone());
                    None
                }
                reason => reason,
            };
            // What is not there as seen from here may be there as seen from the root.
            if reason.as_deref() != Some("not_indexed") {
                break;
            }
        }
        match reason {
            // No file of such a name is ever indexed, wherever it lies.
            _ if candidates.is_empty() && typed.contains([':', '\\']) => failed(typed, "unrepresentable_path"),
            _ if candidates.is_empty() => failed(typed, "outside_worktree"),
            Some(reason) => failed(typed, &reason),
            None => {}
        }
    }
    not_followed.sort_by(|left, right| left.path.cmp(&right.path));
    if paths.is_empty() {
        return Ok(Found { response: None, not_followed });
    }
    let paths = Paths { paths: paths.into_iter().collect(), prefix: prefix.clone(), limit };
    let request = Request { max_bytes: room, ..Request::new(Operation::AffectedTests(paths)) };
    let mut response = query::run(snapshot, &request).map_err(|error| Failure::of_query(&error))?;
    if !not_followed.is_empty() {
        response.coverage.paths_not_followed = Some(not_followed.clone());
    }
    Ok(Found { response: Some(Box::new(response)), not_followed })
}

/// Reads paths from standard input.
pub(super) fn read_paths(world: &mut World<'_>) -> Result<Vec<String>, Failure> {
    let mut input = Vec::new();
    let read = world.input.take(MAX_INPUT + 1).read_to_end(&mut input);
    read.map_err(|error| Failure::usage(format!("the paths cannot be read from standard input: {error}")))?;
    if input.len() as u64 > MAX_INPUT {
        return Err(Failure::usage(format!("standard input holds more than {MAX_INPUT} bytes of paths")));
    }
    Ok(listed(&input))
}

/// Returns the paths of a list: one a line, as Git prints them, quoted where they hold unusual bytes; or each ended by a NUL and never
/// quoted, as `git diff -z` does. Bytes that are no text stay to be named, as such a path is in no index.
fn listed(input: &[u8]) -> Vec<String> {
    let text = |path: &[u8]| String::from_utf8_lossy(path).into_owned();
    if input.contains(&0) {
        return input.split(|byte| *byte == 0).filter(|path| !path.is_empty()).map(text).collect();
    }
    let lines = input.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    let path = |line: &[u8]| match gix::quote::ansi_c::undo(line.into()) {
        Ok((path, used)) if used == line.len() => text(&path),
        // It only begins like one that is quoted.
        _ => text(line),
    };
    lines.filter(|line| !line.is_empty()).map(path).collect()
}

/// Returns a path that no program takes for a flag, on one line whatever it holds.
fn as_argument(path: &str) -> Cow<'_, str> {
    if path.contains('\n') {
        Cow::Owned(gix::quote::ansi_c::quote(path.into()).to_string())
    } else if path.starts_with('-') {
        Cow::Owned(format!("./{path}"))
    } else {
        Cow::Borrowed(path)
    }
}

pub(super) fn why(reason: &str) -> &str {
    match reason {
        "not_indexed" => "not in the index: deleted, ignored, a directory or never there",
        "not_source" => "not source code",
        "outside_path" => "outside --path",
        "outside_worktree" => "outside the worktree",
        word => word,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_as_they_are_listed() {
        let check = |input: &[u8], want: &[&str]| assert_eq!(listed(input), want, "{}", input.escape_ascii());
        check(b"", &[]);
        check(b"a.py\n\nb c.py\r\n-d.py", &["a.py", "b c.py", "-d.py"]);
        check(b"\"na\\303\\257ve.py\"\n\"a\\\"b\\\\c\\td.py\"\r\n", &["naïve.py", "a\"b\\c\td.py"]);
        check(b"\"open.py\n\"a\"b.py\n\"bad\\9.py\"", &["\"open.py", "\"a\"b.py", "\"bad\\9.py\""]);
        check(b"a.py\0\"b\".py\0c\nd.py\0", &["a.py", "\"b\".py", "c\nd.py"]);
        check(b"\xff.py\na.py\n", &["\u{fffd}.py", "a.py"]);
    }

    #[test]
    fn paths_as_arguments() {
        let check = |path: &str, want: &str| assert_eq!(as_argument(path), want);
        check("a b/naïve_test.py", "a b/naïve_test.py");
        check("-k_test.py", "./-k_test.py");
        check("a/-k_test.py", "a/-k_test.py");
        check("new\nline_test.py", "\"new\\nline_test.py\"");
    }
}
