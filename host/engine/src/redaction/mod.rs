//! Values of a run that leave it for no journal, event, picture or log.
//!
//! A graph names them ([`Redacted`]). Where they, or texts that contain them, would leave the run, `<REDACTED>` stands in their
//! place. In the journal it is a seal, which the run opens when it goes on: so it goes on with the values, and whoever has the journal
//! and not the key has none of them. Everything that something outside or a person answered, callbacks included, is sealed as a whole,
//! because it is committed before it is known where it will be written. So is every text that looks like a seal: only what the run sealed is opened.
//!
//! What a value is turned into (its digest, its letters backwards) is not recognized.

mod facts;
mod known;
mod seal;

use std::borrow::Cow;
use std::sync::{PoisonError, RwLock};

use hotcell_graph::ir::{Graph, Redacted};
use hotcell_graph::value::{parse_json, parse_kept_json};
use hotcell_graph::{Key, Object, State, Value};
use hotcell_journal::{Completed, Entry, Fact, History, NodeFailure, Question, RunHeader};

use facts::{Replace, is_of_state, question_replaced, replaced};
use known::Known;
use seal::{Held, Sealer, looks_sealed};

use crate::outcome::{Outcome, RunError};
use crate::ports::PortError;

pub use seal::{RedactionKey, without_seals};

/// What is shown in the place of a value.
const SHOWN: &str = "<REDACTED>";
/// The entry of what a run is given that says by what it is sealed: a seal of this very word.
const SEALED: &str = "redaction";

/// Whoever has the key with which redacted values are sealed in a journal.
pub trait RedactionKeys: Send + Sync {
    /// The key, always the same for a journal. It is asked for only where something is redacted.
    fn key(&self) -> Result<RedactionKey, PortError>;
}

fn sealer(keys: Option<&dyn RedactionKeys>) -> Result<Sealer, RunError> {
    let key = keys.ok_or_else(|| PortError::new("there is none")).and_then(RedactionKeys::key);
    Ok(Sealer::new(&key.map_err(RunError::NoRedactionKey)?))
}

/// What the journal keeps of an answer that somebody sends to a run which was begun with this.
///
/// # Errors
/// When something is redacted in the run, and its key is not there.
pub fn kept_answer(header: &RunHeader, keys: &dyn RedactionKeys, text: &str) -> Result<String, RunError> {
    let Some(sealed) = header.given.get(SEALED).and_then(Value::as_text) else { return Ok(text.to_owned()) };
    let sealer = sealer(Some(keys))?;
    match sealer.open_whole(sealed) {
        Some(_) => Ok(sealer.seal(Held::Text, text)),
        None => Err(RunError::OtherRedactionKey),
    }
}

/// What is redacted in a run.
pub(crate) struct Redaction {
    names: Redacted,
    sealer: Sealer,
    known: RwLock<Known>,
}

impl Redaction {
    /// That of a run that begins; none if its graph names nothing. The header then says that something is sealed.
    ///
    /// # Errors
    /// When there is no key.
    pub(crate) fn begin(
        graph: &Graph,
        keys: Option<&dyn RedactionKeys>,
        given: &mut Object,
    ) -> Result<Option<Self>, RunError> {
        if graph.redacted.is_empty() {
            return Ok(None);
        }
        let sealer = sealer(keys)?;
        given.insert(SEALED, sealer.seal(Held::Text, SEALED).into());
        let redaction = Redaction { names: graph.redacted.clone(), sealer, known: RwLock::default() };
        redaction.learn_graph(graph);
        redaction.learn_given(given);
        Ok(Some(redaction))
    }

    /// That of a run that goes on, or is looked at; none if nothing is sealed in it and its graph names nothing.
    ///
    /// # Errors
    /// When its values are sealed with another key.
    pub(crate) fn go_on(
        graph: &Graph,
        keys: Option<&dyn RedactionKeys>,
        header: &RunHeader,
    ) -> Result<Option<Self>, RunError> {
        let sealed = header.given.get(SEALED).and_then(Value::as_text);
        if sealed.is_none() && graph.redacted.is_empty() {
            return Ok(None);
        }
        let sealer = sealer(keys)?;
        if sealed.is_some_and(|sealed| sealer.open_whole(sealed).is_none()) {
            return Err(RunError::OtherRedactionKey);
        }
        let redaction = Redaction { names: graph.redacted.clone(), sealer, known: RwLock::default() };
        redaction.learn_graph(graph);
        Ok(Some(redaction))
    }

