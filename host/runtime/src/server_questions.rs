//! Questions that MCP servers put in the middle of a call, and how a person's answer is turned into what was asked for.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use hotcell_graph::value::read_json;
use hotcell_mcp::{ClientEvents, Elicited, LogLevel, Progress, ToolInfo};
use serde_json::{Map, Value};

/// How many of the values of a field are shown.
const MOST_SHOWN: usize = 20;

/// Answers for the calls that are under way with one server.
#[derive(Default)]
pub(crate) struct Asking(Mutex<Vec<Ticket>>);

struct Ticket {
    number: u64,
    answers: VecDeque<String>,
    question: Option<String>,
}

impl Asking {
    fn tickets(&self) -> MutexGuard<'_, Vec<Ticket>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn begin(&self, answers: &[String]) -> u64 {
        let mut tickets = self.tickets();
        let number = tickets.iter().map(|ticket| ticket.number + 1).max().unwrap_or(0);
        tickets.push(Ticket { number, answers: answers.iter().cloned().collect(), question: None });
        number
    }

    /// The question that has no answer yet, if the server put one.
    pub(crate) fn end(&self, number: u64) -> Option<String> {
        let mut tickets = self.tickets();
        let place = tickets.iter().position(|ticket| ticket.number == number)?;
        tickets.swap_remove(place).question
    }
}

#[async_trait]
impl ClientEvents for Asking {
    async fn elicit(&self, server: &str, message: &str, schema: &Value) -> Elicited {
        let mut tickets = self.tickets();
        // A server does not say which call its question belongs to. Nobody gets another one's question.
        let [ticket] = &mut tickets[..] else {
            tracing::warn!(target: "hotcell::mcp", server, "a question was declined: several calls are under way");
            return Elicited::Decline;
        };
        match ticket.answers.pop_front() {
            Some(answer) if answer.trim().is_empty() => Elicited::Decline,
            Some(answer) => fill(schema, &answer).map_or(Elicited::Decline, Elicited::Accept),
            None => {
                ticket.question = Some(question(message, schema));
                Elicited::Cancel
            }
        }
    }

    fn log(&self, server: &str, level: LogLevel, text: &str) {
        tracing::info!(target: "hotcell::mcp", server, ?level, "{text}");
    }

    fn tools_changed(&self, server: &str, tools: &[ToolInfo]) {
        tracing::info!(target: "hotcell::mcp", server, "it has {} tools now", tools.len());
    }

    fn progress(&self, server: &str, tool: &str, progress: &Progress) {
        tracing::info!(target: "hotcell::mcp", server, tool, done = progress.done, "{}", progress.message.as_deref().unwrap_or(""));
    }
}

/// The fields that a person has to fill in, with their schemas: those that are required, or all if none is.
fn fields(schema: &Value) -> Vec<(&String, &Value)> {
    let all = || schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    let required: Vec<&str> =
        schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    let needed: Vec<(&String, &Value)> = all().filter(|(name, _)| required.contains(&name.as_str())).collect();
    if needed.is_empty() { all().collect() } else { needed }
}

/// The question as a person sees it.
fn question(message: &str, schema: &Value) -> String {
    let described = |(name, schema): &(&String, &Value)| {
        let about = ["title", "description"].iter().find_map(|key| schema.get(*key)?.as_str());
        let kind = match choices(schema) {
            Some(choices) => {
                let more = (choices.len() > MOST_SHOWN).then_some("…");
                let said = choices.iter().take(MOST_SHOWN).map(|choice| choice.said.as_str());
                said.chain(more).collect::<Vec<_>>().join(" / ")
            }
            None => schema.get("type").and_then(Value::as_str).unwrap_or("text").to_owned(),
        };
        match about {
            Some(about) => format!("{name} ({kind}): {about}"),
            None => format!("{name} ({kind})"),
        }
    };
    let fields = fields(schema);
    match &fields[..] {
        [] => format!("{message} [y/N]"),
        [field] if is_remark(schema, field.1) => {
            format!("{message}\n{} (`no` or nothing to decline)", described(field))
        }
        [field] => format!("{message}\n{} (nothing to decline)", described(field)),
        several => {
            let lines: Vec<String> = several.iter().map(|field| format!("- {}", described(field))).collect();
            format!("{message}\nAnswer with a JSON object of\n{}\n(nothing to decline)", lines.join("\n"))
        }
    }
}

