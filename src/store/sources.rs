//! The sources of a binding: every content once, in packs that generations share.
//!
//! Must not know which generation needs what. Invariant: an object is handed out only when it hashes to its name.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::model::ContentHash;

use super::content::{Content, ObjectRef};
use super::durable::{self, Part};
use super::error::{Result, StoreError, io};
use super::{files, packs};
use crate::workspace::EntryState;

/// More packs than this are put together.
pub(super) const MANY_PACKS: usize = 32;
/// As many packs stay as they are when there are many: the largest, which cost most to copy.
const SETTLED_PACKS: usize = 8;
/// A pack smaller than this is not rewritten for being half empty.
const SMALL_PACK: u64 = 1 << 20;

/// Takes in sources on the threads of a scan. They are readable once the pack was finished by the builder.
#[derive(Debug)]
pub struct PackWriter {
    directory: PathBuf,
    /// Most bytes that may be written.
    limit: u64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    builder: Option<packs::PackBuilder>,
    places: HashMap<ContentHash, ObjectRef>,
}

impl PackWriter {
    pub(super) fn new(directory: &Path, limit: u64) -> Self {
        Self { directory: directory.to_owned(), limit, state: Mutex::default() }
    }

    /// Keeps a content of this hash, once, and returns where it will be.
    ///
    /// # Errors
    /// When it cannot be written, or the sources of this build alone are over the size limit of the cache.
    pub fn append(&self, hash: ContentHash, bytes: &[u8]) -> Result<ObjectRef> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = state.places.get(&hash) {
            return Ok(*place);
        }
        if state.builder.is_none() {
            state.builder = Some(packs::PackBuilder::create(Part::Pack, &self.directory).map_err(io("create a pack"))?);
        }
        let builder = state.builder.as_mut().expect("made above");
        if builder.size() + bytes.len() as u64 > self.limit {
            return Err(StoreError::CacheLimit);
        }
        let offset = builder.append(hash, hash, bytes).map_err(io("write a pack"))?;
        let place = ObjectRef { pack: builder.id(), offset, length: bytes.len() as u64 };
        state.places.insert(hash, place);
        Ok(place)
    }

    /// Makes what was taken in durable; what comes later goes into another pack.
    pub(super) fn finish(&self) -> Result<()> {
        let builder = self.state.lock().unwrap_or_else(PoisonError::into_inner).builder.take();
        match builder {
            Some(builder) => builder.finish(true).map(drop).map_err(io("finish a pack")),
            None => Ok(()),
        }
    }
}

/// Reads one object and checks it.
pub(super) fn read(directory: &Path, hash: &ContentHash, place: ObjectRef) -> Result<Arc<[u8]>> {
    let file = packs::open_pack(directory, place.pack)?;
    let mut buffer = Vec::new();
    packs::read_payload(&file, place.offset, place.length, hash, &mut buffer)?;
    Ok(buffer.into())
}

/// Returns the included contents of a new generation with their places, each once.
pub(super) fn objects(content: &Content) -> BTreeMap<ContentHash, ObjectRef> {
    let included = content.files.iter().filter_map(|file| match file.entry.state {
        EntryState::Included { hash, .. } => Some((hash, file.object?)),
        EntryState::Omitted { .. } => None,
    });
    included.collect()
}

/// Returns the packs that objects need, sorted, when those in `moved` stand elsewhere.
pub(super) fn packs_of(objects: &BTreeMap<ContentHash, ObjectRef>, moved: &HashMap<ContentHash, ObjectRef>) -> Vec<u64> {
    let mut packs: Vec<u64> = objects.iter().map(|(hash, place)| moved.get(hash).unwrap_or(place).pack).collect();
    packs.sort_unstable();
    packs.dedup();
    packs
}

/// Copies objects out of packs that are mostly waste, or of small ones when there are many, into a new pack; returns the new places.
/// The old packs stay until no generation needs them.
pub(super) fn compact(directory: &Path, objects: &BTreeMap<ContentHash, ObjectRef>) -> Result<HashMap<ContentHash, ObjectRef>> {
    let mut live: BTreeMap<u64, u64> = BTreeMap::new();
    for place in objects.values() {
        *live.entry(place.pack).or_default() += place.length;
    }
    let mut sizes = Vec::with_capacity(live.len());
    for (&pack, &live) in &live {
        let size = packs::open_pack(directory, pack)?.metadata().map_err(io("read a pack"))?.len();
        sizes.push((size, pack, live));
    }
    sizes.sort_unstable_by(|one, other| other.cmp(one));
    let many = sizes.len() > MANY_PACKS;
    let old: Vec<u64> = sizes
        .iter()
        .enumerate()
        .filter(|(rank, (size, _, live))| (many && *rank >= SETTLED_PACKS) || (*size > SMALL_PACK && live * 2 < *size))
        .map(|(_, (_, pack, _))| *pack)
        .collect();
    if old.is_empty() {
        return Ok(HashMap::new());
    }
    let writer = PackWriter::new(directory, u64::MAX);
    let mut open: BTreeMap<u64, File> = BTreeMap::new();
    for &pack in &old {
        open.insert(pack, packs::open_pack(directory, pack)?);
    }
    // In the order of their places, so that each pack is read from front to back.
    let mut leaving: Vec<_> = objects.iter().filter(|(_, place)| open.contains_key(&place.pack)).collect();
    leaving.sort_unstable_by_key(|(_, place)| (place.pack, place.offset));
    let mut moved = HashMap::with_capacity(leaving.len());
    let mut buffer = Vec::new();
    for (hash, place) in leaving {
        packs::read_payload(&open[&place.pack], place.offset, place.length, hash, &mut buffer)?;
        moved.insert(*hash, writer.append(*hash, &buffer)?);
    }
    writer.finish()?;
    Ok(moved)
}

/// Removes all packs but the named ones, and what killed builders left. Returns how many bytes that freed.
pub(super) fn collect(directory: &Path, needed: &std::collections::BTreeSet<u64>) -> u64 {
    let mut freed = 0;
    for entry in files::list(directory).unwrap_or_default() {
        let name = entry.file_name();
        if needed.iter().any(|pack| name.to_str() == Some(packs::file_name(*pack).as_str())) {
            continue;
        }
        let size = entry.metadata().map_or(0, |metadata| metadata.len());
        if durable::remove(Part::Pack, &entry.path()).is_ok() {
            freed += size;
        }
    }
    freed
}
