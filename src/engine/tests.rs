//! Builds and the gate on small trees in temporary folders: what is answered, what is refused, and what a build works on.

use std::fmt::Write;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use crate::config::{Config, Environment, OnStale, Selection};
use crate::model::{Cancel, PathPrefix, RepoPath};
use crate::parse::{InProcessParser, Parser};
use crate::store::Generation;
use crate::watch::Hint;
use crate::workspace::moments::{Moment, during};

use super::{Admission, Baseline, BuildStatus, Desk, Difference, Freshness, LastBuild, Prepared, StatusWord};

mod attendant;
mod desks;
mod failures;
mod guest;

/// A folder with files, and a cache for it.
struct Fixture {
    folder: tempfile::TempDir,
}

const UTIL: &str = "def greet(name):\n    return name\n";
const MAIN: &str = "from util import greet\n\n\ndef main():\n    greet('x')\n";

impl Fixture {
    fn new(files: &[(&str, &str)]) -> Self {
        let fixture = Self { folder: tempfile::tempdir().expect("a temporary folder") };
        std::fs::create_dir(fixture.root()).expect("a folder");
        for (path, text) in files {
            fixture.write(path, text);
        }
        fixture
    }

    fn small() -> Self {
        Self::new(&[("util.py", UTIL), ("main.py", MAIN), ("README.md", "# Title\n\nText.\n"), ("blob.py", "x = '\0'\n")])
    }

    fn root(&self) -> PathBuf {
        self.folder.path().join("tree")
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.root().join(path);
        std::fs::create_dir_all(path.parent().expect("below the root")).expect("folders");
        std::fs::write(path, text).expect("written");
    }

    fn delete(&self, path: &str) {
        std::fs::remove_file(self.root().join(path)).expect("deleted");
    }

    /// Runs git without any configuration but the repository's own.
    fn git(&self, arguments: &[&str]) {
        let status = Command::new("git")
            .args(["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"])
            .args(arguments)
            .current_dir(self.root())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .output()
            .expect("git runs");
        assert!(status.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&status.stderr));
    }

    /// Returns an engine as a new process has it, with a cache of the given name.
    fn engine_with(&self, cache: &str, settings: &str) -> Desk {
        self.engine_of(cache, settings, Arc::new(InProcessParser))
    }

    fn engine_of(&self, cache: &str, settings: &str, parser: Arc<dyn Parser>) -> Desk {
        self.desk_of(cache, settings, "", parser)
    }

    fn desk_of(&self, cache: &str, settings: &str, of_scope: &str, parser: Arc<dyn Parser>) -> Desk {
        let environment = Environment { current_dir: self.root(), ..Environment::default() };
        let text = format!(
            "cache_dir = {:?}\n{settings}\n[scopes.test]\nroot = {:?}\ninclude_untracked = true\n{of_scope}\n",
            self.folder.path().canonicalize().expect("it exists").join(cache),
            self.root().canonicalize().expect("it exists"),
        );
        let config = Config::parse(&text, "sextant.toml", &environment).expect("a valid configuration");
        let scope = config.scope(&Selection { root: None, scope: Some("test".to_owned()) }, &environment).expect("a scope");
        Desk::open(&config, scope, parser).expect("opened")
    }

    fn engine(&self) -> Desk {
        self.engine_with("cache", "")
    }

    /// Returns the graph of the worktree, built from nothing in a cache of its own.
    fn clean(&self) -> String {
        let other = tempfile::tempdir_in(self.folder.path()).expect("a temporary folder");
        let name = other.path().file_name().expect("named").to_string_lossy().into_owned();
        let engine = self.engine_with(&name, "");
        engine.index().expect("indexed");
        dump(&engine)
    }
}

fn admission(on_stale: OnStale) -> Admission {
    Admission { on_stale, expected_fingerprint: None, baseline: Baseline::None, limit: std::time::Duration::from_secs(60) }
}

/// Asks for the number of nodes of a name.
fn count(engine: &Desk, name: &str, on_stale: OnStale) -> Result<usize, &'static str> {
    let operation = |snapshot: &super::Snapshot| {
        snapshot.generation().nodes_named(name, &PathPrefix::default(), 100).expect("readable").len()
    };
    engine.ask(admission(on_stale), operation).map(|answer| answer.value).map_err(|error| error.code())
}

/// Returns the whole graph as text, without what depends on the cache.
fn dump(engine: &Desk) -> String {
    engine.ask(admission(OnStale::Refuse), |snapshot| dump_of(snapshot.generation())).expect("fresh").value
}

