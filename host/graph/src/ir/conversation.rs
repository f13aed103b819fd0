//! Nodes that take part in a conversation which is kept in the state (see [`crate::conversation`]).

use std::sync::Arc;

use super::{
    CallLimits, Condense, Expression, Forbidden, KeptArguments, ModelSettings, NestedLoop, Retry, Submit, Tool,
    ToolChoice, Window,
};
use crate::conversation::Speaker;
use crate::todo::TodoTool;
use crate::value::{Key, Value};

/// Asks a model once: one step of an [`super::AgentLoop`]. The answer that updates see is the model's message, with `role` beside
/// `type`.
#[derive(Clone, Debug)]
pub struct ConverseAction {
    /// Settings of this call
    pub settings: ModelSettings,
    /// What is asked where this model refuses for good, one after the other
    pub fallbacks: Vec<ModelSettings>,
    /// What is done about a request that is refused
    pub retry: Retry,
    /// What the model is told, in order
    pub prompt: Vec<PromptPart>,
    /// How much of its lists of messages the model is told
    pub window: Option<Window>,
    /// What of the first of its lists of messages the model is told in fewer words, one after the other
    pub condense: Vec<Condense>,
    /// What the model may call; whoever calls it is a node of its own
    pub tools: Vec<Callable>,
    /// What is kept of arguments
    pub arguments: KeptArguments,
    /// A JSON schema that the text of the answer has to follow
    pub output_schema: Option<Value>,
    /// The setting of the source, for errors, by which an answer is refused that does not follow that schema; none if it is only told
    pub enforced_by: Option<&'static str>,
    /// Whether a reply without text and without calls is refused
    pub needs_text: bool,
    /// Texts that no reply may have
    pub forbidden: Forbidden,
    /// The state key with the number of attempts made, if the attempts of several requests are counted together
    pub attempts: Option<Key>,
    /// What a loop with a graph of its own keeps for itself; none where the request is no step of one
    pub steps: Option<OwnSteps>,
    /// What stands before the reason of a refusal
    pub refused_as: Option<String>,
    /// The name under which updates see the answer
    pub bind: &'static str,
}

/// What a loop with a graph of its own keeps for itself.
#[derive(Clone, Debug, PartialEq)]
pub struct OwnSteps {
    /// The state key with the number of requests
    pub requests: Key,
    /// The state key with what stands for the oldest messages
    pub summary: Key,
    /// How many requests there may be
    pub most: Option<u32>,
    /// What has to hold for a reply that calls no tool to end the loop
    pub until: Option<Expression>,
    /// The state key with the number of calls of tools, and how many there may be: after that no tools are offered
    pub calls: Option<(Key, u32)>,
    /// The state key with the model that answered, where no other one is asked after that
    pub model: Option<Key>,
    /// What the first request has to call
    pub choice: Option<ToolChoice>,
}

/// A part of what a model is told.
#[derive(Clone, Debug)]
pub struct PromptPart {
    /// What it is called where it is written, for errors
    pub name: String,
    /// What is said
    pub said: Said,
}

/// What is said in a part of a prompt.
#[derive(Clone, Debug)]
pub enum Said {
    /// One message with the text of this
    Text(Speaker, Expression),
    /// The messages of a list, as they are
    Messages(Expression),
}

impl PromptPart {
    /// A message with this text.
    pub fn text(name: impl Into<String>, speaker: Speaker, text: Expression) -> Self {
        PromptPart { name: name.into(), said: Said::Text(speaker, text) }
    }

    /// The messages of a list.
    pub fn messages(name: impl Into<String>, list: Expression) -> Self {
        PromptPart { name: name.into(), said: Said::Messages(list) }
    }
}

