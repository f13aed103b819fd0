//! What clients of LangGraph say about a run that is to begin.

use serde::Deserialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::modes::{Mode, Modes};
use crate::api::new_run::{IfNotExists, OnDisconnect};
use crate::problem::Problem;
use crate::runs::IfBusy;
use crate::view::Object;

/// A run that is to begin, as clients of LangGraph say it.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AssistantRun {
    /// The agent, by its id or a name that no other agent has
    pub(super) assistant_id: String,
    /// A text, or an object with values by their names
    pub(super) input: Option<Value>,
    /// `resume`: the answer to the question for which the last run of the thread waits; where it asks several, an object with an
    /// answer for each of their ids
    #[schema(value_type = Option<Object>)]
    pub(super) command: Option<Command>,
    /// What a stream tells: `values`, `updates`, `messages`, `messages-tuple`, `tasks`, `checkpoints`, `debug`, `events`, `custom`; one of
    /// them or a list
    #[schema(value_type = Option<Object>)]
    pub(super) stream_mode: Option<Modes>,
    /// Whatever is to be kept with it
    #[schema(value_type = Option<Object>)]
    pub(super) metadata: Option<Object>,
    /// What to do if the thread is busy
    pub(super) multitask_strategy: Option<IfBusy>,
    /// What to do about a thread that is not there
    pub(super) if_not_exists: Option<IfNotExists>,
    /// What becomes of it when the connection breaks over which it is waited for
    pub(super) on_disconnect: Option<OnDisconnect>,
    /// Streams can always be resumed
    #[serde(rename = "stream_resumable")]
    _stream_resumable: Option<bool>,
    /// Everything is committed as it happens
    #[serde(rename = "durability")]
    _durability: Option<Durability>,
    /// Everything is committed as it happens
    #[serde(rename = "checkpoint_during")]
    _checkpoint_during: Option<bool>,
    /// A run that waits for nothing cannot be resumed
    #[serde(rename = "strict_resume")]
    _strict_resume: Option<bool>,
    /// Runs are kept until they are removed: `keep`
    on_completion: Option<String>,
    stream_subgraphs: Option<bool>,
    #[schema(value_type = Option<Object>)]
    config: Option<Value>,
    #[schema(value_type = Option<Object>)]
    context: Option<Value>,
    #[schema(value_type = Option<Object>)]
    checkpoint: Option<Value>,
    checkpoint_id: Option<String>,
    #[schema(value_type = Option<Object>)]
    interrupt_before: Option<Value>,
    #[schema(value_type = Option<Object>)]
    interrupt_after: Option<Value>,
    feedback_keys: Option<Vec<String>>,
    /// Where it is told that the run asks something, and how it ended
    pub(super) webhook: Option<String>,
    after_seconds: Option<f64>,
    #[schema(value_type = Option<Object>)]
    langsmith_tracer: Option<Value>,
}

/// When what happened has to be kept; it always is at once.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum Durability {
    Sync,
    Async,
    Exit,
}

/// What a run is told besides its input.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Command {
    resume: Option<Value>,
    update: Option<Value>,
    goto: Option<Value>,
}

impl AssistantRun {
    /// Refuses what is said and not done here.
    pub(super) fn check(&self) -> Result<(), Problem> {
        let command = self.command.as_ref();
        let says = |value: &Option<Value>| value.as_ref().is_some_and(is_something);
        let not_done = [
            ("command.update", command.is_some_and(|command| says(&command.update)), ""),
            ("command.goto", command.is_some_and(|command| says(&command.goto)), ""),
            (
                "stream_subgraphs",
                self.stream_subgraphs == Some(true),
                "`GET /runs/{run_id}/entries` has what happens inside",
            ),
            ("config", says(&self.config), "give what the agent needs as `input`"),
            ("context", says(&self.context), "give what the agent needs as `input`"),
            ("checkpoint", says(&self.checkpoint), "a run goes on from the last one of its thread"),
            ("checkpoint_id", self.checkpoint_id.is_some(), "a run goes on from the last one of its thread"),
            ("interrupt_before", says(&self.interrupt_before), ""),
            ("interrupt_after", says(&self.interrupt_after), ""),
            ("feedback_keys", self.feedback_keys.as_ref().is_some_and(|keys| !keys.is_empty()), ""),
            ("after_seconds", self.after_seconds.is_some_and(|seconds| seconds > 0.0), ""),
            ("langsmith_tracer", says(&self.langsmith_tracer), ""),
            (
                "on_completion",
                self.on_completion.as_deref().is_some_and(|what| what != "keep"),
                "runs are kept; `DELETE /runs/{run_id}` removes one",
            ),
        ];
        match not_done.iter().find(|(_, is_said, _)| *is_said) {
            None => Ok(()),
            Some((name, _, "")) => Err(Problem::unprocessable(format!("`{name}` is not supported"))),
            Some((name, _, instead)) => Err(Problem::unprocessable(format!("`{name}` is not supported: {instead}"))),
        }
    }

    /// Whether it answers a question.
    pub(super) fn resumes(&self) -> bool {
        self.command.as_ref().is_some_and(|command| command.resume.is_some())
    }

    /// The answer that it gives, if it resumes a run.
    pub(super) fn resume(&mut self) -> Result<Option<Value>, Problem> {
        let Some(command) = self.command.take() else { return Ok(None) };
        let has_metadata = self.metadata.as_ref().is_some_and(|metadata| !metadata.is_empty());
        match (command.resume, &self.input) {
            (None, _) => Ok(None),
            (Some(_), Some(input)) if is_something(input) => {
                Err(Problem::unprocessable("give `input` or `command.resume`, not both"))
            }
            (Some(_), _) if has_metadata => Err(Problem::unprocessable(
                "`metadata` is not supported together with `command.resume`: the run has its own",
            )),
            (resume, _) => Ok(resume),
        }
    }

    /// What a stream of it tells.
    pub(super) fn modes(&self) -> Vec<Mode> {
        self.stream_mode.as_ref().map(Modes::all).unwrap_or_else(|| vec![Mode::Values])
    }
}

/// Whether a value says something: clients send empty ones for nothing.
pub(super) fn is_something(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Object(members) => members.values().any(is_something),
        Value::Array(items) => !items.is_empty(),
        _ => true,
    }
}
