//! Makes up Python: blocks of source over so few names that files meet in them all the time.
//!
//! Must not know files on disk. Invariant: the same throws give the same text.

use super::dice::Dice;
use super::speech::{Speech, indented};

const FUNCTIONS: &[&str] = &["f", "g", "h"];
const CLASSES: &[&str] = &["A", "B"];
const METHODS: &[&str] = &["m", "n"];
const VARIABLES: &[&str] = &["x", "y"];
const MODULES: &[&str] = &[
    "a",
    "b",
    "c",
    "pkg",
    "pkg.a",
    "pkg.b",
    "pkg.sub",
    "pkg.sub.c",
    "pkg.A",
    "ns",
    "ns.a",
    "d",
    "lib.d",
    "tests.conftest",
    "out",
];
const RELATIVE: &[&str] = &[".", ".a", ".b", ".c", ".sub", "..", "..a", ".sub.c"];
const ALIASES: &[&str] = &["a", "b", "k", "f", "A"];

pub static PYTHON: Speech = Speech {
    name: "python",
    suffixes: &[".py", ".pyi"],
    paths: &[
        "a.py",
        "b.py",
        "c.py",
        "pkg/__init__.py",
        "pkg/a.py",
        "pkg/b.py",
        "pkg/sub/__init__.py",
        "pkg/sub/c.py",
        "ns/a.py",
        "lib/d.py",
        "lib/pkg/a.py",
        "src/a.py",
        "src/pkg/b.py",
        "a.pyi",
        "pkg/a.pyi",
        "a/__init__.py",
        "b/__init__.py",
        "b/a.py",
        "pkg/A.py",
        "tests/test_a.py",
        "tests/conftest.py",
        "test_b.py",
        "conftest.py",
    ],
    configuration: &[
        ("pyproject.toml", &["[project]\nname = \"a\"\n"]),
        ("lib/pyproject.toml", &["[project]\nname = \"d\"\n"]),
        ("src/setup.py", &["f()\n"]),
        ("pkg/setup.cfg", &["[metadata]\n"]),
        ("notes.md", &["# f\n\nSee `a.f`.\n"]),
    ],
    relies_on_configuration: false,
    folders: &[("pkg/", "out/"), ("out/", "pkg/"), ("lib/", "ns/"), ("pkg/sub/", "pkg/")],
    head: None,
    block: |dice, _| block(dice),
    import: |dice, _| import(dice) + "\n",
    exports: |dice, _| all(dice),
    exports_begin: "__all__",
    class: |dice, _| class(dice),
    class_begin: "class ",
    rebinding: |dice, _| rebinding(dice),
    conditional: |dice, _| conditional(dice),
    broken: |dice, _| broken(dice),
    expression: |dice| expression(dice, 0),
    name_of: name,
    comment: "#",
    twin: |path| match (path.strip_suffix("/__init__.py"), path.strip_suffix(".py")) {
        (Some(package), _) => Some(format!("{package}.py")),
        (None, Some(module)) => Some(format!("{module}/__init__.py")),
        (None, None) => None,
    },
    rank: |_| 0,
};

fn name(dice: &mut Dice) -> &'static str {
    match dice.below(10) {
        0..=5 => dice.pick(FUNCTIONS),
        6..=8 => dice.pick(CLASSES),
        _ => dice.pick(VARIABLES),
    }
}

fn module(dice: &mut Dice) -> &'static str {
    if dice.chance(30) { dice.pick(RELATIVE) } else { dice.pick(MODULES) }
}

/// Returns a statement that imports something, on one line.
fn import(dice: &mut Dice) -> String {
    match dice.below(12) {
        0 => format!("import {}", dice.pick(MODULES)),
        1 => format!("import {} as {}", dice.pick(MODULES), dice.pick(ALIASES)),
        2 | 3 => format!("from {} import *", module(dice)),
        4 => format!("from {} import {} as {}", module(dice), name(dice), name(dice)),
        5 => format!("from {} import {}, {}", module(dice), name(dice), name(dice)),
        6 => format!("from {} import {}", dice.pick(&[".", "..", "pkg", "pkg.sub", "ns"]), dice.pick(&["a", "b", "c", "sub"])),
        _ => format!("from {} import {}", module(dice), name(dice)),
    }
}

