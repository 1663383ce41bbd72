//! What a generation is made from: the values that a sync hands to the writer, all of them or those that differ from its parent's.
//!
//! Must not know how they are stored.

use std::sync::Arc;

use crate::model::{ContentHash, FileEdges, FileFacts, Fingerprint, RepoPath};
use crate::workspace::Entry;

/// Who a generation is. Goes into its `meta` table and into every answer's envelope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    pub fingerprint: Fingerprint,
    /// Digest of all that the fingerprint covers except `dirty`, which follows from the rest; a check compares this.
    pub state: ContentHash,
    /// Digest of what decides about the rows beside what was captured. Only under equal ones can a generation be built upon another.
    pub rules: ContentHash,
    pub scope_id: String,
    pub binding_id: String,
    /// Commit id in hex; `None` when unborn or without Git.
    pub commit: Option<String>,
    pub head_tree: Option<String>,
    /// Digest of what HEAD's tree holds, a function of its id; kept since it takes a walk of the whole tree.
    pub head_digest: Option<ContentHash>,
    pub branch: Option<String>,
    pub object_format: String,
    /// Whether the worktree is under Git.
    pub git: bool,
    pub dirty: bool,
}

#[cfg(test)]
impl Identity {
    /// Returns who a generation of tests is: a number tells it from others.
    pub fn numbered(number: u8) -> Self {
        Self {
            fingerprint: Fingerprint([number; 32]),
            state: ContentHash([number; 32]),
            rules: ContentHash([0; 32]),
            scope_id: "s".to_owned(),
            binding_id: "b".to_owned(),
            commit: None,
            head_tree: None,
            head_digest: None,
            branch: None,
            object_format: "sha1".to_owned(),
            git: false,
            dirty: true,
        }
    }
}

/// Where the bytes of a file stand in the packs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectRef {
    pub pack: u64,
    pub offset: u64,
    pub length: u64,
}

/// One file of the manifest with all that is known of it.
#[derive(Clone, Debug)]
pub struct ContentFile {
    pub entry: Entry,
    /// Where its source stands; `None` for omitted entries.
    pub object: Option<ObjectRef>,
    /// Git blob id of the bytes (raw bytes of the digest), kept so that it is computed once a content; `None` without Git.
    pub blob: Option<Vec<u8>>,
    /// Name of the registered language; `None` for text.
    pub language: Option<&'static str>,
    /// The module's name for people (`django.db.models.query`).
    pub module: Option<Arc<str>>,
    pub test: bool,
    pub deprioritized: bool,
    /// `None` for omitted entries; of text files and failed ones they say no more than a text does.
    pub facts: Option<Arc<FileFacts>>,
    /// Why parsing failed: the word of the contract (`parse_timeout` …), and behind a space what the engine wants to know later.
    pub failure: Option<String>,
    /// The words of a file that could not be parsed, by which it is found.
    pub words: Option<Arc<str>>,
    pub edges: Option<Arc<FileEdges>>,
}

/// Everything a generation holds.
#[derive(Clone, Debug)]
pub struct Content {
    pub identity: Identity,
    /// The whole manifest, sorted by path.
    pub files: Vec<ContentFile>,
    /// Known gaps of the languages present, for `limitations`, sorted.
    pub limitations: Vec<&'static str>,
    /// Paths that the path rules cannot represent, escaped, sorted.
    pub unrepresentable: Vec<String>,
}

/// What a generation holds otherwise than its parent. The rules of both are equal.
#[derive(Clone, Debug)]
pub struct Change {
    pub identity: Identity,
    /// The files that are new, or of which anything is another thing: the entry, what is known of it, its facts, or what its references came
    /// to. Sorted by path.
    pub files: Vec<ContentFile>,
    /// Paths of the parent that the manifest does not have any more, sorted.
    pub removed: Vec<RepoPath>,
    /// As in [`Content`], of the whole generation.
    pub limitations: Vec<&'static str>,
    pub unrepresentable: Vec<String>,
}
