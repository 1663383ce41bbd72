//! What is said over the socket: one JSON object a line, the greeting of the daemon first, then requests and what they are answered with.
//!
//! Must not know a command or an operation. Invariant: no line is longer than [`MAX_LINE`], and whatever bytes a path, an argument or an
//! output holds arrive as they were.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::engine::Progress;

/// Of the form of greeting, requests and replies.
pub const PROTOCOL: u32 = 1;
/// The longest line; longer command lines and inputs are for a process of their own.
pub const MAX_LINE: usize = 16 << 20;
/// How much of an output goes into one line.
const MOST_OUTPUT: usize = 64 << 10;
/// How much is read at once.
const CHUNK: usize = 64 << 10;

/// The first line, said by the daemon.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Greeting {
    /// The version of the program.
    pub sextant: String,
    pub protocol: u32,
    pub build: String,
    pub pid: u32,
}

/// What may be said first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum First {
    Greeting(Greeting),
    /// All connections are taken; it is the last line, too.
    Busy {
        error: TurnedAway,
    },
}

/// Why a client is turned away.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "code", rename_all = "snake_case")]
pub enum TurnedAway {
    ServerBusy,
}

/// What a client asks; one after the other on a connection.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// Runs a command line as a process of its own would.
    Run(Call),
    /// Answers a request of the wire contract.
    Query(Question),
    /// Says how the daemon is.
    Status {},
    /// Makes the daemon leave.
    Stop {},
}

/// A command line, and what a process knows beside it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Call {
    /// The program's name first.
    pub line: Vec<Text>,
    pub current_dir: Text,
    pub home: Option<Text>,
    pub xdg_cache_home: Option<Text>,
    /// `SEXTANT_CONFIG`.
    pub config: Option<Text>,
    /// Whether the answer goes where colours are read.
    pub color: bool,
    /// Whether somebody wants to see how far it is.
    #[serde(default)]
    pub progress: bool,
    /// All of standard input, where the command reads it.
    #[serde(default)]
    pub input: Text,
}

/// A request of the wire contract, and which scope it is for.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// Its name; left out, it is the scope of `root`.
    pub scope: Option<String>,
    /// Absolute path of the top of a worktree.
    pub root: Option<Text>,
    /// Absolute path of a configuration file; left out, it is that of the daemon.
    pub config: Option<Text>,
    /// What to do when the index is stale, instead of what the scope says: `refuse` or `sync`.
    pub on_stale: Option<String>,
    /// As the contract says, taken as it is written.
    pub request: Box<RawValue>,
}

/// What the daemon says to a `run`, one or more lines, the last one being the `exit`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// The work goes on.
    Alive {},
    /// The work goes on, and is so far.
    Progress(Progress),
    /// The next piece of standard output.
    Out(Text),
    /// The next piece of standard error.
    Err(Text),
    /// The end.
    Exit { status: u8 },
}

/// Returns what replies put to standard output and to standard error.
pub fn streams(said: &[Reply]) -> (Vec<u8>, Vec<u8>) {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    for reply in said {
        match reply {
            Reply::Out(Text(piece)) => out.extend_from_slice(piece),
            Reply::Err(Text(piece)) => err.extend_from_slice(piece),
            Reply::Alive {} | Reply::Progress(_) | Reply::Exit { .. } => {}
        }
    }
    (out, err)
}

/// Bytes that are text nearly always: a string, else `{"hex": "…"}`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Text(pub Vec<u8>);

impl Text {
    pub fn of_path(path: &Path) -> Self {
        Self(path.as_os_str().as_bytes().to_vec())
    }

    pub fn into_path(self) -> PathBuf {
        self.into_os().into()
    }

    pub fn into_os(self) -> OsString {
        OsString::from_vec(self.0)
    }
}

