//! A binding's whole life on disk: publishing, reading under leases, damage of every part, collection, and contention.
//!
//! Must not know how the graph is computed: contents are made by hand.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::model::facts::Body;
use crate::model::{
    Cancel, ContentHash, Definition, DefinitionKey, Demand, FileFacts, Fingerprint, Headway, ParseStatus, Place, RepoPath, Span,
    Surface, SymbolKind, codec,
};
use crate::workspace::{Entry, EntryState};

use super::durable::Part;
use super::*;

/// A binding in a temporary folder.
struct Fixture {
    _folder: tempfile::TempDir,
    root: PathBuf,
    cache: Cache,
}

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(20)
}

fn facts(text: &str) -> FileFacts {
    let names = text.lines().filter_map(|line| line.strip_prefix("def "));
    let definitions = names.zip(1..).map(|(name, line)| Definition {
        key: DefinitionKey { qualified: Arc::from(name), ordinal: 0 },
        name: Arc::from(name),
        kind: SymbolKind::Function,
        parent: None,
        span: Span { start: line * 10, end: line * 10 + 5 },
        start_line: line,
        end_line: line,
        name_place: Place { line, column: 4, start: line * 10 + 4 },
        signature: Some(Arc::from(format!("def {name}()"))),
        docstring: None,
    });
    FileFacts {
        parse: ParseStatus::Ok,
        lines: 3,
        generated: false,
        minified: false,
        definitions: definitions.collect(),
        headings: Vec::new(),
        surface: Arc::new(Surface::default()),
        body: Body::default(),
    }
}

impl Fixture {
    fn new() -> Self {
        Self::with_limit(1 << 30)
    }

    fn with_limit(max_bytes: u64) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let root = folder.path().join("cache");
        let cache = Cache::new(&root, "b", max_bytes);
        Self { _folder: folder, root, cache }
    }

    fn directory(&self) -> &Path {
        &self.cache.places.directory
    }

    /// Builds a generation of files given as path and text; contents that `parent` has are not stored again.
    fn stage<'a>(&self, lock: &'a BuildLock, number: u8, files: &[(&str, &str)]) -> Result<Staged<'a>, StoreError> {
        self.stage_for(&Demand::until(soon()), lock, number, files)
    }

    fn stage_for<'a>(
        &self,
        demand: &Demand,
        lock: &'a BuildLock,
        number: u8,
        files: &[(&str, &str)],
    ) -> Result<Staged<'a>, StoreError> {
        // What is marked as damaged is no basis for a build.
        let parent = if self.cache.has_damage_mark() { None } else { self.cache.pin().ok() };
        let known = parent.and_then(|parent| parent.manifest().ok()).unwrap_or_default();
        let sources = lock.source_writer()?;
        let mut entries = Vec::new();
        for (path, text) in files {
            let hash = ContentHash::of(text.as_bytes());
            let object = match known.iter().find(|file| file.hash == hash) {
                Some(file) => file.object,
                None => sources.append(hash, text.as_bytes())?,
            };
            entries.push(ContentFile {
                entry: Entry {
                    path: RepoPath::parse(path).expect("valid"),
                    mode: 0o100_644,
                    state: EntryState::Included { hash, size: text.len() as u64 },
                },
                object: Some(object),
                blob: None,
                language: Some("python"),
                module: None,
                test: false,
                deprioritized: false,
                facts: Some(Arc::new(facts(text))),
                failure: None,
                words: None,
                edges: None,
            });
        }
        let content = Content {
            identity: Identity::numbered(number),
            files: entries,
            limitations: Vec::new(),
            unrepresentable: Vec::new(),
        };
        lock.stage(&content, &sources, &Headway::default(), demand)
    }

    fn publish(&self, number: u8, files: &[(&str, &str)]) -> Result<Published, StoreError> {
        let lock = self.cache.lock(soon())?;
        self.stage(&lock, number, files)?.publish()
    }

    /// Returns what the generation that serves says: its number, and every path with its source.
    fn served(&self) -> Result<String, StoreError> {
        say(&self.cache.pin()?)
    }

    fn generations(&self) -> usize {
        fs::read_dir(self.cache.places.generations()).map_or(0, Iterator::count)
    }

    fn packs(&self) -> Vec<u64> {
        packs::list(&self.cache.places.packs()).expect("listed")
    }
}

