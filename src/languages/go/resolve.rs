//! From the references of one file to its edges, by the rules of the language.
//!
//! Must not know how tables are kept or where files are. Invariant: an edge is `resolved_static` only when the declared types lead to
//! exactly one definition; a reference to something that is declared without such an edge has a diagnostic.

use std::rc::Rc;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::infer::{Imported, Inference, Meaning, Member, Named, Selection, Type};
use super::modules::Part;
use crate::languages::Lookup;
use crate::model::facts::{Body, Expression, FileFacts, Handle, NameId, Reference, Subject, Use};
use crate::model::{Diagnostic, Edge, EdgeKind, FileEdges, ParseStatus, Reason, RepoPath, Resolution, SymbolKind, Target};

/// How many candidates one reference may have before it counts as known to nobody.
const MAX_CANDIDATES: usize = 64;

/// What a reference means.
#[derive(Clone)]
enum Answer {
    /// Definitions; more than one where nothing tells which.
    Targets {
        targets: Vec<Target>,
        rule: &'static str,
        /// Why it is not certain; `None` makes the one target `resolved_static`.
        reason: Option<Reason>,
        /// What may run instead: the methods of types that implement the interface, or other variants.
        also: Vec<Target>,
    },
    /// A package, which is no definition.
    Package,
    /// A field, which is none either, or a name of this function's.
    Local,
    Nothing(Reason),
}

