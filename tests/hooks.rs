//! `sextant hook`: what hosts hand over, and what becomes of the indexes that hold what they edited.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::background::Daemon;
use crate::program::{PROGRAM, Run, indexed};
use crate::sandbox::{Sandbox, write_file};

impl Sandbox {
    /// Runs a hook with something on its standard input; it must say nothing to the host and end well.
    #[track_caller]
    fn hook(&self, arguments: &[&str], input: &str) -> Run {
        let run = Run::told(&mut self.program(&[&["hook"], arguments].concat()), input).ended(0);
        assert_eq!(run.out, "", "{run:?}");
        run
    }

    /// Returns what a claude hook is told of an edit.
    fn edit_of(&self, path: &str) -> String {
        let file = self.tree().join(path);
        let said = serde_json::json!({
            "session_id": "s", "cwd": self.tree(), "hook_event_name": "PostToolUse", "tool_name": "Edit",
            "tool_input": {"file_path": file, "old_string": "x", "new_string": "y"}, "tool_response": {},
        });
        said.to_string()
    }

    fn is_fresh(&self, arguments: &[&str]) -> bool {
        self.run_here(&[arguments, &["export", "--on-stale", "refuse"]].concat()).status == Some(0)
    }
}

#[test]
fn an_edit_is_synced() {
    let sandbox = indexed();
    let check = |path: &str, arguments: &[&str], input: &str| {
        sandbox.write(path, format!("def f{}(): pass\n", input.len()));
        assert!(!sandbox.is_fresh(&[]), "{path} was changed");
        let run = sandbox.hook(arguments, input);
        assert_eq!(run.err, "");
        assert!(sandbox.is_fresh(&[]), "{input}");
    };
    check("lib.py", &["claude"], &sandbox.edit_of("lib.py"));
    check("new/deep.py", &["claude"], &sandbox.edit_of("new/deep.py"));
    check("lib.py", &["claude"], r#"{"cwd":"","tool_input":{"file_path":"lib.py"}}"#);
    check("lib.py", &["claude", "--deadline", "30"], r#"{"tool_name":"Bash","tool_input":{"command":"sed -i s/a/b/ lib.py"}}"#);
    // Whatever is said, the worktree of the current directory is synced at least.
    for (index, garbage) in ["", "{", "\u{0}", "[]", "{}"].into_iter().enumerate() {
        sandbox.write("lib.py", format!("def garbage{index}(): pass\n"));
        sandbox.hook(&["claude"], garbage);
        assert!(sandbox.is_fresh(&[]), "{garbage:?}");
    }
    // More than any pipe holds.
    let long = format!(r#"{{"tool_input":{{"file_path":"lib.py","content":"{}"}}}}"#, "x".repeat(3 << 20));
    check("lib.py", &["claude"], &long);
    fs::remove_file(sandbox.tree().join("lib.py")).expect("removed");
    sandbox.hook(&["claude"], &sandbox.edit_of("lib.py"));
    assert!(sandbox.is_fresh(&[]));
}

#[test]
fn every_scope_that_holds_the_edit_is_synced() {
    let sandbox = indexed();
    let other = sandbox.path().join("other");
    write_file(&other.join("x.py"), b"def x(): pass\n");
    let config = sandbox.path().join("sextant.toml");
    let root = sandbox.tree();
    let text = format!(
        "[scopes.all]\nroot = {root:?}\ninclude_untracked = true\n[scopes.tracked]\nroot = {root:?}\n\
         [scopes.never]\nroot = {root:?}\nexclude = [\"lib.py\"]\n[scopes.other]\nroot = {other:?}\n[scopes.gone]\nroot = \"/nonexistent\"\n"
    );
    fs::write(&config, text).expect("written");
    let config = config.to_string_lossy().into_owned();
    let of = |scope: &'static str| ["--config", config.as_str(), "--scope", scope].map(str::to_owned);
    let run = |scope: &'static str, words: &[&str]| {
        let of = of(scope);
        sandbox.run_here(&[&of.each_ref().map(String::as_str)[..], words].concat())
    };
    let is_fresh = |scope| run(scope, &["export", "--on-stale", "refuse"]).status == Some(0);
    for scope in ["all", "tracked", "other"] {
        run(scope, &["index", "--quiet"]).ended(0);
    }
    sandbox.write("lib.py", "def changed(): pass\n");
    write_file(&other.join("x.py"), b"def changed(): pass\n");
    sandbox.hook(&["claude", "--config", &config], &sandbox.edit_of("lib.py"));
    assert!(is_fresh("all") && is_fresh("tracked") && sandbox.is_fresh(&[]), "the implicit one, too");
    assert!(!is_fresh("other"), "it does not hold the edit");
    assert_eq!(run("never", &["status", "--json"]).json()["status"], "missing", "no index is made");
    // A file that is edited from elsewhere.
    let edit = serde_json::json!({"cwd": "/", "tool_input": {"file_path": other.join("x.py")}});
    sandbox.hook(&["claude", "--config", &config], &edit.to_string());
    assert!(is_fresh("other"));
    // One scope alone, when it is named.
    sandbox.write("lib.py", "def again(): pass\n");
    sandbox.hook(&["claude", "--config", &config, "--scope", "all"], &sandbox.edit_of("lib.py"));
    assert!(is_fresh("all") && !is_fresh("tracked"));
}

#[test]
fn nothing_that_is_wrong_stops_an_edit() {
    let sandbox = indexed();
    sandbox.write("lib.py", "def f2(): pass\n");
    let edit = sandbox.edit_of("lib.py");
    // More than any pipe holds: whoever writes it is read to the end.
    let long = edit.replace("\"x\"", &format!("\"{}\"", "x".repeat(3 << 20)));
    for arguments in [
        &["emacs"][..],
        &["claude", "--no-such-flag"],
        &[],
        &["claude", "--deadline", "never"],
        &["claude", "--scope", "none"],
        &["claude", "--config", "/nonexistent.toml"],
    ] {
        sandbox.hook(arguments, &long);
    }
    // Nor what is wrong with the environment.
    let mut command = sandbox.command("sh");
    command.args(["-c", &format!("mkdir gone && cd gone && rmdir ../gone && exec {PROGRAM} hook claude")]);
    Run::told(&mut command, &long).ended(0);
    // No index, and a cache that cannot be made.
    let bare = Sandbox::new();
    bare.write("a.py", "");
    bare.hook(&["claude"], &bare.edit_of("a.py"));
    assert_eq!(fs::read_dir(bare.path().join("cache")).expect("readable").count(), 0, "a hook makes no index");
    // With --verbose it is said what is wrong.
    sandbox.write("lib.py", "def f3(): pass\n");
    let run = sandbox.hook(&["claude", "--verbose", "--config", "/nonexistent.toml"], &edit);
    assert!(run.err.contains("cannot be read"), "{run:?}");
    assert!(!sandbox.is_fresh(&[]));
    // Standard input closed by the host.
    let mut command = sandbox.command("sh");
    command.args(["-c", &format!("{PROGRAM} hook claude <&-")]);
    Run::of(&mut command).ended(0);
    assert!(sandbox.is_fresh(&[]));
}

/// What is named by an absolute path does not need the directory that a command stands in.
#[test]
fn a_directory_that_is_gone_is_no_obstacle() {
    let sandbox = indexed();
    let in_a_gone_directory = |arguments: &[&str], input: &str| {
        let mut command = sandbox.command("sh");
        let words = "cd \"$1\" && mkdir -p gone && cd gone && rmdir ../gone && shift && exec \"$0\" \"$@\"";
        command.args(["-c", words, PROGRAM]).arg(sandbox.path()).args(arguments);
        Run::told(&mut command, input)
    };
    let root = sandbox.tree().to_string_lossy().into_owned();
    for daemon in [false, true] {
        let _daemon = daemon.then(|| Daemon::start(&sandbox));
        sandbox.write("lib.py", format!("def f():\n    return '{daemon}'\n"));
        let edit = serde_json::json!({"cwd": "/nonexistent", "tool_input": {"file_path": sandbox.tree().join("lib.py")}});
        in_a_gone_directory(&["hook", "claude"], &edit.to_string()).ended(0);
        assert!(sandbox.is_fresh(&[]), "daemon: {daemon}");
        let run = in_a_gone_directory(&["callers", "lib.f", "--root", &root], "").ended(0);
        assert!(run.out.contains("use.py:5"), "{run:?}");
        // What is meant by where it stands is not there.
        assert_eq!(in_a_gone_directory(&["callers", "lib.f", "--json"], "").ended(5).code(), "repository_unavailable");
    }
}

#[test]
fn a_hook_ends_in_time() {
    let sandbox = indexed();
    sandbox.write("lib.py", "def f2(): pass\n");
    let cache =
        fs::read_dir(sandbox.path().join("cache/sextant")).expect("readable").map(|entry| entry.expect("readable").path());
    let lock = cache.map(|binding| binding.join("build.lock")).find(|lock| lock.exists()).expect("a build was here");
    let held = fs::File::open(lock).expect("readable");
    rustix::fs::flock(&held, rustix::fs::FlockOperation::LockExclusive).expect("nobody builds");
    let within = |started: Instant| started.elapsed() < Duration::from_secs(30);
    let status = || sandbox.run_here(&["status", "--json"]).ended(0).json()["last_build"].clone();
    let before = status();
    let started = Instant::now();
    let run = sandbox.hook(&["claude", "--verbose", "--deadline", "2"], &sandbox.edit_of("lib.py"));
    assert!(run.err.contains("waiting for another builder took too long"), "{run:?}");
    assert!(within(started), "it does not wait for the builder");
    drop(held);
    assert_eq!(status(), before, "nothing was built, and nothing failed");
    // A host that never ends what it says.
    let started = Instant::now();
    let mut command = sandbox.program(&["hook", "claude", "--deadline", "1"]);
    let mut child = command.stdin(Stdio::piped()).spawn().expect("the program starts");
    // Waiting would close it.
    let open = child.stdin.take();
    let status = child.wait();
    drop(open);
    assert!(within(started) && status.expect("it ended").code() == Some(0));
    sandbox.hook(&["claude"], &sandbox.edit_of("lib.py"));
    assert!(sandbox.is_fresh(&[]));
}

#[test]
fn git_calls_its_hooks() {
    let sandbox = indexed();
    for name in ["post-commit", "post-checkout", "post-merge"] {
        let hook = sandbox.tree().join(".git/hooks").join(name);
        write_file(&hook, format!("#!/bin/sh\nexec {PROGRAM} hook git \"$@\"\n").as_bytes());
        fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).expect("ours");
    }
    let git = |arguments: &[&str]| {
        let output = sandbox.command("git").args(arguments).output().expect("git is installed");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(sandbox.is_fresh(&[]), "{arguments:?}");
    };
    sandbox.write("lib.py", "def committed(): pass\n");
    git(&["commit", "--quiet", "--all", "--message", "second"]);
    git(&["checkout", "--quiet", "-b", "side", "HEAD~1"]);
    sandbox.write("more.py", "def more(): pass\n");
    sandbox.git(&["add", "more.py"]);
    git(&["commit", "--quiet", "--message", "third"]);
    git(&["merge", "--quiet", "--no-edit", "main"]);
}
