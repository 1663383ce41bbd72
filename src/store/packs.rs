//! Packs: files that hold many objects, written once and read by position. Sources and facts use the same form.
//!
//! ```text
//! magic, id                      16 bytes
//! payloads, end to end
//! index: key, digest, offset, length for each object, by key     80 bytes each
//! offset of the index, number of objects, digest of all but the payloads, magic     56 bytes
//! ```
//!
//! Must not know what a payload means. Invariant: a pack has its final name only when it is whole; a payload is handed out only
//! after it matched its digest.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::model::{Canonical, ContentHash};

use super::durable::{self, NewFile, Part};
use super::error::{Result, damaged, io};
use super::files::{self, Found};

const MAGIC: [u8; 8] = *b"SXPACK01";
const HEADER: u64 = 16;
const ENTRY: usize = 80;
const TRAILER: usize = 56;

/// One object of a pack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PackEntry {
    pub key: ContentHash,
    /// SHA-256 of the payload.
    pub digest: ContentHash,
    pub offset: u64,
    pub length: u64,
}

/// A whole pack with its index.
#[derive(Debug)]
pub(super) struct Pack {
    pub id: u64,
    pub file: File,
    pub size: u64,
    pub entries: Vec<PackEntry>,
}

/// A pack that is being written under a temporary name; dropped unfinished, it leaves nothing.
#[derive(Debug)]
pub(super) struct PackBuilder {
    id: u64,
    directory: PathBuf,
    temporary: PathBuf,
    part: Part,
    out: BufWriter<NewFile>,
    position: u64,
    entries: Vec<PackEntry>,
    finished: bool,
}

impl PackBuilder {
    /// Starts a pack of a random id in an existing directory.
    pub fn create(part: Part, directory: &Path) -> io::Result<Self> {
        let id = files::random()?;
        let temporary = directory.join(format!(".{id:016x}.tmp"));
        let file = durable::create(part, &temporary)?;
        // Tells others that the process which writes here is alive.
        file.lock()?;
        let mut out = BufWriter::with_capacity(1 << 18, file);
        out.write_all(&MAGIC)?;
        out.write_all(&id.to_le_bytes())?;
        Ok(Self {
            id,
            part,
            directory: directory.to_owned(),
            temporary,
            out,
            position: HEADER,
            entries: Vec::new(),
            finished: false,
        })
    }

    pub fn id(&self) -> u64 {
        self.id
    }

    /// Returns how many bytes the pack has so far.
    pub fn size(&self) -> u64 {
        self.position
    }

    /// Appends a payload and returns where it begins.
    pub fn append(&mut self, key: ContentHash, digest: ContentHash, payload: &[u8]) -> io::Result<u64> {
        self.out.write_all(payload)?;
        let offset = self.position;
        self.position += payload.len() as u64;
        self.entries.push(PackEntry { key, digest, offset, length: payload.len() as u64 });
        Ok(offset)
    }

    /// Writes the index and gives the pack its name; to the disk itself when `durable`. A pack of nothing vanishes and is `None`.
    pub fn finish(mut self, durable: bool) -> io::Result<Option<u64>> {
        if self.entries.is_empty() {
            return Ok(None);
        }
        self.entries.sort_by_key(|entry| entry.key);
        let mut index = Vec::with_capacity(self.entries.len() * ENTRY + TRAILER);
        for entry in &self.entries {
            index.extend_from_slice(&entry.key.0);
            index.extend_from_slice(&entry.digest.0);
            index.extend_from_slice(&entry.offset.to_le_bytes());
            index.extend_from_slice(&entry.length.to_le_bytes());
        }
        let digest = digest_of(self.id, self.position, &index);
        index.extend_from_slice(&self.position.to_le_bytes());
        index.extend_from_slice(&(self.entries.len() as u64).to_le_bytes());
        index.extend_from_slice(&digest);
        index.extend_from_slice(&MAGIC);
        self.out.write_all(&index)?;
        self.out.flush()?;
        if durable {
            self.out.get_ref().sync()?;
        }
        durable::rename(self.part, &self.temporary, &self.directory.join(file_name(self.id)))?;
        self.finished = true;
        if durable {
            durable::sync_names(self.part, &self.directory)?;
        }
        Ok(Some(self.id))
    }
}

