//! The file of a case.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use hotcell_budget::{Bytes, Fuel};
use hotcell_cells::{DirectoryGrant, Grants};
use hotcell_files::Folder;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use thiserror::Error;

/// Memory and time that a case may give its call: it comes with the plugin, and whoever plays it decides on neither.
const MOST_MEMORY: Bytes = Bytes::mib(1 << 10);
const MOST_MILLISECONDS: u64 = 600_000;

/// A case as it stands in its file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// What it shows, for people
    #[serde(default)]
    pub description: String,
    tool: Option<String>,
    #[serde(default)]
    arguments: Option<Value>,
    script: Option<ScriptInput>,
    node: Option<String>,
    #[serde(default)]
    fields: Map<String, Value>,
    #[serde(default)]
    inputs: Map<String, Value>,
    hook: Option<String>,
    #[serde(default)]
    event: Map<String, Value>,
    connector: Option<ConnectorInput>,
    /// Settings that the plugin can read
    #[serde(default)]
    pub config: BTreeMap<String, String>,
    /// Answers of the person, in the order of the questions
    #[serde(default)]
    pub answers: Vec<String>,
    /// Values of secrets
    #[serde(default)]
    pub secrets: BTreeMap<String, String>,
    /// What the plugin's store holds at the start
    #[serde(default)]
    pub kv: BTreeMap<String, String>,
    /// What is granted, as in `hotcell.toml`; directories are those inside the folder of the case
    #[serde(default)]
    grants: Grants,
    /// Directories elsewhere on this machine that the case names
    #[serde(skip)]
    outside: Vec<DirectoryGrant>,
    /// What the host answers to the plugin's calls
    #[serde(default)]
    pub replies: Vec<HostReply>,
    /// What has to come of it
    pub expect: Expectation,
    /// What it may use
    #[serde(default)]
    pub budget: CaseBudget,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ScriptInput {
    #[serde(default)]
    state: Map<String, Value>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ConnectorInput {
    #[serde(default)]
    input: Map<String, Value>,
    #[serde(default)]
    config: Map<String, Value>,
    callback: Option<CallbackInput>,
    body: Option<Value>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CallbackInput {
    url: String,
    session: String,
}

/// Ceilings of one case; what is not named has the limit of every call.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CaseBudget {
    /// Fuel
    pub fuel: Option<Fuel>,
    /// Memory in bytes
    pub memory: Option<Bytes>,
    /// Time in milliseconds
    pub wall_clock_ms: Option<u64>,
}

impl CaseBudget {
    fn check(&self) -> Result<(), String> {
        if self.memory.is_some_and(|memory| memory > MOST_MEMORY) {
            return Err(format!("`budget.memory`: a case has {MOST_MEMORY} at most"));
        }
        if self.wall_clock_ms.is_some_and(|time| time > MOST_MILLISECONDS) {
            return Err(format!("`budget.wall_clock_ms`: a case has {MOST_MILLISECONDS} at most"));
        }
        Ok(())
    }
}

/// What is called.
#[derive(Clone, Debug)]
pub enum Call {
    /// A tool with its arguments
    Tool(String, String),
    /// The script with the graph's state
    Script(Map<String, Value>),
    /// A node of this type with fields and inputs
    Node(String, String, String),
    /// The hook at this point with an event
    Hook(String, String),
    /// The connector
    Connector {
        /// What is handed over
        input: String,
        /// How the connector is set up
        config: String,
        /// Address and session of the answer
        callback: Option<(String, String)>,
        /// What came by the callback
        body: Option<String>,
    },
}

/// What has to come of a case: exactly one of these.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Expectation {
    /// This JSON value; of a connector that takes the request and answers later, the text `accepted`
    Output(Value),
    /// An error of the plugin
    Error {
        /// Which case of the contract's error; any, if it is left out
        kind: Option<String>,
        /// A part of its message
        #[serde(default)]
        message: String,
    },
    /// The plugin puts a question with this text
    Question(String),
    /// The hook decides so
    Verdict(ExpectedVerdict),
    /// The node ends so
    Outcome {
        /// Its outputs
        outputs: Value,
        /// The branch
        branch: Option<String>,
    },
    /// The call ends at this limit
    Limit(String),
}

