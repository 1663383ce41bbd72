//! The operations on a small generation written by hand: what they find, in which order, and what they say of what they leave out.

pub mod graph;

use std::fmt::Write as _;
use std::sync::Arc;

use self::graph::{Written, place};
use super::request::Relation;
use super::response::Response;
use super::*;
use crate::model::{
    ContentHash, DefinitionKey, Diagnostic, Edge, EdgeKind, FileEdges, Fingerprint, PathPrefix, Reason, RepoPath, Resolution,
    SymbolKind, Target,
};

/// A file of the fixture: its source, its definitions as (qualified name, kind, first line, last line), and what its lines refer to as
/// (line, name, target path, target, resolution); an empty target path is a diagnostic.
struct File {
    path: &'static str,
    source: &'static str,
    definitions: &'static [(&'static str, SymbolKind, u32, u32)],
    references: &'static [(u32, &'static str, &'static str, &'static str, Resolution)],
}

use Resolution::{Candidate, ResolvedStatic};
use SymbolKind::{Class, Function, Method};

const FILES: &[File] = &[
    File {
        path: "app/main.py",
        source: "from app.util import greet\ndef main():\n    greet('x')\n    greet('y')\ndef other(out):\n    out.send(greet)\n",
        definitions: &[("main", Function, 2, 4), ("other", Function, 5, 6)],
        references: &[
            (3, "greet", "app/util.py", "greet", ResolvedStatic),
            (4, "greet", "app/util.py", "greet", ResolvedStatic),
            (6, "send", "app/util.py", "Mailer.send", Candidate),
            (6, "unknown", "", "", Candidate),
        ],
    },
    File {
        path: "app/util.py",
        source: "def greet(name):\n    return name\nclass Mailer:\n    def send(self):\n        greet('')\n    def getHTTPResponse(self):\n        pass\n",
        definitions: &[
            ("greet", Function, 1, 2),
            ("Mailer", Class, 3, 7),
            ("Mailer.send", Method, 4, 5),
            ("Mailer.getHTTPResponse", Method, 6, 7),
        ],
        references: &[(5, "greet", "app/util.py", "greet", ResolvedStatic)],
    },
    File { path: "docs/mail.md", source: "# Mail\nHow to greet.\n", definitions: &[], references: &[] },
    File {
        path: "tests/test_util.py",
        source: "from app.util import greet\ndef test_greet():\n    greet('t')\ndef greet_all():\n    pass\n",
        definitions: &[("test_greet", Function, 2, 3), ("greet_all", Function, 4, 5)],
        references: &[(3, "greet", "app/util.py", "greet", ResolvedStatic)],
    },
];

fn edges(file: &File) -> FileEdges {
    let mut edges = FileEdges::default();
    for &(line, name, path, target, resolution) in file.references {
        let holds = |of: &&(&str, SymbolKind, u32, u32)| (of.2..=of.3).contains(&line);
        let inner = file.definitions.iter().filter(holds).min_by_key(|of| of.3 - of.2);
        let source = inner.and_then(|inner| file.definitions.iter().position(|of| of.0 == inner.0)).map(|index| index as u32);
        let (kind, place, name) = (EdgeKind::Calls, place(file.source, line, name), Arc::from(name));
        if path.is_empty() {
            edges.diagnostics.push(Diagnostic { kind, source, reason: Reason::UnresolvedName, place, name, candidates: 0 });
            continue;
        }
        let definition = Some(DefinitionKey { qualified: Arc::from(target), ordinal: 0 });
        let target = Target { file: RepoPath::parse(path).expect("valid"), definition };
        if resolution == Candidate {
            let reason = Reason::DynamicReceiver;
            let name = Arc::clone(&name);
            edges.diagnostics.push(Diagnostic { kind, source, reason, place, name, candidates: 1 });
        }
        edges.edges.push(Edge { kind, source, target, resolution, rule: "lexical_binding", place, name });
    }
    edges
}

/// Publishes [`FILES`] in a folder of its own and reads them back.
fn with_generation(check: impl FnOnce(&Generation)) {
    let files = FILES.iter().map(|file| Written {
        path: file.path.to_owned(),
        source: file.source.to_owned(),
        facts: graph::facts(file.source, file.definitions),
        edges: edges(file),
    });
    graph::publish(files.collect(), check);
}