fn say(generation: &Generation) -> Result<String, StoreError> {
    let mut text = generation.identity().fingerprint.0[0].to_string();
    for file in generation.manifest()? {
        let source = generation.source(&file.path)?.expect("an included file has its source");
        text.push_str(&format!(" {}={}", file.path, String::from_utf8_lossy(&source)));
    }
    Ok(text)
}

#[test]
fn what_is_published_is_served() {
    let fixture = Fixture::new();
    assert!(matches!(fixture.served(), Err(StoreError::Missing)));
    fixture.publish(1, &[("a", "one"), ("b", "two"), ("c", "one")]).expect("published");
    assert_eq!(fixture.served().expect("served"), "1 a=one b=two c=one");
    fixture.publish(2, &[("a", "one"), ("b", "three")]).expect("published");
    assert_eq!(fixture.served().expect("served"), "2 a=one b=three");
    assert_eq!(say(&fixture.cache.pin_previous().expect("kept")).expect("read"), "1 a=one b=two c=one");
    assert_eq!(fixture.packs().len(), 2);
    let first = fixture.cache.pin_fingerprint(&Fingerprint([1; 32])).expect("kept");
    assert_eq!(first.identity(), &Identity::numbered(1));
}

/// Something that may stand in the place of a file instead of it.
const REPLACEMENTS: [&str; 6] = ["nothing", "empty", "cut", "flipped", "a pipe", "a link"];

fn put_in_place(what: &str, path: &Path) {
    let whole = fs::read(path).expect("it was there");
    durable::remove(Part::Leftover, path).expect("removed");
    match what {
        "nothing" => {}
        "empty" => fs::write(path, "").expect("written"),
        "cut" => fs::write(path, &whole[..whole.len() / 2]).expect("written"),
        "flipped" => {
            let mut bytes = whole;
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
            fs::write(path, bytes).expect("written");
        }
        "a pipe" => {
            let status = std::process::Command::new("mkfifo").arg(path).status().expect("mkfifo runs");
            assert!(status.success(), "a pipe");
        }
        "a link" => {
            let elsewhere = path.with_extension("elsewhere");
            fs::write(&elsewhere, whole).expect("written");
            std::os::unix::fs::symlink(elsewhere, path).expect("a link");
        }
        _ => unreachable!("all are listed"),
    }
}

#[test]
fn damage_is_found_marked_and_built_over() {
    for what in REPLACEMENTS {
        for part in ["current", "graph.sqlite", "seal", "lease", "pack"] {
            let fixture = Fixture::new();
            let published = fixture.publish(1, &[("a", "def one\n"), ("b", "def two\n")]).expect("published");
            let generation = fixture.cache.places.generation(published.id);
            let path = match part {
                "current" => fixture.cache.places.pointer(),
                "pack" => fixture.cache.places.packs().join(packs::file_name(fixture.packs()[0])),
                part => generation.join(part),
            };
            if part == "lease" && matches!(what, "empty" | "cut" | "flipped") {
                // It holds nothing, so that these change nothing.
                continue;
            }
            if part == "pack" && matches!(what, "cut" | "flipped") {
                // In the middle is the index; what is served are the payloads before it.
                let mut bytes = fs::read(&path).expect("read");
                bytes[17] ^= 1;
                bytes.truncate(if what == "cut" { 20 } else { usize::MAX });
                fs::write(&path, bytes).expect("written");
            } else {
                put_in_place(what, &path);
            }
            let outcome = fixture.served();
            match (what, part) {
                ("nothing", "current") => assert!(matches!(outcome, Err(StoreError::Missing)), "{what} as {part}: {outcome:?}"),
                _ => {
                    assert!(matches!(outcome, Err(StoreError::Damaged { .. })), "{what} as {part}: {outcome:?}");
                    assert!(fixture.cache.has_damage_mark(), "{what} as {part}");
                }
            }
            let lock = fixture.cache.lock(soon()).expect("locked");
            let staged = fixture.stage(&lock, 2, &[("a", "def one\n"), ("b", "def three\n")]);
            staged.and_then(Staged::publish).unwrap_or_else(|error| panic!("{what} as {part}: {error}"));
            assert_eq!(fixture.served().expect("served"), "2 a=def one\n b=def three\n", "{what} as {part}");
            assert!(!fixture.cache.has_damage_mark());
        }
    }
}

