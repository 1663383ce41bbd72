//! `sextant mcp`: raw messages over the standard streams of the built program.

use std::fs;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::mpsc;

use rustix::fs::{FlockOperation, flock};
use serde_json::{Value, json};

use crate::agent::{CURRENT, Called, Client, OLDER, OLDEST, initialize};
use crate::background::{CAP, Daemon};
use crate::program::{PROGRAM, indexed};
use crate::sandbox::Sandbox;

/// Takes away what differs from run to run.
fn plain(text: &str) -> String {
    // A server watches the tree; a command does not live long enough.
    let mut text = text.replace("\"watch\":\"ok\"", "\"watch\":\"none\"").replace("watcher: ok", "watcher: none");
    for (start, end) in [("\"checked_at\":\"", '"'), ("checked in ", '\u{b7}')] {
        let Some(from) = text.find(start).map(|at| at + start.len()) else { continue };
        let to = text[from..].find(end).map_or(text.len(), |at| from + at);
        text.replace_range(from..to, "");
    }
    text
}

#[test]
fn each_revision_is_spoken() {
    let sandbox = indexed();
    for revision in [CURRENT, OLDER, OLDEST] {
        let mut client = Client::in_sandbox(&sandbox, revision);
        let listed = client.ask("tools/list", json!({}));
        let names: Vec<&str> =
            listed["result"]["tools"].as_array().expect("tools").iter().filter_map(|tool| tool["name"].as_str()).collect();
        assert_eq!(names, ["explore", "symbols", "relations", "tests", "read", "changes", "status", "sync"], "{revision}");
        let is_current = revision == CURRENT;
        assert_eq!(listed["result"]["resultType"] == "complete", is_current, "{listed}");
        assert_eq!(listed["result"]["ttlMs"].is_u64(), is_current, "{listed}");
        assert_eq!(listed["result"]["cacheScope"] == "public", is_current, "{listed}");
        assert_eq!(client.call("symbols", json!({"query": "g"})).names(), "g", "{revision}");
        let ping = client.ask("ping", json!({}));
        if is_current {
            assert_eq!(ping["error"]["code"], -32601);
        } else {
            assert_eq!(ping["result"], json!({}));
        }
        for method in ["prompts/list", "resources/list", "logging/setLevel", "no/such"] {
            let answer = client.ask(method, if method == "logging/setLevel" { json!({"level": "info"}) } else { json!({}) });
            let code = &answer["error"]["code"];
            assert!(*code == -32601 || answer["result"].is_object(), "{method}: {answer}");
        }
        let (status, rest) = client.end();
        assert_eq!((status, rest.len()), (Some(0), 0), "{revision}");
    }
}

