//! Whatever durable step goes wrong, in whatever way: the old answer or the new one, a sync that heals, and no file too many.
//!
//! Each story brings a cache into a state and names a command. The command is run once in peace, which tells the durable steps it
//! passes; then once for each of them and each way of going wrong, always from the same state.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use sextant::cli::{Session, World};
use sextant::config::{Environment, ParserHost};
use sextant::store::faults::{Action, POINTS, disable_barriers, name};

use crate::program::Run;
use crate::sandbox::{Sandbox, write_file};

type Files = Vec<(&'static str, String)>;

/// What a question is answered with in a state of the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Answer {
    Whole(String),
    /// A refusal with this code.
    Refusal(String),
}

/// One state of a cache, and a command that is to go wrong in it.
struct Story {
    /// Brings the cache into the state, and leaves the worktree as the index that serves has it.
    prepare: fn(&Place),
    /// The worktree that the command meets.
    files: Files,
    command: &'static [&'static str],
    /// The code with which the command fails even in peace.
    fails: Option<&'static str>,
    /// What is done after the command before all must be well.
    heal: &'static [&'static [&'static str]],
    /// How the names of the points begin that are of interest here; the rest goes wrong in other stories, too.
    points: &'static [&'static str],
}

impl Story {
    fn new(prepare: fn(&Place), files: Files, command: &'static [&'static str]) -> Self {
        Self { prepare, files, command, fails: None, heal: &[&["sync"]], points: &[""] }
    }
}

/// A worktree and its cache.
struct Place {
    sandbox: Sandbox,
}

impl Place {
    fn new() -> Self {
        // What is asked about faults does not depend on when something is forced to the disk: the power fails only where a test says.
        disable_barriers();
        Self { sandbox: Sandbox::new() }
    }

    fn cache(&self) -> PathBuf {
        self.sandbox.path().join("cache")
    }

    /// The directory of the binding.
    fn binding(&self) -> PathBuf {
        let below = fs::read_dir(self.cache().join("sextant")).expect("there is a cache").flatten().map(|entry| entry.path());
        below.filter(|path| path.extension().is_some()).min().expect("there is a binding")
    }

    fn facts(&self) -> PathBuf {
        self.cache().join("sextant/facts")
    }

    /// The directories of the kept generations as the pointer names them: the current one, the previous one, the first one.
    fn kept(&self) -> Vec<PathBuf> {
        let pointer = fs::read_to_string(self.binding().join("current")).expect("there is a pointer");
        let ids = pointer.split(r#""id":""#).skip(1).filter_map(|rest| rest.split('"').next());
        ids.map(|id| self.binding().join("generations").join(id)).collect()
    }

    fn generation(&self) -> PathBuf {
        self.kept()[0].clone()
    }

    /// The directories of the generations that are kept to compare with.
    fn baselines(&self) -> Vec<PathBuf> {
        self.kept().split_off(1)
    }

    /// Makes the worktree hold these files and no others.
    fn set(&self, files: &Files) {
        fs::remove_dir_all(self.sandbox.tree()).expect("it is ours");
        fs::create_dir(self.sandbox.tree()).expect("it is gone");
        for (path, content) in files {
            write_file(&self.sandbox.tree().join(path), content.as_bytes());
        }
    }

    /// Returns the program with arguments, to run in a process that may stop.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.sandbox.program(arguments);
        // What the faults put aside must be on the disk of the cache.
        command.env("SEXTANT_NO_BARRIERS", "1").env("TMPDIR", self.sandbox.path());
        command
    }

    /// Runs a command in this process, which takes no fault and is quicker.
    fn run_in(&self, cache: &Path, arguments: &[&str]) -> Run {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let mut world = World {
            environment: Environment {
                current_dir: self.sandbox.tree(),
                home: Some(self.sandbox.path().join("home")),
                xdg_cache_home: Some(cache.to_owned()),
                xdg_runtime_dir: None,
                config: None,
                parsers: ParserHost::ThisProcess,
            },
            input: &mut std::io::empty(),
            out: &mut out,
            err: &mut err,
            color: false,
        };
        let line: Vec<_> = ["sextant"].iter().chain(arguments).map(Into::into).collect();
        let finish = Session::new().run(&line, &mut world);
        let text = |bytes| String::from_utf8(bytes).expect("the program speaks UTF-8");
        Run { status: Some(finish.exit as i32), out: text(out), err: text(err) }
    }

