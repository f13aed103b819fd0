//! The front end for LeafMesh: meshes of agents that call each other by conditions (files with `agents` and `entry_points`).
//!
//! What a mesh says that no run of it needs is [`MeshSettings`]. [`interpolate`] puts in variables, the modules that begin with `read` give every field its type and place, [`checks`] look
//! at what the agents are to each other, [`lower`] makes a graph of them, [`lower_agent`] and [`lower_work`] what each of them does.

mod addresses;
mod agent_state;
mod checks;
mod connectors;
mod cron;
mod expressions;
mod families;
mod fitting;
mod functions;
pub mod genes;
mod hidden;
mod intent;
mod interpolate;
mod learning;
mod lower;
mod lower_agent;
mod lower_connector;
mod lower_feed;
mod lower_knowledge;
mod lower_work;
mod mcp;
mod mcp_server;
mod models;
mod no_flow;
mod prompt_keys;
mod read;
mod read_agent;
mod read_blocks;
mod read_channels;
mod read_condition;
mod read_connector;
mod read_evolution;
mod read_human;
mod read_knowledge;
mod read_llm;
mod read_manager;
mod read_memory;
mod read_operation;
mod reading;
mod registry;
mod schema;
pub mod scoring;
mod settings;
mod settings_of;
mod shapes;
pub mod state;
mod steps;
mod thoughts;
mod unused;
mod wait;
mod watching;

use std::sync::Arc;

use hotcell_graph::diagnostic::{self, Diagnostic, Severity, SourceFile};
use hotcell_graph::ir::Graph;
use hotcell_graph::{Courtesy, Value};

use crate::document::{self, Reader};
use crate::knowledge_base::KnowledgeBaseSource;
use crate::surroundings::Surroundings;
use reading::Reading;

pub use cron::{Cron, LocalMinute};
pub use hidden::Hidden;
pub use no_flow::no_flow;
pub use read_agent::fields_of_type;
pub use read_channels::channels_tool;
pub use registry::registry;
pub use settings::{
    AgentKind, AgentSettings, BudgetSettings, ChannelSettings, EntrySettings, HumanInterface, HumanSettings,
    MeshSettings, WakeUp, WebhookLimits, WebhookSettings,
};
pub use wait::renamed_in_wait;
pub use watching::{EscalationTarget, Evolution, Healing, LearningSettings, ManagerSettings, Scenario};

/// What a file gives.
#[derive(Debug, Default)]
pub struct Loaded {
    /// The graph; none if there is an error among the diagnostics
    pub graph: Option<Graph>,
    /// What it says beside the graph; there with the graph
    pub settings: Option<MeshSettings>,
    /// What its agents look things up in
    pub knowledge_bases: Vec<KnowledgeBaseSource>,
    /// Everything that is wrong with the file
    pub diagnostics: Vec<Diagnostic>,
}

/// A mesh's file as a value: what stands in it, with its variables as they are written.
///
/// # Errors
/// What is wrong with the text.
pub fn written(file: &Arc<SourceFile>) -> Result<Value, Vec<Diagnostic>> {
    let (document, diagnostics) = document::parse(file);
    match document {
        Some(document) => Ok(document.root.to_value()),
        None => Err(diagnostics),
    }
}

/// Names of variables that a text refers to.
pub fn variables_of(text: &str) -> Vec<String> {
    let names = text.split("${").skip(1).filter_map(|rest| rest.split(['}', ':']).next());
    names.map(str::to_owned).collect()
}

/// Reads, checks and lowers a mesh.
pub fn load(file: &Arc<SourceFile>, surroundings: &dyn Surroundings) -> Loaded {
    let _courtesy = Courtesy::for_a_file();
    let (document, mut diagnostics) = document::parse(file);
    let Some(document) = document else { return Loaded { diagnostics, ..Loaded::default() } };
    let (document, of_variables) = interpolate::interpolate(document, surroundings);
    diagnostics.extend(of_variables);
    let reader = Reader::new(&document);
    let mut reading = Reading::new(&reader, surroundings);
    let mut loaded = read::mesh(&mut reading).and_then(|mesh| {
        checks::mesh(&mesh, &reading);
        let has_channels = mesh
            .agents
            .iter()
            .any(|agent| matches!(&agent.body, schema::Body::Human(human) if !human.channels.is_empty()));
        if has_channels && let Err(reason) = surroundings.declare_component(&read_channels::component()) {
            let root = reader.span(document.root.place);
            reader.report(Diagnostic::warning(format!("channels cannot be used: {reason}")).at(&root));
        }
        let graph = lower::mesh(&mesh, &reading.all_later(), &reader.span(document.root.place), surroundings)?;
        Some((graph, settings_of::of(&mesh), lower_knowledge::bases(&mesh)))
    });
    diagnostics.extend(reader.into_diagnostics());
    diagnostic::sort(&mut diagnostics);
    diagnostics.dedup();
    if diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error) {
        loaded = None;
    }
    let Some((graph, settings, knowledge_bases)) = loaded else { return Loaded { diagnostics, ..Loaded::default() } };
    Loaded { graph: Some(graph), settings: Some(settings), knowledge_bases, diagnostics }
}
