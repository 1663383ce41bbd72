//! Input that is made to hurt: every build of it ends well and in bounds, and the files beside it are parsed as ever.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use sextant::languages::REGISTRY;

use crate::sandbox::{Sandbox, write_file};

#[path = "../fuzz/src/lib.rs"]
mod fuzz;

/// No build of these may take more, on a machine that has other things to do.
const PATIENCE: Duration = Duration::from_secs(120);
/// Of the program and its parsers together, far below what a parser may take alone.
const MEMORY: u64 = 640 << 20;

/// Random numbers that are the same in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound.max(1) as u64).expect("a small number")
    }
}

/// What became of the files: how many have facts, how many could not be parsed, how many are left out.
#[derive(Debug, PartialEq)]
struct Outcome {
    parsed: u64,
    failed: u64,
    omitted: u64,
}

/// Builds a tree of these files and a good one, and returns what became of the former.
#[track_caller]
fn check(files: &[(String, Vec<u8>)]) -> Outcome {
    let sandbox = Sandbox::new();
    sandbox.write("good.py", "def good():\n    return 1\n");
    sandbox.write("use.py", "from good import good\ndef use(): good()\n");
    for (path, content) in files {
        sandbox.write(path, content);
    }
    sandbox.commit_all();
    // Whether a file is too much for a parser is asked here, not how busy the machine is.
    let config = sandbox.path().join("patient.toml");
    write_file(&config, b"[limits]\nparse_seconds = 30\n");
    let config = config.to_string_lossy();
    let run = |arguments: &[&str]| sandbox.sextant(&[arguments, &["--json", "--config", &config]].concat()).ended(0).json();
    let start = Instant::now();
    let report = run(&["index"]);
    assert!(start.elapsed() < PATIENCE, "{:?}", start.elapsed());
    if let Some(peak) = report["peak_memory_bytes"].as_u64() {
        assert!(peak < MEMORY, "{peak} bytes");
    }
    assert_eq!(run(&["sync"])["published"], false);
    let callers = run(&["callers", "good.good"]);
    assert_eq!(callers["items"][0]["path"], "use.py");
    let count = |key: &str| callers["coverage"][key].as_u64().expect("a number");
    Outcome {
        parsed: count("parsed_files") + count("partial_files") - 2,
        failed: count("failed_files"),
        omitted: count("skipped_files"),
    }
}

