//! What a build and its parser processes say to each other: frames of a length and a message.
//!
//! Must not know processes or pipes. Invariant: nothing that comes in is believed: a length is bounded before anything is kept for it,
//! and a message is one of the known ones, whole, or an error.

use std::io::{self, Read};

use serde::{Deserialize, Serialize};

use crate::languages::{Dialect, LanguageSupport};
use crate::model::{Canonical, ContentHash};

use super::{ParseFailure, ParseLimits};

/// Changes with the form of the messages.
const VERSION: u64 = 1;
/// A frame begins with its length: four bytes, the least significant first.
pub const LENGTH_BYTES: usize = 4;
/// No file is larger than the configuration allows, and that is below this.
pub const MAX_REQUEST: usize = 1 << 31;

/// The part of a request before the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header<'a> {
    /// Counts the requests of a worker, from 1; the answers bear it.
    pub sequence: u64,
    pub language: &'a str,
    pub dialect: &'a str,
    pub time_millis: u64,
}

/// What a worker says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    /// The first message: the build of the worker.
    Ready { build: [u8; 32] },
    /// The request was read whole; whatever happens from here on is of its file.
    Begun { sequence: u64 },
    /// Behind this stand the facts, as [`crate::model::codec`] writes them. A worker that is used up ends after this.
    Facts { sequence: u64, used_up: bool },
    /// There are none. The worker ends after this unless it was a timeout.
    Failed { sequence: u64, failure: ParseFailure },
}

/// Why a message is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProtocolError {
    #[error("a message is longer than any can be")]
    TooLong,
    #[error("a message is none of the known ones")]
    Unknown,
    #[error("a language or dialect is unknown")]
    Language,
    #[error("an answer is to another request")]
    Sequence,
    #[error("a message came out of turn")]
    Turn,
}

