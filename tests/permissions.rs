//! Who may read and write a cache: its own user and nobody else, a reader of a read-only one without a trace, and never another user's word.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, lchown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::program::{PROGRAM, Run, indexed};
use crate::sandbox::Sandbox;

/// Two users that own nothing on any machine.
pub const ONE: u32 = 61_017;
const OTHER: u32 = 61_018;

pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Calls `visit` with a path and everything below it, deepest first, following no link.
fn walk(path: &Path, visit: &mut dyn FnMut(&Path, &fs::Metadata)) {
    let found = fs::symlink_metadata(path).expect("it exists");
    if found.is_dir() {
        let mut entries: Vec<PathBuf> = fs::read_dir(path).expect("listed").map(|entry| entry.expect("listed").path()).collect();
        entries.sort();
        entries.iter().for_each(|entry| walk(entry, visit));
    }
    visit(path, &found);
}

pub fn chmod(path: &Path, directories: u32, files: u32) {
    walk(path, &mut |path, found| {
        let mode = if found.is_dir() { directories } else { files };
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("it is ours");
    });
}

pub fn chown(path: &Path, user: u32) {
    walk(path, &mut |path, _| lchown(path, Some(user), Some(user)).expect("root may"));
}

/// Returns everything below a path with all that a write would change.
pub fn state_of(path: &Path) -> Vec<String> {
    let mut state = Vec::new();
    walk(path, &mut |path, found| {
        let times = (found.mtime(), found.mtime_nsec(), found.ctime(), found.ctime_nsec());
        state.push(format!("{path:?} {:o} {} {} {} {times:?}", found.mode(), found.uid(), found.ino(), found.size()));
    });
    state
}

/// Runs the program as a user, where the test may become one; else as who runs the test.
pub fn run_as(sandbox: &Sandbox, user: u32, arguments: &[&str]) -> Run {
    Run::of(command_as(sandbox, user).args(arguments))
}

pub fn command_as(sandbox: &Sandbox, user: u32) -> Command {
    if !is_root() {
        return sandbox.command(PROGRAM);
    }
    // The program may stand where other users cannot go.
    let program = sandbox.path().join("program");
    if !program.exists() && fs::hard_link(PROGRAM, &program).is_err() {
        fs::copy(PROGRAM, &program).expect("there is room");
    }
    fs::set_permissions(sandbox.path(), fs::Permissions::from_mode(0o755)).expect("it is ours");
    let mut command = sandbox.command(program);
    command.uid(user).gid(user);
    command
}

#[test]
fn what_is_made_is_private_whatever_the_mask() {
    let sandbox = Sandbox::new();
    sandbox.write("a.py", "def f(): pass\n");
    sandbox.commit_all();
    let root = sandbox.path().join("cache/sextant");
    let run = |arguments: &[&str]| {
        let mut shell = sandbox.command("sh");
        shell.args(["-c", "umask 000; exec \"$0\" \"$@\"", PROGRAM]).args(arguments);
        Run::of(&mut shell).ended(0)
    };
    let is_private = |after: &str| {
        walk(&root, &mut |path, found| {
            let expected = if found.is_dir() { 0o700 } else { 0o600 };
            assert_eq!(found.mode() & 0o7777, expected, "{path:?} after {after}");
        });
    };
    run(&["index", "--quiet"]);
    is_private("index");
    sandbox.write("a.py", "def g(): pass\n");
    run(&["sync", "--quiet"]);
    is_private("sync");
    run(&["symbols", "g"]);
    is_private("a question");
    run(&["clear", "--quiet"]);
    is_private("clear");
    run(&["index", "--quiet"]);

    // Wider permissions of directories are taken back by the next build; what is in a private directory is reached by nobody else.
    chmod(&root, 0o777, 0o666);
    fs::set_permissions(&root, fs::Permissions::from_mode(0o755)).expect("it is ours");
    sandbox.write("a.py", "def h(): pass\n");
    run(&["sync", "--quiet"]);
    walk(&root, &mut |path, found| {
        let expected = if path == root { 0o755 } else { 0o700 };
        assert!(!found.is_dir() || found.mode() & 0o7777 == expected, "{path:?} has {:o}", found.mode());
    });
}

