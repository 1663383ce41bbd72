//! The attendant of a desk: a thread that hears where the worktree may have changed, and does ahead what the next sync would have to do.
//!
//! Must not be needed for any answer. Invariant: it gives way at once to whoever comes to the desk, and ends with it.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use crate::model::Cancel;
use crate::watch::{Health, Hint, HintSource, WatchError};

use super::desk::Desk;

/// How often it looks whether it is still wanted, and what the watcher says of itself.
const TICK: Duration = Duration::from_secs(1);
/// How long it stands aside when somebody is at the desk.
const ASIDE: Duration = Duration::from_millis(20);
/// How long after a failure it tries again.
const PATIENCE: Duration = Duration::from_secs(60);

/// Begins to watch, as soon as there is something to watch for.
pub(super) type Begin = Box<dyn FnMut(&Desk) -> Result<Box<dyn HintSource>, WatchError> + Send>;

/// Ends its thread when it is dropped.
#[derive(Debug)]
pub(super) struct Attendant {
    _present: Sender<()>,
}

impl Attendant {
    /// Starts the thread. After `auto_sync` of quiet it syncs by itself.
    ///
    /// # Errors
    /// When the machine gives no thread.
    pub fn start(desk: &Arc<Desk>, begin: Begin, auto_sync: Option<Duration>) -> io::Result<Self> {
        let (present, dismissed) = channel();
        let mut shift = Shift {
            desk: Arc::downgrade(desk),
            dismissed,
            begin,
            source: None,
            begin_at: Instant::now(),
            owed: None,
            auto_sync,
            unpublished: None,
        };
        std::thread::Builder::new().name("attendant".to_owned()).spawn(move || while shift.turn() {})?;
        Ok(Self { _present: present })
    }
}

/// What the thread knows.
struct Shift {
    desk: Weak<Desk>,
    dismissed: Receiver<()>,
    begin: Begin,
    source: Option<Box<dyn HintSource>>,
    /// When to begin watching, where that failed.
    begin_at: Instant,
    /// What was hinted and is not prepared.
    owed: Option<Hint>,
    auto_sync: Option<Duration>,
    /// Since when nothing more was hinted of what is not published.
    unpublished: Option<Instant>,
}

impl Shift {
    /// Waits a while and does what there is to do. Returns whether to go on.
    fn turn(&mut self) -> bool {
        let Some(hint) = self.wait() else { return false };
        let Some(desk) = self.desk.upgrade() else { return false };
        if let Some(hint) = hint {
            self.unpublished = Some(Instant::now());
            self.owe(hint);
        }
        match &self.source {
            Some(source) => desk.note_watch(Some(&source.health())),
            None if Instant::now() >= self.begin_at && desk.is_indexed() => self.watch(&desk),
            None => {}
        }
        if self.source.is_some() && desk.wants_warmth() {
            self.owe(Hint::Rescan);
        }
        desk.let_go_of_outdated();
        self.prepare(&desk);
        self.publish(&desk);
        true
    }

    /// Waits for a hint; `None` when nobody is there to work for.
    fn wait(&mut self) -> Option<Option<Hint>> {
        let due =
            self.auto_sync.zip(self.unpublished).map(|(quiet, since)| (since + quiet).saturating_duration_since(Instant::now()));
        let limit = if self.owed.is_some() { ASIDE } else { due.unwrap_or(TICK).clamp(ASIDE, TICK) };
        let Some(source) = &mut self.source else {
            return match self.dismissed.recv_timeout(limit) {
                Err(RecvTimeoutError::Timeout) => Some(None),
                Ok(()) | Err(RecvTimeoutError::Disconnected) => None,
            };
        };
        let hint = source.wait(limit).filter(|hint| *hint != Hint::Paths(Vec::new()));
        let is_dismissed = matches!(self.dismissed.try_recv(), Err(std::sync::mpsc::TryRecvError::Disconnected));
        (!is_dismissed).then_some(hint)
    }

    fn owe(&mut self, hint: Hint) {
        self.owed = Some(match self.owed.take() {
            Some(before) => before.and(hint),
            None => hint,
        });
    }

    fn watch(&mut self, desk: &Desk) {
        match (self.begin)(desk) {
            Ok(source) => {
                desk.note_watch(Some(&source.health()));
                self.source = Some(source);
                // What changed before was not seen.
                self.unpublished = Some(Instant::now());
            }
            Err(error) => {
                tracing::warn!(%error, "a worktree is not watched");
                let remedy = "syncs and questions find changes by themselves".to_owned();
                desk.note_watch(Some(&Health::Degraded { reason: error.to_string(), remedy }));
                self.begin_at = Instant::now() + PATIENCE;
            }
        }
    }

    /// Does ahead what is owed, unless somebody is at the desk.
    fn prepare(&mut self, desk: &Desk) {
        let Some(hint) = self.owed.take() else { return };
        let cancel = Cancel::default();
        let Some(alone) = desk.alone(&cancel) else {
            self.owed = Some(hint);
            return;
        };
        let prepared = desk.prepare(&hint, &cancel);
        drop(alone);
        match prepared {
            Ok(prepared) if prepared.cancelled => self.owed = Some(hint),
            Ok(_) => {}
            // The next sync will say so to somebody.
            Err(error) => tracing::debug!(%error, "nothing was prepared"),
        }
    }

    /// Publishes by itself when it was quiet for long enough.
    fn publish(&mut self, desk: &Desk) {
        let Some((quiet, since)) = self.auto_sync.zip(self.unpublished) else { return };
        if since.elapsed() < quiet || self.owed.is_some() || !desk.leads() || desk.is_git_at_work() {
            return;
        }
        match desk.sync_unasked() {
            Ok(_) => self.unpublished = None,
            Err(error) => {
                tracing::debug!(%error, "nothing was published");
                // In a while, or with the next hint.
                self.unpublished = Some(Instant::now() + PATIENCE);
            }
        }
    }
}
