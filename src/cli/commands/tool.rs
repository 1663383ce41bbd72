//! `tool`: one call of a tool that agents have, its arguments on standard input, what came of it on standard output. The server for agents
//! calls the program so, in the daemon where there is one.
//!
//! Must not know the protocol that agents speak. Invariant: the structured part of an answer is what the same question gives as `--json`,
//! and its text what it gives to people, within the same budget.

use std::io::Read;
use std::path::Path;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::cli::arguments::Global;
use crate::cli::failure::{Exit, Failure};
use crate::cli::{Session, Stop, World};
use crate::config::{Environment, OnStale};
use crate::engine::{Answer, BuildOutcome, Checked, Guest, StatusWord};
use crate::model::Fingerprint;
use crate::query::Response;
use crate::query::request::MAX_READ_LINES;
use crate::render::{budget, json, text};
use crate::server::http;
use crate::server::mcp::{Arguments, Declaration, Outcome, Unanswered, declared};

use super::affected::{self, why};
use super::ask::{self, Asked, Bounds, Found, Subject};
use super::build;
use super::changes::{self, Compared, Followed};
use super::place::Place;
use super::status;

/// More than this is no call of a tool.
const MOST_INPUT: u64 = 1 << 20;

/// A client of a service that calls a tool.
#[derive(Clone, Copy)]
pub struct Client<'c> {
    /// The scope that it may ask.
    pub scope: &'c str,
    /// Whether it may have the index built or brought up to date.
    pub may_sync: bool,
}

pub fn run(
    session: &mut Session,
    global: &Global,
    name: &str,
    client: Option<Client<'_>>,
    world: &mut World<'_>,
) -> Result<Exit, Stop> {
    let tool = declared(name).ok_or_else(|| Failure::usage("there is no such tool"))?;
    let mut input = Vec::new();
    let read = world.input.take(MOST_INPUT + 1).read_to_end(&mut input);
    read.map_err(|error| Failure::usage(format!("the arguments cannot be read: {error}")))?;
    let given: Map<String, Value> =
        serde_json::from_slice(&input).map_err(|_| Failure::usage("the arguments are no JSON object"))?;
    let outcome = perform(session, global, tool, &given, client, &world.environment);
    writeln!(world.out, "{}", status::json(&outcome))?;
    Ok(Exit::Answered)
}

/// Calls a tool. Whatever goes wrong is part of what comes of it.
fn perform(
    session: &mut Session,
    global: &Global,
    tool: &'static Declaration,
    given: &Map<String, Value>,
    client: Option<Client<'_>>,
    environment: &Environment,
) -> Outcome {
    let found = Arguments::read(tool, given)
        .map_err(|error| Failure::usage(error.to_string()))
        .and_then(|arguments| answer(session, global, tool, &arguments, client, environment));
    found.unwrap_or_else(|failure| without_answer(&failure, client.is_some()))
}

/// Returns what is said in place of an answer. Clients of a service are told what is wrong with their own words, and nothing of the machine.
fn without_answer(failure: &Failure, is_served: bool) -> Outcome {
    const OF_REQUESTS: [&str; 4] = ["invalid_code_request", "budget_too_small", "code_target_missing", "code_range_missing"];
    let is_told = !is_served || OF_REQUESTS.contains(&failure.code);
    Outcome::without_answer(&Unanswered {
        code: failure.code,
        message: if is_told { &failure.message } else { http::sentence_of(failure.code) },
        hint: failure.hint_for_agents(),
        failed: !failure.is_expected(),
    })
}

fn answer(
    session: &mut Session,
    global: &Global,
    tool: &'static Declaration,
    arguments: &Arguments,
    client: Option<Client<'_>>,
    environment: &Environment,
) -> Result<Outcome, Failure> {
    let directory = arguments.text("root").map(|root| environment.current_dir.join(root));
    let desk = match (&directory, arguments.text("scope")) {
        (Some(directory), _) => session.desk_at(global, directory, environment)?,
        (None, Some(scope)) => session.desk_named(global, scope, environment)?,
        (None, None) => session.desk(global, environment)?,
    };
    // The configuration may have given the place another name, or none, since it was said who may ask.
    if client.is_some_and(|client| client.scope != desk.scope().id()) {
        return Err(Failure::new("code_repository_unconfigured", "no such scope is configured here"));
    }
    // A client of a service has said nothing of a sync, and a scope that stands in no configuration neither.
    let policy = if client.is_some() && session.is_implicit() { OnStale::Refuse } else { desk.scope().on_stale() };
    let may_build = client.is_none_or(|client| client.may_sync) && session.indexes_for_agents();
    let call = Call {
        arguments,
        desk: &desk,
        policy,
        is_served: client.is_some(),
        here: directory.as_deref().unwrap_or(&environment.current_dir),
    };
    let ask = || match tool.name {
        "status" => Ok(call.status()),
        "sync" => call.sync(),
        "tests" => call.tests(),
        "changes" => call.changes(),
        _ => call.question(tool.name),
    };
    match ask() {
        Err(failure) if failure.code == "code_index_missing" && may_build => {
            let built = desk.sync().map_err(|error| Failure::of_engine(&error))?;
            let mut outcome = ask()?;
            outcome.text.insert_str(0, &format!("there was no index; it was built: {}\n", build::counts(&built)));
            Ok(outcome)
        }
        found => found,
    }
}

