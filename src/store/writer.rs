//! Writing the database of a generation: one bulk load of sorted rows into a file that nobody reads yet.
//!
//! Must not know where the file will stand. Invariant: what is written closes: every edge has both ends, every included file its node,
//! and the counts add up; anything else is an error and nothing is published.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use rusqlite::{Connection, params};

use crate::model::graph::symbol_id;
use crate::model::{ContentHash, DefinitionKey, EdgeKind, ParseStatus, Resolution, SymbolKind, Target};
use crate::workspace::EntryState;

use super::content::{Content, ContentFile, ObjectRef};
use super::durable::{self, Step};
use super::error::{Result, StoreError, io, sqlite};
use super::reader::{Coverage, LanguageCoverage, Meta, Totals};
use super::words::append_words;

pub(super) const FLAG_TEST: i64 = 1;
pub(super) const FLAG_GENERATED: i64 = 2;
pub(super) const FLAG_MINIFIED: i64 = 4;
pub(super) const FLAG_DEPRIORITIZED: i64 = 8;

/// In place of a name's id: the reference is written as its target is named. True of nearly all edges, and takes no space.
pub(super) const TARGETS_NAME: i64 = 0;

/// Returns the leading bytes of a symbol id as an integer that sorts as they do.
pub(super) fn symbol_key(leading: [u8; 8]) -> i64 {
    (u64::from_be_bytes(leading) ^ (1 << 63)).cast_signed()
}

/// Writes the database and forces it to the disk. The objects in `moved` stand elsewhere than the content says.
pub(super) fn write(path: &Path, content: &Content, moved: &HashMap<ContentHash, ObjectRef>) -> Result<()> {
    let pass = |step| durable::pass_database(step, path).map_err(io("write the database"));
    pass(Step::Open)?;
    let connection = durable::open_database(path).map_err(sqlite("create"))?;
    connection
        .execute_batch(
            "PRAGMA page_size = 8192; PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA locking_mode = EXCLUSIVE;
             PRAGMA cache_size = -16384; PRAGMA temp_store = MEMORY; BEGIN;",
        )
        .map_err(sqlite("create"))?;
    connection.execute_batch(include_str!("schema.sql")).map_err(sqlite("create the tables"))?;
    // Postings are gathered in memory, so that few segments have to be merged.
    connection
        .execute_batch("INSERT INTO code_search_fts (code_search_fts, rank) VALUES ('hashsize', 16777216);")
        .map_err(sqlite("create the tables"))?;
    // One run of the search index in memory, written once: runs that are merged later cost time and leave holes in the file.
    connection
        .execute_batch("INSERT INTO code_search_fts (code_search_fts, rank) VALUES ('hashsize', 134217728);")
        .map_err(sqlite("create the search index"))?;
    pass(Step::Load)?;
    let mut load = Load::new(&connection, content, moved)?;
    load.rows()?;
    pass(Step::Index)?;
    connection.execute_batch(include_str!("indexes.sql")).map_err(sqlite("make the indexes"))?;
    pass(Step::Commit)?;
    // No ANALYZE: every query names its index by its form, and the statistics would be the same questions asked twice.
    connection
        .execute_batch("INSERT INTO code_search_fts (code_search_fts) VALUES ('optimize'); COMMIT;")
        .map_err(sqlite("finish"))?;
    check(&connection)?;
    connection.close().map_err(|(_, error)| sqlite("close")(error))?;
    durable::sync_database(path).map_err(io("write the database to disk"))
}

/// Asks the database itself whether its search index is whole and its rows are those that were counted.
fn check(connection: &Connection) -> Result<()> {
    connection
        .execute_batch("INSERT INTO code_search_fts (code_search_fts, rank) VALUES ('integrity-check', 0);")
        .map_err(sqlite("check the search index"))?;
    let orphans: i64 = connection
        .query_row(
            "SELECT (SELECT count(*) FROM code_nodes) - (SELECT total(nodes) FROM files)
                  + (SELECT count(*) FROM files WHERE omitted IS NULL AND node IS NULL)",
            [],
            |row| row.get::<_, f64>(0),
        )
        .map_err(sqlite("count rows"))
        .map(|count| count.abs() as i64)?;
    if orphans == 0 { Ok(()) } else { Err(inconsistent(format!("{orphans} nodes do not belong to files"))) }
}

