//! Generations drawn by hand: small ones from a text, random ones from a die, published in a folder of their own.

use std::sync::Arc;

use crate::model::{
    ContentHash, Definition, DefinitionKey, Demand, Edge, EdgeKind, FileEdges, FileFacts, Headway, ParseStatus, Place, RepoPath,
    Resolution, Span, Surface, SymbolKind, Target,
};
use crate::store::{Content, ContentFile, Generation, Identity};
use crate::workspace::{Entry, EntryState};

/// A file as it is published.
pub struct Written {
    pub path: String,
    pub source: String,
    pub facts: FileFacts,
    pub edges: FileEdges,
}

/// Publishes files, sorted by path, in a folder of its own and reads them back. Those below `tests/` hold tests.
pub fn publish(files: Vec<Written>, check: impl FnOnce(&Generation)) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let cache = crate::store::Cache::new(folder.path(), "b", 1 << 30);
    let lock = cache.lock(std::time::Instant::now() + std::time::Duration::from_secs(20)).expect("nobody else builds");
    let sources = lock.source_writer().expect("writable");
    let files = files.into_iter().map(|file| {
        let hash = ContentHash::of(file.source.as_bytes());
        let is_code = file.path.ends_with(".py");
        let module = file.path.trim_end_matches(".py").replace('/', ".");
        ContentFile {
            entry: Entry {
                path: RepoPath::parse(&file.path).expect("valid"),
                mode: 0o100_644,
                state: EntryState::Included { hash, size: file.source.len() as u64 },
            },
            object: Some(sources.append(hash, file.source.as_bytes()).expect("writable")),
            blob: None,
            language: is_code.then_some("python"),
            module: is_code.then(|| Arc::from(module)),
            test: file.path.starts_with("tests/"),
            deprioritized: false,
            facts: Some(Arc::new(file.facts)),
            failure: None,
            words: None,
            edges: is_code.then(|| Arc::new(file.edges)),
        }
    });
    let identity = Identity { scope_id: "demo".to_owned(), ..Identity::numbered(7) };
    let content = Content { identity, files: files.collect(), limitations: vec!["gap"], unrepresentable: Vec::new() };
    let demand = Demand::until(std::time::Instant::now());
    lock.stage(&content, &sources, &Headway::default(), &demand).expect("whole").publish().expect("writable");
    check(&cache.pin().expect("published"));
}

/// Cuts a source into lines: (byte where it begins, its text with its line end).
pub fn lines(source: &str) -> Vec<(usize, &str)> {
    let mut start = 0;
    source
        .split_inclusive('\n')
        .map(|line| {
            start += line.len();
            (start - line.len(), line)
        })
        .collect()
}

/// Finds a name on a line.
pub fn place(source: &str, line: u32, name: &str) -> Place {
    let (start, text) = lines(source)[line as usize - 1];
    let column = text.find(name).unwrap_or(0);
    Place { line, column: column as u32, start: (start + column) as u32 }
}

/// Returns the facts of a file that has definitions as (qualified name, kind, first line, last line).
pub fn facts(source: &str, definitions: &[(&str, SymbolKind, u32, u32)]) -> FileFacts {
    let all = lines(source);
    let definitions_of = definitions.iter().map(|&(qualified, kind, first, last)| {
        let text = all[first as usize - 1].1;
        let parent = qualified.rsplit_once('.').and_then(|(parent, _)| definitions.iter().position(|of| of.0 == parent));
        let name = qualified.rsplit('.').next().unwrap_or(qualified);
        let start = all[first as usize - 1].0 + text.len() - text.trim_start().len();
        let end = all[last as usize - 1].0 + all[last as usize - 1].1.trim_end().len();
        Definition {
            key: DefinitionKey { qualified: Arc::from(qualified), ordinal: 0 },
            name: Arc::from(name),
            kind,
            parent: parent.map(|index| index as u32),
            span: Span { start: start as u32, end: end as u32 },
            start_line: first,
            end_line: last,
            name_place: place(source, first, name),
            signature: Some(Arc::from(text.trim().trim_end_matches(':'))),
            docstring: None,
        }
    });
    FileFacts {
        parse: ParseStatus::Ok,
        lines: all.len() as u32,
        generated: false,
        minified: false,
        definitions: definitions_of.collect(),
        headings: Vec::new(),
        surface: Arc::new(Surface::default()),
        body: crate::model::facts::Body::default(),
    }
}

