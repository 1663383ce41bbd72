//! What `--json` prints, held against the schemas in `docs/schema`.
//!
//! Invariant: a schema names every field, so that a new one fails until it is described.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;

use serde_json::Value;

use crate::program::Run;
use crate::sandbox::{Sandbox, write_file};

fn schemas() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/schema")
}

fn validator(name: &str) -> jsonschema::Validator {
    let text = fs::read_to_string(schemas().join(format!("{name}.json"))).unwrap_or_else(|error| panic!("{name}: {error}"));
    let schema: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
    jsonschema::options().build(&schema).unwrap_or_else(|error| panic!("{name}: {error}"))
}

#[track_caller]
fn check(name: &str, value: &Value) {
    let found: Vec<String> =
        validator(name).iter_errors(value).map(|error| format!("{} at {}", error, error.instance_path())).collect();
    assert!(found.is_empty(), "{name}: {found:#?} in {value}");
}

#[track_caller]
fn check_lines(name: &str, text: &str) {
    assert!(!text.is_empty(), "{name}");
    for line in text.lines() {
        check(name, &serde_json::from_str(line).unwrap_or_else(|error| panic!("{error} in {line}")));
    }
}

/// A small repository of which every kind of answer has something to say.
fn shop() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write(
        "shop/cart.py",
        "class Cart:\n    def total(self, items):\n        return sum(items)\n\n\ndef open_cart():\n    return Cart()\n",
    );
    sandbox.write(
        "shop/order.py",
        "from shop.cart import Cart, open_cart\n\n\ndef place(cart: Cart, other):\n    other.ship()\n    open_cart()\n    return cart.total([1])\n",
    );
    sandbox.write("tests/test_order.py", "from shop.order import place\n\n\ndef test_place():\n    place(None, None)\n");
    sandbox.write("README.md", "# Shop\n");
    sandbox.write("logo.png", b"\x89PNG\x00");
    sandbox.write("bad.py", "def broken(:\n    pass\n");
    sandbox.commit_all();
    sandbox
}

