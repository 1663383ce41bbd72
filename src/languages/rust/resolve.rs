//! From the references of one file to its edges, by the rules of the language.
//!
//! Must not know how names are found. Invariant: an edge is `resolved_static` only when declarations lead to exactly one definition; a
//! word among the tokens of a macro never is.

use std::rc::Rc;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::infer::{Answer, Inference, What};
use super::modules::Module;
use crate::languages::Lookup;
use crate::model::facts::{Body, Expression, FileFacts, Handle, Reference, Space, Subject};
use crate::model::{Diagnostic, Edge, EdgeKind, FileEdges, ParseStatus, Reason, RepoPath, Resolution, SymbolKind, Target};

/// How many candidates one reference may have before it counts as known to nobody.
const MAX_CANDIDATES: usize = 64;

/// Resolves every reference of one file.
pub(super) fn resolve(path: &RepoPath, facts: &FileFacts, lookup: &dyn Lookup) -> FileEdges {
    let partial = facts.parse == ParseStatus::Partial;
    let inference = Inference::new(path, Arc::clone(&facts.surface), &facts.body, lookup);
    let mut resolver = Resolver {
        path,
        body: &facts.body,
        inference,
        partial,
        kinds: FxHashMap::default(),
        edges: Vec::new(),
        diagnostics: Vec::new(),
        local_uses: facts.body.local_uses,
    };
    for reference in &facts.body.references {
        resolver.reference(reference);
    }
    FileEdges::new(resolver.edges, resolver.diagnostics, resolver.local_uses)
}

struct Resolver<'a> {
    path: &'a RepoPath,
    body: &'a Body,
    inference: Inference<'a>,
    partial: bool,
    kinds: FxHashMap<Target, SymbolKind>,
    edges: Vec<Edge>,
    diagnostics: Vec<Diagnostic>,
    local_uses: u32,
}

