//! What the library's containers and functions give: elements, parts, and what is done by calling them.
//!
//! Must not know how a container is declared. Invariant: what a container has beside its elements is nothing of the repository.

use std::rc::Rc;

use super::calls::Passed;
use super::state::Inference;
use super::value::{Object, Value, Values, add, add_all, class_of, instance_of, only};
use crate::languages::python::library::Function;
use crate::model::facts::{Expression, Handle};

impl Inference<'_> {
    /// Returns what iterating over a value gives.
    pub(super) fn iterated(&mut self, value: &Value) -> Values {
        match value {
            Value::Elements(elements) => elements.iter().cloned().collect(),
            Value::Mapping(sides) => sides.0.clone(),
            Value::Tuple(parts) => {
                let mut values = Values::new();
                for part in parts.iter() {
                    add_all(&mut values, part.iter().cloned());
                }
                values
            }
            Value::Instance(object) => self.deeper(Values::new(), |this| this.iterated_object(value, object)),
            Value::Class(object) if self.is_enumeration(object.class) => only(Value::Instance(object.clone())),
            Value::Variable(variable) => self.each(*variable, |this, value| this.iterated(value)),
            Value::External => only(Value::External),
            _ => Values::new(),
        }
    }

    fn iterated_object(&mut self, value: &Value, object: &Object) -> Values {
        let mut values = Values::new();
        for (iterate, next) in [("__iter__", "__next__"), ("__aiter__", "__anext__")] {
            for iterator in self.method_result(value, iterate) {
                match &iterator {
                    Value::Instance(_) => add_all(&mut values, self.method_result(&iterator, next)),
                    Value::External => {}
                    other => add_all(&mut values, self.iterated(other)),
                }
            }
        }
        if values.is_empty() {
            values = self.method_result(value, "__getitem__");
        }
        for container in self.containers_of(object) {
            if values.is_empty() {
                values = self.iterated(&container);
            }
        }
        values
    }

    /// Returns the part of a value that a target gets when it is taken apart.
    pub(super) fn part(&mut self, value: &Value, index: usize) -> Values {
        match value {
            Value::Tuple(parts) => parts.get(index).cloned().unwrap_or_default(),
            Value::Instance(object) => match self.fields_of(object.class) {
                Some(fields) => fields.get(index).cloned().unwrap_or_default(),
                None => self.iterated(value),
            },
            other => self.iterated(other),
        }
    }

    /// Returns what subscripting a value gives.
    pub(super) fn item(&mut self, view: u32, value: &Value, argument: Option<Handle>) -> Values {
        match value {
            Value::Elements(_) => self.iterated(value),
            Value::Mapping(sides) => sides.1.clone(),
            Value::Tuple(parts) => {
                let file = self.view(view);
                match argument.and_then(|argument| file.expression(argument)) {
                    Some(Expression::Part(_, index)) => parts.get(index as usize).cloned().unwrap_or_default(),
                    _ => self.iterated(value),
                }
            }
            Value::Class(object) => {
                if self.is_enumeration(object.class) {
                    return only(Value::Instance(object.clone()));
                }
                let file = self.view(view);
                let arguments: Vec<Handle> = self.arguments(&file, argument).into_iter().collect();
                let given = arguments.iter().map(|argument| self.types_of(view, *argument)).collect();
                only(Value::Class(Object { class: object.class, arguments: Some(given) }))
            }
            Value::Instance(object) => {
                let file = self.view(view);
                if let Some(Expression::Part(_, index)) = argument.and_then(|argument| file.expression(argument))
                    && let Some(fields) = self.fields_of(object.class)
                {
                    return fields.get(index as usize).cloned().unwrap_or_default();
                }
                let mut values = self.method_result(value, "__getitem__");
                for container in self.containers_of(object) {
                    if values.is_empty() {
                        values = self.item(view, &container, argument);
                    }
                }
                values
            }
            Value::Variable(variable) => self.each(*variable, |this, value| this.item(view, value, argument)),
            Value::External => only(Value::External),
            _ => Values::new(),
        }
    }

    /// Returns what entering a context manager gives.
    pub(super) fn entered(&mut self, value: &Value) -> Values {
        match value {
            Value::Elements(_) => self.iterated(value),
            Value::Instance(object) => {
                let mut values = self.method_result(value, "__enter__");
                if values.is_empty() {
                    values = self.method_result(value, "__aenter__");
                }
                for container in self.containers_of(object) {
                    if values.is_empty() {
                        values = self.iterated(&container);
                    }
                }
                values
            }
            Value::Variable(variable) => self.each(*variable, |this, value| this.entered(value)),
            Value::External => only(Value::External),
            _ => Values::new(),
        }
    }

    /// Returns what an attribute of one of the library's containers holds.
    pub(super) fn container_attribute(&mut self, container: &Value, name: &str) -> Values {
        let calls = |values: Values| only(Value::Callable(values.into_iter().collect()));
        let listed = |values: &Values| only(Value::Elements(values.iter().cloned().collect()));
        let pairs = |sides: &(Values, Values)| only(Value::Tuple(Rc::from([sides.0.clone(), sides.1.clone()])));
        match (container, name) {
            (Value::Mapping(sides), "get" | "pop" | "setdefault" | "__getitem__") => calls(sides.1.clone()),
            (Value::Mapping(sides), "values") => calls(listed(&sides.1)),
            (Value::Mapping(sides), "keys" | "__iter__") => calls(listed(&sides.0)),
            (Value::Mapping(sides), "items") => calls(listed(&pairs(sides))),
            (Value::Mapping(sides), "popitem") => calls(pairs(sides)),
            (
                Value::Elements(elements),
                "pop" | "popleft" | "get" | "get_nowait" | "__next__" | "__anext__" | "__getitem__" | "send" | "__enter__"
                | "__aenter__",
            ) => calls(elements.iter().cloned().collect()),
            (Value::Elements(_) | Value::Mapping(_), "copy") => calls(only(container.clone())),
            (
                Value::Elements(_),
                "__iter__" | "__reversed__" | "union" | "intersection" | "difference" | "symmetric_difference",
            ) => calls(only(container.clone())),
            _ => only(Value::External),
        }
    }

    /// Returns the library's containers among the bases of an object's class.
    pub(super) fn containers_of(&mut self, object: &Object) -> Values {
        let mut containers = Values::new();
        for owner in self.linearization(object.class).iter().flatten() {
            let file = self.view(owner.view);
            let Some(shape) = file.class(owner.declaration) else { continue };
            for base in shape.bases.iter().flatten() {
                if !matches!(file.expression(*base), Some(Expression::Subscript { .. })) {
                    continue;
                }
                let types = self.types_of(owner.view, *base);
                if types.iter().any(|value| matches!(value, Value::Elements(_) | Value::Mapping(_) | Value::Tuple(_))) {
                    add_all(&mut containers, self.in_object(types, object, *owner));
                }
            }
        }
        containers
    }

    /// Returns what calling a function of the library gives.
    pub(super) fn library_call(&mut self, view: u32, function: Function, arguments: Option<Handle>) -> Values {
        let file = self.view(view);
        let arguments = self.arguments(&file, arguments);
        let mut given: Vec<Values> = Vec::new();
        for (index, argument) in arguments.iter().enumerate() {
            let values = match (function, index) {
                (Function::Casts, 0) => self.types_of(view, *argument),
                (Function::Casts, _) => continue,
                _ => self.values_of(view, *argument),
            };
            given.push(values);
        }
        let first = given.first().cloned().unwrap_or_default();
        let mut elements: Vec<Values> = Vec::new();
        if !matches!(function, Function::Casts | Function::Same) {
            for values in &given {
                let mut all = Values::new();
                for value in values {
                    add_all(&mut all, self.iterated(value));
                }
                elements.push(all);
            }
        }
        let listed = |values: Values| only(Value::Elements(values.into_iter().collect()));
        match function {
            Function::Iterates => {
                let mut all = Values::new();
                for values in elements {
                    add_all(&mut all, values);
                }
                listed(all)
            }
            Function::IteratesLast => listed(elements.pop().unwrap_or_default()),
            Function::Enumerates => {
                let parts = [only(Value::External), elements.into_iter().next().unwrap_or_default()];
                listed(only(Value::Tuple(Rc::new(parts))))
            }
            Function::Zips => listed(only(Value::Tuple(elements.into()))),
            Function::Picks if given.len() == 1 || matches!(elements.first(), Some(first) if !first.is_empty()) => {
                elements.into_iter().next().unwrap_or_default()
            }
            Function::Picks => {
                let mut all = Values::new();
                for values in given {
                    add_all(&mut all, values);
                }
                all
            }
            Function::Same | Function::Casts => first,
            Function::Refers => only(Value::Callable(first.into_iter().collect())),
            Function::Maps => {
                let mut made = Values::new();
                for value in &first {
                    add_all(&mut made, self.called(value));
                }
                listed(made)
            }
            Function::Mapping => {
                let mut values = first;
                values.retain(|value| matches!(value, Value::Mapping(_)));
                if values.is_empty() { only(Value::External) } else { values }
            }
            Function::DefaultMapping => {
                let mut made = Values::new();
                for value in &first {
                    add_all(&mut made, self.called(value));
                }
                only(Value::Mapping(Rc::new((Values::new(), made))))
            }
            Function::Class => {
                let mut values = Values::new();
                for value in first {
                    add_all(&mut values, class_of(value));
                }
                values
            }
            Function::Enters => listed(first),
            Function::Gathers => only(Value::Tuple(given.into())),
            Function::NewType => {
                let mut values = Values::new();
                for value in given.get(1).cloned().unwrap_or_default() {
                    for value in instance_of(value) {
                        add(&mut values, Value::Callable(Rc::from([value])));
                    }
                }
                values
            }
            Function::TypeVariable => only(Value::External),
        }
    }

    /// Returns what calling a value gives when nothing is known of what it is called with.
    pub(super) fn called(&mut self, value: &Value) -> Values {
        self.call_values(value, &Passed::Nothing)
    }
}
