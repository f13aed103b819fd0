//! Asking a model within a conversation that is kept in the state.

mod condense;
mod telling;
mod window;

use std::ops::Range;

use hotcell_graph::conversation::{self, Speaker};
use hotcell_graph::ir::{
    AgentLoop, ConverseAction, Graph, KeptArguments, ModelSettings, NoValue, OwnSteps, PromptPart, Retry, RetryOn,
    Said, Summary, ToolChoice, Trim,
};
use hotcell_graph::value::{Number, parse_json};
use hotcell_graph::{List, Object, State, Value};
use hotcell_journal::Write;
use hotcell_models::{Message, ModelError, ProviderState, Reply, Role, ToolCallRequest, ToolSpec};
use thiserror::Error;

use super::Performed;
use super::answer_calls::{as_written, within_reach};
use super::model::{Asked, Unanswered, ask, pause};
use super::read_value::{Schema, unfenced};
use crate::action::converse::telling::Telling;
use crate::context::Interruption;
use crate::event::Event;
use crate::turn::NodeTurn;

/// What is said of a reply in which there is nothing.
const NO_OUTPUT: &str = "the model produced no output";

pub(super) async fn perform(
    turn: &mut NodeTurn,
    graph: &Graph,
    action: &ConverseAction,
    state: &State,
) -> Result<Performed, Interruption> {
    let own = action.steps.as_ref();
    let mut summary = own.and_then(|own| state.get(&own.summary)).and_then(Summary::of_value);
    // Another attempt has the same state, and would be told the same.
    let mut prompt = Prompt::of(action, summary.as_ref(), state).inspect_err(|_| turn.give_up())?;
    let is_used_up = own.and_then(|own| own.calls.as_ref());
    let is_used_up = is_used_up.is_some_and(|(calls, most)| own_number(state, calls) >= *most as usize);
    let offered = if is_used_up { &[][..] } else { &action.tools };
    let reach = within_reach(turn, graph, offered, state)?;
    let names: Vec<String> = reach.iter().map(|callable| callable.name().to_owned()).collect();
    let tools: Vec<_> = reach.into_iter().map(|callable| callable.spec).collect();
    if let Some(Value::Number(attempts)) = action.attempts.as_ref().and_then(|key| state.get(key)) {
        turn.attempts = attempts.to_f64() as u32;
    }
    let requests = own.map_or(0, |own| own_number(state, &own.requests));
    let mut writes = Vec::new();
    let counts = token_counts(turn, graph, action);
    if let (Some(own), Some(window)) = (own, &action.window)
        && let Some(task) = window::to_summarize(window, &prompt, summary.as_ref(), &counts)
    {
        let made = summary.as_ref().map_or(0, |summary| summary.requests);
        let question = Question { messages: task.messages, number: requests + made, ..Question::plain() };
        let (reply, _) = request(turn, graph, action, question, state).await?;
        let new = Summary { text: reply.content, messages: task.count, requests: made + 1 };
        writes.push(Write { key: own.summary.clone(), value: new.to_value() });
        prompt = Prompt::of(action, Some(&new), state)?;
        summary = Some(new);
    }
    for condense in &action.condense {
        condense::perform(turn, graph, condense, &mut prompt, state, &mut writes).await?;
    }
    if let Some(window) = &action.window
        && window.trim == Trim::LeaveOut
    {
        window::trim(window, &mut prompt.messages, &prompt.listed, &counts);
    }
    let choice = own.and_then(|own| own.choice.as_ref()).filter(|_| requests == 0 && !tools.is_empty());
    let question = Question {
        messages: prompt.messages,
        tools: &tools,
        choice: choice.map(|choice| match choice {
            ToolChoice::Any => hotcell_models::ToolChoice::Any,
            ToolChoice::Tool(name) => hotcell_models::ToolChoice::Tool(name.clone()),
        }),
        names: &names,
        output_schema: action.output_schema.as_ref().map(serde_json::Value::from),
        number: requests + summary.map_or(0, |summary| summary.requests),
        is_last: &|reply| ends(own, requests, reply, state),
    };
    let (reply, model) = request(turn, graph, action, question, state).await?;
    if let Some(key) = own.and_then(|own| own.model.as_ref()) {
        writes.push(Write { key: key.clone(), value: Value::from(i64::try_from(model).unwrap_or(i64::MAX)) });
    }
    let attempts = |key: &hotcell_graph::Key| {
        let made = turn.attempts.max(1);
        Write { key: key.clone(), value: Value::Number(Number::Int(i64::from(made))) }
    };
    writes.extend(action.attempts.iter().map(attempts));
    let answer = Some((action.bind, Value::Object(of_reply(&reply, action.arguments))));
    Ok(Performed { answer, writes, ..Performed::default() })
}

