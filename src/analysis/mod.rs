//! The salsa database: which edges follow from which files, recomputed only as far as a change reaches.
//!
//! Knows no disk and no SQL. Invariant: everything a query reads is an input or another query, so equal inputs give equal edges, in
//! whatever order they came.
