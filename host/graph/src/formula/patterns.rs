//! The patterns of `matches`.

use super::EvaluationError;
use super::evaluate::{Evaluation, Result};
use crate::searching::{MOST_COMPILING, Search};
use crate::value::Value;

/// The longest pattern, in bytes.
const MAX_PATTERN: usize = 1 << 10;

/// The pattern of `matches`.
pub(super) fn compiled(pattern: &str) -> Result<Search> {
    if pattern.len() > MAX_PATTERN {
        return Err(EvaluationError::new(format!("`matches`: a pattern may have {MAX_PATTERN} bytes")));
    }
    Search::kept(pattern).map_err(|error| {
        let error = error.to_string();
        let reason = error.lines().last().unwrap_or_default();
        EvaluationError::new(format!("`matches`: {}", reason.strip_prefix("error: ").unwrap_or(reason)))
    })
}

/// Whether a text has what a pattern stands for.
pub(super) fn matches(evaluation: &mut Evaluation<'_>, text: &str, pattern: &str) -> Result<Value> {
    let search = search(evaluation, pattern)?;
    evaluation.step(search.steps(text.len()))?;
    let found = search.is_in(text).map_err(|late| EvaluationError::spent(format!("`matches`: {late}")))?;
    Ok(Value::Bool(found))
}

/// What is compiled counts once for an evaluation, whether it was known before or not: how many steps one takes depends on nothing else.
fn search(evaluation: &mut Evaluation<'_>, pattern: &str) -> Result<Search> {
    if let Some(known) = evaluation.recent.get(pattern) {
        return Ok(known);
    }
    // What cannot be compiled was tried, too, and a loop may go on after it.
    let search = compiled(pattern).or_else(|error| {
        evaluation.step(MOST_COMPILING)?;
        Err(error)
    })?;
    evaluation.step(search.compiling())?;
    evaluation.recent.keep(search.clone());
    Ok(search)
}
