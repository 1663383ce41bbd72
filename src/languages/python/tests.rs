//! The rules of Python, each shown on the smallest snippet: a tree of files in, the edges as text out.
//!
//! Must not know the database: a look-up that computes everything anew stands in for it. Invariant: what is expected names every edge and
//! every diagnostic whose name is asked for.

use std::sync::Arc;

use super::Python;
use crate::languages::fixture::{self, Tree};
use crate::languages::{ExtractError, LanguageSupport, ModuleKey};
use crate::model::{FileFacts, ParseStatus, RepoPath};

/// Checks the edges and candidate-less diagnostics whose token is one of `names` (separated by spaces).
#[track_caller]
fn check(tree: &str, names: &str, expected: &str) {
    fixture::check(&Python, tree, names, expected);
}

fn facts(source: &str) -> FileFacts {
    Python.extract(source, "python", &mut || false).expect("nothing stops it")
}

#[test]
fn locals_and_parameters_shadow() {
    let shadows = [
        "def outer(send): return send(1)",
        "def outer():\n    send = 1\n    send(1)",
        "def outer():\n    for send in x: send(1)",
        "def outer(): return [send(1) for send in x]",
        "def outer():\n    try: pass\n    except E as send: send(1)",
        "def outer():\n    with x as send: send(1)",
        "def outer():\n    match x:\n        case [send]: send(1)",
        "def outer():\n    if (send := x): send(1)",
        "def outer():\n    send(1)\n    del send",
        "f = lambda send: send(1)",
        "def outer():\n    import send\n    return 1",
        "def outer(send):\n    def inner():\n        nonlocal send\n        send(1)",
    ];
    for shadow in shadows {
        let tree = format!("//- a.py\ndef send(x): pass\n{shadow}\n");
        let found = Tree::new(&Python, &tree).edges(&["send"]);
        assert!(!found.contains("a.py:send "), "{shadow}\n{found}");
    }
}

#[test]
fn class_bodies_are_not_closed_over() {
    check(
        "//- a.py
def send(): pass
class C:
    def send(self): send()
    alias = send
    def other(self):
        global send
        send()
",
        "send",
        "
        a.py:3:20 send calls a.py:send resolved_static lexical_binding
        a.py:4:12 send references a.py:C.send resolved_static lexical_binding
        a.py:7:8 send calls a.py:send resolved_static lexical_binding
        ",
    );
}

#[test]
fn decorators_defaults_and_bases_belong_to_the_scope_around() {
    check(
        "//- a.py
def d(x): return x
class B: pass
class C(B):
    def B(self): pass
    @d
    def m(self, d=d) -> 'B': return d
",
        "d B",
        "
        a.py:3:8 B inherits a.py:B resolved_static lexical_binding
        a.py:5:5 d calls a.py:d resolved_static lexical_binding
        a.py:6:18 d references a.py:d resolved_static lexical_binding
        a.py:6:25 B references a.py:C.B resolved_static lexical_binding
        ",
    );
}

#[test]
fn a_name_defined_twice() {
    check(
        "//- a.py
def f(): pass
f()
def f(): pass
f()
def g(): f()
",
        "f",
        "
        a.py:2:0 f calls a.py:f resolved_static lexical_binding
        a.py:4:0 f calls a.py:f#1 resolved_static lexical_binding
        a.py:5:9 f calls a.py:f#1 resolved_static lexical_binding
        ",
    );
}

#[test]
fn a_definition_that_is_wrapped_afterwards() {
    check(
        "//- a.py
class A: pass
A = wrap(A)
A()
def g(): A()
",
        "A",
        "
        a.py:2:9 A references a.py:A resolved_static lexical_binding
        a.py:3:0 A calls a.py:A candidate conditional_binding
        a.py:3:0 A calls a.py:A#1 candidate conditional_binding
        a.py:4:9 A calls a.py:A candidate conditional_binding
        a.py:4:9 A calls a.py:A#1 candidate conditional_binding
        ",
    );
}

