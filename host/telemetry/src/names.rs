//! The names of everything that is told: of spans, of attributes and of metrics.
//!
//! They are those of the OpenTelemetry semantic conventions for generative AI, release 0.1.0, which may still change: this is the
//! one file to change then. What the conventions have no word for is under `hotcell.`. By choice they are those of the AgentLoom
//! document where it has names of its own.

use crate::instrument::{Instrument, Kind, Label};

/// Whose names are used over OTLP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Names {
    /// The semantic conventions for generative AI
    #[default]
    GenAi,
    /// The AgentLoom document where it has names of its own, and the conventions elsewhere
    AgentLoom,
}

impl Names {
    /// The names of that word: `gen-ai` or `agentloom`.
    pub fn from_word(word: &str) -> Option<Self> {
        match word {
            "gen-ai" => Some(Names::GenAi),
            "agentloom" => Some(Names::AgentLoom),
            _ => None,
        }
    }
}

/// The name of a span, and those of its attributes.
#[derive(Clone, Copy)]
pub(crate) struct SpanNames {
    /// What stands before the name of what is done
    pub(crate) prefix: &'static str,
    pub(crate) name: &'static str,
    pub(crate) status: &'static str,
    pub(crate) tokens: Option<&'static str>,
    pub(crate) cost: &'static str,
    pub(crate) model_calls: &'static str,
    pub(crate) tool_calls: &'static str,
}

/// What spans are called.
pub(crate) struct TraceNames {
    pub(crate) run: SpanNames,
    pub(crate) agent: SpanNames,
    /// Before the id of a node; none for its type
    pub(crate) node_prefix: Option<&'static str>,
    pub(crate) node: &'static str,
    pub(crate) node_kind: &'static str,
    pub(crate) node_status: &'static str,
    pub(crate) tool: &'static str,
    /// Whether a call of a tool was answered without an error, where that has a name
    pub(crate) tool_success: Option<&'static str>,
    /// Whether an agent gave what it owes
    pub(crate) output_valid: Option<&'static str>,
}

const GEN_AI: TraceNames = TraceNames {
    run: SpanNames {
        prefix: "invoke_workflow ",
        name: AGENT_NAME,
        status: "hotcell.run.status",
        tokens: None,
        cost: COST,
        model_calls: "hotcell.run.inference_calls",
        tool_calls: "hotcell.run.tool_calls",
    },
    agent: SpanNames {
        prefix: "invoke_agent ",
        name: AGENT_NAME,
        status: "hotcell.agent.status",
        tokens: None,
        cost: COST,
        model_calls: "hotcell.agent.inference_calls",
        tool_calls: "hotcell.agent.tool_calls",
    },
    node_prefix: None,
    node: "hotcell.node.id",
    node_kind: "hotcell.node.type",
    node_status: "hotcell.node.status",
    tool: "gen_ai.tool.name",
    tool_success: None,
    output_valid: None,
};

const AGENTLOOM: TraceNames = TraceNames {
    run: SpanNames {
        prefix: "workflow:",
        name: "workflow.name",
        status: "workflow.status",
        tokens: Some("workflow.total_tokens"),
        cost: "workflow.total_cost_usd",
        model_calls: "hotcell.run.inference_calls",
        tool_calls: "hotcell.run.tool_calls",
    },
    agent: SpanNames {
        prefix: "agent:",
        name: "agent.name",
        status: "hotcell.agent.status",
        tokens: Some("agent.tokens_total"),
        cost: "agent.cost_usd",
        model_calls: "agent.iterations",
        tool_calls: "agent.tool_calls_count",
    },
    node_prefix: Some("step:"),
    node: "step.id",
    node_kind: "step.type",
    node_status: "step.status",
    tool: "tool.name",
    tool_success: Some("tool.success"),
    output_valid: Some("agent.output_valid"),
};

impl Names {
    pub(crate) fn of_traces(self) -> &'static TraceNames {
        match self {
            Names::GenAi => &GEN_AI,
            Names::AgentLoom => &AGENTLOOM,
        }
    }
}

