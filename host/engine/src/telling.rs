//! Telling the hooks of a run what happens, and taking what they make of it.

use hotcell_budget::Account;
use hotcell_graph::{Object, Value};
use hotcell_models::Message;

use crate::context::{Interruption, RunContext};
use crate::hook::{HookPoint, HookVerdict};
use crate::what_if::Notes;

/// Tells the hooks of a run; the object is what they made of the event, if they changed it.
pub(crate) async fn tell(
    context: &RunContext,
    account: &mut Account,
    point: HookPoint,
    event: impl FnOnce() -> Object,
) -> Result<Option<Object>, Interruption> {
    let hooks = &context.ports.hooks;
    // The steps of a node's own work are no nodes.
    let is_of_step = context.acting.is_some()
        && matches!(point, HookPoint::BeforeNode | HookPoint::AfterNode | HookPoint::NodeFailed);
    if is_of_step || !hooks.listens(point) {
        return Ok(None);
    }
    // A hook may act outside: what it is told follows from all that was done before.
    context.settled().await?;
    // Hooks are called where the graph is: in the run, or where a node called it.
    let (place, notes) = (context.base.clone().unwrap_or_default(), Notes::default());
    let site = context.site_at(&place, &notes);
    let (verdict, used) = hooks.tell(point, event(), &context.budget_scope, &site).await;
    *account += used;
    context.stop_if_withheld(&place, &notes).await?;
    match verdict {
        HookVerdict::Proceed => Ok(None),
        HookVerdict::Change(event) => Ok(Some(event)),
        HookVerdict::Refuse(reason) => Err(Interruption::Refused(format!("refused at `{}`: {reason}", point.name()))),
    }
}

/// Puts the contents that hooks changed into the messages.
pub(crate) fn change_messages(messages: &mut [Message], changed: &Object) -> Result<(), Interruption> {
    let wrong = || {
        Interruption::Failed(
            "a hook at `before-model-call` may change the contents of messages, not which there are".to_owned(),
        )
    };
    let list = changed.get("messages").and_then(Value::as_list).ok_or_else(wrong)?;
    if list.len() != messages.len() {
        return Err(wrong());
    }
    for (message, changed) in messages.iter_mut().zip(list.iter()) {
        let content = changed.as_object().and_then(|changed| changed.get("content")).and_then(Value::as_text);
        content.ok_or_else(wrong)?.clone_into(&mut message.content);
    }
    Ok(())
}
