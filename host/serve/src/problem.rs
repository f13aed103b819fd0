//! Errors as clients see them: problem details of RFC 9457, for every request that is not answered.

use std::borrow::Cow;

use axum::response::{IntoResponse, Response};
use hotcell_runtime::{HostError, JournalError, Question, RunError, RunId, RunStatus};
use http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderValue, StatusCode};
use serde::Serialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

/// The media type of a problem.
pub(crate) const MEDIA_TYPE: &str = "application/problem+json";

/// Why a request was not answered (RFC 9457).
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct Problem {
    /// Identifies the kind of problem
    #[serde(rename = "type")]
    #[schema(value_type = String, example = "urn:hotcell:problem:not-found")]
    pub kind: Cow<'static, str>,
    /// What the kind of problem is called
    #[schema(value_type = String)]
    pub title: Cow<'static, str>,
    /// The HTTP status
    #[schema(minimum = 400, maximum = 599)]
    pub status: u16,
    /// What happened, and what to do about it
    pub detail: String,
    /// More of it, by kind of problem
    #[serde(flatten)]
    pub more: Box<Map<String, Value>>,
}

impl Problem {
    /// A problem of the kind that its status stands for.
    pub fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        let title = status.canonical_reason().unwrap_or("Error");
        let kind = format!("urn:hotcell:problem:{}", title.to_ascii_lowercase().replace(' ', "-"));
        Problem {
            kind: kind.into(),
            title: title.into(),
            status: status.as_u16(),
            detail: detail.into(),
            more: Box::default(),
        }
    }

    /// The same problem of a kind of its own, as `urn:hotcell:problem:KIND`.
    #[must_use]
    pub fn kind(mut self, kind: &'static str, title: &'static str) -> Self {
        self.kind = format!("urn:hotcell:problem:{kind}").into();
        self.title = title.into();
        self
    }

    /// The same problem with a further member.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.more.insert(name.to_owned(), value.into());
        self
    }

    /// Something is not there.
    pub fn not_found(detail: impl Into<String>) -> Self {
        Problem::new(StatusCode::NOT_FOUND, detail)
    }

    /// A request is well formed and cannot be carried out as it is.
    pub fn unprocessable(detail: impl Into<String>) -> Self {
        Problem::new(StatusCode::UNPROCESSABLE_ENTITY, detail)
    }

    /// Something stands against it at this moment.
    pub fn conflict(detail: impl Into<String>) -> Self {
        Problem::new(StatusCode::CONFLICT, detail)
    }

    /// It cannot be done now, and can be tried again.
    pub fn unavailable(detail: impl Into<String>) -> Self {
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail)
    }

    /// Something is wrong here. Clients are told no more than that; the log has the reason.
    pub fn internal(reason: &dyn std::fmt::Display) -> Self {
        tracing::error!(target: "hotcell::serve", %reason, "a request could not be answered");
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "something is wrong on the server; its log says what")
    }

    /// A run that is over takes no more of this.
    pub(crate) fn ended(run: &RunId, status: RunStatus) -> Self {
        Problem::conflict(format!("run `{run}` is {status}"))
            .kind("run-ended", "The run has ended")
            .with("run_id", run.as_str())
            .with("standing", status.as_str())
    }

    /// A run of the thread is in the way.
    pub(crate) fn thread_busy(thread: &str, run: &RunId) -> Self {
        Problem::conflict(format!("thread `{thread}` is busy with run `{run}`; wait for it, or cancel it"))
            .kind("thread-busy", "The thread is busy")
            .with("thread_id", thread)
            .with("run_id", run.as_str())
    }

    /// A thread has gone on after a certain run.
    pub(crate) fn thread_moved(thread: &str, run: &RunId) -> Self {
        Problem::conflict(format!("thread `{thread}` has gone on after run `{run}`"))
            .kind("thread-moved", "The thread has gone on")
            .with("thread_id", thread)
            .with("run_id", run.as_str())
    }

    /// The run that keeps another one of its thread from being begun, if that is the problem.
    pub(crate) fn run_in_the_way(&self) -> Option<String> {
        let is_that = ["thread-busy", "thread-interrupted"].iter().any(|kind| self.is_kind(kind));
        self.more.get("run_id").and_then(Value::as_str).filter(|_| is_that).map(str::to_owned)
    }

    /// Whether the problem is that a run is over.
    pub(crate) fn is_ended(&self) -> bool {
        self.is_kind("run-ended")
    }

    /// Whether another run of the thread was begun, or is worked on, where one was to follow a certain other.
    pub(crate) fn is_thread_elsewhere(&self) -> bool {
        ["thread-busy", "thread-interrupted", "thread-moved"].iter().any(|kind| self.is_kind(kind))
    }

    /// After how many seconds it may be tried again, if that helps.
    pub(crate) fn retry_after(&self) -> Option<u64> {
        let seconds = self.more.get("retry_after").and_then(Value::as_u64).unwrap_or(1);
        matches!(self.status, 429 | 503).then_some(seconds)
    }

    /// Whether the problem is that a tenant began too many runs, which is over within a minute.
    pub(crate) fn is_too_many_a_minute(&self) -> bool {
        self.is_kind("too-many-runs-a-minute")
    }

    /// The last part of its kind.
    pub(crate) fn short_kind(&self) -> &str {
        self.kind.strip_prefix("urn:hotcell:problem:").unwrap_or(&self.kind)
    }

    fn is_kind(&self, kind: &str) -> bool {
        self.short_kind() == kind
    }

    /// The question is for whoever runs the server.
    pub(crate) fn operator_only() -> Self {
        let detail = "the question asks for a capability: somebody with the role `administer` answers it, with `POST /runs/{run_id}/answers`";
        Problem::new(StatusCode::FORBIDDEN, detail).kind("operator-only", "Only whoever runs the server may answer")
    }

    /// The last run of the thread waits for a person.
    pub(crate) fn thread_waits(thread: &str, run: &RunId, questions: &[Question]) -> Self {
        let detail = format!(
            "run `{run}` of thread `{thread}` waits for an answer; give it with `POST /runs/{run}/answers`, or cancel the run"
        );
        Problem::conflict(detail)
            .kind("thread-interrupted", "The thread waits for an answer")
            .with("thread_id", thread)
            .with("run_id", run.as_str())
            .with("questions", json!(questions))
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        // Texts and numbers can always be written.
        let body = serde_json::to_vec(&self).unwrap_or_default();
        let mut response = (status, body).into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if let Some(seconds) = self.retry_after() {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        // For protocols that say the same in another form.
        response.extensions_mut().insert(self);
        response
    }
}

