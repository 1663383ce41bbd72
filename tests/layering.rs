//! The rules of the house that a reader could break without noticing: which layer imports which, where SQL, salsa and printing live,
//! and how files introduce themselves. Reads the sources as text and knows no more Rust than that.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Bottom to top: a layer imports only from those before it.
const LAYERS: &[&str] = &[
    "model",
    "config",
    "languages",
    "parse",
    "workspace",
    "watch",
    "analysis",
    "store",
    "engine",
    "query",
    "render",
    "server",
    "cli",
];

/// A source file of the crate, without its tests.
struct Source {
    path: String,
    layer: Option<usize>,
    /// As written, up to the tests.
    text: String,
    /// As `text`, with comments and the insides of string literals blanked.
    code: String,
}

fn sources() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    collect(&root, &mut files);
    files.sort();
    files
        .into_iter()
        .filter(|file| file.extension().is_some_and(|suffix| suffix == "rs"))
        .filter_map(|file| {
            let path = file.strip_prefix(&root).expect("below the root").to_string_lossy().replace('\\', "/");
            // A module of tests in a file of its own.
            if path.ends_with("/tests.rs") || path.contains("/tests/") {
                return None;
            }
            let whole = fs::read_to_string(&file).expect("a source file is UTF-8");
            let text = whole.split("#[cfg(test)]\nmod ").next().unwrap_or_default().to_owned();
            let top = path.split('/').next().unwrap_or_default().trim_end_matches(".rs").to_owned();
            let layer = LAYERS.iter().position(|layer| *layer == top);
            Some(Source { layer, code: blank(&text), path, text })
        })
        .collect()
}

fn collect(directory: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).expect("the sources are readable") {
        let path = entry.expect("the sources are readable").path();
        if path.is_dir() { collect(&path, files) } else { files.push(path) }
    }
}

/// Blanks comments, and the insides of string and character literals, so that what remains is code. Keeps the lines.
fn blank(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let chars: Vec<char> = text.chars().collect();
    let mut at = 0;
    let keep = |c: char| if c == '\n' { '\n' } else { ' ' };
    while at < chars.len() {
        let rest = &chars[at..];
        if rest.starts_with(&['/', '/']) {
            while at < chars.len() && chars[at] != '\n' {
                out.push(' ');
                at += 1;
            }
        } else if rest.starts_with(&['/', '*']) {
            while at < chars.len() && !chars[at..].starts_with(&['*', '/']) {
                out.push(keep(chars[at]));
                at += 1;
            }
        } else if chars[at] == 'r'
            && (at == 0 || !chars[at - 1].is_alphanumeric() && chars[at - 1] != '_')
            && rest.iter().skip(1).find(|c| **c != '#') == Some(&'"')
            && rest.get(1).is_some_and(|c| matches!(c, '#' | '"'))
        {
            let hashes = rest.iter().skip(1).take_while(|c| **c == '#').count();
            let close: Vec<char> = std::iter::once('"').chain(std::iter::repeat_n('#', hashes)).collect();
            out.push_str(&" ".repeat(hashes + 2));
            at += hashes + 2;
            while at < chars.len() && !chars[at..].starts_with(&close) {
                out.push(keep(chars[at]));
                at += 1;
            }
            out.push_str(&" ".repeat(close.len()));
            at += close.len();
        } else if chars[at] == '"' {
            out.push('"');
            at += 1;
            while at < chars.len() && chars[at] != '"' {
                if chars[at] == '\\' {
                    out.push(' ');
                    at += 1;
                }
                if at < chars.len() {
                    out.push(keep(chars[at]));
                    at += 1;
                }
            }
            out.push('"');
            at += 1;
        } else if chars[at] == '\'' && (rest.get(1) == Some(&'\\') || rest.get(2) == Some(&'\'')) {
            // A character literal; a lifetime has no closing quote two places on.
            let length =
                if rest.get(1) == Some(&'\\') { 3 + rest.iter().skip(3).position(|c| *c == '\'').unwrap_or(0) } else { 2 };
            out.push_str(&" ".repeat(length + 1));
            at += length + 1;
        } else {
            out.push(chars[at]);
            at += 1;
        }
    }
    out
}

