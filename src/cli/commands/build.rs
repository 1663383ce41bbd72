//! `index` and `sync`: build, and say with counts what was done.
//!
//! Must not know how a build works. Invariant: the JSON object of a build has the same fields whatever happened.

use crate::cli::arguments::Global;
use crate::cli::failure::{Exit, Failure};
use crate::cli::{Session, Stop, World};
use crate::engine::{BuildOutcome, BuildStatus, Verified};

use crate::render::json;
use crate::render::text::{counted, grouped};

/// Which build.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Index,
    Sync,
    VerifyAndSync,
}

pub fn run(session: &mut Session, global: &Global, kind: Kind, world: &mut World<'_>) -> Result<Exit, Stop> {
    let desk = session.desk(global, &world.environment)?;
    let outcome = match kind {
        Kind::Index => desk.index(),
        Kind::Sync => desk.sync(),
        Kind::VerifyAndSync => desk.verify_and_sync(),
    }
    .map_err(|error| Failure::of_engine(&error))?;
    if global.json {
        writeln!(world.out, "{}", json::build(&outcome))?;
    } else if !global.quiet {
        write!(world.out, "{}", text(&outcome))?;
    }
    Ok(Exit::Answered)
}

/// Leaves a sync to this process, which goes on when the command is over.
pub fn queue(session: &mut Session, global: &Global, world: &mut World<'_>) -> Result<Exit, Stop> {
    let desk = session.desk(global, &world.environment)?;
    desk.desk().sync_soon().map_err(|error| Failure::of_engine(&error))?;
    if global.json {
        writeln!(world.out, r#"{{"status":"queued"}}"#)?;
    } else if !global.quiet {
        writeln!(world.out, "a sync is queued")?;
    }
    Ok(Exit::Answered)
}

/// Returns what a build did, in one line.
pub fn counts(outcome: &BuildOutcome) -> String {
    if outcome.status == BuildStatus::Unchanged {
        return "nothing changed".to_owned();
    }
    format!(
        "{} extracted, {} reused, {} removed, {} resolved",
        grouped(outcome.extracted_files),
        grouped(outcome.reused_files),
        grouped(outcome.removed_files),
        grouped(outcome.resolved_files),
    )
}

/// Returns the lines that say what a check of everything stored found.
fn said_of_verification(verified: &Verified) -> String {
    let mut text = format!(
        "checked {}, {}, {}\n",
        counted(verified.generations, "kept generation"),
        counted(verified.sources, "stored source"),
        counted(verified.facts_packs, "facts pack"),
    );
    if !verified.found_damage() {
        text.push_str("nothing stored is damaged\n");
    }
    if verified.damaged_pointer {
        text.push_str("damaged: the pointer to the index; built anew\n");
    }
    if verified.damaged_current {
        text.push_str("damaged: the index that served; built anew\n");
    }
    if verified.dropped_baselines > 0 {
        text.push_str(&format!("damaged: {}; not kept any more\n", counted(verified.dropped_baselines, "older generation")));
    }
    if verified.dropped_facts_packs > 0 {
        text.push_str(&format!("damaged: {}; removed\n", counted(verified.dropped_facts_packs, "facts pack")));
    }
    text
}

/// Returns the lines of a build for people.
pub(super) fn text(outcome: &BuildOutcome) -> String {
    let of = outcome.counts;
    let mut text = outcome.verified.as_deref().map(said_of_verification).unwrap_or_default();
    text.push_str(&format!(
        "{}, {}, {}, {}\n{}",
        counted(of.files, "file"),
        counted(of.definitions, "definition"),
        counted(of.edges, "edge"),
        counted(of.diagnostics, "unresolved reference"),
        counts(outcome),
    ));
    if of.partial_files > 0 {
        text.push_str(&format!(" · {} with syntax errors", counted(of.partial_files, "file")));
    }
    if of.failed_files > 0 {
        text.push_str(&format!(" · {} could not be parsed", counted(of.failed_files, "file")));
    }
    text.push('\n');
    text.push_str(&super::said_of_failures(of.failed_files, &outcome.failures));
    text.push_str(&format!("ready · {:.2} s", outcome.elapsed_seconds));
    if let Some(peak) = outcome.peak_memory_bytes {
        text.push_str(&format!(" · {} MiB at most", grouped(peak >> 20)));
    }
    text.push_str(&format!(" · index {}…\n", &outcome.fingerprint.hex()[..12]));
    text
}
