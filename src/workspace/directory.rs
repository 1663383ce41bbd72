//! Opening what stands below a root, and nothing else: no symbolic link is followed in any component, no device or pipe is waited for. All
//! that a scan asks of the system about files is asked here.
//!
//! Must not know Git or policy. Invariant: a descriptor handed out is of an object below the root at the moment of the call.

use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
#[cfg(target_os = "linux")]
use std::sync::atomic::{AtomicBool, Ordering};

#[cfg(target_os = "linux")]
use rustix::fs::ResolveFlags;
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags};

use super::WorkspaceError;

pub(super) use rustix::fs::{Dev, Stat};
pub(super) use rustix::io::Errno;

/// An open file or directory.
pub(super) type Handle = OwnedFd;

/// An open root directory.
#[derive(Debug)]
pub(super) struct Root {
    handle: Handle,
}

/// The directory of the last [`Root::stat`], kept open for the next in it.
#[derive(Debug, Default)]
pub(super) struct Parent {
    path: Vec<u8>,
    handle: Option<Handle>,
}

/// Set once the kernel, or a sandbox, turns out to refuse `openat2`.
#[cfg(target_os = "linux")]
static WITHOUT_OPENAT2: AtomicBool = AtomicBool::new(false);

const ALWAYS: OFlags = OFlags::NOFOLLOW.union(OFlags::CLOEXEC);
/// Never blocks, whatever stands there.
const FILE: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(ALWAYS);

impl Root {
    pub(super) fn open(path: &Path) -> Result<Self, WorkspaceError> {
        let handle = rustix::fs::openat(CWD, path, OFlags::RDONLY | OFlags::DIRECTORY | ALWAYS, Mode::empty())
            .map_err(|errno| WorkspaceError::Root { source: errno.into() })?;
        Ok(Self { handle })
    }

    /// Opens a file for reading. Never blocks, whatever stands there.
    pub(super) fn open_file(&self, path: &[u8]) -> Result<Handle, Errno> {
        self.open_below(path, FILE)
    }

    #[cfg(test)]
    pub(super) fn open_file_by_component(&self, path: &[u8]) -> Result<Handle, Errno> {
        self.open_by_component(path, FILE)
    }

    /// Opens a directory; `""` is the root itself.
    pub(super) fn open_directory(&self, path: &[u8]) -> Result<Handle, Errno> {
        let path = if path.is_empty() { b"." } else { path };
        self.open_below(path, OFlags::RDONLY | OFlags::DIRECTORY | ALWAYS)
    }

    /// Returns the stat of what stands at `path`, a symbolic link included; `None` when nothing does, or only through a link.
    pub(super) fn stat(&self, path: &[u8], parent: &mut Parent) -> Result<Option<Stat>, Errno> {
        let (directory, name) = match path.iter().rposition(|&byte| byte == b'/') {
            Some(slash) => (&path[..slash], &path[slash + 1..]),
            None => (&b""[..], path),
        };
        if parent.handle.is_none() || parent.path != directory {
            parent.handle = None;
            match self.open_below(if directory.is_empty() { b"." } else { directory }, DIRECTORY_PATH) {
                Ok(handle) => parent.handle = Some(handle),
                Err(errno) => return none_if_absent(errno),
            }
            parent.path.clear();
            parent.path.extend_from_slice(directory);
        }
        let handle = parent.handle.as_ref().expect("it was opened above");
        rustix::fs::statat(handle, name, AtFlags::SYMLINK_NOFOLLOW).map_or_else(none_if_absent, |stat| Ok(Some(stat)))
    }

    /// Returns the stat of what stands at `path`, `""` for the root itself, as quickly as it can be had: links in the last place are not
    /// followed, others are.
    pub(super) fn glimpse(&self, path: &[u8]) -> Result<Stat, Errno> {
        let path = if path.is_empty() { b"." } else { path };
        rustix::fs::statat(&self.handle, path, AtFlags::SYMLINK_NOFOLLOW)
    }

    fn open_below(&self, path: &[u8], flags: OFlags) -> Result<Handle, Errno> {
        #[cfg(target_os = "linux")]
        if !WITHOUT_OPENAT2.load(Ordering::Relaxed) {
            let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
            match rustix::fs::openat2(&self.handle, path, flags, Mode::empty(), resolve) {
                // EPERM is what a sandbox answers that does not know the call; the other way tells whether it was that.
                Err(Errno::NOSYS | Errno::PERM) => {}
                result => return result,
            }
            let result = self.open_by_component(path, flags);
            if result.is_ok() {
                WITHOUT_OPENAT2.store(true, Ordering::Relaxed);
            }
            return result;
        }
        self.open_by_component(path, flags)
    }

    fn open_by_component(&self, path: &[u8], flags: OFlags) -> Result<Handle, Errno> {
        let mut parent: Option<Handle> = None;
        let mut rest = path;
        while let Some(slash) = rest.iter().position(|&byte| byte == b'/') {
            let handle = parent.as_ref().map_or(self.handle.as_fd(), AsFd::as_fd);
            // A link in the way is ENOTDIR here, which says as well that nothing stands below the root at this path.
            parent = Some(rustix::fs::openat(handle, &rest[..slash], DIRECTORY_PATH, Mode::empty())?);
            rest = &rest[slash + 1..];
        }
        let handle = parent.as_ref().map_or(self.handle.as_fd(), AsFd::as_fd);
        rustix::fs::openat(handle, rest, flags, Mode::empty())
    }
}

fn none_if_absent(errno: Errno) -> Result<Option<Stat>, Errno> {
    if matches!(errno, Errno::NOENT | Errno::NOTDIR | Errno::LOOP) { Ok(None) } else { Err(errno) }
}

