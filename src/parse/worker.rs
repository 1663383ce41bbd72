//! Inside a parser process: reads requests from one pipe and answers on another, until the first one ends.
//!
//! Must not know who asks, or any path. Invariant: it says that it begun with a request before a grammar sees the source, so that its
//! death can be put down to the right file.

use std::io::{self, Read, Write};
use std::time::Duration;

use crate::languages::LanguageSupport;
use crate::model::codec;

use super::in_process::InProcessParser;
use super::memory::{Memory, memory_in_use};
use super::protocol::{self, Answer, ProtocolError};
use super::system;
use super::{ParseFailure, ParseLimits};

/// Sources from this size on may leave a process with much memory that it does not give back.
const LARGE_SOURCE: usize = 64 << 10;

/// Most requests are read in one go.
const READ_BYTES: usize = 64 << 10;

/// Why a parser process ends before its time.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    #[error("the parser process cannot be bounded")]
    Isolation(#[source] io::Error),
    #[error("the pipes of the parser process failed")]
    Pipe(#[from] io::Error),
    #[error("the parser process was asked for something unknown")]
    Protocol(#[from] ProtocolError),
}

/// Bounds this process and serves as a parser on its first two streams.
///
/// # Errors
/// When the bounds cannot be set, or a message is none; the process must then end.
pub fn run(languages: &[&'static dyn LanguageSupport], memory_bytes: u64, parent: u32) -> Result<(), WorkerError> {
    system::isolate(memory_bytes, parent).map_err(WorkerError::Isolation)?;
    // Taken after that: it leaves open what was open below.
    let (input, mut output) = system::streams()?;
    // A panic message may quote source text, and goes nowhere. That there was one is told by the answer.
    std::panic::set_hook(Box::new(|_| {}));
    serve(languages, memory_bytes, &mut io::BufReader::with_capacity(READ_BYTES, input), &mut output)
}

/// Answers requests until the input ends or this process is used up.
fn serve(
    languages: &[&'static dyn LanguageSupport],
    memory_bytes: u64,
    input: &mut impl Read,
    output: &mut impl Write,
) -> Result<(), WorkerError> {
    let mut frames = Vec::new();
    #[cfg(feature = "faults")]
    super::faults::at_start();
    let build = protocol::build(languages).0;
    #[cfg(feature = "faults")]
    let build = super::faults::build(build);
    protocol::write_answer(&mut frames, &Answer::Ready { build }, &[]);
    output.write_all(&frames)?;
    #[cfg(feature = "faults")]
    super::faults::after_greeting();
    let base = memory_in_use(Memory::Address).unwrap_or(0);
    let mut request = Vec::new();
    while protocol::read_frame(input, &mut request)? {
        let (header, source) = protocol::parse_request(&request)?;
        let (language, dialect) = header.language(languages)?;
        let sequence = header.sequence;
        frames.clear();
        protocol::write_answer(&mut frames, &Answer::Begun { sequence }, &[]);
        output.write_all(&frames)?;
        frames.clear();
        #[cfg(feature = "faults")]
        super::faults::before_file(source, output);
        let limits = ParseLimits { time: Duration::from_millis(header.time_millis), memory_bytes };
        let made = InProcessParser::extract(language, dialect, source, &limits).and_then(|facts| {
            let encoded = codec::encode(&facts).ok_or(ParseFailure::Crashed)?;
            let fits = encoded.len() <= protocol::max_answer(source.len());
            if fits { Ok(encoded) } else { Err(ParseFailure::Memory) }
        });
        #[cfg(feature = "faults")]
        let made = super::faults::after_file(source, made);
        let ends = match &made {
            Ok(encoded) => {
                let grown = || memory_in_use(Memory::Address).unwrap_or(0).saturating_sub(base);
                // What one file left must not count against the next.
                let used_up = source.len() >= LARGE_SOURCE && grown() > memory_bytes / 4;
                protocol::write_answer(&mut frames, &Answer::Facts { sequence, used_up }, encoded);
                used_up
            }
            Err(failure) => {
                protocol::write_answer(&mut frames, &Answer::Failed { sequence, failure: *failure }, &[]);
                *failure != ParseFailure::Timeout
            }
        };
        output.write_all(&frames)?;
        if ends {
            break;
        }
        if frames.capacity() > 1 << 20 {
            frames = Vec::new();
        }
    }
    Ok(())
}
