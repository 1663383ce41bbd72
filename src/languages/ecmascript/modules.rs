//! From module names to files, as the compilers resolve them.
//!
//! Must not know what modules contain. Invariant: a relative name that leads to no file is `Missing`; a bare one that leads nowhere is
//! outside the repository.

use std::borrow::Cow;
use std::sync::Arc;

use super::configuration::{Format, Options, is_below, join, options_of, resolve};
use super::packages::{self, Internal, Paths};
use super::targets::Asker;
use crate::languages::{Lookup, ModuleKey, ModuleResolution};
use crate::model::RepoPath;

/// Between a directory and its options in a context.
const SEPARATOR: char = '\n';

/// The endings of sources, those of types first.
const SOURCES: &[&str] = &[".ts", ".tsx", ".mts", ".cts", ".js", ".jsx", ".mjs", ".cjs"];
const DECLARATIONS: &[&str] = &[".d.ts", ".d.mts", ".d.cts"];

/// What a written ending may stand for in the sources.
const WRITTEN: &[(&str, &[&str])] = &[
    (".js", &[".ts", ".tsx", ".js", ".jsx", ".d.ts"]),
    (".jsx", &[".tsx", ".jsx", ".d.ts"]),
    (".mjs", &[".mts", ".mjs", ".d.mts"]),
    (".cjs", &[".cts", ".cjs", ".d.cts"]),
    (".d.ts", &[".d.ts", ".ts", ".tsx"]),
    (".d.mts", &[".d.mts", ".mts"]),
    (".d.cts", &[".d.cts", ".cts"]),
];

/// Returns the directory and its options, as one text; of a directory with a mark, the packages of the workspace there.
pub(in crate::languages) fn context(directory: &str, lookup: &dyn Lookup) -> Arc<str> {
    if let Some(root) = directory.strip_suffix(packages::PACKAGES) {
        return packages::workspace(root, lookup).into();
    }
    let options = options_of(directory, lookup);
    let options = if options == Options::default() { String::new() } else { serde_json::to_string(&options).unwrap_or_default() };
    format!("{directory}{SEPARATOR}{options}").into()
}

/// How a file asks for a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// `require("…")`; written with the quote before it.
    Required,
    /// `import("…")`; written with the quote after it.
    Called,
    /// A statement, of which the file decides what becomes of it.
    Stated,
}

impl Asked {
    pub fn by(is_import: bool) -> Self {
        if is_import { Self::Called } else { Self::Required }
    }
}

const QUOTES: [char; 3] = ['"', '\'', '`'];

/// Begins a specifier of a package, with what there is to know of who asks.
const ASKER: char = '\u{1}';

/// Returns the specifier by which a file asks for the module that one of its imports writes.
pub(super) fn specifier<'w>(written: &'w str, path: &RepoPath) -> Cow<'w, str> {
    let (text, asked) = match (written.strip_prefix(QUOTES), written.strip_suffix(QUOTES)) {
        (Some(text), _) => (text, Asked::Required),
        (None, Some(text)) => (text, Asked::Called),
        (None, None) => (written, Asked::Stated),
    };
    if text.starts_with('.') || text.starts_with('/') {
        return text.into();
    }
    let ending = path.stem_and_suffix().1.unwrap_or_default();
    let language = if ending.ends_with("ts") || ending == "tsx" { 't' } else { 'j' };
    let how = match (asked, ending) {
        (Asked::Required, _) | (Asked::Stated, "cjs" | "cts") => 'r',
        (Asked::Stated, "ts" | "tsx") => 'p',
        _ => 'i',
    };
    format!("{ASKER}{language}{how}{text}").into()
}

/// Returns the module that a specifier names.
pub(in crate::languages) fn module(context: &str, specifier: &str, lookup: &dyn Lookup) -> ModuleResolution {
    let (directory, options) = context.split_once(SEPARATOR).unwrap_or((context, ""));
    let options: Options = serde_json::from_str(options).unwrap_or_default();
    let mut rest = specifier.chars();
    let (asker, specifier) = match (rest.next(), rest.next(), rest.next()) {
        (Some(ASKER), Some(language), Some(how)) => ((language == 't', how), rest.as_str()),
        _ => ((true, 'i'), specifier),
    };
    let specifier = specifier.split(['?']).next().unwrap_or(specifier);
    if specifier.is_empty() {
        return ModuleResolution::Missing;
    }
    if specifier == "." || specifier == ".." || specifier.starts_with("./") || specifier.starts_with("../") {
        let resolver = Resolver { options: &options, lookup };
        // These name a folder, whatever file has its name.
        let folder = specifier.ends_with('/')
            || specifier.ends_with("/.")
            || specifier.ends_with("/..")
            || matches!(specifier, "." | "..");
        return match resolve(directory, specifier).and_then(|path| resolver.relative(&path, folder)) {
            Some(file) => found(file, lookup),
            // Data and styles are files, but no modules.
            None if resolve(directory, specifier).is_some_and(|path| lookup.is_file(&path)) => ModuleResolution::External,
            None => ModuleResolution::Missing,
        };
    }
    if specifier.starts_with('/') || specifier.contains(':') {
        return ModuleResolution::External;
    }
    let resolver = Resolver { options: &options, lookup };
    let (typed, how) = asker;
    let node = !(typed && options.format == Format::Bundled);
    let ask = |requires| resolver.bare(directory, specifier, &Asker { typed, requires, node, conditions: &options.conditions });
    match (how, options.format) {
        ('r', _) | ('p', Format::Require) => ask(true),
        ('p', Format::OfPackage) => ask(!packages::is_of_modules(directory, lookup)),
        ('p', Format::Unknown) if !packages::is_of_modules(directory, lookup) => either(ask(false), ask(true)),
        _ => ask(false),
    }
}

