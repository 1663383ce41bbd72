//! The cache of one binding on disk: where its parts stand, opening the generation that serves, and clearing all of it.
//!
//! Must not look at a worktree. Invariant: nothing here that reads writes anything but a mark of damage, and nothing waits for a builder
//! unless it builds.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use crate::model::{ContentHash, Demand, Fingerprint, GenerationId};

use super::content::ObjectRef;
use super::durable::{self, Part};
use super::error::{Result, StoreError, damaged, io, unwritable};
use super::facts_cache::FactsCache;
use super::lock::{self, Lease};
use super::pointer::{Named, Pointer, Role};
use super::publish::BuildLock;
use super::reader::Generation;
use super::seal::{KnownDatabase, Seal};
use super::{files, gc, overlay, sources};

/// Goes into the name of a binding's directory, with the form of the database: a build that writes another form of anything stands beside
/// this one and leaves it alone.
const FORMAT: &str = "2";
const DATABASE_FORM: &str = concat!(include_str!("schema.sql"), include_str!("indexes.sql"));
/// Most rounds of opening a generation while builders replace it; each round that fails saw another generation published.
const MAX_ROUNDS: usize = 100;

/// The cache of one binding.
#[derive(Clone, Debug)]
pub struct Cache {
    pub(super) root: PathBuf,
    pub(super) places: Places,
    pub(super) max_bytes: u64,
    pub(super) known: KnownDatabase,
}

/// A generation that is kept whether read or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeptGeneration {
    pub fingerprint: Fingerprint,
    pub role: Role,
    /// In microseconds since 1970; 0 where that is not known.
    pub built: i64,
}

/// Where the parts of a binding's cache stand.
#[derive(Clone, Debug)]
pub(super) struct Places {
    pub directory: PathBuf,
}

impl Places {
    pub fn pointer(&self) -> PathBuf {
        self.directory.join("current")
    }

    pub fn lock(&self) -> PathBuf {
        self.directory.join("build.lock")
    }

    pub fn last_build(&self) -> PathBuf {
        self.directory.join("last-build.json")
    }

    pub fn traces(&self) -> PathBuf {
        self.directory.join("traces")
    }

    pub fn mark(&self) -> PathBuf {
        self.directory.join("damaged")
    }

    pub fn packs(&self) -> PathBuf {
        self.directory.join("packs")
    }

    pub fn generations(&self) -> PathBuf {
        self.directory.join("generations")
    }

    pub fn generation(&self, id: GenerationId) -> PathBuf {
        self.generations().join(id.hex())
    }
}

impl Cache {
    /// Returns the cache of a binding below `root`, without looking at it.
    pub fn new(root: &Path, binding: &str, max_bytes: u64) -> Self {
        let plain =
            !binding.is_empty() && binding.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
        let name = if plain { binding.to_owned() } else { ContentHash::of(binding.as_bytes()).hex() };
        let form = ContentHash::of(DATABASE_FORM.as_bytes()).hex();
        let places = Places { directory: root.join(format!("{name}.{FORMAT}-{}", &form[..8])) };
        Self { root: root.to_owned(), places, max_bytes, known: KnownDatabase::default() }
    }

    /// Opens the generation that serves: takes a lease, reads the pointer again, and checks every byte of the database.
    ///
    /// # Errors
    /// [`StoreError::Missing`] when nothing was published, [`StoreError::Damaged`] when it is not what was published.
    pub fn pin(&self) -> Result<Generation> {
        self.pin_named(|pointer| Some(pointer.current))
    }

    /// Opens the generation before the one that serves.
    ///
    /// # Errors
    /// As [`Self::pin`].
    pub fn pin_previous(&self) -> Result<Generation> {
        self.pin_named(|pointer| pointer.previous)
    }

    /// Opens the first generation at the branch and HEAD of the one that serves.
    ///
    /// # Errors
    /// As [`Self::pin`].
    pub fn pin_first(&self) -> Result<Generation> {
        self.pin_named(|pointer| Some(pointer.first))
    }

    /// Opens a kept generation of this fingerprint.
    ///
    /// # Errors
    /// As [`Self::pin`].
    pub fn pin_fingerprint(&self, fingerprint: &Fingerprint) -> Result<Generation> {
        self.pin_named(|pointer| pointer.kept().into_iter().find(|named| named.fingerprint == *fingerprint))
    }

