//! Which file a Python module name means: source roots, packages, namespace packages, stubs.
//!
//! Must not know what stands in the files. Invariant: every module found is a file or a directory of the manifest.

use std::sync::Arc;

use super::vocabulary::is_standard_module;
use crate::languages::folders::{ancestors, join};
use crate::languages::{Lookup, ModuleKey, ModuleResolution};
use crate::model::RepoPath;

/// A root that wins over those that follow it.
const NEXT: char = '>';
/// A root of the same rank as the one before it: a name found below both is ambiguous.
const EQUAL: char = '=';

/// Files that make their folder a project of its own.
const PROJECT_FILES: [&str; 3] = ["pyproject.toml", "setup.cfg", "setup.py"];

/// Returns the context of a directory: itself, how each of its roots ranks, and the roots, separated by NUL, which no path holds.
///
/// The roots that a scope configures are equal. Of the projects around a directory the nearest wins, but a project's folder and the `src`
/// in it are equal: which of them is searched first depends on how the project is started.
pub(super) fn context(directory: &str, lookup: &dyn Lookup) -> Arc<str> {
    let mut roots: Vec<String> = Vec::new();
    let mut ranks = String::new();
    if let Some(configured) = lookup.source_roots() {
        for root in configured.iter() {
            let root = root.trim_end_matches('/');
            let root = if root == "." { "" } else { root.strip_prefix("./").unwrap_or(root) };
            push_new(&mut roots, &mut ranks, root.to_owned(), EQUAL);
        }
    } else {
        for folder in ancestors(directory) {
            if PROJECT_FILES.iter().any(|file| lookup.is_file(&join(folder, file))) {
                let source = join(folder, "src");
                let has_source = lookup.is_directory(&source) && push_new(&mut roots, &mut ranks, source, NEXT);
                push_new(&mut roots, &mut ranks, folder.to_owned(), if has_source { EQUAL } else { NEXT });
            }
        }
        let has_source = push_new(&mut roots, &mut ranks, "src".to_owned(), NEXT);
        push_new(&mut roots, &mut ranks, String::new(), if has_source { EQUAL } else { NEXT });
    }
    let mut text = String::from(directory);
    for part in std::iter::once(ranks.as_str()).chain(roots.iter().map(String::as_str)) {
        text.push('\0');
        text.push_str(part);
    }
    text.into()
}

/// Adds a root unless it is one already; returns whether it was added.
fn push_new(roots: &mut Vec<String>, ranks: &mut String, root: String, rank: char) -> bool {
    let new = !roots.contains(&root);
    if new {
        roots.push(root);
        ranks.push(rank);
    }
    new
}

/// What stands at a dotted path below a directory.
enum Located {
    /// A module or package that is a file.
    File(ModuleKey),
    /// A directory without `__init__`.
    Directory(ModuleKey),
    /// Its first part is there and is no namespace, but the rest is not.
    Missing,
    Nothing,
}

/// Returns the module that a specifier (`a.b`, `..c`) names in a context.
pub(super) fn module(context: &str, specifier: &str, lookup: &dyn Lookup) -> ModuleResolution {
    let mut parts = context.split('\0');
    let directory = parts.next().unwrap_or("");
    let ranks = parts.next().unwrap_or("");
    let path = specifier.trim_start_matches('.');
    let dots = specifier.len() - path.len();
    if dots > 0 {
        let Some(base) = ancestors(directory).nth(dots - 1) else { return ModuleResolution::Missing };
        if path.is_empty() {
            return ModuleResolution::Found(package(base, lookup));
        }
        return match locate(base, path, lookup) {
            Located::File(key) | Located::Directory(key) => ModuleResolution::Found(key),
            Located::Missing | Located::Nothing => ModuleResolution::Missing,
        };
    }
    if path.is_empty() {
        return ModuleResolution::Missing;
    }
    let mut found: Vec<ModuleKey> = Vec::new();
    // The directories of one rank that a namespace package is made of.
    let mut portions: Vec<ModuleKey> = Vec::new();
    let mut outranked = false;
    let mut missing = false;
    let roots: Vec<&str> = parts.collect();
    for (root, rank) in roots.iter().zip(ranks.chars()) {
        if rank == NEXT && (missing || !found.is_empty()) {
            break;
        }
        outranked |= rank == NEXT && !portions.is_empty();
        match locate(root, path, lookup) {
            Located::File(key) => {
                if !found.contains(&key) {
                    found.push(key);
                }
            }
            Located::Directory(key) if !outranked => portions.push(key),
            Located::Directory(_) => {}
            Located::Missing => missing = true,
            Located::Nothing => {}
        }
    }
    // What is started in its own folder, or from the folder that holds its package, looks there before it looks in any root.
    if !found.is_empty()
        && let Some(holder) = ancestors(directory).find(|folder| !has_init(folder, lookup))
        && !roots.contains(&holder)
        && let Located::File(key) = locate(holder, path, lookup)
        && !found.contains(&key)
    {
        found.push(key);
    }
    found.sort();
    match found.len() {
        0 => {}
        1 => return ModuleResolution::Found(found.swap_remove(0)),
        _ => return ModuleResolution::Ambiguous(found),
    }
    if missing {
        return ModuleResolution::Missing;
    }
    // A script's own directory, and that of the package it is in, is where an interpreter started there looks first.
    if !is_standard_module(path.split('.').next().unwrap_or(path)) {
        for folder in ancestors(directory) {
            if roots.contains(&folder) || has_init(folder, lookup) {
                continue;
            }
            match locate(folder, path, lookup) {
                Located::File(key) => return ModuleResolution::Found(key),
                Located::Directory(key) if portions.is_empty() => portions.push(key),
                Located::Directory(_) | Located::Missing | Located::Nothing => {}
            }
        }
        portions.sort();
        match portions.len() {
            0 => {}
            1 => return ModuleResolution::Found(portions.swap_remove(0)),
            _ => return ModuleResolution::Ambiguous(portions),
        }
    }
    ModuleResolution::External
}

