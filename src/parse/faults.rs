//! Faults of a parser process for tests, in builds that ask for them: told by a variable for the process, by a comment for a file.
//!
//! Must not be part of a released program. Invariant: without the variable nothing here does anything.

use std::ffi::OsString;
use std::io::Write;

use super::ParseFailure;

/// What happens to every process (`exit`, `hang`, `other-build`, `babble`, `early`), or `file` for what files ask for.
const VARIABLE: &str = "SEXTANT_PARSER_FAULT";

fn told(fault: &str) -> bool {
    std::env::var(VARIABLE).is_ok_and(|value| value == fault)
}

/// Returns the variable, for a process that sees no other.
pub(super) fn passed_on() -> Option<(&'static str, OsString)> {
    std::env::var_os(VARIABLE).map(|value| (VARIABLE, value))
}

pub(super) fn at_start() {
    if told("exit") {
        std::process::exit(7);
    }
    if told("hang") {
        hang();
    }
}

pub(super) fn build(mut build: [u8; 32]) -> [u8; 32] {
    build[0] ^= u8::from(told("other-build"));
    build
}

pub(super) fn after_greeting() {
    if told("early") {
        std::process::exit(7);
    }
}

/// Does what the source asks for: `# fault: crash` and so on.
pub(super) fn before_file(source: &[u8], output: &mut impl Write) {
    match asked(source) {
        Some("crash") => std::process::abort(),
        Some("exit") => std::process::exit(0),
        Some("kill") => {
            // The process sees no more than that it was killed, as from outside.
            let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
        }
        Some("stall") => hang(),
        Some("memory") => {
            let mut hoard: Vec<Vec<u8>> = Vec::new();
            loop {
                hoard.push(vec![1; 1 << 20]);
            }
        }
        Some("garble") => drop(output.write_all(&[0x05, 0, 0, 0, 9, 9, 9, 9, 9]).and_then(|()| output.flush())),
        Some("long") => drop(output.write_all(&[0xff; 64]).and_then(|()| output.flush())),
        _ => {}
    }
    if told("every-file") {
        std::process::abort();
    }
}

/// Spoils what was made, where the source asks for that.
pub(super) fn after_file(source: &[u8], made: Result<Vec<u8>, ParseFailure>) -> Result<Vec<u8>, ParseFailure> {
    let mut encoded = made?;
    match asked(source) {
        // A number of lines that no file of this size has: second of the values, after the status.
        Some("misfit") => drop(encoded.splice(1..2, [0xff, 0xff, 0x7f])),
        Some("undecodable") => encoded.truncate(encoded.len() / 2),
        Some("panic") => return Err(ParseFailure::Crashed),
        _ => {}
    }
    Ok(encoded)
}

fn asked(source: &[u8]) -> Option<&str> {
    let line = source.strip_prefix(b"# fault: ").filter(|_| told("file"))?;
    std::str::from_utf8(line.split(|byte| *byte == b'\n').next()?).ok()
}

fn hang() -> ! {
    loop {
        std::thread::park();
    }
}
