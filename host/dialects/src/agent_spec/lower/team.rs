//! Agents that work together: a manager with workers, a swarm, agents at other addresses.
//!
//! Whom an agent may ask is a tool of its model; the one that is asked runs by itself, is given a text and answers with one.
//! In a swarm whose agents hand over, all of them are one graph: they have one conversation, and a key of the state says
//! whose turn it is.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use hotcell_graph::conversation::Speaker;
use hotcell_graph::ir::{
    Action, CallAction, Callable, CapOrigin, Expression, Graph, Next, Node, NodeIds, Slot, Submit, Update, VisitCap,
};
use hotcell_graph::types::{Type, to_text};
use hotcell_graph::{Key, List, Object, Value};

use super::agent::{free_name, spoken_by};
use super::data::typed;
use super::tool::spoken;
use super::{ANSWER, Lowering, OwnKeys, site};
use crate::agent_spec::model::{ComponentId, Piece};
use crate::remote::Remote;

/// The tool by which an agent of a swarm hands the conversation over.
const HAND_OVER: &str = "handoff_conversation";
/// Its only argument.
const RECIPIENT: &str = "recipient";
/// How often the model of one agent may be asked in a run of a swarm.
const MAX_ROUNDS: u32 = 100;

/// An agent that others may ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Member {
    /// The agent
    pub(super) agent: ComponentId,
    /// The swarm whose relationships say whom it may ask itself
    pub(super) swarm: Option<ComponentId>,
}

/// How the agents of a swarm give work to each other.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Handoff {
    Never,
    Optional,
    Always,
}

impl<'c> Lowering<'c> {
    /// A manager and its workers.
    pub(super) fn team(&mut self, id: ComponentId) -> Option<Graph> {
        let team = self.component(id);
        let mut parts = self.parts(team.child("group_manager")?)?;
        for worker in team.children("workers").unwrap_or_default() {
            let callable = self.colleague(&parts.offered, Member { agent: *worker, swarm: None })?;
            parts.offered.push(callable);
        }
        let mut graph = {
            // Declared for the team as a whole, they are those of its manager.
            if !team.outputs.is_empty() {
                parts.outputs = &team.outputs;
            }
            self.agent_of(parts)?
        };
        graph.name = team.name.to_string();
        graph.description = team.text("description").map(str::to_owned);
        Some(graph)
    }

    /// Another agent as something that a model may call.
    pub(super) fn colleague(&mut self, offered: &[Callable], member: Member) -> Option<Callable> {
        let component = self.component(member.agent);
        let agent = match &*component.component_type {
            "A2AAgent" => self.remote(member.agent)?,
            _ => self.member(member)?,
        };
        let description = match component.text("description").filter(|text| !text.trim().is_empty()) {
            Some(text) => text.to_owned(),
            None => format!("Asks the agent {}", component.name),
        };
        Some(Callable::Agent { agent, name: free_name(offered, &spoken(&component.name)), description })
    }

    /// The name by which an agent of the configuration is called; it is lowered later.
    fn member(&mut self, member: Member) -> Option<Key> {
        if let Some((known, ..)) = self.members.iter().find(|(_, known, _)| *known == member) {
            return Some(known.clone());
        }
        let component = self.component(member.agent);
        if let Some(input) = component.inputs.iter().find(|input| input.default.is_none()) {
            let problem =
                format!("the agent is asked by others, which give it nothing for its input `{}`", input.title);
            self.refuse(component, format!("{problem}: give the input a default"));
            return None;
        }
        let mut key = component.shown.to_string();
        while self.members.iter().any(|(taken, ..)| **taken == *key) {
            key.push('\'');
        }
        let key = Key::from(key);
        self.members.push((key.clone(), member, None));
        Some(key)
    }

    /// Lowers the agents that others may ask, and those whom these may ask.
    pub(super) fn lower_members(&mut self) -> Vec<(Key, Arc<Graph>)> {
        self.within = None;
        self.is_alone = true;
        while let Some(place) = self.members.iter().position(|(.., graph)| graph.is_none()) {
            let member = self.members[place].1;
            let graph = self.member_graph(member);
            self.members[place].2 = Some(graph);
        }
        self.members.iter().filter_map(|(key, _, graph)| Some((key.clone(), graph.clone()?))).collect()
    }

