//! Guests that go away: what is done for them alone ends, and everything is as it was.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::engine::{EngineError, Guest};
use crate::languages::{Dialect, LanguageSupport};
use crate::parse::{Extracted, ParseError, ParseLimits};

use super::desks::{PATIENCE, Stop, scans, wait_for};
use super::*;

/// Returns what a cache says of its index: the pointer and the record of the last build.
fn said(fixture: &Fixture) -> (Vec<u8>, Vec<u8>) {
    let binding = std::fs::read_dir(fixture.folder.path().join("cache"))
        .expect("a folder")
        .map(|entry| entry.expect("listed").path())
        .find(|path| path.join("build.lock").exists())
        .expect("a build was here");
    let read = |name: &str| std::fs::read(binding.join(name)).unwrap_or_default();
    (read("current"), read("last-build.json"))
}

fn is_unwanted<T>(outcome: &Result<T, Arc<EngineError>>) -> bool {
    matches!(outcome, Err(error) if error.is_of_leaving())
}

/// Does something for a guest who goes away at a moment of a scan, counted from 1.
fn leaving<R>(
    desk: &Arc<Desk>,
    (scan, moment): (u32, Moment),
    what: impl FnOnce(&Guest) -> Result<R, Arc<EngineError>>,
) -> Result<R, Arc<EngineError>> {
    let cancel = Cancel::default();
    let guest = Guest::new(Arc::clone(desk), cancel.clone());
    let hook = move |number: u32, at: Moment, _: &str| {
        if (number, at) == (scan, moment) {
            cancel.cancel();
        }
    };
    scans(hook, || what(&guest)).0
}

#[test]
fn a_build_that_nobody_waits_for_any_more_leaves_everything_as_it_was() {
    // Of a sync: the look that finds what changed, the reading of that, and the look before it is published.
    let moments = [(1, Moment::GitRead), (1, Moment::Listed), (1, Moment::Read), (2, Moment::GitRead), (2, Moment::Listed)];
    for moment in moments {
        let fixture = Fixture::small();
        let desk = Arc::new(fixture.engine());
        let built = leaving(&desk, moment, Guest::index);
        assert!(is_unwanted(&built), "{moment:?}: {built:?}");
        assert_eq!(said(&fixture), (Vec::new(), Vec::new()), "{moment:?}");
        desk.index().expect("indexed");
        let (before, graph) = (said(&fixture), dump(&desk));
        fixture.write("main.py", "import util\n\n\ndef other():\n    util.greet('y')\n");
        let built = leaving(&desk, moment, Guest::sync);
        assert!(is_unwanted(&built), "{moment:?}: {built:?}");
        assert_eq!(said(&fixture), before, "{moment:?}");
        fixture.write("main.py", MAIN);
        assert_eq!(dump(&desk), graph, "{moment:?}");
        // What was begun is of no harm to the next one.
        fixture.write("main.py", "import util\n\n\ndef other():\n    util.greet('z')\n");
        desk.sync().expect("synced");
        assert_eq!(dump(&desk), fixture.clean(), "{moment:?}");
    }
}

#[test]
fn a_question_of_one_who_is_gone_ends_between_its_steps() {
    let fixture = Fixture::small();
    let desk = Arc::new(fixture.engine());
    desk.index().expect("indexed");
    let asked = AtomicUsize::new(0);
    let ask = |guest: &Guest| {
        guest.ask(admission(OnStale::Sync), |_| {
            asked.fetch_add(1, Ordering::Relaxed);
        })
    };
    assert!(is_unwanted(&leaving(&desk, (1, Moment::GitRead), ask)));
    assert!(is_unwanted(&leaving(&desk, (1, Moment::Read), ask)));
    assert_eq!(asked.load(Ordering::Relaxed), 0, "nothing is read for nobody");
    // Nothing is delivered unchecked, either.
    assert!(is_unwanted(&leaving(&desk, (2, Moment::GitRead), ask)));
    assert_eq!(asked.load(Ordering::Relaxed), 1);
    assert!(ask(&Guest::new(Arc::clone(&desk), Cancel::default())).is_ok());
    // Nor does it sync.
    let before = said(&fixture);
    fixture.write("main.py", "import util\n");
    assert!(is_unwanted(&leaving(&desk, (1, Moment::Read), ask)));
    assert_eq!(said(&fixture), before);
}

