//! The disk, read only: which files a scope includes, what their bytes are, and what changed.
//!
//! Must not know salsa, SQL or the graph. Invariant: nothing is followed, executed or skipped; what is left out is listed with a reason.

use std::sync::Arc;

use crate::model::{ContentHash, RepoPath};

/// Why a path of the inventory is not indexed. The words are stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Omission {
    Credentials,
    CacheDirectory,
    Excluded,
    UnsupportedContent,
    Binary,
    NotUtf8,
    LfsPointer,
    Symlink,
    Submodule,
    NestedRepository,
    Oversize,
    UnrepresentablePath,
    NotARegularFile,
    Unreadable,
}

/// One path of a manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub path: RepoPath,
    /// Git's mode of a regular file: `0o100644` or `0o100755`.
    pub mode: u32,
    pub state: EntryState,
}

/// Whether an entry is indexed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntryState {
    Included {
        hash: ContentHash,
        size: u64,
    },
    /// `size` and `hash` are known for those whose bytes were read before the decision (binary, not UTF-8, LFS).
    Omitted {
        reason: Omission,
        hash: Option<ContentHash>,
        size: Option<u64>,
    },
}

/// What a scan saw of the Git side; `None` fields without Git.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GitState {
    /// Whether the root is a Git worktree at all.
    pub present: bool,
    /// Commit id in hex; `None` when unborn or without Git.
    pub head: Option<String>,
    /// Full name of the branch; `None` when detached.
    pub branch: Option<String>,
    /// `sha1` or `sha256`; `sha1` without Git.
    pub object_format: &'static str,
    /// Id of HEAD's tree in hex.
    pub head_tree: Option<String>,
    /// Digest over the stage-0 entries of the index (path, mode, object id).
    pub index_digest: ContentHash,
}

/// Everything one scan saw.
#[derive(Clone, Debug)]
pub struct Capture {
    pub git: GitState,
    /// Sorted by path.
    pub entries: Arc<[Entry]>,
    /// Paths that the path rules cannot represent, escaped for people, sorted.
    pub unrepresentable: Vec<String>,
}
