//! Writing the database of a generation: one bulk load of sorted rows into a file that nobody reads yet.
//!
//! Must not know where the file will stand. Invariant: what is written closes: every edge has both ends, every included file its node,
//! and the counts add up; anything else is an error and nothing is published.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use rusqlite::{Connection, params};

use crate::model::{ContentHash, Demand, Headway, ParseStatus, Target};
use crate::workspace::EntryState;

use super::content::{Content, ContentFile, ObjectRef};
use super::durable::{self, Part, Step};
use super::error::{Result, StoreError, io, sqlite};
use super::layout::FileNodes;
use super::reader::{Coverage, LanguageCoverage, Meta, Totals, reference_digest};
use super::rows::{self, Document, Names, NodeValues, Tally, Targets, inconsistent, status_of};

/// How often each file is gone through: rows of files, nodes, references and search, then the indexes and the search index as a whole.
const PASSES: u64 = 6;

/// Writes the database, forces it to the disk, and returns its counts. The objects in `moved` stand elsewhere than the content says.
pub(super) fn write(
    path: &Path,
    content: &Content,
    moved: &HashMap<ContentHash, ObjectRef>,
    headway: &Headway,
    demand: &Demand,
) -> Result<(Coverage, Totals)> {
    let files = content.files.len() as u64;
    headway.expect(files, PASSES);
    let pass = |step| durable::pass_database(Part::Database, step, path).map_err(io("write the database"));
    pass(Step::Open)?;
    let connection = durable::open_database(path).map_err(sqlite("create"))?;
    connection
        .execute_batch(
            "PRAGMA page_size = 8192; PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA locking_mode = EXCLUSIVE;
             PRAGMA cache_size = -16384; PRAGMA temp_store = MEMORY; BEGIN;",
        )
        .map_err(sqlite("create"))?;
    connection.execute_batch(include_str!("schema.sql")).map_err(sqlite("create the tables"))?;
    // One run of the search index in memory, written once: runs that are merged later cost time and leave holes in the file.
    set_search_memory(&connection, 134_217_728)?;
    pass(Step::Load)?;
    let mut load = Load::new(&connection, content, moved, headway, demand)?;
    load.rows()?;
    let counts = (load.coverage, load.totals);
    pass(Step::Index)?;
    connection.execute_batch(include_str!("indexes.sql")).map_err(sqlite("make the indexes"))?;
    headway.add(files);
    pass(Step::Commit)?;
    // What a delta writes is small: less memory for its postings than the bulk load takes.
    set_search_memory(&connection, 16_777_216)?;
    // No ANALYZE: every query names its index by its form, and the statistics would be the same questions asked twice.
    connection
        .execute_batch("INSERT INTO code_search_fts (code_search_fts) VALUES ('optimize'); COMMIT;")
        .map_err(sqlite("finish"))?;
    headway.add(files);
    check(&connection)?;
    // From here on the file says that an overlay may lie over it. Nothing is in one yet.
    connection.execute_batch("PRAGMA journal_mode = WAL;").map_err(sqlite("finish"))?;
    connection.close().map_err(|(_, error)| sqlite("close")(error))?;
    durable::sync_database(Part::Database, path).map_err(io("write the database to disk"))?;
    Ok(counts)
}

fn set_search_memory(connection: &Connection, bytes: u32) -> Result<()> {
    let sql = "INSERT INTO code_search_fts (code_search_fts, rank) VALUES ('hashsize', ?1)";
    connection.execute(sql, [bytes]).map(drop).map_err(sqlite("prepare the search index"))
}

/// Asks the database itself whether its search index is whole and its rows are those that were counted.
fn check(connection: &Connection) -> Result<()> {
    connection
        .execute_batch("INSERT INTO code_search_fts (code_search_fts, rank) VALUES ('integrity-check', 0);")
        .map_err(sqlite("check the search index"))?;
    let orphans: i64 = connection
        .query_row("SELECT (SELECT count(*) FROM code_nodes) - (SELECT total(nodes) FROM files)", [], |row| row.get::<_, f64>(0))
        .map_err(sqlite("count rows"))
        .map(|count| count.abs() as i64)?;
    if orphans == 0 { Ok(()) } else { Err(inconsistent(format!("{orphans} nodes do not belong to files"))) }
}

/// Numbers names in the order they come.
#[derive(Default)]
struct NewNames {
    ids: HashMap<Box<str>, i64>,
    /// How many references of each name are not resolved.
    unresolved: Vec<u64>,
}

impl Names for NewNames {
    fn id(&mut self, text: &str) -> Result<i64> {
        if let Some(id) = self.ids.get(text) {
            return Ok(*id);
        }
        self.unresolved.push(0);
        let id = self.unresolved.len() as i64;
        self.ids.insert(Box::from(text), id);
        Ok(id)
    }
}

