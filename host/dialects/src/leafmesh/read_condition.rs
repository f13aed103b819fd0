//! Reading conditions.

use hotcell_graph::python::ObjectCondition;

use super::reading::Reading;
use super::schema::Condition;
use crate::document::Need::Optional;
use crate::document::{Fields, Kind};

/// By this name conditions call what an agent gave.
const RESPONSE: &str = "calling_agent_response";
/// What always holds.
const ALWAYS: [&str; 3] = ["", "always", "true"];

/// Reads the field `condition`; none if it always holds. `what` has it.
pub(super) fn condition<'r, 'd>(
    reading: &Reading<'r, 'd>,
    fields: &mut Fields<'r, 'd>,
    what: &str,
) -> Option<Condition> {
    let node = fields.node("condition", Optional)?;
    let span = reading.reader.span(node.place);
    let text = match &node.kind {
        // The words and not the values are meant.
        Kind::Bool(value) => {
            let condition = ObjectCondition::parse(if *value { "true" } else { "false" }, RESPONSE).ok()?;
            return (!value).then_some(Condition { condition, span });
        }
        _ => reading.reader.text(node, || "`condition`".to_owned(), fields.owner())?,
    };
    if ALWAYS.contains(&text.trim()) {
        return None;
    }
    match ObjectCondition::parse(&text, RESPONSE) {
        Ok(condition) => Some(Condition { condition, span }),
        Err(problem) => {
            let column = text[..text.floor_char_boundary(problem.range.start)].chars().count() + 1;
            let message = format!("the condition of {what} is broken at column {column}: {problem}");
            let error = fields.error(message, &text.span_of(problem.range));
            let help = "conditions compare fields: `calling_agent_response.status == 'ready' and score > 5`";
            reading.reader.report(error.help(help));
            None
        }
    }
}
