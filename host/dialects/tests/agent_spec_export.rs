//! Graphs of other languages become Agent Spec configurations. `agent_spec/export` has the cases that are data.

mod configurations;
mod surroundings;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use configurations::{World, scratch, snapshots_in, source, with_pyagentspec};
use hotcell_dialects::{Dialect, agent_spec, loki, recognise, sherma};
use hotcell_graph::diagnostic::{SourceFile, render};

/// What graphs of another language become, or why they cannot: `agent_spec/export/*.yaml` and the snapshots beside them.
#[test]
fn graphs_of_other_languages_become_configurations_or_it_is_said_why_not() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/agent_spec/export");
    let exported = scratch("agent-spec-exported");
    snapshots_in(&folder).bind(|| {
        for stem in ["desk", "refused", "tools", "tools_refused", "sherma_refused", "sherma_skills_refused"] {
            let file = source(&folder, &format!("{stem}.yaml"));
            let (graph, diagnostics) = match recognise(&file.name, &file.text) {
                Some(Dialect::Sherma) => {
                    let loaded = sherma::load(&file, sherma::Choice::Only, &surroundings::Fake);
                    (loaded.graph, loaded.diagnostics)
                }
                _ => {
                    let loaded = loki::load(&file, &surroundings::Fake);
                    (loaded.graph, loaded.diagnostics)
                }
            };
            let graph = graph.unwrap_or_else(|| panic!("{}", render(&diagnostics, false)));
            assert_eq!(agent_spec::export(&graph).is_err(), stem.ends_with("refused"), "{stem}");
            match agent_spec::export(&graph) {
                Ok(done) => {
                    std::fs::write(exported.join(format!("{stem}.json")), &done.text).unwrap();
                    insta::assert_snapshot!(stem, format!("{}\n{}", done.differences.join("\n"), done.text));
                }
                Err(problems) => insta::assert_snapshot!(stem, problems.join("\n")),
            }
        }
    });
    // Whatever the graph, what comes out is a configuration.
    let shared = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/cases/loki");
    for entry in std::fs::read_dir(shared).into_iter().flatten() {
        let folder = entry.unwrap().path();
        let Ok(text) = std::fs::read_to_string(folder.join("graph.yaml")) else { continue };
        let file = Arc::new(SourceFile { name: "graph.yaml".to_owned(), text });
        let Some(graph) = loki::load(&file, &surroundings::Fake).graph else { continue };
        if let Ok(done) = agent_spec::export(&graph) {
            let name = format!("{}.json", folder.file_name().unwrap().to_string_lossy());
            std::fs::write(exported.join(name), done.text).unwrap();
        }
    }
    let world = World { tools: None, plugins: BTreeSet::new(), servers: RefCell::default() };
    let mut count = 0;
    for entry in std::fs::read_dir(&exported).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let (configuration, diagnostics) = agent_spec::read(&source(&exported, &name), &[], &world);
        assert!(configuration.is_some(), "{name}\n{}", render(&diagnostics, false));
        count += 1;
    }
    assert!(count > 0, "nothing is exported");
    if let Some(loaded) = with_pyagentspec("load.py", &[&exported]) {
        assert!(loaded.starts_with(&format!("{count} ")), "{loaded}");
    }
}
