//! The attendant of a desk, told of changes by a source of the test's own.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::engine::attendant::Attendant;
use crate::watch::{Health, HintSource};

use super::desks::wait_for;
use super::*;

/// Tells what the test says, and counts how often it was asked.
struct Told {
    hints: std::sync::mpsc::Receiver<Hint>,
    asked: Arc<AtomicUsize>,
}

impl HintSource for Told {
    fn wait(&mut self, limit: Duration) -> Option<Hint> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        self.hints.recv_timeout(limit.min(Duration::from_millis(5))).ok()
    }

    fn health(&self) -> Health {
        Health::Ok
    }
}

struct Attended {
    desk: Arc<Desk>,
    hints: std::sync::mpsc::Sender<Hint>,
    asked: Arc<AtomicUsize>,
    attendant: Attendant,
}

impl Attended {
    fn new(desk: Desk, auto_sync: Option<Duration>) -> Self {
        let (desk, asked) = (Arc::new(desk), Arc::<AtomicUsize>::default());
        let (hints, told) = std::sync::mpsc::channel();
        let mut told = Some(told);
        let counted = Arc::clone(&asked);
        let begin = move |_: &Desk| {
            let hints = told.take().expect("it begins once");
            Ok(Box::new(Told { hints, asked: Arc::clone(&counted) }) as Box<dyn HintSource>)
        };
        desk.listen(true);
        let attendant = Attendant::start(&desk, Box::new(begin), auto_sync).expect("a thread");
        Self { desk, hints, asked, attendant }
    }

    /// Tells of a path, and waits until its edges were resolved and the attendant is at rest again.
    fn hint_and_wait(&self, path: &str) {
        self.desk.take_log();
        self.hint(path);
        self.wait_for_edges(path);
        self.wait_for_turns();
    }

    fn hint(&self, path: &str) {
        self.hints.send(Hint::Paths(vec![RepoPath::parse(path).expect("a path")])).expect("it listens");
    }

    /// Waits until the edges of a file were resolved.
    fn wait_for_edges(&self, path: &str) {
        let line = format!("file_edges {path}");
        wait_for("a preparation", || self.desk.take_log().contains(&line));
    }

    /// Lets the attendant go round a few times.
    fn wait_for_turns(&self) {
        let before = self.asked.load(Ordering::SeqCst);
        wait_for("a turn", || self.asked.load(Ordering::SeqCst) > before + 3);
    }
}

const RENAMED: &str = "def welcome(name):\n    return name\n";

#[test]
fn hints_are_prepared_ahead_in_a_desk_that_is_used() {
    let fixture = Fixture::small();
    let attended = Attended::new(fixture.engine(), None);
    let desk = &attended.desk;
    assert_eq!(attended.asked.load(Ordering::SeqCst), 0, "nothing is watched that has no index");
    desk.sync().expect("the first build");
    wait_for("a watcher", || desk.status().last_build.is_some_and(|build| build.watch == "ok"));
    fixture.write("util.py", RENAMED);
    attended.hint_and_wait("util.py");
    assert_eq!(count(desk, "welcome", OnStale::Refuse), Err("code_changed"), "nothing is published");
    let outcome = desk.sync().expect("synced");
    assert_eq!((outcome.status, outcome.extracted_files, outcome.resolved_files), (BuildStatus::Published, 0, 0));
    assert_eq!(dump(desk), fixture.clean());

    // What was let go is made again when somebody comes, and not before.
    attended.wait_for_turns();
    desk.unload();
    desk.take_log();
    attended.wait_for_turns();
    assert_eq!(desk.take_log(), Vec::<String>::new());
    assert_eq!(count(desk, "welcome", OnStale::Refuse), Ok(1));
    attended.wait_for_edges("util.py");

    // Nor is it warm because of a sync that found nothing to do.
    attended.wait_for_turns();
    desk.unload();
    assert_eq!(desk.sync().expect("nothing to do").status, BuildStatus::Unchanged);
    attended.wait_for_edges("util.py");
    assert_eq!(desk.is_loaded(), Some(true));
}

#[test]
fn it_stands_aside_while_somebody_is_at_the_desk() {
    let fixture = Fixture::small();
    let attended = Attended::new(fixture.engine(), Some(Duration::from_millis(1)));
    let desk = &attended.desk;
    desk.sync().expect("the first build");
    attended.wait_for_turns();
    desk.take_log();
    let asked = desk.ask(admission(OnStale::Refuse), |_| {
        fixture.write("util.py", RENAMED);
        attended.hint("util.py");
        attended.wait_for_turns();
        desk.take_log()
    });
    assert_eq!(asked.map_err(|error| error.code()).err(), Some("code_changed"));
    attended.wait_for_edges("util.py");

    // A preparation that runs is told to end.
    let cancel = Cancel::default();
    let alone = desk.alone(&cancel).expect("nobody is there");
    assert!(!cancel.is_cancelled());
    let visit = desk.visit();
    assert!(cancel.is_cancelled() && desk.alone(&Cancel::default()).is_none());
    drop((visit, alone));
    assert!(desk.alone(&Cancel::default()).is_some());
}

#[test]
fn it_publishes_by_itself_when_it_is_to_and_git_is_not_at_work() {
    let fixture = Fixture::small();
    fixture.git(&["init", "--quiet"]);
    let attended = Attended::new(fixture.engine(), Some(Duration::from_millis(1)));
    let desk = &attended.desk;
    desk.sync().expect("the first build");
    attended.wait_for_turns();
    fixture.write(".git/index.lock", "");
    fixture.write("util.py", RENAMED);
    attended.hint_and_wait("util.py");
    assert_eq!(count(desk, "welcome", OnStale::Refuse), Err("code_changed"));
    fixture.delete(".git/index.lock");
    wait_for("a publication", || count(desk, "welcome", OnStale::Refuse) == Ok(1));
}

#[test]
fn it_publishes_what_changed_before_it_watched_and_nothing_over_the_index_of_others() {
    let fixture = Fixture::small();
    fixture.engine().sync().expect("the first build");
    fixture.write("util.py", RENAMED);
    let attended = Attended::new(fixture.engine(), Some(Duration::from_millis(1)));
    let desk = &attended.desk;
    wait_for("a publication", || count(desk, "welcome", OnStale::Refuse) == Ok(1));

    // The scope has another configuration since, which this desk does not know.
    let parser = Arc::new(InProcessParser);
    let other = fixture.desk_of("cache", "", "exclude = [\"util.py\"]", parser);
    other.sync().expect("synced");
    attended.hint("util.py");
    attended.wait_for_turns();
    assert_eq!(count(&other, "welcome", OnStale::Refuse), Ok(0));

    // Nor is an index made that was cleared.
    other.clear().expect("cleared");
    attended.hint("util.py");
    attended.wait_for_turns();
    assert!(!other.is_indexed());
}

#[test]
fn it_ends_with_the_desk() {
    let fixture = Fixture::small();
    let Attended { desk, hints, asked, attendant } = Attended::new(fixture.engine(), None);
    desk.sync().expect("the first build");
    wait_for("a turn", || asked.load(Ordering::SeqCst) > 0);
    drop(desk);
    wait_for("its end", || hints.send(Hint::Rescan).is_err());
    drop(attendant);

    let Attended { desk, hints, asked, attendant } = Attended::new(fixture.engine(), None);
    wait_for("a turn", || asked.load(Ordering::SeqCst) > 0);
    drop(attendant);
    wait_for("its end", || hints.send(Hint::Rescan).is_err());
    drop(desk);
}
