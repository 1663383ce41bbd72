//! What JavaScript and TypeScript share: one module system, one way to scope names, one set of rules.
//!
//! One walk collects ([`extract`]), scoping binds ([`scoping`]), and the rest reads surfaces only. Invariant: extraction sees one file's
//! text and nothing else; the rules never ask which of the two languages a file is of.

mod bind;
mod configuration;
mod exports;
mod extract;
mod infer;
mod modules;
mod packages;
mod raw;
mod repair;
mod resolve;
mod scoping;
pub(super) mod syntax;
mod targets;
#[cfg(test)]
mod tests;
mod vocabulary;

use std::borrow::Cow;
use std::sync::Arc;

use super::{Dialect, ExtractError, grammar, text};
use crate::model::facts::{Handle, Use};
use crate::model::{DefinitionKey, FileFacts, ParseStatus, RepoPath, Surface};

pub(super) use configuration::is_configuration;
pub(super) use exports::{export_sources, solve as solve_exports};
pub(super) use modules::{context, module, module_name, module_of};
pub(super) use resolve::{rebindings, resolve};

/// The name of the lookup space that the languages of the family share.
pub(super) const FAMILY: &str = "ecmascript";

pub(super) const RESOLVER: &str = "ecmascript-resolver-4";

/// Makes a language of the family.
macro_rules! language {
    ($language:ident, name: $name:literal, extractor: $extractor:literal, dialects: $dialects:expr, dialect: $dialect:expr,) => {
        impl LanguageSupport for $language {
            fn name(&self) -> &'static str {
                $name
            }

            fn family(&self) -> &'static str {
                ecmascript::FAMILY
            }

            fn dialect(&self, path: &RepoPath) -> Option<Dialect> {
                ($dialect)(path)
            }

            fn dialects(&self) -> &'static [Dialect] {
                $dialects
            }

            fn reads_text(&self, path: &RepoPath) -> bool {
                ecmascript::is_configuration(path)
            }

            fn extractor_build(&self) -> &'static str {
                $extractor
            }

            fn resolver_build(&self) -> &'static str {
                ecmascript::RESOLVER
            }

            fn is_test(&self, path: &RepoPath) -> bool {
                ecmascript::is_test(path)
            }

            fn is_test_of(&self, test: &RepoPath, source: &RepoPath) -> bool {
                ecmascript::is_test_of(test, source)
            }

            fn is_vendored(&self, path: &RepoPath) -> bool {
                path.as_str().split('/').any(|folder| matches!(folder, "node_modules" | "bower_components"))
            }

            fn limitations(&self) -> &'static [&'static str] {
                &[]
            }

            fn unread(&self, path: &RepoPath) -> Option<&'static str> {
                ecmascript::unread(path)
            }

            fn extract(&self, source: &str, dialect: Dialect, stop: &mut dyn FnMut() -> bool) -> Result<FileFacts, ExtractError> {
                ecmascript::extract_facts(source, dialect, stop)
            }

            fn context(&self, directory: &str, lookup: &dyn Lookup) -> Arc<str> {
                ecmascript::context(directory, lookup)
            }

            fn module(&self, context: &str, specifier: &str, lookup: &dyn Lookup) -> ModuleResolution {
                ecmascript::module(context, specifier, lookup)
            }

            fn module_of(&self, path: &RepoPath, lookup: &dyn Lookup) -> ModuleKey {
                ecmascript::module_of(path, lookup)
            }

            fn module_name(&self, path: &RepoPath, lookup: &dyn Lookup) -> Option<Arc<str>> {
                ecmascript::module_name(path, lookup)
            }

            fn export_sources(&self, module: &ModuleKey, lookup: &dyn Lookup) -> Vec<ModuleKey> {
                ecmascript::export_sources(module, lookup)
            }

            fn solve_exports(&self, component: &[ModuleKey], lookup: &dyn Lookup) -> Vec<ExportTable> {
                ecmascript::solve_exports(component, lookup)
            }

            fn rebindings(&self, path: &RepoPath, surface: &Surface, lookup: &dyn Lookup) -> Vec<Target> {
                ecmascript::rebindings(path, surface, lookup)
            }

            fn declared_members(&self, surface: &Surface) -> Vec<(Arc<str>, DefinitionKey)> {
                ecmascript::global_names(surface)
            }

            fn resolve(&self, path: &RepoPath, facts: &FileFacts, lookup: &dyn Lookup) -> FileEdges {
                ecmascript::resolve(path, facts, lookup)
            }
        }
    };
}
pub(super) use language;

/// How often a file with syntax that the grammar does not know is read again.
const MAX_REPAIRS: usize = 3;

