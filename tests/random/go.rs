//! Makes up Go: packages of a few modules over so few names that they meet in them all the time.
//!
//! Must not know files on disk. Invariant: the same throws give the same text.

use super::dice::Dice;
use super::speech::{Speech, indented};

/// Exported and not, so that both sides of the border of a package are met.
const FUNCTIONS: &[&str] = &["F", "G", "h"];
const TYPES: &[&str] = &["A", "B", "I", "c"];
const METHODS: &[&str] = &["M", "N", "o"];
const VARIABLES: &[&str] = &["x", "y", "V"];
/// What packages call themselves and what importers call them.
const PACKAGES: &[&str] = &["pkg", "sub", "q", "m", "k"];
const IMPORTS: &[&str] = &["ex/m", "ex/m/pkg", "ex/m/pkg/sub", "ex/m/lib", "ex/q", "ex/q/sub", "ex/n/pkg", "fmt"];

pub static GO: Speech = Speech {
    name: "go",
    suffixes: &[".go"],
    paths: &[
        "a.go",
        "b.go",
        "a_test.go",
        "pkg/a.go",
        "pkg/b.go",
        "pkg/b_linux.go",
        "pkg/b_windows.go",
        "pkg/a_test.go",
        "pkg/x_test.go",
        "pkg/sub/c.go",
        "lib/d.go",
        "lib/sub/e.go",
        "internal/i.go",
        "vendor/ex/q/d.go",
    ],
    configuration: &[
        (
            "go.mod",
            &[
                "module ex/m\n",
                "module ex/m // again\n\ngo 1.22\n",
                "module ex/n\n",
                "module ex/m\n\nreplace ex/q => ./lib\n",
                "module\n",
            ],
        ),
        ("lib/go.mod", &["module ex/q\n", "module ex/m/lib\n", "module ex/n\n"]),
        ("go.work", &["go 1.22\n\nuse .\nuse ./lib\n", "use ./lib\n", "use (\n\t.\n)\n\nreplace ex/q => ./pkg\n"]),
        ("notes.md", &["# F\n\nSee `pkg.F`.\n"]),
    ],
    relies_on_configuration: true,
    folders: &[("pkg/", "out/"), ("out/", "pkg/"), ("lib/", "pkg/sub/"), ("pkg/sub/", "lib/")],
    head: Some(head),
    block: |dice, _| block(dice),
    import: |dice, _| import(dice),
    exports: head,
    exports_begin: "package ",
    class: |dice, _| declared_type(dice),
    class_begin: "type ",
    rebinding: |dice, _| method(dice),
    conditional: |dice, _| constraint(dice),
    broken: |dice, _| broken(dice),
    expression: |dice| expression(dice, 0),
    name_of: name,
    comment: "//",
    twin: |path| match path.strip_suffix("_test.go") {
        Some(source) => Some(format!("{source}.go")),
        None => path.strip_suffix(".go").map(|source| format!("{source}_test.go")),
    },
    // The language wants its clauses in this order; a block may lead with a constraint.
    rank: |block| match () {
        () if block.starts_with("//go:build") => 0,
        () if block.starts_with("package") => 1,
        () if block.starts_with("import") => 2,
        () => 3,
    },
};

fn head(dice: &mut Dice, path: &str) -> String {
    let folder = path.rsplit_once('/').map_or("m", |(folder, _)| folder.rsplit('/').next().unwrap_or(folder));
    let mut name = if folder == "lib" { "q" } else { folder }.to_owned();
    if dice.chance(8) {
        name = dice.pick(PACKAGES).to_owned();
    }
    let apart = if path.ends_with("_test.go") && dice.chance(50) { "_test" } else { "" };
    format!("package {name}{apart}\n\n")
}

fn name(dice: &mut Dice) -> &'static str {
    match dice.below(10) {
        0..=3 => dice.pick(FUNCTIONS),
        4..=6 => dice.pick(TYPES),
        7 | 8 => dice.pick(METHODS),
        _ => dice.pick(VARIABLES),
    }
}

fn import(dice: &mut Dice) -> String {
    let path = dice.pick(IMPORTS);
    match dice.below(10) {
        0 => format!("import . \"{path}\"\n"),
        1 => format!("import _ \"{path}\"\n"),
        2 | 3 => format!("import {} \"{path}\"\n", dice.pick(PACKAGES)),
        4 => format!("import (\n    \"{path}\"\n    {} \"{}\"\n)\n", dice.pick(PACKAGES), dice.pick(IMPORTS)),
        _ => format!("import \"{path}\"\n"),
    }
}

