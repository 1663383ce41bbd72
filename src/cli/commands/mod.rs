//! What each command does: asks the engine, has the answer drawn, writes it.
//!
//! Must not know how an answer is found or laid out. Invariant: nothing is written before it is whole and, for answers, checked twice.

mod affected;
mod ask;
mod build;
mod changes;
mod export;
mod parse_worker;
mod query;
mod status;

use crate::config::OnStale;
use crate::engine::BuildOutcome;

use super::arguments::{self, Arguments, Command, Global};
use super::failure::Exit;
use super::{Session, Stop, World, bench};

/// Runs the command that was typed.
pub fn run(session: &mut Session, arguments: &Arguments, world: &mut World<'_>) -> Result<Exit, Stop> {
    let global = &arguments.global;
    match &arguments.command {
        Command::Index => build::run(session, global, build::Kind::Index, world),
        Command::Sync { verify: false } => build::run(session, global, build::Kind::Sync, world),
        Command::Sync { verify: true } => build::run(session, global, build::Kind::VerifyAndSync, world),
        Command::Status => status::run(session, global, world),
        Command::Clear => status::clear(session, global, world),
        Command::Query { request_file, on_stale } => query::run(session, global, request_file, *on_stale, world),
        Command::Tests { paths, stdin, question } => affected::run(session, global, paths, *stdin, question, world),
        Command::Export { on_stale } => export::run(session, global, *on_stale, world),
        Command::Changes(comparison) => changes::run(session, global, comparison, world),
        Command::ParseWorker { memory_bytes, parent } => parse_worker::run(*memory_bytes, *parent),
        Command::ImpactChanges(typed) => changes::run_impact(session, global, typed, world),
        Command::Bench { subject } => bench::run(session, global, subject, world),
        question => ask::run(session, global, question, world),
    }
}

/// Returns what happens to a question when the index is stale: what was typed, else what the scope says.
fn policy(typed: Option<arguments::OnStale>, scope: OnStale) -> OnStale {
    match typed {
        Some(arguments::OnStale::Refuse) => OnStale::Refuse,
        Some(arguments::OnStale::Sync) => OnStale::Sync,
        None => scope,
    }
}

/// Says that a sync went before the answer.
fn say_synced(outcome: Option<&BuildOutcome>, global: &Global, world: &mut World<'_>) -> Result<(), Stop> {
    if let Some(outcome) = outcome
        && !global.quiet
        && !global.json
    {
        writeln!(world.err, "the index was stale and was synced first: {}", build::counts(outcome))?;
    }
    Ok(())
}
