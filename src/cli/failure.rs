//! From a failure to what a caller sees: the contract's code, an exit code, a sentence and what to do about it.
//!
//! Must not know which command ran. Invariant: one table holds every code, so that no surface invents its own.

use std::fmt::Write as _;

use crate::cli::hosts::HostError;
use crate::config::ConfigError;
use crate::engine::EngineError;
use crate::model::sentence;
use crate::query::{QueryError, RequestError};
use crate::render::budget::BudgetTooSmall;

/// The exit codes of the commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    Answered = 0,
    NothingFound = 1,
    Usage = 2,
    Stale = 3,
    NoIndex = 4,
    Failed = 5,
}

/// One code of the contract: how a command that met it exits, and what its user can do.
struct Row {
    code: &'static str,
    /// Of the strict surface; the commands for people exit 1 where nothing was found.
    exit: Exit,
    hint: &'static str,
    /// What an agent can do, which calls tools; the same as a user where it is empty.
    agent: &'static str,
}

const fn row(code: &'static str, exit: Exit, hint: &'static str, agent: &'static str) -> Row {
    Row { code, exit, hint, agent }
}

static TABLE: &[Row] = &[
    row(
        "invalid_code_request",
        Exit::Usage,
        "see `sextant help`; the request form stands in the wire contract",
        "call again with arguments that fit the input schema of the tool",
    ),
    row(
        "budget_too_small",
        Exit::Usage,
        "raise --max-bytes (at most 32768)",
        "raise `max_bytes`, or ask for less with `limit` or `path`",
    ),
    row(
        "code_target_missing",
        Exit::Usage,
        "find it with `sextant symbols`, and mind --path",
        "find its name or path with `symbols`, and mind `path`",
    ),
    row("code_range_missing", Exit::Usage, "ask for lines that the file has; `sextant read PATH` shows the first ones", ""),
    row(
        "repository_root_required",
        Exit::Usage,
        "go into a project, or name its top directory with --root",
        "pass `root`: the absolute path of a project, not of the home directory or `/`",
    ),
    row("code_cache_inside_repository", Exit::Usage, "set `cache_dir` to a place outside the worktree", ""),
    row(
        "code_changed",
        Exit::Stale,
        "run `sextant sync` and ask again, or ask with `--on-stale sync`",
        "ask again with `on_stale` set to `sync`, or call `sync` first",
    ),
    row(
        "baseline_unavailable",
        Exit::Failed,
        "compare with a kept generation of this branch: `sextant status` lists them",
        "the next `sync` that finds a change keeps what was before; until then there is nothing to compare with",
    ),
    row(
        "workspace_busy",
        Exit::Stale,
        "finish the running checkout, merge or edit, then ask again",
        "wait until the running checkout, merge or edit is over, then ask again",
    ),
    row("unsupported_capability", Exit::Failed, "see `operations` and `languages` in `sextant status --json`", ""),
    row("code_disabled", Exit::Failed, "set `enabled = true` in the configuration file; `sextant config show` names it", ""),
    row(
        "code_repository_unconfigured",
        Exit::Usage,
        "name a scope with --scope (`sextant config show` lists them), or give --root",
        "pass `scope`, one of those that the configuration names, or `root`",
    ),
    row(
        "code_index_missing",
        Exit::NoIndex,
        "run `sextant index`",
        "call `sync` to build the index (once; from seconds to a minute or so), then ask again",
    ),
    row(
        "code_timeout",
        Exit::Failed,
        "try again, raise the seconds under [limits], or `exclude` what is not needed; see `sextant doctor`",
        "",
    ),
    row(
        "index_integrity_failed",
        Exit::Failed,
        "run `sextant sync` to repair, `sextant index` to rebuild",
        "call `sync` to repair it, with `rebuild` set if that does not help",
    ),
    row(
        "code_storage_unavailable",
        Exit::Failed,
        "run `sextant doctor`: the cache directory must be yours and writable; see `cache_dir`",
        "",
    ),
    row(
        "code_build_failed",
        Exit::Failed,
        "free disk space or repair the cache directory (see `sextant doctor`), then run `sextant sync`",
        "tell the user: free disk space or repair the cache directory, then call `sync`",
    ),
    row("code_cache_limit_exceeded", Exit::Failed, "raise `max_cache_bytes`, or run `sextant clear` and `sextant index`", ""),
    row(
        "repository_unavailable",
        Exit::Failed,
        "check that the directory exists, is yours and can be read, or name another with --root",
        "",
    ),
    row("repository_read_failed", Exit::Failed, "check the permissions of the worktree's files", ""),
    row(
        "repository_limit_exceeded",
        Exit::Failed,
        "in a configuration file (--config) raise the limit under [limits], or `exclude` what is not needed",
        "",
    ),
    row("unsupported_git_object_format", Exit::Failed, "this repository's format is not read; use a plain checkout", ""),
    row(
        "code_parser_failed",
        Exit::Failed,
        "see `sextant doctor`, and try `sextant sync` again; the published index still serves",
        "call `sync` again; the index that was published still serves",
    ),
    row("host_file_unusable", Exit::Failed, "put that right and run it again, or name other hosts; nothing was written", ""),
];

