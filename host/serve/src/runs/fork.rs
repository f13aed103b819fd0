//! Forks of runs.

use hotcell_graph::Object;
use hotcell_runtime::{EntryPath, ForkRequest, RevisionChoice, RunId, RunRecord, RunStatus, withheld};

use super::begin::Beginning;
use super::{Runs, about};
use crate::live::Begun;
use crate::once;
use crate::problem::Problem;
use crate::view::WithheldView;

impl Runs {
    /// Begins a fork of a run. It is in the journal when this returns. It counts as every run does that begins.
    pub(crate) async fn fork(
        &self,
        source: &RunRecord,
        mut wanted: ForkRequest,
        revision: RevisionChoice,
    ) -> Result<Begun, Problem> {
        let name = once::take_name();
        if let Some(begun) = self.begun_before(name.as_ref()).await? {
            return Ok(begun);
        }
        wanted.id = name.map(|name| name.to_string());
        let (attached, had) =
            (self.attachments.of_fork(&wanted)?, self.attachments.given_to(source.id.as_str(), source.thread())?);
        if !(attached.is_empty() && had.is_empty()) {
            let (name, now) = (wanted.id.get_or_insert_with(|| RunId::random().to_string()), self.clock().now());
            self.attachments.hand_on(&had, (name.as_str(), None), now)?;
            self.attachments.give(&attached, (name.as_str(), None), now)?;
        }
        let about = about(&self.agents, &source.header.source, None);
        // Nothing of it is told to others: that would be an act on the world outside.
        let beginning = Beginning { place: self.place()?, about, told: None, listens: false };
        self.begin(beginning, |host, session| async move { host.fork(wanted, &revision, session).await }).await
    }

    /// Copies the last run of a thread into a thread, with these values in its state.
    pub(crate) async fn copy(&self, run: &RunId, thread: &str, into: &str, set: &Object) -> Result<RunRecord, Problem> {
        // Nothing may be begun in the thread in between.
        let _begins = self.threads.lock(&thread.to_owned()).await;
        let record = self.find(run.as_str()).await?;
        let last = self.store().last_of_thread(&record.header.source, thread).await?.map(|last| last.id);
        if last.as_ref() != Some(run) || matches!(record.status, RunStatus::Running | RunStatus::Interrupted) {
            return Err(Problem::thread_busy(thread, run));
        }
        let attached = self.attachments.of_state(set)?;
        let mut name = if into == thread { once::take_name() } else { None };
        if let Some(copied) = self.begun_before(name.as_ref()).await? {
            return self.find(copied.run.as_str()).await;
        }
        // A request that is made again has copied it already.
        let copied = self.store().last_of_thread(&record.header.source, into).await?;
        match copied.filter(|_| into != thread) {
            Some(copied) => Ok(copied),
            None => {
                let had = self.attachments.given_to(run.as_str(), Some(thread))?;
                if !(attached.is_empty() && had.is_empty()) {
                    let (name, now) = (name.get_or_insert_with(RunId::random), self.clock().now());
                    self.attachments.hand_on(&had, (name.as_str(), Some(into)), now)?;
                    self.attachments.give(&attached, (name.as_str(), Some(into)), now)?;
                }
                Ok(self.host.copy(&record, into, set, name.as_ref()).await?)
            }
        }
    }

    /// What a fork would have done to the world outside, and was not let.
    pub(crate) async fn withheld(&self, run: &RunId) -> Result<Vec<WithheldView>, Problem> {
        let entries = self.store().history(run).await?.whole()?;
        let view =
            |(place, effect): (&EntryPath, &str)| WithheldView { place: place.to_string(), effect: effect.to_owned() };
        Ok(withheld(&entries).map(view).collect())
    }
}
