//! The gate is the only door to a generation: it pins one, scans, compares, lets the operation run, and scans again.
//!
//! Invariant: a [`Snapshot`] exists only while a generation is pinned that equalled the worktree at a scan which began after the request
//! arrived. Its fields are private and nothing outside this module makes one.

use crate::store::Generation;

/// A generation that equalled the worktree when the check of this request ran.
#[derive(Debug)]
pub struct Snapshot {
    generation: Generation,
    checked_at: String,
}

impl Snapshot {
    pub fn generation(&self) -> &Generation {
        &self.generation
    }

    /// Returns when the check began, RFC 3339 with microseconds and offset `+00:00`.
    pub fn checked_at(&self) -> &str {
        &self.checked_at
    }
}
