//! `hook`: an agent or Git says that files changed, and every index that holds them is synced.
//!
//! Must not fail, block or speak out of turn: whoever calls is in the middle of an edit. Invariant: exit 0, nothing on standard output but
//! what the host wants to read, and no index made where there was none.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Parser;
use serde_json::Value;

use crate::cli::arguments::{Arguments, Command, Global, HOOK_SECONDS, Hook};
use crate::cli::failure::{Exit, Failure};
use crate::cli::hosts::Speech;
use crate::cli::{Session, World};
use crate::config::{self, Config};
use crate::render::text::clean;

/// No host says more than this about an edit; the rest is read and let go.
const MOST_INPUT: u64 = 32 << 20;
/// How long a hook that does not end in time by itself may go on before its process does.
const GRACE: Duration = Duration::from_secs(1);

/// Returns whether a command line is that of a hook, be it well formed or not.
pub fn is_hook(line: &[OsString]) -> bool {
    after_hook(line).is_some()
}

/// Returns what stands behind `hook` on a command line that is one of a hook.
fn after_hook(line: &[OsString]) -> Option<&[OsString]> {
    let mut rest = line.get(1..)?;
    loop {
        let (word, after) = rest.split_first()?;
        rest = match word.as_encoded_bytes() {
            b"--root" | b"--scope" | b"--config" | b"--color" => after.get(1..)?,
            flag if flag.starts_with(b"-") => after,
            command => return (command == b"hook").then_some(after),
        };
    }
}

/// Returns how long the hook of a command line may take, be it well formed or not.
pub fn deadline(line: &[OsString]) -> Duration {
    let parsed = Arguments::try_parse_from(line).ok().map(|arguments| arguments.command);
    Duration::from_secs(if let Some(Command::Hook(hook)) = parsed { hook.deadline } else { HOOK_SECONDS })
}

/// Reads what is left of what a host says, on a command line of a hook for which it may say something: whoever writes to a pipe that nobody
/// reads is killed for it, whatever was wrong with the line.
pub fn hear_out(line: &[OsString], input: &mut dyn Read) {
    let is_silent = |word: &OsString| word.to_str().and_then(Speech::of).is_some_and(|host| !host.speaks);
    if after_hook(line).is_some_and(|words| !words.iter().any(is_silent)) {
        let _ = io::copy(input, &mut io::sink());
    }
}

/// Returns whether the host that calls says on standard input what happened.
pub fn reads_input(typed: &Hook) -> bool {
    Speech::of(&typed.host).is_some_and(|host| host.speaks)
}

/// Ends this process when a deadline has passed, whatever it waits for. A build that it leaves is never published half.
pub fn end_by(deadline: Duration) {
    let end = move || {
        std::thread::sleep(deadline + GRACE);
        std::process::exit(0);
    };
    // Without the thread the hook ends by itself, as it does nearly always.
    let _ = std::thread::Builder::new().name("deadline".to_owned()).spawn(end);
}

pub fn run(session: &mut Session, global: &Global, typed: &Hook, world: &mut World<'_>) -> Exit {
    let deadline = Instant::now() + Duration::from_secs(typed.deadline);
    let Some(host) = Speech::of(&typed.host) else {
        let known: Vec<&str> = Speech::hosts().collect();
        let _ =
            writeln!(world.err, "no host is named `{}` (known: {}); nothing was synced", clean(&typed.host), known.join(", "));
        return Exit::Answered;
    };
    // First, as a host that wants to read something wants it of a hook that runs out of time, too. One that does not listen is no concern.
    let _ = write!(world.out, "{}", host.reply).and_then(|()| world.out.flush());
    let said = if host.speaks { listen(world.input) } else { Value::Null };
    let places = host.places(&said, &world.environment.current_dir);
    match sync(session, global, &places, deadline, world) {
        Ok(told) if global.verbose > 0 => told.iter().for_each(|line| drop(writeln!(world.err, "{line}"))),
        Err(failure) if global.verbose > 0 => drop(writeln!(world.err, "{}", failure.text())),
        Ok(_) | Err(_) => {}
    }
    Exit::Answered
}

/// Reads all that a host says; what is no JSON says nothing.
fn listen(input: &mut dyn Read) -> Value {
    let mut text = Vec::new();
    if input.take(MOST_INPUT).read_to_end(&mut text).is_err() {
        return Value::Null;
    }
    // The rest is heard for the host's sake.
    let _ = io::copy(input, &mut io::sink());
    serde_json::from_slice(&text).unwrap_or(Value::Null)
}

/// Syncs every scope that holds one of the places and has an index. Returns what there is to say of each.
fn sync(
    session: &mut Session,
    global: &Global,
    places: &[PathBuf],
    deadline: Instant,
    world: &World<'_>,
) -> Result<Vec<String>, Failure> {
    let environment = &world.environment;
    let config = Config::load(global.config.as_deref(), environment).map_err(|error| Failure::of_config(&error))?;
    let mut scopes: BTreeMap<String, config::Scope> = BTreeMap::new();
    if global.scope.is_some() || global.root.is_some() {
        let selection = config::Selection { root: global.root.clone(), scope: global.scope.clone() };
        let scope = config.scope(&selection, environment).map_err(|error| Failure::of_config(&error))?;
        scopes.insert(scope.binding_id(), scope);
    } else {
        let holding = places.iter().flat_map(|place| config.scopes_that_hold(place, environment));
        scopes.extend(holding.map(|scope| (scope.binding_id(), scope)));
    }
    let mut told = Vec::new();
    for scope in scopes.into_values() {
        let name = scope.id.clone();
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            told.push(format!("{name}: no time is left"));
            continue;
        }
        let outcome = session.desks.desk(&config, &scope, &environment.parsers).map_err(Arc::new);
        let outcome = outcome.and_then(|desk| match desk.is_indexed() {
            // Waiting for another builder counts as building.
            true => desk.sync_within(left).map(Some),
            false => Ok(None),
        });
        told.push(match outcome {
            Ok(Some(outcome)) => format!("{name}: {}", super::build::counts(&outcome)),
            Ok(None) => format!("{name}: not indexed"),
            Err(error) => format!("{name}: {}", Failure::of_engine(&error).text()),
        });
    }
    Ok(told)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_hooks_are_told_from_others() {
        let check = |line: &str| is_hook(&line.split(' ').map(OsString::from).collect::<Vec<_>>());
        assert!(check("sextant hook claude") && check("sextant -v --config c.toml hook x --no-such-flag"));
        assert!(!check("sextant explore hook") && !check("sextant --scope hook status") && !check("sextant"));
        assert!(!check("sextant --scope") && !check("sextant --scope hook"));
    }

    #[test]
    fn hosts_are_heard_out() {
        let check = |line: &str, want: u64| {
            let line: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            let mut said = io::Cursor::new(b"{}");
            hear_out(&line, &mut said);
            assert_eq!(said.position(), want, "{line:?}");
        };
        check("sextant hook claude", 2);
        check("sextant hook emacs --no-such-flag", 2);
        check("sextant --quiet hook", 2);
        // Git's standard input is the user's, or nobody's.
        check("sextant hook git", 0);
        check("sextant status", 0);
    }
}
