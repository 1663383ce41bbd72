//! Definitions of a file and the declarations that bind names to them.
//!
//! Must not know the tree, nor whether other files reach a definition. Invariant: a definition stands after the one that contains it.

use std::sync::Arc as Shared;

use super::text::{fold, is_constant_name};
use super::walk::Walk;
use crate::languages::python::raw::{NONE, RawDeclaration, RawFunction, RawShape, ScopeKind, group_key};
use crate::model::{Definition, DefinitionKey, Span, SymbolKind};

impl Walk<'_> {
    #[allow(clippy::too_many_arguments, reason = "all of them describe the one definition that is made")]
    pub(super) fn define(
        &mut self,
        name: u32,
        kind: SymbolKind,
        shape: RawShape,
        span: Span,
        name_start: u32,
        signature: Option<Shared<str>>,
    ) -> u32 {
        let text = self.name_text(name);
        let qualified: Shared<str> = match self.container {
            Some(parent) => {
                let parent = &self.raw.definitions[parent as usize].key.qualified;
                let mut qualified = String::with_capacity(parent.len() + 1 + text.len());
                qualified.push_str(parent);
                qualified.push('.');
                qualified.push_str(text);
                qualified.into()
            }
            None => text.into(),
        };
        let ordinal = match self.ordinals.get_mut(&qualified) {
            Some(count) => {
                *count += 1;
                *count
            }
            None => {
                self.ordinals.insert(qualified.clone(), 0);
                0
            }
        };
        let short: Shared<str> = if self.container.is_none() { qualified.clone() } else { text.into() };
        self.raw.definitions.push(Definition {
            key: DefinitionKey { qualified, ordinal },
            name: short,
            kind,
            parent: self.container,
            span,
            start_line: self.line_of(span.start),
            end_line: self.line_of(span.end.saturating_sub(1).max(span.start)),
            name_place: self.place_of(name_start),
            signature,
            docstring: None,
        });
        let definition = self.raw.definitions.len() as u32 - 1;
        self.raw.declarations.push(RawDeclaration {
            definition,
            shape,
            outer: self.raw.scopes[self.scope as usize].outer,
            arm: self.arm,
            overloads: false,
        });
        let declaration = self.raw.declarations.len() as u32 - 1;
        self.declared.insert(group_key(self.scope, name), declaration);
        declaration
    }

    /// Returns the declaration of a variable of the module or a class; locals make none, nor do the names that `except` unbinds again.
    pub(super) fn declare_variable(&mut self, name: u32, span: Span, name_start: u32) -> u32 {
        if self.in_handler {
            return NONE;
        }
        let scope = self.declaring_scope(name);
        if !matches!(self.raw.scopes[scope as usize].kind, ScopeKind::Module | ScopeKind::Class) {
            return NONE;
        }
        if let Some(declaration) = self.declared.get(&group_key(scope, name)).copied()
            && matches!(self.raw.declarations[declaration as usize].shape, RawShape::Value)
            && !self.are_alternatives(self.raw.declarations[declaration as usize].arm, self.arm)
        {
            return declaration;
        }
        if scope != self.scope {
            // The function that says `global` defines what the module does not: its definition stands at the top all the same.
            let (own_scope, own_container) = (self.scope, self.container);
            (self.scope, self.container) = (scope, None);
            let declaration = self.define_variable(name, span, name_start);
            (self.scope, self.container) = (own_scope, own_container);
            return declaration;
        }
        self.define_variable(name, span, name_start)
    }

    fn define_variable(&mut self, name: u32, span: Span, name_start: u32) -> u32 {
        let text = self.name_text(name);
        let kind = if is_constant_name(text) { SymbolKind::Constant } else { SymbolKind::Variable };
        let signature = fold(self.text.get(span.start as usize..span.end as usize).unwrap_or(""), 160);
        self.define(name, kind, RawShape::Value, span, name_start, Some(signature))
    }

    pub(super) fn declare_lambda(&mut self, name: u32, span: Span, name_start: u32) -> u32 {
        let kind = if self.scope_kind() == ScopeKind::Class { SymbolKind::Method } else { SymbolKind::Function };
        self.raw.functions.push(RawFunction::default());
        let shape = RawShape::Function(self.raw.functions.len() as u32 - 1);
        let signature = fold(self.text.get(span.start as usize..span.end as usize).unwrap_or(""), 160);
        self.define(name, kind, shape, span, name_start, Some(signature))
    }
}
