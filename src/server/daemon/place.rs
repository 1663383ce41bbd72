//! Where the daemon of a user, a cache and a build is found: a directory of its own, and in it a socket, a lock and a log.
//!
//! Must not know what is said over the socket. Invariant: nobody but the user can enter the directory, and whoever holds the lock is the
//! only daemon of the place; all that is changed on the disk for a daemon is changed here.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use crate::config::{canonical_future, running_program};
use crate::model::{Canonical, ContentHash};

/// How many logs are kept, of this build and of those before.
const MOST_LOGS: usize = 6;
/// The longest log; with the one before it a daemon keeps twice as much.
const MOST_LOG: u64 = 512 << 10;
/// Characters of a digest in a name: together they leave room for the longest runtime directory in the address of a socket.
const DIGEST_LETTERS: usize = 16;

/// Where a daemon is, or would be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    directory: PathBuf,
    /// Of the cache and of what the process sees, then of the build.
    sight: String,
    build: String,
    cache_dir: PathBuf,
}

impl Place {
    /// Returns the place of the daemon of a cache for this build, as this process sees files: in a runtime directory that belongs to the
    /// user, else in the cache.
    pub fn new(cache_dir: &Path, runtime_dir: Option<&Path>) -> Self {
        let owned = runtime_dir.filter(|path| fs::metadata(path).is_ok_and(|found| found.is_dir() && is_own(&found)));
        let directory = owned.map_or_else(|| cache_dir.join("daemon"), |path| path.join("sextant"));
        Self { directory, sight: sight(&canonical_future(cache_dir)), build: build(), cache_dir: cache_dir.to_owned() }
    }

    /// Returns what tells this build from every other.
    pub fn build(&self) -> &str {
        &self.build
    }

    pub fn cache_dir(&self) -> &Path {
        &self.cache_dir
    }

    /// Returns whether the file of the running program has no name any more, or is another by now.
    pub fn is_replaced(&self) -> bool {
        if cfg!(target_os = "linux") {
            // The image that runs is found without a name, and is the same for ever.
            fs::metadata(running_program()).is_ok_and(|found| found.nlink() == 0)
        } else {
            build() != self.build
        }
    }

    pub fn socket(&self) -> PathBuf {
        self.directory.join(self.name("sock"))
    }

    /// Returns where a daemon that has no terminal writes what it does.
    pub fn log(&self) -> PathBuf {
        self.cache_dir.join("daemon").join(self.name("log"))
    }

    fn name(&self, suffix: &str) -> String {
        format!("{}-{}.{suffix}", self.sight, self.build)
    }

    /// Opens a connection to whatever listens here, without waiting for it.
    ///
    /// # Errors
    /// When nothing listens, or what does is not this user's.
    pub fn connect(&self) -> io::Result<UnixStream> {
        let directory = Directory::open(&self.directory)?;
        let socket = socket()?;
        let address = SocketAddrUnix::new(directory.address(&self.name("sock")))?;
        // A queue that is full is as good as nobody: whoever does not take connections will not answer either.
        rustix::net::connect(&socket, &address)?;
        let stream = UnixStream::from(socket);
        stream.set_nonblocking(false)?;
        if !is_own_peer(&stream) {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        Ok(stream)
    }

    /// Makes the directory, so that whoever starts a daemon in the background learns why it cannot be used.
    ///
    /// # Errors
    /// As [`Self::take`].
    pub fn prepare(&self) -> io::Result<()> {
        Directory::make(&self.directory).map(drop)
    }

    /// Takes the place for this process, making the directory; `None` when another one has it.
    ///
    /// # Errors
    /// When the directory cannot be made or is not the user's alone.
    pub fn take(&self) -> io::Result<Option<Claim>> {
        let directory = Directory::make(&self.directory)?;
        let path = directory.path.join(self.name("lock"));
        let mut lock = lock(&path)?;
        for _ in 0..3 {
            if lock.is_none() {
                // Another build may only be looking whether it is stale.
                std::thread::sleep(Duration::from_millis(10));
                lock = self::lock(&path)?;
            }
        }
        let Some(lock) = lock else { return Ok(None) };
        directory.sweep();
        let socket = directory.path.join(self.name("sock"));
        remove(&socket)?;
        let address = directory.address(&self.name("sock"));
        Ok(Some(Claim { lock: path, socket, address, _lock: lock, directory }))
    }
}

/// The right to be the daemon of a place. Letting go of it removes the socket and the lock.
#[derive(Debug)]
pub struct Claim {
    directory: Directory,
    socket: PathBuf,
    lock: PathBuf,
    address: PathBuf,
    _lock: File,
}

impl Claim {
    /// Listens on the socket, which nobody but the user can open.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn listen(&self) -> io::Result<UnixListener> {
        let listener = UnixListener::bind(&self.address)?;
        fs::set_permissions(&self.address, fs::Permissions::from_mode(0o600))?;
        Ok(listener)
    }

