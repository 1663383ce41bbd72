//! The server of one client, on the standard streams of this process.
//!
//! Must not know a tool. Invariant: it ends when its client is gone, whichever way that shows: the end of standard input, once what was
//! asked before it is answered; that nobody can read standard output any more; or the end of the process that started it.

use std::sync::Arc;
use std::time::Duration;

use rmcp::ServiceExt;
use rmcp::service::ServerInitializeError;
use rmcp::transport::stdio_pipes;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::server::memory;

use super::Toolbox;
use super::handler::Handler;
use super::lines::Lines;

/// Commands have the room for recursion that the first thread of a process has.
const STACK: usize = 8 << 20;
/// How often it looks whether its client is still there.
const LOOK: Duration = Duration::from_secs(1);
/// How long calls that were given up may take to end.
const FAREWELL: Duration = Duration::from_secs(1);

/// Why there is no server.
#[derive(Debug, thiserror::Error)]
pub enum McpError {
    #[error("no thread can be started")]
    Runtime(#[source] std::io::Error),
    #[error("the client does not begin as the protocol wants it")]
    Begin(#[source] Box<ServerInitializeError>),
}

/// Serves the client of this process until it is gone. Nobody else may use standard input or output meanwhile.
///
/// # Errors
/// When the machine gives no thread, or the client never begins.
pub fn serve(toolbox: Arc<dyn Toolbox>) -> Result<(), McpError> {
    memory::keep_little();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .thread_name("mcp")
        .thread_stack_size(STACK)
        .enable_all()
        .build()
        .map_err(McpError::Runtime)?;
    let ended = runtime.block_on(async {
        tokio::select! {
            ended = converse(toolbox) => ended,
            () = parent_gone() => Ok(()),
            () = reader_gone() => Ok(()),
        }
    });
    // Calls that nobody waits for are given up; a read of standard input that waits does not hold up the end.
    runtime.shutdown_timeout(FAREWELL);
    ended
}

async fn converse(toolbox: Arc<dyn Toolbox>) -> Result<(), McpError> {
    let (read, write) = stdio_pipes();
    match Handler::new(toolbox).serve(Lines::new(read, write)).await {
        Ok(service) => {
            // Answers under way are still written.
            let _ = service.waiting().await;
            Ok(())
        }
        // One that only looked whether there is a server.
        Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
        Err(error) => Err(McpError::Begin(Box::new(error))),
    }
}

/// Returns when nobody can read what is written.
async fn reader_gone() {
    let mut look = tokio::time::interval(LOOK);
    loop {
        look.tick().await;
        let stdout = std::io::stdout();
        // Some systems tell of an end only who asks for it.
        let mut entries = [PollFd::new(&stdout, PollFlags::HUP)];
        // What cannot be found out is found out by writing.
        if poll(&mut entries, Some(&Timespec::default())).is_ok()
            && entries[0].revents().intersects(PollFlags::ERR | PollFlags::HUP)
        {
            return;
        }
    }
}

/// Returns when the process that started this one has ended.
async fn parent_gone() {
    let parent = std::os::unix::process::parent_id();
    let mut look = tokio::time::interval(LOOK);
    while std::os::unix::process::parent_id() == parent {
        look.tick().await;
    }
}
