//! From one agent of a file to the IR. References are resolved on the way; what does not resolve is reported.

use std::collections::HashMap;
use std::sync::Arc;

use hotcell_graph::diagnostic::{Diagnostic, Span};
use hotcell_graph::formula::{Formula, Wanted};
use hotcell_graph::ir::{
    Action, AgentLoop, AskAction, CallAction, CapOrigin, Expression, FailureRecord, Graph, Join, LoadSkillsAction,
    LoopPlaces, ModelSettings, Next, Node as IrNode, NodeIds, OnFailure, PromptPart, RunLimits, SkillWords, Skills,
    SpreadAction, Update, VisitCap,
};
use hotcell_graph::{Key, Reducer, Template, Value, closest};

use super::edges;
use super::lowering::Lowering;
use super::names::{HIDDEN, Names, REPLY, Style};
use super::references::Scope;
use super::schema::{Agent, Body, CallLlm, END, MESSAGES, Node, PromptRole, Reference, START, Source};
use crate::document::{Reader, SourceText, Spanned};

/// The state key that says which skills are loaded.
const LOADED_SKILLS: &str = "__skills__";
/// The end of the name of a tool node that a node with tools gets by itself.
const TOOLS_OF: &str = "_tools";

/// Checks an agent and makes its graph; none if something is wrong.
pub(super) fn graph(source: &Source, agent: &Agent, style: Style, reader: &Reader<'_>) -> Option<Graph> {
    let names = Names::new(source, agent, style, reader);
    let lowering = Lowering { source, agent, reader, names, scope: Scope { source, reader } };
    lowering.check();
    let graph = lowering.graph();
    if reader.has_error() { None } else { graph }
}

