//! The workspace against real repositories, with the `git` command as the oracle. Nothing but these tests runs it.
//!
//! Invariant: every command here sees an empty home and no configuration of the machine.

mod capture;
mod kept;
#[cfg(target_os = "linux")]
mod seal;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use super::*;
use crate::config::{Check, OnStale, Scope};
use crate::model::{Cancel, Demand};

/// Numbers below a bound that look random and are the same for each seed.
fn dice(seed: u64) -> impl FnMut(usize) -> usize {
    let mut state = seed;
    move |bound| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as usize % bound
    }
}

struct Fixture {
    directory: tempfile::TempDir,
}

impl Fixture {
    /// A folder without Git.
    fn folder() -> Self {
        Self { directory: tempfile::tempdir().expect("a temporary directory") }
    }

    fn repository() -> Self {
        let fixture = Self::folder();
        fixture.git(&["init", "-q", "-b", "main"]);
        fixture
    }

    /// Returns a path of up to three of these names.
    fn some_path(&self, names: &[&str], next: &mut dyn FnMut(usize) -> usize) -> PathBuf {
        let path: Vec<&str> = (0..1 + next(3)).map(|_| names[next(names.len())]).collect();
        self.path(&path.join("/"))
    }

    fn path(&self, path: &str) -> PathBuf {
        self.directory.path().join(path)
    }

    fn write(&self, path: &str, content: impl AsRef<[u8]>) -> &Self {
        let path = self.path(path);
        fs::create_dir_all(path.parent().expect("it has one")).expect("directories");
        fs::write(path, content).expect("a file");
        self
    }

    fn command(&self, directory: &Path) -> Command {
        let mut command = Command::new("git");
        command.env_clear();
        for (name, value) in [
            ("PATH", std::env::var("PATH").unwrap_or_default().as_str()),
            ("HOME", "/nonexistent"),
            ("GIT_CONFIG_NOSYSTEM", "1"),
            ("GIT_CONFIG_GLOBAL", "/dev/null"),
            ("GIT_AUTHOR_NAME", "a"),
            ("GIT_AUTHOR_EMAIL", "a@example.org"),
            ("GIT_COMMITTER_NAME", "a"),
            ("GIT_COMMITTER_EMAIL", "a@example.org"),
            ("GIT_AUTHOR_DATE", "2026-01-01T00:00:00Z"),
            ("GIT_COMMITTER_DATE", "2026-01-01T00:00:00Z"),
            ("LC_ALL", "C"),
        ] {
            command.env(name, value);
        }
        command.current_dir(directory);
        command
    }

    fn git_in(&self, directory: &str, arguments: &[&str]) -> Vec<u8> {
        let output = self.command(&self.path(directory)).args(arguments).output().expect("git runs");
        assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    }

    fn git(&self, arguments: &[&str]) -> Vec<u8> {
        self.git_in("", arguments)
    }

    fn commit(&self) -> &Self {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "--allow-empty", "-m", "x"]);
        self
    }

    fn worktree(&self) -> Worktree {
        Worktree::open(self.directory.path()).expect("a worktree")
    }

    fn scan(&self) -> Capture {
        try_scan(self.directory.path(), true).expect("a capture")
    }

    fn scan_tracked(&self) -> Capture {
        try_scan(self.directory.path(), false).expect("a capture")
    }

    /// What `git ls-files -co --exclude-standard` says exists.
    fn oracle(&self) -> Vec<String> {
        let output = self.git(&["ls-files", "-co", "--exclude-standard", "-z"]);
        let mut paths: Vec<String> = output
            .split(|&byte| byte == 0)
            .filter(|path| !path.is_empty())
            .filter(|path| {
                let full = self.directory.path().join(std::ffi::OsStr::from_bytes(path));
                let plain = full.parent().is_some_and(|parent| parent.canonicalize().is_ok_and(|canonical| canonical == parent));
                plain
                    && full
                        .symlink_metadata()
                        .is_ok_and(|found| !found.is_dir() || full.join(".git").exists() || path.ends_with(b"/"))
            })
            .map(escape)
            .collect();
        paths.sort();
        paths.dedup();
        paths
    }
}

fn policy(include_untracked: bool, exclude: &[&str]) -> Policy {
    Policy::new(&Scope {
        id: "test".to_owned(),
        root: PathBuf::from("/"),
        source_roots: None,
        include_untracked,
        exclude: exclude.iter().map(|pattern| (*pattern).to_owned()).collect(),
        deprioritize: Vec::new(),
        on_stale: OnStale::Refuse,
        check: Check::Full,
        implicit: false,
    })
    .expect("valid patterns")
}

const LIMITS: ScanLimits = ScanLimits { max_files: 20_000, max_file_bytes: 2 << 20, max_source_bytes: 512 << 20, demand: None };

fn try_scan(root: &Path, include_untracked: bool) -> Result<Capture, WorkspaceError> {
    let seen = Mutex::new(BTreeMap::new());
    let capture = scan(&Worktree::open(root)?, &policy(include_untracked, &[]), LIMITS, &|path, hash, bytes| {
        assert_eq!(*hash, ContentHash::of(bytes));
        seen.lock().expect("no panic").insert(path.clone(), *hash);
    })?;
    assert!(capture.entries.is_sorted_by(|left, right| left.path < right.path));
    let included = capture.entries.iter().filter_map(|entry| match entry.state {
        EntryState::Included { hash, .. } => Some((entry.path.clone(), hash)),
        EntryState::Omitted { .. } => None,
    });
    assert_eq!(included.collect::<BTreeMap<_, _>>(), seen.into_inner().expect("no panic"));
    Ok(capture)
}

