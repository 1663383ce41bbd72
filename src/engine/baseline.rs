//! The generation that an answer compares with: which one is meant, and whether it may be compared with what serves.
//!
//! Must not know what is compared. Invariant: a baseline is of the same branch as the generation that serves, and HEAD descends from the
//! commit it was built at; what cannot be shown is refused.

use std::time::Instant;

use crate::model::Fingerprint;
use crate::store::{Cache, Generation, Identity, StoreError};
use crate::workspace::WorkspaceError;

use super::EngineError;
use super::error::Unavailable;
use super::scope::Scope;

/// With which other generation an answer compares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Baseline {
    /// With none.
    #[default]
    None,
    /// With the one that served before the one that serves when the answer is found: after a sync within the same question that is the
    /// one the question found.
    Previous,
    /// With the kept one of this fingerprint.
    Kept(Fingerprint),
    /// With the first one at the branch and HEAD of the one that serves when the question arrives.
    First,
}

impl Baseline {
    /// Returns whether it is known which one is meant before anything is checked.
    pub(super) fn is_named(self) -> bool {
        matches!(self, Self::Kept(_) | Self::First)
    }
}

/// A baseline that was asked for by name, taken before anything that could let it go.
#[derive(Debug)]
pub(super) enum Taken {
    Nothing,
    Held(Box<Generation>),
    Failed(EngineError),
}

/// Takes a lease on a baseline that is asked for by name, so that a sync within the question does not let it go.
pub(super) fn take(cache: &Cache, baseline: Baseline) -> Taken {
    let pinned = match baseline {
        Baseline::None | Baseline::Previous => return Taken::Nothing,
        Baseline::Kept(fingerprint) => cache.pin_fingerprint(&fingerprint),
        Baseline::First => cache.pin_first(),
    };
    match pinned {
        Ok(generation) => Taken::Held(Box::new(generation)),
        Err(StoreError::Missing) => Taken::Failed(EngineError::BaselineUnavailable(Unavailable::NotKept)),
        Err(error) => Taken::Failed(EngineError::Baseline(error)),
    }
}

/// Opens the generation before `current`; `None` when another one serves by now, so that both are to be looked for again.
pub(super) fn open_previous(cache: &Cache, current: &Generation) -> Result<Option<Box<Generation>>, EngineError> {
    let opened = cache.pin_previous();
    // A generation serves once at most: while it does, the one before it stays the same.
    if !cache.is_current(current).map_err(EngineError::Read)? {
        return Ok(None);
    }
    match opened {
        Ok(generation) => Ok(Some(Box::new(generation))),
        Err(StoreError::Missing) => Err(EngineError::BaselineUnavailable(Unavailable::NoPrevious)),
        Err(error) => Err(EngineError::Baseline(error)),
    }
}

/// Checks that a baseline may be compared with the generation that serves.
pub(super) fn check(scope: &Scope, before: &Identity, current: &Identity, deadline: Instant) -> Result<(), EngineError> {
    let refuse = |why| Err(EngineError::BaselineUnavailable(why));
    if before.git != current.git || before.object_format != current.object_format {
        return refuse(Unavailable::OtherRepository);
    }
    if before.branch != current.branch {
        return refuse(Unavailable::OtherBranch);
    }
    match (&before.commit, &current.commit) {
        // Every history begins with nothing; without Git there is none.
        (None, _) => Ok(()),
        (Some(before), Some(current)) if before == current => Ok(()),
        (Some(_), None) => refuse(Unavailable::NoDescent),
        (Some(before), Some(current)) => {
            // The rest of the time belongs to the answer itself.
            let now = Instant::now();
            let half = now + deadline.saturating_duration_since(now) / 2;
            match scope.worktree().descends(current, before, half) {
                Ok(true) => Ok(()),
                Ok(false) | Err(WorkspaceError::Git { .. }) => refuse(Unavailable::NoDescent),
                Err(error) => Err(error.into()),
            }
        }
    }
}
