//! Agent hosts and Git, as far as this program registers with them: which files they read, and what is written there.
//!
//! Must not know how files are replaced or what is printed. Invariant: taking out what was added gives the bytes that were there before,
//! and an entry that this program cannot have written is never touched.

mod command;
mod file;
mod json;
mod script;
mod speech;
mod tables;
mod toml;
mod written;

#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::ValueEnum;

use crate::config::Environment;
use crate::workspace::{GitHooks, WorkspaceError, Worktree};

pub use command::Program;
pub use file::FileError;
use file::{Change, Snapshot};
pub use speech::Speech;
use tables::Registration;

/// Who can be registered with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Host {
    /// Claude Code
    Claude,
    /// Codex
    Codex,
    /// Cursor
    Cursor,
    /// Gemini CLI
    Gemini,
    /// Visual Studio Code with Copilot, and Copilot CLI
    Vscode,
    /// OpenCode
    Opencode,
    /// The hooks of this repository
    Git,
}

impl Host {
    pub fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Cursor => "cursor",
            Self::Gemini => "gemini",
            Self::Vscode => "vscode",
            Self::Opencode => "opencode",
            Self::Git => "git",
        }
    }
}

/// For whom a host is told of this program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// For the user, in all projects.
    User,
    /// For whoever works in this project.
    Project,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Add,
    Take,
}

/// What an entry leaves when it is taken out.
#[derive(Debug, PartialEq, Eq)]
pub enum Left {
    /// It was not there.
    Same,
    Text(String),
    /// No file, as there was none before.
    Nothing,
}

/// Why an entry cannot be added or taken out.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    #[error("it is no valid {kind}: {said}")]
    Syntax { kind: &'static str, said: String },
    #[error("it holds no object")]
    NoObject,
    #[error("its `{key}` is not {want}")]
    Form { key: String, want: &'static str },
    #[error("it names `{key}` twice")]
    Twice { key: String },
    #[error("it has a server `{name}` of another program; rename or remove that first")]
    Taken { name: String },
    #[error("it is a script for `{line}`, not for a shell; let it run `{call}` itself")]
    NoShell { line: String, call: String },
    #[error("it is not executable, so Git does not run it; make it executable or remove it first")]
    NotExecutable,
    #[error("it is not the plugin that this program writes; rename or remove it first")]
    NotOurs,
}

/// Why nothing was registered.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    #[error("{name} cannot be edited")]
    Entry {
        name: String,
        #[source]
        source: Problem,
    },
    #[error("{name} cannot be used")]
    File {
        name: String,
        #[source]
        source: FileError,
    },
    #[error("the home directory is not known; set HOME, or use --project")]
    NoHome,
    #[error("the path of this program is not UTF-8, which no host can be told; move it, or put it on PATH")]
    ProgramPath,
    #[error("Git's hooks belong to a repository; use --project")]
    GitForUser,
    #[error("there is no project here; go into one, or name one with --root")]
    NoProject,
    #[error("there is no Git repository here")]
    NoGit,
    #[error("the repository runs no hooks: `core.hooksPath` leads to {name}, which is no directory")]
    NoHooks { name: String },
    #[error("the repository cannot be read")]
    Repository(#[source] WorkspaceError),
}

/// What of this machine decides where the files of hosts are.
#[derive(Clone, Debug, Default)]
pub struct Machine {
    pub home: Option<PathBuf>,
    /// `PATH`.
    pub search: Option<OsString>,
    /// `XDG_CONFIG_HOME`.
    pub config_home: Option<PathBuf>,
    /// `CLAUDE_CONFIG_DIR`.
    pub claude: Option<PathBuf>,
    /// `CODEX_HOME`.
    pub codex: Option<PathBuf>,
    /// `COPILOT_HOME`.
    pub copilot: Option<PathBuf>,
}

impl Machine {
    /// Reads the environment of this process.
    pub fn of_process(environment: &Environment) -> Self {
        let path = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        Self {
            home: environment.home.clone(),
            search: std::env::var_os("PATH"),
            config_home: path("XDG_CONFIG_HOME"),
            claude: path("CLAUDE_CONFIG_DIR"),
            codex: path("CODEX_HOME"),
            copilot: path("COPILOT_HOME"),
        }
    }
}

/// Where and as what this program is registered.
#[derive(Clone, Debug)]
pub struct Site<'a> {
    pub machine: &'a Machine,
    pub level: Level,
    /// The top of the project, should there be one.
    pub root: Option<&'a Path>,
    pub program: &'a Program,
}

/// What becomes of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    pub host: Host,
    /// The path from the project's top, or from the home directory behind `~/`.
    pub name: String,
    pub before: Option<String>,
    pub after: Option<String>,
}

