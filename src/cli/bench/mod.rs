//! The benchmark: what index, sync and query cost against the floors, as one Markdown table.
//!
//! Must not change the tree it is pointed at; edits are made in a copy. Invariant: every figure is the median of several runs of one
//! benchmark, and every ratio is between figures of the same one.

mod edit;
mod editor;
mod floor;
mod grow;
mod live;
mod meter;
mod rows;
mod scratch;
mod serve;
mod soak;
mod storm;
mod usage;
mod warm;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::config::OnStale;
use crate::engine::{Admission, Baseline};
use crate::model::{PathPrefix, RepoPath, SymbolKind};
use crate::query::request::{DEFAULT_BYTES, DEFAULT_DEPTH, DEFAULT_LIMIT, Paths, Relation};
use crate::query::{self, Operation, Request};
use crate::render::text::grouped;
use crate::render::{budget, json};
use crate::workspace::ScanLimits;

use super::arguments::{Bench, Global};
use super::failure::{Exit, Failure};
use super::{Session, Stop, World};

use floor::Floor;
use scratch::{Scratch, copy_tree, remove, size_of};
use usage::{Usage, measure};

/// How many questions of each kind the own work is measured with.
const QUESTIONS: usize = 200;

pub fn run(session: &mut Session, global: &Global, subject: &Bench, world: &mut World<'_>) -> Result<Exit, Stop> {
    match subject {
        Bench::Index { runs, symbol, query, edit } => {
            let root = session.desk(global, &world.environment)?.scope().root().to_owned();
            let plan = Plan { root, runs: *runs as usize, symbol, query, edit: edit.as_deref() };
            let table = plan.run().map_err(|error| failed(&error))?;
            world.out.write_all(table.as_bytes())?;
        }
        Bench::Live { runs, edit, symbol, query, generate } => {
            let root = session.desk(global, &world.environment)?.scope().root().to_owned();
            let (edit, symbol) = (edit.as_deref(), symbol.as_deref());
            let plan = live::Plan { root: &root, generate: *generate, edit, symbol, query, runs: *runs as usize };
            let table = plan.run().map_err(|error| failed(&error))?;
            world.out.write_all(table.as_bytes())?;
        }
        Bench::Soak { minutes, clients, check, seed } => {
            let root = session.desk(global, &world.environment)?.scope().root().to_owned();
            let time = Duration::from_secs(minutes * 60);
            let plan = soak::Plan { root: &root, time, clients: *clients as usize, check, seed: *seed };
            let soaked = plan.run().map_err(|error| failed(&error))?;
            world.out.write_all(soaked.report.as_bytes())?;
            if soaked.wrong > 0 {
                return Ok(Exit::Failed);
            }
        }
        Bench::Serve { seconds, clients, seed } => {
            let root = session.desk(global, &world.environment)?.scope().root().to_owned();
            let time = Duration::from_secs(*seconds);
            let plan = serve::Plan { root: &root, time, clients: *clients as usize, seed: *seed };
            let served = plan.run().map_err(|error| failed(&error))?;
            world.out.write_all(served.report.as_bytes())?;
            if served.wrong > 0 {
                return Ok(Exit::Failed);
            }
        }
        Bench::Part { part, query, runs } => {
            let text = part_of(session, global, part, query, *runs, world)?;
            writeln!(world.out, "{text}")?;
        }
    }
    Ok(Exit::Answered)
}

fn failed(error: &io::Error) -> Failure {
    Failure::new("code_build_failed", format!("the benchmark failed: {error}"))
}

/// What a part prints: the floor of a loop, or the own work of questions.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "part", rename_all = "snake_case")]
enum Part {
    Floor { cpu: f64, wall: f64, files: u64, bytes: u64 },
    Work { callers: Vec<f64>, explore: Vec<f64>, impact: Vec<f64>, tests: Vec<f64> },
}

