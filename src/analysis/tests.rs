//! Which query runs after which change, and which does not: each tracked query has a test of both, on the event log. A toy language
//! with one statement a line stands in for a real one.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::Arc;

use smallvec::smallvec;

use crate::languages::{Dialect, Export, ExportTable, ExtractError, LanguageSupport, Lookup, ModuleKey, ModuleResolution};
use crate::model::facts::{Body, Names, Outline};
use crate::model::{
    ContentHash, DefinitionKey, Edge, EdgeKind, FileEdges, FileFacts, Heading, Headway, ParseStatus, Place, RepoPath, Resolution,
    Surface, Target,
};

use super::{Database, FileInput, Outcome, Standing, Update};

mod resumed;

/// `def N` and `from M import N` and `star M` bind names, `set M.N` rebinds one elsewhere, `use N` refers, `all N` refers to every `def N`
/// of the repository, `error` breaks the file; all
/// other lines are body. Modules are files below the nearest directory with a `toy.cfg`, whose first line names a directory below it to
/// look in instead.
struct Toy;

static LANGUAGES: &[&'static dyn LanguageSupport] = &[&Toy];

fn statements(surface: &Surface) -> Vec<Vec<&str>> {
    let names = &surface.outline.names;
    (0..names.len()).map(|index| names.get(crate::model::facts::NameId(index as u32)).split([' ', '.']).collect()).collect()
}

fn target(module: &str, name: &str) -> Target {
    let definition = DefinitionKey { qualified: Arc::from(name), ordinal: 0 };
    Target { file: RepoPath::parse(module).expect("a valid path"), definition: Some(definition) }
}

fn found(lookup: &dyn Lookup, module: &ModuleKey, specifier: &str) -> Option<ModuleKey> {
    let directory = module.0.rsplit_once('/').map_or("", |(directory, _)| directory);
    match &*lookup.module(&lookup.context(directory), specifier) {
        ModuleResolution::Found(key) => Some(key.clone()),
        _ => None,
    }
}

impl Toy {
    fn table(module: &ModuleKey, lookup: &dyn Lookup, exports: &dyn Fn(&ModuleKey) -> Arc<ExportTable>) -> ExportTable {
        let mut table = ExportTable::default();
        let path = RepoPath::parse(&module.0).expect("a valid path");
        let Some(surface) = lookup.surface(&path) else { return table };
        let partial = lookup.parse_status(&path) == Some(ParseStatus::Partial);
        let own = if partial { Resolution::Candidate } else { Resolution::ResolvedStatic };
        for statement in statements(&surface) {
            match statement[..] {
                ["def", name] => {
                    let targets = smallvec![target(&module.0, name)];
                    table.names.insert(
                        Arc::from(name),
                        Export { targets, resolution: own, rule: "toy", reason: None, aliases: Default::default() },
                    );
                }
                ["from", from, "import", name] => {
                    if let Some(source) = found(lookup, module, from)
                        && let Some(export) = exports(&source).names.get(name)
                    {
                        table.names.insert(Arc::from(name), export.clone());
                    }
                }
                ["star", from] => {
                    if let Some(source) = found(lookup, module, from) {
                        for (name, export) in &exports(&source).names {
                            table.names.entry(Arc::clone(name)).or_insert_with(|| export.clone());
                        }
                    }
                }
                _ => {}
            }
        }
        table
    }
}

impl LanguageSupport for Toy {
    fn name(&self) -> &'static str {
        "toy"
    }

    fn dialect(&self, path: &RepoPath) -> Option<Dialect> {
        path.as_str().ends_with(".toy").then_some("toy")
    }

    fn dialects(&self) -> &'static [Dialect] {
        &["toy"]
    }

    fn reads_text(&self, path: &RepoPath) -> bool {
        path.file_name() == "toy.cfg"
    }

    fn extractor_build(&self) -> &'static str {
        "1"
    }

    fn resolver_build(&self) -> &'static str {
        "1"
    }

    fn is_test(&self, _: &RepoPath) -> bool {
        false
    }

    fn limitations(&self) -> &'static [&'static str] {
        &[]
    }

    fn extract(&self, source: &str, _: Dialect, _: &mut dyn FnMut() -> bool) -> Result<FileFacts, ExtractError> {
        let shown = |line: &&str| ["def", "from", "star", "set"].contains(&line.split(' ').next().unwrap_or(""));
        let surface = Surface {
            outline: Outline { names: Names::from_texts(source.lines().filter(shown)), ..Outline::default() },
            ..Surface::default()
        };
        let uses = source.lines().zip(1..).filter_map(|(line, number)| {
            let one = line.strip_prefix("use ").map(|name| (name, 1));
            let (name, level) = one.or_else(|| line.strip_prefix("all ").map(|name| (name, 2)))?;
            Some(Heading { text: Arc::from(name), level, line: number })
        });
        Ok(FileFacts {
            parse: if source.contains("error") { ParseStatus::Partial } else { ParseStatus::Ok },
            lines: source.lines().count() as u32,
            generated: false,
            minified: false,
            definitions: Vec::new(),
            headings: uses.collect(),
            surface: Arc::new(surface),
            body: Body::default(),
        })
    }

    fn context(&self, directory: &str, lookup: &dyn Lookup) -> Arc<str> {
        let mut directory = directory;
        loop {
            if lookup.files_in(directory).iter().any(|file| file.file_name() == "toy.cfg") {
                let text = lookup.text(format!("{directory}/toy.cfg").trim_start_matches('/')).expect("an included file");
                return match text.lines().next().unwrap_or("") {
                    "" => Arc::from(directory),
                    inner => Arc::from(format!("{directory}/{inner}").trim_start_matches('/')),
                };
            }
            match directory.rsplit_once('/') {
                Some((above, _)) => directory = above,
                None => break,
            }
        }
        lookup.source_roots().and_then(|roots| roots.first().cloned()).unwrap_or_default()
    }

    fn module(&self, context: &str, specifier: &str, lookup: &dyn Lookup) -> ModuleResolution {
        let path = if context.is_empty() { format!("{specifier}.toy") } else { format!("{context}/{specifier}.toy") };
        if lookup.is_file(&path) {
            ModuleResolution::Found(ModuleKey(Arc::from(path)))
        } else if lookup.is_directory(specifier) {
            ModuleResolution::Missing
        } else {
            ModuleResolution::External
        }
    }

    fn module_of(&self, path: &RepoPath, _: &dyn Lookup) -> ModuleKey {
        ModuleKey(Arc::from(path.as_str()))
    }

    fn module_name(&self, path: &RepoPath, lookup: &dyn Lookup) -> Option<Arc<str>> {
        Some(Arc::from(format!("{}:{}", lookup.context(path.directory()), path.stem_and_suffix().0)))
    }

    fn export_sources(&self, module: &ModuleKey, lookup: &dyn Lookup) -> Vec<ModuleKey> {
        let Some(surface) = RepoPath::parse(&module.0).ok().and_then(|path| lookup.surface(&path)) else { return Vec::new() };
        let sources = statements(&surface).into_iter().filter_map(|statement| match statement[..] {
            ["star", from] | ["from", from, ..] => found(lookup, module, from),
            _ => None,
        });
        sources.collect::<BTreeSet<_>>().into_iter().collect()
    }

    fn solve_exports(&self, component: &[ModuleKey], lookup: &dyn Lookup) -> Vec<ExportTable> {
        let mut tables: BTreeMap<&ModuleKey, Arc<ExportTable>> = component.iter().map(|key| (key, Arc::default())).collect();
        loop {
            let before = tables.clone();
            for module in component {
                let exports = |key: &ModuleKey| tables.get(key).cloned().unwrap_or_else(|| lookup.exports(key));
                let table = Self::table(module, lookup, &exports);
                tables.insert(module, Arc::new(table));
            }
            if tables == before {
                return tables.into_values().map(Arc::unwrap_or_clone).collect();
            }
        }
    }

    fn rebindings(&self, path: &RepoPath, surface: &Surface, lookup: &dyn Lookup) -> Vec<Target> {
        let module = self.module_of(path, lookup);
        let rebound = statements(surface).into_iter().filter_map(|statement| match statement[..] {
            ["set", from, name] => Some(target(&found(lookup, &module, from)?.0, name)),
            _ => None,
        });
        rebound.collect::<BTreeSet<_>>().into_iter().collect()
    }

    fn declared_members(&self, surface: &Surface) -> Vec<(Arc<str>, DefinitionKey)> {
        let members = statements(surface).into_iter().filter_map(|statement| match statement[..] {
            ["def", name] => Some((Arc::from(name), DefinitionKey { qualified: Arc::from(name), ordinal: 0 })),
            _ => None,
        });
        members.collect()
    }

    fn resolve(&self, path: &RepoPath, facts: &FileFacts, lookup: &dyn Lookup) -> FileEdges {
        let exports = lookup.exports(&self.module_of(path, lookup));
        let edge = |used: &Heading, target: Target, resolution| Edge {
            kind: EdgeKind::Calls,
            source: None,
            target,
            resolution,
            rule: "toy",
            place: Place { line: used.line, ..Place::default() },
            name: Arc::clone(&used.text),
        };
        let named = facts.headings.iter().filter(|used| used.level == 2).flat_map(|used| {
            let members = lookup.members_named(&used.text);
            members.iter().map(|target| edge(used, target.clone(), Resolution::Candidate)).collect::<Vec<_>>()
        });
        let edges = facts.headings.iter().filter(|used| used.level == 1).filter_map(|used| {
            let export = exports.names.get(&used.text)?;
            let target = export.targets[0].clone();
            let rebound = lookup.rebound(&target.file).contains(&used.text);
            Some(edge(used, target, if rebound { Resolution::Candidate } else { export.resolution }))
        });
        FileEdges { edges: edges.chain(named).collect(), ..FileEdges::default() }
    }
}