pub(crate) const OPERATION: &str = "gen_ai.operation.name";
pub(crate) const INVOKE_WORKFLOW: &str = "invoke_workflow";
pub(crate) const INVOKE_AGENT: &str = "invoke_agent";
pub(crate) const CHAT: &str = "chat";
pub(crate) const EXECUTE_TOOL: &str = "execute_tool";
pub(crate) const AGENT_NAME: &str = "gen_ai.agent.name";
pub(crate) const CONVERSATION: &str = "gen_ai.conversation.id";
pub(crate) const PROVIDER: &str = "gen_ai.provider.name";
pub(crate) const MODEL: &str = "gen_ai.request.model";
pub(crate) const INPUT_TOKENS: &str = "gen_ai.usage.input_tokens";
pub(crate) const OUTPUT_TOKENS: &str = "gen_ai.usage.output_tokens";
pub(crate) const TOKEN_TYPE: &str = "gen_ai.token.type";
pub(crate) const TOOL_ARGUMENTS: &str = "gen_ai.tool.call.arguments";
pub(crate) const ERROR_TYPE: &str = "error.type";
/// Kinds of errors; those of models are HTTP statuses, or words
pub(crate) const OF_RUN: &str = "run_failed";
pub(crate) const OF_NODE: &str = "node_failed";
pub(crate) const OF_TOOL: &str = "tool_failed";
pub(crate) const OF_CELL: &str = "cell_failed";

pub(crate) const RUN: &str = "hotcell.run.id";
pub(crate) const RESUMED: &str = "hotcell.run.resumed";
pub(crate) const OUTPUT: &str = "hotcell.run.output";
pub(crate) const TENANT: &str = "hotcell.tenant";
pub(crate) const PLACE: &str = "hotcell.place";
pub(crate) const TURN: &str = "hotcell.node.turn";
pub(crate) const VISIT: &str = "hotcell.node.visit";
pub(crate) const COST: &str = "hotcell.cost_usd";
pub(crate) const CELL_NAME: &str = "hotcell.cell.name";
pub(crate) const CELL_FUEL: &str = "hotcell.cell.fuel";
pub(crate) const CELL_MEMORY: &str = "hotcell.cell.memory.peak";
pub(crate) const CELL_HTTP: &str = "hotcell.cell.http_requests";
pub(crate) const CELL_DENIED: &str = "hotcell.cell.denied";
/// What happens within the span of a node
pub(crate) const ASKED: &str = "hotcell.question.asked";
pub(crate) const ANSWERED: &str = "hotcell.question.answered";
pub(crate) const EXPIRED: &str = "hotcell.question.expired";
pub(crate) const RETRIED: &str = "hotcell.inference.retried";

/// The provider of a model that is called `provider:name`, as the conventions call it, and the model's own name.
pub(crate) fn provider_and_model(model: &str) -> (&str, &str) {
    let (provider, name) = model.split_once(':').unwrap_or(("_OTHER", model));
    let provider = match provider {
        "gemini" => "gcp.gemini",
        "mistral" => "mistral_ai",
        "xai" | "grok" => "x_ai",
        "moonshot" => "moonshot_ai",
        other => other,
    };
    (provider, name)
}

const MICROSECONDS: f64 = 1e-6;
const NANO_USD: f64 = 1e-9;

/// Seconds of what a person waits for.
const SECONDS: &[f64] =
    &[0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0];
/// The boundaries that the conventions name for how long models take.
const MODEL_SECONDS: &[f64] = &[0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];
const CALLS: &[f64] = &[0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0];
const MEMORY: &[f64] =
    &[65_536.0, 262_144.0, 1_048_576.0, 4_194_304.0, 16_777_216.0, 67_108_864.0, 268_435_456.0, 1_073_741_824.0];

const AGENT: Label = ("agent", AGENT_NAME);
const MODEL_LABEL: Label = ("model", MODEL);
const PROVIDER_LABEL: Label = ("provider", PROVIDER);
const ERROR: Label = ("error", ERROR_TYPE);
const CELL: Label = ("cell", CELL_NAME);
const OUTCOME: Label = ("outcome", "hotcell.outcome");

macro_rules! instruments {
    ($($id:ident = $name:literal, $otlp:literal $(($agentloom:literal))?, $kind:expr, $unit:literal, $scale:expr,
       [$($label:expr),*] $([$($always:expr),*])?, $help:literal;)*) => {
        /// Something that is measured.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Measure {
            $(#[doc = $help] $id,)*
        }

        /// All of them.
        pub(crate) const ALL: &[Measure] = &[$(Measure::$id,)*];

        /// What each of them is, in their order.
        pub(crate) const INSTRUMENTS: &[Instrument] = &[$(Instrument {
            name: $name,
            otlp: $otlp,
            agentloom: { let named: &[&str] = &[$($agentloom)?]; named.first().copied() },
            help: $help,
            unit: $unit,
            kind: $kind,
            scale: $scale,
            labels: &[$($label),*],
            always: &[$($($always),*)?],
        },)*];
    };
}

