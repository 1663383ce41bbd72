//! What extraction finds in one file, and the rules whose places matter. The rules themselves are scenario files, right and wrong
//! cases both.

use super::Go;
use crate::languages::LanguageSupport;
use crate::languages::fixture;
use crate::model::{EdgeKind, FileFacts, ParseStatus};

fn facts(source: &str) -> FileFacts {
    Go.extract(source, "go", &mut || false).expect("nothing stops it")
}

/// Checks the definitions of a file.
#[track_caller]
fn check_definitions(source: &str, expected: &str) {
    fixture::check_definitions(&facts(source), expected);
}

/// Checks the edges of a tree whose name is one of `names`.
#[track_caller]
fn check(tree: &str, names: &str, expected: &str) {
    fixture::check(&Go, &format!("//- go.mod\nmodule m\n{tree}"), names, expected);
}

#[test]
fn definitions_of_every_kind() {
    check_definitions(
        "package a

func (t *T) Early() {}

// T is documented.
type T struct {
	// Field comment.
	Field int
}

type (
	I interface {
		// M does.
		M(x int) (string, error)
		I2
	}
	A = T
	F func(a int,
		b int) T
	G[K comparable, V any] map[K]V
)

const X, Y = 1, 2

const (
	Zero Level = iota
	One
	_
)

var v, w = f()
var _ I = T{}

func f() (int, int) { return 0, 0 }
func init() {}
func init() {}
func (T) Late() { type local struct{}; var inner = 1; const c = 1 }
func (o Other) Away() {}
func (s *S[T]) Generic(x T) {}
",
        "struct T#0 6-9 6:5 in -: type T struct
        method T.Early#0 3-3 3:12 in T: func (t *T) Early()
        interface I#0 12-16 12:1 in -: type I interface
        method I.M#0 14-14 14:2 in I: M(x int) (string, error)
        type A#0 17-17 17:1 in -: type A = T
        type F#0 18-19 18:1 in -: type F func(a int, b int) T
        type G#0 20-20 20:1 in -: type G[K comparable, V any] map[K]V
        constant X#0 23-23 23:6 in -: const X, Y = 1, 2
        constant Y#0 23-23 23:9 in -: const X, Y = 1, 2
        constant Zero#0 26-26 26:1 in -: const Zero Level = iota
        constant One#0 27-27 27:1 in -: const One
        variable v#0 31-31 31:4 in -: var v, w = f()
        variable w#0 31-31 31:7 in -: var v, w = f()
        function f#0 34-34 34:5 in -: func f() (int, int)
        function init#0 35-35 35:5 in -: func init()
        function init#1 36-36 36:5 in -: func init()
        method T.Late#0 37-37 37:9 in T: func (T) Late()
        method Other.Away#0 38-38 38:15 in -: func (o Other) Away()
        method S.Generic#0 39-39 39:15 in -: func (s *S[T]) Generic(x T)",
    );
}

#[test]
fn documentation() {
    let found = facts(
        "// Package a does.\npackage a\n\n// F does\n//\n// much.\n//go:noinline\nfunc F() {}\n\n// far away\n\nfunc G() {}\n\n/*\nH too.\n*/\nfunc H() {}\n\n\
         // of the group\nconst (\n\t// One of all.\n\tA = 1\n\tB = 2 // behind\n\tC = 3\n)\n\n// T is.\ntype T interface {\n\t// M is.\n\tM()\n}\n",
    );
    let shown: Vec<_> = found.definitions.iter().map(|one| (one.name.as_ref(), one.docstring.as_deref())).collect();
    let expected = [
        ("F", Some("F does\n\nmuch.")),
        ("G", None),
        ("H", Some("H too.")),
        ("A", Some("One of all.")),
        ("B", None),
        ("C", None),
        ("T", Some("T is.")),
        ("M", Some("M is.")),
    ];
    assert_eq!(shown, expected);
}

#[test]
fn places_are_those_of_name_tokens() {
    check(
        "//- a.go\npackage a\n\nimport x \"m/sub/ü\"\n\nfunc f() {\n\tx.\n\t\tGet(\"é\"); f()\n}\n//- sub/ü/b.go\r\npackage b\r\n\r\nfunc Get() {}\r\n",
        "Get ü f",
        "a.go:3:16 ü imports sub/ü/b.go resolved_static go_import
         a.go:7:2 Get calls sub/ü/b.go:Get resolved_static go_import
         a.go:7:13 f calls a.go:f resolved_static go_package",
    );
}

#[test]
fn identifiers_beyond_ascii() {
    check(
        "//- a.go\npackage a\n\nfunc Größe() {}\nfunc 世界() { Größe(); 世界() }\n",
        "Größe 世界",
        "a.go:4:16 Größe calls a.go:Größe resolved_static go_package
         a.go:4:27 世界 calls a.go:世界 resolved_static go_package",
    );
}

#[test]
fn references_belong_to_the_innermost_definition() {
    let found = facts(
        "package a\n\nvar v = f()\n\nfunc f() T { return g() }\n\ntype I interface{ M(T) }\n\nfunc (t T) m() { func() { g() }() }\n",
    );
    let source = |name: &str| {
        let mut sources: Vec<&str> = Vec::new();
        for reference in &found.body.references {
            let crate::model::facts::Subject::Name(crate::model::facts::Use::Free(id)) = reference.subject else { continue };
            if found.body.outline.names.get(crate::model::facts::NameId(id.index() as u32)) == name {
                sources.push(reference.source().map_or("file", |index| found.definitions[index as usize].key.qualified.as_ref()));
            }
        }
        sources
    };
    assert_eq!(source("f"), ["file"]);
    assert_eq!(source("g"), ["f", "T.m"]);
    assert_eq!(source("T"), ["f", "I.M", "T.m"]);
}