    /// Returns whether a generation is the one that serves.
    ///
    /// # Errors
    /// When the pointer cannot be read.
    pub fn is_current(&self, generation: &Generation) -> Result<bool> {
        self.serves(generation.id())
    }

    /// Returns whether the generation of an id is the one that serves.
    ///
    /// # Errors
    /// When the pointer cannot be read.
    pub fn serves(&self, id: GenerationId) -> Result<bool> {
        Ok(self.pointer()?.is_some_and(|pointer| pointer.current.id == id))
    }

    /// Returns the generations that are kept, the one that serves first; none of them is opened.
    ///
    /// # Errors
    /// When the pointer cannot be read.
    pub fn kept(&self) -> Result<Vec<KeptGeneration>> {
        let roles = self.pointer()?.map(|pointer| pointer.roles()).unwrap_or_default();
        let kept = |(named, role): (Named, Role)| KeptGeneration { fingerprint: named.fingerprint, role, built: named.built };
        Ok(roles.into_iter().map(kept).collect())
    }

    pub(super) fn pointer(&self) -> Result<Option<Pointer>> {
        self.check_owner()?;
        match Pointer::read(&self.places.pointer()) {
            // Something else stands in the place of the directory itself, which a build replaces.
            Err(StoreError::Io { source, .. })
                if source.kind() == std::io::ErrorKind::NotADirectory && fs::symlink_metadata(&self.places.directory).is_ok() =>
            {
                Err(damaged("directory"))
            }
            outcome => outcome.inspect_err(|error| self.mark_damage(error)),
        }
    }

    fn pin_named(&self, choose: impl Fn(&Pointer) -> Option<Named>) -> Result<Generation> {
        for _ in 0..MAX_ROUNDS {
            let Some(named) = self.pointer()?.as_ref().and_then(&choose) else { return Err(StoreError::Missing) };
            let taken = lock::lease(&self.places.generation(named.id).join("lease")).map_err(io("take a lease"));
            // Only a pointer read under the lease says that the generation was not on its way out when the lease was taken.
            let after = self.pointer()?.as_ref().and_then(&choose);
            if after != Some(named) {
                continue;
            }
            let opened = taken.and_then(|lease| match lease {
                Lease::Held(lease) => self.open(&named, lease),
                Lease::Gone | Lease::Foreign => Err(damaged("lease")),
            });
            return opened.inspect_err(|error| self.mark_damage(error));
        }
        Err(StoreError::LockTimeout)
    }

    fn open(&self, named: &Named, lease: fs::File) -> Result<Generation> {
        let directory = self.places.generation(named.id);
        let seal = Seal::read(&directory.join("seal"), Some(&named.seal))?;
        seal.check(&directory.join("graph.sqlite"), Some(&self.known))?;
        let overlaid = seal.overlay.is_some();
        let generation = Generation::open(named.id, &directory, &self.places.packs(), lease, overlaid)?.with_built(named.built);
        if generation.identity().fingerprint == named.fingerprint { Ok(generation) } else { Err(damaged("pointer")) }
    }

    /// Leaves a mark where that is possible, so that the next build trusts nothing of what is stored.
    pub fn mark_damage(&self, error: &StoreError) {
        if matches!(error, StoreError::Damaged { .. }) {
            let _ = durable::create(Part::Mark, &self.places.mark());
        }
    }

    /// Returns whether someone met damage since the last build.
    pub fn has_damage_mark(&self) -> bool {
        fs::symlink_metadata(self.places.mark()).is_ok()
    }

    /// Reads a stored source by its place.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] when it is not what its hash says.
    pub fn source(&self, hash: &ContentHash, place: ObjectRef) -> Result<Arc<[u8]>> {
        sources::read(&self.places.packs(), hash, place).inspect_err(|error| self.mark_damage(error))
    }

    /// Returns the facts cache, shared by all bindings below the same root.
    pub fn facts(&self) -> FactsCache {
        FactsCache::new(&self.root.join("facts"), self.max_bytes / 4)
    }

