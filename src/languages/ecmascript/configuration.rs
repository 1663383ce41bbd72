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

/// Words in the names of configurations that others extend, as far as they are not called like one.
const SHARED: &[&str] = &["base", "compiler", "compileroptions", "shared", "strict", "ts", "typescript"];

/// Returns whether the rules read the text of this file. What a configuration extends may have any name: of these the usual ones are
/// read, and of the rest is known that they were not.
pub(in crate::languages) fn is_configuration(path: &RepoPath) -> bool {
    let name = path.file_name();
    let stem = name.strip_suffix(".json").map(str::to_ascii_lowercase);
    let is_shared = stem.is_some_and(|stem| stem.split(['.', '-', '_']).any(|word| SHARED.contains(&word)));
    if is_shared {
        return true;
    }
    matches!(name, "package.json" | "pnpm-workspace.yaml" | "lerna.json")
        || name.ends_with(".json")
            && (name.contains("tsconfig")
                || name.contains("jsconfig")
                || path.as_str().split('/').any(|part| part.contains("tsconfig")))
}

/// Patterns of `paths`, each with its replacements.
type Patterns = Vec<(String, Vec<String>)>;

/// What decides about module names, with paths from the root of the repository.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Options {
    pub base_url: Option<String>,
    /// Pattern and replacements, the most specific pattern first.
    pub paths: Patterns,
    pub root_dirs: Vec<String>,
    pub conditions: Vec<String>,
    pub suffixes: Vec<String>,
    pub format: Format,
    /// Whether there is a configuration whose text is not read.
    pub incomplete: bool,
}

/// What becomes of the `import` statements of TypeScript.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Format {
    #[default]
    Unknown,
    /// What the package says, as Node does.
    OfPackage,
    Import,
    Require,
    /// A bundler reads them.
    Bundled,
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
    let mut chain = Chain { leaf: parent(path).to_owned(), ..Chain::default() };
    chain.extend(path, lookup);
    let Chain { leaf, mut options, output, paths, module, resolution, .. } = chain;
    if let Some((place, patterns)) = paths {
        let base = options.base_url.clone().unwrap_or(place);
        let targets = |targets: Vec<String>| targets.iter().filter_map(|target| placed(&base, &leaf, target)).collect();
        options.paths = patterns.into_iter().map(|(pattern, list)| (pattern, targets(list))).collect();
    }
    options.format = format_of(module.as_deref(), resolution.as_deref());
    options.paths.sort_by(|left, right| specificity(&right.0).cmp(&specificity(&left.0)).then_with(|| left.0.cmp(&right.0)));
    (options, output)
}

/// Returns what `module` and `moduleResolution` make of `import` statements.
fn format_of(module: Option<&str>, resolution: Option<&str>) -> Format {
    let is_of_package = |text: &str| matches!(text, "node16" | "node18" | "node20" | "nodenext");
    match (resolution, module) {
        (Some("bundler"), _) | (None, Some("preserve")) => Format::Bundled,
        (Some(text), _) if is_of_package(text) => Format::OfPackage,
        (_, Some(text)) if is_of_package(text) => Format::OfPackage,
        (_, Some("commonjs" | "umd" | "amd")) => Format::Require,
        (_, Some(_)) => Format::Import,
        (_, None) => Format::Unknown,
    }
}

/// Returns the path that a configuration of a folder names; `${configDir}` is the folder of the one that extends all others.
fn placed(place: &str, leaf: &str, text: &str) -> Option<String> {
    match text.strip_prefix("${configDir}") {
        Some(rest) => resolve(leaf, rest),
        None => resolve(place, text),
    }
}

/// What a chain of `extends` says, read from its beginning.
#[derive(Default)]
struct Chain {
    leaf: String,
    seen: Vec<String>,
    options: Options,
    output: Output,
    /// `paths` as written, with the folder they are written in.
    paths: Option<(String, Patterns)>,
    module: Option<String>,
    resolution: Option<String>,
}

/// Exact patterns first, then those with the longest text before the star.
fn specificity(pattern: &str) -> (bool, usize) {
    match pattern.find('*') {
        Some(at) => (false, at),
        None => (true, pattern.len()),
    }
}

impl Chain {
    fn extend(&mut self, path: &str, lookup: &dyn Lookup) {
        if self.seen.len() >= MAX_EXTENDS || self.seen.iter().any(|known| known == path) {
            return;
        }
        self.seen.push(path.to_owned());
        self.options.incomplete |= lookup.is_file(path) && lookup.text(path).is_none();
        let Some(whole) = parse(path, lookup) else { return };
        let place = parent(path);
        let bases: Vec<&str> = match whole.get("extends") {
            Some(Value::String(one)) => vec![one],
            Some(Value::Array(list)) => list.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        for base in bases {
            if let Some(base) = base_path(place, base, lookup) {
                self.extend(&base, lookup);
            }
        }
        if let Some(own) = whole.get("compilerOptions").and_then(Value::as_object) {
            self.add(place, own);
        }
    }

    /// Adds what one configuration says itself.
    fn add(&mut self, place: &str, own: &Map<String, Value>) {
        let text = |name: &str| own.get(name).and_then(Value::as_str);
        let texts =
            |name: &str| -> Option<Vec<&str>> { Some(own.get(name)?.as_array()?.iter().filter_map(Value::as_str).collect()) };
        if let Some(base_url) = text("baseUrl") {
            self.options.base_url = placed(place, &self.leaf, base_url);
        }
        if let Some(paths) = own.get("paths").and_then(Value::as_object) {
            let targets = |value: &Value| -> Vec<String> {
                value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
            };
            let patterns = paths.iter().map(|(pattern, value)| (pattern.clone(), targets(value))).collect();
            self.paths = Some((place.to_owned(), patterns));
        }
        if let Some(dirs) = texts("rootDirs") {
            self.options.root_dirs = dirs.into_iter().filter_map(|dir| placed(place, &self.leaf, dir)).collect();
        }
        if let Some(conditions) = texts("customConditions") {
            self.options.conditions = conditions.into_iter().map(str::to_owned).collect();
        }
        if let Some(suffixes) = texts("moduleSuffixes") {
            self.options.suffixes = suffixes.into_iter().map(str::to_owned).collect();
        }
        for (name, slot) in [("module", &mut self.module), ("moduleResolution", &mut self.resolution)] {
            if let Some(text) = text(name) {
                *slot = Some(text.to_ascii_lowercase());
            }
        }
        let output = &mut self.output;
        for (name, slot) in
            [("outDir", &mut output.out_dir), ("declarationDir", &mut output.declaration_dir), ("rootDir", &mut output.root_dir)]
        {
            if let Some(text) = text(name) {
                *slot = placed(place, &self.leaf, text);
            }
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
        assert_eq!(placed("base", "app", "${configDir}/src/*").as_deref(), Some("app/src/*"));
    }
}
