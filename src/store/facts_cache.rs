//! Facts that some build of this user made before, by what they are a function of: shared by all bindings, bounded in size.
//!
//! Must not know how facts are made. Invariant: nothing here is an error to those who look something up: what is missing, damaged or of
//! another form is a miss, and what is found is exactly what was put in.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, OnceLock};
use std::time::{Duration, SystemTime};

use crate::model::{Canonical, ContentHash, FileFacts, Headway, codec};

use super::durable::{self, Part};
use super::error::{Result, StoreError, io};
use super::packs::{self, Pack, PackBuilder, PackEntry};
use super::{files, lock};

/// Goes into every key; another number for another form of the entries.
const FORMAT: u64 = 4;
/// No more than this, however large the cache may be.
const MAX_BYTES: u64 = 512 << 20;
/// More packs than this are put together, but for those of [`SETTLED_BYTES`].
const MANY_PACKS: usize = 16;
const SETTLED_BYTES: u64 = 32 << 20;
/// A pack that was used within this time is not marked as used again.
const USE_MARK: Duration = Duration::from_secs(3600);

/// The facts cache of one user.
#[derive(Debug)]
pub struct FactsCache {
    directory: PathBuf,
    max_bytes: u64,
    index: OnceLock<Index>,
}

/// The packs as they were when the first look-up opened them.
#[derive(Debug)]
struct Index {
    packs: Vec<Pack>,
    /// Pack and entry of each key.
    places: HashMap<ContentHash, (u32, PackEntry)>,
}

/// What keeping facts did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    pub written: u64,
    /// Facts that were there before.
    pub present: u64,
    pub merged_packs: u64,
    pub dropped_packs: u64,
}

/// What a verification found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct VerifiedFacts {
    pub packs: u64,
    pub facts: u64,
    /// Packs that were damaged.
    pub dropped: u64,
}

impl FactsCache {
    /// Returns the cache in `directory`, which is read when something is looked up and made when something is kept.
    pub fn new(directory: &Path, max_bytes: u64) -> Self {
        Self { directory: directory.to_owned(), max_bytes: max_bytes.min(MAX_BYTES), index: OnceLock::new() }
    }

    fn index(&self) -> &Index {
        self.index.get_or_init(|| self.read_index())
    }

    /// Returns whether what stands in the directory was made by somebody who may say what facts are.
    fn is_trusted(&self) -> bool {
        self.directory.parent().is_some_and(|root| files::is_trusted(root, &self.directory))
    }

    fn read_index(&self) -> Index {
        let mut index = Index { packs: Vec::new(), places: HashMap::new() };
        if !self.is_trusted() {
            return index;
        }
        for id in packs::list(&self.directory).unwrap_or_default() {
            let Ok(mut pack) = Pack::open(&self.directory, id) else { continue };
            let number = u32::try_from(index.packs.len()).expect("a directory holds fewer packs");
            index.places.extend(pack.entries.drain(..).map(|entry| (entry.key, (number, entry))));
            index.packs.push(pack);
        }
        index
    }

    /// Returns whether facts are likely there; reading them may still miss.
    pub fn contains(&self, key: &ContentHash) -> bool {
        self.index().places.contains_key(&internal(key))
    }

    /// Returns the facts under each key, in the order of the keys.
    pub fn lookup(&self, keys: &[ContentHash]) -> Vec<Option<Arc<FileFacts>>> {
        let index = self.index();
        let mut found = Vec::with_capacity(keys.len());
        found.resize_with(keys.len(), || None);
        // By place, so that each pack is read from front to back.
        let mut wanted: Vec<(u32, PackEntry, usize)> = Vec::with_capacity(keys.len());
        for (position, key) in keys.iter().enumerate() {
            if let Some((pack, entry)) = index.places.get(&internal(key)) {
                wanted.push((*pack, *entry, position));
            }
        }
        wanted.sort_unstable_by_key(|(pack, entry, _)| (*pack, entry.offset));
        let read = |part: &[(u32, PackEntry, usize)]| {
            let mut buffer = Vec::new();
            let mut facts = Vec::with_capacity(part.len());
            for (pack, entry, position) in part {
                let file = &index.packs[*pack as usize].file;
                let payload = packs::read_payload(file, entry.offset, entry.length, &entry.digest, &mut buffer);
                match payload.ok().and_then(|()| unpack(&buffer)) {
                    Some(decoded) => facts.push((*position, Arc::new(decoded))),
                    // The whole pack goes, so that what is made again is kept again.
                    None => drop(self.remove(index.packs[*pack as usize].id)),
                }
            }
            facts
        };
        let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        // A thread costs more than some dozens of entries.
        let share = wanted.len().div_ceil(threads).max(64);
        std::thread::scope(|scope| {
            let mut shares = wanted.chunks(share);
            let own = shares.next().unwrap_or_default();
            let others: Vec<_> = shares.map(|part| scope.spawn(|| read(part))).collect();
            let mut all = read(own);
            // A thread that panicked found nothing.
            all.extend(others.into_iter().filter_map(|other| other.join().ok()).flatten());
            for (position, facts) in all {
                found[position] = Some(facts);
            }
        });
        self.mark_used(&wanted);
        found
    }

