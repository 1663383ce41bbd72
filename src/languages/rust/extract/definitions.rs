//! Definitions: what stands before one (attributes and documentation), its text, and the order of all.
//!
//! Must not know bodies. Invariant: in the end parents come before children.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use tree_sitter::{Node, TreeCursor};

use super::{Kind, Walk};
use crate::languages::grammar::folded;
use crate::languages::outline::{Side, arrange_definitions};
use crate::model::facts::{Declaration, Handle, Shape};
use crate::model::{Definition, DefinitionKey, Span, SymbolKind};

/// Longest text of a signature.
pub(super) const MAX_SIGNATURE: usize = 400;

/// What stands right before the current node.
#[derive(Default)]
pub(super) struct Pending<'s> {
    /// Where the attributes begin: byte and row.
    attributes: Option<(usize, usize)>,
    documentation: Vec<&'s str>,
    /// `#[path = "…"]`
    pub(super) path: Option<&'s str>,
    /// `#[macro_export]`
    pub(super) exported: bool,
    /// `#[macro_use]`
    pub(super) macros_used: bool,
}

/// A definition to be made.
pub(super) struct Made<'t> {
    pub name: Node<'t>,
    pub node: Node<'t>,
    pub kind: SymbolKind,
    pub shape: Shape,
    /// Where the text of the signature ends.
    pub head_end: usize,
}

fn is_type(kind: SymbolKind) -> bool {
    matches!(kind, SymbolKind::Struct | SymbolKind::Enum | SymbolKind::Trait | SymbolKind::Type)
}

impl<'s> Walk<'s> {
    /// Remembers an attribute or a comment that may belong to what comes next; returns whether the node is one.
    pub(super) fn is_prelude(&mut self, node: Node<'_>) -> bool {
        match self.kind(node) {
            Kind::Attribute => {
                if self.pending.attributes.is_none() {
                    self.pending.attributes = Some((node.start_byte(), node.start_position().row));
                }
                self.attribute(node);
                let text = self.text_of(node);
                let inner = text.trim_start_matches(['#', '[', ' ']);
                if let Some(rest) = inner.strip_prefix("path") {
                    self.pending.path = rest.split('"').nth(1);
                } else if inner.starts_with("macro_export") {
                    self.pending.exported = true;
                } else if inner.starts_with("macro_use") {
                    self.pending.macros_used = true;
                } else if let Some(rest) = inner.strip_prefix("doc = \"").or_else(|| inner.strip_prefix("doc=\"")) {
                    self.pending.documentation.extend(rest.strip_suffix("\"]"));
                }
                true
            }
            Kind::LineComment => {
                let text = self.text_of(node).trim_end();
                if let Some(line) = text.strip_prefix("///").filter(|line| !line.starts_with('/')) {
                    self.pending.documentation.push(line.strip_prefix(' ').unwrap_or(line));
                }
                true
            }
            Kind::BlockComment => {
                let text = self.text_of(node);
                if let Some(inner) = text.strip_prefix("/**").and_then(|text| text.strip_suffix("*/")) {
                    for line in inner.lines() {
                        let line = line.trim();
                        self.pending.documentation.push(line.strip_prefix("* ").unwrap_or(line));
                    }
                }
                true
            }
            Kind::InnerAttribute => true,
            _ => false,
        }
    }