impl From<JournalError> for Problem {
    fn from(error: JournalError) -> Self {
        match error {
            JournalError::NoSuchRun(run) => Problem::not_found(format!("there is no run `{}`", shown(&run))),
            JournalError::Ended { run, status } => Problem::ended(&run, status),
            JournalError::Cancelled(run) => Problem::ended(&run, RunStatus::Cancelled),
            JournalError::NotAsked { ref run, ref question, .. } => Problem::conflict(error.to_string())
                .kind("question-closed", "The question takes no answer")
                .with("run_id", run.as_str())
                .with("question_id", question.as_str()),
            JournalError::Expired { ref run, ref question } => Problem::conflict(error.to_string())
                .kind("question-expired", "The time of the question is over")
                .with("run_id", run.as_str())
                .with("question_id", question.as_str()),
            JournalError::NoSuchPage(after) => Problem::not_found(format!(
                "no page begins at `{}`; `next` of the page before says where one does",
                shown(&after)
            )),
            JournalError::TooManyWords(_) => Problem::unprocessable(error.to_string()),
            JournalError::Exists(_)
            | JournalError::Busy(_)
            | JournalError::ThreadBusy(_)
            | JournalError::ThreadMoved => Problem::conflict(error.to_string()),
            // A full disk, for one. The path is nobody's business.
            JournalError::Store { doing, .. } => {
                tracing::error!(target: "hotcell::serve", %error, "the journal cannot be used");
                Problem::unavailable(format!("the journal cannot be {doing}; nothing was lost, and nothing was begun"))
                    .kind("journal-unavailable", "The journal cannot be used")
                    .with("retry_after", 10)
            }
            other => Problem::internal(&other),
        }
    }
}

