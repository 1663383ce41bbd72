//! Every step that changes the cache on disk: files and directories made, written, forced to the disk, named and removed.
//!
//! Must not know what a file means beyond the part of the cache that it belongs to. Invariant: the store changes nothing on disk but
//! through here, and each pair of a part and a step that happens stands in [`POINTS`], so that a test can let each of them go wrong.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rusqlite::Connection;
use rustix::fs::OFlags;

/// What of the cache a step changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The directory of a binding.
    Binding,
    Lock,
    /// The directory of all packs.
    Packs,
    /// A pack of sources.
    Pack,
    /// The directory of the facts cache.
    FactsCache,
    /// A pack of facts.
    Facts,
    /// The directory of all generations.
    Generations,
    /// The directory of one generation.
    Generation,
    Lease,
    Database,
    /// What a delta lays over a database.
    Overlay,
    Seal,
    Pointer,
    LastBuild,
    /// What was asked to resolve the generation that serves.
    Traces,
    /// The mark that someone met damage.
    Mark,
    /// A generation that is not needed any more.
    Retired,
    /// What a killed builder left, and what does not belong into the cache.
    Leftover,
}

/// What is done to a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Makes a directory.
    Make,
    Create,
    /// Gives a file a second name.
    Link,
    Write,
    /// Opens an empty database.
    Open,
    /// Fills the tables of a database.
    Load,
    /// Makes the indexes of a database.
    Index,
    /// Ends the transaction that wrote a database.
    Commit,
    /// Forces the content of a file to the disk.
    Sync,
    /// Gives a whole file or directory its name.
    Rename,
    /// Forces the names in a directory to the disk.
    SyncNames,
    /// Notes the time of use.
    Touch,
    Remove,
}

/// Every durable step of the store.
#[cfg(feature = "faults")]
pub const POINTS: &[(Part, Step)] = &[
    (Part::Binding, Step::Make),
    (Part::Binding, Step::SyncNames),
    (Part::Lock, Step::Create),
    (Part::Packs, Step::Make),
    (Part::Packs, Step::SyncNames),
    (Part::Pack, Step::Create),
    (Part::Pack, Step::Write),
    (Part::Pack, Step::Sync),
    (Part::Pack, Step::Rename),
    (Part::Pack, Step::SyncNames),
    (Part::Pack, Step::Remove),
    (Part::FactsCache, Step::Make),
    (Part::Facts, Step::Create),
    (Part::Facts, Step::Write),
    (Part::Facts, Step::Rename),
    (Part::Facts, Step::Touch),
    (Part::Facts, Step::Remove),
    (Part::Generations, Step::Make),
    (Part::Generations, Step::SyncNames),
    (Part::Generation, Step::Make),
    (Part::Lease, Step::Create),
    (Part::Database, Step::Create),
    (Part::Database, Step::Link),
    (Part::Database, Step::Open),
    (Part::Database, Step::Load),
    (Part::Database, Step::Index),
    (Part::Database, Step::Commit),
    (Part::Database, Step::Sync),
    (Part::Overlay, Step::Create),
    (Part::Overlay, Step::Write),
    (Part::Overlay, Step::Open),
    (Part::Overlay, Step::Load),
    (Part::Overlay, Step::Commit),
    (Part::Overlay, Step::Sync),
    (Part::Seal, Step::Create),
    (Part::Seal, Step::Write),
    (Part::Seal, Step::Sync),
    (Part::Generation, Step::SyncNames),
    (Part::Generation, Step::Rename),
    (Part::Generation, Step::Remove),
    (Part::Pointer, Step::Create),
    (Part::Pointer, Step::Write),
    (Part::Pointer, Step::Sync),
    (Part::Pointer, Step::Rename),
    (Part::Pointer, Step::SyncNames),
    (Part::Pointer, Step::Remove),
    (Part::LastBuild, Step::Create),
    (Part::LastBuild, Step::Write),
    (Part::LastBuild, Step::Sync),
    (Part::LastBuild, Step::Rename),
    (Part::LastBuild, Step::SyncNames),
    (Part::LastBuild, Step::Remove),
    (Part::Traces, Step::Create),
    (Part::Traces, Step::Write),
    (Part::Traces, Step::Rename),
    (Part::Traces, Step::Remove),
    (Part::Mark, Step::Create),
    (Part::Mark, Step::Remove),
    (Part::Retired, Step::Rename),
    (Part::Retired, Step::Remove),
    (Part::Leftover, Step::Remove),
];