impl Edit {
    pub fn is_change(&self) -> bool {
        self.before != self.after
    }
}

/// All that is to be done, found out before anything is written.
#[derive(Debug, Default)]
pub struct Plan {
    pub edits: Vec<Edit>,
    changes: Vec<Change>,
    /// What whoever asked should know.
    pub notes: Vec<String>,
}

impl Plan {
    /// Finds out what registering with hosts, or the contrary, makes of their files.
    ///
    /// # Errors
    /// When a file cannot be read, or is not what its host reads.
    pub fn new(action: Action, hosts: &[Host], site: &Site<'_>) -> Result<Self, HostError> {
        let mut plan = Self::default();
        for host in hosts {
            let mut registrations = tables::registrations(*host, action, site, &mut plan.notes)?;
            if action == Action::Take {
                // What was added last goes first, as it stands behind.
                registrations.reverse();
            }
            for registration in registrations {
                plan.register(*host, action, site, registration)?;
            }
        }
        Ok(plan)
    }

    fn register(&mut self, host: Host, action: Action, site: &Site<'_>, registration: Registration) -> Result<(), HostError> {
        let Registration { path, base, entry } = registration;
        let name = site.name_of(&path);
        let file = Snapshot::read(&path).map_err(|source| HostError::File { name: name.clone(), source })?;
        if file.target != path {
            self.notes.push(format!("{name} is a link; what is edited is {}", site.name_of(&file.target)));
        }
        let known = self.changes.iter().position(|change| change.file.target == file.target);
        let position = known.unwrap_or_else(|| {
            self.edits.push(Edit { host, name: name.clone(), before: file.text.clone(), after: file.text.clone() });
            self.changes.push(Change { after: file.text.clone(), file, is_script: entry.is_script(), base });
            self.changes.len() - 1
        });
        let change = &mut self.changes[position];
        let refused = |source| HostError::Entry { name: name.clone(), source };
        if entry.is_script() && change.file.text.is_some() && !change.file.is_executable() && action == Action::Add {
            return Err(refused(Problem::NotExecutable));
        }
        match (action, change.after.as_deref()) {
            (Action::Add, text) => {
                if let Some(after) = entry.add(text).map_err(refused)? {
                    change.after = Some(after);
                }
            }
            (Action::Take, Some(text)) => match entry.take(text).map_err(refused)? {
                Left::Same => {}
                Left::Text(after) => change.after = Some(after),
                Left::Nothing => change.after = None,
            },
            (Action::Take, None) => {}
        }
        self.edits[position].after.clone_from(&change.after);
        Ok(())
    }

    /// Adds what another plan would do.
    pub fn extend(&mut self, other: Self) {
        self.edits.extend(other.edits);
        self.changes.extend(other.changes);
        self.notes.extend(other.notes);
    }

    /// Returns whether there is nothing to be done.
    pub fn is_done(&self) -> bool {
        !self.edits.iter().any(Edit::is_change)
    }

    /// Does what was planned, all or nothing.
    ///
    /// # Errors
    /// When a file cannot be replaced, or changed since the plan was made.
    pub fn carry_out(self) -> Result<(), HostError> {
        let (names, changes): (Vec<String>, Vec<Change>) = self
            .edits
            .into_iter()
            .zip(self.changes)
            .filter(|(edit, _)| edit.is_change())
            .map(|(edit, change)| (edit.name, change))
            .unzip();
        file::apply(&changes).map_err(|(position, source)| HostError::File { name: names[position].clone(), source })
    }
}

impl Site<'_> {
    /// Returns how a path is shown: from the project's top, or from the home directory.
    fn name_of(&self, path: &Path) -> String {
        let below = |base: Option<&Path>| base.and_then(|base| path.strip_prefix(base).ok());
        match (below(self.root), below(self.machine.home.as_deref())) {
            (Some(rest), _) => rest.display().to_string(),
            (None, Some(rest)) => format!("~/{}", rest.display()),
            // A place of its own, which whoever asked has named.
            (None, None) => path.display().to_string(),
        }
    }
}

/// Returns the hosts that have files of their own where a level keeps them.
pub fn found(site: &Site<'_>) -> Vec<Host> {
    Host::value_variants().iter().copied().filter(|host| tables::is_found(*host, site)).collect()
}

/// Returns where Git takes hooks of a project from.
fn git_hooks(root: &Path) -> Result<GitHooks, HostError> {
    let worktree = Worktree::open(root).map_err(HostError::Repository)?;
    worktree.hooks().map_err(HostError::Repository)?.ok_or(HostError::NoGit)
}
