//! A chain of deltas says what one bulk load of the same content says: every row, every search, every count.
//!
//! Contents are made by hand from random small trees, which meet what real edits seldom do: definitions that change places, files that take
//! the room of others, blocks that are full.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::model::facts::Body;
use crate::model::graph::{Diagnostic, Reason};
use crate::model::{
    ContentHash, Definition, DefinitionKey, Demand, Edge, EdgeKind, FileEdges, FileFacts, Heading, Headway, ParseStatus,
    PathPrefix, Place, RepoPath, Resolution, Span, Surface, SymbolKind, Target,
};
use crate::store::{BuildLock, Cache, Change, Content, ContentFile, Generation, Identity, ObjectRef};
use crate::workspace::{Entry, EntryState, Omission};

/// Numbers that are the same in each run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % sides
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.roll(100) < percent
    }
}

/// A file of a random tree.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Sketch {
    path: String,
    omitted: bool,
    failed: bool,
    /// Names in source order, each with the lines before it and what stands in its docstring.
    definitions: Vec<(String, u32, u8)>,
    headings: Vec<String>,
    /// Source by index, path and name of the target (none: the file), whether it is resolved.
    uses: Vec<(Option<usize>, String, Option<String>, bool)>,
    lost: Vec<String>,
}

const NAMES: [&str; 7] = ["alpha", "beta", "gamma", "getHTTPResponse", "Alpha", "delta", "alpha_beta"];

fn sketch(path: String, dice: &mut Dice) -> Sketch {
    let count = if dice.chance(5) { 40 } else { dice.roll(6) };
    let mut sketch = Sketch {
        path,
        omitted: dice.chance(10),
        failed: dice.chance(8),
        definitions: Vec::new(),
        headings: Vec::new(),
        uses: Vec::new(),
        lost: Vec::new(),
    };
    for _ in 0..count {
        sketch.definitions.push((NAMES[dice.roll(NAMES.len())].to_owned(), 1 + dice.roll(3) as u32, dice.roll(3) as u8));
    }
    for number in 0..dice.roll(3) {
        sketch.headings.push(format!("Heading {number} {}", NAMES[dice.roll(NAMES.len())]));
    }
    for _ in 0..dice.roll(3) {
        sketch.lost.push(NAMES[dice.roll(NAMES.len())].to_owned());
    }
    sketch
}

/// Draws edges between what is there.
fn connect(tree: &mut [Sketch], dice: &mut Dice, all: bool) {
    let targets: Vec<(String, Option<String>)> = tree
        .iter()
        .filter(|file| !file.omitted)
        .flat_map(|file| {
            let names = file.definitions.iter().filter(|_| !file.failed).map(|(name, ..)| Some(name.clone()));
            names.chain([None]).map(|name| (file.path.clone(), name)).collect::<Vec<_>>()
        })
        .collect();
    for file in tree {
        let definitions = if file.failed { 0 } else { file.definitions.len() };
        let is_there =
            |path: &String, name: &Option<String>| targets.iter().any(|target| target == &(path.clone(), name.clone()));
        file.uses.retain(|(source, path, name, _)| source.is_none_or(|source| source < definitions) && is_there(path, name));
        if (all || dice.chance(20)) && !file.omitted && !targets.is_empty() {
            file.uses = (0..dice.roll(5))
                .map(|_| {
                    let source = if definitions > 0 && dice.chance(70) { Some(dice.roll(definitions)) } else { None };
                    let (path, name) = targets[dice.roll(targets.len())].clone();
                    (source, path, name, dice.chance(70))
                })
                .collect();
        }
    }
}

fn definitions(sketch: &Sketch) -> Vec<Definition> {
    let mut line = 0;
    let mut made: Vec<Definition> = Vec::new();
    for (name, before, doc) in &sketch.definitions {
        line += before;
        // Every third is a member of the one before.
        let outer = made.len().checked_sub(1).filter(|outer| doc % 3 == 1 && made[*outer].parent.is_none());
        let qualified = outer.map_or_else(|| name.clone(), |outer| format!("{}.{name}", made[outer].key.qualified));
        let ordinal = made.iter().filter(|other| *other.key.qualified == *qualified).count() as u32;
        made.push(Definition {
            key: DefinitionKey { qualified: Arc::from(qualified), ordinal },
            name: Arc::from(name.as_str()),
            kind: if doc % 2 == 0 { SymbolKind::Function } else { SymbolKind::Class },
            parent: outer.map(|outer| outer as u32),
            span: Span { start: line * 10, end: line * 10 + 5 },
            start_line: line,
            end_line: line + 1,
            name_place: Place { line, column: 4, start: line * 10 + 4 },
            signature: Some(Arc::from(format!("def {name}(part_{doc})"))),
            docstring: (*doc > 0).then(|| Arc::from(format!("Does {doc} things."))),
        });
    }
    made
}

