//! Reading a published generation. Every row comes back as a value; no SQL leaves this layer.
//!
//! Invariant: results are sorted as documented, so that equal generations give equal answers whatever way they were written.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::model::{ContentHash, EdgeKind, ParseStatus, PathPrefix, Reason, Resolution, SymbolId, SymbolKind};

use super::content::Identity;

/// Row id of a node inside one generation; means nothing outside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub i64);

/// A definition or a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeRow {
    pub id: NodeId,
    pub symbol: SymbolId,
    pub kind: SymbolKind,
    /// Language of its file, `text` for files of none.
    pub language: Arc<str>,
    pub path: Arc<str>,
    pub name: Arc<str>,
    /// Lexical: `QuerySet.iterator`; for a file its path.
    pub qualified_name: Arc<str>,
    /// Module name of its file, for people: `django.db.models.query`.
    pub module: Option<Arc<str>>,
    pub parent: Option<NodeId>,
    pub start_line: u32,
    pub end_line: u32,
    /// Line of the name token; 0 for a file.
    pub name_line: u32,
    pub start_byte: u32,
    pub end_byte: u32,
    pub signature: Option<Arc<str>>,
    pub docstring: Option<Arc<str>>,
    pub parse_status: ParseStatus,
    pub file_hash: ContentHash,
    pub test: bool,
    pub generated: bool,
    pub minified: bool,
    pub deprioritized: bool,
}

/// An edge. Its place is that of the referenced name token in the file of its source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EdgeRow {
    pub source: NodeId,
    pub target: NodeId,
    pub kind: EdgeKind,
    pub resolution: Resolution,
    pub rule: Arc<str>,
    pub path: Arc<str>,
    pub line: u32,
    pub column: u32,
    pub name: Arc<str>,
}

/// A reference without a `resolved_static` edge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiagnosticRow {
    pub source: NodeId,
    pub kind: EdgeKind,
    pub reason: Reason,
    pub path: Arc<str>,
    pub line: u32,
    pub column: u32,
    pub name: Arc<str>,
    pub candidates: u32,
}

/// One path of the manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileRow {
    pub path: Arc<str>,
    pub node: Option<NodeId>,
    pub language: Option<Arc<str>>,
    pub module: Option<Arc<str>>,
    pub mode: u32,
    pub hash: Option<ContentHash>,
    pub size: Option<u64>,
    pub lines: u32,
    pub parse_status: Option<ParseStatus>,
    /// Stable word of the reason why it is left out.
    pub omitted: Option<Arc<str>>,
    /// Why parsing failed.
    pub failure: Option<Arc<str>>,
}

/// A hit of the text search, best first.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchHit {
    pub node: NodeRow,
    /// bm25 as SQLite gives it: smaller is better.
    pub score: f64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LanguageCoverage {
    pub files: u64,
    pub ok: u64,
    pub partial: u64,
    pub failed: u64,
}

/// Totals of a generation, as `coverage` states them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    pub eligible_files: u64,
    pub parsed_files: u64,
    pub partial_files: u64,
    pub failed_files: u64,
    pub unsupported_files: u64,
    pub skipped_files: u64,
    pub references: u64,
    pub resolved_references: u64,
    pub candidate_references: u64,
    pub unresolved_references: u64,
    pub languages: BTreeMap<String, LanguageCoverage>,
}

/// Why the store cannot answer.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A stored object does not match its digest, or is not what the pointer says.
    #[error("a stored object is damaged ({part})")]
    Damaged { part: String },
    #[error("nothing was indexed yet")]
    Missing,
    #[error("the cache cannot be used ({action})")]
    Io {
        action: String,
        #[source]
        source: std::io::Error,
    },
    #[error("SQLite cannot be used ({action})")]
    Sqlite {
        action: String,
        #[source]
        source: rusqlite::Error,
    },
    #[error("the cache is over its size limit")]
    CacheLimit,
    #[error("waiting for another builder took too long")]
    LockTimeout,
}

type Result<T> = std::result::Result<T, StoreError>;

/// An opened generation: pinned by a lease, verified against its seal, immutable.
#[derive(Debug)]
pub struct Generation {}

impl Generation {
    pub fn identity(&self) -> &Identity {
        todo!()
    }

    pub fn coverage(&self) -> &Coverage {
        todo!()
    }

    /// Returns the known gaps of the languages present, sorted.
    pub fn limitations(&self) -> &[String] {
        todo!()
    }

    /// Returns how many included files the manifest has.
    pub fn file_count(&self) -> u64 {
        todo!()
    }

    /// Returns one path of the manifest, omitted ones too.
    pub fn file(&self, _path: &str) -> Result<Option<FileRow>> {
        todo!()
    }

