//! One connection: HTTP/1.1 with bounds on how long a head may take and an answer may stay unread.
//!
//! Must not know a route. Invariant: whatever a client does or leaves undone costs one small task, for a bounded time; and what is done for
//! a client ends soon after it has gone.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use axum::Router;
use axum::response::IntoResponse;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio_io_timeout::TimeoutWriter;

use super::refusal::Refusal;

/// How long a client may read nothing while it is written to.
const UNREAD: Duration = Duration::from_secs(20);
/// How much is read ahead. A head is refused that is larger by far; one that is little larger may be read.
const BUFFER: usize = 16 << 10;
const MOST_HEADERS: usize = 64;
/// How often it is looked whether a client is still there.
const LOOK: Duration = Duration::from_millis(500);

/// Serves a connection until either side has enough, or the service ends. A head may take so long as there is `patience`, from the end of
/// the answer before it on; so long is an answer worked on for a client that says no more, and may only have closed its side.
pub async fn serve(stream: TcpStream, router: Router, patience: Duration, mut ending: watch::Receiver<bool>) {
    // What it is without is only slower.
    let _ = stream.set_nodelay(true);
    let peer = stream.as_fd().try_clone_to_owned();
    let mut stream = TimeoutWriter::new(stream);
    stream.set_timeout(Some(UNREAD));
    let stream = Spoken { stream: Box::pin(stream), own: None };
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(patience)
        .max_buf_size(BUFFER)
        .max_headers(MOST_HEADERS)
        .half_close(true);
    let connection = builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    let mut connection = std::pin::pin!(connection);
    let outcome = tokio::select! {
        outcome = connection.as_mut() => outcome,
        () = left(peer, patience) => return tracing::debug!("a client has gone"),
        () = ended(&mut ending) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = outcome {
        tracing::debug!(%error, "a connection ended");
    }
}

/// Waits until a client is gone for good, or has said its last so long ago. Whether it can still hear is not told apart from that by the
/// system.
async fn left(peer: io::Result<OwnedFd>, patience: Duration) {
    let Ok(peer) = peer else { return std::future::pending().await };
    let (mut look, mut last) = (tokio::time::interval(LOOK), None);
    loop {
        look.tick().await;
        match recv(&peer, &mut [0; 1][..], RecvFlags::PEEK | RecvFlags::DONTWAIT) {
            Ok((_, 0)) => {
                if last.get_or_insert_with(Instant::now).elapsed() >= patience {
                    return;
                }
            }
            // It has said something that is read in time, or nothing yet.
            Ok(_) | Err(Errno::AGAIN | Errno::INTR) => last = None,
            Err(_) => return,
        }
    }
}

/// Waits until the service ends.
pub async fn ended(ending: &mut watch::Receiver<bool>) {
    // Nobody is left to say so when it is over.
    let _ = ending.wait_for(|ending| *ending).await;
}

/// Turns a client away for want of room.
pub async fn turn_away(mut stream: TcpStream) {
    let refusal = Refusal::new("server_busy");
    let _ = tokio::time::timeout(Duration::from_secs(1), stream.write_all(&closing(&refusal))).await;
}

/// Returns the last answer of a connection, whole.
fn closing(refusal: &Refusal) -> Vec<u8> {
    let (status, body) = (refusal.status(), refusal.body());
    let mut text = format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n", body.len());
    let response = refusal.clone().into_response();
    if let Some(after) = response.headers().get("retry-after").and_then(|value| value.to_str().ok()) {
        text.push_str(&format!("retry-after: {after}\r\n"));
    }
    text.push_str("connection: close\r\n\r\n");
    text.push_str(&body);
    text.into_bytes()
}

/// A stream on which what is no HTTP is refused in the words of the contract: the protocol's implementation answers it by itself, with a
/// bare head that ends the connection, and has no other say in it.
struct Spoken<S> {
    stream: Pin<Box<S>>,
    /// What is said instead of that head, and how much of it was written.
    own: Option<(Vec<u8>, usize)>,
}

/// Returns what is to be said instead, where this is such a head: whole, a refusal, and none of a route's answers, which all have an id.
fn instead_of(head: &[u8]) -> Option<Vec<u8>> {
    if !head.starts_with(b"HTTP/1.1 4") || !head.ends_with(b"\r\n\r\n") {
        return None;
    }
    let text = std::str::from_utf8(head).ok()?.to_ascii_lowercase();
    let is_bare = text.contains("content-length: 0\r\n") && !text.contains("x-request-id:");
    let code = match text.get(9..12)? {
        "408" => "request_timeout",
        "413" => "request_too_large",
        "414" | "431" => "head_too_large",
        _ => "malformed_request",
    };
    is_bare.then(|| closing(&Refusal::new(code)))
}

impl<S: AsyncWrite> Spoken<S> {
    /// Writes on what is said instead; `given` is what of the head counts as written then.
    fn write_own(&mut self, context: &mut Context<'_>, given: usize) -> Poll<io::Result<usize>> {
        while let Some((text, written)) = self.own.as_mut().filter(|(text, written)| *written < text.len()) {
            match self.stream.as_mut().poll_write(context, &text[*written..]) {
                Poll::Ready(Ok(0)) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Poll::Ready(Ok(count)) => *written += count,
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => return Poll::Pending,
            }
        }
        self.own = None;
        Poll::Ready(Ok(given))
    }
}

impl<S: AsyncRead> AsyncRead for Spoken<S> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.stream.as_mut().poll_read(context, buffer)
    }
}

impl<S: AsyncWrite> AsyncWrite for Spoken<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if self.own.is_none() {
            self.own = instead_of(bytes).map(|text| (text, 0));
        }
        if self.own.is_some() { self.write_own(context, bytes.len()) } else { self.stream.as_mut().poll_write(context, bytes) }
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream.as_mut().poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream.as_mut().poll_shutdown(context)
    }
}
