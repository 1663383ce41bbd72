//! Opening what stands below a root, and nothing else: no symbolic link is followed in any component, no device or pipe is waited for.
//!
//! Must not know Git or policy. Invariant: a descriptor handed out is of an object below the root at the moment of the call.

use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
#[cfg(target_os = "linux")]
use std::sync::atomic::{AtomicBool, Ordering};

#[cfg(target_os = "linux")]
use rustix::fs::ResolveFlags;
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::WorkspaceError;

/// An open root directory.
#[derive(Debug)]
pub(super) struct Root {
    handle: OwnedFd,
}

/// The directory of the last [`Root::stat`], kept open for the next in it.
#[derive(Debug, Default)]
pub(super) struct Parent {
    path: Vec<u8>,
    handle: Option<OwnedFd>,
}

/// Set once the kernel, or a sandbox, turns out to refuse `openat2`.
#[cfg(target_os = "linux")]
static WITHOUT_OPENAT2: AtomicBool = AtomicBool::new(false);

const ALWAYS: OFlags = OFlags::NOFOLLOW.union(OFlags::CLOEXEC);

impl Root {
    pub(super) fn open(path: &Path) -> Result<Self, WorkspaceError> {
        let handle = rustix::fs::openat(CWD, path, OFlags::RDONLY | OFlags::DIRECTORY | ALWAYS, Mode::empty())
            .map_err(|errno| WorkspaceError::Root { source: errno.into() })?;
        Ok(Self { handle })
    }

    /// Opens a file for reading. Never blocks, whatever stands there.
    pub(super) fn open_file(&self, path: &[u8]) -> Result<OwnedFd, Errno> {
        self.open_below(path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | ALWAYS)
    }

    #[cfg(test)]
    pub(super) fn open_file_by_component(&self, path: &[u8]) -> Result<OwnedFd, Errno> {
        self.open_by_component(path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | ALWAYS)
    }

    /// Opens a directory; `""` is the root itself.
    pub(super) fn open_directory(&self, path: &[u8]) -> Result<OwnedFd, Errno> {
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

    fn open_below(&self, path: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
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

    fn open_by_component(&self, path: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
        let mut parent: Option<OwnedFd> = None;
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
    pub(super) fn of(file_type: FileType) -> Self {
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
    pub(super) fn read(&mut self, directory: BorrowedFd<'_>) -> Result<(), Errno> {
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
                Ok(stat) => Kind::of(FileType::from_raw_mode(stat.st_mode)),
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

/// Reads a small regular file whole; `None` when there is none at this path or it is larger than `limit`.
pub(super) fn read_small(handle: &OwnedFd, limit: u64) -> Result<Option<Vec<u8>>, Errno> {
    let stat = rustix::fs::fstat(handle)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile || stat.st_size as u64 > limit {
        return Ok(None);
    }
    let mut bytes = vec![0; stat.st_size as usize + 1];
    let mut length = 0;
    loop {
        match rustix::io::read(handle, &mut bytes[length..]) {
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
