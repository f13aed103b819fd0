//! The work of an agent, by its type: a function, a model, a person.

use std::sync::Arc;

use hotcell_graph::conversation::Speaker;
use hotcell_graph::ir::{
    Action, AgentLoop, Allowance, AskAction, AskDeadline, Asked, AtCap, CAPPED, CallAction, CallTarget, Callable,
    Composed, Contract, Expiry, Expression, LoopAnswer, LoopLimits, ModelSettings, PromptPart, REPLY, RequestCap,
    Retry, Update,
};
use hotcell_graph::{Key, Object, Path, Template, Value};

use super::agent_state::{ANSWER, INPUT, MEMORY, RAW, RERUN};
use super::expressions::{FROM_AGENT, UPSTREAM, composed, entry, key, object, or_else};
use super::functions::{self, Function, ModelTool};
use super::models;
use super::schema::{Agent, Body, Connector, Human, Interface, Llm, World};
use super::settings::HumanInterface;
use super::shapes;
use super::state::{BUDGET, HISTORY, HUMAN_DECISION, WAKE_UP_TRIGGER};
use super::steps::{Onward, Work};
use super::{intent, lower_connector, lower_feed, lower_knowledge};
use crate::surroundings::Surroundings;

/// What stands for the text of a model or a person that is no JSON object.
const RESPONSE: &str = "response";
const MESSAGE: &str = "message";
const DECISION: &str = "decision";
/// The step of the agent's function.
const FUNCTION: &str = "function";
/// What was prepared before.
const PREPARED: &str = "prepared_data";
/// What a function sees that follows a model.
const LLM_RESPONSE: &str = "llm_response";
/// What an agent gives beside its output that has used up its calls of tools, and by which word that is known.
const WARNINGS: &str = "_warnings";
const TOOL_CAP: &str = "tool_cap";

/// The steps of an agent; the error is why it cannot work.
pub(super) fn work(agent: &Agent, world: World<'_>) -> Result<Vec<Work>, String> {
    match &agent.body {
        Body::Programmatic { integration: Some(connector) } => connected(agent, connector, world),
        Body::External(Some(connector)) if !connector.is_function() => connected(agent, connector, world),
        Body::Programmatic { .. } | Body::External(_) => {
            let places = || functions::places(&agent.name, world.code);
            let function = functions::of_agent(&agent.name, world.code, world.surroundings)?
                .ok_or_else(|| format!("there is no function `{}`: {}", agent.name, places()))?;
            let none = Expression::Value(Value::Null);
            Ok(prepare(&function).into_iter().chain([works(agent, &function, key(INPUT), none)]).collect())
        }
        Body::Llm(llm) => {
            let asks = model(agent, llm, world);
            followed(agent, asks, world)
        }
        Body::Human(human) => Ok(person(agent, human, world)),
    }
}

/// Has another system work; a function with the name of the agent makes of the result what it likes.
fn connected(agent: &Agent, connector: &Connector, world: World<'_>) -> Result<Vec<Work>, String> {
    let action = lower_connector::action(agent, connector, world.surroundings)?;
    let given = composed(Composed::ObjectOf(key(ANSWER), lower_connector::TEXT.into()));
    followed(agent, step("connector", action, given), world)
}

/// The steps of an agent that asks a model or another system: what it hears is what it gives, or its function makes that of it.
fn followed(agent: &Agent, mut asks: Work, world: World<'_>) -> Result<Vec<Work>, String> {
    let function = functions::of_agent(&agent.name, world.code, world.surroundings)?;
    let Some(function) = function else { return Ok(vec![asks]) };
    let mut prepares = prepare(&function);
    if let Some(prepares) = &mut prepares {
        prepares.next = Some(Onward::To(asks.name));
    }
    asks.next = Some(Onward::To(FUNCTION));
    let given = composed(Composed::Overlaid(vec![key(INPUT), object([(LLM_RESPONSE, key(RAW))])]));
    Ok(prepares.into_iter().chain([asks, works(agent, &function, given, key(RAW))]).collect())
}

