//! Names of modules followed to where they are defined.
//!
//! Must not look inside definitions. Invariant: a name that two stars bring from different places means nothing.

use super::super::exports::{DEFAULT, STAR, WHOLE, module_of_import};
use super::super::modules;
use super::*;
use crate::languages::Alias;

impl Inference<'_> {
    /// Follows a name of a module to definitions and modules.
    pub(in super::super) fn follow(&mut self, module: &ModuleKey, name: &Arc<str>) -> Rc<Followed> {
        let key = (module.clone(), Arc::clone(name));
        if let Some(known) = self.followed.get(&key) {
            return Rc::clone(known);
        }
        let mut followed = Followed::default();
        let mut seen = Vec::new();
        self.follow_into(module, name, &mut seen, &mut followed);
        followed.ends.sort();
        followed.ends.dedup();
        let followed = Rc::new(followed);
        self.followed.insert(key, Rc::clone(&followed));
        followed
    }

    fn follow_into(&mut self, module: &ModuleKey, name: &Arc<str>, seen: &mut Vec<(ModuleKey, Arc<str>)>, out: &mut Followed) {
        let key = (module.clone(), Arc::clone(name));
        if seen.contains(&key) || seen.len() > 64 {
            out.reason = out.reason.or(Some(Reason::CyclicBinding));
            return;
        }
        seen.push(key);
        let table = self.table(module);
        match table.names.get(name) {
            Some(export) => {
                if out.reason.is_none() && export.reason.is_some() && !(export.targets.is_empty() && export.aliases.is_empty()) {
                    out.reason = export.reason;
                    out.rule = Some(export.rule);
                }
                out.ends.extend(export.targets.iter().cloned().map(End::Definition));
                if export.rule == STAR {
                    self.follow_stars(&export.aliases, seen, out);
                } else {
                    for alias in &export.aliases {
                        self.follow_alias(alias, seen, out);
                    }
                }
                if export.targets.is_empty() && export.aliases.is_empty() {
                    match export.reason {
                        Some(Reason::LocalBinding) | None => {
                            if let Some(file) = self.file_exporting(module, name) {
                                out.ends.push(End::Value(file, Arc::clone(name)));
                            }
                        }
                        reason => out.reason = out.reason.or(reason),
                    }
                }
            }
            None => {
                let whole: Arc<str> = WHOLE.into();
                if name.as_ref() != WHOLE && table.names.contains_key(&whole) {
                    if name.as_ref() == DEFAULT {
                        self.follow_into(module, &whole, seen, out);
                    } else {
                        self.follow_property(module, &whole, name, out);
                    }
                } else if name.as_ref() == WHOLE || name.as_ref() == DEFAULT && table.open {
                    out.ends.push(End::Module(module.clone()));
                } else {
                    let reason = if table.open { Reason::WildcardImport } else { Reason::UnresolvedExport };
                    out.reason = out.reason.or(Some(reason));
                }
            }
        }
        seen.pop();
    }

    fn follow_alias(&mut self, alias: &Alias, seen: &mut Vec<(ModuleKey, Arc<str>)>, out: &mut Followed) {
        match &alias.name {
            None => out.ends.push(End::Module(alias.module.clone())),
            Some(name) => self.follow_into(&alias.module, name, seen, out),
        }
    }

    /// What several stars bring under one name must be the same thing.
    fn follow_stars(&mut self, aliases: &[Alias], seen: &mut Vec<(ModuleKey, Arc<str>)>, out: &mut Followed) {
        let mut only: Option<SmallVec<[End; 1]>> = None;
        let mut reason = None;
        for alias in aliases {
            let mut one = Followed::default();
            self.follow_alias(alias, seen, &mut one);
            one.ends.sort();
            one.ends.dedup();
            if one.ends.is_empty() {
                reason = reason.or(one.reason);
                continue;
            }
            out.reason = out.reason.or(one.reason);
            out.rule = out.rule.or(one.rule);
            match &only {
                Some(known) if *known != one.ends => {
                    // Nothing is exported under this name.
                    out.reason = Some(Reason::AmbiguousBinding);
                    return;
                }
                _ => only = Some(one.ends),
            }
        }
        match only {
            Some(ends) => out.ends.extend(ends),
            None => out.reason = out.reason.or(reason),
        }
    }

    /// A name taken from what a module is as a whole.
    fn follow_property(&mut self, module: &ModuleKey, whole: &Arc<str>, name: &Arc<str>, out: &mut Followed) {
        let followed = self.follow(module, whole);
        for end in &followed.ends {
            for value in self.end_values(end, Meaning::Value).into_iter().chain(self.end_values(end, Meaning::Space)) {
                let Some(member) = self.member(&value, name) else { continue };
                for target in self.member_targets(&member) {
                    if !out.ends.contains(&End::Definition(target.clone())) {
                        out.ends.push(End::Definition(target));
                    }
                }
            }
        }
        if out.ends.is_empty() {
            out.reason = out.reason.or(followed.reason).or(Some(Reason::UnresolvedExport));
        }
    }

    /// Returns the file among those of a module that exports a name.
    fn file_exporting(&mut self, module: &ModuleKey, name: &str) -> Option<RepoPath> {
        let file = modules::file_of(module)?;
        let declared = modules::declarations_of(&file, self.lookup);
        std::iter::once(file).chain(declared).find(|file| {
            let view = self.view_of(file);
            view.is_some_and(|view| self.views[view as usize].surface.bound(name).is_some())
        })
    }

    /// Follows an import of a view (an index of the surface's imports or the body's).
    pub(in super::super) fn import(&mut self, view: u32, in_body: bool, import: u32) -> Rc<Followed> {
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
            match module_of_import(outline, import, &file.path, &file.context, self.lookup) {
                Err(reason) => followed.reason = Some(reason),
                Ok(module) => match import.name {
                    None => followed.ends.push(End::Module(module)),
                    Some(name) => {
                        let name: Arc<str> = outline.names.get(name).into();
                        followed = self.follow(&module, &name).as_ref().clone();
                    }
                },
            }
        }
        let followed = Rc::new(followed);
        self.imports.insert(key, Rc::clone(&followed));
        followed
    }
}
