//! Type variables: what they stand for where a generic class or function is used.
//!
//! Must not know where a value comes from. Invariant: a variable of which nothing is known stands for its bound.

use std::rc::Rc;

use smallvec::SmallVec;

use super::state::Inference;
use super::value::{Object, Place, Value, Values, Variable, add, add_all, class_of};
use super::view::View;
use crate::languages::python::library::{Function, Generic};
use crate::model::facts::{Expression, Handle, Role};

/// What some variables stand for.
pub(super) type Standing = SmallVec<[(Variable, Values); 2]>;

/// How deep types may nest and still be compared.
const MAX_NESTING: u32 = 6;

/// Returns whether a variable is in the values, however deep.
pub(super) fn is_open(values: &[Value]) -> bool {
    values.iter().any(|value| match value {
        Value::Variable(_) | Value::ClassOf(_) => true,
        Value::Elements(inner) | Value::Callable(inner) => is_open(inner),
        Value::Tuple(parts) => parts.iter().any(|part| is_open(part)),
        Value::Mapping(sides) => is_open(&sides.0) || is_open(&sides.1),
        Value::Class(object) | Value::Instance(object) => {
            object.arguments.as_ref().is_some_and(|arguments| arguments.iter().any(|argument| is_open(argument)))
        }
        _ => false,
    })
}

/// Puts what variables stand for in their place; the others remain.
pub(super) fn substitute(values: &[Value], standing: &Standing) -> Values {
    let mut out = Values::new();
    for value in values {
        match value {
            Value::Variable(variable) => match known(standing, *variable) {
                Some(known) => add_all(&mut out, known.iter().cloned()),
                None => add(&mut out, value.clone()),
            },
            Value::ClassOf(variable) => match known(standing, *variable) {
                Some(known) => {
                    for value in known {
                        add_all(&mut out, class_of(value.clone()));
                    }
                }
                None => add(&mut out, value.clone()),
            },
            _ if !is_open(std::slice::from_ref(value)) => add(&mut out, value.clone()),
            Value::Elements(inner) => add(&mut out, Value::Elements(substitute(inner, standing).into_iter().collect())),
            Value::Callable(inner) => add(&mut out, Value::Callable(substitute(inner, standing).into_iter().collect())),
            Value::Tuple(parts) => {
                add(&mut out, Value::Tuple(parts.iter().map(|part| substitute(part, standing)).collect()));
            }
            Value::Mapping(sides) => {
                let sides = (substitute(&sides.0, standing), substitute(&sides.1, standing));
                add(&mut out, Value::Mapping(Rc::new(sides)));
            }
            Value::Class(object) => add(&mut out, Value::Class(substitute_object(object, standing))),
            Value::Instance(object) => add(&mut out, Value::Instance(substitute_object(object, standing))),
            _ => add(&mut out, value.clone()),
        }
    }
    out
}

fn substitute_object(object: &Object, standing: &Standing) -> Object {
    let arguments =
        object.arguments.as_ref().map(|arguments| arguments.iter().map(|argument| substitute(argument, standing)).collect());
    Object { class: object.class, arguments }
}

fn known(standing: &Standing, variable: Variable) -> Option<&Values> {
    standing.iter().find(|(other, _)| *other == variable).map(|(_, values)| values)
}

