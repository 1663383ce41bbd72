//! Pytest's fixtures: which function gives what a test asks for by the name of a parameter.
//!
//! Must not know who runs the tests. Invariant: nearer ones come first, as pytest looks: the class, the file, each `conftest.py` upwards,
//! and the plugins that those name.

use std::rc::Rc;
use std::sync::Arc;

use smallvec::SmallVec;

use super::calls::Passed;
use super::names::Star;
use super::state::Inference;
use super::value::{End, Object, Place, Value, Values, add_all};
use super::view::{View, bindings_of};
use crate::languages::python::modules;
use crate::languages::{ModuleKey, ModuleResolution};
use crate::model::facts::{Binding, Expression, Handle, Role, Use};
use crate::model::{RepoPath, Target};

/// The file whose fixtures all tests below its directory may ask for.
const CONFTEST: &str = "conftest.py";

/// How many plugins that name further plugins are followed.
const MAX_PLUGINS: usize = 16;

/// Fixtures that are asked for by another name than their function's, and the bindings that make them.
pub(super) type Renamed = Rc<[(Arc<str>, Handle)]>;

/// A fixture: the binding that makes it, and the class that has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fixture {
    view: u32,
    binding: Handle,
    class: Option<Place>,
}

impl Inference<'_> {
    /// Returns the fixtures that an [`Expression::Injected`] may mean: several only where a condition decides.
    pub fn injected(&mut self, view: u32, handle: Handle) -> SmallVec<[Target; 2]> {
        let mut targets = SmallVec::new();
        for fixture in self.fixtures(view, handle) {
            let file = self.view(fixture.view);
            let key = file
                .binding(fixture.binding)
                .and_then(|binding| binding.declaration)
                .and_then(|declaration| file.declaration(declaration))
                .map(|declaration| declaration.key.clone());
            if let Some(key) = key {
                targets.push(Target { file: file.path.clone(), definition: Some(key) });
            }
        }
        targets.sort();
        targets.dedup();
        targets
    }

    /// Returns what a fixture gives to whoever asks for it.
    pub(super) fn injected_values(&mut self, view: u32, handle: Handle) -> Values {
        let mut values = Values::new();
        for fixture in self.fixtures(view, handle) {
            let file = self.view(fixture.view);
            let Some(declaration) = file.binding(fixture.binding).and_then(|binding| binding.declaration) else { continue };
            let function = Place { view: fixture.view, declaration };
            let receiver = fixture.class.map(Object::plain);
            for value in self.result(function, receiver.as_ref(), &Passed::Nothing) {
                match value {
                    // A fixture that yields gives what it yields.
                    Value::Elements(inner) if self.yields(function) => add_all(&mut values, inner.iter().cloned()),
                    value => add_all(&mut values, [value]),
                }
            }
        }
        values
    }

    /// Returns whether a fixture is a generator: by its declared result, or by what it gives.
    fn yields(&mut self, function: Place) -> bool {
        let file = self.view(function.view);
        let Some(shape) = file.function(function.declaration) else { return false };
        let declared = shape.returns.iter().any(|declared| {
            let head = match file.expression(*declared) {
                Some(Expression::Subscript { object, .. }) => object,
                _ => *declared,
            };
            let iterates = |name: &str| {
                matches!(name, "Generator" | "Iterator" | "Iterable" | "AsyncGenerator" | "AsyncIterator" | "AsyncIterable")
            };
            self.library_name(&file, head, &iterates).is_some()
        });
        let given = shape.returned.iter().any(|given| matches!(file.expression(*given), Some(Expression::Sequence(_))));
        declared || shape.returns.is_empty() && given
    }

    fn fixtures(&mut self, view: u32, handle: Handle) -> SmallVec<[Fixture; 2]> {
        let file = self.view(view);
        let Some(Expression::Injected { name, class, outer }) = file.expression(handle) else { return SmallVec::new() };
        let name: Arc<str> = file.outline(handle).names.get(name).into();
        let mut skip = usize::from(outer);
        if let Some(class) = class {
            let found = self.fixtures_of_class(Place { view, declaration: class }, &name);
            if !found.is_empty() {
                if skip == 0 {
                    return found;
                }
                skip -= 1;
            }
        }
        let found = self.fixtures_of_file(view, &name, 0);
        if !found.is_empty() {
            if skip == 0 {
                return found;
            }
            skip = 0;
        }
        let mut directory = file.path.directory().to_owned();
        let mut plugins = Vec::new();
        loop {
            let path = if directory.is_empty() { CONFTEST.to_owned() } else { format!("{directory}/{CONFTEST}") };
            if let Ok(path) = RepoPath::parse(&path)
                && path != file.path
                && let Some(conftest) = self.view_of(&path)
            {
                let found = self.fixtures_of_file(conftest, &name, 0);
                if !found.is_empty() {
                    if skip == 0 {
                        return found;
                    }
                    skip -= 1;
                }
                self.add_plugins(conftest, &mut plugins);
            } else if path == file.path.as_str() {
                self.add_plugins(view, &mut plugins);
            }
            if directory.is_empty() {
                break;
            }
            directory.truncate(directory.rfind('/').unwrap_or(0));
        }
        let mut next = 0;
        while next < plugins.len() && next < MAX_PLUGINS {
            let plugin = plugins[next];
            next += 1;
            let found = self.fixtures_of_file(plugin, &name, 0);
            if !found.is_empty() {
                return found;
            }
            self.add_plugins(plugin, &mut plugins);
        }
        SmallVec::new()
    }

    /// Adds the modules that a file names as plugins.
    fn add_plugins(&mut self, view: u32, plugins: &mut Vec<u32>) {
        let file = self.view(view);
        let Some(Use::One(binding)) = file.surface.bound("pytest_plugins") else { return };
        let Some(value) = file.binding(binding).and_then(|binding| binding.value) else { return };
        for module in self.arguments(&file, Some(value)) {
            let Some(Expression::Property { name, .. }) = file.expression(module) else { continue };
            let found = self.lookup.module(&file.context, file.outline(module).names.get(name));
            if let ModuleResolution::Found(module) = &*found
                && let Some(path) = modules::file_of(module)
                && let Some(plugin) = self.view_of(&path)
                && !plugins.contains(&plugin)
            {
                plugins.push(plugin);
            }
        }
    }

    fn fixtures_of_class(&mut self, class: Place, name: &str) -> SmallVec<[Fixture; 2]> {
        for owner in self.linearization(class).iter().flatten() {
            let file = self.view(owner.view);
            let Some(shape) = file.class(owner.declaration) else { continue };
            let names = &file.outline(owner.declaration).names;
            let members: Vec<Use> = match shape.bound(names, name) {
                Some(used) => vec![used],
                None => Vec::new(),
            };
            let renamed = shape.members.iter().map(|(_, used)| *used);
            let found: SmallVec<[Fixture; 2]> = members
                .into_iter()
                .chain(renamed)
                .flat_map(|used| bindings_of(&file, used))
                .filter(|binding| fixture_named(&file, *binding).is_some_and(|given| given == name))
                .map(|binding| Fixture { view: owner.view, binding, class: Some(*owner) })
                .take(1)
                .collect();
            if !found.is_empty() {
                return found;
            }
        }
        SmallVec::new()
    }

    /// Returns the fixtures of a name that a file has at its top, its own and those it imports.
    fn fixtures_of_file(&mut self, view: u32, name: &Arc<str>, depth: u32) -> SmallVec<[Fixture; 2]> {
        let file = self.view(view);
        let mut found: SmallVec<[Fixture; 2]> = SmallVec::new();
        if let Some(used) = file.surface.bound(name) {
            for handle in bindings_of(&file, used) {
                match file.binding(handle).map(|binding| binding.role) {
                    Some(Role::Function) if fixture_named(&file, handle).is_some_and(|given| given == &**name) => {
                        found.push(Fixture { view, binding: handle, class: None });
                    }
                    Some(Role::Import(import)) => {
                        let followed = self.import(view, handle.in_body(), import);
                        found.extend(self.fixtures_at(&followed.ends));
                    }
                    _ => {}
                }
            }
        }
        if found.is_empty() {
            let renamed = self.renamed_fixtures(view);
            let renamed = renamed.iter().filter(|(given, _)| given == name);
            found.extend(renamed.map(|(_, binding)| Fixture { view, binding: *binding, class: None }));
        }
        if found.is_empty() {
            for star in &file.surface.stars {
                let Some(Binding { role: Role::Star(import), .. }) = file.binding(star.binding) else { continue };
                if let Star::Brings(followed) = self.star(view, false, *import, name) {
                    found.extend(self.fixtures_at(&followed.ends));
                } else if depth == 0 {
                    for module in self.star_modules(&file, *import) {
                        if let Some(source) = modules::file_of(&module).and_then(|path| self.view_of(&path)) {
                            let renamed = self.renamed_fixtures(source);
                            let renamed = renamed.iter().filter(|(given, _)| given == name);
                            found.extend(renamed.map(|(_, binding)| Fixture { view: source, binding: *binding, class: None }));
                        }
                    }
                }
                if !found.is_empty() {
                    break;
                }
            }
        }
        found
    }

    fn star_modules(&self, file: &View<'_>, import: u32) -> Vec<ModuleKey> {
        let Some(import) = file.surface.outline.imports.get(import as usize) else { return Vec::new() };
        match &*self.lookup.module(&file.context, file.surface.outline.names.get(import.module)) {
            ModuleResolution::Found(module) => vec![module.clone()],
            _ => Vec::new(),
        }
    }

    fn fixtures_at(&mut self, ends: &[End]) -> SmallVec<[Fixture; 2]> {
        let mut found = SmallVec::new();
        for end in ends {
            let End::Definition(target) = end else { continue };
            for (view, binding) in self.bindings_of_target(target) {
                let file = self.view(view);
                if fixture_named(&file, binding).is_some() {
                    found.push(Fixture { view, binding, class: None });
                }
            }
        }
        found
    }

    /// Returns the fixtures at the top of a file that are asked for by another name than their function's.
    fn renamed_fixtures(&mut self, view: u32) -> Renamed {
        if let Some(known) = self.named_fixtures.get(&view) {
            return Rc::clone(known);
        }
        let file = self.view(view);
        let mut renamed = Vec::new();
        for (_, used) in &file.surface.scope {
            for handle in bindings_of(&file, *used) {
                let Some(binding) = file.binding(handle) else { continue };
                let own = file.outline(handle).names.get(binding.name);
                if let Some(given) = fixture_named(&file, handle).filter(|given| *given != own) {
                    renamed.push((Arc::from(given), handle));
                }
            }
        }
        let renamed: Renamed = renamed.into();
        self.named_fixtures.insert(view, Rc::clone(&renamed));
        renamed
    }
}

