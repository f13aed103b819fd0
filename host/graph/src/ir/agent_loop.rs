//! The loop of an agent: a model is asked, its calls of tools are answered, and it is asked again, until it is done.
//!
//! Every front end describes a loop by the same settings, and [`AgentLoop::lower`] makes the same nodes of them: in the graph
//! that somebody wrote, where its edges say what follows, or in a graph of the loop's own, which a node calls.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use regex::Regex;

use super::{
    Action, AnswerCallsAction, Callable, Condense, ConverseAction, Ends, Expression, Graph, Join, ModelSettings, Next,
    Node, NodeIndex, OnFailure, OwnSteps, PromptPart, Retry, Skills, Update,
};
use crate::conversation::Speaker;
use crate::diagnostic::Span;
use crate::reducer::Reducer;
use crate::value::{Key, List, Object, Value};

/// The conversation of a loop that has a graph of its own. No template can name such a key, and the graph sets all of them when
/// it begins, so that nothing else of the state is mistaken for it.
const SAID: &str = "(said)";
/// How many requests such a loop has made.
const REQUESTS: &str = "(requests)";
/// What stands for the oldest messages, once they no longer fit.
const SUMMARY: &str = "(summary)";
/// How many attempts it has made at requests that were refused.
const ATTEMPTS: &str = "(attempts)";
/// How many calls of tools it has asked for.
const CALLS: &str = "(calls)";
/// Which of its models answered: 0 for the first, 1 for the first of the others, and so on.
const MODEL: &str = "(model)";
/// How often the model was told to go on.
const CONTINUED: &str = "(continued)";
/// The name under which updates see a reply.
const REPLY: &str = "reply";

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
            needs_text: false,
            forbidden: Forbidden::default(),
            exit: None,
            until: None,
            limits: LoopLimits::default(),
            answer: LoopAnswer::default(),
            cap: None,
            skills: None,
            continuation: None,
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
}

/// What a loop with a graph of its own gives to the node whose work it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LoopAnswer {
    /// The text of the last reply
    #[default]
    Text,
    /// An object with that text, what was said, how often a model was asked and what that cost (see [`super::REPLY`] and the
    /// names beside it). A contract makes a value of the text
    Report,
}

/// What a text may not have: a regular expression, which takes time in proportion to the text, or a text as it is.
#[derive(Clone, Debug)]
pub struct Pattern {
    expression: Option<Regex>,
    literal: Option<String>,
}

impl Pattern {
    /// The pattern of that expression.
    ///
    /// # Errors
    /// When it is none; the text says why.
    pub fn new(expression: &str) -> Result<Self, String> {
        let expression = Regex::new(expression).map_err(|error| error.to_string())?;
        Ok(Pattern { expression: Some(expression), literal: None })
    }

    /// The pattern of what somebody wrote who need not know which signs mean something in expressions: a text has it that has
    /// these letters, or fits them as an expression, if they are one.
    pub fn of_text(text: &str) -> Self {
        Pattern { expression: Regex::new(text).ok(), literal: Some(text.to_owned()) }
    }

    /// A text with other words wherever it has it.
    pub fn without(&self, text: &str, instead: &str) -> String {
        let text = match &self.literal {
            Some(literal) if !literal.is_empty() => text.replace(literal, instead),
            _ => text.to_owned(),
        };
        match &self.expression {
            Some(expression) => expression.replace_all(&text, regex::NoExpand(instead)).into_owned(),
            None => text,
        }
    }

    /// Whether a text has it.
    pub fn is_in(&self, text: &str) -> bool {
        self.literal.as_deref().is_some_and(|literal| text.contains(literal))
            || self.expression.as_ref().is_some_and(|expression| expression.is_match(text))
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        let source = |pattern: &Pattern| pattern.expression.as_ref().map(|expression| expression.as_str().to_owned());
        self.literal == other.literal && source(self) == source(other)
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let expression = self.expression.as_ref().map(Regex::as_str);
        f.write_str(self.literal.as_deref().or(expression).unwrap_or_default())
    }
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

/// Where a loop is in its graph, and what follows it.
#[derive(Clone, Debug)]
pub struct LoopPlaces {
    /// The node that asks the model
    pub ask: NodeIndex,
    /// The node that answers its calls; none if nothing does
    pub tools: Option<NodeIndex>,
    /// The node that stands for the cap that is reached, with the key that counts the requests
    pub capped: Option<(Key, NodeIndex)>,
    /// What follows a reply that calls no tool
    pub done: Next,
    /// What follows when the exit condition holds
    pub exit: Next,
}

/// What the nodes of a loop do.
#[derive(Clone, Debug)]
pub struct LoopSteps {
    /// Asks the model
    pub ask: ConverseAction,
    /// Adds its reply to the conversation
    pub say: Update,
    /// Where that node leads
    pub after_reply: Next,
    /// Answers its calls
    pub answer: AnswerCallsAction,
    /// Where that node leads
    pub after_calls: Next,
}

/// A loop as a graph of its own. It sees the state of the node that calls it and writes nothing there; its result is the text of
/// the last reply.
#[derive(Clone, Debug)]
pub struct LoopGraph {
    /// What it was made of
    pub agent: AgentLoop,
    /// The graph
    pub graph: Arc<Graph>,
}

impl AgentLoop {
    /// The state key with the text of the last reply, for [`AgentLoop::until`].
    pub const REPLY_KEY: &'static str = "(reply)";
    /// The state key with how many replies there were.
    pub const REQUESTS_KEY: &'static str = REQUESTS;

