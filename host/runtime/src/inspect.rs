//! What an agent is made of, and what a run of it may cost, without running it: for agents of every language.

use std::collections::HashSet;

use hotcell_engine::Tools;
use hotcell_graph::ir::{
    Action, AnswerCallsAction, AtCap, CallAction, CallTarget, Callable, ConverseAction, Expression, Graph, LoopGraph,
    MapBody, PromptPart, Said, ToolKind, Trim, Window,
};
use hotcell_graph::value::Value;
use hotcell_models::{ModelName, Prices, TokenUsage};
use serde::Serialize;

use crate::agent::Agent;

/// Tokens that a reply, and what a tool gives, is taken to have where nothing says how many.
const REPLY_TOKENS: u64 = 500;
/// Tokens of the shortest reply, and of a short message.
const SHORT: u64 = 20;
/// Requests of a loop without a cap that a range is computed for.
const UNCAPPED: u32 = 10;

/// Something in an agent that asks a model.
#[derive(Clone, Debug, Serialize)]
pub struct InspectedLoop {
    /// The node, and the way to it where it lies in a graph that a node calls or is a tool of another one
    pub name: String,
    /// The model; none for one that is chosen when the agent is run
    pub model: Option<String>,
    /// What it may call
    pub tools: Vec<InspectedTool>,
    /// How often the model is asked at most; none for any number
    pub max_requests: Option<u32>,
    /// What happens then
    pub at_cap: Option<&'static str>,
    /// How many tokens of a conversation it is told, and what is done about more
    pub window: Option<(usize, &'static str)>,
    /// The JSON schema of its reply
    pub output_schema: Option<serde_json::Value>,
    /// What it may cost, in USD
    pub max_cost_usd: Option<f64>,
    /// How long it may take, in milliseconds
    pub max_time_ms: Option<u64>,
    /// Texts that its replies may not have
    pub forbidden: Vec<String>,
    /// What a run of it is expected to cost
    pub cost: CostRange,
}

/// What something may call.
#[derive(Clone, Debug, Serialize)]
pub struct InspectedTool {
    /// Its name
    pub name: String,
    /// `tool`, `agent`, or `function` for a function of the program that embeds hotcell, which is not sealed
    pub kind: &'static str,
    /// What the model is told about it
    pub description: String,
}

/// What a run is expected to cost, in USD.
#[derive(Clone, Debug, Serialize)]
pub struct CostRange {
    /// One request with a short question and a short reply; none without a price
    pub low_usd: Option<f64>,
    /// As many requests as there may be, each with everything before it, up to the limit on costs
    pub high_usd: Option<f64>,
    /// How that was computed
    pub how: String,
}

impl CostRange {
    /// Adds what agents that are tools cost at most, if each is called once with every reply.
    fn add_agents(&mut self, agents: &[Option<f64>], most: Option<u32>) {
        let (Some(high), false) = (self.high_usd, agents.is_empty()) else { return };
        match agents.iter().copied().sum::<Option<f64>>() {
            Some(each) => {
                self.high_usd = Some(high + each * f64::from(most.unwrap_or(UNCAPPED)));
                self.how.push_str(", and each agent that is a tool called once with every reply");
            }
            None => self.how.push_str("; agents that are tools are not included, as their cost is not known"),
        }
    }
}

/// What is asked of models in an agent, in the order of its nodes. `default_model` is asked where nothing is said.
pub fn inspect(agent: &Agent, prices: &Prices, default_model: Option<&str>) -> Vec<InspectedLoop> {
    let mut inspector =
        Inspector { tools: &*agent.own.tools, prices, default_model, seen: HashSet::new(), found: Vec::new() };
    inspector.graph(&agent.graph, "");
    inspector.found
}

struct Inspector<'a> {
    tools: &'a dyn Tools,
    prices: &'a Prices,
    default_model: Option<&'a str>,
    seen: HashSet<*const Graph>,
    found: Vec<InspectedLoop>,
}

