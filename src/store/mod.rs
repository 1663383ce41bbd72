//! SQLite and files: generations, sources, facts, leases. Knows no salsa and never looks at a worktree.
//!
//! Invariant: what the pointer names is whole and never written again; everything else on disk may vanish at any time.

pub mod content;
pub mod reader;

pub use content::{Content, ContentFile, Identity, ObjectRef};
pub use reader::{
    Coverage, DiagnosticRow, EdgeRow, FileRow, Generation, LanguageCoverage, NodeId, NodeRow, SearchHit, StoreError,
};