/// A database and the tree it was last told of.
struct Fixture {
    database: Database,
}

impl Fixture {
    fn new(files: &[(&str, &str)]) -> Self {
        let mut fixture = Self { database: Database::with_languages(LANGUAGES, None) };
        fixture.set(files);
        fixture.resolve();
        fixture.database.listen(true);
        fixture
    }

    fn set(&mut self, files: &[(&str, &str)]) -> super::Applied {
        let files = files.iter().map(|(path, text)| input(path, text)).collect();
        self.database.apply(Update { files, removed: Vec::new() })
    }

    fn remove(&mut self, path: &str) -> super::Applied {
        self.database.apply(Update { files: Vec::new(), removed: vec![RepoPath::parse(path).expect("valid")] })
    }

    /// Returns all edges, one a line.
    fn resolve(&mut self) -> String {
        let resolved = self.database.resolve_all(2, &Headway::default()).expect("resolved");
        let mut text = String::new();
        for (path, edges) in resolved.edges.iter() {
            for edge in &edges.edges {
                let name = edge.target.definition.as_ref().map_or("", |definition| &definition.qualified);
                let (line, target, resolution) = (edge.place.line, &edge.target.file, edge.resolution.as_str());
                writeln!(text, "{path}:{line} {target}#{name} {resolution}").expect("text grows");
            }
        }
        text
    }

