//! Lets a chosen durable step go wrong. Compiled into test builds alone (feature `faults`).
//!
//! `SEXTANT_FAULT=point[:n][=action]` chooses the n-th passage of a point and what happens there; without an action the process stops.
//! `SEXTANT_FAULT_TRACE=file` writes the name of every point as it is passed, and which losses (`content`, `names`) the power could
//! cause there. `SEXTANT_NO_BARRIERS=1`, or [`disable_barriers`], lets nothing be forced to the disk.
//!
//! Must not know what a step is for. Invariant: without these variables every step happens as in a normal build.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use rustix::process::{Signal, getpid, kill_process};

pub use super::durable::{POINTS, Part, Step};

/// What happens at the chosen passage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// The process stops before the step.
    Stop,
    /// The disk is full: this step and every later one that needs space fails.
    Full,
    /// The step fails once with an I/O error.
    Broken,
    /// Half of what is to be written is written, then the process stops.
    Torn,
    /// The power fails before the step: what was written and not forced to the disk is lost by half, the names are there.
    LoseContent,
    /// The power fails before the step: names that were not forced to the disk are as they were before.
    LoseNames,
}

impl Action {
    /// All of them, with their names.
    pub const ALL: &[(&str, Self)] = &[
        ("stop", Self::Stop),
        ("full", Self::Full),
        ("broken", Self::Broken),
        ("torn", Self::Torn),
        ("lose-content", Self::LoseContent),
        ("lose-names", Self::LoseNames),
    ];
}

/// Returns the name of a point: `pack-write`.
pub fn name(part: Part, step: Step) -> String {
    let mut name = String::new();
    for (index, character) in format!("{part:?}-{step:?}").char_indices() {
        if character.is_uppercase() && index > 0 && !name.ends_with('-') {
            name.push('-');
        }
        name.push(character.to_ascii_lowercase());
    }
    name
}

/// Lets nothing be forced to the disk any more in this process.
pub fn disable_barriers() {
    NO_BARRIERS.store(true, Ordering::Relaxed);
}

static NO_BARRIERS: AtomicBool = AtomicBool::new(false);

/// What the environment asks for.
struct Plan {
    point: String,
    passage: u64,
    action: Action,
    passed: AtomicU64,
    full: AtomicBool,
}

fn plan() -> Option<&'static Plan> {
    static PLAN: OnceLock<Option<Plan>> = OnceLock::new();
    PLAN.get_or_init(|| std::env::var("SEXTANT_FAULT").ok().map(|text| parse(&text))).as_ref()
}

/// # Panics
/// When the variable says nothing that can happen, since a test that believes in a fault must not pass without one.
fn parse(text: &str) -> Plan {
    let (place, action) = text.split_once('=').unwrap_or((text, "stop"));
    let (point, passage) = place.split_once(':').unwrap_or((place, "1"));
    assert!(POINTS.iter().any(|(part, step)| name(*part, *step) == point), "SEXTANT_FAULT names no point: {point}");
    Plan {
        point: point.to_owned(),
        passage: passage.parse().expect("SEXTANT_FAULT gives the number of a passage"),
        action: Action::ALL.iter().find(|(name, _)| *name == action).expect("SEXTANT_FAULT names an action").1,
        passed: AtomicU64::new(0),
        full: AtomicBool::new(false),
    }
}

fn trace_file() -> Option<&'static File> {
    static TRACE: OnceLock<Option<File>> = OnceLock::new();
    let open = || {
        let path = std::env::var_os("SEXTANT_FAULT_TRACE")?;
        OpenOptions::new().create(true).append(true).open(path).ok()
    };
    TRACE.get_or_init(open).as_ref()
}

/// Writes that a point is passed, and whether content or names would be lost if the power failed now.
fn trace(point: &str) {
    let Some(mut file) = trace_file() else { return };
    let unsettled = unsettled();
    let content = unsettled.iter().any(|one| matches!(one, Unsettled::Content(_)));
    let names = unsettled.iter().any(|one| !matches!(one, Unsettled::Content(_)));
    let line = format!("{point}{}{}\n", if content { " content" } else { "" }, if names { " names" } else { "" });
    file.write_all(line.as_bytes()).expect("the trace of a test can be written");
}

