//! The files of hosts: read whole, and replaced all or none.
//!
//! Must not know what is in them. Invariant: a file is either as it was or as it was planned to be, with its mode, at the place that a
//! link leads to; nothing is replaced that changed since it was read; and no directory is removed that was not made here.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::XattrFlags;

/// Why a file cannot be read or replaced.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    #[error("it cannot be {what}")]
    System {
        what: &'static str,
        #[source]
        source: io::Error,
    },
    #[error("it is not a file")]
    NoFile,
    #[error("it is larger than {} MiB", MOST_BYTES >> 20)]
    TooLarge,
    #[error("it is not UTF-8")]
    NoText,
    #[error("it is read-only")]
    ReadOnly,
    #[error("it is a link that leads in a circle")]
    Circle,
    #[error("it was changed meanwhile")]
    Changed,
}

/// No file of a host is larger.
const MOST_BYTES: u64 = 64 << 20;
/// As many links as the system follows.
const MOST_LINKS: usize = 40;
/// The extended attribute of directories that were made here, so that they are told from empty ones of their owner.
const MADE: &str = "user.sextant.made";

fn failed(what: &'static str) -> impl FnOnce(io::Error) -> FileError {
    move |source| FileError::System { what, source }
}

/// A file as it was read.
#[derive(Debug)]
pub struct Snapshot {
    /// Where links lead to.
    pub target: PathBuf,
    /// `None` when there is no file.
    pub text: Option<String>,
    metadata: Option<Metadata>,
}

impl Snapshot {
    /// Reads the file at a path, which need not be there.
    ///
    /// # Errors
    /// When what is there cannot be read as text.
    pub fn read(path: &Path) -> Result<Self, FileError> {
        let target = follow(path)?;
        let metadata = match target.metadata() {
            Ok(metadata) => metadata,
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                return Ok(Self { target, text: None, metadata: None });
            }
            Err(error) => return Err(failed("read")(error)),
        };
        if !metadata.is_file() {
            return Err(FileError::NoFile);
        }
        if metadata.len() > MOST_BYTES {
            return Err(FileError::TooLarge);
        }
        let bytes = fs::read(&target).map_err(failed("read"))?;
        let text = String::from_utf8(bytes).map_err(|_| FileError::NoText)?;
        Ok(Self { target, text: Some(text), metadata: Some(metadata) })
    }

    /// Returns whether the system would run it.
    pub fn is_executable(&self) -> bool {
        self.metadata.as_ref().is_some_and(|metadata| metadata.mode() & 0o111 != 0)
    }

    fn is_unchanged(&self) -> bool {
        match &self.text {
            Some(text) => fs::read(&self.target).is_ok_and(|bytes| bytes == text.as_bytes()),
            None => self.target.symlink_metadata().is_err(),
        }
    }
}

/// Returns the path that links lead to from a path; the last one need not exist.
fn follow(path: &Path) -> Result<PathBuf, FileError> {
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        // Anything that is no link is the end.
        let Ok(to) = fs::read_link(&path) else { return Ok(path) };
        path = path.parent().unwrap_or(Path::new("/")).join(to);
        // Without `..`, so that what is below another directory can be told from the path.
        if let (Some(Ok(parent)), Some(name)) = (path.parent().map(Path::canonicalize), path.file_name()) {
            path = parent.join(name);
        }
    }
    Err(FileError::Circle)
}

/// What becomes of a file.
#[derive(Debug)]
pub struct Change {
    pub file: Snapshot,
    /// `None` removes it.
    pub after: Option<String>,
    /// Whether a new file is to be executable.
    pub is_script: bool,
    /// The directory above the file that stays, be it empty.
    pub base: PathBuf,
}

/// What was made ready for a change.
struct Ready {
    temporary: Option<PathBuf>,
    made: Vec<PathBuf>,
}