/// A call, and where it is answered.
struct Call<'c> {
    arguments: &'c Arguments,
    desk: &'c Guest,
    /// What is done about a stale index when the arguments do not say.
    policy: OnStale,
    is_served: bool,
    /// Where paths are seen from.
    here: &'c Path,
}

impl Call<'_> {
    fn on_stale(&self) -> OnStale {
        match self.arguments.text("on_stale") {
            Some("sync") => OnStale::Sync,
            Some(_) => OnStale::Refuse,
            None => self.policy,
        }
    }

    fn room(&self) -> usize {
        self.arguments.number("max_bytes")
    }

    fn path(&self) -> Option<&str> {
        self.arguments.text("path")
    }

    fn options(&self) -> text::Options {
        text::Options { color: false, source: self.arguments.flag("source"), asker: text::Asker::Agent }
    }

    fn place(&self) -> Place {
        Place::new(self.desk.scope().root(), self.here)
    }

    /// Answers `explore`, `symbols`, `relations` or `read`.
    fn question(&self, tool: &str) -> Result<Outcome, Failure> {
        let text = |name| self.arguments.text(name).unwrap_or_default().trim().to_owned();
        let subject = match (tool, self.arguments.text("relation")) {
            ("explore", _) => Subject::Explore(text("query")),
            ("symbols", _) => Subject::Symbols(text("query")),
            ("read", _) => self.lines()?,
            (_, Some("callers")) => Subject::Callers(text("symbol")),
            (_, Some("callees")) => Subject::Callees(text("symbol")),
            (_, _) => Subject::Impact(text("symbol")),
        };
        // The path of `read` is the file itself.
        let path = if tool == "read" { None } else { self.path().map(str::to_owned) };
        let depth = u32::try_from(self.arguments.number("depth")).unwrap_or_default();
        let bounds = Bounds { limit: self.arguments.number("limit"), depth, max_bytes: Some(self.room()) };
        let asked = Asked { subject, bounds, path, source: self.arguments.flag("source") };
        let Answer { value, checked, synced, .. } = ask::inquire(self.desk, &asked, self.on_stale(), self.here, self.room())?;
        let (found, fingerprint) = value?;
        let mut outcome = match found {
            Found::Response(response) => self.drawn(*response, text::answer)?,
            Found::Several { typed, choices, total, as_symbols } => {
                self.drawn(*as_symbols, |_, options| text::choices(&typed, &choices, total, options))?
            }
            Found::None { typed, near } => {
                let failure = Failure::new("code_target_missing", format!("nothing is named `{}`", text::clean(&typed)));
                let mut outcome = without_answer(&failure, self.is_served);
                let said = text::nothing_named(&typed, &near, self.options());
                outcome.text = format!("{said}next: {}\n", failure.hint_for_agents());
                outcome
            }
        };
        self.close(&mut outcome, synced.as_ref(), &checked, fingerprint);
        Ok(outcome)
    }

    /// Returns which lines are to be read.
    fn lines(&self) -> Result<Subject, Failure> {
        let start_line = self.arguments.number("start_line") as u64;
        let end_line = self.arguments.given_number("end_line").map_or(start_line + MAX_READ_LINES - 1, |line| line as u64);
        if end_line < start_line || end_line - start_line >= MAX_READ_LINES {
            return Err(Failure::usage(format!(
                "`start_line` and `end_line` bound at most {MAX_READ_LINES} lines, the first one first"
            )));
        }
        let typed = self.arguments.text("path").unwrap_or_default().to_owned();
        Ok(Subject::Read { typed, start_line, end_line })
    }

    fn tests(&self) -> Result<Outcome, Failure> {
        let (paths, place) = (self.arguments.texts("paths"), self.place());
        let limit = self.arguments.number("limit");
        let Answer { value, checked, synced, .. } =
            affected::inquire(self.desk, &paths, &place, self.path(), self.on_stale(), limit, self.room())?;
        let (affected::Found { response, not_followed }, fingerprint) = value?;
        let unfollowed: String = not_followed
            .iter()
            .map(|path| format!("not followed: {} ({})\n", text::clean(&path.path), why(&path.reason)))
            .collect();
        let mut outcome = match response {
            Some(response) => self.drawn(*response, |response, options| {
                let mut paths: Vec<&str> = response.items.iter().map(|item| &*item.path).collect();
                paths.sort_unstable();
                paths.dedup();
                let mut said: String = paths.iter().map(|path| format!("{}\n", text::clean(path))).collect();
                said.push_str(&unfollowed);
                said.extend(text::test_remarks(response, options).iter().map(|remark| format!("{remark}\n")));
                said
            })?,
            None => {
                let failure = Failure::of_missing_paths("none of the paths could be followed");
                let mut outcome = without_answer(&failure, self.is_served);
                outcome.text.insert_str(0, &unfollowed);
                outcome
            }
        };
        self.close(&mut outcome, synced.as_ref(), &checked, fingerprint);
        Ok(outcome)
    }

    fn changes(&self) -> Result<Outcome, Failure> {
        let paths = self.arguments.texts("paths");
        let Answer { value, checked, synced, .. } = if self.arguments.flag("impact") {
            let before = self.arguments.text("before").unwrap_or("previous");
            let followed = Followed { paths: &paths, before, below: self.path(), limit: self.arguments.number("limit") };
            changes::follow(self.desk, &followed, &self.place(), self.on_stale(), self.room())?
        } else {
            let unfit = ["before", "paths", "path", "limit"].into_iter().find(|name| self.arguments.is_given(name));
            if let Some(name) = unfit {
                return Err(Failure::usage(format!("`{name}` belongs to `impact`; set that to true, or leave `{name}` out")));
            }
            changes::compare(self.desk, self.on_stale(), self.room())?
        };
        let Compared { response, built_at, commit } = value?;
        let fingerprint = response.fingerprint.clone();
        let mut outcome = self.drawn(response, |response, options| {
            let generation = response.before_fingerprint.as_deref().unwrap_or_default();
            let compared = text::Compared { generation, built_at: built_at.as_deref(), commit: commit.as_deref() };
            format!("{}{}", text::answer(response, options), text::compared(&compared, options))
        })?;
        self.say(&mut outcome, synced.as_ref(), &checked, &fingerprint);
        Ok(outcome)
    }

    fn status(&self) -> Outcome {
        let found = self.desk.status();
        let mut said = status::text(&found, false);
        let next = match found.status {
            StatusWord::Missing => "next: call `sync` to build the index\n",
            StatusWord::Stale => "next: call `sync`, or ask with `on_stale` set to `sync`\n",
            _ => "",
        };
        said.push_str(next);
        Outcome { text: said, structured: object(&found), failed: false }
    }

    fn sync(&self) -> Result<Outcome, Failure> {
        let built = if self.arguments.flag("rebuild") { self.desk.index() } else { self.desk.sync() };
        let built = built.map_err(|error| Failure::of_engine(&error))?;
        let structured = serde_json::from_str(&json::build(&built)).expect("a report is a JSON object");
        Ok(Outcome { text: build::text(&built), structured, failed: false })
    }

    /// Returns an answer in both forms, cut to the same budget.
    fn drawn(&self, response: Response, draw: impl Fn(&Response, text::Options) -> String) -> Result<Outcome, Failure> {
        let response = budget::fit(response, self.room()).map_err(|error| Failure::of_budget(&error))?;
        let structured = serde_json::from_str(&json::encode(&response)).expect("an answer is a JSON object");
        Ok(Outcome { text: draw(&response, self.options()), structured, failed: false })
    }

    fn close(&self, outcome: &mut Outcome, synced: Option<&BuildOutcome>, checked: &Checked, fingerprint: Fingerprint) {
        self.say(outcome, synced, checked, &fingerprint.hex());
    }

    /// Says what was done before the answer, and what was checked.
    fn say(&self, outcome: &mut Outcome, synced: Option<&BuildOutcome>, checked: &Checked, generation: &str) {
        if let Some(built) = synced {
            outcome.text.insert_str(0, &format!("the index was stale and was synced first: {}\n", build::counts(built)));
        }
        let (files, elapsed) = (checked.files, checked.elapsed);
        outcome.text.push_str(&text::checked(&text::Checked { files, elapsed, generation }, self.options()));
    }
}

fn object<T: Serialize>(value: &T) -> Map<String, Value> {
    match serde_json::to_value(value) {
        Ok(Value::Object(object)) => object,
        _ => Map::new(),
    }
}
