//! A file as far as inference reads it.
//!
//! Must not know other files. Invariant: a handle outside its table finds nothing.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::model::RepoPath;
use crate::model::facts::{
    Binding, Body, ClassShape, Declaration, Expression, FunctionShape, Handle, NameId, Outline, Shape, Surface, Use,
};

/// A file as far as inference reads it.
pub struct View<'a> {
    pub path: RepoPath,
    pub surface: Arc<Surface>,
    /// Only of the file whose references are resolved.
    pub body: Option<&'a Body>,
    pub context: Arc<str>,
}

impl View<'_> {
    pub fn outline(&self, handle: Handle) -> &Outline {
        match self.body {
            Some(body) if handle.in_body() => &body.outline,
            _ => &self.surface.outline,
        }
    }

    pub fn binding(&self, handle: Handle) -> Option<&Binding> {
        self.outline(handle).bindings.get(handle.index())
    }

    pub fn declaration(&self, handle: Handle) -> Option<&Declaration> {
        self.outline(handle).declarations.get(handle.index())
    }

    pub(super) fn expression(&self, handle: Handle) -> Option<Expression> {
        self.outline(handle).expressions.get(handle.index()).copied()
    }

    pub fn class(&self, handle: Handle) -> Option<&ClassShape> {
        let outline = self.outline(handle);
        match outline.declarations.get(handle.index())?.shape {
            Shape::Class(index) => outline.classes.get(index as usize),
            _ => None,
        }
    }

    pub(super) fn function(&self, handle: Handle) -> Option<&FunctionShape> {
        let outline = self.outline(handle);
        match outline.declarations.get(handle.index())?.shape {
            Shape::Function(index) => outline.functions.get(index as usize),
            _ => None,
        }
    }
}

/// Returns the text of a free name.
pub fn free_name<'v>(file: &'v View<'_>, name: Handle) -> &'v str {
    file.outline(name).names.get(NameId(name.index() as u32))
}

/// Returns the bindings a use may mean, the latest first.
pub fn bindings_of(file: &View<'_>, used: Use) -> SmallVec<[Handle; 2]> {
    match used {
        Use::One(binding) => SmallVec::from_iter([binding]),
        Use::Many(set) => {
            let sets = &file.outline(set).sets;
            sets.get(set.index()).map(|set| set.iter().map(|reaching| reaching.binding).collect()).unwrap_or_default()
        }
        Use::Free(_) => SmallVec::new(),
    }
}