#[test]
fn a_server_is_discovered_or_initialized() {
    let sandbox = indexed();
    // A look, then either way to go on.
    for revision in [CURRENT, OLDER] {
        let mut client = Client::start(sandbox.program(&["mcp", "--no-daemon"]), CURRENT);
        let found = client.ask("server/discover", json!({}));
        assert_eq!(found["result"]["supportedVersions"], json!([CURRENT, OLDER, OLDEST]), "{found}");
        assert_eq!(found["result"]["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "sextant", "{found}");
        assert!(found["result"]["capabilities"]["tools"].is_object(), "{found}");
        assert!(found["result"]["instructions"].as_str().is_some_and(|text| text.len() < 2048), "{found}");
        client.revision = revision;
        client.greet();
        assert_eq!(client.call("symbols", json!({"query": "g"})).names(), "g");
        assert_eq!(client.end().0, Some(0));
    }
    // One that wants another revision is told which there are, and may go on with one of them.
    let mut client = Client::start(sandbox.program(&["mcp", "--no-daemon"]), OLDER);
    let meta = json!({"_meta": {
        "io.modelcontextprotocol/protocolVersion": "1900-01-01",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "0"},
    }});
    let refused = client.ask("tools/list", meta);
    assert_eq!((&refused["error"]["code"], &refused["error"]["data"]["supported"][0]), (&json!(-32022), &json!(CURRENT)));
    let answer = client.ask("initialize", initialize("2024-11-05", &json!({})));
    assert_eq!(answer["result"]["protocolVersion"], OLDER, "{answer}");
    assert_eq!(answer["result"]["serverInfo"]["name"], "sextant");
    assert_eq!(client.end().0, Some(0));
}

#[test]
fn nothing_is_read_before_a_call() {
    let sandbox = Sandbox::new();
    let mut command = sandbox.program(&["mcp"]);
    // Neither of the two could be read.
    command.env("SEXTANT_CONFIG", "/nonexistent/sextant.toml").current_dir("/");
    let mut client = Client::start(command, OLDER);
    client.greet();
    assert_eq!(client.ask("tools/list", json!({}))["result"]["tools"].as_array().map(Vec::len), Some(8));
    assert_eq!(fs::read_dir(sandbox.path().join("cache")).expect("a folder").count(), 0);
    let called = client.call("status", json!({}));
    assert!(called.failed && called.code() == "invalid_code_request" && called.text.contains("sextant.toml"), "{called:?}");
    assert_eq!(client.end().0, Some(0));
}

/// Questions as agents ask them and as they are typed.
fn questions() -> Vec<(&'static str, Value, Vec<&'static str>)> {
    vec![
        ("explore", json!({"query": "g"}), vec!["explore", "g"]),
        (
            "explore",
            json!({"query": "which function returns one", "limit": 3}),
            vec!["explore", "--limit=3", "which function returns one"],
        ),
        (
            "explore",
            json!({"query": "g", "source": true, "max_bytes": 3000}),
            vec!["explore", "--source", "--max-bytes=3000", "g"],
        ),
        ("symbols", json!({"query": "f"}), vec!["symbols", "f"]),
        ("symbols", json!({"query": "f", "path": "lib.py"}), vec!["symbols", "--path=lib.py", "f"]),
        ("symbols", json!({"query": "nothing_like_it"}), vec!["symbols", "nothing_like_it"]),
        ("relations", json!({"symbol": "lib.f", "relation": "callers"}), vec!["callers", "lib.f"]),
        (
            "relations",
            json!({"symbol": "use.py::g", "relation": "callees", "source": true}),
            vec!["callees", "use.py::g", "--source"],
        ),
        ("relations", json!({"symbol": "lib.py:1", "relation": "impact", "depth": 1}), vec!["impact", "lib.py:1", "--depth=1"]),
        ("relations", json!({"symbol": "twice", "relation": "callers"}), vec!["callers", "twice"]),
        ("read", json!({"path": "lib.py"}), vec!["read", "lib.py"]),
        ("read", json!({"path": "lib.py", "start_line": 2, "end_line": 2}), vec!["read", "lib.py:2-2"]),
        ("tests", json!({"paths": ["lib.py"]}), vec!["tests", "lib.py", "--limit=20"]),
        ("tests", json!({"paths": ["lib.py", "no.py"]}), vec!["tests", "lib.py", "no.py", "--limit=20"]),
        ("changes", json!({}), vec!["changes"]),
        ("changes", json!({"impact": true}), vec!["impact-changes"]),
        (
            "changes",
            json!({"impact": true, "paths": ["use.py"], "before": "first"}),
            vec!["impact-changes", "use.py", "--before=first"],
        ),
        ("status", json!({}), vec!["status"]),
    ]
}

fn several() -> Sandbox {
    let sandbox = indexed();
    sandbox.write("tests/test_lib.py", "from lib import f\n\n\ndef test_f():\n    assert f() == 1\n");
    sandbox.write("one.py", "def twice(): pass\n");
    sandbox.write("two.py", "def twice(): pass\n");
    sandbox.write("use.py", "from lib import f\n\n\ndef g():\n    return f() + 1\n");
    sandbox.sextant(&["sync", "--quiet"]).ended(0);
    sandbox
}

#[test]
fn the_same_answers_as_the_commands_give() {
    let sandbox = several();
    let check = |client: &mut Client| {
        for (tool, arguments, typed) in questions() {
            let called = client.call(tool, arguments.clone());
            assert!(!called.failed, "{tool} {arguments}: {called:?}");
            let json = sandbox.sextant(&[typed.as_slice(), &["--json"]].concat());
            assert_eq!(plain(&called.structured), plain(json.out.trim_end()), "{tool} {arguments}");
            let has_budget = !matches!(typed[0], "status") && !typed.iter().any(|word| word.starts_with("--max-bytes"));
            let budget: &[&str] = if has_budget { &["--max-bytes=16000"] } else { &[] };
            let text = sandbox.sextant(&[typed.as_slice(), budget].concat());
            // Beside the paths, `tests` speaks on standard error.
            let said = if tool == "tests" { vec![text.out, text.err] } else { vec![text.out] };
            let mut lines: Vec<String> = plain(&said.concat()).lines().map(str::to_owned).collect();
            let mut found: Vec<String> = plain(&called.text).replace("`path`", "--path").lines().map(str::to_owned).collect();
            if tool == "tests" {
                lines.sort();
                found.sort();
            }
            assert_eq!(found, lines, "{tool} {arguments}");
        }
    };
    let mut alone = Client::in_sandbox(&sandbox, CURRENT);
    check(&mut alone);
    assert_eq!(alone.end().0, Some(0));
    let daemon = Daemon::start(&sandbox);
    let mut served = Client::start(sandbox.program(&["mcp"]), OLDER);
    served.greet();
    let before = daemon.answered();
    served.call("explore", json!({"query": "g"}));
    assert_eq!(daemon.answered() - before, 1, "it is the daemon that answers");
    for (tool, arguments, _) in questions() {
        let mut alone = Client::in_sandbox(&sandbox, OLDEST);
        let (one, other) = (alone.call(tool, arguments.clone()), served.call(tool, arguments.clone()));
        if tool != "status" {
            assert_eq!(plain(&one.structured), plain(&other.structured), "{tool} {arguments}");
            assert_eq!(plain(&one.text), plain(&other.text), "{tool} {arguments}");
        }
    }
    assert_eq!(served.end().0, Some(0));
}

#[test]
fn what_is_to_be_expected_is_no_failure_and_says_what_next() {
    let sandbox = Sandbox::new();
    sandbox.write("lib.py", "def f(): pass\n");
    sandbox.commit_all();
    let mut client = Client::in_sandbox(&sandbox, OLDER);
    let check = |client: &mut Client, tool: &str, arguments: Value, failed: bool, code: &str, words: &[&str]| {
        let called = client.call(tool, arguments.clone());
        assert_eq!((called.failed, called.code().as_str()), (failed, code), "{tool} {arguments}: {called:?}");
        for word in words {
            assert!(called.text.contains(word), "{tool} {arguments}: {word} in {}", called.text);
        }
        let tree = sandbox.path().to_string_lossy().into_owned();
        assert!(!called.text.contains(&tree) && !called.structured.contains(&tree), "no absolute path: {called:?}");
    };
    check(&mut client, "explore", json!({"query": "f"}), false, "code_index_missing", &["next: call `sync`"]);
    check(&mut client, "status", json!({}), false, "", &["missing", "next: call `sync`"]);
    // Nothing was built unasked.
    check(&mut client, "explore", json!({"query": "f"}), false, "code_index_missing", &[]);
    check(&mut client, "sync", json!({}), false, "", &["1 file", "ready"]);
    check(&mut client, "explore", json!({"query": "f"}), false, "", &["lib.py:1", "fresh"]);
    check(&mut client, "explore", json!({"query": "zebra"}), false, "", &["nothing found"]);
    check(
        &mut client,
        "relations",
        json!({"symbol": "ff", "relation": "callers"}),
        false,
        "code_target_missing",
        &["`ff`", "lib.f", "next:"],
    );
    check(&mut client, "read", json!({"path": "no.py"}), false, "code_target_missing", &["no.py", "next:"]);
    check(&mut client, "read", json!({"path": "lib.py", "start_line": 9}), false, "code_range_missing", &["next:"]);
    check(&mut client, "read", json!({"path": "../x"}), true, "invalid_code_request", &["next:"]);
    check(&mut client, "tests", json!({"paths": ["no.py"]}), false, "code_target_missing", &["not followed: no.py"]);
    check(&mut client, "changes", json!({}), false, "baseline_unavailable", &["next:"]);
    check(&mut client, "changes", json!({"before": "first"}), true, "invalid_code_request", &["`impact`"]);
    check(&mut client, "explore", json!({"query": "f", "max_bytes": 512}), true, "budget_too_small", &["`max_bytes`"]);
    sandbox.write("lib.py", "def f(): pass\n\n\ndef h(): f()\n");
    sandbox.write("other.py", "from lib import f\n");
    check(&mut client, "symbols", json!({"query": "h", "on_stale": "refuse"}), false, "code_changed", &["`on_stale`"]);
    check(&mut client, "symbols", json!({"query": "h"}), false, "", &["synced first", "lib.py:4"]);
    check(&mut client, "changes", json!({}), false, "", &["other.py"]);
    // Arguments that do not fit are told to the one who wrote them.
    check(&mut client, "explore", json!({"question": "f"}), true, "invalid_code_request", &["`question`", "`query`"]);
    check(&mut client, "explore", json!({"query": 7}), true, "invalid_code_request", &["`query` takes a text"]);
    check(&mut client, "status", json!({"scope": "no"}), false, "code_repository_unconfigured", &["`no`", "next:"]);
    check(&mut client, "status", json!({"root": "/nonexistent"}), true, "repository_unavailable", &["next:"]);
    let unknown = client.ask("tools/call", json!({"name": "grep", "arguments": {}}));
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    assert!(unknown["error"]["message"].as_str().is_some_and(|text| text.contains("explore, symbols")), "{unknown}");
    assert_eq!(client.end().0, Some(0));
}

#[test]
fn roots_are_named_and_never_too_broad() {
    let sandbox = several();
    let home = sandbox.path().join("home");
    let mut command = sandbox.program(&["mcp", "--no-daemon"]);
    command.current_dir(&home);
    let mut client = Client::start(command, OLDER);
    let offered = initialize(OLDER, &json!({"roots": {}}));
    client.ask("initialize", offered);
    let text = |path: &Path| path.to_string_lossy().into_owned();
    for root in [text(&home), "/".to_owned(), text(&home.join("../home"))] {
        let called = client.call("symbols", json!({"query": "f", "root": root}));
        assert_eq!((called.failed, called.code().as_str()), (false, "repository_root_required"), "{root}");
        assert!(called.text.contains("next: pass `root`"), "{called:?}");
    }
    // A directory of the worktree is enough.
    let called =
        client.call("relations", json!({"symbol": "f", "relation": "callers", "root": text(&sandbox.tree().join("tests"))}));
    assert_eq!(called.names(), "test_f g");
    // Where nothing names one, the client is asked.
    let id = client.request("tools/call", json!({"name": "symbols", "arguments": {"query": "f"}}));
    let asked = client.next();
    assert_eq!(asked["method"], "roots/list", "{asked}");
    let uri = format!("file://{}", text(&sandbox.tree()));
    client.say(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"roots": [{"uri": uri}]}}));
    assert_eq!(Called::of(&client.line_of(id)).names().split(' ').next(), Some("f"));
    // Several are none.
    let id = client.request("tools/call", json!({"name": "symbols", "arguments": {"query": "f"}}));
    let asked = client.next();
    client.say(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"roots": [{"uri": uri}, {"uri": "file:///tmp"}]}}));
    assert_eq!(Called::of(&client.line_of(id)).code(), "repository_root_required");
    assert_eq!(client.end().0, Some(0));
    // Nor is it, where its host says by another way where it works.
    let mut command = sandbox.program(&["mcp", "--no-daemon"]);
    command.current_dir(&home).env("CLAUDE_PROJECT_DIR", sandbox.tree());
    let mut client = Client::start(command, CURRENT);
    assert_eq!(client.call("symbols", json!({"query": "g"})).names(), "g");
    assert_eq!(client.end().0, Some(0));
}

