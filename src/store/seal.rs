//! The seal of a generation: digests of every piece of its database and of what lies over it, and the packs it needs.
//!
//! Must not know what the database holds. Invariant: a generation is handed out only when each piece matched.

use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use crate::model::ContentHash;

use super::error::{Result, damaged, io};
use super::files::{self, Found};
use super::overlay;

const TITLE: &str = "sextant seal 2";

/// Size of the pieces that have digests of their own.
const PIECE: usize = 1 << 20;

/// A file as it was when it was written: its size, and the digests of its pieces.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Sealed {
    size: u64,
    pieces: Vec<String>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Seal {
    pub database: Sealed,
    /// What lies over a database that other generations may share.
    pub overlay: Option<Sealed>,
    /// How many deltas lie over the bulk load, one upon the other.
    pub deltas: u32,
    /// The packs that hold its sources, sorted.
    pub packs: Vec<String>,
}

impl Sealed {
    /// Seals a file that is written and will not change.
    pub fn make(path: &Path) -> Result<Self> {
        Ok(Self::of(path)?.0)
    }

    fn of(path: &Path) -> Result<(Self, File)> {
        let Found::File(file, size) = files::open(path).map_err(io("open the new database"))? else {
            return Err(damaged("new database"));
        };
        let pieces = digests(&file, size)?.iter().map(ContentHash::hex).collect();
        Ok((Self { size, pieces }, file))
    }

    pub fn size(&self) -> u64 {
        self.size
    }

    fn check(&self, file: &File, size: u64) -> Result<()> {
        let broken = || damaged("database");
        if size != self.size {
            return Err(broken());
        }
        let found = digests(file, size)?;
        if self.matches(found.iter().map(ContentHash::hex)) { Ok(()) } else { Err(broken()) }
    }

    /// Checks the bytes of the whole file.
    pub fn check_bytes(&self, bytes: &[u8]) -> Result<()> {
        let found = bytes.chunks(PIECE).map(|piece| ContentHash::of(piece).hex());
        if bytes.len() as u64 == self.size && self.matches(found) { Ok(()) } else { Err(damaged("database")) }
    }

    fn matches(&self, found: impl Iterator<Item = String>) -> bool {
        found.eq(self.pieces.iter().map(String::as_str).map(str::to_owned))
    }
}

impl Seal {
    /// Returns the text that is kept, and its digest.
    pub fn encode(&self) -> (Vec<u8>, ContentHash) {
        let body = serde_json::to_string(self).expect("a seal holds plain values");
        let text = files::enclose(TITLE, &body).into_bytes();
        let digest = ContentHash::of(&text);
        (text, digest)
    }

    /// Reads a seal that must have this digest.
    pub fn read(path: &Path, digest: Option<&ContentHash>) -> Result<Self> {
        let broken = || damaged("seal");
        let bytes = files::read_small(path, 16 << 20, "seal")?.ok_or_else(broken)?;
        if digest.is_some_and(|digest| ContentHash::of(&bytes) != *digest) {
            return Err(broken());
        }
        let body = files::disclose(TITLE, &bytes).ok_or_else(broken)?;
        serde_json::from_str(body).map_err(|_| broken())
    }

    /// Checks the database, and what lies over it, against the seal, every byte. A database that `known` holds open was checked before.
    pub fn check(&self, database: &Path, known: Option<&KnownDatabase>) -> Result<()> {
        let open = |path: &Path| match files::open(path).map_err(io("open the database"))? {
            Found::File(file, size) => Ok((file, size)),
            Found::Nothing | Found::Foreign => Err(damaged("database")),
        };
        let (file, size) = open(database)?;
        if !known.is_some_and(|known| known.is(&file, &self.database)) {
            self.database.check(&file, size)?;
            if let Some(known) = known {
                known.remember(file, &self.database);
            }
        }
        if let Some(overlay) = &self.overlay {
            let (file, size) = open(&overlay::beside(database))?;
            overlay.check(&file, size)?;
        }
        Ok(())
    }
}

/// The database that this process checked last, held open. Generations that share its file need no check of it again, as a generation that
/// is held open needs none.
#[derive(Clone, Debug, Default)]
pub(super) struct KnownDatabase(Arc<Mutex<Option<Known>>>);

#[derive(Debug)]
struct Known {
    /// Keeps the number of the file from being another's.
    _file: File,
    stamp: Stamp,
    sealed: Sealed,
}

/// Device, number, size, and time of the last change of content.
type Stamp = (u64, u64, u64, i64, i64);

fn stamp(file: &File) -> Option<Stamp> {
    let found = file.metadata().ok()?;
    Some((found.dev(), found.ino(), found.size(), found.mtime(), found.mtime_nsec()))
}

impl KnownDatabase {
    fn is(&self, file: &File, sealed: &Sealed) -> bool {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.as_ref().is_some_and(|known| stamp(file) == Some(known.stamp) && known.sealed == *sealed)
    }

    fn remember(&self, file: File, sealed: &Sealed) {
        if let Some(stamp) = stamp(&file) {
            let known = Known { _file: file, stamp, sealed: sealed.clone() };
            *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(known);
        }
    }

    /// Seals a database that is written and will not change, and knows it from then on: its digests are of what was read back.
    pub fn make(&self, database: &Path) -> Result<Sealed> {
        let (sealed, file) = Sealed::of(database)?;
        self.remember(file, &sealed);
        Ok(sealed)
    }

    /// Lets go of the file.
    pub fn forget(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// Hashes the pieces of a file on several threads.
fn digests(file: &File, size: u64) -> Result<Vec<ContentHash>> {
    let count = usize::try_from(size.div_ceil(PIECE as u64)).map_err(|_| damaged("database"))?;
    let next = AtomicUsize::new(0);
    let failed = AtomicBool::new(false);
    let work = || {
        let mut found = Vec::new();
        // Two are hashed in less time than one after the other.
        let mut buffer = vec![0; 2 * PIECE];
        loop {
            let first = next.fetch_add(2, Ordering::Relaxed);
            if first >= count || failed.load(Ordering::Relaxed) {
                return Ok(found);
            }
            let offset = (first * PIECE) as u64;
            let length = usize::try_from((size - offset).min(2 * PIECE as u64)).expect("at most two pieces");
            if let Err(error) = file.read_exact_at(&mut buffer[..length], offset) {
                failed.store(true, Ordering::Relaxed);
                return Err(error);
            }
            let pieces: Vec<&[u8]> = buffer[..length].chunks(PIECE).collect();
            ContentHash::of_each(&pieces, |position, digest| found.push((first + position, digest)));
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get).min(count.div_ceil(2)).max(1);
    let mut found = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
        let mut results = vec![work()];
        results.extend(others.into_iter().map(|other| other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))));
        let mut found = Vec::with_capacity(count);
        for result in results {
            found.extend(result?);
        }
        Ok(found)
    })
    .map_err(|error: std::io::Error| match error.kind() {
        std::io::ErrorKind::UnexpectedEof => damaged("database"),
        _ => io("read the database")(error),
    })?;
    found.sort_unstable_by_key(|(piece, _)| *piece);
    Ok(found.into_iter().map(|(_, digest)| digest).collect())
}
