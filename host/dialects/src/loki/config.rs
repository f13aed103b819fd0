//! The file of an agent with a tool loop (`config.yaml`): one model with instructions and tools, and no graph.
//!
//! Such an agent is lowered to a graph of two nodes, so that nothing below a front end knows that it is another kind of
//! agent.

use std::collections::HashSet;
use std::sync::Arc;

use hotcell_graph::conversation::Speaker;
use hotcell_graph::diagnostic::{Diagnostic, Severity, Span};
use hotcell_graph::ir::{
    Action, AgentLoop, CallAction, CallTarget, Callable, Expression, Graph, Join, LookUpAction, Next, Node, NodeIds,
    PromptPart, Update, Variable as IrVariable,
};
use hotcell_graph::{Braces, Template};

use super::auto_continue::{self, AutoContinue};
use super::lower_node::{agent_loop, at_once, with_more};
use super::read::variables;
use super::read_field::model;
use super::schema::{Model, Variable};
use super::{
    Declarations, INPUT_KEY, documents, elsewhere, global_tools, mcp_tools, model_help, own_tools, placeholders,
    server_functions, skills,
    spawning::{self, Spawning},
    start_time, tool_name,
};
use crate::document::Need::{Optional, Required};
use crate::document::{Document, Kind, Owner, Place, Reader, SourceText};
use crate::surroundings::{ServerState, Surroundings};

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
    auto_continue: Option<AutoContinue>,
    skills: Option<skills::Named>,
    choice: mcp_tools::Choice,
    documents: Vec<SourceText>,
    spawning: Option<Spawning>,
    agent_depth: u32,
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
        knowledge_bases: documents::knowledge_base(&config.documents, surroundings).into_iter().collect(),
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
    let auto_continue = auto_continue::read(&mut fields);
    let skills = skills::read(&mut fields).filter(|skills| !skills.names.is_empty());
    let choice = mcp_tools::read(&mut fields);
    let agent_depth = spawning::depth(&mut fields);
    let spawning = spawning::read(&mut fields);
    elsewhere::of_tool_loop(&mut fields);
    let documents = fields.texts("documents", Optional).unwrap_or_default();
    fields.finish(|unknown| match unknown {
        "nodes" | "start" => Some("a graph belongs into `graph.yaml`".to_owned()),
        "tools" | "enabled_tools" => {
            Some("an agent has the tools that `global_tools` lists, and those of its own files".to_owned())
        }
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
        auto_continue,
        skills,
        choice,
        documents,
        spawning,
        agent_depth,
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
        let remark = global_tools::remark(tool, Severity::Error, surroundings);
        remark.into_iter().for_each(|remark| reader.report(remark));
    }
    if let Some(spawning) = &config.spawning {
        spawning.check(surroundings, &mut |diagnostic| reader.report(diagnostic));
    }
    documents::check(&config.documents, surroundings, &mut |diagnostic| reader.report(diagnostic));
    config.choice.check(&config.servers, surroundings, &mut |diagnostic| reader.report(diagnostic));
    if let Some(skills) = &config.skills {
        skills.check(surroundings, &mut |diagnostic| reader.report(diagnostic));
    }
    if let Err(reason) = surroundings.own_tools() {
        reader.report(Diagnostic::error(reason.to_string()).at(&config.span));
    }
    if let Some(text) = &config.instructions {
        let variables: HashSet<&str> = config.variables.iter().map(|variable| &*variable.name.value).collect();
        for braces in Braces::find(text) {
            let name = braces.path.as_ref().map(hotcell_graph::Path::as_str).unwrap_or_default();
            let is_filled = placeholders::is_known(name, true) || variables.contains(name);
            if placeholders::is_placeholder(name) && !is_filled && !reader.is_full_of(Severity::Error) {
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
    let of_host = config.tools.iter().filter(|tool| own.iter().all(|own| own.name != tool_name(tool)));
    let mut tools: Vec<String> = of_host.map(|tool| global_tools::full_name(tool, surroundings)).collect();
    tools.extend(own.iter().map(|own| own.full_name.clone()));
    tools.extend(config.servers.iter().flat_map(|server| server_functions(server, surroundings)));
    let mut seen = HashSet::new();
    tools.retain(|tool| config.choice.keeps(tool) && seen.insert(tool.clone()));
    let mut built_in = config.auto_continue.as_ref().map(AutoContinue::shown).unwrap_or_default();
    if config.skills.is_some() {
        built_in.extend(skills::Named::shown());
    }
    if config.spawning.is_some() {
        built_in.extend(Spawning::shown());
    }
    // Only variables and placeholders are filled in: any other braces in instructions are the author's own.
    let is_filled = |name: Option<&str>| {
        let is_variable = config.variables.iter().any(|variable| Some(&*variable.name.value) == name);
        is_variable || name.is_some_and(|name| placeholders::is_known(name, true))
    };
    let instructions = |text: &SourceText| {
        let template = Template::parse_only(text, is_filled);
        Expression::Lenient(template.filled(|name| placeholders::for_model(name, &tools, &built_in, surroundings)))
    };
    let about_list = config.auto_continue.as_ref().and_then(AutoContinue::instructions);
    let about_agents = config.spawning.as_ref().and_then(Spawning::instructions);
    let about_skills = config.skills.as_ref().and_then(skills::Named::instructions);
    let instructions = with_more(
        config.instructions.as_ref().map(instructions),
        [about_list, about_skills, about_agents].into_iter().flatten(),
    );
    let reference = |key: &str| Expression::Lenient(Template::parse(&format!("{{{{{key}}}}}")));
    let knows = !config.documents.is_empty();
    let asked = if knows { documents::with_context(reference(INPUT_KEY)) } else { reference(INPUT_KEY) };
    let mut prompt = vec![PromptPart::text("`prompt`", Speaker::Human, asked)];
    if let Some(instructions) = instructions {
        prompt.insert(0, PromptPart::text("`instructions`", Speaker::System, instructions));
    }
    let of_list = config.auto_continue.iter().flat_map(AutoContinue::tools);
    let of_agents = config.spawning.iter().flat_map(|spawning| spawning.tools(surroundings));
    let of_skills = config.skills.iter().flat_map(|_| skills::Named::callables());
    let agent = AgentLoop {
        retry: at_once(1),
        prompt,
        tools: tools.into_iter().map(Callable::Tool).chain(of_list).chain(of_skills).chain(of_agents).collect(),
        skills: config.skills.as_ref().map(|skills| skills.load(&[&config.choice], surroundings)),
        continuation: config.auto_continue.as_ref().map(AutoContinue::continuation),
        ..agent_loop(config.model.settings(), MAX_REQUESTS)
    };
    let action = CallAction {
        target: CallTarget::Loop(Arc::new(agent.into_graph())),
        contract: None,
        failure_prefix: None,
        bind: "output",
    };
    let names_time = config.instructions.as_ref().is_some_and(|text| text.contains(placeholders::NOW));
    let [agent, end] = NODES;
    let ids = NodeIds::new(knows.then_some(documents::BASE).into_iter().chain(NODES));
    let node = |id: &str, kind: &'static str, action: Action, next: Vec<_>| Node {
        join: Join::All,
        ..Node::new(id, kind, action, Next::To(next), &config.span)
    };
    let mut asks = node(agent, "agent", Action::Call(Box::new(action)), vec![ids.get(end)?]);
    asks.updates = vec![Update { key: ANSWER_KEY.into(), value: reference("output") }];
    let ends = node(end, "end", Action::End { output: reference(ANSWER_KEY) }, Vec::new());
    let mut nodes = vec![asks, ends];
    if knows {
        let action =
            LookUpAction { base: documents::BASE.to_owned(), query: reference(INPUT_KEY), top_k: None, bind: "output" };
        let mut looks_up = node(documents::BASE, "rag", Action::LookUp(action), vec![ids.get(agent)?]);
        let context = Expression::Entry(Box::new(Expression::Key("output".into())), "context".into());
        looks_up.updates = vec![Update { key: documents::CONTEXT.into(), value: context }];
        nodes.insert(0, looks_up);
    }
    let start = if knows { documents::BASE } else { agent };
    let mut graph = Graph::new(&*config.name.value, nodes, start)?;
    graph.description = config.description.as_deref().map(str::to_owned);
    graph.input_key = Some(INPUT_KEY.into());
    graph.limits.agent_depth = config.agent_depth;
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
