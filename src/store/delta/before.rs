//! What the parent says of the files that change or go.
//!
//! Must not know what they are now. Invariant: rows come sorted by their keys, as those of [`super::rows`] are made.

use std::collections::HashMap;
use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, Row};

use crate::model::{DefinitionKey, ParseStatus, RepoPath};
use crate::store::error::{Result, damaged, sqlite};
use crate::store::reader::STATUSES;
use crate::store::rows::{DiagnosticValues, EdgeValues, NodeValues};

/// The rows that the parent has of a file.
pub(super) struct Before {
    pub id: i64,
    pub included: bool,
    pub status: ParseStatus,
    pub language: Option<String>,
    pub failed: bool,
    /// The file's own node and its definitions, by id.
    pub nodes: Vec<NodeValues<Box<str>>>,
    pub keys: HashMap<DefinitionKey, i64>,
    pub headings: Vec<(u32, u8, Box<str>)>,
    pub edges: Vec<EdgeValues>,
    pub diagnostics: Vec<DiagnosticValues>,
}

pub(super) fn edge_values(row: &Row<'_>) -> rusqlite::Result<EdgeValues> {
    let mut values = [0; 8];
    for (column, value) in values.iter_mut().enumerate() {
        *value = row.get(column)?;
    }
    Ok(values)
}

fn diagnostic_values(row: &Row<'_>) -> rusqlite::Result<DiagnosticValues> {
    let mut values = [0; 7];
    for (column, value) in values.iter_mut().enumerate() {
        *value = row.get(column)?;
    }
    Ok(values)
}

fn node_values(row: &Row<'_>) -> rusqlite::Result<NodeValues<Box<str>>> {
    Ok(NodeValues {
        id: row.get(0)?,
        symbol: row.get(1)?,
        kind: row.get(2)?,
        name: row.get(3)?,
        qualified: row.get(4)?,
        ordinal: row.get(5)?,
        parent: row.get(6)?,
        start_line: row.get(7)?,
        end_line: row.get(8)?,
        name_line: row.get(9)?,
        start_byte: row.get(10)?,
        end_byte: row.get(11)?,
        signature: row.get(12)?,
        docstring: row.get(13)?,
    })
}

/// Reads all rows of a file; `None` when the parent does not know the path.
pub(super) fn read_before(connection: &Connection, path: &RepoPath) -> Result<Option<Before>> {
    let sql = "SELECT id, last, omitted IS NULL, parse_status, language, failure IS NOT NULL FROM files WHERE path = ?1";
    let mut statement = connection.prepare_cached(sql).map_err(sqlite("read a file"))?;
    type FileValues = (i64, i64, bool, Option<i64>, Option<String>, bool);
    let found = statement
        .query_row([path.as_str()], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?, row.get(5)?)));
    let found: Option<FileValues> = found.optional().map_err(sqlite("read a file"))?;
    let Some((id, last, included, status, language, failed)) = found else { return Ok(None) };
    let mut before = Before {
        id,
        included,
        status: ParseStatus::Unsupported,
        language,
        failed,
        nodes: Vec::new(),
        keys: HashMap::new(),
        headings: Vec::new(),
        edges: Vec::new(),
        diagnostics: Vec::new(),
    };
    if !included {
        return Ok(Some(before));
    }
    let known = status.and_then(|status| STATUSES.get(usize::try_from(status).ok()?));
    before.status = *known.ok_or_else(|| damaged("a file"))?;
    let range = (id, last);
    before.nodes = read_rows(
        connection,
        "SELECT id, symbol, kind, name, qualified, ordinal, parent, start_line, end_line, name_line, start_byte, end_byte, signature,
         docstring FROM code_nodes WHERE id BETWEEN ?1 AND ?2 ORDER BY id",
        range,
        node_values,
    )?;
    for node in before.nodes.iter().filter(|node| node.id != id) {
        let qualified = Arc::from(node.qualified.as_deref().unwrap_or(&node.name));
        let ordinal = u32::try_from(node.ordinal).map_err(|_| damaged("a node"))?;
        before.keys.insert(DefinitionKey { qualified, ordinal }, node.id);
    }
    before.edges = read_rows(
        connection,
        "SELECT source, line, col, kind, target, resolution, rule, name FROM code_edges WHERE source BETWEEN ?1 AND ?2
         ORDER BY source, line, col, kind, target",
        range,
        edge_values,
    )?;
    before.diagnostics = read_rows(
        connection,
        "SELECT source, line, col, kind, reason, name, candidates FROM diagnostics WHERE source BETWEEN ?1 AND ?2
         ORDER BY source, line, col, kind, reason",
        range,
        diagnostic_values,
    )?;
    before.headings = read_rows(
        connection,
        "SELECT line, level, text FROM headings WHERE file BETWEEN ?1 AND ?2 ORDER BY line",
        (id, id),
        |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
    )?;
    Ok(Some(before))
}

fn read_rows<T>(
    connection: &Connection,
    sql: &str,
    (first, last): (i64, i64),
    read: impl Fn(&Row<'_>) -> rusqlite::Result<T>,
) -> Result<Vec<T>> {
    let rows = || {
        let mut statement = connection.prepare_cached(sql)?;
        statement.query_map([first, last], |row| read(row))?.collect::<rusqlite::Result<Vec<T>>>()
    };
    rows().map_err(sqlite("read a file"))
}
