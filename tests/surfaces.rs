//! The questions of the shared suite through the surfaces that have a form of their own: commands that a daemon runs, its socket, and the
//! tools of agents, over standard streams and over HTTP.
//!
//! Invariant: what a surface gives are the bytes of the command line. Where it cannot say a question, the nearest thing that it can say
//! comes to what the table of its questions promises, and the table says why.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::process::Stdio;

use serde_json::{Map, Value, json};

use crate::agent::{CURRENT, Called, Client, OLDER};
use crate::background::{Daemon, socket};
use crate::program::Run;
use crate::service::Serving;
use crate::surface_suite::{Question, Said, Suite, comparable};

/// Returns the questions with what the command line says to them.
fn asked(suite: &Suite) -> Vec<(Question, Said)> {
    let ask = |question: Question| {
        let said = suite.by_command(&question.body);
        (question, said)
    };
    suite.questions().into_iter().map(ask).collect()
}

#[track_caller]
fn same(name: &str, found: Said, expected: &Said) {
    let comparable = |said: &Said| said.as_ref().map(|answer| comparable(answer)).map_err(Clone::clone);
    assert_eq!(comparable(&found), comparable(expected), "{name}");
}

#[test]
fn a_daemon_answers_as_a_process_of_its_own_does() {
    let suite = Suite::new();
    let questions = asked(&suite);
    let daemon = Daemon::start(&suite.sandbox);
    let config = suite.config.to_string_lossy().into_owned();
    for (question, expected) in &questions {
        let before = daemon.answered();
        let mut command = suite.sandbox.program(&["query", "--request-file", "-", "--scope", "demo", "--config", &config]);
        command.stdin(Stdio::piped());
        let run = Run::told(&mut command, &question.body);
        assert_eq!(daemon.answered() - before, 1, "{}: it is the daemon that answers", question.name);
        let found = if run.status == Some(0) { Ok(run.out.trim_end().to_owned()) } else { Err(run.code()) };
        same(&question.name, found, expected);
    }
    // On its socket a request stands within a line of JSON, so that what is no JSON is a line that is not understood.
    let stream = UnixStream::connect(socket(&suite.sandbox)).expect("it listens");
    let mut lines = BufReader::new(&stream).lines().map(|line| line.expect("text"));
    lines.next().expect("it greets");
    for (question, expected) in &questions {
        let body = if question.body.is_empty() { "null" } else { &question.body };
        writeln!(&stream, r#"{{"query":{{"scope":"demo","config":{config:?},"request":{body}}}}}"#).expect("it reads");
        let line = lines.next().expect("it answers");
        let code = serde_json::from_str::<Value>(&line).expect("JSON")["error"]["code"].as_str().map(str::to_owned);
        same(&question.name, code.map_or(Ok(line), Err), expected);
    }
}

/// What comes of a call in place of a question.
enum Promise {
    /// What the wire gives to the question: its bytes, or its refusal.
    TheSame,
    /// What the wire gives to another question.
    AsTo(String),
    /// A result that holds no answer but this code.
    Code(&'static str),
    /// An error of the protocol.
    Error(i64),
    /// Nothing is said to an empty line, and the next message is answered.
    Nothing,
}

/// What is sent in place of a question.
enum Sent {
    /// A call of a tool, its arguments as they are written.
    Call(&'static str, String),
    /// A message as it is.
    Raw(&'static str),
}

/// The parameters were not understood.
const INVALID_PARAMS: i64 = -32602;
const PARSE_ERROR: i64 = -32700;

/// Returns the call that asks a question, with what is promised of it.
fn call_of(question: &Question, questions: &[(Question, Said)]) -> (Sent, Promise) {
    use Promise::{AsTo, Code, Error, Nothing, TheSame};
    let call = |tool, arguments: Value| Sent::Call(tool, arguments.to_string());
    let body_of = |name: &str| questions.iter().find(|(question, _)| question.name == name).expect("it is there").0.body.clone();
    match &*question.name {
        // Agents list directories by themselves, and `explore` tells them what is unbound: a tool more would cost each of them its schema.
        "map" | "map below" => (call("map", json!({})), Error(INVALID_PARAMS)),
        "diagnostics" => (call("diagnostics", json!({ "path": "app" })), Error(INVALID_PARAMS)),
        "no such kind" => (call("nosuch", json!({})), Error(INVALID_PARAMS)),
        // An agent has no fingerprint at hand and asks about the files as they are now: no tool takes one, and none is required.
        "callers at any index" | "callees at any index" | "impact at any index" => {
            let name = question.name.trim_end_matches(" at any index");
            (said_by_tool(&question.body), AsTo(body_of(name)))
        }
        "another fingerprint" => {
            (call("symbols", json!({ "query": "f", "expected_fingerprint": "0".repeat(64) })), Code("invalid_code_request"))
        }
        "a status of another" => {
            (call("status", json!({ "expected_fingerprint": "0".repeat(64) })), Code("invalid_code_request"))
        }
        // Nor has it the digest of a file: it reads the lines that are there.
        "read of another content" => {
            let read: Value = serde_json::from_str(&body_of("read")).expect("JSON");
            let digest = read["operation"]["file_sha256"].as_str().expect("a digest");
            (said_by_tool(&question.body), AsTo(question.body.replace(&"0".repeat(64), digest)))
        }
        // These are asked of `map` on the wire.
        "too few bytes" => (call("explore", json!({ "query": "f", "max_bytes": 512 })), Code("budget_too_small")),
        "a limit as text" => (call("symbols", json!({ "query": "f", "limit": "5" })), TheSame),
        "a path that climbs" => (call("symbols", json!({ "query": "f", "path": "../.." })), TheSame),
        "a field too many" => (call("status", json!({ "more": 1 })), TheSame),
        // Messages are read by the rules of JSON-RPC, before a tool sees them: the last one of a name counts.
        "a name twice" => {
            let arguments = r#"{"query":"nosuchname","query":"Cart.total"}"#;
            (Sent::Call("symbols", arguments.to_owned()), AsTo(body_of("symbols")))
        }
        "no JSON" => (Sent::Raw(r#"{"jsonrpc""#), Error(PARSE_ERROR)),
        "nothing" => (Sent::Raw(""), Nothing),
        _ => (said_by_tool(&question.body), TheSame),
    }
}

/// Returns the call that says what a request says, but for what no tool takes.
fn said_by_tool(body: &str) -> Sent {
    let request: Value = serde_json::from_str(body).expect("a request");
    let operation = &request["operation"];
    let kind = operation["kind"].as_str().expect("a kind");
    let (tool, taken): (_, &[(&str, &str)]) = match kind {
        "status" => ("status", &[]),
        "symbols" | "explore" => (if kind == "symbols" { "symbols" } else { "explore" }, &[("query", "query")]),
        "callers" | "callees" | "impact" => ("relations", &[("symbol_id", "symbol"), ("depth", "depth")]),
        "affected_tests" => ("tests", &[("paths", "paths")]),
        "read" => ("read", &[("path", "path"), ("start_line", "start_line"), ("end_line", "end_line")]),
        "changes" => ("changes", &[]),
        "impact_changes" => ("changes", &[("paths", "paths")]),
        _ => panic!("no tool says {body}"),
    };
    let mut arguments = Map::new();
    let common = [("path_prefix", "path"), ("limit", "limit")];
    for (field, argument) in taken.iter().chain(&common) {
        arguments.extend(operation.get(*field).map(|value| ((*argument).to_owned(), value.clone())));
    }
    let mut add = |name: &str, value: &Value| drop(arguments.insert(name.to_owned(), value.clone()));
    match kind {
        "callers" | "callees" | "impact" => add("relation", &operation["kind"]),
        "impact_changes" => {
            add("impact", &json!(true));
            add("before", &request["before_fingerprint"]);
        }
        _ => {}
    }
    if let Some(bytes) = request.get("max_bytes") {
        add("max_bytes", bytes);
    }
    Sent::Call(tool, Value::Object(arguments).to_string())
}

/// What comes back to a message: a result, or the code of an error.
type Came = Result<Called, i64>;

fn came(line: &str) -> Came {
    let value: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    match value["error"]["code"].as_i64() {
        Some(code) => Err(code),
        None => Ok(Called::of(line)),
    }
}

/// Asks all questions of an agent's server. `send` gives what comes back, `None` when that is nothing.
fn check(questions: &[(Question, Said)], suite: &Suite, surface: &str, mut send: impl FnMut(&Sent) -> Option<Came>) {
    for (question, expected) in questions {
        let name = format!("{} by {surface}", question.name);
        let (sent, promise) = call_of(question, questions);
        let came = send(&sent);
        let said = || match &came {
            Some(Ok(called)) => match &*called.code() {
                "" => Ok(called.structured.clone()),
                code => Err(code.to_owned()),
            },
            other => panic!("{name}: {other:?}"),
        };
        match promise {
            Promise::TheSame => same(&name, said(), expected),
            Promise::AsTo(body) => same(&name, said(), &suite.by_command(&body)),
            Promise::Code(code) => same(&name, said(), &Err(code.to_owned())),
            Promise::Error(code) => assert!(matches!(&came, Some(Err(found)) if *found == code), "{name}: {came:?}"),
            // A body that holds nothing is no message.
            Promise::Nothing => assert!(matches!(came, None | Some(Err(PARSE_ERROR))), "{name}: {came:?}"),
        }
    }
}

/// Returns a call as a message.
fn message(id: u64, tool: &str, arguments: &str, revision: &str) -> String {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": CURRENT,
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "0"},
    });
    let meta = if revision == CURRENT { format!(r#","_meta":{meta}"#) } else { String::new() };
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments}{meta}}}}}"#)
}

