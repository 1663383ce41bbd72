//! What extraction finds to be defined in a file, each rule shown on the smallest snippet.
//!
//! Must not know other files. Invariant: what is expected names every definition of the snippet.

use std::fmt::Write;

use crate::languages::LanguageSupport;
use crate::languages::python::Python;
use crate::model::FileFacts;

fn facts(source: &str) -> FileFacts {
    Python.extract(source, "python", &mut || false).expect("nothing stops it")
}

/// Checks the definitions of a file: kind, qualified name, ordinal, lines.
#[track_caller]
fn check_definitions(source: &str, expected: &str) {
    let mut found = String::new();
    for definition in &facts(source).definitions {
        let key = &definition.key;
        let (kind, qualified, ordinal) = (definition.kind.as_str(), &key.qualified, key.ordinal);
        let place = definition.name_place;
        writeln!(
            found,
            "{kind} {qualified}#{ordinal} {}-{} name {}:{}",
            definition.start_line, definition.end_line, place.line, place.column
        )
        .expect("a string takes all");
    }
    let expected: String =
        expected.lines().map(str::trim).filter(|line| !line.is_empty()).map(|line| format!("{line}\n")).collect();
    assert!(found == expected, "found:\n{found}\nexpected:\n{expected}");
}

#[test]
fn definitions_of_every_kind() {
    check_definitions(
        r#"
LIMIT = 3
count = 0
count = 1
double = lambda x: x
def outer():
    local = 1
    def inner(): pass
    return inner
@decorated(1)
class Box[T](Base):
    """Doc."""
    size: int = 0
    pick = lambda self: self
    async def get(self): pass
    class Lid: pass
for index in []: pass
type Alias = int
"#,
        "
        constant LIMIT#0 2-2 name 2:0
        variable count#0 3-3 name 3:0
        function double#0 5-5 name 5:0
        function outer#0 6-9 name 6:4
        function outer.inner#0 8-8 name 8:8
        class Box#0 10-16 name 11:6
        variable Box.size#0 13-13 name 13:4
        method Box.pick#0 14-14 name 14:4
        method Box.get#0 15-15 name 15:14
        class Box.Lid#0 16-16 name 16:10
        variable index#0 17-17 name 17:4
        variable Alias#0 18-18 name 18:5
        ",
    );
}

#[test]
fn overloads_and_accessors_are_one_definition() {
    check_definitions(
        "
from typing import overload
@overload
def f(x: int) -> int: ...
@overload
def f(x: str) -> str: ...
def f(x): return x
class C:
    @property
    def size(self): return 1
    @size.setter
    def size(self, value): pass
    @size.deleter
    def size(self): pass
def f(): pass
",
        "
        function f#0 3-7 name 7:4
        class C#0 8-14 name 8:6
        method C.size#0 9-14 name 10:8
        function f#1 15-15 name 15:4
        ",
    );
}

#[test]
fn signatures_and_docstrings_are_folded() {
    let facts = facts("def f(\n    a: int = 1,  # first\n    *rest,\n) -> str:\n    '''One.\n\n      Two.\n    '''\n");
    let definition = &facts.definitions[0];
    assert_eq!(definition.signature.as_deref(), Some("def f(a: int = 1, *rest,) -> str"));
    assert_eq!(definition.docstring.as_deref(), Some("One.\n\nTwo."));
}
