//! What a path names: along modules, imports, re-exports and globs.
//!
//! Must not know types beyond the variants of an enum. Invariant: what is imported by name or declared goes before what a glob brings,
//! and two globs that bring different things bring none.

use std::ops::Bound;
use std::rc::Rc;
use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::search::Globs;
use super::{Asked, Inference};
use crate::languages::rust::modules::{self, BESIDE, Module, Part};
use crate::languages::{Alias, ExportTable};
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
        // Whoever comes here again on the way to the answer finds none.
        self.parents.borrow_mut().insert(file.clone(), Rc::from([]));
        let mut found = Vec::new();
        for outer in self.lookup.members_named(&format!("mod:{}", modules::name_of_file(file))).iter() {
            // A module is in the directory of the one around it, or below.
            let below = file.directory().strip_prefix(outer.file.directory());
            if outer.file != *file
                && below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/') || rest.len() == file.directory().len())
            {
                self.add_parents(file, &outer.file, &mut found);
            }
        }
        let is_root = self.package_in(file.directory()).is_some_and(|package| package.is_root(file.as_str()));
        if !is_root {
            // `#[path = "…"]` may stand anywhere.
            for outer in self.lookup.members_named(&format!("path:{}", file.file_name())).iter() {
                self.add_parents(file, &outer.file, &mut found);
            }
        }
        found.sort();
        found.dedup();
        let found: Rc<[Module]> = found.into();
        self.parents.borrow_mut().insert(file.clone(), Rc::clone(&found));
        found
    }

    fn add_parents(&self, file: &RepoPath, outer: &RepoPath, found: &mut Vec<Module>) {
        let table = self.lookup.exports(&Module::of_file(outer).key(Part::Children));
        let Some(export) = table.names.get(file.as_str()) else { return };
        let aliases = export.aliases.iter().filter(|alias| alias.name.is_none() || self.leads(outer));
        found.extend(aliases.filter_map(|alias| Some(Module::of_key(&alias.module)?.0)));
    }

    /// Returns whether the files of a file's modules are beside it, though neither its name nor a manifest says so: a file that a
    /// `#[path]` leads to, or where there is no manifest the root of a crate.
    fn leads(&self, file: &RepoPath) -> bool {
        let by_path = self.lookup.members_named(&format!("path:{}", file.file_name())).iter().any(|outer| {
            let table = self.lookup.exports(&Module::of_file(&outer.file).key(Part::Children));
            table.names.get(file.as_str()).is_some_and(|export| export.aliases.iter().any(|alias| alias.name.is_none()))
        });
        by_path || (self.package_in(file.directory()).is_none() && self.parents_of_file(file).is_empty())
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

    /// Returns what a name of a module means to what stands in `from`. What only a glob from outside may bring is not found.
    pub(super) fn in_module(&mut self, module: &Module, name: &str, space: Space, from: &Module) -> Option<Found> {
        let asked: Asked = (module.clone(), Arc::from(name), space, from.clone());
        self.once(asked, |this| this.find_in_module(module, name, space, from))
    }

    fn find_in_module(&mut self, module: &Module, name: &str, space: Space, from: &Module) -> Option<Found> {
        // All modules that globs lead to are asked, each once, up to those that have the name themselves.
        let mut seen = FxHashSet::default();
        let mut next = vec![(module.clone(), self.part(module, from))];
        let mut found = Vec::new();
        let mut mentioned = false;
        while let Some((inner, part)) = next.pop() {
            if !seen.insert((inner.clone(), part)) {
                continue;
            }
            let table = self.exports(&inner, part);
            if let Some(one) = self.named_in_module(&inner, &table, name, space) {
                if seen.len() == 1 {
                    return Some(one);
                }
                found.push(one);
                continue;
            }
            mentioned |= table.names.contains_key(format!("?{name}").as_str());
            let globs = self.globs_of(&inner, part, &table);
            for further in &globs.modules {
                next.push((further.clone(), self.part(further, &inner)));
            }
            found.extend(globs.enums.iter().find_map(|target| self.variant(target, name)));
        }
        found.retain(|found| *found != Found::Missing);
        let found = merge(found, Reason::AmbiguousBinding)?.by("rust_glob_import");
        Some(if mentioned { found.because(Reason::WildcardImport) } else { found })
    }

    /// Returns what is declared or imported under a name in a module.
    fn named_in_module(&mut self, module: &Module, table: &ExportTable, name: &str, space: Space) -> Option<Found> {
        let mark = match space {
            Space::Value => 'v',
            Space::Macro => 'm',
            Space::Type | Space::Every | Space::Tokens => 't',
        };
        let own = table.names.get(format!("{mark}{name}").as_str()).map(|export| {
            let targets: Vec<Target> = export.targets.to_vec();
            let is_there = |alias: &&Alias| alias.name.as_deref() != Some(BESIDE) || self.leads(&module.file);
            let modules = export.aliases.iter().filter(is_there).filter_map(|alias| Module::of_key(&alias.module));
            let modules: Vec<Module> = modules.map(|(module, _)| module).collect();
            let reason = (targets.len().max(modules.len()) > 1).then_some(Reason::ConditionalBinding);
            Found::Items { targets, modules, rule: "lexical_binding", reason }
        });
        let marks: &[char] = if mark == 't' { &['u', 'n'] } else { &['u'] };
        let mut paths: Vec<Arc<str>> = Vec::new();
        for mark in marks {
            let Some(export) = table.names.get(format!("{mark}{name}").as_str()) else { continue };
            paths.extend(export.aliases.iter().filter_map(|alias| alias.name.clone()));
        }
        self.declared_or_imported(own, &paths, space, &mut |this, path, space| this.follow(path, module, space))
    }

    /// Puts together what is declared under a name, and the paths imported under it.
    fn declared_or_imported(
        &mut self,
        own: Option<Found>,
        paths: &[Arc<str>],
        space: Space,
        follow: &mut dyn FnMut(&mut Self, &str, Space) -> Option<Found>,
    ) -> Option<Found> {
        let mut found = Vec::new();
        let mut lost = false;
        let alone = own.is_none() && paths.len() == 1;
        for path in paths {
            match follow(self, path, space).filter(|found| *found != Found::Missing) {
                // The standard library has modules and macros at its root, and no values.
                Some(Found::External(path)) if space == Space::Value && is_module_of_std(&path) && !alone => {}
                Some(one) => found.push(one),
                None if alone => {}
                // An import of this name in another space is no alternative, one that leads nowhere may be.
                None => {
                    lost |= ![Space::Type, Space::Value, Space::Macro]
                        .into_iter()
                        .any(|other| other != space && follow(self, path, other).is_some_and(|found| found != Found::Missing));
                }
            }
        }
        let is_declared = own.is_some();
        found.extend(own);
        // What is declared and imported under one name, or imported twice, is so under different conditions.
        let found = merge(found, Reason::ConditionalBinding)?;
        let found = if is_declared { found } else { found.by("explicit_import") };
        Some(if lost { found.because(Reason::ConditionalBinding) } else { found })
    }

    /// Returns where the globs of a module lead.
    fn globs_of(&mut self, module: &Module, part: Part, table: &ExportTable) -> Rc<Globs> {
        let Some(globs) = table.names.get("*") else { return Rc::default() };
        let paths: Vec<Arc<str>> = globs.aliases.iter().filter_map(|alias| alias.name.clone()).collect();
        self.globs((module.clone(), part), &paths, &mut |this, path| this.follow(path, module, Space::Type))
    }

    /// Returns whether globs of a module lead out of the repository, at once or by others.
    fn has_outer_globs(&mut self, module: &Module, from: &Module) -> bool {
        let mut seen = FxHashSet::default();
        let mut next = vec![(module.clone(), self.part(module, from))];
        while let Some((inner, part)) = next.pop() {
            if !seen.insert((inner.clone(), part)) {
                continue;
            }
            let table = self.exports(&inner, part);
            let globs = self.globs_of(&inner, part, &table);
            if globs.outside {
                return true;
            }
            for further in &globs.modules {
                next.push((further.clone(), self.part(further, &inner)));
            }
        }
        false
    }

    /// Returns the variant of that name of an enum.
    fn variant(&mut self, target: &Target, name: &str) -> Option<Found> {
        let place = self.place_of(target)?;
        let view = self.view(place.view);
        let crate::model::facts::Shape::Type(shape) = view.declaration(place.handle)?.shape else { return None };
        let shape = place.handle.beside(shape);
        let made = view.shape(shape)?;
        let has = made.form == TypeForm::Enum && made.fields.iter().any(|(variant, _)| view.text(*variant, shape) == name);
        has.then(|| Found::Variant { of: target.clone(), name: name.into() })
    }

    /// Returns what the first word of a path means in a module, where no block stands between.
    pub(super) fn in_scope_of_module(&mut self, module: &Module, name: &str, space: Space) -> Option<Found> {
        if let Some(found) = self.in_module(module, name, space, module) {
            return Some(found);
        }
        let found = match space {
            Space::Macro => self.macro_above(module, name),
            Space::Type => self.crate_named(module, name),
            _ => None,
        };
        found.or_else(|| {
            let is_outside = super::known::is_in_prelude(name, space) || self.has_outer_globs(module, module);
            is_outside.then(|| Found::External(name.into()))
        })
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
            if let Some(found) = self.macro_in(outer, name) {
                return Some(found);
            }
        }
        self.macro_of_package(module, name)
    }

    /// Finds a macro in a module, or in the modules of it whose macros are used there.
    fn macro_in(&mut self, module: &Module, name: &str) -> Option<Found> {
        let mut seen = FxHashSet::default();
        let mut next = vec![module.clone()];
        while let Some(module) = next.pop() {
            if !seen.insert(module.clone()) {
                continue;
            }
            let table = self.exports(&module, Part::Own);
            if let Some(export) = table.names.get(format!("m{name}").as_str()) {
                let targets = export.targets.to_vec();
                let reason = (targets.len() > 1).then_some(Reason::ConditionalBinding);
                return Some(Found::Items { targets, modules: Vec::new(), rule: "rust_macro", reason });
            }
            let used = table.names.range::<str, _>((Bound::Included("x"), Bound::Excluded("y")));
            let aliases = used.rev().flat_map(|(_, export)| export.aliases.iter().rev());
            next.extend(aliases.filter_map(|alias| Some(Module::of_key(&alias.module)?.0)));
        }
        None
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
                            found.extend(self.macro_of_package(module, name));
                        }
                        None if self.has_outer_globs(module, from) => found.push(Found::External(name.into())),
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
        let asked = (block_as_module(module, scope), Arc::from(name), space, module.clone());
        self.once(asked, |this| this.find_in_block(view, scope, name, space, module))
    }

    fn find_in_block(&mut self, view: u32, scope: Handle, name: &str, space: Space, module: &Module) -> Option<Found> {
        let file = self.view(view);
        let items = &file.outline(scope).scopes.get(scope.index())?.items;
        let path_of = |import: u32| {
            let import = file.outline(scope).imports.get(import as usize)?;
            Some(join_path(file.text(import.module, scope), import.name.map_or("", |name| file.text(name, scope))))
        };
        let mut targets = Vec::new();
        let mut paths: Vec<Arc<str>> = Vec::new();
        let mut globs: Vec<Arc<str>> = Vec::new();
        for item in items {
            match item.meaning {
                ItemMeaning::Declaration(declaration) if item.space == space && file.text(item.name, scope) == name => {
                    let key = file.declaration(declaration)?.key.clone();
                    targets.push(Target { file: file.path.clone(), definition: Some(key) });
                }
                ItemMeaning::Import(import) if file.text(item.name, scope) == name => {
                    paths.extend(path_of(import).map(Arc::from));
                }
                ItemMeaning::Star(import) => globs.extend(path_of(import).map(Arc::from)),
                _ => {}
            }
        }
        let own = (!targets.is_empty()).then(|| {
            let reason = (targets.len() > 1).then_some(Reason::ConditionalBinding);
            Found::Items { targets, modules: Vec::new(), rule: "lexical_binding", reason }
        });
        let mut follow = |this: &mut Self, path: &str, space| this.follow_in_block(path, view, scope, module, space);
        if let Some(found) = self.declared_or_imported(own, &paths, space, &mut follow) {
            return Some(found);
        }
        let mut follow = |this: &mut Self, path: &str| this.follow_in_block(path, view, scope, module, Space::Type);
        let globs = self.globs((block_as_module(module, scope), Part::Own), &globs, &mut follow);
        let mut found = Vec::new();
        for inner in &globs.modules {
            found.extend(self.in_module(inner, name, space, module));
        }
        found.extend(globs.enums.iter().find_map(|target| self.variant(target, name)));
        found.retain(|found| *found != Found::Missing);
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

/// Returns what stands for a block where modules are told apart.
fn block_as_module(module: &Module, scope: Handle) -> Module {
    Module { file: module.file.clone(), inner: format!("{}{{{}}}", module.inner, scope.index()).into() }
}

fn is_module_of_std(path: &str) -> bool {
    let mut parts = path.split("::").filter(|part| !part.is_empty());
    matches!(parts.next(), Some("std" | "core" | "alloc")) && parts.next().is_some() && parts.next().is_none()
}

fn join_path(module: &str, name: &str) -> String {
    match (module, name) {
        ("", name) => name.to_owned(),
        (module, "") => module.to_owned(),
        ("::", name) => format!("::{name}"),
        (module, name) => format!("{module}::{name}"),
    }
}