fn part_of(
    session: &mut Session,
    global: &Global,
    part: &str,
    query: &str,
    runs: u32,
    world: &mut World<'_>,
) -> Result<String, Failure> {
    let desk = session.desk(global, &world.environment)?;
    let scope = desk.scope();
    let failed = |error: &dyn std::error::Error| Failure::new("code_build_failed", crate::model::sentence(error));
    let of = |floor: Floor| Part::Floor {
        cpu: floor.cpu.as_secs_f64(),
        wall: floor.wall.as_secs_f64(),
        files: floor.files,
        bytes: floor.bytes,
    };
    // Of several runs in one process the last one counts, when everything is warm.
    let last = |run: &dyn Fn() -> Result<Floor, Failure>| {
        (1..runs).try_for_each(|_| run().map(drop))?;
        run().map(of)
    };
    let (worktree, policy) = (scope.worktree(), scope.policy());
    let part = match part {
        "pass" => {
            let limits = ScanLimits::from(scope.limits());
            last(&|| floor::pass(worktree, policy, limits.clone()).map_err(|error| failed(&error)))?
        }
        "list" => last(&|| floor::list(worktree, policy).map_err(|error| failed(&error)))?,
        "hash" => last(&|| floor::hash(worktree, policy, false).map_err(|error| failed(&error)))?,
        "hash-lanes" => last(&|| floor::hash(worktree, policy, true).map_err(|error| failed(&error)))?,
        "parse" => of(floor::parse(worktree, policy).map_err(|error| failed(&error))?),
        "work" => {
            let admission = Admission {
                on_stale: OnStale::Refuse,
                expected_fingerprint: None,
                baseline: Baseline::None,
                limit: Duration::from_secs(600),
            };
            let answer = desk.ask(admission, |snapshot| work(snapshot, query)).map_err(|error| Failure::of_engine(&error))?;
            answer.value?
        }
        _ => return Err(Failure::usage("the parts are pass, list, hash, hash-lanes, parse and work")),
    };
    Ok(serde_json::to_string(&part).expect("plain values have JSON"))
}

/// Times many questions on one generation, checks excluded: callers and impact of definitions spread over the repository, the tests of
/// their files, and explorations of words that stand in it. Returns the seconds of each.
fn work(snapshot: &crate::engine::Snapshot, query: &str) -> Result<Part, Failure> {
    let mut callables = Vec::new();
    let store_failed = |error| Failure::of_query(&query::QueryError::Store(error));
    snapshot
        .generation()
        .each_node(&mut |node| {
            if matches!(node.kind, SymbolKind::Function | SymbolKind::Method | SymbolKind::Class) {
                callables.push((node.symbol.hex(), node.name.clone(), node.docstring.clone(), node.path.clone()));
            }
            Ok(())
        })
        .map_err(store_failed)?;
    let step = (callables.len() / QUESTIONS).max(1);
    let chosen: Vec<_> = callables.iter().step_by(step).take(QUESTIONS).collect();
    let prefix = PathPrefix::default;
    let limit = DEFAULT_LIMIT;
    let time = |operation: Operation| {
        let start = Instant::now();
        let response = query::run(snapshot, &Request::new(operation)).map_err(|error| Failure::of_query(&error))?;
        let response = budget::fit(response, DEFAULT_BYTES).map_err(|error| Failure::of_budget(&error))?;
        std::hint::black_box(json::encode(&response));
        Ok::<f64, Failure>(start.elapsed().as_secs_f64())
    };
    let (mut callers, mut impact, mut tests) = (Vec::new(), Vec::new(), Vec::new());
    for (id, _, _, path) in &chosen {
        let of = || Relation { symbol_id: id.clone(), depth: DEFAULT_DEPTH, prefix: prefix(), limit };
        callers.push(time(Operation::Callers(of()))?);
        impact.push(time(Operation::Impact(of()))?);
        if let Ok(path) = RepoPath::parse(path) {
            tests.push(time(Operation::AffectedTests(Paths { paths: vec![path], prefix: prefix(), limit }))?);
        }
    }
    let mut explore = vec![time(Operation::Explore { query: query.to_owned(), prefix: prefix(), limit })?];
    for (_, name, docstring, _) in &chosen {
        // A question as people ask it: a name, and words of what it is for.
        let words: Vec<&str> = docstring.as_deref().unwrap_or_default().split_whitespace().take(5).collect();
        let query = format!("{name} {}", words.join(" "));
        explore.push(time(Operation::Explore { query, prefix: prefix(), limit })?);
    }
    Ok(Part::Work { callers, explore, impact, tests })
}

