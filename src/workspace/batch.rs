//! The bytes of some files, read one after the other and hashed together: several hashes at a time take less than one by one.
//!
//! Must not know files. Invariant: what is handed out with a hash are the very bytes that were hashed.

use std::ops::Range;

use crate::model::ContentHash;

/// How many bytes wait for their hashes: little enough to stay near the processor.
const FULL: usize = 256 << 10;

/// Room for one more file of usual size.
const ROOM: usize = 64 << 10;

/// Bytes that wait for their hashes, each text with a `T` that tells whose it is.
pub(super) struct Batch<T> {
    buffer: Vec<u8>,
    filled: usize,
    texts: Vec<(T, Range<usize>)>,
}

impl<T> Batch<T> {
    pub(super) fn new() -> Self {
        Self { buffer: vec![0; FULL + ROOM], filled: 0, texts: Vec::new() }
    }

    /// Returns room for the next text, at least of this size.
    pub(super) fn room(&mut self, size: usize) -> &mut [u8] {
        if self.buffer.len() < self.filled + size {
            self.buffer.resize(self.filled + size, 0);
        }
        &mut self.buffer[self.filled..]
    }

    /// Takes the first `length` bytes of the room as the next text.
    pub(super) fn take(&mut self, whose: T, length: usize) {
        self.texts.push((whose, self.filled..self.filled + length));
        self.filled += length;
    }

    pub(super) fn is_full(&self) -> bool {
        self.filled >= FULL
    }

    /// Calls `hashed` for each text, in the order they were taken, and has room again.
    pub(super) fn hash<E>(&mut self, mut hashed: impl FnMut(T, ContentHash, &[u8]) -> Result<(), E>) -> Result<(), E> {
        let slices: Vec<&[u8]> = self.texts.iter().map(|(_, range)| &self.buffer[range.clone()]).collect();
        let mut hashes = vec![ContentHash([0; 32]); slices.len()];
        ContentHash::of_each(&slices, |position, hash| hashes[position] = hash);
        self.filled = 0;
        for ((whose, range), hash) in self.texts.drain(..).zip(hashes) {
            hashed(whose, hash, &self.buffer[range])?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_text_comes_with_its_own_hash() {
        let mut batch = Batch::new();
        for round in 0..3_u8 {
            let lengths = [0, 7, FULL + 2 * ROOM, 1, 64];
            for (number, length) in lengths.into_iter().enumerate() {
                assert_eq!(batch.is_full(), number > 2, "{number}");
                batch.room(length)[..length].fill(number as u8 + round);
                batch.take(number, length);
            }
            let mut seen = Vec::new();
            let told = batch.hash(|number, hash, bytes| {
                assert_eq!(bytes, vec![number as u8 + round; lengths[number]]);
                assert_eq!(hash, ContentHash::of(bytes));
                seen.push(number);
                if number == 3 { Err("enough") } else { Ok(()) }
            });
            assert_eq!((told, seen.as_slice()), (Err("enough"), &[0, 1, 2, 3][..]));
            assert!(!batch.is_full());
        }
    }
}
