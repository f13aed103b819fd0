//! Questions to whoever sits at the client: put while a call goes on, or as its result.

use rmcp::RoleServer;
use rmcp::model::{
    CallToolResponse, ClientResult, ElicitRequest, ElicitRequestParams, InputRequest, InputRequests,
    InputRequiredResult, ServerRequest,
};
use rmcp::service::{Peer, PeerRequestOptions, RequestHandle};
use serde_json::Value;
use tokio::sync::oneshot;

use super::asked::{Asked, Asks, elicited};
use super::context::ElicitError;
use crate::exchange::Elicited;
use crate::text::shown;

/// A question as a form.
///
/// # Errors
/// When its schema is not of the kind that clients can make a form of.
fn form(message: String, schema: Value) -> Result<ElicitRequestParams, ElicitError> {
    let requested_schema = serde_json::from_value(schema).map_err(|error| ElicitError::Schema(error.to_string()))?;
    Ok(ElicitRequestParams::FormElicitationParams { meta: None, message, requested_schema })
}

/// The result that asks.
///
/// # Errors
/// When a question cannot be put as a form.
pub(super) fn required(asks: Asks) -> Result<CallToolResponse, ElicitError> {
    let mut requests = InputRequests::new();
    for Asked { id, message, schema } in asks.questions {
        requests.insert(id, InputRequest::Elicitation(ElicitRequest::new(form(message, schema)?)));
    }
    Ok(InputRequiredResult::new(Some(requests), Some(asks.state)).into())
}

/// Puts a question while a call goes on.
///
/// # Errors
/// When it cannot be put as a form, or not be sent.
pub(super) async fn ask(
    peer: &Peer<RoleServer>,
    message: String,
    schema: Value,
) -> Result<RequestHandle<RoleServer>, ElicitError> {
    let request = ServerRequest::ElicitRequest(ElicitRequest::new(form(message, schema)?));
    let sent = peer.send_cancellable_request(request, PeerRequestOptions::no_options()).await;
    sent.map_err(|error| ElicitError::Failed(shown(&error.to_string())))
}

/// A question that waits for its answer. If it is dropped before, the client is told that nobody waits any more.
pub(super) struct Question {
    handle: Option<RequestHandle<RoleServer>>,
    answer: Option<oneshot::Sender<Result<Elicited, ElicitError>>>,
}

impl Question {
    pub(super) fn new(
        handle: RequestHandle<RoleServer>,
        answer: oneshot::Sender<Result<Elicited, ElicitError>>,
    ) -> Self {
        Question { handle: Some(handle), answer: Some(answer) }
    }

    /// Waits for the answer, and hands it to whoever asked.
    pub(super) fn wait(mut self) -> futures::future::BoxFuture<'static, ()> {
        Box::pin(async move {
            let (Some(handle), Some(answer)) = (&mut self.handle, &mut self.answer) else { return };
            let result = tokio::select! {
                result = &mut handle.rx => result,
                () = answer.closed() => return,
            };
            self.handle = None;
            let elicited = match result {
                Ok(Ok(ClientResult::ElicitResult(result))) => Ok(elicited(result)),
                Ok(Ok(_)) => Err(ElicitError::Failed("it is not an answer to the question".to_owned())),
                Ok(Err(error)) => Err(ElicitError::Failed(shown(&error.to_string()))),
                Err(_) => Err(ElicitError::Failed("the connection was lost".to_owned())),
            };
            if let Some(answer) = self.answer.take() {
                // Whoever asked may have gone meanwhile.
                let _ = answer.send(elicited);
            }
        })
    }
}

impl Drop for Question {
    fn drop(&mut self) {
        let (Some(handle), Ok(runtime)) = (self.handle.take(), tokio::runtime::Handle::try_current()) else { return };
        runtime.spawn(async move {
            if let Err(error) = handle.cancel(Some("not wanted".to_owned())).await {
                tracing::debug!(%error, "a question could not be taken back");
            }
        });
    }
}
