//! The daemon: one process of a user, a cache and a build that keeps the scopes warm and answers clients over a socket.
//!
//! Must not know what a command does. Invariant: a client that gets no `exit` has got nothing, and answers by itself; so the daemon may be
//! killed at any moment, and leave at any.
//!
//! ```text
//!  client: a command of the same build            daemon
//!     connect ──────────────────────────────────▶ same user?
//!     same protocol, same build? ◀── greeting ───
//!     {"run": {line, directory, environment, …}} ─▶ the same code, its output kept until the end
//!     ◀── {"alive": {}} {"progress": …} … {"out": …} {"err": …} {"exit": {"status": 0}}
//! ```

mod client;
mod connection;
mod launch;
mod lifecycle;
mod place;
pub mod protocol;

pub use client::{Absent, Client, Lost, Peer, Ran};
pub use launch::{Launch, detach};
pub use lifecycle::{DaemonError, Ended, Options, run};
pub use place::{Log, Place};

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::engine::Onlooker;

use protocol::{Call, Question, Reply};

/// What the daemon does for its clients; the layer that knows the commands supplies it.
pub trait Service: Send + Sync {
    /// Runs a command line as a process of its own would, for an `onlooker` who sees how far it is and may go away. Returns what it wrote,
    /// in order, and its exit at the end.
    fn run(&self, call: Call, onlooker: &Arc<Onlooker>) -> Vec<Reply>;

    /// Answers a request of the wire contract with its response or its error, an object in compact JSON; for an `onlooker` as above.
    fn query(&self, question: Question, onlooker: &Arc<Onlooker>) -> String;

    /// Says how each scope in memory is, by name.
    fn scopes(&self) -> Vec<ScopeReport>;

    /// Lets go of what was not used for long, and returns whether there was something; called about once a second.
    fn rest(&self) -> bool;
}

/// How a daemon is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    pub pid: u32,
    /// The version of the program.
    pub version: String,
    pub build: String,
    pub uptime_seconds: u64,
    /// Memory of this process, where the system tells.
    pub memory_bytes: Option<u64>,
    /// Connections, this one included.
    pub clients: u64,
    /// Commands and questions that were answered, and those that are worked on.
    pub answered: u64,
    pub working: u64,
    pub scopes: Vec<ScopeReport>,
}

/// How a scope is that a daemon knows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScopeReport {
    pub scope_id: String,
    pub root: String,
    pub indexed: bool,
    /// What the watcher says of itself; `none` before there is an index.
    pub watch: String,
    /// Whether the database of the last build is in memory; null while it is worked with.
    pub loaded: Option<bool>,
    /// How long ago it was asked last.
    pub idle_seconds: u64,
    /// With how many configurations it was asked; what stands above is of the one that was used last.
    pub configurations: u64,
}
