//! A place to test in: a temporary folder with a home, a cache and a tree, and an environment that shows nothing of the machine.
//!
//! Invariant: neither the user's Git configuration nor their cache is ever read or written.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

pub struct Sandbox {
    directory: tempfile::TempDir,
}

impl Sandbox {
    pub fn new() -> Self {
        let directory = tempfile::Builder::new().prefix("sextant-test-").tempdir().expect("a temporary folder can be made");
        let sandbox = Self { directory };
        for part in ["home", "cache", "tree"] {
            fs::create_dir(sandbox.path().join(part)).expect("the folder is new");
        }
        sandbox
    }

    pub fn path(&self) -> PathBuf {
        // Some systems reach their temporary folder through a link, and answers name the real place.
        self.directory.path().canonicalize().expect("the folder exists")
    }

    /// The worktree under test.
    pub fn tree(&self) -> PathBuf {
        self.path().join("tree")
    }

    /// The variables that every command of a test sees, and no others.
    pub fn environment(&self) -> Vec<(String, String)> {
        let place = |part: &str| self.path().join(part).to_string_lossy().into_owned();
        let mut variables: Vec<(String, String)> = [
            ("HOME", place("home")),
            ("XDG_CACHE_HOME", place("cache")),
            ("XDG_CONFIG_HOME", place("home")),
            ("XDG_RUNTIME_DIR", place("home")),
            ("LC_ALL", "C".to_owned()),
            ("TZ", "UTC".to_owned()),
            ("GIT_CONFIG_NOSYSTEM", "1".to_owned()),
            ("GIT_CONFIG_GLOBAL", "/dev/null".to_owned()),
            ("GIT_TERMINAL_PROMPT", "0".to_owned()),
            ("GIT_AUTHOR_NAME", "Test".to_owned()),
            ("GIT_AUTHOR_EMAIL", "test@example.org".to_owned()),
            ("GIT_AUTHOR_DATE", "2026-01-01T00:00:00Z".to_owned()),
            ("GIT_COMMITTER_NAME", "Test".to_owned()),
            ("GIT_COMMITTER_EMAIL", "test@example.org".to_owned()),
            ("GIT_COMMITTER_DATE", "2026-01-01T00:00:00Z".to_owned()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into();
        if let Ok(path) = std::env::var("PATH") {
            variables.push(("PATH".to_owned(), path));
        }
        variables
    }

    /// Makes a command that runs in the tree, in this environment.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command.env_clear().envs(self.environment()).current_dir(self.tree());
        command
    }

    /// Runs Git in the tree.
    ///
    /// # Panics
    /// When Git fails, with what it said.
    pub fn git<S: AsRef<OsStr>>(&self, arguments: &[S]) {
        let mut command = self.command("git");
        command.args(["-c", "init.defaultBranch=main", "-c", "core.hooksPath=/dev/null", "-c", "commit.gpgSign=false"]);
        command.args(["-c", "gc.auto=0", "-c", "maintenance.auto=false"]);
        let output = command.args(arguments).output().expect("git is installed");
        assert!(output.status.success(), "git failed: {}", String::from_utf8_lossy(&output.stderr));
    }

    /// Makes the tree a repository with one commit that holds everything.
    pub fn commit_all(&self) {
        self.git(&["init", "--quiet"]);
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--allow-empty", "--message", "first"]);
    }
}

pub fn write_file(path: &Path, content: &[u8]) {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).expect("folders can be made in the sandbox");
    }
    fs::write(path, content).expect("files can be written in the sandbox");
}
