//! The size limit of a cache, and caches of other versions: what is over the limit is refused and leaves nothing, history goes first, and
//! what this program did not write stays as it is.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::program::Run;
use crate::sandbox::Sandbox;

const KIB: u64 = 1 << 10;

/// A tree whose index, of one generation, has some 150 KiB.
fn small() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("lib.py", "def f():\n    return 1\n");
    sandbox.write("use.py", "from lib import f\n\n\ndef g():\n    return f()\n");
    sandbox.commit_all();
    sandbox
}

fn run(sandbox: &Sandbox, limit: u64, arguments: &[&str]) -> Run {
    let config = sandbox.path().join("sextant.toml");
    fs::write(&config, format!("[limits]\nmax_cache_bytes = {limit}\n")).expect("the sandbox is writable");
    let config = config.to_string_lossy().into_owned();
    sandbox.run_here(&[&["--config", config.as_str()], arguments].concat())
}

/// Returns the content of every file below a directory, by its path relative to it.
fn files_below(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut left = vec![directory.to_owned()];
    while let Some(folder) = left.pop() {
        for entry in fs::read_dir(folder).expect("listed") {
            let path = entry.expect("listed").path();
            if path.is_dir() {
                left.push(path);
            } else {
                let name = path.strip_prefix(directory).expect("below").to_owned();
                files.insert(name, fs::read(&path).expect("readable"));
            }
        }
    }
    files
}

/// Returns the only directory of a binding.
fn binding(sandbox: &Sandbox) -> PathBuf {
    let entries = fs::read_dir(sandbox.path().join("cache/sextant")).expect("there is a cache");
    let mut found: Vec<PathBuf> =
        entries.map(|entry| entry.expect("listed").path()).filter(|path| !path.ends_with("facts")).collect();
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}

/// Returns what all files below a directory take, each once however many names it has.
fn size_of(directory: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let found = files_below(directory).into_keys().map(|path| fs::metadata(directory.join(path)).expect("it is there"));
    found.map(|file| (file.ino(), file.len())).collect::<std::collections::BTreeMap<_, _>>().values().sum()
}

fn generations(sandbox: &Sandbox) -> usize {
    fs::read_dir(binding(sandbox).join("generations")).expect("listed").count()
}

/// Returns a source file of this size whose facts are small.
fn filler(letter: char, size: u64) -> String {
    let line = format!("# {}\n", letter.to_string().repeat(97));
    line.repeat(usize::try_from(size / line.len() as u64).expect("it is small"))
}

#[test]
fn what_does_not_fit_is_refused_and_leaves_nothing() {
    let sandbox = small();
    let limit = 500 * KIB;
    run(&sandbox, limit, &["index", "--quiet"]).ended(0);
    let right = run(&sandbox, limit, &["export"]).ended(0).out;
    let before = files_below(&binding(&sandbox));
    // The sources alone are too large; and together with the database.
    for size in [600 * KIB, 420 * KIB] {
        for command in ["sync", "index"] {
            sandbox.write("big.py", filler('x', size));
            let refused = run(&sandbox, limit, &[command, "--json"]).ended(5);
            assert_eq!(refused.code(), "code_cache_limit_exceeded");
            assert!(refused.err.contains("max_cache_bytes"), "{refused:?}");
            let status = run(&sandbox, limit, &["status", "--json"]).ended(0).json();
            assert_eq!(
                (&status["status"], &status["last_build"]["reason"]),
                (&"stale".into(), &"code_cache_limit_exceeded".into())
            );
            // What was published serves, and nothing of the new is left behind.
            fs::remove_file(sandbox.tree().join("big.py")).expect("it is there");
            assert_eq!(run(&sandbox, limit, &["export", "--on-stale", "refuse"]).ended(0).out, right);
            let mut after = files_below(&binding(&sandbox));
            after.insert("last-build.json".into(), before[Path::new("last-build.json")].clone());
            assert!(after == before, "{command} of {size}: {:?} and {:?}", after.keys(), before.keys());
        }
    }
    // A question that syncs first is refused for the same reason.
    sandbox.write("big.py", filler('x', 600 * KIB));
    assert_eq!(run(&sandbox, limit, &["symbols", "f", "--json"]).ended(5).code(), "code_cache_limit_exceeded");
    // With more room it works.
    run(&sandbox, 2000 * KIB, &["sync", "--quiet"]).ended(0);
    run(&sandbox, 2000 * KIB, &["symbols", "f", "--on-stale", "refuse"]).ended(0);
}

