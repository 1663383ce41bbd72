//! Checking everything that is stored, byte by byte, and letting go of what is damaged and not needed for an answer.
//!
//! Must run under the build lock and must not look at a worktree. Invariant: what was found whole stays as it is; a damaged generation
//! that serves stays named, and marked, until a build has replaced it.

use std::collections::BTreeMap;
use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;

use crate::model::Headway;

use super::cache::Cache;
use super::durable::{self, Part};
use super::error::{Result, StoreError, damaged, io};
use super::gc;
use super::lock::{self, Lease};
use super::packs::Pack;
use super::pointer::{Named, Pointer};
use super::publish::BuildLock;
use super::seal::Seal;

/// What a verification checked, and what of it was damaged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Verified {
    /// Kept generations, the one that serves among them.
    pub generations: u64,
    /// Packs of sources that they need.
    pub packs: u64,
    pub sources: u64,
    /// Packs of facts, shared with other scopes.
    pub facts_packs: u64,
    pub facts: u64,
    /// Whether the pointer was damaged, so that it is not known which generations were kept.
    pub damaged_pointer: bool,
    /// Whether the generation that serves was damaged; the build that follows replaces it.
    pub damaged_current: bool,
    /// Older generations that were damaged, and are not kept any more.
    pub dropped_baselines: u64,
    /// Packs of facts that were damaged, and are removed; their facts are made again when they are needed.
    pub dropped_facts_packs: u64,
}

impl Verified {
    /// Returns whether anything was damaged.
    pub fn found_damage(&self) -> bool {
        self.damaged_pointer || self.damaged_current || self.dropped_baselines > 0 || self.dropped_facts_packs > 0
    }
}

/// The packs checked so far, each once, with the number of their objects when they are whole.
#[derive(Debug, Default)]
pub(super) struct CheckedPacks(BTreeMap<String, Option<u64>>);

impl CheckedPacks {
    /// Returns whether a generation is what was published, with everything that it needs.
    pub fn hold(&mut self, cache: &Cache, named: &Named) -> bool {
        self.hold_at(cache, &cache.places.generation(named.id), named)
    }

    /// As [`Self::hold`], for one whose directory may not have its name yet.
    pub fn hold_at(&mut self, cache: &Cache, directory: &Path, named: &Named) -> bool {
        if !matches!(lock::lease(&directory.join("lease")), Ok(Lease::Held(_))) {
            return false;
        }
        let Ok(seal) = Seal::read(&directory.join("seal"), Some(&named.seal)) else { return false };
        // All are checked, so that the counts do not depend on which one is damaged.
        let damaged = seal.packs.iter().filter(|pack| !self.check(cache, pack)).count();
        seal.check(&directory.join("graph.sqlite"), None).is_ok() && damaged == 0
    }

    fn check(&mut self, cache: &Cache, pack: &str) -> bool {
        let check = || {
            let id = u64::from_str_radix(pack, 16).map_err(|_| damaged("seal"))?;
            Pack::open(&cache.places.packs(), id)?.check()
        };
        self.0.entry(pack.to_owned()).or_insert_with(|| check().ok()).is_some()
    }
}

impl BuildLock {
    /// Checks everything that is stored for this binding, and the facts cache. Older generations and packs of facts that are damaged are
    /// let go; a mark stays, or is left, when the generation that serves is to be built anew. `headway` counts packs of facts and generations.
    ///
    /// # Errors
    /// When the pointer cannot be read or replaced.
    pub fn verify(&self, headway: &Headway) -> Result<Verified> {
        let cache = self.cache();
        let places = &cache.places;
        let mut verified = Verified::default();
        let facts = cache.facts().verify(headway);
        verified.facts_packs = facts.packs;
        verified.facts = facts.facts;
        verified.dropped_facts_packs = facts.dropped;
        let pointer = match Pointer::read(&places.pointer()) {
            Ok(Some(pointer)) => pointer,
            Ok(None) => return Ok(verified),
            Err(error @ StoreError::Damaged { .. }) => {
                cache.mark_damage(&error);
                verified.damaged_pointer = true;
                return Ok(verified);
            }
            Err(error) => return Err(error),
        };
        let mut packs = CheckedPacks::default();
        let mut whole = Vec::new();
        for named in pointer.kept() {
            headway.add(1);
            verified.generations += 1;
            if packs.hold(cache, &named) {
                whole.push(named);
            } else if named == pointer.current {
                verified.damaged_current = true;
            } else {
                verified.dropped_baselines += 1;
            }
        }
        verified.packs = packs.0.len() as u64;
        verified.sources = packs.0.values().flatten().sum();
        if verified.dropped_baselines > 0 {
            let rest = pointer.without_history_unless(|named| whole.contains(named));
            rest.write(&places.pointer())?;
            gc::collect(places, Some(&rest));
        }
        if verified.damaged_current {
            cache.mark_damage(&damaged("generation"));
        } else if verified.dropped_baselines > 0 {
            // What was marked is found and gone. A mark that nothing here explains stays: whoever left it saw what a digest cannot show.
            durable::remove(Part::Mark, &places.mark()).map_err(io("remove the mark"))?;
        }
        Ok(verified)
    }
}
