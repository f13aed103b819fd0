//! A turn of a conversation, for protocols in which somebody says something and hears what came of it: what is said begins a run, or
//! answers the question for which one waits. What came of it is read from the entries of the run, so nothing is kept for it.

use std::sync::Arc;

use hotcell_runtime::{
    Agent, Entry, Fact, OpenQuestion, Question, RunId, RunInput, RunRecord, RunStatus, for_models, open_questions, used,
};
use serde_json::Value;

use super::in_thread;
use crate::answerer::Answerer;
use crate::input::{origin_of, run_input};
use crate::live::{Begun, Live};
use crate::problem::Problem;
use crate::runs::IfBusy;
use crate::state::Server;
use crate::view::Object;

/// A run that was begun, or goes on with an answer.
pub(super) struct Started {
    pub(super) begun: Begun,
    /// The last entry from before
    pub(super) after: u64,
}

/// What a run is begun with.
pub(super) struct Beginning {
    /// A text, or an object with values by their names
    pub(super) input: Value,
    /// Whatever is to be kept with it
    pub(super) metadata: Object,
    /// What else the server keeps with it
    pub(super) kept: Object,
    /// Whoever `listens` is told everything that happens in it
    pub(super) listens: bool,
}

impl Beginning {
    /// What a run of an agent in a thread is given.
    pub(super) fn given(&self, agent: &Agent, thread: &str) -> Result<RunInput, Problem> {
        let (input, thread) = (Some(self.input.clone()), Some(thread.to_owned()));
        let mut given = run_input(agent, input, None, thread, self.metadata.clone())?;
        let mut kept = self.kept.clone();
        kept.insert("metadata".to_owned(), Value::Object(self.metadata.clone()));
        given.origin = origin_of(Value::Object(kept));
        Ok(given)
    }
}

/// Begins a run in a thread of its own, with the state that another run came to if it `follows` one.
pub(super) async fn begin(
    server: &Server,
    agent: &Arc<Agent>,
    beginning: Beginning,
    follows: Option<&RunRecord>,
) -> Result<Started, Problem> {
    let thread = RunId::random().to_string();
    let mut given = beginning.given(agent, &thread)?;
    if let Some(run) = follows {
        given.earlier = Some(server.runs().earlier_state(run, agent).await?);
    }
    in_thread::bind(server, &thread, agent.source(), true)?;
    match server.runs().start(agent, given, IfBusy::Reject, beginning.listens).await {
        Ok(begun) => Ok(Started { begun, after: 0 }),
        Err(problem) => {
            // Nobody knows the thread, and whoever was refused tries again.
            server.store().delete_thread(&thread)?;
            Err(problem)
        }
    }
}

/// Begins a run that goes on after one that has ended: in its thread, or where that has gone on otherwise with the state that the
/// run came to in a thread of its own. So what was said in between is forgotten, as it is by whoever says this.
pub(super) async fn begin_after(
    server: &Server,
    agent: &Arc<Agent>,
    beginning: Beginning,
    last: &RunRecord,
) -> Result<Started, Problem> {
    if let Some(thread) = last.thread() {
        let given = beginning.given(agent, thread)?;
        match server.runs().start_after(agent, given, &last.id, beginning.listens).await {
            Err(problem) if problem.is_thread_elsewhere() => {}
            begun => return Ok(Started { begun: begun?, after: 0 }),
        }
    }
    begin(server, agent, beginning, Some(last)).await
}

/// Answers a question of a run, which goes on. Somebody who may only begin runs may not answer what they ask.
pub(super) async fn answer(
    server: &Server,
    by: Answerer<'_>,
    run: &RunRecord,
    question: &str,
    text: &str,
    listens: bool,
) -> Result<Started, Problem> {
    answer_all(server, by, run, &[(question.to_owned(), text.to_owned())], listens).await
}

