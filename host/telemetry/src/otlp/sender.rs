//! Sends what was told to a collector, beside everything else: whoever tells something never waits for it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hotcell_tls::client_config;
use http::header::CONTENT_TYPE;
use reqwest::redirect::Policy;
use rustls::RootCertStore;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::encode;
use super::settings::{Endpoint, OtlpSettings, VariableError};
use crate::meter::Meter;
use crate::names::{Measure, Names};
use crate::span::Span;

/// How long connecting may take.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);
/// How often something is sent that a collector does not take for now.
const ATTEMPTS: u32 = 4;
/// The pause after the first attempt; it doubles.
const PAUSE: Duration = Duration::from_secs(1);

/// Meters whose numbers are sent, with whose they are.
type Meters = Arc<Mutex<Vec<(Option<String>, Arc<Meter>)>>>;

/// What is told to a collector.
pub(crate) struct Sender {
    spans: Option<mpsc::Sender<Span>>,
    meter: Arc<Meter>,
    meters: Meters,
    /// Cancelled when what is there has to be sent, and nothing more comes
    closing: CancellationToken,
    tasks: Mutex<Vec<JoinHandle<()>>>,
}

impl Sender {
    /// Begins to send. It needs a runtime.
    pub(crate) fn start(settings: &OtlpSettings, meter: &Arc<Meter>) -> Result<Self, VariableError> {
        let closing = CancellationToken::new();
        let meters: Meters = Arc::new(Mutex::new(vec![(None, meter.clone())]));
        let mut tasks = Vec::new();
        let mut spans = None;
        if let Some(endpoint) = &settings.traces {
            let (sender, queue) = mpsc::channel(settings.queue);
            let post = Post::new(endpoint, "TRACES", closing.clone())?;
            let work = Spans {
                post,
                queue,
                meter: meter.clone(),
                resource: settings.resource.clone(),
                batch: settings.batch,
                delay: settings.delay,
                closing: closing.clone(),
            };
            tasks.push(tokio::spawn(work.send()));
            spans = Some(sender);
        }
        if let Some(endpoint) = &settings.metrics {
            let post = Post::new(endpoint, "METRICS", closing.clone())?;
            let (meters, resource, names) = (meters.clone(), settings.resource.clone(), settings.names);
            tasks.push(tokio::spawn(send_metrics(post, meters, resource, names, settings.interval, closing.clone())));
        }
        Ok(Sender { spans, meter: meter.clone(), meters, closing, tasks: Mutex::new(tasks) })
    }

    /// From now on, the numbers of a tenant are sent, too.
    pub(crate) fn add(&self, tenant: &str, meter: &Arc<Meter>) {
        let mut meters = self.meters.lock().unwrap_or_else(PoisonError::into_inner);
        meters.push((Some(tenant.to_owned()), meter.clone()));
    }

    /// Whether spans are sent.
    pub(crate) fn takes_spans(&self) -> bool {
        self.spans.is_some()
    }

    /// Takes a span to send it, unless too many wait.
    pub(crate) fn take(&self, span: Span) {
        if self.spans.as_ref().is_some_and(|spans| spans.try_send(span).is_err()) {
            self.meter.series(Measure::SpansSent, &["dropped"]).add(1);
        }
    }

    /// Sends what is there, within so much time.
    pub(crate) async fn close(&self, within: Duration) {
        self.closing.cancel();
        let tasks = std::mem::take(&mut *self.tasks.lock().unwrap_or_else(PoisonError::into_inner));
        let aborts: Vec<_> = tasks.iter().map(JoinHandle::abort_handle).collect();
        let all = async {
            for task in tasks {
                let _ = task.await;
            }
        };
        if tokio::time::timeout(within, all).await.is_err() {
            tracing::warn!(target: "hotcell::telemetry", "the collector did not take in time what was left to send");
            aborts.iter().for_each(tokio::task::AbortHandle::abort);
        }
    }
}

/// Sends spans.
struct Spans {
    post: Post,
    queue: mpsc::Receiver<Span>,
    meter: Arc<Meter>,
    resource: Vec<(String, String)>,
    batch: usize,
    delay: Duration,
    closing: CancellationToken,
}

