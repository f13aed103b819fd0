//! Calling a model: attempts, the bounded loop of tool calls, the structured answer.

use std::sync::Arc;

use hotcell_budget::{Account, Usage};
use hotcell_graph::ir::{Graph, ModelAction, ModelServer, ModelSettings, Structure};
use hotcell_graph::value::parse_json;
use hotcell_graph::{Key, Object, State, Value};
use hotcell_models::{Message, ModelError, ModelName, OnText, Reply, Request, Server, ToolCallRequest, ToolSpec};

use super::Performed;
use super::structure::{EXTRACTOR, Schema};
use super::tool;
use crate::context::{Interruption, RunContext};
use crate::event::Event;
use crate::hook::{self, HookPoint};
use crate::memory::{Deed, REFUSED};
use crate::ports::SharedState;
use crate::telling;
use crate::turn::NodeTurn;
use hotcell_journal::Write;

/// What makes an error of a whole attempt worth another attempt, beside transient errors of the provider.
const NO_OUTPUT: &str = "the model produced no output";

/// What a node says that needs a model where there is none.
const NO_MODEL: &str = "no model is chosen; name one in the graph (`model: provider:name`) or set `HOTCELL_MODEL`";

/// Why an attempt gave no answer.
enum Attempt {
    /// Another attempt may succeed
    Transient(String),
    /// It may not
    Final(Interruption),
}

impl From<Interruption> for Attempt {
    fn from(stop: Interruption) -> Self {
        Attempt::Final(stop)
    }
}

pub(super) async fn perform(
    turn: &mut NodeTurn,
    graph: &Graph,
    action: &ModelAction,
    state: &State,
) -> Result<Performed, Interruption> {
    let mut call = Call::prepare(turn, graph, action, state)?;
    let answer = call.answer(turn).await?;
    let (Some(schema), Some(structure)) = (&call.schema, &action.structure) else {
        return Ok(Performed { answer: Some((action.bind, Value::text(answer))), ..Performed::default() });
    };
    let (value, writes) = structured(turn, &call.settings, schema, structure, &answer).await?;
    Ok(Performed { answer: Some((action.bind, value)), writes, route: None })
}

/// A text as a value of the schema, extracted if need be, and what of it is written.
pub(super) async fn structured(
    turn: &mut NodeTurn,
    settings: &ModelSettings,
    schema: &Schema,
    structure: &Structure,
    text: &str,
) -> Result<(Value, Vec<Write>), Interruption> {
    let value = match schema.read(text) {
        Ok(value) => value,
        Err(_) => extract(turn, settings, schema, text).await?,
    };
    let mut writes = Vec::new();
    if let Value::Object(object) = &value {
        for key in &structure.merge {
            if let Some(value) = object.get(key) {
                writes.push(Write { key: key.clone(), value: value.clone() });
            }
        }
    }
    Ok((value, writes))
}

/// One call of a model with everything evaluated that does not change between attempts.
struct Call<'a> {
    action: &'a ModelAction,
    settings: ModelSettings,
    messages: Vec<Message>,
    tools: Vec<ToolSpec>,
    /// The full names of the tools, in the same order
    full_names: &'a [String],
    schema: Option<Schema>,
    state: SharedState,
}

impl<'a> Call<'a> {
    fn prepare(turn: &NodeTurn, graph: &Graph, action: &'a ModelAction, state: &State) -> Result<Self, Interruption> {
        let field = |name: &'static str| move |missing| Interruption::Failed(format!("`{name}`: {missing}"));
        let instructions = match &action.instructions {
            Some(instructions) => Some(instructions.evaluate_text(state).map_err(field("instructions"))?),
            None => None,
        };
        let prompt = action.prompt.evaluate_text(state).map_err(field("prompt"))?;
        let schema = match &action.structure {
            Some(structure) => Some(Schema::compile(structure).map_err(Interruption::Failed)?),
            None => None,
        };
        let hint = match (&schema, &action.structure) {
            (Some(schema), Some(structure)) if structure.hint => Some(schema.hint()),
            _ => None,
        };
        let with_hint = |text: String, hint: Option<String>| match hint {
            Some(hint) => format!("{text}\n\n{hint}"),
            None => text,
        };
        let messages = match instructions {
            Some(instructions) => vec![Message::system(with_hint(instructions, hint)), Message::user(prompt)],
            None => vec![Message::user(with_hint(prompt, hint))],
        };
        let mut tools = Vec::with_capacity(action.tools.len());
        for name in &action.tools {
            let tool = turn.context.ports.tools.describe(name);
            let mut tool: ToolSpec = tool.ok_or_else(|| Interruption::Failed(format!("there is no tool `{name}`")))?;
            // Two servers may have functions of one name; a model takes names without the marks between their parts.
            if tools.iter().any(|known: &ToolSpec| known.name == tool.name) {
                tool.name = name.replace([':', '/', '.'], "_");
            }
            tools.push(tool);
        }
        Ok(Call {
            action,
            settings: action.settings.or(&graph.model),
            messages,
            tools,
            full_names: &action.tools,
            schema,
            state: SharedState::new(state.clone()),
        })
    }

