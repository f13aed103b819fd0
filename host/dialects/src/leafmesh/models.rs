//! Which provider serves a model, by its name.

use std::time::Duration;

use hotcell_graph::Key;
use hotcell_graph::diagnostic::Diagnostic;
use hotcell_graph::ir::ModelServer;

use super::families::{BEDROCK, FOUNDRY, VERTEX, provider};
use super::reading::Reading;
use super::schema::{Agent, Body, Llm, LocalServer, Mesh, Providers};
use crate::document::SourceText;

/// What the names of models of these providers begin with, whose servers know them without it.
const OF_FOUNDRY: &str = "foundry/";
const OF_VERTEX: &str = "vertex/";
const OF_BEDROCK: &str = "bedrock/";
/// The region of Bedrock where nothing is said.
const BEDROCK_REGION: &str = "us-east-1";
/// Why models of Claude at Vertex are not asked.
const CLAUDE_OF_VERTEX: &str = ": hotcell asks Vertex for Chat Completions, which it does not have of Claude; models called `claude-` are \
                                asked at Anthropic";

/// What a model is called where it is. At Vertex its publisher stands before it.
pub(super) fn name(model: &str) -> String {
    match model.strip_prefix(OF_VERTEX) {
        Some(published) if published.contains('/') => published.to_owned(),
        Some(own) => format!("google/{own}"),
        None => [OF_FOUNDRY, OF_BEDROCK].iter().find_map(|start| model.strip_prefix(start)).unwrap_or(model).to_owned(),
    }
}

/// Reports models of an agent that nothing is there for.
pub(super) fn check(agent: &Agent, mesh: &Mesh, reading: &Reading<'_, '_>) {
    let models: Vec<&SourceText> = match &agent.body {
        Body::Llm(llm) => llm.model.iter().chain(&llm.fallback_models).collect(),
        Body::Human(human) => human.intent_model.iter().collect(),
        Body::Programmatic { .. } | Body::External(_) => return,
    };
    let whose = Whose { said: format!("the agent `{}`", agent.name), node: &agent.name };
    models.into_iter().for_each(|model| check_one(model, &whose, mesh, reading));
}

/// Reports the model of a manager that nothing is there for.
pub(super) fn check_manager(model: &SourceText, mesh: &Mesh, reading: &Reading<'_, '_>) {
    check_one(model, &Whose { said: "the manager".to_owned(), node: "manager" }, mesh, reading);
}

/// Who asks a model.
struct Whose<'a> {
    said: String,
    node: &'a str,
}

fn check_one(model: &SourceText, whose: &Whose<'_>, mesh: &Mesh, reading: &Reading<'_, '_>) {
    let report = |message: String, help: String| {
        reading.reader.report(Diagnostic::error(message).at(&model.span).node(whose.node).help(help));
    };
    let later = |why: &str| {
        let said = format!("the model `{}` of {}{why}", &**model, whose.said);
        reading.later_of(whose.node, &model.span, said);
    };
    let named = |what: &str| format!("the model `{}` needs `{what}`", &**model);
    match provider(model) {
        None if model.trim().is_empty() => {}
        None if mesh.providers.local.is_none() => report(
            format!("it is not known who serves the model `{}`", &**model),
            "for a server of your own write `mesh: {local: {endpoint: ...}}`; others are known by how their names begin: \
             `gpt-`, `claude-`, `gemini-`, `deepseek-`, `grok-`, `mistral-`"
                .to_owned(),
        ),
        Some(VERTEX) => match &mesh.providers.vertex {
            None => report(named("mesh.vertex"), "write `mesh: {vertex: {project: ...}}`".to_owned()),
            Some(_) if name(model).contains("claude") => later(CLAUDE_OF_VERTEX),
            Some(_) => {}
        },
        Some(FOUNDRY) => match &mesh.providers.foundry {
            None => report(named("mesh.foundry"), "write `mesh: {foundry: {endpoint: ...}}`".to_owned()),
            Some(Err(reason)) => later(&format!(": {reason}")),
            Some(Ok(_)) => {}
        },
        None => {
            if let Some(LocalServer { address: Err(reason), .. }) = &mesh.providers.local {
                later(&format!(": {reason}"));
            }
        }
        Some(_) => {}
    }
}

/// Where a model is.
pub(super) fn server(model: &str, providers: &Providers) -> Option<ModelServer> {
    match (provider(model), &providers.local) {
        (Some(VERTEX), _) => Some(ModelServer::ProviderAt(VERTEX, Key::from(providers.vertex.as_deref()?))),
        (Some(BEDROCK), _) => {
            let address = providers.bedrock.clone().unwrap_or_else(|| bedrock_address(BEDROCK_REGION));
            Some(ModelServer::ProviderAt(BEDROCK, Key::from(address.as_str())))
        }
        (Some(FOUNDRY), _) => Some(match providers.foundry.as_ref()? {
            Ok(address) => ModelServer::ProviderAt(FOUNDRY, Key::from(address.as_str())),
            Err(reason) => ModelServer::Refused(reason.clone()),
        }),
        (Some(provider), _) => Some(ModelServer::Provider(provider)),
        (None, Some(local)) => Some(match &local.address {
            Ok(address) => ModelServer::Address(Key::from(address.as_str())),
            Err(reason) => ModelServer::Refused(reason.clone()),
        }),
        (None, None) => None,
    }
}

