//! Stories of trees, caches and clients beside a daemon, each ending with what a fresh process says.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::background::{Daemon, as_a_fresh_process, cpu_of, left, parsers, processes, status, wait};
use crate::permissions::{ONE, command_as, read_only, run_as, state_of};
use crate::program::{Run, indexed};
use crate::sandbox::Sandbox;

/// Asks for callers without a sync of the client's own; the daemon has answered.
#[track_caller]
fn callers(sandbox: &Sandbox, expected: &str) {
    let run = sandbox.sextant(&["callers", "lib.f", "--limit", "50"]).ended(0);
    assert!(run.out.contains(expected), "{expected} is in {}", run.out);
}

#[test]
fn new_folders_inside_of_new_folders() {
    let sandbox = indexed();
    let _daemon = Daemon::start(&sandbox);
    callers(&sandbox, "use.py:5");
    for round in 0..4 {
        let path = format!("a{round}/b/c/x.py");
        sandbox.write(&path, "from lib import f\nf()\n");
        callers(&sandbox, &format!("{path}:2"));
        sandbox.write(&path, "from lib import f\n\nf()\n");
        callers(&sandbox, &format!("{path}:3"));
    }
    as_a_fresh_process(&sandbox, &[]);
}

/// More happens than the system's queue of events holds.
#[test]
fn thousands_of_files_while_it_was_stopped() {
    const FILES: usize = 18_000;
    let sandbox = indexed();
    let daemon = Daemon::start(&sandbox);
    callers(&sandbox, "use.py:5");
    daemon.signal(Signal::STOP);
    for folder in 0..30 {
        let folder = sandbox.tree().join(format!("many/d{folder}"));
        fs::create_dir_all(&folder).expect("made");
        for index in 0..FILES / 30 {
            // Of a kind that costs a look and no more.
            fs::write(folder.join(format!("f{index}.png")), "").expect("written");
        }
    }
    sandbox.write("many/d7/late.py", "from lib import f\nf()\n");
    // Nobody waits for a process that does not run.
    let started = Instant::now();
    callers(&sandbox, "many/d7/late.py:2");
    assert!(started.elapsed() < Duration::from_secs(30), "{:?}", started.elapsed());
    sandbox.write("many/d8/later.py", "from lib import f\nf()\n");
    daemon.signal(Signal::CONT);
    wait("it answers", || daemon.status()["working"] == 0);
    let before = daemon.answered();
    callers(&sandbox, "many/d8/later.py:2");
    assert_eq!(daemon.answered() - before, 1, "it was asked");
    as_a_fresh_process(&sandbox, &[]);
    wait("it comes to rest", || {
        let (before, started) = (cpu_of(daemon.child.id()), Instant::now());
        wait("half a second has passed", || started.elapsed() > Duration::from_millis(500));
        cpu_of(daemon.child.id()) - before < Duration::from_millis(50)
    });
}

#[test]
fn a_worktree_inside_of_a_worktree_has_its_own_bytes() {
    let sandbox = indexed();
    let _daemon = Daemon::start(&sandbox);
    callers(&sandbox, "use.py:5");
    sandbox.git(&["worktree", "add", "--quiet", "wt", "-b", "x"]);
    let inside = |arguments: &[&str]| Run::of(sandbox.program(arguments).current_dir(sandbox.tree().join("wt")));
    sandbox.write("wt/lib.py", "def renamed():\n    return 1\n");
    inside(&["index", "--quiet"]).ended(0);
    inside(&["symbols", "renamed"]).ended(0);
    assert!(!inside(&["callers", "lib.f"]).out.contains("use.py"));
    callers(&sandbox, "use.py:5");
    sandbox.sextant(&["symbols", "renamed"]).ended(1);
    let scope = |run: Run| run.ended(0).json()["scope_id"].clone();
    assert_ne!(scope(inside(&["status", "--json"])), scope(sandbox.sextant(&["status", "--json"])));
    let scopes = status(&sandbox)["scopes"].as_array().expect("it runs").clone();
    let roots: Vec<&str> = scopes.iter().filter_map(|scope| scope["root"].as_str()).collect();
    assert!(roots.len() == 2 && roots.iter().any(|root| root.ends_with("/tree/wt")), "{roots:?}");
    as_a_fresh_process(&sandbox, &[]);
    as_a_fresh_process(&sandbox, &["--root", &sandbox.tree().join("wt").to_string_lossy()]);
    sandbox.git(&["worktree", "remove", "--force", "wt"]);
    wait("the scope is let go", || status(&sandbox)["scopes"].as_array().is_some_and(|scopes| scopes.len() == 1));
    as_a_fresh_process(&sandbox, &[]);
}

