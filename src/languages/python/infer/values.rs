//! What expressions, bindings, attributes and calls may hold.
//!
//! Must not know annotations but through [`Inference::types_of`]. Invariant: what is asked again while it is being answered holds nothing.

use std::rc::Rc;
use std::sync::Arc;

use smallvec::SmallVec;

use super::calls::Passed;
use super::members::Member;
use super::names::Star;
use super::state::Inference;
use super::value::{End, Object, Place, Value, Values, add, add_all, only};
use super::view::{bindings_of, free_name};
use crate::languages::python::library::Function;
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
                if self.library_function(&file, callee) == Some(Function::DefaultMapping) {
                    return only(Value::External);
                }
                for value in self.values_of(view, callee) {
                    add_all(&mut values, self.called(&value));
                }
            }
            Expression::Invocation { callee, arguments } => {
                if let Some(function) = self.library_function(&file, callee) {
                    return self.library_call(view, function, arguments);
                }
                for value in self.values_of(view, callee) {
                    add_all(&mut values, self.call_values(&value, &Passed::Written(view, arguments)));
                }
            }
            Expression::Subscript { object, argument } => {
                for value in self.values_of(view, object) {
                    add_all(&mut values, self.item(view, &value, argument));
                }
            }
            Expression::Either(left, right) => {
                add_all(&mut values, self.values_of(view, left));
                add_all(&mut values, self.values_of(view, right));
            }
            Expression::List(..) => {
                let parts = self.arguments(&file, Some(handle)).iter().map(|part| self.values_of(view, *part)).collect();
                add(&mut values, Value::Tuple(parts));
            }
            Expression::Sequence(element) => {
                add(&mut values, Value::Elements(self.values_of(view, element).into_iter().collect()));
            }
            Expression::Mapping(key, value) => {
                let sides = (self.values_of(view, key), self.values_of(view, value));
                add(&mut values, Value::Mapping(Rc::new(sides)));
            }
            Expression::Element(inner) => {
                for value in self.values_of(view, inner) {
                    add_all(&mut values, self.iterated(&value));
                }
            }
            Expression::Part(inner, index) => {
                for value in self.values_of(view, inner) {
                    add_all(&mut values, self.part(&value, index as usize));
                }
            }
            Expression::Entered(inner) => {
                for value in self.values_of(view, inner) {
                    add_all(&mut values, self.entered(&value));
                }
            }
            Expression::Injected { .. } => return self.injected_values(view, handle),
            Expression::Await(inner) => return self.values_of(view, inner),
            Expression::Instance(annotation) => return self.types_of(view, annotation),
            Expression::Super(class) => {
                add(&mut values, Value::Super(Object::plain(Place { view, declaration: class })));
            }
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
        let object = |declaration: Handle| Object::plain(Place { view, declaration });
        match binding.role {
            Role::Function => {
                let Some(declaration) = binding.declaration else { return Values::new() };
                let function = Value::Function(Place { view, declaration }, None);
                match binding.value {
                    Some(decorators) => self.decorated(view, decorators, function),
                    None => only(function),
                }
            }
            Role::Class => binding.declaration.map(|class| only(Value::Class(object(class)))).unwrap_or_default(),
            Role::Instance(class) => {
                let mut values = match binding.annotation {
                    Some(annotation) => self.types_of(view, annotation),
                    None => Values::new(),
                };
                if values.iter().all(|value| matches!(value, Value::External | Value::Variable(_))) {
                    values = only(Value::Instance(object(class)));
                }
                values
            }
            Role::Type(class) => only(Value::Class(object(class))),
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
            Role::TypeParameter | Role::LocalType(_) | Role::Alias | Role::Star(_) | Role::Deleted => Values::new(),
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
            Value::Class(object) | Value::Instance(object) | Value::Super(object) => {
                let instance = !matches!(value, Value::Class(_));
                if &**name == "__class__" && instance {
                    return only(Value::Class(object.clone()));
                }
                let Some(member) = self.member(value, name) else {
                    for container in self.containers_of(object) {
                        add_all(&mut values, self.container_attribute(&container, name));
                    }
                    if self.linearization(object.class).iter().any(Option::is_none) {
                        add(&mut values, Value::External);
                    }
                    return values;
                };
                add_all(&mut values, self.member_values(&member, object, instance, name));
            }
            Value::Elements(_) | Value::Mapping(_) | Value::Tuple(_) => {
                add_all(&mut values, self.container_attribute(value, name));
            }
            Value::Variable(variable) => {
                add_all(&mut values, self.each(*variable, |this, value| this.attribute_values(value, name)));
            }
            Value::ClassOf(_) => {
                for class in self.settled(only(value.clone())) {
                    add_all(&mut values, self.attribute_values(&class, name));
                }
            }
            Value::External => add(&mut values, Value::External),
            Value::Function(..) | Value::Callable(_) | Value::Receiver => {}
        }
        values
    }

    fn member_values(&mut self, member: &Member, receiver: &Object, instance: bool, name: &str) -> Values {
        let file = self.view(member.owner.view);
        let mut values = Values::new();
        let bindings: SmallVec<[Handle; 2]> = member.bound.map(|used| bindings_of(&file, used)).unwrap_or_default();
        for handle in bindings {
            let Some(binding) = file.binding(handle) else { continue };
            if binding.role == Role::Variable && binding.annotation.is_none() && self.is_enumeration(member.owner) {
                add(&mut values, Value::Instance(receiver.clone()));
                continue;
            }
            let held = self.binding_values(member.owner.view, handle);
            match (binding.role, binding.declaration) {
                (Role::Function, Some(declaration)) => {
                    let function = Place { view: member.owner.view, declaration };
                    let property = file.function(declaration).is_some_and(|shape| shape.property);
                    for value in held {
                        match value {
                            Value::Function(function, None) if property && instance => {
                                add_all(&mut values, self.result(function, Some(receiver), &Passed::Nothing));
                            }
                            Value::Function(function, None) => {
                                add(&mut values, Value::Function(function, Some(receiver.clone())));
                            }
                            descriptor => match self.described(&descriptor, instance) {
                                Some(described) if described.is_empty() => {
                                    add_all(&mut values, self.result(function, Some(receiver), &Passed::Nothing));
                                }
                                Some(described) => add_all(&mut values, described),
                                None => add(&mut values, descriptor),
                            },
                        }
                    }
                }
                _ => {
                    for value in held {
                        match self.described(&value, instance) {
                            Some(described) => add_all(&mut values, described),
                            None => add(&mut values, value),
                        }
                    }
                }
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
        if let Some((owner, used)) = member.declared {
            let declared = Member { owner, bound: Some(used), certain: member.certain, declared: None };
            add_all(&mut values, self.member_values(&declared, receiver, instance, name));
        }
        for value in &mut values {
            if *value == Value::Receiver {
                *value = Value::Instance(receiver.clone());
            }
        }
        self.in_object(values, receiver, member.owner)
    }

    /// Returns what an attribute gives whose class holds a descriptor; `None` when it holds something else.
    fn described(&mut self, value: &Value, instance: bool) -> Option<Values> {
        let Value::Instance(descriptor) = value else { return None };
        self.member(value, "__get__")?;
        if !instance {
            return None;
        }
        let mut values = self.method_result(value, "__get__");
        if values.len() > 1 {
            // Asked of the class, most descriptors give themselves.
            values.retain(|other| !matches!(other, Value::Instance(object) if object.class == descriptor.class));
        }
        values.retain(|value| !matches!(value, Value::External));
        Some(self.settled(values))
    }
}
