//! What calls give: results as declared or returned, and what decorators make of a function.
//!
//! Must not know how arguments are written. Invariant: what a decorator is not known to change, it leaves as it is.

use std::sync::Arc;

use super::generics::{Standing, is_open, substitute};
use super::state::Inference;
use super::value::{Object, Place, Value, Values, Variable, add, add_all, only};
use crate::languages::python::library::Function;
use crate::model::facts::{Expression, Handle, Role, Use};

/// What a call is given.
pub(super) enum Passed<'p> {
    Nothing,
    /// Arguments as they are written in a view.
    Written(u32, Option<Handle>),
    /// The one argument, which is known.
    One(&'p Values),
}

impl Inference<'_> {
    fn passed(&mut self, passed: &Passed<'_>, index: usize) -> Values {
        match passed {
            Passed::Nothing => Values::new(),
            Passed::Written(view, arguments) => {
                let file = self.view(*view);
                match self.arguments(&file, *arguments).get(index) {
                    Some(argument) => self.values_of(*view, *argument),
                    None => Values::new(),
                }
            }
            Passed::One(values) if index == 0 => (*values).clone(),
            Passed::One(_) => Values::new(),
        }
    }

    /// Returns what calling a value gives.
    pub(super) fn call_values(&mut self, value: &Value, passed: &Passed<'_>) -> Values {
        match value {
            Value::Class(object) => only(Value::Instance(object.clone())),
            Value::Function(function, receiver) => {
                self.deeper(Values::new(), |this| this.result(*function, receiver.as_ref(), passed))
            }
            Value::Instance(_) => {
                let mut values = Values::new();
                for method in self.attribute_values(value, &"__call__".into()) {
                    add_all(&mut values, self.call_values(&method, passed));
                }
                values
            }
            Value::Callable(values) => values.iter().cloned().collect(),
            Value::Variable(variable) => self.each(*variable, |this, value| this.called(value)),
            Value::ClassOf(variable) => only(Value::Variable(*variable)),
            Value::External | Value::Elements(_) | Value::Mapping(_) | Value::Tuple(_) => only(Value::External),
            Value::Module(_) | Value::Super(_) | Value::Receiver => Values::new(),
        }
    }

    /// Returns what `then` gives for each value that a variable may stand for.
    pub(super) fn each(&mut self, variable: Variable, then: impl Fn(&mut Self, &Value) -> Values) -> Values {
        let mut values = Values::new();
        for value in self.bound_of(variable) {
            add_all(&mut values, self.deeper(Values::new(), |this| then(this, &value)));
        }
        values
    }

    pub(super) fn result(&mut self, function: Place, receiver: Option<&Object>, passed: &Passed<'_>) -> Values {
        let file = self.view(function.view);
        let Some(shape) = file.function(function.declaration) else { return Values::new() };
        let mut values = Values::new();
        for declared in &shape.returns {
            for value in self.types_of(function.view, *declared) {
                match (value, receiver) {
                    (Value::Receiver, Some(object)) => add(&mut values, Value::Instance(object.clone())),
                    (Value::Receiver, None) => {}
                    (value, _) => add(&mut values, value),
                }
            }
        }
        if is_open(&values) {
            let standing = self.standing_in_call(function, receiver, passed);
            values = substitute(&values, &standing);
        }
        if shape.returns.is_empty() {
            for returned in &shape.returned {
                match self.own_result(function, *returned, receiver) {
                    Some(value) => add(&mut values, value),
                    None => add_all(&mut values, self.values_of(function.view, *returned)),
                }
            }
            if let Some(object) = receiver {
                let owner = self.owner_of(function, object);
                values = self.in_object(values, object, owner);
            }
        }
        values
    }

    /// Returns what a method returns that gives what it is called on: the instance, or a new one of the class.
    fn own_result(&mut self, function: Place, returned: Handle, receiver: Option<&Object>) -> Option<Value> {
        let file = self.view(function.view);
        let role_of = |handle: Handle| match file.expression(handle) {
            Some(Expression::Name(Use::One(binding))) => file.binding(binding).map(|binding| binding.role),
            _ => None,
        };
        let receiver = receiver?.clone();
        match file.expression(returned)? {
            Expression::Name(_) => match role_of(returned)? {
                Role::Instance(_) => Some(Value::Instance(receiver)),
                Role::Type(_) => Some(Value::Class(receiver)),
                _ => None,
            },
            Expression::Call { callee } | Expression::Invocation { callee, .. } => {
                let own_class = match file.expression(callee)? {
                    Expression::Name(_) => matches!(role_of(callee), Some(Role::Type(_))),
                    Expression::Attribute { object, name } => {
                        matches!(role_of(object), Some(Role::Instance(_))) && file.outline(callee).names.get(name) == "__class__"
                    }
                    Expression::Invocation { callee, arguments } => {
                        let first = self.arguments(&file, arguments).first().copied();
                        self.library_function(&file, callee) == Some(Function::Class)
                            && first.is_some_and(|first| matches!(role_of(first), Some(Role::Instance(_))))
                    }
                    _ => false,
                };
                own_class.then_some(Value::Instance(receiver))
            }
            _ => None,
        }
    }

    /// Returns the class among an object's that has the method.
    fn owner_of(&mut self, method: Place, object: &Object) -> Place {
        let linearization = self.linearization(object.class);
        let file = self.view(method.view);
        let Some(key) = file.declaration(method.declaration).map(|declaration| &declaration.key.qualified) else {
            return object.class;
        };
        let class = key.rsplit_once('.').map(|(class, _)| class);
        let found = linearization.iter().flatten().find(|owner| {
            owner.view == method.view
                && file.declaration(owner.declaration).map(|declaration| declaration.key.qualified.as_ref()) == class
        });
        found.copied().unwrap_or(object.class)
    }

    /// Returns what the type variables of a function and of its class stand for in a call.
    fn standing_in_call(&mut self, function: Place, receiver: Option<&Object>, passed: &Passed<'_>) -> Standing {
        let file = self.view(function.view);
        let mut standing = Standing::new();
        let Some(shape) = file.function(function.declaration) else { return standing };
        let is_method = receiver.is_some() && !shape.unbound;
        for (index, parameter) in shape.parameters.iter().enumerate() {
            let Some(parameter) = parameter else { continue };
            let declared = self.types_of(function.view, *parameter);
            let given = match (is_method, index, receiver) {
                (true, 0, Some(object)) if shape.class_method => only(Value::Class(object.clone())),
                (true, 0, Some(object)) => only(Value::Instance(object.clone())),
                (true, index, _) => self.passed(passed, index - 1),
                (false, index, _) => self.passed(passed, index),
            };
            self.unify(&declared, &given, 0, &mut standing);
        }
        if let Some(object) = receiver {
            let owner = self.owner_of(function, object);
            let of_class = self.standing_at(object, owner);
            standing.extend(of_class);
        }
        standing
    }

    pub(super) fn method_result(&mut self, value: &Value, method: &str) -> Values {
        let name: Arc<str> = method.into();
        let mut values = Values::new();
        for method in self.attribute_values(value, &name) {
            add_all(&mut values, self.called(&method));
        }
        values
    }

    /// Returns what a function is once its decorators, a list with the outermost first, have been applied to it.
    pub(super) fn decorated(&mut self, view: u32, decorators: Handle, function: Value) -> Values {
        let file = self.view(view);
        let mut current = only(function);
        for decorator in self.arguments(&file, Some(decorators)).into_iter().rev() {
            let mut made = Values::new();
            for decorator in self.values_of(view, decorator) {
                let result = match &decorator {
                    Value::Class(object) => only(Value::Instance(object.clone())),
                    Value::Function(..) | Value::Callable(_) | Value::Instance(_) => {
                        self.call_values(&decorator, &Passed::One(&current))
                    }
                    _ => Values::new(),
                };
                let result = self.settled(result);
                add_all(&mut made, result.into_iter().filter(|value| !matches!(value, Value::External)));
            }
            let tells = |value: &Value| match value {
                // What a decorator defines inside stands for what it decorates.
                Value::Function(..) => false,
                Value::Callable(given) => !given.is_empty() && given.iter().any(|value| !matches!(value, Value::External)),
                _ => true,
            };
            if made.iter().any(tells) {
                made.retain(|value| tells(value));
                current = made;
            }
        }
        current
    }
}