    pub(super) fn take_pending(&mut self) -> Pending<'s> {
        std::mem::take(&mut self.pending)
    }

    /// Makes a definition and its declaration; returns its index and the handle of the declaration.
    pub(super) fn define(&mut self, made: Made<'_>, owner: Option<&str>, pending: Pending<'s>) -> (u32, Handle) {
        let Made { name, node, kind, shape, head_end } = made;
        let text = self.name_of(name);
        let prefix = Arc::clone(&self.position.prefix);
        let qualified: Arc<str> = match (prefix.as_ref(), owner) {
            ("", None) => text.into(),
            ("", Some(owner)) => format!("{owner}.{text}").into(),
            (prefix, None) => format!("{prefix}.{text}").into(),
            (prefix, Some(owner)) => format!("{prefix}.{owner}.{text}").into(),
        };
        let next = self.ordinals.entry(Arc::clone(&qualified)).or_insert(0);
        let ordinal = *next;
        *next += 1;
        let key = DefinitionKey { qualified, ordinal };
        let (start, row) = pending.attributes.unwrap_or((node.start_byte(), node.start_position().row));
        let documentation = pending.documentation.join("\n");
        let documentation = documentation.trim_matches('\n').trim_end();
        let signature = folded(self.text.get(node.start_byte()..head_end).unwrap_or(""), MAX_SIGNATURE);
        self.definitions.push(Definition {
            key: key.clone(),
            name: text.into(),
            kind,
            parent: self.position.parent.checked_sub(1),
            span: Span { start: start as u32, end: node.end_byte() as u32 },
            start_line: row as u32 + 1,
            end_line: node.end_position().row as u32 + 1,
            name_place: self.place(name),
            signature: Some(signature),
            docstring: (!documentation.trim().is_empty()).then(|| documentation.into()),
        });
        let side = self.position.side;
        let declarations = &mut self.outline(side).outline.declarations;
        declarations.push(Declaration { key, kind, shape });
        let handle = side.handle(declarations.len() - 1);
        (self.definitions.len() as u32 - 1, handle)
    }

    /// Returns the end of the head of the cursor's node: where its body begins, or its own end without a semicolon.
    pub(super) fn head_end(&self, cursor: &TreeCursor<'_>) -> usize {
        let node = cursor.node();
        match self.field(cursor, self.fields.body) {
            Some(body) => body.start_byte(),
            None => {
                let text = self.text_of(node);
                node.start_byte() + text.trim_end_matches([';', ' ']).len()
            }
        }
    }

    /// Gives members the type of their block as parent and the heads of blocks their type as source, and brings parents before
    /// children. Returns the new index of each definition.
    pub(super) fn order_definitions(&mut self) -> Vec<usize> {
        let mut types: FxHashMap<Arc<str>, u32> = FxHashMap::default();
        for (index, definition) in self.definitions.iter().enumerate().filter(|(_, definition)| is_type(definition.kind)) {
            types.entry(Arc::clone(&definition.key.qualified)).or_insert(index as u32);
        }
        for (member, owner) in std::mem::take(&mut self.owners) {
            if let Some(parent) = types.get(&owner) {
                self.definitions[member as usize].parent = Some(*parent);
            }
        }
        for (range, owner) in std::mem::take(&mut self.heads) {
            if let Some(source) = types.get(&owner) {
                for reference in &mut self.references[range] {
                    reference.source = source + 1;
                }
            }
        }
        // A member goes to its own place, or right after its type where that comes later; what is inside it goes along.
        let mut places: Vec<(u32, u32)> = Vec::with_capacity(self.definitions.len());
        let mut inside: Vec<Option<(u32, u32)>> = vec![None; self.definitions.len()];
        for (index, definition) in self.definitions.iter().enumerate() {
            let index = index as u32;
            let place = match definition.parent {
                Some(parent) if parent > index => (parent, index + 1),
                Some(parent) => match inside.get(parent as usize).copied().flatten() {
                    Some((moved, _)) => (moved, index + 1),
                    None => (index, 0),
                },
                None => (index, 0),
            };
            if place.1 != 0 {
                inside[index as usize] = Some(place);
            }
            places.push(place);
        }
        let mut order: Vec<usize> = (0..self.definitions.len()).collect();
        order.sort_by_key(|index| places[*index]);
        arrange_definitions(&mut self.definitions, &order)
    }

    /// Returns the side on which a handle of the current position may be pushed.
    pub(super) fn side(&self) -> Side {
        self.position.side
    }
}
