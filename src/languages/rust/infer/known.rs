//! What is known of the standard library: names that need no import, and what methods of its types give.
//!
//! Must not know the repository. Invariant: a method that is not listed gives nothing that is known.

use std::rc::Rc;

use super::evaluate::last_of;
use super::types::{ELEMENT, Type};
use crate::model::facts::{Primitive, Space};

/// Types of the standard library whose parameters say what comes out of them.
const TYPES: [&str; 40] = [
    "Option",
    "Result",
    "Box",
    "Rc",
    "Arc",
    "Vec",
    "VecDeque",
    "HashMap",
    "BTreeMap",
    "HashSet",
    "BTreeSet",
    "BinaryHeap",
    "RefCell",
    "Cell",
    "Mutex",
    "RwLock",
    "OnceCell",
    "OnceLock",
    "LazyLock",
    "LazyCell",
    "Cow",
    "Pin",
    "Ref",
    "RefMut",
    "MutexGuard",
    "RwLockReadGuard",
    "RwLockWriteGuard",
    "ManuallyDrop",
    "Weak",
    "Reverse",
    "PhantomData",
    "String",
    "Iterator",
    "Range",
    "RangeInclusive",
    "RangeFrom",
    "RangeTo",
    "RangeToInclusive",
    "RangeFull",
    "Future",
];

/// Types of ranges.
pub(super) const RANGES: [&str; 6] = ["Range", "RangeInclusive", "RangeFrom", "RangeTo", "RangeToInclusive", "RangeFull"];

/// Traits whose values are iterated over.
const ITERATORS: [&str; 5] = ["Iterator", "IntoIterator", "DoubleEndedIterator", "ExactSizeIterator", "FusedIterator"];

/// Types through which a member of what they hold is reached.
const POINTERS: [&str; 13] = [
    "Box",
    "Rc",
    "Arc",
    "Cow",
    "Pin",
    "Ref",
    "RefMut",
    "MutexGuard",
    "RwLockReadGuard",
    "RwLockWriteGuard",
    "ManuallyDrop",
    "LazyLock",
    "LazyCell",
];

/// Methods that every type may have, by derives and by traits of the standard library.
const GIVEN: [&str; 28] = [
    "clone_from",
    "to_owned",
    "clamp",
    "clone_into",
    "deref_mut",
    "provide",
    "clone",
    "eq",
    "ne",
    "cmp",
    "partial_cmp",
    "lt",
    "le",
    "gt",
    "ge",
    "max",
    "min",
    "hash",
    "fmt",
    "to_string",
    "borrow",
    "borrow_mut",
    "as_ref",
    "as_mut",
    "into",
    "try_into",
    "type_id",
    "deref",
];

/// Methods by value that references have by traits of the standard library.
const BY_VALUE: [&str; 6] = ["into_iter", "into", "try_into", "clone", "to_owned", "cmp"];

const PRIMITIVES: [&str; 17] =
    ["bool", "char", "str", "u8", "u16", "u32", "u64", "u128", "usize", "i8", "i16", "i32", "i64", "i128", "isize", "f32", "f64"];

const PRELUDE_TYPES: [&str; 42] = [
    "Option",
    "Result",
    "Box",
    "Vec",
    "String",
    "Self",
    "Send",
    "Sync",
    "Sized",
    "Unpin",
    "Copy",
    "Drop",
    "Fn",
    "FnMut",
    "FnOnce",
    "AsyncFn",
    "AsyncFnMut",
    "AsyncFnOnce",
    "ToOwned",
    "Clone",
    "PartialEq",
    "PartialOrd",
    "Eq",
    "Ord",
    "AsRef",
    "AsMut",
    "Into",
    "From",
    "Default",
    "Iterator",
    "Extend",
    "IntoIterator",
    "DoubleEndedIterator",
    "ExactSizeIterator",
    "ToString",
    "TryFrom",
    "TryInto",
    "FromIterator",
    "Debug",
    "Hash",
    "Future",
    "IntoFuture",
];

const PRELUDE_VALUES: [&str; 11] =
    ["Some", "None", "Ok", "Err", "drop", "size_of", "size_of_val", "align_of", "align_of_val", "u8", "str"];

