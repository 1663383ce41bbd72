//! The files of hosts: read whole, and replaced all or none.
//!
//! Must not know what is in them. Invariant: a file is either as it was or as it was planned to be, with its mode, at the place that a
//! link leads to; and nothing is replaced that changed since it was read.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

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
    let outcome = outcome.and_then(|()| {
        changes
            .iter()
            .zip(&mut ready)
            .enumerate()
            .try_for_each(|(position, (change, ready))| replace(change, ready).map_err(|error| (position, error)))
    });
    if outcome.is_err() {
        for ready in ready.iter().rev() {
            // What is left lying about is no harm, and the first failure is the one to tell of.
            ready.temporary.iter().for_each(|path| drop(fs::remove_file(path)));
            ready.made.iter().rev().for_each(|directory| drop(fs::remove_dir(directory)));
        }
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
    let name = file.target.file_name().unwrap_or_default().to_string_lossy();
    let temporary = directory.join(format!(".{name}.sextant-{}", std::process::id()));
    let mode = if *is_script { 0o777 } else { 0o666 };
    let options = OpenOptions::new().write(true).create_new(true).mode(mode).open(&temporary);
    let mut out = options.map_err(failed("written"))?;
    ready.temporary = Some(temporary);
    out.write_all(after.as_bytes()).map_err(failed("written"))?;
    if let Some(metadata) = &file.metadata {
        // Only the superuser edits files of others, and may fail to give them back on some file systems.
        let _ = std::os::unix::fs::fchown(&out, Some(metadata.uid()), Some(metadata.gid()));
        out.set_permissions(metadata.permissions()).map_err(failed("given its mode"))?;
    }
    out.sync_all().map_err(failed("written"))
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
        Ok(()) => made.push(directory.to_owned()),
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
            ready.made.clear();
        }
        None => {
            fs::remove_file(&file.target).map_err(failed("removed"))?;
            // Those that hold anything stay by themselves.
            let above = file.target.ancestors().skip(1).take_while(|directory| *directory != change.base);
            let _ = above.filter(|directory| directory.starts_with(&change.base)).try_for_each(fs::remove_dir);
        }
    }
    if let Some(directory) = file.target.parent().and_then(|directory| File::open(directory).ok()) {
        // Whether the name lasts through a power failure is no reason to fail.
        let _ = directory.sync_all();
    }
    Ok(())
}