impl NewNames {
    fn count_unresolved(&mut self, id: i64) {
        if let Some(count) = usize::try_from(id - 1).ok().and_then(|index| self.unresolved.get_mut(index)) {
            *count += 1;
        }
    }
}

/// The ids of every file, by path.
struct AllNodes<'a>(HashMap<&'a str, FileNodes<'a>>);

impl Targets for &AllNodes<'_> {
    fn node(&mut self, target: &Target) -> Result<Option<i64>> {
        Ok(self.0.get(target.file.as_str()).and_then(|nodes| match &target.definition {
            None => Some(nodes.node),
            Some(definition) => nodes.keys.get(definition).copied(),
        }))
    }
}

struct Load<'a> {
    connection: &'a Connection,
    content: &'a Content,
    moved: &'a HashMap<ContentHash, ObjectRef>,
    headway: &'a Headway,
    demand: &'a Demand,
    names: NewNames,
    nodes: AllNodes<'a>,
    /// Id of each file, in order.
    ids: Vec<i64>,
    coverage: Coverage,
    totals: Totals,
}

impl<'a> Load<'a> {
    fn new(
        connection: &'a Connection,
        content: &'a Content,
        moved: &'a HashMap<ContentHash, ObjectRef>,
        headway: &'a Headway,
        demand: &'a Demand,
    ) -> Result<Self> {
        if content.files.windows(2).any(|pair| pair[0].entry.path >= pair[1].entry.path) {
            return Err(inconsistent("the manifest is not sorted".to_owned()));
        }
        let mut next = 1;
        let mut nodes = HashMap::new();
        let mut ids = Vec::with_capacity(content.files.len());
        for file in &content.files {
            ids.push(next);
            if is_included(file) {
                let definitions = file.facts.as_deref().map_or(&[][..], |facts| &facts.definitions);
                let (of_file, after) = FileNodes::spread(next, definitions);
                nodes.insert(file.entry.path.as_str(), of_file);
                next = after;
            } else {
                (_, next) = FileNodes::spread(next, &[]);
            }
        }
        Ok(Self {
            connection,
            content,
            moved,
            headway,
            demand,
            names: NewNames::default(),
            nodes: AllNodes(nodes),
            ids,
            coverage: Coverage { skipped_files: content.unrepresentable.len() as u64, ..Coverage::default() },
            totals: Totals::default(),
        })
    }

    /// Counts a file, and ends when nobody waits for the rest.
    fn go_on(&self) -> Result<()> {
        self.headway.add(1);
        if self.demand.is_given_up() { Err(StoreError::Unwanted) } else { Ok(()) }
    }

    fn rows(&mut self) -> Result<()> {
        self.files()?;
        self.nodes()?;
        self.references()?;
        self.search()?;
        self.finish()
    }

    fn files(&mut self) -> Result<()> {
        let mut insert = self.connection.prepare(INSERT_FILE).map_err(sqlite("load files"))?;
        let mut headings = self.connection.prepare(INSERT_HEADING).map_err(sqlite("load headings"))?;
        for (file, &id) in self.content.files.iter().zip(&self.ids) {
            count_file(&mut self.coverage, file);
            let nodes = self.nodes.0.get(file.entry.path.as_str());
            insert_file(&mut insert, file, id, nodes, self.moved)?;
            insert_headings(&mut headings, file, id)?;
            self.go_on()?;
        }
        Ok(())
    }

    fn nodes(&mut self) -> Result<()> {
        let mut insert = self.connection.prepare(INSERT_NODE).map_err(sqlite("load nodes"))?;
        for file in included(self.content) {
            let nodes = &self.nodes.0[file.entry.path.as_str()];
            for node in rows::nodes(file, nodes)? {
                insert_node(&mut insert, nodes.node, &node)?;
            }
            self.totals.definitions += nodes.definitions.len() as u64;
            self.go_on()?;
        }
        Ok(())
    }

    fn references(&mut self) -> Result<()> {
        let mut insert_edge = self.connection.prepare(INSERT_EDGE).map_err(sqlite("load edges"))?;
        let mut insert_diagnostic = self.connection.prepare(INSERT_DIAGNOSTIC).map_err(sqlite("load diagnostics"))?;
        for file in included(self.content) {
            let nodes = &self.nodes.0[file.entry.path.as_str()];
            let edges = rows::edges(file, nodes, &mut self.names, &mut &self.nodes)?;
            let diagnostics = rows::diagnostics(file, nodes, &mut self.names)?;
            for row in &edges {
                insert_edge.execute(*row).map_err(sqlite("load edges"))?;
            }
            for row in &diagnostics {
                insert_diagnostic.execute(*row).map_err(sqlite("load diagnostics"))?;
            }
            self.totals.edges += edges.len() as u64;
            self.totals.diagnostics += diagnostics.len() as u64;
            let tally = Tally::of(&edges, &diagnostics, |name| self.names.count_unresolved(name));
            self.coverage.resolved_references += tally.resolved;
            self.coverage.candidate_references += tally.candidate;
            self.coverage.unresolved_references += tally.unresolved;
            self.go_on()?;
        }
        Ok(())
    }

