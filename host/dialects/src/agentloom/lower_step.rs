//! What each kind of step becomes.

use std::sync::Arc;

use hotcell_graph::conversation::Speaker;
use hotcell_graph::ir::{
    Action, AgentLoop, Arguments, AtCap, CallAction, CallTarget, Callable, ComputeAction, Expression, Gives, Graph,
    ModelSettings, PromptPart, RequestCap, Retry, RetryOn, Tool, ToolAction, ToolKind, Update,
};
use hotcell_graph::{Key, Object, Value};

use super::lowering::{ANSWER, Context, retry, value};
use super::schema::{Body, Given, LlmCall, STEPS, Step, Subworkflow};
use super::{lower_agent, lower_gate, models};

/// What a step becomes.
pub(super) struct Lowered {
    pub(super) action: Action,
    pub(super) retry: Option<Retry>,
    pub(super) updates: Vec<Update>,
}

/// Lowers a step; none if what is wrong with it was reported. Of one that runs another workflow, `child` is the graph of that.
pub(super) fn lower(step: &Step, child: Option<Graph>, context: &Context<'_>) -> Option<Lowered> {
    let answer = || Expression::Key(ANSWER.into());
    let again = Some(retry(&step.attempts, RetryOn::Any));
    let (action, retry, given) = match &step.body {
        // Requests are repeated by themselves, and what else is wrong with a step of a model stays wrong.
        Body::LlmCall(call) => {
            let (action, given) = llm_call(step, call, context);
            (action, None, given)
        }
        Body::Tool { tool, arguments } => (tool_call(tool, arguments), again, answer()),
        // A condition gives the same another time.
        Body::Router { conditions, default } => {
            let cases = conditions.iter();
            let cases = cases.map(|case| (case.expression.clone(), Value::Text(case.target.value.clone()))).collect();
            let otherwise = default.as_ref().map(|target| Value::Text(target.value.clone()));
            let value = Expression::Choice { cases, otherwise };
            (Action::Compute(ComputeAction { value, failure_kind: None, bind: ANSWER }), None, answer())
        }
        Body::Subworkflow(subworkflow) => (call(subworkflow, child?), again, answer()),
        Body::Gate { deadline, notify } => {
            (lower_gate::gate(step, *deadline, notify.as_deref(), context), None, answer())
        }
        Body::Agent(agent) => {
            let (action, given) = lower_agent::step(step, agent, context);
            (action, again, given)
        }
        Body::Broken => return None,
    };
    let mut updates = vec![mirror(step, given.clone())];
    if let Some(target) = &step.output {
        updates.push(context.write(&target.place, given.clone()));
    }
    if let Body::Agent(agent) = &step.body
        && let Some(target) = &agent.conversation
        && step.output.as_ref().is_none_or(|output| output.place != target.place)
    {
        let conversation = Expression::Entry(Box::new(given), "conversation".into());
        updates.push(context.write(&target.place, conversation));
    }
    Some(Lowered { action, retry, updates })
}

/// What every step writes of itself.
fn mirror(step: &Step, output: Expression) -> Update {
    let status = Expression::Value("success".into());
    let entry = Expression::Object(vec![("output".into(), output), ("status".into(), status)]);
    Update { key: STEPS.into(), value: Expression::Object(vec![(step.id.value.clone(), entry)]) }
}

fn llm_call(step: &Step, call: &LlmCall, context: &Context<'_>) -> (Action, Expression) {
    let defaults = models::settings(context.config, call.model.as_ref(), &step.id);
    let more =
        call.tool_choice.clone().map(|choice| [(Key::from("tool_choice"), choice)].into_iter().collect::<Object>());
    let (temperature, max_tokens, reasoning) = (call.temperature, call.max_tokens, call.thinking);
    let settings = ModelSettings { temperature, max_tokens, reasoning, more, ..defaults };
    let mut prompt = Vec::new();
    if let Some(system) = &call.system_prompt {
        let text = Expression::Braces(system.template.clone());
        prompt.push(PromptPart::text("`system_prompt`", Speaker::System, text));
    }
    prompt.push(PromptPart::text("`prompt`", Speaker::Human, Expression::Braces(call.prompt.template.clone())));
    let described = call.tools.iter().map(|tool| Callable::Described {
        tool: tool.tool.clone(),
        name: tool.name.clone(),
        description: tool.description.clone(),
        parameters: tool.parameters.clone(),
        confirm: false,
    });
    let agent = AgentLoop {
        settings,
        prompt,
        retry: retry(&step.attempts, RetryOn::Statuses(step.attempts.statuses.clone())),
        tools: described.collect(),
        cap: Some(RequestCap { requests: call.max_iterations, then: AtCap::Return }),
        bind: ANSWER,
        ..AgentLoop::default()
    };
    if call.tools.is_empty() {
        let content = Expression::Entry(Box::new(Expression::Key(ANSWER.into())), "content".into());
        return (Action::Converse(Box::new(agent.request())), content);
    }
    let target = CallTarget::Loop(Arc::new(agent.into_graph()));
    let action = CallAction { target, contract: None, failure_prefix: None, bind: ANSWER };
    (Action::Call(Box::new(action)), Expression::Key(ANSWER.into()))
}

fn tool_call(tool: &str, arguments: &[(Key, Given)]) -> Action {
    let inputs = arguments.iter().map(|(key, given)| (key.clone(), value(given))).collect();
    let tool = Tool {
        name: tool.into(),
        spoken: tool.to_owned(),
        description: String::new(),
        inputs: Vec::new(),
        kind: ToolKind::Host(tool.to_owned()),
        confirm: false,
    };
    let inputs = Expression::Object(inputs);
    Action::Tool(Box::new(ToolAction { tool: Arc::new(tool), inputs, arguments: Arguments::Checked, bind: ANSWER }))
}

/// Runs the graph of another workflow.
fn call(child: &Subworkflow, mut graph: Graph) -> Action {
    // A child with a state of its own begins with it, and with what it is given in its place.
    let own = std::mem::take(&mut graph.initial_state);
    let own = own.into_iter().map(|(key, value)| (key, Expression::Value(value)));
    let given = child.input.iter().map(|(key, given)| (key.clone(), value(given)));
    let target = CallTarget::Graph {
        graph: Arc::new(graph),
        inputs: own.chain(given).collect(),
        conversation: None,
        inherits: !child.is_isolated,
        gives: child.return_keys.clone().map_or(Gives::State, Gives::Entries),
    };
    Action::Call(Box::new(CallAction { target, contract: None, failure_prefix: None, bind: ANSWER }))
}
