//! Bytes to facts, with limits. Behind [`Parser`] the grammars run in processes of their own, or, in tests, in this one.
//!
//! Must not know paths, the disk of the worktree or the database. Invariant: whatever a file holds, the outcome is facts or a
//! [`ParseFailure`]; a parser that fails costs its file and nothing else. Parsers that cannot work at all are a [`ParserError`].

#[cfg(feature = "faults")]
mod faults;
mod in_process;
mod memory;
mod pool;
mod process;
pub mod protocol;
mod system;
pub mod validate;
pub mod worker;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::config::{Limits, ParserHost};
use crate::languages::{Dialect, LanguageSupport};
use crate::model::FileFacts;

pub use in_process::InProcessParser;
pub use memory::{Memory, memory_in_use, memory_of};
pub use pool::WorkerPool;
use protocol::ProtocolError;
pub use system::close_inherited;

/// What parsing one file may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParseLimits {
    /// CPU time.
    pub time: Duration,
    pub memory_bytes: u64,
}

impl From<&Limits> for ParseLimits {
    fn from(limits: &Limits) -> Self {
        Self { time: limits.parse(), memory_bytes: limits.worker_memory_bytes }
    }
}

/// Why a file has no facts. Recorded with the generation, never in the facts cache. A timeout may be the machine's fault: it is tried
/// again once, alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, thiserror::Error)]
pub enum ParseFailure {
    #[error("parsing took too long")]
    Timeout,
    #[error("the parser crashed")]
    Crashed,
    #[error("parsing took too much memory")]
    Memory,
}

impl ParseFailure {
    /// Returns the failure that `word` stands for.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Timeout, Self::Crashed, Self::Memory].into_iter().find(|failure| failure.as_str() == word)
    }

    /// Returns the stable word of the wire contract.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Timeout => "parse_timeout",
            Self::Crashed => "parser_crashed",
            Self::Memory => "parser_memory",
        }
    }
}

/// Why no file can be parsed: the build fails.
#[derive(Debug, thiserror::Error)]
pub enum ParserError {
    #[error("a parser process cannot be started")]
    Start(#[source] io::Error),
    #[error("a parser process ended or hung before it said what it is")]
    NoGreeting,
    #[error("a parser process is of another build than this one")]
    OtherBuild,
    #[error("a parser process ended before its first file")]
    Early,
    #[error("a new parser process cannot read an empty file")]
    Unfit,
    #[error("a parser process broke the protocol")]
    Protocol(#[source] ProtocolError),
    #[error("a parser process cannot be talked to")]
    Pipe(#[source] io::Error),
}

/// Why there are no facts.
#[derive(Debug, thiserror::Error)]
pub enum ParseError {
    /// Of this file.
    #[error(transparent)]
    File(#[from] ParseFailure),
    /// Of any file.
    #[error(transparent)]
    Parser(#[from] ParserError),
}

/// The facts of a content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extracted {
    pub facts: Arc<FileFacts>,
    /// As [`crate::model::codec`] writes them, where that was done already.
    pub encoded: Option<Vec<u8>>,
}

/// Makes facts of contents. One parser serves many threads.
pub trait Parser: std::fmt::Debug + Send + Sync {
    /// Makes the facts of one content, which is text (the scan has seen to that).
    ///
    /// # Errors
    /// When the parser hits a limit or crashes, or no parser works.
    fn facts(
        &self,
        language: &'static dyn LanguageSupport,
        dialect: Dialect,
        source: &[u8],
        limits: &ParseLimits,
    ) -> Result<Extracted, ParseError>;

    /// Says that another build begins: whether it has few or many files is not known yet.
    fn begin(&self) {}

    /// Returns the memory that parsers had outside of this process, at most.
    fn peak_memory_bytes(&self) -> u64 {
        0
    }
}

/// Makes the parser that a configuration asks for; no process is started before the first file.
pub fn parser(host: &ParserHost) -> Arc<dyn Parser> {
    match host {
        ParserHost::Workers { program } => Arc::new(WorkerPool::new(program)),
        ParserHost::ThisProcess => Arc::new(InProcessParser),
    }
}