fn dump_of(generation: &Generation) -> String {
    let mut text = format!("{} {:?}\n", generation.identity().fingerprint, generation.coverage());
    generation.each_node(&mut |node| writeln!(text, "{:?}", node).map_err(std::io::Error::other)).expect("readable");
    generation.each_edge(&mut |edge| writeln!(text, "{edge:?}").map_err(std::io::Error::other)).expect("readable");
    generation.each_diagnostic(&mut |row| writeln!(text, "{row:?}").map_err(std::io::Error::other)).expect("readable");
    with_ranks(&text)
}

/// Puts the rank of each node in place of its id: ids differ with the way that led to a generation, their order does not.
fn with_ranks(text: &str) -> String {
    let ids = || text.split("NodeId(").skip(1).filter_map(|rest| rest.split(')').next()?.parse::<i64>().ok());
    let ranks: std::collections::BTreeSet<i64> = ids().collect();
    let rank = |id: i64| ranks.range(..id).count();
    let mut parts = text.split("NodeId(");
    let mut ranked = parts.next().unwrap_or_default().to_owned();
    for (part, id) in parts.zip(ids()) {
        ranked.push_str(&format!("node {}{}", rank(id), &part[part.find(')').unwrap_or(0)..]));
    }
    ranked
}

#[test]
fn what_was_indexed_is_answered_while_it_is_true() {
    let fixture = Fixture::small();
    let engine = fixture.engine();
    assert_eq!(count(&engine, "greet", OnStale::Sync), Err("code_index_missing"));
    let outcome = engine.index().expect("indexed");
    assert_eq!((outcome.status, outcome.extracted_files, outcome.reused_files), (BuildStatus::Published, 2, 0));
    assert_eq!((outcome.counts.files, outcome.counts.definitions), (3, 2));
    for engine in [engine, fixture.engine()] {
        assert_eq!(count(&engine, "greet", OnStale::Refuse), Ok(1));
        let answer = engine.ask(admission(OnStale::Refuse), |snapshot| snapshot.checked_at().len()).expect("fresh");
        assert_eq!((answer.value, answer.checked.files, answer.synced), (32, 3, None));
    }
    fixture.write("util.py", "def welcome(name):\n    return name\n");
    let engine = fixture.engine();
    assert_eq!(count(&engine, "greet", OnStale::Refuse), Err("code_changed"));
    fixture.write("util.py", UTIL);
    assert_eq!(count(&engine, "greet", OnStale::Refuse), Ok(1));
}

#[test]
fn a_stale_scope_is_synced_first_when_it_may_be() {
    let fixture = Fixture::small();
    fixture.engine().index().expect("indexed");
    fixture.write("util.py", "def welcome(name):\n    return name\n");
    let engine = fixture.engine();
    let answer = engine.ask(admission(OnStale::Sync), |_| ()).expect("synced");
    assert_eq!(answer.synced.map(|outcome| (outcome.status, outcome.extracted_files)), Some((BuildStatus::Published, 1)));
    assert_eq!(count(&engine, "greet", OnStale::Refuse), Ok(0));
    assert_eq!(count(&engine, "welcome", OnStale::Refuse), Ok(1));
    assert_eq!(dump(&engine), fixture.clean());
}

#[test]
fn what_is_given_up_for_want_of_time_is_no_failed_build() {
    let fixture = Fixture::small();
    let desk = fixture.engine();
    desk.index().expect("indexed");
    fixture.write("util.py", "def welcome(name):\n    return name\n");
    let before = desk.status().last_build.map(|last| last.build);
    assert!(matches!(before, Some(LastBuild::Ready { .. })));
    let refusal = desk.sync_within(std::time::Duration::from_nanos(1)).expect_err("that is too little");
    assert_eq!(refusal.code(), "code_timeout");
    assert_eq!(desk.status().last_build.map(|last| last.build), before);
    // Nor does one say that it began which may be ended with its process.
    let seen = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
    let (other, told) = (fixture.engine(), std::rc::Rc::clone(&seen));
    let look = move |_| told.borrow_mut().push(other.status().last_build.map(|last| last.build));
    let outcome = while_changing(Moment::Listed, look, || desk.sync_within(std::time::Duration::from_secs(60)));
    assert_eq!(outcome.expect("synced").status, BuildStatus::Published);
    assert_eq!(*seen.borrow(), [before.clone(), before], "in the scan before the build, and in the one after it");
}

