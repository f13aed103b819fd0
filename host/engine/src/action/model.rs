//! One request to a model, as an effect.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use hotcell_budget::{Account, Cost, Usage};
use hotcell_graph::ir::{Allowance, Forbidden, ModelApi, ModelServer, ModelSettings, RecordedReply, Retry, TlsPaths};
use hotcell_graph::{Key, Object, Value};
use hotcell_journal::EntryPath;
use hotcell_models::{
    Api, Finish, Message, ModelError, ModelName, OnText, Reasoning, Reply, Request, Server, TlsFiles, TokenUsage,
    ToolCallRequest, ToolChoice, ToolSpec,
};
use thiserror::Error;

use super::forbidden;
use crate::call_site::CallSite;
use crate::clock;
use crate::context::{Interruption, RunContext};
use crate::event::Event;
use crate::hook::{self, HookPoint};
use crate::memory::{Deed, REFUSED};
use crate::meter::{Uncounted, Used};
use crate::telling;
use crate::turn::NodeTurn;
use crate::what_if::Outward;

/// The pause after this many attempts, of which the last one was refused with this status, if with any.
pub(super) fn pause(retry: &Retry, attempts: u32, status: Option<u16>) -> Duration {
    retry.pause_after(attempts, status, fastrand::f64())
}

/// What a model is asked.
pub(super) struct Asked<'a> {
    pub(super) settings: &'a ModelSettings,
    pub(super) messages: Vec<Message>,
    pub(super) tools: &'a [ToolSpec],
    /// What has to be called
    pub(super) choice: Option<ToolChoice>,
    /// The full names of the tools, for those who watch
    pub(super) names: &'a [String],
    pub(super) output_schema: Option<serde_json::Value>,
    /// Texts that the reply may not have
    pub(super) forbidden: &'a Forbidden,
    /// Whether a reply ends what it is asked for
    pub(super) is_last: &'a (dyn Fn(&Reply) -> bool + Send + Sync),
    /// How many requests were made before it, where replies are ready
    pub(super) number: usize,
    /// How long it may take
    pub(super) time: Option<Duration>,
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
    let Asked { settings, messages, tools, choice, names, output_schema, forbidden, is_last, number, time } = asked;
    turn.emit(&Event::ModelRequested { node: &turn.node, model: settings.model.as_deref(), tools: names });
    let failed = |reason: String| Unanswered::Stopped(Interruption::Failed(reason));
    let site = turn.site();
    let model = match site.model().or(settings.model.as_deref()) {
        Some(name) => name.parse::<ModelName>().map_err(|error| failed(error.to_string()))?,
        None => turn.context.ports.default_model.clone().ok_or_else(|| failed(ModelError::NoModel.to_string()))?,
    };
    let more = settings.more.as_ref().map(|more| serde_json::Value::from(&Value::Object(more.clone())));
    let request = Request {
        tools: tools.to_vec(),
        tool_choice: choice,
        temperature: settings.temperature,
        top_p: settings.top_p,
        max_tokens: settings.max_tokens,
        reasoning: settings.reasoning.map(|reasoning| Reasoning { budget: reasoning.budget }),
        keeps_prompt: settings.keeps_prompt,
        more: more.and_then(|more| more.as_object().cloned()).unwrap_or_default(),
        output_schema,
        // Another model is asked where that one is.
        server: match site.model() {
            Some(_) => None,
            None => server(settings).map_err(|refused| failed(refused.to_string()))?,
        },
        api: match settings.api {
            Some(ModelApi::Responses) => Api::Responses,
            Some(ModelApi::Chat) | None => Api::Chat,
        },
        tls: settings.tls.as_deref().map(tls_files),
        ..Request::new(model, messages)
    };
    let ready = match &settings.server {
        Some(ModelServer::Recorded(recorded)) if site.model().is_none() => match recorded.reply(number) {
            Ok(reply) => Some(reply),
            Err(problem) => {
                turn.give_up();
                return Err(failed(problem));
            }
        },
        _ => None,
    };
    let limits = Limits { forbidden, is_last, time, site };
    let at = At { node: turn.node.clone(), place: turn.place.clone() };
    let (mut gave_up, mut failure_kind) = (false, None);
    let (gives_up, fails_as) = (&mut gave_up, &mut failure_kind);
    // Not the model: whoever goes on with a run may choose another one.
    let deed = Deed::new("model", "messages", &[&hook::messages(&request.messages).to_json()]);
    let request = Request { messages: turn.context.prompted(&turn.node, request.messages), ..request };
    let answer = turn
        .effect(deed, |context| async move {
            let mut used = Account::default();
            let answer = match complete(&context, &mut used, &at, request, ready, &limits).await {
                Ok(answer) => Ok(answer),
                Err(Stop::Limit(reason)) => {
                    *gives_up = true;
                    Err(Interruption::Failed(reason))
                }
                Err(Stop::UsedUp(allowance)) => {
                    *gives_up = true;
                    *fails_as = Some(allowance.failure_kind.to_owned());
                    Err(Interruption::Failed(allowance.problem.to_owned()))
                }
                Err(Stop::Other(stop)) => Err(stop),
            };
            (used, answer)
        })
        .await;
    if gave_up {
        turn.give_up();
        turn.failure_kind = failure_kind;
    }
    recall(&answer.map_err(Unanswered::Stopped)?)
}

