//! Graphs that are the work of a node: the loop of an agent, and what makes a value of a text. Each of their turns is
//! committed, so that a process that dies in the middle repeats no request and no call; nobody is told of them as nodes.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hotcell_budget::{Account, BudgetScope, Cost, CostCap, RunBudget};
use hotcell_graph::ir::{COST, FITTING, Graph, LoopAnswer, LoopGraph, LoopLimits, NestedLoop, TEXT};
use hotcell_graph::value::Number;
use hotcell_graph::{Key, State, Value};
use hotcell_journal::EntryPath;

use super::super::agent::Within;
use super::super::part::{Driven, drive};
use super::super::read_value::Schema;
use crate::clock::timeout;
use crate::context::{Acting, Idle, Interruption, RunContext};
use crate::turn::NodeTurn;

/// How many agents deep a run may go that the graph itself defines.
const MAX_DEPTH: u32 = 32;

/// Runs the loop of an agent: what it gives.
pub(super) async fn run_loop(turn: &mut NodeTurn, steps: &LoopGraph, state: &State) -> Result<Value, Interruption> {
    turn.recorded += turn.context.remembered().adopt(&turn.place);
    let acting = turn.context.acting.clone().unwrap_or_else(|| acting(&turn.context, &turn.node, state));
    let work = Work {
        context: &turn.context,
        base: turn.place.of_loop(),
        limits: &steps.agent.limits,
        idle: turn.idle.clone(),
        acting: acting.clone(),
    };
    let driven = work.run(&steps.graph, state.clone()).await;
    if acting.final_refusal.load(Ordering::Relaxed) {
        turn.note_final_refusal();
    } else if acting.gave_up.load(Ordering::Relaxed) {
        turn.give_up();
    }
    turn.recorded += driven.account.clone();
    turn.failure_kind = driven.failure_kind;
    let text = driven.result?;
    Ok(match steps.agent.answer {
        LoopAnswer::Text => Value::text(text),
        LoopAnswer::Report => {
            let mut report = steps.agent.report(&driven.state);
            let cost = Number::from_f64(driven.account.total().cost.to_usd());
            report.insert(COST, cost.map(Value::Number).unwrap_or_default());
            Value::Object(report)
        }
    })
}

/// Runs a loop that a model called: the text that it gives, and who used what for it.
pub(super) async fn run_nested(
    context: &Arc<RunContext>,
    node: Key,
    base: EntryPath,
    nested: &NestedLoop,
    request: String,
) -> (Account, Result<String, Interruption>) {
    if context.depth >= MAX_DEPTH {
        let reason = format!("agents may call each other to a depth of {MAX_DEPTH}, and this is deeper");
        return (Account::default(), Err(Interruption::Failed(reason)));
    }
    let schema = match nested.contract.as_ref().map(|contract| Schema::compile(&contract.schema)).transpose() {
        Ok(schema) => schema,
        Err(stop) => return (Account::default(), Err(stop)),
    };
    let observer = context.ports.observer.clone();
    let mut inside = context.part(base.clone());
    inside.graph = context.acting.as_ref().map_or_else(|| context.graph.clone(), |acting| acting.graph.clone());
    inside.ports.observer = Arc::new(Within { node: node.clone(), agent: nested.name.as_str().into(), observer });
    let mut begin = State::default();
    begin.set(nested.request.clone(), Value::text(request));
    let acting = acting(&inside, &node, &begin);
    let limits = &nested.steps.agent.limits;
    let work = Work { context: &inside, base, limits, idle: None, acting };
    let driven = work.run(&nested.steps.graph, begin).await;
    let fitted = driven.result.and_then(|text| match &schema {
        None => Ok(text),
        Some(schema) => match schema.read(&text) {
            Ok(value) => Ok(value.to_json()),
            Err(problem) => Err(Interruption::Failed(format!("the reply does not fit `output_schema`: {problem}"))),
        },
    });
    (driven.account, fitted)
}

/// Has a model make a value of a text that is none.
pub(super) async fn extract(
    turn: &mut NodeTurn,
    steps: &Arc<Graph>,
    text: String,
    state: &State,
) -> Result<Value, Interruption> {
    turn.recorded += turn.context.remembered().adopt(&turn.place);
    let mut inner = State::default();
    inner.set(TEXT.into(), Value::text(text));
    let acting = turn.context.acting.clone().unwrap_or_else(|| acting(&turn.context, &turn.node, state));
    let work = Work {
        context: &turn.context,
        base: turn.place.of_extraction(),
        limits: &LoopLimits::default(),
        idle: turn.idle.clone(),
        acting,
    };
    let driven = work.run(steps, inner).await;
    turn.recorded += driven.account.clone();
    driven.result?;
    Ok(driven.state.get(FITTING).cloned().unwrap_or_default())
}

/// A node whose work is done by steps. Within the steps of a step there is nothing that another graph sees or decides.
fn acting(context: &RunContext, node: &Key, state: &State) -> Arc<Acting> {
    let (node, graph) = (node.clone(), context.graph.clone());
    let state = context.seen_by_tools(state);
    Arc::new(Acting { node, graph, state, gave_up: AtomicBool::new(false), final_refusal: AtomicBool::new(false) })
}

/// Steps that are to be run.
struct Work<'a> {
    context: &'a RunContext,
    base: EntryPath,
    limits: &'a LoopLimits,
    idle: Option<Arc<Idle>>,
    acting: Arc<Acting>,
}

impl Work<'_> {
    async fn run(self, steps: &Arc<Graph>, mut begin: State) -> Driven {
        for (key, value) in &steps.initial_state {
            begin.set(key.clone(), value.clone());
        }
        let Work { context, base, limits, idle, acting } = self;
        let (spent, worked) = {
            let remembered = context.remembered();
            (remembered.used_at(&base), remembered.worked_at(&base))
        };
        let budget_scope = match limits.cost_usd {
            None => context.budget_scope.clone(),
            Some((most, setting)) => {
                let cap = CostCap { most: Cost::from_usd(most), setting, is_strict: true };
                let cap = RunBudget { cost: Some(cap), ..RunBudget::default() };
                Arc::new(BudgetScope::part(&context.budget_scope, cap, spent))
            }
        };
        let inside = RunContext {
            graph: steps.clone(),
            depth: context.depth,
            idle: Idle::within(idle),
            acting: Some(acting.clone()),
            budget_scope: budget_scope.clone(),
            allowance: limits.allowance.clone().map(Arc::new).or_else(|| context.allowance.clone()),
            ..context.part(base)
        };
        let driven = match limits.time {
            None => drive(inside, begin).await,
            Some((limit, setting)) => {
                let left = limit.saturating_sub(worked);
                timeout(&*context.ports.clock, left, pin!(drive(inside, begin))).await.unwrap_or_else(|| {
                    acting.gave_up.store(true, Ordering::Relaxed);
                    Driven::not_begun(Interruption::Failed(late(limit, setting)))
                })
            }
        };
        if driven.result.is_err() && budget_scope.within_cost(Cost::default()).is_err() {
            acting.gave_up.store(true, Ordering::Relaxed);
        }
        driven
    }
}

fn late(limit: Duration, setting: &str) -> String {
    format!("`{setting}`: it took longer than {} ms, and was stopped", limit.as_millis())
}
