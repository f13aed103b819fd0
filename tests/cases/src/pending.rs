//! Cases that hotcell does not pass yet. The list cannot grow old: a case of it that passes is a failure.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use crate::runner::{Report, Verdict};

/// Cases that are not passed yet, by the last parts of their paths.
#[derive(Clone, Debug, Default)]
pub struct Pending(BTreeSet<PathBuf>);

impl Pending {
    /// Reads a list: one case to a line, as the last parts of its path. `#` begins a comment.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn read(file: &Path) -> io::Result<Self> {
        let problem = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", file.display()));
        let text = std::fs::read_to_string(file).map_err(problem)?;
        let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
        Ok(Pending(lines.filter(|line| !line.is_empty()).map(PathBuf::from).collect()))
    }

    /// Counts a case of the list as skipped if it failed, and as failed if it passed.
    pub fn judge(&self, report: &mut Report) {
        if !self.0.iter().any(|case| report.directory.ends_with(case)) {
            return;
        }
        report.verdict = match &report.verdict {
            Verdict::Differs(_) | Verdict::Broken(_) => {
                Verdict::Skipped("pending: hotcell does not pass it yet".to_owned())
            }
            Verdict::Passed => Verdict::Broken("it passes: take it out of the list of pending cases".to_owned()),
            Verdict::Skipped(reason) => Verdict::Skipped(reason.clone()),
        };
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_pending_case_that_passes_is_a_failure() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("pending.txt");
        std::fs::write(&file, "# why\nmesh/1-one  # and why\n\nmesh/2-two\n").expect("written");
        let pending = Pending::read(&file).expect("read");
        let judged = |directory: &str, verdict: Verdict| {
            let mut report =
                Report { directory: directory.into(), title: String::new(), verdict, elapsed: Duration::ZERO };
            pending.judge(&mut report);
            report.verdict
        };
        assert!(matches!(judged("a/mesh/1-one", Verdict::Differs(Vec::new())), Verdict::Skipped(_)));
        assert!(matches!(judged("a/mesh/2-two", Verdict::Passed), Verdict::Broken(_)));
        assert_eq!(judged("a/mesh/3-three", Verdict::Passed), Verdict::Passed);
        assert_eq!(judged("a/mesh/11-one", Verdict::Differs(Vec::new())), Verdict::Differs(Vec::new()));
        assert!(Pending::read(&folder.path().join("nothing")).is_err());
    }
}
