//! Hints: where something may have changed, so that work can be done before it is asked for.
//!
//! Must not know the graph, nor decide what is true: a hint may be late, wrong, doubled or missing, and no answer may change for it.
//! Invariant: what a source cannot tell exactly it tells as [`Hint::Rescan`], and what it cannot see at all shows in its [`Health`].

mod filesystem;
mod notify;
mod pending;
#[cfg(test)]
mod tests;

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use crate::config::Watch;
use crate::model::RepoPath;
use crate::workspace::{Policy, WorkspaceError, Worktree};

pub use filesystem::{FileSystem, Limits, file_system, limits};
use notify::Reach;
pub use notify::Watcher;

/// Where something may have changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hint {
    /// At these paths, or below them where they are directories. Sorted.
    Paths(Vec<RepoPath>),
    /// Anywhere, or in what Git says of the worktree.
    Rescan,
}

/// A hint of more paths than this says no more than that anything may have changed.
const MANY_PATHS: usize = 2000;

impl Hint {
    /// Adds what another hint says.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Paths(mut paths), Self::Paths(more)) => {
                paths.extend(more);
                paths.sort_unstable();
                paths.dedup();
                if paths.len() > MANY_PATHS { Self::Rescan } else { Self::Paths(paths) }
            }
            _ => Self::Rescan,
        }
    }
}

/// Whether a source sees what happens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Health {
    /// The system tells of each change.
    Ok,
    /// Changes are noticed later than they happen, or not until this is over.
    Degraded { reason: String, remedy: String },
}

impl std::fmt::Display for Health {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Ok => out.write_str("ok"),
            Self::Degraded { reason, remedy } => write!(out, "degraded: {reason}; {remedy}"),
        }
    }
}

/// Where hints come from.
pub trait HintSource: Send {
    /// Waits so long for a hint; `None` when there was none.
    fn wait(&mut self, limit: Duration) -> Option<Hint>;
    fn health(&self) -> Health;
}

/// Where a watcher puts its hints. Called on its thread, which waits meanwhile.
pub type Sink = Box<dyn Fn(Hint) + Send>;

/// Why a worktree cannot be watched.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    #[error("the worktree cannot be listed")]
    Workspace(#[source] WorkspaceError),
    #[error("the machine gave no thread to watch on")]
    Thread {
        #[source]
        source: std::io::Error,
    },
}

/// A watcher whose hints wait in a channel.
#[derive(Debug)]
pub struct WatchedTree {
    hints: Receiver<Hint>,
    waker: Sender<Hint>,
    watcher: Watcher,
}

impl WatchedTree {
    /// Watches a worktree. What changes after this returned gives a hint.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn start(worktree: &Worktree, policy: &Policy, settings: &Watch) -> Result<Self, WatchError> {
        Self::start_with(Reach::OF_SYSTEM, worktree, policy, settings)
    }

    fn start_with(reach: Reach, worktree: &Worktree, policy: &Policy, settings: &Watch) -> Result<Self, WatchError> {
        let (sender, hints) = channel();
        let waker = sender.clone();
        let sink: Sink = Box::new(move |hint| {
            // Nobody waits for hints any more; the watcher ends with its owner.
            let _ = sender.send(hint);
        });
        Ok(Self { hints, waker, watcher: Watcher::start_with(reach, worktree, policy, settings, sink)? })
    }

    /// Returns what ends a wait from another thread, with a hint of nothing.
    pub fn waker(&self) -> impl Fn() + Send + 'static {
        let waker = self.waker.clone();
        move || drop(waker.send(Hint::Paths(Vec::new())))
    }
}

impl HintSource for WatchedTree {
    fn wait(&mut self, limit: Duration) -> Option<Hint> {
        let first = match self.hints.recv_timeout(limit) {
            Ok(hint) => hint,
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return None,
        };
        // Those that came while the last one was worked on are one.
        Some(self.hints.try_iter().fold(first, Hint::and))
    }

    fn health(&self) -> Health {
        self.watcher.health()
    }
}

/// A moment to come; `None` for never.
fn until(moment: Option<Instant>) -> Option<Duration> {
    moment.map(|moment| moment.saturating_duration_since(Instant::now()))
}
