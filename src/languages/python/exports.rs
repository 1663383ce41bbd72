//! What a Python module gives to the outside: its own names, and those of its star imports.
//!
//! Must not know who asks. Invariant: a table depends on its own file's surface and on the tables of its star imports only; names
//! imported one by one stay aliases.

use std::collections::BTreeMap;
use std::sync::Arc;

use smallvec::SmallVec;

use super::modules;
use crate::languages::settle::settle;
use crate::languages::{Alias, Export, ExportTable, Lookup, ModuleKey, ModuleResolution};
use crate::model::facts::{Binding, Expression, Handle, Import, Outline, PublicStep, Reaching, Role, Surface, Use};
use crate::model::{Reason, RepoPath, Resolution, Target};

/// Returns the modules that a module's star imports and `__all__` draw on, sorted.
pub(super) fn export_sources(module: &ModuleKey, lookup: &dyn Lookup) -> Vec<ModuleKey> {
    let mut sources = Vec::new();
    for (path, surface) in surfaces(module, lookup) {
        let context = lookup.context(path.directory());
        for star in &surface.stars {
            sources.extend(star_modules(&surface, *star, &context, lookup));
        }
        for step in surface.public.iter().flatten() {
            if let PublicStep::Extend(expression) = step
                && let Some(module) = named_module(&surface.outline, *expression, &context, lookup)
            {
                sources.push(module);
            }
        }
    }
    sources.sort();
    sources.dedup();
    sources
}

/// Solves the tables of modules that draw on each other.
pub(super) fn solve(component: &[ModuleKey], lookup: &dyn Lookup) -> Vec<ExportTable> {
    let parts: Vec<Vec<(RepoPath, Arc<Surface>)>> = component.iter().map(|module| surfaces(module, lookup)).collect();
    settle(component, lookup, |index, known| table(&component[index], &parts[index], known, lookup))
}

/// Returns the surfaces that make a module: its source's, then its stub's.
fn surfaces(module: &ModuleKey, lookup: &dyn Lookup) -> Vec<(RepoPath, Arc<Surface>)> {
    let Some(file) = modules::file_of(module) else { return Vec::new() };
    let stub = modules::stub_of(&file, lookup);
    std::iter::once(file).chain(stub).filter_map(|path| lookup.surface(&path).map(|surface| (path, surface))).collect()
}

fn star_modules(surface: &Surface, star: Reaching, context: &str, lookup: &dyn Lookup) -> Vec<ModuleKey> {
    let Some(Binding { role: Role::Star(import), .. }) = surface.outline.bindings.get(star.binding.index()) else {
        return Vec::new();
    };
    let Some(import) = surface.outline.imports.get(*import as usize) else { return Vec::new() };
    match &*lookup.module(context, surface.outline.names.get(import.module)) {
        ModuleResolution::Found(module) => vec![module.clone()],
        ModuleResolution::Ambiguous(modules) => modules.clone(),
        ModuleResolution::Missing | ModuleResolution::External => Vec::new(),
    }
}

/// Returns the module that a plain name or attribute chain names.
fn named_module(outline: &Outline, expression: Handle, context: &str, lookup: &dyn Lookup) -> Option<ModuleKey> {
    match outline.expressions.get(expression.index())? {
        Expression::Name(Use::One(binding)) => {
            let Role::Import(import) = outline.bindings.get(binding.index())?.role else { return None };
            match import_aliases(outline, outline.imports.get(import as usize)?, context, lookup) {
                Imported::Aliases(aliases) => match aliases.as_slice() {
                    [Alias { module, name: None }] => Some(module.clone()),
                    [Alias { module, name: Some(name) }] => modules::submodule(module, name, lookup),
                    _ => None,
                },
                Imported::Nowhere(_) => None,
            }
        }
        Expression::Attribute { object, name } => {
            let package = named_module(outline, *object, context, lookup)?;
            modules::submodule(&package, outline.names.get(*name), lookup)
        }
        _ => None,
    }
}

/// What an import stands for.
pub(super) enum Imported {
    /// One thing, or (when a module name is ambiguous) several.
    Aliases(Vec<Alias>),
    Nowhere(Reason),
}

/// Returns what an import stands for, not following further.
pub(super) fn import_aliases(outline: &Outline, import: &Import, context: &str, lookup: &dyn Lookup) -> Imported {
    let whole = outline.names.get(import.module);
    let specifier = if import.root_only { whole.split('.').next().unwrap_or(whole) } else { whole };
    let name: Option<Arc<str>> = import.name.map(|name| outline.names.get(name).into());
    match &*lookup.module(context, specifier) {
        ModuleResolution::Found(module) => Imported::Aliases(vec![Alias { module: module.clone(), name }]),
        ModuleResolution::Ambiguous(modules) => {
            // Of the directories of a namespace package those count that have what is asked for; of packages, too, that has all of the path.
            let mut kept: Vec<&ModuleKey> = modules.iter().collect();
            if specifier != whole {
                if let ModuleResolution::Found(found) = &*lookup.module(context, whole) {
                    kept.retain(|module| modules::is_below(found, module));
                }
            } else if let Some(name) = &name {
                kept.retain(|module| modules::file_of(module).is_some() || modules::submodule(module, name, lookup).is_some());
            }
            if kept.is_empty() {
                kept = modules.iter().collect();
            }
            Imported::Aliases(kept.into_iter().map(|module| Alias { module: module.clone(), name: name.clone() }).collect())
        }
        ModuleResolution::Missing => Imported::Nowhere(Reason::UnresolvedImport),
        ModuleResolution::External => Imported::Nowhere(Reason::ExternalImport),
    }
}

