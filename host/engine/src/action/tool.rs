//! One call of a tool, with the hooks around it.

use std::borrow::Cow;
use std::fmt;
use std::pin::pin;
use std::time::Duration;

use hotcell_budget::{Account, Usage};
use hotcell_graph::value::parse_json;
use hotcell_graph::{Key, Object, Value};

use super::permission::{Permits, with_denied};
use crate::call_site::CallSite;
use crate::clock;
use crate::context::{Interruption, RunContext};
use crate::event::Event;
use crate::hook::{self, HookPoint};
use crate::memory::{Deed, REFUSED};
use crate::ports::{CallError, SharedState, ToolCall};
use crate::telling;
use crate::turn::NodeTurn;
use hotcell_journal::Question;

/// Under what the failure of a call is committed.
const ERROR: &str = "error";

/// What a call came to, in the form in which it is committed: `value`, `error`, why it was `refused`, or the question it
/// `asks`.
pub(super) struct Called {
    pub(super) key: &'static str,
    pub(super) value: Value,
}

/// Why a call gave nothing.
pub(super) struct ToolFailure {
    /// In words
    pub(super) reason: String,
    /// Whether a hook refused it
    pub(super) is_refused: bool,
}

impl ToolFailure {
    /// The failure of a call in the form in which it is committed.
    pub(super) fn of(outcome: &Value) -> Option<Self> {
        let entry = |key: &str| Some(outcome.as_object()?.get(key)?.to_display().into_owned());
        let refused = entry(REFUSED).map(|reason| ToolFailure { reason, is_refused: true });
        refused.or_else(|| entry(ERROR).map(ToolFailure::from))
    }

    /// What it means for a node that fails with it, in these words.
    pub(super) fn stop(self, words: impl FnOnce(&str) -> String) -> Interruption {
        let reason = words(&self.reason);
        if self.is_refused { Interruption::Refused(reason) } else { Interruption::Failed(reason) }
    }
}

impl fmt::Display for ToolFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

impl From<String> for ToolFailure {
    fn from(reason: String) -> Self {
        ToolFailure { reason, is_refused: false }
    }
}

impl Called {
    /// A call that failed.
    pub(super) fn error(reason: impl Into<String>) -> Self {
        Called { key: ERROR, value: Value::text(reason.into()) }
    }

    /// Why it gave nothing, where it gave nothing.
    pub(super) fn failure(&self) -> Option<Cow<'_, str>> {
        matches!(self.key, ERROR | REFUSED).then(|| self.value.to_display())
    }

    pub(super) fn into_value(self) -> Value {
        Value::Object([(Key::from(self.key), self.value)].into_iter().collect::<Object>())
    }
}

/// A call of a tool.
pub(super) struct ToolRequest<'a> {
    /// The tool's full name
    pub(super) tool: &'a str,
    /// What whoever calls it calls it
    pub(super) spoken: &'a str,
    /// A JSON object
    pub(super) arguments: &'a str,
    /// What a person answered to the tool's questions so far, in order
    pub(super) answers: &'a [String],
    /// The state it may read
    pub(super) state: SharedState,
    /// Where it is called
    pub(super) site: CallSite,
}

/// A call of a tool to its end, as effects of a turn: where the tool asks a person, it is called again with the answer, and where it was
/// denied a capability that is then granted, with that.
/// `Err` inside is what the tool, or the way to it, says, or that one call took longer than the limit.
pub(super) async fn call_to_the_end(
    turn: &mut NodeTurn,
    tool: &str,
    spoken: &str,
    arguments: &str,
    state: &SharedState,
    limit: Option<Duration>,
) -> Result<Result<Value, ToolFailure>, Interruption> {
    let arguments = if arguments.trim().is_empty() { "{}" } else { arguments };
    let mut answers = Vec::new();
    let mut permits = Permits::of(turn);
    loop {
        let (node, site) = (turn.node.clone(), permits.site(turn));
        let with: Vec<&str> = std::iter::once(arguments).chain(answers.iter().map(String::as_str)).collect();
        let deed = Deed { is_unnoticed: is_unnoticed(&turn.context, tool), ..Deed::new("tool", tool, &with) };
        let outcome = turn
            .effect(deed, |context| {
                let (answers, state) = (&answers, state.clone());
                async move {
                    let mut used = Account::default();
                    let denials = site.denials();
                    let wanted = ToolRequest { tool, spoken, arguments, answers, state, site };
                    let called = match limit {
                        None => call(&context, &mut used, &node, wanted).await,
                        Some(limit) => match call_within(&context, &mut used, &node, wanted, limit).await {
                            Some(called) => called,
                            // What it did until then is not known, so it is not made again.
                            None => {
                                let late = Called::error(format!("it took longer than {} s", limit.as_secs_f64()));
                                return (used, Ok(late.into_value()));
                            }
                        },
                    };
                    (used, Ok(with_denied(called.into_value(), denials.as_deref())))
                }
            })
            .await?;
        if permits.ask(turn, &outcome).await? {
            continue;
        }
        if let Some(failure) = ToolFailure::of(&outcome) {
            return Ok(Err(failure));
        }
        let entry = |key: &str| outcome.as_object().and_then(|object| object.get(key)).cloned();
        match entry("asks") {
            Some(question) => {
                let (node, text) = (turn.node.to_string(), question.to_display().into_owned());
                answers.push(Box::pin(turn.ask(Question { node, text, ..Question::default() })).await?);
            }
            None => return Ok(Ok(entry("value").unwrap_or_default())),
        }
    }
}

