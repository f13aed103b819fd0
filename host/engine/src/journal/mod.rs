//! The journal: what a run must never lose.
//!
//! A run is the sequence of its entries. An entry is committed before anything that follows from it happens, so a
//! process may die at any moment: whatever was committed is read back and not done again, whatever was not is.

mod encode;
mod memory;
mod sqlite;

use std::fmt;
use std::time::{Duration, SystemTime};

use hotcell_budget::Account;
use hotcell_graph::value::parse_json;
use hotcell_graph::{Object, Value};
use serde::Serialize;
use thiserror::Error;

pub use memory::MemoryJournal;
pub use sqlite::SqliteJournal;

use crate::action::SESSION;
use crate::branch::Write;

/// The name of a run.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct RunId(String);

impl RunId {
    /// A new random name of eight letters and digits that are hard to mistake for each other.
    pub fn random() -> Self {
        const ALPHABET: &[u8] = b"23456789abcdefghjkmnpqrstvwxyz";
        RunId((0..8).map(|_| ALPHABET[fastrand::usize(..ALPHABET.len())] as char).collect())
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<String> for RunId {
    fn from(text: String) -> Self {
        RunId(text)
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// How a run stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RunStatus {
    /// It is running, or the process that ran it is gone and it can be resumed
    Running,
    /// It waits for a person
    Waiting,
    /// It ended with a result
    Completed,
    /// It stopped with an error
    Failed,
    /// A person stopped it for good
    Cancelled,
}

impl RunStatus {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            RunStatus::Running => "running",
            RunStatus::Waiting => "waiting",
            RunStatus::Completed => "completed",
            RunStatus::Failed => "failed",
            RunStatus::Cancelled => "cancelled",
        }
    }

    fn from_word(word: &str) -> Option<Self> {
        [Self::Running, Self::Waiting, Self::Completed, Self::Failed, Self::Cancelled]
            .into_iter()
            .find(|status| status.as_str() == word)
    }

    /// Whether nothing more can happen to the run.
    pub fn is_final(self) -> bool {
        matches!(self, RunStatus::Completed | RunStatus::Failed | RunStatus::Cancelled)
    }
}

impl fmt::Display for RunStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a run was started with.
#[derive(Clone, Debug, PartialEq)]
pub struct RunHeader {
    /// The graph's name
    pub graph: String,
    /// Where the graph was loaded from, for whoever loads it again
    pub source: String,
    /// Identifies the text of the source
    pub digest: String,
    /// Everything the run was given: `input`, `variables`
    pub given: Object,
}

/// A run as the journal knows it.
#[derive(Clone, Debug)]
pub struct RunRecord {
    /// Its name
    pub id: RunId,
    /// What it was started with
    pub header: RunHeader,
    /// How it stands
    pub status: RunStatus,
    /// When it was started
    pub created: SystemTime,
    /// When its status last changed
    pub updated: SystemTime,
    /// The result or the error it ended with
    pub outcome: Option<String>,
}

impl RunRecord {
    /// The thread that it belongs to.
    pub fn thread(&self) -> Option<&str> {
        self.header.given.get("thread").and_then(Value::as_text)
    }

    /// How many runs before it, one after the other, only refer to the state of the one before them.
    pub fn depth(&self) -> u32 {
        crate::given::depth(&self.header.given)
    }
}

/// Where an entry belongs: the turn of a node (`7`), something within it (`7.2`), or the turn of a node of an agent that
/// was called there (`7.agent0.3`).
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place(pub String);

impl Place {
    /// The run itself.
    pub(crate) fn of_run() -> Self {
        Place(String::new())
    }

    pub(crate) fn of_turn(turn: u64) -> Self {
        Place(turn.to_string())
    }

    pub(crate) fn within(&self, part: impl fmt::Display) -> Self {
        Place(format!("{}.{part}", self.0))
    }

    /// The place of which this is a part; none for the turn of a run's own node.
    pub(crate) fn around(&self) -> Option<Self> {
        self.0.rsplit_once('.').map(|(around, _)| Place(around.to_owned()))
    }

    /// The turn of the run's own node.
    fn turn(&self) -> &str {
        self.0.split('.').next().unwrap_or_default()
    }