fn inconsistent(what: String) -> StoreError {
    StoreError::Inconsistent { what }
}

/// Numbers names in the order they come.
#[derive(Default)]
struct Names<'a> {
    ids: HashMap<&'a str, i64>,
    /// Text, and how many references of it are not resolved.
    rows: Vec<(&'a str, u64)>,
}

impl<'a> Names<'a> {
    fn id(&mut self, text: &'a str) -> i64 {
        *self.ids.entry(text).or_insert_with(|| {
            self.rows.push((text, 0));
            self.rows.len() as i64
        })
    }

    fn count_unresolved(&mut self, id: i64) {
        if let Some(row) = usize::try_from(id - 1).ok().and_then(|index| self.rows.get_mut(index)) {
            row.1 += 1;
        }
    }
}

/// Where the nodes of a file are.
struct FileNodes<'a> {
    node: i64,
    /// Node of each definition, by its index in the facts.
    definitions: Vec<i64>,
    keys: HashMap<&'a DefinitionKey, i64>,
}

struct Load<'a> {
    connection: &'a Connection,
    content: &'a Content,
    moved: &'a HashMap<ContentHash, ObjectRef>,
    names: Names<'a>,
    nodes: HashMap<&'a str, FileNodes<'a>>,
    coverage: Coverage,
    totals: Totals,
}

impl<'a> Load<'a> {
    fn new(connection: &'a Connection, content: &'a Content, moved: &'a HashMap<ContentHash, ObjectRef>) -> Result<Self> {
        if content.files.windows(2).any(|pair| pair[0].entry.path >= pair[1].entry.path) {
            return Err(inconsistent("the manifest is not sorted".to_owned()));
        }
        let mut next = 1;
        let mut nodes = HashMap::new();
        for file in included(content) {
            let node = next;
            next += 1;
            let definitions = file.facts.as_deref().map_or(&[][..], |facts| &facts.definitions);
            let mut order: Vec<usize> = (0..definitions.len()).collect();
            order.sort_by_key(|&index| definitions[index].span.start);
            let mut ids = vec![0; definitions.len()];
            for index in order {
                ids[index] = next;
                next += 1;
            }
            let keys = definitions.iter().zip(&ids).map(|(definition, id)| (&definition.key, *id)).collect();
            nodes.insert(file.entry.path.as_str(), FileNodes { node, definitions: ids, keys });
        }
        Ok(Self {
            connection,
            content,
            moved,
            names: Names::default(),
            nodes,
            coverage: Coverage::default(),
            totals: Totals::default(),
        })
    }

    fn rows(&mut self) -> Result<()> {
        self.count_files();
        self.files()?;
        self.nodes()?;
        self.edges()?;
        self.diagnostics()?;
        self.search()?;
        self.finish()
    }

    fn count_files(&mut self) {
        let coverage = &mut self.coverage;
        coverage.skipped_files = self.content.unrepresentable.len() as u64;
        for file in &self.content.files {
            if matches!(file.entry.state, EntryState::Omitted { .. }) {
                coverage.skipped_files += 1;
                continue;
            }
            coverage.eligible_files += 1;
            let status = status_of(file);
            match status {
                ParseStatus::Ok => coverage.parsed_files += 1,
                ParseStatus::Partial => coverage.partial_files += 1,
                ParseStatus::Failed => coverage.failed_files += 1,
                ParseStatus::Unsupported => coverage.unsupported_files += 1,
            }
            if let Some(language) = file.language {
                let of: &mut LanguageCoverage = coverage.languages.entry(language.to_owned()).or_default();
                of.files += 1;
                match status {
                    ParseStatus::Ok => of.ok += 1,
                    ParseStatus::Partial => of.partial += 1,
                    ParseStatus::Failed => of.failed += 1,
                    ParseStatus::Unsupported => {}
                }
            }
        }
    }

