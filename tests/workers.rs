//! Parser processes: a file that breaks one costs itself and nothing else, parsers that cannot work fail the build, and none is left
//! behind.

use std::collections::BTreeMap;
use std::process::Command;

use crate::program::Run;
use crate::sandbox::Sandbox;

const LIMITS: &str = "[limits]\nparse_seconds = 1\nworker_memory_bytes = 67108864\n";

/// A tree of one good file, and the given ones, which a parser told so fails at: `# fault: …` stands in their first line.
fn tree(faults: &[&str]) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("good.py", "def good():\n    return 1\n");
    sandbox.write("use.py", "from good import good\ndef use(): good()\n");
    for fault in faults {
        sandbox.write(&format!("{fault}.py"), format!("# fault: {fault}\ndef known_by_its_words_{fault}(): pass\n"));
    }
    sandbox.commit_all();
    configure(&sandbox, LIMITS);
    sandbox
}

fn configure(sandbox: &Sandbox, limits: &str) {
    std::fs::write(sandbox.path().join("sextant.toml"), limits).expect("written");
}

/// Runs a command under the configuration of the sandbox, its parsers told of a fault.
fn command(sandbox: &Sandbox, fault: &str, arguments: &[&str]) -> Command {
    let mut command = sandbox.program(arguments);
    command.env("SEXTANT_CONFIG", sandbox.path().join("sextant.toml")).env("SEXTANT_PARSER_FAULT", fault);
    command
}

fn run(sandbox: &Sandbox, fault: &str, arguments: &[&str]) -> Run {
    Run::of(&mut command(sandbox, fault, arguments))
}

/// Builds, and returns `published`, `extracted_files` and `failed_files`.
#[track_caller]
fn build(sandbox: &Sandbox, fault: &str, kind: &str) -> (bool, u64, u64) {
    let report = run(sandbox, fault, &[kind, "--json"]).ended(0).json();
    let number = |key: &str| report[key].as_u64().expect("a number");
    (report["published"] == true, number("extracted_files"), number("failed_files"))
}

#[track_caller]
fn answers(sandbox: &Sandbox) {
    let run = run(sandbox, "", &["callers", "good.good", "--on-stale", "refuse"]).ended(0);
    assert!(run.out.contains("use.py:2"), "{run:?}");
}

/// Returns the parse status of each file.
fn statuses(sandbox: &Sandbox) -> BTreeMap<String, String> {
    let export = run(sandbox, "", &["export", "--on-stale", "refuse"]).ended(0);
    let rows = export.out.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).expect("a row"));
    let text = |row: &serde_json::Value, key: &str| row[key].as_str().unwrap_or_default().to_owned();
    rows.filter(|row| row["kind"] == "file").map(|row| (text(&row, "path"), text(&row, "parse_status"))).collect()
}

#[test]
fn a_file_that_breaks_a_parser_costs_itself() {
    let faults = ["crash", "exit", "kill", "memory", "misfit", "panic"];
    let sandbox = tree(&faults);
    assert_eq!(build(&sandbox, "file", "index"), (true, 8, 6));
    answers(&sandbox);
    let statuses = statuses(&sandbox);
    for fault in faults {
        assert_eq!(statuses[&format!("{fault}.py")], "failed");
        let path = format!("{fault}.py");
        let found = run(&sandbox, "", &["symbols", &path, "--on-stale", "refuse"]).ended(0);
        assert!(found.out.contains(&path), "{found:?}");
        let words = format!("known_by_its_words_{fault}");
        let found = run(&sandbox, "", &["symbols", &words, "--on-stale", "refuse"]).ended(0);
        assert!(found.out.starts_with(&path), "{found:?}");
        let read = run(&sandbox, "", &["read", &path]).ended(0);
        assert!(read.out.contains(&words), "{read:?}");
    }
    assert_eq!(statuses["good.py"], "ok");

    // The parsers are well from here on, but a sync has no reason to believe so.
    assert_eq!(build(&sandbox, "", "sync"), (false, 0, 6));
    sandbox.write("good.py", "def good():\n    return 2\n");
    assert_eq!(build(&sandbox, "", "sync"), (true, 1, 6));
    std::fs::rename(sandbox.tree().join("crash.py"), sandbox.tree().join("renamed.py")).expect("renamed");
    assert_eq!(build(&sandbox, "", "sync"), (true, 0, 6), "a failure is of the bytes, not of the path");
    answers(&sandbox);

    sandbox.write("renamed.py", "def other(): pass\n");
    assert_eq!(build(&sandbox, "", "sync"), (true, 1, 5), "other bytes are another matter");
    configure(&sandbox, &LIMITS.replace("67108864", "67108865"));
    assert_eq!(build(&sandbox, "", "sync"), (true, 5, 0), "and so are other limits");
    assert_eq!(build(&sandbox, "", "sync"), (false, 0, 0));
}

