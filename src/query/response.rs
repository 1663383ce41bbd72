//! The answer of the wire contract (§2): values whose serialised form is the JSON body, fields in the contract's order.
//!
//! Must not know bytes or budgets: an item only names the source it could show ([`Item::source`]); rendering decides what finds room.
//! Invariant: the struct order is the wire order, and nothing here comes from a map without an order.

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use crate::model::{Canonical, ContentHash, EdgeKind, ParseStatus, Reason, Resolution, SymbolId, SymbolKind};
use crate::store::{EdgeRow, Generation, NodeRow};

use super::source::SourceRange;

/// Schema word of every answer.
pub const SCHEMA: &str = "powercontext.code-query.v1";

/// Words of `limitations`, in the order in which answers list them. Words of languages follow these, by name.
pub const LIMITATIONS: [&str; 13] = [
    "static_analysis_only",
    "dynamic_relationships_may_be_missing",
    ITEM_LIMIT,
    DEPTH_LIMIT,
    TRAVERSAL_LIMIT,
    NODE_LIMIT,
    OUTPUT_BUDGET,
    SOURCE_TRUNCATED,
    SOURCE_LINE_TOO_LARGE,
    EDGES_OUTSIDE,
    NO_GIT,
    CANDIDATE_TESTS,
    "fixtures_not_followed",
];
pub const ITEM_LIMIT: &str = "item_limit";
pub const DEPTH_LIMIT: &str = "depth_limit";
pub const NODE_LIMIT: &str = "node_limit";
pub const CANDIDATE_TESTS: &str = "test_candidates_do_not_replace_required_tests";
pub const TRAVERSAL_LIMIT: &str = "traversal_limit";
pub const OUTPUT_BUDGET: &str = "output_budget";
pub const SOURCE_TRUNCATED: &str = "source_truncated";
pub const SOURCE_LINE_TOO_LARGE: &str = "source_line_too_large";
pub const EDGES_OUTSIDE: &str = "edges_outside_path_scope";
pub const NO_GIT: &str = "no_git";

/// Whether anything was cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    Ok,
    Partial,
}

/// A whole answer.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Response {
    pub schema: &'static str,
    pub scope_id: String,
    pub fingerprint: String,
    pub before_fingerprint: Option<String>,
    pub commit: Option<String>,
    pub git_object_format: String,
    pub dirty: bool,
    pub checked_at: String,
    pub operation: &'static str,
    pub status: Status,
    #[schemars(with = "Vec<ItemForm>")]
    pub items: Vec<Item>,
    pub coverage: CoverageReport,
    pub limitations: Vec<String>,
    /// The symbol that the question was about, for people.
    #[serde(skip)]
    pub subject: Option<Box<Item>>,
    /// How many items there were before any limit, containers that a walk only climbed to not counted.
    #[serde(skip)]
    pub total: u64,
    /// The name that the question was about, for people.
    #[serde(skip)]
    pub asked: Option<Arc<str>>,
    /// Whether the walk went as deep as any may, so that nobody can ask for more, for people.
    #[serde(skip)]
    pub deepest: bool,
}

impl Response {
    /// Returns whether there is nothing in it that answers, nor was before a limit: containers that a walk only climbed to are no users.
    pub fn is_nothing(&self) -> bool {
        self.total == 0 && self.items.iter().all(Item::is_container)
    }

    /// Returns an empty answer of `generation`.
    pub fn new(generation: &Generation, checked_at: &str, operation: &'static str) -> Self {
        let identity = generation.identity();
        let mut response = Self {
            schema: SCHEMA,
            scope_id: identity.scope_id.clone(),
            fingerprint: identity.fingerprint.hex(),
            before_fingerprint: None,
            commit: identity.commit.clone(),
            git_object_format: identity.object_format.clone(),
            dirty: identity.dirty,
            checked_at: checked_at.to_owned(),
            operation,
            status: Status::Ok,
            items: Vec::new(),
            coverage: CoverageReport::of(generation),
            limitations: LIMITATIONS[..2].iter().map(|word| (*word).to_owned()).collect(),
            subject: None,
            total: 0,
            asked: None,
            deepest: false,
        };
        if !identity.git {
            response.limit(NO_GIT);
        }
        for word in generation.limitations() {
            response.limit(word);
        }
        response
    }

    /// Adds a word to `limitations`, once, at its place in the contract's order.
    pub fn limit(&mut self, word: &str) {
        let rank = |word: &str| LIMITATIONS.iter().position(|known| *known == word).unwrap_or(LIMITATIONS.len());
        let key = |word: &str| (rank(word), word.to_owned());
        if let Err(index) = self.limitations.binary_search_by(|known| key(known).cmp(&key(word))) {
            self.limitations.insert(index, word.to_owned());
        }
    }