    fn files(&mut self) -> Result<()> {
        let mut insert = self
            .connection
            .prepare("INSERT INTO files VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,?17,?18)")
            .map_err(sqlite("load files"))?;
        let mut headings =
            self.connection.prepare("INSERT OR IGNORE INTO headings VALUES (?1,?2,?3,?4)").map_err(sqlite("load headings"))?;
        for (file, id) in self.content.files.iter().zip(1_i64..) {
            let path = file.entry.path.as_str();
            let nodes = self.nodes.get(path);
            let (hash, size, omitted) = match &file.entry.state {
                EntryState::Included { hash, size } => (Some(hash), Some(*size), None),
                EntryState::Omitted { reason, hash, size } => (hash.as_ref(), *size, Some(reason.as_str())),
            };
            let object = hash.and_then(|hash| self.moved.get(hash)).or(file.object.as_ref());
            let flag = |set: bool, flag: i64| if set { flag } else { 0 };
            let facts = file.facts.as_deref();
            let flags = flag(file.test, FLAG_TEST)
                | flag(facts.is_some_and(|facts| facts.generated), FLAG_GENERATED)
                | flag(facts.is_some_and(|facts| facts.minified), FLAG_MINIFIED)
                | flag(file.deprioritized, FLAG_DEPRIORITIZED);
            insert
                .execute(params![
                    id,
                    path,
                    path.bytes().filter(|&byte| byte == b'/').count() as i64,
                    file.entry.mode,
                    nodes.map(|nodes| nodes.node),
                    nodes.map_or(0, |nodes| 1 + nodes.definitions.len() as i64),
                    file.language,
                    file.module.as_deref(),
                    hash.map(|hash| &hash.0[..]),
                    size.map(u64::cast_signed),
                    facts.map_or(0, |facts| facts.lines),
                    omitted.is_none().then(|| status_of(file) as i64),
                    omitted,
                    file.failure,
                    flags,
                    object.map(|object| object.pack.cast_signed()),
                    object.map(|object| object.offset.cast_signed()),
                    file.blob.as_deref(),
                ])
                .map_err(sqlite("load files"))?;
            for heading in facts.map_or(&[][..], |facts| &facts.headings) {
                headings
                    .execute(params![id, heading.line, heading.level, heading.text.as_ref()])
                    .map_err(sqlite("load headings"))?;
            }
        }
        Ok(())
    }

    fn nodes(&mut self) -> Result<()> {
        let mut insert = self
            .connection
            .prepare("INSERT INTO code_nodes VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14)")
            .map_err(sqlite("load nodes"))?;
        for (file, id) in self.content.files.iter().zip(1_i64..) {
            let EntryState::Included { size, .. } = file.entry.state else { continue };
            let path = &file.entry.path;
            let nodes = &self.nodes[path.as_str()];
            let facts = file.facts.as_deref();
            let symbol = |kind, qualified: &str, start| {
                let symbol = symbol_id(path, kind, qualified, start);
                let mut leading = [0; 8];
                leading.copy_from_slice(&symbol.0[..8]);
                symbol_key(leading)
            };
            let lines = facts.map_or(0, |facts| facts.lines);
            insert
                .execute(params![
                    nodes.node,
                    id,
                    symbol(SymbolKind::File, path.as_str(), 0),
                    SymbolKind::File as i64,
                    path.file_name(),
                    path.as_str(),
                    None::<i64>,
                    1.min(lines),
                    lines,
                    0,
                    0,
                    size.cast_signed(),
                    None::<&str>,
                    None::<&str>,
                ])
                .map_err(sqlite("load nodes"))?;
            let definitions = facts.map_or(&[][..], |facts| &facts.definitions);
            let mut order: Vec<usize> = (0..definitions.len()).collect();
            order.sort_by_key(|&index| nodes.definitions[index]);
            for index in order {
                let definition = &definitions[index];
                let parent = match definition.parent {
                    Some(parent) => *nodes
                        .definitions
                        .get(parent as usize)
                        .ok_or_else(|| inconsistent(format!("a definition of {path} lies in none")))?,
                    None => nodes.node,
                };
                let qualified = &definition.key.qualified;
                insert
                    .execute(params![
                        nodes.definitions[index],
                        id,
                        symbol(definition.kind, qualified, definition.span.start),
                        definition.kind as i64,
                        definition.name.as_ref(),
                        (*qualified != definition.name).then_some(qualified.as_ref()),
                        parent,
                        definition.start_line,
                        definition.end_line,
                        definition.name_place.line,
                        definition.span.start,
                        definition.span.end,
                        definition.signature.as_deref(),
                        definition.docstring.as_deref(),
                    ])
                    .map_err(sqlite("load nodes"))?;
                self.totals.definitions += 1;
            }
        }
        Ok(())
    }