/// A number that a loop keeps for itself.
fn own_number(state: &State, key: &str) -> usize {
    match state.get(key) {
        Some(Value::Number(number)) => number.to_f64() as usize,
        _ => 0,
    }
}

/// Whether a reply ends what a loop was for. Without a loop, it does.
fn ends(own: Option<&OwnSteps>, requests: usize, reply: &Reply, state: &State) -> bool {
    let Some(own) = own else { return true };
    if own.most.is_some_and(|most| requests + 1 >= most as usize) {
        return true;
    }
    match &own.until {
        _ if !reply.tool_calls.is_empty() => false,
        None => true,
        Some(until) => {
            let mut after = state.clone();
            after.set(AgentLoop::REPLY_KEY.into(), reply.content.as_str().into());
            after.set(own.requests.clone(), Value::from(i64::try_from(requests + 1).unwrap_or(i64::MAX)));
            // One that cannot be told apart is held to what the last one is held to.
            !matches!(until.evaluate(&after), Ok(Value::Bool(false)))
        }
    }
}

/// What a model is asked, whichever it is.
struct Question<'a> {
    messages: Vec<Message>,
    tools: &'a [ToolSpec],
    /// What has to be called
    choice: Option<hotcell_models::ToolChoice>,
    /// The full names of the tools
    names: &'a [String],
    output_schema: Option<serde_json::Value>,
    /// How many requests were made before it
    number: usize,
    is_last: &'a (dyn Fn(&Reply) -> bool + Send + Sync),
}

impl Question<'_> {
    /// One without tools, whose reply is not what is wanted in the end.
    fn plain() -> Self {
        Question {
            messages: Vec::new(),
            tools: &[],
            choice: None,
            names: &[],
            output_schema: None,
            number: 0,
            is_last: &|_: &Reply| false,
        }
    }
}

/// Counts the tokens of texts as the model counts them that is asked first.
fn token_counts(turn: &NodeTurn, graph: &Graph, action: &ConverseAction) -> impl Fn(&str) -> Option<usize> + use<> {
    let context = turn.context.clone();
    let settings = action.settings.or(context.defaults(graph));
    let name = match &settings.model {
        Some(name) => name.parse().ok(),
        None => context.ports.default_model.clone(),
    };
    move |text| context.ports.model.count_tokens(name.as_ref()?, text)
}

