//! Pictures as SVG. The layout is dagre's (layers, few crossings); what is drawn and how is decided here.

use std::fmt::Write as _;

use dagre::graph::{Graph, GraphOptions};
use dagre::{EdgeLabel, GraphLabel, LayoutOptions, NodeLabel, Point};
use hotcell_visible::is_hidden;

use super::{Fate, Form, Line, LineKind, Picture, Shape};

/// Blank space around everything, in pixels.
const MARGIN: f64 = 20.0;
/// Height that the title takes.
const TITLE: f64 = 38.0;
const FONT: &str = "ui-sans-serif, system-ui, 'Segoe UI', Helvetica, Arial, sans-serif";
const START: &str = "start";
/// Lines for failures to one node that are drawn; where there are more, all of them are folded.
const FOLDED_FROM: usize = 6;
const FAILURE: &str = "#bd5a2a";
/// Text about what a run did not do.
const IDLE_TEXT: &str = "#8a93a0";

impl Picture {
    /// An SVG drawing.
    pub(crate) fn svg(&self) -> String {
        let placed = self.place();
        let size = placed.graph_label::<GraphLabel>().map_or((0.0, 0.0), |label| (label.width, label.height));
        let subtitle = self.subtitle.as_deref().unwrap_or_default();
        // The title is bold, which is wider than `text_width` knows.
        let titles = (text_width(&self.title, 15.0) * 1.15).max(text_width(subtitle, 12.0));
        let width = size.0.max(titles) + 2.0 * MARGIN;
        let height = size.1 + 2.0 * MARGIN + TITLE;
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
             viewBox=\"0 0 {width:.0} {height:.0}\" font-family=\"{FONT}\">\n\
             <title>{title}</title>\n\
             <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n\
             <text x=\"{MARGIN}\" y=\"{baseline}\" font-size=\"15\" font-weight=\"600\" fill=\"#1c2430\">{title}</text>\n\
             <text x=\"{MARGIN}\" y=\"{below}\" font-size=\"12\" fill=\"#68727f\">{subtitle}</text>\n",
            title = escape(&self.title),
            baseline = MARGIN + 4.0,
            subtitle = escape(subtitle),
            below = MARGIN + 22.0,
        );
        // Writing to a `String` cannot fail.
        let _ = writeln!(svg, "<g transform=\"translate({:.1} {:.1})\">", MARGIN, MARGIN + TITLE);
        let mut labels = String::new();
        for (number, line) in self.lines.iter().enumerate() {
            // A line that is folded was not placed.
            if let Some(edge) = placed.edge(&key(line.from), &key(line.to), Some(&number.to_string())) {
                draw_line(&mut svg, &mut labels, line, edge);
            }
        }
        if let Some(edge) = placed.edge(START, &key(self.start), Some(START)) {
            draw_path(&mut svg, &edge.points, "#5a6472", 1.4, "");
        }
        svg.push_str(&labels);
        for (number, shape) in self.shapes.iter().enumerate() {
            if let Some(node) = placed.node(&key(number)) {
                draw_shape(&mut svg, shape, &self.folded_rows(number), node);
            }
        }
        if let Some((x, y)) = placed.node(START).and_then(|node| Some((node.x?, node.y?))) {
            let _ = writeln!(svg, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"6\" fill=\"#1c2430\"/>");
        }
        svg.push_str("</g>\n</svg>\n");
        svg
    }

    /// Whether a line is written into the node it comes from instead of being drawn: many nodes share a target for
    /// their failures, and nobody can follow that many lines.
    fn is_folded(&self, line: &Line) -> bool {
        let shares = |other: &&Line| other.to == line.to && other.kind == LineKind::Failure;
        line.kind == LineKind::Failure && self.lines.iter().filter(shares).count() > FOLDED_FROM
    }

    /// What is written into a node instead of lines, and whether the run did not go that way.
    fn folded_rows(&self, node: usize) -> Vec<(String, bool)> {
        self.lines
            .iter()
            .filter(|line| line.from == node && self.is_folded(line))
            .map(|line| {
                let words = line.words().unwrap_or_default();
                (format!("{words} → {}", self.shapes[line.to].id), line.is_idle())
            })
            .collect()
    }

    fn place(&self) -> Graph<NodeLabel, EdgeLabel> {
        let mut graph = Graph::with_options(GraphOptions { directed: true, multigraph: true, compound: false });
        graph.set_node(START, Some(NodeLabel { width: 12.0, height: 12.0, ..NodeLabel::default() }));
        for (number, shape) in self.shapes.iter().enumerate() {
            let (width, height) = shape.size(&self.folded_rows(number));
            graph.set_node(key(number), Some(NodeLabel { width, height, ..NodeLabel::default() }));
        }
        graph.set_edge(START, key(self.start), Some(EdgeLabel::default()), Some(START));
        for (number, line) in self.lines.iter().enumerate().filter(|(_, line)| !self.is_folded(line)) {
            let (width, height) = line.words().map_or((0.0, 0.0), |words| (text_width(&words, 11.0) + 8.0, 16.0));
            // What a person reads as the main way is kept straight.
            let weight = if line.kind == LineKind::Route { 2 } else { 1 };
            let labelpos = dagre::layout::types::LabelPos::Center;
            let label = EdgeLabel { width, height, weight, labelpos, ..EdgeLabel::default() };
            graph.set_edge(key(line.from), key(line.to), Some(label), Some(&number.to_string()));
        }
        let options = LayoutOptions { nodesep: 36.0, edgesep: 18.0, ranksep: 38.0, ..LayoutOptions::default() };
        dagre::layout(&mut graph, Some(options));
        graph
    }
}

