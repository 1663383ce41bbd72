//! What an expression denotes: a type, a value of a type, a package.
//!
//! Must not know references. Invariant: only declared types are evidence; what a body returns never is.

use std::rc::Rc;

use super::types::{Arguments, Meaning, Type};
use super::view::Named;
use super::{Inference, Member, Selection};
use crate::model::Target;
use crate::model::facts::{Expression, Handle, Role, Shape, TypeForm, Use};

/// Longest chain of types that are defined by others.
const MAX_CHAIN: u32 = 32;

impl Inference<'_> {
    /// Returns what an expression of a view denotes, `arguments` standing for type parameters.
    pub(in crate::languages::go) fn meaning(&mut self, view: u32, handle: Handle, arguments: &Arguments) -> Meaning {
        if !arguments.is_empty() {
            return self.deeper(Meaning::Unknown, |this| this.compute(view, handle, arguments));
        }
        if let Some(known) = self.meanings.get(&(view, handle)) {
            return known.clone();
        }
        // Whoever comes here again on the way to the answer has none.
        self.meanings.insert((view, handle), Meaning::Unknown);
        let meaning = self.deeper(Meaning::Unknown, |this| this.compute(view, handle, arguments));
        self.meanings.insert((view, handle), meaning.clone());
        meaning
    }

    pub(super) fn type_of(&mut self, view: u32, handle: Handle, arguments: &Arguments) -> Type {
        self.meaning(view, handle, arguments).type_()
    }

    fn type_of_optional(&mut self, view: u32, handle: Option<Handle>, arguments: &Arguments) -> Type {
        handle.map_or(Type::Unknown, |handle| self.type_of(view, handle, arguments))
    }

    fn compute(&mut self, index: u32, handle: Handle, arguments: &Arguments) -> Meaning {
        let view = self.view(index);
        let Some(expression) = view.outline(handle).expressions.get(handle.index()).copied() else { return Meaning::Unknown };
        match expression {
            Expression::Name(Use::One(binding)) => self.binding(index, binding, arguments),
            Expression::Name(Use::Free(name)) => {
                let text = view.text(crate::model::facts::NameId(name.index() as u32), name).to_owned();
                self.free_name(index, &text)
            }
            Expression::Attribute { object, name } => {
                let name = view.text(name, handle).to_owned();
                self.attribute(index, object, &name, arguments)
            }
            Expression::Invocation { callee, arguments: given } => self.call(index, callee, given, arguments),
            Expression::Subscript { object, argument } => self.subscript(index, object, argument, arguments),
            Expression::Either(left, right) => match self.type_of(index, left, arguments) {
                Type::Basic("") | Type::Unknown => Meaning::Value(self.type_of(index, right, arguments)),
                known => Meaning::Value(known),
            },
            Expression::Element(inner) => {
                let inner = self.type_of(index, inner, arguments);
                Meaning::Value(self.iterated(&inner, false))
            }
            Expression::Key(inner) => {
                let inner = self.type_of(index, inner, arguments);
                Meaning::Value(self.iterated(&inner, true))
            }
            Expression::Part(inner, part) => match self.type_of(index, inner, arguments) {
                Type::Tuple(parts) => Meaning::Value(parts.get(part as usize).cloned().unwrap_or(Type::Unknown)),
                Type::External => Meaning::Value(Type::External),
                // The second of `v, ok := m[k]` and its like.
                one if part == 0 => Meaning::Value(one),
                _ => Meaning::Value(Type::Basic("bool")),
            },
            Expression::Instance(inner) => Meaning::Value(self.type_of(index, inner, arguments)),
            Expression::Pointer(inner) => match self.meaning(index, inner, arguments) {
                Meaning::Type(inner) => Meaning::Type(inner.pointer()),
                Meaning::Value(inner) => match self.underlying(&inner) {
                    Type::Pointer(target) => Meaning::Value((*target).clone()),
                    Type::External => Meaning::Value(Type::External),
                    _ => Meaning::Unknown,
                },
                Meaning::External => Meaning::External,
                _ => Meaning::Unknown,
            },
            Expression::Address(inner) => Meaning::Value(self.type_of(index, inner, arguments).pointer()),
            Expression::Sequence(inner) => Meaning::Type(Type::Sequence(Rc::new(self.type_of(index, inner, arguments)))),
            Expression::Mapping(key, value) => {
                let key = self.type_of(index, key, arguments);
                let value = self.type_of(index, value, arguments);
                Meaning::Type(Type::Mapping(Rc::new((key, value))))
            }
            Expression::Channel(inner) => Meaning::Type(Type::Channel(Rc::new(self.type_of(index, inner, arguments)))),
            Expression::Anonymous(shape) => {
                let shape = handle.beside(shape);
                Meaning::Type(Type::Shape { view: index, shape, arguments: Rc::clone(arguments) })
            }
            Expression::Signature(signature) => {
                let signature = handle.beside(signature);
                Meaning::Type(Type::Function { view: index, signature, arguments: Rc::clone(arguments) })
            }
            Expression::Literal => Meaning::Value(Type::Basic("")),
            _ => Meaning::Unknown,
        }
    }

    fn binding(&mut self, index: u32, handle: Handle, arguments: &Arguments) -> Meaning {
        let view = self.view(index);
        let Some(binding) = view.outline(handle).bindings.get(handle.index()) else { return Meaning::Unknown };
        match binding.role {
            Role::TypeParameter => {
                let given = arguments.iter().find(|(of, parameter, _)| *of == index && *parameter == handle);
                Meaning::Type(match given {
                    Some((_, _, given)) => given.clone(),
                    None => Type::Parameter { view: index, binding: handle },
                })
            }
            Role::LocalType(shape) => {
                let shape = Handle::of_body(shape as usize);
                let local = Type::Shape { view: index, shape, arguments: Rc::clone(arguments) };
                Meaning::Type(match view.outline(shape).types.get(shape.index()).map(|made| made.form) {
                    Some(TypeForm::Alias(target)) => self.type_of(index, target, arguments),
                    _ => local,
                })
            }
            Role::Variable | Role::Parameter => self.variable(index, handle, arguments),
            _ => Meaning::Unknown,
        }
    }

    fn variable(&mut self, index: u32, handle: Handle, arguments: &Arguments) -> Meaning {
        let memoised = arguments.is_empty();
        if memoised {
            if let Some(known) = self.bindings.get(&(index, handle)) {
                return known.clone();
            }
            self.bindings.insert((index, handle), Meaning::Unknown);
        }
        let view = self.view(index);
        let meaning = match view.outline(handle).bindings.get(handle.index()) {
            Some(binding) => match (binding.annotation, binding.value) {
                (Some(given), _) | (None, Some(given)) => Meaning::Value(self.type_of(index, given, arguments)),
                (None, None) => Meaning::Unknown,
            },
            None => Meaning::Unknown,
        };
        if memoised {
            self.bindings.insert((index, handle), meaning.clone());
        }
        meaning
    }

    fn free_name(&mut self, view: u32, text: &str) -> Meaning {
        match &*self.named(view, text) {
            Named::Definitions { targets, .. } => self.definition(targets),
            Named::Package(package) => Meaning::Package(package.clone()),
            Named::External | Named::Missing => Meaning::External,
            Named::Predeclared(kind, name) => Meaning::of_predeclared(*kind, name),
            Named::Nothing => Meaning::Unknown,
        }
    }

    /// Returns what a definition denotes: of several variants the one of the default build, or what all of them are.
    pub(in crate::languages::go) fn definition(&mut self, targets: &[Target]) -> Meaning {
        if let [one] = targets {
            return self.definition_at(one);
        }
        if let Some(chosen) = self.default_variant(targets) {
            return self.definition_at(&targets[chosen]);
        }
        let mut variants = targets.iter();
        let Some(first) = variants.next() else { return Meaning::Unknown };
        let first = self.definition_at(first);
        for variant in variants {
            let other = self.definition_at(variant);
            match (&first, &other) {
                // Their methods are found by the name, which they share.
                (Meaning::Type(_), Meaning::Type(_)) => {}
                (Meaning::Value(one), Meaning::Value(two)) if self.may_be_same(one, two) => {}
                _ => return Meaning::Unknown,
            }
        }
        first
    }

    fn definition_at(&mut self, target: &Target) -> Meaning {
        let Some(key) = &target.definition else { return Meaning::Unknown };
        let Some(index) = self.view_of(&target.file) else { return Meaning::Unknown };
        let view = self.view(index);
        let Some(found) = view.find(key) else { return Meaning::Unknown };
        let Some(declaration) = view.declaration(found) else { return Meaning::Unknown };
        let nothing = self.no_arguments();
        match declaration.shape {
            Shape::Type(shape) => {
                match view.surface.outline.types.get(shape as usize).map(|shape| (shape.form, shape.parameters.is_empty())) {
                    // An alias is another name and no type of its own.
                    Some((TypeForm::Alias(target), true)) => {
                        Meaning::Type(self.deeper(Type::Unknown, |this| this.type_of(index, target, &nothing)))
                    }
                    _ => Meaning::Type(Type::Named { view: index, declaration: found, arguments: Rc::from([]) }),
                }
            }
            Shape::Signature(signature) => Meaning::Value(Type::Function {
                view: index,
                signature: Handle::of_surface(signature as usize),
                arguments: nothing,
            }),
            _ => match view.surface.bound(&key.qualified) {
                Some(Use::One(binding)) => self.deeper(Meaning::Unknown, |this| this.variable(index, binding, &nothing)),
                _ => Meaning::Unknown,
            },
        }
    }

    fn attribute(&mut self, view: u32, object: Handle, name: &str, arguments: &Arguments) -> Meaning {
        match self.meaning(view, object, arguments) {
            Meaning::Package(package) => {
                let targets = self.in_package(view, &package, name);
                if targets.is_empty() { Meaning::Unknown } else { self.definition(&targets) }
            }
            Meaning::External => Meaning::External,
            Meaning::Type(of) | Meaning::Value(of) => match self.select(&of, name, view) {
                Selection::Found(Member::Field(type_), _) => Meaning::Value(type_),
                Selection::Found(Member::Method { function, .. }, _) => Meaning::Value(function),
                Selection::External => Meaning::Value(Type::External),
                _ => Meaning::Unknown,
            },
            _ => Meaning::Unknown,
        }
    }

    fn call(&mut self, view: u32, callee: Handle, given: Option<Handle>, arguments: &Arguments) -> Meaning {
        match self.meaning(view, callee, arguments) {
            Meaning::Predeclared(name) => self.predeclared_call(view, name, given, arguments),
            Meaning::External => Meaning::Value(Type::External),
            Meaning::Value(function) => self.call_of(view, &function, given, arguments),
            Meaning::Type(function @ Type::Function { .. }) if self.is_literal(view, callee) => {
                self.call_of(view, &function, given, arguments)
            }
            // A conversion.
            Meaning::Type(type_) => Meaning::Value(type_),
            Meaning::Package(_) | Meaning::Unknown => Meaning::Unknown,
        }
    }

    fn is_literal(&self, view: u32, handle: Handle) -> bool {
        let view = self.view(view);
        matches!(view.outline(handle).expressions.get(handle.index()), Some(Expression::Signature(_)))
    }

    fn call_of(&mut self, from: u32, function: &Type, given: Option<Handle>, outer: &Arguments) -> Meaning {
        match self.underlying(function) {
            Type::Function { view, signature, arguments } => {
                let arguments = self.infer_arguments(view, signature, &arguments, from, given, outer);
                Meaning::Value(self.results(view, signature, &arguments))
            }
            Type::External => Meaning::Value(Type::External),
            _ => Meaning::Unknown,
        }
    }

    /// Returns the type of what a function gives.
    pub(super) fn results(&mut self, index: u32, signature: Handle, arguments: &Arguments) -> Type {
        let view = self.view(index);
        let Some(signature) = view.outline(signature).signatures.get(signature.index()) else { return Type::Unknown };
        match &signature.results[..] {
            [] => Type::Unknown,
            [one] => self.type_of_optional(index, *one, arguments),
            several => several.iter().map(|one| self.type_of_optional(index, *one, arguments)).collect::<Vec<_>>().into_tuple(),
        }
    }

    fn predeclared_call(&mut self, view: u32, name: &str, given: Option<Handle>, arguments: &Arguments) -> Meaning {
        let list = self.list(view, given);
        let first = list.first().copied();
        let first_type = |this: &mut Self| this.type_of_optional(view, first, arguments);
        Meaning::Value(match name {
            "new" => first_type(self).pointer(),
            "make" | "min" | "max" => first_type(self),
            "append" => match first_type(self) {
                Type::Unknown | Type::Basic(_) => match list.get(1) {
                    Some(element) => Type::Sequence(Rc::new(self.type_of(view, *element, arguments))),
                    None => Type::Unknown,
                },
                known => known,
            },
            "recover" => Type::Unknown,
            _ => Type::Basic("int"),
        })
    }

    /// Returns the entries of a list of arguments.
    pub(super) fn list(&self, view: u32, list: Option<Handle>) -> Vec<Handle> {
        let view = self.view(view);
        let mut entries = Vec::new();
        let mut next = list;
        while let Some(handle) = next {
            match view.outline(handle).expressions.get(handle.index()) {
                Some(Expression::List(first, rest)) => {
                    entries.push(*first);
                    next = *rest;
                }
                _ => {
                    entries.push(handle);
                    next = None;
                }
            }
        }
        entries
    }

    fn subscript(&mut self, view: u32, object: Handle, argument: Option<Handle>, arguments: &Arguments) -> Meaning {
        match self.meaning(view, object, arguments) {
            Meaning::Type(Type::Named { view: of, declaration, .. }) => {
                let given = self.list(view, argument);
                let given: Rc<[Type]> = given.into_iter().map(|one| self.type_of(view, one, arguments)).collect();
                Meaning::Type(Type::Named { view: of, declaration, arguments: given })
            }
            Meaning::Value(Type::Function { view: of, signature, arguments: known }) => {
                let given = self.list(view, argument);
                let given: Vec<Type> = given.into_iter().map(|one| self.type_of(view, one, arguments)).collect();
                let parameters =
                    self.view(of).outline(signature).signatures.get(signature.index()).map(|made| made.type_parameters.clone());
                let mut all: Vec<_> = known.to_vec();
                all.extend(
                    parameters.unwrap_or_default().into_iter().zip(given).map(|(parameter, type_)| (of, parameter, type_)),
                );
                Meaning::Value(Type::Function { view: of, signature, arguments: all.into() })
            }
            Meaning::Value(value) => Meaning::Value(self.indexed(&value)),
            Meaning::External => Meaning::External,
            // An instance of something that takes no arguments.
            Meaning::Type(type_) => Meaning::Type(type_),
            _ => Meaning::Unknown,
        }
    }

    fn indexed(&mut self, value: &Type) -> Type {
        match self.core(value) {
            Type::Sequence(element) => (*element).clone(),
            Type::Mapping(entry) => entry.1.clone(),
            Type::Pointer(inner) => match self.core(&inner) {
                Type::Sequence(element) => (*element).clone(),
                _ => Type::Unknown,
            },
            Type::Basic(_) => Type::Basic("byte"),
            Type::External => Type::External,
            _ => Type::Unknown,
        }
    }

    /// Returns what iterating over a value gives: the index or key, or the element.
    fn iterated(&mut self, value: &Type, key: bool) -> Type {
        match self.core(value) {
            Type::Sequence(element) => {
                if key {
                    Type::Basic("int")
                } else {
                    (*element).clone()
                }
            }
            Type::Mapping(entry) => {
                if key {
                    entry.0.clone()
                } else {
                    entry.1.clone()
                }
            }
            Type::Channel(element) => (*element).clone(),
            Type::Pointer(inner) => match self.core(&inner) {
                Type::Sequence(element) => {
                    if key {
                        Type::Basic("int")
                    } else {
                        (*element).clone()
                    }
                }
                _ => Type::Unknown,
            },
            Type::Basic(_) => Type::Basic(if key { "int" } else { "rune" }),
            // `func(yield func(K, V) bool)` is iterated by what it yields.
            Type::Function { view, signature, arguments } => {
                let yielded = self.parameter(view, signature, 0, &arguments);
                match self.underlying(&yielded) {
                    Type::Function { view, signature, arguments } => {
                        self.parameter(view, signature, usize::from(!key), &arguments)
                    }
                    Type::External => Type::External,
                    _ => Type::Unknown,
                }
            }
            Type::External => Type::External,
            _ => Type::Unknown,
        }
    }

    pub(super) fn parameter(&mut self, index: u32, signature: Handle, position: usize, arguments: &Arguments) -> Type {
        let view = self.view(index);
        let made = view.outline(signature).signatures.get(signature.index());
        let parameter = made.and_then(|made| made.parameters.get(position).copied().flatten());
        self.type_of_optional(index, parameter, arguments)
    }

    /// Returns the structure of a type: that of what it is defined as, however many steps away.
    pub(in crate::languages::go) fn underlying(&mut self, type_: &Type) -> Type {
        let mut found = type_.clone();
        for _ in 0..MAX_CHAIN {
            let (index, shape, arguments) = match &found {
                Type::Named { view, declaration, arguments } => {
                    let Some((shape, arguments)) = self.shape_of(*view, *declaration, arguments) else { return Type::Unknown };
                    (*view, shape, arguments)
                }
                Type::Shape { view, shape, arguments } => (*view, *shape, Rc::clone(arguments)),
                _ => return found,
            };
            let view = self.view(index);
            let Some(made) = view.outline(shape).types.get(shape.index()) else { return Type::Unknown };
            found = match made.form {
                TypeForm::Struct | TypeForm::Interface | TypeForm::Enum | TypeForm::Trait => {
                    return Type::Shape { view: index, shape, arguments };
                }
                TypeForm::Defined(inner) | TypeForm::Alias(inner) => {
                    self.deeper(Type::Unknown, |this| this.type_of(index, inner, &arguments))
                }
            };
        }
        Type::Unknown
    }

    /// As [`Self::underlying`]; of a type parameter that of its constraint.
    fn core(&mut self, type_: &Type) -> Type {
        match self.underlying(type_) {
            Type::Parameter { view, binding } => {
                let constraint = self.constraint(view, binding);
                match self.underlying(&constraint) {
                    // A constraint of one element, `interface{ ~[]E }`, has that one's structure.
                    Type::Shape { view, shape, arguments } => {
                        let made = self.view(view);
                        let embedded = made.outline(shape).types.get(shape.index()).map(|made| made.embedded.clone());
                        match embedded.as_deref() {
                            Some([one]) => {
                                let one = self.type_of(view, *one, &arguments);
                                self.deeper(Type::Unknown, |this| this.core(&one))
                            }
                            _ => Type::Unknown,
                        }
                    }
                    other => other,
                }
            }
            other => other,
        }
    }

    /// Returns the constraint of a type parameter.
    pub(super) fn constraint(&mut self, index: u32, binding: Handle) -> Type {
        let view = self.view(index);
        let annotation = view.outline(binding).bindings.get(binding.index()).and_then(|binding| binding.annotation);
        let nothing = self.no_arguments();
        self.type_of_optional(index, annotation, &nothing)
    }

    /// Returns the shape of a declared type, and what stands for its type parameters.
    pub(super) fn shape_of(&self, index: u32, declaration: u32, given: &Rc<[Type]>) -> Option<(Handle, Arguments)> {
        let view = self.view(index);
        let Shape::Type(shape) = view.declaration(declaration)?.shape else { return None };
        let made = view.surface.outline.types.get(shape as usize)?;
        let arguments: Arguments = if given.is_empty() {
            self.no_arguments()
        } else {
            made.parameters.iter().zip(given.iter()).map(|(parameter, type_)| (index, *parameter, type_.clone())).collect()
        };
        Some((Handle::of_surface(shape as usize), arguments))
    }
}

trait IntoTuple {
    fn into_tuple(self) -> Type;
}

impl IntoTuple for Vec<Type> {
    fn into_tuple(self) -> Type {
        Type::Tuple(self.into())
    }
}
