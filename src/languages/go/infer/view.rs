//! A file as inference sees it: its surface, for the file in hand its body too, and what its names mean.
//!
//! Must not evaluate expressions. Invariant: of another package only its public table is consulted where that is enough, so that a new
//! name there that nobody else can see makes nobody else's work anew.

use std::rc::Rc;
use std::sync::Arc;

use super::Inference;
use crate::languages::ModuleResolution;
use crate::languages::go::conditions::{Condition, Setting};
use crate::languages::go::modules::{self, Package, Part};
use crate::languages::go::universe::{Predeclared, is_exported, predeclared};
use crate::model::facts::{Body, Declaration, Handle, NameId, Outline, Role, Surface};
use crate::model::{DefinitionKey, ParseStatus, RepoPath, Target};

/// What an import leads to.
#[derive(Clone, Debug)]
pub(in crate::languages::go) enum Imported {
    Package(Package),
    /// Below the path of a module of the repository, but not there.
    Missing,
    External,
}

/// An import that binds a name of its own, or all names of its package.
#[derive(Debug)]
struct ImportedName {
    /// As written; empty when the package's own name counts, `.` for all names.
    alias: Arc<str>,
    path: Arc<str>,
    imported: Imported,
}

/// One file.
#[derive(Debug)]
pub(in crate::languages::go) struct View<'a> {
    pub path: RepoPath,
    pub surface: Arc<Surface>,
    body: Option<&'a Body>,
    pub package: Option<Package>,
    pub is_test: bool,
    pub partial: bool,
    condition: Condition,
    imports: std::cell::OnceCell<Vec<ImportedName>>,
}

impl View<'_> {
    pub(in crate::languages::go) fn outline(&self, handle: Handle) -> &Outline {
        match self.body {
            Some(body) if handle.in_body() => &body.outline,
            _ => &self.surface.outline,
        }
    }

    pub(in crate::languages::go) fn text(&self, name: NameId, of: Handle) -> &str {
        self.outline(of).names.get(name)
    }

    /// Returns the index of a declaration.
    pub(in crate::languages::go) fn find(&self, key: &DefinitionKey) -> Option<u32> {
        let found = self.surface.outline.declarations.binary_search_by(|declaration| declaration.key.cmp(key));
        found.ok().map(|index| index as u32)
    }

    pub(in crate::languages::go) fn declaration(&self, index: u32) -> Option<&Declaration> {
        self.surface.outline.declarations.get(index as usize)
    }
}

/// What a name that no local scope binds means.
#[derive(Clone, Debug)]
pub(in crate::languages::go) enum Named {
    Definitions {
        targets: Vec<Target>,
        rule: &'static str,
    },
    Package(Package),
    /// A package outside the repository, or perhaps a name of one that is imported whole.
    External,
    /// The package of an import that leads nowhere.
    Missing,
    Predeclared(Predeclared, &'static str),
    Nothing,
}

impl<'a> Inference<'a> {
    pub(super) fn add_view(&mut self, path: &RepoPath, surface: Arc<Surface>, body: Option<&'a Body>, partial: bool) -> u32 {
        let names = &surface.outline.names;
        let condition = Condition::of_file(path.file_name(), surface.condition.map(|condition| names.get(condition)));
        let package = surface.module.map(|name| Package { directory: path.directory().into(), name: names.get(name).into() });
        let view = View {
            path: path.clone(),
            is_test: modules::is_test(path),
            surface,
            body,
            package,
            partial,
            condition,
            imports: std::cell::OnceCell::new(),
        };
        self.views.push(Rc::new(view));
        let index = self.views.len() as u32 - 1;
        self.by_path.insert(path.clone(), Some(index));
        index
    }

    pub(in crate::languages::go) fn view(&self, index: u32) -> Rc<View<'a>> {
        Rc::clone(&self.views[index as usize])
    }

