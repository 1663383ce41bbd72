//! From the references of one file to its edges, by the rules of the family.
//!
//! Must not know how tables are kept or where files are. Invariant: an edge is `resolved_static` only when one declared rule leads to
//! exactly one definition that nothing in the repository rebinds; a reference without such an edge has a diagnostic.

use std::rc::Rc;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::exports::{WHOLE, module_of_import};
use super::infer::{End, Followed, Inference, Meaning as Sense, Member, Value, View, free_name, is_import, rank};
use super::modules;
use super::vocabulary::is_global;
use crate::languages::Lookup;
use crate::languages::meaning::{Meaning, Outcome};
use crate::model::facts::{Body, Expression, FileFacts, Handle, NameId, Reference, Role, Subject, Surface, Use};
use crate::model::{EdgeKind, FileEdges, ParseStatus, Reason, RepoPath, SymbolKind, Target};

/// How many candidates one reference may have before it counts as known to nobody.
const MAX_CANDIDATES: usize = 8;

/// How many links a chain of namespaces may have.
const MAX_CHAIN: u32 = 16;

/// Resolves every reference of one file.
pub(in crate::languages) fn resolve(path: &RepoPath, facts: &FileFacts, lookup: &dyn Lookup) -> FileEdges {
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
pub(in crate::languages) fn rebindings(path: &RepoPath, surface: &Surface, lookup: &dyn Lookup) -> Vec<Target> {
    if surface.writes.is_empty() {
        return Vec::new();
    }
    let mut inference = Inference::new(path, Arc::new(surface.clone()), None, lookup, false);
    let mut targets = Vec::new();
    for (object, name) in &surface.writes {
        let name: Arc<str> = surface.outline.names.get(*name).into();
        inference.refuel();
        for value in inference.values_of(0, *object, &None) {
            match &value {
                Value::Module(module) => {
                    let followed = inference.follow(module, &name);
                    targets.extend(followed.ends.iter().filter_map(|end| match end {
                        End::Definition(target) => Some(target.clone()),
                        _ => None,
                    }));
                }
                Value::Class(..) | Value::Instance(..) | Value::Function(..) => {
                    if let Some(member) = inference.member(&value, &name) {
                        targets.extend(inference.member_targets(&member));
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
    uses: FxHashMap<(Handle, u8, Sense), Rc<Meaning>>,
    outcome: Outcome<'a>,
}

impl Resolver<'_> {
    fn name(&mut self, name: NameId) -> Arc<str> {
        let body = self.body;
        Arc::clone(self.names.entry(name).or_insert_with(|| body.outline.names.get(name).into()))
    }

    fn reference(&mut self, reference: &Reference) {
        self.inference.refuel();
        match reference.subject {
            Subject::Name(used) | Subject::Key { used, .. } => self.bare_reference(reference, used, Sense::Value),
            Subject::Type(used) => {
                self.bare_reference(reference, used, if reference.qualifier { Sense::Space } else { Sense::Type });
            }
            Subject::Member { object, name } => {
                let name = self.name(name);
                let meaning = match object {
                    Some(object) => self.member(object, &name),
                    None => Meaning::nothing(Reason::DynamicReceiver),
                };
                self.emit(reference, name, &meaning);
            }
            Subject::TypeMember { object, name } => {
                let name = self.name(name);
                let sense = if reference.qualifier { Sense::Space } else { Sense::Type };
                let meaning = match object {
                    Some(object) => self.type_member(object, &name, sense),
                    None => Meaning::nothing(Reason::UnresolvedMember),
                };
                self.emit(reference, name, &meaning);
            }
            Subject::Module { import, name } => {
                let name = self.name(name);
                let meaning = self.imported_module(import);
                self.emit(reference, name, &meaning);
            }
            // A form of another language.
            Subject::Path(_) => {}
            Subject::Imported(import) => {
                let outline = self.view.outline(import);
                let name = outline.imports.get(import.index()).and_then(|import| import.name).map(|name| outline.names.get(name));
                let text: Arc<str> = name.unwrap_or("").into();
                let followed = self.inference.import(0, import.in_body(), import.index() as u32);
                let meaning = self.followed(&followed, Sense::Value, "esm_import");
                self.emit(reference, text, &meaning);
            }
            // No test runner of these languages gives parameters by their names.
            Subject::Injected(_) => {}
        }
    }

    fn bare_reference(&mut self, reference: &Reference, used: Use, sense: Sense) {
        let (key, name) = match used {
            Use::One(binding) => ((binding, 0, sense), self.binding_name(binding)),
            Use::Many(set) => {
                let first = self.view.bindings_of(used).into_iter().next();
                ((set, 1, sense), first.map_or_else(|| Arc::from(""), |binding| self.binding_name(binding)))
            }
            Use::Free(free) => ((free, 2, sense), Arc::from(free_name(&self.view, free))),
        };
        let meaning = match self.uses.get(&key) {
            Some(known) => Rc::clone(known),
            None => {
                let meaning = Rc::new(self.bare_name(used, &name, sense));
                self.uses.insert(key, Rc::clone(&meaning));
                meaning
            }
        };
        self.emit(reference, name, &meaning);
    }

    fn binding_name(&self, binding: Handle) -> Arc<str> {
        self.view.binding(binding).map_or("", |bound| self.view.names(binding).get(bound.name)).into()
    }

    /// The module that an import names.
    fn imported_module(&mut self, import: Handle) -> Meaning {
        let outline = self.view.outline(import);
        let Some(import) = outline.imports.get(import.index()) else { return Meaning::nothing(Reason::UnresolvedImport) };
        match module_of_import(outline, import, &self.view.path, &self.view.context, self.inference.lookup) {
            Ok(module) => {
                let target = modules::file_of(&module).map(|file| Target { file, definition: None });
                Meaning { targets: target.into_iter().collect(), rule: "esm_import", reason: None }
            }
            Err(reason) => Meaning::nothing(reason),
        }
    }

    /// Makes a meaning of what a name of a module leads to.
    fn followed(&mut self, followed: &Followed, sense: Sense, rule: &'static str) -> Meaning {
        let mut targets: SmallVec<[Target; 2]> = SmallVec::new();
        let mut only_value = false;
        for end in &followed.ends {
            match end {
                End::Definition(target) => targets.push(target.clone()),
                End::Module(module) => {
                    if let Some(file) = modules::file_of(module) {
                        targets.push(Target { file, definition: None });
                    }
                }
                End::Value(..) => only_value = true,
            }
        }
        let mut reason = followed.reason;
        if targets.is_empty() && only_value && reason.is_none() {
            reason = Some(Reason::LocalBinding);
        }
        if targets.len() > 1 && reason.is_none() {
            targets = self.choose(targets, sense);
            if targets.len() > 1 {
                reason = Some(Reason::ConditionalBinding);
            }
        }
        let rule = match reason {
            Some(Reason::ConditionalBinding) => "conditional_binding",
            Some(Reason::AmbiguousBinding) => "ambiguous_binding",
            _ => rule,
        };
        self.check_rebound(Meaning { targets, rule, reason })
    }

    /// Of the declarations that make one symbol, keeps the one that a use of a sense means.
    fn choose(&mut self, targets: SmallVec<[Target; 2]>, sense: Sense) -> SmallVec<[Target; 2]> {
        let mut ranked: SmallVec<[(u8, Target); 2]> = SmallVec::new();
        for target in targets {
            let kind = if target.definition.is_none() { Some(SymbolKind::Namespace) } else { self.inference.kind_of(&target) };
            let mut order = kind.map_or(3, |kind| rank(kind, sense));
            if sense == Sense::Value && kind == Some(SymbolKind::Variable) {
                order += 1;
            }
            ranked.push((order, target));
        }
        let best = ranked.iter().map(|(order, _)| *order).min().unwrap_or(0);
        ranked.into_iter().filter(|(order, _)| *order == best).map(|(_, target)| target).collect()
    }

    fn check_rebound(&mut self, mut meaning: Meaning) -> Meaning {
        if meaning.reason.is_none()
            && let [Target { file, definition: Some(key) }] = meaning.targets.as_slice()
            && self.inference.is_rebound(file, &key.qualified)
        {
            meaning.reason = Some(Reason::AttributeRebinding);
            meaning.rule = "attribute_rebinding";
        }
        meaning
    }

    // ---- bare names

    fn bare_name(&mut self, used: Use, name: &Arc<str>, sense: Sense) -> Meaning {
        match used {
            Use::One(binding) => self.one_binding(binding, sense),
            Use::Many(set) => {
                let sets = self.view.outline(set).sets.get(set.index()).cloned().unwrap_or_default();
                let conditional = sets.iter().any(|reaching| reaching.conditional);
                let mut whole = Meaning { targets: SmallVec::new(), rule: "lexical_binding", reason: None };
                for reaching in &sets {
                    let one = self.one_binding(reaching.binding, sense);
                    if whole.targets.is_empty() {
                        (whole.rule, whole.reason) = (one.rule, one.reason);
                    }
                    whole.targets.extend(one.targets);
                }
                whole.targets.sort();
                whole.targets.dedup();
                if conditional {
                    whole.reason = Some(Reason::ConditionalBinding);
                    whole.rule = "conditional_binding";
                } else if whole.targets.len() > 1 {
                    whole.targets = self.choose(whole.targets, sense);
                }
                whole
            }
            Use::Free(_) => {
                let targets: SmallVec<[Target; 2]> = self.inference.global(name).iter().cloned().collect();
                if !targets.is_empty() {
                    let targets = self.choose(targets, sense);
                    return match targets.as_slice() {
                        [only] if only.file.as_str().ends_with(".ts") => {
                            self.check_rebound(Meaning { targets, rule: "global_script", reason: None })
                        }
                        _ if targets.len() <= MAX_CANDIDATES => {
                            Meaning { targets, rule: "global_script", reason: Some(Reason::AmbiguousBinding) }
                        }
                        _ => Meaning::nothing(Reason::AmbiguousBinding),
                    };
                }
                Meaning::nothing(if is_global(name) { Reason::ExternalImport } else { Reason::UnresolvedName })
            }
        }
    }

    /// Returns whether a definition may stand for a type; of JavaScript functions that make instances do.
    fn is_type(&mut self, target: &Target) -> bool {
        let typed = [".ts", ".tsx", ".mts", ".cts"].iter().any(|ending| target.file.as_str().ends_with(ending));
        let kind = self.inference.kind_of(target);
        !typed || !matches!(kind, Some(SymbolKind::Variable | SymbolKind::Constant | SymbolKind::Function))
    }

    fn one_binding(&mut self, handle: Handle, sense: Sense) -> Meaning {
        let view = Rc::clone(&self.view);
        let Some(binding) = view.binding(handle) else { return Meaning::nothing(Reason::UnresolvedName) };
        if let Some((_, declaration)) = view.declared(handle) {
            let target = Target { file: self.path.clone(), definition: Some(declaration.key.clone()) };
            return self.check_rebound(Meaning { targets: SmallVec::from_iter([target]), rule: "lexical_binding", reason: None });
        }
        match is_import(binding.role) {
            Some(import) => {
                let followed = self.inference.import(0, handle.in_body(), import);
                let meaning = self.followed(&followed, sense, "esm_import");
                if sense == Sense::Type
                    && !meaning.targets.is_empty()
                    && !meaning.targets.iter().any(|target| self.is_type(target))
                {
                    // The name of a type goes past what is a value only, to a global of the language as a rule.
                    let name = self.binding_name(handle);
                    return Meaning::nothing(if is_global(&name) { Reason::ExternalImport } else { Reason::UnresolvedName });
                }
                meaning
            }
            None => match (binding.role, binding.value) {
                // `import A = B.C`
                (Role::Variable, Some(value)) if binding.annotation.is_some() => match view.expression(value) {
                    Some(Expression::Name(used)) => {
                        let name = Arc::from("");
                        self.bare_name(used, &name, sense)
                    }
                    Some(Expression::Attribute { object, name }) => {
                        let name: Arc<str> = view.names(value).get(name).into();
                        let meaning = self.type_member(object, &name, Sense::Type);
                        if meaning.targets.is_empty() { self.type_member(object, &name, Sense::Space) } else { meaning }
                    }
                    _ => Meaning::nothing(Reason::LocalBinding),
                },
                _ => Meaning::nothing(Reason::LocalBinding),
            },
        }
    }

    // ---- members

    /// Returns the module, namespace or class that an expression surely is: a name bound once, or one taken from such.
    fn certain(&mut self, object: Handle, depth: u32) -> Option<Value> {
        let view = Rc::clone(&self.view);
        if depth > MAX_CHAIN {
            return None;
        }
        let meaning_of = |this: &mut Self, followed: &Followed| match (followed.ends.as_slice(), followed.reason) {
            ([End::Module(module)], None) => Some(Value::Module(module.clone())),
            (ends, None) => {
                let targets = ends.iter().filter_map(|end| match end {
                    End::Definition(target) => Some(target.clone()),
                    _ => None,
                });
                let targets = this.choose(targets.collect(), Sense::Space);
                let [target] = targets.as_slice() else { return None };
                this.certain_definition(&target.clone())
            }
            _ => None,
        };
        match view.expression(object)? {
            // `exports` itself.
            Expression::Object(class) if view.surface.open => {
                Some(Value::Class(super::infer::Place { view: 0, handle: class }, None))
            }
            Expression::Name(Use::One(binding)) => {
                let bound = view.binding(binding)?;
                match is_import(bound.role) {
                    Some(import) => {
                        let followed = self.inference.import(0, binding.in_body(), import);
                        meaning_of(self, &followed)
                    }
                    None => {
                        let (handle, declaration) = view.declared(binding)?;
                        if !matches!(declaration.kind, SymbolKind::Class | SymbolKind::Namespace | SymbolKind::Enum)
                            || bound.role != Role::Class
                        {
                            return None;
                        }
                        let (_, place) = super::infer::shape_of(0, handle, declaration)?;
                        Some(Value::Class(place, None))
                    }
                }
            }
            Expression::Attribute { object, name } => {
                let name: Arc<str> = view.names(object).get(name).into();
                match self.certain(object, depth + 1)? {
                    Value::Module(module) => {
                        let followed = self.inference.follow(&module, &name);
                        meaning_of(self, &followed)
                    }
                    value @ Value::Class(..) => {
                        let member = self.inference.member(&value, &name).filter(|member| member.certain)?;
                        let targets = self.inference.member_targets(&member);
                        let targets = self.choose(targets, Sense::Space);
                        let [target] = targets.as_slice() else { return None };
                        self.certain_definition(&target.clone())
                    }
                    _ => None,
                }
            }
            _ => None,
        }
    }

    fn certain_definition(&mut self, target: &Target) -> Option<Value> {
        let (view, binding) = self.inference.place_of(target)?;
        let file = self.inference.view(view);
        let (handle, declaration) = file.declared(binding)?;
        if !matches!(declaration.kind, SymbolKind::Class | SymbolKind::Namespace | SymbolKind::Enum) {
            return None;
        }
        let (_, place) = super::infer::shape_of(view, handle, declaration)?;
        Some(Value::Class(place, None))
    }

    /// A name that a module gives away, taken from what `require` of it gives.
    fn exported_member(&mut self, object: Handle, name: &Arc<str>) -> Option<Meaning> {
        let view = Rc::clone(&self.view);
        let Some(Expression::Name(Use::One(binding))) = view.expression(object) else { return None };
        let import = is_import(view.binding(binding)?.role)?;
        let outline = view.outline(binding);
        let import = outline.imports.get(import as usize)?;
        if outline.names.get(import.name?) != WHOLE {
            return None;
        }
        let module = module_of_import(outline, import, &view.path, &view.context, self.inference.lookup).ok()?;
        if !self.inference.table(&module).names.contains_key(name) {
            return None;
        }
        // A property that holds what a name means is no name for it.
        let whole = self.inference.follow(&module, &WHOLE.into());
        for end in &whole.ends {
            for value in self.inference.end_values(end, Sense::Value) {
                if let Some(member) = self.inference.member(&value, name)
                    && self.is_held(&member)
                {
                    return None;
                }
            }
        }
        let followed = self.inference.follow(&module, name);
        (!followed.ends.is_empty()).then(|| self.followed(&followed, Sense::Value, "module_export"))
    }

    fn member(&mut self, object: Handle, name: &Arc<str>) -> Meaning {
        if let Some(exported) = self.exported_member(object, name) {
            return exported;
        }
        if let Some(value) = self.certain(object, 0) {
            match &value {
                Value::Module(module) => {
                    let followed = self.inference.follow(module, name);
                    return self.followed(&followed, Sense::Value, "module_export");
                }
                value @ Value::Class(..) => {
                    if let Some(member) = self.inference.member(value, name) {
                        let conditional = self.is_conditional(&member);
                        let targets = self.inference.member_targets(&member);
                        let targets = if targets.len() > 1 { self.choose(targets, Sense::Value) } else { targets };
                        if targets.is_empty() {
                            return Meaning::nothing(Reason::LocalBinding);
                        }
                        // A property that holds what a name means is no name for it; what is exported is.
                        let held = !matches!(self.view.expression(object), Some(Expression::Object(_))) && self.is_held(&member);
                        let uncertain = !member.certain || conditional || held || targets.len() > 1;
                        let reason = uncertain.then_some(Reason::AmbiguousMember);
                        let rule = if reason.is_some() { "receiver_hint" } else { "static_member" };
                        return self.check_rebound(Meaning { targets, rule, reason });
                    }
                }
                _ => {}
            }
        }
        let values = self.inference.values_of(0, object, &None);
        let mut targets: SmallVec<[Target; 2]> = SmallVec::new();
        let mut external = false;
        let mut field = false;
        for value in &values {
            match value {
                Value::External | Value::Sequence(_) | Value::Tuple(_) | Value::Promise(_) | Value::Gives(..) => external = true,
                Value::Module(module) => {
                    let followed = self.inference.follow(module, name);
                    targets.extend(followed.ends.iter().filter_map(|end| match end {
                        End::Definition(target) => Some(target.clone()),
                        _ => None,
                    }));
                    external |= followed.reason == Some(Reason::ExternalImport);
                }
                value => {
                    if let Some(member) = self.inference.member(value, name) {
                        field = true;
                        let found = self.inference.member_targets(&member);
                        targets.extend(if found.len() > 1 { self.choose(found, Sense::Value) } else { found });
                    }
                }
            }
        }
        targets.sort();
        targets.dedup();
        if targets.is_empty() {
            let reason = match values.is_empty() {
                true => Reason::DynamicReceiver,
                // A property, which is no definition.
                false if field => Reason::LocalBinding,
                false if external => Reason::ExternalImport,
                false => Reason::UnresolvedMember,
            };
            return Meaning::nothing(reason);
        }
        if targets.len() > MAX_CANDIDATES {
            return Meaning::nothing(Reason::AmbiguousMember);
        }
        let reason = if targets.len() > 1 { Reason::AmbiguousMember } else { Reason::DynamicReceiver };
        Meaning { targets, rule: self.receiver_rule(object), reason: Some(reason) }
    }

    /// Returns whether a member is a property that was given the value of a name: `Class.member = name`.
    fn is_held(&self, member: &Member) -> bool {
        let file = self.inference.view(member.owner.view);
        file.bindings_of(member.used)
            .into_iter()
            .filter_map(|handle| file.binding(handle))
            .any(|binding| binding.declaration.is_none() && binding.annotation.is_none() && is_import(binding.role).is_none())
    }

    /// Returns whether something else may have been assigned to a member.
    fn is_conditional(&self, member: &Member) -> bool {
        let Use::Many(set) = member.used else { return false };
        let file = self.inference.view(member.owner.view);
        let sets = file.outline(set).sets.get(set.index());
        sets.into_iter().flatten().any(|reaching| reaching.conditional)
    }

    fn type_member(&mut self, object: Handle, name: &Arc<str>, sense: Sense) -> Meaning {
        let spaces = self.inference.spaces_of(0, object);
        let mut external = false;
        for space in &spaces {
            match space {
                Value::Module(module) => {
                    let followed = self.inference.follow(module, name);
                    return self.followed(&followed, sense, "module_export");
                }
                Value::External => external = true,
                space => {
                    if let Some(member) = self.inference.member(space, name) {
                        let targets = self.inference.member_targets(&member);
                        let targets = if targets.len() > 1 { self.choose(targets, sense) } else { targets };
                        if !targets.is_empty() {
                            let reason = (targets.len() > 1).then_some(Reason::AmbiguousMember);
                            return self.check_rebound(Meaning { targets, rule: "namespace_member", reason });
                        }
                    }
                }
            }
        }
        Meaning::nothing(if external || spaces.is_empty() { Reason::ExternalImport } else { Reason::UnresolvedMember })
    }

    /// Names the kind of evidence that a receiver is.
    fn receiver_rule(&self, object: Handle) -> &'static str {
        match self.view.expression(object) {
            Some(Expression::This { .. }) => "self_member",
            Some(Expression::Above { .. }) => "super_member",
            Some(Expression::New { .. }) => "constructor_receiver",
            Some(Expression::Call { .. } | Expression::Invocation { .. }) => "result_receiver",
            Some(Expression::Instance(_)) => "annotation_receiver",
            Some(Expression::Name(used)) => {
                for binding in self.view.bindings_of(used) {
                    match self.view.binding(binding) {
                        Some(bound) if bound.annotation.is_some() => return "annotation_receiver",
                        Some(bound) => match bound.value.and_then(|value| self.view.expression(value)) {
                            Some(Expression::New { .. }) => return "constructor_receiver",
                            Some(Expression::Object(_)) => return "object_member",
                            Some(Expression::Call { .. } | Expression::Invocation { .. }) => return "result_receiver",
                            _ => {}
                        },
                        None => {}
                    }
                }
                "receiver_hint"
            }
            _ => "receiver_hint",
        }
    }

    // ---- output

    fn emit(&mut self, reference: &Reference, name: Arc<str>, meaning: &Meaning) {
        // Of a namespace the file's own edge tells; a use of the name has none.
        let is_module = matches!(reference.subject, Subject::Module { .. });
        let to_files = is_module || (!reference.qualifier && reference.kind == EdgeKind::Imports);
        self.outcome.add(reference, name, meaning, to_files);
    }
}
