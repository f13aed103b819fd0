//! Questions of runs, and their answers.

use hotcell_runtime::{CallbackError, Entry, Fact, HostError, OpenQuestion, Question, RunId, open_questions};

use super::Runs;
use crate::answerer::Answerer;
use crate::decisions::Given;
use crate::live::Hold;
use crate::once;
use crate::problem::Problem;

impl Runs {
    /// The questions of a run that wait for answers.
    pub(crate) async fn questions(&self, run: &RunId) -> Result<Vec<OpenQuestion>, Problem> {
        Ok(open_questions(&self.store().history(run).await?.whole()?))
    }

    /// Sends an answer to a run, which goes on if nobody works on it. Every answer that comes to this server comes through here, and
    /// whether they may give it is decided by [`Answerer::check`].
    ///
    /// # Errors
    /// When nobody asked that, it has an answer, or somebody else is asked.
    pub(crate) async fn answer(
        &self,
        run: &RunId,
        question: Option<&str>,
        text: &str,
        by: Answerer<'_>,
    ) -> Result<OpenQuestion, Problem> {
        // Whoever follows the run does not take it for one that rests any more.
        let mut goes_on = GoesOn::of(self, run);
        let answered = self.note_answer(run, question, text, by).await?;
        goes_on.is_sent = true;
        Ok(answered)
    }

    /// Answers several questions of a run, each by its id, and then goes on with it: a run that went on with the first one could rest again before
    /// it had the second, and whoever answered both would be told that it asks what they had answered.
    pub(crate) async fn answer_all(
        &self,
        run: &RunId,
        answers: &[(String, String)],
        by: Answerer<'_>,
    ) -> Result<(), Problem> {
        let mut goes_on = GoesOn::of(self, run);
        for (question, text) in answers {
            self.note_answer(run, Some(question), text, by).await?;
            // Whatever becomes of the others, this one counts.
            goes_on.is_sent = true;
        }
        goes_on.is_sent = true;
        Ok(())
    }

    /// Keeps an answer, with which nobody goes on yet.
    async fn note_answer(
        &self,
        run: &RunId,
        question: Option<&str>,
        text: &str,
        by: Answerer<'_>,
    ) -> Result<OpenQuestion, Problem> {
        // The request may have been carried out before its reply was lost. Then it answers nothing else that is open by now.
        let before = match once::is_repeat() {
            true => self.answered(run, question, text).await?,
            false => None,
        };
        match before {
            Some(answered) => {
                by.check(&answered.question, &self.groups)?;
                Ok(answered)
            }
            None => {
                // Of several answers that come at once, the one that counts is noted.
                let _alone = self.answers.lock(run).await;
                let (record, open) = self.host.open_question(run.as_str(), question).await?;
                by.check(&open.question, &self.groups)?;
                let attached = self.attachments.of_answer(text)?;
                self.attachments.give(&attached, (run.as_str(), record.thread()), self.clock().now())?;
                let about = (run.as_str(), open.question.id.as_str());
                let group = by.group(&open.question, &self.groups);
                let given = Given { caller: by.caller(), operator: by.name(), group: group.as_deref() };
                let number = self.decisions.decide(about, &record.header.source, given)?;
                if let Err(error) = self.host.answer_open(&record, &open, text).await {
                    self.decisions.forget_decision(number)?;
                    return Err(error.into());
                }
                Ok(open)
            }
        }
    }

    /// Whether a question of a run, or any of them, has this answer.
    pub(crate) async fn was_answered(&self, run: &RunId, question: Option<&str>, text: &str) -> Result<bool, Problem> {
        Ok(self.answered(run, question, text).await?.is_some())
    }

    /// The question that was answered so, the last one if several were.
    async fn answered(&self, run: &RunId, question: Option<&str>, text: &str) -> Result<Option<OpenQuestion>, Problem> {
        let record = self.store().find(run.as_str()).await?;
        // As the journal has it: sealed, where something is redacted in the run.
        let kept = self.host.kept_answer(&record, text).map_err(HostError::from)?;
        let entries = self.store().history(run).await?.whole()?;
        let id = |entry: &Entry, number: u32| format!("{}:{number}", entry.place);
        let answered = entries.iter().rev().find_map(|entry| match &entry.fact {
            Fact::Answered { number, text: given } if *given == kept => {
                Some(id(entry, *number)).filter(|answered| question.is_none_or(|question| question == answered))
            }
            _ => None,
        });
        let Some(answered) = answered else { return Ok(None) };
        Ok(entries.iter().find_map(|entry| match &entry.fact {
            Fact::Asked { number, question } if id(entry, *number) == answered => {
                let question = Question { id: answered.clone(), ..question.clone() };
                Some(OpenQuestion { place: entry.place.clone(), number: *number, question })
            }
            _ => None,
        }))
    }

    /// Sends what came by a callback to a run that waits for it, which goes on.
    pub(crate) async fn answer_callback(&self, run: &RunId, session: &str, body: &str) -> Result<(), CallbackError> {
        let mut goes_on = GoesOn::of(self, run);
        self.host.answer_callback(session, body).await?;
        goes_on.is_sent = true;
        Ok(())
    }
}

/// Goes on with a run when it is dropped, if something was sent to the run: also where whoever sends it is gone before all is sent.
struct GoesOn<'r> {
    runs: &'r Runs,
    hold: Option<Hold>,
    is_sent: bool,
}

impl<'r> GoesOn<'r> {
    fn of(runs: &'r Runs, run: &RunId) -> Self {
        GoesOn { runs, hold: Some(runs.in_hand.take(run)), is_sent: false }
    }
}

impl Drop for GoesOn<'_> {
    fn drop(&mut self) {
        if let Some(hold) = self.hold.take().filter(|_| self.is_sent) {
            self.runs.resume(hold);
        }
    }
}
