//! Many threads at the desk of one scope.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use crate::config::ParserHost;
use crate::engine::Desks;

use super::*;

/// Returns the configuration and the scope of a fixture.
fn binding(fixture: &Fixture, settings: &str) -> (Config, crate::config::Scope) {
    let environment = Environment { current_dir: fixture.root(), ..Environment::default() };
    let text = format!(
        "cache_dir = {:?}\n{settings}\n[scopes.test]\nroot = {:?}\ninclude_untracked = true\n",
        fixture.folder.path().canonicalize().expect("it exists").join("cache"),
        fixture.root().canonicalize().expect("it exists"),
    );
    let config = Config::parse(&text, "sextant.toml", &environment).expect("a valid configuration");
    let scope = config.scope(&Selection { root: None, scope: Some("test".to_owned()) }, &environment).expect("a scope");
    (config, scope)
}

#[test]
fn one_desk_for_all_who_ask_for_the_same_scope_and_configuration() {
    let fixture = Fixture::small();
    let (desks, host) = (Desks::new(2), ParserHost::ThisProcess);
    let desk = |settings: &str| {
        let (config, scope) = binding(&fixture, settings);
        desks.desk(&config, &scope, &host).expect("opened")
    };
    let (plain, limited) = (desk(""), desk("[limits]\nquery_seconds = 7"));
    assert!(Arc::ptr_eq(&plain, &desk("")) && !Arc::ptr_eq(&plain, &limited));
    plain.sync().expect("the first build");
    // The other one was used longest ago.
    desk("[limits]\nquery_seconds = 8");
    assert!(Arc::ptr_eq(&plain, &desk("")) && !Arc::ptr_eq(&limited, &desk("[limits]\nquery_seconds = 7")));
    assert_eq!((desks.drop_gone(), desks.all().len()), (0, 2));
    std::fs::remove_dir_all(fixture.root()).expect("removed");
    assert_eq!((desks.drop_gone(), desks.all().len()), (2, 0));
}

#[test]
fn who_panics_leaves_the_desk_to_others() {
    let fixture = Fixture::small();
    let (config, scope) = binding(&fixture, "");
    let desk = Desks::new(1).desk(&config, &scope, &ParserHost::ThisProcess).expect("opened");
    desk.sync().expect("the first build");
    let asked = || desk.ask(admission(OnStale::Refuse), |_| panic!("a defect of an operation"));
    assert!(catch_unwind(AssertUnwindSafe(asked)).is_err());
    assert_eq!(desk.ask(admission(OnStale::Refuse), |_| 7).expect("answered").value, 7);
    fixture.write("util.py", "def other(): pass\n");
    assert_eq!(desk.sync().expect("synced").extracted_files, 1);
    desk.unload();
    assert_eq!(desk.sync().expect("synced").extracted_files, 0);
}

/// Longest wait for something that must come.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// Stops a thread at a moment of a scan: says that it is there, and waits until it may go on.
#[derive(Debug)]
pub(super) struct Stop {
    there: Sender<()>,
    go_on: Receiver<()>,
}

impl Stop {
    pub fn new() -> (Self, Receiver<()>, Sender<()>) {
        let ((there, is_there), (go, go_on)) = (channel(), channel());
        (Self { there, go_on }, is_there, go)
    }

    pub fn here(&self) {
        self.there.send(()).expect("the test waits for it");
        self.go_on.recv_timeout(PATIENCE).expect("the test lets it go on");
    }

    /// Runs something whose first scan stops when every file was read.
    pub fn at_the_end_of_the_first_scan<R>(self, run: impl FnOnce() -> R) -> R {
        let mut stop = Some(self);
        let hook = move |moment: Moment, path: &str| {
            if moment == Moment::Read && path == "util.py" {
                stop.take().into_iter().for_each(|stop| stop.here());
            }
        };
        during(hook, run)
    }
}

pub(super) fn wait_for(what: &str, met: impl Fn() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !met() {
        assert!(Instant::now() < until, "{what} does not come");
        std::thread::yield_now();
    }
}

