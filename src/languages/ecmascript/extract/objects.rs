//! Object literals: properties, methods and spreads.
//!
//! Must not know what an object is assigned to. Invariant: a property that holds a function is a method with a definition of its own.

use super::names::NewBinding;
use super::*;

impl<'s, 't> Walk<'s, 't> {
    /// Walks an object that belongs to no variable; returns its evidence.
    /// `expected` is the evidence for an object that this one stands for.
    pub(super) fn object(&mut self, node: Node<'t>, expected: u32) -> u32 {
        let class = self.push_class();
        let owner = self.owner;
        self.deeper(|walk| walk.unexported(|walk| walk.object_inside(node, class, owner, expected)));
        self.push_expression(RawExpression::Object(class))
    }

    /// Walks the properties of an object; methods become definitions below `parent` (a definition's index plus one).
    pub(super) fn object_inside(&mut self, node: Node<'t>, class: u32, parent: u32, expected: u32) {
        let fields = &self.grammar.fields;
        for member in self.children(node).named() {
            match member.kind {
                Kind::MethodDefinition => self.in_owner(parent, |walk| walk.method(member, class, true)),
                Kind::Pair => {
                    let children = self.children(member.node);
                    let (Some(key), Some(value)) = (children.field(fields.key), children.field(fields.value)) else { continue };
                    if key.kind == Kind::ComputedName {
                        self.computed_name(key.node);
                        self.expression(value.node);
                        self.raw.classes[class as usize].open = true;
                        continue;
                    }
                    let text = self.string(key.node);
                    let id = self.name(text);
                    let expected = self.attribute(expected, id);
                    let (value, cast) = self.bare_function(value);
                    if matches!(value.kind, Kind::Arrow | Kind::FunctionExpression | Kind::GeneratorFunction) {
                        let this = This::of(class, true);
                        self.in_owner(parent, |walk| {
                            walk.function_member(member.node, class, true, (key.node, text), cast, expected, value, this);
                        });
                        continue;
                    }
                    let name = id;
                    let value = if value.kind == Kind::Object {
                        let inner = self.push_class();
                        self.deeper(|walk| walk.object_inside(value.node, inner, parent, expected));
                        self.push_expression(RawExpression::Object(inner))
                    } else {
                        self.expression(value.node)
                    };
                    self.property(class, name, value);
                }
                Kind::ShorthandProperty => {
                    let name = self.name(self.text(member.node));
                    let used = self.add_use(name, VALUE);
                    self.refer(member.node, EdgeKind::References, false, RawSubject::Name(used));
                    let value = self.push_expression(RawExpression::Name(used));
                    self.property(class, name, value);
                }
                Kind::Spread => {
                    for child in self.children(member.node).named() {
                        let value = self.expression(child.node);
                        self.raw.classes[class as usize].spreads.push(value);
                    }
                }
                _ => {}
            }
        }
    }

    fn property(&mut self, class: u32, name: u32, value: u32) {
        let outer = self.raw.classes[class as usize].outer;
        let binding = self.push_binding(name, outer, NewBinding::of_value(value));
        self.add_member(class, true, name, binding);
    }

    /// Returns the function inside of parentheses and casts, with the type it is cast to; another value stays as it is.
    pub(super) fn bare_function(&mut self, value: Child<'t>) -> (Child<'t>, u32) {
        let mut inner = value;
        let mut casts = Vec::new();
        while matches!(inner.kind, Kind::Parenthesized | Kind::As | Kind::Satisfies | Kind::NonNull) {
            let children: Vec<_> = self.children(inner.node).named().collect();
            let Some(first) = children.first() else { return (value, NONE) };
            casts.extend(children.iter().skip(1).map(|cast| (cast.node, inner.kind)));
            inner = *first;
        }
        if !matches!(inner.kind, Kind::Arrow | Kind::FunctionExpression | Kind::GeneratorFunction) {
            return (value, NONE);
        }
        let mut declared = NONE;
        for (cast, kind) in casts.into_iter().rev() {
            let found = self.unexported(|walk| walk.type_of(cast));
            if kind == Kind::As && found != NONE {
                declared = found;
            }
        }
        (inner, declared)
    }

    pub(super) fn computed_name(&mut self, node: Node<'t>) {
        for child in self.children(node).named() {
            self.expression(child.node);
        }
    }
}
