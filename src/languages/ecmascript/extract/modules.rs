//! Import and export statements, of ECMAScript and TypeScript's own.
//!
//! Must not know which module a text names. Invariant: what is exported is a binding or a use of one, under the name others know.

use super::super::modules::Asked;
use super::names::NewBinding;
use super::*;

/// The name under which a module gives what it is as a whole.
pub(super) const WHOLE: &str = "export=";

impl<'s, 't> Walk<'s, 't> {
    /// Returns the name of the module that `require("…")` or `import("…")` asks for. The quote it begins or ends with says which: packages
    /// may give other files to these than to statements.
    pub(super) fn asked_module(&mut self, source: Node<'t>, asked: Asked) -> u32 {
        let (text, whole) = (self.string(source), self.text(source));
        let quoted = whole.len() == text.len() + 2;
        let text = match asked {
            Asked::Required if quoted => whole.get(..whole.len() - 1),
            Asked::Called if quoted => whole.get(1..),
            _ => None,
        }
        .unwrap_or(text);
        self.name(text)
    }

    pub(super) fn push_import(&mut self, module: u32, name: u32) -> u32 {
        self.raw.imports.push(RawImport { module, name });
        self.raw.imports.len() as u32 - 1
    }

    pub(super) fn import_binding(&mut self, scope: u32, local: u32, import: u32) -> u32 {
        self.bind(scope, local, NewBinding::new(RawRole::Import(import), VALUE | TYPE | SPACE))
    }

    /// A binding of an import that no name of the file has.
    pub(super) fn hidden_import(&mut self, import: u32) -> u32 {
        let outer = self.outer();
        let name = self.name("");
        self.push_binding(name, outer, NewBinding::new(RawRole::Import(import), VALUE | TYPE | SPACE))
    }

    /// Notes the module that a text names.
    pub(super) fn refer_module(&mut self, source: Node<'t>, import: u32) {
        let text = self.string(source);
        let name = self.name(text);
        self.refer(source, EdgeKind::Imports, false, RawSubject::Module(import, name));
    }

    pub(super) fn import_statement(&mut self, node: Node<'t>) {
        let fields = &self.grammar.fields;
        let children = self.children(node);
        self.raw.is_module = true;
        if let Some(clause) = children.kind(Kind::ImportRequire) {
            let inner = self.children(clause.node);
            let source = inner.field(fields.source).or_else(|| inner.kind(Kind::String));
            let (Some(name), Some(source)) = (inner.kind(Kind::Identifier), source) else { return };
            let module = self.asked_module(source.node, Asked::Required);
            let whole = self.name(WHOLE);
            let import = self.push_import(module, whole);
            self.refer_module(source.node, import);
            let local = self.name(self.text(name.node));
            self.import_binding(self.scope, local, import);
            self.refer_alias(name.node, local);
            return;
        }
        let Some(source) = children.field(fields.source).or_else(|| children.kind(Kind::String)) else { return };
        let module = self.name(self.string(source.node));
        let itself = self.push_import(module, NONE);
        self.refer_module(source.node, itself);
        let Some(clause) = children.kind(Kind::ImportClause) else { return };
        let scope = self.scope;
        for child in self.children(clause.node).named() {
            match child.kind {
                Kind::Identifier => {
                    let default = self.name("default");
                    let import = self.push_import(module, default);
                    let local = self.name(self.text(child.node));
                    self.import_binding(scope, local, import);
                    // Known by the local name, which is the token that stands there.
                    let used = self.add_use(local, VALUE);
                    self.refer(child.node, EdgeKind::Imports, false, RawSubject::Name(used));
                }
                Kind::NamespaceImport => {
                    if let Some(name) = self.children(child.node).kind(Kind::Identifier) {
                        let local = self.name(self.text(name.node));
                        self.import_binding(scope, local, itself);
                    }
                }
                Kind::NamedImports => {
                    for specifier in self.children(child.node).named().filter(|child| child.kind == Kind::ImportSpecifier) {
                        let inner = self.children(specifier.node);
                        let Some(name) = inner.name_or_keyword(fields.name) else { continue };
                        let local = inner.name_or_keyword(fields.alias).unwrap_or(name);
                        let imported = self.name(self.string(name.node));
                        let import = self.push_import(module, imported);
                        let local = self.name(self.text(local.node));
                        self.import_binding(scope, local, import);
                        self.refer(name.node, EdgeKind::Imports, false, RawSubject::Imported(import));
                    }
                }
                _ => {}
            }
        }
    }

