//! The grammars, run on the calling thread, with a deadline and a fence against panics. A parser process runs them so, and tests may.
//!
//! Must not know processes. Invariant: a panic of an extractor ends here. Memory is that of the whole process, looked at while a parse
//! runs: a bound against runaway files, not an account.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::languages::{Dialect, ExtractError, LanguageSupport};
use crate::model::FileFacts;

use super::memory::{Memory, memory_in_use};
use super::system;
use super::{Extracted, ParseError, ParseFailure, ParseLimits, Parser};

/// How often a running parse looks at the memory of the process.
const MEMORY_INTERVAL: Duration = Duration::from_millis(50);

/// The parser without worker processes.
#[derive(Clone, Copy, Debug, Default)]
pub struct InProcessParser;

impl InProcessParser {
    /// Makes the facts of one content.
    ///
    /// # Errors
    /// When a limit is hit, or the extractor panics.
    pub fn extract(
        language: &'static dyn LanguageSupport,
        dialect: Dialect,
        source: &[u8],
        limits: &ParseLimits,
    ) -> Result<FileFacts, ParseFailure> {
        let text = std::str::from_utf8(source).map_err(|_| ParseFailure::Crashed)?;
        let mut watch = Watch::start(limits);
        // An extractor keeps nothing between files, so a panic leaves nothing half done behind.
        let outcome = catch_unwind(AssertUnwindSafe(|| language.extract(text, dialect, &mut || watch.should_stop())));
        match outcome {
            Ok(Ok(facts)) => Ok(facts),
            Ok(Err(ExtractError::Stopped)) => Err(watch.failure()),
            Err(_) => Err(ParseFailure::Crashed),
        }
    }
}

impl Parser for InProcessParser {
    fn facts(
        &self,
        language: &'static dyn LanguageSupport,
        dialect: Dialect,
        source: &[u8],
        limits: &ParseLimits,
    ) -> Result<Extracted, ParseError> {
        let facts = Arc::new(Self::extract(language, dialect, source, limits)?);
        Ok(Extracted { facts, encoded: None })
    }
}

/// Follows one parse.
struct Watch {
    started: Instant,
    /// CPU time of the thread before the parse: what the limit is of, so that a machine under load parses no less.
    used_before: Duration,
    deadline: Duration,
    memory_bytes: u64,
    next_memory_check: Duration,
    failure: Option<ParseFailure>,
}

impl Watch {
    fn start(limits: &ParseLimits) -> Self {
        Self {
            started: Instant::now(),
            used_before: system::thread_time(),
            deadline: limits.time,
            memory_bytes: limits.memory_bytes,
            next_memory_check: MEMORY_INTERVAL,
            failure: None,
        }
    }

    fn should_stop(&mut self) -> bool {
        if self.failure.is_some() {
            return true;
        }
        let elapsed = self.started.elapsed();
        // CPU time is never more than what has passed, which costs less to ask for.
        if elapsed >= self.deadline && system::thread_time() - self.used_before >= self.deadline {
            self.failure = Some(ParseFailure::Timeout);
        } else if elapsed >= self.next_memory_check {
            self.next_memory_check = elapsed + MEMORY_INTERVAL;
            if memory_in_use(Memory::Resident).is_some_and(|resident| resident > self.memory_bytes) {
                self.failure = Some(ParseFailure::Memory);
            }
        }
        self.failure.is_some()
    }

    fn failure(&self) -> ParseFailure {
        self.failure.unwrap_or(ParseFailure::Timeout)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::languages::{ExportTable, Lookup, ModuleKey, ModuleResolution};
    use crate::model::{FileEdges, ParseStatus, RepoPath, Surface, Target};

    /// A language that does what its source says.
    struct Obedient;

    impl LanguageSupport for Obedient {
        fn name(&self) -> &'static str {
            "obedient"
        }

        fn dialect(&self, _: &RepoPath) -> Option<Dialect> {
            None
        }

        fn dialects(&self) -> &'static [Dialect] {
            &["obedient"]
        }

        fn extractor_build(&self) -> &'static str {
            "1"
        }

        fn resolver_build(&self) -> &'static str {
            "1"
        }

        fn is_test(&self, _: &RepoPath) -> bool {
            false
        }

        fn limitations(&self) -> &'static [&'static str] {
            &[]
        }

        fn extract(&self, source: &str, _: Dialect, stop: &mut dyn FnMut() -> bool) -> Result<FileFacts, ExtractError> {
            match source {
                "panic" => panic!("as it was told"),
                "loop" => loop {
                    if stop() {
                        return Err(ExtractError::Stopped);
                    }
                },
                _ => Ok(crate::languages::text::facts("txt", source)),
            }
        }

        fn context(&self, _: &str, _: &dyn Lookup) -> Arc<str> {
            Arc::from("")
        }

        fn module(&self, _: &str, _: &str, _: &dyn Lookup) -> ModuleResolution {
            ModuleResolution::External
        }

        fn module_of(&self, path: &RepoPath, _: &dyn Lookup) -> ModuleKey {
            ModuleKey(Arc::from(path.as_str()))
        }

        fn module_name(&self, _: &RepoPath, _: &dyn Lookup) -> Option<Arc<str>> {
            None
        }

        fn export_sources(&self, _: &ModuleKey, _: &dyn Lookup) -> Vec<ModuleKey> {
            Vec::new()
        }

        fn solve_exports(&self, component: &[ModuleKey], _: &dyn Lookup) -> Vec<ExportTable> {
            component.iter().map(|_| ExportTable::default()).collect()
        }

        fn rebindings(&self, _: &RepoPath, _: &Surface, _: &dyn Lookup) -> Vec<Target> {
            Vec::new()
        }

        fn resolve(&self, _: &RepoPath, _: &FileFacts, _: &dyn Lookup) -> FileEdges {
            FileEdges::default()
        }
    }

    fn check(source: &str, time: Duration, memory_bytes: u64) -> Result<ParseStatus, ParseFailure> {
        let limits = ParseLimits { time, memory_bytes };
        InProcessParser::extract(&Obedient, "obedient", source.as_bytes(), &limits).map(|facts| facts.parse)
    }

    #[test]
    fn failures_stay_with_their_file() {
        let long = Duration::from_secs(60);
        assert_eq!(check("fine", long, u64::MAX), Ok(ParseStatus::Unsupported));
        assert_eq!(check("panic", long, u64::MAX), Err(ParseFailure::Crashed));
        assert_eq!(check("loop", Duration::from_millis(5), u64::MAX), Err(ParseFailure::Timeout));
        if cfg!(target_os = "linux") {
            assert_eq!(check("loop", long, 1), Err(ParseFailure::Memory));
        }
        assert_eq!(check("fine", long, u64::MAX), Ok(ParseStatus::Unsupported));
    }
}