    /// The model's final text. A request that fails in passing is made again, up to the attempts that the node allows; what
    /// was said and called before it stays as it is.
    async fn answer(&mut self, turn: &mut NodeTurn) -> Result<String, Interruption> {
        let mut messages = self.messages.clone();
        let (mut attempt, mut request) = (1, 1);
        loop {
            let asked = ask_model(turn, &self.settings, messages.clone(), &self.tools, &self.action.tools).await;
            let reply = match asked {
                Ok(reply) if reply.tool_calls.is_empty() && reply.content.trim().is_empty() => {
                    Err(Attempt::Transient(NO_OUTPUT.to_owned()))
                }
                other => other,
            };
            let reply = match reply {
                Ok(reply) => reply,
                Err(Attempt::Transient(error)) if attempt < self.action.attempts => {
                    attempt += 1;
                    turn.emit(&Event::ModelRetried { node: &turn.node, error: &error, attempt });
                    continue;
                }
                Err(Attempt::Transient(error)) => return Err(Interruption::Failed(error)),
                Err(Attempt::Final(stop)) => return Err(stop),
            };
            if reply.tool_calls.is_empty() {
                return Ok(reply.content);
            }
            if request == self.action.max_requests {
                return Err(Interruption::Failed(format!(
                    "the model still asked for tools after {request} requests (max_iterations={request})"
                )));
            }
            request += 1;
            let calls = reply.tool_calls.clone();
            messages.push(reply.into_message());
            for call in calls {
                let content = self.call_tool(turn, &call).await?;
                messages.push(Message::tool(call.id, content));
            }
        }
    }

    /// What the model is told about its call. Only a question to a person and the journal stop the node; every other
    /// failure is an answer.
    async fn call_tool(&self, turn: &mut NodeTurn, call: &ToolCallRequest) -> Result<String, Interruption> {
        let place = self.tools.iter().position(|tool| tool.name == call.name);
        let refusal = match place.map(|place| &self.tools[place]) {
            Some(tool) => check_arguments(tool, &call.arguments)
                .err()
                .map(|problem| format!("error: the arguments of `{}` cannot be used: {problem}", call.name)),
            None => {
                let offered: Vec<&str> = self.tools.iter().map(|tool| tool.name.as_str()).collect();
                let offered = if offered.is_empty() { "none".to_owned() } else { offered.join(", ") };
                Some(format!("error: there is no tool `{}`; available: {offered}", call.name))
            }
        };
        if let Some(error) = refusal {
            let usage = Usage::default();
            turn.emit(&Event::ToolCalled {
                node: &turn.node,
                tool: &call.name,
                arguments: &call.arguments,
                error: Some(&error),
                usage: &usage,
            });
            return Ok(error);
        }
        let full_name = place.and_then(|place| self.full_names.get(place)).map_or(&call.name, |name| name);
        let called = tool::call_to_the_end(turn, full_name, &call.name, &call.arguments, &self.state).await?;
        Ok(match called {
            Ok(value) => value.to_display().into_owned(),
            Err(error) => format!("error: {error}"),
        })
    }
}

/// Turns a free text into a value of the schema: one extraction, one repair.
async fn extract(
    turn: &mut NodeTurn,
    settings: &ModelSettings,
    schema: &Schema,
    text: &str,
) -> Result<Value, Interruption> {
    let first = extractor_answer(turn, settings, schema.extraction(text)).await?;
    let problem = match schema.read(&first) {
        Ok(value) => return Ok(value),
        Err(problem) => problem,
    };
    let second = extractor_answer(turn, settings, schema.repair(text, &first, &problem)).await?;
    schema.read(&second).map_err(|problem| {
        let shown: String = second.chars().take(200).collect();
        Interruption::Failed(format!(
            "structured extraction failed after one repair: {problem}; the last answer was: {}",
            shown.escape_debug()
        ))
    })
}

