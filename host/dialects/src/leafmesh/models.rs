//! Which provider serves a model, by its name.

use hotcell_graph::diagnostic::Diagnostic;

use super::reading::Reading;
use super::schema::{Agent, Body, Mesh};
use crate::document::SourceText;

/// How the names of models begin, and the provider that has them, as hotcell calls it.
const FAMILIES: [(&str, &str); 16] = [
    ("gpt-", "openai"),
    ("chatgpt-", "openai"),
    ("o1-", "openai"),
    ("o3-", "openai"),
    ("o4-", "openai"),
    ("claude-", "anthropic"),
    ("gemini-", "gemini"),
    ("deepseek-", "deepseek"),
    ("grok-", "xai"),
    ("mistral-", "mistral"),
    ("mixtral-", "mistral"),
    ("codestral-", "mistral"),
    ("bedrock/", BEDROCK),
    ("vertex/", VERTEX),
    ("foundry/", FOUNDRY),
    ("ministral-", "mistral"),
];
/// Models whose whole name is that of a family.
const WHOLE: [&str; 4] = ["o1", "o3", "o4", "gpt"];
/// Those that hotcell knows how to ask.
const SERVED: [&str; 4] = ["openai", "anthropic", "gemini", "deepseek"];
const BEDROCK: &str = "bedrock";
const VERTEX: &str = "vertex";
const FOUNDRY: &str = "foundry";

/// The provider of a model; none for one of a server of the mesh's own.
pub(super) fn provider(model: &str) -> Option<&'static str> {
    if WHOLE.contains(&model) {
        return Some("openai");
    }
    FAMILIES.iter().find(|(start, _)| model.starts_with(start)).map(|(_, provider)| *provider)
}

/// Reports models that nothing is there for.
pub(super) fn check(agent: &Agent, mesh: &Mesh, reading: &Reading<'_, '_>) {
    let Body::Llm(llm) = &agent.body else { return };
    for model in llm.model.iter().chain(&llm.fallback_models) {
        let report = |message: String, help: String| {
            reading.reader.report(Diagnostic::error(message).at(&model.span).node(&*agent.name).help(help));
        };
        let named = |what: &str| format!("the model `{}` needs `{what}`", &**model);
        match provider(model) {
            None if model.trim().is_empty() => {}
            None if !mesh.providers.local => report(
                format!("it is not known who serves the model `{}`", &**model),
                "for a server of your own write `mesh: {local: {endpoint: ...}}`; others are known by how their names begin: \
                 `gpt-`, `claude-`, `gemini-`, `deepseek-`, `grok-`, `mistral-`"
                    .to_owned(),
            ),
            Some(VERTEX) if !mesh.providers.vertex => {
                report(named("mesh.vertex"), "write `mesh: {vertex: {project: ...}}`".to_owned());
            }
            Some(FOUNDRY) if !mesh.providers.foundry => {
                report(named("mesh.foundry"), "write `mesh: {foundry: {endpoint: ...}}`".to_owned());
            }
            found if !is_served(found) => later(agent, model, reading),
            _ => {}
        }
    }
}

/// Whether requests to a provider can be made.
fn is_served(provider: Option<&str>) -> bool {
    provider.is_some_and(|provider| SERVED.contains(&provider))
}

fn later(agent: &Agent, model: &SourceText, reading: &Reading<'_, '_>) {
    reading.later_of_agent(&agent.name, &model.span, &format!("the model `{}`", &**model));
}
