//! Files of the cache: opened so that nothing found in their place can block or lead elsewhere, replaced so that a reader sees the old or
//! the new content and never a part.
//!
//! Must not know what the files mean. Invariant: whatever stands where a file of the cache belongs can be replaced by one.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags};

use crate::model::ContentHash;

use super::durable::{self, Part};
use super::error::{Result, damaged, io};

/// What stands at the place of a file.
#[derive(Debug)]
pub(super) enum Found {
    /// A regular file and its size.
    File(File, u64),
    Nothing,
    /// A link, directory, pipe or device.
    Foreign,
}

/// Opens what stands at `path` for reading, without following a link and without waiting for a writer of a pipe.
pub(super) fn open(path: &Path) -> io::Result<Found> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(descriptor) => File::from(descriptor),
        Err(rustix::io::Errno::NOENT) => return Ok(Found::Nothing),
        // A link; and a socket, which cannot be opened at all.
        Err(rustix::io::Errno::LOOP | rustix::io::Errno::NXIO) => return Ok(Found::Foreign),
        // In a directory of ours nothing was made that we may not read.
        Err(rustix::io::Errno::ACCESS) if path.parent().is_some_and(is_own) => return Ok(Found::Foreign),
        Err(error) => return Err(error.into()),
    };
    let stat = rustix::fs::fstat(&file)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Ok(Found::Foreign);
    }
    let size = u64::try_from(stat.st_size).unwrap_or(0);
    Ok(Found::File(file, size))
}

/// Returns whether a directory, itself and not what a link leads to, belongs to the user of this process.
pub(super) fn is_own(directory: &Path) -> bool {
    fs::symlink_metadata(directory).is_ok_and(|found| found.is_dir() && found.uid() == rustix::process::geteuid().as_raw())
}

/// Returns whether what stands in a directory of the cache at `root` may be believed: it belongs to this user, to root, or to whoever
/// owns the root, which the configuration names. In a root that several users may write to, a directory of another one of them may hold
/// anything. What is no directory is nobody's word.
pub(super) fn is_trusted(root: &Path, directory: &Path) -> bool {
    match fs::symlink_metadata(directory) {
        Ok(found) if found.is_dir() => {
            let of_root = fs::metadata(root).map(|root| root.uid()).ok();
            found.uid() == 0 || found.uid() == rustix::process::geteuid().as_raw() || Some(found.uid()) == of_root
        }
        _ => true,
    }
}

/// Fails when this user may not make files in a directory. Anything else in its place is no obstacle.
pub(super) fn check_writable(directory: &Path) -> io::Result<()> {
    use rustix::fs::{Access, AtFlags, CWD, accessat};
    if !fs::symlink_metadata(directory).is_ok_and(|found| found.is_dir()) {
        return Ok(());
    }
    match accessat(CWD, directory, Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS) {
        Err(error @ (rustix::io::Errno::ACCESS | rustix::io::Errno::ROFS | rustix::io::Errno::PERM)) => Err(error.into()),
        _ => Ok(()),
    }
}

/// Reads a small file whole; `None` when there is none. Anything but a regular file of at most `limit` bytes is damage of `part`.
pub(super) fn read_small(path: &Path, limit: u64, part: &'static str) -> Result<Option<Vec<u8>>> {
    match open(path).map_err(io("open"))? {
        Found::Nothing => Ok(None),
        Found::Foreign => Err(damaged(part)),
        Found::File(_, size) if size > limit => Err(damaged(part)),
        Found::File(file, size) => {
            let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(0));
            file.take(limit + 1).read_to_end(&mut bytes).map_err(io("read"))?;
            if bytes.len() as u64 > limit { Err(damaged(part)) } else { Ok(Some(bytes)) }
        }
    }
}

/// Reads exactly `length` bytes at `offset`; `None` when the file ends before.
pub(super) fn read_range(file: &File, offset: u64, length: usize, buffer: &mut Vec<u8>) -> io::Result<Option<()>> {
    buffer.resize(length, 0);
    match file.read_exact_at(buffer, offset) {
        Ok(()) => Ok(Some(())),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error),
    }
}

/// Puts `bytes` in place of the file at `path` in one step, durably.
pub(super) fn replace(part: Part, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let directory = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    let temporary = directory.join(format!(".{:016x}.tmp", random()?));
    let written = durable::create(part, &temporary).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync()
    });
    let replaced = written.and_then(|()| take_place(part, &temporary, path));
    if replaced.is_err() {
        let _ = durable::remove(Part::Leftover, &temporary);
    }
    replaced?;
    durable::sync_names(part, directory)
}