const PRELUDE_MACROS: [&str; 40] = [
    "assert",
    "assert_eq",
    "assert_ne",
    "cfg",
    "column",
    "compile_error",
    "concat",
    "dbg",
    "debug_assert",
    "debug_assert_eq",
    "debug_assert_ne",
    "env",
    "eprint",
    "eprintln",
    "file",
    "format",
    "format_args",
    "include",
    "include_bytes",
    "include_str",
    "is_x86_feature_detected",
    "line",
    "matches",
    "module_path",
    "option_env",
    "panic",
    "print",
    "println",
    "stringify",
    "thread_local",
    "todo",
    "try",
    "unimplemented",
    "unreachable",
    "vec",
    "write",
    "writeln",
    "assert_matches",
    "addr_of",
    "addr_of_mut",
];

/// Returns whether a name needs no import.
pub(super) fn is_in_prelude(name: &str, space: Space) -> bool {
    match space {
        Space::Type => PRELUDE_TYPES.contains(&name) || PRIMITIVES.contains(&name),
        Space::Value => PRELUDE_VALUES.contains(&name),
        Space::Macro => PRELUDE_MACROS.contains(&name),
        Space::Every | Space::Tokens => false,
    }
}

/// Returns the type that a path from outside names.
pub(super) fn type_named(path: &str) -> Type {
    let name = last_of(path);
    if let Some(primitive) = PRIMITIVES.iter().find(|primitive| **primitive == name) {
        return Type::Basic(primitive);
    }
    // Of other crates than the standard library only the prelude's names could be these.
    let standard = !path.contains("::") || path.starts_with("std::") || path.starts_with("core::") || path.starts_with("alloc::");
    if standard && path == "std::io::Result" || path == "std::fmt::Result" {
        return Type::std("Result", []);
    }
    match TYPES.iter().find(|known| **known == name) {
        Some(known) if standard => Type::std(known, []),
        _ => Type::External,
    }
}

/// Returns the iterator type that a trait from outside stands for.
pub(super) fn iterator(name: &str, arguments: &Rc<[Type]>) -> Option<Type> {
    ITERATORS.contains(&name).then(|| Type::Std { name: "Iterator", arguments: Rc::clone(arguments) })
}

/// Returns what a pointer leads to.
pub(super) fn behind_pointer(type_: &Type) -> Option<Type> {
    match type_ {
        Type::Reference(inner) => Some((**inner).clone()),
        Type::Std { name, .. } if POINTERS.contains(name) || *name == ELEMENT => Some(type_.argument(0)),
        _ => None,
    }
}

/// Returns whether a method of a pointer is its own, whatever it leads to.
pub(super) fn is_of_pointer(pointer: &Type, name: &str) -> bool {
    is_given(name)
        || match pointer {
            Type::Std { name: "Pin", .. } => matches!(name, "get_mut" | "get_ref" | "get_unchecked_mut" | "into_ref" | "set"),
            Type::Std { name: "Cow", .. } => matches!(name, "into_owned" | "to_mut" | "is_owned" | "is_borrowed"),
            _ => false,
        }
}

/// Returns whether every type may have a method of that name without writing it.
pub(super) fn is_given(name: &str) -> bool {
    GIVEN.contains(&name)
}

/// Returns whether a trait from outside may give a method of that name to what implements it, beside what is written there.
pub(super) fn may_give(of: &str, name: &str) -> bool {
    match of {
        "Deref" | "DerefMut" | "Drop" | "Debug" | "Display" | "Default" | "From" | "TryFrom" | "FromStr" | "FromIterator"
        | "Copy" | "Eq" | "Send" | "Sync" | "Unpin" | "Sized" | "Index" | "IndexMut" | "AsRef" | "AsMut" | "Borrow"
        | "BorrowMut" | "Clone" | "PartialEq" | "PartialOrd" | "Ord" | "Hash" | "Add" | "Sub" | "Mul" | "Div" | "Rem" | "Neg"
        | "Not" | "IntoIterator" | "Into" => false,
        "Extend" => name.starts_with("extend"),
        _ => true,
    }
}

/// Returns whether a type of which the form alone is known may be that one.
pub(super) fn may_be(form: &str, primitive: &str) -> bool {
    let float = matches!(primitive, "f32" | "f64");
    let number = PRIMITIVES.contains(&primitive) && !matches!(primitive, "bool" | "char" | "str");
    match form {
        "{integer}" => number && !float,
        "{float}" => float,
        "{number}" => number || matches!(primitive, "{integer}" | "{float}"),
        _ => false,
    }
}