impl Drop for PackBuilder {
    fn drop(&mut self) {
        if !self.finished {
            let _ = durable::remove(self.part, &self.temporary);
        }
    }
}

impl Pack {
    /// Opens a pack and reads its index. Anything wrong with it is damage.
    pub fn open(directory: &Path, id: u64) -> Result<Self> {
        let broken = || damaged(format!("pack {id:016x}"));
        let (file, size) = match files::open(&directory.join(file_name(id))).map_err(io("open a pack"))? {
            Found::File(file, size) => (file, size),
            Found::Nothing | Found::Foreign => return Err(broken()),
        };
        let mut buffer = Vec::new();
        let mut read = |offset: u64, length: usize| -> Result<Vec<u8>> {
            files::read_range(&file, offset, length, &mut buffer).map_err(io("read a pack"))?.ok_or_else(broken)?;
            Ok(std::mem::take(&mut buffer))
        };
        let trailer_at = size.checked_sub(TRAILER as u64).ok_or_else(broken)?;
        let header = read(0, 16)?;
        let trailer = read(trailer_at, TRAILER)?;
        let index_at = number(&trailer, 0);
        let count = number(&trailer, 8);
        let length = count.checked_mul(ENTRY as u64).ok_or_else(broken)?;
        // The sizes must add up before they are believed: they decide how much memory is taken.
        if header[..8] != MAGIC
            || trailer[48..] != MAGIC
            || number(&header, 8) != id
            || index_at < HEADER
            || index_at.checked_add(length) != Some(trailer_at)
        {
            return Err(broken());
        }
        let index = read(index_at, usize::try_from(length).map_err(|_| broken())?)?;
        if digest_of(id, index_at, &index) != trailer[16..48] {
            return Err(broken());
        }
        let entries = index
            .chunks_exact(ENTRY)
            .map(|record| PackEntry {
                key: hash(record, 0),
                digest: hash(record, 32),
                offset: number(record, 64),
                length: number(record, 72),
            })
            .collect::<Vec<_>>();
        if entries.iter().any(|entry| entry.offset.checked_add(entry.length).is_none_or(|end| end > index_at)) {
            return Err(broken());
        }
        Ok(Self { id, file, size, entries })
    }
}

