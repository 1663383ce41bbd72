//! Packages of the repository: `package.json`, workspaces, and what a package gives to others.
//!
//! Must not know compiler options beside conditions. Invariant: a package is found by the name that its own `package.json` has.

use serde_json::{Map, Value};

use super::configuration::{above, join, output_of, resolve};
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

/// Returns the paths, without certainty that they exist, to which a package leads for a subpath (`""` is the package itself), best first.
pub(super) fn entry_points(folder: &str, subpath: &str, conditions: &[String], lookup: &dyn Lookup) -> Vec<String> {
    let mut found = Vec::new();
    let manifest = manifest(folder, lookup).unwrap_or_default();
    let mut add = |text: &str| found.extend(resolve(folder, text));
    if let Some(exports) = manifest.get("exports") {
        let key = if subpath.is_empty() { ".".to_owned() } else { format!("./{subpath}") };
        let mut targets = Vec::new();
        exported(exports, &key, conditions, &mut targets);
        for target in &targets {
            add(target);
        }
        if !targets.is_empty() {
            return with_sources(folder, found, lookup);
        }
        // TypeScript and bundlers of old see the folder as it is, and so do sources that were not built yet.
    }
    if subpath.is_empty() {
        for name in ["source", "types", "typings", "module", "main"] {
            if let Some(text) = manifest.get(name).and_then(Value::as_str) {
                add(text);
            }
        }
        found.push(join(folder, "index"));
        found.push(join(folder, "src/index"));
    } else {
        add(subpath);
        let inside = join(folder, subpath);
        if lookup.is_file(&join(&inside, "package.json")) {
            found.extend(entry_points(&inside, "", conditions, lookup));
        }
    }
    with_sources(folder, found, lookup)
}

/// Returns what `imports` of a package says about `#name`.
pub(super) fn internal(folder: &str, specifier: &str, conditions: &[String], lookup: &dyn Lookup) -> Vec<String> {
    let Some(manifest) = manifest(folder, lookup) else { return Vec::new() };
    let Some(imports) = manifest.get("imports") else { return Vec::new() };
    let mut targets = Vec::new();
    exported(imports, specifier, conditions, &mut targets);
    let found = targets.iter().filter(|target| target.starts_with('.')).filter_map(|target| resolve(folder, target)).collect();
    with_sources(folder, found, lookup)
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
        all.push(path);
        all.extend(built);
    }
    all
}

/// Collects the targets of a key of `exports` or `imports`.
fn exported(map: &Value, key: &str, conditions: &[String], found: &mut Vec<String>) {
    let Value::Object(entries) = map else {
        if key == "." {
            chosen(map, "", conditions, found);
        }
        return;
    };
    let has_keys = entries.keys().any(|name| name.starts_with('.') || name.starts_with('#'));
    if !has_keys {
        if key == "." {
            chosen(map, "", conditions, found);
        }
        return;
    }
    if let Some(target) = entries.get(key) {
        return chosen(target, "", conditions, found);
    }
    // The pattern with the longest text before its star.
    let best = entries
        .iter()
        .filter_map(|(pattern, target)| {
            let (before, after) = match pattern.split_once('*') {
                Some(parts) => parts,
                None => (pattern.strip_suffix('/').map(|_| pattern.as_str())?, ""),
            };
            let middle = key.strip_prefix(before)?.strip_suffix(after)?;
            (!middle.is_empty()).then_some((before.len(), pattern.contains('*'), middle, target))
        })
        .max_by_key(|(length, ..)| *length);
    if let Some((_, starred, middle, target)) = best {
        if starred {
            chosen(target, middle, conditions, found);
        } else {
            let mut folders = Vec::new();
            chosen(target, "", conditions, &mut folders);
            found.extend(folders.into_iter().map(|folder| format!("{folder}{middle}")));
        }
    }
}

/// Collects the targets whose conditions hold, in the order of the file.
fn chosen(target: &Value, star: &str, conditions: &[String], found: &mut Vec<String>) {
    match target {
        Value::String(text) => found.push(text.replace('*', star)),
        Value::Array(list) => list.iter().for_each(|entry| chosen(entry, star, conditions, found)),
        Value::Object(map) => {
            let own = map.iter().filter(|(name, _)| conditions.iter().any(|condition| condition == *name));
            let usual = map.iter().filter(|(name, _)| {
                matches!(
                    name.as_str(),
                    "source" | "types" | "import" | "module" | "require" | "node" | "default" | "browser" | "development"
                ) || name.starts_with("types@")
            });
            for (_, target) in own.chain(usual) {
                chosen(target, star, conditions, found);
            }
        }
        _ => {}
    }
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

    #[test]
    fn exports_by_key_condition_and_pattern() {
        let check = |exports: &str, key: &str, expected: &[&str]| {
            let mut found = Vec::new();
            exported(&serde_json::from_str(exports).expect("JSON"), key, &["own".to_owned()], &mut found);
            assert_eq!(found, expected, "{exports} {key}");
        };
        check(r#""./a.js""#, ".", &["./a.js"]);
        check(r#"{"import": "./a.mjs", "own": "./src.ts", "deno": "./no.ts"}"#, ".", &["./src.ts", "./a.mjs"]);
        check(r#"{".": "./a.js", "./*": "./dist/*.js", "./x/*": null}"#, "./x/y", &[]);
        check(r#"{"./*": "./dist/*.js"}"#, "./x/y", &["./dist/x/y.js"]);
        check(r#"{".": "./a.js"}"#, "./b", &[]);
    }
}
