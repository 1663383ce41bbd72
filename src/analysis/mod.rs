//! The salsa database: which edges follow from which files, recomputed only as far as a change reaches.
//!
//! Knows no disk and no SQL. Invariant: everything a query reads is an input or another query, so equal inputs give equal edges, in
//! whatever order they came.
//!
//! ```text
//! SourceFile (path, hash) ─▶ file_facts ─▶ file_surface ─▶ export_sources ─▶ export_graph ─▶ component ─▶ solve_exports
//!                                │              │                                                             │
//! ConfigurationFile (path, hash) ─▶ file_text ───────────────┤                                               │
//! Inventory (paths) ─▶ is_file, is_directory, files_in ─▶ context ─▶ module                              export_table
//!                                │              └──────────▶ rebindings ─▶ rebound ─▶ rebound_in              │
//!                                └─────────────────────────────▶ file_edges ◀───────────┴─────────────────────┘
//! ```
//!
//! Cycles of modules never reach salsa: the export graph is cut into strongly connected components first, and one query solves one
//! component whole.

mod blindness;
mod components;
mod database;
mod edges;
mod facts;
mod image;
mod inputs;
mod lookup;
mod modules;
mod question;
mod remembered;
mod revisit;
mod traces;
mod tree;

#[cfg(test)]
mod tests;

#[cfg(feature = "faults")]
pub use blindness::{Blindness, blind};
pub use database::{
    AllEdges, AnalysisError, Applied, Database, FactsLoader, FactsStore, FileInput, Outcome, Resolved, Stale, Standing, Update,
};
pub use image::DECLARATIONS;
