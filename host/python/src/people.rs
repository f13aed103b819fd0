//! A function of the Python program that answers the questions of a run.

use std::sync::Arc;

use async_trait::async_trait;
use hotcell_runtime::{People, Question};
use pyo3::prelude::*;

/// Whoever answers.
pub(crate) struct Answers(Arc<Py<PyAny>>);

impl Answers {
    /// `callable` takes a question as JSON and gives a text, or `None` for an answer another time.
    pub(crate) fn new(callable: Py<PyAny>) -> Self {
        Answers(Arc::new(callable))
    }
}

#[async_trait]
impl People for Answers {
    async fn ask(&self, question: &Question) -> Option<String> {
        let question = serde_json::to_string(question).ok()?;
        let callable = self.0.clone();
        let asked = tokio::task::spawn_blocking(move || {
            Python::try_attach(|py| {
                let answer = callable.bind(py).call1((question,)).and_then(|answer| answer.extract::<Option<String>>());
                answer.unwrap_or_else(|error| {
                    // The question stays open, and the program's log says why.
                    error.write_unraisable(py, None);
                    None
                })
            })
        });
        asked.await.ok().flatten().flatten()
    }
}
