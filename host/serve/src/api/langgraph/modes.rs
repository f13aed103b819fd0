//! What clients of LangGraph may be told in a stream.

use serde::Deserialize;
use serde_json::Value;

use crate::problem::{Problem, shown};

/// What a stream tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Mode {
    /// The state after each node
    Values,
    /// What each node wrote
    Updates,
    /// Each message of a model, as far as it has come
    Messages,
    /// Each piece of a message of a model
    MessagesTuple,
    /// Each node that begins, and what came of it
    Tasks,
    /// The state after each node, with its place in the history
    Checkpoints,
    /// Both, with their times
    Debug,
    /// The graph, its nodes and their models, as they begin and end
    Events,
    /// What nodes tell by themselves: nothing, agents have no way to
    Custom,
}

impl Mode {
    /// Whether it tells the state.
    pub(super) fn tells_state(self) -> bool {
        matches!(self, Mode::Values | Mode::Checkpoints | Mode::Debug | Mode::Tasks | Mode::Events)
    }

    /// Whether it tells something that is not committed.
    pub(super) fn tells_live(self) -> bool {
        matches!(self, Mode::Messages | Mode::MessagesTuple | Mode::Tasks | Mode::Debug | Mode::Events)
    }

    /// The modes of a query: names with commas between them, or a list in JSON.
    pub(super) fn all_named(names: &str) -> Result<Vec<Self>, Problem> {
        match serde_json::from_str::<Vec<String>>(names) {
            Ok(names) if !names.is_empty() => Mode::each_once(names.iter().map(|name| Mode::named(name))),
            _ => Mode::each_once(names.split(',').map(Mode::named)),
        }
    }

    /// Modes, each once: they are looked at with everything that is told.
    fn each_once<E>(all: impl Iterator<Item = Result<Self, E>>) -> Result<Vec<Self>, E> {
        let mut modes = Vec::new();
        for mode in all {
            let mode = mode?;
            if !modes.contains(&mode) {
                modes.push(mode);
            }
        }
        Ok(modes)
    }

    fn named(name: &str) -> Result<Self, Problem> {
        let known = serde_json::from_value(Value::String(name.to_owned()));
        known.map_err(|_| {
            Problem::unprocessable(format!(
                "`stream_mode` is `values`, `updates`, `messages`, `messages-tuple`, `tasks`, `checkpoints`, `debug`, `events` or \
                 `custom`; `{}` is not supported",
                shown(name)
            ))
        })
    }
}

/// One mode or several.
#[derive(Deserialize)]
#[serde(try_from = "Value")]
pub(super) struct Modes(Vec<Mode>);

impl Modes {
    pub(super) fn all(&self) -> Vec<Mode> {
        self.0.clone()
    }
}

impl TryFrom<Value> for Modes {
    type Error = String;

    fn try_from(value: Value) -> Result<Self, String> {
        let one = |name: &Value| {
            let name = name.as_str().ok_or("`stream_mode` is a name or a list of names")?;
            Mode::named(name).map_err(|problem| problem.detail)
        };
        match &value {
            Value::Array(names) if !names.is_empty() => Mode::each_once(names.iter().map(one)).map(Modes),
            name => Ok(Modes(vec![one(name)?])),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_mode_counts_once_however_often_it_is_named() {
        let both = [Mode::Values, Mode::Debug];
        assert_eq!(Mode::all_named("values,debug,values").map_err(|problem| problem.detail), Ok(both.to_vec()));
        assert_eq!(
            Mode::all_named(r#"["values", "values", "debug"]"#).map_err(|problem| problem.detail),
            Ok(both.to_vec())
        );
        let many = vec!["debug"; 10_000];
        assert_eq!(Modes::try_from(json!(many)).map(|modes| modes.all()), Ok(vec![Mode::Debug]));
    }
}
