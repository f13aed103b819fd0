//! Conditions that rows have to fit.

use std::cmp::Ordering;

use hotcell_plugin::{Error, Json, Value};

use crate::data::{Table, compare, number};

/// What has to hold for a row.
#[derive(Debug, PartialEq, Value)]
pub(crate) struct Condition {
    /// The column.
    column: String,
    /// How its value relates to the given one.
    is: Relation,
    /// A text or a number; for `one_of` a list of them; for `empty` and `not_empty` nothing.
    value: Option<Json>,
}

/// A relation of a cell to a value; numbers are compared as numbers.
#[derive(Clone, Copy, Debug, PartialEq, Value)]
#[value(rename_all = "snake_case")]
pub(crate) enum Relation {
    Equal,
    NotEqual,
    Less,
    AtMost,
    More,
    AtLeast,
    /// The text is somewhere in the cell, in any case.
    Contains,
    OneOf,
    Empty,
    NotEmpty,
}

impl Condition {
    /// Keeps the rows that fit.
    pub(crate) fn apply(&self, table: &mut Table) -> Result<(), Error> {
        let column = table.column(&self.column)?;
        let values = self.values()?;
        let any = |test: fn(Ordering) -> bool, cell: &str| values.iter().any(|value| test(compare(cell, value)));
        table.rows.retain(|row| {
            let cell = row[column].as_str();
            match self.is {
                Relation::Equal | Relation::OneOf => any(Ordering::is_eq, cell),
                Relation::NotEqual => !any(Ordering::is_eq, cell),
                Relation::Empty => cell.is_empty(),
                Relation::NotEmpty => !cell.is_empty(),
                Relation::Contains => {
                    let cell = cell.to_lowercase();
                    values.iter().any(|value| cell.contains(&value.to_lowercase()))
                }
                // An empty cell is neither more nor less than anything, and a text neither than a number.
                _ if cell.is_empty() => false,
                _ if values.iter().any(|value| number(value).is_some()) && number(cell).is_none() => false,
                Relation::Less => any(Ordering::is_lt, cell),
                Relation::AtMost => any(Ordering::is_le, cell),
                Relation::More => any(Ordering::is_gt, cell),
                Relation::AtLeast => any(Ordering::is_ge, cell),
            }
        });
        Ok(())
    }

    fn values(&self) -> Result<Vec<String>, Error> {
        let refuse = |wanted: &str| {
            let message = format!("the condition on the column `{}` needs {wanted}", self.column);
            Err(Error::invalid_input(message))
        };
        let one = |value: &Json| match value {
            Json::String(text) => Some(text.clone()),
            Json::Number(number) => Some(number.to_string()),
            Json::Bool(value) => Some(value.to_string()),
            _ => None,
        };
        match (self.is, &self.value) {
            (Relation::Empty | Relation::NotEmpty, None | Some(Json::Null)) => Ok(Vec::new()),
            (Relation::Empty | Relation::NotEmpty, Some(_)) => refuse("no value"),
            (Relation::OneOf, Some(Json::Array(items))) => match items.iter().map(one).collect() {
                Some(values) => Ok(values),
                None => refuse("a list of texts and numbers"),
            },
            (Relation::OneOf, _) => refuse("a list of texts and numbers"),
            (_, Some(value)) => one(value).map_or_else(|| refuse("a text or a number"), |value| Ok(vec![value])),
            (_, None) => refuse("a value"),
        }
    }
}
