//! From texts to the graph that is run.

use std::sync::Arc;

use hotcell_graph::diagnostic::{Diagnostic, SourceFile};
use hotcell_graph::ir::Graph;
use hotcell_graph::{Courtesy, Key};

use super::lower::{self, Lowered};
use super::read::read;
use super::sources::Part;
use crate::remote::Remote;
use crate::surroundings::Surroundings;

/// What a configuration gives.
#[derive(Debug, Default)]
pub struct Loaded {
    /// The graph; none if there is an error among the diagnostics
    pub graph: Option<Graph>,
    /// The agents that agents of the configuration may ask, by the names by which they do
    pub members: Vec<(Key, Arc<Graph>)>,
    /// The agents at other addresses that they may ask
    pub remotes: Vec<Remote>,
    /// Everything that is wrong, in the order of the texts
    pub diagnostics: Vec<Diagnostic>,
}

/// Reads, checks and lowers a configuration and the files of parts that are handed in beside it.
pub fn load(file: &Arc<SourceFile>, parts: &[Part], surroundings: &dyn Surroundings) -> Loaded {
    let _courtesy = Courtesy::for_a_file();
    let (configuration, mut diagnostics) = read(file, parts, surroundings);
    let lowered = configuration.and_then(|configuration| {
        lower::graph(&configuration, surroundings).map_err(|problems| diagnostics.extend(problems)).ok()
    });
    let Some(Lowered { graph, members, remotes }) = lowered else { return Loaded { diagnostics, ..Loaded::default() } };
    Loaded { graph: Some(graph), members, remotes, diagnostics }
}
