//! Traits: which a type parameter or a trait object has, which a type implements, and who implements one.
//!
//! Must not know references. Invariant: a bound from outside the repository is never taken for met or unmet, but for possible.

use std::rc::Rc;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::Inference;
use super::evaluate::last_of;
use super::members::{Fitting, is_of_references, last_word};
use super::types::{Answer, Meaning, Place, Trait, Type, What};
use super::unify::{self, fits};
use crate::model::facts::{Expression, Handle, Shape};
use crate::model::{Reason, Target};

/// Most traits that one asks for, together.
const MAX_TRAITS: usize = 32;
/// More implementations than this are not listed.
const MAX_IMPLEMENTATIONS: usize = 64;

/// Which types were found to have which traits.
#[derive(Debug, Default)]
pub(super) struct Implemented {
    known: FxHashMap<(Type, Place), Option<bool>>,
    /// What is being asked.
    open: Vec<(Type, Place)>,
    /// What was found since nothing was open.
    fresh: Vec<(Type, Place)>,
    /// Something of this was asked for while it was being answered.
    circular: bool,
}

impl Inference<'_> {
    /// Returns the traits of a list of bounds.
    pub(super) fn traits_in(&mut self, view: u32, list: Option<Handle>) -> Vec<Trait> {
        let mut found = Vec::new();
        let mut next = list;
        while let Some(handle) = next {
            let Some(Expression::List(entry, rest)) = self.view(view).expression(handle) else { break };
            match self.answer(view, entry).meaning.clone() {
                Meaning::Trait(one) => found.push(one),
                Meaning::Type(Type::Function(function)) | Meaning::Value(Type::Function(function)) => {
                    found.push(Trait::Callable(function));
                }
                Meaning::External(path) => {
                    found.push(Trait::External { name: last_of(&path).into(), arguments: Rc::from([]) });
                }
                Meaning::Type(Type::Std { name, arguments }) => found.push(Trait::External { name: name.into(), arguments }),
                _ => found.push(Trait::External { name: "".into(), arguments: Rc::from([]) }),
            }
            if found.len() > MAX_TRAITS {
                break;
            }
            next = rest;
        }
        found
    }

    /// Returns the traits that a type parameter or a trait object has, with those they ask for.
    pub(super) fn traits_of(&mut self, type_: &Type) -> Vec<Trait> {
        let mut found = match type_ {
            Type::Parameter(place) => {
                let file = self.view(place.view);
                let bounds = file.outline(place.handle).bindings.get(place.handle.index()).and_then(|binding| binding.annotation);
                self.deeper(Vec::new(), |this| this.traits_in(place.view, bounds))
            }
            Type::Traits(traits) => traits.to_vec(),
            _ => Vec::new(),
        };
        let mut next = 0;
        while next < found.len() && found.len() < MAX_TRAITS {
            if let Trait::Local { at, .. } = &found[next].clone() {
                for above in self.asked_for(*at) {
                    if !found.iter().any(|known| unify::same(known, &above)) {
                        found.push(above);
                    }
                }
            }
            next += 1;
        }
        found
    }

    /// Returns the traits that a trait asks for.
    fn asked_for(&mut self, at: Place) -> Vec<Trait> {
        let file = self.view(at.view);
        let Some(Shape::Type(shape)) = file.declaration(at.handle).map(|declared| declared.shape) else { return Vec::new() };
        let shape = at.handle.beside(shape);
        let embedded = file.shape(shape).map(|shape| shape.embedded.clone()).unwrap_or_default();
        embedded
            .into_iter()
            .map(|above| match self.answer(at.view, above).meaning.clone() {
                Meaning::Trait(one) => one,
                Meaning::External(path) => Trait::External { name: last_of(&path).into(), arguments: Rc::from([]) },
                _ => Trait::External { name: "".into(), arguments: Rc::from([]) },
            })
            .collect()
    }

    /// Returns the member of that name that a trait declares.
    fn declared_in_trait(&mut self, at: Place, name: &str, itself: Option<&Type>) -> Option<Fitting> {
        let file = self.view(at.view);
        let handle = file.block_of(at.handle)?;
        let block = file.block(handle)?;
        let (_, own) = block.declares?;
        let member = *block
            .members
            .iter()
            .find(|member| file.declaration(**member).is_some_and(|member| last_word(&member.key.qualified) == name))?;
        let place = Place { view: at.view, handle: member };
        let target = self.target_of(place)?;
        let own = Place { view: at.view, handle: own };
        let substitution = itself.map(|itself| (own, itself.clone())).into_iter().collect();
        let by = Some(Trait::Local { at, arguments: Rc::from([]) });
        Some(Fitting { target, place, substitution, by, perhaps: false })
    }

    /// Returns what a trait says of a member, for a type that has it or for none.
    pub(super) fn in_trait(&mut self, at: Place, name: &str, itself: Option<&Type>) -> Option<Answer> {
        let fitting = self.declared_in_trait(at, name, itself)?;
        let meaning = self.meaning_of_member(&fitting);
        let also = self.implementations(at, name);
        Some(Answer { what: What::Targets { targets: vec![fitting.target], rule: "rust_trait", reason: None, also }, meaning })
    }

    /// Returns what the traits of a type parameter or trait object say of a member.
    pub(super) fn by_bounds(&mut self, type_: &Type, name: &str) -> Option<Answer> {
        let traits = self.traits_of(type_);
        let mut found: Vec<Answer> = Vec::new();
        for one in &traits {
            if let Trait::Local { at, .. } = one {
                found.extend(self.in_trait(*at, name, Some(type_)));
            }
        }
        match found.len() {
            0 => None,
            1 => found.pop(),
            _ => {
                let mut targets: Vec<Target> = Vec::new();
                for answer in found {
                    if let What::Targets { targets: some, .. } = answer.what {
                        targets.extend(some);
                    }
                }
                targets.sort();
                targets.dedup();
                let reason = Some(Reason::AmbiguousMember);
                let what = What::Targets { targets, rule: "ambiguous_binding", reason, also: Rc::from([]) };
                Some(Answer { what, meaning: Meaning::Unknown })
            }
        }
    }

    /// Returns the members that implement one of a trait.
    fn implementations(&mut self, at: Place, name: &str) -> Rc<[Target]> {
        let key = (at.view, at.handle, Arc::from(name));
        if let Some(known) = self.implementations.get(&key) {
            return Rc::clone(known);
        }
        // Whoever comes here again on the way to the answer finds none.
        self.implementations.insert(key.clone(), Rc::from([]));
        let mut found = Vec::new();
        let file = self.view(at.view);
        if let Some(declared) = file.declaration(at.handle) {
            let word = last_word(&declared.key.qualified).to_owned();
            let named = self.lookup.members_named(&format!("{word}>{name}"));
            let mut places: Vec<Place> = named.iter().filter_map(|target| self.place_of(target)).collect();
            let own = self.view(0);
            for handle in own.body_blocks() {
                let members = own.block(handle).filter(|block| block.of.is_some()).map(|block| block.members.clone());
                places.extend(members.into_iter().flatten().filter_map(|handle| {
                    let is_named = last_word(&own.declaration(handle)?.key.qualified) == name;
                    is_named.then_some(Place { view: 0, handle })
                }));
            }
            for place in places {
                let Some(block) = self.view(place.view).block_of(place.handle) else { continue };
                if matches!(self.trait_of(place.view, block), Some(Trait::Local { at: other, .. }) if other == at) {
                    found.extend(self.target_of(place));
                }
            }
        }
        found.sort();
        found.dedup();
        if found.len() > MAX_IMPLEMENTATIONS {
            found.clear();
        }
        let found: Rc<[Target]> = found.into();
        self.implementations.insert(key, Rc::clone(&found));
        found
    }

    /// Returns whether a type has a trait of the repository: `None` when not, and else whether that hangs on what cannot be seen.
    pub(super) fn implements(&mut self, type_: &Type, one: &Trait) -> Option<bool> {
        let Trait::Local { at, .. } = one else { return Some(true) };
        let key = (type_.clone(), *at);
        if let Some(known) = self.implemented.known.get(&key) {
            return *known;
        }
        if self.implemented.open.contains(&key) {
            // Nothing is implemented because it is implemented.
            self.implemented.circular = true;
            return None;
        }
        if self.depth >= super::MAX_DEPTH {
            self.implemented.circular = true;
            return None;
        }
        self.implemented.open.push(key.clone());
        let found = self.deeper(None, |this| this.find_implementation(type_, one));
        self.implemented.open.pop();
        self.implemented.known.insert(key.clone(), found);
        self.implemented.fresh.push(key);
        if self.implemented.open.is_empty() {
            let fresh = std::mem::take(&mut self.implemented.fresh);
            if std::mem::take(&mut self.implemented.circular) {
                // What was found on the way may have missed what was open; the first question is answered whole.
                for key in &fresh[..fresh.len() - 1] {
                    self.implemented.known.remove(key);
                }
            }
        }
        found
    }

    fn find_implementation(&mut self, type_: &Type, one: &Trait) -> Option<bool> {
        let Trait::Local { at, .. } = one else { return Some(true) };
        if matches!(type_, Type::Parameter(_) | Type::Traits(_)) {
            let has = self.traits_of(type_).iter().any(|known| unify::same(known, one));
            if has {
                return Some(false);
            }
        }
        let word = last_word(&self.view(at.view).declaration(at.handle)?.key.qualified).to_owned();
        let mut perhaps = None;
        let label = self.label(type_);
        for label in label.as_deref().into_iter().chain(["*"]) {
            let found = self.lookup.members_named(&format!("impl {word} for {label}"));
            let mut blocks: Vec<(u32, Handle)> = Vec::new();
            for target in found.iter() {
                let index = target.definition.as_ref().map_or(0, |key| key.ordinal as usize);
                blocks.extend(self.view_of(&target.file).map(|view| (view, Handle::of_surface(index))));
            }
            blocks.extend(self.view(0).body_blocks().map(|handle| (0, handle)));
            for (view, handle) in blocks {
                if !self.trait_of(view, handle).is_some_and(|other| unify::same(&other, one)) {
                    continue;
                }
                let subject = self.subject(view, handle);
                if subject.is_unknown()
                    || is_of_references(&subject)
                    || !fits(subject.behind(), type_.behind(), &mut unify::Found::default(), 0)
                {
                    continue;
                }
                // What a macro makes in the block may go before what the trait gives.
                let open = self.view(view).block(handle).is_some_and(|block| block.open);
                match subject.behind() {
                    Type::Parameter(parameter) => match self.meets_bounds(*parameter, type_) {
                        Some(false) => return Some(open),
                        Some(true) => perhaps = Some(true),
                        None => {}
                    },
                    _ => return Some(open),
                }
            }
        }
        perhaps
    }

    /// Returns whether the trait of a member is one that references have because what they refer to has it: then a call through a
    /// reference may be of theirs.
    pub(super) fn is_forwarded(&mut self, member: &Target) -> bool {
        let Some(place) = self.place_of(member) else { return false };
        let file = self.view(place.view);
        let Some(handle) = file.block_of(place.handle) else { return false };
        let declared = file.block(handle).and_then(|block| block.declares).map(|(at, _)| Place { view: place.view, handle: at });
        let at = match (declared, self.trait_of(place.view, handle)) {
            (Some(at), _) | (None, Some(Trait::Local { at, .. })) => at,
            (None, Some(Trait::External { name, .. })) => return matches!(&*name, "AsRef" | "Borrow"),
            _ => return false,
        };
        let Some(word) = self.target_of(at).and_then(|target| target.definition) else { return false };
        let found = self.lookup.members_named(&format!("impl {} for *", last_word(&word.qualified)));
        found.iter().any(|target| {
            let index = target.definition.as_ref().map_or(0, |key| key.ordinal as usize);
            self.view_of(&target.file).is_some_and(|view| {
                let subject = self.subject(view, Handle::of_surface(index));
                is_of_references(&subject)
            })
        })
    }

    /// Returns whether a type meets the bounds of a type parameter: `None` when not, and else whether that hangs on what cannot be seen.
    pub(super) fn meets_bounds(&mut self, parameter: Place, type_: &Type) -> Option<bool> {
        let mut perhaps = false;
        for bound in self.traits_of(&Type::Parameter(parameter)) {
            perhaps |= match &bound {
                Trait::Local { .. } => self.implements(type_, &bound)?,
                Trait::External { name, .. } => !matches!(&**name, "Sized" | "Send" | "Sync"),
                Trait::Callable(_) => {
                    if !matches!(type_, Type::Function(_) | Type::Parameter(_) | Type::Traits(_) | Type::Unknown) {
                        return None;
                    }
                    true
                }
            };
        }
        Some(perhaps)
    }
}
