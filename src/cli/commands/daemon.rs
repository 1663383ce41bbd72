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
use crate::server::daemon::{self, Absent, Client, DaemonError, Log, Options, Peer, Place, Report, ScopeReport};

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
        Err(error @ (Absent::Stuck(_) | Absent::Busy(_))) => return Err(of_absent(&error, place).into()),
        Err(_) => {
            said = "the daemon runs";
            place.prepare().map_err(|error| of_daemon(&DaemonError::Place(error)))?;
            remote::launch(global, &world.environment).start().map_err(|error| of_daemon(&DaemonError::Launch(error)))?;
            wait_for(place)?
        }
    };
    let report = report_of(&client, place)?;
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
            Err(error) if Instant::now() > end => return Err(of_absent(&error, place)),
            Err(_) => std::thread::sleep(Duration::from_millis(5)),
        }
    }
}

fn stop(global: &Global, place: &Place, world: &mut World<'_>) -> Result<Exit, Stop> {
    let said = match Client::connect(place) {
        Ok(client) => {
            if client.stop().is_err() {
                end(&client.into_peer(), place)?;
            }
            "the daemon is gone"
        }
        Err(Absent::Stuck(peer) | Absent::Busy(peer)) => {
            end(&peer, place)?;
            "the daemon is gone"
        }
        Err(Absent::Nobody(_)) => "no daemon runs",
        Err(error) => return Err(of_absent(&error, place).into()),
    };
    if global.json {
        writeln!(world.out, "{}", json(&Said { running: false, report: None }))?;
    } else if !global.quiet {
        writeln!(world.out, "{said}")?;
    }
    Ok(Exit::Answered)
}

/// Ends a daemon that does not leave when it is asked to.
fn end(peer: &Peer, place: &Place) -> Result<(), Failure> {
    peer.end().map_err(|error| {
        let failure = Failure::new("code_timeout", sentence(&error));
        let socket = place.socket();
        failure.advising(match peer.pid {
            Some(pid) => format!("run `kill -9 {pid}`; nothing that is stored is lost by it"),
            None => format!("see who listens at {}, and end that process", clean(&socket.to_string_lossy())),
        })
    })
}

fn status(global: &Global, place: &Place, world: &mut World<'_>) -> Result<Exit, Stop> {
    let report = match Client::connect(place) {
        Ok(client) => Some(report_of(&client, place)?),
        Err(Absent::Nobody(_)) => None,
        Err(error) => return Err(of_absent(&error, place).into()),
    };
    if global.json {
        writeln!(world.out, "{}", json(&Said { running: report.is_some(), report: report.as_ref() }))?;
    } else {
        world.out.write_all(text(report.as_ref()).as_bytes())?;
    }
    Ok(if report.is_some() { Exit::Answered } else { Exit::NothingFound })
}

fn report_of(client: &Client, place: &Place) -> Result<Report, Failure> {
    client.status().map_err(|error| of_peer(sentence(&error), Some(client.greeting.pid), place))
}

/// Returns the failure of whoever needs a daemon that cannot be asked.
fn of_absent(error: &Absent, place: &Place) -> Failure {
    let message = sentence(error);
    match error {
        Absent::Busy(peer) => Failure::new("code_timeout", message).advising(match peer.pid {
            Some(pid) => {
                format!("try again in a while; commands work without it, and `sextant daemon stop` ends it (process {pid})")
            }
            None => "try again in a while; commands work without it".to_owned(),
        }),
        Absent::Stuck(peer) => of_peer(message, peer.pid, place),
        Absent::Nobody(_) => Failure::new("code_timeout", message)
            .advising(format!("see what it says in {}", clean(&place.log().to_string_lossy()))),
        Absent::Silent(_) | Absent::OtherBuild => Failure::new("code_timeout", message).advising(format!(
            "see who listens at {}, and end that process; commands work without a daemon",
            clean(&place.socket().to_string_lossy())
        )),
    }
}

fn of_peer(message: String, pid: Option<u32>, place: &Place) -> Failure {
    let who = pid.map(|pid| format!(" (process {pid})")).unwrap_or_default();
    let advice = match pid {
        Some(_) => "end it with `sextant daemon stop`; commands work without it. It listens at ",
        None => "see who listens there, and end that process; commands work without a daemon: ",
    };
    Failure::new("code_timeout", format!("{message}{who}"))
        .advising(format!("{advice}{}", clean(&place.socket().to_string_lossy())))
}

fn text(report: Option<&Report>) -> String {
    let Some(report) = report else { return "no daemon runs\n".to_owned() };
    let mut text = format!("running · process {} · for {}\n", report.pid, lasting(report.uptime_seconds));
    let mut row = |name: &str, value: &str| text.push_str(&format!("  {name:<12}{value}\n"));
    row("build", &format!("{} {}", report.version, report.build));
    if let Some(bytes) = report.memory_bytes {
        row("memory", &format!("{} MiB", grouped(bytes >> 20)));
    }
    row("clients", &format!("{}; {} answered, {} running", report.clients, counted(report.answered, "request"), report.working));
    for scope in &report.scopes {
        let ScopeReport { scope_id, root, indexed, watch, loaded, idle_seconds, configurations } = scope;
        let state = if *indexed { "indexed" } else { "not indexed" };
        row("scope", &format!("{} {}", clean(scope_id), clean(root)));
        let memory = match loaded {
            Some(true) => "in memory",
            Some(false) => "not in memory",
            None => "at work",
        };
        row("", &format!("{state}, {memory}; watcher: {watch}; asked {} ago", lasting(*idle_seconds)));
        if *configurations > 1 {
            row("", &format!("asked with {configurations} configurations; this is the one that was used last"));
        }
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
            if let Ok(log) = Log::begin(&place.log()) {
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