#[test]
fn a_flip_anywhere_in_a_small_file_is_damage() {
    let fixture = Fixture::new();
    let published = fixture.publish(1, &[("a", "one")]).expect("published");
    for path in [fixture.cache.places.pointer(), fixture.cache.places.generation(published.id).join("seal")] {
        let whole = fs::read(&path).expect("read");
        for index in (0..whole.len()).step_by(7) {
            let mut bytes = whole.clone();
            bytes[index] ^= 0x20;
            fs::write(&path, bytes).expect("written");
            let outcome = fixture.served();
            assert!(matches!(outcome, Err(StoreError::Damaged { .. })), "{index}: {outcome:?}");
        }
        fs::write(&path, whole).expect("written");
    }
    assert_eq!(fixture.served().expect("served"), "1 a=one");
}

#[test]
fn anything_in_place_of_a_directory_gives_way_to_a_build() {
    let fixture = Fixture::new();
    fs::create_dir_all(&fixture.root).expect("a folder");
    for part in ["", "packs", "generations", "build.lock", "last-build.json"] {
        let path = if part.is_empty() { fixture.directory().to_owned() } else { fixture.directory().join(part) };
        durable::remove(Part::Leftover, &path).expect("removed");
        fs::write(&path, "a file").expect("written");
        // Without the sources the generation opens, and its sources are damaged.
        let outcome = fixture.served();
        let damaged = matches!(outcome, Err(StoreError::Damaged { .. } | StoreError::Missing));
        assert!(damaged || part.contains("build"), "{part}: {outcome:?}");
        fixture.publish(1, &[("a", "one")]).unwrap_or_else(|error| panic!("{part}: {error}"));
        assert_eq!(fixture.served().expect("served"), "1 a=one");
        durable::remove(Part::Leftover, &path).expect("removed");
        std::os::unix::fs::symlink("/nowhere", &path).expect("a link");
        // Reading leaves the mark that keeps the build from trusting the sources.
        drop(fixture.served());
        fixture.publish(1, &[("a", "one")]).unwrap_or_else(|error| panic!("{part}: {error}"));
        assert_eq!(fixture.served().expect("served"), "1 a=one");
    }
    fs::create_dir(fixture.directory().join("last-build.json.d")).expect("a folder");
    durable::remove(Part::Leftover, &fixture.cache.places.lock()).expect("removed");
    fs::create_dir(fixture.cache.places.lock()).expect("a folder");
    fixture.publish(2, &[("a", "one")]).expect("published");
}

#[test]
fn a_file_in_place_of_the_cache_is_an_error() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let root = folder.path().join("cache");
    fs::write(&root, "a file of someone").expect("written");
    let cache = Cache::new(&root, "b", 1 << 20);
    assert!(matches!(cache.lock(soon()), Err(StoreError::Io { .. })));
    assert!(matches!(cache.pin(), Err(StoreError::Io { .. })));
    assert_eq!(cache.facts().lookup(&[ContentHash([0; 32])]), [None]);
    assert_eq!(fs::read(&root).expect("read"), b"a file of someone");
}

#[test]
fn a_generation_stays_while_it_is_read() {
    let fixture = Fixture::new();
    fixture.publish(1, &[("a", "one")]).expect("published");
    let reader = fixture.cache.pin().expect("pinned");
    for number in 2..6 {
        // A new branch each time, so that the first one is not kept for its own sake.
        let lock = fixture.cache.lock(soon()).expect("locked");
        let staged = fixture.stage(&lock, number, &[("a", &format!("text {number}"))]).expect("staged");
        let mut staged = staged;
        staged.rename_head(number);
        staged.publish().expect("published");
    }
    assert!(!fixture.cache.is_current(&reader).expect("read"));
    assert_eq!(say(&reader).expect("read"), "1 a=one");
    // The current one, the previous one, and the one that is read.
    assert_eq!(fixture.generations(), 3);
    assert_eq!(fixture.packs().len(), 3);
    drop(reader);
    fixture.publish(6, &[("a", "six")]).expect("published");
    assert_eq!(fixture.generations(), 2);
    assert_eq!(fixture.served().expect("served"), "6 a=six");
}