/// One file of a graph.
#[derive(Clone, Default)]
pub struct Drawn {
    pub path: String,
    /// Qualified names; one with a capital is a class.
    pub definitions: Vec<String>,
    /// Source (empty for the file), kind, file and name of the target (empty for the file), and how sure.
    pub uses: Vec<(String, EdgeKind, String, String, Resolution)>,
    /// Text of the line that each use stands on, beside the name of its target.
    pub filling: String,
}

/// Reads a graph, a line each: `a.py: f C C.m` for a file and what it defines, `a.py:f calls b.py:g` for an edge, with a `?` at the end
/// for a candidate.
pub fn parse(text: &str) -> Vec<Drawn> {
    let mut files: Vec<Drawn> = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if let Some((path, names)) = line.split_once(':').filter(|(_, names)| names.is_empty() || names.starts_with(' ')) {
            let definitions = names.split_whitespace().map(str::to_owned).collect();
            files.push(Drawn { path: path.to_owned(), definitions, ..Drawn::default() });
            continue;
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        let [source, kind, target, sure @ ..] = &words[..] else { panic!("`{line}` is no edge") };
        let (from, source) = source.split_once(':').unwrap_or((source, ""));
        let (to, target) = target.split_once(':').unwrap_or((target, ""));
        let kind = EdgeKind::parse(kind).expect("a kind of edge");
        let resolution = if sure.is_empty() { Resolution::ResolvedStatic } else { Resolution::Candidate };
        let file = files.iter_mut().find(|file| file.path == from).expect("the file of the edge");
        file.uses.push((source.to_owned(), kind, to.to_owned(), target.to_owned(), resolution));
    }
    files
}

/// Publishes a drawn graph. Every definition is a line, followed by a line for each of its uses and by its members.
pub fn with_graph(mut files: Vec<Drawn>, check: impl FnOnce(&Generation)) {
    files.sort_by(|left, right| left.path.cmp(&right.path));
    publish(files.iter().map(write).collect(), check);
}

fn write(file: &Drawn) -> Written {
    let mut page = Page { file, source: String::new(), line: 0, definitions: Vec::new(), edges: FileEdges::default() };
    let tops: Vec<&str> = file.definitions.iter().filter(|name| !name.contains('.')).map(String::as_str).collect();
    for name in tops {
        page.definition(name);
    }
    page.uses("", None);
    let definitions: Vec<(&str, SymbolKind, u32, u32)> =
        page.definitions.iter().map(|(name, kind, first, last)| (*name, *kind, *first, *last)).collect();
    let facts = facts(&page.source, &definitions);
    let mut edges = page.edges;
    edges.edges.sort_by_key(|edge| edge.place);
    Written { path: file.path.clone(), source: page.source, facts, edges }
}

struct Page<'f> {
    file: &'f Drawn,
    source: String,
    line: u32,
    definitions: Vec<(&'f str, SymbolKind, u32, u32)>,
    edges: FileEdges,
}

impl<'f> Page<'f> {
    fn definition(&mut self, name: &'f str) {
        let kind = match (name.rsplit('.').next().is_some_and(|last| last.starts_with(char::is_uppercase)), name.contains('.')) {
            (true, _) => SymbolKind::Class,
            (false, true) => SymbolKind::Method,
            (false, false) => SymbolKind::Function,
        };
        let index = self.definitions.len();
        self.push(&format!("def {}:", name.rsplit('.').next().unwrap_or(name)));
        self.definitions.push((name, kind, self.line, self.line));
        self.uses(name, Some(index as u32));
        let members: Vec<&str> = self.file.definitions.iter().map(String::as_str).collect();
        for member in members.into_iter().filter(|member| member.rsplit_once('.').is_some_and(|(outer, _)| outer == name)) {
            self.definition(member);
        }
        self.definitions[index].3 = self.line;
    }

