//! The Model Context Protocol: what agents call, over standard streams and over HTTP.
//!
//! Must not know how a tool finds its answer: calls go to a [`Toolbox`], which the layer above supplies. Invariant: nothing is read of a disk
//! before a tool is called, and the tools are the same, in the same order, for every client.
//!
//! ```text
//!  client                                      this server
//!     server/discover, or initialize ────────▶ revisions, tools (nothing was read yet)
//!     tools/call {name, arguments} ──────────▶ arguments fit? ─▶ Toolbox::call, on a thread that may block
//!     ◀── notifications/progress …             (while it works, for who asked)
//!     notifications/cancelled, or gone ──────▶ the work for it alone ends
//!     ◀── text for the reader, structuredContent of the wire contract
//! ```

mod arguments;
mod handler;
mod http;
mod lines;
mod progress;
mod room;
mod schema;
mod stdio;
mod tools;

pub use arguments::{ArgumentError, Arguments};
pub use handler::Handler;
pub use http::routes;
pub use stdio::{McpError, serve};
pub use tools::{Declaration, MAX_BYTES, TOOLS, declared};

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::engine::Onlooker;

/// Does what tools are called for; the layer that knows the commands supplies it.
pub trait Toolbox: Send + Sync + 'static {
    /// Calls a tool for an `onlooker`, who sees how far it is and may go away, and waits for what comes of it.
    fn call(&self, call: &ToolCall, onlooker: &Arc<Onlooker>) -> Outcome;
}

/// A call whose arguments fit the tool.
#[derive(Clone, Debug)]
pub struct ToolCall {
    pub tool: &'static Declaration,
    /// As the client wrote them.
    pub arguments: Map<String, Value>,
    /// Where the client says that it works, should neither the arguments nor the place where this process runs name a worktree.
    pub client_root: Option<PathBuf>,
    /// The scope that the client may ask, where it may not ask any.
    pub scope: Option<String>,
    /// Whether the client may have the index built or brought up to date.
    pub may_sync: bool,
}

impl ToolCall {
    /// Returns whether its arguments leave open where it is to be answered.
    pub fn names_no_place(&self) -> bool {
        ["root", "scope"].iter().all(|name| self.arguments.get(*name).is_none_or(Value::is_null))
    }
}

/// What came of a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// For the one who reads it, no longer than hosts take.
    pub text: String,
    /// An object: an answer of the wire contract, or `{"error": {"code", "message", "hint"}}`.
    pub structured: Map<String, Value>,
    /// Whether it failed, and not only found nothing or needs something done first.
    pub failed: bool,
}

impl Outcome {
    /// Makes the outcome of a call that has no answer.
    pub fn without_answer(error: &Unanswered<'_>) -> Self {
        let Unanswered { code, message, hint, failed } = *error;
        let fields = BTreeMap::from([("code", code), ("message", message), ("hint", hint)]);
        let error = fields.into_iter().map(|(name, value)| (name.to_owned(), Value::from(value))).collect();
        Self {
            text: format!("{}: {message} ({code})\nnext: {hint}\n", if failed { "error" } else { "no answer" }),
            structured: Map::from_iter([("error".to_owned(), Value::Object(error))]),
            failed,
        }
    }

    /// Returns the code of the contract, where there is no answer.
    pub fn code(&self) -> Option<&str> {
        self.structured.get("error")?.get("code")?.as_str()
    }
}

/// Why a call has no answer, and what to do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unanswered<'u> {
    pub code: &'u str,
    pub message: &'u str,
    pub hint: &'u str,
    pub failed: bool,
}

/// The code for which another place may help where a call names none.
pub const NO_ROOT: &str = "repository_root_required";

/// What the server says of itself to every client: how to use it, in a few lines.
const INSTRUCTIONS: &str = "Sextant answers questions about the code of a working tree from a code graph, and checks every indexed \
file against the disk before each answer: what it says holds for the files as they are now, edits of a moment ago included. Start \
with `explore` for a task, a question or a name; follow with `relations` for who calls something or what a change reaches, `tests` \
for the test files a change may break, `read` for lines of a file. A relation marked resolved_static is certain; candidate is \
evidence, not proof. Where there is no index yet the answer says so: call `sync` once. Paths are relative to the root of the \
worktree. For text that is no name in the code, search with grep.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_answer_says_why_and_what_next() {
        let check = |failed, text: &str| {
            let error = Unanswered { code: "code_index_missing", message: "nothing is indexed", hint: "call `sync`", failed };
            let outcome = Outcome::without_answer(&error);
            assert_eq!(outcome.text, text);
            assert_eq!(outcome.code(), Some("code_index_missing"));
            assert_eq!(outcome.failed, failed);
        };
        check(false, "no answer: nothing is indexed (code_index_missing)\nnext: call `sync`\n");
        check(true, "error: nothing is indexed (code_index_missing)\nnext: call `sync`\n");
    }

    #[test]
    fn instructions_are_short() {
        assert!(INSTRUCTIONS.len() < 2048, "hosts cut what is longer");
    }
}
