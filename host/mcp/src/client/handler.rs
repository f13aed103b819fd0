//! What a server may ask of this host while its tools are used: to ask a person, and to be heard.
//!
//! A server may put a question only while one of its tools is being called, one question at a time. Asking a person
//! to open an address is declined: nothing here can tell them where it leads, and whatever it is about happens
//! outside of the run. Sampling and roots are not offered.

#![expect(deprecated, reason = "the library warns of sampling, roots and logs; the first two are refused here")]

use std::collections::{HashMap, VecDeque};
use std::mem;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::model::{
    ClientCapabilities, ClientConfig, CreateMessageRequestParams, CreateMessageResult, ElicitRequestParams,
    ElicitResult, ElicitationAction, ElicitationCapability, ErrorCode, ErrorData, FormElicitationCapability,
    Implementation, ListRootsResult, LoggingMessageNotificationParam, NumberOrString, ProgressNotificationParam,
    ProgressToken, ProtocolVersion, ServerNotification,
};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{ClientHandler, RoleClient};
use serde::Serialize;
use serde_json::{Map, Value};
use tokio::sync::{Notify, Semaphore, watch};

use super::ending::Ending;
use super::events::{ClientEvents, Progress};
use crate::exchange::Elicited;
use crate::text::{clean, visible};

/// How many questions of a server may wait for the one that is being asked.
const WAITING_QUESTIONS: usize = 16;
/// The longest question and the longest line of a log, in bytes; the rest is cut off.
const LONGEST_TEXT: usize = 4 << 10;
/// The largest schema of an answer, in bytes.
const LARGEST_SCHEMA: usize = 64 << 10;
/// How many reports of progress are kept that came before their call was known here; the oldest is forgotten first.
const EARLY: usize = 16;

/// The calls that wait for an answer.
#[derive(Default)]
struct Calls {
    /// Their tools, by the token of their progress
    tools: HashMap<ProgressToken, Arc<str>>,
    /// Progress of a token that nobody has named yet: a call has its token only after it was sent, and the server may be faster
    early: VecDeque<(ProgressToken, Progress)>,
}

/// What is going on with one server.
pub(crate) struct Activity {
    pub(crate) server: Arc<str>,
    hooks: Arc<dyn ClientEvents>,
    calls: Mutex<Calls>,
    /// How many calls wait, for those who wait for there to be none
    under_way: watch::Sender<usize>,
    /// The server said that its tools are others now
    pub(crate) changed: Notify,
    asking: Semaphore,
    waiting: AtomicUsize,
}

impl Activity {
    pub(crate) fn new(server: Arc<str>, hooks: Arc<dyn ClientEvents>) -> Self {
        let (changed, asking) = (Notify::new(), Semaphore::new(1));
        let (calls, under_way) = (Mutex::default(), watch::Sender::new(0));
        Activity { server, hooks, calls, under_way, changed, asking, waiting: AtomicUsize::new(0) }
    }

