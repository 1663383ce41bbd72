//! Items of a module or a block: modules, functions, types, constants, imports, macros.
//!
//! Must not follow a path. Invariant: an item sees none of the locals around it, and every name it declares stands in its scope.

use std::sync::Arc;

use tree_sitter::{Node, TreeCursor};

use super::definitions::Made;
use super::scopes::Local;
use super::{Kind, Position, Walk};
use crate::languages::grammar::each_child;
use crate::languages::outline::Side;
use crate::model::facts::{
    Binding, Expression, Handle, Import, Item, ItemMeaning, ItemScope, NameId, Role, Shape, Signature, Space, Subject, TypeForm,
    TypeShape, Visibility,
};
use crate::model::{EdgeKind, SymbolKind};

/// Names of the fields of a tuple.
const PLACES: [&str; 16] = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15"];

/// Names and types of fields, or of variants and what they hold.
type Fields = Vec<(NameId, Option<Handle>)>;

impl<'s> Walk<'s> {
    pub(super) fn is_item(kind: Kind) -> bool {
        matches!(
            kind,
            Kind::Module
                | Kind::ForeignModule
                | Kind::Struct
                | Kind::Union
                | Kind::Enum
                | Kind::TypeItem
                | Kind::Function
                | Kind::FunctionSignature
                | Kind::Implementation
                | Kind::Trait
                | Kind::Const
                | Kind::Static
                | Kind::Use
                | Kind::ExternCrate
                | Kind::MacroDefinition
        )
    }

    /// Walks the items of a file or of a module written in it.
    pub(super) fn items(&mut self, cursor: &mut TreeCursor<'_>) {
        each_child!(cursor, {
            let node = cursor.node();
            if !self.is_prelude(node) {
                match self.kind(node) {
                    kind if Self::is_item(kind) => self.item(cursor),
                    Kind::MacroInvocation => self.item_macro(cursor),
                    Kind::ExpressionStatement => each_child!(cursor, {
                        if self.kind(cursor.node()) == Kind::MacroInvocation {
                            self.item_macro(cursor);
                        }
                    }),
                    _ => {}
                }
                self.take_pending();
            }
        });
        self.take_pending();
    }

    pub(super) fn item(&mut self, cursor: &mut TreeCursor<'_>) {
        self.deeper(|this| {
            // Items see no local names, whatever block they stand in.
            let locals = std::mem::take(&mut this.scopes);
            match this.kind(cursor.node()) {
                Kind::Module => this.module(cursor),
                Kind::ForeignModule => each_child!(cursor, {
                    if cursor.field_id() == this.fields.body {
                        this.items(cursor);
                    }
                }),
                Kind::Struct | Kind::Union => this.structure(cursor),
                Kind::Enum => this.enumeration(cursor),
                Kind::TypeItem => drop(this.type_item(cursor, None)),
                Kind::Function | Kind::FunctionSignature => drop(this.function(cursor, None)),
                Kind::Implementation => this.implementation(cursor),
                Kind::Trait => this.trait_(cursor),
                Kind::Const | Kind::Static => drop(this.constant(cursor, None)),
                Kind::Use => this.imports(cursor),
                Kind::ExternCrate => this.extern_crate(cursor),
                Kind::MacroDefinition => this.macro_definition(cursor),
                _ => {}
            }
            this.scopes = locals;
            Some(())
        });
    }

    pub(super) fn visibility(&self, node: Node<'_>) -> Visibility {
        let mut walk = node.walk();
        let modifier = node.children(&mut walk).find(|child| self.kind(*child) == Kind::Visibility);
        match modifier.map(|modifier| self.text_of(modifier)) {
            None => Visibility::Private,
            Some("pub") => Visibility::Public,
            Some(text) if text.ends_with("self)") => Visibility::Private,
            Some(_) => Visibility::Restricted,
        }
    }

