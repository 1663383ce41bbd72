//! Reading a published generation. Every row comes back as a value; no SQL leaves this layer.
//!
//! Invariant: results are sorted as documented, so that equal generations give equal answers whatever way they were written.

mod outline;
mod references;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use rusqlite::config::DbConfig;
use rusqlite::types::{Type, Value};
use rusqlite::{Connection, OpenFlags, OptionalExtension, Row, params_from_iter};
use serde::{Deserialize, Serialize};

use crate::model::graph::symbol_id;
use crate::model::{
    ContentHash, EdgeKind, FileEdges, Fingerprint, GenerationId, ParseStatus, PathPrefix, Reason, RepoPath, Resolution, SymbolId,
    SymbolKind,
};
use crate::workspace::{Entry, EntryState, Omission};

use super::content::{ContentFile, Identity, ObjectRef};
use super::error::{Result, StoreError, damaged, sqlite};
use super::rows::{FLAG_DEPRIORITIZED, FLAG_GENERATED, FLAG_MINIFIED, FLAG_TEST, TARGETS_NAME, symbol_key};
use super::{overlay, packs};

pub use outline::OutlinedFile;
pub use references::FileReferences;

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

/// Which lines a definition takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    pub node: NodeId,
    pub start_line: u32,
    pub end_line: u32,
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

/// A reference without a `resolved_static` edge; or a whole file that could not be parsed, as something unknown that it contains.
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
    /// Why parsing failed: the word of the contract, and what the engine wants to know later.
    pub failure: Option<Arc<str>>,
}

/// A hit of the text search, best first.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchHit {
    pub node: NodeRow,
    /// bm25 as SQLite gives it: smaller is better.
    pub score: f64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LanguageCoverage {
    pub files: u64,
    pub ok: u64,
    pub partial: u64,
    pub failed: u64,
}

/// Totals of a generation, as `coverage` states them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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

/// How many rows a generation has beside its files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    pub definitions: u64,
    pub edges: u64,
    pub diagnostics: u64,
}

/// An included file of a generation, as the next build needs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredFile {
    pub path: Arc<str>,
    pub hash: ContentHash,
    pub object: ObjectRef,
    pub blob: Option<Vec<u8>>,
}

/// One path of a generation as the next build compares it: everything that may be another thing without other facts of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredEntry {
    pub entry: Entry,
    /// Where its source is; `None` for omitted entries.
    pub object: Option<ObjectRef>,
    pub blob: Option<Vec<u8>>,
    pub module: Option<Arc<str>>,
    /// Whether it could not be parsed.
    pub failed: bool,
    /// The leading half of the digest of what its references came to; `None` for files that have none.
    pub references: Option<[u8; 16]>,
}

impl StoredEntry {
    /// Returns what a generation will say that is made with this file.
    pub fn of(file: &ContentFile) -> Self {
        let included = matches!(file.entry.state, EntryState::Included { .. });
        Self {
            entry: file.entry.clone(),
            object: file.object.filter(|_| included),
            blob: file.blob.clone(),
            module: file.module.clone(),
            failed: file.failure.is_some(),
            references: file.edges.as_deref().map(reference_digest),
        }
    }
}

/// Returns what is kept of the digest of a file's references.
pub(super) fn reference_digest(edges: &FileEdges) -> [u8; 16] {
    let mut leading = [0; 16];
    leading.copy_from_slice(&edges.digest().0[..16]);
    leading
}

/// What a generation says of itself.
#[derive(Clone, Debug)]
pub(super) struct Meta {
    pub identity: Identity,
    pub coverage: Coverage,
    pub totals: Totals,
    pub limitations: Vec<String>,
    pub unrepresentable: Vec<String>,
}

/// The kept form of [`Identity`].
#[derive(Serialize, Deserialize)]
struct IdentityRecord {
    fingerprint: String,
    state: String,
    rules: String,
    scope_id: String,
    binding_id: String,
    commit: Option<String>,
    head_tree: Option<String>,
    head_digest: Option<String>,
    branch: Option<String>,
    object_format: String,
    git: bool,
    dirty: bool,
}

