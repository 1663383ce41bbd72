//! Writing a generation as what differs from its parent: the rows of the files that changed, laid over the database of the parent.
//!
//! Must not know where the database stands. Invariant: the rows that come out are those that a bulk load of the same content would write,
//! but for their ids, whose order is the same; what does not close is an error, and what does not fit between the ids is `None`.

mod before;
mod edits;
mod lookup;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

use rusqlite::{Connection, OptionalExtension, params};

use super::content::{Change, ContentFile, ObjectRef};
use super::durable::{self, Part, Step};
use super::error::{Result, io, sqlite};
use super::layout::FileNodes;
use super::reader::{Coverage, Meta, Totals};
use super::rows::{self, Tally, inconsistent};
use super::{overlay, sources, writer};
use crate::model::{ContentHash, RepoPath};

use before::{Before, edge_values, read_before};
use edits::{Edits, Rows};
use lookup::{AllTargets, KnownNames};

/// What a delta came to.
#[derive(Debug)]
pub(super) struct Written {
    pub coverage: Coverage,
    pub totals: Totals,
    /// The packs that hold the sources of the whole generation, sorted.
    pub packs: Vec<u64>,
    /// Whether sources stand elsewhere than the parent or the change said.
    pub moved_sources: bool,
}

/// Lays a change over a database that is a second name of its parent's, whose overlay stands beside it. Forces the overlay to the disk.
pub(super) fn write(database: &Path, packs: &Path, change: &Change) -> Result<Option<Written>> {
    let overlay = overlay::beside(database);
    let pass = |step| durable::pass_database(Part::Overlay, step, &overlay).map_err(io("write the overlay"));
    pass(Step::Open)?;
    let connection = overlay::open_for_writing(database)?;
    connection.execute_batch("BEGIN IMMEDIATE").map_err(sqlite("begin a delta"))?;
    pass(Step::Load)?;
    let mut delta = Delta::new(&connection, change)?;
    if !delta.place()? {
        return Ok(None);
    }
    delta.rewrite()?;
    let (packs, moved_sources) = settle_sources(&connection, packs)?;
    let (coverage, totals) = delta.finish()?;
    pass(Step::Commit)?;
    connection.execute_batch("COMMIT").map_err(sqlite("finish"))?;
    connection.close().map_err(|(_, error)| sqlite("close")(error))?;
    durable::sync_database(Part::Overlay, &overlay).map_err(io("write the overlay to disk"))?;
    Ok(Some(Written { coverage, totals, packs, moved_sources }))
}

/// Returns the packs that the files need, and puts those together that have become too many; then sources stand elsewhere.
fn settle_sources(connection: &Connection, directory: &Path) -> Result<(Vec<u64>, bool)> {
    let read = || -> rusqlite::Result<Vec<u64>> {
        let mut statement = connection.prepare("SELECT DISTINCT pack FROM files WHERE pack IS NOT NULL ORDER BY pack")?;
        let packs = statement.query_map([], |row| row.get::<_, i64>(0).map(i64::cast_unsigned))?;
        packs.collect()
    };
    let packs = || -> Result<Vec<u64>> {
        let mut packs = read().map_err(sqlite("read packs"))?;
        packs.sort_unstable();
        Ok(packs)
    };
    let found = packs()?;
    if found.len() <= sources::MANY_PACKS {
        return Ok((found, false));
    }
    let objects = || -> rusqlite::Result<BTreeMap<ContentHash, ObjectRef>> {
        let mut statement = connection.prepare("SELECT hash, pack, offset, size FROM files WHERE pack IS NOT NULL")?;
        let objects = statement.query_map([], |row| {
            let number = |column| row.get::<_, i64>(column).map(i64::cast_unsigned);
            Ok((ContentHash(row.get(0)?), ObjectRef { pack: number(1)?, offset: number(2)?, length: number(3)? }))
        })?;
        objects.collect()
    };
    let moved = sources::compact(directory, &objects().map_err(sqlite("read packs"))?)?;
    let update = || -> rusqlite::Result<()> {
        let mut statement = connection.prepare("SELECT id, hash FROM files WHERE pack IS NOT NULL")?;
        let files: Vec<(i64, [u8; 32])> =
            statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<rusqlite::Result<_>>()?;
        let mut update = connection.prepare("UPDATE files SET pack = ?2, offset = ?3 WHERE id = ?1")?;
        for (id, hash) in files {
            if let Some(place) = moved.get(&ContentHash(hash)) {
                update.execute([id, place.pack.cast_signed(), place.offset.cast_signed()])?;
            }
        }
        Ok(())
    };
    update().map_err(sqlite("move sources"))?;
    Ok((packs()?, !moved.is_empty()))
}

