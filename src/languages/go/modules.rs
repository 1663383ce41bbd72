//! Which package an import path names: modules, workspaces, replacements.
//!
//! Must not know what packages declare. Invariant: every package found is a directory of the manifest with a source file of its name.

use std::sync::Arc;

use super::conditions::Condition;
use crate::languages::folders::{ancestors, follow, join};
use crate::languages::{Lookup, ModuleKey, ModuleResolution};
use crate::model::RepoPath;

/// Which names of a package a table holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// What other packages see.
    Public,
    /// All that the package itself sees in a build.
    Own,
    /// What its test files add.
    Test,
    /// No names, but the files that make it in a build.
    Files,
}

/// A package: the files of one directory with one package clause.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Package {
    pub directory: Arc<str>,
    pub name: Arc<str>,
}

impl Package {
    /// Returns the key under which the table of a part is asked for. A path holds no colon.
    pub(super) fn key(&self, part: Part) -> ModuleKey {
        let suffix = match part {
            Part::Public => "",
            Part::Own => ":own",
            Part::Test => ":test",
            Part::Files => ":files",
        };
        ModuleKey(format!("{}:{}{suffix}", self.directory, self.name).into())
    }

    pub(super) fn of_key(key: &ModuleKey) -> Option<(Self, Part)> {
        let mut parts = key.0.split(':');
        let (directory, name) = (parts.next()?.into(), parts.next()?.into());
        let part = match parts.next() {
            None => Part::Public,
            Some("own") => Part::Own,
            Some("files") => Part::Files,
            Some(_) => Part::Test,
        };
        Some((Self { directory, name }, part))
    }

    /// Returns the package of a file; `None` when it names none.
    pub(super) fn of_file(path: &RepoPath, lookup: &dyn Lookup) -> Option<Self> {
        let surface = lookup.surface(path)?;
        let name = surface.outline.names.get(surface.module?);
        Some(Self { directory: path.directory().into(), name: name.into() })
    }

    /// Returns the files that make the package in a build, or those of its tests, sorted.
    pub(super) fn files(&self, tests: bool, lookup: &dyn Lookup) -> Vec<RepoPath> {
        let files = lookup.files_in(&self.directory);
        let of_package = |path: &&RepoPath| {
            is_source(path)
                && is_test(path) == tests
                && lookup.surface(path).is_some_and(|surface| {
                    surface.module.is_some_and(|name| surface.outline.names.get(name) == self.name.as_ref())
                })
        };
        files.iter().filter(of_package).cloned().collect()
    }
}

pub(super) fn is_source(path: &RepoPath) -> bool {
    path.as_str().ends_with(".go")
}

pub(super) fn is_test(path: &RepoPath) -> bool {
    path.as_str().ends_with("_test.go")
}

/// Returns whether a test file is named like the source beside it: `x_test.go` to `x.go`, `x_linux_test.go` to `x_linux.go` and `x.go`.
pub(super) fn is_test_of(test: &RepoPath, source: &RepoPath) -> bool {
    let Some(tested) = test.file_name().strip_suffix("_test.go") else { return false };
    let Some(subject) = source.file_name().strip_suffix(".go").filter(|_| !is_test(source)) else { return false };
    let is_of = tested.strip_prefix(subject).is_some_and(|rest| rest.is_empty() || rest.starts_with('_'));
    !subject.is_empty() && is_of && test.directory() == source.directory()
}

/// Returns whether the file is a copy of another module's, kept below a `vendor` folder.
pub(super) fn is_vendored(path: &RepoPath) -> bool {
    let directory = path.directory();
    is_source(path) && (directory.starts_with("vendor/") || directory.contains("/vendor/"))
}

/// What a `go.mod` or `go.work` says, as far as it matters here.
#[derive(Debug, Default, PartialEq, Eq)]
struct ModuleFile {
    module: Option<String>,
    uses: Vec<String>,
    /// Module path and what stands for it, as written.
    replaces: Vec<(String, String)>,
}

