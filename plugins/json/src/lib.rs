//! Queries and edits JSON with filters of the language jq, by [`jaq_core`].
//!
//! A filter sees its input and nothing else: no files, no environment (it is empty in a cell), no other inputs. A
//! filter without an end runs into the limits of its call.

mod filter;

use hotcell_plugin::{Error, Json, Value, plugin, tool};

plugin! { tools: [query, edit] }

/// What a filter gave.
#[derive(Debug, PartialEq, Value)]
struct Found {
    /// The values, in order.
    values: Vec<Json>,
    /// Whether there were more than the limit allows.
    more: bool,
}

/// Runs a jq filter on a JSON value and gives everything that comes out, such as `.orders[] | select(.total > 100) | .id`.
#[tool(read_only)]
fn query(
    /// The filter, in the language of jq.
    filter: &str,
    /// The value to look into: the value itself, or JSON text with a filter that begins with `fromjson |`.
    input: Json,
    /// How many values to give at most.
    #[value(default = 100)]
    limit: u16,
) -> Result<Found, Error> {
    let mut values = filter::run(filter, &input, usize::from(limit) + 1)?;
    let more = values.len() > usize::from(limit);
    values.truncate(usize::from(limit));
    Ok(Found { values, more })
}

/// Changes a JSON value with a jq filter and gives the whole changed value, such as `.price *= 1.19 | del(.draft)`.
#[tool(read_only)]
fn edit(
    /// The filter, in the language of jq. It has to give exactly one value.
    filter: &str,
    /// The value to change.
    input: Json,
) -> Result<Json, Error> {
    let mut values = filter::run(filter, &input, 2)?;
    match (values.pop(), values.is_empty()) {
        (Some(value), true) => Ok(value),
        (None, _) => Err(Error::invalid_input("the filter gives nothing; to edit, it has to give the changed value")),
        (Some(_), false) => Err(Error::invalid_input(
            "the filter gives several values; to edit, it has to give one: change in place with `|=` or `=`, or collect with `[...]`",
        )),
    }
}

#[cfg(test)]
mod tests {
    use hotcell_plugin::{Json, json};

    use super::{PLUGIN, edit, query};

    #[test]
    fn filters_find_and_edit() {
        let input = json!({"z": 1, "orders": [{"id": "a", "total": 90}, {"id": "b", "total": 120.5}]});
        let found = query(".orders[] | select(.total > 100) | .id", input.clone(), 100).map(|found| found.values);
        assert_eq!(found, Ok(vec![json!("b")]));
        let sum = query("[.orders[].total] | add", input.clone(), 1).map(|found| (found.values, found.more));
        assert_eq!(sum, Ok((vec![json!(210.5)], false)));
        let edited = edit(".orders[0].total += 10 | del(.z)", input);
        assert_eq!(edited, Ok(json!({"orders": [{"id": "a", "total": 100}, {"id": "b", "total": 120.5}]})));
    }

    #[test]
    fn the_limit_is_said() {
        let found = query("range(10)", Json::Null, 3).map(|found| (found.values, found.more));
        assert_eq!(found, Ok((vec![json!(0), json!(1), json!(2)], true)));
    }

    #[test]
    fn an_endless_filter_gives_its_first_values() {
        let found = query("repeat(1)", json!(0), 2).map(|found| (found.values, found.more));
        assert_eq!(found, Ok((vec![json!(1), json!(1)], true)));
    }

    #[test]
    fn mistakes_say_what_is_wrong() {
        for (tool, filter, part) in [
            ("query", ".a[", "the filter is not jq"),
            ("query", ".a | nope", "`nope`"),
            ("query", ".a.b", "the filter failed"),
            ("edit", "empty", "gives nothing"),
            ("edit", ".a, .a", "several values"),
            ("query", "nan", "not JSON"),
        ] {
            let arguments = json!({"filter": filter, "input": {"a": 1}});
            let error =
                PLUGIN.call_tool(tool, arguments).map_or_else(|error| error.to_string(), |value| value.to_string());
            assert!(error.starts_with("invalid-input") && error.contains(part), "`{part}` is not in `{error}`");
        }
    }

    #[test]
    fn cases_hold() {
        let problems = hotcell_plugin::testing::run_cases(&PLUGIN, concat!(env!("CARGO_MANIFEST_DIR"), "/cases"));
        assert_eq!(problems, Ok(Vec::new()));
    }
}
