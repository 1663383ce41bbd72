//! Answers that compare two generations: which files differ, and with what the comparison is.
//!
//! Must not know when a baseline may be used. Invariant: one line a file, its letter first: `A`, `M` or `D`.

use crate::query::response::{Change, Item, Response, Side};

use super::impact::is_sure;
use super::{FAINT, Options, PATH, Page, SURE, UNSURE, clean, counted, grouped};

/// What an answer was compared with, for the line that says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compared<'c> {
    /// Fingerprint of the baseline.
    pub generation: &'c str,
    /// When it was built: RFC 3339; `None` where that is not known.
    pub built_at: Option<&'c str>,
    pub commit: Option<&'c str>,
}

/// Draws the line that says what an answer was compared with:
/// `compared with generation 3f2a9c01d4e5…, built 2026-11-30 07:43:30 UTC at commit c03da214bc89`.
pub fn compared(compared: &Compared<'_>, options: Options) -> String {
    let page = Page { text: String::new(), options };
    let short = |text: &str| text.chars().take(12).collect::<String>();
    let mut line = format!("compared with generation {}…", short(compared.generation));
    if let Some((day, time)) = compared.built_at.and_then(|time| time.split_once('T')) {
        let second: String = time.chars().take(8).collect();
        line.push_str(&format!(", built {day} {second} UTC"));
    }
    if let Some(commit) = compared.commit {
        line.push_str(&format!(" at commit {}", short(commit)));
    }
    format!("{}\n", page.paint(FAINT, &line))
}

impl Page {
    /// Draws who uses what changed: as it is now, and what is gone as it was. What only repeats of the older generation what is told of the
    /// newer one is not shown.
    pub(super) fn impact_changes(&mut self, response: &Response) {
        let of = response.coverage.changed_definitions.unwrap_or_default();
        let counts = [(of.added, "added"), (of.modified, "modified"), (of.deleted, "deleted")];
        let mut counts: Vec<String> = counts
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, word)| format!("{} {word}", counted(count, "definition")))
            .collect();
        if of.module_level > 0 {
            counts.push(format!("{} modified outside of definitions", counted(of.module_level, "file")));
        }
        if counts.is_empty() {
            self.line(format_args!("no definition changed"));
            return;
        }
        self.faint(&counts.join(", "));
        let mentions = response.coverage.unresolved_mentions.unwrap_or(0);
        let mut is_empty = true;
        for (side, word) in [(Side::After, "after"), (Side::Before, "before")] {
            let on_side = |item: &Item| item.generation == Some(side) && !item.repeated;
            let groups = [
                ("certain", self.group(response, |item| on_side(item) && !item.through && is_sure(item))),
                ("possible, through candidates", self.group(response, |item| on_side(item) && !item.through && !is_sure(item))),
                (
                    "weaker, through the class or file around a user, or its importers",
                    self.group(response, |item| on_side(item) && item.through),
                ),
            ];
            for (title, items) in groups.into_iter().filter(|(_, items)| !items.is_empty()) {
                is_empty = false;
                self.faint(&format!("{word}, {title}:"));
                for item in items {
                    let line = self.way(item);
                    self.line(format_args!("  {line}"));
                    if self.options.source {
                        self.body(item, u32::MAX);
                    }
                }
            }
        }
        if is_empty && response.total == 0 {
            let none = if mentions > 0 { "no use of what changed could be bound" } else { "no use found of what changed" };
            self.line(format_args!("{none}"));
        }
        if mentions > 0 {
            self.faint(&format!(
                "{} of the changed names could not be bound: they may mean them or others",
                counted(mentions, "use")
            ));
        }
    }

    /// One line a file, and how many there are of each kind.
    pub(super) fn changes(&mut self, response: &Response) {
        let of = |change: Change| move |item: &&Item| item.change.is_some_and(|found| found.change == change);
        for item in &response.items {
            let Some(found) = item.change else { continue };
            let (letter, style) = match found.change {
                Change::Added => ("A", SURE),
                Change::Modified => ("M", UNSURE),
                Change::Deleted => ("D", FAINT),
            };
            let letter = self.paint(style, letter).to_string();
            let path = self.paint(PATH, &clean(&item.path)).to_string();
            self.line(format_args!("{letter} {path}"));
        }
        let counts: Vec<String> = [(Change::Added, "added"), (Change::Modified, "modified"), (Change::Deleted, "deleted")]
            .into_iter()
            .map(|(change, word)| (response.items.iter().filter(of(change)).count() as u64, word))
            .filter(|(count, _)| *count > 0)
            .map(|(count, word)| format!("{} {word}", grouped(count)))
            .collect();
        if counts.is_empty() && response.total == 0 {
            self.line(format_args!("nothing changed"));
        } else if !counts.is_empty() {
            self.faint(&counts.join(", "));
        }
    }
}
