//! Modules as functions and assignments: `require`, `import()`, `exports`, and members that are defined by assigning them.
//!
//! Must not know which module a text names. Invariant: `exports = …` alone exports nothing; `module.exports` does.

use super::super::modules::Asked;
use super::modules::WHOLE;
use super::names::NewBinding;
use super::*;

impl<'s, 't> Walk<'s, 't> {
    /// Returns the module that `require("…")` or `import("…")` names, when the call is one.
    fn required_module(&mut self, base: Node<'t>, children: &Children<'t>) -> Option<Node<'t>> {
        let is_import = self.kind(base) == Kind::ImportKeyword;
        let is_require = self.javascript && self.kind(base) == Kind::Identifier && self.text(base) == "require";
        if !is_import && !is_require {
            return None;
        }
        let arguments = children.field(self.grammar.fields.arguments)?;
        let first = self.children(arguments.node).named().next()?;
        let plain = first.kind == Kind::String
            || first.kind == Kind::TemplateString
                && self.children(first.node).named().all(|part| part.kind == Kind::StringFragment);
        plain.then_some(first.node)
    }

    /// Walks `require("…")` or `import("…")`; `None` when it is another call.
    pub(super) fn module_call(&mut self, base: Node<'t>, children: &Children<'t>) -> Option<u32> {
        let source = self.required_module(base, children)?;
        let is_import = self.kind(base) == Kind::ImportKeyword;
        let module = self.asked_module(source, Asked::by(is_import));
        let name = if is_import { NONE } else { self.name(WHOLE) };
        let import = self.push_import(module, name);
        self.refer_module(source, import);
        let binding = self.hidden_import(import);
        let evidence = self.push_expression(RawExpression::Binding(binding));
        Some(if is_import { self.push_expression(RawExpression::Promise(evidence)) } else { evidence })
    }

    /// `import("…")` as a type.
    pub(super) fn import_call(&mut self, children: &Children<'t>) -> Option<u32> {
        let base = children.field(self.grammar.fields.function)?;
        let source = self.required_module(base.node, children)?;
        let module = self.name(self.string(source));
        let import = self.push_import(module, NONE);
        self.refer_module(source, import);
        let binding = self.hidden_import(import);
        Some(self.push_expression(RawExpression::Binding(binding)))
    }

    /// Binds what a variable takes from `require("…")` or `await import("…")`; returns whether the declaration is one of these.
    pub(super) fn required(&mut self, target: Child<'t>, value: Child<'t>, scope: u32) -> bool {
        let fields = &self.grammar.fields;
        let mut node = value.node;
        let mut taken = None;
        if value.kind == Kind::Await {
            match self.children(node).named().next() {
                Some(inner) => node = inner.node,
                None => return false,
            }
        } else if value.kind == Kind::Member {
            let inner = self.children(node);
            let (Some(object), Some(property)) = (inner.field(fields.object), inner.field(fields.property)) else { return false };
            taken = Some(property.node);
            node = object.node;
        }
        if self.kind(node) != Kind::Call {
            return false;
        }
        let call = self.children(node);
        let Some(base) = call.field(fields.function) else { return false };
        let is_import = self.kind(base.node) == Kind::ImportKeyword;
        if is_import != (value.kind == Kind::Await) {
            return false;
        }
        let Some(source) = self.required_module(base.node, &call) else { return false };
        let module = self.asked_module(source, Asked::by(is_import));
        let whole = if is_import { NONE } else { self.name(WHOLE) };
        let itself = self.push_import(module, whole);
        match target.kind {
            Kind::Identifier => {
                let local = self.name(self.text(target.node));
                self.refer_module(source, itself);
                let import = match taken {
                    Some(property) => {
                        let name = self.name(self.text(property));
                        let import = self.push_import(module, name);
                        self.refer(property, EdgeKind::References, false, RawSubject::Imported(import));
                        import
                    }
                    None => itself,
                };
                self.import_binding(scope, local, import);
                true
            }
            Kind::ObjectPattern if taken.is_none() => {
                self.refer_module(source, itself);
                for child in self.children(target.node).named() {
                    let mut inner = child;
                    if child.kind == Kind::ObjectAssignmentPattern {
                        let parts = self.children(child.node);
                        if let Some(default) = parts.field(fields.right) {
                            self.unexported(|walk| walk.expression(default.node));
                        }
                        match parts.field(fields.left) {
                            Some(left) => inner = left,
                            None => continue,
                        }
                    }
                    let (key, local) = match inner.kind {
                        Kind::ShorthandPattern => (inner.node, Some(inner)),
                        Kind::PairPattern => {
                            let parts = self.children(inner.node);
                            let (Some(key), Some(value)) = (parts.field(fields.key), parts.field(fields.value)) else { continue };
                            (key.node, Some(value))
                        }
                        _ => (inner.node, None),
                    };
                    let Some(local) = local else { continue };
                    let name = self.name(self.string(key));
                    let import = self.push_import(module, name);
                    self.refer(key, EdgeKind::Imports, false, RawSubject::Imported(import));
                    if matches!(local.kind, Kind::Identifier | Kind::ShorthandPattern) {
                        let local = self.name(self.text(local.node));
                        let binding = self.import_binding(scope, local, import);
                        // A copy made when the promise is kept, and no name for the export itself.
                        self.raw.bindings[binding as usize].written = is_import;
                    } else {
                        let binding = self.hidden_import(import);
                        let evidence = self.push_expression(RawExpression::Binding(binding));
                        self.declarator = Some((target.node, target.node.end_byte()));
                        self.pattern(local, scope, RawRole::Variable, NONE, evidence);
                    }
                }
                true
            }
            _ => false,
        }
    }

    /// Returns whether an expression is `exports` or the `module` of `module.exports`, of a CommonJS module.
    pub(super) fn is_exports(&self, base: Node<'t>) -> bool {
        if !self.javascript || self.kind(base) != Kind::Identifier {
            return false;
        }
        match self.text(base) {
            "exports" => true,
            "module" => self.source.get(base.end_byte()..).is_some_and(|after| after.starts_with(".exports")),
            _ => false,
        }
    }

    /// Returns the evidence for the object that `exports` is.
    pub(super) fn exports_object(&mut self) -> u32 {
        self.raw.is_commonjs = true;
        if self.module_shape == NONE {
            self.raw.classes.push(RawClass { outer: true, ..RawClass::default() });
            self.module_shape = self.raw.classes.len() as u32 - 1;
        }
        self.push_expression(RawExpression::Object(self.module_shape))
    }

    /// `a.b = value`: an export, a definition, or a write.
    pub(super) fn assign_to_member(&mut self, whole: Node<'t>, left: Child<'t>, right: Child<'t>) -> u32 {
        let fields = &self.grammar.fields;
        let parts = self.children(left.node);
        let object = parts.field(fields.object);
        let property = parts.field(fields.property);
        let (Some(object), Some(property)) = (object, property) else {
            let value = self.expression(right.node);
            self.assign_member(left.node, value);
            return value;
        };
        let text = self.text(property.node);
        let is_module = self.javascript && object.kind == Kind::Identifier && self.text(object.node) == "module";
        if is_module && text == "exports" {
            let name = self.name(WHOLE);
            self.raw.is_commonjs = true;
            let known = self.raw.exports.len();
            let value = match right.kind {
                Kind::Assignment => {
                    let value = self.expression(right.node);
                    self.export_evidence(name, value);
                    value
                }
                _ => self.export_value(name, "exports", whole, property.node, right),
            };
            self.refer_exported(object.node, name, known, right);
            return value;
        }
        let is_exports = self.is_exports(object.node)
            || object.kind == Kind::Member && {
                let inner = self.children(object.node);
                inner.field(fields.object).is_some_and(|module| {
                    module.kind == Kind::Identifier && self.is_exports(module.node) && self.text(module.node) == "module"
                })
            };
        if is_exports {
            let known = self.raw.exports.len();
            let value = self.assign_export(whole, (property.node, text), right);
            if object.kind == Kind::Identifier {
                let name = self.name(text);
                self.refer_exported(object.node, name, known, right);
            }
            return value;
        }
        self.assign_defined(whole, left, object, (property.node, text), right)
    }

    /// Notes that the `module` of `module.exports = f`, or the `exports` of `exports.f = …`, stands for what is exported there: an export
    /// made since `known`. What is given away several times, or is a part of something else, has no such name.
    fn refer_exported(&mut self, token: Node<'t>, name: u32, known: usize, value: Child<'t>) {
        let again = self.raw.exports.iter().take(known).any(|(exported, _)| *exported == name);
        if again || matches!(value.kind, Kind::Member | Kind::Subscript | Kind::Assignment) {
            return;
        }
        let export = self.raw.exports.iter().skip(known).find(|(exported, _)| *exported == name).map(|(_, export)| *export);
        let exported = match export {
            Some(RawExport::Use(used)) => used,
            Some(RawExport::Binding(binding)) if self.raw.bindings[binding as usize].declaration != NONE => {
                // Some such bindings have no scope; one of their own makes them a use.
                let scope = self.push_scope(ScopeKind::Block, true);
                let name = self.raw.bindings[binding as usize].name;
                self.raw.groups.insert(group_key(scope, name), binding);
                self.in_scope(scope, |walk| walk.add_use(name, VALUE))
            }
            _ => return,
        };
        let value = self.push_expression(RawExpression::Name(exported));
        let local = self.name(self.text(token));
        let scope = self.push_scope(ScopeKind::Block, false);
        self.in_scope(scope, |walk| {
            let new = NewBinding { annotation: value, ..NewBinding::of_value(value) };
            walk.bind(scope, local, NewBinding { role: RawRole::Alias, ..new });
            let used = walk.add_use(local, VALUE);
            walk.refer(token, EdgeKind::References, false, RawSubject::Name(used));
        });
    }

    /// `const api = module.exports = …`: what is exported is the variable.
    pub(super) fn export_declared(&mut self, exports: usize, name: Node<'t>) {
        let whole = self.name(WHOLE);
        let name = self.name(self.text(name));
        let Some(variable) = self.bound_here(0, name).next() else { return };
        for (_, export) in self.raw.exports.iter_mut().skip(exports).filter(|(exported, _)| *exported == whole) {
            if let RawExport::Binding(binding) = export
                && self.raw.bindings[*binding as usize].declaration == NONE
            {
                *export = RawExport::Binding(variable);
            }
        }
    }

    fn export_evidence(&mut self, name: u32, evidence: u32) {
        let export = match self.raw.expressions.get(evidence as usize) {
            Some(RawExpression::Name(used)) => RawExport::Use(*used),
            _ => {
                let outer = self.outer();
                let id = self.name("exports");
                RawExport::Binding(self.push_binding(id, outer, NewBinding::of_value(evidence)))
            }
        };
        self.raw.exports.push((name, export));
    }

    /// `exports.name = value`
    fn assign_export(&mut self, whole: Node<'t>, (node, text): (Node<'t>, &'s str), right: Child<'t>) -> u32 {
        self.exports_object();
        let shape = self.module_shape;
        let name = self.name(text);
        let (binding, evidence) = match right.kind {
            Kind::Arrow | Kind::FunctionExpression | Kind::GeneratorFunction => {
                let this = This::of(shape, true);
                let at = Declared { whole, name: node, head_end: self.head_of(right) };
                let function = self.push_function();
                let declaration = self.declare("", text, SymbolKind::Function, &at, RawShape::Function(function));
                let new = NewBinding { declaration, ..NewBinding::new(RawRole::Function, VALUE) };
                let binding = self.push_binding(name, true, new);
                let mut context = self.plain_context();
                context.owner = self.owner_of(declaration);
                context.this = (right.kind != Kind::Arrow).then_some(this);
                self.function_expression_in(right, function, &context);
                (binding, self.push_expression(RawExpression::Function(function)))
            }
            Kind::Class => {
                let class = self.push_class();
                let at = Declared { whole, name: node, head_end: self.head_of(right) };
                let declaration = self.declare("", text, SymbolKind::Class, &at, RawShape::Class(class));
                let new = NewBinding { declaration, ..NewBinding::new(RawRole::Class, VALUE | TYPE) };
                let binding = self.push_binding(name, true, new);
                let owner = self.owner_of(declaration);
                self.class_inside(right.node, class, owner, true);
                (binding, self.class_evidence(class))
            }
            _ => {
                let evidence = self.expression(right.node);
                let mut new = NewBinding::of_value(evidence);
                match self.raw.expressions.get(evidence as usize) {
                    Some(RawExpression::Name(used)) => {
                        let used = *used;
                        self.raw.exports.push((name, RawExport::Use(used)));
                        let binding = self.push_binding(name, true, new);
                        self.raw.classes[shape as usize].statics.push((name, binding));
                        return evidence;
                    }
                    Some(RawExpression::Binding(_)) => {}
                    _ if right.kind == Kind::Assignment || right.kind == Kind::Undefined || right.kind == Kind::Unary => {}
                    _ if self.raw.exports.iter().any(|(known, _)| *known == name) => {}
                    _ => {
                        let at = Declared { whole, name: node, head_end: whole.end_byte() };
                        new.declaration = self.declare("", text, SymbolKind::Variable, &at, RawShape::Value);
                    }
                }
                let chained = right.kind == Kind::Assignment && (evidence == NONE || evidence == self.literal);
                if right.kind == Kind::Undefined || right.kind == Kind::Unary || chained {
                    // `exports.a = void 0` of a transpiler, before the real one.
                    return evidence;
                }
                (self.push_binding(name, true, new), evidence)
            }
        };
        self.raw.classes[shape as usize].statics.push((name, binding));
        self.raw.exports.push((name, RawExport::Binding(binding)));
        evidence
    }

    fn head_of(&mut self, value: Child<'t>) -> usize {
        let body = self.children(value.node).field(self.grammar.fields.body);
        body.map_or(value.node.start_byte(), |body| body.node.start_byte())
    }

    /// `Local.name = function …`, `Local.prototype.name = …`: definitions when the file itself declares the holder; else writes.
    fn assign_defined(
        &mut self,
        whole: Node<'t>,
        left: Child<'t>,
        object: Child<'t>,
        (node, text): (Node<'t>, &'s str),
        right: Child<'t>,
    ) -> u32 {
        let fields = &self.grammar.fields;
        let is_function = matches!(right.kind, Kind::Arrow | Kind::FunctionExpression | Kind::GeneratorFunction);
        let name = self.name(text);
        // `F.prototype = { … }`
        if self.javascript
            && text == "prototype"
            && right.kind == Kind::Object
            && object.kind == Kind::Identifier
            && let Some((class, owner)) = self.local_shape(object.node)
        {
            self.expression(object.node);
            let literal = self.push_class();
            self.object_inside(right.node, literal, owner, NONE);
            let statics = std::mem::take(&mut self.raw.classes[literal as usize].statics);
            self.raw.classes[class as usize].members.extend(statics);
            return NONE;
        }
        let (holder, prototype) = match object.kind {
            Kind::Identifier => (Some(object), false),
            Kind::Member => {
                let inner = self.children(object.node);
                let is_prototype = inner.field(fields.property).is_some_and(|property| self.text(property.node) == "prototype");
                (inner.field(fields.object).filter(|_| is_prototype), is_prototype)
            }
            Kind::This => (None, false),
            _ => (None, false),
        };
        let found = match holder {
            Some(holder) if holder.kind == Kind::Identifier && (is_function || right.kind == Kind::Class) && !self.ambient => {
                self.local_shape(holder.node)
            }
            _ => None,
        };
        if let Some((class, _)) = found {
            let list =
                if prototype { &self.raw.classes[class as usize].members } else { &self.raw.classes[class as usize].statics };
            let known = list.iter().any(|(known, _)| *known == name);
            if !known {
                self.value(object.node, EdgeKind::References, true);
                if is_function {
                    let this = This::of(class, !prototype);
                    let holder = holder.map_or("", |holder| self.text(holder.node));
                    self.defined_method(whole, class, !prototype, (node, text), holder, right, this);
                    return self.raw.bindings.last().map_or(NONE, |binding| binding.value);
                }
            }
        }
        if object.kind == Kind::This && is_function && self.this.class != NONE {
            let This { class, statics, .. } = self.this;
            let list =
                if statics { &self.raw.classes[class as usize].statics } else { &self.raw.classes[class as usize].members };
            if !list.iter().any(|(known, _)| *known == name) {
                let this = self.this;
                let binding = self.function_member(whole, class, statics, (node, text), NONE, NONE, right, this);
                return self.raw.bindings[binding as usize].value;
            }
        }
        if is_function
            && !self.ambient
            && let Some(holder) = holder.filter(|holder| matches!(holder.kind, Kind::Identifier))
        {
            // The holder comes from elsewhere: the function has a definition here, and may replace what was there.
            let object = self.value(object.node, EdgeKind::References, true);
            let written = self.raw.expressions.get(object as usize).is_some();
            if written {
                self.raw.writes.push((object, name));
                self.refer(node, EdgeKind::References, false, RawSubject::Member(object, name));
            }
            let function = self.push_function();
            let at = Declared { whole, name: node, head_end: self.head_of(right) };
            let prefix = format!("{}.", self.text(holder.node));
            let declaration = self.declare(&prefix, text, SymbolKind::Method, &at, RawShape::Function(function));
            let mut context = self.plain_context();
            context.owner = self.owner_of(declaration);
            context.this = (right.kind != Kind::Arrow).then_some(NO_THIS);
            self.function_expression_in(right, function, &context);
            return self.push_expression(RawExpression::Function(function));
        }
        // Chained: `a.x = a.y = function …`
        let value = self.expression(right.node);
        if let Some((class, _)) = self.assigned_holder(holder)
            && !prototype
        {
            let known = self.raw.classes[class as usize].statics.iter().any(|(known, _)| *known == name);
            if !known {
                self.value(object.node, EdgeKind::References, true);
                let outer = self.raw.classes[class as usize].outer;
                let binding = self.push_binding(name, outer, NewBinding::of_value(value));
                self.add_member(class, true, name, binding);
                return value;
            }
        }
        self.assign_member(left.node, value);
        value
    }

    fn assigned_holder(&mut self, holder: Option<Child<'t>>) -> Option<(u32, u32)> {
        let holder = holder.filter(|holder| holder.kind == Kind::Identifier)?;
        self.local_shape(holder.node)
    }

    #[allow(clippy::too_many_arguments, reason = "each says another thing about the one member")]
    fn defined_method(
        &mut self,
        whole: Node<'t>,
        class: u32,
        statics: bool,
        (node, text): (Node<'t>, &'s str),
        holder: &str,
        value: Child<'t>,
        this: This,
    ) {
        let name = self.name(text);
        let outer = self.raw.classes[class as usize].outer;
        let function = self.push_function();
        let at = Declared { whole, name: node, head_end: self.head_of(value) };
        let prefix = format!("{holder}.");
        let declaration = self.declare(&prefix, text, SymbolKind::Method, &at, RawShape::Function(function));
        let evidence = self.push_expression(RawExpression::Function(function));
        let new = NewBinding { declaration, value: evidence, ..NewBinding::new(RawRole::Function, VALUE) };
        let binding = self.push_binding(name, outer, new);
        self.add_member(class, statics, name, binding);
        let mut context = self.plain_context();
        context.owner = self.owner_of(declaration);
        context.this = (value.kind != Kind::Arrow).then_some(this);
        self.function_expression_in(value, function, &context);
    }

    /// Returns the shape that a name declared in this file has or may be given, and its definition plus one.
    fn local_shape(&mut self, node: Node<'t>) -> Option<(u32, u32)> {
        let name = self.name(self.text(node));
        let mut scope = self.scope;
        loop {
            let found = self.bound_here(scope, name).find(|binding| self.raw.bindings[*binding as usize].meanings & VALUE != 0);
            if let Some(binding) = found {
                let known = self.raw.bindings[binding as usize];
                if known.annotation != NONE {
                    return None;
                }
                let holds = match known.role {
                    RawRole::Function | RawRole::Class => true,
                    RawRole::Variable => {
                        let value = self.raw.expressions.get(known.value as usize);
                        matches!(value, Some(RawExpression::Object(_) | RawExpression::Call(..) | RawExpression::Function(_)))
                    }
                    _ => false,
                };
                if !holds || known.declaration == NONE && !matches!(known.role, RawRole::Variable) {
                    return None;
                }
                if let Some(RawExpression::Object(class)) = self.raw.expressions.get(known.value as usize) {
                    let owner = if known.declaration == NONE { self.owner } else { self.owner_of(known.declaration) };
                    return Some((*class, owner));
                }
                if known.declaration == NONE {
                    return None;
                }
                let owner = self.owner_of(known.declaration);
                if let Some(class) = self.shape_of_binding(binding) {
                    return Some((class, owner));
                }
                let class = self.shape_of_name(scope, name);
                let declaration = &mut self.raw.declarations[known.declaration as usize];
                if matches!(declaration.shape, RawShape::Value) {
                    declaration.shape = RawShape::Class(class);
                }
                return Some((class, owner));
            }
            if scope == 0 {
                return None;
            }
            scope = self.raw.scopes[scope as usize].parent;
        }
    }
}
