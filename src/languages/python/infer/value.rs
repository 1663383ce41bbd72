//! What an expression may hold, and where a name may lead.
//!
//! Must not know how it is found. Invariant: what is added to values is added once, and up to [`MAX_VALUES`]; a value of more than [`MAX_PARTS`] parts is none.

use std::rc::Rc;

use smallvec::SmallVec;

use crate::languages::ModuleKey;
use crate::model::facts::Handle;
use crate::model::{Reason, Target};

#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Module(ModuleKey),
    Class(Object),
    Instance(Object),
    /// The instance as its class's bases see it.
    Super(Object),
    /// A function, and what it is called on.
    Function(Place, Option<Object>),
    /// Something that gives these when iterated, subscripted or entered.
    Elements(Rc<[Value]>),
    /// Something with so many parts.
    Tuple(Rc<[Values]>),
    /// Something that gives the first when iterated, the second when subscripted.
    Mapping(Rc<(Values, Values)>),
    /// Something that gives these when called.
    Callable(Rc<[Value]>),
    /// Whatever a type variable stands for.
    Variable(Variable),
    /// The class of what a type variable stands for.
    ClassOf(Variable),
    /// The type of whatever the method is called on.
    Receiver,
    /// Surely nothing of the repository.
    External,
}

/// A class, and what its type parameters stand for, when that is known.
#[derive(Clone, Debug, PartialEq)]
pub struct Object {
    pub class: Place,
    pub arguments: Option<Rc<[Values]>>,
}

impl Object {
    pub fn plain(class: Place) -> Self {
        Self { class, arguments: None }
    }
}

/// A type variable: the binding that makes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variable {
    pub view: u32,
    pub binding: Handle,
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

/// How many parts a value may have, those of its parts counted in.
const MAX_PARTS: usize = 200;

/// Returns whether a value is small enough to be compared and gone through. Values share their parts, so that a few lines of source can
/// make one that would take forever.
fn is_small(value: &Value) -> bool {
    fn all_small(values: &[Value], left: &mut usize) -> bool {
        values.iter().all(|value| {
            let Some(rest) = left.checked_sub(1) else { return false };
            *left = rest;
            match value {
                Value::Elements(inner) | Value::Callable(inner) => all_small(inner, left),
                Value::Tuple(parts) => parts.iter().all(|part| all_small(part, left)),
                Value::Mapping(sides) => all_small(&sides.0, left) && all_small(&sides.1, left),
                Value::Class(object) | Value::Instance(object) | Value::Super(object) | Value::Function(_, Some(object)) => {
                    object.arguments.as_ref().is_none_or(|arguments| arguments.iter().all(|argument| all_small(argument, left)))
                }
                _ => true,
            }
        })
    }
    all_small(std::slice::from_ref(value), &mut MAX_PARTS.clone())
}

pub(super) fn add(values: &mut Values, value: Value) {
    if values.len() < MAX_VALUES && is_small(&value) && !values.contains(&value) {
        values.push(value);
    }
}

pub(super) fn add_all(values: &mut Values, more: impl IntoIterator<Item = Value>) {
    for value in more {
        add(values, value);
    }
}

pub(super) fn only(value: Value) -> Values {
    SmallVec::from_iter(Some(value).filter(is_small))
}

pub(super) fn instance_of(value: Value) -> Values {
    match value {
        Value::Class(class) => only(Value::Instance(class)),
        Value::ClassOf(variable) => only(Value::Variable(variable)),
        Value::External | Value::Receiver => only(value),
        _ => Values::new(),
    }
}

pub(super) fn class_of(value: Value) -> Values {
    match value {
        Value::Instance(class) => only(Value::Class(class)),
        Value::Variable(variable) => only(Value::ClassOf(variable)),
        Value::External => only(value),
        _ => Values::new(),
    }
}
