//! What a path names: along modules, imports, re-exports and globs.
//!
//! Must not know types beyond the variants of an enum. Invariant: what is imported by name or declared goes before what a glob brings,
//! and two globs that bring different things bring none.

use std::rc::Rc;
use std::sync::Arc;

use super::Inference;
use crate::languages::ModuleKey;
use crate::languages::rust::modules::{self, Module, Part};
use crate::model::facts::{Handle, ItemMeaning, Space, TypeForm};
use crate::model::{Reason, RepoPath, Target};

/// Longest chain of modules above one.
const MAX_ABOVE: usize = 64;

/// What a name was found to mean.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::languages::rust) enum Found {
    /// Definitions and modules of one name.
    Items { targets: Vec<Target>, modules: Vec<Module>, rule: &'static str, reason: Option<Reason> },
    /// A variant of an enum.
    Variant { of: Target, name: Arc<str> },
    /// Something from outside the repository, by its path.
    External(Rc<str>),
    /// Below something of the repository, but not there.
    Missing,
}

impl Found {
    fn modules(modules: Vec<Module>) -> Self {
        Self::Items { targets: Vec::new(), modules, rule: "rust_path", reason: None }
    }

    fn by(self, rule: &'static str) -> Self {
        match self {
            Self::Items { targets, modules, reason, .. } => Self::Items { targets, modules, rule, reason },
            other => other,
        }
    }

    fn because(self, why: Reason) -> Self {
        match self {
            Self::Items { targets, modules, rule, reason } => {
                Self::Items { targets, modules, rule, reason: Some(reason.unwrap_or(why)) }
            }
            other => other,
        }
    }

    fn same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Items { targets, modules, .. }, Self::Items { targets: others, modules: other_modules, .. }) => {
                targets == others && modules == other_modules
            }
            (one, other) => one == other,
        }
    }
}

/// Puts together what several ways found: one where all agree, else all of it and why that is not certain.
fn merge(mut found: Vec<Found>, reason: Reason) -> Option<Found> {
    let first = found.pop()?;
    let mut whole = first;
    for other in found {
        if whole.same(&other) || other == Found::Missing {
            continue;
        }
        whole = match (whole, other) {
            (
                Found::Items { mut targets, mut modules, rule, .. },
                Found::Items { targets: others, modules: other_modules, .. },
            ) => {
                targets.extend(others);
                targets.sort();
                targets.dedup();
                modules.extend(other_modules);
                modules.sort();
                modules.dedup();
                Found::Items { targets, modules, rule, reason: Some(reason) }
            }
            (Found::Missing, other) => other,
            (items @ Found::Items { .. }, _) | (_, items @ Found::Items { .. }) => items.because(reason),
            (one, _) => one,
        };
    }
    Some(whole)
}

