//! What the allocator of a process that lives long may keep of memory that was freed.
//!
//! Must not know what is served. Invariant: nothing here changes an answer; where the allocator is another one, nothing is done.

/// Has few threads' freed memory kept apart, and what is free at the end of the heap given back.
///
/// The allocator of glibc gives each thread that meets another one an arena of its own, up to eight for each processor, and memory that one
/// arena holds free is no use to the others. A process whose threads come and go with its clients, and that builds now on one and then on
/// another, comes to hold several times what it uses. Two arenas are enough for work that mostly computes. To be called before there are threads.
pub fn keep_little() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: sets parameters of the allocator, and is called before other threads are started.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 2);
        // Once one is set neither grows by itself; blocks that large are rare, and go back when they are freed.
        libc::mallopt(libc::M_MMAP_THRESHOLD, 4 << 20);
        libc::mallopt(libc::M_TRIM_THRESHOLD, 4 << 20);
    }
}

/// Gives memory that was freed back to the system: a build needs much for a moment, and the allocator keeps it.
pub fn give_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: it may be called at any time from any thread.
    unsafe {
        libc::malloc_trim(0);
    }
}