#[test]
fn clients_that_die_or_fall_silent_leave_nothing() {
    let sandbox = indexed();
    let config = sandbox.path().join("idle.toml");
    fs::write(&config, "[daemon]\nidle_minutes = 0.02\n").expect("written");
    let daemon = Daemon::start_with(&sandbox, &[("SEXTANT_CONFIG", &config.to_string_lossy())]);
    let client = |_| {
        let mut command = sandbox.program(&["query", "--request-file", "-"]);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().expect("the program starts")
    };
    let mut clients: Vec<Child> = (0..50).map(client).collect();
    let started = Instant::now();
    for (index, client) in clients.iter_mut().enumerate() {
        drop(client.stdin.take().filter(|_| index % 2 == 0));
        if index % 2 == 1 {
            client.kill().expect("it is ours");
        }
    }
    for mut client in clients {
        client.wait().expect("it is ours");
    }
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
    assert_eq!(daemon.ended(), Some(0));
    assert_eq!(left(&sandbox), Vec::<String>::new());
    wait("no process is left", || processes(&sandbox).is_empty());
}

#[test]
fn killed_in_the_middle_of_a_sync() {
    let sandbox = indexed();
    for (round, fault) in ["pointer-rename", "overlay-write", "seal-sync", "generation-rename"].into_iter().enumerate() {
        let daemon = Daemon::start_with(&sandbox, &[("SEXTANT_FAULT", &format!("{fault}=stop"))]);
        sandbox.write("late.py", format!("from lib import f\nf()\n\n\ndef late{round}(): pass\n"));
        // The daemon is killed, and this process does it.
        sandbox.sextant(&["sync", "--quiet"]).ended(0);
        daemon.ended();
        let _daemon = Daemon::start(&sandbox);
        sandbox.write("late.py", format!("from lib import f\n\nf()\n\n\ndef later{round}(): pass\n"));
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| sandbox.sextant(&["sync", "--quiet"]).ended(0));
                scope.spawn(|| {
                    let run = sandbox.sextant(&["callers", "lib.f", "--json", "--on-stale", "refuse"]);
                    match run.status {
                        Some(0) => assert!(run.out.contains(r#""line":3"#), "{run:?}"),
                        Some(3) => assert_eq!(run.code(), "code_changed"),
                        _ => panic!("{run:?}"),
                    }
                });
            }
        });
        callers(&sandbox, "late.py:3");
        as_a_fresh_process(&sandbox, &[]);
    }
}

#[test]
fn what_it_sees_of_changes_is_said() {
    let sandbox = indexed();
    let watched = |run: Run| run.ended(0).json()["last_build"]["watch"].as_str().expect("it was built").to_owned();
    let daemon = Daemon::start(&sandbox);
    assert_eq!(watched(sandbox.sextant(&["status", "--json", "--no-daemon"])), "none");
    callers(&sandbox, "use.py:5");
    wait("it watches", || watched(sandbox.sextant(&["status", "--json"])) == "ok");
    assert_eq!(daemon.status()["scopes"][0]["watch"], "ok", "{}", daemon.status());
    // A large tree, as it were.
    sandbox.write("pkg/x.py", "");
    let config = sandbox.path().join("few.toml");
    fs::write(&config, "[watch]\nmax_directories = 1\n").expect("written");
    let config = config.to_string_lossy().into_owned();
    let status = || sandbox.sextant(&["status", "--json", "--config", &config]);
    wait("it says that it cannot", || watched(status()).starts_with("degraded: "));
    assert!(watched(status()).contains("`watch.max_directories`"), "{}", watched(status()));
    let text = sandbox.sextant(&["daemon", "status"]).ended(0).out;
    assert!(!text.contains("watcher: ok") && text.contains("watcher: degraded"), "the one that was used last: {text}");
    assert!(text.contains("asked with 2 configurations"), "{text}");
    assert_eq!(daemon.status()["scopes"].as_array().map(Vec::len), Some(1));
    as_a_fresh_process(&sandbox, &["--config", &config]);
}

#[test]
fn what_nobody_asks_for_is_let_go() {
    let sandbox = indexed();
    let config = sandbox.path().join("unload.toml");
    fs::write(&config, "[daemon]\nunload_minutes = 0.03\n").expect("written");
    let daemon = Daemon::start_with(&sandbox, &[("SEXTANT_CONFIG", &config.to_string_lossy())]);
    for round in 0..2 {
        sandbox.write("lib.py", format!("def f():\n    return {round}\n"));
        callers(&sandbox, "use.py:5");
        wait("it is let go", || daemon.status()["scopes"] == serde_json::json!([]));
        wait("its parsers, too", || parsers(daemon.child.id()) == 0);
    }
    as_a_fresh_process(&sandbox, &[]);
}

