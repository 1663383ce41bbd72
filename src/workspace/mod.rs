//! The disk, read only: which files a scope includes, what their bytes are, and what changed.
//!
//! Must not know salsa, SQL or the graph. Invariant: nothing is followed, executed or skipped; what is left out is listed with a reason.

mod batch;
mod clock;
mod content;
mod directory;
mod git;
mod history;
mod ignored;
mod inventory;
mod kept;
mod manifest;
#[cfg(test)]
pub(crate) mod moments;
mod part;
mod policy;
mod scan;
mod seal;
#[cfg(test)]
mod tests;
mod walk;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use crate::model::{ContentHash, RepoPath};

pub use content::{ObjectFormat, blob_id};
pub use git::{GitCause, TrackedIndex};
use kept::Kept;
pub use manifest::{Changes, diff, dirty};
pub use part::{GitHooks, GitPlaces, Glance, RootIdentity, directories, glance, relevant, scan_part};
pub use policy::{Policy, PolicyError};
pub use scan::{PassOutcome, ScanLimits, Spare, Visitor, list, pass, scan, scan_sparing};
use seal::Seals;

/// Why a path of the inventory is not indexed. The words are stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Omission {
    Credentials,
    CacheDirectory,
    Excluded,
    UnsupportedContent,
    /// Another project's code, kept beside the own.
    Vendored,
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

impl Omission {
    pub const ALL: &'static [Self] = &[
        Self::Credentials,
        Self::CacheDirectory,
        Self::Excluded,
        Self::UnsupportedContent,
        Self::Vendored,
        Self::Binary,
        Self::NotUtf8,
        Self::LfsPointer,
        Self::Symlink,
        Self::Submodule,
        Self::NestedRepository,
        Self::Oversize,
        Self::UnrepresentablePath,
        Self::NotARegularFile,
        Self::Unreadable,
    ];

    /// Returns the stable word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Credentials => "credentials",
            Self::CacheDirectory => "cache_directory",
            Self::Excluded => "excluded",
            Self::UnsupportedContent => "unsupported_content",
            Self::Vendored => "vendored",
            Self::Binary => "binary",
            Self::NotUtf8 => "not_utf8",
            Self::LfsPointer => "lfs_pointer",
            Self::Symlink => "symlink",
            Self::Submodule => "submodule",
            Self::NestedRepository => "nested_repository",
            Self::Oversize => "oversize",
            Self::UnrepresentablePath => "unrepresentable_path",
            Self::NotARegularFile => "not_a_regular_file",
            Self::Unreadable => "unreadable",
        }
    }

    /// Returns the value that `word` stands for.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|omission| omission.as_str() == word)
    }
}

/// One path of a manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub path: RepoPath,
    /// Git's mode: `0o100644` or `0o100755` for a regular file, `0o120000`, `0o160000` and `0o040000` for links, submodules and
    /// directories, which are always omitted.
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
    /// `size` and `hash` are known for those whose bytes were read before the decision (binary, not UTF-8, LFS); `size` alone for
    /// those over the size limit.
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
    /// What Git tracks here, for [`dirty`]; empty without Git.
    pub tracked: Arc<TrackedIndex>,
    /// How many of the included files were not read, because their seals stood.
    pub sealed: u64,
}

/// A root whose files may be scanned. Holds no file open and no state of Git: every scan reads both afresh. What it keeps from scan to
/// scan spares work and is no answer.
#[derive(Clone, Debug)]
pub struct Worktree {
    root: PathBuf,
    kept: Arc<Kept>,
    /// Where the scope asks for seals, and the system can have them.
    seals: Option<Arc<Seals>>,
}

impl Worktree {
    /// Binds the root of a scope, which must be the top of a worktree, or a folder without Git.
    ///
    /// # Errors
    /// When it is not a readable directory. Whether its repository can be read safely is asked by each scan.
    pub fn open(root: &Path) -> Result<Self, WorkspaceError> {
        let root = root.canonicalize().map_err(|source| WorkspaceError::Root { source })?;
        directory::Root::open(&root)?;
        Ok(Self { root, kept: Arc::default(), seals: None })
    }