/// One benchmark of one tree.
struct Plan<'a> {
    root: PathBuf,
    runs: usize,
    symbol: &'a str,
    query: &'a str,
    edit: Option<&'a str>,
}

/// The median of some runs.
#[derive(Clone, Copy, Debug, Default)]
struct Median {
    cpu: f64,
    wall: f64,
    peak: u64,
}

impl Median {
    fn of(runs: &[Usage]) -> Self {
        let middle = |mut values: Vec<f64>| {
            values.sort_by(f64::total_cmp);
            values.get(values.len() / 2).copied().unwrap_or(0.0)
        };
        Self {
            cpu: middle(runs.iter().map(|run| run.cpu.as_secs_f64()).collect()),
            wall: middle(runs.iter().map(|run| run.wall.as_secs_f64()).collect()),
            peak: runs.iter().map(|run| run.peak_bytes).max().unwrap_or(0),
        }
    }

    fn of_parts(parts: &[Part]) -> Self {
        let usage = |part: &Part| match part {
            Part::Floor { cpu, wall, .. } => {
                Usage { cpu: Duration::from_secs_f64(*cpu), wall: Duration::from_secs_f64(*wall), ..Usage::default() }
            }
            Part::Work { .. } => Usage::default(),
        };
        Self::of(&parts.iter().map(usage).collect::<Vec<_>>())
    }
}

