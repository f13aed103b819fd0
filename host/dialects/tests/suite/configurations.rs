//! The world around configurations, and what tests do with them.
#![expect(clippy::print_stderr, reason = "whoever runs the tests is told what could not be tried")]

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hotcell_dialects::agent_spec::{self, Configuration, Part};
use hotcell_dialects::{
    AgentFolder, ComponentState, ComponentType, DeclaredServer, FileState, KnowledgeBase, OwnTool, PluginNodeState,
    ServerState, Surroundings, ToolState, Unavailable,
};
use hotcell_graph::diagnostic::{Diagnostic, SourceFile, render};
use hotcell_graph::ir::PluginNodeKind;
use serde_json::Value as Json;

/// A world with these tools and plugins, MCP servers with a thousand functions whose names begin with `crowd`, and nothing else.
pub(crate) struct World {
    /// None means that every tool is there
    pub(crate) tools: Option<BTreeSet<String>>,
    pub(crate) plugins: BTreeSet<String>,
    /// The MCP servers that a source described
    pub(crate) servers: RefCell<Vec<DeclaredServer>>,
}

impl World {
    pub(crate) fn of_case(case: &Json) -> Self {
        let tools = case["tools"].as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect();
        let plugins = case["plugins"].as_array().into_iter().flatten().filter_map(Json::as_str);
        World { tools: Some(tools), plugins: plugins.map(str::to_owned).collect(), servers: RefCell::default() }
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
        let is_there = self.tools.as_ref().is_none_or(|tools| tools.contains(name));
        if is_there { ToolState::Usable } else { ToolState::Missing }
    }

    fn plugin_node(&self, _name: &str) -> PluginNodeState {
        PluginNodeState::Missing(None)
    }

    fn note_server(&self, server: &DeclaredServer) {
        self.servers.borrow_mut().push(server.clone());
    }

    fn component(&self, plugin: &str, component_type: &str) -> ComponentState {
        const NAME: &str = "hotcell_test_plugin";
        let fields = match component_type {
            "UppercaseNode" => r#"{"suffix": {"type": ["string", "null"], "default": null}}"#,
            "ConsultingNode" => {
                r#"{
                    "model": {"type": "object", "properties": {"component_type": {"enum": ["OpenAiConfig"]}}},
                    "helpers": {"type": "array", "items": {"type": "object"}}
                }"#
            }
            _ => return ComponentState::Missing(None),
        };
        if !self.plugins.contains(NAME) {
            return ComponentState::Missing(None);
        }
        if plugin != NAME {
            return ComponentState::WrongPlugin(NAME.to_owned());
        }
        let object = |text: &str| hotcell_graph::value::parse_json(text).unwrap_or_default();
        ComponentState::Usable(Box::new(ComponentType {
            kind: PluginNodeKind::Node,
            version: "1.0.0".to_owned(),
            fields: object(&format!(r#"{{"type": "object", "properties": {fields}}}"#)),
            inputs: object(r#"{"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}"#),
            outputs: object(
                r#"{"type": "object", "properties": {"shout": {"type": "string"}}, "required": ["shout"]}"#,
            ),
            branches: vec!["next".to_owned()],
        }))
    }

    fn own_tools(&self) -> Result<Vec<OwnTool>, Unavailable> {
        Ok(Vec::new())
    }

    fn model(&self, _name: &str) -> Option<bool> {
        None
    }

    fn mcp_server(&self, name: &str) -> ServerState {
        match name.starts_with("crowd") {
            true => ServerState::Usable((0..1_000).map(|number| format!("f{number}")).collect()),
            false => ServerState::Missing,
        }
    }

    fn agent(&self, _name: &str) -> AgentFolder {
        AgentFolder::Missing
    }

    fn knowledge_base(&self, _node: &str) -> KnowledgeBase {
        KnowledgeBase::NotBuilt
    }

    fn read(&self, _path: &str, _within: Option<&str>) -> Result<Arc<str>, Unavailable> {
        Err(Unavailable::new("nothing is here"))
    }

    fn variable(&self, _name: &str) -> Option<String> {
        None
    }

    fn key_file(&self, path: &str) -> Result<PathBuf, Unavailable> {
        match path.starts_with('/') {
            true => Err(Unavailable::new(format_args!("`{path}` lies outside of the agent's folder"))),
            false => Ok(Path::new("/agent").join(path)),
        }
    }

    fn hook(&self, _name: &str) -> bool {
        false
    }
}

pub(crate) fn source(folder: &Path, name: &str) -> Arc<SourceFile> {
    let text = std::fs::read_to_string(folder.join(name)).unwrap().replace("{HTTP_PORT}", "8080");
    Arc::new(SourceFile { name: name.to_owned(), text })
}

/// The files of parts of a case.
pub(crate) fn parts_of_case(folder: &Path, case: &Json) -> Vec<Part> {
    let part = |part: &Json| {
        let name = part.as_str().or_else(|| part["file"].as_str()).unwrap();
        let rename = part["rename"].as_object().into_iter().flatten();
        let rename = rename.map(|(from, to)| (from.clone(), to.as_str().unwrap().to_owned())).collect();
        Part { file: source(folder, name), rename }
    };
    case["components"].as_array().into_iter().flatten().map(part).collect()
}

/// Reads what a case is about.
pub(crate) fn read_case(folder: &Path, case: &Json) -> (Option<Configuration>, Vec<Diagnostic>) {
    let entry = case["entry"].as_str().unwrap();
    agent_spec::read(&source(folder, entry), &parts_of_case(folder, case), &World::of_case(case))
}

/// The shared acceptance cases, where they lie beside the checkout.
pub(crate) fn shared_cases() -> Vec<(PathBuf, Json)> {
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

/// The file of parts that lies beside a file, if there is one.
pub(crate) fn parts_beside(folder: &Path, stem: &str) -> Option<Arc<SourceFile>> {
    let name = format!("{stem}.parts.json");
    folder.join(&name).exists().then(|| source(folder, &name))
}

/// Writes a configuration and reads it again beside the same parts; what is written the second time is the same.
pub(crate) fn written_and_read_again(configuration: &Configuration, parts: &[Part], world: &World) -> String {
    let text = agent_spec::write(configuration);
    let file = Arc::new(SourceFile { name: "written.json".to_owned(), text: text.clone() });
    let (again, diagnostics) = agent_spec::read(&file, parts, world);
    let again = again.unwrap_or_else(|| panic!("{}\n{text}", render(&diagnostics, false)));
    assert_eq!(agent_spec::write(&again), text);
    text
}

/// A fresh folder for what a test writes.
pub(crate) fn scratch(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// Runs a script of `agent_spec/pyagentspec` and gives what it prints.
pub(crate) fn with_pyagentspec(script: &str, arguments: &[&Path]) -> Option<String> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let python = here.join("../../target/pyagentspec/bin/python");
    if !python.exists() {
        eprintln!("pyagentspec is not installed: run host/dialects/tests/agent_spec/pyagentspec/install.sh");
        return None;
    }
    let script = here.join("tests/agent_spec/pyagentspec").join(script);
    let output = std::process::Command::new(python).arg(script).args(arguments).output().unwrap();
    let shown = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{}{}", shown(&output.stdout), shown(&output.stderr));
    Some(shown(&output.stdout))
}