#[test]
fn builds_and_status() {
    let sandbox = shop();
    check("code-status.v1", &sandbox.sextant(&["status", "--json"]).ended(0).json());
    check("build", &sandbox.sextant(&["index", "--json"]).ended(0).json());
    check("build", &sandbox.sextant(&["sync", "--verify", "--json"]).ended(0).json());
    check("code-status.v1", &sandbox.sextant(&["status", "--json"]).ended(0).json());
    check("code-status.v1", &sandbox.query(r#"{"operation":{"kind":"status"}}"#).ended(0).json());
    check_lines("export-row", &sandbox.sextant(&["export"]).ended(0).out);
    sandbox.write("shop/cart.py", "def open_cart():\n    return 1\n");
    check("code-status.v1", &sandbox.sextant(&["status", "--json"]).ended(0).json());
    check("cleared", &sandbox.sextant(&["clear", "--json"]).ended(0).json());
    check_error(&sandbox.sextant(&["callers", "total", "--json"]).ended(4));
    check_error(&sandbox.query("{}").ended(2));
}

#[track_caller]
fn check_error(run: &Run) {
    let last = run.err.lines().last().unwrap_or_default();
    check("error", &serde_json::from_str(last).unwrap_or_else(|error| panic!("{error} in {run:?}")));
}

#[test]
fn questions() {
    let sandbox = shop();
    sandbox.sextant(&["index", "--quiet"]).ended(0);
    sandbox.write(
        "shop/order.py",
        "from shop.cart import open_cart\n\n\ndef place():\n    return open_cart()\n\n\ndef late(): pass\n",
    );
    for (arguments, status) in [
        (&["explore", "total of a cart"][..], 0),
        (&["symbols", "total"], 0),
        (&["symbols", "tootal"], 1),
        (&["callers", "open_cart"], 0),
        (&["callers", "total"], 1),
        (&["callees", "place", "--source"], 0),
        (&["impact", "shop/cart.py"], 0),
        (&["tests", "shop/cart.py"], 0),
        (&["why", "shop"], 0),
        (&["why", "tests"], 1),
        (&["why", "place", "open_cart"], 0),
        (&["map"], 0),
        (&["map", "shop", "--depth", "5"], 0),
        (&["read", "shop/cart.py:1-3"], 0),
        (&["changes"], 0),
        (&["impact-changes"], 0),
        (&["explore", "cart", "--max-bytes", "2500"], 0),
    ] {
        let run = sandbox.sextant(&[arguments, &["--json"]].concat());
        assert_eq!(run.status, Some(status), "{arguments:?}: {run:#?}");
        check("code-query.v1", &run.json());
    }
    check("tree.v1", &sandbox.sextant(&["map", "--tree", "--json"]).ended(0).json());
    check("graph.v1", &sandbox.sextant(&["graph", "place", "--json"]).ended(0).json());
    check_error(&sandbox.sextant(&["graph", "nothing", "--json"]).ended(1));
}

#[test]
fn the_daemon_and_what_looks_at_things() {
    let sandbox = shop();
    check("doctor", &sandbox.sextant(&["doctor", "--json"]).ended(0).json());
    check("config", &sandbox.sextant(&["config", "show", "--json"]).ended(0).json());
    check("daemon", &sandbox.sextant(&["daemon", "status", "--json"]).ended(1).json());
    check("daemon", &sandbox.sextant(&["daemon", "start", "--json"]).ended(0).json());
    sandbox.sextant(&["index", "--quiet"]).ended(0);
    check("build", &sandbox.sextant(&["sync", "--no-wait", "--json"]).ended(0).json());
    check("daemon", &sandbox.sextant(&["daemon", "status", "--json"]).ended(0).json());
    check("doctor", &sandbox.sextant(&["doctor", "--json"]).ended(0).json());
    check("daemon", &sandbox.sextant(&["daemon", "stop", "--json"]).ended(0).json());
}

#[test]
fn registrations() {
    let sandbox = shop();
    for arguments in [
        &["install", "claude", "git", "--dry-run"][..],
        &["install", "claude", "codex", "opencode", "git"],
        &["install", "claude"],
        &["install", "cursor", "--project"],
        &["uninstall", "claude", "codex", "opencode", "git"],
        &["uninstall", "gemini"],
    ] {
        let said = sandbox.sextant(&[arguments, &["--json"]].concat()).ended(0).json();
        assert!(said["files"].as_array().is_some_and(|files| !files.is_empty()), "{arguments:?}: {said}");
        check("install", &said);
    }
    write_file(&sandbox.path().join("home/.gemini/settings.json"), b"{");
    check_error(&sandbox.sextant(&["install", "gemini", "--json"]).ended(5));
}

#[test]
fn events() {
    let sandbox = shop();
    let mut command = sandbox.program(&["watch", "--json"]);
    let mut child = command.stdout(Stdio::piped()).spawn().expect("the program starts");
    let mut lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
    let mut next = || lines.next().expect("it goes on").expect("it is text");
    let mut said = next();
    check("watch-event", &serde_json::from_str(&said).expect("JSON"));
    sandbox.write("shop/late.py", "from shop.cart import nothing\n\nnothing()\n");
    while !said.contains("\"sync\"") {
        said = next();
        check("watch-event", &serde_json::from_str(&said).expect("JSON"));
    }
    child.kill().expect("it is ours");
    child.wait().expect("it ends");
}

#[test]
fn every_schema_is_listed_and_whole() {
    let list = fs::read_to_string(schemas().join("README.md")).expect("it is there");
    for entry in fs::read_dir(schemas()).expect("it is there") {
        let path = entry.expect("readable").path();
        let Some(name) = path.file_name().and_then(|name| name.to_str()).filter(|name| name.ends_with(".json")) else { continue };
        assert!(list.contains(&format!("({name})")), "{name} is not listed");
        validator(name.trim_end_matches(".json"));
    }
    // A schema that lets everything pass would prove nothing.
    for (name, foreign) in [("build", r#"{"status":"ready"}"#), ("error", r#"{"error":{"code":"x","y":1}}"#), ("doctor", "{}")] {
        assert!(!validator(name).is_valid(&serde_json::from_str(foreign).expect("JSON")), "{name}");
    }
}
