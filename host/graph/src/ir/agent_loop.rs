//! The loop of an agent: a model is asked, its calls of tools are answered, and it is asked again, until it is done.
//!
//! Every front end describes a loop by the same settings, and [`AgentLoop::lower`] makes the same nodes of them: in the graph
//! that somebody wrote, where its edges say what follows, or in a graph of the loop's own, which a node calls.

mod lower;
mod pattern;

use std::time::Duration;

use super::{Callable, Condense, Expression, ModelSettings, PromptPart, Retry, Skills};
use crate::value::{Key, Value};

pub(super) use lower::step;
pub use lower::{LoopGraph, LoopPlaces, LoopSteps};
pub use pattern::Pattern;

use lower::{REPLY, SAID};

/// What a loop is like. The default is what a language has that does not say: no tools, no cap, and a reply that calls no
/// tool ends it.
#[derive(Clone, Debug)]
pub struct AgentLoop {
    /// Settings of its requests
    pub settings: ModelSettings,
    /// What is asked where this model refuses for good, one after the other
    pub fallbacks: Vec<ModelSettings>,
    /// Whether another model is only asked as long as none has answered, in a loop with a graph of its own: what its tools did
    /// is never done again for another one. The one that answered is asked from then on
    pub fallbacks_end_with_reply: bool,
    /// What is done about a request that is refused
    pub retry: Retry,
    /// What the model is told, in order. Where the loop has a graph of its own, what was said in the loop follows
    pub prompt: Vec<PromptPart>,
    /// The state key with the conversation
    pub conversation: Key,
    /// How much of the conversation the model is told
    pub window: Option<Window>,
    /// What of the conversation the model is told in fewer words, one after the other
    pub condense: Vec<Condense>,
    /// What the model may call
    pub tools: Vec<Callable>,
    /// What holds for its calls of tools
    pub calls: CallLimits,
    /// What the first request of a loop with a graph of its own has to call. Those after it leave that to the model
    pub choice: Option<ToolChoice>,
    /// Whether a tool that fails ends the loop; otherwise the model is told
    pub tool_failure_is_fatal: bool,
    /// What is kept of arguments
    pub arguments: KeptArguments,
    /// A JSON schema that the text of each reply has to follow, which the provider is told
    pub reply_schema: Option<Value>,
    /// The setting of the source, for errors, by which a reply is refused that does not follow that schema; none if it is only told
    pub enforced_by: Option<&'static str>,
    /// Whether a reply without text and without calls is refused
    pub needs_text: bool,
    /// Texts that replies may not have. A reply that has one is neither shown nor kept
    pub forbidden: Forbidden,
    /// What ends the loop after calls were answered, beside a reply that calls no tool
    pub exit: Option<Expression>,
    /// What has to hold for a reply that calls no tool to end the loop, in one with a graph of its own. It sees the state, the
    /// text of the reply as [`AgentLoop::REPLY_KEY`] and how many there were as [`AgentLoop::REQUESTS_KEY`]
    pub until: Option<Expression>,
    /// What the whole loop may cost and how long it may take, in one with a graph of its own
    pub limits: LoopLimits,
    /// What it gives, in one with a graph of its own
    pub answer: LoopAnswer,
    /// How often the model may be asked, in a loop with a graph of its own
    pub cap: Option<RequestCap>,
    /// What it can load when it is needed, in a loop with a graph of its own
    pub skills: Option<Skills>,
    /// When a reply that calls no tool does not end it, in a loop with a graph of its own
    pub continuation: Option<Continuation>,
    /// The name of the agent whose loop it is, where a file defines one
    pub agent: Option<Key>,
    /// The name under which updates see a reply, where the loop is in a graph that somebody wrote
    pub bind: &'static str,
}

impl Default for AgentLoop {
    fn default() -> Self {
        AgentLoop {
            settings: ModelSettings::default(),
            fallbacks: Vec::new(),
            fallbacks_end_with_reply: false,
            retry: Retry::default(),
            prompt: Vec::new(),
            conversation: SAID.into(),
            window: None,
            condense: Vec::new(),
            tools: Vec::new(),
            calls: CallLimits::default(),
            choice: None,
            tool_failure_is_fatal: false,
            arguments: KeptArguments::Values,
            reply_schema: None,
            enforced_by: None,
            needs_text: false,
            forbidden: Forbidden::default(),
            exit: None,
            until: None,
            limits: LoopLimits::default(),
            answer: LoopAnswer::default(),
            cap: None,
            skills: None,
            continuation: None,
            agent: None,
            bind: REPLY,
        }
    }
}

