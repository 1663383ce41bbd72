//! What a file declares at its top: package, imports, functions, methods, types, variables, constants.
//!
//! Must not know bodies. Invariant: everything declared here goes to the surface, and a name `_` declares nothing.

use std::sync::Arc;

use tree_sitter::{Node, TreeCursor};

use super::{Kind, Walk};
use crate::languages::grammar::{each_child, folded};
use crate::languages::outline::Side;
use crate::model::facts::{Binding, Declaration, Expression, Handle, Import, Role, Shape, Subject};
use crate::model::{Definition, DefinitionKey, EdgeKind, Span, SymbolKind};

/// Longest text of a signature.
const MAX_SIGNATURE: usize = 400;
/// Longest text of a variable's declaration.
const MAX_VALUE: usize = 160;

/// Where a declaration stands: from the keyword or the name of its group's entry to its end.
#[derive(Clone, Copy)]
pub(super) struct Extent {
    pub start: usize,
    pub end: usize,
    pub start_row: usize,
    pub end_row: usize,
}

impl Extent {
    pub(super) fn of(node: Node<'_>) -> Self {
        Self {
            start: node.start_byte(),
            end: node.end_byte(),
            start_row: node.start_position().row,
            end_row: node.end_position().row,
        }
    }
}

/// The type and values that a constant without its own repeats.
#[derive(Clone, Default)]
pub(super) struct Repeated {
    pub type_: Option<Handle>,
    pub values: Vec<Option<Handle>>,
}

pub(super) fn is_type(kind: SymbolKind) -> bool {
    matches!(kind, SymbolKind::Struct | SymbolKind::Interface | SymbolKind::Type)
}

impl<'s> Walk<'s> {
    pub(super) fn file(&mut self, cursor: &mut TreeCursor<'_>) {
        each_child!(cursor, {
            let node = cursor.node();
            match self.kind(node) {
                Kind::Comment => self.comment(node),
                Kind::PackageClause => each_child!(cursor, {
                    if self.kind(cursor.node()) == Kind::PackageIdentifier {
                        self.module = Some(self.text_of(cursor.node()));
                    }
                }),
                Kind::Import => self.imports(cursor),
                Kind::Function => self.function(cursor),
                Kind::Method => self.method(cursor),
                Kind::Const | Kind::Var | Kind::Type => self.group(cursor, Extent::of(node)),
                // A statement has no place here; what it holds is not for others.
                Kind::Other => {}
                _ => self.statement(cursor),
            }
        });
    }

    fn imports(&mut self, cursor: &mut TreeCursor<'_>) {
        each_child!(cursor, {
            match self.kind(cursor.node()) {
                Kind::ImportSpecList => self.imports(cursor),
                Kind::ImportSpec => self.import(cursor),
                _ => {}
            }
        });
    }

    fn import(&mut self, cursor: &mut TreeCursor<'_>) {
        let (mut alias, mut path) = ("", None);
        each_child!(cursor, {
            let node = cursor.node();
            if cursor.field_id() == self.fields.name {
                alias = self.text_of(node);
            } else if cursor.field_id() == self.fields.path {
                path = Some(node);
            }
        });
        let Some(node) = path else { return };
        let quoted = self.text_of(node);
        let Some(path) = quoted.get(1..quoted.len().saturating_sub(1)).filter(|path| !path.is_empty()) else { return };
        let module = self.surface.name(path);
        let imports = &mut self.surface.outline.imports;
        imports.push(Import { module, name: None, root_only: false });
        let index = imports.len() as u32 - 1;
        if alias != "_" {
            let role = if alias == "." { Role::Star(index) } else { Role::Import(index) };
            let name = self.surface.name(alias);
            let binding = Binding { name, role, declaration: None, annotation: None, value: None };
            self.surface.binding(Side::Surface, binding);
        }
        let last = path.rsplit('/').next().unwrap_or(path);
        let start = node.start_byte() + 1 + path.len() - last.len();
        let name = self.body.name(last);
        self.refer(start, EdgeKind::Imports, false, Subject::Module { import: Handle::of_surface(index as usize), name });
    }

