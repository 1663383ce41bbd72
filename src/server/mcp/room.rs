//! The room in which calls are worked on: how many at once, how many wait for that, and for how long.
//!
//! Must not know a tool's work. Invariant: no call of a service gets more room or time than a request of its other routes.

use std::sync::Arc;
use std::time::Instant;

use tokio::sync::Semaphore;

use crate::config::Limits;
use crate::engine::Onlooker;
use crate::server::http::{Rooms, sentence_of};

use super::{Outcome, ToolCall, Unanswered};

/// More calls of one client of standard streams wait for those before them.
const MOST_CALLS: usize = 16;

/// Where calls are worked on.
#[derive(Clone, Debug)]
pub(super) enum Room {
    /// Of a process that serves one client.
    Own(Arc<Semaphore>),
    /// Of a service, in which calls stand beside its other requests.
    Shared(Rooms),
}

/// Why a call was not worked on to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turned {
    /// There is no room, or no time left; what to say.
    Away(&'static str),
    /// A defect of it.
    Broken,
}

impl Room {
    pub fn own() -> Self {
        Self::Own(Arc::new(Semaphore::new(MOST_CALLS)))
    }

    /// Returns one who waits for a call: as long as the limits of a service allow, without them as long as it takes.
    pub fn onlooker(call: &ToolCall, limits: Option<&Limits>) -> Onlooker {
        let limit = |limits: &Limits| if call.tool.is_read_only { limits.query() } else { limits.build() };
        limits.map(limit).map_or_else(Onlooker::default, |limit| Onlooker::until(Instant::now() + limit))
    }

    /// Does the work of a call, which blocks, once there is room for it. Whoever lets go of this before leaves the queue.
    pub async fn work(
        &self,
        call: &ToolCall,
        limits: Option<&Limits>,
        work: impl FnOnce() -> Outcome + Send + 'static,
    ) -> Result<Outcome, Turned> {
        match self {
            Self::Own(calls) => {
                let Ok(turn) = Arc::clone(calls).acquire_owned().await else { return Err(Turned::Broken) };
                let held = move || {
                    // Nobody may wait for its end, and the room is taken until then.
                    let _turn = turn;
                    work()
                };
                tokio::task::spawn_blocking(held).await.map_err(|_| Turned::Broken)
            }
            Self::Shared(rooms) => {
                let limits = limits.cloned().unwrap_or_default();
                let (room, limit) =
                    if call.tool.is_read_only { (&rooms.questions, limits.query()) } else { (&rooms.syncs, limits.build()) };
                room.run(Instant::now() + limit, work).await.map_err(|refusal| match refusal.code() {
                    "internal_error" => Turned::Broken,
                    code => Turned::Away(code),
                })
            }
        }
    }
}

/// Says what a call comes to for which there was no room or no time: nothing is wrong with it.
pub(super) fn turned_away(code: &'static str) -> Outcome {
    let hint = match code {
        "server_busy" => "wait a few seconds and make the same call again; ask fewer things at once",
        _ => "make the same call again; if it stays so, ask for less with `path` or `limit`",
    };
    Outcome::without_answer(&Unanswered { code, message: sentence_of(code), hint, failed: false })
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use serde_json::Map;

    use super::*;
    use crate::server::mcp::tools::declared;

    /// Longest wait for something that must come.
    const PATIENCE: Duration = Duration::from_secs(60);

    fn call(tool: &str) -> ToolCall {
        let tool = declared(tool).expect("a tool");
        ToolCall { tool, arguments: Map::new(), client_root: None, scope: None, may_sync: true }
    }

    fn done() -> Outcome {
        Outcome { text: "done".to_owned(), structured: Map::new(), failed: false }
    }

    /// Work that says when it begins, and ends when it is told to.
    fn stalled() -> (mpsc::Sender<()>, mpsc::Receiver<()>, impl FnOnce() -> Outcome + Send + 'static) {
        let (go, gate) = mpsc::channel::<()>();
        let (begun, begins) = mpsc::channel();
        let work = move || {
            begun.send(()).expect("the test listens");
            gate.recv().expect("the test lets it go on");
            done()
        };
        (go, begins, work)
    }

    #[test]
    fn calls_stand_in_the_rooms_of_the_service() {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_time().build().expect("a runtime");
        runtime.block_on(async {
            let rooms = Rooms::new((1, 1), (1, 0));
            let room = Room::Shared(rooms.clone());
            let begin = |tool: &'static str, work: Box<dyn FnOnce() -> Outcome + Send>| {
                let room = room.clone();
                tokio::spawn(async move { room.work(&call(tool), None, work).await })
            };
            let (go, begins, work) = stalled();
            let syncing = begin("sync", Box::new(work));
            begins.recv_timeout(PATIENCE).expect("it begins");
            assert_eq!(room.work(&call("sync"), None, done).await, Err(Turned::Away("server_busy")));
            // A sync takes no place of a question.
            assert_eq!(room.work(&call("explore"), None, done).await, Ok(done()));
            go.send(()).expect("it waits");
            assert_eq!(syncing.await.expect("no panic"), Ok(done()));
            // One that is let go of while it waits has left the queue.
            let (go, begins, work) = stalled();
            let asking = begin("explore", Box::new(work));
            begins.recv_timeout(PATIENCE).expect("it begins");
            let explore = call("explore");
            let waiting = room.work(&explore, None, done);
            assert!(tokio::time::timeout(Duration::from_millis(1), waiting).await.is_err());
            assert_eq!(rooms.present(), 1);
            go.send(()).expect("it waits");
            assert_eq!(asking.await.expect("no panic"), Ok(done()));
            for room in [room, Room::own()] {
                assert_eq!(room.work(&explore, None, || panic!("on purpose")).await, Err(Turned::Broken));
            }
        });
    }

    #[test]
    fn who_is_turned_away_hears_what_to_do() {
        let outcome = turned_away("server_busy");
        assert!(!outcome.failed && outcome.code() == Some("server_busy"), "{outcome:?}");
        assert!(outcome.text.contains("next: wait a few seconds"), "{}", outcome.text);
        assert_eq!(turned_away("code_timeout").code(), Some("code_timeout"));
    }
}