fn qualified(dice: &mut Dice, name: &str) -> String {
    if dice.chance(40) { format!("{}.{name}", dice.pick(PACKAGES)) } else { name.to_owned() }
}

/// Returns a type as it is written in a signature.
fn type_name(dice: &mut Dice) -> String {
    let plain = dice.pick(TYPES);
    let plain = qualified(dice, plain);
    match dice.below(12) {
        0 => format!("*{plain}"),
        1 => format!("[]{plain}"),
        2 => format!("map[string]{plain}"),
        3 => format!("func() {plain}"),
        4 => format!("{plain}[int]"),
        5 => "string".to_owned(),
        6 => format!("chan {plain}"),
        _ => plain,
    }
}

fn expression(dice: &mut Dice, depth: usize) -> String {
    let inner = |dice: &mut Dice| if depth > 1 { String::new() } else { expression(dice, depth + 1) };
    let function = |dice: &mut Dice| {
        let plain = dice.pick(FUNCTIONS);
        qualified(dice, plain)
    };
    let named = |dice: &mut Dice| {
        let plain = dice.pick(TYPES);
        qualified(dice, plain)
    };
    match dice.below(16) {
        0..=3 => format!("{}({})", function(dice), inner(dice)),
        4 => format!("{}{{}}.{}()", named(dice), dice.pick(METHODS)),
        5 => format!("(&{}{{}}).{}()", named(dice), dice.pick(METHODS)),
        6..=8 => format!("{}.{}()", dice.pick(VARIABLES), dice.pick(METHODS)),
        9 => format!("{}().{}()", function(dice), dice.pick(METHODS)),
        10 => format!("{}.{}.{}()", dice.pick(VARIABLES), dice.pick(METHODS), dice.pick(METHODS)),
        11 => format!("{}(x)", named(dice)),
        12 => format!("{}.{}(x)", named(dice), dice.pick(METHODS)),
        13 => format!("r.{}()", dice.pick(METHODS)),
        14 => format!("{}[int]({})", function(dice), inner(dice)),
        _ => format!("func() {{ {} }}()", inner(dice)),
    }
}

fn body(dice: &mut Dice) -> Vec<String> {
    let mut lines = Vec::new();
    for _ in 0..=dice.below(3) {
        lines.push(match dice.below(16) {
            0 => format!("{} := {}", dice.pick(VARIABLES), expression(dice, 1)),
            1 => format!("{} := {}{{}}", dice.pick(VARIABLES), dice.pick(TYPES)),
            2 => format!("var {} {}", dice.pick(VARIABLES), type_name(dice)),
            3 => format!("{} := func() {{}}", dice.pick(FUNCTIONS)),
            4 => format!("for _, {} := range {} {{\n    {}\n}}", dice.pick(VARIABLES), expression(dice, 1), expression(dice, 1)),
            5 => format!("if {} := {}; true {{\n    {}\n}}", dice.pick(VARIABLES), expression(dice, 1), expression(dice, 1)),
            6 => {
                let variable = dice.pick(VARIABLES);
                format!("switch {variable} := {variable}.(type) {{\ncase {}:\n    {}\n}}", type_name(dice), expression(dice, 1))
            }
            7 => format!("{}, _ := x.({})", dice.pick(VARIABLES), type_name(dice)),
            8 => format!("defer {}", expression(dice, 1)),
            9 => format!("{} = {}.{}", dice.pick(VARIABLES), dice.pick(VARIABLES), dice.pick(METHODS)),
            10 => format!("_ = {}{{{}: {}}}", dice.pick(TYPES), dice.pick(METHODS), dice.pick(VARIABLES)),
            11 => format!("return {}", expression(dice, 0)),
            _ => expression(dice, 0),
        });
    }
    lines
}

fn parameters(dice: &mut Dice) -> String {
    match dice.below(8) {
        0 => String::new(),
        1 => format!("x {}, y {}", type_name(dice), type_name(dice)),
        2 => format!("x ...{}", dice.pick(TYPES)),
        3 => format!("{} func() {}", dice.pick(FUNCTIONS), type_name(dice)),
        4 | 5 => "x I".to_owned(),
        _ => format!("x {}", type_name(dice)),
    }
}

fn result(dice: &mut Dice) -> String {
    match dice.below(4) {
        0 => String::new(),
        1 => format!("({}, error) ", type_name(dice)),
        _ => type_name(dice) + " ",
    }
}

