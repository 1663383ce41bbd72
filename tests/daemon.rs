//! `sextant daemon` and the commands that use it: the same answers with it, without it, and while it dies.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::background::{Daemon, as_a_fresh_process, cpu_of, left, parsers, processes, socket, status, wait};
use crate::program::{PROGRAM, Run, indexed};
use crate::sandbox::Sandbox;

/// Asks for a line of JSON over the socket.
fn converse(sandbox: &Sandbox, lines: &[String]) -> Vec<Value> {
    let mut stream = UnixStream::connect(socket(sandbox)).expect("it listens");
    for line in lines {
        writeln!(stream, "{line}").expect("it reads");
    }
    // It need not be told that nothing more comes, but may.
    stream.shutdown(std::net::Shutdown::Write).expect("connected");
    BufReader::new(stream).lines().map(|line| serde_json::from_str(&line.expect("text")).expect("JSON")).collect()
}

/// Returns what a command wrote, without what differs from run to run.
fn plain(run: &Run) -> (Option<i32>, String, String) {
    let blank = |text: &str| text.lines().map(blank_line).collect::<Vec<_>>().join("\n");
    (run.status, blank(&run.out), blank(&run.err))
}

fn blank_line(line: &str) -> String {
    let Ok(mut value) = serde_json::from_str::<Value>(line) else {
        let words = line.split(' ').map(|word| if word.starts_with(|c: char| c.is_ascii_digit()) { "N" } else { word });
        return words.collect::<Vec<_>>().join(" ").replace("watcher: none", "watcher: ok");
    };
    for key in ["checked_at", "elapsed_seconds", "peak_memory_bytes", "stages"] {
        if let Some(found) = value.get_mut(key) {
            *found = Value::Null;
        }
    }
    if let Some(last) = value.get_mut("last_build") {
        last["watch"] = Value::Null;
    }
    value.to_string()
}

