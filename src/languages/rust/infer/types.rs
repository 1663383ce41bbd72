//! Types as inference sees them, and what a path or an expression comes to.
//!
//! Must not look anything up. Invariant: a type that is not known is never taken for one that is.

use std::rc::Rc;

use crate::languages::rust::modules::Module;
use crate::model::facts::Handle;
use crate::model::{Reason, Target};

/// An entry of a view: of its surface, or of its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::languages::rust) struct Place {
    pub view: u32,
    pub handle: Handle,
}

/// Which type stands for a type parameter.
pub(super) type Substitution = Rc<[(Place, Type)]>;

/// A function or a closure: an entry of a view's signatures.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::languages::rust) struct Function {
    pub signature: Place,
    pub substitution: Substitution,
}

/// A trait, as a bound or as what is implemented.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::languages::rust) enum Trait {
    Local {
        at: Place,
        arguments: Rc<[Type]>,
    },
    /// `Fn(A) -> B` and its like.
    Callable(Function),
    /// One from outside, by the last word of its name.
    External {
        name: Rc<str>,
        arguments: Rc<[Type]>,
    },
}

/// A type.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::languages::rust) enum Type {
    /// A struct, an enum or a union: its declaration.
    Named {
        at: Place,
        arguments: Rc<[Type]>,
    },
    /// A type parameter that nothing stands for: its binding.
    Parameter(Place),
    /// `dyn A + B` or `impl A + B`.
    Traits(Rc<[Trait]>),
    Reference(Rc<Type>),
    Raw(Rc<Type>),
    /// An array or a slice.
    Sequence(Rc<Type>),
    /// A type of the standard library that is known here.
    Std {
        name: &'static str,
        arguments: Rc<[Type]>,
    },
    Tuple(Rc<[Type]>),
    Function(Function),
    /// What a variant or a struct holds: an entry of a view's types.
    Payload {
        shape: Place,
        substitution: Substitution,
    },
    /// One of the language's own; in braces where it is known to be one of several.
    Basic(&'static str),
    /// One of several, by conditions that are not known here.
    OneOf(Rc<[Type]>),
    /// One from outside the repository.
    External,
    Unknown,
}

/// The type of an element or of a part of a sequence, where the index does not tell which; its argument is the element's.
pub(super) const ELEMENT: &str = "{element}";
/// The type of a range as it is written.
pub(super) const RANGE: &str = "{range}";

/// Most parts of a type. A larger one is not known: types share their parts, so that a few lines make one that nobody can walk through.
const MAX_PARTS: usize = 200;
/// Most types of which one is meant.
const MAX_OPTIONS: usize = 4;

impl Type {
    /// Returns one of several types.
    pub(super) fn one_of(types: impl IntoIterator<Item = Type>) -> Self {
        let mut options: Vec<Self> = Vec::new();
        for type_ in types {
            if !options.contains(&type_) {
                options.push(type_);
            }
        }
        if options.len() == 1 || options.iter().all(Self::is_unknown) || options.len() > MAX_OPTIONS {
            return options.pop().filter(|_| options.is_empty()).unwrap_or(Self::Unknown);
        }
        Self::OneOf(options.into()).bounded()
    }

    /// Returns the type, unless it is too large.
    pub(super) fn bounded(self) -> Self {
        if self.fits_in(&mut { MAX_PARTS }) { self } else { Self::Unknown }
    }

    /// Returns whether the parts of the type are no more than `left`, which becomes what is left of it.
    fn fits_in(&self, left: &mut usize) -> bool {
        if *left == 0 {
            return false;
        }
        *left -= 1;
        match self {
            Self::Named { arguments: parts, .. }
            | Self::Std { arguments: parts, .. }
            | Self::Tuple(parts)
            | Self::OneOf(parts) => parts.iter().all(|part| part.fits_in(left)),
            Self::Reference(inner) | Self::Raw(inner) | Self::Sequence(inner) => inner.fits_in(left),
            Self::Traits(traits) => traits.iter().all(|one| one.fits_in(left)),
            Self::Function(Function { substitution, .. }) | Self::Payload { substitution, .. } => {
                substitution.iter().all(|(_, part)| part.fits_in(left))
            }
            Self::Parameter(_) | Self::Basic(_) | Self::External | Self::Unknown => true,
        }
    }

    /// Returns the type as that of an element, where it may be that of a part of a sequence.
    pub(super) fn settled(&self) -> &Self {
        match self {
            Self::Std { name: ELEMENT, arguments } => arguments.first().unwrap_or(&Self::Unknown).settled(),
            other => other,
        }
    }

    /// Returns whether it is one of the types of ranges.
    pub(super) fn is_range(&self) -> bool {
        matches!(self, Self::Std { name, .. } if *name == RANGE || super::known::RANGES.contains(name))
    }

    pub(super) fn reference(self) -> Self {
        match self {
            Self::Unknown | Self::External => self,
            known => Self::Reference(Rc::new(known)),
        }
    }

    /// Returns what is behind references.
    pub(in crate::languages::rust) fn behind(&self) -> &Self {
        let mut type_ = self;
        while let Self::Reference(inner) = type_ {
            type_ = inner;
        }
        type_
    }

