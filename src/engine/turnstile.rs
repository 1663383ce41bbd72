//! The turnstile before work that requests share: one round of it runs at a time, and others wait for the next one together.
//!
//! Must not know what the work is. Invariant: what a request is given came of a round that began after the request arrived. Who arrives
//! while a round runs waits for the next one of its kind, which all share who came before it began; where requests come close on each
//! other, that one begins a little later, so that more of them share it. So it does while those are expected back who were given the last
//! one, but no later than that took.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::model::Demand;

/// How often a request that waits looks whether it is still wanted.
const GLANCE: Duration = Duration::from_millis(100);
/// After so many rounds in a row that were in vain, others are not begun at once.
const MOST_IN_VAIN: u32 = 2;

/// When a request wants its round to begin. A round begins when the first of those who share it wants it to.
#[derive(Clone, Copy, Debug)]
pub(super) enum Turn {
    /// As soon as nothing else runs.
    AtOnce,
    /// As soon as nothing else runs, unless requests come close on each other.
    Paced,
    /// Not before.
    After(Instant),
}

/// Lets requests through to rounds of work, those of one kind `K` together. `T` is what a round gives to each of them.
#[derive(Debug)]
pub(super) struct Turnstile<K, T> {
    hall: Mutex<Hall<K, T>>,
    /// Time between the beginnings of two rounds while requests come close on each other.
    pace: Duration,
    /// Whether a round need not have been.
    is_vain: fn(&T) -> bool,
}

#[derive(Debug)]
struct Hall<K, T> {
    /// Rounds that are waited for, that run, or of which somebody has not heard the end, in the order they were called for.
    rounds: BTreeMap<u64, Round<K, T>>,
    is_running: bool,
    /// Numbers that were given out, to rounds and requests.
    given: u64,
    /// When the last round began.
    begun: Option<Instant>,
    /// When the last round ended, and how long it took.
    ended: Option<(Instant, Duration)>,
    /// Who comes back for another round, and when they were given the one before.
    expected: BTreeMap<u64, Instant>,
    /// How many rounds in a row were in vain, each begun soon after the one before.
    in_vain: u32,
}

#[derive(Debug)]
struct Round<K, T> {
    kind: K,
    stage: Stage<T>,
    /// Those who share it.
    requests: BTreeMap<u64, Patience>,
}

/// How long a request waits, and how it is woken: where many wait, nobody is for whom nothing has changed.
#[derive(Clone, Debug)]
struct Patience {
    /// For its round to begin.
    from: Instant,
    /// For its end.
    until: Instant,
    demand: Demand,
    /// Whether it comes back for another round.
    returns: bool,
    bell: Arc<Condvar>,
}

#[derive(Debug)]
enum Stage<T> {
    Waiting,
    Running,
    Done(T),
    /// Whoever ran it panicked.
    Abandoned,
}

impl<K, T> Default for Turnstile<K, T> {
    fn default() -> Self {
        Self::paced(Duration::ZERO, |_| false)
    }
}

impl<K, T> Turnstile<K, T> {
    /// Returns a turnstile at which a round begins no sooner than `pace` after the one before, as long as requests come while a round runs
    /// or rounds are in vain.
    pub fn paced(pace: Duration, is_vain: fn(&T) -> bool) -> Self {
        let hall = Hall {
            rounds: BTreeMap::new(),
            is_running: false,
            given: 0,
            begun: None,
            ended: None,
            expected: BTreeMap::new(),
            in_vain: 0,
        };
        Self { hall: Mutex::new(hall), pace, is_vain }
    }
}

impl<K: Copy + Eq, T: Clone> Turnstile<K, T> {
    /// Takes part in the next round of a kind and returns what came of it; `None` when it is not wanted any more before that.
    ///
    /// One of those who share a round runs it, on its own thread: the one that has most time, so that the round may take as long as
    /// anybody waits for it. It is told who does.
    pub fn share(&self, kind: K, turn: Turn, demand: &Demand, run: impl FnOnce(Demand) -> T) -> Option<T> {
        self.go_through(kind, turn, demand, None, false, run).map(|(outcome, _)| outcome)
    }

