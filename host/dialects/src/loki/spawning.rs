//! Agents that have other agents work, by the tools `agent__spawn` and its like.

use std::sync::Arc;

use hotcell_graph::Key;
use hotcell_graph::diagnostic::{Diagnostic, Span};
use hotcell_graph::ir::{Callable, DelegateTool, Team};

use super::both_files;
use crate::document::Need::Optional;
use crate::document::{Fields, SourceText};
use crate::surroundings::{AgentFolder, Surroundings};

/// The state key with the work that was given, which no template can name.
const WORK: &str = "(work)";
/// What the language calls the tools. The result of work that was given is there at once, so asking whether it is done gives
/// the same as waiting for it.
const TOOLS: [(DelegateTool, &str); 5] = [
    (DelegateTool::Agents, "agent__list_available"),
    (DelegateTool::Start, "agent__spawn"),
    (DelegateTool::Result, "agent__check"),
    (DelegateTool::Result, "agent__collect"),
    (DelegateTool::Work, "agent__list"),
];
/// What an agent is told about them before it begins.
const INSTRUCTIONS: &str = "\
## Other agents

You can have other agents work: `agent__list_available` names them, `agent__spawn` gives one of them work, and `agent__collect` gives
the result of what has this id. An agent knows nothing of this conversation, so tell it everything that it needs. Check what it says
before you rely on it.";

/// The agents that an agent may have work.
pub(super) struct Spawning {
    agents: Vec<SourceText>,
    /// Whether its instructions get those about the tools
    teaches: bool,
}

/// Reads the fields about it; none if the agent works alone.
pub(super) fn read(fields: &mut Fields<'_, '_>) -> Option<Spawning> {
    let is_on = fields.flag("can_spawn_agents", Optional).filter(|flag| flag.value);
    let agents = fields.texts("spawnable_agents", Optional);
    let teaches = fields.flag("inject_spawn_instructions", Optional).is_none_or(|flag| flag.value);
    let depth = fields.count("max_agent_depth", Optional);
    let summary = fields.text("summarization_model", Optional);
    // One agent works after the other, and none is left behind that would ask for help.
    for name in ["max_concurrent_agents", "max_concurrent_jobs", "summarization_threshold", "escalation_timeout"] {
        fields.count(name, Optional);
    }
    let on = is_on?;
    let reader = fields.reader();
    let refuse = |problem: &str, span: &Span, help: &str| reader.report(fields.error(problem, span).help(help));
    if let Some(summary) = summary {
        let help = "leave it out: what an agent answers reaches the one that asked as it is";
        refuse("`summarization_model` is not supported", &summary.span, help);
    }
    if let Some(depth) = depth.filter(|depth| depth.value < 1) {
        refuse("`max_agent_depth: 0` allows no other agent", &depth.span, "write `can_spawn_agents: false`");
    }
    let Some(agents) = agents.filter(|agents| !agents.is_empty()) else {
        let help = "an agent here may call those alone that its file names: `spawnable_agents: [explore, coder]`";
        refuse("`can_spawn_agents` needs `spawnable_agents`", &on.span, help);
        return None;
    };
    Some(Spawning { agents, teaches })
}

impl Spawning {
    /// Says which agents are not there.
    pub(super) fn check(&self, surroundings: &dyn Surroundings, report: &mut dyn FnMut(Diagnostic)) {
        for name in &self.agents {
            let error = match surroundings.agent(name) {
                AgentFolder::Config | AgentFolder::Graph => continue,
                AgentFolder::Missing => Diagnostic::error(format!("the agent `{}` does not exist", &**name))
                    .help("an agent is a folder beside the one of this file"),
                AgentFolder::Neither => Diagnostic::error(format!("the folder of the agent `{}` is empty", &**name))
                    .help("it needs a `config.yaml` or a `graph.yaml`"),
                AgentFolder::Both => both_files(name),
            };
            report(error.at(&name.span));
        }
    }

    /// The tools with which a model has them work.
    pub(super) fn tools(&self) -> Vec<Callable> {
        let agents = self.agents.iter().map(|name| name.value.clone()).collect();
        let team = Arc::new(Team { agents, work: Key::from(WORK) });
        let one =
            |(tool, name): (DelegateTool, &str)| Callable::Delegate { tool, name: name.to_owned(), team: team.clone() };
        TOOLS.into_iter().map(one).collect()
    }

    /// Their names and descriptions.
    pub(super) fn shown() -> Vec<(String, String)> {
        TOOLS.into_iter().map(|(tool, name)| (name.to_owned(), tool.description().to_owned())).collect()
    }

    /// What stands behind the instructions of the agent.
    pub(super) fn instructions(&self) -> Option<&'static str> {
        self.teaches.then_some(INSTRUCTIONS)
    }
}
