//! The life of the daemon: takes its place, takes connections, notices when it is not needed any more, and leaves.
//!
//! Must not know what clients ask. Invariant: it never runs twice at a place, and when it leaves nothing of it stays: no process, no
//! socket, no lock.

use std::io;
use std::os::unix::net::UnixListener;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::parse::{Memory, memory_in_use};
use crate::server::{descriptors, memory};

use super::place::{self, Claim, Place};
use super::{Report, Service, connection};

/// How often it looks whether it is still needed.
const TICK: Duration = Duration::from_secs(1);
/// After such a pause in the requests, memory that is free goes back to the system.
const PAUSE: Duration = Duration::from_secs(2);
/// How long requests that are worked on may hold up its leaving.
const FAREWELL: Duration = Duration::from_secs(1);
/// More connections at once are turned away; their clients answer by themselves.
const MOST_CLIENTS: u64 = 128;

/// How it behaves.
#[derive(Clone, Debug)]
pub struct Options {
    pub place: Place,
    /// It leaves when nobody asked anything for so long.
    pub idle: Duration,
}

/// Why it is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended(pub &'static str);

/// Why there is no daemon.
#[derive(Debug, thiserror::Error)]
pub enum DaemonError {
    #[error("a daemon runs already")]
    Runs,
    #[error("the directory of the daemon's socket cannot be used")]
    Place(#[source] io::Error),
    #[error("the daemon's socket cannot be made")]
    Socket(#[source] io::Error),
    #[error("the daemon cannot start a thread or hear signals")]
    System(#[source] io::Error),
    #[error("the daemon cannot be started")]
    Launch(#[source] io::Error),
}

/// What the connections and the daemon have in common.
pub struct Shared {
    service: Arc<dyn Service>,
    build: String,
    idle: Duration,
    started: Instant,
    state: Mutex<State>,
    leaving: mpsc::Sender<&'static str>,
}

#[derive(Clone, Copy, Debug)]
struct State {
    clients: u64,
    running: u64,
    answered: u64,
    /// When the last request began or ended.
    last: Instant,
}

impl Shared {
    pub fn service(&self) -> &dyn Service {
        self.service.as_ref()
    }

    pub fn build(&self) -> &str {
        &self.build
    }

    pub fn idle(&self) -> Duration {
        self.idle
    }

    /// Notes that the daemon is of use to somebody, until what this returns is dropped.
    pub fn begin(&self) -> Running<'_> {
        let mut state = self.state();
        state.running += 1;
        state.last = Instant::now();
        Running(self)
    }

    /// Makes the daemon leave.
    pub fn leave(&self, why: &'static str) {
        // It may be leaving already.
        let _ = self.leaving.send(why);
    }

    pub fn report(&self) -> Report {
        let State { clients, running, answered, .. } = *self.state();
        Report {
            pid: std::process::id(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            build: self.build.clone(),
            uptime_seconds: self.started.elapsed().as_secs(),
            memory_bytes: memory_in_use(Memory::Resident),
            clients,
            answered,
            working: running,
            scopes: self.service.scopes(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Each change of it is one statement.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_idle(&self) -> bool {
        let state = self.state();
        state.running == 0 && state.last.elapsed() >= self.idle
    }
}

/// A request that is worked on.
pub struct Running<'s>(&'s Shared);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.running -= 1;
        state.answered += 1;
        state.last = Instant::now();
    }
}

/// A connection that is open.
struct Connected(Arc<Shared>);

impl Drop for Connected {
    fn drop(&mut self) {
        self.0.state().clients -= 1;
    }
}

/// Serves clients until the daemon is not needed any more. Returning is not enough to end it: its threads end with the process.
///
/// # Errors
/// When another one is there, or the system refuses.
pub fn run(options: &Options, service: Arc<dyn Service>) -> Result<Ended, DaemonError> {
    memory::keep_little();
    descriptors::raise();
    place::name_process();
    let place = &options.place;
    let claim = place.take().map_err(DaemonError::Place)?.ok_or(DaemonError::Runs)?;
    let (leaving, reasons) = mpsc::channel();
    hear_signals(leaving.clone()).map_err(DaemonError::System)?;
    let now = Instant::now();
    let shared = Arc::new(Shared {
        service,
        build: place.build().to_owned(),
        idle: options.idle,
        started: now,
        state: Mutex::new(State { clients: 0, running: 0, answered: 0, last: now }),
        leaving,
    });
    // What clients still hold when it is over is not taken apart: that could wait for work which the end of the process ends.
    std::mem::forget(Arc::clone(&shared));
    let listener = claim.listen().map_err(DaemonError::Socket)?;
    let socket = claim.identity();
    let taker = Arc::clone(&shared);
    std::thread::Builder::new()
        .name("clients".to_owned())
        .spawn(move || take_clients(&listener, &taker))
        .map_err(DaemonError::System)?;
    tracing::info!(pid = std::process::id(), build = place.build(), "the daemon listens");
    let mut cache = place::identity(place.cache_dir());
    let mut tidied = now;
    let why = loop {
        match reasons.recv_timeout(TICK) {
            Ok(why) => break why,
            Err(RecvTimeoutError::Disconnected) => break "nobody can ask any more",
            Err(RecvTimeoutError::Timeout) => {}
        }
        if let Some(why) = is_over(&shared, &claim, socket, place, &mut cache) {
            break why;
        }
        let has_let_go = shared.service().rest();
        let State { running, last, .. } = *shared.state();
        let is_pause = running == 0 && last > tidied && last.elapsed() >= PAUSE;
        if is_pause {
            tidied = last;
        }
        if is_pause || has_let_go {
            memory::give_back();
        }
    };
    tracing::info!(why, "the daemon leaves");
    // From here on clients find nobody, and answer by themselves.
    drop(claim);
    let end = Instant::now() + FAREWELL;
    while shared.state().running > 0 && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(Ended(why))
}

/// Returns why the daemon is not needed any more, if it is not.
fn is_over(
    shared: &Shared,
    claim: &Claim,
    socket: Option<(u64, u64)>,
    place: &Place,
    cache: &mut Option<(u64, u64)>,
) -> Option<&'static str> {
    if claim.identity() != socket {
        return Some("its socket is gone");
    }
    let found = place::identity(place.cache_dir());
    // It may be made by the first build.
    if cache.is_some() && *cache != found {
        return Some("the cache is gone");
    }
    *cache = found;
    // Another one is installed; clients of this build are gone, or about to be.
    if place.is_replaced() && shared.state().running == 0 {
        return Some("its program is gone");
    }
    shared.is_idle().then_some("nobody asked for long")
}

fn hear_signals(leaving: mpsc::Sender<&'static str>) -> io::Result<()> {
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP])?;
    let hear = move || {
        let mut came = false;
        for signal in signals.forever() {
            if std::mem::replace(&mut came, true) {
                // Asked twice, it does not finish anything.
                let _ = signal_hook::low_level::emulate_default_handler(signal);
            }
            let _ = leaving.send("a signal came");
        }
    };
    std::thread::Builder::new().name("signals".to_owned()).spawn(hear).map(drop)
}

fn take_clients(listener: &UnixListener, shared: &Arc<Shared>) {
    loop {
        let stream = match listener.accept() {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "a connection cannot be taken");
                // It would be so again at once, for want of descriptors.
                std::thread::sleep(Duration::from_millis(100));
                continue;
            }
        };
        {
            let mut state = shared.state();
            if state.clients >= MOST_CLIENTS {
                drop(state);
                connection::turn_away(&stream);
                continue;
            }
            state.clients += 1;
        }
        let connected = Connected(Arc::clone(shared));
        let serve = move || connection::serve(&stream, &connected.0);
        // Without a thread the connection ends here.
        if let Err(error) = std::thread::Builder::new().name("client".to_owned()).spawn(serve) {
            tracing::warn!(%error, "a connection cannot be served");
        }
    }
}