    fn edges(&mut self) -> Result<()> {
        let mut insert = self
            .connection
            .prepare("INSERT OR IGNORE INTO code_edges VALUES (?1,?2,?3,?4,?5,?6,?7,?8)")
            .map_err(sqlite("load edges"))?;
        let content = self.content;
        let contains = self.names.id("syntax_contains");
        let mut rows: Vec<[i64; 8]> = Vec::new();
        for file in included(content) {
            rows.clear();
            let nodes = &self.nodes[file.entry.path.as_str()];
            for (definition, &target) in
                file.facts.as_deref().map_or(&[][..], |facts| &facts.definitions).iter().zip(&nodes.definitions)
            {
                let source = match definition.parent {
                    Some(parent) => source_node(file, nodes, Some(parent))?,
                    None => nodes.node,
                };
                rows.push([
                    source,
                    definition.name_place.line.into(),
                    definition.name_place.column.into(),
                    EdgeKind::Contains as i64,
                    target,
                    Resolution::ResolvedStatic as i64,
                    contains,
                    TARGETS_NAME,
                ]);
            }
            let Some(edges) = file.edges.as_deref() else {
                self.totals.edges += insert_sorted(&mut insert, &mut rows)?;
                continue;
            };
            let mut resolved: Option<(u32, EdgeKind)> = None;
            for edge in &edges.edges {
                if edge.resolution == Resolution::ResolvedStatic && resolved != Some((edge.place.start, edge.kind)) {
                    resolved = Some((edge.place.start, edge.kind));
                    self.coverage.resolved_references += 1;
                }
                let of_target = edge.target.definition.as_ref().and_then(|key| key.qualified.rsplit('.').next());
                let name = if of_target == Some(edge.name.as_ref()) { TARGETS_NAME } else { self.names.id(&edge.name) };
                rows.push([
                    source_node(file, nodes, edge.source)?,
                    edge.place.line.into(),
                    edge.place.column.into(),
                    edge.kind as i64,
                    target_node(&self.nodes, file, &edge.target)?,
                    edge.resolution as i64,
                    self.names.id(edge.rule),
                    name,
                ]);
            }
            self.totals.edges += insert_sorted(&mut insert, &mut rows)?;
        }
        Ok(())
    }

    fn diagnostics(&mut self) -> Result<()> {
        let mut insert = self
            .connection
            .prepare("INSERT OR IGNORE INTO diagnostics VALUES (?1,?2,?3,?4,?5,?6,?7)")
            .map_err(sqlite("load diagnostics"))?;
        let content = self.content;
        let mut rows: Vec<[i64; 7]> = Vec::new();
        for file in included(content) {
            let Some(edges) = file.edges.as_deref() else { continue };
            rows.clear();
            let nodes = &self.nodes[file.entry.path.as_str()];
            let mut last = None;
            for diagnostic in &edges.diagnostics {
                let name = self.names.id(&diagnostic.name);
                // A reference that has several reasons is one reference.
                if last.replace((diagnostic.place.start, diagnostic.kind)) != Some((diagnostic.place.start, diagnostic.kind)) {
                    self.names.count_unresolved(name);
                    if diagnostic.candidates > 0 {
                        self.coverage.candidate_references += 1;
                    } else {
                        self.coverage.unresolved_references += 1;
                    }
                }
                rows.push([
                    source_node(file, nodes, diagnostic.source)?,
                    diagnostic.place.line.into(),
                    diagnostic.place.column.into(),
                    diagnostic.kind as i64,
                    diagnostic.reason as i64,
                    name,
                    diagnostic.candidates.into(),
                ]);
            }
            rows.sort_unstable();
            for row in &rows {
                self.totals.diagnostics += insert.execute(*row).map_err(sqlite("load diagnostics"))? as u64;
            }
        }
        Ok(())
    }

