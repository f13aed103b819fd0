//! Writes a line into the log for each node, model call and tool call, and changes nothing.
//!
//! A line says what happened and how much of it, never what was said: messages, arguments and results may be private.
//! With the setting `texts = "yes"` the line shows the beginning of them.

use hotcell_plugin::{Error, Event, Json, Verdict, config, hook, info, plugin, warn};

plugin! { hooks: [audit] }

/// Characters of a text that are shown with the setting `texts`.
const SHOWN: usize = 120;

/// Writes a line into the log; the event goes on as it is.
#[hook(
    "before-run",
    "after-run",
    "before-node",
    "after-node",
    "node-failed",
    "before-model-call",
    "after-model-call",
    "before-tool-call",
    "after-tool-call",
    "before-agent-call",
    "after-agent-call",
    "before-question",
    "after-question"
)]
fn audit(point: &str, event: &Event) -> Result<Verdict, Error> {
    let mut line = point.to_owned();
    for (name, value) in [("node", event.node()), ("tool", event.tool())] {
        if !value.is_empty() {
            line.push_str(&format!(" {name}={value}"));
        }
    }
    if point.ends_with("model-call") {
        line.push_str(&format!(" messages={}", event.messages().len()));
    }
    let texts = config::get("texts").is_some_and(|value| value == "yes");
    for name in ["messages", "reply", "arguments", "result", "error"] {
        if let Some(value) = event.json.get(name) {
            let text = value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned);
            line.push_str(&format!(" {name}_characters={}", text.chars().count()));
            if texts {
                line.push_str(&format!(" {name}={:?}", shown(&text)));
            }
        }
    }
    if let Some(calls) = event.json.pointer("/reply/tool_calls").and_then(Json::as_array) {
        line.push_str(&format!(" tool_calls={}", calls.len()));
    }
    if point == "node-failed" {
        warn!("{line}");
    } else {
        info!("{line}");
    }
    Ok(Verdict::Proceed)
}

fn shown(text: &str) -> String {
    let mut start: String = text.chars().take(SHOWN).collect();
    if start.len() < text.len() {
        start.push('…');
    }
    start
}

#[cfg(test)]
mod tests {
    use hotcell_plugin::testing::Surroundings;
    use hotcell_plugin::{Json, Verdict, json};

    use super::PLUGIN;

    fn log(surroundings: Surroundings, point: &str, event: Json) -> Vec<String> {
        let ran = surroundings.run(|| PLUGIN.on(point, event));
        assert_eq!(ran.result, Ok(Verdict::Proceed));
        ran.log
    }

    #[test]
    fn lines_say_how_much_and_not_what() {
        let event = json!({"node": "write", "messages": [{"role": "user", "content": "secret"}]});
        let lines = log(Surroundings::new(), "before-model-call", event);
        assert_eq!(lines, ["info: before-model-call node=write messages=1 messages_characters=36"]);
        let event = json!({"node": "write", "tool": "search", "arguments": {"q": "secret"}, "result": "x"});
        let lines = log(Surroundings::new(), "after-tool-call", event);
        assert_eq!(lines, ["info: after-tool-call node=write tool=search arguments_characters=14 result_characters=1"]);
    }

    #[test]
    fn texts_are_shown_where_the_operator_wants_them() {
        let lines =
            log(Surroundings::new().config("texts", "yes"), "node-failed", json!({"node": "a", "error": "no\nway"}));
        assert_eq!(lines, ["warn: node-failed node=a error_characters=6 error=\"no\\nway\""]);
    }

    #[test]
    fn points_that_it_does_not_name_pass_in_silence() {
        assert!(log(Surroundings::new(), "before-skill-load", json!({})).is_empty());
    }

    #[test]
    fn cases_hold() {
        let problems = hotcell_plugin::testing::run_cases(&PLUGIN, concat!(env!("CARGO_MANIFEST_DIR"), "/cases"));
        assert_eq!(problems, Ok(Vec::new()));
    }
}
