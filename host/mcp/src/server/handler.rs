//! One client's session: requests of the protocol become calls of the catalog.

#![expect(deprecated, reason = "the library warns of logs, which all supported revisions have")]

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use http::request::Parts;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CompleteRequestMethod, CompleteRequestParams,
    CompleteResult, ContentBlock, ErrorCode, ErrorData, Extensions, Implementation, ListPromptsRequestMethod,
    ListPromptsResult, ListResourceTemplatesRequestMethod, ListResourceTemplatesResult, ListResourcesRequestMethod,
    ListResourcesResult, ListToolsResult, LoggingMessageNotificationParam, PaginatedRequestParams,
    ProgressNotificationParam, ProgressToken, ProtocolVersion, ResourceContents, ServerCapabilities, ServerConfig,
    SetLevelRequestParams, SubscriptionFilter, Tool, ToolAnnotations,
};
use rmcp::service::{NotificationContext, Peer, RequestContext, SubscriptionContext};
use rmcp::{RoleServer, ServerHandler};
use serde_json::Value;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::asked::going_on;
use super::attended::ClientGone;
use super::client::Client;
use super::context::{About, ElicitError, Note};
use super::question::{Question, ask, required};
use super::{Answer, CallContext, Called, Catalog, CatalogError, Content, Identity, OfferedTool};
use crate::exchange::LogLevel;
use crate::text::shown;

/// How long a cancelled call may take to come to an end.
const CANCELLED_WITHIN: Duration = Duration::from_secs(10);

/// What one client is offered.
pub(super) struct Session {
    catalog: Arc<dyn Catalog>,
    identity: Identity,
    /// The least serious lines of logs that the client wants, as the number of the level
    level: AtomicU8,
    /// Ends what was started for this session
    session: CancellationToken,
    _ends: DropGuard,
}

impl Session {
    pub(super) fn new(catalog: Arc<dyn Catalog>, identity: Identity) -> Self {
        let session = CancellationToken::new();
        let ends = session.clone().drop_guard();
        Session { catalog, identity, level: AtomicU8::new(LogLevel::Info as u8), session, _ends: ends }
    }

    async fn note(&self, note: Note, call: &mut Telling<'_>) {
        let sent = match note {
            Note::Progress { done, total, message } => {
                let Some(token) = call.token.clone().filter(|_| done > call.done) else { return };
                call.done = done;
                let mut params = ProgressNotificationParam::new(token, done);
                (params.total, params.message) = (total, message);
                call.peer.notify_progress(params).await
            }
            Note::Log { level, text } => {
                if call.level.is_none_or(|wanted| (level as u8) < wanted) {
                    return;
                }
                let params = LoggingMessageNotificationParam::new(level.into(), Value::String(text));
                call.peer.notify_logging_message(params).await
            }
            Note::Ask { answer, .. } if call.over => {
                drop(answer.send(Err(ElicitError::Failed("the call was cancelled".to_owned()))));
                return;
            }
            Note::Ask { message, schema, answer } => {
                match ask(call.peer, message, schema).await {
                    Ok(handle) => call.questions.push(Question::new(handle, answer).wait()),
                    Err(error) => drop(answer.send(Err(error))),
                }
                return;
            }
        };
        if let Err(error) = sent {
            tracing::debug!(%error, "a report could not be sent");
        }
    }
}

/// What one call has told its client so far.
struct Telling<'a> {
    peer: &'a Peer<RoleServer>,
    token: Option<ProgressToken>,
    /// The least serious lines of logs that the client wants; none for no line
    level: Option<u8>,
    done: f64,
    /// The client does not want the answer any more
    over: bool,
    questions: FuturesUnordered<futures::future::BoxFuture<'static, ()>>,
}

