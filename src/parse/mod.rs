//! Bytes to facts, with limits. Behind [`Parser`] the grammars may run in this process or in others.
//!
//! Must not know paths, the disk of the worktree or the database. Invariant: whatever a file holds, the outcome is facts or a
//! [`ParseFailure`]; a parser that fails costs its file and nothing else.

mod in_process;

use std::time::Duration;

use crate::config::Limits;
use crate::languages::{Dialect, LanguageSupport};
use crate::model::FileFacts;

pub use in_process::InProcessParser;

/// What parsing one file may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParseLimits {
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
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

/// Makes facts of contents. One parser serves many threads.
pub trait Parser: Send + Sync {
    /// Makes the facts of one content, which is text (the scan has seen to that).
    ///
    /// # Errors
    /// When the parser hits a limit or crashes.
    fn facts(
        &self,
        language: &'static dyn LanguageSupport,
        dialect: Dialect,
        source: &[u8],
        limits: &ParseLimits,
    ) -> Result<FileFacts, ParseFailure>;
}
