//! `why` and the operation `diagnostics` from fresh processes, paths as seen from the current directory, and what is said of files that
//! nobody reads.

use serde_json::{Value, json};

use crate::program::Run;
use crate::sandbox::Sandbox;

/// A service that imports, calls what it is given, and calls what comes from outside.
fn service() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("app/core.py", "def f():\n    return 1\n");
    sandbox.write(
        "app/service.py",
        "import json\nfrom app.core import f\n\n\ndef serve(conn):\n    conn.send(f())\n    json.dumps(1)\n",
    );
    sandbox.write("web/App.vue", "<script></script>\n");
    sandbox.write("notes.ipynb", "{}\n");
    sandbox.commit_all();
    sandbox.sextant(&["index", "--quiet"]).ended(0);
    sandbox
}

fn ask(sandbox: &Sandbox, request: &Value) -> Run {
    sandbox.query(&request.to_string())
}

#[test]
fn the_operation_lists_what_is_not_bound() {
    let sandbox = service();
    let answer = ask(&sandbox, &json!({"operation": {"kind": "diagnostics", "path": "app"}})).ended(0).json();
    assert_eq!((&answer["operation"], &answer["status"]), (&json!("diagnostics"), &json!("ok")));
    let rows: Vec<String> = answer["items"].as_array().expect("a list").iter().map(row).collect();
    assert_eq!(
        rows,
        [
            "app/service.py:1:7 json imports external_import in app/service.py",
            "app/service.py:6:9 send calls dynamic_receiver in app.service.serve",
            "app/service.py:7:4 json references external_import in app.service.serve",
            "app/service.py:7:9 dumps calls external_import in app.service.serve",
        ]
    );
    let item = &answer["items"][1];
    let keys: Vec<&String> = item.as_object().expect("an object").keys().collect();
    let mut expected = vec![
        "path",
        "line",
        "col_byte",
        "name",
        "kind",
        "reason",
        "candidates",
        "resolution",
        "reference_key",
        "source_id",
        "source",
        "targets",
        "explanation",
    ];
    expected.sort_unstable();
    let mut keys: Vec<&str> = keys.into_iter().map(String::as_str).collect();
    keys.sort_unstable();
    assert_eq!(keys, expected);
    assert!(item["explanation"].as_str().expect("text").contains("what `conn` is cannot be told"), "{item}");
    for word in ["notebooks_not_read", "vue_files_not_read", "static_analysis_only"] {
        assert!(answer["limitations"].as_array().expect("a list").contains(&json!(word)), "{word}");
    }

    let cut = ask(&sandbox, &json!({"operation": {"kind": "diagnostics", "limit": 1}})).ended(0).json();
    assert_eq!((&cut["status"], cut["items"].as_array().map(Vec::len)), (&json!("partial"), Some(1)));
    assert!(cut["limitations"].as_array().expect("a list").contains(&json!("item_limit")));
    let small = ask(&sandbox, &json!({"operation": {"kind": "diagnostics"}, "max_bytes": 1200})).ended(0);
    assert!(small.out.trim_end().len() <= 1200, "{small:?}");
    assert!(small.json()["limitations"].as_array().expect("a list").contains(&json!("output_budget")));
}

fn row(item: &Value) -> String {
    let text = |key: &str| item[key].as_str().unwrap_or_default().to_owned();
    let place = format!("{}:{}:{}", text("path"), item["line"], item["col_byte"]);
    format!("{place} {} {} {} in {}", text("name"), text("kind"), text("reason"), text("source"))
}

#[test]
fn the_operation_answers_for_a_symbol_and_a_name() {
    let sandbox = service();
    let symbols = sandbox.sextant(&["symbols", "serve", "--json"]).ended(0).json();
    let (id, fingerprint) = (&symbols["items"][0]["id"], &symbols["fingerprint"]);
    let request = |symbol: &Value, name: &str| json!({"operation": {"kind": "diagnostics", "symbol_id": symbol, "name": name}, "expected_fingerprint": fingerprint});
    let bound = ask(&sandbox, &request(id, "core.f")).ended(0).json();
    let item = &bound["items"][0];
    assert_eq!((&item["resolution"], &item["reason"]), (&json!("resolved_static"), &Value::Null));
    assert_eq!(item["targets"][0]["qualified_name"], json!("app.core.f"));
    assert_eq!(item["targets"][0]["rule_id"], json!("explicit_import"));
    let none = ask(&sandbox, &request(id, "conn")).ended(0).json();
    assert_eq!((&none["items"], &none["coverage"]["written_on_lines"]), (&json!([]), &json!([5, 6])));
    for (request, code) in [
        (request(&json!("0".repeat(64)), "f"), "code_target_missing"),
        (json!({"operation": {"kind": "diagnostics", "path": "gone"}}), "code_target_missing"),
        (json!({"operation": {"kind": "diagnostics", "path": "ap"}}), "code_target_missing"),
        (json!({"operation": {"kind": "diagnostics", "symbol_id": id}}), "invalid_code_request"),
        (json!({"operation": {"kind": "diagnostics", "depth": 1}}), "invalid_code_request"),
    ] {
        let refused = ask(&sandbox, &request).ended(2);
        assert!(refused.err.contains(code), "{request}: {refused:?}");
    }
}

