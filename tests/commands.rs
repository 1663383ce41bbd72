//! What the commands say and how they exit, from fresh processes.

use crate::sandbox::Sandbox;

const UTIL: &str = "def greet(name):\n    return name\n";
const MAIN: &str = "from app.util import greet\n\n\ndef main():\n    greet(\"x\")\n";

fn shop() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("app/main.py", MAIN);
    sandbox.write("app/util.py", UTIL);
    sandbox.write("README.md", "# Shop\n\nIt sells.\n");
    sandbox.commit_all();
    sandbox
}

fn indexed() -> Sandbox {
    let sandbox = shop();
    sandbox.sextant(&["index", "--quiet"]).ended(0);
    sandbox
}

#[test]
fn from_index_to_answers() {
    let sandbox = shop();
    let index = sandbox.sextant(&["index"]).ended(0);
    assert!(index.out.contains("3 files"), "{index:?}");
    let callers = sandbox.sextant(&["callers", "app.util.greet"]).ended(0);
    assert!(callers.out.contains("app/main.py:5"), "{callers:?}");
    assert!(callers.out.contains("fresh"), "{callers:?}");
    for arguments in [
        &["callees", "main"][..],
        &["explore", "how is somebody greeted"],
        &["symbols", "greet"],
        &["map"],
        &["map", "app"],
        &["read", "app/util.py:1-2"],
        &["read", "app/util.py"],
        &["status"],
        &["sync"],
        &["callers", "app/util.py:2"],
        &["callers", "app/util.py::greet"],
        &["callers", "greet", "--source"],
    ] {
        let run = sandbox.sextant(arguments).ended(0);
        assert!(!run.out.is_empty(), "{arguments:?}");
    }
    let cleared = sandbox.sextant(&["clear", "--json"]).ended(0);
    assert_eq!(cleared.json(), serde_json::json!({"status": "cleared", "retained_reader_generations": 0}));
    sandbox.sextant(&["callers", "greet"]).ended(4);
}

