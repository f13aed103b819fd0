//! Calculates with dates and times, time zones included, and writes them, with [`jiff`].
//!
//! A moment is written as in ISO 8601 and RFC 9557: `2026-03-04`, `2026-03-04T09:30`, `2026-03-04T09:30:00Z`,
//! `2026-03-04T09:30:00+01:00[Europe/Berlin]`. The time zones come with the plugin. `now` reads the clock of the host,
//! which stands at a fixed time unless the operator grants the capability `clock`.

mod moment;

use hotcell_plugin::{Error, Value, plugin, time, tool};
use jiff::tz::TimeZone;
use jiff::{Span, SpanRound, SpanTotal, Timestamp, Unit};

use moment::Moment;

plugin! { tools: [now, get_current_time, shift, difference, format, in_zone], capabilities: { clock: precise } }

/// Units of time, from large to small.
#[derive(Clone, Copy, Debug, PartialEq, Value)]
#[value(rename_all = "lowercase")]
enum Units {
    Years,
    Months,
    Weeks,
    Days,
    Hours,
    Minutes,
    Seconds,
}

/// The time between two moments.
#[derive(Debug, PartialEq, Value)]
struct Between {
    /// For people, such as `1mo 3d`; negative where the second moment is the earlier one.
    text: String,
    /// As in ISO 8601, such as `P1M3D`.
    duration: String,
    /// All of it in the unit that was asked for, with a fraction.
    total: f64,
}

/// Tells the present moment.
#[tool(read_only)]
fn now(
    /// The time zone, such as `Europe/Berlin`.
    #[value(default = "UTC")]
    zone: &str,
) -> Result<String, Error> {
    let now = Timestamp::new(i64::try_from(time::since_1970().as_secs())?, 0)?;
    Ok(now.to_zoned(moment::zone(zone)?).to_string())
}

/// Tells the present date and time in UTC, under the name that agents of Loki know.
#[tool(read_only)]
fn get_current_time() -> Result<String, Error> {
    now("UTC")
}

/// Adds a span of time to a moment, or subtracts it.
///
/// Months keep the day where the month has it and end at its last day otherwise; days keep the time of day also when
/// clocks change.
#[tool(read_only)]
fn shift(
    /// The moment, such as `2026-01-31` or `2026-03-04T09:30[Europe/Berlin]`.
    moment: &str,
    /// The span, such as `1 month`, `2 weeks 3 days`, `-90 minutes` or `P1Y2M`.
    by: &str,
) -> Result<String, Error> {
    let by: Span =
        by.parse().map_err(|error| Error::invalid_input(format!("`{by}` is not a span of time: {error}")))?;
    Moment::parse(moment)?.add(by)
}

/// Tells how much time lies between two moments.
#[tool(read_only)]
fn difference(
    /// The first moment.
    from: &str,
    /// The second moment.
    to: &str,
    /// The largest unit to tell it in, and the unit of the total.
    #[value(default = "days")]
    unit: Units,
) -> Result<Between, Error> {
    let (from, to) = (Moment::parse(from)?, Moment::parse(to)?);
    let unit = match unit {
        Units::Years => Unit::Year,
        Units::Months => Unit::Month,
        Units::Weeks => Unit::Week,
        Units::Days => Unit::Day,
        Units::Hours => Unit::Hour,
        Units::Minutes => Unit::Minute,
        Units::Seconds => Unit::Second,
    };
    let (from, to) = moment::of_one_kind(from, to)?;
    let span = from.until(&to, unit)?;
    let round = SpanRound::new().largest(unit).relative(from.relative());
    let span = span.round(round).map_err(|error| Error::invalid_input(error.to_string()))?;
    let total = span.total(SpanTotal::from(unit).relative(from.relative()))?;
    Ok(Between { text: format!("{span:#}"), duration: span.to_string(), total: (total * 1e6).round() / 1e6 })
}

/// Writes a moment in another form.
#[tool(read_only)]
fn format(
    /// The moment.
    moment: &str,
    /// The form, with the signs of `strftime`: `%A, %d %B %Y` gives `Wednesday, 04 March 2026`; `%G-W%V` the week.
    form: &str,
) -> Result<String, Error> {
    Moment::parse(moment)?.format(form)
}

/// Tells what time it is elsewhere at a moment.
#[tool(read_only)]
fn in_zone(
    /// The moment, with an offset or a time zone, or in UTC.
    moment: &str,
    /// The other time zone, such as `America/New_York`.
    zone: &str,
) -> Result<String, Error> {
    let zone: TimeZone = moment::zone(zone)?;
    match Moment::parse(moment)? {
        Moment::Zoned(zoned) => Ok(zoned.with_time_zone(zone).to_string()),
        Moment::Local(_) | Moment::Date(_) => Err(Error::invalid_input(format!(
            "`{moment}` says no time zone; add `Z`, an offset such as `+01:00`, or a zone such as `[Europe/Berlin]`"
        ))),
    }
}

#[cfg(test)]
mod tests;