impl Resolver<'_> {
    fn reference(&mut self, reference: &Reference) {
        match reference.subject {
            Subject::Path(path) => {
                let Some((name, space)) = self.named(path) else { return };
                let expression = self.inference.view(0).expression(path);
                let answer = match expression {
                    // A method among the tokens of a macro.
                    Some(Expression::Attribute { object, .. }) => self.inference.method_on(0, object, &name),
                    _ => self.inference.answer(0, path),
                };
                self.emit(reference, name, space, &answer);
            }
            Subject::Member { object, name } => {
                let name: Arc<str> = self.body.outline.names.get(name).into();
                let answer = match object {
                    Some(object) => self.inference.method_on(0, object, &name),
                    None => {
                        Rc::new(Answer { what: What::Nothing(Reason::DynamicReceiver), meaning: super::infer::Meaning::Unknown })
                    }
                };
                self.emit(reference, name, Space::Value, &answer);
            }
            // Forms of other languages.
            Subject::Name(_)
            | Subject::Type(_)
            | Subject::TypeMember { .. }
            | Subject::Module { .. }
            | Subject::Imported(_)
            | Subject::Injected(_)
            | Subject::Key { .. } => {}
        }
    }

    /// Returns the last name of a path, and the space it is looked for in.
    fn named(&self, path: Handle) -> Option<(Arc<str>, Space)> {
        let view = self.inference.view(0);
        let outline = view.outline(path);
        match outline.expressions.get(path.index())? {
            Expression::Search(search) => {
                let search = outline.searches.get(*search as usize)?;
                Some((outline.names.get(search.name).into(), search.space))
            }
            Expression::Path { name, space, .. } => Some((outline.names.get(*name).into(), *space)),
            Expression::Attribute { name, .. } => Some((outline.names.get(*name).into(), Space::Tokens)),
            _ => None,
        }
    }

    fn kind_of(&mut self, target: &Target) -> Option<SymbolKind> {
        if let Some(known) = self.kinds.get(target) {
            return Some(*known);
        }
        let place = self.inference.place_of(target)?;
        let view = self.inference.view(place.view);
        let kind = view.declaration(place.handle)?.kind;
        self.kinds.insert(target.clone(), kind);
        Some(kind)
    }

    fn is_partial(&self, target: &Target) -> bool {
        self.inference.lookup.parse_status(&target.file) == Some(ParseStatus::Partial)
    }

    /// Returns the targets of modules: their files, but not the file in hand.
    fn files(&self, modules: &[Module]) -> Vec<Target> {
        let files = modules.iter().filter(|module| module.inner.is_empty() && module.file != *self.path);
        files.map(|module| Target { file: module.file.clone(), definition: None }).collect()
    }

    fn emit(&mut self, reference: &Reference, name: Arc<str>, space: Space, answer: &Answer) {
        let place = self.body.place(reference.start);
        let source = reference.source();
        let tokens = space == Space::Tokens;
        let nothing =
            |reason: Reason| Diagnostic { kind: reference.kind, source, reason, place, name: Arc::clone(&name), candidates: 0 };
        let (targets, rule, reason, also) = match &answer.what {
            What::Targets { targets, rule, reason, also } => (targets.clone(), *rule, *reason, Rc::clone(also)),
            What::Modules(modules) => {
                if reference.kind != EdgeKind::Imports || reference.qualifier {
                    // A module that only leads to its member.
                    return;
                }
                let targets = self.files(modules);
                if targets.is_empty() {
                    return;
                }
                let reason = (targets.len() > 1).then_some(Reason::AmbiguousModule);
                (targets, "rust_module", reason, Rc::from([]))
            }
            What::Local => {
                self.local_uses += 1;
                return;
            }
            // What a macro makes of its words nobody here knows; a call of a method is one by its form.
            What::Nothing(_) if tokens && !self.is_member(reference) => return,
            What::Nothing(Reason::UnresolvedName) if self.is_binding_like(&name, reference, space) => {
                self.local_uses += 1;
                return;
            }
            What::Nothing(reason) => return self.diagnostics.push(nothing(*reason)),
        };
        if targets.is_empty() || targets.len() > MAX_CANDIDATES {
            return self.diagnostics.push(nothing(reason.unwrap_or(Reason::AmbiguousBinding)));
        }
        let first = targets.first().and_then(|target| self.kind_of(target));
        if reference.qualifier && first == Some(SymbolKind::Namespace) {
            return;
        }
        let mut kind = reference.kind;
        if kind == EdgeKind::Calls && matches!(first, Some(SymbolKind::Constant | SymbolKind::Variable | SymbolKind::Trait)) {
            // What a constant holds is called, and not it.
            kind = EdgeKind::References;
        }
        let (mut rule, mut reason) = (rule, reason);
        if tokens {
            (rule, reason) = ("rust_macro_tokens", Some(Reason::DynamicReceiver));
        } else if reason.is_none() && (self.partial || targets.iter().any(|target| self.is_partial(target))) {
            (rule, reason) = ("partial_parse", Some(Reason::PartialParse));
        }
        match reason {
            Some(Reason::ConditionalBinding) => rule = "conditional_binding",
            Some(Reason::AmbiguousBinding | Reason::AmbiguousMember) => rule = "ambiguous_binding",
            _ => {}
        }
        // An import takes a name in every space that has it: several definitions, all of them meant.
        let resolution = if reason.is_none() { Resolution::ResolvedStatic } else { Resolution::Candidate };
        let edge = |target: &Target, resolution, rule| Edge {
            kind,
            source,
            target: target.clone(),
            resolution,
            rule,
            place,
            name: Arc::clone(&name),
        };
        self.edges.extend(targets.iter().map(|target| edge(target, resolution, rule)));
        let others: Vec<Edge> = also
            .iter()
            .filter(|target| !targets.contains(target))
            .map(|target| edge(target, Resolution::Candidate, "rust_trait_impl"))
            .collect();
        if let Some(reason) = reason {
            let candidates = u32::try_from(targets.len() + others.len()).unwrap_or(u32::MAX);
            self.diagnostics.push(Diagnostic { kind, source, reason, place, name: Arc::clone(&name), candidates });
        }
        self.edges.extend(others);
    }

    fn is_member(&self, reference: &Reference) -> bool {
        let Subject::Path(path) = reference.subject else { return false };
        matches!(self.inference.view(0).expression(path), Some(Expression::Attribute { .. }))
    }

    /// Returns whether a name that leads nowhere may be a variable that a pattern binds: one that begins with a capital.
    fn is_binding_like(&self, name: &str, reference: &Reference, space: Space) -> bool {
        space == Space::Value
            && reference.kind == EdgeKind::References
            && name.chars().count() == 1
            && name.chars().all(char::is_uppercase)
    }
}