#[test]
fn the_same_bytes_with_and_without() {
    let sandbox = indexed();
    sandbox.write("tests/test_lib.py", "from lib import f\n\n\ndef test_f():\n    assert f() == 1\n");
    sandbox.write("odd \u{f6}.py", "def \u{f6}(): pass\n");
    sandbox.sextant(&["sync", "--quiet"]).ended(0);
    let config = sandbox.path().join("sextant.toml");
    fs::write(&config, format!("[scopes.demo]\nroot = {:?}\n[scopes.other]\nroot = \"/nonexistent\"\n", sandbox.tree()))
        .expect("written");
    let config = config.to_string_lossy().into_owned();
    let request = r#"{"operation":{"kind":"symbols","query":"f"}}"#;
    fs::write(sandbox.path().join("request.json"), request).expect("written");
    let file = sandbox.path().join("request.json").to_string_lossy().into_owned();
    let daemon = Daemon::start(&sandbox);
    let check = |arguments: &[&str], input: &str| {
        let run = |more: &[&str]| {
            let mut command = sandbox.program(&[arguments, more].concat());
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
            let mut child = command.spawn().expect("the program starts");
            // It need not read all of it.
            let _ = child.stdin.take().expect("it is piped").write_all(input.as_bytes());
            Run::from(child.wait_with_output().expect("it ends"))
        };
        let alone = run(&["--no-daemon"]);
        let before = daemon.answered();
        let served = run(&[]);
        assert_eq!(daemon.answered() - before, 1, "{arguments:?} was served");
        assert_eq!(plain(&alone), plain(&served), "{arguments:?}");
        assert!(!served.err.contains("panicked"), "{served:?}");
        served.status.expect("it ends by itself")
    };
    let table: &[(&[&str], &str)] = &[
        (&["index", "--json"], ""),
        (&["index"], ""),
        (&["sync", "--json"], ""),
        (&["sync", "--verify"], ""),
        (&["status"], ""),
        (&["status", "--json"], ""),
        (&["explore", "what calls f", "--json"], ""),
        (&["explore", "what calls f", "--source", "--color", "always"], ""),
        (&["symbols", "f"], ""),
        (&["symbols", "nosuch"], ""),
        (&["symbols", "\u{f6}"], ""),
        (&["callers", "lib.f"], ""),
        (&["callers", "lib.f", "--json"], ""),
        (&["callees", "g", "--source"], ""),
        (&["callers", "nosuch"], ""),
        (&["callers", "nosuch", "--json"], ""),
        (&["impact", "f", "--depth", "3"], ""),
        (&["impact", "f", "--depth", "9"], ""),
        (&["tests", "lib.py"], ""),
        (&["tests", "--stdin"], "lib.py\0use.py\0"),
        (&["tests", "nosuch.py"], ""),
        (&["why", "use.py"], ""),
        (&["map"], ""),
        (&["map", "tests", "--json", "--max-bytes", "512"], ""),
        (&["read", "lib.py:1-2"], ""),
        (&["read", "lib.py:9"], ""),
        (&["changes"], ""),
        (&["impact-changes", "--stdin"], "lib.py\n"),
        (&["export"], ""),
        (&["query", "--request-file", "-"], request),
        (&["query", "--request-file", &file], ""),
        (&["query", "--request-file", "-"], "{}"),
        (&["query", "--request-file", "-"], &" ".repeat(100_000)),
        (&["query", "--request-file", "-"], r#"{"operation":{"kind":"status"}}"#),
        (&["query", "--request-file", "nosuch.json"], ""),
        (&["symbols", "f", "--scope", "demo", "--config", &config], ""),
        (&["symbols", "f", "--scope", "nosuch", "--config", &config], ""),
        (&["status", "--scope", "other", "--config", &config], ""),
        (&["status", "--root", "nosuch"], ""),
        (&["hook", "git"], ""),
        (&["hook", "claude"], r#"{"tool_input":{"file_path":"lib.py"}}"#),
        (&["hook", "nosuch"], ""),
    ];
    let exits: BTreeSet<i32> = table.iter().map(|(arguments, input)| check(arguments, input)).collect();
    assert_eq!(exits, BTreeSet::from([0, 1, 2, 4, 5]), "there are failures of all kinds");
    sandbox.write("lib.py", "def f(): return 2\n");
    assert_eq!(check(&["symbols", "f", "--on-stale", "refuse"], ""), 3);
    // What the daemon reads is let go by its own `clear`, and by nobody else's.
    assert_eq!(sandbox.sextant(&["clear", "--json"]).ended(0).json()["retained_reader_generations"], 0);
    check(&["clear", "--json"], "");
    check(&["symbols", "f"], "");
    check(&["callers", "lib.f", "--json"], "");
    // Its help, mistakes and what measures or follows are of the own process.
    let before = daemon.answered();
    sandbox.sextant(&["--help"]).ended(0);
    sandbox.sextant(&["symbols"]).ended(2);
    sandbox.sextant(&["symbols", "f", "--verbose"]).ended(4);
    sandbox.sextant(&["symbols", "f", "--config", "nosuch.toml"]).ended(2);
    assert_eq!(daemon.answered() - before, 0);
}

#[test]
fn edits_are_seen_by_a_warm_process() {
    let sandbox = indexed();
    let _daemon = Daemon::start(&sandbox);
    for round in 0..8 {
        sandbox.write(&format!("new/d{round}/x.py"), "from lib import f\nf()\n");
        let run = sandbox.sextant(&["callers", "lib.f", "--limit", "50"]).ended(0);
        assert!(run.out.contains(&format!("new/d{round}/x.py:2")), "{}", run.out);
        sandbox.sextant(&["symbols", "f", "--on-stale", "refuse"]).ended(0);
        sandbox.write(&format!("new/d{round}/x.py"), "def other(): pass\n");
        sandbox.sextant(&["symbols", "f", "--on-stale", "refuse"]).ended(3);
        assert!(!sandbox.sextant(&["callers", "lib.f"]).ended(0).out.contains("new/"));
    }
    // Another tree in the place of the first one.
    fs::rename(sandbox.tree(), sandbox.path().join("away")).expect("renamed");
    sandbox.write("lib.py", "def f(): pass\n");
    sandbox.write("last.py", "import lib\nlib.f()\n");
    let run = sandbox.sextant(&["callers", "lib.f", "--json"]).ended(0);
    assert!(run.out.contains("last.py") && !run.out.contains("use.py"), "{}", run.out);
    as_a_fresh_process(&sandbox, &[]);
}

#[test]
fn a_sync_that_nobody_waits_for() {
    let sandbox = indexed();
    let refused = |name: &str| sandbox.sextant(&["symbols", name, "--on-stale", "refuse"]).status;
    sandbox.write("lib.py", "def alone(): pass\n");
    // Without a daemon it is done by whoever asks for it.
    let run = sandbox.sextant(&["sync", "--no-wait", "--json"]).ended(0).json();
    assert_eq!((&run["status"], &run["published"]), (&json!("ready"), &json!(true)));
    assert_eq!(sandbox.sextant(&["sync", "--no-wait", "--verify"]).status, Some(2));

    let _daemon = Daemon::start(&sandbox);
    sandbox.write("lib.py", "def served(): pass\n");
    assert_eq!(sandbox.sextant(&["sync", "--no-wait", "--json"]).ended(0).out, "{\"status\":\"queued\"}\n");
    wait("it is published", || refused("served") == Some(0));
    assert_eq!(sandbox.sextant(&["sync", "--no-wait"]).ended(0).out, "a sync is queued\n");
    assert_eq!(sandbox.sextant(&["sync", "--no-wait", "--quiet"]).ended(0).out, "");
    as_a_fresh_process(&sandbox, &[]);
}

#[test]
fn it_starts_once_and_leaves_nothing() {
    let sandbox = indexed();
    assert_eq!(sandbox.sextant(&["daemon", "status"]).ended(1).out, "no daemon runs\n");
    sandbox.sextant(&["daemon", "stop"]).ended(0);
    let pids: BTreeSet<u64> = std::thread::scope(|scope| {
        let start = || sandbox.sextant(&["daemon", "start", "--json"]).ended(0).json()["pid"].as_u64().expect("it runs");
        let starts: Vec<_> = (0..20).map(|_| scope.spawn(start)).collect();
        starts.into_iter().map(|start| start.join().expect("it starts")).collect()
    });
    assert_eq!(pids.len(), 1);
    wait("the others have left", || processes(&sandbox).len() == 1);
    let pid = *pids.first().expect("one");
    assert_eq!(fs::read_to_string(format!("/proc/{pid}/comm")).expect("it runs"), "sextant\n");
    // A process of its own, with nothing of those that started it.
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("it runs");
    let session: u64 = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(3)?.parse().ok()).expect("a number");
    assert!(session != pid && session != u64::from(std::process::id()), "{stat}");
    assert_eq!(fs::read_link(format!("/proc/{pid}/cwd")).expect("it runs"), PathBuf::from("/"));
    for stream in 0..3 {
        assert_eq!(fs::read_link(format!("/proc/{pid}/fd/{stream}")).expect("it runs"), PathBuf::from("/dev/null"));
    }
    sandbox.sextant(&["sync"]).ended(0);
    sandbox.sextant(&["daemon", "stop"]).ended(0);
    assert_eq!(left(&sandbox), Vec::<String>::new());
    wait("no process is left", || processes(&sandbox).is_empty());
    let text = sandbox.sextant(&["daemon", "start"]).ended(0).out;
    assert!(text.starts_with("the daemon runs (process "), "{text}");
    assert!(sandbox.sextant(&["daemon", "start"]).ended(0).out.starts_with("the daemon runs already"));
    let status = sandbox.sextant(&["daemon", "status"]).ended(0).out;
    assert!(status.starts_with("running · process "), "{status}");
    sandbox.sextant(&["daemon", "run"]).ended(5);
    sandbox.sextant(&["daemon", "stop"]).ended(0);
    wait("no process is left", || processes(&sandbox).is_empty());
}

#[test]
fn it_leaves_when_it_is_not_needed() {
    let sandbox = indexed();
    let config = sandbox.path().join("idle.toml");
    fs::write(&config, "[daemon]\nidle_minutes = 0.02\n").expect("written");
    let config = config.to_string_lossy().into_owned();
    let daemon = Daemon::start_with(&sandbox, &[("SEXTANT_CONFIG", &config)]);
    // Who asks nothing keeps nobody awake, half closed or not.
    let (silent, half) = (UnixStream::connect(socket(&sandbox)), UnixStream::connect(socket(&sandbox)));
    half.as_ref().expect("it listens").shutdown(std::net::Shutdown::Write).expect("connected");
    assert_eq!(daemon.ended(), Some(0));
    assert_eq!(left(&sandbox), Vec::<String>::new());
    drop((silent, half));
    let daemon = Daemon::start(&sandbox);
    fs::remove_file(socket(&sandbox)).expect("removed");
    assert_eq!(daemon.ended(), Some(0));
    let daemon = Daemon::start(&sandbox);
    fs::remove_dir_all(sandbox.path().join("cache/sextant")).expect("removed");
    assert_eq!(daemon.ended(), Some(0));
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        let daemon = Daemon::start(&sandbox);
        daemon.signal(signal);
        assert_eq!(daemon.ended(), Some(0));
        assert_eq!(left(&sandbox), Vec::<String>::new());
    }
}

