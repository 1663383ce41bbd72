//! Types as they are written: of parameters, results, fields, and the types that are declared.
//!
//! Must not know what a name means elsewhere. Invariant: every type name is referred to once, wanted as evidence or not.

use std::sync::Arc;

use tree_sitter::{Node, TreeCursor};

use super::declarations::Extent;
use super::{Kind, Walk};
use crate::languages::grammar::{each_child, folded};
use crate::languages::outline::Side;
use crate::model::facts::{Binding, Expression, Handle, Role, Shape, Signature, Subject, TypeForm, TypeShape, Use};
use crate::model::{EdgeKind, SymbolKind};

/// The receiver of a method.
pub(super) struct Receiver<'s> {
    pub type_name: &'s str,
    pub by_pointer: bool,
    /// Bindings of the type parameters that it names.
    pub parameters: Vec<Handle>,
}

impl<'s> Walk<'s> {
    pub(super) fn is_type_kind(kind: Kind) -> bool {
        matches!(
            kind,
            Kind::TypeIdentifier
                | Kind::QualifiedType
                | Kind::GenericType
                | Kind::PointerType
                | Kind::StructType
                | Kind::InterfaceType
                | Kind::ArrayType
                | Kind::ImplicitArrayType
                | Kind::SliceType
                | Kind::MapType
                | Kind::ChannelType
                | Kind::FunctionType
                | Kind::NegatedType
                | Kind::ParenthesizedType
                | Kind::TypeElem
                | Kind::TypeConstraint
        )
    }

    /// Walks a type; returns it as evidence where that is wanted.
    pub(super) fn type_(&mut self, cursor: &mut TreeCursor<'_>, wanted: Option<Side>) -> Option<Handle> {
        self.type_as(cursor, wanted, EdgeKind::References)
    }

    /// As [`Self::type_`], for a type that is referred to as `kind` says.
    fn type_as(&mut self, cursor: &mut TreeCursor<'_>, wanted: Option<Side>, kind: EdgeKind) -> Option<Handle> {
        self.deeper(|this| this.type_inner(cursor, wanted, kind))
    }

    fn push(&mut self, side: Side, expression: Expression) -> Handle {
        self.outline(side).expression(side, expression)
    }

    fn type_inner(&mut self, cursor: &mut TreeCursor<'_>, wanted: Option<Side>, kind: EdgeKind) -> Option<Handle> {
        let node = cursor.node();
        match self.kind(node) {
            Kind::TypeIdentifier | Kind::Identifier => self.name_use(node, kind, false, wanted),
            Kind::QualifiedType => self.qualified(cursor, wanted, kind),
            Kind::GenericType => {
                let (mut object, mut arguments) = (None, None);
                each_child!(cursor, {
                    if cursor.field_id() == self.fields.type_ {
                        object = self.type_as(cursor, wanted, kind);
                    } else if cursor.field_id() == self.fields.type_arguments {
                        arguments = self.type_list(cursor, wanted);
                    }
                });
                let (side, object) = (wanted?, object?);
                Some(self.push(side, Expression::Subscript { object, argument: arguments }))
            }
            Kind::PointerType => {
                let inner = self.only_type(cursor, wanted, kind);
                let (side, inner) = (wanted?, inner?);
                Some(self.push(side, Expression::Pointer(inner)))
            }
            Kind::NegatedType | Kind::ParenthesizedType => self.only_type(cursor, wanted, kind),
            Kind::SliceType | Kind::ArrayType | Kind::ImplicitArrayType => {
                let mut element = None;
                each_child!(cursor, {
                    if cursor.field_id() == self.fields.element {
                        element = self.type_(cursor, wanted);
                    } else if cursor.field_id() == self.fields.length {
                        self.expression(cursor, None);
                    }
                });
                // An element that is nothing to follow still makes a list.
                let side = wanted?;
                let element = element.unwrap_or_else(|| self.push(side, Expression::Literal));
                Some(self.push(side, Expression::Sequence(element)))
            }
            Kind::MapType => {
                let (mut key, mut value) = (None, None);
                each_child!(cursor, {
                    if cursor.field_id() == self.fields.key {
                        key = self.type_(cursor, wanted);
                    } else if cursor.field_id() == self.fields.value {
                        value = self.type_(cursor, wanted);
                    }
                });
                let side = wanted?;
                let key = key.unwrap_or_else(|| self.push(side, Expression::Literal));
                let value = value.unwrap_or_else(|| self.push(side, Expression::Literal));
                Some(self.push(side, Expression::Mapping(key, value)))
            }
            Kind::ChannelType => {
                let inner = self.only_type(cursor, wanted, EdgeKind::References);
                let (side, inner) = (wanted?, inner?);
                Some(self.push(side, Expression::Channel(inner)))
            }
            Kind::FunctionType => {
                let side = wanted.unwrap_or(Side::Body);
                self.scopes.enter();
                let signature = self.signature(cursor, side);
                self.scopes.leave();
                wanted.map(|side| self.push(side, Expression::Signature(signature)))
            }
            Kind::StructType | Kind::InterfaceType => {
                let side = wanted.unwrap_or(Side::Body);
                let mut shape = TypeShape::default();
                self.structure(cursor, side, &mut shape, None);
                wanted.map(|side| {
                    let shape = self.outline(side).shape(shape);
                    self.push(side, Expression::Anonymous(shape))
                })
            }
            Kind::TypeElem | Kind::TypeConstraint => {
                // A union of several has the members of none; they are referred to and no more.
                let mut parts = Vec::new();
                each_child!(cursor, {
                    if Self::is_type_kind(self.kind(cursor.node())) {
                        parts.push(self.type_as(cursor, wanted, kind));
                    }
                });
                if parts.len() == 1 { parts.pop().flatten() } else { None }
            }
            _ => None,
        }
    }

