//! Entries: the facts that a run is made of.

use std::time::{Duration, SystemTime};

use hotcell_budget::Account;
use hotcell_graph::value::{MAX_SIZE, parse_json};
use hotcell_graph::{Key, Object, Value};
use serde::{Serialize, Serializer};

use crate::ids::{EntryPath, RunId};

/// One committed fact.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// What it is about
    pub place: EntryPath,
    /// The fact
    pub fact: Fact,
}

impl Entry {
    /// A fact about the run itself.
    pub fn of_run(fact: Fact) -> Self {
        Entry { place: EntryPath::of_run(), fact }
    }
}

/// What a run was started with.
#[derive(Clone, Debug, PartialEq)]
pub struct RunHeader {
    /// The graph's name
    pub graph: String,
    /// Where the graph was loaded from, for whoever loads it again
    pub source: String,
    /// Identifies what it was loaded from
    pub digest: String,
    /// Whether the store keeps all of that under the digest ([`crate::Revision`])
    pub kept: bool,
    /// Everything the run was given: `input`, `variables`
    pub given: Object,
}

impl RunHeader {
    /// The thread that the run belongs to.
    pub fn thread(&self) -> Option<&str> {
        self.given.get("thread").and_then(Value::as_text)
    }

    /// The name that the run is to have, if that was decided before it began.
    pub(crate) fn wanted_name(&self) -> Option<RunId> {
        self.given.get("id").and_then(Value::as_text).map(|name| RunId::from(name.to_owned()))
    }

    /// The run whose state this one goes on with, if that is not kept in this one.
    pub(crate) fn needs(&self) -> Option<String> {
        self.given.get("after").and_then(Value::as_text).map(str::to_owned)
    }

    /// The text that the run was given.
    pub fn input(&self) -> Option<&str> {
        self.given.get("input").and_then(Value::as_text)
    }
}

/// What an entry says.
#[derive(Clone, Debug, PartialEq)]
#[expect(
    clippy::large_enum_variant,
    reason = "a question is one of few entries, and all others would be no smaller for its box"
)]
pub enum Fact {
    /// The run began. It is the first entry of every run
    Started(RunHeader),
    /// A process goes on with a run that rested, or whose process is gone
    Resumed,
    /// A person had a failed run go on. What models refused at the end of turns that are not completed is asked again
    Retried,
    /// From now on the run goes on with another revision of what it was loaded from
    Revised {
        /// The revision, which the store keeps
        digest: String,
    },
    /// What comes before it was committed in another run, which the header names; from here on the run is its own
    Forked,
    /// Something would have acted on the world outside, and the run may not do that. The turn goes no further
    Withheld {
        /// What it would have done, in a few words
        effect: String,
    },
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
    /// A turn, or something outside within it, failed. It is done again if the run goes on
    Failed {
        /// How many effects of this place came before; none for the turn itself
        number: Option<u32>,
        /// Why
        error: String,
        /// Who used what for it, apart from what entries of their own say
        account: Account,
    },
    /// An attempt at a turn failed, and another one follows
    Attempt {
        /// Which one, from 1
        attempt: u32,
        /// Why
        error: String,
        /// Who used what for it
        account: Account,
    },
    /// A node begins to wait for others, and no longer than until then
    TimerSet {
        /// The node
        node: String,
        /// When that ends
        at: SystemTime,
    },
    /// A node has waited as long as it may
    TimerFired {
        /// The node
        node: String,
    },
    /// A person was asked
    Asked {
        /// How many effects of this place came before
        number: u32,
        /// The question
        question: Question,
    },
    /// A person, or the system that a connector handed over to, answered
    Answered {
        /// The number of the question
        number: u32,
        /// The answer
        text: String,
    },
    /// A question had no answer when its time was over: what follows from that is for whoever asked
    Expired {
        /// The number of the question
        number: u32,
    },
    /// Nothing can go on before a question is answered
    Waiting,
    /// Somebody wants the run to rest when the nodes that run are done
    PauseAsked,
    /// The run rests because somebody wanted that, and goes on when somebody says so
    Paused,
    /// Somebody ended the run for good
    Cancelled,
    /// The run came to a cap after which it goes no further, and has not failed
    Stopped {
        /// Which one
        reason: String,
    },
    /// The run ended
    Ended {
        /// The result, or why there is none
        result: Result<String, String>,
        /// The node that failed, if one did
        node: Option<String>,
    },
}

