//! The command line: arguments in, text out, exit codes. One of the two layers that print.
//!
//! Must not know SQL, salsa or how an answer is found. Invariant: every failure leaves through [`failure`], so that the same failure has
//! the same code and exit everywhere.

pub mod arguments;
mod bench;
mod commands;
pub mod failure;
mod hosts;
mod progress;
mod remote;
mod service;

use std::ffi::OsString;
use std::io::{self, IsTerminal, Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use clap::error::ErrorKind;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::format::FmtSpan;

use crate::config::{self, Config, ConfigError, Environment};
use crate::engine::{Desk, Desks, Guest, Onlooker};

use arguments::{Arguments, Color, Command, Global};
pub use failure::{Exit, Failure};
use progress::Show;

/// What a command may touch of the process around it.
pub struct World<'a> {
    pub environment: Environment,
    pub input: &'a mut dyn Read,
    pub out: &'a mut dyn Write,
    pub err: &'a mut dyn Write,
    /// Whether the answer goes where colours are read, should the arguments leave that open.
    pub color: bool,
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finish {
    pub exit: Exit,
    /// The contract's code, when it failed.
    pub code: Option<&'static str>,
}

/// Why a command has no more to say.
#[derive(Debug)]
pub enum Stop {
    Failure(Failure),
    /// Whoever read the output went away.
    Closed,
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Self::Failure(failure)
    }
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::Closed,
            _ => Self::Failure(Failure::new("code_build_failed", format!("the answer cannot be written: {error}"))),
        }
    }
}

/// What lives on from one command to the next: the desks, which a session may share with others, and the scope that was asked last.
#[derive(Debug)]
pub struct Session {
    desks: Arc<Desks>,
    /// Whether the process goes on when a command is over.
    goes_on: bool,
    last: Option<Last>,
    onlooker: Arc<Onlooker>,
}

#[derive(Debug)]
struct Last {
    config: Config,
    /// Whether the scope stands in no configuration file.
    is_implicit: bool,
    desk: Arc<Desk>,
}

impl Default for Session {
    fn default() -> Self {
        Self::new()
    }
}

impl Session {
    /// Returns a session of its own, with the desk of the scope asked last.
    pub fn new() -> Self {
        Self { goes_on: false, ..Self::at(Arc::new(Desks::new(1))) }
    }

    /// Returns a session whose commands come to desks that others use, too, in a process that goes on.
    pub fn at(desks: Arc<Desks>) -> Self {
        Self { desks, goes_on: true, last: None, onlooker: Arc::default() }
    }

    /// Returns a session of its own that keeps a log of the queries its builds execute.
    pub fn recording() -> Self {
        Self { goes_on: false, ..Self::at(Arc::new(Desks::new(1).recording())) }
    }

    /// Returns the same with somebody who looks on at the desks that its commands come to, and for whom alone they are done.
    #[must_use]
    pub fn seen_by(self, onlooker: &Arc<Onlooker>) -> Self {
        Self { onlooker: Arc::clone(onlooker), ..self }
    }

    /// Returns the queries executed since the last call, each as `query subject`.
    pub fn executed(&mut self) -> Vec<String> {
        self.last.as_ref().map(|last| last.desk.take_log()).unwrap_or_default()
    }

    /// Runs one command line, the program's name first.
    pub fn run(&mut self, line: &[OsString], world: &mut World<'_>) -> Finish {
        let arguments = match Arguments::try_parse_from(line) {
            Ok(arguments) => arguments,
            Err(error) if commands::hook::is_hook(line) && error.use_stderr() => {
                // Whatever is wrong with it, whoever edits is not to be stopped.
                refuse_line(&error, false, world);
                return Finish { exit: Exit::Answered, code: None };
            }
            Err(error) => {
                // Nothing was parsed, so the words themselves must tell who reads the refusal.
                let wants_json = line.iter().any(|word| word == "--json") || line.get(1).is_some_and(|word| word == "query");
                return refuse_line(&error, wants_json, world);
            }
        };
        match arguments.global.verbose {
            0 => {}
            1 => start_tracing("sextant=debug", io::stderr),
            _ => start_tracing("sextant=trace", io::stderr),
        }
        let ended = commands::run(self, &arguments, world).and_then(|exit| {
            world.out.flush()?;
            Ok(exit)
        });
        match ended {
            Ok(exit) => Finish { exit, code: None },
            Err(stop) => close(stop, &arguments, world.err),
        }
    }

    /// Returns the desk of the scope that the flags choose.
    fn desk(&mut self, global: &Global, environment: &Environment) -> Result<Guest, Failure> {
        let selection = config::Selection { root: global.root.clone(), scope: global.scope.clone() };
        self.desk_of(global, environment, |config| config.scope(&selection, environment))
    }

    /// Returns the desk of the scope that holds a directory.
    fn desk_at(&mut self, global: &Global, directory: &Path, environment: &Environment) -> Result<Guest, Failure> {
        self.desk_of(global, environment, |config| config.scope_at(directory, environment))
    }

    /// Returns the desk of a configured scope.
    fn desk_named(&mut self, global: &Global, scope: &str, environment: &Environment) -> Result<Guest, Failure> {
        let selection = config::Selection { root: None, scope: Some(scope.to_owned()) };
        self.desk_of(global, environment, |config| config.scope(&selection, environment))
    }

