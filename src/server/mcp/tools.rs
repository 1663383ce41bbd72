//! The tools: their names, what they are for, what they take and what they give. Data alone.
//!
//! Must not know how a tool is called. Invariant: the order is fixed, and whatever a schema, a check or a test says of a tool comes from here.

use crate::query::request::{DEFAULT_BYTES, DEFAULT_DEPTH, DEFAULT_LIMIT, MAX_DEPTH, MAX_LIMIT, MAX_QUERY, MAX_READ_LINES};

/// A tool as clients see it.
#[derive(Debug)]
pub struct Declaration {
    pub name: &'static str,
    pub title: &'static str,
    /// For an agent that chooses: when to use it, what comes back, what not.
    pub description: &'static str,
    pub parameters: &'static [Parameter],
    pub gives: Gives,
    /// Whether it leaves the index as it is, but for a sync that makes an answer true.
    pub is_read_only: bool,
}

/// One argument.
#[derive(Debug)]
pub struct Parameter {
    pub name: &'static str,
    pub kind: Kind,
    pub is_required: bool,
    pub description: &'static str,
}

/// What an argument may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Text of at most so many characters that is not blank.
    Text {
        most: usize,
    },
    /// Up to so many texts, at least one.
    Texts {
        most: usize,
    },
    /// A whole number within bounds, and what it is when left out.
    Number {
        least: usize,
        most: usize,
        default: usize,
    },
    /// One of these words.
    Word(&'static [&'static str]),
    Flag,
}

/// Which objects of the contract come back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gives {
    Answer,
    Status,
    Build,
}

/// The largest budget: even where each byte is a token, no text is longer than hosts take.
pub const MAX_BYTES: usize = 24_000;
/// Least bytes of an answer, as the contract says.
const MIN_BYTES: usize = crate::query::request::MIN_BYTES;
pub(super) const MAX_PATH: usize = 4096;

const fn required(name: &'static str, kind: Kind, description: &'static str) -> Parameter {
    Parameter { name, kind, is_required: true, description }
}

const fn optional(name: &'static str, kind: Kind, description: &'static str) -> Parameter {
    Parameter { name, kind, is_required: false, description }
}

// Each of these stands in the schema of nearly every tool, and each client keeps all of them in its context.
const PATH: Parameter =
    optional("path", Kind::Text { most: MAX_PATH }, "Only this file or directory, relative to the worktree's root.");
const LIMIT: Parameter = optional("limit", Kind::Number { least: 1, most: MAX_LIMIT, default: DEFAULT_LIMIT }, "Most items.");
const ROOT: Parameter = optional(
    "root",
    Kind::Text { most: MAX_PATH },
    "A directory of the worktree to ask, absolute; default: where the server runs.",
);
const SCOPE: Parameter = optional("scope", Kind::Text { most: 64 }, "A scope of the configuration file, instead of `root`.");
const BYTES: Parameter = optional(
    "max_bytes",
    Kind::Number { least: MIN_BYTES, most: MAX_BYTES, default: DEFAULT_BYTES },
    "Most bytes of the answer.",
);
const ON_STALE: Parameter = optional(
    "on_stale",
    Kind::Word(&["refuse", "sync"]),
    "If files changed since the last sync: `sync` and answer, or `refuse`; default: as the scope says.",
);
const SOURCE: Parameter = optional("source", Kind::Flag, "Show whole bodies.");

