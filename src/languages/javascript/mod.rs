//! JavaScript: `.js`, `.jsx`, `.mjs`, `.cjs`.
//!
//! Must not have rules of its own: they are those of [`super::ecmascript`]. Invariant: a file of this language and one of TypeScript see
//! each other as files of one module system.

use std::sync::Arc;

use super::ecmascript::{self, syntax};
use super::{Dialect, ExportTable, ExtractError, LanguageSupport, Lookup, ModuleKey, ModuleResolution};
use crate::model::{DefinitionKey, FileEdges, FileFacts, RepoPath, Surface, Target};

/// The language.
pub struct JavaScript;

ecmascript::language! {
    JavaScript,
    name: "javascript",
    extractor: "javascript-extractor-5 tree-sitter-javascript-0.25.0",
    dialects: &[syntax::JAVASCRIPT],
    dialect: |path: &RepoPath| match path.stem_and_suffix().1 {
        Some("js" | "jsx" | "mjs" | "cjs") => Some(syntax::JAVASCRIPT),
        _ => None,
    },
}