impl ServerHandler for Session {
    fn get_info(&self) -> ServerConfig {
        let mut capabilities = ServerCapabilities::builder().enable_tools().build();
        if let Some(tools) = &mut capabilities.tools {
            tools.list_changed = self.catalog.changes().map(|_| true);
        }
        capabilities.logging = Some(serde_json::Map::new());
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new(self.identity.name.clone(), self.identity.version.clone()))
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Borrowed(ProtocolVersion::known_up_to(&ProtocolVersion::V_2026_07_28))
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        let Some(mut changes) = self.catalog.changes() else { return };
        changes.mark_unchanged();
        let telling = async move {
            while changes.changed().await.is_ok() {
                if context.peer.notify_tool_list_changed().await.is_err() {
                    return;
                }
            }
        };
        tokio::spawn(self.session.clone().run_until_cancelled_owned(telling));
    }

    /// How clients without a session are told of tools that changed.
    fn accepted_subscription_filter(&self, _requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        self.catalog.changes().map(|_| SubscriptionFilter::builder().tools_list_changed().build())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let Some(mut changes) = self.catalog.changes() else { return Ok(()) };
        changes.mark_unchanged();
        loop {
            tokio::select! {
                () = context.cancelled() => return Ok(()),
                changed = changes.changed() => {
                    if changed.is_err() || context.sink().notify_tool_list_changed().await.is_err() {
                        return Ok(());
                    }
                }
            }
        }
    }

    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.level.store(LogLevel::from(request.level) as u8, Ordering::Relaxed);
        Ok(())
    }

    // The library answers these with empty lists, also where nothing of the kind is declared: then they are no methods.

    async fn list_prompts(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Err(ErrorData::method_not_found::<ListPromptsRequestMethod>())
    }

    async fn list_resources(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Err(ErrorData::method_not_found::<ListResourcesRequestMethod>())
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Err(ErrorData::method_not_found::<ListResourceTemplatesRequestMethod>())
    }

    async fn complete(
        &self,
        _request: CompleteRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        Err(ErrorData::method_not_found::<CompleteRequestMethod>())
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let mut names = HashSet::new();
        let mut tools = self.catalog.tools(&client(&context.extensions));
        tools.retain(|tool| names.insert(tool.name.clone()));
        Ok(ListToolsResult::with_all_items(tools.into_iter().map(described).collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let client = client(&context.extensions);
        if !self.catalog.tools(&client).iter().any(|tool| tool.name == request.name) {
            return Err(ErrorData::invalid_params(format!("unknown tool: {}", shown(&request.name)), None));
        }
        // A client of the first revision with questions only says that it takes them, not in which form.
        let answers = context
            .client_capabilities()
            .and_then(|capabilities| capabilities.elicitation)
            .is_some_and(|modes| modes.form.is_some() || modes.url.is_none());
        let has_session = context.protocol_version().is_none_or(|version| version.has_initialize());
        let gone = context.extensions.get::<ClientGone>().map(|gone| gone.0.clone()).unwrap_or_default();
        let about = About {
            client,
            can_ask: answers && has_session,
            can_answer_later: answers && !has_session,
            going_on: going_on(request.request_state, request.input_responses)
                .map_err(|reason| ErrorData::invalid_params(reason, None))?,
            gone: gone.clone(),
        };
        let (call, mut notes) = CallContext::new(context.ct.clone(), about);
        let mut telling = Telling {
            peer: &context.peer,
            token: context.meta.get_progress_token(),
            level: match has_session {
                true => Some(self.level.load(Ordering::Relaxed)),
                // Without a session, each call says whether it wants any.
                false => context.meta.log_level().map(|level| LogLevel::from(level) as u8),
            },
            done: f64::NEG_INFINITY,
            over: false,
            questions: FuturesUnordered::new(),
        };
        let mut calling = self.catalog.call(&request.name, request.arguments.unwrap_or_default(), call);
        let overdue = async {
            context.ct.cancelled().await;
            tokio::time::sleep(CANCELLED_WITHIN).await;
        };
        let gone = gone.cancelled();
        tokio::pin!(overdue, gone);
        let called = loop {
            tokio::select! {
                biased;
                () = &mut gone, if !context.ct.is_cancelled() => context.ct.cancel(),
                () = context.ct.cancelled(), if !telling.over => {
                    telling.over = true;
                    telling.questions.clear();
                }
                Some(note) = notes.recv() => self.note(note, &mut telling).await,
                Some(()) = telling.questions.next() => {}
                called = &mut calling => break called,
                () = &mut overdue => {
                    return Err(ErrorData::internal_error("the call was cancelled", None));
                }
            }
        };
        while let Ok(note) = notes.try_recv() {
            if !matches!(note, Note::Ask { .. }) {
                self.note(note, &mut telling).await;
            }
        }
        match called {
            Ok(Answer::Done(called)) => Ok(CallToolResponse::Complete(result(called))),
            Ok(Answer::Asks(asks)) => {
                required(asks).map_err(|error| ErrorData::internal_error(error.to_string(), None))
            }
            Err(CatalogError::InvalidArguments(reason) | CatalogError::InvalidState(reason)) => {
                Err(ErrorData::invalid_params(reason, None))
            }
            Err(CatalogError::Unavailable(reason)) => Err(ErrorData::new(ErrorCode::INTERNAL_ERROR, reason, None)),
        }
    }
}

/// Who sent the request.
fn client(extensions: &Extensions) -> Client {
    Client::of(extensions.get::<Parts>())
}

fn described(tool: OfferedTool) -> Tool {
    let mut described = Tool::new(tool.name, tool.description, tool.input_schema);
    described.title = tool.title;
    described.output_schema = tool.output_schema.map(Arc::new);
    let hints = ToolAnnotations::new().read_only(tool.read_only).open_world(tool.open_world);
    // What changes nothing destroys nothing.
    described.annotations = Some(if tool.read_only { hints.destructive(false) } else { hints });
    described
}

fn result(called: Called) -> CallToolResult {
    let content = called.content.into_iter().map(|content| match content {
        Content::Text(text) => ContentBlock::text(text),
        Content::Image { mime_type, data } => ContentBlock::image(data, mime_type),
        Content::Audio { mime_type, data } => ContentBlock::audio(data, mime_type),
        Content::Document { uri, mime_type, text } => {
            ContentBlock::resource(ResourceContents::text(text, uri).with_mime_type(mime_type))
        }
    });
    let mut result = CallToolResult::success(content.collect());
    result.structured_content = called.structured;
    result.is_error = Some(called.is_error);
    result
}