#[test]
fn an_index_is_built_unasked_only_where_the_configuration_says_so() {
    let sandbox = Sandbox::new();
    sandbox.write("lib.py", "def f(): pass\n");
    sandbox.commit_all();
    let config = sandbox.path().join("sextant.toml");
    fs::write(&config, "[mcp]\nauto_index = true\n").expect("written");
    let mut command = sandbox.program(&["mcp", "--no-daemon", "--config"]);
    command.arg(&config);
    let mut client = Client::start(command, CURRENT);
    assert!(client.call("status", json!({})).text.contains("missing"), "a status builds nothing");
    let called = client.call("symbols", json!({"query": "f"}));
    assert!(called.text.starts_with("there was no index; it was built") && called.names() == "f", "{called:?}");
    assert_eq!(client.end().0, Some(0));
}

/// Returns the lock that a build takes.
fn build_lock(sandbox: &Sandbox) -> PathBuf {
    let mut open = vec![sandbox.path().join("cache")];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(directory).expect("a folder").flatten() {
            if entry.file_name() == "build.lock" {
                return entry.path();
            }
            if entry.path().is_dir() {
                open.push(entry.path());
            }
        }
    }
    panic!("an index has one");
}

#[test]
fn calls_tell_their_progress_run_side_by_side_and_can_be_given_up() {
    let sandbox = indexed();
    for daemon in [None, Some(Daemon::start(&sandbox))] {
        sandbox.sextant(&["sync", "--quiet", "--no-daemon"]).ended(0);
        let lock = fs::File::open(build_lock(&sandbox)).expect("it is ours");
        flock(lock.as_fd(), FlockOperation::LockExclusive).expect("nobody builds");
        let mut client = Client::start(sandbox.program(if daemon.is_some() { &["mcp"] } else { &["mcp", "--no-daemon"] }), OLDER);
        client.greet();
        sandbox.write("use.py", "def g(): pass\n");
        let sync = client.request("tools/call", json!({"name": "sync", "arguments": {}, "_meta": {"progressToken": "p"}}));
        let mut passed = -1.0;
        for _ in 0..3 {
            let told = client.next();
            assert_eq!(
                (&told["method"], &told["params"]["progressToken"]),
                (&json!("notifications/progress"), &json!("p")),
                "{told}"
            );
            let progress = told["params"]["progress"].as_f64().expect("a number");
            assert!(progress > passed, "{told}");
            passed = progress;
        }
        // Another question is answered meanwhile.
        let called = client.call("symbols", json!({"query": "g", "on_stale": "refuse"}));
        assert_eq!(called.code(), "code_changed");
        client.say(
            &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": sync, "reason": "enough"}}),
        );
        let ping = client.request("ping", json!({}));
        client.answer_of(ping);
        client.told.clear();
        drop(lock);
        let called = client.call("symbols", json!({"query": "g"}));
        assert_eq!(called.names(), "g", "{called:?}");
        assert_eq!(client.told, Vec::<Value>::new(), "nothing is told of what was given up");
        let (status, rest) = client.end();
        assert_eq!((status, rest.len()), (Some(0), 0));
        sandbox.write("use.py", "from lib import f\n\n\ndef g():\n    return f()\n");
    }
}