impl Plan<'_> {
    fn run(&self) -> io::Result<String> {
        let scratch = Scratch::new()?;
        let cache = scratch.path("cache");
        let parse = self.parts("parse", &self.root, &cache)?;
        let pass = self.parts("pass", &self.root, &cache)?;

        let mut index = Vec::new();
        let mut resolve = Vec::new();
        for _ in 0..self.runs {
            remove(&cache)?;
            let mut run = measure(&mut sextant(&self.root, &cache, &["index", "--json"])?)?;
            resolve.push(stage(&run.out, "resolve"));
            // The kernel tells the largest process; the program tells all of them together.
            run.peak_bytes = run.peak_bytes.max(peak(&run.out));
            index.push(run);
        }
        resolve.sort_by(f64::total_cmp);
        let cache_bytes = size_of(&cache)?;
        let unchanged = self.runs_of(&self.root, &cache, &["sync", "--quiet"])?;
        let explore = self.query_runs(&cache)?;
        let callers = self.runs_of(&self.root, &cache, &["callers", self.symbol, "--quiet"]).ok();
        let work = self.parts("work", &self.root, &cache)?;
        let edited = self.edit_runs(&scratch)?;

        let (parse_cpu, pass_cpu) = (Median::of_parts(&parse), Median::of_parts(&pass));
        let index = Median::of(&index);
        let rows = Rows {
            parse: parse_cpu,
            pass: pass_cpu,
            index,
            resolve: resolve.get(resolve.len() / 2).copied().unwrap_or(0.0),
            cache_bytes,
            unchanged: Median::of(&unchanged),
            explore: Median::of(&explore),
            callers: callers.map(|runs| Median::of(&runs)),
            edited: Median::of(&edited),
            floor: totals(&parse, &pass),
            work: percentiles(&work),
        };
        Ok(rows.table(self.runs))
    }

    fn runs_of(&self, root: &Path, cache: &Path, arguments: &[&str]) -> io::Result<Vec<Usage>> {
        // One run to warm up what the system caches.
        measure(&mut sextant(root, cache, arguments)?)?;
        (0..self.runs).map(|_| measure(&mut sextant(root, cache, arguments)?)).collect()
    }

    fn query_runs(&self, cache: &Path) -> io::Result<Vec<Usage>> {
        let request = cache.join("request.json");
        let body = serde_json::json!({"operation": {"kind": "explore", "query": self.query}});
        fs::write(&request, body.to_string())?;
        self.runs_of(&self.root, cache, &["query", "--request-file", &request.to_string_lossy()])
    }

    fn parts(&self, part: &str, root: &Path, cache: &Path) -> io::Result<Vec<Part>> {
        let runs = self.runs_of(root, cache, &["bench", "part", part, "--query", self.query])?;
        runs.iter().map(|run| serde_json::from_str(&run.out).map_err(io::Error::other)).collect()
    }

    /// Syncs a copy of the tree after one edit of a body, each time another.
    fn edit_runs(&self, scratch: &Scratch) -> io::Result<Vec<Usage>> {
        let (copy, cache) = (scratch.path("copy"), scratch.path("copy-cache"));
        copy_tree(&self.root, &copy)?;
        measure(&mut sextant(&copy, &cache, &["index", "--quiet"])?)?;
        let path = match self.edit {
            Some(path) => path.to_owned(),
            None => edit::choose(&copy)?.ok_or_else(|| io::Error::other("no source file has a body to edit"))?,
        };
        let file = copy.join(&path);
        let original = fs::read_to_string(&file)
            .map_err(|error| io::Error::new(error.kind(), format!("the file to edit, `{path}`, cannot be read: {error}")))?;
        let mut runs = Vec::new();
        for run in 0..self.runs {
            let edited = edit::with_body_edit(&path, &original, run)
                .ok_or_else(|| io::Error::other(format!("the file to edit, `{path}`, has no body with a `return`")))?;
            fs::write(&file, edited)?;
            let usage = measure(&mut sextant(&copy, &cache, &["sync", "--json"])?)?;
            if !usage.out.contains(r#""extracted_files":1,"#) {
                return Err(io::Error::other(format!("the edit was not one file's: {}", usage.out)));
            }
            runs.push(usage);
        }
        Ok(runs)
    }
}

/// Returns this program, to run on a tree with a cache of the benchmark's own.
fn sextant(root: &Path, cache: &Path, arguments: &[&str]) -> io::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.env("XDG_CACHE_HOME", cache).env_remove("SEXTANT_CONFIG").arg("--root").arg(root).args(arguments);
    Ok(command)
}

fn peak(report: &str) -> u64 {
    let value: serde_json::Value = serde_json::from_str(report).unwrap_or_default();
    value["peak_memory_bytes"].as_u64().unwrap_or(0)
}

fn stage(report: &str, name: &str) -> f64 {
    let value: serde_json::Value = serde_json::from_str(report).unwrap_or_default();
    let stages = value["stages"].as_array().map(Vec::as_slice).unwrap_or_default();
    stages.iter().find(|stage| stage["name"] == name).and_then(|stage| stage["seconds"].as_f64()).unwrap_or(f64::NAN)
}

fn totals(parse: &[Part], pass: &[Part]) -> [(u64, u64); 2] {
    [parse, pass].map(|parts| match parts.first() {
        Some(Part::Floor { files, bytes, .. }) => (*files, *bytes),
        _ => (0, 0),
    })
}

/// Returns the 95th percentiles of callers, explore, impact and tests, in seconds, over all runs.
fn percentiles(parts: &[Part]) -> [f64; 4] {
    let mut all = [const { Vec::new() }; 4];
    for part in parts {
        if let Part::Work { callers, explore, impact, tests } = part {
            for (all, times) in all.iter_mut().zip([callers, explore, impact, tests]) {
                all.extend_from_slice(times);
            }
        }
    }
    all.map(|mut times: Vec<f64>| {
        times.sort_by(f64::total_cmp);
        times.get(times.len() * 95 / 100).copied().unwrap_or(0.0)
    })
}

