//! Makes a story that fails shorter, as long as it still fails.
//!
//! Invariant: what is returned was played and failed.

use super::play::{Difference, play};
use super::sequence::{Action, Sequence};

/// Stories played at most on the way.
const PLAYS: usize = 400;

/// Returns a shorter story that fails as well, and how.
pub fn shrink(sequence: &Sequence, difference: Difference) -> (Sequence, Difference) {
    let mut best = Best { sequence: sequence.clone(), difference, plays: 0 };
    best.sequence.edits.truncate(best.difference.edit);
    loop {
        let before = best.size();
        for index in (0..best.sequence.edits.len()).rev() {
            best.attempt(|story| drop(story.edits.remove(index)));
        }
        for path in best.sequence.files.keys().cloned().collect::<Vec<_>>() {
            best.attempt(|story| drop(story.files.remove(&path)));
        }
        for path in best.sequence.files.keys().cloned().collect::<Vec<_>>() {
            let size = best.sequence.files[&path].len();
            best.thin(size, |story| story.files.get_mut(&path));
        }
        for edit in 0..best.sequence.edits.len() {
            for action in (0..best.sequence.edits[edit].actions.len()).rev() {
                if !best.attempt(|story| drop(story.edits[edit].actions.remove(action)))
                    && let Action::Write(_, bytes) = &best.sequence.edits[edit].actions[action]
                {
                    let size = bytes.len();
                    best.thin(size, |story| match &mut story.edits[edit].actions[action] {
                        Action::Write(_, bytes) => Some(bytes),
                        _ => None,
                    });
                }
            }
        }
        if best.size() == before || best.plays >= PLAYS {
            return (best.sequence, best.difference);
        }
    }
}

struct Best {
    sequence: Sequence,
    difference: Difference,
    plays: usize,
}

impl Best {
    fn size(&self) -> usize {
        self.sequence.tell().len()
    }

    /// Plays the story with a part left out, and keeps it so if it still fails. A part that is not there any more is left out already.
    fn attempt(&mut self, change: impl FnOnce(&mut Sequence)) -> bool {
        if self.plays >= PLAYS {
            return false;
        }
        let mut story = self.sequence.clone();
        change(&mut story);
        self.plays += 1;
        match play(&story) {
            Err(difference) => {
                story.edits.truncate(difference.edit);
                self.sequence = story;
                self.difference = difference;
                true
            }
            Ok(_) => false,
        }
    }

    /// Leaves out lines of one file's text, many at once first.
    fn thin(&mut self, size: usize, text: impl Fn(&mut Sequence) -> Option<&mut Vec<u8>>) {
        let mut step = size.min(16);
        while step > 0 {
            let mut at = 0;
            while let Some(bytes) = text(&mut self.sequence.clone()).cloned() {
                let lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
                if at >= lines.len() || self.plays >= PLAYS {
                    break;
                }
                let kept: Vec<u8> = [&lines[..at], &lines[lines.len().min(at + step)..]].concat().concat();
                let shorter = self.attempt(|story| {
                    if let Some(bytes) = text(story) {
                        *bytes = kept;
                    }
                });
                if !shorter {
                    at += step;
                }
            }
            step /= 2;
        }
    }
}