async fn extractor_answer(
    turn: &mut NodeTurn,
    settings: &ModelSettings,
    prompt: String,
) -> Result<String, Interruption> {
    let messages = vec![Message::system(EXTRACTOR), Message::user(prompt)];
    match ask_model(turn, settings, messages, &[], &[]).await {
        Ok(reply) => Ok(reply.content),
        Err(Attempt::Transient(error)) => Err(Interruption::Failed(format!("structured extraction failed: {error}"))),
        Err(Attempt::Final(stop)) => Err(stop),
    }
}

/// One request to the model.
async fn ask_model(
    turn: &mut NodeTurn,
    settings: &ModelSettings,
    messages: Vec<Message>,
    tools: &[ToolSpec],
    names: &[String],
) -> Result<Reply, Attempt> {
    match ask(turn, Asked { settings, messages, tools, names, output_schema: None }).await {
        Ok(reply) => Ok(reply),
        Err(Unanswered::Refused(error)) if error.is_transient() => Err(Attempt::Transient(error.to_string())),
        Err(Unanswered::Refused(error)) => Err(Attempt::Final(Interruption::Failed(error.to_string()))),
        Err(Unanswered::Stopped(stop)) => Err(Attempt::Final(stop)),
    }
}

/// What a model is asked.
pub(super) struct Asked<'a> {
    pub(super) settings: &'a ModelSettings,
    pub(super) messages: Vec<Message>,
    pub(super) tools: &'a [ToolSpec],
    /// The full names of the tools, for those who watch
    pub(super) names: &'a [String],
    pub(super) output_schema: Option<serde_json::Value>,
}

/// Why a model gave no answer.
pub(super) enum Unanswered {
    /// The provider, or the way to it, refused
    Refused(ModelError),
    /// Something else
    Stopped(Interruption),
}

/// One request to the model, as an effect.
pub(super) async fn ask(turn: &mut NodeTurn, asked: Asked<'_>) -> Result<Reply, Unanswered> {
    let Asked { settings, messages, tools, names, output_schema } = asked;
    turn.emit(&Event::ModelRequested { node: &turn.node, model: settings.model.as_deref(), tools: names });
    let failed = |reason: String| Unanswered::Stopped(Interruption::Failed(reason));
    let model = match &settings.model {
        Some(name) => name.parse::<ModelName>().map_err(|error| failed(error.to_string()))?,
        None => turn.context.ports.default_model.clone().ok_or_else(|| failed(NO_MODEL.to_owned()))?,
    };
    let more = settings.more.as_ref().map(|more| serde_json::Value::from(&Value::Object(more.clone())));
    let request = Request {
        tools: tools.to_vec(),
        temperature: settings.temperature,
        top_p: settings.top_p,
        max_tokens: settings.max_tokens,
        more: more.and_then(|more| more.as_object().cloned()).unwrap_or_default(),
        output_schema,
        server: server(settings).map_err(failed)?,
        ..Request::new(model, messages)
    };
    let node = turn.node.clone();
    // Not the model: whoever goes on with a run may choose another one.
    let deed = Deed::new("model", "messages", &[&hook::messages(&request.messages).to_json()]);
    let answer = turn
        .effect(deed, |context| async move {
            let mut used = Account::default();
            let answer = complete(&context, &mut used, &node, request).await;
            (used, answer)
        })
        .await
        .map_err(Unanswered::Stopped)?;
    recall(&answer)
}