    /// Returns the facts under a key.
    pub fn get(&self, key: &ContentHash) -> Option<Arc<FileFacts>> {
        let index = self.index();
        let (number, entry) = index.places.get(&internal(key))?;
        let pack = &index.packs[*number as usize];
        let mut buffer = Vec::new();
        let payload = packs::read_payload(&pack.file, entry.offset, entry.length, &entry.digest, &mut buffer);
        let Some(facts) = payload.ok().and_then(|()| unpack(&buffer)) else {
            self.remove(pack.id);
            return None;
        };
        Some(Arc::new(facts))
    }

    /// Notes that facts are of use though nobody looks them up now, so that others are dropped first.
    pub fn note_use(&self, keys: impl Iterator<Item = ContentHash>) {
        let places = &self.index().places;
        let entries: Vec<_> =
            keys.filter_map(|key| places.get(&internal(&key)).map(|(pack, entry)| (*pack, *entry, 0))).collect();
        self.mark_used(&entries);
    }

    /// Notes on the packs of these entries that they are of use, so that others are dropped first.
    fn mark_used(&self, entries: &[(u32, PackEntry, usize)]) {
        let used: HashSet<u32> = entries.iter().map(|(pack, ..)| *pack).collect();
        let now = SystemTime::now();
        for number in used {
            let pack = &self.index().packs[number as usize];
            let file = &pack.file;
            let old = file
                .metadata()
                .and_then(|metadata| metadata.modified())
                .is_ok_and(|modified| now.duration_since(modified).is_ok_and(|age| age > USE_MARK));
            if old {
                // A cache that cannot be written can still be read.
                let _ = durable::touch(Part::Facts, &self.directory.join(packs::file_name(pack.id)), file, now);
            }
        }
    }

    /// Keeps facts, as [`codec`] writes them, under their keys, then puts small packs together and drops the longest unused ones that are
    /// over the size limit.
    ///
    /// # Errors
    /// When the cache cannot be written; what was there stays.
    pub fn insert(&self, facts: &[(ContentHash, &[u8])]) -> Result<Kept> {
        let mut kept = Kept::default();
        let index = self.read_index();
        let mut missing = facts.to_vec();
        // Facts are a function of their key: what is there need not be written again.
        missing.retain(|(key, _)| !index.places.contains_key(&internal(key)));
        kept.present = (facts.len() - missing.len()) as u64;
        if missing.is_empty() {
            return Ok(kept);
        }
        durable::make_directory(Part::FactsCache, &self.directory, true).map_err(io("create the facts cache"))?;
        if !self.is_trusted() {
            return Err(StoreError::Owner);
        }
        // Where that cannot be done the directory is not ours, and what is not readable is not kept.
        let _ = durable::make_private(&self.directory, 0o700);
        let mut builder = PackBuilder::create(Part::Facts, &self.directory).map_err(io("create a pack of facts"))?;
        for ((key, _), payload) in missing.iter().zip(pack(&missing)) {
            // One build must not fill more than the whole cache may have.
            if builder.size() + payload.len() as u64 > self.max_bytes {
                break;
            }
            builder.append(internal(key), ContentHash::of(&payload), &payload).map_err(io("write a pack of facts"))?;
            kept.written += 1;
        }
        // Not forced to the disk: a torn pack is a miss.
        builder.finish(false).map_err(io("finish a pack of facts"))?;
        self.tidy(&mut kept);
        Ok(kept)
    }

