//! Asking a person.

use hotcell_graph::ir::AskAction;
use hotcell_graph::{State, Value};

use super::Performed;
use crate::context::Interruption;
use crate::turn::NodeTurn;
use hotcell_journal::Question;

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
        ..Question::default()
    };
    let mut answer = turn.ask(question.clone()).await?;
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
                return Err(Interruption::Failed(format!(
                    "the answer has {length} characters and fails the validation `{}`",
                    check.source
                )));
            }
        }
    }
    Ok(Performed { answer: Some((action.bind, Value::text(answer))), ..Performed::default() })
}
