//! The commands of the program run in this process: each in a session of its own, as a fresh process would, without the cost of one.
//!
//! Invariant: nothing of the machine's environment reaches a command, and nothing lives on from one to the next.

use std::ffi::OsString;

use sextant::cli::{Session, World};
use sextant::config::{Environment, ParserHost};

use crate::program::Run;
use crate::sandbox::Sandbox;

impl Sandbox {
    pub fn run_here(&self, arguments: &[&str]) -> Run {
        self.say_here(arguments, "")
    }

    /// Runs `query` with a request on standard input.
    pub fn query_here(&self, request: &str) -> Run {
        self.say_here(&["query", "--request-file", "-"], request)
    }

    fn say_here(&self, arguments: &[&str], input: &str) -> Run {
        let mut line: Vec<OsString> = ["sextant", "--color", "never"].map(OsString::from).into();
        line.extend(arguments.iter().map(OsString::from));
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let mut world = World {
            environment: Environment {
                current_dir: self.tree(),
                home: Some(self.path().join("home")),
                xdg_cache_home: Some(self.path().join("cache")),
                xdg_runtime_dir: None,
                config: None,
                parsers: ParserHost::ThisProcess,
            },
            input: &mut input.as_bytes(),
            out: &mut out,
            err: &mut err,
            color: false,
        };
        let finish = Session::new().run(&line, &mut world);
        let text = |bytes| String::from_utf8(bytes).expect("the program speaks UTF-8");
        Run { status: Some(finish.exit as i32), out: text(out), err: text(err) }
    }
}
