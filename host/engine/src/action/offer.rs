//! Handing over to something that a plugin offers: a node type, a tool, a connector.

use hotcell_budget::Account;
use hotcell_graph::ir::{Next, Node, NodeIndex, OfferAction, OfferKind};
use hotcell_graph::value::parse_json;
use hotcell_graph::{Object, State, Value};

use super::tool::{self, Wanted};
use super::{Performed, entries};
use crate::journal::Question;
use crate::ports::{CallError, OfferCall, SharedState};
use crate::turn::{NodeTurn, Stop};

pub(super) async fn perform(
    turn: &mut NodeTurn,
    node: &Node,
    action: &OfferAction,
    state: &State,
) -> Result<Performed, Stop> {
    let text = |field: &'static str, expression: &hotcell_graph::ir::Expression| {
        let value = expression.evaluate(state).map_err(|missing| Stop::Failed(format!("`{field}`: {missing}")))?;
        Ok::<String, Stop>(value.to_json())
    };
    let (with, inputs) = (text("with", &action.with)?, text("inputs", &action.inputs)?);
    let mut answers = Vec::new();
    let outcome = loop {
        let outcome = once(turn, action, &with, &inputs, &answers, SharedState::new(state.clone())).await?;
        let entry = |key: &str| outcome.as_object().and_then(|object| object.get(key)).cloned();
        match (entry("asks"), entry("error")) {
            (Some(question), _) => {
                let text = question.to_display().into_owned();
                let node = turn.node.to_string();
                answers.push(turn.ask(Question { node, text, ..Question::default() }).await?);
            }
            (None, Some(error)) => {
                return Err(Stop::Failed(format!("`{}` failed: {}", action.offer, error.to_display())));
            }
            (None, None) => break outcome,
        }
    };
    let outcome = outcome.as_object().cloned().unwrap_or_default();
    let branch = outcome.get("branch").and_then(Value::as_text);
    let route = leave_by(node, action, branch)?;
    let outputs = outcome.get("value").cloned().unwrap_or_default();
    let writes = match &action.keys {
        Some(keys) => {
            entries(&outputs, keys).map_err(|problem| Stop::Failed(format!("`{}` {problem}", action.offer)))?
        }
        None => Vec::new(),
    };
    Ok(Performed { answer: Some((action.bind, outputs)), writes, route })
}

/// One call, as an effect: `value` and perhaps `branch`, `error`, or the question it `asks`.
async fn once(
    turn: &mut NodeTurn,
    action: &OfferAction,
    with: &str,
    inputs: &str,
    answers: &[String],
    state: SharedState,
) -> Result<Value, Stop> {
    let mut used = Account::default();
    let node = turn.node.clone();
    let outcome = turn
        .effect("plugin", |context| {
            let used = &mut used;
            async move {
                if action.kind == OfferKind::Tool {
                    let (tool, arguments) = (&*action.offer, inputs);
                    let wanted = Wanted { tool, spoken: tool, arguments, answers, state };
                    return Ok(tool::call(&context, used, &node, wanted).await.into_value());
                }
                let (offer, kind, purse) = (&*action.offer, action.kind, context.purse.clone());
                let call = OfferCall { offer, kind, with, inputs, answers, state, purse };
                let report = context.ports.offers.take(call).await;
                *used += report.account;
                let mut outcome = Object::default();
                match report.result {
                    Ok(given) => {
                        let value = parse_json(&given.outputs)
                            .map_err(|error| Stop::Failed(format!("`{offer}` did not answer JSON: {error}")))?;
                        outcome.insert("value", value);
                        if let Some(branch) = given.branch {
                            outcome.insert("branch", branch.as_str().into());
                        }
                    }
                    Err(CallError::Failed(reason)) => outcome.insert("error", reason.as_str().into()),
                    Err(CallError::Asks(question)) => outcome.insert("asks", question.as_str().into()),
                }
                Ok(Value::Object(outcome))
            }
        })
        .await;
    turn.account += used;
    outcome
}

/// Where a branch leads. A branch that the plugin did not declare leads nowhere.
fn leave_by(node: &Node, action: &OfferAction, branch: Option<&str>) -> Result<Option<NodeIndex>, Stop> {
    let offer = &action.offer;
    match (branch, action.branches.is_empty()) {
        (None, true) => return Ok(None),
        (Some(branch), _) if !action.branches.iter().any(|known| known == branch) => {
            return Err(Stop::Failed(format!("`{offer}` left by the branch `{branch}`, which it does not declare")));
        }
        (None, false) => return Err(Stop::Failed(format!("`{offer}` declares branches and left by none"))),
        _ => {}
    }
    let (Some(branch), Next::ByAnswer { routes, otherwise }) = (branch, &node.next) else { return Ok(None) };
    let route = routes.iter().find(|(name, _)| name == branch);
    Ok(Some(route.map_or(*otherwise, |(_, target)| *target)))
}
