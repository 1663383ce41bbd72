//! What a delta does to the tables: the difference between the rows that were and those that are.
//!
//! Must not know why a row differs. Invariant: a row that stays the same is not touched.

use rusqlite::Connection;

use crate::store::content::ContentFile;
use crate::store::error::{Result, sqlite};
use crate::store::rows::{self, DiagnosticValues, Document, EdgeValues, NodeValues};
use crate::store::writer;

use super::before::Before;

/// The rows of one file as it is now; none of a file that is left out.
#[derive(Default)]
pub(super) struct Rows<'a> {
    pub nodes: Vec<NodeValues<&'a str>>,
    pub edges: Vec<EdgeValues>,
    pub diagnostics: Vec<DiagnosticValues>,
}

/// What is to be done to the tables: all that goes first, then all that comes, since ids are used again.
#[derive(Default)]
pub(super) struct Edits<'a> {
    old_nodes: Vec<i64>,
    old_documents: Vec<i64>,
    pub old_edges: Vec<EdgeValues>,
    old_diagnostics: Vec<DiagnosticValues>,
    /// Files whose headings go.
    old_headings: Vec<i64>,
    /// With the file.
    new_nodes: Vec<(i64, NodeValues<&'a str>)>,
    /// Nodes of which only the place changes.
    moved_nodes: Vec<NodeValues<&'a str>>,
    new_documents: Vec<(i64, Document)>,
    pub new_edges: Vec<EdgeValues>,
    new_diagnostics: Vec<DiagnosticValues>,
    new_headings: Vec<(i64, &'a ContentFile)>,
}

impl<'a> Edits<'a> {
    /// Notes how the rows of one file differ from what they were. It comes or goes when one of both is `None`.
    pub fn compare(&mut self, file: Option<&'a ContentFile>, before: Option<&Before>, rows: Rows<'a>) {
        self.compare_headings(file, before, &rows);
        self.compare_nodes(file, before, rows.nodes);
        let (old_edges, old_diagnostics) =
            before.map_or((&[][..], &[][..]), |before| (&before.edges[..], &before.diagnostics[..]));
        compare_sorted(old_edges, &rows.edges, &mut self.old_edges, &mut self.new_edges);
        compare_sorted(old_diagnostics, &rows.diagnostics, &mut self.old_diagnostics, &mut self.new_diagnostics);
    }

    fn compare_nodes(&mut self, file: Option<&'a ContentFile>, before: Option<&Before>, nodes: Vec<NodeValues<&'a str>>) {
        let of_file = nodes.first().map(|node| node.id);
        let mut old = before.map_or(&[][..], |before| &before.nodes).iter().map(NodeValues::borrow).peekable();
        let failed = before.is_some_and(|before| before.failed) || file.is_some_and(|file| file.words.is_some());
        let old_headings = before.map_or(&[][..], |before| &before.headings).iter().map(|(_, _, text)| &**text);
        for node in nodes {
            while let Some(gone) = old.next_if(|old| old.id < node.id) {
                self.old_nodes.push(gone.id);
                self.old_documents.push(gone.id);
            }
            let own = of_file == Some(node.id);
            let same_id = old.next_if(|old| old.id == node.id);
            let found_alike = same_id.as_ref().is_some_and(|old| {
                old.is_found_alike(&node)
                    && (!own || !failed && file.is_some_and(|file| headings_of(file).eq(old_headings.clone())))
            });
            if !found_alike && let Some(file) = file {
                if same_id.is_some() {
                    self.old_documents.push(node.id);
                }
                let mut document = Document::default();
                if own {
                    rows::file_document(&file.entry.path, headings_of(file), file.words.as_deref(), &mut document);
                } else {
                    rows::definition_document(&file.entry.path, &node, &mut document);
                }
                self.new_documents.push((node.id, document));
            }
            match same_id {
                Some(old) if old == node => {}
                Some(old) if old.says_the_same(&node) => self.moved_nodes.push(node),
                old => {
                    self.old_nodes.extend(old.map(|old| old.id));
                    self.new_nodes.push((of_file.unwrap_or(node.id), node));
                }
            }
        }
        for gone in old {
            self.old_nodes.push(gone.id);
            self.old_documents.push(gone.id);
        }
    }

    fn compare_headings(&mut self, file: Option<&'a ContentFile>, before: Option<&Before>, rows: &Rows<'a>) {
        let old = before.map_or(&[][..], |before| &before.headings);
        // Of several on a line the first one stands in the table.
        let headings = file.and_then(|file| file.facts.as_deref()).map_or(&[][..], |facts| &facts.headings);
        let mut new: Vec<(u32, u8, &str)> =
            headings.iter().map(|heading| (heading.line, heading.level, &*heading.text)).collect();
        new.sort_by_key(|(line, ..)| *line);
        new.dedup_by_key(|(line, ..)| *line);
        let same = old.iter().map(|(line, level, text)| (*line, *level, &**text)).eq(new.iter().copied());
        if same {
            return;
        }
        self.old_headings.extend(before.filter(|_| !old.is_empty()).map(|before| before.id));
        if let (Some(file), Some(own)) = (file, rows.nodes.first()) {
            self.new_headings.push((own.id, file));
        }
    }

    pub fn run(mut self, connection: &Connection) -> Result<()> {
        // In the order of their keys, so that neighbours are written together and postings are gathered in one run.
        self.old_documents.sort_unstable();
        self.new_documents.sort_unstable_by_key(|(id, _)| *id);
        self.old_edges.sort_unstable();
        self.new_edges.sort_unstable();
        let prepare = |sql: &str| connection.prepare(sql).map_err(sqlite("write a delta"));
        let failed = || sqlite("write a delta");
        let mut remove = prepare("DELETE FROM code_search_fts WHERE rowid = ?1")?;
        self.old_documents.iter().try_for_each(|id| remove.execute([id]).map(drop)).map_err(failed())?;
        let mut remove = prepare("DELETE FROM headings WHERE file = ?1")?;
        self.old_headings.iter().try_for_each(|id| remove.execute([id]).map(drop)).map_err(failed())?;
        let key = "source = ?1 AND line = ?2 AND col = ?3 AND kind = ?4";
        let mut remove = prepare(&format!("DELETE FROM code_edges WHERE {key} AND target = ?5"))?;
        for [source, line, column, kind, target, ..] in &self.old_edges {
            remove.execute([source, line, column, kind, target]).map_err(failed())?;
        }
        let mut remove = prepare(&format!("DELETE FROM diagnostics WHERE {key} AND reason = ?5"))?;
        for [source, line, column, kind, reason, ..] in &self.old_diagnostics {
            remove.execute([source, line, column, kind, reason]).map_err(failed())?;
        }
        let mut remove = prepare("DELETE FROM code_nodes WHERE id = ?1")?;
        self.old_nodes.iter().try_for_each(|id| remove.execute([id]).map(drop)).map_err(failed())?;

        let mut insert = prepare(writer::INSERT_NODE)?;
        self.new_nodes.iter().try_for_each(|(file, node)| writer::insert_node(&mut insert, *file, node))?;
        let mut update = prepare(
            "UPDATE code_nodes SET start_line = ?2, end_line = ?3, name_line = ?4, start_byte = ?5, end_byte = ?6 WHERE id = ?1",
        )?;
        let mut name = prepare("UPDATE code_nodes SET symbol = ?2 WHERE id = ?1 AND symbol <> ?2")?;
        for node in &self.moved_nodes {
            let NodeValues { id, start_line, end_line, name_line, start_byte, end_byte, .. } = *node;
            update.execute([id, start_line, end_line, name_line, start_byte, end_byte]).map_err(failed())?;
            name.execute([id, node.symbol]).map_err(failed())?;
        }
        let mut insert = prepare(writer::INSERT_EDGE)?;
        self.new_edges.iter().try_for_each(|row| insert.execute(*row).map(drop)).map_err(failed())?;
        let mut insert = prepare(writer::INSERT_DIAGNOSTIC)?;
        self.new_diagnostics.iter().try_for_each(|row| insert.execute(*row).map(drop)).map_err(failed())?;
        let mut insert = prepare(writer::INSERT_HEADING)?;
        self.new_headings.iter().try_for_each(|(id, file)| writer::insert_headings(&mut insert, file, *id))?;
        let mut insert = prepare(writer::INSERT_DOCUMENT)?;
        self.new_documents.iter_mut().try_for_each(|(id, document)| writer::insert_document(&mut insert, *id, document))
    }
}

fn headings_of(file: &ContentFile) -> impl Iterator<Item = &str> {
    file.facts.as_deref().map_or(&[][..], |facts| &facts.headings).iter().map(|heading| &*heading.text)
}

/// Finds what is only in one of two sorted lists.
fn compare_sorted<T: Ord + Copy>(old: &[T], new: &[T], only_old: &mut Vec<T>, only_new: &mut Vec<T>) {
    let (mut old, mut new) = (old.iter().peekable(), new.iter().peekable());
    loop {
        match (old.peek(), new.peek()) {
            (None, None) => return,
            (Some(left), right) if right.is_none_or(|right| left < right) => only_old.extend(old.next()),
            (left, Some(right)) if left.is_none_or(|left| right < left) => only_new.extend(new.next()),
            _ => {
                old.next();
                new.next();
            }
        }
    }
}
