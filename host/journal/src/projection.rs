//! What the entries of a run say: how it stands, what it asks.

use std::fmt;
use std::time::SystemTime;

use serde::{Serialize, Serializer};

use crate::entry::{Completed, Entry, Fact, Question};
use crate::ids::EntryPath;

/// The kind of the effect that holds the session of a callback.
pub const CALLBACK: &str = "callback";

/// How a run stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RunStatus {
    /// A process works on it
    Running,
    /// The process that worked on it stopped or is gone; it can be resumed
    Interrupted,
    /// It waits for a person
    Waiting,
    /// A person stopped it for now; it goes on when somebody resumes it
    Paused,
    /// It ended with a result
    Completed,
    /// It stopped with an error
    Failed,
    /// It came to a cap after which it goes no further
    Stopped,
    /// A person stopped it for good
    Cancelled,
}

impl RunStatus {
    /// Every status.
    pub const ALL: [Self; 8] = [
        Self::Running,
        Self::Interrupted,
        Self::Waiting,
        Self::Paused,
        Self::Completed,
        Self::Failed,
        Self::Stopped,
        Self::Cancelled,
    ];

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            RunStatus::Running => "running",
            RunStatus::Interrupted => "interrupted",
            RunStatus::Waiting => "waiting",
            RunStatus::Paused => "paused",
            RunStatus::Completed => "completed",
            RunStatus::Failed => "failed",
            RunStatus::Stopped => "stopped",
            RunStatus::Cancelled => "cancelled",
        }
    }

    /// The status of that word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == word)
    }

    /// Whether a run that nobody works on goes on when something comes that it waits for; otherwise it has ended, or somebody has to
    /// resume it.
    pub(crate) fn goes_on_by_itself(self) -> bool {
        !self.is_final() && self != RunStatus::Paused
    }

    /// Whether nothing more can happen to the run.
    pub fn is_final(self) -> bool {
        matches!(self, RunStatus::Completed | RunStatus::Failed | RunStatus::Stopped | RunStatus::Cancelled)
    }
}

impl fmt::Display for RunStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Fact {
    /// How a run stands after this, if that changes.
    pub fn status(&self) -> Option<RunStatus> {
        Some(match self {
            Fact::Started(_) | Fact::Forked | Fact::Resumed | Fact::Retried => RunStatus::Running,
            Fact::Waiting => RunStatus::Waiting,
            Fact::Paused => RunStatus::Paused,
            Fact::Cancelled => RunStatus::Cancelled,
            Fact::Stopped { .. } => RunStatus::Stopped,
            Fact::Ended { result: Ok(_), .. } => RunStatus::Completed,
            Fact::Ended { result: Err(_), .. } => RunStatus::Failed,
            Fact::Completed(_) | Fact::Effect { .. } | Fact::Failed { .. } | Fact::Attempt { .. } => return None,
            Fact::TimerSet { .. } | Fact::TimerFired { .. } | Fact::Revised { .. } => return None,
            Fact::Withheld { .. } => return None,
            Fact::PauseAsked | Fact::Asked { .. } | Fact::Answered { .. } | Fact::Expired { .. } => return None,
        })
    }

    /// What it says about a time that comes: its name at the place of the entry, and when, or that it need not be waited for
    /// any more.
    pub(crate) fn timer(&self) -> Option<(String, Option<SystemTime>)> {
        // No node has such a name.
        let of_question = |number: &u32| format!("?{number}");
        Some(match self {
            Fact::TimerSet { node, at } => (node.clone(), Some(*at)),
            Fact::TimerFired { node } => (node.clone(), None),
            Fact::Asked { number, question } => (of_question(number), Some(question.expires?)),
            Fact::Answered { number, .. } | Fact::Expired { number } => (of_question(number), None),
            _ => return None,
        })
    }

    /// Whether whoever works on the run rests after this.
    pub fn is_rest(&self) -> bool {
        matches!(self, Fact::Waiting | Fact::Paused | Fact::Cancelled | Fact::Stopped { .. } | Fact::Ended { .. })
    }

    /// The result or the error that a run ended with.
    pub(crate) fn outcome(&self) -> Option<&str> {
        match self {
            Fact::Ended { result: Ok(text) | Err(text), .. } | Fact::Stopped { reason: text } => Some(text),
            _ => None,
        }
    }
}

/// A question of a run that has no answer yet.
#[derive(Clone, Debug, PartialEq)]
pub struct OpenQuestion {
    /// Where it was asked
    pub place: EntryPath,
    /// Its number there
    pub number: u32,
    /// The question
    pub question: Question,
}