#[test]
fn what_was_prepared_need_not_be_done_again_and_changes_no_answer() {
    let fixture = Fixture::new(&[("util.py", UTIL), ("main.py", MAIN), ("gone/x.py", "import util\n"), ("README.md", "# T\n")]);
    let hint = |paths: &[&str]| Hint::Paths(paths.iter().map(|path| RepoPath::parse(path).expect("a path")).collect());
    let engine = fixture.engine();
    let none = Cancel::default();
    assert_eq!(engine.prepare(&hint(&["util.py"]), &none).expect("passed over"), Prepared::default());
    engine.index().expect("indexed");

    fixture.write("util.py", "def welcome(name):\n    return name\n");
    fixture.write("new/deep/y.py", "from util import welcome\nwelcome(1)\n");
    fixture.write("README.md", "# Another\n");
    std::fs::remove_dir_all(fixture.root().join("gone")).expect("removed");
    let prepared = engine.prepare(&hint(&["README.md", "gone", "never.py", "new", "util.py"]), &none).expect("prepared");
    assert_eq!(prepared, Prepared { files: 4, extracted: 2, resolved: 3, cancelled: false });
    assert_eq!(count(&engine, "welcome", OnStale::Refuse), Err("code_changed"), "nothing is published");
    let outcome = engine.sync().expect("synced");
    assert_eq!((outcome.status, outcome.extracted_files, outcome.resolved_files), (BuildStatus::Published, 0, 0));
    assert_eq!(dump(&engine), fixture.clean());

    // A hint that is wrong, one that is late, and a change that none told of.
    fixture.write("util.py", UTIL);
    engine.prepare(&hint(&["main.py", "util.py"]), &none).expect("prepared");
    fixture.write("util.py", "def late(): pass\n");
    fixture.write("main.py", "from util import late\nlate()\n");
    assert_eq!(engine.sync().expect("synced").extracted_files, 2);
    assert_eq!(dump(&engine), fixture.clean());

    // Cancelled, and then anything may have changed.
    fixture.write("util.py", UTIL);
    let cancelled = Cancel::default();
    cancelled.cancel();
    assert!(engine.prepare(&Hint::Rescan, &cancelled).expect("ended early").cancelled);
    engine.prepare(&Hint::Rescan, &none).expect("prepared");
    assert_eq!(engine.sync().expect("synced").resolved_files, 0);
    assert_eq!(dump(&engine), fixture.clean());

    // A new process that prepares first.
    fixture.write("main.py", MAIN);
    let engine = fixture.engine();
    engine.prepare(&Hint::Rescan, &none).expect("prepared");
    let outcome = engine.sync().expect("synced");
    assert_eq!((outcome.extracted_files, outcome.resolved_files), (0, 0));
    assert_eq!(dump(&engine), fixture.clean());
}

#[test]
fn a_journal_tells_what_changed_in_the_graph() {
    let fixture = Fixture::small();
    let engine = fixture.engine();
    engine.keep_journal(true);
    assert_eq!(engine.take_difference(), None);
    engine.index().expect("indexed");
    assert_eq!(engine.take_difference(), None, "there is nothing to compare with");
    let check = |path: &str, text: &str, want: &str| {
        fixture.write(path, text);
        engine.sync().expect("synced");
        let Difference { files, edges_added, edges_removed, unbound } = engine.take_difference().expect("the second");
        let files: Vec<_> = files.iter().map(RepoPath::as_str).collect();
        let unbound: String = unbound
            .iter()
            .map(|unbound| {
                format!(" {}:{}:{} {} {}", unbound.path, unbound.line, unbound.column, unbound.name, unbound.reason.as_str())
            })
            .collect();
        assert_eq!(format!("{} +{edges_added} -{edges_removed}{unbound}", files.join(" ")), want);
    };
    check("util.py", &format!("# moved\n\n{UTIL}"), "util.py +0 -0");
    check("main.py", &format!("{MAIN}    greet('y')\n"), "main.py +1 -0");
    check(
        "main.py",
        &format!("{MAIN}    greet('y')\n    undefined_thing()\n"),
        "main.py +0 -0 main.py:7:4 undefined_thing unresolved_name",
    );
    check(
        "util.py",
        "def welcome(name):\n    return name\n",
        "util.py +0 -3 main.py:1:17 greet unresolved_export main.py:5:4 greet unresolved_export main.py:6:4 greet unresolved_export",
    );
    check("util.py", UTIL, "util.py +3 -0");
}

