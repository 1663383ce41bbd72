//! Which file systems tell of changes that others make, and what keeps this one from being told.
//!
//! Must not know hints. Invariant: an unknown file system counts as one that tells.

use std::path::Path;

use super::Health;

/// Kinds of file systems, by the number that the system has for them, on which changes may come from elsewhere, unseen by this kernel.
#[cfg(target_os = "linux")]
const SILENT: &[(u32, &str)] = &[
    (0x0000_6969, "NFS"),
    (0xff53_4d42, "CIFS"),
    (0xfe53_4d42, "SMB"),
    (0x0000_517b, "SMB"),
    (0x0102_1997, "9P"),
    (0x6573_5546, "FUSE"),
    (0x00c3_6400, "Ceph"),
    (0x5346_414f, "AFS"),
    (0x7375_7245, "Coda"),
    (0x786f_4256, "a shared folder of a virtual machine"),
    (0x0bad_1dea, "a shared folder of a virtual machine"),
];

/// Kinds on which all that happens is told.
#[cfg(target_os = "linux")]
const TELLING: &[(u32, &str)] = &[
    (0x0000_ef53, "ext4"),
    (0x5846_5342, "XFS"),
    (0x9123_683e, "Btrfs"),
    (0x0102_1994, "tmpfs"),
    (0x794c_7630, "overlayfs"),
    (0x2fc1_2fc1, "ZFS"),
    (0xf2f5_2010, "F2FS"),
    (0xca45_1a4e, "bcachefs"),
    (0x0000_f15f, "eCryptfs"),
    (0x0000_4d44, "FAT"),
    (0x2011_bab0, "exFAT"),
    (0x7366_746e, "NTFS"),
];

/// What a path is on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileSystem {
    pub name: String,
    /// Whether changes may come unseen by this kernel.
    pub is_silent: bool,
}

/// Returns the file system at a path; `None` where the system does not tell.
#[cfg(target_os = "linux")]
pub fn file_system(path: &Path) -> Option<FileSystem> {
    if let Some(name) = silent(path) {
        return Some(FileSystem { name: name.to_owned(), is_silent: true });
    }
    let number = rustix::fs::statfs(path).ok()?.f_type as u32;
    let known = TELLING.iter().find(|(known, _)| *known == number).map(|(_, name)| (*name).to_owned());
    Some(FileSystem { name: known.unwrap_or_else(|| format!("a file system of kind {number:#x}")), is_silent: false })
}

#[cfg(not(target_os = "linux"))]
pub fn file_system(_: &Path) -> Option<FileSystem> {
    None
}

/// How much of a user's the system watches at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Directories, by all programs together.
    pub watches: u64,
    pub instances: u64,
}

/// Returns the limits of the system; `None` where it has none that are known.
pub fn limits() -> Option<Limits> {
    let read = |name: &str| {
        let text = std::fs::read_to_string(format!("/proc/sys/fs/inotify/{name}")).ok()?;
        text.trim().parse().ok()
    };
    Some(Limits { watches: read("max_user_watches")?, instances: read("max_user_instances")? })
}

/// Returns the name of the kind of file system at `path`, when it does not tell of all changes.
#[cfg(target_os = "linux")]
pub(super) fn silent(path: &Path) -> Option<&'static str> {
    let found = rustix::fs::statfs(path).ok()?;
    // The kernel gives 32 bits, which some libraries extend by their sign.
    let number = found.f_type as u32;
    SILENT.iter().find(|(known, _)| *known == number).map(|(_, name)| *name)
}

#[cfg(not(target_os = "linux"))]
pub(super) fn silent(_: &Path) -> Option<&'static str> {
    None
}

/// Says that a file system is looked at from time to time since it does not tell.
pub(super) fn of_silent(name: &str) -> Health {
    Health::Degraded {
        reason: format!("the worktree is on {name}, which does not tell of changes, so it is looked at from time to time"),
        remedy: "keep the worktree on a local disk to have changes noticed at once".to_owned(),
    }
}

/// Says that there are more directories than may be watched.
pub(super) fn of_too_many(directories: usize) -> Health {
    let now = limits().map_or(0, |limits| limits.watches);
    let wanted = (now.max(directories as u64) * 2).max(524_288);
    Health::Degraded {
        reason: "there are more directories than the system lets this user watch, so they are looked at from time to time"
            .to_owned(),
        remedy: format!(
            "raise the limit: `sysctl fs.inotify.max_user_watches={wanted}`, or `watch.max_directories` if it is lower"
        ),
    }
}

/// Says that the system gives no more watchers.
pub(super) fn of_no_watcher(error: &dyn std::fmt::Display) -> Health {
    Health::Degraded {
        reason: format!("the system gave no watcher ({error}), so the worktree is looked at from time to time"),
        remedy: "close other programs that watch files, or raise the limit: `sysctl fs.inotify.max_user_instances=1024`"
            .to_owned(),
    }
}

/// Says that the watcher met a defect of its own.
pub(super) fn of_defect() -> Health {
    Health::Degraded {
        reason: "the watcher broke down and begins again".to_owned(),
        remedy: "report what it said on standard error".to_owned(),
    }
}

/// Says that nobody looks any more.
pub(super) fn of_ended() -> Health {
    Health::Degraded {
        reason: "the watcher ended, so changes are not noticed".to_owned(),
        remedy: "each question and each `sync` looks at everything as before; start the program anew".to_owned(),
    }
}

/// Says that Git left its lock of the index.
pub(super) fn of_left_lock() -> Health {
    Health::Degraded {
        reason: "Git's `index.lock` stays, so what Git does meanwhile may be seen half done".to_owned(),
        remedy: "remove the lock if no Git is at work".to_owned(),
    }
}

/// Says that nothing stands at the root.
pub(super) fn of_missing_root() -> Health {
    Health::Degraded { reason: "the worktree is gone".to_owned(), remedy: "it is watched again when it is back".to_owned() }
}

/// Says that the worktree cannot be listed at this time.
pub(super) fn of_unlisted(error: &dyn std::error::Error) -> Health {
    Health::Degraded {
        reason: format!("the worktree cannot be listed ({})", crate::model::sentence(error)),
        remedy: "it is tried again every few seconds".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    #[cfg(target_os = "linux")]
    fn local_disks_tell() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let Ok(found) = rustix::fs::statfs(folder.path()) else { return };
        let number = found.f_type as u32;
        let local = [0xef53, 0x5846_5342, 0x9123_683e, 0x0102_1994, 0x794c_7630];
        if local.contains(&number) {
            assert_eq!(super::silent(folder.path()), None);
        }
    }

    #[test]
    fn the_remedy_is_a_command() {
        let said = super::of_too_many(300_000).to_string();
        assert!(said.starts_with("degraded: ") && said.contains("`sysctl fs.inotify.max_user_watches="), "{said}");
    }
}
