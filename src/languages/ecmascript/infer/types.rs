//! Declared types: which values have one.
//!
//! Must not know how values are used. Invariant: a name in a type means a type; a type parameter means what it stands for here, or its
//! constraint.

use super::super::vocabulary::{Generic, generic, is_global};
use super::*;

impl Inference<'_> {
    /// Returns values of a declared type.
    pub(in super::super) fn types_of(&mut self, view: u32, handle: Handle, env: &Env) -> Values {
        if env.is_some() {
            return self.deeper(Values::new(), |this| this.compute_types(view, handle, env));
        }
        if let Some(known) = self.types.get(&(view, handle)) {
            return known.clone();
        }
        self.types.insert((view, handle), Values::new());
        let values = self.deeper(Values::new(), |this| this.compute_types(view, handle, env));
        self.types.insert((view, handle), values.clone());
        values
    }

    fn compute_types(&mut self, view: u32, handle: Handle, env: &Env) -> Values {
        let file = self.view(view);
        let Some(expression) = file.expression(handle) else { return Values::new() };
        let mut values = Values::new();
        match expression {
            Expression::Name(used) => return self.named_types(view, used, None, env),
            Expression::Attribute { object, name } => {
                let name: Arc<str> = file.names(handle).get(name).into();
                return self.qualified_types(view, object, &name, None, env);
            }
            Expression::Subscript { object, argument } => match file.expression(object) {
                Some(Expression::Name(Use::Free(free))) => {
                    let name = free_name(&file, free).to_owned();
                    return self.generic_types(view, &name, argument, env);
                }
                Some(Expression::Name(used)) => return self.named_types(view, used, Some((view, argument)), env),
                Some(Expression::Attribute { object: space, name }) => {
                    let name: Arc<str> = file.names(object).get(name).into();
                    return self.qualified_types(view, space, &name, Some((view, argument)), env);
                }
                _ => return self.types_of(view, object, env),
            },
            Expression::Either(left, right) => {
                add_all(&mut values, self.types_of(view, left, env));
                add_all(&mut values, self.types_of(view, right, env));
            }
            Expression::Sequence(element) => {
                let elements = self.types_of(view, element, env);
                add(&mut values, Value::Sequence(elements.into_iter().collect()));
            }
            Expression::List(..) => {
                let parts = self.list_of(view, handle);
                let parts: Vec<Values> = parts.into_iter().map(|part| self.types_of(view, part, env)).collect();
                add(&mut values, Value::Tuple(parts.into()));
            }
            Expression::Structure(class) => add(&mut values, Value::Instance(Place { view, handle: class }, env.clone())),
            Expression::Function(function) => add(&mut values, Value::Function(Place { view, handle: function }, env.clone())),
            Expression::TypeOf(value) => return self.values_of(view, value, env),
            Expression::Property { object, name } => {
                let name: Arc<str> = file.names(handle).get(name).into();
                for value in self.types_of(view, object, env) {
                    add_all(&mut values, self.attribute_values(&value, &name));
                }
            }
            Expression::This { class, statics } => add(&mut values, self.this(view, class, statics, env)),
            Expression::Element(inner) => {
                for value in self.types_of(view, inner, env) {
                    add_all(&mut values, self.iterated(&value));
                }
            }
            Expression::Instance(inner) => return self.types_of(view, inner, env),
            Expression::Literal => add(&mut values, Value::External),
            _ => {}
        }
        values
    }

    pub(super) fn this(&mut self, view: u32, class: Handle, statics: bool, env: &Env) -> Value {
        if let Some(this) = env.as_ref().and_then(|env| env.this.clone()) {
            return this;
        }
        let place = Place { view, handle: class };
        if statics { Value::Class(place, None) } else { Value::Instance(place, None) }
    }

    /// Returns the entries of a list.
    pub(super) fn list_of(&self, view: u32, list: Handle) -> Vec<Handle> {
        let file = &self.views[view as usize];
        let mut entries = Vec::new();
        let mut next = Some(list);
        while let Some(Expression::List(first, rest)) = next.and_then(|list| file.expression(list)) {
            entries.push(first);
            next = rest;
            if entries.len() >= 64 {
                break;
            }
        }
        entries
    }

    /// A type of the language with its arguments.
    fn generic_types(&mut self, view: u32, name: &str, argument: Option<Handle>, env: &Env) -> Values {
        let arguments = argument.map(|list| self.list_of(view, list)).unwrap_or_default();
        let nth = |this: &mut Self, number: usize| match arguments.get(number).or(arguments.last()) {
            Some(argument) => this.types_of(view, *argument, env),
            None => Values::new(),
        };
        match generic(name) {
            Generic::Elements(number) => {
                let elements = nth(self, number);
                SmallVec::from_iter([Value::Sequence(elements.into_iter().collect())])
            }
            Generic::Promise => {
                let inner = nth(self, 0);
                SmallVec::from_iter([Value::Promise(inner.into_iter().collect())])
            }
            Generic::Same => {
                let mut values = Values::new();
                for value in nth(self, 0) {
                    match value {
                        Value::Promise(inner) if name == "Awaited" => add_all(&mut values, inner.iter().cloned()),
                        value => add(&mut values, value),
                    }
                }
                values
            }
            Generic::Result => {
                let mut values = Values::new();
                for value in nth(self, 0) {
                    let made = match name {
                        "InstanceType" => self.construct(&value, view, None, env),
                        _ => self.call_values(&value, view, None, env),
                    };
                    add_all(&mut values, made);
                }
                values
            }
            Generic::Other => SmallVec::from_iter([Value::External]),
        }
    }

    /// Types that a name means; `arguments` are written in a view, in the environment of the name's use.
    fn named_types(&mut self, view: u32, used: Use, arguments: Option<(u32, Option<Handle>)>, env: &Env) -> Values {
        let file = self.view(view);
        let mut values = Values::new();
        match used {
            Use::Free(free) => {
                let name: Arc<str> = free_name(&file, free).into();
                match generic(&name) {
                    Generic::Other => {
                        for target in self.global(&name).iter() {
                            if let Some((view, binding)) = self.place_of(target) {
                                add_all(&mut values, self.binding_types(view, binding, arguments, env));
                            }
                        }
                        if values.is_empty() {
                            add(&mut values, Value::External);
                        }
                    }
                    Generic::Promise => add(&mut values, Value::Promise(Rc::from([]))),
                    _ => add(&mut values, Value::Sequence(Rc::from([]))),
                }
            }
            _ => {
                for binding in file.bindings_of(used) {
                    add_all(&mut values, self.binding_types(view, binding, arguments, env));
                }
            }
        }
        values
    }

    /// Returns the definitions that scripts give to every file under a name.
    pub(in super::super) fn global(&mut self, name: &str) -> Arc<[Target]> {
        // What the language defines is asked of nobody.
        if self.with_rebound && !is_global(name) { self.lookup.members_named(name) } else { Arc::default() }
    }

    fn qualified_types(
        &mut self,
        view: u32,
        object: Handle,
        name: &Arc<str>,
        arguments: Option<(u32, Option<Handle>)>,
        env: &Env,
    ) -> Values {
        let mut values = Values::new();
        for space in self.spaces_of(view, object) {
            match space {
                Value::Module(module) => {
                    let followed = self.follow(&module, name);
                    for end in &followed.ends {
                        add_all(&mut values, self.end_types(end, arguments, env));
                    }
                    if followed.ends.is_empty() && followed.reason == Some(Reason::ExternalImport) {
                        add(&mut values, Value::External);
                    }
                }
                Value::External => add(&mut values, Value::External),
                space => {
                    if let Some(member) = self.member(&space, name) {
                        let file = self.view(member.owner.view);
                        for binding in file.bindings_of(member.used) {
                            add_all(&mut values, self.binding_types(member.owner.view, binding, arguments, env));
                        }
                    }
                }
            }
        }
        values
    }

    /// Returns the modules and namespaces that the qualifier of a type means.
    pub(in super::super) fn spaces_of(&mut self, view: u32, object: Handle) -> Values {
        self.deeper(Values::new(), |this| this.compute_spaces(view, object))
    }

    fn compute_spaces(&mut self, view: u32, object: Handle) -> Values {
        let file = self.view(view);
        let mut values = Values::new();
        match file.expression(object) {
            Some(Expression::Name(Use::Free(free))) => {
                let name: Arc<str> = free_name(&file, free).into();
                for target in self.global(&name).iter() {
                    if let Some((view, binding)) = self.place_of(target) {
                        add_all(&mut values, self.binding_spaces(view, binding));
                    }
                }
                if values.is_empty() {
                    add(&mut values, Value::External);
                }
            }
            Some(Expression::Name(used)) => {
                for binding in file.bindings_of(used) {
                    add_all(&mut values, self.binding_spaces(view, binding));
                }
            }
            Some(Expression::Attribute { object: outer, name }) => {
                let name: Arc<str> = file.names(object).get(name).into();
                for space in self.spaces_of(view, outer) {
                    match space {
                        Value::Module(module) => {
                            let followed = self.follow(&module, &name);
                            for end in &followed.ends {
                                add_all(&mut values, self.end_values(end, Meaning::Space));
                            }
                        }
                        Value::External => add(&mut values, Value::External),
                        space => {
                            if let Some(member) = self.member(&space, &name) {
                                let file = self.view(member.owner.view);
                                for binding in file.bindings_of(member.used) {
                                    add_all(&mut values, self.binding_spaces(member.owner.view, binding));
                                }
                            }
                        }
                    }
                }
            }
            _ => {}
        }
        values
    }

    pub(super) fn binding_spaces(&mut self, view: u32, handle: Handle) -> Values {
        let file = self.view(view);
        let Some(binding) = file.binding(handle) else { return Values::new() };
        if let Some(import) = is_import(binding.role) {
            let followed = self.import(view, handle.in_body(), import);
            let mut values = Values::new();
            for end in &followed.ends {
                add_all(&mut values, self.end_values(end, Meaning::Space));
            }
            if followed.ends.is_empty() && followed.reason == Some(Reason::ExternalImport) {
                add(&mut values, Value::External);
            }
            return values;
        }
        if let Some((declared, declaration)) = file.declared(handle)
            && let Some((true, place)) = shape_of(view, declared, declaration)
        {
            return SmallVec::from_iter([Value::Class(place, None)]);
        }
        match (binding.role, binding.value) {
            // `import A = B.C`
            (Role::Variable, Some(value)) if binding.declaration.is_none() => self.spaces_of(view, value),
            _ => Values::new(),
        }
    }

    pub(super) fn end_types(&mut self, end: &End, arguments: Option<(u32, Option<Handle>)>, env: &Env) -> Values {
        match end {
            End::Definition(target) => match self.place_of(target) {
                Some((view, binding)) => self.binding_types(view, binding, arguments, env),
                None => Values::new(),
            },
            End::Module(_) | End::Value(..) => Values::new(),
        }
    }

    /// Types that one binding of a name gives.
    pub(super) fn binding_types(
        &mut self,
        view: u32,
        handle: Handle,
        arguments: Option<(u32, Option<Handle>)>,
        env: &Env,
    ) -> Values {
        let file = self.view(view);
        let Some(binding) = file.binding(handle) else { return Values::new() };
        let declared = file.declared(handle);
        match binding.role {
            Role::TypeParameter => {
                let known = env.as_ref().and_then(|env| {
                    env.parameters.iter().find(|(parameter, _)| *parameter == (view, handle)).map(|(_, values)| values.clone())
                });
                match (known, binding.annotation) {
                    (Some(values), _) if !values.is_empty() => values,
                    (_, Some(constraint)) => self.types_of(view, constraint, &None),
                    _ => match binding.value {
                        Some(default) => self.types_of(view, default, &None),
                        None => Values::new(),
                    },
                }
            }
            Role::Class => {
                let Some((declared, declaration)) = declared else { return Values::new() };
                if declaration.kind == SymbolKind::Namespace {
                    return Values::new();
                }
                if declaration.kind == SymbolKind::Enum {
                    return SmallVec::from_iter([Value::External]);
                }
                let Some((true, place)) = shape_of(view, declared, declaration) else { return Values::new() };
                let inner = match arguments {
                    Some((from, list)) => self.instantiate(place, from, list, env),
                    None => None,
                };
                SmallVec::from_iter([Value::Instance(place, inner)])
            }
            Role::Import(import) => {
                let followed = self.import(view, handle.in_body(), import);
                let mut values = Values::new();
                for end in &followed.ends {
                    add_all(&mut values, self.end_types(end, arguments, env));
                }
                if followed.ends.is_empty() && followed.reason == Some(Reason::ExternalImport) {
                    add(&mut values, Value::External);
                }
                values
            }
            Role::Function => {
                // A constructor function is the type of what it makes.
                let Some((declared, declaration)) = declared else { return Values::new() };
                let Some((false, function)) = shape_of(view, declared, declaration) else { return Values::new() };
                let shape = file.function(function.handle).and_then(|function| function.shape);
                shape
                    .map(|shape| Value::Instance(Place { view, handle: function.handle.beside(shape) }, None))
                    .into_iter()
                    .collect()
            }
            Role::Variable => match (declared, binding.annotation) {
                (Some((declared, declaration)), Some(aliased)) if declaration.kind == SymbolKind::Type => {
                    let parameters = match declaration.shape {
                        Shape::Type(index) => {
                            let types = &file.outline(declared).types;
                            types.get(index as usize).map(|shape| shape.parameters.clone()).unwrap_or_default()
                        }
                        _ => Vec::new(),
                    };
                    let inner = match (parameters.is_empty(), arguments) {
                        (false, Some((from, list))) => self.bind_arguments(view, &parameters, from, list, env),
                        _ => None,
                    };
                    self.types_of(view, aliased, &inner)
                }
                (None, Some(aliased)) if binding.value.is_some() => {
                    // `import A = B.C`
                    let file = self.view(view);
                    match file.expression(aliased) {
                        Some(Expression::Attribute { object, name }) => {
                            let name: Arc<str> = file.names(aliased).get(name).into();
                            self.qualified_types(view, object, &name, arguments, env)
                        }
                        Some(Expression::Name(used)) => self.named_types(view, used, arguments, env),
                        _ => Values::new(),
                    }
                }
                _ => Values::new(),
            },
            _ => Values::new(),
        }
    }

    /// Returns the environment of a shape whose type parameters get arguments.
    pub(super) fn instantiate(&mut self, place: Place, from: u32, list: Option<Handle>, env: &Env) -> Env {
        let file = self.view(place.view);
        let parameters = file.class(place.handle).map(|shape| shape.parameters.clone()).unwrap_or_default();
        if parameters.is_empty() || list.is_none() {
            return None;
        }
        self.bind_arguments(place.view, &parameters, from, list, env)
    }

    fn bind_arguments(&mut self, view: u32, parameters: &[Handle], from: u32, list: Option<Handle>, env: &Env) -> Env {
        let arguments = list.map(|list| self.list_of(from, list)).unwrap_or_default();
        let mut bound = Vec::new();
        for (parameter, argument) in parameters.iter().zip(arguments) {
            bound.push(((view, *parameter), self.types_of(from, argument, env)));
        }
        if bound.iter().all(|(_, values)| values.is_empty()) {
            return None;
        }
        Some(Rc::new(Environment { this: None, parameters: bound }))
    }
}
