//! The machine under the index, as the doctor sees it: file systems, room, limits of the system.
//!
//! Must not know scopes. Invariant: nothing is written to find out whether it could be.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{Access, access, statvfs};

use crate::config::Config;
use crate::engine::Survey;
use crate::render::text::grouped;
use crate::watch::{self, FileSystem};

use super::Finding;

/// With less room than this no index of some size can be written.
const LEAST_ROOM: u64 = 256 << 20;
/// No more entries of the cache are counted.
const MOST_ENTRIES: u32 = 200_000;

pub fn worktree_file_system(root: &Path) -> Option<Finding> {
    let FileSystem { name, is_silent } = watch::file_system(root)?;
    Some(if is_silent {
        Finding::warning(
            "file system",
            format!("the worktree is on {name}, which does not tell of changes that others make"),
            "answers are as true as elsewhere; keep the worktree on a local disk to have changes noticed at once",
        )
    } else {
        Finding::ok("file system", format!("the worktree is on {name}"))
    })
}

/// Says whether the limits of the system allow to watch the worktree.
pub fn watches(config: &Config, survey: &Survey) -> Option<Finding> {
    let limits = watch::limits()?;
    let wanted = survey.directories;
    let said = format!(
        "{} directories to watch; the system lets a user watch {}, with {} watchers",
        grouped(wanted),
        grouped(limits.watches),
        grouped(limits.instances)
    );
    Some(if wanted > limits.watches {
        let raised = (limits.watches.max(wanted) * 2).max(524_288);
        Finding::warning("watching", said, format!("run `sysctl fs.inotify.max_user_watches={raised}`"))
    } else if wanted > config.watch.max_directories {
        Finding::warning("watching", said, format!("raise `max_directories` under [watch], now {}", config.watch.max_directories))
    } else {
        Finding::ok("watching", said)
    })
}

/// Says where the cache is, how large, and whether it can be written.
pub fn cache(config: &Config) -> Vec<Finding> {
    let place = &config.cache_dir;
    let Some(there) = place.ancestors().find(|path| path.exists()) else {
        return vec![Finding::problem("cache", format!("{} cannot be reached", place.display()), "set `cache_dir`")];
    };
    let mut said = place.display().to_string();
    if there == place {
        said.push_str(&format!(", {} MiB", grouped(size(place) >> 20)));
    } else {
        said.push_str(", not there yet");
    }
    if let Some(FileSystem { name, .. }) = watch::file_system(there) {
        said.push_str(&format!(", on {name}"));
    }
    let is_own = fs::metadata(there).is_ok_and(|found| found.uid() == rustix::process::geteuid().as_raw());
    let mut found = Vec::new();
    if access(there, Access::WRITE_OK | Access::EXEC_OK).is_err() {
        found.push(Finding::problem(
            "cache",
            format!("{said}; it cannot be written, so that no index can be built"),
            "make it yours and writable, or set `cache_dir` in a configuration file; what is indexed is answered all the same",
        ));
    } else if there == place && !is_own {
        found.push(Finding::problem(
            "cache",
            format!("{said}; it belongs to another user"),
            "set `cache_dir` in a configuration file, or XDG_CACHE_HOME, to a directory of your own",
        ));
    } else {
        found.push(Finding::ok("cache", said));
    }
    if let Ok(system) = statvfs(there) {
        let free = system.f_bavail.saturating_mul(system.f_frsize);
        let said = format!("{} MiB are free", grouped(free >> 20));
        found.push(if free < LEAST_ROOM {
            Finding::warning("room", said, "free disk space, or set `cache_dir` to another disk")
        } else {
            Finding::ok("room", said)
        });
    }
    found
}

/// Returns how many bytes of disk a directory takes, as far as it can be read.
fn size(directory: &Path) -> u64 {
    let (mut bytes, mut left, mut open) = (0, MOST_ENTRIES, vec![directory.to_owned()]);
    while let Some(directory) = open.pop() {
        let Ok(entries) = fs::read_dir(&directory) else { continue };
        for entry in entries.filter_map(Result::ok) {
            let Some(fewer) = left.checked_sub(1) else { return bytes };
            left = fewer;
            let Ok(found) = entry.metadata() else { continue };
            if found.is_dir() {
                open.push(entry.path());
            } else {
                // A second name of the same file takes no room.
                bytes += found.blocks() * 512 / found.nlink().max(1);
            }
        }
    }
    bytes
}
