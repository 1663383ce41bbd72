//! `export`: the whole generation as sorted JSON lines.
//!
//! Must not know the rows. Invariant: not a line leaves before the check after the last one has passed.

use crate::cli::arguments::{Global, OnStale};
use crate::cli::failure::{Exit, Failure};
use crate::cli::{Session, Stop, World};
use crate::engine::{Admission, Baseline};
use crate::query::QueryError;
use crate::query::export::{self, ExportError};

use super::{policy, say_synced};

pub fn run(session: &mut Session, global: &Global, on_stale: Option<OnStale>, world: &mut World<'_>) -> Result<Exit, Stop> {
    let desk = session.desk(global, &world.environment)?;
    let admission = Admission {
        on_stale: policy(on_stale, desk.scope().on_stale()),
        expected_fingerprint: None,
        baseline: Baseline::None,
        limit: desk.scope().limits().build(),
    };
    let answer = desk
        .ask(admission, |snapshot| {
            let mut rows = Vec::new();
            export::write(snapshot, &mut rows).map(|()| rows).map_err(|error| match error {
                ExportError::Store(error) => Failure::of_query(&QueryError::Store(error)),
                ExportError::Write(error) => Failure::new("code_build_failed", format!("the export cannot be written: {error}")),
            })
        })
        .map_err(|error| Failure::of_engine(&error))?;
    let rows = answer.value?;
    say_synced(answer.synced.as_ref(), global, world)?;
    world.out.write_all(&rows)?;
    Ok(Exit::Answered)
}