/// Where a model is asked.
struct At {
    node: Key,
    place: EntryPath,
}

/// What a reply is held to.
struct Limits<'a> {
    /// Where the model is asked
    site: CallSite,
    forbidden: &'a Forbidden,
    is_last: &'a (dyn Fn(&Reply) -> bool + Send + Sync),
    time: Option<Duration>,
}

/// Why a request has no answer.
enum Stop {
    /// It came to a limit, or its answer is forbidden: asking again does not help
    Limit(String),
    /// What it would be counted on is used up
    UsedUp(Arc<Allowance>),
    /// Something else
    Other(Interruption),
}

impl From<Interruption> for Stop {
    fn from(stop: Interruption) -> Self {
        Stop::Other(stop)
    }
}

/// Asks the model, with the hooks around it: its reply, or why it refused, as a value for the journal.
async fn complete(
    context: &RunContext,
    used: &mut Account,
    at: &At,
    mut request: Request,
    ready: Option<&RecordedReply>,
    limits: &Limits<'_>,
) -> Result<Value, Stop> {
    let (name, At { node, place }) = (request.model.to_string(), at);
    let (model, place) = (name.as_str(), place.as_str());
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
    if let Some(allowance) = &context.allowance {
        let used = context.ports.meter.used(&allowance.name).map_err(uncounted)?;
        if used.exhausts(allowance) {
            return Err(Stop::UsedUp(allowance.clone()));
        }
    }
    context.budget_scope.may_ask_model().map_err(|overdrawn| Interruption::Failed(overdrawn.to_string()))?;
    let price = context.ports.prices.price(&request.model);
    // What it will cost at least is known before.
    let at_least = price.map_or(0.0, |price| price.of(&TokenUsage { input: fewest_tokens(&request), output: 0 }));
    let limit = |exceeded: hotcell_budget::CostExceeded| Stop::Limit(exceeded.to_string());
    context.budget_scope.within_cost(Cost::from_usd(at_least)).map_err(limit)?;
    let observer = Arc::clone(&context.ports.observer);
    let mut on_text = |text: &str| observer.event(&Event::ModelText { node, text });
    // What has been shown cannot be taken back.
    let is_streamed = observer.wants_text() && limits.forbidden.patterns.is_empty();
    let on_text: Option<OnText<'_>> = if is_streamed { Some(&mut on_text) } else { None };
    let begun = context.ports.clock.elapsed();
    let elapsed = || context.ports.clock.elapsed().saturating_sub(begun);
    let mut reply = match ready {
        Some(ready) => {
            context.ports.clock.pause(ready.latency).await;
            of_recording(ready)
        }
        None if !limits.site.may(Outward::Models) => {
            limits.site.withhold(format_args!("a request to the model `{name}`"));
            return Err(Stop::Other(Interruption::Waiting));
        }
        None => {
            let work = context.ports.model.complete(request, on_text);
            let answer = match limits.time {
                Some(limit) => clock::timeout(&*context.ports.clock, limit, pin!(work))
                    .await
                    .unwrap_or(Err(ModelError::TimedOut { after: limit })),
                None => work.await,
            };
            match answer {
                Ok(reply) => reply,
                Err(error) => {
                    let (reason, kind, elapsed) = (error.to_string(), error.kind(), elapsed());
                    observer.event(&Event::ModelFailed { node, model, place, error: &reason, kind: &kind, elapsed });
                    return Ok(refusal(&error)?);
                }
            }
        }
    };
    let (input_tokens, output_tokens) = (reply.usage.input, reply.usage.output);
    let known = ready.and_then(|ready| ready.cost_usd);
    let cost = known.or_else(|| price.map(|price| price.of(&reply.usage))).map(Cost::from_usd).unwrap_or_default();
    let usage = Usage { model_requests: 1, input_tokens, output_tokens, cost, ..Usage::default() };
    context.budget_scope.spend(&usage);
    let counted = Used::of(&usage);
    used.add(name.as_str(), usage);
    if let Some(allowance) = &context.allowance {
        context.ports.meter.add(&allowance.name, counted).map_err(uncounted)?;
    }
    let (prompt_tokens, completion_tokens) = (input_tokens, output_tokens);
    let elapsed = elapsed();
    observer.event(&Event::ModelAnswered { node, model, place, prompt_tokens, completion_tokens, cost, elapsed });
    check_forbidden(&reply, limits)?;
    context.budget_scope.within_strict_cost().map_err(limit)?;
    let told = || {
        let calls = serde_json::to_value(&reply.tool_calls).unwrap_or_default();
        let answer = hook::event([("text", reply.content.as_str().into()), ("tool_calls", Value::from(&calls))]);
        hook::event([("node", Value::Text(node.clone())), ("reply", Value::Object(answer))])
    };
    let changed = telling::tell(context, used, HookPoint::AfterModelCall, told).await?;
    let text = changed.as_ref().and_then(|event| event.get("reply")?.as_object()?.get("text")?.as_text());
    if let Some(text) = text {
        text.clone_into(&mut reply.content);
        check_forbidden(&reply, limits)?;
    }
    Ok(remember(&reply)?)
}