impl Meta {
    pub fn encode(&self) -> BTreeMap<&'static str, String> {
        let identity = self.identity.clone();
        let record = IdentityRecord {
            fingerprint: identity.fingerprint.hex(),
            state: identity.state.hex(),
            rules: identity.rules.hex(),
            scope_id: identity.scope_id,
            binding_id: identity.binding_id,
            commit: identity.commit,
            head_tree: identity.head_tree,
            head_digest: identity.head_digest.map(|digest| digest.hex()),
            branch: identity.branch,
            object_format: identity.object_format,
            git: identity.git,
            dirty: identity.dirty,
        };
        let plain = "these are plain values";
        BTreeMap::from([
            ("identity", serde_json::to_string(&record).expect(plain)),
            ("coverage", serde_json::to_string(&self.coverage).expect(plain)),
            ("totals", serde_json::to_string(&self.totals).expect(plain)),
            ("limitations", serde_json::to_string(&self.limitations).expect(plain)),
            ("unrepresentable", serde_json::to_string(&self.unrepresentable).expect(plain)),
        ])
    }

    /// Reads what the database of a generation says of it.
    pub fn read(connection: &Connection) -> Result<Self> {
        let mut statement = connection.prepare("SELECT key, value FROM meta").map_err(sqlite("read meta"))?;
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).map_err(sqlite("read meta"))?;
        let values = rows.collect::<rusqlite::Result<HashMap<String, String>>>().map_err(sqlite("read meta"))?;
        Self::decode(&values).ok_or_else(|| damaged("meta"))
    }

    fn decode(values: &HashMap<String, String>) -> Option<Self> {
        fn get<'a, T: Deserialize<'a>>(values: &'a HashMap<String, String>, key: &str) -> Option<T> {
            serde_json::from_str(values.get(key)?).ok()
        }
        let record: IdentityRecord = get(values, "identity")?;
        let identity = Identity {
            fingerprint: Fingerprint::parse(&record.fingerprint)?,
            state: ContentHash::parse(&record.state)?,
            rules: ContentHash::parse(&record.rules)?,
            scope_id: record.scope_id,
            binding_id: record.binding_id,
            commit: record.commit,
            head_tree: record.head_tree,
            head_digest: match &record.head_digest {
                Some(digest) => Some(ContentHash::parse(digest)?),
                None => None,
            },
            branch: record.branch,
            object_format: record.object_format,
            git: record.git,
            dirty: record.dirty,
        };
        Some(Self {
            identity,
            coverage: get(values, "coverage")?,
            totals: get(values, "totals")?,
            limitations: get(values, "limitations")?,
            unrepresentable: get(values, "unrepresentable")?,
        })
    }
}

/// An opened generation: pinned by a lease, verified against its seal, immutable.
#[derive(Debug)]
pub struct Generation {
    id: GenerationId,
    /// As the pointer says, which alone knows it: equal captures give equal databases.
    built: i64,
    connection: Connection,
    /// When whoever asks stops waiting.
    deadline: Cell<Option<Instant>>,
    meta: Meta,
    packs: PathBuf,
    /// Packs that were read from, held open.
    open_packs: RefCell<HashMap<u64, File>>,
    /// Names of references by id, as they were asked for.
    names: RefCell<HashMap<i64, Arc<str>>>,
    /// Keeps the directory from being removed while this lives.
    _lease: File,
}

/// Most rows that one search of any of several words weighs; each costs some 10 µs.
const MAX_WEIGHED: usize = 1500;
/// After so many rows the clock is looked at again.
const ROWS_BETWEEN_LOOKS: usize = 1024;
const NODE: &str = "n.id, n.symbol, n.kind, n.name, n.qualified, n.parent, n.start_line, n.end_line, n.name_line, n.start_byte,
    n.end_byte, n.signature, n.docstring, f.path, f.language, f.module, f.hash, f.parse_status, f.flags";
const NODES: &str = "FROM code_nodes n JOIN files f ON f.id = n.file";
const FILE: &str =
    "path, CASE WHEN omitted IS NULL THEN id END, language, module, mode, hash, size, lines, parse_status, omitted, failure";
const EDGE: &str = "e.source, e.target, e.kind, e.resolution, e.rule, f.path, e.line + n.start_line, e.col, e.name, t.name";

impl Generation {
    /// Opens the database in `directory`, which was checked against its seal, with what lies over it.
    pub(super) fn open(id: GenerationId, directory: &Path, packs: &Path, lease: File, overlaid: bool) -> Result<Self> {
        let database = directory.join("graph.sqlite");
        let connection = if overlaid {
            overlay::open_for_reading(&database)?
        } else {
            let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI;
            let uri = format!("file:{}?immutable=1", uri_path(&database));
            Connection::open_with_flags(uri, flags).map_err(sqlite("open"))?
        };
        connection
            .execute_batch(
                "PRAGMA query_only = 1; PRAGMA trusted_schema = 0; PRAGMA mmap_size = 0; PRAGMA temp_store = MEMORY;
                 PRAGMA cache_size = -16384;",
            )
            .map_err(sqlite("open"))?;
        // Otherwise the planner looks at each bound value again and prepares a statement anew with nearly every row that is fetched.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).map_err(sqlite("open"))?;
        let meta = Meta::read(&connection)?;
        Ok(Self {
            id,
            built: 0,
            connection,
            deadline: Cell::default(),
            meta,
            packs: packs.to_owned(),
            open_packs: RefCell::default(),
            names: RefCell::default(),
            _lease: lease,
        })
    }

