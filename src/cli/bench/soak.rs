//! Random edits under load, for as long as one likes: many clients ask one daemon while files are edited, made, moved and removed.
//!
//! Every answer under load is held against what was on the disk while it was made: a file may be told of only as it was at some moment
//! between question and answer. When edits rest, every question is asked of the daemon and of a fresh process with a cache of its own, and
//! both have to say the same to the last byte, but for the time of the check.
//!
//! Must not touch any tree but its copy. Invariant: what an answer is compared with was never made by the daemon.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::model::ContentHash;
use crate::render::text::grouped;
use crate::server::daemon::protocol::{Reply, Text};

use super::edit;
use super::scratch::{Bench, Scratch, copy_tree, remove};
use super::usage::measure;
use super::warm::{LIMIT, Warm};

/// How long edits and questions go on between two comparisons.
const LOAD: Duration = Duration::from_secs(5);
/// After so many comparisons the fresh process begins without a cache.
const CLEAN: u64 = 10;
/// Most that is said of wrong answers.
const MOST_SAID: usize = 10;

/// What is done.
pub struct Plan<'a> {
    /// The tree; a copy of it is edited.
    pub root: &'a Path,
    pub time: Duration,
    pub clients: usize,
    /// Which check the daemon makes.
    pub check: &'a str,
    pub seed: u64,
}

/// What came of it.
#[derive(Debug, Default)]
pub struct Soaked {
    pub report: String,
    pub wrong: usize,
}

/// Numbers that look random and are the same for each seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % bound.max(1)
    }
}

/// The versions of each file that was ever edited: from when on each may have been on the disk. `None` is no file.
#[derive(Default)]
struct Past(Mutex<BTreeMap<String, Vec<Version>>>);

struct Version {
    hash: Option<String>,
    /// Before the change, and after it.
    since: [Instant; 2],
}

impl Past {
    fn note(&self, path: &str, hash: Option<String>, since: [Instant; 2]) {
        let mut past = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        past.entry(path.to_owned()).or_default().push(Version { hash, since });
    }

    /// Returns whether a file may have had this content, or not have been there, at some moment of a span.
    fn allows(&self, path: &str, hash: Option<&str>, [asked, answered]: [Instant; 2]) -> bool {
        let past = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(versions) = past.get(path) else { return true };
        (0..versions.len()).any(|at| {
            let gone = versions.get(at + 1).map(|next| next.since[1]);
            versions[at].hash.as_deref() == hash && versions[at].since[0] <= answered && gone.is_none_or(|gone| gone >= asked)
        })
    }
}

/// The hand that edits.
struct Editor<'a> {
    root: PathBuf,
    /// Files by path, with the text that they had first.
    files: Vec<(String, String)>,
    /// What stands at each path now, by its number in `files`.
    present: BTreeMap<String, usize>,
    past: &'a Past,
    dice: Dice,
    edits: u64,
}

impl Editor<'_> {
    fn edit(&mut self) -> io::Result<()> {
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

/// What a command came to: how it ended, and what it wrote, but for the times in it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Said {
    status: u8,
    out: String,
}

impl Said {
    fn new(status: u8, out: &str) -> Self {
        let out = match serde_json::from_str::<serde_json::Value>(out) {
            Ok(mut answer) => {
                if let Some(answer) = answer.as_object_mut() {
                    answer.remove("checked_at");
                }
                answer.to_string()
            }
            Err(_) => out.to_owned(),
        };
        Self { status, out }
    }
}

