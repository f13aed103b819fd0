use std::time::Duration;

use hotcell_plugin::testing::Surroundings;
use hotcell_plugin::{Json, json};

use super::PLUGIN;

fn call(tool: &str, arguments: Json) -> Result<Json, String> {
    PLUGIN.call_tool(tool, arguments).map_err(|error| error.to_string())
}

#[test]
fn now_is_what_the_host_says() {
    let at = Surroundings::new().time(Duration::from_secs(1_772_616_600));
    let ran = at.run(|| call("now", json!({"zone": "Europe/Berlin"})));
    assert_eq!(ran.result, Ok(json!("2026-03-04T10:30:00+01:00[Europe/Berlin]")));
}

#[test]
fn spans_follow_the_calendar() {
    for (moment, by, expected) in [
        ("2026-01-31", "1 month", "2026-02-28"),
        ("2024-02-29", "1 year", "2025-02-28"),
        ("2026-03-04", "-2 weeks 3 days", "2026-02-15"),
        ("2026-03-04", "36 hours", "2026-03-05T12:00:00"),
        ("2026-03-28T12:00[Europe/Berlin]", "1 day", "2026-03-29T12:00:00+02:00[Europe/Berlin]"),
        ("2026-03-28T12:00[Europe/Berlin]", "PT24H", "2026-03-29T13:00:00+02:00[Europe/Berlin]"),
        ("2026-03-04T09:30Z", "90 minutes", "2026-03-04T11:00:00+00:00[UTC]"),
    ] {
        assert_eq!(call("shift", json!({"moment": moment, "by": by})), Ok(json!(expected)), "{moment} {by}");
    }
}

#[test]
fn differences_are_told_in_the_unit() {
    let months = call("difference", json!({"from": "2026-01-31", "to": "2026-03-03", "unit": "months"}));
    assert_eq!(months.map(|between| between["duration"].clone()), Ok(json!("P1M3D")));
    let days = call("difference", json!({"from": "2026-03-04", "to": "2026-02-01"}));
    assert_eq!(days.map(|between| between["total"].clone()), Ok(json!(-31)));
    let hours =
        json!({"from": "2026-03-29T00:00[Europe/Berlin]", "to": "2026-03-30T00:00[Europe/Berlin]", "unit": "hours"});
    assert_eq!(call("difference", hours).map(|between| between["total"].clone()), Ok(json!(23)));
}

#[test]
fn moments_are_written_and_moved() {
    let written = call("format", json!({"moment": "2026-03-04", "form": "%A, %d %B %Y, week %V"}));
    assert_eq!(written, Ok(json!("Wednesday, 04 March 2026, week 10")));
    let there = call("in_zone", json!({"moment": "2026-03-04T09:30:00Z", "zone": "Asia/Tokyo"}));
    assert_eq!(there, Ok(json!("2026-03-04T18:30:00+09:00[Asia/Tokyo]")));
}

#[test]
fn mistakes_are_the_callers_and_show_the_form() {
    for (tool, arguments, part) in [
        ("shift", json!({"moment": "yesterday", "by": "1 day"}), "`yesterday` is not a moment"),
        ("shift", json!({"moment": "2026-02-30", "by": "1 day"}), "not a moment"),
        ("shift", json!({"moment": "2026-02-01", "by": "soon"}), "`soon` is not a span of time"),
        ("shift", json!({"moment": "9999-12-31", "by": "1 day"}), "cannot be shifted so far"),
        ("in_zone", json!({"moment": "2026-03-04T09:30", "zone": "UTC"}), "says no time zone"),
        ("in_zone", json!({"moment": "2026-03-04T09:30Z", "zone": "Mars/Base"}), "no time zone `Mars/Base`"),
        ("difference", json!({"from": "2026-03-04", "to": "2026-03-04T00:00Z"}), "say it for both or for none"),
        ("format", json!({"moment": "2026-03-04", "form": "%H"}), "cannot be written as `%H`"),
    ] {
        let error = call(tool, arguments).map_or_else(|error| error, |value| value.to_string());
        assert!(error.starts_with("invalid-input") && error.contains(part), "`{part}` is not in `{error}`");
    }
}

#[test]
fn cases_hold() {
    let problems = hotcell_plugin::testing::run_cases(&PLUGIN, concat!(env!("CARGO_MANIFEST_DIR"), "/cases"));
    assert_eq!(problems, Ok(Vec::new()));
}