    /// Whether something is sealed in a run with this header.
    pub(crate) fn is_in(header: &RunHeader) -> bool {
        header.given.get(SEALED).is_some()
    }

    fn learn_graph(&self, graph: &Graph) {
        let state = graph.initial_state.iter().cloned().collect();
        self.learn(&Value::Object(state), &mut Vec::new());
    }

    /// Whether what a graph names within the run is redacted in it.
    pub(crate) fn covers(&self, graph: &Graph) -> bool {
        self.names.covers(&graph.redacted)
    }

    /// Notes what is redacted in what a run was given.
    fn learn_given(&self, given: &Object) {
        for (key, value) in given.iter().filter(|(key, _)| is_of_state(key)) {
            self.learn(value, &mut vec![key.clone()]);
        }
    }

    /// Notes what is redacted in a value at a place.
    fn learn(&self, value: &Value, place: &mut Vec<Key>) {
        if self.names.names(place) {
            self.known.write().unwrap_or_else(PoisonError::into_inner).add(value);
            return;
        }
        match value {
            Value::List(list) => list.iter().for_each(|item| self.learn(item, place)),
            Value::Object(object) => {
                for (key, item) in object.iter() {
                    place.push(key.clone());
                    self.learn(item, place);
                    place.pop();
                }
            }
            _ => {}
        }
    }

    /// Notes what is redacted in an entry.
    fn learn_entry(&self, entry: &Entry) {
        match &entry.fact {
            Fact::Started(header) => self.learn_given(&header.given),
            Fact::Completed(completed) => {
                for write in &completed.writes {
                    self.learn(&write.value, &mut vec![write.key.clone()]);
                }
            }
            Fact::Effect { answer, .. } => self.learn(answer, &mut Vec::new()),
            _ => {}
        }
    }

    /// What the journal keeps in the place of an entry.
    pub(crate) fn seal(&self, entry: Entry) -> Entry {
        self.learn_entry(&entry);
        let same = match &entry.fact {
            Fact::Completed(completed) => self.redacted_writes(completed),
            _ => Vec::new(),
        };
        replaced(entry, &Cover { redaction: self, same, seals: true })
    }

    /// What the journal keeps of what a run was given.
    pub(crate) fn seal_header(&self, header: &RunHeader) -> RunHeader {
        let mut sealed = header.clone();
        // What says by what it is sealed stays as it is.
        let says = sealed.given.remove(SEALED);
        if let Fact::Started(header) = self.seal(Entry::of_run(Fact::Started(sealed.clone()))).fact {
            sealed = header;
        }
        if let Some(says) = says {
            sealed.given.insert(SEALED, says);
        }
        sealed
    }

    /// The same of a run that begins with entries of another one, which may have been given something else.
    pub(crate) fn seal_changed_header(&self, mut header: RunHeader) -> RunHeader {
        header.given.insert(SEALED, self.sealer.seal(Held::Text, SEALED).into());
        self.seal_header(&header)
    }

    /// What the run wrote in the place of what the journal kept.
    pub(crate) fn open(&self, history: History) -> History {
        let entries = history.entries.into_iter().map(|entry| self.open_entry(entry)).collect();
        History { entries, ..history }
    }

    /// What somebody wrote in the place of what the journal kept.
    pub(crate) fn open_entry(&self, entry: Entry) -> Entry {
        let entry = replaced(entry, &Open(&self.sealer));
        self.learn_entry(&entry);
        entry
    }

    /// What the run was given in the place of what the journal kept.
    pub(crate) fn open_header(&self, header: RunHeader) -> RunHeader {
        match self.open_entry(Entry::of_run(Fact::Started(header.clone()))).fact {
            Fact::Started(header) => header,
            _ => header,
        }
    }