/// Returns the lines of the whole export.
fn export(sandbox: &Sandbox) -> Vec<String> {
    run(sandbox, "", &["export", "--on-stale", "refuse"]).ended(0).out.lines().map(str::to_owned).collect()
}

#[test]
fn a_file_that_failed_is_found_by_its_text() {
    let sandbox = tree(&["crash"]);
    let long: String = (0..60).map(|number| format!("value_{number} = {number}\n")).collect();
    sandbox.write("crash.py", format!("# fault: crash\n{long}def deliver_letters(): pass\ndeliver_letters()\n"));
    assert_eq!(build(&sandbox, "file", "index"), (true, 3, 1));
    let ask = |arguments: &[&str]| run(&sandbox, "", &[arguments, &["--on-stale", "refuse"]].concat()).ended(0).out;
    let whole = "crash.py file  python, could not be parsed\n";
    for question in ["deliver_letters", "letters deliver", "crash.py"] {
        let found = ask(&["symbols", question]);
        assert!(found.starts_with(whole), "{question}: {found}");
    }
    for question in ["deliver_letters", "where are letters delivered"] {
        let found = ask(&["explore", question]);
        assert!(found.starts_with(&format!("{whole}  62  def deliver_letters(): pass\n")), "{question}: {found}");
    }
    let callers = ask(&["callers", "good.good"]);
    assert!(callers.contains("1 file could not be parsed: uses in there are not known\n"), "{callers}");
    let answer = run(&sandbox, "", &["callers", "good.good", "--on-stale", "refuse", "--json"]).ended(0).json();
    assert_eq!((&answer["coverage"]["failed_files"], &answer["coverage"]["parsed_files"]), (&1.into(), &2.into()));

    let rows: Vec<serde_json::Value> = export(&sandbox)
        .iter()
        .map(|line| serde_json::from_str(line).expect("a row"))
        .filter(|row: &serde_json::Value| row["path"] == "crash.py")
        .collect();
    assert_eq!(rows.len(), 2, "{rows:?}");
    assert_eq!((&rows[0]["start_line"], &rows[0]["end_line"]), (&1.into(), &63.into()));
    let said = serde_json::json!({"row": "diagnostic", "path": "crash.py", "line": 1, "col_byte": 0, "name": "crash.py",
        "kind": "contains", "reason": "parser_crashed", "candidates": 0});
    assert_eq!(rows[1], said);
}

#[test]
fn which_files_failed_is_said_and_why() {
    let sandbox = tree(&["crash", "memory"]);
    let expected = "2 files could not be parsed\n  crash.py (parser_crashed)\n  memory.py (parser_memory)\n  they are found by";
    let built = run(&sandbox, "file", &["index"]).ended(0);
    assert!(built.out.contains(expected), "{built:?}");
    let unchanged = run(&sandbox, "", &["sync"]).ended(0);
    assert!(unchanged.out.contains(expected), "{unchanged:?}");
    let failures =
        serde_json::json!([{"path": "crash.py", "reason": "parser_crashed"}, {"path": "memory.py", "reason": "parser_memory"}]);
    assert_eq!(run(&sandbox, "", &["sync", "--json"]).ended(0).json()["failures"], failures);
    let last = &run(&sandbox, "", &["status", "--json"]).ended(0).json()["last_build"];
    assert_eq!((&last["failed_files"], &last["failures"]), (&2.into(), &failures));
    let status = run(&sandbox, "", &["status"]).ended(0);
    assert!(status.out.contains("2 files could not be parsed") && status.out.contains("crash.py (parser_crashed)"), "{status:?}");
}

