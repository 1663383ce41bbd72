//! Tests of edits: text in, text out, and back again.

use super::json::{Entry, Slot};
use super::script::Block;
use super::toml;
use super::written::Written;
use super::{Left, Problem};

fn server(command: &str) -> Entry {
    let args = Written::List(vec![Written::text("mcp")]);
    Entry {
        within: &["mcpServers"],
        slot: Slot::Member("sextant"),
        value: Written::Object(vec![("command", Written::text(command)), ("args", args)]),
        beside: &[],
        command: command.to_owned(),
    }
}

fn grouped(program: &str) -> Entry {
    let command = format!("{program} hook claude");
    let own = Written::Object(vec![("type", Written::text("command")), ("command", Written::text(&command))]);
    Entry {
        within: &["hooks", "PostToolUse"],
        slot: Slot::Hook("claude"),
        value: Written::Object(vec![("matcher", Written::text("Edit")), ("hooks", Written::List(vec![own]))]),
        beside: &[],
        command,
    }
}

fn flat() -> Entry {
    let command = "sextant hook cursor".to_owned();
    Entry {
        within: &["hooks", "afterFileEdit"],
        slot: Slot::Hook("cursor"),
        value: Written::Object(vec![("command", Written::text(&command))]),
        beside: &[("version", 1)],
        command,
    }
}

#[track_caller]
fn taken(entry: &Entry, text: &str) -> Option<String> {
    match entry.take(text).expect("valid") {
        Left::Same => Some(text.to_owned()),
        Left::Text(text) => Some(text),
        Left::Nothing => None,
    }
}

/// Adds entries one after the other, checks that a second time changes nothing, and that taking them out gives the very same.
#[track_caller]
fn round(entries: &[Entry], before: Option<&str>) -> String {
    let mut text = before.map(str::to_owned);
    for entry in entries {
        text = Some(entry.add(text.as_deref()).expect("valid").expect("it was not there"));
    }
    let after = text.clone().expect("there are entries");
    for entry in entries {
        assert_eq!(entry.add(Some(&after)).expect("valid"), None, "again:\n{after}");
    }
    for entry in entries.iter().rev() {
        text = text.and_then(|text| taken(entry, &text));
    }
    assert_eq!(text.as_deref(), before, "back from:\n{after}");
    after
}

const BEFORE: &[&str] = &[
    "",
    "\n",
    "// nothing yet\n",
    "{}",
    "{}\n",
    "{ }\n",
    "{\n}\n",
    "{\n  // servers go here\n}\n",
    "{ /* empty */ }\n",
    "{/**/}",
    "{\"a\": 1}",
    "{ \"a\": 1 }\n",
    "{ \"a\": 1, }\n",
    "{\"a\":{},\"b\":[1,2]}\n",
    "{\n  \"a\": 1\n}\n",
    "{\n  \"a\": 1,\n}\n",
    "{\n\t\"a\": 1 // one\n}\n",
    "{\n    \"a\": 1, // one\n    // \"b\": 2\n}\n",
    "{\n  \"a\": 1\n  /* tail */\n}",
    "{\r\n  \"a\": 1\r\n}\r\n",
    "{\r\n}",
    "\u{feff}{\n  \"a\": 1\n}\n",
    "// head\n{\n  \"a\": { \"b\": [] }\n}\n// tail\n",
    "{\n  \"mcpServers\": {}\n}\n",
    "{\n  \"mcpServers\": { }\n}\n",
    "{\"mcpServers\":{}}",
    "{\n  \"mcpServers\": {\n  }\n}\n",
    "{\n  \"mcpServers\": {\n    // none\n  }\n}\n",
    "{\n  \"mcpServers\": {\n    \"other\": { \"command\": \"npx\" }\n  }\n}\n",
    "{\n  \"mcpServers\": { \"other\": { \"command\": \"npx\" } },\n  \"z\": null\n}\n",
    "{\n  \"mcpServers\": {\n    \"other\": {\n      \"command\": \"npx\", // theirs\n    }, // and so on\n  },\n}\n",
    "{\n  \"hooks\": {}\n}\n",
    "{ \"hooks\": { \"PostToolUse\": [] } }\n",
    "{\n  \"hooks\": {\n    \"PostToolUse\": []\n  }\n}\n",
    "{\n  \"hooks\": {\n    \"PreToolUse\": []\n  }\n}\n",
    "{\n  \"hooks\": {\n    \"PostToolUse\": [\n      { \"matcher\": \"Bash\", \"hooks\": [{ \"type\": \"command\", \"command\": \"true\" }] }\n    ]\n  }\n}\n",
    "{\n  \"hooks\": { \"PostToolUse\": [{\"hooks\": []}], \"Stop\": [] }\n}\n",
    "{\n  \"version\": 1\n}\n",
    "{\n  \"version\": 1,\n  \"hooks\": {\n    \"afterFileEdit\": []\n  }\n}\n",
];