/// Gives a file its name, whatever else has it.
pub(super) fn take_place(part: Part, temporary: &Path, path: &Path) -> io::Result<()> {
    match durable::rename(part, temporary, path) {
        // A directory in the place of the file does not give way to a rename.
        Err(_) if fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir()) => {
            durable::remove(Part::Leftover, path)?;
            durable::rename(part, temporary, path)
        }
        outcome => outcome,
    }
}

/// Returns a random number, for names that must not collide between processes.
pub(super) fn random() -> io::Result<u64> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(u64::from_le_bytes(bytes))
}

/// Returns `body` behind a title line and before the digest of both, so that a torn or altered copy is noticed.
pub(super) fn enclose(title: &str, body: &str) -> String {
    let text = format!("{title}\n{body}\n");
    let digest = ContentHash::of(text.as_bytes()).hex();
    format!("{text}{digest}\n")
}

/// Returns the body that [`enclose`] was given; `None` when anything differs.
pub(super) fn disclose<'a>(title: &str, bytes: &'a [u8]) -> Option<&'a str> {
    let text = std::str::from_utf8(bytes).ok()?;
    let (covered, digest) = text.strip_suffix('\n')?.rsplit_once('\n')?;
    let covered = &text[..=covered.len()];
    if ContentHash::of(covered.as_bytes()).hex() != digest {
        return None;
    }
    covered.strip_prefix(title)?.strip_prefix('\n')?.strip_suffix('\n')
}

/// Returns what stands in a directory, by name. Anything else than a directory holds nothing: behind a link stands what is not ours to
/// list, and even less to remove.
pub(super) fn list(path: &Path) -> io::Result<Vec<fs::DirEntry>> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => {}
        Ok(_) => return Ok(Vec::new()),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => return Ok(Vec::new()),
        Err(error) => return Err(error),
    }
    let mut entries = fs::read_dir(path)?.collect::<io::Result<Vec<_>>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    Ok(entries)
}

/// Returns the sizes of all files below a directory, added up, but for those that `seen` holds under another name. What vanishes meanwhile
/// counts nothing.
pub(super) fn size_below(path: &Path, seen: &mut HashSet<(u64, u64)>) -> u64 {
    let Ok(entries) = list(path) else { return 0 };
    let mut size = 0;
    for entry in entries {
        size += match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => size_below(&entry.path(), seen),
            Ok(metadata) if metadata.nlink() > 1 && !seen.insert((metadata.dev(), metadata.ino())) => 0,
            Ok(metadata) => metadata.len(),
            Err(_) => 0,
        };
    }
    size
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn enclosed_text_is_disclosed_only_whole() {
        let text = enclose("title 1", "{\"a\": 1}");
        assert_eq!(disclose("title 1", text.as_bytes()), Some("{\"a\": 1}"));
        assert_eq!(disclose("title 2", text.as_bytes()), None);
        for cut in 0..text.len() {
            assert_eq!(disclose("title 1", &text.as_bytes()[..cut]), None, "cut at {cut}");
        }
        for flipped in 0..text.len() {
            let mut bytes = text.clone().into_bytes();
            bytes[flipped] ^= 1;
            assert_eq!(disclose("title 1", &bytes), None, "flipped at {flipped}");
        }
    }

    #[test]
    fn a_file_replaces_whatever_stands_in_its_place() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("file");
        let check = || {
            replace(Part::Pointer, &path, b"new").expect("replaced");
            assert_eq!(read_small(&path, 10, "file").expect("read"), Some(b"new".to_vec()));
        };
        check();
        check();
        durable::remove(Part::Leftover, &path).expect("removed");
        fs::create_dir(&path).expect("a folder");
        fs::write(path.join("inside"), "x").expect("written");
        assert!(matches!(open(&path), Ok(Found::Foreign)));
        check();
        durable::remove(Part::Leftover, &path).expect("removed");
        std::os::unix::fs::symlink("elsewhere", &path).expect("a link");
        assert!(matches!(open(&path), Ok(Found::Foreign)));
        check();
        durable::remove(Part::Leftover, &path).expect("removed");
        let status = std::process::Command::new("mkfifo").arg(&path).status().expect("mkfifo runs");
        assert!(status.success(), "a pipe");
        assert!(matches!(open(&path), Ok(Found::Foreign)));
        check();
        assert_eq!(fs::read_dir(folder.path()).expect("listed").count(), 1);
    }
}
