//! Agent Spec configurations are read, checked and written. `agent_spec/` has the cases that are data.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hotcell_dialects::agent_spec::{self, Configuration, Part};
use hotcell_dialects::{
    AgentFolder, ComponentState, ComponentType, Dialect, FileState, KnowledgeBase, OfferState, ServerState,
    Surroundings, ToolState, recognise,
};
use hotcell_graph::diagnostic::{Diagnostic, Severity, SourceFile, render};
use hotcell_graph::ir::OfferKind;
use serde_json::Value as Json;

/// A world with these tools and plugins, and nothing else.
struct World {
    tools: BTreeSet<String>,
    plugins: BTreeSet<String>,
}

impl World {
    fn of_case(case: &Json) -> Self {
        let tools = case["tools"].as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect();
        let plugins = case["plugins"].as_array().into_iter().flatten().filter_map(Json::as_str);
        World { tools, plugins: plugins.map(str::to_owned).collect() }
    }
}

impl Surroundings for World {
    fn script(&self, _path: &str) -> FileState {
        FileState::Missing
    }

    fn documents(&self, _path: &str) -> FileState {
        FileState::Missing
    }

    fn tool(&self, name: &str) -> ToolState {
        if self.tools.contains(name) { ToolState::Usable } else { ToolState::Missing }
    }

    fn offer(&self, _name: &str) -> OfferState {
        OfferState::Missing(None)
    }

    fn note_server(&self, _server: &DeclaredServer) {}

    fn component(&self, plugin: &str, component_type: &str) -> ComponentState {
        const NAME: &str = "hotcell_test_plugin";
        if component_type != "UppercaseNode" || !self.plugins.contains(NAME) {
            return ComponentState::Missing(None);
        }
        if plugin != NAME {
            return ComponentState::WrongPlugin(NAME.to_owned());
        }
        let object = |text: &str| hotcell_graph::value::parse_json(text).unwrap_or_default();
        ComponentState::Usable(Box::new(ComponentType {
            kind: OfferKind::Node,
            version: "1.0.0".to_owned(),
            fields: object(
                r#"{"type": "object", "properties": {"suffix": {"type": ["string", "null"], "default": null}}}"#,
            ),
            inputs: object(r#"{"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}"#),
            outputs: object(
                r#"{"type": "object", "properties": {"shout": {"type": "string"}}, "required": ["shout"]}"#,
            ),
            branches: vec!["next".to_owned()],
        }))
    }

    fn own_tool(&self, _name: &str) -> bool {
        false
    }

    fn model(&self, _name: &str) -> Option<bool> {
        None
    }

    fn mcp_server(&self, _name: &str) -> ServerState {
        ServerState::Missing
    }

    fn agent(&self, _name: &str) -> AgentFolder {
        AgentFolder::Missing
    }

    fn knowledge_base(&self, _node: &str) -> KnowledgeBase {
        KnowledgeBase::NotBuilt
    }

    fn read(&self, _path: &str, _within: Option<&str>) -> Result<Arc<str>, String> {
        Err("nothing is here".to_owned())
    }

    fn variable(&self, _name: &str) -> Option<String> {
        None
    }

    fn hook(&self, _name: &str) -> bool {
        false
    }
}

fn source(folder: &Path, name: &str) -> Arc<SourceFile> {
    let text = std::fs::read_to_string(folder.join(name)).unwrap().replace("{HTTP_PORT}", "8080");
    Arc::new(SourceFile { name: name.to_owned(), text })
}

/// Reads the file `entry` of a case, or another one of it.
fn read(folder: &Path, case: &Json, entry: &str) -> (Option<Configuration>, Vec<Diagnostic>) {
    let part = |part: &Json| {
        let name = part.as_str().or_else(|| part["file"].as_str()).unwrap();
        let rename = part["rename"].as_object().into_iter().flatten();
        let rename = rename.map(|(from, to)| (from.clone(), to.as_str().unwrap().to_owned())).collect();
        Part { file: source(folder, name), rename }
    };
    let parts: Vec<Part> = case["components"].as_array().into_iter().flatten().map(part).collect();
    agent_spec::read(&source(folder, entry), &parts, &World::of_case(case))
}

/// The shared acceptance cases, where they lie beside the checkout.
fn shared_cases() -> Vec<(PathBuf, Json)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/cases/agent-spec");
    let Ok(entries) = std::fs::read_dir(&folder) else {
        eprintln!("the shared cases are not beside the checkout");
        return Vec::new();
    };
    let mut folders: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    folders.sort();
    let case = |folder: PathBuf| {
        let text = std::fs::read_to_string(folder.join("case.json")).unwrap();
        (folder, serde_json::from_str(&text).unwrap())
    };
    folders.into_iter().map(case).collect()
}

#[test]
fn shared_cases_load_or_are_refused_with_what_they_name() {
    let mut wrong = Vec::new();
    for (folder, case) in shared_cases() {
        let entry = case["entry"].as_str().unwrap();
        let text = std::fs::read_to_string(folder.join(entry)).unwrap();
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        if recognise(entry, &text) != Some(Dialect::AgentSpec) {
            wrong.push(format!("{name}: not recognised"));
            continue;
        }
        let (configuration, diagnostics) = read(&folder, &case, entry);
        let shown = render(&diagnostics, false);
        let is_refused = case["expect"]["status"].as_str() == Some("rejected");
        if is_refused != configuration.is_none() {
            wrong.push(format!("{name}: {}\n{shown}", if is_refused { "not refused" } else { "refused" }));
            continue;
        }
        let errors: String = diagnostics
            .iter()
            .filter(|diagnostic| diagnostic.severity == Severity::Error)
            .map(|diagnostic| format!("{diagnostic}\n").to_lowercase())
            .collect();
        for fragment in case["expect"]["error_contains"].as_array().into_iter().flatten().filter(|_| is_refused) {
            if !errors.contains(fragment.as_str().unwrap()) {
                wrong.push(format!("{name}: {fragment} is not in\n{errors}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} are wrong\n{}", wrong.len(), wrong.join("\n"));
}
