//! Which file systems tell of changes that others make, and what keeps this one from being told.
//!
//! Must not know hints. Invariant: an unknown file system counts as one that tells.

use std::path::Path;

use super::Health;

/// What a path is on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileSystem {
    pub name: String,
    /// Whether changes may come unseen by this kernel.
    pub is_silent: bool,
}

/// Returns the file system at a path; `None` where the system does not tell.
pub fn file_system(path: &Path) -> Option<FileSystem> {
    system::file_system(path)
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
    system::limits()
}

/// Returns the name of the kind of file system at `path`, when it does not tell of all changes.
pub(super) fn silent(path: &Path) -> Option<String> {
    file_system(path).filter(|found| found.is_silent).map(|found| found.name)
}

#[cfg(target_os = "linux")]
mod system {
    use std::path::Path;

    use super::{FileSystem, Limits};

    /// Kinds of file systems, by the number that the system has for them, on which changes may come from elsewhere, unseen by this kernel.
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

    pub(super) fn file_system(path: &Path) -> Option<FileSystem> {
        // The kernel gives 32 bits, which some libraries extend by their sign.
        let number = rustix::fs::statfs(path).ok()?.f_type as u32;
        let of = |kinds: &[(u32, &str)]| kinds.iter().find(|(known, _)| *known == number).map(|(_, name)| (*name).to_owned());
        if let Some(name) = of(SILENT) {
            return Some(FileSystem { name, is_silent: true });
        }
        let name = of(TELLING).unwrap_or_else(|| format!("a file system of kind {number:#x}"));
        Some(FileSystem { name, is_silent: false })
    }

    pub(super) fn limits() -> Option<Limits> {
        let read = |name: &str| {
            let text = std::fs::read_to_string(format!("/proc/sys/fs/inotify/{name}")).ok()?;
            text.trim().parse().ok()
        };
        Some(Limits { watches: read("max_user_watches")?, instances: read("max_user_instances")? })
    }
}

#[cfg(target_os = "macos")]
mod system {
    use std::path::Path;

    use super::{FileSystem, Limits};

    /// Kinds by the name that the system has for them, the longer ones by how they begin.
    const SILENT: &[(&str, &str)] = &[
        ("nfs", "NFS"),
        ("smbfs", "SMB"),
        ("afpfs", "AFP"),
        ("webdav", "WebDAV"),
        ("ftp", "FTP"),
        ("macfuse", "FUSE"),
        ("osxfuse", "FUSE"),
        ("fuse", "FUSE"),
    ];
    const TELLING: &[(&str, &str)] =
        &[("apfs", "APFS"), ("hfs", "HFS+"), ("exfat", "exFAT"), ("msdos", "FAT"), ("tmpfs", "tmpfs"), ("devfs", "devfs")];

    pub(super) fn file_system(path: &Path) -> Option<FileSystem> {
        let found = rustix::fs::statfs(path).ok()?;
        let letters =
            found.f_fstypename.iter().take_while(|letter| **letter != 0).map(|letter| char::from(letter.cast_unsigned()));
        let kind: String = letters.collect();
        let of =
            |kinds: &[(&str, &str)]| kinds.iter().find(|(known, _)| kind.starts_with(known)).map(|(_, name)| (*name).to_owned());
        if let Some(name) = of(SILENT) {
            return Some(FileSystem { name, is_silent: true });
        }
        let name = of(TELLING).unwrap_or_else(|| format!("a file system of kind {kind}"));
        Some(FileSystem { name, is_silent: false })
    }

    pub(super) fn limits() -> Option<Limits> {
        None
    }
}

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
mod system {
    use std::path::Path;

    use super::{FileSystem, Limits};

    pub(super) fn file_system(_: &Path) -> Option<FileSystem> {
        None
    }

    pub(super) fn limits() -> Option<Limits> {
        None
    }
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
    let remedy = match limits() {
        Some(Limits { watches, .. }) => format!(
            "raise the limit: `sysctl fs.inotify.max_user_watches={}`, or `watch.max_directories` if it is lower",
            (watches.max(directories as u64) * 2).max(524_288)
        ),
        None => "raise `watch.max_directories`, or the limit of open files (`ulimit -n`)".to_owned(),
    };
    Health::Degraded {
        reason: "there are more directories than the system lets this user watch, so they are looked at from time to time"
            .to_owned(),
        remedy,
    }
}

/// Says that the system gives no more watchers.
pub(super) fn of_no_watcher(error: &dyn std::fmt::Display) -> Health {
    let raise = if limits().is_some() { ", or raise the limit: `sysctl fs.inotify.max_user_instances=1024`" } else { "" };
    Health::Degraded {
        reason: format!("the system gave no watcher ({error}), so the worktree is looked at from time to time"),
        remedy: format!("close other programs that watch files{raise}"),
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
        assert!(said.starts_with("degraded: ") && said.contains("`watch.max_directories`"), "{said}");
        assert_eq!(said.contains("`sysctl fs.inotify.max_user_watches="), super::limits().is_some(), "{said}");
    }
}