/// What has happened and is not yet on the disk, in the order it happened.
static UNSETTLED: Mutex<Vec<Unsettled>> = Mutex::new(Vec::new());

#[derive(Debug)]
enum Unsettled {
    /// The content of a file.
    Content(PathBuf),
    /// A name that was not there before.
    New(PathBuf),
    /// A name that was that of another file, and where the latter is kept.
    Moved { from: PathBuf, to: PathBuf, before: Option<PathBuf> },
    /// A name that is gone, and where its file is kept.
    Gone { path: PathBuf, before: Option<PathBuf> },
}

fn unsettled() -> std::sync::MutexGuard<'static, Vec<Unsettled>> {
    UNSETTLED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns whether it matters which names are on the disk.
fn follows_names() -> bool {
    loses_names() || trace_file().is_some()
}

fn loses_names() -> bool {
    plan().is_some_and(|plan| plan.action == Action::LoseNames)
}

/// Keeps the file at `path` among the temporary files, to bring it back when the power fails; `None` when there is none.
fn keep(path: &Path) -> Option<PathBuf> {
    if !loses_names() {
        return None;
    }
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let kept = std::env::temp_dir().join(format!("sextant-before-{}-{number}", std::process::id()));
    match fs::hard_link(path, &kept) {
        Ok(()) => Some(kept),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => panic!("temporary files must be on the disk of the cache: {error}"),
    }
}

pub(super) fn barrier(sync: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    static OFF: OnceLock<bool> = OnceLock::new();
    let off = *OFF.get_or_init(|| std::env::var_os("SEXTANT_NO_BARRIERS").is_some_and(|value| value == "1"));
    if off || NO_BARRIERS.load(Ordering::Relaxed) { Ok(()) } else { sync() }
}

/// Passes a point: returns when the step is to happen, or why it fails; or does not return.
pub(super) fn pass(part: Part, step: Step, path: &Path) -> io::Result<()> {
    meet(part, step, || {})?;
    if step == Step::Remove && follows_names() && fs::symlink_metadata(path).is_ok_and(|found| found.is_file()) {
        let before = keep(path);
        unsettled().push(Unsettled::Gone { path: path.to_owned(), before });
    }
    Ok(())
}

pub(super) fn pass_write(part: Part, step: Step, path: &Path, file: &File, bytes: &[u8]) -> io::Result<()> {
    meet(part, step, || {
        let mut file = file;
        // The process ends with it, so that nobody hears of a failure.
        let _ = file.write_all(&bytes[..bytes.len() / 2]);
    })?;
    if plan().is_none() {
        return Ok(());
    }
    let mut unsettled = unsettled();
    if !unsettled.iter().any(|one| matches!(one, Unsettled::Content(known) if known == path)) {
        unsettled.push(Unsettled::Content(path.to_owned()));
    }
    Ok(())
}

pub(super) fn pass_rename(part: Part, step: Step, from: &Path, to: &Path) -> io::Result<()> {
    meet(part, step, || {
        // Only content that was not forced to the disk can be torn under its final name.
        if unsettled().iter().any(|one| matches!(one, Unsettled::Content(path) if path == from)) {
            let _ = fs::rename(from, to);
            tear(to);
        }
    })?;
    let mut unsettled = unsettled();
    for one in unsettled.iter_mut() {
        if let Unsettled::Content(path) = one
            && let Ok(rest) = path.strip_prefix(from)
        {
            *path = if rest.as_os_str().is_empty() { to.to_owned() } else { to.join(rest) };
        }
    }
    if follows_names() {
        let before = keep(to);
        unsettled.push(Unsettled::Moved { from: from.to_owned(), to: to.to_owned(), before });
    }
    Ok(())
}

