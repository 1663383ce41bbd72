//! Which field or method a selector selects: the shallowest one, through embedded types.
//!
//! Must not know references. Invariant: two at one depth select none, and what a type from outside may have at a lesser depth takes the
//! certainty from what is found below it.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::Inference;
use super::types::{Arguments, Type};
use crate::languages::go::modules::Package;
use crate::languages::go::universe::is_exported;
use crate::model::facts::{Handle, Shape, TypeForm};
use crate::model::{SymbolKind, Target};

/// Deepest embedding that is followed.
const MAX_EMBEDDING: usize = 16;

/// What a selector selects.
#[derive(Clone, Debug)]
pub(in crate::languages::go) enum Member {
    Field(Type),
    Method {
        /// Its definition; several where build constraints tell variants apart.
        targets: Vec<Target>,
        function: Type,
        /// The interface that declares it: view and declaration.
        interface: Option<(u32, u32)>,
        promoted: bool,
    },
}

#[derive(Clone, Debug)]
pub(in crate::languages::go) enum Selection {
    /// The second says whether nothing else may be meant.
    Found(Member, bool),
    Ambiguous(Vec<Target>),
    /// A type from outside may have it.
    External,
    /// Something on the way is not known.
    Unknown,
    Nothing,
}

impl Inference<'_> {
    /// Returns what `name` selects of a value of a type, or of the type itself, where the file of view `from` says it.
    pub(in crate::languages::go) fn select(&mut self, type_: &Type, name: &str, from: u32) -> Selection {
        self.deeper(Selection::Unknown, |this| this.select_inner(type_, name, from))
    }

    /// Returns whether a member of a name that the file of view `at` declares is the one that a file of view `from` means: names that
    /// are not exported are different ones in different packages.
    pub(super) fn is_meant(&self, at: u32, name: &str, from: u32) -> bool {
        at == from
            || is_exported(name)
            || match (&self.view(at).package, &self.view(from).package) {
                (Some(at), Some(from)) => at == from,
                _ => true,
            }
    }

    fn select_inner(&mut self, type_: &Type, name: &str, from: u32) -> Selection {
        let mut level: Vec<Type> = vec![type_.behind_pointer().clone()];
        let mut seen: Vec<(u32, Handle)> = Vec::new();
        let (mut external, mut unknown) = (false, false);
        for depth in 0..MAX_EMBEDDING {
            let mut found: Vec<Member> = Vec::new();
            let mut next: Vec<Type> = Vec::new();
            let (mut external_here, mut unknown_here) = (false, false);
            for type_ in &level {
                match self.member_here(type_, name, from, depth > 0, &mut next, &mut seen) {
                    Here::Member(member) => found.push(member),
                    Here::External => external_here = true,
                    Here::Unknown => unknown_here = true,
                    Here::Nothing => {}
                }
            }
            if found.len() == 1 {
                let member = found.remove(0);
                return Selection::Found(member, !external && !unknown);
            }
            if !found.is_empty() {
                let targets = found.into_iter().flat_map(|member| match member {
                    Member::Method { targets, .. } => targets,
                    Member::Field(_) => Vec::new(),
                });
                let mut targets: Vec<Target> = targets.collect();
                targets.sort();
                targets.dedup();
                return Selection::Ambiguous(targets);
            }
            external |= external_here;
            unknown |= unknown_here;
            if next.is_empty() {
                break;
            }
            level = next;
        }
        match (external, unknown) {
            (true, _) => Selection::External,
            (_, true) => Selection::Unknown,
            _ => Selection::Nothing,
        }
    }

    /// Looks for a member of one type at one depth, and adds the types that it embeds to `next`.
    fn member_here(
        &mut self,
        type_: &Type,
        name: &str,
        from: u32,
        promoted: bool,
        next: &mut Vec<Type>,
        seen: &mut Vec<(u32, Handle)>,
    ) -> Here {
        let type_ = type_.behind_pointer();
        if let Type::Named { view: index, declaration, arguments } = type_ {
            let view = self.view(*index);
            let Some(declared) = view.declaration(*declaration) else { return Here::Unknown };
            if declared.kind != SymbolKind::Interface && self.is_meant(*index, name, from) {
                let targets = self.methods(*index, &declared.key.qualified, name);
                if let Some(function) = self.method_type(&targets, arguments) {
                    return Here::Member(Member::Method { targets, function, interface: None, promoted });
                }
            }
        }
        let named = match type_ {
            Type::Named { view, declaration, .. } => Some((*view, *declaration)),
            _ => None,
        };
        match self.underlying(type_) {
            Type::Shape { view: index, shape, arguments } => {
                if seen.contains(&(index, shape)) && arguments.is_empty() {
                    return Here::Nothing;
                }
                seen.push((index, shape));
                let view = self.view(index);
                let Some(made) = view.outline(shape).types.get(shape.index()) else { return Here::Unknown };
                if made.form == TypeForm::Interface {
                    return self.interface_member(index, shape, &arguments, named, name, from, promoted, 0);
                }
                for (field, type_) in &made.fields {
                    if view.text(*field, shape) == name && self.is_meant(index, name, from) {
                        let type_ = type_.map_or(Type::Unknown, |type_| self.type_of(index, type_, &arguments));
                        return Here::Member(Member::Field(type_));
                    }
                }
                for embedded in &made.embedded {
                    next.push(self.type_of(index, *embedded, &arguments));
                }
                Here::Nothing
            }
            Type::Parameter { view, binding } => match self.constraint(view, binding) {
                Type::Parameter { .. } => Here::Unknown,
                constraint => self.deeper(Here::Unknown, |this| this.member_here(&constraint, name, from, promoted, next, seen)),
            },
            // `type P *T` has the fields of T.
            Type::Pointer(inner) => {
                next.push((*inner).clone());
                Here::Nothing
            }
            Type::External | Type::Basic("error") => Here::External,
            Type::Unknown => Here::Unknown,
            _ => Here::Nothing,
        }
    }

    /// Returns the type of a method, the type arguments of its receiver put in place.
    fn method_type(&mut self, targets: &[Target], given: &Rc<[Type]>) -> Option<Type> {
        let target = targets.first()?;
        let index = self.view_of(&target.file)?;
        let view = self.view(index);
        let declared = view.declaration(view.find(target.definition.as_ref()?)?)?;
        let Shape::Signature(signature) = declared.shape else { return None };
        let made = view.surface.outline.signatures.get(signature as usize)?;
        let arguments: Arguments = if given.is_empty() {
            self.no_arguments()
        } else {
            made.type_parameters.iter().zip(given.iter()).map(|(parameter, type_)| (index, *parameter, type_.clone())).collect()
        };
        Some(Type::Function { view: index, signature: Handle::of_surface(signature as usize), arguments })
    }

    /// Looks for a method of an interface, and of those it embeds, which count as its own.
    #[expect(clippy::too_many_arguments, reason = "one step of a walk, with all that the walk carries")]
    fn interface_member(
        &mut self,
        index: u32,
        shape: Handle,
        arguments: &Arguments,
        named: Option<(u32, u32)>,
        name: &str,
        from: u32,
        promoted: bool,
        depth: usize,
    ) -> Here {
        let view = self.view(index);
        let Some(made) = view.outline(shape).types.get(shape.index()) else { return Here::Unknown };
        for (method, signature) in &made.methods {
            if view.text(*method, shape) != name || !self.is_meant(index, name, from) {
                continue;
            }
            let signature = shape.beside(*signature);
            let function = Type::Function { view: index, signature, arguments: Rc::clone(arguments) };
            let declared = named.and_then(|(at, declaration)| self.interface_method(at, declaration, index, shape, name));
            return Here::Member(match declared {
                Some((targets, interface)) => {
                    Member::Method { targets, function, interface: Some(interface), promoted: promoted || depth > 0 }
                }
                // It has no name that something could refer to.
                None => Member::Field(function),
            });
        }
        let (mut external, mut unknown) = (false, false);
        if depth < MAX_EMBEDDING {
            for embedded in made.embedded.clone() {
                let inner = self.type_of(index, embedded, arguments);
                let named = match &inner {
                    Type::Named { view, declaration, .. } => Some((*view, *declaration)),
                    _ => None,
                };
                match self.underlying(&inner) {
                    Type::Shape { view, shape, arguments } => {
                        match self.interface_member(view, shape, &arguments, named, name, from, promoted, depth + 1) {
                            found @ Here::Member(_) => return found,
                            Here::External => external = true,
                            Here::Unknown => unknown = true,
                            Here::Nothing => {}
                        }
                    }
                    Type::External | Type::Basic("error") => external = true,
                    Type::Unknown => unknown = true,
                    _ => {}
                }
            }
        }
        match (external, unknown) {
            (true, _) => Here::External,
            (_, true) => Here::Unknown,
            _ => Here::Nothing,
        }
    }

    /// Returns the definition of a method of an interface whose own declaration has the shape, or leads to it.
    fn interface_method(
        &self,
        at: u32,
        declaration: u32,
        index: u32,
        shape: Handle,
        name: &str,
    ) -> Option<(Vec<Target>, (u32, u32))> {
        let view = self.view(index);
        let own =
            |declared: &crate::model::facts::Declaration| !shape.in_body() && declared.shape == Shape::Type(shape.index() as u32);
        let (position, declared) = if at == index && view.declaration(declaration).is_some_and(own) {
            (declaration, view.declaration(declaration)?)
        } else {
            // `type A B`, where B is the interface.
            let position = view.surface.outline.declarations.iter().position(own)?;
            (position as u32, view.declaration(position as u32)?)
        };
        let qualified = format!("{}.{name}", declared.key.qualified);
        let declarations = &view.surface.outline.declarations;
        let start = declarations.partition_point(|other| other.key.qualified.as_ref() < qualified.as_str());
        let method = declarations.get(start).filter(|other| other.key.qualified.as_ref() == qualified)?;
        let target = Target { file: view.path.clone(), definition: Some(method.key.clone()) };
        Some((vec![target], (index, position)))
    }

    /// Collects the methods of an interface, those it embeds included: the name, the package where it is not exported, and a view that
    /// declares it.
    pub(super) fn interface_methods(&mut self, type_: &Type, depth: usize, names: &mut BTreeMap<(String, Option<Package>), u32>) {
        let Type::Shape { view: index, shape, arguments } = self.underlying(type_) else { return };
        let view = self.view(index);
        let Some(made) = view.outline(shape).types.get(shape.index()) else { return };
        if made.form != TypeForm::Interface || depth > MAX_EMBEDDING {
            return;
        }
        for (name, _) in &made.methods {
            let name = view.text(*name, shape);
            let package = if is_exported(name) { None } else { view.package.clone() };
            names.insert((name.to_owned(), package), index);
        }
        for embedded in made.embedded.clone() {
            let inner = self.type_of(index, embedded, &arguments);
            self.interface_methods(&inner, depth + 1, names);
        }
    }
}

enum Here {
    Member(Member),
    External,
    Unknown,
    Nothing,
}