    /// Resolves all, and returns what ran, sorted.
    fn ran(&mut self) -> Vec<String> {
        self.database.take_log();
        self.resolve();
        let mut log = self.database.take_log();
        log.sort();
        log
    }

    #[track_caller]
    fn check_ran(&mut self, expected: &[&str]) {
        assert_eq!(self.ran(), expected);
    }
}

fn input(path: &str, text: &str) -> FileInput {
    let path = RepoPath::parse(path).expect("valid");
    let outcome = if Toy.reads_text(&path) {
        Outcome::Facts(Arc::new(crate::languages::text::facts("configuration", text)))
    } else if Toy.dialect(&path).is_none() {
        Outcome::Text
    } else if text == "failed" {
        Outcome::Failed
    } else {
        Outcome::Facts(Arc::new(Toy.extract(text, "toy", &mut || false).expect("not stopped")))
    };
    FileInput { path, hash: ContentHash::of(text.as_bytes()), outcome }
}

#[test]
fn a_database_that_mostly_knows_of_files_that_are_gone_says_so() {
    let paths: Vec<String> = (0..2001).map(|number| format!("m{number:04}.toy")).collect();
    let mut database = Database::with_languages(LANGUAGES, None);
    database.apply(Update { files: paths.iter().map(|path| input(path, "failed")).collect(), removed: Vec::new() });
    assert!(!database.is_overgrown());
    let gone = |paths: &[String]| paths.iter().map(|path| RepoPath::parse(path).expect("valid")).collect();
    database.apply(Update { files: Vec::new(), removed: gone(&paths[..1000]) });
    assert!(!database.is_overgrown());
    database.apply(Update { files: Vec::new(), removed: gone(&paths[1000..1001]) });
    assert!(database.is_overgrown());
}

