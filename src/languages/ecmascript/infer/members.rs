//! Members of values, the nearest declaration first.
//!
//! Must not know references. Invariant: a base of which nothing is known makes what comes after it uncertain.

use super::*;

/// A member of a shape.
#[derive(Clone, Debug)]
pub(in super::super) struct Member {
    pub owner: Place,
    pub used: Use,
    pub env: Env,
    /// Whether no unknown base could have come first.
    pub certain: bool,
}

/// How many bases are followed.
const MAX_BASES: usize = 48;

impl Inference<'_> {
    /// Returns a shape and its bases, in the order in which members are looked up; `None` where one is not known.
    pub(super) fn linearization(&mut self, place: Place, env: &Env) -> Linearization {
        if env.is_none()
            && let Some(known) = self.linearizations.get(&place)
        {
            return Rc::clone(known);
        }
        if env.is_none() {
            // A class that inherits from itself ends here.
            self.linearizations.insert(place, Rc::from([(Some(place), None)]));
        }
        let mut found: Vec<(Option<Place>, Env)> = vec![(Some(place), env.clone())];
        let mut at = 0;
        while at < found.len() && found.len() < MAX_BASES {
            let (entry, env) = found[at].clone();
            at += 1;
            let Some(entry) = entry else { continue };
            let file = self.view(entry.view);
            let Some(shape) = file.class(entry.handle) else { continue };
            let mut insert = at;
            for base in &shape.bases {
                let known = match base {
                    Some(base) => self.bases_of(entry.view, *base, &env),
                    None => SmallVec::new(),
                };
                if known.is_empty() {
                    found.insert(insert, (None, None));
                    insert += 1;
                }
                for (base, env) in known {
                    if !found.iter().any(|(known, _)| *known == Some(base)) {
                        found.insert(insert, (Some(base), env));
                        insert += 1;
                    }
                }
            }
        }
        let found: Linearization = found.into();
        if env.is_none() {
            self.linearizations.insert(place, Rc::clone(&found));
        }
        found
    }

    /// Returns the shapes that a base gives.
    fn bases_of(&mut self, view: u32, base: Handle, env: &Env) -> SmallVec<[(Place, Env); 2]> {
        let mut found = SmallVec::new();
        let file = self.view(view);
        let (object, arguments) = match file.expression(base) {
            Some(Expression::Subscript { object, argument }) => (object, argument),
            _ => (base, None),
        };
        for value in self.values_of(view, object, env) {
            match value {
                Value::Class(place, _) => {
                    let env = self.instantiate(place, view, arguments, env);
                    found.push((place, env));
                }
                Value::Function(..) | Value::Instance(..) => {
                    for made in self.construct(&value, view, arguments, env) {
                        if let Value::Instance(place, env) = made {
                            found.push((place, env));
                        }
                    }
                }
                _ => {}
            }
        }
        if found.is_empty() {
            for value in self.types_of(view, base, env) {
                if let Value::Instance(place, env) = value {
                    found.push((place, env));
                }
            }
        }
        found
    }

    /// Finds a member of a value.
    pub(in super::super) fn member(&mut self, value: &Value, name: &str) -> Option<Member> {
        self.deeper(None, |this| this.find_member(value, name))
    }

    fn find_member(&mut self, value: &Value, name: &str) -> Option<Member> {
        let (place, env, skip, statics) = match value {
            Value::Class(place, env) => (*place, env.clone(), 0, true),
            Value::Instance(place, env) => (*place, env.clone(), 0, false),
            Value::Above(place, statics) => (*place, None, 1, *statics),
            Value::Function(place, _) => {
                let shape = self.views[place.view as usize].function(place.handle)?.shape?;
                (Place { view: place.view, handle: place.handle.beside(shape) }, None, 0, true)
            }
            _ => return None,
        };
        let mut certain = true;
        for (owner, env) in self.linearization(place, &env).iter().skip(skip) {
            let Some(owner) = owner else {
                certain = false;
                continue;
            };
            let file = self.view(owner.view);
            let Some(shape) = file.class(owner.handle) else { continue };
            let names = file.names(owner.handle);
            let used = if statics { shape.bound_static(names, name) } else { shape.bound(names, name) };
            if let Some(used) = used {
                return Some(Member { owner: *owner, used, env: env.clone(), certain });
            }
            if statics {
                for spread in shape.spreads.clone() {
                    for value in self.values_of(owner.view, spread, env) {
                        if let Some(member) = self.member(&value, name) {
                            return Some(Member { certain: false, ..member });
                        }
                    }
                }
                certain &= !shape.open;
            }
        }
        None
    }

    /// Returns the definitions that a member is.
    pub(in super::super) fn member_targets(&mut self, member: &Member) -> SmallVec<[Target; 2]> {
        let file = self.view(member.owner.view);
        let mut targets = SmallVec::new();
        for handle in file.bindings_of(member.used) {
            let Some(binding) = file.binding(handle) else { continue };
            if let Some((_, declaration)) = file.declared(handle) {
                targets.push(Target { file: file.path.clone(), definition: Some(declaration.key.clone()) });
            } else if let Some(import) = is_import(binding.role) {
                let followed = self.import(member.owner.view, handle.in_body(), import);
                targets.extend(followed.ends.iter().filter_map(|end| match end {
                    End::Definition(target) => Some(target.clone()),
                    _ => None,
                }));
            } else if let Some(value) = binding.value {
                // A property that only hands on what a name means.
                targets.extend(self.named_targets(member.owner.view, value));
            }
        }
        targets.sort();
        targets.dedup();
        targets
    }

    /// Returns the definitions of a name, of an expression that is nothing but one.
    fn named_targets(&mut self, view: u32, expression: Handle) -> SmallVec<[Target; 2]> {
        let file = self.view(view);
        let mut targets = SmallVec::new();
        let Some(Expression::Name(used)) = file.expression(expression) else { return targets };
        for handle in file.bindings_of(used) {
            let Some(binding) = file.binding(handle) else { continue };
            if let Some((_, declaration)) = file.declared(handle) {
                targets.push(Target { file: file.path.clone(), definition: Some(declaration.key.clone()) });
            } else if let Some(import) = is_import(binding.role) {
                let followed = self.import(view, handle.in_body(), import);
                targets.extend(followed.ends.iter().filter_map(|end| match end {
                    End::Definition(target) => Some(target.clone()),
                    _ => None,
                }));
            }
        }
        targets
    }

    /// Returns what a member of a value may hold.
    pub(super) fn attribute_values(&mut self, value: &Value, name: &Arc<str>) -> Values {
        self.deeper(Values::new(), |this| this.find_attribute(value, name))
    }

    fn find_attribute(&mut self, value: &Value, name: &Arc<str>) -> Values {
        let mut values = Values::new();
        match value {
            Value::Module(module) => {
                let followed = self.follow(module, name);
                for end in &followed.ends {
                    add_all(&mut values, self.end_values(end, Meaning::Value));
                }
                if followed.ends.is_empty() && followed.reason == Some(Reason::ExternalImport) {
                    add(&mut values, Value::External);
                }
            }
            Value::Class(..) | Value::Instance(..) | Value::Above(..) | Value::Function(..) => {
                if let Some(member) = self.member(value, name) {
                    let receiver = match value {
                        Value::Above(place, false) => Value::Instance(*place, None),
                        Value::Above(place, true) => Value::Class(*place, None),
                        other => other.clone(),
                    };
                    return self.member_values(&member, &receiver);
                }
                match (value, name.as_ref()) {
                    (Value::Class(place, _), "prototype") => add(&mut values, Value::Instance(*place, None)),
                    (Value::Function(..), "call" | "apply" | "bind") => add(&mut values, value.clone()),
                    (Value::Instance(place, env), _) => {
                        let place = *place;
                        let file = self.view(place.view);
                        if let Some(elements) = file.class(place.handle).and_then(|shape| shape.elements) {
                            return self.types_of(place.view, elements, env);
                        }
                    }
                    _ => {}
                }
            }
            Value::Sequence(elements) => add_all(&mut values, sequence_attribute(elements, name)),
            Value::Tuple(parts) => {
                let elements: Vec<Value> = parts.iter().flatten().cloned().collect();
                add_all(&mut values, sequence_attribute(&elements.into(), name));
            }
            Value::Promise(inner) => {
                if matches!(name.as_ref(), "catch" | "finally") {
                    add(&mut values, Value::Gives(Rc::from([Value::Promise(Rc::clone(inner))]), Rc::from([])));
                } else if name.as_ref() == "then" {
                    add(&mut values, Value::Gives(Rc::from([]), Rc::from([inner.iter().cloned().collect()])));
                }
            }
            Value::Gives(..) => {}
            Value::External => add(&mut values, Value::External),
        }
        values
    }

    pub(super) fn member_values(&mut self, member: &Member, receiver: &Value) -> Values {
        let view = member.owner.view;
        let file = self.view(view);
        let mut values = Values::new();
        let mut environment = member.env.as_deref().map(Environment::copy).unwrap_or_default();
        environment.this = Some(receiver.clone());
        let env: Env = Some(Rc::new(environment));
        for handle in file.bindings_of(member.used) {
            let Some(binding) = file.binding(handle) else { continue };
            match (binding.role, file.declared(handle)) {
                (Role::Function, Some((declared, declaration))) => {
                    let Some((false, function)) = shape_of(view, declared, declaration) else { continue };
                    if file.function(function.handle).is_some_and(|shape| shape.property) {
                        add_all(&mut values, self.result(function, &env, view, None, &None));
                    } else {
                        add(&mut values, Value::Function(function, env.clone()));
                    }
                }
                (Role::Variable, _) => match (binding.annotation, binding.value) {
                    (Some(annotation), _) => add_all(&mut values, self.types_of(view, annotation, &env)),
                    (None, Some(value)) => add_all(&mut values, self.values_of(view, value, &env)),
                    (None, None) => {}
                },
                _ => add_all(&mut values, self.binding_values(view, handle)),
            }
        }
        values
    }
}

impl Environment {
    pub(super) fn copy(&self) -> Self {
        Self { this: self.this.clone(), parameters: self.parameters.clone() }
    }
}

/// Returns what a method of the arrays and sets of the language is, as far as its result is its elements.
fn sequence_attribute(elements: &Rc<[Value]>, name: &str) -> Option<Value> {
    let given: Rc<[Value]> = match name {
        "pop" | "shift" | "find" | "at" | "get" | "findLast" => Rc::clone(elements),
        "values" | "filter" | "slice" | "concat" | "reverse" | "sort" | "flat" | "splice" => {
            Rc::from([Value::Sequence(Rc::clone(elements))])
        }
        "forEach" | "map" | "some" | "every" | "flatMap" | "reduce" | "findIndex" => Rc::from([Value::External]),
        _ => return Some(Value::External),
    };
    let each: Values = elements.iter().cloned().collect();
    let called_with: Vec<Values> = if name == "reduce" { vec![Values::new(), each] } else { vec![each] };
    Some(Value::Gives(given, called_with.into()))
}
