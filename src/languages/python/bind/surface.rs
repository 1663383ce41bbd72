//! The surface: what other files may see.
//!
//! Must not know references. Invariant: it is packed in the order of names, declarations and bindings, never of places.

use super::binder::{Binder, Bound};
use crate::languages::outline::Side;
use crate::languages::python::raw::{NONE, RawBinding, RawExpression, RawPublic, RawRole, RawShape, ScopeKind};
use crate::model::facts::{
    Binding, ClassShape, Declaration, FunctionShape, Handle, Import, PublicStep, Reaching, Role, Shape, Surface,
};

impl Binder<'_, '_> {
    pub(super) fn declare(&mut self) {
        for declaration in &self.raw.declarations {
            let definition = &self.raw.definitions[declaration.definition as usize];
            let (builder, side) =
                if declaration.outer { (&mut self.surface, Side::Surface) } else { (&mut self.body, Side::Body) };
            let outline = &mut builder.outline;
            let handle = side.handle(outline.declarations.len());
            let shape = match declaration.shape {
                RawShape::Class(_) => {
                    outline.classes.push(ClassShape::default());
                    Shape::Class(outline.classes.len() as u32 - 1)
                }
                RawShape::Function(_) => {
                    outline.functions.push(FunctionShape::default());
                    Shape::Function(outline.functions.len() as u32 - 1)
                }
                RawShape::Value => Shape::Value,
            };
            outline.declarations.push(Declaration { key: definition.key.clone(), kind: definition.kind, shape });
            self.declarations.push(handle);
        }
    }

    pub(super) fn bind_surface(&mut self) {
        let raw = self.raw;
        let outer: Vec<u32> =
            (0..raw.bindings.len() as u32).filter(|index| self.is_outer(&raw.bindings[*index as usize])).collect();
        for index in &outer {
            let handle = Handle::of_surface(self.surface.outline.bindings.len());
            self.surface_bindings[*index as usize] = Some(handle);
            let binding = &raw.bindings[*index as usize];
            let name = self.surface.name(binding.name);
            let role = self.role(binding.role, Side::Surface);
            let declaration = self.declaration_of(binding);
            self.surface.outline.bindings.push(Binding { name, role, declaration, annotation: None, value: None });
        }
        for index in outer {
            let binding = &raw.bindings[index as usize];
            let handle = self.surface_bindings[index as usize].expect("made in the loop above");
            let annotation = self.pack_in_surface(binding.annotation, 0);
            let value = if annotation.is_none() { self.pack_in_surface(binding.value, 0) } else { None };
            let packed = &mut self.surface.outline.bindings[handle.index()];
            packed.annotation = annotation;
            packed.value = value;
        }
    }

    pub(super) fn finish_surface(&mut self, surface: &mut Surface) {
        let raw = self.raw;
        let mut names: Vec<(u32, u32)> = raw
            .groups
            .iter()
            .filter(|(key, _)| **key >> 32 == 0)
            .map(|(key, latest)| (*key as u32, *latest))
            .filter(|(name, _)| raw.names[*name as usize] != "*")
            .collect();
        names.sort_unstable_by_key(|(name, _)| raw.names[*name as usize]);
        for (name, latest) in names {
            if let Some(bound) = self.finally(0, latest) {
                let used = self.pack_use(bound, name, Side::Surface);
                let id = self.surface.name(name);
                surface.scope.push((id, used));
                surface.open |= raw.names[name as usize] == "__getattr__";
            }
        }
        for star in self.stars.iter().rev() {
            if let Some(binding) = self.surface_bindings[*star as usize] {
                let conditional = self.lifted(raw.bindings[*star as usize].arm) != 0;
                surface.stars.push(Reaching { binding, conditional });
            }
        }
        if let Some(steps) = &raw.public {
            let mut public = Vec::with_capacity(steps.len());
            for step in steps {
                public.push(match step {
                    RawPublic::Add(name) => PublicStep::Add(self.surface.name(*name)),
                    RawPublic::Remove(name) => PublicStep::Remove(self.surface.name(*name)),
                    RawPublic::Extend(module) => self.pack_in_surface(*module, 0).map_or(PublicStep::Unknown, PublicStep::Extend),
                    RawPublic::Unknown => PublicStep::Unknown,
                });
            }
            surface.public = Some(public);
        }
        for (object, name) in &raw.writes {
            if self.leads_outside(*object)
                && let Some(object) = self.pack_in_surface(*object, 0)
            {
                let write = (object, self.surface.name(*name));
                if !surface.writes.contains(&write) {
                    surface.writes.push(write);
                }
            }
        }
    }

    /// Returns whether an expression is a chain of attributes that begins at a name other files can see too.
    fn leads_outside(&self, mut expression: u32) -> bool {
        let outside = |binding: u32| {
            let binding = &self.raw.bindings[binding as usize];
            matches!(binding.role, RawRole::Import(_)) || self.is_outer(binding) && binding.role == RawRole::Class
        };
        loop {
            match self.raw.expressions[expression as usize] {
                RawExpression::Attribute(object, _) => expression = object,
                RawExpression::Name(used) => {
                    return match self.bound[used as usize] {
                        Bound::Free => false,
                        Bound::One(binding) => outside(binding),
                        Bound::Many(set) => self.sets[set as usize].iter().any(|(binding, _)| outside(*binding)),
                    };
                }
                _ => return false,
            }
        }
    }

    pub(super) fn is_outer(&self, binding: &RawBinding) -> bool {
        let scope = &self.raw.scopes[binding.scope as usize];
        scope.outer && matches!(scope.kind, ScopeKind::Module | ScopeKind::Class)
    }

    pub(super) fn declaration_of(&self, binding: &RawBinding) -> Option<Handle> {
        if binding.declaration == NONE { None } else { Some(self.declarations[binding.declaration as usize]) }
    }

    pub(super) fn class_handle(&self, class: u32) -> Option<Handle> {
        let declaration = self.raw.classes.get(class as usize)?.declaration;
        self.declarations.get(declaration as usize).copied()
    }

    pub(super) fn role(&mut self, role: RawRole, side: Side) -> Role {
        match role {
            RawRole::Function => Role::Function,
            RawRole::Class => Role::Class,
            RawRole::Variable | RawRole::Narrowed => Role::Variable,
            RawRole::Parameter => Role::Parameter,
            RawRole::TypeParameter => Role::TypeParameter,
            RawRole::Instance(class) => self.class_handle(class).map_or(Role::Parameter, Role::Instance),
            RawRole::Type(class) => self.class_handle(class).map_or(Role::Parameter, Role::Type),
            RawRole::Import(import) => Role::Import(self.import(import, side)),
            RawRole::Star(import) => Role::Star(self.import(import, side)),
            RawRole::Deleted => Role::Deleted,
        }
    }

    pub(super) fn import(&mut self, import: u32, side: Side) -> u32 {
        let known = if side == Side::Surface { &self.surface_imports } else { &self.body_imports };
        if let Some(index) = known[import as usize] {
            return index;
        }
        let raw = self.raw.imports[import as usize];
        let builder = self.builder(side);
        let module = builder.name(raw.module);
        let name = if raw.name == NONE { None } else { Some(builder.name(raw.name)) };
        let index = builder.outline.imports.len() as u32;
        builder.outline.imports.push(Import { module, name, root_only: raw.root_only });
        let known = if side == Side::Surface { &mut self.surface_imports } else { &mut self.body_imports };
        known[import as usize] = Some(index);
        index
    }
}
