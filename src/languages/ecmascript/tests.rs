use crate::languages::LanguageSupport;
use crate::languages::fixture::{self, check};
use crate::languages::typescript::TypeScript;
use crate::languages::{javascript::JavaScript, python::Python};
use crate::model::{FileFacts, ParseStatus, RepoPath};

fn facts(path: &str, source: &str) -> FileFacts {
    let path = RepoPath::parse(path).expect("valid");
    let languages: [&dyn LanguageSupport; 2] = [&TypeScript, &JavaScript];
    let (language, dialect) =
        languages.iter().find_map(|language| Some((language, language.dialect(&path)?))).expect("a file of the family");
    language.extract(source, dialect, &mut || false).expect("nothing stops it")
}

#[track_caller]
fn check_definitions(path: &str, source: &str, expected: &str) {
    fixture::check_definitions(&facts(path, source), expected);
}

#[test]
fn definitions_of_typescript() {
    check_definitions(
        "a.ts",
        "/** Adds. */\nexport function add(a: number): number;\nexport function add(a: any) {\n  return a;\n}\n\
         export interface Box<T> extends Base { get(): T; value: T }\ninterface Box<T> { set(x: T): void }\n\
         export abstract class C { static make() {} get v() { return 1; } set v(x) {} field = () => 1; #p() {} [Symbol.iterator]() {} }\n\
         export const one = 1, two = () => 2;\nlet { a, b: { c } } = one;\nexport enum E { A }\n\
         namespace N.M { export type T = string; }\nexport default class {}\n",
        "function add#0 2-5 3:16 in -: export function add(a: any)
         interface Box#0 6-6 6:17 in -: export interface Box<T> extends Base
         method Box.get#0 6-6 6:39 in Box: get(): T
         method Box.set#0 7-7 7:19 in Box: set(x: T): void
         class C#0 8-8 8:22 in -: export abstract class C
         method C.make#0 8-8 8:33 in C: static make()
         method C.v#0 8-8 8:47 in C: get v()
         method C.field#0 8-8 8:77 in C: field = ()
         method C.#p#0 8-8 8:94 in C: #p()
         method C.[Symbol.iterator]#0 8-8 8:102 in C: [Symbol.iterator]()
         constant one#0 9-9 9:13 in -: one = 1
         function two#0 9-9 9:22 in -: two = ()
         variable a#0 10-10 10:6 in -: let { a, b: { c } } = one
         variable c#0 10-10 10:14 in -: let { a, b: { c } } = one
         enum E#0 11-11 11:12 in -: export enum E
         namespace N#0 12-12 12:10 in -: namespace N.M
         namespace N.M#0 12-12 12:12 in N: namespace N.M
         type N.M.T#0 12-12 12:28 in M: export type T = string
         class default#0 13-13 13:7 in -: export default class",
    );
}

#[test]
fn signatures_end_before_the_body_and_after_the_type() {
    check_definitions(
        "a.ts",
        "export function f(): Promise<A> {}\nconst g = (x: A): Array<B> => {};\nabstract class C<T> { m(): Box<T>; n = (): Box<T> => 1 }\n",
        "function f#0 1-1 1:16 in -: export function f(): Promise<A>
         function g#0 2-2 2:6 in -: const g = (x: A): Array<B>
         class C#0 3-3 3:15 in -: abstract class C<T>
         method C.m#0 3-3 3:22 in C: m(): Box<T>
         method C.n#0 3-3 3:35 in C: n = (): Box<T>",
    );
}

#[test]
fn definitions_of_javascript() {
    check_definitions(
        "a.js",
        "exports.f = function () {};\nfunction View() { this.go = () => {}; }\nView.prototype.run = function run() {};\n\
         const o = { m() {}, k: () => 1, in: { deep() {} } };\nmodule.exports.g = class {};\nlist.each(function named() {});\n\
         outside.hook = () => {};\n",
        "function f#0 1-1 1:8 in -: exports.f = function ()
         function View#0 2-2 2:9 in -: function View()
         method View.go#0 2-2 2:23 in View: this.go = ()
         method View.run#0 3-3 3:15 in -: View.prototype.run = function run()
         constant o#0 4-4 4:6 in -: const o
         method o.m#0 4-4 4:12 in o: m()
         method o.k#0 4-4 4:20 in o: k: ()
         method o.deep#0 4-4 4:38 in o: deep()
         class g#0 5-5 5:15 in -: module.exports.g = class
         function named#0 6-6 6:19 in -: function named()
         method outside.hook#0 7-7 7:8 in -: outside.hook = ()",
    );
}