    /// What the model is asked, once.
    pub fn request(&self) -> ConverseAction {
        ConverseAction {
            settings: self.settings.clone(),
            fallbacks: self.fallbacks.clone(),
            retry: self.retry.clone(),
            prompt: self.prompt.clone(),
            window: self.window,
            condense: self.condense.clone(),
            tools: self.tools.clone(),
            arguments: self.arguments,
            output_schema: self.reply_schema.clone(),
            needs_text: self.needs_text,
            forbidden: self.forbidden.clone(),
            attempts: None,
            steps: None,
            refused_as: None,
            bind: self.bind,
        }
    }

    /// What answers the calls of the model, once.
    pub fn answers(&self) -> AnswerCallsAction {
        AnswerCallsAction {
            conversation: self.conversation.clone(),
            tools: self.tools.clone(),
            limits: self.calls.clone(),
            counted: None,
            tool_failure_is_fatal: self.tool_failure_is_fatal,
        }
    }

    /// The nodes of the loop.
    pub fn lower(&self, at: LoopPlaces) -> LoopSteps {
        let calls = || Expression::AsksForTools(self.conversation.clone());
        let to = |node: NodeIndex| Next::To(vec![node]);
        let answered = at.tools.map(|tools| match (&self.cap, at.capped.clone()) {
            (Some(cap), Some((requests, capped))) => Next::When {
                condition: Expression::AtLeast(requests, cap.requests),
                then: Box::new(match &cap.then {
                    AtCap::Fail(_) => to(capped),
                    AtCap::Return => at.done.clone(),
                }),
                otherwise: Box::new(to(tools)),
            },
            _ => to(tools),
        });
        let done = match (&self.until, &self.cap, at.capped) {
            (None, ..) => at.done,
            (Some(until), cap, capped) => {
                // A loop that may not go on comes to its cap, or would never end.
                let again = match (cap, capped) {
                    (Some(cap), Some((requests, capped))) => Next::When {
                        condition: Expression::AtLeast(requests, cap.requests),
                        then: Box::new(match &cap.then {
                            AtCap::Fail(_) => to(capped),
                            AtCap::Return => at.done.clone(),
                        }),
                        otherwise: Box::new(to(at.ask)),
                    },
                    _ => to(at.ask),
                };
                Next::When { condition: until.clone(), then: Box::new(at.done), otherwise: Box::new(again) }
            }
        };
        let after_reply = match answered {
            Some(then) => Next::When { condition: calls(), then: Box::new(then), otherwise: Box::new(done) },
            None => done,
        };
        let after_calls = match &self.exit {
            Some(exit) => {
                Next::When { condition: exit.clone(), then: Box::new(at.exit), otherwise: Box::new(to(at.ask)) }
            }
            None => to(at.ask),
        };
        LoopSteps {
            ask: self.request(),
            say: Update { key: self.conversation.clone(), value: Expression::Key(self.bind.into()) },
            after_reply,
            answer: self.answers(),
            after_calls,
        }
    }

    /// What a loop with a graph of its own reports, of the state that it left (see [`LoopAnswer::Report`]); the cost is for
    /// whoever ran it to add.
    pub fn report(state: &crate::state::State) -> Object {
        let get = |key: &str| state.get(key).cloned().unwrap_or_default();
        let said = state.get(SAID).and_then(Value::as_list).cloned().unwrap_or_default();
        let reply = crate::conversation::last_reply(&said).unwrap_or_default().to_owned();
        let entries = [
            (super::REPLY, Value::from(reply)),
            (super::SAID, Value::List(said)),
            (super::ITERATIONS, get(REQUESTS)),
            (super::SUMMARY, get(SUMMARY)),
        ];
        entries.into_iter().map(|(key, value)| (Key::from(key), value)).collect()
    }

    /// What follows a reply that calls no tool in a loop with a graph of its own; `go_on` is the node that tells the model to go on.
    fn after_last_word(&self, go_on: NodeIndex) -> Next {
        let over = || Next::Open(Vec::new());
        let Some(continuation) = &self.continuation else { return over() };
        let unless = |condition: Expression, otherwise: Next| Next::When {
            condition,
            then: Box::new(over()),
            otherwise: Box::new(otherwise),
        };
        let next = Next::When {
            condition: Expression::HasOpenTasks(continuation.list.clone(), SAID.into()),
            then: Box::new(Next::To(vec![go_on])),
            otherwise: Box::new(over()),
        };
        let next = unless(Expression::AtLeast(CONTINUED.into(), continuation.times), next);
        match &self.cap {
            Some(cap) => unless(Expression::AtLeast(REQUESTS.into(), cap.requests), next),
            None => next,
        }
    }

