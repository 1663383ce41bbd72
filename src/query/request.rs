//! The request of the wire contract (§1): from bytes to a [`Request`] that holds only allowed values.
//!
//! Must not know generations or how answers look. Invariant: what [`parse`] accepts fits the contract to the letter; nothing is coerced,
//! no field is ignored, and a name that occurs twice is an error.

use std::collections::BTreeSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

use crate::engine::OPERATIONS;
use crate::model::{ContentHash, Fingerprint, PathPrefix, RepoPath};

/// Largest body of a request in bytes.
pub const MAX_BODY: usize = 64 * 1024;
/// Bounds and default of `max_bytes`.
pub const MIN_BYTES: usize = 512;
pub const MAX_BYTES: usize = 32_768;
pub const DEFAULT_BYTES: usize = 16_000;
/// Bounds and default of `limit`.
pub const MAX_LIMIT: usize = 50;
pub const DEFAULT_LIMIT: usize = 20;
/// Bounds and default of `depth`.
pub const MAX_DEPTH: u32 = 5;
pub const DEFAULT_DEPTH: u32 = 2;
/// Most characters of a `query`.
pub const MAX_QUERY: usize = 8192;
/// Most lines of one `read`.
pub const MAX_READ_LINES: u64 = 200;
/// Most characters of a symbol id.
pub const MAX_SYMBOL: usize = 128;
/// Most characters of a reference's name that can be asked for.
pub const MAX_NAME: usize = 1024;
/// Most paths that one question starts from.
pub const MAX_PATHS: usize = 100;

/// A request that fits the contract.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub operation: Operation,
    pub expected_fingerprint: Option<Fingerprint>,
    pub before_fingerprint: Option<Fingerprint>,
    /// Bound of the whole JSON body in bytes.
    pub max_bytes: usize,
}

impl Request {
    /// Returns a request without expectations and with the default budget.
    pub fn new(operation: Operation) -> Self {
        Self { operation, expected_fingerprint: None, before_fingerprint: None, max_bytes: DEFAULT_BYTES }
    }

    /// Returns a request whose answer people read: no budget in bytes holds.
    pub fn for_people(operation: Operation) -> Self {
        Self { max_bytes: usize::MAX, ..Self::new(operation) }
    }
}

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    Status,
    Map { prefix: PathPrefix, depth: u32, limit: usize },
    Symbols { query: String, prefix: PathPrefix, limit: usize },
    Explore { query: String, prefix: PathPrefix, limit: usize },
    Callers(Relation),
    Callees(Relation),
    Impact(Relation),
    AffectedTests(Paths),
    Read { path: RepoPath, file_sha256: ContentHash, start_line: u64, end_line: u64 },
    Changes,
    ImpactChanges(Paths),
    Diagnostics(References),
}

/// A question about what references came to. Without a name it is about those that are not bound for certain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct References {
    /// The file, or the folder of the files, that the references stand in.
    pub path: PathPrefix,
    /// The definition that they stand in.
    pub symbol_id: Option<String>,
    /// Their name, or that of what they lead to.
    pub name: Option<String>,
    pub limit: usize,
}

/// A question that starts at one symbol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Relation {
    pub symbol_id: String,
    pub depth: u32,
    pub prefix: PathPrefix,
    pub limit: usize,
}

/// A question that starts at files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paths {
    pub paths: Vec<RepoPath>,
    pub prefix: PathPrefix,
    pub limit: usize,
}

impl Operation {
    /// Returns the word of the contract.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Status => "status",
            Self::Map { .. } => "map",
            Self::Symbols { .. } => "symbols",
            Self::Explore { .. } => "explore",
            Self::Callers(_) => "callers",
            Self::Callees(_) => "callees",
            Self::Impact(_) => "impact",
            Self::AffectedTests(_) => "affected_tests",
            Self::Read { .. } => "read",
            Self::Changes => "changes",
            Self::ImpactChanges(_) => "impact_changes",
            Self::Diagnostics(_) => "diagnostics",
        }
    }

    /// Returns whether the contract demands `expected_fingerprint`.
    fn needs_fingerprint(&self) -> bool {
        matches!(
            self,
            Self::Callers(_)
                | Self::Callees(_)
                | Self::Impact(_)
                | Self::AffectedTests(_)
                | Self::Read { .. }
                | Self::ImpactChanges(_)
                | Self::Diagnostics(References { symbol_id: Some(_), .. })
        )
    }
}