/// What a hook has to decide.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExpectedVerdict {
    /// The event goes on as it is
    Proceed,
    /// It goes on so
    Change(Value),
    /// It does not go on; a part of the reason
    Refuse(String),
}

/// Which call of the plugin a reply belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HostCall {
    /// A request over HTTP
    Http,
    /// A question to the model
    Llm,
    /// A call of another tool
    Tool,
}

impl HostCall {
    /// The word for it in a case.
    pub fn as_str(self) -> &'static str {
        match self {
            HostCall::Http => "http",
            HostCall::Llm => "llm",
            HostCall::Tool => "tool",
        }
    }
}

/// What the host answers to a call of the plugin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostReply {
    /// Which call
    pub call: HostCall,
    /// What the call has to say, as far as it is named here: an object of which every entry has to be there
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<Value>,
    /// The answer
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply: Option<Value>,
    /// In the place of an answer: why there is none
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// What is wrong with the file of a case.
#[derive(Debug, Error)]
#[error("`{file}`: {cause}", file = file.display())]
pub struct CaseError {
    file: PathBuf,
    cause: String,
}

impl Case {
    /// Reads a case that lies in `folder`, from which its directories are named.
    ///
    /// # Errors
    /// When the text is not of the form, or names a directory that is not there; the text says what and where.
    pub fn parse(text: &str, folder: &Path) -> Result<Self, String> {
        let mut case: Case = serde_json::from_str(text).map_err(|error| error.to_string())?;
        case.call()?;
        case.budget.check()?;
        case.sort_directories(folder)?;
        Ok(case)
    }

    /// A case comes with the plugin, from whoever wrote it: it is given directories of its own folder and no others. Links are
    /// followed first, so that what counts is where they lead.
    fn sort_directories(&mut self, folder: &Path) -> Result<(), String> {
        for mut grant in std::mem::take(&mut self.grants.fs) {
            let real = |path: &Path| {
                path.canonicalize().map_err(|error| format!("`grants.fs`: `{}`: {error}", grant.host.display()))
            };
            let (own, named) = (real(folder)?, real(&folder.join(&grant.host))?);
            let inside = named.starts_with(own);
            grant.host = named;
            if inside { self.grants.fs.push(grant) } else { self.outside.push(grant) }
        }
        Ok(())
    }

    /// The directories outside the folder of the case that it names. It is not played before [`Case::allow_outside`].
    pub fn outside(&self) -> &[DirectoryGrant] {
        &self.outside
    }

    /// Gives the case the directories outside its folder, because the person who plays it agrees.
    pub fn allow_outside(&mut self) {
        self.grants.fs.append(&mut self.outside);
    }

    /// What the case is granted.
    pub fn grants(&self) -> &Grants {
        &self.grants
    }

    /// What is called.
    ///
    /// # Errors
    /// When the case names nothing to call, or more than one thing.
    pub fn call(&self) -> Result<Call, String> {
        let text = |map: &Map<String, Value>| Value::Object(map.clone()).to_string();
        let calls = [
            self.tool.as_ref().map(|tool| {
                let arguments = self.arguments.clone().unwrap_or_else(|| Value::Object(Map::new()));
                // A text is handed over as it is, so that a case can show what becomes of arguments that are not JSON.
                let arguments = arguments.as_str().map_or_else(|| arguments.to_string(), str::to_owned);
                Call::Tool(tool.clone(), arguments)
            }),
            self.script.as_ref().map(|script| Call::Script(script.state.clone())),
            self.node.as_ref().map(|node| Call::Node(node.clone(), text(&self.fields), text(&self.inputs))),
            self.hook.as_ref().map(|point| Call::Hook(point.clone(), text(&self.event))),
            self.connector.as_ref().map(|connector| Call::Connector {
                input: text(&connector.input),
                config: text(&connector.config),
                callback: connector.callback.as_ref().map(|callback| (callback.url.clone(), callback.session.clone())),
                body: connector.body.as_ref().map(Value::to_string),
            }),
        ];
        let mut named = calls.into_iter().flatten();
        match (named.next(), named.next()) {
            (Some(call), None) => Ok(call),
            (None, _) => Err("it calls nothing: give `tool`, `script`, `node`, `hook` or `connector`".to_owned()),
            (Some(_), Some(_)) => Err("it calls more than one of tool, script, node, hook and connector".to_owned()),
        }
    }
}

