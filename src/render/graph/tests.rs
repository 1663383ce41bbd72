//! Graphs of names that mean something in the languages they are drawn in.

use crate::model::{ContentHash, ParseStatus};
use crate::store::NodeId;

use super::*;

fn node(number: u8, name: &str) -> NodeRow {
    NodeRow {
        id: NodeId(number.into()),
        symbol: ContentHash([number; 32]),
        kind: SymbolKind::Function,
        language: "python".into(),
        path: format!("{name}.py").into(),
        name: name.into(),
        qualified_name: name.into(),
        module: None,
        parent: None,
        start_line: 1,
        end_line: 2,
        name_line: 1,
        start_byte: 0,
        end_byte: 9,
        signature: None,
        docstring: None,
        parse_status: ParseStatus::Ok,
        file_hash: ContentHash([0; 32]),
        test: false,
        generated: false,
        minified: false,
        deprioritized: false,
    }
}

fn link(source: usize, target: usize, kind: EdgeKind, resolution: Resolution, count: u64) -> Link {
    Link { source, target, kind, resolution, rule: "r".into(), path: "p".into(), line: 1, count }
}

fn demo() -> Neighbourhood {
    Neighbourhood {
        nodes: vec![node(0, "place"), node(1, "a\"]<b>&\\#\n")],
        links: vec![
            link(0, 1, EdgeKind::Calls, Resolution::ResolvedStatic, 1),
            link(0, 1, EdgeKind::References, Resolution::Candidate, 3),
            link(1, 1, EdgeKind::Calls, Resolution::Candidate, 2),
        ],
        ..Neighbourhood::default()
    }
}

#[test]
fn candidates_are_dashed_and_names_are_text() {
    let dot = dot(&demo());
    assert!(dot.contains(r#"n0 [label="place\nplace.py:1", style=bold];"#), "{dot}");
    assert!(dot.contains("n1 [label=\"a\\\"]<b>&\\\\#\u{fffd}\\na\\\"]<b>&\\\\#\u{fffd}.py:1\"];"), "{dot}");
    assert!(dot.contains("n0 -> n1 [style=solid];"), "{dot}");
    assert!(dot.contains(r#"n0 -> n1 [style=dashed, label="references ×3"];"#), "{dot}");
    assert!(dot.contains(r#"n1 -> n1 [style=dashed, label="×2"];"#), "{dot}");
    let mermaid = mermaid(&demo());
    assert!(mermaid.contains("n0[\"place<br/>place.py:1\"]"), "{mermaid}");
    assert!(mermaid.contains("n1[\"a#34;#93;#60;b#62;#38;#92;#35;#65533;<br/>"), "{mermaid}");
    assert!(mermaid.contains("n0 --> n1\n") && mermaid.contains("n0 -.->|\"references ×3\"| n1\n"), "{mermaid}");
    let svg = svg(&demo());
    assert!(svg.contains(">a\"]&lt;b&gt;&amp;\\#\u{fffd}</text>"), "{svg}");
    assert_eq!(svg.matches("stroke-dasharray").count(), 1, "{svg}");
    assert_eq!(svg.matches("marker-end=\"url(#end)\"").count(), 2, "{svg}");
}

#[test]
fn long_names_show_their_end() {
    let name = shown(&format!("{}end", "x".repeat(200)));
    assert!(name.starts_with('…') && name.ends_with("xend") && name.chars().count() == MOST_LETTERS, "{name}");
}

/// The layout asserts much of what it is given.
#[test]
fn every_graph_has_a_layout() {
    let mut dice = 0x9e37_79b9_u64;
    let mut roll = |below: usize| {
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (dice >> 33) as usize % below.max(1)
    };
    for round in 0..60 {
        let count = 1 + roll(1 + round / 2);
        let nodes = (0..count).map(|number| node(number as u8, &"n".repeat(1 + number % 7))).collect();
        let links = (0..roll(3 * count))
            .map(|_| {
                let kind = EdgeKind::ALL[roll(EdgeKind::ALL.len())];
                let resolution = if roll(2) == 0 { Resolution::Candidate } else { Resolution::ResolvedStatic };
                link(roll(count), roll(count), kind, resolution, 1 + roll(3) as u64)
            })
            .collect();
        let image = svg(&Neighbourhood { nodes, links, ..Neighbourhood::default() });
        assert!(image.starts_with("<svg ") && image.ends_with("</svg>\n") && !image.contains("NaN"), "{image}");
    }
}
