//! Binds the names of one file by Python's scoping rules and packs what the walk found into surface and body.
//!
//! From the bottom: what is being made ([`binder`]), what each use means ([`scoping`]), how expressions are packed ([`expressions`]), and
//! with them the shapes of classes and functions ([`shapes`]), the surface ([`surface`]) and the body ([`body`]). Must not know other
//! files. Invariant: nothing of the surface depends on where something stands, only on what is bound to what.

mod binder;
mod body;
mod expressions;
mod scoping;
mod shapes;
mod surface;

use super::raw::{Raw, RawRole};
use crate::model::facts::{Body, Surface};

/// Returns what other files may see of a file, and what only resolving its own references needs.
pub(super) fn bind(raw: &Raw<'_>, line_starts: Vec<u32>) -> (Surface, Body) {
    let mut binder = binder::Binder::new(raw);
    binder.stars = (0..raw.bindings.len() as u32)
        .filter(|index| {
            let binding = &raw.bindings[*index as usize];
            matches!(binding.role, RawRole::Star(_)) && binding.scope == 0
        })
        .collect();
    for index in 0..raw.uses.len() {
        let bound = binder.look_up(&raw.uses[index]);
        binder.bound.push(bound);
    }
    binder.declare();
    let mut surface = Surface::default();
    binder.bind_surface();
    binder.shape_all();
    binder.finish_surface(&mut surface);
    let mut body = Body { line_starts, ..Body::default() };
    binder.pack_references(&mut body);
    while let Some(binding) = binder.pending.pop() {
        binder.pack_evidence(binding);
    }
    surface.outline = binder.surface.finish(raw);
    body.outline = binder.body.finish(raw);
    (surface, body)
}
