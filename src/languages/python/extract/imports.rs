//! Import statements: what is imported from where, and the names that are bound to it.
//!
//! Must not know whether a module exists. Invariant: each imported module and name has one reference, at its own token.

use tree_sitter::{Node, TreeCursor};

use super::kinds::Kind;
use super::walk::{NOTHING, Walk};
use crate::languages::grammar::each_child;
use crate::languages::python::raw::{NONE, RawImport, RawReference, RawRole, RawSubject};
use crate::model::EdgeKind;

impl<'s> Walk<'s> {
    pub(super) fn import_statement(&mut self, cursor: &mut TreeCursor<'_>) {
        each_child!(cursor, {
            match self.kind(cursor) {
                Kind::DottedName => {
                    let node = cursor.node();
                    let module = self.slice(&node);
                    let root = node.named_child(0);
                    let dotted = node.named_child_count() > 1;
                    let import = self.module_import(module, dotted, &node);
                    if let Some(root) = root {
                        let name = self.name_of(&root);
                        self.bind(name, RawRole::Import(import), NONE, NOTHING);
                    }
                }
                Kind::AliasedImport => {
                    let node = cursor.node();
                    if let (Some(path), Some(alias)) = (node.child_by_field_name("name"), node.child_by_field_name("alias")) {
                        let module = self.slice(&path);
                        let import = self.module_import(module, false, &path);
                        let name = self.name_of(&alias);
                        self.bind(name, RawRole::Import(import), NONE, NOTHING);
                    }
                }
                _ => {}
            }
        });
    }

    pub(super) fn import_from(&mut self, cursor: &mut TreeCursor<'_>) {
        let mut module: &'s str = "";
        let mut referred = false;
        let mut whole = NONE;
        each_child!(cursor, {
            match self.kind(cursor) {
                kind @ (Kind::DottedName | Kind::RelativeImport) if !referred => {
                    referred = true;
                    let node = cursor.node();
                    module = self.slice(&node);
                    if kind == Kind::RelativeImport && module.contains([' ', '\t', '\\']) {
                        module = "";
                    }
                    let interned = self.intern(module);
                    self.raw.imports.push(RawImport { module: interned, name: NONE, root_only: false });
                    whole = self.raw.imports.len() as u32 - 1;
                    self.module_reference(whole, &node);
                }
                Kind::DottedName => {
                    if let Some(token) = cursor.node().named_child(0) {
                        self.imported_name(module, &token, &token);
                    }
                }
                Kind::AliasedImport => {
                    let node = cursor.node();
                    if let (Some(path), Some(alias)) = (node.child_by_field_name("name"), node.child_by_field_name("alias"))
                        && let Some(token) = path.named_child(0)
                    {
                        self.imported_name(module, &token, &alias);
                    }
                }
                Kind::WildcardImport => {
                    let star = self.intern("*");
                    self.bind(star, RawRole::Star(whole), NONE, NOTHING);
                }
                _ => {}
            }
        });
    }

    fn imported_name(&mut self, module: &'s str, token: &Node<'_>, bound: &Node<'_>) {
        let name = self.name_of(token);
        let module = self.intern(module);
        self.raw.imports.push(RawImport { module, name, root_only: false });
        let import = self.raw.imports.len() as u32 - 1;
        self.raw.references.push(RawReference {
            start: token.start_byte() as u32,
            kind: EdgeKind::Imports,
            qualifier: false,
            source: self.source_definition,
            subject: RawSubject::Imported(import),
        });
        let bound = self.name_of(bound);
        self.bind(bound, RawRole::Import(import), NONE, NOTHING);
    }

    /// Records an import of a module and the reference to it, at the last token of its path.
    fn module_import(&mut self, module: &'s str, root_only: bool, path: &Node<'_>) -> u32 {
        let module = self.intern(module);
        self.raw.imports.push(RawImport { module, name: NONE, root_only });
        let import = self.raw.imports.len() as u32 - 1;
        self.module_reference(import, path);
        import
    }

    fn module_reference(&mut self, import: u32, path: &Node<'_>) {
        let count = path.named_child_count();
        let mut token = *path;
        for index in (0..count).rev() {
            let Some(child) = path.named_child(index as u32) else { continue };
            match self.node_kind(&child) {
                Kind::Identifier => {
                    token = child;
                    break;
                }
                Kind::DottedName => {
                    token = child.named_child(child.named_child_count().saturating_sub(1) as u32).unwrap_or(child);
                    break;
                }
                _ => {}
            }
        }
        let name = self.name_of(&token);
        self.raw.references.push(RawReference {
            start: token.start_byte() as u32,
            kind: EdgeKind::Imports,
            qualifier: false,
            source: self.source_definition,
            subject: RawSubject::Module(import, name),
        });
    }
}
