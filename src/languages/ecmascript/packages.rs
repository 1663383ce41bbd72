//! Packages of the repository: `package.json`, workspaces, and what a package gives to others.
//!
//! Must not know compiler options beside conditions. Invariant: a package is found by the name that its own `package.json` has.

use serde_json::{Map, Value};

use super::configuration::{above, join, output_of, resolve};
use super::targets::{Asker, Manifest, targets_of};
use crate::languages::Lookup;

/// Marks a context that is the list of packages of a workspace, not the options of a directory.
pub(super) const PACKAGES: char = '\u{1}';

/// How deep `**` of a workspace pattern looks.
const MAX_DEPTH: usize = 4;

/// Splits a bare specifier into the package's name and the rest: `@a/b/c/d` into `@a/b` and `c/d`.
pub(super) fn split_name(specifier: &str) -> (&str, &str) {
    let parts = if specifier.starts_with('@') { 2 } else { 1 };
    let end = specifier.match_indices('/').nth(parts - 1).map_or(specifier.len(), |(at, _)| at);
    (&specifier[..end], specifier.get(end + 1..).unwrap_or(""))
}

/// Returns the `package.json` of a folder.
pub(super) fn manifest(folder: &str, lookup: &dyn Lookup) -> Option<Map<String, Value>> {
    let path = join(folder, "package.json");
    if !lookup.is_file(&path) {
        return None;
    }
    match serde_json::from_str(lookup.text(&path)?.trim_start_matches('\u{feff}')) {
        Ok(Value::Object(map)) => Some(map),
        _ => None,
    }
}

/// Returns the nearest folder with a `package.json`, from a folder upwards.
pub(super) fn nearest(folder: &str, lookup: &dyn Lookup) -> Option<String> {
    let mut at = Some(folder);
    while let Some(place) = at {
        if lookup.is_file(&join(place, "package.json")) {
            return Some(place.to_owned());
        }
        at = above(place);
    }
    None
}

/// Returns whether the package around a folder says that its files are ECMAScript modules.
pub(super) fn is_of_modules(folder: &str, lookup: &dyn Lookup) -> bool {
    let manifest = nearest(folder, lookup).and_then(|package| manifest(&package, lookup));
    manifest.is_some_and(|manifest| manifest.get("type").and_then(Value::as_str) == Some("module"))
}

/// Returns whether a package around a folder says that it depends on another.
pub(super) fn depends(folder: &str, name: &str, lookup: &dyn Lookup) -> bool {
    let kinds = ["dependencies", "devDependencies", "peerDependencies", "optionalDependencies"];
    let mut at = Some(folder.to_owned());
    while let Some(package) = at.and_then(|place| nearest(&place, lookup)) {
        if let Some(manifest) = manifest(&package, lookup)
            && kinds.iter().any(|kind| manifest.get(*kind).and_then(|of_kind| of_kind.get(name)).is_some())
        {
            return true;
        }
        at = above(&package).map(str::to_owned);
    }
    false
}

/// Returns the folder of a package by name, as seen from a folder: one of a workspace around it.
pub(super) fn directory_of(folder: &str, name: &str, lookup: &dyn Lookup) -> Option<String> {
    let mut at = Some(folder);
    while let Some(place) = at {
        let has_manifest = lookup.is_file(&join(place, "package.json")) || lookup.is_file(&join(place, "pnpm-workspace.yaml"));
        if has_manifest {
            let packages = lookup.context(&format!("{place}{PACKAGES}"));
            let found = packages.lines().filter_map(|line| line.split_once('\t')).find(|(known, _)| *known == name);
            if let Some((_, directory)) = found {
                return Some(directory.to_owned());
            }
        }
        at = above(place);
    }
    None
}

/// Lists the packages of the workspace whose root a folder is: `name` tab `folder`, a line each, sorted.
pub(super) fn workspace(root: &str, lookup: &dyn Lookup) -> String {
    let mut patterns: Vec<String> = Vec::new();
    if let Some(manifest) = manifest(root, lookup) {
        let list = match manifest.get("workspaces") {
            Some(Value::Array(list)) => Some(list),
            Some(Value::Object(map)) => map.get("packages").and_then(Value::as_array),
            _ => None,
        };
        patterns.extend(list.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned));
    }
    let pnpm = join(root, "pnpm-workspace.yaml");
    if lookup.is_file(&pnpm)
        && let Some(text) = lookup.text(&pnpm)
    {
        patterns.extend(yaml_list(&text, "packages"));
    }
    let lerna = join(root, "lerna.json");
    if lookup.is_file(&lerna)
        && let Some(text) = lookup.text(&lerna)
        && let Ok(Value::Object(map)) = serde_json::from_str(&text)
    {
        let list = map.get("packages").and_then(Value::as_array);
        patterns.extend(list.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned));
    }
    let mut folders = Vec::new();
    for pattern in patterns.iter().filter(|pattern| !pattern.starts_with('!')) {
        let parts: Vec<&str> = pattern.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
        expand(root, &parts, 0, lookup, &mut folders);
    }
    for pattern in patterns.iter().filter_map(|pattern| pattern.strip_prefix('!')) {
        let parts: Vec<&str> = pattern.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
        let mut excluded = Vec::new();
        expand(root, &parts, 0, lookup, &mut excluded);
        folders.retain(|folder| !excluded.contains(folder));
    }
    folders.sort();
    folders.dedup();
    let mut lines: Vec<String> = folders
        .iter()
        .filter_map(|folder| Some(format!("{}\t{folder}\n", manifest(folder, lookup)?.get("name")?.as_str()?)))
        .collect();
    lines.sort();
    lines.concat()
}

