//! Questions as clients are shown them.

use hotcell_runtime::{OpenQuestion, Question, RunSummary};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::time;
use crate::agents::Agents;
use crate::attachments::Attachment;
use crate::groups::{Groups, groups_of};

/// A question that waits for an answer.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = InboxItem)]
pub(crate) struct InboxItem {
    /// The question, among those of its run
    pub(crate) id: String,
    /// The run that waits
    pub(crate) run_id: String,
    /// Its thread, if it belongs to one
    pub(crate) thread_id: Option<String>,
    /// Its agent; none if it is not served here any more
    pub(crate) agent_id: Option<String>,
    /// Why: `question` for a person, `tool_call` for a program that calls a tool and answers with its result, `denial` for whoever runs the
    /// server, because a call was denied a capability
    pub(crate) reason: &'static str,
    /// The node that asks
    pub(crate) node: String,
    /// What is asked
    pub(crate) message: String,
    /// Answers that are offered; any other text is allowed, too
    pub(crate) options: Vec<String>,
    /// What an empty answer stands for
    pub(crate) default: Option<String>,
    /// The tool and its arguments, if it is a call
    #[schema(value_type = Option<Object>)]
    pub(crate) call: Option<Value>,
    /// Who is asked, where that has a name of its own
    pub(crate) seat: Option<String>,
    /// Until when it waits for an answer; none for as long as it takes
    #[schema(format = DateTime)]
    pub(crate) expires_at: Option<String>,
    /// Who may answer: people, and groups as `group:NAME`; empty for anybody
    pub(crate) operator_ids: Vec<String>,
    /// The groups among them
    pub(crate) groups: Vec<String>,
    /// Those of the groups that nobody defined. Where nobody else may answer, somebody with the role `administer` may
    pub(crate) undefined_groups: Vec<String>,
    /// What else is known of it
    #[schema(value_type = Option<Object>)]
    pub(crate) context: Option<Value>,
    /// Documents to which it refers, as far as the server has them; `GET /attachments/{digest}` has their bytes
    pub(crate) attachments: Vec<Attachment>,
    /// What was denied: `plugin` (or script), `digest`, `capability` and `request` in words
    #[schema(value_type = Option<Object>)]
    pub(crate) denial: Option<Value>,
    /// The JSON schema of the answer
    #[schema(value_type = Object)]
    pub(crate) response_schema: Value,
}

impl InboxItem {
    pub(crate) fn of(
        run: &RunSummary,
        open: OpenQuestion,
        attachments: Vec<Attachment>,
        agents: &Agents,
        groups: &Groups,
    ) -> Self {
        let schema = response_schema(&open.question);
        let owned = |names: Vec<&str>| names.into_iter().map(str::to_owned).collect::<Vec<_>>();
        let undefined_groups = owned(groups.undefined(&open.question.operator_ids));
        let named_groups = owned(groups_of(&open.question.operator_ids));
        let Question { id, node, text, options, default, call, seat, expires, operator_ids, context, denial } =
            open.question;
        InboxItem {
            id,
            run_id: run.id.to_string(),
            thread_id: run.thread.clone(),
            agent_id: agents.id_of(&run.source),
            reason: match (&call, &denial) {
                (_, Some(_)) => "denial",
                (Some(_), None) => "tool_call",
                (None, None) => "question",
            },
            node,
            message: text,
            options,
            default,
            call: call.map(|call| json!(call)),
            seat,
            expires_at: expires.map(time),
            operator_ids,
            groups: named_groups,
            undefined_groups,
            context: context.map(|context| json!(context)),
            attachments,
            denial: denial.map(|denial| json!(denial)),
            response_schema: schema,
        }
    }
}

/// The JSON schema of the answer to a question.
pub(crate) fn response_schema(question: &Question) -> Value {
    if question.denial.is_some() {
        return json!({ "enum": Question::DECISIONS });
    }
    match (&question.call, question.options.is_empty()) {
        (Some(_), _) => json!({ "oneOf": [
            { "type": "object", "required": ["result"], "properties": { "result": {} }, "additionalProperties": false },
            { "type": "object", "required": ["error"], "properties": { "error": { "type": "string" } },
              "additionalProperties": false },
        ] }),
        (None, true) => json!({ "type": "string" }),
        (None, false) => json!({ "type": "string", "examples": question.options }),
    }
}