    pub fn id(&self) -> GenerationId {
        self.id
    }

    /// Returns when it was built, in microseconds since 1970; 0 where that is not known.
    pub fn built(&self) -> i64 {
        self.built
    }

    pub(super) fn with_built(self, built: i64) -> Self {
        Self { built, ..self }
    }

    /// Lets reading fail after `deadline`; `None` lets it go on for as long as it takes.
    pub fn read_until(&self, deadline: Option<Instant>) {
        self.deadline.set(deadline);
    }

    /// Returns whether there is time left to read; for those who work long on what they have read, too.
    ///
    /// # Errors
    /// [`StoreError::Timeout`] after the deadline.
    pub fn in_time(&self) -> Result<()> {
        match self.deadline.get() {
            Some(deadline) if Instant::now() > deadline => Err(StoreError::Timeout),
            _ => Ok(()),
        }
    }

    pub fn identity(&self) -> &Identity {
        &self.meta.identity
    }

    pub fn coverage(&self) -> &Coverage {
        &self.meta.coverage
    }

    pub fn totals(&self) -> Totals {
        self.meta.totals
    }

    /// Returns the known gaps of the languages present, sorted.
    pub fn limitations(&self) -> &[String] {
        &self.meta.limitations
    }

    /// Returns the paths that the path rules cannot represent, escaped, sorted.
    pub fn unrepresentable(&self) -> &[String] {
        &self.meta.unrepresentable
    }

    /// Returns how many included files the manifest has.
    pub fn file_count(&self) -> u64 {
        self.meta.coverage.eligible_files
    }