#[test]
fn clearing_spares_readers_only() {
    let fixture = Fixture::new();
    assert_eq!(fixture.cache.clear().expect("nothing to clear"), 0);
    fixture.publish(1, &[("a", "one")]).expect("published");
    fixture.publish(2, &[("a", "two")]).expect("published");
    let reader = fixture.cache.pin().expect("pinned");
    assert_eq!(fixture.cache.clear().expect("cleared"), 1);
    assert!(matches!(fixture.served(), Err(StoreError::Missing)));
    assert_eq!(say(&reader).expect("read"), "2 a=two");
    drop(reader);
    assert_eq!(fixture.cache.clear().expect("cleared"), 0);
    assert_eq!((fixture.generations(), fixture.packs().len()), (0, 0));
}

#[test]
fn one_builder_at_a_time() {
    let fixture = Fixture::new();
    assert!(!fixture.cache.is_locked());
    let lock = fixture.cache.lock(soon()).expect("locked");
    assert!(fixture.cache.is_locked());
    assert!(matches!(fixture.cache.lock(Instant::now()), Err(StoreError::LockTimeout)));
    let gone = Cancel::default();
    gone.cancel();
    assert!(matches!(fixture.cache.lock_while(&Demand::new(soon(), &gone)), Err(StoreError::Unwanted)));
    let other = fixture.cache.clone();
    let waiting = std::thread::spawn(move || other.lock(soon()).map(drop));
    drop(lock);
    waiting.join().expect("it ended").expect("locked");
    assert!(!fixture.cache.is_locked());
}

#[test]
fn what_is_not_published_vanishes() {
    let fixture = Fixture::new();
    fixture.publish(1, &[("a", "one")]).expect("published");
    let lock = fixture.cache.lock(soon()).expect("locked");
    drop(fixture.stage(&lock, 2, &[("a", "two")]).expect("staged"));
    assert_eq!(fixture.generations(), 1);
    // Whoever wanted it has gone.
    let gone = Cancel::default();
    gone.cancel();
    let staged = fixture.stage_for(&Demand::new(soon(), &gone), &lock, 2, &[("a", "two")]).map(drop);
    assert!(matches!(staged, Err(StoreError::Unwanted)), "{staged:?}");
    assert_eq!(fixture.generations(), 1);
    // As a killed builder leaves it.
    std::mem::forget(fixture.stage(&lock, 3, &[("a", "three")]).expect("staged"));
    std::mem::forget(lock.source_writer().and_then(|writer| writer.append(ContentHash::of(b"x"), b"x").map(|_| writer)));
    drop(lock);
    assert_eq!(fixture.generations(), 2);
    assert_eq!(fixture.served().expect("served"), "1 a=one");
    drop(fixture.cache.lock(soon()).expect("locked"));
    assert_eq!(fixture.generations(), 1);
    fixture.publish(4, &[("a", "four")]).expect("published");
    assert_eq!(fs::read_dir(fixture.cache.places.packs()).expect("listed").count(), 2);
}

#[test]
fn a_full_cache_refuses_and_serves_on() {
    let small = "x".repeat(1 << 16);
    let fixture = Fixture::with_limit(900_000);
    fixture.publish(1, &[("a", &small)]).expect("published");
    let outcome = fixture.publish(2, &[("a", &"y".repeat(1_000_000))]);
    assert!(matches!(outcome, Err(StoreError::CacheLimit)), "{outcome:?}");
    let outcome = fixture.publish(2, &[("a", &"z".repeat(880_000))]);
    assert!(matches!(outcome, Err(StoreError::CacheLimit)), "{outcome:?}");
    assert!(fixture.served().expect("served").starts_with("1 a=x"));
    // History goes before a build is refused.
    for (number, letter) in (3..9).zip('a'..) {
        fixture.publish(number, &[("a", &letter.to_string().repeat(300_000))]).expect("published");
        assert!(fixture.served().expect("served").starts_with(&format!("{number} a={letter}")));
    }
}

