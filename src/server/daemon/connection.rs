//! One connection as the daemon sees it: greets, reads requests and answers them one by one.
//!
//! Must not know what a request means. Invariant: whatever a client does or leaves undone costs its own thread alone, for a bounded time
//! and without turning.

use std::io;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use serde::Serialize;

use crate::engine::Onlooker;

use super::lifecycle::Shared;
use super::place;
use super::protocol::{self, Call, First, Greeting, Lines, MAX_LINE, PROTOCOL, Reply, Request, TurnedAway};

/// How long a client may take to say what it wants.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a client may read nothing while it is written to.
const UNREAD: Duration = Duration::from_secs(30);
/// How often a client is told that its work goes on, and is looked for.
pub const PULSE: Duration = Duration::from_millis(500);
/// How often a client is told how far its work is, if it wants to see that.
const GLANCE: Duration = Duration::from_millis(200);
/// A command has the room for recursion that the first thread of a process has.
const STACK: usize = 8 << 20;

/// What is not understood is answered as the contract says.
const NOT_UNDERSTOOD: &str = r#"{"error":{"code":"invalid_code_request"}}"#;

/// Serves a connection until either side has enough.
pub fn serve(stream: &UnixStream, shared: &Shared) {
    if !place::is_own_peer(stream) {
        tracing::warn!("a process of another user was turned away");
        return;
    }
    if let Err(error) = converse(stream, shared) {
        tracing::debug!(%error, "a connection ended");
    }
}

/// Tells a client that it is one too many; never waits for it.
pub fn turn_away(stream: &UnixStream) {
    // Whoever does not hear it finds the connection closed.
    let _ =
        stream.set_nonblocking(true).and_then(|()| protocol::write_line(stream, &First::Busy { error: TurnedAway::ServerBusy }));
}

fn converse(stream: &UnixStream, shared: &Shared) -> io::Result<()> {
    stream.set_write_timeout(Some(UNREAD))?;
    let greeting = Greeting {
        sextant: env!("CARGO_PKG_VERSION").to_owned(),
        protocol: PROTOCOL,
        build: shared.build().to_owned(),
        pid: std::process::id(),
    };
    protocol::write_line(stream, &greeting)?;
    let mut lines = Lines::new(stream);
    let mut patience = PATIENCE;
    while let Some(line) = lines.next(MAX_LINE, Some(Instant::now() + patience))? {
        match serde_json::from_slice(&line) {
            Ok(Request::Run(call)) => {
                let _running = shared.begin();
                run(stream, shared, call)?;
            }
            Ok(Request::Query(question)) => {
                let _running = shared.begin();
                let (onlooker, service) = (Arc::new(Onlooker::default()), shared.service());
                // It is told nothing before the answer: the wire contract knows no other line.
                let answer = attend(stream, &onlooker, PULSE, || service.query(question, &onlooker), || Ok(()))?;
                protocol::write_whole(stream, answer.into_bytes())?;
            }
            Ok(Request::Status {}) => protocol::write_line(stream, &Object { status: shared.report() })?,
            Ok(Request::Stop {}) => {
                protocol::write_whole(stream, br#"{"stopping":{}}"#.to_vec())?;
                shared.leave("a client asked for it");
            }
            Err(_) => protocol::write_whole(stream, NOT_UNDERSTOOD.into())?,
        }
        // Whoever asked before may think for a while.
        patience = shared.idle();
    }
    Ok(())
}

#[derive(Serialize)]
struct Object<T> {
    status: T,
}

/// Runs a command, and tells its client meanwhile that it goes on.
fn run(stream: &UnixStream, shared: &Shared, call: Call) -> io::Result<()> {
    let (is_seen, onlooker) = (call.progress, Arc::new(Onlooker::default()));
    let work = || shared.service().run(call, &onlooker);
    let tell = || {
        let progress = onlooker.read().filter(|_| is_seen);
        protocol::write_line(stream, &progress.map_or(Reply::Alive {}, Reply::Progress))
    };
    let replies = attend(stream, &onlooker, if is_seen { GLANCE } else { PULSE }, work, tell)?;
    replies.iter().try_for_each(|reply| protocol::write_line(stream, reply))
}

const GONE: PollFlags = PollFlags::HUP.union(PollFlags::ERR);

/// Works on something with the stack that commands have, and looks after its client meanwhile, who is told something now and then. Once
/// that is gone, the work is given up.
fn attend<T: Send>(
    stream: &UnixStream,
    onlooker: &Onlooker,
    pulse: Duration,
    work: impl FnOnce() -> T + Send,
    tell: impl Fn() -> io::Result<()>,
) -> io::Result<T> {
    let (done, outcome) = mpsc::channel();
    std::thread::scope(|scope| {
        let work = move || {
            // Nobody takes it any more when the client is gone.
            let _ = done.send(work());
        };
        let thread = std::thread::Builder::new().name("request".to_owned()).stack_size(STACK).spawn_scoped(scope, work)?;
        let look_after = || loop {
            match outcome.recv_timeout(pulse) {
                Ok(outcome) => return Ok(outcome),
                // A defect; the client finds out by itself that there is no answer.
                Err(mpsc::RecvTimeoutError::Disconnected) => return Err(io::Error::other("the request ended without an answer")),
                Err(mpsc::RecvTimeoutError::Timeout) => {
                    // Some systems tell of an end only who asks for it.
                    if protocol::wait(stream, PollFlags::HUP, Some(Duration::ZERO))?.intersects(GONE) {
                        return Err(io::ErrorKind::BrokenPipe.into());
                    }
                    tell()?;
                }
            }
        };
        let outcome = look_after();
        onlooker.cancel().cancel();
        // It was said already how it ended.
        let _ = thread.join();
        outcome
    })
}
