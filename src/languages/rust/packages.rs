//! Packages: what `Cargo.toml` says about crates, their roots and the crates they may name.
//!
//! Must not read a source. Invariant: only a manifest in the repository makes a name mean a crate of it; all other crates are outside.

use std::collections::BTreeMap;
use std::sync::Arc;

use toml::{Table, Value};

use crate::languages::Lookup;
use crate::languages::folders::{ancestors, follow, join};

/// One package as its files see it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Package {
    /// Where its manifest is.
    pub directory: String,
    /// The root of its library, and the name that others give it.
    pub library: Option<(String, String)>,
    /// Where roots of its crates are by what the manifest says, the library's included, sorted. Not all of them need be there.
    pub roots: Vec<String>,
    /// The directories whose files, and whose directories with a `main.rs`, are roots without being named.
    pub folders: Vec<String>,
    /// The names of other crates of the repository, with the roots of their libraries.
    pub crates: BTreeMap<String, String>,
    /// The names of crates from outside.
    pub outside: Vec<String>,
}

impl Package {
    /// Returns whether a file is the root of a crate.
    pub(super) fn is_root(&self, path: &str) -> bool {
        let is_below = |folder: &String| {
            let Some(rest) = path.strip_prefix(folder.as_str()).and_then(|rest| rest.strip_prefix('/')) else { return false };
            !rest.contains('/') || rest.split_once('/').is_some_and(|(_, file)| file == "main.rs")
        };
        self.roots.iter().any(|root| root == path) || self.folders.iter().any(is_below)
    }
}

fn manifest(directory: &str, lookup: &dyn Lookup) -> Option<Table> {
    lookup.text(&join(directory, "Cargo.toml"))?.parse().ok()
}

/// Returns the context of a directory: its package, encoded; empty where there is none.
pub(super) fn context(directory: &str, lookup: &dyn Lookup) -> Arc<str> {
    if let Some(table) = manifest(directory, lookup)
        && table.contains_key("package")
    {
        return encode(&read(directory, &table, lookup)).into();
    }
    // So each manifest is read for one directory, and not for all below it.
    match ancestors(directory).nth(1) {
        Some(above) => lookup.context(above),
        None => Arc::from(""),
    }
}

/// Returns whether a word can name a crate in a source.
fn is_name(word: &str) -> bool {
    !word.is_empty() && word.chars().all(|letter| letter == '_' || letter.is_alphanumeric())
}

/// Returns whether a path can stand in a context.
fn is_plain(path: &str) -> bool {
    !path.chars().any(char::is_control)
}

/// Writes a context; what cannot stand in one is left out.
fn encode(package: &Package) -> String {
    if !is_plain(&package.directory) {
        return String::new();
    }
    let mut text = format!("package\t{}\n", package.directory);
    if let Some((root, name)) = package.library.as_ref().filter(|(root, name)| is_plain(root) && is_name(name)) {
        text.push_str(&format!("library\t{root}\t{name}\n"));
    }
    for root in package.roots.iter().filter(|root| is_plain(root)) {
        text.push_str(&format!("root\t{root}\n"));
    }
    for folder in &package.folders {
        text.push_str(&format!("folder\t{folder}\n"));
    }
    for (name, root) in package.crates.iter().filter(|(name, root)| is_name(name) && is_plain(root)) {
        text.push_str(&format!("crate\t{name}\t{root}\n"));
    }
    for name in package.outside.iter().filter(|name| is_name(name)) {
        text.push_str(&format!("outside\t{name}\n"));
    }
    text
}

/// Reads a context.
pub(super) fn decode(context: &str) -> Option<Package> {
    let mut package = Package::default();
    for line in context.lines() {
        let parts: Vec<&str> = line.split('\t').collect();
        match parts[..] {
            ["package", directory] => directory.clone_into(&mut package.directory),
            ["library", root, name] => package.library = Some((root.to_owned(), name.to_owned())),
            ["root", root] => package.roots.push(root.to_owned()),
            ["folder", folder] => package.folders.push(folder.to_owned()),
            ["crate", name, root] => drop(package.crates.insert(name.to_owned(), root.to_owned())),
            ["outside", name] => package.outside.push(name.to_owned()),
            _ => {}
        }
    }
    (!context.is_empty()).then_some(package)
}

fn string<'t>(table: &'t Table, key: &str) -> Option<&'t str> {
    table.get(key)?.as_str()
}

/// Returns the library of the package in a directory: its root, and its name.
fn library(directory: &str, table: &Table, lookup: &dyn Lookup) -> Option<(String, String)> {
    let own = table.get("lib").and_then(Value::as_table);
    let path = own.and_then(|own| string(own, "path")).unwrap_or("src/lib.rs");
    let root = follow(directory, path)?;
    let package = table.get("package").and_then(Value::as_table)?;
    let name = own.and_then(|own| string(own, "name")).or_else(|| string(package, "name"))?;
    lookup.is_file(&root).then(|| (root, name.replace('-', "_")))
}

