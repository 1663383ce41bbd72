//! Which types of the repository implement an interface, by their method sets.
//!
//! Must not look at assignments: whether a value of the type ever reaches the interface is not asked. Invariant: a type is named only
//! when it has every method of the interface that is known, of the same package where the name is not exported, with as many parameters
//! and results.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::types::Type;
use super::{Implementations, Inference, Member, Selection};
use crate::model::facts::{Shape, Surface};
use crate::model::{DefinitionKey, RepoPath, SymbolKind, Target};

/// More types than this that have one of the methods are not looked at.
const MAX_TYPES: usize = 400;

/// Returns what a file's types have by name: methods, and for embedded types the struct that embeds them.
pub(in crate::languages::go) fn declared_members(surface: &Surface) -> Vec<(Arc<str>, DefinitionKey)> {
    let outline = &surface.outline;
    let mut members = Vec::new();
    let interface = |name: &str| {
        let declarations = &outline.declarations;
        let start = declarations.partition_point(|other| other.key.qualified.as_ref() < name);
        declarations.get(start).is_some_and(|found| found.key.qualified.as_ref() == name && found.kind == SymbolKind::Interface)
    };
    for declaration in &outline.declarations {
        match declaration.shape {
            Shape::Signature(_) if declaration.kind == SymbolKind::Method => {
                if let Some((owner, method)) = declaration.key.qualified.rsplit_once('.')
                    && !interface(owner)
                {
                    members.push((Arc::from(method), declaration.key.clone()));
                }
            }
            Shape::Type(shape) if declaration.kind == SymbolKind::Struct => {
                let Some(made) = outline.types.get(shape as usize) else { continue };
                for (name, type_) in &made.fields {
                    if type_.is_some_and(|type_| made.embedded.contains(&type_)) {
                        members.push((Arc::from(outline.names.get(*name)), declaration.key.clone()));
                    }
                }
            }
            _ => {}
        }
    }
    members
}