impl Inspector<'_> {
    fn graph(&mut self, graph: &Graph, way: &str) {
        if !self.seen.insert(std::ptr::from_ref(graph)) {
            return;
        }
        let name = |id: &str| if way.is_empty() { id.to_owned() } else { format!("{way}.{id}") };
        let answers: Vec<&AnswerCallsAction> = graph
            .nodes()
            .filter_map(|(_, node)| match &node.action {
                Action::AnswerCalls(action) => Some(action),
                _ => None,
            })
            .collect();
        for (_, node) in graph.nodes() {
            match &node.action {
                Action::Converse(request) => {
                    let cap = graph.limits.visits_per_node.as_ref().map(|cap| cap.visits);
                    // Without a node that answers calls there is one request.
                    let most = if answers.is_empty() { Some(1) } else { cap };
                    let mut found = self.request(name(&node.id), graph, request, most);
                    let place = self.found.len();
                    self.found.push(found.clone());
                    let agents = self.nested(&request.tools, &name(&node.id));
                    found.cost.add_agents(&agents, most);
                    self.found[place] = found;
                }
                Action::Call(call) => match &call.target {
                    CallTarget::Loop(steps) => {
                        self.of_loop(name(&node.id), graph, steps, Some(call));
                    }
                    CallTarget::Graph { graph, .. } => self.graph(graph, &name(&node.id)),
                    CallTarget::Agent { .. } => {}
                },
                Action::Map(map) => {
                    if let MapBody::Graph(items) = &map.body {
                        self.graph(&items.graph, &name(&node.id));
                    }
                }
                _ => {}
            }
        }
    }

    /// What it costs at most, if that is known.
    fn of_loop(&mut self, name: String, graph: &Graph, steps: &LoopGraph, call: Option<&CallAction>) -> Option<f64> {
        let agent = &steps.agent;
        let request = agent.request();
        let mut found = self.request(name.clone(), graph, &request, agent.cap.as_ref().map(|cap| cap.requests));
        found.at_cap = agent.cap.as_ref().map(|cap| match cap.then {
            AtCap::Fail(_) => "fails",
            AtCap::Return => "returns the last reply",
        });
        let contract = call.and_then(|call| call.contract.as_ref()).map(|contract| &contract.schema);
        found.output_schema = contract.or(agent.reply_schema.as_ref()).map(serde_json::Value::from);
        found.max_cost_usd = agent.limits.cost_usd.map(|(most, _)| most);
        found.max_time_ms = agent.limits.time.map(|(limit, _)| u64::try_from(limit.as_millis()).unwrap_or(u64::MAX));
        let place = self.found.len();
        self.found.push(found.clone());
        let agents = self.nested(&agent.tools, &name);
        found.cost.add_agents(&agents, found.max_requests);
        if let (Some(most), Some(high)) = (found.max_cost_usd, &mut found.cost.high_usd)
            && *high > most
        {
            *high = most;
            found.cost.how.push_str("; the limit on costs ends it there");
        }
        let high = found.cost.high_usd;
        self.found[place] = found;
        high
    }

    /// The loops and graphs that are tools: what each costs at most, if that is known.
    fn nested(&mut self, tools: &[Callable], way: &str) -> Vec<Option<f64>> {
        let mut agents = Vec::new();
        for tool in tools {
            match tool {
                Callable::Loop(nested) => {
                    let name = format!("{way}.{}", nested.name);
                    agents.push(self.of_loop(name, &nested.steps.graph.clone(), &nested.steps, None));
                }
                Callable::Agent { .. } => agents.push(None),
                Callable::Defined(tool) => {
                    if let ToolKind::Graph(nested) = &tool.kind {
                        self.graph(&nested.0, &format!("{way}.{}", tool.name));
                        agents.push(None);
                    }
                }
                _ => {}
            }
        }
        agents
    }

    fn request(&self, name: String, graph: &Graph, request: &ConverseAction, most: Option<u32>) -> InspectedLoop {
        let settings = request.settings.or(&graph.model);
        let model = settings.model.clone().or_else(|| self.default_model.map(str::to_owned));
        let tools: Vec<InspectedTool> = request.tools.iter().filter_map(|tool| self.tool(tool)).collect();
        let cost = self.cost(model.as_deref(), request, &tools, settings.max_tokens, most);
        InspectedLoop {
            name,
            model,
            tools,
            max_requests: most,
            at_cap: None,
            window: request.window.map(|Window { tokens, trim }| {
                let then = match trim {
                    Trim::LeaveOut => "the oldest messages are left out",
                    Trim::Summarize => "the oldest turns are summed up",
                };
                (tokens, then)
            }),
            output_schema: request.output_schema.as_ref().map(serde_json::Value::from),
            max_cost_usd: None,
            max_time_ms: None,
            forbidden: request.forbidden.patterns.iter().map(ToString::to_string).collect(),
            cost,
        }
    }

    fn tool(&self, tool: &Callable) -> Option<InspectedTool> {
        let described = |name: &str, kind, description: &str| {
            Some(InspectedTool { name: name.to_owned(), kind, description: description.to_owned() })
        };
        let kind = |name: &str| if self.tools.is_unsealed(name) { "function" } else { "tool" };
        let of_host = |name: &str| self.tools.describe(name).map(|spec| spec.description).unwrap_or_default();
        match tool {
            Callable::Tool(name) => described(name, kind(name), &of_host(name)),
            Callable::Described { tool, name, description, .. } => {
                described(name, kind(tool), &description.clone().unwrap_or_else(|| of_host(tool)))
            }
            Callable::Agent { name, description, .. } => described(name, "agent", description),
            Callable::Loop(nested) => described(&nested.name, "agent", &nested.description),
            Callable::Defined(tool) => described(&tool.spoken, "tool", &tool.description),
            Callable::Submit(submit) => described(&submit.name, "tool", "Hands in the results"),
            Callable::Skills(tool) => described(tool.name(), "tool", ""),
            Callable::Todo { name, .. } | Callable::Delegate { name, .. } => described(name, "tool", ""),
            // They are there once a model has loaded them.
            Callable::LoadedSkills => None,
        }
    }

    fn cost(
        &self,
        model: Option<&str>,
        request: &ConverseAction,
        tools: &[InspectedTool],
        max_tokens: Option<u32>,
        most: Option<u32>,
    ) -> CostRange {
        let unknown = |how: String| CostRange { low_usd: None, high_usd: None, how };
        if request.settings.is_recorded() {
            return unknown("its replies are ready, and nobody is asked".to_owned());
        }
        let Some(model) = model else { return unknown("no model is chosen".to_owned()) };
        let price = model.parse::<ModelName>().ok().and_then(|model| self.prices.price(&model));
        let Some(price) = price else { return unknown(format!("the price table has no price for `{model}`")) };
        let fixed: u64 = request.prompt.iter().map(fixed_tokens).sum::<u64>()
            + tools.iter().map(|tool| 30 + (tool.name.len() + tool.description.len()) as u64 / 4).sum::<u64>();
        let reply = max_tokens.map_or(REPLY_TOKENS, u64::from);
        let requests = u64::from(most.unwrap_or(UNCAPPED));
        let low = price.of(&TokenUsage { input: fixed + SHORT, output: SHORT });
        // Each request has what was said before it: a reply and what a tool gave to it.
        let window = request.window.map_or(u64::MAX, |window| window.tokens as u64);
        let input = |number: u64| (fixed + SHORT + number * (reply + REPLY_TOKENS)).min(window.max(fixed));
        let high = price.of(&TokenUsage { input: (0..requests).map(input).sum(), output: requests * reply });
        let dated = self.prices.dated.as_deref().unwrap_or("an unknown day");
        let (input, output) = (price.input, price.output);
        let capped = if most.is_some() { "at most" } else { "without a cap taken as" };
        let noun = if requests == 1 { "request" } else { "requests" };
        CostRange {
            low_usd: Some(low),
            high_usd: Some(high),
            how: format!(
                "${input} and ${output} for a million tokens of requests and replies (prices of {dated}); low: one request of \
                 {} tokens with a reply of {SHORT}; high: {capped} {requests} {noun}, each with {reply} tokens of reply and \
                 {REPLY_TOKENS} of a tool more than the one before",
                fixed + SHORT
            ),
        }
    }
}

/// Tokens of what is always said, estimated as one for four bytes.
fn fixed_tokens(part: &PromptPart) -> u64 {
    match &part.said {
        Said::Text(_, Expression::Value(Value::Text(text))) => 4 + text.len() as u64 / 4,
        Said::Text(..) => SHORT,
        Said::Messages(_) => 0,
    }
}