/// All tools, in the order in which they are listed.
pub static TOOLS: &[Declaration] = &[
    Declaration {
        name: "explore",
        title: "Explore code",
        description: "Find the code behind a task, a question or a name, and what surrounds it. Use it first, before grep and before \
reading files: one call gives the definitions that fit best with their source (path and lines), who calls or extends each of them, \
what each calls, and how certain each relation is. Ask in words, in identifiers, or both: `retry of failed uploads`, \
`Session.resolve_redirects`. The answer is checked against the files on disk and reflects edits made a moment ago. It gives up to \
4 definitions and the nearest relations of each; for every caller, or for all that a change reaches, use `relations`; for names \
alone use `symbols`; for lines of a file use `read`. Definitions and relations are known for Python, JavaScript, TypeScript, Go and \
Rust; other text files are found by name. Not for searching text or patterns within lines: use grep for that.",
        parameters: &[
            required("query", Kind::Text { most: MAX_QUERY }, "Words, names or a whole question."),
            PATH,
            LIMIT,
            SOURCE,
            BYTES,
            ON_STALE,
            ROOT,
            SCOPE,
        ],
        gives: Gives::Answer,
        is_read_only: true,
    },
    Declaration {
        name: "symbols",
        title: "Find definitions by name",
        description: "Find where something is defined: classes, functions, methods, types, constants and files whose names fit. Gives \
one line each: path and line, kind, full name, signature; no source. Use it to turn a name, or a part of one, into a place, and to \
choose among several of the same name. For source and relations at once use `explore`.",
        parameters: &[
            required("query", Kind::Text { most: MAX_QUERY }, "A name, a part of one, a dotted name, or a file's name."),
            PATH,
            LIMIT,
            BYTES,
            ON_STALE,
            ROOT,
            SCOPE,
        ],
        gives: Gives::Answer,
        is_read_only: true,
    },
    Declaration {
        name: "relations",
        title: "Callers, callees, impact",
        description: "Follow one definition through the code graph. `callers`: every place that calls it, with the line. `callees`: what \
it calls. `impact`: everything that a change of it may reach, through calls, imports, inheritance and references, some steps deep, \
nearest first, each with the path of edges that leads there; ask it before changing or removing something. resolved_static is \
certain under the rules of the language; candidate is evidence and not proof; uses that could not be bound are counted and never \
guessed. A name that means several definitions comes back as a list to choose from.",
        parameters: &[
            required(
                "symbol",
                Kind::Text { most: MAX_QUERY },
                "The definition: a full name or the end of one (`Cart.total`), `path:line`, `path::name`, the path of a file, or an id \
                 from an answer.",
            ),
            required("relation", Kind::Word(&["callers", "callees", "impact"]), "What to follow."),
            optional(
                "depth",
                Kind::Number { least: 1, most: MAX_DEPTH as usize, default: DEFAULT_DEPTH as usize },
                "How many steps `impact` goes; the others are direct.",
            ),
            PATH,
            LIMIT,
            SOURCE,
            BYTES,
            ON_STALE,
            ROOT,
            SCOPE,
        ],
        gives: Gives::Answer,
        is_read_only: true,
    },
    Declaration {
        name: "tests",
        title: "Tests of changed files",
        description: "List the test files that a change of source files may break, to run them after an edit. Gives paths, one a line; \
structured, each with the path of edges that leads to it. A path that cannot be followed is named, and never counted as one without \
tests. They are candidates and do not replace the tests that a project requires.",
        parameters: &[
            required("paths", Kind::Texts { most: 100 }, "Source files that changed, relative to the root of the worktree."),
            PATH,
            LIMIT,
            BYTES,
            ON_STALE,
            ROOT,
            SCOPE,
        ],
        gives: Gives::Answer,
        is_read_only: true,
    },
    Declaration {
        name: "read",
        title: "Read lines of a file",
        description: "Read lines of an indexed file, at most 200 of them, with their digest: exactly the bytes that the other answers \
speak of. Use it for the rest of a body that `explore` cut, or for the lines around a call. A file that is ignored, secret, binary or \
too large is not indexed, and the answer says so.",
        parameters: &[
            required("path", Kind::Text { most: MAX_PATH }, "The file, relative to the root of the worktree."),
            optional("start_line", Kind::Number { least: 1, most: u32::MAX as usize, default: 1 }, "First line, from 1."),
            optional(
                "end_line",
                Kind::Number { least: 1, most: u32::MAX as usize, default: MAX_READ_LINES as usize },
                "Last line, included. Left out, it is the 200th of those that are read.",
            ),
            BYTES,
            ON_STALE,
            ROOT,
            SCOPE,
        ],
        gives: Gives::Answer,
        is_read_only: true,
    },
    Declaration {
        name: "changes",
        title: "What changed, and what it reaches",
        description: "List the files that were added, modified or deleted since an earlier index: the one before the last sync, or the \
first one at this branch and commit. With `impact`, list instead what these changes reach: who uses what is new or changed, and who \
used what is gone. Use it to review an edit before finishing. It compares indexes and not commits; for a diff of lines use git.",
        parameters: &[
            optional("impact", Kind::Flag, "List what the changes reach, not the files."),
            optional(
                "before",
                Kind::Text { most: 64 },
                "What to compare with when `impact` is set: `previous` (as left out), `first`, or the beginning of a fingerprint that is kept.",
            ),
            optional(
                "paths",
                Kind::Texts { most: 100 },
                "With `impact`: only these changed files or directories. Left out, all that changed.",
            ),
            PATH,
            LIMIT,
            BYTES,
            ON_STALE,
            ROOT,
            SCOPE,
        ],
        gives: Gives::Answer,
        is_read_only: true,
    },
    Declaration {
        name: "status",
        title: "State of the index",
        description: "Say whether the worktree has an index and whether it equals the files on disk, which languages are read, when and \
how the last build ended, and which files could not be parsed. The other tools check all of this by themselves; call it when one of \
them has no answer and it is not clear why.",
        parameters: &[ROOT, SCOPE],
        gives: Gives::Status,
        is_read_only: true,
    },
    Declaration {
        name: "sync",
        title: "Build or update the index",
        description: "Build the index of the worktree, or bring it up to date. Call it once where an answer says that there is no index: \
it reads every source file, which takes from seconds to a minute or so on a large repository, and tells its progress. After that a \
question brings the index up to date by itself where it may, at a cost that follows the change. It writes to Sextant's own cache \
alone, never to the worktree. `rebuild` makes everything anew; needed only when an answer says so.",
        parameters: &[optional("rebuild", Kind::Flag, "Build from nothing instead of updating."), ROOT, SCOPE],
        gives: Gives::Build,
        is_read_only: false,
    },
];

/// Returns the tool of a name.
pub fn declared(name: &str) -> Option<&'static Declaration> {
    TOOLS.iter().find(|tool| tool.name == name)
}
