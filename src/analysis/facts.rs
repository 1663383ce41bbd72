//! What one file says: its facts, and the parts of them that others may depend on.
//!
//! Must not resolve anything. Invariant: a query here reads one file's input and nothing else.

use std::sync::Arc;

use crate::languages::text::CONFIGURATION;
use crate::model::{FileFacts, ParseStatus, Surface};

use super::blindness::{Blindness, see};
use super::inputs::{ConfigurationFile, Content, Db, SourceFile};

/// Returns the file's facts, a look-up by hash. Not run again when another file changes.
#[salsa::tracked(returns(clone))]
pub(super) fn file_facts(db: &dyn Db, file: SourceFile) -> Option<Arc<FileFacts>> {
    db.note("file_facts", file.path(db));
    match file.content(db) {
        Content::Facts(hash) => db.stored_facts(hash, file.dialect(db)),
        Content::Absent | Content::Failed => None,
    }
}

/// Returns what other files may see of this one. Equal after a plain body edit, so that no other file's query runs again.
#[salsa::tracked(returns(clone))]
pub(super) fn file_surface(db: &dyn Db, file: SourceFile) -> Option<Arc<Surface>> {
    db.note("file_surface", file.path(db));
    let surface = file_facts(db, file).map(|facts| Arc::clone(&facts.surface));
    see(db, Blindness::Surfaces, file.path(db), surface)
}

/// Returns how well the file was read; `None` when the manifest does not include it. Equal while an edit leaves the file as readable.
#[salsa::tracked(returns(copy))]
pub(super) fn file_parse_status(db: &dyn Db, file: SourceFile) -> Option<ParseStatus> {
    db.note("file_parse_status", file.path(db));
    let status = match file.content(db) {
        Content::Absent => None,
        Content::Failed => Some(ParseStatus::Failed),
        Content::Facts(_) => file_facts(db, file).map(|facts| facts.parse),
    };
    see(db, Blindness::ParseStatuses, file.path(db), status)
}

/// Returns the text of a configuration file; `None` when the manifest does not include it. Not run again when another file changes.
#[salsa::tracked(returns(clone))]
pub(super) fn file_text(db: &dyn Db, file: ConfigurationFile) -> Option<Arc<str>> {
    db.note("file_text", file.path(db));
    let text = match file.content(db) {
        Content::Facts(hash) => db.stored_facts(hash, CONFIGURATION).and_then(|facts| facts.surface.text.clone()),
        Content::Absent | Content::Failed => None,
    };
    see(db, Blindness::Texts, file.path(db), text)
}
