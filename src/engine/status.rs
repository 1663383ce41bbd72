//! Whether a scope can answer, said only as far as it was checked.
//!
//! Must not build anything. Invariant: `ready` is said only after the whole worktree was read and found equal; a check that could not
//! finish says `unknown`.

use std::time::Instant;

use crate::config::Check;
use crate::store::{Cache, StoreError};

use super::EngineError;
use super::desk::Desk;
use super::look::Checked;
use super::report::{FailedFile, Freshness, KeptReport, LastBuild, LastBuildReport, Status, StatusWord};
use super::scope::Scope;
use super::sync::last_build;

/// The operations that this build answers: every kind of the contract, in its order, and `diagnostics`.
pub const OPERATIONS: &[&str] = &[
    "status",
    "map",
    "symbols",
    "explore",
    "callers",
    "callees",
    "impact",
    "affected_tests",
    "read",
    "changes",
    "impact_changes",
    "diagnostics",
];

/// Returns how the last build ended, or that it runs. One whose builder died without a word, or had no room for the record of its end,
/// has failed.
fn ended_build(cache: &Cache) -> Option<LastBuild> {
    let found = last_build(cache);
    let Some(LastBuild::Building { started_at }) = &found else { return found };
    if cache.is_locked() {
        return found;
    }
    // The builder may have ended in the ordinary way since its record was read.
    let again = last_build(cache);
    if again != found {
        return again;
    }
    Some(LastBuild::Failed { reason: "code_build_failed".to_owned(), finished_at: started_at.clone() })
}

/// Says which check is in force, and what it came to where there was one.
fn check_in_force(scope: &Scope, checked: Option<&Checked>) -> String {
    match (scope.check(), checked) {
        (Check::Full, _) => "full".to_owned(),
        (Check::Sealed, None) => "sealed".to_owned(),
        (Check::Sealed, Some(Checked { files, sealed, .. })) => format!("sealed: {sealed} of {files} files"),
    }
}

impl Desk {
    /// Returns the status of the scope.
    pub fn status(&self) -> Status {
        let _visit = self.visit();
        let started = Instant::now();
        let last_build = ended_build(self.cache());
        let mut languages: Vec<String> = self.scope().languages().iter().map(|language| language.name().to_owned()).collect();
        languages.sort_unstable();
        let mut status = Status {
            schema: "powercontext.code-status.v1",
            scope_id: self.scope().id().to_owned(),
            status: StatusWord::Missing,
            freshness: Freshness::Unknown,
            fingerprint: None,
            engine: concat!("sextant-", env!("CARGO_PKG_VERSION")).to_owned(),
            languages,
            operations: OPERATIONS.to_vec(),
            last_build: None,
            reason: None,
        };
        if !self.scope().enabled() {
            status.status = StatusWord::Disabled;
            status.reason = Some("code_disabled".to_owned());
            return status;
        }
        let (mut failed_files, mut failures, mut limitations) = (0, Vec::new(), Vec::new());
        let mut in_force = check_in_force(self.scope(), None);
        match self.pin_checked(started + self.scope().limits().query()) {
            Ok((generation, checked)) => {
                failed_files = generation.coverage().failed_files;
                failures = FailedFile::of_generation(&generation).unwrap_or_default();
                limitations = generation.limitations().to_vec();
                status.fingerprint = Some(generation.identity().fingerprint.hex());
                in_force = check_in_force(self.scope(), checked.as_ref().ok());
                (status.status, status.freshness, status.reason) = match checked {
                    Ok(_) => (StatusWord::Ready, Freshness::Fresh, None),
                    Err(error @ EngineError::Changed) => (StatusWord::Stale, Freshness::Stale, Some(error.code().to_owned())),
                    Err(error) => (StatusWord::Stale, Freshness::Unknown, Some(error.code().to_owned())),
                };
                self.keep_open(generation);
            }
            Err(EngineError::Read(StoreError::Missing)) => {
                (status.status, status.reason) = match &last_build {
                    Some(LastBuild::Building { .. }) => (StatusWord::Building, None),
                    Some(LastBuild::Failed { reason, .. }) => (StatusWord::Failed, Some(reason.clone())),
                    Some(LastBuild::Ready { .. }) | None => (StatusWord::Missing, Some("code_index_missing".to_owned())),
                };
            }
            Err(error) => {
                status.status = StatusWord::Failed;
                status.reason = Some(error.code().to_owned());
            }
        }
        let kept: Vec<KeptReport> = self.kept().iter().map(KeptReport::of).collect();
        let watch = self.watch();
        let check = in_force;
        status.last_build =
            last_build.map(|build| LastBuildReport { build, watch, check, kept, failed_files, failures, limitations });
        status
    }
}