#[test]
fn broken_source_keeps_what_stands_outside() {
    let found = facts("package a\n\nfunc Whole() {}\n\nfunc torn( {\n\nfunc After() {}\n");
    assert_eq!(found.parse, ParseStatus::Partial);
    assert!(found.definitions.iter().any(|definition| definition.name.as_ref() == "Whole"));
}

#[test]
fn gaps_of_the_grammar_are_repaired() {
    check_definitions(
        "package a

var ( a = 1; b = \"é)\" ); const (C = iota; D); func f() {}
var (e int) // of e
const ( F = 1 /* ) */ ); var (g int); func h() {}
var (
	i = func() int { var (x int; y = ')'); l: ; return x + y }()
	j = 2)
func k() {}
",
        "variable a#0 3-3 3:6 in -: var a = 1
        variable b#0 3-3 3:13 in -: var b = \"é)\"
        constant C#0 3-3 3:33 in -: const C = iota
        constant D#0 3-3 3:43 in -: const D
        function f#0 3-3 3:52 in -: func f()
        variable e#0 4-4 4:5 in -: var e int
        constant F#0 5-5 5:8 in -: const F = 1
        variable g#0 5-5 5:30 in -: var g int
        function h#0 5-5 5:43 in -: func h()
        variable i#0 7-7 7:1 in -: var i = func() int { var (x int; y = ')'); l: ; return x + y }()
        variable j#0 8-8 8:1 in -: var j = 2
        function k#0 9-9 9:5 in -: func k()",
    );
    let body = |body: &str| facts(&format!("package a\nfunc f() {{\n\t{body}\n}}\n")).parse;
    for whole in [
        "var ( a = 1; b = 2 )",
        "const (a = `)`; b)",
        "var (a int /*\n*/ )",
        "a: ;",
        "a:",
        "a: ; x()",
        "a:\n\t; x()",
        "a: ; b: ; x(); c: ;",
        "a: b: ;",
        "a:\n\tb:",
        "for { a: b: }",
        "switch { case x: a: b: case y: a: ; default: }",
        "x();; y()\n\t;z()",
        "{; x() }",
        "for ;; { x();; y() }\n\ta: ; x()",
        "for i := 0; ; i++ { a: ; if x := y; x {}; z() }",
        "for range []int{1} { }\n\ta: ; switch x := y(); { default: ; }",
        "x = a[1:b:c]; y = T{a: b}; a: ; z()",
    ] {
        assert_eq!(body(whole), ParseStatus::Ok, "{whole}");
    }
    for torn in [
        "var ( a = 1; b = )",
        "var ( a = 1, b = 2 )",
        "var ( a int",
        "a: ; x(",
        "a: ; )",
        "f(a; b)",
        "x := struct{;}{}",
        "var (;)",
    ] {
        assert_eq!(body(torn), ParseStatus::Partial, "{torn}");
    }
    let many = format!("package a\n{}", "var (a int); ".repeat(10_000));
    assert!(facts(&many).definitions.len() >= 2_000);
}

#[test]
fn nothing_makes_extraction_fail() {
    for source in [
        "",
        "package",
        "import \"\"\n",
        "package a\nimport `x`\nfunc (",
        "\u{feff}package a\nfunc F() {}\n",
        "package a\ntype T struct{ T; *T; m.T }\nfunc (T) T() (T T) { T: goto T; return T }\n",
        "package a\nvar _, x, _ = <-<-y, *&*z, [...]T{1: {2: {}}}\n",
        "package a\nfunc f[T interface{ ~[]E }, E any](x T, _ ...E) { switch y := any(x).(type) { case nil: _ = y } }\n",
        "func main() { x := 1 }\nx = 2\n",
        "package a\nvar (a int) \"\\",
        "package a\nvar (é int) ) } '\\",
        "var (a) /*",
    ] {
        facts(source);
    }
    let deep = format!("package a\nvar x = {}1{}\n", "(".repeat(20_000), ")".repeat(20_000));
    assert!(facts(&deep).definitions.len() <= 1);
    let long = format!("package a\nvar x = {}1\n", "f(a).b[c] + ".repeat(20_000));
    assert_eq!(facts(&long).definitions.len(), 1);
    let chain = format!("package a\nfunc f() {{ a{} }}\n", ".b()".repeat(20_000));
    let calls = facts(&chain).body.references.iter().filter(|reference| reference.kind == EdgeKind::Calls).count();
    assert_eq!(calls, 20_000);
}

#[test]
fn surfaces_know_nothing_of_bodies() {
    let surface = |body: &str| facts(&format!("package a\n\n// doc\nfunc F(x T) *T {{ {body} }}\n\nvar v = G(1)\n")).surface;
    assert_eq!(surface("return nil"), surface("y := x.z(\"more\"); type L struct{ T }; return func() *T { return y }()"));
    assert_ne!(surface(""), facts("package a\n\nfunc F(x T) T {}\n\nvar v = G(1)\n").surface);
}

#[test]
fn a_test_belongs_to_what_it_is_named_like() {
    let belongs = |test: &str, source: &str| {
        let path = |text: &str| crate::model::RepoPath::parse(text).expect("valid");
        Go.is_test_of(&path(test), &path(source))
    };
    assert!(belongs("a/x_test.go", "a/x.go") && belongs("x_linux_test.go", "x_linux.go") && belongs("x_linux_test.go", "x.go"));
    assert!(!belongs("a/x_test.go", "b/x.go") && !belongs("x_test.go", "xy.go") && !belongs("xy_test.go", "x.go"));
    assert!(!belongs("x.go", "x.go") && !belongs("x_test_test.go", "x_test.go") && !belongs("_test.go", "x.go"));
}
