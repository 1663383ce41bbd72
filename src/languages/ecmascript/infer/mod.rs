//! What an expression holds, as far as the repository's own text says: modules, classes, their instances, functions.
//!
//! Must not know references or edges. Invariant: everything but [`Inference::follow`] is evidence, not proof; an empty answer means that
//! nothing is known.

mod calls;
mod follow;
mod members;
mod types;
mod values;

use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::languages::{ExportTable, Lookup, ModuleKey};
use crate::model::facts::{
    Binding, Body, ClassShape, Declaration, Expression, FunctionShape, Handle, NameId, Names, Outline, Role, Shape, Surface, Use,
};
use crate::model::{DefinitionKey, Reason, RepoPath, SymbolKind, Target};

pub(super) use members::Member;

/// How many steps evidence may lead away from a reference.
const MAX_STEPS: u32 = 120;

/// How many steps all the evidence for one reference may take together.
const MAX_FUEL: u32 = 4_000;

/// How many values an expression is followed for.
const MAX_VALUES: usize = 6;

/// A file as far as inference reads it.
pub(super) struct View<'a> {
    pub path: RepoPath,
    pub surface: Arc<Surface>,
    /// Only of the file whose references are resolved.
    pub body: Option<&'a Body>,
    pub context: Arc<str>,
    /// The bindings of the surface that make definitions, by definition.
    by_key: FxHashMap<DefinitionKey, Handle>,
}

impl View<'_> {
    pub fn outline(&self, handle: Handle) -> &Outline {
        match self.body {
            Some(body) if handle.in_body() => &body.outline,
            _ => &self.surface.outline,
        }
    }

    pub fn names(&self, handle: Handle) -> &Names {
        &self.outline(handle).names
    }

    pub fn binding(&self, handle: Handle) -> Option<&Binding> {
        self.outline(handle).bindings.get(handle.index())
    }

    pub fn declaration(&self, handle: Handle) -> Option<&Declaration> {
        self.outline(handle).declarations.get(handle.index())
    }

    pub fn declared(&self, binding: Handle) -> Option<(Handle, &Declaration)> {
        let handle = self.binding(binding)?.declaration?;
        Some((handle, self.declaration(handle)?))
    }

    pub fn expression(&self, handle: Handle) -> Option<Expression> {
        self.outline(handle).expressions.get(handle.index()).copied()
    }

    pub fn class(&self, handle: Handle) -> Option<&ClassShape> {
        self.outline(handle).classes.get(handle.index())
    }

    pub fn function(&self, handle: Handle) -> Option<&FunctionShape> {
        self.outline(handle).functions.get(handle.index())
    }

    /// Returns the bindings a use may mean.
    pub fn bindings_of(&self, used: Use) -> SmallVec<[Handle; 2]> {
        match used {
            Use::One(binding) => SmallVec::from_iter([binding]),
            Use::Many(set) => {
                let sets = self.outline(set).sets.get(set.index());
                sets.into_iter().flatten().map(|reaching| reaching.binding).collect()
            }
            Use::Free(_) => SmallVec::new(),
        }
    }
}

/// A class shape, or a function, of some viewed file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Place {
    pub view: u32,
    pub handle: Handle,
}

/// What type parameters and `this` stand for.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Environment {
    this: Option<Value>,
    parameters: Vec<((u32, Handle), Values)>,
}

pub(super) type Env = Option<Rc<Environment>>;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Module(ModuleKey),
    /// A class, namespace, enum or object itself: what has the statics of a shape.
    Class(Place, Env),
    /// What has the members of a shape.
    Instance(Place, Env),
    /// The instance, or the class itself, as its bases see it.
    Above(Place, bool),
    Function(Place, Env),
    /// Something that gives these when iterated or subscripted.
    Sequence(Rc<[Value]>),
    Tuple(Rc<[Values]>),
    Promise(Rc<[Value]>),
    /// A function of the language: what it gives, and what it calls a function with that is handed to it.
    Gives(Rc<[Value]>, Rc<[Values]>),
    /// Surely nothing of the repository.
    External,
}

pub(super) type Values = SmallVec<[Value; 2]>;

/// A shape and its bases in the order in which members are looked up; `None` where one is not known.
pub(super) type Linearization = Rc<[(Option<Place>, Env)]>;

pub(super) fn add(values: &mut Values, value: Value) {
    if values.len() < MAX_VALUES && !values.contains(&value) {
        values.push(value);
    }
}

pub(super) fn add_all(values: &mut Values, more: impl IntoIterator<Item = Value>) {
    for value in more {
        add(values, value);
    }
}

/// Which meaning of a name is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Meaning {
    Value,
    Type,
    Space,
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
    /// Something without a definition that a file exports under a name.
    Value(RepoPath, Arc<str>),
}

