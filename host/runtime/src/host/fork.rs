//! Forking runs, and copying them.

use hotcell_engine::{ForkRequest, RunError, RunReport, check_nobody_elsewhere, first_entries, mark_copied};
use hotcell_graph::Object;
use hotcell_journal::{Fact, RunHeader, RunId, RunRecord};

use super::{Host, HostError, RevisionChoice, Session};

impl Host {
    /// Starts a run with the first entries of another one, and drives it as far as it goes. It continues with the revision that the
    /// other run had at that entry, or with another one that those entries fit. The other run is not changed.
    ///
    /// # Errors
    /// When the run cannot be forked like this, or its entries do not fit the revision. Then nothing was started.
    pub async fn fork(
        &self,
        mut wanted: ForkRequest,
        revision: &RevisionChoice,
        session: Session,
    ) -> Result<RunReport, HostError> {
        let record = self.journal().find(&wanted.origin.run).await?;
        wanted.origin.run = record.id.to_string();
        let entries = first_entries(&**self.journal(), &record.id, wanted.origin.at).await?;
        let revised = entries.iter().rev().find_map(|copied| match &copied.entry.fact {
            Fact::Revised { digest } => Some(digest.clone()),
            _ => None,
        });
        drop(entries);
        let then = revised.or_else(|| record.header.kept.then(|| record.header.digest.clone()));
        let at_that_time = RunRecord { revision: then.clone(), ..record };
        let (agent, digest) = self.chosen(&at_that_time, revision).await?;
        if digest.is_none() && ![&agent.texts, agent.digest()].contains(&at_that_time.header.digest.as_str()) {
            return Err(HostError::Changed { run: at_that_time.id.to_string(), file: agent.file.clone() });
        }
        self.prepare(&agent, &session).await?;
        let moved = digest.filter(|digest| then.as_ref() != Some(digest));
        let engine = self.engine(&agent, &session);
        Ok(engine.fork(agent.graph.clone(), wanted, moved, session.cancel.clone()).await?)
    }

    /// Copies a run entry by entry into a thread; with values, as if its last node had written them, too. The copy has the status of
    /// the run, and is not in progress. It gets a new id unless one is given.
    ///
    /// # Errors
    /// When it waits for another system, its state does not take the values, its entries are damaged, or the journal fails.
    pub async fn copy(
        &self,
        record: &RunRecord,
        thread: &str,
        set: &Object,
        name: Option<&RunId>,
    ) -> Result<RunRecord, HostError> {
        let last = self.journal().last_entry(&record.id).await?;
        let mut copied = first_entries(&**self.journal(), &record.id, last).await?;
        if !record.status.is_final() {
            check_nobody_elsewhere(&copied).map_err(RunError::from)?;
        }
        if !set.is_empty() {
            let session = Session::unattended();
            let agent = self.going_on(record, &RevisionChoice::Own, &session).await?.agent;
            let engine = self.engine(&agent, &session);
            copied = engine.entries_with(&record.id, &agent.graph, copied, set).await?;
        }
        let mut given = record.header.given.clone();
        given.insert("thread", thread.into());
        given.remove("id");
        if let Some(name) = name {
            given.insert("id", name.as_str().into());
        }
        mark_copied(&mut given, copied.len());
        let header = RunHeader { given, ..record.header.clone() };
        let copy = self.journal().fork(&header, copied, Vec::new()).await?.run().clone();
        Ok(self.journal().find(copy.as_str()).await?)
    }
}