    fn rows<T>(
        &self,
        action: &'static str,
        sql: &str,
        values: impl IntoIterator<Item = Value>,
        mut read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>> {
        self.in_time()?;
        let mut statement = self.connection.prepare_cached(sql).map_err(sqlite(action))?;
        let rows = statement.query_map(params_from_iter(values), |row| read(row)).map_err(sqlite(action))?;
        let mut found = Vec::new();
        for row in rows {
            found.push(row.map_err(sqlite(action))?);
            if found.len() % ROWS_BETWEEN_LOOKS == 0 {
                self.in_time()?;
            }
        }
        Ok(found)
    }

    fn count(&self, action: &'static str, sql: &str, values: impl IntoIterator<Item = Value>) -> Result<u64> {
        let counts = self.rows(action, sql, values, |row| row.get::<_, Option<i64>>(0))?;
        Ok(counts.first().copied().flatten().unwrap_or(0).max(0).cast_unsigned())
    }

    /// Returns all included files, by path, with where their sources are.
    pub fn manifest(&self) -> Result<Vec<StoredFile>> {
        let sql = "SELECT path, hash, pack, offset, size, blob FROM files WHERE omitted IS NULL ORDER BY id";
        self.rows("read the manifest", sql, [], |row| {
            Ok(StoredFile { path: row.get(0)?, hash: hash(row, 1)?, object: object(row, 2)?, blob: row.get(5)? })
        })
    }

    /// Returns the whole manifest, omitted paths too, by path.
    pub fn entries(&self) -> Result<Vec<StoredEntry>> {
        let sql = "SELECT path, mode, hash, size, omitted, module, failure IS NOT NULL, refs, pack, offset, size, blob
             FROM files ORDER BY id";
        let action = "read the manifest";
        self.rows(action, sql, [], |row| {
            let path: String = row.get(0)?;
            let invalid = |column: usize| rusqlite::Error::InvalidColumnType(column, "manifest".to_owned(), Type::Text);
            let path = RepoPath::parse(&path).map_err(|_| invalid(0))?;
            let hash = row.get::<_, Option<[u8; 32]>>(2)?.map(ContentHash);
            let size = row.get::<_, Option<i64>>(3)?.map(i64::cast_unsigned);
            let omitted = row.get_ref(4)?.as_str_or_null()?.map(|word| Omission::parse(word).ok_or_else(|| invalid(4)));
            let state = match omitted.transpose()? {
                Some(reason) => EntryState::Omitted { reason, hash, size },
                None => EntryState::Included { hash: hash.ok_or_else(|| invalid(2))?, size: size.ok_or_else(|| invalid(3))? },
            };
            let included = matches!(state, EntryState::Included { .. });
            Ok(StoredEntry {
                entry: Entry { path, mode: row.get(1)?, state },
                object: if included { Some(object(row, 8)?) } else { None },
                blob: row.get(11)?,
                module: row.get(5)?,
                failed: row.get(6)?,
                references: row.get(7)?,
            })
        })
    }

    /// Returns one path of the manifest, omitted ones too.
    pub fn file(&self, path: &str) -> Result<Option<FileRow>> {
        let sql = format!("SELECT {FILE} FROM files WHERE path = ?1");
        Ok(self.rows("read a file", &sql, [text(path)], file_row)?.pop())
    }

    /// Returns the files that could not be parsed, by path.
    pub fn failed_files(&self) -> Result<Vec<FileRow>> {
        let sql = format!("SELECT {FILE} FROM files WHERE failure IS NOT NULL ORDER BY id");
        self.rows("read failures", &sql, [], file_row)
    }

    /// Returns the omitted paths with their reasons, by path.
    pub fn omissions(&self) -> Result<Vec<FileRow>> {
        let sql = format!("SELECT {FILE} FROM files WHERE omitted IS NOT NULL ORDER BY id");
        self.rows("read omissions", &sql, [], file_row)
    }

    pub fn node(&self, id: NodeId) -> Result<NodeRow> {
        let sql = format!("SELECT {NODE} {NODES} WHERE n.id = ?1");
        self.rows("read a node", &sql, [Value::Integer(id.0)], node_row)?.pop().ok_or_else(|| damaged("a node"))
    }

    pub fn node_by_symbol(&self, symbol: &SymbolId) -> Result<Option<NodeRow>> {
        let mut leading = [0; 8];
        leading.copy_from_slice(&symbol.0[..8]);
        let sql = format!("SELECT {NODE} {NODES} WHERE n.symbol = ?1 ORDER BY n.id");
        let found = self.rows("read a node", &sql, [Value::Integer(symbol_key(leading))], node_row)?;
        Ok(found.into_iter().find(|node| node.symbol == *symbol))
    }

    /// Returns the nodes of exactly this name below the prefix, by path and start byte, at most `limit`.
    pub fn nodes_named(&self, name: &str, prefix: &PathPrefix, limit: usize) -> Result<Vec<NodeRow>> {
        let within = Within::new(prefix);
        let sql = format!(
            "SELECT {NODE} {NODES} WHERE n.name = ?1 COLLATE NOCASE AND n.name = ?1 {} ORDER BY n.id LIMIT ?2",
            within.condition(3)
        );
        self.rows("find nodes", &sql, [text(name), number(limit)].into_iter().chain(within.values()), node_row)
    }

    /// As [`Self::nodes_named`], without regard to ASCII case.
    pub fn nodes_named_folded(&self, name: &str, prefix: &PathPrefix, limit: usize) -> Result<Vec<NodeRow>> {
        let within = Within::new(prefix);
        let sql =
            format!("SELECT {NODE} {NODES} WHERE n.name = ?1 COLLATE NOCASE {} ORDER BY n.id LIMIT ?2", within.condition(3));
        self.rows("find nodes", &sql, [text(name), number(limit)].into_iter().chain(within.values()), node_row)
    }

    /// Returns the nodes whose name begins with `start` (ASCII case folded), by name, path and start byte.
    pub fn nodes_with_name_prefix(&self, start: &str, prefix: &PathPrefix, limit: usize) -> Result<Vec<NodeRow>> {
        let within = Within::new(prefix);
        let sql = format!(
            "SELECT {NODE} {NODES} WHERE n.name >= ?1 COLLATE NOCASE AND n.name < ?2 COLLATE NOCASE {}
             ORDER BY n.name COLLATE NOCASE, n.id LIMIT ?3",
            within.condition(4)
        );
        let values = [text(start), Value::Text(format!("{start}\u{10ffff}")), number(limit)];
        self.rows("find nodes", &sql, values.into_iter().chain(within.values()), node_row)
    }

    /// Returns the nodes whose symbol id begins with these hexadecimal digits, by id, at most `limit`.
    pub fn nodes_with_symbol_prefix(&self, digits: &str, limit: usize) -> Result<Vec<NodeRow>> {
        let valid = digits.len() <= 64 && digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        if !valid {
            return Ok(Vec::new());
        }
        let bound = |fill: &str| {
            let mut padded: String = digits.chars().take(16).collect();
            while padded.len() < 16 {
                padded.push_str(fill);
            }
            u64::from_str_radix(&padded, 16).map_or(0, |bound| symbol_key(bound.to_be_bytes()))
        };
        let sql = format!("SELECT {NODE} {NODES} WHERE n.symbol BETWEEN ?1 AND ?2 ORDER BY n.symbol");
        let mut found = self.rows("find nodes", &sql, [Value::Integer(bound("0")), Value::Integer(bound("f"))], node_row)?;
        found.retain(|node| node.symbol.hex().starts_with(digits));
        found.sort_by_key(|node| node.symbol);
        found.truncate(limit);
        Ok(found)
    }

    /// Returns the file node and the definitions of one file, in source order.
    pub fn nodes_in_file(&self, path: &str) -> Result<Vec<NodeRow>> {
        let sql = format!("SELECT {NODE} {NODES} WHERE f.path = ?1 AND n.id BETWEEN f.id AND f.last ORDER BY n.id");
        self.rows("read a file's nodes", &sql, [text(path)], node_row)
    }

    /// Returns the file nodes of the test files below the prefix, by path.
    pub fn test_files(&self, prefix: &PathPrefix) -> Result<Vec<NodeRow>> {
        let within = Within::new(prefix);
        let sql = format!(
            "SELECT {NODE} FROM files f JOIN code_nodes n ON n.id = f.id WHERE f.flags & ?1 {} ORDER BY f.id",
            within.condition(2)
        );
        self.rows("find test files", &sql, [Value::Integer(FLAG_TEST)].into_iter().chain(within.values()), node_row)
    }

    /// Returns the file whose module is called `module` for people, e.g. `django.db.models.query`; by path.
    pub fn files_of_module(&self, module: &str) -> Result<Vec<FileRow>> {
        let sql = format!("SELECT {FILE} FROM files WHERE module = ?1 ORDER BY id");
        self.rows("find a module", &sql, [text(module)], file_row)
    }

    /// Returns the nodes of files whose path has fewer than `depth` slashes below the prefix, by path and line, at most `limit`, and
    /// how many there are in all.
    pub fn map(&self, prefix: &PathPrefix, depth: u32, limit: usize) -> Result<(Vec<NodeRow>, u64)> {
        let within = Within::new(prefix);
        // Below a directory the slash after it is not counted; the file that the prefix itself names has none below.
        let base = match prefix.as_str() {
            "" => 0,
            directory => directory.bytes().filter(|&byte| byte == b'/').count() as i64 + 1,
        };
        let values = |limit: usize| [Value::Integer(base + i64::from(depth)), number(limit)].into_iter().chain(within.values());
        let condition = format!("f.slashes < ?1 {}", within.condition(3));
        let total = self.count(
            "count the map",
            &format!("SELECT sum(f.nodes) FROM files f WHERE {condition} AND ?2 >= 0"),
            values(limit),
        )?;
        let sql = format!("SELECT {NODE} {NODES} WHERE {condition} ORDER BY n.id LIMIT ?2");
        Ok((self.rows("read the map", &sql, values(limit), node_row)?, total))
    }

    fn edges(&self, action: &'static str, condition: &str, values: impl IntoIterator<Item = Value>) -> Result<Vec<EdgeRow>> {
        let sql = format!(
            "SELECT {EDGE} FROM code_edges e JOIN code_nodes n ON n.id = e.source JOIN files f ON f.id = n.file
             LEFT JOIN code_nodes t ON t.id = e.target WHERE {condition}"
        );
        let rows = self.rows(action, &sql, values, |row| {
            let name: i64 = row.get(8)?;
            let targets: Option<Arc<str>> = if name == TARGETS_NAME { row.get(9)? } else { None };
            Ok((edge_row(row)?, row.get(4)?, name, targets))
        })?;
        rows.into_iter()
            .map(|(edge, rule, name, targets)| {
                let name = targets.map_or_else(|| self.name(name), Ok)?;
                Ok(EdgeRow { rule: self.name(rule)?, name, ..edge })
            })
            .collect()
    }

    /// Returns the edges of the given kinds that point to `target`, by resolution (surer first), path, line and column.
    pub fn edges_to(&self, target: NodeId, kinds: &[EdgeKind]) -> Result<Vec<EdgeRow>> {
        let condition = format!("e.target = ?1 AND e.kind IN ({})", codes(kinds));
        let mut edges = self.edges("read edges", &condition, [Value::Integer(target.0)])?;
        edges.sort_by(|left, right| {
            (left.resolution, &left.path, left.line, left.column, left.kind, left.source).cmp(&(
                right.resolution,
                &right.path,
                right.line,
                right.column,
                right.kind,
                right.source,
            ))
        });
        Ok(edges)
    }

    /// Returns the edges of the given kinds that leave `source`, by place and target.
    pub fn edges_from(&self, source: NodeId, kinds: &[EdgeKind]) -> Result<Vec<EdgeRow>> {
        let condition = format!("e.source = ?1 AND e.kind IN ({})", codes(kinds));
        let mut edges = self.edges("read edges", &condition, [Value::Integer(source.0)])?;
        edges.sort_by_key(|edge| (edge.line, edge.column, edge.target, edge.kind));
        Ok(edges)
    }

    /// Returns where the definitions directly inside `outer` are, the shortest first.
    pub fn definitions_in(&self, outer: NodeId) -> Result<Vec<Extent>> {
        let sql = "SELECT n.id, n.start_line, n.end_line FROM code_nodes o JOIN files f ON f.id = o.file
             JOIN code_nodes n ON n.id BETWEEN f.id AND f.last
             WHERE o.id = ?1 AND n.parent = ?1 ORDER BY n.end_line - n.start_line, n.id";
        self.rows("find definitions", sql, [Value::Integer(outer.0)], |row| {
            Ok(Extent { node: NodeId(row.get(0)?), start_line: row.get(1)?, end_line: row.get(2)? })
        })
    }

    /// Returns how many edges of the given kinds point to `target`.
    pub fn in_degree(&self, target: NodeId, kinds: &[EdgeKind]) -> Result<u64> {
        let sql = format!("SELECT count(*) FROM code_edges WHERE target = ?1 AND kind IN ({})", codes(kinds));
        self.count("count edges", &sql, [Value::Integer(target.0)])
    }

    /// Searches names, paths, signatures, docstrings and headings for all (`any == false`) or any of the words; words are lower-cased
    /// identifier parts, escaped here. Best first, ties by path and start byte.
    pub fn search(&self, words: &[String], any: bool, prefix: &PathPrefix, limit: usize) -> Result<Vec<SearchHit>> {
        // A word is quoted, and quotes in it doubled, so that nothing of it is an operator. Words of no token match nothing.
        let quoted: Vec<String> = words
            .iter()
            .filter(|word| word.chars().any(|character| character.is_alphanumeric() || character == '_'))
            .map(|word| format!("\"{}\"", word.replace('"', "\"\"").replace('\0', " ")))
            .collect();
        if quoted.is_empty() || (!any && quoted.len() < words.len()) {
            return Ok(Vec::new());
        }
        let Some((first, last)) = self.range(prefix)? else { return Ok(Vec::new()) };
        let quoted = if any { self.telling(quoted, (first, last))? } else { quoted };
        let question = quoted.join(if any { " OR " } else { " AND " });
        // Only the ids of the best are fetched with their rows: sorting whole rows would read every docstring that matches.
        let sql = "SELECT rowid, bm25(code_search_fts, 10.0, 3.0, 2.0, 1.0, 3.0) AS score FROM code_search_fts
             WHERE code_search_fts MATCH ?1 AND rowid BETWEEN ?2 AND ?3 ORDER BY score, rowid LIMIT ?4";
        let values = [Value::Text(question), Value::Integer(first), Value::Integer(last), number(limit)];
        let best = self.rows("search", sql, values, |row| Ok((NodeId(row.get(0)?), row.get(1)?)))?;
        best.into_iter().map(|(id, score)| Ok(SearchHit { node: self.node(id)?, score })).collect()
    }

    /// Leaves out the commonest of some words, where all together match more rows than can be weighed in time. What a word on every
    /// second row would add to the order is little.
    fn telling(&self, words: Vec<String>, (first, last): (i64, i64)) -> Result<Vec<String>> {
        let sql = "SELECT count(*) FROM (SELECT 1 FROM code_search_fts
             WHERE code_search_fts MATCH ?1 AND rowid BETWEEN ?2 AND ?3 LIMIT ?4)";
        let mut counted = Vec::with_capacity(words.len());
        for (place, word) in words.into_iter().enumerate() {
            let values = [Value::Text(word.clone()), Value::Integer(first), Value::Integer(last), number(MAX_WEIGHED + 1)];
            counted.push((self.count("count matches", sql, values)? as usize, place, word));
        }
        counted.sort_unstable();
        let mut room = MAX_WEIGHED;
        let mut kept: Vec<(usize, String)> = Vec::new();
        for (count, place, word) in counted {
            if count > room && !kept.is_empty() {
                break;
            }
            room = room.saturating_sub(count);
            kept.push((place, word));
        }
        kept.sort_unstable();
        Ok(kept.into_iter().map(|(_, word)| word).collect())
    }