/// Returns the type of a literal.
pub(super) fn primitive(primitive: Primitive) -> Type {
    match primitive {
        Primitive::Text => Type::Basic("str").reference(),
        Primitive::Bytes => Type::Sequence(Rc::new(Type::Basic("u8"))).reference(),
        Primitive::Character => Type::Basic("char"),
        Primitive::Boolean => Type::Basic("bool"),
        Primitive::Integer => Type::Basic("{integer}"),
        Primitive::Float => Type::Basic("{float}"),
        Primitive::Number => Type::Basic("{number}"),
        Primitive::Unit => Type::Tuple(Rc::from([])),
        Primitive::Owned => Type::std("String", []),
    }
}

/// Returns what is got of a sequence by an index: an element, a part, or one of both.
pub(super) fn part(element: &Type, index: &Type) -> Type {
    match index.settled() {
        Type::Basic(_) => element.clone(),
        range if range.is_range() => Type::Sequence(Rc::new(element.clone())),
        _ if element.is_unknown() => Type::Unknown,
        _ => Type::std(ELEMENT, [element.clone()]),
    }
}

/// Returns whether a reference may have a method by value before what it refers to.
pub(super) fn is_by_value(name: &str) -> bool {
    BY_VALUE.contains(&name)
}

/// Returns what is iterated over.
pub(super) fn element(type_: &Type) -> Type {
    match type_ {
        Type::Reference(inner) => element(inner).reference(),
        Type::Sequence(inner) => (**inner).clone(),
        Type::Std { name: "HashMap" | "BTreeMap", arguments } => Type::Tuple(Rc::clone(arguments)),
        Type::Std {
            name: "Vec" | "VecDeque" | "HashSet" | "BTreeSet" | "BinaryHeap" | "Option" | "Iterator" | "Result", ..
        } => type_.argument(0),
        // What is ranged over is no range itself.
        range if range.is_range() => match range.argument(0) {
            Type::Unknown => Type::Basic("{integer}"),
            first => first,
        },
        Type::Std { name: ELEMENT, .. } => Type::Unknown,
        Type::Std { .. } => match behind_pointer(type_) {
            Some(inner) => element(&inner),
            None => Type::Unknown,
        },
        Type::External => Type::External,
        _ => Type::Unknown,
    }
}

fn option(inner: Type) -> Type {
    Type::std("Option", [inner])
}

fn iterator_of(inner: Type) -> Type {
    Type::std("Iterator", [inner])
}

