//! What an expression holds, as far as the repository's own text says: modules, classes, their instances, functions.
//!
//! From the bottom: what is read ([`view`]) and what is found ([`value`]), the memory between questions ([`state`]), and on it names
//! ([`names`]), values ([`values`]), members ([`members`]), types ([`types`]) and what is proved ([`certain`]). Must not know references
//! or edges. Invariant: everything but [`Inference::follow`] and what is [certain](Inference::certain) is evidence, not proof; an empty
//! answer means that nothing is known.

mod calls;
mod certain;
mod containers;
mod fixtures;
mod generics;
mod members;
mod names;
mod state;
mod types;
mod value;
mod values;
mod view;

pub(super) use members::Member;
pub(super) use names::Star;
pub(super) use state::Inference;
pub(super) use value::{End, Followed, Object, Value};
pub(super) use view::{View, bindings_of, free_name};
