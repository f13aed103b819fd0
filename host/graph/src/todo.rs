//! A list of what a model has to do, which the model keeps itself with tools: a goal, and tasks that are open or done.
//!
//! In the state it is an object with `goal` and `tasks`, a list of objects with `task` and `done`.

use std::fmt;

use crate::value::{List, Object, Value};

/// Tasks that a list may have: all of them are told to the model again and again.
const MAX_TASKS: usize = 100;
/// Bytes that a goal or a task may have.
const MAX_TEXT: usize = 2048;

/// What a model may do with its list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TodoTool {
    /// Begins a new list
    Init,
    /// Adds a task
    Add,
    /// Marks a task as done
    Done,
    /// Shows the list
    List,
    /// Empties the list
    Clear,
}

impl TodoTool {
    /// All of them.
    pub const ALL: [TodoTool; 5] = [TodoTool::Init, TodoTool::Add, TodoTool::Done, TodoTool::List, TodoTool::Clear];

    /// What a model is told about it.
    pub fn description(self) -> &'static str {
        match self {
            TodoTool::Init => "Begins a new to-do list with a goal; one that there was is gone",
            TodoTool::Add => "Adds a task to the to-do list and says its number",
            TodoTool::Done => "Marks a task of the to-do list as done",
            TodoTool::List => "Shows the to-do list",
            TodoTool::Clear => "Empties the to-do list, for when its goal no longer applies",
        }
    }

    /// Its argument, if it has one.
    pub fn argument(self) -> Option<&'static str> {
        match self {
            TodoTool::Init => Some("goal"),
            TodoTool::Add => Some("task"),
            TodoTool::Done => Some("id"),
            TodoTool::List | TodoTool::Clear => None,
        }
    }
}

/// The list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TodoList {
    goal: String,
    /// Texts, and whether they are done
    tasks: Vec<(String, bool)>,
}

impl TodoList {
    /// The list in a value of the state; an empty one if there is none.
    pub fn of(value: Option<&Value>) -> Self {
        let text = |object: &Object, name: &str| {
            object.get(name).and_then(Value::as_text).map(str::to_owned).unwrap_or_default()
        };
        let Some(list) = value.and_then(Value::as_object) else { return TodoList::default() };
        let task = |task: &Value| {
            let task = task.as_object()?;
            Some((text(task, "task"), task.get("done") == Some(&Value::Bool(true))))
        };
        let tasks = list.get("tasks").and_then(Value::as_list);
        TodoList { goal: text(list, "goal"), tasks: tasks.into_iter().flat_map(List::iter).filter_map(task).collect() }
    }

    /// The list as a value of the state.
    pub fn to_value(&self) -> Value {
        let task = |(text, is_done): &(String, bool)| {
            let mut task = Object::default();
            task.insert("task", Value::from(text.as_str()));
            task.insert("done", Value::Bool(*is_done));
            Value::Object(task)
        };
        let mut list = Object::default();
        list.insert("goal", Value::from(self.goal.as_str()));
        list.insert("tasks", Value::List(self.tasks.iter().map(task).collect()));
        Value::Object(list)
    }

    /// How many tasks are open.
    pub fn open(&self) -> usize {
        self.tasks.iter().filter(|(_, is_done)| !is_done).count()
    }

    /// Does what a model asks for; gives what it is told.
    ///
    /// # Errors
    /// When there is no such task, or one of too many or with too long a text; nothing is changed then. The text is for the
    /// model.
    pub fn apply(&mut self, tool: TodoTool, arguments: &Object) -> Result<String, String> {
        let text = |name: &str| {
            let text = arguments.get(name).and_then(Value::as_text).unwrap_or_default().trim().to_owned();
            match text.len() {
                0 => Err(format!("`{name}` is empty")),
                long if long > MAX_TEXT => Err(format!("`{name}` has {long} bytes, and {MAX_TEXT} are the most")),
                _ => Ok(text),
            }
        };
        match tool {
            TodoTool::Init => {
                *self = TodoList { goal: text("goal")?, tasks: Vec::new() };
                Ok(format!("the list is empty; its goal is: {}", self.goal))
            }
            TodoTool::Add => {
                let task = text("task")?;
                if self.tasks.len() >= MAX_TASKS {
                    return Err(format!("the list has {MAX_TASKS} tasks, which are the most"));
                }
                self.tasks.push((task, false));
                Ok(format!("task {} is added", self.tasks.len()))
            }
            TodoTool::Done => {
                let id = match arguments.get("id") {
                    Some(Value::Number(id)) => id.to_f64(),
                    _ => 0.0,
                };
                let number = self.tasks.len();
                let place = (1..=number).find(|place| *place as f64 == id);
                let Some((_, is_done)) = place.and_then(|place| self.tasks.get_mut(place - 1)) else {
                    return Err(match number {
                        0 => "the list has no tasks".to_owned(),
                        1 => "the only task is 1".to_owned(),
                        _ => format!("the tasks are 1 to {number}"),
                    });
                };
                *is_done = true;
                Ok(match self.open() {
                    0 => format!("task {id} is done, and so are all others"),
                    open => format!("task {id} is done; {open} of {number} are open"),
                })
            }
            TodoTool::List => Ok(self.to_string()),
            TodoTool::Clear => {
                *self = TodoList::default();
                Ok("the list is empty".to_owned())
            }
        }
    }
}

