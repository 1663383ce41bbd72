//! Clients that go away: what is done for them alone ends soon after, in a daemon, a service and the server of an agent, and changes nothing.
//!
//! Invariant: what others wait for goes on.

use std::fs;
use std::io::Write;
use std::process::Stdio;

use serde_json::json;

use crate::agent::{CURRENT, Client, OLDER};
use crate::background::{Daemon, wait};
use crate::program::{Run, indexed};
use crate::progress::hold_builds;
use crate::sandbox::Sandbox;
use crate::service::{Serving, tokens};
use crate::surface_suite::Suite;

/// Makes the index stale.
fn edit(sandbox: &Sandbox) {
    sandbox.write("use.py", "from lib import f\n\n\ndef g():\n    return f() + 1\n");
}

#[track_caller]
fn is_as_it_was(sandbox: &Sandbox, arguments: &[&str]) {
    let status = sandbox.sextant(&[&["status", "--json", "--no-daemon"], arguments].concat()).json();
    assert_eq!((&status["status"], &status["last_build"]["status"]), (&json!("stale"), &json!("ready")), "{status}");
}

#[test]
fn a_command_that_is_ended_leaves_no_work_to_the_daemon() {
    let sandbox = indexed();
    let daemon = Daemon::start(&sandbox);
    let works = |count: u64| wait("so many work", || daemon.status()["working"] == count);
    edit(&sandbox);
    for command in [&["sync"][..], &["index"], &["sync", "--verify"], &["callers", "lib.f"]] {
        let lock = hold_builds(&sandbox);
        let start = || sandbox.program(command).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it starts");
        let mut gone = start();
        works(1);
        gone.kill().expect("it is ours");
        gone.wait().expect("it is ours");
        // While the build could not go on.
        works(0);
        drop(lock);
        is_as_it_was(&sandbox, &[]);
    }
    // One of two who wait for the same.
    let lock = hold_builds(&sandbox);
    let start = || sandbox.program(&["sync"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
    let (mut gone, mut stays) = (start(), start());
    works(2);
    gone.kill().expect("it is ours");
    gone.wait().expect("it is ours");
    works(1);
    drop(lock);
    assert_eq!(stays.wait().expect("it is ours").code(), Some(0));
    assert_eq!(sandbox.sextant(&["status", "--json"]).json()["status"], "ready");
    // Who asked for it to be done without waiting is not waited for.
    edit(&sandbox);
    sandbox.write("lib.py", "def f():\n    return 2\n");
    sandbox.sextant(&["sync", "--no-wait"]).ended(0);
    wait("it is synced", || sandbox.sextant(&["status", "--json"]).json()["status"] == "ready");
    // Nor is a hook, whose host may end it when it likes.
    sandbox.write("lib.py", "def f():\n    return 3\n");
    let lock = hold_builds(&sandbox);
    let mut hook = sandbox.program(&["hook", "git"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
    works(1);
    hook.kill().expect("it is ours");
    hook.wait().expect("it is ours");
    drop(lock);
    wait("it is synced", || sandbox.sextant(&["status", "--json"]).json()["status"] == "ready");
}

#[test]
fn a_build_ends_in_the_middle_when_its_client_has_gone() {
    let sandbox = indexed();
    let config = sandbox.path().join("sextant.toml");
    fs::write(&config, "[limits]\nparse_seconds = 2\n").expect("written");
    let config = config.to_string_lossy().into_owned();
    sandbox.sextant(&["index", "--quiet", "--config", &config]).ended(0);
    let daemon = Daemon::start_with(&sandbox, &[("SEXTANT_PARSER_FAULT", "file")]);
    sandbox.write("slow.py", "# fault: stall\n");
    sandbox.git(&["add", "--all"]);
    let mut command = sandbox.program(&["index", "--config", &config]);
    let mut gone = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
    wait("it parses", || {
        let status = sandbox.sextant(&["status", "--json", "--no-daemon", "--config", &config]).json();
        assert_eq!(status["last_build"]["status"], "ready", "{status}");
        daemon.status()["working"] == 1 && crate::background::parsers(daemon.child.id()) > 0
    });
    gone.kill().expect("it is ours");
    gone.wait().expect("it is ours");
    wait("nobody works", || daemon.status()["working"] == 0);
    is_as_it_was(&sandbox, &["--config", &config]);
}

#[test]
fn an_agent_that_gives_up_a_call_or_goes_away_leaves_no_work_to_the_daemon() {
    let sandbox = indexed();
    let daemon = Daemon::start(&sandbox);
    let works = |count: u64| wait("so many work", || daemon.status()["working"] == count);
    edit(&sandbox);
    let lock = hold_builds(&sandbox);
    let mut client = Client::start(sandbox.program(&["mcp"]), OLDER);
    client.greet();
    let mut call = || client.request("tools/call", json!({"name": "sync", "arguments": {}}));
    let sync = call();
    works(1);
    client.say(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": sync}}));
    works(0);
    client.request("tools/call", json!({"name": "symbols", "arguments": {"query": "g"}}));
    works(1);
    drop(client);
    works(0);
    drop(lock);
    is_as_it_was(&sandbox, &[]);
}

#[test]
fn a_server_ends_when_nobody_can_read_what_it_says() {
    let sandbox = indexed();
    edit(&sandbox);
    let lock = hold_builds(&sandbox);
    let mut command = sandbox.program(&["mcp", "--no-daemon"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
    let mut input = child.stdin.take().expect("it is piped");
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": CURRENT,
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "0"},
    });
    let params = json!({"name": "sync", "arguments": {}, "_meta": meta});
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    writeln!(input, "{call}").expect("it reads");
    drop(child.stdout.take());
    let mut ended = None;
    wait("it ends", || {
        ended = child.try_wait().expect("it is ours");
        ended.is_some()
    });
    assert_eq!(ended.and_then(|status| status.code()), Some(0));
    drop((lock, input));
    is_as_it_was(&sandbox, &[]);
}

#[test]
fn who_says_no_more_is_answered_and_the_server_ends() {
    let sandbox = indexed();
    for line in [&["mcp", "--no-daemon"][..], &["mcp"]] {
        let daemon = (!line.contains(&"--no-daemon")).then(|| Daemon::start(&sandbox));
        sandbox.write("use.py", format!("def g(): return {}\n", line.len()));
        let lock = hold_builds(&sandbox);
        let mut client = Client::start(sandbox.program(line), OLDER);
        client.greet();
        let token = json!({"name": "sync", "arguments": {}, "_meta": {"progressToken": 7}});
        let sync = client.request("tools/call", token);
        // It has begun.
        client.next();
        drop(client.input.take());
        // Progress is told still.
        client.next();
        drop(lock);
        let synced = client.answer_of(sync);
        assert_eq!(synced["result"]["structuredContent"]["published"], true, "{synced}");
        let (status, rest) = client.end();
        assert_eq!((status, rest), (Some(0), Vec::new()));
        drop(daemon);
    }
}

#[test]
fn a_connection_that_is_closed_leaves_no_work_to_the_service() {
    let suite = Suite::with(&format!("[http]\npatience_seconds = 1\n{}", tokens()));
    let serving = Serving::start(&suite);
    let work = || {
        let text = serving.get("/metrics", "owner").body;
        text.lines().find_map(|line| line.strip_prefix("sextant_http_work ")?.parse::<u64>().ok()).expect("a figure")
    };
    suite.sandbox.write("app/lib.py", "def f(): pass\n");
    let lock = hold_builds(&suite.sandbox);
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": CURRENT,
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "0"},
    });
    let params = json!({"name": "sync", "arguments": {}, "_meta": meta});
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string();
    let mcp = format!(
        "accept: application/json, text/event-stream\r\nmcp-protocol-version: {CURRENT}\r\nmcp-method: tools/call\r\nmcp-name: sync\r\n"
    );
    for (path, more, body) in [("/v1/scopes/demo/code/sync", "", "{}"), ("/mcp", mcp.as_str(), call.as_str())] {
        let mut gone = serving.connect();
        write!(
            gone,
            "POST {path} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer owner\r\ncontent-type: application/json\r\n{more}content-length: {}\r\n\r\n{body}",
            serving.address,
            body.len()
        )
        .expect("it reads");
        wait("it is worked on", || work() == 1);
        drop(gone);
        wait("nothing is worked on", || work() == 0);
    }
    drop(lock);
    let status = suite.sextant(&["status", "--json"]).json();
    assert_eq!((&status["status"], &status["last_build"]["status"]), (&json!("stale"), &json!("ready")), "{status}");
    let synced = Run::of(&mut suite.sandbox.program(&["sync", "--scope", "demo", "--config", &suite.config.to_string_lossy()]));
    synced.ended(0);
}
