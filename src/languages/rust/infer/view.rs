//! A file as inference sees it: its surface, and for the file in hand its body too.
//!
//! Must not evaluate expressions. Invariant: a handle of a body is asked of the file in hand only.

use std::cell::OnceCell;
use std::rc::Rc;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::Inference;
use super::types::Place;
use crate::languages::rust::modules::{self, Module};
use crate::languages::rust::packages::Package;
use crate::model::facts::{Body, Declaration, Expression, Handle, MemberBlock, NameId, Outline, Surface, TypeShape};
use crate::model::{DefinitionKey, RepoPath, Target};

/// One file.
#[derive(Debug)]
pub(in crate::languages::rust) struct View<'a> {
    pub path: RepoPath,
    pub surface: Arc<Surface>,
    body: Option<&'a Body>,
    /// The block of each member, and the block of each trait.
    blocks: OnceCell<FxHashMap<Handle, Handle>>,
}

impl View<'_> {
    pub(in crate::languages::rust) fn outline(&self, handle: Handle) -> &Outline {
        match self.body {
            Some(body) if handle.in_body() => &body.outline,
            _ => &self.surface.outline,
        }
    }

    pub(in crate::languages::rust) fn text(&self, name: NameId, of: Handle) -> &str {
        self.outline(of).names.get(name)
    }

    pub(in crate::languages::rust) fn expression(&self, handle: Handle) -> Option<Expression> {
        self.outline(handle).expressions.get(handle.index()).copied()
    }

    pub(in crate::languages::rust) fn declaration(&self, handle: Handle) -> Option<&Declaration> {
        self.outline(handle).declarations.get(handle.index())
    }

    /// Returns the handle of a declaration.
    pub(in crate::languages::rust) fn find(&self, key: &DefinitionKey) -> Option<Handle> {
        let search = |outline: &Outline| outline.declarations.binary_search_by(|declaration| declaration.key.cmp(key)).ok();
        let outer = search(&self.surface.outline).map(Handle::of_surface);
        outer.or_else(|| self.body.and_then(|body| search(&body.outline)).map(Handle::of_body))
    }

    pub(super) fn shape(&self, handle: Handle) -> Option<&TypeShape> {
        self.outline(handle).types.get(handle.index())
    }

    pub(super) fn block(&self, handle: Handle) -> Option<&MemberBlock> {
        self.outline(handle).blocks.get(handle.index())
    }

    /// Returns the handles of the blocks of the body.
    pub(super) fn body_blocks(&self) -> impl Iterator<Item = Handle> + use<> {
        (0..self.body.map_or(0, |body| body.outline.blocks.len())).map(Handle::of_body)
    }

    fn blocks(&self) -> &FxHashMap<Handle, Handle> {
        self.blocks.get_or_init(|| {
            let mut blocks = FxHashMap::default();
            let surface = (0..self.surface.outline.blocks.len()).map(Handle::of_surface);
            for handle in surface.chain(self.body_blocks()) {
                let Some(block) = self.block(handle) else { continue };
                blocks.extend(block.members.iter().map(|member| (*member, handle)));
                blocks.extend(block.declares.map(|(declared, _)| (declared, handle)));
            }
            blocks
        })
    }

    /// Returns the block that a declaration is a member of; of a trait the block of its members.
    pub(super) fn block_of(&self, declaration: Handle) -> Option<Handle> {
        self.blocks().get(&declaration).copied()
    }
}

impl<'a> Inference<'a> {
    pub(super) fn add_view(&mut self, path: &RepoPath, surface: Arc<Surface>, body: Option<&'a Body>) -> u32 {
        let view = View { path: path.clone(), surface, body, blocks: OnceCell::new() };
        self.views.push(Rc::new(view));
        let index = self.views.len() as u32 - 1;
        self.by_path.insert(path.clone(), Some(index));
        index
    }

    pub(in crate::languages::rust) fn view(&self, index: u32) -> Rc<View<'a>> {
        Rc::clone(&self.views[index as usize])
    }

    pub(in crate::languages::rust) fn view_of(&mut self, path: &RepoPath) -> Option<u32> {
        if let Some(known) = self.by_path.get(path) {
            return *known;
        }
        let Some(surface) = self.lookup.surface(path) else {
            self.by_path.insert(path.clone(), None);
            return None;
        };
        Some(self.add_view(path, surface, None))
    }

    /// Returns the place of the declaration of a target.
    pub(in crate::languages::rust) fn place_of(&mut self, target: &Target) -> Option<Place> {
        // A file is looked into for what is defined in it, and not for itself.
        let key = target.definition.as_ref()?;
        let view = self.view_of(&target.file)?;
        let handle = self.view(view).find(key)?;
        Some(Place { view, handle })
    }

    /// Returns the definition of a declaration.
    pub(super) fn target_of(&self, place: Place) -> Option<Target> {
        let view = self.view(place.view);
        let key = view.declaration(place.handle)?.key.clone();
        Some(Target { file: view.path.clone(), definition: Some(key) })
    }

    /// Returns the module that a scope belongs to.
    pub(super) fn module_of(&self, view: u32, scope: Handle) -> Module {
        let view = self.view(view);
        let mut scope = scope;
        while scope.in_body() {
            match view.outline(scope).scopes.get(scope.index()).and_then(|inner| inner.parent) {
                Some(parent) => scope = parent,
                None => break,
            }
        }
        Module { file: view.path.clone(), inner: modules::inner_name(&view.surface, scope) }
    }

    /// Returns the package of a file.
    pub(super) fn package_of(&self, file: &RepoPath) -> Option<Rc<Package>> {
        self.package_in(file.directory())
    }

    /// Returns the package of a directory.
    pub(super) fn package_in(&self, directory: &str) -> Option<Rc<Package>> {
        if let Some(known) = self.packages.borrow().get(directory) {
            return known.clone();
        }
        let found = modules::package(directory, self.lookup).map(Rc::new);
        self.packages.borrow_mut().insert(directory.to_owned(), found.clone());
        found
    }
}