/// Returns the names that follow `crate::` in code, those of a braced group included.
fn crate_imports(code: &str) -> BTreeSet<(usize, String)> {
    let word = |text: &str| text.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>();
    let mut found = BTreeSet::new();
    for (at, _) in code.match_indices("crate::") {
        if code[..at].ends_with('$') {
            continue;
        }
        let line = code[..at].matches('\n').count() + 1;
        let rest = &code[at + "crate::".len()..];
        if let Some(group) = rest.strip_prefix('{') {
            let (mut depth, mut start) = (0, 0);
            for (index, character) in group.char_indices() {
                match character {
                    '{' => depth += 1,
                    '}' if depth == 0 => {
                        found.insert((line, word(&group[start..index])));
                        break;
                    }
                    '}' => depth -= 1,
                    ',' if depth == 0 => {
                        found.insert((line, word(&group[start..index])));
                        start = index + 1;
                    }
                    _ => {}
                }
            }
        } else {
            found.insert((line, word(rest)));
        }
    }
    found
}

/// Fails with every place where a rule is broken, so that one run shows them all.
fn check(rule: &str, broken: Vec<String>) {
    assert!(broken.is_empty(), "{rule}:\n{}", broken.join("\n"));
}

fn in_layer(source: &Source, layers: &[&str]) -> bool {
    source.layer.is_some_and(|layer| layers.contains(&LAYERS[layer]))
}

/// Returns `path:line` of every line of code that contains one of the words, in files that `outside` says.
fn places(words: &[&str], outside: impl Fn(&Source) -> bool) -> Vec<String> {
    let mut found = Vec::new();
    for source in sources().iter().filter(|source| outside(source)) {
        for (index, line) in source.code.lines().enumerate() {
            if words.iter().any(|word| contains_word(line, word)) {
                found.push(format!("src/{}:{}: {}", source.path, index + 1, line.trim()));
            }
        }
    }
    found
}

fn contains_word(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let bounded = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric() && c != '_');
        let starts_plain = !word.starts_with(|c: char| c.is_alphanumeric());
        starts_plain || bounded(line[..at].chars().next_back())
    })
}

#[test]
fn layers_import_downwards() {
    let mut broken = Vec::new();
    for source in sources() {
        let Some(own) = source.layer else { continue };
        for (line, name) in crate_imports(&source.code) {
            match LAYERS.iter().position(|layer| *layer == name) {
                Some(other) if other > own => {
                    broken.push(format!("src/{}:{line}: {} imports {}", source.path, LAYERS[own], name));
                }
                _ => {}
            }
        }
    }
    check("a layer imports only from those below it", broken);
}

#[test]
fn every_file_has_a_layer() {
    let broken = sources()
        .iter()
        .filter(|source| source.layer.is_none() && !matches!(source.path.as_str(), "lib.rs" | "main.rs"))
        .map(|source| format!("src/{}", source.path))
        .collect();
    check("every file belongs to a layer of the house", broken);
}

#[test]
fn sql_lives_in_the_store() {
    check("SQLite is named nowhere but in store", places(&["rusqlite"], |source| !in_layer(source, &["store"])));
    let mut broken = Vec::new();
    for source in sources().iter().filter(|source| !in_layer(source, &["store"])) {
        for (index, line) in source.text.lines().enumerate() {
            if ["SELECT ", "INSERT INTO", "DELETE FROM", "CREATE TABLE", "PRAGMA "].iter().any(|word| line.contains(word)) {
                broken.push(format!("src/{}:{}: {}", source.path, index + 1, line.trim()));
            }
        }
    }
    check("SQL stands nowhere but in store", broken);
}

#[test]
fn salsa_lives_in_analysis_and_engine() {
    check(
        "salsa is named nowhere but in analysis and engine",
        places(&["salsa"], |source| !in_layer(source, &["analysis", "engine"])),
    );
}

#[test]
fn the_system_is_watched_in_one_place() {
    check(
        "notify is named nowhere but in watch",
        places(&["::notify", "notify::event", "inotify"], |source| !in_layer(source, &["watch"])),
    );
}