/// Returns an expression that uses names.
fn expression(dice: &mut Dice, depth: usize) -> String {
    let inner = |dice: &mut Dice| if depth > 1 { String::new() } else { expression(dice, depth + 1) };
    match dice.below(20) {
        0..=4 => format!("{}()", name(dice)),
        5 => {
            let argument = inner(dice);
            format!("{}({argument})", name(dice))
        }
        6 => format!("{}.{}()", dice.pick(ALIASES), name(dice)),
        7 => format!("{}.{}()", dice.pick(MODULES), name(dice)),
        8 => format!("{}().{}()", dice.pick(CLASSES), dice.pick(METHODS)),
        9 => format!("{}.{}()", dice.pick(CLASSES), dice.pick(METHODS)),
        10 => format!("{}.{}()", dice.pick(VARIABLES), dice.pick(METHODS)),
        11 => format!("self.{}()", dice.pick(METHODS)),
        12 => format!("super().{}()", dice.pick(METHODS)),
        13 => format!("cls.{}()", dice.pick(METHODS)),
        14 => format!("lambda {}: {}", name(dice), inner(dice).replace("lambda", "")),
        15 => format!("[{} for {} in {}()]", name(dice), name(dice), name(dice)),
        16 => format!("{}().{}", name(dice), dice.pick(METHODS)),
        17 => format!("(\"é→\", {}.{})", dice.pick(CLASSES), dice.pick(METHODS)),
        _ => name(dice).to_owned(),
    }
}

/// Returns the lines of a function's body, not indented.
fn body(dice: &mut Dice) -> Vec<String> {
    let mut lines = Vec::new();
    if dice.chance(20) {
        lines.push(format!("\"\"\"Says {}.\"\"\"", dice.below(100)));
    }
    for _ in 0..=dice.below(3) {
        match dice.below(18) {
            0 => lines.push(format!("{} = {}", name(dice), expression(dice, 0))),
            1 => {
                lines.push(format!("global {}", dice.pick(FUNCTIONS)));
                lines.push(format!("{} = {}", dice.pick(FUNCTIONS), expression(dice, 0)));
            }
            2 => lines.push(format!("{}.{} = {}", dice.pick(ALIASES), name(dice), name(dice))),
            3 => lines.push(format!("{}.{} = {}", dice.pick(CLASSES), dice.pick(METHODS), name(dice))),
            4 => lines.push(import(dice).replace("import *", "import f")),
            5 => lines.push(format!("for {} in {}: {}", name(dice), expression(dice, 1), expression(dice, 1))),
            6 => lines.push(format!("{}: {} = {}", dice.pick(VARIABLES), dice.pick(CLASSES), expression(dice, 1))),
            7 => lines.push(format!("{} = {}()", dice.pick(VARIABLES), dice.pick(CLASSES))),
            8 => {
                lines.push(format!("def {}(): return {}", dice.pick(FUNCTIONS), expression(dice, 1)));
            }
            9 => lines.push(format!("with {} as {}: {}", expression(dice, 1), name(dice), expression(dice, 1))),
            10 => lines.push(format!("self.{} = {}", dice.pick(METHODS), expression(dice, 1))),
            11 => lines.push(format!("{}.{}.{} = {}", dice.pick(ALIASES), dice.pick(CLASSES), dice.pick(METHODS), name(dice))),
            12 => lines.push(format!("return {}", expression(dice, 0))),
            _ => lines.push(expression(dice, 0)),
        }
    }
    lines
}

fn decorator(dice: &mut Dice) -> String {
    match dice.below(6) {
        0 => format!("@{}\n", name(dice)),
        1 => format!("@{}.{}\n", dice.pick(ALIASES), name(dice)),
        2 => format!("@{}()\n", name(dice)),
        3 => "@property\n".to_owned(),
        4 => "@overload\n".to_owned(),
        _ => "@fixture\n".to_owned(),
    }
}

fn parameters(dice: &mut Dice) -> String {
    match dice.below(8) {
        0 => name(dice).to_owned(),
        1 => format!("x: {}", dice.pick(CLASSES)),
        2 => format!("x: \"{}\"", dice.pick(CLASSES)),
        3 => format!("y={}", expression(dice, 1)),
        4 => format!("x: {}.{}", dice.pick(ALIASES), dice.pick(CLASSES)),
        5 => "*f".to_owned(),
        _ => String::new(),
    }
}

/// Returns a function definition.
fn function(dice: &mut Dice) -> String {
    let mut text = String::new();
    if dice.chance(15) {
        text.push_str(&decorator(dice));
    }
    let result = if dice.chance(15) { format!(" -> {}", dice.pick(CLASSES)) } else { String::new() };
    let asynchronous = if dice.chance(5) { "async " } else { "" };
    let own = if dice.chance(8) { dice.pick(&["test_f", "_f", "__getattr__", "main"]) } else { dice.pick(FUNCTIONS) };
    text.push_str(&format!("{asynchronous}def {own}({}){result}:\n", parameters(dice)));
    text.push_str(&indented(&body(dice)));
    text
}

