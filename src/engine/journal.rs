//! What changes in the graph from build to build of one process, for those who follow it.
//!
//! Must not decide what is built. Invariant: two references are the same when kind, name and what they lead to are, wherever they stand, so
//! that an edit which moves them is no change.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::analysis::{AllEdges, Resolved, Stale};
use crate::model::{Edge, EdgeKind, FileEdges, Reason, RepoPath, Resolution, Target};

/// Notes of what builds found; keeps none unless told to.
#[derive(Debug, Default)]
pub(super) struct Journal {
    on: bool,
    files: BTreeSet<RepoPath>,
    /// What was found last, by path.
    edges: Option<AllEdges>,
    /// What had been found when the difference was last taken.
    taken: Option<AllEdges>,
}

/// What changed in the graph.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Difference {
    /// Files that changed, came or went, sorted.
    pub files: Vec<RepoPath>,
    pub edges_added: u64,
    pub edges_removed: u64,
    /// References that lead nowhere and did not before, by path and place.
    pub unbound: Vec<Unbound>,
}

/// A reference that leads nowhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unbound {
    pub path: RepoPath,
    pub line: u32,
    /// In bytes, from 0.
    pub column: u32,
    pub kind: EdgeKind,
    pub name: Arc<str>,
    pub reason: Reason,
}

impl Difference {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl Journal {
    pub fn keep(&mut self, on: bool) {
        self.on = on;
        if !on {
            *self = Self::default();
        }
    }

    pub fn is_on(&self) -> bool {
        self.on
    }

    pub fn note_files(&mut self, stale: &Stale) {
        if self.on {
            self.files.extend(stale.changed.iter().chain(&stale.removed).cloned());
        }
    }

    pub fn note_edges(&mut self, resolved: &Resolved) {
        if self.on {
            self.edges = Some(Arc::clone(&resolved.edges));
        }
    }

    /// Returns what changed since the last call; `None` at the first.
    pub fn take(&mut self) -> Option<Difference> {
        let files = std::mem::take(&mut self.files);
        let now = self.edges.clone()?;
        let before = self.taken.replace(now.clone())?;
        let mut difference = Difference { files: files.into_iter().collect(), ..Difference::default() };
        let none = Arc::new(FileEdges::default());
        let mut before = before.iter().peekable();
        let mut now = now.iter().peekable();
        loop {
            let order = match (before.peek(), now.peek()) {
                (None, None) => return Some(difference),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some((old, _)), Some((new, _))) => old.cmp(new),
            };
            let old = if order.is_le() { before.next() } else { None };
            let new = if order.is_ge() { now.next() } else { None };
            let Some((path, _)) = new.or(old) else { return Some(difference) };
            let of = |side: Option<&(RepoPath, Arc<FileEdges>)>| {
                side.map_or_else(|| Arc::clone(&none), |(_, edges)| Arc::clone(edges))
            };
            let (old, new) = (of(old), of(new));
            if !Arc::ptr_eq(&old, &new) {
                difference.add(path, &old, &new);
            }
        }
    }
}

type Meaning<'e> = (EdgeKind, &'e str, &'e Target, Resolution);

fn meaning(edge: &Edge) -> Meaning<'_> {
    (edge.kind, &edge.name, &edge.target, edge.resolution)
}

impl Difference {
    fn add(&mut self, path: &RepoPath, old: &FileEdges, new: &FileEdges) {
        let mut balance: BTreeMap<Meaning<'_>, i64> = BTreeMap::new();
        // How many references of a kind and name lead somewhere.
        let mut bound: BTreeMap<(EdgeKind, &str), i64> = BTreeMap::new();
        for (edges, sign) in [(&old.edges, -1), (&new.edges, 1)] {
            for edge in edges {
                *balance.entry(meaning(edge)).or_default() += sign;
                *bound.entry((edge.kind, &edge.name)).or_default() += sign;
            }
        }
        self.edges_added += balance.values().map(|count| (*count).max(0) as u64).sum::<u64>();
        self.edges_removed += balance.values().map(|count| (-*count).max(0) as u64).sum::<u64>();

        let mut known: BTreeMap<(EdgeKind, &str, Reason), i64> = BTreeMap::new();
        for diagnostic in &old.diagnostics {
            *known.entry((diagnostic.kind, &diagnostic.name, diagnostic.reason)).or_default() += 1;
        }
        for diagnostic in new.diagnostics.iter().filter(|diagnostic| diagnostic.candidates == 0) {
            let count = known.entry((diagnostic.kind, &diagnostic.name, diagnostic.reason)).or_default();
            *count -= 1;
            if *count >= 0 {
                continue;
            }
            // What was bound and is not any more is always told; what is new only when it looks like a mistake.
            let lost = bound.get_mut(&(diagnostic.kind, &*diagnostic.name)).filter(|balance| **balance < 0);
            let was_bound = lost.map(|balance| *balance += 1).is_some();
            if was_bound || looks_wrong(diagnostic.reason) {
                self.unbound.push(Unbound {
                    path: path.clone(),
                    line: diagnostic.place.line,
                    column: diagnostic.place.column,
                    kind: diagnostic.kind,
                    name: Arc::clone(&diagnostic.name),
                    reason: diagnostic.reason,
                });
            }
        }
    }
}

/// Returns whether a reference for this reason names something that should be in the worktree and is not.
fn looks_wrong(reason: Reason) -> bool {
    match reason {
        Reason::UnresolvedImport
        | Reason::UnresolvedExport
        | Reason::UnresolvedName
        | Reason::UnresolvedMember
        | Reason::AmbiguousModule
        | Reason::CyclicBinding => true,
        Reason::ExternalImport
        | Reason::AmbiguousBinding
        | Reason::AmbiguousMember
        | Reason::DynamicReceiver
        | Reason::WildcardImport
        | Reason::ConditionalBinding
        | Reason::AttributeRebinding
        | Reason::LocalBinding
        | Reason::PartialParse
        | Reason::ParseTimeout
        | Reason::ParserCrashed
        | Reason::ParserMemory => false,
    }
}
