//! Makes up TypeScript and JavaScript: modules of every form over so few names that they meet in them all the time.
//!
//! Must not know files on disk. Invariant: the same throws give the same text.

use super::dice::Dice;
use super::speech::{Speech, indented};

const FUNCTIONS: &[&str] = &["f", "g", "h"];
const CLASSES: &[&str] = &["A", "B"];
const METHODS: &[&str] = &["m", "n"];
const VARIABLES: &[&str] = &["x", "y"];
const NAMESPACES: &[&str] = &["k", "N", "A"];
const SPECIFIERS: &[&str] = &[
    "./a", "./b", "./a.js", "./b.js", "./pkg", "./pkg/a", "./pkg/b", "./sub/c", "./d", ".", "..", "../a", "../b", "./index",
    "@/a", "@/b", "@/lib/d", "lib/d", "pkg/a", "q", "q/d", "@s/q", "m", "m/pkg", "#a", "react",
];

pub static ECMASCRIPT: Speech = Speech {
    name: "ecmascript",
    suffixes: &[".ts", ".tsx", ".js", ".jsx", ".mts", ".mjs", ".cts", ".cjs"],
    paths: &[
        "a.ts",
        "a.ts",
        "a.ts",
        "b.ts",
        "b.ts",
        "a.js",
        "b.js",
        "a.d.ts",
        "d.cjs",
        "index.ts",
        "a/index.ts",
        "pkg/index.ts",
        "pkg/a.ts",
        "pkg/A.ts",
        "pkg/b.mjs",
        "pkg/sub/c.tsx",
        "src/a.ts",
        "src/b.js",
        "src/lib/d.ts",
        "lib/index.js",
        "lib/d.ts",
        "packages/q/index.ts",
        "packages/q/d.ts",
        "globals.d.ts",
        "pkg/a.test.ts",
        "__tests__/b.js",
    ],
    configuration: &[
        (
            "package.json",
            &[
                "{ \"name\": \"m\", \"workspaces\": [\"packages/*\"] }\n",
                "{ \"name\": \"m\", \"workspaces\": [\"lib\", \"packages/*\"] }\n",
                "{ \"name\": \"m\", \"type\": \"module\", \"imports\": { \"#a\": \"./a.ts\" } }\n",
                "{ \"name\": \"m\", \"imports\": { \"#a\": \"./pkg/a.ts\" }, \"workspaces\": [\"packages/**\"] }\n",
                "{ \"name\": \"m\", \"exports\": { \".\": \"./index.ts\", \"./pkg\": \"./pkg/index.ts\" } }\n",
                "{ \"name\": \n",
            ],
        ),
        (
            "lib/package.json",
            &[
                "{ \"name\": \"q\", \"main\": \"d.ts\" }\n",
                "{ \"name\": \"q\" }\n",
                "{ \"name\": \"@s/q\", \"exports\": \"./index.js\" }\n",
                "{ \"name\": \"other\" }\n",
            ],
        ),
        ("packages/q/package.json", &["{ \"name\": \"q\" }\n", "{ \"name\": \"@s/q\", \"types\": \"./d.ts\" }\n"]),
        (
            "tsconfig.json",
            &[
                "{}\n",
                "{ \"compilerOptions\": { \"baseUrl\": \".\" } }\n",
                "// as the compiler reads it\n{ \"compilerOptions\": { \"baseUrl\": \"./src\", }, }\n",
                "{ \"compilerOptions\": { \"paths\": { \"@/*\": [\"./src/*\"] } } }\n",
                "{ \"compilerOptions\": { \"paths\": { \"@/*\": [\"./pkg/*\", \"./*\"] } } }\n",
                "{ \"extends\": \"./tsconfig.base.json\" }\n",
            ],
        ),
        (
            "tsconfig.base.json",
            &[
                "{ \"compilerOptions\": { \"paths\": { \"@/*\": [\"./*\"] } } }\n",
                "{ \"compilerOptions\": { \"rootDirs\": [\"src\", \"pkg\"] } }\n",
            ],
        ),
        (
            "pkg/tsconfig.json",
            &["{ \"extends\": \"../tsconfig.json\" }\n", "{ \"compilerOptions\": { \"paths\": { \"@/*\": [\"../src/*\"] } } }\n"],
        ),
        ("src/jsconfig.json", &["{ \"compilerOptions\": { \"baseUrl\": \"..\" } }\n"]),
        ("pnpm-workspace.yaml", &["packages:\n  - lib\n", "packages:\n  - 'packages/*'\n"]),
        ("notes.vue", &["<script>\nimport { f } from './a'\n</script>\n"]),
    ],
    relies_on_configuration: true,
    folders: &[("pkg/", "out/"), ("out/", "pkg/"), ("src/", "pkg/"), ("lib/", "packages/q/"), ("packages/q/", "lib/")],
    head: None,
    block,
    import: |dice, _| import(dice),
    exports: |dice, _| exports(dice),
    exports_begin: "export {",
    class,
    class_begin: "export class ",
    rebinding: |dice, _| rebinding(dice),
    conditional: |dice, _| conditional(dice),
    broken: |dice, _| broken(dice),
    expression: |dice| expression(dice, 0) + ";",
    name_of: name,
    comment: "//",
    twin: |path| {
        let twins =
            [("/index.ts", ".ts"), (".ts", ".js"), (".js", "/index.ts"), (".mjs", ".ts"), (".cjs", ".js"), (".tsx", ".ts")];
        twins.iter().find_map(|(from, to)| path.strip_suffix(from).map(|stem| format!("{stem}{to}")))
    },
    rank: |_| 0,
};