const TREE: &[(&str, &str)] = &[
    ("lib.toy", "def f\ndef g"),
    ("main.toy", "from lib import f\nuse f"),
    ("other.toy", "def h\nuse h"),
    ("readme.txt", "text"),
];

#[test]
fn edges_of_a_tree() {
    assert_eq!(Fixture::new(TREE).resolve(), "main.toy:2 lib.toy#f resolved_static\nother.toy:2 other.toy#h resolved_static\n");
}

#[test]
fn nothing_runs_when_nothing_changes() {
    let mut fixture = Fixture::new(TREE);
    fixture.check_ran(&[]);
    assert_eq!(fixture.set(TREE), super::Applied::default());
    fixture.check_ran(&[]);
}

#[test]
fn a_body_edit_stays_in_its_file() {
    let mut fixture = Fixture::new(TREE);
    assert_eq!(fixture.set(&[("lib.toy", "# a comment\ndef f\ndef g")]).changed, 1);
    fixture.check_ran(&["file_edges lib.toy", "file_facts lib.toy", "file_parse_status lib.toy", "file_surface lib.toy"]);
}

#[test]
fn a_new_name_runs_those_who_solve_it_and_stops_at_equal_tables() {
    let mut fixture = Fixture::new(TREE);
    fixture.set(&[("lib.toy", "def f\ndef g\ndef new")]);
    fixture.check_ran(&[
        "export_sources lib.toy",
        "export_table lib.toy",
        "file_edges lib.toy",
        "file_facts lib.toy",
        "file_parse_status lib.toy",
        "file_surface lib.toy",
        "rebindings lib.toy",
        "solve_exports lib.toy",
        "solve_exports main.toy",
    ]);
}

#[test]
fn a_changed_meaning_reaches_who_uses_it() {
    let mut fixture = Fixture::new(TREE);
    fixture.set(&[("lib.toy", "def g")]);
    let ran = fixture.ran();
    assert!(ran.contains(&"file_edges main.toy".to_owned()) && !ran.contains(&"file_edges other.toy".to_owned()), "{ran:?}");
    assert_eq!(fixture.resolve(), "other.toy:2 other.toy#h resolved_static\n");
}

#[test]
fn a_new_file_runs_only_who_asked_for_it() {
    let mut fixture = Fixture::new(&[
        ("main.toy", "from late import f\nuse f"),
        ("other.toy", "def h\nuse h"),
        ("sub/third.toy", "from other import h\nuse h"),
    ]);
    let applied = fixture.set(&[("late.toy", "def f")]);
    assert_eq!((applied.added, applied.changed, applied.removed), (1, 0, 0));
    let ran = fixture.ran();
    for expected in
        ["file_edges late.toy", "file_edges main.toy", "module late", "is_file late.toy", "export_graph toy", "files_in "]
    {
        assert!(ran.contains(&expected.to_owned()), "{expected} in {ran:?}");
    }
    for unexpected in
        ["file_edges other.toy", "file_edges sub/third.toy", "module other", "context sub", "solve_exports other.toy"]
    {
        assert!(!ran.contains(&unexpected.to_owned()), "{unexpected} in {ran:?}");
    }
    assert!(fixture.resolve().contains("main.toy:2 late.toy#f resolved_static"));
    fixture.remove("late.toy");
    assert!(!fixture.resolve().contains("late.toy"));
}

#[test]
fn a_new_directory_runs_only_who_asked_for_it() {
    let mut fixture = Fixture::new(&[("main.toy", "from sub import f\nuse f"), ("more.toy", "from nowhere import f\nuse f")]);
    fixture.set(&[("sub/new.txt", "text")]);
    let ran = fixture.ran();
    assert!(ran.contains(&"is_directory sub".to_owned()) && ran.contains(&"module sub".to_owned()), "{ran:?}");
    assert!(!ran.contains(&"module nowhere".to_owned()), "{ran:?}");
    // The module is no longer outside the repository, but still not there: who imports it sees an equal table.
    assert!(!ran.iter().any(|query| query.starts_with("file_edges")), "{ran:?}");
    fixture.set(&[("sub/second.txt", "text")]);
    let ran = fixture.ran();
    assert!(ran.contains(&"is_directory sub".to_owned()) && !ran.contains(&"module sub".to_owned()), "{ran:?}");
}

