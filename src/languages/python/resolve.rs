//! From the references of one file to its edges, by the rules of the language.
//!
//! Must not know how tables are kept or where files are. Invariant: an edge is `resolved_static` only when one declared rule leads to
//! exactly one definition that nothing in the repository rebinds; a reference without such an edge has a diagnostic.

use std::rc::Rc;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::infer::{End, Followed, Inference, Member, Object, Star, Value, View, bindings_of, free_name};
use super::modules;
use super::vocabulary::is_builtin;
use crate::languages::Lookup;
use crate::languages::meaning::{Meaning, Outcome};
use crate::model::facts::{Body, Expression, FileFacts, Handle, NameId, Reaching, Reference, Role, Subject, Surface, Use};
use crate::model::{DefinitionKey, FileEdges, ParseStatus, Reason, RepoPath, Target};

/// How many candidates one reference may have before it counts as known to nobody.
const MAX_CANDIDATES: usize = 8;

/// Resolves every reference of one file.
pub(super) fn resolve(path: &RepoPath, facts: &FileFacts, lookup: &dyn Lookup) -> FileEdges {
    let inference = Inference::new(path, Arc::clone(&facts.surface), Some(&facts.body), lookup, true);
    let mut resolver = Resolver {
        path,
        body: &facts.body,
        view: inference.view(0),
        inference,
        names: FxHashMap::default(),
        uses: FxHashMap::default(),
        outcome: Outcome::new(&facts.body, facts.parse == ParseStatus::Partial, lookup),
    };
    for reference in &facts.body.references {
        resolver.reference(reference);
    }
    resolver.outcome.finish()
}

/// Returns what a file rebinds in modules and classes, its own included, sorted.
pub(super) fn rebindings(path: &RepoPath, surface: &Surface, lookup: &dyn Lookup) -> Vec<Target> {
    if surface.writes.is_empty() {
        return Vec::new();
    }
    let mut inference = Inference::new(path, Arc::new(surface.clone()), None, lookup, false);
    let mut targets = Vec::new();
    for (object, name) in &surface.writes {
        let name: Arc<str> = surface.outline.names.get(*name).into();
        for value in inference.values_of(0, *object) {
            match &value {
                Value::Module(module) => {
                    if let Some(file) = modules::file_of(module) {
                        targets
                            .push(Target { file, definition: Some(DefinitionKey { qualified: Arc::clone(&name), ordinal: 0 }) });
                    }
                }
                Value::Class(Object { class, .. }) => {
                    // The write hides what bases have too, for this class; only the class that has the member is downgraded.
                    let owner = match inference.member(&value, &name) {
                        Some(member) => member.owner,
                        None => *class,
                    };
                    let file = inference.view(owner.view);
                    if let Some(declaration) = file.declaration(owner.declaration) {
                        let qualified = format!("{}.{name}", declaration.key.qualified).into();
                        let definition = Some(DefinitionKey { qualified, ordinal: 0 });
                        targets.push(Target { file: file.path.clone(), definition });
                    }
                }
                _ => {}
            }
        }
    }
    targets.sort();
    targets.dedup();
    targets
}

struct Resolver<'a> {
    path: &'a RepoPath,
    body: &'a Body,
    view: Rc<View<'a>>,
    inference: Inference<'a>,
    names: FxHashMap<NameId, Arc<str>>,
    /// Meanings of bare names, which repeat a lot.
    uses: FxHashMap<(Handle, u8), Rc<Meaning>>,
    outcome: Outcome<'a>,
}

impl<'a> Resolver<'a> {
    fn name(&mut self, name: NameId) -> Arc<str> {
        let body = self.body;
        Arc::clone(self.names.entry(name).or_insert_with(|| body.outline.names.get(name).into()))
    }