/// A failure, ready to be said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    pub code: &'static str,
    /// A sentence without a trailing dot, naming relative paths only.
    pub message: String,
    /// Whether exiting as if nothing was found would be an answer that was not given.
    is_unanswered: bool,
    /// What its user can do, where that is known better than by its code.
    advice: Option<String>,
}

impl Failure {
    /// Makes a failure of one of the contract's codes; a word that is none of them stands for a failed build.
    pub fn new(code: &str, message: impl Into<String>) -> Self {
        let code = TABLE.iter().find(|row| row.code == code).map_or("code_build_failed", |row| row.code);
        Self { code, message: message.into(), is_unanswered: false, advice: None }
    }

    /// Makes the failure of a request or command line that does not fit.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new("invalid_code_request", message)
    }

    /// Makes the failure of a question about paths that cannot be followed.
    pub fn of_missing_paths(message: impl Into<String>) -> Self {
        Self { is_unanswered: true, ..Self::new("code_target_missing", message) }
    }

    /// Returns the same with advice of its own, without a trailing dot.
    #[must_use]
    pub fn advising(self, advice: impl Into<String>) -> Self {
        Self { advice: Some(advice.into()), ..self }
    }

    pub fn of_config(error: &ConfigError) -> Self {
        Self::new(error.code(), sentence(error))
    }

    pub fn of_engine(error: &EngineError) -> Self {
        Self::new(error.code(), sentence(error))
    }

    pub fn of_host(error: &HostError) -> Self {
        let code = match error {
            HostError::GitForUser | HostError::NoHome => "invalid_code_request",
            HostError::NoProject | HostError::NoGit => "repository_root_required",
            HostError::Repository(_) => "repository_unavailable",
            HostError::Entry { .. } | HostError::File { .. } | HostError::ProgramPath | HostError::NoHooks { .. } => {
                "host_file_unusable"
            }
        };
        Self::new(code, sentence(error))
    }

    pub fn of_query(error: &QueryError) -> Self {
        Self::new(error.code(), sentence(error))
    }

    pub fn of_request(error: &RequestError) -> Self {
        Self::new(error.code(), sentence(error))
    }

    pub fn of_budget(error: &BudgetTooSmall) -> Self {
        Self::new(error.code(), sentence(error))
    }

    fn row(&self) -> &'static Row {
        TABLE.iter().find(|row| row.code == self.code).expect("`new` takes codes of the table only")
    }

    /// Returns how a command exits: for people, what is not there was only not found.
    pub fn exit(&self, strict: bool) -> Exit {
        match self.code {
            _ if self.is_unanswered => self.row().exit,
            "code_target_missing" | "code_range_missing" if !strict => Exit::NothingFound,
            _ => self.row().exit,
        }
    }

    /// Returns what an agent can do about it.
    pub fn hint_for_agents(&self) -> &'static str {
        let row = self.row();
        if row.agent.is_empty() { row.hint } else { row.agent }
    }

    /// Returns whether there is nothing wrong with the machine or the question: something is not there, is to be chosen or done first.
    pub fn is_expected(&self) -> bool {
        matches!(
            self.code,
            "code_index_missing"
                | "code_target_missing"
                | "code_range_missing"
                | "code_changed"
                | "workspace_busy"
                | "baseline_unavailable"
                | "repository_root_required"
                | "code_repository_unconfigured"
        )
    }

    /// Returns the contract's error object, which is the last line of standard error.
    pub fn json(&self) -> String {
        format!(r#"{{"error":{{"code":"{}"}}}}"#, self.code)
    }

    /// Returns what its user can do.
    pub fn remedy(&self) -> &str {
        self.advice.as_deref().unwrap_or(self.row().hint)
    }

    /// Returns the lines for people: what happened and what to do.
    pub fn text(&self) -> String {
        let mut text = format!("error: {} ({})\n", self.message, self.code);
        write!(text, "  hint: {}", self.remedy()).expect("writing to a string");
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_of_the_contract_has_its_exit() {
        let exit = |code| Failure::new(code, "x").exit(true) as u8;
        assert_eq!(exit("invalid_code_request"), 2);
        assert_eq!(exit("code_changed"), 3);
        assert_eq!(exit("workspace_busy"), 3);
        assert_eq!(exit("code_index_missing"), 4);
        assert_eq!(exit("code_timeout"), 5);
        assert_eq!(exit("code_target_missing"), 2);
        assert_eq!(Failure::new("code_target_missing", "x").exit(false), Exit::NothingFound);
        for row in TABLE {
            assert!(matches!(row.exit as u8, 2..=5), "{}", row.code);
            // Files of hosts are the command line's alone.
            let is_known = row.code == "host_file_unusable"
                || crate::server::http::status_of(row.code).is_some_and(|status| matches!(status, 409 | 422 | 501 | 503));
            assert!(is_known, "{} over HTTP", row.code);
            assert!(!row.hint.is_empty() && !row.hint.ends_with('.'), "{}", row.code);
            assert!(!row.agent.ends_with('.') && !row.agent.contains("--"), "{}", row.code);
        }
    }

    #[test]
    fn a_missing_index_names_the_command() {
        let failure = Failure::new("code_index_missing", "nothing was indexed yet");
        assert_eq!(failure.json(), r#"{"error":{"code":"code_index_missing"}}"#);
        assert!(failure.text().contains("sextant index"));
    }
}
