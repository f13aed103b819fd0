//! Groups of rows and what is calculated for each.

use std::collections::BTreeMap;

use hotcell_plugin::{Error, Value};
use rust_decimal::Decimal;

use crate::data::{Table, compare, number};

/// Something to calculate for a group of rows. Empty cells are left out.
#[derive(Debug, PartialEq, Value)]
pub(crate) struct Aggregate {
    /// What to calculate.
    of: Function,
    /// The column; `count` counts rows where there is none.
    column: Option<String>,
}

/// A function of the cells of a column.
#[derive(Clone, Copy, Debug, PartialEq, Value)]
#[value(rename_all = "snake_case")]
pub(crate) enum Function {
    /// How many rows, or cells of the column that are not empty.
    Count,
    /// How many different values.
    CountDifferent,
    Sum,
    Average,
    Minimum,
    Maximum,
}

/// One row for each group, in the order in which the groups appear.
pub(crate) fn grouped(table: &Table, by: &[String], aggregates: &BTreeMap<String, Aggregate>) -> Result<Table, Error> {
    let keys = by.iter().map(|name| table.column(name)).collect::<Result<Vec<_>, _>>()?;
    if let Some(name) = by.iter().find(|name| aggregates.contains_key(*name)) {
        return Err(Error::invalid_input(format!(
            "`{name}` is the name of a column to group by; call the new one otherwise"
        )));
    }
    let mut places: BTreeMap<Vec<&str>, usize> = BTreeMap::new();
    let mut groups: Vec<(Vec<&str>, Vec<&Vec<String>>)> = Vec::new();
    for row in &table.rows {
        let key: Vec<&str> = keys.iter().map(|column| row[*column].as_str()).collect();
        let place = *places.entry(key.clone()).or_insert(groups.len());
        if place == groups.len() {
            groups.push((key, Vec::new()));
        }
        groups[place].1.push(row);
    }
    let mut rows = Vec::new();
    for (key, members) in &groups {
        let mut row: Vec<String> = key.iter().map(|cell| (*cell).to_owned()).collect();
        for aggregate in aggregates.values() {
            row.push(aggregate.of_rows(table, members)?);
        }
        rows.push(row);
    }
    Ok(Table { columns: by.iter().chain(aggregates.keys()).cloned().collect(), rows })
}

impl Aggregate {
    fn of_rows(&self, table: &Table, rows: &[&Vec<String>]) -> Result<String, Error> {
        let Some(name) = &self.column else {
            return match self.of {
                Function::Count => Ok(rows.len().to_string()),
                _ => Err(Error::invalid_input("only `count` does without a column; name the one to calculate with")),
            };
        };
        let column = table.column(name)?;
        let cells: Vec<&str> = rows.iter().map(|row| row[column].as_str()).filter(|cell| !cell.is_empty()).collect();
        let numbers = || {
            let one = |cell: &&str| {
                number(cell)
                    .ok_or_else(|| Error::invalid_input(format!("`{cell}` in the column `{name}` is not a number")))
            };
            cells.iter().map(one).collect::<Result<Vec<Decimal>, Error>>()
        };
        let sum = || {
            let add = |sum: Decimal, number: Decimal| sum.checked_add(number);
            let too_large = || Error::invalid_input(format!("the sum of the column `{name}` has more than 28 digits"));
            numbers()?.into_iter().try_fold(Decimal::ZERO, add).ok_or_else(too_large)
        };
        Ok(match self.of {
            Function::Count => cells.len().to_string(),
            Function::CountDifferent => cells.iter().collect::<std::collections::BTreeSet<_>>().len().to_string(),
            Function::Sum => sum()?.to_string(),
            Function::Average if cells.is_empty() => String::new(),
            Function::Average => {
                let count = Decimal::from(cells.len());
                sum()?.checked_div(count).map_or_else(String::new, |mean| mean.normalize().to_string())
            }
            Function::Minimum => {
                cells.iter().min_by(|left, right| compare(left, right)).copied().unwrap_or("").to_owned()
            }
            Function::Maximum => {
                cells.iter().max_by(|left, right| compare(left, right)).copied().unwrap_or("").to_owned()
            }
        })
    }
}
