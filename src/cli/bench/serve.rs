//! HTTP under load: one client, then many, ask a service while files are edited, made, moved and removed.
//!
//! Every answer is held against what was on the disk while it was made, and every snippet against its digest; at rest every question is asked
//! of the service, by all clients at once, and of a fresh process with a cache of its own, and both have to say the same to the last byte,
//! but for the time of the check.
//!
//! The clients share the machine with the service, so what was answered is held against all that when the time under load is over, and a
//! text that came often is read once.
//!
//! Must not touch any tree but its copy. Invariant: what an answer is compared with was never made by the service.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::engine::OPERATIONS;
use crate::model::ContentHash;
use crate::parse::Memory;
use crate::render::text::grouped;

use super::editor::{Dice, Editor, Past, files_told_of};
use super::meter::Meter;
use super::scratch::{Bench, Scratch, copy_tree};
use super::usage::measure;

/// Edits come in bursts as tools make them, in which one is followed by the next within so many milliseconds.
const BURST: usize = 50;
/// The shortest rest between two bursts, in milliseconds, a third of the longest: a tree that never rests is answered by nobody.
const REST: usize = 1_000;
/// No answer takes longer.
const LIMIT: Duration = Duration::from_secs(600);
/// How many clients ask each question at rest.
const ASKING: usize = 4;
/// Most that is said of wrong answers.
const MOST_SAID: usize = 10;

/// What is done.
pub struct Plan<'a> {
    /// The tree; a copy of it is edited.
    pub root: &'a Path,
    /// How long the many ask; the one asks for half as long before them.
    pub time: Duration,
    pub clients: usize,
    pub seed: u64,
}

/// What came of it.
#[derive(Debug, Default)]
pub struct Served {
    pub report: String,
    pub wrong: usize,
}

/// The service, which ends with the benchmark.
struct Service {
    child: Child,
    address: String,
}

impl Service {
    fn start(bench: &Bench) -> io::Result<Self> {
        let mut command = bench.command(["serve", "--json", "--http", "127.0.0.1:0"])?;
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let mut line = String::new();
        if let Some(out) = child.stdout.take() {
            BufReader::new(out).read_line(&mut line)?;
        }
        let mut service = Self { child, address: String::new() };
        let said: Value = serde_json::from_str(&line).map_err(io::Error::other)?;
        service.address = said["address"].as_str().unwrap_or_default().to_owned();
        Ok(service)
    }

