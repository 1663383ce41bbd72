//! A repository in memory for the tests of a language: a tree of files in, its edges as text out.
//!
//! Must not know the database: a look-up that computes everything anew stands in for it. Invariant: what it prints names every edge and
//! every diagnostic without candidates whose name is asked for.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::Arc;

use super::{ExportTable, LanguageSupport, Lookup, ModuleKey, ModuleResolution};
use crate::model::{FileFacts, ParseStatus, RepoPath, Surface, Target};

/// The files of a repository as one language sees them.
pub(super) struct Tree {
    language: &'static dyn LanguageSupport,
    files: BTreeMap<RepoPath, FileFacts>,
    others: BTreeMap<String, Arc<str>>,
    /// As the scope configures them.
    pub(super) source_roots: Option<Arc<[Arc<str>]>>,
}

impl Tree {
    /// Reads files from a text in which each begins with a line `//- path`.
    pub(super) fn new(language: &'static dyn LanguageSupport, text: &str) -> Self {
        let mut files = BTreeMap::new();
        let mut others = BTreeMap::new();
        for part in text.split("//- ").skip(1) {
            let (path, source) = part.split_once('\n').expect("a file has a line of its own for its path");
            let path = RepoPath::parse(path.trim()).expect("paths of tests are valid");
            match language.dialect(&path) {
                Some(dialect) => {
                    files.insert(path, language.extract(source, dialect, &mut || false).expect("nothing stops it"));
                }
                None => {
                    others.insert(path.as_str().to_owned(), Arc::from(source));
                }
            }
        }
        Self { language, files, others, source_roots: None }
    }

    /// Returns the edges and diagnostics of all files, each on a line; only those whose name is in `names`, unless that is empty.
    pub(super) fn edges(&self, names: &[&str]) -> String {
        let mut out = String::new();
        for (path, facts) in &self.files {
            let edges = self.language.resolve(path, facts, self);
            let mut lines = Vec::new();
            for edge in &edges.edges {
                let target = match &edge.target.definition {
                    None => edge.target.file.to_string(),
                    Some(key) if key.ordinal == 0 => format!("{}:{}", edge.target.file, key.qualified),
                    Some(key) => format!("{}:{}#{}", edge.target.file, key.qualified, key.ordinal),
                };
                let (kind, resolution) = (edge.kind.as_str(), edge.resolution.as_str());
                lines.push((edge.place, format!("{kind} {target} {resolution} {}", edge.rule), &edge.name));
            }
            for diagnostic in edges.diagnostics.iter().filter(|diagnostic| diagnostic.candidates == 0) {
                let text = format!("{} {}", diagnostic.kind.as_str(), diagnostic.reason.as_str());
                lines.push((diagnostic.place, text, &diagnostic.name));
            }
            lines.sort();
            for (place, line, name) in lines {
                if names.is_empty() || names.contains(&name.as_ref()) {
                    writeln!(out, "{path}:{}:{} {name} {line}", place.line, place.column).expect("a string takes all");
                }
            }
        }
        out
    }

    fn reach(&self, module: &ModuleKey) -> BTreeSet<ModuleKey> {
        let mut seen = BTreeSet::new();
        let mut open = vec![module.clone()];
        while let Some(next) = open.pop() {
            if seen.insert(next.clone()) {
                open.extend(self.language.export_sources(&next, self));
            }
        }
        seen
    }
}