#[test]
fn a_context_runs_again_when_its_directories_change() {
    let mut fixture = Fixture::new(&[("a/main.toy", "from lib import f\nuse f"), ("lib.toy", "def f"), ("a/lib.toy", "def f")]);
    let name = |fixture: &Fixture| fixture.database.module_name(&RepoPath::parse("a/main.toy").expect("valid"));
    assert_eq!(fixture.resolve(), "a/main.toy:2 lib.toy#f resolved_static\n");
    assert_eq!(name(&fixture).as_deref(), Some(":main"));
    fixture.database.take_log();
    fixture.set(&[("lib.toy", "def f\nnothing")]);
    assert!(!fixture.ran().contains(&"context a".to_owned()));
    fixture.set(&[("a/toy.cfg", "")]);
    assert!(fixture.ran().contains(&"context a".to_owned()));
    assert_eq!(fixture.resolve(), "a/main.toy:2 a/lib.toy#f resolved_static\n");
    assert_eq!(name(&fixture).as_deref(), Some("a:main"));
}

#[test]
fn configuration_runs_again_who_asked_for_its_text() {
    let mut fixture = Fixture::new(&[
        ("a/toy.cfg", "first\n# one"),
        ("a/main.toy", "from lib import f\nuse f"),
        ("a/first/lib.toy", "def f"),
        ("a/second/lib.toy", "def f"),
        ("b/main.toy", "from lib import f\nuse f"),
        ("lib.toy", "def f"),
    ]);
    let elsewhere = "a/main.toy:2 a/first/lib.toy#f resolved_static\nb/main.toy:2 lib.toy#f resolved_static\n";
    assert_eq!(fixture.resolve(), elsewhere);
    // Another text, but the contexts come out equal: the wave stops there.
    fixture.set(&[("a/toy.cfg", "first\n# two")]);
    fixture.check_ran(&["context a", "file_text a/toy.cfg"]);
    fixture.set(&[("a/toy.cfg", "second")]);
    let ran = fixture.ran();
    for expected in ["context a", "file_edges a/main.toy", "file_text a/toy.cfg", "module lib"] {
        assert!(ran.contains(&expected.to_owned()), "{expected} in {ran:?}");
    }
    for unexpected in ["context b", "file_edges b/main.toy", "file_facts a/main.toy", "files_in a"] {
        assert!(!ran.contains(&unexpected.to_owned()), "{unexpected} in {ran:?}");
    }
    assert_eq!(fixture.resolve(), elsewhere.replace("first", "second"));
    fixture.remove("a/toy.cfg");
    assert_eq!(fixture.resolve(), elsewhere.replace("a/first/", ""));
    fixture.set(&[("a/toy.cfg", "first")]);
    assert_eq!(fixture.resolve(), elsewhere);
    fixture.check_ran(&[]);
    fixture.set(&[("a/toy.cfg", "first"), ("a/first/lib.toy", "# body\ndef f")]);
    assert!(!fixture.ran().contains(&"file_text a/toy.cfg".to_owned()));
}

#[test]
fn members_reach_who_asked_for_their_name() {
    let mut fixture = Fixture::new(&[("a.toy", "def f"), ("b.toy", "def g"), ("c.toy", "all f"), ("d.toy", "all g")]);
    assert_eq!(fixture.resolve(), "c.toy:1 a.toy#f candidate\nd.toy:1 b.toy#g candidate\n");
    fixture.set(&[("b.toy", "def g\nbody")]);
    fixture.check_ran(&["file_edges b.toy", "file_facts b.toy", "file_parse_status b.toy", "file_surface b.toy"]);
    fixture.set(&[("b.toy", "def g\ndef f")]);
    let ran = fixture.ran();
    for expected in ["declared_members b.toy", "member_index toy", "members_named f", "members_named g", "file_edges c.toy"] {
        assert!(ran.contains(&expected.to_owned()), "{expected} in {ran:?}");
    }
    for unexpected in ["declared_members a.toy", "file_edges d.toy", "file_edges a.toy"] {
        assert!(!ran.contains(&unexpected.to_owned()), "{unexpected} in {ran:?}");
    }
    fixture.remove("a.toy");
    assert_eq!(fixture.resolve(), "c.toy:1 b.toy#f candidate\nd.toy:1 b.toy#g candidate\n");
}

