//! Files that one process cannot parse and another can.

use crate::languages::{Dialect, LanguageSupport};
use crate::parse::{Extracted, ParseError, ParseFailure, ParseLimits};

use super::*;

/// Fails at what says so in its first line.
#[derive(Debug)]
struct FailingParser;

impl Parser for FailingParser {
    fn facts(
        &self,
        language: &'static dyn LanguageSupport,
        dialect: Dialect,
        source: &[u8],
        limits: &ParseLimits,
    ) -> Result<Extracted, ParseError> {
        if source.starts_with(b"# fails") {
            return Err(ParseError::File(ParseFailure::Crashed));
        }
        InProcessParser.facts(language, dialect, source, limits)
    }
}

#[test]
fn facts_that_another_process_made_are_taken_over_whole() {
    let hints: [Option<Hint>; 3] =
        [None, Some(Hint::Rescan), Some(Hint::Paths(vec![RepoPath::parse("broken.py").expect("a path")]))];
    for hint in hints {
        let broken = "# fails\nfrom util import greet\n\n\ndef helper():\n    greet('x')\n";
        let fixture = Fixture::new(&[
            ("broken.py", broken),
            ("util.py", UTIL),
            ("use.py", "from broken import helper\n\nhelper()\n"),
            ("other.py", "x = 1\n"),
        ]);
        let failing = fixture.engine_of("cache", "", Arc::new(FailingParser));
        assert_eq!(failing.index().expect("indexed").counts.failed_files, 1);
        assert_eq!(fixture.engine().index().expect("indexed").counts.failed_files, 0);
        fixture.write("other.py", "from use import helper\n\nhelper()\n");
        if let Some(hint) = &hint {
            let prepared = failing.prepare(hint, &Cancel::default()).expect("prepared");
            assert_eq!(prepared.files, if *hint == Hint::Rescan { 2 } else { 1 });
        }
        let outcome = failing.sync().expect("synced");
        assert_eq!(outcome.counts.failed_files, 0, "{hint:?}");
        assert_eq!(dump(&failing), fixture.clean(), "{hint:?}");
    }
}
