//! Running a program in a cell: one JSON object comes back, its keys become writes.

use hotcell_graph::ir::{Action, Graph, Node, ScriptAction};
use hotcell_graph::value::parse_json;
use hotcell_graph::{State, Value, closest};

use super::Performed;
use super::permission::{Permits, only_denied};
use crate::context::Interruption;
use crate::memory::Deed;
use crate::ports::{CallError, ScriptCall, SharedState};
use crate::turn::NodeTurn;
use hotcell_journal::Write;

/// How much of an answer that is no JSON object is shown.
const SHOWN: usize = 200;

pub(super) async fn perform(
    turn: &mut NodeTurn,
    graph: &Graph,
    node: &Node,
    action: &ScriptAction,
    state: &State,
) -> Result<Performed, Interruption> {
    let file = &action.file;
    let mut permits = Permits::of(turn);
    let report = loop {
        // A script is no effect, but what it was denied is: a turn that is repeated need not run it again to ask for that.
        let deed = Deed::new("denied", file, &[]);
        if let Some(outcome) = turn.recall(&deed)? {
            permits.ask(turn, &outcome).await?;
            continue;
        }
        if !turn.context.ports.scripts.is_closed(file) || turn.context.ports.tools.asks_denials() {
            // What it does outside follows from everything that was done before.
            turn.context.settled().await?;
        }
        let site = permits.site(turn);
        let denials = site.denials();
        let call = ScriptCall {
            file: file.clone(),
            state: SharedState::new(state.clone()),
            variables: turn.context.variables.clone(),
            timeout: node.timeout,
            budget_scope: turn.context.budget_scope.clone(),
            site,
        };
        let mut report = turn.context.ports.scripts.run(call).await;
        let account = std::mem::take(&mut report.account);
        let Some(denied) = only_denied(denials.as_deref()) else {
            turn.account += account;
            turn.stop_if_withheld().await?;
            break report;
        };
        let outcome = turn.effect(deed, |_| async move { (account, Ok(denied)) }).await?;
        if !permits.ask(turn, &outcome).await? {
            break report;
        }
    };
    turn.context.notice(&node.id, &report.notices);
    let text = match report.result {
        Ok(text) => text,
        Err(CallError::Failed(reason)) => {
            return Err(Interruption::Failed(format!("script `{file}` failed: {reason}")));
        }
        Err(CallError::Asks(question)) => {
            return Err(Interruption::Failed(format!(
                "script `{file}` asked `{question}`, but scripts cannot ask people"
            )));
        }
    };
    if text.trim().is_empty() {
        return Err(Interruption::Failed(format!(
            "script `{file}` produced no output; it has to print one JSON object"
        )));
    }
    let object = match parse_json(&text) {
        Ok(Value::Object(object)) => object,
        Ok(other) => {
            return Err(Interruption::Failed(format!(
                "script `{file}` has to print one JSON object, but printed {}: {}",
                other.a_kind(),
                shorten(&text)
            )));
        }
        Err(error) => {
            return Err(Interruption::Failed(format!(
                "script `{file}` has to print one JSON object and nothing else ({error}), but printed: {}",
                shorten(&text)
            )));
        }
    };
    let mut performed = Performed::default();
    for (key, value) in object.iter() {
        if action.route_key != Some(&**key) {
            performed.writes.push(Write { key: key.clone(), value: value.clone() });
            continue;
        }
        let target = match value {
            Value::Text(id) => graph.find(id).filter(|node| !matches!(graph.node(*node).action, Action::Absent)),
            other => {
                return Err(Interruption::Failed(format!(
                    "script `{file}`: `{key}` has to be the id of a node as text, not {}",
                    shorten(&other.to_json())
                )));
            }
        };
        performed.route = Some(target.ok_or_else(|| {
            let name = value.to_display();
            let help = near(graph, &name).map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
            Interruption::Failed(format!(
                "script `{file}`: `{key}` names the node `{name}`, which does not exist{help}"
            ))
        })?);
    }
    Ok(performed)
}

/// The node of the file whose name is most like this one.
fn near<'g>(graph: &'g Graph, name: &str) -> Option<&'g str> {
    let is_written = |node: &Node| node.implied_by.is_none() && !matches!(node.action, Action::Absent);
    closest(name, graph.nodes().filter_map(|(_, node)| is_written(node).then_some(&*node.id)))
}

fn shorten(text: &str) -> String {
    let text = text.trim();
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", in_one_line(&text[..end])),
        None => in_one_line(text),
    }
}

/// A text without line ends and control characters; quotes stay as they are.
fn in_one_line(text: &str) -> String {
    text.escape_debug().to_string().replace("\\'", "'").replace("\\\"", "\"")
}
