//! `mcp`: serves an agent on the standard streams of this process. Its calls are answered by the daemon, or in this process where there is
//! none.
//!
//! Must not know what a tool does. Invariant: nothing but the protocol is written to standard output, and a call gets the same answer
//! wherever it is worked on.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use serde_json::{Map, Value};

use crate::cli::arguments::Global;
use crate::cli::failure::Exit;
use crate::cli::service::{Commands, flag};
use crate::cli::{remote, start_tracing};
use crate::config::{Config, Environment};
use crate::engine::Onlooker;
use crate::model::sentence;
use crate::server::daemon::protocol::{Call, Reply, streams};
use crate::server::daemon::{Absent, Client, Lost, Place, Service};
use crate::server::http::Server;
use crate::server::mcp::{self, Outcome, ToolCall, Toolbox, Unanswered};

/// How long a daemon that was started may take until it answers; meanwhile nobody does.
const START: Duration = Duration::from_secs(3);
/// How long none is started or asked after one did not come or answer.
const PAUSE: Duration = Duration::from_secs(60);
/// How often what this process keeps in memory is looked through.
const TICK: Duration = Duration::from_secs(1);

/// Serves the agent that started this process until it is gone.
pub fn serve(global: &Global, environment: Environment) -> ExitCode {
    match global.verbose {
        0 => {}
        1 => start_tracing("sextant=debug,rmcp=info", std::io::stderr),
        _ => start_tracing("sextant=trace,rmcp=debug", std::io::stderr),
    }
    // Where a host sets it, it says where the agent works.
    let project = std::env::var_os("CLAUDE_PROJECT_DIR").map(PathBuf::from).filter(|path| path.is_absolute());
    let tools = Tools { project, ..Tools::new(global, environment) };
    match mcp::serve(Arc::new(tools)) {
        Ok(()) => ExitCode::from(Exit::Answered as u8),
        Err(error) => {
            use std::io::Write;
            // With standard error gone there is nobody left to tell.
            let _ = writeln!(std::io::stderr(), "error: {}", sentence(&error));
            ExitCode::from(Exit::Failed as u8)
        }
    }
}

/// The tools, as commands of this program.
struct Tools {
    environment: Environment,
    config: Option<PathBuf>,
    root: Option<PathBuf>,
    scope: Option<String>,
    /// Where the agent works, should this process run where nobody does.
    project: Option<PathBuf>,
    is_alone: bool,
    launch: Box<dyn Fn() -> std::io::Result<()> + Send + Sync>,
    /// When a daemon was started that did not come, or there was one that did not answer.
    missed: Mutex<Option<Instant>>,
    /// What answers where there is no daemon.
    commands: OnceLock<Arc<Commands>>,
}

impl Tools {
    fn new(global: &Global, environment: Environment) -> Self {
        let launch = remote::launch(global, &environment);
        Self {
            config: global.config.clone(),
            root: global.root.clone(),
            scope: global.scope.clone(),
            project: None,
            is_alone: global.no_daemon || global.verbose > 0,
            launch: Box::new(move || launch.start()),
            missed: Mutex::default(),
            commands: OnceLock::new(),
            environment,
        }
    }

    /// Returns a call as the command line that it is.
    fn command(&self, call: &ToolCall) -> Call {
        let mut arguments = call.arguments.clone();
        if let Some(root) = &call.client_root {
            arguments.insert("root".to_owned(), root.to_string_lossy().into());
        }
        if let Some(scope) = &call.scope {
            arguments.insert("scope".to_owned(), scope.as_str().into());
        }
        let mut line: Vec<OsString> = vec!["sextant".into(), "tool".into(), call.tool.name.into()];
        line.extend(self.config.as_ref().map(|config| flag("--config=", config)));
        if call.names_no_place() && call.client_root.is_none() && call.scope.is_none() {
            line.extend(self.root.as_ref().map(|root| flag("--root=", root)));
            line.extend(self.scope.as_ref().map(|scope| flag("--scope=", scope)));
        }
        call_of(&line, &self.environment, &arguments)
    }

    /// Has the daemon work on a call. Returns what it wrote, if it did to the end.
    fn in_daemon(&self, call: &Call, onlooker: &Onlooker) -> Option<Vec<Reply>> {
        if self.is_alone || self.missed().is_some_and(|at| at.elapsed() < PAUSE) {
            return None;
        }
        // What is wrong with it is said by the command itself.
        let config = Config::load(self.config.as_deref(), &self.environment).ok()?;
        let place = Place::new(&config.cache_dir, self.environment.xdg_runtime_dir.as_deref());
        let client = match Client::connect(&place) {
            Ok(client) => client,
            Err(Absent::Nobody(_)) if config.daemon.starts_for_agents() => self.start(&place)?,
            Err(error) => {
                tracing::debug!(%error, "no daemon to ask");
                if matches!(error, Absent::Stuck(_) | Absent::Silent(_)) {
                    *self.missed() = Some(Instant::now());
                }
                return None;
            }
        };
        match client.run_for(call.clone(), remote::limit(&config), onlooker) {
            Ok(ran) => Some(ran.said),
            // Nobody waits for what would come of it here, either.
            Err(Lost::Unwanted) => Some(Vec::new()),
            Err(error) => {
                tracing::debug!(%error, "the daemon gave no answer");
                None
            }
        }
    }