    fn reference(&mut self, reference: &Reference) {
        match reference.subject {
            Subject::Name(used) | Subject::Type(used) | Subject::Key { used, .. } => {
                let (key, name) = match used {
                    Use::One(binding) => {
                        let text = self
                            .view
                            .binding(binding)
                            .map(|bound| self.view.outline(binding).names.get(bound.name))
                            .unwrap_or("");
                        ((binding, 0), Arc::from(text))
                    }
                    Use::Many(set) => {
                        let first = bindings_of(&self.view, used).into_iter().find_map(|binding| {
                            let text = self.view.outline(binding).names.get(self.view.binding(binding)?.name);
                            if text == "*" { None } else { Some(Arc::from(text)) }
                        });
                        ((set, 1), first.unwrap_or_else(|| Arc::from("")))
                    }
                    Use::Free(free) => ((free, 2), Arc::from(free_name(&self.view, free))),
                };
                let meaning = match self.uses.get(&key) {
                    Some(known) => Rc::clone(known),
                    None => {
                        let meaning = Rc::new(self.bare_name(used, &name));
                        self.uses.insert(key, Rc::clone(&meaning));
                        meaning
                    }
                };
                self.outcome.add(reference, name, &meaning, !reference.qualifier);
            }
            Subject::Member { object, name } | Subject::TypeMember { object, name } => {
                let name = self.name(name);
                let meaning = match object {
                    Some(object) => self.member(object, &name),
                    None => Meaning::nothing(Reason::DynamicReceiver),
                };
                self.outcome.add(reference, name, &meaning, !reference.qualifier);
            }
            Subject::Module { import, name } => {
                let name = self.name(name);
                let meaning = self.imported_module(import);
                self.outcome.add(reference, name, &meaning, !reference.qualifier);
            }
            // A form of another language.
            Subject::Path(_) => {}
            Subject::Imported(import) => {
                let outline = self.view.outline(import);
                let name = outline.imports.get(import.index()).and_then(|import| import.name).map(|name| outline.names.get(name));
                let name: Arc<str> = name.unwrap_or("").into();
                let followed = self.inference.import(0, import.in_body(), import.index() as u32);
                let meaning = self.followed(&followed, "explicit_import");
                self.outcome.add(reference, name, &meaning, !reference.qualifier);
            }
            Subject::Injected(given) => self.injected(reference, given),
        }
    }

    /// What a test asks for by the name of a parameter. Whatever is no fixture of the repository is left to the runner.
    fn injected(&mut self, reference: &Reference, given: Handle) {
        let Some(Expression::Injected { name, .. }) = self.view.outline(given).expressions.get(given.index()).copied() else {
            return;
        };
        let targets = self.inference.injected(0, given);
        if targets.is_empty() {
            return;
        }
        let name = self.name(name);
        let meaning = Meaning { targets, rule: "pytest_fixture", reason: Some(Reason::DynamicReceiver) };
        self.outcome.add(reference, name, &meaning, true);
    }

    /// The module that an import statement names, whole.
    fn imported_module(&mut self, import: Handle) -> Meaning {
        let outline = self.view.outline(import);
        let Some(import) = outline.imports.get(import.index()) else { return Meaning::nothing(Reason::UnresolvedImport) };
        let specifier = outline.names.get(import.module).to_owned();
        let context = Arc::clone(&self.view.context);
        let resolution = self.inference.lookup.module(&context, &specifier);
        let files = |modules: &[crate::languages::ModuleKey]| -> SmallVec<[Target; 2]> {
            modules.iter().filter_map(|module| Some(Target { file: modules::file_of(module)?, definition: None })).collect()
        };
        match &*resolution {
            crate::languages::ModuleResolution::Found(module) => {
                Meaning { targets: files(std::slice::from_ref(module)), rule: "explicit_import", reason: None }
            }
            crate::languages::ModuleResolution::Ambiguous(modules) => {
                Meaning { targets: files(modules), rule: "ambiguous_binding", reason: Some(Reason::AmbiguousModule) }
            }
            crate::languages::ModuleResolution::Missing => Meaning::nothing(Reason::UnresolvedImport),
            crate::languages::ModuleResolution::External => Meaning::nothing(Reason::ExternalImport),
        }
    }

    /// Makes a meaning of what a name of a module leads to.
    fn followed(&mut self, followed: &Followed, rule: &'static str) -> Meaning {
        let mut targets = SmallVec::new();
        for end in &followed.ends {
            match end {
                End::Definition(target) => targets.push(target.clone()),
                End::Module(module) => {
                    if let Some(file) = modules::file_of(module) {
                        targets.push(Target { file, definition: None });
                    }
                }
            }
        }
        let mut reason = followed.reason;
        if targets.len() > 1 && reason.is_none() {
            reason = Some(Reason::ConditionalBinding);
        }
        let rule = match (reason, followed.rule) {
            (Some(Reason::ConditionalBinding), _) => "conditional_binding",
            (Some(Reason::AmbiguousModule), _) => "ambiguous_binding",
            (_, Some(rule)) if rule != "module_export" => rule,
            _ => rule,
        };
        Meaning { targets, rule, reason }
    }

    // ---- bare names

