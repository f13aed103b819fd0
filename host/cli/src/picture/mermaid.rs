//! Pictures as Mermaid text, which Markdown viewers draw.

use std::fmt::Write as _;

use hotcell_visible::is_hidden;

use super::{Fate, Form, LineKind, Picture};

impl Picture {
    /// A Mermaid flowchart.
    pub(crate) fn mermaid(&self) -> String {
        let mut text = format!("---\ntitle: {}\n---\nflowchart TD\n", quoted_title(&self.whole_title()));
        // Writing to a `String` cannot fail.
        let _ = writeln!(text, "  start(( )) --> n{}", self.start);
        for (number, shape) in self.shapes.iter().enumerate() {
            let (open, close) = brackets(shape.form);
            let mut label = format!("<b>{}</b><br/>{}", escape(&shape.id), escape(shape.kind));
            if let Some(detail) = &shape.detail {
                label.push_str(&format!("<br/><i>{}</i>", escape(detail)));
            }
            let class = class(shape.fate).map_or(String::new(), |class| format!(":::{class}"));
            let _ = writeln!(text, "  n{number}{open}\"{label}\"{close}{class}");
        }
        for line in &self.lines {
            let arrow = match (line.kind, line.is_idle()) {
                (LineKind::Route, false) if self.shows_run() => "==>",
                (LineKind::Route, _) => "-->",
                _ => "-.->",
            };
            let label = line.words().map_or(String::new(), |words| format!("|\"{}\"|", escape(&words)));
            let _ = writeln!(text, "  n{} {arrow}{label} n{}", line.from, line.to);
        }
        if self.shows_run() {
            text.push_str(CLASSES);
        }
        text
    }
}

const CLASSES: &str = "  classDef done fill:#e6f4e6,stroke:#3f8a45,color:#111
  classDef failed fill:#fdf0d8,stroke:#b97a10,color:#111
  classDef stopped fill:#fbe3e3,stroke:#c03434,stroke-width:3px,color:#111
  classDef waiting fill:#fdf0d8,stroke:#b97a10,stroke-width:3px,color:#111
  classDef unvisited fill:#fff,stroke:#bbb,stroke-dasharray:4 3,color:#888
";

fn class(fate: Fate) -> Option<&'static str> {
    match fate {
        Fate::Open => None,
        Fate::Done => Some("done"),
        Fate::Failed => Some("failed"),
        Fate::Stopped => Some("stopped"),
        Fate::Waiting => Some("waiting"),
        Fate::Unvisited => Some("unvisited"),
    }
}

fn brackets(form: Form) -> (&'static str, &'static str) {
    match form {
        Form::Step => ("(", ")"),
        Form::Script => ("[", "]"),
        Form::Model => ("{{", "}}"),
        Form::Question => ("[/", "/]"),
        Form::Map => ("[[", "]]"),
        Form::End => ("([", "])"),
    }
}

/// Text inside a quoted label; everything that Mermaid or HTML would act on is written as a character code. `%%{` begins instructions
/// wherever it stands: they can have nodes not drawn at all.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '"' | '<' | '>' | '&' | '#' | '`' | '\\' | ';' | '%' => {
                escaped.push_str(&format!("#{};", u32::from(character)));
            }
            hidden if is_hidden(hidden) => escaped.push(' '),
            plain => escaped.push(plain),
        }
    }
    escaped
}

/// A title as a YAML text. Older viewers look for instructions there, too.
fn quoted_title(title: &str) -> String {
    format!("'{}'", title.replace('\'', "''").replace(is_hidden, " ").replace("%{", "% {"))
}
