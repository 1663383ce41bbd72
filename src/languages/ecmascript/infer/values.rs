//! Values: what names and expressions hold.
//!
//! Must not know declared types beyond asking for them. Invariant: a binding that is assigned from itself holds nothing through that way.

use super::*;

impl Inference<'_> {
    pub(in super::super) fn end_values(&mut self, end: &End, meaning: Meaning) -> Values {
        match end {
            End::Module(module) => SmallVec::from_iter([Value::Module(module.clone())]),
            End::Definition(target) => match self.place_of(target) {
                Some((view, binding)) if meaning == Meaning::Space => self.binding_spaces(view, binding),
                Some((view, binding)) => self.binding_values(view, binding),
                None => Values::new(),
            },
            End::Value(path, name) => {
                let Some(view) = self.view_of(path) else { return Values::new() };
                let file = self.view(view);
                let mut values = Values::new();
                if let Some(used) = file.surface.bound(name) {
                    for binding in file.bindings_of(used) {
                        add_all(&mut values, self.binding_values(view, binding));
                    }
                }
                values
            }
        }
    }

    /// Returns what a binding may hold.
    pub(in super::super) fn binding_values(&mut self, view: u32, handle: Handle) -> Values {
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
        let declared = file.declared(handle);
        let shape = declared.and_then(|(handle, declaration)| shape_of(view, handle, declaration));
        let mut values = Values::new();
        match binding.role {
            Role::Function => match shape {
                Some((false, function)) => add(&mut values, Value::Function(function, None)),
                _ => {
                    if let Some(value) = binding.value {
                        return self.values_of(view, value, &None);
                    }
                }
            },
            Role::Class => {
                if let Some((true, class)) = shape
                    && declared.is_none_or(|(_, declaration)| declaration.kind != SymbolKind::Interface)
                {
                    add(&mut values, Value::Class(class, None));
                }
            }
            Role::Import(import) => {
                let followed = self.import(view, handle.in_body(), import);
                for end in &followed.ends {
                    add_all(&mut values, self.end_values(end, Meaning::Value));
                }
                if followed.ends.is_empty() && followed.reason == Some(Reason::ExternalImport) {
                    add(&mut values, Value::External);
                }
            }
            Role::Variable | Role::Parameter => {
                if declared.is_some_and(|(_, declaration)| declaration.kind == SymbolKind::Type) {
                    return values;
                }
                match (binding.annotation, binding.value) {
                    // `import A = B.C`
                    (Some(_), Some(value)) => add_all(&mut values, self.values_of(view, value, &None)),
                    (Some(annotation), None) => add_all(&mut values, self.types_of(view, annotation, &None)),
                    (None, Some(value)) => add_all(&mut values, self.values_of(view, value, &None)),
                    (None, None) => {}
                }
                if binding.annotation.is_none()
                    && let Some((true, class)) = shape
                {
                    add(&mut values, Value::Class(class, None));
                }
            }
            _ => {}
        }
        values
    }

    /// Returns what an expression may hold.
    pub(in super::super) fn values_of(&mut self, view: u32, handle: Handle, env: &Env) -> Values {
        if env.is_some() {
            return self.deeper(Values::new(), |this| this.compute_values(view, handle, env));
        }
        if let Some(known) = self.values.get(&(view, handle)) {
            return known.clone();
        }
        self.values.insert((view, handle), Values::new());
        let values = self.deeper(Values::new(), |this| this.compute_values(view, handle, env));
        self.values.insert((view, handle), values.clone());
        values
    }

    fn compute_values(&mut self, view: u32, handle: Handle, env: &Env) -> Values {
        let file = self.view(view);
        let Some(expression) = file.expression(handle) else { return Values::new() };
        let mut values = Values::new();
        match expression {
            Expression::Name(Use::Free(free)) => {
                let name: Arc<str> = free_name(&file, free).into();
                for target in self.global(&name).iter() {
                    if let Some((view, binding)) = self.place_of(target) {
                        add_all(&mut values, self.binding_values(view, binding));
                    }
                }
                if values.is_empty() {
                    add(&mut values, Value::External);
                }
            }
            Expression::Name(used) => {
                for binding in file.bindings_of(used) {
                    add_all(&mut values, self.binding_values(view, binding));
                }
            }
            Expression::Attribute { object, name } => {
                let name: Arc<str> = file.names(handle).get(name).into();
                for value in self.values_of(view, object, env) {
                    add_all(&mut values, self.attribute_values(&value, &name));
                }
            }
            Expression::Call { callee } => {
                for value in self.values_of(view, callee, env) {
                    add_all(&mut values, self.call_values(&value, view, None, env));
                }
            }
            Expression::Invocation { callee, arguments } => {
                for value in self.values_of(view, callee, env) {
                    add_all(&mut values, self.call_values(&value, view, arguments, env));
                }
            }
            Expression::New { callee, arguments } => {
                for value in self.values_of(view, callee, env) {
                    add_all(&mut values, self.construct(&value, view, arguments, env));
                }
            }
            Expression::Subscript { object, .. } => return self.values_of(view, object, env),
            Expression::Either(left, right) => {
                add_all(&mut values, self.values_of(view, left, env));
                add_all(&mut values, self.values_of(view, right, env));
            }
            Expression::Element(inner) => {
                for value in self.values_of(view, inner, env) {
                    add_all(&mut values, self.iterated(&value));
                }
            }
            Expression::Part(inner, part) => {
                for value in self.values_of(view, inner, env) {
                    match value {
                        Value::Tuple(parts) => add_all(&mut values, parts.get(part as usize).cloned().unwrap_or_default()),
                        other => add_all(&mut values, self.iterated(&other)),
                    }
                }
            }
            Expression::Await(inner) => {
                for value in self.values_of(view, inner, env) {
                    match value {
                        Value::Promise(inner) => add_all(&mut values, inner.iter().cloned()),
                        value => add(&mut values, value),
                    }
                }
            }
            Expression::Promise(inner) => {
                let mut kept = Vec::new();
                for value in self.values_of(view, inner, env) {
                    match value {
                        Value::Promise(inner) => kept.extend(inner.iter().cloned()),
                        value => kept.push(value),
                    }
                }
                add(&mut values, Value::Promise(kept.into()));
            }
            Expression::Instance(declared) => return self.types_of(view, declared, env),
            Expression::Sequence(element) => {
                let elements = self.values_of(view, element, env);
                add(&mut values, Value::Sequence(elements.into_iter().collect()));
            }
            Expression::Object(class) => add(&mut values, Value::Class(Place { view, handle: class }, None)),
            Expression::Function(function) => add(&mut values, Value::Function(Place { view, handle: function }, env.clone())),
            Expression::This { class, statics } => add(&mut values, self.this(view, class, statics, env)),
            Expression::Above { class, statics } => add(&mut values, Value::Above(Place { view, handle: class }, statics)),
            Expression::Expected { callee, argument } => {
                for value in self.values_of(view, callee, env) {
                    add_all(&mut values, self.expected_values(&value, argument));
                }
            }
            Expression::Parameter(function, number) => {
                for value in self.values_of(view, function, env) {
                    add_all(&mut values, self.parameter_values(&value, number));
                }
            }
            Expression::Literal => add(&mut values, Value::External),
            _ => {}
        }
        values
    }

    /// Returns what iterating over a value gives.
    pub(super) fn iterated(&mut self, value: &Value) -> Values {
        match value {
            Value::Sequence(elements) => elements.iter().cloned().collect(),
            Value::Tuple(parts) => parts.iter().flatten().cloned().collect(),
            Value::Instance(place, env) => {
                let file = self.view(place.view);
                match file.class(place.handle).and_then(|shape| shape.elements) {
                    Some(elements) => self.types_of(place.view, elements, env),
                    None => Values::new(),
                }
            }
            Value::External => SmallVec::from_iter([Value::External]),
            _ => Values::new(),
        }
    }
}