    fn missed(&self) -> MutexGuard<'_, Option<Instant>> {
        self.missed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a daemon, and waits until it answers.
    fn start(&self, place: &Place) -> Option<Client> {
        let mut missed = self.missed();
        // Another call may have started it meanwhile.
        if let Ok(client) = Client::connect(place) {
            return Some(client);
        }
        if missed.is_some_and(|at| at.elapsed() < PAUSE) {
            return None;
        }
        let end = Instant::now() + START;
        if place.prepare().is_ok() && (self.launch)().is_ok() {
            while Instant::now() < end {
                if let Ok(client) = Client::connect(place) {
                    return Some(client);
                }
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        tracing::debug!("no daemon came");
        *missed = Some(Instant::now());
        None
    }

    /// Returns what answers in this process.
    fn commands(&self) -> &Commands {
        self.commands.get_or_init(|| {
            let unload = Config::load(self.config.as_deref(), &self.environment).map(|config| config.daemon.unload);
            let commands = Arc::new(Commands::new(self.environment.clone(), unload.unwrap_or(Duration::from_secs(600))));
            let kept = Arc::downgrade(&commands);
            // Without the thread all that is kept stays, which costs memory alone.
            let _ = std::thread::Builder::new().name("rest".to_owned()).spawn(move || rest(&kept));
            commands
        })
    }
}

/// Lets go of what was not used for long, as long as there is something.
fn rest(commands: &Weak<Commands>) {
    while let Some(commands) = commands.upgrade() {
        commands.rest();
        drop(commands);
        std::thread::sleep(TICK);
    }
}

impl Toolbox for Tools {
    fn call(&self, call: &ToolCall, onlooker: &Arc<Onlooker>) -> Outcome {
        let outcome = self.work(call, onlooker);
        let is_open = call.client_root.is_none() && self.root.is_none() && self.scope.is_none();
        if is_open && outcome.code() == Some(mcp::NO_ROOT) && call.names_no_place() && self.project.is_some() {
            return self.work(&ToolCall { client_root: self.project.clone(), ..call.clone() }, onlooker);
        }
        outcome
    }
}

impl Tools {
    fn work(&self, call: &ToolCall, onlooker: &Arc<Onlooker>) -> Outcome {
        let command = self.command(call);
        let said = self.in_daemon(&command, onlooker).unwrap_or_else(|| self.commands().run(command, onlooker));
        outcome_of(&said)
    }
}

/// Returns the call of a command line with its arguments on standard input.
fn call_of(line: &[OsString], environment: &Environment, arguments: &Map<String, Value>) -> Call {
    let call = remote::call(line, environment, serde_json::to_vec(arguments).expect("arguments came as JSON"));
    Call { progress: true, ..call }
}

/// Returns the outcome that a call wrote.
fn outcome_of(said: &[Reply]) -> Outcome {
    let (out, _) = streams(said);
    serde_json::from_slice(&out).unwrap_or_else(|_| {
        Outcome::without_answer(&Unanswered {
            code: "code_build_failed",
            message: "the call ended without an answer",
            hint: "call again; if it stays so, run `sextant status` in a terminal",
            failed: true,
        })
    })
}

/// The tools of a service: each call is for a scope that its client may ask.
pub(super) struct Served {
    commands: Commands,
    environment: Environment,
    config: Option<PathBuf>,
    /// The root that is served although no configuration may name it, and the name of its scope.
    own: Option<(PathBuf, String)>,
}

impl Served {
    pub(super) fn new(environment: Environment, config: Option<PathBuf>, server: &Server) -> Self {
        let commands = Commands::at(environment.clone(), server.desks());
        Self { commands, environment, config, own: server.own_scope() }
    }
}

impl Toolbox for Served {
    fn call(&self, call: &ToolCall, onlooker: &Arc<Onlooker>) -> Outcome {
        if !call.may_sync && call.arguments.get("on_stale").is_some_and(|policy| policy == "sync") {
            return Outcome::without_answer(&Unanswered {
                code: "forbidden",
                message: "the token has no right to sync this scope",
                hint: "leave out `on_stale`, or use a token with the right code.manage",
                failed: true,
            });
        }
        let scope = call.scope.clone().unwrap_or_default();
        let mut line: Vec<OsString> = vec!["sextant".into(), "tool".into(), call.tool.name.into()];
        line.extend(call.may_sync.then(|| "--may-sync".into()));
        line.extend(self.config.as_ref().map(|config| flag("--config=", config)));
        let mut arguments = call.arguments.clone();
        arguments.remove("root");
        arguments.remove("scope");
        line.push(flag("--served=", &scope));
        line.push(match &self.own {
            Some((root, name)) if scope == *name => flag("--root=", root),
            // Without a scope there is none of that name, and so no answer.
            _ => flag("--scope=", &scope),
        });
        outcome_of(&self.commands.run(call_of(&line, &self.environment, &arguments), onlooker))
    }
}