impl Inference<'_> {
    /// Returns the values with each variable's bound in its place; what is deeper remains.
    pub fn settled(&mut self, values: Values) -> Values {
        if !values.iter().any(|value| matches!(value, Value::Variable(_) | Value::ClassOf(_))) {
            return values;
        }
        let mut out = Values::new();
        for value in values {
            match value {
                Value::Variable(variable) => add_all(&mut out, self.bound_of(variable)),
                Value::ClassOf(variable) => {
                    for value in self.bound_of(variable) {
                        add_all(&mut out, class_of(value));
                    }
                }
                value => add(&mut out, value),
            }
        }
        out
    }

    /// Returns what a variable surely is: its bound, or one of its constraints.
    pub(super) fn bound_of(&mut self, variable: Variable) -> Values {
        let file = self.view(variable.view);
        let Some(binding) = file.binding(variable.binding) else { return Values::new() };
        let mut values = Values::new();
        if binding.role == Role::TypeParameter {
            if let Some(annotation) = binding.annotation {
                values = self.types_of(variable.view, annotation);
            }
        } else if let Some(value) = binding.value
            && let Some(Expression::Invocation { arguments, .. }) = file.expression(value)
        {
            for argument in self.arguments(&file, arguments).into_iter().skip(1) {
                add_all(&mut values, self.types_of(variable.view, argument));
            }
        }
        values.retain(|value| !matches!(value, Value::Variable(_) | Value::ClassOf(_)));
        values
    }

    /// Returns whether an assigned value makes a type variable.
    pub(super) fn makes_variable(&self, file: &View<'_>, value: Handle) -> bool {
        match file.expression(value) {
            Some(Expression::Call { callee } | Expression::Invocation { callee, .. }) => {
                self.library_function(file, callee) == Some(Function::TypeVariable)
            }
            _ => false,
        }
    }

    /// Notes what the variables of a declared type stand for when something holds `given`.
    pub(super) fn unify(&mut self, declared: &[Value], given: &[Value], depth: u32, standing: &mut Standing) {
        if depth > MAX_NESTING || !is_open(declared) {
            return;
        }
        for value in declared {
            match value {
                Value::Variable(variable) => self.stand(*variable, given.iter().cloned(), standing),
                Value::ClassOf(variable) => {
                    let mut instances = Values::new();
                    for value in given {
                        if let Value::Class(object) = value {
                            add(&mut instances, Value::Instance(object.clone()));
                        }
                    }
                    self.stand(*variable, instances, standing);
                }
                Value::Elements(inner) => {
                    for value in given {
                        let elements = self.iterated(value);
                        self.unify(inner, &elements, depth + 1, standing);
                    }
                }
                Value::Tuple(parts) => {
                    for (index, part) in parts.iter().enumerate() {
                        for value in given {
                            let given = self.part(value, index);
                            self.unify(part, &given, depth + 1, standing);
                        }
                    }
                }
                Value::Mapping(sides) => {
                    for value in given {
                        if let Value::Mapping(given) = value {
                            self.unify(&sides.0, &given.0, depth + 1, standing);
                            self.unify(&sides.1, &given.1, depth + 1, standing);
                        }
                    }
                }
                Value::Callable(inner) => {
                    for value in given {
                        if matches!(value, Value::Function(..) | Value::Class(_) | Value::Callable(_)) {
                            let result = self.called(value);
                            self.unify(inner, &result, depth + 1, standing);
                        }
                    }
                }
                Value::Instance(object) => {
                    let Some(arguments) = &object.arguments else { continue };
                    for value in given {
                        if let Value::Instance(other) = value {
                            let standing_there = self.standing_at(other, object.class);
                            let parameters = self.parameters_of(object.class);
                            for (parameter, argument) in parameters.iter().zip(arguments.iter()) {
                                if let Some(given) = known(&standing_there, *parameter).cloned() {
                                    self.unify(argument, &given, depth + 1, standing);
                                }
                            }
                        }
                    }
                }
                _ => {}
            }
        }
    }

    fn stand(&mut self, variable: Variable, given: impl IntoIterator<Item = Value>, standing: &mut Standing) {
        let mut given = given.into_iter().peekable();
        if given.peek().is_none() {
            return;
        }
        match standing.iter_mut().find(|(other, _)| *other == variable) {
            Some((_, values)) => add_all(values, given),
            None => {
                let mut values = Values::new();
                add_all(&mut values, given);
                standing.push((variable, values));
            }
        }
    }

    /// Returns the type parameters of a class, in order.
    pub(super) fn parameters_of(&mut self, class: Place) -> Rc<[Variable]> {
        if let Some(known) = self.parameters.get(&class) {
            return Rc::clone(known);
        }
        self.parameters.insert(class, Rc::from([]));
        let parameters: Rc<[Variable]> = self.deeper(Rc::from([]), |this| this.compute_parameters(class));
        self.parameters.insert(class, Rc::clone(&parameters));
        parameters
    }

    fn compute_parameters(&mut self, class: Place) -> Rc<[Variable]> {
        let file = self.view(class.view);
        let Some(shape) = file.class(class.declaration) else { return Rc::from([]) };
        if !shape.parameters.is_empty() {
            return shape.parameters.iter().map(|binding| Variable { view: class.view, binding: *binding }).collect();
        }
        let mut all = Vec::new();
        for base in shape.bases.iter().flatten() {
            let Some(Expression::Subscript { object, argument }) = file.expression(*base) else { continue };
            let says_all = self.generic(&file, object) == Some(Generic::Root);
            let mut own = Vec::new();
            for argument in self.arguments(&file, argument) {
                let types = self.types_of(class.view, argument);
                variables_in(&types, &mut own);
            }
            if says_all {
                return own.into();
            }
            for variable in own {
                if !all.contains(&variable) {
                    all.push(variable);
                }
            }
        }
        all.into()
    }

    /// Returns what the type parameters of a class stand for in an object of it or of a class below it.
    pub(super) fn standing_at(&mut self, object: &Object, owner: Place) -> Standing {
        let mut standing = Standing::new();
        if let Some(arguments) = &object.arguments {
            let parameters = self.parameters_of(object.class);
            standing.extend(parameters.iter().copied().zip(arguments.iter().cloned()));
        }
        if object.class == owner {
            return standing;
        }
        let file = self.view(object.class.view);
        let Some(shape) = file.class(object.class.declaration) else { return Standing::new() };
        for base in shape.bases.iter().flatten() {
            for value in self.values_of(object.class.view, *base) {
                let Value::Class(base) = value else { continue };
                if base.class == object.class || !self.linearization(base.class).contains(&Some(owner)) {
                    continue;
                }
                let base = substitute_object(&base, &standing);
                return self.deeper(Standing::new(), |this| this.standing_at(&base, owner));
            }
        }
        Standing::new()
    }

    /// Puts what the type parameters of `owner` stand for in an object in their place.
    pub(super) fn in_object(&mut self, values: Values, object: &Object, owner: Place) -> Values {
        if !is_open(&values) {
            return values;
        }
        let standing = self.standing_at(object, owner);
        substitute(&values, &standing)
    }
}

fn variables_in(values: &[Value], out: &mut Vec<Variable>) {
    for value in values {
        match value {
            Value::Variable(variable) | Value::ClassOf(variable) if !out.contains(variable) => out.push(*variable),
            Value::Elements(inner) | Value::Callable(inner) => variables_in(inner, out),
            Value::Tuple(parts) => parts.iter().for_each(|part| variables_in(part, out)),
            Value::Mapping(sides) => {
                variables_in(&sides.0, out);
                variables_in(&sides.1, out);
            }
            Value::Class(object) | Value::Instance(object) => {
                object.arguments.iter().flat_map(|arguments| arguments.iter()).for_each(|part| variables_in(part, out));
            }
            _ => {}
        }
    }
}
