//! The world that the tests pretend to be in.

use hotcell_dialects::{
    AgentFolder, ComponentState, DeclaredComponent, DeclaredNode, DeclaredServer, FileState, KnowledgeBase, OwnTool,
    PluginNodeState, ServerState, Surroundings, ToolState, Unavailable,
};
use hotcell_graph::Value;
use hotcell_graph::ir::PluginNodeKind;

/// Scripts and documents are there unless their name says otherwise; see each method for the rest.
pub(crate) struct Fake;

impl Surroundings for Fake {
    fn declare_component(&self, _component: &DeclaredComponent) -> Result<(), Unavailable> {
        Ok(())
    }

    fn script(&self, path: &str) -> FileState {
        state_by_name(path)
    }

    fn documents(&self, path: &str) -> FileState {
        state_by_name(path)
    }

    fn tool(&self, name: &str) -> ToolState {
        match name {
            "search" | "add" => ToolState::Usable,
            "held" => ToolState::Unusable("the tool `held` cannot be used: nobody has decided".to_owned()),
            _ => ToolState::Missing,
        }
    }

    fn plugin_node(&self, name: &str) -> PluginNodeState {
        match name {
            "acme:geo/look" => {
                let object = |text: &str| hotcell_graph::value::parse_json(text).unwrap_or_default();
                PluginNodeState::Usable(DeclaredNode {
                    kind: PluginNodeKind::Node,
                    with: object(r#"{"properties":{"units":{}}}"#),
                    inputs: object(r#"{"properties":{"place":{}},"required":["place"]}"#),
                    branches: vec!["found".to_owned(), "missing".to_owned()],
                    modes: Vec::new(),
                })
            }
            "acme:geo/find" => PluginNodeState::Usable(DeclaredNode {
                kind: PluginNodeKind::Tool,
                with: Value::Null,
                inputs: Value::Null,
                branches: Vec::new(),
                modes: Vec::new(),
            }),
            "held/look" => PluginNodeState::Unusable("plugin `held` waits".to_owned()),
            name => PluginNodeState::Missing(name.starts_with("acme:geo/").then(|| "acme:geo/look".to_owned())),
        }
    }

    fn component(&self, _plugin: &str, _component_type: &str) -> ComponentState {
        ComponentState::Missing(None)
    }

    fn own_tools(&self) -> Result<Vec<OwnTool>, Unavailable> {
        Ok(Vec::new())
    }

    fn model(&self, name: &str) -> Option<bool> {
        name.starts_with("test:").then_some(matches!(name, "test:large" | "test:small"))
    }

    fn mcp_server(&self, name: &str) -> ServerState {
        match name {
            "library" => ServerState::Usable(vec!["lend".to_owned(), "search_books".to_owned()]),
            "waiting" => ServerState::Unusable("the MCP server `waiting` is a program that nobody allowed".to_owned()),
            _ => ServerState::Missing,
        }
    }

    fn note_server(&self, _server: &DeclaredServer) {}

    fn declare_server(&self, server: &DeclaredServer) -> ServerState {
        match &*server.name {
            "held" => {
                ServerState::Unusable("the MCP server `held` may not be used here: nobody has decided".to_owned())
            }
            _ => ServerState::Usable(vec!["lend".to_owned(), "hooks.before".to_owned()]),
        }
    }

    fn node_types(&self, name: &str) -> Vec<String> {
        match name {
            "look" => vec!["acme:geo/look".to_owned()],
            "twice" => vec!["a/twice".to_owned(), "b/twice".to_owned()],
            _ => Vec::new(),
        }
    }

    fn agent(&self, name: &str) -> AgentFolder {
        match name {
            "helper" => AgentFolder::Config,
            "empty" => AgentFolder::Neither,
            "both" => AgentFolder::Both,
            _ => AgentFolder::Missing,
        }
    }

    fn read(&self, path: &str, within: Option<&str>) -> Result<std::sync::Arc<str>, Unavailable> {
        let card = r#"{"id": "weather", "name": "Weather", "files": ["SKILL.md", "references/units.md"],
            "local_tools": {"search": {"id": "search", "import_path": "tools.search"}}}"#;
        match path {
            path if path.contains("missing") => Err(Unavailable::new("it is not there")),
            path if within.is_some() && path.contains("..") => {
                Err(Unavailable::new("it is outside of the folder of the skill"))
            }
            path if path.ends_with("card.json") => Ok(card.into()),
            path => Ok(format!("the text of {path}").into()),
        }
    }

    fn variable(&self, name: &str) -> Option<String> {
        match name {
            "GREETING" => Some("hello".to_owned()),
            "LOCAL_MODEL_TIMEOUT" => Some("7".to_owned()),
            _ => None,
        }
    }

    fn hook(&self, name: &str) -> bool {
        name == "Guard"
    }

    fn knowledge_base(&self, _node: &str) -> KnowledgeBase {
        KnowledgeBase::NotBuilt
    }
}

fn state_by_name(path: &str) -> FileState {
    if path.contains("missing") {
        FileState::Missing
    } else if path.contains("outside") {
        FileState::Outside
    } else {
        FileState::Present
    }
}
