//! `tsconfig.json` and `jsconfig.json`: how a directory's files name modules.
//!
//! Must not know where packages are. Invariant: a broken or missing file configures nothing; a chain of `extends` ends.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::packages;
use crate::languages::Lookup;
use crate::model::RepoPath;

/// How many files an `extends` chain may have.
const MAX_EXTENDS: usize = 16;

/// Returns whether the rules read the text of this file.
pub(in crate::languages) fn is_configuration(path: &RepoPath) -> bool {
    let name = path.file_name();
    matches!(name, "package.json" | "pnpm-workspace.yaml" | "lerna.json")
        || name.ends_with(".json")
            && (name.contains("tsconfig")
                || name.contains("jsconfig")
                || path.as_str().split('/').any(|part| part.contains("tsconfig")))
}

/// What decides about module names, with paths from the root of the repository.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Options {
    pub base_url: Option<String>,
    /// Pattern and replacements, the most specific pattern first.
    pub paths: Vec<(String, Vec<String>)>,
    pub root_dirs: Vec<String>,
    pub conditions: Vec<String>,
    pub suffixes: Vec<String>,
}

/// Where the output of a project goes, and where it comes from.
#[derive(Clone, Debug, Default)]
pub(super) struct Output {
    pub out_dir: Option<String>,
    pub declaration_dir: Option<String>,
    pub root_dir: Option<String>,
}

/// Returns the options for the files of a directory: those of the nearest configuration.
pub(super) fn options_of(directory: &str, lookup: &dyn Lookup) -> Options {
    let mut at = Some(directory);
    while let Some(place) = at {
        for name in ["tsconfig.json", "jsconfig.json"] {
            let path = join(place, name);
            if lookup.is_file(&path) {
                return read(&governing(&path, directory, lookup), lookup).0;
            }
        }
        at = above(place);
    }
    Options::default()
}

/// Returns where the project of a directory puts its output.
pub(super) fn output_of(directory: &str, lookup: &dyn Lookup) -> Output {
    for name in ["tsconfig.json", "tsconfig.build.json", "tsconfig.lib.json"] {
        let path = join(directory, name);
        if lookup.is_file(&path) {
            let output = read(&path, lookup).1;
            if output.out_dir.is_some() || output.declaration_dir.is_some() {
                return output;
            }
        }
    }
    Output::default()
}

/// A configuration that only refers to others leaves its files to the one of them that includes the directory.
fn governing(path: &str, directory: &str, lookup: &dyn Lookup) -> String {
    let Some(whole) = parse(path, lookup) else { return path.to_owned() };
    let no_files = whole.get("files").and_then(Value::as_array).is_some_and(Vec::is_empty) && whole.get("include").is_none();
    let Some(references) = whole.get("references").and_then(Value::as_array).filter(|_| no_files) else { return path.to_owned() };
    let place = parent(path);
    for reference in references {
        let Some(text) = reference.get("path").and_then(Value::as_str) else { continue };
        let Some(mut target) = resolve(place, text) else { continue };
        if !target.ends_with(".json") {
            target = join(&target, "tsconfig.json");
        }
        let Some(project) = parse(&target, lookup) else { continue };
        let base = parent(&target);
        let includes: Vec<String> = match project.get("include").and_then(Value::as_array) {
            Some(list) => list.iter().filter_map(Value::as_str).filter_map(|entry| resolve(base, fixed_part(entry))).collect(),
            None => vec![base.to_owned()],
        };
        if includes.iter().any(|include| is_below(directory, include)) {
            return target;
        }
    }
    path.to_owned()
}

/// Returns the part of a glob before its first wildcard, whole folders only.
fn fixed_part(glob: &str) -> &str {
    match glob.find(['*', '?']) {
        Some(at) => glob[..at].rsplit_once('/').map_or("", |(folder, _)| folder),
        None => glob,
    }
}

fn read(path: &str, lookup: &dyn Lookup) -> (Options, Output) {
    let mut options = Options::default();
    let mut output = Output::default();
    let mut seen = Vec::new();
    extend(path, lookup, &mut seen, &mut options, &mut output);
    options.paths.sort_by(|left, right| specificity(&right.0).cmp(&specificity(&left.0)).then_with(|| left.0.cmp(&right.0)));
    (options, output)
}

/// Exact patterns first, then those with the longest text before the star.
fn specificity(pattern: &str) -> (bool, usize) {
    match pattern.find('*') {
        Some(at) => (false, at),
        None => (true, pattern.len()),
    }
}

