//! The only place where disk, salsa and store meet: builds generations, and lets questions through to them.
//!
//! Must not know what a question is. Invariant: nobody gets at a generation but through [`Engine::ask`].

mod ahead;
mod assembly;
mod baseline;
mod error;
mod failed;
pub mod gate;
mod intake;
mod journal;
mod owner;
mod report;
mod scope;
mod status;
mod sync;

#[cfg(test)]
mod tests;

pub use crate::store::Verified;
pub use ahead::{Cancel, Prepared};
pub use baseline::Baseline;
pub use error::{EngineError, Unavailable};
pub use gate::{Admission, Answer, Checked, Snapshot};
pub use journal::{Difference, Unbound};
pub use owner::Engine;
pub use report::{
    BuildCounts, BuildOutcome, BuildStatus, Cleared, FailedFile, Freshness, KeptReport, LastBuild, LastBuildReport, Stage,
    Status, StatusWord,
};
pub use scope::Scope;
pub use status::OPERATIONS;