/// Shows a manifest: included paths alone, omitted ones with their reason.
fn show(capture: &Capture) -> Vec<String> {
    let entries = capture.entries.iter().map(|entry| match entry.state {
        EntryState::Included { .. } if entry.mode == 0o100_755 => format!("{} executable", entry.path),
        EntryState::Included { .. } => entry.path.to_string(),
        EntryState::Omitted { reason, .. } => format!("{} ({})", entry.path, reason.as_str()),
    });
    entries.chain(capture.unrepresentable.iter().map(|path| format!("{path} (unrepresentable_path)"))).collect()
}

fn check(capture: &Capture, expected: &[&str]) {
    assert_eq!(show(capture), expected);
}

/// Compares the listing with what Git says.
fn check_oracle(fixture: &Fixture, what: &str) {
    let capture = fixture.scan();
    let mut ours: Vec<String> = capture
        .entries
        .iter()
        .map(|entry| match entry.state {
            EntryState::Omitted { reason: Omission::NestedRepository, .. } => format!("{}/", entry.path),
            _ => entry.path.to_string(),
        })
        .chain(capture.unrepresentable.iter().cloned())
        .collect();
    ours.sort();
    assert_eq!(ours, fixture.oracle(), "{what}");
    // What is tracked must be seen alike with and without a walk.
    let tracked = fixture.scan_tracked();
    check_parts(fixture, &capture, true, what);
    check_parts(fixture, &tracked, false, what);
    let known: BTreeMap<_, _> = capture.entries.iter().map(|entry| (&entry.path, entry)).collect();
    for entry in tracked.entries.iter() {
        assert_eq!(known.get(&entry.path), Some(&entry), "{what}");
    }
}

