//! What answers and syncs cost in a daemon, and in fresh processes, against a pass: the checks, edits of a body, of what a file exports and
//! of ten files, a branch that is switched, hooks that fire all at once, memory, idling and writing.
//!
//! Must not touch any tree but its copy. Invariant: each sync is of exactly the edit it is named after, and everything that is compared is
//! measured in turns.

use std::cell::Cell;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::render::text::grouped;

use super::edit;
use super::rows::{Sample, Table};
use super::scratch::{Bench, Scratch, copy_tree, remove};
use super::storm;
use super::usage::measure;
use super::warm::Warm;
use super::{Part, grow};

/// Files that the edit of many files touches.
const MANY: usize = 10;

/// Files that the switch of a branch touches.
const SWITCHED: usize = 929;

/// How long the daemon is watched while nobody asks.
const IDLE: Duration = Duration::from_secs(10);

/// What is measured.
pub struct Plan<'a> {
    /// The tree; a copy of it is edited.
    pub root: &'a Path,
    /// Makes a tree of so many files instead.
    pub generate: Option<usize>,
    pub edit: Option<&'a str>,
    pub symbol: Option<&'a str>,
    pub query: &'a str,
    pub runs: usize,
}

/// The three places that answer, each with a cache of its own.
struct Places {
    full: Bench,
    sealed: Bench,
    fresh: Bench,
}

/// The edits, applied to the copy.
struct Edits {
    root: PathBuf,
    path: String,
    original: String,
    many: Vec<(String, String)>,
    /// Edits so far, so that no two are the same, and which of them exported something last.
    made: Cell<usize>,
    exported: Cell<Option<usize>>,
}