struct Making {
    targets: SmallVec<[Target; 1]>,
    aliases: Vec<Alias>,
    /// Some way leads to nothing in the repository.
    elsewhere: Option<Reason>,
    reason: Option<Reason>,
    rule: &'static str,
}

impl Making {
    fn new() -> Self {
        Self { targets: SmallVec::new(), aliases: Vec::new(), elsewhere: None, reason: None, rule: "module_export" }
    }

    fn finish(mut self) -> Export {
        self.targets.sort();
        self.targets.dedup();
        self.aliases.sort();
        self.aliases.dedup();
        let ways = self.targets.len() + self.aliases.len();
        let mut reason = self.reason;
        if reason.is_none() && (ways > 1 || ways == 1 && self.elsewhere.is_some()) {
            reason = Some(Reason::ConditionalBinding);
        }
        if ways == 0 {
            reason = reason.or(self.elsewhere).or(Some(Reason::LocalBinding));
        }
        let rule = match reason {
            Some(Reason::ConditionalBinding) => "conditional_binding",
            _ => self.rule,
        };
        let resolution = if reason.is_none() { Resolution::ResolvedStatic } else { Resolution::Candidate };
        Export { targets: self.targets, aliases: self.aliases, resolution, rule, reason }
    }
}

fn table(
    module: &ModuleKey,
    parts: &[(RepoPath, Arc<Surface>)],
    known: &dyn Fn(&ModuleKey) -> Arc<ExportTable>,
    lookup: &dyn Lookup,
) -> ExportTable {
    let mut whole = ExportTable::default();
    let mut public: Option<Vec<Arc<str>>> = None;
    for (path, surface) in parts {
        let context = lookup.context(path.directory());
        let reader = Reader { module, path, surface, context: &context, known, lookup };
        let mut names = BTreeMap::new();
        whole.open |= surface.open;
        for (name, used) in &surface.scope {
            let text = surface.outline.names.get(*name);
            if let Some(export) = reader.export(text, *used) {
                names.insert(Arc::from(text), export);
            }
        }
        reader.add_stars(&mut names, &mut whole.open);
        if let Some(steps) = &surface.public {
            let list = reader.public_names(steps, &mut whole.open);
            for name in &list {
                if !names.contains_key(name)
                    && let Some(submodule) = modules::submodule(module, name, lookup)
                {
                    let mut making = Making::new();
                    making.aliases.push(Alias { module: submodule, name: None });
                    names.insert(Arc::clone(name), making.finish());
                }
            }
            public = public.or(Some(list));
        }
        // What the source has, the stub only describes.
        for (name, export) in names {
            whole.names.entry(name).or_insert(export);
        }
    }
    whole.star = match public {
        Some(mut list) => {
            list.retain(|name| whole.names.contains_key(name));
            list.sort();
            list.dedup();
            Some(list)
        }
        None if whole.names.keys().any(|name| name.starts_with('_')) => {
            Some(whole.names.keys().filter(|name| !name.starts_with('_')).cloned().collect())
        }
        None => None,
    };
    whole
}

/// Returns whether `import *` of a module with this table brings the name.
pub(super) fn star_brings(table: &ExportTable, name: &str) -> bool {
    match &table.star {
        Some(list) => list.binary_search_by(|entry| entry.as_ref().cmp(name)).is_ok(),
        None => table.names.contains_key(name),
    }
}

struct Reader<'a> {
    module: &'a ModuleKey,
    path: &'a RepoPath,
    surface: &'a Surface,
    context: &'a str,
    known: &'a dyn Fn(&ModuleKey) -> Arc<ExportTable>,
    lookup: &'a dyn Lookup,
}