/// Returns what two ways to ask lead to: where both lead somewhere, it must be the same.
fn either(left: ModuleResolution, right: ModuleResolution) -> ModuleResolution {
    match (left, right) {
        (left, right) if left == right => left,
        (ModuleResolution::Found(left), ModuleResolution::Found(right)) => several(vec![left, right]),
        (found @ (ModuleResolution::Found(_) | ModuleResolution::Ambiguous(_)), _)
        | (_, found @ (ModuleResolution::Found(_) | ModuleResolution::Ambiguous(_))) => found,
        (left, _) => left,
    }
}

fn several(mut modules: Vec<ModuleKey>) -> ModuleResolution {
    modules.sort();
    modules.dedup();
    ModuleResolution::Ambiguous(modules)
}

fn found(file: String, lookup: &dyn Lookup) -> ModuleResolution {
    match RepoPath::parse(&file) {
        Ok(path) => ModuleResolution::Found(module_of(&path, lookup)),
        Err(_) => ModuleResolution::Missing,
    }
}

/// Returns the module of a file: the file itself; declarations beside their source are part of it.
pub(in crate::languages) fn module_of(path: &RepoPath, lookup: &dyn Lookup) -> ModuleKey {
    let text = path.as_str();
    for (declared, sources) in [(".d.ts", [".js", ".jsx"].as_slice()), (".d.mts", &[".mjs"]), (".d.cts", &[".cjs"])] {
        if let Some(stem) = text.strip_suffix(declared) {
            let source = sources.iter().map(|ending| format!("{stem}{ending}")).find(|source| lookup.is_file(source));
            if let Some(source) = source {
                return ModuleKey(source.into());
            }
        }
    }
    ModuleKey(text.into())
}

/// Returns no name: a module of the family is called by its path.
pub(in crate::languages) fn module_name(_path: &RepoPath, _lookup: &dyn Lookup) -> Option<Arc<str>> {
    None
}

/// Returns the file that makes a module.
pub(super) fn file_of(module: &ModuleKey) -> Option<RepoPath> {
    RepoPath::parse(&module.0).ok()
}

/// Returns the declarations beside the source of a module.
pub(super) fn declarations_of(file: &RepoPath, lookup: &dyn Lookup) -> Option<RepoPath> {
    let text = file.as_str();
    for (source, declared) in [(".js", ".d.ts"), (".jsx", ".d.ts"), (".mjs", ".d.mts"), (".cjs", ".d.cts")] {
        if let Some(stem) = text.strip_suffix(source) {
            let path = format!("{stem}{declared}");
            return lookup.is_file(&path).then(|| RepoPath::parse(&path).ok()).flatten();
        }
    }
    None
}

struct Resolver<'a> {
    options: &'a Options,
    lookup: &'a dyn Lookup,
}

