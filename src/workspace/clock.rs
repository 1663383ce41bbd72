//! Whether somebody set the clock of the system, after which times of change may come a second time.
//!
//! Must not know files. Invariant: a clock that was set before the question is told, once; one that drifts or is slewed was not set.

#[cfg(target_os = "linux")]
pub(super) use linux::{Clock, coarse_seconds};
#[cfg(not(target_os = "linux"))]
pub(super) use other::{Clock, coarse_seconds};

#[cfg(target_os = "linux")]
mod linux {
    use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
    use std::sync::Mutex;

    /// The clock may be off by so much, in nanoseconds, from what it would be had nobody set it.
    const TOLERANCE: i128 = 500_000_000;

    #[derive(Debug)]
    pub(in super::super) struct Clock {
        /// A timer that the kernel cancels when the clock is set.
        timer: OwnedFd,
        /// The time of the clock less the time since the start of the system, which moves only when the clock is set.
        offset: Mutex<i128>,
    }

    impl Clock {
        pub(in super::super) fn new() -> Option<Self> {
            // SAFETY: the call takes plain numbers; a descriptor that it returns belongs to nobody else.
            let timer = unsafe {
                let timer = libc::timerfd_create(libc::CLOCK_REALTIME, libc::TFD_CLOEXEC | libc::TFD_NONBLOCK);
                if timer < 0 {
                    return None;
                }
                OwnedFd::from_raw_fd(timer)
            };
            let clock = Self { timer, offset: Mutex::new(offset()) };
            clock.arm().then_some(clock)
        }

        /// Returns whether the clock was set since the last call.
        pub(in super::super) fn was_set(&self) -> bool {
            let mut expirations = 0_u64;
            // SAFETY: the pointer is to a live local of the size that is told.
            let read = unsafe { libc::read(self.timer.as_raw_fd(), (&raw mut expirations).cast(), size_of::<u64>()) };
            // Nothing to read is all that is expected.
            let cancelled = read >= 0 || std::io::Error::last_os_error().kind() != std::io::ErrorKind::WouldBlock;
            let mut kept = self.offset.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            let now = offset();
            let set = cancelled || (now - *kept).abs() > TOLERANCE;
            if set {
                *kept = now;
                self.arm();
            }
            set
        }

        #[allow(deprecated, reason = "what the name means in time to come is as well for a time that never comes")]
        fn arm(&self) -> bool {
            let far = libc::itimerspec {
                it_interval: libc::timespec { tv_sec: 0, tv_nsec: 0 },
                // In a time that never comes.
                it_value: libc::timespec { tv_sec: libc::time_t::MAX / 2, tv_nsec: 0 },
            };
            let flags = libc::TFD_TIMER_ABSTIME | libc::TFD_TIMER_CANCEL_ON_SET;
            // SAFETY: the pointer is to a live local of the right type, and null is allowed for the second.
            unsafe { libc::timerfd_settime(self.timer.as_raw_fd(), flags, &raw const far, std::ptr::null_mut()) == 0 }
        }
    }

    fn nanoseconds(clock: libc::clockid_t) -> i128 {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the pointer is to a live local of the right type.
        unsafe { libc::clock_gettime(clock, &raw mut time) };
        i128::from(time.tv_sec) * 1_000_000_000 + i128::from(time.tv_nsec)
    }

    fn offset() -> i128 {
        nanoseconds(libc::CLOCK_REALTIME) - nanoseconds(libc::CLOCK_BOOTTIME)
    }

    /// Returns the seconds of the clock that files get their times from.
    pub(in super::super) fn coarse_seconds() -> i64 {
        i64::try_from(nanoseconds(libc::CLOCK_REALTIME_COARSE) / 1_000_000_000).unwrap_or(i64::MAX)
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn a_clock_that_nobody_sets_was_not_set() {
            let clock = Clock::new().expect("this system has such timers");
            assert!((0..3).all(|_| !clock.was_set()));
            // As if it had been set between the two.
            *clock.offset.lock().expect("no panic") -= 2 * TOLERANCE;
            assert!(clock.was_set());
            assert!(!clock.was_set());
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod other {
    #[derive(Debug)]
    pub(in super::super) struct Clock;

    impl Clock {
        pub(in super::super) fn new() -> Option<Self> {
            None
        }

        pub(in super::super) fn was_set(&self) -> bool {
            true
        }
    }

    pub(in super::super) fn coarse_seconds() -> i64 {
        0
    }
}
