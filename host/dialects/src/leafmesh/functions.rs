//! The functions that work for agents, and the tools of models: what others install, and the code of the project.
//!
//! A project has the function of an agent in a file that is named for it, below `agency` (or where `auto_discover` says) or beside
//! the configuration, and tools for everybody in `agency/tools.py`. What decorators of such a function prepare and shape stands beside
//! it under names of its own.

use std::sync::Arc;

use hotcell_graph::ir::{Arguments, Expression, Tool, ToolAction, ToolKind};

use super::expressions::object;
use crate::document::SourceText;
use crate::surroundings::{Called, Imported, Surroundings, ToolMarks, ToolState};

/// The module with the tools that all agents of a project may have.
const TOOLS: &str = "agency.tools";

/// The module in which projects have the functions of several agents together.
const TOGETHER: &str = "external_agents";

/// What works for an agent.
pub(super) enum Function {
    /// A tool with the name of the agent; it is given the input
    Tool,
    /// A function of the project's code, by its name as a tool; it is given the reply, the input and the context
    Code {
        /// The function
        name: String,
        /// What prepares data before the model is asked
        prepares: Option<String>,
    },
}

/// Where the functions of agents are (`auto_discover`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CodeFolder {
    /// The package, as it is imported; empty for the folder of the configuration
    pub(super) package: String,
    /// How the names of its modules begin and end
    pub(super) names: (String, String),
}

impl Default for CodeFolder {
    fn default() -> Self {
        CodeFolder { package: "agency".to_owned(), names: (String::new(), String::new()) }
    }
}

impl CodeFolder {
    /// The modules that may have the function of an agent, the first to look at first.
    fn modules(&self, agent: &str) -> Vec<String> {
        let (begin, end) = (self.names.0.as_str(), self.names.1.as_str());
        let fits =
            |name: &String| name.len() >= begin.len() + end.len() && name.starts_with(begin) && name.ends_with(end);
        let within = |name: String| match self.package.is_empty() {
            true => name,
            false => format!("{}.{name}", self.package),
        };
        let names = [agent.to_owned(), format!("{agent}_agent"), TOGETHER.to_owned()];
        let named = names.into_iter().filter(fits).map(within);
        // Beside the configuration there is the file with the name of the agent, too.
        named.chain([agent.to_owned()]).collect()
    }

    /// The file in which the function of an agent would be.
    fn file(&self, agent: &str) -> String {
        let module = self.modules(agent).into_iter().next().unwrap_or_default();
        format!("{}.py", module.replace('.', "/"))
    }
}

/// What works for an agent of this name; nothing if there is none. The error is why it cannot be used.
pub(super) fn of_agent(
    agent: &str,
    folder: &CodeFolder,
    surroundings: &dyn Surroundings,
) -> Result<Option<Function>, String> {
    match surroundings.tool(agent) {
        ToolState::Usable => return Ok(Some(Function::Tool)),
        ToolState::Unusable(reason) => return Err(reason),
        ToolState::Missing => {}
    }
    let Some((module, name)) = code(agent, folder, surroundings)? else { return Ok(None) };
    let prepares = in_module(&module, &format!("{agent}__pre_compose"), surroundings)?;
    Ok(Some(Function::Code { name, prepares }))
}

/// The module with the function of an agent, if code of the project works for it.
pub(super) fn module(agent: &str, folder: &CodeFolder, surroundings: &dyn Surroundings) -> Option<String> {
    if surroundings.tool(agent) != ToolState::Missing {
        return None;
    }
    // One that cannot be used is told where its agent is looked at.
    code(agent, folder, surroundings).ok().flatten().map(|(module, _)| module)
}

/// What shapes that which an agent gives for another one, if its module has something for that.
pub(super) fn shaper(module: &str, agent: &str, target: &str, surroundings: &dyn Surroundings) -> Option<String> {
    in_module(module, &format!("{agent}__compose__{target}"), surroundings).ok().flatten()
}