struct Delta<'a, 'c> {
    connection: &'c Connection,
    change: &'a Change,
    /// The files of the parent that change or go, by path.
    before: HashMap<&'a str, Before>,
    targets: AllTargets<'a, 'c>,
    names: KnownNames<'c>,
    meta: Meta,
}

impl<'a, 'c> Delta<'a, 'c> {
    fn new(connection: &'c Connection, change: &'a Change) -> Result<Self> {
        if change.files.windows(2).any(|pair| pair[0].entry.path >= pair[1].entry.path) {
            return Err(inconsistent("the change is not sorted".to_owned()));
        }
        let meta = Meta::read(connection)?;
        let next = connection
            .query_row("SELECT ifnull(max(id), 0) + 1 FROM names", [], |row| row.get(0))
            .map_err(sqlite("count names"))?;
        let mut before = HashMap::new();
        let paths = change.files.iter().map(|file| &file.entry.path).chain(&change.removed);
        for path in paths {
            if let Some(found) = read_before(connection, path)? {
                before.insert(path.as_str(), found);
            }
        }
        let gone =
            change.files.iter().filter(|file| !writer::is_included(file)).map(|file| &file.entry.path).chain(&change.removed);
        Ok(Self {
            connection,
            change,
            before,
            targets: AllTargets {
                connection,
                after: HashMap::new(),
                gone: gone.map(RepoPath::as_str).collect(),
                unchanged: HashMap::new(),
            },
            names: KnownNames { connection, ids: HashMap::new(), next, unresolved: BTreeMap::new() },
            meta,
        })
    }

    /// Gives every file of the change its ids and its row. Returns false when there is no room for them.
    fn place(&mut self) -> Result<bool> {
        let connection = self.connection;
        let mut remove = connection.prepare("DELETE FROM files WHERE id = ?1").map_err(sqlite("remove files"))?;
        for path in &self.change.removed {
            let before = self.before.get(path.as_str()).ok_or_else(|| inconsistent(format!("{path} goes and was not there")))?;
            remove.execute([before.id]).map_err(sqlite("remove files"))?;
        }
        let sql = writer::INSERT_FILE.replacen("INSERT", "INSERT OR REPLACE", 1);
        let mut replace = connection.prepare(&sql).map_err(sqlite("load files"))?;
        let ask = |sql: &str, value: &dyn rusqlite::ToSql| -> Result<Option<i64>> {
            let mut statement = connection.prepare_cached(sql).map_err(sqlite("find room"))?;
            statement.query_row([value], |row| row.get(0)).optional().map_err(sqlite("find room"))
        };
        let nothing = HashMap::new();
        for file in &self.change.files {
            let path = file.entry.path.as_str();
            let definitions = file.facts.as_deref().map_or(&[][..], |facts| &facts.definitions);
            let definitions = if writer::is_included(file) { definitions } else { &[] };
            let placed = match self.before.get(path) {
                Some(before) => {
                    let end = ask("SELECT id FROM files WHERE id > ?1 ORDER BY id LIMIT 1", &before.id)?;
                    FileNodes::revise(before.id, definitions, &before.keys, end.unwrap_or(i64::MAX >> 1))
                }
                None => {
                    let last = ask("SELECT last FROM files WHERE path < ?1 ORDER BY path DESC LIMIT 1", &path)?;
                    let end = ask("SELECT id FROM files WHERE path > ?1 ORDER BY path LIMIT 1", &path)?;
                    FileNodes::insert(last.unwrap_or(0), definitions, end)
                }
            };
            let Some(nodes) = placed else { return Ok(false) };
            let node = nodes.node;
            let included = writer::is_included(file).then_some(&nodes);
            writer::insert_file(&mut replace, file, node, included, &nothing)?;
            if writer::is_included(file) {
                self.targets.after.insert(path, nodes);
            }
        }
        Ok(true)
    }

    /// Brings the rows of all files of the change, and of edges that lead to them, from what they were to what they are.
    fn rewrite(&mut self) -> Result<()> {
        let mut edits = Edits::default();
        self.follow_moved(&mut edits)?;
        for path in &self.change.removed {
            if let Some(before) = self.before.remove(path.as_str()) {
                self.forget(&before);
                edits.compare(None, Some(&before), Rows::default());
            }
        }
        for file in &self.change.files {
            let path = file.entry.path.as_str();
            let before = self.before.remove(path);
            if let Some(before) = &before {
                self.forget(before);
            }
            let rows = self.rows_of(file)?;
            edits.compare(Some(file), before.as_ref(), rows);
        }
        edits.run(self.connection)
    }

