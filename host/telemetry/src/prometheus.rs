//! Numbers as Prometheus reads them: its text format, version 0.0.4.

use std::fmt::{self, Write as _};

use crate::instrument::{Instrument, Kind};
use crate::meter::{Meter, Reading, scaled};
use crate::names::ALL;

/// The media type of the text.
pub const MEDIA_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// All numbers as text.
pub(crate) fn text(meter: &Meter) -> String {
    let mut text = String::new();
    for measure in ALL {
        let readings = meter.read(*measure);
        if !readings.is_empty() {
            // A text takes everything.
            let _ = family(&mut text, measure.instrument(), &readings);
        }
    }
    text
}

fn family(text: &mut String, instrument: &Instrument, readings: &[Reading]) -> fmt::Result {
    let Instrument { name, help, scale, .. } = instrument;
    let kind = match instrument.kind {
        Kind::Counter => "counter",
        Kind::Gauge => "gauge",
        Kind::Histogram(_) => "histogram",
    };
    writeln!(text, "# HELP {name} {help}.\n# TYPE {name} {kind}")?;
    for Reading { labels, sum, buckets } in readings {
        let labels: Vec<String> = (instrument.labels.iter().zip(labels))
            .filter(|(_, value)| !value.is_empty())
            .map(|((name, _), value)| format!("{name}=\"{}\"", escaped(value)))
            .collect();
        let labels = labels.join(",");
        let braced = if labels.is_empty() { String::new() } else { format!("{{{labels}}}") };
        let sum = scaled(*sum, *scale);
        let Kind::Histogram(bounds) = instrument.kind else {
            writeln!(text, "{name}{braced} {sum}")?;
            continue;
        };
        let (mut so_far, comma) = (0, if labels.is_empty() { "" } else { "," });
        for (bucket, count) in buckets.iter().enumerate() {
            so_far += count;
            let bound = bounds.get(bucket).map_or_else(|| "+Inf".to_owned(), f64::to_string);
            writeln!(text, "{name}_bucket{{{labels}{comma}le=\"{bound}\"}} {so_far}")?;
        }
        writeln!(text, "{name}_sum{braced} {sum}\n{name}_count{braced} {so_far}")?;
    }
    Ok(())
}

/// The value of a label.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::Measure;

    #[test]
    fn numbers_are_told_as_the_format_has_it() {
        let meter = Meter::new();
        meter.series(Measure::RunsStarted, &["a \"b\" \\ c"]).add(2);
        meter.series(Measure::HttpActive, &[]).set(3);
        meter.series(Measure::Cost, &["a", "openai", "m"]).add(1_500_000_000);
        let histogram = meter.series(Measure::RunModelCalls, &["a"]);
        histogram.observe(1);
        histogram.observe(500);
        let text = text(&meter);
        for line in [
            "# TYPE hotcell_runs_started_total counter",
            "hotcell_runs_started_total{agent=\"a \\\"b\\\" \\\\ c\"} 2",
            "hotcell_http_requests_active 3",
            "hotcell_cost_usd_total{agent=\"a\",provider=\"openai\",model=\"m\"} 1.5",
            "hotcell_run_model_requests_bucket{agent=\"a\",le=\"0\"} 0",
            "hotcell_run_model_requests_bucket{agent=\"a\",le=\"256\"} 1",
            "hotcell_run_model_requests_bucket{agent=\"a\",le=\"+Inf\"} 2",
            "hotcell_run_model_requests_sum{agent=\"a\"} 501",
            "hotcell_run_model_requests_count{agent=\"a\"} 2",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
    }
}
