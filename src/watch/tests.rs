//! The watcher on real trees: what it tells, and what it does not.

use std::path::PathBuf;
use std::process::Command;

use super::*;
use crate::config::{Check, OnStale, Scope};

/// A tree that is watched.
struct Watched {
    folder: tempfile::TempDir,
    tree: Option<WatchedTree>,
    settings: Watch,
    reach: Reach,
}

/// No wait is longer, so that a test which fails ends.
const CAP: Duration = Duration::from_secs(20);

impl Watched {
    fn new(files: &[&str]) -> Self {
        let watched = Self {
            folder: tempfile::tempdir().expect("a temporary folder"),
            tree: None,
            settings: Watch { quiet_milliseconds: 30, poll_seconds: 1, ..Watch::default() },
            reach: Reach::OF_SYSTEM,
        };
        std::fs::create_dir(watched.path("")).expect("a folder");
        files.iter().for_each(|path| watched.write(path, "x = 1\n"));
        watched
    }

    fn path(&self, path: &str) -> PathBuf {
        self.folder.path().canonicalize().expect("it exists").join("tree").join(path)
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.path(path);
        std::fs::create_dir_all(path.parent().expect("below the root")).expect("folders");
        std::fs::write(path, text).expect("written");
    }

    fn git(&self, arguments: &[&str]) {
        let output = Command::new("git")
            .args(["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false", "-c", "gc.auto=0"])
            .args(arguments)
            .current_dir(self.path(""))
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .output()
            .expect("git runs");
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    }

    fn worktree(&self) -> Worktree {
        Worktree::open(&self.path("")).expect("a folder")
    }

    fn policy(&self) -> Policy {
        let scope = Scope {
            id: "test".to_owned(),
            root: self.path(""),
            source_roots: None,
            include_untracked: true,
            exclude: Vec::new(),
            deprioritize: Vec::new(),
            on_stale: OnStale::Sync,
            check: Check::Full,
            implicit: true,
        };
        Policy::new(&scope).expect("no patterns")
    }

    fn start(mut self) -> Self {
        self.tree = Some(WatchedTree::start_with(self.reach, &self.worktree(), &self.policy(), &self.settings).expect("watched"));
        self
    }

    fn tree(&mut self) -> &mut WatchedTree {
        self.tree.as_mut().expect("it was started")
    }

    /// Waits until hints name all these paths, or something above them, and returns all that they named; `*` stands for anything.
    fn until(&mut self, paths: &[&str]) -> Vec<String> {
        let started = Instant::now();
        let mut named: Vec<String> = Vec::new();
        let is_named = |named: &[String], path: &str| {
            named.iter().any(|known| {
                known == path || known != "*" && path.strip_prefix(known.as_str()).is_some_and(|rest| rest.starts_with('/'))
            })
        };
        while !paths.iter().all(|path| is_named(&named, path)) {
            assert!(started.elapsed() < CAP, "waiting for {paths:?}: {named:?}, {}", self.tree().health());
            match self.tree().wait(Duration::from_millis(100)) {
                Some(Hint::Rescan) => named.push("*".to_owned()),
                Some(Hint::Paths(found)) => named.extend(found.iter().map(RepoPath::to_string)),
                None => {}
            }
        }
        named
    }

    /// Waits until the watcher says this of itself.
    fn until_health(&mut self, wanted: impl Fn(&Health) -> bool) -> String {
        let started = Instant::now();
        loop {
            let health = self.tree().health();
            if wanted(&health) {
                return health.to_string();
            }
            assert!(started.elapsed() < CAP, "{health}");
            self.tree().wait(Duration::from_millis(50));
        }
    }

    /// Waits until it is quiet, and sees that a change is told exactly.
    #[track_caller]
    fn sees(&mut self, path: &str) {
        self.until_health(|health| *health == Health::Ok);
        while self.tree().wait(Duration::from_millis(300)).is_some() {}
        self.write(path, &format!("{:?}", Instant::now()));
        self.until(&[path]);
    }