/// Looks at parts of a tree alone and finds in each what the scan of the whole found there.
fn check_parts(fixture: &Fixture, capture: &Capture, include_untracked: bool, what: &str) {
    let (worktree, policy) = (fixture.worktree(), policy(include_untracked, &[]));
    let mut parts: BTreeSet<String> = BTreeSet::new();
    for entry in capture.entries.iter() {
        let path = entry.path.as_str();
        parts.insert(path.to_owned());
        parts.extend(path.match_indices('/').map(|(at, _)| path[..at].to_owned()));
    }
    let read = |paths: Vec<RepoPath>| scan_part(&worktree, &policy, LIMITS, paths, &|_, _, _| {}).expect("a part");
    let below = |path: &RepoPath, part: &str| {
        path.as_str().strip_prefix(part).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    // Evenly taken, so that a large tree takes no longer.
    for part in parts.iter().step_by(parts.len() / 24 + 1) {
        let there: Vec<Entry> = capture.entries.iter().filter(|entry| below(&entry.path, part)).cloned().collect();
        let path = RepoPath::parse(part).expect("a path");
        assert_eq!(read(vec![path.clone()]), there, "{what}: {part}");
        assert_eq!(relevant(&worktree, &policy, vec![path.clone()]).expect("listed"), [path], "{what}");
    }
    let all = parts.iter().map(|part| RepoPath::parse(part).expect("a path")).collect();
    assert_eq!(read(all), &*capture.entries, "{what}");
    let directories = directories(&worktree, &policy, None).expect("listed");
    for entry in capture.entries.iter().filter(|entry| matches!(entry.state, EntryState::Included { .. })) {
        assert!(directories.contains(entry.path.directory()), "{what}: {} is watched", entry.path);
    }
}

#[test]
fn paths_that_may_matter() {
    let fixture = Fixture::repository();
    fixture.write(".gitignore", "*.log\n/made/\nkept/*\n!kept/this.py\n").write("a.py", "").write("sub/b.py", "");
    fixture.write("made/tracked.py", "").git(&["add", "-f", "made/tracked.py"]);
    fixture.write("made/x.py", "").write("now.log", "").write("link-target", "").write("__pycache__/a.pyc", "");
    let check = |include_untracked: bool, paths: &[&str], want: &[&str]| {
        let paths = paths.iter().map(|path| RepoPath::parse(path).expect("a path")).collect();
        let found = relevant(&fixture.worktree(), &policy(include_untracked, &[]), paths).expect("listed");
        assert_eq!(found.iter().map(RepoPath::as_str).collect::<Vec<_>>(), want);
    };
    // Present.
    check(true, &["a.py", "sub", "now.log", "made/x.py", "made/tracked.py"], &["a.py", "made/tracked.py", "sub"]);
    // Gone, so that only the rules can tell.
    check(
        true,
        &["gone.py", "gone/in/x.py", "old.log", "made/gone.py", "sub/gone.py"],
        &["gone.py", "gone/in/x.py", "sub/gone.py"],
    );
    check(true, &["kept/this.py", "__pycache__/b.pyc"], &["kept/this.py"]);
    fixture.write("kept/that.py", "");
    check(true, &["kept/this.py", "kept/that.py"], &["kept/this.py"]);
    // A tracked file that is gone matters wherever it was.
    fs::remove_dir_all(fixture.path("made")).expect("removed");
    check(true, &["made/tracked.py", "made/x.py", "made"], &["made", "made/tracked.py"]);
    check(false, &["made/tracked.py", "made/x.py", "a.py"], &["made/tracked.py"]);
}

fn is_dirty(fixture: &Fixture) -> bool {
    let format = AtomicBool::new(false);
    let worktree = fixture.worktree();
    let blobs = Mutex::new(BTreeMap::new());
    let sha256 = fixture.scan().git.object_format == "sha256";
    format.store(sha256, Ordering::Relaxed);
    let format = if sha256 { ObjectFormat::Sha256 } else { ObjectFormat::Sha1 };
    let capture = scan(&worktree, &policy(true, &[]), LIMITS, &|_, hash, bytes| {
        blobs.lock().expect("no panic").insert(*hash, blob_id(format, bytes));
    })
    .expect("a capture");
    let blobs = blobs.into_inner().expect("no panic");
    let head = worktree.head_digest(&capture).expect("HEAD's tree");
    dirty(&capture, head.as_ref(), |_, hash| blobs.get(hash).cloned())
}

#[test]
fn a_folder_without_git() {
    let fixture = Fixture::folder();
    fixture
        .write("a.py", "a")
        .write("sub/b.md", "b")
        .write("sub/.gitignore", "*.log\n")
        .write("sub/x.log", "")
        .write("out.txt", "t");
    fixture.write(".gitignore", "out.*\n!sub\n").write("node_modules/m/i.js", "").write("logo.png", [0u8, 1]);
    let capture = fixture.scan();
    check(
        &capture,
        &[
            ".gitignore (unsupported_content)",
            "a.py",
            "logo.png (unsupported_content)",
            "node_modules (cache_directory)",
            "sub/.gitignore (unsupported_content)",
            "sub/b.md",
        ],
    );
    assert_eq!((capture.git.present, capture.git.object_format, &capture.git.head), (false, "sha1", &None));
    assert!(is_dirty(&fixture));
}

#[test]
fn ignore_rules_are_those_of_git() {
    // A directory that is ignored cannot be looked into again; its ignored content can.
    for rules in [
        "build/\n!build/keep.py\n",
        "build/*\n!build/keep.py\n",
        "/build\n",
        "**/keep.py\n",
        "b*d/**\n!**/keep.py\n",
        "*.py\n!*\n",
    ] {
        let fixture = Fixture::repository();
        fixture.write(".gitignore", rules).write("bu/x.py", "").write("build_/keep.py", "").write("a/build_/y.py", "");
        fixture.write("a/.gitignore", "!y.py\nz.py\n").write("a/z.py", "").write("a/b/z.py", "").write("z.py", "");
        check_oracle(&fixture, rules);
    }
    let fixture = Fixture::repository();
    fixture.write("kept/in.py", "").write("kept/sub/in.py", "").write("force/out.py", "");
    fixture.git(&["add", "-A"]);
    fixture.write(".gitignore", "kept/\nforce\n*.tmp\n").write("kept/new.py", "").write("force/new.py", "").write("t.tmp", "");
    fixture.write("exc.py", "").write(".git/info/exclude", "exc.py\n");
    check_oracle(&fixture, "tracked files below ignored directories");
    check(&fixture.scan(), &[".gitignore (unsupported_content)", "force/out.py", "kept/in.py", "kept/sub/in.py"]);
}

#[test]
fn random_trees_agree_with_git() {
    let mut next = dice(0x2545_f491_4f6c_dd1d);
    let names = ["a", "b", "ab", "x.py", "y.py", "lib", "a.b", "Ab"];
    let pieces =
        ["a", "b", "*", "**", "x.py", "*.py", "a*", "[ab]", "?b", "lib", "!", "/", "/", "/", "\\a", "Ab", "[!a]", "a.b", " "];
    for round in 0..40 {
        let fixture = Fixture::repository();
        for _ in 0..12 {
            let depth = 1 + next(4);
            let path: Vec<&str> = (0..depth).map(|_| names[next(names.len())]).collect();
            let path = path.join("/");
            let full = fixture.path(&path);
            if let Some(parent) = full.parent()
                && fs::create_dir_all(parent).is_ok()
                && !full.exists()
            {
                fs::write(full, "x").expect("a file");
            }
        }
        if next(2) == 0 {
            // Half of the trees have tracked files that rules written later would ignore.
            fixture.git(&["add", "-A"]);
            for _ in 0..4 {
                let path: Vec<&str> = (0..1 + next(3)).map(|_| names[next(names.len())]).collect();
                let full = fixture.path(&path.join("/"));
                let _ = full.parent().map(fs::create_dir_all);
                if !full.exists() {
                    let _ = fs::write(full, "y");
                }
            }
        }
        let mut rules = Vec::new();
        for place in ["", "a/", "b/", "lib/a/", "a/b/"] {
            if next(2) == 0 && fixture.path(place).is_dir() {
                let lines: Vec<String> =
                    (0..1 + next(4)).map(|_| (0..1 + next(4)).map(|_| pieces[next(pieces.len())]).collect::<String>()).collect();
                fixture.write(&format!("{place}.gitignore"), lines.join("\n"));
                rules.push((place, lines));
            }
        }
        check_oracle(&fixture, &format!("round {round}: {rules:?}"));
    }
}

#[test]
fn states_of_git() {
    let fixture = Fixture::repository();
    fixture.write("a.py", "a");
    let unborn = fixture.scan();
    assert_eq!((unborn.git.present, &unborn.git.head, unborn.git.branch.as_deref()), (true, &None, Some("refs/heads/main")));
    check(&unborn, &["a.py"]);
    check(&fixture.scan_tracked(), &[]);
    assert!(is_dirty(&fixture));

    fixture.commit();
    let born = fixture.scan();
    let head = String::from_utf8(fixture.git(&["rev-parse", "HEAD", "HEAD^{tree}"])).expect("hex");
    let (commit, tree) = head.trim().split_once('\n').expect("two lines");
    assert_eq!((born.git.head.as_deref(), born.git.head_tree.as_deref()), (Some(commit), Some(tree)));
    assert_ne!(born.state_digest(), unborn.state_digest());
    assert!(!is_dirty(&fixture));

    fixture.git(&["checkout", "-q", "--detach"]);
    assert_eq!(fixture.scan().git.branch, None);
    fixture.git(&["checkout", "-q", "main"]);
    assert_eq!(fixture.scan().state_digest(), born.state_digest());

    fs::remove_file(fixture.path(".git/index")).expect("an index");
    check(&fixture.scan(), &["a.py"]);
    check(&fixture.scan_tracked(), &[]);
}

#[test]
fn dirty_says_what_git_status_says() {
    let fixture = Fixture::repository();
    fixture.write("a.py", "a").write("b.py", "b").write("logo.png", [0u8]).commit();
    assert!(!is_dirty(&fixture));
    fixture.write("a.py", "A");
    assert!(is_dirty(&fixture), "other bytes");
    fixture.git(&["add", "-A"]);
    assert!(is_dirty(&fixture), "staged");
    fixture.commit();
    assert!(!is_dirty(&fixture));
    fs::remove_file(fixture.path("b.py")).expect("a file");
    assert!(is_dirty(&fixture), "gone");
    fixture.git(&["checkout", "-q", "b.py"]);
    fs::set_permissions(fixture.path("b.py"), fs::Permissions::from_mode(0o755)).expect("own file");
    assert!(is_dirty(&fixture), "mode");
    check(&fixture.scan(), &["a.py", "b.py executable", "logo.png (unsupported_content)"]);
    fixture.git(&["config", "core.fileMode", "false"]);
    assert!(!is_dirty(&fixture), "the mode does not count");
    fixture.write("new.py", "");
    assert!(is_dirty(&fixture), "untracked");
}

#[test]
fn sha256_repositories() {
    let fixture = Fixture::folder();
    fixture.git(&["init", "-q", "-b", "main", "--object-format=sha256"]);
    fixture.write("a.py", "a").commit();
    let capture = fixture.scan();
    assert_eq!((capture.git.object_format, capture.git.head.map(|head| head.len())), ("sha256", Some(64)));
    assert!(!is_dirty(&fixture));
}

#[test]
fn linked_worktrees_and_nested_repositories() {
    let fixture = Fixture::repository();
    fixture.write("a.py", "a").commit();
    fixture.git(&["worktree", "add", "-q", "wt", "-b", "x"]);
    fixture.write("wt/b.py", "b").write("empty/.git/readme", "no repository").write("empty/c.py", "");
    fixture.git(&["init", "-q", "other/inner"]);
    fixture.write("other/inner/d.py", "");
    fixture.write("exclude.py", "").write(".git/info/exclude", "exclude.py\n").write("wt/exclude.py", "");
    check_oracle(&fixture, "nested");
    check(&fixture.scan(), &["a.py", "empty/c.py", "other/inner (nested_repository)", "wt (nested_repository)"]);
    let inner = try_scan(&fixture.path("wt"), true).expect("a capture");
    check(&inner, &["a.py", "b.py"]);
    assert_eq!(inner.git.branch.as_deref(), Some("refs/heads/x"));
}

#[test]
fn submodules() {
    let other = Fixture::repository();
    other.write("s.py", "s").commit();
    let fixture = Fixture::repository();
    let source = other.directory.path().to_str().expect("UTF-8");
    fixture.write("a.py", "");
    fixture.git(&["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", source, "sub"]);
    fixture.commit();
    check_oracle(&fixture, "submodule");
    let expected = [".gitmodules (unsupported_content)", "a.py", "sub (submodule)"];
    check(&fixture.scan(), &expected);
    check(&fixture.scan_tracked(), &expected);
    // A submodule is a worktree of its own, too.
    check(&try_scan(&fixture.path("sub"), false).expect("a capture"), &["s.py"]);
}

#[test]
fn conflicts_are_busy() {
    let fixture = Fixture::repository();
    fixture.write("a.py", "a\n").commit();
    fixture.git(&["checkout", "-q", "-b", "x"]);
    fixture.write("a.py", "x\n").commit();
    fixture.git(&["checkout", "-q", "main"]);
    fixture.write("a.py", "m\n").commit();
    let merge = fixture.command(fixture.directory.path()).args(["merge", "-q", "x"]).output().expect("git runs");
    assert!(!merge.status.success());
    for include_untracked in [true, false] {
        let result = try_scan(fixture.directory.path(), include_untracked);
        assert!(matches!(result, Err(WorkspaceError::Conflict { path }) if path == "a.py"));
    }
}

#[test]
fn sparse_checkouts() {
    for sparse_index in ["false", "true"] {
        let fixture = Fixture::repository();
        fixture
            .write("in/a.py", "a")
            .write("out/b.py", "b")
            .write("out/deep/c.py", "c")
            .write("out/.gitignore", "*.py\n")
            .commit();
        fixture.git(&["add", "-f", "."]);
        fixture.commit();
        fixture.git(&["config", "index.sparse", sparse_index]);
        fixture.git(&["sparse-checkout", "set", "--cone", "in"]);
        check(&fixture.scan(), &["in/a.py"]);
        check(&fixture.scan_tracked(), &["in/a.py"]);
        assert!(!is_dirty(&fixture));
        // The rules of a file that is not checked out hold on.
        fixture.write("out/new.py", "").write("out/new.txt", "");
        check_oracle(&fixture, "sparse");
    }
}

#[test]
fn intent_to_add_and_skip_worktree() {
    let fixture = Fixture::repository();
    fixture.write("a.py", "a").write("s.py", "s").commit();
    fixture.write("new.py", "n");
    fixture.git(&["add", "-N", "new.py"]);
    fixture.git(&["update-index", "--skip-worktree", "s.py"]);
    fs::remove_file(fixture.path("s.py")).expect("a file");
    check(&fixture.scan_tracked(), &["a.py", "new.py"]);
    check_oracle(&fixture, "flags");
    fixture.git(&["update-index", "--split-index"]);
    check_oracle(&fixture, "split index");
}

#[test]
fn links_pipes_and_directories_in_the_way() {
    let outside = Fixture::folder();
    outside.write("secret.py", "outside");
    let fixture = Fixture::repository();
    fixture
        .write("src/a.py", "a")
        .write("gone.py", "")
        .write("dir.py", "")
        .write("pipe.py", "")
        .write("up/x.py", "")
        .write("link.py", "");
    fixture.commit();
    symlink(".", fixture.path("loop")).expect("a link");
    symlink("src/a.py", fixture.path("b.py")).expect("a link");
    symlink("/", fixture.path("root")).expect("a link");
    for name in ["gone.py", "dir.py", "pipe.py", "link.py", "up/x.py"] {
        fs::remove_file(fixture.path(name)).expect("a file");
    }
    fs::remove_dir(fixture.path("up")).expect("empty");
    fs::create_dir(fixture.path("dir.py")).expect("a directory");
    fixture.write("dir.py/inner.py", "");
    symlink(outside.path("secret.py"), fixture.path("link.py")).expect("a link");
    symlink(outside.directory.path(), fixture.path("up")).expect("a link");
    outside.write("x.py", "outside");
    make_pipe(&fixture.path("pipe.py"));
    make_pipe(&fixture.path("untracked-pipe.py"));
    check(
        &fixture.scan(),
        &[
            "b.py (symlink)",
            "dir.py/inner.py",
            "link.py (symlink)",
            "loop (symlink)",
            "pipe.py (not_a_regular_file)",
            "root (symlink)",
            "src/a.py",
            "up (symlink)",
        ],
    );
    check(&fixture.scan_tracked(), &["link.py (symlink)", "pipe.py (not_a_regular_file)", "src/a.py"]);
}

fn make_pipe(path: &Path) {
    let status = Command::new("mkfifo").arg(path).status().expect("mkfifo runs");
    assert!(status.success());
    assert!(path.metadata().expect("it exists").file_type().is_fifo());
}

#[test]
fn names_that_no_path_can_be() {
    let fixture = Fixture::repository();
    let raw = |name: &[u8]| fixture.directory.path().join(std::ffi::OsStr::from_bytes(name));
    fs::write(raw(b"caf\xe9.py"), "").expect("a file");
    fs::create_dir(raw(b"d\xff")).expect("a directory");
    fs::write(raw(b"d\xff/x.py"), "").expect("a file");
    fixture.write("new\nline.py", "").write("c:d.py", "").write("back\\slash.py", "").write("ünï.py", "");
    let expected = [
        "new\nline.py",
        "ünï.py",
        "back\\\\slash.py (unrepresentable_path)",
        "c:d.py (unrepresentable_path)",
        "caf\\xe9.py (unrepresentable_path)",
    ];
    let walked = [&expected[..], &["d\\xff/ (unrepresentable_path)"]].concat();
    check(&fixture.scan(), &walked);
    fixture.commit();
    check(&fixture.scan(), &walked);
    check(&fixture.scan_tracked(), &[&expected[..], &["d\\xff/x.py (unrepresentable_path)"]].concat());
    assert!(!is_dirty(&fixture));
}

#[test]
fn contents_that_are_left_out() {
    let fixture = Fixture::repository();
    let pointer = format!("version https://git-lfs.github.com/spec/v1\noid sha256:{}\nsize 3\n", "a".repeat(64));
    fixture.write("a.py", "a\0").write("b.py", [0xff]).write("c.py", pointer).write("d.py", vec![b'x'; (2 << 20) + 1]);
    fixture.write("e.py", vec![b'x'; 2 << 20]).write("f.py", "").write(".env", "SECRET=1").write("g.png", "text");
    let capture = fixture.scan();
    check(
        &capture,
        &[
            ".env (credentials)",
            "a.py (binary)",
            "b.py (not_utf8)",
            "c.py (lfs_pointer)",
            "d.py (oversize)",
            "e.py",
            "f.py",
            "g.png (unsupported_content)",
        ],
    );
    assert_eq!(capture.included(), (2, 2 << 20));
    let worktree = fixture.worktree();
    let limited = |max_files, max_source_bytes| {
        let limits = ScanLimits { max_files, max_source_bytes, ..LIMITS };
        scan(&worktree, &policy(true, &[]), limits, &|_, _, _| {}).map(|capture| capture.included())
    };
    assert_eq!(limited(2, 2 << 20).expect("within"), (2, 2 << 20));
    assert!(matches!(limited(1, 2 << 20), Err(WorkspaceError::Limit { key: "max_files", .. })));
    assert!(matches!(limited(2, (2 << 20) - 1), Err(WorkspaceError::Limit { key: "max_source_bytes", .. })));
    assert_eq!(pass(&worktree, &policy(true, &[]), LIMITS).expect("a pass").files, 5, "it reads what its listing includes");
}

#[test]
fn exclusions_and_cache_folders() {
    let fixture = Fixture::repository();
    fixture.write("build/tracked.py", "").write("docs/a.md", "").commit();
    fixture.write("build/new.py", "").write("x/__pycache__/a.py", "").write("dist/a.py", "").write("docs/b.md", "");
    let capture = scan(&fixture.worktree(), &policy(true, &["docs/**"]), LIMITS, &|_, _, _| {}).expect("a capture");
    check(
        &capture,
        &[
            "build/new.py",
            "build/tracked.py",
            "dist (cache_directory)",
            "docs/a.md (excluded)",
            "docs/b.md (excluded)",
            "x/__pycache__ (cache_directory)",
        ],
    );
}

#[test]
fn rules_may_keep_a_part_of_a_build_folder() {
    for (rules, expected) in [
        ("build/\n!build/keep.py\n", &["build/sub/b.py"][..0]),
        ("build/*\n!build/keep.py\n", &["build (cache_directory)", "build/keep.py"]),
        ("!build/sub/\n", &["build (cache_directory)", "build/sub/b.py"]),
        ("!build/\n", &["build/a.py", "build/keep.py", "build/sub/b.py"]),
        ("*.log\n", &["build (cache_directory)"]),
    ] {
        let fixture = Fixture::repository();
        fixture.write(".git/info/exclude", rules).write("build/keep.py", "").write("build/a.py", "").write("build/sub/b.py", "");
        check(&fixture.scan(), expected);
    }
}

#[test]
fn rules_inside_a_build_folder_ignore_and_do_not_keep() {
    let fixture = Fixture::repository();
    fixture.write(".gitignore", "build/*\n!build/keep.py\n!build/sub/\nbuild/sub/*\n!build/sub/b.py\n");
    fixture.write("build/keep.py", "").write("build/a.py", "").write("build/sub/b.py", "").write("build/sub/c.py", "");
    let all = [".gitignore (unsupported_content)", "build (cache_directory)", "build/keep.py", "build/sub/b.py"];
    check(&fixture.scan(), &all);
    fixture.write("build/.gitignore", "!a.py\nkeep.py\n");
    check(&fixture.scan(), &[all[0], all[1], all[3]]);
    fixture.write("build/sub/.gitignore", "b.py\n!c.py\n");
    let oracle = fixture.oracle();
    assert!(!oracle.iter().any(|path| path == "build/keep.py" || path == "build/sub/b.py"), "{oracle:?}");
    assert!(!show(&fixture.scan()).iter().any(|path| path == "build/keep.py" || path == "build/sub/b.py"));
}

#[test]
fn a_scan_ends_at_its_deadline_and_with_who_wanted_it() {
    let fixture = Fixture::folder();
    for number in 0..200 {
        fixture.write(&format!("d{number}/a.py"), "");
    }
    let now = std::time::Instant::now();
    let (gone, far) = (Cancel::default(), now + std::time::Duration::from_secs(600));
    gone.cancel();
    for _ in 0..20 {
        let scan = |demand: Demand| scan(&fixture.worktree(), &policy(true, &[]), LIMITS.wanted(&demand), &|_, _, _| {});
        assert!(matches!(scan(Demand::until(now)), Err(WorkspaceError::Timeout)));
        assert!(matches!(scan(Demand::new(far, &gone)), Err(WorkspaceError::Unwanted)));
    }
}

#[test]
fn equal_size_and_times_do_not_hide_an_edit() {
    let fixture = Fixture::repository();
    fixture.write("m.py", "def f():\n    return aaa()\n").commit();
    let before = fixture.scan();
    let old = fs::metadata(fixture.path("m.py")).expect("it exists");
    fixture.write("m.py", "def f():\n    return bbb()\n");
    let file = fs::File::options().write(true).open(fixture.path("m.py")).expect("own file");
    file.set_modified(old.modified().expect("it has a time")).expect("own file");
    let after = fixture.scan();
    assert_ne!(after.state_digest(), before.state_digest());
    let path = |text: &str| RepoPath::parse(text).expect("valid");
    assert_eq!(diff(&before.entries, &after.entries), Changes { modified: vec![path("m.py")], ..Changes::default() });
    fs::rename(fixture.path("m.py"), fixture.path("n.py")).expect("a rename");
    let renamed = fixture.scan();
    let expected = Changes { added: vec![path("n.py")], deleted: vec![path("m.py")], ..Changes::default() };
    assert_eq!(diff(&after.entries, &renamed.entries), expected);
    assert!(diff(&renamed.entries, &renamed.entries).is_empty());
}

#[test]
fn a_file_that_is_replaced_while_it_is_read_is_seen_whole() {
    let fixture = Fixture::folder();
    let version = |letter: char| letter.to_string().repeat(300_000);
    fixture.write("x.py", version('a'));
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for letter in ['b', 'c', 'd'].into_iter().cycle() {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                fixture.write("x.tmp", version(letter));
                fs::rename(fixture.path("x.tmp"), fixture.path("x.py")).expect("a rename");
            }
        });
        for _ in 0..100 {
            let whole = Mutex::new(None);
            let result = scan(&fixture.worktree(), &policy(true, &[]), LIMITS, &|path, _, bytes| {
                if path.as_str() == "x.py" {
                    *whole.lock().expect("no panic") = Some(bytes.len() == 300_000 && bytes.iter().all(|&byte| byte == bytes[0]));
                }
            });
            assert!(result.is_ok());
            assert_eq!(whole.into_inner().expect("no panic"), Some(true));
        }
        stop.store(true, Ordering::Relaxed);
    });
}

