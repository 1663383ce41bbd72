//! What the worktree of a scope holds, found out without any index.
//!
//! Must not know generations. Invariant: what is left out is counted with every reason, and only its first paths are named.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use crate::model::Demand;
use crate::workspace::{EntryState, GitState, Omission};

use super::EngineError;
use super::desk::Desk;

/// Most paths that are named for a reason.
const MOST_NAMED: usize = 5;

/// What a look at the worktree found.
#[derive(Clone, Debug, PartialEq)]
pub struct Survey {
    pub git: GitState,
    /// Included files and their bytes.
    pub files: u64,
    pub bytes: u64,
    /// How many directories hold something that was listed.
    pub directories: u64,
    pub omitted: Vec<Omitted>,
    pub elapsed: Duration,
}

/// What is left out for one reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Omitted {
    /// The word of the contract.
    pub reason: &'static str,
    pub count: u64,
    /// The first ones, by path.
    pub first: Vec<String>,
}

impl Omitted {
    fn add(&mut self, path: &str) {
        self.count += 1;
        if self.first.len() < MOST_NAMED {
            self.first.push(path.to_owned());
        }
    }
}

impl Desk {
    /// Lists, reads and hashes the worktree. Needs no index, and makes none.
    ///
    /// # Errors
    /// When it cannot be read, or exceeds a limit in total.
    pub fn survey(&self) -> Result<Survey, Arc<EngineError>> {
        let _visit = self.visit();
        let limit = self.scope().limits().build();
        let look = self.look(&Demand::until(std::time::Instant::now() + limit), limit)?;
        let mut directories = BTreeSet::from([""]);
        let mut omitted: BTreeMap<&'static str, Omitted> = BTreeMap::new();
        let of_reason = |reason: Omission| Omitted { reason: reason.as_str(), count: 0, first: Vec::new() };
        for entry in &*look.capture.entries {
            let path = entry.path.as_str();
            let mut above = path;
            while let Some((directory, _)) = above.rsplit_once('/') {
                if !directories.insert(directory) {
                    break;
                }
                above = directory;
            }
            if let EntryState::Omitted { reason, .. } = entry.state {
                omitted.entry(reason.as_str()).or_insert_with(|| of_reason(reason)).add(path);
            }
        }
        let unnamed = Omission::UnrepresentablePath;
        for path in &look.capture.unrepresentable {
            omitted.entry(unnamed.as_str()).or_insert_with(|| of_reason(unnamed)).add(path);
        }
        Ok(Survey {
            git: look.capture.git.clone(),
            files: look.checked.files,
            bytes: look.checked.bytes,
            directories: directories.len() as u64,
            omitted: omitted.into_values().collect(),
            elapsed: look.checked.elapsed,
        })
    }
}
