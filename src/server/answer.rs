//! One request of the wire contract, answered at a desk: what every surface gives for it.
//!
//! Must not know which surface asks. Invariant: equal requests of equal worktrees get the same text from all of them, but for the time of
//! the check.

use std::sync::Arc;
use std::time::Duration;

use crate::config::OnStale;
use crate::engine::{Admission, Baseline, Desk, Guest};
use crate::model::sentence;
use crate::query::{self, Operation, Request};
use crate::render::{budget, json};

/// Why a request has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The code of the contract (§3).
    pub code: &'static str,
    /// A sentence without a trailing dot. It may name paths and values of the request.
    pub message: String,
}

impl Refusal {
    pub fn new(code: &'static str, error: &dyn std::error::Error) -> Self {
        Self { code, message: sentence(error) }
    }
}

/// Answers a request at the desk of its scope: returns the body. Checks and operation together take no longer than `limit`.
///
/// Who asks what was asked of the same generation before is given the same body, as it would come out again; it is checked as any other.
///
/// # Errors
/// With the code that the contract has for it.
pub fn answer(desk: &Guest, request: &Request, on_stale: OnStale, limit: Duration) -> Result<String, Refusal> {
    if request.operation == Operation::Status {
        let status = desk.status();
        return match (request.expected_fingerprint, &status.fingerprint) {
            (Some(expected), Some(found)) if expected.hex() != *found => {
                Err(Refusal { code: "code_changed", message: "the fingerprint is not what the request expects".to_owned() })
            }
            _ => Ok(json::status(&status)),
        };
    }
    let admission =
        Admission { on_stale, expected_fingerprint: request.expected_fingerprint, baseline: baseline(request), limit };
    // Names every field of the request.
    let question = format!("{request:?}");
    let found = desk.ask(admission, |snapshot| {
        if let Some(body) = snapshot.remembered(&question) {
            return Ok(json::checked_at(&body, snapshot.checked_at()));
        }
        let response = query::run(snapshot, request).map_err(|error| Refusal::new(error.code(), &error))?;
        let response = budget::fit(response, request.max_bytes).map_err(|error| Refusal::new(error.code(), &error))?;
        let body = json::encode(&response);
        snapshot.remember(&question, &Arc::from(json::checked_at(&body, "")));
        Ok(body)
    });
    found.map_err(|error| Refusal::new(error.code(), &error))?.value
}

/// Returns what a scope says is to happen to a strict caller's question when the index is stale: an implicit one syncs for people only,
/// as a strict caller has said nothing of the kind.
pub fn strict_policy(desk: &Desk, is_implicit: bool) -> OnStale {
    if is_implicit { OnStale::Refuse } else { desk.scope().on_stale() }
}

/// Returns what the answer compares with.
fn baseline(request: &Request) -> Baseline {
    match (&request.operation, request.before_fingerprint) {
        (Operation::Changes, _) => Baseline::Previous,
        (_, Some(fingerprint)) => Baseline::Kept(fingerprint),
        _ => Baseline::None,
    }
}
