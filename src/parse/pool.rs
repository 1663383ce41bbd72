//! The parser processes of this process: how many there are, which one takes the next file, and who is to blame when one dies.
//!
//! Must not know files by name. Invariant: a failure is put down to a file only after the process had begun with it, and after a new
//! process has read an empty file of the same language: parsers that read nothing at all never pass for a tree that cannot be read.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::languages::{Dialect, LanguageSupport, REGISTRY};
use crate::model::ContentHash;

use super::process::{self, Answered, Ended, Worker};
use super::{Extracted, ParseError, ParseFailure, ParseLimits, Parser, ParserError, protocol};

/// As many contents of one build, or so many bytes, keep one process busy; a further one is started for each as many.
const FEW_CONTENTS: u64 = 24;
const FEW_BYTES: u64 = 256 << 10;
/// How long a new process may take for an empty file.
const TRIAL: Duration = Duration::from_secs(30);

/// A parser that runs the grammars in processes of their own. They are started when the first content comes, and end with the pool.
#[derive(Debug)]
pub struct WorkerPool {
    program: PathBuf,
    build: ContentHash,
    most: usize,
    state: Mutex<State>,
    /// Told when a process becomes idle or a place free.
    freed: Condvar,
    /// Started with the first process.
    starter: Mutex<Option<Starter>>,
}

#[derive(Debug, Default)]
struct State {
    idle: Vec<Worker>,
    /// Processes that run, or are about to.
    places: usize,
    /// What this build has asked for so far.
    contents: u64,
    bytes: u64,
}