/// Fifty hooks of one edit, as a host fires them.
#[test]
fn a_burst_of_hooks_is_a_few_builds() {
    let sandbox = indexed();
    let traces = sandbox.path().join("traces");
    let mut command = sandbox.program(&["daemon", "run", "--verbose"]);
    command.stderr(fs::File::create(&traces).expect("made"));
    let daemon = Daemon::spawn(&sandbox, command);
    callers(&sandbox, "use.py:5");
    let built = || {
        fs::read_to_string(&traces)
            .expect("text")
            .lines()
            .filter(|line| line.contains("publish{") && line.contains("close"))
            .count()
    };
    let before = daemon.answered();
    for round in 0..3 {
        let known = built();
        sandbox.write("lib.py", format!("def f():\n    return {round}\n\n\ndef burst{round}(): pass\n"));
        let hooks: Vec<Child> = (0..50).map(|_| sandbox.program(&["hook", "git"]).spawn().expect("the program starts")).collect();
        for mut hook in hooks {
            assert!(hook.wait().expect("it ends").success());
        }
        sandbox.sextant(&["symbols", &format!("burst{round}"), "--on-stale", "refuse"]).ended(0);
        assert!(built() - known <= 1, "an edit is published once");
    }
    assert!(daemon.answered() - before > 75, "most hooks found the daemon");
    as_a_fresh_process(&sandbox, &[]);
}

#[test]
fn killed_at_any_moment() {
    let sandbox = indexed();
    for round in 0..16u32 {
        let daemon = Daemon::start(&sandbox);
        sandbox.sextant(&["callers", "lib.f"]).ended(0);
        sandbox.write("lib.py", format!("def f():\n    return {round}\n\n\ndef round{round}(): pass\n"));
        let mut command = sandbox.program(&["symbols", &format!("round{round}")]);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
        std::thread::sleep(Duration::from_millis(6 * u64::from(round)));
        daemon.signal(Signal::KILL);
        let killed = Instant::now();
        let run = Run::from(child.wait_with_output().expect("it ends")).ended(0);
        assert!(run.out.contains("lib.py:5"), "{run:?}");
        assert!(killed.elapsed() < Duration::from_secs(10), "{:?}", killed.elapsed());
        daemon.ended();
    }
    as_a_fresh_process(&sandbox, &[]);
}

#[test]
fn a_cache_that_is_read_only() {
    let (sandbox, root) = read_only();
    let before = state_of(&root);
    let run = |arguments: &[&str]| run_as(&sandbox, ONE, arguments);
    // In the background its log has no place, which is no reason not to run.
    run(&["daemon", "start"]).ended(0);
    let answered = || run(&["daemon", "status", "--json"]).ended(0).json()["answered"].as_u64().expect("it runs");
    let known = answered();
    assert!(run(&["callers", "lib.f"]).ended(0).out.contains("use.py:5"));
    assert!(run(&["callers", "lib.f", "--on-stale", "refuse"]).ended(0).out.contains("use.py:5"));
    sandbox.write("use.py", "from lib import f\n\n\ndef other():\n    return f()\n");
    assert_eq!(run(&["callers", "lib.f", "--json", "--on-stale", "refuse"]).ended(3).code(), "code_changed");
    for arguments in
        [&["callers", "lib.f", "--json"][..], &["sync", "--json"], &["sync", "--no-wait", "--json"], &["clear", "--json"]]
    {
        assert_eq!(run(arguments).ended(5).code(), "code_build_failed");
    }
    assert_eq!(answered() - known, 7, "all were served");
    assert_eq!(state_of(&root), before);
    run(&["daemon", "stop"]).ended(0);
    // Without a runtime directory there is no place for a socket, and everything works without one.
    let alone = |arguments: &[&str]| {
        let mut command = command_as(&sandbox, ONE);
        Run::of(command.args(arguments).env_remove("XDG_RUNTIME_DIR"))
    };
    let refused = alone(&["daemon", "start", "--json"]).ended(5);
    assert_eq!(refused.code(), "code_storage_unavailable");
    assert_eq!(alone(&["callers", "lib.f", "--json", "--on-stale", "refuse"]).ended(3).code(), "code_changed");
    assert_eq!(state_of(&root), before);
    fs::set_permissions(&root, fs::Permissions::from_mode(0o700)).expect("it is ours");
}
