//! Makes spans of the events of a run.
//!
//! Events say where in the run they happened: a turn of a node is at a place, and what happens in it at places within that one.

use std::collections::HashMap;
use std::time::{Duration, SystemTime};

use hotcell_engine::Event;

use crate::names::{self, Names, SpanNames, TraceNames, provider_and_model};
use crate::span::{Attribute, Attributes, Kind, Span, SpanId, TraceId, fresh, root_of, short, trace_of};

/// What follows the place of a node whose work is the loop of an agent.
pub(crate) const LOOP: &str = ".loop";
/// Moments within a span that are kept.
const MOST_MOMENTS: usize = 64;
/// Calls into cells that are held back until it is known which tool they were made for.
const MOST_HELD: usize = 64;

/// How spans are made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Style {
    pub(crate) names: Names,
    /// Whether what people, models and tools say is told, too
    pub(crate) content: bool,
}

/// What is known of a run beside its events.
#[derive(Clone, Debug, Default)]
pub struct About {
    /// What its agent is called in metrics and traces
    pub agent: String,
    /// The thread that it belongs to
    pub thread: Option<String>,
    /// Whose it is
    pub tenant: Option<String>,
}

/// What models and tools did within something.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    model_calls: u64,
    tool_calls: u64,
    input_tokens: u64,
    output_tokens: u64,
    nano_usd: u64,
}

/// Something that is not over.
struct Open {
    id: SpanId,
    parent: SpanId,
    begun: SystemTime,
    name: String,
    attributes: Attributes,
    /// Set for an agent that a node called
    agent: Option<Counts>,
}

/// The spans of a run that is worked on.
pub(crate) struct RunTrace {
    style: Style,
    about: About,
    run: String,
    trace: TraceId,
    /// The span of the run in this process
    id: SpanId,
    graph: String,
    resumed: bool,
    begun: SystemTime,
    counts: Counts,
    moments: Vec<(SystemTime, &'static str)>,
    /// Turns of nodes, and agents that they called, by their places
    open: HashMap<Box<str>, Open>,
    held: Vec<(Box<str>, Span)>,
}

impl RunTrace {
    pub(crate) fn begin(style: Style, about: About, run: &str, graph: &str, resumed: bool) -> Self {
        RunTrace {
            style,
            about,
            run: run.to_owned(),
            trace: trace_of(run),
            id: if resumed { fresh() } else { root_of(run) },
            graph: short(graph).into_owned(),
            resumed,
            begun: SystemTime::now(),
            counts: Counts::default(),
            moments: Vec::new(),
            open: HashMap::new(),
            held: Vec::new(),
        }
    }

    fn names(&self) -> &'static TraceNames {
        self.style.names.of_traces()
    }

    /// The span that something at a place is within.
    fn around(&self, place: &str) -> SpanId {
        let mut place = Some(place);
        while let Some(here) = place {
            if let Some(open) = self.open.get(here) {
                return open.id;
            }
            place = here.rsplit_once('.').map(|(around, _)| around);
        }
        self.id
    }

    /// Everything around a place that counts what happens in it.
    fn count(&mut self, place: &str, count: impl Fn(&mut Counts)) {
        count(&mut self.counts);
        let mut place = place;
        while let Some((around, _)) = place.rsplit_once('.') {
            place = around;
            if let Some(counts) = self.open.get_mut(place).and_then(|open| open.agent.as_mut()) {
                count(counts);
            }
        }
    }

    fn moment(&mut self, what: &'static str) {
        // Questions do not say where they are asked.
        if self.moments.len() < MOST_MOMENTS {
            self.moments.push((SystemTime::now(), what));
        }
    }

