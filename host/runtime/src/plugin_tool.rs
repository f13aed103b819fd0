//! Tools of plugins as tools of other programs.

use hotcell_cells::ToolDescription;
use hotcell_engine::CallError;
use hotcell_graph::json_schema::JsonSchema;
use hotcell_graph::value::read_json;
use hotcell_mcp::{Answer, Asked, Asks, CallContext, Called, CatalogError, OfferedTool};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::agent_tool::{answer_of, form, misfits, object};
use crate::plugin_registry::RegisteredPlugin;
use crate::plugin_tools::PluginTools;
use crate::settle::for_models;

/// The member of a structured answer that is no object by itself.
const RESULT: &str = "result";

/// A tool of a plugin as a tool of other programs.
pub(crate) struct PluginTool {
    pub(crate) offered: OfferedTool,
    /// The tool with the name of its plugin
    full: String,
    tools: PluginTools,
    /// The JSON schema of what it answers, if it says so
    returns: Option<Value>,
}

/// What a client that is asked keeps for the tool: the answers to the questions before.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Answered {
    answers: Vec<String>,
}

impl PluginTool {
    /// A tool of a plugin, as a tool of this name.
    pub(crate) fn new(
        name: String,
        plugin: &str,
        tool: &ToolDescription,
        registered: &RegisteredPlugin,
        tools: PluginTools,
    ) -> Self {
        let grants = &registered.terms.grants;
        let returns = tool.returns.clone();
        let offered = OfferedTool {
            name,
            title: None,
            description: tool.description.clone(),
            input_schema: object(tool.parameters.clone()),
            output_schema: returns
                .as_ref()
                .map(|returns| if is_object(returns) { object(returns.clone()) } else { within(returns) }),
            read_only: tool.read_only || !grants.changes_something(),
            open_world: grants.reaches_out(),
        };
        PluginTool { offered, full: format!("{plugin}/{}", tool.name), tools, returns }
    }

    /// Calls it. A tool that asks is called again from its beginning, with all answers so far.
    ///
    /// # Errors
    /// When the client goes on with something that no tool asked.
    pub(crate) async fn call(
        &self,
        arguments: &Map<String, Value>,
        call: &CallContext,
    ) -> Result<Answer, CatalogError> {
        // Told as the tool's own answer: a model can correct that, and never sees an error of the protocol.
        if let Some(problem) = misfits(&self.offered, arguments) {
            return Ok(Called::failed(problem).into());
        }
        let arguments = Value::Object(arguments.clone()).to_string();
        let going_on = call.going_on();
        let mut answers = match &going_on.state {
            None => Vec::new(),
            Some(state) => {
                let answered = serde_json::from_str::<Answered>(state).map_err(|_| {
                    CatalogError::InvalidState("`requestState` is not what this tool gave out".to_owned())
                })?;
                answered.answers
            }
        };
        loop {
            let report = tokio::select! {
                biased;
                () = call.cancelled().cancelled() => return Ok(Called::failed("it was cancelled").into()),
                report = self.tools.call(&self.full, &arguments, &answers) => report,
            };
            let question = match report.result {
                Ok(text) => return Ok(self.answered(&text).into()),
                Err(CallError::Failed(reason)) => return Ok(Called::failed(for_models(&reason)).into()),
                Err(CallError::Asks(question)) => question,
            };
            let id = format!("question-{}", answers.len() + 1);
            let schema = form(&[], None);
            let elicited = match going_on.answers.get(&id) {
                Some(elicited) => Some(elicited.clone()),
                None if call.can_answer_later() => None,
                None => match call.elicit(question.clone(), schema.clone()).await {
                    Ok(elicited) => Some(elicited),
                    Err(_) => return Ok(nobody_answers(&question).into()),
                },
            };
            match elicited.as_ref().map(answer_of) {
                Some(Some(answer)) => answers.push(answer),
                Some(None) if !elicited.is_some_and(|elicited| elicited.is_accepted() && call.can_answer_later()) => {
                    return Ok(nobody_answers(&question).into());
                }
                // It has not been asked, or what was answered is no answer to it.
                _ => {
                    let state = serde_json::to_string(&Answered { answers }).unwrap_or_default();
                    let questions = vec![Asked { id, message: question, schema }];
                    return Ok(Answer::Asks(Asks { questions, state }));
                }
            }
        }
    }

    /// What it answered, in JSON. An object is also the structured answer, and so is anything that was promised.
    fn answered(&self, text: &str) -> Called {
        let value = read_json(text).unwrap_or_else(|_| text.into());
        let said = match &value {
            Value::String(text) => Called::text(text.clone()),
            _ => Called::text(text),
        };
        let Some(returns) = &self.returns else {
            return Called { structured: Some(value).filter(Value::is_object), ..said };
        };
        let problems = JsonSchema::compiled(returns).map(|schema| schema.problems(&value, 3)).unwrap_or_default();
        if !problems.is_empty() {
            let name = &self.offered.name;
            let problems = problems.join("; ");
            return Called::failed(format!(
                "`{name}` answered what does not fit the form that it declares: {problems}"
            ));
        }
        let structured = if is_object(returns) { value } else { json!({ RESULT: value }) };
        Called { structured: Some(structured), ..said }
    }
}

fn nobody_answers(question: &str) -> Called {
    Called::failed(format!("it asks, and nobody answered: {question}"))
}

/// Whether everything that fits a schema is an object: no other structured answers are known to every client.
fn is_object(schema: &Value) -> bool {
    schema.get("type").and_then(Value::as_str) == Some("object")
}

/// The schema of an object with a result of this form.
fn within(schema: &Value) -> Map<String, Value> {
    object(json!({
        "type": "object", "properties": { RESULT: schema }, "required": [RESULT], "additionalProperties": false
    }))
}
