//! Handing over to something that a plugin offers: a node type, a tool, a connector.

use hotcell_budget::Account;
use hotcell_graph::ir::{Next, Node, NodeIndex, PluginNodeAction, PluginNodeKind};
use hotcell_graph::value::parse_json;
use hotcell_graph::{Object, State, Value};
use hotcell_journal::{CALLBACK, Question};

use super::Performed;
use super::given::given;
use super::permission::{Permits, with_denied};
use super::spread::entries;
use super::tool::{self, ToolFailure, ToolRequest};
use crate::call_site::CallSite;
use crate::context::Interruption;
use crate::memory::Deed;
use crate::ports::{CallError, Callback, PluginNodeAnswer, PluginNodeCall, SharedState};
use crate::turn::NodeTurn;
use crate::what_if::Outward;

pub(super) async fn perform(
    turn: &mut NodeTurn,
    node: &Node,
    action: &PluginNodeAction,
    state: &State,
) -> Result<Performed, Interruption> {
    let text = |field: &'static str, expression: &hotcell_graph::ir::Expression| {
        let value =
            given(expression, state).map_err(|problem| Interruption::Failed(format!("`{field}`: {problem}")))?;
        Ok::<String, Interruption>(value.to_json())
    };
    let (with, inputs) = (text("with", &action.with)?, text("inputs", &action.inputs)?);
    let handed = Handed { action, with: &with, inputs: &inputs, state: SharedState::new(state.clone()) };
    let outcome = match action.kind {
        PluginNodeKind::Callback => Box::pin(later(turn, &handed)).await?,
        PluginNodeKind::Node | PluginNodeKind::Tool | PluginNodeKind::Connector => with_answers(turn, &handed).await?,
    };
    if let Some(failure) = ToolFailure::of(&outcome) {
        return Err(failure.stop(|reason| format!("`{}` failed: {reason}", action.plugin_node)));
    }
    let outcome = outcome.as_object().cloned().unwrap_or_default();
    let branch = outcome.get("branch").and_then(Value::as_text);
    let route = leave_by(node, action, branch)?;
    let outputs = outcome.get("value").cloned().unwrap_or_default();
    let writes = match &action.keys {
        Some(keys) => entries(&outputs, keys)
            .map_err(|problem| Interruption::Failed(format!("`{}` {problem}", action.plugin_node)))?,
        None => Vec::new(),
    };
    Ok(Performed { answer: Some((action.bind, outputs)), writes, route, ..Performed::default() })
}

/// What is handed over, however often.
struct Handed<'a> {
    action: &'a PluginNodeAction,
    with: &'a str,
    inputs: &'a str,
    state: SharedState,
}

fn entry(outcome: &Value, key: &str) -> Option<Value> {
    outcome.as_object().and_then(|object| object.get(key)).cloned()
}

/// Calls it until it has every answer that it asks a person for.
async fn with_answers(turn: &mut NodeTurn, handed: &Handed<'_>) -> Result<Value, Interruption> {
    let mut answers = Vec::new();
    let mut permits = Permits::of(turn);
    loop {
        let site = permits.site(turn);
        let outcome = once(turn, handed, &answers, None, site).await?;
        if permits.ask(turn, &outcome).await? {
            continue;
        }
        let Some(question) = entry(&outcome, "asks") else { return Ok(outcome) };
        let text = question.to_display().into_owned();
        let node = turn.node.to_string();
        answers.push(Box::pin(turn.ask(Question { node, text, ..Question::default() })).await?);
    }
}

/// Hands over to a connector and, where it only took the request, waits for what comes by the callback and has the connector
/// make an answer of it. The session is committed before the other system hears of it, so that an answer is never one that
/// no run knows.
async fn later(turn: &mut NodeTurn, handed: &Handed<'_>) -> Result<Value, Interruption> {
    let session = turn
        .effect(Deed::new(CALLBACK, &handed.action.plugin_node, &[]), |context| async move {
            let token: [u8; 16] = rand::random();
            let token: String = token.iter().map(|byte| format!("{byte:02x}")).collect();
            (Account::default(), Ok(Value::text(format!("{}.{token}", context.run))))
        })
        .await?;
    let session = session.to_display().into_owned();
    let site = turn.site();
    let outcome = once(turn, handed, &[], Some(Callback { session: &session, body: None }), site).await?;
    if entry(&outcome, "accepted").is_none() {
        return Ok(outcome);
    }
    let text = format!("the callback of `{}`", handed.action.plugin_node);
    let question = Question { node: turn.node.to_string(), text, ..Question::default() };
    let body = turn.await_callback(question).await?;
    // Whoever answers by hand may write a plain text.
    let body = parse_json(&body).unwrap_or_else(|_| Value::text(body)).to_json();
    let site = turn.site();
    once(turn, handed, &[], Some(Callback { session: &session, body: Some(&body) }), site).await
}