fn is_answered(run: &Run) {
    assert_eq!(run.status, Some(0), "{run:?}");
    assert!(run.out.contains("use.py"), "{run:?}");
}

/// Returns a worktree with an index in a cache that its user may only read, and where that cache is.
pub fn read_only() -> (Sandbox, PathBuf) {
    let sandbox = indexed();
    let root = sandbox.path().join("cache");
    chmod(&root, 0o500, 0o400);
    if is_root() {
        chown(&sandbox.path(), ONE);
    }
    (sandbox, root)
}

#[test]
fn a_read_only_cache_answers_and_is_left_as_it_is() {
    let (sandbox, root) = read_only();
    let before = state_of(&root);
    let run = |arguments: &[&str]| run_as(&sandbox, ONE, arguments);
    is_answered(&run(&["callers", "lib.f"]));
    is_answered(&run(&["callers", "lib.f", "--on-stale", "refuse"]));
    is_answered(&run(&["explore", "f"]));
    is_answered(&run(&["export"]));
    assert_eq!(run(&["status", "--json"]).ended(0).json()["status"], "ready");

    let edited = "from lib import f\n\n\ndef other():\n    return f()\n";
    let whole = fs::read_to_string(sandbox.tree().join("use.py")).expect("readable");
    sandbox.write("use.py", edited);
    assert_eq!(run(&["callers", "lib.f", "--json", "--on-stale", "refuse"]).ended(3).code(), "code_changed");
    for arguments in [
        &["callers", "lib.f", "--json", "--on-stale", "sync"][..],
        &["sync", "--json"],
        &["index", "--json"],
        &["clear", "--json"],
    ] {
        let run = run(arguments).ended(5);
        assert_eq!(run.code(), "code_build_failed");
        assert!(run.err.contains("read-only") && run.err.contains("cache_dir"), "{run:?}");
    }
    sandbox.write("use.py", whole);
    is_answered(&run(&["callers", "lib.f"]));
    assert_eq!(state_of(&root), before);

    // Damage is refused although it cannot be marked.
    let mut database = None;
    walk(&root, &mut |path, _| database = database.take().or(path.ends_with("graph.sqlite").then(|| path.to_owned())));
    let database = database.expect("it was indexed");
    fs::set_permissions(&database, fs::Permissions::from_mode(0o600)).expect("it is ours");
    let mut bytes = fs::read(&database).expect("readable");
    bytes[5000] ^= 1;
    fs::write(&database, bytes).expect("written");
    fs::set_permissions(&database, fs::Permissions::from_mode(0o400)).expect("it is ours");
    let before = state_of(&root);
    assert_eq!(run(&["callers", "lib.f", "--json", "--on-stale", "refuse"]).ended(5).code(), "index_integrity_failed");
    assert_eq!(state_of(&root), before);
    chmod(&root, 0o700, 0o600);
    run(&["sync", "--quiet"]).ended(0);
    is_answered(&run(&["callers", "lib.f"]));
}

/// A file system that is mounted read-only stops root, too.
#[test]
fn a_cache_on_a_read_only_mount_answers() {
    let sandbox = indexed();
    let root = sandbox.path().join("cache");
    let script = "mount --bind \"$1\" \"$1\" && mount -o remount,bind,ro \"$1\" || exit 99; shift; exec \"$@\"";
    let run = |arguments: &[&str]| {
        let mut command = sandbox.command("unshare");
        command.args(["--mount", "sh", "-c", script, "sh"]).arg(&root).arg(PROGRAM).args(arguments);
        command.output().ok().map(Run::from).filter(|run| !matches!(run.status, Some(1 | 99)) || run.err.contains("hint:"))
    };
    let before = state_of(&root);
    // Not every machine lets a test mount anything.
    let Some(first) = run(&["callers", "lib.f", "--on-stale", "refuse"]) else { return };
    is_answered(&first);
    sandbox.write("use.py", "");
    let stale = run(&["callers", "lib.f", "--json", "--on-stale", "refuse"]).expect("it mounted before");
    assert_eq!(stale.ended(3).code(), "code_changed");
    for arguments in [&["callers", "lib.f", "--json"][..], &["index", "--json"], &["clear", "--json"]] {
        let refused = run(arguments).expect("it mounted before").ended(5);
        assert_eq!(refused.code(), "code_build_failed");
        assert!(refused.err.contains("read-only"), "{refused:?}");
    }
    assert_eq!(state_of(&root), before);
}