#[test]
fn nobody_is_answered_from_a_look_that_began_before_they_came() {
    let fixture = Fixture::small();
    let desk = fixture.engine();
    desk.sync().expect("the first build");
    for on_stale in [OnStale::Refuse, OnStale::Sync] {
        fixture.write("util.py", UTIL);
        desk.sync().expect("synced");
        let (stop, is_there, go) = Stop::new();
        std::thread::scope(|scope| {
            let first = scope.spawn(|| stop.at_the_end_of_the_first_scan(|| count(&desk, "greet", OnStale::Refuse)));
            is_there.recv_timeout(PATIENCE).expect("it reads");
            // All was read; now it changes, and then others come.
            fixture.write("util.py", "def welcome(name):\n    return name\n");
            let later: Vec<_> = (0..8).map(|_| scope.spawn(|| count(&desk, "welcome", on_stale))).collect();
            wait_for("the others", || desk.present().0 == 9);
            go.send(()).expect("it waits");
            assert_eq!(first.join().expect("no panic"), Err("code_changed"), "its second look sees it");
            let want = if on_stale == OnStale::Sync { Ok(1) } else { Err("code_changed") };
            assert!(later.into_iter().all(|one| one.join().expect("no panic") == want));
        });
    }
}

#[test]
fn who_comes_together_shares_the_looks() {
    let fixture = Fixture::small();
    let desk = fixture.engine();
    desk.sync().expect("the first build");
    let (stop, is_there, go) = Stop::new();
    let checked = |desk: &Desk| desk.ask(admission(OnStale::Refuse), |snapshot| snapshot.checked_at().to_owned());
    std::thread::scope(|scope| {
        let first = scope.spawn(|| stop.at_the_end_of_the_first_scan(|| checked(&desk)));
        is_there.recv_timeout(PATIENCE).expect("it reads");
        let later: Vec<_> = (0..8).map(|_| scope.spawn(|| checked(&desk).expect("fresh").value)).collect();
        wait_for("the others", || desk.present().0 == 9);
        go.send(()).expect("it waits");
        let first = first.join().expect("no panic").expect("fresh").value;
        let times: BTreeSet<String> = later.into_iter().map(|one| one.join().expect("no panic")).collect();
        assert!(times.len() == 1 && !times.contains(&first), "{first} {times:?}");
    });
}

#[test]
fn a_remembered_answer_is_checked_as_any_other_and_dies_with_its_generation() {
    let fixture = Fixture::small();
    let desk = fixture.engine();
    desk.sync().expect("the first build");
    // Says what was remembered, or remembers something.
    let ask = |on_stale: OnStale| {
        let operation = |snapshot: &crate::engine::Snapshot| match snapshot.remembered("q") {
            Some(found) => format!("again {found}"),
            None => {
                snapshot.remember("q", &Arc::from(snapshot.generation().identity().fingerprint.hex()));
                "new".to_owned()
            }
        };
        scans(|_, _, _| {}, || desk.ask(admission(on_stale), operation).map(|answer| answer.value).map_err(|error| error.code()))
    };
    let serving = || desk.kept()[0].fingerprint.hex();
    let first = serving();
    assert_eq!(ask(OnStale::Refuse), (Ok("new".to_owned()), 2));
    assert_eq!(ask(OnStale::Refuse), (Ok(format!("again {first}")), 2), "it is looked at before and after all the same");
    fixture.write("util.py", "def other():\n    return 1\n");
    assert_eq!(ask(OnStale::Refuse), (Err("code_changed"), 1));
    assert_eq!(ask(OnStale::Sync).0, Ok("new".to_owned()));
    assert_eq!(ask(OnStale::Refuse).0, Ok(format!("again {}", serving())));
    assert_ne!(serving(), first);
    // Another process may publish, and what served before may serve again.
    fixture.write("util.py", UTIL);
    fixture.engine().sync().expect("synced by another process");
    assert_eq!((serving() == first, ask(OnStale::Refuse).0), (true, Ok("new".to_owned())));
    desk.unload();
    assert_eq!(ask(OnStale::Refuse).0, Ok("new".to_owned()));
}