/// The questions among `entries` that wait for an answer: whose time is not over, and whose turn is not done. Those of the oldest turn first. Parts of a turn that run side by
/// side are in the order of their places, whichever of them asked first.
pub fn open_questions(entries: &[Entry]) -> Vec<OpenQuestion> {
    let mut asking = Asking::default();
    entries.iter().for_each(|entry| asking.add(entry));
    asking.open()
}

/// The [`open_questions`] of a run whose entries are read one after the other, so that no more of them than the questions is kept.
#[derive(Debug, Default)]
pub struct Asking(Vec<OpenQuestion>);

impl Asking {
    /// The next entry.
    pub fn add(&mut self, entry: &Entry) {
        let Asking(open) = self;
        match &entry.fact {
            Fact::Asked { number, question } => {
                let question = Question { id: format!("{}:{number}", entry.place), ..question.clone() };
                open.push(OpenQuestion { place: entry.place.clone(), number: *number, question });
            }
            Fact::Answered { number, .. } | Fact::Expired { number } => {
                open.retain(|asked| asked.place != entry.place || asked.number != *number);
            }
            Fact::Completed(_) if entry.place.around().is_none() => {
                open.retain(|asked| asked.place.turn() != entry.place.turn());
            }
            _ => {}
        }
    }

    /// What waits for an answer after the entries so far.
    pub fn open(self) -> Vec<OpenQuestion> {
        let Asking(mut open) = self;
        let mut turns: Vec<Option<u64>> = Vec::new();
        for asked in &open {
            if !turns.contains(&asked.place.turn()) {
                turns.push(asked.place.turn());
            }
        }
        open.sort_by_cached_key(|asked| {
            let turn = turns.iter().position(|turn| *turn == asked.place.turn());
            (turn, asked.place.order(), asked.number)
        });
        open
    }
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
    /// It did not come in time
    Expired,
}

/// How a run with these entries stands with the callback of that session.
pub fn callback_state(entries: &[Entry], session: &str) -> CallbackState {
    let Some(begun) = entries.iter().find(|entry| begins(entry, session)) else { return CallbackState::Unknown };
    let at_place = |entry: &Entry| entry.place == begun.place;
    if let Some(open) = open_questions(entries).into_iter().find(|open| open.place == begun.place) {
        return CallbackState::Open(Box::new(open));
    }
    if entries.iter().any(|entry| at_place(entry) && matches!(entry.fact, Fact::Expired { .. })) {
        return CallbackState::Expired;
    }
    let is_about_it = |fact: &Fact| !matches!(fact, Fact::Effect { .. } | Fact::Failed { .. });
    match entries.iter().any(|entry| at_place(entry) && is_about_it(&entry.fact)) {
        true => CallbackState::Answered,
        false => CallbackState::Early,
    }
}

impl Question {
    /// In whose name a callback is waited for, if nobody is asked and one is.
    pub fn callback(&self) -> Option<&str> {
        self.context.as_ref()?.as_object()?.get(CALLBACK)?.as_text()
    }

    /// Whether it is for whoever uses the agent: not for another system, which answers by a callback, and not for whoever runs this.
    pub fn is_for_users(&self) -> bool {
        self.callback().is_none() && self.denial.is_none()
    }
}

/// The name in which the callback of that session is waited for, or was; none if the run has none, or does not wait yet.
pub fn callback_of(entries: &[Entry], session: &str) -> Option<String> {
    let begun = entries.iter().find(|entry| begins(entry, session))?;
    entries.iter().find_map(|entry| match &entry.fact {
        Fact::Asked { question, .. } if entry.place == begun.place => question.callback().map(str::to_owned),
        _ => None,
    })
}

/// Whether an entry is the beginning of a session.
fn begins(entry: &Entry, session: &str) -> bool {
    matches!(&entry.fact, Fact::Effect { kind, answer, .. }
        if kind == CALLBACK && answer.as_text().is_some_and(|known| is_same(known, session)))
}

/// A node that failed and after which its run went on.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NodeFailure {
    /// The turn, which says where the node is when it is one of an agent that the run called
    #[serde(serialize_with = "as_text")]
    pub turn: EntryPath,
    /// The node's id
    pub node: String,
    /// Why it failed
    pub error: String,
    /// What kind of failure it is, where the graph tells kinds apart
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Whether the run went on with the node that the graph names for that. If not, it went on as if nothing had happened
    pub handled: bool,
}