#[test]
fn a_body_edit_leaves_the_surface_alone() {
    let before = facts("a.ts", "export class A { run(): void { one(); } }\nexport function f(): A { return new A(); }\n");
    let after = facts(
        "a.ts",
        "// moved\nexport class A { run(): void { const x = 2; two(x); } }\n\nexport function f(): A { log(); return new A(); }\n",
    );
    assert_eq!(before.surface, after.surface);
    assert_ne!(before.body, after.body);
    let exported = facts("a.ts", "export class A { run(): A { one(); } }\nexport function f(): A { return new A(); }\n");
    assert_ne!(before.surface, exported.surface);
}

#[test]
fn the_tests_of_a_repository_are_named_by_their_runners() {
    for (path, test) in [
        ("a.test.ts", true),
        ("b/c.spec.jsx", true),
        ("__tests__/a.js", true),
        ("x/__tests__/y/a.ts", true),
        ("tests.ts", false),
        ("latest.js", false),
    ] {
        assert_eq!(TypeScript.is_test(&RepoPath::parse(path).expect("valid")), test, "{path}");
    }
}

#[test]
fn files_that_nobody_reads_have_a_word() {
    let word = |path: &str| {
        let path = RepoPath::parse(path).expect("valid");
        TypeScript.unread(&path).or_else(|| Python.unread(&path))
    };
    for (path, expected) in [
        ("a/App.vue", Some("vue_files_not_read")),
        ("B.svelte", Some("svelte_files_not_read")),
        ("c.ipynb", Some("notebooks_not_read")),
        ("d.ts", None),
    ] {
        assert_eq!(word(path), expected, "{path}");
    }
}

#[test]
fn a_test_belongs_to_what_it_is_named_like() {
    let belongs = |test: &str, source: &str| {
        TypeScript.is_test_of(&RepoPath::parse(test).expect("valid"), &RepoPath::parse(source).expect("valid"))
    };
    assert!(belongs("a/x.test.ts", "a/x.ts") && belongs("a/__tests__/x.js", "a/x.jsx") && belongs("__tests__/x.spec.ts", "x.ts"));
    assert!(!belongs("a/x.test.ts", "b/x.ts") && !belongs("a/x.test.ts", "a/y.ts") && !belongs("a/x.ts", "a/x.js"));
    assert!(belongs("x.component.spec.ts", "x.component.ts") && !belongs("x.component.spec.ts", "x.module.ts"));
    assert!(belongs("p/test/a/x.test.js", "p/src/a/x.js") && belongs("test/x.test.mjs", "lib/x.mjs"));
    assert!(!belongs("p/test/a/x.test.js", "q/src/a/x.js") && !belongs("test/x.test.js", "src/a/x.js"));
    assert!(belongs("cart/cart.test.ts", "cart/index.ts") && belongs("cart/index.test.ts", "cart/index.ts"));
    assert!(belongs("x.test.ts", "x.d.ts") && !belongs(".test.ts", "index.ts"));
}

#[test]
fn dialects_and_families() {
    let dialect = |path: &str| {
        let path = RepoPath::parse(path).expect("valid");
        TypeScript.dialect(&path).or_else(|| JavaScript.dialect(&path))
    };
    for (path, expected) in [
        ("a.ts", Some("typescript")),
        ("a.d.ts", Some("typescript-declarations")),
        ("a.d.mts", Some("typescript-declarations")),
        ("a.tsx", Some("tsx")),
        ("a.cjs", Some("javascript")),
        ("a.json", None),
    ] {
        assert_eq!(dialect(path), expected, "{path}");
    }
    assert_eq!(TypeScript.family(), JavaScript.family());
    assert_ne!(TypeScript.family(), Python.family());
}

