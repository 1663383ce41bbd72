//! The surfaces that answer other processes: the daemon on its socket.
//!
//! Must not know a command line or an operation: what is asked goes to a [`daemon::Service`], which the layer above supplies. Invariant:
//! nothing a peer sends is believed before it is bounded and parsed.

pub mod daemon;
pub mod memory;
