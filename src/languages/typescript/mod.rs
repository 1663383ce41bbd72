//! TypeScript: `.ts`, `.mts`, `.cts`, `.d.ts`, and `.tsx` with a grammar of its own.
//!
//! Must not have rules of its own: they are those of [`super::ecmascript`]. Invariant: a file of this language and one of JavaScript see
//! each other as files of one module system.

use std::sync::Arc;

use super::ecmascript::{self, syntax};
use super::{Dialect, ExportTable, ExtractError, LanguageSupport, Lookup, ModuleKey, ModuleResolution};
use crate::model::{DefinitionKey, FileEdges, FileFacts, RepoPath, Surface, Target};

/// The language.
pub struct TypeScript;

ecmascript::language! {
    TypeScript,
    name: "typescript",
    extractor: "typescript-extractor-5 tree-sitter-typescript-0.23.2",
    dialects: &[syntax::TYPESCRIPT, syntax::TSX, syntax::DECLARATIONS],
    dialect: |path: &RepoPath| {
        let (stem, suffix) = path.stem_and_suffix();
        match suffix {
            Some("ts" | "mts" | "cts") if stem.ends_with(".d") => Some(syntax::DECLARATIONS),
            Some("ts" | "mts" | "cts") => Some(syntax::TYPESCRIPT),
            Some("tsx") => Some(syntax::TSX),
            _ => None,
        }
    },
}