#[test]
fn a_file_that_never_rests_is_unstable() {
    let fixture = Fixture::folder();
    fixture.write("x.py", "x").write("y.py", "y");
    let worktree = fixture.worktree();
    let root = directory::Root::open(worktree.root()).expect("a root");
    assert!(root.open_file(b"x.py").is_ok());
    let stop = AtomicBool::new(false);
    let results = std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut length = 0;
            while !stop.load(Ordering::Relaxed) {
                length = (length + 1) % 500_000;
                let file = fs::File::options().write(true).open(fixture.path("x.py")).expect("own file");
                file.set_len(1_000_000 + length).expect("own file");
            }
        });
        let results: Vec<_> = (0..30).map(|_| scan(&worktree, &policy(true, &[]), LIMITS, &|_, _, _| {})).collect();
        stop.store(true, Ordering::Relaxed);
        results
    });
    for result in results {
        // Whether one look is lucky depends on the machine; a torn one is never taken.
        match result {
            Ok(capture) => assert_eq!(capture.entries.len(), 2),
            Err(WorkspaceError::Unstable { path }) => assert_eq!(path, "x.py"),
            Err(other) => panic!("{other}"),
        }
    }
}

#[test]
fn a_hostile_repository_runs_nothing_and_leads_nowhere() {
    let outside = Fixture::folder();
    outside.write("rules", "b.py\n");
    let fixture = Fixture::repository();
    fixture.write("a.py", "a").write("b.py", "b").write(".gitattributes", "*.py filter=evil diff=evil\n").commit();
    fs::remove_file(fixture.path("b.py")).expect("a file");
    fixture.write("b.py", "b2").write("c.py", "c");
    let mark = outside.path("ran");
    let run = format!("touch {}", mark.display());
    let rules = outside.path("rules");
    for (key, value) in [
        ("filter.evil.clean", run.as_str()),
        ("filter.evil.smudge", &run),
        ("filter.evil.process", &run),
        ("diff.evil.command", &run),
        ("diff.external", &run),
        ("core.fsmonitor", &run),
        ("core.sshCommand", &run),
        ("core.hooksPath", outside.directory.path().to_str().expect("UTF-8")),
        ("core.excludesFile", rules.to_str().expect("UTF-8")),
        ("include.path", rules.to_str().expect("UTF-8")),
    ] {
        let status = fixture.command(fixture.directory.path()).args(["config", "--file", ".git/config", key, value]).status();
        assert!(status.expect("git runs").success());
    }
    for hook in ["post-index-change", "pre-commit"] {
        outside.write(hook, format!("#!/bin/sh\n{run}\n"));
        fs::set_permissions(outside.path(hook), fs::Permissions::from_mode(0o755)).expect("own file");
    }
    check(&fixture.scan(), &[".gitattributes (unsupported_content)", "a.py", "b.py", "c.py"]);
    assert!(is_dirty(&fixture));
    assert!(!mark.exists());
    // Rules that stand inside the worktree are honoured, as Git does.
    fixture.write("rules.txt", "c.py\n");
    let config = fs::read_to_string(fixture.path(".git/config")).expect("it exists");
    fixture.write(".git/config", config.replace(rules.to_str().expect("UTF-8"), "rules.txt").replace("[include]", "[ignored]"));
    check(&fixture.scan(), &[".gitattributes (unsupported_content)", "a.py", "b.py", "rules.txt"]);
}

