//! The questions for people: `explore`, `symbols`, `map`, `read`, `callers`, `callees`, `impact`, `why`.
//!
//! Must not know how answers are laid out. Invariant: a name that means several things is never answered for one of them.

use std::path::Path;

use crate::cli::arguments::{Command, Global, Question};
use crate::cli::failure::{Exit, Failure};
use crate::cli::{Session, Stop, World};
use crate::config;
use crate::engine::{Answer, Guest, Snapshot};
use crate::model::{ContentHash, Fingerprint, PathPrefix, RepoPath};
use crate::query::request::{
    DEFAULT_BYTES, DEFAULT_DEPTH, DEFAULT_LIMIT, MAX_BYTES, MAX_DEPTH, MAX_LIMIT, MAX_QUERY, MAX_READ_LINES, MIN_BYTES,
    References, Relation,
};
use crate::query::{self, Operation, QueryError, Request, Response, Selection, select};
use crate::render::{budget, json, text};
use crate::store::{Generation, NodeRow};

use super::place::Place;
use super::{admission, policy, say_synced};

/// A question as typed, its values checked.
pub(super) struct Asked {
    pub subject: Subject,
    pub bounds: Bounds,
    /// The path that was typed to look below.
    pub path: Option<String>,
    /// Whether bodies are shown with relations.
    pub source: bool,
}

/// What is asked about. Symbols and files are looked up in the generation that answers.
pub(super) enum Subject {
    Explore(String),
    Symbols(String),
    Map,
    Read { typed: String, start_line: u64, end_line: u64 },
    Why { caller: String, name: Option<String> },
    Callers(String),
    Callees(String),
    Impact(String),
}

pub(super) struct Bounds {
    pub limit: usize,
    pub depth: u32,
    /// For people only when asked for.
    pub max_bytes: Option<usize>,
}

/// What came of a question.
pub(super) enum Found {
    Response(Box<Response>),
    Several { typed: String, choices: Vec<NodeRow>, total: usize, as_symbols: Box<Response> },
    None { typed: String, near: Vec<NodeRow> },
}

pub fn run(session: &mut Session, global: &Global, command: &Command, world: &mut World<'_>) -> Result<Exit, Stop> {
    let (asked, on_stale) = parse(command)?;
    let here = world.environment.current_dir.clone();
    let desk = session.desk(global, &world.environment)?;
    // People read as much as there is; only who asked for a limit in bytes has one.
    let room = asked.bounds.max_bytes.unwrap_or(if global.json { DEFAULT_BYTES } else { usize::MAX });
    let answer = inquire(&desk, &asked, policy(on_stale, desk.scope().on_stale()), &here, room)?;
    let options = text::Options { color: global.colored(world), source: asked.source, ..text::Options::default() };
    let Answer { value, checked, synced, .. } = answer;
    let (found, fingerprint) = value?;
    let (exit, mut body) = draw(found, &asked, global, options)?;
    if !global.json && !global.quiet {
        let (files, elapsed) = (checked.files, checked.elapsed);
        body.push_str(&text::checked(&text::Checked { files, elapsed, generation: &fingerprint.hex() }, options));
    }
    say_synced(synced.as_ref(), global, world)?;
    world.out.write_all(body.as_bytes())?;
    Ok(exit)
}

/// What came through the gate, in which generation, or why it has no answer.
pub(super) type Inquired = Answer<Result<(Found, Fingerprint), Failure>>;

/// Asks a question of a desk, as seen from a directory. Returns what was found, in which generation, for an answer of so many bytes.
pub(super) fn inquire(
    desk: &Guest,
    asked: &Asked,
    on_stale: config::OnStale,
    here: &Path,
    room: usize,
) -> Result<Inquired, Failure> {
    let place = Place::new(desk.scope().root(), here);
    let prefixes = place.prefixes(asked.path.as_deref())?;
    desk.ask(admission(desk, on_stale), |snapshot| {
        let prefix = prefixes.in_generation(snapshot.generation())?;
        find(snapshot, asked, &place, prefix, room).map(|found| (found, snapshot.generation().identity().fingerprint))
    })
    .map_err(|error| Failure::of_engine(&error))
}