    /// Returns which file the socket is; `None` when there is none.
    pub fn identity(&self) -> Option<(u64, u64)> {
        identity(&self.socket)
    }

    pub fn directory(&self) -> &Path {
        &self.directory.path
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        // What cannot be removed is found to be stale by the next daemon.
        let _ = remove(&self.socket);
        let _ = remove(&self.lock);
        // Goes only when it is empty.
        let _ = fs::remove_dir(&self.directory.path);
    }
}

/// Returns which file or directory stands at a path.
pub fn identity(path: &Path) -> Option<(u64, u64)> {
    fs::symlink_metadata(path).ok().map(|found| (found.dev(), found.ino()))
}

/// The directory, held open so that it cannot be exchanged.
#[derive(Debug)]
struct Directory {
    path: PathBuf,
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "it only keeps the directory"))]
    handle: OwnedFd,
}

impl Directory {
    fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let handle = rustix::fs::open(path, flags, Mode::empty())?;
        let found = File::from(handle.try_clone()?).metadata()?;
        if !is_own(&found) || found.mode() & 0o077 != 0 {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, "others may enter the directory of the socket"));
        }
        Ok(Self { path: path.to_owned(), handle })
    }

    fn make(path: &Path) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(path)?;
        Self::open(path)
    }

    /// Returns an address of a file in the directory. Addresses of sockets are short; the handle stands for however long a path.
    fn address(&self, name: &str) -> PathBuf {
        #[cfg(target_os = "linux")]
        {
            use std::os::fd::AsRawFd;
            PathBuf::from(format!("/proc/self/fd/{}/{name}", self.handle.as_raw_fd()))
        }
        #[cfg(not(target_os = "linux"))]
        self.path.join(name)
    }

    /// Removes what daemons that were killed left behind.
    fn sweep(&self) {
        let Ok(entries) = fs::read_dir(&self.path) else { return };
        for path in entries.filter_map(Result::ok).map(|entry| entry.path()) {
            if path.extension().is_some_and(|suffix| suffix == "lock")
                && let Ok(Some(lock)) = lock(&path)
            {
                let _ = remove(&path.with_extension("sock"));
                let _ = remove(&path);
                drop(lock);
            }
        }
    }
}

/// Takes a lock, making its file; `None` when another process holds it. The lock ends with the process, however that ends.
fn lock(path: &Path) -> io::Result<Option<File>> {
    loop {
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
        let file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).custom_flags(flags).open(path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        let held = file.metadata()?;
        // Whoever had it may have removed it since it was opened; then this lock is of no use.
        if identity(path) == Some((held.dev(), held.ino())) {
            return Ok(Some(file));
        }
    }
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        outcome => outcome,
    }
}

fn socket() -> io::Result<OwnedFd> {
    #[cfg(target_os = "linux")]
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    #[cfg(not(target_os = "linux"))]
    let flags = SocketFlags::empty();
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    #[cfg(not(target_os = "linux"))]
    {
        rustix::io::ioctl_fionbio(&socket, true)?;
        rustix::io::fcntl_setfd(&socket, rustix::io::FdFlags::CLOEXEC)?;
    }
    Ok(socket)
}

