//! A binding's whole life on disk: publishing, reading under leases, damage of every part, collection, and contention.
//!
//! Must not know how the graph is computed: contents are made by hand.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::model::facts::Body;
use crate::model::{
    ContentHash, Definition, DefinitionKey, FileFacts, Fingerprint, ParseStatus, Place, RepoPath, Span, Surface, SymbolKind,
};
use crate::workspace::{Entry, EntryState};

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

fn identity(number: u8) -> Identity {
    Identity {
        fingerprint: Fingerprint([number; 32]),
        state: ContentHash([number; 32]),
        scope_id: "s".to_owned(),
        binding_id: "b".to_owned(),
        commit: None,
        head_tree: None,
        branch: None,
        object_format: "sha1".to_owned(),
        git: false,
        dirty: true,
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
        let known: Vec<StoredFile> = self.cache.pin().and_then(|parent| parent.manifest()).unwrap_or_default();
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
                edges: None,
            });
        }
        let content =
            Content { identity: identity(number), files: entries, limitations: Vec::new(), unrepresentable: Vec::new() };
        lock.stage(&content, sources)
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
    assert_eq!(first.identity(), &identity(1));
}
