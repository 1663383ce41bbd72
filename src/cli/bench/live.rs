//! What a sync costs in a process that lives on, against a pass: one body edit, one edit of what a file exports, edits of ten files.
//!
//! Must not touch any tree but its copy. Invariant: each sync is of exactly the edit it is named after, and pass and sync are measured in
//! turns in one process.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use crate::engine::{BuildStatus, Desk};
use crate::workspace::{self, ScanLimits};

use super::edit::with_body_edit;
use super::usage::{children_cpu, own_cpu};
use super::{floor, seconds};

/// Files that the edit of many files touches.
const MANY: usize = 10;

/// All runs of one process.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Live {
    /// CPU and wall seconds of each pass.
    pass: Vec<[f64; 2]>,
    syncs: Vec<Sync>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Sync {
    edit: String,
    /// Parsers included.
    cpu: f64,
    wall: f64,
    /// Files whose references were resolved anew.
    resolved: u64,
    /// Wall seconds.
    stages: Vec<(String, f64)>,
}

/// Measures in this process, on a tree that is free to be edited.
///
/// # Errors
/// When the tree cannot be read or edited, or a build fails.
pub fn part(desk: &Desk, edit: &str, runs: usize) -> io::Result<Live> {
    let root = desk.scope().root().to_owned();
    let many = editable(desk, &root, edit)?;
    let original = fs::read_to_string(root.join(edit))?;
    desk.index().map_err(io::Error::other)?;
    let mut live = Live::default();
    let exported = |run: usize| format!("\n\ndef exported_{run}():\n    return {run}\n");
    // The first round warms up what the process keeps.
    for run in 0..=runs {
        let pass = floor::pass(desk.scope().worktree(), desk.scope().policy(), ScanLimits::from(desk.scope().limits()))
            .map_err(io::Error::other)?;
        let mut round = vec![sync(desk, "nothing")?];
        let body = edited(edit, &original, run).ok_or_else(|| io::Error::other("the file to edit has no body"))?;
        let before = if run > 0 { exported(run - 1) } else { String::new() };
        fs::write(root.join(edit), format!("{body}{before}"))?;
        round.push(sync(desk, "body")?);
        fs::write(root.join(edit), format!("{body}{}", exported(run)))?;
        round.push(sync(desk, "export")?);
        for (path, text) in &many {
            fs::write(root.join(path), edited(path, text, run).unwrap_or_default())?;
        }
        round.push(sync(desk, "many")?);
        if run > 0 {
            live.pass.push([pass.cpu.as_secs_f64(), pass.wall.as_secs_f64()]);
            live.syncs.extend(round);
        }
    }
    Ok(live)
}

/// Puts one to three statements into a body, so that what stands below it moves from run to run.
fn edited(path: &str, source: &str, run: usize) -> Option<String> {
    (0..=run % 3).try_fold(source.to_owned(), |text, _| with_body_edit(path, &text, run))
}

/// Returns files of the suffix of `edit` that have a body, spread over the tree.
fn editable(desk: &Desk, root: &Path, edit: &str) -> io::Result<Vec<(String, String)>> {
    let suffix = Path::new(edit).extension();
    let listed = workspace::list(desk.scope().worktree(), desk.scope().policy()).map_err(io::Error::other)?;
    let mut found = Vec::new();
    for (path, omitted) in listed {
        if omitted.is_some() || path.as_str() == edit || Path::new(path.as_str()).extension() != suffix {
            continue;
        }
        if let Ok(text) = fs::read_to_string(root.join(path.as_str()))
            && with_body_edit(path.as_str(), &text, 0).is_some()
        {
            found.push((path.as_str().to_owned(), text));
        }
    }
    let step = (found.len() / MANY).max(1);
    Ok(found.into_iter().step_by(step).take(MANY).collect())
}

fn sync(desk: &Desk, edit: &str) -> io::Result<Sync> {
    let (start, cpu) = (Instant::now(), own_cpu() + children_cpu());
    let outcome = desk.sync().map_err(io::Error::other)?;
    let used = own_cpu() + children_cpu() - cpu;
    if (outcome.status == BuildStatus::Unchanged) != (edit == "nothing") {
        return Err(io::Error::other(format!("the sync of {edit} was of something else")));
    }
    let stages = outcome.stages.iter().map(|stage| (stage.name.to_owned(), stage.elapsed.as_secs_f64())).collect();
    let (cpu, wall) = (used.as_secs_f64(), start.elapsed().as_secs_f64());
    Ok(Sync { edit: edit.to_owned(), cpu, wall, resolved: outcome.resolved_files, stages })
}

impl Live {
    /// Returns all runs as tables of medians.
    pub fn table(&self) -> String {
        let middle = |mut values: Vec<f64>| {
            values.sort_by(f64::total_cmp);
            values.get(values.len() / 2).copied().unwrap_or(0.0)
        };
        let pass = [0, 1].map(|of| middle(self.pass.iter().map(|pass| pass[of]).collect()));
        let mut text = format!(
            "medians of {} runs in one process, parsers included\n\n| measured | CPU | wall | ratio (CPU) | ratio (wall) | to reach |\n\
             |---|---|---|---|---|---|\n| a pass | {} | {} | | | |\n",
            self.pass.len(),
            seconds(pass[0]),
            seconds(pass[1])
        );
        let mut stages = String::from("\n| wall of the stages | ");
        let mut rows: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        let mut order: Vec<&str> = Vec::new();
        let edits = [("nothing", "≤ 2.8 ×"), ("body", "≤ 4 ×"), ("export", "≤ 6 ×"), ("many", "≤ 5 ×")];
        for (column, (edit, reach)) in edits.iter().enumerate() {
            let syncs: Vec<&Sync> = self.syncs.iter().filter(|sync| sync.edit == *edit).collect();
            let of = |value: fn(&Sync) -> f64| middle(syncs.iter().map(|sync| value(sync)).collect());
            let (cpu, wall) = (of(|sync| sync.cpu), of(|sync| sync.wall));
            let resolved = syncs.iter().map(|sync| sync.resolved).max().unwrap_or(0);
            text.push_str(&format!(
                "| `sync`, edit of {edit}, {resolved} files resolved | {} | {} | {:.2} × | {:.2} × | {reach} |\n",
                seconds(cpu),
                seconds(wall),
                cpu / pass[0],
                wall / pass[1]
            ));
            stages.push_str(&format!("{edit} | "));
            let mut times: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
            for (name, time) in syncs.iter().flat_map(|sync| &sync.stages) {
                times.entry(name).or_default().push(*time);
                if !order.contains(&name.as_str()) {
                    order.push(name);
                }
            }
            for (name, times) in times {
                let row = rows.entry(name).or_default();
                row.resize(column, String::new());
                let often =
                    if times.len() < syncs.len() { format!(" ({} of {})", times.len(), syncs.len()) } else { String::new() };
                row.push(format!("{}{often}", seconds(middle(times))));
            }
        }
        text.push_str(&stages);
        text.push_str("\n|---|---|---|---|---|\n");
        for name in order {
            let mut row = rows.remove(name).unwrap_or_default();
            row.resize(edits.len(), String::new());
            text.push_str(&format!("| {name} | {} |\n", row.join(" | ")));
        }
        text
    }
}
