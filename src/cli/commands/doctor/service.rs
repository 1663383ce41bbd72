//! The processes that help, as the doctor sees them: parsers and the daemon.
//!
//! Must not start a daemon. Invariant: a daemon that is not there is nothing wrong, and one that does not answer is a hint, for
//! commands do the work themselves.

use std::sync::Arc;

use crate::config::{Config, Environment};
use crate::languages;
use crate::model::sentence;
use crate::parse::{ParseError, ParseLimits, Parser};
use crate::render::text::counted;
use crate::server::daemon::{Absent, Client, Place};

use super::Finding;

/// Has each language parse a file of nothing.
pub fn parsers(parser: &Arc<dyn Parser>, config: &Config) -> Finding {
    const REMEDY: &str =
        "see that this program may start itself and that memory is left; raise `worker_memory_bytes` under [limits]";
    let limits = ParseLimits::from(&config.limits);
    parser.begin();
    let mut parsed = Vec::new();
    for language in languages::REGISTRY {
        let Some(dialect) = language.dialects().first() else { continue };
        match parser.facts(*language, dialect, b"", &limits) {
            Ok(_) => parsed.push(language.name()),
            Err(ParseError::Parser(error)) => return Finding::problem("parsers", sentence(&error), REMEDY),
            Err(ParseError::File(failure)) => {
                return Finding::problem("parsers", format!("{}: {}", language.name(), sentence(&failure)), REMEDY);
            }
        }
    }
    Finding::ok("parsers", format!("start, and read {}", parsed.join(", ")))
}

/// Says whether a daemon runs and answers.
pub fn daemon(config: &Config, environment: &Environment) -> Finding {
    let place = Place::new(&config.cache_dir, environment.xdg_runtime_dir.as_deref());
    const REMEDY: &str = "run `sextant daemon stop`; commands do the work themselves without it";
    match Client::connect(&place) {
        Ok(client) => match client.status() {
            Ok(report) => Finding::ok(
                "daemon",
                format!("process {} keeps {} warm, {} answered", report.pid, counted(report.scopes.len() as u64, "scope"), {
                    counted(report.answered, "request")
                }),
            ),
            Err(error) => Finding::warning("daemon", sentence(&error), REMEDY),
        },
        Err(Absent::Nobody(_)) => Finding::ok("daemon", "none runs; commands do the work themselves"),
        Err(error @ (Absent::Busy(_) | Absent::Stuck(_))) => Finding::warning("daemon", sentence(&error), REMEDY),
        Err(error @ (Absent::Silent(_) | Absent::OtherBuild)) => Finding::warning(
            "daemon",
            sentence(&error),
            format!("see who listens at {}, and end that process", place.socket().display()),
        ),
    }
}