/// Asks the model, as often as it takes, and then the others: the first reply, and which of them gave it.
async fn request(
    turn: &mut NodeTurn,
    graph: &Graph,
    action: &ConverseAction,
    question: Question<'_>,
    state: &State,
) -> Result<(Reply, usize), Interruption> {
    let defaults = turn.context.defaults(graph).clone();
    let models: Vec<&ModelSettings> = std::iter::once(&action.settings).chain(&action.fallbacks).collect();
    let kept = action.steps.as_ref().and_then(|own| Some((own.model.as_ref()?, own_number(state, &own.requests))));
    let (mut model, last) = match kept {
        Some((key, requests)) if requests > 0 => {
            let answered = own_number(state, key).min(models.len() - 1);
            (answered, answered)
        }
        _ => (0, models.len() - 1),
    };
    let enforced = match (action.enforced_by, &action.output_schema) {
        // A summary is not held to what the reply is held to.
        (Some(setting), Some(schema)) if question.output_schema.is_some() => Some((setting, Schema::compile(schema)?)),
        _ => None,
    };
    let mut settings = models[model].or(&defaults);
    let mut first_attempt = 1;
    loop {
        let asked = Asked {
            settings: &settings,
            messages: question.messages.clone(),
            tools: question.tools,
            choice: question.choice.clone(),
            names: question.names,
            output_schema: question.output_schema.clone(),
            forbidden: &action.forbidden,
            is_last: question.is_last,
            number: question.number,
            time: action.retry.time,
        };
        let mut is_refused = false;
        let (error, worth_it, status) = match ask(turn, asked).await {
            Ok(reply) if action.needs_text && is_empty(&reply) => (NO_OUTPUT.to_owned(), true, None),
            Ok(mut reply) => {
                match enforced.as_ref().and_then(|(setting, schema)| misfit(setting, schema, &mut reply)) {
                    None => return Ok((reply, model)),
                    Some(problem) => (problem, matches!(action.retry.on, RetryOn::Any), None),
                }
            }
            Err(Unanswered::Stopped(stop)) => return Err(stop),
            Err(Unanswered::Refused(error)) => {
                is_refused = true;
                let status = match &error {
                    ModelError::Status { status, .. } => Some(*status),
                    _ => None,
                };
                (error.to_string(), is_worth_it(&action.retry, &error), status)
            }
        };
        let made = turn.attempts + 1 - first_attempt;
        if worth_it && made < action.retry.attempts {
            // An attempt of an earlier process had been waited for.
            if turn.known_next().is_none() {
                turn.context.ports.clock.pause(pause(&action.retry, made, status)).await;
            }
        } else if model < last {
            model += 1;
            settings = models[model].or(&defaults);
            first_attempt = turn.attempts + 1;
        } else {
            // It was tried as often as it may be, or would be refused as often as it is tried.
            match is_refused && !worth_it {
                true => turn.note_final_refusal(),
                false => turn.give_up(),
            }
            let before = action.refused_as.as_deref().unwrap_or_default();
            return Err(Interruption::Failed(format!("{before}{error}")));
        }
        turn.attempts += 1;
        turn.emit(&Event::ModelRetried { node: &turn.node, error: &error, attempt: turn.attempts });
    }
}

/// Why a reply is not the JSON that it has to be. One that is loses the fence around it.
fn misfit(setting: &str, schema: &Schema, reply: &mut Reply) -> Option<String> {
    if let Err(problem) = schema.read(&reply.content) {
        return Some(format!("the reply does not fit `{setting}`: {problem}"));
    }
    reply.content = unfenced(&reply.content).to_owned();
    None
}

fn is_empty(reply: &Reply) -> bool {
    reply.tool_calls.is_empty() && reply.content.trim().is_empty()
}

/// Whether another attempt may help after this refusal.
fn is_worth_it(retry: &Retry, error: &ModelError) -> bool {
    match &retry.on {
        RetryOn::Transient => error.is_transient(),
        RetryOn::Retryable => error.is_retryable(),
        RetryOn::Any => true,
        RetryOn::Statuses(_) | RetryOn::Recoverable(_) => match error {
            ModelError::Status { status, message } => retry.on.answer(*status, message),
            other => other.is_retryable(),
        },
    }
}

/// Why a part of a prompt cannot be told.
#[derive(Debug, Error)]
enum PartError {
    #[error("{0}")]
    Missing(NoValue),
    #[error("it takes a list of messages, not {0}")]
    NotAList(&'static str),
    #[error("{0}")]
    Unreadable(String),
}

/// What the model is told.
pub(super) struct Prompt {
    pub(super) messages: Vec<Message>,
    /// The places of messages that come from lists, which a window may leave out
    pub(super) listed: Vec<Range<usize>>,
    /// Those that were there before the loop began
    pub(super) before: Vec<Range<usize>>,
}

impl Prompt {
    /// The parts of a prompt, with a summary in the place of the oldest messages of what was there before the loop began.
    fn of(action: &ConverseAction, summary: Option<&Summary>, state: &State) -> Result<Self, Interruption> {
        let mut prompt =
            Prompt { messages: Vec::with_capacity(action.prompt.len()), listed: Vec::new(), before: Vec::new() };
        let own_part = action.steps.as_ref().and(action.prompt.len().checked_sub(1));
        let mut left_out = 0;
        // What a window leaves out need not be read, unless it is told in other words.
        let window = action.window.as_ref().filter(|_| action.condense.is_empty());
        let most = window.and_then(window::most_that_fit);
        let mut problems = Vec::new();
        for (number, PromptPart { name, said }) in action.prompt.iter().enumerate() {
            let summary = summary.filter(|_| Some(number) != own_part);
            let is_before = action.steps.is_some() && Some(number) != own_part;
            // All of them are told at once: whoever mends one would meet the next in the next run.
            if let Err(problem) = prompt.add(said, summary, is_before, &mut left_out, most, state) {
                problems.push(format!("{name}: {problem}"));
            }
        }
        match problems.is_empty() {
            true => Ok(prompt),
            false => Err(Interruption::Failed(problems.join("; "))),
        }
    }

