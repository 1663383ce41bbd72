//! The walk on small graphs drawn by hand: which nodes it comes to, by which path, and what it says of what it left out.

use std::fmt::Write as _;

use super::*;
use crate::query::tests::graph::{self, Drawn};
use crate::query::{Selection, select};

/// `path:name` of a node, `path` of a file.
fn named(node: &NodeRow) -> String {
    if node.kind == SymbolKind::File { node.path.to_string() } else { format!("{}:{}", node.path, node.qualified_name) }
}

fn outline(reach: &Reach) -> String {
    let mut text = String::new();
    for reached in &reach.reached {
        let sure = if reached.strength.resolution() == Resolution::ResolvedStatic { "" } else { "?" };
        let through = if reached.strength.is_through() { "~" } else { "" };
        let steps: Vec<&str> = reached.path.iter().map(|step| step.edge.kind.as_str()).collect();
        writeln!(text, "{}{sure}{through} {}", named(&reached.node), steps.join(" ")).expect("a string");
        // Each step begins where the one before ended, and the last ends at the node.
        assert!(reached.path.windows(2).all(|pair| pair[0].source == pair[1].target), "{text}");
        assert_eq!(reached.path.last().map(|step| step.source), Some(reached.node.symbol));
    }
    let words = [(reach.cuts.depth, "depth"), (reach.cuts.nodes, "nodes"), (reach.cuts.edges, "edges")];
    for (_, word) in words.into_iter().filter(|(cut, _)| *cut) {
        writeln!(text, "cut by {word}").expect("a string");
    }
    if reach.boundary_edges > 0 {
        writeln!(text, "{} outside", reach.boundary_edges).expect("a string");
    }
    text
}

fn walk_from(generation: &Generation, seed: &str, prefix: &str, depth: u32) -> Reach {
    let prefix = PathPrefix::parse(prefix).expect("valid");
    let text = seed.replacen(':', "::", 1);
    let Selection::One(seed) = select(generation, &text, &PathPrefix::default()).expect("readable") else { panic!("{seed}") };
    let seeds = open(generation, &seed).expect("readable");
    reach(generation, &seeds, &USES, &prefix, depth).expect("readable")
}

fn check(text: &str, seed: &str, depth: u32, expected: &str) {
    check_below(text, seed, "", depth, expected);
}

fn check_below(text: &str, seed: &str, prefix: &str, depth: u32, expected: &str) {
    let expected: Vec<&str> = expected.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    graph::with_graph(graph::parse(text), |generation| {
        let found = outline(&walk_from(generation, seed, prefix, depth));
        assert_eq!(found.lines().collect::<Vec<_>>(), expected, "from {seed}");
    });
}

#[test]
fn cycles_and_diamonds_never_multiply() {
    let diamond = "a.py: f\nb.py: l r\nc.py: top\n\
        b.py:l calls a.py:f\nb.py:r calls a.py:f\nc.py:top calls b.py:l\nc.py:top calls b.py:r\n";
    check(diamond, "a.py:f", 2, "a.py~ contains\n b.py:l calls\n b.py:r calls\n b.py~ calls contains\n c.py:top calls calls");
    let cycle = "a.py: f g h\na.py:g calls a.py:f\na.py:h calls a.py:g\na.py:f calls a.py:h\na.py:f calls a.py:f\n";
    check(cycle, "a.py:f", 5, "a.py~ contains\n a.py:g calls\n a.py:h calls calls");
}

#[test]
fn the_stronger_path_is_reported_not_the_shorter() {
    let both = "a.py: f\nb.py: g mid\n\
        b.py:g calls a.py:f ?\nb.py:g calls b.py:mid\nb.py:mid references a.py:f\n";
    check(both, "a.py:f", 3, "a.py~ contains\n b.py:mid references\n b.py~ references contains\n b.py:g references calls");
    // At depth 1 only the weaker one is there, and what it leads to stays weak.
    check(both, "a.py:f", 1, "a.py~ contains\n b.py:mid references\n b.py:g? calls");
    let after = "a.py: f\nb.py: g h\nb.py:g calls a.py:f ?\nb.py:h calls b.py:g\n";
    check(after, "a.py:f", 2, "a.py~ contains\n b.py:g? calls\n b.py?~ calls contains\n b.py:h? calls calls");
}

#[test]
fn a_weaker_but_shorter_path_goes_on_where_the_stronger_ends() {
    // `g` is reached for certain at the last step; its user only by the shorter, weaker way.
    let text = "a.py: f\nb.py: one two g user\n\
        b.py:one calls a.py:f\nb.py:two calls b.py:one\nb.py:g calls b.py:two\nb.py:g calls a.py:f ?\nb.py:user calls b.py:g\n";
    check(
        text,
        "a.py:f",
        3,
        "a.py~ contains\n b.py:one calls\n b.py~ calls contains\n b.py:two calls calls\n b.py:g calls calls calls\n\
         b.py:user? calls calls",
    );
}