    #[track_caller]
    fn run(&self, arguments: &[&str], status: i32) -> Run {
        self.run_in(&self.cache(), arguments).ended(status)
    }

    fn build(&self, command: &str, files: &Files) {
        self.set(files);
        self.run(&[command, "--quiet"], 0);
    }

    /// Asks without a sync for the whole graph and for sources.
    fn ask(&self) -> Answer {
        self.ask_in(&self.cache())
    }

    fn ask_in(&self, cache: &Path) -> Answer {
        let mut answers = String::new();
        for question in [&["export"][..], &["read", "lib.py"], &["read", "same.py"]] {
            let run = self.run_in(cache, &[question, &["--json", "--on-stale", "refuse"]].concat());
            match run.status {
                Some(0) if question == ["export"] => answers.push_str(&run.out),
                // The envelope says when that was.
                Some(0) => answers.push_str(&run.json()["items"].to_string()),
                Some(3..=5) => return Answer::Refusal(run.code()),
                _ => panic!("{run:?}"),
            }
        }
        Answer::Whole(answers)
    }

    /// Returns what a build from nothing, in another cache, answers.
    fn clean_answer(&self) -> Answer {
        let cache = self.sandbox.path().join("clean");
        self.run_in(&cache, &["index", "--quiet"]).ended(0);
        let answer = self.ask_in(&cache);
        fs::remove_dir_all(cache).expect("it is ours");
        assert!(matches!(answer, Answer::Whole(_)), "{answer:?}");
        answer
    }

    /// Returns the paths of the cache with their random parts replaced, each with how often it stands there.
    fn listing(&self) -> BTreeMap<String, usize> {
        fn collect(directory: &Path, below: &str, found: &mut BTreeMap<String, usize>) {
            for entry in fs::read_dir(directory).expect("it can be listed").flatten() {
                let own = entry.file_name().to_string_lossy().into_owned();
                let stem = own.split('.').next().unwrap_or_default();
                let random = stem.len() >= 16 && stem.bytes().all(|byte| byte.is_ascii_hexdigit());
                let path = format!("{below}/{}", if random { own.replace(stem, "*") } else { own });
                // The traces of resolution save time; a generation without is as good.
                if path.ends_with("/traces") {
                    continue;
                }
                // Facts are shared and kept for later builds: how many packs they take, if any, is the facts cache's affair. Whether a
                // generation is a delta, which has an overlay, may depend on what went wrong before.
                if path != "/sextant/facts" && path != "/sextant/facts/*.pack" && !path.ends_with("graph.sqlite-wal") {
                    *found.entry(path.clone()).or_default() += 1;
                }
                if entry.path().is_dir() {
                    collect(&entry.path(), &path, found);
                }
            }
        }
        let mut found = BTreeMap::new();
        collect(&self.cache(), "", &mut found);
        found
    }
}

/// A story that was played once in peace.
struct Peace {
    place: Place,
    saved: PathBuf,
    before: Answer,
    old_files: Files,
    after: Answer,
    healed: Answer,
    listing: BTreeMap<String, usize>,
    /// The points passed, each with what the power could take at each passage.
    passed: BTreeMap<String, Vec<Losses>>,
}

/// What is lost when the power fails.
#[derive(Clone, Copy, Debug)]
struct Losses {
    content: bool,
    names: bool,
}

/// Copies a directory with its times.
fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).expect("there is room");
    for entry in fs::read_dir(from).expect("it can be listed").flatten() {
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if from.is_dir() {
            copy(&from, &to);
            continue;
        }
        fs::copy(&from, &to).expect("there is room");
        let modified = entry.metadata().and_then(|metadata| metadata.modified()).expect("it has a time");
        fs::File::open(&to).and_then(|file| file.set_modified(modified)).expect("it is ours");
    }
}

