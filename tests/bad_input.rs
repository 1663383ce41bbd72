//! Whatever comes in, the contract's error goes out, with a sentence that says what to do, and the published index still serves.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::program::indexed;
use crate::sandbox::Sandbox;

/// Returns every file of the cache, sorted.
pub fn cache_files(sandbox: &Sandbox) -> Vec<PathBuf> {
    fn collect(directory: &Path, files: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() { collect(&path, files) } else { files.push(path) }
        }
    }
    let mut files = Vec::new();
    collect(&sandbox.path().join("cache"), &mut files);
    files.sort();
    files
}

fn answers(sandbox: &Sandbox) {
    let run = sandbox.sextant(&["callers", "lib.f", "--on-stale", "refuse"]).ended(0);
    assert!(run.out.contains("use.py:5"), "{run:?}");
}

#[test]
fn requests_that_do_not_fit() {
    let sandbox = indexed();
    let fingerprint = sandbox.sextant(&["status", "--json"]).ended(0).json()["fingerprint"].as_str().expect("a text").to_owned();
    let long = format!(r#"{{"operation":{{"kind":"symbols","query":"{}"}}}}"#, "x".repeat(8193));
    let huge = format!(r#"{{"operation":{{"kind":"symbols","query":"f"}},{}"max_bytes":16000}}"#, " ".repeat(70_000));
    for (request, code, status) in [
        ("", "invalid_code_request", 2),
        ("[]", "invalid_code_request", 2),
        ("{", "invalid_code_request", 2),
        (r#"{"operation":{"kind":"symbols","query":"f"},"extra":1}"#, "invalid_code_request", 2),
        (r#"{"operation":{"kind":"symbols","query":"f","extra":1}}"#, "invalid_code_request", 2),
        (r#"{"operation":{"kind":"symbols","query":"f","limit":"5"}}"#, "invalid_code_request", 2),
        (r#"{"operation":{"kind":"symbols","query":"f","limit":true}}"#, "invalid_code_request", 2),
        (r#"{"operation":{"kind":"symbols","query":"f","limit":1.5}}"#, "invalid_code_request", 2),
        (r#"{"operation":{"kind":"symbols","query":"f","limit":51}}"#, "invalid_code_request", 2),
        (r#"{"operation":{"kind":"symbols","query":"f","limit":0}}"#, "invalid_code_request", 2),
        (r#"{"operation":{"kind":"symbols","query":" "}}"#, "invalid_code_request", 2),
        (r#"{"operation":{"kind":"symbols"}}"#, "invalid_code_request", 2),
        (r#"{"operation":{"kind":"nonsense"}}"#, "invalid_code_request", 2),
        (r#"{"operation":{"kind":"symbols","query":"f"},"max_bytes":511}"#, "invalid_code_request", 2),
        (r#"{"operation":{"kind":"symbols","query":"f"},"max_bytes":32769}"#, "invalid_code_request", 2),
        (r#"{"operation":{"kind":"symbols","query":"f"},"max_bytes":512}"#, "budget_too_small", 2),
        (r#"{"operation":{"kind":"symbols","query":"f","path_prefix":"../x"}}"#, "invalid_code_request", 2),
        (r#"{"operation":{"kind":"symbols","query":"f","path_prefix":"/etc"}}"#, "invalid_code_request", 2),
        (r#"{"operation":{"kind":"symbols","query":"f","path_prefix":"a\\b"}}"#, "invalid_code_request", 2),
        (r#"{"operation":{"kind":"symbols","query":"f","path_prefix":"a\u0000"}}"#, "invalid_code_request", 2),
        (r#"{"operation":{"kind":"symbols","query":"f","path_prefix":"\ud800"}}"#, "invalid_code_request", 2),
        (r#"{"operation":{"kind":"callers","symbol_id":"x"}}"#, "invalid_code_request", 2),
        (&long, "invalid_code_request", 2),
        (&huge, "invalid_code_request", 2),
    ] {
        let run = sandbox.query(request).ended(status);
        assert_eq!(run.code(), code, "{request}");
        assert!(run.out.is_empty(), "{request}");
        assert!(run.err.lines().count() >= 2, "a sentence goes before the code: {run:?}");
    }
    let other = "0".repeat(64);
    for (operation, fingerprint, code, status) in [
        (format!(r#"{{"kind":"callers","symbol_id":"{other}"}}"#), &fingerprint, "code_target_missing", 2),
        (format!(r#"{{"kind":"callers","symbol_id":"{other}"}}"#), &other, "code_changed", 3),
        (
            format!(r#"{{"kind":"read","path":"absent.py","file_sha256":"{other}","start_line":1,"end_line":1}}"#),
            &fingerprint,
            "code_target_missing",
            2,
        ),
        (
            format!(r#"{{"kind":"read","path":"lib.py","file_sha256":"{other}","start_line":1,"end_line":1}}"#),
            &fingerprint,
            "code_changed",
            3,
        ),
        (
            format!(r#"{{"kind":"read","path":"../lib.py","file_sha256":"{other}","start_line":1,"end_line":1}}"#),
            &fingerprint,
            "invalid_code_request",
            2,
        ),
        (format!(r#"{{"kind":"impact","symbol_id":"{other}"}}"#), &fingerprint, "code_target_missing", 2),
        (r#"{"kind":"changes"}"#.to_owned(), &fingerprint, "baseline_unavailable", 5),
    ] {
        let request = format!(r#"{{"operation":{operation},"expected_fingerprint":"{fingerprint}"}}"#);
        let run = sandbox.query(&request).ended(status);
        assert_eq!(run.code(), code, "{request}");
    }
    answers(&sandbox);
}

#[test]
fn command_lines_that_do_not_fit() {
    let sandbox = indexed();
    for arguments in [
        &["nonsense"][..],
        &[],
        &["callers"],
        &["callers", "f", "--limit", "x"],
        &["callers", "f", "--limit", "0"],
        &["callers", "f", "--limit", "1000"],
        &["map", "--depth", "9"],
        &["explore", "   "],
        &["explore", "f", "--path", "../.."],
        &["explore", "f", "--max-bytes", "5"],
        &["read", "../lib.py"],
        &["read", "/etc/passwd"],
        &["read", "lib.py:9-2"],
        &["query", "--request-file", "absent.json"],
    ] {
        let run = sandbox.sextant(arguments).ended(2);
        assert!(!run.err.is_empty(), "{arguments:?}");
        let mut with_json = vec!["--json"];
        with_json.extend(arguments);
        if !arguments.is_empty() {
            assert_eq!(sandbox.sextant(&with_json).ended(2).code(), "invalid_code_request", "{arguments:?}");
        }
    }
    answers(&sandbox);
}

#[test]
fn roots_that_cannot_be_used() {
    let sandbox = indexed();
    sandbox.write("sub/deep.py", "");
    let home = sandbox.path().join("home").to_string_lossy().into_owned();
    let file = sandbox.tree().join("lib.py").to_string_lossy().into_owned();
    for (root, code) in [
        ("absent", "repository_unavailable"),
        (file.as_str(), "repository_unavailable"),
        ("sub", "repository_root_required"),
        ("/", "repository_root_required"),
        (home.as_str(), "repository_root_required"),
    ] {
        let run = sandbox.sextant(&["index", "--json", "--root", root]);
        assert_eq!(run.code(), code, "{root}");
        assert!(!run.err.contains(&*sandbox.path().to_string_lossy()), "an absolute path is named: {run:?}");
    }
    let mut command = sandbox.program(&["index"]);
    crate::program::Run::of(command.current_dir(sandbox.path().join("home"))).ended(2);
    answers_after_sync(&sandbox);
}

fn answers_after_sync(sandbox: &Sandbox) {
    sandbox.sextant(&["sync"]).ended(0);
    answers(sandbox);
}

#[test]
fn a_cache_inside_the_tree_is_refused() {
    let sandbox = indexed();
    let mut command = sandbox.program(&["index", "--json"]);
    let run = crate::program::Run::of(command.env("XDG_CACHE_HOME", sandbox.tree().join("cache"))).ended(2);
    assert_eq!(run.code(), "code_cache_inside_repository");
    assert!(!sandbox.tree().join("cache").exists());
}

#[test]
fn configurations_that_do_not_fit() {
    let sandbox = indexed();
    let config = sandbox.path().join("sextant.toml");
    for text in [
        "nonsense",
        "cache_dir = 1",
        "cache_dir = \"relative\"",
        "unknown = true",
        "[limits]\nmax_files = 0",
        "[scopes.x]\nroot = \"rel\"",
    ] {
        fs::write(&config, text).expect("the sandbox is writable");
        let run = sandbox.sextant(&["status", "--json", "--config", &config.to_string_lossy()]).ended(2);
        assert_eq!(run.code(), "invalid_code_request", "{text}");
    }
    sandbox.sextant(&["status", "--config", "/absent/sextant.toml"]).ended(2);
    fs::write(&config, "enabled = false").expect("the sandbox is writable");
    assert_eq!(
        sandbox.sextant(&["callers", "f", "--json", "--config", &config.to_string_lossy()]).ended(5).code(),
        "code_disabled"
    );
    answers(&sandbox);
}

#[test]
fn a_file_in_place_of_the_cache() {
    let sandbox = Sandbox::new();
    sandbox.write("a.py", "def f(): pass\n");
    sandbox.commit_all();
    fs::write(sandbox.path().join("cache/sextant"), "not a directory").expect("the sandbox is writable");
    for arguments in [&["index", "--json"][..], &["sync", "--json"]] {
        let run = sandbox.sextant(arguments);
        assert!(["code_build_failed", "code_storage_unavailable"].contains(&run.code().as_str()), "{run:?}");
        assert_eq!(run.status, Some(5), "{run:?}");
    }
    let run = sandbox.sextant(&["symbols", "f", "--json"]);
    assert!(matches!(run.status, Some(4 | 5)), "{run:?}");
}

#[test]
fn no_permission() {
    if rustix::process::geteuid().is_root() {
        // Permissions do not bind root.
        return;
    }
    let sandbox = indexed();
    let file = sandbox.tree().join("lib.py");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o000)).expect("it is ours");
    let run = sandbox.sextant(&["sync", "--json"]);
    assert!(matches!(run.status, Some(0 | 5)), "{run:?}");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).expect("it is ours");
    answers_after_sync(&sandbox);
    let cache = sandbox.path().join("cache/sextant");
    fs::set_permissions(&cache, fs::Permissions::from_mode(0o000)).expect("it is ours");
    let run = sandbox.sextant(&["callers", "f", "--json"]);
    fs::set_permissions(&cache, fs::Permissions::from_mode(0o700)).expect("it is ours");
    assert!(matches!(run.status, Some(4 | 5)), "{run:?}");
    answers(&sandbox);
}

#[test]
fn an_answer_that_cannot_be_written() {
    let Ok(full) = fs::File::options().write(true).open("/dev/full") else { return };
    let sandbox = indexed();
    let run = crate::program::Run::of(sandbox.program(&["export", "--json"]).stdout(full));
    assert_eq!(run.status, Some(5), "{run:?}");
    assert_eq!(run.code(), "code_build_failed");
}