fn is_own(found: &fs::Metadata) -> bool {
    found.uid() == rustix::process::geteuid().as_raw()
}

/// Returns whether the process at the other end runs as the same user.
pub fn is_own_peer(stream: &UnixStream) -> bool {
    let own = rustix::process::geteuid().as_raw();
    #[cfg(target_os = "linux")]
    {
        rustix::net::sockopt::socket_peercred(stream).is_ok_and(|peer| peer.uid.as_raw() == own)
    }
    #[cfg(not(target_os = "linux"))]
    {
        use std::os::fd::AsRawFd;
        let (mut uid, mut gid) = (0, 0);
        // SAFETY: the descriptor is open for as long as the stream is borrowed, and both pointers are to live locals.
        unsafe { libc::getpeereid(stream.as_raw_fd(), &raw mut uid, &raw mut gid) == 0 && uid == own }
    }
}

/// Returns the process at the other end, if it is one of this program and of this user.
pub fn peer_of_this_program(stream: &UnixStream) -> Option<u32> {
    let pid = peer_process(stream)?;
    let identity = |path: PathBuf| fs::metadata(path).ok().map(|found| (found.dev(), found.ino()));
    let theirs = identity(program_of(pid)?);
    (is_own_peer(stream) && theirs.is_some() && theirs == identity(running_program())).then_some(pid)
}

#[cfg(target_os = "linux")]
fn peer_process(stream: &UnixStream) -> Option<u32> {
    let peer = rustix::net::sockopt::socket_peercred(stream).ok()?;
    u32::try_from(peer.pid.as_raw_nonzero().get()).ok()
}

#[cfg(target_os = "linux")]
fn program_of(pid: u32) -> Option<PathBuf> {
    Some(PathBuf::from(format!("/proc/{pid}/exe")))
}

#[cfg(target_os = "macos")]
fn peer_process(stream: &UnixStream) -> Option<u32> {
    use std::os::fd::AsRawFd;
    let mut pid: libc::pid_t = 0;
    let mut size = libc::socklen_t::try_from(size_of::<libc::pid_t>()).ok()?;
    // SAFETY: the descriptor is open for as long as the stream is borrowed, and both pointers are to live locals of the size that is told.
    let told = unsafe {
        let (level, what) = (libc::SOL_LOCAL, libc::LOCAL_PEERPID);
        libc::getsockopt(stream.as_raw_fd(), level, what, (&raw mut pid).cast(), &raw mut size)
    };
    if told == 0 { u32::try_from(pid).ok() } else { None }
}

#[cfg(target_os = "macos")]
fn program_of(pid: u32) -> Option<PathBuf> {
    use std::os::unix::ffi::OsStringExt;
    let pid = libc::c_int::try_from(pid).ok()?;
    let mut path = vec![0_u8; usize::try_from(libc::PROC_PIDPATHINFO_MAXSIZE).ok()?];
    // SAFETY: the pointer is to a live buffer of the size that is told.
    let length = unsafe { libc::proc_pidpath(pid, path.as_mut_ptr().cast(), u32::try_from(path.len()).ok()?) };
    path.truncate(usize::try_from(length).ok().filter(|length| *length > 0)?);
    Some(std::ffi::OsString::from_vec(path).into())
}

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
fn peer_process(_: &UnixStream) -> Option<u32> {
    None
}

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
fn program_of(_: u32) -> Option<PathBuf> {
    None
}

/// Tells a process to end, and lets it run if it is stopped.
///
/// # Errors
/// When there is none, or it is not this user's.
pub fn make_end(pid: u32) -> io::Result<()> {
    use rustix::process::{Pid, Signal, kill_process};
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::NotFound)?;
    kill_process(pid, Signal::TERM)?;
    Ok(kill_process(pid, Signal::CONT)?)
}