fn key(number: usize) -> String {
    format!("n{number}")
}

impl Shape {
    fn size(&self, folded: &[(String, bool)]) -> (f64, f64) {
        let small = folded.iter().map(|(row, _)| row.as_str()).chain([self.kind]).chain(self.detail.as_deref());
        let rows = 1 + small.clone().count();
        let width = small.map(|row| text_width(row, 11.0)).fold(text_width(&self.id, 13.5), f64::max) + 36.0;
        (width.max(96.0), 12.0 + 16.0 * rows as f64)
    }
}

fn draw_shape(svg: &mut String, shape: &Shape, folded: &[(String, bool)], node: &NodeLabel) {
    let (Some(x), Some(y)) = (node.x, node.y) else { return };
    let (width, height) = (node.width, node.height);
    let (left, top) = (x - width / 2.0, y - height / 2.0);
    let colours = Colours::of(shape);
    let _ = writeln!(
        svg,
        "<g fill=\"{}\" stroke=\"{}\" stroke-width=\"{}\"{}>",
        colours.fill,
        colours.stroke,
        colours.width,
        if colours.dashed { " stroke-dasharray=\"5 4\"" } else { "" }
    );
    let radius = match shape.form {
        Form::End => height / 2.0,
        Form::Model => 16.0,
        Form::Step => 0.0,
        Form::Script | Form::Question | Form::Map => 5.0,
    };
    if shape.form == Form::Map {
        let _ = writeln!(svg, "{}", rectangle(left + 5.0, top + 5.0, width, height, radius));
    }
    let _ = writeln!(svg, "{}", rectangle(left, top, width, height, radius));
    if shape.form == Form::Question {
        let (inner_left, inner_right) = (left + 6.0, left + width - 6.0);
        let (bottom, top) = (top + height, top);
        let _ = writeln!(
            svg,
            "<path d=\"M{inner_left:.1} {top:.1} V{bottom:.1} M{inner_right:.1} {top:.1} V{bottom:.1}\"/>"
        );
    }
    svg.push_str("</g>\n");
    let rows = [
        Some((shape.id.as_str(), "13.5", "600", colours.text)),
        Some((shape.kind, "11", "400", "#68727f")),
        shape.detail.as_deref().map(|detail| (detail, "11", "400", colours.detail)),
    ];
    let folded = folded.iter().map(|(row, idle)| (row.as_str(), "11", "400", if *idle { IDLE_TEXT } else { FAILURE }));
    let mut baseline = top + 19.0;
    for (text, size, weight, colour) in rows.into_iter().flatten().chain(folded) {
        let _ = writeln!(
            svg,
            "<text x=\"{x:.1}\" y=\"{baseline:.1}\" font-size=\"{size}\" font-weight=\"{weight}\" fill=\"{colour}\" \
             text-anchor=\"middle\">{}</text>",
            escape(text)
        );
        baseline += 16.0;
    }
}

fn rectangle(x: f64, y: f64, width: f64, height: f64, radius: f64) -> String {
    format!("<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" rx=\"{radius:.1}\"/>")
}

struct Colours {
    fill: &'static str,
    stroke: &'static str,
    width: f64,
    dashed: bool,
    text: &'static str,
    detail: &'static str,
}

impl Colours {
    fn of(shape: &Shape) -> Self {
        let (fill, stroke) = match shape.form {
            Form::Step => ("#f3f4f6", "#8a93a0"),
            Form::Script => ("#eaf2ff", "#4d7cc0"),
            Form::Model => ("#f2ebff", "#8660c4"),
            Form::Question => ("#fff5dd", "#c08a1c"),
            Form::Map => ("#e4f6f1", "#36937d"),
            Form::End => ("#e8f5e8", "#479150"),
        };
        let plain = Colours { fill, stroke, width: 1.4, dashed: false, text: "#1c2430", detail: "#1f6b2a" };
        match shape.fate {
            Fate::Open | Fate::Done => plain,
            Fate::Failed => Colours { stroke: "#c07a10", width: 2.4, detail: "#9a5b00", ..plain },
            Fate::Waiting => Colours { stroke: "#c07a10", width: 3.0, detail: "#9a5b00", ..plain },
            Fate::Stopped => Colours { fill: "#fde7e7", stroke: "#c43232", width: 3.0, detail: "#a11d1d", ..plain },
            Fate::Unvisited => Colours { fill: "#ffffff", stroke: "#c3c9d1", dashed: true, text: IDLE_TEXT, ..plain },
        }
    }
}

