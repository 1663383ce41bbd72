//! The only place where disk, salsa and store meet: builds generations, and lets questions through to them. Whoever wants
//! something of a scope comes to its [`Desk`].
//!
//! Must not know what a question is. Invariant: nobody gets at a generation but through [`Desk::ask`].

mod ahead;
mod answers;
mod assembly;
mod attendant;
mod baseline;
mod desk;
mod desks;
mod error;
mod failed;
pub mod gate;
mod guest;
mod intake;
mod journal;
mod look;
mod owner;
mod places;
mod progress;
mod report;
mod scope;
mod status;
mod survey;
mod sync;
mod turnstile;

#[cfg(test)]
mod tests;

pub use crate::store::Verified;
pub use ahead::Prepared;
pub use baseline::Baseline;
pub use desk::Desk;
pub use desks::Desks;
pub use error::{EngineError, Unavailable};
pub use gate::{Admission, Answer, Snapshot};
pub use guest::Guest;
pub use journal::{Difference, Unbound};
pub use look::Checked;
pub use progress::{Onlooker, Progress, Step};
pub use report::{
    BuildCounts, BuildOutcome, BuildStatus, Cleared, FailedFile, Freshness, KeptReport, LastBuild, LastBuildReport, Stage,
    Status, StatusWord,
};
pub use scope::Scope;
pub use status::OPERATIONS;
pub use survey::{Omitted, Survey};