    /// Returns the record of the last build as it was written; `None` when there is none.
    ///
    /// # Errors
    /// When it cannot be read, or what stands there is no record.
    pub fn last_build(&self) -> Result<Option<Vec<u8>>> {
        match files::read_small(&self.places.last_build(), 1 << 16, "record of the last build") {
            Err(StoreError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotADirectory => Ok(None),
            outcome => outcome,
        }
    }

    /// Returns whether a builder is at work.
    pub fn is_locked(&self) -> bool {
        lock::is_locked(&self.places.lock())
    }

    /// Becomes the one builder of this binding as [`Self::lock_while`] does; waits for another until the deadline.
    ///
    /// # Errors
    /// As [`Self::lock_while`].
    pub fn lock(&self, deadline: Instant) -> Result<BuildLock> {
        self.lock_while(&Demand::until(deadline))
    }

    /// Becomes the one builder of this binding; waits for another while the turn is wanted. What nobody needs any more is removed: what a
    /// killed builder left, and generations that outlived the pointer's last move.
    ///
    /// # Errors
    /// [`StoreError::LockTimeout`] and [`StoreError::Unwanted`] when it is not wanted any more; when the cache cannot be written.
    pub fn lock_while(&self, demand: &Demand) -> Result<BuildLock> {
        durable::ensure_directory(Part::Binding, &self.places.directory).map_err(unwritable("create the cache"))?;
        self.check_owner()?;
        let _ = durable::make_private(&self.places.directory, 0o700);
        let lock = lock::lock_exclusive(&self.places.lock(), demand)?;
        self.put_in_order()?;
        Ok(BuildLock::new(self.clone(), lock))
    }

    /// Makes the cache what a build expects: its directories private, nothing left of builders that were killed or gave up, and no
    /// generation that its last reader has left.
    fn put_in_order(&self) -> Result<()> {
        let places = &self.places;
        for directory in [places.packs(), places.generations()] {
            if fs::symlink_metadata(&directory).is_ok_and(|found| !found.is_dir()) {
                // It gives way to a directory, and what was behind it is lost to the generation that serves.
                self.mark_damage(&damaged("directory"));
            }
        }
        let generations = files::list(&places.generations()).unwrap_or_default();
        let generations = generations.iter().map(fs::DirEntry::path);
        let generations = generations.flat_map(|path| [overlay::guard(&path.join("graph.sqlite")), path]);
        for directory in [places.packs(), places.generations()].into_iter().chain(generations) {
            // What cannot be made private is not ours, and is found out when it is used.
            let _ = durable::make_private(&directory, 0o700);
        }
        for directory in [places.directory.clone(), places.packs(), places.generations()] {
            files::check_writable(&directory).map_err(unwritable("write to the cache"))?;
        }
        gc::remove_leftovers(places);
        self.facts().remove_abandoned();
        // Before the build, so that a full disk has room for it. A pointer that cannot be read may name any generation.
        if let Ok(pointer) = Pointer::read(&places.pointer()) {
            gc::collect(places, pointer.as_ref());
        }
        Ok(())
    }

    fn check_owner(&self) -> Result<()> {
        if files::is_trusted(&self.root, &self.places.directory) { Ok(()) } else { Err(StoreError::Owner) }
    }

    /// Removes every generation that nobody reads, and all sources they alone need. Returns how many generations are still read;
    /// nothing opens them any more, and the next build or clearing removes them.
    ///
    /// # Errors
    /// When a builder is at work for longer than ten seconds, or the pointer cannot be removed.
    pub fn clear(&self) -> Result<u64> {
        if fs::symlink_metadata(&self.places.directory).is_err() {
            return Ok(0);
        }
        let _lock = self.lock(Instant::now() + std::time::Duration::from_secs(10))?;
        self.known.forget();
        let named = [
            (Part::Pointer, self.places.pointer()),
            (Part::LastBuild, self.places.last_build()),
            (Part::Mark, self.places.mark()),
            (Part::Traces, self.places.traces()),
        ];
        for (part, path) in named {
            durable::remove(part, &path).map_err(io("clear the cache"))?;
        }
        // The pointer must not come back when what it names is gone.
        durable::sync_names(Part::Pointer, &self.places.directory).map_err(io("clear the cache"))?;
        Ok(gc::collect(&self.places, None).leased)
    }
}
