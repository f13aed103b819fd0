//! Asking a person.

use hotcell_budget::Account;
use hotcell_graph::ir::{AskAction, Expiry, Expression, Notice};
use hotcell_graph::{State, Value};

use super::Performed;
use super::defined;
use super::tool::{self, ToolFailure, ToolRequest};
use crate::context::Interruption;
use crate::turn::{Answerer, NodeTurn};
use hotcell_journal::Question;

/// The value of a part of a question.
fn evaluated(value: &Expression, state: &State, what: &str) -> Result<Value, Interruption> {
    value.evaluate(state).map_err(|missing| Interruption::Failed(format!("{what}: {missing}")))
}

/// A tool that answers. What it gives is the answer as JSON text; what it fails with, the node fails with.
fn by_tool(turn: &NodeTurn, tool: &str, arguments: &Value, state: &State) -> Answerer<'static> {
    let (context, node, site) = (turn.context.clone(), turn.node.clone(), turn.site());
    let (tool, arguments, state) = (tool.to_owned(), arguments.to_json(), context.seen_by_tools(state));
    Box::pin(async move {
        let mut used = Account::default();
        let wanted = ToolRequest { tool: &tool, spoken: &tool, arguments: &arguments, answers: &[], state, site };
        let called = tool::call(&context, &mut used, &node, wanted).await;
        let value = called.into_value();
        let answer = match ToolFailure::of(&value) {
            Some(failure) => Err(failure.stop(|reason| format!("tool `{tool}`: {reason}"))),
            None => match value.as_object().and_then(|object| object.get("value")) {
                Some(answer) => Ok(answer.to_json()),
                None => Err(Interruption::Failed(format!("tool `{tool}`: it asks, and answers for somebody"))),
            },
        };
        (used, Some(answer))
    })
}

/// Tells somebody of a question, once for all processes that work on it. What fails of that is in the event of the call.
async fn tell(turn: &mut NodeTurn, notice: &Notice, state: &State) -> Result<(), Interruption> {
    let mut seen = state.clone();
    for (name, value) in &notice.names {
        seen.set(name.clone(), value.clone());
    }
    seen.set(notice.run.clone(), Value::text(turn.context.run.as_str()));
    let inputs = evaluated(&notice.inputs, &seen, "what tells of the question")?;
    let inputs = inputs.as_object().cloned().unwrap_or_default();
    defined::call(turn, &notice.tool, inputs, state).await.map(drop)
}

pub(super) async fn perform(turn: &mut NodeTurn, action: &AskAction, state: &State) -> Result<Performed, Interruption> {
    let text = action
        .question
        .evaluate_text(state)
        .map_err(|missing| Interruption::Failed(format!("the question: {missing}")))?;
    let default = match &action.default {
        Some(default) => Some(
            default.evaluate_text(state).map_err(|missing| Interruption::Failed(format!("`default`: {missing}")))?,
        ),
        None => None,
    };
    let question = Question {
        node: turn.node.to_string(),
        text,
        options: action.options.clone(),
        default: default.clone().filter(|default| !default.is_empty()),
        seat: action.asked.seat.clone(),
        operator_ids: action.asked.operator_ids.clone(),
        context: match &action.asked.context {
            Some(context) => Some(evaluated(context, state, "what the question is about")?),
            None => None,
        },
        ..Question::default()
    };
    let by = match &action.asked.tool {
        Some((tool, arguments)) => Some(by_tool(turn, tool, &evaluated(arguments, state, tool)?, state)),
        None => None,
    };
    if let Some(notice) = &action.asked.notice {
        tell(turn, notice, state).await?;
    }
    let wait = action.deadline.as_ref().map(|deadline| deadline.after);
    let Some(mut answer) = turn.ask_until(question.clone(), wait, by).await? else {
        return match action.deadline.as_deref().map(|deadline| &deadline.then) {
            Some(Expiry::Answer(value)) => {
                let answer = evaluated(value, state, "what counts as the answer")?;
                Ok(Performed { answer: Some((action.bind, answer)), ..Performed::default() })
            }
            _ => Ok(Performed { ends_branch: true, ..Performed::default() }),
        };
    };
    if action.only_options {
        loop {
            let given = answer.trim();
            if let Some(option) = action.options.iter().find(|option| option.eq_ignore_ascii_case(given)) {
                answer.clone_from(option);
                break;
            }
            // Whoever answers is told what is taken, as often as it takes.
            let offered: Vec<String> = action.options.iter().map(|option| format!("`{option}`")).collect();
            let text = format!("{} (answer {})", question.text, offered.join(" or "));
            answer = turn.ask(Question { text, ..question.clone() }).await?;
        }
    }
    if action.trim {
        answer = answer.trim().to_owned();
    }
    match default {
        Some(default) if answer.is_empty() => answer = default,
        _ => {
            if let Some(check) = &action.check
                && !check.holds(&answer)
            {
                let length = answer.chars().count();
                let noun = if length == 1 { "character" } else { "characters" };
                return Err(Interruption::Failed(format!(
                    "the answer has {length} {noun} and fails the validation `{}`",
                    check.source
                )));
            }
        }
    }
    Ok(Performed { answer: Some((action.bind, Value::text(answer))), ..Performed::default() })
}
