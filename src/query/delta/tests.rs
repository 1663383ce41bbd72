//! What changed between two versions of one file, written as source: which definitions are gone, new or other than they were.

use super::*;
use crate::languages::REGISTRY;
use crate::model::{DefinitionKey, Edge, EdgeKind, FileEdges, RepoPath, Resolution, Target};
use crate::query::tests::graph::{self, Written};

/// Where the file stands, and what the names of its uses are bound to.
const PATH: &str = "a.py";

/// Publishes `source` as the only version of a file, with `other.py` beside it, and binds each line `name()` to the definition that
/// `bound` names there.
fn with_version(source: Option<&str>, bound: &str, check: impl FnOnce(&Generation)) {
    let extract = |source: &str| {
        let python = REGISTRY.iter().find(|language| language.name() == "python").expect("registered");
        python.extract(source, "python", &mut || false).expect("nobody stops it")
    };
    let other = "def one():\n    pass\ndef two():\n    pass\n";
    let mut files = Vec::new();
    if let Some(source) = source {
        let facts = extract(source);
        let mut edges = FileEdges::default();
        for (index, (start, line)) in graph::lines(source).into_iter().enumerate() {
            if line.trim() != "use()" {
                continue;
            }
            let inside = |definition: &&crate::model::Definition| {
                (definition.span.start as usize..definition.span.end as usize).contains(&(start + line.len() - 2))
            };
            // Definitions are in source order, so that the innermost comes last.
            let source_index = facts.definitions.iter().rposition(|definition| inside(&definition));
            edges.edges.push(Edge {
                kind: EdgeKind::Calls,
                source: source_index.map(|index| index as u32),
                target: Target {
                    file: RepoPath::parse("other.py").expect("valid"),
                    definition: Some(DefinitionKey { qualified: Arc::from(bound), ordinal: 0 }),
                },
                resolution: Resolution::ResolvedStatic,
                rule: "explicit_import",
                place: graph::place(source, index as u32 + 1, "use"),
                name: Arc::from("use"),
            });
        }
        files.push(Written { path: PATH.to_owned(), source: source.to_owned(), facts, edges });
    }
    let (path, source) = ("other.py".to_owned(), other.to_owned());
    files.push(Written { path, source, facts: extract(other), edges: FileEdges::default() });
    graph::publish(files, check);
}

fn outline(delta: &Delta) -> String {
    let name = |node: &NodeRow| if node.kind == SymbolKind::File { "file".to_owned() } else { node.qualified_name.to_string() };
    let names = |nodes: &[NodeRow]| nodes.iter().map(name).collect::<Vec<_>>().join(" ");
    let changed: Vec<NodeRow> = delta.changed.iter().map(|(_, new)| new.clone()).collect();
    let parts = [("gone", names(&delta.gone)), ("new", names(&delta.new)), ("changed", names(&changed))];
    let parts = parts.into_iter().filter(|(_, names)| !names.is_empty());
    parts.map(|(word, names)| format!("{word}: {names}")).collect::<Vec<_>>().join("; ")
}

fn check(before: Option<&str>, after: Option<&str>, expected: &str) {
    check_bound((before, "one"), (after, "one"), expected);
}

fn check_bound(before: (Option<&str>, &str), after: (Option<&str>, &str), expected: &str) {
    with_version(before.0, before.1, |older| {
        with_version(after.0, after.1, |newer| {
            let mut delta = Delta::default();
            delta.compare(older, newer, PATH).expect("readable");
            assert_eq!(outline(&delta), expected, "{before:?} to {after:?}");
        });
    });
}

#[test]
fn whole_files_come_and_go() {
    check(None, Some("def f():\n    pass\n"), "new: file f");
    check(Some("def f():\n    pass\n"), None, "gone: file f");
    check(Some(""), Some(""), "");
}

#[test]
fn only_what_says_something_else_has_changed() {
    let before =
        "import os\nclass C:\n    def m(self):\n        return 1\n    def n(self):\n        return 2\ndef f():\n    return 3\n";
    let check = |from: &str, to: &str, expected: &str| check(Some(before), Some(&before.replacen(from, to, 1)), expected);
    check("return 1", "return 11", "changed: C.m");
    check("return 3", "return 33", "changed: f");
    check("import os", "import sys", "changed: file");
    check("class C:\n", "class C:\n    print(1)\n", "changed: C");
    check("def n", "def k", "gone: C.n; new: C.k");
    check("def f():\n    return 3\n", "", "gone: f");
    // What only moved says the same.
    check("import os\n", "import os\n\n\n", "");
    check("return 1\n", "return 1  \n\n", "");
    check("return 1\n", "return 1\r\n", "");
    // A leading blank is no trailing one.
    check("        return 1", "          return 1", "changed: C.m");
}

#[test]
fn definitions_of_one_name_are_told_apart_by_their_order() {
    let two = "def f():\n    return 1\ndef f():\n    return 2\n";
    check(Some(two), Some(&two.replace("return 2", "return 3")), "changed: f");
    check(Some(two), Some("def f():\n    return 1\n"), "gone: f");
    check(Some("def f():\n    return 1\n"), Some(two), "new: f");
}

#[test]
fn a_name_that_is_bound_to_something_else_is_a_change() {
    let source = Some("def f():\n    use()\ndef g():\n    pass\n");
    check_bound((source, "one"), (source, "two"), "changed: f");
    check_bound((source, "one"), (source, "one"), "");
    let top = Some("use()\ndef g():\n    pass\n");
    check_bound((top, "one"), (top, "two"), "changed: file");
}