    fn bare_name(&mut self, used: Use, name: &Arc<str>) -> Meaning {
        match used {
            Use::One(binding) => self.one_binding(binding),
            Use::Many(set) => {
                let outline = self.view.outline(set);
                let reaching: SmallVec<[Reaching; 4]> =
                    outline.sets.get(set.index()).map(|set| set.iter().copied().collect()).unwrap_or_default();
                self.many_bindings(&reaching, name)
            }
            Use::Free(_) => {
                let stars: SmallVec<[Reaching; 4]> = self.view.surface.stars.iter().copied().collect();
                let meaning = self.many_bindings(&stars, name);
                if !meaning.targets.is_empty() || meaning.reason == Some(Reason::ExternalImport) {
                    return meaning;
                }
                if is_builtin(name) {
                    return Meaning::nothing(Reason::ExternalImport);
                }
                if meaning.reason == Some(Reason::WildcardImport) {
                    return meaning;
                }
                Meaning::nothing(Reason::UnresolvedName)
            }
        }
    }

    fn one_binding(&mut self, handle: Handle) -> Meaning {
        let Some(binding) = self.view.binding(handle) else { return Meaning::nothing(Reason::UnresolvedName) };
        if let Some(declaration) = binding.declaration.and_then(|declaration| self.view.declaration(declaration)) {
            let key = declaration.key.clone();
            let rebound = self.inference.is_rebound(self.path, &key.qualified);
            let target = Target { file: self.path.clone(), definition: Some(key) };
            let (rule, reason) =
                if rebound { ("attribute_rebinding", Some(Reason::AttributeRebinding)) } else { ("lexical_binding", None) };
            return Meaning { targets: SmallVec::from_iter([target]), rule, reason };
        }
        match binding.role {
            Role::Import(import) => {
                let followed = self.inference.import(0, handle.in_body(), import);
                self.followed(&followed, "explicit_import")
            }
            Role::Deleted => Meaning::nothing(Reason::UnresolvedName),
            _ => Meaning::nothing(Reason::LocalBinding),
        }
    }

    /// What a name means that one of several bindings gives, the latest first.
    fn many_bindings(&mut self, reaching: &[Reaching], name: &Arc<str>) -> Meaning {
        let mut targets: SmallVec<[Target; 2]> = SmallVec::new();
        let mut rule = "lexical_binding";
        let mut reason = None;
        let mut elsewhere = None;
        let mut by_star = false;
        let mut unknown_star = false;
        for entry in reaching {
            let Some(binding) = self.view.binding(entry.binding) else { continue };
            if let Role::Star(import) = binding.role {
                match self.inference.star(0, entry.binding.in_body(), import, name) {
                    Star::Brings(followed) => {
                        by_star = true;
                        let meaning = self.followed(&followed, "wildcard_import");
                        reason = reason.or(meaning.reason);
                        if meaning.targets.is_empty() {
                            elsewhere = meaning.reason.or(Some(Reason::WildcardImport));
                        }
                        targets.extend(meaning.targets);
                        rule = "wildcard_import";
                        if !entry.conditional {
                            break;
                        }
                    }
                    Star::Unknown => unknown_star = true,
                    Star::Nothing => {}
                }
                continue;
            }
            let meaning = self.one_binding(entry.binding);
            if targets.is_empty() && !by_star {
                rule = meaning.rule;
            }
            if meaning.targets.is_empty() {
                elsewhere = meaning.reason;
            } else {
                reason = reason.or(meaning.reason);
            }
            targets.extend(meaning.targets);
        }
        targets.sort();
        targets.dedup();
        if targets.is_empty() {
            let reason = match (elsewhere, unknown_star) {
                (Some(reason), _) => reason,
                (None, true) => Reason::WildcardImport,
                (None, false) => Reason::UnresolvedName,
            };
            return Meaning::nothing(reason);
        }
        if reason.is_none() && (targets.len() > 1 || elsewhere.is_some()) {
            reason = Some(Reason::ConditionalBinding);
            rule = "conditional_binding";
        }
        if reason.is_none() && unknown_star {
            reason = Some(Reason::WildcardImport);
            rule = "wildcard_import";
        }
        Meaning { targets, rule, reason }
    }

    // ---- members