    fn member_graph(&mut self, member: Member) -> Arc<Graph> {
        let Some(swarm) = member.swarm else { return self.callable(member.agent) };
        let component = self.component(member.agent);
        let graph = self.parts(member.agent).and_then(|mut parts| {
            for agent in self.recipients(swarm, member.agent) {
                let callable = self.colleague(&parts.offered, Member { agent, swarm: Some(swarm) })?;
                parts.offered.push(callable);
            }
            self.agent_of(parts)
        });
        Arc::new(graph.unwrap_or_else(|| super::empty(component)))
    }

    /// The pairs of a swarm: who may turn to whom.
    fn relationships(&self, swarm: ComponentId) -> Vec<(ComponentId, ComponentId)> {
        let Some(Piece::List(pairs)) = self.component(swarm).pieces.get("relationships") else { return Vec::new() };
        let pair = |piece: &Piece| match &piece.components()[..] {
            [caller, recipient] => Some((*caller, *recipient)),
            _ => None,
        };
        pairs.iter().filter_map(pair).collect()
    }

    /// Whom an agent of a swarm may turn to, each once.
    fn recipients(&self, swarm: ComponentId, caller: ComponentId) -> Vec<ComponentId> {
        let mut recipients = Vec::new();
        for (from, to) in self.relationships(swarm) {
            if from == caller && to != caller && !recipients.contains(&to) {
                recipients.push(to);
            }
        }
        recipients
    }

    /// A swarm.
    pub(super) fn swarm(&mut self, id: ComponentId) -> Option<Graph> {
        let swarm = self.component(id);
        let first = swarm.child("first_agent")?;
        let handoff = match swarm.value("handoff") {
            Some(Value::Bool(false)) => Handoff::Never,
            Some(Value::Text(mode)) if &**mode == "never" => Handoff::Never,
            Some(Value::Text(mode)) if &**mode == "always" => Handoff::Always,
            _ => Handoff::Optional,
        };
        if !swarm.outputs.is_empty() {
            self.refuse(swarm, "a swarm gives the last words of its agents, so it cannot have `outputs`");
            return None;
        }
        let mut agents = vec![first];
        if handoff != Handoff::Never {
            let mut open = VecDeque::from([first]);
            while let Some(caller) = open.pop_front() {
                for recipient in self.recipients(id, caller) {
                    let is_far = &*self.component(recipient).component_type == "A2AAgent";
                    let is_asked_only = is_far && handoff == Handoff::Optional;
                    if !(agents.contains(&recipient) || is_asked_only) {
                        agents.push(recipient);
                        open.push_back(recipient);
                    }
                }
            }
        }
        self.swarm_of(id, &agents, handoff)
    }

