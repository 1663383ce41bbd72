//! Messages as lines of standard streams.
//!
//! Must not know what a message asks. Invariant: whatever a line holds, the next one is read; a request that cannot be understood is
//! answered under its own id; no line of more than [`MAX_MESSAGE`] bytes is kept; the end of the input is told once all requests before it
//! are answered, or [`PATIENCE`] has passed.

use std::collections::HashSet;
use std::io;
use std::sync::{Arc, Mutex as SyncMutex, MutexGuard, PoisonError};
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, ErrorData, JsonRpcMessage, RequestId, ServerJsonRpcMessage,
};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::{Mutex, Notify};
use tokio::time::Instant;

use super::handler::misfit;

/// Most bytes of a message. Arguments are far below.
pub const MAX_MESSAGE: usize = 1 << 20;
/// How long a client that says no more may wait for answers.
const PATIENCE: Duration = Duration::from_secs(120);

/// Standard streams, or others like them.
pub struct Lines<R, W> {
    read: BufReader<R>,
    /// What was read of a line; kept between calls, which may be given up at any point.
    line: Vec<u8>,
    /// Whether the rest of a line that was too long is passed over.
    is_skipping: bool,
    /// Whether a request was seen; what comes before the first one and is none means nothing.
    is_begun: bool,
    /// What is to be said before the next line is read.
    reply: Option<Vec<u8>>,
    write: Arc<Mutex<Option<W>>>,
    open: Arc<Open>,
    /// Until when answers are waited for, once there is no more to read.
    last: Option<Instant>,
}

/// The requests that were read and are not answered.
#[derive(Default)]
struct Open {
    ids: SyncMutex<HashSet<RequestId>>,
    changed: Notify,
}

impl Open {
    fn add(&self, id: RequestId) {
        self.ids().insert(id);
    }

    fn take(&self, id: &RequestId) {
        self.ids().remove(id);
        self.changed.notify_one();
    }

    async fn answered(&self) {
        while !self.ids().is_empty() {
            self.changed.notified().await;
        }
    }

    fn ids(&self) -> MutexGuard<'_, HashSet<RequestId>> {
        // Each change of it is whole.
        self.ids.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a message came to.
#[derive(Debug)]
pub(super) enum Read {
    Message(Box<ClientJsonRpcMessage>),
    /// Not understood, and why.
    Refused(Option<RequestId>, ErrorData),
    /// Nothing that needs an answer.
    Ignored,
}

impl<R: AsyncRead + Unpin, W: AsyncWrite + Unpin> Lines<R, W> {
    pub fn new(read: R, write: W) -> Self {
        Self {
            read: BufReader::new(read),
            line: Vec::new(),
            is_skipping: false,
            is_begun: false,
            reply: None,
            write: Arc::new(Mutex::new(Some(write))),
            open: Arc::default(),
            last: None,
        }
    }

    /// Waits until all that was asked is answered, with nothing more to read.
    async fn hear_out(&mut self) {
        let last = *self.last.get_or_insert_with(|| Instant::now() + PATIENCE);
        if tokio::time::timeout_at(last, self.open.answered()).await.is_err() {
            tracing::warn!("the client has closed its input, and is not waited for any longer");
        }
    }

    /// Takes note of what is to be answered.
    fn note(&self, message: &ClientJsonRpcMessage) {
        match message {
            JsonRpcMessage::Request(request) => self.open.add(request.id.clone()),
            // Who gave it up gets no answer.
            JsonRpcMessage::Notification(told) => {
                if let ClientNotification::CancelledNotification(cancelled) = &told.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    self.open.take(id);
                }
            }
            _ => {}
        }
    }

    /// Reads up to the next end of line. Returns whether there is one; a line that is too long becomes an empty one, after its refusal.
    async fn fill(&mut self) -> io::Result<bool> {
        loop {
            let available = self.read.fill_buf().await?;
            if available.is_empty() {
                // The last line need not have an end.
                return Ok(!self.line.is_empty());
            }
            let end = available.iter().position(|byte| *byte == b'\n');
            let taken = end.map_or(available.len(), |at| at + 1);
            let is_too_long = self.line.len() + taken > MAX_MESSAGE;
            if !self.is_skipping && !is_too_long {
                self.line.extend_from_slice(&available[..taken]);
            }
            self.read.consume(taken);
            if is_too_long && !self.is_skipping {
                self.line.clear();
                self.is_skipping = true;
                let error = ErrorData::invalid_request(format!("a message has at most {MAX_MESSAGE} bytes"), None);
                self.reply = encode(&ServerJsonRpcMessage::error(error, None));
            }
            if end.is_some() {
                self.is_skipping = false;
                return Ok(true);
            }
        }
    }
}

