//! A build that is killed at any moment leaves the old index or the new one, and never a wrong answer.

use std::time::{Duration, Instant};

use crate::sandbox::Sandbox;

/// Writes files that call `old` or `new`, so that an answer tells which state it is from.
fn write_tree(sandbox: &Sandbox, files: usize, callee: &str) {
    sandbox.write("lib.py", "def old(): pass\ndef new(): pass\n");
    for index in 0..files {
        let filler: String = (0..20).map(|line| format!("def filler_{line}(a, b):\n    return a + b * {line}\n")).collect();
        sandbox.write(&format!("m{index:03}.py"), format!("from lib import old, new\ndef use(): {callee}()\n{filler}"));
    }
}

/// Returns how many callers the export names for a function, or the exit of a refusal.
fn count(sandbox: &Sandbox, callee: &str) -> Result<usize, i32> {
    let export = sandbox.sextant(&["export", "--on-stale", "refuse"]);
    match export.status {
        Some(0) => {
            let call = format!(r#""name":"{callee}"}}"#);
            Ok(export.out.lines().filter(|line| line.contains(r#""kind":"calls""#) && line.ends_with(&call)).count())
        }
        Some(status) => Err(status),
        None => panic!("{export:?}"),
    }
}

fn kill_while(sandbox: &Sandbox, command: &str, after: Duration) {
    let mut child = sandbox.program(&[command, "--quiet"]).spawn().expect("the program starts");
    let start = Instant::now();
    while start.elapsed() < after && matches!(child.try_wait(), Ok(None)) {
        std::thread::yield_now();
    }
    let _ = child.kill();
    child.wait().expect("it has ended");
}

#[test]
fn kills_at_many_moments() {
    const FILES: usize = 60;
    let sandbox = Sandbox::new();
    write_tree(&sandbox, FILES, "old");
    sandbox.commit_all();
    let start = Instant::now();
    sandbox.sextant(&["index", "--quiet"]).ended(0);
    let whole = start.elapsed();
    sandbox.sextant(&["clear"]).ended(0);

    // First of all there is nothing: a killed index leaves nothing or all.
    for step in 0..6 {
        kill_while(&sandbox, "index", whole * step / 5);
        match count(&sandbox, "old") {
            Ok(callers) => assert_eq!(callers, FILES),
            Err(status) => assert_eq!(status, 4, "nothing was published"),
        }
    }
    sandbox.sextant(&["sync", "--quiet"]).ended(0);
    assert_eq!(count(&sandbox, "old"), Ok(FILES));

    // Then each kill meets an index of another state.
    let mut callee = "old";
    for step in 0..10 {
        callee = if callee == "old" { "new" } else { "old" };
        write_tree(&sandbox, FILES, callee);
        kill_while(&sandbox, if step % 2 == 0 { "index" } else { "sync" }, whole * (step % 5) / 4);
        match count(&sandbox, callee) {
            Ok(callers) => assert_eq!(callers, FILES, "step {step}"),
            Err(status) => assert_eq!(status, 3, "the old index serves, and refuses"),
        }
        sandbox.sextant(&["sync", "--quiet"]).ended(0);
        assert_eq!(count(&sandbox, callee), Ok(FILES), "step {step}");
    }
}

#[test]
fn builders_and_readers_side_by_side() {
    let sandbox = Sandbox::new();
    write_tree(&sandbox, 10, "old");
    sandbox.commit_all();
    sandbox.sextant(&["index", "--quiet"]).ended(0);
    write_tree(&sandbox, 10, "new");
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| sandbox.sextant(&["sync", "--quiet"]).ended(0));
            scope.spawn(|| {
                let run = sandbox.sextant(&["callers", "lib.new", "--on-stale", "refuse", "--json", "--limit", "50"]);
                match run.status {
                    Some(0) => assert_eq!(run.json()["items"].as_array().map(Vec::len), Some(10), "{run:?}"),
                    Some(3) => assert_eq!(run.code(), "code_changed"),
                    _ => panic!("{run:?}"),
                }
            });
        }
    });
    assert_eq!(count(&sandbox, "new"), Ok(10));
}