/// What cannot be counted is not asked, and not used.
fn uncounted(error: Uncounted) -> Interruption {
    Interruption::Failed(error.to_string())
}

/// Refuses a reply with a text that it may not have.
fn check_forbidden(reply: &Reply, limits: &Limits<'_>) -> Result<(), Stop> {
    if limits.forbidden.patterns.is_empty() || (limits.forbidden.only_last && !(limits.is_last)(reply)) {
        return Ok(());
    }
    forbidden::problem(limits.forbidden, reply).map_or(Ok(()), |problem| Err(Stop::Limit(problem)))
}

/// The file says where its model is, and hotcell cannot ask it there; the text says why.
#[derive(Debug, Error)]
#[error("{0}")]
struct ServerRefused(String);

/// Where the model is, if the settings say so.
fn server(settings: &ModelSettings) -> Result<Option<Server>, ServerRefused> {
    match &settings.server {
        None => Ok(None),
        Some(ModelServer::Provider(name)) => Ok(Some(Server::Provider((*name).to_owned()))),
        Some(ModelServer::Address(url)) => Ok(Some(Server::Address(url.to_string()))),
        Some(ModelServer::ProviderAt(provider, address)) => Ok(Some(Server::ProviderAt {
            provider: (*provider).to_owned(),
            address: address.to_string(),
            is_private: false,
        })),
        Some(ModelServer::Refused(reason)) => Err(ServerRefused(reason.clone())),
        // Nobody is asked.
        Some(ModelServer::Recorded(_)) => Ok(None),
    }
}

fn tls_files(paths: &TlsPaths) -> TlsFiles {
    let TlsPaths { authorities, certificate, key } = paths.clone();
    TlsFiles { ca_file: authorities, client_certificate: certificate, client_key: key }
}

/// The fewest tokens that a request can have: nobody packs more than this into one.
fn fewest_tokens(request: &Request) -> u64 {
    const MOST_BYTES: u64 = 16;
    request.messages.iter().map(|message| message.content.len() as u64 / MOST_BYTES).sum()
}

/// A reply that was ready.
fn of_recording(ready: &RecordedReply) -> Reply {
    let text = |call: &Object, key: &str| call.get(key).map(|value| value.to_display().into_owned());
    let call = |(place, call): (usize, &Object)| ToolCallRequest {
        id: text(call, "id").unwrap_or_else(|| format!("call_{place}")),
        name: text(call, "name").unwrap_or_default(),
        arguments: text(call, "arguments").unwrap_or_else(|| "{}".to_owned()),
    };
    let tool_calls: Vec<ToolCallRequest> = ready.tool_calls.iter().enumerate().map(call).collect();
    Reply {
        content: ready.content.clone(),
        finish: if tool_calls.is_empty() { Finish::Stop } else { Finish::ToolCalls },
        tool_calls,
        usage: TokenUsage { input: ready.input_tokens, output: ready.output_tokens },
        provider_state: None,
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
