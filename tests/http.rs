//! `sextant serve`: the wire contract over HTTP, who may ask, and clients that behave as none should.

use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::background::{CAP, wait};
use crate::service::{Answer, QUERY, Serving, bearer, tokens};
use crate::surface_suite::{Suite, comparable};

const STATUS: &str = "/v1/scopes/demo/code/status";
const SYNC: &str = "/v1/scopes/demo/code/sync";

#[test]
fn the_same_answers_as_the_command_line() {
    let suite = Suite::with(&tokens());
    let serving = Serving::start(&suite);
    let mut codes = std::collections::BTreeSet::new();
    for question in suite.questions() {
        let answer = serving.query("reader", &question.body);
        match suite.by_command(&question.body) {
            Ok(expected) => {
                assert_eq!(answer.status, 200, "{question:?}: {answer:?}");
                assert_eq!(comparable(&answer.body), comparable(&expected), "{}", question.name);
            }
            Err(code) => {
                let code = if code == "invalid_code_request" { "invalid_request".to_owned() } else { code };
                let status = sextant::server::http::status_of(&code).expect("a code of the contract");
                answer.refused(status, &code);
                codes.insert(code);
            }
        }
    }
    let all = [
        "baseline_unavailable",
        "budget_too_small",
        "code_changed",
        "code_range_missing",
        "code_target_missing",
        "invalid_request",
    ];
    assert_eq!(codes.into_iter().collect::<Vec<_>>(), all, "there are refusals of all kinds");
    let status = serving.get(STATUS, "reader").body;
    assert_eq!(comparable(&status), comparable(&suite.by_command(r#"{"operation":{"kind":"status"}}"#).expect("answered")));
}

#[test]
fn an_edit_is_refused_or_synced_and_never_missed() {
    let suite = Suite::with("");
    let serving = Serving::start(&suite);
    let ask = || serving.query("", r#"{"operation":{"kind":"symbols","query":"brandnew"}}"#);
    assert_eq!(ask().json()["items"], json!([]));
    suite.sandbox.write("app/more.py", "def brandnew(): pass\n");
    suite.sandbox.git(&["add", "--all"]);
    ask().refused(409, "code_changed");
    let policy = format!("[scopes.demo]\nroot = {:?}\non_stale = \"sync\"\n", suite.sandbox.tree());
    fs::write(&suite.config, policy).expect("written");
    assert_eq!(ask().json()["items"][0]["path"], "app/more.py");
}

#[test]
fn rights_are_asked_before_anything_is_touched() {
    let more = format!("[scopes.other]\nroot = \"/nonexistent/nowhere\"\n{}", tokens());
    let suite = Suite::with(&more);
    let serving = Serving::start(&suite);
    serving.get(STATUS, "").refused(401, "unauthorized");
    serving.get("/v1/scopes", "").refused(401, "unauthorized");
    serving.get("/nosuch", "").refused(401, "unauthorized");
    serving.get("/metrics", "").refused(401, "unauthorized");
    serving.query("Bearer wrong", "{}").refused(401, "unauthorized");
    serving.query("Basic cmVhZGVyOnJlYWRlcg==", "{}").refused(401, "unauthorized");
    assert_eq!(serving.query("", "{}").header("www-authenticate"), "Bearer");
    assert_eq!(serving.get("/healthz", "").status, 200);
    assert_eq!(serving.get("/openapi.json", "").status, 200);
    // Nobody learns whether a scope is there that they may not read.
    serving.get("/v1/scopes/other/code/status", "reader").refused(403, "forbidden");
    serving.get("/v1/scopes/nosuch/code/status", "reader").refused(403, "forbidden");
    serving.get("/v1/scopes/other/code/status", "owner").refused(503, "repository_unavailable");
    serving.get("/v1/scopes/nosuch/code/status", "owner").refused(503, "code_repository_unconfigured");
    let names = |token: &str| {
        let page = serving.get("/v1/scopes", token).json();
        page["items"].as_array().expect("a list").iter().map(|item| item["scope_id"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(names("reader"), ["demo"]);
    assert_eq!(names("owner"), ["demo", "other"]);
    serving.ask("POST", SYNC, &bearer("reader"), b"").refused(403, "forbidden");
    suite.sandbox.write("app/lib.py", "def f(): pass\n");
    let synced = serving.ask("POST", SYNC, &bearer("owner"), b"").json();
    assert_eq!((&synced["status"], &synced["published"]), (&json!("ready"), &json!(true)));
    assert_eq!(serving.get(STATUS, "reader").json()["status"], "ready");
}

#[test]
fn what_the_configuration_takes_back_is_gone_at_once() {
    let suite = Suite::with(&tokens());
    let serving = Serving::start(&suite);
    let scope = format!("[scopes.demo]\nroot = {:?}\n", suite.sandbox.tree());
    assert_eq!(serving.get(STATUS, "reader").status, 200);
    let only_owner = tokens()
        .split("[[http.tokens]]")
        .filter(|part| part.contains("owner"))
        .map(|part| format!("[[http.tokens]]{part}"))
        .collect::<String>();
    fs::write(&suite.config, format!("{scope}{only_owner}")).expect("written");
    serving.get(STATUS, "reader").refused(401, "unauthorized");
    assert_eq!(serving.get(STATUS, "owner").status, 200);
    fs::write(&suite.config, only_owner).expect("written");
    serving.get(STATUS, "owner").refused(503, "code_repository_unconfigured");
    fs::write(&suite.config, "no configuration").expect("written");
    serving.get(STATUS, "owner").refused(503, "code_repository_unconfigured");
    assert_eq!(serving.get("/healthz", "").status, 200, "it lives all the same");
    fs::remove_file(&suite.config).expect("there");
    serving.get(STATUS, "owner").refused(503, "code_repository_unconfigured");
    // Without any token left, nobody comes in: once there were some, it is no open house.
    fs::write(&suite.config, scope).expect("written");
    serving.get(STATUS, "owner").refused(401, "unauthorized");
    serving.get(STATUS, "").refused(401, "unauthorized");
    fs::write(&suite.config, "enabled = false\n".to_owned() + &fs::read_to_string(&suite.config).expect("there") + &tokens())
        .expect("written");
    serving.query("reader", r#"{"operation":{"kind":"map"}}"#).refused(503, "code_disabled");
}

#[test]
fn pages_and_names_of_others_are_turned_away() {
    let suite = Suite::with("[http]\nhosts = [\"code.example.org\"]\norigins = [\"https://app.example.org\"]\n");
    let serving = Serving::start(&suite);
    let check = |headers: &[(&str, &str)], status: u16| {
        let answer = serving.ask("GET", "/v1/scopes", headers, b"");
        assert_eq!(answer.status, status, "{headers:?}: {answer:?}");
        if status != 200 {
            answer.refused(403, "forbidden");
        }
    };
    check(&[], 200);
    check(&[("host", "localhost")], 200);
    check(&[("host", "code.example.org")], 200);
    check(&[("host", "evil.example.org")], 403);
    check(&[("origin", "https://app.example.org")], 200);
    check(&[("origin", "https://evil.example.org")], 403);
    check(&[("origin", "null")], 403);
    // A browser is told so, of pages that may ask alone.
    let page = |origin: &'static str| [("origin", origin), ("access-control-request-method", "POST")];
    let asked = serving.ask("OPTIONS", QUERY, &page("https://app.example.org"), b"");
    assert_eq!((asked.status, asked.header("access-control-allow-origin")), (204, "https://app.example.org"), "{asked:?}");
    serving.ask("OPTIONS", QUERY, &page("https://evil.example.org"), b"").refused(403, "forbidden");
    let told = serving.ask("GET", "/v1/scopes", &[("origin", "https://app.example.org")], b"");
    assert_eq!((told.header("access-control-allow-origin"), told.header("vary")), ("https://app.example.org", "origin"));
    assert_eq!(serving.get("/v1/scopes", "").header("access-control-allow-origin"), "");
    // A request that names its target whole says the name there, too.
    let whole =
        format!("GET http://evil.example.org/v1/scopes HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n\r\n", serving.address);
    Answer::parse(&serving.raw(whole.as_bytes())).refused(403, "forbidden");
    // A page cannot send JSON without being asked whether it may; so what is no JSON is not taken.
    for kind in [&[("content-type", "text/plain")][..], &[]] {
        let answer = serving.ask("POST", QUERY, kind, br#"{"operation":{"kind":"map"}}"#);
        answer.refused(422, "invalid_request");
    }
    // Nobody but who has a token may sync.
    serving.ask("POST", SYNC, &[], b"").refused(403, "forbidden");
}

#[test]
fn other_machines_are_listened_to_with_tokens_only() {
    let open = Suite::new();
    let serve = |suite: &Suite, address: &str| {
        let config = suite.config.to_string_lossy().into_owned();
        suite.sandbox.sextant(&["serve", "--http", address, "--config", &config])
    };
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:80"] {
        let run = serve(&open, address).ended(2);
        assert!(run.err.contains("[[http.tokens]]") && run.out.is_empty(), "{run:?}");
    }
    for address in ["nosuch", "localhost", "example.org:80", ""] {
        let run = serve(&open, address).ended(2);
        assert!(run.err.contains("127.0.0.1:7878"), "{run:?}");
    }
    open.sandbox.sextant(&["serve", "--scope", "demo"]).ended(2);
    open.sandbox.sextant(&["serve", "--root", "nosuch"]).ended(5);
}

#[test]
fn without_a_configuration_the_worktree_here_is_served() {
    let sandbox = crate::program::indexed();
    let serving = Serving::spawn(&sandbox, &[]);
    let page = serving.get("/v1/scopes", "").json();
    let scope = page["items"][0]["scope_id"].as_str().expect("a name").to_owned();
    assert!(scope.starts_with("wt-") && page["items"].as_array().expect("a list").len() == 1, "{page}");
    let status = serving.get(&format!("/v1/scopes/{scope}/code/status"), "").json();
    assert_eq!(status["status"], "ready");
    sandbox.write("lib.py", "def other(): pass\n");
    let kind = [("content-type", "application/json")];
    let path = format!("/v1/scopes/{scope}/code/query");
    // A strict caller has said nothing of syncing.
    serving.ask("POST", &path, &kind, br#"{"operation":{"kind":"map"}}"#).refused(409, "code_changed");
    fs::remove_dir_all(sandbox.tree()).expect("there");
    serving.get(&format!("/v1/scopes/{scope}/code/status"), "").refused(503, "repository_unavailable");
}

#[test]
fn what_is_around_an_answer() {
    let suite = Suite::new();
    let serving = Serving::start(&suite);
    let answer = serving.query("", r#"{"operation":{"kind":"map"}}"#);
    let id = answer.header("x-powercontext-request-id");
    assert!(id.len() == 16 && id == answer.header("x-request-id") && !answer.body.contains(id), "{answer:?}");
    assert_eq!((answer.header("content-type"), answer.header("cache-control")), ("application/json", "no-store"));
    let given = serving.ask("GET", "/healthz", &[("x-request-id", "mine-1")], b"");
    assert_eq!(given.header("x-powercontext-request-id"), "mine-1");
    let broken = serving.ask("GET", "/healthz", &[("x-request-id", "not mine")], b"");
    assert_ne!(broken.header("x-powercontext-request-id"), "not mine");
    serving.get("/nosuch", "").refused(404, "not_found");
    serving.get("/v1/scopes/demo/code", "").refused(404, "not_found");
    serving.get("/v1/scopes/%ff/code/status", "").refused(404, "not_found");
    let wrong = serving.get(QUERY, "");
    wrong.refused(405, "method_not_allowed");
    assert_eq!(wrong.header("allow"), "POST");
    serving.query("", r#"{"operation":{"kind":"map"},"max_bytes":1}"#).refused(422, "invalid_request");
    let text = serving.get("/metrics", "").body;
    for line in [
        r#"sextant_http_requests_total{route="query",status="200",code=""} 1"#,
        r#"sextant_http_requests_total{route="query",status="422",code="invalid_request"} 1"#,
        r#"sextant_http_question_seconds_count{operation="map"} 1"#,
        "# EOF",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
    }
    let place = suite.sandbox.path().to_string_lossy().into_owned();
    assert!(!text.contains(&place) && !text.contains("lib.py") && !text.contains("demo"), "{text}");
    let document = serving.get("/openapi.json", "").json();
    assert_eq!(document["paths"][QUERY.replace("demo", "{scope_id}")]["post"]["operationId"], "query_code");
}

#[test]
fn bodies_and_heads_are_bounded() {
    let suite = Suite::new();
    let serving = Serving::start(&suite);
    let padded = |length: usize| {
        let request = r#"{"operation":{"kind":"map"}}"#;
        format!("{request}{}", " ".repeat(length - request.len()))
    };
    assert_eq!(serving.query("", &padded(64 << 10)).status, 200);
    serving.query("", &padded((64 << 10) + 1)).refused(413, "request_too_large");
    serving.query("", &padded(900 << 10)).refused(413, "request_too_large");
    // What is announced as larger is not waited for.
    let announced = format!("POST {QUERY} HTTP/1.1\r\nhost: {}\r\ncontent-length: 99999999999\r\n\r\n", serving.address);
    Answer::parse(&serving.raw(announced.as_bytes())).refused(413, "request_too_large");
    let long = "x".repeat(100 << 10);
    let answer = serving.ask("GET", "/healthz", &[("x-long", &long)], b"");
    answer.refused(431, "head_too_large");
    let many: Vec<(String, String)> = (0..100).map(|number| (format!("x-{number}"), "1".to_owned())).collect();
    let many: Vec<(&str, &str)> = many.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    serving.ask("GET", "/healthz", &many, b"").refused(431, "head_too_large");
    Answer::parse(&serving.raw(b"nonsense\r\n\r\n")).refused(400, "malformed_request");
    Answer::parse(&serving.raw(b"GET /healthz HTTP/1.1\r\n\r\n")).refused(403, "forbidden");
}

#[test]
fn slow_and_half_closed_clients_harm_nobody() {
    let suite = Suite::with("[http]\npatience_seconds = 2\n");
    let serving = Serving::start(&suite);
    let head = format!("POST {QUERY} HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\n", serving.address);
    let question = r#"{"operation":{"kind":"map"}}"#;
    // Silent ones, ones that stop within the head, and ones that stop within the body.
    let beginnings = [String::new(), head.clone(), format!("{head}content-length: 99\r\n\r\n{{")];
    let idle: Vec<(usize, TcpStream)> = (0..150)
        .map(|number| {
            let (kind, mut stream) = (number % beginnings.len(), serving.connect());
            stream.write_all(beginnings[kind].as_bytes()).expect("it reads");
            (kind, stream)
        })
        .collect();
    assert_eq!(serving.query("", question).status, 200, "others are answered meanwhile");
    // Whoever says no more, but listens, is answered.
    let mut half = serving.connect();
    write!(half, "{head}content-length: {}\r\n\r\n{question}", question.len()).expect("it reads");
    half.shutdown(Shutdown::Write).expect("connected");
    let mut answer = Vec::new();
    half.read_to_end(&mut answer).expect("answered");
    assert_eq!(Answer::parse(&answer).status, 200);
    // Whoever asks and goes away costs nothing that stays.
    for _ in 0..50 {
        let mut gone = serving.connect();
        write!(gone, "{head}content-length: {}\r\n\r\n{question}", question.len()).expect("it reads");
    }
    for (kind, mut stream) in idle {
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("it ends the connection");
        if kind == 2 {
            Answer::parse(&answer).refused(408, "request_timeout");
        }
    }
    let connections = || {
        let text = serving.get("/metrics", "").body;
        text.lines().find_map(|line| line.strip_prefix("sextant_http_connections ")?.parse::<u64>().ok()).expect("a figure")
    };
    wait("only this one is left", || connections() == 1);
    wait("nothing is worked on", || serving.get("/metrics", "").body.contains("sextant_http_work 0\n"));
}

#[test]
fn requests_without_sense_are_refused() {
    // Ten thousand and more by a named command: see docs/reliability.md.
    let count = std::env::var("SEXTANT_MALFORMED").ok().and_then(|count| count.parse().ok()).unwrap_or(300);
    let suite = Suite::new();
    let serving = Serving::start(&suite);
    let questions = suite.questions();
    let place = suite.sandbox.path().to_string_lossy().into_owned();
    let mut dice = Dice(0x5eed);
    let mut statuses = std::collections::BTreeMap::<u16, u32>::new();
    for number in 0..count {
        let question = &questions[dice.below(questions.len())].body;
        let mut head = format!(
            "POST {QUERY} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\ncontent-type: application/json\r\n",
            serving.address
        )
        .into_bytes();
        let mut body = question.clone().into_bytes();
        // Each is wrong in one way for certain; the mutations may make it wrong in others, too.
        match number % 4 {
            0 => {
                body = mutated(&body, &mut dice);
                // No JSON ends so, be it within a string.
                body.push(1);
            }
            1 => {
                let broken: [&[u8]; 6] = [
                    b"bad header\r\n",
                    b": x\r\n",
                    b"x\0: y\r\n",
                    b"content-length: 1\r\ncontent-length: 2\r\n",
                    b"transfer-encoding: nosuch\r\n",
                    b"content-length: -1\r\n",
                ];
                head.extend_from_slice(broken[dice.below(broken.len())]);
            }
            2 => {
                let at = dice.below(12);
                head[at] = [0, b' ', 0xff, b'\r', b'{'][dice.below(5)];
                head.insert(0, b'\x01');
            }
            _ => {
                let field = ["more", "/etc/passwd", "\\u0000", "operation.kind"][dice.below(4)];
                body = format!(r#"{{"{field}":{question},"operation":[]}}"#).into_bytes();
            }
        }
        let length = format!("content-length: {}\r\n\r\n", body.len());
        let bytes = [&head[..], if number % 4 == 1 { b"\r\n" } else { length.as_bytes() }, &body].concat();
        let answer = Answer::parse(&serving.raw(&bytes));
        let what = || format!("{:?} came to {answer:?}", String::from_utf8_lossy(&bytes));
        assert!((400..500).contains(&answer.status), "{}", what());
        answer.code();
        assert!(!answer.body.contains(&place) && !answer.body.contains("import os") && answer.body.len() < 2_000, "{}", what());
        *statuses.entry(answer.status).or_default() += 1;
    }
    assert!(statuses.len() >= 2, "{statuses:?}");
    assert_eq!(serving.query("", r#"{"operation":{"kind":"map"}}"#).status, 200, "it lives");
}

/// Numbers that look random and are the same each time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % bound.max(1)
    }
}

fn mutated(bytes: &[u8], dice: &mut Dice) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for _ in 0..=dice.below(4) {
        let at = dice.below(bytes.len());
        match dice.below(4) {
            0 => bytes.truncate(at),
            1 => bytes.insert(at, b"\"{}[]:,\\\0\xff9e-"[dice.below(13)]),
            2 if at < bytes.len() => drop(bytes.remove(at)),
            _ if at < bytes.len() => bytes[at] ^= 1 << dice.below(8),
            _ => {}
        }
    }
    bytes
}

#[test]
fn many_connections_at_once_are_turned_away_in_words() {
    let suite = Suite::new();
    let serving = Serving::start(&suite);
    let mut held = Vec::new();
    let turned_away = (0..700).find_map(|_| {
        let mut stream = serving.connect();
        stream.set_read_timeout(Some(Duration::from_millis(1))).expect("a socket");
        let mut first = [0; 1];
        if let Ok(1) = stream.read(&mut first) {
            stream.set_read_timeout(Some(CAP)).expect("a socket");
            let mut answer = first.to_vec();
            stream.read_to_end(&mut answer).expect("it ends");
            return Some(answer);
        }
        held.push(stream);
        None
    });
    let answer = Answer::parse(&turned_away.expect("there is a bound"));
    answer.refused(503, "server_busy");
    assert_eq!(answer.header("retry-after"), "1");
    drop(held);
    wait("there is room again", || {
        serving
            .raw(format!("GET /healthz HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n\r\n", serving.address).as_bytes())
            .starts_with(b"HTTP/1.1 200")
    });
}

#[test]
fn told_to_end_it_answers_what_is_under_way() {
    let suite = Suite::new();
    let mut serving = Serving::start(&suite);
    // A connection that idles does not hold it up, and one whose body is on its way is answered.
    let _idle = serving.connect();
    let mut slow = serving.connect();
    let question = r#"{"operation":{"kind":"map"}}"#;
    let head = format!(
        "POST {QUERY} HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        serving.address,
        question.len()
    );
    slow.write_all(head.as_bytes()).expect("it reads");
    slow.write_all(&question.as_bytes()[..5]).expect("it reads");
    wait("both are known", || serving.get("/metrics", "").body.contains("sextant_http_connections 3\n"));
    serving.signal(Signal::TERM);
    wait("it listens no more", || TcpStream::connect(serving.address).is_err());
    slow.write_all(&question.as_bytes()[5..]).expect("it still reads");
    let mut answer = Vec::new();
    slow.read_to_end(&mut answer).expect("answered");
    assert_eq!(Answer::parse(&answer).status, 200);
    let status = serving.child.wait().expect("it ends");
    assert_eq!(status.code(), Some(0));
}

#[test]
fn agents_are_served_behind_the_same_door() {
    let suite = Suite::with(&tokens());
    let serving = Serving::start(&suite);
    let post = |token: &str, headers: &[(&str, &str)], message: &Value| {
        let plain = [("content-type", "application/json"), ("accept", "application/json, text/event-stream")];
        serving.ask("POST", "/mcp", &[&plain[..], &bearer(token), headers].concat(), message.to_string().as_bytes())
    };
    let call = |token: &str, tool: &str, arguments: Value| -> Value {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "0"},
        });
        let params = json!({"name": tool, "arguments": arguments, "_meta": meta});
        let headers = [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/call"), ("mcp-name", tool)];
        let answer = post(token, &headers, &json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}));
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()["result"].clone()
    };
    // A client of an older revision.
    let client = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "0"}});
    let greeting = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": client});
    assert_eq!(post("reader", &[], &greeting).json()["result"]["protocolVersion"], "2025-11-25");
    let list = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"});
    let listed = post("reader", &[("mcp-protocol-version", "2025-11-25")], &list);
    assert_eq!(listed.json()["result"]["tools"][0]["name"], "explore", "{listed:?}");
    // One of the current revision.
    let found = call("reader", "symbols", json!({"query": "Cart"}));
    let expected = suite.sextant(&["symbols", "Cart", "--json"]).out;
    assert_eq!(comparable(&found["structuredContent"].to_string()), comparable(expected.trim_end()));
    // Nobody comes in who could not ask otherwise, and nobody reaches more.
    post("", &[], &greeting).refused(401, "unauthorized");
    post("reader", &[("origin", "https://example.org")], &greeting).refused(403, "forbidden");
    post("reader", &[("host", "example.org")], &greeting).refused(403, "forbidden");
    let code = |result: &Value| (result["isError"].clone(), result["structuredContent"]["error"]["code"].clone());
    for arguments in [json!({"root": "/"}), json!({"scope": "other"})] {
        assert_eq!(code(&call("reader", "status", arguments.clone())), (json!(true), json!("forbidden")), "{arguments}");
    }
    assert_eq!(code(&call("reader", "sync", json!({}))), (json!(true), json!("forbidden")));
    // Nor does a question sync for who may only read, be that asked for or not.
    suite.sandbox.write("main.go", "package main\n\nfunc main() { later() }\n\nfunc later() {}\n");
    assert_eq!(
        code(&call("reader", "symbols", json!({"query": "later", "on_stale": "sync"}))),
        (json!(true), json!("forbidden"))
    );
    assert_eq!(code(&call("reader", "symbols", json!({"query": "later"}))).1, "code_changed");
    assert_eq!(code(&call("owner", "symbols", json!({"query": "later", "on_stale": "sync", "scope": "demo"}))).1, Value::Null);
    let synced = call("owner", "sync", json!({"scope": "demo"}));
    assert_eq!((&synced["isError"], &synced["structuredContent"]["published"]), (&json!(false), &json!(false)), "{synced}");
}
