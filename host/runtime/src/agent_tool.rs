//! Agents as tools of other programs: what such a program is told of them, and how its call becomes a run.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::future::BoxFuture;
use hotcell_engine::{Outcome, RunInput};
use hotcell_graph::Object;
use hotcell_graph::json_schema::JsonSchema;
use hotcell_journal::{JournalError, NodeFailure, OpenQuestion, Question, RunId, RunRecord};
use hotcell_mcp::{Answer, Asked, Asks, CallContext, Called, CatalogError, Elicited, OfferedTool};
use serde_json::{Map, Value, json};
use thiserror::Error;

use crate::agent::Agent;
use crate::called::{called_with, input_schema, output_schema};
use crate::host::HostError;
use crate::settle::for_models;
use crate::ticket::Ticket;

/// The field of a form that is the answer to a question.
const ANSWER: &str = "answer";

/// Why a run that is called as a tool cannot be begun, or go on, in words for whoever called.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum AgentRunError {
    /// An answer to a question that is for certain people, or for a program
    #[error(
        "the question `{question}` is for somebody else, and who you are is not known here; answer it where that is known"
    )]
    ForSomebodyElse {
        /// The id of the question
        question: String,
    },
    /// The server takes no answers any more
    #[error("the server is shutting down; send the answer again")]
    ShuttingDown,
    /// The caller called it off
    #[error("it was cancelled")]
    Cancelled,
    /// Whoever carries runs out refuses; the text says why
    #[error("{0}")]
    Refused(String),
}

impl From<HostError> for AgentRunError {
    fn from(error: HostError) -> Self {
        AgentRunError::Refused(error.to_string())
    }
}

impl From<JournalError> for AgentRunError {
    fn from(error: JournalError) -> Self {
        AgentRunError::Refused(error.to_string())
    }
}

/// What comes of something that is done with a run.
pub type Resting<'a> = BoxFuture<'a, Result<Rested, AgentRunError>>;

/// Carries out the runs of agents that are called as tools.
pub trait AgentRuns: Send + Sync {
    /// Begins a run, and gives how it stands when it rests. Where the client [can be asked](CallContext::can_ask) meanwhile,
    /// a run that rests with a question is one whose question was put to it.
    ///
    /// # Errors
    /// When the run cannot be begun.
    fn begin<'a>(&'a self, agent: &'a Arc<Agent>, given: RunInput, call: &'a CallContext) -> Resting<'a>;

    /// Hands answers, by the ids of their questions, to a run that rests, and gives how it stands when it rests again. A
    /// question that takes no answer any more is left out.
    ///
    /// # Errors
    /// When it cannot go on.
    fn go_on<'a>(&'a self, run: &'a RunRecord, answers: Answers, call: &'a CallContext) -> Resting<'a>;

    /// The run of this name, if the client may know of it.
    fn find<'a>(&'a self, run: &'a str, call: &'a CallContext) -> BoxFuture<'a, Option<RunRecord>>;

    /// Whether whoever calls may answer questions.
    fn may_answer(&self, call: &CallContext) -> bool;

    /// How somebody else answers the questions of a run, as the end of a sentence about a person.
    fn how_to_answer(&self, run: &RunId) -> String;
}

/// Answers of a person, by the ids of their questions.
pub type Answers = BTreeMap<String, String>;

/// A run that is not worked on at the moment.
pub struct Rested {
    /// The run
    pub run: RunId,
    /// How it stands
    pub outcome: Outcome,
    /// The nodes that failed and after which it went on
    pub failures: Vec<NodeFailure>,
    /// Its state
    pub state: Object,
}

/// An agent as a tool.
#[derive(Clone)]
pub struct AgentTool {
    offered: OfferedTool,
    agent: Arc<Agent>,
}

impl AgentTool {
    /// An agent as a tool of this name.
    pub fn new(name: String, agent: Arc<Agent>) -> Self {
        let description = agent.graph.description.clone();
        let offered = OfferedTool {
            name,
            title: Some(agent.graph.name.clone()),
            description: description.unwrap_or_else(|| format!("Runs the agent {}", agent.graph.name)),
            input_schema: object(input_schema(&agent)),
            output_schema: output_schema(&agent).map(object),
            read_only: false,
            open_world: true,
        };
        AgentTool { offered, agent }
    }

