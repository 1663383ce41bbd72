//! Modules: the tree that `mod` makes of files and of what is written in them, and the tables of what each holds.
//!
//! Must not follow imports: an entry of a table that is one stays a path. Invariant: a table follows from the surface of one file and
//! from which files there are.

use std::collections::BTreeMap;
use std::sync::Arc;

use smallvec::SmallVec;

use super::packages::{self, Package, follow, join};
use crate::languages::{Alias, Export, ExportTable, Lookup, ModuleKey};
use crate::model::facts::{Handle, Item, ItemMeaning, ItemScope, Space, Visibility};
use crate::model::{RepoPath, Resolution, Surface, Target};

/// Which entries of a module a table holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

/// A module: a file, or what is written in one under a name (`a.b`; empty for the file itself).
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
    let mut next = Some(scope);
    while let Some(scope) = next.and_then(|handle| scopes.get(handle.index())) {
        let at = next.map_or(0, Handle::index);
        if let Some(name) = scope.name {
            // Modules of one name, told apart by conditions, are counted.
            let same = |other: &ItemScope| other.parent == scope.parent && other.name == scope.name;
            let before = scopes[..at].iter().filter(|other| same(other)).count();
            let name = surface.outline.names.get(name);
            parts.push(if before == 0 { name.to_owned() } else { format!("{name}#{before}") });
        }
        next = scope.parent.filter(|_| parts.len() < 64);
    }
    parts.reverse();
    parts.join(".").into()
}

/// Returns the scope of a module of a file.
fn scope_of<'s>(surface: &'s Surface, inner: &str) -> Option<&'s ItemScope> {
    let scopes = &surface.outline.scopes;
    if inner.is_empty() {
        return scopes.first();
    }
    (1..scopes.len()).find(|at| *inner_name(surface, Handle::of_surface(*at)) == *inner).and_then(|at| scopes.get(at))
}

/// Returns the package of a directory.
pub(super) fn package(directory: &str, lookup: &dyn Lookup) -> Option<Package> {
    packages::decode(&lookup.context(directory))
}

