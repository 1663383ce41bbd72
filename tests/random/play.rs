//! Plays a story: after each edit the index that was kept up is compared with one built from nothing.
//!
//! Invariant: the two share the worktree and nothing else; each clean build has a database and a cache folder of its own.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use sextant::config::{Config, Environment, OnStale, Selection};
use sextant::engine::{Admission, Baseline, Desk, Guest, Snapshot};
use sextant::model::{Cancel, Fingerprint};
use sextant::parse::InProcessParser;
use sextant::query::{self, export, request};
use sextant::render::{budget, json as body};
use sextant::watch::HintSource;

use super::dice::Dice;
use super::hints::Unreliable;
use super::sequence::{Action, Edit, Sequence};
use crate::sandbox::{Sandbox, write_file};

/// What a story came to.
#[derive(Clone, Copy, Debug, Default)]
pub struct Played {
    pub edits: u64,
    /// Answers compared, exports not counted.
    pub answers: u64,
    /// Generations that were written as a delta, and whole.
    pub deltas: u64,
    pub bulks: u64,
    /// Syncs that loaded and resolved no more than what the edit reached.
    pub resumed: u64,
    /// Syncs that were given up before they published anything.
    pub left: u64,
}

/// The two sides said different things.
#[derive(Clone, Debug)]
pub struct Difference {
    /// The edit after which they did, from 1; 0 for the first index.
    pub edit: usize,
    pub what: String,
}

/// What one side says, and in which state.
struct Says {
    fingerprint: Fingerprint,
    export: String,
    answers: Vec<String>,
}

/// Plays the whole story.
pub fn play(sequence: &Sequence) -> Result<Played, Difference> {
    let mut stage = Stage::new(sequence);
    let mut played = Played::default();
    let differs = |edit: usize| move |what: String| Difference { edit, what };
    stage.kept.index().map_err(|error| differs(0)(format!("the first index failed: {}", error.code())))?;
    for (index, edit) in sequence.edits.iter().enumerate() {
        stage.change(edit);
        if sequence.fresh {
            stage.kept = Arc::new(engine(&stage.sandbox.path(), &stage.root, "kept"));
        } else {
            stage.hear(edit);
        }
        let mut dice = Dice::new(sequence.seed ^ (index as u64 + 1) << 32);
        let answers = stage.compare(&mut dice, &mut played).map_err(differs(index + 1))?;
        played.answers += answers;
        played.edits += 1;
    }
    Ok(played)
}

struct Stage {
    sandbox: Sandbox,
    root: PathBuf,
    kept: Arc<Desk>,
    /// What half of the stories are told of each edit, more or less; the other half hear nothing.
    hints: Option<Unreliable>,
    clean_builds: u32,
}

impl Stage {
    fn new(sequence: &Sequence) -> Self {
        let sandbox = Sandbox::new();
        let root = sandbox.tree();
        for (path, bytes) in &sequence.files {
            write_file(&root.join(path), bytes);
        }
        if sequence.git {
            sandbox.commit_all();
            sandbox.git(&["branch", "--quiet", "-M", "main"]);
        }
        let kept = Arc::new(engine(&sandbox.path(), &root, "kept"));
        let hints = sequence.seed.is_multiple_of(2).then(|| Unreliable::new(sequence.seed));
        Self { sandbox, root, kept, hints, clean_builds: 0 }
    }

    /// Lets the kept index do ahead what it may hear of. A hint that comes to nothing is none: the tree may be in the middle of a merge.
    fn hear(&mut self, edit: &Edit) {
        let Some(hints) = &mut self.hints else { return };
        hints.happen(edit);
        while let Some(hint) = hints.wait(Duration::ZERO) {
            let cancel = Cancel::default();
            if edit.actions.len() % 3 == 2 {
                cancel.cancel();
            }
            let _ = self.kept.prepare(&hint, &cancel);
        }
    }

    fn change(&mut self, edit: &Edit) {
        for action in &edit.actions {
            match action {
                Action::Write(path, bytes) => {
                    self.make_room(path);
                    write_file(&self.root.join(path), bytes);
                }
                Action::Delete(path) => {
                    let _ = fs::remove_file(self.root.join(path));
                    self.prune(path);
                }
                Action::Move(from, to) => {
                    if self.root.join(from).is_file() {
                        self.make_room(to);
                        let to = self.root.join(to);
                        fs::create_dir_all(to.parent().expect("below the root")).expect("folders can be made");
                        fs::rename(self.root.join(from), to).expect("files can be moved");
                        self.prune(from);
                    }
                }
                Action::Git(arguments) => {
                    let mut command = self.sandbox.command("git");
                    command.args(["-c", "core.hooksPath=/dev/null", "-c", "gc.auto=0", "-c", "maintenance.auto=false"]);
                    command.args(*arguments).output().expect("git is installed");
                }
                Action::Restart => self.kept = Arc::new(engine(&self.sandbox.path(), &self.root, "kept")),
            }
        }
    }