fn prefix(text: &str) -> PathPrefix {
    PathPrefix::parse(text).expect("valid")
}

pub fn ask(generation: &Generation, operation: Operation) -> Result<Response> {
    answer(generation, None, "2026-11-30T02:11:09.123456+00:00", &Request::new(operation))
}

/// Answers a request as it stands, its budget included.
pub fn ask_within(generation: &Generation, request: &Request) -> Result<Response> {
    answer(generation, None, "2026-11-30T02:11:09.123456+00:00", request)
}

/// Answers a request that compares with an earlier generation, its budget included.
pub fn ask_between(before: &Generation, after: &Generation, request: &Request) -> Result<Response> {
    answer(after, Some(before), "2026-11-30T02:11:09.123456+00:00", request)
}

/// One line an item: where, what, how sure, and the lines of the relation.
fn outline(response: &Response) -> String {
    let mut text = String::new();
    for item in &response.items {
        let name = item.qualified_name.as_deref().unwrap_or("-");
        write!(text, "{}:{} {name}", item.path, item.start_line).expect("a string");
        if let Some(resolution) = item.resolution {
            write!(text, " {} {:?}", resolution.as_str(), item.site_lines).expect("a string");
        }
        text.push('\n');
    }
    text
}

fn id(generation: &Generation, name: &str) -> String {
    match select(generation, name, &PathPrefix::default()).expect("readable") {
        Selection::One(node) => node.symbol.hex(),
        other => panic!("{name}: {other:?}"),
    }
}

fn relation(generation: &Generation, name: &str, path: &str, limit: usize) -> Relation {
    Relation { symbol_id: id(generation, name), depth: 2, prefix: prefix(path), limit }
}

#[test]
fn callers_one_item_each_resolved_first() {
    with_generation(|generation| {
        let response = ask(generation, Operation::Callers(relation(generation, "greet", "", 20))).expect("answered");
        assert_eq!(
            outline(&response),
            "app/main.py:2 main resolved_static [3, 4]\n\
             app/util.py:4 Mailer.send resolved_static [5]\n\
             tests/test_util.py:2 test_greet resolved_static [3]\n"
        );
        assert_eq!(response.coverage.unresolved_mentions, Some(0));
        assert_eq!(response.limitations, ["static_analysis_only", "dynamic_relationships_may_be_missing", "no_git", "gap"]);
        let sites = response.items[0].wanted.as_ref().and_then(|wanted| wanted.sites.as_ref()).expect("shown");
        assert_eq!(sites[1].text.as_deref(), Some("greet('y')"));

        let cut = ask(generation, Operation::Callers(relation(generation, "greet", "", 2))).expect("answered");
        assert_eq!((cut.items.len(), cut.total, cut.status), (2, 3, Status::Partial));
        assert!(cut.limitations.iter().any(|word| word == "item_limit"));
    });
}

#[test]
fn no_callers_is_not_said_where_mentions_are_unbound() {
    with_generation(|generation| {
        let response = ask(generation, Operation::Callers(relation(generation, "Mailer.send", "", 20))).expect("answered");
        assert_eq!(outline(&response), "app/main.py:5 other candidate [6]\n");
        assert_eq!(response.coverage.unresolved_mentions, Some(1));
        let callees = ask(generation, Operation::Callees(relation(generation, "app.main.other", "", 20))).expect("answered");
        assert_eq!(outline(&callees), "app/util.py:4 Mailer.send candidate [6]\n");
        assert_eq!(callees.coverage.unresolved_mentions, Some(2));
    });
}

#[test]
fn relations_outside_the_prefix_are_counted() {
    with_generation(|generation| {
        let response = ask(generation, Operation::Callers(relation(generation, "greet", "app/util.py", 20))).expect("answered");
        assert_eq!(outline(&response), "app/util.py:4 Mailer.send resolved_static [5]\n");
        assert_eq!(response.coverage.path_boundary_edges, 3);
        assert_eq!(response.status, Status::Ok);
        assert!(response.limitations.iter().any(|word| word == "edges_outside_path_scope"));
        let outside = ask(generation, Operation::Callers(relation(generation, "greet", "tests", 20)));
        assert_eq!(outside.expect_err("outside").code(), "code_target_missing");
    });
}