/// What a person answered, in the form that was asked for; none if it does not have that form.
fn fill(schema: &Value, answer: &str) -> Option<Value> {
    let fields = fields(schema);
    match &fields[..] {
        [] => (yes_or_no(answer)?).then(|| Value::Object(Map::new())),
        // Whoever says no to something that needs no words says no to it, and does not remark it.
        [(_, field)] if is_remark(schema, field) && yes_or_no(answer) == Some(false) => None,
        [(name, schema)] => Some(Value::Object(Map::from_iter([((*name).clone(), one(schema, answer.trim())?)]))),
        _ => read_json(answer).ok().filter(Value::is_object),
    }
}

/// Whether a field, the only one of what is asked for, is a text that nobody has to give.
fn is_remark(asked: &Value, field: &Value) -> bool {
    let is_required = asked.get("required").and_then(Value::as_array).is_some_and(|required| !required.is_empty());
    let is_text = field.get("type").and_then(Value::as_str).is_none_or(|kind| kind == "string");
    !is_required && is_text && choices(field).is_none()
}

/// The value of one field.
fn one(schema: &Value, answer: &str) -> Option<Value> {
    if let Some(choices) = choices(schema) {
        let exactly = choices.iter().find(|choice| choice.said == answer || choice.value == *answer);
        let by_name = || choices.iter().find(|choice| choice.said.eq_ignore_ascii_case(answer));
        return Some(exactly.or_else(by_name)?.value.clone());
    }
    match schema.get("type").and_then(Value::as_str) {
        Some("boolean") => Some(Value::Bool(yes_or_no(answer)?)),
        Some("integer") => answer.parse::<i64>().map(Value::from).ok(),
        Some("number") => answer.parse().map(Value::Number).ok(),
        Some("array") => read_json(answer).ok().filter(Value::is_array),
        Some("object") => read_json(answer).ok().filter(Value::is_object),
        _ => Some(Value::String(answer.to_owned())),
    }
}

/// One of the values that a field may have.
struct Choice {
    value: Value,
    /// What a person says for it
    said: String,
}

/// The values that a field may have, if it may not have any.
fn choices(schema: &Value) -> Option<Vec<Choice>> {
    let said = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        let names = schema.get("enumNames").and_then(Value::as_array);
        let name = |at: usize| Some(names?.get(at)?.as_str()?.to_owned());
        let choice = |(at, value): (usize, &Value)| Choice {
            value: value.clone(),
            said: name(at).unwrap_or_else(|| said(value)),
        };
        return Some(values.iter().enumerate().map(choice).collect());
    }
    let titled = ["oneOf", "anyOf"].iter().find_map(|key| schema.get(*key)?.as_array())?;
    let choice = |one: &Value| {
        let value = one.get("const")?;
        let title = one.get("title").and_then(Value::as_str).map(str::to_owned);
        Some(Choice { value: value.clone(), said: title.unwrap_or_else(|| said(value)) })
    };
    titled.iter().map(choice).collect()
}

