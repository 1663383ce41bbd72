//! What the standard library's generic types and functions give, as far as it can be said without running them.
//!
//! Must not know the repository: whoever asks has made sure that a name is the library's. Invariant: nothing here is said of a name that
//! another library gives.

/// What a generic type of the library makes of its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Generic {
    /// The type that its first argument is.
    First,
    /// The type that its last argument is, once awaited.
    Awaited,
    Union,
    /// The class itself.
    Class,
    /// Gives its first argument when iterated, subscripted or entered.
    Elements,
    Tuple,
    Mapping,
    Callable,
    /// Says something about a class: its parameters, or nothing.
    Root,
    /// A type of which nothing is followed.
    Other,
}

/// What a function of the library gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Function {
    /// The elements of all its arguments.
    Iterates,
    /// The elements of its last argument.
    IteratesLast,
    Enumerates,
    Zips,
    /// One element of its argument, or one of its arguments.
    Picks,
    /// What its first argument is.
    Same,
    /// Something that gives its first argument when called.
    Refers,
    /// The elements that its first argument makes.
    Maps,
    Mapping,
    /// A mapping to what its first argument makes.
    DefaultMapping,
    Class,
    Casts,
    /// What entering gives is its first argument.
    Enters,
    /// All its arguments, awaited.
    Gathers,
    TypeVariable,
    NewType,
}

/// Returns what a generic type of the library makes of its arguments.
pub(super) fn generic(name: &str) -> Option<Generic> {
    Some(match name {
        "Optional" | "Annotated" | "ClassVar" | "Final" | "Required" | "NotRequired" | "ReadOnly" | "InitVar" | "TypeGuard"
        | "Unpack" => Generic::First,
        "Awaitable" | "Coroutine" | "Future" | "Task" => Generic::Awaited,
        "Union" => Generic::Union,
        "Type" | "type" => Generic::Class,
        "List"
        | "list"
        | "Sequence"
        | "MutableSequence"
        | "Iterable"
        | "Iterator"
        | "Collection"
        | "Container"
        | "Reversible"
        | "Set"
        | "set"
        | "FrozenSet"
        | "frozenset"
        | "AbstractSet"
        | "MutableSet"
        | "Deque"
        | "deque"
        | "Generator"
        | "AsyncIterator"
        | "AsyncIterable"
        | "AsyncGenerator"
        | "KeysView"
        | "ValuesView"
        | "ContextManager"
        | "AbstractContextManager"
        | "AsyncContextManager"
        | "AbstractAsyncContextManager"
        | "UserList"
        | "WeakSet"
        | "Queue"
        | "SimpleQueue"
        | "LifoQueue"
        | "PriorityQueue" => Generic::Elements,
        "Tuple" | "tuple" => Generic::Tuple,
        "Dict"
        | "dict"
        | "Mapping"
        | "MutableMapping"
        | "DefaultDict"
        | "defaultdict"
        | "OrderedDict"
        | "UserDict"
        | "WeakKeyDictionary"
        | "WeakValueDictionary"
        | "ChainMap"
        | "ItemsView" => Generic::Mapping,
        "Callable" => Generic::Callable,
        "Generic" | "Protocol" | "object" | "ABC" => Generic::Root,
        "Literal" | "Any" | "Counter" | "None" | "Concatenate" | "ParamSpec" => Generic::Other,
        _ => return None,
    })
}

/// Returns what a function of the library gives.
pub(super) fn function(name: &str) -> Option<Function> {
    Some(match name {
        "list" | "tuple" | "set" | "frozenset" | "sorted" | "reversed" | "iter" | "aiter" | "chain" | "deque" | "islice"
        | "cycle" => Function::Iterates,
        "filter" | "takewhile" | "dropwhile" | "filterfalse" => Function::IteratesLast,
        "enumerate" => Function::Enumerates,
        "zip" | "zip_longest" => Function::Zips,
        "next" | "anext" | "min" | "max" => Function::Picks,
        "copy" | "deepcopy" | "replace" | "proxy" | "partial" | "create_task" | "ensure_future" | "wait_for" | "shield"
        | "run" | "wraps" | "lru_cache" | "cache" => Function::Same,
        "ref" => Function::Refers,
        "map" => Function::Maps,
        "dict" | "OrderedDict" => Function::Mapping,
        "defaultdict" => Function::DefaultMapping,
        "type" => Function::Class,
        "cast" => Function::Casts,
        "closing" | "aclosing" | "nullcontext" => Function::Enters,
        "gather" => Function::Gathers,
        "TypeVar" | "ParamSpec" | "TypeVarTuple" => Function::TypeVariable,
        "NewType" => Function::NewType,
        _ => return None,
    })
}

/// Returns whether a function of that name gives what depends on its arguments.
pub(super) fn passes_on(name: &str) -> bool {
    function(name).is_some()
}

/// Returns whether a type of that name is the library's or the language's, when nothing else binds it.
pub(super) fn is_type(name: &str) -> bool {
    generic(name).is_some() || matches!(name, "str" | "bytes" | "int" | "float" | "bool" | "complex")
}

/// Returns whether types and functions of this module are those that are described here.
pub(super) fn describes(module: &str) -> bool {
    matches!(
        module.split('.').next().unwrap_or(""),
        "typing"
            | "typing_extensions"
            | "collections"
            | "contextlib"
            | "builtins"
            | "functools"
            | "itertools"
            | "types"
            | "asyncio"
            | "abc"
            | "copy"
            | "dataclasses"
            | "weakref"
            | "queue"
            | "enum"
            | "_typeshed"
    )
}
