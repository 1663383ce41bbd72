//! What extraction finds in one file, and the rules whose places matter. The rules themselves are scenario files, right and wrong
//! cases both.

use super::Rust;
use crate::languages::LanguageSupport;
use crate::languages::fixture;
use crate::model::facts::Visibility;
use crate::model::{EdgeKind, FileFacts, ParseStatus, RepoPath, SymbolKind};

fn facts(source: &str) -> FileFacts {
    Rust.extract(source, "rust", &mut || false).expect("nothing stops it")
}

/// Checks the definitions of a file.
#[track_caller]
fn check_definitions(source: &str, expected: &str) {
    fixture::check_definitions(&facts(source), expected);
}

/// Checks the edges of a tree whose name is one of `names`.
#[track_caller]
fn check(tree: &str, names: &str, expected: &str) {
    fixture::check(&Rust, &format!("//- Cargo.toml\n[package]\nname = \"a-b\"\n{tree}"), names, expected);
}

#[test]
fn definitions_of_every_kind() {
    check_definitions(
        "impl T { fn early(&self) {} }

/// T is documented.
#[derive(Clone)]
pub struct T {
    field: u8,
}
pub(crate) enum E { A(u8), B }
union U { a: u8 }
type Alias<X> = Vec<X>;
pub const ONE: u8 = 1;
static mut COUNT: u8 = 0;
const _: () = ();
#[macro_export]
macro_rules! make { () => {} }

pub trait Shape: Clone {
    type Side;
    const SIDES: u8;
    fn area(&self) -> u8;
    fn twice(&self) -> u8 {
        fn inner() {}
        self.area()
    }
}
impl Shape for other::Away {
    type Side = u8;
    const SIDES: u8 = 4;
    fn area(&self) -> u8 { 1 }
}
impl<X> Shape for X { fn area(&self) -> u8 { 2 } }
impl Shape for [u8] { fn area(&self) -> u8 { 3 } }

extern \"C\" { fn outside(x: u8); }
mod inside {
    pub struct T;
    impl T { pub fn r#new() -> Self { T } }
    mod deeper { async unsafe fn deepest() where u8: Sized {} }
}
mod elsewhere;
",
        "struct T#0 4-7 5:11 in -: pub struct T
        method T.early#0 1-1 1:12 in T: fn early(&self)
        enum E#0 8-8 8:16 in -: pub(crate) enum E
        struct U#0 9-9 9:6 in -: union U
        type Alias#0 10-10 10:5 in -: type Alias<X> = Vec<X>
        constant ONE#0 11-11 11:10 in -: pub const ONE: u8
        variable COUNT#0 12-12 12:11 in -: static mut COUNT: u8
        function make#0 14-15 15:13 in -: macro_rules! make
        trait Shape#0 17-25 17:10 in -: pub trait Shape: Clone
        type Shape.Side#0 18-18 18:9 in Shape: type Side
        constant Shape.SIDES#0 19-19 19:10 in Shape: const SIDES: u8
        method Shape.area#0 20-20 20:7 in Shape: fn area(&self) -> u8
        method Shape.twice#0 21-24 21:7 in Shape: fn twice(&self) -> u8
        function Shape.twice.inner#0 22-22 22:11 in twice: fn inner()
        type Away.Side#0 27-27 27:9 in -: type Side = u8
        constant Away.SIDES#0 28-28 28:10 in -: const SIDES: u8
        method Away.area#0 29-29 29:7 in -: fn area(&self) -> u8
        method X.area#0 31-31 31:25 in -: fn area(&self) -> u8
        method Shape.area#1 32-32 32:25 in Shape: fn area(&self) -> u8
        function outside#0 34-34 34:16 in -: fn outside(x: u8)
        namespace inside#0 35-39 35:4 in -: mod inside
        struct inside.T#0 36-36 36:15 in inside: pub struct T
        method inside.T.new#0 37-37 37:20 in T: pub fn r#new() -> Self
        namespace inside.deeper#0 38-38 38:8 in inside: mod deeper
        function inside.deeper.deepest#0 38-38 38:33 in deeper: async unsafe fn deepest() where u8: Sized",
    );
}

#[test]
fn documentation() {
    let found = facts(
        "//! The file.\n\n/// One\n///\n/// more.\n#[inline]\npub fn one() {}\n// plain\nfn two() {}\n/** Three\n * too.\n */\nfn three() {}\n//// four\nfn four() {}\n",
    );
    let shown: Vec<_> = found.definitions.iter().map(|one| (one.name.as_ref(), one.docstring.as_deref())).collect();
    assert_eq!(shown, [("one", Some("One\n\nmore.")), ("two", None), ("three", Some("Three\ntoo.")), ("four", None)]);
}

#[test]
fn places_are_those_of_name_tokens() {
    check(
        "//- src/lib.rs\npub mod größe;\nuse größe::{messen as m, Länge};\nfn f(x: Länge) {\n    assert_eq!(\"é\", m(x)); x.\n        get()\n}\n\
         //- src/größe.rs\r\npub struct Länge;\r\nimpl Länge { pub fn get(&self) {} }\r\npub fn messen(_: Länge) {}\r\n",
        "größe messen Länge m get",
        "src/größe.rs:2:5 Länge references src/größe.rs:Länge resolved_static lexical_binding
         src/größe.rs:3:17 Länge references src/größe.rs:Länge resolved_static lexical_binding
         src/lib.rs:1:8 größe imports src/größe.rs resolved_static rust_module
         src/lib.rs:2:4 größe imports src/größe.rs resolved_static rust_module
         src/lib.rs:2:14 messen imports src/größe.rs:messen resolved_static rust_path
         src/lib.rs:2:27 Länge imports src/größe.rs:Länge resolved_static rust_path
         src/lib.rs:3:8 Länge references src/größe.rs:Länge resolved_static explicit_import
         src/lib.rs:4:21 m calls src/größe.rs:messen resolved_static explicit_import
         src/lib.rs:5:8 get calls src/größe.rs:Länge.get resolved_static rust_receiver",
    );
}

#[test]
fn references_belong_to_the_innermost_definition() {
    let found = facts(
        "const C: u8 = f();\nfn f() -> T { g() }\ntrait I { fn m(_: T); }\nstruct T;\nimpl I for T { fn m(_: T) { let c = || g(); } }\n",
    );
    let sources: Vec<_> = found
        .body
        .references
        .iter()
        .map(|reference| reference.source().map_or("file", |index| found.definitions[index as usize].key.qualified.as_ref()))
        .collect();
    // u8, f; T, g; T; I, T of the head, T, g
    assert_eq!(sources, ["C", "f", "f", "I.m", "T", "T", "T.m", "T.m"]);
}

#[test]
fn broken_source_keeps_what_stands_outside() {
    let found = facts("fn whole() {}\n\nfn torn( {\n\nfn after() {}\n");
    assert_eq!(found.parse, ParseStatus::Partial);
    assert!(found.definitions.iter().any(|definition| definition.name.as_ref() == "whole"));
}

#[test]
fn macros_of_the_standard_library_are_read_as_calls_in_place() {
    for source in [
        "fn f() { println!(\"{x} {}\", g(), x = h()); vec![g(); 2]; let v = vec![h(), g()]; }\n",
        "fn f() -> R { write!(w, \"{}\", g())?; assert!(h() == 1, \"é {}\", g()); todo!() }\n",
    ] {
        let found = facts(source);
        assert_eq!(found.parse, ParseStatus::Ok, "{source}");
        let calls = found.body.references.iter().filter(|reference| reference.kind == EdgeKind::Calls);
        let names: Vec<&str> = calls.map(|reference| &source[reference.start as usize..][..1]).collect();
        assert!(names.iter().all(|name| matches!(*name, "g" | "h")) && names.len() >= 3, "{source}: {names:?}");
    }
    let text = "macro_rules! m { () => { println!(\"a\") } }\nconst S: &str = \"vec![1]\";\n";
    assert_eq!(facts(text).definitions[1].signature.as_deref(), Some("const S: &str"));
}

#[test]
fn nothing_makes_extraction_fail() {
    for source in [
        "",
        "use",
        "use ::{a, self::b, super::*};\nuse {c::{self as d, e::*}, ::f};\nuse a::{self};\nextern crate self as x;\n",
        "\u{feff}fn f() {}\n",
        "impl<T: ?Sized + 'static, const N: usize> X<T, { N + 1 }> for [T; N] where for<'a> &'a T: Fn(u8) -> T {}\n",
        "fn f(&mut self, (a, ..): (u8, u8), [x, y @ ..]: [u8; 3], Some(ref mut z) | None: O) -> impl Fn() + '_ { |_, (a, b): P| a }\n",
        "fn f() { 'a: loop { break 'a }; if let Some(x) = y && let Z { w, v: V(u, .., t), .. } = x {} else if c {} }\n",
        "fn f() { match x { A | B if let c = d => |x| _ = x, 1..=MAX => (), m!(x) => {}, & &ref y => unsafe { y } } }\n",
        "mod a { mod b { use super::super::c; struct D(pub u8, #[x(y::z)] u8); } }\nstatic A: [<T as I>::X; 2] = <[u8]>::f();\n",
        "fn f() { struct L; impl L { fn g() { use h::*; const fn i() {} } } enum M { N = { fn o() {} 1 } } async move { x.await? } }\n",
    ] {
        let found = facts(source);
        assert_eq!(crate::model::codec::decode(&crate::model::codec::encode(&found).expect("plain")), Some(found));
    }
    let deep = format!("const X: u8 = {}1{};\n", "(".repeat(20_000), ")".repeat(20_000));
    assert!(facts(&deep).definitions.len() <= 1);
    let long = format!("fn f() {{ {}1; }}\n", "g(a).b[c]? + ".repeat(20_000));
    assert_eq!(facts(&long).definitions.len(), 1);
    let chain = format!("fn f() {{ a{} }}\n", ".b()".repeat(20_000));
    let calls = facts(&chain).body.references.iter().filter(|reference| reference.kind == EdgeKind::Calls).count();
    assert_eq!(calls, 20_000);
    let path = format!("fn f() {{ a{}() }}\n", "::b".repeat(20_000));
    facts(&path);
    facts(&format!("impl T for {}X {{}}\n", "& ".repeat(200_000)));
}

/// Few lines that would ask for a name by every way through a net of globs or imports.
#[test]
fn names_are_found_in_bounded_time() {
    let begun = std::time::Instant::now();
    let mut net = String::from("//- src/lib.rs\nuse a0::*;\nfn f() { absent(); present(); }\n");
    for layer in 0..40 {
        let next = layer + 1;
        for side in ["a", "b"] {
            net += &format!("mod {side}{layer} {{ pub use crate::a{next}::*; pub use crate::b{next}::*; }}\n");
        }
    }
    net += "mod a40 { pub fn present() {} }\nmod b40 { pub use crate::a0::*; }\n";
    check(
        &net,
        "absent present",
        "src/lib.rs:2:9 absent calls unresolved_name
         src/lib.rs:2:19 present calls src/lib.rs:a40.present resolved_static rust_glob_import",
    );
    // Each glob begins with a name that any other may bring.
    let mut net = String::from("//- src/lib.rs\nfn f() {\n absent();\n");
    for number in 0..24 {
        net += &format!(" use u{number}::*;\n");
    }
    net += "}\nfn g() { nowhere(); x0(); }\n";
    for number in 0..24 {
        let next = (number + 1) % 24;
        net += &format!("use v{number}::*;\n#[cfg(a)] use x{next}::y as x{number};\n#[cfg(b)] use x{next}::z as x{number};\n");
    }
    check(
        &net,
        "absent nowhere x0",
        "src/lib.rs:2:1 absent calls unresolved_name
         src/lib.rs:28:9 nowhere calls unresolved_name
         src/lib.rs:28:20 x0 calls external_import
         src/lib.rs:99:14 x0 imports external_import
         src/lib.rs:100:14 x0 imports external_import",
    );
    assert!(begun.elapsed() < std::time::Duration::from_secs(20), "{:?}", begun.elapsed());
}

#[test]
fn two_globs_round_a_cycle_bring_both() {
    check(
        "//- src/lib.rs
mod a { pub use crate::b::*; pub use crate::c::*; fn f() { twice(); } }
mod b { pub use crate::a::*; pub fn twice() {} fn f() { twice(); } }
mod c { pub use crate::a::*; pub fn twice() {} pub fn once() {} }
mod d { pub use crate::a::*; fn f() { twice(); once(); } }
",
        "twice once",
        "src/lib.rs:1:59 twice calls src/lib.rs:b.twice candidate ambiguous_binding
         src/lib.rs:1:59 twice calls src/lib.rs:c.twice candidate ambiguous_binding
         src/lib.rs:2:56 twice calls src/lib.rs:b.twice resolved_static lexical_binding
         src/lib.rs:4:38 twice calls src/lib.rs:b.twice candidate ambiguous_binding
         src/lib.rs:4:38 twice calls src/lib.rs:c.twice candidate ambiguous_binding
         src/lib.rs:4:47 once calls src/lib.rs:c.once resolved_static rust_glob_import",
    );
}

#[test]
fn constants_and_visibility_are_read_from_the_tree() {
    let found = facts("const S: &str = \"static mut x\";\nstatic mut V: u8 = 0;\nstatic W: u8 = 0;\n");
    let kinds: Vec<_> = found.definitions.iter().map(|one| one.kind).collect();
    assert_eq!(kinds, [SymbolKind::Constant, SymbolKind::Variable, SymbolKind::Constant]);
    let of = |text: &str| facts(&format!("{text} trait T {{}}\n")).surface.outline.scopes[0].items[0].visibility;
    assert_eq!(of("pub(self)"), of(""));
    assert_eq!(of("pub(crate)"), Visibility::Restricted);
    assert_eq!(of("pub"), Visibility::Public);
}

#[test]
fn surfaces_know_nothing_of_bodies() {
    let surface = |body: &str| facts(&format!("/// doc\npub fn f(x: T) -> T {{ {body} }}\nstatic V: u8 = 1;\n")).surface;
    assert_eq!(surface("x"), surface("use a::b; struct L(T); impl L { fn g(&self) {} } let y = |z: L| z.more(); y(L(x))"));
    assert_ne!(surface(""), facts("pub fn f(x: T) {}\nstatic V: u8 = 1;\n").surface);
}

#[test]
fn files_that_hold_tests() {
    let path = |text: &str| RepoPath::parse(text).expect("valid");
    for (text, is_test) in [("tests/a.rs", true), ("src/a/tests.rs", true), ("src/a_test.rs", true), ("src/latest.rs", false)] {
        assert_eq!(Rust.is_test(&path(text)), is_test, "{text}");
    }
    for (test, source, is) in [
        ("tests/queue.rs", "src/queue.rs", true),
        ("tests/queue.rs", "src/queue/mod.rs", true),
        ("src/queue/tests.rs", "src/queue.rs", true),
        ("src/queue/tests.rs", "src/queue/mod.rs", true),
        ("src/queue/tests.rs", "src/other.rs", false),
        ("tests/main.rs", "src/main.rs", false),
    ] {
        assert_eq!(Rust.is_test_of(&path(test), &path(source)), is, "{test} {source}");
    }
}

/// Resolves a file alone; it must end, and quickly.
#[track_caller]
fn check_ends(source: &str) {
    let started = std::time::Instant::now();
    let tree = fixture::Tree::new(&Rust, &format!("//- Cargo.toml\n[package]\nname = \"a\"\n//- src/lib.rs\n{source}"));
    assert!(tree.edges(&["go"]).len() < 1 << 20);
    assert!(started.elapsed().as_secs() < 20, "{:?}", started.elapsed());
}

#[test]
fn types_that_share_their_parts_do_not_grow() {
    let mut source = String::from("struct F;\nimpl F { fn go(&self) {} }\nstruct W<T>(T);\nfn f(c: bool) {\n    let a0 = F;\n");
    for n in 1..60 {
        let m = n - 1;
        source += &format!("    a{m}.go(); let a{n} = (a{m}, a{m}); let b{n} = W((a{m}, a{m})); b{n}.go();\n");
    }
    source += "    (if c { a59 } else { a59 }).go();\n    (if c { b59 } else { b59 }).go();\n}\n";
    check_ends(&source);
}

#[test]
fn traits_that_ask_for_each_other_are_asked_once() {
    let mut source = String::from("struct F;\nimpl F { fn own(&self) {} }\n");
    for n in 0..40 {
        let next = (n + 1) % 40;
        source += &format!(
            "trait T{n} {{ fn go(&self) {{}} }}\nimpl<T: T{next}> T{n} for T {{}}\nimpl<T: T{next} + Clone> T{n} for T {{}}\n"
        );
    }
    source += "fn f(x: F) { x.go(); }\n";
    check_ends(&source);
}