/// One call, as an effect: `value` and perhaps `branch`, `error`, the question it `asks`, or that it has `accepted`.
async fn once(
    turn: &mut NodeTurn,
    handed: &Handed<'_>,
    answers: &[String],
    callback: Option<Callback<'_>>,
    site: CallSite,
) -> Result<Value, Interruption> {
    let Handed { action, with, inputs, state } = handed;
    let state = state.clone();
    let node = turn.node.clone();
    let mut with_what = vec![*with, *inputs];
    with_what.extend(answers.iter().map(String::as_str));
    with_what.extend(callback.as_ref().and_then(|callback| callback.body));
    let is_unnoticed = action.kind == PluginNodeKind::Tool && tool::is_unnoticed(&turn.context, &action.plugin_node);
    let deed = Deed { is_unnoticed, ..Deed::new("plugin", &action.plugin_node, &with_what) };
    turn.effect(deed, |context| async move {
        let mut used = Account::default();
        let denials = site.denials();
        if action.kind == PluginNodeKind::Tool {
            let (tool, arguments) = (&*action.plugin_node, inputs);
            let wanted = ToolRequest { tool, spoken: tool, arguments, answers, state, site };
            let called = tool::call(&context, &mut used, &node, wanted).await;
            return (used, Ok(with_denied(called.into_value(), denials.as_deref())));
        }
        let (plugin_node, kind, budget_scope) = (&*action.plugin_node, action.kind, context.budget_scope.clone());
        let hands_over = matches!(kind, PluginNodeKind::Connector | PluginNodeKind::Callback);
        if hands_over && !site.may(Outward::Connectors) {
            site.withhold(format_args!("handing over to `{plugin_node}`"));
            return (used, Err(Interruption::Waiting));
        }
        let hooks = context.ports.hooks.clone();
        let call =
            PluginNodeCall { plugin_node, kind, with, inputs, answers, callback, state, budget_scope, hooks, site };
        let report = context.ports.plugin_nodes.take(call).await;
        used += report.account;
        let mut outcome = Object::default();
        match report.result {
            Ok(PluginNodeAnswer::RunInput { outputs, branch }) => {
                match parse_json(&outputs) {
                    Ok(value) => outcome.insert("value", value),
                    Err(error) => {
                        let reason = format!("`{plugin_node}` did not answer JSON: {error}");
                        return (used, Err(Interruption::Failed(reason)));
                    }
                }
                if let Some(branch) = branch {
                    outcome.insert("branch", branch.as_str().into());
                }
            }
            Ok(PluginNodeAnswer::Accepted) => outcome.insert("accepted", Value::Bool(true)),
            Err(CallError::Failed(reason)) => outcome.insert("error", reason.as_str().into()),
            Err(CallError::Asks(question)) => outcome.insert("asks", question.as_str().into()),
        }
        (used, Ok(with_denied(Value::Object(outcome), denials.as_deref())))
    })
    .await
}

/// Where a branch leads. A branch that the plugin did not declare leads nowhere.
fn leave_by(node: &Node, action: &PluginNodeAction, branch: Option<&str>) -> Result<Option<NodeIndex>, Interruption> {
    let plugin_node = &action.plugin_node;
    match (branch, action.branches.is_empty()) {
        (None, true) => return Ok(None),
        (Some(branch), _) if !action.branches.iter().any(|known| known == branch) => {
            return Err(Interruption::Failed(format!(
                "`{plugin_node}` left by the branch `{branch}`, which it does not declare"
            )));
        }
        (None, false) => {
            return Err(Interruption::Failed(format!("`{plugin_node}` declares branches and left by none")));
        }
        _ => {}
    }
    let (Some(branch), Next::ByAnswer { routes, otherwise }) = (branch, &node.next) else { return Ok(None) };
    let route = routes.iter().find(|(name, _)| name == branch);
    Ok(Some(route.map_or(*otherwise, |(_, target)| *target)))
}