#[test]
fn source_roots_reach_contexts() {
    let mut fixture = Fixture::new(&[("main.toy", "from lib import f\nuse f"), ("src/lib.toy", "def f")]);
    assert_eq!(fixture.resolve(), "");
    fixture.database.set_source_roots(Some(&["src".to_owned()]));
    assert_eq!(fixture.resolve(), "main.toy:2 src/lib.toy#f resolved_static\n");
    fixture.database.take_log();
    fixture.database.set_source_roots(Some(&["src".to_owned()]));
    fixture.check_ran(&[]);
}

#[test]
fn a_rebinding_reaches_uses_of_that_file_alone() {
    let mut fixture = Fixture::new(TREE);
    fixture.set(&[("patch.toy", "set lib.f")]);
    let ran = fixture.ran();
    for expected in ["rebound ", "rebound_in lib.toy", "rebound_in other.toy", "file_edges main.toy", "rebindings patch.toy"] {
        assert!(ran.contains(&expected.to_owned()), "{expected} in {ran:?}");
    }
    assert!(!ran.contains(&"file_edges other.toy".to_owned()), "{ran:?}");
    assert!(fixture.resolve().contains("main.toy:2 lib.toy#f candidate"));
    fixture.database.take_log();
    fixture.set(&[("patch.toy", "set lib.f\n# body")]);
    fixture.check_ran(&["file_edges patch.toy", "file_facts patch.toy", "file_parse_status patch.toy", "file_surface patch.toy"]);
    fixture.set(&[("patch.toy", "def nothing")]);
    assert!(fixture.resolve().contains("main.toy:2 lib.toy#f resolved_static"));
}

#[test]
fn a_file_that_breaks_downgrades_its_names() {
    let mut fixture = Fixture::new(TREE);
    fixture.set(&[("lib.toy", "def f\ndef g\nerror")]);
    assert!(fixture.resolve().contains("main.toy:2 lib.toy#f candidate"));
    fixture.set(&[("lib.toy", "failed")]);
    assert!(!fixture.resolve().contains("lib.toy"));
    fixture.set(&[("lib.toy", "def f\ndef g")]);
    assert!(fixture.resolve().contains("main.toy:2 lib.toy#f resolved_static"));
}

#[test]
fn a_cycle_is_the_same_from_every_entry() {
    let ring = [
        ("a.toy", "star b\ndef fa\nuse fa\nuse fb\nuse fc"),
        ("b.toy", "star c\ndef fb\nuse fa\nuse fb\nuse fc"),
        ("c.toy", "star a\nstar d\ndef fc\nuse fa\nuse fb\nuse fd"),
        ("d.toy", "def fd"),
    ];
    let whole = Fixture::new(&ring).resolve();
    assert_eq!(whole.lines().count(), 9);
    let mut reversed = ring;
    reversed.reverse();
    assert_eq!(Fixture::new(&reversed).resolve(), whole);
    for first in ["a.toy", "b.toy", "c.toy", "d.toy"] {
        for second in ["a.toy", "b.toy", "c.toy", "d.toy"] {
            let mut database = Database::with_languages(LANGUAGES, None);
            database.apply(Update { files: ring.iter().map(|(path, text)| input(path, text)).collect(), removed: Vec::new() });
            for entry in [first, second] {
                database.edges(&RepoPath::parse(entry).expect("valid")).expect("resolved");
            }
            assert_eq!(Fixture { database }.resolve(), whole, "asked {first} and then {second} first");
        }
    }
}

