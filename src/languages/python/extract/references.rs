//! Uses of names, the references they make, and the expressions that are kept as evidence for types.
//!
//! Must not know the tree. Invariant: an expression is made of expressions recorded before it, and nests no deeper than
//! [`MAX_EVIDENCE`].

use super::walk::Walk;
use crate::languages::python::raw::{NONE, RawExpression, RawReference, RawSubject, RawUse};
use crate::model::EdgeKind;

/// How deep an expression may nest and still be kept as evidence for a type.
const MAX_EVIDENCE: u8 = 60;

impl Walk<'_> {
    /// Records a use of a bare name and, when the use may have an edge, the reference.
    pub(super) fn use_name(&mut self, name: u32, start: u32, kind: EdgeKind, qualifier: bool) -> u32 {
        let tick = self.next_tick();
        let index = self.raw.uses.len() as u32;
        self.raw.uses.push(RawUse { name, scope: self.scope, tick, arm: self.arm, annotation: self.in_annotation });
        self.raw.references.push(RawReference {
            start,
            kind,
            qualifier,
            source: self.source_definition,
            subject: RawSubject::Name(index),
        });
        self.last_name = name;
        index
    }

    /// Records a reference to `object.name`.
    pub(super) fn member(&mut self, object: u32, name: u32, start: u32, kind: EdgeKind, qualifier: bool, want: bool) -> u32 {
        self.raw.references.push(RawReference {
            start,
            kind,
            qualifier,
            source: self.source_definition,
            subject: RawSubject::Member(object, name),
        });
        self.last_name = name;
        if want && object != NONE { self.push_expression(RawExpression::Attribute(object, name)) } else { NONE }
    }

    /// Adds an expression; one nested too deeply to be followed is [`NONE`].
    pub(super) fn push_expression(&mut self, expression: RawExpression) -> u32 {
        let depth_of = |index: u32| if index == NONE { 0 } else { self.expression_depths[index as usize] };
        let depth = 1 + match expression {
            RawExpression::Name(_) | RawExpression::Super(_) | RawExpression::Injected { .. } | RawExpression::Literal => 0,
            RawExpression::Attribute(inner, _)
            | RawExpression::Call(inner)
            | RawExpression::Sequence(inner)
            | RawExpression::Element(inner)
            | RawExpression::Part(inner, _)
            | RawExpression::Named(inner, _)
            | RawExpression::Entered(inner)
            | RawExpression::Await(inner)
            | RawExpression::Instance(inner) => depth_of(inner),
            RawExpression::Invocation(left, right)
            | RawExpression::Subscript(left, right)
            | RawExpression::Either(left, right)
            | RawExpression::Mapping(left, right)
            | RawExpression::List(left, right) => depth_of(left).max(depth_of(right)),
        };
        if depth > MAX_EVIDENCE {
            return NONE;
        }
        self.expression_depths.push(depth);
        self.raw.expressions.push(expression);
        self.raw.expressions.len() as u32 - 1
    }

    pub(super) fn either(&mut self, left: u32, right: u32) -> u32 {
        match (left, right) {
            (NONE, other) | (other, NONE) => other,
            (left, right) => self.push_expression(RawExpression::Either(left, right)),
        }
    }

    /// Makes one expression of several arguments; one that is no evidence keeps its place.
    pub(super) fn argument_chain(&mut self, arguments: &[u32]) -> u32 {
        if let [one] = arguments {
            return *one;
        }
        self.expression_list(arguments)
    }

    /// Makes a list of expressions, of one too; one that is no evidence keeps its place.
    pub(super) fn expression_list(&mut self, arguments: &[u32]) -> u32 {
        let mut rest = NONE;
        for argument in arguments.iter().rev() {
            let argument = if *argument == NONE { self.push_expression(RawExpression::Literal) } else { *argument };
            rest = self.push_expression(RawExpression::List(argument, rest));
        }
        rest
    }
}