#[test]
fn history_is_given_up_first() {
    let sandbox = small();
    let limit = 900 * KIB;
    let mut most = 0;
    for (round, letter) in ('a'..'h').enumerate() {
        sandbox.write("big.py", filler(letter, if round < 3 { 20 * KIB } else { 380 * KIB }));
        run(&sandbox, limit, &["sync", "--quiet"]).ended(0);
        run(&sandbox, limit, &["symbols", "f", "--on-stale", "refuse"]).ended(0);
        let size = size_of(&binding(&sandbox));
        assert!(size <= limit + 4 * KIB, "{size} bytes after round {round}");
        most = most.max(generations(&sandbox));
    }
    assert_eq!((most, generations(&sandbox)), (3, 1), "there was room for history, and then there was none");
}

#[test]
fn facts_stay_within_their_share() {
    let sandbox = small();
    let limit = 2000 * KIB;
    let facts = sandbox.path().join("cache/sextant/facts");
    let mut full = false;
    for round in 0..12 {
        let code: String = (0..700).map(|line| format!("def function_{round}_{line}(first, second): pass\n")).collect();
        sandbox.write("many.py", code);
        run(&sandbox, limit, &["sync", "--quiet"]).ended(0);
        let size = size_of(&facts);
        assert!(size <= limit / 4, "{size} bytes of facts after round {round}");
        full |= size > limit / 8;
    }
    assert!(full, "the share was never in use");
    // What was dropped is made again.
    run(&sandbox, limit, &["sync", "--quiet"]).ended(0);
    let kept = run(&sandbox, limit, &["export", "--on-stale", "refuse"]).ended(0).out;
    run(&sandbox, limit, &["index", "--quiet"]).ended(0);
    assert_eq!(run(&sandbox, limit, &["export", "--on-stale", "refuse"]).ended(0).out, kept);
}

/// Returns a text of the cache as a version would write it, with a digest that holds.
fn enclosed(title: &str, body: &str) -> String {
    let text = format!("{title}\n{body}\n");
    let digest = sextant::model::ContentHash::of(text.as_bytes()).hex();
    format!("{text}{digest}\n")
}

#[test]
fn caches_of_other_versions_stay_as_they_are() {
    let sandbox = small();
    sandbox.run_here(&["index", "--quiet"]).ended(0);
    let own = binding(&sandbox);
    let name = own.file_name().expect("named").to_string_lossy().into_owned();
    let (plain, form) = name.split_once('.').expect("the name ends with the form");
    // Older and newer forms, of everything and of the database alone, in the same root.
    let others = [format!("{plain}.0"), format!("{plain}.1"), format!("{plain}.2"), format!("{plain}.{form}0"), plain.to_owned()];
    for other in &others {
        let directory = sandbox.path().join("cache/sextant").join(other);
        fs::create_dir_all(directory.join("generations/.unfinished")).expect("made");
        fs::write(directory.join("current"), "the pointer of a version that nobody knows").expect("written");
        fs::write(directory.join("generations/.unfinished/file"), "x").expect("written");
        fs::write(directory.join(".file.tmp"), "x").expect("written");
    }
    let of_others = || {
        let all = files_below(&sandbox.path().join("cache/sextant"));
        all.into_iter().filter(|(path, _)| others.iter().any(|other| path.starts_with(other))).collect::<Vec<_>>()
    };
    let before = of_others();
    assert_eq!(before.len(), 15);
    sandbox.write("lib.py", "def f():\n    return 2\n");
    for command in ["sync", "index", "clear", "sync"] {
        sandbox.run_here(&[command, "--quiet"]).ended(0);
        assert_eq!(of_others(), before, "after {command}");
    }
    sandbox.run_here(&["callers", "lib.f", "--on-stale", "refuse"]).ended(0);

    // In a directory of this form nothing of another one is believed, be it whole by itself.
    let pointer = own.join("current");
    let whole = fs::read_to_string(&pointer).expect("readable");
    let body = whole.lines().nth(1).expect("title, body, digest");
    assert_eq!(enclosed("sextant pointer 1", body), whole, "the form is the one that this test knows");
    fs::write(&pointer, enclosed("sextant pointer 2", body)).expect("written");
    let refused = sandbox.run_here(&["callers", "lib.f", "--json", "--on-stale", "refuse"]).ended(5);
    assert_eq!(refused.code(), "index_integrity_failed");
    sandbox.run_here(&["sync", "--quiet"]).ended(0);
    sandbox.run_here(&["callers", "lib.f", "--on-stale", "refuse"]).ended(0);
}