    /// Returns the first and last node below a prefix. Nodes follow their paths, so those of a directory stand together.
    fn range(&self, prefix: &PathPrefix) -> Result<Option<(i64, i64)>> {
        if prefix.as_str().is_empty() {
            return Ok(Some((0, i64::MAX)));
        }
        let within = Within::new(prefix);
        let sql = format!("SELECT min(f.id), max(f.last) FROM files f WHERE f.omitted IS NULL {}", within.condition(1));
        let found = self.rows("find a directory", &sql, within.values(), |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(found.into_iter().find_map(|(first, last): (Option<i64>, Option<i64>)| first.zip(last)))
    }

    /// Returns how many references of this name have no edge at all that is `resolved_static`.
    pub fn unresolved_mentions(&self, name: &str) -> Result<u64> {
        self.count("count mentions", "SELECT unresolved FROM names WHERE text = ?1", [text(name)])
    }

    /// Returns how many calls inside `source` itself have no edge at all that is `resolved_static`.
    pub fn unresolved_calls_in(&self, source: NodeId) -> Result<u64> {
        let sql = "SELECT count(*) FROM (SELECT DISTINCT line, col FROM diagnostics WHERE source = ?1 AND kind = ?2)";
        self.count("count calls", sql, [Value::Integer(source.0), Value::Integer(EdgeKind::Calls as i64)])
    }

    /// Returns the headings of a prose file as (line, level, text), by line.
    pub fn headings(&self, path: &str) -> Result<Vec<(u32, u8, String)>> {
        let sql = "SELECT line, level, text FROM headings WHERE file = (SELECT id FROM files WHERE path = ?1) ORDER BY line";
        self.rows("read headings", sql, [text(path)], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
    }

    /// Returns the captured bytes of a file, checked against their digest.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] when they are not what was captured; the next build is told so where that is possible.
    pub fn source(&self, path: &str) -> Result<Option<Arc<[u8]>>> {
        self.read_source(path).inspect_err(|error| {
            if matches!(error, StoreError::Damaged { .. }) {
                let _ = super::durable::create(super::durable::Part::Mark, &self.packs.with_file_name("damaged"));
            }
        })
    }

    fn read_source(&self, path: &str) -> Result<Option<Arc<[u8]>>> {
        let sql = "SELECT hash, pack, offset, size FROM files WHERE path = ?1 AND omitted IS NULL";
        let found = self.rows("read a source", sql, [text(path)], |row| Ok((hash(row, 0)?, object(row, 1)?)))?;
        let Some((hash, object)) = found.into_iter().next() else { return Ok(None) };
        let mut open = self.open_packs.borrow_mut();
        let file = match open.entry(object.pack) {
            std::collections::hash_map::Entry::Occupied(entry) => entry.into_mut(),
            std::collections::hash_map::Entry::Vacant(entry) => entry.insert(packs::open_pack(&self.packs, object.pack)?),
        };
        let mut buffer = Vec::new();
        packs::read_payload(file, object.offset, object.length, &hash, &mut buffer)?;
        Ok(Some(Arc::from(buffer)))
    }

    /// Visits all nodes by path and start byte, for the export.
    pub fn each_node(&self, visit: &mut dyn FnMut(&NodeRow) -> std::io::Result<()>) -> Result<()> {
        let sql = format!("SELECT {NODE} {NODES} ORDER BY n.id");
        let mut statement = self.connection.prepare_cached(&sql).map_err(sqlite("read nodes"))?;
        let mut rows = statement.query([]).map_err(sqlite("read nodes"))?;
        while let Some(row) = rows.next().map_err(sqlite("read nodes"))? {
            self.in_time()?;
            let node = node_row(row).map_err(sqlite("read nodes"))?;
            visit(&node).map_err(|source| StoreError::Receiver { source })?;
        }
        Ok(())
    }

    /// Returns the first and the last node of each file, by path.
    fn ranges(&self) -> Result<Vec<(i64, i64)>> {
        let sql = "SELECT id, last FROM files WHERE omitted IS NULL ORDER BY id";
        self.rows("read the manifest", sql, [], |row| Ok((row.get(0)?, row.get(1)?)))
    }

    /// Visits all edges by path, line, column, kind and target.
    pub fn each_edge(&self, visit: &mut dyn FnMut(&EdgeRow) -> std::io::Result<()>) -> Result<()> {
        for (first, last) in self.ranges()? {
            let mut edges =
                self.edges("read edges", "e.source BETWEEN ?1 AND ?2", [Value::Integer(first), Value::Integer(last)])?;
            edges.sort_by_key(|edge| (edge.line, edge.column, edge.kind, edge.target, edge.source));
            for edge in &edges {
                visit(edge).map_err(|source| StoreError::Receiver { source })?;
            }
        }
        Ok(())
    }

    fn name(&self, id: i64) -> Result<Arc<str>> {
        if let Some(name) = self.names.borrow().get(&id) {
            return Ok(Arc::clone(name));
        }
        let mut statement =
            self.connection.prepare_cached("SELECT text FROM names WHERE id = ?1").map_err(sqlite("read a name"))?;
        let name: Option<Arc<str>> = statement.query_row([id], |row| row.get(0)).optional().map_err(sqlite("read a name"))?;
        let name = name.ok_or_else(|| damaged("a name"))?;
        self.names.borrow_mut().insert(id, Arc::clone(&name));
        Ok(name)
    }
}

/// A path prefix as a condition on `f.path`.
struct Within<'a>(&'a str);

impl<'a> Within<'a> {
    fn new(prefix: &'a PathPrefix) -> Self {
        Self(prefix.as_str())
    }