    /// Writes a file that nothing else touches and waits for it: what happened before has been told by then. Returns what else was.
    fn told(&mut self) -> Vec<String> {
        self.write("zz.py", &format!("{:?}", Instant::now()));
        let mut named = self.until(&["zz.py"]);
        named.retain(|path| path != "zz.py");
        named.sort();
        named.dedup();
        named
    }
}

#[test]
fn writes_renames_and_removals_are_told() {
    let mut watched = Watched::new(&["a.py", "pkg/b.py"]).start();
    assert_eq!(watched.tree().health(), Health::Ok);
    watched.write("a.py", "y = 2\n");
    assert_eq!(watched.until(&["a.py"]), ["a.py"]);
    // As editors save: a new file takes the place of the old one.
    watched.write("pkg/.b.py.tmp", "y = 2\n");
    std::fs::rename(watched.path("pkg/.b.py.tmp"), watched.path("pkg/b.py")).expect("renamed");
    assert!(watched.until(&["pkg/b.py"]).contains(&"pkg/b.py".to_owned()));
    std::fs::remove_file(watched.path("a.py")).expect("removed");
    watched.until(&["a.py"]);
    assert_eq!(watched.told(), Vec::<String>::new());
}

#[test]
fn one_watch_of_the_whole_tree_tells_the_same() {
    let mut watched = Watched::new(&["a.py", "pkg/b.py", "generated/x/y.js"]);
    watched.reach = Reach::Tree;
    watched.write(".gitignore", "generated/\n");
    watched.git(&["init", "-q"]);
    watched = watched.start();
    assert_eq!(watched.tree().health(), Health::Ok);
    watched.write("pkg/b.py", "y = 2\n");
    assert_eq!(watched.until(&["pkg/b.py"]), ["pkg/b.py"]);
    watched.write("generated/x/y.js", "changed");
    watched.write("generated/new/z.js", "new");
    assert_eq!(watched.told(), Vec::<String>::new());
    watched.write("new/c.py", "");
    watched.until(&["new"]);
    watched.sees("new/c.py");
    std::fs::remove_file(watched.path("a.py")).expect("removed");
    watched.until(&["a.py"]);
    watched.git(&["add", "-A"]);
    watched.until(&["*"]);
    watched.write(".gitignore", "");
    watched.until(&["*"]);
    watched.sees("generated/x/y.js");
}

#[test]
fn new_directories_are_watched_from_their_first_file() {
    let mut watched = Watched::new(&["a.py"]).start();
    for round in 0..20 {
        let deep = format!("r{round}/b/c/x.py");
        watched.write(&deep, "x = 1\n");
        watched.until(&[&deep]);
        // Only now is it sure that the write above was not seen with the directories.
        watched.write(&deep, "x = 2\n");
        watched.until(&[&deep]);
    }
}

#[test]
fn directories_that_move_are_followed() {
    let mut watched = Watched::new(&["old/in/a.py", "b.py"]).start();
    std::fs::rename(watched.path("old"), watched.path("new")).expect("renamed");
    watched.until(&["old", "new"]);
    watched.write("new/in/a.py", "x = 2\n");
    watched.until(&["new/in/a.py"]);
    // Out of the tree, and something else in its place.
    std::fs::rename(watched.path("new"), watched.folder.path().join("outside")).expect("renamed");
    watched.write("new/in/a.py", "x = 3\n");
    watched.until(&["new"]);
    assert_eq!(watched.told(), Vec::<String>::new());
    std::fs::write(watched.folder.path().join("outside/in/a.py"), "x = 4\n").expect("written");
    assert_eq!(watched.told(), Vec::<String>::new(), "it is none of the tree any more");
    watched.write("new/in/a.py", "x = 5\n");
    watched.until(&["new/in/a.py"]);
    // And back in.
    std::fs::rename(watched.folder.path().join("outside"), watched.path("back")).expect("renamed");
    watched.until(&["back"]);
    watched.write("back/in/c.py", "");
    watched.until(&["back/in/c.py"]);
}