    /// Removes what stands where the file, or a folder above it, is to be.
    fn make_room(&self, path: &str) {
        let place = self.root.join(path);
        if place.is_dir() {
            fs::remove_dir_all(&place).expect("folders can be removed");
        }
        for above in place.ancestors().skip(1).take_while(|above| above.starts_with(&self.root)) {
            if above.is_file() {
                fs::remove_file(above).expect("files can be removed");
            }
        }
    }

    /// Removes the folders above a path that are empty now.
    fn prune(&self, path: &str) {
        let place = self.root.join(path);
        for above in place.ancestors().skip(1).take_while(|above| above.starts_with(&self.root) && **above != self.root) {
            if fs::remove_dir(above).is_err() {
                break;
            }
        }
    }

    /// Has the kept index brought up to date for somebody who goes away after a while. In the middle of what that comes is up to the
    /// machine: no seed tells it.
    fn leave(&self, after: Duration, played: &mut Played) {
        let cancel = Cancel::default();
        let guest = Guest::new(Arc::clone(&self.kept), cancel.clone());
        let outcome = std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(after);
                cancel.cancel();
            });
            guest.sync()
        });
        played.left += u64::from(outcome.is_err());
    }

    /// Brings the kept index up to date and compares it with a clean one. Returns how many answers were compared.
    fn compare(&mut self, dice: &mut Dice, played: &mut Played) -> Result<u64, String> {
        // Before any sync the old index may answer only if it is still true, which the clean build will tell.
        let early = self.kept.ask(admission(OnStale::Refuse), |snapshot| snapshot.generation().identity().fingerprint);
        let early = early.map(|answer| answer.value).map_err(|error| error.code());
        if dice.chance(30) {
            self.leave(Duration::from_micros(dice.below(12_000) as u64), played);
        }
        let outcome = if dice.chance(70) {
            Some(self.kept.sync().map_err(|error| format!("the sync failed: {}", error.code()))?)
        } else {
            let answer = self.kept.ask(admission(OnStale::Sync), |_| ());
            answer.map_err(|error| format!("the synced answer failed: {}", error.code()))?.synced
        };
        let stages = outcome.iter().flat_map(|outcome| &outcome.stages);
        for stage in stages {
            played.deltas += u64::from(stage.name == "delta");
            played.bulks += u64::from(stage.name == "store");
            played.resumed += u64::from(stage.name == "resume");
        }
        let mut requests = None;
        let kept = says(&self.kept, &mut requests, dice)?;

        self.clean_builds += 1;
        let name = format!("clean-{}", self.clean_builds);
        let clean = engine(&self.sandbox.path(), &self.root, &name);
        clean.index().map_err(|error| format!("the clean build failed: {}", error.code()))?;
        let fresh = says(&clean, &mut requests, dice)?;
        drop(clean);
        fs::remove_dir_all(self.sandbox.path().join(name)).map_err(|error| error.to_string())?;

        match early {
            Ok(fingerprint) if fingerprint != fresh.fingerprint => {
                return Err("a stale index answered before the sync".to_owned());
            }
            Ok(_) | Err("code_changed") => {}
            Err(code) => return Err(format!("the index before the sync said {code}")),
        }
        if kept.export != fresh.export {
            return Err(first_difference("export", &kept.export, &fresh.export));
        }
        for ((request, kept), fresh) in requests.iter().flatten().zip(&kept.answers).zip(&fresh.answers) {
            if kept != fresh {
                return Err(format!("request {request}\n--- incremental\n{kept}\n--- clean\n{fresh}"));
            }
        }
        if kept.fingerprint != fresh.fingerprint {
            return Err("the fingerprints differ".to_owned());
        }
        Ok(kept.answers.len() as u64)
    }
}