impl Plan<'_> {
    /// Runs for the time that is asked for.
    ///
    /// # Errors
    /// When the tree cannot be read or edited, or a process cannot be started; a wrong answer is no error.
    pub fn run(&self) -> io::Result<Soaked> {
        let scratch = Scratch::new()?;
        let tree = scratch.path("tree");
        copy_tree(self.root, &tree)?;
        let daemon_place = Bench::new(&scratch, "daemon", &tree, self.check)?;
        let fresh_place = Bench::new(&scratch, "fresh", &tree, "full")?;
        let mut files = Vec::new();
        for suffix in ["py", "go", "rs", "ts", "js"] {
            files.extend(edit::spread(&tree, suffix, 40, true)?);
        }
        if files.is_empty() {
            return Err(io::Error::other("no source file has a body to edit"));
        }
        for place in [&daemon_place, &fresh_place] {
            measure(&mut place.command(["index", "--quiet"])?)?;
        }
        let past = Past::default();
        let begun = Instant::now();
        for (path, text) in &files {
            past.note(path, Some(ContentHash::of(text.as_bytes()).hex()), [begun, begun]);
        }
        let present = files.iter().enumerate().map(|(number, (path, _))| (path.clone(), number)).collect();
        let mut editor = Editor { root: tree, files, present, past: &past, dice: Dice(self.seed | 1), edits: 0 };
        let warm = Warm::start(&daemon_place)?;
        let questions = questions(&warm, &editor.files)?;

        let mut wrong: Vec<String> = Vec::new();
        let (mut answers, mut refused, mut compared, mut rounds) = (0, 0, 0, 0);
        let mut memory: Vec<[u64; 3]> = Vec::new();
        while begun.elapsed() < self.time {
            rounds += 1;
            let load = self.load(&warm, &questions, &past, &mut editor, rounds)?;
            answers += load.answers;
            refused += load.refused;
            wrong.extend(load.wrong);
            if rounds.is_multiple_of(CLEAN) {
                remove(&fresh_place.cache)?;
                measure(&mut fresh_place.command(["index", "--quiet"])?)?;
            }
            let found = self.compare(&warm, &fresh_place, &questions)?;
            compared += questions.len();
            wrong.extend(found);
            memory.push(warm.memory());
        }
        Ok(self.report(&wrong, answers, refused, compared, rounds, editor.edits, &memory))
    }

    /// Edits and asks at once, for a while.
    fn load(&self, warm: &Warm, questions: &[Vec<String>], past: &Past, editor: &mut Editor<'_>, round: u64) -> io::Result<Load> {
        let stop = AtomicBool::new(false);
        let (answers, refused) = (AtomicU64::new(0), AtomicU64::new(0));
        let wrong = Mutex::new(Vec::new());
        let edited = std::thread::scope(|scope| {
            let clients: Vec<_> = (0..self.clients)
                .map(|number| {
                    let (stop, answers, refused, wrong) = (&stop, &answers, &refused, &wrong);
                    let mut dice = Dice((self.seed ^ (round << 8 | number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)) | 1);
                    scope.spawn(move || -> io::Result<()> {
                        let client = warm.client()?;
                        while !stop.load(Ordering::Relaxed) {
                            let words: Vec<&str> = questions[dice.below(questions.len())].iter().map(String::as_str).collect();
                            let asked = Instant::now();
                            let ran = client.run(warm.call(&words), LIMIT).map_err(io::Error::other)?;
                            let span = [asked, Instant::now()];
                            let (out, err) = texts(&ran.said);
                            if ran.status > 1 {
                                refused.fetch_add(1, Ordering::Relaxed);
                                // A tree that does not rest may be refused, and what was not there; nothing else may be.
                                let busy = ["workspace_busy", "code_changed"].iter().any(|code| err.contains(code));
                                let missing = err.contains("code_target_missing") && past.allows(words[1], None, span);
                                if !busy && !missing {
                                    wrong.lock().unwrap_or_else(PoisonError::into_inner).push(format!("{words:?} failed: {err}"));
                                }
                                continue;
                            }
                            answers.fetch_add(1, Ordering::Relaxed);
                            if let Some(what) = impossible(&out, past, span) {
                                wrong.lock().unwrap_or_else(PoisonError::into_inner).push(format!("{words:?}: {what}"));
                            }
                        }
                        Ok(())
                    })
                })
                .collect();
            let begun = Instant::now();
            let mut edited = Ok(());
            while edited.is_ok() && begun.elapsed() < LOAD {
                edited = editor.edit();
                // In bursts, as tools edit, and with rests in which an answer has room.
                let most = if editor.dice.below(4) > 0 { 20 } else { 1_500 };
                let pause = editor.dice.below(most) as u64;
                std::thread::sleep(Duration::from_millis(pause));
            }
            stop.store(true, Ordering::Relaxed);
            for client in clients {
                edited = edited.and(client.join().unwrap_or_else(|_| Err(io::Error::other("a client died"))));
            }
            edited
        });
        edited?;
        let wrong = wrong.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok(Load { answers: answers.into_inner(), refused: refused.into_inner(), wrong })
    }

    /// Asks everything of the daemon, by all clients at once, and of fresh processes. Returns what differs.
    fn compare(&self, warm: &Warm, fresh: &Bench, questions: &[Vec<String>]) -> io::Result<Vec<String>> {
        let share = questions.len().div_ceil(self.clients);
        let from_daemon: Vec<io::Result<Vec<Said>>> = std::thread::scope(|scope| {
            let clients: Vec<_> = questions
                .chunks(share)
                .map(|some| {
                    scope.spawn(move || {
                        let client = warm.client()?;
                        let ask = |words: &Vec<String>| {
                            let words: Vec<&str> = words.iter().map(String::as_str).collect();
                            let ran = client.run(warm.call(&words), LIMIT).map_err(io::Error::other)?;
                            Ok(Said::new(ran.status, &texts(&ran.said).0))
                        };
                        some.iter().map(ask).collect()
                    })
                })
                .collect();
            clients.into_iter().map(|client| client.join().unwrap_or_else(|_| Err(io::Error::other("a client died")))).collect()
        });
        let mut differing = Vec::new();
        let mut said = from_daemon.into_iter().collect::<io::Result<Vec<_>>>()?.into_iter().flatten();
        for words in questions {
            let output = fresh.command(words)?.output()?;
            let status = output.status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX);
            let expected = Said::new(status, &String::from_utf8_lossy(&output.stdout));
            let found = said.next().ok_or_else(|| io::Error::other("an answer is missing"))?;
            if found != expected {
                differing.push(format!("{words:?}: the daemon said {found:?}, a fresh process {expected:?}"));
            }
        }
        Ok(differing)
    }

    #[allow(clippy::too_many_arguments, reason = "all of them are numbers of one sentence")]
    fn report(
        &self,
        wrong: &[String],
        answers: u64,
        refused: u64,
        compared: usize,
        rounds: u64,
        edits: u64,
        memory: &[[u64; 3]],
    ) -> Soaked {
        let mut report = format!(
            "{} s, {} clients, check `{}`, seed {}\n- {} edits; {} answers under load, {} refused, since the tree did not rest or what was asked about was gone\n\
             - {} answers at rest in {rounds} rounds, each compared with a fresh process's\n- wrong answers: {}\n",
            self.time.as_secs(),
            self.clients,
            self.check,
            self.seed,
            grouped(edits),
            grouped(answers),
            grouped(refused),
            grouped(compared as u64),
            wrong.len()
        );
        for what in wrong.iter().take(MOST_SAID) {
            report.push_str(&format!("  - {}\n", what.chars().take(2_000).collect::<String>()));
        }
        let third = |from: usize| {
            let some = &memory[memory.len() * from / 3..(memory.len() * (from + 1) / 3).max(memory.len() * from / 3)];
            (some.iter().map(|[_, all, _]| all).sum::<u64>() / (some.len().max(1) as u64)) >> 20
        };
        if let Some([_, _, peak]) = memory.last() {
            report.push_str(&format!(
                "- memory with parsers, means of the three thirds of the time: {}, {}, {} MiB; {} MiB at most\n",
                third(0),
                third(1),
                third(2),
                peak >> 20
            ));
        }
        Soaked { report, wrong: wrong.len() }
    }
}

