//! Starting a daemon that belongs to nobody: a process in between starts it and ends, so that whoever asked for it has no child.
//!
//! Must not know when one is wanted. Invariant: a daemon holds no descriptor, terminal, directory, ignored signal or variable of the
//! process that started it, but the variables it was given.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use rustix::fs::Mode;

use crate::parse::close_inherited;

/// A command line of this program that is to become a daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    pub program: PathBuf,
    pub arguments: Vec<OsString>,
    pub variables: Vec<(&'static str, PathBuf)>,
}

impl Launch {
    /// Starts the process in between, whose arguments must make it call [`detach`], and waits for its end.
    ///
    /// # Errors
    /// When it cannot be started, or could not start the daemon.
    pub fn start(&self) -> io::Result<()> {
        let status = self.command().status()?;
        if status.success() { Ok(()) } else { Err(io::Error::other("the process in between failed")) }
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.arg0("sextant").args(&self.arguments).env_clear().current_dir("/");
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }
}

/// Leaves all that this process has from the one which started it, and starts the daemon. This process must end then.
///
/// # Errors
/// When the system refuses.
pub fn detach(daemon: &Launch) -> io::Result<()> {
    close_inherited()?;
    restore_signals();
    // The daemon is not the first of its session, so that no terminal ever becomes its own.
    rustix::process::setsid()?;
    rustix::process::umask(Mode::from_bits_truncate(0o077));
    daemon.command().spawn().map(drop)
}

/// Gives signals that are ignored their own meaning again, which a new program does not do by itself.
fn restore_signals() {
    for signal in 1..32 {
        // The runtime ignores broken pipes, and changes that for the processes it starts.
        if matches!(signal, libc::SIGKILL | libc::SIGSTOP | libc::SIGPIPE) {
            continue;
        }
        // SAFETY: both structures are live locals, and all-zero bytes are a valid value of one. Only signals that nothing handles change.
        unsafe {
            let mut found: libc::sigaction = std::mem::zeroed();
            if libc::sigaction(signal, std::ptr::null(), &raw mut found) == 0 && found.sa_sigaction == libc::SIG_IGN {
                libc::signal(signal, libc::SIG_DFL);
            }
        }
    }
}
