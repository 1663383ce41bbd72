//! The other end of the socket: finds the daemon of this build, hands it a command line, and gets what it wrote.
//!
//! Must not know what to do without a daemon. Invariant: nothing is returned of a command before all of it is there, and no wait is
//! longer than a daemon that works makes it.

use std::io;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use serde::Deserialize;

use crate::engine::{Onlooker, Progress};

use super::Report;
use super::place::{self, Place};
use super::protocol::{self, Call, First, Greeting, Lines, MAX_LINE, PROTOCOL, Reply, Request};

/// How long a daemon may take to greet; one that works does it at once, even where there is much to do.
const GREETING: Duration = Duration::from_secs(2);
/// How long a daemon may be silent while it works; it says every half second that it does.
const SILENCE: Duration = Duration::from_secs(5);
/// How long a daemon that was asked to leave may take.
const FAREWELL: Duration = Duration::from_secs(10);

/// Why there is no daemon to ask.
#[derive(Debug, thiserror::Error)]
pub enum Absent {
    #[error("no daemon runs")]
    Nobody(#[source] io::Error),
    #[error("what listens in place of the daemon does not greet as one")]
    Silent(#[source] io::Error),
    #[error("the daemon is of another build")]
    OtherBuild,
    /// It is stopped, or the machine has no time for it.
    #[error("the daemon does not answer")]
    Stuck(Peer),
    #[error("server busy: all connections of the daemon are taken")]
    Busy(Peer),
}

/// What listens in the place of a daemon, and how to make it end.
#[derive(Debug)]
pub struct Peer {
    stream: Option<UnixStream>,
    /// Its process, if that is one of this program.
    pub pid: Option<u32>,
}

impl Peer {
    fn of(stream: UnixStream) -> Self {
        let pid = place::peer_of_this_program(&stream);
        Self { stream: Some(stream), pid }
    }

    /// Makes its process end, also where that is stopped, and waits for it.
    ///
    /// # Errors
    /// When it is not known, or stays.
    pub fn end(&self) -> Result<(), Lost> {
        let stream = self.stream.as_ref().ok_or(Lost::Unknown)?;
        // It may have ended by now, and another process have its number; not as long as somebody listens.
        let pid = place::peer_of_this_program(stream).ok_or(Lost::Unknown)?;
        place::make_end(pid).map_err(Lost::Gone)?;
        wait_for_end(stream, Duration::from_secs(5)).map_err(|_| Lost::Stays)
    }
}

/// Why a daemon gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum Lost {
    #[error("the request is too long for the daemon")]
    TooLong,
    #[error("the daemon went away")]
    Gone(#[source] io::Error),
    /// Nobody waits for the answer any more.
    #[error("the request was given up")]
    Unwanted,
    #[error("the daemon said what none says")]
    Protocol,
    #[error("the process that listens in the place of the daemon is not known to be one")]
    Unknown,
    #[error("the daemon does not end")]
    Stays,
}

/// What a command wrote, in order, and how it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ran {
    /// Pieces of standard output and standard error.
    pub said: Vec<Reply>,
    pub status: u8,
}

/// A connection to a daemon of this build.
#[derive(Debug)]
pub struct Client {
    stream: UnixStream,
    pub greeting: Greeting,
}

impl Client {
    /// Connects to the daemon of a place.
    ///
    /// # Errors
    /// When there is none, or none of this build.
    pub fn connect(place: &Place) -> Result<Self, Absent> {
        let stream = place.connect().map_err(|error| match error.kind() {
            // So many wait to be greeted that no more are taken.
            io::ErrorKind::WouldBlock => Absent::Stuck(Peer { stream: None, pid: None }),
            _ => Absent::Nobody(error),
        })?;
        let line = match Lines::new(&stream).next(MAX_LINE, Some(Instant::now() + GREETING)) {
            Err(error) if error.kind() == io::ErrorKind::TimedOut => return Err(Absent::Stuck(Peer::of(stream))),
            line => line.map_err(Absent::Silent)?.ok_or_else(|| Absent::Silent(io::ErrorKind::UnexpectedEof.into()))?,
        };
        let greeting = match serde_json::from_slice(&line).map_err(|error| Absent::Silent(error.into()))? {
            First::Greeting(greeting) => greeting,
            First::Busy { .. } => return Err(Absent::Busy(Peer::of(stream))),
        };
        if greeting.protocol != PROTOCOL || greeting.build != place.build() {
            return Err(Absent::OtherBuild);
        }
        // One that is stopped takes nothing any more once its buffer is full.
        stream.set_write_timeout(Some(SILENCE)).map_err(Absent::Nobody)?;
        Ok(Self { stream, greeting })
    }

