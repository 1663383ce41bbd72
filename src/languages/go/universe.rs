//! Names that the language itself gives.
//!
//! Must not know the repository. Invariant: the tables are sorted.

/// What a predeclared name is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Predeclared {
    Type,
    Function,
    Value,
}

const TYPES: [&str; 22] = [
    "any",
    "bool",
    "byte",
    "comparable",
    "complex128",
    "complex64",
    "error",
    "float32",
    "float64",
    "int",
    "int16",
    "int32",
    "int64",
    "int8",
    "rune",
    "string",
    "uint",
    "uint16",
    "uint32",
    "uint64",
    "uint8",
    "uintptr",
];
const FUNCTIONS: [&str; 18] = [
    "append", "cap", "clear", "close", "complex", "copy", "delete", "imag", "len", "make", "max", "min", "new", "panic", "print",
    "println", "real", "recover",
];
const VALUES: [&str; 4] = ["false", "iota", "nil", "true"];

/// Returns what a name means when no scope of the program binds it, and the name.
pub(super) fn predeclared(name: &str) -> Option<(Predeclared, &'static str)> {
    let within =
        |table: &'static [&'static str], kind: Predeclared| table.binary_search(&name).ok().map(|index| (kind, table[index]));
    within(&TYPES, Predeclared::Type)
        .or_else(|| within(&FUNCTIONS, Predeclared::Function))
        .or_else(|| within(&VALUES, Predeclared::Value))
}

/// Returns whether other packages may use a name.
pub(super) fn is_exported(name: &str) -> bool {
    name.chars().next().is_some_and(char::is_uppercase)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_sorted() {
        assert!(TYPES.is_sorted() && FUNCTIONS.is_sorted() && VALUES.is_sorted());
    }

    #[test]
    fn names() {
        assert_eq!(predeclared("error"), Some((Predeclared::Type, "error")));
        assert_eq!(predeclared("append"), Some((Predeclared::Function, "append")));
        assert_eq!(predeclared("fmt"), None);
        assert!(is_exported("Ünder") && !is_exported("under") && !is_exported("_X"));
    }
}