/// Checks what was typed.
fn parse(command: &Command) -> Result<(Asked, Option<crate::cli::arguments::OnStale>), Failure> {
    let (question, subject, source) = match command {
        Command::Explore { query, question, source } => (question, Subject::Explore(words(query)?), *source),
        Command::Symbols { query, question } => (question, Subject::Symbols(words(query)?), false),
        Command::Callers(relation) => (&relation.question, Subject::Callers(symbol(&relation.symbol)?), relation.source),
        Command::Callees(relation) => (&relation.question, Subject::Callees(symbol(&relation.symbol)?), relation.source),
        Command::Impact(relation) => (&relation.question, Subject::Impact(symbol(&relation.symbol)?), relation.source),
        Command::Why { caller, name, question } => {
            let name = name.as_deref().map(symbol).transpose()?;
            (question, Subject::Why { caller: symbol(caller)?, name }, false)
        }
        Command::Map { question, .. } => (question, Subject::Map, false),
        Command::Read { place, question } => (question, place_to_read(place)?, false),
        _ => return Err(Failure::usage("this command is no question")),
    };
    let path = match command {
        Command::Map { prefix, question, .. } => one_prefix(prefix.as_ref(), question)?,
        _ => question.path.clone(),
    };
    let goes_deep = matches!(subject, Subject::Map | Subject::Impact(_));
    Ok((Asked { subject, bounds: bounds(question, goes_deep)?, path, source }, question.on_stale))
}

/// Returns the path to look below, which can be typed in two places.
pub(super) fn one_prefix(prefix: Option<&String>, question: &Question) -> Result<Option<String>, Failure> {
    match (prefix, &question.path) {
        (Some(_), Some(_)) => Err(Failure::usage("`map` takes its path once: as an argument or as --path")),
        (prefix, path) => Ok(prefix.or(path.as_ref()).cloned()),
    }
}

/// Checks the numbers of a question; `goes_deep` says whether a depth means anything to it.
pub(super) fn bounds(question: &Question, goes_deep: bool) -> Result<Bounds, Failure> {
    if question.depth.is_some() && !goes_deep {
        return Err(Failure::usage("--depth belongs to `impact` and `map`; this question has no depth to choose"));
    }
    let within = |flag: &str, value: Option<u32>, least: usize, most: usize| match value {
        Some(value) if !(least..=most).contains(&(value as usize)) => {
            Err(Failure::usage(format!("{flag} takes a number from {least} to {most}")))
        }
        value => Ok(value.map(|value| value as usize)),
    };
    Ok(Bounds {
        limit: within("--limit", question.limit, 1, MAX_LIMIT)?.unwrap_or(DEFAULT_LIMIT),
        depth: within("--depth", question.depth, 1, MAX_DEPTH as usize)?.map_or(DEFAULT_DEPTH, |depth| depth as u32),
        max_bytes: within("--max-bytes", question.max_bytes, MIN_BYTES, MAX_BYTES)?,
    })
}

fn words(query: &[String]) -> Result<String, Failure> {
    let text = query.join(" ");
    if text.trim().is_empty() || text.chars().count() > MAX_QUERY {
        return Err(Failure::usage(format!("the question takes 1 to {MAX_QUERY} characters that are not all blank")));
    }
    Ok(text)
}

fn symbol(typed: &str) -> Result<String, Failure> {
    if typed.trim().is_empty() || typed.chars().count() > MAX_QUERY {
        return Err(Failure::usage("the symbol is empty or too long"));
    }
    Ok(typed.trim().to_owned())
}

