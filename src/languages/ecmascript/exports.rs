//! What a module gives to the outside: its own names, and those of its star exports.
//!
//! Must not know who asks. Invariant: a table depends on its own file's surface and, for the names only, on the tables of its star exports;
//! what comes from other modules stays an alias.

use std::collections::BTreeMap;
use std::sync::Arc;

use smallvec::SmallVec;

use super::modules;
use crate::languages::settle::settle;
use crate::languages::{Alias, Export, ExportTable, Lookup, ModuleKey, ModuleResolution};
use crate::model::facts::{Binding, Handle, Import, Outline, Reaching, Role, Surface, Use};
use crate::model::{Reason, RepoPath, Resolution, Target};

/// The name under which a module gives what it is as a whole.
pub(super) const WHOLE: &str = "export=";
pub(super) const DEFAULT: &str = "default";

/// The name under which a module keeps what it declares for every file (`declare global`); no source can write it.
pub(super) const EVERYWHERE: &str = "declare global";

/// The rule of names that a star brings: those of several stars must be one.
pub(super) const STAR: &str = "wildcard_import";

/// Returns the modules whose names a module's stars give away, sorted.
pub(in crate::languages) fn export_sources(module: &ModuleKey, lookup: &dyn Lookup) -> Vec<ModuleKey> {
    let mut sources = Vec::new();
    for (path, surface) in surfaces(module, lookup) {
        let context = lookup.context(path.directory());
        for star in &surface.stars {
            sources.extend(star_module(&path, &surface, *star, &context, lookup).ok());
        }
    }
    sources.sort();
    sources.dedup();
    sources
}

/// Solves the tables of modules that draw on each other.
pub(in crate::languages) fn solve(component: &[ModuleKey], lookup: &dyn Lookup) -> Vec<ExportTable> {
    let parts: Vec<Vec<(RepoPath, Arc<Surface>)>> = component.iter().map(|module| surfaces(module, lookup)).collect();
    settle(component, lookup, |index, known| table(&component[index], &parts[index], known, lookup))
}

/// Returns the surfaces that make a module: its source's, then its declarations'.
fn surfaces(module: &ModuleKey, lookup: &dyn Lookup) -> Vec<(RepoPath, Arc<Surface>)> {
    let Some(file) = modules::file_of(module) else { return Vec::new() };
    let declared = modules::declarations_of(&file, lookup);
    std::iter::once(file).chain(declared).filter_map(|path| lookup.surface(&path).map(|surface| (path, surface))).collect()
}

fn star_module(
    path: &RepoPath,
    surface: &Surface,
    star: Reaching,
    context: &str,
    lookup: &dyn Lookup,
) -> Result<ModuleKey, Reason> {
    let Some(Binding { role: Role::Star(import), .. }) = surface.outline.bindings.get(star.binding.index()) else {
        return Err(Reason::UnresolvedImport);
    };
    let import = surface.outline.imports.get(*import as usize).ok_or(Reason::UnresolvedImport)?;
    module_of_import(&surface.outline, import, path, context, lookup)
}

/// Returns the module that an import names, or why there is none.
pub(super) fn module_of_import(
    outline: &Outline,
    import: &Import,
    path: &RepoPath,
    context: &str,
    lookup: &dyn Lookup,
) -> Result<ModuleKey, Reason> {
    match &*lookup.module(context, &modules::specifier(outline.names.get(import.module), path)) {
        ModuleResolution::Found(module) => Ok(module.clone()),
        ModuleResolution::Ambiguous(_) => Err(Reason::AmbiguousModule),
        ModuleResolution::Missing => Err(Reason::UnresolvedImport),
        ModuleResolution::External => Err(Reason::ExternalImport),
    }
}

fn table(
    module: &ModuleKey,
    parts: &[(RepoPath, Arc<Surface>)],
    known: &dyn Fn(&ModuleKey) -> Arc<ExportTable>,
    lookup: &dyn Lookup,
) -> ExportTable {
    let mut whole = ExportTable::default();
    for (path, surface) in parts {
        let context = lookup.context(path.directory());
        whole.open |= surface.open;
        for (name, used) in &surface.scope {
            let text = surface.outline.names.get(*name);
            // What the source has, the declarations only describe.
            if !whole.names.contains_key(text) {
                whole.names.insert(Arc::from(text), export(path, surface, *used, &context, lookup));
            }
        }
    }
    let mut starred: BTreeMap<Arc<str>, Vec<Alias>> = BTreeMap::new();
    for (path, surface) in parts {
        let context = lookup.context(path.directory());
        for star in &surface.stars {
            let Ok(source) = star_module(path, surface, *star, &context, lookup) else {
                whole.open = true;
                continue;
            };
            if source == *module {
                continue;
            }
            let table = known(&source);
            whole.open |= table.open;
            for name in table.names.keys().filter(|name| !matches!(name.as_ref(), DEFAULT | WHOLE | EVERYWHERE)) {
                if !whole.names.contains_key(name) {
                    let alias = Alias { module: source.clone(), name: Some(Arc::clone(name)) };
                    let aliases = starred.entry(Arc::clone(name)).or_default();
                    if !aliases.contains(&alias) {
                        aliases.push(alias);
                    }
                }
            }
        }
    }
    for (name, mut aliases) in starred {
        aliases.sort();
        let export =
            Export { targets: SmallVec::new(), aliases, resolution: Resolution::ResolvedStatic, rule: STAR, reason: None };
        whole.names.insert(name, export);
    }
    whole
}

fn export(path: &RepoPath, surface: &Surface, used: Use, context: &str, lookup: &dyn Lookup) -> Export {
    let outline = &surface.outline;
    let mut made = Export {
        targets: SmallVec::new(),
        aliases: Vec::new(),
        resolution: Resolution::ResolvedStatic,
        rule: "module_export",
        reason: None,
    };
    let mut elsewhere = None;
    let mut add = |binding: Handle| {
        let Some(binding) = outline.bindings.get(binding.index()) else { return };
        if let Role::Import(import) = binding.role {
            let Some(import) = outline.imports.get(import as usize) else { return };
            match module_of_import(outline, import, path, context, lookup) {
                Ok(module) => {
                    let name = import.name.map(|name| outline.names.get(name).into());
                    made.aliases.push(Alias { module, name });
                }
                Err(reason) => elsewhere = Some(reason),
            }
            return;
        }
        match binding.declaration.and_then(|handle| outline.declarations.get(handle.index())) {
            Some(declaration) => {
                made.targets.push(Target { file: path.clone(), definition: Some(declaration.key.clone()) });
            }
            None => elsewhere = Some(Reason::LocalBinding),
        }
    };
    let mut conditional = false;
    match used {
        Use::One(binding) => add(binding),
        Use::Many(set) => {
            for reaching in outline.sets.get(set.index()).into_iter().flatten() {
                conditional |= reaching.conditional;
                add(reaching.binding);
            }
        }
        Use::Free(_) => {}
    }
    made.targets.sort();
    made.targets.dedup();
    made.aliases.sort();
    made.aliases.dedup();
    if conditional {
        made.reason = Some(Reason::ConditionalBinding);
        made.rule = "conditional_binding";
    } else if made.targets.is_empty() && made.aliases.is_empty() {
        made.reason = elsewhere.or(Some(Reason::LocalBinding));
    }
    if made.reason.is_some() {
        made.resolution = Resolution::Candidate;
    }
    made
}