fn draw_line(svg: &mut String, labels: &mut String, line: &Line, edge: &EdgeLabel) {
    let (colour, width) = match (line.is_idle(), line.kind, line.taken.is_some()) {
        (true, ..) => ("#c9cfd6", 1.2),
        (false, LineKind::Failure, _) => (FAILURE, 1.4),
        (false, _, true) => ("#1f6b2a", 2.2),
        (false, _, false) => ("#5a6472", 1.4),
    };
    let dashes = if line.kind == LineKind::Route { "" } else { " stroke-dasharray=\"5 4\"" };
    draw_path(svg, &edge.points, colour, width, dashes);
    if let (Some(words), Some(x), Some(y)) = (line.words(), edge.x, edge.y) {
        let width = text_width(&words, 11.0) + 6.0;
        let _ = writeln!(
            labels,
            "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"16\" fill=\"#ffffff\" fill-opacity=\"0.9\"/>\
             <text x=\"{x:.1}\" y=\"{:.1}\" font-size=\"11\" fill=\"{}\" text-anchor=\"middle\">{}</text>",
            x - width / 2.0,
            y - 8.0,
            y + 4.0,
            if line.is_idle() { IDLE_TEXT } else { colour },
            escape(&words)
        );
    }
}

/// A smooth line through the points of a layout, with an arrow head at its end.
fn draw_path(svg: &mut String, points: &[Point], colour: &str, width: f64, dashes: &str) {
    let [.., before, end] = points else { return };
    let length = (end.x - before.x).hypot(end.y - before.y).max(0.1);
    let (along_x, along_y) = ((end.x - before.x) / length, (end.y - before.y) / length);
    // The line stops where the arrow head begins.
    let head = 8.0_f64.min(length);
    let neck = Point::new(end.x - along_x * head, end.y - along_y * head);
    let mut path: Vec<&Point> = points[..points.len() - 1].iter().collect();
    path.push(&neck);
    let _ = writeln!(
        svg,
        "<path d=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"{width}\"{dashes}/>",
        curve(&path)
    );
    let half = 3.2 + width / 2.0;
    let _ = writeln!(
        svg,
        "<path d=\"M{:.1} {:.1} L{:.1} {:.1} L{:.1} {:.1} Z\" fill=\"{colour}\"/>",
        end.x,
        end.y,
        neck.x - along_y * half,
        neck.y + along_x * half,
        neck.x + along_y * half,
        neck.y - along_x * half
    );
}

/// A uniform cubic B-spline that begins and ends at the first and the last point.
fn curve(points: &[&Point]) -> String {
    let [first, second, ..] = points else { return String::new() };
    let last = points[points.len() - 1];
    let mut path = format!(
        "M{:.1} {:.1} L{:.1} {:.1}",
        first.x,
        first.y,
        (5.0 * first.x + second.x) / 6.0,
        (5.0 * first.y + second.y) / 6.0
    );
    let mut padded = points.to_vec();
    padded.push(last);
    for window in padded.windows(3) {
        let [a, b, c] = window else { continue };
        // Writing to a `String` cannot fail.
        let _ = write!(
            path,
            " C{:.1} {:.1} {:.1} {:.1} {:.1} {:.1}",
            (2.0 * a.x + b.x) / 3.0,
            (2.0 * a.y + b.y) / 3.0,
            (a.x + 2.0 * b.x) / 3.0,
            (a.y + 2.0 * b.y) / 3.0,
            (a.x + 4.0 * b.x + c.x) / 6.0,
            (a.y + 4.0 * b.y + c.y) / 6.0,
        );
    }
    let _ = write!(path, " L{:.1} {:.1}", last.x, last.y);
    path
}

/// About how wide a text is, in pixels: there is no font to ask.
fn text_width(text: &str, size: f64) -> f64 {
    let ems: f64 = text
        .chars()
        .map(|character| match character {
            'i' | 'j' | 'l' | 'I' | '.' | ',' | '\'' | '|' | '!' | ':' | ' ' | '·' => 0.3,
            'f' | 'r' | 't' | '(' | ')' | '-' => 0.38,
            'm' | 'w' | 'M' | 'W' | '@' | '%' => 0.9,
            'A'..='Z' => 0.7,
            _ if character.is_ascii() => 0.57,
            _ => console::measure_text_width(character.encode_utf8(&mut [0; 4])) as f64 * 0.6,
        })
        .sum();
    ems * size
}

fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            hidden if is_hidden(hidden) => escaped.push(' '),
            plain => escaped.push(plain),
        }
    }
    escaped
}
