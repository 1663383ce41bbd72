//! One parser process, as the build that uses it sees it: started, greeted, asked, and buried.
//!
//! Must not know how many there are. Invariant: no call waits longer than its deadline, whatever the process does, and no process is left
//! behind: dropping it kills it and waits for its end.

use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::languages::{Dialect, LanguageSupport};
use crate::model::{ContentHash, codec};

use super::memory::{Memory, memory_of};
use super::protocol::{self, Answer, Header, LENGTH_BYTES, ProtocolError};
use super::system;
use super::validate::{self, Misfit};
use super::{Extracted, ParseFailure, ParseLimits, ParserError};

/// How long a process may take to say its first word; a machine under load takes seconds.
const GREETING: Duration = Duration::from_secs(30);
/// How much is read at once.
const CHUNK: usize = 256 << 10;

/// A parser process that said its first word.
#[derive(Debug)]
pub struct Worker {
    child: Child,
    requests: ChildStdin,
    answers: ChildStdout,
    complaints: ChildStderr,
    memory_bytes: u64,
    /// Requests made so far.
    sequence: u64,
    /// Sent as far as the process takes it.
    sending: Vec<u8>,
    sent: usize,
    /// Received and not yet looked at.
    received: Vec<u8>,
    filled: usize,
}

/// What a process answered about a file.
#[derive(Debug)]
pub enum Answered {
    Facts {
        extracted: Extracted,
        used_up: bool,
    },
    Failed(ParseFailure),
    /// Facts that are not of the source; the process is not to be trusted any more.
    Misfit(Misfit),
}

/// How a process ended instead of answering.
#[derive(Debug)]
pub enum Ended {
    /// It did not get as far as the file.
    Unbegun,
    /// It did not answer in time and was killed.
    Stalled,
    /// The system did not give it more memory.
    OutOfMemory,
    /// Someone else killed it.
    Killed,
    Crashed,
    /// It said what no parser says.
    Protocol(ProtocolError),
    /// It cannot be talked to.
    Pipe(io::Error),
}

/// Starts a process; [`Worker::greet`] then hears what it is. The calling thread must outlive the process: on Linux the system kills it
/// with its parent, and takes the thread for that.
///
/// # Errors
/// When the program cannot be run.
pub fn start(program: &Path, memory_bytes: u64) -> io::Result<Child> {
    let mut command = Command::new(program);
    command
        .arg0("sextant")
        .args(["parse-worker", "--memory-bytes", &memory_bytes.to_string(), "--parent", &std::process::id().to_string()])
        .env_clear()
        .current_dir("/")
        // What a terminal tells the programs in front of it, such as to stop, is for whoever asks, and no death of a file's parser.
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    #[cfg(feature = "faults")]
    command.envs(super::faults::passed_on());
    command.spawn()
}

impl Worker {
    /// Waits for the first word of a process, which must be that it is of this build.
    ///
    /// # Errors
    /// When it ends, is of another build, or says something else.
    pub fn greet(mut child: Child, build: ContentHash, memory_bytes: u64) -> Result<Self, ParserError> {
        let (requests, answers, complaints) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let mut worker = Self {
            child,
            requests: requests.expect("it was asked for"),
            answers: answers.expect("it was asked for"),
            complaints: complaints.expect("it was asked for"),
            memory_bytes,
            sequence: 0,
            sending: Vec::new(),
            sent: 0,
            received: Vec::new(),
            filled: 0,
        };
        for end in [worker.requests.as_fd(), worker.answers.as_fd(), worker.complaints.as_fd()] {
            system::prepare_pipe(end).map_err(ParserError::Start)?;
        }
        match worker.next(Instant::now() + GREETING, protocol::max_answer(0)) {
            Ok(length) => match protocol::parse_answer(worker.frame(length)) {
                Ok((Answer::Ready { build: other }, _)) if other == build.0 => {
                    worker.forget(length);
                    Ok(worker)
                }
                Ok((Answer::Ready { .. }, _)) => Err(ParserError::OtherBuild),
                Ok(_) => Err(ParserError::Protocol(ProtocolError::Turn)),
                Err(error) => Err(ParserError::Protocol(error)),
            },
            Err(Ended::Protocol(error)) => Err(ParserError::Protocol(error)),
            Err(Ended::Pipe(error)) => Err(ParserError::Start(error)),
            Err(_) => Err(ParserError::NoGreeting),
        }
    }

    pub fn memory_bytes(&self) -> u64 {
        self.memory_bytes
    }

    /// Returns whether it was never asked anything.
    pub fn is_fresh(&self) -> bool {
        self.sequence == 0
    }

    /// Returns the most memory it ever had, where the system tells.
    pub fn peak_memory_bytes(&self) -> Option<u64> {
        memory_of(self.child.id(), Memory::Peak)
    }

