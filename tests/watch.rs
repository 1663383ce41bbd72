//! `sextant watch` beside a tree that changes: whatever happened, a moment later the index is what a fresh process would build.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::program::PROGRAM;
use crate::sandbox::Sandbox;

/// No wait is longer, so that a test which fails ends.
const CAP: Duration = Duration::from_secs(60);

/// A running `sextant watch --json`, and what it said.
struct Watching<'s> {
    sandbox: &'s Sandbox,
    child: Child,
    said: Arc<Mutex<Vec<Value>>>,
}

impl<'s> Watching<'s> {
    /// Starts it and waits until it says that it watches.
    fn start(sandbox: &'s Sandbox, settings: &str) -> Self {
        Self::start_with(sandbox, settings, &[])
    }

    /// Starts it with arguments of its own.
    fn start_with(sandbox: &'s Sandbox, settings: &str, arguments: &[&str]) -> Self {
        configure(sandbox, "kept", settings);
        let mut command = sandbox.command(PROGRAM);
        command.args(["--config", &sandbox.path().join("kept.toml").to_string_lossy(), "watch", "--json"]).args(arguments);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("the program starts");
        let (said, out) = (Arc::new(Mutex::new(Vec::new())), child.stdout.take().expect("it is piped"));
        let heard = Arc::clone(&said);
        std::thread::spawn(move || {
            for line in BufReader::new(out).lines() {
                let Ok(line) = line else { break };
                let value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error} in {line}"));
                heard.lock().expect("no thread panicked").push(value);
            }
        });
        let watching = Self { sandbox, child, said };
        watching.wait("it watches", || watching.events("watching").len() == 1);
        watching
    }

    fn events(&self, name: &str) -> Vec<Value> {
        self.said.lock().expect("no thread panicked").iter().filter(|event| event["event"] == name).cloned().collect()
    }

    fn wait(&self, what: &str, is_so: impl Fn() -> bool) {
        let started = Instant::now();
        while !is_so() {
            assert!(started.elapsed() < CAP, "waiting until {what}: {:?}", self.said.lock().expect("no thread panicked"));
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until the index is fresh without anybody asking for a sync, and compares it with one built from nothing.
    #[track_caller]
    fn caught_up(&self) {
        let kept = self.sandbox.path().join("kept.toml").to_string_lossy().into_owned();
        let ask = || self.sandbox.run_here(&["--config", &kept, "export", "--on-stale", "refuse"]);
        self.wait("the index is fresh", || ask().status == Some(0));
        let kept = ask().ended(0);
        let _ = fs::remove_dir_all(self.sandbox.path().join("clean"));
        configure(self.sandbox, "clean", "");
        let clean = self.sandbox.path().join("clean.toml").to_string_lossy().into_owned();
        self.sandbox.run_here(&["--config", &clean, "index", "--quiet"]).ended(0);
        let clean = self.sandbox.run_here(&["--config", &clean, "export", "--on-stale", "refuse"]).ended(0);
        assert!(kept.out == clean.out, "the export differs from that of a clean build");
        assert!(kept.out.lines().count() > 1, "there is something to compare");
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("it runs");
    }
}

impl Drop for Watching<'_> {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn configure(sandbox: &Sandbox, name: &str, settings: &str) {
    let text = format!("cache_dir = {:?}\n{settings}\n", sandbox.path().join(name));
    fs::write(sandbox.path().join(format!("{name}.toml")), text).expect("written");
}

const QUICK: &str = "[watch]\nquiet_milliseconds = 30";

fn small() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("lib.py", "def f():\n    return 1\n");
    sandbox.write("use.py", "from lib import f\n\n\ndef g():\n    return f()\n");
    sandbox.commit_all();
    sandbox
}

