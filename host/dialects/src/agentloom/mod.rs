//! The front end for AgentLoom: workflows (files with `steps`) and agents (files with a `system_prompt`).
//!
//! [`read`], [`read_step`] and [`read_agent`] give every field its type and place and follow the files that a file names,
//! [`checks`] look at what the steps are to each other, [`lower`] and [`lower_agent`] make the IR.

mod checks;
mod files;
mod lower;
mod lower_agent;
mod lower_gate;
mod lower_step;
mod lowering;
mod models;
mod read;
mod read_agent;
mod read_gate;
mod read_step;
mod recording;
mod schema;
mod schemas;
mod values;

use std::sync::Arc;

use hotcell_graph::Courtesy;
use hotcell_graph::diagnostic::{self, Diagnostic, Severity, SourceFile};
use hotcell_graph::ir::Graph;

use crate::surroundings::Surroundings;
use files::{Files, Readings};
use schema::Config;

/// What a file gives.
#[derive(Debug, Default)]
pub struct Loaded {
    /// The graph; none if there is an error among the diagnostics
    pub graph: Option<Graph>,
    /// Everything that is wrong with the file and with those that it names
    pub diagnostics: Vec<Diagnostic>,
}

/// Reads, checks and lowers a workflow or an agent.
pub fn load(file: &Arc<SourceFile>, surroundings: &dyn Surroundings) -> Loaded {
    let _courtesy = Courtesy::for_a_file();
    let readings = Readings { workflow: read::workflow, agent: read_agent::agent };
    let files = Files::new(file, surroundings, readings);
    let mut graph = match is_agent(&file.text) {
        true => files.entry_agent(file).map(|agent| lower_agent::entry(&agent)),
        false => files.entry_workflow(file).and_then(|workflow| {
            checks::workflow(&workflow, &files);
            lower::workflow(&workflow, &Config::default())
        }),
    };
    let mut diagnostics = files.into_diagnostics();
    diagnostic::sort(&mut diagnostics);
    diagnostics.dedup();
    if diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error) {
        graph = None;
    }
    Loaded { graph, diagnostics }
}

/// Whether a text of this language is an agent and no workflow.
fn is_agent(text: &str) -> bool {
    !crate::recognise::has_key(text, "steps")
}
