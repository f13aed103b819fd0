//! Agents that have other agents work, by the tools `agent__spawn` and its like.

use std::sync::Arc;

use hotcell_graph::Key;
use hotcell_graph::diagnostic::{Diagnostic, Span};
use hotcell_graph::ir::{Callable, DelegateTool, RunLimits, Team};

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
/// How many agents deep a run may go at most.
const DEEPEST: u32 = 16;
/// What to do where no agent is found.
const FINDS_NONE: &str = "\
name those that it may have work (`spawnable_agents: [explore, coder]`), or put a `hotcell.toml` into the folder above, which makes the \
agents there a project";
/// What an agent is told about them before it begins.
const INSTRUCTIONS: &str = "\
## Other agents

You can have other agents work: `agent__list_available` names them, `agent__spawn` gives one of them work, and `agent__collect` gives
the result of what has this id. An agent knows nothing of this conversation, so tell it everything that it needs. Check what it says
before you rely on it.";

/// The agents that an agent may have work.
#[derive(Debug)]
pub(super) struct Spawning {
    /// Those that it names; none for all beside it
    agents: Option<Vec<SourceText>>,
    /// Whether its instructions get those about the tools
    teaches: bool,
    span: Span,
}

/// Reads the fields about it; none if the agent works alone.
pub(super) fn read(fields: &mut Fields<'_, '_>) -> Option<Spawning> {
    let is_on = fields.flag("can_spawn_agents", Optional).filter(|flag| flag.value);
    let agents = fields.texts("spawnable_agents", Optional);
    let teaches = fields.flag("inject_spawn_instructions", Optional).is_none_or(|flag| flag.value);
    let summary = fields.text("summarization_model", Optional);
    let threshold = fields.count("summarization_threshold", Optional);
    // One agent works after the other, and what a person is asked waits for an answer.
    for name in ["max_concurrent_agents", "max_concurrent_jobs", "escalation_timeout"] {
        fields.count(name, Optional);
    }
    let on = is_on?;
    let reader = fields.reader();
    let said = |diagnostic: Diagnostic, span: &Span, help: &str| reader.report(diagnostic.at(span).help(help));
    let whole = "leave it out: what an agent answers reaches the one that asked as it is";
    if let Some(summary) = summary {
        said(Diagnostic::error("`summarization_model` is not supported"), &summary.span, whole);
    }
    if let Some(threshold) = threshold.filter(|threshold| threshold.value > 0) {
        said(Diagnostic::warning("`summarization_threshold` changes nothing here"), &threshold.span, whole);
    }
    if agents.as_ref().is_some_and(Vec::is_empty) {
        return None;
    }
    Some(Spawning { agents, teaches, span: on.span })
}

/// How many agents deep a run may go from here: those that it calls and those that its models have work.
pub(super) fn depth(fields: &mut Fields<'_, '_>) -> u32 {
    let Some(depth) = fields.count("max_agent_depth", Optional) else { return RunLimits::AGENT_DEPTH };
    let problem = match depth.value {
        0 => Some(("`max_agent_depth: 0` allows no other agent".to_owned(), "leave it out".to_owned())),
        1..=DEEPEST => None,
        more => Some((
            format!("`max_agent_depth: {more}` is deeper than agents may call each other"),
            format!("write {DEEPEST} or less"),
        )),
    };
    if let Some((problem, help)) = problem {
        fields.reader().report(fields.error(problem, &depth.span).help(help));
    }
    depth.value.clamp(1, DEEPEST)
}

impl Spawning {
    /// Whether there is an agent that may be given work.
    pub(super) fn finds_any(&self, surroundings: &dyn Surroundings) -> bool {
        self.agents.is_some() || !surroundings.agents().is_empty()
    }

    /// The same as [`Spawning::check`] for a graph, which may call agents in its nodes alone.
    pub(super) fn check_of_graph(&self, surroundings: &dyn Surroundings, report: &mut dyn FnMut(Diagnostic)) {
        if self.finds_any(surroundings) {
            return self.check(surroundings, report);
        }
        let warning =
            Diagnostic::warning("`can_spawn_agents` finds no other agent that models may give work").at(&self.span);
        report(warning.help(FINDS_NONE));
    }

    /// Says which agents are not there.
    pub(super) fn check(&self, surroundings: &dyn Surroundings, report: &mut dyn FnMut(Diagnostic)) {
        let Some(agents) = &self.agents else {
            if surroundings.agents().is_empty() {
                let error = Diagnostic::error("`can_spawn_agents` finds no other agent").at(&self.span);
                report(error.help(FINDS_NONE));
            }
            return;
        };
        for name in agents {
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
    pub(super) fn tools(&self, surroundings: &dyn Surroundings) -> Vec<Callable> {
        let agents = match &self.agents {
            Some(named) => named.iter().map(|name| name.value.clone()).collect(),
            None => surroundings.agents().into_iter().map(Key::from).collect(),
        };
        let team = Arc::new(Team { agents, needed: self.agents.is_some(), work: Key::from(WORK) });
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