#[test]
fn repositories_that_cannot_be_used() {
    let fixture = Fixture::repository();
    fixture.write("a.py", "a").commit();
    let elsewhere = Fixture::folder();
    let scanned = |root: &Path| try_scan(root, true).map(|_| ()).map_err(|error| error.to_string());
    assert!(matches!(Worktree::open(&elsewhere.path("gone")), Err(WorkspaceError::Root { .. })));
    let problem = |result: Result<(), String>| result.expect_err("refused");

    fixture.git(&["config", "core.worktree", elsewhere.directory.path().to_str().expect("UTF-8")]);
    assert!(problem(scanned(fixture.directory.path())).contains("core.worktree"));

    let config = fs::read_to_string(fixture.path(".git/config")).expect("it exists");
    let plain = config.lines().filter(|line| !line.contains("worktree")).collect::<Vec<_>>().join("\n");
    let plain = plain.replace("repositoryformatversion = 0", "repositoryformatversion = 1");
    fixture.write(".git/config", format!("{plain}\n[extensions]\n\trefStorage = reftable\n"));
    assert!(problem(scanned(fixture.directory.path())).contains("reftable"));
    fixture.write(".git/config", format!("{plain}\n[extensions]\n\tobjectFormat = sha512\n"));
    assert!(matches!(try_scan(fixture.directory.path(), true), Err(WorkspaceError::ObjectFormat)));
    fixture.write(".git/config", plain).write(".git/index", "DIRC, but broken");
    assert!(matches!(try_scan(fixture.directory.path(), true), Err(WorkspaceError::Git { what: "index", .. })));
    fixture.write("other/.git/x", "");
    assert!(matches!(try_scan(&fixture.path("other"), true), Err(WorkspaceError::Repository { .. })));
}

