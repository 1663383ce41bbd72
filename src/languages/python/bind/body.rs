//! The body: the references of the file, each with what it says.
//!
//! Must not know their targets. Invariant: references stand in the order of their places.

use super::binder::{Binder, Bound};
use crate::languages::outline::Side;
use crate::languages::python::raw::{NONE, RawRole, RawSubject};
use crate::model::facts::{Body, Handle, Reference, Subject};

impl Binder<'_, '_> {
    pub(super) fn pack_references(&mut self, body: &mut Body) {
        let raw = self.raw;
        body.references.reserve_exact(raw.references.len());
        for reference in &raw.references {
            let subject = match reference.subject {
                RawSubject::Name(used) => {
                    let bound = self.bound[used as usize];
                    if self.is_local(bound) {
                        body.local_uses += 1;
                        continue;
                    }
                    Subject::Name(self.pack_use(bound, raw.uses[used as usize].name, Side::Body))
                }
                RawSubject::Member(object, name) => {
                    let object = self.pack_in_body(object);
                    Subject::Member { object, name: self.body.name(name) }
                }
                RawSubject::Module(import, name) => {
                    Subject::Module { import: self.import_handle(import), name: self.body.name(name) }
                }
                RawSubject::Imported(import) => Subject::Imported(self.import_handle(import)),
                RawSubject::Injected(given) => match self.pack_in_body(given) {
                    Some(given) => Subject::Injected(given),
                    None => continue,
                },
            };
            body.references.push(Reference {
                start: reference.start,
                kind: reference.kind,
                qualifier: reference.qualifier,
                source: reference.source,
                subject,
            });
        }
        body.references.sort_by_key(|reference| reference.start);
        body.references.shrink_to_fit();
    }

    fn import_handle(&mut self, import: u32) -> Handle {
        match self.surface_imports[import as usize] {
            Some(index) => Handle::of_surface(index as usize),
            None => Handle::of_body(self.import(import, Side::Body) as usize),
        }
    }

    /// Returns whether the use can only mean something without a definition of its own inside the file.
    fn is_local(&self, bound: Bound) -> bool {
        let local = |binding: u32| {
            let binding = &self.raw.bindings[binding as usize];
            binding.declaration == NONE && !matches!(binding.role, RawRole::Import(_) | RawRole::Star(_))
        };
        match bound {
            Bound::Free => false,
            Bound::One(binding) => local(binding),
            Bound::Many(set) => self.sets[set as usize].iter().all(|(binding, _)| local(*binding)),
        }
    }
}
