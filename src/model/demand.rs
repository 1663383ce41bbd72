//! Whether work is still wanted: by those who wait for what comes of it, each until a moment, and unless it went away.
//!
//! Must not know the work, nor who waits. Invariant: asking never waits, and work that is shared goes on as long as one of those who share
//! it waits.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Says to other threads that somebody does not wait any more.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Returns what cancels when it is dropped, whichever way that comes about.
    pub fn at_end(&self) -> CancelAtEnd {
        CancelAtEnd(self.clone())
    }
}

/// Cancels when it is dropped.
#[derive(Debug)]
pub struct CancelAtEnd(Cancel);

impl Drop for CancelAtEnd {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// Who waits for work, and until when.
#[derive(Clone, Debug)]
pub struct Demand(Arc<[Waiting]>);

#[derive(Clone, Debug)]
struct Waiting {
    until: Instant,
    cancel: Cancel,
}

/// Why work is not wanted any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Somebody would have waited for it, and not for so long.
    Late,
    /// All who waited went away.
    Unwanted,
}

impl Demand {
    /// Returns that of one who waits until a moment, or until it is cancelled.
    pub fn new(until: Instant, cancel: &Cancel) -> Self {
        Self([Waiting { until, cancel: cancel.clone() }].into())
    }

    /// Returns that of one who waits until a moment.
    pub fn until(moment: Instant) -> Self {
        Self::new(moment, &Cancel::default())
    }

    /// Returns that of all who share the work.
    pub fn of_all<'d>(demands: impl IntoIterator<Item = &'d Self>) -> Self {
        Self(demands.into_iter().flat_map(|demand| demand.0.iter().cloned()).collect())
    }

    /// Returns why the work is not wanted any more; `None` while somebody waits.
    pub fn ended(&self) -> Option<Ended> {
        let now = Instant::now();
        let mut ended = Ended::Unwanted;
        for Waiting { until, cancel } in self.0.iter() {
            if cancel.is_cancelled() {
                continue;
            }
            if now < *until {
                return None;
            }
            ended = Ended::Late;
        }
        Some(ended)
    }

    /// Returns whether all who waited went away.
    pub fn is_given_up(&self) -> bool {
        self.0.iter().all(|waiting| waiting.cancel.is_cancelled())
    }

    /// Returns until when somebody waits, who may go away before.
    pub fn last(&self) -> Instant {
        self.0.iter().map(|waiting| waiting.until).max().unwrap_or_else(Instant::now)
    }

    /// Returns how long somebody waits at most.
    pub fn left(&self) -> Duration {
        self.last().saturating_duration_since(Instant::now())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_goes_on_as_long_as_one_waits() {
        let (far, past) = (Instant::now() + Duration::from_secs(600), Instant::now());
        let (one, other) = (Cancel::default(), Cancel::default());
        let check = |demands: &[&Demand], want: Option<Ended>| {
            assert_eq!(Demand::of_all(demands.iter().copied()).ended(), want, "{demands:?}");
        };
        let (ours, theirs, late) = (Demand::new(far, &one), Demand::new(far, &other), Demand::until(past));
        check(&[&ours], None);
        check(&[&late], Some(Ended::Late));
        check(&[&late, &theirs], None);
        one.cancel();
        check(&[&ours], Some(Ended::Unwanted));
        check(&[&ours, &theirs], None);
        check(&[&ours, &late], Some(Ended::Late));
        assert!(ours.is_given_up() && !Demand::of_all([&ours, &late]).is_given_up());
        drop(other.at_end());
        check(&[&ours, &theirs], Some(Ended::Unwanted));
        assert_eq!(Demand::of_all([&late, &ours]).last(), far);
    }
}
