//! Moments of a scan at which a test may change the tree, so that races are told as stories. No part of any build but for unit tests.
//!
//! Must not know what a test does there. Invariant: a hook belongs to one thread; a scan of fewer files than a thread takes at once stays
//! on the thread that called it.

use std::cell::RefCell;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    /// The state of Git was read, and no directory yet.
    GitRead,
    /// The paths are known, and none is open yet.
    Listed,
    /// A file is open and its size is known, and no byte was read.
    Opened,
    /// The bytes of a file were read, and nothing was done with them.
    Read,
}

type Hook = Box<dyn FnMut(Moment, &str)>;

thread_local! {
    static HOOK: RefCell<Option<Hook>> = const { RefCell::new(None) };
}

/// Calls `hook` at each moment of the scans of `run`, with the path of the file where there is one.
pub(crate) fn during<R>(hook: impl FnMut(Moment, &str) + 'static, run: impl FnOnce() -> R) -> R {
    HOOK.with_borrow_mut(|slot| *slot = Some(Box::new(hook)));
    let result = run();
    HOOK.with_borrow_mut(|slot| *slot = None);
    result
}

pub(super) fn pass(moment: Moment, path: &str) {
    // Taken out meanwhile: what a hook does may scan as well.
    if let Some(mut hook) = HOOK.with_borrow_mut(Option::take) {
        hook(moment, path);
        HOOK.with_borrow_mut(|slot| *slot = Some(hook));
    }
}