    /// Returns the same worktree with files sealed as they are read, by each scan where the system allows it: a scan that may spare them
    /// does not read them again while their seals stand.
    #[must_use]
    pub fn sealed(self) -> Self {
        let seals = Seals::open(&self.root).map(Arc::new);
        Self { seals, ..self }
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns whether the root is a Git worktree now: it may become one, or cease to be one, at any time.
    pub fn has_git(&self) -> bool {
        self.root.join(".git").symlink_metadata().is_ok()
    }

    /// Returns in which format the repository names objects now; `None` without Git.
    ///
    /// # Errors
    /// When the repository cannot be opened any more.
    pub fn object_format(&self) -> Result<Option<ObjectFormat>, WorkspaceError> {
        if self.has_git() { git::open(&self.root).map(|repository| Some(git::object_format(&repository))) } else { Ok(None) }
    }

    /// Returns the digest of HEAD's tree in the encoding of [`GitState::index_digest`], which equals it exactly when nothing is staged;
    /// `None` when `capture` saw no commit. Walks the whole tree: to be kept by tree id ([`GitState::head_tree`]).
    ///
    /// # Errors
    /// When an object of the tree is missing or damaged.
    pub fn head_digest(&self, capture: &Capture) -> Result<Option<ContentHash>, WorkspaceError> {
        match &capture.git.head_tree {
            Some(tree) => git::tree_digest(&self.root, tree).map(Some),
            None => Ok(None),
        }
    }

    /// Returns whether it is shown, by the deadline and from the objects that are here, that commit `head` is `ancestor` or descends from
    /// it. False without Git.
    ///
    /// # Errors
    /// When the repository cannot be opened.
    pub fn descends(&self, head: &str, ancestor: &str, deadline: Instant) -> Result<bool, WorkspaceError> {
        if self.has_git() { history::descends(&self.root, head, ancestor, deadline) } else { Ok(false) }
    }
}

/// Why a worktree cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    /// `repository_unavailable`.
    #[error("the root is not a directory that can be read")]
    Root {
        #[source]
        source: std::io::Error,
    },
    /// `repository_unavailable`.
    #[error("the Git repository of this root cannot be used: {problem}")]
    Repository {
        problem: &'static str,
        #[source]
        source: Option<GitCause>,
    },
    /// `unsupported_git_object_format`.
    #[error("the object format of this Git repository is not supported")]
    ObjectFormat,
    /// `repository_read_failed`.
    #[error("Git's {what} cannot be read")]
    Git {
        what: &'static str,
        #[source]
        source: GitCause,
    },
    /// `repository_read_failed`.
    #[error("{path} cannot be read")]
    Read {
        path: String,
        #[source]
        source: std::io::Error,
    },
    /// `repository_limit_exceeded`.
    #[error("the scope has more than {limit} {what}; exclude some or raise `limits.{key}`")]
    Limit { what: &'static str, key: &'static str, limit: u64 },
    /// `workspace_busy`.
    #[error("the Git index holds unresolved conflicts ({path}); resolve them first")]
    Conflict { path: String },
    /// `code_timeout`.
    #[error("reading the worktree took too long")]
    Timeout,
    /// Nobody hears of it.
    #[error("nobody waits any more for what was to be read")]
    Unwanted,
    /// `workspace_busy`.
    #[error("{path} kept changing while it was read")]
    Unstable { path: String },
}

/// Shows a path that may hold anything: valid text as it is, control characters and invalid bytes escaped.
fn escape(path: &[u8]) -> String {
    let mut text = String::with_capacity(path.len());
    for chunk in path.utf8_chunks() {
        for character in chunk.valid().chars() {
            if character.is_control() || character == '\\' {
                text.extend(character.escape_default());
            } else {
                text.push(character);
            }
        }
        for byte in chunk.invalid() {
            text.push_str(&format!("\\x{byte:02x}"));
        }
    }
    text
}
