//! Where a name of a module leads: through imports, stars and export tables to definitions and modules.
//!
//! Must not know expressions. Invariant: an end is certain only while no reason says otherwise.

use std::rc::Rc;
use std::sync::Arc;

use smallvec::SmallVec;

use super::state::Inference;
use super::value::{End, Followed};
use super::view::bindings_of;
use crate::languages::python::exports::{self, Imported};
use crate::languages::python::modules;
use crate::languages::{Alias, ModuleKey, ModuleResolution};
use crate::model::facts::{Handle, Use};
use crate::model::{Reason, Target};

/// What a star import does to a name.
pub enum Star {
    Brings(Rc<Followed>),
    /// It may: the module is not known whole.
    Unknown,
    Nothing,
}

impl Inference<'_> {
    /// Follows a name of a module to definitions and modules.
    pub fn follow(&mut self, module: &ModuleKey, name: &Arc<str>) -> Rc<Followed> {
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
    pub fn import(&mut self, view: u32, in_body: bool, import: u32) -> Rc<Followed> {
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
    pub fn star(&mut self, view: u32, in_body: bool, import: u32, name: &Arc<str>) -> Star {
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

    /// Returns the bindings that make a definition at the top of its file.
    pub(super) fn bindings_of_target(&mut self, target: &Target) -> SmallVec<[(u32, Handle); 2]> {
        let Some((view, used)) = self.place_of(target) else { return SmallVec::new() };
        let file = &self.views[view as usize];
        let makes = |binding: &Handle| {
            let declaration = file.binding(*binding).and_then(|binding| binding.declaration);
            declaration.and_then(|declaration| file.declaration(declaration)).map(|declaration| &declaration.key)
                == target.definition.as_ref()
        };
        bindings_of(file, used).into_iter().filter(makes).map(|binding| (view, binding)).collect()
    }
}
