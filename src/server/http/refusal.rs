//! What is refused, as HTTP says it: the contract's code, its status, and a sentence.
//!
//! Must not know what was asked. Invariant: a sentence comes from this table and from nowhere else, so that none holds source, a path or
//! anything of a request.

use std::collections::BTreeSet;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Serialize;

use crate::query::RequestError;

/// One code: its status and what is said of it.
struct Row {
    code: &'static str,
    status: u16,
    message: &'static str,
}

const fn row(code: &'static str, status: u16, message: &'static str) -> Row {
    Row { code, status, message }
}

static TABLE: &[Row] = &[
    row("invalid_request", 422, "the request does not fit the contract"),
    row("invalid_code_request", 422, "the request does not fit the contract"),
    row("budget_too_small", 422, "the smallest honest answer is larger than `max_bytes`"),
    row("code_target_missing", 422, "the symbol, path or seed is not in this generation, or outside `path_prefix`"),
    row("code_range_missing", 422, "`start_line` is past the end of the file"),
    row("repository_root_required", 422, "the configured root is not the top of a worktree"),
    row("code_cache_inside_repository", 422, "the cache would lie inside the indexed tree"),
    row("code_changed", 409, "the worktree, or what the request expects of it, differs from the index; sync and ask again"),
    row("baseline_unavailable", 409, "there is no kept generation to compare with"),
    row("workspace_busy", 409, "the worktree kept changing, or a merge is not finished; ask again"),
    row("unsupported_capability", 501, "this operation or language is not supported"),
    row("code_disabled", 503, "questions about code are disabled here"),
    row("code_repository_unconfigured", 503, "no such scope is configured here"),
    row("code_index_missing", 503, "nothing was indexed yet; sync first"),
    row("code_timeout", 503, "the deadline passed"),
    row("index_integrity_failed", 503, "the index is damaged; a sync repairs it"),
    row("code_storage_unavailable", 503, "the cache cannot be used"),
    row("code_build_failed", 503, "the build failed; what was published serves on"),
    row("code_cache_limit_exceeded", 503, "the cache has reached its limit of size"),
    row("repository_unavailable", 503, "the worktree cannot be found or used"),
    row("repository_read_failed", 503, "the worktree cannot be read"),
    row("repository_limit_exceeded", 503, "the worktree is larger than its limits"),
    row("unsupported_git_object_format", 503, "the format of the repository is not read"),
    row("code_parser_failed", 503, "the parsers cannot work; what was published serves on"),
    row("server_busy", 503, "too much is asked at once; ask again"),
    row("malformed_request", 400, "this is not a request of HTTP/1.1"),
    row("unauthorized", 401, "a valid bearer token is needed"),
    row("forbidden", 403, "this is not allowed to whoever asks"),
    row("not_found", 404, "there is no such route"),
    row("method_not_allowed", 405, "the route does not take this method"),
    row("request_timeout", 408, "the request did not arrive in time"),
    row("request_too_large", 413, "the body is larger than 64 KiB"),
    row("head_too_large", 431, "the head of the request is too large"),
    row("internal_error", 500, "something is wrong with the service; its log says more"),
];

/// Most characters that are said of one mistake.
const MOST_SAID: usize = 300;

/// Returns the status of a code, if HTTP has one for it.
pub fn status_of(code: &str) -> Option<u16> {
    TABLE.iter().find(|row| row.code == code).map(|row| row.status)
}

/// Returns what is said of a code: a sentence that holds nothing of a request, a worktree or this machine.
pub fn sentence_of(code: &str) -> &'static str {
    TABLE.iter().find(|row| row.code == code).map_or("this cannot be answered", |row| row.message)
}

/// The contract's error object.
#[derive(Serialize, JsonSchema)]
pub struct ErrorBody<'r> {
    error: ErrorDetail<'r>,
}

#[derive(Serialize, JsonSchema)]
struct ErrorDetail<'r> {
    code: &'r str,
    message: &'r str,
    details: Option<Details<'r>>,
}

#[derive(Serialize, JsonSchema)]
struct Details<'r> {
    errors: &'r [Mistake],
}

