//! The log of a server as JSON: one object per line on standard error.
//!
//! What plugins and scripts say, and errors of graphs, which may have in them what people and models said, are left out unless
//! `RUST_LOG` asks for them.

use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::{Subscriber, span};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::FilterExt as _;
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::logging::{in_our_names, without_exchanges};
use crate::screen::{Screen, json_line};
use crate::when::exact;

/// What is logged unless `RUST_LOG` says something else.
const USUAL: &str =
    "warn,hotcell::serve=info,hotcell::run=info,hotcell::telemetry=info,hotcell::graph=off,hotcell::plugin=off";
/// Characters of a text that are kept.
const MOST_CHARACTERS: usize = 2000;

/// Starts logging.
pub(crate) fn start(screen: &Arc<Screen>) {
    let wanted = std::env::var("RUST_LOG").ok().filter(|wanted| !wanted.trim().is_empty());
    let filter = match wanted.map(|wanted| EnvFilter::try_new(in_our_names(&wanted))) {
        None => EnvFilter::new(USUAL),
        Some(Ok(filter)) => filter,
        Some(Err(error)) => {
            screen.warning(&format!("`RUST_LOG` cannot be read and is ignored: {error}"));
            EnvFilter::new(USUAL)
        }
    };
    screen.speak_json();
    // Fails only if there is a subscriber already, which is then the one to keep.
    let _ = tracing_subscriber::registry().with(Lines.with_filter(filter.and(without_exchanges()))).try_init();
}

/// Writes each record as a line.
struct Lines;

/// Fields of a record or of what is around it.
#[derive(Default)]
struct Fields(Map<String, Value>);

impl Fields {
    fn add(&mut self, field: &Field, value: Value) {
        self.0.insert(field.name().to_owned(), value);
    }

    fn text(&mut self, field: &Field, text: &str) {
        let text = match text.char_indices().nth(MOST_CHARACTERS) {
            Some((end, _)) => format!("{}…", &text[..end]),
            None => text.to_owned(),
        };
        self.add(field, text.into());
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.text(field, &format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.text(field, value);
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.add(field, value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.add(field, value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.add(field, value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.add(field, value.into());
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Lines {
    fn on_new_span(&self, attributes: &span::Attributes<'_>, id: &span::Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        span.extensions_mut().insert(fields);
    }

    fn on_record(&self, id: &span::Id, values: &span::Record<'_>, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        if let Some(fields) = span.extensions_mut().get_mut::<Fields>() {
            values.record(fields);
        }
    }

    fn on_event(&self, event: &tracing::Event<'_>, context: Context<'_, S>) {
        let about = event.metadata();
        let mut fields = Fields::default();
        let known = [
            ("at", exact(SystemTime::now()).into()),
            ("level", about.level().as_str().to_ascii_lowercase().into()),
            ("target", about.target().into()),
        ];
        fields.0.extend(known.map(|(name, value)| (name.to_owned(), value)));
        // What is nearer says more exactly what it is about.
        for span in context.event_scope(event).into_iter().flatten().collect::<Vec<_>>().iter().rev() {
            if let Some(around) = span.extensions().get::<Fields>() {
                fields.0.extend(around.0.iter().map(|(name, value)| (name.clone(), value.clone())));
            }
        }
        event.record(&mut fields);
        json_line(&Value::Object(fields.0));
    }
}