    /// Walks the one type among the children.
    fn only_type(&mut self, cursor: &mut TreeCursor<'_>, wanted: Option<Side>, kind: EdgeKind) -> Option<Handle> {
        let mut inner = None;
        each_child!(cursor, {
            if Self::is_type_kind(self.kind(cursor.node())) {
                inner = self.type_as(cursor, wanted, kind);
            }
        });
        inner
    }

    fn qualified(&mut self, cursor: &mut TreeCursor<'_>, wanted: Option<Side>, kind: EdgeKind) -> Option<Handle> {
        let side = wanted.unwrap_or(Side::Body);
        let (mut object, mut name) = (None, None);
        each_child!(cursor, {
            if cursor.field_id() == self.fields.package {
                object = self.name_use(cursor.node(), EdgeKind::References, true, Some(side));
            } else if cursor.field_id() == self.fields.name {
                name = Some(cursor.node());
            }
        });
        let name = name?;
        self.member(name, kind, false, object, wanted)
    }

    /// Walks a list of types in brackets.
    pub(super) fn type_list(&mut self, cursor: &mut TreeCursor<'_>, wanted: Option<Side>) -> Option<Handle> {
        let mut parts = Vec::new();
        each_child!(cursor, {
            if Self::is_type_kind(self.kind(cursor.node())) {
                parts.push(self.type_(cursor, wanted));
            }
        });
        self.list(wanted?, &parts)
    }

    /// Makes a list of evidence; what is unknown keeps its place.
    pub(super) fn list(&mut self, side: Side, parts: &[Option<Handle>]) -> Option<Handle> {
        let mut rest = None;
        for part in parts.iter().rev() {
            let first = part.unwrap_or_else(|| self.push(side, Expression::Literal));
            rest = Some(self.push(side, Expression::List(first, rest)));
        }
        rest
    }

    /// Walks type parameters, parameters and results of the cursor's node, and binds them in the open scope.
    pub(super) fn signature(&mut self, cursor: &mut TreeCursor<'_>, side: Side) -> u32 {
        let mut made = Signature::default();
        each_child!(cursor, {
            let field = cursor.field_id();
            if field == self.fields.type_parameters {
                made.type_parameters = self.type_parameters(cursor, side);
            } else if field == self.fields.parameters {
                made.parameters = self.parameters(cursor, side, &mut made.variadic);
            } else if field == self.fields.result {
                let kind = self.kind(cursor.node());
                if kind == Kind::ParameterList {
                    made.results = self.parameters(cursor, side, &mut false);
                } else {
                    made.results.push(self.type_(cursor, Some(side)));
                }
            }
        });
        self.outline(side).signature(made)
    }