/// Stops at each file, and says how many it was given.
#[derive(Debug, Default)]
struct StoppingParser {
    stop: Mutex<Option<Stop>>,
    given: AtomicUsize,
}

impl Parser for StoppingParser {
    fn facts(
        &self,
        language: &'static dyn LanguageSupport,
        dialect: Dialect,
        source: &[u8],
        limits: &ParseLimits,
    ) -> Result<Extracted, ParseError> {
        self.given.fetch_add(1, Ordering::SeqCst);
        if let Some(stop) = self.stop.lock().expect("no panic").take() {
            stop.here();
        }
        InProcessParser.facts(language, dialect, source, limits)
    }
}

#[test]
fn a_build_that_others_share_goes_on_for_them() {
    let fixture = Fixture::small();
    let parser = Arc::new(StoppingParser::default());
    let desk = Arc::new(fixture.engine_of("cache", "", Arc::clone(&parser) as Arc<dyn Parser>));
    desk.index().expect("indexed");
    for stays in [true, false] {
        let before = said(&fixture);
        let (running, runs, go_running) = Stop::new();
        let (parsing, parses, go_parsing) = Stop::new();
        let cancels = [Cancel::default(), Cancel::default()];
        std::thread::scope(|scope| {
            let first = scope.spawn(|| running.at_the_end_of_the_first_scan(|| desk.sync().map(drop)));
            runs.recv_timeout(PATIENCE).expect("it reads");
            // That was read already.
            fixture.write("main.py", &format!("import util\n\n\ndef other():\n    return {stays}\n"));
            *parser.stop.lock().expect("no panic") = Some(parsing);
            let sharing: Vec<_> = cancels
                .iter()
                .map(|cancel| {
                    let guest = Guest::new(Arc::clone(&desk), cancel.clone());
                    scope.spawn(move || guest.sync())
                })
                .collect();
            wait_for("both", || desk.present().1 == 3);
            go_running.send(()).expect("it waits");
            first.join().expect("no panic").expect("synced");
            // The build that both share is in the middle of its work.
            parses.recv_timeout(PATIENCE).expect("it parses");
            cancels[0].cancel();
            if !stays {
                cancels[1].cancel();
            }
            go_parsing.send(()).expect("it waits");
            let outcomes: Vec<_> = sharing.into_iter().map(|one| one.join().expect("no panic")).collect();
            assert_eq!(outcomes[1].is_ok(), stays, "{outcomes:?}");
            assert!(stays || is_unwanted(&outcomes[0]), "{outcomes:?}");
        });
        assert_eq!(said(&fixture) != before, stays, "published for who waits, and for nobody else");
    }
}

#[test]
fn nothing_more_is_parsed_for_nobody() {
    let fixture = Fixture::small();
    let parser = Arc::new(StoppingParser::default());
    let desk = Arc::new(fixture.engine_of("cache", "", Arc::clone(&parser) as Arc<dyn Parser>));
    let (parsing, parses, go) = Stop::new();
    *parser.stop.lock().expect("no panic") = Some(parsing);
    let cancel = Cancel::default();
    let guest = Guest::new(Arc::clone(&desk), cancel.clone());
    std::thread::scope(|scope| {
        let building = scope.spawn(|| guest.sync().map(drop));
        parses.recv_timeout(PATIENCE).expect("it parses");
        cancel.cancel();
        go.send(()).expect("it waits");
        assert!(is_unwanted(&building.join().expect("no panic")));
    });
    assert_eq!(parser.given.load(Ordering::SeqCst), 1);
    assert!(!desk.is_indexed());
}