impl From<HostError> for Problem {
    fn from(error: HostError) -> Self {
        match error {
            HostError::Journal(error) | HostError::Run(RunError::Journal(error)) => error.into(),
            HostError::Run(RunError::Ended { run, status }) => Problem::ended(&run, status),
            HostError::Run(
                ref refused @ (RunError::MissingVariables(_)
                | RunError::MissingInputs(_)
                | RunError::UnknownVariables(_)
                | RunError::UnknownState(_)
                | RunError::Input(_)
                | RunError::State(_)
                | RunError::AgentVariables { .. }),
            ) => Problem::unprocessable(refused.to_string()).kind("input", "The input does not fit the agent"),
            HostError::Run(RunError::Fork(refused)) => {
                Problem::unprocessable(refused.to_string()).kind("fork", "The run cannot be forked so")
            }
            HostError::NoSuchRevision { .. } | HostError::SeveralRevisions { .. } => {
                Problem::unprocessable(error.to_string()).kind("revision", "There is no such revision")
            }
            HostError::DoesNotFit { ref run, ref cause } => Problem::unprocessable(format!(
                "run `{run}` cannot continue with this revision: {cause}; nothing was changed. Without `revision`, it continues with its own"
            ))
            .kind("does-not-fit", "The run does not fit the agent"),
            HostError::Run(RunError::Mismatch { .. }) => {
                Problem::unprocessable(error.to_string()).kind("does-not-fit", "The run does not fit the agent")
            }
            // What is wrong, and where, is for whoever has the files.
            HostError::Load { .. } | HostError::Changed { .. } => {
                tracing::warn!(target: "hotcell::serve", %error, "a run cannot go on with the files as they are now");
                let detail =
                    "the agent of the run cannot be loaded from its files as they are now; the server's log says why";
                Problem::conflict(detail).kind("not-loaded", "The agent cannot be loaded")
            }
            HostError::NothingAsked { ref run, status } => Problem::conflict(error.to_string())
                .kind("question-closed", "The question takes no answer")
                .with("run_id", run.as_str())
                .with("standing", status.as_str()),
            HostError::WhichQuestion { ref named, ref open, .. } => {
                let open: Vec<&str> = open.iter().map(|question| question.id.as_str()).collect();
                let problem = match named {
                    Some(_) => Problem::conflict("the run has no open question of this id"),
                    None => Problem::unprocessable("the run has several open questions; say which with `question_id`"),
                };
                problem.kind("question-closed", "The question takes no answer").with("open", json!(open))
            }
            HostError::OperatorOnly { .. } => Problem::operator_only(),
            HostError::NoDecision { .. } => {
                Problem::unprocessable("the question asks for a capability: answer `once`, `run`, `always` or `refuse`")
            }
            HostError::Stopped => Problem::unavailable("the server is shutting down; nothing was begun"),
            other => Problem::internal(&other),
        }
    }
}

/// What somebody sent, as it can be shown: short, and on one line.
pub(crate) fn shown(text: &str) -> String {
    shortened(text, 100)
}

/// What somebody sent, on one line and with so many characters at most.
pub(crate) fn shortened(text: &str, most: usize) -> String {
    let short: String = text.chars().take(most).collect();
    let more = if short.len() < text.len() { "…" } else { "" };
    format!("{}{more}", short.escape_debug())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_says_no_path_of_the_server() {
        let error = JournalError::Store {
            path: "/home/somebody/runs.db".into(),
            doing: "written",
            cause: "database or disk is full".into(),
        };
        let problem = Problem::from(error);
        assert_eq!(problem.status, 503);
        assert!(!serde_json::to_string(&problem).expect("json").contains("somebody"));
    }

    #[test]
    fn what_is_shown_of_a_text_is_short_and_has_no_control_characters() {
        assert_eq!(shown("a\u{1b}[31m\n"), "a\\u{1b}[31m\\n");
        assert!(shown(&"x".repeat(10_000)).chars().count() <= 101);
    }
}