/// Why a body is not a request: which field, and what it must be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    #[error("the request is {0} bytes long; at most {MAX_BODY} are read")]
    TooLarge(usize),
    #[error("the request is not JSON: {0}")]
    Syntax(String),
    #[error("`{field}` {problem}")]
    Field { field: String, problem: String },
}

impl RequestError {
    /// Returns the code of the contract (§3), as the CLI names it.
    pub fn code(&self) -> &'static str {
        "invalid_code_request"
    }

    /// Returns the field at fault, `None` when the body as a whole is.
    pub fn field(&self) -> Option<&str> {
        match self {
            Self::TooLarge(_) | Self::Syntax(_) => None,
            Self::Field { field, .. } => Some(field),
        }
    }
}

type Result<T> = std::result::Result<T, RequestError>;

fn refuse<T>(field: &str, problem: impl Into<String>) -> Result<T> {
    Err(RequestError::Field { field: field.to_owned(), problem: problem.into() })
}

/// Parses the body of a request.
///
/// # Errors
/// [`RequestError`] when the body does not fit the contract (§1).
pub fn parse(body: &[u8]) -> Result<Request> {
    if body.len() > MAX_BODY {
        return Err(RequestError::TooLarge(body.len()));
    }
    let value: Json = serde_json::from_slice(body).map_err(|error| RequestError::Syntax(error.to_string()))?;
    let mut fields = Fields::open("", value)?;
    let mut inner = match fields.take("operation") {
        Some(value) => Fields::open("operation", value)?,
        None => return refuse("operation", "is missing"),
    };
    let operation = parse_operation(&mut inner)?;
    inner.close()?;
    let expected_fingerprint = fields.fingerprint("expected_fingerprint")?;
    let before_fingerprint = fields.fingerprint("before_fingerprint")?;
    let max_bytes = fields.integer("max_bytes", MIN_BYTES as u64..=MAX_BYTES as u64, Some(DEFAULT_BYTES as u64))? as usize;
    fields.close()?;
    if expected_fingerprint.is_none() && operation.needs_fingerprint() {
        let what =
            if matches!(operation, Operation::Diagnostics(_)) { "`symbol_id`" } else { &format!("`{}`", operation.kind()) };
        return refuse("expected_fingerprint", format!("is required for {what}"));
    }
    let compares = matches!(operation, Operation::ImpactChanges(_));
    if compares && before_fingerprint.is_none() {
        return refuse("before_fingerprint", "is required for `impact_changes`");
    }
    if !compares && before_fingerprint.is_some() {
        return refuse("before_fingerprint", "is allowed for `impact_changes` only");
    }
    Ok(Request { operation, expected_fingerprint, before_fingerprint, max_bytes })
}