fn content_file(sketch: &Sketch) -> ContentFile {
    let path = RepoPath::parse(&sketch.path).expect("valid");
    let text = format!("{sketch:?}");
    let size = text.len() as u64;
    let state = if sketch.omitted {
        EntryState::Omitted { reason: Omission::Binary, hash: None, size: Some(size) }
    } else {
        EntryState::Included { hash: ContentHash::of(text.as_bytes()), size }
    };
    let mut file = ContentFile {
        entry: Entry { path, mode: 0o100_644, state },
        object: None,
        blob: None,
        language: None,
        module: None,
        test: false,
        deprioritized: false,
        facts: None,
        failure: None,
        words: None,
        edges: None,
    };
    if sketch.omitted {
        return file;
    }
    file.object = Some(ObjectRef { pack: 0, offset: 16, length: size });
    file.language = Some("python");
    file.module = Some(Arc::from(sketch.path.replace('/', ".")));
    let definitions = if sketch.failed { Vec::new() } else { definitions(sketch) };
    let keys: Vec<_> = definitions.iter().map(|definition| definition.start_line).collect();
    if sketch.failed {
        file.failure = Some("parse_timeout rounds=1".to_owned());
        file.words = Some(Arc::from("lost words "));
    }
    let headings = sketch.headings.iter().zip(1..).map(|(text, line)| Heading { text: Arc::from(text.as_str()), level: 1, line });
    file.facts = Some(Arc::new(FileFacts {
        parse: if sketch.failed { ParseStatus::Failed } else { ParseStatus::Ok },
        lines: 200,
        generated: false,
        minified: false,
        definitions,
        headings: headings.collect(),
        surface: Arc::new(Surface::default()),
        body: Body::default(),
    }));
    let place = |source: Option<usize>, column: usize| {
        let line = source.map_or(150, |source| keys[source] + 1);
        Place { line, column: column as u32, start: line * 1000 + column as u32 }
    };
    let edges = sketch.uses.iter().zip(10..).map(|((source, path, name, resolved), column)| Edge {
        kind: if name.is_none() { EdgeKind::Imports } else { EdgeKind::Calls },
        source: source.map(|source| source as u32),
        target: Target {
            file: RepoPath::parse(path).expect("valid"),
            // Targets are named by the first definition of a name at the top, or, where there is none, by the file.
            definition: name.as_ref().map(|name| DefinitionKey { qualified: Arc::from(name.as_str()), ordinal: 0 }),
        },
        resolution: if *resolved { Resolution::ResolvedStatic } else { Resolution::Candidate },
        rule: if column % 2 == 0 { "explicit_import" } else { "lexical_binding" },
        place: place(*source, column),
        name: name.as_deref().map_or_else(|| Arc::from("module"), Arc::from),
    });
    let mut diagnostics: Vec<Diagnostic> = sketch
        .lost
        .iter()
        .zip(60..)
        .map(|(name, column)| Diagnostic {
            kind: EdgeKind::Calls,
            source: None,
            reason: Reason::UnresolvedName,
            place: place(None, column),
            name: Arc::from(name.as_str()),
            candidates: u32::from(column % 3 == 0),
        })
        .collect();
    if let Some(first) = diagnostics.first().cloned() {
        diagnostics.push(Diagnostic { reason: Reason::DynamicReceiver, ..first });
    }
    file.edges = Some(Arc::new(FileEdges::new(edges.collect(), diagnostics, 0)));
    file
}

/// Removes uses of names that no definition at the top bears.
fn settle(tree: &mut [Sketch]) {
    let known: Vec<(String, DefinitionKey)> = tree
        .iter()
        .filter(|file| !file.omitted && !file.failed)
        .flat_map(|file| definitions(file).into_iter().map(|definition| (file.path.clone(), definition.key)).collect::<Vec<_>>())
        .collect();
    for file in tree {
        file.uses.retain(|(_, path, name, _)| {
            name.as_ref()
                .is_none_or(|name| known.iter().any(|(of, key)| of == path && *key.qualified == **name && key.ordinal == 0))
        });
    }
}