    pub(super) fn declare(&mut self, name: &'s str, space: Space, visibility: Visibility, meaning: ItemMeaning) {
        let scope = self.position.scope;
        let outline = self.outline(Side::of(scope));
        let name = outline.name(name);
        outline.outline.scopes[scope.index()].items.push(Item { name, space, visibility, meaning });
    }

    fn module(&mut self, cursor: &mut TreeCursor<'_>) {
        let node = cursor.node();
        let Some(name) = self.field(cursor, self.fields.name) else { return };
        let pending = self.take_pending();
        let visibility = self.visibility(node);
        let text = self.name_of(name);
        if self.field(cursor, self.fields.body).is_none() {
            let side = Side::of(self.position.scope);
            let path = pending.path.map(|path| self.name(side, path));
            self.declare(text, Space::Type, visibility, ItemMeaning::File { path });
            if pending.macros_used {
                self.declare(text, Space::Macro, Visibility::Private, ItemMeaning::File { path });
            }
            let scope = self.position.scope;
            let search = self.body.search(Side::Body, scope, text, Space::Type);
            self.refer(name.start_byte(), EdgeKind::Imports, false, Subject::Path(search));
            return;
        }
        let head_end = self.head_end(cursor);
        let macros_used = pending.macros_used;
        let made = Made { name, node, kind: SymbolKind::Namespace, shape: Shape::Value, head_end };
        let (index, declaration) = self.define(made, None, pending);
        let side = Side::of(self.position.scope);
        let parent = self.position.scope;
        let name = self.name(side, text);
        let scope = ItemScope { parent: Some(parent), name: Some(name), ..ItemScope::default() };
        let scope = self.outline(side).scope(side, scope);
        self.declare(text, Space::Type, visibility, ItemMeaning::Module { declaration, scope });
        if macros_used {
            self.declare(text, Space::Macro, Visibility::Private, ItemMeaning::Module { declaration, scope });
        }
        let prefix = Arc::clone(&self.definitions[index as usize].key.qualified);
        let inner = Position { side: self.position.side, scope, prefix, parent: index + 1 };
        let outer = std::mem::replace(&mut self.position, inner);
        let source = std::mem::replace(&mut self.source, index + 1);
        each_child!(cursor, {
            if cursor.field_id() == self.fields.body {
                self.items(cursor);
            }
        });
        self.source = source;
        self.position = outer;
    }

    /// Gives the references since `before` to a definition.
    pub(super) fn belong(&mut self, before: usize, index: u32) {
        for reference in &mut self.references[before..] {
            reference.source = index + 1;
        }
    }

    /// Binds `Self` to a type.
    pub(super) fn bind_self_type(&mut self, subject: Handle) -> Handle {
        let side = self.side();
        let name = self.name(side, "Self");
        let binding = Binding { name, role: Role::Alias, declaration: None, annotation: Some(subject), value: None };
        let binding = self.outline(side).binding(side, binding);
        self.scopes.bind("Self", true, Local::Bound(binding));
        binding
    }

    fn structure(&mut self, cursor: &mut TreeCursor<'_>) {
        let mut is_value = true;
        let made = self.type_of_fields(cursor, SymbolKind::Struct, TypeForm::default(), |walk, cursor| {
            is_value = walk.kind(cursor.node()) == Kind::OrderedFields;
            walk.fields_of(cursor)
        });
        let Some((name, declaration)) = made.filter(|_| is_value) else { return };
        let visibility = self.visibility(cursor.node());
        self.declare(name, Space::Value, visibility, ItemMeaning::Declaration(declaration));
    }

    fn enumeration(&mut self, cursor: &mut TreeCursor<'_>) {
        self.type_of_fields(cursor, SymbolKind::Enum, TypeForm::Enum, |walk, cursor| {
            let mut variants = Vec::new();
            each_child!(cursor, {
                match walk.kind(cursor.node()) {
                    Kind::EnumVariant => variants.extend(walk.variant(cursor)),
                    Kind::Attribute => walk.attribute(cursor.node()),
                    _ => {}
                }
            });
            variants
        });
    }

