//! One walk over a Python tree, collecting what names are bound and used where; binding them is the next step's work.
//!
//! The walk is one struct ([`walk`]) to which each kind of syntax adds its methods. From the bottom: the grammar's words ([`kinds`],
//! [`text`]); what is recorded ([`scopes`], [`references`], [`definitions`]); what is read in expressions ([`expressions`], [`types`],
//! [`strings`]), in what defines ([`decorators`], [`functions`], [`classes`]) and in statements ([`assignments`], [`public`],
//! [`imports`], [`branches`], [`patterns`], and [`statements`] above them all). Must not know other files. Invariant: no recursion
//! deeper than [`walk::MAX_DEPTH`]; what is nested deeper is passed over.

mod assignments;
mod branches;
mod classes;
mod decorators;
mod definitions;
mod expressions;
mod functions;
mod imports;
mod kinds;
mod patterns;
mod public;
mod references;
mod scopes;
mod statements;
mod strings;
#[cfg(test)]
mod tests;
mod text;
mod types;
mod walk;

use tree_sitter::{Language, Node};

use super::raw::Raw;

/// Walks the whole tree of `text`, whose lines begin at `line_starts`.
pub(super) fn collect<'s>(text: &'s str, line_starts: &'s [u32], root: Node<'_>) -> Raw<'s> {
    let mut walk = walk::Walk::new(text, line_starts);
    walk.block(&mut root.walk(), None);
    walk.raw
}

/// Returns the grammar whose trees [`collect`] walks.
pub(super) fn grammar() -> &'static Language {
    &kinds::grammar().0
}
