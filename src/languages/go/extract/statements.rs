//! Statements: which blocks open scopes, and what binds the names in them.
//!
//! Must not judge types. Invariant: what a declaration binds is not in scope in its own values.

use tree_sitter::{Node, TreeCursor};

use super::{Kind, Walk};
use crate::languages::grammar::each_child;
use crate::languages::outline::Side;
use crate::model::facts::{Expression, Handle, Role};

/// Whether a name gets an index or key, or an element, when iterating.
const KEY: usize = 0;

impl<'s> Walk<'s> {
    /// Walks what stands in a block, in the open scope.
    pub(super) fn statements(&mut self, cursor: &mut TreeCursor<'_>) {
        each_child!(cursor, {
            match self.kind(cursor.node()) {
                Kind::StatementList => self.statements(cursor),
                Kind::Other | Kind::Comment => {}
                _ => self.statement(cursor),
            }
        });
    }

    pub(super) fn statement(&mut self, cursor: &mut TreeCursor<'_>) {
        self.deeper(|this| {
            this.statement_inner(cursor);
            Some(())
        });
    }

    fn scoped(&mut self, inner: impl FnOnce(&mut Self)) {
        self.scopes.enter();
        inner(self);
        self.scopes.leave();
    }

    fn statement_inner(&mut self, cursor: &mut TreeCursor<'_>) {
        match self.kind(cursor.node()) {
            Kind::Block => self.scoped(|this| this.statements(cursor)),
            Kind::ShortVar => self.short_variables(cursor),
            Kind::Var | Kind::VarSpecList => each_child!(cursor, {
                match self.kind(cursor.node()) {
                    Kind::VarSpec => self.local_values(cursor, &mut None),
                    Kind::VarSpecList => self.statement(cursor),
                    _ => {}
                }
            }),
            Kind::Const => {
                let mut repeated = None;
                each_child!(cursor, {
                    if self.kind(cursor.node()) == Kind::ConstSpec {
                        self.local_values(cursor, &mut repeated);
                    }
                });
            }
            Kind::Type => each_child!(cursor, {
                if matches!(self.kind(cursor.node()), Kind::TypeSpec | Kind::TypeAlias) {
                    self.local_type(cursor);
                }
            }),
            // Each has a scope of its own around all it holds; a block inside opens another.
            Kind::If | Kind::For | Kind::Switch | Kind::Select => self.scoped(|this| this.parts(cursor)),
            Kind::Case | Kind::DefaultCase | Kind::CommunicationCase => self.scoped(|this| this.parts(cursor)),
            Kind::TypeSwitch => self.scoped(|this| this.type_switch(cursor)),
            Kind::ForClause => self.parts(cursor),
            Kind::RangeClause => self.range(cursor),
            Kind::Receive => self.receive(cursor),
            Kind::Labeled => self.parts(cursor),
            Kind::LabelName | Kind::Comment | Kind::Other => {}
            Kind::StatementList => self.statements(cursor),
            _ => self.parts(cursor),
        }
    }

    /// Walks every part of a statement: statements and expressions alike.
    fn parts(&mut self, cursor: &mut TreeCursor<'_>) {
        each_child!(cursor, {
            let kind = self.kind(cursor.node());
            match kind {
                Kind::Comment | Kind::Other | Kind::LabelName => {}
                Kind::ExpressionList => drop(self.expressions(cursor, None)),
                _ if Self::is_expression(kind) || Self::is_type_kind(kind) => drop(self.expression(cursor, None)),
                _ => self.statement(cursor),
            }
        });
    }