    /// Says that something was cut, and why.
    pub fn cut(&mut self, word: &str) {
        self.status = Status::Partial;
        self.limit(word);
    }
}

/// `coverage`: what the generation knows, and what this answer could not see.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CoverageReport {
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
    pub path_boundary_edges: u64,
    /// References that may mean the subject but could not be bound; in answers about relations only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unresolved_mentions: Option<u64>,
    /// Where changes were followed: the definitions that they started from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changed_definitions: Option<ChangedDefinitions>,
    /// Names near to what was asked, when nothing was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub near: Option<Vec<Near>>,
    /// Lines on which the name asked about is written though nothing of it is stored there: a local name, a comment, a string.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub written_on_lines: Option<Vec<u32>>,
    /// Paths asked about that could not be followed, and why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paths_not_followed: Option<Vec<NotFollowed>>,
    pub languages: BTreeMap<String, LanguageReport>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LanguageReport {
    pub files: u64,
    pub ok: u64,
    pub partial: u64,
    pub failed: u64,
}

/// A symbol whose name resembles what was asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Near {
    pub qualified_name: String,
    pub path: String,
    pub line: u32,
}

/// A path that a question could not start from, and the stable word of the reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct NotFollowed {
    pub path: String,
    pub reason: Arc<str>,
}

impl CoverageReport {
    fn of(generation: &Generation) -> Self {
        let totals = generation.coverage();
        Self {
            eligible_files: totals.eligible_files,
            parsed_files: totals.parsed_files,
            partial_files: totals.partial_files,
            failed_files: totals.failed_files,
            unsupported_files: totals.unsupported_files,
            skipped_files: totals.skipped_files,
            references: totals.references,
            resolved_references: totals.resolved_references,
            candidate_references: totals.candidate_references,
            unresolved_references: totals.unresolved_references,
            path_boundary_edges: 0,
            unresolved_mentions: None,
            changed_definitions: None,
            near: None,
            written_on_lines: None,
            paths_not_followed: None,
            languages: totals
                .languages
                .iter()
                .map(|(name, of)| {
                    let report = LanguageReport { files: of.files, ok: of.ok, partial: of.partial, failed: of.failed };
                    (name.clone(), report)
                })
                .collect(),
        }
    }
}

fn hex<S: Serializer>(value: &Option<ContentHash>, serializer: S) -> Result<S::Ok, S::Error> {
    match value {
        Some(hash) => serializer.serialize_str(&hash.hex()),
        None => serializer.serialize_none(),
    }
}

/// What an item of `explore` is to the question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    Seed,
    Caller,
    Callee,
}

/// How an item follows from the question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    StaticPath,
    CandidatePath,
    /// A test file whose name follows from that of the changed file.
    NameHint,
}

impl Why {
    /// Returns what a path of this resolution is.
    pub fn of(resolution: Resolution) -> Self {
        match resolution {
            Resolution::ResolvedStatic => Self::StaticPath,
            Resolution::Candidate => Self::CandidatePath,
        }
    }
}

/// How precisely an item is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Granularity {
    Symbol,
    /// Known only as a part of what holds it, or by what holds what it uses.
    Module,
}

/// What became of a file between two generations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    Added,
    Modified,
    Deleted,
}

/// One of two compared generations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    Before,
    After,
}

/// How many definitions of the files asked about differ between two generations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ChangedDefinitions {
    pub added: u64,
    pub modified: u64,
    pub deleted: u64,
    /// Files that are in both and differ outside of all definitions.
    pub module_level: u64,
}

/// A file that differs between two generations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileChange {
    pub change: Change,
    pub before_sha256: Option<ContentHash>,
    pub after_sha256: Option<ContentHash>,
}

/// Why an item that could show source shows none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SourceOmitted {
    OutputBudget,
    SourceLineTooLarge,
    /// All its lines stand in the snippet of an item before it.
    ShownAbove,
}

/// One edge of a witness path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct WitnessEdge {
    pub source_id: String,
    pub target_id: String,
    pub kind: EdgeKind,
    pub resolution: Resolution,
    pub rule_id: Arc<str>,
    pub reference_key: Option<String>,
    pub path: Arc<str>,
    pub line: u32,
}

/// A line on which the relation stands, as the source has it, without surrounding white space; `None` where it is too long to show.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Site {
    pub line: u32,
    pub text: Option<String>,
}