#[cfg(target_os = "linux")]
const DIRECTORY_PATH: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(ALWAYS);
#[cfg(not(target_os = "linux"))]
const DIRECTORY_PATH: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(ALWAYS);

/// What a name in a directory stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    File,
    Directory,
    Symlink,
    /// A pipe, socket or device.
    Other,
}

impl Kind {
    fn of(file_type: FileType) -> Self {
        match file_type {
            FileType::RegularFile => Self::File,
            FileType::Directory => Self::Directory,
            FileType::Symlink => Self::Symlink,
            _ => Self::Other,
        }
    }
}

/// The names of one directory, kept so that the buffers serve many directories.
pub(super) struct Names {
    /// Each name, a zero and the kind.
    text: Vec<u8>,
    found: Vec<(std::ops::Range<usize>, Kind)>,
    #[cfg(target_os = "linux")]
    buffer: Vec<std::mem::MaybeUninit<u8>>,
}

impl Names {
    pub(super) fn new() -> Self {
        Self {
            text: Vec::new(),
            found: Vec::new(),
            #[cfg(target_os = "linux")]
            buffer: vec![std::mem::MaybeUninit::uninit(); 32 << 10],
        }
    }

    /// Reads the names of a directory, without `.`, `..` and `.git`, in no order.
    pub(super) fn read(&mut self, directory: &Handle) -> Result<(), Errno> {
        let directory = directory.as_fd();
        self.text.clear();
        self.found.clear();
        #[cfg(target_os = "linux")]
        {
            let mut buffer = std::mem::take(&mut self.buffer);
            let mut entries = rustix::fs::RawDir::new(directory, &mut buffer);
            let mut result = Ok(());
            while let Some(entry) = entries.next() {
                match entry {
                    Ok(entry) => self.add(directory, entry.file_name(), entry.file_type()),
                    Err(errno) => {
                        result = Err(errno);
                        break;
                    }
                }
            }
            self.buffer = buffer;
            result
        }
        #[cfg(not(target_os = "linux"))]
        {
            for entry in rustix::fs::Dir::read_from(directory)? {
                let entry = entry?;
                self.add(directory, entry.file_name(), entry.file_type());
            }
            Ok(())
        }
    }

    fn add(&mut self, directory: BorrowedFd<'_>, name: &CStr, file_type: FileType) {
        if matches!(name.to_bytes(), b"." | b"..") || is_git(name.to_bytes()) {
            return;
        }
        let kind = match file_type {
            // Some file systems do not tell in the directory; a name that is gone by now was not there.
            FileType::Unknown => match rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => kind(&stat),
                Err(_) => return,
            },
            known => Kind::of(known),
        };
        let start = self.text.len();
        self.text.extend_from_slice(name.to_bytes());
        self.found.push((start..self.text.len(), kind));
        self.text.extend_from_slice(&[0, kind as u8]);
    }

    /// Returns all names and their kinds in bytes that are equal only for the same of both, in the same order.
    pub(super) fn encoded(&self) -> &[u8] {
        &self.text
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&[u8], Kind)> {
        self.found.iter().map(|(range, kind)| (&self.text[range.clone()], *kind))
    }
}

/// Returns whether a name is that of Git's own directory, however it is written where the system does not tell these apart.
fn is_git(name: &[u8]) -> bool {
    if cfg!(target_os = "macos") { name.eq_ignore_ascii_case(b".git") } else { name == b".git" }
}

/// Opens a file by its name in an open directory, following no link.
pub(super) fn open_in(directory: &Handle, name: &str) -> Result<Handle, Errno> {
    rustix::fs::openat(directory, name, FILE, Mode::empty())
}

/// Opens a file anywhere, following links on the way to it and, where it `follows`, in its place.
pub(super) fn open_anywhere(path: &Path, follows: bool) -> Result<Handle, Errno> {
    let flags = if follows { FILE.difference(OFlags::NOFOLLOW) } else { FILE };
    rustix::fs::openat(CWD, path, flags, Mode::empty())
}

/// Returns the stat of what is open.
pub(super) fn stat(handle: &Handle) -> Result<Stat, Errno> {
    rustix::fs::fstat(handle)
}

/// Returns the stat of what stands anywhere, following links.
pub(super) fn stat_anywhere(path: &Path) -> Result<Stat, Errno> {
    rustix::fs::stat(path)
}

/// Returns what an object is.
pub(super) fn kind(stat: &Stat) -> Kind {
    Kind::of(FileType::from_raw_mode(stat.st_mode))
}

/// Returns whether its owner may run a file.
pub(super) fn is_executable(stat: &Stat) -> bool {
    stat.st_mode & 0o100 != 0
}

/// Reads from where the last reading of a file ended; 0 at its end.
pub(super) fn read(handle: &Handle, buffer: &mut [u8]) -> Result<usize, Errno> {
    rustix::io::read(handle, buffer)
}

/// Reads a small regular file whole; `None` when there is none at this path or it is larger than `limit`.
pub(super) fn read_small(handle: &Handle, limit: u64) -> Result<Option<Vec<u8>>, Errno> {
    let stat = stat(handle)?;
    if kind(&stat) != Kind::File || stat.st_size as u64 > limit {
        return Ok(None);
    }
    let mut bytes = vec![0; stat.st_size as usize + 1];
    let mut length = 0;
    loop {
        match read(handle, &mut bytes[length..]) {
            Ok(0) => break,
            Ok(count) => length += count,
            Err(Errno::INTR) => continue,
            Err(errno) => return Err(errno),
        }
        if length == bytes.len() {
            bytes.resize(length * 2, 0);
        }
        if length as u64 > limit {
            return Ok(None);
        }
    }
    bytes.truncate(length);
    Ok(Some(bytes))
}