#[test]
fn a_class_opens_its_members_and_a_method_no_siblings() {
    let text = "a.py: C C.m C.n D\nb.py: uses_m uses_n uses_c\n\
        b.py:uses_m calls a.py:C.m\nb.py:uses_n calls a.py:C.n\nb.py:uses_c calls a.py:C\n";
    check(text, "a.py:C", 2, "a.py~ contains\n b.py:uses_m calls\n b.py:uses_n calls\n b.py:uses_c calls\n b.py~ calls contains");
    check(
        text,
        "a.py:C.m",
        2,
        "a.py:C~ contains\n b.py:uses_m calls\n a.py~ contains contains\n b.py~ calls contains\n\
         b.py:uses_c~ contains calls",
    );
    check(text, "a.py", 1, "b.py:uses_m calls\n b.py:uses_n calls\n b.py:uses_c calls");
}

#[test]
fn a_file_hands_on_to_its_importers_less_surely() {
    let text = "a.py: f\nb.py:\nc.py:\nb.py imports a.py:f\nc.py imports b.py\n";
    check(text, "a.py:f", 2, "a.py~ contains\n b.py imports\n c.py~ imports imports");
    check(text, "a.py", 2, "b.py imports\n c.py~ imports imports");
    check(text, "b.py", 2, "c.py imports");
}

#[test]
fn the_depth_is_a_limit_only_where_more_would_come() {
    let chain = "a.py: f g h\na.py:g calls a.py:f\na.py:h calls a.py:g\n";
    check(chain, "a.py:f", 1, "a.py~ contains\n a.py:g calls\n cut by depth");
    check(chain, "a.py:f", 2, "a.py~ contains\n a.py:g calls\n a.py:h calls calls");
    // The class around the last user is nothing new, but whoever uses that class is.
    let class = "a.py: f C C.m\nb.py: g\na.py:C.m calls a.py:f\n";
    check(class, "a.py:f", 1, "a.py~ contains\n a.py:C.m calls");
    check(&format!("{class}b.py:g calls a.py:C\n"), "a.py:f", 1, "a.py~ contains\n a.py:C.m calls\n cut by depth");
    // A cycle back to the seed is no work left.
    let back = "a.py: f g\na.py:g calls a.py:f\na.py:f calls a.py:g\n";
    check(back, "a.py:f", 1, "a.py~ contains\n a.py:g calls");
}

#[test]
fn the_prefix_is_a_wall() {
    let text = "in/a.py: f h\nin/b.py: g\nout/o.py: o\n\
        out/o.py:o calls in/a.py:f\nin/b.py:g calls out/o.py:o\nin/a.py:h calls in/a.py:f\n";
    check_below(text, "in/a.py:f", "in", 5, "in/a.py~ contains\n in/a.py:h calls\n 1 outside");
    check_below(text, "in/a.py:f", "in/a.py", 5, "in/a.py~ contains\n in/a.py:h calls\n 1 outside");
    check(
        text,
        "in/a.py:f",
        5,
        "in/a.py~ contains\n in/a.py:h calls\n out/o.py:o calls\n in/b.py:g calls calls\n out/o.py~ calls contains\n\
         in/b.py~ calls calls contains",
    );
}

/// `users` functions that call `f`, `times` times each.
fn crowd(users: usize, times: usize) -> Vec<Drawn> {
    let mut files = graph::parse("a.py: f");
    let names: Vec<String> = (0..users).map(|index| format!("u{index:04}")).collect();
    let one = |name: &String| (name.clone(), EdgeKind::Calls, "a.py".to_owned(), "f".to_owned(), Resolution::ResolvedStatic);
    let uses = names.iter().flat_map(|name| std::iter::repeat_n(one(name), times)).collect();
    files.push(Drawn { path: "b.py".to_owned(), definitions: names, uses, ..Drawn::default() });
    files
}

#[test]
fn the_limits_are_said_and_cost_the_weakest() {
    let cuts = |users, times| {
        let mut found = None;
        graph::with_graph(crowd(users, times), |generation| {
            let reach = walk_from(generation, "a.py:f", "", 1);
            let sure = reach.reached.iter().filter(|reached| !reached.strength.is_through()).count();
            found = Some((sure, reach.reached.len(), reach.cuts));
        });
        found.expect("walked")
    };
    let none = Cuts::default();
    assert_eq!(cuts(499, 1), (499, 500, none));
    assert_eq!(cuts(500, 1), (500, 500, Cuts { nodes: true, ..none }));
    assert_eq!(cuts(600, 1), (500, 500, Cuts { nodes: true, ..none }));
    assert_eq!(cuts(400, 3), (334, 335, Cuts { edges: true, ..none }));
    assert_eq!(cuts(10, 100), (10, 11, none));
    // More places of one user are no work left.
    assert_eq!(cuts(1, 1001), (1, 2, none));
}