/// Resolves every reference of one file.
pub(super) fn resolve(path: &RepoPath, facts: &FileFacts, lookup: &dyn Lookup) -> FileEdges {
    let partial = facts.parse == ParseStatus::Partial;
    let inference = Inference::new(path, Arc::clone(&facts.surface), &facts.body, partial, lookup);
    let mut resolver = Resolver {
        body: &facts.body,
        inference,
        partial,
        names: FxHashMap::default(),
        answers: FxHashMap::default(),
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
    body: &'a Body,
    inference: Inference<'a>,
    partial: bool,
    names: FxHashMap<NameId, Arc<str>>,
    /// The answers of bare names, which repeat a lot.
    answers: FxHashMap<NameId, Rc<Answer>>,
    kinds: FxHashMap<Target, SymbolKind>,
    edges: Vec<Edge>,
    diagnostics: Vec<Diagnostic>,
    local_uses: u32,
}

impl Resolver<'_> {
    fn name(&mut self, name: NameId) -> Arc<str> {
        let body = self.body;
        Arc::clone(self.names.entry(name).or_insert_with(|| body.outline.names.get(name).into()))
    }

    fn reference(&mut self, reference: &Reference) {
        match reference.subject {
            Subject::Name(Use::Free(name)) => {
                let name = NameId(name.index() as u32);
                let answer = self.bare_name(name);
                let name = self.name(name);
                self.emit(reference, name, &answer);
            }
            Subject::Key { literal, used: Use::Free(name) } => {
                let name = NameId(name.index() as u32);
                let answer = self.key(literal, name);
                let name = self.name(name);
                self.emit(reference, name, &answer);
            }
            Subject::Member { object, name } => {
                let name = self.name(name);
                let answer = match object {
                    Some(object) => self.member(object, &name),
                    None => Answer::Nothing(Reason::DynamicReceiver),
                };
                self.emit(reference, name, &answer);
            }
            Subject::Module { import, name } => {
                let name = self.name(name);
                let answer = self.imported_package(import);
                self.emit(reference, name, &answer);
            }
            // Forms of other languages.
            Subject::Name(_)
            | Subject::Key { .. }
            | Subject::Imported(_)
            | Subject::Injected(_)
            | Subject::Type(_)
            | Subject::TypeMember { .. }
            | Subject::Path(_) => {}
        }
    }

    fn bare_name(&mut self, name: NameId) -> Rc<Answer> {
        if let Some(known) = self.answers.get(&name) {
            return Rc::clone(known);
        }
        let text = self.name(name);
        let answer = match &*self.inference.named(0, &text) {
            Named::Definitions { targets, rule } => self.of_variants(targets.clone(), rule),
            Named::Package(_) => Answer::Package,
            Named::External | Named::Predeclared(..) => Answer::Nothing(Reason::ExternalImport),
            Named::Missing => Answer::Nothing(Reason::UnresolvedImport),
            Named::Nothing => Answer::Nothing(Reason::UnresolvedName),
        };
        let answer = Rc::new(answer);
        self.answers.insert(name, Rc::clone(&answer));
        answer
    }

    /// A key of a literal is a field where the type has fields, and else what the name means.
    fn key(&mut self, literal: Handle, name: NameId) -> Answer {
        let nothing = self.inference.no_arguments();
        let type_ = self.inference.meaning(0, literal, &nothing).type_();
        let text = self.name(name);
        match self.inference.underlying(type_.behind_pointer()) {
            Type::Shape { .. } => Answer::Local,
            Type::Sequence(_) | Type::Mapping(_) => (*self.bare_name(name)).clone(),
            // What is not exported cannot be a field of a type from elsewhere.
            Type::External if !super::universe::is_exported(&text) => (*self.bare_name(name)).clone(),
            Type::External => Answer::Nothing(Reason::ExternalImport),
            _ => Answer::Nothing(Reason::DynamicReceiver),
        }
    }

    fn member(&mut self, object: Handle, name: &str) -> Answer {
        let nothing = self.inference.no_arguments();
        match self.inference.meaning(0, object, &nothing) {
            Meaning::Package(package) => {
                let targets = self.inference.in_package(0, &package, name);
                if targets.is_empty() {
                    Answer::Nothing(Reason::UnresolvedExport)
                } else {
                    self.of_variants(targets, "go_import")
                }
            }
            Meaning::External if self.is_missing(object) => Answer::Nothing(Reason::UnresolvedImport),
            Meaning::External => Answer::Nothing(Reason::ExternalImport),
            Meaning::Type(type_) | Meaning::Value(type_) => self.selected(&type_, name),
            Meaning::Predeclared(_) => Answer::Nothing(Reason::UnresolvedMember),
            Meaning::Unknown => Answer::Nothing(Reason::DynamicReceiver),
        }
    }

    /// Returns whether an expression is the name of a package that should be in the repository and is not.
    fn is_missing(&mut self, object: Handle) -> bool {
        let view = self.inference.view(0);
        let Some(Expression::Name(Use::Free(name))) = view.outline(object).expressions.get(object.index()).copied() else {
            return false;
        };
        let name = view.outline(object).names.get(NameId(name.index() as u32)).to_owned();
        matches!(&*self.inference.named(0, &name), Named::Missing)
    }

    fn selected(&mut self, type_: &Type, name: &str) -> Answer {
        match self.inference.select(type_, name, 0) {
            Selection::Found(Member::Field(_), _) => Answer::Local,
            Selection::Found(Member::Method { targets, interface, promoted, .. }, certain) => {
                let rule = match (interface, promoted) {
                    (Some(_), _) => "go_interface",
                    (None, true) => "go_embedding",
                    (None, false) => "go_receiver",
                };
                let mut answer = self.of_variants(targets, rule);
                if let Answer::Targets { reason, also, .. } = &mut answer {
                    if !certain && reason.is_none() {
                        *reason = Some(Reason::AmbiguousMember);
                    }
                    if let Some(interface) = interface {
                        let implementing = self.inference.implementations(interface, name);
                        if implementing.len() <= MAX_CANDIDATES {
                            *also = implementing;
                        }
                    }
                }
                answer
            }
            Selection::Ambiguous(targets) => {
                Answer::Targets { targets, rule: "ambiguous_binding", reason: Some(Reason::AmbiguousMember), also: Vec::new() }
            }
            Selection::External => Answer::Nothing(Reason::ExternalImport),
            Selection::Unknown => Answer::Nothing(Reason::DynamicReceiver),
            Selection::Nothing => match type_.behind_pointer() {
                Type::Unknown | Type::Parameter { .. } => Answer::Nothing(Reason::DynamicReceiver),
                _ => Answer::Nothing(Reason::UnresolvedMember),
            },
        }
    }

    /// The files of the package that an import names, but for its tests.
    fn imported_package(&mut self, import: Handle) -> Answer {
        let view = self.inference.view(0);
        let outline = view.outline(import);
        let Some(import) = outline.imports.get(import.index()) else { return Answer::Nothing(Reason::UnresolvedImport) };
        match self.inference.imported(&view, outline.names.get(import.module)) {
            Imported::Package(package) => {
                let files = self.inference.lookup.exports(&package.key(Part::Files));
                let targets = files.names.values().flat_map(|file| file.targets.iter().cloned()).collect();
                Answer::Targets { targets, rule: "go_import", reason: None, also: Vec::new() }
            }
            Imported::Missing => Answer::Nothing(Reason::UnresolvedImport),
            Imported::External => Answer::Nothing(Reason::ExternalImport),
        }
    }

    fn kind_of(&mut self, target: &Target) -> Option<SymbolKind> {
        if let Some(known) = self.kinds.get(target) {
            return Some(*known);
        }
        let key = target.definition.as_ref()?;
        let index = self.inference.view_of(&target.file)?;
        let view = self.inference.view(index);
        let kind = view.declaration(view.find(key)?)?.kind;
        self.kinds.insert(target.clone(), kind);
        Some(kind)
    }

    fn is_partial(&mut self, target: &Target) -> bool {
        self.inference.view_of(&target.file).is_some_and(|view| self.inference.view(view).partial)
    }

    fn emit(&mut self, reference: &Reference, name: Arc<str>, answer: &Answer) {
        let place = self.body.place(reference.start);
        let source = reference.source();
        let mut diagnose = |kind: EdgeKind, reason: Reason, candidates: usize| {
            let candidates = u32::try_from(candidates).unwrap_or(u32::MAX);
            self.diagnostics.push(Diagnostic { kind, source, reason, place, name: Arc::clone(&name), candidates });
        };
        let (targets, rule, reason, also) = match answer {
            Answer::Targets { targets, rule, reason, also }
                if targets.len() <= MAX_CANDIDATES || reference.kind == EdgeKind::Imports =>
            {
                (targets, *rule, *reason, also)
            }
            Answer::Targets { reason, .. } => return diagnose(reference.kind, reason.unwrap_or(Reason::AmbiguousBinding), 0),
            Answer::Package if reference.qualifier => return,
            Answer::Package => return diagnose(reference.kind, Reason::UnresolvedName, 0),
            Answer::Local => {
                self.local_uses += 1;
                return;
            }
            Answer::Nothing(reason) => return diagnose(reference.kind, *reason, 0),
        };
        let mut kind = reference.kind;
        if kind == EdgeKind::Calls {
            let called = targets.first().and_then(|target| self.kind_of(target));
            let calls = match called {
                Some(SymbolKind::Function | SymbolKind::Method) => true,
                // `handlers[name]()` calls an element, a conversion nothing.
                Some(SymbolKind::Variable | SymbolKind::Constant) => !reference.qualifier,
                _ => false,
            };
            if !calls {
                kind = EdgeKind::References;
            }
        }
        let mut reason = reason;
        let mut rule = rule;
        if reason.is_none() && kind != EdgeKind::Imports {
            let partial = self.partial || targets.iter().any(|target| self.is_partial(target));
            if partial {
                (reason, rule) = (Some(Reason::PartialParse), "partial_parse");
            }
        }
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
        let others = also.iter().filter(|target| !targets.contains(target));
        let other_rule = if rule == "go_default_build" { "conditional_binding" } else { "go_interface_impl" };
        let others: Vec<Edge> = others.map(|target| edge(target, Resolution::Candidate, other_rule)).collect();
        if let Some(reason) = reason {
            let candidates = u32::try_from(targets.len() + others.len()).unwrap_or(u32::MAX);
            self.diagnostics.push(Diagnostic { kind, source, reason, place, name: Arc::clone(&name), candidates });
        }
        self.edges.extend(others);
    }

    /// Answers with a definition, or with the variants of one that build constraints tell apart.
    fn of_variants(&mut self, mut targets: Vec<Target>, rule: &'static str) -> Answer {
        if targets.len() < 2 {
            return Answer::Targets { targets, rule, reason: None, also: Vec::new() };
        }
        match self.inference.default_variant(&targets) {
            Some(chosen) => {
                let target = targets.remove(chosen);
                Answer::Targets { targets: vec![target], rule: "go_default_build", reason: None, also: targets }
            }
            None => Answer::Targets {
                targets,
                rule: "conditional_binding",
                reason: Some(Reason::ConditionalBinding),
                also: Vec::new(),
            },
        }
    }
}