    fn calls(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn begin(&self, token: ProgressToken, tool: &str) {
        {
            let mut calls = self.calls();
            let early = mem::take(&mut calls.early);
            let (own, others): (VecDeque<_>, VecDeque<_>) = early.into_iter().partition(|(of, _)| *of == token);
            calls.early = others;
            for (_, progress) in &own {
                self.hooks.progress(&self.server, tool, progress);
            }
            calls.tools.insert(token, tool.into());
        }
        self.under_way.send_modify(|calls| *calls += 1);
    }

    pub(crate) fn finish(&self, token: &ProgressToken) {
        self.calls().tools.remove(token);
        self.under_way.send_modify(|calls| *calls = calls.saturating_sub(1));
    }

    /// Waits until no call is under way.
    async fn idle(&self) {
        // The sender lives as long as this does, so waiting does not fail.
        let _ = self.under_way.subscribe().wait_for(|calls| *calls == 0).await;
    }

    /// Hears what the server tells of its calls, one message after the other, as they come. The library handles each notification in a task
    /// of its own, where it may be overtaken by later ones, and by the answer that ends its call.
    pub(crate) fn hear(&self, told: &ServerNotification) {
        match told {
            ServerNotification::ProgressNotification(told) => self.progress(&told.params),
            ServerNotification::LoggingMessageNotification(told) => self.log(&told.params),
            _ => {}
        }
    }

    fn progress(&self, told: &ProgressNotificationParam) {
        let message = told.message.as_deref().map(|message| clean(message, LONGEST_TEXT));
        let progress = Progress { done: told.progress, total: told.total, message };
        // Held while it is told, so that what came early is told before it.
        let mut calls = self.calls();
        if let Some(tool) = calls.tools.get(&told.progress_token) {
            self.hooks.progress(&self.server, tool, &progress);
            return;
        }
        // Tokens from here are numbers. Those that the server makes up may be long.
        if matches!(told.progress_token.0, NumberOrString::Number(_)) {
            if calls.early.len() == EARLY {
                calls.early.pop_front();
            }
            calls.early.push_back((told.progress_token.clone(), progress));
        }
    }

    fn log(&self, told: &LoggingMessageNotificationParam) {
        let text = match &told.data {
            Value::String(text) => clean(text, LONGEST_TEXT),
            other => clean(&other.to_string(), LONGEST_TEXT),
        };
        self.hooks.log(&self.server, told.level.into(), &text);
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
        self.activity.hooks.elicit(&self.activity.server, message, schema).await
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

/// The schema of what is asked for, as people are shown it.
fn asked(schema: &impl Serialize) -> Result<Value, ErrorData> {
    let schema = serde_json::to_value(schema)
        .map_err(|error| ErrorData::invalid_params(format!("the schema cannot be read: {error}"), None))?;
    if schema.to_string().len() > LARGEST_SCHEMA {
        return Err(ErrorData::invalid_params(format!("the schema has more than {LARGEST_SCHEMA} bytes"), None));
    }
    visible(schema).ok_or_else(|| ErrorData::invalid_params("the schema is nested too deeply", None))
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
        if self.activity.calls().tools.is_empty() {
            let reason = "questions are only asked while a tool is being called";
            return Err(ErrorData::new(ErrorCode::INVALID_REQUEST, reason, None));
        }
        let schema = asked(&requested_schema)?;
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

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.activity.changed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use rmcp::model::ProgressNotification;

    use super::*;

    /// What was told, a line each.
    #[derive(Default)]
    struct Heard(Mutex<Vec<String>>);

    #[async_trait::async_trait]
    impl ClientEvents for Heard {
        async fn elicit(&self, _server: &str, _message: &str, _schema: &Value) -> Elicited {
            Elicited::Decline
        }

        fn progress(&self, _server: &str, tool: &str, progress: &Progress) {
            self.0.lock().expect("unpoisoned").push(format!("{tool} {}", progress.done));
        }
    }

    #[test]
    fn a_person_sees_all_of_what_is_asked_for() {
        let choices = |first: &str| serde_json::json!({ "properties": { "x": { "enum": [first, "delete"], "title": "What\nnow?" } } });
        assert_eq!(asked(&choices("ke\u{202e}ep")).expect("small"), choices("keep"));
        assert!(asked(&choices(&"x".repeat(LARGEST_SCHEMA))).is_err());
    }

    #[test]
    fn progress_of_a_call_that_is_not_known_yet_is_told_first_and_in_order() {
        let heard = Arc::new(Heard::default());
        let activity = Activity::new("s".into(), heard.clone());
        let token = |number| ProgressToken(NumberOrString::Number(number));
        let tell = |token, done| {
            let told = ProgressNotification::new(ProgressNotificationParam::new(token, done));
            activity.hear(&ServerNotification::ProgressNotification(told));
        };
        tell(token(1), 1.0);
        tell(token(2), 1.0);
        tell(token(1), 2.0);
        activity.begin(token(1), "first");
        tell(token(1), 3.0);
        activity.begin(token(2), "second");
        activity.finish(&token(1));
        tell(token(1), 4.0);
        let told = heard.0.lock().expect("unpoisoned").join(", ");
        assert_eq!(told, "first 1, first 2, first 3, second 1");
        // Whatever a server makes up, little of it is kept.
        for number in 0..100 {
            tell(token(number + 10), 1.0);
            tell(ProgressToken(NumberOrString::String("x".repeat(1 << 10).into())), 1.0);
        }
        assert_eq!(activity.calls().early.len(), EARLY);
        assert!(activity.calls().early.iter().all(|(token, _)| matches!(token.0, NumberOrString::Number(_))));
    }
}
