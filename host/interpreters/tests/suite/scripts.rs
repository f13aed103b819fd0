//! Every directory in `tests/cases` is a script and what it must do.
//!
//! `script.<extension>` runs with `state.json` (else `{}`) and the variables of `env` (a `NAME=value` a line). It must
//! write `stdout` (compared as JSON where both are JSON), end with the code in `exit` (else 0), and its standard error
//! must contain each line of `stderr`.

use std::fs;
use std::path::{Path, PathBuf};

use hotcell_cells::CellError;
use serde_json::Value;

fn read(directory: &Path, name: &str) -> Option<String> {
    fs::read_to_string(directory.join(name)).ok()
}

fn same(found: &str, expected: &str) -> bool {
    match (serde_json::from_str::<Value>(found), serde_json::from_str::<Value>(expected)) {
        (Ok(found), Ok(expected)) => found == expected,
        _ => found == expected,
    }
}

/// What is wrong with a case, if anything.
async fn check(directory: &Path) -> Result<(), String> {
    let script = fs::read_dir(directory)
        .map_err(|error| error.to_string())?
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .find(|path| path.file_stem().is_some_and(|stem| stem == "script"))
        .ok_or("no script")?;
    let extension = script.extension().and_then(|extension| extension.to_str()).unwrap_or_default().to_owned();
    let source = fs::read_to_string(&script).map_err(|error| error.to_string())?;
    let state = read(directory, "state.json").unwrap_or_else(|| "{}".to_owned());
    let env: Vec<(String, String)> = read(directory, "env")
        .unwrap_or_default()
        .lines()
        .filter_map(|line| line.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned())))
        .collect();
    let expected_code: i32 =
        read(directory, "exit").map_or(Ok(0), |text| text.trim().parse()).map_err(|_| "bad `exit`")?;

    let Some(report) = crate::common::run(&extension, &source, state.trim_end(), &env, None).await else {
        return Ok(());
    };
    let shown = format!("{:?}\nstderr: {}", report.result, report.stderr);
    match &report.result {
        Ok(stdout) => {
            if expected_code != 0 {
                return Err(format!("ended with 0 instead of {expected_code}: {shown}"));
            }
            if let Some(expected) = read(directory, "stdout").filter(|expected| !same(stdout, expected)) {
                return Err(format!("wrote\n{stdout}instead of\n{expected}stderr: {}", report.stderr));
            }
        }
        Err(CellError::Exit { code, .. }) if *code == expected_code => {}
        Err(_) => return Err(shown),
    }
    for line in read(directory, "stderr").unwrap_or_default().lines() {
        if !report.stderr.contains(line) {
            return Err(format!("standard error lacks `{line}`: {shown}"));
        }
    }
    Ok(())
}

#[tokio::test]
async fn every_case_does_what_it_must() {
    let directory = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let mut cases: Vec<PathBuf> = fs::read_dir(directory)
        .expect("the cases are there")
        .map(|entry| entry.expect("a readable entry").path())
        .collect();
    cases.sort();
    assert!(cases.len() > 40, "only {} cases were found", cases.len());
    let mut problems = Vec::new();
    for case in &cases {
        if let Err(problem) = check(case).await {
            problems.push(format!("--- {}\n{problem}", case.file_name().unwrap_or_default().to_string_lossy()));
        }
    }
    assert!(problems.is_empty(), "{} of {} cases fail\n{}", problems.len(), cases.len(), problems.join("\n"));
}
