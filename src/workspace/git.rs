//! Git, read only and isolated: HEAD, the index and the rules of what is ignored.
//!
//! Must not know which files a scope wants. Invariant: nothing that the repository configures is executed, and no path that it names
//! outside of itself is read.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gix::index::entry::{Flags, Mode, Stage};

use crate::model::{Canonical, ContentHash, sentence};

use super::content::ObjectFormat;
use super::directory::{self, Root, Stat};
use super::ignored::Patterns;
use super::kept::Kept;
use super::scan::same_version;
use super::{GitHooks, GitPlaces, GitState, WorkspaceError, escape};

/// The stage-0 entries of an index, sorted by path.
#[derive(Clone, Debug, Default)]
pub struct TrackedIndex {
    paths: Vec<u8>,
    entries: Vec<Tracked>,
}

/// One entry of an index.
#[derive(Clone, Debug)]
pub(super) struct Tracked {
    path: Range<usize>,
    pub(super) mode: Mode,
    pub(super) id: gix::ObjectId,
    /// Whether sparse checkout leaves it out of the worktree.
    pub(super) skip_worktree: bool,
}

impl TrackedIndex {
    fn push(&mut self, path: &[&[u8]], mode: Mode, id: gix::ObjectId, skip_worktree: bool) {
        let start = self.paths.len();
        for part in path {
            self.paths.extend_from_slice(part);
        }
        self.entries.push(Tracked { path: start..self.paths.len(), mode, id, skip_worktree });
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn path(&self, position: usize) -> &[u8] {
        &self.paths[self.entries[position].path.clone()]
    }

    pub(super) fn entry(&self, position: usize) -> &Tracked {
        &self.entries[position]
    }

    pub(super) fn position(&self, path: &[u8]) -> Option<usize> {
        self.position_in(0..self.len(), 0, path)
    }

    /// Returns the position of an entry among those of a directory: `range` holds the entries below it, whose paths begin with the same
    /// `base` bytes, and `name` is the rest.
    pub(super) fn position_in(&self, range: Range<usize>, base: usize, name: &[u8]) -> Option<usize> {
        let found = self.entries[range.clone()].binary_search_by(|entry| self.paths[entry.path.clone()][base..].cmp(name));
        found.ok().map(|offset| range.start + offset)
    }

    /// Returns the range of the entries below a subdirectory, named as in [`Self::position_in`].
    pub(super) fn range_below(&self, range: Range<usize>, base: usize, name: &[u8]) -> Range<usize> {
        let entries = &self.entries[range.clone()];
        // Compares as if a slash followed the name.
        let order = |entry: &Tracked| {
            let rest = &self.paths[entry.path.clone()][base..];
            match rest[..name.len().min(rest.len())].cmp(name) {
                std::cmp::Ordering::Equal => rest.get(name.len()).cmp(&Some(&b'/')),
                unequal => unequal,
            }
        };
        let start = entries.partition_point(|entry| order(entry).is_lt());
        let length = entries[start..].partition_point(|entry| order(entry).is_eq());
        range.start + start..range.start + start + length
    }

    fn is_sorted(&self) -> bool {
        (1..self.len()).all(|position| self.path(position - 1) < self.path(position))
    }

    /// Returns the digest over path, mode and object id of all entries.
    fn digest(&self) -> ContentHash {
        let mut encoded = Vec::with_capacity(self.paths.len() + self.entries.len() * 64);
        for entry in &self.entries {
            let path = &self.paths[entry.path.clone()];
            encoded.extend_from_slice(&(path.len() as u64).to_be_bytes());
            encoded.extend_from_slice(path);
            encoded.extend_from_slice(&entry.mode.bits().to_be_bytes());
            encoded.extend_from_slice(&(entry.id.as_slice().len() as u64).to_be_bytes());
            encoded.extend_from_slice(entry.id.as_slice());
        }
        let mut record = Canonical::new("index");
        record.field(&encoded);
        ContentHash(record.finish())
    }
}

/// A directory, and the text of ignore rules that hold in it.
pub(super) type SparseIgnore = (Vec<u8>, Vec<u8>);

/// What one look at Git gave.
pub(super) struct Snapshot {
    pub(super) state: GitState,
    pub(super) tracked: Arc<TrackedIndex>,
    /// Rules of `core.excludesFile` and `info/exclude`, the weaker first.
    pub(super) excludes: Vec<Patterns>,
    /// `.gitignore` files that sparse checkout leaves out, by directory: Git reads them from the index.
    pub(super) sparse_ignores: Vec<SparseIgnore>,
    pub(super) ignore_case: bool,
    /// Whether the executable bit of the worktree counts (`core.fileMode`).
    pub(super) file_mode: bool,
}

impl Snapshot {
    /// Returns what a folder without Git has.
    pub(super) fn none() -> Self {
        let tracked = TrackedIndex::default();
        Self {
            state: GitState {
                present: false,
                head: None,
                branch: None,
                object_format: ObjectFormat::Sha1.as_str(),
                head_tree: None,
                index_digest: tracked.digest(),
            },
            tracked: Arc::new(tracked),
            excludes: Vec::new(),
            sparse_ignores: Vec::new(),
            ignore_case: false,
            file_mode: true,
        }
    }
}

fn unusable(problem: &'static str) -> WorkspaceError {
    WorkspaceError::Repository { problem, source: None }
}

fn unreadable(what: &'static str) -> impl FnOnce(gix::Error) -> WorkspaceError {
    move |source| WorkspaceError::Git { what, source: GitCause::of(&source) }
}

/// Opens the repository of a worktree, isolated from the configuration of the system, the user and the environment.
pub(super) fn open(root: &Path) -> Result<gix::Repository, WorkspaceError> {
    let options = gix::open::Options::isolated()
        // Git does not verify the checksum of an index either when it reads one, and that took longer than the rest of it.
        .config_overrides([
            "core.useReplaceRefs=false",
            "core.fsmonitor=false",
            "core.hooksPath=/dev/null",
            "index.skipHash=true",
        ])
        .bail_if_untrusted(true);
    refuse_pipes(root)?;
    let repository = gix::open_opts(root, options).map_err(|error| explain(root, error))?;
    if !matches!(repository.object_hash(), gix::hash::Kind::Sha1 | gix::hash::Kind::Sha256) {
        return Err(WorkspaceError::ObjectFormat);
    }
    // A hostile `core.worktree` is honoured by Git and by gix; only the requested root may be read.
    match repository.workdir().map(Path::canonicalize) {
        Some(Ok(workdir)) if workdir == root => Ok(repository),
        Some(_) => Err(unusable("its worktree is another directory (`core.worktree`)")),
        None => Err(unusable("it is bare")),
    }
}

/// Refuses a repository whose files would block whoever opens them.
fn refuse_pipes(root: &Path) -> Result<(), WorkspaceError> {
    let git = root.join(".git");
    for path in [git.clone(), git.join("HEAD"), git.join("config"), git.join("index"), git.join("packed-refs")] {
        let blocks = path.metadata().is_ok_and(|found| !found.is_file() && !found.is_dir());
        if blocks {
            return Err(unusable("a file of its own is a pipe or a device"));
        }
    }
    Ok(())
}

/// Returns in which format a repository names its objects.
pub(super) fn object_format(repository: &gix::Repository) -> ObjectFormat {
    match repository.object_hash() {
        gix::hash::Kind::Sha256 => ObjectFormat::Sha256,
        _ => ObjectFormat::Sha1,
    }
}

/// Finds out why a repository did not open, for what gix has no error of its own.
fn explain(root: &Path, error: gix::Error) -> WorkspaceError {
    let config = std::fs::read(root.join(".git/config")).unwrap_or_default();
    let parsed = gix::config::File::try_from(String::from_utf8_lossy(&config).as_ref()).ok();
    let value =
        |key: &str| parsed.as_ref().and_then(|config| config.string(key)).map(|value| value.to_string().to_ascii_lowercase());
    if value("extensions.objectFormat").is_some_and(|format| ObjectFormat::parse(&format).is_none()) {
        return WorkspaceError::ObjectFormat;
    }
    if value("extensions.refStorage").is_some_and(|storage| storage != "files") {
        return unusable("it keeps its refs in a format other than `files` (reftable)");
    }
    let mut problem = "it is damaged, or of a format that is not supported";
    let mut cause: Option<&dyn std::error::Error> = Some(&error);
    while let Some(current) = cause {
        // gix names the reason only in its text.
        let text = current.to_string();
        if text.contains("trust") || text.contains("owner") || text.contains("unsafe") {
            problem = "it belongs to another user";
        }
        if text.contains("Could not parse configuration") {
            // gix quotes the line, and a line of a configuration may hold a credential.
            return unusable("its configuration has a syntax error");
        }
        cause = current.source();
    }
    WorkspaceError::Repository { problem, source: Some(GitCause::of(&error)) }
}

/// What gix says of its failure, in one line and without the directories that it names: an error goes to whoever asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct GitCause(String);

impl GitCause {
    fn of(error: &dyn std::error::Error) -> Self {
        Self(shorten_paths(&sentence(error).replace(char::is_control, " ")))
    }
}

/// Replaces each absolute path in a text by its last part.
fn shorten_paths(text: &str) -> String {
    let mut short = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('/') {
        short.push_str(&rest[..at]);
        rest = &rest[at..];
        let before = short.chars().next_back();
        let quote = before.filter(|character| matches!(character, '"' | '\'' | '`'));
        if quote.is_none() && before.is_some_and(|character| !character.is_whitespace() && !matches!(character, '(' | '=')) {
            short.push('/');
            rest = &rest[1..];
            continue;
        }
        let end = rest.find(|character: char| match quote {
            Some(quote) => character == quote,
            None => character.is_whitespace() || matches!(character, ',' | ')' | ':' | ';'),
        });
        let (path, after) = rest.split_at(end.unwrap_or(rest.len()));
        short.push_str(path.trim_end_matches('/').rsplit('/').next().unwrap_or_default());
        rest = after;
    }
    short.push_str(rest);
    short
}

/// Returns where a repository keeps what decides about a worktree.
pub(super) fn places(root: &Path) -> Result<GitPlaces, WorkspaceError> {
    let repository = open(root)?;
    let common = repository.common_dir().to_owned();
    let head = repository.head().map_err(unreadable("HEAD"))?;
    let branch = head.referent_name().and_then(|name| std::str::from_utf8(name.as_bstr()).ok()).map(|name| common.join(name));
    let directory = repository.git_dir().to_owned();
    let excludes = excludes_file(&repository.config_snapshot(), root).map(|path| root.join(path));
    Ok(GitPlaces { directory, common, branch, excludes })
}

/// Returns where Git runs hooks of a worktree from. Other than scans, this asks the configuration of the system and the user, as Git does;
/// still nothing that it names is executed.
pub(super) fn hooks(root: &Path) -> Result<GitHooks, WorkspaceError> {
    refuse_pipes(root)?;
    let options = gix::open::Options::default().bail_if_untrusted(true);
    let repository = gix::open_opts(root, options).map_err(|error| explain(root, error))?;
    let set = repository.config_snapshot().trusted_path("core.hooksPath").map_err(unreadable("core.hooksPath"))?;
    let is_configured = set.is_some();
    // A relative path starts where hooks run.
    let directory = set.map_or_else(|| repository.common_dir().join("hooks"), |path| root.join(path));
    Ok(GitHooks { directory, is_configured })
}

/// Reads HEAD, the index and the ignore rules of a worktree. An index that is byte for byte the one that was kept is not parsed again.
pub(super) fn read(root_path: &Path, root: &Root, kept: Option<&Kept>) -> Result<Snapshot, WorkspaceError> {
    let repository = open(root_path)?;
    let object_format = object_format(&repository);
    let config = repository.config_snapshot();
    if config.string("extensions.refStorage").is_some_and(|storage| !storage.eq_ignore_ascii_case(b"files")) {
        return Err(unusable("it keeps its refs in a format other than `files` (reftable)"));
    }
    let (head, branch, head_tree) = read_head(&repository)?;
    let (tracked, index_digest) = index_of(&repository, kept)?;
    let mut excludes = Vec::new();
    if let Some(path) = excludes_file(&config, root_path)
        && let Ok(file) = root.open_file(path.as_os_str().as_encoded_bytes())
    {
        excludes.extend(directory::read_small(&file, IGNORE_FILE_LIMIT).ok().flatten().map(|text| Patterns::parse(&text)));
    }
    let exclude = repository.common_dir().join("info").join("exclude");
    if let Some(text) = read_outside(&exclude) {
        excludes.push(Patterns::parse(&text));
    }
    let sparse_ignores = read_sparse_ignores(&repository, &tracked)?;
    Ok(Snapshot {
        state: GitState { present: true, head, branch, object_format: object_format.as_str(), head_tree, index_digest },
        excludes,
        sparse_ignores,
        ignore_case: config.boolean("core.ignoreCase").unwrap_or(false),
        file_mode: config.boolean("core.fileMode").unwrap_or(true),
        tracked,
    })
}

/// Returns where the user's own ignore rules are, below the root; `None` when they are elsewhere, and do not count.
fn excludes_file(config: &gix::config::Snapshot<'_>, root: &Path) -> Option<PathBuf> {
    config.string("core.excludesFile").and_then(|value| inner_path(root, &value))
}

/// Above this size a file of ignore rules is not read.
pub(super) const IGNORE_FILE_LIMIT: u64 = 4 << 20;

type Head = (Option<String>, Option<String>, Option<String>);

/// Returns commit, branch and tree of HEAD.
fn read_head(repository: &gix::Repository) -> Result<Head, WorkspaceError> {
    let mut head = repository.head().map_err(unreadable("HEAD"))?;
    let branch = head.referent_name().map(|name| name.as_bstr().to_string());
    let commit = match head.try_peel_to_id().map_err(unreadable("HEAD"))? {
        None => return Ok((None, branch, None)),
        Some(id) => id.detach(),
    };
    let tree = repository.find_object(commit).and_then(|object| object.peel_to_tree()).map_err(unreadable("commit at HEAD"))?.id;
    Ok((Some(commit.to_hex().to_string()), branch, Some(tree.to_hex().to_string())))
}

/// An index that was parsed, and the bytes of it.
#[derive(Debug)]
pub(super) struct KeptIndex {
    bytes: Vec<u8>,
    format: gix::hash::Kind,
    tracked: Arc<TrackedIndex>,
    digest: ContentHash,
}

/// Larger ones are not kept.
const MOST_KEPT: u64 = 64 << 20;

/// Returns the entries of the index and their digest.
fn index_of(repository: &gix::Repository, kept: Option<&Kept>) -> Result<(Arc<TrackedIndex>, ContentHash), WorkspaceError> {
    let (path, format) = (repository.index_path(), repository.object_hash());
    let before = kept.and_then(|_| index_bytes(&path));
    if let (Some(kept), Some((_, bytes))) = (kept.and_then(Kept::index), &before)
        && kept.format == format
        && kept.bytes == *bytes
    {
        return Ok((kept.tracked.clone(), kept.digest));
    }
    let (tracked, alone) = read_index(repository)?;
    let digest = tracked.digest();
    let tracked = Arc::new(tracked);
    if let (Some(kept), Some((stat, bytes))) = (kept, before)
        && alone
        // What was parsed in between is what these bytes say: the file was neither replaced nor written to.
        && directory::stat_anywhere(&path).is_ok_and(|now| same_version(&stat, &now))
        && !is_split(repository.git_dir())
    {
        kept.keep_index(KeptIndex { bytes, format, tracked: tracked.clone(), digest });
    }
    Ok((tracked, digest))
}

/// Returns whether a part of the index may be in a file beside it.
fn is_split(git_dir: &Path) -> bool {
    let Ok(entries) = std::fs::read_dir(git_dir) else { return true };
    entries.flatten().any(|entry| entry.file_name().as_encoded_bytes().starts_with(b"sharedindex"))
}

fn index_bytes(path: &Path) -> Option<(Stat, Vec<u8>)> {
    let file = directory::open_anywhere(path, true).ok()?;
    let stat = directory::stat(&file).ok()?;
    Some((stat, directory::read_small(&file, MOST_KEPT).ok()??))
}

/// Returns the entries of the index, and whether its own bytes say all of them.
fn read_index(repository: &gix::Repository) -> Result<(TrackedIndex, bool), WorkspaceError> {
    let mut alone = true;
    // A worktree without an index tracks nothing, whatever HEAD holds: so says Git.
    let Some(index) = repository.try_index().map_err(unreadable("index"))? else {
        return Ok((TrackedIndex::default(), false));
    };
    let mut tracked = TrackedIndex::default();
    tracked.entries.reserve(index.entries().len());
    tracked.paths.reserve(index.path_backing().len());
    for entry in index.entries() {
        let path = entry.path(&index);
        if entry.stage() != Stage::Unconflicted {
            return Err(WorkspaceError::Conflict { path: escape(path) });
        }
        let skipped = entry.flags.contains(Flags::SKIP_WORKTREE);
        if entry.mode == Mode::DIR {
            // A sparse index folds a directory that is not checked out into one entry, with a trailing slash.
            alone = false;
            let folded = repository.index_from_tree(&entry.id).map_err(unreadable("sparse directory"))?;
            for inner in folded.entries() {
                tracked.push(&[path, inner.path(&folded)], inner.mode, inner.id, true);
            }
        } else {
            tracked.push(&[path], entry.mode, entry.id, skipped);
        }
    }
    if tracked.is_sorted() { Ok((tracked, alone)) } else { Err(unusable("its index is damaged (entries out of order)")) }
}

/// Returns the digest of a tree in the encoding of an index.
pub(super) fn tree_digest(root: &Path, tree: &str) -> Result<ContentHash, WorkspaceError> {
    let repository = open(root)?;
    let id = gix::ObjectId::from_hex(tree.as_bytes()).map_err(|_| unusable("HEAD's tree has no valid id"))?;
    let index = repository.index_from_tree(&id).map_err(unreadable("tree of HEAD"))?;
    let mut flat = TrackedIndex::default();
    for entry in index.entries() {
        flat.push(&[entry.path(&index)], entry.mode, entry.id, false);
    }
    Ok(flat.digest())
}

fn read_sparse_ignores(repository: &gix::Repository, tracked: &TrackedIndex) -> Result<Vec<SparseIgnore>, WorkspaceError> {
    let mut found = Vec::new();
    for position in 0..tracked.len() {
        let entry = tracked.entry(position);
        let path = tracked.path(position);
        let Some(directory) = path.strip_suffix(b".gitignore").filter(|rest| rest.is_empty() || rest.ends_with(b"/")) else {
            continue;
        };
        if entry.skip_worktree && matches!(entry.mode, Mode::FILE | Mode::FILE_EXECUTABLE) {
            let blob = repository.find_object(entry.id).map_err(unreadable("ignore rules"))?;
            found.push((directory.strip_suffix(b"/").unwrap_or(directory).to_vec(), blob.data.clone()));
        }
    }
    Ok(found)
}

/// Returns a configured path relative to the root; `None` when it leads outside, where nothing is read on a repository's word.
fn inner_path(root: &Path, value: &[u8]) -> Option<PathBuf> {
    let path = Path::new(std::str::from_utf8(value).ok()?);
    let inner = if path.is_absolute() { path.strip_prefix(root).ok()? } else { path };
    let plain = inner.components().all(|part| matches!(part, std::path::Component::Normal(_) | std::path::Component::CurDir));
    (plain && !value.is_empty() && !value.starts_with(b"~")).then(|| inner.components().as_path().to_owned())
}

/// Reads a small file of the repository's own directory, which may stand outside the worktree.
fn read_outside(path: &Path) -> Option<Vec<u8>> {
    let file = directory::open_anywhere(path, false).ok()?;
    directory::read_small(&file, IGNORE_FILE_LIMIT).ok().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_the_machine_are_shortened() {
        let check = |text: &str, want: &str| assert_eq!(shorten_paths(text), want);
        check("refs/heads/main is gone", "refs/heads/main is gone");
        check(
            "\"/home/u/a b/r\" is no repository: Missing HEAD at \".git/HEAD\"",
            "\"r\" is no repository: Missing HEAD at \".git/HEAD\"",
        );
        check("at /home/u/r/: denied, path=/x/y", "at r: denied, path=y");
        check("/", "");
        check("a / b 'open/", "a  b 'open/");
    }
}