    /// The redacted values of what a turn wrote: the same may stand elsewhere in it, by another name.
    fn redacted_writes(&self, completed: &Completed) -> Vec<Value> {
        let is_named = |key: &Key| self.names.names(std::slice::from_ref(key));
        let named = completed.writes.iter().filter(|write| is_named(&write.key));
        named.map(|write| write.value.clone()).filter(|value| !matches!(value, Value::Null)).collect()
    }

    fn shown(&self) -> Cover<'_> {
        Cover { redaction: self, same: Vec::new(), seals: false }
    }

    /// A text as everybody may see it.
    pub(crate) fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known.replaced(text, |_| SHOWN.to_owned()).map_or(Cow::Borrowed(text), Cow::Owned)
    }

    /// A state as everybody may see it.
    pub(crate) fn object(&self, object: &Object) -> Object {
        match self.shown().value(&Value::Object(object.clone()), None) {
            Value::Object(object) => object,
            _ => Object::default(),
        }
    }

    /// A state as everybody may see it.
    pub(crate) fn state(&self, state: &State) -> State {
        State::from_object(&self.object(&state.to_object()))
    }

    /// A question as everybody may see it.
    pub(crate) fn question(&self, question: &Question) -> Question {
        question_replaced(question.clone(), &self.shown())
    }

    /// A result as everybody may see it.
    pub(crate) fn result(&self, text: &str) -> String {
        self.shown().result(text)
    }

    /// How a run stands, as everybody may see it.
    pub(crate) fn outcome(&self, outcome: Outcome) -> Outcome {
        match outcome {
            Outcome::Completed { output } => Outcome::Completed { output: self.result(&output) },
            Outcome::Failed { node, error } => Outcome::Failed { node, error: self.text(&error).into_owned() },
            Outcome::Stopped { reason } => Outcome::Stopped { reason: self.text(&reason).into_owned() },
            Outcome::Waiting { questions } => {
                Outcome::Waiting { questions: questions.iter().map(|question| self.question(question)).collect() }
            }
            other @ (Outcome::Interrupted | Outcome::Paused | Outcome::Cancelled) => other,
        }
    }

    /// Failures as everybody may see them.
    pub(crate) fn failures(&self, failures: &[NodeFailure]) -> Vec<NodeFailure> {
        let shown =
            |failure: &NodeFailure| NodeFailure { error: self.text(&failure.error).into_owned(), ..failure.clone() };
        failures.iter().map(shown).collect()
    }
}

/// Puts seals, or what is shown, in the place of redacted values.
struct Cover<'r> {
    redaction: &'r Redaction,
    /// Values that are redacted wherever they stand
    same: Vec<Value>,
    seals: bool,
}

impl Cover<'_> {
    fn whole(&self, value: &Value) -> Value {
        match (self.seals, value) {
            (false, _) => SHOWN.into(),
            (true, Value::Text(text)) => self.redaction.sealer.seal(Held::Text, text).into(),
            (true, other) => self.redaction.sealer.seal(Held::Json, &other.to_json()).into(),
        }
    }

    fn piece(&self, text: &str) -> Option<String> {
        // Whoever has seen a seal could write it into a text, to have it opened there.
        if self.seals && looks_sealed(text) {
            return Some(self.redaction.sealer.seal(Held::Text, text));
        }
        let known = self.redaction.known.read().unwrap_or_else(PoisonError::into_inner);
        known.replaced(text, |found| match self.seals {
            true => self.redaction.sealer.seal(Held::Text, found),
            false => SHOWN.to_owned(),
        })
    }

    /// A value in which texts are replaced, whatever they are called.
    fn pieces(&self, value: &Value) -> Value {
        match value {
            Value::Text(text) => self.piece(text).map_or_else(|| value.clone(), Value::text),
            Value::List(list) => Value::List(list.iter().map(|item| self.pieces(item)).collect()),
            Value::Object(object) => {
                Value::Object(object.iter().map(|(key, item)| (key.clone(), self.pieces(item))).collect())
            }
            other => other.clone(),
        }
    }

    fn is_known(&self, number: &Value) -> bool {
        self.redaction.known.read().unwrap_or_else(PoisonError::into_inner).is_known(number)
    }

    fn at(&self, value: &Value, place: &mut Vec<Key>) -> Value {
        if matches!(value, Value::Null) {
            return Value::Null;
        }
        if self.redaction.names.names(place) || self.same.contains(value) {
            return self.whole(value);
        }
        match value {
            Value::Text(text) => self.piece(text).map_or_else(|| value.clone(), Value::text),
            Value::Number(_) if self.is_known(value) => self.whole(value),
            Value::List(list) => Value::List(list.iter().map(|item| self.at(item, place)).collect()),
            Value::Object(object) => {
                let covered = object.iter().map(|(key, item)| {
                    place.push(key.clone());
                    let item = self.at(item, place);
                    place.pop();
                    (key.clone(), item)
                });
                Value::Object(covered.collect())
            }
            other => other.clone(),
        }
    }
}