    /// Walks a parameter list; returns the type of each parameter.
    fn parameters(&mut self, cursor: &mut TreeCursor<'_>, side: Side, variadic: &mut bool) -> Vec<Option<Handle>> {
        let mut types = Vec::new();
        each_child!(cursor, {
            let kind = self.kind(cursor.node());
            if matches!(kind, Kind::Parameter | Kind::VariadicParameter) {
                let mut names = Vec::new();
                let mut type_ = None;
                each_child!(cursor, {
                    if cursor.field_id() == self.fields.name {
                        if self.kind(cursor.node()) == Kind::Identifier {
                            names.push(self.text_of(cursor.node()));
                        }
                    } else if cursor.field_id() == self.fields.type_ {
                        type_ = self.type_(cursor, Some(side));
                    }
                });
                if kind == Kind::VariadicParameter {
                    *variadic = true;
                    type_ = type_.map(|element| self.push(side, Expression::Sequence(element)));
                }
                types.extend(std::iter::repeat_n(type_, names.len().max(1)));
                for name in names {
                    self.bind_local(name, Role::Parameter, type_, None);
                }
            }
        });
        types
    }

    fn type_parameters(&mut self, cursor: &mut TreeCursor<'_>, side: Side) -> Vec<Handle> {
        let mut bindings = Vec::new();
        let mut open = Vec::new();
        // All of them are in scope in each constraint, so they are bound first.
        each_child!(cursor, {
            if self.kind(cursor.node()) == Kind::TypeParameter {
                let start = bindings.len();
                each_child!(cursor, {
                    if cursor.field_id() == self.fields.name && self.kind(cursor.node()) == Kind::Identifier {
                        bindings.push(self.bind_type_parameter(cursor.node(), side));
                    }
                });
                open.push(start..bindings.len());
            }
        });
        let mut open = open.into_iter();
        each_child!(cursor, {
            if self.kind(cursor.node()) == Kind::TypeParameter {
                let range = open.next().unwrap_or(0..0);
                each_child!(cursor, {
                    if cursor.field_id() == self.fields.type_ {
                        let constraint = self.type_(cursor, Some(side));
                        for binding in &bindings[range.clone()] {
                            self.outline(side).outline.bindings[binding.index()].annotation = constraint;
                        }
                    }
                });
            }
        });
        bindings
    }

    fn bind_type_parameter(&mut self, name: Node<'_>, side: Side) -> Handle {
        let text = self.text_of(name);
        let name = self.name(side, text);
        let binding = Binding { name, role: Role::TypeParameter, declaration: None, annotation: None, value: None };
        let handle = self.outline(side).binding(side, binding);
        if text != "_" {
            self.scopes.bind(text, handle);
        }
        handle
    }

