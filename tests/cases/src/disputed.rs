//! Cases whose ruling hotcell does not follow, on purpose. They count as skipped.

use std::path::{Path, PathBuf};

/// The list as it was when the runner was built.
const DISPUTED: &str = include_str!("../../disputed.md");

/// The reason that is given for skipping a disputed case.
pub const REASON: &str = "disputed (tests/disputed.md)";

/// The case directories of the list.
#[derive(Clone, Debug, Default)]
pub struct Disputed(Vec<PathBuf>);

impl Disputed {
    /// The list of the project.
    pub fn of_the_project() -> Self {
        Self::parse(DISPUTED)
    }

    /// Reads a list: the first column of every row of a table, but for its head and the line under it.
    pub fn parse(text: &str) -> Self {
        let cells = text.lines().filter_map(first_cell);
        Disputed(cells.filter(|cell| *cell != "case" && !is_rule(cell)).map(PathBuf::from).collect())
    }

    /// Whether the case in `directory` is disputed. An entry names the end of a path: `loki/001-first-run`.
    pub fn contains(&self, directory: &Path) -> bool {
        self.0.iter().any(|case| directory.ends_with(case))
    }
}

fn first_cell(line: &str) -> Option<&str> {
    let row = line.trim().strip_prefix('|')?;
    let cell = row.split('|').next()?.trim().trim_matches('`');
    (!cell.is_empty()).then_some(cell)
}

fn is_rule(cell: &str) -> bool {
    cell.chars().all(|character| matches!(character, '-' | ':'))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::Disputed;

    #[test]
    fn rows_name_the_end_of_a_path() {
        let text = "# Disputed\n\nText.\n\n| case | says | instead |\n| --- | :-: | --- |\n| `loki/001-first` | a | b |\n|loki/002-second|a|b|\n";
        let disputed = Disputed::parse(text);
        assert!(disputed.contains(Path::new("some/where/loki/001-first")));
        assert!(disputed.contains(Path::new("loki/002-second")));
        for other in ["loki/001", "other/001-first", "loki/case", "loki/---"] {
            assert!(!disputed.contains(Path::new(other)), "{other}");
        }
    }

    #[test]
    fn the_list_of_the_project_can_be_read() {
        for case in Disputed::of_the_project().0 {
            assert_eq!(case.components().count(), 2, "`{}` is not `dialect/case`", case.display());
        }
    }
}