fn parse_operation(fields: &mut Fields) -> Result<Operation> {
    let kind = fields.text("kind", 1..=64)?;
    Ok(match kind.as_str() {
        "status" => Operation::Status,
        "map" => Operation::Map { prefix: fields.prefix()?, depth: fields.depth()?, limit: fields.limit()? },
        "symbols" => Operation::Symbols { query: fields.query()?, prefix: fields.prefix()?, limit: fields.limit()? },
        "explore" => Operation::Explore { query: fields.query()?, prefix: fields.prefix()?, limit: fields.limit()? },
        "callers" => Operation::Callers(fields.relation()?),
        "callees" => Operation::Callees(fields.relation()?),
        "impact" => Operation::Impact(fields.relation()?),
        "affected_tests" => Operation::AffectedTests(fields.paths()?),
        "read" => {
            let path = fields.text("path", 0..=usize::MAX)?;
            let path = match RepoPath::parse(&path) {
                Ok(path) => path,
                Err(error) => return refuse(&fields.name("path"), format!("is not a relative path: {error}")),
            };
            let file_sha256 = fields.text("file_sha256", 0..=usize::MAX)?;
            let Some(file_sha256) = ContentHash::parse(&file_sha256) else {
                return refuse(&fields.name("file_sha256"), "must be 64 lower-case hexadecimal digits");
            };
            let start_line = fields.integer("start_line", 1..=u64::MAX, None)?;
            let end_line = fields.integer("end_line", 1..=u64::MAX, None)?;
            if end_line < start_line || end_line - start_line >= MAX_READ_LINES {
                return refuse(&fields.name("end_line"), format!("must be from start_line to {MAX_READ_LINES} lines in all"));
            }
            Operation::Read { path, file_sha256, start_line, end_line }
        }
        "changes" => Operation::Changes,
        "impact_changes" => Operation::ImpactChanges(fields.paths()?),
        "diagnostics" => Operation::Diagnostics(References {
            path: fields.path_below("path")?,
            symbol_id: fields.optional_text("symbol_id", 1..=MAX_SYMBOL)?,
            name: fields.reference_name()?,
            limit: fields.limit()?,
        }),
        _ => return refuse(&fields.name("kind"), format!("must be one of {}", OPERATIONS.join(", "))),
    })
}

/// A JSON value that keeps integers apart from other numbers and refuses a repeated name.
#[derive(Clone, Debug, PartialEq)]
enum Json {
    Null,
    Bool,
    Integer(u64),
    /// Negative, fractional or too large; no field of the contract takes one.
    OtherNumber,
    Text(String),
    List(Vec<Json>),
    Object(Vec<(String, Json)>),
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        deserializer.deserialize_any(JsonVisitor)
    }
}

struct JsonVisitor;

