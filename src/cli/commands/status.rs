//! `status` and `clear`: whether the scope can answer, and forgetting it.
//!
//! Must not build anything. Invariant: the JSON is the contract's, whatever the state.

use serde::Serialize;

use crate::cli::arguments::Global;
use crate::cli::failure::{Exit, Failure};
use crate::cli::{Session, Stop, World};
use crate::engine::{LastBuild, Status};

use crate::render::text::{counted, unread};

pub fn run(session: &mut Session, global: &Global, world: &mut World<'_>) -> Result<Exit, Stop> {
    let desk = session.desk(global, &world.environment)?;
    let status = desk.status();
    if global.json {
        writeln!(world.out, "{}", json(&status))?;
    } else {
        write!(world.out, "{}", text(&status, global.quiet))?;
    }
    Ok(Exit::Answered)
}

pub fn clear(session: &mut Session, global: &Global, world: &mut World<'_>) -> Result<Exit, Stop> {
    let desk = session.desk(global, &world.environment)?;
    let cleared = desk.clear().map_err(|error| Failure::of_engine(&error))?;
    if global.json {
        writeln!(world.out, "{}", json(&cleared))?;
    } else if !global.quiet {
        match cleared.retained_reader_generations {
            0 => writeln!(world.out, "cleared")?,
            kept => writeln!(world.out, "cleared; {} being read", counted(kept, "generation is still"))?,
        }
    }
    Ok(Exit::Answered)
}

/// Returns the compact JSON of a value of the contract.
pub fn json<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value).expect("values of the contract have JSON")
}

/// Returns the stable word of a value that serialises as one.
fn word<T: Serialize>(value: &T) -> String {
    json(value).trim_matches('"').to_owned()
}

pub(super) fn text(status: &Status, quiet: bool) -> String {
    let mut text = format!("{} · {}", word(&status.status), word(&status.freshness));
    if let Some(reason) = &status.reason {
        text.push_str(&format!(" ({reason})"));
    }
    text.push('\n');
    if quiet {
        return text;
    }
    let mut row = |name: &str, value: &str| text.push_str(&format!("  {name:<12}{value}\n"));
    row("scope", &status.scope_id);
    if let Some(fingerprint) = &status.fingerprint {
        row("index", &format!("{}…", &fingerprint[..12.min(fingerprint.len())]));
    }
    row("languages", &status.languages.join(", "));
    row("operations", &status.operations.join(", "));
    if let Some(last) = &status.last_build {
        let said = match &last.build {
            LastBuild::Building { started_at } => format!("building since {started_at}"),
            LastBuild::Failed { reason, finished_at } => format!("failed at {finished_at} ({reason})"),
            LastBuild::Ready { extracted_files, reused_files, elapsed_seconds, finished_at, .. } => {
                format!("{finished_at} in {elapsed_seconds:.2} s, {extracted_files} extracted, {reused_files} reused")
            }
        };
        row("last build", &said);
        // What serves stands above as `index`.
        for kept in last.kept.iter().filter(|kept| kept.role != "current") {
            let built = kept.built_at.as_ref().map_or(String::new(), |time| format!(" built {time}"));
            row("kept", &format!("{}… {}{built}", &kept.fingerprint[..12.min(kept.fingerprint.len())], kept.role));
        }
        row("check", &format!("{} before each answer; watcher: {}", last.check, last.watch));
        let unread = unread(&last.limitations);
        if !unread.is_empty() {
            row("not read", &format!("{}: what they use is not known", unread.join(", ")));
        }
        if last.failed_files > 0 {
            row("failed", &format!("{} could not be parsed", counted(last.failed_files, "file")));
            let said = super::said_of_failures(last.failed_files, &last.failures);
            said.lines().for_each(|line| row("", line.trim_start()));
        }
    }
    row("engine", &status.engine);
    text
}
