//! A service to test, and a client of HTTP that says exactly what it is told.
//!
//! Invariant: the service ends with its test, and none of its threads may have panicked.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::background::CAP;
use crate::sandbox::Sandbox;
use crate::surface_suite::Suite;

pub const QUERY: &str = "/v1/scopes/demo/code/query";

/// Two tokens: `reader` may read `demo`, `owner` may do everything.
pub fn tokens() -> String {
    let token = |text: &str, scopes: &str, rights: &str| {
        format!("[[http.tokens]]\nname = \"{text}\"\nsha256 = \"{}\"\nscopes = {scopes}\nrights = {rights}\n", digest(text))
    };
    token("reader", r#"["demo"]"#, r#"["scope.read"]"#) + &token("owner", r#"["*"]"#, r#"["scope.read", "code.manage"]"#)
}

pub fn digest(text: &str) -> String {
    sextant::model::ContentHash::of(text.as_bytes()).hex()
}

/// A service that ends with its test.
pub struct Serving {
    pub child: Child,
    pub address: SocketAddr,
}

impl Serving {
    pub fn start(suite: &Suite) -> Self {
        let config = suite.config.to_string_lossy().into_owned();
        Self::spawn(&suite.sandbox, &["--config", &config])
    }

    pub fn spawn(sandbox: &Sandbox, arguments: &[&str]) -> Self {
        let mut command = sandbox.program(&[&["serve", "--json", "--http", "127.0.0.1:0"], arguments].concat());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("it is piped")).read_line(&mut line).expect("text");
        let said: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error} in {line:?}"));
        let address = said["address"].as_str().and_then(|address| address.parse().ok()).expect("an address");
        Self { child, address }
    }

    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).expect("it listens");
        stream.set_read_timeout(Some(CAP)).expect("a socket");
        stream
    }

    /// Sends bytes, and returns all that comes back until the service ends the connection.
    pub fn raw(&self, bytes: &[u8]) -> Vec<u8> {
        let mut stream = self.connect();
        // It may have heard enough before it was told everything.
        let _ = stream.write_all(bytes);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        answer
    }

    pub fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        let mut head = format!("{method} {path} HTTP/1.1\r\nconnection: close\r\ncontent-length: {}\r\n", body.len());
        if !headers.iter().any(|(name, _)| *name == "host") {
            head.push_str(&format!("host: {}\r\n", self.address));
        }
        headers.iter().for_each(|(name, value)| head.push_str(&format!("{name}: {value}\r\n")));
        head.push_str("\r\n");
        Answer::parse(&self.raw(&[head.as_bytes(), body].concat()))
    }

    pub fn get(&self, path: &str, token: &str) -> Answer {
        self.ask("GET", path, &bearer(token), b"")
    }

    pub fn query(&self, token: &str, body: &str) -> Answer {
        let kind = [("content-type", "application/json")];
        self.ask("POST", QUERY, &[&kind[..], &bearer(token)].concat(), body.as_bytes())
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("it runs");
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let mut said = String::new();
        if let Some(mut err) = self.child.stderr.take() {
            let _ = err.read_to_string(&mut said);
        }
        let _ = self.child.wait();
        assert!(!said.contains("panicked") || std::thread::panicking(), "{said}");
    }
}

pub fn bearer(token: &str) -> Vec<(&'static str, &str)> {
    // The scheme and the token stand in one header.
    match token {
        "" => Vec::new(),
        "reader" => vec![("authorization", "Bearer reader")],
        "owner" => vec![("authorization", "Bearer owner")],
        whole => vec![("authorization", whole)],
    }
}

#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    headers: Vec<(String, String)>,
    pub body: String,
}

impl Answer {
    #[track_caller]
    pub fn parse(bytes: &[u8]) -> Self {
        let text = String::from_utf8(bytes.to_vec()).expect("UTF-8");
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no head: {text:?}"));
        let mut lines = head.lines();
        let first = lines.next().unwrap_or_default();
        let status = first.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_else(|| panic!("{first:?}"));
        let split = |line: &str| line.split_once(": ").map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()));
        Self { status, headers: lines.filter_map(split).collect(), body: body.to_owned() }
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers.iter().find(|(found, _)| found == name).map_or("", |(_, value)| value)
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error} in {self:?}"))
    }

    /// Fails unless it is a refusal as the contract writes them. Returns its code.
    #[track_caller]
    pub fn code(&self) -> String {
        let value = self.json();
        let fields = value["error"].as_object().unwrap_or_else(|| panic!("no error: {self:?}"));
        assert_eq!((value.as_object().map(serde_json::Map::len), fields.len()), (Some(1), 3), "{self:?}");
        assert!(fields["message"].as_str().is_some_and(|message| !message.is_empty()), "{self:?}");
        assert!(fields["details"].is_null() || fields["details"]["errors"].is_array(), "{self:?}");
        fields["code"].as_str().expect("a word").to_owned()
    }

    #[track_caller]
    pub fn refused(&self, status: u16, code: &str) {
        assert_eq!((self.status, self.code().as_str()), (status, code), "{self:?}");
    }
}
