//! What another process uses while it lives on: CPU, memory, and what it writes, with the processes it started.
//!
//! Must not know what the process does. Invariant: CPU of threads that have ended counts, and of processes only while they live.

use std::time::Duration;

use crate::parse::{Memory, memory_of};

/// A process that is watched.
#[derive(Clone, Copy, Debug)]
pub struct Meter {
    pid: u32,
}

impl Meter {
    pub fn of(pid: u32) -> Self {
        Self { pid }
    }

    /// Returns the CPU time that it and its living children have used so far.
    pub fn cpu(self) -> Duration {
        self.all().map(process_cpu).sum()
    }

    /// Returns the resident memory of it and its living children, or the highest that each of them had.
    pub fn memory(self, kind: Memory) -> u64 {
        self.all().filter_map(|pid| memory_of(pid, kind)).sum()
    }

    /// Returns the bytes that it alone caused to be written to disks, and those that it handed to the system to write.
    pub fn written(self) -> [u64; 2] {
        let text = std::fs::read_to_string(format!("/proc/{}/io", self.pid)).unwrap_or_default();
        ["write_bytes: ", "wchar: "].map(|name| {
            let value = text.lines().find_map(|line| line.strip_prefix(name));
            value.and_then(|value| value.trim().parse().ok()).unwrap_or(0)
        })
    }

    fn all(self) -> impl Iterator<Item = u32> {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.pid)).into_iter().flatten().flatten();
        let children = tasks.flat_map(|task| {
            let children = std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
            children.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<u32>>()
        });
        std::iter::once(self.pid).chain(children)
    }
}

/// Returns the CPU time of all threads of a process, ended ones too; none where it is gone or the system does not tell.
#[cfg(target_os = "linux")]
fn process_cpu(pid: u32) -> Duration {
    let Ok(pid) = libc::pid_t::try_from(pid) else { return Duration::ZERO };
    let mut clock = 0;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointers are to live locals of the right types.
    let told = unsafe { libc::clock_getcpuclockid(pid, &raw mut clock) == 0 && libc::clock_gettime(clock, &raw mut time) == 0 };
    if !told {
        return Duration::ZERO;
    }
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}

#[cfg(not(target_os = "linux"))]
fn process_cpu(_: u32) -> Duration {
    Duration::ZERO
}

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_seen_from_outside() {
        let meter = Meter::of(std::process::id());
        let before = meter.cpu();
        let busy = std::thread::spawn(|| (0..5_000_000_u64).fold(0_u64, |sum, next| std::hint::black_box(sum ^ next)));
        busy.join().expect("no panic");
        assert!(meter.cpu() > before, "the CPU of a thread that has ended counts");
        assert!(meter.memory(Memory::Resident) > 0);
        assert!(meter.memory(Memory::Peak) > 0);
    }
}