/// Returns what a method of a type from outside gives; `given` are the types of its arguments, `returned` that of what the first
/// closure among them gives.
pub(super) fn result(of: &Type, name: &str, given: &[Type], returned: &Type) -> Type {
    let behind = of.behind();
    let first = || behind.argument(0);
    match (behind, name) {
        (Type::Basic("str"), "to_owned" | "to_string" | "repeat" | "replace" | "to_lowercase" | "to_uppercase") => {
            Type::std("String", [])
        }
        (Type::Sequence(inner), "to_owned") => Type::std("Vec", [(**inner).clone()]),
        (Type::Parameter(_) | Type::Traits(_), "to_owned") => Type::Unknown,
        (_, "clone" | "to_owned") if !matches!(behind, Type::Std { .. }) => behind.clone(),
        (_, "len" | "count" | "capacity") if matches!(behind, Type::Std { .. } | Type::Sequence(_) | Type::Basic("str")) => {
            Type::Basic("usize")
        }
        (range, name) if range.is_range() && !matches!(name, "clone" | "by_ref") => {
            let inner = element(range);
            of_iterator(&inner, name, given, returned, &iterator_of(inner.clone()))
        }
        (Type::Std { .. }, "clone" | "by_ref") => behind.clone(),
        (
            Type::Std { name: "Option" | "Result", .. },
            "unwrap" | "expect" | "unwrap_or" | "unwrap_or_else" | "unwrap_or_default" | "unwrap_unchecked",
        ) => first(),
        (Type::Std { name: "Option" | "Result", .. }, "map_or" | "map_or_else") => given
            .first()
            .filter(|type_| type_.is_whole() && !matches!(type_, Type::Function(_)))
            .cloned()
            .unwrap_or(Type::Unknown),
        (
            Type::Std { name: "Option", .. },
            "as_ref" | "as_mut" | "as_deref" | "as_deref_mut" | "cloned" | "copied" | "take" | "filter" | "or" | "or_else"
            | "xor" | "inspect",
        ) => {
            let inner = first();
            let inner = match name {
                "cloned" | "copied" => unreferenced(inner),
                "as_ref" | "as_mut" => inner.reference(),
                "as_deref" | "as_deref_mut" => dereferenced(&inner).reference(),
                _ => inner,
            };
            option(inner)
        }
        (Type::Std { name: "Option", .. }, "get_or_insert" | "get_or_insert_with" | "get_or_insert_default" | "insert") => {
            first().reference()
        }
        (
            Type::Std { name: "Result", .. },
            "as_ref" | "as_mut" | "or" | "or_else" | "map_err" | "inspect" | "inspect_err" | "cloned" | "copied",
        ) => Type::std(
            "Result",
            [match name {
                "as_ref" | "as_mut" => first().reference(),
                "cloned" | "copied" => unreferenced(first()),
                _ => first(),
            }],
        ),
        (Type::Std { name: "Result", .. }, "unwrap_err" | "expect_err") => behind.argument(1),
        (Type::Std { name: "Result", .. }, "ok") => option(first()),
        (Type::Std { name: "Result", .. }, "err") => option(behind.argument(1)),
        (Type::Std { name: "Option", .. }, "ok_or" | "ok_or_else") => Type::std("Result", [first()]),
        (Type::Std { name: "Option", .. }, "map") => option(returned.clone()),
        (Type::Std { name: "Result", .. }, "map") => Type::std("Result", [returned.clone(), behind.argument(1)]),
        (Type::Std { name: "Option" | "Result", .. }, "and_then") => returned.clone(),
        (Type::Std { name: "Option", .. }, "zip") => {
            option(Type::Tuple(Rc::from([first(), given.first().map_or(Type::Unknown, |other| other.argument(0))])))
        }
        (Type::Std { name: "Option" | "Result", .. }, "flatten") => first(),
        (Type::Std { name: "Option", .. }, "transpose") => match first() {
            inner @ Type::Std { name: "Result", .. } => Type::std("Result", [option(inner.argument(0)), inner.argument(1)]),
            _ => Type::Unknown,
        },
        (Type::Std { name: "Result", .. }, "transpose") => match first() {
            inner @ Type::Std { name: "Option", .. } => option(Type::std("Result", [inner.argument(0), behind.argument(1)])),
            _ => Type::Unknown,
        },
        (Type::Std { name: "RefCell", .. }, "borrow" | "borrow_mut" | "get_mut" | "into_inner") => first(),
        (Type::Std { name: "RefCell" | "Cell", .. }, "take" | "replace" | "get") => first(),
        (
            Type::Std { name: "Mutex" | "RwLock", .. },
            "lock" | "read" | "write" | "try_lock" | "try_read" | "try_write" | "get_mut" | "into_inner",
        ) => Type::std("Result", [first()]),
        (Type::Std { name: "OnceCell" | "OnceLock", .. }, "get" | "get_mut" | "take" | "into_inner") => option(first()),
        (Type::Std { name: "OnceCell" | "OnceLock", .. }, "get_or_init") => first(),
        (Type::Std { name: "Weak", .. }, "upgrade") => option(Type::std("Arc", [first()])),
        (Type::Std { name: "Cow", .. }, "into_owned" | "to_mut") => match first() {
            Type::Basic("str") => Type::std("String", []),
            Type::Sequence(inner) => Type::std("Vec", [(*inner).clone()]),
            named @ Type::Named { .. } => named,
            _ => Type::Unknown,
        },
        (Type::Std { name: "Box" | "Rc" | "Arc" | "Pin", .. }, "as_ref" | "as_mut" | "get_mut" | "get_ref") => first(),
        (Type::Std { name: "Iterator", .. }, _) => of_iterator(&first(), name, given, returned, behind),
        (Type::Std { name: "HashMap" | "BTreeMap", arguments }, _) => of_map(behind, arguments, name),
        (Type::Std { name: "HashSet" | "BTreeSet", .. }, "get" | "take" | "first" | "last" | "pop_first" | "pop_last") => {
            option(first())
        }
        (
            Type::Std { name: "HashSet" | "BTreeSet" | "BinaryHeap", .. },
            "iter" | "drain" | "into_iter" | "union" | "difference" | "intersection" | "range",
        ) => iterator_of(first()),
        (Type::Std { name: "BinaryHeap", .. }, "pop" | "peek") => option(first()),
        (Type::Std { name: "VecDeque", .. }, "remove" | "swap_remove_back" | "swap_remove_front" | "get" | "get_mut") => {
            option(first())
        }
        (Type::Std { name: "Vec" | "VecDeque", .. }, "split_off") => behind.clone(),
        (Type::Std { name: "Vec" | "VecDeque", .. }, _) => of_sequence(&first(), name, given),
        (Type::Sequence(inner), _) => of_sequence(inner, name, given),
        (Type::Basic("bool"), "then") => option(returned.clone()),
        (Type::Basic("bool"), "then_some") => option(given.first().cloned().unwrap_or(Type::Unknown)),
        (Type::External, _) => Type::External,
        _ => Type::Unknown,
    }
}

