//! What agents of others can ask for, whichever way it came in.

use hotcell_runtime::{RunId, RunQuery, RunRecord, RunStatus};
use serde::Deserialize;
use serde_json::{Value, json};

use super::asked::{Asked, no_tenant};
use super::error::{A2aError, Kind};
use super::message::{Incoming, SendParams};
use super::push;
use super::task::{self, Shown, read};
use crate::answerer::Answerer;
use crate::api::in_thread;
use crate::api::listed::Listed;
use crate::api::turn::{self, Beginning, Came, Part, Started};
use crate::problem::{Problem, shown};
use crate::runs::IfBusy;
use crate::state::Server;

/// Tasks on a page where nothing is said, and at most.
const PAGE: (u32, u32) = (50, 100);

/// Tasks that are counted; of more, this is said.
const MOST_COUNTED: usize = 10_000;

/// A message that was taken.
pub(super) struct Sent {
    pub(super) started: Started,
    pub(super) shown: Shown,
    /// Whether to answer before anything came of it
    pub(super) is_immediate: bool,
}

/// A task of a name.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct TaskParams {
    pub(super) id: String,
    #[serde(default)]
    history_length: Option<u32>,
    #[serde(default)]
    tenant: String,
    #[serde(default, rename = "metadata")]
    _metadata: Option<Value>,
}

impl TaskParams {
    pub(super) fn of(id: &str, history_length: Option<u32>) -> Self {
        TaskParams { id: id.to_owned(), history_length, tenant: String::new(), _metadata: None }
    }
}

/// Which tasks are wanted.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ListParams {
    #[serde(default)]
    pub(super) context_id: String,
    #[serde(default)]
    pub(super) status: String,
    pub(super) page_size: Option<u32>,
    #[serde(default)]
    pub(super) page_token: String,
    pub(super) history_length: Option<u32>,
    #[serde(default)]
    pub(super) include_artifacts: bool,
    #[serde(default)]
    pub(super) tenant: String,
}

impl Asked {
    /// Begins a run with a message, or answers the question of one.
    pub(super) async fn send(&self, params: Value) -> Result<Sent, A2aError> {
        let params = SendParams::read(params)?;
        let message = params.check(self.version)?;
        let push = params.configuration.task_push_notification_config.clone();
        let push = push.map(|config| push::Config::read(config, &self.agent, self.version)).transpose()?;
        let run = match &message.task {
            Some(id) => Some(self.run(id).await?),
            None => None,
        };
        if let Some(config) = &push {
            push::has_room(&self.server, run.as_ref().map(|run| &run.id), config)?;
        }
        let shown = Shown { history: params.configuration.history_length, artifacts: true };
        let is_immediate = params.configuration.is_immediate();
        let started = match &run {
            Some(run) => self.answer(run, &message).await?,
            None => {
                let beginning = Beginning {
                    input: message.input()?,
                    metadata: params.metadata.unwrap_or_default(),
                    kept: message.kept(),
                    listens: false,
                };
                self.begin(beginning, message.context.as_deref()).await?
            }
        };
        if let Some(config) = push {
            push::add(&self.server, &started.begun.run, config, started.after)?;
        }
        Ok(Sent { started, shown, is_immediate })
    }

    async fn begin(&self, beginning: Beginning, context: Option<&str>) -> Result<Started, A2aError> {
        let (server, agent) = (&self.server, &self.agent);
        let Some(context) = context else { return Ok(turn::begin(server, agent, beginning, None).await?) };
        let given = beginning.given(agent, context)?;
        match in_thread::start(server, agent, given, true, IfBusy::Reject, beginning.listens).await {
            Ok(begun) => Ok(Started { begun, after: 0 }),
            // What is said is no answer by accident.
            Err(problem) => Err(match problem.run_in_the_way() {
                Some(run) => {
                    let detail = format!(
                        "task `{run}` of the context has not ended; send the message to it with `taskId` if it requires input, or \
                         leave `contextId` out"
                    );
                    A2aError::new(Kind::UnsupportedOperation, detail)
                }
                None => problem.into(),
            }),
        }
    }

    async fn answer(&self, run: &RunRecord, message: &Incoming) -> Result<Started, A2aError> {
        if message.context.as_deref().is_some_and(|context| context != task::context_of(run)) {
            let detail = format!("task `{}` belongs to another context than `message.contextId`", run.id);
            return Err(A2aError::invalid(detail));
        }
        let entries = self.server.runs().store().history(&run.id).await?.whole()?;
        let part = Part::of(&entries, turn::last_turn(&entries));
        let question = match &part.came {
            Came::Asks(open) => open.first().map(|open| open.question.id.clone()).unwrap_or_default(),
            came => {
                let state = task::state(came);
                let detail = format!("task `{}` takes no message: its state is `{state}`", run.id);
                return Err(A2aError::new(Kind::UnsupportedOperation, detail));
            }
        };
        let text = message.answer()?;
        Ok(turn::answer(&self.server, Answerer::of(&self.caller), run, &question, &text, false).await?)
    }

