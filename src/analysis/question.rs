//! What a query asks of others, as a value: the trace of a query is the list of what it asked when it ran.
//!
//! Must not know who asks. Invariant: a query is a function of the answers to its trace, so that it gives the same while they are the same.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use salsa::Id;
use salsa::plumbing::{AsId, FromId};

use crate::languages::Dialect;
use crate::languages::text::CONFIGURATION;
use crate::model::{ContentHash, FileFacts, ParseStatus, codec};

use super::edges::{MemberName, members_named, rebindings, rebound_in};
use super::inputs::{ConfigurationFile, Content, Db, LanguageIndex, SourceFile};
use super::modules::{self, Directory, Module, Specifier};
use super::tree::{self, AskedPath};

/// What is asked, of a subject of its own kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub(super) enum Kind {
    IsFile,
    IsDirectory,
    FilesIn,
    DirectoriesIn,
    ParseStatus,
    Surface,
    Text,
    Context,
    Module,
    Sources,
    /// Which modules are solved with this one.
    Component,
    /// The tables of a whole component, by its first member.
    Solved,
    Exports,
    Rebindings,
    Rebound,
    Members,
    ModuleName,
    /// What the references of a file come to; nobody asks this.
    Edges,
}

impl Kind {
    pub(super) const ALL: [Self; 18] = [
        Self::IsFile,
        Self::IsDirectory,
        Self::FilesIn,
        Self::DirectoriesIn,
        Self::ParseStatus,
        Self::Surface,
        Self::Text,
        Self::Context,
        Self::Module,
        Self::Sources,
        Self::Component,
        Self::Solved,
        Self::Exports,
        Self::Rebindings,
        Self::Rebound,
        Self::Members,
        Self::ModuleName,
        Self::Edges,
    ];

    /// Returns whether the answer follows from which paths there are, and nothing else.
    pub(super) fn is_of_paths(self) -> bool {
        matches!(self, Self::IsFile | Self::IsDirectory | Self::FilesIn | Self::DirectoriesIn)
    }

    /// Returns whether the answer follows from one file's content, and nothing else.
    pub(super) fn is_of_content(self) -> bool {
        matches!(self, Self::ParseStatus | Self::Surface | Self::Text)
    }

    /// Returns whether the query that answers has a trace.
    pub(super) fn has_trace(self) -> bool {
        !self.is_of_paths() && !self.is_of_content() && !matches!(self, Self::Rebound | Self::Members)
    }
}

/// A question of one database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Question {
    pub kind: Kind,
    id: Id,
}

/// A question that means the same in every process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Subject<T> {
    pub kind: Kind,
    /// Position of the language that asks; 0 where that does not matter.
    pub language: u16,
    pub text: T,
    /// Of a module's name, the text within the context `text`; else as `text`.
    pub inner: T,
}

/// The leading half of a digest of an answer.
pub(super) type AnswerDigest = [u8; 16];

/// A query ran, and asked this.
#[derive(Debug)]
pub(super) struct Execution {
    pub question: Question,
    pub asked: Vec<Question>,
}

impl Question {
    pub(super) fn new(kind: Kind, subject: impl AsId) -> Self {
        Self { kind, id: subject.as_id() }
    }

    /// Returns the question in words.
    pub(super) fn subject<'db>(self, db: &'db dyn Db) -> Subject<&'db str> {
        let of = |language: Option<LanguageIndex>, text: &'db str, inner: &'db str| Subject {
            kind: self.kind,
            language: language.map_or(0, |language| language.0),
            text,
            inner,
        };
        match self.kind {
            Kind::IsFile | Kind::IsDirectory | Kind::FilesIn | Kind::DirectoriesIn => {
                let text = AskedPath::from_id(self.id).text(db);
                of(None, text, text)
            }
            Kind::ParseStatus | Kind::Surface | Kind::Rebindings | Kind::Rebound | Kind::ModuleName | Kind::Edges => {
                let text = SourceFile::from_id(self.id).path(db).as_str();
                of(None, text, text)
            }
            Kind::Text => {
                let text = ConfigurationFile::from_id(self.id).path(db).as_str();
                of(None, text, text)
            }
            Kind::Context => {
                let directory = Directory::from_id(self.id);
                of(Some(directory.language(db)), directory.path(db), directory.path(db))
            }
            Kind::Module => {
                let specifier = Specifier::from_id(self.id);
                of(Some(specifier.language(db)), specifier.context(db), specifier.text(db))
            }
            Kind::Sources | Kind::Component | Kind::Solved | Kind::Exports => {
                let module = Module::from_id(self.id);
                of(Some(module.language(db)), &module.key(db).0, &module.key(db).0)
            }
            Kind::Members => {
                let name = MemberName::from_id(self.id);
                of(Some(name.language(db)), name.text(db), name.text(db))
            }
        }
    }
}