    fn search(&mut self) -> Result<()> {
        let mut insert = self
            .connection
            .prepare(
                "INSERT INTO code_search_fts (rowid, name, place, signature, docstring, headings) VALUES (?1,?2,?3,?4,?5,?6)",
            )
            .map_err(sqlite("load the search index"))?;
        let mut columns: [String; 5] = Default::default();
        for file in included(self.content) {
            let path = &file.entry.path;
            let nodes = &self.nodes[path.as_str()];
            let [name, place, signature, docstring, headings] = &mut columns;
            let mut put = |node: i64, columns: [&mut String; 5]| {
                let values = columns.each_ref().map(|text| text.as_str());
                let [name, place, signature, docstring, headings] = values;
                let done = insert.execute(params![node, name, place, signature, docstring, headings]);
                columns.into_iter().for_each(String::clear);
                done.map_err(sqlite("load the search index"))
            };
            append_words(path.file_name(), name);
            append_words(path.as_str(), place);
            for heading in file.facts.as_deref().map_or(&[][..], |facts| &facts.headings) {
                append_words(&heading.text, headings);
            }
            append_words(file.words.as_deref().unwrap_or_default(), docstring);
            put(nodes.node, [name, place, signature, docstring, headings])?;
            let stem = path.stem_and_suffix().0;
            let definitions = file.facts.as_deref().map_or(&[][..], |facts| &facts.definitions);
            let mut order: Vec<usize> = (0..definitions.len()).collect();
            order.sort_by_key(|&index| nodes.definitions[index]);
            for index in order {
                let definition = &definitions[index];
                append_words(&definition.name, name);
                let outer = definition.key.qualified.strip_suffix(definition.name.as_ref()).unwrap_or_default();
                append_words(outer, place);
                append_words(stem, place);
                append_words(definition.signature.as_deref().unwrap_or_default(), signature);
                append_words(definition.docstring.as_deref().unwrap_or_default(), docstring);
                put(nodes.definitions[index], [name, place, signature, docstring, headings])?;
            }
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        let mut insert = self.connection.prepare("INSERT INTO names VALUES (?1,?2,?3)").map_err(sqlite("load names"))?;
        for ((text, unresolved), id) in self.names.rows.iter().zip(1_i64..) {
            insert.execute(params![id, text, unresolved.cast_signed()]).map_err(sqlite("load names"))?;
        }
        let coverage = &mut self.coverage;
        let files = coverage.parsed_files + coverage.partial_files + coverage.failed_files + coverage.unsupported_files;
        if files != coverage.eligible_files {
            return Err(inconsistent("files that are eligible and files that were read differ in number".to_owned()));
        }
        coverage.references = coverage.resolved_references + coverage.candidate_references + coverage.unresolved_references;
        let meta = Meta {
            identity: self.content.identity.clone(),
            coverage: coverage.clone(),
            totals: self.totals,
            limitations: self.content.limitations.iter().map(|word| (*word).to_owned()).collect(),
            unrepresentable: self.content.unrepresentable.clone(),
        };
        let values: BTreeMap<&str, String> = meta.encode();
        let mut insert = self.connection.prepare("INSERT INTO meta VALUES (?1,?2)").map_err(sqlite("load meta"))?;
        for (key, value) in values {
            insert.execute(params![key, value]).map_err(sqlite("load meta"))?;
        }
        Ok(())
    }
}

fn included(content: &Content) -> impl Iterator<Item = &ContentFile> {
    content.files.iter().filter(|file| matches!(file.entry.state, EntryState::Included { .. }))
}

fn status_of(file: &ContentFile) -> ParseStatus {
    file.facts.as_deref().map_or(ParseStatus::Failed, |facts| facts.parse)
}

fn insert_sorted(insert: &mut rusqlite::Statement<'_>, rows: &mut [[i64; 8]]) -> Result<u64> {
    rows.sort_unstable();
    let mut count = 0;
    for row in rows {
        count += insert.execute(*row).map_err(sqlite("load edges"))? as u64;
    }
    Ok(count)
}

fn source_node(file: &ContentFile, nodes: &FileNodes<'_>, source: Option<u32>) -> Result<i64> {
    match source {
        None => Ok(nodes.node),
        Some(index) => nodes
            .definitions
            .get(index as usize)
            .copied()
            .ok_or_else(|| inconsistent(format!("a reference in {} has no source", file.entry.path))),
    }
}

fn target_node(nodes: &HashMap<&str, FileNodes<'_>>, file: &ContentFile, target: &Target) -> Result<i64> {
    let found = nodes.get(target.file.as_str()).and_then(|nodes| match &target.definition {
        None => Some(nodes.node),
        Some(definition) => nodes.keys.get(definition).copied(),
    });
    found.ok_or_else(|| {
        let name = target.definition.as_ref().map_or("", |definition| &definition.qualified);
        inconsistent(format!("an edge of {} leads to {name} in {}, which is not there", file.entry.path, target.file))
    })
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;
    use std::sync::Arc;

    use crate::model::facts::Body;
    use crate::model::graph::{Diagnostic, Reason};
    use crate::model::{
        Definition, Edge, FileEdges, FileFacts, Fingerprint, GenerationId, Heading, PathPrefix, Place, RepoPath, Span, Surface,
    };
    use crate::store::Identity;
    use crate::store::reader::Generation;
    use crate::workspace::{Entry, Omission};

    use super::*;

    fn path(text: &str) -> RepoPath {
        RepoPath::parse(text).expect("valid")
    }

    fn key(qualified: &str) -> DefinitionKey {
        DefinitionKey { qualified: Arc::from(qualified), ordinal: 0 }
    }

    fn definition(qualified: &str, kind: SymbolKind, parent: Option<u32>, line: u32) -> Definition {
        let name = qualified.rsplit('.').next().unwrap_or(qualified);
        Definition {
            key: key(qualified),
            name: Arc::from(name),
            kind,
            parent,
            span: Span { start: line * 10, end: line * 10 + 5 },
            start_line: line,
            end_line: line + 1,
            name_place: Place { line, column: 4, start: line * 10 + 4 },
            signature: Some(Arc::from(format!("def {name}(chunk_size: int)"))),
            docstring: Some(Arc::from("Iterates over chunks.")),
        }
    }

    fn facts(definitions: Vec<Definition>, headings: Vec<Heading>, parse: ParseStatus) -> Arc<FileFacts> {
        Arc::new(FileFacts {
            parse,
            lines: 9,
            generated: false,
            minified: false,
            definitions,
            headings,
            surface: Arc::new(Surface::default()),
            body: Body::default(),
        })
    }

    fn file(name: &str, language: Option<&'static str>, facts: Option<Arc<FileFacts>>) -> ContentFile {
        ContentFile {
            entry: Entry {
                path: path(name),
                mode: 0o100_644,
                state: EntryState::Included { hash: ContentHash::of(name.as_bytes()), size: 90 },
            },
            object: Some(ObjectRef { pack: 7, offset: 16, length: 90 }),
            blob: None,
            language,
            module: language.map(|_| Arc::from(name.trim_end_matches(".py").replace('/', "."))),
            test: name.contains("test"),
            deprioritized: false,
            facts,
            failure: None,
            words: None,
            edges: None,
        }
    }

    fn content() -> Content {
        let mut user = file("app/user.py", Some("python"), None);
        user.facts = Some(facts(vec![definition("main", SymbolKind::Function, None, 1)], Vec::new(), ParseStatus::Ok));
        let edge = |definition: Option<&str>, kind, column| Edge {
            kind,
            source: Some(0),
            target: Target { file: path("lib/query.py"), definition: definition.map(key) },
            resolution: Resolution::ResolvedStatic,
            rule: "explicit_import",
            place: Place { line: 2, column, start: 20 + column },
            name: Arc::from("iterator"),
        };
        user.edges = Some(Arc::new(FileEdges {
            edges: vec![edge(None, EdgeKind::Imports, 1), edge(Some("Query.iterator"), EdgeKind::Calls, 5)],
            diagnostics: vec![Diagnostic {
                kind: EdgeKind::Calls,
                source: Some(0),
                reason: Reason::UnresolvedName,
                place: Place { line: 3, column: 0, start: 30 },
                name: Arc::from("lost"),
                candidates: 0,
            }],
            local_uses: 0,
        }));
        let query =
            vec![definition("Query", SymbolKind::Class, None, 1), definition("Query.iterator", SymbolKind::Method, Some(0), 2)];
        let heading = Heading { text: Arc::from("Getting started"), level: 1, line: 1 };
        let mut broken = file("broken.py", Some("python"), Some(facts(Vec::new(), Vec::new(), ParseStatus::Failed)));
        broken.failure = Some("parse_timeout rounds=1".to_owned());
        broken.words = Some(Arc::from("class MailQueue pass "));
        let mut left_out = file("secret.pem", None, None);
        left_out.entry.state = EntryState::Omitted { reason: Omission::Credentials, hash: None, size: None };
        left_out.object = None;
        Content {
            identity: Identity {
                fingerprint: Fingerprint([1; 32]),
                state: ContentHash([2; 32]),
                scope_id: "s".to_owned(),
                binding_id: "b".to_owned(),
                commit: None,
                head_tree: None,
                branch: None,
                object_format: "sha1".to_owned(),
                git: false,
                dirty: true,
            },
            files: vec![
                file("README.md", None, Some(facts(Vec::new(), vec![heading], ParseStatus::Unsupported))),
                user,
                broken,
                file("lib/query.py", Some("python"), Some(facts(query, Vec::new(), ParseStatus::Partial))),
                left_out,
            ],
            limitations: vec!["fixtures_not_followed"],
            unrepresentable: vec!["caf\\xe9".to_owned()],
        }
    }

    fn open(folder: &Path, content: &Content) -> Generation {
        write(&folder.join("graph.sqlite"), content, &HashMap::new()).expect("written");
        let lease = std::fs::File::create(folder.join("lease")).expect("a file");
        Generation::open(GenerationId([0; 16]), folder, folder, lease).expect("opened")
    }

    #[test]
    fn rows_come_back() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let content = content();
        let generation = open(folder.path(), &content);
        assert_eq!(generation.identity(), &content.identity);
        assert_eq!(generation.limitations(), ["fixtures_not_followed"]);
        let coverage = generation.coverage();
        assert_eq!(
            (
                coverage.eligible_files,
                coverage.parsed_files,
                coverage.partial_files,
                coverage.failed_files,
                coverage.unsupported_files
            ),
            (4, 1, 1, 1, 1)
        );
        assert_eq!((coverage.skipped_files, coverage.references, coverage.resolved_references), (2, 3, 2));
        let everywhere = PathPrefix::default();
        let found = generation.nodes_named("iterator", &everywhere, 9).expect("read");
        let node = &found[0];
        assert_eq!((found.len(), node.qualified_name.as_ref(), node.module.as_deref()), (1, "Query.iterator", Some("lib.query")));
        assert_eq!(node.symbol, symbol_id(&path("lib/query.py"), SymbolKind::Method, "Query.iterator", 20));
        assert_eq!(generation.node_by_symbol(&node.symbol).expect("read").as_ref(), Some(node));
        assert_eq!(generation.nodes_with_symbol_prefix(&node.symbol.hex()[..9], 9).expect("read"), std::slice::from_ref(node));
        assert_eq!(generation.nodes_named_folded("ITERATOR", &everywhere, 9).expect("read"), found);
        assert!(generation.nodes_named("ITERATOR", &everywhere, 9).expect("read").is_empty());
        assert!(generation.nodes_named("iterator", &PathPrefix::parse("lib/que").expect("valid"), 9).expect("read").is_empty());
        assert_eq!(generation.nodes_named("iterator", &PathPrefix::parse("lib").expect("valid"), 9).expect("read"), found);
        let callers = generation.edges_to(node.id, &[EdgeKind::Calls]).expect("read");
        assert_eq!((callers.len(), callers[0].path.as_ref(), callers[0].rule.as_ref()), (1, "app/user.py", "explicit_import"));
        assert_eq!(generation.edges_from(callers[0].source, EdgeKind::ALL).expect("read").len(), 2);
        assert_eq!(generation.in_degree(node.id, EdgeKind::ALL).expect("read"), 2);
        assert_eq!(generation.unresolved_mentions("lost").expect("read"), 1);
        assert_eq!(generation.unresolved_calls_in(callers[0].source).expect("read"), 1);
        assert_eq!(generation.files_of_module("lib.query").expect("read").len(), 1);
        assert_eq!(generation.omissions().expect("read")[0].omitted.as_deref(), Some("credentials"));
        assert_eq!(
            generation.file("broken.py").expect("read").and_then(|file| file.failure).as_deref(),
            Some("parse_timeout rounds=1")
        );
        assert_eq!(generation.headings("README.md").expect("read"), [(1, 1, "Getting started".to_owned())]);
        let (shown, total) = generation.map(&everywhere, 1, 9).expect("read");
        assert_eq!((shown.len(), total), (2, 2));
        let (shown, total) = generation.map(&PathPrefix::parse("lib").expect("valid"), 1, 1).expect("read");
        assert_eq!((shown.len(), total), (1, 3));
        assert_eq!(generation.manifest().expect("read").len(), 4);
    }

