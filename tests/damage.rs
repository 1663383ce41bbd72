//! Every file and every directory of a cache, damaged in every way that is listed here, one at a time.
//!
//! A question then gives exactly the right answer or is refused, never blocks and never panics; `sync` and `index` repair; and what a link
//! in the cache leads to is never touched.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::{FileTypeExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use crate::sandbox::{Sandbox, write_file};

/// Longest that one damage with all its questions and builds may take before it counts as blocked.
const PATIENCE: Duration = Duration::from_secs(60);

/// A tree, a cache of it with three generations and four packs of sources, and what is right of it.
struct Specimen {
    sandbox: Sandbox,
    /// Name of the generation that serves.
    current: String,
    right: Truth,
    /// Of the tree after [`Specimen::edit`].
    edited: Truth,
}

/// Questions with their right answers.
#[derive(Clone, Debug)]
struct Truth {
    all: Vec<(Question, String)>,
    /// Those that together read every row and every stored source.
    telling: Vec<(Question, String)>,
}

/// A request of the wire contract, or the export.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Question {
    Request(String),
    Export,
}

impl Question {
    /// Returns the answer without the time of its check, or the code of the refusal.
    fn ask(&self, sandbox: &Sandbox) -> Result<String, String> {
        let run = match self {
            Self::Request(request) => sandbox.query_here(request),
            Self::Export => sandbox.run_here(&["export", "--json", "--on-stale", "refuse"]),
        };
        if run.status != Some(0) {
            assert!(run.out.is_empty(), "a refusal says nothing beside: {run:?}");
            return Err(run.code());
        }
        match self {
            Self::Export => Ok(run.out),
            Self::Request(_) => {
                let mut answer = run.json();
                answer["checked_at"] = serde_json::Value::Null;
                Ok(answer.to_string())
            }
        }
    }
}

const FILES: &[(&str, &str)] = &[
    ("lib.py", "def greet(name):\n    return name\n"),
    ("app/__init__.py", ""),
    ("app/main.py", "from lib import greet\n\n\ndef main():\n    greet(\"x\")\n"),
    ("app/more.py", "import lib\n\n\nclass More:\n    def go(self):\n        return lib.greet(self)\n"),
    ("README.md", "# Title\n\nText about greet.\n"),
];

impl Specimen {
    fn new() -> Self {
        let sandbox = Sandbox::new();
        for (path, text) in FILES {
            sandbox.write(path, text);
        }
        sandbox.commit_all();
        sandbox.run_here(&["index", "--quiet"]).ended(0);
        for path in ["lib.py", "app/main.py", "app/more.py"] {
            fs::copy(find_pointer(&sandbox), sandbox.path().join("older")).expect("copied");
            let text = fs::read_to_string(sandbox.tree().join(path)).expect("it was written");
            sandbox.write(path, format!("{text}\n\ndef added():\n    pass\n"));
            sandbox.run_here(&["sync", "--quiet"]).ended(0);
        }
        copy(&sandbox.path().join("cache"), &sandbox.path().join("whole"));
        let right = Truth::of(&sandbox);
        let pointer = fs::read_to_string(find_pointer(&sandbox)).expect("readable");
        let current =
            pointer.split("\"id\":\"").nth(1).and_then(|rest| rest.get(..32)).expect("it names a generation").to_owned();
        let mut specimen = Self { sandbox, current, edited: right.clone(), right };
        specimen.edit(true);
        specimen.sandbox.run_here(&["index", "--quiet"]).ended(0);
        specimen.edited = Truth::of(&specimen.sandbox);
        specimen.restore();
        specimen
    }

    fn root(&self) -> PathBuf {
        self.sandbox.path().join("cache/sextant")
    }

    /// Puts the edit in the tree, or takes it out.
    fn edit(&self, on: bool) {
        let text = if on { "# Other title\n\nText about greet.\n" } else { FILES[4].1 };
        self.sandbox.write("README.md", text);
        let code = if on { "from lib import greet\ngreet(2)\n" } else { "" };
        self.sandbox.write("app/__init__.py", code);
    }