#[test]
fn a_change_under_the_operation_is_refused_or_answered_anew() {
    let fixture = Fixture::small();
    let engine = fixture.engine();
    engine.index().expect("indexed");
    let edit = |times: &mut u32| {
        *times += 1;
        if *times == 1 {
            fixture.write("late.py", "def late(): pass\n");
        }
    };
    let mut times = 0;
    let refused = engine.ask(admission(OnStale::Refuse), |_| edit(&mut times));
    assert_eq!((refused.map_err(|error| error.code()).err(), times), (Some("code_changed"), 1));
    engine.sync().expect("synced");
    fixture.delete("late.py");
    engine.sync().expect("synced");
    times = 0;
    let answer = engine.ask(admission(OnStale::Sync), |snapshot| {
        edit(&mut times);
        snapshot.generation().file("late.py").expect("readable").is_some()
    });
    assert_eq!((answer.expect("answered anew").value, times), (true, 2));
}

#[test]
fn a_sync_without_changes_builds_nothing() {
    let fixture = Fixture::small();
    let first = fixture.engine().sync().expect("the first build");
    assert_eq!((first.status, first.extracted_files), (BuildStatus::Published, 2));
    let again = fixture.engine().sync().expect("synced");
    assert_eq!(
        (again.status, again.extracted_files, again.reused_files, again.resolved_files),
        (BuildStatus::Unchanged, 0, 2, 0)
    );
    assert_eq!((again.fingerprint, again.counts), (first.fingerprint, first.counts));
}

#[test]
fn a_new_process_reads_only_what_changed() {
    let fixture = Fixture::small();
    fixture.engine().index().expect("indexed");
    fixture.write("util.py", &format!("{UTIL}    # a comment\n"));
    let outcome = fixture.engine().sync().expect("synced");
    assert_eq!((outcome.extracted_files, outcome.reused_files, outcome.removed_files), (1, 1, 0));
    std::fs::rename(fixture.root().join("util.py"), fixture.root().join("tools.py")).expect("renamed");
    let outcome = fixture.engine().sync().expect("synced");
    assert_eq!((outcome.extracted_files, outcome.reused_files, outcome.removed_files), (0, 2, 1));
    assert_eq!(dump(&fixture.engine()), fixture.clean());
    // Without the facts cache they are made from the stored sources, once they are asked for.
    std::fs::remove_dir_all(fixture.folder.path().join("cache/facts")).expect("there was one");
    fixture.delete("main.py");
    let outcome = fixture.engine().sync().expect("synced");
    assert_eq!((outcome.extracted_files, outcome.removed_files), (0, 1));
    assert_eq!(dump(&fixture.engine()), fixture.clean());
    fixture.write("late.py", "from tools import greet\n\ngreet(1)\n");
    let outcome = fixture.engine().sync().expect("synced");
    assert_eq!((outcome.extracted_files, outcome.resolved_files), (2, 2));
    assert_eq!(dump(&fixture.engine()), fixture.clean());
}

#[test]
fn a_new_process_resolves_only_what_is_reached() {
    let fixture = Fixture::small();
    fixture.write("other.py", "def other():\n    other()\n");
    fixture.engine().index().expect("indexed");
    let binding = || {
        let found = std::fs::read_dir(fixture.folder.path().join("cache")).expect("a cache").flatten();
        found.map(|entry| entry.path()).find(|path| path.join("current").exists()).expect("one binding")
    };
    let check = |text: &str, resolved: u64| {
        fixture.write("util.py", text);
        assert_eq!(fixture.engine().sync().expect("synced").resolved_files, resolved, "{text}");
        assert_eq!(dump(&fixture.engine()), fixture.clean(), "{text}");
    };
    check("def greet(name):\n    return name.upper()\n", 1);
    check("def greet(name):\n    return name\n\n\ndef more():\n    pass\n", 2);
    // One process after the other, and one that stays.
    let engine = fixture.engine();
    for (text, resolved) in [("def greet(name):\n    return 1\n", 2), ("def greet(name):\n    return len(name)\n", 1)] {
        fixture.write("util.py", text);
        assert_eq!(engine.sync().expect("synced").resolved_files, resolved, "{text}");
        assert_eq!(dump(&engine), fixture.clean(), "{text}");
    }
    // Without traces, or with others than those of the generation, all files are resolved.
    std::fs::remove_file(binding().join("traces")).expect("there were some");
    check("def greet(name):\n    return 3\n", 3);
    let mut traces = std::fs::read(binding().join("traces")).expect("readable");
    check("def greet(name):\n    return 4\n", 1);
    std::fs::write(binding().join("traces"), &traces).expect("written");
    check("def greet(name):\n    return 5\n", 3);
    traces = std::fs::read(binding().join("traces")).expect("readable");
    traces[40] ^= 1;
    std::fs::write(binding().join("traces"), &traces).expect("written");
    check("def greet(name):\n    return 6\n", 3);
    check("def greet(name):\n    return 7\n", 1);
}