fn named<C: Into<Vec<u8>>>(files: impl IntoIterator<Item = (&'static str, C)>) -> Vec<(String, Vec<u8>)> {
    files.into_iter().map(|(name, content)| (format!("{name}.py"), content.into())).collect()
}

#[test]
fn nested_without_end() {
    let mut files = Vec::new();
    let brackets = [("parentheses", "(", ")"), ("brackets", "[", "]"), ("braces", "{", "}"), ("subscripts", "a[", "]")];
    let others = [
        ("calls", "f(", ")"),
        ("powers", "a**", ""),
        ("lambdas", "lambda:", ""),
        ("signs", "-", ""),
        ("negations", "not ", ""),
        ("attributes", "a.", ""),
        ("operators", "a+", ""),
        ("choices", "a if b else ", ""),
        ("definitions", "def f(a=", ""),
        ("decorators", "@a\n", ""),
        ("continuations", "\\\n", ""),
        ("formatted", "f'{", ""),
        ("starred", "*", ""),
        ("types", "x: a[", "]"),
    ];
    for (depth, kinds) in [(100_000, &brackets[..]), (10_000, &others[..])] {
        for (name, open, close) in kinds {
            files.push((format!("{name}_open.py"), open.repeat(depth).into_bytes()));
            files.push((format!("{name}.py"), format!("x = {}y{}\n", open.repeat(depth), close.repeat(depth)).into_bytes()));
        }
    }
    let count = files.len() as u64;
    assert_eq!(check(&files), Outcome { parsed: count, failed: 0, omitted: 0 });
}

#[test]
fn long_and_unfinished() {
    let indented =
        |head: &str, depth: usize| (0..depth).map(|level| format!("{}{head}\n", " ".repeat(level))).collect::<String>();
    let mut line = "x = 1".to_owned();
    line.push_str(&" + 1".repeat((2 << 20) / 4 - 4));
    let files = named([
        ("line", line),
        ("string", format!("x = '{}'\n", "s".repeat(1 << 20))),
        ("string_open", format!("x = '''{}\n", "s\n".repeat(1 << 19))),
        ("strings", "'''".repeat(100_000)),
        ("blocks", indented("if x:", 1200)),
        ("functions", indented("def f():", 1200)),
        ("classes", indented("class A:", 1200)),
        ("blank", "\n".repeat(2 << 20)),
        ("spaces", " ".repeat(1 << 20)),
        ("returns", "\r".repeat(1 << 20)),
        ("tabs_and_spaces", "if x:\n \tif y:\n\t if z:\n".repeat(2_000)),
        ("comment", format!("#{}", "#".repeat(1 << 20))),
        ("one_name", format!("{} = 1\n", "n".repeat(1 << 20))),
        ("many_names", (0..20_000).map(|index| format!("n{index}=")).collect::<String>() + "1\n"),
        ("one_scope", "x = x\n".repeat(20_000)),
        ("arms", format!("if a: pass\n{}", "elif a: x = 1\n".repeat(5_000))),
        ("handlers", format!("try: pass\n{}", "except a: x = 1\n".repeat(5_000))),
        ("imports", "from a import *\n".repeat(5_000)),
        ("overloads", "@overload\ndef f(): ...\n".repeat(5_000)),
        ("cases", format!("match a:\n{}", " case b: x = 1\n".repeat(5_000))),
        ("marks", "\u{feff}x = 1\n".repeat(10_000)),
        ("separators", "x = 1\u{2028}y = 2\u{2029}\u{85}\n".repeat(20_000)),
        ("heads", "class A(\ndef f(\n@\nimport\nfrom\nlambda\n".repeat(2_000)),
    ]);
    let count = files.len() as u64;
    let outcome = check(&files);
    assert_eq!(outcome, Outcome { parsed: count, failed: 0, omitted: 0 });
}

#[test]
fn no_text_at_all() {
    let mut random = Random(0x5eed);
    let mut files = named([
        ("nuls", vec![0; 1 << 20]),
        ("one_nul", b"x = 1\n\0".to_vec()),
        ("latin", b"# caf\xe9\nx = 1\n".to_vec()),
        ("half_character", b"x = '\xf0\x9f\x99".to_vec()),
        ("wide", "x = 1\n".encode_utf16().flat_map(u16::to_le_bytes).collect()),
        ("surrogate", b"x = '\xed\xa0\x80'\n".to_vec()),
    ]);
    for index in 0..8 {
        let bytes = (0..50_000).map(|_| random.next().to_le_bytes()[0]).collect();
        files.push((format!("random_{index}.py"), bytes));
    }
    let count = files.len() as u64;
    assert_eq!(check(&files), Outcome { parsed: 0, failed: 0, omitted: count });
}

#[test]
fn random_text() {
    let mut random = Random(0xfeed);
    let tokens = [
        "def ", "class ", "(", ")", "[", "]", "{", "}", ":", "\n", "    ", "\t", "x", "y.z", "=", "'", "\"\"\"", "f'{", "@",
        "import ", "from ", "lambda ", "async ", "await ", "if ", "else", "for ", "in ", "*", "**", ",", ".", "\\", "#", "é",
        "match ", "case ", "with ", "as ", "return ", "yield ", "global ", "self", "->", ":=", ";", "\r", "0x", "1e",
    ];
    let mut files = Vec::new();
    for index in 0..40 {
        let printable: Vec<u8> = (0..5_000).map(|_| 32 + random.below(95) as u8).collect();
        files.push((format!("printable_{index}.py"), printable));
        let spoken: String = (0..2_000).map(|_| tokens[random.below(tokens.len())]).collect();
        files.push((format!("spoken_{index}.py"), spoken.into_bytes()));
    }
    let count = files.len() as u64;
    assert_eq!(check(&files), Outcome { parsed: count, failed: 0, omitted: 0 });
}

/// Returns the files below a folder that have a suffix, by path.
fn sources(folder: &str, suffix: &str) -> Vec<String> {
    fn collect(folder: &Path, suffix: &str, found: &mut Vec<std::path::PathBuf>) {
        for entry in fs::read_dir(folder).expect("a folder of this project").flatten() {
            let path = entry.path();
            if path.is_dir() {
                collect(&path, suffix, found);
            } else if path.extension().is_some_and(|of| of == suffix) {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    collect(&Path::new(env!("CARGO_MANIFEST_DIR")).join(folder), suffix, &mut found);
    found.sort();
    found.iter().map(|path| fs::read_to_string(path).expect("it is text")).collect()
}

/// Changes a text at a few places, as an editor in the middle of a change, a bad merge or a careless program would.
fn mutate(text: &str, other: &str, random: &mut Random) -> String {
    let mut characters: Vec<char> = text.chars().collect();
    let donor: Vec<char> = other.chars().collect();
    for _ in 0..1 + random.below(6) {
        let at = random.below(characters.len() + 1);
        let end = (at + random.below(40)).min(characters.len());
        match random.below(6) {
            0 => drop(characters.drain(at..end)),
            1 => {
                let copy = characters[at..end].to_vec();
                characters.splice(at..at, copy);
            }
            2 => {
                let from = random.below(donor.len());
                let piece = donor[from..(from + random.below(80)).min(donor.len())].to_vec();
                characters.splice(at..end, piece);
            }
            3 => characters
                .insert(at, ['(', ')', '[', '}', ':', '\n', '\'', '"', '\\', '\t', '@', 'é', '\u{feff}'][random.below(13)]),
            4 => characters.truncate(at.max(1)),
            _ => characters[at..end].reverse(),
        }
    }
    characters.into_iter().collect()
}

/// Returns small sources of our own in every language, each with the suffix it goes by.
fn originals() -> Vec<(&'static str, String)> {
    let suffixes = ["py", "go", "js", "ts", "tsx", "rs"];
    let of = |suffix| {
        sources("scenarios/demo", suffix).into_iter().chain(sources("fuzz/seeds", suffix)).map(move |text| (suffix, text))
    };
    suffixes.into_iter().flat_map(of).collect()
}

/// Those sources, and what became of them in many small accidents.
fn mutants(seed: u64, count: usize) -> Vec<(&'static str, String)> {
    let texts = originals();
    let mut random = Random(seed);
    (0..count)
        .map(|_| {
            let (text, other) = (random.below(texts.len()), random.below(texts.len()));
            let (suffix, text) = &texts[text];
            (*suffix, mutate(text, &texts[other].1, &mut random))
        })
        .collect()
}

#[test]
fn damaged_sources_through_the_program() {
    let named = |(index, (suffix, text)): (usize, (&str, String))| (format!("m{index}.{suffix}"), text.into_bytes());
    let files: Vec<_> = mutants(1, 300).into_iter().enumerate().map(named).collect();
    let count = files.len() as u64;
    assert_eq!(check(&files), Outcome { parsed: count, failed: 0, omitted: 0 });
}

#[test]
fn damaged_sources_make_facts_that_fit() {
    for (_, text) in mutants(2, 300) {
        REGISTRY.iter().for_each(|language| fuzz::extract(language.name(), text.as_bytes()));
    }
}

#[test]
fn the_fuzz_targets_hold_on_their_seeds() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz");
    let seeds = |target: &str| -> Vec<Vec<u8>> {
        let folder = fs::read_dir(root.join("seeds").join(target)).expect("every target has seeds");
        folder.flatten().map(|entry| fs::read(entry.path()).expect("readable")).collect()
    };
    // Any text may stand under any name, so each language stands the seeds of all.
    let texts = fs::read_dir(root.join("seeds")).expect("there are seeds").flatten().map(|entry| entry.file_name());
    let texts: Vec<_> = texts.filter_map(|name| name.into_string().ok()).filter(|name| name.starts_with("extract_")).collect();
    for seed in texts.iter().flat_map(|target| seeds(target)) {
        REGISTRY.iter().for_each(|language| fuzz::extract(language.name(), &seed));
    }
    let mut random = Random(3);
    for (target, run) in [("request", fuzz::request as fn(&[u8])), ("protocol", fuzz::protocol)] {
        for seed in seeds(target) {
            run(&seed);
            // A few hundred accidents each, so that the target is known to stand more than its seeds.
            for _ in 0..300 {
                let mut bytes = seed.clone();
                for _ in 0..1 + random.below(4) {
                    let at = random.below(bytes.len());
                    match random.below(3) {
                        0 if !bytes.is_empty() => bytes[at] = random.next().to_le_bytes()[0],
                        1 => bytes.truncate(at),
                        _ => bytes.insert(at, random.next().to_le_bytes()[0]),
                    }
                }
                run(&bytes);
            }
        }
    }
}
