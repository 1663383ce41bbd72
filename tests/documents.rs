//! What the documentation points to and lists.
//!
//! Must not know what the documents say beside that. Invariant: no link between documents leads nowhere, and no command is left out.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::sandbox::Sandbox;

fn top() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn documents() -> Vec<PathBuf> {
    let mut found = vec![top().join("README.md")];
    for folder in ["docs", "docs/schema"] {
        let entries = fs::read_dir(top().join(folder)).expect("it is there").map(|entry| entry.expect("readable").path());
        found.extend(entries.filter(|path| path.extension().is_some_and(|suffix| suffix == "md")));
    }
    found.sort();
    found
}

/// Returns the targets of the links of a text, code left out.
fn links(text: &str) -> Vec<&str> {
    let mut is_code = false;
    let mut found = Vec::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        } else if !is_code {
            let after = line.split("](").skip(1);
            found.extend(after.filter_map(|rest| rest.split_once(')').map(|(target, _)| target)));
        }
    }
    found
}

/// Returns the names that headings can be linked by.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings =
        text.lines().filter(|line| line.starts_with('#')).map(|line| line.trim_start_matches('#').trim().to_lowercase());
    let kept = |letter: &char| letter.is_alphanumeric() || matches!(letter, ' ' | '-' | '_');
    headings.map(|heading| heading.chars().filter(kept).collect::<String>().replace(' ', "-")).collect()
}

#[test]
fn links_lead_somewhere() {
    for document in documents() {
        let text = fs::read_to_string(&document).expect("readable");
        for link in links(&text).into_iter().filter(|link| !link.contains("://")) {
            let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = if path.is_empty() { document.clone() } else { document.with_file_name(path) };
            assert!(target.exists(), "{}: `{link}` leads nowhere", document.display());
            if !anchor.is_empty() {
                let found = anchors(&fs::read_to_string(&target).expect("readable"));
                assert!(found.contains(anchor), "{}: `{link}` is no heading", document.display());
            }
        }
    }
}

#[test]
fn every_document_is_listed() {
    let readme = fs::read_to_string(top().join("README.md")).expect("readable");
    let listed: BTreeSet<&str> = links(&readme).into_iter().collect();
    for document in documents() {
        let path = document.strip_prefix(top()).expect("below").to_str().expect("plain").to_owned();
        assert!(path == "README.md" || listed.contains(path.as_str()), "{path} is not listed in README.md");
    }
}

#[test]
fn every_command_is_described() {
    let text = fs::read_to_string(top().join("docs/commands.md")).expect("readable");
    let help = Sandbox::new().sextant(&["help"]).ended(0).out;
    let listed = help.split_once("\nCommands:\n").and_then(|(_, rest)| rest.split_once("\n\n")).expect("it lists them").0;
    // What goes on from the line before stands deeper.
    let names = listed.lines().filter_map(|line| line.strip_prefix("  ").filter(|rest| !rest.starts_with(' ')));
    for name in names.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help") {
        let is_there = text.contains(&format!("sextant {name}")) || text.contains(&format!("`{name}`"));
        assert!(is_there, "{name} is not in docs/commands.md");
    }
}