#[test]
fn what_is_said_of_a_damaged_repository_holds_no_place_and_no_content() {
    let check = |file: &str, content: &str, want: &str| {
        let fixture = Fixture::repository();
        fixture.write("a.py", "a").commit();
        fixture.write(file, content);
        let root = fixture.directory.path().canonicalize().expect("it exists");
        let error = try_scan(&root, true).map(|_| ()).expect_err(file);
        let mut said = error.to_string();
        let mut cause = std::error::Error::source(&error);
        while let Some(error) = cause {
            said = format!("{said}: {error}");
            cause = error.source();
        }
        assert!(said.contains(want), "{said}");
        for hidden in [&*root.to_string_lossy(), "token", "\n"] {
            assert!(!said.contains(hidden), "{said}");
        }
    };
    check(".git/HEAD", "", "HEAD");
    check(".git/HEAD", "ref: refs/heads/no name\n\n", "HEAD");
    check(".git/config", "[core]\n[remote \"x\"\n\turl = https://u:token@h/r\n", "configuration has a syntax error");
    check(".git/config", "[core]\n\trepositoryformatversion = 9\n", "format");
    check(".git/index", "token", "index");
}

#[test]
fn repositories_of_others_and_pipes_are_refused() {
    let fixture = Fixture::repository();
    fixture.write("a.py", "a").commit();
    let index = fixture.path(".git/index");
    let content = fs::read(&index).expect("an index");
    fs::remove_file(&index).expect("an index");
    make_pipe(&index);
    assert!(matches!(try_scan(fixture.directory.path(), true), Err(WorkspaceError::Repository { .. })));
    fs::remove_file(&index).expect("a pipe");
    fs::write(&index, content).expect("an index");
    check(&fixture.scan(), &["a.py"]);
    // Only root may give files away.
    if std::os::unix::fs::lchown(fixture.directory.path(), Some(12_345), None).is_ok() {
        std::os::unix::fs::lchown(fixture.path(".git"), Some(12_345), None).expect("root");
        let error = try_scan(fixture.directory.path(), true).map(|_| ()).expect_err("refused").to_string();
        assert!(error.contains("belongs to another user"), "{error}");
    }
}