#[test]
fn tokio_lives_in_two_surfaces() {
    let outside = |source: &Source| !source.path.starts_with("server/http/") && !source.path.starts_with("server/mcp/");
    let words = ["tokio", "tokio_io_timeout", "axum", "hyper", "hyper_util", "http_body_util", "tower", "rmcp"];
    check("tokio and what stands on it are named nowhere but in server/http and server/mcp", places(&words, outside));
}

#[test]
fn only_the_outer_layers_print() {
    check(
        "nothing below server and cli prints",
        places(&["println!", "eprintln!", "print!", "eprint!", "dbg!", "stdout()", "stderr()"], |source| {
            source.layer.is_some() && !in_layer(source, &["server", "cli"])
        }),
    );
}

#[test]
fn a_generation_is_opened_through_the_engine() {
    check(
        "a generation is opened nowhere but through engine",
        places(&["Generation::open", ".pin("], |source| !in_layer(source, &["store", "engine"])),
    );
}

#[test]
fn the_disk_is_changed_through_durable_steps_alone() {
    // The benchmark works on copies of trees, never on a cache; a daemon has a directory of its own, and so have agent hosts.
    let outside = |source: &Source| {
        let elsewhere = ["store/durable.rs", "store/faults.rs", "server/daemon/place.rs", "cli/hosts/file.rs"];
        !elsewhere.contains(&source.path.as_str()) && !source.path.starts_with("cli/bench")
    };
    let changes = [
        "fs::rename",
        "fs::write",
        "fs::copy",
        "fs::remove",
        "fs::create",
        "fs::set_permissions",
        "fs::soft_link",
        "remove_file",
        "remove_dir",
        "create_dir",
        "hard_link",
        "symlink(",
        "File::create",
        "File::options",
        "OpenOptions",
        "DirBuilder",
        "sync_all",
        "sync_data(",
        "fsync",
        "fdatasync",
        "set_len",
        "ftruncate",
        "fallocate",
        "set_modified",
        "set_times",
        "set_permissions",
        "write_at",
        "write_all_at",
        "renameat",
        "unlinkat",
        "mkdirat",
        "mknodat",
        "symlinkat",
        "linkat",
        "OFlags::CREATE",
        "OFlags::WRONLY",
        "OFlags::RDWR",
        "OFlags::TRUNC",
        "tempfile",
        // SQLite writes into what it opens so.
        "Connection::open(",
        "READ_WRITE",
        "backup",
    ];
    check("the disk is changed in store::durable alone", places(&changes, outside));
    let functions = places(&["use std::fs"], |source| outside(source) && in_layer(source, &["store"]));
    let whole = ["use std::fs;", "use std::fs::File;", "use std::fs::{self, File};"];
    let imported = functions.into_iter().filter(|place| !whole.iter().any(|form| place.ends_with(form))).collect();
    check("functions that change the disk are called by their whole name", imported);
}

#[test]
fn faults_are_no_part_of_a_normal_build() {
    let words = ["faults", "SEXTANT_FAULT", "SEXTANT_NO_BARRIERS", "SEXTANT_PARSER_FAULT"];
    let asking = [
        "store/durable.rs",
        "store/mod.rs",
        "parse/mod.rs",
        "parse/process.rs",
        "parse/worker.rs",
        "analysis/blindness.rs",
        "analysis/inputs.rs",
        "analysis/mod.rs",
    ];
    let outside = |source: &Source| {
        !asking.contains(&source.path.as_str()) && !matches!(source.path.as_str(), "store/faults.rs" | "parse/faults.rs")
    };
    check("the faults are named where they strike alone", places(&words, outside));
    let mut broken = Vec::new();
    for source in sources().iter().filter(|source| asking.contains(&source.path.as_str())) {
        for (index, line) in source.code.lines().enumerate() {
            let gate = source.text.lines().nth(index.saturating_sub(1)).unwrap_or_default().trim();
            if contains_word(line, "faults") && !line.contains("cfg(") && gate != "#[cfg(feature = \"faults\")]" {
                broken.push(format!("src/{}:{}: {}", source.path, index + 1, line.trim()));
            }
        }
    }
    check("the faults stand behind their feature", broken);
    let manifest =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml")).expect("the manifest is readable");
    let (features, _) = manifest.split_once("[dev-dependencies]").expect("it has some");
    assert!(!features.contains("default = ") && !features.contains("\"faults\""), "nothing but tests asks for the faults");
}

