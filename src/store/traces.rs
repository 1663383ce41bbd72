//! What analysis asked to resolve the generation that serves, kept for the next process as bytes.
//!
//! Must not know what the bytes say. Invariant: they are handed out only whole, and only for the generation and the rules that they were
//! kept for; whatever else stands there is nothing.

use std::io::Write;

use crate::model::{Canonical, ContentHash, GenerationId};

use super::cache::Cache;
use super::durable::{self, Part};
use super::error::{Result, io};
use super::files;
use super::publish::BuildLock;

/// More than this is not kept.
const MAX_BYTES: u64 = 256 << 20;
const DIGEST: usize = 32;

impl Cache {
    /// Returns the traces of a generation that were made by `rules`; `None` when there are none that can be used.
    pub fn traces(&self, of: GenerationId, rules: &ContentHash) -> Option<Vec<u8>> {
        if !files::is_trusted(&self.root, &self.places.directory) {
            return None;
        }
        let mut bytes = files::read_small(&self.places.traces(), MAX_BYTES, "traces").ok()??;
        let digest: [u8; DIGEST] = *bytes.first_chunk()?;
        bytes.drain(..DIGEST);
        (digest_of(of, rules, &bytes) == digest).then_some(bytes)
    }
}

impl BuildLock {
    /// Keeps the traces of a generation in place of those of others. Not forced to the disk: a torn file is none.
    ///
    /// # Errors
    /// When the cache cannot be written, or would be over its limit; what was kept before is of no use then, and costs only space.
    pub fn write_traces(&self, of: GenerationId, rules: &ContentHash, bytes: &[u8]) -> Result<()> {
        let places = &self.cache().places;
        let write = || {
            if bytes.len() as u64 > MAX_BYTES - DIGEST as u64 {
                return durable::remove(Part::Traces, &places.traces());
            }
            let temporary = places.directory.join(format!(".{:016x}.tmp", files::random()?));
            let mut file = durable::create(Part::Traces, &temporary)?;
            let written = file
                .write_all(&digest_of(of, rules, bytes))
                .and_then(|()| file.write_all(bytes))
                .and_then(|()| files::take_place(Part::Traces, &temporary, &places.traces()));
            if written.is_err() {
                let _ = durable::remove(Part::Leftover, &temporary);
            }
            written
        };
        write().map_err(io("write the traces"))
    }
}

fn digest_of(of: GenerationId, rules: &ContentHash, bytes: &[u8]) -> [u8; DIGEST] {
    let mut record = Canonical::new("traces");
    record.field(&of.0).field(&rules.0).field(bytes);
    record.finish()
}