/// What a function of the project's code knows beside its input.
fn context(agent: &Agent) -> Expression {
    object([
        ("session_id", entry(key(INPUT), "session_id")),
        ("agent_name", Expression::Value(Value::Text(agent.name.clone()))),
        (FROM_AGENT, or_else(entry(key(INPUT), FROM_AGENT), "")),
        ("memory_posts", or_else(key(MEMORY), super::expressions::list([]))),
        (PREPARED, or_else(entry(key(INPUT), PREPARED), Object::default())),
    ])
}

/// Prepares data for the model and the function: they are part of the input.
fn prepare(function: &Function) -> Option<Work> {
    let Function::Code { prepares: Some(prepares), .. } = function else { return None };
    let context = object([
        ("session_id", entry(key(INPUT), "session_id")),
        (FROM_AGENT, or_else(entry(key(INPUT), FROM_AGENT), "")),
        ("memory_posts", or_else(key(MEMORY), super::expressions::list([]))),
    ]);
    let action = Action::Tool(Box::new(functions::call(prepares, vec![key(INPUT), context], ANSWER)));
    let input = composed(Composed::Overlaid(vec![key(INPUT), object([(PREPARED, key(ANSWER))])]));
    let updates = vec![Update { key: INPUT.into(), value: input }];
    Some(Work { name: "pre_compose", action, updates, next: Some(Onward::To(FUNCTION)) })
}

/// The function of an agent. A tool is given `input`; code is given the reply, what the agent was given, and the context.
fn works(agent: &Agent, function: &Function, input: Expression, reply: Expression) -> Work {
    let action = match function {
        Function::Tool => functions::call_tool(&agent.name, input, ANSWER),
        Function::Code { name, .. } => functions::call(name, vec![reply, key(INPUT), context(agent)], ANSWER),
    };
    step(FUNCTION, Action::Tool(Box::new(action)), key(ANSWER))
}

/// What the models of an agent may use in the month. Whoever serves the mesh counts it.
fn allowance(agent: &Agent) -> Option<Allowance> {
    let budget = agent.budget.as_ref()?;
    Some(Allowance {
        name: agent.name.to_string(),
        tokens: budget.tokens.map(u64::from),
        cost_usd: budget.cost_usd,
        problem: "the budget of the month is used up",
        failure_kind: BUDGET,
    })
}

fn step(name: &'static str, action: Action, gives: Expression) -> Work {
    Work { name, action, updates: vec![Update { key: RAW.into(), value: gives }], next: None }
}

