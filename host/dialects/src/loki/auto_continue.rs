//! Agents that keep a to-do list and go on by themselves while there are open tasks on it.

use hotcell_graph::ir::{Callable, Continuation};
use hotcell_graph::{Key, TodoTool};

use crate::document::Fields;
use crate::document::Need::Optional;

/// The state key with the list, which no template can name.
const LIST: &str = "(tasks)";
/// How often an agent goes on if it does not say.
const TIMES: u32 = 10;
/// What it is told then if it does not say.
const WORDS: &str = "There are open tasks on your to-do list. Go on with the next one now: call the tools that it needs, and do \
                     not describe first what you are going to do.";
/// What an agent is told about the list before it begins.
const INSTRUCTIONS: &str = "\
## Your to-do list

You have a to-do list. Where a request takes several steps:

- begin the list with `todo__init` and add every step with `todo__add` before you start with the first one;
- call `todo__done` as soon as a step is done, not for several of them at the end;
- if the request changes so that the list is of no use, call `todo__clear`.

When you stop while there are open tasks, you are shown the list and told to go on.";

/// What an agent says about its list.
pub(super) struct AutoContinue {
    times: u32,
    words: String,
    /// Whether its instructions get those about the list
    teaches: bool,
}

/// Reads the fields about it; none if the agent has no list.
pub(super) fn read(fields: &mut Fields<'_, '_>) -> Option<AutoContinue> {
    let is_on = fields.flag("auto_continue", Optional).is_some_and(|flag| flag.value);
    let times = fields.count("max_auto_continues", Optional).map_or(TIMES, |count| count.value);
    let teaches = fields.flag("inject_todo_instructions", Optional).is_none_or(|flag| flag.value);
    let words = fields.text("continuation_prompt", Optional).map(|words| words.to_string());
    let words = words.filter(|words| !words.trim().is_empty()).unwrap_or_else(|| WORDS.to_owned());
    is_on.then_some(AutoContinue { times, words, teaches })
}

impl AutoContinue {
    /// When the loop of the agent goes on.
    pub(super) fn continuation(&self) -> Continuation {
        Continuation { list: LIST.into(), times: self.times, words: self.words.clone() }
    }

    /// The tools with which its model keeps the list.
    pub(super) fn tools(&self) -> impl Iterator<Item = Callable> {
        TodoTool::ALL.into_iter().map(|tool| Callable::Todo { tool, name: name(tool), list: Key::from(LIST) })
    }

    /// Their names and descriptions.
    pub(super) fn shown(&self) -> Vec<(String, String)> {
        TodoTool::ALL.into_iter().map(|tool| (name(tool), tool.description().to_owned())).collect()
    }

    /// What stands behind the instructions of the agent.
    pub(super) fn instructions(&self) -> Option<&'static str> {
        self.teaches.then_some(INSTRUCTIONS)
    }
}

/// What the language calls a tool.
fn name(tool: TodoTool) -> String {
    let name = match tool {
        TodoTool::Init => "todo__init",
        TodoTool::Add => "todo__add",
        TodoTool::Done => "todo__done",
        TodoTool::List => "todo__list",
        TodoTool::Clear => "todo__clear",
    };
    name.to_owned()
}