    /// Returns the omitted paths with their reasons, by path.
    pub fn omissions(&self) -> Result<Vec<FileRow>> {
        todo!()
    }

    pub fn node(&self, _id: NodeId) -> Result<NodeRow> {
        todo!()
    }

    pub fn node_by_symbol(&self, _symbol: &SymbolId) -> Result<Option<NodeRow>> {
        todo!()
    }

    /// Returns the nodes of exactly this name below the prefix, by path and start byte, at most `limit`.
    pub fn nodes_named(&self, _name: &str, _prefix: &PathPrefix, _limit: usize) -> Result<Vec<NodeRow>> {
        todo!()
    }

    /// As [`Self::nodes_named`], without regard to ASCII case.
    pub fn nodes_named_folded(&self, _name: &str, _prefix: &PathPrefix, _limit: usize) -> Result<Vec<NodeRow>> {
        todo!()
    }

    /// Returns the nodes whose name begins with `start` (ASCII case folded), by name, path and start byte.
    pub fn nodes_with_name_prefix(&self, _start: &str, _prefix: &PathPrefix, _limit: usize) -> Result<Vec<NodeRow>> {
        todo!()
    }

    /// Returns the file node and the definitions of one file, in source order.
    pub fn nodes_in_file(&self, _path: &str) -> Result<Vec<NodeRow>> {
        todo!()
    }

    /// Returns the file whose module is called `module` for people, e.g. `django.db.models.query`; by path.
    pub fn files_of_module(&self, _module: &str) -> Result<Vec<FileRow>> {
        todo!()
    }

    /// Returns the nodes of files whose path has fewer than `depth` slashes below the prefix, by path and line, at most `limit`, and
    /// how many there are in all.
    pub fn map(&self, _prefix: &PathPrefix, _depth: u32, _limit: usize) -> Result<(Vec<NodeRow>, u64)> {
        todo!()
    }

    /// Returns the edges of the given kinds that point to `target`, by resolution (surer first), path, line and column.
    pub fn edges_to(&self, _target: NodeId, _kinds: &[EdgeKind]) -> Result<Vec<EdgeRow>> {
        todo!()
    }

    /// Returns the edges of the given kinds that leave `source`, by place and target.
    pub fn edges_from(&self, _source: NodeId, _kinds: &[EdgeKind]) -> Result<Vec<EdgeRow>> {
        todo!()
    }

    /// Searches names, paths, signatures, docstrings and headings for all (`any == false`) or any of the words; words are lower-cased
    /// identifier parts, escaped here. Best first, ties by path and start byte.
    pub fn search(&self, _words: &[String], _any: bool, _prefix: &PathPrefix, _limit: usize) -> Result<Vec<SearchHit>> {
        todo!()
    }

    /// Returns how many references of this name have no edge at all that is `resolved_static`.
    pub fn unresolved_mentions(&self, _name: &str) -> Result<u64> {
        todo!()
    }

    /// Returns how many calls inside `source` itself have no edge at all that is `resolved_static`.
    pub fn unresolved_calls_in(&self, _source: NodeId) -> Result<u64> {
        todo!()
    }

    /// Returns how many edges of the given kinds point to `target`.
    pub fn in_degree(&self, _target: NodeId, _kinds: &[EdgeKind]) -> Result<u64> {
        todo!()
    }

    /// Returns the nodes whose symbol id begins with these hexadecimal digits, by id, at most `limit`.
    pub fn nodes_with_symbol_prefix(&self, _digits: &str, _limit: usize) -> Result<Vec<NodeRow>> {
        todo!()
    }

    /// Returns the headings of a prose file as (line, level, text), by line.
    pub fn headings(&self, _path: &str) -> Result<Vec<(u32, u8, String)>> {
        todo!()
    }

    /// Returns the captured bytes of a file, checked against their digest.
    pub fn source(&self, _path: &str) -> Result<Option<Arc<[u8]>>> {
        todo!()
    }

    /// Visits all nodes by path and start byte, for the export.
    pub fn each_node(&self, _visit: &mut dyn FnMut(&NodeRow) -> std::io::Result<()>) -> Result<()> {
        todo!()
    }

    /// Visits all edges by path, line, column, kind and target.
    pub fn each_edge(&self, _visit: &mut dyn FnMut(&EdgeRow) -> std::io::Result<()>) -> Result<()> {
        todo!()
    }

    /// Visits all diagnostics by path, line, column and kind.
    pub fn each_diagnostic(&self, _visit: &mut dyn FnMut(&DiagnosticRow) -> std::io::Result<()>) -> Result<()> {
        todo!()
    }
}