#[test]
fn edits_of_all_kinds_are_followed() {
    let sandbox = small();
    let watching = Watching::start(&sandbox, QUICK);
    watching.caught_up();
    // Nested new directories, written to at once and again.
    for round in 0..3 {
        sandbox.write(&format!("a{round}/b/c/x.py"), "from lib import f\nf()\n");
        watching.caught_up();
        sandbox.write(&format!("a{round}/b/c/x.py"), "from lib import f\nf()\nf()\n");
        watching.caught_up();
    }
    // As editors save: a swap file, a backup, and a new file in the place of the old one.
    let tree = sandbox.tree();
    for round in 0..3 {
        sandbox.write(".use.py.swp", "swap");
        sandbox.write("4913", "");
        fs::remove_file(tree.join("4913")).expect("removed");
        fs::rename(tree.join("use.py"), tree.join("use.py~")).expect("renamed");
        sandbox.write("use.py.new", format!("from lib import f\n\n\ndef g{round}():\n    return f()\n"));
        fs::rename(tree.join("use.py.new"), tree.join("use.py")).expect("renamed");
        fs::remove_file(tree.join("use.py~")).expect("removed");
        fs::remove_file(tree.join(".use.py.swp")).expect("removed");
    }
    watching.caught_up();
    fs::rename(tree.join("a0"), tree.join("moved")).expect("renamed");
    watching.caught_up();
    sandbox.write("moved/b/c/x.py", "import lib\nlib.f()\n");
    fs::rename(tree.join("a1"), sandbox.path().join("out")).expect("renamed");
    watching.caught_up();
    fs::rename(sandbox.path().join("out"), tree.join("in")).expect("renamed");
    sandbox.write("in/b/d.py", "def d(): pass\n");
    watching.caught_up();
    fs::remove_dir_all(tree.join("in")).expect("removed");
    sandbox.write("in", "a file in its place\n");
    watching.caught_up();
}

#[test]
fn git_is_followed() {
    const FILES: usize = 900;
    let sandbox = small();
    let write_all = |callee: &str| {
        for index in 0..FILES {
            sandbox.write(
                &format!("pkg{}/m{index:03}.py", index % 30),
                format!("from lib import {callee}\ndef use(): {callee}()\n"),
            );
        }
    };
    write_all("f");
    sandbox.git(&["add", "--all"]);
    sandbox.git(&["commit", "--quiet", "--message", "many"]);
    sandbox.git(&["checkout", "--quiet", "-b", "other"]);
    write_all("h");
    sandbox.write("lib.py", "def h():\n    return 1\n");
    sandbox.git(&["commit", "--quiet", "--all", "--message", "other"]);
    let watching = Watching::start(&sandbox, QUICK);
    sandbox.git(&["checkout", "--quiet", "-"]);
    watching.caught_up();
    sandbox.write("lib.py", "def f(): pass\ndef late(): pass\n");
    sandbox.write("new/n.py", "import lib\nlib.late()\n");
    watching.caught_up();
    sandbox.git(&["stash", "--quiet", "--include-untracked"]);
    watching.caught_up();
    sandbox.git(&["stash", "pop", "--quiet"]);
    watching.caught_up();
    // A worktree inside of the tree is one of its own.
    sandbox.git(&["worktree", "add", "--quiet", "inner", "other"]);
    watching.caught_up();
    sandbox.git(&["worktree", "remove", "--force", "inner"]);
    watching.caught_up();
    sandbox.git(&["add", "--all"]);
    sandbox.git(&["commit", "--quiet", "--message", "more"]);
    watching.caught_up();
    sandbox.git(&["reset", "--quiet", "--soft", "HEAD~1"]);
    watching.caught_up();
}

#[test]
fn a_root_that_goes_and_comes_back_is_followed() {
    let sandbox = small();
    let watching = Watching::start(&sandbox, QUICK);
    fs::rename(sandbox.tree(), sandbox.path().join("away")).expect("renamed");
    watching.wait("it is said", || !watching.events("watch").is_empty() && !watching.events("failed").is_empty());
    fs::rename(sandbox.path().join("away"), sandbox.tree()).expect("renamed");
    watching.caught_up();
    fs::remove_dir_all(sandbox.tree()).expect("removed");
    sandbox.write("lib.py", "def other(): pass\n");
    watching.caught_up();
    sandbox.write("pkg/more.py", "from lib import other\nother()\n");
    watching.caught_up();
}

/// The process stands in the root, and was told of it by where it stands.
#[test]
fn a_root_that_is_named_from_inside_may_be_made_anew() {
    let sandbox = small();
    let watching = Watching::start_with(&sandbox, QUICK, &["--root", "."]);
    for round in 0..2 {
        fs::remove_dir_all(sandbox.tree()).expect("removed");
        watching.wait("it is said", || watching.events("failed").len() == round + 1);
        sandbox.write("lib.py", format!("def f():\n    return {round}\n"));
        sandbox.commit_all();
        watching.caught_up();
        sandbox.write("pkg/more.py", "from lib import f\nf()\n");
        watching.caught_up();
    }
}