impl Lookup for Tree {
    fn source_roots(&self) -> Option<Arc<[Arc<str>]>> {
        self.source_roots.clone()
    }
    fn is_file(&self, path: &str) -> bool {
        self.files.contains_key(path) || self.others.contains_key(path)
    }
    fn is_directory(&self, path: &str) -> bool {
        let below = format!("{path}/");
        self.files.keys().any(|file| file.as_str().starts_with(&below)) || self.others.keys().any(|file| file.starts_with(&below))
    }
    fn files_in(&self, directory: &str) -> Arc<[RepoPath]> {
        self.files.keys().filter(|file| file.directory() == directory).cloned().collect()
    }
    fn directories_in(&self, directory: &str) -> Arc<[Arc<str>]> {
        let below = if directory.is_empty() { String::new() } else { format!("{directory}/") };
        let paths = self.files.keys().map(RepoPath::as_str).chain(self.others.keys().map(String::as_str));
        let names: BTreeSet<Arc<str>> =
            paths.filter_map(|path| Some(Arc::from(path.strip_prefix(&below)?.split_once('/')?.0))).collect();
        names.into_iter().collect()
    }
    fn parse_status(&self, path: &RepoPath) -> Option<ParseStatus> {
        self.files.get(path).map(|facts| facts.parse)
    }
    fn surface(&self, path: &RepoPath) -> Option<Arc<Surface>> {
        self.files.get(path).map(|facts| Arc::clone(&facts.surface))
    }
    fn text(&self, path: &str) -> Option<Arc<str>> {
        let read = RepoPath::parse(path).is_ok_and(|path| self.language.reads_text(&path));
        self.others.get(path).filter(|_| read).cloned()
    }
    fn context(&self, directory: &str) -> Arc<str> {
        self.language.context(directory, self)
    }
    fn module(&self, context: &str, specifier: &str) -> Arc<ModuleResolution> {
        Arc::new(self.language.module(context, specifier, self))
    }
    fn exports(&self, module: &ModuleKey) -> Arc<ExportTable> {
        let component: Vec<ModuleKey> =
            self.reach(module).into_iter().filter(|other| other == module || self.reach(other).contains(module)).collect();
        let at = component.iter().position(|member| member == module).expect("a module is in its own component");
        Arc::new(self.language.solve_exports(&component, self).swap_remove(at))
    }
    fn rebound(&self, file: &RepoPath) -> Arc<BTreeSet<Arc<str>>> {
        let rebound = self.files.iter().flat_map(|(path, facts)| self.language.rebindings(path, &facts.surface, self));
        let names = rebound.filter(|target| target.file == *file).filter_map(|target| Some(target.definition?.qualified));
        Arc::new(names.collect())
    }
    fn members_named(&self, name: &str) -> Arc<[Target]> {
        let mut found = Vec::new();
        for (path, facts) in &self.files {
            for (member, key) in self.language.declared_members(&facts.surface) {
                if *member == *name {
                    found.push(Target { file: path.clone(), definition: Some(key) });
                }
            }
        }
        found.sort();
        found.into()
    }
}

/// Checks the edges and candidate-less diagnostics whose token is one of `names` (separated by spaces).
#[track_caller]
pub(super) fn check(language: &'static dyn LanguageSupport, tree: &str, names: &str, expected: &str) {
    let names: Vec<&str> = names.split(' ').collect();
    let found = Tree::new(language, tree).edges(&names);
    let expected: String =
        expected.lines().map(str::trim).filter(|line| !line.is_empty()).map(|line| format!("{line}\n")).collect();
    assert!(found == expected, "found:\n{found}\nexpected:\n{expected}");
}

/// Checks the definitions of a file, each on a line: kind, qualified name, ordinal, lines, signature.
#[track_caller]
pub(super) fn check_definitions(facts: &FileFacts, expected: &str) {
    let found = definitions(facts);
    let expected: String =
        expected.lines().map(str::trim).filter(|line| !line.is_empty()).map(|line| format!("{line}\n")).collect();
    assert!(found == expected, "found:\n{found}\nexpected:\n{expected}");
}

fn definitions(facts: &FileFacts) -> String {
    let mut out = String::new();
    for definition in &facts.definitions {
        let key = &definition.key;
        let (kind, lines) = (definition.kind.as_str(), (definition.start_line, definition.end_line));
        let place = definition.name_place;
        let parent = definition.parent.map_or("-", |parent| facts.definitions[parent as usize].name.as_ref());
        let signature = definition.signature.as_deref().unwrap_or("");
        writeln!(
            out,
            "{kind} {}#{} {}-{} {}:{} in {parent}: {signature}",
            key.qualified, key.ordinal, lines.0, lines.1, place.line, place.column
        )
        .expect("a string takes all");
    }
    out
}
