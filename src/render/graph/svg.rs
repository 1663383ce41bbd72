//! The graph as SVG: a layout crate finds the places, and what stands there is drawn here.
//!
//! Must not know what a node is. Invariant: text is escaped, and nothing in the image leads out of it.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use layout::core::base::Orientation;
use layout::core::color::Color;
use layout::core::format::{ClipHandle, RenderBackend};
use layout::core::geometry::Point;
use layout::core::style::{LineStyleKind, StyleAttr};
use layout::std_shapes::shapes::{Arrow, Element, LineEndKind, ShapeKind};
use layout::topo::layout::VisualGraph;

use crate::query::neighbourhood::Neighbourhood;

use super::{caption, is_sure, label, push};

/// A letter is taken to be as wide as this.
const CELL: usize = 8;
/// A letter is drawn smaller than its cell is wide, so that every font fits.
const FONT: usize = 12;
/// From line to line.
const STEP: f64 = 15.0;
/// Room around the text of a node.
const PADDING: f64 = 8.0;
/// Room around the image.
const MARGIN: f64 = 12.0;

const LINE: u32 = 0x0047_5569;
const SEED: u32 = 0x000b_6bcb;

/// Draws a graph as an image.
pub fn svg(found: &Neighbourhood) -> String {
    let mut graph = VisualGraph::new(Orientation::LeftToRight);
    let handles: Vec<_> = found
        .nodes
        .iter()
        .enumerate()
        .map(|(number, node)| {
            let [name, place] = label(node);
            let letters = name.chars().count().max(place.chars().count());
            let size = Point::new((letters * CELL) as f64 + 2.0 * PADDING, 2.0 * STEP + 2.0 * PADDING);
            let shape = ShapeKind::new_box(&format!("{name}\n{place}"));
            let look = if number == 0 { look(SEED, 2) } else { look(LINE, 1) };
            graph.add_node(Element::create(shape, look, Orientation::LeftToRight, size))
        })
        .collect();
    // One arrow for all edges from one to another: solid if one of them is sure.
    let mut arrows: BTreeMap<(usize, usize), (bool, Vec<String>)> = BTreeMap::new();
    for link in &found.links {
        let (is_solid, captions) = arrows.entry((link.source, link.target)).or_default();
        *is_solid |= is_sure(link);
        let caption = caption(link);
        if !caption.is_empty() && !captions.contains(&caption) {
            captions.push(caption);
        }
    }
    for ((source, target), (is_solid, captions)) in arrows {
        let style = if is_solid { LineStyleKind::Normal } else { LineStyleKind::Dashed };
        let text = captions.join(", ");
        let arrow = Arrow::new(LineEndKind::None, LineEndKind::Arrow, style, &text, &look(LINE, 1), &None, &None);
        graph.add_edge(arrow, handles[source], handles[target]);
    }
    let mut canvas = Canvas::default();
    graph.do_it(false, false, false, &mut canvas);
    canvas.finish()
}

fn look(color: u32, width: usize) -> StyleAttr {
    StyleAttr::new(Color::new(color << 8 | 0xff), width, Some(Color::fast("white")), 4, CELL)
}

/// Draws at the places that the layout gives.
#[derive(Default)]
struct Canvas {
    shapes: String,
    width: f64,
    height: f64,
}

impl Canvas {
    fn reach(&mut self, x: f64, y: f64) {
        self.width = self.width.max(x);
        self.height = self.height.max(y);
    }

    fn finish(self) -> String {
        let (width, height) = (self.width + MARGIN, self.height + MARGIN);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" viewBox=\"0 0 {width:.0} {height:.0}\" \
             font-family=\"ui-monospace, Menlo, Consolas, monospace\" font-size=\"{FONT}\" text-anchor=\"middle\">\n\
             <defs><marker id=\"end\" markerWidth=\"8\" markerHeight=\"6\" refX=\"8\" refY=\"3\" orient=\"auto\">\
             <path d=\"M0 0 8 3 0 6z\" fill=\"{line}\"/></marker>\
             <marker id=\"start\" markerWidth=\"8\" markerHeight=\"6\" refX=\"0\" refY=\"3\" orient=\"auto\">\
             <path d=\"M8 0 0 3 8 6z\" fill=\"{line}\"/></marker></defs>\n\
             <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n{shapes}</svg>\n",
            line = hex(LINE),
            shapes = self.shapes,
        )
    }
}

impl RenderBackend for Canvas {
    fn draw_rect(&mut self, xy: Point, size: Point, look: &StyleAttr, _: Option<String>, _: Option<ClipHandle>) {
        self.reach(xy.x + size.x, xy.y + size.y);
        push(
            &mut self.shapes,
            format_args!(
                "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" rx=\"{}\" fill=\"#f8fafc\" stroke=\"{}\" stroke-width=\"{}\"/>\n",
                xy.x,
                xy.y,
                size.x,
                size.y,
                look.rounded,
                if look.line_width > 1 { hex(SEED) } else { hex(LINE) },
                look.line_width
            ),
        );
    }

    fn draw_line(&mut self, _: Point, _: Point, _: &StyleAttr, _: Option<String>) {}

    fn draw_circle(&mut self, _: Point, _: Point, _: &StyleAttr, _: Option<String>) {}

    fn draw_text(&mut self, xy: Point, text: &str, _: &StyleAttr) {
        let lines: Vec<&str> = text.lines().collect();
        let first = xy.y - STEP * (lines.len() as f64 - 1.0) / 2.0;
        for (number, line) in lines.iter().enumerate() {
            let (y, fill) = (first + STEP * number as f64, if number == 0 { "#0f172a" } else { "#64748b" });
            self.reach(xy.x + (line.chars().count() * CELL) as f64 / 2.0, y + STEP);
            push(
                &mut self.shapes,
                format_args!("<text x=\"{:.1}\" y=\"{y:.1}\" dy=\"0.35em\" fill=\"{fill}\">{}</text>\n", xy.x, escaped(line)),
            );
        }
    }

    fn draw_arrow(
        &mut self,
        path: &[(Point, Point)],
        dashed: bool,
        head: (bool, bool),
        _: &StyleAttr,
        _: Option<String>,
        _: &str,
    ) {
        let [first, second, rest @ ..] = path else { return };
        path.iter().for_each(|(one, other)| {
            self.reach(one.x, one.y);
            self.reach(other.x, other.y);
        });
        let mut way = format!(
            "M{:.1} {:.1}C{:.1} {:.1} {:.1} {:.1} {:.1} {:.1}",
            first.0.x, first.0.y, first.1.x, first.1.y, second.0.x, second.0.y, second.1.x, second.1.y
        );
        for (control, point) in rest {
            write!(way, "S{:.1} {:.1} {:.1} {:.1}", control.x, control.y, point.x, point.y).expect("writing to a string");
        }
        let dash = if dashed { " stroke-dasharray=\"5 4\"" } else { "" };
        let start = if head.0 { " marker-start=\"url(#start)\"" } else { "" };
        let end = if head.1 { " marker-end=\"url(#end)\"" } else { "" };
        push(&mut self.shapes, format_args!("<path d=\"{way}\" fill=\"none\" stroke=\"{}\"{dash}{start}{end}/>\n", hex(LINE)));
    }

    fn create_clip(&mut self, _: Point, _: Point, _: usize) -> ClipHandle {
        0
    }
}

fn hex(color: u32) -> String {
    format!("#{color:06x}")
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