/// Returns whether types may be written in the file.
fn typed(path: &str) -> bool {
    path.ends_with(".ts") || path.ends_with(".tsx")
}

fn name(dice: &mut Dice) -> &'static str {
    match dice.below(10) {
        0..=5 => dice.pick(FUNCTIONS),
        6..=8 => dice.pick(CLASSES),
        _ => dice.pick(VARIABLES),
    }
}

/// Half of the time it is a module that most trees have.
fn specifier(dice: &mut Dice) -> &'static str {
    if dice.chance(50) { dice.pick(&["./a", "./a", "./b", "../a", ".", "q"]) } else { dice.pick(SPECIFIERS) }
}

fn import(dice: &mut Dice) -> String {
    let from = specifier(dice);
    match dice.below(17) {
        0 => format!("import {} from \"{from}\";\n", name(dice)),
        1 => format!("import * as {} from \"{from}\";\n", dice.pick(NAMESPACES)),
        2 => format!("import type {{ {} }} from \"{from}\";\n", dice.pick(CLASSES)),
        3 => format!("import \"{from}\";\n"),
        4 => format!("import {{ default as {}, {} }} from \"{from}\";\n", name(dice), name(dice)),
        5 => format!("import {{ {} as {} }} from \"{from}\";\n", name(dice), name(dice)),
        6 => format!("const {{ {}: {} }} = require(\"{from}\");\n", name(dice), name(dice)),
        7 => format!("const {} = require(\"{from}\");\n", dice.pick(NAMESPACES)),
        9 | 10 => format!("import {{ {0} }} from \"{from}\";\n{0}.{1}();\n", dice.pick(CLASSES), dice.pick(METHODS)),
        11 => format!("import {{ {0} }} from \"{from}\";\n{0}();\n", dice.pick(FUNCTIONS)),
        8 => format!("import {} = require(\"{from}\");\n", dice.pick(NAMESPACES)),
        _ => format!("import {{ {} }} from \"{from}\";\n", name(dice)),
    }
}

fn exports(dice: &mut Dice) -> String {
    let from = specifier(dice);
    match dice.below(13) {
        0..=3 => format!("export * from \"{from}\";\n"),
        4 => format!("export * as {} from \"{from}\";\n", dice.pick(NAMESPACES)),
        5 => format!("export {{ {} as {} }} from \"{from}\";\n", name(dice), name(dice)),
        6 => format!("export {{ default as {} }} from \"{from}\";\n", name(dice)),
        7 => format!("export {{ {}, {} as {} }};\n", name(dice), name(dice), name(dice)),
        8 => format!("export default {};\n", name(dice)),
        9 => format!("module.exports = {{ {}, {}: {} }};\n", name(dice), name(dice), name(dice)),
        10 => format!("exports.{} = {};\n", name(dice), name(dice)),
        11 => format!("module.exports = require(\"{from}\");\n"),
        _ => format!("export {{ {} }} from \"{from}\";\n", name(dice)),
    }
}