/// Reads `path`, `path:line` or `path:first-last`; a path alone means its first lines.
fn place_to_read(place: &str) -> Result<Subject, Failure> {
    let (path, lines) = place.rsplit_once(':').map_or((place, None), |(path, lines)| (path, Some(lines)));
    if path.is_empty() {
        return Err(Failure::usage("the path is empty"));
    }
    let number = |text: &str| match text.parse::<u64>() {
        Ok(number) if number > 0 => Ok(number),
        _ => Err(Failure::usage(format!("`{text}` is no line number"))),
    };
    let (start_line, end_line) = match lines.map(|lines| lines.split_once('-').unwrap_or((lines, lines))) {
        None => (1, MAX_READ_LINES),
        Some((first, last)) => (number(first)?, number(last)?),
    };
    if end_line < start_line || end_line - start_line >= MAX_READ_LINES {
        return Err(Failure::usage(format!("lines are given as `first-last`, at most {MAX_READ_LINES} of them")));
    }
    Ok(Subject::Read { typed: path.to_owned(), start_line, end_line })
}

/// Answers in one generation.
fn find(snapshot: &Snapshot, asked: &Asked, place: &Place, prefix: PathPrefix, room: usize) -> Result<Found, Failure> {
    let generation = snapshot.generation();
    let Bounds { limit, depth, .. } = asked.bounds;
    let operation = match &asked.subject {
        Subject::Explore(query) => Operation::Explore { query: query.clone(), prefix, limit },
        Subject::Symbols(query) => Operation::Symbols { query: query.clone(), prefix, limit },
        Subject::Map => Operation::Map { prefix, depth, limit },
        Subject::Read { typed, start_line, end_line } => {
            let (path, hash) = file_to_read(generation, place, typed)?;
            Operation::Read { path, file_sha256: hash, start_line: *start_line, end_line: *end_line }
        }
        Subject::Why { caller, name } => {
            let whole = |path| References { path, symbol_id: None, name: name.clone(), limit };
            // Where a path was typed, the caller is looked for there.
            match chosen(snapshot, caller, place, &prefix, limit, room)? {
                Ok(node) => {
                    Operation::Diagnostics(References { symbol_id: Some(node.symbol.hex()), ..whole(PathPrefix::default()) })
                }
                Err(Found::None { .. }) if folder(generation, place, caller, &prefix)?.is_some() => {
                    Operation::Diagnostics(whole(folder(generation, place, caller, &prefix)?.unwrap_or_default()))
                }
                Err(found) => return Ok(found),
            }
        }
        Subject::Callers(typed) | Subject::Callees(typed) | Subject::Impact(typed) => {
            // A prefix narrows the relations, and says nothing of where their subject is.
            let node = match chosen(snapshot, typed, place, &PathPrefix::default(), limit, room)? {
                Ok(node) => node,
                Err(found) => return Ok(found),
            };
            let relation = Relation { symbol_id: node.symbol.hex(), depth, prefix, limit };
            match &asked.subject {
                Subject::Callers(_) => Operation::Callers(relation),
                Subject::Impact(_) => Operation::Impact(relation),
                _ => Operation::Callees(relation),
            }
        }
    };
    Ok(Found::Response(answer(snapshot, operation, room)?))
}

/// Returns the one symbol that was typed, or what to answer instead.
fn chosen(
    snapshot: &Snapshot,
    typed: &str,
    place: &Place,
    prefix: &PathPrefix,
    limit: usize,
    room: usize,
) -> Result<Result<Box<NodeRow>, Found>, Failure> {
    let from_root = place.symbol(snapshot.generation(), typed)?;
    let selection = select(snapshot.generation(), &from_root, prefix);
    let typed = typed.to_owned();
    Ok(match selection.map_err(|error| Failure::of_query(&QueryError::Store(error)))? {
        Selection::One(node) => Ok(node),
        Selection::None { near } => Err(Found::None { typed, near }),
        Selection::Several { choices, total } => {
            let query = from_root.into_owned();
            let as_symbols = answer(snapshot, Operation::Symbols { query, prefix: prefix.clone(), limit }, room)?;
            Err(Found::Several { typed, choices, total, as_symbols })
        }
    })
}