impl Peace {
    fn of(story: &Story) -> Self {
        let place = Place::new();
        (story.prepare)(&place);
        let saved = place.sandbox.path().join("saved");
        copy(&place.cache(), &saved);
        let before = place.ask();
        let old_files = read_files(&place.sandbox.tree());
        place.set(&story.files);
        let mut peace = Self {
            place,
            saved,
            old_files,
            after: before.clone(),
            healed: before.clone(),
            before,
            listing: BTreeMap::new(),
            passed: BTreeMap::new(),
        };
        peace.restore();
        let trace = peace.place.sandbox.path().join("trace");
        let run = Run::of(peace.place.command(story.command).arg("--json").env("SEXTANT_FAULT_TRACE", &trace));
        peace.expect_peace(story, &run);
        for line in fs::read_to_string(&trace).unwrap_or_default().lines() {
            let (point, losses) = line.split_once(' ').unwrap_or((line, ""));
            let losses = Losses { content: losses.contains("content"), names: losses.contains("names") };
            peace.passed.entry(point.to_owned()).or_default().push(losses);
        }
        peace.after = peace.place.ask();
        peace.heal(story);
        peace.healed = peace.place.clean_answer();
        assert_eq!(peace.place.ask(), peace.healed);
        peace.listing = peace.place.listing();
        peace
    }

    fn expect_peace(&self, story: &Story, run: &Run) {
        match story.fails {
            None => assert_eq!(run.status, Some(0), "{run:?}"),
            Some(code) => assert_eq!(run.code(), code, "{run:?}"),
        }
    }

    fn restore(&self) {
        fs::remove_dir_all(self.place.cache()).expect("it is ours");
        copy(&self.saved, &self.place.cache());
    }

    fn heal(&self, story: &Story) {
        for command in story.heal {
            self.place.run(command, 0);
        }
    }

    /// Plays the story with one fault.
    fn play(&self, story: &Story, point: &str, passage: usize, action: (&str, Action)) {
        let case = format!("{:?} with {point}:{passage}={}", story.command, action.0);
        self.restore();
        let mut command = self.place.command(story.command);
        command.arg("--json").env("SEXTANT_FAULT", format!("{point}:{passage}={}", action.0));
        let run = Run::of(&mut command);
        assert!(!run.err.contains("panicked"), "{case}: {run:?}");
        let failed = match (action.1, run.status) {
            (Action::Full | Action::Broken, Some(0)) => false,
            // In peace the command fails, too.
            (Action::Full | Action::Broken, Some(5)) if story.fails.is_some_and(|code| code == run.code()) => false,
            (Action::Full | Action::Broken, Some(5)) => {
                assert_eq!(run.code(), "code_build_failed", "{case}: {run:?}");
                true
            }
            (Action::Full | Action::Broken, _) | (_, Some(_)) => panic!("{case}: {run:?}"),
            (_, None) => true,
        };
        // A disk that stays full has no room for the record, and without the lock nobody may write one.
        let before_the_lock = ["binding-", "lock-", "leftover-"].iter().any(|part| point.starts_with(part));
        self.judge(story, &case, failed, failed && action.1 == Action::Broken && !before_the_lock);
        if matches!(action.1, Action::Torn | Action::LoseContent | Action::LoseNames) {
            // Facts may be torn, which is a miss to those who look them up.
            let verified = self.place.run(&["sync", "--verify", "--json"], 0).json()["verified"].clone();
            let whole = ["damaged_pointer", "damaged_current"].iter().all(|part| verified[part] == false);
            assert!(whole && verified["dropped_baselines"] == 0, "{case}: {verified}");
        }
    }

