//! What a process keeps of the listings of a tree from scan to scan: what became of each directory, beside all that it was made from.
//!
//! Must not know the disk. Invariant: what is kept is used only where everything that it was made from has just been read again, and is
//! byte for byte what it was; so a listing is the same with and without.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use rustc_hash::FxHashMap;

use crate::model::ContentHash;

use super::git::{KeptIndex, Snapshot, SparseIgnore};
use super::ignored::Patterns;
use super::inventory::{Candidate, Inventory};
use super::policy::Policy;
use super::seal::Identity;
use super::walk::{Child, InForce, Standing};

/// The last whole listing of a tree, and the last index of it.
#[derive(Debug, Default)]
pub(super) struct Kept {
    listing: Mutex<Option<Arc<Listing>>>,
    index: Mutex<Option<Arc<KeptIndex>>>,
}

/// What became of each directory, by its path.
pub(super) type Records = FxHashMap<Arc<str>, Arc<Record>>;

/// A listing and what it was made from.
#[derive(Debug)]
pub(super) struct Listing {
    pub(super) grounds: Grounds,
    /// The rules at the root, before those of any directory.
    pub(super) rules: InForce,
    pub(super) records: Records,
    pub(super) inventory: Arc<Inventory>,
}

/// What decides about a listing beside the directories.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Grounds {
    policy: ContentHash,
    index: ContentHash,
    excludes: Vec<Patterns>,
    sparse_ignores: Vec<SparseIgnore>,
    ignore_case: bool,
}

impl Grounds {
    pub(super) fn of(git: &Snapshot, policy: &Policy) -> Self {
        Self {
            policy: policy.digest(),
            index: git.state.index_digest,
            excludes: git.excludes.clone(),
            sparse_ignores: git.sparse_ignores.clone(),
            ignore_case: git.ignore_case,
        }
    }
}

/// What became of one directory, and what that was made from.
#[derive(Debug)]
pub(super) struct Record {
    pub(super) from: Sources,
    /// Whether each of these directories, without entries in the index, was a repository of its own.
    pub(super) repositories: Vec<(Box<[u8]>, bool)>,
    /// The rules in force in it.
    pub(super) rules: InForce,
    pub(super) candidates: Vec<Candidate>,
    pub(super) unrepresentable: Vec<String>,
    pub(super) children: Vec<Child>,
    /// The seal of the directory, where it has one.
    pub(super) seal: Mutex<Option<Identity>>,
}

impl Record {
    /// Returns whether the directory has this seal.
    pub(super) fn has_seal(&self, identity: &Identity) -> bool {
        self.seal.lock().unwrap_or_else(PoisonError::into_inner).as_ref() == Some(identity)
    }

    pub(super) fn seal(&self, identity: Identity) {
        *self.seal.lock().unwrap_or_else(PoisonError::into_inner) = Some(identity);
    }
}

/// What a directory's listing is made from, beside what its [`Record::repositories`] are.
#[derive(Debug)]
pub(super) struct Sources {
    pub(super) standing: Standing,
    /// The entries of the index below it.
    pub(super) tracked: Range<usize>,
    /// The rules in force around it.
    pub(super) around: InForce,
    /// Its names and their kinds, in the order of the system.
    pub(super) names: Box<[u8]>,
    /// Its own ignore rules.
    pub(super) ignore: Option<Box<[u8]>>,
    /// Whether it has a file of them.
    pub(super) has_ignore: bool,
}

impl Sources {
    /// Returns whether a directory that comes with these has the same names in another's place.
    pub(super) fn stand_as(&self, standing: Standing, tracked: &Range<usize>, around: &InForce) -> bool {
        self.standing == standing && self.tracked == *tracked && self.around.is(around)
    }
}

impl Kept {
    /// Returns the last listing if it was made on the same grounds.
    pub(super) fn listing(&self, grounds: &Grounds) -> Option<Arc<Listing>> {
        let kept = self.listing.lock().unwrap_or_else(PoisonError::into_inner).clone();
        kept.filter(|listing| listing.grounds == *grounds)
    }

    pub(super) fn keep(&self, listing: Listing) {
        *self.listing.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(listing));
    }

    pub(super) fn index(&self) -> Option<Arc<KeptIndex>> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn keep_index(&self, index: KeptIndex) {
        *self.index.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(index));
    }
}
