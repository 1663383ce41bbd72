//! How far the work at a desk is, for whoever looks on while it goes on.
//!
//! Must not know who looks on, nor how it is shown. Invariant: what is shown is a step that is worked on at that moment, or nothing; no
//! work waits for being looked at.

use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use serde::{Deserialize, Serialize};

use crate::model::{Cancel, Headway};

use super::desk::Desk;

/// A step of a build, or the check before an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// Another process builds, and is waited for.
    Wait,
    /// Everything that is stored is checked, pack by pack.
    VerifyStore,
    /// The worktree is read and hashed, to be compared.
    Check,
    /// Files are read and parsed.
    Extract,
    /// The facts of files that need no parsing are found.
    Load,
    /// References are resolved, file by file.
    Resolve,
    /// The generation is written.
    Store,
}

/// How far a step is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    pub step: Step,
    pub done: u64,
    /// Null while it is not known.
    pub total: Option<u64>,
}

/// The steps that are worked on. More than one, where a question is checked beside a build.
#[derive(Debug, Default)]
pub struct Gauge(Mutex<Vec<Arc<Work>>>);

#[derive(Debug)]
struct Work {
    step: Step,
    headway: Headway,
}

impl Gauge {
    /// Begins a step, which lasts as long as what is returned; it counts what is done of it.
    pub fn begin(&self, step: Step) -> InHand<'_> {
        let work = Arc::new(Work { step, headway: Headway::default() });
        self.works().push(Arc::clone(&work));
        InHand { gauge: self, work }
    }

    /// Returns how far the step is that began last; `None` when nothing is worked on.
    pub fn read(&self) -> Option<Progress> {
        let works = self.works();
        let work = works.last()?;
        let (done, total) = work.headway.read();
        Some(Progress { step: work.step, done, total })
    }

    fn works(&self) -> MutexGuard<'_, Vec<Arc<Work>>> {
        // Each change of it is whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A step that is worked on.
#[derive(Debug)]
pub struct InHand<'g> {
    gauge: &'g Gauge,
    work: Arc<Work>,
}

impl Deref for InHand<'_> {
    type Target = Headway;

    fn deref(&self) -> &Headway {
        &self.work.headway
    }
}

impl Drop for InHand<'_> {
    fn drop(&mut self) {
        self.gauge.works().retain(|work| !Arc::ptr_eq(work, &self.work));
    }
}

/// Whoever waits for a command: sees from another thread how far its work is, and may go away.
#[derive(Debug, Default)]
pub struct Onlooker {
    view: Mutex<View>,
    cancel: Cancel,
    /// Until when it waits, where that was said.
    until: Option<Instant>,
}

/// Where it is seen how far the work is.
#[derive(Debug, Default)]
enum View {
    #[default]
    Nowhere,
    /// At the desk to which the command came.
    At(Arc<Desk>),
    /// In another process, which tells it now and then.
    Told(Progress),
}

impl Onlooker {
    /// Returns one who waits until a moment and no longer.
    pub fn until(moment: Instant) -> Self {
        Self { until: Some(moment), ..Self::default() }
    }

    /// Looks on at a desk from now on.
    pub fn attend(&self, desk: &Arc<Desk>) {
        *self.view() = View::At(Arc::clone(desk));
    }

    /// Takes note of how far the work is in another process.
    pub fn tell(&self, progress: Progress) {
        *self.view() = View::Told(progress);
    }

    /// Returns how far the step is that is worked on; `None` when nothing is, or there is no desk yet.
    pub fn read(&self) -> Option<Progress> {
        match &*self.view() {
            View::Nowhere => None,
            View::At(desk) => desk.progress(),
            View::Told(progress) => Some(*progress),
        }
    }

    /// Returns what says that it does not wait any more.
    pub fn cancel(&self) -> &Cancel {
        &self.cancel
    }

    pub(super) fn waits_until(&self) -> Option<Instant> {
        self.until
    }

    fn view(&self) -> MutexGuard<'_, View> {
        // Each change of it is whole.
        self.view.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_step_that_began_is_shown_until_it_ends() {
        let gauge = Gauge::default();
        let shown = || gauge.read().map(|Progress { step, done, total }| (step, done, total));
        assert_eq!(shown(), None);
        let resolve = gauge.begin(Step::Resolve);
        resolve.expect(9, 1);
        resolve.add(4);
        assert_eq!(shown(), Some((Step::Resolve, 4, Some(9))));
        let check = gauge.begin(Step::Check);
        assert_eq!(shown(), Some((Step::Check, 0, None)));
        drop(check);
        assert_eq!(shown(), Some((Step::Resolve, 4, Some(9))));
        drop(resolve);
        assert_eq!(shown(), None);
    }

    #[test]
    fn what_is_said_over_a_socket() {
        let progress = Progress { step: Step::VerifyStore, done: 1, total: None };
        let line = serde_json::to_string(&progress).expect("plain values have JSON");
        assert_eq!(line, r#"{"step":"verify_store","done":1,"total":null}"#);
        assert_eq!(serde_json::from_str::<Progress>(&line).expect("own text"), progress);
    }
}
