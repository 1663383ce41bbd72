//! The inputs of the database, and what queries may see of the database itself.
//!
//! Must not compare: a setter is called only for what has changed. Invariant: an input is set by [`super::Database::apply`] alone.

use std::sync::Arc;

use crate::languages::{Dialect, LanguageSupport};
use crate::model::{ContentHash, FileFacts, RepoPath};

use super::blindness::FirstSeen;
use super::question::{Execution, Question};
use super::remembered::Remembered;
use super::tree::Tree;

/// Position of a language in the table the database was made with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct LanguageIndex(pub u16);

/// What is known of a file's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// The manifest does not include the file (any more).
    Absent,
    /// Its facts stand in the facts store under this hash.
    Facts(ContentHash),
    /// Its facts could not be made.
    Failed,
}

/// A path of a registered language. Lives as long as the database; a deleted file is [`Content::Absent`].
#[salsa::input]
pub(super) struct SourceFile {
    #[returns(ref)]
    pub path: RepoPath,
    #[returns(copy)]
    pub language: LanguageIndex,
    #[returns(copy)]
    pub dialect: Dialect,
    #[returns(copy)]
    pub content: Content,
}

/// A configuration file that some language reads. Lives as long as the database, as a [`SourceFile`] does.
#[salsa::input]
pub(super) struct ConfigurationFile {
    #[returns(ref)]
    pub path: RepoPath,
    #[returns(copy)]
    pub content: Content,
}

/// Which paths the manifest includes, text files too.
#[salsa::input]
pub(super) struct Inventory {
    #[returns(clone)]
    pub tree: Arc<Tree>,
}

/// What the scope configures.
#[salsa::input]
pub(super) struct Settings {
    #[returns(clone)]
    pub source_roots: Option<Arc<[Arc<str>]>>,
}

/// What queries see of the database beside its inputs. All of it is fixed within a revision: the tables are replaced only by
/// [`super::Database::apply`], and facts are found by content hash, so that reading them here is a function of the inputs.
#[salsa::db]
pub(super) trait Db: salsa::Database {
    fn inventory(&self) -> Inventory;
    fn settings(&self) -> Settings;
    fn language(&self, index: LanguageIndex) -> &'static dyn LanguageSupport;
    /// Returns the input of a path; a caller that gets `None` must ask [`super::tree::is_file`] too, so that it is run again when the path
    /// appears.
    fn source_file(&self, path: &str) -> Option<SourceFile>;
    /// Returns the input of a configuration file, on the terms of [`Self::source_file`].
    fn configuration_file(&self, path: &str) -> Option<ConfigurationFile>;
    /// Returns all source files, by path, absent ones too; a caller must read [`Inventory::tree`].
    fn source_files(&self) -> &[SourceFile];
    fn stored_facts(&self, hash: ContentHash, dialect: Dialect) -> Option<Arc<FileFacts>>;
    /// Notes that a query runs, for tests and `ran` steps of scenarios; free when nobody listens.
    fn note(&self, query: &'static str, subject: &dyn std::fmt::Display);
    /// Returns what a blinded database saw first.
    #[cfg_attr(not(feature = "faults"), expect(dead_code, reason = "only tests blind a database"))]
    fn first_seen(&self) -> &FirstSeen;
    /// Counts a run of `file_edges`.
    fn count_resolution(&self);
    /// Notes what a query that ran has asked.
    fn executed(&self, question: Question, asked: Vec<Question>);
    /// Returns the queries that ran since the last call, in the order they ended.
    fn take_executions(&self) -> Vec<Execution>;
    /// Returns whether most files have not been looked at, so that what is known of them follows from [`Self::remembered`].
    fn is_partial(&self) -> bool;
    /// Returns what is known of all files of a database that is partial. It follows from the inputs, as what is computed does.
    fn remembered(&self) -> Option<Arc<Remembered>>;
    /// Lets [`Self::remembered`] return this while no input changes.
    fn remember(&self, remembered: Remembered);
}
