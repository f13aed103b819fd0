//! What a front end may ask about the world around a source file.

mod answers;
mod declared;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use hotcell_graph::ir::Retry;
use thiserror::Error;

pub use answers::{
    AgentFolder, CALLBACK, Called, ComponentState, ComponentType, DeclaredNode, FileState, Import, Imported,
    KnowledgeBase, OwnTool, PluginNodeState, SYNC, ServerState, ToolMarks, ToolState,
};
pub use declared::{DeclaredComponent, DeclaredServer, MutualTls, ServerWay};

/// The world around a source file, as far as checks need it. Whoever loads the file answers; front ends do no I/O.
///
/// Paths are relative to the folder of the source file, with `/` between folders, and never leave it as written.
pub trait Surroundings {
    /// Whether a script file is there.
    fn script(&self, path: &str) -> FileState;

    /// Whether a file or folder of documents is there.
    fn documents(&self, path: &str) -> FileState;

    /// Whether the host has a tool of that name, given without file extension.
    fn tool(&self, name: &str) -> ToolState;

    /// The tool that a source means by a name which need not be that of a tool here.
    fn named_tool(&self, name: &str) -> Imported {
        let normal = normal_name(name);
        for name in [name, &normal] {
            match self.tool(name) {
                ToolState::Usable => return Imported::Usable(name.to_owned()),
                ToolState::Unusable(reason) => return Imported::Unusable(reason),
                ToolState::Missing => {}
            }
        }
        Imported::Missing { searched: vec![format!("the tool `{normal}`")] }
    }

    /// The JSON schema of a type of another language, by its import path, where the host was told what it is.
    fn type_schema(&self, _path: &str) -> Option<Arc<str>> {
        None
    }

    /// The JSON schema of a model that a module of the project's code defines, as that code says it: nothing if there is no such
    /// module.
    ///
    /// # Errors
    /// When the module cannot be used, or has no such model, with the reason.
    fn model_schema(&self, module: &str, model: &str) -> Result<Option<Arc<str>>, Unavailable> {
        let _ = (module, model);
        Ok(None)
    }

    /// Whether texts with placeholders are to be read as templates of the Jinja language.
    fn renders_jinja(&self) -> bool {
        false
    }

    /// Whether `agent` nodes of Loki graphs may have a fallback.
    fn agents_fall_back(&self) -> bool {
        false
    }

    /// The embedding model that the operator names for files that cannot.
    fn embedding_model(&self) -> Option<String> {
        None
    }

    /// A function of a module of the project's code, which is found from the project's root, as a tool: nothing if there is no
    /// such module, or it has no such function.
    fn function(&self, module: &str, function: &str, called: Called) -> Imported {
        let _ = (function, called);
        Imported::Missing { searched: vec![format!("`{}.py`", module.replace('.', "/"))] }
    }

    /// The names of the functions that a module of the project's code defines; none if there is no such module. The error is why it
    /// cannot be used.
    fn functions(&self, module: &str) -> Result<Vec<String>, Unavailable> {
        let _ = module;
        Ok(Vec::new())
    }

    /// What the project's code says of such a tool.
    fn tool_marks(&self, tool: &str) -> ToolMarks {
        let _ = tool;
        ToolMarks::default()
    }

    /// What an import path of another ecosystem means here.
    fn import(&self, what: Import, path: &str) -> Imported {
        let name = path.rsplit(['.', ':']).next().unwrap_or_default();
        let missing = || Imported::Missing { searched: vec![format!("everything within reach, for `{name}`")] };
        match what {
            Import::Tool => match self.tool(name) {
                ToolState::Usable => Imported::Usable(name.to_owned()),
                ToolState::Missing => missing(),
                ToolState::Unusable(reason) => Imported::Unusable(reason),
            },
            Import::Hook if self.hook(name) => Imported::Usable(name.to_owned()),
            Import::Hook | Import::Agent => missing(),
        }
    }

    /// What a plugin offers under a full name, `plugin/name`.
    fn plugin_node(&self, name: &str) -> PluginNodeState;

    /// The component type that a plugin provides. The name of the plugin is empty where the source names none.
    fn component(&self, plugin: &str, component_type: &str) -> ComponentState;

    /// The tools that files of the agent's own folder define, in their order. The error says what is wrong with such a file.
    fn own_tools(&self) -> Result<Vec<OwnTool>, Unavailable>;

    /// The file of the project that is one tool of this name (`functions/tools/NAME.sh`).
    fn tool_file(&self, _name: &str) -> Imported {
        Imported::Missing { searched: Vec::new() }
    }

    /// Whether a tool runs commands in hotcell's own sealed shell.
    fn is_sealed_shell(&self, _tool: &str) -> bool {
        false
    }

    /// The name and the description of a tool as models see them, by the name under which the host knows it.
    fn shown_tool(&self, _tool: &str) -> Option<(String, String)> {
        None
    }

