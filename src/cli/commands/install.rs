//! `install` and `uninstall`: this program is registered with agent hosts and Git, or is so no longer.
//!
//! Must not know what any host reads. Invariant: the difference is printed before anything is written, and all of it or nothing is.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anstyle::AnsiColor;
use clap::ValueEnum as _;
use serde_json::json;
use similar::TextDiff;

use crate::cli::arguments::{Global, Install};
use crate::cli::failure::{Exit, Failure};
use crate::cli::hosts::{self, Action, Edit, Host, Level, Machine, Plan, Program, Site};
use crate::cli::{Stop, World};
use crate::config::{Config, ConfigError, Selection};
use crate::render::text::clean;

/// What one line says of a host.
struct Told {
    host: Host,
    changed: Vec<String>,
}

pub fn run(action: Action, global: &Global, typed: &Install, world: &mut World<'_>) -> Result<Exit, Stop> {
    let machine = Machine::of_process(&world.environment);
    let this = std::env::current_exe().map_err(|_| Failure::of_host(&hosts::HostError::ProgramPath))?;
    let program = Program::find(&this, machine.search.as_deref()).map_err(|error| Failure::of_host(&error))?;
    let is_named = !typed.hosts.is_empty();
    // Of hosts that are named, only Git's hooks are the project's unless that is asked for.
    let needs_root = typed.project || typed.hosts.contains(&Host::Git);
    let root = if needs_root { Some(project(global, world)?) } else { None };
    let site = |level| Site { machine: &machine, level, root: root.as_deref(), program: &program };
    let level = if typed.project { Level::Project } else { Level::User };
    let mut named = typed.hosts.clone();
    named.sort();
    named.dedup();
    let chosen = if is_named { named } else { hosts::found(&site(level)) };
    if chosen.is_empty() {
        say_none(level, typed, global, world)?;
        return Ok(Exit::NothingFound);
    }
    let (git, agents): (Vec<Host>, Vec<Host>) = chosen.iter().partition(|host| **host == Host::Git);
    let mut plan = Plan::new(action, &agents, &site(level)).map_err(|error| Failure::of_host(&error))?;
    let git_level = if typed.user { Level::User } else { Level::Project };
    plan.extend(Plan::new(action, &git, &site(git_level)).map_err(|error| Failure::of_host(&error))?);
    if action == Action::Add && !program.is_on_path {
        plan.notes.insert(
            0,
            format!("`sextant` on PATH is not this program, so its absolute path is written: {}", clean(&program.word)),
        );
        if typed.project {
            plan.notes.insert(1, "that path is of this machine, and files of a project are shared".to_owned());
        }
    }
    let edits = plan.edits.clone();
    let notes = if plan.is_done() { Vec::new() } else { plan.notes.clone() };
    if !global.json {
        if !is_named {
            let names: Vec<&str> = chosen.iter().map(|host| host.name()).collect();
            let place = if level == Level::User { "on this machine" } else { "in this project" };
            writeln!(world.err, "found {place}: {}", names.join(", "))?;
        }
        for edit in edits.iter().filter(|edit| edit.is_change()) {
            let shown = shown(&difference(edit), global.colored(world));
            world.out.write_all(shown.as_bytes())?;
        }
        world.out.flush()?;
    }
    if !typed.dry_run {
        plan.carry_out().map_err(|error| Failure::of_host(&error))?;
    }
    if global.json {
        let files: Vec<_> = edits.iter().map(described).collect();
        writeln!(world.out, "{}", json!({"dry_run": typed.dry_run, "files": files, "notes": notes}))?;
        return Ok(Exit::Answered);
    }
    if !global.quiet {
        for told in by_host(&chosen, &edits) {
            writeln!(world.err, "{}", sentence(action, typed.dry_run, &told))?;
        }
        for note in notes {
            writeln!(world.err, "note: {note}")?;
        }
        if typed.dry_run {
            writeln!(world.err, "nothing was written (--dry-run)")?;
        }
    }
    Ok(Exit::Answered)
}