    /// Makes a definition and what others see of it; returns its index and its declaration.
    pub(super) fn define(
        &mut self,
        name: Node<'_>,
        owner: Option<&str>,
        kind: SymbolKind,
        shape: Shape,
        extent: Extent,
        signature: Arc<str>,
    ) -> (u32, Handle) {
        let text = self.text_of(name);
        let qualified: Arc<str> = match owner {
            Some(owner) => format!("{owner}.{text}").into(),
            None => text.into(),
        };
        let next = self.ordinals.entry(Arc::clone(&qualified)).or_insert(0);
        let ordinal = *next;
        *next += 1;
        let key = DefinitionKey { qualified, ordinal };
        let docstring = self.documentation(extent.start_row);
        let index = self.definitions.len() as u32;
        self.definitions.push(Definition {
            key: key.clone(),
            name: text.into(),
            kind,
            parent: None,
            span: Span { start: extent.start as u32, end: extent.end as u32 },
            start_line: extent.start_row as u32 + 1,
            end_line: extent.end_row as u32 + 1,
            name_place: self.place(name),
            signature: Some(signature),
            docstring,
        });
        let declarations = &mut self.surface.outline.declarations;
        declarations.push(Declaration { key, kind, shape });
        (index, Handle::of_surface(declarations.len() - 1))
    }

    fn function(&mut self, cursor: &mut TreeCursor<'_>) {
        let node = cursor.node();
        let Some(name) = self.field(cursor, self.fields.name) else { return };
        self.scopes.enter();
        let before = self.references.len();
        let signature = self.signature(cursor, Side::Surface);
        let (index, _) = if self.text_of(name) == "_" {
            (None, ())
        } else {
            let header = self.field(cursor, self.fields.body).map_or(node.end_byte(), |body| body.start_byte());
            let text = folded(self.text.get(node.start_byte()..header).unwrap_or(""), MAX_SIGNATURE);
            let shape = Shape::Signature(signature);
            (Some(self.define(name, None, SymbolKind::Function, shape, Extent::of(node), text).0), ())
        };
        self.comments.clear();
        self.body_of(cursor, index, before);
        self.scopes.leave();
    }

    fn method(&mut self, cursor: &mut TreeCursor<'_>) {
        let node = cursor.node();
        let Some(name) = self.field(cursor, self.fields.name) else { return };
        self.scopes.enter();
        let before = self.references.len();
        let receiver = self.receiver(cursor);
        let signature = self.signature(cursor, Side::Surface);
        if let Some(receiver) = &receiver {
            let made = &mut self.surface.outline.signatures[signature as usize];
            made.type_parameters.clone_from(&receiver.parameters);
            made.by_pointer = receiver.by_pointer;
        }
        let owner = receiver.map(|receiver| receiver.type_name);
        let index = if self.text_of(name) == "_" {
            None
        } else {
            let header = self.field(cursor, self.fields.body).map_or(node.end_byte(), |body| body.start_byte());
            let text = folded(self.text.get(node.start_byte()..header).unwrap_or(""), MAX_SIGNATURE);
            let shape = Shape::Signature(signature);
            let index = self.define(name, owner, SymbolKind::Method, shape, Extent::of(node), text).0;
            if let Some(owner) = owner {
                self.receivers.push((index, owner));
            }
            Some(index)
        };
        self.comments.clear();
        self.body_of(cursor, index, before);
        self.scopes.leave();
    }

    /// Walks the body of a function whose signature's references begin at `before`.
    fn body_of(&mut self, cursor: &mut TreeCursor<'_>, index: Option<u32>, before: usize) {
        let source = index.map_or(0, |index| index + 1);
        for reference in &mut self.references[before..] {
            reference.source = source;
        }
        let outer = std::mem::replace(&mut self.source, source);
        each_child!(cursor, {
            if cursor.field_id() == self.fields.body {
                // The body's block is the scope of the parameters.
                self.statements(cursor);
            }
        });
        self.source = outer;
        self.comments.clear();
    }