impl From<&OsString> for Text {
    fn from(text: &OsString) -> Self {
        Self(text.as_bytes().to_vec())
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Hex {
    hex: String,
}

impl Serialize for Text {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use std::fmt::Write as _;
        match std::str::from_utf8(&self.0) {
            Ok(text) => serializer.serialize_str(text),
            Err(_) => {
                let mut hex = String::with_capacity(2 * self.0.len());
                for byte in &self.0 {
                    write!(hex, "{byte:02x}").expect("writing to a string");
                }
                Hex { hex }.serialize(serializer)
            }
        }
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Form {
            Plain(String),
            Hex(Hex),
        }
        match Form::deserialize(deserializer)? {
            Form::Plain(text) => Ok(Self(text.into_bytes())),
            Form::Hex(Hex { hex }) => {
                let digits: Option<Vec<u8>> =
                    hex.chars().map(|digit| digit.to_digit(16).and_then(|digit| u8::try_from(digit).ok())).collect();
                let digits = digits.filter(|digits| digits.len() % 2 == 0);
                let digits = digits.ok_or_else(|| D::Error::custom("no hexadecimal bytes"))?;
                Ok(Self(digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect()))
            }
        }
    }
}

/// Returns the pieces of an output that fit into a line each, cut between characters where there are any.
pub fn pieces(bytes: &[u8]) -> impl Iterator<Item = Text> + '_ {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let mut end = rest.len().min(MOST_OUTPUT);
        if end == 0 {
            return None;
        }
        // A character has three bytes at most after its first one.
        let is_inside = |at: usize| rest.get(at).is_some_and(|byte| byte & 0xc0 == 0x80);
        if let Some(start) = (end.saturating_sub(3)..=end).rev().find(|at| *at > 0 && !is_inside(*at)) {
            end = start;
        }
        let (piece, left) = rest.split_at(end);
        rest = left;
        Some(Text(piece.to_vec()))
    })
}

/// Writes one line.
///
/// # Errors
/// When the peer is gone or does not read in the time that the stream gives it.
pub fn write_line<T: Serialize>(stream: &UnixStream, value: &T) -> io::Result<()> {
    write_whole(stream, serde_json::to_vec(value)?)
}

/// Writes one line that is JSON already.
///
/// # Errors
/// As [`write_line`].
pub fn write_whole(mut stream: &UnixStream, mut line: Vec<u8>) -> io::Result<()> {
    line.push(b'\n');
    stream.write_all(&line)
}

/// Reads lines from a stream.
#[derive(Debug)]
pub struct Lines<'s> {
    stream: &'s UnixStream,
    received: Vec<u8>,
    /// How much of it was looked at for an end of line.
    searched: usize,
}

impl<'s> Lines<'s> {
    pub fn new(stream: &'s UnixStream) -> Self {
        Self { stream, received: Vec::new(), searched: 0 }
    }