fn read(text: &str) -> ModuleFile {
    let mut found = ModuleFile::default();
    let mut block: Option<String> = None;
    for line in text.lines() {
        let line = line.split_once("//").map_or(line, |(code, _)| code).trim();
        if line == ")" {
            block = None;
            continue;
        }
        let mut words: Vec<&str> = line.split_whitespace().collect();
        if words.is_empty() {
            continue;
        }
        let verb = match &block {
            Some(verb) => verb.clone(),
            None => {
                let verb = words.remove(0).to_owned();
                if let Some(verb) = verb.strip_suffix('(').filter(|verb| !verb.is_empty()) {
                    block = Some(verb.to_owned());
                    continue;
                }
                verb
            }
        };
        if words == ["("] {
            block = Some(verb);
            continue;
        }
        let plain = |word: &str| word.trim_matches(['"', '`']).to_owned();
        match (verb.as_str(), &words[..]) {
            ("module", [path, ..]) => found.module = Some(plain(path)),
            ("use", [path, ..]) => found.uses.push(plain(path)),
            ("replace", [old, rest @ ..]) => {
                if let Some(arrow) = rest.iter().position(|word| *word == "=>")
                    && let Some(new) = rest.get(arrow + 1)
                {
                    found.replaces.push((plain(old), plain(new)));
                }
            }
            _ => {}
        }
    }
    found
}

fn module_file(directory: &str, name: &str, lookup: &dyn Lookup) -> Option<ModuleFile> {
    let path = join(directory, name);
    lookup.is_file(&path).then(|| lookup.text(&path).as_deref().map(read).unwrap_or_default())
}

/// Returns the directory of the module that a directory belongs to.
fn module_root<'d>(directory: &'d str, lookup: &dyn Lookup) -> Option<&'d str> {
    ancestors(directory).find(|folder| lookup.is_file(&join(folder, "go.mod")))
}

/// Returns the context of a directory: a line with the root of its module, then a line `path<tab>directory` for each module that its
/// imports may name, the longest path first.
pub(super) fn context(directory: &str, lookup: &dyn Lookup) -> Arc<str> {
    let Some(root) = module_root(directory, lookup) else { return Arc::from("") };
    let Some(own) = module_file(root, "go.mod", lookup) else { return Arc::from("") };
    let mut modules: Vec<(String, String)> = Vec::new();
    let add_replaces = |modules: &mut Vec<(String, String)>, from: &str, file: &ModuleFile| {
        for (old, new) in &file.replaces {
            if new.starts_with('.')
                && let Some(target) = follow(from, new)
            {
                modules.push((old.clone(), target));
            }
        }
    };
    let workspace = ancestors(root).find(|folder| lookup.is_file(&join(folder, "go.work")));
    if let Some(top) = workspace
        && let Some(work) = module_file(top, "go.work", lookup)
    {
        let used: Vec<String> = work.uses.iter().filter_map(|relative| follow(top, relative)).collect();
        if used.iter().any(|folder| folder == root) {
            add_replaces(&mut modules, top, &work);
            for folder in &used {
                if let Some(file) = module_file(folder, "go.mod", lookup) {
                    if let Some(path) = &file.module {
                        modules.push((path.clone(), folder.clone()));
                    }
                    add_replaces(&mut modules, folder, &file);
                }
            }
        }
    }
    if let Some(path) = &own.module {
        modules.push((path.clone(), root.to_owned()));
    }
    add_replaces(&mut modules, root, &own);
    // What was said first of a path holds.
    modules.sort_by(|left, right| right.0.len().cmp(&left.0.len()).then_with(|| left.0.cmp(&right.0)));
    modules.dedup_by(|later, earlier| later.0 == earlier.0);
    let mut text = root.to_owned();
    for (path, folder) in modules {
        text.push_str(&format!("\n{path}\t{folder}"));
    }
    text.into()
}

