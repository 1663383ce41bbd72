//! What a scan saw, compared: with what was indexed, and with what Git has.
//!
//! Must not read the disk. Invariant: equal [`Capture::state_digest`]s mean that Git's state and every entry were equal.

use crate::model::{Canonical, ContentHash, RepoPath};

use super::inventory::{MODE_EXECUTABLE, MODE_FILE};
use super::{Capture, Entry, EntryState};

/// What differs between two manifests, in included files. A rename is a delete and an add. Each sorted by path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    pub added: Vec<RepoPath>,
    pub modified: Vec<RepoPath>,
    pub deleted: Vec<RepoPath>,
}

impl Changes {
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.modified.is_empty() && self.deleted.is_empty()
    }
}

/// Compares two manifests, each sorted by path. A file that is omitted by now counts as deleted, one that no longer is as added.
pub fn diff(old: &[Entry], new: &[Entry]) -> Changes {
    let mut changes = Changes::default();
    let mut old = included(old).peekable();
    let mut new = included(new).peekable();
    loop {
        let order = match (old.peek(), new.peek()) {
            (None, None) => return changes,
            (Some(_), None) => std::cmp::Ordering::Less,
            (None, Some(_)) => std::cmp::Ordering::Greater,
            (Some((left, _)), Some((right, _))) => left.cmp(right),
        };
        match order {
            std::cmp::Ordering::Less => changes.deleted.extend(old.next().map(|(path, _)| path.clone())),
            std::cmp::Ordering::Greater => changes.added.extend(new.next().map(|(path, _)| path.clone())),
            std::cmp::Ordering::Equal => {
                let before = old.next().map(|(_, hash)| hash);
                if let Some((path, after)) = new.next()
                    && before != Some(after)
                {
                    changes.modified.push(path.clone());
                }
            }
        }
    }
}

fn included(entries: &[Entry]) -> impl Iterator<Item = (&RepoPath, ContentHash)> {
    entries.iter().filter_map(|entry| match entry.state {
        EntryState::Included { hash, .. } => Some((&entry.path, hash)),
        EntryState::Omitted { .. } => None,
    })
}

/// Returns whether the worktree differs from HEAD: something is staged (`head_digest` is that of HEAD's tree, see
/// [`super::Worktree::head_digest`]), a tracked file is gone, an included one has other bytes or another mode than the index, or is not
/// tracked. `blob` gives the Git blob id of an included file. Bytes are compared raw, without Git's filters; what the policy omits
/// unread is taken as equal while it exists. True without Git and before the first commit.
pub fn dirty(
    capture: &Capture,
    head_digest: Option<&ContentHash>,
    blob: impl Fn(&RepoPath, &ContentHash) -> Option<Vec<u8>>,
) -> bool {
    if !capture.git.present || head_digest != Some(&capture.git.index_digest) {
        return true;
    }
    let tracked = &capture.tracked;
    let mut seen = vec![false; tracked.len()];
    for entry in capture.entries.iter() {
        let position = tracked.position(entry.path.as_str().as_bytes());
        if let Some(position) = position {
            seen[position] = true;
        }
        let EntryState::Included { hash, .. } = &entry.state else { continue };
        let same = position.is_some_and(|position| {
            let expected = tracked.entry(position);
            let mode = expected.mode.bits();
            matches!(mode, MODE_FILE | MODE_EXECUTABLE)
                && mode == entry.mode
                && blob(&entry.path, hash).is_some_and(|id| id == expected.id.as_slice())
        });
        if !same {
            return true;
        }
    }
    (0..tracked.len()).any(|position| {
        let unlisted = !seen[position] && !tracked.entry(position).skip_worktree;
        // Paths that cannot be represented are never in the manifest.
        unlisted && std::str::from_utf8(tracked.path(position)).is_ok_and(|path| RepoPath::parse(path).is_ok())
    })
}

impl Capture {
    /// Returns the digest of all that was seen: object format, HEAD, branch, index, and the manifest with what it leaves out.
    pub fn state_digest(&self) -> ContentHash {
        let mut encoded = Vec::with_capacity(self.entries.len() * 128);
        let field = |encoded: &mut Vec<u8>, bytes: &[u8]| {
            encoded.extend_from_slice(&(bytes.len() as u64).to_be_bytes());
            encoded.extend_from_slice(bytes);
        };
        for entry in self.entries.iter() {
            field(&mut encoded, entry.path.as_str().as_bytes());
            encoded.extend_from_slice(&entry.mode.to_be_bytes());
            let (word, hash, size) = match &entry.state {
                EntryState::Included { hash, size } => ("included", Some(hash), Some(size)),
                EntryState::Omitted { reason, hash, size } => (reason.as_str(), hash.as_ref(), size.as_ref()),
            };
            field(&mut encoded, word.as_bytes());
            field(&mut encoded, hash.map_or(&[][..], |hash| &hash.0));
            field(&mut encoded, size.map(|size| size.to_be_bytes()).as_ref().map_or(&[][..], |size| size));
        }
        let mut record = Canonical::new("capture");
        record.number(u64::from(self.git.present));
        record.field(self.git.object_format.as_bytes());
        for value in [&self.git.head, &self.git.branch, &self.git.head_tree] {
            record.number(u64::from(value.is_some()));
            record.field(value.as_deref().unwrap_or_default().as_bytes());
        }
        record.field(&self.git.index_digest.0);
        record.number(self.entries.len() as u64);
        record.field(&encoded);
        record.number(self.unrepresentable.len() as u64);
        for path in &self.unrepresentable {
            record.field(path.as_bytes());
        }
        ContentHash(record.finish())
    }

    /// Returns how many files are included, and their size in total.
    pub fn included(&self) -> (u64, u64) {
        self.entries.iter().fold((0, 0), |(files, bytes), entry| match entry.state {
            EntryState::Included { size, .. } => (files + 1, bytes + size),
            EntryState::Omitted { .. } => (files, bytes),
        })
    }
}