/// Answers several questions of a run, each by its id. None of them is answered if one of them may not be answered here.
pub(super) async fn answer_all(
    server: &Server,
    by: Answerer<'_>,
    run: &RunRecord,
    answers: &[(String, String)],
    listens: bool,
) -> Result<Started, Problem> {
    if server.runs().is_draining() {
        return Err(Problem::unavailable("the server is shutting down; send the answer again"));
    }
    let groups = server.runs().groups();
    // Who may answer nothing is told so, whatever the run asks.
    by.check(&Question::default(), groups)?;
    let entries = server.runs().store().history(&run.id).await?.whole()?;
    let is_answered = |open: &&OpenQuestion| answers.iter().any(|(question, _)| *question == open.question.id);
    for open in open_questions(&entries).iter().filter(is_answered) {
        by.check(&open.question, groups).map_err(|problem| problem.with("run_id", run.id.as_str()))?;
    }
    let hold = server.runs().hold(&run.id);
    let events = listens.then(|| hold.live.events());
    server.runs().answer_all(&run.id, answers, by).await?;
    Ok(Started { begun: Begun { run: run.id.clone(), live: hold.live.clone(), events }, after: entries.len() as u64 })
}

/// The questions that are open for whoever talks with a run. What another system answers by its callback is not for them, and neither is what
/// whoever runs the server decides.
pub(super) fn asked(entries: &[Entry]) -> Vec<OpenQuestion> {
    let mut open = open_questions(entries);
    open.retain(|open| open.question.is_for_users());
    open
}

/// What came of a turn so far.
#[derive(Debug, PartialEq)]
pub(super) enum Came {
    /// It goes on
    Working,
    /// It asks: the first of these, and when that is answered the next one
    Asks(Vec<OpenQuestion>),
    /// It has a result
    Said(String),
    /// It failed, or came to a cap after which it goes no further
    Failed(String),
    /// Somebody ended it
    Cancelled,
}

/// The part of a run that belongs to a turn.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) came: Came,
    /// How many entries the run had at its end
    pub(super) until: u64,
    /// Tokens that models were sent and sent back, as they say
    pub(super) input_tokens: u64,
    pub(super) output_tokens: u64,
}

impl Part {
    /// What the entries of a run say of the turn that begins after so many of them. It ends where nothing went on by itself.
    pub(super) fn of(entries: &[Entry], after: u64) -> Self {
        let after = usize::try_from(after).unwrap_or(usize::MAX).min(entries.len());
        let end = entries[after..].iter().enumerate().find_map(|(number, entry)| {
            let until = after + number + 1;
            let came = match &entry.fact {
                Fact::Waiting if goes_on_by_itself(&entries[until..]) => return None,
                Fact::Waiting => match asked(&entries[..until]) {
                    // It waits for a time, another system, or whoever runs the server.
                    open if open.is_empty() => return None,
                    open => Came::Asks(open),
                },
                Fact::Ended { result: Ok(output), .. } => Came::Said(output.clone()),
                // Whoever called cannot do what an operator could.
                Fact::Ended { result: Err(error), .. } | Fact::Stopped { reason: error } => {
                    Came::Failed(for_models(error))
                }
                Fact::Cancelled => Came::Cancelled,
                _ => return None,
            };
            Some((came, until))
        });
        let (came, until) = end.unwrap_or((Came::Working, entries.len()));
        let (before, now) = (used(&entries[..after]), used(&entries[..until]));
        Part {
            came,
            until: until as u64,
            input_tokens: now.input_tokens.saturating_sub(before.input_tokens),
            output_tokens: now.output_tokens.saturating_sub(before.output_tokens),
        }
    }

    /// Reads what came of a turn.
    pub(super) async fn read(server: &Server, run: &RunId, after: u64) -> Result<Self, Problem> {
        Ok(Part::of(&server.runs().store().history(run).await?.whole()?, after))
    }

    /// Waits until a run rests, and reads what came of a turn of it.
    pub(super) async fn wait(server: &Server, run: &RunId, live: &Live, after: u64) -> Result<Self, Problem> {
        live.done.cancelled().await;
        server.runs().rest(run).await?;
        Part::read(server, run, after).await
    }
}

/// Whether a run that waited went on, or ended, and not because somebody answered.
fn goes_on_by_itself(rest: &[Entry]) -> bool {
    let next = rest.iter().find_map(|entry| match entry.fact {
        Fact::Answered { .. } => Some(false),
        Fact::Expired { .. } | Fact::Cancelled | Fact::Stopped { .. } | Fact::Ended { .. } => Some(true),
        _ => None,
    });
    next.unwrap_or(false)
}