impl Resolver<'_> {
    /// A path from the root of the repository, as a file or folder, also by way of `rootDirs`.
    fn relative(&self, path: &str, folder: bool) -> Option<String> {
        if folder {
            return self.folder(path);
        }
        self.path(path).or_else(|| {
            let inside = self.options.root_dirs.iter().filter(|root| is_below(path, root)).max_by_key(|root| root.len())?;
            let rest = path.strip_prefix(inside.as_str())?.trim_start_matches('/');
            self.options.root_dirs.iter().filter(|root| *root != inside).find_map(|root| self.path(&join(root, rest)))
        })
    }

    fn path(&self, path: &str) -> Option<String> {
        self.file(path).or_else(|| self.folder(path))
    }

    fn file(&self, path: &str) -> Option<String> {
        let is_file = |candidate: &String| self.lookup.is_file(candidate);
        if path.is_empty() {
            return None;
        }
        // A declaration is written with its source's ending too, and read beside it.
        for (written, endings) in WRITTEN {
            if let Some(stem) = path.strip_suffix(written)
                && !stem.ends_with('/')
                && !(written.len() < 5 && stem.ends_with(".d"))
            {
                let file = self.suffixed(stem, endings);
                if file.is_some() {
                    return file;
                }
            }
        }
        if SOURCES.iter().any(|ending| path.ends_with(ending)) && is_file(&path.to_owned()) {
            return Some(path.to_owned());
        }
        self.suffixed(path, SOURCES).or_else(|| self.suffixed(path, DECLARATIONS))
    }

    fn suffixed(&self, stem: &str, endings: &[&str]) -> Option<String> {
        let none = [String::new()];
        let suffixes: &[String] = if self.options.suffixes.is_empty() { &none } else { &self.options.suffixes };
        endings.iter().find_map(|ending| {
            suffixes.iter().map(|suffix| format!("{stem}{suffix}{ending}")).find(|candidate| self.lookup.is_file(candidate))
        })
    }

    fn folder(&self, path: &str) -> Option<String> {
        if !self.lookup.is_directory(path) {
            return None;
        }
        if self.lookup.is_file(&join(path, "package.json"))
            && let Some(manifest) = packages::manifest(path, self.lookup)
        {
            for name in ["types", "typings", "module", "main"] {
                let target = manifest.get(name).and_then(|value| value.as_str()).and_then(|text| resolve(path, text));
                let target = target.filter(|target| target != path);
                if let Some(file) = target.and_then(|target| self.file(&target).or_else(|| self.file(&join(&target, "index")))) {
                    return Some(file);
                }
            }
        }
        self.file(&join(path, "index"))
    }

    /// A name that is no path: by `paths`, `baseUrl`, `imports`, the package itself, or a package of the workspace.
    fn bare(&self, directory: &str, specifier: &str, asker: &Asker<'_>) -> ModuleResolution {
        if specifier.starts_with('#')
            && let Some(package) = packages::nearest(directory, self.lookup)
        {
            match packages::internal(&package, specifier, asker, self.lookup) {
                // What is no path is another package, never another such name.
                Internal::Bare(name) if !name.starts_with('#') => return self.bare(directory, &name, asker),
                Internal::Bare(_) => return ModuleResolution::Missing,
                Internal::Paths(paths) => {
                    if let Some(resolution) = self.first(&paths) {
                        return resolution;
                    }
                }
            }
        }
        let pattern = self.options.paths.iter().find_map(|(pattern, targets)| Some((matched(pattern, specifier)?, targets)));
        // Only the best pattern counts, and where one matches, `baseUrl` does not.
        let file = match (pattern, &self.options.base_url) {
            (Some((star, targets)), _) => targets.iter().find_map(|target| self.path(&target.replacen('*', star, 1))),
            (None, Some(base)) => resolve(base, specifier).and_then(|path| self.path(&path)),
            (None, None) => None,
        };
        if let Some(file) = file {
            return found(file, self.lookup);
        }
        let (name, rest) = packages::split_name(specifier);
        let package = self.package(directory, name);
        let resolution =
            package.as_ref().and_then(|package| self.first(&packages::entry_points(package, rest, asker, self.lookup)));
        match resolution {
            Some(resolution) => resolution,
            None if package.is_some() || self.is_own(specifier) => ModuleResolution::Missing,
            // What is not read may say that the name is the repository's own.
            None if self.options.incomplete && !packages::depends(directory, name, self.lookup) => ModuleResolution::Missing,
            None => ModuleResolution::External,
        }
    }

    /// Returns the module that the paths of a package lead to.
    fn first(&self, paths: &Paths) -> Option<ModuleResolution> {
        let module = |file: String| RepoPath::parse(&file).ok().map(|path| module_of(&path, self.lookup));
        let find = |paths: &[String]| paths.iter().find_map(|path| self.path(path)).and_then(module);
        let sure = find(&paths.sure);
        let rival = find(&paths.rivals);
        match (sure, rival) {
            (Some(sure), Some(rival)) if sure != rival => Some(several(vec![sure, rival])),
            (Some(sure), _) => Some(ModuleResolution::Found(sure)),
            (None, _) => find(&paths.perhaps).map(|module| several(vec![module])),
        }
    }

    /// Returns the folder of a package of the repository.
    fn package(&self, directory: &str, name: &str) -> Option<String> {
        let own = packages::nearest(directory, self.lookup);
        if let Some(own) = &own
            && packages::name_of(own, self.lookup).as_deref() == Some(name)
        {
            return Some(own.clone());
        }
        packages::directory_of(directory, name, self.lookup)
    }

    /// Returns whether the repository owns the beginning of a name.
    fn is_own(&self, specifier: &str) -> bool {
        let mut patterns = self.options.paths.iter();
        let by_pattern = patterns.any(|(pattern, _)| pattern.len() > 1 && matched(pattern, specifier).is_some());
        let by_base = || {
            let path = self.options.base_url.as_ref().and_then(|base| resolve(base, specifier));
            path.is_some_and(|path| self.path(&path).is_some())
        };
        by_pattern || specifier.starts_with('#') || by_base()
    }
}

/// Returns what the star of a pattern stands for; `""` without one.
fn matched<'s>(pattern: &str, specifier: &'s str) -> Option<&'s str> {
    match pattern.split_once('*') {
        Some((before, after)) => {
            let rest = specifier.strip_prefix(before)?;
            rest.strip_suffix(after)
        }
        None => (pattern == specifier).then_some(""),
    }
}