#[test]
fn a_failure_is_recorded_alike_by_sync_and_by_index() {
    let sandbox = tree(&[]);
    assert_eq!(build(&sandbox, "", "index"), (true, 2, 0));
    let equals_clean = |what: &str| {
        let synced = export(&sandbox);
        assert_eq!(build(&sandbox, "file", "index").2, 1, "{what}");
        assert_eq!(synced, export(&sandbox), "{what}");
    };
    sandbox.write("bad.py", "# fault: crash\nfrom good import good\ngood()\n");
    assert_eq!(build(&sandbox, "file", "sync"), (true, 1, 1));
    equals_clean("met by a sync");
    sandbox.write("good.py", "# moved\ndef good():\n    return 1\n");
    assert_eq!(build(&sandbox, "", "sync"), (true, 1, 1));
    equals_clean("carried along");
    std::fs::rename(sandbox.tree().join("bad.py"), sandbox.tree().join("worse.py")).expect("renamed");
    assert_eq!(build(&sandbox, "", "sync"), (true, 0, 1));
    equals_clean("carried to another path");
    sandbox.write("worse.py", "from good import good\ngood()\n");
    assert_eq!(build(&sandbox, "", "sync"), (true, 1, 0));
    sandbox.write("worse.py", "# fault: crash\nfrom good import good\ngood()\n");
    assert_eq!(build(&sandbox, "file", "sync"), (true, 1, 1));
    equals_clean("after it could be read for a while");
}

#[test]
fn what_is_lost_beside_the_generation_loses_no_failure() {
    let sandbox = tree(&["crash"]);
    assert_eq!(build(&sandbox, "file", "index"), (true, 3, 1));
    for file in crate::bad_input::cache_files(&sandbox) {
        if file.file_name().is_some_and(|name| name == "last-build.json") {
            std::fs::remove_file(file).expect("removed");
        }
    }
    assert_eq!(build(&sandbox, "", "sync"), (false, 0, 1));
    assert_eq!(build(&sandbox, "", "index"), (true, 3, 0), "an index tries everything");
}

#[test]
fn what_took_too_long_is_tried_once_more() {
    let sandbox = tree(&["stall"]);
    assert_eq!(build(&sandbox, "file", "index"), (true, 3, 1));
    assert_eq!(build(&sandbox, "file", "sync"), (true, 1, 1), "a later build tries again");
    assert_eq!(build(&sandbox, "", "sync"), (false, 0, 1), "but only one");
    assert_eq!(build(&sandbox, "", "index"), (true, 3, 0));
    answers(&sandbox);
}

#[test]
fn parsers_that_break_the_protocol_fail_the_build() {
    let sandbox = tree(&[]);
    assert_eq!(build(&sandbox, "", "index"), (true, 2, 0));
    for fault in ["garble", "long", "undecodable"] {
        sandbox.write("broken.py", format!("# fault: {fault}\n"));
        let failed = run(&sandbox, "file", &["sync", "--json"]).ended(5);
        assert_eq!(failed.code(), "code_parser_failed", "{fault}");
        std::fs::remove_file(sandbox.tree().join("broken.py")).expect("removed");
        // What was published is still there, and right.
        answers(&sandbox);
    }
}

#[test]
fn parsers_that_cannot_work_publish_nothing() {
    for fault in ["exit", "other-build", "early", "every-file"] {
        let sandbox = tree(&[]);
        let failed = run(&sandbox, fault, &["index", "--json"]).ended(5);
        assert_eq!(failed.code(), "code_parser_failed", "{fault}");
        assert!(failed.err.contains("parser process"), "{failed:?}");
        let status = run(&sandbox, "", &["status", "--json"]).json();
        assert_eq!((&status["status"], &status["reason"]), (&"failed".into(), &"code_parser_failed".into()), "{fault}");
        let refused = run(&sandbox, "", &["callers", "good.good", "--on-stale", "refuse", "--json"]).ended(4);
        assert_eq!(refused.code(), "code_index_missing", "{fault}");
        assert_eq!(build(&sandbox, "", "sync"), (true, 2, 0));
        answers(&sandbox);
    }
}

