//! How far a call is, as the protocol tells it.
//!
//! Must not know where the work is done. Invariant: what is told of one call grows with each telling, as the protocol demands, also where
//! nothing was done meanwhile or a step has no count.

use std::time::Duration;

use crate::engine::{Progress, Step};

/// By how much it grows at least.
const LEAST: f64 = 0.001;

/// What is told of a call: how much was done in all its steps, of how much as far as that is known, and the step that is worked on.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Told {
    pub done: f64,
    pub total: Option<f64>,
    pub message: String,
}

/// Adds up the steps of one call.
#[derive(Debug, Default)]
pub(super) struct Account {
    /// What belongs to steps that are over.
    behind: u64,
    /// The step that was seen last.
    step: Option<Progress>,
    told: Option<f64>,
}

impl Account {
    /// Returns what to tell of a call of a tool that has gone on for so long and is so far.
    pub fn tell(&mut self, tool: &str, elapsed: Duration, seen: Option<Progress>) -> Told {
        if let Some(seen) = seen {
            let goes_on = |last: &Progress| last.step == seen.step && last.done <= seen.done && last.total == seen.total;
            let begins = |last: &Progress| last.step == seen.step && last.total.is_none() && last.done == 0;
            if let Some(last) = self.step.take().filter(|last| !goes_on(last) && !begins(last)) {
                self.behind += last.total.unwrap_or(last.done);
            }
            self.step = Some(seen);
        }
        let least = self.told.map_or(0.0, |told| told + LEAST);
        let done = count(self.behind + self.step.map_or(0, |step| step.done)).max(least);
        let total = self.step.and_then(|step| step.total).map(|total| count(self.behind + total).max(done));
        self.told = Some(done);
        let message = seen.map_or_else(|| format!("{tool}: {} s", elapsed.as_secs()), |seen| said(&seen));
        Told { done, total, message }
    }
}

/// Returns a number of files as the protocol has numbers.
fn count(files: u64) -> f64 {
    files as f64
}

/// Says what is done of a step.
fn said(progress: &Progress) -> String {
    let Progress { step, done, total } = *progress;
    let (doing, did, what) = match step {
        Step::Wait => return "waiting for another build to end".to_owned(),
        Step::VerifyStore => ("checking what is stored", "checked", "packs"),
        Step::Check => ("checking files", "checked", "files"),
        Step::Extract => ("reading and parsing files", "parsed", "files"),
        Step::Load => ("loading what is known of files", "loaded", "files"),
        Step::Resolve => ("resolving references", "resolved the references of", "files"),
        Step::Store => ("writing the index", "wrote", "files"),
    };
    match total {
        Some(total) => format!("{did} {done} of {total} {what}"),
        None if done > 0 => format!("{did} {done} {what}"),
        None => doing.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_grows_through_all_steps() {
        let mut account = Account::default();
        let mut check = |seen: Option<(Step, u64, Option<u64>)>, want: (f64, Option<f64>), message: &str| {
            let seen = seen.map(|(step, done, total)| Progress { step, done, total });
            let told = account.tell("sync", Duration::from_secs(3), seen);
            assert_eq!((told.done, told.total, told.message.as_str()), (want.0, want.1, message));
        };
        check(None, (0.0, None), "sync: 3 s");
        check(Some((Step::Wait, 0, None)), (0.001, None), "waiting for another build to end");
        check(Some((Step::Wait, 0, None)), (0.002, None), "waiting for another build to end");
        check(Some((Step::Extract, 0, None)), (0.003, None), "reading and parsing files");
        check(Some((Step::Extract, 120, Some(700))), (120.0, Some(700.0)), "parsed 120 of 700 files");
        check(Some((Step::Extract, 120, Some(700))), (120.001, Some(700.0)), "parsed 120 of 700 files");
        check(Some((Step::Extract, 690, Some(700))), (690.0, Some(700.0)), "parsed 690 of 700 files");
        check(Some((Step::Resolve, 5, Some(650))), (705.0, Some(1350.0)), "resolved the references of 5 of 650 files");
        // Nothing that has a count is worked on.
        check(None, (705.001, Some(1350.0)), "sync: 3 s");
        check(Some((Step::Store, 0, None)), (1350.0, None), "writing the index");
        check(Some((Step::Check, 9, Some(700))), (1359.0, Some(2050.0)), "checked 9 of 700 files");
        // The worktree did not rest, and is looked at again.
        check(Some((Step::Check, 2, Some(700))), (2052.0, Some(2750.0)), "checked 2 of 700 files");
    }

    #[test]
    fn what_is_done_is_never_more_than_all_of_it() {
        let mut account = Account::default();
        let seen = Some(Progress { step: Step::Store, done: 3, total: Some(3) });
        for _ in 0..9 {
            let told = account.tell("sync", Duration::ZERO, seen);
            assert!(told.total.is_some_and(|total| told.done <= total), "{told:?}");
        }
    }
}