impl<R, W> Transport<RoleServer> for Lines<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn send(&mut self, message: TxJsonRpcMessage<RoleServer>) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let (write, open) = (Arc::clone(&self.write), Arc::clone(&self.open));
        async move {
            let line = serde_json::to_vec(&message)?;
            let written = write_line(&write, line).await;
            match &message {
                JsonRpcMessage::Response(response) => open.take(&response.id),
                JsonRpcMessage::Error(error) => error.id.iter().for_each(|id| open.take(id)),
                _ => {}
            }
            written
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            // A wait that is given up has said it, or says it again from its beginning: nothing of a line was written before all of it can be.
            if let Some(reply) = self.reply.clone() {
                let write = Arc::clone(&self.write);
                // Said by a task of its own, which is not given up.
                let said = tokio::spawn(async move { write_line(&write, reply).await });
                self.reply = None;
                if !matches!(said.await, Ok(Ok(()))) {
                    return None;
                }
            }
            match self.fill().await {
                Ok(true) => {}
                Ok(false) => {
                    self.hear_out().await;
                    return None;
                }
                Err(error) => {
                    tracing::warn!(%error, "standard input cannot be read");
                    return None;
                }
            }
            let read = understand(&self.line);
            self.line.clear();
            match read {
                Read::Message(message) => {
                    self.is_begun |= matches!(*message, ClientJsonRpcMessage::Request(_));
                    if self.is_begun {
                        self.note(&message);
                        return Some(*message);
                    }
                }
                Read::Refused(id, error) => self.reply = encode(&ServerJsonRpcMessage::error(error, id)),
                Read::Ignored => {}
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        drop(self.write.lock().await.take());
        Ok(())
    }
}

async fn write_line<W: AsyncWrite + Unpin>(write: &Mutex<Option<W>>, mut line: Vec<u8>) -> io::Result<()> {
    let mut write = write.lock().await;
    let stream = write.as_mut().ok_or(io::ErrorKind::NotConnected)?;
    line.push(b'\n');
    stream.write_all(&line).await?;
    stream.flush().await
}

fn encode(message: &ServerJsonRpcMessage) -> Option<Vec<u8>> {
    serde_json::to_vec(message).ok()
}