#[test]
fn as_many_parsers_as_there_is_work() {
    let sandbox = tree(&[]);
    let started = |arguments: &[&str]| {
        let run = run(&sandbox, "", arguments).ended(0);
        run.err.matches("a parser process was started").count()
    };
    assert_eq!(started(&["index", "-v"]), 1, "two files need one");
    assert_eq!(started(&["sync", "-v"]), 0, "and none when nothing changed");
    sandbox.write("good.py", "def good():\n    return 2\n");
    assert_eq!(started(&["sync", "-v"]), 1);
    run(&sandbox, "", &["clear"]).ended(0);
    assert_eq!(started(&["sync", "-v"]), 0, "facts that are known need none");
    for number in 0..200 {
        let lines: String = (0..50).map(|line| format!("def f_{number}_{line}(a): return a + {line}\n")).collect();
        sandbox.write(&format!("many/m{number}.py"), lines);
    }
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    assert!((1..=cores).contains(&started(&["sync", "-v"])));
    assert_eq!(statuses(&sandbox).len(), 202);
}

#[cfg(target_os = "linux")]
mod orphans {
    use std::fs;
    use std::process::Stdio;
    use std::time::{Duration, Instant};

    use super::*;

    /// Waits for a condition, at most for a time in which any machine gets there.
    fn wait<T>(what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(60) {
            match condition() {
                Some(found) => return found,
                None => std::thread::yield_now(),
            }
        }
        panic!("{what} did not happen");
    }

    /// Returns the processes whose parent is this one, each with its command line.
    fn children(parent: u32) -> Vec<(u32, String)> {
        let mut found = Vec::new();
        for entry in fs::read_dir("/proc").expect("it is there").flatten() {
            let Ok(pid) = entry.file_name().to_string_lossy().parse::<u32>() else { continue };
            let Ok(stat) = fs::read_to_string(entry.path().join("stat")) else { continue };
            // The state and the parent come behind the name, which may hold anything but the last parenthesis.
            let mut rest = stat.rsplit(')').next().unwrap_or_default().split_whitespace().skip(1);
            if rest.next() == Some(&parent.to_string()) {
                let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
                found.push((pid, String::from_utf8_lossy(&line).replace('\0', " ")));
            }
        }
        found
    }

    #[test]
    fn none_survives_its_parent() {
        let sandbox = tree(&["stall"]);
        configure(&sandbox, "[limits]\nparse_seconds = 300\n");
        let mut parent = command(&sandbox, "file", &["index", "--quiet"]).stdout(Stdio::null()).spawn().expect("started");
        let (worker, line) =
            wait("a parser", || children(parent.id()).into_iter().find(|(_, line)| line.contains("parse-worker")));
        assert!(line.starts_with("sextant parse-worker"), "{line}");
        let at_work = |pid: u32| fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "));
        // It sees nothing of this environment but what the test told it, stands nowhere, and holds its three streams only.
        wait("the isolation", || {
            let limits = fs::read_to_string(format!("/proc/{worker}/limits")).ok()?;
            let core = limits.lines().find(|line| line.starts_with("Max core file size"))?;
            (core.split_whitespace().nth(4) == Some("0")
                && !limits.lines().any(|line| line.starts_with("Max address space  ") && line.contains("unlimited")))
            .then_some(())
        });
        let environment = fs::read(format!("/proc/{worker}/environ")).expect("it lives");
        assert_eq!(String::from_utf8_lossy(&environment), "SEXTANT_PARSER_FAULT=file\0");
        assert_eq!(fs::read_link(format!("/proc/{worker}/cwd")).expect("it lives"), std::path::Path::new("/"));

        parent.kill().expect("it can be killed");
        parent.wait().expect("it has ended");
        wait("the end of the parser", || (!at_work(worker)).then_some(()));
    }
}
