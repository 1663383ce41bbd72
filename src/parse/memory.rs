//! How much memory a process has, as the system counts it.
//!
//! Must not know who asks. Invariant: a figure is what the system says at that moment, or there is none.

/// A way of counting the memory of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// Addresses that may be used.
    Address,
    /// Pages in use.
    Resident,
    /// The most pages that ever were.
    Peak,
}

/// Returns the memory of this process where the system tells it cheaply.
pub fn memory_in_use(kind: Memory) -> Option<u64> {
    system::own(kind)
}

/// Returns the memory of a process where the system tells it cheaply.
pub fn memory_of(pid: u32, kind: Memory) -> Option<u64> {
    system::of(pid, kind)
}

#[cfg(target_os = "linux")]
mod system {
    use super::Memory;

    pub(super) fn own(kind: Memory) -> Option<u64> {
        read("self", kind)
    }

    pub(super) fn of(pid: u32, kind: Memory) -> Option<u64> {
        read(&pid.to_string(), kind)
    }

    fn read(process: &str, kind: Memory) -> Option<u64> {
        let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
        let name = match kind {
            Memory::Address => "VmSize:",
            Memory::Resident => "VmRSS:",
            Memory::Peak => "VmHWM:",
        };
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
        Some(kibibytes * 1024)
    }
}

#[cfg(target_os = "macos")]
mod system {
    use super::Memory;

    pub(super) fn own(kind: Memory) -> Option<u64> {
        of(std::process::id(), kind)
    }

    pub(super) fn of(pid: u32, kind: Memory) -> Option<u64> {
        let pid = libc::pid_t::try_from(pid).ok()?;
        match kind {
            Memory::Address => Some(task(pid)?.pti_virtual_size),
            Memory::Resident => Some(task(pid)?.pti_resident_size),
            Memory::Peak => peak(pid),
        }
    }

    fn task(pid: libc::pid_t) -> Option<libc::proc_taskinfo> {
        let size = libc::c_int::try_from(size_of::<libc::proc_taskinfo>()).ok()?;
        // SAFETY: all-zero bytes are a valid value of this plain structure, and the pointer is to a live local of the size that is told.
        unsafe {
            let mut found: libc::proc_taskinfo = std::mem::zeroed();
            let told = libc::proc_pidinfo(pid, libc::PROC_PIDTASKINFO, 0, (&raw mut found).cast(), size);
            (told == size).then_some(found)
        }
    }

    fn peak(pid: libc::pid_t) -> Option<u64> {
        // SAFETY: as above; the flavour is that of the structure.
        unsafe {
            let mut found: libc::rusage_info_v4 = std::mem::zeroed();
            let told = libc::proc_pid_rusage(pid, libc::RUSAGE_INFO_V4, (&raw mut found).cast());
            (told == 0).then_some(found.ri_lifetime_max_phys_footprint)
        }
    }
}

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
mod system {
    use super::Memory;

    pub(super) fn own(_: Memory) -> Option<u64> {
        None
    }

    pub(super) fn of(_: u32, _: Memory) -> Option<u64> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(any(target_os = "linux", target_os = "macos", windows))]
    fn a_process_knows_its_memory() {
        let told = |kind| memory_in_use(kind).expect("this system tells");
        let (address, resident, peak) = (told(Memory::Address), told(Memory::Resident), told(Memory::Peak));
        assert!(resident > 100_000 && address >= resident && peak > 100_000, "{address} {resident} {peak}");
        assert!(memory_of(std::process::id(), Memory::Resident).is_some_and(|bytes| bytes > 100_000));
    }
}
