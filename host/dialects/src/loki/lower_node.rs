//! From the nodes of a checked file to the IR.

use std::sync::Arc;
use std::time::Duration;

use hotcell_graph::conversation::Speaker;
use hotcell_graph::ir::{
    Action, AgentLoop, AskAction, AtCap, CallAction, CallTarget, Callable, Contract, Expression, Join, KeptArguments,
    LookUpAction, ModelSettings, Next, Node as IrNode, NodeIds, NodeItems, OnFailure, PluginNodeAction, PluginNodeKind,
    PromptPart, RequestCap, Retry, RetryOn, ScriptAction, Update as IrUpdate,
};
use hotcell_graph::{Template, Value};
use indexmap::IndexSet;

use super::branches;
use super::schema::{
    Agent, Approval, Body, Input, Llm, Map, Node, PluginNode, PluginValues, Rag, Route, Schema, Script, Source, Tree,
    Update,
};
use super::skills::Named;
use super::spawning::Spawning;
use super::{INPUT_KEY, global_tools, mcp_function, own_tools, placeholders, server_functions, tool_name};
use crate::document::SourceText;
use crate::surroundings::{CALLBACK, PluginNodeState, SYNC, Surroundings};

/// A node among those with these ids. None if something is missing after all.
pub(super) fn lower(source: &Source, node: &Node, ids: &NodeIds, surroundings: &dyn Surroundings) -> Option<IrNode> {
    let (action, timeout) = match &node.body {
        Body::Script(script) => (self::script(script)?, Some(script.timeout)),
        Body::Approval(approval) => (self::approval(approval)?, None),
        Body::Input(input) => (self::input(input)?, None),
        Body::Llm(llm) => (Action::Call(Box::new(self::llm(source, llm, surroundings)?)), llm.timeout),
        Body::Map(map) => (self::map(source, node, map, ids)?, None),
        Body::PluginNode(plugin_node) => (self::plugin_node(plugin_node, surroundings), plugin_node.timeout),
        Body::End(end) => {
            let output = end.output.as_ref().map_or_else(|| template(""), |output| template(output));
            (Action::End { output: Expression::Strict(output) }, None)
        }
        Body::Agent(agent) => (self::agent(agent)?, Some(agent.timeout)),
        Body::Rag(rag) => (look_up(&node.id.value, rag), Some(rag.retrieval.timeout)),
        Body::Unknown => return None,
    };
    Some(IrNode {
        id: Arc::clone(&node.id.value),
        kind: node.body.kind(),
        description: node.description.as_deref().map(str::to_owned),
        action,
        updates: updates(node),
        next: next(node, ids)?,
        on_failure: on_failure(node, ids)?,
        timeout,
        span: node.id.span.clone(),
        join: Join::All,
        retry: retry(node),
        implied_by: None,
    })
}

/// How often an agent is called while its failure speaks of a trouble that passes. The requests of a model have attempts of their own.
fn retry(node: &Node) -> Option<Retry> {
    match &node.body {
        Body::Agent(agent) if agent.max_attempts > 1 => Some(at_once(agent.max_attempts)),
        _ => None,
    }
}

fn updates(node: &Node) -> Vec<IrUpdate> {
    node.updates
        .iter()
        .map(|update| IrUpdate { key: Arc::clone(&update.key.value), value: lenient(&update.value) })
        .collect()
}

fn next(node: &Node, ids: &NodeIds) -> Option<Next> {
    if let Body::Approval(approval) = &node.body {
        let routes = approval
            .routes
            .iter()
            .map(|route| Some((route.answer.value.to_string(), ids.get(&route.target)?)))
            .collect::<Option<_>>()?;
        return Some(Next::ByAnswer { routes, otherwise: ids.get(approval.on_other.as_ref()?)? });
    }
    if let Body::End(_) = &node.body {
        return Some(Next::To(Vec::new()));
    }
    if let Body::PluginNode(plugin_node) = &node.body
        && !plugin_node.routes.is_empty()
    {
        let route = |route: &Route| Some((route.answer.value.to_string(), ids.get(&route.target)?));
        let routes: Vec<_> = plugin_node.routes.iter().map(route).collect::<Option<_>>()?;
        let otherwise = node.next.first().or(plugin_node.routes.first().map(|route| &route.target))?;
        return Some(Next::ByAnswer { routes, otherwise: ids.get(otherwise)? });
    }
    node.next.iter().map(|target| ids.get(target)).collect::<Option<_>>().map(Next::To)
}

/// Scripts and model calls are forgiving: `fallback`, else where success leads, else nothing is left but failing.
fn on_failure(node: &Node, ids: &NodeIds) -> Option<OnFailure> {
    let is_forgiving = matches!(node.body, Body::Script(_) | Body::Llm(_) | Body::PluginNode(_));
    Some(match node.fallback() {
        Some(fallback) => OnFailure::To(ids.get(fallback)?),
        None if !is_forgiving => OnFailure::Fail,
        None if node.next.is_empty() => OnFailure::Fail,
        None => OnFailure::Continue,
    })
}

