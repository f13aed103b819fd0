//! Looking something up in a knowledge base.

use hotcell_budget::Account;
use hotcell_graph::ir::LookUpAction;
use hotcell_graph::{State, Value};

use super::Performed;
use crate::context::Interruption;
use crate::hook;
use crate::memory::Deed;
use crate::ports::Lookup;
use crate::turn::NodeTurn;
use crate::what_if::Outward;

pub(super) async fn perform(
    turn: &mut NodeTurn,
    action: &LookUpAction,
    state: &State,
) -> Result<Performed, Interruption> {
    let query =
        action.query.evaluate_text(state).map_err(|missing| Interruption::Failed(format!("`query`: {missing}")))?;
    let deed = Deed::new("knowledge", &action.base, &[&query]);
    let site = turn.site();
    let answer = turn
        .effect(deed, |context| async move {
            if !site.may(Outward::Models) && context.ports.knowledge.asks_outside(&action.base) {
                site.withhold(format_args!("a look-up in `{}`, whose embedding model is elsewhere", action.base));
                return (Account::default(), Err(Interruption::Waiting));
            }
            let lookup = Lookup { base: &action.base, query: &query, top_k: action.top_k };
            let found = match context.ports.knowledge.look_up(lookup).await {
                Ok(found) => found,
                Err(error) => return (Account::default(), Err(Interruption::Failed(error.to_string()))),
            };
            let sources = found.sources.iter().map(|source| Value::from(source.as_str())).collect();
            let answer = hook::event([("context", found.context.as_str().into()), ("sources", Value::List(sources))]);
            (found.account, Ok(Value::Object(answer)))
        })
        .await?;
    Ok(Performed { answer: Some((action.bind, answer)), ..Performed::default() })
}