impl Inference<'_> {
    /// Returns the methods that implement `method` of a declared interface, sorted.
    pub(in crate::languages::go) fn implementations(&mut self, interface: (u32, u32), method: &str) -> Vec<Target> {
        let known = match self.implementations.get(&interface) {
            Some(known) => Rc::clone(known),
            None => {
                let found: Implementations = Rc::new(self.find_implementations(interface));
                self.implementations.insert(interface, Rc::clone(&found));
                found
            }
        };
        known.get(method).cloned().unwrap_or_default()
    }

    fn find_implementations(&mut self, (asked, declaration): (u32, u32)) -> FxHashMap<Arc<str>, Vec<Target>> {
        let interface = Type::Named { view: asked, declaration, arguments: Rc::from([]) };
        let mut names = BTreeMap::new();
        self.interface_methods(&interface, 0, &mut names);
        let mut found: FxHashMap<Arc<str>, Vec<Target>> = FxHashMap::default();
        // The types that have the rarest method are the fewest that may have all.
        let Some(rarest) = names.keys().map(|(name, _)| self.lookup.members_named(name)).min_by_key(|members| members.len())
        else {
            return found;
        };
        let mut owners: BTreeSet<(RepoPath, Arc<str>)> = BTreeSet::new();
        let mut open: Vec<(RepoPath, Arc<str>)> = Vec::new();
        for member in rarest.iter() {
            if let Some((owner, _)) = member.definition.as_ref().and_then(|key| key.qualified.rsplit_once('.')) {
                open.push((member.file.clone(), owner.into()));
            }
        }
        // Whoever embeds one of them may have the method too.
        while let Some((file, name)) = open.pop() {
            if owners.len() > MAX_TYPES {
                return found;
            }
            if !owners.insert((file, Arc::clone(&name))) {
                continue;
            }
            for embedding in self.lookup.members_named(&name).iter() {
                if let Some(key) = embedding.definition.as_ref().filter(|key| !key.qualified.contains('.')) {
                    open.push((embedding.file.clone(), Arc::clone(&key.qualified)));
                }
            }
        }
        let mut types: BTreeSet<(u32, u32)> = BTreeSet::new();
        for (file, name) in owners {
            types.extend(self.declared_type(&file, &name).filter(|found| *found != (asked, declaration)));
        }
        for (view, declaration) in types {
            let candidate = Type::Named { view, declaration, arguments: Rc::from([]) };
            let mut methods: Vec<(&String, u32, Vec<Target>)> = Vec::new();
            for ((name, _), declared) in &names {
                let Some(targets) = self.implementing(&interface, &candidate, name, *declared) else { break };
                methods.push((name, *declared, targets));
            }
            if methods.len() == names.len() {
                for (name, declared, targets) in methods {
                    // What another package does not export is asked for of the interface there.
                    if self.is_meant(declared, name, asked) {
                        found.entry(name.as_str().into()).or_default().extend(targets);
                    }
                }
            }
        }
        for targets in found.values_mut() {
            targets.sort();
            targets.dedup();
        }
        found
    }

    /// Finds the declaration of a type that a method's file names: there, or elsewhere in its package.
    fn declared_type(&mut self, file: &RepoPath, name: &str) -> Option<(u32, u32)> {
        let index = self.view_of(file)?;
        let view = self.view(index);
        let package = view.package.clone()?;
        let targets = self.in_package(index, &package, name);
        let target = targets.first()?;
        let at = self.view_of(&target.file)?;
        let found = self.view(at).find(target.definition.as_ref()?)?;
        let kind = self.view(at).declaration(found)?.kind;
        matches!(kind, SymbolKind::Struct | SymbolKind::Type).then_some((at, found))
    }

    /// Returns the methods by which a type implements one of an interface, which view `declared` declares; `None` when it does not.
    fn implementing(&mut self, interface: &Type, candidate: &Type, name: &str, declared: u32) -> Option<Vec<Target>> {
        let Selection::Found(wanted, _) = self.select(interface, name, declared) else { return None };
        let wanted = match wanted {
            Member::Method { function, .. } | Member::Field(function) => function,
        };
        let Selection::Found(Member::Method { targets, function, interface: None, .. }, _) =
            self.select(candidate, name, declared)
        else {
            return None;
        };
        self.same_form(&wanted, &function).then_some(targets)
    }

    /// Returns whether two functions take and give as many values, of types that can be the same.
    fn same_form(&mut self, left: &Type, right: &Type) -> bool {
        let (Type::Function { view, signature, arguments }, Type::Function { view: of, signature: other, arguments: given }) =
            (left, right)
        else {
            return true;
        };
        let (left, right) = (self.view(*view), self.view(*of));
        let (Some(one), Some(two)) =
            (left.outline(*signature).signatures.get(signature.index()), right.outline(*other).signatures.get(other.index()))
        else {
            return true;
        };
        if (one.parameters.len(), one.results.len(), one.variadic) != (two.parameters.len(), two.results.len(), two.variadic) {
            return false;
        }
        let pairs = one.parameters.iter().zip(&two.parameters).chain(one.results.iter().zip(&two.results));
        for (one, two) in pairs {
            if let (Some(one), Some(two)) = (one, two) {
                let one = self.type_of(*view, *one, arguments);
                let two = self.type_of(*of, *two, given);
                if !self.may_be_same(&one, &two) {
                    return false;
                }
            }
        }
        true
    }

    /// Returns whether nothing known tells two types apart.
    pub(super) fn may_be_same(&mut self, left: &Type, right: &Type) -> bool {
        let plain = |name: &'static str| match name {
            "uint8" => "byte",
            "int32" => "rune",
            other => other,
        };
        match (left, right) {
            (Type::Unknown | Type::Parameter { .. }, _) | (_, Type::Unknown | Type::Parameter { .. }) => true,
            (Type::Basic("any"), Type::Shape { .. }) | (Type::Shape { .. }, Type::Basic("any")) => true,
            (Type::Basic(one), Type::Basic(two)) => plain(one) == plain(two),
            (Type::Pointer(one), Type::Pointer(two))
            | (Type::Sequence(one), Type::Sequence(two))
            | (Type::Channel(one), Type::Channel(two)) => self.may_be_same(one, two),
            (Type::Mapping(one), Type::Mapping(two)) => self.may_be_same(&one.0, &two.0) && self.may_be_same(&one.1, &two.1),
            (Type::Named { view, declaration, .. }, Type::Named { view: other, declaration: named, .. }) => {
                (view, declaration) == (other, named) || self.are_variants((*view, *declaration), (*other, *named))
            }
            (Type::Function { .. }, Type::Function { .. }) => self.deeper(true, |this| this.same_form(left, right)),
            (Type::Shape { .. }, Type::Shape { .. }) | (Type::External, Type::External) => true,
            // A pointer to a type from outside is not told from the type.
            (Type::External, Type::Pointer(inner)) | (Type::Pointer(inner), Type::External) => {
                matches!(**inner, Type::External)
            }
            _ => false,
        }
    }

    /// Returns whether two types are one name of one package, told apart by build constraints alone.
    fn are_variants(&self, one: (u32, u32), two: (u32, u32)) -> bool {
        let (left, right) = (self.view(one.0), self.view(two.0));
        left.package == right.package
            && match (left.declaration(one.1), right.declaration(two.1)) {
                (Some(left), Some(right)) => left.key.qualified == right.key.qualified,
                _ => false,
            }
    }
}
