//! What a child process used: CPU of all its threads, wall time, peak memory, as the kernel accounts for them.
//!
//! Invariant: a measured child has ended, and nothing else of this process ended in between.

use std::io::{self, Read};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// What one run used.
#[derive(Clone, Debug, Default)]
pub struct Usage {
    /// User and system time, those of processes that it waited for too.
    pub cpu: Duration,
    pub wall: Duration,
    /// Largest resident set.
    pub peak_bytes: u64,
    /// What the child printed.
    pub out: String,
}

/// Runs a command to its end and says what it used.
///
/// # Errors
/// When it cannot be started, or ends with a failure; then with what it said.
pub fn measure(command: &mut Command) -> io::Result<Usage> {
    let start = Instant::now();
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let (mut out, mut err) = (String::new(), String::new());
    // A child says little on standard error, less than a pipe holds, so one stream after the other cannot block.
    if let Some(stream) = child.stdout.as_mut() {
        stream.read_to_string(&mut out)?;
    }
    if let Some(stream) = child.stderr.as_mut() {
        stream.read_to_string(&mut err)?;
    }
    let pid = libc::pid_t::try_from(child.id()).map_err(io::Error::other)?;
    let mut status = 0;
    // SAFETY: an all-zero `rusage` is a valid value of this plain structure.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the pointers are to live locals of the right types. `child` is not waited for elsewhere, so the pid is still ours.
    let waited = unsafe { libc::wait4(pid, &raw mut status, 0, &raw mut usage) };
    let wall = start.elapsed();
    if waited != pid {
        return Err(io::Error::last_os_error());
    }
    if !libc::WIFEXITED(status) || libc::WEXITSTATUS(status) != 0 {
        return Err(io::Error::other(format!("a measured command failed: {}", err.trim())));
    }
    let peak = u64::try_from(usage.ru_maxrss).unwrap_or(0);
    // Linux counts kibibytes, macOS bytes.
    let unit = if cfg!(target_os = "macos") { 1 } else { 1024 };
    Ok(Usage { cpu: time(usage.ru_utime) + time(usage.ru_stime), wall, peak_bytes: peak * unit, out })
}

/// Returns the CPU time that this process has used so far, all threads, ended ones too.
pub fn own_cpu() -> Duration {
    // SAFETY: an all-zero `rusage` is a valid value of this plain structure.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a live local of the right type.
    unsafe { libc::getrusage(libc::RUSAGE_SELF, &raw mut usage) };
    time(usage.ru_utime) + time(usage.ru_stime)
}

fn time(value: libc::timeval) -> Duration {
    Duration::from_secs(u64::try_from(value.tv_sec).unwrap_or(0))
        + Duration::from_micros(u64::try_from(value.tv_usec).unwrap_or(0))
}