/// All that a generation says, each node by its rank.
fn say(generation: &Generation) -> String {
    let mut text = format!("{:?}\n{:?}\n", generation.coverage(), generation.totals());
    let ids = std::cell::RefCell::new(Vec::new());
    let rank = |id: crate::store::NodeId| ids.borrow().binary_search(&id).expect("an edge leads to a node");
    let everywhere = PathPrefix::default();
    let line = |written: std::fmt::Result| written.map_err(std::io::Error::other);
    generation
        .each_node(&mut |node| {
            ids.borrow_mut().push(node.id);
            let parent = node.parent.map(rank);
            let plain = crate::store::NodeRow { id: crate::store::NodeId(0), parent: None, ..node.clone() };
            line(writeln!(text, "{plain:?} in {parent:?}"))
        })
        .expect("nodes");
    generation
        .each_edge(&mut |edge| {
            let (source, target) = (rank(edge.source), rank(edge.target));
            let place = (edge.line, edge.column, edge.kind, edge.resolution);
            line(writeln!(text, "{source} -> {target} {place:?} {} {} {}", edge.path, edge.rule, edge.name))
        })
        .expect("edges");
    generation
        .each_diagnostic(&mut |row| {
            let source = rank(row.source);
            line(writeln!(
                text,
                "{source} {}:{}:{} {:?} {} {}",
                row.path, row.line, row.column, row.reason, row.name, row.candidates
            ))
        })
        .expect("diagnostics");
    for entry in generation.entries().expect("entries") {
        let headings = generation.headings(entry.entry.path.as_str()).expect("headings");
        let nodes = generation.nodes_in_file(entry.entry.path.as_str()).expect("nodes").len();
        writeln!(text, "{entry:?} {headings:?} {nodes}").expect("text");
    }
    for name in NAMES {
        writeln!(text, "{name}: {} lost", generation.unresolved_mentions(name).expect("mentions")).expect("text");
    }
    for word in ["alpha", "beta", "get", "things", "part_1", "heading", "lost", "file1", "http"] {
        for prefix in [&everywhere, &PathPrefix::parse("d1").expect("valid")] {
            let hits = generation.search(&[word.to_owned()], false, prefix, 50).expect("searched");
            let hits: Vec<_> = hits.iter().map(|hit| format!("{} {:.9}", rank(hit.node.id), hit.score)).collect();
            writeln!(text, "{word}: {}", hits.join(", ")).expect("text");
        }
    }
    text
}

fn bulk(lock: &BuildLock, number: u8, tree: &[Sketch]) {
    let content = Content {
        identity: Identity::numbered(number),
        files: tree.iter().map(content_file).collect(),
        limitations: Vec::new(),
        unrepresentable: Vec::new(),
    };
    let sources = lock.source_writer().expect("writable");
    lock.stage(&with_sources(content, &sources), &sources, &Headway::default(), &Demand::until(soon()))
        .expect("staged")
        .publish()
        .expect("published");
}

/// Puts the source of each file into a pack.
fn with_sources(mut content: Content, sources: &crate::store::PackWriter) -> Content {
    content.files.iter_mut().for_each(|file| keep_source(file, sources));
    content
}

fn keep_source(file: &mut ContentFile, sources: &crate::store::PackWriter) {
    if let EntryState::Included { hash, .. } = file.entry.state {
        // The text behind the hash is of no interest here.
        file.object = Some(sources.append(hash, file.entry.path.as_str().as_bytes()).expect("writable"));
    }
}

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(20)
}

