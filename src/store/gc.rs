//! Removing what nobody needs: generations that are neither kept nor read, packs that none of the rest names, leftovers of killed builders.
//!
//! Must run under the build lock. Invariant: what a kept or leased generation needs stays, and when that cannot be known, everything does.

use std::collections::BTreeSet;

use crate::model::GenerationId;

use super::cache::Places;
use super::durable::{self, Part};
use super::pointer::Pointer;
use super::seal::Seal;
use super::{files, lock, sources};

/// What a collection did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Collected {
    /// Generations that were removed.
    pub removed: u64,
    /// Generations that are not kept but still read.
    pub leased: u64,
}

/// Removes what a killed builder left: directories and files that never got their names.
pub(super) fn remove_leftovers(places: &Places) {
    for directory in [places.generations(), places.packs(), places.directory.clone()] {
        for entry in files::list(&directory).unwrap_or_default() {
            if entry.file_name().as_encoded_bytes().starts_with(b".") {
                // What cannot be removed now costs space, not correctness.
                let _ = durable::remove(Part::Leftover, &entry.path());
            }
        }
    }
}

/// Removes all generations that `pointer` does not name and nobody reads, then the packs that the rest does not need.
pub(super) fn collect(places: &Places, pointer: Option<&Pointer>) -> Collected {
    let kept: Vec<GenerationId> = pointer.map(Pointer::kept).unwrap_or_default().iter().map(|named| named.id).collect();
    let mut collected = Collected::default();
    let mut rest = Vec::new();
    for entry in files::list(&places.generations()).unwrap_or_default() {
        let name = entry.file_name();
        let id = name.to_str().and_then(GenerationId::parse);
        if id.is_some_and(|id| kept.contains(&id)) {
            rest.push(entry.path());
            continue;
        }
        match lock::revoke(&entry.path().join("lease")) {
            Ok(None) => {
                collected.leased += 1;
                rest.push(entry.path());
            }
            // The lease is held until the directory has lost its name, so that no reader comes in between.
            Ok(Some(_held)) => {
                let doomed = places.generations().join(format!(".{}", name.to_string_lossy()));
                let gone =
                    durable::rename(Part::Retired, &entry.path(), &doomed).and_then(|()| durable::remove(Part::Retired, &doomed));
                match gone {
                    Ok(()) => collected.removed += 1,
                    Err(_) => rest.push(entry.path()),
                }
            }
            // Something else than a directory, so that nobody can have a lease in it; or none of ours.
            Err(error) if id.is_none() || error.kind() == std::io::ErrorKind::NotADirectory => {
                let _ = durable::remove(Part::Leftover, &entry.path());
            }
            // One whose lease cannot be asked for.
            Err(_) => rest.push(entry.path()),
        }
    }
    let mut needed = BTreeSet::new();
    for directory in rest {
        match Seal::read(&directory.join("seal"), None) {
            Ok(seal) => needed.extend(seal.packs.iter().filter_map(|pack| u64::from_str_radix(pack, 16).ok())),
            // A seal that cannot be read may name any pack.
            Err(_) => return collected,
        }
    }
    sources::collect(&places.packs(), &needed);
    collected
}
