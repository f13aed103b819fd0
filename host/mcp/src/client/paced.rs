//! Requests to a server over Streamable HTTP, slowed down where the server makes this host busy: by streams that end
//! as soon as they are opened again, and by events that mean nothing.

use std::collections::HashMap;
use std::sync::Arc;

use futures::StreamExt;
use futures::stream::BoxStream;
use http::{HeaderName, HeaderValue};
use rmcp::model::ClientJsonRpcMessage;
use rmcp::transport::streamable_http_client::{
    SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};
use sse_stream::Sse;
use tokio::sync::Mutex;

use super::ending::Ending;
use super::pace::{Pace, STREAM, UNASKED, reading};

type Events = BoxStream<'static, Result<Sse, SseError>>;
type Failure = StreamableHttpError<reqwest::Error>;
type Headers = HashMap<HeaderName, HeaderValue>;

/// A client that takes its time where it has to.
#[derive(Clone)]
pub(crate) struct Paced {
    client: reqwest::Client,
    streams: Arc<Mutex<Pace>>,
    most_bytes: usize,
    ending: Arc<Ending>,
}

impl Paced {
    /// Takes events of at most `most_bytes` bytes; a larger one ends the connection.
    pub(crate) fn new(client: reqwest::Client, most_bytes: usize, ending: Arc<Ending>) -> Self {
        Paced { client, streams: Arc::new(Mutex::new(Pace::new())), most_bytes, ending }
    }

    fn too_large(&self) -> String {
        format!("it sent a message of more than {} bytes", self.most_bytes)
    }

    /// The events of one stream at a pace.
    fn slowed(&self, events: Events) -> Events {
        let (ending, fault) = (self.ending.clone(), self.too_large());
        let watched = events.inspect(move |event| match event {
            // The library has a limit but no type for its error.
            Err(error) if error.to_string().contains("exceeded the maximum size") => ending.end_because(fault.clone()),
            _ => {}
        });
        let paced = futures::stream::unfold((watched, Pace::new()), |(mut events, mut pace)| async move {
            pace.ready().await;
            let event = events.next().await?;
            let bytes = event.as_ref().ok().and_then(|event| event.data.as_ref()).map_or(0, String::len);
            pace.spend(UNASKED.saturating_add(reading(bytes)));
            Some((event, (events, pace)))
        });
        paced.boxed()
    }
}

/// The failure without the address, which may hold a key and would come into the library's log.
fn bare(failure: Failure) -> Failure {
    match failure {
        StreamableHttpError::Client(error) => StreamableHttpError::Client(error.without_url()),
        other => other,
    }
}

impl StreamableHttpClient for Paced {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        auth: Option<String>,
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let limit = self.most_bytes;
        let posted = self.client.post_message_with_max_sse_event_size(uri, message, session, auth, headers, limit);
        match posted.await {
            Ok(StreamableHttpPostResponse::Sse(events, session)) => {
                Ok(StreamableHttpPostResponse::Sse(self.slowed(events), session))
            }
            Err(error @ StreamableHttpError::ResponseBodyTooLarge { .. }) => {
                self.ending.end_because(self.too_large());
                Err(error)
            }
            other => other.map_err(bare),
        }
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        auth: Option<String>,
        headers: Headers,
    ) -> Result<(), Failure> {
        self.client.delete_session(uri, session, auth, headers).await.map_err(bare)
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        auth: Option<String>,
        headers: Headers,
    ) -> Result<Events, Failure> {
        {
            let mut streams = self.streams.lock().await;
            streams.ready().await;
            streams.spend(STREAM);
        }
        let limit = self.most_bytes;
        let opened = self.client.get_stream_with_max_sse_event_size(uri, session, last_event, auth, headers, limit);
        opened.await.map(|events| self.slowed(events)).map_err(bare)
    }
}