/// One entry of `items`: a definition, a file, the piece of a file that `read` gives, or a file that changed.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
#[serde(remote = "Self")]
pub struct Item {
    #[serde(serialize_with = "hex", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub id: Option<SymbolId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<SymbolKind>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub language: Option<Arc<str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<Arc<str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub qualified_name: Option<Arc<str>>,
    pub path: Arc<str>,
    /// The lines of the definition; once source is placed, those of the source.
    pub start_line: u32,
    pub end_line: u32,
    #[serde(serialize_with = "hex")]
    #[schemars(with = "Option<String>")]
    pub file_sha256: Option<ContentHash>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parse_status: Option<ParseStatus>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<Arc<str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Why>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resolution: Option<Resolution>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub granularity: Option<Granularity>,
    /// In which of two compared generations the item, its ids and its lines are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generation: Option<Side>,
    /// The edges walked, nearest to the seed first; empty for what is changed itself, `None` where nothing was walked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub witness_path: Option<Vec<WitnessEdge>>,
    #[serde(flatten)]
    pub detail: Option<Detail>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_omitted: Option<SourceOmitted>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snippet_sha256: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,

    /// Whether another item says the same of the generation that serves.
    #[serde(skip)]
    pub repeated: bool,
    /// What became of the file; an item that has it shows nothing but this and its path.
    #[serde(skip)]
    pub change: Option<FileChange>,
    /// What a reference came to; an item that has it shows nothing else.
    #[serde(skip)]
    pub reference: Option<Box<ReferenceReport>>,
    /// What is shown after all identities and before any snippet, while it fits; rendering moves it to `detail`.
    #[serde(skip)]
    pub wanted: Option<Detail>,
    /// What a snippet may show.
    #[serde(skip)]
    pub source: Option<SourceRange>,
    /// Facts for people that the wire does not carry.
    #[serde(skip)]
    pub module: Option<Arc<str>>,
    #[serde(skip)]
    pub definition_line: u32,
    #[serde(skip)]
    pub signature: Option<Arc<str>>,
    /// All lines of the relation, in order.
    #[serde(skip)]
    pub site_lines: Vec<u32>,
    /// Qualified names of the targets of the witness path, in its order.
    #[serde(skip)]
    pub via: Vec<String>,
    /// Whether the witness path goes through a container, and so says less.
    #[serde(skip)]
    pub through: bool,
    /// For relations in `explore`: index of the seed they belong to.
    #[serde(skip)]
    pub seed: Option<usize>,
}

/// The form of an item that says what became of a file.
#[derive(Serialize, JsonSchema)]
struct Changed<'i> {
    path: &'i str,
    change: Change,
    #[serde(serialize_with = "hex")]
    #[schemars(with = "Option<String>")]
    before_sha256: Option<ContentHash>,
    #[serde(serialize_with = "hex")]
    #[schemars(with = "Option<String>")]
    after_sha256: Option<ContentHash>,
}

/// The forms that an item takes, for descriptions of the wire.
#[derive(JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "AnyItem")]
#[expect(dead_code, reason = "an item takes its form when it is written")]
enum ItemForm {
    Definition(Box<Item>),
    Change(Changed<'static>),
    Reference(ReferenceReport),
}

impl Serialize for Item {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if let Some(reference) = &self.reference {
            return reference.serialize(serializer);
        }
        match self.change {
            Some(FileChange { change, before_sha256, after_sha256 }) => {
                Changed { path: &self.path, change, before_sha256, after_sha256 }.serialize(serializer)
            }
            // The derived form, which `remote` names so.
            None => Self::serialize(self, serializer),
        }
    }
}

/// What one reference came to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ReferenceReport {
    pub path: Arc<str>,
    /// Those of the name token.
    pub line: u32,
    pub col_byte: u32,
    pub name: Arc<str>,
    pub kind: EdgeKind,
    /// Why it has no `resolved_static` edge; `None` when it has one.
    pub reason: Option<Reason>,
    /// How many `candidate` edges it has.
    pub candidates: u32,
    /// Of its surest edge; `None` without any.
    pub resolution: Option<Resolution>,
    pub reference_key: String,
    /// The innermost definition that it stands in, or the file.
    pub source_id: String,
    pub source: String,
    /// What its edges lead to, the surest first.
    pub targets: Vec<ReferenceTarget>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub more_targets: Option<usize>,
    /// All of this in a sentence.
    pub explanation: String,
}

/// Where an edge of a reference leads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ReferenceTarget {
    pub id: String,
    pub kind: SymbolKind,
    pub qualified_name: String,
    pub path: Arc<str>,
    pub line: u32,
    pub resolution: Resolution,
    pub rule_id: Arc<str>,
}

