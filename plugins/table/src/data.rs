//! A table in memory, and how cells compare.

use std::cmp::Ordering;

use hotcell_plugin::Error;
use rust_decimal::Decimal;

/// Names, and rows with as many cells as there are names.
pub(crate) struct Table {
    pub(crate) columns: Vec<String>,
    pub(crate) rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn read(csv: &str, separator: char) -> Result<Self, Error> {
        let separator = u8::try_from(separator)
            .map_err(|_| Error::invalid_input(format!("`{separator}` cannot separate cells; it is not ASCII")))?;
        let mut reader =
            csv::ReaderBuilder::new().delimiter(separator).trim(csv::Trim::Headers).from_reader(csv.as_bytes());
        let refuse = |error: csv::Error| Error::invalid_input(format!("the table is not CSV: {error}"));
        let columns: Vec<String> = reader.headers().map_err(refuse)?.iter().map(ToOwned::to_owned).collect();
        if let Some(twice) = (1..columns.len()).find(|index| columns[..*index].contains(&columns[*index])) {
            return Err(Error::invalid_input(format!("the table has two columns `{}`", columns[twice])));
        }
        let rows = reader.records().map(|record| Ok(record.map_err(refuse)?.iter().map(ToOwned::to_owned).collect()));
        Ok(Self { columns, rows: rows.collect::<Result<_, Error>>()? })
    }

    /// The place of a column.
    pub(crate) fn column(&self, name: &str) -> Result<usize, Error> {
        self.columns.iter().position(|column| column == name).ok_or_else(|| {
            let known = self.columns.iter().map(|column| format!("`{column}`")).collect::<Vec<_>>().join(", ");
            Error::invalid_input(format!("the table has no column `{name}`; the columns are {known}"))
        })
    }
}

/// The number that a cell is, if it is one.
pub(crate) fn number(cell: &str) -> Option<Decimal> {
    let cell = cell.trim();
    cell.parse().ok().or_else(|| Decimal::from_scientific(cell).ok())
}

/// Numbers before texts and by size, texts by their characters, empty cells last.
pub(crate) fn compare(left: &str, right: &str) -> Ordering {
    match (number(left), number(right)) {
        (Some(left), Some(right)) => left.cmp(&right),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => left.is_empty().cmp(&right.is_empty()).then_with(|| left.cmp(right)),
    }
}