    /// Edges of files that do not change follow the definitions whose ids move. Every definition that goes must have been let go by all
    /// others.
    fn follow_moved(&self, edits: &mut Edits<'a>) -> Result<()> {
        let own: HashSet<i64> = self.before.values().flat_map(|before| before.nodes.iter().map(|node| node.id)).collect();
        let sql = "SELECT source, line, col, kind, target, resolution, rule, name FROM code_edges WHERE target = ?1";
        let mut incoming = self.connection.prepare(sql).map_err(sqlite("read edges"))?;
        for (path, before) in &self.before {
            let after = self.targets.after.get(path);
            let of_file = before.included.then_some((before.id, after.map(|nodes| nodes.node)));
            let of_keys = before.keys.iter().map(|(key, id)| (*id, after.and_then(|nodes| nodes.keys.get(key).copied())));
            for (old, new) in of_file.into_iter().chain(of_keys) {
                if new == Some(old) {
                    continue;
                }
                let rows = incoming.query_map([old], edge_values).map_err(sqlite("read edges"))?;
                for row in rows {
                    let row = row.map_err(sqlite("read edges"))?;
                    if own.contains(&row[0]) {
                        continue;
                    }
                    let Some(new) = new else {
                        return Err(inconsistent(format!("an edge leads to what {path} does not define any more")));
                    };
                    edits.old_edges.push(row);
                    let mut moved = row;
                    moved[4] = new;
                    edits.new_edges.push(moved);
                }
            }
        }
        Ok(())
    }

    /// Takes a file of the parent out of the counts.
    fn forget(&mut self, before: &Before) {
        let coverage = &mut self.meta.coverage;
        if !before.included {
            coverage.skipped_files = coverage.skipped_files.saturating_sub(1);
            return;
        }
        coverage.uncount(before.status, before.language.as_deref());
        let totals = &mut self.meta.totals;
        // The first is the file itself.
        totals.definitions -= before.nodes.len().saturating_sub(1) as u64;
        totals.edges -= before.edges.len() as u64;
        totals.diagnostics -= before.diagnostics.len() as u64;
        let unresolved = &mut self.names.unresolved;
        let tally = Tally::of(&before.edges, &before.diagnostics, |name| *unresolved.entry(name).or_default() -= 1);
        coverage.resolved_references -= tally.resolved;
        coverage.candidate_references -= tally.candidate;
        coverage.unresolved_references -= tally.unresolved;
    }

    /// Makes the rows of a file as it is now, and counts it.
    fn rows_of(&mut self, file: &'a ContentFile) -> Result<Rows<'a>> {
        writer::count_file(&mut self.meta.coverage, file);
        // It is put back: its own edges may lead to it.
        let Some(nodes) = self.targets.after.get(file.entry.path.as_str()).cloned() else { return Ok(Rows::default()) };
        let edges = rows::edges(file, &nodes, &mut self.names, &mut self.targets)?;
        let diagnostics = rows::diagnostics(file, &nodes, &mut self.names)?;
        let totals = &mut self.meta.totals;
        totals.definitions += nodes.definitions.len() as u64;
        totals.edges += edges.len() as u64;
        totals.diagnostics += diagnostics.len() as u64;
        let unresolved = &mut self.names.unresolved;
        let tally = Tally::of(&edges, &diagnostics, |name| *unresolved.entry(name).or_default() += 1);
        let coverage = &mut self.meta.coverage;
        coverage.resolved_references += tally.resolved;
        coverage.candidate_references += tally.candidate;
        coverage.unresolved_references += tally.unresolved;
        Ok(Rows { nodes: rows::nodes(file, &nodes)?, edges, diagnostics })
    }

    fn finish(mut self) -> Result<(Coverage, Totals)> {
        let update = "UPDATE names SET unresolved = unresolved + ?2 WHERE id = ?1";
        let mut update = self.connection.prepare(update).map_err(sqlite("load names"))?;
        for (id, difference) in &self.names.unresolved {
            if *difference != 0 {
                update.execute([id, difference]).map_err(sqlite("load names"))?;
            }
        }
        let Meta { coverage, unrepresentable, .. } = &mut self.meta;
        coverage.skipped_files -= unrepresentable.len() as u64;
        coverage.skipped_files += self.change.unrepresentable.len() as u64;
        writer::close(coverage)?;
        let meta = Meta {
            identity: self.change.identity.clone(),
            limitations: self.change.limitations.iter().map(|word| (*word).to_owned()).collect(),
            unrepresentable: self.change.unrepresentable.clone(),
            ..self.meta
        };
        let mut update = self.connection.prepare("UPDATE meta SET value = ?2 WHERE key = ?1").map_err(sqlite("load meta"))?;
        for (key, value) in meta.encode() {
            update.execute(params![key, value]).map_err(sqlite("load meta"))?;
        }
        Ok((meta.coverage, meta.totals))
    }
}