impl Spans {
    async fn send(mut self) {
        loop {
            let mut spans = Vec::new();
            let is_closing = self.closing.clone().run_until_cancelled(self.collect(&mut spans)).await.is_none();
            if is_closing {
                while spans.len() < self.batch
                    && let Ok(span) = self.queue.try_recv()
                {
                    spans.push(span);
                }
            }
            if spans.is_empty() {
                return;
            }
            let count = spans.len() as u64;
            let outcome = match self.post.post(encode::spans(&self.resource, spans)).await {
                true => "sent",
                false => "refused",
            };
            self.meter.series(Measure::SpansSent, &[outcome]).add(count);
        }
    }

    /// Waits for spans until there are enough of them, or the first one has waited long enough. What is in `spans` when it is given
    /// up is not lost.
    async fn collect(&mut self, spans: &mut Vec<Span>) {
        let Some(first) = self.queue.recv().await else { return };
        spans.push(first);
        let more = async {
            while spans.len() < self.batch
                && let Some(span) = self.queue.recv().await
            {
                spans.push(span);
            }
        };
        let _ = tokio::time::timeout(self.delay, more).await;
    }
}

async fn send_metrics(
    post: Post,
    meters: Meters,
    resource: Vec<(String, String)>,
    names: Names,
    interval: Duration,
    closing: CancellationToken,
) {
    loop {
        let is_closing = closing.run_until_cancelled(tokio::time::sleep(interval)).await.is_none();
        let all = meters.lock().unwrap_or_else(PoisonError::into_inner).clone();
        post.post(encode::metrics(&resource, &all, names)).await;
        if is_closing {
            return;
        }
    }
}

/// Requests to one address.
struct Post {
    client: reqwest::Client,
    endpoint: Endpoint,
    closing: CancellationToken,
}

impl Post {
    fn new(endpoint: &Endpoint, signal: &str, closing: CancellationToken) -> Result<Self, VariableError> {
        let wrong = |reason: String| VariableError {
            variable: format!("OTEL_EXPORTER_OTLP_{signal}_CERTIFICATE"),
            reason: format!("or what belongs to it cannot be used: {reason}"),
        };
        let mut roots = RootCertStore::empty();
        if endpoint.tls.ca_file.is_none() && endpoint.url.scheme() == "https" {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
        let tls = client_config(&endpoint.tls, || roots).map_err(|error| wrong(error.to_string()))?;
        let client = reqwest::Client::builder()
            .tls_backend_preconfigured(tls)
            .redirect(Policy::none())
            .retry(reqwest::retry::never())
            .no_proxy()
            .connect_timeout(CONNECT_WITHIN.min(endpoint.timeout))
            .timeout(endpoint.timeout)
            .default_headers(endpoint.headers.clone())
            .user_agent(concat!("hotcell/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| wrong(error.to_string()))?;
        Ok(Post { client, endpoint: endpoint.clone(), closing })
    }

    /// Whether the collector took it. One that is busy or gone is asked again, a little later and not for ever.
    async fn post(&self, body: Vec<u8>) -> bool {
        // Bytes are shared between attempts.
        let body = bytes::Bytes::from(body);
        let mut pause = PAUSE;
        for attempt in 1..=ATTEMPTS {
            let request = self.client.post(self.endpoint.url.clone()).header(CONTENT_TYPE, "application/x-protobuf");
            let reason = match request.body(body.clone()).send().await {
                Ok(reply) if reply.status().is_success() => return true,
                Ok(reply) if matches!(reply.status().as_u16(), 429 | 502 | 503 | 504) => reply.status().to_string(),
                Ok(reply) => {
                    let status = reply.status();
                    tracing::warn!(target: "hotcell::telemetry", %status, "the collector refused what was sent");
                    return false;
                }
                // The address may have a key in it.
                Err(error) => error.without_url().to_string(),
            };
            tracing::debug!(target: "hotcell::telemetry", reason, attempt, "the collector cannot be reached");
            if self.closing.is_cancelled() || attempt == ATTEMPTS {
                break;
            }
            let _ = self.closing.run_until_cancelled(tokio::time::sleep(pause)).await;
            pause *= 2;
        }
        tracing::warn!(target: "hotcell::telemetry", "the collector could not be reached; what was to be sent is lost");
        false
    }
}