    /// Has a command line run. Returns all that it wrote.
    ///
    /// # Errors
    /// As [`Self::run_showing`].
    pub fn run(&self, call: Call, limit: Duration) -> Result<Ran, Lost> {
        self.run_showing(call, limit, &mut |_| {})
    }

    /// Has a command line run, and tells `show` how far it is meanwhile, if the call asks for that. Returns all that it wrote.
    ///
    /// # Errors
    /// When the daemon goes away, says nothing for long, or has not done within `limit`; nothing has come of it then, but what the command
    /// did to the index.
    pub fn run_showing(&self, call: Call, limit: Duration, show: &mut dyn FnMut(Progress)) -> Result<Ran, Lost> {
        self.follow(call, limit, &|| false, show)
    }

    /// As [`Self::run`], for an onlooker who is told how far it is; given up soon after that one went away.
    ///
    /// # Errors
    /// As [`Self::run`], and when it is given up.
    pub fn run_for(&self, call: Call, limit: Duration, onlooker: &Onlooker) -> Result<Ran, Lost> {
        self.follow(call, limit, &|| onlooker.cancel().is_cancelled(), &mut |progress| onlooker.tell(progress))
    }

    fn follow(
        &self,
        call: Call,
        limit: Duration,
        is_unwanted: &dyn Fn() -> bool,
        show: &mut dyn FnMut(Progress),
    ) -> Result<Ran, Lost> {
        let end = Instant::now() + limit;
        self.send(&Request::Run(call))?;
        let mut lines = Lines::new(&self.stream);
        let mut said = Vec::new();
        loop {
            match receive(&mut lines, SILENCE)? {
                Reply::Alive {} | Reply::Progress(_) if Instant::now() > end => {
                    return Err(Lost::Gone(io::ErrorKind::TimedOut.into()));
                }
                Reply::Alive {} | Reply::Progress(_) if is_unwanted() => return Err(Lost::Unwanted),
                Reply::Alive {} => {}
                Reply::Progress(progress) => show(progress),
                Reply::Exit { status } => return Ok(Ran { said, status }),
                piece @ (Reply::Out(_) | Reply::Err(_)) => said.push(piece),
            }
        }
    }

    /// Asks how the daemon is.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn status(&self) -> Result<Report, Lost> {
        #[derive(Deserialize)]
        struct Object {
            status: Report,
        }
        self.send(&Request::Status {})?;
        receive(&mut Lines::new(&self.stream), SILENCE).map(|Object { status }| status)
    }

    /// Makes the daemon leave, and waits until its process has ended.
    ///
    /// # Errors
    /// When it stays.
    pub fn stop(&self) -> Result<(), Lost> {
        self.send(&Request::Stop {})?;
        // It says so, and keeps the connection until it ends.
        wait_for_end(&self.stream, FAREWELL).map_err(|_| Lost::Stays)
    }

    /// Returns who is at the other end, to be ended where it does not leave by itself.
    pub fn into_peer(self) -> Peer {
        Peer::of(self.stream)
    }

    fn send(&self, request: &Request) -> Result<(), Lost> {
        let line = serde_json::to_vec(request).map_err(|_| Lost::Protocol)?;
        if line.len() > MAX_LINE {
            return Err(Lost::TooLong);
        }
        protocol::write_whole(&self.stream, line).map_err(Lost::Gone)
    }
}

/// Waits until nobody is at the other end any more, whatever is said before.
fn wait_for_end(stream: &UnixStream, limit: Duration) -> io::Result<()> {
    let (mut lines, end) = (Lines::new(stream), Instant::now() + limit);
    while let Some(_said) = lines.next(MAX_LINE, Some(end)).or_else(ended)? {}
    Ok(())
}

/// A connection that breaks has ended, too.
fn ended(error: io::Error) -> io::Result<Option<Vec<u8>>> {
    if error.kind() == io::ErrorKind::ConnectionReset { Ok(None) } else { Err(error) }
}

fn receive<T: for<'de> Deserialize<'de>>(lines: &mut Lines<'_>, limit: Duration) -> Result<T, Lost> {
    let line = lines.next(MAX_LINE, Some(Instant::now() + limit)).map_err(Lost::Gone)?;
    let line = line.ok_or_else(|| Lost::Gone(io::ErrorKind::UnexpectedEof.into()))?;
    serde_json::from_slice(&line).map_err(|_| Lost::Protocol)
}
