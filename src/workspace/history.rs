//! Whether one commit descends from another.
//!
//! Must not know why it is asked. Invariant: `true` is said only after every step from the one commit to the other was read; what cannot
//! be shown, because history is cut off or too long to read in time, is not claimed.

use std::collections::{BinaryHeap, HashSet};
use std::path::Path;
use std::time::Instant;

use super::WorkspaceError;
use super::git::open;

/// Commits read between two looks at the clock.
const STRIDE: usize = 256;

/// Returns whether `head` is `ancestor` or descends from it. Of a shallow clone only what is there is read, and nothing after `deadline`.
///
/// # Errors
/// When the repository cannot be opened.
pub(super) fn descends(root: &Path, head: &str, ancestor: &str, deadline: Instant) -> Result<bool, WorkspaceError> {
    let id = |hex: &str| gix::ObjectId::from_hex(hex.as_bytes()).ok();
    let (Some(head), Some(ancestor)) = (id(head), id(ancestor)) else { return Ok(false) };
    if head == ancestor {
        return Ok(true);
    }
    let mut repository = open(root)?;
    // Commits of one history are often stored as differences of each other.
    repository.object_cache_size_if_unset(4 << 20);
    // The newest first: a baseline is rarely far away, and dates that lie only change the order in which all are read.
    let mut waiting = BinaryHeap::from([(i64::MAX, head)]);
    let mut seen = HashSet::from([head]);
    let mut read = 0;
    while let Some((_, commit)) = waiting.pop() {
        read += 1;
        if read % STRIDE == 0 && Instant::now() > deadline {
            return Ok(false);
        }
        // Where a shallow clone ends, or an object was lost or damaged, history ends.
        let Ok(Some(object)) = repository.try_find_object(commit) else { continue };
        if object.kind != gix::objs::Kind::Commit {
            continue;
        }
        let parts = gix::objs::CommitRefIter::from_bytes(&object.data, repository.object_hash());
        let time = parts.committer().ok().map_or(0, |committer| committer.seconds());
        for parent in parts.parent_ids() {
            if parent == ancestor {
                return Ok(true);
            }
            if seen.insert(parent) {
                waiting.push((time, parent));
            }
        }
    }
    Ok(false)
}
