//! The file of an agent with a tool loop (`config.yaml`): one model with instructions and tools, and no graph.
//!
//! Such an agent is lowered to a graph of two nodes, so that nothing below a front end knows that it is another kind of
//! agent.

use std::collections::HashSet;
use std::sync::Arc;

use hotcell_graph::conversation::Speaker;
use hotcell_graph::diagnostic::{Diagnostic, Severity, Span};
use hotcell_graph::ir::{
    Action, AgentLoop, CallAction, CallTarget, Callable, Expression, Graph, Join, Next, Node, NodeIds, OnFailure,
    PromptPart, Update, Variable as IrVariable,
};
use hotcell_graph::{Braces, Template};

use super::lower::{agent_loop, at_once, server_functions};
use super::read::{model, variables};
use super::schema::{Model, Variable};
use super::{
    Declarations, INPUT_KEY, elsewhere, missing_tool_help, model_help, own_tools, placeholders, remark_on_tool,
    start_time, tool_name,
};
use crate::document::Need::{Optional, Required};
use crate::document::{Document, Kind, Owner, Place, Reader, SourceText};
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
    elsewhere::of_tool_loop(&mut fields);
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

fn check(config: &Config, reader: &Reader<'_>, surroundings: &dyn Surroundings) {
    if let Some(model) = &config.model.name
        && surroundings.model(model) == Some(false)
    {
        let error = Diagnostic::error(format!("the model `{}` does not exist", &**model));
        reader.report(error.at(&model.span).help(model_help(model)));
    }
    let own = own_tools(surroundings);
    for tool in config.tools.iter().filter(|tool| own.iter().all(|own| own.name != tool_name(tool))) {
        let error = match surroundings.tool(tool_name(tool)) {
            ToolState::Usable => {
                remark_on_tool(tool, surroundings).into_iter().for_each(|remark| reader.report(remark));
                continue;
            }
            ToolState::Missing => Diagnostic::error(format!("the tool `{}` is not known to the host", &**tool))
                .help(missing_tool_help(tool_name(tool))),
            ToolState::Unusable(reason) => Diagnostic::error(reason),
        };
        reader.report(error.at(&tool.span));
    }
    if let Err(reason) = surroundings.own_tools() {
        reader.report(Diagnostic::error(reason).at(&config.span));
    }
    if let Some(text) = &config.instructions {
        for braces in Braces::find(text) {
            let name = braces.path.as_ref().map(hotcell_graph::Path::as_str).unwrap_or_default();
            let is_variable = config.variables.iter().any(|variable| &*variable.name.value == name);
            if placeholders::is_placeholder(name) && !placeholders::is_known(name, true) && !is_variable {
                let error = Diagnostic::error(format!("nothing fills the placeholder `{{{{{name}}}}}`"));
                reader.report(error.at(&text.span_of(braces.range)).help(placeholders::help(name, true)));
            }
        }
    }
    for server in &config.servers {
        let error = match surroundings.mcp_server(server) {
            ServerState::Usable(_) | ServerState::NotStarted => continue,
            ServerState::Missing => {
                Diagnostic::error(format!("the MCP server `{}` is not configured", &**server)).help(super::SERVER_HELP)
            }
            ServerState::Unusable(reason) => Diagnostic::error(reason),
        };
        reader.report(error.at(&server.span));
    }
}

fn lower(config: &Config, surroundings: &dyn Surroundings) -> Option<Graph> {
    // A tool of the agent's own is meant before one of the host's with the same name.
    let own = own_tools(surroundings);
    let of_host =
        config.tools.iter().map(|tool| tool_name(tool)).filter(|name| own.iter().all(|own| own.name != *name));
    let mut tools: Vec<String> = of_host.map(str::to_owned).collect();
    tools.extend(own.iter().map(|own| own.full_name.clone()));
    tools.extend(config.servers.iter().flat_map(|server| server_functions(server, surroundings)));
    let mut seen = HashSet::new();
    tools.retain(|tool| seen.insert(tool.clone()));
    // Only variables and placeholders are filled in: any other braces in instructions are the author's own.
    let is_filled = |name: Option<&str>| {
        let is_variable = config.variables.iter().any(|variable| Some(&*variable.name.value) == name);
        is_variable || name.is_some_and(|name| placeholders::is_known(name, true))
    };
    let instructions = |text: &SourceText| {
        let template = Template::parse_only(text, is_filled);
        Expression::Lenient(template.filled(|name| placeholders::for_model(name, &tools, surroundings)))
    };
    let instructions = config.instructions.as_ref().map(instructions);
    let reference = |key: &str| Expression::Lenient(Template::parse(&format!("{{{{{key}}}}}")));
    let mut prompt = vec![PromptPart::text("`prompt`", Speaker::Human, reference(INPUT_KEY))];
    if let Some(instructions) = instructions {
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
    let names_time = config.instructions.as_ref().is_some_and(|text| text.contains(placeholders::NOW));
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
        .chain(names_time.then(start_time))
        .collect();
    graph.start_time = names_time.then(|| placeholders::NOW.into());
    Some(graph)
}