fn engine(folder: &Path, root: &Path, cache: &str) -> Desk {
    let environment = Environment { current_dir: root.to_owned(), ..Environment::default() };
    let text = format!("cache_dir = {:?}\n[scopes.random]\nroot = {root:?}\ninclude_untracked = true\n", folder.join(cache));
    let config = Config::parse(&text, "sextant.toml", &environment).expect("a valid configuration");
    let scope = config.scope(&Selection { root: None, scope: Some("random".to_owned()) }, &environment).expect("a scope");
    Desk::open(&config, scope, Arc::new(InProcessParser)).expect("the root can be read")
}

fn admission(on_stale: OnStale) -> Admission {
    Admission { on_stale, expected_fingerprint: None, baseline: Baseline::None, limit: std::time::Duration::from_secs(60) }
}

/// Asks one side for its export and for the answers to `requests`, which the first side asked chooses.
fn says(engine: &Desk, requests: &mut Option<Vec<Value>>, dice: &mut Dice) -> Result<Says, String> {
    let operation = |snapshot: &Snapshot| {
        let mut rows = Vec::new();
        export::write(snapshot, &mut rows).map_err(|error| error.to_string())?;
        let export = String::from_utf8(rows).map_err(|error| error.to_string())?;
        let fingerprint = snapshot.generation().identity().fingerprint;
        let requests = requests.get_or_insert_with(|| choose(&export, &fingerprint, dice));
        let answers = requests.iter().map(|request| answer(snapshot, request)).collect();
        Ok::<_, String>(Says { fingerprint, export, answers })
    };
    engine.ask(admission(OnStale::Refuse), operation).map_err(|error| format!("the index is refused: {}", error.code()))?.value
}

/// Returns the body of an answer, or the code of the refusal, without the time of the check.
fn answer(snapshot: &Snapshot, request: &Value) -> String {
    let request = match request::parse(request.to_string().as_bytes()) {
        Ok(request) => request,
        Err(error) => return format!("not a request: {error}"),
    };
    match query::run(snapshot, &request) {
        Ok(response) => match budget::fit(response, request.max_bytes) {
            Ok(response) => body::encode(&response).replace(snapshot.checked_at(), ""),
            Err(error) => error.code().to_owned(),
        },
        Err(error) => error.code().to_owned(),
    }
}

/// Chooses strict requests about a few things of the export.
fn choose(export: &str, fingerprint: &Fingerprint, dice: &mut Dice) -> Vec<Value> {
    let nodes: Vec<Value> = export
        .lines()
        .filter(|line| line.starts_with(r#"{"row":"node""#))
        .map(|line| serde_json::from_str(line).expect("rows are JSON"))
        .collect();
    let mut operations = vec![(json!({"kind": "map", "depth": 5, "limit": 50}), 32_768)];
    let named = (!nodes.is_empty()).then(|| nodes[dice.below(nodes.len())]["qualified_name"].as_str().unwrap_or("f"));
    for word in ["f", "A.m", named.unwrap_or("a.f")] {
        if dice.chance(40) {
            operations.push((json!({"kind": "symbols", "query": word}), 16_000));
        }
        if dice.chance(40) {
            operations.push((json!({"kind": "explore", "query": word}), 512 + dice.below(8000)));
        }
    }
    if !nodes.is_empty() {
        for _ in 0..3 {
            let node = &nodes[dice.below(nodes.len())];
            for kind in ["callers", "callees", "impact"] {
                let prefix = if dice.chance(15) { "pkg" } else { "" };
                let depth = 1 + dice.below(5);
                operations.push((json!({"kind": kind, "symbol_id": node["id"], "depth": depth, "path_prefix": prefix}), 16_000));
            }
        }
        let path = &nodes[dice.below(nodes.len())]["path"];
        operations.push((json!({"kind": "affected_tests", "paths": [path]}), 16_000));
    }
    let fingerprint = fingerprint.hex();
    let request = |(operation, max_bytes): (Value, usize)| json!({"operation": operation, "expected_fingerprint": fingerprint, "max_bytes": max_bytes});
    operations.into_iter().map(request).collect()
}

/// Tells the first rows that are on one side only.
fn first_difference(what: &str, kept: &str, fresh: &str) -> String {
    let mut text = format!("the {what} differs");
    for (side, own, other) in [("incremental", kept, fresh), ("clean", fresh, kept)] {
        let others: std::collections::HashSet<&str> = other.lines().collect();
        let _ = write!(text, "\n--- only {side}");
        for line in own.lines().filter(|line| !others.contains(line)).take(3) {
            let _ = write!(text, "\n{line}");
        }
    }
    text
}
