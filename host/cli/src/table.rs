//! Tables of plain text: columns as wide as what stands in them, two blanks between, no lines.

use crate::untrusted::cell;

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

    /// Adds a row; it has as many cells as there are headings. Cells may be painted. Whoever wrote what stands in one, it begins no
    /// row of its own.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().map(|text| cell(&text)).collect());
    }

    /// Shortens the cells of the widest columns that are aligned to the left, so that no line is wider than `width`.
    pub(crate) fn fit(&mut self, width: usize) {
        const LEAST: usize = 8;
        let mut widths: Vec<usize> = (0..self.headings.len()).map(|column| self.width(column)).collect();
        let between = |widths: &[usize]| widths.iter().filter(|width| **width > 0).count().saturating_sub(1) * 2;
        loop {
            let over = (widths.iter().sum::<usize>() + between(&widths)).saturating_sub(width);
            let is_left = |(column, _): &(usize, &usize)| self.headings[*column].1 == Align::Left;
            let widest = widths.iter().enumerate().filter(is_left).max_by_key(|(_, width)| **width);
            let Some((column, &widest)) = widest.filter(|(_, width)| over > 0 && **width > LEAST) else { break };
            widths[column] = (widest - over.min(widest)).max(LEAST).max(widest / 2);
        }
        for row in &mut self.rows {
            for (cell, width) in row.iter_mut().zip(&widths) {
                if console::measure_text_width(cell) > *width {
                    *cell = console::truncate_str(cell, *width, "…").into_owned();
                }
            }
        }
    }

    /// The same for the terminal that standard output goes to, if it is one.
    pub(crate) fn fit_terminal(&mut self) {
        let terminal = console::Term::stdout();
        if terminal.is_term() {
            self.fit(terminal.size().1.into());
        }
    }

    /// How wide a column is; nothing where nothing stands in it.
    fn width(&self, column: usize) -> usize {
        let cells = self.rows.iter().map(|row| console::measure_text_width(&row[column]));
        match cells.max().unwrap_or(0) {
            0 => 0,
            widest => widest.max(console::measure_text_width(self.headings[column].0)),
        }
    }

    /// The lines, the headings first, each with `indent` blanks before it. A column in which nothing stands is left out.
    pub(crate) fn lines(&self, indent: usize, heading: impl Fn(&str) -> String) -> Vec<String> {
        let used: Vec<usize> =
            (0..self.headings.len()).filter(|column| self.rows.iter().any(|row| !row[*column].is_empty())).collect();
        let widths: Vec<usize> = used.iter().map(|column| self.width(*column)).collect();
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

    #[test]
    fn no_name_begins_a_row_of_its_own() {
        let mut table = Table::new([("NODE", Align::Left), ("TO", Align::Left)]);
        table.row(["a\nend".into(), "b\r\n9  c".into()]);
        assert_eq!(table.lines(0, str::to_owned), ["NODE    TO", "a\\nend  b\\r\\n9  c"]);
    }

    #[test]
    fn wide_columns_are_shortened_until_lines_fit() {
        let mut table = Table::new([("RUN", Align::Left), ("LASTED", Align::Right), ("OUTCOME", Align::Left)]);
        table.row(["k3m9x2ab".into(), "1.3 ms".into(), "x".repeat(100)]);
        table.fit(40);
        let lines = table.lines(0, str::to_owned);
        assert_eq!(lines[1], format!("k3m9x2ab  1.3 ms  {}…", "x".repeat(21)));
        table.fit(5);
        assert_eq!(table.lines(0, str::to_owned)[1], "k3m9x2ab  1.3 ms  xxxxxxx…");
    }
}
