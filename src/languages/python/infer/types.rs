//! What something may hold whose type is declared.
//!
//! Must not know where the declaration stands. Invariant: a type asked for again while it is being found gives nothing.

use std::sync::Arc;

use smallvec::SmallVec;

use super::state::Inference;
use super::value::{End, Value, Values, add, add_all, instance_of};
use super::view::{View, bindings_of, free_name};
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
            Expression::Subscript { object, argument } => {
                let name = self.type_name(&file, object).unwrap_or("").to_owned();
                let arguments = self.arguments(&file, argument);
                let (first, last) = (arguments.first().copied(), arguments.last().copied());
                match name.as_str() {
                    "Optional" | "Annotated" | "ClassVar" | "Final" | "Required" | "NotRequired" | "ReadOnly" => {
                        if let Some(first) = first {
                            return self.types_of(view, first);
                        }
                    }
                    "Union" => {
                        for argument in arguments {
                            add_all(&mut values, self.types_of(view, argument));
                        }
                    }
                    "Type" | "type" => {
                        for value in first.map(|first| self.types_of(view, first)).unwrap_or_default() {
                            if let Value::Instance(class) = value {
                                add(&mut values, Value::Class(class));
                            }
                        }
                    }
                    "Awaitable" | "Coroutine" => {
                        if let Some(last) = last {
                            return self.types_of(view, last);
                        }
                    }
                    "Dict" | "dict" | "Mapping" | "MutableMapping" | "DefaultDict" | "defaultdict" | "OrderedDict" => {
                        if let Some(last) = last {
                            let elements = self.types_of(view, last);
                            add(&mut values, Value::Elements(elements.into_iter().collect()));
                        }
                    }
                    "List"
                    | "list"
                    | "Sequence"
                    | "MutableSequence"
                    | "Iterable"
                    | "Iterator"
                    | "Collection"
                    | "Container"
                    | "Set"
                    | "set"
                    | "FrozenSet"
                    | "frozenset"
                    | "AbstractSet"
                    | "Deque"
                    | "deque"
                    | "Generator"
                    | "AsyncIterator"
                    | "AsyncIterable"
                    | "AsyncGenerator"
                    | "Tuple"
                    | "tuple"
                    | "KeysView"
                    | "ValuesView"
                    | "ContextManager"
                    | "AbstractContextManager"
                    | "AsyncContextManager" => {
                        let mut elements = Values::new();
                        let many = matches!(name.as_str(), "Tuple" | "tuple");
                        for argument in arguments.iter().take(if many { arguments.len() } else { 1 }) {
                            add_all(&mut elements, self.types_of(view, *argument));
                        }
                        add(&mut values, Value::Elements(elements.into_iter().collect()));
                    }
                    "Callable" => add(&mut values, Value::External),
                    _ => return self.types_of(view, object),
                }
            }
            Expression::Either(left, right) => {
                add_all(&mut values, self.types_of(view, left));
                add_all(&mut values, self.types_of(view, right));
            }
            Expression::List(..) => {
                for argument in self.arguments(&file, Some(handle)) {
                    add_all(&mut values, self.types_of(view, argument));
                }
            }
            Expression::Literal => add(&mut values, Value::External),
            Expression::Instance(inner) | Expression::Await(inner) => return self.types_of(view, inner),
            _ => {}
        }
        values
    }

    fn arguments(&self, file: &View<'_>, argument: Option<Handle>) -> SmallVec<[Handle; 4]> {
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
            // An alias: what it is assigned is a type.
            Role::Variable => {
                if let Some(value) = binding.value {
                    add_all(&mut values, self.types_of(view, value));
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

    /// Returns the name by which an expression's type is called, where it is a plain name or attribute.
    pub(super) fn type_name<'v>(&self, file: &'v View<'_>, handle: Handle) -> Option<&'v str> {
        let outline = file.outline(handle);
        match file.expression(handle)? {
            Expression::Attribute { name, .. } => Some(outline.names.get(name)),
            Expression::Name(Use::Free(name)) => Some(free_name(file, name)),
            Expression::Name(used) => {
                let binding = *bindings_of(file, used).first()?;
                let outline = file.outline(binding);
                let bound = file.binding(binding)?;
                match bound.role {
                    Role::Import(import) => {
                        let import = outline.imports.get(import as usize)?;
                        Some(outline.names.get(import.name?))
                    }
                    _ => None,
                }
            }
            _ => None,
        }
    }
}