impl WorkerPool {
    /// Makes a pool of processes of `program`, which is this program.
    pub fn new(program: &Path) -> Self {
        Self {
            program: program.to_owned(),
            build: protocol::build(REGISTRY),
            most: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            state: Mutex::default(),
            freed: Condvar::new(),
            starter: Mutex::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // What is guarded is consistent after every statement.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for an idle process, or for the place of a new one.
    fn place(&self, source_bytes: usize, memory_bytes: u64) -> Place<'_> {
        let mut state = self.state();
        state.contents += 1;
        state.bytes += source_bytes as u64;
        loop {
            while let Some(worker) = state.idle.pop() {
                if worker.memory_bytes() == memory_bytes {
                    return Place { pool: self, worker: Some(worker) };
                }
                // Bounds cannot be taken back; this one is of no use any more.
                state.places -= 1;
            }
            let wanted = 1 + (state.contents / FEW_CONTENTS).max(state.bytes / FEW_BYTES);
            if (state.places as u64) < wanted.min(self.most as u64) {
                state.places += 1;
                return Place { pool: self, worker: None };
            }
            state = self.freed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn start(&self, memory_bytes: u64) -> Result<Worker, ParserError> {
        let answer = {
            let mut starter = self.starter.lock().unwrap_or_else(PoisonError::into_inner);
            let starter = match &mut *starter {
                Some(starter) => starter,
                none => none.insert(Starter::new(&self.program).map_err(ParserError::Start)?),
            };
            starter.request(memory_bytes)
        };
        let child = answer.recv().map_err(io::Error::other).flatten().map_err(ParserError::Start)?;
        let worker = Worker::greet(child, self.build, memory_bytes)?;
        tracing::debug!("a parser process was started");
        Ok(worker)
    }

    /// Puts a failure down to its file, if a new process can read an empty one.
    fn blame(
        &self,
        mut place: Place<'_>,
        failure: ParseFailure,
        language: &'static dyn LanguageSupport,
        dialect: Dialect,
        memory_bytes: u64,
    ) -> ParseError {
        tracing::warn!(language = language.name(), failure = failure.as_str(), "a parser failed; its file keeps only its text");
        place.worker = None;
        let mut tried = match self.start(memory_bytes) {
            Ok(worker) => worker,
            Err(error) => return error.into(),
        };
        match tried.ask(language, dialect, "", &ParseLimits { time: TRIAL, memory_bytes }) {
            Ok(Answered::Facts { used_up: false, .. }) => {
                place.worker = Some(tried);
                failure.into()
            }
            Ok(Answered::Facts { .. }) => failure.into(),
            _ => ParserError::Unfit.into(),
        }
    }
}

impl Parser for WorkerPool {
    fn facts(
        &self,
        language: &'static dyn LanguageSupport,
        dialect: Dialect,
        source: &[u8],
        limits: &ParseLimits,
    ) -> Result<Extracted, ParseError> {
        let source = std::str::from_utf8(source).map_err(|_| ParseFailure::Crashed)?;
        let memory_bytes = limits.memory_bytes;
        let mut killed = false;
        loop {
            let mut place = self.place(source.len(), memory_bytes);
            let mut worker = match place.worker.take() {
                Some(worker) => worker,
                None => self.start(memory_bytes)?,
            };
            let fresh = worker.is_fresh();
            let failure = match worker.ask(language, dialect, source, limits) {
                Ok(Answered::Facts { extracted, used_up }) => {
                    place.worker = Some(worker).filter(|_| !used_up);
                    return Ok(extracted);
                }
                Ok(Answered::Failed(ParseFailure::Timeout)) => {
                    place.worker = Some(worker);
                    return Err(ParseFailure::Timeout.into());
                }
                Ok(Answered::Failed(failure)) => failure,
                Ok(Answered::Misfit(misfit)) => {
                    tracing::warn!(language = language.name(), %misfit, "a parser gave facts that cannot be");
                    ParseFailure::Crashed
                }
                Err(Ended::Stalled) => ParseFailure::Timeout,
                Err(Ended::OutOfMemory) => ParseFailure::Memory,
                Err(Ended::Crashed) => ParseFailure::Crashed,
                // Nothing in a parser kills so; where memory is short the system does. Once may be chance.
                Err(Ended::Killed) if killed => ParseFailure::Memory,
                Err(Ended::Killed) => {
                    killed = true;
                    continue;
                }
                Err(Ended::Unbegun) if fresh => return Err(ParserError::Early.into()),
                // It died while it was idle; there are only so many of these.
                Err(Ended::Unbegun) => continue,
                Err(Ended::Protocol(error)) => return Err(ParserError::Protocol(error).into()),
                Err(Ended::Pipe(error)) => return Err(ParserError::Pipe(error).into()),
            };
            drop(worker);
            return Err(self.blame(place, failure, language, dialect, memory_bytes));
        }
    }

    fn begin(&self) {
        let mut state = self.state();
        (state.contents, state.bytes) = (0, 0);
    }

    fn peak_memory_bytes(&self) -> u64 {
        self.state().idle.iter().filter_map(Worker::peak_memory_bytes).sum()
    }
}

impl Drop for WorkerPool {
    fn drop(&mut self) {
        // The processes end before the thread that started them does.
        self.state().idle.clear();
        if let Some(Starter { requests, thread }) = self.starter.get_mut().unwrap_or_else(PoisonError::into_inner).take() {
            drop(requests);
            // It only waits for requests, and there are none any more.
            let _ = thread.join();
        }
    }
}

/// The right to one running process. When it is given back without one, another may be started.
struct Place<'a> {
    pool: &'a WorkerPool,
    worker: Option<Worker>,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut state = self.pool.state();
        match self.worker.take() {
            Some(worker) => state.idle.push(worker),
            None => state.places -= 1,
        }
        drop(state);
        self.pool.freed.notify_one();
    }
}

/// The thread that starts processes: it lives as long as the pool, which a thread of a scan does not, and its children with it.
#[derive(Debug)]
struct Starter {
    requests: mpsc::Sender<Request>,
    thread: JoinHandle<()>,
}

#[derive(Debug)]
struct Request {
    memory_bytes: u64,
    answer: mpsc::Sender<io::Result<Child>>,
}

impl Starter {
    fn new(program: &Path) -> io::Result<Self> {
        let (requests, received) = mpsc::channel::<Request>();
        let program: Arc<Path> = program.into();
        let work = move || {
            for request in received {
                if let Err(mpsc::SendError(Ok(mut unwanted))) =
                    request.answer.send(process::start(&program, request.memory_bytes))
                {
                    let _ = unwanted.kill();
                    let _ = unwanted.wait();
                }
            }
        };
        let thread = std::thread::Builder::new().name("parsers".to_owned()).spawn(work)?;
        Ok(Self { requests, thread })
    }

    fn request(&self, memory_bytes: u64) -> mpsc::Receiver<io::Result<Child>> {
        let (answer, receiver) = mpsc::channel();
        // Should the thread be gone, the answer will not come, and says so.
        let _ = self.requests.send(Request { memory_bytes, answer });
        receiver
    }
}
