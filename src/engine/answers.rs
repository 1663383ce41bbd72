//! Answers that were given from the generation that serves, for who asks the same again: an answer follows from the generation and the
//! request alone.
//!
//! Must not know what an answer says, nor stand for any check of the worktree. Invariant: what it holds was made from one generation, and
//! goes when another one serves; it never holds more bytes than it may.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::model::GenerationId;

/// What each entry costs beside its texts, about.
const ENTRY: usize = 128;

/// Remembers answers of one generation, up to a number of bytes.
#[derive(Debug)]
pub(super) struct Answers {
    most: usize,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    of: Option<GenerationId>,
    found: HashMap<Arc<str>, Arc<str>>,
    /// The questions, those first that were asked first.
    order: VecDeque<Arc<str>>,
    bytes: usize,
}

impl Answers {
    pub fn new(most: usize) -> Self {
        Self { most, kept: Mutex::default() }
    }

    /// Begins with nothing when another generation serves than before.
    pub fn follow(&self, serving: GenerationId) {
        let mut kept = self.kept();
        if kept.of != Some(serving) {
            *kept = Kept { of: Some(serving), ..Kept::default() };
        }
    }

    /// Lets go of everything.
    pub fn forget(&self) {
        *self.kept() = Kept::default();
    }

    /// Returns what was answered to a question from this generation.
    pub fn find(&self, generation: GenerationId, question: &str) -> Option<Arc<str>> {
        let kept = self.kept();
        kept.found.get(question).filter(|_| kept.of == Some(generation)).map(Arc::clone)
    }

    /// Remembers an answer, if the generation it was made from still serves. The oldest ones make room for it.
    pub fn keep(&self, generation: GenerationId, question: &str, answer: &Arc<str>) {
        let cost = |question: &str, answer: &str| question.len() + answer.len() + ENTRY;
        let needed = cost(question, answer);
        let mut kept = self.kept();
        if kept.of != Some(generation) || needed > self.most || kept.found.contains_key(question) {
            return;
        }
        while kept.bytes + needed > self.most {
            let Some(oldest) = kept.order.pop_front() else { break };
            if let Some(gone) = kept.found.remove(&oldest) {
                kept.bytes -= cost(&oldest, &gone);
            }
        }
        let question: Arc<str> = Arc::from(question);
        kept.order.push_back(Arc::clone(&question));
        kept.found.insert(question, Arc::clone(answer));
        kept.bytes += needed;
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        // Each change of it is whole.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: GenerationId = GenerationId([1; 16]);
    const OTHER: GenerationId = GenerationId([2; 16]);

    fn keep(answers: &Answers, generation: GenerationId, question: &str, answer: &str) {
        answers.keep(generation, question, &Arc::from(answer));
    }

    fn find(answers: &Answers, generation: GenerationId, question: &str) -> Option<String> {
        answers.find(generation, question).map(|answer| answer.to_string())
    }

    #[test]
    fn a_remembered_answer_dies_with_its_generation() {
        let answers = Answers::new(1 << 20);
        keep(&answers, ONE, "a", "too early");
        assert_eq!(find(&answers, ONE, "a"), None, "it is not known to serve");
        answers.follow(ONE);
        keep(&answers, ONE, "a", "first");
        answers.follow(ONE);
        assert_eq!(find(&answers, ONE, "a").as_deref(), Some("first"));
        assert_eq!([find(&answers, OTHER, "a"), find(&answers, ONE, "b")], [None, None]);
        answers.follow(OTHER);
        assert_eq!([find(&answers, ONE, "a"), find(&answers, OTHER, "a")], [None, None]);
        // Whoever was under way with the one before.
        keep(&answers, ONE, "a", "first");
        assert_eq!([find(&answers, ONE, "a"), find(&answers, OTHER, "a")], [None, None]);
        keep(&answers, OTHER, "a", "second");
        assert_eq!(find(&answers, OTHER, "a").as_deref(), Some("second"));
        answers.forget();
        assert_eq!(find(&answers, OTHER, "a"), None);
    }

    #[test]
    fn no_more_is_remembered_than_there_is_room_for() {
        let answers = Answers::new(4 * (ENTRY + 101));
        answers.follow(ONE);
        let long = "x".repeat(100);
        for question in ["a", "b", "c", "d", "e", "e"] {
            keep(&answers, ONE, question, &long);
        }
        let held = || ["a", "b", "c", "d", "e"].map(|question| find(&answers, ONE, question).is_some());
        assert_eq!(held(), [false, true, true, true, true]);
        keep(&answers, ONE, "f", &"x".repeat(1000));
        assert_eq!(held(), [false, true, true, true, true], "what is larger than all the room is not taken");
        assert!(answers.kept().bytes <= answers.most);
    }
}