/// Finds the folders with a `package.json` that a pattern matches.
fn expand(folder: &str, parts: &[&str], depth: usize, lookup: &dyn Lookup, found: &mut Vec<String>) {
    let Some((first, rest)) = parts.split_first() else {
        if lookup.is_file(&join(folder, "package.json")) {
            found.push(folder.to_owned());
        }
        return;
    };
    if *first == "**" {
        expand(folder, rest, depth, lookup, found);
        if depth < MAX_DEPTH {
            for name in lookup.directories_in(folder).iter().filter(|name| name.as_ref() != "node_modules") {
                expand(&join(folder, name), parts, depth + 1, lookup, found);
            }
        }
    } else if first.contains('*') {
        for name in lookup.directories_in(folder).iter().filter(|name| matches(first, name)) {
            expand(&join(folder, name), rest, depth, lookup, found);
        }
    } else if let Some(next) = resolve(folder, first) {
        expand(&next, rest, depth, lookup, found);
    }
}

/// Returns whether a name matches a pattern with stars.
fn matches(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| name.strip_prefix(first)) else { return false };
    let parts: Vec<&str> = parts.collect();
    for (index, part) in parts.iter().enumerate() {
        if index + 1 == parts.len() {
            return rest.ends_with(part);
        }
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.is_empty()
}

/// Returns the entries of one top-level list of a plain YAML file.
fn yaml_list(text: &str, key: &str) -> Vec<String> {
    let mut entries = Vec::new();
    let mut inside = false;
    for line in text.lines() {
        let line = line.split(" #").next().unwrap_or("").trim_end();
        let trimmed = line.trim_start();
        if let Some(entry) = trimmed.strip_prefix("- ").filter(|_| inside) {
            entries.push(entry.trim().trim_matches(['\'', '"']).to_owned());
        } else if !trimmed.is_empty() && !trimmed.starts_with('#') {
            inside = trimmed.strip_prefix(key).is_some_and(|rest| rest.trim() == ":");
        }
    }
    entries
}

/// Paths, without certainty that they exist.
#[derive(Debug, Default)]
pub(super) struct Paths {
    /// The first of these with a file is the module.
    pub sure: Vec<String>,
    /// A file of these may be the module: other tools take it first.
    pub rivals: Vec<String>,
    /// Where none of the others has a file, these may be the module.
    pub perhaps: Vec<String>,
}

/// Returns the parts of a `package.json` whose order counts.
fn ordered(folder: &str, lookup: &dyn Lookup) -> Manifest {
    let text = lookup.text(&join(folder, "package.json"));
    text.and_then(|text| serde_json::from_str(text.trim_start_matches('\u{feff}')).ok()).unwrap_or_default()
}