#[test]
fn why_exits_as_questions_do() {
    let sandbox = service();
    let found = sandbox.sextant(&["why", "serve", "send", "--quiet"]).ended(0);
    assert!(found.out.starts_with("app/service.py:6 the call of `conn.send` has no edge"), "{found:?}");
    assert_eq!(sandbox.sextant(&["why", "serve", "send", "--json"]).ended(0).json()["operation"], json!("diagnostics"));
    sandbox.sextant(&["why", "serve", "zzz"]).ended(1);
    sandbox.sextant(&["why", "serv", "send"]).ended(1);
    assert!(sandbox.sextant(&["why", "nobody", "send", "--json"]).ended(1).err.contains("code_target_missing"));
    assert!(sandbox.sextant(&["why", "app"]).ended(0).out.contains("app/service.py:7"));
    assert!(
        sandbox
            .sextant(&["why", "app/core.py"])
            .ended(1)
            .out
            .contains("every stored reference in app/core.py has a certain edge")
    );
    sandbox.write("app/core.py", "def f():\n    return 2\n");
    assert!(sandbox.sextant(&["why", "serve", "send", "--on-stale", "refuse"]).ended(3).err.contains("code_changed"));
}

#[test]
fn paths_are_taken_as_seen_from_here() {
    let sandbox = service();
    let from = |directory: &str, arguments: &[&str]| {
        let mut command = sandbox.program(arguments);
        Run::of(command.current_dir(sandbox.tree().join(directory)))
    };
    for (directory, place) in [("", "app/core.py:1"), ("app", "core.py:1"), ("app", "app/core.py:1"), ("web", "../app/core.py:1")]
    {
        assert!(from(directory, &["read", place]).ended(0).out.starts_with("app/core.py:1-1\n"), "{directory} {place}");
    }
    let absolute = sandbox.tree().join("app/core.py");
    assert!(from("web", &["read", &absolute.to_string_lossy()]).ended(0).out.starts_with("app/core.py:1-2\n"));
    from("app", &["read", "../../core.py"]).ended(2);
    from("app", &["read", "gone.py"]).ended(1);
    for arguments in
        [&["impact", "core.py"][..], &["impact", "core.py:1"], &["callers", "core.py::f"], &["callers", "f", "--path", "."]]
    {
        assert!(from("app", arguments).ended(0).out.contains("app/service.py:6"), "{arguments:?}");
    }
    assert!(from("app", &["map", "."]).ended(0).out.starts_with("app/core.py"));
    assert!(from("app", &["map"]).ended(0).out.starts_with("app/core.py"));
    assert!(from("web", &["map", "../app", "--depth", "1"]).ended(0).out.starts_with("app/core.py"));
    assert!(from("app", &["callers", "f", "--path", "core.py"]).ended(1).out.contains("outside the path"));
    from("app", &["map", "../.."]).ended(2);
    assert!(from("app", &["why", "service.py", "send"]).ended(0).out.contains("app/service.py:6"));
}

#[test]
fn a_depth_that_means_nothing_is_refused() {
    let sandbox = service();
    for arguments in
        [["callers", "f"], ["callees", "f"], ["explore", "f"], ["symbols", "f"], ["why", "f"], ["tests", "app/core.py"]]
    {
        let run = sandbox.sextant(&[&arguments[..], &["--depth", "3"]].concat()).ended(2);
        assert!(run.err.contains("--depth belongs to `impact` and `map`"), "{run:?}");
    }
    sandbox.sextant(&["impact", "f", "--depth", "3"]).ended(0);
    sandbox.sextant(&["map", "--depth", "3"]).ended(0);
}

#[test]
fn files_that_nobody_reads_are_named() {
    let sandbox = service();
    let said = "not read: notebooks (.ipynb), Vue components (.vue)";
    assert!(sandbox.sextant(&["callers", "f"]).ended(0).out.contains(said));
    assert!(sandbox.sextant(&["tests", "app/core.py"]).ended(1).err.contains(said));
    assert!(sandbox.sextant(&["status"]).ended(0).out.contains("not read    notebooks (.ipynb), Vue components (.vue)"));
    let status = sandbox.sextant(&["status", "--json"]).ended(0).json();
    let limitations = status["last_build"]["limitations"].as_array().expect("a list");
    assert!(limitations.contains(&json!("vue_files_not_read")), "{status}");
    for arguments in
        [&["callers", "f"][..], &["callees", "serve"], &["impact", "f"], &["explore", "f"], &["tests", "app/core.py"]]
    {
        let run = sandbox.sextant(&[arguments, &["--json"]].concat());
        for word in ["vue_files_not_read", "notebooks_not_read"] {
            assert!(run.json()["limitations"].as_array().expect("a list").contains(&json!(word)), "{arguments:?} {word}");
        }
    }
}

#[test]
fn a_repository_that_cannot_be_read_is_of_unknown_state() {
    let sandbox = service();
    std::fs::write(sandbox.tree().join(".git/config"), "[core\n").expect("writable");
    let status = sandbox.sextant(&["status", "--json"]).ended(0).json();
    assert_eq!((&status["freshness"], &status["status"]), (&json!("unknown"), &json!("stale")));
    assert_eq!(status["reason"], json!("repository_unavailable"));
    assert!(status["fingerprint"].is_string());
    sandbox.sextant(&["callers", "f"]).ended(5);
    sandbox.sextant(&["sync"]).ended(5);
}