#[test]
fn what_is_added_is_taken_out_to_the_byte() {
    for before in BEFORE.iter().map(|text| Some(*text)).chain([None]) {
        round(&[server("sextant")], before);
        round(&[server("/opt/s x/sextant")], before);
        round(&[grouped("sextant")], before);
        round(&[flat()], before);
        round(&[server("sextant"), grouped("'/opt/s x/sextant'")], before);
        round(&[grouped("sextant"), flat(), server("sextant")], before);
    }
}

/// Writes JSON with comments in all kinds of ways.
struct Writer {
    state: u64,
    newline: &'static str,
}

impl Writer {
    fn below(&mut self, bound: u64) -> u64 {
        self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.state >> 33) % bound
    }

    fn gap(&mut self, out: &mut String) {
        for _ in 0..self.below(3) {
            match self.below(9) {
                0 => out.push_str("/* c */"),
                1 => out.push_str(&format!("// \"c\": {{{}", self.newline)),
                2..=4 => out.push_str(self.newline),
                5 => out.push('\t'),
                _ => out.push_str("  "),
            }
        }
    }

    fn value(&mut self, depth: u64, keys: &[&str], out: &mut String) {
        let kind = if depth == 0 { 0 } else { self.below(3) + u64::from(depth > 2) * 2 };
        match kind {
            0 => self.list('{', '}', keys, depth, out),
            1 => self.list('[', ']', &[], depth, out),
            _ => out.push_str(["1", "null", "\"x, y\"", "[]", "{}"][self.below(5) as usize]),
        }
    }

    fn list(&mut self, open: char, close: char, keys: &[&str], depth: u64, out: &mut String) {
        out.push(open);
        self.gap(out);
        let count = self.below(3);
        let own = keys.first().filter(|_| self.below(2) == 0).map(|_| self.below(count + 1));
        let total = count + u64::from(own.is_some());
        for index in 0..total {
            let is_own = own == Some(index);
            if open == '{' {
                let key = if is_own { keys[0].to_owned() } else { format!("k{index}") };
                out.push_str(&format!("\"{key}\""));
                self.gap(out);
                out.push(':');
                self.gap(out);
            }
            match (is_own, keys) {
                (true, [_]) if keys[0] == "PostToolUse" => self.list('[', ']', &[], depth + 1, out),
                (true, _) => self.list('{', '}', &keys[1..], depth + 1, out),
                _ => self.value(depth + 1, &[], out),
            }
            self.gap(out);
            if index + 1 < total || self.below(4) == 0 {
                out.push(',');
                self.gap(out);
            }
        }
        out.push(close);
    }
}

#[test]
fn any_file_is_given_back_to_the_byte() {
    for seed in 0..1_500 {
        let mut writer = Writer { state: seed, newline: if seed % 5 == 0 { "\r\n" } else { "\n" } };
        let mut text = String::new();
        let keys: &[&str] = if seed % 2 == 0 { &["mcpServers"] } else { &["hooks", "PostToolUse"] };
        writer.gap(&mut text);
        writer.value(0, keys, &mut text);
        writer.gap(&mut text);
        round(&[server("sextant"), grouped("sextant")], Some(&text));
        round(&[grouped("sextant"), server("sextant")], Some(&text));
        // What others add behind it in between stays, as if this had never been there.
        let other = Entry { slot: Slot::Member("other"), ..server("sextant") };
        let add = |entry: &Entry, text: &str| entry.add(Some(text)).expect("valid").expect("it was not there");
        let left = taken(&server("sextant"), &add(&other, &add(&server("sextant"), &text))).expect("there is another");
        let without_white = |text: &str| text.split_whitespace().collect::<String>();
        assert_eq!(without_white(&left), without_white(&add(&other, &text)), "{text}");
    }
}

