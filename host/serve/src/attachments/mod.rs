//! Attachments: documents that people look at when they are asked something, or answer with.
//!
//! A text refers to an attachment by its digest. So a reference is data like any other, and every language can take it from an input to
//! a question. Bytes, name and type are kept in the server's file. Agents, models and cells get the reference and nothing else.

mod kept;
mod reference;
mod unneeded;

use std::time::SystemTime;

use hotcell_graph::Object;
use hotcell_graph::value::MAX_SIZE;
use hotcell_runtime::{ForkRequest, Question, RunInput};
use tokio::sync::Notify;

pub(crate) use self::kept::{Attachment, Document, Kept, MOST_BYTES, MOST_KEPT, Said};
pub(crate) use self::reference::Digest;
use self::reference::{MOST, References};
use crate::problem::Problem;
use crate::store::{Store, StoreError};

/// Bytes of a question that are looked at: a list has many of them.
const LOOKED_AT: usize = 1 << 20;

/// The attachments of a server.
pub(crate) struct Attachments {
    store: Store,
    /// Told of each new one: while there are none, nobody looks which of them are needed
    added: Notify,
}

impl Attachments {
    pub(crate) fn new(store: Store) -> Self {
        Attachments { store, added: Notify::new() }
    }

    /// Keeps an attachment.
    pub(crate) fn keep(&self, digest: &Digest, said: &Said, bytes: &[u8], now: SystemTime) -> Result<Kept, StoreError> {
        let kept = self.store.keep_attachment(digest, said, bytes, now)?;
        self.added.notify_one();
        Ok(kept)
    }

    /// What an attachment is a download of.
    pub(crate) fn document(&self, digest: &Digest) -> Result<Option<Document>, StoreError> {
        self.store.attached_document(digest)
    }

    /// The attachments to which a question refers, as far as they are kept.
    pub(crate) fn shown_in(&self, question: &Question) -> Result<Vec<Attachment>, StoreError> {
        let mut references = References::within(LOOKED_AT);
        references.add_text(&question.text);
        if let Some(call) = &question.call {
            references.add_value(&call.arguments);
        }
        if let Some(context) = &question.context {
            references.add_value(context);
        }
        match references.found() {
            [] => Ok(Vec::new()),
            found => self.store.attachments(found),
        }
    }

    /// The attachments to which the input of a run refers.
    ///
    /// # Errors
    /// When one of them is not kept, or there are too many.
    pub(crate) fn of_input(&self, given: &RunInput) -> Result<Vec<Digest>, Problem> {
        let mut references = References::within(MAX_SIZE);
        references.add_text(given.input.as_deref().unwrap_or_default());
        given.variables.values().for_each(|value| references.add_value(value));
        given.state.iter().for_each(|(_, value)| references.add_value(value));
        self.checked(&references)
    }

    /// The attachments to which what distinguishes a fork refers; errors as above.
    pub(crate) fn of_fork(&self, wanted: &ForkRequest) -> Result<Vec<Digest>, Problem> {
        let mut references = References::within(MAX_SIZE);
        references.add_text(wanted.input.as_deref().unwrap_or_default());
        wanted.set.iter().for_each(|(_, value)| references.add_value(value));
        if let Some((_, answer)) = &wanted.answer {
            references.add_text(answer);
        }
        self.checked(&references)
    }

    /// The attachments to which values of a state refer; errors as above.
    pub(crate) fn of_state(&self, state: &Object) -> Result<Vec<Digest>, Problem> {
        let mut references = References::within(MAX_SIZE);
        state.iter().for_each(|(_, value)| references.add_value(value));
        self.checked(&references)
    }

    /// The attachments to which an answer refers; errors as above.
    pub(crate) fn of_answer(&self, answer: &str) -> Result<Vec<Digest>, Problem> {
        let mut references = References::within(MAX_SIZE);
        references.add_text(answer);
        self.checked(&references)
    }

    fn checked(&self, references: &References) -> Result<Vec<Digest>, Problem> {
        if references.are_too_many() {
            let detail = format!("it refers to more than {MOST} attachments");
            return Err(Problem::unprocessable(detail).with("limit", MOST));
        }
        let found = references.found();
        match found.is_empty() {
            true => Ok(Vec::new()),
            false => {
                self.store.missing_attachment(found)?.map_or_else(|| Ok(found.to_vec()), |digest| Err(unknown(&digest)))
            }
        }
    }

    /// Notes that a run, of a thread if it belongs to one, is given attachments. They are kept as long as the run. It is noted before the run
    /// has them: what is noted of a run that does not begin is forgotten after a while.
    ///
    /// # Errors
    /// When one of them is not kept any more.
    pub(crate) fn give(&self, digests: &[Digest], to: (&str, Option<&str>), now: SystemTime) -> Result<(), Problem> {
        if digests.is_empty() {
            return Ok(());
        }
        match self.store.give_attachments(digests, to, now)? {
            None => Ok(()),
            Some(digest) => Err(unknown(&digest)),
        }
    }

    /// The attachments that a run was given, or another run of its thread.
    pub(crate) fn given_to(&self, run: &str, thread: Option<&str>) -> Result<Vec<Digest>, StoreError> {
        self.store.attachments_given_to(run, thread)
    }

    /// Notes that a run begins with what others had that were given attachments.
    pub(crate) fn hand_on(
        &self,
        digests: &[Digest],
        to: (&str, Option<&str>),
        now: SystemTime,
    ) -> Result<(), StoreError> {
        match digests {
            [] => Ok(()),
            // One that is gone is missing there as well.
            digests => self.store.give_attachments(digests, to, now).map(drop),
        }
    }
}

/// Nobody sent such an attachment, or it is gone.
fn unknown(digest: &Digest) -> Problem {
    let reference = digest.reference();
    Problem::unprocessable(format!("there is no attachment `{reference}`; send it first, with `POST /attachments`"))
        .kind("unknown-attachment", "The attachment is unknown")
        .with("reference", reference)
}

#[cfg(test)]
mod tests {
    use hotcell_graph::Value;
    use hotcell_runtime::ClientCall;

    use super::*;

    #[test]
    fn a_question_shows_what_its_text_its_arguments_and_its_context_refer_to() {
        let attachments = Attachments::new(Store::open(None).expect("opened"));
        let keep = |bytes: &[u8]| {
            let said = Said { name: None, media_type: "text/plain".to_owned() };
            let digest = Digest::of(bytes);
            let kept = attachments.keep(&digest, &said, bytes, SystemTime::now()).expect("asked");
            let (Kept::New(attachment) | Kept::Before(attachment)) = kept else { panic!("there is room") };
            (digest.reference(), attachment)
        };
        let [(one, first), (two, second), (three, third)] = [keep(b"one"), keep(b"two"), keep(b"three")];
        let object = |name: &str, reference: &str| {
            Value::Object(
                [(name.into(), Value::List([Value::text(reference)].into_iter().collect()))].into_iter().collect(),
            )
        };
        let question = Question {
            text: format!("Do {one} and {} agree?", Digest::of(b"nobody sent this").reference()),
            call: Some(ClientCall { tool: "compare".to_owned(), arguments: object("with", &two) }),
            context: Some(object("since", &three)),
            ..Question::default()
        };
        assert_eq!(attachments.shown_in(&question).expect("read"), [first, second, third]);
        assert!(attachments.shown_in(&Question::default()).expect("read").is_empty());
        let long = Question { text: "x".repeat(LOOKED_AT) + &one, ..Question::default() };
        assert!(attachments.shown_in(&long).expect("read").is_empty());
    }
}
