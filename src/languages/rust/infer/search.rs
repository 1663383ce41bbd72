//! What is asked once: names of modules and of blocks, and where their globs lead.
//!
//! Must not know what a name means. Invariant: each is asked for at most once at a time, what is found on the way round a cycle is kept
//! only until the cycle is closed, and so the work is bounded by what there is to ask.

use std::rc::Rc;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::names::Found;
use super::{Asked, Inference};
use crate::languages::rust::modules::{Module, Part};
use crate::model::Target;

/// How deep names may hang on each other.
const MAX_HEIGHT: usize = 64;

/// A module, as far as what asks may see of it.
pub(super) type Seen = (Module, Part);

/// Where the globs of a module or a block lead.
#[derive(Debug, Default)]
pub(super) struct Globs {
    pub modules: Vec<Module>,
    pub enums: Vec<Target>,
    /// Whether one leads out of the repository.
    pub outside: bool,
}

/// What was found, and the lowest of the open questions that it hangs on; the highest number when on none.
type Known<T> = (T, usize);

/// What is known and what is being asked.
#[derive(Default)]
pub(super) struct Questions {
    names: FxHashMap<Asked, Known<Option<Found>>>,
    globs: FxHashMap<Seen, Known<Rc<Globs>>>,
    /// The height of each open question for a name.
    open: FxHashMap<Asked, usize>,
    height: usize,
    /// The lowest open question that the answer in the making hangs on.
    touched: Option<usize>,
    /// What hangs on open questions, in the order it was found.
    unsure: Vec<Unsure>,
}

enum Unsure {
    Name(Asked),
    Globs(Seen),
}

/// A question that is being answered.
struct Opened {
    height: usize,
    touched: Option<usize>,
    begun: usize,
}

impl Questions {
    fn touch(&mut self, height: usize) {
        if height != usize::MAX {
            self.touched = Some(self.touched.map_or(height, |known| known.min(height)));
        }
    }

    fn begin(&mut self) -> Opened {
        self.height += 1;
        Opened { height: self.height, touched: self.touched.take(), begun: self.unsure.len() }
    }

    /// Forgets what hung on the questions since one was opened.
    fn forget(&mut self, opened: &Opened) {
        for unsure in self.unsure.drain(opened.begun..) {
            match unsure {
                Unsure::Name(asked) => drop(self.names.remove(&asked)),
                Unsure::Globs(seen) => drop(self.globs.remove(&seen)),
            }
        }
    }

    /// Ends a question; returns the lowest of those that its answer hangs on.
    fn end(&mut self, opened: &Opened) -> usize {
        self.height -= 1;
        let lowest = self.touched.filter(|lowest| *lowest < opened.height);
        self.touched = opened.touched;
        match lowest {
            Some(lowest) => {
                self.touch(lowest);
                lowest
            }
            None => {
                self.forget(opened);
                usize::MAX
            }
        }
    }
}

impl Inference<'_> {
    /// Answers a question for a name, unless that is known or being done.
    pub(super) fn once(&mut self, asked: Asked, find: impl FnOnce(&mut Self) -> Option<Found>) -> Option<Found> {
        let questions = &mut self.questions;
        if let Some((known, lowest)) = questions.names.get(&asked) {
            let (known, lowest) = (known.clone(), *lowest);
            questions.touch(lowest);
            return known;
        }
        if let Some(height) = questions.open.get(&asked).copied() {
            questions.touch(height);
            return None;
        }
        if questions.height >= MAX_HEIGHT {
            // Asked from further up there may be an answer.
            questions.touch(1);
            return None;
        }
        let opened = questions.begin();
        questions.open.insert(asked.clone(), opened.height);
        let found = find(self);
        let questions = &mut self.questions;
        questions.open.remove(&asked);
        let lowest = questions.end(&opened);
        questions.names.insert(asked.clone(), (found.clone(), lowest));
        if lowest != usize::MAX {
            questions.unsure.push(Unsure::Name(asked));
        }
        found
    }

    /// Returns where globs lead. Their paths begin with what is there without them, or else with what the others bring.
    pub(super) fn globs(
        &mut self,
        seen: Seen,
        paths: &[Arc<str>],
        follow: &mut dyn FnMut(&mut Self, &str) -> Option<Found>,
    ) -> Rc<Globs> {
        if paths.is_empty() {
            return Rc::default();
        }
        let questions = &mut self.questions;
        if let Some((known, lowest)) = questions.globs.get(&seen) {
            let (known, lowest) = (Rc::clone(known), *lowest);
            questions.touch(lowest);
            return known;
        }
        if questions.height >= MAX_HEIGHT {
            questions.touch(1);
            return Rc::default();
        }
        let opened = questions.begin();
        let mut whole = Globs::default();
        let mut rest: Vec<Arc<str>> = paths.to_vec();
        for _ in 0..2 {
            let before = Globs { modules: whole.modules.clone(), enums: whole.enums.clone(), outside: false };
            self.questions.forget(&opened);
            self.questions.globs.insert(seen.clone(), (Rc::new(before), opened.height));
            rest.retain(|path| match follow(self, path) {
                Some(Found::Items { targets, modules, .. }) => {
                    whole.modules.extend(modules);
                    whole.enums.extend(targets);
                    false
                }
                _ => true,
            });
            if whole.modules.is_empty() || rest.is_empty() {
                break;
            }
        }
        whole.outside = rest.iter().any(|path| matches!(follow(self, path), Some(Found::External(_))));
        whole.modules.sort();
        whole.modules.dedup();
        whole.enums.sort();
        whole.enums.dedup();
        let whole = Rc::new(whole);
        let questions = &mut self.questions;
        let lowest = questions.end(&opened);
        questions.globs.insert(seen.clone(), (Rc::clone(&whole), lowest));
        if lowest != usize::MAX {
            questions.unsure.push(Unsure::Globs(seen));
        }
        whole
    }
}