/// Returns the folder that was typed, when it has files.
fn folder(generation: &Generation, place: &Place, typed: &str, within: &PathPrefix) -> Result<Option<PathPrefix>, Failure> {
    let Ok(prefixes) = place.prefixes(Some(typed)) else { return Ok(None) };
    let found = prefixes.in_generation(generation)?;
    let is_there = generation.holds(&found).map_err(|error| Failure::of_query(&QueryError::Store(error)))?;
    Ok((is_there && within.matches(found.as_str())).then_some(found))
}

/// Returns the file to read and its digest in the generation.
fn file_to_read(generation: &Generation, place: &Place, typed: &str) -> Result<(RepoPath, ContentHash), Failure> {
    let missing = |message: String| Failure::new("code_target_missing", message);
    let candidates = place.candidates(typed);
    if candidates.is_empty() {
        let why =
            RepoPath::parse(typed).err().map_or_else(|| "the path is outside the worktree".to_owned(), |error| error.to_string());
        return Err(Failure::usage(why));
    }
    let Some(path) = place.file(generation, typed)? else {
        return Err(missing(format!("there is no file {} in the index", text::clean(typed))));
    };
    let file = generation.file(path.as_str()).map_err(|error| Failure::of_query(&QueryError::Store(error)))?;
    match file.map(|file| (file.hash, file.omitted)) {
        Some((Some(hash), None)) => Ok((path, hash)),
        found => {
            let why =
                found.and_then(|(_, omitted)| omitted).map_or_else(|| "unreadable".to_owned(), |omitted| omitted.to_string());
            Err(missing(format!("{path} is not indexed ({why})")))
        }
    }
}

fn answer(snapshot: &Snapshot, operation: Operation, room: usize) -> Result<Box<Response>, Failure> {
    let request = Request { max_bytes: room, ..Request::new(operation) };
    let response = query::run(snapshot, &request).map_err(|error| Failure::of_query(&error))?;
    Ok(Box::new(response))
}

/// Returns the exit and the text of what was found.
fn draw(found: Found, asked: &Asked, global: &Global, options: text::Options) -> Result<(Exit, String), Failure> {
    let fitted = |response: Response, bytes: usize| budget::fit(response, bytes).map_err(|error| Failure::of_budget(&error));
    let bytes = asked.bounds.max_bytes;
    match found {
        Found::Response(response) => {
            let exit = if response.is_nothing() { Exit::NothingFound } else { Exit::Answered };
            let body = if global.json {
                format!("{}\n", json::encode(&fitted(*response, bytes.unwrap_or(DEFAULT_BYTES))?))
            } else {
                let response = match bytes {
                    Some(bytes) => fitted(*response, bytes)?,
                    None => budget::unbounded(*response),
                };
                text::answer(&response, options)
            };
            Ok((exit, body))
        }
        // A caller that reads JSON chooses among `symbols`.
        Found::Several { as_symbols, .. } if global.json => {
            let response = fitted(*as_symbols, bytes.unwrap_or(DEFAULT_BYTES))?;
            Ok((Exit::NothingFound, format!("{}\n", json::encode(&response))))
        }
        Found::Several { typed, choices, total, .. } => Ok((Exit::NothingFound, text::choices(&typed, &choices, total, options))),
        Found::None { typed, .. } if global.json => {
            Err(Failure::new("code_target_missing", format!("nothing is named `{typed}`")))
        }
        Found::None { typed, near } => Ok((Exit::NothingFound, text::nothing_named(&typed, &near, options))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_to_read() {
        let check = |place: &str, want: Option<(&str, u64, u64)>| {
            let found = match place_to_read(place) {
                Ok(Subject::Read { typed, start_line, end_line }) => Some((typed, start_line, end_line)),
                _ => None,
            };
            assert_eq!(found, want.map(|(path, start, end)| (path.to_owned(), start, end)), "{place}");
        };
        check("a/b.py", Some(("a/b.py", 1, 200)));
        check("./a.py:7", Some(("./a.py", 7, 7)));
        check("a.py:480-520", Some(("a.py", 480, 520)));
        for bad in ["", "a.py:", "a.py:0", "a.py:5-2", "a.py:1-201", "a.py:x", "a.py:1-"] {
            check(bad, None);
        }
    }
}
