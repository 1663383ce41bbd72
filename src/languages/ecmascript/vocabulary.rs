//! Names that the language and its usual surroundings give, so that a free name is known to lie outside the repository.
//!
//! Must not decide alone: a script of the repository may declare the same name. Invariant: the list is sorted.

/// How a generic type of the language carries its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Generic {
    /// Gives elements of the argument of this number when iterated.
    Elements(usize),
    /// A promise of its argument.
    Promise,
    /// Has the members of its first argument.
    Same,
    /// What a function, or a constructor, gives.
    Result,
    /// Something else of the language.
    Other,
}

/// Returns what is known of a generic type of the language.
pub(super) fn generic(name: &str) -> Generic {
    match name {
        "Array"
        | "ReadonlyArray"
        | "Set"
        | "ReadonlySet"
        | "Iterable"
        | "Iterator"
        | "IterableIterator"
        | "Generator"
        | "AsyncIterable"
        | "AsyncGenerator"
        | "AsyncIterableIterator"
        | "ArrayLike"
        | "WeakSet" => Generic::Elements(0),
        "Map" | "ReadonlyMap" | "Record" | "WeakMap" => Generic::Elements(1),
        "Promise" | "PromiseLike" => Generic::Promise,
        "Partial" | "Required" | "Readonly" | "NonNullable" | "Awaited" | "Pick" | "Omit" | "Exclude" | "Extract" | "NoInfer"
        | "WeakRef" => Generic::Same,
        "ReturnType" | "InstanceType" => Generic::Result,
        _ => Generic::Other,
    }
}

/// Returns whether a name is one that the language or a usual environment defines.
pub(super) fn is_global(name: &str) -> bool {
    GLOBALS.binary_search(&name).is_ok()
}

const GLOBALS: &[&str] = &[
    "AbortController",
    "AbortSignal",
    "AggregateError",
    "Array",
    "ArrayBuffer",
    "AsyncGenerator",
    "AsyncIterable",
    "Atomics",
    "Awaited",
    "BigInt",
    "Blob",
    "Boolean",
    "Buffer",
    "CustomEvent",
    "DataView",
    "Date",
    "Document",
    "Element",
    "Error",
    "EvalError",
    "Event",
    "EventTarget",
    "Exclude",
    "Extract",
    "File",
    "FormData",
    "Function",
    "Generator",
    "HTMLElement",
    "Headers",
    "Infinity",
    "InstanceType",
    "Int32Array",
    "Intl",
    "Iterable",
    "IterableIterator",
    "Iterator",
    "JSON",
    "JSX",
    "Map",
    "Math",
    "MutationObserver",
    "NaN",
    "Node",
    "NonNullable",
    "Number",
    "Object",
    "Omit",
    "Parameters",
    "Partial",
    "Pick",
    "Promise",
    "PromiseLike",
    "PropertyKey",
    "Proxy",
    "RangeError",
    "React",
    "Readonly",
    "ReadonlyArray",
    "ReadonlyMap",
    "ReadonlySet",
    "Record",
    "ReferenceError",
    "Reflect",
    "RegExp",
    "Request",
    "Required",
    "Response",
    "ReturnType",
    "Set",
    "String",
    "Symbol",
    "SyntaxError",
    "TextDecoder",
    "TextEncoder",
    "TypeError",
    "URIError",
    "URL",
    "URLSearchParams",
    "Uint8Array",
    "WeakMap",
    "WeakRef",
    "WeakSet",
    "WebSocket",
    "Window",
    "Worker",
    "XMLHttpRequest",
    "__dirname",
    "__filename",
    "afterAll",
    "afterEach",
    "alert",
    "arguments",
    "atob",
    "beforeAll",
    "beforeEach",
    "btoa",
    "cancelAnimationFrame",
    "clearInterval",
    "clearTimeout",
    "console",
    "const",
    "crypto",
    "decodeURIComponent",
    "describe",
    "document",
    "encodeURIComponent",
    "escape",
    "eval",
    "expect",
    "exports",
    "fetch",
    "global",
    "globalThis",
    "isFinite",
    "isNaN",
    "it",
    "jest",
    "localStorage",
    "location",
    "module",
    "navigator",
    "parseFloat",
    "parseInt",
    "performance",
    "process",
    "queueMicrotask",
    "requestAnimationFrame",
    "require",
    "self",
    "sessionStorage",
    "setImmediate",
    "setInterval",
    "setTimeout",
    "structuredClone",
    "test",
    "undefined",
    "unescape",
    "vi",
    "window",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_sorted() {
        assert!(GLOBALS.is_sorted());
        assert!(is_global("Promise") && !is_global("promise"));
    }
}