    /// `import A = B.C`
    pub(super) fn import_alias(&mut self, node: Node<'t>) {
        let children: Vec<_> = self.children(node).named().collect();
        let (Some(local), Some(target)) = (children.first(), children.last()) else { return };
        if children.len() < 2 {
            return;
        }
        let local = self.name(self.text(local.node));
        let value = self.unexported(|walk| walk.namespace_name(*target));
        let new = NewBinding { annotation: value, ..NewBinding::of_value(value) };
        let new = NewBinding { role: RawRole::Alias, meanings: VALUE | TYPE | SPACE, ..new };
        let token = children[0].node;
        self.bind(self.scope, local, new);
        self.refer_alias(token, local);
    }

    /// Notes what the name that an import gives stands for.
    fn refer_alias(&mut self, token: Node<'t>, local: u32) {
        let used = self.add_use(local, VALUE | TYPE | SPACE);
        self.refer(token, EdgeKind::Imports, false, RawSubject::Name(used));
    }

    pub(super) fn export_statement(&mut self, node: Node<'t>) {
        let fields = &self.grammar.fields;
        let children = self.children(node);
        if self.scope == 0 {
            self.raw.is_module = true;
        }
        for decorator in children.named().filter(|child| child.kind == Kind::Decorator) {
            self.decorator(decorator.node);
        }
        let default = children.has_token("default");
        if let Some(declaration) = children.field(fields.declaration) {
            self.wrapper = Some(node);
            self.exported = Some(if default { Exported::Default } else { Exported::ByName });
            self.statement(declaration);
            (self.wrapper, self.exported) = (None, None);
            return;
        }
        if let Some(source) = children.field(fields.source) {
            self.export_from(&children, source);
            return;
        }
        if let Some(clause) = children.kind(Kind::ExportClause) {
            for specifier in self.children(clause.node).named().filter(|child| child.kind == Kind::ExportSpecifier) {
                let inner = self.children(specifier.node);
                let Some(local) = inner.name_or_keyword(fields.name) else { continue };
                let exported = inner.name_or_keyword(fields.alias).unwrap_or(local);
                let name = self.name(self.text(local.node));
                let used = self.add_use(name, VALUE | TYPE | SPACE);
                self.refer(local.node, EdgeKind::References, false, RawSubject::Name(used));
                let exported = self.name(self.string(exported.node));
                self.export(exported, RawExport::Use(used));
            }
            return;
        }
        if default {
            let value = children.field(fields.value).or_else(|| children.named().find(|child| child.kind != Kind::Decorator));
            if let Some(value) = value {
                let token = children.0.iter().find(|child| child.node.kind() == "default").map_or(node, |child| child.node);
                let name = self.name("default");
                self.export_value(name, "default", node, token, value);
            }
            return;
        }
        if children.has_token("=")
            && let Some(value) = children.named().last()
        {
            let name = self.name(WHOLE);
            let token = children.0.first().map_or(node, |child| child.node);
            self.export_value(name, "default", node, token, value);
        }
    }

    fn export(&mut self, name: u32, export: RawExport) {
        let space = self.raw.scopes[self.scope as usize].space;
        if space != NONE {
            if let RawExport::Binding(binding) = export {
                self.raw.classes[space as usize].statics.push((name, binding));
            }
        } else {
            self.raw.exports.push((name, export));
        }
    }

    fn export_from(&mut self, children: &Children<'t>, source: Child<'t>) {
        let fields = &self.grammar.fields;
        let module = self.name(self.string(source.node));
        let itself = self.push_import(module, NONE);
        self.refer_module(source.node, itself);
        if let Some(clause) = children.kind(Kind::ExportClause) {
            for specifier in self.children(clause.node).named().filter(|child| child.kind == Kind::ExportSpecifier) {
                let inner = self.children(specifier.node);
                let Some(name) = inner.name_or_keyword(fields.name) else { continue };
                let exported = inner.name_or_keyword(fields.alias).unwrap_or(name);
                let imported = self.name(self.string(name.node));
                let import = self.push_import(module, imported);
                let binding = self.hidden_import(import);
                let exported = self.name(self.string(exported.node));
                self.export(exported, RawExport::Binding(binding));
                self.refer(name.node, EdgeKind::Imports, false, RawSubject::Imported(import));
            }
            return;
        }
        if let Some(space) = children.kind(Kind::NamespaceExport) {
            let binding = self.hidden_import(itself);
            if let Some(name) = self.children(space.node).named().next() {
                let exported = self.name(self.string(name.node));
                self.export(exported, RawExport::Binding(binding));
            }
            return;
        }
        let outer = self.outer();
        let name = self.name("*");
        let star = self.push_binding(name, outer, NewBinding::new(RawRole::Star(itself), VALUE | TYPE | SPACE));
        self.raw.stars.push(star);
    }

