//! Building a generation beside the one that serves, and making it the one that serves in one step.
//!
//! Must not know where its content comes from. Invariant: until the pointer names the new generation nothing of the old one is touched,
//! and the pointer names it only when every part is on the disk.

use std::fs::File;
use std::path::PathBuf;

use std::io::Write;

use crate::model::{Demand, Fingerprint, GenerationId, Headway};

use super::cache::Cache;
use super::content::{Change, Content, Identity};
use super::durable::{self, Part};
use super::error::{Result, StoreError, damaged, io};
use super::pointer::{Named, Pointer};
use super::reader::{Coverage, Generation, Totals};
use super::seal::{Seal, Sealed};
use super::sources::{self, PackWriter};
use super::verify::CheckedPacks;
use super::{delta, files, gc, overlay, writer};

/// Changes of so few files are always small enough for a delta.
const SMALL_CHANGE: u64 = 32;
/// Beyond that a delta is of at most one file of so many; for more, a bulk load is not much dearer and leaves a better order.
const CHANGED_SHARE: u64 = 10;
/// Overlays up to this size are carried on in any case.
const SMALL_OVERLAY: u64 = 4 << 20;
/// Beyond that the overlay is at most one part of so many of the database: each opening reads it whole, and each delta copies it.
const OVERLAY_SHARE: u64 = 6;
/// Upon so many deltas follows a bulk load, which takes out names that nobody uses any more and merges the search index.
const MOST_DELTAS: u32 = 256;

/// The right to build, held by one process at a time; ends when dropped.
#[derive(Debug)]
pub struct BuildLock {
    cache: Cache,
    _lock: File,
}

/// A whole generation that nothing names yet; dropped unpublished, it vanishes.
#[derive(Debug)]
pub struct Staged<'a> {
    cache: &'a Cache,
    /// Directory under its temporary name; `None` once it has its own.
    temporary: Option<PathBuf>,
    named: Named,
    database_bytes: u64,
    coverage: Coverage,
    totals: Totals,
    moved_sources: bool,
    /// Whether it shares the database of its parent.
    shares: bool,
    /// The size of the traces that are to stand beside it; those that are there stay where it says nothing.
    traces_bytes: Option<u64>,
}

/// What publishing did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Published {
    pub id: GenerationId,
    pub database_bytes: u64,
    pub collected: gc::Collected,
}

impl BuildLock {
    pub(super) fn new(cache: Cache, lock: File) -> Self {
        Self { cache, _lock: lock }
    }

    pub(super) fn cache(&self) -> &Cache {
        &self.cache
    }

    /// Starts taking in sources.
    ///
    /// # Errors
    /// When the cache cannot be written.
    pub fn source_writer(&self) -> Result<PackWriter> {
        let directory = self.cache.places.packs();
        durable::ensure_directory(Part::Packs, &directory).map_err(io("create the packs"))?;
        Ok(PackWriter::new(&directory, self.cache.max_bytes))
    }

    /// Replaces the record of the last build.
    ///
    /// # Errors
    /// When the cache cannot be written.
    pub fn write_last_build(&self, record: &[u8]) -> Result<()> {
        files::replace(Part::LastBuild, &self.cache.places.last_build(), record).map_err(io("write the record of the build"))
    }

    /// Removes the record of the last build, as if there had been none.
    ///
    /// # Errors
    /// When the cache cannot be written.
    pub fn remove_last_build(&self) -> Result<()> {
        let place = self.cache.places.last_build();
        durable::remove(Part::LastBuild, &place).map_err(io("remove the record of the build"))
    }

