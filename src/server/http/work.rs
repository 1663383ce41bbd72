//! Work that blocks, on threads of its own: bounded in how much runs and waits, and in how long it may wait.
//!
//! Must not know what is done. Invariant: what was let in runs to its end or is refused before it begins, and a defect of it is an answer,
//! too.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use tokio::sync::Semaphore;

use super::refusal::Refusal;

/// Where the requests of a service are worked on, those of agents among them: syncs hold a thread for long, and have a room of their own.
#[derive(Clone, Debug)]
pub struct Rooms {
    pub questions: Arc<Work>,
    pub syncs: Arc<Work>,
}

impl Rooms {
    /// Returns rooms that take so much at once of each kind, and so much more that waits.
    pub fn new(questions: (usize, usize), syncs: (usize, usize)) -> Self {
        let room = |(running, waiting)| Arc::new(Work::new(running, waiting));
        Self { questions: room(questions), syncs: room(syncs) }
    }

    /// Returns how much waits or runs.
    pub fn present(&self) -> u64 {
        self.questions.present() + self.syncs.present()
    }
}

/// One kind of work.
#[derive(Debug)]
pub struct Work {
    places: Arc<Semaphore>,
    running: Arc<Semaphore>,
    /// How many wait or run.
    present: Arc<AtomicU64>,
}

impl Work {
    /// Lets so much run at once, and so much more wait for it.
    pub fn new(running: usize, waiting: usize) -> Self {
        Self {
            places: Arc::new(Semaphore::new(running + waiting)),
            running: Arc::new(Semaphore::new(running)),
            present: Arc::default(),
        }
    }

    /// Returns how much waits or runs.
    pub fn present(&self) -> u64 {
        self.present.load(Ordering::Relaxed)
    }

    /// Does something that blocks, once there is room for it.
    ///
    /// # Errors
    /// When there is no room even to wait, the deadline passes before it begins, or it panics.
    pub async fn run<T: Send + 'static>(
        &self,
        deadline: Instant,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Refusal> {
        let Ok(place) = Arc::clone(&self.places).try_acquire_owned() else { return Err(Refusal::new("server_busy")) };
        let present = Present::enter(&self.present);
        let turn = tokio::time::timeout_at(deadline.into(), Arc::clone(&self.running).acquire_owned()).await;
        let Ok(Ok(turn)) = turn else { return Err(Refusal::new("code_timeout")) };
        let guarded = move || {
            // Whoever asked may be gone by the end of it, and the room is taken until then.
            let _held = (place, turn, present);
            work()
        };
        tokio::task::spawn_blocking(guarded).await.map_err(|error| {
            tracing::error!(%error, "a request ended without an answer");
            Refusal::new("internal_error")
        })
    }
}

struct Present(Arc<AtomicU64>);

impl Present {
    fn enter(count: &Arc<AtomicU64>) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(count))
    }
}

impl Drop for Present {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    #[test]
    fn no_more_is_let_in_than_there_is_room_for() {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_time().build().expect("a runtime");
        runtime.block_on(async {
            let work = Arc::new(Work::new(1, 1));
            let far = Instant::now() + Duration::from_secs(60);
            let (go, gate) = mpsc::channel::<()>();
            let (began, begins) = mpsc::channel();
            let first = tokio::spawn({
                let work = Arc::clone(&work);
                async move {
                    let wait = move || {
                        began.send(()).expect("somebody listens");
                        gate.recv().is_ok()
                    };
                    work.run(far, wait).await
                }
            });
            tokio::task::block_in_place(|| begins.recv().expect("it begins"));
            let late = work.run(Instant::now(), || ()).await;
            assert_eq!(late.expect_err("the deadline passed"), Refusal::new("code_timeout"));
            let second = tokio::spawn({
                let work = Arc::clone(&work);
                async move { work.run(far, || 2).await }
            });
            while work.present() < 2 {
                tokio::task::yield_now().await;
            }
            assert_eq!(work.run(far, || ()).await.expect_err("full"), Refusal::new("server_busy"));
            go.send(()).expect("it waits");
            assert!(first.await.expect("no panic").expect("let in"));
            assert_eq!(second.await.expect("no panic").expect("let in"), 2);
            let panicked = work.run(far, || panic!("on purpose")).await;
            assert_eq!(panicked.map(|(): ()| ()).expect_err("a defect"), Refusal::new("internal_error"));
            assert_eq!(work.present(), 0);
        });
    }
}