impl Plan<'_> {
    /// Runs the benchmark and returns its table.
    ///
    /// # Errors
    /// When the tree cannot be read or edited, or a command fails.
    pub fn run(&self) -> io::Result<String> {
        let scratch = Scratch::new()?;
        let tree = scratch.path("tree");
        match self.generate {
            Some(files) => {
                fs::create_dir(&tree)?;
                grow::grow(&tree, files)?;
            }
            None => copy_tree(self.root, &tree)?,
        }
        let places = Places {
            full: Bench::new(&scratch, "full", &tree, "full")?,
            sealed: Bench::new(&scratch, "sealed", &tree, "sealed")?,
            fresh: Bench::new(&scratch, "fresh", &tree, "full")?,
        };
        let edits = Edits::choose(&tree, self.edit)?;
        let mut table = Table::default();
        self.cold(&places, &mut table)?;
        let (full, sealed) = (Warm::start(&places.full)?, Warm::start(&places.sealed)?);
        // The first round warms up what the processes keep, and counts for nothing.
        let mut rounds = Table::default();
        for run in 0..=self.runs {
            if run == 1 {
                rounds = Table::default();
            }
            self.round(&places, [&full, &sealed], &edits, &mut rounds)?;
        }
        table.absorb(rounds);
        let mut notes = vec![memory_note(&full, "the daemon after all edits")];
        self.switch(&places, &full, &mut table)?;
        notes.push(memory_note(&full, "the daemon after the switches"));
        notes.push(format!("the sealed daemon said `{}`", sealed.settle()?));
        let cpu = full.meter.cpu();
        std::thread::sleep(IDLE);
        let used = full.meter.cpu().saturating_sub(cpu);
        notes.push(format!(
            "idle for {} s: {:.2} % CPU (to reach: < 1 %)",
            IDLE.as_secs(),
            100.0 * used.as_secs_f64() / IDLE.as_secs_f64()
        ));
        notes.extend(storm::notes(&full, &edits.path, &edits.original, &tree)?);
        notes.push(format!("database: {:.1} MB", places.full.database_bytes()? as f64 / 1e6));
        Ok(format!("{}{}", table.text("a pass", self.runs), notes.iter().map(|note| format!("- {note}\n")).collect::<String>()))
    }

    /// Indexes each place from nothing, the fresh one as often as everything else is measured, three times at most.
    fn cold(&self, places: &Places, table: &mut Table) -> io::Result<()> {
        for _ in 0..self.runs.min(3) {
            remove(&places.fresh.cache)?;
            table.add("cold `index`", "", process(&places.fresh, &["index", "--quiet"])?);
        }
        for place in [&places.full, &places.sealed] {
            process(place, &["index", "--quiet"])?;
        }
        Ok(())
    }

    fn round(&self, places: &Places, warm: [&Warm; 2], edits: &Edits, table: &mut Table) -> io::Result<()> {
        let [full, sealed] = warm;
        // What others edited meanwhile is no part of what is measured, and files that were just edited are no measure of a check by seals.
        full.run(&["sync", "--json"])?;
        sealed.settle()?;
        self.floors(places, table)?;
        let symbol = self.symbol.map_or_else(|| symbol_in(full, &edits.path), |symbol| Ok(symbol.to_owned()))?;
        let callers = ["callers", symbol.as_str(), "--json"];
        let explore = ["explore", self.query, "--json"];
        for (daemon, check) in [(full, "full check"), (sealed, "sealed check")] {
            table.add(&format!("`callers`, warm, {check}"), "≤ 2.4 ×", daemon.run(&callers)?.0);
            table.add(&format!("`explore`, warm, {check}"), "≤ 2.8 ×", daemon.run(&explore)?.0);
            table.add(&format!("`sync` of nothing, warm, {check}"), "≤ 2.8 ×", sync(daemon, false, || Ok(()))?);
        }
        table.add("`sync` of nothing, fresh process", "", process(&places.fresh, &["sync", "--json"])?);

        for (what, reach, edit) in [
            ("one body edit", ["≤ 4 ×", "≤ 7 ×"], Edits::body as fn(&Edits) -> io::Result<()>),
            ("one export edit", ["≤ 6 ×", "≤ 11 ×"], Edits::export),
            ("body edits of 10 files", ["≤ 5 ×", "≤ 8 ×"], Edits::many),
        ] {
            for (daemon, check) in warm.into_iter().zip(["full check", "sealed check"]) {
                // Each is measured with an edit of its own, from the moment of it: a daemon begins before it is asked.
                daemon.run(&["sync", "--json"])?;
                let written = daemon.meter.written();
                table.add(&format!("`sync` after {what}, warm, {check}"), reach[0], sync(daemon, true, || edit(edits))?);
                if what == "one body edit" && check == "full check" {
                    let [blocks, bytes] = daemon.meter.written();
                    table.note("bytes written by the sync of one body edit, to the disk", (blocks - written[0]) as f64);
                    table.note("bytes written by the sync of one body edit, handed to the system", (bytes - written[1]) as f64);
                }
            }
            process(&places.fresh, &["sync", "--quiet"])?;
            edit(edits)?;
            table.add(&format!("`sync` after {what}, fresh process"), reach[1], process(&places.fresh, &["sync", "--quiet"])?);
        }

        // A question that meets one more edit.
        for (daemon, check) in warm.into_iter().zip(["full check", "sealed check"]) {
            daemon.run(&["sync", "--json"])?;
            let name = format!("stale `callers` after one body edit, synced and answered, warm, {check}");
            table.add(&name, "≤ 6 ×", daemon.run_after(&callers, || edits.body())?.0);
        }
        process(&places.fresh, &["sync", "--quiet"])?;
        Ok(())
    }

    /// Measures what everything is compared with.
    fn floors(&self, places: &Places, table: &mut Table) -> io::Result<()> {
        for (part, name) in [
            ("pass", "a pass"),
            ("list", "listing alone"),
            ("hash", "`sha256` of the same bytes in memory, one file after the other"),
            ("hash-lanes", "the same, two files at a time"),
        ] {
            let run = measure(&mut places.full.command(["bench", "part", part, "--runs", "3"])?)?;
            let part: Part = serde_json::from_str(&run.out).map_err(io::Error::other)?;
            if let Part::Floor { cpu, wall, .. } = part {
                table.add(name, "", Sample { cpu, wall });
            }
        }
        Ok(())
    }

    /// Switches between two states of the tree that differ in many files.
    fn switch(&self, places: &Places, full: &Warm, table: &mut Table) -> io::Result<()> {
        let tree = &places.full.root;
        let mut files = Vec::new();
        for suffix in ["py", "go", "rs", "ts", "tsx", "js", "mjs"] {
            files.extend(edit::spread(tree, suffix, SWITCHED - files.len(), false)?);
        }
        let name = format!("a branch switched, {} files", grouped(files.len() as u64));
        let against = "cold `index`";
        for run in 0..self.runs.min(3) {
            let go = |other: bool, number: usize| -> io::Result<()> {
                for (place, (path, original)) in files.iter().enumerate() {
                    // A tenth of the files, and what has no body, gets a function that others may use.
                    let edited = match edit::with_moved_body(path, original, number) {
                        Some(text) if !place.is_multiple_of(10) => Some(text),
                        text => edit::with_export(path, text.as_deref().unwrap_or(original), number),
                    };
                    let text = if other { edited.as_deref().unwrap_or(original) } else { original };
                    fs::write(tree.join(path), text)?;
                }
                Ok(())
            };
            // Each way to a branch that nobody has seen: the way back finds what was parsed before.
            go(true, 2 * run)?;
            let fresh = process(&places.fresh, &["sync", "--quiet"])?;
            table.add_against(against, &format!("{name}, fresh process, against a cold `index`"), "≤ 0.5 ×", fresh);
            go(false, 0)?;
            process(&places.fresh, &["sync", "--quiet"])?;
            full.run(&["sync", "--json"])?;
            let warm = sync(full, true, || go(true, 2 * run + 1))?;
            table.add_against(against, &format!("{name}, warm, against a cold `index`"), "≤ 0.5 ×", warm);
            go(false, 0)?;
            full.run(&["sync", "--json"])?;
        }
        Ok(())
    }
}