#[test]
fn what_is_ignored_costs_nothing() {
    let mut watched = Watched::new(&["a.py", "generated/x/y.js", "logs/now.log"]);
    watched.write(".gitignore", "generated/\n*.log\n");
    watched.git(&["init", "-q"]);
    watched = watched.start();
    watched.write("generated/x/y.js", "changed");
    watched.write("generated/new/z.js", "new");
    watched.write("logs/now.log", "more");
    std::fs::remove_file(watched.path("logs/now.log")).expect("removed");
    assert_eq!(watched.told(), Vec::<String>::new());
    // A change of the rules counts for all that is there.
    watched.write(".gitignore", "logs/\n");
    watched.until(&["*"]);
    watched.write("generated/x/y.js", "changed again");
    watched.until(&["generated/x/y.js"]);
    watched.write("logs/new.py", "");
    assert_eq!(watched.told(), Vec::<String>::new());
}

#[test]
fn reading_is_no_event() {
    let mut watched = Watched::new(&["a.py", "pkg/b.py"]);
    watched.git(&["init", "-q"]);
    watched.git(&["add", "-A"]);
    watched = watched.start();
    assert_eq!(watched.told(), Vec::<String>::new());
    for path in ["a.py", "pkg/b.py", ".git/HEAD"] {
        std::fs::read(watched.path(path)).expect("readable");
    }
    std::fs::read_dir(watched.path("pkg")).expect("readable").for_each(drop);
    // Which writes the index anew, with nothing new in it.
    std::fs::File::options()
        .write(true)
        .open(watched.path("a.py"))
        .and_then(|file| file.set_modified(std::time::SystemTime::UNIX_EPOCH))
        .expect("touched");
    watched.until(&["a.py"]);
    watched.git(&["status", "--short"]);
    assert_eq!(watched.told(), Vec::<String>::new());
}

#[test]
fn git_is_heard_when_it_is_done() {
    let mut watched = Watched::new(&["a.py"]);
    watched.git(&["init", "-q"]);
    watched.git(&["add", "-A"]);
    watched.git(&["commit", "-qm", "one"]);
    watched = watched.start();
    watched.write("b.py", "");
    watched.until(&["b.py"]);
    watched.git(&["add", "b.py"]);
    watched.until(&["*"]);
    watched.git(&["commit", "-qm", "two"]);
    watched.until(&["*"]);
    watched.git(&["branch", "other"]);
    assert_eq!(watched.told(), Vec::<String>::new(), "a branch of no concern");
    watched.git(&["reset", "-q", "--soft", "HEAD~1"]);
    watched.until(&["*"]);
    watched.git(&["checkout", "-q", "other"]);
    watched.until(&["*"]);
    // Another repository in the place of the first.
    std::fs::remove_dir_all(watched.path(".git")).expect("removed");
    watched.git(&["init", "-q"]);
    watched.until(&["*"]);
    let started = Instant::now();
    while watched.tree().wait(Duration::from_secs(1)).is_some() || watched.tree().health() != Health::Ok {
        assert!(started.elapsed() < CAP, "{}", watched.tree().health());
    }
    watched.git(&["add", "a.py"]);
    watched.until(&["*"]);
    // As long as Git holds the index, nothing is told.
    std::fs::write(watched.path(".git/index.lock"), "").expect("written");
    watched.write("a.py", "x = 3\n");
    assert_eq!(watched.tree().wait(Duration::from_millis(300)), None);
    std::fs::remove_file(watched.path(".git/index.lock")).expect("removed");
    watched.until(&["a.py"]);
}

#[test]
fn linked_worktrees_have_their_git_elsewhere() {
    let mut watched = Watched::new(&["a.py"]);
    let main = watched.folder.path().join("main");
    std::fs::rename(watched.path(""), &main).expect("renamed");
    std::fs::create_dir(watched.path("")).expect("a folder");
    let place = watched.path("");
    watched.git(&["init", "-q", main.to_str().expect("UTF-8")]);
    let in_main = |arguments: &[&str]| watched.git(&[&["-C", main.to_str().expect("UTF-8")], arguments].concat());
    in_main(&["add", "-A"]);
    in_main(&["commit", "-qm", "one"]);
    in_main(&["worktree", "add", "-q", place.to_str().expect("UTF-8"), "-b", "side"]);
    watched = watched.start();
    watched.write("a.py", "x = 2\n");
    watched.until(&["a.py"]);
    watched.git(&["commit", "-qam", "two"]);
    watched.until(&["*"]);
    watched.git(&["-C", main.to_str().expect("UTF-8"), "commit", "-q", "--allow-empty", "-m", "elsewhere"]);
    assert_eq!(watched.told(), Vec::<String>::new(), "the other worktree is no concern");
}

