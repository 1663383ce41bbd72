//! `run(&Snapshot, Request) → Response`: the operations of the wire contract, read from a generation and nothing else.
//!
//! Must not know the disk, the cache's files or how an answer is drawn. Invariant: equal generations and equal requests give equal items.

pub mod request;
pub mod response;
pub mod source;

pub use request::{Operation, Request, RequestError};
pub use response::{Item, Response, Status};