/// Puts recorded replies into the file of the case `name` of a folder, in the place of those of the same kind. The plugin that was played
/// may have been given that folder: a link that lies there by now leads nowhere.
///
/// # Errors
/// When the file cannot be read or written, or is no case.
pub fn keep_replies(folder: &Path, name: &str, recorded: &[HostReply]) -> Result<(), CaseError> {
    let file = folder.join(format!("{name}.json"));
    let keep = || -> Result<(), Box<dyn std::error::Error>> {
        let own = Folder::new(folder);
        let text = own.read_text(Path::new(&format!("{name}.json")), hotcell_files::MAX_TEXT)?;
        let mut case: Map<String, Value> = serde_json::from_str(&text)?;
        let kept = case.get("replies").and_then(Value::as_array).cloned().unwrap_or_default();
        let mut replies: Vec<Value> = kept.into_iter().filter(|reply| reply["call"] != "http").collect();
        for reply in recorded {
            replies.push(serde_json::to_value(reply)?);
        }
        case.insert("replies".to_owned(), replies.into());
        let mut text = serde_json::to_string_pretty(&case)?;
        text.push('\n');
        Ok(hotcell_files::replace(&file, text.as_bytes())?)
    };
    keep().map_err(|error| CaseError { file: file.clone(), cause: error.to_string() })
}