#[test]
fn conditional_arms_are_candidates_and_one_arm_is_not() {
    check(
        "//- a.py
try:
    from fast import run
except ImportError:
    def run(): pass
run()
if x:
    def once(): pass
    once()
once()
if y:
    def two(): pass
else:
    def two(): pass
    two()
two()
//- fast.py
def run(): pass
",
        "run once two",
        "
        a.py:2:21 run imports fast.py:run resolved_static explicit_import
        a.py:5:0 run calls a.py:run candidate conditional_binding
        a.py:5:0 run calls fast.py:run candidate conditional_binding
        a.py:8:4 once calls a.py:once resolved_static lexical_binding
        a.py:9:0 once calls a.py:once resolved_static lexical_binding
        a.py:14:4 two calls a.py:two#1 resolved_static lexical_binding
        a.py:15:0 two calls a.py:two candidate conditional_binding
        a.py:15:0 two calls a.py:two#1 candidate conditional_binding
        ",
    );
}

#[test]
fn type_checking_arms_decide_annotations() {
    check(
        "//- a.py
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    from b import T
else:
    T = object
def f(x: T): return T
//- b.py
class T: pass
",
        "T",
        "
        a.py:3:18 T imports b.py:T resolved_static explicit_import
        a.py:6:9 T references b.py:T resolved_static explicit_import
        a.py:6:20 T references a.py:T candidate conditional_binding
        a.py:6:20 T references b.py:T candidate conditional_binding
        ",
    );
}

#[test]
fn imports_of_every_form() {
    check(
        "//- app/main.py
import app.util
import app.util as u
from app import util
from app.util import greet as hi
from . import util as v
from .util import greet
import json
from app.util import missing
from ... import beyond
app.util.greet()
u.greet()
util.greet()
hi()
v.greet()
greet()
//- app/__init__.py
//- app/util.py
def greet(): pass
",
        "app util greet hi json missing u v ... .",
        "
        app/main.py:1:11 util imports app/util.py resolved_static explicit_import
        app/main.py:2:11 util imports app/util.py resolved_static explicit_import
        app/main.py:3:5 app imports app/__init__.py resolved_static explicit_import
        app/main.py:3:16 util imports app/util.py resolved_static explicit_import
        app/main.py:4:9 util imports app/util.py resolved_static explicit_import
        app/main.py:4:21 greet imports app/util.py:greet resolved_static explicit_import
        app/main.py:5:5 . imports app/__init__.py resolved_static explicit_import
        app/main.py:5:14 util imports app/util.py resolved_static explicit_import
        app/main.py:6:6 util imports app/util.py resolved_static explicit_import
        app/main.py:6:18 greet imports app/util.py:greet resolved_static explicit_import
        app/main.py:7:7 json imports external_import
        app/main.py:8:9 util imports app/util.py resolved_static explicit_import
        app/main.py:8:21 missing imports unresolved_export
        app/main.py:9:5 ... imports unresolved_import
        app/main.py:10:9 greet calls app/util.py:greet resolved_static module_export
        app/main.py:11:2 greet calls app/util.py:greet resolved_static module_export
        app/main.py:12:5 greet calls app/util.py:greet resolved_static module_export
        app/main.py:13:0 hi calls app/util.py:greet resolved_static explicit_import
        app/main.py:14:2 greet calls app/util.py:greet resolved_static module_export
        app/main.py:15:0 greet calls app/util.py:greet resolved_static explicit_import
        ",
    );
}

#[test]
fn star_imports_obey_all_and_what_the_module_has() {
    check(
        "//- impl.py
__all__ = ['pub', 'ghost']
__all__ += ['late']
def pub(): pass
def hid(): pass
def late(): pass
//- other.py
def hid(): pass
def _private(): pass
//- use.py
from other import hid
from impl import *
from other import *
pub(); hid(); late(); ghost(); _private()
",
        "pub hid late ghost _private",
        "
        use.py:1:18 hid imports other.py:hid resolved_static explicit_import
        use.py:4:0 pub calls impl.py:pub resolved_static wildcard_import
        use.py:4:7 hid calls other.py:hid resolved_static wildcard_import
        use.py:4:14 late calls impl.py:late resolved_static wildcard_import
        use.py:4:22 ghost calls unresolved_name
        use.py:4:31 _private calls unresolved_name
        ",
    );
}

