//! What a reference means, and the edges and the diagnostic that come of it.
//!
//! Must not know how a meaning is found. Invariant: an edge is `resolved_static` only when its meaning has no reason against it and no
//! file involved was read in part; a reference whose meaning has one leaves a diagnostic.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::Lookup;
use crate::model::facts::{Body, Reference};
use crate::model::{Diagnostic, Edge, FileEdges, ParseStatus, Reason, RepoPath, Resolution, Target};

/// What a reference means.
#[derive(Clone)]
pub(super) struct Meaning {
    pub targets: SmallVec<[Target; 2]>,
    pub rule: &'static str,
    /// Why it is not certain; `None` makes the one target `resolved_static`.
    pub reason: Option<Reason>,
}

impl Meaning {
    pub(super) fn nothing(reason: Reason) -> Self {
        Self { targets: SmallVec::new(), rule: "", reason: Some(reason) }
    }
}

/// Collects what the references of one file come to.
pub(super) struct Outcome<'a> {
    body: &'a Body,
    lookup: &'a dyn Lookup,
    /// Whether the file itself was read in part.
    partial: bool,
    partial_files: FxHashMap<RepoPath, bool>,
    edges: Vec<Edge>,
    diagnostics: Vec<Diagnostic>,
}

impl<'a> Outcome<'a> {
    pub(super) fn new(body: &'a Body, partial: bool, lookup: &'a dyn Lookup) -> Self {
        Self { body, lookup, partial, partial_files: FxHashMap::default(), edges: Vec::new(), diagnostics: Vec::new() }
    }

    fn is_partial(&mut self, file: &RepoPath) -> bool {
        if let Some(known) = self.partial_files.get(file) {
            return *known;
        }
        let partial = self.lookup.parse_status(file) == Some(ParseStatus::Partial);
        self.partial_files.insert(file.clone(), partial);
        partial
    }

    /// Adds what a reference means; `to_files` says whether a module that it means has an edge of its own.
    pub(super) fn add(&mut self, reference: &Reference, name: Arc<str>, meaning: &Meaning, to_files: bool) {
        let has_file = meaning.targets.iter().any(|target| target.definition.is_none());
        if reference.qualifier && meaning.reason.is_none() && (has_file || meaning.targets.is_empty()) {
            // A module that only leads to its member.
            return;
        }
        let place = self.body.place(reference.start);
        let (mut rule, mut reason) = (meaning.rule, meaning.reason);
        let mut candidates = 0;
        let mut partial = self.partial;
        for target in &meaning.targets {
            partial |= self.is_partial(&target.file);
        }
        if partial && reason.is_none() {
            (rule, reason) = ("partial_parse", Some(Reason::PartialParse));
        }
        for target in meaning.targets.iter().filter(|target| to_files || target.definition.is_some()) {
            candidates += u32::from(reason.is_some());
            self.edges.push(Edge {
                kind: reference.kind,
                source: reference.source(),
                target: target.clone(),
                resolution: if reason.is_none() { Resolution::ResolvedStatic } else { Resolution::Candidate },
                rule,
                place,
                name: Arc::clone(&name),
            });
        }
        if let Some(reason) = reason {
            self.diagnostics.push(Diagnostic {
                kind: reference.kind,
                source: reference.source(),
                reason,
                place,
                name,
                candidates,
            });
        }
    }

    pub(super) fn finish(self) -> FileEdges {
        FileEdges::new(self.edges, self.diagnostics, self.body.local_uses)
    }
}