#[test]
fn symbols_in_order() {
    with_generation(|generation| {
        let check = |query: &str, path: &str, expected: &str| {
            let operation = Operation::Symbols { query: query.to_owned(), prefix: prefix(path), limit: 20 };
            let response = ask(generation, operation).expect("answered");
            assert_eq!(outline(&response), expected, "{query}");
            assert!(response.items.iter().all(|item| item.source.is_none()));
        };
        check("greet", "", "app/util.py:1 greet\ntests/test_util.py:2 test_greet\ntests/test_util.py:4 greet_all\n");
        check("app.util.Mailer.send", "", "app/util.py:4 Mailer.send\n");
        check("Mailer.send", "", "app/util.py:4 Mailer.send\n");
        check("http response", "", "app/util.py:6 Mailer.getHTTPResponse\n");
        check("gethttpresponse", "", "app/util.py:6 Mailer.getHTTPResponse\n");
        check("app/util.py", "", "app/util.py:1 app/util.py\n");
        check("greet", "tests", "tests/test_util.py:2 test_greet\ntests/test_util.py:4 greet_all\n");
        check("\" OR name:* NEAR(", "", "");
        check("zorblax", "", "");
    });
}

#[test]
fn explore_puts_seeds_first_and_says_when_there_is_nothing() {
    with_generation(|generation| {
        let explore = |query: &str| {
            let operation = Operation::Explore { query: query.to_owned(), prefix: PathPrefix::default(), limit: 20 };
            ask(generation, operation).expect("answered")
        };
        let response = explore("greet");
        assert_eq!(
            outline(&response),
            "app/util.py:1 greet\n\
             app/main.py:2 main resolved_static [3, 4]\n\
             app/util.py:4 Mailer.send resolved_static [5]\n\
             tests/test_util.py:2 test_greet resolved_static [3]\n"
        );
        let nothing = explore("gret");
        assert_eq!((nothing.items.len(), nothing.status), (0, Status::Ok));
        let near = nothing.coverage.near.expect("named");
        assert_eq!(near[0].qualified_name, "app.util.greet");
        assert!(explore("how does zorblax frobnicate").items.is_empty());
    });
}

#[test]
fn read_gives_lines_of_the_digest_asked_for() {
    with_generation(|generation| {
        let read = |path: &str, hash: ContentHash, start_line: u64, end_line: u64| {
            let path = RepoPath::parse(path).expect("valid");
            ask(generation, Operation::Read { path, file_sha256: hash, start_line, end_line })
        };
        let hash = ContentHash::of(FILES[1].source.as_bytes());
        let lines = |response: &Response| {
            let source = response.items[0].source.as_ref().expect("shown");
            source.lines.clone().map(|line| source.file.line(line).expect("exists")).collect::<String>()
        };
        assert_eq!(lines(&read("app/util.py", hash, 2, 3).expect("answered")), "    return name\nclass Mailer:\n");
        assert_eq!(lines(&read("app/util.py", hash, 7, 99).expect("answered")), "        pass\n");
        let code = |result: Result<Response>| result.expect_err("refused").code();
        assert_eq!(code(read("app/util.py", hash, 8, 9)), "code_range_missing");
        assert_eq!(code(read("app/util.py", hash, u64::MAX - 1, u64::MAX)), "code_range_missing");
        assert_eq!(code(read("app/util.py", ContentHash([0; 32]), 1, 1)), "code_changed");
        assert_eq!(code(read("app/none.py", hash, 1, 1)), "code_target_missing");
    });
}

