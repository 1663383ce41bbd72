//! What an expression holds, as far as the repository's own text says: modules, classes, their instances, functions.
//!
//! Must not know references or edges. Invariant: everything but [`Inference::follow`] and what is [certain](Inference::certain) is
//! evidence, not proof; an empty answer means that nothing is known.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::rc::Rc;
use std::sync::Arc;

use smallvec::SmallVec;

use super::exports::{self, Imported};
use super::modules;
use super::raw::QuickHasher;
use crate::languages::{Alias, ExportTable, Lookup, ModuleKey, ModuleResolution};
use crate::model::facts::{
    Binding, Body, ClassShape, Declaration, Expression, FunctionShape, Handle, NameId, Outline, Role, Shape, Surface, Use,
};
use crate::model::{ParseStatus, Reason, RepoPath, Target};

/// How many steps evidence may lead away from a reference.
const MAX_STEPS: u32 = 48;

/// How many values an expression is followed for.
const MAX_VALUES: usize = 6;

type Map<K, V> = HashMap<K, V, BuildHasherDefault<QuickHasher>>;

/// A file as far as inference reads it.
pub(super) struct View<'a> {
    pub path: RepoPath,
    pub surface: Arc<Surface>,
    /// Only of the file whose references are resolved.
    pub body: Option<&'a Body>,
    pub context: Arc<str>,
    pub partial: bool,
}

impl View<'_> {
    pub fn outline(&self, handle: Handle) -> &Outline {
        match self.body {
            Some(body) if handle.in_body() => &body.outline,
            _ => &self.surface.outline,
        }
    }

    pub fn binding(&self, handle: Handle) -> Option<&Binding> {
        self.outline(handle).bindings.get(handle.index())
    }

    pub fn declaration(&self, handle: Handle) -> Option<&Declaration> {
        self.outline(handle).declarations.get(handle.index())
    }

    fn expression(&self, handle: Handle) -> Option<Expression> {
        self.outline(handle).expressions.get(handle.index()).copied()
    }

    pub fn class(&self, handle: Handle) -> Option<&ClassShape> {
        let outline = self.outline(handle);
        match outline.declarations.get(handle.index())?.shape {
            Shape::Class(index) => outline.classes.get(index as usize),
            _ => None,
        }
    }

    fn function(&self, handle: Handle) -> Option<&FunctionShape> {
        let outline = self.outline(handle);
        match outline.declarations.get(handle.index())?.shape {
            Shape::Function(index) => outline.functions.get(index as usize),
            _ => None,
        }
    }
}

/// A declaration of some viewed file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Place {
    pub view: u32,
    pub declaration: Handle,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Module(ModuleKey),
    Class(Place),
    Instance(Place),
    /// The instance as its class's bases see it.
    Super(Place),
    Function(Place, Option<Place>),
    /// Something that gives these when iterated or subscripted.
    Elements(Rc<[Value]>),
    /// The type of whatever the method is called on.
    Receiver,
    /// Surely nothing of the repository.
    External,
}

pub(super) type Values = SmallVec<[Value; 2]>;

fn add(values: &mut Values, value: Value) {
    if values.len() < MAX_VALUES && !values.contains(&value) {
        values.push(value);
    }
}

fn add_all(values: &mut Values, more: impl IntoIterator<Item = Value>) {
    for value in more {
        add(values, value);
    }
}

/// Where a name of a module leads.
#[derive(Clone, Debug, Default)]
pub(super) struct Followed {
    pub ends: SmallVec<[End; 1]>,
    /// Why it is not certain.
    pub reason: Option<Reason>,
    /// The rule that says so, when it is not the asker's own.
    pub rule: Option<&'static str>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum End {
    Definition(Target),
    Module(ModuleKey),
}

/// The bases of a class in the order in which members are looked up; `None` where one is not known.
pub(super) type Linearization = Rc<[Option<Place>]>;

/// A member of a class.
pub(super) struct Member {
    pub owner: Place,
    /// What the class body binds it to; `None` when only instances have it.
    pub bound: Option<Use>,
    /// Whether no unknown base could have come first.
    pub certain: bool,
}

