//! `parse-worker`: this process as a parser of another one of the same program.
//!
//! Must not know the protocol. Invariant: nothing but the protocol is written to standard output.

use crate::cli::Stop;
use crate::cli::failure::{Exit, Failure};
use crate::languages::REGISTRY;
use crate::model::sentence;
use crate::parse::worker;

pub fn run(memory_bytes: u64, parent: u32) -> Result<Exit, Stop> {
    match worker::run(REGISTRY, memory_bytes, parent) {
        Ok(()) => Ok(Exit::Answered),
        Err(error) => Err(Failure::new("code_parser_failed", sentence(&error)).into()),
    }
}