#[test]
fn star_imports_from_outside_downgrade_what_they_may_overwrite() {
    check(
        "//- a.py
def f(): pass
from outside import *
def g(): pass
f(); g(); h()
",
        "f g h",
        "
        a.py:4:0 f calls a.py:f candidate wildcard_import
        a.py:4:5 g calls a.py:g resolved_static lexical_binding
        a.py:4:10 h calls wildcard_import
        ",
    );
}

#[test]
fn star_cycles_end_alike_from_every_entry() {
    let tree = "//- a.py
from b import *
def fa(): pass
//- b.py
from c import *
def fb(): pass
//- c.py
from a import *
def fc(): pass
//- use.py
import a, b, c
a.fc(); b.fa(); c.fb()
";
    check(
        tree,
        "fa fb fc",
        "
        use.py:2:2 fc calls c.py:fc resolved_static wildcard_import
        use.py:2:10 fa calls a.py:fa resolved_static wildcard_import
        use.py:2:18 fb calls b.py:fb resolved_static wildcard_import
        ",
    );
    let tree = Tree::new(&Python, tree);
    let key = |path: &str| ModuleKey(path.into());
    let component = [key("a.py"), key("b.py"), key("c.py")];
    let forward = Python.solve_exports(&component, &tree);
    let backward = Python.solve_exports(&[key("c.py"), key("b.py"), key("a.py")], &tree);
    assert!(forward.iter().eq(backward.iter().rev()));
}

#[test]
fn a_cycle_of_imports_binds_nothing() {
    check(
        "//- a.py
from b import x
//- b.py
from a import x
",
        "x",
        "
        a.py:1:14 x imports cyclic_binding
        b.py:1:14 x imports cyclic_binding
        ",
    );
}

#[test]
fn reexports_lead_to_the_definition() {
    check(
        "//- pyproject.toml
//- src/pkg/__init__.py
from .m import fn
//- src/pkg/m.py
def fn(): pass
//- tests/test_m.py
from pkg import fn
from pkg.m import fn as alias
fn(); alias()
",
        "fn alias",
        "
        src/pkg/__init__.py:1:15 fn imports src/pkg/m.py:fn resolved_static explicit_import
        tests/test_m.py:1:16 fn imports src/pkg/m.py:fn resolved_static explicit_import
        tests/test_m.py:2:18 fn imports src/pkg/m.py:fn resolved_static explicit_import
        tests/test_m.py:3:0 fn calls src/pkg/m.py:fn resolved_static explicit_import
        tests/test_m.py:3:6 alias calls src/pkg/m.py:fn resolved_static explicit_import
        ",
    );
}

#[test]
fn namespace_packages_and_scripts_find_their_neighbours() {
    check(
        "//- ns/brain.py
def think(): pass
//- ns/app.py
from . import brain
brain.think()
//- tools/log.py
def append(x): pass
//- tools/run.py
import log
log.append(1)
def f(d): d.setdefault(k, []).append(v)
",
        "think append",
        "
        ns/app.py:2:6 think calls ns/brain.py:think resolved_static module_export
        tools/run.py:2:4 append calls tools/log.py:append resolved_static module_export
        tools/run.py:3:30 append calls dynamic_receiver
        ",
    );
}

#[test]
fn source_roots() {
    let text = "//- lib/m.py
def f(): pass
//- src/m.py
def f(): pass
//- use.py
from m import f
";
    let mut tree = Tree::new(&Python, text);
    tree.source_roots = Some(Arc::from([Arc::from("lib"), Arc::from("src")]));
    let found = tree.edges(&["f"]);
    assert_eq!(
        found,
        "use.py:1:14 f imports lib/m.py:f candidate ambiguous_binding\nuse.py:1:14 f imports src/m.py:f candidate ambiguous_binding\n"
    );
    check(
        "//- one/setup.py
//- one/m.py
def f(): pass
//- one/use.py
from m import f
//- two/setup.cfg
//- two/src/m.py
def f(): pass
//- two/tests/use.py
from m import f
",
        "f",
        "
        one/use.py:1:14 f imports one/m.py:f resolved_static explicit_import
        two/tests/use.py:1:14 f imports two/src/m.py:f resolved_static explicit_import
        ",
    );
}