impl Inference<'_> {
    pub(super) fn exports(&self, module: &Module, part: Part) -> Arc<crate::languages::ExportTable> {
        self.lookup.exports(&module.key(part))
    }

    /// Returns the modules in which a file is one.
    fn parents_of_file(&self, file: &RepoPath) -> Rc<[Module]> {
        if let Some(known) = self.parents.borrow().get(file) {
            return Rc::clone(known);
        }
        let exports = |key: &ModuleKey| self.lookup.exports(key);
        let mut found = modules::parents(file, self.lookup, &exports);
        let is_root = modules::package(file.directory(), self.lookup)
            .is_some_and(|package| package.roots.iter().any(|root| root == file.as_str()));
        if found.is_empty() && !is_root {
            // `#[path = "…"]` may stand anywhere.
            for target in self.lookup.members_named(&format!("path:{}", file.file_name())).iter() {
                let table = self.lookup.exports(&Module::of_file(&target.file).key(Part::Children));
                if let Some(export) = table.names.get(file.as_str()) {
                    found.extend(export.aliases.iter().filter_map(|alias| Some(Module::of_key(&alias.module)?.0)));
                }
            }
        }
        let found: Rc<[Module]> = found.into();
        self.parents.borrow_mut().insert(file.clone(), Rc::clone(&found));
        found
    }

    /// Returns the modules directly above one: more than one where several crates have its file.
    pub(super) fn parents(&self, module: &Module) -> Vec<Module> {
        match module.around() {
            Some(around) => vec![around],
            None => self.parents_of_file(&module.file).to_vec(),
        }
    }

    /// Returns a module and all above it.
    fn above(&mut self, module: &Module) -> Rc<[Module]> {
        if let Some(known) = self.above.get(module) {
            return Rc::clone(known);
        }
        let mut found = vec![module.clone()];
        let mut next = 0;
        while next < found.len() && found.len() < MAX_ABOVE {
            for parent in self.parents(&found[next].clone()) {
                if !found.contains(&parent) {
                    found.push(parent);
                }
            }
            next += 1;
        }
        let found: Rc<[Module]> = found.into();
        self.above.insert(module.clone(), Rc::clone(&found));
        found
    }

    /// Returns the roots of the crates that have a module.
    pub(super) fn roots(&mut self, module: &Module) -> Vec<Module> {
        let above = self.above(module);
        let mut roots: Vec<Module> = above
            .iter()
            .filter(|module| module.inner.is_empty() && self.parents_of_file(&module.file).is_empty())
            .cloned()
            .collect();
        roots.sort();
        roots
    }

    fn is_root(&self, module: &Module) -> bool {
        module.inner.is_empty() && self.parents_of_file(&module.file).is_empty()
    }

    fn is_same_package(&mut self, one: &RepoPath, other: &RepoPath) -> bool {
        one.directory() == other.directory() || {
            let (one, other) = (self.package_of(one), self.package_of(other));
            one.map(|package| package.directory.clone()) == other.map(|package| package.directory.clone())
        }
    }

    fn part(&mut self, module: &Module, from: &Module) -> Part {
        if from.is_inside(module) || self.above(from).contains(module) {
            Part::Own
        } else if self.is_same_package(&module.file, &from.file) {
            Part::Crate
        } else {
            Part::Public
        }
    }

    /// Returns what a name of a module means to what stands in `from`.
    pub(super) fn in_module(&mut self, module: &Module, name: &str, space: Space, from: &Module) -> Option<Found> {
        let asked = (module.clone(), Arc::from(name), space, from.clone());
        if let Some(known) = self.names.get(&asked) {
            return known.clone();
        }
        if self.depth > 60 || !self.open.insert(asked.clone()) {
            return None;
        }
        let found = self.deeper(None, |this| this.find_in_module(module, name, space, from));
        self.open.remove(&asked);
        // What was found on the way round a cycle is not all there is.
        if self.open.is_empty() || found.is_some() {
            self.names.insert(asked, found.clone());
        }
        found
    }

    fn find_in_module(&mut self, module: &Module, name: &str, space: Space, from: &Module) -> Option<Found> {
        let part = self.part(module, from);
        let table = self.exports(module, part);
        let mark = match space {
            Space::Value => 'v',
            Space::Macro => 'm',
            Space::Type | Space::Every | Space::Tokens => 't',
        };
        let mut own = None;
        if let Some(export) = table.names.get(format!("{mark}{name}").as_str()) {
            let targets: Vec<Target> = export.targets.to_vec();
            let modules: Vec<Module> =
                export.aliases.iter().filter_map(|alias| Module::of_key(&alias.module)).map(|(module, _)| module).collect();
            let reason = (targets.len().max(modules.len()) > 1).then_some(Reason::ConditionalBinding);
            own = Some(Found::Items { targets, modules, rule: "lexical_binding", reason });
        }
        let marks: &[char] = if mark == 't' { &['u', 'n'] } else { &['u'] };
        let mut found = Vec::new();
        for mark in marks {
            let Some(export) = table.names.get(format!("{mark}{name}").as_str()) else { continue };
            for alias in &export.aliases {
                let path = alias.name.clone().unwrap_or_default();
                found.extend(
                    self.follow(&path, module, space).filter(|found| *found != Found::Missing || export.aliases.len() < 2),
                );
            }
        }
        if let Some(own) = own {
            // What is declared and imported under one name is so under different conditions.
            found.retain(|found| matches!(found, Found::Items { .. }));
            found.push(own);
            return merge(found, Reason::ConditionalBinding);
        }
        if let Some(found) = merge(found, Reason::ConditionalBinding) {
            return Some(found.by("explicit_import"));
        }
        let globs = table.names.get("*")?;
        let mut found = Vec::new();
        let mut external = false;
        for alias in &globs.aliases {
            let path = alias.name.clone().unwrap_or_default();
            match self.follow(&path, module, Space::Type) {
                Some(Found::Items { targets, modules, .. }) => {
                    for inner in modules {
                        match self.in_module(&inner, name, space, module) {
                            Some(Found::External(_)) => external = true,
                            other => found.extend(other),
                        }
                    }
                    found.extend(targets.iter().find_map(|target| self.variant(target, name)));
                }
                Some(Found::External(_)) => external = true,
                _ => {}
            }
        }
        found.retain(|found| *found != Found::Missing);
        match merge(found, Reason::AmbiguousBinding) {
            Some(found) if table.names.contains_key(format!("?{name}").as_str()) => {
                Some(found.by("rust_glob_import").because(Reason::WildcardImport))
            }
            Some(found) => Some(found.by("rust_glob_import")),
            None => external.then(|| Found::External(name.into())),
        }
    }

    /// Returns the variant of that name of an enum.
    fn variant(&mut self, target: &Target, name: &str) -> Option<Found> {
        let place = self.place_of(target)?;
        let view = self.view(place.view);
        let crate::model::facts::Shape::Type(shape) = view.declaration(place.handle)?.shape else { return None };
        let shape = if place.handle.in_body() { Handle::of_body(shape as usize) } else { Handle::of_surface(shape as usize) };
        let made = view.shape(shape)?;
        let has = made.form == TypeForm::Enum && made.fields.iter().any(|(variant, _)| view.text(*variant, shape) == name);
        has.then(|| Found::Variant { of: target.clone(), name: name.into() })
    }

    /// Returns what the first word of a path means in a module, where no block stands between.
    pub(super) fn in_scope_of_module(&mut self, module: &Module, name: &str, space: Space) -> Option<Found> {
        if let Some(found) = self.in_module(module, name, space, module) {
            return Some(found);
        }
        if space == Space::Macro {
            let found = self.macro_above(module, name);
            return found.or_else(|| super::known::is_in_prelude(name, space).then(|| Found::External(name.into())));
        }
        if space == Space::Type
            && let Some(found) = self.crate_named(module, name)
        {
            return Some(found);
        }
        super::known::is_in_prelude(name, space).then(|| Found::External(name.into()))
    }

    /// Returns the crate of a name.
    fn crate_named(&mut self, module: &Module, name: &str) -> Option<Found> {
        if matches!(name, "std" | "core" | "alloc" | "proc_macro" | "test") {
            return Some(Found::External(name.into()));
        }
        let package = self.package_of(&module.file)?;
        let root = |path: &str| RepoPath::parse(path).ok().map(|path| Found::modules(vec![Module::of_file(&path)]));
        if let Some(path) = package.crates.get(name) {
            return root(path);
        }
        if let Some((path, _)) = package.library.as_ref().filter(|(_, own)| own == name) {
            // The library does not name itself so, but the other crates of the package do.
            let roots = self.roots(module);
            if roots.iter().any(|root| root.file.as_str() != path) {
                return root(path);
            }
        }
        package.outside.iter().any(|outside| outside == name).then(|| Found::External(name.into()))
    }

    /// Finds a macro by the order of the text: in the modules around, in those whose macros are used there, or among the exported.
    fn macro_above(&mut self, module: &Module, name: &str) -> Option<Found> {
        let above = self.above(module);
        for outer in above.iter() {
            if let Some(found) = self.macro_in(outer, name, 0) {
                return Some(found);
            }
        }
        self.macro_of_package(module, name)
    }

    fn macro_in(&mut self, module: &Module, name: &str, depth: u32) -> Option<Found> {
        let table = self.exports(module, Part::Own);
        if let Some(export) = table.names.get(format!("m{name}").as_str()) {
            let targets = export.targets.to_vec();
            let reason = (targets.len() > 1).then_some(Reason::ConditionalBinding);
            return Some(Found::Items { targets, modules: Vec::new(), rule: "rust_macro", reason });
        }
        if depth > 8 {
            return None;
        }
        let used = table.names.iter().filter(|(entry, _)| entry.starts_with('x')).flat_map(|(_, export)| &export.aliases);
        used.filter_map(|alias| Module::of_key(&alias.module)).find_map(|(inner, _)| self.macro_in(&inner, name, depth + 1))
    }

    fn macro_of_package(&mut self, module: &Module, name: &str) -> Option<Found> {
        let all = self.lookup.members_named(&format!("{name}!"));
        let targets: Vec<Target> =
            all.iter().filter(|target| self.is_same_package(&target.file, &module.file)).cloned().collect();
        let reason = match targets.len() {
            0 => return None,
            1 => None,
            _ => Some(Reason::AmbiguousBinding),
        };
        Some(Found::Items { targets, modules: Vec::new(), rule: "rust_macro", reason })
    }

    /// Follows a path as written in a module.
    fn follow(&mut self, path: &str, module: &Module, space: Space) -> Option<Found> {
        let (path, rooted) = match path.strip_prefix("::") {
            Some(rest) => (rest, true),
            None => (path, false),
        };
        let parts: Vec<&str> = path.split("::").filter(|part| !part.is_empty()).collect();
        let mut found: Option<Found> = None;
        for (position, part) in parts.iter().enumerate() {
            let space = if position + 1 == parts.len() { space } else { Space::Type };
            found = match (found, *part) {
                (None, part) if rooted => Some(self.crate_named(module, part).unwrap_or_else(|| Found::External(part.into()))),
                (None, "crate" | "$crate") => Some(Found::modules(self.roots(module))),
                (None, "self") => Some(Found::modules(vec![module.clone()])),
                (None, "super") => Some(Found::modules(self.parents(module))),
                (None, part) => match self.in_scope_of_module(module, part, space) {
                    None if parts.len() > 1 => Some(Found::External((*part).into())),
                    found => Some(found?),
                },
                (Some(before), part) => Some(self.member_of(&before, part, space, module)?),
            };
        }
        found
    }

    /// Returns what a name below something else means.
    pub(super) fn member_of(&mut self, before: &Found, name: &str, space: Space, from: &Module) -> Option<Found> {
        match before {
            Found::Items { targets, modules, .. } => {
                if name == "super" {
                    let mut parents: Vec<Module> = modules.iter().flat_map(|module| self.parents(module)).collect();
                    parents.sort();
                    parents.dedup();
                    return Some(Found::modules(parents));
                }
                if name == "self" {
                    return Some(before.clone());
                }
                let mut found = Vec::new();
                for module in modules {
                    match self.in_module(module, name, space, from) {
                        // Exported macros are the crate's own, wherever they are written.
                        None if space == Space::Macro && self.is_root(module) => {
                            found.extend(self.macro_of_package(module, name))
                        }
                        other => found.extend(other),
                    }
                }
                if found.is_empty() {
                    found.extend(targets.iter().find_map(|target| self.variant(target, name)));
                }
                let found = merge(found, Reason::AmbiguousModule)?;
                Some(if matches!(&found, Found::Items { rule: "lexical_binding", .. }) { found.by("rust_path") } else { found })
            }
            Found::External(path) => Some(Found::External(format!("{path}::{name}").into())),
            Found::Variant { .. } => None,
            Found::Missing => Some(Found::Missing),
        }
    }

    /// Returns what a name means where it stands in a scope of a view.
    pub(super) fn search(&mut self, view: u32, scope: Handle, name: &str, space: Space) -> Option<Found> {
        let module = self.module_of(view, scope);
        match name {
            "crate" => return Some(Found::modules(self.roots(&module))),
            "self" => return Some(Found::modules(vec![module])),
            "super" => return Some(Found::modules(self.parents(&module))),
            "::" => return None,
            _ => {}
        }
        let mut next = Some(scope);
        while let Some(scope) = next.filter(|scope| scope.in_body()) {
            if let Some(found) = self.in_block(view, scope, name, space, &module) {
                return Some(found);
            }
            let file = self.view(view);
            next = file.outline(scope).scopes.get(scope.index()).and_then(|scope| scope.parent);
        }
        self.in_scope_of_module(&module, name, space)
    }

    /// Returns what the items of a block say of a name.
    fn in_block(&mut self, view: u32, scope: Handle, name: &str, space: Space, module: &Module) -> Option<Found> {
        let asked = (
            Module { file: module.file.clone(), inner: format!("{}{{{}}}", module.inner, scope.index()).into() },
            Arc::from(name),
            space,
            module.clone(),
        );
        if !self.open.insert(asked.clone()) {
            return None;
        }
        let found = self.find_in_block(view, scope, name, space, module);
        self.open.remove(&asked);
        found
    }

    fn find_in_block(&mut self, view: u32, scope: Handle, name: &str, space: Space, module: &Module) -> Option<Found> {
        let file = self.view(view);
        let items = &file.outline(scope).scopes.get(scope.index())?.items;
        let mut targets = Vec::new();
        let mut found = Vec::new();
        let mut globs = Vec::new();
        for item in items {
            match item.meaning {
                ItemMeaning::Declaration(declaration) if item.space == space && file.text(item.name, scope) == name => {
                    let key = file.declaration(declaration)?.key.clone();
                    targets.push(Target { file: file.path.clone(), definition: Some(key) });
                }
                ItemMeaning::Import(import) if file.text(item.name, scope) == name => {
                    let import = file.outline(scope).imports.get(import as usize)?;
                    let path = join_path(file.text(import.module, scope), import.name.map_or("", |name| file.text(name, scope)));
                    found.extend(self.follow_in_block(&path, view, scope, module, space));
                }
                ItemMeaning::Star(import) => globs.push(import),
                _ => {}
            }
        }
        if !targets.is_empty() {
            let reason = (targets.len() > 1).then_some(Reason::ConditionalBinding);
            return Some(Found::Items { targets, modules: Vec::new(), rule: "lexical_binding", reason });
        }
        if let Some(found) = merge(found, Reason::ConditionalBinding) {
            return Some(found.by("explicit_import"));
        }
        let mut found = Vec::new();
        for import in globs {
            let import = file.outline(scope).imports.get(import as usize)?;
            let path = file.text(import.module, scope).to_owned();
            if let Some(Found::Items { targets, modules, .. }) = self.follow_in_block(&path, view, scope, module, Space::Type) {
                for inner in modules {
                    found.extend(self.in_module(&inner, name, space, module));
                }
                found.extend(targets.iter().find_map(|target| self.variant(target, name)));
            }
        }
        found.retain(|found| !matches!(found, Found::Missing | Found::External(_)));
        merge(found, Reason::AmbiguousBinding).map(|found| found.by("rust_glob_import"))
    }

    /// Follows a path as written in a block, whose items may begin it.
    fn follow_in_block(&mut self, path: &str, view: u32, scope: Handle, module: &Module, space: Space) -> Option<Found> {
        let (first, rest) = match path.split_once("::") {
            Some(("", _)) => return self.follow(path, module, space),
            Some((first, rest)) => (first, rest),
            None => (path, ""),
        };
        let first_space = if rest.is_empty() { space } else { Space::Type };
        let outer = self.search(view, scope, first, first_space);
        let mut found = match outer {
            None if !rest.is_empty() => Found::External(first.into()),
            found => found?,
        };
        let parts: Vec<&str> = rest.split("::").filter(|part| !part.is_empty()).collect();
        for (position, part) in parts.iter().enumerate() {
            let space = if position + 1 == parts.len() { space } else { Space::Type };
            found = self.member_of(&found, part, space, module)?;
        }
        Some(found)
    }

    /// Returns what a path that begins with `::` names first.
    pub(super) fn at_root(&mut self, view: u32, scope: Handle, name: &str) -> Found {
        let module = self.module_of(view, scope);
        self.crate_named(&module, name).unwrap_or_else(|| Found::External(name.into()))
    }
}

fn join_path(module: &str, name: &str) -> String {
    match (module, name) {
        ("", name) => name.to_owned(),
        (module, "") => module.to_owned(),
        ("::", name) => format!("::{name}"),
        (module, name) => format!("{module}::{name}"),
    }
}