    /// The folder in which the agent's own tools work, as they see it.
    fn working_folder(&self) -> String {
        "/".to_owned()
    }

    /// Whether a model of that name exists; none when that cannot be told before it is called.
    fn model(&self, name: &str) -> Option<bool>;

    /// An MCP server that the graph may use.
    fn mcp_server(&self, name: &str) -> ServerState;

    /// An MCP server that the source itself describes, from now on to be found under its name.
    fn declare_server(&self, server: &DeclaredServer) -> ServerState {
        ServerState::Unusable(format!("the MCP server `{}` cannot be reached from here", server.name))
    }

    /// Takes note of an MCP server that the source itself describes, without reaching for it: what is wrong with it shows
    /// when it is called.
    fn note_server(&self, server: &DeclaredServer);

    /// Says how often a function of an MCP server is called that the source itself describes, by its full name
    /// (`mcp:server/function`), in place of what was said of its server.
    fn retry_function(&self, _function: &str, _retry: &Retry) {}

    /// Sets up a component that comes with hotcell as the source describes it; from now on its tools are found under
    /// [`DeclaredComponent::tool`]. The error says why that cannot be.
    fn declare_component(&self, component: &DeclaredComponent) -> Result<(), Unavailable> {
        Err(Unavailable::new(format_args!("the component `{}` cannot be set up here", component.component)))
    }

    /// The full names of the node types with this name that plugins offer.
    fn node_types(&self, _name: &str) -> Vec<String> {
        Vec::new()
    }

    /// What the folder of another agent holds.
    fn agent(&self, name: &str) -> AgentFolder;

    /// The text of a skill, `skills/NAME/SKILL.md` in the agent's folder or in one above it that is a root of its project, and what
    /// to call the file. The name is one of letters, digits, `-` and `_`.
    ///
    /// # Errors
    /// When there is none that can be read, with the reason.
    fn skill(&self, name: &str) -> Result<(String, Arc<str>), Unavailable> {
        let path = format!("skills/{name}/SKILL.md");
        Ok((path.clone(), self.read(&path, None)?))
    }

    /// The agents beside this one that belong to the same project, sorted by their names.
    fn agents(&self) -> Vec<String> {
        Vec::new()
    }

    /// The knowledge base of a retrieval node.
    fn knowledge_base(&self, node: &str) -> KnowledgeBase;

    /// The text of a file that the source names, relative to the source's own folder or absolute; it may be anywhere, or
    /// only below the folder `within`. A path that is the address of a web server (`https://...`) is fetched if that is
    /// granted. The error is why there is no text.
    fn read(&self, path: &str, within: Option<&str>) -> Result<Arc<str>, Unavailable>;

    /// The path on this machine of a file with a key or a certificate that the source names. It need not be there yet. The error
    /// says why the source may not name it, and what would allow it.
    fn key_file(&self, path: &str) -> Result<PathBuf, Unavailable> {
        Err(Unavailable::new(format_args!("`{path}` cannot be read from here")))
    }

    /// The value of a variable of the environment.
    fn variable(&self, name: &str) -> Option<String>;

    /// Whether there is a time zone of that name.
    fn has_time_zone(&self, name: &str) -> bool {
        name == "UTC"
    }

    /// Whether a plugin of that name guards the agent with hooks.
    fn hook(&self, name: &str) -> bool;
}

/// Why something around a source file is not to be had, in words that a diagnostic can have.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct Unavailable(String);

impl Unavailable {
    /// With this reason.
    pub fn new(reason: impl fmt::Display) -> Self {
        Unavailable(reason.to_string())
    }
}

/// A name in the form in which names of tools are compared: small letters and digits, `_` for everything between them and
/// before a capital letter that follows a small one. `Gather user-information` and `gatherUserInformation` are
/// `gather_user_information`.
pub fn normal_name(name: &str) -> String {
    let mut normal = String::with_capacity(name.len());
    let mut after_small = false;
    for letter in name.chars() {
        let is_part = letter.is_alphanumeric();
        if (!is_part || (letter.is_uppercase() && after_small)) && !normal.ends_with('_') && !normal.is_empty() {
            normal.push('_');
        }
        if is_part {
            normal.extend(letter.to_lowercase());
        }
        after_small = letter.is_lowercase() || letter.is_numeric();
    }
    normal.truncate(normal.trim_end_matches('_').len());
    normal
}

#[cfg(test)]
mod tests {
    use super::normal_name;

    #[test]
    fn names_in_normal_form() {
        for (name, normal) in [
            ("Gather user information tool", "gather_user_information_tool"),
            ("getWeather", "get_weather"),
            ("get-weather", "get_weather"),
            ("get__weather ", "get_weather"),
            ("HTTP_get", "http_get"),
            ("  (Über) 2nd", "über_2nd"),
            ("v2Search", "v2_search"),
            ("!?", ""),
        ] {
            assert_eq!(normal_name(name), normal, "{name}");
        }
    }
}
