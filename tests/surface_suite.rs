//! Questions that every surface must answer alike, and a worktree to ask them in.
//!
//! Must not know a surface. Invariant: the command line answers them all, with answers and with refusals of every kind that the wire knows.

use std::fs;
use std::path::PathBuf;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::program::Run;
use crate::sandbox::Sandbox;

/// A worktree with an index and one before it, under a configuration that names it `demo`.
pub struct Suite {
    pub sandbox: Sandbox,
    pub config: PathBuf,
}

/// One question, and what it is about.
#[derive(Clone, Debug)]
pub struct Question {
    pub name: String,
    pub body: String,
}

/// What a surface said to a question: the text of the answer, or the code of the refusal.
pub type Said = Result<String, String>;

impl Suite {
    pub fn new() -> Self {
        Self::with("")
    }

    /// Makes one whose configuration says more.
    pub fn with(more: &str) -> Self {
        let sandbox = Sandbox::new();
        let config = sandbox.path().join("sextant.toml");
        fs::write(&config, format!("[scopes.demo]\nroot = {:?}\n{more}", sandbox.tree())).expect("written");
        let suite = Self { sandbox, config };
        suite.sandbox.write("app/lib.py", "import os\n\n\ndef f(x):\n    \"\"\"Doubles \u{201e}x\u{201d}.\"\"\"\n    return x * 2\n\n\nclass Cart:\n    def total(self):\n        return f(os.nosuch)\n");
        suite.sandbox.write("app/use.py", "from app.lib import Cart, f\n\n\ndef g():\n    return f(1) + Cart().total()\n");
        suite.sandbox.write("tests/test_lib.py", "from app.lib import f\n\n\ndef test_f():\n    assert f(1) == 2\n");
        suite.sandbox.write("main.go", "package main\n\nfunc main() { run() }\n\nfunc run() {}\n");
        suite.sandbox.write("web/a.ts", "export function h(): number { return 1 }\nexport const k = h()\n");
        suite.sandbox.write("README.md", "# Words\n\nNothing calls f here.\n");
        suite.sandbox.commit_all();
        suite.sextant(&["sync", "--quiet"]).ended(0);
        suite.sandbox.write(
            "app/use.py",
            "from app.lib import Cart, f\n\n\ndef g():\n    return f(2) + Cart().total()\n\n\ndef new():\n    return g()\n",
        );
        suite.sextant(&["sync", "--quiet"]).ended(0);
        suite
    }

    /// Runs a command on the scope.
    pub fn sextant(&self, arguments: &[&str]) -> Run {
        let config = self.config.to_string_lossy().into_owned();
        self.sandbox.sextant(&[arguments, &["--scope", "demo", "--config", &config, "--no-daemon"]].concat())
    }

    /// Answers a question by the command line.
    pub fn by_command(&self, body: &str) -> Said {
        let config = self.config.to_string_lossy().into_owned();
        let line = ["query", "--request-file", "-", "--scope", "demo", "--config", &config, "--no-daemon"];
        let mut command = self.sandbox.program(&line);
        command.stdin(Stdio::piped());
        let run = Run::told(&mut command, body);
        if run.status == Some(0) { Ok(run.out.trim_end().to_owned()) } else { Err(run.code()) }
    }