#[test]
fn agents_are_given_the_bytes_of_the_wire() {
    let suite = Suite::new();
    let questions = asked(&suite);
    let config = suite.config.to_string_lossy().into_owned();
    let daemon = Daemon::start(&suite.sandbox);
    for (revision, more) in [(CURRENT, &["--no-daemon"][..]), (OLDER, &[])] {
        let line = [&["mcp", "--scope", "demo", "--config", &config], more].concat();
        let mut client = Client::start(suite.sandbox.program(&line), revision);
        client.greet();
        let before = daemon.answered();
        let mut calls = 1_000;
        let send = |sent: &Sent| {
            calls += 1;
            let line = match sent {
                Sent::Call(tool, arguments) => message(calls, tool, arguments, revision),
                Sent::Raw(line) => (*line).to_owned(),
            };
            writeln!(client.input.as_mut().expect("open"), "{line}").expect("it reads");
            match sent {
                Sent::Call(..) => Some(came(&client.line_of(calls))),
                Sent::Raw("") => None,
                Sent::Raw(_) => Some(Err(client.next()["error"]["code"].as_i64().expect("an error"))),
            }
        };
        check(&questions, &suite, more.first().unwrap_or(&"the daemon"), send);
        assert_eq!(more.is_empty(), daemon.answered() > before, "who answers");
        assert_eq!(client.end().0, Some(0));
    }
    let serving = Serving::start(&suite);
    let mut calls = 0;
    check(&questions, &suite, "HTTP", |sent| {
        calls += 1;
        let (tool, body) = match sent {
            Sent::Call(tool, arguments) => (*tool, message(calls, tool, arguments, CURRENT)),
            Sent::Raw(body) => ("status", (*body).to_owned()),
        };
        let headers = [
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
            ("mcp-protocol-version", CURRENT),
            ("mcp-method", "tools/call"),
            ("mcp-name", tool),
        ];
        let answer = serving.ask("POST", "/mcp", &headers, body.as_bytes());
        assert_eq!(answer.status == 200, matches!(sent, Sent::Call(..)), "{answer:?}");
        Some(came(&answer.body))
    });
}
