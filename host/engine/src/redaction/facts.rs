//! The values and texts of an entry, each replaced by something else.

use hotcell_graph::{Key, Object, Value};
use hotcell_journal::{CALLBACK, Completed, Entry, Fact, Question, Write};

/// What stands in the place of values and texts.
pub(super) trait Replace {
    /// In the place of a value, which belongs to a key of the state if one is given.
    fn value(&self, value: &Value, key: Option<&Key>) -> Value;

    /// In the place of what is kept of how a run was begun, in which nothing belongs to the state.
    fn origin(&self, value: &Value) -> Value;

    /// In the place of what something outside answered.
    fn answer(&self, value: &Value) -> Value;

    /// In the place of the session of a callback: nobody outside answered it, the run made it.
    fn session(&self, value: &Value) -> Value;

    /// In the place of what a person answered.
    fn heard(&self, text: &str) -> String;

    /// In the place of what an effect was done with: a name, and a digest.
    fn subject(&self, subject: &str) -> String;

    /// In the place of a text.
    fn text(&self, text: &str) -> String;

    /// In the place of a result, which may be JSON.
    fn result(&self, text: &str) -> String;
}

/// An entry with everything replaced that somebody may have put into it. Names of nodes, numbers and times stay.
pub(super) fn replaced(entry: Entry, by: &dyn Replace) -> Entry {
    let Entry { place, fact } = entry;
    let fact = match fact {
        Fact::Started(mut header) => {
            let given: Object = header.given.iter().map(|(key, value)| (key.clone(), given(key, value, by))).collect();
            header.given = given;
            Fact::Started(header)
        }
        Fact::Completed(completed) => Fact::Completed(Completed {
            writes: completed
                .writes
                .iter()
                .map(|write| Write { key: write.key.clone(), value: by.value(&write.value, Some(&write.key)) })
                .collect(),
            output: completed.output.as_deref().map(|output| by.result(output)),
            failure: completed.failure.as_deref().map(|failure| by.text(failure)),
            ..completed
        }),
        Fact::Effect { number, kind, subject, answer, account } => {
            let subject = by.subject(&subject);
            let answer = if kind == CALLBACK { by.session(&answer) } else { by.answer(&answer) };
            Fact::Effect { number, kind, subject, answer, account }
        }
        Fact::Failed { number, error, account } => Fact::Failed { number, error: by.text(&error), account },
        Fact::Attempt { attempt, error, account } => Fact::Attempt { attempt, error: by.text(&error), account },
        Fact::Asked { number, question } => Fact::Asked { number, question: question_replaced(question, by) },
        Fact::Answered { number, text } => Fact::Answered { number, text: by.heard(&text) },
        Fact::Withheld { effect } => Fact::Withheld { effect: by.text(&effect) },
        Fact::Stopped { reason } => Fact::Stopped { reason: by.text(&reason) },
        Fact::Ended { result, node } => {
            let result = result.map(|output| by.result(&output)).map_err(|error| by.text(&error));
            Fact::Ended { result, node }
        }
        other @ (Fact::Resumed
        | Fact::Forked
        | Fact::Retried
        | Fact::Revised { .. }
        | Fact::TimerSet { .. }
        | Fact::TimerFired { .. }
        | Fact::Expired { .. }
        | Fact::Waiting
        | Fact::PauseAsked
        | Fact::Paused
        | Fact::Cancelled) => other,
    };
    Entry { place, fact }
}

/// Whether what a run was given under this name has values of its state.
pub(super) fn is_of_state(name: &str) -> bool {
    !matches!(name, "thread" | "after" | "depth" | "origin" | "id" | "copied" | "fork")
}

/// Something that a run was given. By the thread and the run before it, a run is found.
fn given(key: &Key, value: &Value, by: &dyn Replace) -> Value {
    match &**key {
        "origin" => by.origin(value),
        "fork" => forked(value, by),
        name if is_of_state(name) => by.value(value, Some(key)),
        _ => value.clone(),
    }
}

/// What makes a run a fork, of which prompts are texts of people.
fn forked(fork: &Value, by: &dyn Replace) -> Value {
    let Some(fork) = fork.as_object() else { return fork.clone() };
    let part = |(name, value): (&Key, &Value)| match &**name {
        "prompts" => (name.clone(), by.value(value, None)),
        _ => (name.clone(), value.clone()),
    };
    Value::Object(fork.iter().map(part).collect())
}

/// A question with everything replaced that is shown of it.
pub(super) fn question_replaced(question: Question, by: &dyn Replace) -> Question {
    Question {
        text: by.text(&question.text),
        options: question.options.iter().map(|option| by.text(option)).collect(),
        default: question.default.as_deref().map(|default| by.text(default)),
        call: question.call.map(|mut call| {
            call.arguments = by.value(&call.arguments, None);
            call
        }),
        context: question.context.as_ref().map(|context| by.value(context, None)),
        denial: question.denial.as_ref().map(|denial| by.value(denial, None)),
        ..question
    }
}
