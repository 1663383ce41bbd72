//! The questions for people: `explore`, `symbols`, `map`, `read`, `callers`, `callees`, `impact`.
//!
//! Must not know how answers are laid out. Invariant: a name that means several things is never answered for one of them.

use crate::cli::arguments::{Command, Global, Question};
use crate::cli::failure::{Exit, Failure};
use crate::cli::{Session, Stop, World};
use crate::engine::{Admission, Answer, Baseline, Snapshot};
use crate::model::{PathPrefix, RepoPath};
use crate::query::request::{
    DEFAULT_BYTES, DEFAULT_DEPTH, DEFAULT_LIMIT, MAX_BYTES, MAX_DEPTH, MAX_LIMIT, MAX_QUERY, MAX_READ_LINES, MIN_BYTES, Relation,
};
use crate::query::{self, Operation, QueryError, Request, Response, Selection, select};
use crate::render::{budget, json, text};
use crate::store::NodeRow;

use super::{policy, say_synced};

/// A question as typed, its values checked.
struct Asked {
    subject: Subject,
    bounds: Bounds,
    /// Whether bodies are shown with relations.
    source: bool,
}

/// What is asked about. Symbols and files are looked up in the generation that answers.
enum Subject {
    Explore(String),
    Symbols(String),
    Map,
    Read { path: RepoPath, start_line: u64, end_line: u64 },
    Callers(String),
    Callees(String),
    Impact(String),
}

pub(super) struct Bounds {
    pub prefix: PathPrefix,
    pub limit: usize,
    pub depth: u32,
    /// For people only when asked for.
    pub max_bytes: Option<usize>,
}

/// What came of a question.
enum Found {
    Response(Box<Response>),
    Several { typed: String, choices: Vec<NodeRow>, total: usize, as_symbols: Box<Response> },
    None { typed: String, near: Vec<NodeRow> },
}