#[test]
fn entries_stand_as_their_neighbours_do() {
    let check = |entry: Entry, before: Option<&str>, want: &str| assert_eq!(round(&[entry], before), want);
    check(
        server("sextant"),
        None,
        "{\n  \"mcpServers\": {\n    \"sextant\": {\n      \"command\": \"sextant\",\n      \"args\": [\"mcp\"]\n    }\n  }\n}\n",
    );
    check(
        flat(),
        None,
        "{\n  \"hooks\": {\n    \"afterFileEdit\": [\n      {\n        \"command\": \"sextant hook cursor\"\n      }\n    ]\n  },\n  \
         \"version\": 1\n}\n",
    );
    check(
        server("sextant"),
        Some("{\n\t\"a\": 1 // one\n\t// more\n}\n"),
        "{\n\t\"a\": 1, // one\n\t\"mcpServers\": {\n\t\t\"sextant\": {\n\t\t\t\"command\": \"sextant\",\n\t\t\t\"args\": [\"mcp\"]\n\
         \t\t}\n\t}\n\t// more\n}\n",
    );
    check(
        server("sextant"),
        Some("{\"a\":1}\n"),
        "{\"a\":1, \"mcpServers\": { \"sextant\": { \"command\": \"sextant\", \"args\": [\"mcp\"] } }}\n",
    );
    check(
        server("sextant"),
        Some("{\n  \"mcpServers\": {}\n}\n"),
        "{\n  \"mcpServers\": {\n    \"sextant\": { \"command\": \"sextant\", \"args\": [\"mcp\"] }\n  }\n}\n",
    );
    check(
        server("sextant"),
        Some("{\n    \"mcpServers\": {\n        \"other\": {}, // theirs\n    },\n}\n"),
        "{\n    \"mcpServers\": {\n        \"other\": {}, // theirs\n        \"sextant\": {\n            \"command\": \"sextant\",\n            \
         \"args\": [\"mcp\"]\n        },\n    },\n}\n",
    );
}

#[test]
fn an_entry_that_moved_is_told_its_new_place_and_keeps_what_was_set() {
    let before = "{ \"mcpServers\": { \"sextant\": { \"command\": \"/old/sextant\", \"args\": [\"mcp\"], \"timeout\": 9 /* mine */ } } }\n";
    let after = server("sextant").add(Some(before)).expect("valid").expect("it moved");
    assert_eq!(after, before.replace("/old/sextant", "sextant"));
    let hooks = "{\"hooks\":{\"PostToolUse\":[{\"matcher\":\"Write\",\"hooks\":[{\"command\":\"/old/sextant hook claude --deadline 2\"}]}]}}";
    let after = grouped("sextant").add(Some(hooks)).expect("valid").expect("it moved");
    assert!(after.contains("\"sextant hook claude\""), "{after}");
}

#[test]
fn a_hook_that_was_given_flags_keeps_them() {
    let hooks = "{\"hooks\":{\"PostToolUse\":[{\"hooks\":[{\"command\":\"sextant hook claude --deadline 20\"}]}]}}";
    assert_eq!(grouped("sextant").add(Some(hooks)).expect("valid"), None);
    assert!(!taken(&grouped("sextant"), hooks).unwrap_or_default().contains("sextant"));
    let table = "[[hooks.PostToolUse]]\n[[hooks.PostToolUse.hooks]]\ncommand = \"sextant hook codex --deadline 20\"\n";
    assert_eq!(codex_hook().add(Some(table)).expect("valid"), None);
}