/// Returns what a line, or a body, means.
pub(super) fn understand(line: &[u8]) -> Read {
    let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line).trim_ascii();
    if line.is_empty() {
        return Read::Ignored;
    }
    let Ok(value) = serde_json::from_slice::<Value>(line) else {
        return Read::Refused(None, ErrorData::parse_error("a message is one JSON object", None));
    };
    let Some(object) = value.as_object() else {
        return Read::Refused(
            None,
            ErrorData::invalid_request("a message is one request, notification or response; no batches", None),
        );
    };
    let id = object.get("id").and_then(|id| serde_json::from_value::<RequestId>(id.clone()).ok());
    let method = object.get("method").and_then(Value::as_str).map(str::to_owned);
    let is_response = object.contains_key("result") || object.contains_key("error");
    let is_request = object.contains_key("id");
    match serde_json::from_slice(line) {
        Ok(ClientJsonRpcMessage::Request(request)) => {
            let error = match &request.request {
                ClientRequest::CustomRequest(custom) => misfit(custom),
                _ => None,
            };
            match error {
                Some(error) => Read::Refused(Some(request.id), error),
                None => Read::Message(Box::new(ClientJsonRpcMessage::Request(request))),
            }
        }
        Ok(message) => Read::Message(Box::new(message)),
        // Nobody waits for an answer to these.
        Err(_) if is_response || (method.is_some() && !is_request) => Read::Ignored,
        Err(_) => Read::Refused(
            id,
            match method {
                Some(method) => {
                    let method: String = method.chars().filter(|character| !character.is_control()).take(64).collect();
                    ErrorData::invalid_params(format!("the parameters of `{method}` do not have its form"), None)
                }
                None => ErrorData::invalid_request("a request has `jsonrpc`, `id` and `method`", None),
            },
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the methods and ids of what is received of an input, and what is replied to the rest.
    fn converse(input: &[u8]) -> (Vec<String>, Vec<String>) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        runtime.block_on(async {
            let (ours, mut theirs) = tokio::io::duplex(1 << 16);
            let mut lines = Lines::new(input, ours);
            let mut received = Vec::new();
            while let Some(message) = lines.receive().await {
                if let JsonRpcMessage::Request(request) = &message {
                    // As its answer would.
                    lines.open.take(&request.id);
                }
                let value = serde_json::to_value(&message).expect("JSON");
                received.push(format!("{} {}", value["method"].as_str().unwrap_or("-"), value["id"]));
            }
            lines.close().await.expect("closed");
            drop(lines);
            let mut said = String::new();
            tokio::io::AsyncReadExt::read_to_string(&mut theirs, &mut said).await.expect("text");
            let said = said.lines().map(|line| {
                let value: Value = serde_json::from_str(line).expect("JSON");
                format!("{} {} {}", value["error"]["code"], value["id"], value["error"]["message"].as_str().unwrap_or_default())
            });
            (received, said.collect())
        })
    }

    #[test]
    fn what_is_not_understood_is_answered_and_the_next_line_is_read() {
        let check = |line: &str, refusal: &str| {
            let input = format!("{line}\n{}\n", r#"{"jsonrpc":"2.0","id":9,"method":"tools/list"}"#);
            let (received, said) = converse(input.as_bytes());
            assert_eq!(received, ["tools/list 9"], "{line}");
            assert_eq!(said.join("; "), refusal, "{line}");
        };
        check("", "");
        check("\u{feff}", "");
        check("{", "-32700 null a message is one JSON object");
        check("[]", "-32600 null a message is one request, notification or response; no batches");
        check("7", "-32600 null a message is one request, notification or response; no batches");
        check(r#"{"jsonrpc":"2.0","id":1}"#, "-32600 1 a request has `jsonrpc`, `id` and `method`");
        check(
            r#"{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"arguments":{}}}"#,
            "-32602 \"a\" the parameters of `tools/call` do not have its form",
        );
        check(
            r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"explore","arguments":"x"}}"#,
            "-32602 2 the parameters of `tools/call` do not have its form",
        );
        // No notification and no response is ever answered, and before the first request they mean nothing.
        check(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":7}"#, "");
        check(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#, "");
        check(r#"{"jsonrpc":"2.0","error":{"code":-32700,"message":"x"}}"#, "");
    }

    #[test]
    fn messages_are_bounded() {
        let long = format!("{{\"x\":\"{}\"}}\n", "y".repeat(3 * MAX_MESSAGE));
        let input = format!("{long}{long}{}\n", r#"{"jsonrpc":"2.0","id":9,"method":"tools/list"}"#);
        let (received, said) = converse(input.as_bytes());
        assert_eq!(received, ["tools/list 9"]);
        assert_eq!(said, ["-32600 null a message has at most 1048576 bytes"; 2]);
    }

    #[test]
    fn the_end_is_told_once_all_is_answered_or_given_up() {
        let list = |id: u64| format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/list\"}}\n");
        let cancelled = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":8}}"#;
        let input = format!("{}{}{cancelled}\n", list(8), list(9));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        runtime.block_on(async {
            let (ours, _theirs) = tokio::io::duplex(1 << 16);
            let mut lines = Lines::new(input.as_bytes(), ours);
            for _ in 0..3 {
                assert!(lines.receive().await.is_some());
            }
            let soon = Duration::from_millis(20);
            // However often it is asked for more.
            for _ in 0..2 {
                assert!(tokio::time::timeout(soon, lines.receive()).await.is_err(), "somebody waits for an answer");
            }
            let answer = ServerJsonRpcMessage::error(ErrorData::internal_error("none", None), Some(RequestId::Number(9)));
            lines.send(answer).await.expect("written");
            assert!(lines.receive().await.is_none());
        });
    }

    #[test]
    fn the_last_line_need_not_end() {
        let (received, said) = converse(br#"{"jsonrpc":"2.0","id":9,"method":"tools/list"}"#);
        assert_eq!((received.as_slice(), said.len()), (["tools/list 9".to_owned()].as_slice(), 0));
    }
}