    /// Checks what is left after the command: the old answer or the new one, a record of a failure where there must be one, and that it
    /// heals.
    fn judge(&self, story: &Story, case: &str, failed: bool, recorded: bool) {
        let answer = self.place.ask();
        if !failed {
            assert_eq!(answer, self.after, "{case}: the command succeeded");
        } else if answer != self.after && answer != self.before {
            let stale = Answer::Refusal("code_changed".to_owned());
            assert_eq!(answer, stale, "{case}: neither the old answer nor the new one");
            self.place.set(&self.old_files);
            assert_eq!(self.place.ask(), self.before, "{case}: the old answer is lost");
            self.place.set(&story.files);
        }
        if failed && story.command != ["clear"] {
            let status = self.place.run(&["status", "--json"], 0).json();
            let last = &status["last_build"];
            assert_ne!(last["status"], "building", "{case}: nobody builds: {status}");
            if recorded {
                assert_eq!(
                    (&last["status"], &last["reason"]),
                    (&"failed".into(), &"code_build_failed".into()),
                    "{case}: {status}"
                );
            }
        }
        self.heal(story);
        assert_eq!(self.place.ask(), self.healed, "{case}: not healed");
        assert_eq!(self.place.listing(), self.listing, "{case}: files too many or too few");
        let record = fs::read_to_string(self.place.binding().join("last-build.json")).expect("there is a record");
        assert!(record.contains(r#""status":"ready""#), "{case}: {record}");
    }
}

fn read_files(tree: &Path) -> Files {
    let mut files = Vec::new();
    for name in ["app.py", "lib.py", "same.py", "big.txt"] {
        if let Ok(content) = fs::read_to_string(tree.join(name)) {
            files.push((name, content));
        }
    }
    files
}

/// A small program in its n-th version.
fn version(number: usize) -> Files {
    vec![
        ("same.py", "def same(): pass\n".to_owned()),
        ("lib.py", format!("def old(): pass\ndef new_{number}(): pass\n")),
        ("app.py", format!("from lib import old, new_{number}\n\n\ndef main():\n    new_{number}()\n    old()\n")),
    ]
}

fn with_big_file(number: usize) -> Files {
    let mut files = version(number);
    files.push(("big.txt", "A long line of text that says nothing.\n".repeat(29_000)));
    files
}

/// Makes all facts look unused for long.
fn age_facts(place: &Place) {
    for entry in fs::read_dir(place.facts()).expect("there are facts").flatten() {
        let file = fs::File::open(entry.path()).expect("it is ours");
        file.set_modified(SystemTime::now() - Duration::from_secs(7200)).expect("it is ours");
    }
}

/// Damages a file under this name only: generations may share it.
fn flip(path: &Path) {
    let mut bytes = fs::read(path).expect("it is ours");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::remove_file(path).expect("it is ours");
    fs::write(path, bytes).expect("it is ours");
}

/// Damages a file under all its names.
fn flip_in_place(path: &Path) {
    use std::os::unix::fs::FileExt;
    let file = fs::File::options().read(true).write(true).open(path).expect("it is ours");
    let middle = file.metadata().expect("it is ours").len() / 2;
    let mut byte = [0];
    file.read_exact_at(&mut byte, middle).expect("it is ours");
    file.write_all_at(&[byte[0] ^ 1], middle).expect("it is ours");
}

fn indexed(place: &Place) {
    place.build("index", &version(0));
}

fn synced(place: &Place) {
    // The first one, the previous one and the current one are kept; a fourth lets one go.
    for number in 0..3 {
        place.build("sync", &version(number));
    }
}

fn stories() -> BTreeMap<&'static str, Story> {
    let nothing = |place: &Place| place.set(&version(0));
    let big = |place: &Place| place.build("index", &with_big_file(0));
    let many_facts = |place: &Place| {
        for number in 0..17 {
            place.build("sync", &version(number));
        }
        age_facts(place);
    };
    let marked = |place: &Place| {
        synced(place);
        fs::write(place.binding().join("damaged"), "").expect("it is ours");
    };
    let damaged = |place: &Place| {
        indexed(place);
        flip(&place.generation().join("graph.sqlite"));
    };
    let damaged_and_marked = |place: &Place| {
        indexed(place);
        flip(&place.generation().join("graph.sqlite"));
        place.run(&["export", "--on-stale", "refuse"], 5);
    };
    let damaged_baseline = |place: &Place| {
        synced(place);
        flip(&place.baselines()[0].join("graph.sqlite"));
        fs::write(place.binding().join("damaged"), "").expect("it is ours");
    };
    let debris = |place: &Place| {
        indexed(place);
        let binding = place.binding();
        write_file(&binding.join("generations/.aaaa/graph.sqlite"), b"half");
        write_file(&binding.join("generations/strange"), b"");
        write_file(&binding.join("packs/.bbbb.tmp"), b"half");
        write_file(&binding.join(".cccc.tmp"), b"half");
        write_file(&place.facts().join(".dddd.tmp"), b"half");
        fs::remove_file(binding.join("build.lock")).expect("it is ours");
        write_file(&binding.join("build.lock/inside"), b"");
    };
    let limited = |place: &Place| {
        indexed(place);
        write_file(&place.sandbox.path().join("home/limited.toml"), b"[limits]\nmax_cache_bytes = 60000\n");
    };
    BTreeMap::from([
        ("first index", Story::new(nothing, version(0), &["index"])),
        (
            "index again",
            Story {
                points: &["facts-", "generation", "pack-rename", "pointer-", "retired-"],
                ..Story::new(indexed, version(0), &["index"])
            },
        ),
        ("sync", Story::new(synced, version(3), &["sync"])),
        (
            "sync that copies out of packs",
            Story { points: &["pack-", "generation-rename", "pointer-rename"], ..Story::new(big, version(1), &["sync"]) },
        ),
        ("sync that merges facts", Story { points: &["facts-"], ..Story::new(many_facts, version(17), &["sync"]) }),
        ("clear", Story { heal: &[&["clear"], &["sync"]], ..Story::new(marked, version(2), &["clear"]) }),
        (
            "sync after damage",
            Story { points: &["mark-", "pointer-", "retired-"], ..Story::new(damaged_and_marked, version(1), &["sync"]) },
        ),
        (
            "question that meets damage",
            Story {
                fails: Some("index_integrity_failed"),
                ..Story::new(damaged, version(0), &["export", "--on-stale", "refuse"])
            },
        ),
        (
            "sync that drops a damaged baseline",
            Story {
                points: &["mark-", "pointer-", "retired-"],
                ..Story::new(damaged_baseline, version(2), &["sync", "--verify"])
            },
        ),
        (
            "sync among debris",
            Story { points: &["facts-remove", "leftover-", "lock-"], ..Story::new(debris, version(1), &["sync"]) },
        ),
        (
            "sync over the limit",
            Story {
                fails: Some("code_cache_limit_exceeded"),
                points: &["generation", "pack-"],
                ..Story::new(limited, version(1), &["sync", "--config", "../home/limited.toml"])
            },
        ),
    ])
}

/// The steps that take space on the disk.
const NEED_SPACE: [&str; 8] = ["-make", "-create", "-write", "-open", "-load", "-index", "-commit", "-sync"];

fn check(story: &str) {
    let story = &stories()[story];
    let peace = Peace::of(story);
    let mut cases = 0;
    let all = std::env::var_os("SEXTANT_ALL_FAULTS").is_some();
    for (point, passages) in &peace.passed {
        if !all && !story.points.iter().any(|start| point.starts_with(start)) {
            continue;
        }
        for passage in BTreeSet::from([1, passages.len()]) {
            let losses = passages[passage - 1];
            for &action in Action::ALL {
                let differs = match action.1 {
                    Action::Stop | Action::Broken => true,
                    Action::Full => NEED_SPACE.iter().any(|step| point.ends_with(step)),
                    Action::Torn => point.ends_with("-write") || point.ends_with("facts-rename"),
                    Action::LoseContent => losses.content,
                    Action::LoseNames => losses.names,
                };
                if differs {
                    peace.play(story, point, passage, action);
                    cases += 1;
                }
            }
        }
    }
    println!("{cases} faults at {} points", peace.passed.len());
}

macro_rules! stories {
    ($($test:ident: $story:literal,)*) => {
        $(#[test]
        fn $test() {
            check($story);
        })*

        #[test]
        fn every_story_is_tested() {
            assert_eq!(stories().into_keys().collect::<BTreeSet<_>>(), BTreeSet::from([$($story),*]));
        }
    };
}

stories! {
    first_index: "first index",
    index_again: "index again",
    sync: "sync",
    sync_that_copies_out_of_packs: "sync that copies out of packs",
    sync_that_merges_facts: "sync that merges facts",
    clear: "clear",
    sync_after_damage: "sync after damage",
    question_that_meets_damage: "question that meets damage",
    sync_that_drops_a_damaged_baseline: "sync that drops a damaged baseline",
    sync_among_debris: "sync among debris",
    sync_over_the_limit: "sync over the limit",
}

#[test]
fn every_point_is_passed() {
    let passed: BTreeSet<String> = stories().values().flat_map(|story| Peace::of(story).passed.into_keys()).collect();
    let listed: BTreeSet<String> = POINTS.iter().map(|(part, step)| name(*part, *step)).collect();
    assert_eq!(passed.difference(&listed).collect::<Vec<_>>(), Vec::<&String>::new(), "durable steps that no list names");
    assert_eq!(listed.difference(&passed).collect::<Vec<_>>(), Vec::<&String>::new(), "durable steps that no story passes");
}

/// What a sync that verifies says of damage to a part of the cache.
#[test]
fn verification_finds_and_repairs() {
    let check = |damage: &dyn Fn(&Place), expected: &[(&str, u64)]| {
        let place = Place::new();
        synced(&place);
        damage(&place);
        let verified = place.run(&["sync", "--verify", "--json"], 0).json()["verified"].clone();
        let found = |name: &str| {
            let value = &verified[name];
            value.as_u64().or(value.as_bool().map(u64::from)).unwrap_or_else(|| panic!("no {name} in {verified}"))
        };
        let words = ["damaged_pointer", "damaged_current", "dropped_baselines", "dropped_facts_packs"];
        let said: Vec<_> = words.iter().map(|word| (*word, found(word))).filter(|(_, count)| *count > 0).collect();
        assert_eq!(said, expected, "{verified}");
        assert_eq!(place.ask(), place.clean_answer());
        let again = place.run(&["sync", "--verify"], 0).out;
        assert!(again.contains("nothing stored is damaged") && again.contains("nothing changed"), "{again}");
        let rest = place.kept().into_iter().collect::<BTreeSet<_>>().len();
        assert_eq!(fs::read_dir(place.binding().join("generations")).expect("it is ours").count(), rest);
        (rest, verified)
    };
    let (kept, verified) = check(&|_| {}, &[]);
    assert_eq!(kept, 3);
    for (name, count) in [("generations", 3), ("packs", 3), ("sources", 7), ("facts_packs", 3), ("facts", 7)] {
        assert_eq!(verified[name], count, "{name} in {verified}");
    }
    // The index that serves is built anew, and both baselines stay.
    for part in ["graph.sqlite", "seal"] {
        assert_eq!(check(&|place| flip(&place.generation().join(part)), &[("damaged_current", 1)]).0, 3);
    }
    // What generations share is damaged in all of them.
    let shared = |place: &Place| flip_in_place(&place.generation().join("graph.sqlite"));
    assert_eq!(check(&shared, &[("damaged_current", 1), ("dropped_baselines", 2)]).0, 1);
    assert_eq!(check(&|place| flip(&place.generation().join("graph.sqlite-wal")), &[("damaged_current", 1)]).0, 3);
    assert_eq!(check(&|place| fs::remove_file(place.generation().join("lease")).expect("ours"), &[("damaged_current", 1)]).0, 3);
    // A damaged baseline goes, and nothing else.
    for part in ["graph.sqlite", "seal"] {
        assert_eq!(check(&|place| flip(&place.baselines()[0].join(part)), &[("dropped_baselines", 1)]).0, 2);
    }
    let both = |place: &Place| place.baselines().iter().for_each(|baseline| fs::remove_dir_all(baseline).expect("it is ours"));
    assert_eq!(check(&both, &[("dropped_baselines", 2)]).0, 1);
    // The first pack has a source that all need.
    let packs = |place: &Place| {
        let entries = fs::read_dir(place.binding().join("packs")).expect("there are packs").flatten();
        entries.for_each(|entry| flip(&entry.path()));
    };
    assert_eq!(check(&packs, &[("damaged_current", 1), ("dropped_baselines", 2)]).0, 1);
    assert_eq!(check(&|place| flip(&place.binding().join("current")), &[("damaged_pointer", 1)]).0, 1);
    let facts =
        |place: &Place| flip(&fs::read_dir(place.facts()).expect("there are facts").flatten().next().expect("one").path());
    assert_eq!(check(&facts, &[("dropped_facts_packs", 1)]).0, 3);
}

/// A damaged baseline is not found by questions about the present; the one that meets it says so, and a sync lets it go.
#[test]
fn a_damaged_baseline_is_let_go() {
    let place = Place::new();
    synced(&place);
    flip(&place.baselines()[0].join("graph.sqlite"));
    let refused = place.run(&["changes", "--json"], 5);
    assert_eq!(refused.code(), "index_integrity_failed");
    let before = place.ask();
    let synced = place.run(&["sync", "--json"], 0).json();
    assert_eq!((&synced["published"], &synced["verified"]["dropped_baselines"]), (&false.into(), &1.into()), "{synced}");
    assert_eq!(place.ask(), before);
    assert_eq!(place.run(&["changes", "--json"], 5).code(), "baseline_unavailable");
}

/// A limit on the size of files is met in the middle of a write, by this program and by SQLite, and kills or fails.
#[test]
fn files_that_cannot_grow() {
    let story = &stories()["sync"];
    let peace = Peace::of(story);
    let mut failures = 0;
    for kibibytes in [0, 1, 4, 16, 32, 48, 64, 80, 96, 112, 128, 256] {
        for (ends, trap) in [("kills", ""), ("fails", "trap '' XFSZ; ")] {
            let case = format!("a limit of {kibibytes} KiB that {ends}");
            peace.restore();
            let mut shell = peace.place.sandbox.command("sh");
            let line = format!("ulimit -c 0; {trap}ulimit -f {}; exec \"$0\" sync --json", kibibytes * 2);
            let run = Run::of(shell.args(["-c", &line, crate::program::PROGRAM]));
            let killed = run.status.is_none();
            assert!(!killed || trap.is_empty(), "{case}: {run:?}");
            if run.status == Some(5) {
                assert_eq!(run.code(), "code_build_failed", "{case}: {run:?}");
                failures += 1;
            }
            let failed = run.status != Some(0);
            peace.judge(story, &case, failed, failed && !killed && kibibytes > 0);
        }
    }
    assert!(failures > 4, "{failures} limits were met");
}

/// A disk that is really full, where the platform lets a test make one: little room is left beside what was built before.
#[test]
fn a_full_disk() {
    let story = &stories()["sync"];
    let peace = Peace::of(story);
    let out = peace.place.sandbox.path().join("out");
    let mount = peace.place.sandbox.path().join("mount");
    fs::create_dir(&mount).expect("there is room");
    let script = r#"
        mount -t tmpfs -o size=16m none "$1" || exit 77
        cp -a "$2/." "$1" && used=$(du -sk "$1" | cut -f1) || exit 78
        mount -o remount,size=$(($used + $4))k "$1" || exit 77
        XDG_CACHE_HOME="$1" "$0" sync --json
        code=$?
        cp -a "$1/." "$3"
        exit $code"#;
    let mut failures = 0;
    for room in [0, 8, 16, 32, 64, 96, 128, 160, 200, 1000] {
        let case = format!("{room} KiB of room");
        fs::create_dir(&out).expect("there is room");
        let mut command = peace.place.sandbox.command("unshare");
        command.args(["--map-root-user", "--mount", "sh", "-c", script, crate::program::PROGRAM]);
        command.args([&mount, &peace.saved, &out]).arg(room.to_string());
        let Ok(output) = command.output() else { return };
        let run = Run::from(output);
        if !matches!(run.status, Some(0 | 5)) {
            println!("no full disk can be made here: {}", run.err.trim());
            return;
        }
        if run.status == Some(5) {
            assert_eq!(run.code(), "code_build_failed", "{case}: {run:?}");
            assert!(run.err.contains("free disk space"), "{case}: {run:?}");
            failures += 1;
        }
        fs::remove_dir_all(peace.place.cache()).expect("it is ours");
        fs::rename(&out, peace.place.cache()).expect("it is ours");
        peace.judge(story, &case, run.status == Some(5), run.status == Some(5) && room > 8);
    }
    assert!(failures > 4, "the disk was full {failures} times");
}