fn template(text: &str) -> Template {
    Template::parse(text).filled(placeholders::anywhere)
}

fn strict(text: &SourceText) -> Expression {
    Expression::Strict(template(text))
}

fn lenient(text: &SourceText) -> Expression {
    Expression::Lenient(template(text))
}

fn script(script: &Script) -> Option<Action> {
    let file = script.script.as_ref()?.normal.clone()?;
    Some(Action::Script(ScriptAction { file, route_key: Some("_next") }))
}

fn approval(approval: &Approval) -> Option<Action> {
    Some(Action::Ask(AskAction {
        options: approval.options.iter().map(|option| option.to_string()).collect(),
        trim: true,
        ..AskAction::new(strict(approval.question.as_ref()?), "choice")
    }))
}

fn input(input: &Input) -> Option<Action> {
    Some(Action::Ask(AskAction {
        default: input.default.as_ref().map(lenient),
        check: input.validation.clone(),
        ..AskAction::new(strict(input.question.as_ref()?), "input")
    }))
}

fn llm(source: &Source, llm: &Llm, surroundings: &dyn Surroundings) -> Option<CallAction> {
    let mut tools: IndexSet<String> = IndexSet::new();
    for tool in &llm.tools {
        tools.extend(tools_of(source, tool, surroundings));
    }
    let choices = [&source.choice, &llm.choice];
    tools.retain(|tool| choices.iter().all(|choice| choice.keeps(tool)));
    let skills = llm.skills.as_ref().or(source.skills.as_ref()).filter(|skills| !skills.names.is_empty());
    let spawning = source.spawning.as_ref().filter(|spawning| !llm.has_no_tools && spawning.finds_any(surroundings));
    let mut built_in = skills.map(|_| Named::shown()).unwrap_or_default();
    if spawning.is_some() {
        built_in.extend(Spawning::shown());
    }
    // The model is told the schema in its instructions, or where there are none with the prompt.
    let hint = llm.output_schema.as_ref().map(|schema| Contract::hint(&schema.value));
    let with_hint = |text: Expression, hint: Option<String>| match hint {
        Some(hint) => Expression::Joined(vec![text, Expression::Value(Value::from(format!("\n\n{hint}")))]),
        None => text,
    };
    let tools: Vec<String> = tools.into_iter().collect();
    let told = |text: &SourceText| {
        Expression::Strict(
            Template::parse(text).filled(|name| placeholders::for_model(name, &tools, &built_in, surroundings)),
        )
    };
    let prompt = told(llm.prompt.as_ref()?);
    let (instructions, prompt) = match &llm.instructions {
        Some(instructions) => (Some(with_hint(told(instructions), hint)), prompt),
        None => (None, with_hint(prompt, hint)),
    };
    let more = [skills.and_then(Named::instructions), spawning.and_then(Spawning::instructions)];
    let instructions = with_more(instructions, more.into_iter().flatten());
    let instructions = instructions.map(|text| PromptPart::text("`instructions`", Speaker::System, text));
    let parts = instructions.into_iter().chain([PromptPart::text("`prompt`", Speaker::Human, prompt)]).collect();
    let settings = llm.model.settings();
    let contract = llm.output_schema.as_ref().map(|schema| contract(schema, &settings));
    let agent = AgentLoop {
        retry: at_once(llm.max_attempts),
        prompt: parts,
        tools: tools
            .into_iter()
            .map(Callable::Tool)
            .chain(skills.iter().flat_map(|_| Named::callables()))
            .chain(spawning.iter().flat_map(|spawning| spawning.tools(surroundings)))
            .collect(),
        skills: skills.map(|skills| skills.load(&choices, surroundings)),
        ..agent_loop(settings, llm.max_iterations)
    };
    Some(CallAction {
        target: CallTarget::Loop(Arc::new(agent.into_graph())),
        contract,
        failure_prefix: Some("LLM node failed: ".to_owned()),
        bind: "output",
    })
}

/// A text with more behind it, each after an empty line.
pub(super) fn with_more<'t>(text: Option<Expression>, more: impl IntoIterator<Item = &'t str>) -> Option<Expression> {
    let mut parts: Vec<Expression> = text.into_iter().collect();
    for more in more {
        if !parts.is_empty() {
            parts.push(Expression::Value("\n\n".into()));
        }
        parts.push(Expression::Value(more.into()));
    }
    if parts.len() > 1 { Some(Expression::Joined(parts)) } else { parts.pop() }
}

/// What all loops of the language have in common.
pub(super) fn agent_loop(settings: ModelSettings, max_requests: u32) -> AgentLoop {
    let words = match max_requests {
        0 => "the model may not be asked (max_iterations=0)".to_owned(),
        _ => format!("the model still asked for tools after {max_requests} requests (max_iterations={max_requests})"),
    };
    AgentLoop {
        settings,
        arguments: KeptArguments::Text,
        needs_text: true,
        cap: Some(RequestCap { requests: max_requests, then: AtCap::Fail(words) }),
        ..AgentLoop::default()
    }
}