/// Who uses a definition, directly or through others, as far as a few steps lead.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ReachReport {
    /// How many steps were gone.
    pub depth: u32,
    /// Definitions and files at module level that use it, tests not counted, and the files they are in.
    pub users: u64,
    pub files: u64,
    /// The first test files that use it, by path.
    pub test_files: Vec<Arc<str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub more_test_files: Option<usize>,
    /// Uses of its name that could not be bound: they may mean it or another.
    pub unresolved_mentions: u64,
    /// Whether a limit was met, so that there are more.
    pub is_partial: bool,
}

/// The head of a definition and the lines of a relation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Detail {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signature: Option<Arc<str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sites: Option<Vec<Site>>,
    /// How many more lines there are than `sites` lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub more_sites: Option<usize>,
    /// Of what answers a question.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reach: Option<ReachReport>,
}

impl Item {
    /// Returns the item of a node: its identity, without source or relation.
    pub fn of(node: &NodeRow, fingerprint: &Arc<str>) -> Self {
        Self {
            id: Some(node.symbol),
            kind: Some(node.kind),
            language: Some(node.language.clone()),
            name: Some(node.name.clone()),
            qualified_name: Some(node.qualified_name.clone()),
            path: node.path.clone(),
            start_line: node.start_line,
            end_line: node.end_line,
            file_sha256: Some(node.file_hash),
            parse_status: Some(node.parse_status),
            fingerprint: Some(fingerprint.clone()),
            module: node.module.clone(),
            definition_line: if node.name_line > 0 { node.name_line } else { node.start_line },
            signature: node.signature.clone(),
            ..Self::default()
        }
    }
}

impl Item {
    /// Returns whether this is no user but a container that a walk climbed to last.
    pub fn is_container(&self) -> bool {
        self.witness_path.as_ref().and_then(|path| path.last()).is_some_and(|edge| edge.kind == EdgeKind::Contains)
    }
}

impl WitnessEdge {
    /// Returns an edge between two known symbols as a witness.
    pub fn of(edge: &EdgeRow, source: &SymbolId, target: &SymbolId) -> Self {
        Self {
            source_id: source.hex(),
            target_id: target.hex(),
            kind: edge.kind,
            resolution: edge.resolution,
            rule_id: edge.rule.clone(),
            reference_key: (edge.kind != EdgeKind::Contains).then(|| reference_key(edge)),
            path: edge.path.clone(),
            line: edge.line,
        }
    }
}

/// Returns the key of a reference: the same for all edges of one name token, and stable as long as its place is.
pub fn reference_key(edge: &EdgeRow) -> String {
    reference_key_at(&edge.path, edge.line, edge.column, &edge.name)
}

/// As [`reference_key`], from the place and the name of the token.
pub fn reference_key_at(path: &str, line: u32, column: u32, name: &str) -> String {
    let mut record = Canonical::new("reference");
    record.field(path.as_bytes());
    record.number(u64::from(line));
    record.number(u64::from(column));
    record.field(name.as_bytes());
    ContentHash(record.finish()).hex()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_item_serialises_in_the_order_of_the_contract() {
        let item = Item {
            id: Some(ContentHash([0xab; 32])),
            kind: Some(SymbolKind::Method),
            language: Some(Arc::from("python")),
            name: Some(Arc::from("iterator")),
            qualified_name: Some(Arc::from("QuerySet.iterator")),
            path: Arc::from("q.py"),
            start_line: 3,
            end_line: 9,
            file_sha256: Some(ContentHash([1; 32])),
            parse_status: Some(ParseStatus::Ok),
            fingerprint: Some(Arc::from("f")),
            reason: Some(Why::StaticPath),
            resolution: Some(Resolution::ResolvedStatic),
            granularity: Some(Granularity::Symbol),
            source_omitted: Some(SourceOmitted::OutputBudget),
            ..Item::default()
        };
        let expected = format!(
            r#"{{"id":"{}","kind":"method","language":"python","name":"iterator","qualified_name":"QuerySet.iterator","path":"q.py","start_line":3,"end_line":9,"file_sha256":"{}","parse_status":"ok","fingerprint":"f","reason":"static_path","resolution":"resolved_static","granularity":"symbol","source_omitted":"output_budget"}}"#,
            "ab".repeat(32),
            "01".repeat(32)
        );
        assert_eq!(serde_json::to_string(&item).expect("no map keys"), expected);
    }

    #[test]
    fn a_change_has_its_own_form() {
        let change = FileChange { change: Change::Added, before_sha256: None, after_sha256: Some(ContentHash([1; 32])) };
        let item = Item { path: Arc::from("a.py"), change: Some(change), ..Item::default() };
        let expected = format!(r#"{{"path":"a.py","change":"added","before_sha256":null,"after_sha256":"{}"}}"#, "01".repeat(32));
        assert_eq!(serde_json::to_string(&item).expect("no map keys"), expected);
    }
}