/// A new file of the cache while it is written.
#[derive(Debug)]
pub(super) struct NewFile {
    file: File,
    part: Part,
    path: PathBuf,
}

impl NewFile {
    /// Locks the file for as long as it is open.
    pub fn lock(&self) -> io::Result<()> {
        self.file.lock()
    }

    /// Forces what was written to the disk.
    pub fn sync(&self) -> io::Result<()> {
        pass(self.part, Step::Sync, &self.path)?;
        barrier(|| force(&self.file))?;
        settled(Step::Sync, &self.path);
        Ok(())
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        pass_write(self.part, Step::Write, &self.path, &self.file, bytes)?;
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Creates a new file that only its owner reads.
pub(super) fn create(part: Part, path: &Path) -> io::Result<NewFile> {
    pass(part, Step::Create, path)?;
    let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path)?;
    settled(Step::Create, path);
    Ok(NewFile { file, part, path: path.to_owned() })
}

/// Gives a file of the cache a second name. What it holds is on the disk already.
pub(super) fn link(part: Part, from: &Path, to: &Path) -> io::Result<()> {
    pass(part, Step::Link, to)?;
    fs::hard_link(from, to)?;
    settled(Step::Link, to);
    Ok(())
}

/// Opens the lock of the builders, which is made when it is missing.
pub(super) fn open_lock(path: &Path) -> io::Result<File> {
    // Opening one that is there changes nothing.
    if fs::symlink_metadata(path).is_err() {
        pass(Part::Lock, Step::Create, path)?;
    }
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY).bits();
    // Read and write, so that a pipe in the place of the file opens at once.
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(flags.cast_signed())
        .open(path)
}

/// Opens a database for writing. The file is there already, and keeps its mode.
pub(super) fn open_database(path: &Path) -> Result<Connection, rusqlite::Error> {
    Connection::open(path)
}

/// Opens a database for writing what lies over it. `uri` must choose a way that never writes to the database itself.
pub(super) fn open_overlaid(uri: &str) -> Result<Connection, rusqlite::Error> {
    use rusqlite::OpenFlags;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI;
    Connection::open_with_flags(uri, flags)
}

/// Says that a database or what lies over it is about to be changed by this step.
pub(super) fn pass_database(part: Part, step: Step, path: &Path) -> io::Result<()> {
    pass(part, step, path)
}

/// Forces what SQLite wrote and closed to the disk.
pub(super) fn sync_database(part: Part, path: &Path) -> io::Result<()> {
    pass(part, Step::Sync, path)?;
    barrier(|| force(&File::open(path)?))?;
    settled(Step::Sync, path);
    Ok(())
}

/// Makes a directory that only its owner enters, with those above it. Another kind of thing in its place gives way when it `yields`.
/// Returns whether it was made now.
pub(super) fn make_directory(part: Part, path: &Path, yields: bool) -> io::Result<bool> {
    let make = || {
        pass(part, Step::Make, path)?;
        DirBuilder::new().recursive(false).mode(0o700).create(path)?;
        settled(Step::Make, path);
        Ok(true)
    };
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() || (!yields && fs::metadata(path)?.is_dir()) => Ok(false),
        Ok(_) if yields => {
            remove(Part::Leftover, path)?;
            make()
        }
        Ok(_) => Err(io::Error::from(io::ErrorKind::NotADirectory)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
                make_directory(part, parent, false)?;
            }
            match make() {
                // Another process was quicker.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => make_directory(part, path, yields),
                outcome => outcome,
            }
        }
        Err(error) => Err(error),
    }
}