    /// What places are compared by where the order of their numbers counts: the word and the number of each part.
    fn order(&self) -> Vec<(String, u64)> {
        let part = |part: &str| {
            let word = part.trim_end_matches(|c: char| c.is_ascii_digit());
            (word.to_owned(), part[word.len()..].parse().unwrap_or_default())
        };
        self.0.split('.').map(part).collect()
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One committed fact.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// What it is about
    pub place: Place,
    /// The fact
    pub fact: Fact,
}

/// What an entry says.
#[derive(Clone, Debug, PartialEq)]
pub enum Fact {
    /// A node completed its turn
    Completed(Completed),
    /// Something outside answered within a node's turn (a model, a tool, an item of a map)
    Effect {
        /// How many effects of this place came before
        number: u32,
        /// What kind it is
        kind: String,
        /// What exactly was done: a name and a digest of what it was done with. Empty in journals of older versions
        subject: String,
        /// What was answered; a model that refused is an answer, too
        answer: Value,
        /// Who used what for it, within it included
        account: Account,
    },
    /// A turn, or something outside within it, failed. It is done again if the run goes on.
    Failed {
        /// How many effects of this place came before; none for the turn itself
        number: Option<u32>,
        /// Why
        error: String,
        /// Who used what for it, apart from what entries of their own say
        account: Account,
    },
    /// A person had a failed run go on. What models refused at the end of turns that are not completed is asked again.
    Retried,
    /// A person was asked
    Asked {
        /// How many effects of this place came before
        number: u32,
        /// The question
        question: Question,
    },
    /// A person answered
    Answered {
        /// The number of the question
        number: u32,
        /// The answer
        text: String,
    },
}

/// A completed turn of a node.
#[derive(Clone, Debug, PartialEq)]
pub struct Completed {
    /// The node's id
    pub node: String,
    /// What it wrote, in order
    pub writes: Vec<Write>,
    /// Where it went: ids of nodes; none when the run ended here
    pub next: Option<Vec<String>>,
    /// The result, if the run ended here
    pub output: Option<String>,
    /// Why its action failed, if it did and the graph says how to go on
    pub failure: Option<String>,
    /// How long it took
    pub elapsed: Duration,
    /// Who used what for it
    pub account: Account,
}

/// A question to a person.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Question {
    /// What an answer names it by, among the questions of its run; empty for one that is not read from the journal
    #[serde(skip_serializing_if = "String::is_empty")]
    pub id: String,
    /// The node that asks
    pub node: String,
    /// What the person is shown
    pub text: String,
    /// Answers that are offered; any other text is allowed too
    pub options: Vec<String>,
    /// What is used when the answer is empty
    pub default: Option<String>,
    /// The call that is asked for, if the question is for a program: the answer is its result (see
    /// [`ClientCall::result_of`])
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<ClientCall>,
}

/// A call of a tool that whoever runs the graph makes himself.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClientCall {
    /// The tool
    pub tool: String,
    /// An object
    pub arguments: Value,
}

impl ClientCall {
    /// The text that answers a call with this result.
    pub fn answer(result: Result<Value, String>) -> String {
        let (key, value) = match result {
            Ok(value) => ("result", value),
            Err(error) => ("error", Value::text(error)),
        };
        Value::Object([(key.into(), value)].into_iter().collect()).to_json()
    }

    /// What an answer says: the value of an object with nothing but `result`, the error of one with nothing but `error` (a
    /// text), else the JSON value that the text is, else the text itself.
    pub fn result_of(answer: &str) -> Result<Value, String> {
        let Ok(value) = parse_json(answer) else { return Ok(Value::text(answer)) };
        let only = value.as_object().filter(|object| object.len() == 1);
        match only.and_then(|object| object.iter().next()) {
            Some((key, result)) if &**key == "result" => Ok(result.clone()),
            Some((key, Value::Text(error))) if &**key == "error" => Err(error.to_string()),
            _ => Ok(value),
        }
    }
}

