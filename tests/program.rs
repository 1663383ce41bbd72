//! The built program, run in a sandbox, and what came of it.
//!
//! Invariant: no run of it may panic, whatever it was given.

use std::io::Write;
use std::process::{Command, Stdio};

use crate::sandbox::{Sandbox, write_file};

pub const PROGRAM: &str = env!("CARGO_BIN_EXE_sextant");

/// Makes a small repository with an index.
pub fn indexed() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("lib.py", "def f():\n    return 1\n");
    sandbox.write("use.py", "from lib import f\n\n\ndef g():\n    return f()\n");
    sandbox.commit_all();
    sandbox.sextant(&["index", "--quiet"]).ended(0);
    sandbox
}

impl Sandbox {
    /// Writes a file below the tree, with the folders above it.
    pub fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        write_file(&self.tree().join(path), content.as_ref());
    }

    /// Returns the program with arguments, to run in the tree.
    pub fn program(&self, arguments: &[&str]) -> Command {
        let mut command = self.command(PROGRAM);
        command.args(arguments).stdin(Stdio::null());
        command
    }

    pub fn sextant(&self, arguments: &[&str]) -> Run {
        Run::of(&mut self.program(arguments))
    }

    /// Runs `query` with a request on standard input.
    pub fn query(&self, request: &str) -> Run {
        let mut command = self.program(&["query", "--request-file", "-"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program starts");
        // The program may refuse before it has read everything.
        let _ = child.stdin.take().expect("it is piped").write_all(request.as_bytes());
        Run::from(child.wait_with_output().expect("the program ends"))
    }
}

/// How one run of the program ended and what it said.
#[derive(Debug)]
pub struct Run {
    pub status: Option<i32>,
    pub out: String,
    pub err: String,
}

impl From<std::process::Output> for Run {
    fn from(output: std::process::Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).expect("the program speaks UTF-8");
        Self { status: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }
}

impl Run {
    pub fn of(command: &mut Command) -> Self {
        Self::from(command.output().expect("the program starts"))
    }

    /// Runs a program that reads all of this on its standard input.
    #[track_caller]
    pub fn told(command: &mut Command, input: &str) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program starts");
        let written = child.stdin.take().expect("it is piped").write_all(input.as_bytes());
        let run = Self::from(child.wait_with_output().expect("the program ends"));
        assert!(written.is_ok(), "it does not read all that it is told: {run:?}");
        run
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error} in {self:?}"))
    }

    /// Returns the code of the error object that ends standard error.
    pub fn code(&self) -> String {
        let last = self.err.lines().last().unwrap_or_default();
        let value: serde_json::Value = serde_json::from_str(last).unwrap_or_else(|error| panic!("{error} in {self:?}"));
        value["error"]["code"].as_str().unwrap_or_default().to_owned()
    }

    /// Fails unless the run ended so, and without a panic.
    #[track_caller]
    pub fn ended(self, status: i32) -> Self {
        assert_eq!(self.status, Some(status), "{self:#?}");
        assert!(!self.err.contains("panicked"), "{self:#?}");
        self
    }
}