/// What holds for the calls of tools that a model asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallLimits {
    /// How many there may be in a loop with a graph of its own. Those beyond are not made, and the request after the last one
    /// offers no tools
    pub most: Option<u32>,
    /// Whether only the first call of a reply is made
    pub one_at_a_time: bool,
    /// How long one may take; the model is told of one that takes longer
    pub time: Option<Duration>,
}

/// What a request has to call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolChoice {
    /// Any tool
    Any,
    /// The tool of this name
    Tool(String),
}

/// How much of a conversation a model is told. A tool's answer goes with the message that called it. Texts that are not of the
/// conversation stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The most tokens, estimated as one for each four bytes and four for each message
    pub tokens: usize,
    /// What is done about more
    pub trim: Trim,
}

/// What is done about a conversation that does not fit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Trim {
    /// The oldest messages are left out
    #[default]
    LeaveOut,
    /// The model is asked for a summary of the oldest turns, which then stands in their place. For a loop with a graph of its own;
    /// what is said in the loop itself stays
    Summarize,
}

/// Texts that replies may not have.
#[derive(Clone, Debug, Default)]
pub struct Forbidden {
    /// The patterns
    pub patterns: Vec<Pattern>,
    /// Whether only a reply counts that ends the loop
    pub only_last: bool,
    /// The setting of the source, for errors; empty if there is none
    pub setting: &'static str,
}

/// What a whole loop may cost and how long it may take. What it comes to is a failure of the node that no other attempt follows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LoopLimits {
    /// Wall clock, over all processes: what is in flight is stopped. The name is that of the setting
    pub time: Option<(Duration, &'static str)>,
    /// Costs in USD, looked at after every reply. The name is that of the setting
    pub cost_usd: Option<(f64, &'static str)>,
    /// What may be used over all runs, looked at before every request
    pub allowance: Option<Allowance>,
}

/// What models may use under a name, over all runs. Whoever runs the graph counts it, and says when the count begins anew. The request
/// that uses it up is made; the one after it is not.
#[derive(Clone, Debug, PartialEq)]
pub struct Allowance {
    /// Under which name it is counted
    pub name: String,
    /// Tokens of requests and replies
    pub tokens: Option<u64>,
    /// Costs in USD
    pub cost_usd: Option<f64>,
    /// Why nothing is asked when it is used up
    pub problem: &'static str,
    /// What kind of failure that is
    pub failure_kind: &'static str,
}

/// What a loop with a graph of its own gives to the node whose work it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LoopAnswer {
    /// The text of the last reply
    #[default]
    Text,
    /// An object with that text, what was said, how often a model was asked, whether it used up its calls of tools and what that
    /// cost (see [`super::REPLY`] and the names beside it). A contract makes a value of the text
    Report,
}

/// What is kept of the arguments of a call that are a JSON object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeptArguments {
    /// Their values: the model sees them again in one form, whatever it wrote
    #[default]
    Values,
    /// Beside the values the text as the model wrote it
    Text,
}

/// How often a model may be asked.
#[derive(Clone, Debug, PartialEq)]
pub struct RequestCap {
    /// How often
    pub requests: u32,
    /// What happens when it then still calls tools. These are not called
    pub then: AtCap,
}

/// What happens to a loop that comes to its cap.
#[derive(Clone, Debug, PartialEq)]
pub enum AtCap {
    /// It fails with this text
    Fail(String),
    /// It ends with the text of the last reply
    Return,
}

/// A model that calls no tool is told to go on while there are open tasks on its to-do list, unless it only says what it said
/// the last time.
#[derive(Clone, Debug)]
pub struct Continuation {
    /// The state key with the list, which [`Callable::Todo`] names, too
    pub list: Key,
    /// How often it is told so
    pub times: u32,
    /// What it is told, before the list
    pub words: String,
}
