//! Type parameters: which type stands for one, and types with these put in place.
//!
//! Must not look anything up. Invariant: what is not known fits everything and stands for nothing.

use std::rc::Rc;

use super::known::RANGES;
use super::types::{ELEMENT, Function, Place, RANGE, Substitution, Trait, Type};

/// How deep types are compared.
const MAX_DEPTH: u32 = 12;

/// Which types stand for the parameters of one declaration, as they are found.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub entries: Vec<(Place, Type)>,
}

impl Found {
    pub(super) fn substitution(self) -> Substitution {
        self.entries.into()
    }

    pub(super) fn with(substitution: &Substitution) -> Self {
        Self { entries: substitution.to_vec() }
    }

    fn set(&mut self, parameter: Place, type_: &Type) {
        if type_.is_unknown() {
            return;
        }
        match self.entries.iter_mut().find(|(known, _)| *known == parameter) {
            Some((_, known)) if known.is_unknown() => *known = type_.clone(),
            Some(_) => {}
            None => self.entries.push((parameter, type_.clone())),
        }
    }
}

/// Returns whether a type has the form of a pattern, whose parameters then stand for parts of it.
pub(super) fn fits(pattern: &Type, type_: &Type, found: &mut Found, depth: u32) -> bool {
    if depth > MAX_DEPTH {
        return true;
    }
    match (pattern, type_) {
        (Type::Parameter(place), type_) => {
            found.set(*place, type_);
            true
        }
        (Type::Unknown, _) | (_, Type::Unknown) => true,
        (Type::OneOf(options), type_) => options.iter().any(|option| fits(option, type_, &mut Found::default(), depth + 1)),
        (pattern, Type::OneOf(options)) => options.iter().any(|option| fits(pattern, option, &mut Found::default(), depth + 1)),
        (pattern, Type::Std { name: ELEMENT, .. }) => fits(pattern, type_.settled(), found, depth + 1),
        (Type::Std { name, .. }, Type::Std { name: RANGE, .. }) if RANGES.contains(name) => true,
        (Type::Named { at, arguments }, Type::Named { at: other, arguments: others }) => {
            at == other && arguments.iter().zip(others.iter()).all(|(pattern, type_)| fits(pattern, type_, found, depth + 1))
        }
        (Type::Std { name, arguments }, Type::Std { name: other, arguments: others }) => {
            name == other && arguments.iter().zip(others.iter()).all(|(pattern, type_)| fits(pattern, type_, found, depth + 1))
        }
        (Type::Reference(inner), Type::Reference(other)) | (Type::Raw(inner), Type::Raw(other)) => {
            fits(inner, other, found, depth + 1)
        }
        (Type::Sequence(inner), Type::Sequence(other)) => fits(inner, other, found, depth + 1),
        (Type::Sequence(inner), Type::Std { name: "Vec", arguments }) => {
            arguments.first().is_none_or(|other| fits(inner, other, found, depth + 1))
        }
        (Type::Tuple(parts), Type::Tuple(others)) => {
            parts.len() == others.len()
                && parts.iter().zip(others.iter()).all(|(pattern, type_)| fits(pattern, type_, found, depth + 1))
        }
        (Type::Traits(one), Type::Traits(other)) => one.first().zip(other.first()).is_some_and(|(one, other)| same(one, other)),
        (Type::Basic(one), Type::Basic(other)) => {
            one == other || super::known::may_be(other, one) || super::known::may_be(one, other)
        }
        // A type from outside may be any of those.
        (Type::External, Type::External) => true,
        (Type::Function(_), Type::Function(_)) => true,
        _ => false,
    }
}

/// Returns whether two are the same trait.
pub(super) fn same(one: &Trait, other: &Trait) -> bool {
    match (one, other) {
        (Trait::Local { at, .. }, Trait::Local { at: other, .. }) => at == other,
        (Trait::External { name, .. }, Trait::External { name: other, .. }) => name == other,
        (Trait::Callable(_), Trait::Callable(_)) => true,
        _ => false,
    }
}

/// Puts types in the place of parameters.
pub(super) fn put(type_: &Type, substitution: &[(Place, Type)]) -> Type {
    put_inside(type_, substitution, 0).bounded()
}

fn put_inside(type_: &Type, substitution: &[(Place, Type)], depth: u32) -> Type {
    if substitution.is_empty() || depth > MAX_DEPTH {
        return type_.clone();
    }
    let all = |arguments: &Rc<[Type]>| -> Rc<[Type]> {
        arguments.iter().map(|inner| put_inside(inner, substitution, depth + 1)).collect()
    };
    let again = |own: &Substitution| -> Substitution {
        // What the own parameters stand for may name parameters of what is around.
        let mut entries: Vec<(Place, Type)> =
            own.iter().map(|(place, inner)| (*place, put_inside(inner, substitution, depth + 1))).collect();
        for (place, inner) in substitution {
            if !entries.iter().any(|(known, _)| known == place) {
                entries.push((*place, inner.clone()));
            }
        }
        entries.into()
    };
    match type_ {
        Type::Parameter(place) => {
            substitution.iter().find(|(known, _)| known == place).map_or_else(|| type_.clone(), |(_, given)| given.clone())
        }
        Type::Named { at, arguments } => Type::Named { at: *at, arguments: all(arguments) },
        Type::Std { name, arguments } => Type::Std { name, arguments: all(arguments) },
        Type::Reference(inner) => Type::Reference(Rc::new(put_inside(inner, substitution, depth + 1))),
        Type::Raw(inner) => Type::Raw(Rc::new(put_inside(inner, substitution, depth + 1))),
        Type::Sequence(inner) => Type::Sequence(Rc::new(put_inside(inner, substitution, depth + 1))),
        Type::Tuple(parts) => Type::Tuple(all(parts)),
        Type::OneOf(options) => Type::OneOf(all(options)),
        Type::Traits(traits) => Type::Traits(
            traits
                .iter()
                .map(|one| match one {
                    Trait::Local { at, arguments } => Trait::Local { at: *at, arguments: all(arguments) },
                    Trait::External { name, arguments } => Trait::External { name: Rc::clone(name), arguments: all(arguments) },
                    Trait::Callable(function) => {
                        Trait::Callable(Function { signature: function.signature, substitution: again(&function.substitution) })
                    }
                })
                .collect(),
        ),
        Type::Function(function) => {
            Type::Function(Function { signature: function.signature, substitution: again(&function.substitution) })
        }
        Type::Payload { shape, substitution: own } => Type::Payload { shape: *shape, substitution: again(own) },
        Type::Basic(_) | Type::External | Type::Unknown => type_.clone(),
    }
}