#[test]
fn entries_of_others_stay() {
    // A group that somebody added a hook to, and a file that was written anew by its host.
    let shared = "{\"hooks\":{\"PostToolUse\":[{\"matcher\":\"Edit\",\"hooks\":[{\"command\":\"fmt\"},{\"command\":\"sextant hook claude\"}]}]}}";
    let left = taken(&grouped("sextant"), shared).expect("a file");
    assert_eq!(left, "{\"hooks\":{\"PostToolUse\":[{\"matcher\":\"Edit\",\"hooks\":[{\"command\":\"fmt\"}]}]}}");
    let first = "{\n  \"mcpServers\": {\n    \"sextant\": {\n      \"command\": \"sextant\",\n      \"args\": [\"mcp\"]\n    },\n    \"b\": {}\n  }\n}\n";
    assert_eq!(taken(&server("sextant"), first).expect("a file"), "{\n  \"mcpServers\": {\n    \"b\": {}\n  }\n}\n");
    // What another program is called is none of ours, be it named so.
    for other in
        ["{\"command\":\"npx\",\"args\":[\"mcp\"]}", "{\"command\":\"sextant\",\"args\":[\"serve\"]}", "{\"url\":\"x\"}", "7"]
    {
        let text = format!("{{\"mcpServers\":{{\"sextant\":{other}}}}}");
        assert!(matches!(server("sextant").add(Some(&text)), Err(Problem::Taken { .. })), "{other}");
        assert_eq!(taken(&server("sextant"), &text).as_deref(), Some(text.as_str()), "{other}");
    }
    for other in [
        "sextant hook gemini",
        "other hook claude",
        "echo sextant hook claude",
        "sextant 'hook claude'",
        "\\\"sextant hook claude",
    ] {
        let text = format!("{{\"hooks\":{{\"PostToolUse\":[{{\"hooks\":[{{\"command\":\"{other}\"}}]}}]}}}}");
        assert_eq!(taken(&grouped("sextant"), &text).as_deref(), Some(text.as_str()), "{other}");
        round(&[grouped("sextant")], Some(&text));
    }
}