fn expression(dice: &mut Dice, depth: usize) -> String {
    let inner = |dice: &mut Dice| if depth > 1 { String::new() } else { expression(dice, depth + 1) };
    match dice.below(19) {
        0..=4 => format!("{}()", name(dice)),
        5 => {
            let argument = inner(dice);
            format!("{}({argument})", name(dice))
        }
        6 | 7 => format!("{}.{}()", dice.pick(NAMESPACES), name(dice)),
        8 => format!("new {}().{}()", dice.pick(CLASSES), dice.pick(METHODS)),
        9 => format!("{}.{}()", dice.pick(CLASSES), dice.pick(METHODS)),
        10 | 11 => format!("{}.{}()", dice.pick(VARIABLES), dice.pick(METHODS)),
        12 => format!("this.{}()", dice.pick(METHODS)),
        13 => format!("super.{}()", dice.pick(METHODS)),
        14 => format!("(({}) => {})", name(dice), name(dice)),
        15 => format!("{}().{}()", name(dice), dice.pick(METHODS)),
        16 => format!("[x].map({})", name(dice)),
        17 => format!("import(\"{}\")", dice.pick(SPECIFIERS)),
        _ => name(dice).to_owned(),
    }
}

fn body(dice: &mut Dice, typed: bool) -> Vec<String> {
    let mut lines = Vec::new();
    for _ in 0..=dice.below(3) {
        lines.push(match dice.below(14) {
            0 => format!("const {} = {};", name(dice), expression(dice, 0)),
            1 => format!("{} = {};", dice.pick(FUNCTIONS), expression(dice, 0)),
            2 => format!("const {} = new {}();", dice.pick(VARIABLES), dice.pick(CLASSES)),
            3 if typed => format!("let {}: {} = {};", dice.pick(VARIABLES), dice.pick(CLASSES), expression(dice, 1)),
            4 => format!("for (const {} of {}) {{\n    {};\n}}", name(dice), expression(dice, 1), expression(dice, 1)),
            5 => format!("function {}() {{ return {}; }}", dice.pick(FUNCTIONS), expression(dice, 1)),
            6 => format!("const {{ {} }} = {};", name(dice), expression(dice, 1)),
            7 => format!("this.{} = {};", dice.pick(METHODS), expression(dice, 1)),
            8 => format!("{}.{} = {};", dice.pick(CLASSES), dice.pick(METHODS), name(dice)),
            9 => format!("if (x instanceof {}) {{\n    x.{}();\n}}", dice.pick(CLASSES), dice.pick(METHODS)),
            10 => format!("return {};", expression(dice, 0)),
            _ => format!("{};", expression(dice, 0)),
        });
    }
    lines
}

fn parameters(dice: &mut Dice, typed: bool) -> String {
    match dice.below(5) {
        0 => name(dice).to_owned(),
        1 => format!("y = {}", expression(dice, 1)),
        2 if typed => format!("x: {}", dice.pick(CLASSES)),
        3 if typed => format!("x: {}.{}", dice.pick(NAMESPACES), dice.pick(CLASSES)),
        _ => String::new(),
    }
}

fn function(dice: &mut Dice, typed: bool) -> String {
    let export = dice.pick(&["", "export ", "export ", "export default "]);
    let result = if typed && dice.chance(30) { format!(": {}", dice.pick(CLASSES)) } else { String::new() };
    let name = dice.pick(FUNCTIONS);
    match dice.below(6) {
        0 => format!("const {name} = ({}) => {{\n{}}};\n", parameters(dice, typed), indented(&body(dice, typed))),
        1 if typed => format!("{}function {name}(): void;\n", if export.contains("default") { "" } else { export }),
        _ => format!("{export}function {name}({}){result} {{\n{}}}\n", parameters(dice, typed), indented(&body(dice, typed))),
    }
}