/// Applies all changes, or none. What could stand in the way is met before the first file is replaced.
///
/// # Errors
/// With the position of the change that failed.
pub fn apply(changes: &[Change]) -> Result<(), (usize, FileError)> {
    let mut ready: Vec<Ready> = Vec::new();
    let outcome = changes.iter().enumerate().try_for_each(|(position, change)| {
        let mut own = Ready { temporary: None, made: Vec::new() };
        let outcome = prepare(change, &mut own);
        ready.push(own);
        outcome.map_err(|error| (position, error))
    });
    // All of them before the first is replaced, so that what others wrote meanwhile costs nothing.
    let outcome = outcome.and_then(|()| {
        let changed = changes.iter().position(|change| !change.file.is_unchanged());
        changed.map_or(Ok(()), |position| Err((position, FileError::Changed)))
    });
    let mut done = 0;
    let outcome = outcome.and_then(|()| {
        changes.iter().zip(&mut ready).enumerate().try_for_each(|(position, (change, ready))| {
            replace(change, ready).map_err(|error| (position, error))?;
            done += 1;
            Ok(())
        })
    });
    if outcome.is_ok() {
        changes.iter().filter(|change| change.after.is_none()).for_each(clear);
        return Ok(());
    }
    // The first failure is the one to tell of, whatever else fails on the way back.
    changes[..done].iter().rev().for_each(|change| drop(put_back(change)));
    for ready in ready.iter().rev() {
        // What is left lying about is no harm.
        ready.temporary.iter().for_each(|path| drop(fs::remove_file(path)));
        ready.made.iter().rev().for_each(|directory| drop(fs::remove_dir(directory)));
    }
    outcome
}

/// Writes what the file will be beside it.
fn prepare(change: &Change, ready: &mut Ready) -> Result<(), FileError> {
    let Change { file, after, is_script, .. } = change;
    if file.metadata.as_ref().is_some_and(|metadata| metadata.permissions().readonly()) {
        return Err(FileError::ReadOnly);
    }
    let Some(after) = after else { return Ok(()) };
    let directory = file.target.parent().unwrap_or(Path::new("/"));
    make(directory, &mut ready.made).map_err(failed("written: its directory cannot be made"))?;
    write(file, after, *is_script, &mut ready.temporary)
}

/// Writes a text beside a file, with the file's owner and mode, and notes where.
fn write(file: &Snapshot, text: &str, is_script: bool, temporary: &mut Option<PathBuf>) -> Result<(), FileError> {
    let name = file.target.file_name().unwrap_or_default().to_string_lossy();
    let path = file.target.with_file_name(format!(".{name}.sextant-{}", std::process::id()));
    let mut out = create(&path, file, is_script).map_err(failed("written"))?;
    *temporary = Some(path);
    out.write_all(text.as_bytes()).map_err(failed("written"))?;
    if let Some(metadata) = &file.metadata {
        // Only the superuser edits files of others, and may fail to give them back on some file systems.
        let _ = std::os::unix::fs::fchown(&out, Some(metadata.uid()), Some(metadata.gid()));
        out.set_permissions(metadata.permissions()).map_err(failed("given its mode"))?;
    }
    out.sync_all().map_err(failed("written"))
}

/// Creates the copy of a file: until it has the mode of the file, which may hold credentials, nobody else reads it.
fn create(path: &Path, file: &Snapshot, is_script: bool) -> io::Result<File> {
    let mode = match (&file.metadata, is_script) {
        (Some(_), _) => 0o600,
        (None, true) => 0o777,
        (None, false) => 0o666,
    };
    OpenOptions::new().write(true).create_new(true).mode(mode).open(path)
}