fn read(directory: &str, table: &Table, lookup: &dyn Lookup) -> Package {
    let mut package = Package { directory: directory.to_owned(), ..Package::default() };
    package.library = library(directory, table, lookup);
    package.roots.extend(package.library.iter().map(|(root, _)| root.clone()));
    let own = table.get("package").and_then(Value::as_table);
    let automatic = |key: &str| own.and_then(|own| own.get(key)).and_then(Value::as_bool).unwrap_or(true);
    for (key, folder, switch) in [
        ("bin", "src/bin", "autobins"),
        ("test", "tests", "autotests"),
        ("example", "examples", "autoexamples"),
        ("bench", "benches", "autobenches"),
    ] {
        let folder = join(directory, folder);
        for target in table.get(key).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_table) {
            match (string(target, "path"), string(target, "name")) {
                (Some(path), _) => package.roots.extend(follow(directory, path)),
                (None, Some(name)) => {
                    package.roots.push(format!("{folder}/{name}.rs"));
                    package.roots.push(format!("{folder}/{name}/main.rs"));
                }
                (None, None) => {}
            }
        }
        if automatic(switch) {
            package.folders.push(folder);
        }
    }
    if automatic("autobins") {
        package.roots.push(join(directory, "src/main.rs"));
    }
    let build = own.and_then(|own| string(own, "build")).unwrap_or("build.rs");
    package.roots.extend(follow(directory, build));
    package.roots.sort();
    package.roots.dedup();
    dependencies(directory, table, lookup, &mut package);
    package
}

fn dependencies(directory: &str, table: &Table, lookup: &dyn Lookup, package: &mut Package) {
    // The workspace is the nearest manifest around that declares one.
    let workspace = ancestors(directory)
        .find_map(|above| manifest(above, lookup).filter(|table| table.contains_key("workspace")).map(|table| (above, table)));
    let shared = |name: &str| {
        let (at, table) = workspace.as_ref()?;
        let entry = table.get("workspace")?.as_table()?.get("dependencies")?.as_table()?.get(name)?.as_table()?;
        Some((*at, entry))
    };
    let patched = |name: &str| {
        let (at, table) = workspace.as_ref().map_or((directory, table), |(at, table)| (*at, table));
        let entry = table.get("patch")?.as_table()?.values().find_map(|source| source.as_table()?.get(name)?.as_table())?;
        Some((at, entry))
    };
    let mut tables: Vec<&Table> = Vec::new();
    for key in ["dependencies", "dev-dependencies", "build-dependencies"] {
        tables.extend(table.get(key).and_then(Value::as_table));
        for target in table.get("target").and_then(Value::as_table).into_iter().flat_map(Table::values) {
            tables.extend(target.as_table().and_then(|target| target.get(key)).and_then(Value::as_table));
        }
    }
    for (name, entry) in tables.into_iter().flatten() {
        let called = name.replace('-', "_");
        let entry = entry.as_table();
        let by_workspace = entry.is_some_and(|entry| entry.get("workspace").and_then(Value::as_bool) == Some(true));
        let (at, entry) = if by_workspace {
            match shared(name) {
                Some((at, shared)) => (at, Some(shared)),
                None => (directory, None),
            }
        } else {
            (directory, entry)
        };
        let real = entry.and_then(|entry| string(entry, "package")).unwrap_or(name);
        let path = entry.and_then(|entry| string(entry, "path")).map(|path| (at, path));
        let path = path.or_else(|| patched(real).and_then(|(at, entry)| Some((at, string(entry, "path")?))));
        let root = path
            .and_then(|(at, path)| follow(at, path))
            .and_then(|inner| manifest(&inner, lookup).and_then(|table| library(&inner, &table, lookup)));
        match root {
            Some((root, own_name)) => {
                // The key of the table is its own name unless it is another package's.
                let renamed = entry.is_some_and(|entry| entry.contains_key("package"));
                package.crates.insert(if renamed { called } else { own_name }, root);
            }
            None => package.outside.push(called),
        }
    }
    package.outside.sort();
    package.outside.dedup();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contexts_come_back_as_they_were() {
        let package = Package {
            directory: "a".to_owned(),
            library: Some(("a/src/lib.rs".to_owned(), "a_b".to_owned())),
            roots: vec!["a/src/lib.rs".to_owned(), "a/odd/x.rs".to_owned()],
            folders: vec!["a/tests".to_owned()],
            crates: [("c".to_owned(), "c/src/lib.rs".to_owned())].into(),
            outside: vec!["serde".to_owned()],
        };
        assert_eq!(decode(&encode(&package)), Some(package));
        assert_eq!(decode(""), None);
    }

    #[test]
    fn names_that_are_none_say_nothing() {
        let package = Package {
            library: Some(("src/lib.rs".to_owned(), "a\ncrate\tstd\tevil.rs".to_owned())),
            roots: vec!["x\ty.rs".to_owned()],
            crates: [("c\td".to_owned(), "c.rs".to_owned()), ("d".to_owned(), "d\n.rs".to_owned())].into(),
            outside: vec!["a\nroot\tb.rs".to_owned(), String::new(), "kept".to_owned()],
            ..Package::default()
        };
        assert_eq!(encode(&package), "package\t\noutside\tkept\n");
        assert_eq!(encode(&Package { directory: "a\nb".to_owned(), ..package }), "");
    }

    #[test]
    fn roots_are_known_by_where_they_are() {
        let package = Package { roots: vec!["b.rs".to_owned()], folders: vec!["a/tests".to_owned()], ..Package::default() };
        for (path, is_root) in [
            ("b.rs", true),
            ("a/tests/x.rs", true),
            ("a/tests/x/main.rs", true),
            ("a/tests/x/mod.rs", false),
            ("a/tests/x/y/main.rs", false),
            ("a/testsx.rs", false),
        ] {
            assert_eq!(package.is_root(path), is_root, "{path}");
        }
    }

    #[test]
    fn paths_that_leave_the_repository_lead_nowhere() {
        assert_eq!(follow("a/b", "../c"), Some("a/c".to_owned()));
        assert_eq!(follow("a", "../../c"), None);
        assert_eq!(follow("a", "/c"), None);
    }
}
