//! Pictures as text for Graphviz.

use std::fmt::Write as _;

use hotcell_visible::is_hidden;

use super::{Fate, Form, LineKind, Picture};

impl Picture {
    /// A Graphviz digraph.
    pub(crate) fn dot(&self) -> String {
        let mut text = format!("digraph {} {{\n", quoted(&self.whole_title()));
        text.push_str("  label=\"\\G\"; labelloc=t; node [fontname=\"sans-serif\", style=filled]; edge [fontname=\"sans-serif\"];\n");
        // Writing to a `String` cannot fail.
        let _ = writeln!(
            text,
            "  start [shape=circle, label=\"\", width=0.15, fillcolor=black];\n  start -> n{};",
            self.start
        );
        for (number, shape) in self.shapes.iter().enumerate() {
            let detail = shape.detail.as_ref().map_or(String::new(), |detail| format!("\n{detail}"));
            let label = quoted(&format!("{}\n{}{detail}", shape.id, shape.kind));
            let (form, fill) = (form(shape.form), fill(shape.fate));
            let _ = writeln!(text, "  n{number} [label={label}, shape={form}, fillcolor=\"{fill}\"];");
        }
        for line in &self.lines {
            let mut style = Vec::new();
            if let Some(words) = line.words() {
                style.push(format!("label={}", quoted(&words)));
            }
            if line.kind != LineKind::Route {
                style.push("style=dashed".into());
            }
            if line.is_idle() {
                style.push("color=\"#bbbbbb\"".into());
            }
            let style = if style.is_empty() { String::new() } else { format!(" [{}]", style.join(", ")) };
            let _ = writeln!(text, "  n{} -> n{}{style};", line.from, line.to);
        }
        text.push_str("}\n");
        text
    }
}

fn form(form: Form) -> &'static str {
    match form {
        Form::Step => "ellipse",
        Form::Script => "box",
        Form::Model => "hexagon",
        Form::Question => "parallelogram",
        Form::Map => "box3d",
        Form::End => "oval",
    }
}

fn fill(fate: Fate) -> &'static str {
    match fate {
        Fate::Open => "#f4f6fa",
        Fate::Done => "#e6f4e6",
        Fate::Failed | Fate::Waiting => "#fdf0d8",
        Fate::Stopped => "#fbe3e3",
        Fate::Unvisited => "#ffffff",
    }
}

fn quoted(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    format!("\"{}\"", escaped.replace(is_hidden, " "))
}