impl Replace for Cover<'_> {
    fn value(&self, value: &Value, key: Option<&Key>) -> Value {
        self.at(value, &mut key.cloned().into_iter().collect())
    }

    fn origin(&self, value: &Value) -> Value {
        self.pieces(value)
    }

    fn answer(&self, value: &Value) -> Value {
        self.whole(value)
    }

    fn session(&self, value: &Value) -> Value {
        // By it the run is found when its callback comes, by whoever takes callbacks.
        value.clone()
    }

    fn heard(&self, text: &str) -> String {
        match self.seals {
            true => self.redaction.sealer.seal(Held::Text, text),
            false => SHOWN.to_owned(),
        }
    }

    fn subject(&self, subject: &str) -> String {
        match subject.rsplit_once(' ') {
            // Of something short, whoever tries all that it may be finds what has this digest.
            Some((name, digest)) if self.seals => {
                format!("{} {}", self.text(name), self.redaction.sealer.seal(Held::Text, digest))
            }
            _ => self.text(subject),
        }
    }

    fn text(&self, text: &str) -> String {
        self.piece(text).unwrap_or_else(|| text.to_owned())
    }

    fn result(&self, text: &str) -> String {
        // Also where it is the name of a value.
        if self.seals && looks_sealed(text) {
            return self.text(text);
        }
        let value = text.starts_with(['{', '[']).then(|| parse_json(text).ok()).flatten();
        let Some(value) = value else { return self.text(text) };
        let covered = self.value(&value, None);
        match (covered == value, self.seals) {
            (true, _) => text.to_owned(),
            // So that it is the same to the last space when it is opened.
            (false, true) => self.redaction.sealer.seal(Held::Text, text),
            (false, false) => covered.to_json(),
        }
    }
}

/// Puts what seals hold in their place.
struct Open<'s>(&'s Sealer);

impl Replace for Open<'_> {
    fn value(&self, value: &Value, _: Option<&Key>) -> Value {
        match value {
            Value::Text(text) => match self.0.open_whole(text) {
                Some((Held::Json, json)) => parse_kept_json(&json).unwrap_or_else(|_| value.clone()),
                Some((Held::Text, held)) => Value::text(held),
                None => Value::text(self.0.open_within(text)),
            },
            Value::List(list) => Value::List(list.iter().map(|item| self.value(item, None)).collect()),
            Value::Object(object) => {
                Value::Object(object.iter().map(|(key, item)| (key.clone(), self.value(item, None))).collect())
            }
            other => other.clone(),
        }
    }

    fn origin(&self, value: &Value) -> Value {
        self.value(value, None)
    }

    fn answer(&self, value: &Value) -> Value {
        self.value(value, None)
    }

    fn session(&self, value: &Value) -> Value {
        self.value(value, None)
    }

    fn heard(&self, text: &str) -> String {
        self.0.open_within(text)
    }

    fn subject(&self, subject: &str) -> String {
        self.0.open_within(subject)
    }

    fn text(&self, text: &str) -> String {
        self.0.open_within(text)
    }

    fn result(&self, text: &str) -> String {
        self.0.open_within(text)
    }
}