    /// Makes everything as it was before any damage.
    fn restore(&self) {
        self.edit(false);
        for part in ["cache", "elsewhere"] {
            remove(&self.sandbox.path().join(part));
        }
        copy(&self.sandbox.path().join("whole"), &self.sandbox.path().join("cache"));
        for (path, text) in FOREIGN {
            write_file(&self.sandbox.path().join("elsewhere").join(path), text.as_bytes());
        }
    }
}

/// What stands in a directory of someone else: names that a cleaner of caches could take for its own.
const FOREIGN: &[(&str, &str)] = &[
    ("letter.txt", "mine"),
    (".hidden", "mine"),
    (".0123456789abcdef.tmp", "mine"),
    ("0123456789abcdef.pack", "mine"),
    ("00112233445566778899aabbccddeeff/graph.sqlite", "mine"),
    ("00112233445566778899aabbccddeeff/lease", ""),
    ("folder/file", "mine"),
];

impl Truth {
    /// Asks a whole cache.
    fn of(sandbox: &Sandbox) -> Self {
        let found = sandbox.query_here(r#"{"operation":{"kind":"symbols","query":"greet"}}"#).ended(0).json();
        let fingerprint = &found["fingerprint"];
        let symbol = &found["items"][0]["id"];
        let mut operations = vec![
            r#"{"kind":"map","depth":5,"limit":50}"#.to_owned(),
            r#"{"kind":"symbols","query":"greet"}"#.to_owned(),
            format!(r#"{{"kind":"callers","symbol_id":{symbol}}}"#),
            format!(r#"{{"kind":"callees","symbol_id":{symbol}}}"#),
            r#"{"kind":"explore","query":"greet"}"#.to_owned(),
            r#"{"kind":"changes"}"#.to_owned(),
        ];
        let files = fs::read_dir(sandbox.tree().join("app")).expect("listed").map(|entry| entry.expect("listed").file_name());
        let mut paths: Vec<String> = files.map(|name| format!("app/{}", name.to_string_lossy())).collect();
        paths.extend(["lib.py".to_owned(), "README.md".to_owned()]);
        paths.sort();
        for path in paths {
            let bytes = fs::read(sandbox.tree().join(&path)).expect("readable");
            if !bytes.is_empty() {
                let hash = sextant::model::ContentHash::of(&bytes).hex();
                operations
                    .push(format!(r#"{{"kind":"read","path":"{path}","file_sha256":"{hash}","start_line":1,"end_line":9}}"#));
            }
        }
        let requests = operations
            .iter()
            .map(|operation| Question::Request(format!(r#"{{"operation":{operation},"expected_fingerprint":{fingerprint}}}"#)));
        let answered = requests.chain([Question::Export]).map(|question| {
            let answer = question.ask(sandbox).expect("the cache is whole");
            (question, answer)
        });
        let all: Vec<(Question, String)> = answered.collect();
        let telling = all.iter().filter(|(question, _)| match question {
            Question::Request(request) => request.contains("\"read\""),
            Question::Export => true,
        });
        Self { telling: telling.cloned().collect(), all }
    }

    /// Asks a damaged cache; returns the codes of refusals, `right` for right answers.
    fn outcomes(questions: &[(Question, String)], sandbox: &Sandbox) -> BTreeSet<String> {
        let mut outcomes = BTreeSet::new();
        for (question, right) in questions {
            match question.ask(sandbox) {
                Ok(answer) => {
                    assert_eq!(answer, *right, "a wrong answer to {question:?}");
                    outcomes.insert("right".to_owned());
                }
                Err(code) => drop(outcomes.insert(code)),
            }
        }
        outcomes
    }

    #[track_caller]
    fn is_answered(&self, sandbox: &Sandbox, when: &str) {
        assert_eq!(Self::outcomes(&self.telling, sandbox), BTreeSet::from(["right".to_owned()]), "{when}");
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).expect("it is new");
    for entry in fs::read_dir(from).expect("listed") {
        let entry = entry.expect("listed");
        let target = to.join(entry.file_name());
        if entry.file_type().expect("known").is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).expect("copied");
        }
    }
}

fn remove(path: &Path) {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => fs::remove_dir_all(path).expect("removed"),
        Ok(_) => fs::remove_file(path).expect("removed"),
        Err(_) => {}
    }
}

/// Returns everything below a directory, sorted: paths relative to it, directories with a `/` at their end.
fn parts_below(directory: &Path) -> Vec<String> {
    fn collect(directory: &Path, prefix: &str, parts: &mut Vec<String>) {
        for entry in fs::read_dir(directory).expect("listed") {
            let entry = entry.expect("listed");
            let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
            if entry.file_type().expect("known").is_dir() {
                let name = format!("{name}/");
                collect(&entry.path(), &name, parts);
                parts.push(name);
            } else {
                parts.push(name);
            }
        }
    }
    let mut parts = Vec::new();
    collect(directory, "", &mut parts);
    parts.sort();
    parts
}

fn find_pointer(sandbox: &Sandbox) -> PathBuf {
    let cache = sandbox.path().join("cache");
    let pointer = parts_below(&cache).into_iter().find(|part| part.ends_with("/current"));
    cache.join(pointer.expect("something was published"))
}

/// Returns the content of every file below a directory.
fn contents_below(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let files = parts_below(directory).into_iter().filter(|part| !part.ends_with('/'));
    files.map(|part| (part.clone(), fs::read(directory.join(&part)).expect("readable"))).collect()
}

/// One damage.
#[derive(Clone, Debug)]
struct Damage {
    /// Path below the root of the cache; empty for the root itself, with a `/` at its end for a directory.
    part: String,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    CutTo(u64),
    Longer,
    Flipped(usize),
    Removed,
    Emptied,
    File,
    Directory,
    FullDirectory,
    Pipe,
    Socket,
    LinkToNothing,
    LinkToDevice,
    LinkToItself,
    LinkToDirectory,
    LinkToCopy,
    /// The bytes of another part that is whole.
    Swapped(String),
    /// The pointer as it was before the last build, whole and of a generation that is kept.
    Older,
}

/// What a part of the cache is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Role {
    Root,
    Binding,
    Pointer,
    Unused,
    Packs,
    Generations,
    /// The directory, database, seal or lease of the generation that serves.
    Served,
    /// The same of one that does not.
    Kept,
}

fn role(part: &str, current: &str) -> Role {
    let inside = part.trim_end_matches('/').split('/').skip(1).collect::<Vec<_>>();
    match inside.as_slice() {
        [] if part.is_empty() => Role::Root,
        _ if part.starts_with("facts/") => Role::Unused,
        [] => Role::Binding,
        ["current"] => Role::Pointer,
        ["build.lock" | "last-build.json" | "traces"] => Role::Unused,
        ["packs", ..] => Role::Packs,
        ["generations"] => Role::Generations,
        ["generations", id, ..] if *id == current => Role::Served,
        ["generations", ..] => Role::Kept,
        _ => panic!("{part} is no known part of the cache"),
    }
}

/// Lists the damages of all parts.
fn damages(specimen: &Specimen) -> Vec<Damage> {
    let root = specimen.root();
    let parts = parts_below(&root);
    let mut damages = Vec::new();
    let of_directories = [
        Kind::Removed,
        Kind::Emptied,
        Kind::File,
        Kind::Pipe,
        Kind::LinkToNothing,
        Kind::LinkToDevice,
        Kind::LinkToItself,
        Kind::LinkToDirectory,
        Kind::LinkToCopy,
    ];
    for kind in [Kind::Removed, Kind::Emptied, Kind::LinkToCopy, Kind::File, Kind::Pipe, Kind::LinkToNothing, Kind::LinkToDevice]
    {
        damages.push(Damage { part: String::new(), kind });
    }
    for part in &parts {
        let damage = |kind| Damage { part: part.clone(), kind };
        if part.ends_with('/') {
            damages.extend(of_directories.iter().cloned().map(damage));
            continue;
        }
        let bytes = fs::read(root.join(part)).expect("readable");
        let size = bytes.len();
        if size > 0 {
            damages.extend([Kind::CutTo(0), Kind::CutTo(size as u64 / 2), Kind::CutTo(size as u64 - 1)].map(damage));
            let mut places = BTreeSet::from([0, 20, size / 2, size - 1]);
            if part.ends_with(".sqlite") {
                // The change counter, and one byte in pages of tables and of the search index.
                places.extend([24, 8192 * 2 + 100, 8192 * 5 + 4000, size - 8192 * 2 + 8000]);
            }
            damages.extend(places.into_iter().filter(|place| *place < size).map(Kind::Flipped).map(damage));
        }
        damages.extend(
            [
                Kind::Longer,
                Kind::Removed,
                Kind::Directory,
                Kind::FullDirectory,
                Kind::Pipe,
                Kind::Socket,
                Kind::LinkToNothing,
                Kind::LinkToDevice,
                Kind::LinkToItself,
                Kind::LinkToDirectory,
                Kind::LinkToCopy,
            ]
            .map(damage),
        );
        // Another part of the same form in its place is whole by itself, and still not what belongs there.
        let same = |other: &&String| {
            let file = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
            let pack = file(part).ends_with(".pack");
            *other != part && size > 0 && if pack { other.ends_with(".pack") } else { file(other) == file(part) }
        };
        if part.ends_with("/current") {
            damages.push(damage(Kind::Older));
        }
        damages.extend(parts.iter().find(same).map(|other| damage(Kind::Swapped(other.clone()))));
    }
    thin_out(damages, &specimen.current)
}

/// Keeps all damages of the first part of each sort, and every eighth of the others of that sort.
fn thin_out(damages: Vec<Damage>, current: &str) -> Vec<Damage> {
    let mut first: BTreeMap<(Role, String), String> = BTreeMap::new();
    let mut others = 0;
    let mut kept = damages;
    kept.retain(|damage| {
        let (directory, file) = damage.part.trim_end_matches('/').rsplit_once('/').unwrap_or_default();
        let file =
            if file.ends_with(".pack") { format!("{}.pack", &directory[..5.min(directory.len())]) } else { file.to_owned() };
        let sort = (role(&damage.part, current), if damage.part.ends_with('/') { String::new() } else { file });
        if *first.entry(sort).or_insert_with(|| damage.part.clone()) == damage.part {
            return true;
        }
        others += 1;
        others % 8 == 0
    });
    kept
}

/// A build that meets a damage which no question met before.
#[derive(Clone, Copy, Debug)]
enum Build {
    Verified,
    OfAnEdit,
    FromNothing,
}

impl Damage {
    /// Returns the builds that are to meet it: one, by its number in turn, or all of them if `SEXTANT_ALL_FAULTS` is set.
    fn builds(&self, number: usize) -> Vec<Build> {
        let mut builds = vec![Build::Verified, Build::OfAnEdit];
        // For a build from nothing one byte more or less is the same.
        if !matches!(self.kind, Kind::Flipped(_) | Kind::CutTo(1..)) {
            builds.push(Build::FromNothing);
        }
        if std::env::var_os("SEXTANT_ALL_FAULTS").is_none() {
            builds = vec![builds[number % builds.len()]];
        }
        builds
    }

    fn inflict(&self, specimen: &Specimen) {
        let base = specimen.sandbox.path();
        let elsewhere = base.join("elsewhere");
        // Joined with nothing, a path would end with a slash, behind which links are followed.
        let path = PathBuf::from(format!("{}/{}", specimen.root().display(), self.part).trim_end_matches('/'));
        let directory = self.part.is_empty() || self.part.ends_with('/');
        let whole = if directory { Vec::new() } else { fs::read(&path).expect("readable") };
        let write = |bytes: &[u8]| fs::write(&path, bytes).expect("written");
        let link = |to: &Path| {
            remove(&path);
            symlink(to, &path).expect("a link");
        };
        match &self.kind {
            Kind::CutTo(size) => fs::File::options().write(true).open(&path).and_then(|file| file.set_len(*size)).expect("cut"),
            Kind::Longer => write(&[&whole[..], b"x"].concat()),
            Kind::Flipped(place) => {
                let mut bytes = whole;
                bytes[*place] ^= 0x10;
                write(&bytes);
            }
            Kind::Removed => remove(&path),
            Kind::Emptied | Kind::Directory => {
                remove(&path);
                fs::create_dir(&path).expect("a directory");
            }
            Kind::FullDirectory => {
                remove(&path);
                write_file(&path.join("inside/file"), b"x");
            }
            Kind::File => {
                remove(&path);
                write(b"a file");
            }
            Kind::Pipe => {
                remove(&path);
                let status = std::process::Command::new("mkfifo").arg(&path).status().expect("mkfifo runs");
                assert!(status.success(), "a pipe");
            }
            Kind::Socket => {
                remove(&path);
                // A socket's address is short, so that it is made near and moved.
                let near = base.join("s");
                drop(std::os::unix::net::UnixListener::bind(&near).expect("a socket"));
                fs::rename(near, &path).expect("moved");
                assert!(fs::symlink_metadata(&path).expect("there").file_type().is_socket());
            }
            Kind::LinkToNothing => link(&base.join("nowhere")),
            Kind::LinkToDevice => link(Path::new("/dev/zero")),
            Kind::LinkToItself => link(&path),
            Kind::LinkToDirectory => link(&elsewhere),
            Kind::LinkToCopy => {
                let copied = base.join("elsewhere/copied");
                fs::rename(&path, &copied).expect("moved");
                link(&copied);
            }
            Kind::Older => drop(fs::copy(base.join("older"), &path).expect("copied")),
            Kind::Swapped(other) => drop(fs::copy(specimen.root().join(other), &path).expect("copied")),
        }
    }

    /// Returns what the questions may come to, beside the right answer and `index_integrity_failed`.
    fn other_codes(&self, role: Role) -> &'static [&'static str] {
        match (role, &self.kind) {
            // Without a pointer nothing says that there was ever anything.
            (Role::Root | Role::Binding | Role::Pointer, Kind::Removed | Kind::Emptied) => &["code_index_missing"],
            (Role::Binding, Kind::LinkToNothing | Kind::LinkToDirectory) => &["code_index_missing"],
            // An older generation is what it was, and not what the tree is.
            (Role::Pointer, Kind::Older) => &["code_changed"],
            // The place belongs to whoever named it, and is not replaced.
            (Role::Root, Kind::LinkToNothing) => &["code_index_missing"],
            (Role::Root, _) => &["code_storage_unavailable"],
            _ => &[],
        }
    }

    fn refuses_builds(&self, role: Role) -> bool {
        role == Role::Root && matches!(self.kind, Kind::File | Kind::Pipe | Kind::LinkToNothing | Kind::LinkToDevice)
    }

    /// Inflicts it on a whole cache before questions, and once more before each build.
    fn try_before(&self, builds: &[Build], specimen: &Specimen) -> BTreeSet<String> {
        let (sandbox, right) = (&specimen.sandbox, &specimen.right);
        let role = role(&self.part, &specimen.current);
        let foreign = contents_below(&sandbox.path().join("elsewhere"));
        let untouched = |when: &str| {
            let mut now = contents_below(&sandbox.path().join("elsewhere"));
            // What the cache itself brought there.
            now.retain(|path, _| !path.starts_with("copied"));
            assert_eq!(now, foreign, "what a link leads to was touched {when}");
        };
        let build = |command: &str, when: &str| {
            let run = sandbox.run_here(&[command, "--json"]);
            if self.refuses_builds(role) {
                assert_eq!(run.status, Some(5), "{when}: {run:?}");
                assert!(["code_build_failed", "code_storage_unavailable"].contains(&run.code().as_str()), "{when}: {run:?}");
                assert!(run.err.contains("hint:"), "{when}: {run:?}");
            } else {
                assert_eq!(run.status, Some(0), "{when}: {run:?}");
            }
            untouched(when);
        };

        self.inflict(specimen);
        let status = sandbox.run_here(&["status", "--json"]).ended(0).json();
        let outcomes = Truth::outcomes(&right.all, sandbox);
        let others = self.other_codes(role);
        for outcome in &outcomes {
            let honest = ["right", "index_integrity_failed"].contains(&outcome.as_str()) || others.contains(&outcome.as_str());
            assert!(honest, "{outcome}");
        }
        if role == Role::Unused {
            assert_eq!(outcomes, BTreeSet::from(["right".to_owned()]), "the questions need no such part");
        }
        assert!(status["status"] != "ready" || outcomes.contains("right"), "{status} and {outcomes:?}");
        untouched("by questions");
        build("sync", "after questions");
        if self.refuses_builds(role) {
            specimen.restore();
            return outcomes;
        }
        right.is_answered(sandbox, "after questions and a sync");

        for next in builds {
            specimen.restore();
            self.inflict(specimen);
            match next {
                Build::Verified => {
                    let run = sandbox.run_here(&["sync", "--verify", "--json"]);
                    assert_eq!(run.status, Some(0), "{run:?}");
                    untouched("by sync --verify");
                    right.is_answered(sandbox, "after sync --verify, unasked");
                }
                // A sync that is not told of damage may build upon it. What it built is refused where it is damaged, and the next one repairs.
                Build::OfAnEdit => {
                    specimen.edit(true);
                    build("sync", "with an edit");
                    let after = Truth::outcomes(&specimen.edited.telling, sandbox);
                    if after != BTreeSet::from(["right".to_owned()]) {
                        build("sync", "after questions after a sync of an edit");
                        specimen.edited.is_answered(sandbox, "after an edit");
                    }
                }
                Build::FromNothing => {
                    build("index", "by index");
                    right.is_answered(sandbox, "after index");
                }
            }
        }
        sandbox.run_here(&["clear"]).ended(0);
        untouched("by clear");
        specimen.restore();
        outcomes
    }
}

#[test]
fn each_part_damaged_in_each_way() {
    sextant::store::faults::disable_barriers();
    let tried = Arc::new(Mutex::new(BTreeMap::<(Role, String), usize>::new()));
    let next = Arc::new(AtomicUsize::new(0));
    let workers: Vec<_> = (0..2)
        .map(|_| {
            let (tried, next) = (Arc::clone(&tried), Arc::clone(&next));
            std::thread::spawn(move || try_damages(&next, &tried))
        })
        .collect();
    for worker in workers {
        worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    }
    let tried = tried.lock().expect("no worker failed");
    let total: usize = tried.values().sum();
    println!("{total} damages: {tried:#?}");
    assert!(total > 200, "{total} damages only");
}

/// Takes damage after damage until none is left; each in a thread that may not take long.
fn try_damages(next: &AtomicUsize, tried: &Mutex<BTreeMap<(Role, String), usize>>) {
    // A sandbox of its own: the names in each are others, the order of the parts may be, too.
    let specimen = Arc::new(Specimen::new());
    let damages = damages(&specimen);
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        let Some(damage) = damages.get(number) else { break };
        let (done, ended) = mpsc::channel();
        let thread = {
            let (specimen, damage) = (Arc::clone(&specimen), damage.clone());
            std::thread::spawn(move || {
                let outcomes = damage.try_before(&damage.builds(number), &specimen);
                let _ = done.send(outcomes);
            })
        };
        match ended.recv_timeout(PATIENCE) {
            Ok(outcomes) => {
                let outcomes = outcomes.into_iter().collect::<Vec<_>>().join(" ");
                let mut tried = tried.lock().expect("no worker failed");
                *tried.entry((role(&damage.part, &specimen.current), outcomes)).or_default() += 1;
            }
            Err(mpsc::RecvTimeoutError::Timeout) => panic!("{damage:?} blocks"),
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                eprintln!("failed: {damage:?}");
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            }
        }
    }
}
