//! The languages that stories are told in: for each, where its files lie, which files configure it, and what can be said in it.
//!
//! Must not know a story. Invariant: the same throws give the same text.

use super::dice::Dice;
use super::{ecmascript, go, python};

/// Makes up text for the file at a path.
pub type Say = fn(&mut Dice, &str) -> String;

/// One language, or a family of languages whose files meet.
#[derive(Debug)]
pub struct Speech {
    pub name: &'static str,
    pub suffixes: &'static [&'static str],
    pub paths: &'static [&'static str],
    /// Files that say something by being there, each with the texts it may have.
    pub configuration: &'static [(&'static str, &'static [&'static str])],
    /// Whether little is bound without such files.
    pub relies_on_configuration: bool,
    /// Folders that become others.
    pub folders: &'static [(&'static str, &'static str)],
    /// What a new file begins with, if it must begin with something.
    pub head: Option<Say>,
    pub block: Say,
    pub import: Say,
    /// What a file says of the names it gives to others.
    pub exports: Say,
    /// How such a block begins, of which a file has one mostly.
    pub exports_begin: &'static str,
    pub class: Say,
    pub class_begin: &'static str,
    pub rebinding: Say,
    pub conditional: Say,
    /// Text that is not of the language.
    pub broken: Say,
    pub expression: fn(&mut Dice) -> String,
    /// A name to take away or to put in its place.
    pub name_of: fn(&mut Dice) -> &'static str,
    pub comment: &'static str,
    /// Returns another path for a file, where the language has two for one module.
    pub twin: fn(&str) -> Option<String>,
    /// Where a block stands in its file: those with smaller numbers first.
    pub rank: fn(&str) -> usize,
}

/// Every language of the stories; a story has one of them, or all.
pub const SPEECHES: &[&Speech] = &[&python::PYTHON, &ecmascript::ECMASCRIPT, &go::GO];

/// The name of the stories in which all languages meet.
pub const MIXED: &str = "mixed";

/// Returns the languages of a kind of story.
pub fn cast(name: &str) -> Option<&'static [&'static Speech]> {
    if name == MIXED {
        return Some(SPEECHES);
    }
    let at = SPEECHES.iter().position(|speech| speech.name == name)?;
    Some(&SPEECHES[at..=at])
}

/// Returns the kinds of stories in turn, each language by itself and then all of them.
pub fn name_of_cast(number: u64) -> &'static str {
    let turn = usize::try_from(number % (SPEECHES.len() as u64 + 1)).expect("a small number");
    SPEECHES.get(turn).map_or(MIXED, |speech| speech.name)
}

impl Speech {
    /// Returns the block with one of its names replaced by another, everywhere in it.
    pub fn renamed(&self, dice: &mut Dice, block: &str) -> String {
        let (from, to) = ((self.name_of)(dice), (self.name_of)(dice));
        let mut out = String::with_capacity(block.len());
        let mut word = String::new();
        for character in block.chars().chain(['\0']) {
            if character.is_alphanumeric() || character == '_' {
                word.push(character);
                continue;
            }
            out.push_str(if word == from { to } else { &word });
            word.clear();
            if character != '\0' {
                out.push(character);
            }
        }
        out
    }

    /// Returns the block with its last indented line made anew, which for a definition is a line of its body.
    pub fn with_other_body(&self, dice: &mut Dice, block: &str) -> String {
        let mut lines: Vec<&str> = block.trim_end_matches('\n').split('\n').collect();
        match lines.iter().rposition(|line| line.starts_with(' ')) {
            Some(at) => {
                let indent = &lines[at][..lines[at].len() - lines[at].trim_start().len()];
                let made = format!("{indent}{}", (self.expression)(dice));
                lines[at] = &made;
                lines.join("\n") + "\n"
            }
            None => format!("{}  {} {}\n", block.trim_end_matches('\n'), self.comment, dice.below(1000)),
        }
    }

    pub fn speaks(&self, path: &str) -> bool {
        self.suffixes.iter().any(|suffix| path.ends_with(suffix))
    }
}

/// Returns the lines indented by one step.
pub fn indented(lines: &[String]) -> String {
    lines.iter().flat_map(|text| text.lines()).map(|line| format!("    {line}\n")).collect()
}
