//! References as rows: the edges and the diagnostics of a stretch of files.
//!
//! Must not know what a reason means. Invariant: a file that could not be parsed has one diagnostic, at its beginning, beside those of
//! references.

use std::collections::HashMap;
use std::sync::Arc;

use rusqlite::types::Value;

use crate::model::{EdgeKind, PathPrefix, Reason};

use super::super::error::{Result, StoreError, damaged};
use super::{DiagnosticRow, EDGE, EdgeRow, Generation, NodeId, TARGETS_NAME, Within, coded, edge_row};

/// What the references of one file came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileReferences {
    /// Without `contains`, by line, column, kind and target; each with the name of what it points to, which an alias is not.
    pub edges: Vec<(EdgeRow, Arc<str>)>,
    /// By line, column and kind.
    pub diagnostics: Vec<DiagnosticRow>,
}

impl Generation {
    /// Visits all diagnostics by path, line, column and kind.
    pub fn each_diagnostic(&self, visit: &mut dyn FnMut(&DiagnosticRow) -> std::io::Result<()>) -> Result<()> {
        let mut failures = self.failures()?;
        for (first, last) in self.ranges()? {
            for diagnostic in &self.diagnostics(first, last, failures.remove(&first))? {
                visit(diagnostic).map_err(|source| StoreError::Receiver { source })?;
            }
        }
        Ok(())
    }

    /// Returns the diagnostics of the file whose nodes these are, and what is to be said of it as a whole, by line, column and kind.
    fn diagnostics(&self, first: i64, last: i64, failure: Option<DiagnosticRow>) -> Result<Vec<DiagnosticRow>> {
        let sql = "SELECT d.source, d.kind, d.reason, f.path, d.line + n.start_line, d.col, d.candidates, d.name
             FROM diagnostics d JOIN code_nodes n ON n.id = d.source JOIN files f ON f.id = n.file
             WHERE d.source BETWEEN ?1 AND ?2";
        let rows = self.rows("read diagnostics", sql, [Value::Integer(first), Value::Integer(last)], |row| {
            let diagnostic = DiagnosticRow {
                source: NodeId(row.get(0)?),
                kind: coded(row, 1, EdgeKind::ALL)?,
                reason: coded(row, 2, Reason::ALL)?,
                path: row.get(3)?,
                line: row.get(4)?,
                column: row.get(5)?,
                name: Arc::from(""),
                candidates: row.get(6)?,
            };
            Ok((diagnostic, row.get(7)?))
        })?;
        let mut diagnostics = Vec::with_capacity(rows.len());
        for (diagnostic, name) in rows {
            diagnostics.push(DiagnosticRow { name: self.name(name)?, ..diagnostic });
        }
        diagnostics.extend(failure);
        diagnostics.sort_by_key(|row| (row.line, row.column, row.kind, row.reason, row.source));
        Ok(diagnostics)
    }

    /// Returns the diagnostics of the files below a prefix by path, line, column and kind, at most `limit`, and how many there are.
    pub fn diagnostics_below(&self, prefix: &PathPrefix, limit: usize) -> Result<(Vec<DiagnosticRow>, u64)> {
        let mut failures = self.failures()?;
        failures.retain(|_, failure| prefix.matches(&failure.path));
        let Some((first, last)) = self.range(prefix)? else { return Ok((Vec::new(), 0)) };
        let sql = "SELECT count(*) FROM diagnostics WHERE source BETWEEN ?1 AND ?2";
        let total = self.count("count diagnostics", sql, [Value::Integer(first), Value::Integer(last)])? + failures.len() as u64;
        let mut found = Vec::new();
        for (first, last) in self.ranges_below(prefix)? {
            if found.len() >= limit {
                break;
            }
            found.extend(self.diagnostics(first, last, failures.remove(&first))?);
        }
        found.truncate(limit);
        Ok((found, total))
    }

    /// Returns what the references of each file below a prefix came to, by path; files without any are left out. `visit` says whether
    /// to go on.
    pub fn references_below(&self, prefix: &PathPrefix, visit: &mut dyn FnMut(FileReferences) -> Result<bool>) -> Result<()> {
        let mut failures = self.failures()?;
        for (first, last) in self.ranges_below(prefix)? {
            let references = FileReferences {
                edges: self.named_edges(first, last)?,
                diagnostics: self.diagnostics(first, last, failures.remove(&first))?,
            };
            if references != FileReferences::default() && !visit(references)? {
                break;
            }
        }
        Ok(())
    }

    fn named_edges(&self, first: i64, last: i64) -> Result<Vec<(EdgeRow, Arc<str>)>> {
        let sql = format!(
            "SELECT {EDGE} FROM code_edges e JOIN code_nodes n ON n.id = e.source JOIN files f ON f.id = n.file
             JOIN code_nodes t ON t.id = e.target WHERE e.source BETWEEN ?1 AND ?2 AND e.kind != ?3"
        );
        let values = [Value::Integer(first), Value::Integer(last), Value::Integer(EdgeKind::Contains as i64)];
        let rows = self.rows("read edges", &sql, values, |row| {
            Ok((edge_row(row)?, row.get(4)?, row.get::<_, i64>(8)?, row.get::<_, Arc<str>>(9)?))
        })?;
        let mut edges = Vec::with_capacity(rows.len());
        for (edge, rule, name, target) in rows {
            let name = if name == TARGETS_NAME { Arc::clone(&target) } else { self.name(name)? };
            edges.push((EdgeRow { rule: self.name(rule)?, name, ..edge }, target));
        }
        edges.sort_by_key(|(edge, _)| (edge.line, edge.column, edge.kind, edge.target, edge.source));
        Ok(edges)
    }

    /// Returns the first and the last node of each file below a prefix, by path.
    fn ranges_below(&self, prefix: &PathPrefix) -> Result<Vec<(i64, i64)>> {
        let within = Within::new(prefix);
        let sql = format!("SELECT f.id, f.last FROM files f WHERE f.omitted IS NULL {} ORDER BY f.id", within.condition(1));
        self.rows("find files", &sql, within.values(), |row| Ok((row.get(0)?, row.get(1)?)))
    }

    /// Returns whether a file, or one below a folder, is in the generation and was not left out; the empty prefix is there always.
    pub fn holds(&self, prefix: &PathPrefix) -> Result<bool> {
        Ok(prefix.as_str().is_empty() || self.range(prefix)?.is_some())
    }

    /// Returns what is to be said of the files that could not be parsed, each at its beginning, by their nodes.
    fn failures(&self) -> Result<HashMap<i64, DiagnosticRow>> {
        let mut failures = HashMap::new();
        for file in self.failed_files()? {
            let Some(source) = file.node else { return Err(damaged("a failed file")) };
            let word = file.failure.as_deref().and_then(|failure| failure.split(' ').next());
            let reason = word.and_then(Reason::parse).ok_or_else(|| damaged("a failed file"))?;
            let name = Arc::from(file.path.rsplit('/').next().unwrap_or_default());
            let (kind, path) = (EdgeKind::Contains, file.path);
            failures.insert(source.0, DiagnosticRow { source, kind, reason, path, line: 1, column: 0, name, candidates: 0 });
        }
        Ok(failures)
    }
}
