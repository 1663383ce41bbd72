//! How far a command is, as it shows at a terminal, in this process and in a daemon's.
//!
//! Invariant: what is shown is gone before anything else is written.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::fd::{FromRawFd, OwnedFd};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};

use crate::program::indexed;
use crate::sandbox::Sandbox;

/// No wait takes longer.
const LIMIT: Duration = Duration::from_secs(60);

/// A terminal: what a person sees, and what a program has as its standard error.
struct Terminal {
    screen: File,
    seen: String,
}

impl Terminal {
    fn new() -> (Self, OwnedFd) {
        let (mut main, mut other) = (0, 0);
        let size = libc::winsize { ws_row: 24, ws_col: 100, ws_xpixel: 0, ws_ypixel: 0 };
        // SAFETY: the first two are live locals to be set, the size is only read, and null stands for the defaults.
        let made = unsafe {
            libc::openpty(&raw mut main, &raw mut other, std::ptr::null_mut(), std::ptr::null_mut(), (&raw const size).cast_mut())
        };
        assert_eq!(made, 0, "the system gives a terminal");
        // SAFETY: both descriptors were just opened, and nobody else has them.
        let (main, other) = unsafe { (OwnedFd::from_raw_fd(main), OwnedFd::from_raw_fd(other)) };
        (Self { screen: File::from(main), seen: String::new() }, other)
    }

    /// Reads until a text was seen; all that there is without one.
    #[track_caller]
    fn read_until(&mut self, text: Option<&str>) {
        let end = Instant::now() + LIMIT;
        let mut buffer = [0; 4096];
        while text.is_none_or(|text| !self.seen.contains(text)) {
            assert!(Instant::now() < end, "{:?} was not seen in {:?}", text, self.seen);
            match self.screen.read(&mut buffer) {
                Ok(count) if count > 0 => self.seen.push_str(&String::from_utf8_lossy(&buffer[..count])),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // Nobody has the other end any more.
                _ if text.is_none() => return,
                ended => panic!("{ended:?} before {text:?} in {:?}", self.seen),
            }
        }
    }
}

fn start(sandbox: &Sandbox, arguments: &[&str]) -> (Child, Terminal) {
    let (terminal, other) = Terminal::new();
    let mut command = sandbox.program(arguments);
    command.env("TERM", "xterm").stdout(Stdio::piped()).stderr(Stdio::from(other));
    (command.spawn().expect("the program starts"), terminal)
}

/// Takes the lock of builds, so that who wants to build waits.
pub fn hold_builds(sandbox: &Sandbox) -> File {
    let bindings = std::fs::read_dir(sandbox.path().join("cache/sextant")).expect("there is a cache");
    let mut locks = bindings.filter_map(|entry| Some(entry.ok()?.path().join("build.lock"))).filter(|path| path.exists());
    let lock = File::open(locks.next().expect("a build was here")).expect("it is readable");
    flock(&lock, FlockOperation::LockExclusive).expect("nobody builds");
    lock
}

#[test]
fn what_takes_long_is_shown_and_taken_away() {
    let sandbox = indexed();
    let lock = hold_builds(&sandbox);
    let (child, mut terminal) = start(&sandbox, &["index"]);
    terminal.read_until(Some("waiting for a build"));
    drop(lock);
    let output = child.wait_with_output().expect("the program ends");
    terminal.read_until(None);
    assert_eq!(output.status.code(), Some(0), "{}", terminal.seen);
    assert!(String::from_utf8_lossy(&output.stdout).starts_with("2 files"), "{output:?}");
    // The line is erased, and nothing comes after.
    let rest = terminal.seen.rsplit("\u{1b}[2K").next().unwrap_or_default();
    assert!(terminal.seen.contains("\u{1b}[2K") && rest.trim().is_empty(), "{:?}", terminal.seen);
}

#[test]
fn a_daemon_tells_how_far_it_is() {
    let sandbox = indexed();
    sandbox.sextant(&["daemon", "start"]).ended(0);
    let lock = hold_builds(&sandbox);
    let (child, mut terminal) = start(&sandbox, &["index"]);
    terminal.read_until(Some("waiting for a build"));
    let running = sandbox.sextant(&["daemon", "status", "--json"]).ended(0).json();
    assert_eq!(running["working"], 1, "{running}");
    drop(lock);
    let output = child.wait_with_output().expect("the program ends");
    terminal.read_until(None);
    sandbox.sextant(&["daemon", "stop"]).ended(0);
    assert_eq!(output.status.code(), Some(0), "{}", terminal.seen);
}

#[test]
fn who_reads_json_or_wants_quiet_is_shown_nothing() {
    let sandbox = indexed();
    for flag in ["--json", "--quiet"] {
        let lock = hold_builds(&sandbox);
        let (mut child, mut terminal) = start(&sandbox, &["index", flag]);
        let (shown, mut other) = start(&sandbox, &["index"]);
        // By then it would be shown, too.
        other.read_until(Some("waiting for a build"));
        drop(lock);
        assert!(shown.wait_with_output().expect("the program ends").status.success());
        assert!(child.wait().expect("the program ends").success());
        terminal.read_until(None);
        assert_eq!(terminal.seen, "");
    }
}
