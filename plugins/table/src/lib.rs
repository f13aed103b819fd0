//! Reads and queries CSV: select, filter, sort, group. A table is CSV text with a first line of column names.
//!
//! Cells are texts. Where both sides of a comparison are numbers, they are compared as numbers; sums and averages are
//! exact decimals.

mod condition;
mod data;
mod group;

use std::collections::BTreeMap;

use hotcell_plugin::{Error, Json, Value, plugin, tool};

use condition::Condition;
use data::Table;
use group::Aggregate;

plugin! { tools: [describe, query] }

/// What a table is made of.
#[derive(Debug, PartialEq, Value)]
struct Description {
    /// How many rows there are, without the first line.
    rows: usize,
    /// The columns, in order.
    columns: Vec<Column>,
}

/// One column.
#[derive(Debug, PartialEq, Value)]
struct Column {
    /// Its name.
    name: String,
    /// How many cells are empty.
    empty: usize,
    /// How many cells are numbers.
    numbers: usize,
    /// The first values that are not empty.
    examples: Vec<String>,
}

/// By what rows are sorted.
#[derive(Debug, PartialEq, Value)]
struct Order {
    /// The column.
    column: String,
    /// Whether the largest comes first.
    #[value(default = false)]
    descending: bool,
}

/// How rows become one row for each group.
#[derive(Debug, PartialEq, Value)]
struct Grouping {
    /// The columns whose values make a group; none for one group of all rows.
    by: Vec<String>,
    /// What to calculate for each group, by the name of the new column.
    aggregates: BTreeMap<String, Aggregate>,
}

/// What a query gave.
#[derive(Debug, PartialEq, Value)]
struct Answer {
    /// The rows, each an object by column.
    rows: Vec<Json>,
    /// How many rows there are without the limit.
    total: usize,
}

/// Tells the columns of a CSV table, with examples, and how many rows it has.
#[tool(read_only)]
fn describe(
    /// The table as CSV text, with a first line of column names.
    csv: &str,
    /// What separates the cells of a line.
    #[value(default = ",")]
    separator: char,
) -> Result<Description, Error> {
    let table = Table::read(csv, separator)?;
    let columns = table.columns.iter().enumerate().map(|(index, name)| {
        let cells = || table.rows.iter().map(|row| row[index].as_str());
        let filled = cells().filter(|cell| !cell.is_empty());
        Column {
            name: name.clone(),
            empty: cells().filter(|cell| cell.is_empty()).count(),
            numbers: cells().filter(|cell| data::number(cell).is_some()).count(),
            examples: filled.take(3).map(ToOwned::to_owned).collect(),
        }
    });
    Ok(Description { rows: table.rows.len(), columns: columns.collect() })
}

/// Queries a CSV table: filters its rows, groups them, sorts them, selects columns.
///
/// The steps come in that order, so that sorting and selecting see the columns that grouping made.
#[tool(read_only)]
fn query(
    /// The table as CSV text, with a first line of column names.
    csv: &str,
    /// What separates the cells of a line.
    #[value(default = ",")]
    separator: char,
    /// Only rows that fit all of these.
    #[value(rename = "where")]
    conditions: Option<Vec<Condition>>,
    /// One row for each group instead of the rows themselves.
    group: Option<Grouping>,
    /// By what to sort; the first counts most.
    sort: Option<Vec<Order>>,
    /// Only these columns, in this order.
    select: Option<Vec<String>>,
    /// How many rows to give at most.
    #[value(default = 100)]
    limit: u32,
) -> Result<Answer, Error> {
    let mut table = Table::read(csv, separator)?;
    for condition in conditions.unwrap_or_default() {
        condition.apply(&mut table)?;
    }
    if let Some(grouping) = group {
        table = group::grouped(&table, &grouping.by, &grouping.aggregates)?;
    }
    // Sorting is stable: the last order first.
    for order in sort.unwrap_or_default().iter().rev() {
        let column = table.column(&order.column)?;
        table.rows.sort_by(|left, right| {
            let (left, right) = (left[column].as_str(), right[column].as_str());
            // Empty cells stay last, whichever way the others go.
            let ordering = data::compare(left, right);
            let ordering = if order.descending { ordering.reverse() } else { ordering };
            left.is_empty().cmp(&right.is_empty()).then(ordering)
        });
    }
    let columns = match select {
        Some(names) => names.iter().map(|name| table.column(name)).collect::<Result<Vec<_>, _>>()?,
        None => (0..table.columns.len()).collect(),
    };
    let rows = table.rows.iter().take(usize::try_from(limit).unwrap_or(usize::MAX));
    let object = |row: &Vec<String>| {
        columns.iter().map(|column| (table.columns[*column].clone(), Json::from(row[*column].as_str()))).collect()
    };
    Ok(Answer { rows: rows.map(object).collect(), total: table.rows.len() })
}