/// Plays one random story; returns how many of its steps were written as deltas.
fn play(seed: u64, steps: usize) -> usize {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let cache = |name: &str| Cache::new(&folder.path().join(name), "b", 1 << 30);
    let mut dice = Dice(seed);
    let mut tree: Vec<Sketch> = (0..12).map(|number| sketch(format!("d{}/file{number:02}.py", number % 3), &mut dice)).collect();
    tree.sort_by(|left, right| left.path.cmp(&right.path));
    settle(&mut tree);
    connect(&mut tree, &mut dice, true);
    settle(&mut tree);
    let kept = cache("kept");
    bulk(&kept.lock(soon()).expect("locked"), 0, &tree);
    let mut deltas = 0;
    for step in 1..=steps {
        let before = tree.clone();
        for _ in 0..=dice.roll(3) {
            let position = dice.roll(tree.len());
            match dice.roll(10) {
                0 if tree.len() > 3 => drop(tree.remove(position)),
                1 => {
                    let path = format!("d{}/file{:02}.py", dice.roll(4), dice.roll(40));
                    if tree.iter().all(|file| file.path != path) {
                        tree.push(sketch(path, &mut dice));
                    }
                }
                2 => tree[position].omitted = !tree[position].omitted,
                3 => tree[position].failed = !tree[position].failed,
                4 => tree[position].definitions.reverse(),
                5 => tree[position].headings.push("More about alpha".to_owned()),
                6 => tree[position] = sketch(tree[position].path.clone(), &mut dice),
                7 => {
                    let at = dice.roll(tree[position].definitions.len() + 1);
                    tree[position].definitions.insert(at, (NAMES[dice.roll(NAMES.len())].to_owned(), 2, 0));
                }
                _ => {
                    if let Some((_, lines, _)) = tree[position].definitions.first_mut() {
                        *lines += 1;
                    }
                }
            }
        }
        tree.sort_by(|left, right| left.path.cmp(&right.path));
        connect(&mut tree, &mut dice, false);
        settle(&mut tree);

        let lock = kept.lock(soon()).expect("locked");
        let sources = lock.source_writer().expect("writable");
        let parent = kept.pin().expect("published");
        let places: std::collections::HashMap<_, _> =
            parent.entries().expect("entries").into_iter().map(|stored| (stored.entry.path.clone(), stored)).collect();
        let changed = tree.iter().filter(|file| !before.contains(file)).map(|sketch| {
            let mut file = content_file(sketch);
            match places.get(&file.entry.path).filter(|stored| stored.entry == file.entry) {
                Some(stored) => file.object = stored.object,
                None => keep_source(&mut file, &sources),
            }
            file
        });
        let files = changed.collect();
        let gone = before.iter().filter(|old| tree.iter().all(|file| file.path != old.path));
        let change = Change {
            identity: Identity::numbered(step as u8),
            files,
            removed: gone.map(|old| RepoPath::parse(&old.path).expect("valid")).collect(),
            limitations: Vec::new(),
            unrepresentable: Vec::new(),
        };
        match lock.stage_delta(&parent, &change, &sources).unwrap_or_else(|error| panic!("seed {seed}, step {step}: {error}")) {
            Some(staged) => {
                staged.publish().expect("published");
                deltas += 1;
            }
            None => bulk(&lock, step as u8, &tree),
        }
        drop((parent, lock));
        let clean = cache(&format!("clean{step}"));
        bulk(&clean.lock(soon()).expect("locked"), step as u8, &tree);
        let (kept, clean) = (kept.pin().expect("published"), clean.pin().expect("published"));
        let places = |text: String| {
            text.split("object: Some(")
                .map(|part| part.split_once(')').map_or(part, |(_, rest)| rest).to_owned())
                .collect::<String>()
        };
        let (kept, clean) = (places(say(&kept)), places(say(&clean)));
        for (kept, clean) in kept.lines().zip(clean.lines()) {
            assert_eq!(kept, clean, "seed {seed}, step {step}: {change:#?}");
        }
        assert_eq!(kept.lines().count(), clean.lines().count(), "seed {seed}, step {step}");
    }
    deltas
}

#[test]
fn deltas_say_what_a_bulk_load_says() {
    crate::store::faults::disable_barriers();
    let deltas: usize = (0..12).map(|seed| play(seed, 20)).sum();
    assert!(deltas > 180, "{deltas} of 240");
}

/// A change that brings one file, which says nothing but its number.
fn one_file(number: usize, sources: &crate::store::PackWriter) -> Change {
    let text = format!("text {number}");
    let mut file = content_file(&Sketch {
        path: format!("file{number:02}.py"),
        omitted: false,
        failed: false,
        definitions: Vec::new(),
        headings: Vec::new(),
        uses: Vec::new(),
        lost: Vec::new(),
    });
    let hash = ContentHash::of(text.as_bytes());
    file.entry.state = EntryState::Included { hash, size: text.len() as u64 };
    file.object = Some(sources.append(hash, text.as_bytes()).expect("writable"));
    Change {
        identity: Identity::numbered(number as u8 + 1),
        files: vec![file],
        removed: Vec::new(),
        limitations: Vec::new(),
        unrepresentable: Vec::new(),
    }
}