/// Asks a model with the prompt, its parts, and the input as what a user says.
fn model(agent: &Agent, llm: &Llm, World { surroundings, providers, .. }: World<'_>) -> Work {
    let settings = |model: &str| ModelSettings {
        model: Some(models::name(model)),
        temperature: Some(llm.temperature),
        max_tokens: Some(llm.max_tokens),
        reasoning: llm.thoughts.of_model(model),
        keeps_prompt: llm.keeps_prompt,
        server: models::server(model, providers),
        ..ModelSettings::default()
    };
    let system =
        |name: &str, text: String| PromptPart::text(name, Speaker::System, Expression::Value(Value::from(text)));
    let mut prompt: Vec<PromptPart> = llm.prompt.iter().map(|text| system("`prompt`", text.to_string())).collect();
    for (label, text) in &llm.context_parts {
        prompt.push(system("`context_parts`", format!("[{label}]\n{}", &**text)));
    }
    if !agent.yields.is_empty() {
        prompt.push(system("`yields`", Contract::hint(&shapes::of_fields(&agent.yields))));
    }
    if agent.memory.is_some() {
        prompt.push(lower_feed::told(MEMORY));
    }
    if agent.told_of().is_some() {
        prompt.push(lower_knowledge::told());
    }
    if let Some(most) = agent.history {
        let earlier = composed(Composed::Newest(key(HISTORY), most as usize));
        prompt.push(PromptPart::messages("`receive_conversation_history`", earlier));
    }
    let input = Expression::TextOf(Box::new(key(INPUT)));
    prompt.push(PromptPart::text("the input", Speaker::Human, input));
    let agent_loop = AgentLoop {
        settings: settings(llm.model.as_deref().unwrap_or_default()),
        fallbacks: llm.fallback_models.iter().map(|model| settings(model)).collect(),
        fallbacks_end_with_reply: true,
        prompt,
        reply_schema: llm.response_format.clone(),
        limits: LoopLimits { allowance: allowance(agent), ..LoopLimits::default() },
        retry: Retry { time: models::time(llm, providers), ..Retry::default() },
        ..with_tools(agent, llm, surroundings)
    };
    let said = |text: Expression| composed(Composed::ObjectOf(text, RESPONSE.into()));
    let given = match agent_loop.answer {
        LoopAnswer::Text => said(key(ANSWER)),
        LoopAnswer::Report => capped(&|| said(entry(key(ANSWER), REPLY)), llm.tools.limits.most.unwrap_or_default()),
    };
    let target = CallTarget::Loop(Arc::new(agent_loop.into_graph()));
    let action = CallAction { target, contract: None, failure_prefix: None, bind: ANSWER };
    step("model", Action::Call(Box::new(action)), given)
}

/// What a model gave, with a warning where it used up its calls of tools. No connector is sent a name that begins with `_`.
fn capped(given: &dyn Fn() -> Expression, most: u32) -> Expression {
    let words = format!(
        "the model made all calls of tools that `max_tool_calls_per_message` ({most}) allows, and was asked once more without tools"
    );
    let warning = object([
        ("finish_reason", Expression::Value(TOOL_CAP.into())),
        ("message", Expression::Value(Value::from(words))),
    ]);
    let warned = Composed::Overlaid(vec![given(), object([(WARNINGS, Expression::List(vec![warning]))])]);
    composed(Composed::Either { condition: entry(key(ANSWER), CAPPED), then: composed(warned), otherwise: given() })
}

/// The loop of a model with those of its tools that are there.
fn with_tools(agent: &Agent, llm: &Llm, surroundings: &dyn Surroundings) -> AgentLoop {
    let tools = &llm.tools;
    let queried = agent.queried().and_then(lower_knowledge::tool);
    // One that may name the tool of its knowledge has it anyway.
    let is_other = |name: &String| queried.is_none() || name != lower_knowledge::TOOL;
    let names = tools.names.iter().map(|name| name.to_string()).filter(is_other);
    let of_categories = functions::of_categories(&tools.categories, surroundings).unwrap_or_default();
    let mut usable: Vec<Callable> = Vec::new();
    for name in names.chain(of_categories) {
        let ModelTool::Usable(tool, marks) = functions::model_tool(&name, &agent.name, surroundings) else { continue };
        let tool = match marks.confirm {
            false => Callable::Tool(tool),
            true => Callable::Described { tool, name, description: None, parameters: None, confirm: true },
        };
        if !usable.contains(&tool) {
            usable.push(tool);
        }
    }
    // Servers that cannot be used are told where the agent is looked at.
    usable.extend(llm.servers.iter().filter_map(|server| server.tools(surroundings).ok()).flatten());
    usable.extend(llm.thoughts.callables());
    usable.extend(queried);
    if usable.is_empty() {
        return AgentLoop::default();
    }
    // The request after the last call offers none. Whatever is called then is not called.
    let requests = tools.limits.most.unwrap_or_default().saturating_add(1);
    AgentLoop {
        tools: usable,
        calls: tools.limits.clone(),
        answer: LoopAnswer::Report,
        choice: tools.choice.clone(),
        cap: Some(RequestCap { requests, then: AtCap::Return }),
        ..AgentLoop::default()
    }
}

