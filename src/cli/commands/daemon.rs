//! `daemon`: starts, ends and describes the background process, and is it.
//!
//! Must not know what it answers. Invariant: starting what runs and ending what does not are no failures.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::cli::arguments::{Daemon, Global, Stage};
use crate::cli::failure::{Exit, Failure};
use crate::cli::service::Commands;
use crate::cli::{Stop, World, remote, start_tracing};
use crate::config::Config;
use crate::model::sentence;
use crate::render::text::{clean, counted, grouped};
use crate::server::daemon::{self, Absent, Client, DaemonError, Log, Options, Place, Report, ScopeReport};

use super::status::json;

/// How long a daemon that was started may take until it answers.
const START: Duration = Duration::from_secs(20);

/// What `--json` prints.
#[derive(Serialize)]
struct Said<'r> {
    running: bool,
    #[serde(flatten)]
    report: Option<&'r Report>,
}

pub fn run(global: &Global, action: Daemon, world: &mut World<'_>) -> Result<Exit, Stop> {
    let config = Config::load(global.config.as_deref(), &world.environment).map_err(|error| Failure::of_config(&error))?;
    let place = Place::new(&config.cache_dir, world.environment.xdg_runtime_dir.as_deref());
    match action {
        Daemon::Start => start(global, &place, world),
        Daemon::Stop => stop(global, &place, world),
        Daemon::Status => status(global, &place, world),
        Daemon::Run { stage: Some(Stage::Between) } => {
            let mut launch = remote::launch(global, &world.environment);
            launch.arguments.iter_mut().filter(|word| *word == "between").for_each(|word| *word = "apart".into());
            daemon::detach(&launch).map_err(|error| Failure::new("code_build_failed", sentence(&error)))?;
            Ok(Exit::Answered)
        }
        Daemon::Run { stage } => be(&config, place, stage, world),
    }
}

fn start(global: &Global, place: &Place, world: &mut World<'_>) -> Result<Exit, Stop> {
    let mut said = "the daemon runs already";
    let client = match Client::connect(place) {
        Ok(client) => client,
        Err(_) => {
            said = "the daemon runs";
            place.prepare().map_err(|error| of_daemon(&DaemonError::Place(error)))?;
            remote::launch(global, &world.environment).start().map_err(|error| of_daemon(&DaemonError::Launch(error)))?;
            wait_for(place)?
        }
    };
    let report = client.status().map_err(|error| Failure::new("code_timeout", sentence(&error)))?;
    if global.json {
        writeln!(world.out, "{}", json(&Said { running: true, report: Some(&report) }))?;
    } else if !global.quiet {
        writeln!(world.out, "{said} (process {})", report.pid)?;
    }
    Ok(Exit::Answered)
}

fn wait_for(place: &Place) -> Result<Client, Failure> {
    let end = Instant::now() + START;
    loop {
        match Client::connect(place) {
            Ok(client) => return Ok(client),
            Err(error) if Instant::now() > end => return Err(Failure::new("code_timeout", sentence(&error))),
            Err(_) => std::thread::sleep(Duration::from_millis(5)),
        }
    }
}

fn stop(global: &Global, place: &Place, world: &mut World<'_>) -> Result<Exit, Stop> {
    let said = match Client::connect(place) {
        Ok(client) => {
            client.stop().map_err(|error| Failure::new("code_timeout", sentence(&error)))?;
            "the daemon is gone"
        }
        Err(Absent::Nobody(_)) => "no daemon runs",
        Err(error) => return Err(Failure::new("code_timeout", sentence(&error)).into()),
    };
    if global.json {
        writeln!(world.out, "{}", json(&Said { running: false, report: None }))?;
    } else if !global.quiet {
        writeln!(world.out, "{said}")?;
    }
    Ok(Exit::Answered)
}

fn status(global: &Global, place: &Place, world: &mut World<'_>) -> Result<Exit, Stop> {
    let report = match Client::connect(place) {
        Ok(client) => Some(client.status().map_err(|error| Failure::new("code_timeout", sentence(&error)))?),
        Err(Absent::Nobody(_)) => None,
        Err(error) => return Err(Failure::new("code_timeout", sentence(&error)).into()),
    };
    if global.json {
        writeln!(world.out, "{}", json(&Said { running: report.is_some(), report: report.as_ref() }))?;
    } else {
        world.out.write_all(text(report.as_ref()).as_bytes())?;
    }
    Ok(if report.is_some() { Exit::Answered } else { Exit::NothingFound })
}

fn text(report: Option<&Report>) -> String {
    let Some(report) = report else { return "no daemon runs\n".to_owned() };
    let mut text = format!("running · process {} · for {}\n", report.pid, lasting(report.uptime_seconds));
    let mut row = |name: &str, value: &str| text.push_str(&format!("  {name:<12}{value}\n"));
    row("build", &format!("{} {}", report.version, report.build));
    if let Some(bytes) = report.memory_bytes {
        row("memory", &format!("{} MiB", grouped(bytes >> 20)));
    }
    row("clients", &format!("{}; {} answered, {} running", report.clients, counted(report.answered, "request"), report.running));
    for scope in &report.scopes {
        let ScopeReport { scope_id, root, indexed, watch, loaded, idle_seconds } = scope;
        let state = if *indexed { "indexed" } else { "not indexed" };
        row("scope", &format!("{} {}", clean(scope_id), clean(root)));
        let memory = match loaded {
            Some(true) => "in memory",
            Some(false) => "not in memory",
            None => "at work",
        };
        row("", &format!("{state}, {memory}; watcher: {watch}; asked {} ago", lasting(*idle_seconds)));
    }
    text
}

/// Returns a time that passed, in the unit that suits it.
fn lasting(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        _ => format!("{} h", grouped(seconds / 3600)),
    }
}

/// Is the daemon until it is not needed any more.
fn be(config: &Config, place: Place, stage: Option<Stage>, world: &mut World<'_>) -> Result<Exit, Stop> {
    match stage {
        None => start_tracing("sextant=info", io::stderr),
        Some(_) => {
            // Without a log, as in a cache that is read-only, it works all the same.
            if let Ok(log) = Log::open(&place.log()) {
                start_tracing("sextant=info", Mutex::new(log));
            }
            std::panic::set_hook(Box::new(|defect| tracing::error!(%defect, "a thread panicked")));
        }
    }
    let service = Arc::new(Commands::new(world.environment.clone(), config.daemon.unload));
    let options = Options { place, idle: config.daemon.idle };
    match daemon::run(&options, service) {
        Ok(_) => Ok(Exit::Answered),
        Err(DaemonError::Runs) => {
            writeln!(world.err, "a daemon runs already")?;
            Ok(Exit::Failed)
        }
        Err(error) => Err(of_daemon(&error).into()),
    }
}

fn of_daemon(error: &DaemonError) -> Failure {
    let code = match error {
        DaemonError::Place(_) | DaemonError::Socket(_) => "code_storage_unavailable",
        DaemonError::Runs | DaemonError::System(_) | DaemonError::Launch(_) => "code_build_failed",
    };
    Failure::new(code, sentence(error))
}