/// Returns the files that `mod name;` in a module may mean: usually one.
fn files_of(module: &Module, name: &str, path: Option<&str>, lookup: &dyn Lookup) -> Vec<RepoPath> {
    let directory = module.file.directory();
    let inner = module.inner.replace('.', "/");
    let file_name = module.file.file_name();
    let stem = file_name.strip_suffix(".rs").unwrap_or(file_name);
    let leads = matches!(file_name, "mod.rs" | "lib.rs" | "main.rs")
        || package(directory, lookup).is_some_and(|package| package.roots.iter().any(|root| root == module.file.as_str()));
    let existing = |path: String| RepoPath::parse(&path).ok().filter(|path| lookup.is_file(path.as_str()) && is_source(path));
    let beside = join(directory, &inner);
    let below = join(&join(directory, stem), &inner);
    if let Some(path) = path {
        // Of a file's own module the path is relative to the file, of one written in it to where that one's files would be.
        let base = if inner.is_empty() {
            directory.to_owned()
        } else if leads {
            beside
        } else {
            below
        };
        return follow(&base, path).and_then(existing).into_iter().collect();
    }
    let bases = if leads { [beside, below] } else { [below, beside] };
    for base in bases {
        let found: Vec<_> = [join(&base, &format!("{name}.rs")), join(&base, &format!("{name}/mod.rs"))]
            .into_iter()
            .filter_map(existing)
            .collect();
        if !found.is_empty() {
            return found;
        }
    }
    Vec::new()
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
    let mut shadowed: BTreeMap<&str, u32> = BTreeMap::new();
    for item in &scope.items {
        let counted = match item.meaning {
            ItemMeaning::Module { .. } if item.space == Space::Type => {
                Some(shadowed.entry(text(item.name)).or_default()).map(|count| {
                    *count += 1;
                    *count - 1
                })
            }
            _ => None,
        };
        let visible = match part {
            Part::Public => item.visibility == Visibility::Public,
            Part::Crate => item.visibility >= Visibility::Restricted,
            Part::Own | Part::Children => true,
        };
        if visible {
            let export = names.entry(entry_name(item, text(item.name))).or_insert_with(empty);
            add(export, item, counted.unwrap_or(0), &module, &surface, lookup);
        }
    }
    if part == Part::Own {
        for name in &scope.mentioned {
            names.entry(format!("?{}", text(*name)).into()).or_insert_with(empty);
        }
    }
    for export in names.values_mut() {
        export.targets.sort();
        export.aliases.sort();
        export.aliases.dedup();
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

fn add(export: &mut Export, item: &Item, count: u32, module: &Module, surface: &Surface, lookup: &dyn Lookup) {
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
        ItemMeaning::Module { declaration, .. } => {
            export.targets.extend(target(declaration));
            let name = outline.names.get(item.name);
            let name = if count == 0 { name.to_owned() } else { format!("{name}#{count}") };
            let inner = if module.inner.is_empty() { name } else { format!("{}.{name}", module.inner) };
            let child = Module { file: module.file.clone(), inner: inner.into() };
            export.aliases.push(Alias { module: child.key(Part::Own), name: None });
        }
        ItemMeaning::File { path } => {
            for file in files_of(module, outline.names.get(item.name), path.map(|path| outline.names.get(path)), lookup) {
                export.aliases.push(Alias { module: Module::of_file(&file).key(Part::Own), name: None });
            }
        }
    }
}

/// Lists the files that a file makes modules of, each with the modules that do.
fn children(module: &Module, surface: &Surface, lookup: &dyn Lookup) -> ExportTable {
    let mut names: BTreeMap<Arc<str>, Export> = BTreeMap::new();
    let outline = &surface.outline;
    for (at, scope) in outline.scopes.iter().enumerate() {
        for item in &scope.items {
            let ItemMeaning::File { path } = item.meaning else { continue };
            let parent = Module { file: module.file.clone(), inner: inner_name(surface, Handle::of_surface(at)) };
            for file in files_of(&parent, outline.names.get(item.name), path.map(|path| outline.names.get(path)), lookup) {
                let export = names.entry(file.as_str().into()).or_insert_with(empty);
                export.aliases.push(Alias { module: parent.key(Part::Own), name: None });
            }
        }
    }
    ExportTable { names, star: None, open: false }
}

/// Returns the files whose `mod` may make a module of a file, by where files of modules are kept.
pub(super) fn possible_parents(file: &RepoPath, lookup: &dyn Lookup) -> Vec<RepoPath> {
    let file_name = file.file_name();
    let mut directory = file.directory();
    if file_name == "mod.rs" {
        directory = directory.rsplit_once('/').map_or("", |(above, _)| above);
    }
    let roots = package(file.directory(), lookup).map(|package| package.roots).unwrap_or_default();
    let mut found = Vec::new();
    let mut add = |path: String| {
        if path != file.as_str()
            && lookup.is_file(&path)
            && let Ok(path) = RepoPath::parse(&path)
            && !found.contains(&path)
        {
            found.push(path);
        }
    };
    // A module written in a file has its files deeper.
    for _ in 0..3 {
        for name in ["mod.rs", "lib.rs", "main.rs"] {
            add(join(directory, name));
        }
        if !directory.is_empty() {
            add(format!("{directory}.rs"));
        }
        for root in &roots {
            if root.rsplit_once('/').map_or("", |(above, _)| above) == directory {
                add(root.clone());
            }
        }
        if directory.is_empty() {
            break;
        }
        directory = directory.rsplit_once('/').map_or("", |(above, _)| above);
    }
    found
}

/// Returns the modules in which a file is one; none for the root of a crate.
pub(super) fn parents(file: &RepoPath, lookup: &dyn Lookup, exports: &dyn Fn(&ModuleKey) -> Arc<ExportTable>) -> Vec<Module> {
    let mut found = Vec::new();
    for parent in possible_parents(file, lookup) {
        let table = exports(&Module::of_file(&parent).key(Part::Children));
        if let Some(export) = table.names.get(file.as_str()) {
            found.extend(export.aliases.iter().filter_map(|alias| Module::of_key(&alias.module)).map(|(module, _)| module));
        }
    }
    found.sort();
    found.dedup();
    found
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
