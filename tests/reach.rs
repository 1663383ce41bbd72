//! `impact` and `tests` from fresh processes: what they print where, and how they exit.

use std::io::Write;
use std::process::Stdio;

use crate::program::Run;
use crate::sandbox::Sandbox;

/// Runs the program with something on its standard input.
fn with_input(sandbox: &Sandbox, arguments: &[&str], input: &[u8]) -> Run {
    let mut command = sandbox.program(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program starts");
    child.stdin.take().expect("it is piped").write_all(input).expect("the program reads");
    Run::from(child.wait_with_output().expect("the program ends"))
}

/// A shop whose service is tested through two steps, with a file that no test uses.
fn shop() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("app/core.py", "def f():\n    return 1\n");
    sandbox.write("app/service.py", "from app.core import f\n\n\ndef serve():\n    return f()\n");
    sandbox.write("app/lonely.py", "def nobody():\n    return 1\n");
    sandbox.write("tests/test_service.py", "from app.service import serve\n\n\ndef test_serve():\n    assert serve()\n");
    sandbox.write("README.md", "# Shop\n");
    sandbox.commit_all();
    sandbox.sextant(&["index", "--quiet"]).ended(0);
    sandbox
}

#[test]
fn tests_prints_paths_alone_and_says_the_rest_beside() {
    let sandbox = shop();
    let run = sandbox.sextant(&["tests", "app/core.py"]).ended(0);
    assert_eq!(run.out, "tests/test_service.py\n");
    assert!(run.err.contains("not followed: fixtures") && run.err.contains("fresh"), "{run:?}");
    let quiet = sandbox.sextant(&["tests", "--quiet", "app/core.py"]).ended(0);
    assert_eq!((quiet.out.as_str(), quiet.err.as_str()), ("tests/test_service.py\n", ""));
}

#[test]
fn no_tests_is_said_only_of_what_was_followed() {
    let sandbox = shop();
    let none = sandbox.sextant(&["tests", "app/lonely.py"]).ended(1);
    assert_eq!(none.out, "");
    assert!(none.err.contains("no test found"), "{none:?}");
    // One that cannot be followed may have tests, whatever is known of the other.
    for path in ["app/gone.py", "README.md", "app", "/etc/passwd", "../x.py", "a:b"] {
        for arguments in [&["tests", path][..], &["tests", "app/lonely.py", path]] {
            let run = sandbox.sextant(arguments).ended(2);
            assert!(run.err.contains(&format!("not followed: {path} (")), "{run:?}");
            assert_eq!(run.out, "");
        }
        let some = sandbox.sextant(&["tests", "app/core.py", path]).ended(0);
        assert_eq!(some.out, "tests/test_service.py\n");
        assert!(some.err.contains(&format!("not followed: {path} (")), "{some:?}");
    }
    // A test that found no room is no answer either, and is not denied.
    let crowded = sandbox.sextant(&["tests", "app/core.py", "--max-bytes", "1000"]).ended(5);
    assert_eq!(crowded.out, "");
    assert!(crowded.err.contains("0 of 2 in test files; a larger --max-bytes"), "{crowded:?}");
    std::fs::remove_file(sandbox.tree().join("app/lonely.py")).expect("it was written");
    let deleted = sandbox.sextant(&["tests", "app/lonely.py"]).ended(2);
    assert!(deleted.err.contains("app/lonely.py (not in the index: deleted"), "{deleted:?}");
    sandbox.sextant(&["tests"]).ended(2);
}

#[test]
fn paths_come_as_git_prints_them_or_as_seen_from_here() {
    let sandbox = shop();
    let with_input = |input: &[u8]| with_input(&sandbox, &["tests", "--stdin", "--quiet"], input);
    for input in ["app/core.py\n", "app/core.py", "app/core.py\r\n\r\n", "./app/core.py\n", "app/lonely.py\n\napp/core.py\n"] {
        assert_eq!(with_input(input.as_bytes()).ended(0).out, "tests/test_service.py\n", "{input:?}");
    }
    sandbox.write("app/na\u{ef}ve.py", "from app.core import f\n");
    sandbox.sextant(&["sync", "--quiet"]).ended(0);
    for input in [&b"\"app/na\\303\\257ve.py\"\napp/core.py\n"[..], b"app/na\xc3\xafve.py\0app/core.py\0"] {
        let run = with_input(input).ended(0);
        assert_eq!((run.out.as_str(), run.err.as_str()), ("tests/test_service.py\n", ""), "{}", input.escape_ascii());
    }
    let no_text = with_input(b"\xff.py\napp/core.py\n").ended(0);
    assert_eq!(no_text.out, "tests/test_service.py\n");
    assert!(no_text.err.contains("not followed: \u{fffd}.py (not in the index"), "{no_text:?}");
    assert_eq!(with_input(b"").ended(1).out, "");
    let many: String = (0..300).map(|index| format!("app/none{index}.py\n")).collect();
    let run = with_input(format!("{many}app/core.py\n").as_bytes()).ended(0);
    assert_eq!((run.out.as_str(), run.err.lines().count()), ("tests/test_service.py\n", 300));

    let from = |directory: &str, path: &str| {
        let mut command = sandbox.program(&["tests", "--quiet", path]);
        Run::of(command.current_dir(sandbox.tree().join(directory))).ended(0).out
    };
    assert_eq!(from("app", "core.py"), "../tests/test_service.py\n");
    assert_eq!(from("app", "app/core.py"), "../tests/test_service.py\n");
    assert_eq!(from("tests", "../app/core.py"), "test_service.py\n");
    let absolute = sandbox.tree().join("app/core.py").to_string_lossy().into_owned();
    assert_eq!(from("tests", &absolute), "test_service.py\n");
}