fn has_init(directory: &str, lookup: &dyn Lookup) -> bool {
    init_file(directory, lookup).is_some()
}

fn init_file(directory: &str, lookup: &dyn Lookup) -> Option<String> {
    ["__init__.py", "__init__.pyi"].into_iter().map(|file| join(directory, file)).find(|path| lookup.is_file(path))
}

fn package(directory: &str, lookup: &dyn Lookup) -> ModuleKey {
    ModuleKey(init_file(directory, lookup).unwrap_or_else(|| directory.to_owned()).into())
}

fn locate(base: &str, path: &str, lookup: &dyn Lookup) -> Located {
    let mut directory = base.to_owned();
    let mut owned = false;
    let mut parts = path.split('.').map(str::trim).peekable();
    while let Some(part) = parts.next() {
        if part.is_empty() || part.contains('/') {
            return Located::Nothing;
        }
        let place = join(&directory, part);
        let last = parts.peek().is_none();
        if let Some(init) = init_file(&place, lookup) {
            if last {
                return Located::File(ModuleKey(init.into()));
            }
            owned = true;
        } else {
            let file = [".py", ".pyi"].into_iter().map(|suffix| format!("{place}{suffix}")).find(|file| lookup.is_file(file));
            if let Some(file) = file {
                return if last { Located::File(ModuleKey(file.into())) } else { Located::Missing };
            }
            if !lookup.is_directory(&place) {
                return if owned { Located::Missing } else { Located::Nothing };
            }
            if last {
                return Located::Directory(ModuleKey(place.into()));
            }
        }
        directory = place;
    }
    Located::Nothing
}

/// Returns the module below a package, by the package's directory.
pub(super) fn submodule(package: &ModuleKey, name: &str, lookup: &dyn Lookup) -> Option<ModuleKey> {
    let directory = match package.0.rsplit_once('/').unwrap_or(("", &package.0)) {
        (directory, "__init__.py" | "__init__.pyi") => directory,
        _ if is_source(&package.0) => return None,
        _ => &package.0,
    };
    match locate(directory, name, lookup) {
        Located::File(key) | Located::Directory(key) => Some(key),
        Located::Missing | Located::Nothing => None,
    }
}

/// Returns whether a module stands in the directory of another.
pub(super) fn is_below(module: &ModuleKey, package: &ModuleKey) -> bool {
    let directory = match package.0.rsplit_once('/').unwrap_or(("", &package.0)) {
        (directory, "__init__.py" | "__init__.pyi") => directory,
        _ => &package.0,
    };
    module.0.strip_prefix(directory).is_some_and(|rest| rest.starts_with('/'))
}

/// Returns the file that makes a module; `None` for a namespace package.
pub(super) fn file_of(module: &ModuleKey) -> Option<RepoPath> {
    if is_source(&module.0) { RepoPath::parse(&module.0).ok() } else { None }
}

fn is_source(path: &str) -> bool {
    path.ends_with(".py") || path.ends_with(".pyi")
}

/// Returns the stub beside a module's source, which belongs to the same module.
pub(super) fn stub_of(file: &RepoPath, lookup: &dyn Lookup) -> Option<RepoPath> {
    let stub = format!("{}i", file.as_str());
    if file.as_str().ends_with(".py") && lookup.is_file(&stub) { RepoPath::parse(&stub).ok() } else { None }
}

/// Returns the module a file belongs to: a stub beside its source is the source's.
pub(super) fn module_of(path: &RepoPath, lookup: &dyn Lookup) -> ModuleKey {
    let text = path.as_str();
    match text.strip_suffix('i') {
        Some(source) if source.ends_with(".py") && lookup.is_file(source) => ModuleKey(source.into()),
        _ => ModuleKey(text.into()),
    }
}

/// Returns the dotted name of a file's module below its nearest root.
pub(super) fn module_name(path: &RepoPath, lookup: &dyn Lookup) -> Option<Arc<str>> {
    let context = lookup.context(path.directory());
    let text = path.as_str().strip_suffix(".pyi").or_else(|| path.as_str().strip_suffix(".py"))?;
    let text = text.strip_suffix("__init__").map_or(text, |directory| directory.trim_end_matches('/'));
    let below = context
        .split('\0')
        .skip(2)
        .find_map(|root| if root.is_empty() { Some(text) } else { text.strip_prefix(root)?.strip_prefix('/') })?;
    if below.is_empty() { None } else { Some(below.replace('/', ".").into()) }
}