/// Where the owner's own permissions are gone, a build takes them back; questions refuse.
#[test]
fn what_its_owner_cannot_read_is_repaired() {
    let sandbox = indexed();
    if is_root() {
        chown(&sandbox.path(), ONE);
    }
    let root = sandbox.path().join("cache/sextant");
    let run = |arguments: &[&str]| run_as(&sandbox, ONE, arguments);
    let right = run(&["export"]).ended(0).out;
    let parts = || {
        let mut parts = Vec::new();
        walk(&root, &mut |path, _| parts.push(path.to_owned()));
        parts.retain(|part| *part != root);
        parts
    };
    let count = parts().len();
    assert!(count >= 11, "{:?}", parts());
    for command in ["sync", "index"] {
        for number in 0..count {
            // The same shape each time, under other names.
            run(&["clear", "--quiet"]).ended(0);
            run(&["index", "--quiet"]).ended(0);
            let part = parts().swap_remove(number);
            fs::set_permissions(&part, fs::Permissions::from_mode(0o000)).expect("it is ours");
            for question in
                [&["export", "--json", "--on-stale", "refuse"][..], &["read", "use.py", "--json", "--on-stale", "refuse"]]
            {
                let asked = run(question);
                match asked.status {
                    Some(0) => assert!(question[0] == "read" || asked.out == right, "{part:?}: {asked:?}"),
                    _ => {
                        let codes = ["index_integrity_failed", "code_storage_unavailable"];
                        assert!(codes.contains(&asked.code().as_str()), "{part:?}: {asked:?}");
                    }
                }
            }
            let built = run(&[command, "--json"]);
            assert_eq!(built.status, Some(0), "{command} with {part:?}: {built:?}");
            assert_eq!(run(&["export", "--on-stale", "refuse"]).ended(0).out, right, "{command} with {part:?}");
            run(&["read", "use.py", "--on-stale", "refuse"]).ended(0);
        }
    }
}

/// Two users share a directory for caches: each believes only what is theirs, even where the other one lets everybody read.
#[test]
fn two_users_never_see_each_others_generations() {
    if !is_root() {
        // Only root becomes another user.
        return;
    }
    let sandbox = indexed();
    fs::remove_dir_all(sandbox.path().join("cache")).expect("it was made");
    // A repository of somebody else is refused before any cache is looked at; a plain folder is not.
    fs::remove_dir_all(sandbox.tree().join(".git")).expect("it was made");
    let shared = sandbox.path().join("cache/sextant");
    fs::create_dir_all(&shared).expect("made");
    chmod(&sandbox.path(), 0o755, 0o644);
    fs::set_permissions(&shared, fs::Permissions::from_mode(0o1777)).expect("it is ours");

    run_as(&sandbox, ONE, &["index", "--quiet"]).ended(0);
    is_answered(&run_as(&sandbox, ONE, &["callers", "lib.f"]));
    for opened in [false, true] {
        if opened {
            walk(&shared, &mut |path, found| {
                if found.uid() == ONE {
                    let mode = if found.is_dir() { 0o777 } else { 0o666 };
                    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("root may");
                }
            });
        }
        for (arguments, code) in [
            (&["callers", "lib.f", "--json", "--on-stale", "refuse"][..], "code_storage_unavailable"),
            (&["export", "--json"], "code_storage_unavailable"),
            (&["index", "--json"], "code_build_failed"),
            (&["sync", "--json"], "code_build_failed"),
            (&["clear", "--json"], "code_build_failed"),
        ] {
            let run = run_as(&sandbox, OTHER, arguments).ended(5);
            assert_eq!(run.code(), code, "{arguments:?}, opened: {opened}");
            assert!(run.err.contains("another user") || !opened, "{run:?}");
        }
    }
    is_answered(&run_as(&sandbox, ONE, &["callers", "lib.f"]));

    // With a place of their own the other one is served, and from the facts of nobody else.
    let own = sandbox.path().join("own");
    fs::create_dir(&own).expect("made");
    chown(&own, OTHER);
    let mut command = command_as(&sandbox, OTHER);
    let indexed = Run::of(command.env("XDG_CACHE_HOME", &own).args(["index", "--json"])).ended(0).json();
    assert_eq!(indexed["extracted_files"], 2);

    // A cache that its owner gives to read, root of it and all, is read and not written.
    let root = sandbox.path().join("cache");
    chown(&root, ONE);
    chmod(&root, 0o755, 0o644);
    let before = state_of(&root);
    is_answered(&run_as(&sandbox, OTHER, &["callers", "lib.f", "--on-stale", "refuse"]));
    let run = run_as(&sandbox, OTHER, &["index", "--json"]).ended(5);
    assert!(run.err.contains("read-only"), "{run:?}");
    assert_eq!(state_of(&root), before);
}

