//! A hook in Rust.

use hotcell_plugin::{Error, Event, Verdict, config, hook, log, plugin};

/// Refuses the tool that the setting `refuse` names.
#[hook("before-tool-call")]
pub fn check(event: Event) -> Result<Verdict, Error> {
    let tool = event.tool();
    log::info!("the tool {tool} is called");
    if config::get("refuse").as_deref() == Some(tool) {
        return Ok(Verdict::refuse(format!("the tool `{tool}` must not be called here")));
    }
    Ok(Verdict::Proceed)
}

plugin! {
    name: "{{name}}",
    hooks: [check],
}

#[cfg(test)]
mod tests {
    use hotcell_plugin::{Event, Verdict, json, testing::Surroundings};

    use super::check;

    #[test]
    fn one_tool_is_refused() {
        for (tool, proceeds) in [("search", true), ("shell", false)] {
            let event = Event { json: json!({ "tool": tool }) };
            let ran = Surroundings::new().config("refuse", "shell").run(|| check(event));
            assert_eq!(ran.result == Ok(Verdict::Proceed), proceeds, "{tool}");
        }
    }
}
