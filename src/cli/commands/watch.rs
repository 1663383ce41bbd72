//! `watch`: follows a worktree, syncs after each change, and says what that did.
//!
//! Must not know how changes are noticed. Invariant: one line a sync that changed something, whole when it is written; a change that was
//! noticed is synced, or said to have failed and tried again.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde::Serialize;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::{Handle, Signals};

use crate::cli::arguments::Global;
use crate::cli::failure::{Exit, Failure};
use crate::cli::{Session, Stop, World};
use crate::engine::{BuildOutcome, BuildStatus, Desk, Difference, EngineError, Unbound};
use crate::model::{Cancel, Fingerprint, sentence};
use crate::watch::{Health, Hint, HintSource, WatchedTree};

use super::status::json;
use crate::render::text::{clean, counted, grouped};

/// How long after a failure it is tried again, should nothing happen before.
const PATIENCE: Duration = Duration::from_secs(5);
/// Most references that are listed of one sync, and most files that are named.
const MOST_LISTED: usize = 20;

/// What is said, one a line.
#[derive(Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum Event<'e> {
    Watching {
        scope_id: &'e str,
        files: u64,
        fingerprint: String,
        watch: String,
    },
    Sync {
        fingerprint: String,
        /// Whether this process published it.
        published: bool,
        changed_files: u64,
        /// The first of these, by path.
        files: Vec<&'e str>,
        edges_added: u64,
        edges_removed: u64,
        unbound_references: u64,
        /// The first of these, by path and place.
        unbound: Vec<UnboundReport<'e>>,
        elapsed_seconds: f64,
    },
    Watch {
        watch: String,
    },
    Failed {
        code: &'static str,
        message: &'e str,
    },
}

#[derive(Serialize)]
struct UnboundReport<'e> {
    path: &'e str,
    line: u32,
    col_byte: u32,
    name: &'e str,
    kind: &'static str,
    reason: &'static str,
}

pub fn run(session: &mut Session, global: &Global, world: &mut World<'_>) -> Result<Exit, Stop> {
    let desk = session.desk(global, &world.environment)?;
    let last = session.last.as_ref().expect("the desk was put there just now");
    desk.keep_journal(true);
    let scope = desk.scope();
    // Before the first sync, so that nothing is missed in between.
    let mut tree = WatchedTree::start(scope.worktree(), scope.policy(), &last.config.watch)
        .map_err(|error| Failure::new("code_build_failed", sentence(&error)))?;
    let interrupts = Interrupts::listen(tree.waker())?;
    let mut teller = Teller { json: global.json, quiet: global.quiet, health: None, failure: None };
    let outcome = follow(&desk, &mut tree, &interrupts, &mut teller, world);
    desk.keep_journal(false);
    desk.note_watch(None);
    outcome.map(|()| Exit::Answered)
}

fn follow(
    desk: &Desk,
    tree: &mut WatchedTree,
    interrupts: &Interrupts,
    teller: &mut Teller,
    world: &mut World<'_>,
) -> Result<(), Stop> {
    let mut known: Option<Fingerprint> = None;
    let mut owed = true;
    while !interrupts.came() {
        let health = tree.health();
        desk.note_watch(Some(&health));
        if owed {
            let started = Instant::now();
            match sync(desk, known) {
                Ok((outcome, difference)) => {
                    owed = false;
                    teller.failure = None;
                    interrupts.wait_for_syncs();
                    match known {
                        None => teller.say_beginning(desk, &outcome, &health, world)?,
                        Some(_) => teller.say_sync(&outcome, difference.unwrap_or_default(), started.elapsed(), world)?,
                    }
                    known = Some(outcome.fingerprint);
                }
                // What is wrong with the worktree may be over soon; anything else will not.
                Err(error) if known.is_none() && !is_passing(&error) => return Err(Failure::of_engine(&error).into()),
                Err(error) => teller.say_failure(&Failure::of_engine(&error), world)?,
            }
        }
        teller.say_health(health, world)?;
        let limit = if owed { PATIENCE } else { Duration::from_secs(1) };
        owed |= tree.wait(limit).is_some();
    }
    Ok(())
}

/// Brings the index up to date. Returns what changed in the graph too, be it that another process published it.
fn sync(desk: &Desk, known: Option<Fingerprint>) -> Result<(BuildOutcome, Option<Difference>), Arc<EngineError>> {
    let outcome = desk.sync()?;
    if outcome.status == BuildStatus::Unchanged && known != Some(outcome.fingerprint) {
        desk.prepare(&Hint::Rescan, &Cancel::default())?;
    }
    Ok((outcome, desk.take_difference()))
}

fn is_passing(error: &EngineError) -> bool {
    matches!(error.code(), "workspace_busy" | "repository_read_failed" | "code_timeout")
}

/// Says what happens.
struct Teller {
    json: bool,
    quiet: bool,
    /// What was said last of the watcher, and of a failure that goes on.
    health: Option<Health>,
    failure: Option<Failure>,
}