/// The build waits for a parser that hangs, in the daemon only.
fn stalled() -> (Sandbox, [(&'static str, &'static str); 1]) {
    let sandbox = indexed();
    sandbox.write("stalls.py", "# fault: stall\ndef late(): pass\n");
    (sandbox, [("SEXTANT_PARSER_FAULT", "file")])
}

#[test]
fn its_death_costs_no_answer() {
    let (sandbox, fault) = stalled();
    for signal in [Signal::KILL, Signal::TERM, Signal::INT] {
        let daemon = Daemon::start_with(&sandbox, &fault);
        let mut command = sandbox.program(&["symbols", "late", "--on-stale", "sync"]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().expect("the program starts");
        wait("it is asked", || daemon.status()["working"] == 1);
        wait("a parser works for it", || processes(&sandbox).len() < 3 && parsers(daemon.child.id()) > 0);
        let died = Instant::now();
        daemon.signal(signal);
        let run = Run::from(child.wait_with_output().expect("it ends")).ended(0);
        assert!(run.out.contains("stalls.py"), "{signal:?}: {run:?}");
        assert!(died.elapsed() < Duration::from_secs(20), "{signal:?}: {:?}", died.elapsed());
        let pid = daemon.child.id();
        daemon.ended();
        wait("no parser is left", || parsers(pid) == 0 && processes(&sandbox).is_empty());
        // Also with what a killed one left.
        sandbox.sextant(&["symbols", "late", "--on-stale", "refuse"]).ended(0);
        as_a_fresh_process(&sandbox, &[]);
        sandbox.write("stalls.py", format!("# fault: stall\ndef late(): pass\n# {signal:?}\n"));
    }
}

#[test]
fn whatever_listens_in_its_place() {
    let sandbox = indexed();
    let daemon = Daemon::start(&sandbox);
    let (path, build) = (socket(&sandbox), daemon.status()["build"].as_str().expect("it runs").to_owned());
    daemon.signal(Signal::KILL);
    daemon.ended();
    assert!(path.exists(), "it could not remove its socket");
    let right = sandbox.sextant(&["callers", "lib.f"]).ended(0);
    let greet = |protocol: u32, build: &str| {
        json!({"sextant": env!("CARGO_PKG_VERSION"), "protocol": protocol, "build": build, "pid": 1}).to_string() + "\n"
    };
    let out = "{\"out\":\"not the answer\"}\n";
    let fakes = [
        String::new(),
        "\n".to_owned(),
        "SSH-2.0-OpenSSH\n".to_owned(),
        greet(1, "0000000000000000"),
        greet(2, &build),
        greet(1, &build),
        greet(1, &build) + out,
        greet(1, &build) + out + "{\"exit\":{\"status\":0}",
        greet(1, &build) + out + "{\"exit\":{\"code\":0}}\n",
        greet(1, &build) + out + "{\"error\":{\"code\":\"invalid_code_request\"}}\n",
        greet(1, &build) + "{\"alive\":{}}\n\u{0}\n",
    ];
    for fake in fakes {
        fs::remove_file(&path).expect("removed");
        let listener = UnixListener::bind(&path).expect("the name is free");
        let said = fake.clone();
        let thread = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("somebody comes");
            stream.write_all(said.as_bytes()).expect("it is read");
            if said.starts_with('{') {
                let _ = BufReader::new(&stream).read_line(&mut String::new());
            }
        });
        let run = sandbox.sextant(&["callers", "lib.f"]).ended(0);
        assert_eq!(plain(&run), plain(&right), "{fake:?}");
        thread.join().expect("it was asked");
    }
    // One that takes no connections, and one that is silent for long.
    fs::remove_file(&path).expect("removed");
    let listener = UnixListener::bind(&path).expect("the name is free");
    let started = Instant::now();
    assert_eq!(plain(&sandbox.sextant(&["callers", "lib.f"]).ended(0)), plain(&right));
    assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
    drop(listener);
    // And the next one takes the place.
    let daemon = Daemon::start(&sandbox);
    let before = daemon.answered();
    sandbox.sextant(&["callers", "lib.f"]).ended(0);
    assert_eq!(daemon.answered() - before, 1);
}

