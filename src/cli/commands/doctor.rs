//! `doctor`: looks at everything that an answer needs, and says what is wrong and what to do about it.
//!
//! Must not change anything. Invariant: what is no more than a hint is a warning; only what keeps questions from being answered, now or
//! after the next edit, is a problem and a failure of the command.

mod machine;
mod registrations;
mod service;
mod tree;

use serde::Serialize;

use crate::cli::arguments::Global;
use crate::cli::failure::{Exit, Failure};
use crate::cli::{Session, Stop, World};
use crate::config::Config;
use crate::engine::Omitted;
use crate::render::text::{clean, counted, grouped};

use super::status::json;

/// How something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum State {
    Ok,
    Warning,
    Problem,
}

/// What was found out about one thing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    /// What was looked at, a stable word.
    check: &'static str,
    state: State,
    message: String,
    /// What to do about it; null where nothing is wrong.
    remedy: Option<String>,
}

impl Finding {
    fn ok(check: &'static str, message: impl Into<String>) -> Self {
        Self { check, state: State::Ok, message: message.into(), remedy: None }
    }

    fn warning(check: &'static str, message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { check, state: State::Warning, message: message.into(), remedy: Some(remedy.into()) }
    }

    fn problem(check: &'static str, message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { check, state: State::Problem, message: message.into(), remedy: Some(remedy.into()) }
    }

    fn of_failure(check: &'static str, failure: &Failure) -> Self {
        Self::problem(check, format!("{} ({})", failure.message, failure.code), failure.remedy())
    }
}

/// What `--json` prints.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
struct Report {
    /// The worst of all findings.
    status: Option<State>,
    findings: Vec<Finding>,
    /// What of the worktree is left out, by reason; empty where it could not be read.
    omitted: Vec<Omitted>,
}

pub fn run(session: &mut Session, global: &Global, world: &mut World<'_>) -> Result<Exit, Stop> {
    let mut report = examine(session, global, world);
    report.status = report.findings.iter().map(|finding| finding.state).max();
    if global.json {
        writeln!(world.out, "{}", json(&report))?;
    } else {
        world.out.write_all(text(&report, global.quiet).as_bytes())?;
    }
    Ok(if report.status == Some(State::Problem) { Exit::Failed } else { Exit::Answered })
}

/// Looks at one thing after the other. What stands on something that is broken is left out.
fn examine(session: &mut Session, global: &Global, world: &World<'_>) -> Report {
    let environment = &world.environment;
    let mut report = Report::default();
    let config = match Config::load(global.config.as_deref(), environment) {
        Ok(config) => config,
        Err(error) => {
            report.findings.push(Finding::of_failure("configuration", &Failure::of_config(&error)));
            return report;
        }
    };
    report.findings.push(Finding::ok("configuration", tree::said_of_configuration(&config, global, environment)));
    let desk = session.desk(global, environment);
    let root = desk.as_ref().ok().map(|desk| desk.scope().root().to_owned());
    match &desk {
        Ok(desk) => {
            report.findings.push(tree::root(desk));
            match desk.survey() {
                Ok(survey) => {
                    report.findings.push(tree::git(&survey));
                    report.findings.push(tree::files(&survey));
                    report.findings.extend(machine::watches(&config, &survey));
                    report.omitted = survey.omitted;
                }
                Err(error) => report.findings.push(Finding::of_failure("files", &Failure::of_engine(&error))),
            }
        }
        Err(failure) => report.findings.push(Finding::of_failure("root", failure)),
    }
    report.findings.extend(root.as_deref().and_then(machine::worktree_file_system));
    report.findings.extend(machine::cache(&config));
    report.findings.push(service::parsers(&session.desks.parser(&environment.parsers), &config));
    report.findings.push(service::daemon(&config, environment));
    report.findings.extend(registrations::hosts(root.as_deref(), environment));
    if let Ok(desk) = &desk {
        report.findings.extend(tree::index(desk));
    }
    report
}

fn text(report: &Report, quiet: bool) -> String {
    let mut text = String::new();
    for Finding { check, state, message, remedy } in &report.findings {
        if quiet && *state == State::Ok {
            continue;
        }
        let word = match state {
            State::Ok => "ok",
            State::Warning => "warning",
            State::Problem => "problem",
        };
        text.push_str(&format!("{word:<9}{check:<15}{}\n", clean(message)));
        if let Some(remedy) = remedy {
            text.push_str(&format!("{:24}→ {}\n", "", clean(remedy)));
        }
    }
    if quiet {
        return text;
    }
    let omitted: u64 = report.omitted.iter().map(|omitted| omitted.count).sum();
    if omitted > 0 {
        text.push_str(&format!("left out: {}\n", counted(omitted, "path")));
        for Omitted { reason, count, first } in &report.omitted {
            let more = if *count > first.len() as u64 { ", …" } else { "" };
            text.push_str(&format!("  {reason:<22}{:>7}  {}{more}\n", grouped(*count), clean(&first.join(", "))));
        }
    }
    let count = |state| report.findings.iter().filter(|finding| finding.state == state).count() as u64;
    match (count(State::Problem), count(State::Warning)) {
        (0, 0) => text.push_str("nothing is wrong\n"),
        (problems, warnings) => {
            text.push_str(&format!("{}, {}\n", counted(problems, "problem"), counted(warnings, "warning")));
        }
    }
    text
}
