//! The commands for who sits at a terminal: what is wrong, what is configured, how the code lies, and how to type it.

use std::fs;

use serde_json::Value;

use crate::program::{Run, indexed};
use crate::sandbox::Sandbox;

/// Returns state and remedy of what the doctor says of one thing.
#[track_caller]
fn finding(run: &Run, check: &str) -> (String, String) {
    let report = run.json();
    let findings = report["findings"].as_array().expect("a list");
    let found = findings.iter().find(|finding| finding["check"] == check).unwrap_or_else(|| panic!("no {check} in {report}"));
    let text = |key: &str| found[key].as_str().unwrap_or_default().to_owned();
    (text("state"), format!("{} → {}", text("message"), text("remedy")))
}

#[test]
fn a_healthy_place_has_nothing_wrong() {
    let sandbox = indexed();
    let run = sandbox.sextant(&["doctor", "--json"]).ended(0);
    for check in ["configuration", "root", "git", "files", "cache", "parsers", "daemon", "index"] {
        let (state, said) = finding(&run, check);
        assert_eq!(state, "ok", "{check}: {said}");
    }
    assert!(finding(&run, "git").1.starts_with("branch main at "), "{run:?}");
    let text = sandbox.sextant(&["doctor"]).ended(0);
    assert!(text.out.lines().any(|line| line.starts_with("ok       index          equals the worktree")), "{text:?}");
}

