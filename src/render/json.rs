//! The JSON body of an answer: compact, in the order of the contract.
//!
//! Must not know what was cut. Invariant: the text is exactly what [`super::budget`] measured.

use schemars::JsonSchema;
use serde::Serialize;

use crate::engine::{BuildOutcome, BuildStatus, FailedFile, Status, Verified};
use crate::query::Response;

/// Returns the body of an answer.
pub fn encode(response: &Response) -> String {
    to_json(response)
}

/// Returns the body of an answer as it is when it was checked at another time.
pub fn checked_at(body: &str, time: &str) -> String {
    const FIELD: &str = "\"checked_at\":\"";
    // A quote within a value is written with a backslash before it, so that no value before the field can hold its name so.
    let start = body.find(FIELD).map_or(body.len(), |at| at + FIELD.len());
    let end = body[start..].find('"').map_or(body.len(), |length| start + length);
    [&body[..start], time, &body[end..]].concat()
}

/// Returns the body of a status.
pub fn status(status: &Status) -> String {
    to_json(status)
}

/// Returns the object that says what a build did, its fields the same whatever happened.
pub fn build(outcome: &BuildOutcome) -> String {
    let counts = outcome.counts;
    to_json(&Build {
        status: "ready",
        fingerprint: outcome.fingerprint.hex(),
        published: outcome.status == BuildStatus::Published,
        extracted_files: outcome.extracted_files,
        reused_files: outcome.reused_files,
        removed_files: outcome.removed_files,
        resolved_files: outcome.resolved_files,
        elapsed_seconds: outcome.elapsed_seconds,
        files: counts.files,
        definitions: counts.definitions,
        edges: counts.edges,
        diagnostics: counts.diagnostics,
        partial_files: counts.partial_files,
        failed_files: counts.failed_files,
        failures: &outcome.failures,
        peak_memory_bytes: outcome.peak_memory_bytes,
        stages: outcome
            .stages
            .iter()
            .map(|stage| BuildStage { name: stage.name, seconds: stage.elapsed.as_secs_f64() })
            .collect(),
        verified: outcome.verified.as_deref().copied(),
    })
}

/// What a build did.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Build<'a> {
    status: &'static str,
    fingerprint: String,
    /// Whether a new generation was published.
    published: bool,
    extracted_files: u64,
    reused_files: u64,
    removed_files: u64,
    resolved_files: u64,
    elapsed_seconds: f64,
    files: u64,
    definitions: u64,
    edges: u64,
    diagnostics: u64,
    partial_files: u64,
    failed_files: u64,
    /// The first of these, by path.
    failures: &'a [FailedFile],
    peak_memory_bytes: Option<u64>,
    stages: Vec<BuildStage>,
    /// What a check of everything stored found; null when there was none.
    verified: Option<Verified>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct BuildStage {
    name: &'static str,
    seconds: f64,
}

/// Returns the compact JSON of a value of the contract.
pub(super) fn to_json<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value).expect("values of the contract have string keys and no failing serialiser")
}

/// Returns how many bytes `text` takes inside a JSON string, quotes not counted.
pub(super) fn encoded_length(text: &str) -> usize {
    text.bytes()
        .map(|byte| match byte {
            b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 0x08 | 0x0c => 2,
            0x00..=0x1f => 6,
            _ => 1,
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_of_another_time() {
        let at = |scope: &str, time: &str| {
            let text =
                to_json(&serde_json::json!({ "a_scope_id": scope, "checked_at": time, "items": ["\"checked_at\":\"x\""] }));
            assert!(text.starts_with("{\"a_scope_id\":"), "{text}");
            text
        };
        for scope in ["plain", "\"checked_at\":\"", "\\\"checked_at\":\"x\""] {
            let (now, then) = (at(scope, "now"), at(scope, ""));
            assert_eq!([checked_at(&now, ""), checked_at(&then, "now")], [then, now]);
        }
    }

    #[test]
    fn length_inside_a_string() {
        let every: String = (0..=0x7f).map(char::from).collect();
        for text in ["", "a", "\"\\/\n\r\t\u{8}\u{c}\u{1}\u{7f}", "é→𝄞\u{2028}", every.as_str()] {
            assert_eq!(encoded_length(text) + 2, to_json(&text).len(), "{text:?}");
        }
    }
}