/// Returns what is got of a value that is a reference.
fn unreferenced(type_: Type) -> Type {
    match type_ {
        Type::Reference(inner) => (*inner).clone(),
        other => other,
    }
}

/// Returns what a value is dereferenced to, where that is a pointer of the standard library.
fn dereferenced(type_: &Type) -> Type {
    match type_ {
        Type::Std { name: "String", .. } => Type::Basic("str"),
        Type::Std { name: "Vec", .. } => Type::Sequence(Rc::new(type_.argument(0))),
        other => behind_pointer(other).unwrap_or(Type::Unknown),
    }
}

fn of_sequence(inner: &Type, name: &str, given: &[Type]) -> Type {
    let inner = inner.clone();
    let part_of = |inner: &Type| Type::Sequence(Rc::new(inner.clone())).reference();
    match name {
        "get" | "get_mut" => option(part(&inner, given.first().unwrap_or(&Type::Unknown))),
        "iter" | "iter_mut" => iterator_of(inner.reference()),
        "into_iter" | "drain" | "extract_if" => iterator_of(inner),
        "first" | "last" | "first_mut" | "last_mut" | "pop" | "front" | "back" | "front_mut" | "back_mut" | "pop_front"
        | "pop_back" | "pop_if" => option(inner),
        "remove" | "swap_remove" => inner,
        "as_slice" | "as_mut_slice" => part_of(&inner),
        "to_vec" | "into_vec" => Type::std("Vec", [inner]),
        "into_boxed_slice" => Type::std("Box", [Type::Sequence(Rc::new(inner))]),
        "split_at" | "split_at_mut" => Type::Tuple(Rc::from([part_of(&inner), part_of(&inner)])),
        "windows" | "chunks" | "chunks_exact" | "split" | "rchunks" | "chunks_mut" => iterator_of(Type::Sequence(Rc::new(inner))),
        "split_first" | "split_last" => option(Type::Tuple(Rc::from([inner.clone(), Type::Sequence(Rc::new(inner))]))),
        _ => Type::Unknown,
    }
}

fn of_map(map: &Type, arguments: &Rc<[Type]>, name: &str) -> Type {
    let value = || map.argument(1);
    let key = || map.argument(0);
    match name {
        "get" | "get_mut" | "remove" | "insert" => option(value()),
        "get_key_value" | "remove_entry" | "first_key_value" | "last_key_value" | "pop_first" | "pop_last" => {
            option(Type::Tuple(Rc::clone(arguments)))
        }
        "iter" | "iter_mut" | "into_iter" | "drain" | "range" | "range_mut" => iterator_of(Type::Tuple(Rc::clone(arguments))),
        "keys" | "into_keys" => iterator_of(key()),
        "values" | "values_mut" | "into_values" => iterator_of(value()),
        // An entry: what is got of it is a value.
        "entry" | "and_modify" => map.clone(),
        "or_insert" | "or_insert_with" | "or_default" | "or_insert_with_key" => value(),
        _ => Type::Unknown,
    }
}