/// What came of a time under load.
struct Load {
    answers: u64,
    refused: u64,
    wrong: Vec<String>,
}

fn texts(said: &[Reply]) -> (String, String) {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    for reply in said {
        match reply {
            Reply::Out(Text(piece)) => out.extend_from_slice(piece),
            Reply::Err(Text(piece)) => err.extend_from_slice(piece),
            Reply::Alive {} | Reply::Exit { .. } => {}
        }
    }
    (String::from_utf8_lossy(&out).into_owned(), String::from_utf8_lossy(&err).into_owned())
}

/// Returns what an answer says of a file that was not so at any moment of a span.
fn impossible(answer: &str, past: &Past, span: [Instant; 2]) -> Option<String> {
    let answer: serde_json::Value = serde_json::from_str(answer).ok()?;
    let mut open = vec![&answer];
    while let Some(value) = open.pop() {
        match value {
            serde_json::Value::Array(values) => open.extend(values),
            serde_json::Value::Object(fields) => {
                if let (Some(path), Some(hash)) = (fields.get("path"), fields.get("file_sha256"))
                    && let (Some(path), Some(hash)) = (path.as_str(), hash.as_str())
                    && !past.allows(path, Some(hash), span)
                {
                    return Some(format!("`{path}` was not {hash} at any moment between question and answer"));
                }
                open.extend(fields.values());
            }
            _ => {}
        }
    }
    None
}

/// Returns command lines that ask about the files that are edited.
fn questions(warm: &Warm, files: &[(String, String)]) -> io::Result<Vec<Vec<String>>> {
    let line = |words: &[&str]| words.iter().chain(&["--json"]).map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let mut found = vec![line(&["map", "--depth", "2"]), line(&["explore", "exported"])];
    for (path, _) in files.iter().step_by((files.len() / 8).max(1)).take(8) {
        let stem = path.rsplit('/').next().and_then(|name| name.split('.').next()).unwrap_or_default();
        found.extend([line(&["symbols", stem]), line(&["explore", &format!("{stem} return value")]), line(&["tests", path])]);
        let (_, map) = warm.run(&["map", path, "--depth", "5", "--limit", "50", "--json"])?;
        let map: serde_json::Value = serde_json::from_str(&map).map_err(io::Error::other)?;
        let items = map["items"].as_array().map(Vec::as_slice).unwrap_or_default();
        let functions = items.iter().filter(|item| matches!(item["kind"].as_str(), Some("function" | "method" | "class")));
        for name in functions.filter_map(|item| item["qualified_name"].as_str()).take(2) {
            let symbol = format!("{path}::{name}");
            found.extend([line(&["callers", &symbol]), line(&["impact", &symbol]), line(&["callees", &symbol])]);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
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