#[test]
fn an_edit_between_the_looks_voids_a_remembered_answer() {
    let fixture = Fixture::small();
    let desk = fixture.engine();
    desk.sync().expect("the first build");
    let operation = |snapshot: &crate::engine::Snapshot| {
        snapshot.remember("q", &Arc::from("found"));
        snapshot.remembered("q").map(|found| found.to_string())
    };
    let ask = || desk.ask(admission(OnStale::Refuse), operation).map(|answer| answer.value).map_err(|error| error.code());
    assert_eq!(ask(), Ok(Some("found".to_owned())));
    let file = fixture.root().join("util.py");
    let edit = move |number: u32, moment: Moment, _: &str| {
        if (number, moment) == (2, Moment::GitRead) {
            std::fs::write(&file, "def other():\n    return 1\n").expect("written");
        }
    };
    assert_eq!(scans(edit, ask), (Err("code_changed"), 2));
}

#[test]
fn readers_are_open_for_as_many_as_work_and_no_more() {
    let fixture = Fixture::small();
    let desk = fixture.engine();
    desk.sync().expect("the first build");
    let (stop, is_there, go) = Stop::new();
    std::thread::scope(|scope| {
        let first = scope.spawn(|| stop.at_the_end_of_the_first_scan(|| count(&desk, "greet", OnStale::Refuse)));
        is_there.recv_timeout(PATIENCE).expect("it reads");
        let later: Vec<_> = (0..32).map(|_| scope.spawn(|| count(&desk, "greet", OnStale::Refuse))).collect();
        wait_for("the others", || desk.present().0 == 33);
        assert_eq!(desk.readers(), 1, "who waits for a look needs none");
        go.send(()).expect("it waits");
        assert_eq!(first.join().expect("no panic"), Ok(1));
        assert!(later.into_iter().all(|one| one.join().expect("no panic") == Ok(1)));
    });
    assert!((1..=desk.places().most()).contains(&desk.readers()));
}

#[test]
fn a_burst_of_syncs_is_two_builds() {
    let fixture = Fixture::small();
    let desk = fixture.engine();
    desk.sync().expect("the first build");
    fixture.write("main.py", "import util\n");
    let (stop, is_there, go) = Stop::new();
    std::thread::scope(|scope| {
        let running = scope.spawn(|| stop.at_the_end_of_the_first_scan(|| desk.sync().expect("synced")));
        is_there.recv_timeout(PATIENCE).expect("it reads");
        fixture.write("util.py", "def welcome(name):\n    return name\n");
        let burst: Vec<_> = (0..50).map(|_| scope.spawn(|| desk.sync().expect("synced"))).collect();
        wait_for("the burst", || desk.present().1 == 51);
        go.send(()).expect("it waits");
        running.join().expect("no panic");
        let outcomes: Vec<_> = burst.into_iter().map(|one| one.join().expect("no panic")).collect();
        assert!(outcomes.iter().all(|outcome| *outcome == outcomes[0]), "one build for all of them");
    });
    assert_eq!(dump(&desk), fixture.clean());
}

/// Counts the scans of what `run` does on this thread, and calls `hook` at each of their moments with the number of the scan, from 1.
pub(super) fn scans<R>(mut hook: impl FnMut(u32, Moment, &str) + 'static, run: impl FnOnce() -> R) -> (R, u32) {
    let count = Rc::new(Cell::new(0));
    let counted = Rc::clone(&count);
    let at = move |moment: Moment, path: &str| {
        counted.set(counted.get() + u32::from(moment == Moment::GitRead));
        hook(counted.get(), moment, path);
    };
    let result = during(at, run);
    (result, count.get())
}

