//! Calls: what functions give, and what constructors make.
//!
//! Must not know members. Invariant: a type parameter is bound by the arguments of the call at hand only.

use super::*;

/// How deep a parameter's type is matched with an argument.
const MAX_MATCH: u32 = 4;

impl Inference<'_> {
    /// Returns what calling a value gives; the arguments are written in a view.
    pub(super) fn call_values(&mut self, value: &Value, view: u32, arguments: Option<Handle>, env: &Env) -> Values {
        match value {
            Value::Function(function, own) => self.result(*function, own, view, arguments, env),
            Value::Instance(place, own) => self.declared_results(*place, own, |shape| &shape.calls, view, arguments, env),
            Value::Module(module) => self.of_whole(module, |inference, value| inference.call_values(value, view, arguments, env)),
            Value::Gives(given, _) => given.iter().cloned().collect(),
            Value::External | Value::Sequence(_) | Value::Tuple(_) => SmallVec::from_iter([Value::External]),
            Value::Class(..) | Value::Above(..) | Value::Promise(_) => Values::new(),
        }
    }

    /// Returns what `new` makes of a value.
    pub(super) fn construct(&mut self, value: &Value, view: u32, arguments: Option<Handle>, env: &Env) -> Values {
        match value {
            Value::Class(place, own) => {
                let inner = self.instantiate(*place, view, arguments, env).or_else(|| own.clone());
                SmallVec::from_iter([Value::Instance(*place, inner)])
            }
            Value::Function(place, _) => {
                let file = self.view(place.view);
                let shape = file.function(place.handle).and_then(|function| function.shape);
                shape
                    .map(|shape| Value::Instance(Place { view: place.view, handle: place.handle.beside(shape) }, None))
                    .into_iter()
                    .collect()
            }
            Value::Instance(place, own) => self.declared_results(*place, own, |shape| &shape.constructs, view, None, env),
            Value::Module(module) => self.of_whole(module, |inference, value| inference.construct(value, view, arguments, env)),
            Value::External => SmallVec::from_iter([Value::External]),
            _ => Values::new(),
        }
    }

    /// Returns what the signatures that an object's own class, or else the nearest one above, declares for it give.
    fn declared_results(
        &mut self,
        place: Place,
        own: &Env,
        signatures: fn(&ClassShape) -> &Vec<u32>,
        view: u32,
        arguments: Option<Handle>,
        env: &Env,
    ) -> Values {
        let mut values = Values::new();
        for (owner, inner) in self.linearization(place, own).iter() {
            let Some(owner) = owner else { continue };
            let file = self.view(owner.view);
            let functions = file.class(owner.handle).map(|shape| signatures(shape).clone()).unwrap_or_default();
            for function in functions {
                let function = Place { view: owner.view, handle: owner.handle.beside(function) };
                add_all(&mut values, self.result(function, inner, view, arguments, env));
            }
            if !values.is_empty() {
                break;
            }
        }
        values
    }

    /// Returns what each of the values that a module is as a whole (`module.exports = …`, `export = …`) gives.
    fn of_whole(&mut self, module: &ModuleKey, mut gives: impl FnMut(&mut Self, &Value) -> Values) -> Values {
        let followed = self.follow(module, &super::super::exports::WHOLE.into());
        let mut values = Values::new();
        for end in followed.ends.iter().filter(|end| !matches!(end, End::Module(_))) {
            for value in self.end_values(end, Meaning::Value) {
                add_all(&mut values, gives(self, &value));
            }
        }
        values
    }

    /// Returns what a function gives, called with arguments that are written in a view.
    pub(super) fn result(&mut self, function: Place, own: &Env, view: u32, arguments: Option<Handle>, env: &Env) -> Values {
        self.deeper(Values::new(), |this| this.find_result(function, own, view, arguments, env))
    }

    fn find_result(&mut self, function: Place, own: &Env, view: u32, arguments: Option<Handle>, env: &Env) -> Values {
        let file = self.view(function.view);
        let Some(shape) = file.function(function.handle) else { return Values::new() };
        let mut inner = own.clone();
        if !shape.type_parameters.is_empty()
            && let Some(arguments) = arguments
        {
            let mut environment = own.as_deref().map(Environment::copy).unwrap_or_default();
            let arguments = self.list_of(view, arguments);
            for (declared, argument) in shape.parameters.iter().zip(arguments) {
                if let Some(declared) = declared {
                    let given = self.values_of(view, argument, env);
                    self.infer(function.view, *declared, &given, &shape.type_parameters, &mut environment, 0);
                }
            }
            inner = Some(Rc::new(environment));
        }
        let mut values = Values::new();
        for declared in &shape.returns {
            add_all(&mut values, self.types_of(function.view, *declared, &inner));
        }
        if shape.returns.is_empty() {
            for returned in &shape.returned {
                add_all(&mut values, self.values_of(function.view, *returned, &inner));
            }
        }
        values
    }

    /// Binds the type parameters that a parameter's declared type names by what is given for it.
    fn infer(&mut self, view: u32, declared: Handle, given: &Values, parameters: &[Handle], found: &mut Environment, depth: u32) {
        if depth > MAX_MATCH || given.is_empty() {
            return;
        }
        let file = self.view(view);
        match file.expression(declared) {
            Some(Expression::Name(Use::One(binding))) if parameters.contains(&binding) => {
                let key = (view, binding);
                if !found.parameters.iter().any(|(known, _)| *known == key) {
                    found.parameters.push((key, given.clone()));
                }
            }
            Some(Expression::Sequence(element)) => {
                let mut elements = Values::new();
                for value in given {
                    if matches!(value, Value::Sequence(_) | Value::Tuple(_)) {
                        add_all(&mut elements, self.iterated(value));
                    }
                }
                self.infer(view, element, &elements, parameters, found, depth + 1);
            }
            // Each of the rest of the arguments.
            Some(Expression::Element(rest)) => {
                if let Some(Expression::Sequence(element)) = file.expression(rest) {
                    self.infer(view, element, given, parameters, found, depth + 1);
                }
            }
            Some(Expression::Either(left, right)) => {
                self.infer(view, left, given, parameters, found, depth + 1);
                self.infer(view, right, given, parameters, found, depth + 1);
            }
            Some(Expression::Function(function)) => {
                let Some(shape) = file.function(function) else { return };
                let returns = shape.returns.clone();
                let mut results = Values::new();
                for value in given {
                    if matches!(value, Value::Function(..)) {
                        add_all(&mut results, self.call_values(value, view, None, &None));
                    }
                }
                for declared in returns {
                    self.infer(view, declared, &results, parameters, found, depth + 1);
                }
            }
            Some(Expression::Subscript { object, argument: Some(list) }) => {
                // `Promise<T>`, `Class<T>`: by what the given value carries.
                let arguments = self.list_of(view, list);
                if let Some(Expression::Name(Use::Free(_))) = file.expression(object) {
                    let mut inner = Values::new();
                    for value in given {
                        match value {
                            Value::Promise(kept) => add_all(&mut inner, kept.iter().cloned()),
                            Value::Sequence(_) => add_all(&mut inner, self.iterated(value)),
                            _ => {}
                        }
                    }
                    if let Some(last) = arguments.last() {
                        self.infer(view, *last, &inner, parameters, found, depth + 1);
                    }
                    return;
                }
                for value in given {
                    let Value::Instance(place, Some(carried)) = value else { continue };
                    let own = self.views[place.view as usize].class(place.handle).map(|shape| shape.parameters.clone());
                    for (parameter, argument) in own.unwrap_or_default().iter().zip(&arguments) {
                        let carried = carried.parameters.iter().find(|(known, _)| *known == (place.view, *parameter));
                        if let Some((_, values)) = carried {
                            let values = values.clone();
                            self.infer(view, *argument, &values, parameters, found, depth + 1);
                        }
                    }
                }
            }
            _ => {}
        }
    }

    /// Returns what a callee expects as one of its arguments.
    pub(super) fn expected_values(&mut self, callee: &Value, argument: u8) -> Values {
        let mut values = Values::new();
        match callee {
            Value::Function(function, env) => {
                let file = self.view(function.view);
                if let Some(declared) = declared_parameter(&file, function.handle, argument) {
                    add_all(&mut values, self.types_of(function.view, declared, env));
                }
            }
            Value::Instance(place, env) => {
                let file = self.view(place.view);
                let calls = file.class(place.handle).map(|shape| shape.calls.clone()).unwrap_or_default();
                for call in calls {
                    let function = Value::Function(Place { view: place.view, handle: place.handle.beside(call) }, env.clone());
                    add_all(&mut values, self.expected_values(&function, argument));
                }
            }
            // What `new` expects, its constructor tells.
            Value::Class(place, env) => {
                let constructor = Value::Instance(*place, env.clone());
                if let Some(member) = self.member(&constructor, "constructor") {
                    for value in self.member_values(&member, &constructor) {
                        add_all(&mut values, self.expected_values(&value, argument));
                    }
                }
            }
            Value::Gives(..) if argument == 0 => add(&mut values, callee.clone()),
            _ => {}
        }
        values
    }

    /// Returns what a function is called with.
    pub(super) fn parameter_values(&mut self, function: &Value, number: u8) -> Values {
        match function {
            Value::Function(place, env) => {
                let file = self.view(place.view);
                match declared_parameter(&file, place.handle, number) {
                    Some(declared) => self.types_of(place.view, declared, env),
                    _ => Values::new(),
                }
            }
            Value::Instance(place, env) => {
                let file = self.view(place.view);
                let calls = file.class(place.handle).map(|shape| shape.calls.clone()).unwrap_or_default();
                let mut values = Values::new();
                for call in calls {
                    let function = Value::Function(Place { view: place.view, handle: place.handle.beside(call) }, env.clone());
                    add_all(&mut values, self.parameter_values(&function, number));
                }
                values
            }
            Value::Gives(_, each) => each.get(usize::from(number)).cloned().unwrap_or_default(),
            _ => Values::new(),
        }
    }
}

/// Returns the declared type of a parameter by its number; the last may stand for all the rest.
fn declared_parameter(file: &View<'_>, function: Handle, number: u8) -> Option<Handle> {
    let shape = file.function(function)?;
    match shape.parameters.get(usize::from(number)) {
        Some(declared) => *declared,
        None => {
            let last = (*shape.parameters.last()?)?;
            matches!(file.expression(last), Some(Expression::Element(_))).then_some(last)
        }
    }
}
