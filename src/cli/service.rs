//! The commands as the daemon offers them: each request is a command line that runs in the daemon's process as it would in its own.
//!
//! Must not know the socket. Invariant: what a command writes and how it exits is what a process of its own would write and exit with,
//! given the same files.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::{self, BufWriter, Cursor, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;

use crate::config::Environment;
use crate::engine::{Desk, Desks, Onlooker};
use crate::parse::{Memory, memory_in_use};
use crate::server::daemon::protocol::{self, Call, Question, Reply, Text};
use crate::server::daemon::{ScopeReport, Service};

use super::arguments::Arguments;
use super::failure::{Exit, Failure};
use super::{Finish, Session, World};

/// More scopes than this are not kept warm at once.
const MOST_SCOPES: usize = 64;
/// A scope that was used so lately is used still.
const TURN: Duration = Duration::from_secs(5);
/// With more memory than this in use, the scope that was not used for longest goes, as long as there is another one.
const MOST_MEMORY: u64 = 1 << 30;

/// Returns a flag with its value as one word of a command line, which no value can be taken out of.
pub fn flag(name: &str, value: impl AsRef<OsStr>) -> OsString {
    let mut word = OsString::from(name);
    word.push(value);
    word
}

/// All commands but those that need a process of their own.
#[derive(Debug)]
pub struct Commands {
    environment: Environment,
    desks: Arc<Desks>,
    /// How long a scope is kept in memory that nobody asks for.
    unload: Duration,
}

impl Commands {
    /// Returns the commands for a daemon that was started with an environment.
    pub fn new(environment: Environment, unload: Duration) -> Self {
        Self { environment, desks: Arc::new(Desks::new(MOST_SCOPES).watching()), unload }
    }

    /// Returns the commands at desks that others use, too, and let go of.
    pub fn at(environment: Environment, desks: Arc<Desks>) -> Self {
        Self { environment, desks, unload: Duration::MAX }
    }

    fn perform(
        &self,
        line: &[OsString],
        environment: Environment,
        color: bool,
        input: Vec<u8>,
        onlooker: &Arc<Onlooker>,
    ) -> (Vec<Reply>, Finish) {
        let said = RefCell::new(Vec::new());
        let mut out = BufWriter::new(Recorder { said: &said, is_error: false });
        let mut err = Recorder { said: &said, is_error: true };
        let mut world = World { environment, input: &mut Cursor::new(input), out: &mut out, err: &mut err, color };
        let finish = if Arguments::try_parse_from(line).is_ok_and(|arguments| !arguments.is_remote()) {
            let failure = Failure::usage("this command needs a process of its own");
            let _ = writeln!(world.err, "{}\n{}", failure.text(), failure.json());
            Finish { exit: Exit::Usage, code: Some(failure.code) }
        } else {
            Session::at(Arc::clone(&self.desks)).seen_by(onlooker).run(line, &mut world)
        };
        // What was not flushed is not shown, as in a process that ends with a failure.
        let _ = out.into_parts();
        (said.into_inner(), finish)
    }
}

impl Service for Commands {
    fn run(&self, call: Call, onlooker: &Arc<Onlooker>) -> Vec<Reply> {
        let Call { line, current_dir, home, xdg_cache_home, config, color, input, .. } = call;
        let line: Vec<OsString> = line.into_iter().map(Text::into_os).collect();
        let environment = Environment {
            current_dir: current_dir.into_path(),
            home: home.map(Text::into_path),
            xdg_cache_home: xdg_cache_home.map(Text::into_path),
            config: config.map(Text::into_path),
            ..self.environment.clone()
        };
        let (mut said, finish) = self.perform(&line, environment, color, input.0, onlooker);
        said.push(Reply::Exit { status: finish.exit as u8 });
        said
    }

    fn query(&self, question: Question, onlooker: &Arc<Onlooker>) -> String {
        let Question { scope, root, config, on_stale, request } = question;
        let mut line: Vec<OsString> = ["sextant", "query", "--request-file=-"].map(OsString::from).into();
        line.extend(scope.map(|scope| flag("--scope=", scope)));
        line.extend(root.map(|root| flag("--root=", root.into_os())));
        line.extend(config.map(|config| flag("--config=", config.into_os())));
        line.extend(on_stale.map(|policy| flag("--on-stale=", policy)));
        let (said, finish) = self.perform(&line, self.environment.clone(), false, request.get().as_bytes().to_vec(), onlooker);
        if let Some(code) = finish.code {
            return format!(r#"{{"error":{{"code":"{code}"}}}}"#);
        }
        let (answer, _) = protocol::streams(&said);
        String::from_utf8_lossy(answer.trim_ascii_end()).into_owned()
    }

    fn scopes(&self) -> Vec<ScopeReport> {
        let mut scopes: BTreeMap<(String, PathBuf), Vec<Arc<Desk>>> = BTreeMap::new();
        for desk in self.desks.all() {
            let place = (desk.scope().id().to_owned(), desk.scope().root().to_owned());
            scopes.entry(place).or_default().push(desk);
        }
        let reports = scopes.into_values().filter_map(|desks| {
            let last = desks.iter().max_by_key(|desk| (desk.leads(), desk.last_used()))?;
            Some(report(last, desks.len() as u64))
        });
        reports.collect()
    }

    fn rest(&self) -> bool {
        let mut gone = self.desks.drop_gone() + self.desks.drop_unused(self.unload);
        let desks = self.desks.all();
        if desks.len() > 1 && memory_in_use(Memory::Resident).is_some_and(|bytes| bytes > MOST_MEMORY) {
            let oldest = desks.iter().map(|desk| desk.last_used().elapsed()).max().unwrap_or_default();
            gone += self.desks.drop_unused(oldest.max(TURN));
        }
        if gone > 0 {
            tracing::info!(scopes = gone, "scopes that are gone or not used were let go");
        }
        gone > 0
    }
}

fn report(desk: &Desk, configurations: u64) -> ScopeReport {
    ScopeReport {
        scope_id: desk.scope().id().to_owned(),
        root: desk.scope().root().to_string_lossy().into_owned(),
        indexed: desk.is_indexed(),
        watch: desk.watch(),
        loaded: desk.is_loaded(),
        idle_seconds: desk.last_used().elapsed().as_secs(),
        configurations,
    }
}

/// Keeps what is written, in the order of both streams.
struct Recorder<'s> {
    said: &'s RefCell<Vec<Reply>>,
    is_error: bool,
}

impl Write for Recorder<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let name = if self.is_error { Reply::Err } else { Reply::Out };
        self.said.borrow_mut().extend(protocol::pieces(bytes).map(name));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