#[test]
fn stubs_belong_to_their_source() {
    check(
        "//- m.py
def f(): pass
//- m.pyi
def f() -> int: ...
def only_described() -> int: ...
//- use.py
from m import f, only_described
",
        "f only_described",
        "
        use.py:1:14 f imports m.py:f resolved_static explicit_import
        use.py:1:17 only_described imports m.pyi:only_described resolved_static explicit_import
        ",
    );
}

#[test]
fn writes_from_outside_downgrade() {
    check(
        "//- m.py
def f(): pass
def g(): pass
class C:
    def a(self): pass
    def b(self): pass
//- patch.py
import m
def apply():
    from m import C
    m.f = None
    C.a = None
//- use.py
import m
m.f(); m.g(); m.C.a(); m.C.b()
",
        "f g a b",
        "
        use.py:2:2 f calls m.py:f candidate attribute_rebinding
        use.py:2:9 g calls m.py:g resolved_static module_export
        use.py:2:18 a calls m.py:C.a candidate attribute_rebinding
        use.py:2:27 b calls m.py:C.b resolved_static class_attribute
        ",
    );
}

#[test]
fn receivers() {
    check(
        "//- base.py
class Base:
    def run(self): return self
    def stop(self): pass
    def __enter__(self): return self
//- a.py
from typing import Iterator, Optional
from base import Base
class Child(Base):
    def run(self):
        self.stop()
        super().run()
        self.run()
    @classmethod
    def make(cls): return cls()
    @property
    def peer(self) -> 'Child': return self
def f(a: Child, b: Optional[Base], c, many: Iterator[Child]):
    a.stop()
    b.run().stop()
    c.stop()
    x = Child()
    x.run()
    Child.make().peer.run()
    for one in many: one.stop()
    with Base() as entered: entered.stop()
    if isinstance(c, Child):
        c.run()
class Holder:
    child: Child
    def __init__(self, given: Base):
        self.given = given
        self.made = Child()
    def go(self):
        self.child.run(); self.given.run(); self.made.run()
",
        "run stop",
        "
        a.py:5:13 stop calls base.py:Base.stop candidate self_member
        a.py:6:16 run calls base.py:Base.run candidate super_member
        a.py:7:13 run calls a.py:Child.run candidate self_member
        a.py:13:6 stop calls base.py:Base.stop candidate annotation_receiver
        a.py:14:6 run calls base.py:Base.run candidate annotation_receiver
        a.py:14:12 stop calls base.py:Base.stop candidate constructor_receiver
        a.py:15:6 stop calls dynamic_receiver
        a.py:17:6 run calls a.py:Child.run candidate constructor_receiver
        a.py:18:22 run calls a.py:Child.run candidate receiver_hint
        a.py:19:25 stop calls base.py:Base.stop candidate constructor_receiver
        a.py:20:36 stop calls base.py:Base.stop candidate constructor_receiver
        a.py:22:10 run calls a.py:Child.run candidate annotation_receiver
        a.py:29:19 run calls a.py:Child.run candidate receiver_hint
        a.py:29:37 run calls base.py:Base.run candidate receiver_hint
        a.py:29:54 run calls a.py:Child.run candidate receiver_hint
        ",
    );
}

#[test]
fn the_nearest_base_has_the_member() {
    check(
        "//- a.py
class Top:
    def m(self): pass
class Left(Top): pass
class Right(Top):
    def m(self): pass
class Bottom(Left, Right):
    def go(self): self.m()
",
        "m",
        "a.py:7:23 m calls a.py:Right.m candidate self_member",
    );
}

#[test]
fn an_untyped_receiver_is_told_unknown() {
    check(
        "//- a.py
class A:
    def total(self): pass
class B:
    def total(self): pass
def f(x): return x.total()
def g(x: B): return x.total()
",
        "total",
        "
        a.py:5:19 total calls dynamic_receiver
        a.py:6:22 total calls a.py:B.total candidate annotation_receiver
        ",
    );
}

