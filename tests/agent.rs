//! A client of the Model Context Protocol that says exactly what it is told, over the standard streams of a server it starts.
//!
//! Invariant: the server ends with its test.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::background::{CAP, wait};
use crate::sandbox::Sandbox;

/// A client that speaks one revision of the protocol.
pub struct Client {
    pub child: Child,
    pub input: Option<ChildStdin>,
    lines: Receiver<String>,
    pub revision: &'static str,
    asked: u64,
    /// What the server said beside answers, in order.
    pub told: Vec<Value>,
}

pub const CURRENT: &str = "2026-07-28";
pub const OLDER: &str = "2025-11-25";
pub const OLDEST: &str = "2025-06-18";

impl Client {
    pub fn start(mut command: Command, revision: &'static str) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the program starts");
        let (input, output) = (child.stdin.take(), child.stdout.take().expect("it is piped"));
        let (send, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines() {
                if send.send(line.expect("text")).is_err() {
                    break;
                }
            }
        });
        Self { child, input, lines, revision, asked: 0, told: Vec::new() }
    }

    /// Starts the program in a sandbox, without a daemon, and greets it.
    pub fn in_sandbox(sandbox: &Sandbox, revision: &'static str) -> Self {
        let mut client = Self::start(sandbox.program(&["mcp", "--no-daemon"]), revision);
        client.greet();
        client
    }

    pub fn greet(&mut self) {
        if self.revision != CURRENT {
            let answer = self.ask("initialize", initialize(self.revision, &json!({})));
            assert_eq!(answer["result"]["protocolVersion"], self.revision);
            self.say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        }
    }

    pub fn say(&mut self, message: &Value) {
        writeln!(self.input.as_mut().expect("it is open"), "{message}").expect("it reads");
    }

    /// Returns the next message, whatever it is.
    pub fn next(&mut self) -> Value {
        let line = self.lines.recv_timeout(CAP).expect("it says something");
        let value: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert_eq!(value["jsonrpc"], "2.0", "{line}");
        value
    }

    /// Sends a request. Returns its id.
    pub fn request(&mut self, method: &str, mut params: Value) -> u64 {
        self.asked += 1;
        if self.revision == CURRENT && method != "initialize" {
            let meta = &mut params["_meta"];
            meta["io.modelcontextprotocol/protocolVersion"] = CURRENT.into();
            meta["io.modelcontextprotocol/clientCapabilities"] = json!({});
            meta["io.modelcontextprotocol/clientInfo"] = json!({"name": "test", "version": "0"});
        }
        self.say(&json!({"jsonrpc": "2.0", "id": self.asked, "method": method, "params": params}));
        self.asked
    }

    /// Returns the answer to a request, as it was written.
    pub fn line_of(&mut self, id: u64) -> String {
        loop {
            let line = self.lines.recv_timeout(CAP).expect("it answers");
            let value: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
            if value["id"] == id && value.get("method").is_none() {
                return line;
            }
            self.told.push(value);
        }
    }

    pub fn answer_of(&mut self, id: u64) -> Value {
        serde_json::from_str(&self.line_of(id)).expect("JSON")
    }

    pub fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params);
        self.answer_of(id)
    }

    pub fn call(&mut self, tool: &str, arguments: Value) -> Called {
        let id = self.request("tools/call", json!({"name": tool, "arguments": arguments}));
        Called::of(&self.line_of(id))
    }

    /// Closes the input. Returns how the program ended and the messages that came until then.
    pub fn end(mut self) -> (Option<i32>, Vec<Value>) {
        drop(self.input.take());
        let mut status = None;
        wait("the server is gone", || {
            status = self.child.try_wait().expect("it is ours");
            status.is_some()
        });
        let rest = self.lines.iter().map(|line| serde_json::from_str(&line).expect("JSON")).collect();
        (status.and_then(|status| status.code()), rest)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn initialize(revision: &str, capabilities: &Value) -> Value {
    json!({"protocolVersion": revision, "capabilities": capabilities, "clientInfo": {"name": "test", "version": "0"}})
}

/// The result of a call.
#[derive(Debug)]
pub struct Called {
    pub text: String,
    /// As it was written.
    pub structured: String,
    pub failed: bool,
}

impl Called {
    #[track_caller]
    pub fn of(line: &str) -> Self {
        #[derive(Deserialize)]
        struct Answer {
            result: Outcome,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Outcome {
            content: Vec<Value>,
            structured_content: Box<RawValue>,
            is_error: bool,
        }
        let Answer { result } = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert_eq!(result.content.len(), 1);
        let text = result.content[0]["text"].as_str().expect("text").to_owned();
        Self { text, structured: result.structured_content.get().to_owned(), failed: result.is_error }
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.structured).expect("JSON")
    }

    pub fn code(&self) -> String {
        self.json()["error"]["code"].as_str().unwrap_or_default().to_owned()
    }

    /// Returns the names of the items.
    pub fn names(&self) -> String {
        let json = self.json();
        let items = json["items"].as_array().unwrap_or_else(|| panic!("{self:?}"));
        let name = |item: &Value| item["qualified_name"].as_str().or(item["path"].as_str()).unwrap_or_default().to_owned();
        items.iter().map(name).collect::<Vec<_>>().join(" ")
    }
}
