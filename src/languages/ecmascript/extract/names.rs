//! Definitions and bindings as the walk meets them.
//!
//! Must not know which syntax they come from. Invariant: a definition's parent stands before it.

use super::*;

/// A binding in the making.
pub(super) struct NewBinding {
    pub role: RawRole,
    pub meanings: Meanings,
    pub declaration: u32,
    pub annotation: u32,
    pub value: u32,
}

impl NewBinding {
    pub(super) fn new(role: RawRole, meanings: Meanings) -> Self {
        Self { role, meanings, declaration: NONE, annotation: NONE, value: NONE }
    }

    pub(super) fn of_value(value: u32) -> Self {
        Self { value, ..Self::new(RawRole::Variable, VALUE) }
    }
}

impl<'s, 't> Walk<'s, 't> {
    /// Binds a name in a scope.
    pub(super) fn bind(&mut self, scope: u32, name: u32, new: NewBinding) -> u32 {
        let outer = self.raw.scopes[scope as usize].outer;
        let binding = self.push_binding(name, outer, new);
        let previous = self.raw.groups.insert(group_key(scope, name), binding);
        self.raw.bindings[binding as usize].previous = previous.unwrap_or(NONE);
        let space = self.raw.scopes[scope as usize].space;
        if space != NONE && (self.exported == Some(Exported::ByName) || self.ambient) {
            self.raw.classes[space as usize].statics.push((name, binding));
        } else if scope == 0 {
            match self.exported {
                Some(Exported::ByName) => self.raw.exports.push((name, RawExport::Binding(binding))),
                Some(Exported::Default) => {
                    let default = self.name("default");
                    self.raw.exports.push((default, RawExport::Binding(binding)));
                }
                None => {}
            }
        }
        binding
    }

    /// Makes a binding that no scope has.
    pub(super) fn push_binding(&mut self, name: u32, outer: bool, new: NewBinding) -> u32 {
        let NewBinding { role, meanings, declaration, annotation, value } = new;
        self.raw.bindings.push(RawBinding {
            name,
            role,
            meanings,
            outer,
            written: false,
            declaration,
            annotation,
            value,
            previous: NONE,
        });
        self.raw.bindings.len() as u32 - 1
    }