#[test]
fn a_body_edit_resolves_one_file() {
    let fixture = Fixture::small();
    let engine = fixture.engine();
    engine.sync().expect("the first build");
    engine.listen(true);
    fixture.write("util.py", "def greet(name):\n    return name.upper()\n");
    assert_eq!(engine.sync().expect("synced").resolved_files, 1);
    let log = engine.take_log();
    let edges: Vec<_> = log.iter().filter(|query| query.starts_with("file_edges")).collect();
    assert_eq!(edges, ["file_edges util.py"], "{log:?}");
    assert_eq!(dump(&engine), fixture.clean());
}

#[test]
fn incremental_equals_clean() {
    let fixture = Fixture::small();
    let engine = fixture.engine();
    engine.index().expect("indexed");
    let edits: &[(&str, Option<&str>)] = &[
        ("util.py", Some("import main\n\n\ndef greet(name):\n    return main.main()\n")),
        ("pkg/__init__.py", Some("from .deep import *\n")),
        ("pkg/deep.py", Some("class A:\n    def m(self):\n        return self.n()\n\n    def n(self):\n        pass\n")),
        ("main.py", Some("from pkg import A\n\nA().m()\n")),
        ("pkg/deep.py", Some("class A:\n    def m(self: pass\n")),
        ("README.md", Some("# Other\n")),
        ("pkg/__init__.py", None),
        ("pkg/deep.py", None),
        ("blob.py", Some("x = 1\n")),
        ("main.py", Some(MAIN)),
    ];
    for (path, text) in edits {
        match text {
            Some(text) => fixture.write(path, text),
            None => fixture.delete(path),
        }
        engine.sync().expect("synced");
        assert_eq!(dump(&engine), fixture.clean(), "after {path}, in one process");
    }
    assert_eq!(dump(&fixture.engine()), fixture.clean());
}

#[test]
fn only_the_expected_generation_answers() {
    let fixture = Fixture::small();
    let engine = fixture.engine();
    let fingerprint = engine.index().expect("indexed").fingerprint;
    let expecting = |fingerprint| Admission { expected_fingerprint: Some(fingerprint), ..admission(OnStale::Sync) };
    assert!(engine.ask(expecting(fingerprint), |_| ()).is_ok());
    fixture.write("util.py", "");
    let refused = engine.ask(expecting(fingerprint), |_| ());
    assert_eq!(refused.map_err(|error| error.code()).err(), Some("code_changed"));
    assert_ne!(engine.sync().expect("unchanged by now").fingerprint, fingerprint);
}

#[test]
fn the_fingerprint_is_of_what_it_covers() {
    let fixture = Fixture::small();
    let first = fixture.engine().index().expect("indexed").fingerprint;
    assert_eq!(fixture.engine_with("second", "").index().expect("indexed").fingerprint, first);
    fixture.write("README.md", "# Other title\n\nText.\n");
    assert_ne!(fixture.engine().sync().expect("synced").fingerprint, first);
    fixture.write("README.md", "# Title\n\nText.\n");
    assert_eq!(fixture.engine().sync().expect("synced").fingerprint, first);
}

#[test]
fn git_is_part_of_the_state() {
    let fixture = Fixture::small();
    fixture.git(&["init", "-q", "-b", "main"]);
    let dirty = |engine: &Desk| {
        engine.ask(admission(OnStale::Sync), |snapshot| snapshot.generation().identity().dirty).expect("answered").value
    };
    let engine = fixture.engine();
    engine.index().expect("indexed");
    assert!(dirty(&engine));
    fixture.git(&["add", "."]);
    fixture.git(&["commit", "-q", "-m", "first"]);
    assert_eq!(count(&engine, "greet", OnStale::Refuse), Err("code_changed"));
    assert!(!dirty(&engine));
    fixture.write("util.py", "");
    assert!(dirty(&mut fixture.engine()));
    fixture.git(&["checkout", "-q", "-b", "other"]);
    assert_eq!(count(&fixture.engine(), "greet", OnStale::Refuse), Err("code_changed"));
    fixture.git(&["checkout", "-q", "--", "util.py"]);
    assert!(!dirty(&mut fixture.engine()));
}

