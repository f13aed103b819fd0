//! The file of an agent with a tool loop (`config.yaml`): one model with instructions and tools, and no graph.
//!
//! Such an agent is lowered to a graph of two nodes, so that nothing below a front end knows that it is another kind of
//! agent.

use std::collections::HashSet;
use std::sync::Arc;

use hotcell_graph::Template;
use hotcell_graph::conversation::Speaker;
use hotcell_graph::diagnostic::{Diagnostic, Severity, Span};
use hotcell_graph::ir::{
    Action, AgentLoop, CallAction, CallTarget, Callable, Expression, Graph, Join, Next, Node, NodeIds, OnFailure,
    PromptPart, Update, Variable as IrVariable,
};

use super::lower::{agent_loop, at_once, server_functions};
use super::read::{model, variables};
use super::schema::{Model, Variable};
use super::{Declarations, INPUT_KEY, tool_name};
use crate::document::Need::{Optional, Required};
use crate::document::{Document, Fields, Kind, Owner, Place, Reader, SourceText};
use crate::surroundings::{ServerState, Surroundings, ToolState};

/// The node that asks the model, and the one that ends the run.
const NODES: [&str; 2] = ["agent", "end"];
/// The state key that holds the answer.
const ANSWER_KEY: &str = "answer";
/// Requests that one call of such an agent may make. The language has no cap; a loop without end should end all the same.
const MAX_REQUESTS: u32 = 100;

struct Config {
    name: SourceText,
    description: Option<SourceText>,
    model: Model,
    instructions: Option<SourceText>,
    tools: Vec<SourceText>,
    servers: Vec<SourceText>,
    starters: Vec<SourceText>,
    variables: Vec<Variable>,
    span: Span,
}

pub(super) fn read_and_lower(
    document: &Document,
    surroundings: &dyn Surroundings,
    diagnostics: &mut Vec<Diagnostic>,
) -> (Declarations, Option<Graph>) {
    let reader = Reader::new(document);
    let config = read(&reader);
    if let Some(config) = &config {
        check(config, &reader, surroundings);
    }
    let found = reader.into_diagnostics();
    let broken = found.iter().chain(&*diagnostics).any(|one| one.severity == Severity::Error);
    diagnostics.extend(found);
    let Some(config) = config else { return Default::default() };
    let owned = |texts: &[SourceText]| texts.iter().map(|text| text.to_string()).collect();
    let declarations = Declarations {
        name: config.name.to_string(),
        description: config.description.as_deref().map(str::to_owned),
        global_tools: config.tools.iter().map(|tool| tool_name(tool).to_owned()).collect(),
        mcp_servers: owned(&config.servers),
        conversation_starters: owned(&config.starters),
        knowledge_bases: Vec::new(),
        checked_before_run: true,
    };
    let graph = if broken { None } else { lower(&config, surroundings) };
    (declarations, graph)
}

fn read(reader: &Reader<'_>) -> Option<Config> {
    let owner = Owner { what: "the agent".into(), node: None, place: Place::default() };
    let root = &reader.document().root;
    if root.kind == Kind::Null {
        let error = Diagnostic::error("the file is empty")
            .at(&reader.span(root.place))
            .help("an agent needs `name` and `instructions`");
        reader.report(error);
        return None;
    }
    let mut fields = reader.fields(root, owner)?;
    let name = fields.text("name", Required);
    let description = fields.text("description", Optional);
    // The version of the agent, which means nothing to whoever runs it.
    fields.ignore("version");
    let model = model(&mut fields);
    let instructions = fields.text("instructions", Optional);
    let tools = fields.texts("global_tools", Optional).unwrap_or_default();
    let servers = fields.texts("mcp_servers", Optional).unwrap_or_default();
    let starters = fields.texts("conversation_starters", Optional).unwrap_or_default();
    let variables = variables(&mut fields);
    for (flag, why) in OFF {
        refuse_if_on(&mut fields, flag, why);
    }
    if let Some(documents) = fields.texts("documents", Optional)
        && let Some(first) = documents.first()
    {
        let error = fields
            .error("`documents` of an agent with a tool loop are not supported", &first.span)
            .help("look things up in a graph, with a `rag` node");
        reader.report(error);
    }
    fields.finish(|unknown| match unknown {
        "nodes" | "start" => Some("a graph belongs into `graph.yaml`".to_owned()),
        "tools" => Some("an agent has all of its `global_tools`".to_owned()),
        _ => None,
    });
    Some(Config {
        name: name?,
        description,
        model,
        instructions,
        tools,
        servers,
        starters,
        variables,
        span: reader.span(root.place),
    })
}

