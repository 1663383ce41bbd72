//! Members of types: which function a method call or a path into a type means.
//!
//! Must not know references. Invariant: a member of the type itself goes before one of a trait, one found at fewer dereferences before
//! one found at more, and members of two traits at once are never chosen between.

use std::rc::Rc;
use std::sync::Arc;

use super::Inference;
use super::types::{Answer, ELEMENT, Meaning, Place, Substitution, Trait, Type, What};
use super::unify::{self, fits, put};
use crate::model::facts::{Handle, ItemMeaning, Shape, Space, TypeForm, Visibility};
use crate::model::{DefinitionKey, Reason, Surface, SymbolKind, Target};

/// Most dereferences that a method call makes.
const MAX_STEPS: usize = 10;

/// A member that fits.
#[derive(Clone, Debug)]
pub(super) struct Fitting {
    pub target: Target,
    pub place: Place,
    pub substitution: Substitution,
    /// The trait it is a member by.
    pub by: Option<Trait>,
    /// It fits if its type parameter has a bound that cannot be seen.
    pub perhaps: bool,
}

/// Returns what [`crate::languages::Lookup::members_named`] finds of a file: members under the type and under the trait as they are
/// written, the blocks themselves, exported macros, and modules at paths of their own.
pub(in crate::languages::rust) fn declared_members(surface: &Surface) -> Vec<(Arc<str>, DefinitionKey)> {
    let outline = &surface.outline;
    let mut found = Vec::new();
    for (index, block) in outline.blocks.iter().enumerate() {
        let label = outline.names.get(block.label);
        let of = block.of.map(|(_, name)| outline.names.get(name));
        for member in &block.members {
            let Some(declaration) = outline.declarations.get(member.index()) else { continue };
            let key = &declaration.key;
            let name = key.qualified.rsplit('.').next().unwrap_or("");
            if block.declares.is_some() {
                found.push((format!("trait.{name}").into(), key.clone()));
            } else {
                found.push((format!("{label}.{name}").into(), key.clone()));
            }
            found.extend(of.map(|of| (format!("{of}>{name}").into(), key.clone())));
        }
        if let Some(of) = of {
            let ordinal = u32::try_from(index).unwrap_or(u32::MAX);
            for of in [of, "*"] {
                found.push((format!("impl {of} for {label}").into(), DefinitionKey { qualified: "impl".into(), ordinal }));
            }
        }
    }
    for scope in &outline.scopes {
        for item in &scope.items {
            let name = outline.names.get(item.name);
            match item.meaning {
                ItemMeaning::Declaration(declaration) if item.space == Space::Macro => {
                    let exported = item.visibility == Visibility::Public;
                    if let Some(declaration) = outline.declarations.get(declaration.index()).filter(|_| exported) {
                        found.push((format!("{name}!").into(), declaration.key.clone()));
                    }
                }
                ItemMeaning::File { path: None } if item.space == Space::Type => {
                    found.push((format!("mod:{name}").into(), DefinitionKey { qualified: "mod".into(), ordinal: 0 }));
                }
                ItemMeaning::File { path: Some(path) } => {
                    let path = outline.names.get(path);
                    let last = path.rsplit('/').next().unwrap_or(path);
                    found.push((format!("path:{last}").into(), DefinitionKey { qualified: "path".into(), ordinal: 0 }));
                }
                _ => {}
            }
        }
    }
    found
}

/// Returns whether a block is for the references to whatever type.
pub(super) fn is_of_references(subject: &Type) -> bool {
    matches!(subject, Type::Reference(inner) if matches!(inner.behind(), Type::Parameter(_)))
}

/// Returns the last part of a declaration's name.
pub(super) fn last_word(qualified: &str) -> &str {
    qualified.rsplit('.').next().unwrap_or(qualified)
}