/// Whether nobody notices a call of a tool: the tool touches nothing, is granted nothing on the way, and no hook is told.
pub(super) fn is_unnoticed(context: &RunContext, tool: &str) -> bool {
    let (tools, hooks) = (&context.ports.tools, &context.ports.hooks);
    tools.is_closed(tool)
        && !tools.asks_denials()
        && !hooks.listens(HookPoint::BeforeToolCall)
        && !hooks.listens(HookPoint::AfterToolCall)
}

/// Calls a tool that may take no longer than `limit`; none if it does.
pub(super) async fn call_within(
    context: &RunContext,
    account: &mut Account,
    node: &Key,
    wanted: ToolRequest<'_>,
    limit: Duration,
) -> Option<Called> {
    let call = pin!(call(context, account, node, wanted));
    clock::timeout(&*context.ports.clock, limit, call).await
}

/// Calls a tool for a node. What it used is added to the account; a hook that refuses is an error of the call.
pub(super) async fn call(context: &RunContext, account: &mut Account, node: &Key, wanted: ToolRequest<'_>) -> Called {
    let mut used = Account::default();
    let (tool, arguments) = (wanted.spoken, wanted.arguments);
    let (site, begun) = (wanted.site.clone(), context.ports.clock.elapsed());
    let mut telling = Telling { context, node, tool, arguments, site, begun, is_over: false };
    let called = match around(context, &mut used, node, wanted).await {
        Ok(called) => called,
        Err(Interruption::Refused(reason)) => Called { key: REFUSED, value: Value::text(reason) },
        Err(stop) => Called::error(stop.reason().unwrap_or("a hook cannot wait")),
    };
    telling.is_over = true;
    telling.tell(called.failure().as_deref(), &used.total());
    *account += used;
    called
}

/// Tells of a call when it is over, also of one that is stopped before it ends.
struct Telling<'a> {
    context: &'a RunContext,
    node: &'a Key,
    tool: &'a str,
    arguments: &'a str,
    site: CallSite,
    begun: Duration,
    is_over: bool,
}

impl Telling<'_> {
    fn tell(&self, error: Option<&str>, usage: &Usage) {
        let Telling { context, node, tool, arguments, site, begun, .. } = self;
        let (place, elapsed) = (site.place(), context.ports.clock.elapsed().saturating_sub(*begun));
        context.ports.observer.event(&Event::ToolCalled { node, tool, place, arguments, error, usage, elapsed });
    }
}

impl Drop for Telling<'_> {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        self.tell(Some("it was stopped before it ended"), &Usage { calls: 1, ..Usage::default() });
    }
}

async fn around(
    context: &RunContext,
    account: &mut Account,
    node: &Key,
    wanted: ToolRequest<'_>,
) -> Result<Called, Interruption> {
    let ToolRequest { tool, arguments, answers, state, site, .. } = wanted;
    let parsed = || parse_json(arguments).unwrap_or_else(|_| Value::text(arguments));
    let event = || hook::event([("node", Value::Text(node.clone())), ("tool", tool.into()), ("arguments", parsed())]);
    let changed = telling::tell(context, account, HookPoint::BeforeToolCall, event).await?;
    let changed = changed.and_then(|event| event.get("arguments").map(Value::to_json));
    let arguments = changed.as_deref().unwrap_or(arguments);
    let (variables, budget_scope) = (context.variables.clone(), context.budget_scope.clone());
    let hooks = context.ports.hooks.clone();
    let call = ToolCall { name: tool, arguments, answers, state, variables, budget_scope, hooks, site };
    let report = context.ports.tools.call(call).await;
    *account += report.account;
    context.notice(node, &report.notices);
    let text = match report.result {
        Ok(text) => text,
        Err(CallError::Failed(reason)) => return Ok(Called::error(reason)),
        Err(CallError::Asks(question)) => return Ok(Called { key: "asks", value: Value::text(question) }),
    };
    // A tool that does not answer JSON is taken at its word.
    let value = parse_json(&text).unwrap_or_else(|_| Value::text(text));
    let event = || hook::event([("node", Value::Text(node.clone())), ("tool", tool.into()), ("result", value.clone())]);
    let changed = telling::tell(context, account, HookPoint::AfterToolCall, event).await?;
    let value = changed.and_then(|event| event.get("result").cloned()).unwrap_or(value);
    Ok(Called { key: "value", value })
}