    /// Adds a part. `left_out` is how many messages the summary stands for already, and no more than `most` messages of a list can
    /// come to be told, beside those that belong to the first of them.
    fn add(
        &mut self,
        said: &Said,
        summary: Option<&Summary>,
        is_before: bool,
        left_out: &mut usize,
        most: Option<usize>,
        state: &State,
    ) -> Result<(), PartError> {
        let list = match said {
            Said::Text(speaker, text) => {
                let text = text.evaluate_text(state).map_err(PartError::Missing)?;
                self.messages.push(match speaker {
                    Speaker::System => Message::system(text),
                    Speaker::Ai => Message::assistant(text),
                    Speaker::Human | Speaker::Tool => Message::user(text),
                });
                return Ok(());
            }
            Said::Messages(list) => list.evaluate(state).map_err(PartError::Missing)?,
        };
        let Value::List(list) = list else {
            return Err(PartError::NotAList(list.a_kind()));
        };
        if let (0, Some(summary)) = (*left_out, summary) {
            self.messages.push(of_state(&summary.message()));
        }
        let telling = Telling::of(&list, summary.map_or(0, |summary| summary.messages - *left_out), most);
        *left_out += telling.left_out;
        let from = self.messages.len();
        for value in telling.places.iter().filter_map(|place| list.get(*place)) {
            self.messages.push(of_state(&conversation::to_message(value).map_err(PartError::Unreadable)?));
        }
        let range = from..self.messages.len();
        if is_before {
            self.before.push(range.clone());
        }
        self.listed.push(range);
        Ok(())
    }
}

/// A message of the state, for a model.
fn of_state(message: &Object) -> Message {
    let text = |key: &str| message.get(key).and_then(Value::as_text).unwrap_or_default().to_owned();
    let role = match message.get("type").and_then(Value::as_text).and_then(Speaker::of_word) {
        Some(Speaker::System) => Role::System,
        Some(Speaker::Ai) => Role::Assistant,
        Some(Speaker::Tool) => Role::Tool,
        Some(Speaker::Human) | None => Role::User,
    };
    let calls = conversation::tool_calls(&Value::Object(message.clone()));
    let provider_state = message.get("provider_state").map(serde_json::Value::from);
    Message {
        role,
        content: text("content"),
        tool_calls: calls.iter().filter_map(Value::as_object).map(as_written).collect(),
        tool_call_id: (role == Role::Tool).then(|| text("tool_call_id")),
        provider_state: provider_state.and_then(|state| serde_json::from_value::<ProviderState>(state).ok()),
    }
}

/// A model's reply as a message of the state.
fn of_reply(reply: &Reply, kept: KeptArguments) -> Object {
    let mut message = conversation::message(Speaker::Ai, reply.content.as_str());
    message.insert("role", Speaker::Ai.word().into());
    let calls: List = reply.tool_calls.iter().map(|call| Value::Object(of_call(call, kept))).collect();
    message.insert("tool_calls", Value::List(calls));
    if let Some(state) = reply.provider_state.as_ref().and_then(|state| serde_json::to_value(state).ok()) {
        message.insert("provider_state", Value::from(&state));
    }
    message
}

fn of_call(call: &ToolCallRequest, kept: KeptArguments) -> Object {
    let mut object = Object::default();
    object.insert("id", call.id.as_str().into());
    object.insert("name", call.name.as_str().into());
    let arguments = if call.arguments.trim().is_empty() { "{}" } else { &call.arguments };
    match parse_json(arguments) {
        Ok(values @ Value::Object(_)) => {
            object.insert("args", values);
            if kept == KeptArguments::Text {
                object.insert("arguments", call.arguments.as_str().into());
            }
        }
        _ => {
            object.insert("args", Object::default().into());
            object.insert("arguments", arguments.into());
        }
    }
    object
}