impl Pack {
    /// Checks every payload and returns how many there are.
    pub fn check(&self) -> Result<u64> {
        let mut entries: Vec<&PackEntry> = self.entries.iter().collect();
        entries.sort_unstable_by_key(|entry| entry.offset);
        let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        // A thread costs more than some dozens of entries.
        let share = entries.len().div_ceil(threads).max(64);
        let check = |part: &[&PackEntry]| {
            let mut buffer = Vec::new();
            part.iter().try_for_each(|entry| read_payload(&self.file, entry.offset, entry.length, &entry.digest, &mut buffer))
        };
        std::thread::scope(|scope| {
            let shares: Vec<_> = entries.chunks(share).map(|part| scope.spawn(move || check(part))).collect();
            shares.into_iter().try_for_each(|share| share.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        })?;
        Ok(self.entries.len() as u64)
    }
}

/// Reads one payload from an open pack into `buffer` and checks it.
pub(super) fn read_payload(file: &File, offset: u64, length: u64, digest: &ContentHash, buffer: &mut Vec<u8>) -> Result<()> {
    let broken = || damaged("stored object");
    // A length from a damaged row must not decide how much memory is taken.
    let size = file.metadata().map_err(io("read a pack"))?.len();
    if offset.checked_add(length).is_none_or(|end| end > size) {
        return Err(broken());
    }
    let length = usize::try_from(length).map_err(|_| broken())?;
    files::read_range(file, offset, length, buffer).map_err(io("read a pack"))?.ok_or_else(broken)?;
    if ContentHash::of(buffer) == *digest { Ok(()) } else { Err(broken()) }
}

/// Opens a pack for reading payloads at known places.
pub(super) fn open_pack(directory: &Path, id: u64) -> Result<File> {
    match files::open(&directory.join(file_name(id))) {
        Ok(Found::File(file, _)) => Ok(file),
        Ok(Found::Nothing | Found::Foreign) => Err(damaged(format!("pack {id:016x}"))),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => Err(damaged("packs")),
        Err(error) => Err(io("open a pack")(error)),
    }
}

/// Returns the ids of the packs of a directory, in order. No directory has no packs.
pub(super) fn list(directory: &Path) -> Result<Vec<u64>> {
    let entries = files::list(directory).map_err(io("list packs"))?;
    let mut ids: Vec<u64> = entries.iter().filter_map(|entry| parse_name(entry.file_name().to_str()?)).collect();
    ids.sort_unstable();
    Ok(ids)
}

/// Returns the name of a pack's file.
pub(super) fn file_name(id: u64) -> String {
    format!("{id:016x}.pack")
}

fn parse_name(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(".pack")?;
    let id = u64::from_str_radix(digits, 16).ok()?;
    (file_name(id) == name).then_some(id)
}

fn digest_of(id: u64, index_at: u64, index: &[u8]) -> [u8; 32] {
    let mut record = Canonical::new("pack");
    record.number(id).number(index_at).field(index);
    record.finish()
}

fn number(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(word)
}

fn hash(bytes: &[u8], at: usize) -> ContentHash {
    let mut word = [0; 32];
    word.copy_from_slice(&bytes[at..at + 32]);
    ContentHash(word)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::error::StoreError;
    use super::*;

    fn pack_of(directory: &Path, payloads: &[&[u8]]) -> u64 {
        let mut builder = PackBuilder::create(Part::Pack, directory).expect("created");
        for payload in payloads {
            let hash = ContentHash::of(payload);
            builder.append(hash, hash, payload).expect("appended");
        }
        builder.finish(true).expect("finished").expect("not empty")
    }

    #[test]
    fn objects_come_back() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let id = pack_of(folder.path(), &[b"one", b"", b"three"]);
        assert_eq!(list(folder.path()).expect("listed"), [id]);
        let pack = Pack::open(folder.path(), id).expect("opened");
        let mut found = Vec::new();
        for entry in &pack.entries {
            let mut buffer = Vec::new();
            read_payload(&pack.file, entry.offset, entry.length, &entry.digest, &mut buffer).expect("read");
            assert_eq!(ContentHash::of(&buffer), entry.key);
            found.push(buffer);
        }
        found.sort();
        assert_eq!(found, [b"".to_vec(), b"one".to_vec(), b"three".to_vec()]);
    }

    #[test]
    fn an_unfinished_pack_leaves_nothing() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        drop(PackBuilder::create(Part::Pack, folder.path()).expect("created"));
        assert_eq!(PackBuilder::create(Part::Pack, folder.path()).expect("created").finish(true).expect("finished"), None);
        assert_eq!(fs::read_dir(folder.path()).expect("listed").count(), 0);
    }

    #[test]
    fn every_cut_and_every_flip_is_noticed() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let id = pack_of(folder.path(), &[b"one", b"two"]);
        let path = folder.path().join(file_name(id));
        let whole = fs::read(&path).expect("read");
        let survives = |bytes: &[u8]| {
            fs::write(&path, bytes).expect("written");
            let pack = Pack::open(folder.path(), id)?;
            let mut buffer = Vec::new();
            for entry in &pack.entries {
                read_payload(&pack.file, entry.offset, entry.length, &entry.digest, &mut buffer)?;
            }
            Ok::<_, StoreError>(())
        };
        assert!(survives(&whole).is_ok());
        for cut in 0..whole.len() {
            assert!(matches!(survives(&whole[..cut]), Err(StoreError::Damaged { .. })), "cut at {cut}");
        }
        for flipped in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[flipped] ^= 0x40;
            assert!(matches!(survives(&bytes), Err(StoreError::Damaged { .. })), "flipped at {flipped}");
        }
    }
}