    /// Exports the value of an expression; a function or class without a name gets `anonymous`.
    pub(super) fn export_value(
        &mut self,
        name: u32,
        anonymous: &'static str,
        whole: Node<'t>,
        token: Node<'t>,
        value: Child<'t>,
    ) -> u32 {
        let fields = &self.grammar.fields;
        match value.kind {
            Kind::Identifier => {
                let evidence = self.identifier(value.node, EdgeKind::References, false);
                if let RawExpression::Name(used) = self.raw.expressions[evidence as usize] {
                    // A name means all that it means.
                    self.raw.uses[used as usize].meanings = VALUE | TYPE | SPACE;
                    self.raw.exports.push((name, RawExport::Use(used)));
                }
                evidence
            }
            Kind::FunctionExpression
            | Kind::GeneratorFunction
            | Kind::Arrow
            | Kind::Class
            | Kind::FunctionDeclaration
            | Kind::ClassDeclaration => {
                let children = self.children(value.node);
                let own = children.field(fields.name);
                let text = own.map_or(anonymous, |own| self.text(own.node));
                let head_end = children.field(fields.body).map_or(value.node.end_byte(), |body| body.node.start_byte());
                let at = Declared { whole, name: own.map_or(token, |own| own.node), head_end };
                let is_class = matches!(value.kind, Kind::Class | Kind::ClassDeclaration);
                let id = self.name(text);
                let (class, function) = if is_class { (self.push_class(), NONE) } else { (NONE, self.push_function()) };
                let (kind, shape) = match is_class {
                    true => (SymbolKind::Class, RawShape::Class(class)),
                    false => (SymbolKind::Function, RawShape::Function(function)),
                };
                let declaration = self.declare("", text, kind, &at, shape);
                let (role, meanings) = if is_class { (RawRole::Class, VALUE | TYPE) } else { (RawRole::Function, VALUE) };
                let new = NewBinding { declaration, ..NewBinding::new(role, meanings) };
                // A declaration of ECMAScript binds its name in the file; a function expression does not.
                let outer = self.outer();
                let binding = match (anonymous, own) {
                    ("default", Some(_)) => self.bind(self.scope, id, new),
                    _ => self.push_binding(id, outer, new),
                };
                self.raw.exports.push((name, RawExport::Binding(binding)));
                let owner = self.owner_of(declaration);
                if is_class {
                    self.unexported(|walk| walk.class_inside(value.node, class, owner, true));
                    self.class_evidence(class)
                } else {
                    let context = self.function_context(owner, value.kind, text, self.scope);
                    self.function_expression_in(value, function, &context);
                    self.push_expression(RawExpression::Function(function))
                }
            }
            _ => {
                let evidence = self.expression(value.node);
                let outer = self.outer();
                let id = self.name(anonymous);
                let mut new = NewBinding::of_value(evidence);
                if anonymous == "default" {
                    let at = Declared { whole, name: token, head_end: value.node.start_byte() };
                    new.declaration = self.declare("", anonymous, SymbolKind::Constant, &at, RawShape::Value);
                }
                let binding = self.push_binding(id, outer, new);
                self.raw.exports.push((name, RawExport::Binding(binding)));
                if let Some(RawExpression::Object(class)) = self.raw.expressions.get(evidence as usize) {
                    // Whoever takes a property from the module means that of the object.
                    let statics = self.raw.classes[*class as usize].statics.clone();
                    if name == self.name(WHOLE) {
                        for (property, binding) in statics {
                            let export = match self.raw.expressions.get(self.raw.bindings[binding as usize].value as usize) {
                                Some(RawExpression::Name(used)) if self.raw.bindings[binding as usize].declaration == NONE => {
                                    RawExport::Use(*used)
                                }
                                _ => RawExport::Binding(binding),
                            };
                            self.raw.exports.push((property, export));
                        }
                    }
                }
                evidence
            }
        }
    }
}
