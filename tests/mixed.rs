//! A repository in several languages: answers come from all of them, and no edge leads from one into another.
//!
//! Invariant: equal names never join two languages, however much the trees here ask for it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde_json::Value;

use sextant::languages::REGISTRY;

use crate::sandbox::Sandbox;

/// Names and places that are equal in all languages, where a guess by name would join them.
const TEMPTING: &[(&str, &str)] = &[
    ("pyproject.toml", "[project]\nname = \"shop\"\n"),
    ("package.json", "{ \"name\": \"shop\", \"imports\": { \"#models\": \"./models.py\", \"#real\": \"./web/models.ts\" } }\n"),
    ("tsconfig.json", "{ \"compilerOptions\": { \"baseUrl\": \".\", \"allowJs\": true } }\n"),
    ("go.mod", "module shop\n"),
    ("Cargo.toml", "[package]\nname = \"shop\"\n\n[lib]\npath = \"utils.rs\"\n"),
    // The same stem, and the same names inside.
    (
        "utils.py",
        "import models\nfrom models import Order, parse\n\ndef parse(text): return models.parse(text)\nclass Order(models.Order):\n    def save(self): self.save(); parse('utils.parse'); Order().save()\n",
    ),
    (
        "utils.ts",
        "import { Order, parse } from './models';\nimport models from 'models';\nimport real from '#models';\nexport function run(x: Order) { x.save(); parse('utils.parse'); real(); models.parse(); }\n",
    ),
    (
        "utils.js",
        "const { Order, parse } = require('./utils');\nconst models = require('./models.py');\nexports.main = () => { new Order().save(); parse(); models.parse(); run(); };\n",
    ),
    (
        "utils.go",
        "package shop\n\nimport \"shop/models\"\n\nfunc Run(o models.Order) { o.Save(); models.Parse(\"utils.parse\"); parse(); save() }\n",
    ),
    (
        "utils.rs",
        "pub mod models;\nmod web;\nuse models::{Order, Parse, only_go, parse};\n\npub fn run(x: Order) { x.save(); x.Save(); parse(\"utils.parse\"); Parse(); only_go(); models::parse(\"\"); }\npub fn save(x: &models::Order) { x.save(); web::Order(); run(Order); }\n",
    ),
    // A package of Go beside a module of Python and a folder that TypeScript has an index in.
    (
        "models.py",
        "class Order:\n    def save(self): return parse(self)\ndef parse(text): return text\ndef Parse(): pass\nonly_python = 1\n",
    ),
    (
        "models/models.go",
        "package models\n\ntype Order struct{}\n\nfunc (o Order) Save() { Parse(\"\") }\n\nfunc Parse(text string) Order { return Order{} }\n\nvar only_go = 1\n",
    ),
    (
        "models/index.ts",
        "export class Order { save() { parse(this); } }\nexport function parse(x: unknown) { return x; }\nexport function Parse() {}\nexport default parse;\n",
    ),
    (
        "models.rs",
        "mod index;\npub struct Order;\nimpl Order { pub fn save(&self) { parse(\"\"); } }\npub fn parse(x: &str) -> &str { x }\npub const only_rust: u8 = 1;\n",
    ),
    ("web/models.ts", "export default function Order() {}\nexport const only_typescript = 1;\n"),
    // Each asks for what only another language has.
    (
        "asks.py",
        "import web.models\nimport models.index\nfrom models import only_go, only_typescript, only_rust, Save\nimport utils\nfrom web import models as other\nonly_go()\nutils.run()\nother.Order()\n",
    ),
    (
        "asks.ts",
        "import { only_python, only_go } from './models';\nimport * as python from './models.py';\nimport * as go from './models/models.go';\nimport { run } from './utils';\nimport shop from 'shop';\nimport '#real';\nonly_python(); only_go(); python.parse(); go.Parse(); run(); shop(); Save();\nfetch('/models/parse', { body: JSON.stringify({ order: 'Order.save' }) });\n",
    ),
    (
        "asks.go",
        "package shop\n\nimport (\n\tjs \"shop/web\"\n\t\"shop/utils\"\n)\n\nvar _ = `{\"call\": \"models.parse\"}`\n\nfunc ask() { js.Order(); utils.Parse(); only_python(); run(); utils.save() }\n",
    ),
    (
        "asks.rs",
        "mod utils;\nuse shop::models::{only_python, only_typescript};\nuse utils::*;\nextern crate shop;\nfn ask() { shop::run(shop::models::Order); utils::parse(); only_python(); Save(); Order.save(); }\n",
    ),
    // Globals of a script are seen everywhere in their family, and nowhere else.
    (
        "globals.d.ts",
        "declare function parse(x: string): Order;\ndeclare class Order { save(): void }\ndeclare function ask(): void;\n",
    ),
    ("script.js", "parse(''); ask(); only_go(); new Order().save();\n"),
    ("test_utils.py", "from utils import parse\ndef test_parse(): parse('')\n"),
    ("utils.test.ts", "import { run } from './utils';\ntest('run', () => run());\n"),
    ("utils_test.go", "package shop\n\nimport \"testing\"\n\nfunc TestRun(t *testing.T) { Run(nil) }\n"),
];

fn tempting() -> Sandbox {
    let sandbox = Sandbox::new();
    for (path, text) in TEMPTING {
        sandbox.write(path, text);
    }
    indexed(sandbox)
}