impl NodeFailure {
    /// The failure of a turn, if it failed.
    pub fn of(turn: &EntryPath, completed: &Completed) -> Option<Self> {
        let error = completed.failure.clone()?;
        let (kind, handled) = (completed.failure_kind.clone(), completed.handled);
        Some(NodeFailure { turn: turn.clone(), node: completed.node.clone(), error, kind, handled })
    }
}

fn as_text<S: Serializer>(turn: &EntryPath, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(turn.as_str())
}

/// The nodes that failed and after which the run went on, in their order.
pub fn failures(entries: &[Entry]) -> Vec<NodeFailure> {
    let failure = |entry: &Entry| match &entry.fact {
        Fact::Completed(completed) => NodeFailure::of(&entry.place, completed),
        _ => None,
    };
    entries.iter().filter_map(failure).collect()
}

/// Whether what was sent to a run since it last rested answers a callback.
pub fn callback_arrived(entries: &[Entry]) -> bool {
    let since =
        entries.iter().rposition(|entry| !matches!(entry.fact, Fact::Answered { .. })).map_or(0, |last| last + 1);
    entries[since..].iter().any(|answered| {
        let is_session = |entry: &Entry| matches!(&entry.fact, Fact::Effect { kind, .. } if kind == CALLBACK);
        entries.iter().any(|entry| entry.place == answered.place && is_session(entry))
    })
}

/// Whether two texts are the same, in a time that does not say where they differ.
fn is_same(one: &str, other: &str) -> bool {
    let differs = one.bytes().zip(other.bytes()).fold(0, |sum, (one, other)| sum | (one ^ other));
    one.len() == other.len() && std::hint::black_box(differs) == 0
}

#[cfg(test)]
mod tests {
    use super::{CALLBACK, callback_arrived, open_questions};
    use crate::{Completed, Entry, EntryPath, Fact, Question};

    #[test]
    fn open_questions_of_a_turn_are_in_the_order_of_its_parts() {
        let asked = |place: &str, number| Entry {
            place: EntryPath::from(place.to_owned()),
            fact: Fact::Asked { number, question: Question::default() },
        };
        let entries = [
            asked("7.call0.10", 0),
            asked("3", 0),
            asked("7.call0.2", 1),
            asked("7.call0.2", 0),
            asked("12", 0),
            Entry { place: EntryPath::of_turn(3), fact: Fact::Answered { number: 0, text: String::new() } },
        ];
        let open: Vec<(String, u32)> =
            open_questions(&entries).into_iter().map(|open| (open.place.to_string(), open.number)).collect();
        let open: Vec<(&str, u32)> = open.iter().map(|(place, number)| (place.as_str(), *number)).collect();
        assert_eq!(open, [("7.call0.2", 0), ("7.call0.2", 1), ("7.call0.10", 0), ("12", 0)]);
    }

    #[test]
    fn what_expired_and_what_belongs_to_a_turn_that_is_done_is_not_open() {
        let asked = |turn, number| Entry {
            place: EntryPath::of_turn(turn),
            fact: Fact::Asked { number, question: Question::default() },
        };
        let at = |turn, fact| Entry { place: EntryPath::of_turn(turn), fact };
        let done = Completed {
            node: "a".to_owned(),
            writes: Vec::new(),
            next: None,
            output: None,
            failure: Some("no".to_owned()),
            failure_kind: None,
            handled: false,
            elapsed: Default::default(),
            account: Default::default(),
        };
        let entries = [
            asked(1, 0),
            asked(2, 0),
            asked(2, 1),
            asked(3, 0),
            at(2, Fact::Expired { number: 0 }),
            at(3, Fact::Completed(done)),
        ];
        let open = open_questions(&entries);
        let ids: Vec<&str> = open.iter().map(|open| open.question.id.as_str()).collect();
        assert_eq!(ids, ["1:0", "2:1"]);
    }

    #[test]
    fn a_callback_has_arrived_when_it_was_sent_since_the_run_rested() {
        let at = |turn, fact| Entry { place: EntryPath::of_turn(turn), fact };
        let session = Fact::Effect {
            number: 0,
            kind: CALLBACK.to_owned(),
            subject: String::new(),
            answer: "run.token".into(),
            account: Default::default(),
        };
        let answered = |number| Fact::Answered { number, text: "{}".to_owned() };
        let mut entries = vec![at(1, session), Entry::of_run(Fact::Waiting)];
        assert!(!callback_arrived(&entries));
        entries.push(at(2, answered(0)));
        assert!(!callback_arrived(&entries), "a person answered something else");
        entries.push(at(1, answered(1)));
        assert!(callback_arrived(&entries));
        entries.push(Entry::of_run(Fact::Resumed));
        assert!(!callback_arrived(&entries), "somebody went on with it");
    }
}