/// Returns the digest of what a question is answered now. Contents are asked for here and not by a query: the database is to remember nothing of
/// a file that is gone, which may come back.
pub(super) fn answer(db: &dyn Db, subject: Subject<&str>) -> AnswerDigest {
    let Subject { kind, language, text, inner } = subject;
    let language = LanguageIndex(language);
    let path = || AskedPath::new(db, text);
    let module = || Module::new(db, language, modules::key_of(text));
    match kind {
        Kind::IsFile => digest(&tree::is_file(db, path())),
        Kind::IsDirectory => digest(&tree::is_directory(db, path())),
        Kind::FilesIn => digest(&tree::files_in(db, path())),
        Kind::DirectoriesIn => digest(&tree::directories_in(db, path())),
        Kind::ParseStatus => digest(&db.source_file(text).and_then(|file| status(db, file.content(db), file.dialect(db)))),
        Kind::Surface => {
            let facts = db.source_file(text).and_then(|file| facts(db, file.content(db), file.dialect(db)));
            facts.map_or([0; 16], |facts| half(codec::surface_digest(&facts.surface)))
        }
        Kind::Text => {
            let facts = db.configuration_file(text).and_then(|file| facts(db, file.content(db), CONFIGURATION));
            digest(&facts.and_then(|facts| facts.surface.text.clone()))
        }
        Kind::Context => digest(&modules::context(db, Directory::new(db, language, text))),
        Kind::Module => digest(&modules::module(db, Specifier::new(db, language, text, inner))),
        Kind::Sources => digest(&modules::export_sources(db, module())),
        Kind::Component => digest(modules::component(db, module()).members(db)),
        Kind::Solved => {
            modules::solve_below(db, module());
            digest(&modules::solve_exports(db, modules::component(db, module())))
        }
        Kind::Exports => {
            modules::solve_below(db, module());
            digest(&modules::export_table(db, module()))
        }
        Kind::Rebindings => digest(&db.source_file(text).map(|file| rebindings(db, file))),
        Kind::Rebound => digest(&db.source_file(text).map(|file| rebound_in(db, file)).unwrap_or_default()),
        Kind::Members => digest(&members_named(db, MemberName::new(db, language, text))),
        Kind::ModuleName => digest(&db.source_file(text).and_then(|file| modules::file_module_name(db, file))),
        Kind::Edges => [0; 16],
    }
}

/// Returns the facts of a content, past all queries.
pub(super) fn facts(db: &dyn Db, content: Content, dialect: Dialect) -> Option<Arc<FileFacts>> {
    match content {
        Content::Facts(hash) => db.stored_facts(hash, dialect),
        Content::Absent | Content::Failed => None,
    }
}

fn status(db: &dyn Db, content: Content, dialect: Dialect) -> Option<ParseStatus> {
    match content {
        Content::Absent => None,
        Content::Failed => Some(ParseStatus::Failed),
        Content::Facts(_) => facts(db, content, dialect).map(|facts| facts.parse),
    }
}

fn half(digest: ContentHash) -> AnswerDigest {
    let mut half = [0; 16];
    half.copy_from_slice(&digest.0[..16]);
    half
}

fn digest(value: &impl Hash) -> AnswerDigest {
    let mut bytes = Bytes(Vec::new());
    value.hash(&mut bytes);
    half(ContentHash::of(&bytes.0))
}

/// Everything that a value feeds a hasher, end to end; derived implementations tell where each part ends.
struct Bytes(Vec<u8>);

impl Hasher for Bytes {
    fn write(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    fn finish(&self) -> u64 {
        0
    }
}