    fn search(&mut self) -> Result<()> {
        let mut insert = self.connection.prepare(INSERT_DOCUMENT).map_err(sqlite("load the search index"))?;
        let mut document = Document::default();
        for file in included(self.content) {
            let path = &file.entry.path;
            let mut nodes = rows::nodes(file, &self.nodes.0[path.as_str()])?.into_iter();
            if let Some(own) = nodes.next() {
                let headings = file.facts.as_deref().map_or(&[][..], |facts| &facts.headings);
                rows::file_document(path, headings.iter().map(|heading| &*heading.text), file.words.as_deref(), &mut document);
                insert_document(&mut insert, own.id, &mut document)?;
            }
            for node in nodes {
                rows::definition_document(path, &node, &mut document);
                insert_document(&mut insert, node.id, &mut document)?;
            }
            self.go_on()?;
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        let mut insert = self.connection.prepare("INSERT INTO names VALUES (?1,?2,?3)").map_err(sqlite("load names"))?;
        let mut names: Vec<_> = self.names.ids.iter().map(|(text, id)| (*id, text)).collect();
        names.sort_unstable();
        for ((id, text), unresolved) in names.into_iter().zip(&self.names.unresolved) {
            insert.execute(params![id, text, unresolved.cast_signed()]).map_err(sqlite("load names"))?;
        }
        close(&mut self.coverage)?;
        let meta = Meta {
            identity: self.content.identity.clone(),
            coverage: self.coverage.clone(),
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

pub(super) const INSERT_FILE: &str =
    "INSERT INTO files VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,?17,?18,?19)";
pub(super) const INSERT_HEADING: &str = "INSERT OR IGNORE INTO headings VALUES (?1,?2,?3,?4)";
pub(super) const INSERT_NODE: &str = "INSERT INTO code_nodes VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15)";
pub(super) const INSERT_EDGE: &str = "INSERT INTO code_edges VALUES (?1,?2,?3,?4,?5,?6,?7,?8)";
pub(super) const INSERT_DIAGNOSTIC: &str = "INSERT INTO diagnostics VALUES (?1,?2,?3,?4,?5,?6,?7)";
pub(super) const INSERT_DOCUMENT: &str =
    "INSERT INTO code_search_fts (rowid, name, place, signature, docstring, headings) VALUES (?1,?2,?3,?4,?5,?6)";

/// Inserts or replaces the row of a file; the statement names all columns in the order of the table.
pub(super) fn insert_file(
    insert: &mut rusqlite::Statement<'_>,
    file: &ContentFile,
    id: i64,
    nodes: Option<&FileNodes<'_>>,
    moved: &HashMap<ContentHash, ObjectRef>,
) -> Result<()> {
    let path = file.entry.path.as_str();
    let (hash, size, omitted) = match &file.entry.state {
        EntryState::Included { hash, size } => (Some(hash), Some(*size), None),
        EntryState::Omitted { reason, hash, size } => (hash.as_ref(), *size, Some(reason.as_str())),
    };
    let object = if omitted.is_none() { hash.and_then(|hash| moved.get(hash)).or(file.object.as_ref()) } else { None };
    let done = insert.execute(params![
        id,
        path,
        path.bytes().filter(|&byte| byte == b'/').count() as i64,
        file.entry.mode,
        nodes.map_or(id, FileNodes::last),
        nodes.map_or(0, |nodes| 1 + nodes.definitions.len() as i64),
        file.language,
        file.module.as_deref(),
        hash.map(|hash| &hash.0[..]),
        size.map(u64::cast_signed),
        file.facts.as_deref().map_or(0, |facts| facts.lines),
        omitted.is_none().then(|| status_of(file) as i64),
        omitted,
        file.failure,
        rows::flags_of(file),
        object.map(|object| object.pack.cast_signed()),
        object.map(|object| object.offset.cast_signed()),
        file.blob.as_deref(),
        file.edges.as_deref().map(reference_digest),
    ]);
    done.map(drop).map_err(sqlite("load files"))
}

pub(super) fn insert_headings(insert: &mut rusqlite::Statement<'_>, file: &ContentFile, id: i64) -> Result<()> {
    for heading in file.facts.as_deref().map_or(&[][..], |facts| &facts.headings) {
        insert.execute(params![id, heading.line, heading.level, heading.text.as_ref()]).map_err(sqlite("load headings"))?;
    }
    Ok(())
}

pub(super) fn insert_node(insert: &mut rusqlite::Statement<'_>, file: i64, node: &NodeValues<&str>) -> Result<()> {
    let done = insert.execute(params![
        node.id,
        file,
        node.symbol,
        node.kind,
        node.name,
        node.qualified,
        node.ordinal,
        node.parent,
        node.start_line,
        node.end_line,
        node.name_line,
        node.start_byte,
        node.end_byte,
        node.signature,
        node.docstring,
    ]);
    done.map(drop).map_err(sqlite("load nodes"))
}

/// Inserts what the search index is to hold of a node, and empties the document.
pub(super) fn insert_document(insert: &mut rusqlite::Statement<'_>, node: i64, document: &mut Document) -> Result<()> {
    let [name, place, signature, docstring, headings] = &*document;
    let done = insert.execute(params![node, name, place, signature, docstring, headings]);
    document.iter_mut().for_each(String::clear);
    done.map(drop).map_err(sqlite("load the search index"))
}

/// Counts a file of the manifest.
pub(super) fn count_file(coverage: &mut Coverage, file: &ContentFile) {
    match file.entry.state {
        EntryState::Omitted { .. } => coverage.skipped_files += 1,
        EntryState::Included { .. } => coverage.count(status_of(file), file.language),
    }
}

impl Coverage {
    /// Counts an included file.
    pub(super) fn count(&mut self, status: ParseStatus, language: Option<&str>) {
        self.eligible_files += 1;
        *self.of_status(status) += 1;
        if let Some(language) = language {
            let of: &mut LanguageCoverage = self.languages.entry(language.to_owned()).or_default();
            of.files += 1;
            if let Some(count) = of.of_status(status) {
                *count += 1;
            }
        }
    }

    /// Takes an included file out of the counts.
    pub(super) fn uncount(&mut self, status: ParseStatus, language: Option<&str>) {
        self.eligible_files = self.eligible_files.saturating_sub(1);
        let count = self.of_status(status);
        *count = count.saturating_sub(1);
        if let Some(language) = language
            && let Some(of) = self.languages.get_mut(language)
        {
            of.files = of.files.saturating_sub(1);
            if let Some(count) = of.of_status(status) {
                *count = count.saturating_sub(1);
            }
            if of.files == 0 {
                self.languages.remove(language);
            }
        }
    }

    fn of_status(&mut self, status: ParseStatus) -> &mut u64 {
        match status {
            ParseStatus::Ok => &mut self.parsed_files,
            ParseStatus::Partial => &mut self.partial_files,
            ParseStatus::Failed => &mut self.failed_files,
            ParseStatus::Unsupported => &mut self.unsupported_files,
        }
    }
}

impl LanguageCoverage {
    fn of_status(&mut self, status: ParseStatus) -> Option<&mut u64> {
        match status {
            ParseStatus::Ok => Some(&mut self.ok),
            ParseStatus::Partial => Some(&mut self.partial),
            ParseStatus::Failed => Some(&mut self.failed),
            ParseStatus::Unsupported => None,
        }
    }
}

/// Adds up what the counts of a generation come to.
pub(super) fn close(coverage: &mut Coverage) -> Result<()> {
    let files = coverage.parsed_files + coverage.partial_files + coverage.failed_files + coverage.unsupported_files;
    if files != coverage.eligible_files {
        return Err(inconsistent("files that are eligible and files that were read differ in number".to_owned()));
    }
    coverage.references = coverage.resolved_references + coverage.candidate_references + coverage.unresolved_references;
    Ok(())
}

/// Returns whether the file is indexed.
pub(super) fn is_included(file: &ContentFile) -> bool {
    matches!(file.entry.state, EntryState::Included { .. })
}

fn included(content: &Content) -> impl Iterator<Item = &ContentFile> {
    content.files.iter().filter(|file| is_included(file))
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;
    use std::sync::Arc;
    use std::time::Instant;

    use crate::model::facts::Body;
    use crate::model::graph::{Diagnostic, Reason, symbol_id};
    use crate::model::{
        Definition, DefinitionKey, Edge, EdgeKind, FileEdges, FileFacts, GenerationId, Heading, PathPrefix, Place, RepoPath,
        Resolution, Span, Surface, SymbolKind,
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
            identity: Identity::numbered(1),
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
        write(&folder.join("graph.sqlite"), content, &HashMap::new(), &Headway::default(), &Demand::until(Instant::now()))
            .expect("written");
        let lease = std::fs::File::create(folder.join("lease")).expect("a file");
        Generation::open(GenerationId([0; 16]), folder, folder, lease, false).expect("opened")
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
            let outcome =
                write(&folder.path().join(name), &content, &HashMap::new(), &Headway::default(), &Demand::until(Instant::now()));
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