/// Something that a model may call.
#[derive(Clone, Debug, PartialEq)]
pub enum Callable {
    /// A tool that the host has
    Tool(String),
    /// A tool that the host has, in other words
    Described {
        /// The tool
        tool: String,
        /// What the model calls it
        name: String,
        /// What the model is told about it; none for what the tool says itself
        description: Option<String>,
        /// The JSON schema of its arguments; none for what the tool says itself
        parameters: Option<Value>,
        /// Whether a person has to allow each call
        confirm: bool,
    },
    /// Another agent: it is given a text and answers with one
    Agent {
        /// The agent
        agent: Key,
        /// What the model calls it
        name: String,
        /// What the model is told about it
        description: String,
    },
    /// Looks into the graph's skills
    Skills(SkillTool),
    /// The tools of every skill that was loaded
    LoadedSkills,
    /// Keeps the to-do list of a loop
    Todo {
        /// What it does
        tool: TodoTool,
        /// What the model calls it
        name: String,
        /// The state key with the list
        list: Key,
    },
    /// Has other agents work
    Delegate {
        /// What it does
        tool: DelegateTool,
        /// What the model calls it
        name: String,
        /// The agents
        team: Arc<Team>,
    },
    /// A tool that the graph defines
    Defined(Arc<Tool>),
    /// Hands in what is owed
    Submit(Arc<Submit>),
    /// Another agent that the graph defines: it is given a text and answers with one
    Loop(Arc<NestedLoop>),
}

impl Callable {
    /// The agents that it has work.
    pub fn team(&self) -> Option<&Arc<Team>> {
        match self {
            Callable::Delegate { team, .. } => Some(team),
            _ => None,
        }
    }
}

/// Agents that a model may have work, each piece of work under an id of its own.
#[derive(Clone, Debug, PartialEq)]
pub struct Team {
    /// Their names
    pub agents: Vec<Key>,
    /// Whether all of them have to be there for the graph to run; otherwise only work for one that is not there fails
    pub needed: bool,
    /// The state key with what they were given and what came of it
    pub work: Key,
}

/// What a model may do with a team.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DelegateTool {
    /// Lists the agents
    Agents,
    /// Gives an agent work, which is done before the model goes on
    Start,
    /// Says what came of a piece of work
    Result,
    /// Lists the pieces of work
    Work,
}

impl DelegateTool {
    /// What a model is told about it.
    pub fn description(self) -> &'static str {
        match self {
            DelegateTool::Agents => "Lists the agents that can be given work",
            DelegateTool::Start => "Gives an agent work, and says by which id its result can be had",
            DelegateTool::Result => "Gives the result of an agent's work",
            DelegateTool::Work => "Lists the work that was given to agents",
        }
    }
}

/// Answers the calls that the last message of a conversation asks for, each with a message of a tool.
#[derive(Clone, Debug)]
pub struct AnswerCallsAction {
    /// The state key with the conversation
    pub conversation: Key,
    /// What may be called; for everything else the model is told that it may not
    pub tools: Vec<Callable>,
    /// What holds for the calls
    pub limits: CallLimits,
    /// The state key with how many calls there were, if they are counted
    pub counted: Option<Key>,
    /// Whether the node fails when a tool does; otherwise the model is told
    pub tool_failure_is_fatal: bool,
}

/// Loads skills without a model asking for it.
#[derive(Clone, Debug)]
pub struct LoadSkillsAction {
    /// The state key with the conversation, which gets the skills' texts
    pub conversation: Key,
    /// A list of objects with `id` and, if need be, `version`
    pub skills: Expression,
}

/// Writes the entries of an object, each under its key.
#[derive(Clone, Debug)]
pub struct SpreadAction {
    /// The object
    pub value: Expression,
    /// The keys that it may have; none for any
    pub keys: Option<Arc<[Key]>>,
}

/// Instructions that a model loads when it needs them, with files and tools of their own.
#[derive(Clone, Debug, PartialEq)]
pub struct Skill {
    /// Its name for models
    pub id: String,
    /// Its version
    pub version: String,
    /// Its name for people
    pub name: String,
    /// What it is good for
    pub description: String,
    /// The instructions
    pub text: Arc<str>,
    /// Its files: paths as they are listed, and texts
    pub files: Vec<(String, Arc<str>)>,
    /// The tools that can be called once it is loaded
    pub tools: Vec<String>,
}