#[test]
fn two_scopes_of_one_tree_are_apart() {
    let sandbox = indexed();
    let config = sandbox.path().join("sextant.toml");
    let root = sandbox.tree();
    let text = format!("[scopes.all]\nroot = {root:?}\n[scopes.less]\nroot = {root:?}\nexclude = [\"use.py\"]\n");
    fs::write(&config, text).expect("the sandbox is writable");
    let config = config.to_string_lossy().into_owned();
    let run = |scope: &str, arguments: &[&str]| sandbox.sextant(&[&["--config", &config, "--scope", scope], arguments].concat());
    run("all", &["index", "--quiet"]).ended(0);
    run("less", &["symbols", "f"]).ended(4);
    run("less", &["index", "--quiet"]).ended(0);
    let files = |scope: &str| run(scope, &["symbols", "f", "--json"]).ended(0).json()["coverage"]["eligible_files"].clone();
    assert_eq!((files("all"), files("less")), (2.into(), 1.into()));
    run("all", &["clear", "--quiet"]).ended(0);
    run("all", &["symbols", "f"]).ended(4);
    assert_eq!(files("less"), 1);
    // The scope that nobody configured is a third one.
    is_answered(&sandbox.sextant(&["callers", "lib.f"]));
}

#[test]
fn a_cache_inside_the_tree_is_refused_however_it_is_named() {
    let sandbox = indexed();
    let inside = sandbox.tree().join("hidden");
    fs::create_dir(&inside).expect("made");
    let linked = sandbox.path().join("linked");
    std::os::unix::fs::symlink(&inside, &linked).expect("a link");
    let leading = sandbox.path().join("leading");
    fs::create_dir(&leading).expect("made");
    std::os::unix::fs::symlink(&inside, leading.join("sextant")).expect("a link");
    for place in [sandbox.tree(), inside.clone(), inside.join("deep/er"), linked.clone(), linked.join("deep"), leading] {
        for arguments in [&["index", "--json"][..], &["symbols", "f", "--json"], &["clear", "--json"], &["status", "--json"]] {
            let run = Run::of(sandbox.program(arguments).env("XDG_CACHE_HOME", &place)).ended(2);
            assert_eq!(run.code(), "code_cache_inside_repository", "{arguments:?} {place:?}");
        }
    }
    assert_eq!(fs::read_dir(&inside).expect("listed").count(), 0);
}

/// A tree may stand inside the directory of the caches: it is indexed as any other, and not touched.
#[test]
fn a_tree_inside_the_cache_directory_is_safe() {
    let sandbox = indexed();
    for place in ["cache/sextant/project", "cache/sextant/facts/project", "cache/sextant/.project"] {
        let tree = sandbox.path().join(place);
        fs::create_dir_all(&tree).expect("made");
        for (path, text) in [("lib.py", "def f(): pass\n"), (".hidden.py", "def f(): pass\n"), ("0123456789abcdef.pack", "mine")]
        {
            fs::write(tree.join(path), text).expect("written");
        }
        let before = state_of(&tree);
        let root = tree.to_string_lossy().into_owned();
        for command in ["index", "sync", "clear", "index"] {
            sandbox.sextant(&[command, "--quiet", "--root", &root]).ended(0);
            sandbox.sextant(&[command, "--quiet"]).ended(0);
        }
        sandbox.sextant(&["symbols", "f", "--root", &root]).ended(0);
        assert_eq!(state_of(&tree), before, "{place}");
    }
}