/// Has this process listed under the name of the program: the image that it runs is found under another.
pub fn name_process() {
    if cfg!(target_os = "linux") {
        // It is for people alone.
        let _ = fs::write("/proc/self/comm", "sextant");
    }
}

/// Returns what tells this build from every other: which file the running program is, and its state. A program that was replaced, be it
/// by one of the same version, is another build.
fn build() -> String {
    let mut record = Canonical::new("build");
    record.field(env!("CARGO_PKG_VERSION").as_bytes());
    if let Ok(found) = fs::metadata(running_program()) {
        for number in [found.dev(), found.ino(), found.size(), found.mtime().cast_unsigned(), found.mtime_nsec().cast_unsigned()]
        {
            record.number(number);
        }
    }
    letters(record)
}

/// Returns a digest of the cache and of what decides which files a process finds at a path and may read: a daemon must see what the client
/// sees, or a container, another root or other groups would make it answer from other files.
fn sight(cache_dir: &Path) -> String {
    let mut record = Canonical::new("sight");
    record.field(cache_dir.as_os_str().as_encoded_bytes());
    record.number(rustix::process::geteuid().as_raw().into()).number(rustix::process::getegid().as_raw().into());
    let mut groups: Vec<u32> = rustix::process::getgroups().unwrap_or_default().into_iter().map(|group| group.as_raw()).collect();
    groups.sort_unstable();
    for group in groups {
        record.number(group.into());
    }
    let (device, inode) = identity(Path::new("/")).unwrap_or_default();
    record.number(device).number(inode);
    let mounts = fs::read_link("/proc/self/ns/mnt").unwrap_or_default();
    record.field(mounts.as_os_str().as_encoded_bytes());
    letters(record)
}

fn letters(record: Canonical) -> String {
    let mut digest = ContentHash(record.finish()).hex();
    digest.truncate(DIGEST_LETTERS);
    digest
}

/// A log of bounded size: what is full becomes the old one, in place of the one before.
#[derive(Debug)]
pub struct Log {
    path: PathBuf,
    file: File,
    length: u64,
}

