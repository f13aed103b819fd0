//! Fields of agents in later releases of the language and its successor that have no counterpart here. One that is switched off
//! means nothing; one that is used is refused under its own name, with the reason, because the agent would be another one
//! without it.

use hotcell_graph::diagnostic::Diagnostic;

use crate::document::{Entry, Fields, Kind};

/// A field, why it is refused when it is used, and the fields that only say more about it.
struct Feature {
    name: &'static str,
    reason: &'static str,
    details: &'static [&'static str],
}

/// What agents of both kinds may have.
const OF_AGENTS: [Feature; 2] = [
    Feature {
        name: "memory",
        reason: "nothing is remembered from one run to the next: keep it with a tool such as those of the plugin `files`",
        details: &[],
    },
    Feature {
        name: "dynamic_instructions",
        reason: "write the instructions down, or put what changes into variables",
        details: &[],
    },
];

/// What `rag` nodes may have about graphs of knowledge, and why it is refused.
const OF_RAG: [&str; 3] = ["graph_hops", "extractor_model", "extractor_prompt"];
const NO_GRAPH: &str = "hotcell builds no knowledge graph: leave it out";

/// What `agent` nodes may have.
const TEAMMATES: Feature = Feature {
    name: "teammates",
    reason: "agents that run side by side do not send each other messages: leave it out, and put what one has to know of the others \
             into its `prompt`, or into that of a node after them",
    details: &[],
};

/// What is about people at a terminal of that program, and about long conversations with them. Without it the agent is the same.
const OF_ITS_TERMINAL: [(&str, &str); 6] = [
    ("agent_session", "a run begins anew; runs of one conversation have the same `--thread`"),
    ("enabled_macros", "macros belong to the terminal of another program"),
    ("compression_model", NOT_COMPRESSED),
    ("compression_threshold", NOT_COMPRESSED),
    ("compression_keep_last", NOT_COMPRESSED),
    (
        "max_tool_result_chars",
        "the model gets the results of tools unchanged; `output` under `[budget.NAME]` in `hotcell.toml` limits their size",
    ),
];
const NOT_COMPRESSED: &str = "the model gets the whole conversation, whatever its length";

/// Looks at such fields of a graph.
pub(super) fn of_graph(fields: &mut Fields<'_, '_>) {
    OF_AGENTS.iter().for_each(|feature| refuse(fields, feature));
}

/// Looks at such fields of an agent with a tool loop.
pub(super) fn of_tool_loop(fields: &mut Fields<'_, '_>) {
    OF_AGENTS.iter().for_each(|feature| refuse(fields, feature));
    for (name, instead) in OF_ITS_TERMINAL {
        no_matter(fields, name, instead);
    }
}

/// Says that a field means nothing.
fn no_matter(fields: &mut Fields<'_, '_>, name: &'static str, instead: &str) {
    let Some(entry) = fields.pass(name).filter(|entry| is_used(entry)) else { return };
    let reader = fields.reader();
    let mut warning = Diagnostic::warning(format!("`{name}` means nothing here")).at(&reader.span(entry.key_place));
    warning.node = fields.owner().node.as_deref().map(str::to_owned);
    reader.report(warning.help(instead));
}

/// Looks at such fields of a `rag` node.
pub(super) fn of_rag_node(fields: &mut Fields<'_, '_>) {
    for name in OF_RAG {
        refuse(fields, &Feature { name, reason: NO_GRAPH, details: &[] });
    }
    no_matter(fields, "driver", "the knowledge base is a file of hotcell's own, whatever it is kept in elsewhere");
}

/// Looks at such fields of an `agent` node.
pub(super) fn of_agent_node(fields: &mut Fields<'_, '_>) {
    refuse(fields, &TEAMMATES);
}

fn refuse(fields: &mut Fields<'_, '_>, feature: &Feature) {
    for detail in feature.details {
        fields.pass(detail);
    }
    let Some(entry) = fields.pass(feature.name).filter(|entry| is_used(entry)) else { return };
    let reader = fields.reader();
    let error = fields.error(format!("`{}` is not supported", feature.name), &reader.span(entry.key_place));
    reader.report(error.help(feature.reason));
}

/// Whether a field says anything else than that it is off.
fn is_used(entry: &Entry) -> bool {
    match &entry.value.kind {
        Kind::Null | Kind::Bool(false) => false,
        Kind::List(items) => !items.is_empty(),
        Kind::Map(entries) => !entries.is_empty(),
        Kind::Text(text) => !text.value.is_empty(),
        _ => true,
    }
}