    fn member(&mut self, object: Handle, name: &Arc<str>) -> Meaning {
        match self.inference.certain(0, object) {
            Some(Value::Module(module)) => {
                let followed = self.inference.follow(&module, name);
                let mut meaning = self.followed(&followed, "module_export");
                if meaning.targets.is_empty() && meaning.reason == Some(Reason::UnresolvedExport) {
                    meaning.reason = Some(Reason::UnresolvedMember);
                }
                return meaning;
            }
            Some(value @ Value::Class(_)) => {
                if let Some(member) = self.inference.member(&value, name) {
                    let assigned = self.inference.is_assigned(&value, name);
                    return self.class_attribute(&member, assigned);
                }
            }
            _ => {}
        }
        let values = self.inference.values_of(0, object);
        let values = self.inference.settled(values);
        let mut targets: SmallVec<[Target; 2]> = SmallVec::new();
        let mut closed = !values.is_empty();
        let mut external = false;
        let mut known = false;
        let mut rebound = false;
        for value in &values {
            match value {
                Value::Module(module) => {
                    let followed = self.inference.follow(module, name);
                    let meaning = self.followed(&followed, "module_export");
                    targets.extend(meaning.targets);
                }
                Value::External | Value::Elements(_) | Value::Mapping(_) | Value::Tuple(_) => external = true,
                Value::Class(_) | Value::Instance(_) | Value::Super(_) => match self.inference.member(value, name) {
                    Some(member) => {
                        known = true;
                        let found = self.member_targets(&member);
                        for target in &found {
                            if let Some(key) = &target.definition {
                                rebound |= self.inference.is_rebound(&target.file, &key.qualified);
                            }
                        }
                        targets.extend(found);
                    }
                    None => closed &= self.inference.is_closed(value),
                },
                _ => closed = false,
            }
        }
        targets.sort();
        targets.dedup();
        if targets.is_empty() || targets.len() > MAX_CANDIDATES {
            let reason = if targets.len() > MAX_CANDIDATES {
                Reason::AmbiguousMember
            } else if external && !known {
                Reason::ExternalImport
            } else if known || closed {
                Reason::UnresolvedMember
            } else {
                Reason::DynamicReceiver
            };
            return Meaning::nothing(reason);
        }
        let (rule, reason) = if rebound {
            ("attribute_rebinding", Reason::AttributeRebinding)
        } else if targets.len() > 1 {
            (self.receiver_rule(object), Reason::AmbiguousMember)
        } else {
            (self.receiver_rule(object), Reason::DynamicReceiver)
        };
        Meaning { targets, rule, reason: Some(reason) }
    }

    /// A member of a class known for certain; `assigned` says whether a method assigns an attribute of that name.
    fn class_attribute(&mut self, member: &Member, assigned: bool) -> Meaning {
        let targets = self.member_targets(member);
        let mut rebound = assigned;
        for target in &targets {
            if let Some(key) = &target.definition {
                rebound |= self.inference.is_rebound(&target.file, &key.qualified);
            }
        }
        let (rule, reason) = if targets.is_empty() {
            ("class_attribute", Some(Reason::UnresolvedMember))
        } else if rebound {
            ("attribute_rebinding", Some(Reason::AttributeRebinding))
        } else if targets.len() > 1 && member.declared.is_none() {
            ("conditional_binding", Some(Reason::ConditionalBinding))
        } else if !member.certain || member.declared.is_some() {
            ("class_attribute", Some(Reason::AmbiguousMember))
        } else {
            ("class_attribute", None)
        };
        Meaning { targets, rule, reason }
    }

    fn member_targets(&mut self, member: &Member) -> SmallVec<[Target; 2]> {
        let file = self.inference.view(member.owner.view);
        let mut targets = SmallVec::new();
        for handle in member.bound.map(|used| bindings_of(&file, used)).unwrap_or_default() {
            let Some(binding) = file.binding(handle) else { continue };
            if let Some(declaration) = binding.declaration.and_then(|declaration| file.declaration(declaration)) {
                targets.push(Target { file: file.path.clone(), definition: Some(declaration.key.clone()) });
            } else if let Role::Import(import) = binding.role {
                let followed = self.inference.import(member.owner.view, handle.in_body(), import);
                targets.extend(followed.ends.iter().filter_map(|end| match end {
                    End::Definition(target) => Some(target.clone()),
                    End::Module(_) => None,
                }));
            }
        }
        if let Some((owner, used)) = member.declared {
            let declared = Member { owner, bound: Some(used), certain: member.certain, declared: None };
            targets.extend(self.member_targets(&declared));
        }
        targets.sort();
        targets.dedup();
        targets
    }

    /// Names the kind of evidence that a receiver is.
    fn receiver_rule(&self, object: Handle) -> &'static str {
        match self.view.outline(object).expressions.get(object.index()) {
            Some(Expression::Super(_)) => "super_member",
            Some(Expression::Call { .. }) => "constructor_receiver",
            Some(Expression::Name(used)) => {
                for binding in bindings_of(&self.view, *used) {
                    match self.view.binding(binding) {
                        Some(bound) if matches!(bound.role, Role::Instance(_) | Role::Type(_)) => return "self_member",
                        Some(bound) if bound.annotation.is_some() => return "annotation_receiver",
                        Some(bound) if bound.value.is_some() => return "constructor_receiver",
                        _ => {}
                    }
                }
                "receiver_hint"
            }
            _ => "receiver_hint",
        }
    }
}
