//! Modules: the tree that `mod` makes of files and of what is written in them, and the tables of what each holds.
//!
//! Must not follow imports: an entry of a table that is one stays a path. Invariant: a table follows from the surface of one file and
//! from which files there are.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use smallvec::SmallVec;

use super::packages::{self, Package};
use crate::languages::folders::{follow, join};
use crate::languages::{Alias, Export, ExportTable, Lookup, ModuleKey};
use crate::model::facts::{Handle, Item, ItemMeaning, ItemScope, Space, Visibility};
use crate::model::{RepoPath, Resolution, Surface, Target};

/// More definitions, or modules, of one name in one module than these are not told apart by anybody.
const MAX_SAME: usize = 65;

/// Marks the place of a file that is where a module would be if the file that has the `mod` leads a directory, as roots do.
pub(super) const BESIDE: &str = "beside";

/// Which entries of a module a table holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Part {
    /// What any crate sees.
    Public,
    /// What its crate sees.
    Crate,
    /// All that it sees itself, and what is inside it.
    Own,
    /// No names: the files that it makes modules of.
    Children,
}

/// A module: a file, or what is written in one: the names of the modules around it and its own, each with the number of its scope
/// (`a@1.b@3`), so that modules of one name are apart and none is searched for; empty for the file itself.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Module {
    pub file: RepoPath,
    pub inner: Arc<str>,
}

impl Module {
    pub(super) fn of_file(file: &RepoPath) -> Self {
        Self { file: file.clone(), inner: "".into() }
    }

    /// Returns the key under which the table of a part is asked for. A path holds no colon.
    pub(super) fn key(&self, part: Part) -> ModuleKey {
        let part = match part {
            Part::Public => "public",
            Part::Crate => "crate",
            Part::Own => "own",
            Part::Children => "children",
        };
        ModuleKey(format!("{}:{}:{part}", self.file, self.inner).into())
    }

    pub(super) fn of_key(key: &ModuleKey) -> Option<(Self, Part)> {
        let mut parts = key.0.split(':');
        let file = RepoPath::parse(parts.next()?).ok()?;
        let inner = parts.next()?.into();
        let part = match parts.next()? {
            "public" => Part::Public,
            "crate" => Part::Crate,
            "own" => Part::Own,
            _ => Part::Children,
        };
        Some((Self { file, inner }, part))
    }

    /// Returns the module around one that is written in a file.
    pub(super) fn around(&self) -> Option<Self> {
        if self.inner.is_empty() {
            return None;
        }
        let inner = self.inner.rsplit_once('.').map_or("", |(outer, _)| outer);
        Some(Self { file: self.file.clone(), inner: inner.into() })
    }

    /// Returns whether this is `other` or written in it.
    pub(super) fn is_inside(&self, other: &Self) -> bool {
        self.file == other.file
            && (other.inner.is_empty()
                || self.inner.strip_prefix(&*other.inner).is_some_and(|rest| rest.is_empty() || rest.starts_with('.')))
    }
}

pub(super) fn is_source(path: &RepoPath) -> bool {
    path.as_str().ends_with(".rs")
}

/// Returns the name of the module that a scope of a file is: the names of the modules it is written in, joined.
pub(super) fn inner_name(surface: &Surface, scope: Handle) -> Arc<str> {
    let scopes = &surface.outline.scopes;
    let mut parts: Vec<String> = Vec::new();
    let mut next = Some(scope.index());
    while let Some((at, scope)) = next.and_then(|at| Some((at, scopes.get(at)?))) {
        if let Some(name) = scope.name {
            parts.push(numbered(surface.outline.names.get(name), at));
        }
        // What is around a scope was met before it.
        next = scope.parent.map(Handle::index).filter(|outer| *outer < at);
    }
    parts.reverse();
    parts.join(".").into()
}

fn numbered(name: &str, scope: usize) -> String {
    format!("{name}@{scope}")
}

/// Returns the scope of a module of a file.
fn scope_of<'s>(surface: &'s Surface, inner: &str) -> Option<&'s ItemScope> {
    let scopes = &surface.outline.scopes;
    if inner.is_empty() {
        return scopes.first();
    }
    let (before, number) = inner.rsplit_once('@')?;
    let scope = scopes.get(number.parse::<usize>().ok()?)?;
    let name = before.rsplit('.').next()?;
    (surface.outline.names.get(scope.name?) == name).then_some(scope)
}

/// Returns the directories that the modules around have, below the one of their file.
fn folders(inner: &str) -> String {
    let names: Vec<&str> = inner.split('.').map(|part| part.split('@').next().unwrap_or(part)).collect();
    names.join("/")
}

