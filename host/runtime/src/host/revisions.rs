//! With what a run goes on: the revision that it began with, or what the files say now.

use hotcell_engine::{Event, RunError};
use hotcell_graph::diagnostic::Diagnostic;
use hotcell_journal::{Fact, RunRecord};

use super::{Host, HostError, Session};
use crate::agent::{Agent, LoadFailure};
use crate::context::LoadContext;
use crate::load;
use crate::revision::RevisionError;
use crate::revision::changes::changes;
use crate::revision::kept::kept;

/// The revision that a run continues with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum RevisionChoice {
    /// The one that it started with, or was last moved to
    #[default]
    Own,
    /// The current files, if the committed entries fit them
    Current,
    /// One of its earlier revisions, by digest or a prefix of it
    Digest(String),
}

/// What a run goes on with.
pub(super) struct GoingOn {
    pub(super) agent: Agent,
    /// The revision that it is moved to
    pub(super) moved: Option<String>,
}

impl Host {
    /// Stores the files that an agent was loaded from, so that runs can start with them.
    ///
    /// # Errors
    /// When a component has changed since it was loaded, or the journal fails.
    pub(crate) async fn keep(&self, agent: &Agent) -> Result<(), HostError> {
        let Some(revision) = agent.revision.clone() else { return Ok(()) };
        let has_components = !revision.manifest.components().is_empty();
        let collected = match has_components {
            false => revision.collect()?,
            // They are read, which may be many megabytes.
            true => {
                let collected = self.context().connections().blocking(move || revision.collect()).await;
                collected.map_err(|reason| RevisionError::Unread(reason.to_string()))??
            }
        };
        Ok(self.0.journal.keep(&collected).await?)
    }

    /// What a run goes on with, which is told to the session where it is not simply what the files say.
    pub(super) async fn going_on(
        &self,
        record: &RunRecord,
        choice: &RevisionChoice,
        session: &Session,
    ) -> Result<GoingOn, HostError> {
        let own = record.revision.as_deref();
        let (agent, digest) = self.chosen(record, choice).await?;
        let moved = digest.clone().filter(|digest| own != Some(digest));
        if moved.is_some() {
            let fits = self.engine(&agent, session).fits(&record.id, &agent.graph).await;
            fits.map_err(|error| match error {
                RunError::Mismatch { run, cause } => HostError::DoesNotFit { run: run.to_string(), cause },
                error => error.into(),
            })?;
        }
        if let (Some(digest), Some(revision)) = (&digest, &agent.revision) {
            let (context, read, folder) = (self.context().clone(), revision.clone(), agent.folder.clone());
            let looked = self.context().connections().blocking(move || changes(&context, &read, &folder)).await;
            // Whoever goes on is only told; what is the matter with the files shows where they are used.
            let changed = looked.unwrap_or_default();
            let current = *choice == RevisionChoice::Current;
            if moved.is_some() || !changed.is_empty() {
                session.observer.event(&Event::Revision { run: &record.id, digest, current, changed: &changed });
            }
        }
        Ok(GoingOn { agent, moved })
    }

    /// What is chosen for a run, with the digest of the revision that it is; none if the run was begun by a version that kept
    /// nothing, and goes on with the files.
    pub(super) async fn chosen(
        &self,
        record: &RunRecord,
        choice: &RevisionChoice,
    ) -> Result<(Agent, Option<String>), HostError> {
        let own = record.revision.as_deref();
        Ok(match choice {
            RevisionChoice::Current => {
                let agent = self.load_now(record).await?;
                self.keep(&agent).await?;
                let digest = agent.revision.as_ref().map(|revision| revision.digest.clone());
                (agent, digest)
            }
            RevisionChoice::Own => match own.or(record.header.kept.then_some(&record.header.digest)) {
                Some(digest) => (self.load_revision(record, digest).await?, Some(digest.to_owned())),
                None => (self.load_now(record).await?, None),
            },
            RevisionChoice::Digest(wanted) => {
                let digest = named(record.id.to_string(), wanted, self.revisions_of(record).await?)?;
                (self.load_revision(record, &digest).await?, Some(digest))
            }
        })
    }

    /// The agent of a run as a revision kept it.
    async fn load_revision(&self, record: &RunRecord, digest: &str) -> Result<Agent, HostError> {
        let unusable = |cause| HostError::Revision { run: record.id.to_string(), digest: digest.to_owned(), cause };
        let kept = kept(&**self.journal(), digest, &self.context().connections()).await.map_err(unusable)?;
        self.loaded_for(record, move |context| load::load_revision(context, kept)).await
    }

    /// The agent of a run as its files are now.
    async fn load_now(&self, record: &RunRecord) -> Result<Agent, HostError> {
        let source = record.header.source.clone();
        self.loaded_for(record, move |context| load::load_source(context, &source)).await
    }

    /// Loads the agent of a run where that may wait for files and servers.
    async fn loaded_for(
        &self,
        record: &RunRecord,
        load: impl FnOnce(&LoadContext) -> Result<Agent, LoadFailure> + Send + 'static,
    ) -> Result<Agent, HostError> {
        let context = self.context().clone();
        let loaded = self.context().connections().blocking(move || load(&context)).await;
        let loaded = loaded.unwrap_or_else(|reason| Err(Diagnostic::error(format!("loading failed: {reason}")).into()));
        loaded.map_err(|failure| HostError::Load { run: record.id.to_string(), failure })
    }

    /// The revisions of a run, in the order in which it used them.
    async fn revisions_of(&self, record: &RunRecord) -> Result<Vec<String>, HostError> {
        let mut known: Vec<String> = record.header.kept.then(|| record.header.digest.clone()).into_iter().collect();
        for entry in self.journal().history(&record.id).await?.entries {
            if let Fact::Revised { digest } = entry.fact
                && !known.contains(&digest)
            {
                known.push(digest);
            }
        }
        Ok(known)
    }
}

/// The one revision of a run whose digest begins as it was asked for.
fn named(run: String, wanted: &str, known: Vec<String>) -> Result<String, HostError> {
    let mut found: Vec<String> = known.iter().filter(|digest| digest.starts_with(wanted)).cloned().collect();
    let wanted = wanted.to_owned();
    match (found.pop(), found.is_empty()) {
        (Some(digest), true) => Ok(digest),
        (Some(digest), false) => {
            found.push(digest);
            Err(HostError::SeveralRevisions { run, wanted, found })
        }
        (None, _) => Err(HostError::NoSuchRevision { run, wanted, known }),
    }
}

#[cfg(test)]
mod tests {
    use super::named;

    #[test]
    fn the_beginning_of_a_digest_names_one_revision_or_is_refused() {
        let named = |wanted: &str| {
            let known = ["abcd0", "abcd1", "ef010"].map(str::to_owned).into();
            named("a-run".into(), wanted, known).map_err(|error| error.to_string())
        };
        assert_eq!(named("ef01"), Ok("ef010".into()));
        let several = "`abcd` is the beginning of several revisions of run `a-run`: `abcd0`, `abcd1`; give more of it";
        assert_eq!(named("abcd"), Err(several.into()));
        assert!(named("1234").is_err_and(|error| error.contains("abcd0")));
    }
}