/// The skills of a graph.
#[derive(Clone, Debug)]
pub struct Skills {
    /// All of them
    pub all: Vec<Skill>,
    /// The state key that says which are loaded: an object, `true` under the id of a loaded skill
    pub loaded_key: Key,
    /// How models speak of them
    pub words: SkillWords,
}

/// What models call the tools that look into skills.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SkillWords {
    /// Other names of tools than those of [`SkillTool::name`]
    pub names: &'static [(SkillTool, &'static str)],
    /// The argument with the id of a skill
    pub id: &'static str,
    /// Whether skills have versions
    pub has_versions: bool,
}

impl Default for SkillWords {
    fn default() -> Self {
        SkillWords { names: &[], id: "skill_id", has_versions: true }
    }
}

impl SkillWords {
    /// What models call a tool.
    pub fn name(&self, tool: SkillTool) -> &'static str {
        self.names.iter().find(|(named, _)| *named == tool).map_or_else(|| tool.name(), |(_, name)| name)
    }
}

/// What a model may do with skills.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SkillTool {
    /// Lists them
    List,
    /// Loads one: its text is the answer
    Load,
    /// Takes the tools of one away again
    Unload,
    /// Lists the files under `references/`
    ListResources,
    /// Reads one of these
    LoadResource,
    /// Lists the files under `assets/`
    ListAssets,
    /// Reads one of these
    LoadAsset,
}

impl SkillTool {
    /// All of them.
    pub const ALL: [SkillTool; 7] = [
        SkillTool::List,
        SkillTool::Load,
        SkillTool::Unload,
        SkillTool::ListResources,
        SkillTool::LoadResource,
        SkillTool::ListAssets,
        SkillTool::LoadAsset,
    ];

    /// What a model calls it.
    pub fn name(self) -> &'static str {
        match self {
            SkillTool::List => "list_skills",
            SkillTool::Load => "load_skill_md",
            SkillTool::Unload => "unload_skill",
            SkillTool::ListResources => "list_skill_resources",
            SkillTool::LoadResource => "load_skill_resource",
            SkillTool::ListAssets => "list_skill_assets",
            SkillTool::LoadAsset => "load_skill_asset",
        }
    }

    /// What a model is told about it.
    pub fn description(self) -> &'static str {
        match self {
            SkillTool::List => "Lists the skills that can be loaded",
            SkillTool::Load => "Loads a skill: gives its instructions and makes its tools available",
            SkillTool::Unload => "Takes the tools of a skill away again",
            SkillTool::ListResources => "Lists the reference files of a skill",
            SkillTool::LoadResource => "Reads a reference file of a skill",
            SkillTool::ListAssets => "Lists the assets of a skill",
            SkillTool::LoadAsset => "Reads an asset of a skill",
        }
    }

    /// The folder whose files it is about.
    pub fn folder(self) -> Option<&'static str> {
        match self {
            SkillTool::ListResources | SkillTool::LoadResource => Some("references/"),
            SkillTool::ListAssets | SkillTool::LoadAsset => Some("assets/"),
            SkillTool::List | SkillTool::Load | SkillTool::Unload => None,
        }
    }
}

/// Where the reason of a failure is written when the run goes on after it.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum FailureRecord {
    /// Its text, under a key that ends in `_error` (see [`super::failure_key`])
    #[default]
    Text,
    /// An object with `node`, `type`, `message` and `attempt`, in an object under this key
    Object {
        /// The state key
        key: Key,
        /// The key in the object there
        field: Key,
    },
    /// An object with `output`, which is nothing, `status` (`failed` or `timeout`) and `error`, by the node's id in an object
    /// under this key
    ByNode(Key),
}