/// Returns where a package leads for a subpath (`""` is the package itself).
pub(super) fn entry_points(folder: &str, subpath: &str, asker: &Asker<'_>, lookup: &dyn Lookup) -> Paths {
    let mut paths = Paths::default();
    let manifest = manifest(folder, lookup).unwrap_or_default();
    if manifest.contains_key("exports")
        && let Some(exports) = ordered(folder, lookup).exports
    {
        let key = if subpath.is_empty() { ".".to_owned() } else { format!("./{subpath}") };
        let found = targets_of(&exports, &key, asker);
        let add = |targets: Vec<String>| -> Vec<String> {
            with_sources(folder, targets.iter().filter_map(|target| resolve(folder, target)).collect(), lookup)
        };
        if found.decided || !found.sure.is_empty() || !found.perhaps.is_empty() {
            return Paths { sure: add(found.sure), perhaps: add(found.perhaps), ..Paths::default() };
        }
        // TypeScript and bundlers of old see the folder as it is.
    }
    let named = |name: &str| manifest.get(name).and_then(Value::as_str).and_then(|text| resolve(folder, text));
    if subpath.is_empty() {
        let names = match (asker.typed, asker.requires) {
            (true, _) => ["types", "typings", "main", "module", "source"],
            (false, true) => ["main", "types", "typings", "source", ""],
            (false, false) => ["main", "module", "types", "typings", "source"],
        };
        paths.sure.extend(names.iter().filter_map(|name| named(name)));
        paths.sure.push(join(folder, "index"));
        paths.sure.push(join(folder, "src/index"));
        if !asker.typed && !asker.requires {
            // Node takes `main` where bundlers take `module`.
            paths.rivals.extend(named("module"));
        }
    } else {
        paths.sure.extend(resolve(folder, subpath));
        let inside = join(folder, subpath);
        if lookup.is_file(&join(&inside, "package.json")) {
            let deeper = entry_points(&inside, "", asker, lookup);
            paths.sure.extend(deeper.sure);
            paths.rivals.extend(deeper.rivals);
            paths.perhaps.extend(deeper.perhaps);
        }
    }
    let with = |paths| with_sources(folder, paths, lookup);
    Paths { sure: with(paths.sure), rivals: with(paths.rivals), perhaps: with(paths.perhaps) }
}

/// What `imports` of a package says about a name.
#[derive(Debug)]
pub(super) enum Internal {
    Paths(Paths),
    /// Another package.
    Bare(String),
}

/// Returns what `imports` of a package says about `#name`.
pub(super) fn internal(folder: &str, specifier: &str, asker: &Asker<'_>, lookup: &dyn Lookup) -> Internal {
    let Some(imports) = ordered(folder, lookup).imports else { return Internal::Paths(Paths::default()) };
    let found = targets_of(&imports, specifier, asker);
    if let Some(first) = found.sure.first().filter(|first| !first.starts_with('.')) {
        return Internal::Bare(first.clone());
    }
    let add = |targets: Vec<String>| -> Vec<String> {
        let inside = targets.iter().filter(|target| target.starts_with('.'));
        with_sources(folder, inside.filter_map(|target| resolve(folder, target)).collect(), lookup)
    };
    Internal::Paths(Paths { sure: add(found.sure), perhaps: add(found.perhaps), ..Paths::default() })
}

/// Adds to each path of built output the source that it is built from.
fn with_sources(folder: &str, paths: Vec<String>, lookup: &dyn Lookup) -> Vec<String> {
    let output = output_of(folder, lookup);
    let mut all = Vec::new();
    for path in paths {
        let mut built = Vec::new();
        for out in [&output.out_dir, &output.declaration_dir].into_iter().flatten().filter(|out| !out.is_empty()) {
            if let Some(rest) = path.strip_prefix(out.as_str()).and_then(|rest| rest.strip_prefix('/')) {
                let root = output.root_dir.clone().unwrap_or_else(|| join(folder, "src"));
                built.push(join(&root, rest));
            }
        }
        let inside = path.strip_prefix(folder).map_or(path.as_str(), |rest| rest.trim_start_matches('/'));
        if let Some((first, rest)) = inside.split_once('/')
            && matches!(first, "dist" | "lib" | "build" | "out" | "esm" | "cjs" | "es" | "types")
        {
            built.push(join(folder, &join("src", rest)));
            let mut rest = rest;
            while let Some((next, deeper)) = rest.split_once('/')
                && matches!(next, "esm" | "cjs" | "es" | "types" | "src" | "lib" | "browser" | "node")
            {
                built.push(join(folder, &join("src", deeper)));
                rest = deeper;
            }
        }
        // What is built for one module system keeps only the stem of its source.
        let stems = [".mjs", ".cjs", ".d.mts", ".d.cts"];
        let stripped: Vec<String> = built
            .iter()
            .filter_map(|path| stems.iter().find_map(|ending| path.strip_suffix(ending)).map(str::to_owned))
            .collect();
        all.push(path);
        all.extend(built);
        all.extend(stripped);
    }
    all
}

/// Returns the name that the package of a folder has.
pub(super) fn name_of(folder: &str, lookup: &dyn Lookup) -> Option<String> {
    manifest(folder, lookup)?.get("name")?.as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_patterns() {
        assert_eq!(split_name("@a/b/c/d"), ("@a/b", "c/d"));
        assert_eq!(split_name("a"), ("a", ""));
        assert!(matches("pkg-*", "pkg-one") && !matches("pkg-*", "one") && matches("*", "x") && matches("a*c", "abc"));
        assert_eq!(yaml_list("a:\n  - x\npackages:\n  - 'p/*' # here\n  - \"!q\"\nother:\n  - z\n", "packages"), ["p/*", "!q"]);
    }
}