#[test]
fn one_that_is_stopped_is_neither_waited_for_nor_left_alone() {
    let sandbox = indexed();
    let daemon = Daemon::start(&sandbox);
    let pid = daemon.child.id();
    daemon.signal(Signal::STOP);
    sandbox.write("lib.py", "def f():\n    return 2\n");
    let quickly = |arguments: &[&str], status: i32| {
        let started = Instant::now();
        let run = sandbox.sextant(arguments).ended(status);
        assert!(started.elapsed() < Duration::from_secs(10), "{arguments:?}: {:?}", started.elapsed());
        run
    };
    quickly(&["hook", "git"], 0);
    assert!(quickly(&["callers", "lib.f", "--on-stale", "refuse"], 0).out.contains("use.py:5"), "the hook synced");
    for arguments in [&["daemon", "start"], &["daemon", "status"]] {
        let said = quickly(arguments, 5).err;
        let socket = socket(&sandbox);
        for part in [&format!("process {pid}"), "`sextant daemon stop`", &*socket.to_string_lossy()] {
            assert!(said.contains(part), "{part} in {said}");
        }
    }
    assert_eq!(quickly(&["daemon", "stop"], 0).out, "the daemon is gone\n");
    assert_eq!(daemon.ended(), Some(0));
    assert_eq!(left(&sandbox), Vec::<String>::new());
    // Somebody else in its place is not ended.
    let daemon = Daemon::start(&sandbox);
    let path = socket(&sandbox);
    daemon.signal(Signal::KILL);
    daemon.ended();
    fs::remove_file(&path).expect("removed");
    let _listener = UnixListener::bind(&path).expect("the name is free");
    let run = quickly(&["daemon", "stop"], 5);
    assert!(run.err.contains("not known to be one") && run.err.contains(&*path.to_string_lossy()), "{run:?}");
}

