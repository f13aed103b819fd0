//! Spans and numbers as messages of OTLP.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use prost::Message as _;

use super::message::{
    Any, AnyValue, Data, Gauge, Histogram, HistogramPoint, KeyValue, List, Metric, MetricsRequest, Moment, NumberPoint,
    Resource, ResourceMetrics, ResourceSpans, Scope, ScopeMetrics, ScopeSpans, Span as SpanMessage, Status, Sum,
    TraceRequest,
};
use crate::instrument::{Instrument, Kind};
use crate::meter::{Meter, Reading, scaled};
use crate::names::{ALL, Names, TENANT};
use crate::span::{Attribute, Kind as SpanKind, Span};

/// Numbers count from the start of the process on.
const CUMULATIVE: i32 = 2;
const ERROR: i32 = 2;
const SAMPLED: u32 = 1;

/// The body of a request with these spans.
pub(crate) fn spans(resource: &[(String, String)], spans: Vec<Span>) -> Vec<u8> {
    let spans = spans.into_iter().map(span).collect();
    let scope_spans = vec![ScopeSpans { scope: Some(scope()), spans }];
    let resource_spans = vec![ResourceSpans { resource: Some(self::resource(resource)), scope_spans }];
    TraceRequest { resource_spans }.encode_to_vec()
}

/// The body of a request with everything that was measured by each of these meters.
pub(crate) fn metrics(resource: &[(String, String)], meters: &[(Option<String>, Arc<Meter>)], names: Names) -> Vec<u8> {
    let of_meter = |(tenant, meter): &(Option<String>, Arc<Meter>)| {
        let mut about = self::resource(resource);
        about.attributes.extend(tenant.as_deref().map(|tenant| text(TENANT, tenant)));
        let scope_metrics = vec![ScopeMetrics { scope: Some(scope()), metrics: of(meter, names) }];
        ResourceMetrics { resource: Some(about), scope_metrics }
    };
    MetricsRequest { resource_metrics: meters.iter().map(of_meter).collect() }.encode_to_vec()
}

fn of(meter: &Meter, names: Names) -> Vec<Metric> {
    let times = (nanoseconds(meter.begun), nanoseconds(SystemTime::now()));
    let mut metrics: Vec<Metric> = Vec::new();
    for measure in ALL {
        let readings = meter.read(*measure);
        if readings.is_empty() {
            continue;
        }
        let mut metric = metric(measure.instrument(), &readings, names, times);
        // Two may have one name in other names than ours.
        if let Some(Metric { name, data: Some(Data::Sum(all)), .. }) = metrics.last_mut()
            && *name == metric.name
            && let Some(Data::Sum(more)) = &mut metric.data
        {
            all.points.append(&mut more.points);
        } else {
            metrics.push(metric);
        }
    }
    metrics
}

fn scope() -> Scope {
    Scope { name: "hotcell".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() }
}

fn resource(attributes: &[(String, String)]) -> Resource {
    Resource { attributes: attributes.iter().map(|(key, value)| text(key, value)).collect() }
}

fn text(key: &str, value: &str) -> KeyValue {
    KeyValue { key: key.to_owned(), value: Some(AnyValue { value: Some(Any::Text(value.to_owned())) }) }
}

fn span(span: Span) -> SpanMessage {
    let Span { trace, id, parent, name, kind, begun, ended, attributes, moments, failed, message } = span;
    let moment = |(time, name): (SystemTime, &str)| Moment { time: nanoseconds(time), name: name.to_owned() };
    SpanMessage {
        trace_id: trace.to_vec(),
        span_id: id.to_vec(),
        parent_span_id: parent.map_or_else(Vec::new, |parent| parent.to_vec()),
        name,
        kind: match kind {
            SpanKind::Internal => 1,
            SpanKind::Client => 3,
        },
        start_time: nanoseconds(begun),
        end_time: nanoseconds(ended.max(begun)),
        attributes: attributes.into_iter().map(attribute).collect(),
        events: moments.into_iter().map(moment).collect(),
        status: failed.then(|| Status { message: message.unwrap_or_default(), code: ERROR }),
        flags: SAMPLED,
    }
}

fn attribute((key, value): (&'static str, Attribute)) -> KeyValue {
    let value = match value {
        Attribute::Text(text) => Any::Text(text.into_owned()),
        Attribute::Number(number) => Any::Number(number),
        Attribute::Decimal(number) => Any::Decimal(number),
        Attribute::Truth(truth) => Any::Truth(truth),
        Attribute::List(texts) => {
            let value = |text: String| AnyValue { value: Some(Any::Text(text)) };
            Any::List(List { values: texts.into_iter().map(value).collect() })
        }
    };
    KeyValue { key: key.to_owned(), value: Some(AnyValue { value: Some(value) }) }
}

fn metric(instrument: &Instrument, readings: &[Reading], names: Names, (start_time, time): (u64, u64)) -> Metric {
    let attributes = |labels: &[String]| -> Vec<KeyValue> {
        let given = instrument.labels.iter().zip(labels).filter(|(_, value)| !value.is_empty());
        let given = given.map(|((_, key), value)| text(key, value));
        instrument.always.iter().map(|(key, value)| text(key, value)).chain(given).collect()
    };
    let point = |reading: &Reading| NumberPoint {
        start_time,
        time,
        number: scaled(reading.sum, instrument.scale),
        attributes: attributes(&reading.labels),
    };
    let data = match instrument.kind {
        Kind::Gauge => Data::Gauge(Gauge { points: readings.iter().map(point).collect() }),
        Kind::Counter => {
            Data::Sum(Sum { points: readings.iter().map(point).collect(), temporality: CUMULATIVE, is_monotonic: true })
        }
        Kind::Histogram(bounds) => {
            let point = |reading: &Reading| HistogramPoint {
                start_time,
                time,
                count: reading.buckets.iter().sum(),
                sum: Some(scaled(reading.sum, instrument.scale)),
                buckets: reading.buckets.clone(),
                bounds: bounds.to_vec(),
                attributes: attributes(&reading.labels),
            };
            Data::Histogram(Histogram { points: readings.iter().map(point).collect(), temporality: CUMULATIVE })
        }
    };
    let name = match names {
        Names::GenAi => instrument.otlp,
        Names::AgentLoom => instrument.agentloom.unwrap_or(instrument.otlp),
    };
    Metric {
        name: name.to_owned(),
        description: instrument.help.to_owned(),
        unit: instrument.unit.to_owned(),
        data: Some(data),
    }
}

fn nanoseconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
}