/// Asks the model, with the hooks around it: its reply, or why it refused, as a value for the journal.
async fn complete(
    context: &RunContext,
    used: &mut Account,
    node: &Key,
    mut request: Request,
) -> Result<Value, Interruption> {
    let name = request.model.to_string();
    let told = || {
        let tools = request.tools.iter().map(|tool| Value::from(tool.name.as_str())).collect();
        hook::event([
            ("node", Value::Text(node.clone())),
            ("model", name.as_str().into()),
            ("messages", hook::messages(&request.messages)),
            ("tools", Value::List(tools)),
        ])
    };
    if let Some(event) = telling::tell(context, used, HookPoint::BeforeModelCall, told).await? {
        telling::change_messages(&mut request.messages, &event)?;
    }
    context.budget_scope.may_ask_model().map_err(|overdrawn| Interruption::Failed(overdrawn.to_string()))?;
    let observer = Arc::clone(&context.ports.observer);
    let mut on_text = |text: &str| observer.event(&Event::ModelText { node, text });
    let on_text: Option<OnText<'_>> = if observer.wants_text() { Some(&mut on_text) } else { None };
    let mut reply = match context.ports.model.complete(request, on_text).await {
        Ok(reply) => reply,
        Err(error) => return refusal(&error),
    };
    let (input_tokens, output_tokens) = (reply.usage.input, reply.usage.output);
    let usage = Usage { model_requests: 1, input_tokens, output_tokens, ..Usage::default() };
    context.budget_scope.spend(&usage);
    used.add(name.as_str(), usage);
    let (prompt_tokens, completion_tokens) = (input_tokens, output_tokens);
    context.ports.observer.event(&Event::ModelAnswered { node, prompt_tokens, completion_tokens });
    let told = || {
        let calls = serde_json::to_value(&reply.tool_calls).unwrap_or_default();
        let answer = hook::event([("text", reply.content.as_str().into()), ("tool_calls", Value::from(&calls))]);
        hook::event([("node", Value::Text(node.clone())), ("reply", Value::Object(answer))])
    };
    let changed = telling::tell(context, used, HookPoint::AfterModelCall, told).await?;
    let text = changed.as_ref().and_then(|event| event.get("reply")?.as_object()?.get("text")?.as_text());
    if let Some(text) = text {
        text.clone_into(&mut reply.content);
    }
    remember(&reply)
}

/// Where the model is, if the settings say so.
fn server(settings: &ModelSettings) -> Result<Option<Server>, String> {
    match &settings.server {
        None => Ok(None),
        Some(ModelServer::Provider(name)) => Ok(Some(Server::Provider((*name).to_owned()))),
        Some(ModelServer::Address(url)) => Ok(Some(Server::Address(url.to_string()))),
        Some(ModelServer::Refused(reason)) => Err(reason.clone()),
    }
}

fn remember(reply: &Reply) -> Result<Value, Interruption> {
    let reply = serde_json::to_value(reply).map_err(|error| Interruption::Failed(error.to_string()))?;
    Ok(Value::from(&reply))
}

/// Why a model refused, as an answer: whoever repeats the turn must not take the next answer for this one.
fn refusal(error: &ModelError) -> Result<Value, Interruption> {
    let error = serde_json::to_value(error).map_err(|error| Interruption::Failed(error.to_string()))?;
    Ok(Value::Object([(REFUSED.into(), Value::from(&error))].into_iter().collect::<Object>()))
}

fn recall(answer: &Value) -> Result<Reply, Unanswered> {
    let unreadable = |error: serde_json::Error| {
        Unanswered::Stopped(Interruption::Diverged(format!("a reply in the journal cannot be read: {error}")))
    };
    let answer = serde_json::Value::from(answer);
    match answer.as_object().filter(|object| object.len() == 1).and_then(|object| object.get(REFUSED)) {
        Some(error) => Err(Unanswered::Refused(serde_json::from_value(error.clone()).map_err(unreadable)?)),
        None => serde_json::from_value(answer).map_err(unreadable),
    }
}

/// The arguments of a call, which a model writes as a text. Nothing at all is no arguments.
pub(super) fn parse_arguments(arguments: &str) -> Result<Object, String> {
    let arguments = if arguments.trim().is_empty() { "{}" } else { arguments };
    match parse_json(arguments).map_err(|error| format!("they are not JSON: {error}"))? {
        Value::Object(arguments) => Ok(arguments),
        other => Err(format!("they have to be an object, not {}", other.a_kind())),
    }
}

/// Arguments must be a JSON object that fits the tool's parameters.
pub(super) fn check_arguments(tool: &ToolSpec, arguments: &str) -> Result<(), String> {
    let value = Value::Object(parse_arguments(arguments)?);
    // A tool whose own schema is broken is not the model's fault: its arguments go through.
    let Ok(validator) = jsonschema::validator_for(&tool.parameters) else { return Ok(()) };
    let instance = serde_json::Value::from(&value);
    let problems: Vec<String> = validator.iter_errors(&instance).take(5).map(|error| error.to_string()).collect();
    if problems.is_empty() { Ok(()) } else { Err(problems.join("; ")) }
}