    /// Returns the names of a list of expressions that binds; `None` where no plain name stands.
    fn names(&self, node: Node<'_>) -> Vec<Option<&'s str>> {
        let name = |node: Node<'_>| (self.kind(node) == Kind::Identifier).then(|| self.text_of(node));
        if self.kind(node) != Kind::ExpressionList {
            return vec![name(node)];
        }
        let mut walk = node.walk();
        node.named_children(&mut walk).filter(|child| self.kind(*child) != Kind::Comment).map(name).collect()
    }

    fn short_variables(&mut self, cursor: &mut TreeCursor<'_>) {
        let mut names = Vec::new();
        let mut values = Vec::new();
        each_child!(cursor, {
            if cursor.field_id() == self.fields.left {
                names = self.names(cursor.node());
            } else if cursor.field_id() == self.fields.right {
                values = self.expressions(cursor, Some(Side::Body));
            }
        });
        self.bind_all(&names, None, &values);
    }

    /// Binds names to values, one by one or to the parts of a single one; a name that the scope has already keeps its binding.
    fn bind_all(&mut self, names: &[Option<&'s str>], type_: Option<Handle>, values: &[Option<Handle>]) {
        let several = names.len() > 1 && values.len() == 1;
        for (position, name) in names.iter().enumerate() {
            let Some(name) = *name else { continue };
            if name == "_" || self.scopes.binds_here(name) {
                continue;
            }
            let value = match values.get(if several { 0 } else { position }) {
                Some(Some(value)) if several => Some(self.body.expression(Side::Body, Expression::Part(*value, position as u32))),
                Some(value) => *value,
                None => None,
            };
            self.bind_local(name, Role::Variable, type_, value);
        }
    }

    /// Walks one entry of a local `var` or `const`.
    fn local_values(&mut self, cursor: &mut TreeCursor<'_>, repeated: &mut Option<(Option<Handle>, Vec<Option<Handle>>)>) {
        let mut names = Vec::new();
        let (mut type_, mut values) = (None, None);
        each_child!(cursor, {
            let field = cursor.field_id();
            if field == self.fields.name {
                if self.kind(cursor.node()) == Kind::Identifier {
                    names.push(Some(self.text_of(cursor.node())));
                }
            } else if field == self.fields.type_ {
                type_ = self.type_(cursor, Some(Side::Body));
            } else if field == self.fields.value {
                let wanted = if type_.is_none() { Some(Side::Body) } else { None };
                values = Some(self.expressions(cursor, wanted));
            }
        });
        let constant = self.kind(cursor.node()) == Kind::ConstSpec;
        if constant && type_.is_none() && values.is_none() {
            (type_, values) = repeated.clone().map_or((None, None), |(type_, values)| (type_, Some(values)));
        }
        let values = values.unwrap_or_default();
        // A declaration makes new bindings even of names that the scope has.
        let several = names.len() > 1 && values.len() == 1;
        for (position, name) in names.iter().enumerate() {
            let Some(name) = *name else { continue };
            let value = match values.get(if several { 0 } else { position }) {
                Some(Some(value)) if several => Some(self.body.expression(Side::Body, Expression::Part(*value, position as u32))),
                Some(value) => *value,
                None => None,
            };
            self.bind_local(name, Role::Variable, type_, value);
        }
        if constant {
            *repeated = Some((type_, values));
        }
    }

    fn local_type(&mut self, cursor: &mut TreeCursor<'_>) {
        let Some(name) = self.field(cursor, self.fields.name) else { return };
        let text = self.text_of(name);
        // The type is in scope in itself.
        let placeholder = self.body.outline.bindings.len();
        self.bind_local(text, Role::LocalType(u32::MAX), None, None);
        self.scopes.enter();
        let shape = self.shape_of(cursor, Side::Body, None);
        self.scopes.leave();
        if let Some(binding) = self.body.outline.bindings.get_mut(placeholder).filter(|_| text != "_") {
            binding.role = Role::LocalType(shape);
        }
    }

    fn range(&mut self, cursor: &mut TreeCursor<'_>) {
        let Some((names, value)) = self.taken(cursor) else { return };
        for (position, name) in names.into_iter().enumerate() {
            let Some(name) = name.filter(|name| *name != "_") else { continue };
            let made = value.map(|value| {
                let expression = if position == KEY { Expression::Key(value) } else { Expression::Element(value) };
                self.body.expression(Side::Body, expression)
            });
            self.bind_local(name, Role::Variable, None, made);
        }
    }

    fn receive(&mut self, cursor: &mut TreeCursor<'_>) {
        if let Some((names, value)) = self.taken(cursor) {
            self.bind_all(&names, None, &[value]);
        }
    }

    /// Walks what takes values from a range or a channel. Returns the names it declares, and what they are taken from; `None` when it
    /// only assigns.
    fn taken(&mut self, cursor: &mut TreeCursor<'_>) -> Option<(Vec<Option<&'s str>>, Option<Handle>)> {
        let mut left = None;
        let mut value = None;
        let mut declares = false;
        each_child!(cursor, {
            let node = cursor.node();
            if cursor.field_id() == self.fields.left {
                left = Some(self.names(node));
            } else if cursor.field_id() == self.fields.right {
                value = self.expression(cursor, declares.then_some(Side::Body));
            } else {
                declares |= node.kind() == ":=";
            }
        });
        if declares {
            return Some((left.unwrap_or_default(), value));
        }
        each_child!(cursor, {
            if cursor.field_id() == self.fields.left {
                self.expressions(cursor, None);
            }
        });
        None
    }

    fn type_switch(&mut self, cursor: &mut TreeCursor<'_>) {
        let mut alias = None;
        let mut value = None;
        each_child!(cursor, {
            let kind = self.kind(cursor.node());
            if cursor.field_id() == self.fields.alias {
                alias = self.names(cursor.node()).into_iter().flatten().next();
            } else if cursor.field_id() == self.fields.initializer {
                self.statement(cursor);
            } else if cursor.field_id() == self.fields.value {
                value = self.expression(cursor, alias.is_some().then_some(Side::Body));
            } else if matches!(kind, Kind::TypeCase | Kind::DefaultCase) {
                self.scopes.enter();
                self.type_case(cursor, alias, value);
                self.scopes.leave();
            }
        });
    }

    /// Walks a case: where it names one type the switched value is of it, else of the type it had.
    fn type_case(&mut self, cursor: &mut TreeCursor<'_>, alias: Option<&'s str>, value: Option<Handle>) {
        let mut types = Vec::new();
        let mut bound = false;
        each_child!(cursor, {
            let kind = self.kind(cursor.node());
            if cursor.field_id() == self.fields.type_ {
                types.push(self.type_(cursor, alias.is_some().then_some(Side::Body)));
            } else if !matches!(kind, Kind::Comment | Kind::Other) {
                if !bound {
                    bound = true;
                    self.bind_case(alias, &types, value);
                }
                self.statement(cursor);
            }
        });
    }

    fn bind_case(&mut self, alias: Option<&'s str>, types: &[Option<Handle>], value: Option<Handle>) {
        let Some(alias) = alias else { return };
        match types {
            [one] => self.bind_local(alias, Role::Variable, *one, None),
            _ => self.bind_local(alias, Role::Variable, None, value),
        }
    }
}