    /// Writes a generation whole: sources, database, seal. Nothing names it yet. `headway` counts its files.
    ///
    /// # Errors
    /// When it cannot be written, contradicts itself, or needs a stored source that is damaged; [`StoreError::Unwanted`] when all who
    /// wanted it are gone.
    pub fn stage(&self, content: &Content, sources: &PackWriter, headway: &Headway, demand: &Demand) -> Result<Staged<'_>> {
        sources.finish()?;
        let objects = sources::objects(content);
        let moved = sources::compact(&self.cache.places.packs(), &objects).inspect_err(|error| self.cache.mark_damage(error))?;
        let (mut staged, directory) = self.begin(&content.identity)?;
        let database = directory.join("graph.sqlite");
        // SQLite opens what is there, and keeps its mode.
        durable::create(Part::Database, &database).map_err(io("create a database"))?;
        let (coverage, totals) = writer::write(&database, content, &moved, headway, demand)?;
        let packs = sources::packs_of(&objects, &moved);
        let seal = Seal { database: self.cache.known.make(&database)?, overlay: None, deltas: 0, packs: pack_names(&packs) };
        staged.finish(&directory, &seal, coverage, totals)?;
        staged.moved_sources = !moved.is_empty();
        Ok(staged)
    }

    /// Writes a generation as what differs from `parent`: shares the database of the parent and lays over it what changed. `None` where it
    /// is better written whole: too much changed, too many deltas lie upon each other, or the parent does not serve any more.
    ///
    /// # Errors
    /// As [`Self::stage`].
    pub fn stage_delta(&self, parent: &Generation, change: &Change, sources: &PackWriter) -> Result<Option<Staged<'_>>> {
        self.lay_over(parent, change, sources).inspect_err(|error| self.cache.mark_damage(error))
    }

    fn lay_over(&self, parent: &Generation, change: &Change, sources: &PackWriter) -> Result<Option<Staged<'_>>> {
        let places = &self.cache.places;
        let Some(pointer) = Pointer::read(&places.pointer())?.filter(|pointer| pointer.current.id == parent.id()) else {
            return Ok(None);
        };
        let below = places.generation(parent.id());
        let seal = Seal::read(&below.join("seal"), Some(&pointer.current.seal))?;
        let few = Self::may_be_delta(parent, change.files.len() + change.removed.len());
        let room = SMALL_OVERLAY.max(seal.database.size() / OVERLAY_SHARE);
        let same_rules = parent.identity().rules == change.identity.rules;
        if !few || !same_rules || seal.deltas >= MOST_DELTAS {
            return Ok(None);
        }
        sources.finish()?;
        let (mut staged, directory) = self.begin(&change.identity)?;
        let database = directory.join("graph.sqlite");
        match durable::link(Part::Database, &below.join("graph.sqlite"), &database) {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Err(damaged("database")),
            // A file system without second names, or too many of them, or whatever else: a bulk load needs none.
            Err(error) => {
                tracing::debug!(%error, "the database cannot be shared");
                return Ok(None);
            }
        }
        let stamp = || database.metadata().and_then(|found| Ok((found.len(), found.modified()?)));
        let untouched = stamp().map_err(io("read the database"))?;
        let overlay = overlay::beside(&database);
        if !overlay::carry(&overlay::beside(&below.join("graph.sqlite")), seal.overlay.as_ref(), &overlay, room)? {
            return Ok(None);
        }
        let Some(written) = delta::write(&database, &places.packs(), change)? else { return Ok(None) };
        if stamp().map_err(io("read the database"))? != untouched {
            // Never seen; others read this file.
            return Err(damaged("database"));
        }
        let overlay = Some(Sealed::make(&overlay)?);
        let packs = pack_names(&written.packs);
        // The parent's database was found as its seal says when it was opened, and is not written to. Should it be another by now, then
        // it does not match the digests that are taken over, and is found out when it is opened.
        let seal = Seal { database: seal.database, overlay, deltas: seal.deltas + 1, packs };
        staged.finish(&directory, &seal, written.coverage, written.totals)?;
        staged.moved_sources = written.moved_sources;
        staged.shares = true;
        Ok(Some(staged))
    }

    /// Returns whether a change of so many files of `parent` is small enough to be written as what differs.
    pub fn may_be_delta(parent: &Generation, files: usize) -> bool {
        files as u64 <= SMALL_CHANGE.max(parent.file_count() / CHANGED_SHARE)
    }

    /// Makes the directory of a new generation under a temporary name. Dropping what is returned removes it.
    fn begin(&self, identity: &Identity) -> Result<(Staged<'_>, PathBuf)> {
        let places = &self.cache.places;
        durable::ensure_directory(Part::Generations, &places.generations()).map_err(io("create the generations"))?;
        let id = random_id()?;
        let temporary = places.generations().join(format!(".{}", id.hex()));
        durable::make_directory(Part::Generation, &temporary, true).map_err(io("create a generation"))?;
        let named = Named::new(id, crate::model::ContentHash([0; 32]), identity);
        let staged = Staged {
            cache: &self.cache,
            temporary: Some(temporary.clone()),
            named,
            database_bytes: 0,
            coverage: Coverage::default(),
            totals: Totals::default(),
            moved_sources: false,
            traces_bytes: None,
            shares: false,
        };
        let guard = overlay::guard(&temporary.join("graph.sqlite"));
        durable::make_directory(Part::Generation, &guard, true).map_err(io("create a generation"))?;
        durable::create(Part::Lease, &temporary.join("lease")).map_err(io("create a lease"))?;
        Ok((staged, temporary))
    }
}

fn pack_names(packs: &[u64]) -> Vec<String> {
    packs.iter().map(|pack| format!("{pack:016x}")).collect()
}

impl Staged<'_> {
    /// Seals what was written and forces its names to the disk.
    fn finish(&mut self, directory: &std::path::Path, seal: &Seal, coverage: Coverage, totals: Totals) -> Result<()> {
        let (text, digest) = seal.encode();
        let write = |mut file: durable::NewFile| file.write_all(&text).and_then(|()| file.sync());
        durable::create(Part::Seal, &directory.join("seal")).and_then(write).map_err(io("write the seal"))?;
        durable::sync_names(Part::Generation, directory).map_err(io("write a generation to disk"))?;
        self.named.seal = digest;
        self.database_bytes = seal.database.size() + seal.overlay.as_ref().map_or(0, Sealed::size);
        self.coverage = coverage;
        self.totals = totals;
        Ok(())
    }

    /// Returns the name that it is published under.
    pub fn id(&self) -> GenerationId {
        self.named.id
    }

    pub fn fingerprint(&self) -> Fingerprint {
        self.named.fingerprint
    }

    /// Returns whether sources stand elsewhere than what it was made from said.
    pub fn has_moved_sources(&self) -> bool {
        self.moved_sources
    }

    /// Takes into account how large the traces will be that are kept once it is published.
    pub fn leave_room_for_traces(&mut self, bytes: u64) {
        self.traces_bytes = Some(bytes);
    }

    /// Returns what the generation holds, as it will say itself.
    pub fn coverage(&self) -> &Coverage {
        &self.coverage
    }

    pub fn totals(&self) -> Totals {
        self.totals
    }
}