    fn client(&self) -> io::Result<Client> {
        let stream = TcpStream::connect(&self.address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(LIMIT))?;
        Ok(Client { stream: BufReader::with_capacity(1 << 16, stream), address: self.address.clone() })
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // One that is gone already is gone.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// One connection, which stays open from question to question.
struct Client {
    stream: BufReader<TcpStream>,
    address: String,
}

impl Client {
    /// Asks a question. Returns the status and the body.
    fn ask(&mut self, body: &str) -> io::Result<(u16, String)> {
        let head = format!(
            "POST /v1/scopes/bench/code/query HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            self.address,
            body.len()
        );
        self.stream.get_mut().write_all(&[head.as_bytes(), body.as_bytes()].concat())?;
        let (mut status, mut length) = (0, 0);
        for number in 0.. {
            let mut line = String::new();
            if self.stream.read_line(&mut line)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let line = line.trim_end();
            if number == 0 {
                status = line.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
            }
            if let Some(value) = line.strip_prefix("content-length: ") {
                length = value.parse().map_err(io::Error::other)?;
            }
            if line.is_empty() {
                break;
            }
        }
        let mut answer = vec![0; length];
        self.stream.read_exact(&mut answer)?;
        String::from_utf8(answer).map(|answer| (status, answer)).map_err(io::Error::other)
    }
}

/// What is asked.
#[derive(Clone, Debug)]
enum Question {
    Plain(Value),
    /// About one definition of a file, found by name first.
    Of {
        path: String,
        name: String,
        kind: &'static str,
    },
    /// About a file, at the index that the answer before was from.
    Tests {
        path: String,
    },
}

/// What was answered, but for the time of the check.
#[derive(Debug)]
struct Body {
    text: String,
    /// Why it is no JSON.
    torn: Option<String>,
    value: Value,
    /// The files that it tells of, with their digests.
    files: Vec<(String, String)>,
    /// A snippet that is not what its digest says.
    bad: Option<String>,
}

impl Body {
    fn read(text: String) -> Self {
        let parsed = serde_json::from_str::<Value>(&text);
        let torn = parsed.as_ref().err().map(|error| format!("a torn answer: {error}"));
        let value = parsed.unwrap_or(Value::Null);
        Self { torn, files: files_told_of(&value), bad: bad_snippet(&value), value, text }
    }
}

/// Everything that was answered, each text once.
#[derive(Debug, Default)]
struct Bodies(Mutex<HashMap<String, Arc<Body>>>);

impl Bodies {
    fn take(&self, answer: &str) -> Arc<Body> {
        let text = without_time(answer);
        let known = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(body) = known().get(&text) {
            return Arc::clone(body);
        }
        let body = Arc::new(Body::read(text.clone()));
        Arc::clone(known().entry(text).or_insert(body))
    }
}

/// One request and what came of it.
struct Asked {
    kind: &'static str,
    /// What it is about, where that may be gone.
    path: Option<String>,
    span: [Instant; 2],
    status: u16,
    body: Arc<Body>,
}

impl Question {
    /// Asks it, in as many requests as it takes.
    fn ask(&self, bodies: &Bodies, mut ask: impl FnMut(&str) -> io::Result<(u16, String)>) -> io::Result<Vec<Asked>> {
        let mut asked = Vec::new();
        let mut request = |operation: &Value, expected: &Value, path: Option<&str>| -> io::Result<Arc<Body>> {
            let question = json!({ "operation": operation, "expected_fingerprint": expected }).to_string();
            let began = Instant::now();
            let (status, answer) = ask(&question)?;
            let span = [began, Instant::now()];
            let body = bodies.take(&answer);
            let kind = operation["kind"].as_str().unwrap_or_default();
            let kind = OPERATIONS.iter().find(|known| **known == kind).copied().unwrap_or_default();
            asked.push(Asked { kind, path: path.map(str::to_owned), span, status, body: Arc::clone(&body) });
            Ok(body)
        };
        match self {
            Self::Plain(operation) => drop(request(operation, &Value::Null, None)?),
            Self::Of { path, name, kind } => {
                let found = request(&json!({ "kind": "symbols", "query": name, "path_prefix": path }), &Value::Null, Some(path))?;
                let items = found.value["items"].as_array().map(Vec::as_slice).unwrap_or_default();
                if let Some(item) = items.iter().find(|item| item["qualified_name"] == **name) {
                    request(&json!({ "kind": kind, "symbol_id": item["id"] }), &found.value["fingerprint"], Some(path))?;
                }
            }
            Self::Tests { path } => {
                let found = request(&json!({ "kind": "map", "path_prefix": path }), &Value::Null, Some(path))?;
                if found.value["items"].as_array().is_some_and(|items| !items.is_empty()) {
                    request(&json!({ "kind": "affected_tests", "paths": [path] }), &found.value["fingerprint"], Some(path))?;
                }
            }
        }
        Ok(asked)
    }
}

impl Asked {
    /// Returns what is wrong with it, if something is; `Ok(false)` says that it was refused for a good reason.
    fn check(&self, past: &Past) -> Result<bool, String> {
        let Body { text, torn, value, files, bad } = &*self.body;
        if let Some(torn) = torn {
            return Err(torn.clone());
        }
        if self.status == 200 {
            return match past.contradicts(files, self.span).or_else(|| bad.clone()) {
                Some(what) => Err(what),
                None => Ok(true),
            };
        }
        // A tree that does not rest may be refused, and what was not there; nothing else may be.
        let code = value["error"]["code"].as_str().unwrap_or_default();
        let is_gone = || self.path.as_ref().is_some_and(|path| past.allows(path, None, self.span));
        match code {
            "code_changed" | "workspace_busy" => Ok(false),
            "code_target_missing" if is_gone() => Ok(false),
            _ => Err(format!("refused: {} {text}", self.status)),
        }
    }
}

impl Asked {
    /// Returns what was answered without the time of its check; of a refusal, its code.
    fn plain(&self) -> String {
        if self.status == 200 || self.body.torn.is_some() {
            return self.body.text.clone();
        }
        self.body.value["error"]["code"].as_str().unwrap_or_default().replace("invalid_code_request", "invalid_request")
    }
}

/// Returns a snippet that is not what its digest says.
fn bad_snippet(answer: &Value) -> Option<String> {
    let items = answer["items"].as_array()?;
    let is_torn = |item: &&Value| match (item["content"].as_str(), item["snippet_sha256"].as_str()) {
        (Some(content), Some(digest)) => ContentHash::of(content.as_bytes()).hex() != digest,
        _ => false,
    };
    items.iter().find(is_torn).map(|item| format!("a snippet that is not what its digest says: {item}"))
}

/// The number of a question, and what each of its requests came to.
type Told = (usize, Vec<String>);

/// What came of a time under load.
#[derive(Default)]
struct Load {
    /// Seconds of each request, by kind; those of all under no name.
    taken: BTreeMap<&'static str, Vec<f64>>,
    answers: u64,
    refused: u64,
    wrong: Vec<String>,
    /// Memory of the service and its parsers, about once a second.
    memory: Vec<u64>,
    cpu: f64,
    wall: f64,
}

impl Plan<'_> {
    /// Runs all of it.
    ///
    /// # Errors
    /// When the tree cannot be read or edited, or a process cannot be started; a wrong answer is no error.
    pub fn run(&self) -> io::Result<Served> {
        let scratch = Scratch::new()?;
        let tree = scratch.path("tree");
        copy_tree(self.root, &tree)?;
        let served_place = Bench::new(&scratch, "served", &tree, "full")?;
        let fresh_place = Bench::new(&scratch, "fresh", &tree, "full")?;
        for place in [&served_place, &fresh_place] {
            measure(&mut place.command(["index", "--quiet"])?)?;
        }
        let past = Past::default();
        let mut editor = Editor::new(tree, &past, self.seed)?;
        let service = Service::start(&served_place)?;
        let questions = questions(&mut service.client()?, &editor.files)?;
        let one = self.load(&service, 1, self.time / 2, &questions, &past, &mut editor)?;
        let many = self.load(&service, self.clients, self.time, &questions, &past, &mut editor)?;
        let (compared, differing) = self.compare(&service, &fresh_place, &questions)?;
        let peak = Meter::of(service.child.id()).memory(Memory::Peak);
        let wrong = [one.wrong.as_slice(), &many.wrong, &differing].concat();
        Ok(self.report(&one, &many, compared, editor.edits, peak, &wrong))
    }

    /// Edits and asks at once, for a while.
    fn load(
        &self,
        service: &Service,
        clients: usize,
        time: Duration,
        questions: &[Question],
        past: &Past,
        editor: &mut Editor<'_>,
    ) -> io::Result<Load> {
        let (stop, bodies) = (AtomicBool::new(false), Bodies::default());
        let meter = Meter::of(service.child.id());
        let (begun, cpu) = (Instant::now(), meter.cpu());
        let mut load = Load::default();
        let mut all = Vec::new();
        let ended = std::thread::scope(|scope| {
            let asking: Vec<_> = (0..clients)
                .map(|number| {
                    let (stop, bodies) = (&stop, &bodies);
                    let mut dice = Dice((self.seed ^ (number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)) | 1);
                    scope.spawn(move || -> io::Result<Vec<(usize, Asked)>> {
                        let (mut client, mut all) = (service.client()?, Vec::new());
                        while !stop.load(Ordering::Relaxed) {
                            let number = dice.below(questions.len());
                            let asked = questions[number].ask(bodies, |body| client.ask(body))?;
                            all.extend(asked.into_iter().map(|asked| (number, asked)));
                        }
                        Ok(all)
                    })
                })
                .collect();
            let watched = scope.spawn(|| {
                let mut memory = Vec::new();
                while !stop.load(Ordering::Relaxed) {
                    memory.push(meter.memory(Memory::Resident));
                    std::thread::sleep(Duration::from_millis(500));
                }
                memory
            });
            let mut ended = Ok(());
            while ended.is_ok() && begun.elapsed() < time {
                ended = editor.edit();
                let rest = if editor.dice.below(3) > 0 { editor.dice.below(BURST) } else { REST + editor.dice.below(2 * REST) };
                // No edit begins after the end.
                std::thread::sleep(Duration::from_millis(rest as u64).min(time.saturating_sub(begun.elapsed())));
            }
            stop.store(true, Ordering::Relaxed);
            for client in asking {
                let asked = client.join().unwrap_or_else(|_| Err(io::Error::other("a client died")));
                ended = ended.and(asked.map(|asked| all.extend(asked)));
            }
            load.memory = watched.join().unwrap_or_default();
            ended
        });
        ended?;
        load.cpu = meter.cpu().saturating_sub(cpu).as_secs_f64();
        load.wall = begun.elapsed().as_secs_f64();
        for (number, asked) in all {
            match asked.check(past) {
                Ok(true) => {
                    load.answers += 1;
                    let seconds = asked.span[1].saturating_duration_since(asked.span[0]).as_secs_f64();
                    load.taken.entry(asked.kind).or_default().push(seconds);
                    load.taken.entry("").or_default().push(seconds);
                }
                Ok(false) => load.refused += 1,
                Err(what) => load.wrong.push(format!("{:?}: {what}", questions[number])),
            }
        }
        load.taken.values_mut().for_each(|taken| taken.sort_by(f64::total_cmp));
        Ok(load)
    }

    /// Asks everything of the service, each question by several clients and all clients at once, and of fresh processes. Returns how many answers
    /// there were, and which differ.
    fn compare(&self, service: &Service, fresh: &Bench, questions: &[Question]) -> io::Result<(usize, Vec<String>)> {
        let (share, bodies) = (self.clients.div_ceil(ASKING), &Bodies::default());
        let said: Vec<io::Result<Vec<Told>>> = std::thread::scope(|scope| {
            let clients: Vec<_> = (0..self.clients)
                .map(|number| {
                    scope.spawn(move || {
                        let mut client = service.client()?;
                        let own = questions.iter().enumerate().filter(|(at, _)| at % share == number % share);
                        own.map(|(at, question)| {
                            let asked = question.ask(bodies, |body| client.ask(body))?;
                            Ok((at, asked.iter().map(Asked::plain).collect()))
                        })
                        .collect()
                    })
                })
                .collect();
            clients.into_iter().map(|client| client.join().unwrap_or_else(|_| Err(io::Error::other("a client died")))).collect()
        });
        let said: Vec<Told> = said.into_iter().collect::<io::Result<Vec<_>>>()?.into_iter().flatten().collect();
        let (mut count, mut differing) = (0, Vec::new());
        for (number, question) in questions.iter().enumerate() {
            let expected = question.ask(bodies, |body| of_process(fresh, body))?;
            let expected: Vec<String> = expected.iter().map(Asked::plain).collect();
            for (_, found) in said.iter().filter(|(at, _)| *at == number) {
                count += found.len();
                if *found != expected {
                    differing.push(format!("{question:?}: the service said {found:?}, a fresh process {expected:?}"));
                }
            }
        }
        Ok((count, differing))
    }

    fn report(&self, one: &Load, many: &Load, compared: usize, edits: u64, peak: u64, wrong: &[String]) -> Served {
        let mut report = format!(
            "{} clients for {} s, one for {} s before them; seed {}\n- {} edits; {} answers under load, {} refused, since the tree did not rest or \
             what was asked about was gone\n- {} answers at rest, each compared with a fresh process's\n- wrong or torn answers: {}\n",
            self.clients,
            self.time.as_secs(),
            (self.time / 2).as_secs(),
            self.seed,
            grouped(edits),
            grouped(one.answers + many.answers),
            grouped(one.refused + many.refused),
            grouped(compared as u64),
            wrong.len()
        );
        for what in wrong.iter().take(MOST_SAID) {
            report.push_str(&format!("  - {}\n", what.chars().take(2_000).collect::<String>()));
        }
        report.push_str(&format!(
            "\n| ms | one: p50 | p95 | {} at once: p50 | p95 | most | p95 to one's p95 |\n|---|---|---|---|---|---|---|\n",
            self.clients
        ));
        for (kind, taken) in &many.taken {
            let alone = one.taken.get(kind).map(Vec::as_slice).unwrap_or_default();
            let name = if kind.is_empty() { "all" } else { *kind };
            let [first, second] = [alone, taken].map(|taken| [0.5, 0.95, 1.0].map(|part| percentile(taken, part) * 1e3));
            report.push_str(&format!(
                "| {name} | {:.0} | {:.0} | {:.0} | {:.0} | {:.0} | {:.1} |\n",
                first[0],
                first[1],
                second[0],
                second[1],
                second[2],
                second[1] / first[1].max(f64::MIN_POSITIVE)
            ));
        }
        let rate =
            |load: &Load| (load.answers as f64 / load.wall.max(f64::MIN_POSITIVE), load.cpu / load.wall.max(f64::MIN_POSITIVE));
        let ((slow, idle), (fast, busy)) = (rate(one), rate(many));
        let third = |at: usize| {
            let some = &many.memory[many.memory.len() * at / 3..many.memory.len() * (at + 1) / 3];
            (some.iter().sum::<u64>() / (some.len().max(1) as u64)) >> 20
        };
        report.push_str(&format!(
            "\n- answers a second: {slow:.1} to one ({idle:.2} processors), {fast:.1} to {} ({busy:.2})\n- memory with parsers, means of the three \
             thirds of the time: {}, {}, {} MiB; {} MiB at most\n",
            self.clients,
            third(0),
            third(1),
            third(2),
            peak >> 20
        ));
        Served { report, wrong: wrong.len() }
    }
}

/// Returns the value that so great a part of the sorted values does not exceed.
fn percentile(sorted: &[f64], part: f64) -> f64 {
    let at = ((sorted.len() as f64 * part).ceil() as usize).clamp(1, sorted.len().max(1)) - 1;
    sorted.get(at).copied().unwrap_or(0.0)
}

/// Returns an answer without the time of its check.
fn without_time(answer: &str) -> String {
    const FIELD: &str = "\"checked_at\":\"";
    let start = answer.find(FIELD).map_or(answer.len(), |at| at + FIELD.len());
    let end = answer[start..].find('"').map_or(start, |length| start + length);
    [&answer[..start], &answer[end..]].concat()
}

/// Has a fresh process answer.
fn of_process(fresh: &Bench, body: &str) -> io::Result<(u16, String)> {
    let mut command = fresh.command(["query", "--request-file", "-"])?;
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    if let Some(mut input) = child.stdin.take() {
        input.write_all(body.as_bytes())?;
    }
    let output = child.wait_with_output()?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end().to_owned();
    if output.status.success() {
        return Ok((200, text(&output.stdout)));
    }
    // The code stands in the last line.
    Ok((0, text(&output.stderr).lines().last().unwrap_or_default().to_owned()))
}

/// Returns questions about the files that are edited.
fn questions(client: &mut Client, files: &[(String, String)]) -> io::Result<Vec<Question>> {
    let plain = |operation: Value| Question::Plain(operation);
    let mut found = vec![plain(json!({ "kind": "map" })), plain(json!({ "kind": "explore", "query": "exported" }))];
    for (path, _) in files.iter().step_by((files.len() / 8).max(1)).take(8) {
        let stem = path.rsplit('/').next().and_then(|name| name.split('.').next()).unwrap_or_default();
        found.push(plain(json!({ "kind": "symbols", "query": stem })));
        found.push(plain(json!({ "kind": "explore", "query": format!("{stem} return value") })));
        found.push(Question::Tests { path: path.clone() });
        let map = json!({ "operation": { "kind": "map", "path_prefix": path, "depth": 5, "limit": 50 } }).to_string();
        let (_, map) = client.ask(&map)?;
        let map: Value = serde_json::from_str(&map).map_err(io::Error::other)?;
        let items = map["items"].as_array().map(Vec::as_slice).unwrap_or_default();
        let functions = items.iter().filter(|item| matches!(item["kind"].as_str(), Some("function" | "method" | "class")));
        for name in functions.filter_map(|item| item["qualified_name"].as_str()).take(2) {
            for kind in ["callers", "impact", "callees"] {
                found.push(Question::Of { path: path.clone(), name: name.to_owned(), kind });
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles() {
        let values: Vec<f64> = (1..=100).map(f64::from).collect();
        assert_eq!([0.5, 0.95, 1.0].map(|part| percentile(&values, part)), [50.0, 95.0, 100.0]);
        assert_eq!([percentile(&[], 0.95), percentile(&[7.0], 0.5)], [0.0, 7.0]);
    }

    #[test]
    fn answers_that_differ_in_their_time_alone_are_equal() {
        let (bodies, span) = (Bodies::default(), [Instant::now(); 2]);
        let said = |status: u16, answer: &str| {
            let asked = Asked { kind: "map", path: None, span, status, body: bodies.take(answer) };
            (asked.plain(), asked.check(&Past::default()))
        };
        let answer = |time: &str| format!(r#"{{"a":1,"checked_at":"{time}","items":[]}}"#);
        assert_eq!(said(200, &answer("now")), said(200, &answer("then")));
        assert_eq!(bodies.0.lock().expect("no panic").len(), 1);
        assert_eq!(said(409, r#"{"error":{"code":"code_changed"}}"#), ("code_changed".to_owned(), Ok(false)));
        assert!(said(500, r#"{"error":{"code":"internal_error"}}"#).1.is_err());
        assert!(said(200, &answer("now")[..20]).1.is_err(), "torn");
    }

    #[test]
    fn a_torn_snippet_is_seen() {
        let item =
            |content: &str| json!({ "items": [{ "content": content, "snippet_sha256": ContentHash::of(b"whole\n").hex() }] });
        assert!(bad_snippet(&item("whole\n")).is_none() && bad_snippet(&item("who")).is_some());
    }
}
