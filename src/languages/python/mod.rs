//! Python: `.py` and `.pyi`.
//!
//! One walk collects ([`extract`]), scoping binds ([`bind`]), and the rest reads surfaces only. Invariant: extraction sees one file's
//! text and nothing else.

mod bind;
mod exports;
mod extract;
mod infer;
mod library;
mod modules;
mod raw;
mod resolve;
#[cfg(test)]
mod tests;
mod vocabulary;

use std::borrow::Cow;
use std::sync::Arc;

use super::{Dialect, ExportTable, ExtractError, LanguageSupport, Lookup, ModuleKey, ModuleResolution, grammar};
use crate::model::{FileEdges, FileFacts, ParseStatus, RepoPath, Surface, Target};

/// The language.
pub struct Python;

const SOURCE: Dialect = "python";
const CONFTEST: &str = "conftest.py";
const TESTS: &str = "tests.py";
const STUB: Dialect = "python-stub";

impl LanguageSupport for Python {
    fn name(&self) -> &'static str {
        "python"
    }

    fn dialect(&self, path: &RepoPath) -> Option<Dialect> {
        match path.stem_and_suffix().1 {
            Some("py") => Some(SOURCE),
            Some("pyi") => Some(STUB),
            _ => None,
        }
    }

    fn dialects(&self) -> &'static [Dialect] {
        &[SOURCE, STUB]
    }

    fn extractor_build(&self) -> &'static str {
        "python-extractor-7 tree-sitter-python-0.25.0"
    }

    fn resolver_build(&self) -> &'static str {
        "python-resolver-5"
    }

    fn is_test(&self, path: &RepoPath) -> bool {
        let (stem, suffix) = path.stem_and_suffix();
        suffix == Some("py") && (stem.starts_with("test_") || stem.ends_with("_test") || matches!(stem, "tests" | "conftest"))
    }

    fn is_test_of(&self, test: &RepoPath, source: &RepoPath) -> bool {
        if !self.is_test(test) || test.file_name() == CONFTEST {
            return false;
        }
        if source.file_name() == CONFTEST {
            let below = test.directory().strip_prefix(source.directory());
            return below.is_some_and(|rest| source.directory().is_empty() || rest.is_empty() || rest.starts_with('/'));
        }
        // The one file of tests that a package has, as Django begins it.
        if test.file_name() == TESTS {
            return source.directory() == test.directory() && !self.is_test(source);
        }
        let subject = match source.stem_and_suffix().0 {
            "__init__" => source.directory().rsplit('/').next().unwrap_or_default(),
            stem => stem,
        };
        // Tests of a private module rarely bear its underscore.
        let subject = subject.trim_start_matches('_');
        let stem = test.stem_and_suffix().0;
        let of = |stem: Option<&str>| stem.is_some_and(|stem| !stem.is_empty() && stem.trim_start_matches('_') == subject);
        of(stem.strip_prefix("test_")) || of(stem.strip_suffix("_test"))
    }

    fn test_limitations(&self) -> &'static [&'static str] {
        &["fixtures_not_followed", "parametrization_not_followed", "plugins_not_followed"]
    }

    fn limitations(&self) -> &'static [&'static str] {
        &[]
    }

    fn unread(&self, path: &RepoPath) -> Option<&'static str> {
        (path.stem_and_suffix().1 == Some("ipynb")).then_some("notebooks_not_read")
    }

    fn extract(&self, source: &str, _dialect: Dialect, stop: &mut dyn FnMut() -> bool) -> Result<FileFacts, ExtractError> {
        extract_facts(source, stop)
    }

    fn context(&self, directory: &str, lookup: &dyn Lookup) -> Arc<str> {
        modules::context(directory, lookup)
    }

    fn module(&self, context: &str, specifier: &str, lookup: &dyn Lookup) -> ModuleResolution {
        modules::module(context, specifier, lookup)
    }

    fn module_of(&self, path: &RepoPath, lookup: &dyn Lookup) -> ModuleKey {
        modules::module_of(path, lookup)
    }

    fn module_name(&self, path: &RepoPath, lookup: &dyn Lookup) -> Option<Arc<str>> {
        modules::module_name(path, lookup)
    }

    fn export_sources(&self, module: &ModuleKey, lookup: &dyn Lookup) -> Vec<ModuleKey> {
        exports::export_sources(module, lookup)
    }

    fn solve_exports(&self, component: &[ModuleKey], lookup: &dyn Lookup) -> Vec<ExportTable> {
        exports::solve(component, lookup)
    }

    fn rebindings(&self, path: &RepoPath, surface: &Surface, lookup: &dyn Lookup) -> Vec<Target> {
        resolve::rebindings(path, surface, lookup)
    }

    fn resolve(&self, path: &RepoPath, facts: &FileFacts, lookup: &dyn Lookup) -> FileEdges {
        resolve::resolve(path, facts, lookup)
    }
}

/// Makes the facts of one file.
fn extract_facts(source: &str, stop: &mut dyn FnMut() -> bool) -> Result<FileFacts, ExtractError> {
    let text = with_line_feeds(source);
    let tree = grammar::parse(extract::grammar(), text.as_bytes(), stop)?;
    let line_starts = line_starts(source);
    let lines = count_lines(source, &line_starts);
    let root = tree.root_node();
    let parse = if root.has_error() { ParseStatus::Partial } else { ParseStatus::Ok };
    let mut raw = extract::collect(&text, &line_starts, root);
    drop(tree);
    let (generated, minified) = (is_generated(source), is_minified(source, &line_starts));
    let definitions = raw.definitions.clone();
    let (surface, body) = bind::bind(&raw, line_starts.clone());
    raw.definitions.clear();
    Ok(FileFacts { parse, lines, generated, minified, definitions, headings: Vec::new(), surface: Arc::new(surface), body })
}

/// Python ends lines at a lone CR too, the grammar does not: such a CR becomes an LF, which moves nothing.
fn with_line_feeds(source: &str) -> Cow<'_, str> {
    let bytes = source.as_bytes();
    let lone = |index: usize| bytes[index] == b'\r' && bytes.get(index + 1) != Some(&b'\n');
    if !bytes.contains(&b'\r') || !(0..bytes.len()).any(lone) {
        return Cow::Borrowed(source);
    }
    let mut out = String::with_capacity(source.len());
    for (index, character) in source.char_indices() {
        out.push(if character == '\r' && lone(index) { '\n' } else { character });
    }
    Cow::Owned(out)
}

fn line_starts(source: &str) -> Vec<u32> {
    let mut starts = vec![0];
    starts.extend(source.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(index, _)| index as u32 + 1));
    starts.shrink_to_fit();
    starts
}

fn count_lines(source: &str, line_starts: &[u32]) -> u32 {
    let unfinished = !source.is_empty() && !source.ends_with('\n');
    line_starts.len() as u32 - 1 + u32::from(unfinished)
}

/// Returns whether a comment at the head of the file says that a program wrote it.
fn is_generated(source: &str) -> bool {
    source.lines().take(10).filter(|line| line.trim_start().starts_with('#')).any(|line| {
        let line = line.to_ascii_lowercase();
        line.contains("@generated")
            || line.contains("generated by")
            || line.contains("auto-generated")
            || line.contains("autogenerated")
            || line.contains("automatically generated")
            || line.contains("do not edit")
    })
}

fn is_minified(source: &str, line_starts: &[u32]) -> bool {
    let longest = line_starts.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(source.len() as u32);
    longest > 5_000 && source.len() / line_starts.len() > 300
}
