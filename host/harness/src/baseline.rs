//! What cases used when the author last accepted it: a file that is committed beside them, so that a plugin that
//! suddenly needs more fuel fails its tests.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use hotcell_budget::{Bytes, Fuel, Usage};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The name of the file, in the folder of the cases.
pub const BASELINE_FILE: &str = "baseline.json";
/// How much more than before a case may use, in percent, where the baseline does not say.
const TOLERANCE: f64 = 5.0;

/// What cases used.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Baseline {
    /// The SHA-256 digest of the component that was measured
    pub digest: String,
    /// The engine that measured it: fuel counts instructions of its compiler
    pub engine: String,
    /// How much more a case may use, in percent
    #[serde(default = "tolerance")]
    pub tolerance_percent: f64,
    /// What each case used, by its name
    pub cases: BTreeMap<String, Used>,
}

/// What a case used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Used {
    /// Fuel
    pub fuel: Fuel,
    /// The largest sum of its memories, in bytes
    pub memory: Bytes,
}

fn tolerance() -> f64 {
    TOLERANCE
}

/// How a case compares with the baseline.
#[derive(Clone, Debug, PartialEq)]
pub enum Compared {
    /// It uses what it used, or less, or within the tolerance more
    Within,
    /// The baseline does not know it
    New,
    /// It uses more; the text has the numbers
    More(String),
}

/// Why a baseline cannot be used.
#[derive(Debug, Error)]
#[error("cannot use `{file}`: {cause}", file = file.display())]
pub struct BaselineError {
    file: PathBuf,
    cause: String,
}

impl Baseline {
    /// A baseline without cases.
    pub fn new(digest: impl Into<String>, engine: impl Into<String>) -> Self {
        Self { digest: digest.into(), engine: engine.into(), tolerance_percent: TOLERANCE, cases: BTreeMap::new() }
    }

    /// The baseline of a folder of cases; none where there is no file.
    ///
    /// # Errors
    /// When the file is there and cannot be used.
    pub fn read(folder: &Path) -> Result<Option<Self>, BaselineError> {
        let file = folder.join(BASELINE_FILE);
        match hotcell_files::read_text(&file, hotcell_files::MAX_TEXT) {
            Ok(text) => {
                serde_json::from_str(&text).map(Some).map_err(|error| BaselineError { file, cause: error.to_string() })
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(BaselineError { file, cause: error.to_string() }),
        }
    }

    /// Writes the baseline into a folder of cases.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write(&self, folder: &Path) -> Result<(), BaselineError> {
        let file = folder.join(BASELINE_FILE);
        let write = || -> std::io::Result<()> {
            let mut text = serde_json::to_string_pretty(self)?;
            text.push('\n');
            hotcell_files::replace(&file, text.as_bytes())
        };
        write().map_err(|error| BaselineError { file: file.clone(), cause: error.to_string() })
    }

    /// Takes down what a case used.
    pub fn note(&mut self, case: &str, usage: &Usage) {
        self.cases.insert(case.to_owned(), Used { fuel: usage.fuel, memory: usage.peak_memory });
    }

    /// Compares what a case used with what it used before.
    pub fn compare(&self, case: &str, usage: &Usage) -> Compared {
        let Some(before) = self.cases.get(case) else { return Compared::New };
        let mut more = Vec::new();
        for (what, before, now) in
            [("fuel", before.fuel.0, usage.fuel.0), ("memory", before.memory.0, usage.peak_memory.0)]
        {
            let percent = (now as f64 - before as f64) / (before as f64).max(1.0) * 100.0;
            if percent > self.tolerance_percent {
                more.push(format!(
                    "{what} {now}, {percent:.1} % more than {before}; {} % are tolerated",
                    self.tolerance_percent
                ));
            }
        }
        if more.is_empty() { Compared::Within } else { Compared::More(more.join("; ")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(fuel: u64) -> Usage {
        Usage { fuel: Fuel(fuel), peak_memory: Bytes(100), ..Usage::default() }
    }

    #[test]
    fn more_than_the_tolerance_is_told_with_the_numbers() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(Baseline::read(folder.path()).unwrap(), None);
        let mut baseline = Baseline::new("d", "e");
        baseline.note("a", &usage(1_000));
        baseline.write(folder.path()).unwrap();
        let baseline = Baseline::read(folder.path()).unwrap().unwrap();
        assert_eq!(baseline.compare("a", &usage(1_050)), Compared::Within);
        assert_eq!(baseline.compare("a", &usage(10)), Compared::Within);
        assert_eq!(baseline.compare("b", &usage(1)), Compared::New);
        let Compared::More(text) = baseline.compare("a", &usage(1_100)) else { panic!("10 % are too much") };
        assert_eq!(text, "fuel 1100, 10.0 % more than 1000; 5 % are tolerated");
        std::fs::write(folder.path().join(BASELINE_FILE), "{}").unwrap();
        assert!(Baseline::read(folder.path()).is_err());
    }
}