impl fmt::Display for TodoList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.tasks.is_empty() && self.goal.is_empty() {
            return f.write_str("There is no list.");
        }
        let done = self.tasks.len() - self.open();
        write!(f, "Goal: {}\nDone: {done} of {}", self.goal, self.tasks.len())?;
        for (place, (task, is_done)) in self.tasks.iter().enumerate() {
            let mark = if *is_done { "x" } else { " " };
            write!(f, "\n[{mark}] {}. {task}", place + 1)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::parse_json;

    fn apply(list: &mut TodoList, tool: TodoTool, arguments: &str) -> Result<String, String> {
        list.apply(tool, parse_json(arguments).unwrap().as_object().unwrap())
    }

    #[test]
    fn a_list_is_kept() {
        let mut list = TodoList::default();
        assert_eq!(list.to_string(), "There is no list.");
        apply(&mut list, TodoTool::Init, r#"{"goal": "tea"}"#).unwrap();
        assert_eq!(apply(&mut list, TodoTool::Add, r#"{"task": "boil water"}"#).unwrap(), "task 1 is added");
        apply(&mut list, TodoTool::Add, r#"{"task": "steep"}"#).unwrap();
        assert_eq!(apply(&mut list, TodoTool::Done, r#"{"id": 1}"#).unwrap(), "task 1 is done; 1 of 2 are open");
        assert_eq!(list.to_string(), "Goal: tea\nDone: 1 of 2\n[x] 1. boil water\n[ ] 2. steep");
        assert_eq!(TodoList::of(Some(&list.to_value())), list);
        apply(&mut list, TodoTool::Done, r#"{"id": 2}"#).unwrap();
        assert_eq!(list.open(), 0);
        apply(&mut list, TodoTool::Clear, "{}").unwrap();
        assert_eq!(list, TodoList::default());
    }

    #[test]
    fn what_cannot_be_done_changes_nothing() {
        let mut list = TodoList::default();
        let long = format!(r#"{{"task": "{}"}}"#, "x".repeat(MAX_TEXT + 1));
        for (tool, arguments, problem) in [
            (TodoTool::Init, "{}", "`goal` is empty"),
            (TodoTool::Add, r#"{"task": " "}"#, "`task` is empty"),
            (TodoTool::Add, &*long, "2048 are the most"),
            (TodoTool::Done, r#"{"id": 1}"#, "no tasks"),
        ] {
            assert!(apply(&mut list, tool, arguments).unwrap_err().contains(problem), "{problem}");
            assert_eq!(list, TodoList::default());
        }
        for _ in 0..MAX_TASKS {
            apply(&mut list, TodoTool::Add, r#"{"task": "one more"}"#).unwrap();
        }
        let full = list.clone();
        for (tool, arguments, problem) in [
            (TodoTool::Add, r#"{"task": "one more"}"#, "100 tasks"),
            (TodoTool::Done, r#"{"id": 0}"#, "1 to 100"),
            (TodoTool::Done, r#"{"id": 101}"#, "1 to 100"),
            (TodoTool::Done, r#"{"id": 1.5}"#, "1 to 100"),
        ] {
            assert!(apply(&mut list, tool, arguments).unwrap_err().contains(problem), "{arguments}");
            assert_eq!(list, full);
        }
        for other in ["null", "[]", r#"{"tasks": [1, "x"]}"#, r#"{"goal": 1}"#] {
            assert_eq!(TodoList::of(Some(&parse_json(other).unwrap())), TodoList::default(), "{other}");
        }
    }
}