/// Asks a person; a person who speaks first has said it already. Nobody speaks where the seat wakes up by itself, or works again.
fn person(agent: &Agent, human: &Human, world: World<'_>) -> Vec<Work> {
    let from = || entry(key(INPUT), FROM_AGENT);
    let told = [FROM_AGENT, WAKE_UP_TRIGGER, RERUN].map(Key::from);
    let nobody = Value::Object([(Key::from(FROM_AGENT), Value::from(""))].into_iter().collect());
    let is_first = Expression::Is(Box::new(composed(Composed::Only(key(INPUT), told.into()))), nobody);
    let own = ["session_id", FROM_AGENT, UPSTREAM].map(Key::from);
    let said = composed(Composed::Without(key(INPUT), own.into()));
    let begin = Work {
        name: "who",
        action: Action::Pass,
        updates: Vec::new(),
        next: Some(Onward::If(is_first, "said", "ask")),
    };
    let first = step("said", Action::Pass, answer(agent, said, from(), true));
    let mut updates = Vec::new();
    let question = question(agent, human, &mut updates);
    let show = Work { name: "ask", action: Action::Pass, updates, next: Some(Onward::To("wait")) };
    let heard = composed(Composed::ObjectOf(key(ANSWER), MESSAGE.into()));
    let is_function = matches!(human.interface, Interface::Api | Interface::Custom);
    let answers = match is_function {
        true => handler(agent, human, world).map(Some),
        false => Ok(None),
    };
    let action = match answers {
        Ok(tool) => Action::Ask(AskAction {
            deadline: Some(Box::new(AskDeadline {
                after: human.timeout,
                then: match &human.fallback {
                    Some(fallback) => Expiry::Answer(Expression::Value(fallback.clone())),
                    None => Expiry::EndBranch,
                },
            })),
            asked: Box::new(Asked { tool, ..asked(agent, human) }),
            ..AskAction::new(question, ANSWER)
        }),
        Err(reason) => Action::Fail(reason),
    };
    let mut waits = step("wait", action, answer(agent, heard, from(), false));
    let Some(understood) = intent::step(agent, human, world.providers) else { return vec![begin, first, show, waits] };
    let mut first = first;
    first.next = Some(Onward::To(intent::STEP));
    waits.next = Some(Onward::To(intent::STEP));
    vec![begin, first, show, waits, understood]
}

/// The function that answers for a person, with what it is given: a tool is given the input, code the context, the session and the
/// time that it has, in seconds.
fn handler(agent: &Agent, human: &Human, world: World<'_>) -> Result<(String, Expression), String> {
    let places = || functions::handler_places(&agent.name, world.code);
    let function = functions::of_agent(&agent.name, world.code, world.surroundings)?;
    match function.ok_or_else(|| format!("there is no function `{}`: {}", agent.name, places()))? {
        Function::Tool => Ok((agent.name.to_string(), key(INPUT))),
        Function::Code { name, .. } => {
            let seconds = Expression::Value(Value::from(i64::try_from(human.timeout.as_secs()).unwrap_or(i64::MAX)));
            let arguments = Expression::List(vec![key(INPUT), entry(key(INPUT), "session_id"), seconds]);
            Ok((name, object([("arguments", arguments)])))
        }
    }
}

