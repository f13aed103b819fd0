//! Graphs of other languages become Agent Spec configurations. `agent_spec/export` has the cases that are data.

use std::cell::RefCell;
use std::collections::BTreeSet;

use hotcell_dialects::agent_spec;
use hotcell_graph::diagnostic::render;

use crate::configurations::{World, scratch, source, with_pyagentspec};
use crate::exporting::{cases, described, graph_of, shared_graphs};
use crate::shown::snapshots_in;

/// What graphs of another language become, or why they cannot: `agent_spec/export/*.yaml` and the snapshots beside them.
#[test]
fn graphs_of_other_languages_become_configurations_or_it_is_said_why_not() {
    let exported = scratch("agent-spec-exported");
    let (folder, stems) = cases();
    snapshots_in(&folder).bind(|| {
        for stem in stems {
            let done = agent_spec::export(&graph_of(&folder, &stem), &described);
            assert_eq!(done.is_err(), stem.ends_with("refused"), "{stem}: {done:?}");
            match done {
                Ok(done) => {
                    std::fs::write(exported.join(format!("{stem}.json")), &done.text).unwrap();
                    insta::assert_snapshot!(stem, format!("{}\n{}", done.differences.join("\n"), done.text));
                }
                Err(problems) => insta::assert_snapshot!(stem, problems.join("\n")),
            }
        }
    });
    // Whatever the graph, what comes out is a configuration.
    for (name, graph, _) in shared_graphs() {
        if let Ok(done) = agent_spec::export(&graph, &described) {
            std::fs::write(exported.join(format!("{name}.json")), done.text).unwrap();
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