fn function(dice: &mut Dice) -> String {
    let generic = if dice.chance(12) { format!("[T {}]", dice.pick(&["any", "I", "A", "pkg.I"])) } else { String::new() };
    let name = if dice.chance(6) { dice.pick(&["init", "main", "TestF", "_"]) } else { dice.pick(FUNCTIONS) };
    format!("func {name}{generic}({}) {}{{\n{}}}\n\n", parameters(dice), result(dice), indented(&body(dice)))
}

fn method(dice: &mut Dice) -> String {
    let receiver = format!("{}{}{}", dice.pick(&["", "*"]), dice.pick(TYPES), if dice.chance(8) { "[T]" } else { "" });
    let name = dice.pick(METHODS);
    // Most are alike, so that types have the methods of interfaces.
    let (parameters, result) = if dice.chance(75) { Default::default() } else { (parameters(dice), result(dice)) };
    format!("func (r {receiver}) {name}({parameters}) {result}{{\n{}}}\n\n", indented(&body(dice)))
}

fn declared_type(dice: &mut Dice) -> String {
    let name = dice.pick(TYPES);
    let mut lines = Vec::new();
    match dice.below(10) {
        0..=4 => {
            for _ in 0..=dice.below(2) {
                let pointer = dice.pick(&["", "*"]);
                let embedded = dice.pick(TYPES);
                lines.push(if dice.chance(45) {
                    format!("{pointer}{}", qualified(dice, embedded))
                } else {
                    format!("{} {}", dice.pick(METHODS), type_name(dice))
                });
            }
            let generic = if dice.chance(10) { "[T any]" } else { "" };
            format!("type {name}{generic} struct {{\n{}}}\n\n", indented(&lines))
        }
        5..=7 => {
            for _ in 0..1 + dice.below(3) / 2 {
                let embedded = dice.pick(TYPES);
                let result = if dice.chance(75) { String::new() } else { result(dice) };
                lines.push(if dice.chance(25) {
                    qualified(dice, embedded)
                } else {
                    format!("{}() {result}", dice.pick(METHODS))
                });
            }
            let name = if dice.chance(60) { "I" } else { name };
            format!("type {name} interface {{\n{}}}\n\n", indented(&lines))
        }
        8 => format!("type {name} = {}\n\n", type_name(dice)),
        _ => format!("type {name} {}\n\n", type_name(dice)),
    }
}

/// A build constraint stands above its file, so that a block of it becomes the first.
fn constraint(dice: &mut Dice) -> String {
    format!("//go:build {}\n\n", dice.pick(&["linux", "windows", "ignore", "!windows", "slow"]))
}

/// Returns a part of a plot that several files have to play: one calls through an interface, others have its methods.
fn plot(dice: &mut Dice) -> String {
    let method = dice.pick(&["M", "N"]);
    match dice.below(3) {
        0 => format!("type I interface {{\n    {method}()\n}}\n\nfunc h(x I) {{\n    x.{method}()\n}}\n\n"),
        _ => {
            let name = dice.pick(&["A", "B"]);
            format!("type {name} struct {{\n}}\n\nfunc (r {name}) {method}() {{\n    F()\n}}\n\n")
        }
    }
}

fn block(dice: &mut Dice) -> String {
    match dice.below(46) {
        40..=45 => plot(dice),
        0..=9 => import(dice),
        10..=18 => function(dice),
        19..=25 => method(dice),
        26..=32 => declared_type(dice),
        33 | 34 => format!("var {} {}\n", dice.pick(VARIABLES), type_name(dice)),
        35 => format!("var {} = {}\n", dice.pick(VARIABLES), expression(dice, 0)),
        36 => format!("const {} = 1\n", dice.pick(VARIABLES)),
        37 => constraint(dice),
        38 => dice.pick(&["// # → — π\n", "/* over\nlines */\n", "var été = 1\n", "\r\n", "// a lone\r return\n"]).to_owned(),
        _ => format!(
            "var (\n    {} = {}\n    {} {}\n)\n",
            dice.pick(VARIABLES),
            expression(dice, 0),
            dice.pick(VARIABLES),
            type_name(dice)
        ),
    }
}

fn broken(dice: &mut Dice) -> String {
    dice.pick(&["func (\n", "type\n", "F((\n", "`open\n", "var x = = 1\n", "import\n", "func F() {\n", "}\n"]).to_owned()
}