impl Edits {
    fn choose(root: &Path, path: Option<&str>) -> io::Result<Self> {
        let missing = |what: &str| io::Error::other(format!("{what} has no body with a `return`"));
        let path = match path {
            Some(path) => path.to_owned(),
            None => edit::choose(root)?.ok_or_else(|| missing("no source file"))?,
        };
        let original = fs::read_to_string(root.join(&path))
            .map_err(|error| io::Error::new(error.kind(), format!("the file to edit, `{path}`, cannot be read: {error}")))?;
        if edit::with_body_edit(&path, &original, 0).is_none() {
            return Err(missing(&path));
        }
        let suffix = path.rsplit_once('.').map_or("", |(_, suffix)| suffix);
        let mut many = edit::spread(root, suffix, MANY + 1, true)?;
        many.retain(|(other, _)| *other != path);
        many.truncate(MANY);
        Ok(Self { root: root.to_owned(), path, original, many, made: Cell::new(0), exported: Cell::new(None) })
    }

    /// Edits a body; what was exported last stays.
    fn body(&self) -> io::Result<()> {
        self.write(self.next(), self.exported.get())
    }

    /// Replaces what was exported last, and moves the body, too.
    fn export(&self) -> io::Result<()> {
        let number = self.next();
        self.exported.set(Some(number));
        self.write(number, Some(number))
    }

    fn many(&self) -> io::Result<()> {
        let number = self.next();
        for (path, original) in &self.many {
            fs::write(self.root.join(path), edit::with_moved_body(path, original, number).unwrap_or_default())?;
        }
        Ok(())
    }

    fn next(&self) -> usize {
        self.made.replace(self.made.get() + 1)
    }

    fn write(&self, number: usize, exported: Option<usize>) -> io::Result<()> {
        let text = edit::with_moved_body(&self.path, &self.original, number).unwrap_or_default();
        let longer = exported.and_then(|exported| edit::with_export(&self.path, &text, exported));
        fs::write(self.root.join(&self.path), longer.unwrap_or(text))
    }
}

/// Syncs in a daemon, and sees that the edit was met.
fn sync(daemon: &Warm, edited: bool, before: impl FnOnce() -> io::Result<()>) -> io::Result<Sample> {
    let (taken, out) = daemon.run_after(&["sync", "--json"], before)?;
    if out.contains(r#""published":true"#) == edited {
        Ok(taken)
    } else {
        Err(io::Error::other(format!("a sync was of something else: {out}")))
    }
}

fn process(place: &Bench, arguments: &[&str]) -> io::Result<Sample> {
    let usage = measure(&mut place.command(arguments)?)?;
    Ok(Sample { cpu: usage.cpu.as_secs_f64(), wall: usage.wall.as_secs_f64() })
}

/// Returns a function that the edited file defines, to ask for its callers.
fn symbol_in(daemon: &Warm, path: &str) -> io::Result<String> {
    let (_, out) = daemon.run(&["map", path, "--json", "--depth", "5", "--limit", "50"])?;
    let answer: serde_json::Value = serde_json::from_str(&out).map_err(io::Error::other)?;
    let items = answer["items"].as_array().map(Vec::as_slice).unwrap_or_default();
    let function = items.iter().find(|item| matches!(item["kind"].as_str(), Some("function" | "method" | "class")));
    let name = function.and_then(|item| item["qualified_name"].as_str());
    // Below its file a name may stand more than once.
    let name = name.ok_or_else(|| io::Error::other(format!("`{path}` defines no function; name one with --symbol")))?;
    Ok(format!("{path}::{name}"))
}

fn memory_note(daemon: &Warm, who: &str) -> String {
    let [own, all, peak] = daemon.memory().map(|bytes| bytes >> 20);
    format!("{who}: {own} MiB, {all} MiB with its parsers, {peak} MiB at most (to reach on Django: ≤ 250 MiB)")
}
