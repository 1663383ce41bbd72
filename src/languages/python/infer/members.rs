//! Members of classes: the order of the bases, and what is found in them.
//!
//! Must not know what a member holds. Invariant: an unknown base stays in the order, so that nothing after it is certain.

use std::rc::Rc;

use smallvec::SmallVec;

use super::state::Inference;
use super::value::{Linearization, Place, Value, Values};
use super::view::{View, bindings_of};
use crate::languages::python::library::Generic;
use crate::model::facts::{Expression, Handle, Role, Use};

/// A member of a class.
pub struct Member {
    pub owner: Place,
    /// What the class body binds it to; `None` when only instances have it.
    pub bound: Option<Use>,
    /// Whether no unknown base could have come first.
    pub certain: bool,
    /// What the nearest base declares that only gives way to an assignment of its subclass: the declaration holds all the same.
    pub declared: Option<(Place, Use)>,
}

impl Inference<'_> {
    /// Finds a member of a class, or of an instance's class or its bases, nearest first.
    pub fn member(&mut self, value: &Value, name: &str) -> Option<Member> {
        let (class, skip, instance) = match value {
            Value::Class(object) => (object.class, 0, false),
            Value::Instance(object) => (object.class, 0, true),
            Value::Super(object) => (object.class, 1, true),
            _ => return None,
        };
        let mut certain = true;
        // What only an assignment tells gives way to what a base declares: a property takes what is assigned to it.
        let mut assigned: Option<Member> = None;
        for owner in self.linearization(class).iter().skip(skip) {
            let Some(owner) = owner else {
                certain = false;
                continue;
            };
            let file = &self.views[owner.view as usize];
            let Some(shape) = file.class(owner.declaration) else { continue };
            let names = &file.outline(owner.declaration).names;
            if let Some(used) = shape.bound(names, name) {
                let member = Member { owner: *owner, bound: Some(used), certain, declared: None };
                let declared = bindings_of(file, used).into_iter().any(|binding| declares(file, binding));
                match &mut assigned {
                    Some(nearest) if declared && nearest.bound.is_some() => {
                        nearest.declared = Some((*owner, used));
                        return assigned;
                    }
                    Some(_) if !declared => {}
                    _ if declared => return Some(member),
                    _ => assigned = Some(member),
                }
            } else if instance && assigned.is_none() {
                let evidence = shape.evidence(names, name);
                if evidence.is_empty() {
                    continue;
                }
                let member = Member { owner: *owner, bound: None, certain, declared: None };
                if evidence.iter().any(|evidence| evidence.annotation.is_some()) {
                    return Some(member);
                }
                assigned = Some(member);
            }
        }
        assigned
    }

    /// Returns whether a method of the class or of a base assigns the attribute, through the instance or the class.
    pub fn is_assigned(&mut self, value: &Value, name: &str) -> bool {
        let (Value::Class(object) | Value::Instance(object) | Value::Super(object)) = value else { return false };
        self.linearization(object.class).iter().flatten().any(|owner| {
            let file = &self.views[owner.view as usize];
            let names = &file.outline(owner.declaration).names;
            file.class(owner.declaration).is_some_and(|shape| !shape.evidence(names, name).is_empty())
        })
    }

    /// Returns whether all bases of the value's class are known.
    pub fn is_closed(&mut self, value: &Value) -> bool {
        match value {
            Value::Class(object) | Value::Instance(object) | Value::Super(object) => {
                let linearization = self.linearization(object.class);
                linearization.iter().all(|entry| match entry {
                    Some(place) => !self.views[place.view as usize].class(place.declaration).is_some_and(|shape| shape.open),
                    None => false,
                })
            }
            _ => false,
        }
    }

    /// Returns the order in which members are looked up (C3; where the bases contradict each other, depth first).
    pub fn linearization(&mut self, class: Place) -> Linearization {
        if let Some(known) = self.linearizations.get(&class) {
            return Rc::clone(known);
        }
        // A class among its own bases ends here.
        self.linearizations.insert(class, Rc::from([Some(class)]));
        let result = self.deeper(Rc::from([Some(class), None]), |this| this.linearize(class));
        self.linearizations.insert(class, Rc::clone(&result));
        result
    }

    fn linearize(&mut self, class: Place) -> Linearization {
        let file = self.view(class.view);
        let Some(shape) = file.class(class.declaration) else { return Rc::from([Some(class)]) };
        let mut sequences: Vec<Vec<Option<Place>>> = Vec::new();
        let mut direct: Vec<Option<Place>> = Vec::new();
        for base in &shape.bases {
            let values = base.map(|base| self.values_of(class.view, base)).unwrap_or_default();
            let classes: SmallVec<[Place; 2]> = values
                .iter()
                .filter_map(|value| if let Value::Class(object) = value { Some(object.class) } else { None })
                .collect();
            match classes.as_slice() {
                [] => {
                    if !base.is_some_and(|base| self.is_root(class.view, base)) {
                        direct.push(None);
                        sequences.push(vec![None]);
                    }
                }
                several => {
                    for place in several {
                        direct.push(Some(*place));
                        sequences.push(self.linearization(*place).to_vec());
                    }
                    if several.len() > 1 || values.len() > 1 {
                        // One of several, by a condition: no base is sure.
                        direct.push(None);
                        sequences.push(vec![None]);
                    }
                }
            }
        }
        sequences.push(direct);
        let mut order = vec![Some(class)];
        loop {
            sequences.retain(|sequence| !sequence.is_empty());
            if sequences.is_empty() {
                break;
            }
            // Unknown bases are never compared with each other: each stands for itself.
            let good = sequences
                .iter()
                .map(|sequence| sequence[0])
                .find(|head| head.is_none() || !sequences.iter().any(|other| other[1..].contains(head)));
            let head = good.unwrap_or(sequences[0][0]);
            let mut unknown_taken = false;
            for sequence in &mut sequences {
                if sequence[0] == head && !(head.is_none() && unknown_taken) {
                    sequence.remove(0);
                    unknown_taken = head.is_none();
                }
            }
            if good.is_none() {
                for sequence in &mut sequences {
                    sequence.retain(|entry| *entry != head);
                }
            }
            if !(head.is_some() && order.contains(&head)) {
                order.push(head);
            }
        }
        order.into()
    }

    /// Returns whether a base adds no members of its own worth asking for: `object`, `Generic`, `Protocol`, `ABC`.
    fn is_root(&mut self, view: u32, base: Handle) -> bool {
        let file = self.view(view);
        let head = match file.expression(base) {
            Some(Expression::Subscript { object, .. }) => object,
            _ => base,
        };
        self.generic(&file, head) == Some(Generic::Root)
    }

    /// Returns whether iterating over a class gives its members.
    pub(super) fn is_enumeration(&mut self, class: Place) -> bool {
        self.below_library(class, &["Enum", "IntEnum", "StrEnum", "Flag", "IntFlag"]).is_some()
    }

    /// Returns the first of a class and its bases that is directly below one of these classes of the library.
    fn below_library(&mut self, class: Place, names: &[&str]) -> Option<Place> {
        let linearization = self.linearization(class);
        if linearization.iter().all(Option::is_some) {
            return None;
        }
        linearization.iter().flatten().copied().find(|owner| {
            let file = self.view(owner.view);
            file.class(owner.declaration).is_some_and(|shape| {
                let mut bases = shape.bases.iter().flatten();
                bases.any(|base| self.library_name(&file, *base, &|name| names.contains(&name)).is_some())
            })
        })
    }

    /// Returns what the fields of a named tuple hold, in order; `None` for what is no such tuple.
    pub(super) fn fields_of(&mut self, class: Place) -> Option<Vec<Values>> {
        let owner = self.below_library(class, &["NamedTuple"])?;
        let file = self.view(owner.view);
        let shape = file.class(owner.declaration)?;
        let mut fields: Vec<(Handle, Handle)> = Vec::new();
        for (_, used) in &shape.members {
            if let Use::One(binding) = used
                && let Some(annotation) = file.binding(*binding).and_then(|binding| binding.annotation)
            {
                fields.push((*binding, annotation));
            }
        }
        // Bindings are numbered as they are written.
        fields.sort();
        Some(fields.into_iter().map(|(_, annotation)| self.types_of(owner.view, annotation)).collect())
    }
}

/// Returns whether a binding says what its name is, beyond giving it a value.
fn declares(file: &View<'_>, binding: Handle) -> bool {
    file.binding(binding)
        .is_some_and(|binding| matches!(binding.role, Role::Function | Role::Class) || binding.annotation.is_some())
}