    pub(in crate::languages::go) fn view_of(&mut self, path: &RepoPath) -> Option<u32> {
        if let Some(known) = self.by_path.get(path) {
            return *known;
        }
        let Some(surface) = self.lookup.surface(path) else {
            self.by_path.insert(path.clone(), None);
            return None;
        };
        let partial = self.lookup.parse_status(path) == Some(ParseStatus::Partial);
        Some(self.add_view(path, surface, None, partial))
    }

    /// Returns what the import at an index of a file's outline leads to.
    pub(in crate::languages::go) fn imported(&self, view: &View<'_>, path: &str) -> Imported {
        let context = self.lookup.context(view.path.directory());
        match &*self.lookup.module(&context, path) {
            ModuleResolution::Found(key) => {
                Package::of_key(key).map_or(Imported::Missing, |(package, _)| Imported::Package(package))
            }
            ModuleResolution::Missing | ModuleResolution::Ambiguous(_) => Imported::Missing,
            ModuleResolution::External => Imported::External,
        }
    }

    fn imports<'v>(&self, view: &'v View<'_>) -> &'v [ImportedName] {
        view.imports.get_or_init(|| {
            let outline = &view.surface.outline;
            let mut names = Vec::new();
            for binding in &outline.bindings {
                let (Role::Import(index) | Role::Star(index)) = binding.role else { continue };
                let Some(import) = outline.imports.get(index as usize) else { continue };
                let path: Arc<str> = outline.names.get(import.module).into();
                let imported = self.imported(view, &path);
                names.push(ImportedName { alias: outline.names.get(binding.name).into(), path, imported });
            }
            names
        })
    }

    /// Returns what a free name means in a file.
    pub(in crate::languages::go) fn named(&mut self, view: u32, text: &str) -> Rc<Named> {
        if let Some(known) = self.names.get(&view).and_then(|names| names.get(text)) {
            return Rc::clone(known);
        }
        let named = Rc::new(self.find_name(view, text));
        self.names.entry(view).or_default().insert(text.into(), Rc::clone(&named));
        named
    }

    fn find_name(&mut self, index: u32, text: &str) -> Named {
        let view = self.view(index);
        let imports = self.imports(&view);
        let of = |imported: &Imported| match imported {
            Imported::Package(package) => Named::Package(package.clone()),
            Imported::Missing => Named::Missing,
            Imported::External => Named::External,
        };
        for import in imports {
            let binds = match (&*import.alias, &import.imported) {
                ("", Imported::Package(package)) => package.name.as_ref() == text,
                ("", _) | (".", _) => false,
                (alias, _) => alias == text,
            };
            if binds {
                return of(&import.imported);
            }
        }
        // What no build has beside this file is meant only when nothing else is.
        let mut elsewhere = Vec::new();
        if let Some(package) = &view.package {
            let declared = self.declared(index, package, text);
            let targets = self.buildable(&view, &declared);
            if !targets.is_empty() {
                return Named::Definitions { targets, rule: "go_package" };
            }
            elsewhere = declared;
        }
        for import in imports.iter().filter(|import| &*import.alias == ".") {
            if let Imported::Package(package) = &import.imported
                && is_exported(text)
            {
                let targets = self.in_package(index, package, text);
                if !targets.is_empty() {
                    return Named::Definitions { targets, rule: "go_import" };
                }
            }
        }
        // The name of a package that is not there can only be told by its path.
        for import in imports {
            let unseen = !matches!(import.imported, Imported::Package(_));
            if import.alias.is_empty() && unseen && modules::likely_name(&import.path) == text {
                return of(&import.imported);
            }
        }
        if let Some((kind, name)) = predeclared(text) {
            return Named::Predeclared(kind, name);
        }
        if !elsewhere.is_empty() {
            return Named::Definitions { targets: elsewhere, rule: "go_package" };
        }
        let whole = |import: &ImportedName| &*import.alias == "." && !matches!(import.imported, Imported::Package(_));
        if is_exported(text) && imports.iter().any(whole) {
            return Named::External;
        }
        // An import whose own name is another than its path's may bind it.
        let unseen = |import: &ImportedName| import.alias.is_empty() && !matches!(import.imported, Imported::Package(_));
        if !is_exported(text) && imports.iter().any(|import| unseen(import) && import.path.contains(['.', '-'])) {
            return Named::External;
        }
        Named::Nothing
    }

