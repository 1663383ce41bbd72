//! What parsing asks of the operating system beyond the standard library: bounds on a process, waiting for two pipes.
//!
//! Must not know the protocol. Invariant: a process that passed [`isolate`] cannot outgrow its memory, leaves no core dump, holds no
//! descriptor but its three streams, and does not outlive its parent.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getppid, setrlimit};

use super::memory::{Memory, memory_in_use};

/// How much a pipe is asked to hold; most sources and facts then pass in one piece.
#[cfg(target_os = "linux")]
const PIPE_BYTES: libc::c_int = 1 << 20;

/// Bounds this process, which must have one thread: so much memory beyond what it has now, and no life beyond that of its parent.
///
/// # Errors
/// When the parent is gone already, or the system refuses a bound.
pub fn isolate(memory_bytes: u64, parent: u32) -> io::Result<()> {
    follow_parent(parent)?;
    setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) })?;
    close_inherited()?;
    let base = memory_in_use(Memory::Address).unwrap_or(0);
    let bytes = Some(base.saturating_add(memory_bytes));
    let bounded = setrlimit(Resource::As, Rlimit { current: bytes, maximum: bytes });
    // Elsewhere than on Linux the kernel may know no such limit; the watch over a running parse is then the only one.
    if cfg!(target_os = "linux") { Ok(bounded?) } else { Ok(()) }
}

#[cfg(target_os = "linux")]
fn follow_parent(parent: u32) -> io::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
    // A parent that died before that would send nothing any more.
    if is_child_of(parent) { Ok(()) } else { Err(io::Error::other("the parent is gone")) }
}

/// Without a signal from the kernel a thread looks after the parent.
#[cfg(not(target_os = "linux"))]
fn follow_parent(parent: u32) -> io::Result<()> {
    let watch = move || {
        while is_child_of(parent) {
            std::thread::sleep(Duration::from_millis(500));
        }
        std::process::exit(1);
    };
    std::thread::Builder::new().name("parent".to_owned()).spawn(watch).map(drop)
}

fn is_child_of(parent: u32) -> bool {
    getppid().is_some_and(|pid| u32::try_from(pid.as_raw_nonzero().get()) == Ok(parent))
}

/// Closes what this process has from the one that started it, but the three streams. Nothing of its own may be open yet.
///
/// # Errors
/// When the system refuses.
#[cfg(target_os = "linux")]
pub fn close_inherited() -> io::Result<()> {
    // SAFETY: nothing in this process owns a descriptor above the three streams yet.
    match unsafe { libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, 0) } {
        0 => Ok(()),
        _ => match io::Error::last_os_error() {
            // A kernel before 5.9.
            error if error.raw_os_error() == Some(libc::ENOSYS) => Ok(()),
            error => Err(error),
        },
    }
}

/// Has what this process got from the one that started it, but the three streams, closed when it becomes another program. Closing it at
/// once may be forbidden where the system guards descriptors of its own.
///
/// # Errors
/// None.
#[cfg(not(target_os = "linux"))]
pub fn close_inherited() -> io::Result<()> {
    /// No system gives descriptors of higher numbers unless it is asked to.
    const MOST: u64 = 65_536;
    let most = rustix::process::getrlimit(Resource::Nofile).current.map_or(MOST, |most| most.min(MOST));
    for descriptor in 3..libc::c_int::try_from(most).unwrap_or(libc::c_int::MAX) {
        // SAFETY: the call takes plain numbers, and says so when the descriptor is none.
        unsafe { libc::fcntl(descriptor, libc::F_SETFD, libc::FD_CLOEXEC) };
    }
    Ok(())
}

/// Returns standard input and output as files, which write what they are given at once and as it is.
///
/// # Errors
/// When one of them is closed.
pub fn streams() -> io::Result<(File, File)> {
    // SAFETY: a stream that is closed is an error of the copy; nothing in this process closes one in between.
    let copy = |stream| unsafe { BorrowedFd::borrow_raw(stream) }.try_clone_to_owned().map(File::from);
    Ok((copy(libc::STDIN_FILENO)?, copy(libc::STDOUT_FILENO)?))
}

/// Returns the CPU time of the calling thread, which other work on the machine does not lengthen.
pub fn thread_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a live local of the right type. A clock that is not there leaves zero.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// Makes a pipe's end return instead of waiting, and the pipe large where the system allows it.
///
/// # Errors
/// When it is none.
pub fn prepare_pipe(end: BorrowedFd<'_>) -> io::Result<()> {
    rustix::io::ioctl_fionbio(end, true)?;
    #[cfg(target_os = "linux")]
    // SAFETY: the descriptor is open for as long as it is borrowed. A refusal leaves the pipe as it was.
    unsafe {
        libc::fcntl(end.as_raw_fd(), libc::F_SETPIPE_SZ, PIPE_BYTES);
    }
    Ok(())
}

/// Waits until `read` has something to say (or has ended), or `write` takes something, at most for `timeout`; false when it passed.
///
/// # Errors
/// When the system cannot wait.
pub fn wait_for(read: BorrowedFd<'_>, write: Option<BorrowedFd<'_>>, timeout: Duration) -> io::Result<bool> {
    let entry = |end: BorrowedFd<'_>, events| libc::pollfd { fd: end.as_raw_fd(), events, revents: 0 };
    let mut entries = [entry(read, libc::POLLIN), write.map_or(entry(read, 0), |end| entry(end, libc::POLLOUT))];
    // Rounded up, so that the wait is not over before its time; a longer one is begun anew by the caller.
    let millis = libc::c_int::try_from(timeout.as_millis().saturating_add(1)).unwrap_or(libc::c_int::MAX);
    let count = if write.is_some() { 2 } else { 1 };
    // SAFETY: `entries` is live and holds at least `count` entries of open descriptors.
    match unsafe { libc::poll(entries.as_mut_ptr(), count, millis) } {
        -1 => match io::Error::last_os_error() {
            error if error.kind() == io::ErrorKind::Interrupted => Ok(true),
            error => Err(error),
        },
        ready => Ok(ready > 0),
    }
}
