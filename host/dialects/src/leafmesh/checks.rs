//! What the agents of a mesh are to each other: whether all names name something, and what will probably not go as meant.

use std::collections::{BTreeSet, HashMap, HashSet};

use hotcell_graph::diagnostic::{Diagnostic, Severity, Span};
use hotcell_graph::{Key, Reachability};

use super::expressions::FROM_AGENT;
use super::functions::{self, Function, ModelTool};
use super::reading::{Reading, did_you_mean};
use super::schema::{Agent, AgentType, Body, Communication, Edge, Interface, Mesh};
use super::state::HUMAN_DECISION;
use super::{lower_knowledge, mcp, models};
use crate::document::SourceText;

/// What the answers of people have without declaring it.
pub(super) const OF_PEOPLE: [&str; 8] = [
    "human_message",
    "human_decision",
    "human_data",
    "human_initiated",
    "source_agent",
    "operator_id",
    "timestamp",
    "original_webhook_data",
];

/// Whether a field of an answer says what a person means: not what every answer has, but for the decision.
pub(super) fn is_meant(field: &str) -> bool {
    field == HUMAN_DECISION || (field != FROM_AGENT && !OF_PEOPLE.contains(&field))
}

/// Checks a mesh; what is wrong is reported.
pub(super) fn mesh(mesh: &Mesh, reading: &Reading<'_, '_>) {
    let agents = mesh.agents.iter().map(|agent| (&*agent.name, agent)).collect();
    let calls = mesh
        .agents
        .iter()
        .flat_map(|agent| agent.edges.iter().map(move |edge| (&*agent.name, &*edge.target)))
        .collect();
    let checks = Checks { mesh, reading, agents, calls };
    for agent in &mesh.agents {
        checks.names_of(agent);
        checks.fan_in(agent);
        checks.conditions(agent);
        checks.function(agent);
        checks.memory(agent);
        checks.intent(agent);
        checks.tools(agent);
        models::check(agent, mesh, reading);
    }
    if let Some(summarizer) = mesh.manager.as_ref().and_then(|manager| manager.summarizer.as_ref()) {
        models::check_manager(&summarizer.model, mesh, reading);
    }
    checks.entry_points();
    checks.callbacks();
    checks.circles();
    checks.manager();
}

struct Checks<'c, 'r, 'd> {
    mesh: &'c Mesh,
    reading: &'c Reading<'r, 'd>,
    /// By their names
    agents: HashMap<&'c str, &'c Agent>,
    /// Who calls whom
    calls: HashSet<(&'c str, &'c str)>,
}

impl<'c> Checks<'c, '_, '_> {
    fn report(&self, diagnostic: Diagnostic) {
        self.reading.reader.report(diagnostic);
    }