/// Returns the identity of what makes facts here. Two processes of equal identity make equal facts of equal bytes, and understand each
/// other.
pub fn build(languages: &[&'static dyn LanguageSupport]) -> ContentHash {
    let mut record = Canonical::new("parser");
    record.number(VERSION).field(env!("CARGO_PKG_VERSION").as_bytes()).number(languages.len() as u64);
    for language in languages {
        record.field(language.name().as_bytes()).field(language.extractor_build().as_bytes());
    }
    ContentHash(record.finish())
}

/// Returns how long the answer about a source of so many bytes may be. Facts are a few times as long as the source, in the worst of
/// cases some ten times.
pub fn max_answer(source_bytes: usize) -> usize {
    (64 << 10) + 48 * source_bytes
}

/// Puts a request behind what `frames` holds.
pub fn write_request(frames: &mut Vec<u8>, header: &Header<'_>, source: &[u8]) {
    write_frame(frames, header, source);
}

/// Puts an answer behind what `frames` holds, and the facts behind it, if it announces some.
pub fn write_answer(frames: &mut Vec<u8>, answer: &Answer, facts: &[u8]) {
    write_frame(frames, answer, facts);
}

fn write_frame(frames: &mut Vec<u8>, message: &impl Serialize, rest: &[u8]) {
    let start = frames.len();
    frames.extend([0; LENGTH_BYTES]);
    let mut frame = postcard::to_extend(message, std::mem::take(frames)).expect("plain values have this form");
    frame.extend_from_slice(rest);
    let length = u32::try_from(frame.len() - start - LENGTH_BYTES).expect("sources and answers are far below 4 GiB");
    frame[start..start + LENGTH_BYTES].copy_from_slice(&length.to_le_bytes());
    *frames = frame;
}

/// Returns the length that a frame says to have after its first bytes; `None` while these are not all there.
///
/// # Errors
/// When it is longer than `limit`.
pub fn frame_length(bytes: &[u8], limit: usize) -> Result<Option<usize>, ProtocolError> {
    let Some(length) = bytes.first_chunk::<LENGTH_BYTES>() else { return Ok(None) };
    let length = u32::from_le_bytes(*length) as usize;
    if length > limit { Err(ProtocolError::TooLong) } else { Ok(Some(length)) }
}

/// Reads one frame into `frame`, without its length; false at the end of the stream.
///
/// # Errors
/// When the stream fails, ends inside a frame, or says a length that no frame has.
pub fn read_frame(input: &mut impl Read, frame: &mut Vec<u8>) -> io::Result<bool> {
    let mut length = [0; LENGTH_BYTES];
    match input.read(&mut length)? {
        0 => return Ok(false),
        some => input.read_exact(&mut length[some..])?,
    }
    let length = frame_length(&length, MAX_REQUEST).map_err(io::Error::other)?.expect("all its bytes are there");
    frame.clear();
    frame.reserve(length.min(256 << 10));
    // What is not sent needs no room, whatever was said.
    if input.take(length as u64).read_to_end(frame)? < length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(true)
}

/// Reads the body of a request frame: the header and the source.
///
/// # Errors
/// When it is none.
pub fn parse_request(frame: &[u8]) -> Result<(Header<'_>, &[u8]), ProtocolError> {
    postcard::take_from_bytes(frame).map_err(|_| ProtocolError::Unknown)
}

/// Reads the body of an answer frame: the answer, and the facts behind it.
///
/// # Errors
/// When it is none, or has something behind it that it does not announce.
pub fn parse_answer(frame: &[u8]) -> Result<(Answer, &[u8]), ProtocolError> {
    match postcard::take_from_bytes(frame) {
        Ok((answer, rest)) if rest.is_empty() || matches!(answer, Answer::Facts { .. }) => Ok((answer, rest)),
        _ => Err(ProtocolError::Unknown),
    }
}

impl Header<'_> {
    /// Returns what the header names, in a table of languages.
    ///
    /// # Errors
    /// When the table has no such language, or the language no such dialect.
    pub fn language(
        &self,
        languages: &[&'static dyn LanguageSupport],
    ) -> Result<(&'static dyn LanguageSupport, Dialect), ProtocolError> {
        let language = languages.iter().find(|language| language.name() == self.language).ok_or(ProtocolError::Language)?;
        let dialect = language.dialects().iter().find(|dialect| **dialect == self.dialect).ok_or(ProtocolError::Language)?;
        Ok((*language, dialect))
    }

    /// Returns the limits of this request in a worker with so much memory.
    pub fn limits(&self, memory_bytes: u64) -> ParseLimits {
        ParseLimits { time: std::time::Duration::from_millis(self.time_millis), memory_bytes }
    }
}

#[cfg(test)]
mod tests {
    use crate::languages::REGISTRY;

    use super::*;

    fn body(frame: &[u8]) -> &[u8] {
        let length = frame_length(frame, 1 << 20).expect("short").expect("whole");
        assert_eq!(frame.len(), LENGTH_BYTES + length);
        &frame[LENGTH_BYTES..]
    }

    #[test]
    fn requests_come_through() {
        let header = Header { sequence: 7, language: "python", dialect: "python-stub", time_millis: 5000 };
        let mut frames = Vec::new();
        write_request(&mut frames, &header, b"x = 1\n");
        assert_eq!(parse_request(body(&frames)), Ok((header, b"x = 1\n".as_slice())));
        let (language, dialect) = header.language(REGISTRY).expect("registered");
        assert_eq!((language.name(), dialect), ("python", "python-stub"));
        for (language, dialect) in [("cobol", "python"), ("python", "cobol")] {
            assert_eq!(Header { language, dialect, ..header }.language(REGISTRY).err(), Some(ProtocolError::Language));
        }
        write_request(&mut frames, &header, b"");
        let (mut input, mut frame, mut count) = (frames.as_slice(), Vec::new(), 0);
        while read_frame(&mut input, &mut frame).expect("whole frames") {
            count += 1;
        }
        assert_eq!(count, 2);
        assert!(read_frame(&mut &frames[..frames.len() - 1], &mut frame).expect("the first is whole"));
    }

    #[test]
    fn answers_come_through() {
        let answers = [
            (Answer::Ready { build: build(REGISTRY).0 }, b"".as_slice()),
            (Answer::Begun { sequence: 1 }, b""),
            (Answer::Facts { sequence: 1, used_up: false }, b"facts"),
            (Answer::Failed { sequence: u64::MAX, failure: ParseFailure::Memory }, b""),
        ];
        for (answer, facts) in answers {
            let mut frame = Vec::new();
            write_answer(&mut frame, &answer, facts);
            assert_eq!(parse_answer(body(&frame)), Ok((answer, facts)));
            if facts.is_empty() {
                for end in 0..frame.len() - LENGTH_BYTES {
                    assert_eq!(parse_answer(&body(&frame)[..end]), Err(ProtocolError::Unknown));
                }
                frame.push(0);
                assert_eq!(parse_answer(&frame[LENGTH_BYTES..]), Err(ProtocolError::Unknown));
            }
        }
    }

    #[test]
    fn lengths_are_bounded() {
        assert_eq!(frame_length(&[1, 0, 0], 10), Ok(None));
        assert_eq!(frame_length(&[10, 0, 0, 0, 9], 10), Ok(Some(10)));
        assert_eq!(frame_length(&[11, 0, 0, 0], 10), Err(ProtocolError::TooLong));
        let mut frame = Vec::new();
        // A length of almost 2 GiB with nothing behind it takes no memory.
        assert!(read_frame(&mut [255, 255, 255, 127, 1, 2].as_slice(), &mut frame).is_err());
        assert!(frame.capacity() < 1 << 20);
        assert!(read_frame(&mut [255; 5].as_slice(), &mut frame).is_err());
        assert!(read_frame(&mut [1].as_slice(), &mut frame).is_err());
        assert!(!read_frame(&mut [].as_slice(), &mut frame).expect("an end is no error"));
    }
}