#[test]
fn a_question_looks_no_more_often_than_the_promise_needs() {
    let fixture = Fixture::small();
    for desk in [fixture.engine(), fixture.engine()] {
        desk.sync().expect("synced");
        let asked = |on_stale: OnStale| scans(|_, _, _| {}, || count(&desk, "greet", on_stale));
        assert_eq!(asked(OnStale::Sync), (Ok(1), 2));
        fixture.write("util.py", "def greet():\n    return 1\n");
        assert_eq!(asked(OnStale::Refuse), (Err("code_changed"), 1));
        // One that finds out and begins the sync, one that ends it and is the check, and one after the operation.
        assert_eq!(asked(OnStale::Sync), (Ok(1), 3));
        fixture.write("util.py", UTIL);
        let (outcome, looks) = scans(|_, _, _| {}, || desk.sync().expect("synced"));
        assert_eq!((outcome.extracted_files, looks), (0, 2), "its facts are cached");
        assert_eq!(scans(|_, _, _| {}, || desk.sync().expect("synced").status), (BuildStatus::Unchanged, 1));
    }
}

#[test]
fn an_edit_between_any_two_looks_of_a_stale_question_is_seen() {
    // The scan, a moment of it, and which of the times that a file gets there: in the first scan when all was read; as what is new is read
    // after it; before the scan that ends the sync; within it; before the one after the operation.
    let moments: &[(u32, Moment, &str)] = &[
        (1, Moment::Read, "util.py"),
        (1, Moment::Opened, "main.py"),
        (2, Moment::GitRead, ""),
        (2, Moment::Read, "util.py"),
        (3, Moment::GitRead, ""),
        (3, Moment::Read, "util.py"),
    ];
    for (scan, moment, path) in moments.iter().copied() {
        let fixture = Fixture::small();
        let desk = fixture.engine();
        desk.sync().expect("the first build");
        fixture.write("main.py", "from util import greet\n\n\ndef main():\n    greet('y')\n");
        let (file, mut times) = (fixture.root().join("main.py"), 0);
        let edit = move |number: u32, at: Moment, of: &str| {
            times += u32::from((number, at, of) == (scan, moment, path));
            // What is new is opened once as it is looked at, and once as it is taken in.
            let is_due = if moment == Moment::Opened { times == 2 } else { times == 1 };
            if is_due && (number, at, of) == (scan, moment, path) {
                std::fs::write(&file, "from util import greet\n\n\ndef other():\n    greet('z')\n").expect("written");
            }
        };
        let (answer, _) = scans(edit, || count(&desk, "other", OnStale::Sync));
        let last = (scan, moment) == (3, Moment::Read);
        // What happens when a file was read for the last time is after the answer.
        assert_eq!(answer, Ok(usize::from(!last)), "scan {scan} {moment:?} {path}");
        if !last {
            assert_eq!(dump(&desk), fixture.clean(), "scan {scan} {moment:?} {path}");
        }
    }
}

#[test]
fn a_sync_that_nobody_waits_for_does_not_outlive_a_clear() {
    let fixture = Fixture::small();
    let desk = Arc::new(fixture.engine());
    desk.sync().expect("the first build");
    let (stop, is_there, go) = Stop::new();
    std::thread::scope(|scope| {
        let running = scope.spawn(|| stop.at_the_end_of_the_first_scan(|| desk.sync().map(drop)));
        is_there.recv_timeout(PATIENCE).expect("it reads");
        desk.sync_soon().expect("queued");
        wait_for("the queued one", || desk.present().1 == 2);
        // Whoever clears comes before it: that one begins a while after the sync that runs.
        let clearing = scope.spawn(|| desk.clear().map(drop));
        go.send(()).expect("it waits");
        running.join().expect("no panic").expect("synced");
        clearing.join().expect("no panic").expect("cleared");
    });
    wait_for("the queued one to end", || desk.present().1 == 0);
    assert!(!desk.is_indexed(), "it made no index anew");
    desk.sync().expect("who waits has it built");
    assert!(desk.is_indexed());
}

#[test]
fn only_the_configuration_that_was_used_last_acts_unasked() {
    let fixture = Fixture::small();
    let (desks, host) = (Desks::new(4), ParserHost::ThisProcess);
    let desk = |settings: &str| {
        let (config, scope) = binding(&fixture, settings);
        desks.desk(&config, &scope, &host).expect("opened")
    };
    let (before, after) = (desk("[daemon]\nauto_sync_ms = 20"), desk(""));
    assert!(!before.leads() && after.leads());
    desk("[daemon]\nauto_sync_ms = 20");
    assert!(before.leads() && !after.leads());
}