pub fn run(session: &mut Session, global: &Global, command: &Command, world: &mut World<'_>) -> Result<Exit, Stop> {
    let (asked, on_stale) = parse(command)?;
    let engine = session.engine(global, &world.environment)?;
    let admission = Admission {
        on_stale: policy(on_stale, engine.scope().on_stale()),
        expected_fingerprint: None,
        baseline: Baseline::None,
        limit: engine.scope().limits().query(),
    };
    // People read as much as there is; only who asked for a limit in bytes has one.
    let room = asked.bounds.max_bytes.unwrap_or(if global.json { DEFAULT_BYTES } else { usize::MAX });
    let answer = engine
        .ask(admission, |snapshot| {
            find(snapshot, &asked, room).map(|found| (found, snapshot.generation().identity().fingerprint))
        })
        .map_err(|error| Failure::of_engine(&error))?;
    let options = text::Options { color: global.colored(world), source: asked.source };
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

/// Checks what was typed.
fn parse(command: &Command) -> Result<(Asked, Option<crate::cli::arguments::OnStale>), Failure> {
    let (question, subject, source) = match command {
        Command::Explore { query, question, source } => (question, Subject::Explore(words(query)?), *source),
        Command::Symbols { query, question } => (question, Subject::Symbols(words(query)?), false),
        Command::Callers(relation) => (&relation.question, Subject::Callers(symbol(&relation.symbol)?), relation.source),
        Command::Callees(relation) => (&relation.question, Subject::Callees(symbol(&relation.symbol)?), relation.source),
        Command::Impact(relation) => (&relation.question, Subject::Impact(symbol(&relation.symbol)?), relation.source),
        Command::Map { question, .. } => (question, Subject::Map, false),
        Command::Read { place, question } => (question, place_to_read(place)?, false),
        _ => return Err(Failure::usage("this command is no question")),
    };
    let prefix = match command {
        Command::Map { prefix: Some(prefix), question } => {
            if question.path.is_some() {
                return Err(Failure::usage("`map` takes its path once: as an argument or as --path"));
            }
            prefix_of(prefix)?
        }
        _ => prefix_of(question.path.as_deref().unwrap_or_default())?,
    };
    Ok((Asked { subject, bounds: bounds(question, prefix)?, source }, question.on_stale))
}

pub(super) fn bounds(question: &Question, prefix: PathPrefix) -> Result<Bounds, Failure> {
    let within = |flag: &str, value: Option<u32>, least: usize, most: usize| match value {
        Some(value) if !(least..=most).contains(&(value as usize)) => {
            Err(Failure::usage(format!("{flag} takes a number from {least} to {most}")))
        }
        value => Ok(value.map(|value| value as usize)),
    };
    Ok(Bounds {
        prefix,
        limit: within("--limit", question.limit, 1, MAX_LIMIT)?.unwrap_or(DEFAULT_LIMIT),
        depth: within("--depth", question.depth, 1, MAX_DEPTH as usize)?.map_or(DEFAULT_DEPTH, |depth| depth as u32),
        max_bytes: within("--max-bytes", question.max_bytes, MIN_BYTES, MAX_BYTES)?,
    })
}

/// Reads a path prefix as people type it: a trailing `/` and `.` are allowed.
pub(super) fn prefix_of(typed: &str) -> Result<PathPrefix, Failure> {
    let plain = typed.strip_prefix("./").unwrap_or(typed).trim_end_matches('/');
    let plain = if plain == "." || typed == "./" { "" } else { plain };
    if plain.is_empty() && typed.starts_with('/') {
        return Err(Failure::usage("the path is absolute; give one relative to the root of the worktree"));
    }
    PathPrefix::parse(plain).map_err(|error| Failure::usage(error.to_string()))
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
    let path = path.strip_prefix("./").unwrap_or(path);
    let path = RepoPath::parse(path).map_err(|error| Failure::usage(error.to_string()))?;
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
    Ok(Subject::Read { path, start_line, end_line })
}

/// Answers in one generation.
fn find(snapshot: &Snapshot, asked: &Asked, room: usize) -> Result<Found, Failure> {
    let Bounds { prefix, limit, depth, .. } = &asked.bounds;
    let (prefix, limit, depth) = (prefix.clone(), *limit, *depth);
    let operation = match &asked.subject {
        Subject::Explore(query) => Operation::Explore { query: query.clone(), prefix, limit },
        Subject::Symbols(query) => Operation::Symbols { query: query.clone(), prefix, limit },
        Subject::Map => Operation::Map { prefix, depth, limit },
        Subject::Read { path, start_line, end_line } => {
            let failed = |error| Failure::of_query(&QueryError::Store(error));
            let file = snapshot.generation().file(path.as_str()).map_err(failed)?;
            let hash = match file {
                Some(file) => match (file.hash, file.omitted) {
                    (Some(hash), None) => hash,
                    (_, omitted) => {
                        let why = omitted.as_deref().unwrap_or("unreadable").to_owned();
                        return Err(Failure::new("code_target_missing", format!("{path} is not indexed ({why})")));
                    }
                },
                None => return Err(Failure::new("code_target_missing", format!("there is no file {path} in the index"))),
            };
            Operation::Read { path: path.clone(), file_sha256: hash, start_line: *start_line, end_line: *end_line }
        }
        Subject::Callers(typed) | Subject::Callees(typed) | Subject::Impact(typed) => {
            // A prefix narrows the relations, and says nothing of where their subject is.
            let selection = select(snapshot.generation(), typed, &PathPrefix::default());
            let node = match selection.map_err(|error| Failure::of_query(&QueryError::Store(error)))? {
                Selection::One(node) => node,
                Selection::None { near } => return Ok(Found::None { typed: typed.clone(), near }),
                Selection::Several { choices, total } => {
                    let query = typed.clone();
                    let as_symbols = answer(snapshot, Operation::Symbols { query, prefix: PathPrefix::default(), limit }, room)?;
                    return Ok(Found::Several { typed: typed.clone(), choices, total, as_symbols });
                }
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
                Ok(Subject::Read { path, start_line, end_line }) => Some((path.to_string(), start_line, end_line)),
                _ => None,
            };
            assert_eq!(found, want.map(|(path, start, end)| (path.to_owned(), start, end)), "{place}");
        };
        check("a/b.py", Some(("a/b.py", 1, 200)));
        check("./a.py:7", Some(("a.py", 7, 7)));
        check("a.py:480-520", Some(("a.py", 480, 520)));
        for bad in ["", "a.py:", "a.py:0", "a.py:5-2", "a.py:1-201", "a.py:x", "../a.py", "/a.py", "a.py:1-"] {
            check(bad, None);
        }
    }

    #[test]
    fn prefixes_as_people_type_them() {
        let check = |typed: &str, want: Option<&str>| {
            assert_eq!(prefix_of(typed).ok().as_ref().map(PathPrefix::as_str), want, "{typed}");
        };
        for (typed, want) in [("", ""), (".", ""), ("./", ""), ("src/", "src"), ("./src/a", "src/a")] {
            check(typed, Some(want));
        }
        for bad in ["/", "/etc", "..", "a/../b", "a\\b"] {
            check(bad, None);
        }
    }
}
