//! The life of the service: listens, takes connections, tidies up, and ends when it is told to.
//!
//! Must not know what is asked. Invariant: whoever is listened to beyond the loopback needs a token, and an end waits for answers that are
//! under way, but not for long.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use tokio::sync::{Semaphore, watch};

use crate::config::{ConfigError, Environment};
use crate::engine::Desks;
use crate::server::{descriptors, memory};

use super::connection;
use super::door::Door;
use super::routes::{self, Surface};
use super::scopes::Scopes;
use super::work::Rooms;

/// More connections at once are turned away.
const MOST_CONNECTIONS: usize = 512;
/// How long answers that are under way may hold up the end.
const FAREWELL: Duration = Duration::from_secs(10);
/// How often what was not used is let go.
const TICK: Duration = Duration::from_secs(1);
/// Work has the room for recursion that the first thread of a process has.
const STACK: usize = 8 << 20;

/// What is served, and where.
#[derive(Clone, Debug)]
pub struct Options {
    pub address: SocketAddr,
    pub environment: Environment,
    /// `--config`.
    pub config: Option<PathBuf>,
    /// `--root`.
    pub root: Option<PathBuf>,
}

/// Why there is no service.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(
        "{0} can be reached from other machines and the configuration names no tokens; add `[[http.tokens]]`, or listen on 127.0.0.1"
    )]
    Open(SocketAddr),
    #[error("{address} cannot be listened on")]
    Listen {
        address: SocketAddr,
        #[source]
        source: io::Error,
    },
    #[error("the service cannot start a thread or hear signals")]
    System(#[source] io::Error),
}

/// A service that listens.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    surface: Arc<Surface>,
    mounted: Router,
    unload: Duration,
    patience: Duration,
}

impl Server {
    /// Listens; connections wait until [`Self::run`].
    ///
    /// # Errors
    /// When the configuration, the root or the address cannot be used, or whoever comes would be let in from everywhere.
    pub fn bind(options: Options) -> Result<Self, HttpError> {
        let Options { address, environment, config, root } = options;
        let scopes = Scopes::open(environment, config, root)?;
        let config = scopes.config()?;
        if !address.ip().is_loopback() && config.http.tokens.is_empty() {
            return Err(HttpError::Open(address));
        }
        let listen = || {
            let listener = TcpListener::bind(address)?;
            listener.set_nonblocking(true)?;
            let address = listener.local_addr()?;
            Ok((listener, address))
        };
        let (listener, address) = listen().map_err(|source| HttpError::Listen { address, source })?;
        let surface = Arc::new(Surface::new(scopes, Door::new(address, !config.http.tokens.is_empty())));
        Ok(Self {
            listener,
            address,
            surface,
            mounted: Router::new(),
            unload: config.daemon.unload,
            patience: config.http.patience(),
        })
    }

    /// Returns the desks from which it answers, for what is mounted to answer from the same ones.
    pub fn desks(&self) -> Arc<Desks> {
        Arc::clone(self.surface.scopes.desks())
    }

    /// Returns the root that is served although no configuration may name it, and the name of its scope.
    pub fn own_scope(&self) -> Option<(PathBuf, String)> {
        self.surface.scopes.own().cloned()
    }

    /// Returns where its requests are worked on, for those of what is mounted.
    pub fn rooms(&self) -> Rooms {
        self.surface.rooms().clone()
    }

    /// Returns where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the same with further routes, which stand behind the same door: whoever comes in was checked, and what it may do stands as
    /// [`super::Grant`] in the extensions of its request.
    #[must_use]
    pub fn mounting(self, mounted: Router) -> Self {
        Self { mounted: self.mounted.merge(mounted), ..self }
    }

    /// Serves until a signal comes.
    ///
    /// # Errors
    /// When the system refuses a thread or the signals.
    pub fn run(self) -> Result<(), HttpError> {
        memory::keep_little();
        descriptors::raise();
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        builder.worker_threads(2).max_blocking_threads(routes::THREADS).thread_stack_size(STACK).thread_name("http").enable_all();
        let runtime = builder.build().map_err(HttpError::System)?;
        let (end, ending) = watch::channel(false);
        hear_signals(end).map_err(HttpError::System)?;
        let outcome = runtime.block_on(self.serve(ending));
        // What still runs ends with the process: builds that are not done publish nothing.
        runtime.shutdown_background();
        outcome
    }

    async fn serve(self, mut ending: watch::Receiver<bool>) -> Result<(), HttpError> {
        let Self { listener, surface, mounted, unload, patience, .. } = self;
        let listener = tokio::net::TcpListener::from_std(listener).map_err(HttpError::System)?;
        let router = routes::router(Arc::clone(&surface), mounted);
        let room = Arc::new(Semaphore::new(MOST_CONNECTIONS));
        let tidying = tokio::spawn(tidy(Arc::clone(&surface), unload));
        loop {
            let taken = tokio::select! {
                taken = listener.accept() => taken,
                () = connection::ended(&mut ending) => break,
            };
            let stream = match taken {
                Ok((stream, _)) => stream,
                Err(error) => {
                    tracing::warn!(%error, "a connection cannot be taken");
                    // It would be so again at once, for want of descriptors.
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                }
            };
            let Ok(place) = Arc::clone(&room).try_acquire_owned() else {
                surface.metrics.refused.inc();
                tokio::spawn(connection::turn_away(stream));
                continue;
            };
            let (router, ending, surface) = (router.clone(), ending.clone(), Arc::clone(&surface));
            tokio::spawn(async move {
                surface.metrics.connections.inc();
                connection::serve(stream, router, patience, ending).await;
                surface.metrics.connections.dec();
                drop(place);
            });
        }
        drop(listener);
        tidying.abort();
        let all = u32::try_from(MOST_CONNECTIONS).unwrap_or(u32::MAX);
        // Whoever is not done by then is left.
        let _ = tokio::time::timeout(FAREWELL, room.acquire_many(all)).await;
        Ok(())
    }
}

/// Lets go, about once a second, of scopes that are gone or were not used for long.
async fn tidy(surface: Arc<Surface>, unload: Duration) {
    let mut tick = tokio::time::interval_at((Instant::now() + TICK).into(), TICK);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        let surface = Arc::clone(&surface);
        let work = move || {
            let gone = surface.scopes.desks().drop_gone() + surface.scopes.desks().drop_unused(unload);
            if gone > 0 {
                tracing::info!(scopes = gone, "scopes that are gone or not used were let go");
            }
            if surface.takes_pause() || gone > 0 {
                memory::give_back();
            }
        };
        // A defect of it is told by the log, and it is tried again.
        let _ = tokio::task::spawn_blocking(work).await;
    }
}

fn hear_signals(end: watch::Sender<bool>) -> io::Result<()> {
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP])?;
    let hear = move || {
        let mut came = false;
        for signal in signals.forever() {
            if std::mem::replace(&mut came, true) {
                // Asked twice, it does not finish anything.
                let _ = signal_hook::low_level::emulate_default_handler(signal);
            }
            let _ = end.send(true);
        }
    };
    std::thread::Builder::new().name("signals".to_owned()).spawn(hear).map(drop)
}