    /// Walks the receiver of a method, and binds its name and the type parameters it names.
    pub(super) fn receiver(&mut self, cursor: &mut TreeCursor<'_>) -> Option<Receiver<'s>> {
        let list = self.field(cursor, self.fields.receiver)?;
        let mut walk = list.walk();
        let parameter = list.children(&mut walk).find(|child| self.kind(*child) == Kind::Parameter)?;
        let mut type_ = parameter.child_by_field_id(self.fields.type_?.get())?;
        let mut by_pointer = false;
        loop {
            match self.kind(type_) {
                Kind::PointerType => by_pointer = true,
                Kind::ParenthesizedType => {}
                _ => break,
            }
            type_ = (0..type_.named_child_count())
                .filter_map(|index| type_.named_child(index.try_into().ok()?))
                .find(|child| Self::is_type_kind(self.kind(*child)))?;
        }
        let mut parameters = Vec::new();
        let mut named = type_;
        if self.kind(type_) == Kind::GenericType {
            named = type_.child_by_field_id(self.fields.type_?.get())?;
            let arguments = type_.child_by_field_id(self.fields.type_arguments?.get())?;
            let mut stack = vec![arguments];
            while let Some(node) = stack.pop() {
                if self.kind(node) == Kind::TypeIdentifier {
                    parameters.push(self.bind_type_parameter(node, Side::Surface));
                    continue;
                }
                let mut children = node.walk();
                let mut inner: Vec<_> = node.named_children(&mut children).collect();
                inner.reverse();
                stack.extend(inner);
            }
        }
        if self.kind(named) != Kind::TypeIdentifier {
            return None;
        }
        let type_name = self.text_of(named);
        let mut evidence = self.name_use(named, EdgeKind::References, false, Some(Side::Surface))?;
        if !parameters.is_empty() {
            let arguments: Vec<_> =
                parameters.iter().map(|binding| Some(self.push(Side::Surface, Expression::Name(Use::One(*binding))))).collect();
            let argument = self.list(Side::Surface, &arguments);
            evidence = self.push(Side::Surface, Expression::Subscript { object: evidence, argument });
        }
        if by_pointer {
            evidence = self.push(Side::Surface, Expression::Pointer(evidence));
        }
        let name = parameter.child_by_field_id(self.fields.name?.get());
        if let Some(name) = name.filter(|name| self.kind(*name) == Kind::Identifier) {
            self.bind_local(self.text_of(name), Role::Parameter, Some(evidence), None);
        }
        Some(Receiver { type_name, by_pointer, parameters })
    }

    /// Walks a type declaration's parameters and type; the shape's members become definitions when it is one itself.
    pub(super) fn shape_of(&mut self, cursor: &mut TreeCursor<'_>, side: Side, declared: Option<(u32, &'s str)>) -> u32 {
        let alias = self.kind(cursor.node()) == Kind::TypeAlias;
        let mut shape = TypeShape::default();
        each_child!(cursor, {
            let field = cursor.field_id();
            if field == self.fields.type_parameters {
                shape.parameters = self.type_parameters(cursor, side);
            } else if field == self.fields.type_ {
                let kind = self.kind(cursor.node());
                if matches!(kind, Kind::StructType | Kind::InterfaceType) && !alias {
                    self.structure(cursor, side, &mut shape, declared);
                } else {
                    let inner = self.type_(cursor, Some(side)).unwrap_or_else(|| self.push(side, Expression::Literal));
                    shape.form = if alias { TypeForm::Alias(inner) } else { TypeForm::Defined(inner) };
                }
            }
        });
        self.outline(side).shape(shape)
    }