/// A request that has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    code: &'static str,
    /// What is wrong with which part of the request.
    errors: Vec<Mistake>,
}

/// One mistake of a request, in the form of `details.errors`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
struct Mistake {
    #[serde(rename = "type")]
    kind: &'static str,
    /// `body`, then the names of the fields that lead to it.
    loc: Vec<String>,
    msg: String,
}

impl Refusal {
    /// Refuses with a code of the table; a word that is none of them is a defect of the service.
    pub fn new(code: &str) -> Self {
        let code = TABLE.iter().find(|row| row.code == code).map_or("internal_error", |row| row.code);
        Self { code, errors: Vec::new() }
    }

    /// Refuses a body that is not a request.
    pub fn of_request(error: &RequestError) -> Self {
        let mut loc = vec!["body".to_owned()];
        let (kind, msg) = match error {
            RequestError::TooLarge(_) => return Self::new("request_too_large"),
            RequestError::Syntax(problem) => ("json_invalid", problem.clone()),
            RequestError::Field { field, problem } => {
                loc.extend(field.split('.').map(str::to_owned));
                ("value_error", problem.clone())
            }
        };
        // It may repeat a name of the request, which may be long.
        let msg = msg.chars().take(MOST_SAID).collect();
        Self { code: "invalid_request", errors: vec![Mistake { kind, loc, msg }] }
    }

    /// Refuses a body that is not said to be JSON, or is not empty where it has to be.
    pub fn of_body(problem: &str) -> Self {
        let mistake = Mistake { kind: "value_error", loc: vec!["body".to_owned()], msg: problem.to_owned() };
        Self { code: "invalid_request", errors: vec![mistake] }
    }

    /// Returns the statuses that refusals have, each once, in order.
    pub fn statuses() -> BTreeSet<u16> {
        TABLE.iter().map(|row| row.status).collect()
    }

    fn row(&self) -> &'static Row {
        TABLE.iter().find(|row| row.code == self.code).expect("`new` takes codes of the table only")
    }

    pub fn code(&self) -> &'static str {
        self.code
    }

    pub fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.row().status).expect("the table holds statuses")
    }

    /// Returns the contract's error object.
    pub fn body(&self) -> String {
        let details = (!self.errors.is_empty()).then_some(Details { errors: &self.errors });
        let error = ErrorDetail { code: self.code, message: self.row().message, details };
        serde_json::to_string(&ErrorBody { error }).expect("plain values have JSON")
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut response = json(self.status(), self.body());
        let headers = response.headers_mut();
        match self.code {
            "unauthorized" => drop(headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))),
            "server_busy" => drop(headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"))),
            _ => {}
        }
        response.extensions_mut().insert(Code(self.code));
        response
    }
}

/// The code of a refusal, for whoever counts them.
#[derive(Clone, Copy, Debug)]
pub struct Code(pub &'static str);

/// Returns a response that is JSON.
pub fn json(status: StatusCode, body: String) -> Response {
    let kind = [(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))];
    (status, kind, body).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::request;

    #[test]
    fn a_refusal_as_the_contract_writes_it() {
        let body = Refusal::new("code_changed").body();
        assert!(
            body.starts_with(r#"{"error":{"code":"code_changed","message":""#) && body.ends_with(r#"","details":null}}"#),
            "{body}"
        );
        assert_eq!(Refusal::new("no such word").status(), StatusCode::INTERNAL_SERVER_ERROR);
    }

    #[test]
    fn a_mistake_names_its_place() {
        let check = |body: &str, want: &str| {
            let error = request::parse(body.as_bytes()).expect_err("refused");
            let refusal: serde_json::Value = serde_json::from_str(&Refusal::of_request(&error).body()).expect("JSON");
            assert_eq!(refusal["error"]["details"]["errors"][0]["loc"].to_string(), want, "{body}");
        };
        check("{", r#"["body"]"#);
        check("{}", r#"["body","operation"]"#);
        check(r#"{"operation":{"kind":"map","limit":99}}"#, r#"["body","operation","limit"]"#);
    }
}