impl Fact {
    /// About how many bytes it takes in a journal. Nothing is written out to find that.
    pub fn weight(&self) -> usize {
        let list = |texts: &[String]| texts.iter().map(|text| text.len() + FIXED).sum();
        FIXED
            + match self {
                Self::Started(header) => header.given.iter().map(|(key, value)| key.len() + weight(value)).sum(),
                Self::Completed(completed) => {
                    let writes: usize =
                        completed.writes.iter().map(|write| write.key.len() + weight(&write.value)).sum();
                    let texts = [&completed.output, &completed.failure].into_iter().flatten().map(String::len);
                    let next: usize = completed.next.as_deref().map_or(0, list);
                    writes + next + texts.sum::<usize>()
                }
                Self::Effect { subject, answer, .. } => subject.len() + weight(answer),
                Self::Failed { error, .. } | Self::Attempt { error, .. } => error.len(),
                Self::Asked { question, .. } => {
                    let more = [&question.context, &question.denial].into_iter().flatten().map(weight).sum::<usize>();
                    question.text.len() + list(&question.options) + list(&question.operator_ids) + more
                }
                Self::Answered { text, .. } => text.len(),
                Self::Stopped { reason } => reason.len(),
                Self::Withheld { effect } => effect.len(),
                Self::Ended { result: Ok(text) | Err(text), .. } => text.len(),
                Self::Resumed
                | Self::Forked
                | Self::Retried
                | Self::Revised { .. }
                | Self::TimerSet { .. }
                | Self::TimerFired { .. }
                | Self::Expired { .. }
                | Self::Waiting
                | Self::PauseAsked
                | Self::Paused
                | Self::Cancelled => 0,
            }
    }
}

/// What an entry takes beside its texts.
const FIXED: usize = 64;

/// A value that is larger than values may be weighs as much as the largest.
fn weight(value: &Value) -> usize {
    value.check_size().unwrap_or(MAX_SIZE)
}

/// A value written to a key of the state, before any reducer.
#[derive(Clone, Debug, PartialEq)]
pub struct Write {
    /// The key
    pub key: Key,
    /// The written value
    pub value: Value,
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
    /// What kind of failure that is, where the graph tells kinds apart
    pub failure_kind: Option<String>,
    /// Whether it went on to a node that the graph names for failures, rather than as if nothing had happened
    pub handled: bool,
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
    /// Who is asked, where that has a name of its own
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seat: Option<String>,
    /// Until when it waits for an answer; none for as long as it takes
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_time")]
    pub expires: Option<SystemTime>,
    /// Who may answer; empty for anybody. Whoever takes answers sees to it
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub operator_ids: Vec<String>,
    /// What else whoever shows or delivers the question has to know: an object
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<Value>,
    /// The capability that is asked for, if a call was denied one: an object. Whoever runs this answers with a word of
    /// [`Question::DECISIONS`], and nobody else
    #[serde(skip_serializing_if = "Option::is_none")]
    pub denial: Option<Value>,
}

impl Question {
    /// How a question for a capability is answered: grant it for this call, for the run, for this and all runs, or not.
    pub const DECISIONS: [&str; 4] = ["once", "run", "always", "refuse"];
}

/// A time as text (RFC 3339, in UTC).
fn as_time<S: Serializer>(time: &Option<SystemTime>, serializer: S) -> Result<S::Ok, S::Error> {
    let time = time.and_then(|time| jiff::Timestamp::try_from(time).ok());
    serializer.collect_str(&time.unwrap_or(jiff::Timestamp::MAX))
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
