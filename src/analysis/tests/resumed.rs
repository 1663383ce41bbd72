//! A database that goes on where another process left: what it loads, what it resolves, and that it comes to what a clean one comes to.

use std::sync::Mutex;

use super::super::AnalysisError;
use super::*;

/// The files that the database knows, and what references came to, as a process leaves it to the next one.
struct Left {
    tree: BTreeMap<String, String>,
    edges: BTreeMap<RepoPath, Arc<FileEdges>>,
    image: Vec<u8>,
}

impl Left {
    fn clean(tree: &BTreeMap<String, String>) -> Self {
        let mut database = Database::with_languages(LANGUAGES, None);
        let files = tree.iter().map(|(path, text)| input(path, text)).collect();
        database.apply(Update { files, removed: Vec::new() });
        let resolved = database.resolve_all(2, &Headway::default()).expect("resolved");
        Self { tree: tree.clone(), edges: resolved.edges.iter().cloned().collect(), image: database.image().expect("an image") }
    }

    /// Lets the next process bring it to another tree. Returns the files that this one resolved and those whose facts it loaded.
    fn follow(&mut self, tree: &BTreeMap<String, String>) -> (Vec<String>, Vec<String>) {
        let mut database = Database::with_languages(LANGUAGES, None);
        let loaded = Arc::new(Mutex::new(BTreeSet::new()));
        let kept: Vec<FileInput> = self.tree.iter().map(|(path, text)| input(path, text)).collect();
        let note = Arc::clone(&loaded);
        database.load_with(Arc::new(move |hash, _| {
            let found = kept.iter().find(|file| file.hash == hash)?;
            note.lock().expect("no panic").insert(found.path.to_string());
            if let Outcome::Facts(facts) = &found.outcome { Some(Arc::clone(facts)) } else { None }
        }));
        let changed = tree.keys().chain(self.tree.keys()).filter(|path| tree.get(*path) != self.tree.get(*path));
        let changed: BTreeSet<RepoPath> = changed.map(|path| RepoPath::parse(path).expect("valid")).collect();
        let paths = tree.keys().ne(self.tree.keys());
        let files = tree.iter().map(|(path, text)| {
            let told = input(path, text);
            let is_known = !changed.contains(&told.path) && matches!(told.outcome, Outcome::Facts(_));
            FileInput { outcome: if is_known { Outcome::Kept } else { told.outcome }, ..told }
        });
        database.apply(Update { files: files.collect(), removed: Vec::new() });
        assert!(database.resume(&self.image, changed, paths));
        let resolved = database.resolve_reached(2, &BTreeSet::new(), &|| false).expect("resolved");
        self.edges.retain(|path, _| tree.contains_key(path.as_str()));
        self.edges.extend(resolved.edges.iter().cloned());
        self.image = database.image().expect("an image");
        self.tree.clone_from(tree);
        let resolved = resolved.edges.iter().map(|(path, _)| path.to_string()).collect();
        (resolved, loaded.lock().expect("no panic").iter().cloned().collect())
    }
}

fn owned(files: &[(&str, &str)]) -> BTreeMap<String, String> {
    files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect()
}

#[test]
fn a_process_goes_on_where_another_left() {
    let mut tree = owned(TREE);
    let mut left = Left::clean(&tree);
    let edits: &[&[(&str, &str)]] = &[
        &[("lib.toy", "star other\ndef f")],
        &[("other.toy", "star lib\ndef h\nuse f")],
        &[("main.toy", "star lib\nuse h\nset other.h\nall f")],
        &[("lib.toy", ""), ("sub/toy.cfg", "\n"), ("sub/main.toy", "from lib import f\nuse f")],
        &[("sub/lib.toy", "def f")],
        &[("lib.toy", "def f\ndef h")],
        &[("main.toy", "use nothing"), ("sub/toy.cfg", "")],
        &[("other.toy", "failed")],
        &[("main.toy", "from other import h\nuse h\nall h")],
        &[("other.toy", "def h\nerror")],
        &[("a.toy", "star b\ndef fa\nuse fb"), ("b.toy", "star a\nstar other\ndef fb\nuse h")],
        &[("a.toy", "def fa\nuse fb"), ("other.toy", "def h")],
        &[],
    ];
    for edit in edits {
        for (path, text) in *edit {
            if text.is_empty() {
                tree.remove(*path);
            } else {
                tree.insert((*path).to_owned(), (*text).to_owned());
            }
        }
        left.follow(&tree);
        let clean = Left::clean(&tree);
        assert_eq!(left.edges, clean.edges, "after {edit:?}");
        assert!(left.image == clean.image, "the images differ after {edit:?}");
    }
    assert_eq!(left.follow(&tree), (Vec::new(), Vec::new()), "nothing changed");
}

#[test]
fn a_process_loads_and_resolves_what_is_reached() {
    let tree = owned(&[
        ("lib.toy", "def f"),
        ("main.toy", "from lib import f\nuse f"),
        ("far.toy", "star main\nuse f"),
        ("other.toy", "def g\nuse g"),
        ("patch.toy", "set other.g"),
    ]);
    let check = |path: &str, text: &str, resolved: &str, loaded: &str| {
        let mut left = Left::clean(&tree);
        let mut after = tree.clone();
        after.insert(path.to_owned(), text.to_owned());
        let (files, facts) = left.follow(&after);
        assert_eq!((files.join(" ").as_str(), facts.join(" ").as_str()), (resolved, loaded), "after {path}: {text}");
    };
    check("lib.toy", "def f\nuse f", "lib.toy", "");
    check("main.toy", "from lib import f\nuse f\nuse f", "main.toy", "lib.toy");
    // Other exports reach those that may see them, by any number of steps.
    check("lib.toy", "def f\ndef g", "lib.toy", "main.toy");
    check("lib.toy", "def f\nerror", "far.toy lib.toy main.toy", "far.toy main.toy");
    check("patch.toy", "set lib.f", "far.toy main.toy other.toy patch.toy", "far.toy lib.toy main.toy other.toy");
    check("unrelated.toy", "def x", "unrelated.toy", "");
}

#[test]
fn images_are_read_whole_or_not_at_all() {
    let left = Left::clean(&owned(TREE));
    let read = |image: &[u8]| Database::with_languages(LANGUAGES, None).resume(image, BTreeSet::new(), false);
    assert!(read(&left.image));
    for cut in 0..left.image.len() {
        assert!(!read(&left.image[..cut]), "cut at {cut}");
    }
    for at in 0..left.image.len() {
        for bit in 0..8 {
            let mut image = left.image.clone();
            image[at] ^= 1 << bit;
            // Whatever it is taken for, nothing panics; the store tells altered bytes.
            read(&image);
        }
    }
}

#[test]
fn facts_that_cannot_be_had_are_told() {
    let left = Left::clean(&owned(TREE));
    let mut database = Database::with_languages(LANGUAGES, None);
    let files = left.tree.iter().map(|(path, text)| input(path, text)).map(|file| FileInput { outcome: Outcome::Kept, ..file });
    database.apply(Update { files: files.collect(), removed: Vec::new() });
    database.load_with(Arc::new(|_, _| None));
    assert!(database.resume(&left.image, BTreeSet::from([RepoPath::parse("lib.toy").expect("valid")]), false));
    assert!(matches!(database.resolve_reached(1, &BTreeSet::new(), &|| false), Err(AnalysisError::Facts)));
}