/// The function of an agent in the code of the project, after its module.
fn code(agent: &str, folder: &CodeFolder, surroundings: &dyn Surroundings) -> Result<Option<(String, String)>, String> {
    for module in folder.modules(agent) {
        if let Some(name) = in_module(&module, agent, surroundings)? {
            return Ok(Some((module, name)));
        }
    }
    Ok(None)
}

fn in_module(module: &str, function: &str, surroundings: &dyn Surroundings) -> Result<Option<String>, String> {
    match surroundings.function(module, function, Called::ByPlace) {
        Imported::Usable(name) => Ok(Some(name)),
        Imported::Missing { .. } => Ok(None),
        Imported::Unusable(reason) => Err(reason),
    }
}

/// Where the function of an agent would be, in words.
pub(super) fn places(agent: &str, folder: &CodeFolder) -> String {
    format!(
        "write it as `def {agent}(llm_response, input_data, context)` into `{}`, or install a plugin that exports a tool `{agent}`",
        folder.file(agent)
    )
}

/// Where the function that answers for a person would be, in words.
pub(super) fn handler_places(agent: &str, folder: &CodeFolder) -> String {
    format!(
        "write it as `def {agent}(context, session_id, timeout)` into `{}`, or install a plugin that exports a tool `{agent}`",
        folder.file(agent)
    )
}

/// The names of the project's tools of these categories; the error is why they are not known.
pub(super) fn of_categories(categories: &[SourceText], surroundings: &dyn Surroundings) -> Result<Vec<String>, String> {
    if categories.is_empty() {
        return Ok(Vec::new());
    }
    let is_wanted = |name: &String| match surroundings.function(TOOLS, name, Called::ByName) {
        Imported::Usable(found) => {
            let category = surroundings.tool_marks(&found).category;
            category.is_some_and(|category| categories.iter().any(|wanted| **wanted == *category))
        }
        Imported::Missing { .. } | Imported::Unusable(_) => false,
    };
    let known = surroundings.functions(TOOLS).map_err(|reason| reason.to_string())?;
    Ok(known.into_iter().filter(is_wanted).collect())
}

/// A tool of a model.
pub(super) enum ModelTool {
    /// By the name under which the host has it, with what the project's code says of it
    Usable(String, ToolMarks),
    /// There is none
    Missing,
    /// There is one and it cannot be used, for this reason
    Unusable(String),
}

/// A tool that an agent names for its model.
pub(super) fn model_tool(name: &str, agent: &str, surroundings: &dyn Surroundings) -> ModelTool {
    match surroundings.tool(name) {
        ToolState::Usable => return ModelTool::Usable(name.to_owned(), ToolMarks::default()),
        ToolState::Unusable(reason) => return ModelTool::Unusable(reason),
        ToolState::Missing => {}
    }
    let found = match surroundings.function(TOOLS, name, Called::ByName) {
        Imported::Usable(found) => found,
        Imported::Missing { .. } => return ModelTool::Missing,
        Imported::Unusable(reason) => return ModelTool::Unusable(reason),
    };
    let marks = surroundings.tool_marks(&found);
    match &marks.allowed {
        Some(allowed) if !allowed.iter().any(|allowed| allowed == agent) => ModelTool::Unusable(format!(
            "its `allowed_agents` are {}",
            allowed.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
        )),
        _ => ModelTool::Usable(found, marks),
    }
}

/// Calls a function of the project's code.
pub(super) fn call(name: &str, arguments: Vec<Expression>, bind: &'static str) -> ToolAction {
    call_tool(name, object([("arguments", Expression::List(arguments))]), bind)
}

/// Calls a tool by the name under which the host has it.
pub(super) fn call_tool(name: &str, inputs: Expression, bind: &'static str) -> ToolAction {
    let tool = Tool {
        name: name.into(),
        spoken: name.to_owned(),
        description: String::new(),
        inputs: Vec::new(),
        kind: ToolKind::Host(name.to_owned()),
        confirm: false,
    };
    ToolAction { tool: Arc::new(tool), inputs, arguments: Arguments::LetIn, bind }
}