    /// What clients are told of it.
    pub fn offered(&self) -> &OfferedTool {
        &self.offered
    }

    /// Calls it: a run of the agent is begun, or one goes on that asked the client something.
    ///
    /// # Errors
    /// When the client goes on with a call that it did not make.
    pub async fn call(
        &self,
        arguments: &Map<String, Value>,
        call: &CallContext,
        runs: &dyn AgentRuns,
    ) -> Result<Answer, CatalogError> {
        let going_on = call.going_on();
        let (rested, ticket) = match &going_on.state {
            None => {
                // Told as the tool's own answer: a model can correct that, and never sees an error of the protocol.
                if let Some(problem) = misfits(&self.offered, arguments) {
                    return Ok(Called::failed(problem).into());
                }
                let mut given = called_with(&self.agent, arguments);
                let ticket = call.can_answer_later().then(|| Ticket::of(&mut given));
                (runs.begin(&self.agent, given, call).await, ticket)
            }
            Some(state) => {
                let (ticket, run) = self.find(state, call, runs).await?;
                let given = answers(&going_on.answers);
                (runs.go_on(&run, given, call).await, Some(ticket))
            }
        };
        let rested = match rested {
            Ok(rested) => rested,
            Err(reason) => return Ok(Called::failed(for_models(&reason.to_string())).into()),
        };
        let Outcome::Waiting { questions } = &rested.outcome else { return Ok(self.ended(rested).into()) };
        let mut asked: Vec<&Question> = questions.iter().filter(|question| is_for_client(question)).collect();
        if !runs.may_answer(call) || asked.iter().any(|question| is_refused(going_on.answers.get(&question.id))) {
            asked.clear();
        }
        match ticket {
            Some(ticket) if !asked.is_empty() => {
                let form = |question: &Question| Asked {
                    id: question.id.clone(),
                    message: question.text.clone(),
                    schema: answer_schema(question),
                };
                let questions = asked.into_iter().map(form).collect();
                Ok(Answer::Asks(Asks { questions, state: ticket.for_run(&rested.run) }))
            }
            _ => {
                let texts: Vec<&str> = questions.iter().map(|question| question.text.as_str()).collect();
                let how = runs.how_to_answer(&rested.run);
                let waits =
                    format!("run {} waits for a person, who can answer {how}: {}", rested.run, texts.join("; "));
                Ok(Called::failed(waits).into())
            }
        }
    }

    /// The run that a client goes on with, if that client was told so.
    async fn find(
        &self,
        state: &str,
        call: &CallContext,
        runs: &dyn AgentRuns,
    ) -> Result<(Ticket, RunRecord), CatalogError> {
        let unknown = || CatalogError::InvalidState("`requestState` is not what this tool gave out".to_owned());
        let (ticket, run) = Ticket::read(state).ok_or_else(unknown)?;
        let record = runs.find(&run, call).await.filter(|record| {
            record.id.as_str() == run && record.header.source == self.agent.source() && ticket.fits(record)
        });
        record.map(|record| (ticket, record)).ok_or_else(unknown)
    }

    /// What a run came to that waits for nobody.
    fn ended(&self, rested: Rested) -> Called {
        let run = &rested.run;
        let unhandled = rested.failures.iter().find(|failure| !failure.handled).filter(|_| self.agent.strict);
        match rested.outcome {
            Outcome::Completed { output } => match unhandled {
                None => self.completed(output, &rested.state),
                Some(failure) => {
                    Called::failed(format!("node `{}` failed: {}", failure.node, for_models(&failure.error)))
                }
            },
            Outcome::Failed { error, .. } | Outcome::Stopped { reason: error } => Called::failed(for_models(&error)),
            Outcome::Paused => Called::failed(format!(
                "run {run} was paused by a person, who can go on with it with `hotcell runs resume {run}`"
            )),
            Outcome::Interrupted => Called::failed(format!("run {run} was stopped; it can be resumed")),
            Outcome::Cancelled => Called::failed(format!("run {run} was cancelled")),
            Outcome::Waiting { .. } => Called::failed(format!("run {run} waits for a person")),
        }
    }

    fn completed(&self, output: String, state: &Object) -> Called {
        let results = self.agent.graph.results.as_ref().filter(|_| self.offered.output_schema.is_some());
        let structured = results.and_then(|results| state.get(&results.outputs)).map(Value::from);
        Called { structured: structured.filter(Value::is_object), ..Called::text(output) }
    }
}