/// Why the journal did not do what it should.
#[derive(Debug, Error)]
pub enum JournalError {
    /// The store failed
    #[error("the journal {path} cannot be {doing}: {cause}")]
    Store {
        /// The store's path
        path: String,
        /// What was attempted, as a participle
        doing: &'static str,
        /// What the store says
        cause: String,
    },
    /// There is no such run
    #[error("there is no run `{0}`; `hotcell runs list` shows the runs there are")]
    NoSuchRun(String),
    /// Several runs start with that text
    #[error("`{0}` is the beginning of several runs: {1}")]
    Ambiguous(String, String),
    /// Another process runs it
    #[error("run `{0}` is being run by another process")]
    Busy(RunId),
    /// Somebody ended it for good
    #[error("run `{0}` is cancelled; nothing is added to it any more")]
    Cancelled(RunId),
    /// It has ended and cannot be cancelled
    #[error("run `{run}` is {status} and cannot be cancelled")]
    Ended {
        /// The run
        run: RunId,
        /// How it ended
        status: RunStatus,
    },
    /// An entry is not what this version writes
    #[error("run `{run}` has an entry that cannot be read: {cause}")]
    Unreadable {
        /// The run
        run: RunId,
        /// What is wrong with it
        cause: String,
    },
}

/// Held while a process runs a run. Dropping it, or the death of the process, gives the run free.
pub trait RunLock: Send + Sync {}

/// A store of runs. Every call that writes has committed when it returns.
pub trait Journal: Send + Sync {
    /// Starts a run and takes its lock.
    fn create(&self, header: &RunHeader) -> Result<(RunId, Box<dyn RunLock>), JournalError>;
    /// Takes the lock of a run; an error if another process, or another task of this one, has it.
    fn lock(&self, run: &RunId) -> Result<Box<dyn RunLock>, JournalError>;
    /// Adds an entry; [`JournalError::Cancelled`] if the run is cancelled.
    fn append(&self, run: &RunId, entry: &Entry) -> Result<(), JournalError>;
    /// Changes the status, with the result or the error where the run ends. That a run is cancelled is never changed:
    /// [`JournalError::Cancelled`] says so, unless it is to be cancelled once more. What has ended otherwise cannot be
    /// cancelled: [`JournalError::Ended`].
    fn set_status(&self, run: &RunId, status: RunStatus, outcome: Option<&str>) -> Result<(), JournalError>;
    /// How a run stands, by its whole name. Cheap: whoever drives a run looks several times a second.
    fn status(&self, run: &RunId) -> Result<RunStatus, JournalError>;
    /// All entries in the order in which they were added.
    fn entries(&self, run: &RunId) -> Result<Vec<Entry>, JournalError>;
    /// The run whose name is, or begins with, this text.
    fn find(&self, name: &str) -> Result<RunRecord, JournalError>;
    /// All runs, the newest first.
    fn list(&self) -> Result<Vec<RunRecord>, JournalError>;
    /// The latest run of a source in a thread, if there is one.
    fn last_of_thread(&self, source: &str, thread: &str) -> Result<Option<RunRecord>, JournalError> {
        let in_thread = |record: &RunRecord| record.header.source == source && record.thread() == Some(thread);
        Ok(self.list()?.into_iter().find(in_thread))
    }
    /// Takes the lock of a thread of a source; an error if another process, or another task of this one, has it.
    fn lock_thread(&self, source: &str, thread: &str) -> Result<Box<dyn RunLock>, JournalError> {
        // Names of threads may be of any length and may hold anything.
        let mut digest = blake3::Hasher::new();
        digest.update(source.as_bytes()).update(&[0]).update(thread.as_bytes());
        self.lock(&RunId(format!("thread-{}", &digest.finalize().to_hex()[..32])))
    }
}

/// A question of a run that has no answer yet.
#[derive(Clone, Debug, PartialEq)]
pub struct OpenQuestion {
    /// Where it was asked
    pub place: Place,
    /// Its number there
    pub number: u32,
    /// The question
    pub question: Question,
}