/// Whom a question is put to, with what whoever delivers it has to know.
fn asked(agent: &Agent, human: &Human) -> Asked {
    let interface = HumanInterface::from(human.interface);
    let text = |text: Option<&str>| match text {
        Some(text) => Expression::Joined(vec![Expression::Lenient(Template::parse(text))]),
        None => Expression::Value(Value::from(agent.description.as_deref().unwrap_or_default())),
    };
    let given = composed(Composed::Without(key(INPUT), ["session_id", FROM_AGENT, UPSTREAM].map(Key::from).into()));
    let context = object([
        ("interface", Expression::Value(interface.word().into())),
        ("prompt", text(human.prompt.as_deref())),
        ("context", given),
        ("inputs", key(INPUT)),
        (FROM_AGENT, or_else(entry(key(INPUT), FROM_AGENT), "")),
    ]);
    let rerun = composed(Composed::Only(key(INPUT), vec![RERUN.into()]));
    Asked {
        seat: Some(agent.name.to_string()),
        operator_ids: human.operator_ids.clone(),
        context: Some(composed(Composed::Overlaid(vec![context, rerun]))),
        ..Asked::default()
    }
}

/// What a person is shown. What its templates name is put where they see it.
fn question(agent: &Agent, human: &Human, updates: &mut Vec<Update>) -> Expression {
    let mut parts = Vec::new();
    for text in human.prompt.iter().chain(&human.context) {
        let template = Template::parse(text);
        for root in template.references().filter_map(Path::root) {
            if updates.iter().all(|update| *update.key != *root) {
                updates.push(Update { key: root.into(), value: or_else(entry(key(INPUT), root), "") });
            }
        }
        if !parts.is_empty() {
            parts.push(Expression::Value("\n\n".into()));
        }
        parts.push(Expression::Lenient(template));
    }
    if human.prompt.is_none() {
        let own = ["session_id", UPSTREAM, FROM_AGENT].map(Key::from);
        let given = composed(Composed::Without(key(INPUT), own.into()));
        let words = agent.description.clone().unwrap_or_else(|| format!("`{}` is asked", agent.name));
        parts.splice(
            0..0,
            [Expression::Value(Value::from(format!("{words}\n\n"))), Expression::TextOf(Box::new(given))],
        );
    } else {
        parts.push(again());
    }
    Expression::Joined(parts)
}

/// Why somebody is asked again, below a text that does not show it; nothing for who is asked for the first time.
fn again() -> Expression {
    let context = || entry(key(INPUT), RERUN);
    let why = Composed::Only(context(), ["reason", "feedback", "validation_errors"].map(Key::from).into());
    let words = Expression::Value("\n\nYou are asked again:\n".into());
    composed(Composed::Either {
        condition: Expression::Is(Box::new(or_else(context(), Value::Null)), Value::Null),
        then: Expression::Value("".into()),
        otherwise: Expression::Joined(vec![words, Expression::TextOf(Box::new(composed(why)))]),
    })
}

/// What a person gives: what was said by its documented names, and what the agent declares.
fn answer(agent: &Agent, said: Expression, from: Expression, is_first: bool) -> Expression {
    let one_of = |short: &str, long: &str| {
        let long = or_else(entry(said.clone(), long), "");
        Expression::Else(Box::new(entry(said.clone(), short)), Box::new(long))
    };
    let named = [MESSAGE, DECISION, "human_message", HUMAN_DECISION, "human_data", "operator_id", "timestamp"];
    let more = composed(Composed::Without(said.clone(), named.map(Key::from).into()));
    let given = |name: &str| or_else(entry(said.clone(), name), Value::Null);
    let declared: Vec<Key> = agent.yields.iter().map(|(name, _)| name.clone()).collect();
    composed(Composed::Overlaid(vec![
        composed(Composed::Only(said.clone(), declared)),
        object([
            (FROM_AGENT, from),
            ("human_message", one_of(MESSAGE, "human_message")),
            (HUMAN_DECISION, one_of(DECISION, HUMAN_DECISION)),
            ("human_data", Expression::Else(Box::new(entry(said.clone(), "human_data")), Box::new(more))),
            ("human_initiated", Expression::Value(Value::Bool(is_first))),
            ("source_agent", Expression::Value(Value::Text(agent.name.clone()))),
            ("operator_id", given("operator_id")),
            ("timestamp", given("timestamp")),
            ("original_webhook_data", said),
        ]),
    ]))
}