impl Inference<'_> {
    /// Returns the word under which the members of a type are declared.
    pub(super) fn label(&self, type_: &Type) -> Option<String> {
        Some(match type_.behind() {
            Type::Named { at, .. } => last_word(&self.view(at.view).declaration(at.handle)?.key.qualified).to_owned(),
            // One of several types.
            Type::Std { name, .. } | Type::Basic(name) if name.starts_with('{') => return None,
            Type::Std { name, .. } | Type::Basic(name) => (*name).to_owned(),
            Type::Sequence(_) => "[]".to_owned(),
            Type::Traits(traits) => match traits.first()? {
                Trait::Local { at, .. } => last_word(&self.view(at.view).declaration(at.handle)?.key.qualified).to_owned(),
                Trait::External { name, .. } => name.to_string(),
                Trait::Callable(_) => return None,
            },
            Type::Tuple(_) => String::new(),
            _ => return None,
        })
    }

    /// Returns the members of that name in blocks for types of that label, of other files and of the file in hand.
    fn declared(&mut self, label: &str, name: &str) -> Vec<Place> {
        let found = self.lookup.members_named(&format!("{label}.{name}"));
        let mut places: Vec<Place> = found.iter().filter_map(|target| self.place_of(target)).collect();
        let own = self.view(0);
        for handle in own.body_blocks() {
            let Some(block) = own.block(handle) else { continue };
            if block.declares.is_some() || own.text(block.label, handle) != label {
                continue;
            }
            for member in &block.members {
                if own.declaration(*member).is_some_and(|member| last_word(&member.key.qualified) == name) {
                    places.push(Place { view: 0, handle: *member });
                }
            }
        }
        places
    }

    /// Returns the type that a block is for.
    pub(super) fn subject(&mut self, view: u32, block: Handle) -> Type {
        let file = self.view(view);
        let Some(subject) = file.block(block).map(|block| block.subject) else { return Type::Unknown };
        self.type_of(view, subject)
    }

    /// Returns the trait that a block implements.
    pub(super) fn trait_of(&mut self, view: u32, block: Handle) -> Option<Trait> {
        let file = self.view(view);
        let (of, name) = file.block(block)?.of?;
        match self.answer(view, of).meaning.clone() {
            Meaning::Trait(one) => Some(one),
            _ => Some(Trait::External { name: file.text(name, block).into(), arguments: Rc::from([]) }),
        }
    }

    /// Returns the members of that name that a type has, at no dereference but through references.
    pub(super) fn members(&mut self, type_: &Type, name: &str) -> Vec<Fitting> {
        let bare = type_.behind().clone();
        let (inherent, by_trait) = self.labelled(&bare, name);
        if inherent.is_empty() { self.by_traits(&bare, name, by_trait) } else { inherent }
    }

    /// Returns the members of that name in blocks for a type: its own, and those by traits.
    fn labelled(&mut self, bare: &Type, name: &str) -> (Vec<Fitting>, Vec<Fitting>) {
        let mut inherent = Vec::new();
        let mut by_trait: Vec<Fitting> = Vec::new();
        if let Some(label) = self.label(bare) {
            for place in self.declared(&label, name) {
                let Some(fitting) = self.fitting(place, bare) else { continue };
                if fitting.by.is_none() { inherent.push(fitting) } else { by_trait.push(fitting) }
            }
        }
        (inherent, by_trait)
    }

    /// Adds the members of that name that a type has by traits implemented for all types, and those that traits give by themselves.
    fn by_traits(&mut self, bare: &Type, name: &str, mut by_trait: Vec<Fitting>) -> Vec<Fitting> {
        for place in self.declared("*", name) {
            by_trait.extend(self.fitting(place, bare));
        }
        let declared = self.lookup.members_named(&format!("trait.{name}"));
        for target in declared.iter() {
            let Some(place) = self.place_of(target) else { continue };
            let file = self.view(place.view);
            let Some(block) = file.block_of(place.handle) else { continue };
            let Some((at, own)) = file.block(block).and_then(|block| block.declares) else { continue };
            let one = Trait::Local { at: Place { view: place.view, handle: at }, arguments: Rc::from([]) };
            if by_trait.iter().any(|known| known.by.as_ref().is_some_and(|by| unify::same(by, &one))) {
                continue;
            }
            if let Some(perhaps) = self.implements(bare, &one) {
                let substitution: Substitution = Rc::from([(Place { view: place.view, handle: own }, bare.clone())]);
                by_trait.push(Fitting { target: target.clone(), place, substitution, by: Some(one), perhaps });
            }
        }
        // A member that a type from outside has itself goes before.
        let has_own = match bare {
            Type::External => true,
            Type::Std { .. } | Type::Basic(_) | Type::Sequence(_) | Type::Raw(_) => super::standard::is_member(name),
            _ => false,
        };
        for fitting in &mut by_trait {
            fitting.perhaps |= has_own;
        }
        by_trait
    }

    /// Returns how a member takes what it is called on: by value, by `&`, by `&mut`; 0 where it takes nothing.
    fn taking(&self, place: Place) -> u8 {
        let file = self.view(place.view);
        let Some(Shape::Signature(signature)) = file.declaration(place.handle).map(|declared| declared.shape) else { return 0 };
        match file.outline(place.handle).signatures.get(signature as usize) {
            Some(signature) => match (signature.variadic, signature.by_pointer) {
                (true, false) => 1,
                (true, true) => 2,
                (false, true) => 3,
                (false, false) => 0,
            },
            None => 0,
        }
    }

    /// Adds to the own members of a type those by traits that are found before them, as they take less of a reference to what they are
    /// called on.
    fn with_earlier(&mut self, type_: &Type, name: &str, mut fitting: Vec<Fitting>, through: bool) -> Vec<Fitting> {
        if fitting.iter().any(|one| one.by.is_some()) {
            return fitting;
        }
        let last = fitting.iter().map(|one| self.taking(one.place)).max().unwrap_or(0);
        // What is called through a reference needs none to be made, and has nothing to give by value.
        let first = if through { 2 } else { 1 };
        if last <= first {
            return fitting;
        }
        let bare = type_.behind().clone();
        let (_, by_trait) = self.labelled(&bare, name);
        let mut earlier = self.by_traits(&bare, name, by_trait);
        earlier.retain(|one| (first..last).contains(&self.taking(one.place)));
        if !earlier.is_empty() {
            fitting.extend(earlier);
            for one in &mut fitting {
                one.perhaps = true;
            }
        }
        fitting
    }

    /// Returns whether a type may have a method of that name that nobody in the repository writes: by a trait from outside.
    fn may_be_given(&mut self, type_: &Type, name: &str) -> bool {
        if super::known::is_given(name) {
            return true;
        }
        let Some(label) = self.label(type_) else { return true };
        let found = self.lookup.members_named(&format!("impl * for {label}"));
        let mut blocks: Vec<(u32, Handle)> = Vec::new();
        for target in found.iter() {
            let index = target.definition.as_ref().map_or(0, |key| key.ordinal as usize);
            blocks.extend(self.view_of(&target.file).map(|view| (view, Handle::of_surface(index))));
        }
        blocks.extend(self.view(0).body_blocks().map(|handle| (0, handle)));
        blocks.into_iter().any(|(view, handle)| match self.trait_of(view, handle) {
            Some(Trait::External { name: of, .. }) if super::known::may_give(&of, name) => {
                let subject = self.subject(view, handle);
                fits(subject.behind(), type_.behind(), &mut unify::Found::default(), 0)
            }
            _ => false,
        })
    }

    /// Returns the member at a place when its block is for the type.
    fn fitting(&mut self, place: Place, type_: &Type) -> Option<Fitting> {
        let file = self.view(place.view);
        let block = file.block_of(place.handle)?;
        let subject = self.subject(place.view, block);
        let mut found = unify::Found::default();
        if is_of_references(&subject) || !fits(subject.behind(), type_, &mut found, 0) || subject.is_unknown() {
            return None;
        }
        let by = self.trait_of(place.view, block);
        let mut perhaps = false;
        if let (Type::Parameter(parameter), Some(_)) = (subject.behind(), &by) {
            perhaps = self.meets_bounds(*parameter, type_)?;
        }
        // Of a type from outside there are implementations of traits from outside that nobody sees here.
        perhaps |= !matches!(type_, Type::Named { .. }) && matches!(by, Some(Trait::External { .. }));
        perhaps |= matches!(subject.behind(), Type::OneOf(_));
        let target = self.target_of(place)?;
        Some(Fitting { target, place, substitution: found.substitution(), by, perhaps })
    }

    /// Returns what a member comes to.
    pub(super) fn of_fitting(&mut self, mut fitting: Vec<Fitting>) -> Option<Answer> {
        let first = fitting.first()?.clone();
        let is_inherent = first.by.is_none();
        let rule = if is_inherent { "rust_receiver" } else { "rust_trait_impl" };
        let same_trait = |one: &Fitting| match (&one.by, &first.by) {
            (Some(one), Some(other)) => unify::same(one, other),
            (None, None) => true,
            _ => false,
        };
        let one_trait = fitting.iter().all(same_trait);
        let reason = if fitting.len() == 1 {
            first.perhaps.then_some(Reason::AmbiguousMember)
        } else if is_inherent && one_trait {
            Some(Reason::ConditionalBinding)
        } else {
            Some(Reason::AmbiguousMember)
        };
        let mut meaning = if one_trait || fitting.len() == 1 {
            let meanings: Vec<Meaning> = fitting.iter().map(|one| self.meaning_of_member(one)).collect();
            if meanings.len() == 1 { meanings.into_iter().next().unwrap_or(Meaning::Unknown) } else { Meaning::one_of(meanings) }
        } else {
            Meaning::Unknown
        };
        if fitting.iter().any(|one| one.perhaps) {
            meaning = meaning.in_doubt();
        }
        let mut targets: Vec<Target> = fitting.drain(..).map(|fitting| fitting.target).collect();
        targets.sort();
        targets.dedup();
        let reason = if targets.len() == 1 { reason.filter(|_| first.perhaps) } else { reason };
        Some(Answer { what: What::Targets { targets, rule, reason, also: Rc::from([]) }, meaning })
    }

    pub(super) fn meaning_of_member(&mut self, fitting: &Fitting) -> Meaning {
        let file = self.view(fitting.place.view);
        let Some(declared) = file.declaration(fitting.place.handle) else { return Meaning::Unknown };
        let side = |index: u32| fitting.place.handle.beside(index);
        match declared.shape {
            Shape::Signature(signature) => {
                let signature = Place { view: fitting.place.view, handle: side(signature) };
                let function = super::types::Function { signature, substitution: Rc::clone(&fitting.substitution) };
                match declared.kind {
                    SymbolKind::Constant | SymbolKind::Variable => Meaning::Value(self.result_of(&function)),
                    _ => Meaning::Value(Type::Function(function)),
                }
            }
            Shape::Type(shape) => {
                let Some(TypeForm::Alias(target)) = file.shape(side(shape)).map(|shape| shape.form) else {
                    return Meaning::Unknown;
                };
                let target = self.type_of(fitting.place.view, target);
                Meaning::Type(put(&target, &fitting.substitution))
            }
            _ => Meaning::Unknown,
        }
    }

    /// Returns what a path into a type means: a variant, or a member.
    pub(super) fn associated(&mut self, type_: &Type, name: &str) -> Answer {
        if let Type::Named { at, .. } = type_
            && let Some(answer) = self.variant_of(*at, type_, name)
        {
            return answer;
        }
        match type_ {
            Type::Parameter(_) | Type::Traits(_) => {
                if let Some(answer) = self.by_bounds(type_, name) {
                    return answer;
                }
                return Answer {
                    what: What::Nothing(Reason::DynamicReceiver),
                    meaning: Meaning::Foreign(type_.clone(), name.into()),
                };
            }
            Type::Unknown => return Answer::nothing(Reason::DynamicReceiver),
            Type::OneOf(options) => return self.of_options(options, |this, option| this.associated(option, name)),
            Type::Function(_) | Type::Payload { .. } => return Answer::nothing(Reason::UnresolvedMember),
            _ => {}
        }
        let fitting = self.members(type_, name);
        let by = fitting.first().filter(|fitting| self.is_type(fitting.place)).and_then(|fitting| fitting.by.clone());
        if let Some(answer) = self.of_fitting(fitting) {
            // An associated type is the trait's, whatever it stands for here.
            if let Some(by) = by {
                let what = match by {
                    Trait::Local { at, .. } => self.in_trait(at, name, Some(type_)).map(|answer| answer.what),
                    _ => None,
                };
                return Answer { what: what.unwrap_or(What::Nothing(Reason::ExternalImport)), meaning: answer.meaning };
            }
            return match answer {
                Answer { what: What::Targets { targets, rule: "rust_receiver", reason, also }, meaning } => {
                    Answer { what: What::Targets { targets, rule: "rust_associated", reason, also }, meaning }
                }
                other => other,
            };
        }
        let reason = if matches!(type_, Type::Named { .. }) { Reason::UnresolvedMember } else { Reason::ExternalImport };
        Answer { what: What::Nothing(reason), meaning: Meaning::Foreign(type_.clone(), name.into()) }
    }

    fn is_type(&self, place: Place) -> bool {
        self.view(place.view).declaration(place.handle).is_some_and(|declared| declared.kind == SymbolKind::Type)
    }

    pub(super) fn variant_of(&mut self, at: Place, type_: &Type, name: &str) -> Option<Answer> {
        let file = self.view(at.view);
        let Shape::Type(shape) = file.declaration(at.handle)?.shape else { return None };
        let shape = at.handle.beside(shape);
        let made = file.shape(shape)?;
        if made.form != TypeForm::Enum {
            return None;
        }
        let (_, held) = made.fields.iter().find(|(variant, _)| file.text(*variant, shape) == name)?;
        let held = held.and_then(|held| match file.expression(held)? {
            crate::model::facts::Expression::Anonymous(inner) => {
                let handle = held.beside(inner);
                Some(Place { view: at.view, handle })
            }
            _ => None,
        });
        Some(Answer::local(Meaning::Constructor(type_.clone(), held)))
    }

    /// Returns what a method call on a value of a type means.
    pub(in crate::languages::rust) fn method(&mut self, receiver: &Type, name: &str) -> Answer {
        let mut answer = self.deeper(Answer::nothing(Reason::DynamicReceiver), |this| this.find_method(receiver, name));
        if matches!(receiver, Type::Reference(_))
            && let What::Targets { targets, rule: "rust_trait" | "rust_trait_impl", reason: reason @ None, .. } = &mut answer.what
            && targets.first().cloned().is_some_and(|target| self.is_forwarded(&target))
        {
            *reason = Some(Reason::AmbiguousMember);
            answer.meaning = answer.meaning.in_doubt();
        }
        answer
    }

    fn find_method(&mut self, receiver: &Type, name: &str) -> Answer {
        let mut type_ = receiver.clone();
        let by_reference = matches!(receiver, Type::Reference(_));
        // The types of the repository that were dereferenced.
        let mut passed: Vec<Type> = Vec::new();
        for _ in 0..MAX_STEPS {
            let through = matches!(type_, Type::Reference(_));
            if let element @ Type::Std { name: ELEMENT, .. } = type_.behind() {
                // A part of the sequence has what sequences have.
                if super::standard::is_member(name) || !self.declared("[]", name).is_empty() {
                    return Answer::nothing(Reason::DynamicReceiver);
                }
                type_ = element.settled().clone();
            }
            type_ = type_.behind().clone();
            match &type_ {
                Type::OneOf(options) => {
                    return self.of_options(options, |this, option| {
                        let option = option.clone();
                        this.method(&if through { option.reference() } else { option }, name)
                    });
                }
                Type::Unknown => return Answer::nothing(Reason::DynamicReceiver),
                Type::Parameter(_) | Type::Traits(_) => {
                    if let Some(answer) = self.by_bounds(&type_, name) {
                        return answer;
                    }
                    let fitting = self.members(&type_, name);
                    if let Some(answer) = self.of_fitting(fitting) {
                        return answer;
                    }
                    let outside = self.traits_of(&type_).iter().any(|one| matches!(one, Trait::External { .. }));
                    let reason = if outside { Reason::ExternalImport } else { Reason::DynamicReceiver };
                    return Answer { what: What::Nothing(reason), meaning: Meaning::Foreign(type_, name.into()) };
                }
                Type::External => {
                    return Answer { what: What::Nothing(Reason::ExternalImport), meaning: Meaning::Foreign(type_, name.into()) };
                }
                _ => {}
            }
            let is_pointer = super::known::behind_pointer(&type_).is_some();
            let fitting = self.members(&type_, name);
            let mut fitting = self.with_earlier(&type_, name, fitting, through);
            if !fitting.is_empty() && passed.iter().any(|passed| self.may_be_given(passed, name)) {
                for one in &mut fitting {
                    one.perhaps = true;
                }
            }
            if let Some(mut answer) = self.of_fitting(fitting) {
                // A trait of the standard library may be implemented for the reference.
                if by_reference
                    && super::known::is_by_value(name)
                    && self.takes_by_value(&answer)
                    && let What::Targets { reason: reason @ None, .. } = &mut answer.what
                {
                    *reason = Some(Reason::AmbiguousMember);
                    answer.meaning = answer.meaning.in_doubt();
                }
                return answer;
            }
            if is_pointer && !super::known::is_of_pointer(&type_, name) {
                type_ = super::known::behind_pointer(&type_).unwrap_or(Type::Unknown);
                continue;
            }
            if let Some(target) = self.dereferenced(&type_) {
                passed.push(std::mem::replace(&mut type_, target));
                continue;
            }
            break;
        }
        let reason = if matches!(type_, Type::Named { .. }) { Reason::UnresolvedMember } else { Reason::ExternalImport };
        let receiver = if matches!(type_, Type::Named { .. }) { receiver.clone() } else { type_ };
        Answer { what: What::Nothing(reason), meaning: Meaning::Foreign(receiver, name.into()) }
    }

    fn takes_by_value(&mut self, answer: &Answer) -> bool {
        let Meaning::Value(Type::Function(function)) = &answer.meaning else { return false };
        let file = self.view(function.signature.view);
        let signature = file.outline(function.signature.handle).signatures.get(function.signature.handle.index());
        signature.is_some_and(|signature| signature.variadic && !signature.by_pointer)
    }

    /// Returns what something means of each of several types of which one is meant.
    fn of_options(&mut self, options: &[Type], mut answer: impl FnMut(&mut Self, &Type) -> Answer) -> Answer {
        let mut targets: Vec<Target> = Vec::new();
        let mut rule = "rust_receiver";
        let mut meanings: Vec<Type> = Vec::new();
        let mut nothing = Reason::DynamicReceiver;
        for option in options {
            let found = answer(self, option);
            match found.what {
                What::Targets { targets: some, rule: by, .. } => {
                    targets.extend(some);
                    rule = by;
                }
                What::Nothing(reason) => nothing = reason,
                What::Local | What::Modules(_) => {}
            }
            meanings.push(match found.meaning {
                Meaning::Value(type_) => type_,
                Meaning::External(_) | Meaning::Foreign(Type::External, _) => Type::External,
                _ => Type::Unknown,
            });
        }
        targets.sort();
        targets.dedup();
        let what = if targets.is_empty() {
            What::Nothing(nothing)
        } else {
            What::Targets { targets, rule, reason: Some(Reason::ConditionalBinding), also: Rc::from([]) }
        };
        Answer { what, meaning: Meaning::Value(Type::one_of(meanings)) }
    }

    /// Returns what a type of the repository is dereferenced to.
    pub(super) fn dereferenced(&mut self, type_: &Type) -> Option<Type> {
        if !matches!(type_, Type::Named { .. }) {
            return None;
        }
        let label = self.label(type_)?;
        let mut targets = Vec::new();
        for place in self.declared(&label, "Target") {
            let Some(fitting) = self.fitting(place, type_) else { continue };
            if matches!(&fitting.by, Some(Trait::External { name, .. }) if &**name == "Deref") {
                targets.push(match self.meaning_of_member(&fitting) {
                    Meaning::Type(target) => target,
                    _ => Type::Unknown,
                });
            }
        }
        if targets.is_empty() { None } else { Some(Type::one_of(targets)) }
    }

    /// Returns the type of a field of a value.
    pub(super) fn field(&mut self, receiver: &Type, name: &str) -> Type {
        let mut type_ = receiver.clone();
        for _ in 0..MAX_STEPS {
            type_ = type_.behind().clone();
            let place: Option<usize> = name.parse().ok();
            match &type_ {
                Type::Tuple(parts) => {
                    return place.and_then(|place| parts.get(place).cloned()).unwrap_or(Type::Unknown);
                }
                Type::Payload { shape, substitution } => {
                    return self.field_of(*shape, substitution, name).unwrap_or(Type::Unknown);
                }
                Type::Named { at, arguments } => {
                    if let Some((shape, substitution)) = self.shape_of(*at, arguments)
                        && let Some(found) = self.field_of(shape, &substitution, name)
                    {
                        return found;
                    }
                    match self.dereferenced(&type_) {
                        Some(target) => type_ = target,
                        None => return Type::Unknown,
                    }
                }
                Type::External => return Type::External,
                Type::OneOf(options) => {
                    return self
                        .deeper(Type::Unknown, |this| Type::one_of(options.iter().map(|option| this.field(option, name))));
                }
                other => match super::known::behind_pointer(other) {
                    Some(inner) => type_ = inner,
                    None => return Type::Unknown,
                },
            }
        }
        Type::Unknown
    }

    /// Returns the shape of a declared type, and what stands for its parameters.
    pub(super) fn shape_of(&mut self, at: Place, arguments: &Rc<[Type]>) -> Option<(Place, Substitution)> {
        let file = self.view(at.view);
        let Shape::Type(shape) = file.declaration(at.handle)?.shape else { return None };
        let handle = at.handle.beside(shape);
        let made = file.shape(handle)?;
        let entries = made.parameters.iter().zip(arguments.iter());
        let substitution =
            entries.map(|(parameter, type_)| (Place { view: at.view, handle: *parameter }, type_.clone())).collect();
        Some((Place { view: at.view, handle }, substitution))
    }

    fn field_of(&mut self, shape: Place, substitution: &Substitution, name: &str) -> Option<Type> {
        let file = self.view(shape.view);
        let made = file.shape(shape.handle)?;
        let (_, type_) = made.fields.iter().find(|(field, _)| file.text(*field, shape.handle) == name)?;
        let type_ = self.type_of(shape.view, (*type_)?);
        Some(put(&type_, substitution))
    }
}