#[test]
fn what_is_malformed_is_refused() {
    for text in ["{", "[]", "7", "{} {}", "{a: 1}", "{'a': 1}", "{\"a\" 1}", "{\"a\": 1 \"b\": 2}", "\u{0}", "{\"a\": tru}", "/*"]
    {
        assert!(matches!(server("sextant").add(Some(text)), Err(Problem::Syntax { .. } | Problem::NoObject)), "{text}");
        assert!(server("sextant").take(text).is_err(), "{text}");
    }
    for text in ["{\"mcpServers\": []}", "{\"mcpServers\": null}", "{\"mcpServers\": \"x\"}"] {
        assert!(matches!(server("sextant").add(Some(text)), Err(Problem::Form { .. })), "{text}");
    }
    for text in ["{\"hooks\": []}", "{\"hooks\": {\"PostToolUse\": {}}}", "{\"hooks\": 1}"] {
        assert!(matches!(grouped("sextant").add(Some(text)), Err(Problem::Form { .. })), "{text}");
    }
    let twice = "{\"mcpServers\": {}, \"mcpServers\": {}}";
    assert!(matches!(server("sextant").add(Some(twice)), Err(Problem::Twice { .. })));
    let deep = format!("{{\"a\": {}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(matches!(server("sextant").add(Some(&deep)), Err(Problem::Syntax { .. })));
}

fn codex_server() -> toml::Entry {
    toml::Entry::Server { name: "sextant", command: "sextant".to_owned() }
}

fn codex_hook() -> toml::Entry {
    let command = "sextant hook codex".to_owned();
    toml::Entry::Hook { event: "PostToolUse", matcher: "apply_patch|Edit|Write", host: "codex", command }
}

#[track_caller]
fn round_toml(entries: &[toml::Entry], before: Option<&str>) -> String {
    let mut text = before.map(str::to_owned);
    for entry in entries {
        text = Some(entry.add(text.as_deref()).expect("valid").expect("it was not there"));
    }
    let after = text.clone().expect("there are entries");
    for entry in entries {
        assert_eq!(entry.add(Some(&after)).expect("valid"), None, "again:\n{after}");
    }
    for entry in entries.iter().rev() {
        text = text.and_then(|text| match entry.take(&text).expect("valid") {
            Left::Same => Some(text),
            Left::Text(text) => Some(text),
            Left::Nothing => None,
        });
    }
    assert_eq!(text.as_deref(), before, "back from:\n{after}");
    after
}

#[test]
fn tables_are_taken_out_to_the_byte() {
    let texts = [
        "",
        "\n",
        "# nothing yet\n",
        "model = \"x\"",
        "model = \"x\"\n",
        "model = \"x\"\n\n\n",
        "model = \"x\" # mine\r\n\r\n[a]\r\nb = 1\r\n",
        "[mcp_servers]\n",
        "[mcp_servers.other]\ncommand = \"npx\" # theirs\n\n[mcp_servers.other.env]\nA = '1'\n# tail",
        "mcp_servers.other.command = \"npx\"\n",
        "[hooks]\n",
        "[hooks.state.\"/x\"]\ntrusted = true\n",
        "[[hooks.PostToolUse]]\nmatcher = \"Bash\"\n[[hooks.PostToolUse.hooks]]\ntype = \"command\"\ncommand = \"true\"\n",
    ];
    for before in texts.into_iter().map(Some).chain([None]) {
        round_toml(&[codex_server()], before);
        round_toml(&[codex_hook()], before);
        round_toml(&[codex_server(), codex_hook()], before);
    }
    assert_eq!(
        round_toml(&[codex_server()], Some("model = \"x\" # mine\n")),
        "model = \"x\" # mine\n\n[mcp_servers.sextant]\ncommand = \"sextant\"\nargs = [\"mcp\"]\n"
    );
}

#[test]
fn any_tables_are_given_back_to_the_byte() {
    let parts = [
        "",
        "\n",
        "# note\n",
        "[a.b]\nc = 1 # one\n",
        "[[d]]\ne = [\n  1, # x\n]\n",
        "[mcp_servers.other]\ncommand = 'x'\n",
        "[hooks.state]\nk = \"\"\"\n[x]\n\"\"\"\n",
        "[[hooks.Stop]]\n",
    ];
    for first in parts {
        for second in parts {
            let joined = format!("top = 1\n{first}{second}");
            for text in [joined.as_str(), joined.trim_end_matches('\n'), &joined.replace('\n', "\r\n")] {
                // One table cannot be there twice.
                if toml::has_hooks(text).is_ok() {
                    round_toml(&[codex_hook(), codex_server()], Some(text));
                    round_toml(&[codex_server(), codex_hook()], Some(text));
                }
            }
        }
    }
}

#[test]
fn tables_of_others_stay() {
    let check = |entry: &toml::Entry, text: &str, want: &str| match entry.take(text).expect("valid") {
        Left::Text(left) => assert_eq!(left, want),
        Left::Same => assert_eq!(text, want),
        Left::Nothing => panic!("there are others"),
    };
    // What a host noted of the server goes with it.
    check(
        &codex_server(),
        "a = 1\n\n[mcp_servers.sextant]\ncommand = \"/x/sextant\"\nargs = [\"mcp\"]\n\n[mcp_servers.sextant.tools.read]\nok = true\n\n# b\n[b]\nc = 1\n",
        "a = 1\n\n# b\n[b]\nc = 1\n",
    );
    check(
        &codex_server(),
        "[mcp_servers]\nsextant = { command = \"sextant\", args = [\"mcp\"] } # x\nother = { command = \"npx\" }\n",
        "[mcp_servers]\nother = { command = \"npx\" }\n",
    );
    let foreign = "[mcp_servers.sextant]\ncommand = \"npx\"\nargs = [\"mcp\"]\n";
    check(&codex_server(), foreign, foreign);
    assert!(matches!(codex_server().add(Some(foreign)), Err(Problem::Taken { .. })));
    let group = "[[hooks.PostToolUse]]\nmatcher = \"Edit\"\n[[hooks.PostToolUse.hooks]]\ncommand = \"fmt\"\n\n\
                 [[hooks.PostToolUse.hooks]]\ncommand = \"sextant hook codex\"\n";
    check(&codex_hook(), group, "[[hooks.PostToolUse]]\nmatcher = \"Edit\"\n[[hooks.PostToolUse.hooks]]\ncommand = \"fmt\"\n");
    let inline = "hooks.PostToolUse = [{ hooks = [{ command = \"fmt\" }, { command = \"sextant hook codex\" }] }]\n";
    check(&codex_hook(), inline, "hooks.PostToolUse = [{ hooks = [{ command = \"fmt\" }] }]\n");
    let moved = "[mcp_servers.sextant]\ncommand = '/old/sextant' # here\nargs = [\"mcp\"]\nstartup_timeout_sec = 20\n";
    let after = codex_server().add(Some(moved)).expect("valid").expect("it moved");
    assert_eq!(after, moved.replace("'/old/sextant'", "\"sextant\""));
    // Written so that no table can be added from outside.
    for closed in ["mcp_servers = { other = { command = \"npx\" } }\n", "mcp_servers = 1\n"] {
        assert!(matches!(codex_server().add(Some(closed)), Err(Problem::Form { .. })), "{closed}");
    }
    let said = codex_server().add(Some("a = 1\nb = \"secret\n")).expect_err("malformed").to_string();
    assert!(said.starts_with("it is no valid TOML: ") && said.ends_with(" on line 2") && !said.contains("secret"), "{said}");
    for malformed in ["[", "a = ", "a = 1\na = 2\n", "\u{0}"] {
        assert!(matches!(codex_server().add(Some(malformed)), Err(Problem::Syntax { .. })), "{malformed}");
    }
}

#[test]
fn a_block_goes_into_scripts_of_shells() {
    let block = Block { command: "sextant hook git".to_owned(), program: "sextant".to_owned() };
    let round = |before: Option<&str>| {
        let after = block.add(before).expect("a shell").expect("it was not there");
        assert_eq!(block.add(Some(&after)).expect("a shell"), None);
        match (block.take(&after), before) {
            (Left::Nothing, None) => {}
            (Left::Text(left), Some(before)) => assert_eq!(left, before),
            (left, _) => panic!("{left:?}"),
        }
        after
    };
    let line = "if command -v sextant >/dev/null 2>&1; then sextant hook git \"$@\" </dev/null >/dev/null 2>&1 & fi\n";
    let close = "# <<< sextant <<<\n";
    let open = |subject| {
        format!("# >>> sextant >>> this {subject} was written by `sextant install git`; `sextant uninstall git` removes it\n")
    };
    assert_eq!(round(None), format!("#!/bin/sh\n{}{line}{close}", open("file")));
    assert_eq!(round(Some("#!/bin/sh\n")), format!("#!/bin/sh\n{}{line}{close}", open("block")));
    for script in [
        "",
        "echo no shebang",
        "#!/usr/bin/env bash\nset -e\nexec true\n",
        "#!/bin/bash -e\nexit 3",
        "#! /usr/bin/env -S zsh -f\n",
        "#!/bin/busybox sh\ncase x in esac\n",
    ] {
        assert!(round(Some(script)).ends_with(script.split_once('\n').map_or("", |(_, rest)| rest)), "{script}");
    }
    for other in
        ["#!/usr/bin/env python3\n", "#!/usr/bin/node", "#!/usr/bin/env -S deno run\n", "#!/usr/bin/fish\n", "\u{7f}ELF\0\0"]
    {
        assert!(matches!(block.add(Some(other)), Err(Problem::NoShell { .. })), "{other}");
    }
    // An entry of another place is replaced where it stands.
    let moved = Block { command: "/opt/sextant hook git".to_owned(), program: "/opt/sextant".to_owned() };
    let after = moved.add(Some(&round(Some("#!/bin/sh\nmine\n")))).expect("a shell").expect("it moved");
    assert_eq!(block.take(&after), Left::Text("#!/bin/sh\nmine\n".to_owned()));
}