#[test]
fn without_events_the_tree_is_looked_at() {
    let sandbox = small();
    sandbox.write("pkg/y.py", "");
    let watching = Watching::start(&sandbox, "[watch]\nmax_directories = 1\npoll_seconds = 1");
    sandbox.write("pkg/x.py", "from lib import f\nf()\n");
    watching.caught_up();
    sandbox.git(&["rm", "--quiet", "use.py"]);
    watching.caught_up();
    let said = watching.events("watching")[0]["watch"].as_str().unwrap_or_default().to_owned();
    assert!(said.starts_with("degraded: ") && said.contains("`watch.max_directories`"), "{said}");
}

/// The queue of events overflows while the process is stopped.
#[test]
fn what_happened_while_it_was_stopped_is_found() {
    let queue =
        fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").ok().and_then(|text| text.trim().parse::<usize>().ok());
    let Some(queue) = queue.filter(|queue| *queue <= 20_000) else { return };
    let sandbox = small();
    let watching = Watching::start(&sandbox, QUICK);
    watching.signal(Signal::STOP);
    for index in 0..queue / 2 + 100 {
        let path = sandbox.tree().join(format!("f{index}.unknown"));
        fs::write(&path, "").expect("written");
        fs::remove_file(&path).expect("removed");
    }
    sandbox.write("pkg/deep/late.py", "from lib import f\nf()\n");
    watching.signal(Signal::CONT);
    watching.caught_up();
    sandbox.write("pkg/deep/late.py", "from lib import f\nf()\nf()\n");
    watching.caught_up();
}

#[test]
fn what_a_sync_did_is_said() {
    let sandbox = small();
    let mut watching = Watching::start(&sandbox, QUICK);
    sandbox.write("lib.py", "def renamed():\n    return 1\n");
    watching.wait("a sync is said", || !watching.events("sync").is_empty());
    let said = &watching.events("sync")[0];
    assert_eq!((&said["changed_files"], &said["files"][0]), (&Value::from(1), &Value::from("lib.py")), "{said}");
    assert_eq!((&said["edges_added"], &said["edges_removed"]), (&Value::from(0), &Value::from(2)), "{said}");
    let unbound = &said["unbound"][0];
    assert_eq!((&unbound["path"], &unbound["line"], &unbound["name"]), (&"use.py".into(), &1.into(), &"f".into()), "{said}");
    assert_eq!(unbound["reason"], "unresolved_export");
    // Another process may publish first; what changed is said all the same, once.
    let kept = sandbox.path().join("kept.toml").to_string_lossy().into_owned();
    sandbox.write("use.py", "from lib import renamed\nrenamed()\n");
    sandbox.run_here(&["--config", &kept, "sync", "--quiet"]).ended(0);
    watching.wait("the other sync is said", || watching.events("sync").len() == 2);
    assert_eq!(watching.events("sync")[1]["edges_added"], 2, "{:?}", watching.events("sync"));
    // A storm of saves is a sync or two.
    for index in 0..40 {
        sandbox.write("lib.py", format!("def renamed():\n    return {index}\n"));
    }
    watching.caught_up();
    assert!(watching.events("sync").len() < 20, "{:?}", watching.events("sync"));
    watching.signal(Signal::INT);
    let ended = watching.child.wait().expect("it ends");
    assert_eq!(ended.code(), Some(0), "it ends in good order");
    assert!(watching.events("failed").is_empty());
}

#[test]
fn conflicts_are_waited_out() {
    let sandbox = small();
    sandbox.git(&["checkout", "--quiet", "-b", "other"]);
    sandbox.write("lib.py", "def theirs(): pass\n");
    sandbox.git(&["commit", "--quiet", "--all", "--message", "theirs"]);
    sandbox.git(&["checkout", "--quiet", "-"]);
    sandbox.write("lib.py", "def ours(): pass\n");
    sandbox.git(&["commit", "--quiet", "--all", "--message", "ours"]);
    let watching = Watching::start(&sandbox, QUICK);
    let merge = sandbox.command("git").args(["merge", "--quiet", "other"]).output().expect("git is installed");
    assert!(!merge.status.success(), "there is a conflict");
    watching.wait("it is said", || watching.events("failed").iter().any(|event| event["code"] == "workspace_busy"));
    sandbox.write("lib.py", "def both(): pass\n");
    sandbox.git(&["add", "lib.py"]);
    sandbox.git(&["commit", "--quiet", "--message", "merged"]);
    watching.caught_up();
}