    /// What came of a message.
    pub(super) async fn outcome(&self, sent: &Sent) -> Result<Value, A2aError> {
        let Started { begun, after } = &sent.started;
        if !sent.is_immediate {
            Part::wait(&self.server, &begun.run, &begun.live, *after).await?;
        }
        self.task(&begun.run, sent.shown).await
    }

    /// A task as it stands.
    pub(super) async fn task(&self, run: &RunId, shown: Shown) -> Result<Value, A2aError> {
        let record = self.server.runs().find(run.as_str()).await?;
        Ok(self.version.written(read(&self.server, &record, shown).await?))
    }

    /// A task of a name, as it stands.
    pub(super) async fn get(&self, wanted: TaskParams) -> Result<Value, A2aError> {
        no_tenant(&wanted.tenant)?;
        let run = self.run(&wanted.id).await?;
        self.task(&run.id, Shown { history: wanted.history_length, artifacts: true }).await
    }

    /// Ends a task for good.
    pub(super) async fn cancel(&self, wanted: TaskParams) -> Result<Value, A2aError> {
        no_tenant(&wanted.tenant)?;
        let run = self.run(&wanted.id).await?;
        match self.server.runs().cancel(&run.id).await {
            Ok(_) => {}
            Err(problem) if problem.is_ended() => {
                return Err(A2aError::new(Kind::TaskNotCancelable, format!("task `{}` has ended", run.id)));
            }
            Err(problem) => return Err(problem.into()),
        }
        self.server.runs().rest(&run.id).await?;
        self.task(&run.id, Shown { history: wanted.history_length, artifacts: true }).await
    }

    /// A run that can be followed: one that has not ended.
    pub(super) async fn followed(&self, wanted: TaskParams) -> Result<RunRecord, A2aError> {
        no_tenant(&wanted.tenant)?;
        let run = self.run(&wanted.id).await?;
        if run.status.is_final() {
            let detail = format!("task `{}` has ended; get it in place of following it", run.id);
            return Err(A2aError::new(Kind::UnsupportedOperation, detail));
        }
        Ok(run)
    }

    /// Tasks, the newest first.
    pub(super) async fn list(&self, wanted: ListParams) -> Result<Value, A2aError> {
        no_tenant(&wanted.tenant)?;
        let (usual, most) = PAGE;
        let size = wanted.page_size.unwrap_or(usual);
        if !(1..=most).contains(&size) {
            return Err(A2aError::invalid(format!("`pageSize` has to be from 1 to {most}, and is {size}")));
        }
        let statuses = match &*wanted.status {
            state if !task::is_state(state) => RunStatus::ALL.to_vec(),
            state => task::statuses(state).ok_or_else(|| {
                let detail = format!("there is no state `{}` of tasks", shown(state));
                A2aError::invalid(detail)
            })?,
        };
        let some = |text: String| Some(text).filter(|text| !text.is_empty());
        let query = RunQuery {
            sources: Some(vec![self.agent.source().to_owned()]),
            thread: some(wanted.context_id),
            after: some(wanted.page_token),
            limit: size as usize,
            statuses,
            ..RunQuery::default()
        };
        let store = self.server.runs().store();
        let (mut tasks, mut next) = (Listed::new().limited_by("pageSize"), None);
        if !query.statuses.is_empty() {
            let page = store.list(&query).await.map_err(|error| match Problem::from(error) {
                problem if problem.status == 404 => A2aError::invalid("no page begins at `pageToken`"),
                problem => problem.into(),
            })?;
            next = page.next;
            let shown =
                Shown { history: Some(wanted.history_length.unwrap_or(0)), artifacts: wanted.include_artifacts };
            let is_wanted = |task: &Value| !task::is_state(&wanted.status) || task["status"]["state"] == wanted.status;
            for summary in page.runs {
                let run = store.find(summary.id.as_str()).await?;
                let task = read(&self.server, &run, shown).await?;
                if is_wanted(&task) {
                    tasks.push(task)?;
                }
            }
        }
        let (tasks, total) = (tasks.into_all(), count(&self.server, query).await?);
        Ok(json!({ "tasks": tasks, "nextPageToken": next.unwrap_or_default(), "pageSize": size, "totalSize": total }))
    }
}

/// How many tasks there are in all.
async fn count(server: &Server, mut query: RunQuery) -> Result<usize, A2aError> {
    (query.after, query.limit) = (None, MOST_COUNTED);
    if query.statuses.is_empty() {
        return Ok(0);
    }
    Ok(server.runs().store().list(&query).await?.runs.len())
}
