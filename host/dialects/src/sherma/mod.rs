//! The front end for sherma declarative agents (files with `manifest_version`).
//!
//! [`read`] and [`read_agent`] give every field its type and place, [`lower`] checks an agent and makes the IR. A graph
//! comes out only if there is no error anywhere in the file.

mod custom;
mod declared;
mod edges;
mod environment;
mod lower;
mod lowering;
mod names;
mod read;
mod read_agent;
mod references;
mod schema;
mod servers;
mod skills;

use std::sync::Arc;

use hotcell_graph::diagnostic::{self, Diagnostic, Severity, SourceFile, Span};
use hotcell_graph::ir::Graph;
use hotcell_graph::{Courtesy, Key, closest};

use crate::document::{self, Document, Reader};
use crate::remote::Remote;
use crate::surroundings::Surroundings;

pub use names::Style;
use references::Scope;
use schema::{Agent, Source};

/// What a file gives.
#[derive(Debug, Default)]
pub struct Loaded {
    /// The graph of the agent; none if there is an error among the diagnostics
    pub graph: Option<Graph>,
    /// The names of the agents in the file
    pub agents: Vec<Key>,
    /// Its hooks, in the order in which they are told
    pub hooks: Vec<String>,
    /// The files of other agents that this one may call
    pub children: Vec<Child>,
    /// The agents at other addresses that this one may call
    pub remotes: Vec<Remote>,
    /// How its expressions are written
    pub style: Style,
    /// Everything that is wrong with the file, in its order
    pub diagnostics: Vec<Diagnostic>,
}

/// Another agent that the agent may call.
#[derive(Clone, Debug)]
pub struct Child {
    /// The name by which the graph calls it
    pub name: Key,
    /// Its file, relative to this one
    pub path: String,
    /// Where it is declared
    pub span: Span,
}

/// Which agent of a file is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice<'a> {
    /// The only one
    Only,
    /// Whichever comes first: all of them are looked at
    Any,
    /// The one of this name
    Named(&'a str),
    /// The one of this name, or the only one
    Preferred(&'a str),
}

/// Reads, checks and lowers a file.
pub fn load(file: &Arc<SourceFile>, choice: Choice<'_>, surroundings: &dyn Surroundings) -> Loaded {
    let _courtesy = Courtesy::for_a_file();
    let (document, diagnostics) = document::parse(file);
    let mut loaded = Loaded { diagnostics, ..Loaded::default() };
    if let Some(mut document) = document {
        environment::substitute(&mut document, surroundings, &mut loaded.diagnostics);
        read_and_lower(&document, choice, surroundings, &mut loaded);
    }
    diagnostic::sort(&mut loaded.diagnostics);
    if loaded.diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error) {
        loaded.graph = None;
    }
    loaded
}

fn read_and_lower(document: &Document, choice: Choice<'_>, surroundings: &dyn Surroundings, loaded: &mut Loaded) {
    let reader = Reader::new(document);
    if let Some(source) = read::source(&reader, surroundings) {
        let style = names::style(&source, &reader);
        loaded.style = style.unwrap_or_default();
        loaded.agents = source.agents.iter().map(|agent| Arc::clone(&agent.name.value)).collect();
        Scope { source: &source, reader: &reader }.check_default_llm();
        let chosen = choose(&source, choice, &reader).map(|agent| &agent.name.value);
        // The other agents of the file are checked as well.
        for agent in source.agents.iter().filter(|_| style.is_some()) {
            let graph = lower::graph(&source, agent, loaded.style, &reader);
            if Some(&agent.name.value) == chosen {
                loaded.graph = graph;
            }
        }
        let child = |agent: &schema::SubAgent| {
            let path = agent.path.as_ref()?;
            Some(Child { name: Arc::clone(&agent.declared.id.value), path: path.to_string(), span: path.span.clone() })
        };
        loaded.children = source.sub_agents.iter().filter_map(child).collect();
        loaded.hooks = source.hooks.clone();
        let remote = |agent: &schema::SubAgent| {
            let url = agent.url.as_ref()?;
            Some(Remote {
                name: Arc::clone(&agent.declared.id.value),
                url: url.to_string(),
                headers: Vec::new(),
                retry: None,
                time: None,
                tls: None,
                span: url.span.clone(),
            })
        };
        loaded.remotes = source.sub_agents.iter().filter_map(remote).collect();
    }
    loaded.diagnostics.extend(reader.into_diagnostics());
}

fn choose<'s>(source: &'s Source, choice: Choice<'_>, reader: &Reader<'_>) -> Option<&'s Agent> {
    let names = || source.agents.iter().map(|agent| &*agent.name.value);
    let wanted = match (choice, &source.agents[..]) {
        (_, []) => return None,
        (Choice::Only | Choice::Preferred(_), [only]) | (Choice::Any, [only, ..]) => return Some(only),
        (Choice::Only, [_, second, ..]) => {
            let all: Vec<String> = names().map(|name| format!("`{name}`")).collect();
            let error = Diagnostic::error(format!("the file has several agents: {}", all.join(", ")))
                .at(&second.name.span)
                .help("say which one is meant: `--agent NAME`");
            reader.report(error);
            return None;
        }
        (Choice::Named(name) | Choice::Preferred(name), _) => name,
    };
    let found = source.agents.iter().find(|agent| &*agent.name.value == wanted);
    if found.is_none() {
        let help = match closest(wanted, names()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("there is `{}`", names().collect::<Vec<_>>().join("`, `")),
        };
        let place = &source.agents[0].name.span;
        reader.report(Diagnostic::error(format!("the file has no agent `{wanted}`")).at(place).help(help));
    }
    found
}