#[test]
fn unreadable_files_are_listed() {
    let fixture = Fixture::folder();
    fixture.write("a.py", "a").write("d/b.py", "b");
    fs::set_permissions(fixture.path("a.py"), fs::Permissions::from_mode(0o0)).expect("own file");
    fs::set_permissions(fixture.path("d"), fs::Permissions::from_mode(0o0)).expect("own directory");
    let readable_anyway = fs::read(fixture.path("a.py")).is_ok();
    let capture = fixture.scan();
    fs::set_permissions(fixture.path("d"), fs::Permissions::from_mode(0o755)).expect("own directory");
    // Root may read everything.
    if !readable_anyway {
        check(&capture, &["a.py (unreadable)", "d (unreadable)"]);
    }
}

#[test]
fn opening_without_openat2_follows_no_link_either() {
    let outside = Fixture::folder();
    outside.write("x.py", "outside");
    let fixture = Fixture::folder();
    fixture.write("d/e/a.py", "a");
    symlink(outside.directory.path(), fixture.path("up")).expect("a link");
    symlink("d", fixture.path("inner")).expect("a link");
    let root = directory::Root::open(&fixture.directory.path().canonicalize().expect("it exists")).expect("a root");
    for by_component in [false, true] {
        let open = |path: &str| {
            if by_component { root.open_file_by_component(path.as_bytes()) } else { root.open_file(path.as_bytes()) }.is_ok()
        };
        assert!(open("d/e/a.py"));
        for path in ["up/x.py", "inner/e/a.py", "up", "d/e/gone.py"] {
            assert!(!open(path), "{path} {by_component}");
        }
    }
}