#[test]
fn nothing_is_indexed_unasked() {
    let sandbox = shop();
    for arguments in [&["explore", "greet"][..], &["callers", "greet"], &["read", "app/util.py"], &["export"]] {
        let run = sandbox.sextant(arguments).ended(4);
        assert!(run.err.contains("sextant index"), "{run:?}");
        assert!(run.out.is_empty());
    }
    let query = sandbox.query(r#"{"operation":{"kind":"symbols","query":"greet"}}"#).ended(4);
    assert_eq!(query.code(), "code_index_missing");
    assert!(!holds_generation(&sandbox), "a question built an index");
    let status = sandbox.sextant(&["status", "--json"]).ended(0);
    assert_eq!(status.json()["status"], "missing");
    sandbox.sextant(&["sync"]).ended(0);
    assert!(holds_generation(&sandbox));
}

fn holds_generation(sandbox: &Sandbox) -> bool {
    crate::bad_input::cache_files(sandbox).iter().any(|path| path.ends_with("graph.sqlite"))
}

#[test]
fn a_sync_says_what_it_did() {
    let sandbox = indexed();
    let unchanged = sandbox.sextant(&["sync", "--json"]).ended(0).json();
    for (key, value) in [("extracted_files", 0), ("removed_files", 0), ("resolved_files", 0)] {
        assert_eq!(unchanged[key], value, "{unchanged}");
    }
    sandbox.write("app/more.py", "from app.util import greet\ngreet(1)\n");
    let synced = sandbox.sextant(&["sync", "--json"]).ended(0).json();
    assert_eq!(synced["status"], "ready", "{synced}");
    assert_eq!(synced["extracted_files"], 1, "{synced}");
    assert_eq!(synced["reused_files"], 2, "{synced}");
    assert_ne!(synced["fingerprint"], unchanged["fingerprint"]);
    assert!(synced["elapsed_seconds"].is_number());
}

#[test]
fn an_implicit_scope_syncs_first_and_query_refuses() {
    let sandbox = indexed();
    sandbox.write("app/late.py", "from app.util import greet\ngreet(2)\n");
    sandbox.sextant(&["callers", "greet", "--on-stale", "refuse"]).ended(3);
    let request = r#"{"operation":{"kind":"symbols","query":"greet"}}"#;
    assert_eq!(sandbox.query(request).ended(3).code(), "code_changed");
    let callers = sandbox.sextant(&["callers", "greet"]).ended(0);
    assert!(callers.out.contains("app/late.py:2"), "{callers:?}");
    assert!(format!("{}{}", callers.out, callers.err).contains("synced"), "it is not said: {callers:?}");
    let answer = sandbox.query(request).ended(0).json();
    assert_eq!(answer["schema"], "powercontext.code-query.v1");
    let scope = answer["scope_id"].as_str().expect("a text");
    assert!(scope.len() == 15 && scope.starts_with("wt-"), "{scope}");
    assert_eq!(answer["dirty"], true);
}

#[test]
fn nothing_found_and_a_choice_exit_1() {
    let sandbox = shop();
    sandbox.write("app/other.py", "class A:\n    def go(self): pass\n\n\nclass B:\n    def go(self): pass\n");
    sandbox.sextant(&["index"]).ended(0);
    let choice = sandbox.sextant(&["callers", "go"]).ended(1);
    let said = format!("{}{}", choice.out, choice.err);
    assert!(said.contains("A.go") && said.contains("B.go"), "{said}");
    let nearest = sandbox.sextant(&["callers", "app.util.gret"]).ended(1);
    let said = format!("{}{}", nearest.out, nearest.err);
    assert!(said.contains("greet"), "{said}");
    sandbox.sextant(&["symbols", "zzzyzx"]).ended(1);
    sandbox.sextant(&["explore", "zzzyzx quux"]).ended(1);
    let empty = sandbox.query(r#"{"operation":{"kind":"symbols","query":"zzzyzx"}}"#).ended(0).json();
    assert_eq!(empty["items"], serde_json::json!([]));
    assert_eq!(empty["status"], "ok");
}

#[test]
fn json_is_the_contract() {
    let sandbox = indexed();
    let symbols = sandbox.sextant(&["symbols", "greet", "--json"]).ended(0).json();
    let greet = &symbols["items"][0];
    assert_eq!(greet["qualified_name"], "greet");
    let callers = sandbox.sextant(&["callers", "greet", "--json"]).ended(0).json();
    assert_eq!(callers["operation"], "callers");
    assert_eq!(callers["items"][0]["path"], "app/main.py");
    assert_eq!(callers["items"][0]["resolution"], "resolved_static");
    let request = serde_json::json!({
        "operation": {"kind": "callers", "symbol_id": greet["id"]},
        "expected_fingerprint": symbols["fingerprint"],
    });
    let strict = sandbox.query(&request.to_string()).ended(0).json();
    assert_eq!(strict["items"], callers["items"]);
    let read = serde_json::json!({
        "operation": {"kind": "read", "path": "app/util.py", "file_sha256": greet["file_sha256"], "start_line": 1, "end_line": 2},
        "expected_fingerprint": symbols["fingerprint"],
    });
    assert_eq!(sandbox.query(&read.to_string()).ended(0).json()["items"][0]["content"], UTIL);
    let small = sandbox.sextant(&["explore", "greet", "--json", "--max-bytes", "2000"]).ended(0);
    assert!(small.out.trim_end().len() <= 2000, "{} bytes", small.out.len());
}

#[test]
fn the_export_is_sorted_json_lines() {
    let sandbox = indexed();
    let export = sandbox.sextant(&["export"]).ended(0);
    let rows: Vec<serde_json::Value> =
        export.out.lines().map(|line| serde_json::from_str(line).expect("each line is JSON")).collect();
    let kinds: Vec<&str> = rows.iter().map(|row| row["row"].as_str().expect("a kind of row")).collect();
    let mut sorted = kinds.clone();
    sorted.sort_by_key(|kind| ["node", "edge", "diagnostic"].iter().position(|known| known == kind));
    assert_eq!(kinds, sorted, "nodes, then edges, then diagnostics");
    assert!(rows.iter().any(|row| row["row"] == "edge" && row["kind"] == "calls" && row["line"] == 5 && row["col_byte"] == 4));
    assert_eq!(sandbox.sextant(&["export"]).out, export.out);
}

#[test]
fn a_configured_scope_is_named_or_found() {
    let sandbox = shop();
    let config = sandbox.path().join("sextant.toml");
    let text = format!("[scopes.demo]\nroot = {:?}\nexclude = [\"README.md\"]\n", sandbox.tree().to_string_lossy());
    std::fs::write(&config, text).expect("the sandbox is writable");
    let config = config.to_string_lossy().into_owned();
    sandbox.sextant(&["index", "--scope", "demo", "--config", &config]).ended(0);
    let mut command = sandbox.program(&["symbols", "greet", "--json", "--scope", "demo"]);
    let answer = crate::program::Run::of(command.env("SEXTANT_CONFIG", &config)).ended(0).json();
    assert_eq!(answer["scope_id"], "demo");
    assert_eq!(answer["coverage"]["eligible_files"], 2);
    sandbox.sextant(&["status", "--scope", "other", "--config", &config, "--json"]).ended(2);
    sandbox.write("app/util.py", "def greet(name):\n    return 1\n");
    sandbox.sextant(&["callers", "greet", "--config", &config]).ended(3);
    sandbox.sextant(&["callers", "greet", "--config", &config, "--on-stale", "sync"]).ended(0);
}

#[test]
fn another_worktree_is_another_scope() {
    let sandbox = indexed();
    sandbox.git(&["worktree", "add", "--quiet", "../second", "-b", "second"]);
    let second = sandbox.path().join("second");
    let root = second.to_string_lossy().into_owned();
    sandbox.sextant(&["callers", "greet", "--root", &root]).ended(4);
    std::fs::write(second.join("app/util.py"), "def other(): pass\n").expect("the sandbox is writable");
    sandbox.sextant(&["index", "--root", &root]).ended(0);
    sandbox.sextant(&["symbols", "greet", "--root", &root, "--limit", "1"]);
    sandbox.sextant(&["symbols", "other", "--root", &root]).ended(0);
    assert!(sandbox.sextant(&["callers", "greet"]).ended(0).out.contains("app/main.py:5"));
}

#[test]
fn a_closed_pipe_is_quiet() {
    let sandbox = indexed();
    let mut command = sandbox.program(&["export"]);
    let mut child =
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().expect("the program starts");
    // The reader is gone before the program has anything to say.
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("the program ends");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

#[test]
fn help_and_version_answer() {
    let sandbox = Sandbox::new();
    assert!(sandbox.sextant(&["--help"]).ended(0).out.contains("callers"));
    assert!(sandbox.sextant(&["--version"]).ended(0).out.starts_with("sextant "));
}

#[test]
fn traces_hold_no_source_path_or_question() {
    let sandbox = Sandbox::new();
    sandbox.write("secretdir/secretfile.py", "def secretname():\n    \"\"\"secretdoc\"\"\"\n\n\nsecretname()\n");
    sandbox.commit_all();
    for arguments in [
        &["-vvv", "index"][..],
        &["-vvv", "explore", "secretquestion about secretdoc"],
        &["-vvv", "callers", "secretname"],
        &["-vvv", "read", "secretdir/secretfile.py"],
    ] {
        let run = sandbox.sextant(arguments);
        assert!(run.err.contains("scan"), "there is a trace: {run:?}");
        for line in run.err.lines().filter(|line| line.contains("DEBUG") || line.contains("TRACE") || line.contains("INFO")) {
            assert!(!line.contains("secret"), "{line}");
            assert!(!line.contains(&*sandbox.path().to_string_lossy()), "{line}");
        }
    }
}