impl Staged<'_> {
    /// Makes this the generation that serves, and removes what is not needed any more.
    ///
    /// # Errors
    /// [`StoreError::CacheLimit`] when the cache would be over its limit even without history; [`StoreError::Damaged`] when someone met
    /// damage meanwhile and it is in what this one shares; when the disk fails. The generation before serves on.
    pub fn publish(mut self) -> Result<Published> {
        let cache = self.cache;
        let places = &cache.places;
        // A damaged pointer is no obstacle: what it named cannot be known, and this build replaces it.
        let before = match Pointer::read(&places.pointer()) {
            Ok(before) => before,
            Err(StoreError::Damaged { .. }) => None,
            Err(error) => return Err(error),
        };
        let mut pointer = Pointer::after(before.as_ref(), self.named);
        if let Some(before) = &before
            && self.cache.has_damage_mark()
        {
            // History cannot be built anew: what of it is damaged is let go, else whoever compares with it would meet it for ever.
            let mut packs = CheckedPacks::default();
            if self.shares
                && let Some(own) = &self.temporary
                && !packs.hold_at(self.cache, own, &self.named)
            {
                return Err(damaged("database"));
            }
            if !packs.hold(self.cache, &before.current) {
                pointer = Pointer::in_place_of_damaged(before, self.named);
            }
            pointer = pointer.without_history_unless(|named| packs.hold(self.cache, named));
        }
        if self.size_with(&pointer) > self.cache.max_bytes {
            // History is given up before the build is.
            pointer = Pointer::after(None, self.named);
            if self.size_with(&pointer) > self.cache.max_bytes {
                drop(self);
                // The sources of this build have their names already, and would stay.
                if before.is_some() {
                    gc::collect(places, before.as_ref());
                }
                return Err(StoreError::CacheLimit);
            }
        }
        if let Some(temporary) = &self.temporary {
            durable::rename(Part::Generation, temporary, &places.generation(self.named.id)).map_err(io("name a generation"))?;
        }
        self.temporary = None;
        let written = durable::sync_names(Part::Generations, &places.generations())
            .map_err(io("write a generation to disk"))
            .and_then(|()| pointer.write(&places.pointer()));
        if let Err(error) = written {
            // Whether the new pointer is in place is not known when the last step failed, so the directory stays for it.
            if !matches!(Pointer::read(&places.pointer()), Ok(Some(found)) if found == pointer) {
                self.temporary = Some(places.generation(self.named.id));
            }
            return Err(error);
        }
        // The mark speaks of what was there before; leftovers only cost space.
        let _ = durable::remove(Part::Mark, &places.mark());
        let collected = gc::collect(places, Some(&pointer));
        Ok(Published { id: self.named.id, database_bytes: self.database_bytes, collected })
    }

    /// Returns the size that the cache has when `pointer` is in force and nobody reads.
    fn size_with(&self, pointer: &Pointer) -> u64 {
        let places = &self.cache.places;
        let mut packs = std::collections::BTreeSet::new();
        let mut seen = std::collections::HashSet::new();
        let mut size = 0;
        for named in pointer.kept() {
            let own = if named.id == self.named.id { self.temporary.clone() } else { None };
            let directory = own.unwrap_or_else(|| places.generation(named.id));
            size += files::size_below(&directory, &mut seen);
            if let Ok(seal) = Seal::read(&directory.join("seal"), None) {
                packs.extend(seal.packs);
            }
        }
        let present = || places.traces().metadata().map_or(0, |metadata| metadata.len());
        size += self.traces_bytes.unwrap_or_else(present);
        let of_packs = packs.iter().map(|pack| places.packs().join(format!("{pack}.pack")));
        size + of_packs.map(|path| path.metadata().map_or(0, |metadata| metadata.len())).sum::<u64>()
    }
}

impl Drop for Staged<'_> {
    fn drop(&mut self) {
        if let Some(temporary) = &self.temporary {
            let _ = durable::remove(Part::Generation, temporary);
        }
    }
}

fn random_id() -> Result<GenerationId> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| io("find a name for a generation")(std::io::Error::other(error)))?;
    Ok(GenerationId(bytes))
}

#[cfg(test)]
impl Staged<'_> {
    /// Makes the generation one of another branch.
    pub(super) fn rename_head(&mut self, number: u8) {
        self.named.head = crate::model::ContentHash([number; 32]);
    }
}