/// How long a request to the models of an agent may take; none as long as their provider takes.
pub(super) fn time(llm: &Llm, providers: &Providers) -> Option<Duration> {
    let is_local = llm.model.iter().any(|model| provider(model).is_none());
    let of_server = providers.local.as_ref().filter(|_| is_local).map(|local| local.timeout);
    llm.time.or(of_server).or(providers.time)
}

/// Where a project at Vertex speaks Chat Completions.
pub(super) fn vertex_address(project: &str, location: &str) -> String {
    let region = if location == "global" { String::new() } else { format!("{location}-") };
    format!("https://{region}aiplatform.googleapis.com/v1/projects/{project}/locations/{location}/endpoints/openapi")
}

/// Where Bedrock is in a region; in the usual one if none is named.
pub(super) fn bedrock_address(region: &str) -> String {
    let region = if region.trim().is_empty() { BEDROCK_REGION } else { region.trim() };
    let end = if region.starts_with("cn-") { ".cn" } else { "" };
    format!("https://bedrock-runtime.{region}.amazonaws.com{end}")
}

/// Where a resource of Foundry speaks Chat Completions.
///
/// # Errors
/// Why it cannot be asked.
pub(super) fn foundry_address(endpoint: &str, version: Option<&str>) -> Result<String, String> {
    if version.is_some_and(|version| !version.trim().is_empty()) {
        return Err(
            "an `api_version` of `mesh.foundry` is not asked for by hotcell: leave it out, for the v1 interface"
                .to_owned(),
        );
    }
    let endpoint = endpoint.trim().trim_end_matches('/');
    let resource = endpoint.strip_suffix("/openai/v1").unwrap_or(endpoint);
    Ok(format!("{resource}/openai/v1"))
}

/// Where a server of one's own speaks Chat Completions: hotcell asks it so, whatever else it speaks.
///
/// # Errors
/// Why it cannot be asked.
pub(super) fn local_address(endpoint: &str, kind: Option<&str>) -> Result<String, String> {
    let endpoint = endpoint.trim().trim_end_matches('/');
    let origin = || {
        let (scheme, rest) = endpoint.split_once("://").unwrap_or(("http", endpoint));
        format!("{scheme}://{}", rest.split('/').next().unwrap_or_default())
    };
    let kind = kind.unwrap_or(match endpoint {
        of_text_generation if of_text_generation.ends_with("/api/v1/generate") => "textgen",
        ollama if ollama.ends_with("/api/generate") || ollama.ends_with("/api/chat") => "ollama",
        hosted if hosted.contains("api-inference.huggingface.co") => "huggingface",
        _ => "openai",
    });
    match kind {
        "openai" => Ok(endpoint.trim_end_matches("/chat/completions").to_owned()),
        // It speaks Chat Completions beside its own interface.
        "ollama" => Ok(format!("{}/v1", origin())),
        other => Err(format!(
            "a server of the type `{other}` is not asked by hotcell yet: give its address of Chat Completions, with `server_type: openai`"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::{bedrock_address, foundry_address, local_address, name, vertex_address};

    #[test]
    fn models_of_foundry_are_where_their_resource_is() {
        let address = "https://plant.openai.azure.com/openai/v1";
        for endpoint in ["https://plant.openai.azure.com", "https://plant.openai.azure.com/", address] {
            for version in [None, Some(" ")] {
                assert_eq!(foundry_address(endpoint, version).as_deref(), Ok(address));
            }
        }
        let refused = foundry_address(address, Some("2024-10-21"));
        assert!(refused.is_err_and(|reason| reason.contains("`api_version`")));
        assert_eq!(["foundry/small", "gpt-4o", "bedrock/x"].map(name), ["small", "gpt-4o", "x"]);
    }

    #[test]
    fn models_of_bedrock_are_where_their_region_is() {
        assert_eq!(
            ["", "eu-west-1", "cn-north-1"].map(bedrock_address),
            [
                "https://bedrock-runtime.us-east-1.amazonaws.com",
                "https://bedrock-runtime.eu-west-1.amazonaws.com",
                "https://bedrock-runtime.cn-north-1.amazonaws.com.cn",
            ]
        );
    }

    #[test]
    fn models_of_vertex_are_where_their_project_is_and_have_publishers() {
        assert_eq!(
            ["us-central1", "global"].map(|location| vertex_address("plant", location)),
            [
                "https://us-central1-aiplatform.googleapis.com/v1/projects/plant/locations/us-central1/endpoints/openapi",
                "https://aiplatform.googleapis.com/v1/projects/plant/locations/global/endpoints/openapi",
            ]
        );
        assert_eq!(
            ["vertex/gemini-2.5-pro", "vertex/meta/llama-4"].map(name),
            ["google/gemini-2.5-pro", "meta/llama-4"]
        );
    }

    #[test]
    fn servers_of_ones_own_are_asked_for_chat_completions() {
        for (endpoint, kind, address) in [
            ("http://localhost:8000/v1/chat/completions", None, Some("http://localhost:8000/v1")),
            ("http://localhost:8000/v1/", Some("openai"), Some("http://localhost:8000/v1")),
            ("http://localhost:11434/api/generate", None, Some("http://localhost:11434/v1")),
            ("http://gpu:11434", Some("ollama"), Some("http://gpu:11434/v1")),
            ("http://localhost:5000/api/v1/generate", None, None),
            ("https://api-inference.huggingface.co/models/x", None, None),
        ] {
            assert_eq!(local_address(endpoint, kind).ok().as_deref(), address, "{endpoint}");
        }
    }
}
