//! Calling another agent. It runs as a part of the run: in the same journal, out of the same budget scope, in front of the same
//! people, with a state of its own.

use std::sync::Arc;

use hotcell_budget::Account;
use hotcell_graph::{Key, Object, State, Value};

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

/// What an agent is called with.
struct Request {
    prompt: String,
    /// Values of its state, over those that it begins with
    inputs: Object,
}

/// Calls an agent, as an effect: its final text.
pub(super) async fn consult(
    turn: &mut NodeTurn,
    agent: &Key,
    prompt: String,
    inputs: Object,
) -> Result<Value, Interruption> {
    let (base, node) = (turn.base_of_next(), turn.node.clone());
    let given = (!inputs.is_empty()).then(|| Value::Object(inputs.clone()).to_json());
    let with: Vec<&str> = std::iter::once(prompt.as_str()).chain(given.as_deref()).collect();
    let deed = Deed::new("agent", agent, &with);
    turn.effect(deed, |context| async move {
        let mut used = Account::default();
        let request = Request { prompt, inputs };
        let answer = call(&context, &mut used, node, base, agent, request).await.map(Value::text);
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
        let request = Request { prompt, inputs: Object::default() };
        let (name, text) = match call(&context, &mut used, node, base, agent, request).await {
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
    mut request: Request,
) -> Result<String, Interruption> {
    let told = |key: &str, text: &str| {
        hook::event([("node", Value::Text(node.clone())), ("agent", Value::Text(agent.clone())), (key, text.into())])
    };
    let before = || {
        let mut event = told("prompt", &request.prompt);
        if !request.inputs.is_empty() {
            event.insert("inputs", Value::Object(request.inputs.clone()));
        }
        event
    };
    let changed = telling::tell(context, used, HookPoint::BeforeAgentCall, before).await?;
    if let Some(text) = changed.as_ref().and_then(|event| event.get("prompt")?.as_text()) {
        text.clone_into(&mut request.prompt);
    }
    let (account, result) = run(context.clone(), node.clone(), base, agent.clone(), request).await;
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
    request: Request,
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
    let (context, state) = match prepare(&caller, node, base, &agent, &callee, request) {
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
    request: Request,
) -> Result<(RunContext, State), Interruption> {
    let failed = |error: RunError| Interruption::Failed(error.to_string());
    let deepest = caller.written().limits.agent_depth;
    if caller.depth >= deepest {
        return Err(Interruption::Failed(format!(
            "agents may call each other to a depth of {deepest}, and this is deeper"
        )));
    }
    let Request { prompt, inputs } = request;
    if !caller.redaction.as_ref().is_some_and(|redaction| redaction.covers(&callee.graph))
        && !callee.graph.redacted.is_empty()
    {
        return Err(Interruption::Failed(format!(
            "agent `{agent}` redacts values of its state that this run does not redact; redact them in the graph that calls it, too"
        )));
    }
    let mut given = RunInput::of_variables(&caller.variables).for_agent(&callee.graph, prompt);
    for variable in &callee.graph.variables {
        if let Some(value) = inputs.get(&variable.name) {
            given.variables.insert(variable.name.clone(), value.clone());
        }
    }
    let variables = check_variables(&callee.graph, &given).map_err(failed)?;
    shape::check_input(&callee.graph, &given).map_err(|misfit| failed(misfit.into()))?;
    let mut state = initial_state(&callee.graph, &given).map_err(|error| Interruption::Failed(error.to_string()))?;
    // What it is asked comes by the prompt alone.
    let is_prompt = |key: &Key| [&callee.graph.input_key, &callee.graph.conversation].contains(&&Some(key.clone()));
    for (key, value) in inputs.iter().filter(|(key, _)| !is_prompt(key)) {
        state.set(key.clone(), value.clone());
    }
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
