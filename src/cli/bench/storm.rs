//! Hooks that fire all at once: how many syncs they come to.
//!
//! Must not know how requests are joined. Invariant: every hook is answered before anything is counted.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use super::edit;
use super::warm::{Warm, answer};

/// Hooks in one second.
const HOOKS: u32 = 50;

/// Fires hooks at a daemon, after one edit and each after an edit of its own, and says what they came to.
pub fn notes(daemon: &Warm, path: &str, original: &str, root: &Path) -> io::Result<Vec<String>> {
    let file = root.join(path);
    let write = |run: usize| match edit::with_body_edit(path, original, 1_000 + run) {
        Some(text) => fs::write(&file, text),
        None => Err(io::Error::other(format!("`{path}` has no body to edit"))),
    };
    write(0)?;
    let once = fire(daemon, |_| Ok(()))?;
    let each = fire(daemon, |hook| write(hook as usize + 1))?;
    let said = |what: &str, Fired { syncs, published, refused }: Fired| {
        let ratio = syncs as f64 / published.max(1) as f64;
        format!(
            "{HOOKS} hooks in a second, {what}: {syncs} syncs, {published} published, {ratio:.2} syncs per published edit (to reach: ≤ 3); \
             {refused} hooks refused while the tree did not rest"
        )
    };
    Ok(vec![said("after one edit", once), said("each after an edit", each)])
}

/// What hooks came to: syncs that ended, those of them that published, and hooks that were told that the tree does not rest.
#[derive(Default)]
struct Fired {
    syncs: usize,
    published: usize,
    refused: usize,
}

/// Fires all hooks within a second, each after what it is told to do before.
fn fire(daemon: &Warm, before: impl Fn(u32) -> io::Result<()> + Sync) -> io::Result<Fired> {
    let start = Instant::now();
    let outcomes: Vec<io::Result<String>> = std::thread::scope(|scope| {
        let hooks: Vec<_> = (0..HOOKS)
            .map(|hook| {
                let before = &before;
                scope.spawn(move || {
                    let client = daemon.client()?;
                    wait_until(start, Duration::from_secs(1) * hook / HOOKS);
                    before(hook)?;
                    answer(&client, daemon.call(&["sync", "--json"]))
                })
            })
            .collect();
        hooks.into_iter().map(|hook| hook.join().unwrap_or_else(|_| Err(io::Error::other("a hook died")))).collect()
    });
    // Who shares a sync is told the same of it, to the last digit of its time.
    let mut syncs: BTreeMap<String, bool> = BTreeMap::new();
    let mut fired = Fired::default();
    for outcome in outcomes {
        let outcome = match outcome {
            Err(error) if error.to_string().contains("workspace_busy") => {
                fired.refused += 1;
                continue;
            }
            outcome => outcome?,
        };
        let published = outcome.contains(r#""published":true"#);
        syncs.insert(outcome, published);
    }
    Ok(Fired { syncs: syncs.len(), published: syncs.values().filter(|published| **published).count(), ..fired })
}

/// Waits until `moment` after a start.
fn wait_until(start: Instant, moment: Duration) {
    if let Some(rest) = moment.checked_sub(start.elapsed()) {
        std::thread::sleep(rest);
    }
}
