//! How many descriptors a process that serves many may have open.
//!
//! Must not know what is served. Invariant: no limit is lowered.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors for connections, readers and looks at worktrees.
const WANTED: u64 = 8192;

/// Lets this process have more open: many systems give fewer than it may have, macOS 256.
pub fn raise() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let wanted = maximum.map_or(WANTED, |maximum| maximum.min(WANTED));
    if current.is_some_and(|current| current < wanted)
        && let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum })
    {
        tracing::warn!(%error, "few connections can be taken at once");
    }
}