    fn uses(&mut self, of: &str, source: Option<u32>) {
        let file = self.file;
        for (_, kind, path, target, resolution) in file.uses.iter().filter(|used| used.0 == of) {
            let name = if target.is_empty() { path } else { target };
            let text = format!("    {name} {}", file.filling);
            self.push(&text);
            let place = Place { line: self.line, column: 4, start: (self.source.len() - text.len() - 1 + 4) as u32 };
            let definition = (!target.is_empty()).then(|| DefinitionKey { qualified: Arc::from(target.as_str()), ordinal: 0 });
            let target = Target { file: RepoPath::parse(path).expect("valid"), definition };
            let (kind, resolution) = (*kind, *resolution);
            self.edges.edges.push(Edge {
                kind,
                source,
                target,
                resolution,
                rule: "lexical_binding",
                place,
                name: Arc::from(name.as_str()),
            });
        }
    }

    fn push(&mut self, text: &str) {
        self.source.push_str(text);
        self.source.push('\n');
        self.line += 1;
    }
}

/// A small generator with a fixed start, so that every run tests the same.
pub struct Dice(pub u64);

impl Dice {
    pub fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % sides as u64) as usize
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.roll(of.len())]
    }
}

/// Draws a graph of up to `most` files, with paths and lines that JSON has to escape and some lines that are too long to show.
pub fn random(dice: &mut Dice, most: usize) -> Vec<Drawn> {
    const FOLDERS: [&str; 5] = ["", "app/", "app/deep er/", "tests/", "q\"uote/é/"];
    const FILLINGS: [&str; 6] = ["", "x = \"é→𝄞\"", "\t\\ \u{1}\u{7f}", "a\rb\r", "plain words of code", "'\u{2028}'"];
    let mut files: Vec<Drawn> = (0..2 + dice.roll(most - 1))
        .map(|index| {
            let folder = dice.pick(&FOLDERS);
            let path = format!("{folder}{}f{index}.py", if folder == "tests/" { "test_" } else { "" });
            let mut definitions: Vec<String> = (0..1 + dice.roll(4)).map(|name| format!("f{name}")).collect();
            for class in 0..dice.roll(3) {
                definitions.push(format!("C{class}"));
                definitions.extend((0..dice.roll(4)).map(|name| format!("C{class}.m{name}")));
            }
            let filling = match dice.roll(8) {
                0 => "x".repeat(2_100),
                _ => dice.pick(&FILLINGS).repeat(1 + dice.roll(6)),
            };
            Drawn { path, definitions, uses: Vec::new(), filling }
        })
        .collect();
    let ends: Vec<(String, String)> = files
        .iter()
        .flat_map(|file| {
            std::iter::once("")
                .chain(file.definitions.iter().map(String::as_str))
                .map(|name| (file.path.clone(), name.to_owned()))
        })
        .collect();
    for file in &mut files {
        for _ in 0..dice.roll(3 * file.definitions.len() + 4) {
            let source = match dice.roll(file.definitions.len() + 1) {
                0 => String::new(),
                index => file.definitions[index - 1].clone(),
            };
            let (path, target) = ends[dice.roll(ends.len())].clone();
            let kind =
                dice.pick(&[EdgeKind::Calls, EdgeKind::Calls, EdgeKind::Imports, EdgeKind::Inherits, EdgeKind::References]);
            file.uses.push((source, kind, path, target, dice.pick(Resolution::ALL)));
        }
    }
    files
}

/// Draws what became of a graph: files and functions are gone or new, lines are other ones.
pub fn altered(dice: &mut Dice, before: &[Drawn]) -> Vec<Drawn> {
    let mut files = before.to_vec();
    files.retain(|_| dice.roll(6) > 0);
    files.push(Drawn { path: "new.py".to_owned(), definitions: vec!["f0".to_owned()], ..Drawn::default() });
    for file in &mut files {
        match dice.roll(4) {
            0 => file.filling.push_str(" other"),
            1 => file.definitions.retain(|name| name != "f0"),
            2 => file.definitions.push("f9".to_owned()),
            _ => {}
        }
    }
    let has: Vec<(String, Vec<String>)> = files.iter().map(|file| (file.path.clone(), file.definitions.clone())).collect();
    let is_there = |path: &str, name: &str| {
        has.iter().any(|(of, names)| of == path && (name.is_empty() || names.iter().any(|known| known == name)))
    };
    for Drawn { path, uses, .. } in &mut files {
        uses.retain(|(source, _, to, target, _)| is_there(path, source) && is_there(to, target));
    }
    files
}
