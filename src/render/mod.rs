//! From items to bytes: the byte budget, JSON, and text for people.
//!
//! Must not know generations or the disk: everything it draws stands in the response. Prints nothing itself. Invariant: source is shown in
//! whole lines, under the item whose lines they are.

pub mod budget;
pub mod graph;
pub mod json;
pub mod snippet;
pub mod text;
pub mod tree;

#[cfg(test)]
mod tests;