impl Lowering<'_, '_, '_> {
    fn error(&self, node: &SourceText, message: String, span: &Span) -> Diagnostic {
        Diagnostic::error(message).at(span).node(&**node)
    }

    fn check(&self) {
        let mut seen: HashMap<&str, &Span> = HashMap::new();
        for node in &self.agent.nodes {
            let name = &*node.name;
            if matches!(name, END | START) {
                let error = self.error(&node.name, format!("no node can be called `{name}`"), &node.name.span);
                self.reader.report(error.help("give it another name"));
            }
            if let Some(first) = seen.insert(name, &node.name.span) {
                let error = self.error(&node.name, format!("two nodes are called `{name}`"), &node.name.span);
                self.reader.report(error.related(first, "first here").help("give one of them another name"));
            }
            if node.needs_conversation() && !self.agent.has_conversation() {
                let message =
                    format!("a `{}` node needs the field `{MESSAGES}` of the type `list` in the state", node.kind());
                let help = format!("add it: `- {{name: {MESSAGES}, type: list, default: []}}`");
                self.reader.report(self.error(&node.name, message, &node.name.span).help(help));
            }
        }
    }

    fn graph(&self) -> Option<Graph> {
        let agent = self.agent;
        let tool_nodes = self.tool_nodes();
        let start = edges::start(self);
        let begins_implied = start.as_ref().is_some_and(|start| start.implied.is_some());
        let implied = tool_nodes.values().map(String::as_str).chain(begins_implied.then_some(START)).chain([END]);
        let mut ids: Vec<&str> = agent.nodes.iter().map(|node| &*node.name).collect();
        ids.extend(implied);
        let ids = NodeIds::new(ids);
        let mut nodes = Vec::with_capacity(agent.nodes.len() + tool_nodes.len() + 2);
        let mut complete = true;
        let mut implied = Vec::with_capacity(tool_nodes.len());
        for node in &agent.nodes {
            match self.node(node, &ids, tool_nodes.get(&*node.name)) {
                Some((node, tools)) => {
                    nodes.push(node);
                    implied.extend(tools);
                }
                None => complete = false,
            }
        }
        // In the order in which their ids were given.
        implied.sort_by(|one, other| one.implied_by.cmp(&other.implied_by));
        nodes.extend(implied);
        if let Some(next) = start.as_ref().and_then(|start| start.implied.as_ref())
            && let Some(next) = next(&ids)
        {
            nodes.push(implied_node(START, Action::Pass, next, &agent.name.span));
        }
        let output = if agent.has_conversation() {
            Expression::LastReply { conversation: MESSAGES.into(), required: false }
        } else {
            Expression::Value(Value::from(""))
        };
        nodes.push(implied_node(END, Action::End { output }, Next::To(Vec::new()), &agent.name.span));
        edges::check(self);
        if !complete || self.reader.has_error() {
            return None;
        }
        let mut graph = Graph::new(&*agent.name.value, nodes, &start?.node)?;
        graph.initial_state = agent.fields.iter().filter_map(initial).collect();
        let names = |field: &super::schema::Field| Arc::clone(&field.name.value);
        graph.open_state = agent.fields.iter().map(names).collect();
        graph.floats = agent.fields.iter().filter(|field| field.is_float).map(names).collect();
        if agent.has_conversation() {
            graph.conversation = Some(MESSAGES.into());
            graph.reducers.insert(MESSAGES.into(), Reducer::Converse);
        }
        graph.failure_record = FailureRecord::Object { key: HIDDEN.into(), field: "last_error".into() };
        graph.reducers.insert(HIDDEN.into(), Reducer::Merge);
        if !self.source.skills.is_empty() {
            graph.reducers.insert(LOADED_SKILLS.into(), Reducer::Merge);
            graph.skills = Some(Skills {
                all: self.source.skills.clone(),
                loaded_key: LOADED_SKILLS.into(),
                words: SkillWords::default(),
            });
        }
        graph.input_schema = agent.input_schema.clone();
        let limits = graph.limits.clone();
        graph.limits = RunLimits {
            rounds: Some(VisitCap { visits: agent.rounds, origin: CapOrigin::Setting("recursion_limit") }),
            concurrency: agent.concurrency.unwrap_or(limits.concurrency),
            ..limits
        };
        Some(graph)
    }

    /// The nodes that get a tool node by themselves, with its name.
    fn tool_nodes(&self) -> std::collections::BTreeMap<String, String> {
        let wants = |node: &&Node| match &node.body {
            Body::CallLlm(call) => call.has_tools() && !edges::leads_to_tool_node(self.agent, &node.name),
            _ => false,
        };
        let name = |node: &Node| {
            let mut name = format!("{}{TOOLS_OF}", &*node.name);
            while self.agent.node(&name).is_some() {
                name.push('_');
            }
            (node.name.to_string(), name)
        };
        self.agent.nodes.iter().filter(wants).map(name).collect()
    }

    /// A node, and the one that it implies because its model may call tools.
    fn node(&self, node: &Node, ids: &NodeIds, tool_node: Option<&String>) -> Option<(IrNode, Option<IrNode>)> {
        let lowered = match &node.body {
            Body::CallLlm(call) => {
                self.call_llm(node, call).map(|(agent, updates)| (Lowered::Loop(Arc::new(agent)), updates))
            }
            _ => self.body(node).map(|(action, updates)| (Lowered::Action(Box::new(action)), updates)),
        };
        let next = edges::next(self, &node.name, ids);
        let on_failure = match &node.fallback {
            Some(target) => OnFailure::To(edges::target(self, &node.name, target, ids)?),
            None => OnFailure::Fail,
        };
        let (lowered, updates) = lowered?;
        let agent = match lowered {
            Lowered::Action(action) => {
                return Some((IrNode { updates, on_failure, ..plain(node, *action, next?) }, None));
            }
            Lowered::Loop(agent) => agent,
        };
        let next = next?;
        let tools = match tool_node {
            Some(name) => Some(ids.get(name)?),
            None => None,
        };
        let places = LoopPlaces { ask: ids.get(&node.name)?, tools, capped: None, done: next.clone(), exit: next };
        let steps = agent.lower(places);
        let asks = plain(node, Action::Converse(Box::new(steps.ask)), steps.after_reply);
        let answers = tool_node.map(|name| IrNode {
            id: name.as_str().into(),
            implied_by: Some(Arc::clone(&node.name.value)),
            ..plain(node, Action::AnswerCalls(steps.answer), steps.after_calls)
        });
        Some((IrNode { updates, on_failure, ..asks }, answers))
    }

    fn body(&self, node: &Node) -> Option<(Action, Vec<Update>)> {
        let name = &*node.name;
        let formula = |text: &Option<SourceText>, what: &str, wanted: &Wanted<'_>| {
            let text = text.as_ref()?;
            self.names.compile(text, what, name, wanted).map(Expression::Formula)
        };
        let to_messages = |value: Expression| vec![Update { key: MESSAGES.into(), value }];
        Some(match &node.body {
            // It is a loop, not an action.
            Body::CallLlm(_) => return None,
            Body::ToolNode(tools) => (self.tool_node(node, tools.as_deref()), Vec::new()),
            Body::CallAgent { agent, input } => {
                let prompt = formula(input, "`input`", &Wanted::Anything);
                let agent = self.scope.sub_agent(node, agent.as_ref()?)?;
                let action = CallAction::agent(agent, prompt?, "reply");
                let message = Expression::Object(vec![
                    ("type".into(), Expression::Value("ai".into())),
                    ("content".into(), bound("reply")),
                ]);
                (Action::Call(Box::new(action)), to_messages(message))
            }
            Body::Transform(text) => {
                let value = formula(text, "`expression`", &self.names.written())?;
                (Action::Spread(SpreadAction { value, keys: Some(Arc::clone(&self.names.keys)) }), Vec::new())
            }
            Body::SetState(values) => (Action::Pass, self.updates(node, values, false)?),
            Body::Interrupt(value) => {
                let question = match value {
                    Some(_) => formula(value, "`value`", &Wanted::Anything)?,
                    None => Expression::LastReply { conversation: MESSAGES.into(), required: true },
                };
                let ask = AskAction::new(question, "answer");
                (Action::Ask(ask), to_messages(Expression::Answer("answer".into())))
            }
            Body::LoadSkills(text) => {
                let skills = formula(text, "`skill_ids`", &Wanted::List)?;
                let action = LoadSkillsAction { conversation: MESSAGES.into(), skills };
                // Where skills are declared and cannot be used, that is reported.
                if self.source.skills.is_empty() && self.scope.items("skills").is_empty() {
                    let error = self.error(&node.name, "a `load_skills` node needs `skills`".into(), &node.name.span);
                    self.reader.report(error.help("declare the skills at the top of the file"));
                }
                (Action::LoadSkills(action), Vec::new())
            }
            Body::Custom(custom) => {
                (super::custom::lower(node, custom.as_deref()?, self.agent, self.reader)?, Vec::new())
            }
            Body::Unknown => return None,
        })
    }

    /// The node of a loop that answers calls, where the edges of the file say how it goes on.
    fn tool_node(&self, node: &Node, tools: Option<&[Reference]>) -> Action {
        let agent = AgentLoop { tools: self.scope.of_tool_node(node, tools), ..agent_loop() };
        Action::AnswerCalls(agent.answers())
    }

    /// The loop whose model a node asks.
    fn call_llm(&self, node: &Node, call: &CallLlm) -> Option<(AgentLoop, Vec<Update>)> {
        let model = self.scope.model(node, call.llm.as_ref());
        let mut prompt = Vec::with_capacity(call.prompt.len());
        for (place, (role, text)) in call.prompt.iter().enumerate() {
            let item = format!("item {} of `prompt`", place + 1);
            let wanted = match role {
                PromptRole::Messages => Wanted::Conversation,
                PromptRole::Speaker(_) => Wanted::Anything,
            };
            let text = self.names.compile(text, "`content` of `prompt`", &node.name, &wanted).map(Expression::Formula);
            prompt.push(match role {
                PromptRole::Messages => text.map(|list| PromptPart::messages(item, list)),
                PromptRole::Speaker(speaker) => text.map(|text| PromptPart::text(item, *speaker, text)),
            });
        }
        self.scope.check_flags(node, call);
        let tools = self.scope.offered(node, call);
        let updates = match &call.updates {
            Some(values) => self.updates(node, values, true),
            None => Some(vec![Update { key: MESSAGES.into(), value: bound(REPLY) }]),
        };
        let agent = AgentLoop {
            settings: ModelSettings { model: Some(model?), ..ModelSettings::default() },
            prompt: prompt.into_iter().collect::<Option<_>>()?,
            tools,
            reply_schema: call.schema.clone(),
            enforced_by: Some("response_format"),
            retry: call.retry.clone(),
            ..agent_loop()
        };
        Some((agent, updates?))
    }

    fn updates(
        &self,
        node: &Node,
        values: &[(Spanned<Arc<str>>, SourceText)],
        with_reply: bool,
    ) -> Option<Vec<Update>> {
        let mut updates = Vec::with_capacity(values.len());
        for (key, text) in values {
            let is_reported = &*key.value == MESSAGES && self.agent.lacks_conversation();
            if !is_reported && !self.names.has(&key.value) {
                let known = self.agent.fields.iter().map(|field| &*field.name);
                let error = self.error(&node.name, format!("the state has no field `{}`", key.value), &key.span);
                let help = match closest(&key.value, known) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => "declare it under `state`".to_owned(),
                };
                self.reader.report(error.help(help));
            }
            let what = format!("the value of `{}`", key.value);
            let wanted = self.names.written_to(&key.value);
            let formula: Option<Formula> = match with_reply {
                true => self.names.compile_with_reply(text, &what, &node.name, wanted),
                false => self.names.compile(text, &what, &node.name, wanted),
            };
            updates.push(
                formula.map(|formula| Update { key: Arc::clone(&key.value), value: Expression::Formula(formula) }),
            );
        }
        updates.into_iter().collect()
    }
}

/// What a node does: the request of a loop is one step of several.
enum Lowered {
    Action(Box<Action>),
    Loop(Arc<AgentLoop>),
}

/// What all loops of the language have in common.
fn agent_loop() -> AgentLoop {
    AgentLoop { conversation: MESSAGES.into(), tool_failure_is_fatal: true, bind: REPLY, ..AgentLoop::default() }
}

/// A value that an action binds.
fn bound(name: &str) -> Expression {
    Expression::Lenient(Template::parse(&format!("{{{{{name}}}}}")))
}

fn initial(field: &super::schema::Field) -> Option<(Key, Value)> {
    let of_conversation = || field.is_conversation().then(|| Value::List(Default::default()));
    Some((Arc::clone(&field.name.value), field.default.clone().or_else(of_conversation)?))
}

fn plain(node: &Node, action: Action, next: Next) -> IrNode {
    IrNode { join: Join::All, ..IrNode::new(&node.name.value, node.kind(), action, next, &node.name.span) }
}

fn implied_node(id: &str, action: Action, next: Next, span: &Span) -> IrNode {
    IrNode { implied_by: Some(id.into()), join: Join::All, ..IrNode::new(id, "implied", action, next, span) }
}