    fn agent(&self, name: &str) -> Option<&'c Agent> {
        self.agents.get(name).copied()
    }

    /// Reports a name that is that of no agent.
    fn resolve(&self, name: &SourceText, who: &str, node: Option<&Key>) {
        if self.agent(name).is_none() {
            self.unknown(name, &name.span, who, node);
        }
    }

    fn unknown(&self, name: &str, span: &Span, who: &str, node: Option<&Key>) {
        let mut error = Diagnostic::error(format!("{who} names the agent `{name}`, which does not exist")).at(span);
        error.node = node.map(|node| node.to_string());
        error.help = hotcell_graph::closest(name, self.mesh.agents.iter().map(|agent| &*agent.name))
            .map(|near| format!("did you mean `{near}`?"));
        self.report(error);
    }

    /// Who is told when something goes wrong, and who is called because a post says so.
    fn manager(&self) {
        let Some(manager) = &self.mesh.manager else { return };
        for name in &manager.escalation_agents {
            self.resolve(name, "an escalation target", None);
        }
        if manager.settings.is_none() {
            return;
        }
        let warn = |message: String, span: &Span, help: &str| {
            self.report(Diagnostic::warning(message).at(span).node("manager").help(help));
        };
        for name in &manager.escalation_agents {
            let agent = self.agent(name).filter(|agent| agent.body.agent_type() != AgentType::Human);
            if let Some(agent) = agent {
                let kind = agent.body.agent_type().word();
                let message = format!(
                    "an escalation asks `{}`, which is an `{kind}` agent: it is run, and nobody is asked",
                    agent.name
                );
                warn(message, &name.span, "name an agent with `agent_type: human`");
            }
        }
        for provider in &manager.escalation_channels {
            let has = |agent: &Agent| match &agent.body {
                Body::Human(human) => human.channels.iter().any(|channel| *channel.provider == **provider),
                _ => false,
            };
            if !self.mesh.agents.iter().any(has) {
                let message = format!(
                    "an escalation posts to `{}`, which no agent has among its `channels`: nobody is told",
                    &**provider
                );
                warn(
                    message,
                    &provider.span,
                    "give a human agent this channel: its settings are those that escalations are posted with",
                );
            }
        }
        if manager.summarizer.as_ref().is_none_or(|summarizer| summarizer.intervenes) {
            return;
        }
        for agent in self.mesh.agents.iter().filter(|agent| agent.narration.is_some()) {
            let message = format!(
                "`narration` of the agent `{}` has nobody called: `can_intervene` of the manager is `false`",
                agent.name
            );
            let warning = Diagnostic::warning(message).at(&agent.span).node(&*agent.name);
            self.report(warning.help("leave `can_intervene` out, or write edges in `can_call`"));
        }
    }

    fn names_of(&self, agent: &Agent) {
        for edge in &agent.edges {
            self.resolve(&edge.target, "`can_call`", Some(&agent.name));
        }
        if let Some(before) = &agent.previous_name {
            let claims = |other: &&Agent| {
                other.name != agent.name
                    && (*other.name == **before || other.previous_name.as_ref().is_some_and(|name| **name == **before))
            };
            if let Some(other) = self.mesh.agents.iter().find(claims) {
                let problem = match *other.name == **before {
                    true => format!("`previous_name: {}` is the name of another agent", &**before),
                    false => format!("`{}` says that its `previous_name` is `{}`, too", other.name, &**before),
                };
                let error = Diagnostic::error(problem).at(&before.span).node(&*agent.name);
                self.report(error.help("only one agent can go on with what was kept under that name"));
            }
        }
        for (caller, _) in &agent.overrides {
            self.resolve(caller, "`response_overrides`", Some(&agent.name));
            if self.agent(caller).is_some() && !self.calls.contains(&(&**caller, &*agent.name)) {
                let message = format!("`response_overrides` names `{}`, which never calls `{}`", &**caller, agent.name);
                let help = format!("add `{}` to `can_call` of `{}`, or take it out", agent.name, &**caller);
                self.report(Diagnostic::warning(message).at(&caller.span).node(&*agent.name).help(help));
            }
        }
    }

    fn fan_in(&self, agent: &Agent) {
        let Some(wait) = &agent.wait else { return };
        for text in &wait.texts {
            for (name, place) in super::wait::Wait::parse(text).iter().flat_map(|wait| wait.agents()) {
                let span = text.span_of(place.clone());
                let Some(contributor) = self.agent(name) else {
                    self.unknown(name, &span, "`wait_for`", Some(&agent.name));
                    continue;
                };
                if !self.calls.contains(&(&*contributor.name, &*agent.name)) {
                    let message = format!("`wait_for` waits for `{name}`, which never calls `{}`", agent.name);
                    let help = format!("add `{}` to `can_call` of `{name}`", agent.name);
                    self.report(Diagnostic::warning(message).at(&span).node(&*agent.name).help(help));
                }
            }
        }
    }

    /// Warns of conditions on fields that the agent does not declare.
    fn conditions(&self, agent: &Agent) {
        if agent.yields.is_empty() {
            return;
        }
        let declared: HashSet<&str> = agent.yields.iter().map(|(name, _)| &**name).collect();
        let is_human = agent.body.agent_type() == AgentType::Human;
        for condition in agent.edges.iter().filter_map(|edge| edge.condition.as_ref()) {
            for field in condition.condition.entries() {
                let is_known = &*field == "from_agent"
                    || field.starts_with('_')
                    || (is_human && OF_PEOPLE.contains(&&*field))
                    || declared.contains(&*field);
                if is_known {
                    continue;
                }
                if self.reading.reader.is_full_of(Severity::Warning) {
                    return;
                }
                let message =
                    format!("a condition names `{field}`, which `yields` of `{}` does not declare", agent.name);
                let warning = Diagnostic::warning(message).at(&condition.span).node(&*agent.name);
                let near = hotcell_graph::closest(&field, agent.yields.iter().map(|(name, _)| &**name));
                let help = near.map_or_else(
                    || "where the field is missing the condition does not hold".to_owned(),
                    |near| format!("did you mean `{near}`? Where the field is missing the condition does not hold"),
                );
                self.report(warning.help(help));
            }
        }
    }

    /// Warns of agents that only a function can be, where there is none.
    fn function(&self, agent: &Agent) {
        let what = match &agent.body {
            Body::Programmatic { integration: None } => "a programmatic agent without `integration`",
            Body::External(Some(connector)) if &*connector.name == "custom" => "an agent with `framework: custom`",
            Body::Human(human) if matches!(human.interface, Interface::Api | Interface::Custom) => {
                "a human agent that is asked by a function"
            }
            Body::Llm(_) | Body::External(_) | Body::Programmatic { .. } => {
                if functions::of_agent(&agent.name, &self.mesh.code, self.reading.surroundings).is_ok() {
                    return;
                }
                "the agent"
            }
            Body::Human(_) => return,
        };
        let is_person = matches!(agent.body, Body::Human(_));
        let (problem, help) = match functions::of_agent(&agent.name, &self.mesh.code, self.reading.surroundings) {
            Ok(Some(Function::Tool | Function::Code { .. })) => return,
            Ok(None) => (
                format!("there is no function `{}`, which {what} needs", agent.name),
                match is_person {
                    false => functions::places(&agent.name, &self.mesh.code),
                    true => functions::handler_places(&agent.name, &self.mesh.code),
                },
            ),
            Err(reason) => (
                format!("the function `{}` cannot be used: {reason}", agent.name),
                "until this is fixed, the agent fails".to_owned(),
            ),
        };
        self.report(Diagnostic::warning(problem).at(&agent.span).node(&*agent.name).help(help));
    }

    /// Warns of a model that has nothing to find in the answers of a person.
    fn intent(&self, agent: &Agent) {
        let Body::Human(human) = &agent.body else { return };
        let Some(model) = &human.intent_model else { return };
        let mut conditions = agent.edges.iter().filter_map(|edge| edge.condition.as_ref());
        if !conditions.any(|condition| condition.condition.entries().iter().any(|field| is_meant(field))) {
            let message = format!(
                "`intent_model` of the agent `{}` has no effect: no condition in `can_call` asks what the person means",
                agent.name
            );
            self.report(Diagnostic::warning(message).at(&model.span).node(&*agent.name));
        }
    }

    /// Warns of memories that nobody is given: a model is told them, and a function of a Python file finds them in its context.
    fn memory(&self, agent: &Agent) {
        if agent.memory.is_none() || !self.reading.has_manager {
            return;
        }
        let is_given = match &agent.body {
            Body::Llm(_) => true,
            Body::Human(_) => false,
            Body::Programmatic { .. } | Body::External(_) => {
                let function = functions::of_agent(&agent.name, &self.mesh.code, self.reading.surroundings);
                // One that cannot be used is told already.
                !matches!(function, Ok(None | Some(Function::Tool)))
            }
        };
        if !is_given {
            let why = "only models and functions of Python files get memories";
            let message = format!("`memory` of the agent `{}` has no effect: {why}", agent.name);
            self.report(Diagnostic::warning(message).at(&agent.span).node(&*agent.name));
        }
    }

    /// Warns of tools that are not there, which no model is offered.
    fn tools(&self, agent: &Agent) {
        let Body::Llm(llm) = &agent.body else { return };
        mcp::check(agent, &llm.servers, self.mesh, self.reading);
        self.categories(agent, &llm.tools.categories);
        for name in llm.tools.names.iter().filter(|name| agent.queried().is_none() || ***name != *lower_knowledge::TOOL)
        {
            let (problem, help) = match functions::model_tool(name, &agent.name, self.reading.surroundings) {
                ModelTool::Usable(..) => continue,
                ModelTool::Missing if &**name == lower_knowledge::TOOL => {
                    let (why, help) = match agent.knowledge_base() {
                        None => (
                            "it has no `knowledge` to query",
                            "write `knowledge: {serviceName: ...}`, which brings this tool along",
                        ),
                        Some(_) => ("`knowledge_strategy` is `inject`", "write `both`, or take it out of `tools`"),
                    };
                    (format!("the model of `{}` is not offered `{}`: {why}", agent.name, &**name), help.to_owned())
                }
                ModelTool::Missing => (
                    format!("there is no tool `{}`, so that the model of `{}` is not offered it", &**name, agent.name),
                    format!("define it in `agency/tools.py`, or install a plugin that exports a tool `{}`", &**name),
                ),
                ModelTool::Unusable(reason) => (
                    format!("the tool `{}` cannot be used: {reason}", &**name),
                    format!("the model of `{}` is not offered it until then", agent.name),
                ),
            };
            self.report(Diagnostic::warning(problem).at(&name.span).node(&*agent.name).help(help));
        }
    }

    /// Warns of categories of which there is no tool.
    fn categories(&self, agent: &Agent, categories: &[SourceText]) {
        for category in categories {
            let (problem, help) =
                match functions::of_categories(std::slice::from_ref(category), self.reading.surroundings) {
                    Ok(tools) if !tools.is_empty() => continue,
                    Ok(_) => (
                        format!("there is no tool of the category `{}`", &**category),
                        format!(
                            "say so where a tool is defined, in `agency/tools.py`: `@global_tool(category=\"{}\")`",
                            &**category
                        ),
                    ),
                    Err(reason) => (
                        format!("the tools of the category `{}` cannot be used: {reason}", &**category),
                        format!("the model of `{}` is not offered them until then", agent.name),
                    ),
                };
            self.report(Diagnostic::warning(problem).at(&category.span).node(&*agent.name).help(help));
        }
    }

    fn entry_points(&self) {
        for entry in &self.mesh.entry_points {
            self.resolve(&entry.target, &format!("the entry point `{}`", &*entry.name), None);
        }
        if self.mesh.entry_points.is_empty() && !self.agents.is_empty() {
            let message = "the mesh has no entry point, so that nothing can begin";
            let help = "add one: `entry_points: [{name: ..., target: ...}]`";
            let root = self.reading.reader.document().root.place;
            self.report(Diagnostic::warning(message).at(&self.reading.reader.span(root)).help(help));
        }
        let known: Vec<Key> = self.mesh.entry_points.iter().map(|entry| entry.name.value.clone()).collect();
        for named in &self.mesh.named_entries {
            if !known.contains(&named.value) {
                let error = Diagnostic::error(format!("there is no entry point `{}`", &**named)).at(&named.span);
                let near = did_you_mean(named, &known);
                self.report(error.help(near.unwrap_or_else(|| "name one of `entry_points`".to_owned())));
            }
        }
        for usual in self.mesh.usual_entries.iter().filter(|usual| !known.contains(&usual.value)) {
            let message = format!(
                "a test scenario without `entry_point` calls `{}`, and there is no such entry point: its score is 0",
                &**usual
            );
            self.report(Diagnostic::warning(message).at(&usual.span).help("name one of `entry_points` in it"));
        }
    }

    /// Warns of pairs of agents each of which answers the other.
    fn callbacks(&self) {
        for caller in self.mesh.agents.iter().filter(|agent| agent.communication == Communication::Dual) {
            for edge in &caller.edges {
                let Some(callee) = self.agent(&edge.target) else { continue };
                if callee.communication_toward(&caller.name) == Communication::Dual {
                    let message = format!(
                        "`{}` and `{}` are both `dual`: what `{}` gives comes back to `{}`, whose edges are looked at again",
                        caller.name, callee.name, callee.name, caller.name
                    );
                    let help = "make one of them `chain`, or see to it that the conditions end";
                    self.report(Diagnostic::warning(message).at(&edge.target.span).node(&*caller.name).help(help));
                }
            }
        }
    }

    /// Warns of circles whose edges are all unconditional, each once.
    fn circles(&self) {
        let always = |agent: &'c Agent| agent.edges.iter().filter(|edge| edge.condition.is_none());
        let places: HashMap<&str, usize> =
            self.mesh.agents.iter().enumerate().map(|(place, agent)| (&*agent.name, place)).collect();
        let targets = |agent: &'c Agent| -> Vec<usize> {
            always(agent).filter_map(|edge| places.get(&*edge.target).copied()).collect()
        };
        let reach = Reachability::of(&self.mesh.agents.iter().map(targets).collect::<Vec<_>>());
        let mut told: BTreeSet<&str> = BTreeSet::new();
        for (place, start) in self.mesh.agents.iter().enumerate() {
            if told.contains(&*start.name) || !reach.leads(place, place) {
                continue;
            }
            if self.reading.reader.is_full_of(Severity::Warning) {
                return;
            }
            // The way to each agent that always follows, by who comes before it.
            let mut before: HashMap<&str, &'c Agent> = HashMap::new();
            let mut open = std::collections::VecDeque::from([start]);
            let mut last: Option<(&'c Agent, &'c Edge)> = None;
            while let (None, Some(agent)) = (last, open.pop_front()) {
                for edge in always(agent) {
                    if *edge.target == *start.name {
                        last = Some((agent, edge));
                        break;
                    }
                    if let Some(next) = self.agent(&edge.target)
                        && !before.contains_key(&*next.name)
                    {
                        before.insert(&next.name, agent);
                        open.push_back(next);
                    }
                }
            }
            let Some((mut agent, edge)) = last else { continue };
            let mut way = vec![&*start.name, &*agent.name];
            while agent.name != start.name {
                let Some(previous) = before.get(&*agent.name) else { break };
                agent = previous;
                way.push(&*agent.name);
            }
            way.dedup();
            way.reverse();
            if way.len() == 1 {
                way.push(&*start.name);
            }
            told.extend(&way);
            let message = format!("agents call each other in a circle without a condition: {}", way.join(" -> "));
            let help = format!(
                "`mesh.max_chain_events` ({}) ends it; a condition would be better",
                self.mesh.max_chain_events
            );
            self.report(Diagnostic::warning(message).at(&edge.target.span).node(&*start.name).help(help));
        }
    }
}