/// The shop that the README asks about.
fn demo() -> Sandbox {
    fn copy(sandbox: &Sandbox, from: &Path, to: &str) {
        for entry in fs::read_dir(from).expect("the demo is readable").flatten() {
            let name = entry.file_name().into_string().expect("its names are text");
            let to = if to.is_empty() { name } else { format!("{to}/{name}") };
            match entry.path().is_dir() {
                true => copy(sandbox, &entry.path(), &to),
                false => sandbox.write(&to, fs::read(entry.path()).expect("the demo is readable")),
            }
        }
    }
    let sandbox = Sandbox::new();
    copy(&sandbox, &Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios/demo"), "");
    indexed(sandbox)
}

fn indexed(sandbox: Sandbox) -> Sandbox {
    sandbox.commit_all();
    sandbox.sextant(&["index", "--quiet"]).ended(0);
    sandbox
}

/// Returns how many edges lead from each family of languages into which.
fn joined(sandbox: &Sandbox) -> BTreeMap<(&'static str, &'static str), usize> {
    let family = |row: &Value| {
        let language = row["language"].as_str().expect("a node has a language");
        REGISTRY.iter().find(|known| known.name() == language).map_or("text", |language| language.family())
    };
    let rows: Vec<Value> =
        sandbox.sextant(&["export"]).ended(0).out.lines().map(|row| serde_json::from_str(row).expect("JSON")).collect();
    let nodes: BTreeMap<&str, &'static str> =
        rows.iter().filter(|row| row["row"] == "node").map(|row| (row["id"].as_str().expect("an id"), family(row))).collect();
    let mut joined = BTreeMap::new();
    for edge in rows.iter().filter(|row| row["row"] == "edge") {
        let end = |name: &str| nodes[edge[name].as_str().expect("an id")];
        *joined.entry((end("source_id"), end("target_id"))).or_default() += 1;
    }
    joined
}

#[track_caller]
fn check_apart(sandbox: &Sandbox, expected: &[&str]) {
    let joined = joined(sandbox);
    for ((from, to), edges) in &joined {
        assert_eq!(from, to, "{edges} edges");
        assert!(*edges > 5, "only {edges} edges in {from}: too few to prove anything");
    }
    let families: BTreeSet<&str> = joined.keys().map(|(from, _)| *from).collect();
    for family in expected {
        assert!(families.contains(family), "{families:?}");
    }
}

#[test]
fn no_edge_joins_two_languages() {
    check_apart(&tempting(), &["python", "ecmascript", "go", "rust"]);
    check_apart(&demo(), &["python", "ecmascript", "go"]);
}

/// Edits that put a name or a file of one language in the way of another join nothing, in a sync neither.
#[test]
fn no_sync_joins_two_languages() {
    let sandbox = tempting();
    for gone in ["models.py", "models/index.ts", "utils.go", "globals.d.ts", "models.rs"] {
        fs::remove_file(sandbox.tree().join(gone)).expect("the file is there");
        sandbox.sextant(&["sync", "--quiet"]).ended(0);
        for ((from, to), edges) in joined(&sandbox) {
            assert_eq!(from, to, "{edges} edges without {gone}");
        }
    }
}

/// Returns the paths of an answer's items, sorted, each once.
fn paths(sandbox: &Sandbox, arguments: &[&str]) -> Vec<String> {
    let answer = sandbox.sextant(&[arguments, &["--json"]].concat()).ended(0).json();
    let items = answer["items"].as_array().expect("an answer has items");
    let paths: BTreeSet<String> = items.iter().map(|item| item["path"].as_str().expect("a path").to_owned()).collect();
    paths.into_iter().collect()
}

#[test]
fn the_demo_answers_in_each_of_its_languages() {
    let sandbox = demo();
    let check = |arguments: &[&str], expected: &[&str]| assert_eq!(paths(&sandbox, arguments), expected, "{arguments:?}");
    check(&["callers", "price_line"], &["service/shop/cart.py", "service/tests/test_pricing.py"]);
    check(&["callers", "postOrder"], &["web/src/cart.ts"]);
    check(&["callers", "Shelf.Take"], &["worker/main.go", "worker/stock/shelf_test.go"]);
    // The service and the page both have a cart, and each call is of one of them.
    check(&["callers", "web/src/cart.ts::Cart.add"], &["web/src/page.tsx"]);
    check(&["callers", "service/shop/cart.py::Cart.add"], &["service/tests/test_orders.py"]);
    check(&["impact", "postOrder"], &["web/src/api.ts", "web/src/cart.ts", "web/src/page.tsx"]);
    check(&["impact", "NewShelf"], &["worker/main.go", "worker/stock/shelf.go", "worker/stock/shelf_test.go"]);
    check(&["tests", "service/shop/money.py"], &["service/tests/test_orders.py", "service/tests/test_pricing.py"]);
    check(&["tests", "worker/stock/shelf.go"], &["worker/stock/shelf_test.go"]);
    for (query, suffixes) in
        [("shelf", &[".go"][..]), ("Cart", &[".py", ".ts"]), ("Order", &[".py", ".ts"]), ("checkout", &[".ts"])]
    {
        let explored = paths(&sandbox, &["explore", query]);
        for suffix in suffixes {
            assert!(explored.iter().any(|path| path.ends_with(suffix)), "{query}: {explored:?}");
        }
    }
    for path in ["service/shop/money.py", "web/src/api.ts", "worker/stock/shelf.go"] {
        let place = sandbox.tree().join(path);
        let text = fs::read_to_string(&place).expect("the demo is text");
        fs::write(place, text + "\n").expect("the tree can be written");
    }
    sandbox.sextant(&["sync", "--quiet"]).ended(0);
    check(&["changes"], &["service/shop/money.py", "web/src/api.ts", "worker/stock/shelf.go"]);
}