    /// Keeps the number and the size of the packs within bounds. Two processes may do so at once: each removes only what it has copied
    /// or what is over the limit, and a pack that vanishes is a miss.
    fn tidy(&self, kept: &mut Kept) {
        let mut found = Vec::new();
        for id in packs::list(&self.directory).unwrap_or_default() {
            match Pack::open(&self.directory, id) {
                Ok(pack) => {
                    let used = pack.file.metadata().and_then(|metadata| metadata.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
                    found.push((used, pack));
                }
                Err(_) => kept.dropped_packs += u64::from(self.remove(id)),
            }
        }
        // The latest used first.
        found.sort_by_key(|(used, pack)| (std::cmp::Reverse(*used), pack.id));
        let mut total = 0;
        found.retain(|(_, pack)| {
            total += pack.size;
            let fits = total <= self.max_bytes;
            if !fits {
                kept.dropped_packs += u64::from(self.remove(pack.id));
            }
            fits
        });
        if found.len() > MANY_PACKS {
            found.retain(|(_, pack)| pack.size < SETTLED_BYTES);
            if found.len() > 1
                && let Ok(merged) = self.merge(&found)
            {
                kept.merged_packs += merged;
            }
        }
    }

    /// Copies the entries of several packs into one, the latest used first, and removes them.
    fn merge(&self, found: &[(SystemTime, Pack)]) -> Result<u64> {
        let mut builder = PackBuilder::create(Part::Facts, &self.directory).map_err(io("create a pack of facts"))?;
        let mut seen = HashSet::new();
        let mut buffer = Vec::new();
        for (_, pack) in found {
            for entry in &pack.entries {
                // A damaged entry is left behind.
                if seen.insert(entry.key)
                    && packs::read_payload(&pack.file, entry.offset, entry.length, &entry.digest, &mut buffer).is_ok()
                {
                    builder.append(entry.key, entry.digest, &buffer).map_err(io("write a pack of facts"))?;
                }
            }
        }
        builder.finish(false).map_err(io("finish a pack of facts"))?;
        Ok(found.iter().map(|(_, pack)| u64::from(self.remove(pack.id))).sum())
    }

    /// Checks every pack, and removes those that are damaged: a miss, and made again when needed.
    pub(super) fn verify(&self, headway: &Headway) -> VerifiedFacts {
        let mut verified = VerifiedFacts::default();
        let packs = packs::list(&self.directory).unwrap_or_default();
        // A few generations come after them.
        headway.expect(packs.len() as u64 + 1, 1);
        for id in packs {
            headway.add(1);
            verified.packs += 1;
            match Pack::open(&self.directory, id).and_then(|pack| pack.check()) {
                Ok(facts) => verified.facts += facts,
                // One that another process has put together with others is not damaged.
                Err(_) if std::fs::symlink_metadata(self.directory.join(packs::file_name(id))).is_err() => verified.packs -= 1,
                Err(_) => verified.dropped += u64::from(self.remove(id)),
            }
        }
        verified
    }

    fn remove(&self, id: u64) -> bool {
        durable::remove(Part::Facts, &self.directory.join(packs::file_name(id))).is_ok()
    }

    /// Removes packs that never got their names because their process ended.
    pub(super) fn remove_abandoned(&self) {
        if !self.is_trusted() {
            return;
        }
        for entry in files::list(&self.directory).unwrap_or_default() {
            if entry.file_name().as_encoded_bytes().starts_with(b".") && !lock::is_locked(&entry.path()) {
                let _ = durable::remove(Part::Facts, &entry.path());
            }
        }
    }
}

/// Returns facts as they are stored: names repeat so much that they take half the room.
fn pack(facts: &[(ContentHash, &[u8])]) -> Vec<Vec<u8>> {
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    // A thread costs more than some dozens of entries.
    let share = facts.len().div_ceil(threads).max(64);
    let pack = |part: &[(ContentHash, &[u8])]| -> Vec<Vec<u8>> {
        part.iter().map(|(_, payload)| lz4_flex::block::compress_prepend_size(payload)).collect()
    };
    std::thread::scope(|scope| {
        let shares: Vec<_> = facts.chunks(share).map(|part| scope.spawn(move || pack(part))).collect();
        let packed = shares.into_iter().map(|share| share.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        packed.flatten().collect()
    })
}

/// Returns the facts that were stored so. The bytes are those that were written, so that the size they begin with may be believed.
fn unpack(payload: &[u8]) -> Option<FileFacts> {
    codec::decode(&lz4_flex::block::decompress_size_prepended(payload).ok()?)
}

fn internal(key: &ContentHash) -> ContentHash {
    static FORM: LazyLock<ContentHash> = LazyLock::new(|| {
        let mut record = Canonical::new("facts-form");
        record.number(FORMAT);
        for text in codec::DECLARATIONS {
            record.field(text.as_bytes());
        }
        ContentHash(record.finish())
    });
    let mut record = Canonical::new("facts-entry");
    record.field(&FORM.0).field(&key.0);
    ContentHash(record.finish())
}

#[cfg(test)]
mod tests {
    use crate::model::facts::Body;
    use crate::model::{ParseStatus, Surface};

    use super::*;

    fn key(number: u8) -> ContentHash {
        ContentHash([number; 32])
    }

    /// Facts that tell their number.
    fn facts(number: u8) -> FileFacts {
        FileFacts {
            parse: ParseStatus::Ok,
            lines: u32::from(number),
            generated: false,
            minified: false,
            definitions: Vec::new(),
            headings: Vec::new(),
            surface: Arc::new(Surface::default()),
            body: Body::default(),
        }
    }

    fn insert(cache: &FactsCache, numbers: impl IntoIterator<Item = u8>) -> Kept {
        let facts: Vec<_> =
            numbers.into_iter().map(|number| (key(number), codec::encode(&facts(number)).expect("plain values"))).collect();
        let by_reference: Vec<_> = facts.iter().map(|(key, facts)| (*key, facts.as_slice())).collect();
        cache.insert(&by_reference).expect("kept")
    }

    /// Returns which of the numbers a fresh cache finds.
    fn found(directory: &Path, numbers: std::ops::Range<u8>) -> Vec<u8> {
        let keys: Vec<_> = numbers.map(key).collect();
        let found = FactsCache::new(directory, MAX_BYTES).lookup(&keys);
        found.iter().flatten().map(|facts| u8::try_from(facts.lines).expect("small")).collect()
    }

    #[test]
    fn facts_come_back_in_the_order_asked() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let cache = FactsCache::new(folder.path(), MAX_BYTES);
        assert_eq!(insert(&cache, 0..200).written, 200);
        let keys: Vec<_> = [7, 250, 3, 199].map(key).into();
        let found = cache.lookup(&keys);
        let lines: Vec<_> = found.iter().map(|facts| facts.as_ref().map(|facts| facts.lines)).collect();
        assert_eq!(lines, [Some(7), None, Some(3), Some(199)]);
        let again = insert(&cache, 190..210);
        assert_eq!((again.written, again.present), (10, 10));
        assert_eq!(self::found(folder.path(), 195..205), [195, 196, 197, 198, 199, 200, 201, 202, 203, 204]);
    }

    #[test]
    fn damage_is_a_miss_and_is_replaced() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let cache = FactsCache::new(folder.path(), MAX_BYTES);
        insert(&cache, 0..3);
        let pack = packs::list(folder.path()).expect("listed")[0];
        let path = folder.path().join(packs::file_name(pack));
        let whole = std::fs::read(&path).expect("read");
        for index in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[index] ^= 1;
            std::fs::write(&path, bytes).expect("written");
            let left = found(folder.path(), 0..3);
            assert!(left.len() < 3 && left.iter().all(|number| *number < 3), "{index}: {left:?}");
            insert(&FactsCache::new(folder.path(), MAX_BYTES), 0..3);
            assert_eq!(found(folder.path(), 0..3), [0, 1, 2], "{index}");
            for other in packs::list(folder.path()).expect("listed") {
                durable::remove(Part::Facts, &folder.path().join(packs::file_name(other))).expect("removed");
            }
        }
    }

    #[test]
    fn packs_stay_few_and_small() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for number in 0..60 {
            insert(&FactsCache::new(folder.path(), MAX_BYTES), [number]);
        }
        assert!(packs::list(folder.path()).expect("listed").len() <= MANY_PACKS + 1);
        assert_eq!(found(folder.path(), 0..60).len(), 60);
        let limit = 2_000;
        for number in 60..120 {
            insert(&FactsCache::new(folder.path(), limit), [number]);
            assert!(crate::store::files::size_below(folder.path(), &mut Default::default()) <= limit, "after {number}");
        }
        assert!(found(folder.path(), 0..120).contains(&119));
    }

    #[test]
    fn two_processes_keep_what_both_put_in() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let directory = folder.path();
                scope.spawn(move || {
                    for number in 0..10 {
                        insert(&FactsCache::new(directory, MAX_BYTES), [thread * 10 + number]);
                    }
                });
            }
        });
        // Merging at the same time may lose an entry to a miss, never give a wrong one.
        let left = found(folder.path(), 0..40);
        assert!(left.len() >= 20 && left.windows(2).all(|pair| pair[0] < pair[1]), "{left:?}");
    }
}