impl Teller {
    fn say(&self, event: &Event<'_>, text: &str, world: &mut World<'_>) -> Result<(), Stop> {
        if self.json {
            writeln!(world.out, "{}", json(event))?;
        } else {
            world.out.write_all(text.as_bytes())?;
        }
        world.out.flush()?;
        Ok(())
    }

    fn say_beginning(&mut self, desk: &Desk, outcome: &BuildOutcome, health: &Health, world: &mut World<'_>) -> Result<(), Stop> {
        let event = Event::Watching {
            scope_id: desk.scope().id(),
            files: outcome.counts.files,
            fingerprint: outcome.fingerprint.hex(),
            watch: health.to_string(),
        };
        let text = match self.quiet {
            true => String::new(),
            false => format!("watching {}; Ctrl-C ends\n", counted(outcome.counts.files, "file")),
        };
        self.say(&event, &text, world)
    }

    fn say_sync(
        &self,
        outcome: &BuildOutcome,
        difference: Difference,
        elapsed: Duration,
        world: &mut World<'_>,
    ) -> Result<(), Stop> {
        let published = outcome.status == BuildStatus::Published;
        if !published && difference.is_empty() {
            return Ok(());
        }
        let Difference { files, edges_added, edges_removed, unbound } = &difference;
        let event = Event::Sync {
            fingerprint: outcome.fingerprint.hex(),
            published,
            changed_files: files.len() as u64,
            files: files.iter().take(MOST_LISTED).map(|path| path.as_str()).collect(),
            edges_added: *edges_added,
            edges_removed: *edges_removed,
            unbound_references: unbound.len() as u64,
            unbound: unbound.iter().take(MOST_LISTED).map(report).collect(),
            elapsed_seconds: elapsed.as_secs_f64(),
        };
        let mut text = format!(
            "{} · +{} −{} edges · {:.2} s\n",
            counted(files.len() as u64, "file"),
            grouped(*edges_added),
            grouped(*edges_removed),
            elapsed.as_secs_f64(),
        );
        for Unbound { path, line, name, reason, .. } in unbound.iter().take(MOST_LISTED) {
            text.push_str(&format!("  {}:{line} {} ({})\n", clean(path.as_str()), clean(name), reason.as_str()));
        }
        if unbound.len() > MOST_LISTED {
            text.push_str(&format!("  and {}\n", counted((unbound.len() - MOST_LISTED) as u64, "other")));
        }
        self.say(&event, &text, world)
    }

    fn say_health(&mut self, health: Health, world: &mut World<'_>) -> Result<(), Stop> {
        if self.health.as_ref() == Some(&health) {
            return Ok(());
        }
        let is_news = self.health.is_some() || health != Health::Ok;
        if is_news && self.json {
            self.say(&Event::Watch { watch: health.to_string() }, "", world)?;
        } else if is_news {
            writeln!(world.err, "watching is {health}")?;
        }
        self.health = Some(health);
        Ok(())
    }

    fn say_failure(&mut self, failure: &Failure, world: &mut World<'_>) -> Result<(), Stop> {
        if self.failure.as_ref() == Some(failure) {
            return Ok(());
        }
        if self.json {
            self.say(&Event::Failed { code: failure.code, message: &failure.message }, "", world)?;
        } else {
            writeln!(world.err, "{}", failure.text())?;
        }
        self.failure = Some(failure.clone());
        Ok(())
    }
}

fn report(unbound: &Unbound) -> UnboundReport<'_> {
    UnboundReport {
        path: unbound.path.as_str(),
        line: unbound.line,
        col_byte: unbound.column,
        name: &unbound.name,
        kind: unbound.kind.as_str(),
        reason: unbound.reason.as_str(),
    }
}

/// Hears when the user, or the system, wants this process to end. It does so at once while the first index is built, which takes long and
/// leaves nothing half; later a sync is ended first, unless it is wanted a second time.
struct Interrupts {
    came: Arc<AtomicBool>,
    patient: Arc<AtomicBool>,
    handle: Handle,
}

impl Interrupts {
    fn listen(wake: impl Fn() + Send + 'static) -> io::Result<Self> {
        let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
        let (came, patient, handle) = (Arc::default(), Arc::new(AtomicBool::new(false)), signals.handle());
        let (heard, waits): (Arc<AtomicBool>, _) = (Arc::clone(&came), Arc::clone(&patient));
        let hear = move || {
            for signal in signals.forever() {
                if heard.swap(true, Ordering::Relaxed) || !waits.load(Ordering::Relaxed) {
                    // It ends the process; where it does not, the first time was heard.
                    let _ = signal_hook::low_level::emulate_default_handler(signal);
                }
                wake();
            }
        };
        std::thread::Builder::new().name("signals".to_owned()).spawn(hear)?;
        Ok(Self { came, patient, handle })
    }

    fn wait_for_syncs(&self) {
        self.patient.store(true, Ordering::Relaxed);
    }

    fn came(&self) -> bool {
        self.came.load(Ordering::Relaxed)
    }
}

impl Drop for Interrupts {
    fn drop(&mut self) {
        self.handle.close();
    }
}