#[test]
fn the_root_may_go_and_come_back() {
    let mut watched = Watched::new(&["a.py", "pkg/b.py"]).start();
    std::fs::remove_dir_all(watched.path("")).expect("removed");
    watched.until(&["*"]);
    watched.until_health(|health| *health != Health::Ok);
    watched.write("pkg/b.py", "x = 2\n");
    watched.until(&["*"]);
    watched.sees("pkg/b.py");
    // At once: the file system may give the new one the number of the old.
    for _ in 0..5 {
        std::fs::remove_dir_all(watched.path("")).expect("removed");
        watched.write("pkg/b.py", "x = 3\n");
        watched.until(&["*"]);
        watched.sees("pkg/b.py");
    }
    // That the root went is believed though the same seems to stand there.
    let gone = ::notify::Event::new(::notify::EventKind::Remove(::notify::event::RemoveKind::Folder));
    let root = watched.worktree().root().to_owned();
    watched.tree().watcher.inject(Ok(gone.add_path(root)));
    watched.until(&["*"]);
    watched.sees("pkg/b.py");
}

#[test]
fn rules_in_a_file_of_the_worktree_are_followed() {
    let mut watched = Watched::new(&["a.py", "made/x.py", "conf/b.py"]);
    watched.write("conf/rules", "made/\n");
    watched.write(".gitignore", "conf/\n");
    watched.git(&["init", "-q"]);
    watched.git(&["config", "core.excludesFile", "conf/rules"]);
    watched = watched.start();
    watched.write("made/x.py", "x = 2\n");
    watched.write("conf/b.py", "x = 2\n");
    assert_eq!(watched.told(), Vec::<String>::new());
    watched.write("conf/rules", "nothing\n");
    watched.until(&["*"]);
    watched.sees("made/x.py");
    // Whether the file is in a directory of the scope or in another one.
    watched.write(".gitignore", "\n");
    watched.until(&["*"]);
    watched.sees("conf/b.py");
    watched.write(".gitignore", "conf/\n");
    watched.until(&["*"]);
    watched.write("conf/rules", "made/\n");
    watched.until(&["*"]);
    watched.write("made/x.py", "x = 3\n");
    assert_eq!(watched.told(), Vec::<String>::new());
}

#[test]
fn a_lock_that_git_left_is_waited_for_once() {
    let mut watched = Watched::new(&["a.py"]);
    watched.git(&["init", "-q"]);
    watched.git(&["add", "-A"]);
    watched = watched.start();
    watched.write(".git/index.lock", "");
    watched.write("a.py", "x = 2\n");
    watched.until(&["a.py"]);
    let health = watched.until_health(|health| *health != Health::Ok);
    assert!(health.contains("index.lock") && health.contains("remove the lock"), "{health}");
    let started = Instant::now();
    for round in 0..4 {
        watched.write("a.py", &format!("y = {round}\n"));
        watched.until(&["a.py"]);
    }
    assert!(started.elapsed() < Duration::from_secs(8), "four waits would be longer");
    // Another lock is another Git at work.
    std::fs::remove_file(watched.path(".git/index.lock")).expect("removed");
    watched.sees("a.py");
    watched.write(".git/index.lock", "");
    watched.write("a.py", "x = 3\n");
    assert_eq!(watched.tree().wait(Duration::from_millis(300)), None);
}

