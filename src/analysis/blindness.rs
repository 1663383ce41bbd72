//! Lets a test blind the database to one kind of change, so that it can show that it would notice. Without the feature `faults` nothing
//! here does anything.
//!
//! Must not know what the values are. Invariant: unless [`blind`] chose a kind, every value passes as it is.

#[cfg(not(feature = "faults"))]
use std::fmt::Display;

use super::inputs::Db;
use super::question::Kind;

/// A kind of value that a blinded database keeps as it first saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blindness {
    /// Surfaces of files compare equal always.
    Surfaces,
    /// Whether a file was read well.
    ParseStatuses,
    /// Which paths exist.
    Paths,
    /// What stands in which folder.
    Folders,
    /// What files say that configure.
    Texts,
    /// What decides how the files of a folder name modules.
    Contexts,
    /// What a module's name means.
    Modules,
    /// Export tables are not solved again.
    Exports,
    /// What is rebound from outside.
    Rebindings,
    /// Where members of a name are declared.
    Members,
}

#[cfg(feature = "faults")]
impl Blindness {
    /// All of them, with their names.
    pub const ALL: &[(&str, Self)] = &[
        ("surfaces", Self::Surfaces),
        ("parse-statuses", Self::ParseStatuses),
        ("paths", Self::Paths),
        ("folders", Self::Folders),
        ("texts", Self::Texts),
        ("contexts", Self::Contexts),
        ("modules", Self::Modules),
        ("exports", Self::Exports),
        ("rebindings", Self::Rebindings),
        ("members", Self::Members),
    ];
}

/// What one database saw first; empty in a normal build.
#[derive(Default)]
pub(super) struct FirstSeen {
    #[cfg(feature = "faults")]
    values: seam::Values,
}

/// Returns `fresh`, or in a blinded database what was seen first of the same subject.
#[cfg(not(feature = "faults"))]
pub(super) fn see<T>(_db: &dyn Db, _kind: Blindness, _subject: &dyn Display, fresh: T) -> T {
    fresh
}

/// Returns whether traces are not asked about questions of a kind.
#[cfg(not(feature = "faults"))]
pub(super) fn is_blind(_kind: Kind) -> bool {
    false
}

#[cfg(feature = "faults")]
pub use seam::blind;
#[cfg(feature = "faults")]
pub(super) use seam::is_blind;
#[cfg(feature = "faults")]
pub(super) use seam::see;

#[cfg(feature = "faults")]
mod seam {
    use std::any::Any;
    use std::fmt::Display;
    use std::sync::OnceLock;

    use dashmap::DashMap;

    use super::{Blindness, Db, Kind};

    pub(super) type Values = DashMap<String, Box<dyn Any + Send + Sync>>;

    static CHOSEN: OnceLock<Blindness> = OnceLock::new();

    /// Blinds every database of this process, for as long as it lives.
    ///
    /// # Panics
    /// When another kind was chosen before.
    pub fn blind(kind: Blindness) {
        assert_eq!(*CHOSEN.get_or_init(|| kind), kind, "a process is blinded once");
    }

    pub(in crate::analysis) fn is_blind(kind: Kind) -> bool {
        let blindness = match kind {
            Kind::IsFile | Kind::IsDirectory => Blindness::Paths,
            Kind::FilesIn | Kind::DirectoriesIn => Blindness::Folders,
            Kind::ParseStatus => Blindness::ParseStatuses,
            Kind::Surface => Blindness::Surfaces,
            Kind::Text => Blindness::Texts,
            Kind::Context => Blindness::Contexts,
            Kind::Module => Blindness::Modules,
            Kind::Sources | Kind::Component | Kind::Solved | Kind::Exports => Blindness::Exports,
            Kind::Rebindings | Kind::Rebound => Blindness::Rebindings,
            Kind::Members => Blindness::Members,
            Kind::ModuleName | Kind::Edges => return false,
        };
        CHOSEN.get() == Some(&blindness)
    }

    pub(in crate::analysis) fn see<T: Clone + Send + Sync + 'static>(
        db: &dyn Db,
        kind: Blindness,
        subject: &dyn Display,
        fresh: T,
    ) -> T {
        if CHOSEN.get() != Some(&kind) {
            return fresh;
        }
        let first = db.first_seen().values.entry(subject.to_string()).or_insert_with(|| Box::new(fresh.clone()));
        first.downcast_ref::<T>().cloned().unwrap_or(fresh)
    }
}