#[test]
fn nothing_runs_other_programs() {
    // The benchmark measures the program itself, in processes of its own, and starts nothing else.
    check(
        "no process is spawned but parsers and the daemon, which are this program",
        places(&["process::Command", "process::{Command", "Command::new", "execve", "posix_spawn", "libc::fork"], |source| {
            !matches!(source.path.as_str(), "parse/process.rs" | "server/daemon/launch.rs")
                && !source.path.starts_with("cli/bench")
        }),
    );
}

#[test]
fn what_differs_between_systems_stands_in_few_files() {
    let asking = [
        "config.rs",
        "parse/memory.rs",
        "parse/process.rs",
        "parse/system.rs",
        "workspace/clock.rs",
        "workspace/directory.rs",
        "workspace/part.rs",
        "workspace/seal.rs",
        "watch/filesystem.rs",
        "watch/notify.rs",
        "store/durable.rs",
        "store/files.rs",
        "store/lock.rs",
        "store/seal.rs",
        "server/descriptors.rs",
        "server/memory.rs",
        "server/http/connection.rs",
        "server/mcp/stdio.rs",
        "cli/hosts/file.rs",
        "cli/commands/doctor/machine.rs",
    ];
    let outside = |source: &Source| {
        !asking.contains(&source.path.as_str())
            && !source.path.starts_with("server/daemon/")
            && !source.path.starts_with("cli/bench")
            && !source.path.ends_with("faults.rs")
    };
    check(
        "the system itself is asked in files made for it",
        places(&["rustix", "libc", "os::unix", "os::fd", "os::linux"], outside),
    );
}

#[test]
fn no_unwrap_and_nothing_unfinished() {
    check("`expect` says why it holds; `unwrap` does not", places(&[".unwrap()", ".unwrap_err()"], |_| true));
    check("nothing is left unfinished", places(&["todo!", "unimplemented!"], |_| true));
    let mut broken = Vec::new();
    for source in sources() {
        for (index, line) in source.text.lines().enumerate() {
            let comment = line.split_once("//").map_or("", |(_, comment)| comment);
            if ["TODO", "FIXME", "XXX"].iter().any(|word| contains_word(comment, word)) {
                broken.push(format!("src/{}:{}: {}", source.path, index + 1, line.trim()));
            }
        }
    }
    check("no note of unfinished work stays", broken);
}

#[test]
fn every_file_introduces_itself() {
    let broken =
        sources().iter().filter(|source| !source.text.starts_with("//!")).map(|source| format!("src/{}", source.path)).collect();
    check("every file opens with `//!`", broken);
}

#[test]
fn modules_are_nouns_of_the_field() {
    let vague = ["util", "utils", "helper", "helpers", "manager", "common", "core", "misc"];
    let broken = sources()
        .iter()
        .filter(|source| source.path.split('/').any(|part| vague.contains(&part.trim_end_matches(".rs"))))
        .map(|source| format!("src/{}", source.path))
        .collect();
    check("a module's name says what it is about", broken);
}

#[test]
fn the_rules_see_what_they_should() {
    let imports = |code: &str| crate_imports(&blank(code)).into_iter().map(|(_, name)| name).collect::<Vec<_>>();
    assert_eq!(imports("use crate::store::Generation;"), ["store"]);
    assert_eq!(imports("use crate::{model::{Span, Place}, query};"), ["model", "query"]);
    assert_eq!(imports("fn f() { crate::engine::sync(); }"), ["engine"]);
    assert_eq!(imports("// crate::engine\nconst S: &str = \"crate::store\"; $crate::x"), Vec::<String>::new());
    assert_eq!(imports("let q = '\"'; crate::store::x(); let s: &'static str = r#\"crate::cli \"#;"), ["store"]);
    assert!(contains_word("use tokio::net;", "tokio"));
    assert!(!contains_word("use mytokio::net;", "tokio"));
    assert!(contains_word("x.unwrap()", ".unwrap()"));
    assert!(!contains_word("eprintln!(x)", "println!"));
}