/// Makes a directory and those above it, and notes which.
fn make(directory: &Path, made: &mut Vec<PathBuf>) -> io::Result<()> {
    if directory.is_dir() {
        return Ok(());
    }
    if let Some(parent) = directory.parent() {
        make(parent, made)?;
    }
    match fs::create_dir(directory) {
        Ok(()) => {
            made.push(directory.to_owned());
            // Where the file system keeps no attributes, the directory will be left, empty.
            let _ = rustix::fs::setxattr(directory, MADE, b"1", XattrFlags::empty());
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && directory.is_dir() => {}
        Err(error) => return Err(error),
    }
    Ok(())
}

/// Puts what was made ready in the place of the file.
fn replace(change: &Change, ready: &mut Ready) -> Result<(), FileError> {
    let file = &change.file;
    if !file.is_unchanged() {
        return Err(FileError::Changed);
    }
    match &ready.temporary {
        Some(temporary) => {
            fs::rename(temporary, &file.target).map_err(failed("replaced"))?;
            ready.temporary = None;
        }
        None => fs::remove_file(&file.target).map_err(failed("removed"))?,
    }
    settle(file);
    Ok(())
}

/// Gives a file that was replaced the text it had before, unless others wrote to it since.
fn put_back(change: &Change) -> Result<(), FileError> {
    let Change { file, after, is_script, .. } = change;
    let is_ours = match after {
        Some(after) => fs::read(&file.target).is_ok_and(|bytes| bytes == after.as_bytes()),
        None => file.target.symlink_metadata().is_err(),
    };
    if !is_ours {
        return Err(FileError::Changed);
    }
    let Some(text) = &file.text else { return fs::remove_file(&file.target).map_err(failed("removed")) };
    let mut temporary = None;
    let written = write(file, text, *is_script, &mut temporary);
    let Some(temporary) = temporary else { return written };
    let outcome = written.and_then(|()| fs::rename(&temporary, &file.target).map_err(failed("replaced")));
    if outcome.is_err() {
        // The failure is told of already.
        let _ = fs::remove_file(&temporary);
    }
    settle(file);
    outcome
}

/// Removes the directories made here that a file which was removed leaves empty.
fn clear(change: &Change) {
    let above = change.file.target.ancestors().skip(1).take_while(|directory| *directory != change.base);
    // Those that hold anything stay by themselves.
    let _ = above.take_while(|directory| directory.starts_with(&change.base) && is_made(directory)).try_for_each(fs::remove_dir);
}

fn is_made(directory: &Path) -> bool {
    rustix::fs::getxattr(directory, MADE, &mut [0_u8; 1][..]).is_ok()
}

/// Has the name of a file last.
fn settle(file: &Snapshot) {
    if let Some(directory) = file.target.parent().and_then(|directory| File::open(directory).ok()) {
        // Whether the name lasts through a power failure is no reason to fail.
        let _ = directory.sync_all();
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn mode(path: &Path) -> u32 {
        path.metadata().expect("it exists").permissions().mode() & 0o777
    }

    fn change(base: &Path, name: &str, after: Option<&str>) -> Change {
        let file = Snapshot::read(&base.join(name)).expect("readable");
        Change { file, after: after.map(str::to_owned), is_script: false, base: base.to_owned() }
    }

    #[test]
    fn a_failure_on_the_way_leaves_all_as_it_was() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let base = directory.path().canonicalize().expect("it exists");
        fs::write(base.join("a"), "one").expect("a file");
        fs::set_permissions(base.join("a"), fs::Permissions::from_mode(0o640)).expect("a mode");
        fs::create_dir(base.join("below")).expect("a directory");
        fs::write(base.join("below/b"), "two").expect("a file");
        let planned =
            || vec![change(&base, "a", Some("new")), change(&base, "made/deep/c", Some("new")), change(&base, "below/b", None)];
        let as_before = |name: &str| {
            assert_eq!(fs::read_to_string(base.join("a")).expect("a file"), "one", "{name}");
            assert_eq!(mode(&base.join("a")), 0o640, "{name}");
            assert_eq!(fs::read_to_string(base.join("below/b")).expect("a file"), "two", "{name}");
            assert!(!base.join("made").exists(), "{name}");
            assert_eq!(fs::read_dir(&base).expect("a directory").count(), 2, "{name}: nothing else is left");
        };
        // What was removed once cannot be removed again, which shows only when it is tried.
        let mut changes = planned();
        changes.push(change(&base, "below/b", None));
        assert!(matches!(apply(&changes), Err((3, FileError::Changed))));
        as_before("the last fails");
        let mut changes = planned();
        fs::write(base.join("late"), "x").expect("a file");
        changes.push(change(&base, "late", Some("new")));
        fs::remove_file(base.join("late")).expect("it was there");
        assert!(matches!(apply(&changes), Err((3, FileError::Changed))));
        as_before("the last changed");
        apply(&planned()).expect("nothing is in the way");
        assert_eq!(fs::read_to_string(base.join("made/deep/c")).expect("a file"), "new");
        assert_eq!(mode(&base.join("a")), 0o640);
        let left = fs::read_dir(base.join("below")).expect("it was there before").count();
        assert_eq!(left, 0);
        apply(&[change(&base, "made/deep/c", None)]).expect("nothing is in the way");
        assert!(!base.join("made").exists(), "made here, and empty");
    }

    #[test]
    fn a_copy_is_private_until_it_has_the_mode_of_its_file() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("a");
        fs::write(&path, "secret").expect("a file");
        let file = Snapshot::read(&path).expect("readable");
        let copy = directory.path().join("copy");
        create(&copy, &file, true).expect("created");
        assert_eq!(mode(&copy), 0o600);
    }
}