impl Log {
    /// Opens a log for appending, with the directory that holds it, and removes the oldest of those that other builds left.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn begin(path: &Path) -> io::Result<Self> {
        let log = Self::open(path)?;
        let entries = path.parent().and_then(|directory| fs::read_dir(directory).ok()).into_iter().flatten();
        let mut others: Vec<_> = entries
            .filter_map(|entry| entry.ok().map(|entry| entry.path()))
            .filter(|found| {
                let name = found.file_name().unwrap_or_default().to_string_lossy();
                found != path && (name.ends_with(".log") || name.ends_with(".log.old"))
            })
            .filter_map(|found| Some((fs::symlink_metadata(&found).ok()?.modified().ok()?, found)))
            .collect();
        others.sort_by(|one, other| other.cmp(one));
        // A daemon that still writes to one goes on without a trace.
        others.iter().skip(MOST_LOGS - 1).for_each(|(_, found)| drop(remove(found)));
        Ok(log)
    }

    fn open(path: &Path) -> io::Result<Self> {
        if let Some(directory) = path.parent() {
            drop(Directory::make(directory)?);
        }
        let flags = OFlags::NOFOLLOW.bits().cast_signed();
        let file = OpenOptions::new().append(true).create(true).mode(0o600).custom_flags(flags).open(path)?;
        let length = file.metadata()?.len();
        Ok(Self { path: path.to_owned(), file, length })
    }
}

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.length > MOST_LOG {
            fs::rename(&self.path, self.path.with_extension("log.old"))?;
            *self = Self::open(&self.path)?;
        }
        let count = self.file.write(bytes)?;
        self.length += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn place(folder: &Path) -> Place {
        Place::new(&folder.join("cache"), Some(folder))
    }

    #[test]
    fn one_claim_at_a_time_and_nothing_left() {
        let folder = tempfile::tempdir().expect("a folder");
        let place = place(folder.path());
        assert!(place.connect().is_err(), "nobody is there");
        let claim = place.take().expect("the folder is ours").expect("nobody has it");
        assert!(place.take().expect("the folder is ours").is_none());
        let listener = claim.listen().expect("a socket");
        assert!(claim.identity().is_some());
        let stream = place.connect().expect("it listens");
        assert!(is_own_peer(&stream) && is_own_peer(&listener.accept().expect("connected").0));
        drop((listener, claim));
        assert_eq!(fs::read_dir(folder.path()).expect("readable").count(), 0);
        assert!(place.take().expect("the folder is ours").is_some());
    }

    #[test]
    fn what_is_stale_gives_way() {
        let folder = tempfile::tempdir().expect("a folder");
        let place = place(folder.path());
        let claim = place.take().expect("ours").expect("free");
        drop(claim.listen().expect("a socket"));
        fs::write(claim.directory().join("0-1.lock"), "").expect("written");
        fs::write(claim.directory().join("0-1.sock"), "").expect("written");
        let directory = claim.directory().to_owned();
        // As a process that is killed: the lock ends and the files stay.
        let Claim { lock, socket, .. } = &claim;
        let (kept_lock, kept_socket) = (folder.path().join("l"), folder.path().join("s"));
        fs::rename(lock, &kept_lock).and_then(|()| fs::rename(socket, &kept_socket)).expect("renamed");
        let (lock, socket) = (lock.clone(), socket.clone());
        drop(claim);
        fs::create_dir_all(&directory).expect("made");
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o700)).expect("ours");
        fs::rename(kept_lock, lock).and_then(|()| fs::rename(kept_socket, &socket)).expect("renamed");
        assert!(place.connect().is_err(), "nobody listens");
        let claim = place.take().expect("ours").expect("its holder is gone");
        drop(claim.listen().expect("the name is free"));
        assert!(!directory.join("0-1.sock").exists() && !directory.join("0-1.lock").exists());
    }

    #[test]
    fn a_directory_that_others_enter_is_not_used() {
        let folder = tempfile::tempdir().expect("a folder");
        let place = place(folder.path());
        fs::create_dir(folder.path().join("sextant")).expect("made");
        fs::set_permissions(folder.path().join("sextant"), fs::Permissions::from_mode(0o755)).expect("ours");
        assert_eq!(place.take().expect_err("refused").kind(), io::ErrorKind::PermissionDenied);
        fs::remove_dir(folder.path().join("sextant")).expect("removed");
        std::os::unix::fs::symlink("/tmp", folder.path().join("sextant")).expect("a link");
        assert!(place.take().is_err());
    }

    #[test]
    fn however_long_the_path() {
        let folder = tempfile::tempdir().expect("a folder");
        let long = folder.path().join("d".repeat(200));
        let place = Place::new(&long.join("cache"), None);
        if cfg!(target_os = "linux") {
            let claim = place.take().expect("ours").expect("free");
            let listener = claim.listen().expect("a socket");
            place.connect().expect("it listens");
            drop(listener);
        }
    }

    #[test]
    fn a_log_is_bounded() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("d/x.log");
        let mut log = Log::open(&path).expect("made");
        for _ in 0..40 {
            log.write_all(&[b'x'; 64 << 10]).expect("written");
        }
        let size: u64 = fs::read_dir(folder.path().join("d"))
            .expect("readable")
            .map(|entry| entry.expect("readable").metadata().expect("there").len())
            .sum();
        assert!(size <= 2 * (MOST_LOG + (64 << 10)), "{size}");
        for build in 0..20 {
            drop(Log::begin(&folder.path().join(format!("d/{build}.log"))).expect("made"));
        }
        let kept = fs::read_dir(folder.path().join("d")).expect("readable").count();
        assert!(kept == MOST_LOGS && folder.path().join("d/19.log").exists(), "{kept}");
    }
}