/// A plain yes or no. Anything else is neither: a confirmation must not rest on a guess.
fn yes_or_no(answer: &str) -> Option<bool> {
    match answer.trim().to_lowercase().as_str() {
        "yes" | "y" | "true" | "1" | "ok" => Some(true),
        "no" | "n" | "false" | "0" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_a_yes_confirms() {
        let nothing = json!({ "type": "object", "properties": {} });
        assert_eq!(question("Delete it?", &nothing), "Delete it? [y/N]");
        for (answer, confirmed) in
            [("yes", true), (" Y ", true), ("no", false), ("N", false), ("never", false), ("yes, but", false)]
        {
            assert_eq!(fill(&nothing, answer).is_some(), confirmed, "{answer}");
        }
        let flag = json!({ "properties": { "x": { "type": "boolean" } } });
        assert_eq!(fill(&flag, "no"), Some(json!({ "x": false })));
        assert_eq!(fill(&flag, "perhaps"), None);
        // A remark that may be left out makes no yes of a no.
        let mut remark = json!({ "properties": { "why": { "type": "string" } } });
        assert_eq!(question("Delete it?", &remark), "Delete it?\nwhy (string) (`no` or nothing to decline)");
        for answer in ["no", " N ", "false"] {
            assert_eq!(fill(&remark, answer), None, "{answer}");
        }
        assert_eq!(fill(&remark, "it is old"), Some(json!({ "why": "it is old" })));
        // One that has to be given may be any text.
        remark["required"] = json!(["why"]);
        assert_eq!(fill(&remark, "no"), Some(json!({ "why": "no" })));
    }

    #[test]
    fn of_several_values_one_is_chosen_or_none() {
        let asked = |field: serde_json::Value| json!({ "properties": { "x": field } });
        let listed = asked(json!({ "type": "string", "enum": ["keep", "delete"] }));
        assert_eq!(question("What now?", &listed), "What now?\nx (keep / delete) (nothing to decline)");
        let titled =
            asked(json!({ "oneOf": [{ "const": 1, "title": "Keep it" }, { "const": 2, "title": "Delete it" }] }));
        let named = asked(json!({ "enum": ["k", "d"], "enumNames": ["Keep it", "Delete it"] }));
        for (asked, answer, value) in [
            (&listed, "keep", Some(json!("keep"))),
            (&listed, "Delete", Some(json!("delete"))),
            (&listed, "no", None),
            (&listed, "keep it", None),
            (&titled, "delete it", Some(json!(2))),
            (&titled, "2", None),
            (&named, "k", Some(json!("k"))),
            (&named, "Delete it", Some(json!("d"))),
        ] {
            assert_eq!(fill(asked, answer), value.map(|value| json!({ "x": value })), "{answer}");
        }
        let list = asked(json!({ "type": "array" }));
        assert_eq!(fill(&list, r#"["a"]"#), Some(json!({ "x": ["a"] })));
        assert_eq!(fill(&list, "no"), None);
    }

    #[test]
    fn a_person_answers_in_plain_words_where_one_thing_is_asked() {
        let one = |kind: &str| json!({ "properties": { "x": { "type": kind, "title": "The X" } } });
        assert_eq!(question("Which?", &one("string")), "Which?\nx (string): The X (`no` or nothing to decline)");
        assert_eq!(fill(&one("string"), " a b "), Some(json!({ "x": "a b" })));
        assert_eq!(fill(&one("boolean"), "Yes"), Some(json!({ "x": true })));
        assert_eq!(fill(&one("integer"), "7"), Some(json!({ "x": 7 })));
        assert_eq!(fill(&one("integer"), "seven"), None);
        let two = json!({ "properties": { "a": { "type": "string" }, "b": { "type": "number" } } });
        assert!(question("Who?", &two).contains("- a (string)\n- b (number)"));
        assert_eq!(fill(&two, r#"{"a":"x","b":1}"#), Some(json!({ "a": "x", "b": 1 })));
        assert_eq!(fill(&two, "x"), None);
        let one_of_two = json!({ "properties": { "a": { "type": "string" }, "b": {} }, "required": ["a"] });
        assert_eq!(fill(&one_of_two, "x"), Some(json!({ "a": "x" })));
    }

    #[test]
    fn a_question_goes_to_nobody_where_it_is_not_clear_whose_it_is() {
        let asking = Asking::default();
        let (first, second) = (asking.begin(&[]), asking.begin(&["yes".to_owned()]));
        let elicited = futures::executor::block_on(asking.elicit("s", "Go on?", &json!({})));
        assert!(matches!(elicited, Elicited::Decline));
        assert_eq!((asking.end(first), asking.end(second)), (None, None));
        let only = asking.begin(&[]);
        assert!(matches!(futures::executor::block_on(asking.elicit("s", "Go on?", &json!({}))), Elicited::Cancel));
        assert!(asking.end(only).is_some_and(|question| question.starts_with("Go on?")));
    }
}