pub(super) struct Inference<'a> {
    pub lookup: &'a dyn Lookup,
    pub views: Vec<Rc<View<'a>>>,
    by_path: HashMap<RepoPath, Option<u32>>,
    tables: HashMap<ModuleKey, Arc<ExportTable>>,
    rebound: HashMap<RepoPath, Arc<std::collections::BTreeSet<Arc<str>>>>,
    followed: HashMap<(ModuleKey, Arc<str>), Rc<Followed>>,
    values: Map<(u32, Handle), Values>,
    types: Map<(u32, Handle), Values>,
    bindings: Map<(u32, Handle), Values>,
    linearizations: Map<Place, Linearization>,
    imports: Map<(u32, bool, u32), Rc<Followed>>,
    steps: u32,
    /// Whether writes from outside count; they do not while they are being collected.
    with_rebound: bool,
}

impl<'a> Inference<'a> {
    /// Begins with the file whose references are asked for, which becomes view 0.
    pub(super) fn new(
        path: &RepoPath,
        surface: Arc<Surface>,
        body: Option<&'a Body>,
        partial: bool,
        lookup: &'a dyn Lookup,
        with_rebound: bool,
    ) -> Self {
        let view = View { path: path.clone(), surface, body, context: lookup.context(path.directory()), partial };
        Self {
            lookup,
            views: vec![Rc::new(view)],
            by_path: HashMap::from([(path.clone(), Some(0))]),
            tables: HashMap::new(),
            rebound: HashMap::new(),
            followed: HashMap::new(),
            values: Map::default(),
            types: Map::default(),
            bindings: Map::default(),
            linearizations: Map::default(),
            imports: Map::default(),
            steps: 0,
            with_rebound,
        }
    }