/// How many entries came before the last turn of a run: it begins with the run, or with an answer after it rested.
pub(super) fn last_turn(entries: &[Entry]) -> u64 {
    let (mut begin, mut rest) = (0, None);
    for (entry, number) in entries.iter().zip(1..) {
        match entry.fact {
            Fact::Waiting => rest = Some(number),
            Fact::Answered { .. } => begin = rest.take().unwrap_or(begin),
            _ => {}
        }
    }
    begin
}

/// Why a turn has no reply.
pub(super) fn no_reply(run: &RunRecord, came: &Came) -> Problem {
    let run_id = run.id.as_str();
    match (came, run.status) {
        (Came::Failed(error), _) => Problem::unprocessable(error.clone()).kind("run-failed", "The run failed"),
        (Came::Cancelled, _) => Problem::ended(&run.id, RunStatus::Cancelled),
        (_, RunStatus::Paused) => {
            let detail = format!("run `{run_id}` is paused; it goes on when somebody resumes it");
            Problem::conflict(detail).kind("run-paused", "The run is paused")
        }
        (_, RunStatus::Waiting) => {
            let detail =
                format!("run `{run_id}` waits for another system, a time or whoever runs the server; `GET /runs/{run_id}/wait` waits with it");
            Problem::conflict(detail).kind("run-waits", "The run waits")
        }
        _ => Problem::unavailable(format!("the server is shutting down; run `{run_id}` goes on at its next start")),
    }
    .with("run_id", run_id)
}

/// What models say while a run is worked on, one piece after the other. It is no reply: that is what the run comes to.
#[derive(Default)]
pub(super) struct Thoughts {
    /// The node that said the last piece
    node: String,
    /// Bytes of all pieces
    told: usize,
}

impl Thoughts {
    /// Bytes of pieces that are told of a turn.
    const MOST: usize = 1 << 20;

    /// The next piece, if it is one that happened.
    pub(super) fn piece(&mut self, happened: &str) -> Option<String> {
        let (node, text) = model_text(happened)?;
        let is_other = !self.node.is_empty() && self.node != node;
        let piece = if is_other { format!("\n\n{text}") } else { text };
        self.node = node;
        self.told += piece.len();
        (self.told <= Self::MOST).then_some(piece)
    }
}

/// The node and the piece of a model's text, if that is what happened.
pub(super) fn model_text(happened: &str) -> Option<(String, String)> {
    let happened: Value = serde_json::from_str(happened).ok()?;
    let mut event = &happened;
    while event["event"] == "within" {
        event = &event["within"];
    }
    let text_of = |name: &str| event[name].as_str().map(str::to_owned);
    (event["event"] == "model_text").then(|| Some((text_of("node")?, text_of("text")?)))?
}

/// A question as it is said to a person.
pub(super) fn question_text(open: &OpenQuestion) -> String {
    let question = &open.question;
    let mut text = question.text.clone();
    for option in &question.options {
        text.push_str("\n- ");
        text.push_str(option);
    }
    text
}

#[cfg(test)]
mod tests {
    use hotcell_graph::Value as GraphValue;
    use hotcell_runtime::{Entry, EntryPath, Fact, Question};
    use serde_json::json;

    use super::{Came, Part};

    #[test]
    fn a_turn_that_waits_for_another_system_or_a_capability_asks_nobody() {
        let asked = |question: Question| {
            let fact = Fact::Asked { number: 0, question };
            [Entry { place: EntryPath::of_turn(1), fact }, Entry::of_run(Fact::Waiting)]
        };
        let context = Some(GraphValue::from(&json!({ "callback": "ship" })));
        let elsewhere = asked(Question { context, ..Question::default() });
        assert_eq!(Part::of(&elsewhere, 0).came, Came::Working);
        let denied = asked(Question { denial: Some(GraphValue::Null), ..Question::default() });
        assert_eq!(Part::of(&denied, 0).came, Came::Working);
        assert!(matches!(Part::of(&asked(Question::default()), 0).came, Came::Asks(open) if open.len() == 1));
    }
}
