//! Where this program is registered with agent hosts and Git, as the doctor sees it.
//!
//! Must not write. Invariant: a host without a registration is nothing wrong; one that starts another program, or cannot be read, is a hint.

use std::path::Path;

use crate::cli::hosts::{self, Action, Host, HostError, Level, Machine, Plan, Program, Site};
use crate::config::Environment;
use crate::model::sentence;
use crate::workspace::WorkspaceError;

use super::Finding;

/// How a host stands to this program.
enum Standing {
    Unknown,
    Registered,
    /// What is written there is not what would be written now.
    Differs,
}

/// Looks at the files of the user's hosts, of the project's, and at the hooks of its repository.
pub fn hosts(root: Option<&Path>, environment: &Environment) -> Vec<Finding> {
    let machine = Machine::of_process(environment);
    let program = std::env::current_exe()
        .map_err(|_| HostError::ProgramPath)
        .and_then(|this| Program::find(&this, machine.search.as_deref()));
    let program = match program {
        Ok(program) => program,
        Err(error) => {
            return vec![Finding::warning("hosts", sentence(&error), "run the program by a path that can be written down")];
        }
    };
    let mut findings = Vec::new();
    let (mut registered, mut unknown) = (Vec::new(), Vec::new());
    let levels = [(Level::User, None), (Level::Project, root)];
    for (level, root) in levels.into_iter().filter(|(level, root)| *level == Level::User || root.is_some()) {
        let site = Site { machine: &machine, level, root, program: &program };
        let flag = if level == Level::User { "--user" } else { "--project" };
        for host in hosts::found(&site) {
            let name = host.name();
            let place = if level == Level::User { "for the user" } else { "in this project" };
            match standing(host, &site) {
                Ok(Standing::Unknown) if level == Level::User => unknown.push(name),
                Ok(Standing::Unknown) => {}
                Ok(Standing::Registered) => registered.push(format!("{name} {place}")),
                Ok(Standing::Differs) => findings.push(Finding::warning(
                    "hosts",
                    format!("what is registered with {name} {place} is not what this program would write"),
                    format!("run `sextant install {name} {flag}`, which shows the difference"),
                )),
                Err(error) => findings.push(Finding::warning(
                    "hosts",
                    format!("{name} {place}: {}", sentence(&error)),
                    format!("put the file right; `sextant install {name} {flag} --dry-run` shows what would be written"),
                )),
            }
        }
    }
    let mut said = match registered.as_slice() {
        [] => "none is registered".to_owned(),
        some => format!("registered: {}", some.join(", ")),
    };
    unknown.retain(|name| *name != Host::Git.name());
    if !unknown.is_empty() {
        said.push_str(&format!("; here and not registered: {} (see `sextant install --dry-run`)", unknown.join(", ")));
    }
    findings.insert(0, Finding::ok("hosts", said));
    findings
}

fn standing(host: Host, site: &Site<'_>) -> Result<Standing, HostError> {
    let without = match Plan::new(Action::Take, &[host], site) {
        // Where Git runs no hooks for this user, nothing of ours can be; what is wrong with a repository is for
        // another check to say.
        Err(HostError::NoGit | HostError::NoHooks { .. } | HostError::Repository(WorkspaceError::Repository { .. })) => {
            return Ok(Standing::Unknown);
        }
        without => without?,
    };
    Ok(if without.is_done() {
        Standing::Unknown
    } else if Plan::new(Action::Add, &[host], site)?.is_done() {
        Standing::Registered
    } else {
        Standing::Differs
    })
}