/// Takes from a file or directory of this user what others may do with it. Where the owner cannot even read it, which nobody asks for to
/// protect it, it gets `mode`. No point of [`POINTS`]: what is stored is the same before and after.
pub(super) fn make_private(path: &Path, mode: u32) -> io::Result<()> {
    let found = fs::symlink_metadata(path)?;
    let owned = found.uid() == rustix::process::geteuid().as_raw();
    if !owned || !(found.is_dir() || found.is_file()) {
        return Ok(());
    }
    let now = found.mode() & 0o7777;
    let readable = if found.is_dir() { 0o500 } else { 0o400 };
    let wanted = if now & readable == readable { now & 0o700 } else { mode };
    if wanted == now { Ok(()) } else { fs::set_permissions(path, fs::Permissions::from_mode(wanted)) }
}

/// Makes a directory as [`make_directory`] does, in place of whatever else stands there, and forces its name to the disk when it is new.
pub(super) fn ensure_directory(part: Part, path: &Path) -> io::Result<()> {
    if make_directory(part, path, true)?
        && let Some(parent) = path.parent()
    {
        sync_names(part, parent)?;
    }
    Ok(())
}

/// Gives a file or directory another name, in place of a file that has it.
pub(super) fn rename(part: Part, from: &Path, to: &Path) -> io::Result<()> {
    pass_rename(part, Step::Rename, from, to)?;
    fs::rename(from, to)?;
    settled(Step::Rename, to);
    Ok(())
}

/// Removes whatever stands at `path`, following nothing. Nothing there is success.
pub(super) fn remove(part: Part, path: &Path) -> io::Result<()> {
    let found = match fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    pass(part, Step::Remove, path)?;
    let outcome = if found.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    match outcome {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        outcome => outcome,
    }
}

/// Forces the names in a directory to the disk.
pub(super) fn sync_names(part: Part, directory: &Path) -> io::Result<()> {
    pass(part, Step::SyncNames, directory)?;
    barrier(|| force(&File::open(directory)?))?;
    settled(Step::SyncNames, directory);
    Ok(())
}

/// Forces a file or the names in a directory to the disk.
fn force(file: &File) -> io::Result<()> {
    match file.sync_all() {
        // macOS asks the drive itself for it, which file systems of other machines cannot; what every system knows is the next best.
        Err(error) if cfg!(target_os = "macos") && matches!(error.raw_os_error(), Some(libc::ENOTSUP | libc::ENOTTY)) => {
            Ok(rustix::fs::fsync(file)?)
        }
        outcome => outcome,
    }
}

/// Notes on a file of a part that it was used at this time.
pub(super) fn touch(part: Part, path: &Path, file: &File, time: SystemTime) -> io::Result<()> {
    pass(part, Step::Touch, path)?;
    file.set_modified(time)
}

// What follows is where the test-only feature takes part; a normal build has no trace of it.

#[cfg(not(feature = "faults"))]
mod seam {
    use super::{File, Part, Path, Step, io};

    pub(super) fn pass(_: Part, _: Step, _: &Path) -> io::Result<()> {
        Ok(())
    }

    pub(super) fn pass_write(_: Part, _: Step, _: &Path, _: &File, _: &[u8]) -> io::Result<()> {
        Ok(())
    }

    pub(super) fn pass_rename(_: Part, _: Step, _: &Path, _: &Path) -> io::Result<()> {
        Ok(())
    }

    pub(super) fn settled(_: Step, _: &Path) {}

    pub(super) fn barrier(sync: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        sync()
    }
}

#[cfg(feature = "faults")]
use super::faults as seam;
use seam::{barrier, pass, pass_rename, pass_write, settled};