#[test]
fn more_clients_than_it_has_connections() {
    const MOST: usize = 128;
    let sandbox = indexed();
    let daemon = Daemon::start(&sandbox);
    let path = socket(&sandbox);
    let taken: Vec<UnixStream> = (0..MOST).map(|_| UnixStream::connect(&path).expect("it listens")).collect();
    let turned_away = || {
        let mut said = String::new();
        let _ = UnixStream::connect(&path).expect("it listens").read_to_string(&mut said);
        said
    };
    // One that is over may be counted still.
    let mut said = turned_away();
    wait("all are taken", || {
        said = turned_away();
        said == "{\"error\":{\"code\":\"server_busy\"}}\n"
    });
    let run = sandbox.sextant(&["callers", "lib.f"]).ended(0);
    assert!(run.out.contains("use.py:5"), "{run:?}");
    let run = sandbox.sextant(&["daemon", "status", "--json"]).ended(5);
    assert!(run.err.contains("server busy") && run.err.contains(&format!("process {}", daemon.child.id())), "{run:?}");
    drop(taken);
    wait("it has time again", || sandbox.sextant(&["daemon", "status"]).status == Some(0));
}

#[test]
fn another_build_has_a_daemon_of_its_own() {
    let sandbox = indexed();
    let daemon = Daemon::start(&sandbox);
    let copy = sandbox.path().join("sextant-of-another-build");
    fs::copy(PROGRAM, &copy).expect("there is room");
    let other = |arguments: &[&str]| Run::of(sandbox.command(&copy).args(arguments).stdin(Stdio::null()));
    let before = daemon.answered();
    other(&["callers", "lib.f"]).ended(0);
    assert_eq!(daemon.answered() - before, 0);
    assert_eq!(other(&["daemon", "status"]).ended(1).out, "no daemon runs\n");
    let pid = other(&["daemon", "start", "--json"]).ended(0).json()["pid"].as_u64();
    assert!(pid.is_some() && pid != daemon.status()["pid"].as_u64());
    other(&["callers", "lib.f"]).ended(0);
    sandbox.sextant(&["callers", "lib.f"]).ended(0);
    // A program that is replaced takes its daemon along.
    fs::remove_file(&copy).expect("removed");
    wait("it has left", || left(&sandbox).len() == 2);
    assert_eq!(daemon.status()["working"], 0);
}