    pub(super) fn std(name: &'static str, arguments: impl Into<Rc<[Type]>>) -> Self {
        Self::Std { name, arguments: arguments.into() }
    }

    pub(super) fn is_unknown(&self) -> bool {
        matches!(self, Self::Unknown)
    }

    /// Returns whether nothing in it is left out.
    pub(super) fn is_whole(&self) -> bool {
        match self {
            Self::Unknown | Self::OneOf(_) => false,
            Self::Named { arguments, .. } | Self::Std { arguments, .. } | Self::Tuple(arguments) => {
                arguments.iter().all(Self::is_whole)
            }
            Self::Reference(inner) | Self::Raw(inner) | Self::Sequence(inner) => inner.is_whole(),
            _ => true,
        }
    }

    pub(super) fn argument(&self, index: usize) -> Self {
        match self {
            Self::Std { arguments, .. } | Self::Named { arguments, .. } => arguments.get(index).cloned().unwrap_or(Self::Unknown),
            _ => Self::Unknown,
        }
    }
}

impl Trait {
    fn fits_in(&self, left: &mut usize) -> bool {
        match self {
            Self::Local { arguments, .. } | Self::External { arguments, .. } => arguments.iter().all(|part| part.fits_in(left)),
            Self::Callable(function) => function.substitution.iter().all(|(_, part)| part.fits_in(left)),
        }
    }
}

/// What an expression denotes.
#[derive(Clone, Debug)]
pub(in crate::languages::rust) enum Meaning {
    Type(Type),
    Value(Type),
    /// What makes a value of a type when it is called, or is one: a struct or a variant, and what it holds.
    Constructor(Type, Option<Place>),
    Trait(Trait),
    Modules(Rc<[Module]>),
    /// Something from outside, by its path.
    External(Rc<str>),
    /// A function of a type that nobody in the repository declares.
    Foreign(Type, Rc<str>),
    Unknown,
}

impl Meaning {
    /// Returns the meaning, unless its type is too large.
    pub(super) fn bounded(self) -> Self {
        match self {
            Self::Type(type_) => Self::Type(type_.bounded()),
            Self::Value(type_) => Self::Value(type_.bounded()),
            Self::Constructor(type_, held) => Self::Constructor(type_.bounded(), held),
            Self::Foreign(type_, name) => Self::Foreign(type_.bounded(), name),
            Self::Trait(one) if !one.fits_in(&mut { MAX_PARTS }) => Self::Unknown,
            other => other,
        }
    }

    /// Returns what something denotes that denotes one of several things.
    pub(super) fn one_of(meanings: impl IntoIterator<Item = Self>) -> Self {
        let mut is_type = false;
        let types: Vec<Type> = meanings
            .into_iter()
            .map(|meaning| match meaning {
                Meaning::Type(type_) => {
                    is_type = true;
                    type_
                }
                Meaning::Constructor(type_ @ Type::Named { .. }, _) => {
                    is_type = true;
                    type_
                }
                Meaning::Value(type_) => type_,
                _ => Type::Unknown,
            })
            .collect();
        match Type::one_of(types) {
            Type::Unknown => Meaning::Unknown,
            type_ if is_type => Meaning::Type(type_),
            type_ => Meaning::Value(type_),
        }
    }

    /// Returns the meaning as one that something from outside may have instead.
    pub(super) fn in_doubt(self) -> Self {
        match self {
            Self::Unknown => Self::Unknown,
            known => Self::one_of([known, Self::Value(Type::External)]),
        }
    }

    /// Returns the type of the value, or the type itself.
    pub(in crate::languages::rust) fn type_(self) -> Type {
        match self {
            Self::Type(type_) | Self::Value(type_) | Self::Constructor(type_, _) => type_,
            Self::External(path) => super::known::type_named(&path),
            Self::Trait(one) => Type::Traits(Rc::from([one])),
            Self::Foreign(..) => Type::External,
            Self::Modules(_) | Self::Unknown => Type::Unknown,
        }
    }
}

/// What a reference is to.
#[derive(Clone, Debug)]
pub(in crate::languages::rust) enum What {
    /// Definitions; more than one where nothing tells which.
    Targets {
        targets: Vec<Target>,
        rule: &'static str,
        /// Why it is not certain; `None` makes the one target `resolved_static`.
        reason: Option<Reason>,
        /// What may run instead: the members of types that implement the trait.
        also: Rc<[Target]>,
    },
    /// Modules that are files.
    Modules(Vec<Module>),
    /// A local, a field or a variant, which are no definitions.
    Local,
    Nothing(Reason),
}

#[derive(Clone, Debug)]
pub(in crate::languages::rust) struct Answer {
    pub what: What,
    pub meaning: Meaning,
}

impl Answer {
    pub(super) fn nothing(reason: Reason) -> Self {
        Self { what: What::Nothing(reason), meaning: Meaning::Unknown }
    }

    pub(super) fn external(path: Rc<str>) -> Self {
        Self { what: What::Nothing(Reason::ExternalImport), meaning: Meaning::External(path) }
    }

    pub(super) fn local(meaning: Meaning) -> Self {
        Self { what: What::Local, meaning }
    }
}
