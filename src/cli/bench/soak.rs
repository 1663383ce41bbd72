//! Random edits under load, for as long as one likes: many clients ask one daemon while files are edited, made, moved and removed.
//!
//! Every answer under load is held against what was on the disk while it was made: a file may be told of only as it was at some moment
//! between question and answer. When edits rest, every question is asked of the daemon and of a fresh process with a cache of its own, and
//! both have to say the same to the last byte, but for the time of the check.
//!
//! Must not touch any tree but its copy. Invariant: what an answer is compared with was never made by the daemon.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::render::text::grouped;
use crate::server::daemon::protocol::{Reply, streams};

use super::editor::{Dice, Editor, Past, impossible};
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
        for place in [&daemon_place, &fresh_place] {
            measure(&mut place.command(["index", "--quiet"])?)?;
        }
        let past = Past::default();
        let mut editor = Editor::new(tree, &past, self.seed)?;
        let warm = Warm::start(&daemon_place)?;
        let questions = questions(&warm, &editor.files)?;

        let begun = Instant::now();
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
    let (out, err) = streams(said);
    (String::from_utf8_lossy(&out).into_owned(), String::from_utf8_lossy(&err).into_owned())
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