#[test]
fn status_says_what_was_checked() {
    let fixture = Fixture::small();
    let engine = fixture.engine();
    let words = |engine: &Desk| {
        let status = engine.status();
        (status.status, status.freshness, status.reason)
    };
    let code = |code: &str| Some(code.to_owned());
    assert_eq!(words(&engine), (StatusWord::Missing, Freshness::Unknown, code("code_index_missing")));
    let fingerprint = engine.index().expect("indexed").fingerprint;
    assert_eq!(words(&engine), (StatusWord::Ready, Freshness::Fresh, None));
    let status = engine.status();
    assert_eq!(status.fingerprint, Some(fingerprint.hex()));
    assert!(matches!(status.last_build.expect("recorded").build, LastBuild::Ready { extracted_files: 2, .. }));
    fixture.write("new.py", "");
    assert_eq!(words(&engine), (StatusWord::Stale, Freshness::Stale, code("code_changed")));
    let mut disabled = fixture.engine_with("cache", "enabled = false");
    assert_eq!(words(&mut disabled), (StatusWord::Disabled, Freshness::Unknown, code("code_disabled")));
    assert_eq!(count(&disabled, "greet", OnStale::Sync), Err("code_disabled"));
    assert_eq!(disabled.sync().map_err(|error| error.code()).err(), Some("code_disabled"));
}

#[test]
fn a_failed_build_leaves_what_serves() {
    let fixture = Fixture::small();
    fixture.engine().index().expect("indexed");
    let limited = fixture.engine_with("cache", "[limits]\nmax_files = 1");
    assert_eq!(limited.sync().map_err(|error| error.code()).err(), Some("repository_limit_exceeded"));
    let status = fixture.engine().status();
    assert_eq!((status.status, status.freshness), (StatusWord::Ready, Freshness::Fresh));
    assert!(matches!(status.last_build.expect("recorded").build, LastBuild::Failed { .. }));
    assert_eq!(count(&fixture.engine(), "greet", OnStale::Refuse), Ok(1));
}

#[test]
fn damage_is_refused_and_repaired() {
    let fixture = Fixture::small();
    fixture.engine().index().expect("indexed");
    let clean = fixture.clean();
    let database = find(&fixture.folder.path().join("cache"), "graph.sqlite").expect("published");
    let mut bytes = std::fs::read(&database).expect("readable");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&database, bytes).expect("written");
    assert_eq!(count(&fixture.engine(), "greet", OnStale::Refuse), Err("index_integrity_failed"));
    assert_eq!(fixture.engine().sync().expect("repaired").status, BuildStatus::Published);
    assert_eq!(dump(&fixture.engine()), clean);
}

#[test]
fn a_damaged_source_is_never_shown_and_repaired() {
    let fixture = Fixture::small();
    fixture.engine().index().expect("indexed");
    let packs = find(&fixture.folder.path().join("cache"), "packs").map(|packs| std::fs::read_dir(packs).expect("a folder"));
    let pack = packs.and_then(|mut packs| packs.next()).expect("a pack").expect("readable").path();
    let mut bytes = std::fs::read(&pack).expect("readable");
    let start = bytes.windows(UTIL.len()).position(|window| window == UTIL.as_bytes()).expect("stored as it is");
    bytes[start] ^= 1;
    std::fs::write(&pack, bytes).expect("written");
    let source = |engine: &Desk, on_stale| {
        let operation = |snapshot: &super::Snapshot| snapshot.generation().source("util.py").ok().flatten();
        engine.ask(admission(on_stale), operation).map(|answer| answer.value).map_err(|error| error.code())
    };
    assert_eq!(source(&mut fixture.engine(), OnStale::Refuse), Err("index_integrity_failed"));
    assert_eq!(source(&mut fixture.engine(), OnStale::Sync).expect("repaired").as_deref(), Some(UTIL.as_bytes()));
    assert_eq!(source(&mut fixture.engine(), OnStale::Refuse).expect("whole").as_deref(), Some(UTIL.as_bytes()));
}

fn find(folder: &std::path::Path, name: &str) -> Option<PathBuf> {
    std::fs::read_dir(folder).ok()?.flatten().find_map(|entry| {
        let path = entry.path();
        if entry.file_name() == name { Some(path) } else { path.is_dir().then(|| find(&path, name)).flatten() }
    })
}