    /// What follows from an event, if something is over with it. `agent` is the agent within which it happened.
    pub(crate) fn event(&mut self, event: &Event<'_>, agent: Option<&str>, tell: &mut dyn FnMut(Span)) {
        match event {
            Event::NodeStarted { node, kind, turn, visit, place, agent: own } => {
                self.enter_agent(agent, place);
                let names = self.names();
                let name = match names.node_prefix {
                    Some(prefix) => format!("{prefix}{}", short(node)),
                    None => format!("{} {}", short(kind), short(node)),
                };
                let attributes = vec![
                    (names.node, (*node).into()),
                    (names.node_kind, (*kind).into()),
                    (names::TURN, (*turn).into()),
                    (names::VISIT, u64::from(*visit).into()),
                    (names::PLACE, (*place).into()),
                ];
                self.enter(place, name, attributes, None);
                if let Some(own) = own {
                    self.open_agent(own, &format!("{place}{LOOP}"));
                }
            }
            Event::NodeCompleted { place, failure, elapsed, .. } => self.leave(place, *elapsed, *failure, tell),
            Event::NodeFailed { place, error, elapsed, .. } => self.leave(place, *elapsed, Some(error), tell),
            Event::ModelAnswered { model, place, prompt_tokens, completion_tokens, cost, elapsed, .. } => {
                self.count(place, |counts| {
                    counts.model_calls += 1;
                    counts.input_tokens += prompt_tokens;
                    counts.output_tokens += completion_tokens;
                    counts.nano_usd += cost.0;
                });
                let mut span = self.chat(model, place, *elapsed);
                span.attributes.push((names::INPUT_TOKENS, (*prompt_tokens).into()));
                span.attributes.push((names::OUTPUT_TOKENS, (*completion_tokens).into()));
                if cost.0 > 0 {
                    span.attributes.push((names::COST, dollars(cost.0)));
                }
                tell(span);
            }
            Event::ModelFailed { model, place, error, kind, elapsed, .. } => {
                self.count(place, |counts| counts.model_calls += 1);
                let mut span = self.chat(model, place, *elapsed);
                self.fail(&mut span, kind, error);
                tell(span);
            }
            Event::ModelRetried { .. } => self.moment(names::RETRIED),
            Event::ToolCalled { tool, place, arguments, error, elapsed, .. } => {
                self.count(place, |counts| counts.tool_calls += 1);
                let names = self.names();
                let name = format!("{} {}", names::EXECUTE_TOOL, short(tool));
                let mut span = Span::over(self.trace, self.around(place), name, *elapsed);
                span.attributes = vec![(names::OPERATION, names::EXECUTE_TOOL.into()), (names.tool, (*tool).into())];
                if let Some(success) = names.tool_success {
                    span.attributes.push((success, Attribute::Truth(error.is_none())));
                }
                if self.style.content {
                    span.attributes.push((names::TOOL_ARGUMENTS, (*arguments).into()));
                }
                if let Some(error) = error {
                    self.fail(&mut span, names::OF_TOOL, error);
                }
                self.let_go(Some((*place, &span)), tell);
                tell(span);
            }
            Event::CellCalled { name, place, failed, usage, denied } => {
                let mut span =
                    Span::over(self.trace, self.around(place), format!("cell {}", short(name)), usage.wall_clock);
                span.attributes = vec![
                    (names::CELL_NAME, (*name).into()),
                    (names::CELL_FUEL, usage.fuel.0.into()),
                    (names::CELL_MEMORY, usage.peak_memory.0.into()),
                ];
                if usage.http_requests > 0 {
                    span.attributes.push((names::CELL_HTTP, usage.http_requests.into()));
                }
                if !denied.is_empty() {
                    span.attributes.push((
                        names::CELL_DENIED,
                        Attribute::List(denied.iter().map(|&grant| grant.to_owned()).collect()),
                    ));
                }
                if *failed {
                    span.failed = true;
                    span.attributes.push((names::ERROR_TYPE, names::OF_CELL.into()));
                }
                if self.held.len() >= MOST_HELD {
                    self.let_go(None, tell);
                }
                self.held.push(((*place).into(), span));
            }
            Event::Asked { .. } => self.moment(names::ASKED),
            Event::Answered { .. } => self.moment(names::ANSWERED),
            Event::Expired { .. } => self.moment(names::EXPIRED),
            _ => {}
        }
    }

    fn enter(&mut self, place: &str, name: String, attributes: Attributes, agent: Option<Counts>) {
        let parent = self.around(place);
        let begun = SystemTime::now();
        let open = Open { id: fresh(), parent, begun, name, attributes, agent };
        self.open.insert(place.into(), open);
    }

    /// A node of an agent that another node called begins: with the first one, the agent does.
    fn enter_agent(&mut self, agent: Option<&str>, place: &str) {
        let (Some(agent), Some((scope, _))) = (agent, place.rsplit_once('.')) else { return };
        if !self.open.contains_key(scope) {
            self.open_agent(agent, scope);
        }
    }

    fn open_agent(&mut self, agent: &str, scope: &str) {
        let SpanNames { prefix, name, .. } = self.names().agent;
        let attributes = vec![(names::OPERATION, names::INVOKE_AGENT.into()), (name, agent.into())];
        self.enter(scope, format!("{prefix}{}", short(agent)), attributes, Some(Counts::default()));
    }

