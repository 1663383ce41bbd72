//! HTTP: the wire contract for services, on a socket of the loopback unless told otherwise.
//!
//! Must not know a command line, nor how an answer is found. Invariant: nothing of a scope is touched, not even to see whether it is there,
//! before it is known that whoever asks may; and no answer but those of the contract holds source or paths.
//!
//! ```text
//!  connection: bounded in number, in the time of its heads and bodies, and in how long it reads nothing
//!     └─▶ door: Host, Origin, bearer token (the configuration is read for each request) ─▶ grant
//!            └─▶ route: rights of the grant ─▶ request parsed ─▶ work: bounded in number and time ─▶ desk
//! ```

mod connection;
mod door;
mod lifecycle;
mod metrics;
mod openapi;
mod refusal;
mod routes;
mod scopes;
mod work;

pub use door::Grant;
pub use lifecycle::{HttpError, Options, Server};
pub use refusal::{sentence_of, status_of};
pub use work::Rooms;