/// All that the table shows.
struct Rows {
    parse: Median,
    pass: Median,
    index: Median,
    resolve: f64,
    cache_bytes: u64,
    unchanged: Median,
    explore: Median,
    callers: Option<Median>,
    edited: Median,
    /// Files and bytes of the parse and of the pass.
    floor: [(u64, u64); 2],
    work: [f64; 4],
}

impl Rows {
    fn table(&self, runs: usize) -> String {
        let [(parsed, parsed_bytes), (passed, passed_bytes)] = self.floor;
        let megabytes = |bytes: u64| bytes as f64 / 1e6;
        let mut text = format!(
            "{} files, {:.1} MB included; {} source files, {:.1} MB; {} threads; medians of {runs} runs\n\n",
            grouped(passed),
            megabytes(passed_bytes),
            grouped(parsed),
            megabytes(parsed_bytes),
            std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
        );
        text.push_str(
            "| measured | CPU | wall | peak | ratio (CPU) | ratio (wall) | to reach |\n|---|---|---|---|---|---|---|\n",
        );
        let mut row = |name: &str, of: Median, base: Option<Median>, reach: &str| {
            let peak = if of.peak > 0 { format!("{} MiB", of.peak >> 20) } else { String::new() };
            let ratio = |of: f64, base: f64| format!("{:.2} ×", of / base);
            let ratios = base.map_or_else(<[String; 2]>::default, |base| [ratio(of.cpu, base.cpu), ratio(of.wall, base.wall)]);
            text.push_str(&format!(
                "| {name} | {} | {} | {peak} | {} | {} | {reach} |\n",
                seconds(of.cpu),
                seconds(of.wall),
                ratios[0],
                ratios[1]
            ));
        };
        row("parse alone", self.parse, None, "");
        row("a pass", self.pass, None, "");
        row("cold `index`, against parse alone", self.index, Some(self.parse), "≤ 2.5 ×, ≤ 300 MiB");
        row("`sync`, nothing changed, against a pass", self.unchanged, Some(self.pass), "≤ 2.8 ×");
        row("`sync` after one body edit, against a cold index", self.edited, Some(self.index), "≤ 0.7 ×");
        row("`query` explore, against a pass", self.explore, Some(self.pass), "≤ 3.5 ×");
        if let Some(callers) = self.callers {
            row("`callers`, against a pass", callers, Some(self.pass), "");
        }
        text.push_str(&format!(
            "| resolution of all references, against parse alone (wall) | | {} | | | {:.2} × | ≤ 0.4 × |\n",
            seconds(self.resolve),
            self.resolve / self.parse.wall
        ));
        text.push_str(&format!(
            "| cache on disk, against the included bytes | {:.1} MB | | | {:.2} × | | ≤ 3 × |\n",
            megabytes(self.cache_bytes),
            self.cache_bytes as f64 / passed_bytes as f64
        ));
        let names = [("callers", "≤ 5 ms"), ("explore", "≤ 25 ms"), ("impact", ""), ("affected_tests", "")];
        for ((name, reach), seconds_of) in names.into_iter().zip(self.work) {
            text.push_str(&format!(
                "| own work of `{name}`, p95 of {QUESTIONS} questions | | {} | | | | {reach} |\n",
                seconds(seconds_of)
            ));
        }
        text
    }
}

fn seconds(value: f64) -> String {
    if value < 1.0 { format!("{:.1} ms", value * 1e3) } else { format!("{value:.2} s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_are_found_by_name() {
        assert_eq!(stage(r#"{"stages":[{"name":"scan","seconds":1.0},{"name":"resolve","seconds":0.5}]}"#, "resolve"), 0.5);
        assert!(stage("{}", "resolve").is_nan());
    }
}