    /// Returns the child of the cursor's node under a field.
    pub(super) fn field<'t>(&self, cursor: &TreeCursor<'t>, field: Option<std::num::NonZeroU16>) -> Option<Node<'t>> {
        cursor.node().child_by_field_id(field?.get())
    }

    /// Walks a declaration of constants, variables or types at the top, grouped or not.
    fn group(&mut self, cursor: &mut TreeCursor<'_>, whole: Extent) {
        let grouped = {
            let node = cursor.node();
            let mut count = 0;
            let mut parenthesised = false;
            let mut walk = node.walk();
            for child in node.children(&mut walk) {
                count +=
                    usize::from(matches!(self.kind(child), Kind::ConstSpec | Kind::VarSpec | Kind::TypeSpec | Kind::TypeAlias));
                parenthesised |= child.kind() == "(" || self.kind(child) == Kind::VarSpecList;
            }
            parenthesised || count > 1
        };
        if grouped {
            // What stands above the group says nothing of one entry.
            self.comments.clear();
        }
        let mut repeated = Repeated::default();
        self.entries(cursor, (!grouped).then_some(whole), &mut repeated);
        self.comments.clear();
    }

    fn entries(&mut self, cursor: &mut TreeCursor<'_>, whole: Option<Extent>, repeated: &mut Repeated) {
        each_child!(cursor, {
            let node = cursor.node();
            let extent = whole.unwrap_or_else(|| Extent::of(node));
            match self.kind(node) {
                Kind::Comment => self.comment(node),
                Kind::VarSpecList => self.entries(cursor, whole, repeated),
                Kind::ConstSpec => self.values(cursor, extent, SymbolKind::Constant, repeated),
                Kind::VarSpec => {
                    *repeated = Repeated::default();
                    self.values(cursor, extent, SymbolKind::Variable, repeated);
                }
                Kind::TypeSpec | Kind::TypeAlias => self.type_spec(cursor, extent),
                _ => {}
            }
        });
    }

    fn values(&mut self, cursor: &mut TreeCursor<'_>, extent: Extent, kind: SymbolKind, repeated: &mut Repeated) {
        // Their own comment, before the walk meets others.
        let documentation = (self.comments.clone(), self.next_line);
        let mut names = Vec::new();
        let (mut type_, mut values) = (None, None);
        each_child!(cursor, {
            let field = cursor.field_id();
            if field == self.fields.name {
                if self.kind(cursor.node()) == Kind::Identifier {
                    names.push(cursor.node());
                }
            } else if field == self.fields.type_ {
                type_ = self.type_(cursor, Some(Side::Surface));
            } else if field == self.fields.value {
                let wanted = if type_.is_none() { Some(Side::Surface) } else { None };
                values = Some(self.expressions(cursor, wanted));
            }
        });
        if type_.is_some() || values.is_some() || kind == SymbolKind::Variable {
            *repeated = Repeated { type_, values: values.unwrap_or_default() };
        }
        let keyword = if extent.start == cursor.node().start_byte() {
            if kind == SymbolKind::Constant { "const " } else { "var " }
        } else {
            ""
        };
        let text: Arc<str> =
            format!("{keyword}{}", folded(self.text.get(extent.start..extent.end).unwrap_or(""), MAX_VALUE)).into();
        let several = names.len() > 1 && repeated.values.len() == 1;
        for (position, name) in names.iter().enumerate() {
            let called = self.text_of(*name);
            if called == "_" {
                continue;
            }
            (self.comments, self.next_line) = documentation.clone();
            let (_, declaration) = self.define(*name, None, kind, Shape::Value, extent, Arc::clone(&text));
            let value = match repeated.values.get(if several { 0 } else { position }) {
                Some(Some(value)) if several => {
                    Some(self.surface.expression(Side::Surface, Expression::Part(*value, position as u32)))
                }
                Some(value) => *value,
                None => None,
            };
            let binding = Binding {
                name: self.surface.name(called),
                role: Role::Variable,
                declaration: Some(declaration),
                annotation: repeated.type_,
                value,
            };
            let binding = self.surface.binding(Side::Surface, binding);
            self.scope.push((called, binding));
        }
        self.comments.clear();
    }

    fn type_spec(&mut self, cursor: &mut TreeCursor<'_>, extent: Extent) {
        let Some(name) = self.field(cursor, self.fields.name) else { return };
        let documentation = (std::mem::take(&mut self.comments), self.next_line);
        let called = self.text_of(name);
        self.scopes.enter();
        let body = self.field(cursor, self.fields.type_);
        let kind = match body.map(|body| self.kind(body)) {
            Some(Kind::StructType) => SymbolKind::Struct,
            Some(Kind::InterfaceType) => SymbolKind::Interface,
            _ => SymbolKind::Type,
        };
        // The shape is made after the definition, whose members come after it.
        let keyword = if extent.start == cursor.node().start_byte() { "type " } else { "" };
        let header = match (kind, body) {
            (SymbolKind::Struct, Some(body)) => body.start_byte() + "struct".len(),
            (SymbolKind::Interface, Some(body)) => body.start_byte() + "interface".len(),
            _ => extent.end,
        };
        let text: Arc<str> =
            format!("{keyword}{}", folded(self.text.get(extent.start..header).unwrap_or(""), MAX_SIGNATURE)).into();
        let outer = self.source;
        (self.comments, self.next_line) = documentation;
        let mut declared = None;
        if called != "_" {
            let (index, declaration) = self.define(name, None, kind, Shape::Value, extent, text);
            self.source = index + 1;
            declared = Some((index, declaration));
        }
        self.comments.clear();
        let shape = self.shape_of(cursor, Side::Surface, declared.map(|(index, _)| (index, called)));
        if let Some((_, declaration)) = declared {
            self.surface.outline.declarations[declaration.index()].shape = Shape::Type(shape);
        }
        self.source = outer;
        self.scopes.leave();
        self.comments.clear();
    }
}