    /// Shares a round as [`Self::share`] does, and will come back soon: where others wait meanwhile, the next round is not begun just before.
    pub fn share_and_return(
        &self,
        kind: K,
        turn: Turn,
        demand: &Demand,
        run: impl FnOnce(Demand) -> T,
    ) -> Option<(T, Return<'_, K, T>)> {
        let (outcome, me) = self.go_through(kind, turn, demand, None, true, run)?;
        Some((outcome, Return { turnstile: self, me }))
    }

    /// Comes back and shares a round as [`Self::share`] does.
    pub fn share_again(
        &self,
        back: Return<'_, K, T>,
        kind: K,
        turn: Turn,
        demand: &Demand,
        run: impl FnOnce(Demand) -> T,
    ) -> Option<T> {
        self.go_through(kind, turn, demand, Some(back), false, run).map(|(outcome, _)| outcome)
    }

    fn go_through(
        &self,
        kind: K,
        turn: Turn,
        demand: &Demand,
        back: Option<Return<'_, K, T>>,
        returns: bool,
        run: impl FnOnce(Demand) -> T,
    ) -> Option<(T, u64)> {
        let deadline = demand.last();
        let mut hall = self.hall();
        let me = hall.number();
        let bell = Arc::new(Condvar::new());
        let from = hall.beginning(turn, deadline, self.pace);
        let patience = Patience { from, until: deadline, demand: demand.clone(), returns, bell: Arc::clone(&bell) };
        let mut round = hall.enter(kind, me, patience.clone());
        if let Some(back) = back {
            // Now that it waits itself.
            hall.expected.remove(&back.me);
            std::mem::forget(back);
        }
        while demand.is_given_up() || !hall.is_turn_of(round, me) {
            match hall.stage(round) {
                Some(Stage::Done(outcome)) => {
                    let outcome = outcome.clone();
                    hall.leave(round, me);
                    return Some((outcome, me));
                }
                Some(Stage::Waiting | Stage::Running) => {}
                Some(Stage::Abandoned) | None => {
                    hall.leave(round, me);
                    round = hall.enter(kind, me, patience.clone());
                    continue;
                }
            }
            let now = Instant::now();
            let mut left = deadline.saturating_duration_since(now).min(GLANCE);
            if left.is_zero() || demand.is_given_up() {
                hall.leave(round, me);
                // It may have been the one to run the round.
                hall.call_next();
                return None;
            }
            // A round may be ready sooner, because of this request, than whoever is to run it thought.
            hall.call_next();
            if let Some(from) = hall.alarm(round, me).filter(|from| *from > now) {
                left = left.min(from - now);
            }
            hall = bell.wait_timeout(hall, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        let (wanted, is_close) = hall.begin(round, demand, self.pace);
        drop(hall);
        let mut running = Running { turnstile: self, round, me, ended: Stage::Abandoned };
        let outcome = run(wanted);
        let mut hall = self.hall();
        hall.in_vain = if (self.is_vain)(&outcome) { 1 + if is_close { hall.in_vain } else { 0 } } else { 0 };
        drop(hall);
        running.ended = Stage::Done(outcome.clone());
        drop(running);
        Some((outcome, me))
    }

    /// Shares a round with somebody who does not go away before `deadline`.
    #[cfg(test)]
    pub fn pass(&self, kind: K, turn: Turn, deadline: Instant, run: impl FnOnce(Instant) -> T) -> Option<T> {
        self.share(kind, turn, &Demand::until(deadline), |demand| run(demand.last()))
    }

    /// Returns whether a round of a kind is waited for, which has not begun.
    pub fn is_called_for(&self, kind: K) -> bool {
        self.hall().rounds.values().any(|round| round.kind == kind && matches!(round.stage, Stage::Waiting))
    }

    /// Returns how many requests wait or run a round.
    #[cfg(test)]
    pub fn present(&self) -> usize {
        self.hall().rounds.values().map(|round| round.requests.len()).sum()
    }

    fn hall(&self) -> MutexGuard<'_, Hall<K, T>> {
        // Nothing that can panic runs while it is held.
        self.hall.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Copy + Eq, T> Hall<K, T> {
    fn number(&mut self) -> u64 {
        self.given += 1;
        self.given
    }

    /// Joins the round of a kind that has not begun, or calls for one.
    fn enter(&mut self, kind: K, me: u64, patience: Patience) -> u64 {
        let waiting =
            self.rounds.iter().find(|(_, round)| round.kind == kind && matches!(round.stage, Stage::Waiting)).map(|(id, _)| *id);
        let id = waiting.unwrap_or_else(|| self.number());
        let round = self.rounds.entry(id).or_insert_with(|| Round { kind, stage: Stage::Waiting, requests: BTreeMap::new() });
        round.requests.insert(me, patience);
        id
    }

    /// Returns when a request that comes now wants its round to begin.
    fn beginning(&self, turn: Turn, deadline: Instant, pace: Duration) -> Instant {
        let now = Instant::now();
        let is_crowd = self.is_running || self.rounds.values().any(|round| matches!(round.stage, Stage::Waiting));
        let soonest = match turn {
            Turn::AtOnce => now,
            Turn::Paced if is_crowd || self.in_vain >= MOST_IN_VAIN => self.begun.map_or(now, |begun| begun + pace),
            Turn::Paced => now,
            Turn::After(moment) => moment,
        };
        // Most of the time that it has is left for the work.
        soonest.min(now + deadline.saturating_duration_since(now) / 4)
    }

    /// Returns when a round is to begin, while it waits: when the first of those who share it wants it to, or when nobody is expected back.
    fn readiness(&self, round: &Round<K, T>) -> Option<Instant> {
        if !matches!(round.stage, Stage::Waiting) {
            return None;
        }
        let wanted = round.requests.values().map(|patience| patience.from).min()?;
        let held = self.held_until().unwrap_or(wanted);
        // Most of the time that each of them has is left for the work.
        let can_wait = |patience: &Patience| patience.from + patience.until.saturating_duration_since(patience.from) / 4;
        let bearable = round.requests.values().map(can_wait).min()?;
        Some(wanted.max(held.min(bearable)))
    }

    /// Returns until when a round is not begun, so that those share it who are expected back: for no longer than the last one took, which is
    /// what they would have to wait for otherwise. Who does not come back by then is not waited for.
    fn held_until(&self) -> Option<Instant> {
        let (ended, took) = self.ended?;
        let now = Instant::now();
        let is_soon = |since: &Instant| *since + took > now;
        self.expected.values().any(is_soon).then_some(ended + took)
    }

    fn leave(&mut self, id: u64, me: u64) {
        if let Some(round) = self.rounds.get_mut(&id) {
            round.requests.remove(&me);
            if round.requests.is_empty() {
                self.rounds.remove(&id);
            }
        }
    }

    fn stage(&self, id: u64) -> Option<&Stage<T>> {
        self.rounds.get(&id).map(|round| &round.stage)
    }

    /// Returns whether a request is to run its round now.
    fn is_turn_of(&self, id: u64, me: u64) -> bool {
        self.next().is_some_and(|(from, round, request, _)| (round, request) == (id, me) && from <= Instant::now())
    }

    /// Returns when a request that waits is to look whether to run its round, if it would be the one to do so.
    fn alarm(&self, id: u64, me: u64) -> Option<Instant> {
        let round = self.rounds.get(&id)?;
        round.runner().filter(|(runner, _)| *runner == me).and_then(|_| self.readiness(round))
    }

    /// Returns which round is to run next and from when on, on the thread of which request, and how that is woken: nothing runs, no other
    /// round that is ready was called for before, and nobody of this one has more time.
    fn next(&self) -> Option<(Instant, u64, u64, &Patience)> {
        if self.is_running {
            return None;
        }
        let now = Instant::now();
        let waiting = self.rounds.iter().filter_map(|(id, round)| Some((self.readiness(round)?, *id, round)));
        // Of those that are ready the first, else the one that is ready first.
        let (from, id, round) = waiting.min_by_key(|(from, id, _)| ((*from).max(now), *id))?;
        round.runner().map(|(request, patience)| (from, id, request, patience))
    }

    /// Wakes whoever is to run the next round, to do so or to see when.
    fn call_next(&self) {
        if let Some((_, _, _, patience)) = self.next() {
            patience.bell.notify_one();
        }
    }

    /// Begins a round. Returns who waits for it, and whether it comes close after the one before.
    fn begin(&mut self, id: u64, demand: &Demand, pace: Duration) -> (Demand, bool) {
        let now = Instant::now();
        // A round that is paced begins a moment after its time.
        let is_close = self.begun.is_some_and(|begun| now.saturating_duration_since(begun) < pace * 2);
        self.is_running = true;
        self.begun = Some(now);
        let Some(round) = self.rounds.get_mut(&id) else { return (demand.clone(), is_close) };
        round.stage = Stage::Running;
        (Demand::of_all(round.requests.values().map(|patience| &patience.demand)), is_close)
    }
}

impl<K, T> Round<K, T> {
    /// Returns the one of those who share it who runs it: nobody has more time.
    fn runner(&self) -> Option<(u64, &Patience)> {
        let most = self.requests.iter().max_by_key(|(number, patience)| (patience.until, std::cmp::Reverse(**number)));
        most.map(|(number, patience)| (*number, patience))
    }
}

/// Says that a request comes back for another round.
#[derive(Debug)]
pub(super) struct Return<'a, K: Copy + Eq, T: Clone> {
    turnstile: &'a Turnstile<K, T>,
    me: u64,
}

impl<K: Copy + Eq, T: Clone> Drop for Return<'_, K, T> {
    fn drop(&mut self) {
        let mut hall = self.turnstile.hall();
        hall.expected.remove(&self.me);
        hall.call_next();
    }
}

/// A round that runs. However that ends, the others hear of it.
struct Running<'a, K: Copy + Eq, T: Clone> {
    turnstile: &'a Turnstile<K, T>,
    round: u64,
    me: u64,
    ended: Stage<T>,
}

