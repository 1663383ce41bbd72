//! Sextant answers questions about a working tree from a code graph, and checks every byte it indexed against the disk
//! before each answer.
//!
//! ```text
//!  disk ──scan──▶ Manifest ──diff──▶ salsa inputs ──▶ facts ──▶ surface ──▶ exports ──▶ edges
//!       read+hash    │                (path, hash)   one file   no spans    by module   one file
//!                    │                                  sync commits ▼                    │
//!                    └──────────── equal? ──────────▶ Generation (immutable SQLite) ◀─────┘
//!
//!  request ──▶ gate: pin, scan, compare ──▶ operation on the generation ──▶ scan again ──▶ budget ──▶ answer
//! ```
//!
//! Layers, bottom to top; each imports only from those before it: [`model`], [`config`], [`languages`], [`parse`], [`workspace`],
//! [`watch`], [`analysis`], [`store`], [`engine`], [`query`], [`render`], [`server`], [`cli`].
//!
//! # Glossary
//!
//! - **scope**: a named binding of one worktree and a policy
//! - **inventory**: the paths that exist for us
//! - **scan**, **capture**: reading them safely
//! - **manifest**: what was seen, entry by entry
//! - **facts**: one file's syntax, unresolved
//! - **surface**: the part of facts that other files may see
//! - **reference**: a use of a name, at a place
//! - **edge**: a reference with a target and a resolution
//! - **diagnostic**: a reference without one, and why
//! - **generation**: a published, immutable graph
//! - **fingerprint**: its identity
//! - **lease**: a reader's claim on a generation
//! - **gate**: the check around each answer
//! - **hint**: where to look first, never what is true
//! - **witness path**: the edges that justify an item

pub mod analysis;
pub mod cli;
pub mod config;
pub mod engine;
pub mod languages;
pub mod model;
pub mod parse;
pub mod query;
pub mod render;
pub mod server;
pub mod store;
pub mod watch;
pub mod workspace;
