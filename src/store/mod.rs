//! SQLite and files: generations, sources, facts, leases. Knows no salsa and never looks at a worktree.
//!
//! Invariant: what the pointer names is whole and never written again; everything else on disk may vanish at any time.

mod cache;
pub mod content;
mod delta;
mod durable;
mod error;
mod facts_cache;
#[cfg(feature = "faults")]
pub mod faults;
mod files;
mod gc;
mod layout;
mod lock;
mod overlay;
mod packs;
mod pointer;
mod publish;
pub mod reader;
mod rows;
mod seal;
mod sources;
mod traces;
mod verify;
mod words;
mod writer;

#[cfg(test)]
mod tests;

pub use cache::{Cache, KeptGeneration};
pub use content::{Change, Content, ContentFile, Identity, ObjectRef};
pub use error::StoreError;
pub use facts_cache::{FactsCache, Kept};
pub use gc::Collected;
pub use pointer::Role;
pub use publish::{BuildLock, Published, Staged};
pub use reader::{
    Coverage, DiagnosticRow, EdgeRow, Extent, FileReferences, FileRow, Generation, LanguageCoverage, NodeId, NodeRow,
    OutlinedFile, SearchHit, StoredEntry, StoredFile, Totals,
};
pub use sources::PackWriter;
pub use verify::Verified;
