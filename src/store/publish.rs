//! Building a generation beside the one that serves, and making it the one that serves in one step.
//!
//! Must not know where its content comes from. Invariant: until the pointer names the new generation nothing of the old one is touched,
//! and the pointer names it only when every part is on the disk.

use std::fs::File;
use std::path::PathBuf;

use std::io::Write;

use crate::model::GenerationId;

use super::cache::Cache;
use super::content::Content;
use super::durable::{self, Part};
use super::error::{Result, StoreError, io};
use super::pointer::{Named, Pointer};
use super::seal::Seal;
use super::sources::{self, PackWriter};
use super::verify::CheckedPacks;
use super::{files, gc, writer};

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

    /// Writes a generation whole: sources, database, seal. Nothing names it yet.
    ///
    /// # Errors
    /// When it cannot be written, contradicts itself, or needs a stored source that is damaged.
    pub fn stage(&self, content: &Content, sources: PackWriter) -> Result<Staged<'_>> {
        let places = &self.cache.places;
        sources.finish()?;
        let packs = places.packs();
        let moved = sources::compact(&packs, content).inspect_err(|error| self.cache.mark_damage(error))?;
        durable::ensure_directory(Part::Generations, &places.generations()).map_err(io("create the generations"))?;
        let id = random_id()?;
        let temporary = places.generations().join(format!(".{}", id.hex()));
        durable::make_directory(Part::Generation, &temporary, true).map_err(io("create a generation"))?;
        let named = Named::new(id, crate::model::ContentHash([0; 32]), &content.identity);
        // From here on dropping it removes the directory, whatever fails below.
        let mut staged = Staged { cache: &self.cache, temporary: Some(temporary.clone()), named, database_bytes: 0 };

        durable::create(Part::Lease, &temporary.join("lease")).map_err(io("create a lease"))?;
        let database = temporary.join("graph.sqlite");
        // SQLite opens what is there, and keeps its mode.
        durable::create(Part::Database, &database).map_err(io("create a database"))?;
        writer::write(&database, content, &moved)?;
        let names = sources::packs_of(content, &moved).iter().map(|pack| format!("{pack:016x}")).collect();
        let (seal, digest) = Seal::make(&database, names)?.encode();
        let write = |mut file: durable::NewFile| file.write_all(&seal).and_then(|()| file.sync());
        durable::create(Part::Seal, &temporary.join("seal")).and_then(write).map_err(io("write the seal"))?;
        durable::sync_names(Part::Generation, &temporary).map_err(io("write a generation to disk"))?;
        staged.named.seal = digest;
        staged.database_bytes = database.metadata().map_err(io("read the new database"))?.len();
        Ok(staged)
    }
}

impl Staged<'_> {
    /// Makes this the generation that serves, and removes what is not needed any more.
    ///
    /// # Errors
    /// [`StoreError::CacheLimit`] when the cache would be over its limit even without history; when the disk fails. The generation before
    /// serves on.
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
        let mut size = 0;
        for named in pointer.kept() {
            let own = if named.id == self.named.id { self.temporary.clone() } else { None };
            let directory = own.unwrap_or_else(|| places.generation(named.id));
            size += files::size_below(&directory);
            if let Ok(seal) = Seal::read(&directory.join("seal"), None) {
                packs.extend(seal.packs);
            }
        }
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
