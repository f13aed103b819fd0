//! A scenario: a directory with an agent in its language and `scenario.json`, which says how it is started and what the
//! world and people say to it.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

/// What `scenario.json` says.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Scenario {
    /// The directory's name
    #[serde(skip)]
    pub(crate) name: String,
    #[serde(skip)]
    pub(crate) directory: PathBuf,
    /// What it is about, in a line
    pub(crate) about: String,
    /// What comes after `hotcell run`
    pub(crate) start: Vec<String>,
    /// The same for runs that follow it, each when the one before it is at rest
    #[serde(default)]
    pub(crate) then: Vec<Vec<String>>,
    /// The language logs no states: the result is made of everything that is in the state
    #[serde(default)]
    pub(crate) result_has_state: bool,
    #[serde(default)]
    pub(crate) faults: Faults,
    /// What may go wrong once hotcell can stand it; until then only where it is asked for
    #[serde(default)]
    pub(crate) unmended: Faults,
    /// What the model replies: the first rule that fits
    #[serde(default)]
    pub(crate) model: Vec<ModelRule>,
    #[serde(default)]
    pub(crate) web: Vec<WebRule>,
    /// Tools of the world's MCP server at `/mcp`
    #[serde(default)]
    pub(crate) tools: Vec<Tool>,
    #[serde(default)]
    pub(crate) people: Vec<Person>,
}

/// What may go wrong with requests, where the agent's language has them made again or the run fails and can be retried.
/// What a model is told of a failed tool call is another conversation; there, only slowness leads to the same result.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Faults {
    /// How often one request is refused at most
    pub(crate) most: usize,
    pub(crate) model: Vec<Fault>,
    pub(crate) web: Vec<Fault>,
    pub(crate) tools: Vec<Fault>,
    /// When an agent is loaded and the MCP server says what tools it has: the command is refused, and given again
    pub(crate) loading: Vec<Fault>,
}

impl Default for Faults {
    fn default() -> Self {
        Faults { most: 2, model: Vec::new(), web: Vec::new(), tools: Vec::new(), loading: Vec::new() }
    }
}

/// One way in which a request goes wrong.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Fault {
    /// It is answered, later than others
    Slow,
    /// 429
    Busy,
    /// 500
    Broken,
    /// The connection is reset
    Reset,
    /// The connection ends within the reply
    Cut,
}

/// What the model replies to conversations of a kind.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ModelRule {
    /// Some message has this text
    pub(crate) says: Option<String>,
    /// The last message has this text
    pub(crate) last: Option<String>,
    /// There are this many results of tools
    pub(crate) results: Option<usize>,
    /// The text, with `{token}` where it should stand
    pub(crate) reply: Option<String>,
    #[serde(default)]
    pub(crate) calls: Vec<Call>,
    /// What may go wrong, if that is not the same as for other requests to the model
    pub(crate) faults: Option<Vec<Fault>>,
}

/// A tool call of the model.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Call {
    pub(crate) name: String,
    pub(crate) arguments: Value,
}

/// What is found in the web.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WebRule {
    pub(crate) method: String,
    /// The beginning of the path
    pub(crate) path: String,
    /// A text, or JSON
    pub(crate) reply: Value,
}

/// A tool of the MCP server.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Tool {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) parameters: Value,
    pub(crate) reply: String,
}

/// What a person, or the client of the run, answers.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Person {
    /// A text that the question as `hotcell runs show --json` gives it contains
    pub(crate) asked: String,
    pub(crate) answer: String,
}

impl Scenario {
    /// How the run is started that comes after so many others, if there is one.
    pub(crate) fn start(&self, before: usize) -> Option<&[String]> {
        match before {
            0 => Some(&self.start),
            _ => self.then.get(before - 1).map(Vec::as_slice),
        }
    }

    /// Lets happen what hotcell does not stand yet.
    pub(crate) fn add_unmended(&mut self) {
        self.faults.most = self.faults.most.max(self.unmended.most);
        self.faults.model.append(&mut self.unmended.model);
        self.faults.web.append(&mut self.unmended.web);
        self.faults.tools.append(&mut self.unmended.tools);
        self.faults.loading.append(&mut self.unmended.loading);
    }
}

/// All scenarios, by name.
pub(crate) fn all(folder: &Path) -> Result<Vec<Scenario>, String> {
    let entries = fs::read_dir(folder).map_err(|error| format!("cannot read `{}`: {error}", folder.display()))?;
    let mut directories: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).filter(|it| it.is_dir()).collect();
    directories.sort();
    directories.into_iter().map(read).collect()
}

fn read(directory: PathBuf) -> Result<Scenario, String> {
    let file = directory.join("scenario.json");
    let problem = |error: &dyn std::fmt::Display| format!("`{}`: {error}", file.display());
    let text = fs::read_to_string(&file).map_err(|error| problem(&error))?;
    let mut scenario: Scenario = serde_json::from_str(&text).map_err(|error| problem(&error))?;
    scenario.name = directory.file_name().unwrap_or_default().to_string_lossy().into_owned();
    scenario.directory = directory;
    Ok(scenario)
}