instruments! {
    RunsStarted = "hotcell_runs_started_total", "hotcell.runs.started", Kind::Counter, "{run}", 1.0,
        [AGENT], "Runs that were begun by this process";
    RunsRested = "hotcell_runs_rested_total", "hotcell.runs.rested" ("agentloom_workflow_runs_total"),
        Kind::Counter, "{run}", 1.0, [AGENT, ("status", "hotcell.run.status")],
        "Runs that gave control back, by how they stood then";
    RunSeconds = "hotcell_run_duration_seconds", "gen_ai.invoke_agent.duration" ("agentloom_workflow_duration_seconds"),
        Kind::Histogram(SECONDS), "s", MICROSECONDS, [AGENT, ERROR] [(OPERATION, INVOKE_WORKFLOW)],
        "How long runs were worked on until they gave control back";
    RunModelCalls = "hotcell_run_model_requests", "gen_ai.invoke_agent.inference_calls",
        Kind::Histogram(CALLS), "{call}", 1.0, [AGENT] [(OPERATION, INVOKE_WORKFLOW)],
        "Requests to models until a run gave control back";
    RunToolCalls = "hotcell_run_tool_calls", "gen_ai.invoke_agent.tool_calls",
        Kind::Histogram(CALLS), "{call}", 1.0, [AGENT] [(OPERATION, INVOKE_WORKFLOW)],
        "Calls of tools until a run gave control back";
    AgentInvocations = "hotcell_agent_invocations_total",
        "hotcell.agent.invocations" ("agentloom_agent_invocations_total"), Kind::Counter, "{invocation}", 1.0,
        [("name", AGENT_NAME), ("status", "hotcell.agent.status")],
        "Agents of AgentLoom files that were asked, alone or by a step, by what came of it";
    AgentModelCalls = "hotcell_agent_model_requests", "hotcell.agent.inference_calls" ("agentloom_agent_iterations"),
        Kind::Histogram(CALLS), "{call}", 1.0, [("name", AGENT_NAME)],
        "Replies of models to such an agent, with those to agents that are its tools";
    NodeSeconds = "hotcell_node_duration_seconds", "hotcell.node.duration" ("agentloom_step_duration_seconds"),
        Kind::Histogram(SECONDS), "s", MICROSECONDS, [AGENT, OUTCOME], "How long turns of nodes took";
    ModelSeconds = "hotcell_model_request_duration_seconds",
        "gen_ai.client.inference.duration" ("gen_ai.client.operation.duration"),
        Kind::Histogram(MODEL_SECONDS), "s", MICROSECONDS, [AGENT, PROVIDER_LABEL, MODEL_LABEL, ERROR]
        [(OPERATION, CHAT)], "How long requests to models took";
    InputTokens = "hotcell_input_tokens_total",
        "gen_ai.client.inference.usage.input_tokens" ("agentloom_tokens_total"),
        Kind::Counter, "{token}", 1.0, [AGENT, PROVIDER_LABEL, MODEL_LABEL] [(OPERATION, CHAT), (TOKEN_TYPE, "input")],
        "Tokens that models read";
    OutputTokens = "hotcell_output_tokens_total",
        "gen_ai.client.inference.usage.output_tokens" ("agentloom_tokens_total"),
        Kind::Counter, "{token}", 1.0, [AGENT, PROVIDER_LABEL, MODEL_LABEL] [(OPERATION, CHAT), (TOKEN_TYPE, "output")],
        "Tokens that models wrote";
    Cost = "hotcell_cost_usd_total", "hotcell.cost" ("agentloom_cost_usd_total"),
        Kind::Counter, "{USD}", NANO_USD, [AGENT, PROVIDER_LABEL, MODEL_LABEL],
        "What requests to models cost in US dollars, by the price table";
    ToolSeconds = "hotcell_tool_call_duration_seconds",
        "gen_ai.execute_tool.duration" ("agentloom_tool_call_duration_seconds"),
        Kind::Histogram(SECONDS), "s", MICROSECONDS, [AGENT, ("tool", "gen_ai.tool.name"), ERROR]
        [(OPERATION, EXECUTE_TOOL)], "How long calls of tools took";
    CellSeconds = "hotcell_cell_duration_seconds", "hotcell.cell.duration",
        Kind::Histogram(SECONDS), "s", MICROSECONDS, [AGENT, CELL, OUTCOME],
        "How long calls into cells took, from instantiation to the end";
    CellFuel = "hotcell_cell_fuel_total", "hotcell.cell.fuel", Kind::Counter, "{fuel}", 1.0,
        [AGENT, CELL], "Fuel that calls into cells burnt";
    CellMemory = "hotcell_cell_peak_memory_bytes", "hotcell.cell.memory.peak",
        Kind::Histogram(MEMORY), "By", 1.0, [AGENT], "The most memory that a call into a cell had at one time";
    CellHttp = "hotcell_cell_http_requests_total", "hotcell.cell.http_requests", Kind::Counter, "{request}", 1.0,
        [AGENT, CELL], "HTTP requests of cells that were let through";
    CellHttpBytes = "hotcell_cell_http_bytes_total", "hotcell.cell.http", Kind::Counter, "By", 1.0,
        [AGENT, ("direction", "network.io.direction")], "HTTP bytes that cells sent and received";
    Denials = "hotcell_denials_total", "hotcell.denials", Kind::Counter, "{denial}", 1.0,
        [AGENT, CELL, ("capability", "hotcell.capability")],
        "Capabilities that scripts and plugins asked for and were not granted";
    Questions = "hotcell_questions_total", "hotcell.questions", Kind::Counter, "{question}", 1.0,
        [AGENT, ("event", "hotcell.question.event")], "Questions that were asked, answered, or not answered in time";
    HttpSeconds = "hotcell_http_request_duration_seconds", "http.server.request.duration",
        Kind::Histogram(SECONDS), "s", MICROSECONDS,
        [("method", "http.request.method"), ("route", "http.route"), ("status", "http.response.status_code")],
        "How long requests took until their reply began, by route";
    HttpActive = "hotcell_http_requests_active", "http.server.active_requests", Kind::Gauge, "{request}", 1.0,
        [], "Requests whose reply has not begun";
    RunsInJournal = "hotcell_journal_runs", "hotcell.journal.runs", Kind::Gauge, "{run}", 1.0,
        [("status", "hotcell.run.status")], "Runs in the journal, by how they stand";
    QuestionsOpen = "hotcell_questions_open", "hotcell.questions.open", Kind::Gauge, "{question}", 1.0,
        [], "Questions and callbacks of waiting runs that have no answer";
    JournalBytes = "hotcell_journal_size_bytes", "hotcell.journal.size", Kind::Gauge, "By", 1.0,
        [], "Bytes of the journal's file";
    JournalUp = "hotcell_journal_up", "hotcell.journal.up", Kind::Gauge, "1", 1.0,
        [], "Whether the journal could be read";
    RunsWorking = "hotcell_runs_working", "hotcell.runs.working", Kind::Gauge, "{run}", 1.0,
        [], "Runs that this process works on";
    Agents = "hotcell_agents", "hotcell.agents", Kind::Gauge, "{agent}", 1.0, [], "Agents that are served";
    AgentsNotServed = "hotcell_agents_not_served", "hotcell.agents.not_served", Kind::Gauge, "{file}", 1.0,
        [], "Files that look like agents and cannot be loaded";
    ResidentMemory = "process_resident_memory_bytes", "process.memory.usage", Kind::Gauge, "By", 1.0,
        [], "Resident memory of this process";
    StartTime = "process_start_time_seconds", "hotcell.process.start_time", Kind::Gauge, "s", 1.0,
        [], "When this process began, in seconds since 1970";
    SpansSent = "hotcell_telemetry_spans_total", "hotcell.telemetry.spans", Kind::Counter, "{span}", 1.0,
        [OUTCOME], "Spans by what became of them: sent, dropped because the queue was full, or refused by the collector";
}

impl Measure {
    pub(crate) fn instrument(self) -> &'static Instrument {
        // One of each, in this order.
        &INSTRUMENTS[self as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_used_once_and_fits_its_kind() {
        let mut seen = std::collections::BTreeSet::new();
        for instrument in INSTRUMENTS {
            assert!(seen.insert(instrument.name) && seen.insert(instrument.otlp), "{}", instrument.name);
            assert_eq!(instrument.name.ends_with("_total"), instrument.kind == Kind::Counter, "{}", instrument.name);
            if let Kind::Histogram(bounds) = instrument.kind {
                assert!(bounds.is_sorted(), "{}", instrument.name);
            }
        }
        assert_eq!(Measure::SpansSent.instrument().name, "hotcell_telemetry_spans_total");
    }
}