    /// Asks for the facts of a source, and waits for as long as the limits give the process, and then some.
    ///
    /// # Errors
    /// When it ended instead; it must not be asked again.
    pub fn ask(
        &mut self,
        language: &'static dyn LanguageSupport,
        dialect: Dialect,
        source: &str,
        limits: &ParseLimits,
    ) -> Result<Answered, Ended> {
        self.sequence += 1;
        let sequence = self.sequence;
        let time_millis = u64::try_from(limits.time.as_millis()).unwrap_or(u64::MAX);
        let header = Header { sequence, language: language.name(), dialect, time_millis };
        self.sending.clear();
        self.sent = 0;
        protocol::write_request(&mut self.sending, &header, source.as_bytes());
        // The process keeps the time of a parse itself, and counts only what it works. It is taken for stalled after some more time, in
        // which other work may keep it waiting.
        let deadline = Instant::now() + limits.time * 3 + Duration::from_secs(1);
        let limit = protocol::max_answer(source.len()) + LENGTH_BYTES;

        let length = self.next(deadline, limit).map_err(|ended| match ended {
            Ended::Stalled | Ended::Killed | Ended::Crashed | Ended::OutOfMemory => Ended::Unbegun,
            other => other,
        })?;
        let begun = protocol::parse_answer(self.frame(length)).map_err(Ended::Protocol)?.0;
        // It cannot have read what was not sent.
        if begun != (Answer::Begun { sequence }) || self.sent < self.sending.len() {
            return Err(Ended::Protocol(ProtocolError::Turn));
        }
        self.forget(length);
        let length = self.next(deadline, limit)?;
        let (answer, encoded) = protocol::parse_answer(self.frame(length)).map_err(Ended::Protocol)?;
        let answered = match answer {
            Answer::Facts { sequence: of, .. } | Answer::Failed { sequence: of, .. } if of != sequence => {
                return Err(Ended::Protocol(ProtocolError::Sequence));
            }
            Answer::Facts { used_up, .. } => {
                let facts = codec::decode(encoded).ok_or(Ended::Protocol(ProtocolError::Unknown))?;
                match validate::validate(&facts, source) {
                    Ok(()) => Answered::Facts {
                        extracted: Extracted { facts: Arc::new(facts), encoded: Some(encoded.to_vec()) },
                        used_up,
                    },
                    Err(misfit) => Answered::Misfit(misfit),
                }
            }
            Answer::Failed { failure, .. } => Answered::Failed(failure),
            Answer::Ready { .. } | Answer::Begun { .. } => return Err(Ended::Protocol(ProtocolError::Turn)),
        };
        self.forget(length);
        if self.filled > 0 {
            // Nothing is said unasked.
            return Err(Ended::Protocol(ProtocolError::Turn));
        }
        Ok(answered)
    }

    /// Sends what is left to send and receives, until a whole frame is there. Returns its length.
    fn next(&mut self, deadline: Instant, limit: usize) -> Result<usize, Ended> {
        loop {
            let frame = protocol::frame_length(&self.received[..self.filled], limit).map_err(Ended::Protocol)?;
            if let Some(length) = frame.filter(|length| self.filled >= LENGTH_BYTES + length) {
                return Ok(length);
            }
            if self.sent < self.sending.len() {
                match self.requests.write(&self.sending[self.sent..]) {
                    Ok(count) => self.sent += count,
                    Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
                    // It ended, and may have said something before.
                    Err(error) if error.kind() == io::ErrorKind::BrokenPipe => self.sent = self.sending.len(),
                    Err(error) => return Err(Ended::Pipe(error)),
                }
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Ended::Stalled);
            }
            let write = (self.sent < self.sending.len()).then(|| self.requests.as_fd());
            if !system::wait_for(self.answers.as_fd(), write, left).map_err(Ended::Pipe)? {
                continue;
            }
            if self.received.len() < self.filled + CHUNK {
                self.received.resize(self.filled + CHUNK, 0);
            }
            match self.answers.read(&mut self.received[self.filled..]) {
                Ok(0) => return Err(self.bury()),
                Ok(count) => self.filled += count,
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
                Err(error) => return Err(Ended::Pipe(error)),
            }
        }
    }

    /// Returns the body of the frame that [`Self::next`] found.
    fn frame(&self, length: usize) -> &[u8] {
        &self.received[LENGTH_BYTES..LENGTH_BYTES + length]
    }

    /// Drops the frame that [`Self::next`] found.
    fn forget(&mut self, length: usize) {
        let end = LENGTH_BYTES + length;
        self.received.copy_within(end..self.filled, 0);
        self.filled -= end;
        // One large file must not keep its room for ever.
        if self.received.len() > 4 * CHUNK && self.filled < CHUNK {
            self.received.truncate(CHUNK);
            self.received.shrink_to_fit();
        }
    }

    /// Finds out why a process closed its answers.
    fn bury(&mut self) -> Ended {
        // It is ending, so that this changes nothing, or it only closed its end, and has to end now.
        let _ = self.child.kill();
        let signal = match self.child.wait() {
            Ok(status) => status.signal(),
            Err(error) => return Ended::Pipe(error),
        };
        match signal {
            Some(libc::SIGKILL) => Ended::Killed,
            Some(libc::SIGABRT) if self.complained_of_memory() => Ended::OutOfMemory,
            _ => Ended::Crashed,
        }
    }

    /// Returns whether the last words were that memory could not be had: those of Rust's allocator or of tree-sitter's.
    fn complained_of_memory(&mut self) -> bool {
        let mut words = [0; 4096];
        let length = self.complaints.read(&mut words).unwrap_or(0);
        let words = String::from_utf8_lossy(&words[..length]);
        words.contains("memory allocation of") || words.contains("failed to allocate")
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // Both fail only when it is gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