fn extend(path: &str, lookup: &dyn Lookup, seen: &mut Vec<String>, options: &mut Options, output: &mut Output) {
    if seen.len() >= MAX_EXTENDS || seen.iter().any(|known| known == path) {
        return;
    }
    seen.push(path.to_owned());
    let Some(whole) = parse(path, lookup) else { return };
    let place = parent(path);
    let bases: Vec<&str> = match whole.get("extends") {
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(list)) => list.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    for base in bases {
        if let Some(base) = base_path(place, base, lookup) {
            extend(&base, lookup, seen, options, output);
        }
    }
    let Some(own) = whole.get("compilerOptions").and_then(Value::as_object) else { return };
    let text = |name: &str| own.get(name).and_then(Value::as_str);
    let texts = |name: &str| -> Option<Vec<&str>> { Some(own.get(name)?.as_array()?.iter().filter_map(Value::as_str).collect()) };
    if let Some(base_url) = text("baseUrl") {
        options.base_url = resolve(place, base_url);
    }
    if let Some(paths) = own.get("paths").and_then(Value::as_object) {
        let base = options.base_url.clone().unwrap_or_else(|| place.to_owned());
        options.paths = paths
            .iter()
            .map(|(pattern, targets)| {
                let targets = targets.as_array().into_iter().flatten().filter_map(Value::as_str);
                (pattern.clone(), targets.filter_map(|target| resolve(&base, target)).collect())
            })
            .collect();
    }
    if let Some(dirs) = texts("rootDirs") {
        options.root_dirs = dirs.into_iter().filter_map(|dir| resolve(place, dir)).collect();
    }
    if let Some(conditions) = texts("customConditions") {
        options.conditions = conditions.into_iter().map(str::to_owned).collect();
    }
    if let Some(suffixes) = texts("moduleSuffixes") {
        options.suffixes = suffixes.into_iter().map(str::to_owned).collect();
    }
    for (name, slot) in
        [("outDir", &mut output.out_dir), ("declarationDir", &mut output.declaration_dir), ("rootDir", &mut output.root_dir)]
    {
        if let Some(text) = text(name) {
            *slot = resolve(place, text);
        }
    }
}

/// Returns the file that an `extends` names.
fn base_path(place: &str, text: &str, lookup: &dyn Lookup) -> Option<String> {
    let candidates = if text.starts_with('.') || text.starts_with('/') {
        let target = resolve(place, text)?;
        vec![target.clone(), format!("{target}.json"), join(&target, "tsconfig.json")]
    } else {
        // A package of the workspace.
        let (name, rest) = packages::split_name(text);
        let directory = packages::directory_of(place, name, lookup)?;
        let target = if rest.is_empty() { directory } else { join(&directory, rest) };
        vec![target.clone(), format!("{target}.json"), join(&target, "tsconfig.json")]
    };
    candidates.into_iter().find(|candidate| candidate.ends_with(".json") && lookup.is_file(candidate))
}

/// Reads a file of JSON with comments and commas at the end of lists.
fn parse(path: &str, lookup: &dyn Lookup) -> Option<Map<String, Value>> {
    let text = lookup.text(path)?;
    match serde_json::from_str(&without_comments(&text)) {
        Ok(Value::Object(map)) => Some(map),
        _ => None,
    }
}

/// Returns the text without comments and trailing commas; what stands in strings stays.
fn without_comments(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text.strip_prefix('\u{feff}').unwrap_or(text);
    while let Some(first) = rest.chars().next() {
        if first == '"' {
            let mut escaped = false;
            let end = rest[1..].find(|character| {
                let ends = character == '"' && !escaped;
                escaped = character == '\\' && !escaped;
                ends
            });
            let end = end.map_or(rest.len(), |end| end + 2);
            out.push_str(&rest[..end]);
            rest = &rest[end..];
        } else if rest.starts_with("//") {
            rest = rest.find('\n').map_or("", |end| &rest[end..]);
        } else if rest.starts_with("/*") {
            rest = rest.find("*/").map_or("", |end| &rest[end + 2..]);
        } else {
            if matches!(first, '}' | ']') {
                let kept = out.trim_end().len();
                if out[..kept].ends_with(',') {
                    out.truncate(kept - 1);
                }
            }
            out.push(first);
            rest = &rest[first.len_utf8()..];
        }
    }
    out
}

// ---- paths

/// Returns the folder of a path.
pub(super) fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// Returns the folder above a folder; `None` above the root.
pub(super) fn above(folder: &str) -> Option<&str> {
    if folder.is_empty() { None } else { Some(parent(folder)) }
}

pub(super) fn join(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}

/// Returns whether a path is a folder or below it.
pub(super) fn is_below(path: &str, folder: &str) -> bool {
    folder.is_empty() || path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Resolves `.` and `..`; `None` when that leads out of the repository.
pub(super) fn resolve(folder: &str, relative: &str) -> Option<String> {
    let mut parts: Vec<&str> = if folder.is_empty() { Vec::new() } else { folder.split('/').collect() };
    for part in relative.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_trailing_commas() {
        let text = "\u{feff}{ // one\n \"a\": \"x // \\\" y\", /* two */ \"b\": [1, 2, ], }";
        let value: Value = serde_json::from_str(&without_comments(text)).expect("plain JSON now");
        assert_eq!(value["a"], "x // \" y");
        assert_eq!(value["b"][1], 2);
    }

    #[test]
    fn paths() {
        assert_eq!(resolve("a/b", "../c/./d").as_deref(), Some("a/c/d"));
        assert_eq!(resolve("a", "../../x"), None);
        assert_eq!(resolve("", "./src").as_deref(), Some("src"));
        assert_eq!(fixed_part("src/**/*.ts"), "src");
        assert!(is_below("src/a", "src") && !is_below("src2", "src"));
    }
}