#[test]
fn words_of_omissions_round_trip() {
    for omission in Omission::ALL {
        assert_eq!(Omission::parse(omission.as_str()), Some(*omission));
    }
}

#[test]
fn descent_is_what_git_says_as_far_as_the_objects_are_here() {
    let fixture = Fixture::repository();
    let commit = |name: &str| {
        fixture.git(&["commit", "-q", "--allow-empty", "-m", name]);
        String::from_utf8(fixture.git(&["rev-parse", "HEAD"])).expect("hex").trim().to_owned()
    };
    let (one, two) = (commit("one"), commit("two"));
    fixture.git(&["checkout", "-q", "-b", "side", &one]);
    let side = commit("side");
    fixture.git(&["merge", "-q", "--no-ff", "-m", "merge", "main"]);
    let merge = commit("after the merge");
    fixture.git(&["checkout", "-q", "--orphan", "other"]);
    let other = commit("other");
    let worktree = Worktree::open(fixture.directory.path()).expect("opens");
    let soon = || Instant::now() + std::time::Duration::from_secs(20);
    let commits = [&one, &two, &side, &merge, &other];
    for head in commits {
        for ancestor in commits {
            let mut command = fixture.command(fixture.directory.path());
            let git = command.args(["merge-base", "--is-ancestor", ancestor, head]).status().expect("git runs").success();
            assert_eq!(worktree.descends(head, ancestor, soon()).expect("readable"), git, "{head} {ancestor}");
        }
    }
    let absent = "0".repeat(40);
    assert!(!worktree.descends(&merge, &absent, soon()).expect("readable"));
    assert!(!worktree.descends(&absent, &one, soon()).expect("readable"));
    assert!(!worktree.descends("no id", &one, soon()).expect("readable"));

    // In a shallow clone, what was cut off cannot be shown.
    let source = format!("file://{}", fixture.directory.path().canonicalize().expect("exists").display());
    let clone = Fixture::folder();
    clone.git(&["-c", "protocol.file.allow=always", "clone", "-q", "--depth", "2", "-b", "main", &source, "."]);
    let shallow = Worktree::open(clone.directory.path()).expect("opens");
    assert!(shallow.descends(&two, &one, soon()).expect("readable"));
    clone.git(&["-c", "protocol.file.allow=always", "fetch", "-q", "--depth", "1", "origin", "side"]);
    assert!(!shallow.descends(&merge, &side, soon()).expect("readable"));

    // A history that takes too long to read shows nothing.
    let long: String =
        (0..600).map(|number| format!("commit refs/heads/long\ncommitter a <a> {number} +0000\ndata 0\n\n")).collect();
    let mut import = fixture.command(fixture.directory.path());
    let mut child = import.args(["fast-import", "--quiet"]).stdin(std::process::Stdio::piped()).spawn().expect("git runs");
    std::io::Write::write_all(&mut child.stdin.take().expect("piped"), long.as_bytes()).expect("git reads");
    assert!(child.wait().expect("git ends").success());
    let revision = |name: &str| String::from_utf8(fixture.git(&["rev-parse", name])).expect("hex").trim().to_owned();
    let (head, first) = (revision("long"), revision("long~599"));
    assert!(worktree.descends(&head, &first, soon()).expect("readable"));
    assert!(!worktree.descends(&head, &first, Instant::now()).expect("readable"));
}
