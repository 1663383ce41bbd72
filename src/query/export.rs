//! The export (contract §5): a whole generation as sorted JSON lines, so that two can be compared byte for byte.
//!
//! Must not know where the lines go. Invariant: one row a line, in the order of the generation's visits, fields in the contract's order.

use std::collections::HashMap;
use std::io::{self, Write};
use std::sync::Arc;

use serde::Serialize;

use crate::engine::gate::Snapshot;
use crate::model::{EdgeKind, ParseStatus, Reason, Resolution, SymbolId, SymbolKind};
use crate::store::{Generation, NodeId, StoreError};

use super::response::reference_key;

/// Why an export ended early.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    #[error("the rows cannot be written")]
    Write(#[source] io::Error),
    #[error("the index cannot be read")]
    Store(#[source] StoreError),
}

#[derive(Serialize)]
#[serde(tag = "row", rename_all = "snake_case")]
enum Row<'r> {
    Node {
        id: &'r str,
        kind: SymbolKind,
        language: &'r str,
        path: &'r str,
        name: &'r str,
        qualified_name: &'r str,
        parent_id: Option<&'r str>,
        start_line: u32,
        end_line: u32,
        name_line: u32,
        start_byte: u32,
        end_byte: u32,
        signature: Option<&'r str>,
        docstring: Option<&'r str>,
        parse_status: ParseStatus,
    },
    Edge {
        kind: EdgeKind,
        source_id: &'r str,
        target_id: &'r str,
        resolution: Resolution,
        rule_id: &'r str,
        reference_key: Option<String>,
        path: &'r str,
        line: u32,
        col_byte: u32,
        name: &'r str,
    },
    Diagnostic {
        path: &'r str,
        line: u32,
        col_byte: u32,
        name: &'r str,
        kind: EdgeKind,
        reason: Reason,
        candidates: u32,
    },
}

/// Writes all nodes, edges and diagnostics of a checked generation.
///
/// # Errors
/// [`ExportError::Write`] when `out` fails, [`ExportError::Store`] when the generation cannot be read.
pub fn write(snapshot: &Snapshot, out: &mut dyn Write) -> Result<(), ExportError> {
    write_generation(snapshot.generation(), out)
}

pub(super) fn write_generation(generation: &Generation, out: &mut dyn Write) -> Result<(), ExportError> {
    // The visits pass on only errors of the store; a failed write is kept aside and stops the rows that follow.
    let mut failed: Option<io::Error> = None;
    let mut put = |row: &Row<'_>| -> io::Result<()> {
        let written = serde_json::to_vec(row).map_err(io::Error::from).and_then(|mut line| {
            line.push(b'\n');
            out.write_all(&line)
        });
        written.map_err(|error| {
            let kind = error.kind();
            failed.get_or_insert(error);
            kind.into()
        })
    };
    let visited = visit(generation, &mut put);
    match (failed, visited) {
        (Some(error), _) => Err(ExportError::Write(error)),
        (None, visited) => visited.map_err(ExportError::Store),
    }
}

fn visit(generation: &Generation, put: &mut dyn FnMut(&Row<'_>) -> io::Result<()>) -> Result<(), StoreError> {
    let mut ids: HashMap<NodeId, Arc<str>> = HashMap::new();
    let hex = |symbol: &SymbolId| Arc::<str>::from(symbol.hex());
    generation.each_node(&mut |node| {
        ids.insert(node.id, hex(&node.symbol));
        Ok(())
    })?;
    let missing = || io::Error::other("an edge names a node that does not exist");
    generation.each_node(&mut |node| {
        put(&Row::Node {
            id: ids.get(&node.id).ok_or_else(missing)?,
            kind: node.kind,
            language: &node.language,
            path: &node.path,
            name: &node.name,
            qualified_name: &node.qualified_name,
            parent_id: node.parent.map(|parent| ids.get(&parent).map(|id| &**id).ok_or_else(missing)).transpose()?,
            start_line: node.start_line,
            end_line: node.end_line,
            name_line: node.name_line,
            start_byte: node.start_byte,
            end_byte: node.end_byte,
            signature: node.signature.as_deref(),
            docstring: node.docstring.as_deref(),
            parse_status: node.parse_status,
        })
    })?;
    generation.each_edge(&mut |edge| {
        put(&Row::Edge {
            kind: edge.kind,
            source_id: ids.get(&edge.source).ok_or_else(missing)?,
            target_id: ids.get(&edge.target).ok_or_else(missing)?,
            resolution: edge.resolution,
            rule_id: &edge.rule,
            reference_key: (edge.kind != EdgeKind::Contains).then(|| reference_key(edge)),
            path: &edge.path,
            line: edge.line,
            col_byte: edge.column,
            name: &edge.name,
        })
    })?;
    generation.each_diagnostic(&mut |diagnostic| {
        put(&Row::Diagnostic {
            path: &diagnostic.path,
            line: diagnostic.line,
            col_byte: diagnostic.column,
            name: &diagnostic.name,
            kind: diagnostic.kind,
            reason: diagnostic.reason,
            candidates: diagnostic.candidates,
        })
    })
}
