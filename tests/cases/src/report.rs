//! What the runner prints.

use std::collections::BTreeMap;
use std::io::{self, Write};

use hotcell_runtime::Tally;

use crate::again::Counted;
use crate::discover::{Content, Found, Selection};
use crate::runner::{Report, Verdict};

/// How many cases came to which verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Cases in which all was as expected
    pub passed: usize,
    /// Cases in which something was not
    pub failed: usize,
    /// Cases that were not run
    pub skipped: usize,
}

/// Writes every failure, a line for each reason to skip, and the totals as the last line. With `verbose` every case
/// that ran has a line.
///
/// # Errors
/// When the output cannot be written.
pub fn write(output: &mut impl Write, reports: &[Report], verbose: bool) -> io::Result<Totals> {
    let mut totals = Totals::default();
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    for report in reports {
        let directory = report.directory.display();
        match &report.verdict {
            Verdict::Passed => {
                totals.passed += 1;
                if verbose {
                    writeln!(output, "pass {directory} ({:.2} s)", report.elapsed.as_secs_f64())?;
                }
            }
            Verdict::Skipped(reason) => {
                totals.skipped += 1;
                *reasons.entry(reason).or_default() += 1;
            }
            Verdict::Broken(problem) => {
                totals.failed += 1;
                writeln!(output, "FAIL {directory}")?;
                title(output, report)?;
                writeln!(output, "  {}\n", problem.replace('\n', "\n  "))?;
            }
            Verdict::Differs(mismatches) => {
                totals.failed += 1;
                writeln!(output, "FAIL {directory}")?;
                title(output, report)?;
                for mismatch in mismatches {
                    for line in mismatch.to_string().lines() {
                        writeln!(output, "  {line}")?;
                    }
                }
                writeln!(output)?;
            }
        }
    }
    for (reason, cases) in reasons {
        writeln!(output, "skipped {cases}: {reason}")?;
    }
    writeln!(output, "{} passed, {} failed, {} skipped", totals.passed, totals.failed, totals.skipped)?;
    Ok(totals)
}

fn title(output: &mut impl Write, report: &Report) -> io::Result<()> {
    if report.title.is_empty() { Ok(()) } else { writeln!(output, "  ({})", report.title) }
}

/// Writes what executing calls again came to.
///
/// # Errors
/// When the output cannot be written.
pub fn again(output: &mut impl Write, counted: &Counted) -> io::Result<()> {
    let Counted { recorded, tally, left } = counted;
    let Tally { same, different, wants, unusable, .. } = tally;
    let other = different + wants + unusable;
    writeln!(output, "{recorded} calls recorded; executed again: {same} times the same, {other} times not")?;
    for (reason, calls) in left {
        writeln!(output, "{calls} cannot be executed again: {reason}")?;
    }
    Ok(())
}

/// Writes a line for each case that is wanted: path, dialect, tags, title.
///
/// # Errors
/// When the output cannot be written.
pub fn list(output: &mut impl Write, cases: &[Found], selection: &Selection) -> io::Result<()> {
    for found in cases.iter().filter(|found| selection.refusal(&found.label).is_none()) {
        let covers = found.label.covers.as_deref().unwrap_or_default().join(",");
        let label = match &found.case {
            Content::Bad(error) => format!("cannot be used: {error}"),
            Content::Case(_) | Content::Foreign | Content::Steps(_) => found.label.title.clone(),
        };
        writeln!(output, "{}  {}  [{covers}]  {label}", found.directory.display(), found.label.dialect)?;
    }
    Ok(())
}
