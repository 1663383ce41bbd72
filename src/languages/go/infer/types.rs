//! Types as inference sees them: what is declared, put together, and the arguments that stand for type parameters.
//!
//! Must not look anything up. Invariant: a type that is not known is never taken for one that is.

use std::rc::Rc;

use crate::languages::go::modules::Package;
use crate::languages::go::universe::Predeclared;
use crate::model::facts::Handle;

/// Which type stands for a type parameter, by the view and the binding of the parameter.
pub(in crate::languages::go) type Arguments = Rc<[(u32, Handle, Type)]>;

/// A type.
#[derive(Clone, Debug)]
pub(in crate::languages::go) enum Type {
    /// A declared one, of the package level: an index of the view's declarations.
    Named {
        view: u32,
        declaration: u32,
        arguments: Rc<[Type]>,
    },
    /// One that is written out or declared in a function: an entry of the view's types.
    Shape {
        view: u32,
        shape: Handle,
        arguments: Arguments,
    },
    Pointer(Rc<Type>),
    /// An array, a slice, or many arguments.
    Sequence(Rc<Type>),
    Mapping(Rc<(Type, Type)>),
    Channel(Rc<Type>),
    /// A function: an entry of the view's signatures.
    Function {
        view: u32,
        signature: Handle,
        arguments: Arguments,
    },
    /// A type parameter that nothing stands for: its binding.
    Parameter {
        view: u32,
        binding: Handle,
    },
    /// Several results.
    Tuple(Rc<[Type]>),
    /// One of the language's own; the name is empty for a literal's.
    Basic(&'static str),
    /// One from outside the repository.
    External,
    Unknown,
}

impl Type {
    pub(in crate::languages::go) fn is_unknown(&self) -> bool {
        matches!(self, Self::Unknown)
    }

    pub(in crate::languages::go) fn pointer(self) -> Self {
        match self {
            Self::Unknown => Self::Unknown,
            Self::External => Self::External,
            known => Self::Pointer(Rc::new(known)),
        }
    }

    /// Returns what a pointer leads to, and any other type as it is.
    pub(in crate::languages::go) fn behind_pointer(&self) -> &Self {
        match self {
            Self::Pointer(inner) => inner,
            other => other,
        }
    }
}

/// What an expression denotes.
#[derive(Clone, Debug)]
pub(in crate::languages::go) enum Meaning {
    Type(Type),
    Value(Type),
    Package(Package),
    /// A package outside the repository, or what comes from one.
    External,
    /// A function of the language.
    Predeclared(&'static str),
    Unknown,
}

impl Meaning {
    /// Returns the type of the value, or the type itself.
    pub(in crate::languages::go) fn type_(self) -> Type {
        match self {
            Self::Type(type_) | Self::Value(type_) => type_,
            Self::External => Type::External,
            Self::Package(_) | Self::Predeclared(_) | Self::Unknown => Type::Unknown,
        }
    }

    pub(super) fn of_predeclared(kind: Predeclared, name: &'static str) -> Self {
        match kind {
            Predeclared::Type => Self::Type(Type::Basic(name)),
            Predeclared::Function => Self::Predeclared(name),
            Predeclared::Value => Self::Value(Type::Basic("")),
        }
    }
}
