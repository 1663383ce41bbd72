//! Which untracked paths Git would ignore: patterns, and the stack of files they come from.
//!
//! Must not know the index or the disk. Invariant: the last pattern that matches decides, deeper files before shallower ones.

use std::sync::Arc;

use gix::bstr::ByteSlice;
use gix::glob::pattern::Case;
use gix::glob::wildmatch;

/// The patterns of one file, in its order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Patterns(Vec<gix::glob::Pattern>);

impl Patterns {
    pub(super) fn parse(text: &[u8]) -> Self {
        Self(gix::ignore::parse(text, false).map(|(pattern, _, _)| pattern).collect())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether `path`, relative to where the patterns stand, is ignored (true), kept (false) or not mentioned.
    fn decide(&self, path: &[u8], directory: bool, case: Case) -> Option<bool> {
        let name_start = path.rfind_byte(b'/').map(|slash| slash + 1);
        self.0
            .iter()
            .rev()
            .find(|pattern| {
                pattern.matches_repo_relative_path(
                    path.as_bstr(),
                    name_start,
                    Some(directory),
                    case,
                    wildmatch::Mode::NO_MATCH_SLASH_LITERAL,
                )
            })
            .map(|pattern| !pattern.is_negative())
    }
}

/// The patterns in force in a directory: those of its own file above those of the directories around it.
#[derive(Debug)]
pub(super) struct Level {
    outer: Option<Arc<Level>>,
    /// Length of the directory's path with its slash, 0 at the root.
    base: usize,
    patterns: Patterns,
}

/// What holds at a place of the walk; cheap to copy.
#[derive(Clone, Debug)]
pub(super) struct Rules {
    innermost: Option<Arc<Level>>,
    case: Case,
    /// Whether any pattern in force takes something back (`!keep.py`).
    keeps: bool,
}

impl Rules {
    /// Starts at the root with patterns that hold everywhere, the weaker first.
    pub(super) fn new(outermost: Vec<Patterns>, ignore_case: bool) -> Self {
        let case = if ignore_case { Case::Fold } else { Case::Sensitive };
        let mut rules = Self { innermost: None, case, keeps: false };
        for patterns in outermost {
            rules = rules.within("", patterns);
        }
        rules
    }

    /// Returns whether these are the very same rules, not only equal ones.
    pub(super) fn is(&self, other: &Self) -> bool {
        let same = match (&self.innermost, &other.innermost) {
            (Some(left), Some(right)) => Arc::ptr_eq(left, right),
            (None, None) => true,
            _ => false,
        };
        same && self.case == other.case
    }

    /// Adds the patterns of a directory's own file.
    pub(super) fn within(&self, directory: &str, patterns: Patterns) -> Self {
        if patterns.is_empty() {
            return self.clone();
        }
        let base = if directory.is_empty() { 0 } else { directory.len() + 1 };
        let keeps = self.keeps || patterns.0.iter().any(gix::glob::Pattern::is_negative);
        let innermost = Some(Arc::new(Level { outer: self.innermost.clone(), base, patterns }));
        Self { innermost, case: self.case, keeps }
    }

    /// Returns whether an untracked path is ignored, given that no directory above it is.
    pub(super) fn ignores(&self, path: &[u8], directory: bool) -> bool {
        self.decide(path, directory) == Some(true)
    }

    /// Returns whether a pattern keeps an untracked path that others would ignore.
    pub(super) fn keeps(&self, path: &[u8], directory: bool) -> bool {
        self.keeps && self.decide(path, directory) == Some(false)
    }

    /// Returns whether [`Self::keeps`] can be true of any path.
    pub(super) fn keep_some(&self) -> bool {
        self.keeps
    }

    fn decide(&self, path: &[u8], directory: bool) -> Option<bool> {
        let mut level = self.innermost.as_deref();
        while let Some(current) = level {
            let decision = current.patterns.decide(&path[current.base..], directory, self.case);
            if decision.is_some() {
                return decision;
            }
            level = current.outer.as_deref();
        }
        None
    }
}