/// Returns the name under which a function is a fixture; `None` when it is none.
fn fixture_named<'v>(file: &'v View<'_>, handle: Handle) -> Option<&'v str> {
    let binding = file.binding(handle)?;
    if binding.role != Role::Function {
        return None;
    }
    let mut next = binding.value;
    while let Some(list) = next {
        let Some(Expression::List(decorator, rest)) = file.expression(list) else { return None };
        next = rest;
        let (head, given) = match file.expression(decorator) {
            Some(Expression::Property { object, name }) => (object, Some(file.outline(decorator).names.get(name))),
            _ => (decorator, None),
        };
        if makes_fixture(file, head) {
            return Some(given.unwrap_or_else(|| file.outline(handle).names.get(binding.name)));
        }
    }
    None
}

/// Returns whether a decorator is pytest's, or that of one of its plugins.
fn makes_fixture(file: &View<'_>, decorator: Handle) -> bool {
    match file.expression(decorator) {
        Some(Expression::Call { callee } | Expression::Invocation { callee, .. }) => makes_fixture(file, callee),
        Some(Expression::Attribute { object, name }) => {
            file.outline(decorator).names.get(name) == "fixture" && is_of_pytest(file, object, None)
        }
        Some(Expression::Name(_)) => is_of_pytest(file, decorator, Some("fixture")),
        _ => false,
    }
}

/// Returns whether an expression names a module of pytest, or what such a module gives under a name.
fn is_of_pytest(file: &View<'_>, handle: Handle, name: Option<&str>) -> bool {
    let Some(Expression::Name(used)) = file.expression(handle) else { return false };
    bindings_of(file, used).iter().any(|binding| {
        let outline = file.outline(*binding);
        let Some(Role::Import(import)) = file.binding(*binding).map(|bound| bound.role) else { return false };
        outline.imports.get(import as usize).is_some_and(|import| {
            let root = outline.names.get(import.module).split('.').next().unwrap_or("");
            import.name.map(|name| outline.names.get(name)) == name && (root.starts_with("pytest") || root == "_pytest")
        })
    })
}
