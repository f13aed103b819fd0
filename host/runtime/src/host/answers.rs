//! Answering what runs ask.

use hotcell_engine::{RunError, kept_answer};
use hotcell_journal::{Entry, Fact, JournalError, OpenQuestion, Question, RunId, RunRecord, open_questions};

use super::{Host, HostError};

impl Host {
    /// Answers an open question of a run: the one with this id, or the only one. A run in progress takes the answer at once; any
    /// other continues when it is resumed.
    ///
    /// # Errors
    /// Those of [`Host::open_question`] and [`Host::answer_open`]; and for a question that asks for a capability.
    pub async fn answer(&self, run: &str, question: Option<&str>, text: &str) -> Result<OpenQuestion, HostError> {
        let (record, open) = self.open_question(run, question).await?;
        if open.question.denial.is_some() {
            return Err(HostError::OperatorOnly { run: record.id.to_string(), question: open.question.id });
        }
        self.answer_open(&record, &open, text).await?;
        Ok(open)
    }

    /// The same for the operator, who can also grant a denied capability, or refuse it
    /// ([`Question::DECISIONS`](hotcell_journal::Question::DECISIONS)).
    ///
    /// # Errors
    /// Those of [`Host::open_question`] and [`Host::answer_open`].
    pub async fn answer_as_operator(
        &self,
        run: &str,
        question: Option<&str>,
        text: &str,
    ) -> Result<OpenQuestion, HostError> {
        let (record, open) = self.open_question(run, question).await?;
        self.answer_open(&record, &open, text).await?;
        Ok(open)
    }

    /// The open question of a run that an answer is for: the one with this id, or the only one. A program with several users checks
    /// here whether a person may answer it, and then answers it with [`Host::answer_open`].
    ///
    /// # Errors
    /// [`JournalError::Expired`] for a question that has expired, [`JournalError::NotAsked`] for one that is answered, and other
    /// errors for a run that asks nothing, or something else.
    pub async fn open_question(
        &self,
        run: &str,
        question: Option<&str>,
    ) -> Result<(RunRecord, OpenQuestion), HostError> {
        let record = self.0.journal.find(run).await?;
        let nothing = || HostError::NothingAsked { run: record.id.to_string(), status: record.status };
        let entries = self.0.journal.history(&record.id).await?.whole()?;
        if let Some(closed) = question.and_then(|question| why_closed(&record.id, &entries, question)) {
            return Err(closed.into());
        }
        if record.status.is_final() {
            return Err(nothing());
        }
        let mut questions = open_questions(&entries);
        if questions.is_empty() {
            return Err(nothing());
        }
        let found = match question {
            Some(id) => questions.iter().position(|open| open.question.id == id),
            None if questions.len() == 1 => Some(0),
            None => None,
        };
        let Some(place) = found else {
            return Err(HostError::WhichQuestion {
                run: record.id.to_string(),
                named: question.map(str::to_owned),
                open: questions.into_iter().map(|open| open.question).collect(),
            });
        };
        let open = questions.swap_remove(place);
        // Whoever goes on with the run will find the same.
        if open.question.expires.is_some_and(|expires| expires <= self.clock().now()) {
            return Err(JournalError::Expired { run: record.id, question: open.question.id }.into());
        }
        Ok((record, open))
    }

    /// Answers a question of a run that was open a moment ago. A run in progress takes the answer at once; any other continues when
    /// it is resumed.
    ///
    /// # Errors
    /// As [`Host::open_question`], if somebody else was faster; when the run redacts values and its key is missing; and when the
    /// answer to a question about a capability is not a valid decision.
    pub async fn answer_open(&self, run: &RunRecord, open: &OpenQuestion, text: &str) -> Result<(), HostError> {
        if open.question.denial.is_some() && !Question::DECISIONS.contains(&text.trim()) {
            return Err(HostError::NoDecision { run: run.id.to_string(), question: open.question.id.clone() });
        }
        let fact = Fact::Answered { number: open.number, text: self.kept_answer(run, text)? };
        Ok(self.0.journal.send(&run.id, Entry { place: open.place.clone(), fact }).await?)
    }

    /// An answer to a run as the journal stores it: the text itself, or the sealed text if the run redacts values. The same text is
    /// always stored in the same way.
    ///
    /// # Errors
    /// When the run redacts values and its key is missing.
    pub fn kept_answer(&self, run: &RunRecord, text: &str) -> Result<String, RunError> {
        kept_answer(&run.header, &*self.0.redaction_key, text)
    }
}

/// Why the question of that id takes no answer, if it was put and does not.
fn why_closed(run: &RunId, entries: &[Entry], question: &str) -> Option<JournalError> {
    let (run, id) = (run.clone(), question.to_owned());
    entries.iter().find_map(|entry| match &entry.fact {
        Fact::Answered { number, .. } if format!("{}:{number}", entry.place) == question => {
            Some(JournalError::NotAsked { run: run.clone(), question: id.clone(), why: "has an answer already" })
        }
        Fact::Expired { number } if format!("{}:{number}", entry.place) == question => {
            Some(JournalError::Expired { run: run.clone(), question: id.clone() })
        }
        _ => None,
    })
}