#[test]
fn where_the_answer_cannot_be_written() {
    let sandbox = indexed();
    let daemon = Daemon::start(&sandbox);
    let full = || Stdio::from(fs::File::options().write(true).open("/dev/full").expect("it is there"));
    let closed = || {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        Stdio::from(writer)
    };
    for (arguments, out) in [
        (&["export"][..], &full as &dyn Fn() -> Stdio),
        (&["export"], &closed),
        (&["callers", "lib.f", "--json"], &full),
        (&["callers", "lib.f", "--json"], &closed),
        (&["callers", "nosuch"], &full),
    ] {
        let run = |more: &[&str]| {
            let mut command = sandbox.program(&[arguments, more].concat());
            let child = command.stdout(out()).stderr(Stdio::piped()).spawn().expect("the program starts");
            Run::from(child.wait_with_output().expect("it ends"))
        };
        let before = daemon.answered();
        assert_eq!(plain(&run(&[])), plain(&run(&["--no-daemon"])), "{arguments:?}");
        assert_eq!(daemon.answered() - before, 1);
    }
}

#[test]
fn the_wire_contract_over_the_socket() {
    let sandbox = indexed();
    let config = sandbox.path().join("sextant.toml");
    fs::write(&config, format!("[scopes.demo]\nroot = {:?}\n", sandbox.tree())).expect("written");
    let config = config.to_string_lossy().into_owned();
    Run::of(sandbox.program(&["index", "--quiet"]).env("SEXTANT_CONFIG", &config)).ended(0);
    let _daemon = Daemon::start_with(&sandbox, &[("SEXTANT_CONFIG", &config)]);
    let query = |more: Value, request: Value| {
        let mut query = more;
        query["request"] = request;
        json!({ "query": query }).to_string()
    };
    let symbols = json!({"operation": {"kind": "symbols", "query": "f"}});
    let lines = [
        query(json!({"scope": "demo"}), json!({"operation": {"kind": "status"}})),
        query(json!({"scope": "demo"}), symbols.clone()),
        query(json!({"root": sandbox.tree()}), symbols.clone()),
        query(json!({"scope": "nosuch"}), symbols.clone()),
        query(json!({"scope": "demo"}), json!({"operation": {"kind": "symbols", "query": "f", "limit": "3"}})),
        query(json!({"scope": "demo"}), json!({"operation": {"kind": "symbols", "query": "f"}, "max_bytes": 512})),
        query(json!({"scope": "demo", "on_stale": "maybe"}), symbols.clone()),
        query(json!({"scope": "demo", "nosuch": 1}), symbols.clone()),
        "{".to_owned(),
        "null".to_owned(),
        query(json!({"scope": "demo"}), symbols.clone()),
    ];
    let said = converse(&sandbox, &lines);
    assert_eq!(said.len(), 1 + lines.len(), "{said:?}");
    assert_eq!((&said[0]["protocol"], &said[0]["sextant"]), (&json!(1), &json!(env!("CARGO_PKG_VERSION"))));
    assert_eq!((&said[1]["schema"], &said[1]["status"]), (&json!("powercontext.code-status.v1"), &json!("ready")), "{}", said[1]);
    for answer in [&said[2], &said[3], &said[11]] {
        assert_eq!((&answer["schema"], &answer["scope_id"]), (&json!("powercontext.code-query.v1"), &json!("demo")), "{answer}");
        assert_eq!(answer["items"][0]["name"], "f", "{answer}");
    }
    let codes: Vec<&str> = said[4..11].iter().map(|answer| answer["error"]["code"].as_str().expect("an error")).collect();
    let invalid = "invalid_code_request";
    assert_eq!(codes, ["code_repository_unconfigured", invalid, "budget_too_small", invalid, invalid, invalid, invalid]);
    // Refusal is the policy of configured scopes, unless the client says otherwise.
    sandbox.write("lib.py", "def f(): return 2\n");
    let lines = [
        query(json!({"scope": "demo"}), symbols.clone()),
        query(json!({"scope": "demo", "on_stale": "sync"}), symbols.clone()),
        query(json!({"scope": "demo"}), symbols),
    ];
    let said = converse(&sandbox, &lines);
    assert_eq!(said[1], json!({"error": {"code": "code_changed"}}));
    assert!(said[2]["schema"] == "powercontext.code-query.v1" && said[3]["schema"] == said[2]["schema"], "{said:?}");
}

