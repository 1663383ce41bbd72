//! The places at which questions do their own work: as many as pay, first come, first served.
//!
//! More work at once than there are processors makes all of it late, and needs as many open readers. Must not know what the work is.
//! Invariant: nobody goes before who came earlier; who waits for anything but a processor is given no place, and who stays long at one
//! holds up nobody.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::model::Demand;

/// How often a question that waits looks whether it is still wanted.
const GLANCE: Duration = Duration::from_millis(100);
/// Who works for longer does not count any more: what takes seconds, such as an export, is no reason for others to wait.
const LONG: Duration = Duration::from_millis(250);

/// So many places, and who is at them.
#[derive(Debug)]
pub(super) struct Places {
    most: usize,
    hall: Mutex<Hall>,
}

#[derive(Debug, Default)]
struct Hall {
    given: u64,
    /// When each of those who work began.
    working: BTreeMap<u64, Instant>,
    /// How those are woken who wait, in the order in which they came.
    waiting: BTreeMap<u64, Arc<Condvar>>,
}

impl Places {
    pub fn new(most: usize) -> Self {
        Self { most: most.max(1), hall: Mutex::default() }
    }

    /// Returns as many places as there are processors.
    pub fn of_machine() -> Self {
        Self::new(std::thread::available_parallelism().map_or(1, std::num::NonZero::get))
    }

    /// Returns how many can be taken at once.
    pub fn most(&self) -> usize {
        self.most
    }

    /// Takes a place, once all who came before have had one; `None` when it is not wanted any more before that.
    pub fn enter(&self, demand: &Demand) -> Option<Place<'_>> {
        let deadline = demand.last();
        let mut hall = self.hall();
        hall.given += 1;
        let me = hall.given;
        let bell = Arc::new(Condvar::new());
        hall.waiting.insert(me, Arc::clone(&bell));
        loop {
            let now = Instant::now();
            let is_first = hall.waiting.first_key_value().is_some_and(|(first, _)| *first == me);
            if is_first && hall.counted(now).count() < self.most && !demand.is_given_up() {
                hall.waiting.remove(&me);
                hall.working.insert(me, now);
                // There may be room for another one.
                hall.call_first();
                return Some(Place { places: self, me });
            }
            let mut left = deadline.saturating_duration_since(now).min(GLANCE);
            if left.is_zero() || demand.is_given_up() {
                hall.waiting.remove(&me);
                hall.call_first();
                return None;
            }
            if is_first && let Some(oldest) = hall.counted(now).min() {
                left = left.min((oldest + LONG).saturating_duration_since(now));
            }
            hall = bell.wait_timeout(hall, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Returns how many wait for a place.
    #[cfg(test)]
    pub fn waiting(&self) -> usize {
        self.hall().waiting.len()
    }

    fn hall(&self) -> MutexGuard<'_, Hall> {
        // Each change of it is whole.
        self.hall.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Hall {
    /// Returns when those began whose places are taken.
    fn counted(&self, now: Instant) -> impl Iterator<Item = Instant> {
        self.working.values().copied().filter(move |began| now.saturating_duration_since(*began) < LONG)
    }

    /// Has the first of those who wait look whether there is room.
    fn call_first(&self) {
        if let Some((_, bell)) = self.waiting.first_key_value() {
            bell.notify_one();
        }
    }
}

/// A place that is taken.
#[derive(Debug)]
pub(super) struct Place<'p> {
    places: &'p Places,
    me: u64,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut hall = self.places.hall();
        hall.working.remove(&self.me);
        hall.call_first();
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;
    use crate::model::Cancel;

    /// Longest wait for something that must come.
    const PATIENCE: Duration = Duration::from_secs(60);

    fn far() -> Demand {
        Demand::until(Instant::now() + PATIENCE)
    }

    fn wait_for(places: &Places, waiting: usize) {
        let until = far().last();
        while places.waiting() != waiting {
            assert!(Instant::now() < until, "{waiting} do not come to wait");
            thread::yield_now();
        }
    }

    #[test]
    fn who_came_first_is_first() {
        let (places, order) = (Places::new(1), Mutex::new(Vec::new()));
        let held = places.enter(&far()).expect("nobody is there");
        thread::scope(|scope| {
            for number in 0..8 {
                let (places, order) = (&places, &order);
                scope.spawn(move || {
                    let _place = places.enter(&far()).expect("in time");
                    order.lock().expect("no panic").push(number);
                });
                wait_for(places, number + 1);
            }
            assert!(order.lock().expect("no panic").is_empty(), "the place is taken");
            drop(held);
        });
        assert_eq!(*order.lock().expect("no panic"), (0..8).collect::<Vec<_>>());
    }

    #[test]
    fn no_more_work_at_once_than_there_are_places() {
        let (places, now, most) = (Places::new(2), Mutex::new(0), Mutex::new(0));
        thread::scope(|scope| {
            for _ in 0..16 {
                scope.spawn(|| {
                    let _place = places.enter(&far()).expect("in time");
                    *now.lock().expect("no panic") += 1;
                    thread::yield_now();
                    let seen = *now.lock().expect("no panic");
                    let mut most = most.lock().expect("no panic");
                    *most = (*most).max(seen);
                    *now.lock().expect("no panic") -= 1;
                });
            }
        });
        assert!((1..=2).contains(&*most.lock().expect("no panic")));
    }

    #[test]
    fn who_gives_up_stands_in_nobodys_way() {
        let places = Places::new(1);
        let held = places.enter(&far()).expect("nobody is there");
        thread::scope(|scope| {
            assert!(places.enter(&Demand::until(Instant::now())).is_none(), "it is taken");
            let second = scope.spawn(|| places.enter(&far()).is_some());
            wait_for(&places, 1);
            let gone = Cancel::default();
            let third = scope.spawn({
                let demand = Demand::new(Instant::now() + PATIENCE, &gone);
                let places = &places;
                move || places.enter(&demand).is_none()
            });
            wait_for(&places, 2);
            gone.cancel();
            assert!(third.join().expect("no panic"));
            drop(held);
            assert!(second.join().expect("no panic"));
        });
        assert!(places.enter(&Demand::until(Instant::now())).is_some(), "where there is room nobody is too late");
    }

    #[test]
    fn who_stays_long_holds_up_nobody() {
        let places = Places::new(1);
        let _held = places.enter(&far()).expect("nobody is there");
        assert!(places.enter(&far()).is_some(), "it counts no more after a while");
    }
}
