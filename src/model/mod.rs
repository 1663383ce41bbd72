//! Values of the domain: no I/O, no salsa, no JSON. Everything above speaks in these terms.
//!
//! Invariant: a value of a type in here is already valid; parsing happens at the edge, once.

pub mod codec;
mod demand;
pub mod facts;
pub mod graph;
pub mod hash;
mod headway;
mod lanes;
pub mod path;
mod sentence;
pub mod span;

pub use demand::{Cancel, CancelAtEnd, Demand, Ended};
pub use facts::{Definition, DefinitionKey, FileFacts, Heading, ParseStatus, Surface};
pub use graph::{Diagnostic, Edge, EdgeKind, FileEdges, Reason, Resolution, SymbolId, SymbolKind, Target};
pub use hash::{Canonical, ContentHash, Fingerprint, GenerationId};
pub use headway::Headway;
pub use path::{PathError, PathPrefix, RepoPath};
pub use sentence::sentence;
pub use span::{Place, Span};
