//! Type arguments that a call leaves out: found by laying the parameters' types over those of the arguments.
//!
//! Must not know edges. Invariant: the first argument that tells a type parameter decides it.

use std::rc::Rc;

use super::Inference;
use super::types::{Arguments, Type};
use crate::model::facts::Handle;

impl Inference<'_> {
    /// Returns what stands for the type parameters of a function in a call with the arguments `given`.
    pub(super) fn infer_arguments(
        &mut self,
        index: u32,
        signature: Handle,
        known: &Arguments,
        from: u32,
        given: Option<Handle>,
        outer: &Arguments,
    ) -> Arguments {
        let view = self.view(index);
        let Some(made) = view.outline(signature).signatures.get(signature.index()) else { return Rc::clone(known) };
        let open: Vec<Handle> = made
            .type_parameters
            .iter()
            .copied()
            .filter(|parameter| !known.iter().any(|(of, bound, _)| *of == index && bound == parameter))
            .collect();
        if open.is_empty() {
            return Rc::clone(known);
        }
        let mut found = known.to_vec();
        for (position, argument) in self.list(from, given).into_iter().enumerate() {
            let position = position.min(made.parameters.len().saturating_sub(1));
            let Some(parameter) = made.parameters.get(position).copied().flatten() else { continue };
            let mut pattern = self.type_of(index, parameter, known);
            if made.variadic && position + 1 == made.parameters.len() {
                pattern = match pattern {
                    Type::Sequence(element) => (*element).clone(),
                    other => other,
                };
            }
            let argument = self.type_of(from, argument, outer);
            self.unify(&pattern, &argument, index, &open, &mut found);
        }
        // A type parameter may be told by the constraint of another: `S ~[]E`.
        for parameter in &open {
            let told = found.iter().find(|(of, bound, _)| *of == index && bound == parameter).map(|(_, _, type_)| type_.clone());
            if let Some(told) = told {
                let constraint = self.constraint(index, *parameter);
                self.unify(&constraint, &told, index, &open, &mut found);
            }
        }
        found.into()
    }

    fn unify(&mut self, pattern: &Type, argument: &Type, of: u32, open: &[Handle], found: &mut Vec<(u32, Handle, Type)>) {
        if argument.is_unknown() || self.depth > super::MAX_DEPTH {
            return;
        }
        self.depth += 1;
        match pattern {
            Type::Parameter { view, binding }
                if *view == of
                    && open.contains(binding)
                    && !found.iter().any(|(of, bound, _)| of == view && bound == binding) =>
            {
                found.push((*view, *binding, argument.clone()));
            }
            Type::Pointer(inner) => {
                if let Type::Pointer(argument) = argument {
                    self.unify(inner, argument, of, open, found);
                }
            }
            Type::Sequence(inner) => {
                if let Type::Sequence(argument) = self.underlying(argument) {
                    self.unify(inner, &argument, of, open, found);
                }
            }
            Type::Channel(inner) => {
                if let Type::Channel(argument) = self.underlying(argument) {
                    self.unify(inner, &argument, of, open, found);
                }
            }
            Type::Mapping(entry) => {
                if let Type::Mapping(argument) = self.underlying(argument) {
                    self.unify(&entry.0, &argument.0, of, open, found);
                    self.unify(&entry.1, &argument.1, of, open, found);
                }
            }
            Type::Named { view, declaration, arguments } => {
                if let Type::Named { view: other, declaration: named, arguments: given } = argument
                    && (view, declaration) == (other, named)
                {
                    for (pattern, argument) in arguments.iter().zip(given.iter()) {
                        self.unify(pattern, argument, of, open, found);
                    }
                }
            }
            Type::Function { view, signature, arguments } => {
                if let Type::Function { view: other, signature: called, arguments: given } = self.underlying(argument) {
                    let count = |this: &Self, view: u32, signature: Handle| {
                        let view = this.view(view);
                        view.outline(signature).signatures.get(signature.index()).map_or(0, |made| made.parameters.len())
                    };
                    for position in 0..count(self, *view, *signature).min(count(self, other, called)) {
                        let pattern = self.parameter(*view, *signature, position, arguments);
                        let argument = self.parameter(other, called, position, &given);
                        self.unify(&pattern, &argument, of, open, found);
                    }
                    let pattern = self.results(*view, *signature, arguments);
                    let argument = self.results(other, called, &given);
                    self.unify(&pattern, &argument, of, open, found);
                }
            }
            Type::Tuple(parts) => {
                if let Type::Tuple(arguments) = argument {
                    for (pattern, argument) in parts.iter().zip(arguments.iter()) {
                        self.unify(pattern, argument, of, open, found);
                    }
                }
            }
            // An anonymous constraint, `interface{ ~[]E }`.
            Type::Shape { view, shape, arguments } => {
                let made = self.view(*view);
                let embedded =
                    made.outline(*shape).types.get(shape.index()).map(|made| made.embedded.clone()).unwrap_or_default();
                if let [one] = embedded[..] {
                    let pattern = self.type_of(*view, one, arguments);
                    self.unify(&pattern, argument, of, open, found);
                }
            }
            _ => {}
        }
        self.depth -= 1;
    }
}
