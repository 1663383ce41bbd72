//! What expressions, bindings, attributes and calls may hold.
//!
//! Must not know annotations but through [`Inference::types_of`]. Invariant: what is asked again while it is being answered holds nothing.

use std::sync::Arc;

use smallvec::SmallVec;

use super::members::Member;
use super::names::Star;
use super::state::Inference;
use super::value::{End, Place, Value, Values, add, add_all};
use super::view::{bindings_of, free_name};
use crate::model::Reason;
use crate::model::facts::{Binding, Expression, Handle, Role, Use};

impl Inference<'_> {
    /// Returns what an expression may hold.
    pub fn values_of(&mut self, view: u32, handle: Handle) -> Values {
        if let Some(known) = self.values.get(&(view, handle)) {
            return known.clone();
        }
        self.values.insert((view, handle), Values::new());
        let values = self.deeper(Values::new(), |this| this.compute_values(view, handle));
        self.values.insert((view, handle), values.clone());
        values
    }

    fn compute_values(&mut self, view: u32, handle: Handle) -> Values {
        let file = self.view(view);
        let Some(expression) = file.expression(handle) else { return Values::new() };
        let mut values = Values::new();
        match expression {
            Expression::Name(used) => return self.use_values(view, used),
            Expression::Attribute { object, name } => {
                let name: Arc<str> = file.outline(handle).names.get(name).into();
                for value in self.values_of(view, object) {
                    add_all(&mut values, self.attribute_values(&value, &name));
                }
            }
            Expression::Call { callee } => {
                for value in self.values_of(view, callee) {
                    add_all(&mut values, self.call_values(&value));
                }
            }
            Expression::Subscript { object, argument } => {
                for value in self.values_of(view, object) {
                    match value {
                        Value::Class(_) => add(&mut values, value),
                        Value::External => {
                            // An alias such as `List[X]`, used as a value.
                            let _ = argument;
                            add(&mut values, Value::External);
                        }
                        Value::Elements(elements) => add_all(&mut values, elements.iter().cloned()),
                        Value::Instance(_) => add_all(&mut values, self.method_result(&value, "__getitem__")),
                        _ => {}
                    }
                }
            }
            Expression::Either(left, right) => {
                add_all(&mut values, self.values_of(view, left));
                add_all(&mut values, self.values_of(view, right));
            }
            Expression::List(..) => {}
            Expression::Element(inner) => {
                for value in self.values_of(view, inner) {
                    add_all(&mut values, self.iterated(&value));
                }
            }
            Expression::Entered(inner) => {
                for value in self.values_of(view, inner) {
                    match &value {
                        Value::Elements(elements) => add_all(&mut values, elements.iter().cloned()),
                        Value::Instance(_) => {
                            let mut entered = self.method_result(&value, "__enter__");
                            if entered.is_empty() {
                                entered = self.method_result(&value, "__aenter__");
                            }
                            add_all(&mut values, entered);
                        }
                        Value::External => add(&mut values, Value::External),
                        _ => {}
                    }
                }
            }
            Expression::Await(inner) => return self.values_of(view, inner),
            Expression::Instance(annotation) => return self.types_of(view, annotation),
            Expression::Super(class) => add(&mut values, Value::Super(Place { view, declaration: class })),
            Expression::Literal => add(&mut values, Value::External),
            // Evidence of languages that declare their types.
            _ => {}
        }
        values
    }

    /// Returns what a binding may hold.
    pub fn binding_values(&mut self, view: u32, handle: Handle) -> Values {
        if let Some(known) = self.bindings.get(&(view, handle)) {
            return known.clone();
        }
        self.bindings.insert((view, handle), Values::new());
        let values = self.deeper(Values::new(), |this| this.compute_binding(view, handle));
        self.bindings.insert((view, handle), values.clone());
        values
    }

    fn compute_binding(&mut self, view: u32, handle: Handle) -> Values {
        let file = self.view(view);
        let Some(binding) = file.binding(handle) else { return Values::new() };
        let place = |declaration: Handle| Place { view, declaration };
        match binding.role {
            Role::Function => match binding.declaration {
                Some(declaration) => SmallVec::from_iter([Value::Function(place(declaration), None)]),
                None => Values::new(),
            },
            Role::Class => match binding.declaration {
                Some(declaration) => SmallVec::from_iter([Value::Class(place(declaration))]),
                None => Values::new(),
            },
            Role::Instance(class) => match binding.annotation {
                Some(annotation) => {
                    let mut values = self.types_of(view, annotation);
                    if values.iter().all(|value| matches!(value, Value::External)) {
                        values = SmallVec::from_iter([Value::Instance(place(class))]);
                    }
                    values
                }
                None => SmallVec::from_iter([Value::Instance(place(class))]),
            },
            Role::Type(class) => SmallVec::from_iter([Value::Class(place(class))]),
            Role::Import(import) => {
                let followed = self.import(view, handle.in_body(), import);
                let mut values = Values::new();
                for end in &followed.ends {
                    add_all(&mut values, self.end_values(end));
                }
                if followed.ends.is_empty() && followed.reason == Some(Reason::ExternalImport) {
                    add(&mut values, Value::External);
                }
                values
            }
            Role::Variable | Role::Parameter => match (binding.annotation, binding.value) {
                (Some(annotation), _) => self.types_of(view, annotation),
                (None, Some(value)) => self.values_of(view, value),
                (None, None) => Values::new(),
            },
            Role::TypeParameter | Role::LocalType(_) | Role::Star(_) | Role::Deleted => Values::new(),
        }
    }

    pub(super) fn end_values(&mut self, end: &End) -> Values {
        let mut values = Values::new();
        match end {
            End::Module(module) => add(&mut values, Value::Module(module.clone())),
            End::Definition(target) => {
                for (view, binding) in self.bindings_of_target(target) {
                    add_all(&mut values, self.binding_values(view, binding));
                }
            }
        }
        values
    }

    fn use_values(&mut self, view: u32, used: Use) -> Values {
        let file = self.view(view);
        let mut values = Values::new();
        match used {
            Use::Free(_) => add_all(&mut values, self.free_values(view, used)),
            _ => {
                for binding in bindings_of(&file, used) {
                    add_all(&mut values, self.binding_values(view, binding));
                }
            }
        }
        values
    }

    /// Values of a name that only star imports or the language bind.
    pub(super) fn free_values(&mut self, view: u32, used: Use) -> Values {
        let file = self.view(view);
        let Use::Free(name) = used else { return Values::new() };
        if file.surface.stars.is_empty() {
            return SmallVec::from_iter([Value::External]);
        }
        let name: Arc<str> = free_name(&file, name).into();
        let mut values = Values::new();
        for star in &file.surface.stars {
            if let Some(Binding { role: Role::Star(import), .. }) = file.binding(star.binding)
                && let Star::Brings(followed) = self.star(view, false, *import, &name)
            {
                for end in &followed.ends {
                    add_all(&mut values, self.end_values(end));
                }
                break;
            }
        }
        values
    }

    /// Returns what an attribute of a value may hold.
    pub fn attribute_values(&mut self, value: &Value, name: &Arc<str>) -> Values {
        let mut values = Values::new();
        match value {
            Value::Module(module) => {
                let followed = self.follow(module, name);
                for end in &followed.ends {
                    add_all(&mut values, self.end_values(end));
                }
            }
            Value::Class(class) | Value::Instance(class) | Value::Super(class) => {
                let instance = !matches!(value, Value::Class(_));
                let Some(member) = self.member(value, name) else {
                    if self.linearization(*class).iter().any(Option::is_none) {
                        add(&mut values, Value::External);
                    }
                    return values;
                };
                add_all(&mut values, self.member_values(&member, *class, instance, name));
            }
            Value::External => add(&mut values, Value::External),
            Value::Elements(_) | Value::Function(..) | Value::Receiver => {}
        }
        values
    }

    fn member_values(&mut self, member: &Member, receiver: Place, instance: bool, name: &str) -> Values {
        let file = self.view(member.owner.view);
        let mut values = Values::new();
        let bindings: SmallVec<[Handle; 2]> = member.bound.map(|used| bindings_of(&file, used)).unwrap_or_default();
        for handle in bindings {
            let Some(binding) = file.binding(handle) else { continue };
            match (binding.role, binding.declaration) {
                (Role::Function, Some(declaration)) => {
                    let function = Place { view: member.owner.view, declaration };
                    if instance && file.function(declaration).is_some_and(|shape| shape.property) {
                        add_all(&mut values, self.result(function, Some(receiver)));
                    } else {
                        add(&mut values, Value::Function(function, Some(receiver)));
                    }
                }
                _ => add_all(&mut values, self.binding_values(member.owner.view, handle)),
            }
        }
        if values.is_empty()
            && let Some(shape) = file.class(member.owner.declaration)
        {
            let names = &file.outline(member.owner.declaration).names;
            for evidence in shape.evidence(names, name).to_vec() {
                match (evidence.annotation, evidence.value) {
                    (Some(annotation), _) => add_all(&mut values, self.types_of(member.owner.view, annotation)),
                    (None, Some(value)) => add_all(&mut values, self.values_of(member.owner.view, value)),
                    (None, None) => {}
                }
            }
        }
        for value in &mut values {
            if *value == Value::Receiver {
                *value = Value::Instance(receiver);
            }
        }
        values
    }

    /// Returns what calling a value gives.
    fn call_values(&mut self, value: &Value) -> Values {
        match value {
            Value::Class(class) => SmallVec::from_iter([Value::Instance(*class)]),
            Value::Function(function, receiver) => self.result(*function, *receiver),
            Value::Instance(_) => self.method_result(value, "__call__"),
            Value::External | Value::Elements(_) => SmallVec::from_iter([Value::External]),
            Value::Module(_) | Value::Super(_) | Value::Receiver => Values::new(),
        }
    }

    fn result(&mut self, function: Place, receiver: Option<Place>) -> Values {
        let file = self.view(function.view);
        let Some(shape) = file.function(function.declaration) else { return Values::new() };
        let mut values = Values::new();
        for declared in &shape.returns {
            for value in self.types_of(function.view, *declared) {
                match (value, receiver) {
                    (Value::Receiver, Some(class)) => add(&mut values, Value::Instance(class)),
                    (Value::Receiver, None) => {}
                    (value, _) => add(&mut values, value),
                }
            }
        }
        if shape.returns.is_empty() {
            for returned in &shape.returned {
                let own = match file.expression(*returned) {
                    Some(Expression::Name(Use::One(binding))) => match file.binding(binding).map(|binding| binding.role) {
                        Some(Role::Instance(_)) => receiver.map(Value::Instance),
                        Some(Role::Type(_)) => receiver.map(Value::Class),
                        _ => None,
                    },
                    Some(Expression::Call { callee }) => match file.expression(callee) {
                        Some(Expression::Name(Use::One(binding))) => match file.binding(binding).map(|binding| binding.role) {
                            Some(Role::Type(_)) => receiver.map(Value::Instance),
                            _ => None,
                        },
                        _ => None,
                    },
                    _ => None,
                };
                match own {
                    Some(value) => add(&mut values, value),
                    None => add_all(&mut values, self.values_of(function.view, *returned)),
                }
            }
        }
        values
    }

    fn method_result(&mut self, value: &Value, method: &str) -> Values {
        let name: Arc<str> = method.into();
        let mut values = Values::new();
        for method in self.attribute_values(value, &name) {
            add_all(&mut values, self.call_values(&method));
        }
        values
    }

    fn iterated(&mut self, value: &Value) -> Values {
        match value {
            Value::Elements(elements) => elements.iter().cloned().collect(),
            Value::Instance(_) => {
                let mut values = Values::new();
                for iterator in self.method_result(value, "__iter__") {
                    match &iterator {
                        Value::Elements(elements) => add_all(&mut values, elements.iter().cloned()),
                        Value::Instance(_) => add_all(&mut values, self.method_result(&iterator, "__next__")),
                        _ => {}
                    }
                }
                values
            }
            Value::External => SmallVec::from_iter([Value::External]),
            _ => Values::new(),
        }
    }
}