#[test]
fn packs_are_put_together() {
    let fixture = Fixture::new();
    let texts: Vec<(String, String)> = (0..36).map(|number| (format!("f{number:02}"), format!("text {number}"))).collect();
    for count in 1..=texts.len() {
        let files: Vec<(&str, &str)> = texts[..count].iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        fixture.publish(1, &files).expect("published");
        assert!(fixture.packs().len() <= 33, "{} packs after {count}", fixture.packs().len());
    }
    let expected: String = texts.iter().map(|(path, text)| format!(" {path}={text}")).collect();
    assert_eq!(fixture.served().expect("served"), format!("1{expected}"));
    // Mostly waste.
    let large = "x".repeat(3 << 20);
    fixture.publish(1, &[("large", &large), ("small", "kept")]).expect("published");
    let before = fixture.packs();
    fixture.publish(1, &[("small", "kept")]).expect("published");
    fixture.publish(1, &[("small", "kept")]).expect("published");
    let after = fixture.packs();
    assert!(after.iter().all(|pack| !before.contains(pack)), "{before:?} {after:?}");
    assert_eq!(fixture.served().expect("served"), "1 small=kept");
}

#[test]
fn equal_contents_are_stored_once() {
    let fixture = Fixture::new();
    let lock = fixture.cache.lock(soon()).expect("locked");
    let sources = lock.source_writer().expect("a writer");
    let hash = ContentHash::of(b"same");
    let places: Vec<ObjectRef> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| sources.append(hash, b"same").expect("kept"))).collect();
        threads.into_iter().map(|thread| thread.join().expect("it ended")).collect()
    });
    assert!(places.iter().all(|place| *place == places[0]));
}

#[test]
fn only_the_owner_reads_the_cache() {
    use std::os::unix::fs::PermissionsExt;
    let fixture = Fixture::new();
    fixture.publish(1, &[("a", "one")]).expect("published");
    let encoded = codec::encode(&facts("def one\n")).expect("plain values");
    fixture.cache.facts().insert(&[(ContentHash([1; 32]), &encoded)]).expect("kept");
    let mut folders = vec![fixture.root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("listed") {
            let entry = entry.expect("listed");
            let metadata = entry.metadata().expect("read");
            let expected = if metadata.is_dir() { 0o700 } else { 0o600 };
            assert_eq!(metadata.permissions().mode() & 0o777, expected, "{:?}", entry.path());
            if metadata.is_dir() {
                folders.push(entry.path());
            }
        }
    }
}

#[test]
fn readers_write_nothing() {
    use std::os::unix::fs::PermissionsExt;
    let fixture = Fixture::new();
    fixture.publish(1, &[("a", "one")]).expect("published");
    let listed = |folder: &Path| {
        let mut found: Vec<_> = fs::read_dir(folder).expect("listed").map(|entry| entry.expect("listed").path()).collect();
        found.sort();
        found
    };
    let before = listed(fixture.directory());
    fs::set_permissions(fixture.directory(), fs::Permissions::from_mode(0o500)).expect("set");
    assert_eq!(fixture.served().expect("served"), "1 a=one");
    fs::set_permissions(fixture.directory(), fs::Permissions::from_mode(0o700)).expect("set");
    assert_eq!(listed(fixture.directory()), before);
}

#[test]
fn readers_and_builders_side_by_side() {
    let fixture = Fixture::new();
    fixture.publish(0, &[("a", "text 0")]).expect("published");
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 1..12 {
                fixture.publish(number, &[("a", &format!("text {number}"))]).expect("published");
            }
            done.store(true, std::sync::atomic::Ordering::Relaxed);
        });
        for _ in 0..2 {
            let cache = fixture.cache.clone();
            let done = &done;
            scope.spawn(move || {
                while !done.load(std::sync::atomic::Ordering::Relaxed) {
                    let generation = cache.pin().expect("something serves always");
                    let number = generation.identity().fingerprint.0[0];
                    assert_eq!(say(&generation).expect("read"), format!("{number} a=text {number}"));
                }
            });
        }
    });
}