/// What agents with a tool loop may have switched on elsewhere, and what to do instead.
const OFF: [(&str, &str); 3] = [
    ("dynamic_instructions", "write the instructions down, or put what changes into variables"),
    ("can_spawn_agents", "call other agents from a graph, with `agent` nodes"),
    ("auto_continue", "an agent goes on while it asks for tools and ends with its answer"),
];

fn refuse_if_on(fields: &mut Fields<'_, '_>, name: &'static str, instead: &str) {
    let Some(flag) = fields.flag(name, Optional) else { return };
    if flag.value {
        let error = fields.error(format!("`{name}: true` is not supported"), &flag.span).help(instead);
        fields.reader().report(error);
    }
}

fn check(config: &Config, reader: &Reader<'_>, surroundings: &dyn Surroundings) {
    if let Some(model) = &config.model.name
        && surroundings.model(model) == Some(false)
    {
        let error = Diagnostic::error(format!("the model `{}` does not exist", &**model));
        reader.report(error.at(&model.span).help("models are named `provider:model`"));
    }
    for tool in &config.tools {
        let error = match surroundings.tool(tool_name(tool)) {
            ToolState::Usable => continue,
            ToolState::Missing => Diagnostic::error(format!("the tool `{}` is not known to the host", &**tool))
                .help("put its component into the plugins folder"),
            ToolState::Unusable(reason) => Diagnostic::error(reason),
        };
        reader.report(error.at(&tool.span));
    }
    for server in &config.servers {
        let error = match surroundings.mcp_server(server) {
            ServerState::Usable(_) => continue,
            ServerState::Missing => {
                Diagnostic::error(format!("the MCP server `{}` is not configured", &**server)).help(super::SERVER_HELP)
            }
            ServerState::Unusable(reason) => Diagnostic::error(reason),
        };
        reader.report(error.at(&server.span));
    }
}

fn lower(config: &Config, surroundings: &dyn Surroundings) -> Option<Graph> {
    let mut tools: Vec<String> = config.tools.iter().map(|tool| tool_name(tool).to_owned()).collect();
    tools.extend(config.servers.iter().flat_map(|server| server_functions(server, surroundings)));
    let mut seen = HashSet::new();
    tools.retain(|tool| seen.insert(tool.clone()));
    // Only variables are filled in: any other braces in instructions are the author's own.
    let is_variable = |name: Option<&str>| config.variables.iter().any(|variable| Some(&*variable.name.value) == name);
    let reference = |key: &str| Expression::Lenient(Template::parse(&format!("{{{{{key}}}}}")));
    let mut prompt = vec![PromptPart::text("`prompt`", Speaker::Human, reference(INPUT_KEY))];
    if let Some(text) = &config.instructions {
        let instructions = Expression::Lenient(Template::parse_only(text, is_variable));
        prompt.insert(0, PromptPart::text("`instructions`", Speaker::System, instructions));
    }
    let agent = AgentLoop {
        retry: at_once(1),
        prompt,
        tools: tools.into_iter().map(Callable::Tool).collect(),
        ..agent_loop(config.model.settings(), MAX_REQUESTS)
    };
    let action = CallAction {
        target: CallTarget::Loop(Arc::new(agent.into_graph())),
        contract: None,
        failure_prefix: None,
        bind: "output",
    };
    let ids = NodeIds::new(NODES);
    let [agent, end] = NODES;
    let node = |id: &str, kind: &'static str, action: Action, next: Vec<_>| Node {
        id: id.into(),
        kind,
        description: None,
        action,
        updates: Vec::new(),
        next: Next::To(next),
        on_failure: OnFailure::Fail,
        timeout: None,
        span: config.span.clone(),
        join: Join::All,
        retry: None,
        implied_by: None,
    };
    let mut asks = node(agent, "agent", Action::Call(Box::new(action)), vec![ids.get(end)?]);
    asks.updates = vec![Update { key: ANSWER_KEY.into(), value: reference("output") }];
    let ends = node(end, "end", Action::End { output: reference(ANSWER_KEY) }, Vec::new());
    let mut graph = Graph::new(&*config.name.value, vec![asks, ends], agent)?;
    graph.description = config.description.as_deref().map(str::to_owned);
    graph.input_key = Some(INPUT_KEY.into());
    graph.variables = config
        .variables
        .iter()
        .map(|variable| IrVariable {
            name: Arc::clone(&variable.name.value),
            description: variable.description.to_string(),
            default: variable.default.as_deref().map(str::to_owned),
        })
        .collect();
    Some(graph)
}