    /// Returns the definitions that a name of a package stands for in a file: those that can be in one build with it, and where none can
    /// all of them.
    pub(in crate::languages::go) fn in_package(&mut self, view: u32, package: &Package, name: &str) -> Vec<Target> {
        let targets = self.declared(view, package, name);
        let from = self.view(view);
        let fitting = self.buildable(&from, &targets);
        if fitting.is_empty() { targets } else { fitting }
    }

    /// Returns every definition of a name of a package that a file may see.
    fn declared(&mut self, view: u32, package: &Package, name: &str) -> Vec<Target> {
        let from = self.view(view);
        let inside = from.package.as_ref() == Some(package);
        let beside = from.is_test && *from.path.directory() == *package.directory;
        let exported = name.rsplit('.').next().is_some_and(is_exported);
        let mut targets = Vec::new();
        let mut ask = |part: Part| {
            if let Some(export) = self.lookup.exports(&package.key(part)).names.get(name) {
                targets.extend(export.targets.iter().cloned());
            }
        };
        if inside && view == 0 {
            ask(Part::Own);
        } else if exported && name.split('.').next().is_some_and(is_exported) || !inside {
            ask(Part::Public);
        } else {
            ask(Part::Own);
        }
        if beside {
            ask(Part::Test);
        }
        targets.sort();
        targets.dedup();
        targets
    }

    /// Returns the methods of a type's name that a file may call.
    pub(super) fn methods(&mut self, of: u32, type_name: &str, method: &str) -> Vec<Target> {
        let owner = self.view(of);
        let Some(package) = &owner.package else { return Vec::new() };
        let from = self.view(0);
        let inside = from.package.as_ref() == Some(package);
        let name = format!("{type_name}.{method}");
        let mut targets = Vec::new();
        let mut ask = |part: Part| {
            if let Some(export) = self.lookup.exports(&package.key(part)).names.get(name.as_str()) {
                targets.extend(export.targets.iter().cloned());
            }
        };
        ask(if inside || !is_exported(method) { Part::Own } else { Part::Public });
        let beside = from.is_test && *from.path.directory() == *package.directory;
        if beside || owner.is_test {
            ask(Part::Test);
        }
        targets.sort();
        targets.dedup();
        let fitting = self.buildable(&from, &targets);
        if fitting.is_empty() { targets } else { fitting }
    }

    /// Returns those of `targets` that can be in one build with a file. A file that no build has is left to itself.
    fn buildable(&mut self, from: &View<'_>, targets: &[Target]) -> Vec<Target> {
        let free = !from.condition.meets(&from.condition, Setting::Any);
        let fits = |target: &&Target| free || target.file == from.path || self.meets(target, from, Setting::Any);
        targets.iter().filter(fits).cloned().collect()
    }

    fn meets(&mut self, target: &Target, from: &View<'_>, setting: Setting) -> bool {
        match self.view_of(&target.file) {
            Some(view) => self.view(view).condition.meets(&from.condition, setting),
            None => true,
        }
    }

    /// Returns the one variant that the file in hand is built with when nobody sets a tag; `None` where the machine decides.
    pub(in crate::languages::go) fn default_variant(&mut self, targets: &[Target]) -> Option<usize> {
        let from = self.view(0);
        if !from.condition.meets(&from.condition, Setting::Default) {
            return None;
        }
        let mut found = None;
        for (index, target) in targets.iter().enumerate() {
            if self.meets(target, &from, Setting::Default) && found.replace(index).is_some() {
                return None;
            }
        }
        found
    }
}