    /// Returns the condition, whose parameters are numbered from `first`.
    fn condition(&self, first: usize) -> String {
        if self.0.is_empty() {
            return String::new();
        }
        format!("AND (f.path = ?{first} OR (f.path >= ?{} AND f.path < ?{}))", first + 1, first + 2)
    }

    fn values(&self) -> Vec<Value> {
        if self.0.is_empty() {
            return Vec::new();
        }
        // `0` follows `/`, so that the range holds exactly what begins with the prefix and a slash.
        vec![text(self.0), Value::Text(format!("{}/", self.0)), Value::Text(format!("{}0", self.0))]
    }
}

fn text(value: &str) -> Value {
    Value::Text(value.to_owned())
}

fn number(value: usize) -> Value {
    Value::Integer(i64::try_from(value).unwrap_or(i64::MAX))
}

fn codes(kinds: &[EdgeKind]) -> String {
    kinds.iter().map(|kind| (*kind as i64).to_string()).collect::<Vec<_>>().join(",")
}

fn coded<T: Copy>(row: &Row<'_>, column: usize, all: &[T]) -> rusqlite::Result<T> {
    let code: i64 = row.get(column)?;
    let known = usize::try_from(code).ok().and_then(|code| all.get(code));
    known.copied().ok_or(rusqlite::Error::IntegralValueOutOfRange(column, code))
}

pub(super) const STATUSES: [ParseStatus; 4] =
    [ParseStatus::Ok, ParseStatus::Partial, ParseStatus::Failed, ParseStatus::Unsupported];

fn hash(row: &Row<'_>, column: usize) -> rusqlite::Result<ContentHash> {
    Ok(ContentHash(row.get(column)?))
}

fn object(row: &Row<'_>, first: usize) -> rusqlite::Result<ObjectRef> {
    Ok(ObjectRef {
        pack: row.get::<_, i64>(first)?.cast_unsigned(),
        offset: row.get::<_, i64>(first + 1)?.cast_unsigned(),
        length: row.get::<_, i64>(first + 2)?.cast_unsigned(),
    })
}

fn file_row(row: &Row<'_>) -> rusqlite::Result<FileRow> {
    let status: Option<i64> = row.get(8)?;
    Ok(FileRow {
        path: row.get(0)?,
        node: row.get::<_, Option<i64>>(1)?.map(NodeId),
        language: row.get(2)?,
        module: row.get(3)?,
        mode: row.get(4)?,
        hash: row.get::<_, Option<[u8; 32]>>(5)?.map(ContentHash),
        size: row.get::<_, Option<i64>>(6)?.map(i64::cast_unsigned),
        lines: row.get(7)?,
        parse_status: status.map(|_| coded(row, 8, &STATUSES)).transpose()?,
        omitted: row.get(9)?,
        failure: row.get(10)?,
    })
}

fn edge_row(row: &Row<'_>) -> rusqlite::Result<EdgeRow> {
    Ok(EdgeRow {
        source: NodeId(row.get(0)?),
        target: NodeId(row.get(1)?),
        kind: coded(row, 2, EdgeKind::ALL)?,
        resolution: coded(row, 3, Resolution::ALL)?,
        rule: Arc::from(""),
        path: row.get(5)?,
        line: row.get(6)?,
        column: row.get(7)?,
        name: Arc::from(""),
    })
}

fn node_row(row: &Row<'_>) -> rusqlite::Result<NodeRow> {
    let kind = coded(row, 2, SymbolKind::ALL)?;
    let name: Arc<str> = row.get(3)?;
    let qualified_name = row.get::<_, Option<Arc<str>>>(4)?.unwrap_or_else(|| Arc::clone(&name));
    let path: Arc<str> = row.get(13)?;
    let start_byte = row.get(9)?;
    let invalid = |_| rusqlite::Error::InvalidColumnType(13, "path".to_owned(), Type::Text);
    let repo_path = RepoPath::parse(&path).map_err(invalid)?;
    let flags: i64 = row.get(18)?;
    Ok(NodeRow {
        id: NodeId(row.get(0)?),
        symbol: symbol_id(&repo_path, kind, &qualified_name, start_byte),
        kind,
        language: row.get::<_, Option<Arc<str>>>(14)?.unwrap_or_else(|| Arc::from("text")),
        path,
        name,
        qualified_name,
        module: row.get(15)?,
        parent: row.get::<_, Option<i64>>(5)?.map(NodeId),
        start_line: row.get(6)?,
        end_line: row.get(7)?,
        name_line: row.get(8)?,
        start_byte,
        end_byte: row.get(10)?,
        signature: row.get(11)?,
        docstring: row.get(12)?,
        parse_status: coded(row, 17, &STATUSES)?,
        file_hash: hash(row, 16)?,
        test: flags & FLAG_TEST != 0,
        generated: flags & FLAG_GENERATED != 0,
        minified: flags & FLAG_MINIFIED != 0,
        deprioritized: flags & FLAG_DEPRIORITIZED != 0,
    })
}

/// Returns a path as it stands in a URI; everything but plain characters is escaped.
pub(super) fn uri_path(path: &Path) -> String {
    let mut uri = String::new();
    for &byte in path.as_os_str().as_encoded_bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'-' | b'_' | b'.' | b'~') {
            uri.push(char::from(byte));
        } else {
            uri.push_str(&format!("%{byte:02x}"));
        }
    }
    uri
}