/// Each delta brings a pack of its own; when there are many, sources move, and every one is found where it is now.
#[test]
fn sources_of_many_deltas_are_put_together() {
    crate::store::faults::disable_barriers();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let cache = Cache::new(&folder.path().join("cache"), "b", 1 << 30);
    bulk(&cache.lock(soon()).expect("locked"), 0, &[]);
    let mut moved = 0;
    for number in 0..40 {
        let lock = cache.lock(soon()).expect("locked");
        let sources = lock.source_writer().expect("writable");
        let parent = cache.pin().expect("published");
        let change = one_file(number, &sources);
        let staged = lock.stage_delta(&parent, &change, &sources).expect("staged").expect("a small change");
        moved += usize::from(staged.has_moved_sources());
        drop(parent);
        staged.publish().expect("published");
        let generation = cache.pin().expect("published");
        for of in 0..=number {
            let source = generation.source(&format!("file{of:02}.py")).expect("whole").expect("included");
            assert_eq!(String::from_utf8_lossy(&source), format!("text {of}"));
        }
    }
    let packs = std::fs::read_dir(cache.places.packs()).expect("listed").count();
    assert!(moved > 0 && packs <= crate::store::sources::MANY_PACKS + 1, "{moved} moves, {packs} packs");
}

/// A cache with a delta in it.
fn with_delta(folder: &tempfile::TempDir) -> Cache {
    let cache = Cache::new(&folder.path().join("cache"), "b", 1 << 30);
    bulk(&cache.lock(soon()).expect("locked"), 0, &[]);
    let lock = cache.lock(soon()).expect("locked");
    let sources = lock.source_writer().expect("writable");
    let parent = cache.pin().expect("published");
    let staged = lock.stage_delta(&parent, &one_file(1, &sources), &sources).expect("staged").expect("a small change");
    drop(parent);
    staged.publish().expect("published");
    cache
}

#[test]
fn damage_that_a_delta_meets_is_marked() {
    crate::store::faults::disable_barriers();
    type Harm<'h> = &'h dyn Fn(&std::path::Path);
    let remove = |path: &std::path::Path| std::fs::remove_file(path).expect("removed");
    let flip = |path: &std::path::Path| {
        let mut bytes = std::fs::read(path).expect("read");
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        std::fs::write(path, bytes).expect("written");
    };
    let harms: [(&str, Harm<'_>); 5] = [
        ("seal", &remove),
        ("seal", &flip),
        ("graph.sqlite", &remove),
        ("graph.sqlite-wal", &remove),
        ("graph.sqlite-wal", &flip),
    ];
    for (part, harm) in harms {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let cache = with_delta(&folder);
        let lock = cache.lock(soon()).expect("locked");
        let sources = lock.source_writer().expect("writable");
        let parent = cache.pin().expect("published");
        harm(&cache.places.generation(parent.id()).join(part));
        let staged = lock.stage_delta(&parent, &one_file(2, &sources), &sources);
        assert!(matches!(staged, Err(crate::store::StoreError::Damaged { .. })), "{part}: {staged:?}");
        assert!(cache.has_damage_mark(), "{part}");
    }
}

/// Whoever marks damage while a delta is built may speak of what the delta shares.
#[test]
fn a_delta_under_a_mark_holds_itself_or_is_not_published() {
    crate::store::faults::disable_barriers();
    for is_damaged in [false, true] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let cache = with_delta(&folder);
        let lock = cache.lock(soon()).expect("locked");
        let sources = lock.source_writer().expect("writable");
        let parent = cache.pin().expect("published");
        let staged = lock.stage_delta(&parent, &one_file(2, &sources), &sources).expect("staged").expect("a small change");
        if is_damaged {
            use std::os::unix::fs::FileExt;
            let shared = cache.places.generation(parent.id()).join("graph.sqlite");
            let file = std::fs::File::options().write(true).open(shared).expect("ours");
            file.write_all_at(b"x", 9000).expect("written");
        }
        cache.mark_damage(&crate::store::error::damaged("database"));
        let published = staged.publish();
        let current = cache.pointer().expect("readable").expect("published").current.id;
        if is_damaged {
            assert!(matches!(published, Err(crate::store::StoreError::Damaged { .. })), "{published:?}");
            assert_eq!(current, parent.id());
        } else {
            assert_eq!(current, published.expect("it holds").id);
        }
        assert_eq!(cache.has_damage_mark(), is_damaged);
    }
}