#[test]
fn clear_removes_the_index() {
    let fixture = Fixture::small();
    let engine = fixture.engine();
    engine.index().expect("indexed");
    let cleared = engine.clear().expect("cleared");
    assert_eq!((cleared.status, cleared.retained_reader_generations), ("cleared", 0));
    assert_eq!(count(&engine, "greet", OnStale::Sync), Err("code_index_missing"));
    assert_eq!(engine.sync().expect("built anew").status, BuildStatus::Published);
}

/// Asks for the fingerprint of the baseline, as `changes` and `impact_changes` do.
fn baseline(engine: &Desk, baseline: Baseline, on_stale: OnStale) -> Result<String, &'static str> {
    let operation = |snapshot: &super::Snapshot| snapshot.baseline().map(|baseline| baseline.identity().fingerprint.hex());
    let answer = engine.ask(Admission { baseline, ..admission(on_stale) }, operation).map_err(|error| error.code())?;
    Ok(answer.value.expect("one was asked for"))
}

#[test]
fn a_named_baseline_outlives_the_sync_of_its_question() {
    let fixture = Fixture::small();
    let engine = fixture.engine();
    assert_eq!(baseline(&engine, Baseline::Previous, OnStale::Refuse), Err("code_index_missing"));
    engine.index().expect("indexed");
    assert_eq!(baseline(&engine, Baseline::Previous, OnStale::Refuse), Err("baseline_unavailable"));
    let mut built = Vec::new();
    for name in ["one", "two", "three"] {
        fixture.write("more.py", &format!("def {name}(): pass\n"));
        built.push(engine.sync().expect("synced").fingerprint);
    }
    assert_eq!(baseline(&engine, Baseline::Previous, OnStale::Refuse), Ok(built[1].hex()));
    assert_eq!(baseline(&engine, Baseline::Kept(built[0]), OnStale::Refuse), Err("baseline_unavailable"));
    fixture.write("more.py", "def four(): pass\n");
    assert_eq!(baseline(&engine, Baseline::Kept(built[1]), OnStale::Refuse), Err("code_changed"));
    // The sync lets go of what was the previous one, and the question keeps it.
    assert_eq!(baseline(&engine, Baseline::Kept(built[1]), OnStale::Sync), Ok(built[1].hex()));
    assert_eq!(baseline(&engine, Baseline::Kept(built[1]), OnStale::Refuse), Err("baseline_unavailable"));
    fixture.write("more.py", "def five(): pass\n");
    let before = engine.kept()[0].fingerprint;
    assert_eq!(baseline(&engine, Baseline::Previous, OnStale::Sync), Ok(before.hex()));
}

#[test]
fn a_baseline_follows_what_another_process_publishes() {
    let fixture = Fixture::small();
    let engine = fixture.engine();
    engine.index().expect("indexed");
    fixture.write("more.py", "def one(): pass\n");
    let first = engine.sync().expect("synced").fingerprint;
    // This engine holds its generation open while another one publishes.
    assert_eq!(count(&engine, "one", OnStale::Refuse), Ok(1));
    fixture.write("more.py", "def two(): pass\n");
    fixture.engine().sync().expect("synced");
    assert_eq!(baseline(&engine, Baseline::Previous, OnStale::Refuse), Ok(first.hex()));
    fixture.engine().clear().expect("cleared");
    assert_eq!(baseline(&engine, Baseline::Previous, OnStale::Refuse), Err("code_index_missing"));
}

#[test]
fn a_damaged_baseline_is_refused_and_then_forgotten() {
    let fixture = Fixture::small();
    let engine = fixture.engine();
    engine.index().expect("indexed");
    fixture.write("more.py", "def one(): pass\n");
    engine.sync().expect("synced");
    let cache = fixture.folder.path().join("cache");
    let databases: Vec<PathBuf> = std::fs::read_dir(&cache)
        .expect("there is one")
        .flatten()
        .flat_map(|binding| std::fs::read_dir(binding.path().join("generations")).into_iter().flatten().flatten())
        .map(|generation| generation.path().join("graph.sqlite"))
        .collect();
    let current = fixture.engine().ask(admission(OnStale::Refuse), |snapshot| snapshot.generation().id().hex()).expect("fresh");
    let older = databases.iter().find(|path| !path.to_string_lossy().contains(&current.value)).expect("the previous one");
    let mut bytes = std::fs::read(older).expect("readable");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    // Under this name only: generations may share a file.
    std::fs::remove_file(older).expect("removable");
    std::fs::write(older, bytes).expect("writable");
    assert_eq!(baseline(&engine, Baseline::Previous, OnStale::Refuse), Err("index_integrity_failed"));
    // What serves is whole, and goes on serving.
    assert_eq!(count(&engine, "one", OnStale::Refuse), Ok(1));
    engine.sync().expect("synced");
    assert_eq!(baseline(&engine, Baseline::Previous, OnStale::Refuse), Err("baseline_unavailable"));
    assert_eq!(dump(&engine), fixture.clean());
}

