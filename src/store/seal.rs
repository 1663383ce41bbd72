//! The seal of a generation: digests of every piece of its database, and the packs it needs.
//!
//! Must not know what the database holds. Invariant: a generation is handed out only when each piece matched.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use serde::{Deserialize, Serialize};

use crate::model::ContentHash;

use super::error::{Result, damaged, io};
use super::files::{self, Found};

const TITLE: &str = "sextant seal 1";

/// Size of the pieces that have digests of their own.
const PIECE: usize = 1 << 20;

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Seal {
    /// Size of the database in bytes.
    size: u64,
    pieces: Vec<String>,
    /// The packs that hold its sources, sorted.
    pub packs: Vec<String>,
}

impl Seal {
    /// Seals a database that is written and will not change.
    pub fn make(database: &Path, packs: Vec<String>) -> Result<Self> {
        let Found::File(file, size) = files::open(database).map_err(io("open the new database"))? else {
            return Err(damaged("new database"));
        };
        let pieces = digests(&file, size)?.iter().map(ContentHash::hex).collect();
        Ok(Self { size, pieces, packs })
    }

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

    /// Checks the database against the seal, every byte.
    pub fn check(&self, database: &Path) -> Result<()> {
        let broken = || damaged("database");
        let Found::File(file, size) = files::open(database).map_err(io("open the database"))? else { return Err(broken()) };
        if size != self.size {
            return Err(broken());
        }
        let found = digests(&file, size)?;
        let same = found.len() == self.pieces.len() && found.iter().zip(&self.pieces).all(|(found, piece)| found.hex() == *piece);
        if same { Ok(()) } else { Err(broken()) }
    }
}

/// Hashes the pieces of a file on several threads.
fn digests(file: &File, size: u64) -> Result<Vec<ContentHash>> {
    let count = usize::try_from(size.div_ceil(PIECE as u64)).map_err(|_| damaged("database"))?;
    let next = AtomicUsize::new(0);
    let failed = AtomicBool::new(false);
    let work = || {
        let mut found = Vec::new();
        let mut buffer = vec![0; PIECE];
        loop {
            let piece = next.fetch_add(1, Ordering::Relaxed);
            if piece >= count || failed.load(Ordering::Relaxed) {
                return Ok(found);
            }
            let offset = (piece * PIECE) as u64;
            let length = usize::try_from((size - offset).min(PIECE as u64)).expect("at most a piece");
            if let Err(error) = file.read_exact_at(&mut buffer[..length], offset) {
                failed.store(true, Ordering::Relaxed);
                return Err(error);
            }
            found.push((piece, ContentHash::of(&buffer[..length])));
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get).min(count).max(1);
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
