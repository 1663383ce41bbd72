//! How far work is that several threads do, counted by them and read by whoever looks on.
//!
//! Must not know what is counted, nor who looks. Invariant: counting never waits, and never says more than was expected.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts work that is done in one or more passes over the same things.
#[derive(Debug, Default)]
pub struct Headway {
    /// Things done in all passes together.
    done: AtomicU64,
    /// Zero while it is not known.
    total: AtomicU64,
    passes: AtomicU64,
}

impl Headway {
    /// Begins anew with so many things, each of which is to be done so many times.
    pub fn expect(&self, total: u64, passes: u64) {
        self.done.store(0, Ordering::Relaxed);
        self.passes.store(passes.max(1), Ordering::Relaxed);
        self.total.store(total, Ordering::Relaxed);
    }

    /// Says that so many more were done in a pass.
    pub fn add(&self, count: u64) {
        self.done.fetch_add(count, Ordering::Relaxed);
    }

    /// Returns how many things are done, of how many, where that is known.
    pub fn read(&self) -> (u64, Option<u64>) {
        let done = self.done.load(Ordering::Relaxed) / self.passes.load(Ordering::Relaxed).max(1);
        match self.total.load(Ordering::Relaxed) {
            0 => (done, None),
            total => (done.min(total), Some(total)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passes_count_as_one() {
        let headway = Headway::default();
        assert_eq!(headway.read(), (0, None));
        headway.add(2);
        assert_eq!(headway.read(), (2, None));
        headway.expect(4, 3);
        assert_eq!(headway.read(), (0, Some(4)));
        headway.add(7);
        assert_eq!(headway.read(), (2, Some(4)));
        headway.add(70);
        assert_eq!(headway.read(), (4, Some(4)));
    }
}
