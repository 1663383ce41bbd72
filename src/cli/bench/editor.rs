//! The hand that edits a tree while it is asked about, and the memory of what it did.
//!
//! Must not know who asks. Invariant: a file has at any moment one of the contents that are noted for that moment.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use crate::model::ContentHash;

use super::edit;

/// Numbers that look random and are the same for each seed.
pub struct Dice(pub u64);

impl Dice {
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % bound.max(1)
    }
}

/// The versions of each file that was ever edited: from when on each may have been on the disk. `None` is no file.
#[derive(Default)]
pub struct Past(Mutex<BTreeMap<String, Vec<Version>>>);

struct Version {
    hash: Option<String>,
    /// Before the change, and after it.
    since: [Instant; 2],
}

impl Past {
    pub fn note(&self, path: &str, hash: Option<String>, since: [Instant; 2]) {
        let mut past = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        past.entry(path.to_owned()).or_default().push(Version { hash, since });
    }

    /// Returns whether a file may have had this content, or not have been there, at some moment of a span.
    pub fn allows(&self, path: &str, hash: Option<&str>, [asked, answered]: [Instant; 2]) -> bool {
        let past = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(versions) = past.get(path) else { return true };
        (0..versions.len()).any(|at| {
            let gone = versions.get(at + 1).map(|next| next.since[1]);
            versions[at].hash.as_deref() == hash && versions[at].since[0] <= answered && gone.is_none_or(|gone| gone >= asked)
        })
    }
}

impl Past {
    /// Returns which of the files that an answer tells of was not so at any moment of a span.
    pub fn contradicts(&self, told: &[(String, String)], span: [Instant; 2]) -> Option<String> {
        let (path, hash) = told.iter().find(|(path, hash)| !self.allows(path, Some(hash), span))?;
        Some(format!("`{path}` was not {hash} at any moment between question and answer"))
    }
}

/// The hand that edits.
pub struct Editor<'a> {
    root: PathBuf,
    /// Files by path, with the text that they had first.
    pub files: Vec<(String, String)>,
    /// What stands at each path now, by its number in `files`.
    present: BTreeMap<String, usize>,
    past: &'a Past,
    pub dice: Dice,
    pub edits: u64,
}

impl<'a> Editor<'a> {
    /// Returns one for the files below a root, which are as they are now, and notes that.
    ///
    /// # Errors
    /// When they cannot be read, or none can be edited.
    pub fn new(root: PathBuf, past: &'a Past, seed: u64) -> io::Result<Self> {
        let begun = Instant::now();
        let mut files = Vec::new();
        for suffix in ["py", "go", "rs", "ts", "js"] {
            files.extend(edit::spread(&root, suffix, 40, true)?);
        }
        if files.is_empty() {
            return Err(io::Error::other("no source file has a body to edit"));
        }
        for (path, text) in &files {
            past.note(path, Some(ContentHash::of(text.as_bytes()).hex()), [begun, begun]);
        }
        let present = files.iter().enumerate().map(|(number, (path, _))| (path.clone(), number)).collect();
        Ok(Self { root, files, present, past, dice: Dice(seed | 1), edits: 0 })
    }

