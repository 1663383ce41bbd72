//! Finding what rows refer to: the nodes that edges lead to, and the numbers of names.
//!
//! Must not write but new names. Invariant: what the parent knows keeps its number.

use std::collections::{BTreeMap, HashMap, HashSet};

use rusqlite::{Connection, OptionalExtension, params};

use crate::model::{DefinitionKey, RepoPath, Target};
use crate::store::error::{Result, sqlite};
use crate::store::layout::FileNodes;
use crate::store::rows::{Names, Targets};

/// Where the nodes of a file are that does not change.
pub(super) struct Unchanged {
    /// `None` when the generation does not include it.
    pub range: Option<(i64, i64)>,
    pub keys: HashMap<DefinitionKey, Option<i64>>,
}

/// Finds nodes of files that change and of others.
pub(super) struct AllTargets<'a, 'c> {
    pub connection: &'c Connection,
    pub after: HashMap<&'a str, FileNodes<'a>>,
    /// Paths that have no node any more.
    pub gone: HashSet<&'a str>,
    pub unchanged: HashMap<RepoPath, Unchanged>,
}

impl Targets for AllTargets<'_, '_> {
    fn node(&mut self, target: &Target) -> Result<Option<i64>> {
        if let Some(nodes) = self.after.get(target.file.as_str()) {
            return Ok(match &target.definition {
                None => Some(nodes.node),
                Some(key) => nodes.keys.get(key).copied(),
            });
        }
        if self.gone.contains(target.file.as_str()) {
            return Ok(None);
        }
        if !self.unchanged.contains_key(&target.file) {
            let sql = "SELECT id, last FROM files WHERE path = ?1 AND omitted IS NULL";
            let mut statement = self.connection.prepare_cached(sql).map_err(sqlite("find a file"))?;
            let range = statement.query_row([target.file.as_str()], |row| Ok((row.get(0)?, row.get(1)?))).optional();
            let range = range.map_err(sqlite("find a file"))?;
            self.unchanged.insert(target.file.clone(), Unchanged { range, keys: HashMap::new() });
        }
        let Some(Unchanged { range: Some((node, last)), keys }) = self.unchanged.get_mut(&target.file) else { return Ok(None) };
        let Some(key) = &target.definition else { return Ok(Some(*node)) };
        if let Some(found) = keys.get(key) {
            return Ok(*found);
        }
        let found = find_definition(self.connection, (*node, *last), key)?;
        keys.insert(key.clone(), found);
        Ok(found)
    }
}

/// Finds a definition among the nodes of a file: by its name, which has an index, else among all of them.
fn find_definition(connection: &Connection, (node, last): (i64, i64), key: &DefinitionKey) -> Result<Option<i64>> {
    let name = key.qualified.rsplit('.').next().unwrap_or_default();
    let named = "SELECT id FROM code_nodes WHERE name = ?4 COLLATE NOCASE AND id > ?1 AND id <= ?2
         AND ordinal = ?3 AND ifnull(qualified, name) = ?5";
    let any = "SELECT id FROM code_nodes WHERE id > ?1 AND id <= ?2 AND ordinal = ?3 AND ifnull(qualified, name) = ?5 AND ?4 IS NOT NULL";
    for sql in [named, any] {
        let mut statement = connection.prepare_cached(sql).map_err(sqlite("find a definition"))?;
        let found = statement.query_row(params![node, last, key.ordinal, name, key.qualified.as_ref()], |row| row.get(0));
        if let Some(found) = found.optional().map_err(sqlite("find a definition"))? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// The names of the parent, and those that the change adds.
pub(super) struct KnownNames<'c> {
    pub connection: &'c Connection,
    pub ids: HashMap<Box<str>, i64>,
    pub next: i64,
    /// By how many the references without a resolved edge change.
    pub unresolved: BTreeMap<i64, i64>,
}

impl Names for KnownNames<'_> {
    fn id(&mut self, text: &str) -> Result<i64> {
        if let Some(id) = self.ids.get(text) {
            return Ok(*id);
        }
        let mut statement =
            self.connection.prepare_cached("SELECT id FROM names WHERE text = ?1").map_err(sqlite("find a name"))?;
        let found: Option<i64> = statement.query_row([text], |row| row.get(0)).optional().map_err(sqlite("find a name"))?;
        let id = match found {
            Some(id) => id,
            None => {
                let id = self.next;
                self.next += 1;
                let mut insert =
                    self.connection.prepare_cached("INSERT INTO names VALUES (?1, ?2, 0)").map_err(sqlite("load names"))?;
                insert.execute(params![id, text]).map_err(sqlite("load names"))?;
                id
            }
        };
        self.ids.insert(Box::from(text), id);
        Ok(id)
    }
}