/// Says that a step has happened.
pub(super) fn settled(step: Step, path: &Path) {
    if plan().is_none() {
        // Nothing can go wrong, and a test of thousands of builds would note all it ever wrote.
        return;
    }
    let mut unsettled = unsettled();
    match step {
        Step::Make | Step::Create | Step::Link => {
            if step == Step::Create {
                unsettled.push(Unsettled::Content(path.to_owned()));
            }
            if follows_names() {
                unsettled.push(Unsettled::New(path.to_owned()));
            }
        }
        Step::Sync => unsettled.retain(|one| !matches!(one, Unsettled::Content(known) if known == path)),
        Step::SyncNames => unsettled.retain(|one| match one {
            Unsettled::Content(_) => true,
            Unsettled::New(known) => known.parent() != Some(path),
            Unsettled::Moved { to, before, .. } => to.parent() != Some(path) || drop_kept(before.as_deref()),
            Unsettled::Gone { path: known, before } => known.parent() != Some(path) || drop_kept(before.as_deref()),
        }),
        _ => {}
    }
}

/// Forgets a kept file; returns that its record goes, too.
fn drop_kept(before: Option<&Path>) -> bool {
    if let Some(before) = before {
        let _ = fs::remove_file(before);
    }
    false
}

fn meet(part: Part, step: Step, torn: impl FnOnce()) -> io::Result<()> {
    let point = name(part, step);
    trace(&point);
    let Some(plan) = plan() else { return Ok(()) };
    let needs_space = matches!(
        step,
        Step::Make | Step::Create | Step::Link | Step::Write | Step::Open | Step::Load | Step::Index | Step::Commit | Step::Sync
    );
    if plan.full.load(Ordering::Relaxed) && needs_space {
        return Err(io::Error::from(rustix::io::Errno::NOSPC));
    }
    if point != plan.point || plan.passed.fetch_add(1, Ordering::Relaxed) + 1 != plan.passage {
        return Ok(());
    }
    match plan.action {
        Action::Full => {
            plan.full.store(true, Ordering::Relaxed);
            return Err(io::Error::from(rustix::io::Errno::NOSPC));
        }
        Action::Broken => return Err(io::Error::from(rustix::io::Errno::IO)),
        Action::Stop => {}
        Action::Torn => torn(),
        Action::LoseContent => unsettled().iter().for_each(|one| match one {
            Unsettled::Content(path) => tear(path),
            Unsettled::New(_) | Unsettled::Moved { .. } | Unsettled::Gone { .. } => {}
        }),
        Action::LoseNames => {
            while let Some(one) = unsettled().pop() {
                bring_back(&one);
            }
        }
    }
    stop()
}

/// Ends this process at once, as a kill or a power failure does.
fn stop() -> ! {
    let _ = kill_process(getpid(), Signal::KILL);
    std::process::abort()
}

/// Cuts a file in half. One that is empty stays so.
fn tear(path: &Path) {
    let Ok(file) = OpenOptions::new().write(true).open(path) else { return };
    let half = file.metadata().map_or(0, |metadata| metadata.len()) / 2;
    let _ = file.set_len(half);
    // What is left need not be what was written.
    let _ = file.write_all_at(&[0], half.saturating_sub(1));
}

fn bring_back(one: &Unsettled) {
    // What cannot be brought back was removed again meanwhile.
    let _ = match one {
        Unsettled::Content(_) => Ok(()),
        Unsettled::New(path) => match fs::symlink_metadata(path) {
            Ok(found) if found.is_dir() => fs::remove_dir_all(path),
            _ => fs::remove_file(path),
        },
        Unsettled::Moved { from, to, before } => fs::rename(to, from).and_then(|()| match before {
            Some(before) => restore(before, to),
            None => Ok(()),
        }),
        Unsettled::Gone { path, before } => before.as_ref().map_or(Ok(()), |before| restore(before, path)),
    };
}

fn restore(kept: &Path, path: &Path) -> io::Result<()> {
    fs::hard_link(kept, path)?;
    fs::remove_file(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_have_plain_and_different_names() {
        let mut names: Vec<_> = POINTS.iter().map(|(part, step)| name(*part, *step)).collect();
        assert_eq!(name(Part::LastBuild, Step::SyncNames), "last-build-sync-names");
        let count = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), count, "each point stands once");
    }

    #[test]
    fn a_plan_is_read() {
        let plan = |text: &str| {
            let plan = parse(text);
            (plan.point, plan.passage, plan.action)
        };
        assert_eq!(plan("pack-write"), ("pack-write".to_owned(), 1, Action::Stop));
        assert_eq!(plan("pointer-rename:2=full"), ("pointer-rename".to_owned(), 2, Action::Full));
    }
}