    /// Returns the questions. What they expect is what the index holds now.
    pub fn questions(&self) -> Vec<Question> {
        let ask = |operation: Value| -> Value {
            let answer = self.by_command(&json!({ "operation": operation }).to_string()).expect("it is answered");
            serde_json::from_str(&answer).expect("JSON")
        };
        let symbols = ask(json!({ "kind": "symbols", "query": "f" }));
        let now = symbols["fingerprint"].clone();
        let id_of = |name: &str| {
            let found = ask(json!({ "kind": "symbols", "query": name }));
            let items = found["items"].as_array().expect("a list").clone();
            let item =
                items.into_iter().find(|item| item["qualified_name"] == name).unwrap_or_else(|| panic!("{name} in {found}"));
            (item["id"].clone(), item["file_sha256"].clone())
        };
        let before = ask(json!({ "kind": "changes" }))["before_fingerprint"].clone();
        assert!(before.is_string(), "there is an index before");
        let ((f, _), (_, cart)) = (id_of("f"), id_of("Cart"));
        let mut found = Vec::new();
        let mut add = |name: &str, body: String| found.push(Question { name: name.to_owned(), body });
        let plain = |operation: Value| json!({ "operation": operation }).to_string();
        let bound = |operation: Value| json!({ "operation": operation, "expected_fingerprint": now }).to_string();
        add("status", plain(json!({ "kind": "status" })));
        add("map", plain(json!({ "kind": "map" })));
        add("map below", plain(json!({ "kind": "map", "path_prefix": "app", "depth": 5, "limit": 3 })));
        add("symbols", plain(json!({ "kind": "symbols", "query": "Cart.total" })));
        add("symbols of nothing", plain(json!({ "kind": "symbols", "query": "nosuchname" })));
        add("explore", plain(json!({ "kind": "explore", "query": "what doubles x" })));
        add("explore in few bytes", json!({ "operation": { "kind": "explore", "query": "f" }, "max_bytes": 2_000 }).to_string());
        for kind in ["callers", "callees", "impact"] {
            add(kind, bound(json!({ "kind": kind, "symbol_id": f, "depth": 3 })));
            add(&format!("{kind} of nothing"), bound(json!({ "kind": kind, "symbol_id": "0".repeat(64) })));
            add(&format!("{kind} at any index"), plain(json!({ "kind": kind, "symbol_id": f })));
        }
        add("affected tests", bound(json!({ "kind": "affected_tests", "paths": ["app/lib.py"] })));
        add("affected tests of nothing", bound(json!({ "kind": "affected_tests", "paths": ["nosuch.py"] })));
        let read = |first: u64, last: u64, hash: &Value| json!({ "kind": "read", "path": "app/lib.py", "file_sha256": hash, "start_line": first, "end_line": last });
        add("read", bound(read(4, 7, &cart)));
        add("read past the end", bound(read(90, 91, &cart)));
        add("read of another content", bound(read(1, 2, &json!("0".repeat(64)))));
        add("changes", plain(json!({ "kind": "changes" })));
        let compared = |before: &Value| {
            let operation = json!({ "kind": "impact_changes", "paths": ["app/use.py"] });
            json!({ "operation": operation, "expected_fingerprint": now, "before_fingerprint": before }).to_string()
        };
        add("impact of changes", compared(&before));
        add("impact of changes since never", compared(&json!("0".repeat(64))));
        add("diagnostics", plain(json!({ "kind": "diagnostics", "path": "app" })));
        add("another fingerprint", json!({ "operation": { "kind": "map" }, "expected_fingerprint": "0".repeat(64) }).to_string());
        add(
            "a status of another",
            json!({ "operation": { "kind": "status" }, "expected_fingerprint": "0".repeat(64) }).to_string(),
        );
        add("too few bytes", json!({ "operation": { "kind": "map" }, "max_bytes": 512 }).to_string());
        add("no such kind", plain(json!({ "kind": "nosuch" })));
        add("a limit as text", plain(json!({ "kind": "map", "limit": "5" })));
        add("a path that climbs", plain(json!({ "kind": "map", "path_prefix": "../.." })));
        add("a field too many", json!({ "operation": { "kind": "map" }, "more": 1 }).to_string());
        add("a name twice", r#"{"operation":{"kind":"map","kind":"map"}}"#.to_owned());
        add("no JSON", "{\"operation\"".to_owned());
        add("nothing", String::new());
        found
    }
}

/// Blanks what may differ between two surfaces: the time of the check, and times and the watcher in the last build. All else must be equal
/// to the byte.
pub fn comparable(answer: &str) -> String {
    let names: &[&str] = if answer.contains(r#""schema":"powercontext.code-status.v1""#) {
        &["watch", "elapsed_seconds", "finished_at"]
    } else {
        &["checked_at"]
    };
    names.iter().fold(answer.to_owned(), |answer, name| blank(&answer, name))
}

/// Blanks the value of the first field of a name: a string without escapes, or a number.
fn blank(answer: &str, name: &str) -> String {
    let Some((before, rest)) = answer.split_once(&format!("\"{name}\":")) else { return answer.to_owned() };
    let length = match rest.strip_prefix('"') {
        Some(text) => text.find('"').expect("it ends") + 2,
        None => rest.find([',', '}']).expect("it ends"),
    };
    format!("{before}\"{name}\":_{}", &rest[length..])
}

#[test]
fn what_may_differ_is_blanked_and_nothing_else() {
    let answer = r#"{"schema":"x","checked_at":"then","items":[{"watch":"a"}]}"#;
    assert_eq!(comparable(answer), r#"{"schema":"x","checked_at":_,"items":[{"watch":"a"}]}"#);
    let status = r#"{"schema":"powercontext.code-status.v1","last_build":{"elapsed_seconds":0.5,"finished_at":"then","watch":"none, yet"}}"#;
    let blanked = r#"{"schema":"powercontext.code-status.v1","last_build":{"elapsed_seconds":_,"finished_at":_,"watch":_}}"#;
    assert_eq!(comparable(status), blanked);
}
