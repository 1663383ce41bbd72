//! What something may hold whose type is declared.
//!
//! Must not know where the declaration stands. Invariant: a type asked for again while it is being found gives nothing.

use std::rc::Rc;
use std::sync::Arc;

use smallvec::SmallVec;

use super::state::Inference;
use super::value::{End, Object, Value, Values, Variable, add, add_all, class_of, instance_of, only};
use super::view::{View, bindings_of, free_name};
use crate::languages::ModuleResolution;
use crate::languages::python::library::{self, Function, Generic};
use crate::model::Reason;
use crate::model::facts::{Expression, Handle, Role, Use};

impl Inference<'_> {
    /// Returns what something declared to be of this type may hold.
    pub fn types_of(&mut self, view: u32, handle: Handle) -> Values {
        if let Some(known) = self.types.get(&(view, handle)) {
            return known.clone();
        }
        self.types.insert((view, handle), Values::new());
        let values = self.deeper(Values::new(), |this| this.compute_types(view, handle));
        self.types.insert((view, handle), values.clone());
        values
    }

    fn compute_types(&mut self, view: u32, handle: Handle) -> Values {
        let file = self.view(view);
        let Some(expression) = file.expression(handle) else { return Values::new() };
        let mut values = Values::new();
        match expression {
            Expression::Name(used) => return self.use_types(view, used),
            Expression::Attribute { object, name } => {
                let name: Arc<str> = file.outline(handle).names.get(name).into();
                if &*name == "Self" {
                    add(&mut values, Value::Receiver);
                    return values;
                }
                for value in self.values_of(view, object) {
                    match &value {
                        Value::Module(module) => {
                            let followed = self.follow(module, &name);
                            for end in &followed.ends {
                                add_all(&mut values, self.end_types(end));
                            }
                        }
                        Value::External => add(&mut values, Value::External),
                        _ => {
                            for inner in self.attribute_values(&value, &name) {
                                add_all(&mut values, instance_of(inner));
                            }
                        }
                    }
                }
            }
            Expression::Subscript { object, argument } => return self.generic_types(view, object, argument),
            Expression::Either(left, right) => {
                add_all(&mut values, self.types_of(view, left));
                add_all(&mut values, self.types_of(view, right));
            }
            Expression::List(..) => {
                for argument in self.arguments(&file, Some(handle)) {
                    add_all(&mut values, self.types_of(view, argument));
                }
            }
            // `NewType("Name", Type)`
            Expression::Invocation { callee, arguments } if self.library_function(&file, callee) == Some(Function::NewType) => {
                if let Some(original) = self.arguments(&file, arguments).get(1) {
                    return self.types_of(view, *original);
                }
            }
            Expression::Literal => add(&mut values, Value::External),
            Expression::Instance(inner) | Expression::Await(inner) => return self.types_of(view, inner),
            _ => {}
        }
        values
    }

    /// Returns what something may hold that is declared as `object[argument]`.
    fn generic_types(&mut self, view: u32, object: Handle, argument: Option<Handle>) -> Values {
        let file = self.view(view);
        let arguments = self.arguments(&file, argument);
        let (first, last) = (arguments.first().copied(), arguments.last().copied());
        let types = |this: &mut Self, argument: Option<Handle>| match argument {
            Some(argument) => this.types_of(view, argument),
            None => Values::new(),
        };
        match self.generic(&file, object) {
            Some(Generic::First) => types(self, first),
            Some(Generic::Awaited) => types(self, last),
            Some(Generic::Union) => {
                let mut values = Values::new();
                for argument in arguments {
                    add_all(&mut values, self.types_of(view, argument));
                }
                values
            }
            Some(Generic::Class) => {
                let mut values = Values::new();
                for value in types(self, first) {
                    add_all(&mut values, class_of(value));
                }
                values
            }
            Some(Generic::Elements) => {
                let elements = types(self, first);
                only(Value::Elements(elements.into_iter().collect()))
            }
            Some(Generic::Mapping) => {
                let sides = (types(self, first), types(self, last));
                only(Value::Mapping(Rc::new(sides)))
            }
            Some(Generic::Tuple) => {
                let parts: Vec<Values> = arguments.iter().map(|argument| self.types_of(view, *argument)).collect();
                match parts.as_slice() {
                    // `tuple[X, ...]`, whose second argument is no type.
                    [one, rest] if rest.is_empty() || is_nothing(&file, arguments[1]) => {
                        only(Value::Elements(one.iter().cloned().collect()))
                    }
                    _ => only(Value::Tuple(parts.into())),
                }
            }
            Some(Generic::Callable) => {
                let given = if arguments.len() > 1 || first.is_some() { types(self, last) } else { Values::new() };
                only(Value::Callable(given.into_iter().collect()))
            }
            Some(Generic::Root | Generic::Other) => only(Value::External),
            None => {
                let mut values = Values::new();
                for value in self.types_of(view, object) {
                    match value {
                        Value::Instance(plain) if plain.arguments.is_none() && !arguments.is_empty() => {
                            let given = arguments.iter().map(|argument| self.types_of(view, *argument)).collect();
                            add(&mut values, Value::Instance(Object { class: plain.class, arguments: Some(given) }));
                        }
                        value => add(&mut values, value),
                    }
                }
                values
            }
        }
    }

    pub(super) fn arguments(&self, file: &View<'_>, argument: Option<Handle>) -> SmallVec<[Handle; 4]> {
        let mut arguments = SmallVec::new();
        let mut next = argument;
        while let Some(handle) = next {
            match file.expression(handle) {
                Some(Expression::List(first, rest)) => {
                    arguments.push(first);
                    next = rest;
                }
                _ => {
                    arguments.push(handle);
                    next = None;
                }
            }
        }
        arguments
    }

    fn use_types(&mut self, view: u32, used: Use) -> Values {
        let file = self.view(view);
        let mut values = Values::new();
        if let Use::Free(name) = used {
            if free_name(&file, name) == "Self" {
                add(&mut values, Value::Receiver);
                return values;
            }
            for value in self.free_values(view, used) {
                add_all(&mut values, instance_of(value));
            }
            return values;
        }
        for handle in bindings_of(&file, used) {
            add_all(&mut values, self.binding_types(view, handle));
        }
        values
    }

    /// Returns what something may hold whose declared type is the name of this binding.
    fn binding_types(&mut self, view: u32, handle: Handle) -> Values {
        let file = self.view(view);
        let mut values = Values::new();
        let Some(binding) = file.binding(handle) else { return values };
        match binding.role {
            Role::Class | Role::Type(_) => {
                for value in self.binding_values(view, handle) {
                    add_all(&mut values, instance_of(value));
                }
            }
            Role::Import(import) => {
                let followed = self.import(view, handle.in_body(), import);
                for end in &followed.ends {
                    let types = self.deeper(Values::new(), |this| this.end_types(end));
                    add_all(&mut values, types);
                }
                if followed.ends.is_empty() && followed.reason == Some(Reason::ExternalImport) {
                    let outline = file.outline(handle);
                    let name =
                        outline.imports.get(import as usize).and_then(|import| import.name).map(|name| outline.names.get(name));
                    add(&mut values, if name == Some("Self") { Value::Receiver } else { Value::External });
                }
            }
            Role::TypeParameter => add(&mut values, Value::Variable(Variable { view, binding: handle })),
            // An alias: what it is assigned is a type.
            Role::Variable => {
                if let Some(value) = binding.value {
                    if self.makes_variable(&file, value) {
                        add(&mut values, Value::Variable(Variable { view, binding: handle }));
                    } else {
                        add_all(&mut values, self.types_of(view, value));
                    }
                }
            }
            _ => {}
        }
        values
    }

    fn end_types(&mut self, end: &End) -> Values {
        let mut values = Values::new();
        if let End::Definition(target) = end {
            for (view, binding) in self.bindings_of_target(target) {
                add_all(&mut values, self.binding_types(view, binding));
            }
        }
        values
    }

    /// Returns what a generic type of the library makes of its arguments; `None` for what is no such type.
    pub(super) fn generic(&mut self, file: &View<'_>, handle: Handle) -> Option<Generic> {
        library::generic(self.library_name(file, handle, &|name| library::generic(name).is_some())?)
    }

    /// Returns what a callee gives that is a function of the library.
    pub(super) fn library_function(&self, file: &View<'_>, handle: Handle) -> Option<Function> {
        library::function(self.library_name(file, handle, &|name| library::function(name).is_some())?)
    }

    /// Returns the name that the standard library, or the language, gives to what an expression names, if it is one of those wanted.
    pub(super) fn library_name<'v>(&self, file: &'v View<'_>, handle: Handle, wanted: &dyn Fn(&str) -> bool) -> Option<&'v str> {
        let outline = file.outline(handle);
        match file.expression(handle)? {
            Expression::Attribute { object, name } => {
                let name = outline.names.get(name);
                (wanted(name) && self.is_library_module(file, object)).then_some(name)
            }
            Expression::Name(Use::Free(name)) => Some(free_name(file, name)).filter(|name| wanted(name)),
            Expression::Name(used) => bindings_of(file, used).into_iter().find_map(|binding| {
                let outline = file.outline(binding);
                let Role::Import(import) = file.binding(binding)?.role else { return None };
                let import = outline.imports.get(import as usize)?;
                let module = outline.names.get(import.module);
                let name = outline.names.get(import.name?);
                (wanted(name) && (library::describes(module) || self.is_outside(file, module, name))).then_some(name)
            }),
            _ => None,
        }
    }

    /// Returns whether an import leads through the repository to the library: `from .compat import Protocol`.
    fn is_outside(&self, file: &View<'_>, module: &str, name: &str) -> bool {
        match &*self.lookup.module(&file.context, module) {
            ModuleResolution::Found(module) => self.lookup.exports(module).names.get(name).is_some_and(|export| {
                export.targets.is_empty() && export.aliases.is_empty() && export.reason == Some(Reason::ExternalImport)
            }),
            _ => false,
        }
    }

    fn is_library_module(&self, file: &View<'_>, handle: Handle) -> bool {
        match file.expression(handle) {
            Some(Expression::Attribute { object, .. }) => self.is_library_module(file, object),
            Some(Expression::Name(used)) => bindings_of(file, used).iter().any(|binding| {
                let outline = file.outline(*binding);
                let Some(Role::Import(import)) = file.binding(*binding).map(|bound| bound.role) else { return false };
                outline.imports.get(import as usize).is_some_and(|import| library::describes(outline.names.get(import.module)))
            }),
            _ => false,
        }
    }
}

/// Returns whether an argument of a generic type is none that a value could hold: `...`.
fn is_nothing(file: &View<'_>, argument: Handle) -> bool {
    file.expression(argument) == Some(Expression::Literal)
}
