//! The surfaces that answer other processes: the daemon on its socket, HTTP, and the Model Context Protocol.
//!
//! Must not know a command line. What is asked of the daemon or by agents goes to a [`daemon::Service`] or a [`mcp::Toolbox`], which the
//! layer above supplies. Invariant: nothing a peer sends is believed before it is bounded and parsed.

pub mod answer;
pub mod daemon;
mod descriptors;
pub mod http;
pub mod mcp;
mod memory;