    fn swarm_of(&mut self, id: ComponentId, agents: &[ComponentId], handoff: Handoff) -> Option<Graph> {
        let swarm = self.component(id);
        let mut inputs: Vec<&str> = swarm.inputs.iter().map(|input| &*input.title).collect();
        inputs.extend(agents.iter().flat_map(|agent| self.component(*agent).inputs.iter()).map(|input| &*input.title));
        let keys = OwnKeys::beside(inputs.into_iter());
        let names = self.names(agents);
        let mut ids: Vec<String> = vec!["begin".to_owned()];
        for name in &names {
            ids.extend([format!("{name}/turn"), name.clone(), format!("{name}/tools")]);
        }
        ids.push("end".to_owned());
        let ids = NodeIds::new(ids.iter().map(String::as_str));
        let index = |id: &str| ids.get(id);
        let to = |id: &str| Next::To(index(id).into_iter().collect());
        let turn_of = |value: Expression| {
            let routes = names.iter().filter_map(|name| Some((name.clone(), index(&format!("{name}/turn"))?)));
            Some(Next::ByValue {
                value,
                routes: routes.collect(),
                otherwise: index(&format!("{}/turn", names.first()?))?,
            })
        };

        let begin: Vec<Update> = swarm
            .inputs
            .iter()
            .map(|property| {
                let value = typed(property, "input", Expression::Key(property.title.clone()));
                Update { key: property.title.clone(), value }
            })
            .collect();
        let first = Expression::Value(Value::from(names.first()?.as_str()));
        let whose = Expression::Else(Box::new(Expression::Key(keys.turn.clone())), Box::new(first));
        let bare = |id: &str, action: Action| site::bare(id, "Swarm", action, swarm);
        let mut nodes = vec![Node { updates: begin, next: turn_of(whose)?, ..bare("begin", Action::Pass) }];
        for (agent, name) in agents.iter().zip(&names) {
            let mut parts = self.parts(*agent)?;
            if !parts.outputs.is_empty() {
                self.refuse(
                    parts.component,
                    "an agent of a swarm talks to whoever it works for and cannot have `outputs`",
                );
                return None;
            }
            let recipients = self.recipients(id, *agent);
            if handoff != Handoff::Always {
                for recipient in &recipients {
                    let callable = self.colleague(&parts.offered, Member { agent: *recipient, swarm: Some(id) })?;
                    parts.offered.push(callable);
                }
            }
            let others: Vec<(&str, ComponentId)> = agents
                .iter()
                .zip(&names)
                .filter(|(other, _)| handoff != Handoff::Never && recipients.contains(other))
                .map(|(other, name)| (name.as_str(), *other))
                .collect();
            if !others.is_empty() {
                let submit = self.hand_over(&parts.offered, &others, &keys.filled);
                parts.offered.push(Callable::Submit(Arc::new(submit)));
            }
            let component = self.component(*agent);
            let make = |id: &str, action: Action, updates: Vec<Update>, next: Next| Node {
                updates,
                next,
                ..site::bare(id, "Agent", action, component)
            };
            let its_turn = vec![
                Update { key: keys.turn.clone(), value: Expression::Value(Value::from(name.as_str())) },
                Update { key: keys.filled.clone(), value: Expression::Value(Value::Null) },
            ];
            let implied = Some(Key::from(name.as_str()));
            let turn = format!("{name}/turn");
            nodes.push(Node { implied_by: implied.clone(), ..make(&turn, Action::Pass, its_turn, to(name)) });
            let agent_loop = self.agent_loop(&parts, &keys.conversation);
            let say = Update { key: keys.conversation.clone(), value: Expression::Key(ANSWER.into()) };
            let after_reply = Next::When {
                condition: Expression::AsksForTools(keys.conversation.clone()),
                then: Box::new(to(&format!("{name}/tools"))),
                otherwise: Box::new(to("end")),
            };
            nodes.push(make(name, Action::Converse(Box::new(agent_loop.request())), vec![say], after_reply));
            let recipient = Expression::Entry(Box::new(Expression::Key(keys.filled.clone())), RECIPIENT.into());
            let after_tools = Next::When {
                condition: Expression::Has(keys.filled.clone()),
                then: Box::new(turn_of(recipient)?),
                otherwise: Box::new(to(name)),
            };
            let tools =
                make(&format!("{name}/tools"), Action::AnswerCalls(agent_loop.answers()), Vec::new(), after_tools);
            nodes.push(Node { implied_by: implied, ..tools });
        }
        let end = vec![
            Update { key: keys.results.outputs.clone(), value: Expression::Value(Value::Object(Object::default())) },
            Update { key: keys.results.branch.clone(), value: Expression::Value("next".into()) },
        ];
        let output = Expression::LastReply { conversation: keys.conversation.clone(), required: false };
        nodes.push(Node { updates: end, ..bare("end", Action::End { output }) });
        let mut graph = Graph::new(&*swarm.name, nodes, "begin")?;
        graph.description = swarm.text("description").map(str::to_owned);
        let shown = &swarm.shown;
        let origin = CapOrigin::Fixed(format!(
            "an agent of the swarm `{shown}` has had {MAX_ROUNDS} turns, which is all that is allowed: say in the \
             instructions of its agents when one of them answers instead of handing over"
        ));
        graph.limits.visits_per_node = Some(VisitCap { visits: MAX_ROUNDS, origin });
        let told = swarm.inputs.iter().map(|input| input.title.clone()).chain([keys.turn.clone()]).collect();
        keys.give_to(&mut graph, &swarm.inputs, &[], told);
        Some(graph)
    }

    /// What the agents of a swarm are called: by their names, which their instructions use, where these tell them apart.
    fn names(&self, agents: &[ComponentId]) -> Vec<String> {
        let name = |id: &ComponentId| &self.component(*id).name;
        let is_unique = |id: &ComponentId| agents.iter().filter(|other| name(other) == name(id)).count() == 1;
        let reserved = |text: &str| matches!(text, "begin" | "end") || text.is_empty();
        let one = |id: &ComponentId| {
            let component = self.component(*id);
            let name = if is_unique(id) && !reserved(&component.name) { &component.name } else { &component.shown };
            if reserved(name) { format!("{name}'") } else { name.to_string() }
        };
        agents.iter().map(one).collect()
    }

