//! The runner on cases of its own: such that pass, such that fail on purpose, and files that are no cases.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hotcell_cases::discover::{Selection, discover};
use hotcell_cases::disputed::Disputed;
use hotcell_cases::report::{self, Totals};
use hotcell_cases::runner::Runner;
use hotcell_cases::stage::Stage;

/// Everything that the runner prints for the cases below `path`, and the totals.
fn run(path: &str, selection: Selection, disputed: Disputed) -> (String, Totals) {
    run_within(Duration::from_secs(60), path, selection, disputed)
}

fn run_within(limit: Duration, path: &str, selection: Selection, disputed: Disputed) -> (String, Totals) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    let stage = Stage::build(runtime.handle().clone(), limit).expect("a stage");
    let runner = Runner { stage, jobs: 2, selection, disputed };
    let cases = discover(&[PathBuf::from("data").join(path)]).expect("cases");
    let reports = runner.run(cases, |_, _| {});
    let mut output = Vec::new();
    let totals = report::write(&mut output, &reports, false).expect("written");
    (String::from_utf8(output).expect("text"), totals)
}

fn directories(path: &str) -> usize {
    fs::read_dir(Path::new("data").join(path)).expect("a folder").count()
}

#[test]
fn cases_that_pass() {
    let (output, totals) = run("passing", Selection::default(), Disputed::default());
    assert_eq!(totals, Totals { passed: directories("passing"), failed: 0, skipped: 0 }, "{output}");
}

#[test]
fn cases_that_fail_on_purpose() {
    let (output, totals) = run("failing", Selection::default(), Disputed::default());
    insta::assert_snapshot!(output);
    assert_eq!(totals, Totals { passed: 0, failed: directories("failing"), skipped: 0 });
}

#[test]
fn files_that_are_no_cases() {
    let (output, totals) = run("bad", Selection::default(), Disputed::default());
    insta::assert_snapshot!(output);
    assert_eq!(totals, Totals { passed: 0, failed: directories("bad"), skipped: 0 });
}

#[test]
fn what_is_not_run_is_counted_by_reason() {
    let only = |covers: &[&str], skip: &[&str]| Selection {
        covers: covers.iter().map(|tag| (*tag).to_owned()).collect(),
        skip: skip.iter().map(|tag| (*tag).to_owned()).collect(),
    };
    let disputed = Disputed::parse("| `passing/waiting` | x | y |\n");
    let (output, totals) = run("passing", only(&["rejected", "approval"], &["approval"]), disputed.clone());
    let all = directories("passing");
    assert_eq!(totals, Totals { passed: 3, failed: 0, skipped: all - 3 }, "{output}");
    let expected = format!(
        "skipped 1: covers `approval`, which is left out
skipped {}: not among the selected tags
3 passed, 0 failed, {} skipped",
        all - 4,
        all - 3
    );
    assert_eq!(output.trim_end(), expected);
    let (output, _) = run("foreign", Selection::default(), disputed.clone());
    insta::assert_snapshot!(output, @r"
    skipped 1: dialect not supported yet: `someday`
    0 passed, 0 failed, 1 skipped
    ");
    let (output, _) = run("passing/waiting", Selection::default(), disputed);
    insta::assert_snapshot!(output, @r"
    skipped 1: disputed (tests/disputed.md)
    0 passed, 0 failed, 1 skipped
    ");
}

#[test]
fn a_run_that_does_not_end_fails_its_case() {
    let limit = Duration::from_secs(1);
    let (output, totals) = run_within(limit, "late", Selection::default(), Disputed::default());
    insta::assert_snapshot!(output);
    assert_eq!(totals, Totals { passed: 0, failed: 1, skipped: 0 });
}

#[test]
fn cases_are_found_once_and_what_is_inside_a_case_is_its_own() {
    let paths =
        [PathBuf::from("data/passing"), PathBuf::from("data/passing/script/case.json"), PathBuf::from("data/bad")];
    let found = discover(&paths).expect("cases");
    let unique: BTreeSet<&Path> = found.iter().map(|found| found.directory.as_path()).collect();
    assert_eq!(unique.len(), found.len());
    assert_eq!(found.len(), directories("passing") + directories("bad"));
    assert!(discover(&[PathBuf::from("src")]).is_err());
    assert!(discover(&[PathBuf::from("data/nowhere")]).is_err());
}