impl Reader<'_> {
    fn export(&self, name: &str, used: Use) -> Option<Export> {
        let mut making = Making::new();
        match used {
            Use::One(binding) => {
                self.add(name, binding, &mut making);
            }
            Use::Many(set) => {
                let mut found = false;
                for reaching in self.surface.outline.sets.get(set.index()).into_iter().flatten() {
                    let brings = self.add(name, reaching.binding, &mut making);
                    found |= brings;
                    if brings && !reaching.conditional {
                        break;
                    }
                }
                if !found {
                    return None;
                }
            }
            Use::Free(_) => return None,
        }
        Some(making.finish())
    }

    /// Adds what one binding makes of a name; returns whether it binds it at all.
    fn add(&self, name: &str, binding: Handle, making: &mut Making) -> bool {
        let outline = &self.surface.outline;
        let Some(binding) = outline.bindings.get(binding.index()) else { return false };
        match binding.role {
            Role::Import(import) => match outline.imports.get(import as usize) {
                Some(import) => match import_aliases(outline, import, self.context, self.lookup) {
                    Imported::Aliases(aliases) => {
                        let itself = |alias: &Alias| alias.module == *self.module && alias.name.as_deref() == Some(name);
                        if aliases.iter().all(itself) && modules::submodule(self.module, name, self.lookup).is_none() {
                            // A module that imports its own name binds nothing new.
                            return false;
                        }
                        if aliases.len() > 1 {
                            making.reason = Some(Reason::AmbiguousModule);
                        }
                        making.aliases.extend(aliases);
                    }
                    Imported::Nowhere(reason) => making.elsewhere = Some(reason),
                },
                None => return false,
            },
            Role::Star(import) => {
                let Some(import) = outline.imports.get(import as usize) else { return false };
                return self.add_star(name, import, making);
            }
            _ => match binding.declaration.and_then(|handle| outline.declarations.get(handle.index())) {
                Some(declaration) => {
                    making.targets.push(Target { file: self.path.clone(), definition: Some(declaration.key.clone()) });
                }
                None => making.elsewhere = Some(Reason::LocalBinding),
            },
        }
        true
    }

    fn add_star(&self, name: &str, import: &Import, making: &mut Making) -> bool {
        let specifier = self.surface.outline.names.get(import.module);
        let mut found = false;
        match &*self.lookup.module(self.context, specifier) {
            ModuleResolution::Found(module) => found |= self.add_star_of(name, module, making),
            ModuleResolution::Ambiguous(modules) => {
                making.reason = Some(Reason::AmbiguousModule);
                for module in modules {
                    found |= self.add_star_of(name, module, making);
                }
            }
            ModuleResolution::Missing | ModuleResolution::External => {}
        }
        found
    }

    fn add_star_of(&self, name: &str, module: &ModuleKey, making: &mut Making) -> bool {
        let table = (self.known)(module);
        let Some(export) = table.names.get(name) else { return false };
        if !star_brings(&table, name) {
            return false;
        }
        let itself = |alias: &Alias| alias.module == *self.module && alias.name.as_deref() == Some(name);
        if export.targets.is_empty() && !export.aliases.is_empty() && export.aliases.iter().all(itself) {
            // It comes back from where it went: the name's own binding decides.
            return false;
        }
        making.targets.extend(export.targets.iter().cloned());
        making.aliases.extend(export.aliases.iter().filter(|alias| !itself(alias)).cloned());
        making.rule = "wildcard_import";
        if export.targets.is_empty() && export.aliases.is_empty() {
            making.elsewhere = making.elsewhere.or(export.reason).or(Some(Reason::ExternalImport));
        } else if export.reason.is_some() {
            making.reason = making.reason.or(export.reason);
        }
        true
    }

    /// Adds the names that only star imports bind.
    fn add_stars(&self, names: &mut BTreeMap<Arc<str>, Export>, open: &mut bool) {
        let mut makings: BTreeMap<Arc<str>, (Making, bool)> = BTreeMap::new();
        for star in &self.surface.stars {
            let Some(Binding { role: Role::Star(import), .. }) = self.surface.outline.bindings.get(star.binding.index()) else {
                continue;
            };
            let Some(import) = self.surface.outline.imports.get(*import as usize) else { continue };
            let sources = star_modules(self.surface, *star, self.context, self.lookup);
            *open |= sources.is_empty();
            let mut brought: Vec<Arc<str>> = Vec::new();
            for source in &sources {
                let table = (self.known)(source);
                *open |= table.open;
                match &table.star {
                    Some(list) => brought.extend(list.iter().cloned()),
                    None => brought.extend(table.names.keys().cloned()),
                }
            }
            for name in brought {
                if names.contains_key(&name) {
                    continue;
                }
                let (making, closed) = makings.entry(Arc::clone(&name)).or_insert_with(|| (Making::new(), false));
                if !*closed && self.add_star(&name, import, making) {
                    *closed = !star.conditional;
                }
            }
        }
        names.extend(makings.into_iter().map(|(name, (making, _))| (name, making.finish())));
    }

    fn public_names(&self, steps: &[PublicStep], open: &mut bool) -> Vec<Arc<str>> {
        let outline = &self.surface.outline;
        let mut list: Vec<Arc<str>> = Vec::new();
        for step in steps {
            match step {
                PublicStep::Add(name) => list.push(outline.names.get(*name).into()),
                PublicStep::Remove(name) => {
                    let name = outline.names.get(*name);
                    list.retain(|entry| entry.as_ref() != name);
                }
                PublicStep::Extend(expression) => match named_module(outline, *expression, self.context, self.lookup) {
                    Some(module) => {
                        let table = (self.known)(&module);
                        match &table.star {
                            Some(names) => list.extend(names.iter().cloned()),
                            None => list.extend(table.names.keys().cloned()),
                        }
                        *open |= table.open;
                    }
                    None => *open = true,
                },
                PublicStep::Unknown => *open = true,
            }
        }
        list
    }
}