    /// The loop as a graph of its own.
    pub fn into_graph(mut self) -> LoopGraph {
        self.conversation = SAID.into();
        self.bind = REPLY;
        self.prompt.push(PromptPart::messages("the conversation", Expression::Key(SAID.into())));
        let [ask, tools, capped] = [0, 1, 2].map(NodeIndex);
        let fails_at_cap = matches!(self.cap, Some(RequestCap { then: AtCap::Fail(_), .. }));
        let go_on = NodeIndex(if fails_at_cap { 3 } else { 2 });
        let places = LoopPlaces {
            ask,
            tools: Some(tools),
            capped: self.cap.is_some().then(|| (REQUESTS.into(), capped)),
            done: self.after_last_word(go_on),
            exit: Next::Open(Vec::new()),
        };
        let mut steps = self.lower(places);
        steps.ask.attempts = Some(ATTEMPTS.into());
        steps.ask.steps = Some(OwnSteps {
            requests: REQUESTS.into(),
            summary: SUMMARY.into(),
            most: self.cap.as_ref().map(|cap| cap.requests),
            until: self.until.clone(),
            calls: self.calls.most.map(|most| (CALLS.into(), most)),
            model: self.fallbacks_end_with_reply.then(|| MODEL.into()),
            choice: self.choice.clone(),
        });
        steps.answer.counted = self.calls.most.map(|_| CALLS.into());
        let mut updates = vec![steps.say];
        let counts = self.fallbacks_end_with_reply
            || self.choice.is_some()
            || self.cap.is_some()
            || self.answer == LoopAnswer::Report
            || self.settings.is_recorded();
        if counts {
            updates.push(Update { key: REQUESTS.into(), value: Expression::Value(Value::from(1)) });
        }
        if self.until.is_some() {
            let text = Expression::Entry(Box::new(Expression::Key(self.bind.into())), "content".into());
            updates.push(Update { key: Self::REPLY_KEY.into(), value: text });
        }
        let mut nodes = vec![
            Node { updates, ..step("ask", Action::Converse(Box::new(steps.ask)), steps.after_reply) },
            step("tools", Action::AnswerCalls(steps.answer), steps.after_calls),
        ];
        if let Some(RequestCap { then: AtCap::Fail(reason), .. }) = &self.cap {
            nodes.push(step("capped", Action::Fail(reason.clone()), Next::Open(Vec::new())));
        }
        let mut initial_state = vec![
            (SAID.into(), Value::List(List::default())),
            (REQUESTS.into(), Value::from(0)),
            (ATTEMPTS.into(), Value::from(1)),
            (SUMMARY.into(), Value::Null),
            (CALLS.into(), Value::from(0)),
            (MODEL.into(), Value::from(0)),
        ];
        if let Some(continuation) = &self.continuation {
            let updates = continuation.updates();
            nodes.push(Node { updates, ..step("go on", Action::Pass, Next::To(vec![ask])) });
            initial_state.extend([(CONTINUED.into(), Value::from(0)), (continuation.list.clone(), Value::Null)]);
        }
        let mut graph = Graph::of("loop", nodes, ask);
        graph.initial_state = initial_state;
        graph.reducers.insert(SAID.into(), Reducer::Converse);
        graph.reducers.insert(REQUESTS.into(), Reducer::Sum);
        graph.reducers.insert(CALLS.into(), Reducer::Sum);
        graph.reducers.insert(CONTINUED.into(), Reducer::Sum);
        if let Some(skills) = &self.skills {
            graph.initial_state.push((skills.loaded_key.clone(), Value::Object(Object::default())));
            graph.reducers.insert(skills.loaded_key.clone(), Reducer::Merge);
        }
        graph.skills = self.skills.clone();
        let teams = self.tools.iter().filter_map(Callable::team);
        let works: Vec<Key> = teams.map(|team| team.work.clone()).collect();
        graph.initial_state.extend(works.into_iter().map(|work| (work, Value::List(List::default()))));
        let output = Expression::LastReply { conversation: SAID.into(), required: false };
        graph.scheduling.ends = Ends::WhenQuiet { output: Box::new(output) };
        LoopGraph { agent: self, graph: Arc::new(graph) }
    }
}

impl Continuation {
    /// What is written when the model is told to go on.
    fn updates(&self) -> Vec<Update> {
        let list = Expression::TodoText(self.list.clone());
        let text = Expression::Joined(vec![Expression::Value(Value::text(format!("{}\n\n", self.words.trim()))), list]);
        let entries = [("type", Expression::Value(Speaker::Human.word().into())), ("content", text)];
        let message = Expression::Object(entries.map(|(key, value)| (Key::from(key), value)).into());
        vec![
            Update { key: SAID.into(), value: message },
            Update { key: CONTINUED.into(), value: Expression::Value(Value::from(1)) },
        ]
    }
}

/// A node that nobody wrote.
pub(super) fn step(id: &str, action: Action, next: Next) -> Node {
    Node {
        id: id.into(),
        kind: "step",
        description: None,
        action,
        updates: Vec::new(),
        join: Join::All,
        retry: None,
        next,
        on_failure: OnFailure::Fail,
        timeout: None,
        span: Span::none(),
        implied_by: None,
    }
}