    /// A turn is over, and with it what was begun in it and is not.
    fn leave(&mut self, place: &str, took: Duration, failure: Option<&str>, tell: &mut dyn FnMut(Span)) {
        self.let_go(None, tell);
        let within = format!("{place}.");
        let inner: Vec<Box<str>> = self.open.keys().filter(|open| open.starts_with(&within)).cloned().collect();
        for place in inner {
            if let Some(mut open) = self.open.remove(&place) {
                let is_agent = open.agent.is_some();
                if let Some(valid) = self.names().output_valid.filter(|_| is_agent) {
                    open.attributes.push((valid, Attribute::Truth(failure.is_none())));
                }
                tell(self.closed(open));
            }
        }
        let Some(open) = self.open.remove(place) else { return };
        let mut span = self.closed(open);
        // It is told a moment after it was over: counted back from there alone it would begin after what happened in it.
        span.begun = span.ended.checked_sub(took).map_or(span.begun, |begun| begun.min(span.begun));
        let status = if failure.is_some() { "failed" } else { "completed" };
        span.attributes.push((self.names().node_status, status.into()));
        if let Some(failure) = failure {
            self.fail(&mut span, names::OF_NODE, failure);
        }
        tell(span);
    }

    fn closed(&self, open: Open) -> Span {
        let Open { id, parent, begun, name, mut attributes, agent } = open;
        if let Some(counts) = agent {
            let names = self.names().agent;
            self.add_counts(&mut attributes, &names, &counts);
        }
        let span = Span::over(self.trace, parent, name, Duration::ZERO);
        Span { id, begun, attributes, ..span }
    }

    fn add_counts(&self, attributes: &mut Attributes, names: &SpanNames, counts: &Counts) {
        attributes.push((names.model_calls, counts.model_calls.into()));
        attributes.push((names.tool_calls, counts.tool_calls.into()));
        attributes.push((names::INPUT_TOKENS, counts.input_tokens.into()));
        attributes.push((names::OUTPUT_TOKENS, counts.output_tokens.into()));
        if let Some(tokens) = names.tokens {
            attributes.push((tokens, (counts.input_tokens + counts.output_tokens).into()));
        }
        attributes.push((names.cost, dollars(counts.nano_usd)));
    }

    fn chat(&self, model: &str, place: &str, took: Duration) -> Span {
        let (provider, model) = provider_and_model(model);
        let mut span = Span::over(self.trace, self.around(place), format!("{} {}", names::CHAT, short(model)), took);
        span.kind = Kind::Client;
        span.attributes = vec![
            (names::OPERATION, names::CHAT.into()),
            (names::PROVIDER, provider.into()),
            (names::MODEL, model.into()),
        ];
        if let Some(thread) = &self.about.thread {
            span.attributes.push((names::CONVERSATION, (&**thread).into()));
        }
        span
    }

    /// Errors may have what models and people said in them; kinds of errors do not.
    fn fail(&self, span: &mut Span, kind: &str, error: &str) {
        span.failed = true;
        span.attributes.push((names::ERROR_TYPE, kind.into()));
        if self.style.content {
            span.message = Some(short(error).into_owned());
        }
    }

    /// Tells of calls into cells that were held back: those of a tool that is over are within its span.
    fn let_go(&mut self, tool: Option<(&str, &Span)>, tell: &mut dyn FnMut(Span)) {
        for (place, mut span) in self.held.drain(..) {
            if let Some((of_tool, tool)) = tool
                && *place == *of_tool
                && span.begun >= tool.begun
            {
                span.parent = Some(tool.id);
            }
            tell(span);
        }
    }

    /// The run gave control back.
    pub(crate) fn end(
        mut self,
        status: &'static str,
        output: Option<&str>,
        error: Option<&str>,
        tell: &mut dyn FnMut(Span),
    ) {
        self.let_go(None, tell);
        for (_, open) in std::mem::take(&mut self.open) {
            tell(self.closed(open));
        }
        let names = self.names().run;
        let named = if self.about.agent.is_empty() { &self.graph } else { &self.about.agent };
        let mut attributes = vec![
            (names::OPERATION, names::INVOKE_WORKFLOW.into()),
            (names.name, (&**named).into()),
            (names::RUN, (&*self.run).into()),
            (names::RESUMED, Attribute::Truth(self.resumed)),
            (names.status, status.into()),
        ];
        for (name, value) in [(names::CONVERSATION, &self.about.thread), (names::TENANT, &self.about.tenant)] {
            attributes.extend(value.as_deref().map(|value| (name, value.into())));
        }
        self.add_counts(&mut attributes, &names, &self.counts);
        if let Some(output) = output.filter(|_| self.style.content) {
            attributes.push((names::OUTPUT, output.into()));
        }
        let mut span = Span::over(self.trace, root_of(&self.run), format!("{}{named}", names.prefix), Duration::ZERO);
        span.attributes = attributes;
        if let Some(error) = error {
            self.fail(&mut span, names::OF_RUN, error);
        }
        tell(Span {
            id: self.id,
            parent: span.parent.filter(|_| self.resumed),
            begun: self.begun,
            moments: std::mem::take(&mut self.moments),
            ..span
        });
    }
}

fn dollars(nano_usd: u64) -> Attribute {
    Attribute::Decimal(nano_usd as f64 * 1e-9)
}