    /// Returns the bindings of a name in one scope, the latest first.
    pub(super) fn bound_here(&self, scope: u32, name: u32) -> impl Iterator<Item = u32> + '_ {
        let first = self.raw.groups.get(&group_key(scope, name)).copied().unwrap_or(NONE);
        std::iter::successors(Some(first), |binding| Some(self.raw.bindings.get(*binding as usize)?.previous))
            .take_while(|binding| *binding != NONE)
    }

    /// Declares something of which all declarations in one scope are one definition (an interface, enum or namespace), or continues it.
    /// Returns the owner of what is inside.
    pub(super) fn merged(
        &mut self,
        name: u32,
        text: &'s str,
        kind: SymbolKind,
        meanings: Meanings,
        at: &Declared<'t>,
        class: u32,
    ) -> u32 {
        let scope = self.scope;
        let is_same = |walk: &Self, binding: u32| {
            let declaration = walk.raw.bindings[binding as usize].declaration;
            let declaration = walk.raw.declarations.get(declaration as usize);
            declaration.is_some_and(|declared| walk.raw.definitions[declared.definition as usize].kind == kind)
        };
        let same = self.bound_here(scope, name).find(|binding| is_same(self, *binding));
        let declaration = match same {
            Some(binding) => {
                let declaration = self.raw.bindings[binding as usize].declaration;
                self.continue_declaration(declaration, at, false);
                self.export_again(scope, name, binding);
                declaration
            }
            None => {
                let declaration = self.declare("", text, kind, at, RawShape::Class(class));
                self.bind(scope, name, NewBinding { declaration, ..NewBinding::new(RawRole::Class, meanings) });
                declaration
            }
        };
        self.owner_of(declaration)
    }

    /// Exports once more a binding that a further declaration continues.
    pub(super) fn export_again(&mut self, scope: u32, name: u32, binding: u32) {
        let space = self.raw.scopes[scope as usize].space;
        if space != NONE && (self.exported == Some(Exported::ByName) || self.ambient) {
            let statics = &mut self.raw.classes[space as usize].statics;
            if !statics.contains(&(name, binding)) {
                statics.push((name, binding));
            }
        } else if scope == 0
            && let Some(how) = self.exported
        {
            let name = if how == Exported::Default { self.name("default") } else { name };
            let export = (name, RawExport::Binding(binding));
            if !self.raw.exports.contains(&export) {
                self.raw.exports.push(export);
            }
        }
    }

    /// Returns the shape that all declarations of one name in one scope share.
    pub(super) fn shape_of_name(&mut self, scope: u32, name: u32) -> u32 {
        let known = self.bound_here(scope, name).find_map(|binding| self.shape_of_binding(binding));
        known.unwrap_or_else(|| {
            let class = self.push_class();
            self.raw.classes[class as usize].outer = self.raw.scopes[scope as usize].outer;
            let functions: Vec<u32> = self.bound_here(scope, name).collect();
            for binding in functions {
                let declaration = self.raw.bindings[binding as usize].declaration;
                if let Some(RawDeclaration { shape: RawShape::Function(function), .. }) =
                    self.raw.declarations.get(declaration as usize)
                {
                    self.raw.functions[*function as usize].shape = class;
                }
            }
            class
        })
    }

    pub(super) fn shape_of_binding(&self, binding: u32) -> Option<u32> {
        let declaration = self.raw.bindings[binding as usize].declaration;
        match self.raw.declarations.get(declaration as usize)?.shape {
            RawShape::Class(class) => Some(class),
            RawShape::Function(function) => {
                let shape = self.raw.functions[function as usize].shape;
                (shape != NONE).then_some(shape)
            }
            RawShape::Alias(_) | RawShape::Value => None,
        }
    }

    /// Adds a definition of the file and what resolution knows of it; returns the index of the declaration.
    pub(super) fn declare(&mut self, prefix: &str, name: &'s str, kind: SymbolKind, at: &Declared<'t>, shape: RawShape) -> u32 {
        let parent = self.owner.checked_sub(1);
        self.declare_in(parent, prefix, name, kind, at, shape)
    }

    pub(super) fn declare_in(
        &mut self,
        parent: Option<u32>,
        prefix: &str,
        name: &'s str,
        kind: SymbolKind,
        at: &Declared<'t>,
        shape: RawShape,
    ) -> u32 {
        let mut qualified = String::new();
        if let Some(parent) = parent.and_then(|parent| self.raw.definitions.get(parent as usize)) {
            qualified.push_str(&parent.key.qualified);
            qualified.push('.');
        }
        qualified.push_str(prefix);
        qualified.push_str(name);
        let qualified: Arc<str> = qualified.into();
        let next = self.ordinals.entry(Arc::clone(&qualified)).or_default();
        let ordinal = *next;
        *next += 1;
        let whole = self.wrapper.take().unwrap_or(at.whole);
        let (start, end) = (whole.start_byte() as u32, whole.end_byte() as u32);
        let start_place = self.place(start);
        let definition = Definition {
            key: DefinitionKey { qualified, ordinal },
            name: name.into(),
            kind,
            parent,
            span: Span { start, end },
            start_line: start_place.line,
            end_line: self.place(end.saturating_sub(1).max(start)).line,
            name_place: self.place(at.name.start_byte() as u32),
            signature: self.signature(whole.start_byte(), at.head_end),
            docstring: self.docstring(whole.start_byte()),
        };
        self.raw.definitions.push(definition);
        let definition = self.raw.definitions.len() as u32 - 1;
        self.raw.declarations.push(RawDeclaration { definition, shape });
        self.raw.declarations.len() as u32 - 1
    }

    /// Lets a definition reach to the end of a declaration that continues it; `named` moves its name there too.
    pub(super) fn continue_declaration(&mut self, declaration: u32, at: &Declared<'t>, named: bool) {
        let whole = self.wrapper.take().unwrap_or(at.whole);
        let end = whole.end_byte() as u32;
        let end_line = self.place(end.saturating_sub(1)).line;
        let place = self.place(at.name.start_byte() as u32);
        let signature = self.signature(whole.start_byte(), at.head_end);
        let index = self.raw.declarations[declaration as usize].definition as usize;
        let definition = &mut self.raw.definitions[index];
        if end > definition.span.end && named {
            definition.span.end = end;
            definition.end_line = end_line;
        }
        if named {
            definition.name_place = place;
            definition.signature = signature;
        }
    }

    pub(super) fn owner_of(&self, declaration: u32) -> u32 {
        self.raw.declarations.get(declaration as usize).map_or(self.owner, |declaration| declaration.definition + 1)
    }

    pub(super) fn place(&self, start: u32) -> Place {
        Place::at(self.line_starts, start)
    }

    fn signature(&self, start: usize, end: usize) -> Option<Arc<str>> {
        let text = self.source.get(start..end.max(start))?;
        let mut folded = String::new();
        for word in text.split_whitespace() {
            if folded.len() + word.len() > MAX_SIGNATURE {
                folded.push_str(" …");
                break;
            }
            if !folded.is_empty() {
                folded.push(' ');
            }
            folded.push_str(word);
        }
        // What leads over to the body goes; a `>` may also end a type.
        let mut folded = folded.as_str();
        while let Some(shorter) = ["=>", "{", "=", ";"].iter().find_map(|end| folded.strip_suffix(end)) {
            folded = shorter.trim_end();
        }
        (!folded.is_empty()).then(|| Arc::from(folded))
    }

    /// Returns the text of the comment (`/** … */`) that ends right before a declaration.
    fn docstring(&self, start: usize) -> Option<Arc<str>> {
        let before = self.source.get(..start)?.trim_end();
        let inside = before.strip_suffix("*/")?;
        let open = inside.rfind("/*")?;
        let text = inside.get(open..)?.strip_prefix("/**")?;
        let lines: Vec<&str> = text.lines().map(|line| line.trim().trim_start_matches('*').trim()).collect();
        let text = lines.join("\n");
        let text = text.trim();
        (!text.is_empty()).then(|| Arc::from(text))
    }
}