/// Returns the package of a directory.
pub(super) fn package(directory: &str, lookup: &dyn Lookup) -> Option<Package> {
    packages::decode(&lookup.context(directory))
}

/// Where the files are that a file makes modules of.
struct Layout<'l> {
    file: &'l RepoPath,
    lookup: &'l dyn Lookup,
    leads: OnceCell<bool>,
}

impl<'l> Layout<'l> {
    fn new(file: &'l RepoPath, lookup: &'l dyn Lookup) -> Self {
        Self { file, lookup, leads: OnceCell::new() }
    }

    /// Returns whether the files of its modules are beside the file, and not in a directory of its name.
    fn leads(&self) -> bool {
        *self.leads.get_or_init(|| match (self.file.file_name(), package(self.file.directory(), self.lookup)) {
            ("mod.rs", _) => true,
            (_, Some(package)) => package.is_root(self.file.as_str()),
            (name, None) => matches!(name, "lib.rs" | "main.rs"),
        })
    }

    /// Returns the files that `mod name;` in a module of the file may mean: usually one. Also whether they are only where they are
    /// meant if the file leads its directory for a reason that is not seen here.
    fn files_of(&self, inner: &str, name: &str, path: Option<&str>) -> (Vec<RepoPath>, bool) {
        let directory = self.file.directory();
        let file_name = self.file.file_name();
        let stem = file_name.strip_suffix(".rs").unwrap_or(file_name);
        let existing =
            |path: String| RepoPath::parse(&path).ok().filter(|path| self.lookup.is_file(path.as_str()) && is_source(path));
        let inner = folders(inner);
        let beside = || join(directory, &inner);
        let below = || join(&join(directory, stem), &inner);
        if let Some(path) = path {
            // Of a file's own module the path is relative to the file, of one written in it to where that one's files would be.
            let base = if inner.is_empty() {
                directory.to_owned()
            } else if self.leads() {
                beside()
            } else {
                below()
            };
            return (follow(&base, path).and_then(existing).into_iter().collect(), false);
        }
        let in_directory = |base: String| -> Vec<RepoPath> {
            let places = [join(&base, &format!("{name}.rs")), join(&base, &format!("{name}/mod.rs"))];
            places.into_iter().filter_map(existing).filter(|found| found != self.file).collect()
        };
        if self.leads() {
            return (in_directory(beside()), false);
        }
        let found = in_directory(below());
        if found.is_empty() { (in_directory(beside()), true) } else { (found, false) }
    }

    fn add(&self, inner: &str, name: &str, path: Option<&str>, mut add: impl FnMut(&RepoPath, Option<Arc<str>>)) {
        let (files, perhaps) = self.files_of(inner, name, path);
        for file in files {
            add(&file, perhaps.then(|| BESIDE.into()));
        }
    }
}

/// Makes the table of one part of a module.
pub(super) fn table(key: &ModuleKey, lookup: &dyn Lookup) -> ExportTable {
    let Some((module, part)) = Module::of_key(key) else { return ExportTable::default() };
    let Some(surface) = lookup.surface(&module.file) else { return ExportTable::default() };
    if part == Part::Children {
        return children(&module, &surface, lookup);
    }
    let Some(scope) = scope_of(&surface, &module.inner) else { return ExportTable::default() };
    let mut names: BTreeMap<Arc<str>, Export> = BTreeMap::new();
    let text = |name| surface.outline.names.get(name);
    let layout = Layout::new(&module.file, lookup);
    for item in &scope.items {
        let visible = match part {
            Part::Public => item.visibility == Visibility::Public,
            Part::Crate => item.visibility >= Visibility::Restricted,
            Part::Own | Part::Children => true,
        };
        if visible {
            let export = names.entry(entry_name(item, text(item.name))).or_insert_with(empty);
            add(export, item, &module, &surface, &layout);
        }
    }
    for name in &scope.mentioned {
        names.entry(format!("?{}", text(*name)).into()).or_insert_with(empty);
    }
    for (name, export) in &mut names {
        export.targets.sort();
        export.aliases.sort();
        export.aliases.dedup();
        if &**name != "*" {
            export.targets.truncate(MAX_SAME);
            export.aliases.truncate(MAX_SAME);
        }
    }
    ExportTable { names, star: None, open: false }
}

/// Returns the name of an entry: the space, and the name in it.
fn entry_name(item: &Item, name: &str) -> Arc<str> {
    let mark = match (item.meaning, item.space) {
        (ItemMeaning::Star(_), _) => return "*".into(),
        (ItemMeaning::Import(_), Space::Type) => 'n',
        (ItemMeaning::Import(_), _) => 'u',
        // A module whose macros are seen by all that follows it.
        (ItemMeaning::File { .. } | ItemMeaning::Module { .. }, Space::Macro) => 'x',
        (_, Space::Value) => 'v',
        (_, Space::Macro) => 'm',
        _ => 't',
    };
    format!("{mark}{name}").into()
}