/// So many attempts, one after the other.
pub(super) fn at_once(attempts: u32) -> Retry {
    Retry {
        attempts,
        on: RetryOn::Transient,
        pause: Duration::ZERO,
        growth: 1.0,
        longest_pause: Duration::ZERO,
        ..Retry::default()
    }
}

fn contract(schema: &Schema, settings: &ModelSettings) -> Box<Contract> {
    let merge = schema.properties.iter().map(|key| Arc::clone(&key.value)).collect();
    Box::new(Contract::new(schema.value.clone(), merge, settings, 1))
}

/// The tools that an entry of `tools` stands for. A function of an MCP server is called `mcp:server/function`.
fn tools_of(source: &Source, entry: &str, surroundings: &dyn Surroundings) -> Vec<String> {
    if let Some(server) = entry.strip_prefix("mcp:") {
        return server_functions(server, surroundings);
    }
    let name = tool_name(entry);
    if let Some(own) = own_tools(surroundings).into_iter().find(|own| own.name == name) {
        return vec![own.full_name];
    }
    let declared = source.global_tools.iter().any(|tool| tool_name(tool) == name);
    let function = if declared { None } else { mcp_function(source, surroundings, name) };
    vec![function.unwrap_or_else(|| global_tools::full_name(entry, surroundings))]
}

fn agent(agent: &Agent) -> Option<Action> {
    let name = Arc::clone(&agent.agent.as_ref()?.value);
    let contract = agent.output_schema.as_ref().map(|schema| contract(schema, &ModelSettings::default()));
    let exact = |input: &Update| (Arc::clone(&input.key.value), Expression::Exact(template(&input.value)));
    let target = CallTarget::Agent {
        agent: name,
        prompt: strict(agent.prompt.as_ref()?),
        inputs: agent.inputs.iter().map(exact).collect(),
    };
    // Where the run ends with the failure, nothing is written.
    let failure_prefix = agent.fallback.as_ref().map(|_| "Agent node failed: ".to_owned());
    Some(Action::Call(Box::new(CallAction { target, contract, failure_prefix, bind: "output" })))
}

fn look_up(node: &str, rag: &Rag) -> Action {
    let of_the_caller = || Expression::Strict(Template::parse(&format!("{{{{{INPUT_KEY}}}}}")));
    Action::LookUp(LookUpAction {
        base: node.to_owned(),
        query: rag.query.as_ref().map_or_else(of_the_caller, strict),
        top_k: rag.retrieval.top_k.map(|top_k| top_k as usize),
        bind: "output",
    })
}

/// A node that a plugin offers. One that cannot be used fails when a run comes to it; checks have said so.
fn plugin_node(plugin_node: &PluginNode, surroundings: &dyn Surroundings) -> Action {
    let name = plugin_node.plugin_node.to_string();
    let offered = match surroundings.plugin_node(&name) {
        PluginNodeState::Usable(offered) => offered,
        PluginNodeState::Missing(_) => return Action::Fail(format!("no plugin offers the type `{name}`")),
        PluginNodeState::Unusable(reason) => return Action::Fail(reason),
    };
    let kind = match (offered.kind, plugin_node.mode.as_deref()) {
        (PluginNodeKind::Connector, Some(CALLBACK)) => PluginNodeKind::Callback,
        (PluginNodeKind::Connector, None) if !offered.modes.contains(&SYNC) => PluginNodeKind::Callback,
        (kind, _) => kind,
    };
    Action::PluginNode(Box::new(PluginNodeAction {
        plugin_node: name,
        kind,
        with: given(&plugin_node.with),
        inputs: given(&plugin_node.inputs),
        branches: offered.branches,
        keys: None,
        bind: "output",
    }))
}

fn given(given: &PluginValues) -> Expression {
    Expression::Object(given.entries.iter().map(|(key, value)| (Arc::clone(&key.value), tree(value))).collect())
}

fn tree(tree: &Tree) -> Expression {
    match tree {
        Tree::Text(text) => lenient(text),
        Tree::Value(value) => Expression::Value(value.clone()),
        Tree::List(items) => Expression::List(items.iter().map(self::tree).collect()),
        Tree::Object(entries) => {
            Expression::Object(entries.iter().map(|(key, value)| (Arc::clone(key), self::tree(value))).collect())
        }
    }
}

fn map(source: &Source, node: &Node, map: &Map, ids: &NodeIds) -> Option<Action> {
    let branch = branches::goes_on(source, map).then(|| branches::id(source, node));
    let mut action = NodeItems {
        over: Template::parse(map.over.as_ref()?),
        item_key: Arc::clone(&map.item_key.as_ref()?.value),
        branch: ids.get(branch.as_deref().or(map.branch.as_deref())?)?,
        output_key: map.output_key().into(),
        collect_into: Arc::clone(&map.collect_into.as_ref()?.value),
    }
    .at_a_time(map.max_concurrency);
    action.concurrency_from = map.max_concurrency_from.as_ref().map(|from| Expression::Exact(template(from)));
    Some(Action::Map(action))
}