/// Returns the package that an import path names in a context, as others see it.
pub(super) fn module(context: &str, specifier: &str, lookup: &dyn Lookup) -> ModuleResolution {
    // The first line is the root itself.
    for line in context.split('\n').skip(1) {
        let Some((path, folder)) = line.split_once('\t') else { continue };
        let Some(rest) = specifier.strip_prefix(path) else { continue };
        let rest = match rest.strip_prefix('/') {
            Some(rest) => rest,
            None if rest.is_empty() => "",
            None => continue,
        };
        let directory = join(folder, rest);
        // A module inside a module is another one, which is named only where it is declared.
        if !rest.is_empty() && module_root(&directory, lookup).is_some_and(|owner| owner.len() > folder.len()) {
            continue;
        }
        return match package_in(&directory, lookup) {
            Some(package) => ModuleResolution::Found(package.key(Part::Public)),
            None => ModuleResolution::Missing,
        };
    }
    ModuleResolution::External
}

/// Returns the package of a directory that can be imported.
pub(super) fn package_in(directory: &str, lookup: &dyn Lookup) -> Option<Package> {
    let mut names: Vec<String> = Vec::new();
    for path in lookup.files_in(directory).iter().filter(|path| is_source(path) && !is_test(path)) {
        let Some(surface) = lookup.surface(path) else { continue };
        let Some(name) = surface.module.map(|name| surface.outline.names.get(name)) else { continue };
        let constraint = surface.condition.map(|condition| surface.outline.names.get(condition));
        if name != "documentation" && !Condition::of_file(path.file_name(), constraint).is_ignored() {
            names.push(name.to_owned());
        }
    }
    names.sort();
    names.dedup();
    if names.len() > 1 {
        // A program beside a package is built by itself.
        names.retain(|name| name != "main");
    }
    let last = directory.rsplit('/').next().unwrap_or(directory);
    let name = match names.len() {
        0 => return None,
        1 => names.remove(0),
        _ => names.into_iter().find(|name| name == last)?,
    };
    Some(Package { directory: directory.into(), name: name.into() })
}

/// Returns the name that an import of a package outside the repository most likely binds.
pub(super) fn likely_name(path: &str) -> &str {
    let mut parts = path.rsplit('/');
    let last = parts.next().unwrap_or(path);
    let version = |part: &str| {
        part.strip_prefix('v').is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let last = if version(last) { parts.next().unwrap_or(last) } else { last };
    let last = match last.rsplit_once('.') {
        Some((name, suffix)) if version(suffix) => name,
        _ => last,
    };
    let last = last.strip_prefix("go-").unwrap_or(last);
    last.strip_suffix(".go").or_else(|| last.strip_suffix("-go")).unwrap_or(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn module_files() {
        let found = read(
            "module \"ex.com/a\" // text\n\ngo 1.21\n\nrequire (\n\tx.com/y v1.0.0\n)\n\nreplace x.com/y v1.0.0 => ../y\nreplace (\n\t\
             p => ./q\n\tr => s v1.2.3\n)\nuse (\n\t./a\n\t./b\n)\nuse ./c\n",
        );
        let replaces = [("x.com/y", "../y"), ("p", "./q"), ("r", "s")];
        assert_eq!(found.module.as_deref(), Some("ex.com/a"));
        assert_eq!(found.uses, ["./a", "./b", "./c"]);
        assert_eq!(found.replaces, replaces.map(|(old, new)| (old.to_owned(), new.to_owned())));
        assert_eq!(read("module(\n\tm\n)\n").module.as_deref(), Some("m"));
    }

    #[test]
    fn relative_paths() {
        for (from, path, expected) in
            [("a/b", "../c", Some("a/c")), ("", "./x", Some("x")), ("a", "..", Some("")), ("", "../x", None), ("a", "/x", None)]
        {
            assert_eq!(follow(from, path).as_deref(), expected, "{from} {path}");
        }
    }

    #[test]
    fn likely_names() {
        for (path, expected) in [
            ("a/b", "b"),
            ("a/b/v2", "b"),
            ("gopkg.in/yaml.v3", "yaml"),
            ("x/go-isatty", "isatty"),
            ("fmt", "fmt"),
            ("x/nats.go", "nats"),
        ] {
            assert_eq!(likely_name(path), expected, "{path}");
        }
    }

    #[test]
    fn keys() {
        let package = Package { directory: "a/b".into(), name: "b".into() };
        for part in [Part::Public, Part::Own, Part::Test, Part::Files] {
            assert_eq!(Package::of_key(&package.key(part)), Some((package.clone(), part)));
        }
    }
}