    /// The tool by which an agent hands the conversation over to one of these.
    fn hand_over(&self, offered: &[Callable], others: &[(&str, ComponentId)], key: &Key) -> Submit {
        let names: List = others.iter().map(|(name, _)| Value::from(*name)).collect();
        let schema: Object =
            [("type".into(), Value::from("string")), ("enum".into(), Value::List(names))].into_iter().collect();
        let schema = Value::Object(schema);
        let who: Vec<String> = others
            .iter()
            .map(|(name, id)| match self.component(*id).text("description").filter(|text| !text.trim().is_empty()) {
                Some(text) => format!("{name}: {text}"),
                None => (*name).to_owned(),
            })
            .collect();
        // Made of texts, so it is a type.
        let ty = Arc::new(Type::of_schema(&schema).unwrap_or_else(|_| Type::text()));
        Submit {
            name: free_name(offered, HAND_OVER),
            description: Some(format!(
                "Hands the conversation with the user over to another agent, which goes on with it. The agents are:\n{}",
                who.join("\n")
            )),
            outputs: vec![Slot { name: RECIPIENT.into(), schema, ty, default: None }],
            key: key.clone(),
            kept: None,
        }
    }

    /// An agent at another address, by the name under which it is called.
    fn remote(&mut self, id: ComponentId) -> Option<Key> {
        let agent = self.component(id);
        if let Some(known) = self.remotes.iter().find(|(known, _)| *known == id) {
            return Some(known.1.name.clone());
        }
        let connection = self.component(agent.child("connection_config")?);
        if matches!(connection.value("verify"), Some(Value::Bool(false))) {
            self.refuse_field(
                connection,
                "verify",
                "`verify: false` is not supported: whoever answers has to prove who it is",
            );
        }
        let url = agent.text("agent_url").unwrap_or_default().to_owned();
        let name = Key::from(format!("{} ({url})", agent.shown));
        let tls = self.tls(connection, &url, ["ssl_ca_cert", "cert_file", "key_file"]);
        let headers = connection.value("headers").and_then(Value::as_object);
        let header = |(name, value): (&Key, &Value)| (name.to_string(), to_text(value));
        let time = match connection.value("timeout") {
            Some(Value::Number(seconds)) => Duration::try_from_secs_f64(seconds.to_f64()).ok(),
            _ => None,
        };
        let remote = Remote {
            name: name.clone(),
            url,
            headers: headers.into_iter().flat_map(|headers| headers.iter()).map(header).collect(),
            retry: self.retry(connection),
            time,
            tls,
            span: agent.span.clone(),
        };
        self.remotes.push((id, remote));
        Some(name)
    }

    /// The graph that asks an agent at another address what the person said last.
    pub(super) fn far_agent(&mut self, id: ComponentId) -> Option<Graph> {
        let component = self.component(id);
        let agent = self.remote(id)?;
        let keys = OwnKeys::beside(std::iter::empty());
        let ids = NodeIds::new(["ask", "end"]);
        let conversation = &keys.conversation;
        let action = CallAction::agent(agent, Expression::LastHeard(conversation.clone()), ANSWER);
        let said = spoken_by(Speaker::Ai, Expression::Key(ANSWER.into()));
        let ask = Node {
            updates: vec![Update { key: conversation.clone(), value: said }],
            next: Next::To(ids.get("end").into_iter().collect()),
            ..site::bare("ask", "A2AAgent", Action::Call(Box::new(action)), component)
        };
        let end = vec![
            Update { key: keys.results.outputs.clone(), value: Expression::Value(Value::Object(Object::default())) },
            Update { key: keys.results.branch.clone(), value: Expression::Value("next".into()) },
        ];
        let output = Expression::LastReply { conversation: conversation.clone(), required: false };
        let end = Node { updates: end, ..site::bare("end", "A2AAgent", Action::End { output }, component) };
        let mut graph = Graph::new(&*component.name, vec![ask, end], "ask")?;
        graph.description = component.text("description").map(str::to_owned);
        keys.give_to(&mut graph, &[], &[], Vec::new());
        Some(graph)
    }
}