/// The cases of a folder by name, in the order of their names.
///
/// # Errors
/// When a file cannot be read or is not of the form.
pub fn read_cases(folder: &Path) -> Result<Vec<(String, Case)>, CaseError> {
    let failed = |file: &Path, cause: String| CaseError { file: file.to_owned(), cause };
    // What a folder of cases holds is what its author put there, and not what a link makes of the reader's own files.
    let is_link = |path: &Path| path.symlink_metadata().is_ok_and(|metadata| metadata.is_symlink());
    if is_link(folder) {
        return Err(failed(folder, "it is a link; cases lie in a folder of the plugin's own".to_owned()));
    }
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(folder, error.to_string())),
    };
    let mut files: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .filter(|path| path.file_name().is_some_and(|name| name != crate::BASELINE_FILE))
        .collect();
    files.sort();
    let read = |file: PathBuf| {
        if is_link(&file) {
            return Err(failed(&file, "it is a link; put the case itself there".to_owned()));
        }
        let text = hotcell_files::read_text(&file, hotcell_files::MAX_TEXT)
            .map_err(|error| failed(&file, error.to_string()))?;
        let case = Case::parse(&text, folder).map_err(|cause| failed(&file, cause))?;
        let name = file.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        Ok((name, case))
    };
    files.into_iter().map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn replies_are_kept_in_the_case_and_behind_no_link() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("cases");
        std::fs::create_dir(&folder).unwrap();
        let case = r#"{ "tool": "a", "expect": { "output": 1 }, "replies": [{ "call": "http" }, { "call": "llm" }] }"#;
        std::fs::write(folder.join("a.json"), case).unwrap();
        let reply = HostReply { call: HostCall::Http, request: None, reply: Some(Value::from(7)), error: None };
        keep_replies(&folder, "a", std::slice::from_ref(&reply)).unwrap();
        let (_, read) = read_cases(&folder).unwrap().remove(0);
        assert_eq!(read.replies.iter().map(|reply| reply.call).collect::<Vec<_>>(), [HostCall::Llm, HostCall::Http]);

        // The plugin put a link there while it was played.
        let mine = place.path().join("mine.json");
        std::fs::write(&mine, case).unwrap();
        std::fs::remove_file(folder.join("a.json")).unwrap();
        std::os::unix::fs::symlink(&mine, folder.join("a.json")).unwrap();
        let error = keep_replies(&folder, "a", &[reply]).unwrap_err().to_string();
        assert!(error.contains("a.json") && std::fs::read_to_string(&mine).unwrap() == case, "{error}");
    }

    #[test]
    fn what_is_wrong_with_a_case_is_said() {
        let cases = [
            ("{", "EOF"),
            (r#"{ "expect": { "output": 1 } }"#, "it calls nothing"),
            (r#"{ "tool": "a", "hook": "b", "expect": { "output": 1 } }"#, "more than one"),
            (r#"{ "tool": "a" }"#, "missing field `expect`"),
            (r#"{ "tool": "a", "expect": { "outptu": 1 } }"#, "unknown variant `outptu`"),
            (r#"{ "tool": "a", "expect": { "output": 1 }, "budget": { "memory": 68719476736 } }"#, "`budget.memory`: "),
            (r#"{ "tool": "a", "expect": { "output": 1 }, "budget": { "wall_clock_ms": 1e12 } }"#, "invalid type"),
            (
                r#"{ "tool": "a", "expect": { "output": 1 }, "budget": { "wall_clock_ms": 600001 } }"#,
                "`budget.wall_clock_ms`: a case has 600000",
            ),
            (r#"{ "tool": "a", "expect": { "output": 1 }, "grant": {} }"#, "unknown field `grant`"),
            (r#"{ "tool": "a", "expect": { "output": 1 }, "grants": { "htpt": [] } }"#, "unknown field `htpt`"),
            (
                r#"{ "tool": "a", "expect": { "output": 1 }, "grants": { "fs": [{ "host": "not-there", "guest": "/d" }] } }"#,
                "`grants.fs`: `not-there`",
            ),
        ];
        for (text, expected) in cases {
            let message = Case::parse(text, Path::new(".")).map_or_else(|error| error, |_| "accepted".to_owned());
            assert!(message.contains(expected), "`{expected}` is not in `{message}`");
        }
    }

    #[cfg(unix)]
    #[test]
    fn cases_are_no_links() {
        let machine = tempfile::tempdir().unwrap();
        let (folder, elsewhere) = (machine.path().join("cases"), machine.path().join("elsewhere"));
        std::fs::create_dir_all(&elsewhere).unwrap();
        std::fs::write(elsewhere.join("a.json"), r#"{ "tool": "a", "expect": { "output": 1 } }"#).unwrap();
        let refusal = || read_cases(&folder).map_or_else(|error| error.to_string(), |_| "accepted".to_owned());
        std::os::unix::fs::symlink(&elsewhere, &folder).unwrap();
        assert!(refusal().contains("cases`: it is a link"), "{}", refusal());
        std::fs::remove_file(&folder).unwrap();
        std::fs::create_dir(&folder).unwrap();
        std::os::unix::fs::symlink(elsewhere.join("a.json"), folder.join("a.json")).unwrap();
        assert!(refusal().contains("a.json`: it is a link"), "{}", refusal());
    }

    #[test]
    fn a_case_is_given_directories_of_its_own_folder_only() {
        let machine = tempfile::tempdir().unwrap();
        let (folder, keys) = (machine.path().join("cases"), machine.path().join("keys"));
        for directory in [&folder.join("data/deep"), &keys] {
            std::fs::create_dir_all(directory).unwrap();
        }
        #[cfg(unix)]
        std::os::unix::fs::symlink(&keys, folder.join("link")).unwrap();
        let case = |host: &str| {
            let fs = serde_json::json!([{ "host": host, "guest": "/d", "access": "read-write" }]);
            let case = serde_json::json!({ "tool": "a", "expect": { "output": 1 }, "grants": { "fs": fs } });
            Case::parse(&case.to_string(), &folder).unwrap()
        };
        for inside in ["data", "data/deep", "data/../data", "../cases/data", "."] {
            let case = case(inside);
            assert_eq!((case.grants().fs.len(), case.outside().len()), (1, 0), "{inside}");
        }
        let absolute = keys.display().to_string();
        for outside in ["..", "../keys", "data/../../keys", "/", &absolute, "link", "link/../keys"] {
            if cfg!(not(unix)) && outside.starts_with("link") {
                continue;
            }
            let mut case = case(outside);
            assert_eq!((case.grants().fs.len(), case.outside().len()), (0, 1), "{outside}");
            case.allow_outside();
            assert_eq!((case.grants().fs.len(), case.outside().len()), (1, 0), "{outside}");
        }
    }
}
