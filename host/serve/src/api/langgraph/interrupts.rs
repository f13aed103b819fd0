//! What a run asks, and what is answered, as clients of LangGraph have it.

use hotcell_runtime::{OpenQuestion, Question, RunRecord, RunStatus};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::api::turn;
use crate::input::answer_text;
use crate::problem::Problem;
use crate::state::Server;
use crate::view::{Object, object, response_schema};

/// A question for which a run waits.
#[derive(Clone, Serialize, ToSchema)]
pub(crate) struct Interrupt {
    /// The question, among those of its run
    pub(super) id: String,
    /// What is asked
    #[schema(value_type = Object)]
    value: Object,
    /// The JSON schema of the answer
    #[schema(value_type = Object)]
    response_schema: Value,
}

impl Interrupt {
    pub(super) fn of(question: &Question) -> Self {
        let mut value = object(json!(question));
        value.remove("id");
        Interrupt { id: question.id.clone(), value, response_schema: response_schema(question) }
    }
}

/// What a run waits for.
pub(super) async fn open(server: &Server, run: &RunRecord) -> Result<Vec<OpenQuestion>, Problem> {
    match run.status {
        RunStatus::Waiting => Ok(turn::asked(&server.runs().store().history(&run.id).await?.whole()?)),
        _ => Ok(Vec::new()),
    }
}

/// Which question gets which answer: one for the only question, or an object with one for each id.
pub(super) fn answers(open: &[OpenQuestion], resume: Value) -> Result<Vec<(String, String)>, Problem> {
    let is_asked = |id: &String| open.iter().any(|open| open.question.id == *id);
    match resume {
        Value::Object(by_id) if !by_id.is_empty() && by_id.keys().all(is_asked) => {
            by_id.into_iter().map(|(id, answer)| Ok((id, answer_text(answer)?))).collect()
        }
        answer => match open {
            [only] => Ok(vec![(only.question.id.clone(), answer_text(answer)?)]),
            several => {
                let ids: Vec<&str> = several.iter().map(|open| open.question.id.as_str()).collect();
                let detail = "the run asks several questions; `command.resume` has to be an object with an answer for each of their ids";
                Err(Problem::unprocessable(detail).with("open", json!(ids)))
            }
        },
    }
}