    #[test]
    fn searches_are_escaped_and_ranked() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let generation = open(folder.path(), &content());
        let search = |words: &[&str], any| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            let hits = generation.search(&words, any, &PathPrefix::default(), 9).expect("searched");
            hits.into_iter().map(|hit| hit.node.name.to_string()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(search(&["iterator"], false), "iterator");
        assert_eq!(search(&["query"], false), "query.py Query iterator");
        assert_eq!(search(&["iterator", "nowhere"], false), "");
        assert_eq!(search(&["iterator", "nowhere"], true), "iterator");
        assert_eq!(search(&["started"], false), "README.md");
        assert_eq!(search(&["mailqueue"], false), "broken.py");
        assert_eq!(search(&["mail", "pass"], false), "broken.py");
        for hostile in ["\"", "*", "iterator*", "NEAR(a b)", "name:iterator", "a\"b", "", "AND", "\0", "-"] {
            search(&[hostile], true);
            search(&[hostile, "iterator"], false);
        }
        assert_eq!(search(&[], true), "");
    }

    #[test]
    fn what_does_not_close_is_not_written() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let refused = |name: &str, change: &dyn Fn(&mut Content)| {
            let mut content = content();
            change(&mut content);
            let outcome = write(&folder.path().join(name), &content, &HashMap::new());
            assert!(matches!(outcome, Err(StoreError::Inconsistent { .. })), "{name}: {outcome:?}");
        };
        let edges = |content: &mut Content, change: &dyn Fn(&mut FileEdges)| {
            let mut edges = content.files[1].edges.as_deref().cloned().expect("it has some");
            change(&mut edges);
            content.files[1].edges = Some(Arc::new(edges));
        };
        refused("target", &|content| edges(content, &|edges| edges.edges[0].target.definition = Some(key("gone"))));
        refused("file", &|content| edges(content, &|edges| edges.edges[0].target.file = path("gone.py")));
        refused("source", &|content| edges(content, &|edges| edges.edges[0].source = Some(9)));
        refused("order", &|content| content.files.swap(0, 1));
    }

    #[test]
    fn visits_are_sorted() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let generation = open(folder.path(), &content());
        let mut text = String::new();
        let line = |written: std::fmt::Result| written.map_err(std::io::Error::other);
        generation.each_node(&mut |node| line(writeln!(text, "{} {}", node.path, node.name))).expect("visited");
        let edges = &mut |edge: &crate::store::EdgeRow| {
            line(writeln!(text, "{}:{}:{} {} {}", edge.path, edge.line, edge.column, edge.kind.as_str(), edge.name))
        };
        generation.each_edge(edges).expect("visited");
        generation
            .each_diagnostic(&mut |row| line(writeln!(text, "{}:{} {} {}", row.path, row.line, row.name, row.reason.as_str())))
            .expect("visited");
        assert_eq!(
            text,
            "README.md README.md\napp/user.py user.py\napp/user.py main\nbroken.py broken.py\nlib/query.py query.py\n\
             lib/query.py Query\nlib/query.py iterator\napp/user.py:1:4 contains main\napp/user.py:2:1 imports iterator\n\
             app/user.py:2:5 calls iterator\nlib/query.py:1:4 contains Query\nlib/query.py:2:4 contains iterator\n\
             app/user.py:3 lost unresolved_name\nbroken.py:1 broken.py parse_timeout\n"
        );
    }
}
