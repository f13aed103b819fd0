//! Calling another agent. It runs as a part of the run: in the same journal, out of the same budget scope, in front of the same
//! people, with a state of its own.

use std::sync::Arc;

use hotcell_budget::Account;
use hotcell_graph::{Key, State, Value};

use super::part::{Driven, drive};
use crate::context::{Interruption, RunContext};
use crate::event::{Event, Observer};
use crate::hook::{self, HookPoint};
use crate::memory::Deed;
use crate::outcome::RunError;
use crate::ports::Callee;
use crate::run_input::{RunInput, check_variables, initial_state};
use crate::shape;
use crate::telling;
use crate::turn::NodeTurn;
use hotcell_journal::EntryPath;

/// How many agents deep a run may go.
const MAX_DEPTH: u32 = 3;

/// Calls an agent, as an effect: its final text.
pub(super) async fn consult(turn: &mut NodeTurn, agent: &Key, prompt: String) -> Result<Value, Interruption> {
    let (base, node) = (turn.base_of_next(), turn.node.clone());
    let deed = Deed::new("agent", agent, &[&prompt]);
    turn.effect(deed, |context| async move {
        let mut used = Account::default();
        let answer = call(&context, &mut used, node, base, agent, prompt).await.map(Value::text);
        (used, answer)
    })
    .await
}

/// The same where a failure is an answer, too: an object with `output` or `error`.
pub(super) async fn attempt(turn: &mut NodeTurn, agent: &Key, prompt: String) -> Result<Value, Interruption> {
    let (base, node) = (turn.base_of_next(), turn.node.clone());
    let deed = Deed::new("agent", agent, &[&prompt]);
    turn.effect(deed, |context| async move {
        let mut used = Account::default();
        let (name, text) = match call(&context, &mut used, node, base, agent, prompt).await {
            Ok(output) => ("output", output),
            Err(Interruption::Failed(reason)) => ("error", reason),
            Err(other) => return (used, Err(other)),
        };
        (used, Ok(Value::Object(hook::event([(name, Value::text(text))]))))
    })
    .await
}

/// One call of an agent, with the hooks around it: its final text.
async fn call(
    context: &Arc<RunContext>,
    used: &mut Account,
    node: Key,
    base: EntryPath,
    agent: &Key,
    mut prompt: String,
) -> Result<String, Interruption> {
    let told = |key: &str, text: &str| {
        hook::event([("node", Value::Text(node.clone())), ("agent", Value::Text(agent.clone())), (key, text.into())])
    };
    let changed = telling::tell(context, used, HookPoint::BeforeAgentCall, || told("prompt", &prompt)).await?;
    if let Some(text) = changed.as_ref().and_then(|event| event.get("prompt")?.as_text()) {
        text.clone_into(&mut prompt);
    }
    let (account, result) = run(context.clone(), node.clone(), base, agent.clone(), prompt).await;
    *used += account;
    let output = result.map_err(|stop| stop.with_reason(|reason| format!("agent `{agent}`: {reason}")))?;
    let changed = telling::tell(context, used, HookPoint::AfterAgentCall, || told("output", &output)).await?;
    let changed = changed.as_ref().and_then(|event| event.get("output")?.as_text());
    Ok(changed.map_or(output, str::to_owned))
}

/// Runs an agent's graph to its end, or to where it waits.
async fn run(
    caller: Arc<RunContext>,
    node: Key,
    base: EntryPath,
    agent: Key,
    prompt: String,
) -> (Account, Result<String, Interruption>) {
    let callee = match caller.ports.agents.find(&agent) {
        Ok(callee) => callee,
        Err(reason) => return (Account::default(), Err(Interruption::Failed(reason.to_string()))),
    };
    // It is given back when the call is done, or stopped.
    let _place = match &callee.at_once {
        Some(at_once) => {
            let _waits = caller.ports.clock.idle();
            at_once.clone().acquire_owned().await.ok()
        }
        None => None,
    };
    let (context, state) = match prepare(&caller, node, base, &agent, &callee, prompt) {
        Ok(prepared) => prepared,
        Err(stop) => return (Account::default(), Err(stop)),
    };
    let Driven { result, account, .. } = drive(context, state).await;
    (account, result)
}

/// What an agent's graph begins with.
fn prepare(
    caller: &RunContext,
    node: Key,
    base: EntryPath,
    agent: &Key,
    callee: &Callee,
    prompt: String,
) -> Result<(RunContext, State), Interruption> {
    let failed = |error: RunError| Interruption::Failed(error.to_string());
    if caller.depth >= MAX_DEPTH {
        return Err(Interruption::Failed(format!(
            "agents may call each other to a depth of {MAX_DEPTH}, and this is deeper"
        )));
    }
    if !caller.redaction.as_ref().is_some_and(|redaction| redaction.covers(&callee.graph))
        && !callee.graph.redacted.is_empty()
    {
        return Err(Interruption::Failed(format!(
            "agent `{agent}` redacts values of its state that this run does not redact; redact them in the graph that calls it, too"
        )));
    }
    let given = RunInput::of_variables(&caller.variables).for_agent(&callee.graph, prompt);
    let variables = check_variables(&callee.graph, &given).map_err(failed)?;
    shape::check_input(&callee.graph, &given).map_err(|misfit| failed(misfit.into()))?;
    let state = initial_state(&callee.graph, &given).map_err(|error| Interruption::Failed(error.to_string()))?;
    let spent = caller.remembered().used_at(&base);
    let observer = Arc::new(Within { node, agent: agent.clone(), observer: caller.ports.observer.clone() });
    let context = RunContext {
        graph: callee.graph.clone(),
        ports: callee.ports(&caller.ports, observer),
        variables,
        budget_scope: Arc::new(caller.budget_scope.part(callee.graph.limits.budget.clone(), spent)),
        asks_as: None,
        ..caller.part(base)
    };
    Ok((context, state))
}

/// Tells of what happens in an agent as something within the run that called it.
pub(super) struct Within {
    pub(super) node: Key,
    pub(super) agent: Key,
    pub(super) observer: Arc<dyn Observer>,
}

impl Observer for Within {
    fn event(&self, event: &Event<'_>) {
        self.observer.event(&Event::Within { node: &self.node, agent: &self.agent, within: event });
    }

    fn wants_text(&self) -> bool {
        self.observer.wants_text()
    }
}