    /// Defines a struct or an enum, whose body `fields` walks; returns its name and declaration.
    fn type_of_fields(
        &mut self,
        cursor: &mut TreeCursor<'_>,
        kind: SymbolKind,
        form: TypeForm,
        mut fields: impl FnMut(&mut Self, &mut TreeCursor<'_>) -> Fields,
    ) -> Option<(&'s str, Handle)> {
        let node = cursor.node();
        let name = self.field(cursor, self.fields.name)?;
        let pending = self.take_pending();
        let before = self.references.len();
        let text = self.name_of(name);
        let side = self.side();
        self.scopes.enter();
        let scope = self.position.scope;
        let itself = self.outline(side).search(side, scope, text, Space::Type);
        self.bind_self_type(itself);
        let mut shape = TypeShape { form, ..TypeShape::default() };
        each_child!(cursor, {
            let field = cursor.field_id();
            if field == self.fields.type_parameters {
                shape.parameters = self.type_parameters(cursor);
            } else if field == self.fields.body {
                shape.fields = fields(self, cursor);
            } else if self.kind(cursor.node()) == Kind::WhereClause {
                self.where_clause(cursor);
            }
        });
        self.scopes.leave();
        let head_end = self.head_end(cursor);
        let shape = Shape::Type(self.outline(side).shape(shape));
        let (index, declaration) = self.define(Made { name, node, kind, shape, head_end }, None, pending);
        self.belong(before, index);
        let visibility = self.visibility(node);
        self.declare(text, Space::Type, visibility, ItemMeaning::Declaration(declaration));
        Some((text, declaration))
    }

    /// Walks the fields of a struct or of a variant; returns their names and types.
    fn fields_of(&mut self, cursor: &mut TreeCursor<'_>) -> Fields {
        let side = self.side();
        let mut fields = Vec::new();
        each_child!(cursor, {
            if self.kind(cursor.node()) == Kind::Attribute {
                self.attribute(cursor.node());
            } else if self.kind(cursor.node()) == Kind::FieldDeclaration {
                let (mut name, mut type_) = (None, None);
                each_child!(cursor, {
                    if cursor.field_id() == self.fields.name {
                        name = Some(self.name_of(cursor.node()));
                    } else if cursor.field_id() == self.fields.type_ {
                        type_ = self.type_(cursor, side);
                    }
                });
                if let Some(name) = name {
                    fields.push((self.name(side, name), type_));
                }
            } else if cursor.field_id() == self.fields.type_ {
                let type_ = self.type_(cursor, side);
                if let Some(place) = PLACES.get(fields.len()) {
                    fields.push((self.name(side, place), type_));
                }
            }
        });
        fields
    }

    fn variant(&mut self, cursor: &mut TreeCursor<'_>) -> Option<(NameId, Option<Handle>)> {
        let side = self.side();
        let name = self.name_of(self.field(cursor, self.fields.name)?);
        let mut held = None;
        each_child!(cursor, {
            if cursor.field_id() == self.fields.body {
                let fields = self.fields_of(cursor);
                let shape = self.outline(side).shape(TypeShape { fields, ..TypeShape::default() });
                held = Some(self.push(side, Expression::Anonymous(shape)));
            } else if cursor.field_id() == self.fields.value {
                self.expression(cursor);
            }
        });
        Some((self.name(side, name), held))
    }

    /// Walks a type alias, or an associated type of the block of `owner`.
    pub(super) fn type_item(&mut self, cursor: &mut TreeCursor<'_>, owner: Option<&str>) -> Option<(u32, Handle)> {
        let node = cursor.node();
        let name = self.field(cursor, self.fields.name)?;
        let pending = self.take_pending();
        let before = self.references.len();
        let side = self.side();
        self.scopes.enter();
        let mut shape = TypeShape::default();
        let mut target = None;
        each_child!(cursor, {
            let field = cursor.field_id();
            if field == self.fields.type_parameters {
                shape.parameters = self.type_parameters(cursor);
            } else if field == self.fields.type_ {
                target = self.type_(cursor, side);
            } else if field == self.fields.bounds {
                // What is known of it is that it has these traits.
                let bounds = self.bounds(cursor, side, EdgeKind::References);
                target = bounds.map(|bounds| self.push(side, Expression::Bounded(bounds)));
            } else if self.kind(cursor.node()) == Kind::WhereClause {
                self.where_clause(cursor);
            }
        });
        self.scopes.leave();
        let target = target.unwrap_or_else(|| self.push(side, Expression::Unknown));
        shape.form = TypeForm::Alias(target);
        let shape = Shape::Type(self.outline(side).shape(shape));
        let head_end = self.head_end(cursor);
        let made = Made { name, node, kind: SymbolKind::Type, shape, head_end };
        let (index, declaration) = self.define(made, owner, pending);
        self.belong(before, index);
        if owner.is_none() {
            let visibility = self.visibility(node);
            self.declare(self.name_of(name), Space::Type, visibility, ItemMeaning::Declaration(declaration));
        }
        Some((index, declaration))
    }

    /// Walks a function, or a method of the block of `owner`.
    pub(super) fn function(&mut self, cursor: &mut TreeCursor<'_>, owner: Option<&str>) -> Option<(u32, Handle)> {
        let node = cursor.node();
        let name = self.field(cursor, self.fields.name)?;
        if self.kind(name) != Kind::Identifier {
            return None;
        }
        let pending = self.take_pending();
        let before = self.references.len();
        let side = self.side();
        self.scopes.enter();
        let signature = self.signature(cursor, side);
        let kind = if owner.is_some() { SymbolKind::Method } else { SymbolKind::Function };
        let head_end = self.head_end(cursor);
        let made = Made { name, node, kind, shape: Shape::Signature(signature), head_end };
        let (index, declaration) = self.define(made, owner, pending);
        self.belong(before, index);
        let prefix = Arc::clone(&self.definitions[index as usize].key.qualified);
        let inner = Position { side: Side::Body, scope: self.position.scope, prefix, parent: index + 1 };
        let outer = std::mem::replace(&mut self.position, inner);
        let source = std::mem::replace(&mut self.source, index + 1);
        each_child!(cursor, {
            if cursor.field_id() == self.fields.body {
                self.block(cursor);
            }
        });
        self.source = source;
        self.position = outer;
        self.scopes.leave();
        if owner.is_none() {
            let visibility = self.visibility(node);
            self.declare(self.name_of(name), Space::Value, visibility, ItemMeaning::Declaration(declaration));
        }
        Some((index, declaration))
    }

    /// Walks a constant or a static.
    pub(super) fn constant(&mut self, cursor: &mut TreeCursor<'_>, owner: Option<&str>) -> Option<(u32, Handle)> {
        let node = cursor.node();
        let name = self.field(cursor, self.fields.name)?;
        let pending = self.take_pending();
        let before = self.references.len();
        let side = self.side();
        let mut signature = Signature::default();
        each_child!(cursor, {
            if cursor.field_id() == self.fields.type_ {
                signature.results.push(self.type_(cursor, side));
            }
        });
        let text = self.name_of(name);
        let mut made = None;
        if text != "_" {
            let head_end = self.field(cursor, self.fields.type_).map_or(node.end_byte(), |type_| type_.end_byte());
            let mut walk = node.walk();
            let mutable = node.children(&mut walk).any(|child| child.kind() == "mutable_specifier");
            let kind = if mutable { SymbolKind::Variable } else { SymbolKind::Constant };
            let shape = Shape::Signature(self.outline(side).signature(signature));
            made = Some(self.define(Made { name, node, kind, shape, head_end }, owner, pending));
        }
        let mut outer = self.position.clone();
        self.position.side = Side::Body;
        let source = self.source;
        if let Some((index, _)) = made {
            self.source = index + 1;
            self.position.parent = index + 1;
            self.position.prefix = Arc::clone(&self.definitions[index as usize].key.qualified);
        }
        each_child!(cursor, {
            if cursor.field_id() == self.fields.value {
                self.expression(cursor);
            }
        });
        std::mem::swap(&mut self.position, &mut outer);
        self.source = source;
        let (index, declaration) = made?;
        self.belong(before, index);
        if owner.is_none() {
            let visibility = self.visibility(node);
            self.declare(text, Space::Value, visibility, ItemMeaning::Declaration(declaration));
        }
        made
    }

    fn macro_definition(&mut self, cursor: &mut TreeCursor<'_>) {
        let node = cursor.node();
        let Some(name) = self.field(cursor, self.fields.name) else { return };
        let pending = self.take_pending();
        let visibility = if pending.exported { Visibility::Public } else { Visibility::Private };
        let made = Made { name, node, kind: SymbolKind::Function, shape: Shape::Value, head_end: name.end_byte() };
        let (_, declaration) = self.define(made, None, pending);
        self.declare(self.name_of(name), Space::Macro, visibility, ItemMeaning::Declaration(declaration));
    }

    fn extern_crate(&mut self, cursor: &mut TreeCursor<'_>) {
        let node = cursor.node();
        let Some(name) = self.field(cursor, self.fields.name) else { return };
        let alias = self.field(cursor, self.fields.alias).unwrap_or(name);
        let itself = self.kind(name) == Kind::SelfValue || self.text_of(name) == "self";
        let visibility = self.visibility(node);
        let side = Side::of(self.position.scope);
        let text = self.name_of(name);
        let (module, taken) = if itself { ("", "crate") } else { ("::", text) };
        let (module, taken) = (self.name(side, module), self.name(side, taken));
        let import = self.outline(side).import(Import { module, name: Some(taken), root_only: false });
        if self.text_of(alias) != "_" {
            self.declare(self.name_of(alias), Space::Type, visibility, ItemMeaning::Import(import));
        }
        if !itself {
            let scope = self.position.scope;
            let object = self.body.search(Side::Body, scope, "::", Space::Type);
            let name_id = self.body.name(text);
            let path = self.push(Side::Body, Expression::Path { object, name: name_id, space: Space::Type });
            self.refer(name.start_byte(), EdgeKind::Imports, false, Subject::Path(path));
        }
    }

    fn imports(&mut self, cursor: &mut TreeCursor<'_>) {
        let visibility = self.visibility(cursor.node());
        if let Some(argument) = self.field(cursor, self.fields.argument) {
            self.use_tree(argument, &Prefix { text: String::new(), expression: None }, visibility);
        }
    }

    fn use_tree(&mut self, node: Node<'_>, prefix: &Prefix, visibility: Visibility) {
        self.deeper(|this| {
            match this.kind(node) {
                Kind::UseList => {
                    let mut walk = node.walk();
                    for child in node.named_children(&mut walk) {
                        this.use_tree(child, prefix, visibility);
                    }
                }
                Kind::ScopedUseList => {
                    let inner = match node.child_by_field_id(this.fields.path?.get()) {
                        Some(path) => this.use_path(path, prefix, true),
                        None if prefix.expression.is_none() => this.root(),
                        None => prefix.clone(),
                    };
                    let list = node.child_by_field_id(this.fields.list?.get())?;
                    this.use_tree(list, &inner, visibility);
                }
                Kind::UseWildcard => {
                    let inner = match node.named_child(0) {
                        Some(path) => this.use_path(path, prefix, true),
                        None if this.text_of(node).starts_with("::") && prefix.expression.is_none() => this.root(),
                        None => prefix.clone(),
                    };
                    let side = Side::of(this.position.scope);
                    let module = this.outline(side).own_name(inner.text);
                    let import = this.outline(side).import(Import { module, name: None, root_only: false });
                    this.declare("*", Space::Every, visibility, ItemMeaning::Star(import));
                }
                Kind::UseAs => {
                    let path = node.child_by_field_id(this.fields.path?.get())?;
                    let alias = node.child_by_field_id(this.fields.alias?.get())?;
                    this.use_leaf(path, prefix, this.name_of(alias), visibility);
                }
                Kind::Identifier | Kind::ScopedIdentifier | Kind::Crate | Kind::SelfValue | Kind::Super => {
                    this.use_leaf(node, prefix, "", visibility);
                }
                _ => {}
            }
            Some(())
        });
    }

    fn root(&mut self) -> Prefix {
        let scope = self.position.scope;
        Prefix { text: "::".to_owned(), expression: Some(self.body.search(Side::Body, scope, "::", Space::Type)) }
    }

    /// Takes one name by a path, under the name `alias` when that is not empty.
    fn use_leaf(&mut self, node: Node<'_>, prefix: &Prefix, alias: &'s str, visibility: Visibility) {
        let whole = self.use_path(node, prefix, false);
        let (module, taken) = match whole.text.rsplit_once("::") {
            Some(("", taken)) => ("::", taken),
            Some((module, taken)) => (module, taken),
            None => ("", whole.text.as_str()),
        };
        // `a::{self}` is the module alone, not what else has its name.
        let space = if self.kind(node) == Kind::SelfValue { Space::Type } else { Space::Every };
        let name = match alias {
            "" => taken,
            alias => alias,
        };
        if matches!(name, "_" | "crate" | "self" | "super") {
            return;
        }
        let side = Side::of(self.position.scope);
        let (module, taken) = (module.to_owned(), taken.to_owned());
        let named = name.to_owned();
        let outline = self.outline(side);
        let (module, taken) = (outline.own_name(module), outline.own_name(taken));
        let import = outline.import(Import { module, name: Some(taken), root_only: false });
        let name = outline.own_name(named);
        let scope = self.position.scope;
        let item = Item { name, space, visibility, meaning: ItemMeaning::Import(import) };
        self.outline(side).outline.scopes[scope.index()].items.push(item);
    }

    /// Refers to the parts of a path in an import; `from` says that it is what names are taken from.
    fn use_path(&mut self, node: Node<'_>, prefix: &Prefix, from: bool) -> Prefix {
        let mut parts = Vec::new();
        let mut rooted = false;
        let mut next = Some(node);
        while let Some(node) = next {
            match self.kind(node) {
                Kind::ScopedIdentifier => {
                    parts.extend(node.child_by_field_name("name"));
                    next = node.child_by_field_name("path");
                    rooted = next.is_none();
                }
                _ => {
                    parts.push(node);
                    next = None;
                }
            }
        }
        parts.reverse();
        let mut whole = if rooted && prefix.expression.is_none() { self.root() } else { prefix.clone() };
        let count = parts.len();
        for (position, part) in parts.into_iter().enumerate() {
            let text = self.name_of(part);
            let is_last = position + 1 == count;
            let keyword = matches!(self.kind(part), Kind::Crate | Kind::SelfValue | Kind::Super);
            if text == "self" && whole.expression.is_some() {
                // What stands before it.
                if let (Some(expression), true) = (whole.expression, is_last) {
                    self.refer(part.start_byte(), EdgeKind::Imports, false, Subject::Path(expression));
                }
                continue;
            }
            let space = if is_last && !from { Space::Every } else { Space::Type };
            let expression = match whole.expression {
                None => {
                    let scope = self.position.scope;
                    self.body.search(Side::Body, scope, text, space)
                }
                Some(object) => {
                    let name = self.body.name(text);
                    self.push(Side::Body, Expression::Path { object, name, space })
                }
            };
            let taken_from = if from { is_last } else { position + 2 == count };
            if !keyword || taken_from {
                let qualifier = !is_last && !taken_from;
                self.refer(part.start_byte(), EdgeKind::Imports, qualifier, Subject::Path(expression));
            }
            if !whole.text.is_empty() && whole.text != "::" {
                whole.text.push_str("::");
            }
            whole.text.push_str(text);
            whole.expression = Some(expression);
        }
        whole
    }
}

/// The part of an import's path that is known so far.
#[derive(Clone)]
struct Prefix {
    text: String,
    expression: Option<Handle>,
}
