//! Calls: what they give, and what the closures that they are given are called with.
//!
//! Must not know references. Invariant: a type parameter that neither the receiver nor an argument tells stays one.

use std::rc::Rc;
use std::sync::Arc;

use super::Inference;
use super::types::{Answer, Function, Meaning, Place, Trait, Type};
use super::unify::{self, fits, put};
use crate::model::facts::{Expression, Handle};

/// What is called.
enum Callee {
    /// A function, with what it is called on where that is a method.
    Function(Function),
    /// A method or function of a type from outside.
    Foreign {
        of: Type,
        name: Rc<str>,
        method: bool,
    },
    Meaning(Meaning),
}

impl Inference<'_> {
    /// Returns what the method `name` of the value `object` means.
    pub(in crate::languages::rust) fn method_on(&mut self, view: u32, object: Handle, name: &str) -> Rc<Answer> {
        let key = (view, object, Arc::from(name));
        if let Some(known) = self.methods.get(&key) {
            return Rc::clone(known);
        }
        let receiver = self.type_of(view, object);
        let answer = Rc::new(self.method(&receiver, name));
        self.methods.insert(key, Rc::clone(&answer));
        answer
    }

    /// Returns a callee, and the type arguments it is given.
    fn callee(&mut self, view: u32, callee: Handle) -> (Callee, Rc<[Type]>) {
        let file = self.view(view);
        let (base, argument) = match file.expression(callee) {
            Some(Expression::Subscript { object, argument: Some(argument) }) => (object, Some(argument)),
            _ => (callee, None),
        };
        let explicit: Rc<[Type]> = match argument {
            Some(argument) => self.list(view, Some(argument)).into_iter().map(|entry| self.type_of(view, entry)).collect(),
            None => Rc::from([]),
        };
        if let Some(Expression::Attribute { object, name }) = file.expression(base) {
            let name = file.text(name, base).to_owned();
            let answer = self.method_on(view, object, &name);
            let callee = match answer.meaning.clone() {
                Meaning::Value(Type::Function(function)) => Callee::Function(self.with_arguments(&function, &explicit)),
                Meaning::Foreign(of, name) => Callee::Foreign { of, name, method: true },
                other => Callee::Meaning(other),
            };
            return (callee, explicit);
        }
        let callee = match self.answer(view, callee).meaning.clone() {
            Meaning::Value(Type::Function(function)) => Callee::Function(function),
            Meaning::Foreign(of, name) => Callee::Foreign { of, name, method: false },
            other => Callee::Meaning(other),
        };
        (callee, explicit)
    }

    /// Gives a function type arguments for its own parameters.
    pub(super) fn with_arguments(&mut self, function: &Function, given: &Rc<[Type]>) -> Function {
        if given.is_empty() {
            return function.clone();
        }
        let Place { view, handle } = function.signature;
        let file = self.view(view);
        let parameters =
            file.outline(handle).signatures.get(handle.index()).map(|made| made.type_parameters.clone()).unwrap_or_default();
        let mut entries = function.substitution.to_vec();
        for (parameter, type_) in parameters.into_iter().zip(given.iter()) {
            if !type_.is_unknown() {
                entries.push((Place { view, handle: parameter }, type_.clone()));
            }
        }
        Function { signature: function.signature, substitution: entries.into() }
    }

    /// Returns what a function gives, as far as its parameters are known.
    pub(super) fn result_of(&mut self, function: &Function) -> Type {
        let Place { view, handle } = function.signature;
        let file = self.view(view);
        let result = file.outline(handle).signatures.get(handle.index()).and_then(|made| made.results.first().copied());
        match result {
            Some(Some(result)) => {
                let type_ = self.deeper(Type::Unknown, |this| this.type_of(view, result));
                put(&type_, &function.substitution)
            }
            Some(None) => Type::Unknown,
            None => Type::Tuple(Rc::from([])),
        }
    }

    fn parameter_of(&mut self, function: &Function, number: usize) -> Type {
        let Place { view, handle } = function.signature;
        let file = self.view(view);
        let parameter = file.outline(handle).signatures.get(handle.index()).and_then(|made| made.parameters.get(number).copied());
        match parameter.flatten() {
            Some(parameter) => {
                let type_ = self.deeper(Type::Unknown, |this| this.type_of(view, parameter));
                put(&type_, &function.substitution)
            }
            None => Type::Unknown,
        }
    }

    /// Returns what a call gives.
    pub(super) fn call(&mut self, view: u32, callee: Handle, arguments: Option<Handle>) -> Type {
        let (callee, explicit) = self.callee(view, callee);
        let given = |this: &mut Self| -> Vec<Type> {
            this.list(view, arguments).into_iter().map(|argument| this.type_of(view, argument)).collect()
        };
        match callee {
            Callee::Function(function) => {
                let result = self.result_of(&function);
                if !has_parameter(&result, 0) {
                    return result;
                }
                let given = given(self);
                let inferred = self.inferred(&function, &given);
                self.result_of(&inferred)
            }
            Callee::Foreign { of, name, method } => {
                match (&*name, explicit.first()) {
                    ("collect" | "sum" | "product" | "into" | "fold", Some(given)) if !given.is_unknown() => {
                        return self.collected(&of, given);
                    }
                    ("parse" | "try_into", Some(given)) => return Type::std("Result", [given.clone()]),
                    _ => {}
                }
                let given = given(self);
                if !method {
                    return super::known::associated(&of, &name, &given);
                }
                let returned = given.iter().find_map(|type_| match type_ {
                    Type::Function(function) => Some(function.clone()),
                    _ => None,
                });
                let returned = returned.map_or(Type::Unknown, |function| self.result_of(&function));
                // An iterator of the repository has the methods of all iterators.
                let of = match self.iterator_of(&of) {
                    Some(iterator) => iterator,
                    None => of,
                };
                super::known::result(&of, &name, &given, &returned)
            }
            Callee::Meaning(Meaning::Constructor(type_, held)) => {
                let Type::Named { at, arguments } = &type_ else { return type_ };
                if !arguments.is_empty() {
                    return type_;
                }
                let Some((shape, _)) = self.shape_of(*at, arguments) else { return type_ };
                let parameters = self.view(at.view).shape(shape.handle).map(|shape| shape.parameters.clone()).unwrap_or_default();
                let Some(held) = held.filter(|_| !parameters.is_empty()) else { return type_ };
                let given = given(self);
                let fields = self.view(held.view).shape(held.handle).map(|shape| shape.fields.clone()).unwrap_or_default();
                let mut found = unify::Found::default();
                for ((_, field), given) in fields.into_iter().zip(&given) {
                    if let Some(field) = field {
                        let pattern = self.type_of(held.view, field);
                        fits(&pattern, given, &mut found, 0);
                    }
                }
                let arguments = parameters
                    .into_iter()
                    .map(|handle| {
                        let place = Place { view: at.view, handle };
                        found.entries.iter().find(|(known, _)| *known == place).map_or(Type::Unknown, |(_, type_)| type_.clone())
                    })
                    .collect();
                Type::Named { at: *at, arguments }
            }
            Callee::Meaning(Meaning::Value(Type::OneOf(options))) => Type::one_of(options.iter().map(|option| match option {
                Type::Function(function) => self.result_of(function),
                Type::External => Type::External,
                _ => Type::Unknown,
            })),
            Callee::Meaning(Meaning::Value(type_)) => match self.callable(&type_) {
                Some(function) => self.result_of(&function),
                None => Type::Unknown,
            },
            // `Self(x)`
            Callee::Meaning(Meaning::Type(type_)) => type_,
            Callee::Meaning(Meaning::External(path)) => {
                let given = given(self);
                super::known::called(&path, &given)
            }
            Callee::Meaning(_) => Type::Unknown,
        }
    }

    fn collected(&mut self, of: &Type, into: &Type) -> Type {
        match into {
            Type::Std { name: name @ ("Vec" | "VecDeque" | "HashSet" | "BTreeSet" | "BinaryHeap"), arguments }
                if arguments.iter().all(Type::is_unknown) =>
            {
                Type::std(name, [self.iterated(of)])
            }
            other => other.clone(),
        }
    }

    /// Returns what a type of the repository is as an iterator.
    fn iterator_of(&mut self, type_: &Type) -> Option<Type> {
        match type_.behind() {
            named @ Type::Named { .. } => {
                let named = named.clone();
                let item = self.associated_type(&named, "Item", "Iterator")?;
                Some(Type::std("Iterator", [item]))
            }
            Type::Parameter(_) | Type::Traits(_) => {
                let bare = type_.behind().clone();
                self.traits_of(&bare).iter().find_map(|one| match one {
                    Trait::External { name, arguments } => super::known::iterator(name, arguments),
                    _ => None,
                })
            }
            _ => None,
        }
    }

    /// Returns a function with what its arguments tell of its parameters.
    fn inferred(&mut self, function: &Function, given: &[Type]) -> Function {
        let mut found = unify::Found::with(&function.substitution);
        for (number, given) in given.iter().enumerate() {
            let pattern = self.parameter_of(function, number);
            match given {
                Type::Function(closure) => {
                    // What the closure gives is what the bound says that it gives.
                    let Some(bound) = self.callable(&pattern) else { continue };
                    let wanted = self.result_of(&bound);
                    let got = self.result_of(closure);
                    fits(&wanted, &got, &mut found, 0);
                }
                given => drop(fits(pattern.behind(), given.behind(), &mut found, 0)),
            }
        }
        Function { signature: function.signature, substitution: found.substitution() }
    }

    /// Returns the function that a value of a type is called as.
    fn callable(&mut self, type_: &Type) -> Option<Function> {
        match type_.behind() {
            Type::Function(function) => Some(function.clone()),
            Type::Parameter(_) | Type::Traits(_) => {
                let bare = type_.behind().clone();
                self.traits_of(&bare).into_iter().find_map(|one| match one {
                    Trait::Callable(function) => Some(function),
                    _ => None,
                })
            }
            Type::Std { name: "Box" | "Rc" | "Arc", .. } => {
                let inner = type_.behind().argument(0);
                self.deeper(None, |this| this.callable(&inner))
            }
            _ => None,
        }
    }

    /// Returns what a closure that is an argument of a call is called with.
    pub(super) fn closure_parameter(&mut self, view: u32, callee: Handle, argument: u8, number: u8) -> Type {
        let (callee, _) = self.callee(view, callee);
        match callee {
            Callee::Function(function) => {
                let expected = self.parameter_of(&function, argument.into());
                match self.callable(&expected) {
                    Some(bound) => {
                        let type_ = self.parameter_of(&bound, number.into());
                        put(&type_, &function.substitution)
                    }
                    None => Type::Unknown,
                }
            }
            Callee::Foreign { of, name, method: true } => {
                let of = match self.iterator_of(&of) {
                    Some(iterator) => iterator,
                    None => of,
                };
                super::known::closure_parameter(&of, &name, argument, number, &Type::Unknown)
            }
            _ => Type::Unknown,
        }
    }
}

fn has_parameter(type_: &Type, depth: u32) -> bool {
    if depth > 12 {
        return false;
    }
    let any = |parts: &[Type]| parts.iter().any(|part| has_parameter(part, depth + 1));
    match type_ {
        Type::Parameter(_) => true,
        Type::Named { arguments, .. } | Type::Std { arguments, .. } | Type::Tuple(arguments) => any(arguments),
        Type::Reference(inner) | Type::Raw(inner) | Type::Sequence(inner) => has_parameter(inner, depth + 1),
        Type::Traits(traits) => traits.iter().any(|one| match one {
            Trait::Local { arguments, .. } | Trait::External { arguments, .. } => any(arguments),
            Trait::Callable(_) => true,
        }),
        _ => false,
    }
}