fn empty() -> Export {
    Export {
        targets: SmallVec::new(),
        aliases: Vec::new(),
        resolution: Resolution::ResolvedStatic,
        rule: "lexical_binding",
        reason: None,
    }
}

fn add(export: &mut Export, item: &Item, module: &Module, surface: &Surface, layout: &Layout<'_>) {
    let outline = &surface.outline;
    let target = |declaration: Handle| {
        let key = outline.declarations.get(declaration.index())?.key.clone();
        Some(Target { file: module.file.clone(), definition: Some(key) })
    };
    match item.meaning {
        ItemMeaning::Declaration(declaration) => export.targets.extend(target(declaration)),
        ItemMeaning::Import(import) | ItemMeaning::Star(import) => {
            let Some(import) = outline.imports.get(import as usize) else { return };
            let mut path = outline.names.get(import.module).to_owned();
            if let Some(name) = import.name {
                if !path.is_empty() && path != "::" {
                    path.push_str("::");
                }
                path.push_str(outline.names.get(name));
            }
            export.aliases.push(Alias { module: module.key(Part::Own), name: Some(path.into()) });
        }
        ItemMeaning::Module { declaration, scope } => {
            export.targets.extend(target(declaration));
            let name = numbered(outline.names.get(item.name), scope.index());
            let inner = if module.inner.is_empty() { name } else { format!("{}.{name}", module.inner) };
            let child = Module { file: module.file.clone(), inner: inner.into() };
            export.aliases.push(Alias { module: child.key(Part::Own), name: None });
        }
        ItemMeaning::File { path } => {
            let path = path.map(|path| outline.names.get(path));
            layout.add(&module.inner, outline.names.get(item.name), path, |file, name| {
                export.aliases.push(Alias { module: Module::of_file(file).key(Part::Own), name });
            });
        }
    }
}

/// Lists the files that a file makes modules of, each with the modules that do.
fn children(module: &Module, surface: &Surface, lookup: &dyn Lookup) -> ExportTable {
    let mut names: BTreeMap<Arc<str>, Export> = BTreeMap::new();
    let outline = &surface.outline;
    let layout = Layout::new(&module.file, lookup);
    for (at, scope) in outline.scopes.iter().enumerate() {
        for item in &scope.items {
            let ItemMeaning::File { path } = item.meaning else { continue };
            let parent = Module { file: module.file.clone(), inner: inner_name(surface, Handle::of_surface(at)) };
            let path = path.map(|path| outline.names.get(path));
            layout.add(&parent.inner, outline.names.get(item.name), path, |file, name| {
                let export = names.entry(file.as_str().into()).or_insert_with(empty);
                export.aliases.push(Alias { module: parent.key(Part::Own), name });
            });
        }
    }
    ExportTable { names, star: None, open: false }
}

/// Returns the name that a `mod` gives the module of a file.
pub(super) fn name_of_file(file: &RepoPath) -> &str {
    match file.file_name() {
        "mod.rs" => file.directory().rsplit('/').next().unwrap_or(""),
        name => name.strip_suffix(".rs").unwrap_or(name),
    }
}

/// Returns the name of a file's module from the root of its crate on, by where the file is: `engine.sync`; empty for a root.
pub(super) fn name_by_place(path: &RepoPath, lookup: &dyn Lookup) -> Option<Arc<str>> {
    let package = package(path.directory(), lookup)?;
    let inside = |directory: &str| {
        let rest = path.as_str().strip_prefix(&join(&package.directory, directory))?;
        rest.strip_prefix('/').map(str::to_owned)
    };
    let (crate_name, rest) = match (inside("src"), &package.library) {
        (Some(rest), Some((_, name))) => (name.clone(), rest),
        (Some(rest), None) => ("".to_owned(), rest),
        (None, _) => ("".to_owned(), path.as_str().strip_prefix(&package.directory)?.trim_start_matches('/').to_owned()),
    };
    let stem = rest.strip_suffix(".rs")?;
    let stem = stem.strip_suffix("/mod").unwrap_or(stem);
    let mut parts: Vec<&str> = Vec::new();
    parts.extend(Some(crate_name.as_str()).filter(|name| !name.is_empty()));
    if !matches!(stem, "lib" | "main") {
        parts.extend(stem.split('/'));
    }
    if parts.is_empty() {
        parts.push(stem);
    }
    Some(parts.join(".").into())
}
