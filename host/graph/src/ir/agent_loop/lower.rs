//! The nodes of a loop: in a graph that somebody wrote, or in one of its own.

use std::sync::Arc;

use super::{AgentLoop, AtCap, Continuation, LoopAnswer, RequestCap};
use crate::conversation::Speaker;
use crate::diagnostic::Span;
use crate::ir::{
    self, Action, AnswerCallsAction, Callable, ConverseAction, Ends, Expression, Graph, Join, Next, Node, NodeIndex,
    OwnSteps, PromptPart, Update,
};
use crate::reducer::Reducer;
use crate::value::{Key, List, Object, Value};

/// The conversation of a loop that has a graph of its own. No template can name such a key, and the graph sets all of them when
/// it begins, so that nothing else of the state is mistaken for it.
pub(super) const SAID: &str = "(said)";
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
pub(super) const REPLY: &str = "reply";

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
            enforced_by: self.enforced_by,
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
    pub fn report(&self, state: &crate::state::State) -> Object {
        let get = |key: &str| state.get(key).cloned().unwrap_or_default();
        let said = state.get(SAID).and_then(Value::as_list).cloned().unwrap_or_default();
        let reply = crate::conversation::last_reply(&said).unwrap_or_default().to_owned();
        let calls = match state.get(CALLS) {
            Some(Value::Number(calls)) => calls.to_f64(),
            _ => 0.0,
        };
        // One that may call nothing from the start is not held back.
        let is_capped = self.calls.most.is_some_and(|most| most > 0 && calls >= f64::from(most));
        let entries = [
            (ir::REPLY, Value::from(reply)),
            (ir::SAID, Value::List(said)),
            (ir::ITERATIONS, get(REQUESTS)),
            (ir::SUMMARY, get(SUMMARY)),
            (ir::CAPPED, Value::Bool(is_capped)),
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
        // The cap is looked at after each reply, so one that allows none is looked at before the first request.
        let allows_none = fails_at_cap && self.cap.as_ref().is_some_and(|cap| cap.requests == 0);
        let mut graph = Graph::of("loop", nodes, if allows_none { capped } else { ask });
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
pub(in crate::ir) fn step(id: &str, action: Action, next: Next) -> Node {
    Node { join: Join::All, ..Node::new(id, "step", action, next, &Span::none()) }
}