#[test]
fn a_listener_that_ends_is_made_up_for() {
    let mut watched = Watched::new(&["a.py"]).start();
    // Of a subscription that is no more: no concern.
    watched.tree().watcher.end(7);
    assert_eq!(watched.told(), Vec::<String>::new());
    watched.tree().watcher.end(1);
    watched.until(&["*"]);
    let health = watched.tree().health().to_string();
    assert!(health.contains("gave no watcher"), "{health}");
    watched.write("a.py", "x = 22\n");
    watched.until(&["a.py"]);
    // What is left of events means nothing: it is looked at in turn.
    let event = ::notify::Event::new(::notify::EventKind::Create(::notify::event::CreateKind::File));
    let place = watched.path("a.py");
    watched.tree().watcher.inject(Ok(event.add_path(place)));
    assert_eq!(watched.told(), Vec::<String>::new());
}

#[test]
fn a_defect_costs_the_hints_of_a_moment() {
    let watched = Watched::new(&["a.py"]);
    let (sender, hints) = channel();
    let breaks = std::sync::atomic::AtomicBool::new(true);
    let sink: Sink = Box::new(move |hint| {
        assert!(!breaks.swap(false, std::sync::atomic::Ordering::Relaxed), "breaks once, as it is told to");
        drop(sender.send(hint));
    });
    let watcher = Watcher::start(&watched.worktree(), &watched.policy(), &watched.settings, sink).expect("started");
    watched.write("a.py", "x = 2\n");
    assert_eq!(hints.recv_timeout(CAP), Ok(Hint::Rescan), "instead of what was lost");
    assert_eq!(watcher.health(), Health::Ok);
    watched.write("b.py", "x = 2\n");
    assert_eq!(hints.recv_timeout(CAP), Ok(Hint::Paths(vec![RepoPath::parse("b.py").expect("a path")])));
}

#[test]
fn lost_events_are_one_rescan() {
    let mut watched = Watched::new(&["a.py"]).start();
    let lost = ::notify::Event::new(::notify::EventKind::Other).set_flag(::notify::event::Flag::Rescan);
    for _ in 0..3 {
        watched.tree().watcher.inject(Ok(lost.clone()));
    }
    watched.tree().watcher.inject(Err(::notify::Error::generic("a failure")));
    watched.until(&["*"]);
    assert_eq!(watched.told(), Vec::<String>::new());
    watched.write("pkg/b.py", "");
    watched.until(&["pkg/b.py"]);
}

#[test]
fn where_events_are_too_many_to_ask_for_it_is_looked_at() {
    let mut watched = Watched::new(&["a.py", "b/c.py", "d/e.py"]);
    watched.settings.max_directories = 2;
    watched = watched.start();
    let health = watched.tree().health().to_string();
    assert!(health.starts_with("degraded: ") && health.contains("`watch.max_directories`"), "{health}");
    watched.write("b/c.py", "longer than before\n");
    assert_eq!(watched.until(&["b/c.py"]), ["b/c.py"]);
    watched.write("new/f.py", "");
    std::fs::remove_file(watched.path("a.py")).expect("removed");
    watched.until(&["new/f.py", "a.py"]);
    // A tree that grows too large while it is watched.
    let mut watched = Watched::new(&["a.py"]);
    watched.settings.max_directories = 3;
    watched = watched.start();
    assert_eq!(watched.tree().health(), Health::Ok);
    watched.write("b/c/d/e.py", "");
    watched.until(&["*"]);
    assert!(watched.tree().health() != Health::Ok);
    watched.write("b/c/d/e.py", "x = 1\n");
    watched.until(&["b/c/d/e.py"]);
}

#[test]
fn hints_add_up() {
    let paths = |names: &[&str]| Hint::Paths(names.iter().map(|name| RepoPath::parse(name).expect("a path")).collect());
    assert_eq!(paths(&["b", "c"]).and(paths(&["a", "c"])), paths(&["a", "b", "c"]));
    assert_eq!(paths(&["a"]).and(Hint::Rescan), Hint::Rescan);
    let many: Vec<String> = (0..=MANY_PATHS).map(|index| format!("f{index:05}.py")).collect();
    assert_eq!(paths(&many.iter().map(String::as_str).collect::<Vec<_>>()).and(paths(&[])), Hint::Rescan);
}