    /// Returns the next line, without its end; `None` when there are no more. Waits for all of it until the deadline.
    ///
    /// # Errors
    /// When the deadline passes (`TimedOut`), the line is too long (`InvalidData`) or the stream fails.
    pub fn next(&mut self, limit: usize, deadline: Option<Instant>) -> io::Result<Option<Vec<u8>>> {
        loop {
            if let Some(at) = self.received[self.searched..].iter().position(|byte| *byte == b'\n') {
                let rest = self.received.split_off(self.searched + at + 1);
                let mut line = std::mem::replace(&mut self.received, rest);
                self.searched = 0;
                line.pop();
                return Ok(Some(line));
            }
            self.searched = self.received.len();
            if self.received.len() > limit {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "the line is too long"));
            }
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if wait(self.stream, PollFlags::IN, left)?.is_empty() {
                return Err(io::ErrorKind::TimedOut.into());
            }
            let start = self.received.len();
            self.received.resize(start + CHUNK, 0);
            let read = self.stream.read(&mut self.received[start..]);
            self.received.truncate(start + read.as_ref().copied().unwrap_or(0));
            match read {
                Ok(0) => return Ok(None),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// Waits until a stream is ready as wanted, or its peer is gone for good, which is always told; nothing when the time has passed.
///
/// # Errors
/// When the system cannot wait.
pub fn wait(stream: &UnixStream, wanted: PollFlags, limit: Option<Duration>) -> io::Result<PollFlags> {
    let end = limit.map(|limit| Instant::now() + limit);
    loop {
        let mut entries = [PollFd::new(stream, wanted)];
        let left = end.map(|end| end.saturating_duration_since(Instant::now()));
        let timeout = left.map(|left| Timespec::try_from(left).map_err(io::Error::other)).transpose()?;
        match poll(&mut entries, timeout.as_ref()) {
            Ok(_) => return Ok(entries[0].revents()),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_arrive_as_they_were() {
        let check = |bytes: &[u8], json: &str| {
            let text = Text(bytes.to_vec());
            assert_eq!(serde_json::to_string(&text).expect("JSON"), json);
            assert_eq!(serde_json::from_str::<Text>(json).expect("text"), text);
        };
        check("a\u{0}\n\"ö".as_bytes(), "\"a\\u0000\\n\\\"ö\"");
        check(b"\xffa", r#"{"hex":"ff61"}"#);
        for broken in [r#"{"hex":"f"}"#, r#"{"hex":"zz"}"#, r#"{"hex":"ff","x":1}"#, "7", "null"] {
            assert!(serde_json::from_str::<Text>(broken).is_err(), "{broken}");
        }
    }

    #[test]
    fn pieces_end_between_characters() {
        let text = "añ€😀".repeat(MOST_OUTPUT / 7);
        let (mut whole, mut count) = (Vec::new(), 0);
        for Text(piece) in pieces(text.as_bytes()) {
            assert!(piece.len() <= MOST_OUTPUT && std::str::from_utf8(&piece).is_ok());
            whole.extend_from_slice(&piece);
            count += 1;
        }
        assert!(whole == text.as_bytes() && count > 1);
        let noise = vec![0x80; MOST_OUTPUT + 5];
        assert_eq!(pieces(&noise).map(|Text(piece)| piece).collect::<Vec<_>>().concat(), noise);
        assert_eq!(pieces(b"").count(), 0);
    }

    #[test]
    fn lines_are_bounded_in_length_and_time() {
        let (ours, theirs) = UnixStream::pair().expect("a pair");
        let mut lines = Lines::new(&ours);
        (&theirs).write_all(b"one\n\ntw").expect("written");
        let mut next = |limit, millis| lines.next(limit, Some(Instant::now() + Duration::from_millis(millis)));
        assert_eq!(next(9, 9_000).expect("whole"), Some(b"one".to_vec()));
        assert_eq!(next(9, 9_000).expect("whole"), Some(Vec::new()));
        assert_eq!(next(9, 1).expect_err("not whole").kind(), io::ErrorKind::TimedOut);
        (&theirs).write_all(b"o\nlonger than nine").expect("written");
        assert_eq!(next(9, 9_000).expect("whole"), Some(b"two".to_vec()));
        assert_eq!(next(9, 9_000).expect_err("too long").kind(), io::ErrorKind::InvalidData);
        drop(theirs);
        assert_eq!(next(99, 9_000).expect("an end"), None);
    }

    #[test]
    fn requests_as_they_are_written() {
        let parse = |line: &str| serde_json::from_slice::<Request>(line.as_bytes());
        let line = r#"{"query":{"scope":"demo","request":{"operation":{"kind":"status"},  "max_bytes":1e3}}}"#;
        let Ok(Request::Query(question)) = parse(line) else { panic!("{:?}", parse(line)) };
        assert_eq!(question.request.get(), r#"{"operation":{"kind":"status"},  "max_bytes":1e3}"#);
        assert!(matches!(parse(r#"{"status":{}}"#), Ok(Request::Status {})));
        assert!(matches!(parse(r#"{"stop":{}}"#), Ok(Request::Stop {})));
        for broken in [r#"{"query":{"scope":"demo"}}"#, r#"{"stop":{"now":1}}"#, r#"{"go":{}}"#, "[]", ""] {
            assert!(parse(broken).is_err(), "{broken}");
        }
        let busy = serde_json::to_string(&First::Busy { error: TurnedAway::ServerBusy }).expect("JSON");
        assert_eq!(busy, r#"{"error":{"code":"server_busy"}}"#);
        assert!(matches!(serde_json::from_str(&busy), Ok(First::Busy { .. })));
        assert!(serde_json::from_str::<First>(r#"{"error":{"code":"invalid_code_request"}}"#).is_err());
        assert_eq!(serde_json::to_string(&Reply::Alive {}).expect("JSON"), r#"{"alive":{}}"#);
        assert_eq!(serde_json::to_string(&Reply::Exit { status: 3 }).expect("JSON"), r#"{"exit":{"status":3}}"#);
    }
}
