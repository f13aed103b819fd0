//! Any text as an agent's file of any language: it is refused with places that lie in it, or is a graph.
#![no_main]

use std::sync::Arc;

use hotcell_dialects::{agent_spec, agentloom, leafmesh, loki, sherma};
use hotcell_graph::diagnostic::{Diagnostic, SourceFile, render};
use libfuzzer_sys::fuzz_target;

#[path = "../../../host/dialects/tests/suite/surroundings.rs"]
mod surroundings;

use surroundings::Fake;

fuzz_target!(|text: &str| {
    let file = Arc::new(SourceFile { name: "agent.yaml".into(), text: text.into() });
    hotcell_dialects::recognise("agent.yaml", text);
    let diagnostics: Vec<Diagnostic> = [
        loki::load(&file, &Fake).diagnostics,
        loki::load_config(&file, &Fake).diagnostics,
        sherma::load(&file, sherma::Choice::Any, &Fake).diagnostics,
        agent_spec::load(&file, &[], &Fake).diagnostics,
        agentloom::load(&file, &Fake).diagnostics,
        leafmesh::load(&file, &Fake).diagnostics,
    ]
    .concat();
    for diagnostic in &diagnostics {
        for span in diagnostic.span.iter().chain(diagnostic.related.iter().map(|(span, _)| span)) {
            assert!(span.start <= span.end && span.end <= span.file.text.len(), "{diagnostic}");
            assert!(span.file.text.is_char_boundary(span.start) && span.file.text.is_char_boundary(span.end));
        }
    }
    render(&diagnostics, true);
});
