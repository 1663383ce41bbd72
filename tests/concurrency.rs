//! Readers, builders and `clear` at once, each a process of its own: what is answered was on disk while it was asked, what is read stays
//! until it was read, and a process that dies gives back what it held.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::fs::FlockOperation;
use rustix::process::{Pid, Signal};

use crate::program::Run;
use crate::sandbox::Sandbox;

/// Longest wait for something that must come.
const PATIENCE: Duration = Duration::from_secs(60);

/// Returns once `met` gives something.
fn wait_for<T>(what: &str, mut met: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(value) = met() {
            return value;
        }
        assert!(start.elapsed() < PATIENCE, "{what} does not come");
        std::thread::park_timeout(Duration::from_millis(1));
    }
}

fn binding(sandbox: &Sandbox) -> PathBuf {
    let root = sandbox.path().join("cache/sextant");
    let entries = fs::read_dir(root).expect("there is a cache");
    let bindings = entries.map(|entry| entry.expect("listed").path()).filter(|path| !path.ends_with("facts"));
    bindings.last().expect("something was indexed")
}

/// Returns the names of the generations on disk, sorted.
fn generations(sandbox: &Sandbox) -> Vec<String> {
    names(&binding(sandbox).join("generations"))
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).expect("it exists");
    let mut names: Vec<String> = entries.map(|entry| entry.expect("listed").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

fn signal(child: &Child, signal: Signal) {
    let pid = Pid::from_raw(child.id().cast_signed()).expect("a process has an id");
    rustix::process::kill_process(pid, signal).expect("it has not been waited for");
}

/// Returns whether a process that is not this one holds a lock on a file.
fn is_locked(path: &Path) -> bool {
    let Ok(file) = fs::File::open(path) else { return false };
    rustix::fs::flock(&file, FlockOperation::NonBlockingLockShared).is_err()
}

/// The states that the tree goes through. Each has a caller more than the one before, under other names.
const STATES: usize = 4;

fn write_state(sandbox: &Sandbox, state: usize) {
    sandbox.write("lib.py", format!("def target():\n    return {state}\n"));
    for file in 0..STATES {
        let body = if file <= state { "    return target()\n" } else { "    return None\n" };
        sandbox.write(&format!("m{file}.py"), format!("from lib import target\n\n\ndef use_{state}_{file}():\n{body}"));
    }
}

/// Three questions about one state, and their right answers.
struct Truth {
    fingerprint: String,
    questions: Vec<(String, String)>,
    export: String,
}

impl Truth {
    /// Builds the state from nothing in a cache of its own.
    fn of(sandbox: &Sandbox, state: usize) -> Self {
        let cache = format!("clean-{state}");
        let run = |arguments: &[&str], input: &str| run_with_cache(sandbox, &cache, arguments, input);
        run(&["index", "--quiet"], "").ended(0);
        let found =
            run(&["query", "--request-file", "-"], r#"{"operation":{"kind":"symbols","query":"target"}}"#).ended(0).json();
        let fingerprint = found["fingerprint"].as_str().expect("a text").to_owned();
        let symbol = found["items"][0]["id"].as_str().expect("a text");
        let operations = [
            format!(r#"{{"kind":"callers","symbol_id":"{symbol}"}}"#),
            r#"{"kind":"explore","query":"target"}"#.to_owned(),
            format!(r#"{{"kind":"explore","query":"use_{state}_0"}}"#),
        ];
        let questions = operations.map(|operation| {
            let request = format!(r#"{{"operation":{operation},"expected_fingerprint":"{fingerprint}"}}"#);
            let answer = run(&["query", "--request-file", "-"], &request).ended(0);
            (request, timeless(&answer))
        });
        let callers: serde_json::Value = serde_json::from_str(&questions[0].1).expect("it was JSON");
        assert_eq!(callers["items"].as_array().map(Vec::len), Some(state + 1), "{callers}");
        let export = run(&["export"], "").ended(0).out;
        Self { fingerprint, questions: questions.into(), export }
    }
}

fn run_with_cache(sandbox: &Sandbox, cache: &str, arguments: &[&str], input: &str) -> Run {
    let mut command = sandbox.program(arguments);
    command.env("XDG_CACHE_HOME", sandbox.path().join(cache)).env("SEXTANT_NO_BARRIERS", "1");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program starts");
    // A program that refuses early reads nothing.
    let _ = std::io::Write::write_all(&mut child.stdin.take().expect("it is piped"), input.as_bytes());
    Run::from(child.wait_with_output().expect("the program ends"))
}

/// Returns an answer without the time of its check.
fn timeless(run: &Run) -> String {
    let mut answer = run.json();
    answer["checked_at"] = serde_json::Value::Null;
    answer.to_string()
}

/// When which state may have been on disk.
#[derive(Default)]
struct History {
    /// State, when its writing began, and when the writing of the next one had ended.
    spans: Mutex<Vec<(usize, Instant, Option<Instant>)>>,
}

impl History {
    fn change(&self, sandbox: &Sandbox, state: usize) {
        self.spans.lock().expect("no thread failed").push((state, Instant::now(), None));
        write_state(sandbox, state);
        let now = Instant::now();
        let mut spans = self.spans.lock().expect("no thread failed");
        let before = spans.len().checked_sub(2);
        if let Some(before) = before {
            spans[before].2 = Some(now);
        }
    }

    fn held(&self, state: usize, from: Instant, to: Instant) -> bool {
        let spans = self.spans.lock().expect("no thread failed");
        spans.iter().any(|(of, begin, end)| *of == state && *begin <= to && end.is_none_or(|end| end >= from))
    }
}

/// Eight readers ask, each a fresh process every time, while fifty generations are published and the index is cleared between them.
#[test]
fn readers_while_fifty_generations_are_published_and_one_clear() {
    const BUILDS: usize = 50;
    let sandbox = Sandbox::new();
    write_state(&sandbox, 0);
    sandbox.commit_all();
    let truths: Vec<Truth> = (0..STATES)
        .map(|state| {
            write_state(&sandbox, state);
            Truth::of(&sandbox, state)
        })
        .collect();
    let history = History::default();
    history.change(&sandbox, 0);
    run_with_cache(&sandbox, "cache", &["index", "--quiet"], "").ended(0);

    let done = AtomicBool::new(false);
    let tally: Mutex<BTreeMap<String, usize>> = Mutex::default();
    let published = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for reader in 0..8 {
            let (sandbox, truths, history, done, tally, published) = (&sandbox, &truths, &history, &done, &tally, &published);
            scope.spawn(move || {
                let mut turn = reader;
                while !done.load(Ordering::Relaxed) {
                    turn += 1;
                    // Mostly about the state that is there, sometimes about another one.
                    let state = if turn % 5 == 0 { turn % STATES } else { published.load(Ordering::Relaxed) % STATES };
                    let word = ask(sandbox, truths, state, turn, history);
                    *tally.lock().expect("no thread failed").entry(word).or_default() += 1;
                }
            });
        }
        // Readers must end whatever happens to the builder.
        let built = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            for build in 1..=BUILDS {
                history.change(&sandbox, build % STATES);
                published.store(build, Ordering::Relaxed);
                let command = if build % 10 == 0 { "index" } else { "sync" };
                let run = run_with_cache(&sandbox, "cache", &[command, "--json"], "").ended(0).json();
                assert_eq!(run["fingerprint"], truths[build % STATES].fingerprint.as_str(), "{run}");
                assert_eq!(run["published"], true, "{run}");
                // Readers get to see each generation.
                let right = || tally.lock().expect("no thread failed").get("right").copied().unwrap_or(0);
                let before = right();
                wait_for("a right answer", || (right() >= before + 2).then_some(()));
                if build == BUILDS / 2 {
                    run_with_cache(&sandbox, "cache", &["clear", "--quiet"], "").ended(0);
                }
            }
        }));
        done.store(true, Ordering::Relaxed);
        built.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
    let tally = tally.into_inner().expect("no thread failed");
    println!("{BUILDS} generations, one clear: {tally:?}");
    let count = |word: &str| tally.get(word).copied().unwrap_or(0);
    assert!(count("right") >= 2 * BUILDS, "{tally:?}");
    let honest = ["right", "code_changed", "code_index_missing", "workspace_busy", "code_timeout"];
    assert!(tally.keys().all(|word| honest.contains(&word.as_str())), "{tally:?}");
    // With the readers gone, nothing stays but what the pointer names.
    run_with_cache(&sandbox, "cache", &["index", "--quiet"], "").ended(0);
    assert!(generations(&sandbox).len() <= 3, "{:?}", generations(&sandbox));
}

/// Asks one question of a state and returns `right` or the code of the refusal; anything else fails.
fn ask(sandbox: &Sandbox, truths: &[Truth], state: usize, turn: usize, history: &History) -> String {
    let truth = &truths[state];
    let begun = Instant::now();
    let exports = turn % 4 == 3;
    let run = if exports {
        run_with_cache(sandbox, "cache", &["export", "--json", "--on-stale", "refuse"], "")
    } else {
        run_with_cache(sandbox, "cache", &["query", "--request-file", "-"], &truth.questions[turn % 4].0)
    };
    let ended = Instant::now();
    assert!(!run.err.contains("panicked"), "{run:?}");
    match run.status {
        Some(0) => {
            // An export names no fingerprint: it is of whatever state was there.
            let answered = match exports {
                true => truths.iter().position(|truth| truth.export == run.out),
                false => (timeless(&run) == truth.questions[turn % 4].1).then_some(state),
            };
            let Some(answered) = answered else { panic!("a wrong answer for state {state}: {run:?}") };
            assert!(history.held(answered, begun, ended), "state {answered} was not on disk while it was asked: {run:?}");
            "right".to_owned()
        }
        Some(3..=5) => {
            assert!(run.out.is_empty(), "a refusal says nothing beside: {run:?}");
            run.code()
        }
        _ => panic!("{run:?}"),
    }
}

/// A sandbox with a tree whose export is larger than a pipe holds, so that a reader of it waits with everything in hand.
fn large() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("lib.py", "def target():\n    pass\n");
    for file in 0..12 {
        let body: String = (0..40).map(|line| format!("def use_{line}():\n    return target()\n\n\n")).collect();
        sandbox.write(&format!("m{file}.py"), format!("from lib import target\n\n\n{body}"));
    }
    sandbox.commit_all();
    sandbox.sextant(&["index", "--quiet"]).ended(0);
    sandbox
}

/// Starts an export and returns once it writes its answer, with the lease still held.
fn start_reader(sandbox: &Sandbox) -> (Child, Vec<u8>) {
    let mut command = sandbox.program(&["export", "--on-stale", "refuse"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
    let mut first = vec![0; 1];
    child.stdout.as_mut().expect("it is piped").read_exact(&mut first).expect("it answers");
    (child, first)
}

#[test]
fn a_lease_keeps_a_generation_and_dies_with_its_process() {
    let sandbox = large();
    let whole = sandbox.sextant(&["export"]).ended(0).out;
    assert!(whole.len() > 200_000, "{} bytes fit into a pipe", whole.len());
    let served = generations(&sandbox);
    assert_eq!(served.len(), 1);

    let (mut patient, mut answer) = start_reader(&sandbox);
    let (mut doomed, _) = start_reader(&sandbox);
    // Another branch each time, so that nothing but the readers keeps the generation.
    for branch in ["one", "two", "three"] {
        sandbox.git(&["checkout", "--quiet", "-b", branch]);
        sandbox.write("lib.py", format!("def target():\n    return '{branch}'\n"));
        sandbox.sextant(&["sync", "--quiet"]).ended(0);
    }
    assert_eq!(generations(&sandbox).len(), 3, "current, previous and the one that is read");
    assert!(generations(&sandbox).contains(&served[0]));

    // One reader takes its time and gets everything; the other one is killed.
    patient.stdout.as_mut().expect("it is piped").read_to_end(&mut answer).expect("it answers");
    assert!(patient.wait().expect("it ends").success());
    assert_eq!(String::from_utf8_lossy(&answer), whole);
    sandbox.sextant(&["sync", "--quiet"]).ended(0);
    assert!(generations(&sandbox).contains(&served[0]), "another reader is at it");
    doomed.kill().expect("it runs");
    doomed.wait().expect("it ends");
    // A build that has nothing to publish takes it away, too.
    sandbox.sextant(&["sync", "--quiet"]).ended(0);
    assert_eq!(generations(&sandbox).len(), 2);
    assert!(!generations(&sandbox).contains(&served[0]));
}

#[test]
fn clear_spares_what_is_read() {
    let sandbox = large();
    let whole = sandbox.sextant(&["export"]).ended(0).out;
    let (mut reader, mut answer) = start_reader(&sandbox);
    let cleared = sandbox.sextant(&["clear", "--json"]).ended(0).json();
    assert_eq!(cleared["retained_reader_generations"], 1);
    let symbols = r#"{"operation":{"kind":"symbols","query":"target"}}"#;
    assert_eq!(sandbox.query(symbols).ended(4).code(), "code_index_missing");
    sandbox.sextant(&["sync", "--quiet"]).ended(0);
    sandbox.query(symbols).ended(0);
    assert_eq!(generations(&sandbox).len(), 2);
    reader.stdout.as_mut().expect("it is piped").read_to_end(&mut answer).expect("it answers");
    assert!(reader.wait().expect("it ends").success());
    assert_eq!(String::from_utf8_lossy(&answer), whole);
    assert_eq!(sandbox.sextant(&["clear", "--json"]).ended(0).json()["retained_reader_generations"], 0);
    assert_eq!(generations(&sandbox), Vec::<String>::new());
    assert_eq!(names(&binding(&sandbox).join("packs")), Vec::<String>::new());
}

/// A snapshot is held while other processes publish, collect and clear; then it reads on: rows, and sources from packs that it had not
/// opened before.
#[test]
fn nothing_is_collected_under_a_snapshot() {
    use sextant::config::{Config, Environment, OnStale, ParserHost, Selection};
    use sextant::engine::{Admission, Baseline, Desk};
    use sextant::parse::InProcessParser;

    let sandbox = Sandbox::new();
    for state in 0..STATES {
        write_state(&sandbox, state);
        if state == 0 {
            sandbox.commit_all();
        }
        sandbox.sextant(&["sync", "--quiet"]).ended(0);
    }
    let environment = Environment {
        current_dir: sandbox.tree(),
        home: Some(sandbox.path().join("home")),
        xdg_cache_home: Some(sandbox.path().join("cache")),
        xdg_runtime_dir: None,
        config: None,
        parsers: ParserHost::ThisProcess,
    };
    let config = Config::load(None, &environment).expect("the defaults");
    let scope = config.scope(&Selection::default(), &environment).expect("a scope");
    let engine = Desk::open(&config, scope, Arc::new(InProcessParser)).expect("opened");
    let admission =
        Admission { on_stale: OnStale::Refuse, expected_fingerprint: None, baseline: Baseline::None, limit: PATIENCE };
    let asked = engine.ask(admission, |snapshot| {
        let generation = snapshot.generation();
        let before = generation.manifest().expect("readable");
        for branch in ["one", "two", "three"] {
            sandbox.git(&["checkout", "--quiet", "-b", branch]);
            write_state(&sandbox, 1);
            sandbox.sextant(&["index", "--quiet"]).ended(0);
            sandbox.sextant(&["clear", "--quiet"]).ended(0);
        }
        sandbox.git(&["checkout", "--quiet", "main"]);
        write_state(&sandbox, STATES - 1);
        for file in &before {
            let source = generation.source(&file.path).expect("nothing was collected").expect("it was indexed");
            assert_eq!(*source, *fs::read(sandbox.tree().join(&*file.path)).expect("readable"), "{}", file.path);
        }
        let mut rows = 0;
        generation
            .each_edge(&mut |_| {
                rows += 1;
                Ok(())
            })
            .expect("readable");
        (before.len(), rows > STATES)
    });
    // The tree is what it was, so that the answer is delivered although the index was cleared under it.
    assert_eq!(asked.expect("answered").value, (STATES + 1, true));
    assert_eq!(engine.ask(admission, |_| ()).map_err(|error| error.code()).err(), Some("code_index_missing"));
}

/// Readers are stopped at some moment of their work, sleep through two builds, and go on.
#[test]
fn readers_that_sleep_through_builds() {
    let sandbox = Sandbox::new();
    write_state(&sandbox, 0);
    sandbox.commit_all();
    let truths: Vec<Truth> = (0..2)
        .map(|state| {
            write_state(&sandbox, state);
            Truth::of(&sandbox, state)
        })
        .collect();
    write_state(&sandbox, 0);
    run_with_cache(&sandbox, "cache", &["index", "--quiet"], "").ended(0);
    let begun = Instant::now();
    run_with_cache(&sandbox, "cache", &["export", "--on-stale", "refuse"], "").ended(0);
    let whole = begun.elapsed();
    let mut words: BTreeMap<String, usize> = BTreeMap::new();
    for step in 0..12 {
        let mut command = sandbox.program(&["export", "--json", "--on-stale", "refuse"]);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
        let start = Instant::now();
        // Asking whether it has ended would take its id from it, and the signal needs one.
        std::thread::sleep((whole * step / 12).saturating_sub(start.elapsed()));
        signal(&child, Signal::STOP);
        write_state(&sandbox, 1);
        run_with_cache(&sandbox, "cache", &["sync", "--quiet"], "").ended(0);
        if step % 3 == 0 {
            run_with_cache(&sandbox, "cache", &["clear", "--quiet"], "").ended(0);
        }
        if step % 2 == 0 {
            write_state(&sandbox, 0);
            run_with_cache(&sandbox, "cache", &["sync", "--quiet"], "").ended(0);
        }
        signal(&child, Signal::CONT);
        let run = Run::from(child.wait_with_output().expect("it ends"));
        assert!(!run.err.contains("panicked"), "{run:?}");
        let word = match run.status {
            Some(0) => {
                assert!(truths.iter().any(|truth| truth.export == run.out), "a wrong answer: {run:?}");
                "right".to_owned()
            }
            _ => run.code(),
        };
        assert!(["right", "code_changed", "code_index_missing", "workspace_busy"].contains(&word.as_str()), "{word}");
        *words.entry(word).or_default() += 1;
        write_state(&sandbox, 0);
        run_with_cache(&sandbox, "cache", &["sync", "--quiet"], "").ended(0);
    }
    println!("stopped readers: {words:?}");
}

#[test]
fn a_builder_waits_for_another_until_its_deadline() {
    let sandbox = Sandbox::new();
    sandbox.write("a.py", "def f(): pass\n");
    sandbox.commit_all();
    sandbox.sextant(&["index", "--quiet"]).ended(0);
    let config = sandbox.path().join("sextant.toml");
    fs::write(&config, "[limits]\nbuild_seconds = 1\n").expect("the sandbox is writable");
    let config = config.to_string_lossy().into_owned();
    let lock = fs::File::open(binding(&sandbox).join("build.lock")).expect("a lock");
    rustix::fs::flock(&lock, FlockOperation::LockExclusive).expect("locked");
    for command in ["sync", "index"] {
        let begun = Instant::now();
        let run = sandbox.sextant(&[command, "--json", "--config", &config]).ended(5);
        assert_eq!(run.code(), "code_timeout");
        assert!(begun.elapsed() >= Duration::from_millis(900), "{:?}", begun.elapsed());
    }
    // Who reads does not wait.
    sandbox.query(r#"{"operation":{"kind":"symbols","query":"f"}}"#).ended(0);
    assert_eq!(sandbox.sextant(&["status", "--json"]).ended(0).json()["status"], "ready");
    // One that waits goes on as soon as the lock is free.
    let waiting = sandbox.program(&["sync", "--quiet"]).spawn().expect("the program starts");
    drop(lock);
    assert!(waiting.wait_with_output().expect("it ends").status.success());
}

/// A builder is stopped while it holds the lock and killed; the lock goes with it, whatever process has its number then.
#[test]
fn a_killed_builder_frees_the_lock() {
    let sandbox = Sandbox::new();
    let filler: String = (0..200).map(|line| format!("def filler_{line}(a, b):\n    return a + b * {line}\n")).collect();
    for file in 0..20 {
        sandbox.write(&format!("m{file}.py"), &filler);
    }
    sandbox.commit_all();
    sandbox.sextant(&["index", "--quiet"]).ended(0);
    let lock = binding(&sandbox).join("build.lock");
    let mut builder = sandbox.program(&["index", "--quiet"]).spawn().expect("the program starts");
    wait_for("a builder", || is_locked(&lock).then_some(()));
    signal(&builder, Signal::STOP);
    // Either it was stopped with the lock in hand, or it had just ended.
    let held = is_locked(&lock);
    builder.kill().expect("it has not been waited for");
    let ended = builder.wait().expect("it ends");
    assert!(!held || ended.signal() == Some(9), "{ended:?}");
    assert!(!is_locked(&lock));
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| sandbox.sextant(&["sync", "--quiet"]).ended(0));
            scope.spawn(|| {
                let run = sandbox.query(r#"{"operation":{"kind":"symbols","query":"filler_199","limit":50}}"#).ended(0);
                assert_eq!(run.json()["items"].as_array().map(Vec::len), Some(20), "{run:?}");
            });
        }
    });
    assert!(names(&binding(&sandbox)).iter().all(|name| !name.starts_with('.')), "a killed builder's files stay");
}

#[test]
fn eight_first_builds_at_once() {
    let sandbox = Sandbox::new();
    write_state(&sandbox, 2);
    sandbox.commit_all();
    let right = Truth::of(&sandbox, 2);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let run = run_with_cache(&sandbox, "cache", &["sync", "--json"], "").ended(0).json();
                assert_eq!(run["fingerprint"], right.fingerprint.as_str());
            });
        }
    });
    assert_eq!(run_with_cache(&sandbox, "cache", &["export"], "").ended(0).out, right.export);
    // The first one built, and the others found it done.
    assert_eq!(generations(&sandbox).len(), 1);
}