impl<'de> Visitor<'de> for JsonVisitor {
    type Value = Json;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> std::result::Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, _: bool) -> std::result::Result<Json, E> {
        Ok(Json::Bool)
    }

    fn visit_u64<E>(self, value: u64) -> std::result::Result<Json, E> {
        Ok(Json::Integer(value))
    }

    fn visit_i64<E>(self, value: i64) -> std::result::Result<Json, E> {
        Ok(u64::try_from(value).map_or(Json::OtherNumber, Json::Integer))
    }

    fn visit_f64<E>(self, _: f64) -> std::result::Result<Json, E> {
        Ok(Json::OtherNumber)
    }

    fn visit_str<E>(self, value: &str) -> std::result::Result<Json, E> {
        Ok(Json::Text(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> std::result::Result<Json, E> {
        Ok(Json::Text(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> std::result::Result<Json, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = list.next_element()? {
            values.push(value);
        }
        Ok(Json::List(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<Json, A::Error> {
        let mut names = BTreeSet::new();
        let mut values = Vec::new();
        while let Some((name, value)) = map.next_entry::<String, Json>()? {
            if !names.insert(name.clone()) {
                return Err(serde::de::Error::custom(format_args!("`{name}` occurs twice")));
            }
            values.push((name, value));
        }
        Ok(Json::Object(values))
    }
}

/// The fields of one object, taken one by one; [`Fields::close`] refuses what is left.
struct Fields {
    owner: &'static str,
    values: Vec<(String, Json)>,
}

impl Fields {
    fn open(owner: &'static str, value: Json) -> Result<Self> {
        match value {
            Json::Object(values) => Ok(Self { owner, values }),
            _ => refuse(if owner.is_empty() { "request" } else { owner }, "must be an object"),
        }
    }

    fn name(&self, field: &str) -> String {
        if self.owner.is_empty() { field.to_owned() } else { format!("{}.{field}", self.owner) }
    }

    fn take(&mut self, field: &str) -> Option<Json> {
        let index = self.values.iter().position(|(name, _)| name == field)?;
        Some(self.values.swap_remove(index).1)
    }

    fn close(self) -> Result<()> {
        match self.values.iter().map(|(name, _)| name).min() {
            None => Ok(()),
            // A name may be long; the message is not.
            Some(name) => refuse(&self.name(&name.chars().take(64).collect::<String>()), "is not a field here"),
        }
    }

    fn text(&mut self, field: &str, length: std::ops::RangeInclusive<usize>) -> Result<String> {
        match self.take(field) {
            None => refuse(&self.name(field), "is missing"),
            Some(Json::Text(text)) if length.contains(&text.chars().count()) => Ok(text),
            Some(Json::Text(_)) => {
                refuse(&self.name(field), format!("must have from {} to {} characters", length.start(), length.end()))
            }
            Some(_) => refuse(&self.name(field), "must be a string"),
        }
    }

    fn integer(&mut self, field: &str, range: std::ops::RangeInclusive<u64>, default: Option<u64>) -> Result<u64> {
        match (self.take(field), default) {
            (None, Some(default)) => Ok(default),
            (None, None) => refuse(&self.name(field), "is missing"),
            (Some(Json::Integer(value)), _) if range.contains(&value) => Ok(value),
            (Some(_), _) if *range.end() == u64::MAX => {
                refuse(&self.name(field), format!("must be an integer of at least {}", range.start()))
            }
            (Some(_), _) => refuse(&self.name(field), format!("must be an integer from {} to {}", range.start(), range.end())),
        }
    }

    fn fingerprint(&mut self, field: &str) -> Result<Option<Fingerprint>> {
        match self.take(field) {
            None | Some(Json::Null) => Ok(None),
            Some(Json::Text(text)) if Fingerprint::parse(&text).is_some() => Ok(Fingerprint::parse(&text)),
            Some(_) => refuse(&self.name(field), "must be null or 64 lower-case hexadecimal digits"),
        }
    }

    fn query(&mut self) -> Result<String> {
        let query = self.text("query", 1..=MAX_QUERY)?;
        if query.trim().is_empty() { refuse(&self.name("query"), "must not be blank") } else { Ok(query) }
    }

    /// The name of references, with the marks that people write around it.
    fn reference_name(&mut self) -> Result<Option<String>> {
        let name = self.optional_text("name", 1..=MAX_NAME)?;
        let is_blank = |name: &String| name.trim().trim_end_matches("()").is_empty();
        if name.as_ref().is_some_and(is_blank) { refuse(&self.name("name"), "must not be blank") } else { Ok(name) }
    }

    fn prefix(&mut self) -> Result<PathPrefix> {
        self.path_below("path_prefix")
    }

    /// A path that stands for itself and all below it; the root when it is missing.
    fn path_below(&mut self, field: &str) -> Result<PathPrefix> {
        let text = match self.take(field) {
            None => String::new(),
            Some(Json::Text(text)) => text,
            Some(_) => return refuse(&self.name(field), "must be a string"),
        };
        PathPrefix::parse(&text).or_else(|error| refuse(&self.name(field), format!("is not a relative path: {error}")))
    }

    fn optional_text(&mut self, field: &str, length: std::ops::RangeInclusive<usize>) -> Result<Option<String>> {
        let is_there = self.values.iter().any(|(name, _)| name == field);
        if is_there { self.text(field, length).map(Some) } else { Ok(None) }
    }

    fn depth(&mut self) -> Result<u32> {
        Ok(self.integer("depth", 1..=u64::from(MAX_DEPTH), Some(u64::from(DEFAULT_DEPTH)))? as u32)
    }

    fn limit(&mut self) -> Result<usize> {
        Ok(self.integer("limit", 1..=MAX_LIMIT as u64, Some(DEFAULT_LIMIT as u64))? as usize)
    }

    fn relation(&mut self) -> Result<Relation> {
        Ok(Relation {
            symbol_id: self.text("symbol_id", 1..=MAX_SYMBOL)?,
            depth: self.depth()?,
            prefix: self.prefix()?,
            limit: self.limit()?,
        })
    }

    fn paths(&mut self) -> Result<Paths> {
        let field = self.name("paths");
        let values = match self.take("paths") {
            None => return refuse(&field, "is missing"),
            Some(Json::List(values)) => values,
            Some(_) => return refuse(&field, "must be a list of paths"),
        };
        if values.is_empty() || values.len() > MAX_PATHS {
            return refuse(&field, format!("must hold from 1 to {MAX_PATHS} paths"));
        }
        let mut paths = Vec::with_capacity(values.len());
        for (index, value) in values.into_iter().enumerate() {
            let field = format!("{field}[{index}]");
            let Json::Text(text) = value else { return refuse(&field, "must be a string") };
            match RepoPath::parse(&text) {
                Ok(path) if paths.contains(&path) => return refuse(&field, "occurs twice"),
                Ok(path) => paths.push(path),
                Err(error) => return refuse(&field, format!("is not a relative path: {error}")),
            }
        }
        Ok(Paths { paths, prefix: self.prefix()?, limit: self.limit()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const F: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

    fn check(body: &str, expected: &str) {
        let body = body.replace("$F", F);
        let actual = match parse(body.as_bytes()) {
            Ok(request) => format!("{} {}", request.operation.kind(), request.max_bytes),
            Err(error) => error.to_string(),
        };
        assert!(actual.starts_with(expected), "{body}\n  gave     {actual}\n  expected {expected}");
    }

    #[test]
    fn accepted() {
        check(r#"{"operation":{"kind":"status"}}"#, "status 16000");
        check(r#"{"operation":{"kind":"map"},"max_bytes":512,"expected_fingerprint":null}"#, "map 512");
        check(r#"{"operation":{"kind":"explore","query":"x","path_prefix":"src"},"before_fingerprint":null}"#, "explore");
        check(r#"{"operation":{"kind":"callers","symbol_id":"x","depth":5},"expected_fingerprint":"$F"}"#, "callers");
        check(
            r#"{"operation":{"kind":"read","path":"a","file_sha256":"$F","start_line":1,"end_line":200},"expected_fingerprint":"$F"}"#,
            "read",
        );
        check(r#"{"operation":{"kind":"affected_tests","paths":["a","b"]},"expected_fingerprint":"$F"}"#, "affected_tests");
        check(r#"{"operation":{"kind":"impact","symbol_id":"x"},"expected_fingerprint":"$F"}"#, "impact");
        check(
            r#"{"operation":{"kind":"impact_changes","paths":["a"]},"expected_fingerprint":"$F","before_fingerprint":"$F"}"#,
            "impact_changes",
        );
        check(r#"{"operation":{"kind":"changes"}}"#, "changes");
        check(r#"{"operation":{"kind":"diagnostics"}}"#, "diagnostics");
        check(r#"{"operation":{"kind":"diagnostics","path":"src/a.py","limit":50}}"#, "diagnostics");
        check(r#"{"operation":{"kind":"diagnostics","symbol_id":"x","name":"a.b"},"expected_fingerprint":"$F"}"#, "diagnostics");
    }

    #[test]
    fn defaults() {
        let request = parse(br#"{"operation":{"kind":"map"}}"#).expect("valid");
        assert_eq!(request.operation, Operation::Map { prefix: PathPrefix::default(), depth: 2, limit: 20 });
    }

    #[test]
    fn unknown_missing_and_repeated_fields() {
        check(r#"{"operation":{"kind":"status"},"x":1}"#, "`x` is not a field here");
        check(r#"{"operation":{"kind":"status","limit":1}}"#, "`operation.limit` is not a field here");
        check(r#"{"operation":{"kind":"symbols","query":"a","depth":1}}"#, "`operation.depth` is not a field here");
        check(r#"{"operation":{"kind":"map","limit":1,"limit":1}}"#, "the request is not JSON: `limit` occurs twice");
        check(r#"{}"#, "`operation` is missing");
        check(r#"{"operation":{}}"#, "`operation.kind` is missing");
        check(r#"{"operation":{"kind":"symbols"}}"#, "`operation.query` is missing");
        check(r#"{"operation":{"kind":"diagnostics","path_prefix":""}}"#, "`operation.path_prefix` is not a field here");
        check(r#"{"operation":{"kind":"diagnostics","depth":1}}"#, "`operation.depth` is not a field here");
        check(r#"{"operation":{"kind":"nope"}}"#, "`operation.kind` must be one of status, map");
        check(r#"[]"#, "`request` must be an object");
        check(r#"{"operation":"map"}"#, "`operation` must be an object");
        check(r#"{"operation":{"kind":"status"}} x"#, "the request is not JSON");
        check("", "the request is not JSON");
    }

    #[test]
    fn nothing_is_coerced() {
        for limit in ["\"1\"", "true", "1.0", "1e1", "0", "-1", "51", "null", "[]", "99999999999999999999"] {
            check(
                &format!(r#"{{"operation":{{"kind":"map","limit":{limit}}}}}"#),
                "`operation.limit` must be an integer from 1 to 50",
            );
        }
        check(r#"{"operation":{"kind":"symbols","query":1}}"#, "`operation.query` must be a string");
        check(r#"{"operation":{"kind":"symbols","query":" \n"}}"#, "`operation.query` must not be blank");
        check(r#"{"operation":{"kind":"diagnostics","path":null}}"#, "`operation.path` must be a string");
        check(r#"{"operation":{"kind":"diagnostics","path":"../a"}}"#, "`operation.path` is not a relative path");
        check(r#"{"operation":{"kind":"diagnostics","name":""}}"#, "`operation.name` must have from 1 to 1024 characters");
        check(r#"{"operation":{"kind":"diagnostics","name":" "}}"#, "`operation.name` must not be blank");
        check(r#"{"operation":{"kind":"diagnostics","name":"()"}}"#, "`operation.name` must not be blank");
        check(r#"{"operation":{"kind":"diagnostics","name":null}}"#, "`operation.name` must be a string");
        check(r#"{"operation":{"kind":"symbols","query":""}}"#, "`operation.query` must have from 1 to 8192 characters");
        check(r#"{"operation":{"kind":"status"},"max_bytes":511}"#, "`max_bytes` must be an integer from 512 to 32768");
        check(r#"{"operation":{"kind":"status"},"expected_fingerprint":"A"}"#, "`expected_fingerprint` must be null or 64");
    }

    #[test]
    fn lengths_are_counted_in_characters() {
        let query = |length| format!(r#"{{"operation":{{"kind":"symbols","query":"{}"}}}}"#, "é".repeat(length));
        check(&query(8192), "symbols");
        check(&query(8193), "`operation.query` must have");
        check(&" ".repeat(MAX_BODY + 1), "the request is 65537 bytes long");
    }

    #[test]
    fn paths() {
        for bad in ["/a", "a//b", "../a", "a\\\\b", "c:d", "a/.", "\\u0000"] {
            check(
                &format!(r#"{{"operation":{{"kind":"map","path_prefix":"{bad}"}}}}"#),
                "`operation.path_prefix` is not a relative path",
            );
        }
        check(r#"{"operation":{"kind":"map","path_prefix":"\ud800"}}"#, "the request is not JSON");
        check(
            r#"{"operation":{"kind":"affected_tests","paths":["a","a"]},"expected_fingerprint":"$F"}"#,
            "`operation.paths[1]` occurs twice",
        );
        check(
            r#"{"operation":{"kind":"affected_tests","paths":[]},"expected_fingerprint":"$F"}"#,
            "`operation.paths` must hold from 1",
        );
        check(
            r#"{"operation":{"kind":"read","path":"","file_sha256":"$F","start_line":1,"end_line":2},"expected_fingerprint":"$F"}"#,
            "`operation.path` is not a relative path: the path is empty",
        );
    }

    #[test]
    fn fingerprints_and_ranges() {
        check(r#"{"operation":{"kind":"callers","symbol_id":"x"}}"#, "`expected_fingerprint` is required for `callers`");
        check(
            r#"{"operation":{"kind":"impact_changes","paths":["a"]},"expected_fingerprint":"$F"}"#,
            "`before_fingerprint` is required",
        );
        check(r#"{"operation":{"kind":"map"},"before_fingerprint":"$F"}"#, "`before_fingerprint` is allowed for");
        check(r#"{"operation":{"kind":"diagnostics","symbol_id":"x"}}"#, "`expected_fingerprint` is required for `symbol_id`");
        for (start, end) in [(1, 201), (2, 1)] {
            check(
                &format!(
                    r#"{{"operation":{{"kind":"read","path":"a","file_sha256":"$F","start_line":{start},"end_line":{end}}},"expected_fingerprint":"$F"}}"#
                ),
                "`operation.end_line` must be from start_line",
            );
        }
    }
}