#[test]
fn members_of_a_cycle_are_solved_together_and_others_are_not() {
    let mut fixture = Fixture::new(&[
        ("a.toy", "star b\ndef fa"),
        ("b.toy", "star a\ndef fb"),
        ("far.toy", "def x"),
        ("user.toy", "from a import fa\nuse fa"),
    ]);
    fixture.set(&[("b.toy", "star a\ndef fb\ndef more")]);
    let ran = fixture.ran();
    assert!(
        ran.contains(&"solve_exports a.toy b.toy".to_owned()) && ran.contains(&"solve_exports user.toy".to_owned()),
        "{ran:?}"
    );
    assert!(!ran.contains(&"solve_exports far.toy".to_owned()) && !ran.contains(&"file_edges user.toy".to_owned()), "{ran:?}");
    // Breaking the ring gives both modules new components, and whoever was outside keeps his.
    fixture.set(&[("b.toy", "def fb")]);
    let ran = fixture.ran();
    for expected in ["export_graph toy", "component a.toy", "component b.toy", "component far.toy", "solve_exports b.toy"] {
        assert!(ran.contains(&expected.to_owned()), "{expected} in {ran:?}");
    }
    assert!(!ran.contains(&"export_table far.toy".to_owned()) && !ran.contains(&"solve_exports far.toy".to_owned()), "{ran:?}");
}

#[test]
fn a_long_chain_of_modules_needs_no_stack() {
    let files: Vec<(String, String)> = (0..3000)
        .map(|index| {
            (format!("m{index}.toy"), if index == 0 { "def f".to_owned() } else { format!("star m{}\nuse f", index - 1) })
        })
        .collect();
    let borrowed: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let mut fixture = Fixture::new(&borrowed);
    assert_eq!(fixture.resolve().lines().count(), 2999);
    fixture.set(&[("m0.toy", "def f\ndef g")]);
    assert_eq!(fixture.ran().iter().filter(|query| query.starts_with("file_edges")).count(), 3000);
}

#[test]
fn facts_leave_with_the_last_file_that_has_them() {
    let mut fixture = Fixture::new(&[("a.toy", "def f"), ("b.toy", "def f")]);
    let stored = |fixture: &Fixture| fixture.database.facts_store().get(ContentHash::of(b"def f"), "toy").is_some();
    fixture.set(&[("a.toy", "def other")]);
    assert!(stored(&fixture));
    fixture.remove("b.toy");
    assert!(!stored(&fixture));
    fixture.set(&[("c.toy", "def f")]);
    assert!(stored(&fixture));
    assert!(fixture.database.facts(&RepoPath::parse("c.toy").expect("valid")).is_some());
}

#[test]
fn stale_names_what_a_manifest_changes() {
    let fixture = Fixture::new(TREE);
    let manifest = [("lib.toy", "def f\ndef g"), ("main.toy", "other"), ("new.toy", "new")]
        .map(|(path, text)| (RepoPath::parse(path).expect("valid"), ContentHash::of(text.as_bytes())));
    let check = |failed: &str, changed: &str| {
        let standing = manifest.iter().map(|(path, hash)| (path, Standing { hash: *hash, failed: path.as_str() == failed }));
        let stale = fixture.database.stale(standing);
        let shown = |paths: &[RepoPath]| paths.iter().map(RepoPath::to_string).collect::<Vec<_>>().join(" ");
        assert_eq!((shown(&stale.changed).as_str(), shown(&stale.removed).as_str()), (changed, "other.toy readme.txt"));
    };
    check("", "main.toy new.toy");
    check("lib.toy", "lib.toy main.toy new.toy");
}

#[test]
fn incremental_equals_clean() {
    let mut tree: BTreeMap<&str, &str> = TREE.iter().copied().collect();
    let mut fixture = Fixture::new(TREE);
    let edits: &[(&str, Option<&str>)] = &[
        ("lib.toy", Some("star other\ndef f")),
        ("other.toy", Some("star lib\ndef h\nuse f")),
        ("main.toy", Some("star lib\nuse h\nset other.h")),
        ("lib.toy", None),
        ("sub/toy.cfg", Some("")),
        ("sub/main.toy", Some("from lib import f\nuse f")),
        ("sub/lib.toy", Some("def f")),
        ("lib.toy", Some("def f\ndef h")),
        ("sub/toy.cfg", None),
        ("other.toy", Some("failed")),
        ("main.toy", Some("from other import h\nuse h")),
        ("other.toy", Some("def h")),
    ];
    for (path, text) in edits {
        match text {
            Some(text) => {
                tree.insert(path, text);
                fixture.set(&[(path, text)]);
            }
            None => {
                tree.remove(path);
                fixture.remove(path);
            }
        }
        let clean: Vec<_> = tree.iter().map(|(path, text)| (*path, *text)).collect();
        assert_eq!(fixture.resolve(), Fixture::new(&clean).resolve(), "after {path}");
    }
}
