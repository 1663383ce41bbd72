//! Rust: `.rs`.
//!
//! One walk collects ([`extract`]), modules are tables over the surfaces of their files ([`modules`]), names and declared types are
//! followed by inference ([`infer`]). Invariant: extraction sees one file's text and nothing else, and no macro is expanded.

mod extract;
mod infer;
mod modules;
mod packages;
mod resolve;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use super::{Dialect, ExportTable, ExtractError, LanguageSupport, Lookup, ModuleKey, ModuleResolution, grammar, text};
use crate::model::{DefinitionKey, FileEdges, FileFacts, ParseStatus, RepoPath, Surface, Target};
use modules::{Module, Part};

/// The language.
pub struct Rust;

impl LanguageSupport for Rust {
    fn name(&self) -> &'static str {
        "rust"
    }

    fn dialect(&self, path: &RepoPath) -> Option<Dialect> {
        modules::is_source(path).then_some("rust")
    }

    fn dialects(&self) -> &'static [Dialect] {
        &["rust"]
    }

    fn reads_text(&self, path: &RepoPath) -> bool {
        path.file_name() == "Cargo.toml"
    }

    fn extractor_build(&self) -> &'static str {
        "rust-extractor-4 tree-sitter-rust-0.24.2"
    }

    fn resolver_build(&self) -> &'static str {
        "rust-resolver-3"
    }

    fn is_test(&self, path: &RepoPath) -> bool {
        let stem = stem(path);
        path.directory().split('/').any(|part| part == "tests")
            || matches!(stem, "tests" | "test")
            || stem.ends_with("_test")
            || stem.ends_with("_tests")
    }

    fn is_test_of(&self, test: &RepoPath, source: &RepoPath) -> bool {
        let (tested, own) = (stem(test), stem(source));
        if matches!(tested, "tests" | "test" | "mod") {
            // `a/tests.rs` tests `a.rs`, or `a/mod.rs` and what stands beside it.
            let directory = test.directory();
            let directory = if tested == "mod" { directory.strip_suffix("/tests").unwrap_or(directory) } else { directory };
            return source.directory() == directory || source.as_str() == format!("{directory}.rs");
        }
        let tested = tested.strip_suffix("_tests").or_else(|| tested.strip_suffix("_test")).unwrap_or(tested);
        let tested = tested.strip_prefix("test_").unwrap_or(tested);
        match own {
            "mod" => source.directory().rsplit('/').next() == Some(tested),
            "lib" | "main" => false,
            own => own == tested,
        }
    }

    fn test_limitations(&self) -> &'static [&'static str] {
        &["rust_unit_tests_stand_in_sources"]
    }

    fn limitations(&self) -> &'static [&'static str] {
        &["rust_macros_not_expanded", "rust_cfg_not_evaluated", "rust_generated_sources_not_read"]
    }

    fn extract(&self, source: &str, _dialect: Dialect, stop: &mut dyn FnMut() -> bool) -> Result<FileFacts, ExtractError> {
        let readable = extract::rewrite(source);
        let tree = grammar::parse(extract::language(), readable.as_bytes(), stop)?;
        let root = tree.root_node();
        let parse = if root.has_error() { ParseStatus::Partial } else { ParseStatus::Ok };
        let mut line_starts = vec![0];
        line_starts.extend(source.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(index, _)| index as u32 + 1));
        line_starts.shrink_to_fit();
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
        packages::context(directory, lookup)
    }

    fn module(&self, _context: &str, _specifier: &str, _lookup: &dyn Lookup) -> ModuleResolution {
        // Paths are followed from table to table, not named at once.
        ModuleResolution::External
    }

    fn module_of(&self, path: &RepoPath, _lookup: &dyn Lookup) -> ModuleKey {
        Module::of_file(path).key(Part::Own)
    }

    fn module_name(&self, path: &RepoPath, lookup: &dyn Lookup) -> Option<Arc<str>> {
        modules::name_by_place(path, lookup)
    }

    fn export_sources(&self, _module: &ModuleKey, _lookup: &dyn Lookup) -> Vec<ModuleKey> {
        // An import stays a path in the table, which whoever asks follows.
        Vec::new()
    }

    fn solve_exports(&self, component: &[ModuleKey], lookup: &dyn Lookup) -> Vec<ExportTable> {
        component.iter().map(|module| modules::table(module, lookup)).collect()
    }

    fn rebindings(&self, _path: &RepoPath, _surface: &Surface, _lookup: &dyn Lookup) -> Vec<Target> {
        // Nothing of one module can be bound anew by another.
        Vec::new()
    }

    fn declared_members(&self, surface: &Surface) -> Vec<(Arc<str>, DefinitionKey)> {
        infer::declared_members(surface)
    }

    fn resolve(&self, path: &RepoPath, facts: &FileFacts, lookup: &dyn Lookup) -> FileEdges {
        resolve::resolve(path, facts, lookup)
    }
}

fn stem(path: &RepoPath) -> &str {
    let name = path.file_name();
    name.strip_suffix(".rs").unwrap_or(name)
}