/// Returns the top of the project.
fn project(global: &Global, world: &World<'_>) -> Result<PathBuf, Stop> {
    let environment = &world.environment;
    let failed = |error: ConfigError| Failure::of_config(&error);
    let config = Config::load(global.config.as_deref(), environment).map_err(failed)?;
    let selection = Selection { root: global.root.clone(), scope: global.scope.clone() };
    Ok(config.scope(&selection, environment).map_err(failed)?.root)
}

/// Says that no host was found.
fn say_none(level: Level, typed: &Install, global: &Global, world: &mut World<'_>) -> Result<(), Stop> {
    if global.json {
        writeln!(world.out, "{}", json!({"dry_run": typed.dry_run, "files": [], "notes": []}))?;
        return Ok(());
    }
    let known: Vec<&str> = Host::value_variants().iter().map(|host| host.name()).collect();
    let place = if level == Level::User { "on this machine" } else { "in this project" };
    writeln!(world.err, "no host was found {place}; name one: {}", known.join(", "))?;
    Ok(())
}

/// Returns what changes in a file as a unified diff.
fn difference(edit: &Edit) -> String {
    let (before, after) = (edit.before.as_deref().unwrap_or_default(), edit.after.as_deref().unwrap_or_default());
    let name = clean(&edit.name);
    let side = |text: &Option<String>| if text.is_some() { name.as_str() } else { "/dev/null" };
    let difference = TextDiff::from_lines(before, after);
    difference.unified_diff().context_radius(3).header(side(&edit.before), side(&edit.after)).to_string()
}

/// Returns a difference without what could steer a terminal, coloured where colours are read.
fn shown(difference: &str, is_colored: bool) -> String {
    let mut out = String::with_capacity(difference.len());
    for line in difference.split_inclusive('\n') {
        let end = &line[line.trim_end_matches(['\r', '\n']).len()..];
        let text = line[..line.len() - end.len()].split('\t').map(clean).collect::<Vec<_>>().join("\t");
        let color = match text.as_bytes() {
            [b'+', ..] => Some(AnsiColor::Green),
            [b'-', ..] => Some(AnsiColor::Red),
            [b'@', ..] => Some(AnsiColor::Cyan),
            _ => None,
        };
        match color.filter(|_| is_colored).map(|color| color.on_default()) {
            Some(style) => out.push_str(&format!("{style}{text}{style:#}")),
            None => out.push_str(&text),
        }
        out.push_str(end);
    }
    out
}

fn described(edit: &Edit) -> serde_json::Value {
    let change = match (&edit.before, &edit.after) {
        _ if !edit.is_change() => "none",
        (None, _) => "created",
        (_, None) => "removed",
        _ => "changed",
    };
    let difference = if edit.is_change() { difference(edit) } else { String::new() };
    json!({"host": edit.host.name(), "path": edit.name, "change": change, "diff": difference})
}

/// Returns the files that change, by host.
fn by_host(chosen: &[Host], edits: &[Edit]) -> Vec<Told> {
    let mut changed: BTreeMap<Host, Vec<String>> = chosen.iter().map(|host| (*host, Vec::new())).collect();
    for edit in edits.iter().filter(|edit| edit.is_change()) {
        changed.entry(edit.host).or_default().push(clean(&edit.name));
    }
    changed.into_iter().map(|(host, changed)| Told { host, changed }).collect()
}

fn sentence(action: Action, is_dry: bool, told: &Told) -> String {
    let host = told.host.name();
    let files = told.changed.join(", ");
    match (action, told.changed.is_empty()) {
        (Action::Add, true) => format!("{host}: registered already"),
        (Action::Take, true) => format!("{host}: nothing of this program is there"),
        (Action::Add, false) if is_dry => format!("{host}: would be registered in {files}"),
        (Action::Take, false) if is_dry => format!("{host}: would be taken out of {files}"),
        (Action::Add, false) => format!("{host}: registered in {files}"),
        (Action::Take, false) => format!("{host}: taken out of {files}"),
    }
}