#[test]
fn newer_syntax_is_read_whole() {
    for source in [
        "interface I<in T, out U, in out V = U> {}",
        "class A { static accessor x = 1; }",
        "export type * from './a';\nexport type * as ns from './a';",
        "let t: import('./a').Foo<string, (x: number) => void>[];",
        "function f(s: import('./a').B.C<string>) {}",
    ] {
        assert_eq!(facts("a.ts", source).parse, ParseStatus::Ok, "{source}");
    }
    for source in ["let x = ;", "class { in out }", "f(<"] {
        assert_eq!(facts("a.ts", source).parse, ParseStatus::Partial, "{source}");
    }
}

#[test]
fn hostile_input_ends() {
    for (open, close) in
        [("(", ")"), ("[", "]"), ("{", "}"), ("a(", ")"), ("x=>", ""), ("!", ""), ("a?", ":b"), ("`${", "}`"), ("a.b(", ")")]
    {
        let source = format!("x = {}1{};", open.repeat(3_000), close.repeat(3_000));
        facts("a.ts", &source);
        facts("a.js", &source);
    }
    facts("a.ts", &format!("type T = {}string{};", "A<".repeat(2_000), ">".repeat(2_000)));
    facts("a.ts", &format!("type T = {}string;", "A | ".repeat(5_000)));
    let chain = facts("a.ts", &format!("x{};", ".a()".repeat(5_000)));
    assert_eq!(chain.body.references.len(), 5_001);
    facts("a.js", &format!("x{};", "+ a".repeat(5_000)));
    facts("a.js", &format!("{};", "a = ".repeat(3_000)));
    facts("a.js", "if (a) ".repeat(3_000).as_str());
    facts("a.tsx", &format!("x = {}{};", "<A>".repeat(1_000), "</A>".repeat(1_000)));
    // One line that is broken everywhere and looks as if it could be repaired anywhere.
    facts("a.js", &format!("let = {}", "x<<y&z;) ".repeat(10_000)));
    facts("a.js", &format!("let = \"={}", "&a import(b".repeat(10_000)));
}

#[test]
fn long_evidence_is_followed_no_further_than_it_pays() {
    // Each step of the chain would be another instance of the one class.
    let chain = format!("x{};", ".me()".repeat(400));
    check(
        &TypeScript,
        &format!("//- a.ts\nclass A {{ me(): A {{ return this; }} }}\nconst x = new A();\n{chain}\nx.me();\n"),
        "A",
        "a.ts:1:16 A references a.ts:A resolved_static lexical_binding
         a.ts:2:14 A calls a.ts:A resolved_static lexical_binding",
    );
}

#[test]
fn lines_and_names_of_other_scripts() {
    check(
        &TypeScript,
        "//- a.ts\n\u{feff}export function größe() {}\r\nconst o = { größe };\r\ngröße();\r\n",
        "größe",
        "a.ts:2:12 größe references a.ts:größe resolved_static lexical_binding
         a.ts:3:0 größe calls a.ts:größe resolved_static lexical_binding",
    );
}

#[test]
fn a_class_that_inherits_from_itself_ends() {
    check(
        &TypeScript,
        "//- a.ts\nclass A extends B { m() { this.n(); } }\nclass B extends A {}\ninterface I extends I { }\nfunction f(i: I) { i.n(); }\n",
        "n",
        "a.ts:1:31 n calls unresolved_member
         a.ts:4:21 n calls unresolved_member",
    );
}

#[test]
fn a_type_that_names_itself_ends() {
    check(
        &TypeScript,
        "//- a.ts\ntype A = A | B;\ntype B = A[\"x\"];\ntype L<T> = { next: L<L<T>> };\n\
         function f(a: A, l: L<string>) { a.m(); l.next.next.next.m(); }\nlet v = v.w();\nv.m();\n",
        "m",
        "a.ts:4:35 m calls dynamic_receiver
         a.ts:4:57 m calls unresolved_member
         a.ts:6:2 m calls dynamic_receiver",
    );
}