    /// Walks the fields of a struct or the elements of an interface.
    fn structure(&mut self, cursor: &mut TreeCursor<'_>, side: Side, shape: &mut TypeShape, declared: Option<(u32, &'s str)>) {
        let interface = self.kind(cursor.node()) == Kind::InterfaceType;
        if interface {
            shape.form = TypeForm::Interface;
        }
        let mut depth = 0;
        // The fields stand one list deeper.
        loop {
            if !cursor.goto_first_child() {
                break;
            }
            depth += 1;
            let mut inside = false;
            loop {
                let node = cursor.node();
                match self.kind(node) {
                    Kind::Comment => self.comment(node),
                    Kind::FieldDeclarationList => {
                        inside = true;
                        break;
                    }
                    Kind::FieldDeclaration => self.field_declaration(cursor, side, shape),
                    Kind::MethodElem => self.interface_method(cursor, side, shape, declared),
                    Kind::TypeElem => {
                        if let Some(embedded) = self.embedded_interface(cursor, side) {
                            shape.embedded.push(embedded);
                        }
                    }
                    _ => {}
                }
                if !cursor.goto_next_sibling() {
                    break;
                }
            }
            if !inside {
                break;
            }
        }
        for _ in 0..depth {
            cursor.goto_parent();
        }
        self.comments.clear();
    }

    /// Walks an element of an interface that is no method: an interface it includes, or a union of types.
    fn embedded_interface(&mut self, cursor: &mut TreeCursor<'_>, side: Side) -> Option<Handle> {
        let parts = cursor.node().named_child_count();
        let kind = if parts == 1 { EdgeKind::Inherits } else { EdgeKind::References };
        self.type_as(cursor, Some(side), kind)
    }

    fn field_declaration(&mut self, cursor: &mut TreeCursor<'_>, side: Side, shape: &mut TypeShape) {
        self.comments.clear();
        let mut names = Vec::new();
        let mut pointer = false;
        let mut embedded = None;
        let named = self.field(cursor, self.fields.name).is_some();
        let mut type_ = None;
        each_child!(cursor, {
            let node = cursor.node();
            if cursor.field_id() == self.fields.name {
                if self.kind(node) == Kind::FieldIdentifier {
                    names.push(self.text_of(node));
                }
            } else if cursor.field_id() == self.fields.type_ {
                if named {
                    type_ = self.type_(cursor, Some(side));
                } else {
                    embedded = Some(self.embedded_name(node));
                    type_ = self.type_as(cursor, Some(side), EdgeKind::Inherits);
                }
            } else if node.kind() == "*" {
                pointer = true;
            }
        });
        if let Some(name) = embedded {
            if pointer {
                type_ = type_.map(|inner| self.push(side, Expression::Pointer(inner)));
            }
            if let Some(type_) = type_ {
                shape.embedded.push(type_);
            }
            let name = self.name(side, name);
            shape.fields.push((name, type_));
        }
        for name in names {
            if name != "_" {
                let name = self.name(side, name);
                shape.fields.push((name, type_));
            }
        }
    }

    /// Returns the name of the field that an embedded type makes.
    fn embedded_name(&self, node: Node<'_>) -> &'s str {
        match self.kind(node) {
            Kind::QualifiedType => node.child_by_field_name("name").map_or("", |name| self.text_of(name)),
            Kind::GenericType => node.child_by_field_name("type").map_or("", |inner| self.embedded_name(inner)),
            _ => self.text_of(node),
        }
    }

    fn interface_method(
        &mut self,
        cursor: &mut TreeCursor<'_>,
        side: Side,
        shape: &mut TypeShape,
        declared: Option<(u32, &'s str)>,
    ) {
        let node = cursor.node();
        let Some(name) = self.field(cursor, self.fields.name) else { return };
        let before = self.references.len();
        self.scopes.enter();
        let signature = self.signature(cursor, side);
        self.scopes.leave();
        let called = self.text_of(name);
        let id = self.name(side, called);
        shape.methods.push((id, signature));
        if let Some((parent, owner)) = declared {
            let text: Arc<str> = folded(self.text.get(node.start_byte()..node.end_byte()).unwrap_or(""), 400);
            let made = Shape::Signature(signature);
            let (index, _) = self.define(name, Some(owner), SymbolKind::Method, made, Extent::of(node), text);
            self.definitions[index as usize].parent = Some(parent);
            for reference in &mut self.references[before..] {
                reference.source = index + 1;
            }
        }
        self.comments.clear();
    }

    /// Binds a name in the open scope.
    pub(super) fn bind_local(&mut self, text: &'s str, role: Role, annotation: Option<Handle>, value: Option<Handle>) {
        if text == "_" {
            return;
        }
        let name = self.body.name(text);
        let binding = Binding { name, role, declaration: None, annotation, value };
        let handle = self.body.binding(Side::Body, binding);
        self.scopes.bind(text, handle);
    }

    /// Walks a use of a bare name.
    pub(super) fn name_use(&mut self, node: Node<'_>, kind: EdgeKind, qualifier: bool, wanted: Option<Side>) -> Option<Handle> {
        let text = self.text_of(node);
        if text == "_" {
            return None;
        }
        if let Some(binding) = self.scopes.find(text) {
            self.local_uses += 1;
            let side = wanted?;
            // What others see cannot name what only a body has.
            if side == Side::Surface && binding.in_body() {
                return None;
            }
            return Some(self.push(side, Expression::Name(Use::One(binding))));
        }
        let name = self.body.name(text);
        self.refer(node.start_byte(), kind, qualifier, Subject::Name(Use::Free(Handle::of_body(name.0 as usize))));
        let side = wanted?;
        let name = self.name(side, text);
        Some(self.push(side, Expression::Name(Use::Free(side.handle(name.0 as usize)))))
    }

    /// Refers to a member of what `object` is.
    pub(super) fn member(
        &mut self,
        node: Node<'_>,
        kind: EdgeKind,
        qualifier: bool,
        object: Option<Handle>,
        wanted: Option<Side>,
    ) -> Option<Handle> {
        let text = self.text_of(node);
        let name = self.body.name(text);
        self.refer(node.start_byte(), kind, qualifier, Subject::Member { object, name });
        let (side, object) = (wanted?, object?);
        let name = self.name(side, text);
        Some(self.push(side, Expression::Attribute { object, name }))
    }
}
