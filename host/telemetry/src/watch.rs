//! Watches a run: passes on what happens, counts it, and makes spans of it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use hotcell_budget::Usage;
use hotcell_engine::{Event, Observer};

use crate::Shared;
use crate::names::{self, Measure, provider_and_model};
use crate::trace::{About, LOOP, RunTrace};

/// Watches a run.
pub(crate) struct Watch {
    shared: Arc<Shared>,
    about: About,
    /// What a run is called whose agent has no name here: its graph
    graph: OnceLock<String>,
    inner: Arc<dyn Observer>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The run and when it was begun in this process
    begun: Option<(String, Instant)>,
    model_calls: u64,
    tool_calls: u64,
    /// Agents whose loops are the work of nodes, by the places of these: the name, and how often models replied
    agents: HashMap<Box<str>, (Box<str>, u64)>,
    trace: Option<RunTrace>,
}

impl Watch {
    pub(crate) fn new(shared: Arc<Shared>, about: About, inner: Arc<dyn Observer>) -> Self {
        Watch { shared, about, graph: OnceLock::new(), inner, state: Mutex::default() }
    }

    fn agent(&self) -> &str {
        match (&*self.about.agent, self.graph.get()) {
            ("", Some(graph)) => graph,
            (agent, _) => agent,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, measure: Measure, labels: &[&str], number: u64) {
        if number > 0 {
            self.shared.meter.series(measure, labels).add(number);
        }
    }

    fn observe(&self, measure: Measure, labels: &[&str], number: u64) {
        self.shared.meter.series(measure, labels).observe(number);
    }

    fn took(&self, measure: Measure, labels: &[&str], time: Duration) {
        self.shared.meter.series(measure, labels).took(time);
    }

    /// Counts what happened, at any depth.
    fn count(&self, event: &Event<'_>) {
        let agent = self.agent();
        match event {
            Event::NodeStarted { place, agent: Some(name), .. } => {
                self.state().agents.insert((*place).into(), ((*name).into(), 0));
            }
            Event::NodeCompleted { place, failure, elapsed, .. } => {
                let outcome = if failure.is_some() { "failed" } else { "completed" };
                self.took(Measure::NodeSeconds, &[agent, outcome], *elapsed);
                self.end_agent(place, outcome);
            }
            Event::NodeFailed { place, elapsed, .. } => {
                self.took(Measure::NodeSeconds, &[agent, "failed"], *elapsed);
                self.end_agent(place, "failed");
            }
            Event::ModelAnswered { model, place, prompt_tokens, completion_tokens, cost, elapsed, .. } => {
                let mut state = self.state();
                state.model_calls += 1;
                if let Some((node, _)) = place.split_once(LOOP)
                    && let Some((_, replies)) = state.agents.get_mut(node)
                {
                    *replies += 1;
                }
                drop(state);
                let (provider, model) = provider_and_model(model);
                self.took(Measure::ModelSeconds, &[agent, provider, model, ""], *elapsed);
                self.add(Measure::InputTokens, &[agent, provider, model], *prompt_tokens);
                self.add(Measure::OutputTokens, &[agent, provider, model], *completion_tokens);
                self.add(Measure::Cost, &[agent, provider, model], cost.0);
            }
            Event::ModelFailed { model, kind, elapsed, .. } => {
                self.state().model_calls += 1;
                let (provider, model) = provider_and_model(model);
                self.took(Measure::ModelSeconds, &[agent, provider, model, kind], *elapsed);
            }
            Event::ToolCalled { tool, error, elapsed, .. } => {
                self.state().tool_calls += 1;
                let error = if error.is_some() { names::OF_TOOL } else { "" };
                self.took(Measure::ToolSeconds, &[agent, tool, error], *elapsed);
            }
            Event::CellCalled { name, failed, usage, denied, .. } => self.count_cell(name, *failed, usage, denied),
            Event::Asked { .. } => self.add(Measure::Questions, &[agent, "asked"], 1),
            Event::Answered { .. } => self.add(Measure::Questions, &[agent, "answered"], 1),
            Event::Expired { .. } => self.add(Measure::Questions, &[agent, "expired"], 1),
            _ => {}
        }
    }

    /// The agent at a place is done, if there is one.
    fn end_agent(&self, place: &str, status: &str) {
        let Some((name, replies)) = self.state().agents.remove(place) else { return };
        self.add(Measure::AgentInvocations, &[&*name, status], 1);
        self.observe(Measure::AgentModelCalls, &[&*name], replies);
    }

    fn count_cell(&self, cell: &str, failed: bool, usage: &Usage, denied: &[&str]) {
        let agent = self.agent();
        let outcome = if failed { "failed" } else { "completed" };
        self.took(Measure::CellSeconds, &[agent, cell, outcome], usage.wall_clock);
        self.add(Measure::CellFuel, &[agent, cell], usage.fuel.0);
        self.observe(Measure::CellMemory, &[agent], usage.peak_memory.0);
        self.add(Measure::CellHttp, &[agent, cell], usage.http_requests);
        self.add(Measure::CellHttpBytes, &[agent, "transmit"], usage.http_sent.0);
        self.add(Measure::CellHttpBytes, &[agent, "receive"], usage.http_received.0);
        for capability in denied {
            self.add(Measure::Denials, &[agent, cell, capability], 1);
        }
    }

    /// The run gave control back.
    fn end(&self, status: &'static str, output: Option<&str>, error: Option<&str>) {
        let State { begun, model_calls, tool_calls, trace, .. } = std::mem::take(&mut *self.state());
        let Some((run_id, begun)) = begun else { return };
        let took = begun.elapsed();
        let agent = self.agent();
        self.add(Measure::RunsRested, &[agent, status], 1);
        let kind = if error.is_some() { names::OF_RUN } else { "" };
        self.took(Measure::RunSeconds, &[agent, kind], took);
        self.observe(Measure::RunModelCalls, &[agent], model_calls);
        self.observe(Measure::RunToolCalls, &[agent], tool_calls);
        let (tenant, elapsed_ms) = (self.about.tenant.as_deref(), took.as_secs_f64() * 1e3);
        tracing::info!(
            target: "hotcell::run",
            run_id, agent, tenant, status, elapsed_ms, model_requests = model_calls, tool_calls, "rests"
        );
        if let Some(trace) = trace {
            trace.end(status, output, error, &mut |span| self.shared.send(span));
        }
    }
}

impl Observer for Watch {
    fn event(&self, event: &Event<'_>) {
        self.inner.event(event);
        let (mut innermost, mut agent) = (event, None);
        while let Event::Within { agent: name, within, .. } = innermost {
            innermost = *within;
            agent = Some(*name);
        }
        match event {
            Event::RunStarted { run, graph, resumed, .. } => {
                let _ = self.graph.set((*graph).to_owned());
                let trace = self.shared.traced(run.as_str());
                let trace =
                    trace.map(|style| RunTrace::begin(style, self.about.clone(), run.as_str(), graph, *resumed));
                let begun = Some((run.to_string(), Instant::now()));
                *self.state() = State { begun, trace, ..State::default() };
                let (agent, thread_id, tenant) =
                    (self.agent(), self.about.thread.as_deref(), self.about.tenant.as_deref());
                tracing::info!(target: "hotcell::run", run_id = run.as_str(), agent, thread_id, tenant, resumed, "begins");
                if !resumed {
                    self.add(Measure::RunsStarted, &[self.agent()], 1);
                }
            }
            Event::RunCompleted { output, .. } => self.end("completed", Some(output), None),
            Event::RunFailed { error, .. } => self.end("failed", None, Some(error)),
            Event::RunStopped { reason, .. } => self.end("stopped", None, Some(reason)),
            Event::RunWaiting { .. } => self.end("waiting", None, None),
            Event::RunCancelled { .. } => self.end("cancelled", None, None),
            Event::RunPaused { .. } => self.end("paused", None, None),
            Event::RunInterrupted { .. } => self.end("interrupted", None, None),
            _ => {
                self.count(innermost);
                if let Some(trace) = &mut self.state().trace {
                    trace.event(innermost, agent, &mut |span| self.shared.send(span));
                }
            }
        }
    }

    fn wants_text(&self) -> bool {
        self.inner.wants_text()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // Its journal could not be written, say.
        self.end("lost", None, Some("the run ended without saying how"));
    }
}