#[test]
fn map_and_refusals() {
    with_generation(|generation| {
        let map =
            |path: &str, depth| ask(generation, Operation::Map { prefix: prefix(path), depth, limit: 3 }).expect("answered");
        assert_eq!(outline(&map("docs", 1)), "docs/mail.md:1 docs/mail.md\n");
        assert_eq!(outline(&map("", 1)), "");
        let all = map("app", 1);
        assert_eq!(outline(&all), "app/main.py:1 app/main.py\napp/main.py:2 main\napp/main.py:5 other\n");
        assert_eq!((all.total, all.status), (8, Status::Partial));

        let code = |request: &Request| answer(generation, None, "", request).expect_err("refused").code();
        let mut request = Request::new(Operation::Changes);
        assert_eq!(code(&request), "baseline_unavailable");
        request.operation = Operation::Map { prefix: PathPrefix::default(), depth: 1, limit: 1 };
        request.expected_fingerprint = Some(Fingerprint([0; 32]));
        assert_eq!(code(&request), "code_changed");
        for symbol_id in ["x", &"0".repeat(64)] {
            let relation = Relation { symbol_id: symbol_id.to_owned(), depth: 1, prefix: PathPrefix::default(), limit: 1 };
            assert_eq!(code(&Request::new(Operation::Callees(relation))), "code_target_missing");
        }
    });
}

#[test]
fn selection() {
    with_generation(|generation| {
        let check = |text: &str, expected: &str| {
            let names = |nodes: &[crate::store::NodeRow]| nodes.iter().map(select::qualified).collect::<Vec<_>>().join(" ");
            let actual = match select(generation, text, &PathPrefix::default()).expect("readable") {
                Selection::One(node) => select::qualified(&node),
                Selection::Several { choices, total } => format!("{total}: {}", names(&choices)),
                Selection::None { near } => format!("near {}", names(&near)),
            };
            assert_eq!(actual, expected, "{text}");
        };
        check("greet", "app.util.greet");
        check("app.util.greet", "app.util.greet");
        check("util.greet", "app.util.greet");
        check("til.greet", "near app.util.greet");
        check("send", "app.util.Mailer.send");
        check("Mailer::send", "app.util.Mailer.send");
        check("app/util.py:5", "app.util.Mailer.send");
        check("app/util.py:3", "app.util.Mailer");
        check("app/main.py:1", "app.main");
        check("app/main.py:99", "near ");
        check("app/util.py::send", "app.util.Mailer.send");
        check("app/util.py::Mailer.send", "app.util.Mailer.send");
        check("app/util.py", "app.util");
        check("app.util", "app.util");
        check("Mailr", "near app.util.Mailer");
        let whole = id(generation, "Mailer");
        check(&whole, "app.util.Mailer");
        check(&whole[..8], "app.util.Mailer");
        check(&whole[..7], "near ");
    });
}

#[test]
fn export_is_sorted_and_closed() {
    with_generation(|generation| {
        let mut out = Vec::new();
        export::write_generation(generation, &mut out).expect("written");
        let text = String::from_utf8(out).expect("UTF-8");
        let rows: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        let count = |kind: &str| rows.iter().filter(|row| row["row"] == kind).count();
        assert_eq!((count("node"), count("edge"), count("diagnostic")), (12, 13, 2));
        let places: Vec<_> = rows
            .iter()
            .filter(|row| row["row"] == "node")
            .map(|row| (row["path"].as_str().expect("text").to_owned(), row["start_byte"].as_u64()))
            .collect();
        assert!(places.is_sorted(), "{places:?}");
        assert!(text.starts_with(r#"{"row":"node","id":""#));
        let call = rows.iter().find(|row| row["row"] == "edge" && row["kind"] == "calls").expect("one");
        assert_eq!((&call["line"], &call["col_byte"]), (&serde_json::json!(3), &serde_json::json!(4)));
        assert_eq!(call["reference_key"].as_str().expect("text").len(), 64);
        let broken = export::write_generation(generation, &mut Full);
        assert!(matches!(broken, Err(export::ExportError::Write(_))));
    });
}

/// A receiver that takes nothing.
struct Full;

impl std::io::Write for Full {
    fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
        Err(std::io::ErrorKind::StorageFull.into())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn no_answer_is_made_after_the_deadline() {
    with_generation(|generation| {
        generation.read_until(Some(std::time::Instant::now() - std::time::Duration::from_secs(1)));
        let symbols = || Operation::Symbols { query: "greet".to_owned(), prefix: prefix(""), limit: 5 };
        let error = ask(generation, symbols()).expect_err("it is too late");
        assert_eq!(error.code(), "code_timeout");
        generation.read_until(None);
        assert!(ask(generation, symbols()).is_ok());
    });
}
