//! The surfaces that answer other processes: the daemon on its socket, and HTTP.
//!
//! Must not know a command line. What the daemon is asked goes to a [`daemon::Service`], which the layer above supplies. Invariant:
//! nothing a peer sends is believed before it is bounded and parsed.

pub mod answer;
pub mod daemon;
pub mod http;
mod memory;