#[test]
fn each_finding_has_its_remedy() {
    let sandbox = indexed();
    sandbox.write("use.py", "\n");
    sandbox.write("huge.py", vec![b'#'; 3 << 20]);
    sandbox.write(".env", "SECRET=1\n");
    let run = sandbox.sextant(&["doctor", "--json"]).ended(0);
    let (state, said) = finding(&run, "index");
    assert!(state == "warning" && said.contains("sextant sync"), "{said}");
    let (state, said) = finding(&run, "files");
    assert!(state == "warning" && said.contains("1 oversize") && said.contains("max_file_bytes"), "{said}");
    let omitted = run.json()["omitted"].to_string();
    assert!(omitted.contains(r#""first":[".env"]"#) && omitted.contains(r#""reason":"oversize""#), "{omitted}");
    sandbox.sextant(&["clear", "--quiet"]).ended(0);
    let (state, said) = finding(&sandbox.sextant(&["doctor", "--json"]).ended(0), "index");
    assert!(state == "warning" && said.contains("sextant index"), "{said}");
    let text = sandbox.sextant(&["doctor"]).ended(0);
    assert!(text.out.contains("left out: 2 paths"), "{text:?}");
}

#[test]
fn what_keeps_from_answering_is_a_failure() {
    let sandbox = indexed();
    let check = |arguments: &[&str], check: &str, word: &str| {
        let run = sandbox.sextant(&[&["doctor", "--json"], arguments].concat()).ended(5);
        let (state, said) = finding(&run, check);
        assert!(state == "problem" && said.contains(word), "{said}");
        assert_eq!(run.json()["status"], "problem");
    };
    let config = sandbox.path().join("c.toml");
    let name = config.to_string_lossy().into_owned();
    check(&["--config", &name], "configuration", "cannot be read");
    fs::write(&config, "[limits]\nmax_files = 0\n").expect("writable");
    check(&["--config", &name], "configuration", "max_files");
    fs::write(&config, "enabled = false\n").expect("writable");
    check(&["--config", &name], "root", "enabled = true");
    check(&["--root", "nowhere"], "root", "cannot be used");
    let text = sandbox.sextant(&["doctor", "--root", "nowhere", "--quiet"]).ended(5);
    assert!(text.out.starts_with("problem  root") && !text.out.contains("ok "), "{text:?}");
    let mut command = sandbox.program(&["doctor", "--json"]);
    let run = Run::of(command.env("SEXTANT_PARSER_FAULT", "exit")).ended(5);
    assert_eq!(finding(&run, "parsers").0, "problem");
}

#[test]
fn every_key_is_shown_with_where_it_comes_from() {
    let sandbox = indexed();
    let config = sandbox.path().join("c.toml");
    let root = sandbox.tree().to_string_lossy().into_owned();
    fs::write(&config, format!("[limits]\nmax_files = 7\n[scopes.demo]\nroot = {root:?}\n")).expect("writable");
    let name = config.to_string_lossy().into_owned();
    let shown = sandbox.sextant(&["config", "show", "--origin", "--config", &name]).ended(0).out;
    for line in ["# file: ", "# scope: demo of ", "limits.max_files = 7 ", "limits.query_seconds = 5 ", "scopes.demo.root = "] {
        assert!(shown.lines().any(|shown| shown.starts_with(line)), "{line} in {shown}");
    }
    let origin = |key: &str| {
        let line = shown.lines().find(|line| line.starts_with(key)).unwrap_or_else(|| panic!("{key} in {shown}"));
        line.rsplit("# ").next().unwrap_or_default().to_owned()
    };
    assert_eq!(origin("limits.max_files"), "file");
    assert_eq!(origin("limits.query_seconds"), "default");
    assert_eq!(origin("cache_dir"), "environment: XDG_CACHE_HOME");
    // What is shown is a configuration file.
    let again = sandbox.path().join("again.toml");
    fs::write(&again, &shown).expect("writable");
    let again = sandbox.sextant(&["config", "show", "--quiet", "--config", &again.to_string_lossy()]).ended(0).out;
    assert_eq!(again, sandbox.sextant(&["config", "show", "--quiet", "--config", &name]).ended(0).out);
    let json = sandbox.sextant(&["config", "show", "--json", "--scope", "demo", "--config", &name]).ended(0).json();
    assert_eq!(json["scope"]["origin"], "flag");
    sandbox.sextant(&["config", "show", "--config", "nowhere.toml"]).ended(2);
}

#[test]
fn shells_and_man_know_every_command() {
    let sandbox = Sandbox::new();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = sandbox.sextant(&["completions", shell]).ended(0).out;
        for word in ["callers", "impact-changes", "on-stale"] {
            assert!(script.contains(word), "{word} in that of {shell}");
        }
        for hidden in ["parse-worker", "bench"] {
            assert!(!script.contains(hidden), "{hidden} in that of {shell}");
        }
    }
    let page = sandbox.sextant(&["man"]).ended(0).out;
    assert!(page.contains(".TH sextant") && page.contains("callers") && !page.contains("parse\\-worker"), "{page}");
    let page = sandbox.sextant(&["man", "daemon", "start"]).ended(0).out;
    assert!(page.contains("sextant daemon start"), "{page}");
    let refused = sandbox.sextant(&["man", "bench"]).ended(2);
    assert!(refused.err.contains("sextant --help"), "{refused:?}");
}

#[test]
fn a_map_as_a_tree() {
    let sandbox = Sandbox::new();
    for (path, text) in [("app/a.py", "def f(): pass\n"), ("app/deep/b.py", "\n"), ("c.py", "\n"), ("README.md", "# x\n")] {
        sandbox.write(path, text);
    }
    sandbox.commit_all();
    sandbox.sextant(&["index", "--quiet"]).ended(0);
    let tree = |arguments: &[&str]| sandbox.sextant(&[&["map", "--tree", "--quiet"], arguments].concat()).ended(0).out;
    assert_eq!(
        tree(&[]),
        ".  4 files · 1 definition · python\n├── app/  2 files · 1 definition · python\n│   ├── deep/  1 file · python\n\
         │   │   └── b.py\n│   └── a.py  1 definition\n├── README.md\n└── c.py\n"
    );
    assert_eq!(
        tree(&["app", "--depth", "1"]),
        "app  2 files · 1 definition · python\n├── deep/  1 file · python\n└── a.py  1 definition\n"
    );
    sandbox.sextant(&["map", "--tree", "nowhere"]).ended(1);
    sandbox.sextant(&["map", "--tree", "--depth", "0"]).ended(2);
    sandbox.sextant(&["map", "app", "--tree", "--path", "app"]).ended(2);
    sandbox.write("late.py", "\n");
    sandbox.sextant(&["map", "--tree", "--on-stale", "refuse"]).ended(3);
    assert!(tree(&[]).contains("late.py"));
}

#[test]
fn a_graph_of_what_lies_around() {
    let sandbox = Sandbox::new();
    sandbox.write("lib.py", "class Cart:\n    def total(self):\n        return 1\n\n\ndef f():\n    return 2\n");
    sandbox.write("use.py", "from lib import Cart, f\n\n\ndef g(cart: Cart):\n    f()\n    f()\n    return cart.total()\n");
    sandbox.commit_all();
    sandbox.sextant(&["index", "--quiet"]).ended(0);
    let graph = |arguments: &[&str]| sandbox.sextant(&[&["graph"], arguments].concat()).ended(0).out;
    let dot = graph(&["g"]);
    assert!(dot.contains(r#"n0 [label="use.g\nuse.py:4", style=bold];"#), "{dot}");
    assert!(dot.contains(r#"[style=solid, label="×2"];"#) && dot.contains("[style=dashed];"), "{dot}");
    let mermaid = graph(&["g", "--format", "mermaid"]);
    assert!(mermaid.starts_with("flowchart LR\n") && mermaid.contains("-.->"), "{mermaid}");
    let svg = graph(&["g", "--format", "svg", "--depth", "2"]);
    assert!(svg.starts_with("<svg ") && svg.contains("stroke-dasharray") && svg.contains(">lib.f<"), "{svg}");
    // A class lies among its members, and those who use them.
    let json: Value = serde_json::from_str(&graph(&["Cart", "--json"])).expect("JSON");
    let names: Vec<_> = json["nodes"].as_array().expect("a list").iter().map(|node| &node["qualified_name"]).collect();
    assert!(["Cart", "Cart.total", "g"].iter().all(|name| names.iter().any(|known| known == name)), "{json}");
    assert!(json["edges"].as_array().expect("a list").iter().any(|edge| edge["kind"] == "contains"), "{json}");
    let few = sandbox.sextant(&["graph", "g", "--limit", "2"]).ended(0);
    assert!(few.err.contains("--limit") && few.out.matches("[label=").count() >= 2, "{few:?}");
    let missing = sandbox.sextant(&["graph", "totall"]).ended(1);
    assert!(missing.out.is_empty() && missing.err.contains("total"), "{missing:?}");
    sandbox.sextant(&["graph", "g", "--depth", "9"]).ended(2);
}