/// Returns a class definition.
fn class(dice: &mut Dice) -> String {
    let bases = match dice.below(7) {
        0 | 1 => format!("({})", dice.pick(CLASSES)),
        2 => format!("({}.{})", dice.pick(ALIASES), dice.pick(CLASSES)),
        3 => format!("({}, {})", dice.pick(CLASSES), dice.pick(CLASSES)),
        4 => format!("({}())", name(dice)),
        _ => String::new(),
    };
    let mut text = if dice.chance(10) { decorator(dice) } else { String::new() };
    text.push_str(&format!("class {}{bases}:\n", dice.pick(CLASSES)));
    for _ in 0..=dice.below(2) {
        match dice.below(8) {
            0 => text.push_str(&format!("    {} = {}\n", dice.pick(METHODS), name(dice))),
            1 => text.push_str(&format!("    x: {}\n", dice.pick(CLASSES))),
            2 => {
                text.push_str(&format!("    @{}\n", dice.pick(&["property", "staticmethod", "classmethod", "f", "m.setter"])));
                text.push_str(&format!("    def {}(cls):\n", dice.pick(METHODS)));
                text.push_str(&indented(&body(dice)).replace("    ", "        "));
            }
            _ => {
                text.push_str(&format!("    def {}(self{}):\n", dice.pick(METHODS), dice.pick(&["", ", x: A", ", f"])));
                text.push_str(&indented(&body(dice)).replace("    ", "        "));
            }
        }
    }
    text
}

/// Returns what a module says of its own names.
fn all(dice: &mut Dice) -> String {
    match dice.below(7) {
        0 | 1 => format!("__all__ = [\"{}\"]\n", name(dice)),
        2 => format!("__all__ = (\"{}\", \"{}\")\n", name(dice), name(dice)),
        3 => format!("__all__ += [\"{}\"]\n", name(dice)),
        4 => format!("__all__.extend([\"{}\"])\n", name(dice)),
        5 => format!("__all__ = {}\n", name(dice)),
        _ => format!("__all__ += {}.__all__\n", dice.pick(ALIASES)),
    }
}

/// Returns code that rebinds something.
fn rebinding(dice: &mut Dice) -> String {
    match dice.below(6) {
        0 => {
            let module = dice.pick(&["a", "b", "c", "d"]);
            format!("import {module}\n{module}.{} = {}\n", name(dice), name(dice))
        }
        1 => format!("{}.{} = {}\n", dice.pick(CLASSES), dice.pick(METHODS), name(dice)),
        2 => format!("{} = {}\n", dice.pick(FUNCTIONS), expression(dice, 0)),
        3 => format!("{}.{}.{} = {}\n", dice.pick(ALIASES), dice.pick(CLASSES), dice.pick(METHODS), name(dice)),
        4 => format!("del {}\n", name(dice)),
        _ => format!("setattr({}, \"{}\", {})\n", dice.pick(ALIASES), dice.pick(FUNCTIONS), name(dice)),
    }
}

/// Returns a definition that only holds under a condition.
fn conditional(dice: &mut Dice) -> String {
    match dice.below(5) {
        0 => format!("try:\n    {}\nexcept ImportError:\n    def {}(): pass\n", import(dice), dice.pick(FUNCTIONS)),
        1 => format!("if TYPE_CHECKING:\n    {}\n", import(dice)),
        2 => format!("if x:\n    def {}(): {}\nelse:\n    {}\n", dice.pick(FUNCTIONS), expression(dice, 0), import(dice)),
        3 => format!("if __name__ == \"__main__\":\n    {}\n", expression(dice, 0)),
        _ => format!("for {} in {}:\n    {}\n", name(dice), expression(dice, 1), expression(dice, 0)),
    }
}

/// Returns a line that holds what is hard to count, and means nothing.
fn odd(dice: &mut Dice) -> String {
    dice.pick(&[
        "# → — π\n",
        "# a lone\r return\n",
        "# separators \u{2028} \u{85} \u{c} \u{b}\n",
        "\u{c}\n",
        "pass\r\n",
        "\"\"\"𝄞 text \u{2029}\nover lines\"\"\"\n",
        "été = 1\n",
    ])
    .to_string()
}

/// Returns one block for the top level of a module.
fn block(dice: &mut Dice) -> String {
    match dice.below(40) {
        0..=11 => import(dice) + "\n",
        12..=22 => function(dice),
        23..=29 => class(dice),
        30 | 31 => all(dice),
        32..=34 => rebinding(dice),
        35 => conditional(dice),
        36 => format!("{} = {}()\n", dice.pick(VARIABLES), dice.pick(CLASSES)),
        37 => format!("{}\n", expression(dice, 0)),
        38 => odd(dice),
        _ => format!("{}: {}\n", dice.pick(VARIABLES), dice.pick(CLASSES)),
    }
}

/// Returns text that is no Python.
fn broken(dice: &mut Dice) -> String {
    dice.pick(&["def (:\n", "class\n", "f((\n", "\"\"\"open\n", "  x = = 1\n", "from import\n", "if x\n    f()\n"]).to_string()
}
