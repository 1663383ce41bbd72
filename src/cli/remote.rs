//! A command in the daemon instead of in this process: hands over what it needs, and writes what came of it.
//!
//! Must not know what a command does. Invariant: where the daemon does not answer to the end, nothing was written, and the command can
//! still run here, with all of its input.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;

use crate::config::{Config, Environment, running_program};
use crate::query::request::MAX_BODY;
use crate::server::daemon::protocol::{Call, Reply, Text};
use crate::server::daemon::{Absent, Client, Launch, Place};

use super::arguments::{Arguments, Command, Global};
use super::commands::hook;
use super::progress::Show;
use super::{Stop, close};

/// More input than this is for a process of its own.
const MOST_INPUT: u64 = 4 << 20;

/// How much longer than its limits allow a command may take.
const GRACE: Duration = Duration::from_secs(60);

/// Standard input that can be read ahead and still be read from its beginning.
pub struct Input<R> {
    ahead: Vec<u8>,
    given: usize,
    source: R,
}

impl<R: Read> Input<R> {
    pub fn new(source: R) -> Self {
        Self { ahead: Vec::new(), given: 0, source }
    }

    /// Reads ahead up to so many bytes. Returns what is there, if that is all or as much as is wanted of it.
    fn look(&mut self, wanted: Wanted) -> Option<Vec<u8>> {
        let most = match wanted {
            Wanted::Nothing => return Some(Vec::new()),
            Wanted::Beginning(bytes) => bytes,
            Wanted::All => MOST_INPUT + 1,
        };
        // What cannot be read is met again by the command itself.
        self.source.by_ref().take(most).read_to_end(&mut self.ahead).ok()?;
        let is_whole = !matches!(wanted, Wanted::All) || (self.ahead.len() as u64) < most;
        is_whole.then(|| self.ahead.clone())
    }
}

impl<R: Read> Read for Input<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = (&self.ahead[self.given..]).read(buffer)?;
        self.given += count;
        if count > 0 || buffer.is_empty() { Ok(count) } else { self.source.read(buffer) }
    }
}

/// How much of standard input a command reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted {
    Nothing,
    Beginning(u64),
    All,
}

fn input_of(command: &Command) -> Wanted {
    match command {
        // One more byte tells that it is too long.
        Command::Query { request_file, .. } if request_file.as_os_str() == "-" => Wanted::Beginning(MAX_BODY as u64 + 1),
        Command::Tests { stdin: true, .. } => Wanted::All,
        Command::ImpactChanges(typed) if typed.stdin => Wanted::All,
        Command::Hook(typed) if hook::reads_input(typed) => Wanted::All,
        Command::Tool { .. } => Wanted::All,
        _ => Wanted::Nothing,
    }
}

/// Has the daemon run a command line, if there is one and it may, and shows how far it is. Returns the exit code; without one the caller
/// runs it.
pub fn run<R: Read>(
    line: &[OsString],
    environment: &Environment,
    color: bool,
    input: &mut Input<R>,
    out: &mut dyn Write,
    err: &mut dyn Write,
    show: &Show,
) -> Option<u8> {
    let arguments =
        Arguments::try_parse_from(line).ok().filter(|arguments| !arguments.global.no_daemon && arguments.is_remote())?;
    let config = Config::load(arguments.global.config.as_deref(), environment).ok()?;
    let place = Place::new(&config.cache_dir, environment.xdg_runtime_dir.as_deref());
    let client = match Client::connect(&place) {
        Ok(client) => client,
        Err(Absent::Nobody(_)) if config.daemon.starts_for_commands() => {
            // For the commands after this one, which is done before a new process is ready.
            let _ = launch(&arguments.global, environment).start();
            return None;
        }
        Err(_) => return None,
    };
    let told = input.look(input_of(&arguments.command))?;
    let call = Call { color, progress: show.is_shown(), ..call(line, environment, told) };
    let ran = client.run_showing(call, limit(&config), &mut |progress| show.show(progress)).ok()?;
    let written = ran.said.iter().try_for_each(|reply| match reply {
        Reply::Out(Text(piece)) => out.write_all(piece),
        Reply::Err(Text(piece)) => {
            // With standard error gone there is nobody left to tell.
            let _ = err.write_all(piece);
            Ok(())
        }
        Reply::Alive {} | Reply::Progress(_) | Reply::Exit { .. } => Ok(()),
    });
    match written.and_then(|()| out.flush()) {
        Ok(()) => Some(ran.status),
        Err(error) => Some(close(Stop::from(error), &arguments, err).exit as u8),
    }
}

/// Returns the call of a command line with its standard input, whose output is plain and which tells no progress.
pub fn call(line: &[OsString], environment: &Environment, input: Vec<u8>) -> Call {
    let path = |path: &PathBuf| Text::of_path(path);
    Call {
        line: line.iter().map(Text::from).collect(),
        current_dir: path(&environment.current_dir),
        home: environment.home.as_ref().map(path),
        xdg_cache_home: environment.xdg_cache_home.as_ref().map(path),
        config: environment.config.as_ref().map(path),
        color: false,
        progress: false,
        input: Text(input),
    }
}

/// Returns how long a command may take in the daemon: none takes longer than it does here, and one that cannot end there may end here.
pub fn limit(config: &Config) -> Duration {
    config.limits.build().max(config.limits.query()) * 2 + GRACE
}

/// Returns how a daemon is started with the configuration of a command.
pub fn launch(global: &Global, environment: &Environment) -> Launch {
    let mut variables = Vec::new();
    let mut keep = |name, value: Option<PathBuf>| variables.extend(value.map(|value| (name, value)));
    keep("HOME", environment.home.clone());
    keep("XDG_CACHE_HOME", environment.xdg_cache_home.clone());
    keep("XDG_RUNTIME_DIR", environment.xdg_runtime_dir.clone());
    keep("SEXTANT_CONFIG", environment.config.as_ref().map(|path| environment.current_dir.join(path)));
    let mut arguments: Vec<OsString> = ["daemon", "run", "--stage", "between"].map(OsString::from).into();
    if let Some(config) = &global.config {
        arguments.extend(["--config".into(), environment.current_dir.join(config).into_os_string()]);
    }
    Launch { program: running_program(), arguments, variables }
}
