//! What each command does: asks the engine, has the answer drawn, writes it.
//!
//! Must not know how an answer is found or laid out. Invariant: nothing is written before it is whole and, for answers, checked twice.

mod affected;
mod ask;
mod build;
mod changes;
mod daemon;
mod doctor;
mod export;
mod graph;
pub mod hook;
mod install;
mod manual;
pub mod mcp;
mod parse_worker;
mod place;
mod query;
mod serve;
mod settings;
mod status;
mod tool;
mod tree;
mod watch;

use crate::config::OnStale;
use crate::engine::{Admission, Baseline, BuildOutcome, Desk, FailedFile};
use crate::render::text::{clean, counted};

use super::arguments::{self, Arguments, Command, Global};
use super::failure::{Exit, Failure};
use super::hosts::Action;
use super::{Session, Stop, World, bench};

/// Runs the command that was typed.
pub fn run(session: &mut Session, arguments: &Arguments, world: &mut World<'_>) -> Result<Exit, Stop> {
    let global = &arguments.global;
    match &arguments.command {
        Command::Index => build::run(session, global, build::Kind::Index, world),
        Command::Sync { no_wait: true, .. } if session.goes_on => build::queue(session, global, world),
        Command::Sync { verify: false, .. } => build::run(session, global, build::Kind::Sync, world),
        Command::Sync { verify: true, .. } => build::run(session, global, build::Kind::VerifyAndSync, world),
        Command::Watch => watch::run(session, global, world),
        Command::Hook(typed) => Ok(hook::run(session, global, typed, world)),
        Command::Daemon { action } => daemon::run(global, *action, world),
        Command::Serve { http } => serve::run(global, http, world),
        // It has the standard streams to itself, which a command among others has not.
        Command::Mcp => Err(Failure::usage("this command needs a process of its own").into()),
        Command::Tool { name, served, may_sync } => {
            let client = served.as_deref().map(|scope| tool::Client { scope, may_sync: *may_sync });
            tool::run(session, global, name, client, world)
        }
        Command::Install(typed) => install::run(Action::Add, global, typed, world),
        Command::Uninstall(typed) => install::run(Action::Take, global, typed, world),
        Command::Doctor => doctor::run(session, global, world),
        Command::Config { action: arguments::Settings::Show { origin } } => settings::show(global, *origin, world),
        Command::Completions { shell } => manual::complete(*shell, world),
        Command::Man { command } => manual::page(command, world),
        Command::Graph(typed) => graph::run(session, global, typed, world),
        Command::Map { prefix, tree: true, question } => {
            let prefix = ask::one_prefix(prefix.as_ref(), question)?;
            tree::run(session, global, prefix.as_deref(), question, world)
        }
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

/// Returns what a question asks of the gate that compares with nothing.
fn admission(desk: &Desk, on_stale: OnStale) -> Admission {
    Admission { on_stale, expected_fingerprint: None, baseline: Baseline::None, limit: desk.scope().limits().query() }
}

/// Returns what happens to a question when the index is stale: what was typed, else what the scope says.
fn policy(typed: Option<arguments::OnStale>, scope: OnStale) -> OnStale {
    match typed {
        Some(arguments::OnStale::Refuse) => OnStale::Refuse,
        Some(arguments::OnStale::Sync) => OnStale::Sync,
        None => scope,
    }
}

/// Checks that a number that was typed is within bounds.
fn within(flag: &str, value: Option<u32>, least: u32, most: u32) -> Result<Option<u32>, Failure> {
    match value {
        Some(value) if !(least..=most).contains(&value) => {
            Err(Failure::usage(format!("{flag} takes a number from {least} to {most}")))
        }
        value => Ok(value),
    }
}

/// Most files that could not be parsed which are named to people.
const MOST_NAMED: usize = 5;

/// Returns the lines that say which files could not be parsed, and what to do; nothing when all could. `failures` are the first ones.
fn said_of_failures(count: u64, failures: &[FailedFile]) -> String {
    let mut text = String::new();
    for FailedFile { path, reason } in failures.iter().take(MOST_NAMED) {
        text.push_str(&format!("  {} ({reason})\n", clean(path)));
    }
    let more = count.saturating_sub(failures.len().min(MOST_NAMED) as u64);
    if more > 0 {
        text.push_str(&format!("  and {}\n", counted(more, "other")));
    }
    if count > 0 {
        text.push_str(
            "  they are found by path and text; what they define and use is not known. Raise `parse_seconds` or\n  \
             `worker_memory_bytes` under [limits], or `exclude` them; `sextant index` tries each again\n",
        );
    }
    text
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