    pub(super) fn view(&self, index: u32) -> Rc<View<'a>> {
        Rc::clone(&self.views[index as usize])
    }

    pub(super) fn view_of(&mut self, path: &RepoPath) -> Option<u32> {
        if let Some(known) = self.by_path.get(path) {
            return *known;
        }
        let index = self.lookup.surface(path).map(|surface| {
            let partial = self.lookup.parse_status(path) == Some(ParseStatus::Partial);
            let context = self.lookup.context(path.directory());
            self.views.push(Rc::new(View { path: path.clone(), surface, body: None, context, partial }));
            self.views.len() as u32 - 1
        });
        self.by_path.insert(path.clone(), index);
        index
    }

    pub(super) fn table(&mut self, module: &ModuleKey) -> Arc<ExportTable> {
        if let Some(known) = self.tables.get(module) {
            return Arc::clone(known);
        }
        let table = self.lookup.exports(module);
        self.tables.insert(module.clone(), Arc::clone(&table));
        table
    }

    /// Returns whether some file rebinds the qualified name in this one.
    pub(super) fn is_rebound(&mut self, file: &RepoPath, qualified: &str) -> bool {
        if !self.with_rebound {
            return false;
        }
        if let Some(known) = self.rebound.get(file) {
            return known.contains(qualified);
        }
        let names = self.lookup.rebound(file);
        let found = names.contains(qualified);
        self.rebound.insert(file.clone(), names);
        found
    }

    // ---- names of modules

    /// Follows a name of a module to definitions and modules.
    pub(super) fn follow(&mut self, module: &ModuleKey, name: &Arc<str>) -> Rc<Followed> {
        let key = (module.clone(), Arc::clone(name));
        if let Some(known) = self.followed.get(&key) {
            return Rc::clone(known);
        }
        let mut followed = Followed::default();
        let mut seen = Vec::new();
        self.follow_into(module, name, &mut seen, &mut followed);
        followed.ends.sort();
        followed.ends.dedup();
        if followed.ends.len() > 1 && followed.reason.is_none() {
            followed.reason = Some(Reason::ConditionalBinding);
        }
        let followed = Rc::new(followed);
        self.followed.insert(key, Rc::clone(&followed));
        followed
    }

    fn follow_into(&mut self, module: &ModuleKey, name: &Arc<str>, seen: &mut Vec<(ModuleKey, Arc<str>)>, out: &mut Followed) {
        let key = (module.clone(), Arc::clone(name));
        if seen.contains(&key) || seen.len() > 64 {
            match modules::submodule(module, name, self.lookup) {
                Some(submodule) => out.ends.push(End::Module(submodule)),
                None => out.reason = out.reason.or(Some(Reason::CyclicBinding)),
            }
            return;
        }
        seen.push(key);
        let table = self.table(module);
        match table.names.get(name) {
            Some(export) => {
                if out.reason.is_none() && export.reason.is_some() {
                    out.reason = export.reason;
                    out.rule = Some(export.rule);
                }
                out.ends.extend(export.targets.iter().cloned().map(End::Definition));
                for Alias { module: next, name: next_name } in &export.aliases {
                    match next_name {
                        None => out.ends.push(End::Module(next.clone())),
                        Some(next_name) => self.follow_into(next, next_name, seen, out),
                    }
                }
                if export.rule == "wildcard_import" {
                    out.rule = out.rule.or(Some("wildcard_import"));
                }
                if let Some(file) = modules::file_of(module)
                    && self.is_rebound(&file, name)
                {
                    out.reason = Some(Reason::AttributeRebinding);
                    out.rule = Some("attribute_rebinding");
                }
            }
            None => match modules::submodule(module, name, self.lookup) {
                Some(submodule) => out.ends.push(End::Module(submodule)),
                None => {
                    let reason = if table.open { Reason::WildcardImport } else { Reason::UnresolvedExport };
                    out.reason = out.reason.or(Some(reason));
                }
            },
        }
        seen.pop();
    }

    /// Follows an import of a view (an index of the surface's imports or the body's).
    pub(super) fn import(&mut self, view: u32, in_body: bool, import: u32) -> Rc<Followed> {
        let key = (view, in_body, import);
        if let Some(known) = self.imports.get(&key) {
            return Rc::clone(known);
        }
        let file = self.view(view);
        let outline = match file.body {
            Some(body) if in_body => &body.outline,
            _ => &file.surface.outline,
        };
        let mut followed = Followed::default();
        if let Some(import) = outline.imports.get(import as usize) {
            match exports::import_aliases(outline, import, &file.context, self.lookup) {
                Imported::Nowhere(reason) => followed.reason = Some(reason),
                Imported::Aliases(aliases) => {
                    if aliases.len() > 1 {
                        followed.reason = Some(Reason::AmbiguousModule);
                    }
                    for Alias { module, name } in aliases {
                        match name {
                            None => followed.ends.push(End::Module(module)),
                            Some(name) => {
                                let one = self.follow(&module, &name);
                                followed.ends.extend(one.ends.iter().cloned());
                                followed.reason = followed.reason.or(one.reason);
                                followed.rule = followed.rule.or(one.rule);
                            }
                        }
                    }
                    followed.ends.sort();
                    followed.ends.dedup();
                }
            }
        }
        let followed = Rc::new(followed);
        self.imports.insert(key, Rc::clone(&followed));
        followed
    }

    /// Follows a name that a star import may bring; `None` when it surely does not.
    pub(super) fn star(&mut self, view: u32, in_body: bool, import: u32, name: &Arc<str>) -> Star {
        let file = self.view(view);
        let outline = match file.body {
            Some(body) if in_body => &body.outline,
            _ => &file.surface.outline,
        };
        let Some(import) = outline.imports.get(import as usize) else { return Star::Nothing };
        let resolution = self.lookup.module(&file.context, outline.names.get(import.module));
        let modules: &[ModuleKey] = match &*resolution {
            ModuleResolution::Found(module) => std::slice::from_ref(module),
            ModuleResolution::Ambiguous(modules) => modules,
            ModuleResolution::Missing | ModuleResolution::External => return Star::Unknown,
        };
        let mut followed = Followed::default();
        let mut open = false;
        let mut brings = false;
        for module in modules {
            let table = self.table(module);
            open |= table.open;
            if exports::star_brings(&table, name) {
                brings = true;
                let one = self.follow(module, name);
                followed.ends.extend(one.ends.iter().cloned());
                followed.reason = followed.reason.or(one.reason);
                followed.rule = followed.rule.or(one.rule);
            }
        }
        if brings {
            if modules.len() > 1 {
                followed.reason = followed.reason.or(Some(Reason::AmbiguousModule));
            }
            followed.rule = followed.rule.or(Some("wildcard_import"));
            Star::Brings(Rc::new(followed))
        } else if open {
            Star::Unknown
        } else {
            Star::Nothing
        }
    }

    /// Returns the place of a definition at the top of a file.
    fn place_of(&mut self, target: &Target) -> Option<(u32, Use)> {
        let view = self.view_of(&target.file)?;
        let key = target.definition.as_ref()?;
        let used = self.views[view as usize].surface.bound(&key.qualified)?;
        Some((view, used))
    }

    fn end_values(&mut self, end: &End) -> Values {
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

    fn end_types(&mut self, end: &End) -> Values {
        let mut values = Values::new();
        if let End::Definition(target) = end {
            for (view, binding) in self.bindings_of_target(target) {
                add_all(&mut values, self.binding_types(view, binding));
            }
        }
        values
    }

    /// Returns the bindings that make a definition at the top of its file.
    fn bindings_of_target(&mut self, target: &Target) -> SmallVec<[(u32, Handle); 2]> {
        let Some((view, used)) = self.place_of(target) else { return SmallVec::new() };
        let file = &self.views[view as usize];
        let makes = |binding: &Handle| {
            let declaration = file.binding(*binding).and_then(|binding| binding.declaration);
            declaration.and_then(|declaration| file.declaration(declaration)).map(|declaration| &declaration.key)
                == target.definition.as_ref()
        };
        bindings_of(file, used).into_iter().filter(makes).map(|binding| (view, binding)).collect()
    }

    // ---- values

    fn deeper<R>(&mut self, nothing: R, then: impl FnOnce(&mut Self) -> R) -> R {
        if self.steps >= MAX_STEPS {
            return nothing;
        }
        self.steps += 1;
        let result = then(self);
        self.steps -= 1;
        result
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
    fn free_values(&mut self, view: u32, used: Use) -> Values {
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

    /// Returns what a binding may hold.
    pub(super) fn binding_values(&mut self, view: u32, handle: Handle) -> Values {
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
            Role::Star(_) | Role::Deleted => Values::new(),
        }
    }

    /// Returns what an expression may hold.
    pub(super) fn values_of(&mut self, view: u32, handle: Handle) -> Values {
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

    /// Returns what an attribute of a value may hold.
    pub(super) fn attribute_values(&mut self, value: &Value, name: &Arc<str>) -> Values {
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

    /// Finds a member of a class, or of an instance's class or its bases, nearest first.
    pub(super) fn member(&mut self, value: &Value, name: &str) -> Option<Member> {
        let (class, skip, instance) = match value {
            Value::Class(class) => (*class, 0, false),
            Value::Instance(class) => (*class, 0, true),
            Value::Super(class) => (*class, 1, true),
            _ => return None,
        };
        let mut certain = true;
        for owner in self.linearization(class).iter().skip(skip) {
            let Some(owner) = owner else {
                certain = false;
                continue;
            };
            let file = &self.views[owner.view as usize];
            let Some(shape) = file.class(owner.declaration) else { continue };
            let names = &file.outline(owner.declaration).names;
            if let Some(used) = shape.bound(names, name) {
                return Some(Member { owner: *owner, bound: Some(used), certain });
            }
            if instance && !shape.evidence(names, name).is_empty() {
                return Some(Member { owner: *owner, bound: None, certain });
            }
        }
        None
    }

    /// Returns whether a method of the class or of a base assigns the attribute, through the instance or the class.
    pub(super) fn is_assigned(&mut self, value: &Value, name: &str) -> bool {
        let (Value::Class(class) | Value::Instance(class) | Value::Super(class)) = value else { return false };
        self.linearization(*class).iter().flatten().any(|owner| {
            let file = &self.views[owner.view as usize];
            let names = &file.outline(owner.declaration).names;
            file.class(owner.declaration).is_some_and(|shape| !shape.evidence(names, name).is_empty())
        })
    }

    /// Returns whether all bases of the value's class are known.
    pub(super) fn is_closed(&mut self, value: &Value) -> bool {
        match value {
            Value::Class(class) | Value::Instance(class) | Value::Super(class) => {
                let linearization = self.linearization(*class);
                linearization.iter().all(|entry| match entry {
                    Some(place) => !self.views[place.view as usize].class(place.declaration).is_some_and(|shape| shape.open),
                    None => false,
                })
            }
            _ => false,
        }
    }

    /// Returns the order in which members are looked up (C3; where the bases contradict each other, depth first).
    pub(super) fn linearization(&mut self, class: Place) -> Linearization {
        if let Some(known) = self.linearizations.get(&class) {
            return Rc::clone(known);
        }
        // A class among its own bases ends here.
        self.linearizations.insert(class, Rc::from([Some(class)]));
        let result = self.deeper(Rc::from([Some(class), None]), |this| this.linearize(class));
        self.linearizations.insert(class, Rc::clone(&result));
        result
    }

    fn linearize(&mut self, class: Place) -> Linearization {
        let file = self.view(class.view);
        let Some(shape) = file.class(class.declaration) else { return Rc::from([Some(class)]) };
        let mut sequences: Vec<Vec<Option<Place>>> = Vec::new();
        let mut direct: Vec<Option<Place>> = Vec::new();
        for base in &shape.bases {
            let values = base.map(|base| self.values_of(class.view, base)).unwrap_or_default();
            let classes: SmallVec<[Place; 2]> =
                values.iter().filter_map(|value| if let Value::Class(place) = value { Some(*place) } else { None }).collect();
            match classes.as_slice() {
                [] => {
                    if !base.is_some_and(|base| self.is_root(class.view, base)) {
                        direct.push(None);
                        sequences.push(vec![None]);
                    }
                }
                several => {
                    for place in several {
                        direct.push(Some(*place));
                        sequences.push(self.linearization(*place).to_vec());
                    }
                    if several.len() > 1 || values.len() > 1 {
                        // One of several, by a condition: no base is sure.
                        direct.push(None);
                        sequences.push(vec![None]);
                    }
                }
            }
        }
        sequences.push(direct);
        let mut order = vec![Some(class)];
        loop {
            sequences.retain(|sequence| !sequence.is_empty());
            if sequences.is_empty() {
                break;
            }
            // Unknown bases are never compared with each other: each stands for itself.
            let good = sequences
                .iter()
                .map(|sequence| sequence[0])
                .find(|head| head.is_none() || !sequences.iter().any(|other| other[1..].contains(head)));
            let head = good.unwrap_or(sequences[0][0]);
            let mut unknown_taken = false;
            for sequence in &mut sequences {
                if sequence[0] == head && !(head.is_none() && unknown_taken) {
                    sequence.remove(0);
                    unknown_taken = head.is_none();
                }
            }
            if good.is_none() {
                for sequence in &mut sequences {
                    sequence.retain(|entry| *entry != head);
                }
            }
            if !(head.is_some() && order.contains(&head)) {
                order.push(head);
            }
        }
        order.into()
    }

    /// Returns whether a base adds no members of its own worth asking for: `object`, `Generic`, `Protocol`, `ABC`.
    fn is_root(&self, view: u32, base: Handle) -> bool {
        let file = &self.views[view as usize];
        let head = match file.expression(base) {
            Some(Expression::Subscript { object, .. }) => object,
            _ => base,
        };
        matches!(self.type_name(file, head), Some("object" | "Generic" | "Protocol" | "ABC"))
    }

    // ---- types

    /// Returns the name by which an expression's type is called, where it is a plain name or attribute.
    fn type_name<'v>(&self, file: &'v View<'_>, handle: Handle) -> Option<&'v str> {
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

    /// Returns what something declared to be of this type may hold.
    pub(super) fn types_of(&mut self, view: u32, handle: Handle) -> Values {
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

    /// Returns the one thing an expression surely names: a module, or a class that nothing rebinds.
    pub(super) fn certain(&mut self, view: u32, handle: Handle) -> Option<Value> {
        let file = self.view(view);
        match file.expression(handle)? {
            Expression::Name(Use::One(binding)) => {
                let bound = file.binding(binding)?;
                match bound.role {
                    Role::Import(import) => {
                        let followed = self.import(view, binding.in_body(), import);
                        self.certain_end(&followed)
                    }
                    Role::Class => {
                        let declaration = bound.declaration?;
                        let key = &file.declaration(declaration)?.key;
                        if self.is_rebound(&file.path, &key.qualified) {
                            return None;
                        }
                        Some(Value::Class(Place { view, declaration }))
                    }
                    _ => None,
                }
            }
            Expression::Name(used @ Use::Free(_)) => match self.free_values(view, used).as_slice() {
                [value @ (Value::Class(_) | Value::Module(_))] => Some(value.clone()),
                _ => None,
            },
            Expression::Attribute { object, name } => {
                let name: Arc<str> = file.outline(handle).names.get(name).into();
                match self.certain(view, object)? {
                    Value::Module(module) => {
                        let followed = self.follow(&module, &name);
                        self.certain_end(&followed)
                    }
                    value @ Value::Class(_) => {
                        let member = self.member(&value, &name).filter(|member| member.certain)?;
                        let owner = self.view(member.owner.view);
                        let Use::One(binding) = member.bound? else { return None };
                        let bound = owner.binding(binding)?;
                        let declaration = bound.declaration?;
                        if bound.role != Role::Class {
                            return None;
                        }
                        let qualified = Arc::clone(&owner.declaration(declaration)?.key.qualified);
                        if self.is_rebound(&owner.path, &qualified) {
                            return None;
                        }
                        Some(Value::Class(Place { view: member.owner.view, declaration }))
                    }
                    _ => None,
                }
            }
            _ => None,
        }
    }

    fn certain_end(&mut self, followed: &Followed) -> Option<Value> {
        if followed.reason.is_some() {
            return None;
        }
        let [end] = followed.ends.as_slice() else { return None };
        match self.end_values(end).as_slice() {
            [value @ (Value::Module(_) | Value::Class(_))] => {
                // A variable that holds a class may be given another.
                if let (Value::Class(place), End::Definition(target)) = (value, end) {
                    let file = &self.views[place.view as usize];
                    let key = file.declaration(place.declaration).map(|declaration| &declaration.key);
                    if file.path != target.file || key != target.definition.as_ref() {
                        return None;
                    }
                }
                Some(value.clone())
            }
            _ => None,
        }
    }
}

/// What a star import does to a name.
pub(super) enum Star {
    Brings(Rc<Followed>),
    /// It may: the module is not known whole.
    Unknown,
    Nothing,
}

fn instance_of(value: Value) -> Values {
    match value {
        Value::Class(class) => SmallVec::from_iter([Value::Instance(class)]),
        Value::External | Value::Receiver => SmallVec::from_iter([value]),
        _ => Values::new(),
    }
}

/// Returns the text of a free name.
pub(super) fn free_name<'v>(file: &'v View<'_>, name: Handle) -> &'v str {
    file.outline(name).names.get(NameId(name.index() as u32))
}

/// Returns the bindings a use may mean, the latest first.
pub(super) fn bindings_of(file: &View<'_>, used: Use) -> SmallVec<[Handle; 2]> {
    match used {
        Use::One(binding) => SmallVec::from_iter([binding]),
        Use::Many(set) => {
            let sets = &file.outline(set).sets;
            sets.get(set.index()).map(|set| set.iter().map(|reaching| reaching.binding).collect()).unwrap_or_default()
        }
        Use::Free(_) => SmallVec::new(),
    }
}