#[test]
fn progress_says_how_much_is_done_of_how_much() {
    let sandbox = indexed();
    let config = sandbox.path().join("sextant.toml");
    fs::write(&config, "[limits]\nparse_seconds = 1\n").expect("written");
    sandbox.write("slow.py", "# fault: stall\n");
    sandbox.git(&["add", "--all"]);
    let stalls = [("SEXTANT_PARSER_FAULT", "file")];
    for daemon in [None, Some(Daemon::start_with(&sandbox, &stalls))] {
        let mut command = sandbox.program(if daemon.is_some() { &["mcp"] } else { &["mcp", "--no-daemon"] });
        command.arg("--config").arg(&config).envs(stalls);
        let mut client = Client::start(command, CURRENT);
        let rebuild = json!({"name": "sync", "arguments": {"rebuild": true}, "_meta": {"progressToken": "p"}});
        let sync = client.request("tools/call", rebuild);
        let answer = client.answer_of(sync);
        assert_eq!(answer["result"]["structuredContent"]["failed_files"], 1, "{answer}");
        let told: Vec<(f64, f64, &str)> = client
            .told
            .iter()
            .map(|told| {
                let params = &told["params"];
                let total = params["total"].as_f64().unwrap_or(f64::INFINITY);
                (params["progress"].as_f64().expect("a number"), total, params["message"].as_str().expect("text"))
            })
            .collect();
        assert!(told.windows(2).all(|pair| pair[0].0 < pair[1].0), "it grows: {told:?}");
        assert!(told.iter().all(|(done, total, _)| done <= total), "{told:?}");
        assert!(told.iter().any(|(_, total, message)| *total >= 3.0 && message.starts_with("parsed 0 of 3 files")), "{told:?}");
        // At most two a second, of some seconds.
        assert!((3..40).contains(&told.len()), "{told:?}");
        assert_eq!(client.end().0, Some(0));
    }
}