#[test]
fn json_is_the_contract() {
    let sandbox = shop();
    let answer = sandbox.sextant(&["tests", "--json", "app/core.py", "app/gone.py", "README.md"]).ended(0).json();
    assert_eq!(answer["operation"], "affected_tests");
    let not_followed = serde_json::json!([
        {"path": "README.md", "reason": "not_source"},
        {"path": "app/gone.py", "reason": "not_indexed"},
    ]);
    assert_eq!(answer["coverage"]["paths_not_followed"], not_followed);
    let words = answer["limitations"].to_string();
    assert!(
        words.contains("test_candidates_do_not_replace_required_tests") && words.contains("fixtures_not_followed"),
        "{words}"
    );
    let names: Vec<&str> =
        answer["items"].as_array().expect("a list").iter().filter_map(|item| item["qualified_name"].as_str()).collect();
    assert_eq!(names, ["tests/test_service.py", "test_serve"]);
    let last = &answer["items"][1];
    assert_eq!((&last["reason"], &last["resolution"]), (&"static_path".into(), &"resolved_static".into()));
    let path = last["witness_path"].as_array().expect("a list");
    assert_eq!(path.len(), 2);
    assert_eq!(path[1]["source_id"], last["id"]);
    assert_eq!(path[0]["source_id"], path[1]["target_id"]);

    let strict = |paths: serde_json::Value| {
        let operation = serde_json::json!({"kind": "affected_tests", "paths": paths});
        let request = serde_json::json!({"operation": operation, "expected_fingerprint": answer["fingerprint"]});
        sandbox.query(&request.to_string())
    };
    assert_eq!(strict(["app/core.py"].as_slice().into()).ended(0).json()["items"], answer["items"]);
    assert_eq!(strict(["app/core.py", "app/gone.py"].as_slice().into()).ended(2).code(), "code_target_missing");
    assert_eq!(strict(["README.md"].as_slice().into()).ended(2).code(), "code_target_missing");
    let missing = sandbox.sextant(&["tests", "--json", "app/gone.py"]).ended(2);
    assert_eq!((missing.out.as_str(), missing.code().as_str()), ("", "code_target_missing"));
    let none = sandbox.sextant(&["tests", "--json", "app/lonely.py"]).ended(1).json();
    assert_eq!((&none["status"], &none["items"]), (&"ok".into(), &serde_json::json!([])));
}

#[test]
fn impact_of_a_name_a_file_and_nothing() {
    let sandbox = shop();
    let run = sandbox.sextant(&["impact", "app.core.f"]).ended(0);
    assert!(run.out.contains("app/service.py:5 serve calls app.core.f  resolved_static"), "{run:?}");
    assert!(run.out.contains("app/service.py:1 module level imports app.core.f"), "{run:?}");
    sandbox.sextant(&["impact", "app/core.py", "--depth", "5"]).ended(0);
    sandbox.sextant(&["impact", "app.core.g"]).ended(1);
    let nobody = sandbox.sextant(&["impact", "nobody"]).ended(1);
    assert!(nobody.out.contains("no use found of app.lonely.nobody"), "{nobody:?}");
    sandbox.sextant(&["impact", "f", "--depth", "6"]).ended(2);
    let json = sandbox.sextant(&["impact", "app.core.f", "--json", "--max-bytes", "3000"]).ended(0);
    assert!(json.out.trim_end().len() <= 3000, "{json:?}");
    assert_eq!(json.json()["items"][0]["granularity"], "symbol", "the strongest are kept");
    let status = sandbox.sextant(&["status", "--json"]).ended(0).json();
    let operations = status["operations"].to_string();
    assert!(operations.contains("impact") && operations.contains("affected_tests"), "{operations}");
}

#[test]
fn changed_paths_come_from_standard_input_too() {
    let sandbox = shop();
    sandbox.write("app/core.py", "def f():\n    return 2\n");
    sandbox.write("app/lonely.py", "def nobody():\n    return 2\n");
    sandbox.sextant(&["sync", "--quiet"]).ended(0);
    let with_input = |input: &str| with_input(&sandbox, &["impact-changes", "--stdin", "--quiet"], input.as_bytes());
    assert!(with_input("app/core.py\napp/lonely.py\n").ended(0).out.contains("serve"));
    // No path is not every path.
    assert_eq!(with_input("").ended(1).out, "");
    assert!(with_input("app/lonely.py\n").ended(1).out.contains("1 definition"), "what changed is said");
    assert!(with_input("app/service.py\n").ended(1).err.contains("did not change"));
}