/// The JSON schema of a tool, as an object.
pub(crate) fn object(schema: Value) -> Map<String, Value> {
    match schema {
        Value::Object(schema) => schema,
        _ => Map::from_iter([("type".to_owned(), "object".into())]),
    }
}

/// What of the arguments does not fit what a tool takes, if something does not.
pub(crate) fn misfits(offered: &OfferedTool, arguments: &Map<String, Value>) -> Option<String> {
    // A plugin whose own schema is broken gets what it is sent.
    let schema = JsonSchema::compiled(&Value::Object(offered.input_schema.clone())).ok()?;
    let problems = schema.problems(&Value::Object(arguments.clone()), 5);
    let wrong = || format!("the arguments of `{}` cannot be used: {}", offered.name, problems.join("; "));
    (!problems.is_empty()).then(wrong)
}

/// A question as a form with one field: any text, with what is offered in its description.
pub(crate) fn form(options: &[String], default: Option<&str>) -> Value {
    let mut answer = json!({ "type": "string", "title": "Your answer" });
    if !options.is_empty() {
        answer["description"] = format!("{}, or any other text", options.join(", ")).into();
    }
    if let Some(default) = default {
        answer["default"] = default.into();
    }
    json!({ "type": "object", "properties": { ANSWER: answer }, "required": [ANSWER] })
}

/// A question of a run as a form.
pub fn answer_schema(question: &Question) -> Value {
    form(&question.options, question.default.as_deref())
}

/// The text of a form that was filled in.
pub fn answer_of(elicited: &Elicited) -> Option<String> {
    match elicited {
        Elicited::Accept(form) => form.get(ANSWER).and_then(Value::as_str).map(str::to_owned),
        Elicited::Decline | Elicited::Cancel => None,
    }
}

/// Whether whoever sits at a client can answer a question: it is for a person, and nobody in particular is asked.
pub fn is_for_client(question: &Question) -> bool {
    question.call.is_none() && question.is_for_users() && question.operator_ids.is_empty()
}

/// Refuses answers of whoever sits at a client to questions that are for somebody else: for certain people, or for a program.
///
/// # Errors
/// Which one.
pub fn check_answers(open: &[OpenQuestion], answers: &Answers) -> Result<(), AgentRunError> {
    let is_for_others =
        |open: &&OpenQuestion| answers.contains_key(&open.question.id) && !is_for_client(&open.question);
    match open.iter().find(is_for_others) {
        None => Ok(()),
        Some(OpenQuestion { question, .. }) => Err(AgentRunError::ForSomebodyElse { question: question.id.clone() }),
    }
}

fn is_refused(answer: Option<&Elicited>) -> bool {
    matches!(answer, Some(Elicited::Decline | Elicited::Cancel))
}

fn answers(elicited: &BTreeMap<String, Elicited>) -> Answers {
    elicited.iter().filter_map(|(id, elicited)| Some((id.clone(), answer_of(elicited)?))).collect()
}

#[cfg(test)]
mod tests {
    use hotcell_journal::{ClientCall, EntryPath};

    use super::*;

    #[test]
    fn a_client_answers_what_it_is_asked_and_nothing_else() {
        let open = |id: &str, question: Question| OpenQuestion {
            place: EntryPath::of_turn(1),
            number: 0,
            question: Question { id: id.to_owned(), ..question },
        };
        let call = ClientCall { tool: "pay".to_owned(), arguments: hotcell_graph::Value::Null };
        let context = hotcell_graph::Value::from(&json!({ "callback": "ship" }));
        let open = [
            open("1:0", Question::default()),
            open("2:0", Question { operator_ids: vec!["ann".to_owned()], ..Question::default() }),
            open("3:0", Question { call: Some(call), ..Question::default() }),
            open("4:0", Question { context: Some(context), ..Question::default() }),
            open("5:0", Question { denial: Some(hotcell_graph::Value::Null), ..Question::default() }),
        ];
        let told = |id: &str| check_answers(&open, &[(id.to_owned(), "approved".to_owned())].into());
        assert_eq!((told("1:0"), told("9:9")), (Ok(()), Ok(())));
        for id in ["2:0", "3:0", "4:0", "5:0"] {
            assert!(told(id).is_err_and(|reason| reason.to_string().contains(id)), "{id}");
        }
    }
}
