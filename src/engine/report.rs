//! What builds and checks report: outcomes with counts, the last build, and the status of a scope (contract §2).
//!
//! Must not know how a report is shown. Invariant: no source or query text is in any of these, and no path but those of files that
//! could not be parsed.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::Fingerprint;
use crate::parse::{Memory, memory_in_use};
use crate::store::{Generation, KeptGeneration, Role, StoreError, Verified};

/// What `index` or `sync` came to.
#[derive(Clone, Debug, PartialEq)]
pub struct BuildOutcome {
    pub status: BuildStatus,
    pub fingerprint: Fingerprint,
    /// Source files whose facts were made from their bytes.
    pub extracted_files: u64,
    /// Source files whose facts were there already.
    pub reused_files: u64,
    /// Files of the generation before that are gone.
    pub removed_files: u64,
    /// Source files whose references were resolved.
    pub resolved_files: u64,
    pub elapsed_seconds: f64,
    pub counts: BuildCounts,
    /// The first of the files that could not be parsed, by path.
    pub failures: Vec<FailedFile>,
    pub stages: Vec<Stage>,
    /// Highest resident size of this process so far and of its parsers, in bytes; `None` where the system does not tell.
    pub peak_memory_bytes: Option<u64>,
    /// What a check of everything stored found; `None` when there was none.
    pub verified: Option<Box<Verified>>,
}

/// Whether a build published anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BuildStatus {
    /// A new generation was published.
    Published,
    /// The published generation is what the worktree holds.
    Unchanged,
}

/// What a generation holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct BuildCounts {
    /// Included files, text too.
    pub files: u64,
    pub definitions: u64,
    pub edges: u64,
    pub diagnostics: u64,
    pub partial_files: u64,
    pub failed_files: u64,
}

/// A file that could not be parsed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FailedFile {
    pub path: String,
    /// The word of the contract.
    pub reason: String,
}

impl FailedFile {
    /// Most that a report lists; an export has all.
    pub(super) const MOST: usize = 20;

    pub(super) fn new(path: &str, reason: &str) -> Self {
        Self { path: path.to_owned(), reason: reason.to_owned() }
    }

    /// Returns the first ones of a generation, by path.
    pub(super) fn of_generation(generation: &Generation) -> Result<Vec<Self>, StoreError> {
        if generation.coverage().failed_files == 0 {
            return Ok(Vec::new());
        }
        let rows = generation.failed_files()?;
        let reason = |failure: &str| failure.split(' ').next().unwrap_or_default().to_owned();
        let failed = rows.iter().take(Self::MOST);
        Ok(failed.map(|row| Self::new(&row.path, &row.failure.as_deref().map(reason).unwrap_or_default())).collect())
    }
}

/// One stage of a build and how long it took.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stage {
    pub name: &'static str,
    pub elapsed: Duration,
}

/// How the last build of a scope ended, as it is kept beside the generations.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum LastBuild {
    Building {
        started_at: String,
    },
    Failed {
        /// The error code of the contract.
        reason: String,
        finished_at: String,
    },
    Ready {
        fingerprint: String,
        extracted_files: u64,
        reused_files: u64,
        elapsed_seconds: f64,
        finished_at: String,
    },
}

/// Whether a scope can answer, and from what.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Status {
    pub schema: &'static str,
    pub scope_id: String,
    pub status: StatusWord,
    pub freshness: Freshness,
    pub fingerprint: Option<String>,
    pub engine: String,
    pub languages: Vec<String>,
    pub operations: Vec<&'static str>,
    pub last_build: Option<LastBuildReport>,
    /// A stable word or an error code that says why the status is not `ready`.
    pub reason: Option<String>,
}

/// The last build as the status shows it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LastBuildReport {
    #[serde(flatten)]
    pub build: LastBuild,
    /// What a watcher sees of the worktree.
    pub watch: String,
    /// Which check is in force before an answer.
    pub check: String,
    /// The generations that answers can come from or be compared with, the one that serves first.
    pub kept: Vec<KeptReport>,
    /// How many files of the generation that serves could not be parsed, and the first of them by path.
    pub failed_files: u64,
    pub failures: Vec<FailedFile>,
    /// Known gaps of the languages in the generation that serves, and kinds of files in it that hold code which no language reads.
    pub limitations: Vec<String>,
}

/// A generation that is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct KeptReport {
    pub fingerprint: String,
    /// `current`, `previous`, or `first` at this branch and HEAD.
    pub role: &'static str,
    /// When it was built, where that is known.
    pub built_at: Option<String>,
}

impl KeptReport {
    pub(super) fn of(kept: &KeptGeneration) -> Self {
        let role = match kept.role {
            Role::Current => "current",
            Role::Previous => "previous",
            Role::First => "first",
        };
        Self { fingerprint: kept.fingerprint.hex(), role, built_at: time(kept.built) }
    }
}

/// The states of a scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StatusWord {
    Disabled,
    Missing,
    Building,
    Ready,
    Stale,
    Failed,
}

/// Whether the generation equals the worktree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Freshness {
    Fresh,
    Stale,
    Unknown,
}

/// What `clear` came to (contract §2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Cleared {
    pub status: &'static str,
    pub retained_reader_generations: u64,
}

/// How the contract writes times: RFC 3339 with microseconds and offset `+00:00`.
const TIME: &str = "%Y-%m-%dT%H:%M:%S.%6f+00:00";

/// Returns the current time.
pub(super) fn now() -> String {
    jiff::Timestamp::now().strftime(TIME).to_string()
}

/// Returns a time in microseconds since 1970; `None` for 0 and what no calendar has.
pub(super) fn time(microseconds: i64) -> Option<String> {
    let time = jiff::Timestamp::from_microsecond(microseconds).ok().filter(|_| microseconds != 0)?;
    Some(time.strftime(TIME).to_string())
}

/// Returns the highest resident size of this process so far.
pub(super) fn peak_memory() -> Option<u64> {
    memory_in_use(Memory::Peak)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_the_contract_says() {
        let now = now();
        assert_eq!((now.len(), &now[10..11], &now[19..20], &now[26..]), (32, "T", ".", "+00:00"), "{now}");
        assert_eq!(time(1_000_001).as_deref(), Some("1970-01-01T00:00:01.000001+00:00"));
        assert_eq!([time(0), time(i64::MAX), time(i64::MIN)], [None, None, None]);
    }

    #[test]
    fn last_builds_round_trip() {
        let building = LastBuild::Building { started_at: "x".to_owned() };
        let text = serde_json::to_string(&building).expect("plain values");
        assert_eq!(text, r#"{"status":"building","started_at":"x"}"#);
        assert_eq!(serde_json::from_str::<LastBuild>(&text).expect("own text"), building);
    }
}
