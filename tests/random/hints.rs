//! A source of hints that loses, doubles, delays and reorders them, and makes some up.
//!
//! Invariant: what it does follows from the dice alone.

use std::collections::VecDeque;
use std::time::Duration;

use sextant::model::RepoPath;
use sextant::watch::{Health, Hint, HintSource};

use super::dice::Dice;
use super::sequence::{Action, Edit};

/// Hints that are still to come.
pub struct Unreliable {
    coming: VecDeque<Hint>,
    dice: Dice,
}

impl Unreliable {
    pub fn new(seed: u64) -> Self {
        Self { coming: VecDeque::new(), dice: Dice::new(seed) }
    }

    /// Takes in what a reliable source would say of an edit.
    pub fn happen(&mut self, edit: &Edit) {
        for action in &edit.actions {
            let paths: Vec<&str> = match action {
                Action::Write(path, _) | Action::Delete(path) => vec![path],
                Action::Move(from, to) => vec![from, to],
                Action::Git(_) => {
                    self.put(Hint::Rescan);
                    continue;
                }
                Action::Restart => continue,
            };
            let named = if self.dice.chance(10) { vec!["never/there.py"] } else { paths };
            let mut named: Vec<RepoPath> = named.into_iter().filter_map(|path| RepoPath::parse(path).ok()).collect();
            named.sort_unstable();
            self.put(Hint::Paths(named));
        }
    }

    fn put(&mut self, hint: Hint) {
        if self.dice.chance(20) {
            return;
        }
        for _ in 0..1 + usize::from(self.dice.chance(20)) {
            let at = if self.dice.chance(30) { self.dice.below(self.coming.len() + 1) } else { self.coming.len() };
            self.coming.insert(at, hint.clone());
        }
    }
}

impl HintSource for Unreliable {
    /// Returns the next hint, unless it is late.
    fn wait(&mut self, _: Duration) -> Option<Hint> {
        if self.dice.chance(15) { None } else { self.coming.pop_front() }
    }

    fn health(&self) -> Health {
        Health::Ok
    }
}
