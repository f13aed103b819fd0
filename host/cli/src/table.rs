//! Tables of plain text: columns as wide as what stands in them, two blanks between, no lines.

/// A table; a column is aligned to the right if its heading says so.
pub(crate) struct Table {
    headings: Vec<(&'static str, Align)>,
    rows: Vec<Vec<String>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

impl Table {
    pub(crate) fn new(headings: impl IntoIterator<Item = (&'static str, Align)>) -> Self {
        Table { headings: headings.into_iter().collect(), rows: Vec::new() }
    }

    /// Adds a row; it has as many cells as there are headings. Cells may be painted.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// The lines, the headings first, each with `indent` blanks before it. A column in which nothing stands is left out.
    pub(crate) fn lines(&self, indent: usize, heading: impl Fn(&str) -> String) -> Vec<String> {
        let used: Vec<usize> =
            (0..self.headings.len()).filter(|column| self.rows.iter().any(|row| !row[*column].is_empty())).collect();
        let width = |column: usize| {
            let cells = self.rows.iter().map(|row| console::measure_text_width(&row[column]));
            cells.chain([console::measure_text_width(self.headings[column].0)]).max().unwrap_or(0)
        };
        let widths: Vec<usize> = used.iter().map(|column| width(*column)).collect();
        let line = |cells: Vec<&str>, paint: &dyn Fn(&str) -> String| {
            let mut line = " ".repeat(indent);
            for (number, (cell, (column, width))) in cells.iter().zip(used.iter().zip(&widths)).enumerate() {
                let padding = " ".repeat(width.saturating_sub(console::measure_text_width(cell)));
                let between = if number > 0 { "  " } else { "" };
                match self.headings[*column].1 {
                    Align::Left => line.push_str(&format!("{between}{}{padding}", paint(cell))),
                    Align::Right => line.push_str(&format!("{between}{padding}{}", paint(cell))),
                }
            }
            line.trim_end().to_owned()
        };
        let first = line(used.iter().map(|column| self.headings[*column].0).collect(), &heading);
        let rows =
            self.rows.iter().map(|row| line(used.iter().map(|column| row[*column].as_str()).collect(), &str::to_owned));
        [first].into_iter().chain(rows).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_fit_what_stands_in_them() {
        let mut table = Table::new([("NAME", Align::Left), ("EMPTY", Align::Left), ("SIZE", Align::Right)]);
        table.row(["a".into(), String::new(), "12".into()]);
        table.row(["漢字漢字".into(), String::new(), "12345".into()]);
        table.row(["\u{1b}[2mab\u{1b}[0m".into(), String::new(), "1".into()]);
        let expected =
            ["  NAME       SIZE", "  a            12", "  漢字漢字  12345", "  \u{1b}[2mab\u{1b}[0m            1"];
        assert_eq!(table.lines(2, str::to_owned), expected);
    }
}
