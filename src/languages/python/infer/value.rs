//! What an expression may hold, and where a name may lead.
//!
//! Must not know how it is found. Invariant: what is added to values is added once, and up to [`MAX_VALUES`].

use std::rc::Rc;

use smallvec::SmallVec;

use crate::languages::ModuleKey;
use crate::model::facts::Handle;
use crate::model::{Reason, Target};

#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Module(ModuleKey),
    Class(Place),
    Instance(Place),
    /// The instance as its class's bases see it.
    Super(Place),
    Function(Place, Option<Place>),
    /// Something that gives these when iterated or subscripted.
    Elements(Rc<[Value]>),
    /// The type of whatever the method is called on.
    Receiver,
    /// Surely nothing of the repository.
    External,
}

/// A declaration of some viewed file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    pub view: u32,
    pub declaration: Handle,
}

/// Where a name of a module leads.
#[derive(Clone, Debug, Default)]
pub struct Followed {
    pub ends: SmallVec<[End; 1]>,
    /// Why it is not certain.
    pub reason: Option<Reason>,
    /// The rule that says so, when it is not the asker's own.
    pub rule: Option<&'static str>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum End {
    Definition(Target),
    Module(ModuleKey),
}

/// The bases of a class in the order in which members are looked up; `None` where one is not known.
pub type Linearization = Rc<[Option<Place>]>;

pub type Values = SmallVec<[Value; 2]>;

/// How many values an expression is followed for.
pub(super) const MAX_VALUES: usize = 6;

pub(super) fn add(values: &mut Values, value: Value) {
    if values.len() < MAX_VALUES && !values.contains(&value) {
        values.push(value);
    }
}

pub(super) fn add_all(values: &mut Values, more: impl IntoIterator<Item = Value>) {
    for value in more {
        add(values, value);
    }
}

pub(super) fn instance_of(value: Value) -> Values {
    match value {
        Value::Class(class) => SmallVec::from_iter([Value::Instance(class)]),
        Value::External | Value::Receiver => SmallVec::from_iter([value]),
        _ => Values::new(),
    }
}