/// The questions among `entries` that wait for an answer, those of the oldest turn first. Parts of a turn that run side by
/// side are in the order of their places, whichever of them asked first.
pub fn open_questions(entries: &[Entry]) -> Vec<OpenQuestion> {
    let mut open: Vec<OpenQuestion> = Vec::new();
    for entry in entries {
        match &entry.fact {
            Fact::Asked { number, question } => {
                let question = Question { id: format!("{}:{number}", entry.place), ..question.clone() };
                open.push(OpenQuestion { place: entry.place.clone(), number: *number, question });
            }
            Fact::Answered { number, .. } => {
                open.retain(|asked| asked.place != entry.place || asked.number != *number);
            }
            Fact::Completed(_) | Fact::Effect { .. } | Fact::Failed { .. } | Fact::Retried => {}
        }
    }
    let mut turns: Vec<String> = Vec::new();
    for asked in &open {
        if !turns.iter().any(|turn| turn == asked.place.turn()) {
            turns.push(asked.place.turn().to_owned());
        }
    }
    open.sort_by_cached_key(|asked| {
        let turn = turns.iter().position(|turn| turn == asked.place.turn());
        (turn, asked.place.order(), asked.number)
    });
    open
}

/// How a run stands with what is to come by a callback.
#[derive(Clone, Debug, PartialEq)]
pub enum CallbackState {
    /// The run has no such session
    Unknown,
    /// The connector has not said yet that it waits
    Early,
    /// The run waits for it
    Open(Box<OpenQuestion>),
    /// It has come
    Answered,
}

/// How a run with these entries stands with the callback of that session.
pub fn callback_state(entries: &[Entry], session: &str) -> CallbackState {
    let given = |entry: &&Entry| {
        matches!(&entry.fact, Fact::Effect { kind, answer, .. }
            if kind == SESSION && answer.as_text().is_some_and(|known| is_same(known, session)))
    };
    let Some(begun) = entries.iter().find(given) else { return CallbackState::Unknown };
    let at_place = |entry: &Entry| entry.place == begun.place;
    if let Some(open) = open_questions(entries).into_iter().find(|open| open.place == begun.place) {
        return CallbackState::Open(Box::new(open));
    }
    let is_about_it = |fact: &Fact| !matches!(fact, Fact::Effect { .. } | Fact::Failed { .. });
    match entries.iter().any(|entry| at_place(entry) && is_about_it(&entry.fact)) {
        true => CallbackState::Answered,
        false => CallbackState::Early,
    }
}

/// Whether two texts are the same, in a time that does not say where they differ.
fn is_same(one: &str, other: &str) -> bool {
    let differs = one.bytes().zip(other.bytes()).fold(0, |sum, (one, other)| sum | (one ^ other));
    one.len() == other.len() && std::hint::black_box(differs) == 0
}

/// Finds the one of `runs` that a person means by `name`.
fn choose(runs: Vec<RunRecord>, name: &str) -> Result<RunRecord, JournalError> {
    let mut matching: Vec<RunRecord> = runs.into_iter().filter(|run| run.id.as_str().starts_with(name)).collect();
    if let Some(exact) = matching.iter().position(|run| run.id.as_str() == name) {
        return Ok(matching.swap_remove(exact));
    }
    match (matching.len(), matching.pop()) {
        (1, Some(run)) => Ok(run),
        (_, None) => Err(JournalError::NoSuchRun(name.into())),
        (_, Some(last)) => {
            let names: Vec<String> = matching.iter().chain([&last]).map(|run| format!("`{}`", run.id)).collect();
            Err(JournalError::Ambiguous(name.into(), names.join(", ")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Entry, Fact, Place, Question, open_questions};

    #[test]
    fn open_questions_of_a_turn_are_in_the_order_of_its_parts() {
        let asked = |place: &str, number| Entry {
            place: Place(place.to_owned()),
            fact: Fact::Asked { number, question: Question::default() },
        };
        let entries = [
            asked("7.call0.10", 0),
            asked("3", 0),
            asked("7.call0.2", 1),
            asked("7.call0.2", 0),
            asked("12", 0),
            Entry { place: Place("3".to_owned()), fact: Fact::Answered { number: 0, text: String::new() } },
        ];
        let open: Vec<(String, u32)> =
            open_questions(&entries).into_iter().map(|open| (open.place.to_string(), open.number)).collect();
        let open: Vec<(&str, u32)> = open.iter().map(|(place, number)| (place.as_str(), *number)).collect();
        assert_eq!(open, [("7.call0.2", 0), ("7.call0.2", 1), ("7.call0.10", 0), ("12", 0)]);
    }
}
