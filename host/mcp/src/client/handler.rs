//! What a server may ask of this host while its tools are used: to ask a person, and to be heard.
//!
//! A server may put a question only while one of its tools is being called, one question at a time. Asking a person
//! to open an address is declined: nothing here can tell them where it leads, and whatever it is about happens
//! outside of the run. Sampling and roots are not offered.

#![expect(deprecated, reason = "the library warns of sampling, roots and logs; the first two are refused here")]

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::model::{
    ClientCapabilities, ClientConfig, CreateMessageRequestParams, CreateMessageResult, ElicitRequestParams,
    ElicitResult, ElicitationAction, ElicitationCapability, ErrorCode, ErrorData, FormElicitationCapability,
    Implementation, ListRootsResult, LoggingMessageNotificationParam, ProgressNotificationParam, ProgressToken,
    ProtocolVersion,
};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{ClientHandler, RoleClient};
use serde_json::{Map, Value};
use tokio::sync::{Notify, Semaphore, watch};

use super::ending::Ending;
use super::events::{ClientEvents, Progress};
use crate::exchange::Elicited;
use crate::text::clean;

/// How many questions of a server may wait for the one that is being asked.
const WAITING_QUESTIONS: usize = 16;
/// The longest question and the longest line of a log, in bytes; the rest is cut off.
const LONGEST_TEXT: usize = 4 << 10;
/// The largest schema of an answer, in bytes.
const LARGEST_SCHEMA: usize = 64 << 10;

/// What is going on with one server.
pub(crate) struct Activity {
    /// The calls that wait for an answer, by the token of their progress
    calls: Mutex<HashMap<ProgressToken, Arc<str>>>,
    /// How many calls wait, for those who wait for there to be none
    under_way: watch::Sender<usize>,
    /// The server said that its tools are others now
    pub(crate) changed: Notify,
    asking: Semaphore,
    waiting: AtomicUsize,
}

impl Activity {
    pub(crate) fn new() -> Self {
        let (changed, asking) = (Notify::new(), Semaphore::new(1));
        let under_way = watch::Sender::new(0);
        Activity { calls: Mutex::default(), under_way, changed, asking, waiting: AtomicUsize::new(0) }
    }

    fn calls(&self) -> std::sync::MutexGuard<'_, HashMap<ProgressToken, Arc<str>>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn begin(&self, token: ProgressToken, tool: &str) {
        self.calls().insert(token, tool.into());
        self.under_way.send_modify(|calls| *calls += 1);
    }

    pub(crate) fn finish(&self, token: &ProgressToken) {
        self.calls().remove(token);
        self.under_way.send_modify(|calls| *calls = calls.saturating_sub(1));
    }

    /// Waits until no call is under way.
    async fn idle(&self) {
        // The sender lives as long as this does, so waiting does not fail.
        let _ = self.under_way.subscribe().wait_for(|calls| *calls == 0).await;
    }
}

/// Counts a waiting question for as long as it lives.
struct Waiting<'a>(&'a AtomicUsize);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The side of a connection that the server talks to.
pub(crate) struct Handler {
    pub(crate) server: Arc<str>,
    pub(crate) hooks: Arc<dyn ClientEvents>,
    pub(crate) activity: Arc<Activity>,
    pub(crate) ending: Arc<Ending>,
}

impl Handler {
    async fn ask(&self, message: &str, schema: &Value) -> Elicited {
        if self.activity.waiting.fetch_add(1, Ordering::Relaxed) >= WAITING_QUESTIONS {
            self.activity.waiting.fetch_sub(1, Ordering::Relaxed);
            return Elicited::Cancel;
        }
        let _waiting = Waiting(&self.activity.waiting);
        let Ok(_turn) = self.activity.asking.acquire().await else {
            return Elicited::Cancel;
        };
        self.hooks.elicit(&self.server, message, schema).await
    }
}

/// The answer, with the schema's defaults for fields that the person left out.
fn with_defaults(mut fields: Map<String, Value>, schema: &Value) -> Map<String, Value> {
    let properties = schema.get("properties").and_then(Value::as_object);
    for (name, property) in properties.into_iter().flatten() {
        if let Some(default) = property.get("default").filter(|_| !fields.contains_key(name)) {
            fields.insert(name.clone(), default.clone());
        }
    }
    fields
}

fn elicited(action: ElicitationAction) -> Result<ElicitResult, ErrorData> {
    Ok(ElicitResult::new(action))
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let elicitation = ElicitationCapability::new().with_form(FormElicitationCapability::default());
        let mut capabilities = ClientCapabilities::default();
        capabilities.elicitation = Some(elicitation);
        ClientConfig::new(capabilities, Implementation::new("hotcell", env!("CARGO_PKG_VERSION")))
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } = request else {
            return elicited(ElicitationAction::Decline);
        };
        if self.activity.calls().is_empty() {
            let reason = "questions are only asked while a tool is being called";
            return Err(ErrorData::new(ErrorCode::INVALID_REQUEST, reason, None));
        }
        let schema = serde_json::to_value(requested_schema)
            .map_err(|error| ErrorData::invalid_params(format!("the schema cannot be read: {error}"), None))?;
        if schema.to_string().len() > LARGEST_SCHEMA {
            return Err(ErrorData::invalid_params(format!("the schema has more than {LARGEST_SCHEMA} bytes"), None));
        }
        let message = clean(&message, LONGEST_TEXT);
        let answer = tokio::select! {
            answer = self.ask(&message, &schema) => answer,
            () = context.ct.cancelled() => Elicited::Cancel,
            () = self.activity.idle() => Elicited::Cancel,
            () = self.ending.ended() => Elicited::Cancel,
        };
        match answer {
            Elicited::Accept(Value::Object(fields)) => {
                let content = Value::Object(with_defaults(fields, &schema));
                Ok(ElicitResult::new(ElicitationAction::Accept).with_content(content))
            }
            Elicited::Accept(_) => Err(ErrorData::internal_error("the answer is not an object", None)),
            Elicited::Decline => elicited(ElicitationAction::Decline),
            Elicited::Cancel => elicited(ElicitationAction::Cancel),
        }
    }

    async fn create_message(
        &self,
        _params: CreateMessageRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, "sampling is not offered", None))
    }

    async fn list_roots(&self, _context: RequestContext<RoleClient>) -> Result<ListRootsResult, ErrorData> {
        Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, "roots are not offered", None))
    }

    async fn on_progress(&self, params: ProgressNotificationParam, _context: NotificationContext<RoleClient>) {
        let tool = self.activity.calls().get(&params.progress_token).cloned();
        if let Some(tool) = tool {
            let message = params.message.map(|message| clean(&message, LONGEST_TEXT));
            let progress = Progress { done: params.progress, total: params.total, message };
            self.hooks.progress(&self.server, &tool, &progress);
        }
    }

    async fn on_logging_message(
        &self,
        params: LoggingMessageNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        let text = match params.data {
            Value::String(text) => text,
            other => other.to_string(),
        };
        self.hooks.log(&self.server, params.level.into(), &clean(&text, LONGEST_TEXT));
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.activity.changed.notify_one();
    }
}