pub(super) struct Inference<'a> {
    pub lookup: &'a dyn Lookup,
    pub views: Vec<Rc<View<'a>>>,
    by_path: FxHashMap<RepoPath, Option<u32>>,
    tables: FxHashMap<ModuleKey, Arc<ExportTable>>,
    rebound: FxHashMap<RepoPath, Arc<BTreeSet<Arc<str>>>>,
    followed: FxHashMap<(ModuleKey, Arc<str>), Rc<Followed>>,
    imports: FxHashMap<(u32, bool, u32), Rc<Followed>>,
    values: FxHashMap<(u32, Handle), Values>,
    types: FxHashMap<(u32, Handle), Values>,
    bindings: FxHashMap<(u32, Handle), Values>,
    linearizations: FxHashMap<Place, Linearization>,
    steps: u32,
    fuel: u32,
    /// Whether writes from outside count; they do not while they are being collected.
    with_rebound: bool,
}

impl<'a> Inference<'a> {
    /// Begins with the file whose references are asked for, which becomes view 0.
    pub(super) fn new(
        path: &RepoPath,
        surface: Arc<Surface>,
        body: Option<&'a Body>,
        lookup: &'a dyn Lookup,
        with_rebound: bool,
    ) -> Self {
        let by_key = by_key(&surface);
        let view = View { path: path.clone(), surface, body, context: lookup.context(path.directory()), by_key };
        Self {
            lookup,
            views: vec![Rc::new(view)],
            by_path: FxHashMap::from_iter([(path.clone(), Some(0))]),
            tables: FxHashMap::default(),
            rebound: FxHashMap::default(),
            followed: FxHashMap::default(),
            imports: FxHashMap::default(),
            values: FxHashMap::default(),
            types: FxHashMap::default(),
            bindings: FxHashMap::default(),
            linearizations: FxHashMap::default(),
            steps: 0,
            fuel: MAX_FUEL,
            with_rebound,
        }
    }

    /// Begins the evidence for another reference.
    pub(super) fn refuel(&mut self) {
        self.fuel = MAX_FUEL;
    }

    pub(super) fn view(&self, index: u32) -> Rc<View<'a>> {
        Rc::clone(&self.views[index as usize])
    }

    pub(super) fn view_of(&mut self, path: &RepoPath) -> Option<u32> {
        if let Some(known) = self.by_path.get(path) {
            return *known;
        }
        let index = self.lookup.surface(path).map(|surface| {
            let context = self.lookup.context(path.directory());
            let by_key = by_key(&surface);
            self.views.push(Rc::new(View { path: path.clone(), surface, body: None, context, by_key }));
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

    fn deeper<R>(&mut self, nothing: R, then: impl FnOnce(&mut Self) -> R) -> R {
        if self.steps >= MAX_STEPS || self.fuel == 0 {
            return nothing;
        }
        self.fuel -= 1;
        self.steps += 1;
        let result = then(self);
        self.steps -= 1;
        result
    }

    /// Returns the binding of a view that makes a definition.
    pub(super) fn place_of(&mut self, target: &Target) -> Option<(u32, Handle)> {
        let view = self.view_of(&target.file)?;
        let key = target.definition.as_ref()?;
        let handle = self.views[view as usize].by_key.get(key).copied()?;
        Some((view, handle))
    }

    pub(super) fn kind_of(&mut self, target: &Target) -> Option<SymbolKind> {
        let (view, handle) = self.place_of(target)?;
        self.views[view as usize].declared(handle).map(|(_, declaration)| declaration.kind)
    }
}

fn by_key(surface: &Surface) -> FxHashMap<DefinitionKey, Handle> {
    let outline = &surface.outline;
    let entries = outline.bindings.iter().enumerate().filter_map(|(index, binding)| {
        let declaration = outline.declarations.get(binding.declaration?.index())?;
        Some((declaration.key.clone(), Handle::of_surface(index)))
    });
    entries.collect()
}

/// Orders the declarations of one name: which of them a use of a meaning means.
pub(super) fn rank(kind: SymbolKind, meaning: Meaning) -> u8 {
    let is_type = matches!(kind, SymbolKind::Interface | SymbolKind::Type);
    match (meaning, kind) {
        (Meaning::Space, SymbolKind::Namespace) => 0,
        (Meaning::Value, SymbolKind::Namespace) => 3,
        (Meaning::Type, SymbolKind::Namespace) => 4,
        (Meaning::Value, _) if is_type => 4,
        (Meaning::Value, _) => 1,
        (Meaning::Type | Meaning::Space, SymbolKind::Class) => 1,
        (Meaning::Type | Meaning::Space, SymbolKind::Enum) => 2,
        (Meaning::Type | Meaning::Space, _) if is_type => 2,
        (Meaning::Type | Meaning::Space, _) => 3,
    }
}

/// Returns the text of a free name.
pub(super) fn free_name<'v>(view: &'v View<'_>, free: Handle) -> &'v str {
    view.names(free).get(NameId(free.index() as u32))
}

/// Returns the class or function that a declaration has as its shape.
pub(super) fn shape_of(view: u32, handle: Handle, declaration: &Declaration) -> Option<(bool, Place)> {
    match declaration.shape {
        Shape::Class(class) => Some((true, Place { view, handle: handle.beside(class) })),
        Shape::Function(function) => Some((false, Place { view, handle: handle.beside(function) })),
        _ => None,
    }
}

pub(super) fn is_import(role: Role) -> Option<u32> {
    match role {
        Role::Import(import) => Some(import),
        _ => None,
    }
}
