//! Go: `.go`.
//!
//! One walk collects ([`extract`]), packages are tables over the surfaces of their files ([`exports`]), and declared types are followed
//! by inference ([`infer`]). Invariant: extraction sees one file's text and nothing else.

mod conditions;
mod exports;
mod extract;
mod infer;
mod modules;
mod repair;
mod resolve;
#[cfg(test)]
mod tests;
mod universe;

use std::sync::Arc;

use super::{Dialect, ExportTable, ExtractError, LanguageSupport, Lookup, ModuleKey, ModuleResolution, text};
use crate::model::{DefinitionKey, FileEdges, FileFacts, ParseStatus, RepoPath, Surface, Target};
use modules::{Package, Part};

/// The language.
pub struct Go;

impl LanguageSupport for Go {
    fn name(&self) -> &'static str {
        "go"
    }

    fn dialect(&self, path: &RepoPath) -> Option<Dialect> {
        modules::is_source(path).then_some("go")
    }

    fn dialects(&self) -> &'static [Dialect] {
        &["go"]
    }

    fn reads_text(&self, path: &RepoPath) -> bool {
        matches!(path.file_name(), "go.mod" | "go.work")
    }

    fn extractor_build(&self) -> &'static str {
        "go-extractor-3 tree-sitter-go-0.25.0"
    }

    fn resolver_build(&self) -> &'static str {
        "go-resolver-3"
    }

    fn is_test(&self, path: &RepoPath) -> bool {
        modules::is_test(path)
    }

    fn is_test_of(&self, test: &RepoPath, source: &RepoPath) -> bool {
        modules::is_test_of(test, source)
    }

    fn is_vendored(&self, path: &RepoPath) -> bool {
        modules::is_vendored(path)
    }

    fn limitations(&self) -> &'static [&'static str] {
        &["go_build_variants_not_selected"]
    }

    fn extract(&self, source: &str, _dialect: Dialect, stop: &mut dyn FnMut() -> bool) -> Result<FileFacts, ExtractError> {
        let mut line_starts = vec![0];
        line_starts.extend(source.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(index, _)| index as u32 + 1));
        line_starts.shrink_to_fit();
        let tree = repair::parse(source, &line_starts, stop)?;
        let root = tree.root_node();
        let parse = if root.has_error() { ParseStatus::Partial } else { ParseStatus::Ok };
        let extracted = extract::extract(source, root, line_starts);
        Ok(FileFacts {
            parse,
            lines: text::count_lines(source),
            generated: text::is_generated(source),
            minified: text::is_minified(source),
            definitions: extracted.definitions,
            headings: Vec::new(),
            surface: Arc::new(extracted.surface),
            body: extracted.body,
        })
    }

    fn context(&self, directory: &str, lookup: &dyn Lookup) -> Arc<str> {
        modules::context(directory, lookup)
    }

    fn module(&self, context: &str, specifier: &str, lookup: &dyn Lookup) -> ModuleResolution {
        modules::module(context, specifier, lookup)
    }

    fn module_of(&self, path: &RepoPath, lookup: &dyn Lookup) -> ModuleKey {
        let part = if modules::is_test(path) { Part::Test } else { Part::Own };
        match Package::of_file(path, lookup) {
            Some(package) => package.key(part),
            None => Package { directory: path.directory().into(), name: "".into() }.key(part),
        }
    }

    fn module_name(&self, path: &RepoPath, lookup: &dyn Lookup) -> Option<Arc<str>> {
        Package::of_file(path, lookup).map(|package| package.name)
    }

    fn export_sources(&self, _module: &ModuleKey, _lookup: &dyn Lookup) -> Vec<ModuleKey> {
        // A package gives away nothing that it imports.
        Vec::new()
    }

    fn solve_exports(&self, component: &[ModuleKey], lookup: &dyn Lookup) -> Vec<ExportTable> {
        component.iter().map(|module| exports::table(module, lookup)).collect()
    }

    fn rebindings(&self, _path: &RepoPath, _surface: &Surface, _lookup: &dyn Lookup) -> Vec<Target> {
        // Functions, methods and types cannot be rebound; a variable stays the variable it is.
        Vec::new()
    }

    fn declared_members(&self, surface: &Surface) -> Vec<(Arc<str>, DefinitionKey)> {
        infer::declared_members(surface)
    }

    fn resolve(&self, path: &RepoPath, facts: &FileFacts, lookup: &dyn Lookup) -> FileEdges {
        resolve::resolve(path, facts, lookup)
    }
}
