//! Files that could not be parsed, as a generation remembers them: why, and under what, so that `sync` does not try in vain what failed
//! before, and does try what may go well now.
//!
//! Must not parse anything. Invariant: a record says all that another try depends on beside the bytes, so that nothing else has to be
//! kept right for it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::languages::text;
use crate::model::FileFacts;
use crate::parse::{ParseFailure, ParseLimits};

/// How many builds try a file that took too long. Others may have been in its way the first time.
const ROUNDS: u32 = 2;

/// A content that could not be parsed: why, and what its text says nevertheless. What the text says is made anew for each generation
/// from the bytes, and kept nowhere else.
#[derive(Clone, Debug)]
pub(super) struct FailedContent {
    pub parse: FailedParse,
    pub facts: Arc<FileFacts>,
    pub words: Arc<str>,
}

impl FailedContent {
    pub fn new(parse: FailedParse, bytes: &[u8]) -> Self {
        // The scan lets no other text pass.
        let source = String::from_utf8_lossy(bytes);
        Self { parse, facts: Arc::new(text::facts_of_failed(&source)), words: Arc::from(text::words(&source)) }
    }
}

/// One failure to make facts of a content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FailedParse {
    pub failure: ParseFailure,
    pub limits: ParseLimits,
    /// The build of the extractor that failed.
    pub build: String,
    /// How many builds found it so.
    pub rounds: u32,
}

impl FailedParse {
    pub fn new(failure: ParseFailure, limits: ParseLimits, build: &str) -> Self {
        Self { failure, limits, build: build.to_owned(), rounds: 1 }
    }

    /// Returns whether a build under these limits, with this extractor, has a reason to try again.
    pub fn is_due(&self, limits: &ParseLimits, build: &str) -> bool {
        let again = self.failure == ParseFailure::Timeout && self.rounds < ROUNDS;
        again || !self.is_same(limits, build)
    }

    /// Returns the failure with the builds counted that had found it before.
    pub fn after(self, before: Option<&Self>) -> Self {
        match before {
            Some(before) if before.failure == self.failure && before.is_same(&self.limits, &self.build) => {
                Self { rounds: before.rounds.saturating_add(1), ..self }
            }
            _ => self,
        }
    }

    fn is_same(&self, limits: &ParseLimits, build: &str) -> bool {
        self.limits == *limits && self.build == build
    }

    /// Reads what [`fmt::Display`] wrote; `None` for anything else, as other builds may have written it.
    pub fn parse(text: &str) -> Option<Self> {
        let mut words = text.splitn(5, ' ');
        let failure = ParseFailure::parse(words.next()?)?;
        let mut number = |name: &str| words.next()?.strip_prefix(name)?.parse::<u64>().ok();
        let rounds = u32::try_from(number("rounds=")?).ok()?;
        let time = Duration::from_millis(number("time_ms=")?);
        let memory_bytes = number("memory_bytes=")?;
        let build = words.next()?.strip_prefix("build=")?.to_owned();
        Some(Self { failure, limits: ParseLimits { time, memory_bytes }, build, rounds })
    }
}

/// The contract's word comes first, the rest is for later builds.
impl fmt::Display for FailedParse {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ParseLimits { time, memory_bytes } = self.limits;
        let (word, rounds, millis) = (self.failure.as_str(), self.rounds, time.as_millis());
        write!(out, "{word} rounds={rounds} time_ms={millis} memory_bytes={memory_bytes} build={}", self.build)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: ParseLimits = ParseLimits { time: Duration::from_secs(5), memory_bytes: 1 << 30 };

    fn failed(failure: ParseFailure) -> FailedParse {
        FailedParse::new(failure, LIMITS, "extractor-1 grammar-2")
    }

    #[test]
    fn records_round_trip() {
        let record = failed(ParseFailure::Memory);
        assert_eq!(record.to_string(), "parser_memory rounds=1 time_ms=5000 memory_bytes=1073741824 build=extractor-1 grammar-2");
        assert_eq!(FailedParse::parse(&record.to_string()), Some(record));
        for text in ["", "parser_memory", "parser_memory rounds=x", "nonsense rounds=1 time_ms=1 memory_bytes=1 build=x"] {
            assert_eq!(FailedParse::parse(text), None, "{text}");
        }
    }

    #[test]
    fn what_makes_another_try_worth_while() {
        let build = "extractor-1 grammar-2";
        for failure in [ParseFailure::Crashed, ParseFailure::Memory] {
            assert!(!failed(failure).is_due(&LIMITS, build));
            assert!(failed(failure).is_due(&LIMITS, "extractor-2 grammar-2"));
            assert!(failed(failure).is_due(&ParseLimits { memory_bytes: 1, ..LIMITS }, build));
            assert!(failed(failure).is_due(&ParseLimits { time: Duration::from_secs(6), ..LIMITS }, build));
        }
        let once = failed(ParseFailure::Timeout);
        assert!(once.is_due(&LIMITS, build));
        let twice = failed(ParseFailure::Timeout).after(Some(&once));
        assert_eq!(twice.rounds, 2);
        assert!(!twice.is_due(&LIMITS, build));
        assert!(twice.is_due(&LIMITS, "extractor-2 grammar-2"));
        assert_eq!(failed(ParseFailure::Crashed).after(Some(&twice)).rounds, 1);
    }
}