#[test]
fn messages_that_make_no_sense_are_refused_and_the_next_is_answered() {
    let sandbox = indexed();
    let mut client = Client::in_sandbox(&sandbox, OLDER);
    let long = format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":{{\"x\":\"{}\"}}}}", "y".repeat(2 << 20));
    for (line, code) in
        [("{", -32700), ("[]", -32600), (long.as_str(), -32600), (r#"{"jsonrpc":"2.0","id":77,"method":"tools/call"}"#, -32602)]
    {
        writeln!(client.input.as_mut().expect("open"), "{line}").expect("it reads");
        let refused = client.next();
        assert_eq!(refused["error"]["code"], code, "{refused}");
    }
    assert_eq!(client.call("symbols", json!({"query": "g"})).names(), "g");
    assert_eq!(client.end().0, Some(0));
}

#[test]
fn a_client_may_ask_and_close_at_once() {
    let sandbox = indexed();
    let mut client = Client::in_sandbox(&sandbox, OLDER);
    let id = client.request("tools/call", json!({"name": "symbols", "arguments": {"query": "g"}}));
    let (status, rest) = client.end();
    assert_eq!((status, rest.len(), &rest[0]["id"]), (Some(0), 1, &json!(id)), "what was asked is answered");
}

#[test]
fn it_ends_with_the_process_that_started_it() {
    let sandbox = indexed();
    let mut command = sandbox.command("sh");
    // The server is not the child that is killed, and its input stays open.
    command.args(["-c", "\"$0\" mcp --no-daemon <&0 & echo; wait", PROGRAM]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut shell = command.spawn().expect("a shell");
    let input = shell.stdin.take();
    let mut output = shell.stdout.take().expect("it is piped");
    let mut begun = [0];
    output.read_exact(&mut begun).expect("it begins");
    shell.kill().expect("it is ours");
    shell.wait().expect("it is ours");
    let (done, ended) = mpsc::channel();
    std::thread::spawn(move || done.send(output.read_to_end(&mut Vec::new()).is_ok()));
    assert_eq!(ended.recv_timeout(CAP), Ok(true), "its end of the output is closed");
    drop(input);
}

#[test]
fn it_starts_a_daemon_unless_it_is_told_not_to() {
    let sandbox = indexed();
    let runs = || crate::background::status(&sandbox)["pid"].is_u64();
    let mut client = Client::start(sandbox.program(&["mcp"]), CURRENT);
    client.ask("tools/list", json!({}));
    assert!(!runs(), "not before there is a call");
    assert_eq!(client.call("symbols", json!({"query": "g"})).names(), "g");
    assert!(runs());
    sandbox.sextant(&["daemon", "stop"]).ended(0);
    let config = sandbox.path().join("sextant.toml");
    fs::write(&config, "[daemon]\nautostart = false\n").expect("written");
    let mut command = sandbox.program(&["mcp", "--config"]);
    command.arg(&config);
    let mut other = Client::start(command, CURRENT);
    assert_eq!(other.call("symbols", json!({"query": "g"})).names(), "g");
    assert!(!runs());
    assert_eq!((client.end().0, other.end().0), (Some(0), Some(0)));
}
