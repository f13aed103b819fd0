//! Looking something up in a knowledge base.

use hotcell_budget::Account;
use hotcell_graph::ir::LookUpAction;
use hotcell_graph::{State, Value};

use super::Performed;
use crate::hook;
use crate::ports::Lookup;
use crate::turn::{NodeTurn, Stop};

pub(super) async fn perform(turn: &mut NodeTurn, action: &LookUpAction, state: &State) -> Result<Performed, Stop> {
    let query = action.query.evaluate_text(state).map_err(|missing| Stop::Failed(format!("`query`: {missing}")))?;
    let mut used = Account::default();
    let answer = turn
        .effect("knowledge", |context| {
            let used = &mut used;
            async move {
                let lookup = Lookup { base: &action.base, query: &query, top_k: action.top_k };
                let found = context.ports.knowledge.look_up(lookup).await.map_err(Stop::Failed)?;
                *used += found.account;
                let sources = found.sources.iter().map(|source| Value::from(source.as_str())).collect();
                Ok(Value::Object(hook::event([
                    ("context", found.context.as_str().into()),
                    ("sources", Value::List(sources)),
                ])))
            }
        })
        .await;
    turn.account += used;
    Ok(Performed { answer: Some((action.bind, answer?)), ..Performed::default() })
}