#[test]
fn partial_files_prove_nothing() {
    check(
        "//- bad.py
def f(): pass
f()
def broken(:
    pass
//- use.py
from bad import f
f()
",
        "f",
        "
        bad.py:2:0 f calls bad.py:f candidate partial_parse
        use.py:1:16 f imports bad.py:f candidate partial_parse
        use.py:2:0 f calls bad.py:f candidate partial_parse
        ",
    );
}

#[test]
fn annotations_in_strings_have_exact_places() {
    check(
        "//- a.py
class A: pass
def f(x: 'Optional[A]', y: \"dict[str, 'A']\", z: Literal['A']): pass
",
        "A",
        "
        a.py:2:19 A references a.py:A resolved_static lexical_binding
        a.py:2:39 A references a.py:A resolved_static lexical_binding
        ",
    );
}

#[test]
fn byte_order_mark_carriage_returns_and_foreign_letters() {
    check(
        "//- bom.py\n\u{feff}def größe(): pass\r\n\u{c}größe()\r\n//- mac.py\ndef f(): pass\rf()\r# π →\rf()\r",
        "größe f",
        "
        bom.py:2:1 größe calls bom.py:größe resolved_static lexical_binding
        mac.py:1:14 f calls mac.py:f resolved_static lexical_binding
        mac.py:1:27 f calls mac.py:f resolved_static lexical_binding
        ",
    );
}

#[test]
fn an_edit_of_a_body_leaves_the_surface_alone() {
    let before = facts("import x\ndef greet(name):\n    return name\nclass C:\n    def m(self): return 1\n");
    let after = facts(
        "import x\n\n# Moved.\ndef greet(name):\n    y = 1\n    return x.helper(name.upper())\nclass C:\n    def m(self):\n        return len(self)\n",
    );
    assert_eq!(before.surface, after.surface);
    let patched = facts("import x\ndef greet(name):\n    x.f = name\n    return name\nclass C:\n    def m(self): return 1\n");
    assert_ne!(before.surface, patched.surface);
}

#[test]
fn hostile_nesting_is_passed_over() {
    let many = 100_000;
    for source in [
        format!("{}x{}", "(".repeat(many), ")".repeat(many)),
        "(".repeat(many),
        format!("{}x{}", "[".repeat(10_000), "]".repeat(10_000)),
        format!("x = {}1", "-".repeat(20_000)),
        format!("x = {}1", "not ".repeat(20_000)),
        format!("x{}", ".y()".repeat(20_000)),
        format!("x = a{}", " + a".repeat(20_000)),
        format!("x = a{}", " or a".repeat(20_000)),
        format!("x: '{}'", "[".repeat(many)),
        format!("x = {}1", "lambda: ".repeat(20_000)),
        format!("x = {}1", "1 if a else ".repeat(10_000)),
        format!("{}pass", "if x: ".repeat(1_000)),
        (0..90).map(|depth| format!("{}if x:\n", " ".repeat(depth))).collect::<String>() + &" ".repeat(90) + "pass\n",
        format!("x = 1\n{}", "x = x.y\n".repeat(3_000)),
        // Each line doubles what the one before holds.
        format!(
            "class C:\n    def go(self): pass\na0 = C()\n{}x = a40 if f else (a40, a40)\nx.go()",
            (0..40).map(|n| format!("a{} = (a{n}, a{n})\na{n}.go()\n", n + 1)).collect::<String>()
        ),
    ] {
        let tree = Tree::new(&Python, &format!("//- a.py\ndef f(): pass\n{source}\n"));
        tree.edges(&[]);
    }
}

#[test]
fn a_parse_can_be_stopped_and_the_next_one_is_whole() {
    let long = "x = 1\n".repeat(200_000);
    assert_eq!(Python.extract(&long, "python", &mut || true), Err(ExtractError::Stopped));
    let facts = facts("def f(): pass\n");
    assert_eq!(facts.parse, ParseStatus::Ok);
    assert_eq!(facts.definitions.len(), 1);
}

#[test]
fn module_names() {
    let tree = Tree::new(&Python, "//- pyproject.toml\n//- src/pkg/__init__.py\n//- src/pkg/m.py\n//- tests/t.py\n");
    let name = |path: &str| Python.module_name(&RepoPath::parse(path).expect("valid"), &tree);
    assert_eq!(name("src/pkg/__init__.py").as_deref(), Some("pkg"));
    assert_eq!(name("src/pkg/m.py").as_deref(), Some("pkg.m"));
    assert_eq!(name("tests/t.py").as_deref(), Some("tests.t"));
}