    fn desk_of(
        &mut self,
        global: &Global,
        environment: &Environment,
        choose: impl FnOnce(&Config) -> Result<config::Scope, ConfigError>,
    ) -> Result<Guest, Failure> {
        let config = Config::load(global.config.as_deref(), environment).map_err(|error| Failure::of_config(&error))?;
        let scope = choose(&config).map_err(|error| Failure::of_config(&error))?;
        let is_implicit = scope.implicit;
        let desk = self.desks.desk(&config, &scope, &environment.parsers).map_err(|error| Failure::of_engine(&error))?;
        self.onlooker.attend(&desk);
        self.last = Some(Last { config, is_implicit, desk: Arc::clone(&desk) });
        Ok(Guest::who_sees(desk, &self.onlooker))
    }

    /// Returns whether the configuration of the desk has a question of an agent build an index where there is none.
    fn indexes_for_agents(&self) -> bool {
        self.last.as_ref().is_some_and(|last| last.config.mcp.auto_index)
    }

    /// Returns whether the scope of the desk stands in no configuration file.
    fn is_implicit(&self) -> bool {
        self.last.as_ref().is_some_and(|last| last.is_implicit)
    }
}

impl Global {
    fn colored(&self, world: &World<'_>) -> bool {
        match self.color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => world.color,
        }
    }
}

/// Says why a command has no more to say. Returns how it ended.
fn close(stop: Stop, arguments: &Arguments, err: &mut dyn Write) -> Finish {
    let Stop::Failure(failure) = stop else { return Finish { exit: Exit::Answered, code: None } };
    let strict = matches!(arguments.command, Command::Query { .. });
    let mut text = failure.text();
    if strict || arguments.global.json {
        text = format!("{text}\n{}", failure.json());
    }
    // With standard error gone there is nobody left to tell.
    let _ = writeln!(err, "{text}");
    Finish { exit: failure.exit(strict), code: Some(failure.code) }
}

/// Says what is wrong with a command line, or gives the help or version it asked for.
fn refuse_line(error: &clap::Error, wants_json: bool, world: &mut World<'_>) -> Finish {
    let asked = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
    let rendered = error.render();
    let text = if world.color { rendered.ansi().to_string() } else { rendered.to_string() };
    // A reader that went away has seen enough.
    if asked {
        let _ = world.out.write_all(text.as_bytes()).and_then(|()| world.out.flush());
        return Finish { exit: Exit::Answered, code: None };
    }
    let failure = Failure::usage("the command line does not fit");
    let _ = world.err.write_all(text.as_bytes());
    if wants_json {
        let _ = writeln!(world.err, "{}", failure.json());
    }
    Finish { exit: Exit::Usage, code: Some(failure.code) }
}

/// Writes spans and events of this crate, with what each span took when it closes.
fn start_tracing<W: for<'w> MakeWriter<'w> + Send + Sync + 'static>(filter: &str, writer: W) {
    // Only the first start in a process counts; a second one changes nothing.
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(writer)
        .with_ansi(false)
        .with_target(true)
        .with_span_events(FmtSpan::CLOSE)
        .try_init();
}

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    let line: Vec<OsString> = std::env::args_os().collect();
    let is_hook = commands::hook::is_hook(&line);
    if is_hook {
        commands::hook::end_by(commands::hook::deadline(&line));
    }
    let exit = run_line(&line, is_hook);
    // A person does not end what they type, nor waits to be read.
    if is_hook && !io::stdin().is_terminal() {
        commands::hook::hear_out(&line, &mut io::stdin().lock());
    }
    exit
}

fn run_line(line: &[OsString], is_hook: bool) -> ExitCode {
    let (stdin, stdout, mut stderr) = (io::stdin(), io::stdout(), io::stderr());
    let color = stdout.is_terminal() && anstream::AutoStream::choice(&stdout) != anstream::ColorChoice::Never;
    let environment = Environment::of_process();
    // Paths start from what was read just now. A process that stands nowhere keeps no directory, and does not mind when one is removed.
    let _ = std::env::set_current_dir("/");
    // It reads and writes the standard streams by itself, from threads of its own.
    if let Ok(Arguments { global, command: Command::Mcp }) = Arguments::try_parse_from(line) {
        return commands::mcp::serve(&global, environment);
    }
    let mut buffer = io::BufWriter::new(stdout.lock());
    // Standard error is not locked: the traces of other threads go there, too.
    let mut input = remote::Input::new(stdin.lock());
    let show = Show::of(line);
    let run = || {
        let (mut out, mut err) = (show.before(&mut buffer), show.before(&mut stderr));
        remote::run(line, &environment, color, &mut input, &mut out, &mut err, &show).unwrap_or_else(|| {
            let onlooker = Arc::default();
            show.follow(&onlooker);
            let mut world = World { environment, input: &mut input, out: &mut out, err: &mut err, color };
            Session::new().seen_by(&onlooker).run(line, &mut world).exit as u8
        })
    };
    // A defect must not look like an answer, nor like one of the refusals.
    let exit = catch_unwind(AssertUnwindSafe(run)).unwrap_or(if is_hook { Exit::Answered } else { Exit::Failed } as u8);
    show.end();
    // What is buffered was flushed, or its reader is gone: writing it again as the buffer is dropped would be in vain.
    std::mem::forget(buffer);
    ExitCode::from(exit)
}