fn of_iterator(inner: &Type, name: &str, given: &[Type], returned: &Type, whole: &Type) -> Type {
    let inner = inner.clone();
    match name {
        "filter" | "rev" | "skip" | "take" | "skip_while" | "take_while" | "chain" | "peekable" | "inspect" | "step_by"
        | "fuse" | "cycle" | "into_iter" | "iter" => whole.clone(),
        "cloned" | "copied" => iterator_of(unreferenced(inner)),
        "position" | "rposition" => option(Type::Basic("usize")),
        "next" | "last" | "nth" | "next_back" | "find" | "max" | "min" | "max_by_key" | "min_by_key" | "max_by" | "min_by"
        | "peek" | "next_if" | "next_if_eq" | "reduce" | "peek_mut" => option(inner),
        "enumerate" => iterator_of(Type::Tuple(Rc::from([Type::Basic("usize"), inner]))),
        "zip" => iterator_of(Type::Tuple(Rc::from([inner, given.first().map_or(Type::Unknown, element)]))),
        "map" => iterator_of(returned.clone()),
        "filter_map" | "flat_map" | "map_while" | "scan" => iterator_of(element(returned)),
        "find_map" => returned.clone(),
        "flatten" => iterator_of(element(&inner)),
        "fold" => given.first().cloned().unwrap_or(Type::Unknown),
        _ => Type::Unknown,
    }
}

/// Returns what a function of a type from outside gives (`Rc::new(x)`, `Vec::new()`).
pub(super) fn associated(of: &Type, name: &str, given: &[Type]) -> Type {
    let first = given.first().cloned().unwrap_or(Type::Unknown);
    match (of, name) {
        (Type::Std { name: "Rc" | "Arc", .. }, "clone") => first.behind().clone(),
        (
            Type::Std {
                name:
                    own @ ("Box" | "Rc" | "Arc" | "Mutex" | "RwLock" | "RefCell" | "Cell" | "Pin" | "Reverse" | "ManuallyDrop"
                    | "LazyLock" | "LazyCell"),
                arguments,
            },
            "new",
        ) if arguments.is_empty() => match (own, first) {
            (&"LazyLock" | &"LazyCell", _) => Type::std(own, []),
            (own, first) => Type::std(own, [first]),
        },
        // What is made of a value may be of another form (`Rc<str>`).
        (Type::Std { name: own, .. }, "from") if POINTERS.contains(own) => of.clone(),
        (Type::Std { .. }, "new" | "with_capacity" | "default" | "from" | "from_iter") => of.clone(),
        // What a trait of the standard library that was derived gives.
        (Type::Named { .. }, "default" | "from") => of.clone(),
        (Type::Named { .. }, "try_from" | "from_str") => Type::std("Result", [of.clone()]),
        (Type::External, _) => Type::External,
        _ => Type::Unknown,
    }
}

/// Returns what a function from outside gives.
pub(super) fn called(path: &str, given: &[Type]) -> Type {
    let first = || given.first().cloned().unwrap_or(Type::Unknown);
    match path {
        "Some" => option(first()),
        "Ok" => Type::std("Result", [first()]),
        "Err" => Type::std("Result", [Type::Unknown, first()]),
        "std::mem::take" | "std::mem::replace" | "mem::take" | "mem::replace" => first().behind().clone(),
        _ => Type::External,
    }
}

/// Returns what a closure is called with that a method of a type from outside is given as its argument `argument`.
pub(super) fn closure_parameter(of: &Type, name: &str, argument: u8, parameter: u8, given_first: &Type) -> Type {
    let behind = of.behind();
    let first = || behind.argument(0);
    match (behind, name) {
        (Type::Std { name: "Result", .. }, "map_err" | "unwrap_or_else" | "or_else" | "inspect_err" | "is_err_and") => {
            behind.argument(1)
        }
        (Type::Std { name: "Option" | "Result", .. }, "map_or_else") if argument == 0 => behind.argument(1),
        (Type::Std { name: "Option" | "Result", .. }, _) if parameter == 0 => first(),
        (Type::Std { name: "Iterator", .. }, "fold" | "try_fold") => {
            if parameter == 0 {
                given_first.clone()
            } else {
                first()
            }
        }
        (Type::Std { name: "Iterator", .. }, "scan") => {
            if parameter == 0 {
                given_first.clone()
            } else {
                first()
            }
        }
        (Type::Std { name: "Iterator", .. }, "max_by" | "min_by" | "reduce") => first(),
        (Type::Std { name: "Iterator", .. }, _) if parameter == 0 => first(),
        (Type::Std { name: "Vec" | "VecDeque", .. }, _) => first(),
        (Type::Sequence(inner), _) => (**inner).clone(),
        (Type::Std { name: "HashMap" | "BTreeMap", .. }, "and_modify") => behind.argument(1),
        (Type::Std { name: "HashMap" | "BTreeMap", .. }, "retain") => behind.argument(parameter.into()),
        (Type::Std { name: "HashSet" | "BTreeSet", .. }, _) => first(),
        _ => Type::Unknown,
    }
}