#[test]
fn clients_that_misbehave_bother_nobody() {
    let sandbox = indexed();
    let body: String = (0..4000).map(|index| format!("def f{index}(): pass\n")).collect();
    sandbox.write("large.py", body);
    sandbox.sextant(&["sync", "--quiet"]).ended(0);
    let daemon = Daemon::start(&sandbox);
    let connect = || UnixStream::connect(socket(&sandbox)).expect("it listens");
    let export = json!({"run": {"line": ["sextant", "export"], "current_dir": sandbox.tree(), "home": null,
        "xdg_cache_home": sandbox.path().join("cache"), "config": null, "color": false}});
    // One that does not read, one whose request has no end, one that is gone, ones that say nothing.
    let mut slow = connect();
    writeln!(slow, "{export}").expect("it reads");
    let mut endless = connect();
    let mut gone = connect();
    writeln!(gone, "{export}").expect("it reads");
    drop(gone);
    let silent: Vec<UnixStream> = (0..8).map(|_| connect()).collect();
    silent[0].shutdown(std::net::Shutdown::Write).expect("connected");
    let endless = std::thread::spawn(move || {
        let line = [b'['; 64 << 10];
        let mut sent = 0;
        while endless.write_all(&line).is_ok() {
            sent += line.len();
            assert!(sent < 64 << 20, "it is cut off");
        }
    });
    for _ in 0..3 {
        sandbox.sextant(&["callers", "lib.f"]).ended(0);
    }
    endless.join().expect("it was cut off");
    let refused = converse(
        &sandbox,
        &[json!({"run": {"line": ["sextant", "watch"], "current_dir": "/", "home": null, "xdg_cache_home": null,
            "config": null, "color": false}})
        .to_string()],
    );
    assert_eq!(refused.last(), Some(&json!({"exit": {"status": 2}})), "{refused:?}");
    // Nothing turns while they are silent.
    wait("requests are answered", || daemon.status()["working"] == 1);
    // But for what is made ready once, after the first question.
    wait("a second passes in which it is idle", || {
        let cpu = cpu_of(daemon.child.id());
        std::thread::sleep(Duration::from_secs(1));
        cpu_of(daemon.child.id()) - cpu < Duration::from_millis(100)
    });
    daemon.signal(Signal::TERM);
    let started = Instant::now();
    assert_eq!(daemon.ended(), Some(0));
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
    let mut rest = Vec::new();
    let _ = slow.read_to_end(&mut rest);
}

#[test]
fn it_is_started_where_that_is_wanted() {
    let sandbox = indexed();
    let config = sandbox.path().join("auto.toml");
    fs::write(&config, "[daemon]\nautostart = true\n").expect("written");
    let config = config.to_string_lossy().into_owned();
    sandbox.sextant(&["callers", "lib.f"]).ended(0);
    sandbox.sextant(&["callers", "lib.f", "--config", &config, "--no-daemon"]).ended(0);
    Run::of(sandbox.program(&["callers", "lib.f", "--config", &config]).env("SEXTANT_NO_DAEMON", "1")).ended(0);
    assert_eq!(processes(&sandbox), BTreeSet::new());
    sandbox.sextant(&["callers", "lib.f", "--config", &config]).ended(0);
    wait("it answers", || status(&sandbox)["working"] == 0);
    sandbox.sextant(&["callers", "lib.f"]).ended(0);
    sandbox.sextant(&["daemon", "stop"]).ended(0);
    wait("no process is left", || processes(&sandbox).is_empty());
}
