//! A daemon to test beside, and what can be known of it from outside.
//!
//! Invariant: it ends with its test.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::program::{PROGRAM, Run};
use crate::sandbox::Sandbox;

/// No wait is longer, so that a test which fails ends.
pub const CAP: Duration = Duration::from_secs(60);

/// Waits until something is so.
#[track_caller]
pub fn wait(what: &str, mut is_so: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < CAP, "waiting until {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A daemon in the foreground, and what can be known of it from outside.
pub struct Daemon<'s> {
    sandbox: &'s Sandbox,
    pub child: Child,
}

impl<'s> Daemon<'s> {
    /// Starts one and waits until it answers.
    pub fn start(sandbox: &'s Sandbox) -> Self {
        Self::start_with(sandbox, &[])
    }

    pub fn start_with(sandbox: &'s Sandbox, variables: &[(&str, &str)]) -> Self {
        let mut command = sandbox.program(&["daemon", "run"]);
        command.envs(variables.iter().copied()).stderr(Stdio::null());
        Self::spawn(sandbox, command)
    }

    /// Starts one by a command and waits until it answers.
    pub fn spawn(sandbox: &'s Sandbox, mut command: Command) -> Self {
        let child = command.stdout(Stdio::null()).spawn().expect("the program starts");
        let daemon = Self { sandbox, child };
        wait("the daemon answers", || daemon.status()["pid"] == daemon.child.id());
        daemon
    }

    pub fn status(&self) -> Value {
        status(self.sandbox)
    }

    /// Returns how many commands and questions it answered.
    pub fn answered(&self) -> u64 {
        self.status()["answered"].as_u64().expect("it runs")
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("it runs");
    }

    /// Waits for its end.
    #[track_caller]
    pub fn ended(mut self) -> Option<i32> {
        let mut status = None;
        wait("the daemon is gone", || {
            status = self.child.try_wait().expect("it is ours");
            status.is_some()
        });
        status.and_then(|status| status.code())
    }
}

impl Drop for Daemon<'_> {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn status(sandbox: &Sandbox) -> Value {
    sandbox.sextant(&["daemon", "status", "--json"]).json()
}

/// Returns the files in the directory of the sockets.
pub fn left(sandbox: &Sandbox) -> Vec<String> {
    let Ok(entries) = fs::read_dir(sandbox.path().join("home/sextant")) else { return Vec::new() };
    entries.map(|entry| entry.expect("listed").file_name().to_string_lossy().into_owned()).collect()
}

pub fn socket(sandbox: &Sandbox) -> PathBuf {
    let name = left(sandbox).into_iter().find(|name| name.ends_with(".sock")).expect("there is a socket");
    sandbox.path().join("home/sextant").join(name)
}

/// Returns the processes of the program that belong to a sandbox.
pub fn processes(sandbox: &Sandbox) -> BTreeSet<u32> {
    let place = sandbox.path().to_string_lossy().into_owned();
    let program = fs::canonicalize(PROGRAM).expect("it was built");
    let entries = fs::read_dir("/proc").expect("listed").filter_map(Result::ok);
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| {
        let read = |name: &str| fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default();
        let is_ours = fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe == program);
        is_ours && String::from_utf8_lossy(&read("environ")).contains(&place)
    })
    .collect()
}

/// Compares the index with one that a process builds from nothing.
#[track_caller]
pub fn as_a_fresh_process(sandbox: &Sandbox, arguments: &[&str]) {
    let kept = sandbox.sextant(&[&["export", "--on-stale", "sync"], arguments].concat()).ended(0);
    let mut command = sandbox.program(&[&["index", "--quiet", "--no-daemon"], arguments].concat());
    Run::of(command.env("XDG_CACHE_HOME", sandbox.path().join("clean"))).ended(0);
    let mut command = sandbox.program(&[&["export", "--on-stale", "refuse", "--no-daemon"], arguments].concat());
    let clean = Run::of(command.env("XDG_CACHE_HOME", sandbox.path().join("clean"))).ended(0);
    assert!(kept.out == clean.out, "the export differs from that of a clean build");
    assert!(kept.out.lines().count() > 1, "there is something to compare");
    let _ = fs::remove_dir_all(sandbox.path().join("clean"));
}

/// Returns how many processes have a process for their parent.
pub fn parsers(pid: u32) -> usize {
    let entries = fs::read_dir("/proc").expect("listed").filter_map(Result::ok);
    let stats = entries.filter_map(|entry| fs::read_to_string(entry.path().join("stat")).ok());
    stats
        .filter(|stat| {
            let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
            fields.get(1).and_then(|parent| parent.parse().ok()) == Some(pid)
        })
        .count()
}

/// Returns the CPU time that a process has used.
pub fn cpu_of(pid: u32) -> Duration {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("it runs");
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks: u64 = fields[11].parse::<u64>().expect("a number") + fields[12].parse::<u64>().expect("a number");
    // A hundredth of a second, whatever the machine.
    Duration::from_millis(10 * ticks)
}