/// Lets `change` happen at the given moment of every scan while `run` does its work.
fn while_changing<R>(moment: Moment, mut change: impl FnMut(usize) + 'static, run: impl FnOnce() -> R) -> R {
    let mut scans = 0;
    let hook = move |now: Moment, path: &str| {
        if now == moment && (path.is_empty() || path == "util.py") {
            scans += 1;
            change(scans);
        }
    };
    during(hook, run)
}

#[test]
fn a_worktree_that_keeps_changing_is_busy_and_the_index_serves() {
    let fixture = Fixture::small();
    let engine = fixture.engine_with("cache", "[limits]\nquery_seconds = 1");
    engine.index().expect("indexed");
    let file = fixture.root().join("util.py");
    let grow = move |times: usize| std::fs::write(&file, format!("{UTIL}# {times}\n")).expect("written");
    // Changed under each read of it, and changed between any two scans of a build.
    for moment in [Moment::Opened, Moment::Listed] {
        let sync = while_changing(moment, grow.clone(), || engine.sync().map(|outcome| outcome.status));
        assert_eq!(sync.map_err(|error| error.code()), Err("workspace_busy"), "{moment:?}");
        let asked = while_changing(moment, grow.clone(), || {
            let admission = Admission { limit: std::time::Duration::from_millis(300), ..admission(OnStale::Sync) };
            engine.ask(admission, |_| ()).map(drop).map_err(|error| error.code())
        });
        assert_eq!(asked, Err("workspace_busy"), "whoever asked for a sync is not told to ask for one, {moment:?}");
        let index = while_changing(moment, grow.clone(), || fixture.engine().index().map(|outcome| outcome.status));
        assert_eq!(index.map_err(|error| error.code()), Err("workspace_busy"), "{moment:?}");
        fixture.write("util.py", UTIL);
        assert_eq!(count(&engine, "greet", OnStale::Refuse), Ok(1), "what was published serves");
    }
    let asked = while_changing(Moment::Opened, grow, || count(&engine, "greet", OnStale::Refuse));
    assert_eq!(asked, Err("workspace_busy"));
}

#[test]
fn a_sync_waits_for_a_worktree_to_come_to_rest() {
    for on_stale in [None, Some(OnStale::Sync)] {
        let fixture = Fixture::small();
        let engine = fixture.engine();
        engine.index().expect("indexed");
        fixture.write("late.py", "def late(): pass\n");
        let file = fixture.root().join("util.py");
        // Six builds are given up, and the seventh finds the worktree at rest.
        let grow = move |times: usize| {
            if times < 12 {
                std::fs::write(&file, format!("{UTIL}# {times}\n")).expect("written");
            }
        };
        let outcome = while_changing(Moment::Listed, grow, || match on_stale {
            None => engine.sync().map(drop).map_err(|error| error.code()),
            Some(on_stale) => count(&engine, "late", on_stale).map(drop),
        });
        assert_eq!((outcome, count(&engine, "late", OnStale::Refuse)), (Ok(()), Ok(1)));
    }
}

#[test]
fn a_worktree_that_changes_once_during_a_build_is_built_as_it_came_to_be() {
    for moment in [Moment::GitRead, Moment::Listed, Moment::Opened, Moment::Read] {
        for scan in 1..=2 {
            let fixture = Fixture::small();
            let engine = fixture.engine();
            engine.index().expect("indexed");
            fixture.write("main.py", &format!("{MAIN}\n\ngreet('y')\n"));
            let file = fixture.root().join("util.py");
            let change = move |times: usize| {
                if times == scan {
                    std::fs::write(&file, "def welcome(name):\n    return name\n").expect("written");
                }
            };
            while_changing(moment, change, || engine.sync()).expect("synced");
            assert_eq!(count(&engine, "welcome", OnStale::Refuse), Ok(1), "{moment:?} of scan {scan}");
            assert_eq!(dump(&engine), fixture.clean(), "{moment:?} of scan {scan}");
        }
    }
}