impl<K: Copy + Eq, T: Clone> Drop for Running<'_, K, T> {
    fn drop(&mut self) {
        let mut hall = self.turnstile.hall();
        let now = Instant::now();
        hall.is_running = false;
        hall.ended = hall.begun.map(|begun| (now, now.saturating_duration_since(begun)));
        let Hall { rounds, expected, .. } = &mut *hall;
        if let Some(round) = rounds.get_mut(&self.round) {
            round.stage = std::mem::replace(&mut self.ended, Stage::Abandoned);
            if matches!(round.stage, Stage::Done(_)) {
                // Before anybody of the next round can look whether somebody is expected.
                let returning = round.requests.iter().filter(|(_, patience)| patience.returns);
                expected.extend(returning.map(|(me, _)| (*me, now)));
            }
        }
        hall.leave(self.round, self.me);
        // Whoever runs the next round is woken before those who only go on.
        hall.call_next();
        if let Some(round) = hall.rounds.get(&self.round) {
            round.requests.values().for_each(|patience| patience.bell.notify_one());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::thread;
    use std::time::Duration;

    use super::*;
    use crate::model::{Cancel, Ended};

    type Rounds = Turnstile<char, usize>;

    /// Longest wait for something that must come.
    const PATIENCE: Duration = Duration::from_secs(60);

    fn far() -> Instant {
        Instant::now() + PATIENCE
    }

    /// Waits until so many requests are at the turnstile.
    fn wait_for(rounds: &Rounds, requests: usize) {
        let until = far();
        while rounds.present() != requests {
            assert!(Instant::now() < until, "{requests} requests do not come");
            thread::yield_now();
        }
    }

    /// Work that says when it began, and ends when it is told to.
    fn stalled() -> (Sender<()>, Receiver<()>, impl FnOnce(Instant) -> usize) {
        let ((begun, has_begun), (end, may_end)) = (channel(), channel::<()>());
        let run = move |_: Instant| {
            begun.send(()).expect("the test waits for it");
            may_end.recv_timeout(PATIENCE).expect("the test ends it");
            0
        };
        (end, has_begun, run)
    }

    #[test]
    fn who_comes_while_a_round_runs_shares_the_next_one() {
        let (rounds, begun) = (Rounds::default(), AtomicUsize::new(0));
        let (end, has_begun, first) = stalled();
        thread::scope(|scope| {
            let running = scope.spawn(|| rounds.pass('s', Turn::AtOnce, far(), first));
            has_begun.recv_timeout(PATIENCE).expect("it begins at once");
            let others: Vec<_> = (0..50)
                .map(|_| scope.spawn(|| rounds.pass('s', Turn::AtOnce, far(), |_| begun.fetch_add(1, Ordering::SeqCst) + 1)))
                .collect();
            wait_for(&rounds, 51);
            assert!(rounds.is_called_for('s') && !rounds.is_called_for('i'));
            assert_eq!(begun.load(Ordering::SeqCst), 0, "nothing begins beside it");
            end.send(()).expect("it waits");
            assert_eq!(running.join().expect("no panic"), Some(0));
            for other in others {
                assert_eq!(other.join().expect("no panic"), Some(1), "nobody is given what began before it came");
            }
        });
        assert_eq!(begun.load(Ordering::SeqCst), 1);
        assert!(rounds.hall().rounds.is_empty(), "nothing is left");
    }

    #[test]
    fn kinds_do_not_mix_and_come_in_order() {
        let (rounds, order) = (Rounds::default(), Mutex::new(String::new()));
        let (end, has_begun, first) = stalled();
        thread::scope(|scope| {
            scope.spawn(|| rounds.pass('s', Turn::AtOnce, far(), first));
            has_begun.recv_timeout(PATIENCE).expect("it begins at once");
            for (count, kind) in "isisv".chars().enumerate() {
                let (rounds, order) = (&rounds, &order);
                scope.spawn(move || {
                    rounds.pass(kind, Turn::AtOnce, far(), |_| {
                        order.lock().expect("no panic").push(kind);
                        0
                    })
                });
                wait_for(rounds, count + 2);
            }
            end.send(()).expect("it waits");
        });
        assert_eq!(*order.lock().expect("no panic"), "isv");
    }

    #[test]
    fn the_most_patient_runs_the_round_and_others_leave_in_time() {
        let rounds = Rounds::default();
        let (end, has_begun, first) = stalled();
        thread::scope(|scope| {
            scope.spawn(|| rounds.pass('s', Turn::AtOnce, far(), first));
            has_begun.recv_timeout(PATIENCE).expect("it begins at once");
            let soon = Instant::now() + Duration::from_millis(1);
            assert_eq!(rounds.pass('s', Turn::AtOnce, soon, |_| 1), None, "the round before takes too long");
            let (later, latest) = (far(), far() + PATIENCE);
            let pass = |until: Instant, me: usize| {
                let rounds = &rounds;
                scope.spawn(move || rounds.pass('s', Turn::AtOnce, until, |last| if last == latest { me } else { 0 }))
            };
            let mut sharing = Vec::new();
            for (me, until) in [(1, later), (2, latest), (3, later)] {
                sharing.push(pass(until, me));
                wait_for(&rounds, me + 1);
            }
            end.send(()).expect("it waits");
            assert!(sharing.into_iter().all(|one| one.join().expect("no panic") == Some(2)));
        });
    }

    #[test]
    fn a_panic_strands_nobody() {
        let rounds = Rounds::default();
        let (end, has_begun, first) = stalled();
        thread::scope(|scope| {
            scope.spawn(|| {
                let failing = |until: Instant| {
                    first(until);
                    panic!("a defect of the work")
                };
                assert!(catch_unwind(AssertUnwindSafe(|| rounds.pass('s', Turn::AtOnce, far(), failing))).is_err());
            });
            has_begun.recv_timeout(PATIENCE).expect("it begins at once");
            let longest = far() + PATIENCE;
            let panics = scope.spawn({
                let rounds = &rounds;
                move || {
                    catch_unwind(AssertUnwindSafe(|| rounds.pass('s', Turn::AtOnce, longest, |_| panic!("another one")))).is_err()
                }
            });
            wait_for(&rounds, 2);
            let others: Vec<_> = (0..3).map(|_| scope.spawn(|| rounds.pass('s', Turn::AtOnce, far(), |_| 7))).collect();
            wait_for(&rounds, 5);
            end.send(()).expect("it waits");
            assert!(panics.join().expect("it is caught"));
            assert!(others.into_iter().all(|other| other.join().expect("no panic") == Some(7)));
        });
        assert!(rounds.hall().rounds.is_empty());
    }

    #[test]
    fn who_comes_alone_runs_it_however_late_it_is() {
        let rounds = Rounds::default();
        let past = Instant::now();
        assert_eq!(rounds.pass('s', Turn::AtOnce, past, |until| usize::from(until == past)), Some(1));
        assert_eq!(rounds.pass('s', Turn::AtOnce, past, |_| 2), Some(2));
    }

    /// Tells when the rounds began that requests `gap` apart from each other come to; `vain` says what each of them comes to.
    fn beginnings(requests: u32, gap: Duration, takes: Duration, pace: Duration, vain: fn(&usize) -> bool) -> Vec<Duration> {
        let (rounds, start, begun) = (Rounds::paced(pace, vain), Instant::now(), Mutex::new(Vec::new()));
        thread::scope(|scope| {
            for request in 0..requests {
                while start.elapsed() < gap * request {
                    thread::yield_now();
                }
                let (rounds, begun) = (&rounds, &begun);
                scope.spawn(move || {
                    rounds.pass('s', Turn::Paced, far(), |_| {
                        let mut begun = begun.lock().expect("no panic");
                        begun.push(start.elapsed());
                        let number = begun.len();
                        drop(begun);
                        thread::sleep(takes);
                        number
                    })
                });
            }
        });
        begun.into_inner().expect("no panic")
    }

    #[test]
    fn a_burst_is_a_few_rounds_and_who_comes_to_quiet_does_not_wait() {
        const PACE: Duration = Duration::from_millis(200);
        let ms = Duration::from_millis;
        // Each comes while the one before runs.
        let begun = beginnings(40, ms(10), ms(30), PACE, |_| false);
        assert!(begun.windows(2).all(|pair| pair[1] >= pair[0] + PACE / 2) || begun.len() < 8, "{begun:?}");
        // Each comes when the one before has gone again, and finds nothing to do.
        let begun = beginnings(40, ms(10), ms(0), PACE, |_| true);
        assert!(begun.len() < 12, "{begun:?}");
    }

    #[test]
    fn one_after_the_other_nobody_waits_for_whom_there_is_something_to_do() {
        let rounds = Rounds::paced(PATIENCE * 4, |outcome| *outcome == 0);
        for outcome in [1, 2, 0, 3, 0, 4] {
            assert_eq!(rounds.pass('s', Turn::Paced, far(), |_| outcome), Some(outcome));
        }
    }

    #[test]
    fn who_goes_away_leaves_the_round_to_the_others() {
        let rounds = Rounds::default();
        let (end, has_begun, first) = stalled();
        let (one, other) = (Cancel::default(), Cancel::default());
        thread::scope(|scope| {
            scope.spawn(|| rounds.pass('s', Turn::AtOnce, far(), first));
            has_begun.recv_timeout(PATIENCE).expect("it begins at once");
            let share = |cancel: &Cancel, until: Instant| {
                let (demand, rounds) = (Demand::new(until, cancel), &rounds);
                // Whoever runs it is told of all who share it.
                scope.spawn(move || rounds.share('s', Turn::AtOnce, &demand, |wanted| usize::from(wanted.ended().is_none())))
            };
            // The one that would run it goes before it begins.
            let gone = share(&one, far() + PATIENCE);
            wait_for(&rounds, 2);
            let stays = share(&other, far());
            wait_for(&rounds, 3);
            one.cancel();
            assert_eq!(gone.join().expect("no panic"), None);
            end.send(()).expect("it waits");
            assert_eq!(stays.join().expect("no panic"), Some(1));
        });
        assert!(rounds.hall().rounds.is_empty());
        // Nobody begins what was given up before.
        assert_eq!(rounds.share('s', Turn::AtOnce, &Demand::new(far(), &one), |_| 1), None);
    }

    #[test]
    fn a_round_is_wanted_until_all_who_share_it_are_gone() {
        let rounds = Rounds::default();
        let (end, has_begun, first) = stalled();
        let cancels = [Cancel::default(), Cancel::default()];
        thread::scope(|scope| {
            scope.spawn(|| rounds.pass('s', Turn::AtOnce, far(), first));
            has_begun.recv_timeout(PATIENCE).expect("it begins at once");
            let (begun, begins) = channel();
            let sharing: Vec<_> = cancels
                .iter()
                .map(|cancel| {
                    let (rounds, begun, demand) = (&rounds, begun.clone(), Demand::new(far(), cancel));
                    scope.spawn(move || {
                        rounds.share('s', Turn::AtOnce, &demand, |wanted| {
                            begun.send(wanted.clone()).expect("the test waits for it");
                            while wanted.ended().is_none() {
                                thread::yield_now();
                            }
                            1
                        })
                    })
                })
                .collect();
            wait_for(&rounds, 3);
            end.send(()).expect("it waits");
            let wanted = begins.recv_timeout(PATIENCE).expect("it begins");
            cancels[0].cancel();
            assert_eq!(wanted.ended(), None);
            cancels[1].cancel();
            assert!(sharing.into_iter().map(|one| one.join().expect("no panic")).any(|outcome| outcome == Some(1)));
            assert_eq!(wanted.ended(), Some(Ended::Unwanted));
        });
    }

    #[test]
    fn who_comes_back_shares_the_round_that_others_wait_for() {
        let rounds = Rounds::default();
        let (end, has_begun, first) = stalled();
        thread::scope(|scope| {
            let back = scope.spawn(|| {
                let (outcome, back) =
                    rounds.share_and_return('s', Turn::AtOnce, &Demand::until(far()), |_| first(far())).expect("in time");
                // Somebody else waits by now, and the last round took longer than this is.
                wait_for(&rounds, 1);
                let again = rounds.share_again(back, 's', Turn::AtOnce, &Demand::until(far()), |_| 1);
                (outcome, again)
            });
            has_begun.recv_timeout(PATIENCE).expect("it begins at once");
            let other = scope.spawn(|| rounds.pass('s', Turn::AtOnce, far() + PATIENCE, |_| 2));
            wait_for(&rounds, 2);
            // The longer a round takes, the longer its guests are waited for.
            thread::sleep(Duration::from_millis(300));
            end.send(()).expect("it waits");
            assert_eq!(back.join().expect("no panic"), (0, Some(2)), "the most patient runs it, for both");
            assert_eq!(other.join().expect("no panic"), Some(2));
        });
        assert!(rounds.hall().rounds.is_empty() && rounds.hall().expected.is_empty());
    }

    #[test]
    fn who_does_not_come_back_is_not_waited_for() {
        let rounds = Rounds::default();
        let rest = Duration::from_millis(100);
        let run = |_: Demand| {
            thread::sleep(rest);
            0
        };
        let (_, back) = rounds.share_and_return('s', Turn::AtOnce, &Demand::until(far()), run).expect("in time");
        let ended = Instant::now();
        let began = rounds.pass('s', Turn::AtOnce, far(), |_| usize::from(ended.elapsed() >= rest / 2));
        assert_eq!(began, Some(1), "the next round waits for it, but not for longer than the last one took");
        // Who said so long ago is not waited for again.
        assert!(rounds.hall().held_until().is_none());
        drop(back);
        let (_, back) = rounds.share_and_return('s', Turn::AtOnce, &Demand::until(far()), |_| 0).expect("in time");
        drop(back);
        assert!(rounds.hall().expected.is_empty() && rounds.hall().held_until().is_none());
    }

    #[test]
    fn who_has_little_time_does_not_spend_it_waiting_for_others() {
        let rounds = Rounds::default();
        let run = |_: Demand| {
            thread::sleep(Duration::from_millis(400));
            0
        };
        let (_, _back) = rounds.share_and_return('s', Turn::AtOnce, &Demand::until(far()), run).expect("in time");
        let soon = Instant::now() + Duration::from_millis(300);
        assert_eq!(rounds.pass('s', Turn::AtOnce, soon, |_| usize::from(Instant::now() < soon)), Some(1));
    }

    #[test]
    fn who_is_in_a_hurry_takes_the_others_along() {
        let rounds = Rounds::paced(PATIENCE * 4, |_| false);
        let (end, has_begun, first) = stalled();
        thread::scope(|scope| {
            scope.spawn(|| rounds.pass('s', Turn::Paced, far(), first));
            has_begun.recv_timeout(PATIENCE).expect("it begins at once");
            let patient = scope.spawn(|| rounds.pass('s', Turn::Paced, far() + PATIENCE * 40, |_| 1));
            wait_for(&rounds, 2);
            end.send(()).expect("it waits");
            wait_for(&rounds, 1);
            // Another kind is not held up by it.
            assert_eq!(rounds.pass('i', Turn::AtOnce, far(), |_| 2), Some(2));
            assert_eq!(rounds.pass('s', Turn::AtOnce, far(), |_| 3), Some(1), "the most patient runs it");
            assert_eq!(patient.join().expect("no panic"), Some(1));
        });
    }
}