/// Makes the facts of one file.
pub(super) fn extract_facts(source: &str, dialect: Dialect, stop: &mut dyn FnMut() -> bool) -> Result<FileFacts, ExtractError> {
    let mut grammar = syntax::Grammar::of(dialect);
    let mut tree = grammar::parse(&grammar.language, source.as_bytes(), stop)?;
    let mut read = Cow::Borrowed(source);
    for _ in 0..MAX_REPAIRS {
        if !tree.root_node().has_error() {
            break;
        }
        let Some(repaired) = repair::repaired(&read, &tree) else { break };
        tree = grammar::parse(&grammar.language, repaired.as_bytes(), stop)?;
        read = Cow::Owned(repaired);
    }
    // Annotations of types in JavaScript are those of Flow, which are written like those of TypeScript as a rule.
    if dialect == syntax::JAVASCRIPT && tree.root_node().has_error() {
        let typed = syntax::Grammar::of(syntax::TSX);
        let read = grammar::parse(&typed.language, source.as_bytes(), stop)?;
        if !read.root_node().has_error() {
            (tree, grammar) = (read, typed);
        }
    }
    let line_starts = line_starts(source);
    let root = tree.root_node();
    let parse = if root.has_error() { ParseStatus::Partial } else { ParseStatus::Ok };
    let mut raw = extract::Walk::new(source, &line_starts, grammar, dialect, root).run(root);
    drop(tree);
    let definitions = std::mem::take(&mut raw.definitions);
    let bound = scoping::bind_uses(&mut raw, &definitions);
    let (surface, body) = bind::Binder::new(&raw, &definitions, bound).run(line_starts.clone());
    Ok(FileFacts {
        parse,
        lines: text::count_lines(source),
        generated: text::is_generated(source),
        minified: text::is_minified(source),
        definitions,
        headings: Vec::new(),
        surface: Arc::new(surface),
        body,
    })
}

/// Returns the names that a file gives to every other file: those of a script, which is no module, and of `declare global`.
pub(super) fn global_names(surface: &Surface) -> Vec<(Arc<str>, DefinitionKey)> {
    let outline = &surface.outline;
    let mut names: Vec<_> = match &surface.public {
        Some(_) => {
            let declarations = outline.declarations.iter().filter(|declaration| !declaration.key.qualified.contains('.'));
            declarations.map(|declaration| (Arc::clone(&declaration.key.qualified), declaration.key.clone())).collect()
        }
        None => {
            let bindings: Vec<Handle> = match surface.bound(exports::EVERYWHERE) {
                Some(Use::One(binding)) => vec![binding],
                Some(Use::Many(set)) => {
                    outline.sets.get(set.index()).into_iter().flatten().map(|reaching| reaching.binding).collect()
                }
                _ => return Vec::new(),
            };
            let bindings = bindings.iter().filter_map(|binding| outline.bindings.get(binding.index()));
            let declared = bindings.filter_map(|binding| {
                let declaration = outline.declarations.get(binding.declaration?.index())?;
                Some((Arc::from(outline.names.get(binding.name)), declaration.key.clone()))
            });
            declared.collect()
        }
    };
    names.sort();
    names.dedup();
    names
}

fn line_starts(source: &str) -> Vec<u32> {
    let mut starts = vec![0];
    starts.extend(source.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(index, _)| index as u32 + 1));
    starts.shrink_to_fit();
    starts
}

/// Returns the word for components whose scripts are not read.
pub(super) fn unread(path: &RepoPath) -> Option<&'static str> {
    match path.stem_and_suffix().1 {
        Some("vue") => Some("vue_files_not_read"),
        Some("svelte") => Some("svelte_files_not_read"),
        _ => None,
    }
}

/// Returns whether the file holds tests, by the convention of the test runners.
pub(super) fn is_test(path: &RepoPath) -> bool {
    let name = path.as_str().rsplit('/').next().unwrap_or("");
    let in_folder = path.as_str().split('/').rev().skip(1).any(|folder| folder == "__tests__");
    in_folder || name.contains(".test.") || name.contains(".spec.")
}

/// Returns whether a test file is named like a source: beside it, in a `__tests__` folder there, or at the same place of a tree of tests
/// (`test/a/x.test.js` and `src/a/x.js`). A source that is the index of its folder goes by the folder's name, too.
pub(super) fn is_test_of(test: &RepoPath, source: &RepoPath) -> bool {
    if !is_test(test) || is_test(source) || !is_same_place(test.directory(), source.directory()) {
        return false;
    }
    let tested = ["test", "spec"].into_iter().fold(stem(test), |stem, mark| {
        let cut = |stem: &str| stem.strip_suffix(mark).and_then(|rest| rest.strip_suffix('.')).map(str::to_owned);
        cut(&stem).unwrap_or(stem)
    });
    let subject = stem(source);
    let folder = || source.directory().rsplit('/').next().unwrap_or_default();
    !tested.is_empty() && (tested == subject || (subject == "index" && tested == folder()))
}

/// Returns a file's name without its suffix, that of a declaration whole: `x` of `x.ts` and `x.d.ts`, `x.test` of `x.test.ts`.
fn stem(path: &RepoPath) -> String {
    let stem = path.file_name().rsplit_once('.').map_or("", |(stem, _)| stem);
    stem.strip_suffix(".d").unwrap_or(stem).to_owned()
}

/// Returns whether two folders are the same but for folders that only tell tests from sources.
fn is_same_place(test: &str, source: &str) -> bool {
    let telling = |folder: &&str| !matches!(*folder, "" | "test" | "tests" | "__tests__" | "spec" | "src" | "lib");
    test.split('/').filter(telling).eq(source.split('/').filter(telling))
}