#[cfg(test)]
mod tests {
    use hotcell_plugin::{Json, json};

    use super::PLUGIN;

    const ORDERS: &str = "id,city,total\n1,Kyiv,9.10\n2,Łódź,100\n3,Kyiv,0.2\n4,,\n";

    fn rows(arguments: Json) -> Result<Json, String> {
        let mut arguments = arguments;
        arguments["csv"] = ORDERS.into();
        PLUGIN.call_tool("query", arguments).map(|answer| answer["rows"].clone()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_table_describes_itself() {
        let description = PLUGIN.call_tool("describe", json!({"csv": ORDERS}));
        let description = description.unwrap_or_default();
        assert_eq!(description["rows"], 4);
        assert_eq!(
            description["columns"][1],
            json!({"name": "city", "empty": 1, "numbers": 0, "examples": ["Kyiv", "Łódź", "Kyiv"]})
        );
        assert_eq!(description["columns"][2]["numbers"], 3);
    }

    #[test]
    fn numbers_are_compared_as_numbers() {
        let sorted = rows(json!({"sort": [{"column": "total", "descending": true}], "select": ["id"], "limit": 2}));
        assert_eq!(sorted, Ok(json!([{"id": "2"}, {"id": "1"}])));
        let filtered = rows(json!({"where": [{"column": "total", "is": "more", "value": 5}], "select": ["id"]}));
        assert_eq!(filtered, Ok(json!([{"id": "1"}, {"id": "2"}])));
    }

    #[test]
    fn conditions_hold_together() {
        let filtered = rows(json!({"select": ["id"], "where": [
            {"column": "city", "is": "not_empty"}, {"column": "city", "is": "not_equal", "value": "Łódź"},
            {"column": "total", "is": "less", "value": "1"}]}));
        assert_eq!(filtered, Ok(json!([{"id": "3"}])));
        let filtered =
            rows(json!({"select": ["id"], "where": [{"column": "city", "is": "one_of", "value": ["Łódź", ""]}]}));
        assert_eq!(filtered, Ok(json!([{"id": "2"}, {"id": "4"}])));
    }

    #[test]
    fn a_text_is_neither_more_nor_less_than_a_number() {
        let csv = "v\n7\nn/a\n2\n";
        for (is, expected) in [("more", json!([{"v": "7"}])), ("less", json!([{"v": "2"}]))] {
            let answer =
                PLUGIN.call_tool("query", json!({"csv": csv, "where": [{"column": "v", "is": is, "value": 5}]}));
            assert_eq!(answer.map(|answer| answer["rows"].clone()), Ok(expected));
        }
    }

    #[test]
    fn groups_have_exact_sums() {
        let grouped = rows(json!({
            "where": [{"column": "city", "is": "not_empty"}],
            "group": {"by": ["city"], "aggregates": {
                "orders": {"of": "count"}, "sum": {"of": "sum", "column": "total"},
                "mean": {"of": "average", "column": "total"}, "top": {"of": "maximum", "column": "total"}}},
            "sort": [{"column": "sum"}]}));
        assert_eq!(
            grouped,
            Ok(json!([
            {"city": "Kyiv", "mean": "4.65", "orders": "2", "sum": "9.30", "top": "9.10"},
            {"city": "Łódź", "mean": "100", "orders": "1", "sum": "100", "top": "100"}]))
        );
    }

    #[test]
    fn mistakes_name_the_column_or_the_line() {
        for (arguments, part) in [
            (json!({"select": ["town"]}), "no column `town`; the columns are `id`, `city`, `total`"),
            (
                json!({"sort": [{"colum": "id"}]}),
                "argument `sort[0].colum` is not known; known here: `column`, `descending`",
            ),
            (json!({"where": [{"column": "id", "is": "like"}]}), "argument `where[0].is` must be one of"),
            (
                json!({"group": {"by": [], "aggregates": {"s": {"of": "sum", "column": "city"}}}}),
                "`Kyiv` in the column `city` is not a number",
            ),
            (json!({"separator": "->"}), "argument `separator` must be a text of one character"),
        ] {
            let error = rows(arguments).map_or_else(|error| error, |rows| rows.to_string());
            assert!(error.contains(part), "`{part}` is not in `{error}`");
        }
        let ragged =
            PLUGIN.call_tool("describe", json!({"csv": "a,b\n1\n"})).map_err(|error| error.message().to_owned());
        assert!(ragged.is_err_and(|message| message.contains("line")));
    }

    #[test]
    fn cases_hold() {
        let problems = hotcell_plugin::testing::run_cases(&PLUGIN, concat!(env!("CARGO_MANIFEST_DIR"), "/cases"));
        assert_eq!(problems, Ok(Vec::new()));
    }
}
