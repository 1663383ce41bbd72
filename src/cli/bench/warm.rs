//! A daemon of the benchmark's own, and what a command costs in it.
//!
//! Must not know which commands those are. Invariant: what is measured of a command is what the daemon and its parsers used from the
//! moment it was sent, or from an edit before it, to the answer.

use std::io;
use std::time::{Duration, Instant};

use crate::parse::Memory;
use crate::server::daemon::protocol::{Call, Text, streams};
use crate::server::daemon::{Client, Place};

use super::meter::Meter;
use super::scratch::Bench;
use super::usage::measure;

/// How long a command may take.
pub const LIMIT: Duration = Duration::from_secs(3_600);

/// What something took.
#[derive(Clone, Copy, Debug, Default)]
pub struct Taken {
    pub cpu: f64,
    pub wall: f64,
}

/// A daemon that keeps one scope warm.
pub struct Warm {
    bench: Bench,
    place: Place,
    client: Client,
    pub meter: Meter,
}

impl Warm {
    /// Starts the daemon of a scope.
    pub fn start(bench: &Bench) -> io::Result<Self> {
        measure(&mut bench.command(["daemon", "start"])?)?;
        let place = Place::new(&bench.cache, None);
        let client = Client::connect(&place).map_err(io::Error::other)?;
        let meter = Meter::of(client.greeting.pid);
        Ok(Self { bench: bench.clone(), place, client, meter })
    }

    /// Returns another connection to the same daemon.
    pub fn client(&self) -> io::Result<Client> {
        Client::connect(&self.place).map_err(io::Error::other)
    }

    /// Returns a command line as a client sends it.
    pub fn call(&self, arguments: &[&str]) -> Call {
        let mut line = vec![Text(b"sextant".to_vec()), Text(b"--config".to_vec()), Text::of_path(&self.bench.config)];
        line.extend(arguments.iter().map(|argument| Text(argument.as_bytes().to_vec())));
        Call { line, current_dir: Text::of_path(&self.bench.root), ..Call::default() }
    }

    /// Has a command run, after `before` in the same measurement. Returns what it printed.
    pub fn run_after(&self, arguments: &[&str], before: impl FnOnce() -> io::Result<()>) -> io::Result<(Taken, String)> {
        let cpu = self.meter.cpu();
        before()?;
        let start = Instant::now();
        let out = answer(&self.client, self.call(arguments))?;
        let wall = start.elapsed().as_secs_f64();
        let cpu = self.meter.cpu().saturating_sub(cpu).as_secs_f64();
        Ok((Taken { cpu, wall }, out))
    }

    /// Has a command run. Returns what it printed.
    pub fn run(&self, arguments: &[&str]) -> io::Result<(Taken, String)> {
        self.run_after(arguments, || Ok(()))
    }

    /// Waits until all files are spared that can be. Returns what the status says.
    pub fn settle(&self) -> io::Result<String> {
        let begun = Instant::now();
        loop {
            let (_, status) = self.run(&["status", "--json"])?;
            let status: serde_json::Value = serde_json::from_str(&status).map_err(io::Error::other)?;
            let check = status["last_build"]["check"].as_str().unwrap_or_default().to_owned();
            let mut words = check.split(' ');
            let (sealed, all) = (words.nth(1), words.nth(1));
            if sealed == all || begun.elapsed() > Duration::from_secs(8) {
                return Ok(check);
            }
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    /// Returns the resident memory of the daemon, that of its parsers included, and the highest of both.
    pub fn memory(&self) -> [u64; 3] {
        let own = crate::parse::memory_of(self.client.greeting.pid, Memory::Resident).unwrap_or(0);
        [own, self.meter.memory(Memory::Resident), self.meter.memory(Memory::Peak)]
    }
}

impl Drop for Warm {
    fn drop(&mut self) {
        // One that is gone already is gone.
        let _ = self.client.stop();
    }
}

/// Has a command run over a connection. Returns what it printed.
pub fn answer(client: &Client, call: Call) -> io::Result<String> {
    let ran = client.run(call, LIMIT).map_err(io::Error::other)?;
    let (out, err) = streams(&ran.said);
    // Nothing found is an answer.
    if ran.status <= 1 {
        Ok(String::from_utf8_lossy(&out).into_owned())
    } else {
        Err(io::Error::other(format!("a command failed in the daemon: {}", String::from_utf8_lossy(&err).trim())))
    }
}
