//! What happens in runs as metrics and traces.
//!
//! The events of the engine are the only source: [`Telemetry::watch`] is put between a run and whoever observes it, counts what
//! passes, and makes spans of it. Numbers are read as Prometheus text ([`Telemetry::prometheus`]); numbers and spans are sent to a
//! collector (OTLP) if [`OtlpSettings`] say so. Nothing that people, models or tools say is among it unless that is asked for.
//! All names are in `names.rs`.

mod instrument;
mod meter;
mod names;
mod otlp;
mod prometheus;
mod span;
mod trace;
mod watch;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use hotcell_engine::Observer;

use self::meter::Meter;
pub use self::names::{Measure, Names};
use self::otlp::sender::Sender;
pub use self::otlp::settings::{OtlpSettings, VariableError};
pub use self::prometheus::MEDIA_TYPE as PROMETHEUS_MEDIA_TYPE;
use self::span::Span;
pub use self::trace::About;
use self::trace::Style;
use self::watch::Watch;

/// How long a collector may take what is left at the end.
pub const LAST: Duration = Duration::from_secs(3);

/// Counts what happens, and tells whoever wants to know. Cheap to clone; clones share everything.
#[derive(Clone)]
pub struct Telemetry(Arc<Shared>);

struct Shared {
    meter: Arc<Meter>,
    /// How spans are made, and which part of the traces, if spans are sent
    traces: Option<(Style, f64)>,
    sender: Option<Arc<Sender>>,
    /// Whose runs are counted
    tenant: Option<String>,
}

impl Shared {
    fn send(&self, span: Span) {
        if let Some(sender) = &self.sender {
            sender.take(span);
        }
    }

    /// How spans of a run are made, if they are.
    fn traced(&self, run: &str) -> Option<Style> {
        let (style, ratio) = self.traces?;
        let [.., a, b, c, d, e, f, g] = span::trace_of(run);
        // The last 56 bits, which every process that works on the run decides by alike.
        let part = u64::from_be_bytes([0, a, b, c, d, e, f, g]) as f64 / (1_u64 << 56) as f64;
        (part < ratio).then_some(style)
    }
}

impl Default for Telemetry {
    /// Counts, and sends nothing.
    fn default() -> Self {
        Telemetry(Arc::new(Shared { meter: Arc::new(Meter::new()), traces: None, sender: None, tenant: None }))
    }
}

impl fmt::Debug for Telemetry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Telemetry").field("traces", &self.0.traces).finish_non_exhaustive()
    }
}

impl Telemetry {
    /// Counts, and sends what these settings say. It has to be begun within a runtime of tokio.
    ///
    /// # Errors
    /// Which variable cannot be used, and why: a file with certificates, say.
    pub fn sending(settings: &OtlpSettings) -> Result<Self, VariableError> {
        let meter = Arc::new(Meter::new());
        let sender = Sender::start(settings, &meter)?;
        let style = Style { names: settings.names, content: settings.content };
        let traces = sender.takes_spans().then_some((style, settings.ratio));
        Ok(Telemetry(Arc::new(Shared { meter, traces, sender: Some(Arc::new(sender)), tenant: None })))
    }

    /// The same for the runs of a tenant: it has numbers of its own, and what is sent says whose it is.
    #[must_use]
    pub fn of_tenant(&self, name: &str) -> Self {
        let (meter, Shared { traces, sender, .. }) = (Arc::new(Meter::new()), &*self.0);
        if let Some(sender) = sender {
            sender.add(name, &meter);
        }
        let tenant = Some(name.to_owned());
        Telemetry(Arc::new(Shared { meter, traces: *traces, sender: sender.clone(), tenant }))
    }

    /// Whose runs are counted, where that has a name.
    pub fn tenant(&self) -> Option<&str> {
        self.0.tenant.as_deref()
    }

    /// Passes on to `inner` what happens in a run, and counts it.
    pub fn watch(&self, mut about: About, inner: Arc<dyn Observer>) -> Arc<dyn Observer> {
        about.tenant = about.tenant.or_else(|| self.0.tenant.clone());
        Arc::new(Watch::new(self.0.clone(), about, inner))
    }

    /// Adds to what was counted.
    pub fn add(&self, measure: Measure, labels: &[&str], number: u64) {
        self.0.meter.series(measure, labels).add(number);
    }

    /// Takes one away from a number that goes up and down.
    pub fn less(&self, measure: Measure, labels: &[&str]) {
        self.0.meter.series(measure, labels).less();
    }

    /// Says what a number that goes up and down is now.
    pub fn set(&self, measure: Measure, labels: &[&str], number: u64) {
        self.0.meter.series(measure, labels).set(number);
    }

    /// Says how long something took.
    pub fn took(&self, measure: Measure, labels: &[&str], time: Duration) {
        self.0.meter.series(measure, labels).took(time);
    }

    /// Whether anything is sent to a collector.
    pub fn sends(&self) -> bool {
        self.0.sender.is_some()
    }

    /// All numbers, in the text format of Prometheus.
    pub fn prometheus(&self) -> String {
        prometheus::text(&self.0.meter)
    }

    /// Sends what is left, within [`LAST`]. Nothing is sent after that.
    pub async fn close(&self) {
        if let Some(sender) = &self.0.sender {
            sender.close(LAST).await;
        }
    }
}