fn class(dice: &mut Dice, path: &str) -> String {
    let typed = typed(path);
    if typed && dice.chance(20) {
        let extends = if dice.chance(40) { format!(" extends {}", dice.pick(CLASSES)) } else { String::new() };
        return format!(
            "export interface {}{extends} {{\n    {}(): {};\n}}\n",
            dice.pick(CLASSES),
            dice.pick(METHODS),
            dice.pick(CLASSES)
        );
    }
    let bases = match dice.below(7) {
        0 | 1 => format!(" extends {}", dice.pick(CLASSES)),
        2 => format!(" extends {}.{}", dice.pick(NAMESPACES), dice.pick(CLASSES)),
        3 if typed => format!(" implements {}", dice.pick(CLASSES)),
        _ => String::new(),
    };
    let mut lines = Vec::new();
    for _ in 0..=dice.below(2) {
        match dice.below(8) {
            0 => lines.push(format!("{} = {};", dice.pick(METHODS), name(dice))),
            1 if typed => lines.push(format!("x: {} = new {}();", dice.pick(CLASSES), dice.pick(CLASSES))),
            2 => lines.push(format!("{} = () => {};", dice.pick(METHODS), expression(dice, 1))),
            kind => {
                let modifier = dice.pick(&["", "", "static ", "static ", "get ", "async "]);
                let parameters = if kind == 3 && typed { "x: A" } else { "" };
                lines.push(format!("{modifier}{}({parameters}) {{", dice.pick(METHODS)));
                lines.extend(body(dice, typed).iter().flat_map(|text| text.lines()).map(|line| format!("    {line}")));
                lines.push("}".to_owned());
            }
        }
    }
    let export = dice.pick(&["export ", "export ", "", "export default "]);
    format!("{export}class {}{bases} {{\n{}}}\n", dice.pick(CLASSES), indented(&lines))
}

fn rebinding(dice: &mut Dice) -> String {
    match dice.below(10) {
        0 => format!("{}.{} = {};\n", dice.pick(NAMESPACES), name(dice), name(dice)),
        1 => format!("{}.{} = {};\n", dice.pick(CLASSES), dice.pick(METHODS), name(dice)),
        2 => format!("{} = {};\n", dice.pick(FUNCTIONS), expression(dice, 0)),
        3 => format!(
            "{}.prototype.{} = function () {{\n    {};\n}};\n",
            dice.pick(CLASSES),
            dice.pick(METHODS),
            expression(dice, 0)
        ),
        4 => {
            let (class, from) = (dice.pick(CLASSES), specifier(dice));
            format!("import {{ {class} }} from \"{from}\";\n{class}.{} = {};\n", dice.pick(METHODS), name(dice))
        }
        5 | 6 => plot(dice),
        7 | 8 => format!("import * as k from \"{}\";\nk.{} = {};\n", specifier(dice), dice.pick(FUNCTIONS), name(dice)),
        _ => format!("[{}] = [{}];\n", name(dice), name(dice)),
    }
}

fn conditional(dice: &mut Dice) -> String {
    match dice.below(3) {
        0 => format!("if (x) {{\n    {};\n}}\n", expression(dice, 0)),
        1 => format!("try {{\n    {};\n}} catch (x) {{\n    x.{}();\n}}\n", expression(dice, 0), dice.pick(METHODS)),
        _ => format!("declare global {{\n    function {}(): {};\n}}\n", dice.pick(FUNCTIONS), dice.pick(CLASSES)),
    }
}

/// Returns a part of a plot that several files have to play: one gives a name, one uses it, one writes to it.
fn plot(dice: &mut Dice) -> String {
    match dice.below(3) {
        0 => "export function f() {\n    g();\n}\n".to_owned(),
        1 => "import { f } from \"./a\";\nf();\n".to_owned(),
        _ => "import * as k from \"./a\";\nk.f = g;\n".to_owned(),
    }
}

fn block(dice: &mut Dice, path: &str) -> String {
    let typed = typed(path);
    match dice.below(46) {
        40..=45 => plot(dice),
        0..=10 => import(dice),
        11..=20 => function(dice, typed),
        21..=26 => class(dice, path),
        27..=30 => exports(dice),
        31..=33 => rebinding(dice),
        34 => conditional(dice),
        35 => format!("const {} = new {}();\n", dice.pick(VARIABLES), dice.pick(CLASSES)),
        36 => format!("export const {} = {{ {}() {{}}, {} }};\n", name(dice), dice.pick(METHODS), name(dice)),
        37 if typed => format!(
            "namespace N {{\n    export {}}}\n",
            function(dice, false).replace("export default ", "").replace("export ", "")
        ),
        38 => dice
            .pick(&["// # → — π\n", "/* over\nlines */\n", "const été = 1;\n", "\r\n", "// separators \u{2028} \u{85}\n"])
            .to_owned(),
        39 if typed => format!("declare const {}: {};\n", dice.pick(VARIABLES), dice.pick(CLASSES)),
        _ => format!("{};\n", expression(dice, 0)),
    }
}

fn broken(dice: &mut Dice) -> String {
    dice.pick(&["function (\n", "class\n", "f((\n", "`open\n", "const x = = 1;\n", "import from\n", "}\n", "if (x\n"]).to_owned()
}
