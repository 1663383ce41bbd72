//! One who comes to a desk, and may go away before there is an answer: what is done for it alone ends then.
//!
//! Must not know who it is. Invariant: what a guest asks for is what the desk does for anybody, as long as the guest is there.

use std::ops::Deref;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::model::Cancel;

use super::EngineError;
use super::desk::Desk;
use super::gate::{Admission, Answer, Snapshot};
use super::progress::Onlooker;
use super::report::BuildOutcome;

/// A desk, and one who came to it. Once that is cancelled, a build that was asked for ends at its next step, unless others share it, and
/// a question between its steps; nothing is changed by either.
#[derive(Clone, Debug)]
pub struct Guest {
    desk: Arc<Desk>,
    cancel: Cancel,
    /// Until when it waits, where that was said.
    until: Option<Instant>,
}

impl Guest {
    pub fn new(desk: Arc<Desk>, cancel: Cancel) -> Self {
        Self { desk, cancel, until: None }
    }

    /// Returns the one who looks on.
    pub fn who_sees(desk: Arc<Desk>, onlooker: &Onlooker) -> Self {
        Self { desk, cancel: onlooker.cancel().clone(), until: onlooker.waits_until() }
    }

    fn within(&self, limit: Duration) -> Duration {
        self.until.map_or(limit, |until| until.saturating_duration_since(Instant::now()).min(limit))
    }

    pub fn desk(&self) -> &Arc<Desk> {
        &self.desk
    }

    /// See [`Desk::ask`].
    ///
    /// # Errors
    /// As there.
    pub fn ask<R>(&self, admission: Admission, operation: impl FnMut(&Snapshot) -> R) -> Result<Answer<R>, Arc<EngineError>> {
        let admission = Admission { limit: self.within(admission.limit), ..admission };
        self.desk.ask_unless(admission, &self.cancel, operation)
    }

    /// See [`Desk::index`].
    ///
    /// # Errors
    /// As there.
    pub fn index(&self) -> Result<BuildOutcome, Arc<EngineError>> {
        self.desk.index_unless(&self.cancel)
    }

    /// See [`Desk::sync`].
    ///
    /// # Errors
    /// As there.
    pub fn sync(&self) -> Result<BuildOutcome, Arc<EngineError>> {
        self.sync_within(self.scope().limits().build())
    }

    /// See [`Desk::sync_within`].
    ///
    /// # Errors
    /// As there.
    pub fn sync_within(&self, limit: Duration) -> Result<BuildOutcome, Arc<EngineError>> {
        self.desk.sync_unless(self.within(limit), &self.cancel)
    }

    /// See [`Desk::verify_and_sync`].
    ///
    /// # Errors
    /// As there.
    pub fn verify_and_sync(&self) -> Result<BuildOutcome, Arc<EngineError>> {
        self.desk.verify_unless(&self.cancel)
    }
}

impl Deref for Guest {
    type Target = Desk;

    fn deref(&self) -> &Desk {
        &self.desk
    }
}