    /// Edits, makes, moves or removes a file.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn edit(&mut self) -> io::Result<()> {
        self.edits += 1;
        let paths: Vec<String> = self.present.keys().cloned().collect();
        let path = paths[self.dice.below(paths.len())].clone();
        let number = self.present[&path];
        let original = self.files[number].1.clone();
        let run = self.edits as usize;
        match self.dice.below(12) {
            0..=4 => self.write(&path, number, &edit::with_moved_body(&path, &original, run).unwrap_or(original)),
            5..=6 => self.write(&path, number, &edit::with_export(&path, &original, run).unwrap_or(original)),
            7 => self.write(&path, number, &original),
            8 if paths.len() * 2 > self.files.len() => self.remove(&path),
            9 => {
                let beside = self.beside(&path, "copy");
                self.write(&beside, number, &original)
            }
            10 => {
                let beside = self.beside(&path, "moved");
                self.rename(&path, &beside, number)
            }
            _ => {
                let number = self.dice.below(self.files.len());
                let (path, text) = self.files[number].clone();
                self.write(&path, number, &text)
            }
        }
    }

    fn beside(&self, path: &str, what: &str) -> String {
        let (stem, suffix) = path.rsplit_once('.').unwrap_or((path, ""));
        format!("{}_{what}_{}.{suffix}", stem.split("_moved_").next().unwrap_or(stem), self.edits % 5)
    }

    /// Replaces a file, so that it is whole at any moment.
    fn write(&mut self, path: &str, number: usize, text: &str) -> io::Result<()> {
        let target = self.root.join(path);
        let temporary = target.with_file_name(".soak-is-writing");
        fs::write(&temporary, text)?;
        let before = Instant::now();
        fs::rename(temporary, target)?;
        self.past.note(path, Some(ContentHash::of(text.as_bytes()).hex()), [before, Instant::now()]);
        self.present.insert(path.to_owned(), number);
        Ok(())
    }

    fn remove(&mut self, path: &str) -> io::Result<()> {
        let before = Instant::now();
        fs::remove_file(self.root.join(path))?;
        self.past.note(path, None, [before, Instant::now()]);
        self.present.remove(path);
        Ok(())
    }

    fn rename(&mut self, from: &str, to: &str, number: usize) -> io::Result<()> {
        if from == to {
            return Ok(());
        }
        let text = fs::read(self.root.join(from))?;
        let before = Instant::now();
        fs::rename(self.root.join(from), self.root.join(to))?;
        let after = Instant::now();
        self.past.note(from, None, [before, after]);
        self.past.note(to, Some(ContentHash::of(&text).hex()), [before, after]);
        self.present.remove(from);
        self.present.insert(to.to_owned(), number);
        Ok(())
    }
}

/// Returns what an answer says of a file that was not so at any moment of a span.
pub fn impossible(answer: &str, past: &Past, span: [Instant; 2]) -> Option<String> {
    past.contradicts(&files_told_of(&serde_json::from_str(answer).ok()?), span)
}

/// Returns the files that an answer tells of, with the digest that it gives for each.
pub fn files_told_of(answer: &serde_json::Value) -> Vec<(String, String)> {
    let (mut open, mut files) = (vec![answer], Vec::new());
    while let Some(value) = open.pop() {
        match value {
            serde_json::Value::Array(values) => open.extend(values),
            serde_json::Value::Object(fields) => {
                if let (Some(path), Some(hash)) = (fields.get("path"), fields.get("file_sha256"))
                    && let (Some(path), Some(hash)) = (path.as_str(), hash.as_str())
                {
                    files.push((path.to_owned(), hash.to_owned()));
                }
                open.extend(fields.values());
            }
            _ => {}
        }
    }
    files.sort();
    files.dedup();
    files
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn an_answer_is_possible_while_its_file_was_so() {
        let past = Past::default();
        let at = |seconds: u64| -> Instant { *START.get_or_init(Instant::now) + Duration::from_secs(seconds) };
        static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
        past.note("a.py", Some("one".to_owned()), [at(0), at(0)]);
        past.note("a.py", Some("two".to_owned()), [at(10), at(12)]);
        past.note("a.py", None, [at(20), at(22)]);
        let check = |hash: &str, span: [u64; 2], possible: bool| {
            let answer = format!(r#"{{"items":[{{"path":"a.py","file_sha256":"{hash}"}},{{"path":"b.py","file_sha256":"x"}}]}}"#);
            assert_eq!(impossible(&answer, &past, span.map(at)).is_none(), possible, "{hash} in {span:?}");
        };
        check("one", [5, 6], true);
        check("one", [11, 13], true);
        check("one", [13, 14], false);
        check("two", [5, 9], false);
        check("two", [5, 11], true);
        check("two", [21, 30], true);
        check("two", [23, 30], false);
        check("three", [0, 30], false);
    }
}
